//! NVML does not list a GPU that is on the bus.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, Takes, View};

crate::check! {
    /// A GPU of NVIDIA is on the bus, NVIDIA's driver is loaded, and NVML does not list it.
    ///
    /// ## Why it matters
    /// What NVML does not list no CUDA program finds. Jobs that want all GPUs of a machine fail or run on fewer.
    ///
    /// ## How it comes about
    /// The driver could not bring the GPU up, has lost it since, or was told to leave it alone (`nvidia-smi drain`). Where the
    /// reason is known this finding hangs under it, and where the driver reported an error of its hardware that is told instead.
    /// In a container a filter of devices may leave it out on purpose.
    ///
    /// ## How to confirm
    /// `nvidia-smi -L` beside `lspci -d 10de:`.
    "nvidia-gpu-count-mismatch", Driver, Error, each Gpu, run
}

const WOULD_TELL: &str = "`nvidia-smi -L` and `lspci -d 10de:`";

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() || !gpu.is_on_bus() || gpu.passed_in == Some(false) {
        return Verdict::NotHere;
    }
    let source = gpu.driver_source.as_str();
    match &gpu.driver {
        Seen::Got(driver) if driver == "nvidia" => {}
        // That the driver holds none at all another check says.
        Seen::Absent if !view.is_reserved(gpu) && holds_another(view) => {}
        Seen::Got(_) | Seen::Absent => return Verdict::NotHere,
        other => return Verdict::cannot_tell(format!("{source}: {}", other.why()), gpu.lspci()),
    }
    if view.nvml_device(gpu).is_some() {
        return Verdict::fine("NVML lists it");
    }
    let nvml = match &view.facts.nvml {
        Seen::Got(nvml) => nvml,
        other => {
            return Verdict::cannot_tell(
                format!("NVML: {}", other.as_ref().map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    if !is_taken(gpu, view, tables) {
        return Verdict::NotHere;
    }
    if is_excluded(gpu, view) {
        return Verdict::fine("the driver was told to leave it alone");
    }
    // What broke is told with that line, and that NVML lost the GPU over it.
    if view.hardware_xid(gpu).is_some() || view.xid_of_ecc(gpu).is_some() {
        return Verdict::NotHere;
    }
    let listed = nvml.devices.len();
    let count = match &nvml.count.0 {
        Seen::Got(count) => *count as usize,
        // A recording by hand may have the list alone.
        Seen::Unasked(_) => listed,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "nvmlDeviceGetCount_v2: {}",
                    other.as_ref().map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    };
    let unnamed = count.saturating_sub(listed);
    if unnamed > 0 && nvml.unreachable.is_empty() {
        return Verdict::cannot_tell(
            format!("NVML counts {unnamed} more than it gives an address for"),
            WOULD_TELL,
        );
    }
    let mut finding = Finding::new("this GPU is on the bus, and NVML does not list it")
        .saw_answer(source, &gpu.driver)
        .saw(
            "nvmlDeviceGetCount_v2()",
            format!("NVML lists {}", crate::view::visible::gpus(listed)),
        )
        .why("No CUDA program finds a GPU that NVML does not list");
    for (index, error) in &nvml.unreachable {
        finding = finding.saw(
            "nvmlDeviceGetHandleByIndex_v2()",
            format!("GPU {index}: {error}"),
        );
    }
    if let Some(evidence) = view.unread_uuid(gpu) {
        finding = finding.saw(evidence.source, evidence.says);
    }
    if view.in_container() {
        return finding
            .severity(Severity::Note)
            .likely()
            .why("Whoever started this container may have left it out on purpose")
            .into();
    }
    if let Some(variable) = view.scheduler_job() {
        return finding
            .severity(Severity::Note)
            .likely()
            .saw(variable, "is set: a job of a scheduler")
            .why("A scheduler lets a job reach its own GPUs alone, and NVML lists no others")
            .into();
    }
    finding
        .fix(FixCall::new("read-kernel-log").with("word", "NVRM"))
        .fix(FixCall::new("power-cycle-and-reseat"))
        .into()
}

fn holds_another(view: &View) -> bool {
    view.gpus_of(Stack::Cuda)
        .any(|other| other.is_held_by("nvidia"))
}

/// The loaded driver is not known to leave such a GPU alone, which other checks say.
fn is_taken(gpu: &Gpu, view: &View, tables: &Tables) -> bool {
    let takes = view
        .nvidia_driver_version()
        .map_or(Takes::Unknown, |(version, _)| {
            view.nvidia_driver_takes(gpu, version, tables)
        });
    !matches!(takes, Takes::No(_)) && view.nvidia_misfit(gpu, tables).is_none()
}

fn is_excluded(gpu: &Gpu, view: &View) -> bool {
    let Some(proc) = view.facts.nvidia_proc.got() else {
        return false;
    };
    let information = proc
        .gpus
        .entry(&gpu.key)
        .into_got()
        .and_then(|gpu| gpu.information.got());
    information
        .and_then(|fields| fields.get("GPU Excluded"))
        .is_some_and(|value| value == "Yes")
}
