//! Parts of ROCm are from the distribution, others from AMD.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::packages::Package;
use crate::finding::{Finding, Severity};
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
    /// Upgrades of the whole distribution also switch AMD's repository and the file that prefers it off. Where none of the
    /// distribution's packages is one that AMD's name by exact version, this is a warning.
    ///
    /// ## How to confirm
    /// `apt list --installed 2>/dev/null | grep -E 'roc|hip|hsa'`: versions such as `1.0.0.70200-43~24.04` are AMD's. With RPM
    /// `rpm -qa | grep -E 'roc|hip|hsa'`: there AMD's are such as `6.4.1.60401-83.el9`.
    "rocm-distro-and-vendor-mixed", Library, Error, each Stack, run
}

/// Packages that AMD and distributions have under the same name. The distributions' own libraries (`libhsa-runtime64-1`,
/// Fedora's `rocm-runtime`, `rocm-hip` and `rocm-smi`) come with programs that have nothing to do with it (Open MPI, UCX) and
/// lie beside AMD's.
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
    "rocm-opencl",
    "rocm-smi-lib",
    "rocminfo",
    "rocrand",
    "rocsolver",
    "rocsparse",
];

/// Where the names of ROCm's packages begin.
const PATTERNS: &[&str] = &["comgr*", "hip*", "hsa*", "miopen*", "rccl*", "roc*"];

/// Those that AMD's `rocm-hip-runtime` and `rocm-hip-runtime-dev` name by exact version (ROCm/legacy-rocm-build issues 1899
/// and 6367).
const BY_EXACT_VERSION: &[&str] = &["hipcc", "rocm-cmake", "rocm-device-libs", "rocminfo"];

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
    let installed = match view.packages() {
        Seen::Got(installed) => installed,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("the packages: {}", other.map(|_| ()).why()),
                "the list of installed packages whose names begin with roc, hip or hsa",
            );
        }
    };
    let of_rocm: Vec<(&str, &Package)> = PATTERNS
        .iter()
        .filter_map(|pattern| view.packages_matching(pattern).into_got())
        .flatten()
        .collect();
    let of_amd = of_rocm.iter().find(|(_, package)| is_of_amd(package));
    let mixed: Vec<_> = of_rocm
        .iter()
        .filter(|(name, package)| SHARED.contains(name) && is_of_distribution(package))
        .copied()
        .collect();
    match (of_amd, mixed.first()) {
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
    let database = view.package_database();
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
    if !names.iter().any(|name| BY_EXACT_VERSION.contains(name)) {
        finding = finding.severity(Severity::Warning);
    }
    let repository = view.facts.packages.got().and_then(|packages| {
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
