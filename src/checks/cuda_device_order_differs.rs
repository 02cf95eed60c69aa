//! Unlike GPUs, which CUDA numbers otherwise than `nvidia-smi`.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, View};

crate::check! {
    /// CUDA and `nvidia-smi` may number these GPUs differently.
    ///
    /// ## Why it matters
    /// CUDA puts the GPU that it takes for the fastest first, NVML and `nvidia-smi` go by the address on the bus. With unlike
    /// GPUs, index 0 of a program and index 0 of `nvidia-smi` may be two cards: a job lands on the small one, and the wrong one
    /// is watched.
    ///
    /// ## How it comes about
    /// `CUDA_DEVICE_ORDER` is not set, and its default is `FASTEST_FIRST`.
    ///
    /// ## How to confirm
    /// `nvidia-smi -L` beside `python3 -c "import torch; print(torch.cuda.get_device_name(0))"`
    "cuda-device-order-differs", Runtime, Note, each Stack, run
}

const VARIABLE: &str = "CUDA_DEVICE_ORDER";

fn run(stack: Stack, view: &View, _tables: &Tables) -> Verdict {
    let held = |gpu: &&Gpu| gpu.is_held_by("nvidia") && gpu.passed_in != Some(false);
    let gpus: Vec<&Gpu> = view.gpus_of(stack).filter(held).collect();
    let Some((first, others)) = gpus.split_first() else {
        return Verdict::NotHere;
    };
    if others.is_empty() {
        return Verdict::NotHere;
    }
    let Some(unlike) = others.iter().find(|gpu| gpu.id != first.id) else {
        return Verdict::fine("the GPUs are alike, and CUDA numbers them by their addresses");
    };
    match view.variable(VARIABLE) {
        Seen::Got("PCI_BUS_ID") => Verdict::fine("CUDA_DEVICE_ORDER is PCI_BUS_ID"),
        Seen::Got(value) => found(first, unlike).saw(VARIABLE, value).into(),
        Seen::Absent => found(first, unlike).saw(VARIABLE, "is not set").into(),
        other => Verdict::cannot_tell(
            format!("{VARIABLE}: {}", other.map(|_| ()).why()),
            "`echo $CUDA_DEVICE_ORDER`",
        ),
    }
}

fn found(one: &Gpu, other: &Gpu) -> Finding {
    let mut finding = Finding::new("CUDA may number these GPUs otherwise than nvidia-smi")
        .why("CUDA's first GPU is the one that it takes for the fastest, that of nvidia-smi the one with the lowest address")
        .fix(FixCall::new("set-cuda-device-order"));
    for gpu in [one, other] {
        if let Some(address) = &gpu.pci {
            let name = gpu.name.as_deref().unwrap_or("a GPU of NVIDIA");
            finding = finding.saw(format!("/sys/bus/pci/devices/{address}/device"), name);
        }
    }
    finding
}
