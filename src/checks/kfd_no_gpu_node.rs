//! amdgpu drives a GPU, and its compute part did not take it.

use crate::check::Verdict;
use crate::facts::{Failure, Seen};
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::rocm::KFD_NODES;
use crate::view::{Gpu, View};

crate::check! {
    /// amdgpu drives a GPU, and the compute driver of the kernel (KFD) has no node for it.
    ///
    /// ## Why it matters
    /// ROCm sees exactly the GPUs that KFD has nodes for. Display, Vulkan and video work without.
    ///
    /// ## How it comes about
    /// KFD leaves GPUs out that it does not know (too new for the kernel, or so old that it never took them), whose slot has no
    /// PCIe atomics, or whose compute part could not be started. The kernel log says which.
    ///
    /// ## How to confirm
    /// `grep -H . /sys/class/kfd/kfd/topology/nodes/*/gpu_id` lists 0 for processors and a number for each GPU;
    /// `sudo journalctl -k -b -g kfd` has the reason.
    "kfd-no-gpu-node", Driver, Error, each Gpu, run
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
        return Verdict::fine("KFD has a node for it");
    }
    let kfd = match &view.facts.kfd {
        Seen::Got(kfd) => kfd,
        // A kernel without KFD is another finding.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("{KFD_NODES}: {}", other.as_ref().map(|_| ()).why()),
                "`rocminfo`",
            );
        }
    };
    // Nodes of GPUs that were not given to this container may not be read; this GPU may be one of them.
    let is_refused = kfd
        .nodes
        .items
        .values()
        .any(|node| matches!(node.properties, Seen::Failed(Failure::Denied { .. })));
    if is_refused && view.in_container() {
        return Verdict::NotHere;
    }
    match view.rocm_agents_whole() {
        Seen::Got(()) => {}
        _ => {
            return Verdict::cannot_tell(view.why_rocm_agents_are_unknown(), "`rocminfo`");
        }
    }
    let mut finding = Finding::new("the compute driver of the kernel did not take this GPU")
        .saw(KFD_NODES, "no node for this GPU")
        .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
        .why("ROCm does not see the GPU; display and Vulkan work");
    let said = view
        .log_events
        .iter()
        .filter(|event| event.current)
        .find(|event| match &event.kind {
            Kind::NotAddedToKfd { id } | Kind::AtomicsMissing { id, .. } => {
                id.is_some() && *id == gpu.id
            }
            _ => false,
        })
        .or_else(|| {
            view.log_near(gpu)
                .find(|event| matches!(event.kind, Kind::NotSupportedInKfd { .. }))
        });
    if let Some(event) = said {
        finding = finding.saw(view.log_source(), event.says());
    }
    if said.is_some_and(|event| matches!(event.kind, Kind::NotAddedToKfd { .. })) {
        finding = finding.fix(view.driver_fix(FixCall::new("restart-for-kfd")));
    }
    // Nobody misses the graphics of a processor beside a card.
    if view.is_spare(gpu) {
        finding = finding.severity(Severity::Note);
    }
    finding
        .fix(view.driver_fix(FixCall::new("read-kernel-log").with("word", "kfd")))
        .into()
}
