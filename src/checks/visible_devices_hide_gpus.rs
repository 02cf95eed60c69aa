//! A `*_VISIBLE_DEVICES` variable hides every GPU from the programs of this shell.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::visible::{Devices, Effect, gpus};
use crate::view::{Stack, View};

crate::check! {
    /// A variable in this environment hides GPUs from the programs started in it.
    ///
    /// ## Why it matters
    /// The runtime shows a program only the devices that the variable names. A program that is shown none says that there is
    /// no GPU, although `nvidia-smi` and `rocm-smi` list all of them: those do not look at the variable.
    ///
    /// ## How it comes about
    /// CUDA and HIP read the list from the left and stop at the first entry that is no device: `0,9,1` shows one GPU, `9,0`
    /// shows none. An empty `CUDA_VISIBLE_DEVICES` hides all, which is not the same as none being set. On AMD,
    /// `ROCR_VISIBLE_DEVICES` comes first and the numbers of `HIP_VISIBLE_DEVICES` count what is left of it. UUIDs copied from
    /// another machine fit nothing here. `GPU_DEVICE_ORDINAL` does the same for OpenCL alone. Job schedulers set these variables on purpose.
    ///
    /// ## How to confirm
    /// `env | grep VISIBLE_DEVICES`, and the program once more under `env -u NAME`.
    "visible-devices-hide-gpus", Runtime, Error, each Stack, run
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    // An affinity mask that fits nothing is refused with a message of its own.
    if stack == Stack::LevelZero {
        return Verdict::NotHere;
    }
    if view.gpus_of(stack).next().is_none() {
        return if view.gpus_whole {
            Verdict::NotHere
        } else {
            Verdict::cannot_tell("which GPUs are here is not known", "`lspci -nn`")
        };
    }
    match stack {
        Stack::Rocm => rocm(view),
        Stack::Cuda | Stack::LevelZero => cuda(view),
    }
}

fn cuda(view: &View) -> Verdict {
    const NAME: &str = "CUDA_VISIBLE_DEVICES";
    let value = match view.variable(NAME) {
        Seen::Got(value) => value,
        Seen::Absent => return Verdict::fine(format!("{NAME} is not set")),
        other => return unknown_environment(NAME, &other.why()),
    };
    match view.cuda_devices().effect(value) {
        Effect::Leaves(left) => leaves(NAME, value, left.len()),
        Effect::Stops(left, entry, hides) => stops(NAME, value, left.len(), &entry, hides, view),
        Effect::Hides(cause, why) => hidden(NAME, value, cause, &why, view),
        Effect::Unclear(why) => {
            Verdict::cannot_tell(format!("{NAME}={value}: {why}"), "`nvidia-smi -L`")
        }
    }
}

/// What HIP finds, and where that is all, what OpenCL finds.
fn rocm(view: &View) -> Verdict {
    match of_hip(view) {
        Verdict::Fine(says) => opencl(view).map_or(Verdict::Fine(says), Verdict::from),
        other => other,
    }
}

/// AMD's page on isolating GPUs says that HIP reads this variable, too. Its runtime does not: HIP takes its own, and only
/// OpenCL this one (ROCm/clr and ROCm/rocm-systems `rocdevice.cpp`, read 2026-12-01).
fn opencl(view: &View) -> Option<Finding> {
    const NAME: &str = "GPU_DEVICE_ORDINAL";
    let value = view.variable(NAME).into_got()?;
    if value.is_empty() {
        return None;
    }
    let devices = view.rocm_devices();
    let left = match view.variable("ROCR_VISIBLE_DEVICES") {
        Seen::Absent => None,
        Seen::Got(value) => Some(devices.effect(value).left()?),
        _ => return None,
    };
    let Effect::Hides(cause, why) = devices.left_to_hip(left.as_deref()).effect(value) else {
        return None;
    };
    // Who writes -1 means none; a scheduler sets it for all.
    if cause == "empty" || view.scheduler_job().is_some() {
        return None;
    }
    Some(
        hides(NAME, value, cause, format!("{NAME}={value} hides every GPU from OpenCL: {why}"))
            .severity(Severity::Note)
            .works_all_the_same()
            .why("Programs that use OpenCL on AMD find no GPU; AMD's documentation says the same of HIP, whose runtime does not read it"),
    )
}

