//! An IOMMU translates what GPUs send each other.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{Gpu, Loaded, Stack, Vendor, View, is_set_aside};

crate::check! {
    /// Several GPUs that read each other's memory over PCIe stand behind an IOMMU that translates addresses.
    ///
    /// ## Why it matters
    /// Transfers between GPUs (P2P) then take the way through the IOMMU, or are dropped there: programs on several GPUs hang, are
    /// slow, or compute with wrong data while every call reports success. NVIDIA does not support P2P over PCIe on a machine of its
    /// own with such an IOMMU; RCCL warns of it on AMD. Many machines work so all the same: it is a warning only where the
    /// IOMMU stopped an access of one of these GPUs, or where `nvidia_peermem` is loaded for transfers past the processor.
    ///
    /// ## How it comes about
    /// Most kernels switch the IOMMU on and let it translate unless the command line says `iommu=pt`. Machines that give devices
    /// to virtual machines need it so and are not judged, nor are virtual machines, GPUs joined by NVSwitches or on SXM boards, and
    /// cards of GeForce and Radeon, most of which have no P2P. That ACS of a switch does the same (`acs`) stands in
    /// registers that only root may read.
    ///
    /// ## How to confirm
    /// `cat /sys/kernel/iommu_groups/*/type` (`DMA`, `DMA-FQ`: it translates; `identity`: it does not), `cat /proc/cmdline`;
    /// whether NCCL's hang goes away with `NCCL_P2P_DISABLE=1`.
    "iommu-breaks-p2p", Runtime, Warning, each Stack, run, later ["acs"]
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    let gpus: Vec<&Gpu> = view
        .gpus_of(stack)
        .filter(|gpu| gpu.is_on_bus() && has_p2p_over_pcie(gpu))
        .collect();
    // One GPU has nobody to speak to; virtual machines and hosts that give devices away need the IOMMU.
    if gpus.len() < 2
        || view.wsl().is_some()
        || view.hypervisor().is_some()
        || passes_through(view)
        || (stack == Stack::Cuda && view.nvswitches().next().is_some())
    {
        return Verdict::NotHere;
    }
    let mut translated = Vec::new();
    for gpu in &gpus {
        match group_type(gpu, view) {
            Seen::Got(kind) if kind.starts_with("DMA") => translated.push((*gpu, kind)),
            Seen::Got(_) | Seen::Absent => {}
            other => {
                return Verdict::cannot_tell(
                    format!("{}: {}", source(gpu), other.map(|_| ()).why()),
                    "`cat /sys/kernel/iommu_groups/*/type`",
                );
            }
        }
    }
    if translated.len() < 2 {
        return Verdict::fine("no IOMMU translates between these GPUs");
    }
    found(stack, &translated, view)
}

/// Cards that are known to reach each other over PCIe: not GeForce and Radeon, and not those that are joined by NVLink on their board.
fn has_p2p_over_pcie(gpu: &Gpu) -> bool {
    let name = gpu.name.as_deref().unwrap_or("GeForce");
    let is_joined = ["SXM", "HBM3", "HGX", "GB200", "GB300", "B200", "B300"]
        .iter()
        .any(|mark| name.contains(mark))
        || (name.contains("H200") && !name.contains("NVL"));
    match gpu.vendor {
        Vendor::Nvidia => !name.contains("GeForce") && !name.contains("TITAN") && !is_joined,
        Vendor::Amd => gpu.data_centre,
        _ => false,
    }
}

/// A device is held for a virtual machine, or kept for one.
fn passes_through(view: &View) -> bool {
    view.gpus.iter().any(|gpu| view.is_reserved(gpu))
        || matches!(view.loaded("vfio_pci"), Loaded::Yes(_))
        || view.facts.pci.items().any(|(_, function)| {
            function
                .driver
                .got()
                .is_some_and(|driver| is_set_aside(driver))
        })
}

fn source(gpu: &Gpu) -> String {
    format!(
        "/sys/bus/pci/devices/{}/iommu_group/type",
        gpu.pci.as_deref().unwrap_or(&gpu.key)
    )
}

fn group_type<'v>(gpu: &Gpu, view: &'v View) -> Seen<&'v str> {
    view.facts
        .pci
        .entry(gpu.pci.as_deref().unwrap_or(&gpu.key))
        .and_then(|function| match function.detail.as_deref() {
            Some(detail) => detail.iommu_type.as_ref().map(String::as_str),
            None => Seen::default(),
        })
}

/// Adds what shows that these GPUs do reach past the processor, or were kept from it. Without such a sign nothing is known to
/// go wrong.
fn with_sign(finding: Finding, stack: Stack, translated: &[(&Gpu, &str)], view: &View) -> Finding {
    let fault = translated
        .iter()
        .flat_map(|(gpu, _)| view.log_of(gpu))
        .find(|event| event.kind == Kind::IommuFault);
    if let Some(event) = fault {
        return finding.saw(view.log_source(), event.says());
    }
    match view.loaded("nvidia_peermem") {
        Loaded::Yes(evidence) if stack == Stack::Cuda => {
            finding.saw(evidence.source, evidence.says)
        }
        _ => finding.severity(Severity::Note),
    }
}

fn found(stack: Stack, translated: &[(&Gpu, &str)], view: &View) -> Verdict {
    let mut finding = Finding::new(format!(
        "an IOMMU translates what {} GPUs send each other",
        translated.len()
    ))
    .cause("iommu-translating")
    // Each of them works by itself.
    .works_all_the_same()
    .likely();
    for (gpu, kind) in translated {
        finding = finding.saw(source(gpu), *kind);
    }
    let mut fix = "iommu-passthrough";
    if let Seen::Got(words) = view.kernel_words() {
        // Asked for already, and these devices are translated all the same.
        if words
            .iter()
            .any(|word| word == "iommu=pt" || word == "iommu.passthrough=1")
        {
            fix = "iommu-off";
        }
        let of_iommu: Vec<String> = words
            .into_iter()
            .filter(|word| word.contains("iommu"))
            .collect();
        let says = match of_iommu.is_empty() {
            true => "no iommu=pt".to_owned(),
            false => of_iommu.join(" "),
        };
        finding = finding.saw("/proc/cmdline", says);
    }
    if let Seen::Got(value) = view.variable("NCCL_P2P_DISABLE") {
        finding = finding.saw("NCCL_P2P_DISABLE", value);
    }
    with_sign(finding, stack, translated, view)
        .why("Transfers between these GPUs over PCIe may hang, be slow, or arrive wrong without an error")
        .fix(FixCall::new(fix))
        .into()
}
