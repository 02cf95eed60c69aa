//! A Linux driver of NVIDIA is installed under WSL.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::packages::Package;
use crate::facts::software::Library;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{RELEASE_FILE, Stack, View};

crate::check! {
    /// A Linux driver of NVIDIA is installed in this WSL system, where only the Windows driver may serve.
    ///
    /// ## Why it matters
    /// Windows lends its own libcuda.so.1 and libnvidia-ml.so.1 (`/usr/lib/wsl/lib`). Libraries of a Linux driver that programs
    /// find before these look for a kernel module that does not exist under WSL: NVML answers `GPU access blocked by the
    /// operating system`, CUDA that there is no device.
    ///
    /// ## How it comes about
    /// The package `cuda` or `cuda-drivers`, `nvidia-driver-...`, or `nvidia-utils-...` for the sake of `nvidia-smi`. The
    /// toolkit alone (`cuda-toolkit-12-8`) is right. Where packages are there and programs still find the libraries of Windows, this is a
    /// warning, and a note where NVML answers.
    ///
    /// ## How to confirm
    /// `ldconfig -p | grep libcuda.so.1` must name `/usr/lib/wsl/lib` first; `dpkg -l | grep -E 'nvidia-(driver|utils)|libnvidia-compute'`.
    "wsl-linux-driver-installed", Library, Error, each Stack, run
}

const LENT: &str = "/usr/lib/wsl/";
const WOULD_TELL: &str = "`ldconfig -p | grep libcuda.so.1`";

/// Packages of a Linux driver; a star stands for anything.
const DRIVERS: [&str; 12] = [
    "cuda-drivers*",
    "libcuda1",
    "libnvidia-compute-*",
    "libnvidia-ml1",
    "nvidia-compute-G*",
    "nvidia-compute-utils*",
    "nvidia-driver*",
    "nvidia-open*",
    "nvidia-smi",
    "nvidia-utils",
    "nvidia-utils-*",
    "xorg-x11-drv-nvidia*",
];

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    let kernel = view.facts.kernel.got();
    let told = kernel
        .is_some_and(|kernel| kernel.release.got().is_some() || kernel.version.got().is_some());
    match view.wsl() {
        // WSL 1 has no GPU to begin with.
        Some(version) if version > 1 && !view.in_container() => {}
        None if !told && view.facts.pci.items().next().is_none() => {
            return Verdict::cannot_tell(
                format!("{RELEASE_FILE}: {}", view.kernel_release().why()),
                "`uname -r`",
            );
        }
        _ => return Verdict::NotHere,
    }
    let packages = packages(view);
    let taken = ["libcuda.so.1", "libnvidia-ml.so.1"].map(|name| (name, taken(name, view)));
    let refused = view.facts.nvml.says("OPERATING_SYSTEM");
    let of_linux: Vec<&Library> = taken
        .iter()
        .filter_map(|(_, taken)| match taken {
            Taken::OfLinux(library) => Some(*library),
            _ => None,
        })
        .collect();
    // In a container under WSL the engine lends the libraries.
    if view.place.is_unknown() && !(of_linux.is_empty() && packages.is_absent()) {
        return Verdict::cannot_tell(
            format!("whether this is a container: {}", view.place.why()),
            "`ls /.dockerenv /run/.containerenv`",
        );
    }
    let found_packages = packages.got().map_or(&[][..], Vec::as_slice);
    if !of_linux.is_empty() || (refused && !found_packages.is_empty()) {
        let title = match of_linux.first() {
            Some(library) => format!(
                "programs load {} of a Linux driver, which cannot work under WSL",
                library.path
            ),
            None => "a Linux driver of NVIDIA is installed, and NVML is refused".to_owned(),
        };
        let mut finding = Finding::new(title);
        for library in of_linux {
            let says = match library.target.got() {
                Some(target) => format!("leads to {target}"),
                None => "is there, outside of /usr/lib/wsl/lib".to_owned(),
            };
            finding = finding.saw(&library.path, says);
        }
        if refused {
            finding = finding.saw("nvmlInit_v2()", "OPERATING_SYSTEM");
        }
        return end(finding, found_packages, view);
    }
    if let Some((name, why)) = taken.iter().find_map(|(name, taken)| match taken {
        Taken::Unknown(why) => Some((name, why)),
        _ => None,
    }) {
        return Verdict::cannot_tell(format!("which {name} programs load: {why}"), WOULD_TELL);
    }
    if !found_packages.is_empty() {
        let works = view.facts.nvml.got().is_some()
            && taken.iter().all(|(_, taken)| matches!(taken, Taken::Lent));
        let finding = Finding::new(
            "packages of a Linux driver are installed; programs still load the libraries of Windows",
        )
        // Their next upgrade may put libraries in the way.
        .severity(if works { Severity::Note } else { Severity::Warning })
        .saw(LENT.trim_end_matches('/'), "holds the libraries that programs load");
        return end(finding, found_packages, view);
    }
    match taken {
        // Where NVML answered, packages that shadow nothing change nothing.
        [(_, Taken::Lent), (_, Taken::Lent | Taken::Nothing)]
            if !refused && (packages.is_absent() || view.facts.nvml.got().is_some()) =>
        {
            Verdict::fine("programs load the libraries that Windows lends")
        }
        _ if !refused && packages.is_absent() => {
            Verdict::fine("no library and no package of a Linux driver is here")
        }
        _ => Verdict::cannot_tell(
            format!(
                "which packages are installed: {}; NVML: {}",
                packages.map(|_| ()).why(),
                view.facts.nvml.as_ref().map(|_| ()).why()
            ),
            WOULD_TELL,
        ),
    }
}

