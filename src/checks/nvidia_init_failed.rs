//! NVIDIA's driver holds a GPU and could not bring it up.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::{Event, Kind};
use crate::view::{Gpu, View};

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
    /// the open module of a branch up to 535 wants an option for GPUs of desktops, or something else. Where its reason is known (no firmware file, the wrong flavour of the module, no address space), this
    /// finding hangs under it. The first failure since the module was loaded counts: later ones follow from it.
    ///
    /// ## How to confirm
    /// `sudo dmesg | grep -E 'NVRM|RmInitAdapter'`, read from the top.
    "nvidia-init-failed", Driver, Error, each Gpu, run
}

const WOULD_TELL: &str = "`sudo dmesg | grep NVRM` and `nvidia-smi`";

/// What the driver was doing, by the first of the three codes (open-gpu-kernel-modules
/// src/nvidia/arch/nvalloc/unix/src/osinit.c, rm_init_status). Left out is what means one thing in one branch and another in the next.
const STAGES: &[(&str, &str)] = &[
    ("0x10", "reaching its registers"),
    ("0x11", "looking at the system around it"),
    ("0x20", "making room for its state"),
    ("0x21", "making room for its state"),
    ("0x22", "attaching it"),
    ("0x23", "preparing its parts"),
    ("0x24", "setting up its parts"),
    ("0x25", "starting its parts"),
    ("0x30", "running its VBIOS"),
    ("0x31", "running its VBIOS"),
    ("0x32", "running its VBIOS"),
    ("0x60", "choosing its firmware"),
    ("0x61", "reading its firmware file"),
    ("0x62", "checking or starting its firmware"),
    ("0x63", "starting its firmware"),
];

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    // One that was not given to this container is nothing to its programs, and NVML does not list it.
    if view.wsl().is_some() || view.is_tegra() || !gpu.is_on_bus() || gpu.passed_in == Some(false) {
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
            // A GPU that works would be listed; what keeps this one from it stands in no line that is known.
            Seen::Got(()) if view.facts.nvml.got().is_some() => Verdict::cannot_tell(
                "NVML does not list this GPU, and the kernel log has no failure since the driver was loaded",
                WOULD_TELL,
            ),
            Seen::Got(()) => {
                Verdict::fine("the kernel log has no failure since the driver was loaded")
            }
            unknown => Verdict::cannot_tell(
                format!(
                    "NVML: {}; the kernel log, which says why: {}",
                    nvml_words(view),
                    unknown.why()
                ),
                WOULD_TELL,
            ),
        };
    };
    let unread = view.unread_uuid(gpu);
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
                    "the kernel log has `{}`; NVML, which tells whether the GPU came up since: {}",
                    first.says(),
                    nvml_words(view)
                ),
                WOULD_TELL,
            );
        }
        _ => finding.likely(),
    };
    match unread {
        Some(evidence) => finding.saw(evidence.source, evidence.says),
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
    view.log_near(gpu).find_map(|event| match &event.kind {
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

/// The open module said right before this failure that it wants an option for such a GPU; such lines name none.
fn option_before<'v>(first: &Event, view: &'v View) -> Option<&'v Event<'v>> {
    let before = view
        .log_events
        .iter()
        .take_while(|event| !std::ptr::eq(event.line, first.line))
        .filter(|event| event.current);
    let relevant = |event: &&Event| {
        matches!(
            event.kind,
            Kind::OpenModuleWantsOption | Kind::InitFailed { .. }
        )
    };
    before
        .filter(relevant)
        .last()
        .filter(|event| event.kind == Kind::OpenModuleWantsOption)
}

fn found(gpu: &Gpu, first: &Event, code: &str, view: &View) -> Finding {
    if let Some(event) = option_before(first, view) {
        return Finding::new("NVIDIA's open kernel module of this branch takes this GPU only with an option")
            .cause("other")
            .saw(gpu.driver_source.as_str(), "bound to nvidia")
            .saw(view.log_source(), event.says())
            .saw(view.log_source(), first.says())
            .why("Up to branch 535 the open module was meant for GPUs of data centres, and left others alone unless told otherwise")
            .fix(view.driver_fix(FixCall::new("open-module-for-all-gpus")));
    }
    let stage = code.split(':').next().unwrap_or_default();
    let doing = STAGES.iter().find(|(known, _)| *known == stage);
    let title = match doing {
        Some((_, doing)) => {
            format!("the driver holds this GPU and could not bring it up: {doing} failed")
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
                .fix(FixCall::new("redeploy-instance"))
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
