//! The libraries of NVIDIA's driver in a container are of another version than the host's kernel module.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Compared, Stack, View};

crate::check! {
    /// The libraries of NVIDIA's driver in this container are of another version than the kernel module of its host.
    ///
    /// ## Why it matters
    /// Module and libraries of NVIDIA's driver speak to each other only where their versions are equal to the last digit. Else
    /// NVML answers `Driver/library version mismatch` and CUDA 803. The module is the host's, so the libraries have to be, too.
    ///
    /// ## How it comes about
    /// Engines lend the libraries of the host when a container starts. One that runs through an upgrade of the host keeps the
    /// old ones (`started-before-upgrade`). An image that has driver packages of its own loads those (`driver-baked-in`). In
    /// containers that are systems of their own, as those of LXC, somebody installs the libraries by hand (`lxc`).
    ///
    /// ## How to confirm
    /// `cat /proc/driver/nvidia/version` and `ls -l` of libcuda.so.1 and libnvidia-ml.so.1, which `ldconfig -p` finds.
    "container-driver-library-mismatch", Container, Error, each Stack, run
}

const WOULD_TELL: &str = "`cat /proc/driver/nvidia/version` and `ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'` in the container";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    let has_gpu = view
        .gpus_of(stack)
        .any(|gpu| gpu.passed_in != Some(false) && gpu.is_held_by("nvidia"));
    // Where the place is not known, the check of machines says so.
    if !view.in_container() || !has_gpu || view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let nvml_refuses = view.facts.nvml.says("LIB_RM_VERSION_MISMATCH");
    let (loaded, source) = match view.nvidia_loaded_version() {
        Seen::Got((loaded, source)) => (Some(loaded), source),
        _ if nvml_refuses => (None, ""),
        other => {
            return Verdict::cannot_tell(
                format!("/proc/driver/nvidia/version: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let compared = loaded.map(|loaded| view.nvidia_libraries_beside_loaded(loaded));
    let differing = compared.iter().flatten().find_map(|(name, one)| match one {
        Compared::Differs(library, version) => Some((*name, *library, *version)),
        _ => None,
    });
    if differing.is_none() && !nvml_refuses {
        let mut told = compared.iter().flatten();
        let unknown = told.find_map(|(name, one)| match one {
            Compared::Unknown(why) => Some(format!("{name}: {why}")),
            _ => None,
        });
        let fits = |(_, one): &(&str, Compared)| matches!(one, Compared::Fits(_));
        return match (unknown, compared.iter().flatten().any(fits)) {
            (Some(why), _) => Verdict::cannot_tell(why, WOULD_TELL),
            (None, true) => Verdict::fine("the libraries are of the version of the host's module"),
            (None, false) => Verdict::NotHere,
        };
    }
    let title = match (differing, loaded) {
        (Some((.., version)), Some(loaded)) => format!(
            "NVIDIA's libraries in the container are of version {version}, the module of its host of {loaded}"
        ),
        _ => "NVML refuses: its version is not that of the host's kernel module".to_owned(),
    };
    let mut finding = Finding::new(title);
    if let Some(loaded) = loaded {
        finding = finding.saw(source, loaded);
    }
    if let Some((name, library, version)) = differing {
        finding = finding.saw(&library.path, format!("{name} of version {version}"));
    }
    if nvml_refuses {
        finding = finding.saw("nvmlInit_v2()", "LIB_RM_VERSION_MISMATCH");
    }
    let target = differing.and_then(|(_, library, _)| library.target.got());
    // What the engine lent is a mount of its own.
    let is_lent = target
        .zip(view.facts.mounts.got())
        .map(|(target, mounts)| mounts.mounts.iter().any(|mount| mount.point == *target));
    finding = match (view.container_is_system(), is_lent) {
        (true, _) => finding
            .cause("lxc")
            .fix(FixCall::new("match-driver-in-system-container")),
        (false, Some(true)) => finding
            .cause("started-before-upgrade")
            .fix(FixCall::new("make-container-anew")),
        (false, Some(false)) => finding
            .cause("driver-baked-in")
            .fix(FixCall::new("take-driver-out-of-image")),
        (false, None) => finding
            .fix(FixCall::new("make-container-anew"))
            .fix(FixCall::new("take-driver-out-of-image")),
    };
    finding
        .why("Every program in the container that asks for CUDA or NVML is refused")
        .into()
}