/// Whose library programs load.
enum Taken<'v> {
    /// That of Windows.
    Lent,
    /// That of a Linux driver.
    OfLinux(&'v Library),
    /// None, or one that is of no driver.
    Nothing,
    Unknown(String),
}

fn taken<'v>(name: &str, view: &'v View) -> Taken<'v> {
    match view.winner(name) {
        Seen::Got(library) => {
            let target = library.target.got().map_or("", String::as_str);
            let leads_to = |part: &str| library.path.contains(part) || target.contains(part);
            if library.path.starts_with(LENT) || target.starts_with(LENT) {
                Taken::Lent
            } else if leads_to("/stubs/") || leads_to("/compat/") {
                Taken::Nothing
            } else {
                Taken::OfLinux(library)
            }
        }
        Seen::Absent => Taken::Nothing,
        other => Taken::Unknown(other.map(|_| ()).why()),
    }
}

/// Packages of a Linux driver. Those that only lend their name to a 32-bit copy do not count.
fn packages<'v>(view: &'v View) -> Seen<Vec<(&'v str, &'v Package)>> {
    let mut found: Vec<(&str, &Package)> = Vec::new();
    let mut unknown = None;
    for pattern in DRIVERS {
        match view.packages_matching(pattern) {
            Seen::Got(packages) => found.extend(packages),
            Seen::Absent => {}
            other => unknown = Some(other.map(|_| Vec::new())),
        }
    }
    found.retain(|(name, package)| {
        // NVIDIA's tool that recommends a driver is none.
        *name != "nvidia-driver-assistant"
            && !matches!(package.architecture.as_deref(), Some("i386" | "i686"))
    });
    match (found.is_empty(), unknown) {
        (false, _) => Seen::Got(found),
        (true, Some(unknown)) => unknown,
        (true, None) => Seen::Absent,
    }
}

fn end(mut finding: Finding, packages: &[(&str, &Package)], view: &View) -> Verdict {
    for (name, package) in packages {
        finding = finding.saw(
            view.package_database(),
            format!("{name} {}", package.version),
        );
    }
    finding
        .why("Under WSL the Windows driver is all there is; libraries of a Linux driver look for a kernel module that does not exist")
        .fix(FixCall::new("remove-linux-driver-from-wsl"))
        .into()
}
