//! Packages of NVIDIA's kernel module and of its libraries are of different versions.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::packages::Package;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};

crate::check! {
    /// The packages of NVIDIA's kernel module and those of its libraries are of different versions.
    ///
    /// ## Why it matters
    /// Module and libraries work together only where their versions are equal to the last digit. Where the packages differ a
    /// restart does not help: the same pair comes back.
    ///
    /// ## How it comes about
    /// The halves come from different repositories and were published at different times, an upgrade was cut short, one half
    /// is held back, or an image was put together from both.
    ///
    /// ## How to confirm
    /// `rpm -qa '*nvidia*'`, `dpkg -l '*nvidia*'` or `pacman -Q | grep nvidia`.
    "nvidia-packages-out-of-step", Library, Error, each Stack, run
}

const WOULD_TELL: &str = "the versions of all packages with nvidia in their name";

/// Packages whose version is that of the kernel module in them. Those of Ubuntu with a module ready-made bear the version of the
/// kernel and are not here.
const OF_KERNEL: &[&str] = &[
    "akmod-nvidia*",
    "kmod-nvidia*",
    "nvidia-dkms*",
    "nvidia-driver-G0*",
    "nvidia-kernel-dkms",
    "nvidia-kernel-open-dkms",
    "nvidia-open-dkms*",
    "nvidia-open-driver-G0*",
    "nvidia-open-kernel-dkms",
];
/// The same on Arch; elsewhere packages of these names hold nothing themselves.
const OF_KERNEL_ON_ARCH: &[&str] = &["nvidia", "nvidia-lts", "nvidia-open", "nvidia-open-lts"];
/// Packages that hold libcuda.
const OF_LIBRARIES: &[&str] = &[
    "libcuda1",
    "libnvidia-compute-*",
    "nvidia-compute-G0*",
    "nvidia-driver-cuda-libs",
    "nvidia-utils",
    "xorg-x11-drv-nvidia*",
];

/// Name, package and version of one half.
type Half<'v> = Vec<(&'v str, &'v Package, &'v str)>;

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() || view.in_container() {
        return Verdict::NotHere;
    }
    // A driver container brings its own halves along.
    if view.driver_container().is_some() {
        return Verdict::NotHere;
    }
    let manager = view
        .facts
        .packages
        .got()
        .and_then(|packages| packages.manager.as_deref());
    let mut of_kernel = OF_KERNEL.to_vec();
    if manager == Some("pacman") {
        of_kernel.extend(OF_KERNEL_ON_ARCH);
    }
    let (kernel, libraries) = match (half(&of_kernel, view), half(OF_LIBRARIES, view)) {
        (Seen::Got(kernel), Seen::Got(libraries)) => (kernel, libraries),
        (Seen::Absent, _) | (_, Seen::Absent) => return Verdict::NotHere,
        // It compares the versions before it answers.
        _ if view.facts.nvml.got().is_some() => {
            return Verdict::fine("NVML answers, so module and libraries fit");
        }
        (Seen::Got(_), other) | (other, _) => {
            return Verdict::cannot_tell(
                format!("packages: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    // A module for a kernel that was upgraded later may be older than the rest.
    let together = kernel
        .iter()
        .find(|(.., version)| libraries.iter().any(|(.., other)| other == version));
    if let Some((name, _, version)) = together {
        return Verdict::fine(format!("{name} and the libraries are of version {version}"));
    }
    let (Some((of_kernel, one, kernel)), Some((of_libraries, other, library))) =
        (newest(&kernel), newest(&libraries))
    else {
        return Verdict::NotHere;
    };
    let database = view.package_database();
    let finding = Finding::new(format!(
        "the packages of NVIDIA's kernel module are of version {kernel}, those of its libraries of {library}"
    ))
    .saw(database, format!("{of_kernel} {}", one.version))
    .saw(database, format!("{of_libraries} {}", other.version))
    .fix(FixCall::new("match-nvidia-module-and-libraries"));
    match &view.facts.nvml {
        // It compares the versions before it answers.
        Seen::Got(_) => finding
            .works_all_the_same()
            .severity(Severity::Warning)
            .saw("nvmlInit_v2()", "answers: what is loaded now fits")
            .why("What is loaded now still fits; the next restart loads what the packages hold"),
        _ => finding.why(
            "Module and libraries work together only where their versions are equal to the last digit; a restart does not help",
        ),
    }
    .into()
}

fn half<'v>(patterns: &[&str], view: &'v View) -> Seen<Half<'v>> {
    let mut found: Half = Vec::new();
    let mut answer = Seen::Absent;
    for pattern in patterns {
        match view.packages_matching(pattern) {
            Seen::Got(packages) => found.extend(
                packages
                    .into_iter()
                    .filter_map(|(name, package)| Some((name, package, holds(name, package)?))),
            ),
            Seen::Absent => {}
            unknown => answer = unknown.map(|_| Vec::new()),
        }
    }
    // One that is not known may be the one that fits.
    match (found.is_empty(), answer) {
        (false, Seen::Absent) => Seen::Got(found),
        (_, answer) => answer,
    }
}

/// The version of the driver that a package holds; None: it is none of those meant.
fn holds<'v>(name: &str, package: &'v Package) -> Option<&'v str> {
    let is_other = name.starts_with("nvidia-driver-G0") && !name.contains("kmp")
        || name.starts_with("nvidia-open-driver-G0") && !name.contains("kmp")
        || name.starts_with("xorg-x11-drv-nvidia") && !name.ends_with("cuda-libs")
        || package.transitional == Some(true);
    let upstream = package.upstream();
    let end = upstream
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(upstream.len());
    let version = &upstream[..end];
    (!is_other && version.contains('.')).then_some(version)
}

fn newest<'h, 'v>(half: &'h Half<'v>) -> Option<&'h (&'v str, &'v Package, &'v str)> {
    half.iter()
        .max_by_key(|(.., version)| crate::version::Version::parse(version))
}
