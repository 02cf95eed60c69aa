//! NVIDIA's libraries are of another version than the module in the kernel.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::log::Kind;
use crate::view::{Compared, PackageHalves, Stack, View};

crate::check! {
    /// NVIDIA's libraries on the disk are of another version than the kernel module that is loaded.
    ///
    /// ## Why it matters
    /// Module and libraries of NVIDIA's driver speak to each other only where their versions are equal to the last digit. Else
    /// NVML answers `Driver/library version mismatch` and CUDA 803; programs that started before may go on.
    ///
    /// ## How it comes about
    /// An upgrade, often an unattended one, replaced the libraries while the old module stays in the kernel: a restart mends
    /// it (`reboot-pending`). Or an older module file is taken again at each boot: a second copy in the module folder or in the
    /// initramfs, or a module package that lags behind (`survives-reboot`). Or both are of the same release and of different
    /// builds, as with a module that somebody patched (`other-build`).
    ///
    /// ## How to confirm
    /// `cat /sys/module/nvidia/version`, `modinfo -F version nvidia` and `ls -l` of libcuda.so.1 and libnvidia-ml.so.1, which
    /// `ldconfig -p` finds.
    "nvidia-driver-library-mismatch", Library, Error, each Stack, run
}

const WOULD_TELL: &str =
    "`cat /sys/module/nvidia/version` and `ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'`";

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    // The library of a Tegra board bears the number of its interface. A driver from a container brings its own libraries along;
    // those of the system are left over.
    if !view.has_own_nvidia_driver() || view.driver_container().is_some() {
        return Verdict::NotHere;
    }
    let nvml_refuses = view.facts.nvml.says("LIB_RM_VERSION_MISMATCH");
    let (loaded, source) = match view.nvidia_loaded_version() {
        Seen::Got(loaded) => loaded,
        _ if nvml_refuses => {
            return refused(view)
                .why(WHY)
                .fix(FixCall::new("restart-after-nvidia-upgrade"))
                .into();
        }
        other => {
            return Verdict::cannot_tell(
                format!("/sys/module/nvidia/version: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let compared = view.nvidia_libraries_beside_loaded(loaded);
    let differs = |(_, one): &&(&str, Compared)| matches!(one, Compared::Differs(..));
    if nvml_refuses || compared.iter().any(|one| differs(&one)) {
        // In a container this would be its engine's fault.
        if view.place.is_unknown() {
            return Verdict::cannot_tell(
                format!(
                    "module and libraries differ; whether this is a container: {}",
                    view.place.why()
                ),
                "`ls /.dockerenv /run/.containerenv`",
            );
        }
        return found(&compared, (loaded, source), nvml_refuses, view);
    }
    for (name, one) in &compared {
        if let Compared::Unknown(why) = one {
            return Verdict::cannot_tell(format!("{name}: {why}"), WOULD_TELL);
        }
    }
    match compared.iter().find_map(|(_, one)| match one {
        Compared::Fits(version) => Some(version),
        _ => None,
    }) {
        Some(version) => match view.unknown_before_libraries() {
            Some(why) => Verdict::cannot_tell(why, WOULD_TELL),
            None => Verdict::fine(format!("module and libraries are of version {version}")),
        },
        None => Verdict::NotHere,
    }
}

const WHY: &str =
    "Every program that asks for CUDA or NVML from now on is refused; those that run may go on";

const WHY_CUDA: &str = "Every program that asks for CUDA from now on is refused, although NVML and nvidia-smi answer; those that run may go on";

/// NVML compared the versions itself.
fn refused(view: &View) -> Finding {
    log_evidence(
        Finding::new("NVML refuses: its version is not that of the loaded kernel module")
            .saw("nvmlInit_v2()", "LIB_RM_VERSION_MISMATCH"),
        view,
    )
}

fn found(
    compared: &[(&str, Compared)],
    (loaded, source): (&str, &str),
    nvml_refuses: bool,
    view: &View,
) -> Verdict {
    let different = compared.iter().find_map(|(_, one)| match one {
        Compared::Differs(_, version) => Some(*version),
        _ => None,
    });
    let Some(version) = different else {
        return refused(view)
            .saw(source, loaded)
            .why(WHY)
            .fix(FixCall::new("restart-after-nvidia-upgrade"))
            .into();
    };
    let mut finding = Finding::new(format!(
        "NVIDIA's libraries are of version {version}, the loaded kernel module of {loaded}"
    ))
    .saw(source, loaded);
    for (name, one) in compared {
        if let Compared::Differs(library, version) = one {
            finding = finding.saw(&library.path, format!("{name} of version {version}"));
        }
    }
    if nvml_refuses {
        finding = finding.saw("nvmlInit_v2()", "LIB_RM_VERSION_MISMATCH");
    }
    finding = log_evidence(finding, view);
    // Neither a restart nor a package changes what a variable leads to.
    let foreign = compared.iter().find_map(|(_, one)| match one {
        Compared::Differs(library, _) => Some((library, library.of_environment()?)),
        _ => None,
    });
    if let Some((library, variable)) = foreign {
        return finding
            .cause("survives-reboot")
            .why("Programs of this environment that ask for the driver are refused")
            .fix(
                FixCall::new("leave-driver-copy-out")
                    .with("file", &library.path)
                    .with("name", variable),
            )
            .into();
    }
    let why = match &view.facts.nvml {
        // It compares the versions, too, and found them to fit.
        Seen::Got(_) => WHY_CUDA,
        _ => WHY,
    };
    cause(finding, loaded, version, view).why(why).into()
}

/// What the next boot would load decides whether it mends anything.
fn cause(mut finding: Finding, loaded: &str, library: &str, view: &View) -> Finding {
    let restart = || FixCall::new("restart-after-nvidia-upgrade");
    let same_again = || FixCall::new("match-nvidia-module-and-libraries");
    let files = match view.module_files("nvidia") {
        Seen::Got(files) => files.as_slice(),
        // The upgrade took the folder of the running kernel along.
        Seen::Absent if view.other_kernel_with("nvidia").is_some() => {
            let evidence = format!("no nvidia module for the running kernel, {loaded} is loaded");
            return finding
                .cause("reboot-pending")
                .likely()
                .saw(view.running_kernel_folder(), evidence)
                .fix(restart());
        }
        _ => return finding.fix(restart()),
    };
    let on_disk: Vec<(&str, &str)> = files
        .iter()
        .filter_map(|file| Some((file.path.as_str(), file.info.got()?.version.as_deref()?)))
        .collect();
    for (path, version) in &on_disk {
        finding = finding.saw(*path, format!("version {version}"));
    }
    let has = |wanted: &str| on_disk.iter().any(|(_, version)| *version == wanted);
    // Where the packages differ the same pair comes back, whichever kernel starts.
    let apart = match view.nvidia_packages() {
        PackageHalves::Apart(halves) if !has(library) => Some(halves),
        _ => None,
    };
    for (name, version, _) in apart.iter().flatten() {
        finding = finding.saw(view.package_database(), format!("{name} {version}"));
    }
    match (has(library), has(loaded)) {
        (false, false) if apart.is_some() => finding.cause("survives-reboot").fix(same_again()),
        (true, false) => finding.cause("reboot-pending").fix(restart()),
        (true, true) => finding
            .cause("survives-reboot")
            .fix(FixCall::new("remove-second-nvidia-module")),
        // The module that fits may come with a newer kernel, which the next boot starts.
        (false, _) if apart.is_none() && is_older_kernel(view) => {
            finding.cause("reboot-pending").likely().fix(restart())
        }
        (false, true) if same_release(loaded, library) => {
            finding.cause("other-build").fix(same_again())
        }
        (false, true) => finding.cause("survives-reboot").fix(same_again()),
        // Neither of both is on the disk, or the file does not tell.
        (false, false) => finding.fix(restart()).fix(same_again()),
    }
}

/// A newer kernel than the running one is installed and has a module.
fn is_older_kernel(view: &View) -> bool {
    let running = view.kernel_release().into_got().and_then(Version::parse);
    let other = view
        .other_kernel_with("nvidia")
        .and_then(|(release, _)| Version::parse(release));
    matches!((running, other), (Some(running), Some(other)) if other > running)
}

/// 570.124.06 and 570.124.04.
fn same_release(one: &str, other: &str) -> bool {
    let release = |version: &str| {
        let numbers = Version::parse(version)?;
        Some(numbers.numbers().take(2).collect::<Vec<_>>())
    };
    release(one).is_some() && release(one) == release(other)
}

/// What the kernel log has of the same; by itself it proves nothing, since one old program is enough for it.
fn log_evidence(finding: Finding, view: &View) -> Finding {
    let said = view
        .log_events
        .iter()
        .rev()
        .find(|event| event.current && matches!(event.kind, Kind::ApiMismatch { .. }));
    match said {
        Some(event) => finding.saw(view.log_source(), event.says()),
        None => finding,
    }
}
