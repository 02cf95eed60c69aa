//! GPUs of several makers in one machine.

use crate::check::Verdict;
use crate::finding::Finding;
use crate::tables::Tables;
use crate::view::{Gpu, Vendor, View};

crate::check! {
    /// This machine has GPUs of more than one maker.
    ///
    /// ## Why it matters
    /// A framework is built for one maker: an environment with PyTorch for CUDA sees NVIDIA's GPUs alone, one for ROCm AMD's
    /// alone, one for XPU Intel's alone. Which environment is for which GPU has to be decided for each.
    ///
    /// ## How it comes about
    /// The processor has a GPU besides the card, or cards of several makers are in the machine. Nothing is wrong with that.
    ///
    /// ## How to confirm
    /// `lspci -nn | grep -Ei 'vga|3d|display'`
    "two-gpu-vendors", Capability, Note, each Machine, run
}

fn run(view: &View, _: &Tables) -> Verdict {
    let first_of = |vendor: Vendor| {
        view.gpus
            .iter()
            .find(|gpu| gpu.vendor == vendor && gpu.is_on_bus() && gpu.passed_in != Some(false))
    };
    let of: Vec<(Vendor, &Gpu)> = [Vendor::Nvidia, Vendor::Amd, Vendor::Intel]
        .into_iter()
        .filter_map(|vendor| Some((vendor, first_of(vendor)?)))
        .collect();
    match of.len() {
        0 | 1 if !view.gpus_whole => {
            return Verdict::cannot_tell(view.why_gpus_are_unknown(), "`lspci -nn`");
        }
        0 => return Verdict::NotHere,
        1 => return Verdict::fine("all GPUs are of one maker"),
        _ => {}
    }
    let words = |vendor: Vendor| match vendor {
        Vendor::Nvidia => "NVIDIA's to one with CUDA",
        Vendor::Amd => "AMD's to one with ROCm",
        _ => "Intel's to one with Level Zero (XPU)",
    };
    let which: Vec<&str> = of.iter().map(|(vendor, _)| words(*vendor)).collect();
    let mut finding = Finding::new("GPUs of several makers: each environment sees those of one")
        .why(format!(
            "An environment for computing is built for one maker: {}",
            which.join(", ")
        ));
    for (_, gpu) in &of {
        let address = gpu.pci.as_deref().unwrap_or(&gpu.key);
        finding = finding.saw(
            format!("/sys/bus/pci/devices/{address}/vendor"),
            gpu.name.as_deref().unwrap_or(gpu.vendor.name()),
        );
    }
    finding.into()
}
