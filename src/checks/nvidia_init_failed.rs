//! NVIDIA's driver holds a GPU and could not bring it up.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::{Event, Kind};
use crate::view::{Gpu, Vendor, View};

crate::check! {
    /// NVIDIA's driver holds the GPU and could not bring it up.
    ///
    /// ## Why it matters
    /// The module is loaded and the GPU is bound, yet `nvidia-smi` does not list it and no program can use it.
    ///
    /// ## How it comes about
    /// The driver brings a GPU up when it is opened first, and writes `RmInitAdapter failed!` with three codes where that
    /// goes wrong: the stage, the status, a source line. The firmware of the GPU did not start (cause `gsp`), the VBIOS was
    /// refused (`vbios`), a virtual machine was given a GPU without a clean reset or without room for its memory (`passthrough`),
    /// or something else. Where its reason is known (no firmware file, the wrong flavour of the module, no address space), this
    /// finding hangs under it. The first failure since the module was loaded counts: later ones follow from it.
    ///
    /// ## How to confirm
    /// `sudo dmesg | grep -E 'NVRM|RmInitAdapter'`, read from the top.
    "nvidia-init-failed", Driver, Error, each Gpu, run
}

const WOULD_TELL: &str = "`sudo dmesg | grep NVRM` and `nvidia-smi`";

/// What the driver was doing, by the first of the three codes (open-gpu-kernel-modules
/// src/nvidia/arch/nvalloc/unix/src/osinit.c, rm_init_status).
const STAGES: &[(&str, &str)] = &[
    ("0x10", "reaching its registers"),
    ("0x11", "looking at the system around it"),
    ("0x20", "making room for its state"),
    ("0x21", "making room for its state"),
    ("0x22", "attaching it"),
    ("0x23", "preparing its parts"),
    ("0x24", "setting up its parts"),
    ("0x25", "starting its parts"),
    ("0x26", "setting up its access to memory"),
    ("0x30", "running its VBIOS"),
    ("0x31", "running its VBIOS"),
    ("0x32", "running its VBIOS"),
    ("0x60", "choosing its firmware"),
    ("0x61", "reading its firmware file"),
    ("0x62", "starting its firmware"),
    ("0x63", "starting its firmware"),
];

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() || !gpu.is_on_bus() {
        return Verdict::NotHere;
    }
    match &gpu.driver {
        Seen::Got(driver) if driver == "nvidia" => {}
        Seen::Got(_) | Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("{}: {}", gpu.driver_source, other.why()),
                gpu.lspci(),
            );
        }
    }
    if view.nvml_device(gpu).is_some() {
        return Verdict::fine("NVML reaches it");
    }
    let Some((first, code)) = first_failure(gpu, view) else {
        return match view.log_tells() {
            Seen::Got(()) => {
                Verdict::fine("the kernel log has no failure since the driver was loaded")
            }
            unknown => Verdict::cannot_tell(
                format!(
                    "NVML does not reach it ({}), and the kernel log does not say why: {}",
                    nvml_words(view),
                    unknown.why()
                ),
                WOULD_TELL,
            ),
        };
    };
    let unread = unread_uuid(gpu, view);
    let finding = found(gpu, first, code, view);
    let finding = match &view.facts.nvml {
        Seen::Got(_) => finding.saw(
            "nvmlDeviceGetHandleByPciBusId_v2()",
            "NVML does not list this GPU",
        ),
        // It may have been brought up since.
        _ if unread.is_none() => {
            return Verdict::cannot_tell(
                format!(
                    "the kernel log has `{}`; whether that was the last word NVML would tell: {}",
                    first.says(),
                    nvml_words(view)
                ),
                WOULD_TELL,
            );
        }
        _ => finding.likely(),
    };
    match unread {
        Some((path, uuid)) => finding.saw(path, format!("GPU UUID: {uuid}")),
        None => finding,
    }
    .into()
}

fn nvml_words(view: &View) -> String {
    match &view.facts.nvml {
        Seen::Got(_) => "it does not list this GPU".to_owned(),
        other => other.as_ref().map(|_| ()).why(),
    }
}

