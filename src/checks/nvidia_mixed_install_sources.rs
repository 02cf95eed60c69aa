//! NVIDIA's driver is installed from two sources, or in two branches.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::packages::Package;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};
use std::collections::BTreeMap;

crate::check! {
    /// The user half of NVIDIA's driver is installed twice: packages of two branches or of two packagers, or packages beside
    /// what NVIDIA's installer (`NVIDIA-Linux-*.run`) laid over them.
    ///
    /// ## Why it matters
    /// Each source owns other files, so the next upgrade replaces one half: then module and libraries no longer fit together.
    /// Where they do not fit already this is an error, else a warning.
    ///
    /// ## How it comes about
    /// A tool pulled in the monitoring package of another branch; a guide added NVIDIA's repository beside RPM Fusion; a driver of
    /// the distribution was installed on top of the installer's. Packages that only lead to a newer branch, kernel modules that
    /// older kernels keep, 32-bit libraries and the container toolkit are no second source.
    ///
    /// ## How to confirm
    /// `dpkg -l '*nvidia*' | grep ^ii`, `rpm -qa '*nvidia*'`; `ls /usr/bin/nvidia-uninstall`, which only NVIDIA's installer leaves.
    "nvidia-mixed-install-sources", Library, Error, each Stack, run
}

const WOULD_TELL: &str = "`dpkg -l '*nvidia*' | grep ^ii`, or `rpm -qa '*nvidia*'`";

/// User space packages of Ubuntu, whose names end with the branch.
const OF_BRANCH: [&str; 2] = ["libnvidia-compute-", "nvidia-utils-"];
/// Names of user space packages, each with who packs the driver so.
const PACKAGERS: [(&str, &str); 5] = [
    ("xorg-x11-drv-nvidia", "RPM Fusion"),
    ("nvidia-driver-libs", "the packages nvidia-driver"),
    ("nvidia-driver-cuda-libs", "the packages nvidia-driver"),
    ("nvidia-compute-G", "SUSE's or NVIDIA's repository"),
    ("nvidia-utils", "Arch Linux"),
];

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    // What is installed in a container is not its driver, and WSL needs none at all. Where a system is built as a whole from
    // its configuration nothing is laid over anything.
    let built_as_a_whole = |id: &String| matches!(id.as_str(), "nixos" | "guix");
    let id = view
        .facts
        .os_release
        .got()
        .and_then(|os| os.fields.get("ID"));
    if view.wsl().is_some()
        || view.is_tegra()
        || view.in_container()
        || id.is_some_and(built_as_a_whole)
    {
        return Verdict::NotHere;
    }
    let installed = match view.packages() {
        Seen::Got(installed) => installed,
        // No package manager that is known here: then nothing of it can be mixed.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("which packages are installed: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let mut sources: BTreeMap<String, Vec<(&str, &Package)>> = BTreeMap::new();
    for pattern in ["libnvidia-compute-*", "nvidia-*", "xorg-x11-drv-nvidia*"] {
        let found = view.packages_matching(pattern).into_got();
        for (name, package) in found.into_iter().flatten() {
            if let Some(source) = source(name, package) {
                sources.entry(source).or_default().push((name, package));
            }
        }
    }
    let installer = installer(view);
    if sources.len() > 1 {
        let mut packages = sources.values().flatten();
        // A transitional package may have the version of the branch in its name, so where what it says of itself was not
        // recorded, only a driver that does not fit shows that there are two.
        let is_clear = |(name, package): &(&str, &Package)| {
            package.transitional.is_some() || !OF_BRANCH.iter().any(|start| name.starts_with(start))
        };
        let all_clear = packages.all(is_clear);
        if !all_clear && works_now(view) {
            return Verdict::cannot_tell(
                format!(
                    "there are packages of {}; whether some of them hold nothing and only lead to another was not recorded",
                    list(&sources)
                ),
                WOULD_TELL,
            );
        }
        return two_sources(&sources, all_clear, view);
    }
    match (sources.iter().next(), installer) {
        (Some((source, packages)), Some(program)) => {
            beside_installer(source, packages, program, view)
        }
        // A list with gaps may hide a second source.
        _ if !installed.whole => Verdict::cannot_tell("the list of packages has gaps", WOULD_TELL),
        (Some((source, _)), None) => Verdict::fine(format!("its packages are all of {source}")),
        (None, _) => Verdict::fine("no second source of the driver among the packages"),
    }
}

