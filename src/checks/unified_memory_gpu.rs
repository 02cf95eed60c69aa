//! A GPU without memory of its own.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, Vendor, View, Wanted};

crate::check! {
    /// The GPU uses the memory of the machine and has none of its own.
    ///
    /// ## Why it matters
    /// The figures of its own memory mean little: what firmware sets aside for it is one part of what it can use. All memory
    /// of the machine counts, less what everything else needs, at the speed of that memory. Figures of a PCIe link mean
    /// nothing.
    ///
    /// ## How it comes about
    /// It is part of the processor (AMD's APUs, Intel's processors), or sits beside it in one package (GB10).
    ///
    /// ## How to confirm
    /// `free -g`; for AMD `cat /sys/bus/pci/devices/ADDRESS/mem_info_gtt_total`: what it may use besides its own part.
    "unified-memory-gpu", Capability, Note, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if !gpu.is_on_bus() || view.wsl().is_some() {
        return Verdict::NotHere;
    }
    match gpu.integrated {
        Some(true) => {}
        Some(false) => return Verdict::NotHere,
        None => {
            return Verdict::cannot_tell(
                "whether it is part of the processor is not known",
                gpu.lspci(),
            );
        }
    }
    // Most of Intel's only draw the desktop, and so does an APU beside a card.
    let only_draws = match gpu.vendor {
        Vendor::Intel => !matches!(view.wanted(Stack::LevelZero), Wanted::Yes(_)),
        _ => view.is_spare(gpu),
    };
    if only_draws {
        return Verdict::NotHere;
    }
    let address = gpu.pci.as_deref().unwrap_or(&gpu.key);
    let name = gpu.name.as_deref().unwrap_or("a GPU of a processor");
    let mut finding = Finding::new("this GPU uses the memory of the machine")
        .saw(format!("/sys/bus/pci/devices/{address}/device"), name)
        .why("How large a model may be depends on the memory of the machine, not on what is called the GPU's own");
    if let Seen::Got(device) = view.amdgpu_device(gpu) {
        for (file, bytes) in [
            ("mem_info_vram_total", &device.vram_bytes),
            ("mem_info_gtt_total", &device.gtt_bytes),
        ] {
            if let Seen::Got(bytes) = bytes {
                finding = finding.saw(
                    format!("/sys/bus/pci/devices/{address}/{file}"),
                    format!("{} MiB", bytes >> 20),
                );
            }
        }
    }
    finding.into()
}
