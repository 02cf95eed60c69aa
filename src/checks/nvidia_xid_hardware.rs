//! NVIDIA's driver reported an error of the hardware.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::{Event, HardwareXid, Kind};
use crate::view::{Gpu, View};

crate::check! {
    /// Since it was loaded, NVIDIA's driver has reported an error of this GPU (an Xid) that comes from its hardware.
    ///
    /// ## Why it matters
    /// Until it is reset or repaired, programs on such a GPU may fail, hang or compute with wrong data, whatever the program.
    ///
    /// ## How it comes about
    /// A part of the chip, of the board or of a link to it failed. Errors of programs (Xid 13, 31, 43, 45 and others) are none
    /// of the hardware and are not judged here. Nor are those that other checks judge by better evidence: errors of memory,
    /// a GPU that is gone from the bus, a missing power plug. It is an error where NVML does not reach the GPU any more, else
    /// a warning: it may have been reset since. Numbers that come from a driver or a program as well are a note there.
    ///
    /// ## How to confirm
    /// `sudo dmesg | grep Xid`; `gpucheck tables xid NUMBER` says what a number means.
    "nvidia-xid-hardware", Health, Error, each Gpu, run
}

/// The GPU's own processor did not answer the driver, or stopped: firmware, driver or hardware.
const OF_GSP: [u32; 2] = [119, 120];

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if gpu.remembered || gpu.pci.is_none() || gpu.passed_in == Some(false) {
        return Verdict::NotHere;
    }
    // What holds it now may have reset it, and no program of this system computes on it.
    if gpu.driver.got().is_some_and(|driver| driver != "nvidia") {
        return Verdict::NotHere;
    }
    if let Some(xid) = view.hardware_xid(gpu) {
        return found(gpu, &xid, view);
    }
    if view.log_tells().is_unknown() {
        return match &gpu.driver {
            Seen::Got(_) => Verdict::cannot_tell(
                format!(
                    "hardware errors stand in the kernel log alone: {}",
                    view.log_tells().why()
                ),
                "`sudo dmesg | grep Xid`",
            ),
            Seen::Absent => Verdict::NotHere,
            unknown => Verdict::cannot_tell(
                format!("{}: {}", gpu.driver_source, unknown.why()),
                gpu.lspci(),
            ),
        };
    }
    let is_of_gsp = |event: &&Event| match event.kind {
        Kind::Xid { number, .. } => OF_GSP.contains(&number),
        _ => false,
    };
    match view.log_of(gpu).find(is_of_gsp) {
        Some(event) => Verdict::cannot_tell(
            format!(
                "whether the hardware is why the GPU's own processor did not answer: {}",
                event.says()
            ),
            "`gpucheck tables xid 119`, and whether it comes again after a restart",
        ),
        None => Verdict::fine("the kernel log has no hardware error of it"),
    }
}

fn found(gpu: &Gpu, xid: &HardwareXid, view: &View) -> Verdict {
    let HardwareXid {
        number,
        event,
        row,
        of_card,
    } = xid;
    let text = |key: &str| row.text(key).map(|known| known.value);
    let meaning = text("meaning").unwrap_or_else(|| "an error of the hardware".to_owned());
    let mut finding = Finding::new(match of_card {
        true => format!("the driver reported a hardware error, Xid {number}"),
        false => format!("the driver reported Xid {number}, which may be an error of the hardware"),
    })
    .saw(view.log_source(), event.says())
    .why(match of_card {
        true => format!(
            "{meaning}: programs on this GPU may fail or hang until it is reset or repaired"
        ),
        false => format!(
            "{meaning}: a program or the driver may be why, and the hardware where it comes again with others"
        ),
    });
    if text("kind").is_some_and(|kind| kind != "hardware" && kind != "firmware") {
        finding = finding.likely();
    }
    finding = if view.nvml_reaches(gpu) {
        // It may have been reset since.
        match of_card {
            true => finding.severity(Severity::Warning),
            false => finding.severity(Severity::Note).works_all_the_same(),
        }
    } else if let Some(refusal) = view.nvml_refusal(gpu) {
        finding.saw("nvmlDeviceGetMemoryInfo()", refusal)
    } else if let Some(nvml) = view.facts.nvml.got() {
        let listed = format!("{} of its GPUs, not this one", nvml.devices.len());
        finding.saw("nvmlDeviceGetCount_v2()", listed)
    } else {
        finding.severity(Severity::Warning).likely()
    };
    if text("mnemonic").is_some_and(|name| name.starts_with("NVLINK")) {
        finding = finding.fix(FixCall::new("check-nvlink"));
    }
    finding.fix(FixCall::new("reset-after-xid")).into()
}
