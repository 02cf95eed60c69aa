//! Parts of ROCm are from the distribution, others from AMD.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::packages::Package;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};

crate::check! {
    /// Parts of ROCm are installed from the distribution and others from AMD's repository.
    ///
    /// ## Why it matters
    /// AMD's packages name each other by exact version, and the distribution's of the same name have another. What is left then
    /// are tools of one release on libraries of another: `rocminfo` or `hipcc` fail or find nothing, and the next part cannot be
    /// installed.
    ///
    /// ## How it comes about
    /// AMD's version of `rocminfo` is 1.0.0 and the distribution's is a higher number, so a plain upgrade takes the latter.
    /// Upgrades of the whole distribution also switch AMD's repository and the file that prefers it off.
    ///
    /// ## How to confirm
    /// `apt list --installed 2>/dev/null | grep -E 'roc|hip|hsa'`: versions such as `1.0.0.70200-43~24.04` are AMD's. With RPM
    /// `rpm -qa | grep -E 'roc|hip|hsa'`: there AMD's are such as `6.4.1.60401-83.el9`.
    "rocm-distro-and-vendor-mixed", Library, Error, each Stack, run
}

/// Packages that AMD and distributions have under the same name. The distributions' own libraries (`libhsa-runtime64-1`) come
/// with programs that have nothing to do with it (Open MPI, UCX) and lie beside AMD's.
const SHARED: &[&str] = &[
    "comgr",
    "hip",
    "hipblas",
    "hipblaslt",
    "hipcc",
    "hipfft",
    "hipify-clang",
    "hiprand",
    "hipsolver",
    "hipsparse",
    "hsa-rocr",
    "hsakmt",
    "miopen-hip",
    "rccl",
    "rocblas",
    "rocfft",
    "rocm-cmake",
    "rocm-core",
    "rocm-device-libs",
    "rocm-hip",
    "rocm-opencl",
    "rocm-runtime",
    "rocm-smi",
    "rocm-smi-lib",
    "rocminfo",
    "rocrand",
    "rocsolver",
    "rocsparse",
];

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    let software = match &view.facts.software {
        Seen::Got(software) => software,
        other => {
            return Verdict::cannot_tell(
                format!("ROCm: {}", other.as_ref().map(|_| ()).why()),
                "`ls -d /opt/rocm*`",
            );
        }
    };
    // All of AMD's packages are below /opt.
    match &software.rocm {
        Seen::Absent => return Verdict::NotHere,
        Seen::Got(installs)
            if installs.keys().all(|root| root == "/usr")
                && !software.library_folders.contains_key("/opt/rocm/lib") =>
        {
            return Verdict::fine("ROCm is in /usr alone, where AMD's packages put nothing");
        }
        _ => {}
    }
    let packages = view
        .facts
        .packages
        .as_ref()
        .and_then(|packages| packages.installed.as_ref());
    let installed = match packages {
        Seen::Got(installed) => installed,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("the packages: {}", other.map(|_| ()).why()),
                "the list of installed packages whose names begin with roc, hip or hsa",
            );
        }
    };
    let of = |wanted: fn(&Package) -> bool| -> Vec<(&str, &Package)> {
        installed
            .items
            .iter()
            .flat_map(|(name, packages)| packages.iter().map(move |one| (name.as_str(), one)))
            .filter(|(name, package)| is_of_rocm(name) && is_there(package) && wanted(package))
            .collect()
    };
    let (of_amd, of_distribution) = (of(is_of_amd), of(is_of_distribution));
    let mixed: Vec<_> = of_distribution
        .into_iter()
        .filter(|(name, _)| SHARED.contains(name))
        .collect();
    match (of_amd.first(), mixed.first()) {
        (Some(amd), Some(_)) => found(*amd, &mixed, view),
        _ if !installed.whole => Verdict::cannot_tell(
            "not all packages are known",
            "the list of installed packages whose names begin with roc, hip or hsa",
        ),
        (Some((name, package)), None) => {
            Verdict::fine(format!("{name} {} and the rest are AMD's", package.version))
        }
        (None, _) => Verdict::fine("no package of ROCm is AMD's"),
    }
}

