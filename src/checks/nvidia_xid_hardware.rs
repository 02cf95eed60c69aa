//! NVIDIA's driver reported an error of the hardware.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::{Row, Tables, kinds};
use crate::view::log::{Event, Kind, XIDS_OF_ECC};
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

/// Judged by checks of their own: power plugs, what becomes of bad memory, a GPU that is gone.
const OF_OTHERS: [u32; 4] = [54, 63, 64, 79];
/// The GPU's own processor did not answer the driver, or stopped: firmware, driver or hardware.
const OF_GSP: [u32; 2] = [119, 120];

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    if gpu.remembered || gpu.pci.is_none() || gpu.passed_in == Some(false) {
        return Verdict::NotHere;
    }
    // What holds it now may have reset it, and no program of this system computes on it.
    if gpu.driver.got().is_some_and(|driver| driver != "nvidia") {
        return Verdict::NotHere;
    }
    let mut worst: Option<((bool, u8), &Event, u32, Row)> = None;
    let mut of_driver_or_firmware = None;
    for event in view.log_of(gpu) {
        let Kind::Xid { number, .. } = event.kind else {
            continue;
        };
        if OF_OTHERS.contains(&number) || XIDS_OF_ECC.contains(&number) {
            continue;
        }
        let Some((rank, row)) = of_hardware(number, tables) else {
            if OF_GSP.contains(&number) {
                of_driver_or_firmware = Some(event);
            }
            continue;
        };
        // The first one of the worst: the rest mostly follow from it.
        if worst.as_ref().is_none_or(|(worst, ..)| rank > *worst) {
            worst = Some((rank, event, number, row));
        }
    }
    match worst {
        Some((_, event, number, row)) => found(gpu, event, number, &row, view),
        None if view.log_tells().is_unknown() => match &gpu.driver {
            Seen::Got(_) => Verdict::cannot_tell(
                format!(
                    "hardware errors stand in the kernel log alone: {}",
                    view.log_tells().why()
                ),
                "`sudo dmesg | grep Xid`",
            ),
            Seen::Absent => Verdict::NotHere,
            unknown => Verdict::cannot_tell(unknown.why(), gpu.lspci()),
        },
        None => match of_driver_or_firmware {
            Some(event) => Verdict::cannot_tell(
                format!(
                    "whether the hardware is why the GPU's own processor did not answer: {}",
                    event.says()
                ),
                "`gpucheck tables xid 119`, and whether it comes again after a restart",
            ),
            None => Verdict::fine("the kernel log has no hardware error of it"),
        },
    }
}

/// The row of a number that comes from the hardware, or most likely does, and is an error; with how sure and how bad it is.
fn of_hardware(number: u32, tables: &Tables) -> Option<((bool, u8), Row)> {
    let row = tables.row(&kinds::XID, &number.to_string())?;
    let kind = row.text("kind")?;
    if !(kind.may_accuse() && (kind.value.starts_with("hardware") || kind.value == "firmware")) {
        return None;
    }
    let is_of_card = !may_be_of_software(&kind.value);
    match row.text("severity")?.value.as_str() {
        "critical" => Some(((is_of_card, 2), row)),
        "error" => Some(((is_of_card, 1), row)),
        _ => None,
    }
}

/// Firmware is part of the card; a driver or a program is not.
fn may_be_of_software(kind: &str) -> bool {
    kind.contains("driver") || kind.contains("app")
}

fn found(gpu: &Gpu, event: &Event, number: u32, row: &Row, view: &View) -> Verdict {
    let text = |key: &str| row.text(key).map(|known| known.value);
    let meaning = text("meaning").unwrap_or_else(|| "an error of the hardware".to_owned());
    let kind = text("kind").unwrap_or_default();
    let of_software = may_be_of_software(&kind);
    let mut finding = Finding::new(match of_software {
        false => format!("the driver reported a hardware error, Xid {number}"),
        true => format!("the driver reported Xid {number}, which may be an error of the hardware"),
    })
    .saw(view.log_source(), event.says())
    .why(match of_software {
        false => format!(
            "{meaning}: programs on this GPU may fail or hang until it is reset or repaired"
        ),
        true => format!(
            "{meaning}: a program or the driver may be why, and the hardware where it comes again with others"
        ),
    });
    if kind != "hardware" && kind != "firmware" {
        finding = finding.likely();
    }
    finding = if view.nvml_reaches(gpu) {
        // It may have been reset since.
        match of_software {
            false => finding.severity(Severity::Warning),
            true => finding.severity(Severity::Note).works_all_the_same(),
        }
    } else if let Some(refusal) = view.nvml_refusal(gpu) {
        finding.saw("nvmlDeviceGetMemoryInfo()", refusal)
    } else if let Some(nvml) = view.facts.nvml.got() {
        let listed = format!("{} of its GPUs, not this one", nvml.devices.len());
        finding.saw("nvmlDeviceGetCount_v2()", listed)
    } else {
        finding.severity(Severity::Warning).likely()
    };
    finding.fix(FixCall::new("drain-and-reset-gpu")).into()
}
