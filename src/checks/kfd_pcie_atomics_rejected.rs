//! AMD's compute driver leaves a GPU out because its slot has no PCIe atomics.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::{Event, Kind};
use crate::view::rocm::KFD_NODES;
use crate::view::{Gpu, View};

crate::check! {
    /// AMD's compute driver left a GPU out because PCIe atomics do not reach it.
    ///
    /// ## Why it matters
    /// Queues of ROCm need atomic operations over PCIe. Where the way from the processor to the GPU does not carry them, KFD
    /// does not take the GPU: the display works, Vulkan works, and ROCm sees no GPU.
    ///
    /// ## How it comes about
    /// The processor or the chipset is too old, the slot hangs on the chipset, the card stands in a riser, an adapter or an
    /// enclosure, or a hypervisor hides the capability. GPUs from RDNA 2 on can do without, given new enough firmware: then
    /// the kernel names both numbers, the firmware's and the one that is enough, and the cure is newer firmware.
    ///
    /// ## How to confirm
    /// `sudo journalctl -k -b -g atomics`. In `PCI rejects atomics 494<509` the firmware is 494 and 509 would do; in `730<0`
    /// none does.
    "kfd-pcie-atomics-rejected", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || !gpu.is_on_bus() || gpu.passed_in == Some(false) {
        return Verdict::NotHere;
    }
    match &gpu.driver {
        Seen::Got(driver) if driver == "amdgpu" => {}
        Seen::Got(_) | Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("{}: {}", gpu.driver_source, other.why()),
                gpu.lspci(),
            );
        }
    }
    if !gpu.kfd_nodes.is_empty() {
        return Verdict::fine("KFD took it");
    }
    // Without KFD nobody asked for atomics.
    if view.facts.kfd.is_absent() {
        return Verdict::NotHere;
    }
    if let Some(event) = refusal(gpu, view) {
        return found(gpu, event, view);
    }
    match view.log_tells() {
        Seen::Got(()) => {
            Verdict::fine("no line of the kernel log says that it was left out for want of atomics")
        }
        other => Verdict::cannot_tell(
            format!(
                "KFD has no node for it that is known, and why stands in the kernel log alone: {}",
                other.why()
            ),
            "`sudo journalctl -k -b -g kfd`",
        ),
    }
}

/// The line names the model of the GPU, not its address.
fn refusal<'v>(gpu: &Gpu, view: &'v View) -> Option<&'v Event<'v>> {
    view.log_events.iter().find(|event| match event.kind {
        Kind::AtomicsMissing { id, .. } => event.current && id.is_some() && id == gpu.id,
        _ => false,
    })
}

fn found(gpu: &Gpu, event: &Event, view: &View) -> Verdict {
    let firmware = match event.kind {
        Kind::AtomicsMissing { firmware, .. } => firmware,
        _ => None,
    };
    let mut finding = match firmware {
        Some((has, needs)) if needs > 0 => Finding::new(format!(
            "KFD left this GPU out: without PCIe atomics it needs compute firmware {needs}, and this is {has}"
        ))
        .cause("firmware")
        .why("ROCm does not see this GPU; with newer firmware it works in this slot")
        .fix(view.driver_fix(FixCall::new("install-amdgpu-firmware")))
        .fix(view.driver_fix(FixCall::new("move-to-slot-with-atomics"))),
        _ => Finding::new("KFD left this GPU out: PCIe atomics do not reach it in this slot")
            .cause("platform")
            .why("ROCm does not see this GPU, and no firmware helps: this model needs atomics from the slot")
            .fix(view.driver_fix(FixCall::new("move-to-slot-with-atomics"))),
    };
    finding = finding.saw(view.log_source(), event.says());
    finding = match view.rocm_agents_whole() {
        Seen::Got(()) => finding.saw(KFD_NODES, "no node for this GPU"),
        _ => finding,
    };
    // Of two GPUs of one model the line may be about the other one; the one that KFD took has a node.
    let twin = view
        .gpus
        .iter()
        .any(|other| other.key != gpu.key && other.id == gpu.id && other.kfd_nodes.is_empty());
    if twin || view.rocm_agents_whole().got().is_none() {
        finding = finding.likely();
    }
    // In a container the fix is the same for both.
    finding.fixes.dedup();
    finding.into()
}
