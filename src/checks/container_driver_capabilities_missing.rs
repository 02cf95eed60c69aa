//! A container has the GPU and not the libraries of its driver.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, View};

crate::check! {
    /// This container was given a GPU of NVIDIA, and not the libraries through which programs reach it.
    ///
    /// ## Why it matters
    /// `libcuda.so.1` belongs to the driver of the host: no toolkit and no framework brings it along. The engine lends it when
    /// the container starts. Without it every CUDA program ends with `libcuda.so.1: cannot open shared object file` or finds no
    /// GPU, while `nvidia-smi` works.
    ///
    /// ## How it comes about
    /// The engine lends what `NVIDIA_DRIVER_CAPABILITIES` names, or `capabilities` in a compose file: `compute` brings libcuda
    /// (`compute`), `utility` libnvidia-ml and `nvidia-smi` (`utility`). Or somebody passed in the nodes by `--device` and
    /// nothing else.
    ///
    /// ## How to confirm
    /// `ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'` in the container.
    "container-driver-capabilities-missing", Container, Error, each Stack, run, later ["graphics"]
}

const CUDA: &str = "libcuda.so.1";
const NVML: &str = "libnvidia-ml.so.1";
const CAPABILITIES: &str = "NVIDIA_DRIVER_CAPABILITIES";
const WOULD_TELL: &str =
    "`ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'` in the container";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if !(view.in_container() || view.place.is_unknown()) || view.is_tegra() {
        return Verdict::NotHere;
    }
    let mut gpus = view.gpus_of(stack);
    let Some(gpu) = gpus.find(|gpu| gpu.passed_in != Some(false) && is_lent(gpu)) else {
        return Verdict::NotHere;
    };
    // A container for monitoring or for the display has no use for it.
    if !is_asked_for(stack, view) || view.driver_container().is_some() {
        return Verdict::NotHere;
    }
    let (missing, cause) = match (view.nvidia_library(CUDA), view.nvidia_library(NVML)) {
        (Ok(Some(_)), Ok(Some(_))) => {
            return Verdict::fine(format!("{CUDA} and {NVML} are there"));
        }
        (Ok(None), _) => (CUDA, "compute"),
        (Ok(Some(_)), Ok(None)) => (NVML, "utility"),
        (Err(why), _) | (_, Err(why)) => return Verdict::cannot_tell(why, WOULD_TELL),
    };
    if gpu.passed_in != Some(true) || view.place.is_unknown() {
        return Verdict::cannot_tell(
            format!("{missing} is not here; whether the GPU was passed in is not known"),
            "`ls -l /dev/nvidia*` in the container",
        );
    }
    let title = match missing {
        CUDA => {
            format!("the container has the GPU and not {CUDA} of its driver: nothing can use CUDA")
        }
        _ => format!("the container has the GPU and not {NVML}: nvidia-smi does not work"),
    };
    let mut finding = Finding::new(title).cause(cause);
    for folder in view.usual_library_folders() {
        finding = finding.saw(
            folder,
            format!("holds no {missing} that 64-bit programs load"),
        );
    }
    finding = finding.saw(
        view.container_mark().unwrap_or("/proc/1/cgroup"),
        "this is a container",
    );
    if let Seen::Got(given) = view.variable(CAPABILITIES) {
        finding = finding.saw(CAPABILITIES, given);
    }
    // CUDA works without NVML, but for what counts GPUs or watches them.
    if missing == NVML {
        finding = finding.severity(Severity::Warning);
    }
    finding
        .why(match missing {
            CUDA => "Every CUDA program loads it first; the engine lends it from the host",
            _ => "nvidia-smi and all that counts or watches GPUs need it; CUDA itself does not",
        })
        .fix(match view.container_is_system() {
            true => FixCall::new("match-driver-in-system-container"),
            false => FixCall::new("lend-nvidia-libraries"),
        })
        .into()
}

/// The host's driver drives it, or Windows does.
fn is_lent(gpu: &Gpu) -> bool {
    gpu.is_held_by("nvidia") || gpu.is_held_by("dxgkrnl")
}

/// Something in here was built for CUDA, or somebody steers it.
fn is_asked_for(stack: Stack, view: &View) -> bool {
    let mut environments = view.environments.iter();
    view.required.contains(&stack)
        || environments.any(|environment| environment.stack == Some(stack))
        || view.variable("CUDA_VISIBLE_DEVICES").got().is_some()
}
