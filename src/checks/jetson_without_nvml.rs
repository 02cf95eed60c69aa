//! A board with a Tegra chip has no NVML.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Loaded, View};

crate::check! {
    /// This is one of NVIDIA's boards with a Tegra chip (Jetson), and its software has no NVML.
    ///
    /// ## Why it matters
    /// CUDA works on such a board without NVML. Programs that ask NVML or `nvidia-smi` find no GPU, gpucheck among them: it
    /// then knows little of this GPU. Drivers for graphics cards do not belong on such a board.
    ///
    /// ## How it comes about
    /// NVML came with JetPack 6; older ones have none. The GPU is part of the chip, driven by `nvgpu`, and on no bus.
    ///
    /// ## How to confirm
    /// `cat /etc/nv_tegra_release` names the release; `tegrastats` shows the GPU.
    "jetson-without-nvml", Driver, Note, each Machine, run
}

const LIBRARY: &str = "libnvidia-ml.so.1";

fn run(view: &View, _: &Tables) -> Verdict {
    if !view.is_tegra() || view.wsl().is_some() {
        return Verdict::NotHere;
    }
    match view.library(LIBRARY) {
        Seen::Got(_) => return Verdict::fine(format!("{LIBRARY} is there")),
        Seen::Absent => {}
        other => {
            return Verdict::cannot_tell(
                format!("{LIBRARY}: {}", other.map(|_| ()).why()),
                "`ldconfig -p | grep libnvidia-ml`",
            );
        }
    }
    // In a container it is the engine that brings it in.
    if view.in_container() {
        return Verdict::NotHere;
    }
    let finding =
        Finding::new("this board with a Tegra chip has no NVML, so little is known of its GPU")
            .why("CUDA works without it; tools that ask NVML or nvidia-smi find no GPU")
            .fix(FixCall::new("newer-jetpack"));
    match view.loaded("nvgpu") {
        Loaded::Yes(evidence) => finding.saw(evidence.source, evidence.says),
        _ => finding.saw_answer("/proc/sys/kernel/osrelease", &view.kernel_release()),
    }
    .saw("/usr/lib", format!("no {LIBRARY}"))
    .into()
}