/// The first failure of a GPU since the module was loaded, with its codes. Old drivers do not name the GPU.
fn first_failure<'v>(gpu: &'v Gpu, view: &'v View) -> Option<(&'v Event<'v>, &'v str)> {
    let alone = view
        .gpus
        .iter()
        .filter(|other| other.vendor == Vendor::Nvidia)
        .count()
        == 1;
    let of_gpu = |event: &&Event| {
        event.current
            && (gpu.pci.as_ref().is_some_and(|address| event.names(address))
                || (alone && event.addresses.is_empty()))
    };
    view.log_events
        .iter()
        .filter(of_gpu)
        .find_map(|event| match &event.kind {
            Kind::InitFailed { code } => Some((event, code.as_str())),
            _ => None,
        })
}

/// What the firmware of a GPU did between the last failure before this one and it; such lines name no GPU.
fn firmware_before<'v>(first: &Event, view: &'v View) -> Option<&'v Event<'v>> {
    let mut firmware = None;
    for event in &view.log_events {
        if std::ptr::eq(event.line, first.line) {
            break;
        }
        match event.kind {
            Kind::GspFailed if event.current => firmware = firmware.or(Some(event)),
            Kind::InitFailed { .. } => firmware = None,
            _ => {}
        }
    }
    firmware
}

/// A UUID of question marks: the driver never reached the GPU. A GPU that nobody opened has it too.
fn unread_uuid<'v>(gpu: &Gpu, view: &'v View) -> Option<(String, &'v str)> {
    let address = gpu.pci.as_deref()?;
    let proc = view.facts.nvidia_proc.got()?;
    let information = proc.gpus.entry(address).into_got()?.information.got()?;
    let uuid = information.get("GPU UUID")?;
    uuid.contains("????").then(|| {
        let path = format!("/proc/driver/nvidia/gpus/{address}/information");
        (path, uuid.as_str())
    })
}

fn found(gpu: &Gpu, first: &Event, code: &str, view: &View) -> Finding {
    let stage = code.split(':').next().unwrap_or_default();
    let doing = STAGES.iter().find(|(known, _)| *known == stage);
    let title = match doing {
        Some((_, doing)) => {
            format!("the driver holds this GPU and could not bring it up: it failed {doing}")
        }
        None => "the driver holds this GPU and could not bring it up".to_owned(),
    };
    let firmware = firmware_before(first, view);
    let hypervisor = view.hypervisor();
    let refused = code.starts_with("0x62:0x25:");
    let cause = if hypervisor.is_some() {
        "passthrough"
    } else if matches!(stage, "0x30" | "0x31" | "0x32") || refused {
        "vbios"
    } else if matches!(stage, "0x62" | "0x63") || firmware.is_some() {
        "gsp"
    } else {
        "other"
    };
    let mut finding = Finding::new(title)
        .cause(cause)
        .saw(gpu.driver_source.as_str(), "bound to nvidia")
        .why("A GPU that the driver could not bring up is not there for any program");
    if let Some(event) = firmware {
        finding = finding.saw(view.log_source(), event.says());
    }
    finding = finding.saw(view.log_source(), first.says());
    match cause {
        "passthrough" => {
            let machine = hypervisor.unwrap_or_default();
            let by_name = view
                .facts
                .dmi
                .got()
                .is_some_and(|dmi| dmi.vendor.got().is_some());
            let source = if by_name {
                "/sys/class/dmi/id/sys_vendor"
            } else {
                "/proc/cpuinfo"
            };
            finding
                .saw(source, format!("this is a virtual machine: {machine}"))
                .fix(FixCall::new("passthrough-host-setup"))
        }
        "vbios" => finding
            .fix(FixCall::new("power-cycle-and-reseat"))
            .fix(FixCall::new("update-vbios")),
        "gsp" => finding
            .fix(FixCall::new("power-cycle-and-reseat"))
            .fix(view.driver_fix(FixCall::new("nvidia-other-release"))),
        _ => finding
            .fix(FixCall::new("power-cycle-and-reseat"))
            .fix(FixCall::new("firmware-setup-pci"))
            .fix(view.driver_fix(FixCall::new("nvidia-other-release"))),
    }
}
