//! Memory or logic of a GPU had errors that could not be corrected.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::{Event, Kind};
use crate::view::{Gpu, Loaded, NvmlGround, Vendor, View};

crate::check! {
    /// The GPU counted errors in its memory or its logic that could not be corrected.
    ///
    /// ## Why it matters
    /// What was computed or stored there is wrong, and the program that used it is ended as a rule. Such errors tend to come
    /// again.
    ///
    /// ## How it comes about
    /// A memory cell or a part of the chip is failing; heat and an unsteady supply of power make it more likely. Corrected
    /// errors alone are normal and are not judged. Errors of the time before the driver was loaded are history: a warning.
    /// Cards that do not count errors, as most that are sold for games, are not judged.
    ///
    /// ## How to confirm
    /// `nvidia-smi -q -d ECC`; for AMD `cat /sys/bus/pci/devices/ADDRESS/ras/*_err_count`, where `ue` stands for the
    /// uncorrected ones.
    "ecc-uncorrected-errors", Health, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    match gpu.vendor {
        Vendor::Nvidia => of_nvidia(gpu, view),
        Vendor::Amd => of_amd(gpu, view),
        Vendor::Intel | Vendor::Other => Verdict::NotHere,
    }
}

const COUNTS: &str = "nvmlDeviceGetTotalEccErrors()";
const ASK_NVIDIA: &str = "`nvidia-smi -q -d ECC`";
/// How to go on with a GPU of either maker.
const ON_NVIDIA: &str = "drain-and-reset-gpu";
const ON_AMD: &str = "drain-amd-gpu";

fn of_nvidia(gpu: &Gpu, view: &View) -> Verdict {
    // What else holds it may have reset it, and no program of this system computes on it.
    let is_others = gpu.driver.got().is_some_and(|driver| driver != "nvidia");
    if gpu.passed_in == Some(false) || is_others {
        return Verdict::NotHere;
    }
    let logged = view.xid_of_ecc(gpu);
    let device = match (view.nvml_ground(gpu), logged) {
        (NvmlGround::Says(device), _) => device,
        (_, Some(event)) => return now(view, Some(event), ON_NVIDIA).into(),
        (NvmlGround::NotHere, None) => return Verdict::NotHere,
        (NvmlGround::Unknown(why), None) => return Verdict::cannot_tell(why, ASK_NVIDIA),
    };
    match (&device.ecc_uncorrected.0, logged) {
        (Seen::Got(count), _) if *count > 0 => now(view, logged, ON_NVIDIA)
            .saw(
                COUNTS,
                format!("{count} uncorrected since the driver was loaded"),
            )
            .into(),
        // A reset sets the count back; what was before it is history.
        (Seen::Got(_), _) => match &device.ecc_uncorrected_lifetime.0 {
            Seen::Got(count) if *count > 0 => {
                let mut finding = Finding::new(
                    "the GPU had memory errors that could not be corrected in its life, none since the driver was loaded",
                )
                .severity(Severity::Warning)
                .works_all_the_same()
                .saw(COUNTS, format!("{count} uncorrected in the life of the card, 0 now"));
                if let Some(event) = logged {
                    finding = finding.saw(view.log_source(), event.says());
                }
                finding
                    .why("A card that had such errors is more likely to have them again: watch whether the number grows")
                    .fix(FixCall::new("watch-ecc-errors"))
                    .into()
            }
            _ => Verdict::fine("no uncorrected error since the driver was loaded"),
        },
        (_, Some(event)) => now(view, Some(event), ON_NVIDIA).into(),
        (told, None) if told.says("NOT_SUPPORTED") => Verdict::NotHere,
        (told, None) => Verdict::cannot_tell(format!("{COUNTS}: {}", told.why()), ASK_NVIDIA),
    }
}

fn now(view: &View, logged: Option<&Event>, fix: &'static str) -> Finding {
    let finding = Finding::new("the GPU has errors that it could not correct")
        .why("What was computed or stored there is wrong, and such errors tend to come again")
        .fix(FixCall::new(fix));
    match logged {
        Some(event) => finding.saw(view.log_source(), event.says()),
        None => finding,
    }
}

fn of_amd(gpu: &Gpu, view: &View) -> Verdict {
    // amdgpu counts, and the driver of WSL is Windows'.
    if view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let logged = view
        .log_of(gpu)
        .find(|event| matches!(event.kind, Kind::RasUncorrectable { .. }));
    let folder = format!(
        "/sys/bus/pci/devices/{}/ras",
        gpu.pci.as_deref().unwrap_or(&gpu.key)
    );
    let counted = view
        .amdgpu_device(gpu)
        .and_then(|device| device.ras.as_ref());
    if let Seen::Got(counted) = counted {
        let bad = counted
            .iter()
            .filter_map(|(file, text)| Some((file, uncorrected(text)?)))
            .find(|(_, count)| *count > 0);
        if let Some((file, count)) = bad {
            return now(view, logged, ON_AMD)
                .saw(format!("{folder}/{file}"), format!("ue: {count}"))
                .into();
        }
    }
    if let Some(event) = logged {
        let finding = now(view, Some(event), ON_AMD);
        // Some drivers count elsewhere, and some have said so in error.
        return match counted {
            Seen::Got(_) => finding.severity(Severity::Warning).likely().into(),
            _ => finding.into(),
        };
    }
    let ask = format!("`cat {folder}/*_err_count`");
    match counted {
        Seen::Got(counted) if counted.is_empty() => {
            Verdict::cannot_tell(format!("{folder}: no count could be read"), ask)
        }
        Seen::Got(_) => Verdict::fine("no uncorrected error since the driver was loaded"),
        // Its driver may have given it up for that.
        Seen::Absent
            if gpu.driver.is_absent()
                && matches!(view.loaded("amdgpu"), Loaded::Yes(_))
                && view.log_tells().is_unknown() =>
        {
            Verdict::cannot_tell(
                format!(
                    "no driver holds it, and errors stand in the kernel log alone: {}",
                    view.log_tells().why()
                ),
                "`sudo dmesg | grep -i uncorrectable`",
            )
        }
        Seen::Absent => Verdict::NotHere,
        other => Verdict::cannot_tell(format!("{folder}: {}", other.map(|_| ()).why()), ask),
    }
}

/// `ue: 3` of `ue: 3`, `ce: 0`.
fn uncorrected(text: &str) -> Option<u64> {
    let lines = text.lines();
    lines
        .filter_map(|line| line.trim().strip_prefix("ue:"))
        .find_map(|count| count.trim().parse().ok())
}