/// HIP numbers what `ROCR_VISIBLE_DEVICES` leaves.
fn of_hip(view: &View) -> Verdict {
    const NAME: &str = "ROCR_VISIBLE_DEVICES";
    let devices = view.rocm_devices();
    match view.variable(NAME) {
        Seen::Got(value) => {
            let (left, verdict) = match devices.effect(value) {
                Effect::Leaves(left) => {
                    let verdict = leaves(NAME, value, left.len());
                    (left, verdict)
                }
                Effect::Stops(left, entry, hides) => {
                    let verdict = stops(NAME, value, left.len(), &entry, hides, view);
                    (left, verdict)
                }
                Effect::Hides(cause, why) => {
                    return hidden(NAME, value, cause, &why, view);
                }
                Effect::Unclear(why) => {
                    return Verdict::cannot_tell(format!("{NAME}={value}: {why}"), "`rocminfo`");
                }
            };
            let devices = devices.left_to_hip(Some(&left));
            // What HIP makes of the rest counts, and only where that is fine what was said of the first list.
            match hip(&devices, Some((value, left.len())), view) {
                None | Some(Verdict::Fine(_)) => verdict,
                Some(other) => other,
            }
        }
        Seen::Absent => hip(&devices.left_to_hip(None), None, view)
            .unwrap_or_else(|| Verdict::fine("no variable hides a GPU")),
        other => unknown_environment(NAME, &other.why()),
    }
}

/// None: no variable of HIP is set.
fn hip(devices: &Devices, rocr: Option<(&str, usize)>, view: &View) -> Option<Verdict> {
    let (name, value) = match view.hip_variable() {
        Ok(read) => read?,
        Err((name, why)) => return Some(unknown_environment(name, &why)),
    };
    Some(match (devices.effect(value), rocr) {
        (Effect::Leaves(left), _) => leaves(name, value, left.len()),
        (Effect::Stops(left, entry, hides), _) => {
            stops(name, value, left.len(), &entry, hides, view)
        }
        (Effect::Hides("invalid-entry", _), Some((rocr, count))) => {
            let why = format!(
                "{name}={value} counts what ROCR_VISIBLE_DEVICES={rocr} leaves, which is {}: none is left",
                gpus(count)
            );
            let finding = hides(name, value, "conflict", why).saw("ROCR_VISIBLE_DEVICES", rocr);
            in_job(finding, view).into()
        }
        (Effect::Hides(cause, why), _) => hidden(name, value, cause, &why, view),
        (Effect::Unclear(why), _) => {
            Verdict::cannot_tell(format!("{name}={value}: {why}"), "`rocminfo`")
        }
    })
}

fn leaves(name: &str, value: &str, count: usize) -> Verdict {
    Verdict::fine(format!("{name}={value} leaves {}", gpus(count)))
}

fn unknown_environment(name: &str, why: &str) -> Verdict {
    Verdict::cannot_tell(
        format!("{name}: {why}"),
        format!("`echo \"${{{name}-not set}}\"` in the shell whose program fails"),
    )
}

fn hidden(name: &str, value: &str, cause: &'static str, why: &str, view: &View) -> Verdict {
    let title = match (value, cause) {
        ("", _) => format!("{name} is set to nothing, which {why}"),
        (_, "empty") => format!("{name}={value} {why}"),
        _ => format!("{name}={value}: {why}"),
    };
    in_job(hides(name, value, cause, title), view).into()
}

fn hides(name: &str, value: &str, cause: &'static str, title: String) -> Finding {
    let fix = if cause == "empty" || cause == "conflict" {
        "unset-variable"
    } else {
        "correct-variable"
    };
    Finding::new(title)
        .cause(cause)
        .saw(name, if value.is_empty() { "set to nothing" } else { value })
        .why("Programs started from this shell find no GPU; nvidia-smi and rocm-smi do not look at the variable")
        .fix(corrected(fix, name))
}

/// Works, with fewer GPUs than the list names.
fn stops(name: &str, value: &str, left: usize, entry: &str, hides: bool, view: &View) -> Verdict {
    let severity = if hides {
        Severity::Warning
    } else {
        Severity::Note
    };
    let why = if hides {
        "What is named behind that entry stays hidden from programs started from this shell"
    } else {
        "Programs started from this shell find fewer GPUs than the list names"
    };
    let finding = Finding::new(format!(
        "{name}={value}: reading stops at `{entry}`, which is no device here; {} shown",
        gpus(left)
    ))
    .cause("invalid-entry")
    .severity(severity)
    .saw(name, value)
    .why(why)
    .fix(corrected("correct-variable", name));
    in_job(finding, view).into()
}

fn corrected(fix: &'static str, name: &str) -> FixCall {
    let tool = match name.starts_with("CUDA") {
        true => "nvidia-smi -L",
        false => "rocminfo",
    };
    FixCall::new(fix).with("name", name).with("tool", tool)
}

fn in_job(mut finding: Finding, view: &View) -> Finding {
    let Some(scheduler) = view.scheduler_job() else {
        return finding;
    };
    // Whoever changes the variable takes GPUs that were given to somebody else.
    finding.fixes = vec![FixCall::new("ask-scheduler")];
    finding.severity(Severity::Note).saw(
        scheduler,
        "set: a scheduler runs this shell and may hide GPUs on purpose",
    )
}