fn is_of_rocm(name: &str) -> bool {
    SHARED.contains(&name) || name.starts_with("roc") || name.starts_with("hip")
}

fn is_there(package: &Package) -> bool {
    !["config-files", "not-installed"].contains(&package.state.as_str())
}

/// Behind the version of the part AMD puts the release of ROCm as one number: `7.2.26015.70200-43~24.04`.
fn is_of_amd(package: &Package) -> bool {
    let Some((version, _)) = package.version.split_once('-') else {
        return false;
    };
    let last = version.rsplit('.').next().unwrap_or_default();
    (5..=6).contains(&last.len())
        && last.bytes().all(|digit| digit.is_ascii_digit())
        && version.matches('.').count() >= 2
}

/// A revision as Debian, Ubuntu, Fedora, EPEL or openSUSE write it. What is neither this nor AMD's is somebody else's.
fn is_of_distribution(package: &Package) -> bool {
    let Some((_, revision)) = package.version.rsplit_once('-') else {
        return false;
    };
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let of_debian = plain(revision)
        || ["ubuntu", "build", "+b", "+deb"]
            .iter()
            .any(|mark| revision.contains(mark));
    let of_rpm = [".fc", ".el", "lp15", "lp16", ".bp"]
        .iter()
        .any(|mark| revision.contains(mark));
    !is_of_amd(package) && !revision.contains('~') && (of_debian || of_rpm)
}

fn found(amd: (&str, &Package), mixed: &[(&str, &Package)], view: &View) -> Verdict {
    let manager = view.facts.packages.got();
    let database = match manager.and_then(|packages| packages.manager.as_deref()) {
        Some("dpkg") => "/var/lib/dpkg/status",
        Some("rpm") => "/var/lib/rpm",
        _ => "/var/lib",
    };
    let names: Vec<&str> = mixed.iter().map(|(name, _)| *name).collect();
    let mut finding = Finding::new(format!(
        "{} from the distribution among AMD's packages of ROCm",
        match names.as_slice() {
            [one] => format!("{one} is"),
            several => format!("{} are", several.join(", ")),
        }
    ))
    .saw(database, format!("{} {}: AMD's", amd.0, amd.1.version));
    for (name, package) in mixed {
        finding = finding.saw(
            database,
            format!("{name} {}: the distribution's", package.version),
        );
    }
    let repository = manager.and_then(|packages| {
        packages.repositories.items.iter().find(|(_, sources)| {
            sources
                .iter()
                .any(|source| source.url.contains("repo.radeon.com"))
        })
    });
    if let Some((file, sources)) = repository {
        let enabled = sources.iter().any(|source| source.enabled);
        finding = finding.saw(
            file.as_str(),
            if enabled {
                "AMD's repository, in use"
            } else {
                "AMD's repository, switched off"
            },
        );
    }
    finding
        .why("Tools of one release on libraries of another fail or see no GPU, and AMD's packages depend on exact versions of each other")
        .fix(FixCall::new("replace-distribution-rocm").with("name", names[0]))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_tell_who_made_a_package() {
        let package = |version: &str| Package {
            version: version.to_owned(),
            ..Package::default()
        };
        for version in [
            "7.2.26015.70200-43~24.04",
            "1.0.0.70202-86~24.04",
            "6.4.3.60403-128~24.04",
            "6.4.1.60401-83.el9",
        ] {
            let package = package(version);
            assert!(
                is_of_amd(&package) && !is_of_distribution(&package),
                "{version}"
            );
        }
        for version in [
            "5.7.1-3build1",
            "7.1.1-0ubuntu1",
            "5.7.1-3",
            "6.3.0-2.fc42",
            "6.4.0-1.el10_1",
        ] {
            let package = package(version);
            assert!(
                !is_of_amd(&package) && is_of_distribution(&package),
                "{version}"
            );
        }
        // Neither: nobody is accused.
        for version in ["7.13.0~20260801-1~24.04", "6.4.1", "", "7.14.0-local"] {
            let package = package(version);
            assert!(
                !is_of_amd(&package) && !is_of_distribution(&package),
                "{version}"
            );
        }
    }
}
