//! amdgpu could not bring a GPU up.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::{Event, Kind};
use crate::view::{AmdgpuGround, Gpu, Loaded, View};
use std::collections::BTreeMap;
use std::mem::discriminant;

crate::check! {
    /// amdgpu tried to bring a GPU up and gave up.
    ///
    /// ## Why it matters
    /// The GPU has no driver then: no render node, no entry in KFD, no display beyond what the firmware of the machine left
    /// there. ROCm, Vulkan and OpenCL do not see it.
    ///
    /// ## How it comes about
    /// A firmware file is missing, the GPU's security processor does not take its firmware, the VBIOS cannot be read (a GPU
    /// that was passed to a virtual machine, a broken card), the firmware of the machine left no room for the GPU's memory
    /// (Above 4G Decoding is off), or the hardware is broken. The lines beside the failure tell which.
    ///
    /// ## How to confirm
    /// `sudo journalctl -k -b -g amdgpu`, and there what stands right before `Fatal error during GPU init`.
    "amdgpu-init-failed", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    match view.amdgpu_ground(gpu) {
        AmdgpuGround::Holds => return Verdict::fine("amdgpu brought it up and holds it"),
        AmdgpuGround::Free => {}
        AmdgpuGround::NotHere | AmdgpuGround::Other(_) => return Verdict::NotHere,
        AmdgpuGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    }
    let failures: Vec<&Event> = view.amdgpu_failures(gpu).collect();
    if !failures.is_empty() {
        return found(gpu, &failures, view);
    }
    if matches!(view.loaded("amdgpu"), Loaded::No(_)) {
        return Verdict::NotHere;
    }
    match view.log_tells() {
        Seen::Got(()) => Verdict::fine("no line of the kernel log says that amdgpu failed on it"),
        other => Verdict::cannot_tell(
            format!(
                "no driver holds the GPU, and whether amdgpu tried stands in the kernel log alone: {}",
                other.why()
            ),
            "`sudo journalctl -k -b -g amdgpu`",
        ),
    }
}

/// What a line beside a failure says of its reason.
struct Reason {
    cause: &'static str,
    words: &'static str,
    why: &'static str,
    line: String,
    fix: &'static str,
}

/// The reason that explains most: what is missing before what does not work.
fn reason(gpu: &Gpu, view: &View) -> Option<Reason> {
    let line = |wanted: fn(&Kind) -> bool| {
        view.log_near(gpu)
            .find(|event| wanted(&event.kind))
            .map(Event::says)
    };
    let firmware = view.missing_firmware(gpu).find(|missing| !missing.optional);
    if let Some(missing) = firmware {
        return Some(Reason {
            cause: "firmware",
            words: "a firmware file is missing",
            why: "Without this file the driver cannot start the GPU",
            line: missing.says.says(),
            fix: "install-amdgpu-firmware",
        });
    }
    if let Some(line) = line(|kind| matches!(kind, Kind::RomMissing)) {
        return Some(Reason {
            cause: "bios-rom",
            words: "its VBIOS could not be read",
            why: "The driver learns from the VBIOS what is on the card",
            line,
            fix: "provide-vbios",
        });
    }
    if let Some(line) = line(|kind| matches!(kind, Kind::RasUncorrectable { .. })) {
        return Some(Reason {
            cause: "hardware",
            words: "the hardware reports errors that cannot be corrected",
            why: "Memory or logic of the GPU is failing",
            line,
            fix: "power-cycle-and-reseat",
        });
    }
    let of_psp = |kind: &Kind| match kind {
        Kind::PspFailed => true,
        Kind::IpBlockFailed { block, .. } => block == "psp",
        _ => false,
    };
    if let Some(line) = line(of_psp) {
        return Some(Reason {
            cause: "psp",
            words: "its security processor did not take the firmware",
            why: "Nothing else on the GPU starts before its security processor",
            line,
            fix: "power-cycle-and-update",
        });
    }
    no_room(gpu, view).map(|event| Reason {
        cause: "bar-space",
        words: "there is no address space for its memory",
        why: "The firmware of the machine leaves too little room below 4 GiB for a GPU of this size",
        line: event.says(),
        fix: "enable-above-4g-decoding",
    })
}

/// The last word on a BAR for memory is that there is no room for it. The kernel tries more than once, and the option ROM,
/// ports and the windows of bridges have higher numbers or ranges of another kind.
fn no_room<'v>(gpu: &'v Gpu, view: &'v View) -> Option<&'v Event<'v>> {
    let mut refused: BTreeMap<u32, &Event> = BTreeMap::new();
    for event in view.log_of(gpu) {
        match event.kind {
            Kind::BarUnassigned {
                bar: bar @ 0..=5,
                of_virtual_function: false,
                of_memory: true,
            } => {
                refused.insert(bar, event);
            }
            Kind::BarAssigned { bar } => {
                refused.remove(&bar);
            }
            _ => {}
        }
    }
    refused.into_values().next()
}

fn found(gpu: &Gpu, failures: &[&Event], view: &View) -> Verdict {
    let reason = reason(gpu, view);
    let mut finding = match &reason {
        Some(reason) => Finding::new(format!(
            "amdgpu could not bring this GPU up: {}",
            reason.words
        ))
        .cause(reason.cause)
        .saw(view.log_source(), reason.line.as_str())
        .why(reason.why),
        None => Finding::new("amdgpu could not bring this GPU up").why(
            "Without its driver nothing can use the GPU; the lines before the failure say what went wrong",
        ),
    };
    let mut told = Vec::new();
    for failure in failures {
        let kind = discriminant(&failure.kind);
        let again = reason
            .as_ref()
            .is_some_and(|reason| reason.line == failure.says());
        if !told.contains(&kind) && !again {
            told.push(kind);
            finding = finding.saw(view.log_source(), failure.says());
        }
    }
    let call = match reason {
        // Inside a virtual machine nobody reaches the card.
        Some(reason) if reason.fix.starts_with("power-cycle") && view.hypervisor().is_some() => {
            FixCall::new("redeploy-instance")
        }
        Some(reason) => FixCall::new(reason.fix),
        None => FixCall::new("read-kernel-log").with("word", "amdgpu"),
    };
    finding
        .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
        .fix(view.driver_fix(call))
        .into()
}
