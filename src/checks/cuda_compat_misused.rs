//! A forward-compatibility library of CUDA comes before the driver's own where that cannot work.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::software::Library;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::{Gpu, Stack, View};

crate::check! {
    /// Programs load the `libcuda.so.1` of a `cuda-compat` package where it cannot work.
    ///
    /// ## Why it matters
    /// The packages `cuda-compat-*` hold the CUDA library of a newer driver, for hosts whose driver may not be updated. NVIDIA
    /// supports that on GPUs for data centres, on some professional ones and on Jetson boards. On a GeForce every CUDA program
    /// ends with error 804 ("forward compatibility was attempted on non supported HW"). A library that is older than the
    /// kernel module is of no use anywhere: the two do not fit (error 803).
    ///
    /// ## How it comes about
    /// Images of NVIDIA bring such a folder (`/usr/local/cuda/compat`). Somebody put it on `LD_LIBRARY_PATH` or into
    /// `/etc/ld.so.conf.d`, where it comes before the library of the driver.
    ///
    /// ## How to confirm
    /// `echo $LD_LIBRARY_PATH` and `ldconfig -p | grep libcuda.so.1` show what is loaded; `cat /proc/driver/nvidia/version` names
    /// the version of the module.
    "cuda-compat-misused", Library, Error, each Stack, run, later ["source-branch-unsupported"]
}

const LIBRARY: &str = "libcuda.so.1";
const WOULD_TELL: &str = "`ldconfig -p | grep libcuda.so.1` and `echo $LD_LIBRARY_PATH`";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let compat = match view.winner(LIBRARY) {
        Seen::Got(file) if file.is_compat() => file,
        Seen::Got(file) => {
            return match view.unknown_before_libraries() {
                Some(why) => Verdict::cannot_tell(why, WOULD_TELL),
                None => Verdict::fine(format!("programs load {}", file.path)),
            };
        }
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("{LIBRARY}: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let Some(version) = view.library_version(compat).and_then(Version::parse) else {
        return Verdict::cannot_tell(
            format!(
                "programs load {}, and its version is not known",
                compat.path
            ),
            "`ls -l` of that folder",
        );
    };
    let (module, source) = match view.nvidia_loaded_version() {
        Seen::Got(found) => found,
        // Without the module nothing works, with or without that library.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "programs load {}; version of the kernel module: {}",
                    compat.path,
                    other.map(|_| ()).why()
                ),
                "`cat /proc/driver/nvidia/version`",
            );
        }
    };
    let Some(loaded) = Version::parse(module) else {
        return Verdict::cannot_tell(
            format!("{source} is no version"),
            "`cat /proc/driver/nvidia/version`",
        );
    };
    let saw = |finding: Finding| {
        finding
            .saw(
                compat.path.as_str(),
                format!(
                    "version {version}, loaded by way of {}",
                    compat.via.as_deref().unwrap_or("the loader")
                ),
            )
            .saw(source, format!("version {module}"))
            .fix(fix(compat))
    };
    if version < loaded {
        let finding = Finding::new(
            "programs load a CUDA compatibility library that is older than the driver",
        )
        .cause("older-than-driver")
        .why("A CUDA library must be as new as the kernel module; programs that load this one cannot start CUDA");
        return saw(finding).into();
    }
    if version == loaded {
        return Verdict::fine(format!("{} is as new as the kernel module", compat.path));
    }
    let gpus = view.gpus_of(stack);
    let gpus: Vec<&Gpu> = gpus.filter(|gpu| gpu.passed_in != Some(false)).collect();
    if gpus.is_empty() {
        return Verdict::NotHere;
    }
    if gpus.iter().all(|gpu| is_geforce(gpu)) {
        let mut finding =
            Finding::new("a CUDA compatibility library comes first, and a GeForce cannot use it")
                .cause("geforce")
                .why("Every CUDA program that loads it ends with error 804: NVIDIA allows forward compatibility on GPUs for data centres only");
        for gpu in gpus {
            if let (Some(address), Some(name)) = (&gpu.pci, &gpu.name) {
                finding = finding.saw(format!("/sys/bus/pci/devices/{address}/device"), name);
            }
        }
        return saw(finding).into();
    }
    if view.compat_serves(compat) {
        return Verdict::fine(format!(
            "{} gives these GPUs the CUDA of driver {version}",
            compat.path
        ));
    }
    Verdict::cannot_tell(
        format!(
            "programs load {}; whether it may serve these GPUs is not known",
            compat.path
        ),
        "a small CUDA program: error 804 means that it may not",
    )
}

/// Sold for games. Which of the other cards that are not for data centres may use forward compatibility NVIDIA does not say.
fn is_geforce(gpu: &Gpu) -> bool {
    let names = |name: &String| ["GeForce", "TITAN"].iter().any(|part| name.contains(part));
    !gpu.data_centre && gpu.name.as_ref().is_some_and(names)
}

fn fix(compat: &Library) -> FixCall {
    let folder = compat.path.trim_end_matches(LIBRARY).trim_end_matches('/');
    let via = compat.via.as_deref();
    let via = via
        .filter(|via| via.starts_with("LD_"))
        .unwrap_or("/etc/ld.so.conf.d");
    FixCall::new("leave-cuda-compat-out")
        .with("file", folder)
        .with("name", via)
}