/// Where a user space package of the driver comes from: its branch, where its name says that, else its packager. None: it is
/// none, or does not count.
fn source(name: &str, package: &Package) -> Option<String> {
    if matches!(package.architecture.as_deref(), Some("i386" | "i686")) {
        return None;
    }
    if let Some(rest) = OF_BRANCH.iter().find_map(|start| name.strip_prefix(start)) {
        let (branch, flavour) = rest.split_once('-').unwrap_or((rest, ""));
        // A package that only leads to a newer branch says so, and mostly has the version of that one.
        let own = package.upstream().split('.').next() == Some(branch);
        let is_own = own && package.transitional != Some(true);
        return is_own.then(|| match flavour.starts_with("server") {
            true => format!("branch {branch}-server"),
            false => format!("branch {branch}"),
        });
    }
    let (start, packager) = PACKAGERS
        .iter()
        .find(|(start, _)| name.starts_with(start))?;
    let rest = &name[start.len()..];
    match *start {
        // `nvidia-compute-G06`, not `nvidia-compute-utils-G06`, which belongs to it.
        "nvidia-compute-G" => rest
            .get(..2)
            .filter(|generation| generation.bytes().all(|digit| digit.is_ascii_digit()))
            .map(|generation| format!("generation G{generation}")),
        // `xorg-x11-drv-nvidia-470xx-cuda-libs`.
        "xorg-x11-drv-nvidia" => {
            let branch = rest.split('-').find(|part| part.ends_with("xx"));
            Some(match branch {
                Some(branch) => format!("{packager}, branch {branch}"),
                None => (*packager).to_owned(),
            })
        }
        _ => rest.is_empty().then(|| (*packager).to_owned()),
    }
}

/// The program that NVIDIA's installer leaves behind to take its files away again.
fn installer<'v>(view: &'v View) -> Option<&'v str> {
    let programs = view.facts.software.got().map(|software| &software.programs);
    let program = programs?.get("nvidia-uninstall")?;
    program.got().map(String::as_str)
}

/// Module and libraries are of the same version, so all works now.
fn works_now(view: &View) -> bool {
    let Some((loaded, _)) = view.nvidia_loaded_version().into_got() else {
        return false;
    };
    let version = |name| {
        let library = view.winner(name).into_got()?;
        view.library_version(library)
    };
    version("libcuda.so.1") == Some(loaded)
        && (version("libnvidia-ml.so.1") == Some(loaded) || view.facts.nvml.got().is_some())
}

fn list(sources: &BTreeMap<String, Vec<(&str, &Package)>>) -> String {
    let names: Vec<&str> = sources.keys().map(String::as_str).collect();
    names.join("; ")
}

fn two_sources(
    sources: &BTreeMap<String, Vec<(&str, &Package)>>,
    certain: bool,
    view: &View,
) -> Verdict {
    let mut finding = Finding::new(format!(
        "the driver's libraries are installed from several sources: {}",
        list(sources)
    ));
    if !certain {
        finding = finding.likely();
    }
    for packages in sources.values() {
        finding = package_evidence(finding, packages, view);
    }
    if works_now(view) {
        finding = finding.severity(Severity::Warning);
    }
    finding
        .why("Each source owns other files, and an upgrade of one leaves the other's behind: module and libraries stop fitting")
        .fix(FixCall::new("keep-one-nvidia-driver"))
        .into()
}

fn beside_installer(
    source: &str,
    packages: &[(&str, &Package)],
    program: &str,
    view: &View,
) -> Verdict {
    package_evidence(
        Finding::new(format!(
            "NVIDIA's installer and packages ({source}) have both installed the driver"
        ))
        .severity(match works_now(view) {
            true => Severity::Warning,
            false => Severity::Error,
        })
        .likely()
        .saw(program, "is there: NVIDIA's installer leaves it"),
        packages,
        view,
    )
    .why("The installer lays its files over those of the packages, and the next upgrade of the packages replaces only some of them")
    .fix(FixCall::new("uninstall-nvidia-run-file"))
    .fix(FixCall::new("keep-one-nvidia-driver"))
    .into()
}

fn package_evidence(mut finding: Finding, packages: &[(&str, &Package)], view: &View) -> Finding {
    let database = view.package_database();
    for (name, package) in packages {
        finding = finding.saw(database, format!("{name} {}", package.version));
    }
    finding
}
