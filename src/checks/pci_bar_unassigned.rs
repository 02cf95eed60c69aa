//! The firmware gave a GPU no address space.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::pci::Bar;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{Gpu, Vendor, View};

crate::check! {
    /// A window (BAR) that the driver needs to reach the GPU has no address.
    ///
    /// ## Why it matters
    /// Drivers speak to a GPU through these windows. Without them no driver can bring it up.
    ///
    /// ## How it comes about
    /// The windows of a GPU for computing are as large as its memory. There is no room for them where `Above 4G Decoding` is
    /// off in the firmware of the machine, in a virtual machine whose window for PCI memory is too small, or behind a
    /// Thunderbolt port that the firmware gave too little.
    ///
    /// ## How to confirm
    /// `cat /sys/bus/pci/devices/ADDRESS/resource`; `sudo journalctl -k -b -g 'no space|failed to assign'`.
    "pci-bar-unassigned", Bus, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let Some(address) = gpu
        .pci
        .as_deref()
        .filter(|_| gpu.is_on_bus() && view.wsl().is_none())
    else {
        return Verdict::NotHere;
    };
    let source = format!("/sys/bus/pci/devices/{address}/resource");
    let ask = format!("`cat {source}`");
    let bars = match view.detail_of(gpu).map(|detail| &detail.bars) {
        Some(Seen::Got(bars)) => bars,
        other => {
            let why = other.map_or_else(
                || Seen::<()>::default().why(),
                |bars| bars.as_ref().map(|_| ()).why(),
            );
            return Verdict::cannot_tell(format!("{source}: {why}"), ask);
        }
    };
    let missing = match missing(gpu.vendor, bars) {
        Some(missing) => missing,
        None => return Verdict::fine("its windows have addresses"),
    };
    // A driver that reached it has found its windows.
    let works = view.nvml_reaches(gpu)
        || view
            .amdgpu_device(gpu)
            .got()
            .is_some_and(|device| device.vram_bytes.got().is_some());
    if works {
        return Verdict::fine("its driver reaches it");
    }
    // A driver of NVIDIA that holds it has its windows most likely, and nobody asked.
    if gpu.is_held_by("nvidia") && view.facts.nvml.is_unknown() {
        return Verdict::cannot_tell(
            format!(
                "{source}: {missing}; whether its driver reaches it all the same: NVML: {}",
                view.facts.nvml.why()
            ),
            "`nvidia-smi`",
        );
    }
    let said = view.log_of(gpu).filter(|event| match event.kind {
        Kind::BarUnassigned {
            of_virtual_function,
            of_memory,
            ..
        } => of_memory && !of_virtual_function,
        Kind::BarInvalid { .. } => true,
        _ => false,
    });
    let (cause, fix) = if view.hypervisor().is_some() {
        ("vm-mmio-window", "widen-vm-mmio-window")
    } else if view.external(gpu).got().is_some() {
        ("egpu-window", "egpu-pci-window")
    } else {
        ("above-4g-off", "enable-above-4g-decoding")
    };
    let mut finding =
        Finding::new("the GPU got no address space for a window that its driver needs")
            .cause(cause)
            .saw(source, missing)
            .why("No driver can bring it up without")
            .fix(FixCall::new(fix));
    match said.last() {
        Some(event) => finding = finding.saw(view.log_source(), event.says()),
        None => finding = finding.likely(),
    }
    finding.into()
}

/// What is missing of the windows that every GPU of a maker has. The first holds the registers of NVIDIA's and Intel's and the
/// memory of AMD's GPUs; memory is in the second of NVIDIA's, which takes two places where the first is wide, and in the third
/// of Intel's; the sixth holds the registers of AMD's.
fn missing(vendor: Vendor, bars: &[Bar]) -> Option<String> {
    let wanted: &[&[u8]] = match vendor {
        Vendor::Nvidia => &[&[0], &[1, 2]],
        Vendor::Amd => &[&[0]],
        Vendor::Intel => &[&[0], &[2]],
        Vendor::Other => &[],
    };
    if let Some(bar) = bars.iter().find(|bar| !bar.assigned && bar.bytes > 1 << 12) {
        return Some(format!("BAR{} has no address", bar.index));
    }
    let lacks = |places: &&&[u8]| !bars.iter().any(|bar| places.contains(&bar.index));
    let places = wanted.iter().find(lacks)?;
    Some(format!("there is no BAR{}", places.first()?))
}
