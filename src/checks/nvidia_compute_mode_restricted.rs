//! The compute mode of a GPU keeps programs from it.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, NvmlGround, View};

crate::check! {
    /// The compute mode of a GPU forbids CUDA, or lets one program in that is there already.
    ///
    /// ## Why it matters
    /// CUDA answers 46 (`all CUDA-capable devices are busy or unavailable`), although `nvidia-smi` shows a healthy GPU.
    ///
    /// ## How it comes about
    /// An administrator, or the prologue of a job, set it with `nvidia-smi -c`. With the daemon of MPS the mode for one process
    /// is right: the daemon is that process, and serves the others.
    ///
    /// ## How to confirm
    /// `nvidia-smi -q -d COMPUTE`.
    "nvidia-compute-mode-restricted", Runtime, Warning, each Gpu, run
}

const WOULD_TELL: &str = "`nvidia-smi -q -d COMPUTE`";
const CALL: &str = "nvmlDeviceGetComputeMode()";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let device = match view.nvml_ground(gpu) {
        NvmlGround::Says(device) => device,
        NvmlGround::Unknown(why) => return Verdict::cannot_tell(why, WOULD_TELL),
        NvmlGround::NotHere => return Verdict::NotHere,
    };
    let mode = match &device.compute_mode.0 {
        Seen::Got(mode) => mode.as_str(),
        unknown if unknown.says("NOT_SUPPORTED") => return Verdict::NotHere,
        Seen::Failed(failure) => {
            return Verdict::cannot_tell(format!("compute mode: {failure}"), WOULD_TELL);
        }
        _ => return Verdict::NotHere,
    };
    let fix = || FixCall::new("default-compute-mode").with("name", device.index.to_string());
    if mode == "prohibited" {
        return Finding::new("the compute mode of this GPU forbids CUDA")
            .saw(CALL, mode)
            .why("Every CUDA program is refused with 46")
            .fix(fix())
            .into();
    }
    if !mode.starts_with("exclusive") {
        return Verdict::fine(format!("compute mode: {mode}"));
    }
    let processes = match &device.processes.0 {
        Seen::Got(processes) => processes,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "it takes one program at a time; whether one is there: {}",
                    other.why()
                ),
                "`nvidia-smi`",
            );
        }
    };
    let mut computing = processes.iter().filter(|process| process.kind == "compute");
    let Some(process) = computing.clone().next() else {
        return Verdict::fine("it takes one program at a time, and none is there");
    };
    if computing.any(|process| {
        process
            .name
            .as_deref()
            // The kernel cuts the names of processes after 15 bytes.
            .is_none_or(|name| name.starts_with("nvidia-cuda-mps"))
    }) {
        return Verdict::fine("it takes one program at a time, which may be the daemon of MPS");
    }
    let finding =
        Finding::new("the compute mode of this GPU lets one program in, which is there already")
            .saw(CALL, mode)
            .saw(
                "nvmlDeviceGetComputeRunningProcesses_v3()",
                format!(
                    "{} ({})",
                    process.name.as_deref().unwrap_or("a process"),
                    process.pid
                ),
            )
            .why("Every further CUDA program is refused with 46 until that one ends");
    // One's own program has what it wants, and a scheduler sets the mode for each of its jobs.
    let is_own = process.uid.is_some() && process.uid == view.own_user();
    match is_own || view.scheduler_job().is_some() {
        true => finding.severity(Severity::Note).works_all_the_same(),
        false => finding,
    }
    .fix(fix())
    .into()
}
