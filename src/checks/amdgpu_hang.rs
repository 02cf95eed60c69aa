//! An AMD GPU hung since the boot.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::{Event, Kind};
use crate::view::{AmdgpuGround, Gpu, View};

crate::check! {
    /// An AMD GPU hung, or was reset, since the machine was started.
    ///
    /// ## Why it matters
    /// What computed on the GPU at that time is lost: a reset ends queues and often empties the memory, so that running programs
    /// go on with errors or not at all. Where the reset failed the GPU does nothing until the next start.
    ///
    /// ## How it comes about
    /// A fault of driver or firmware, a program that never ends, too little power, memory or clocks set too high. The queue that
    /// the kernel names may be the victim: the display waits while a computation hangs. What the scheduler firmware (MES) was
    /// told last says nothing of the cause.
    ///
    /// ## How to confirm
    /// `sudo journalctl -k -b -g 'ring|reset|MES'`; `/sys/class/drm/card*/device/devcoredump/data`, where it exists, is for a
    /// report to the developers.
    "amdgpu-hang", Health, Error, each Gpu, run
}

/// After a wake-up the driver still sets the GPU up.
const WAKES_FOR_US: u64 = 10_000_000;

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    match view.amdgpu_ground(gpu) {
        AmdgpuGround::Holds | AmdgpuGround::Free => {}
        AmdgpuGround::NotHere | AmdgpuGround::Other(_) => return Verdict::NotHere,
        AmdgpuGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    }
    let events = events(gpu, view);
    // A job that was taken back is no hang.
    let trouble = |event: &&&Event| {
        !matches!(
            event.kind,
            Kind::ResetSucceeded
                | Kind::RingTimeout {
                    soft_recovered: true,
                    ..
                }
        )
    };
    let Some(last) = events.iter().rfind(trouble) else {
        let soft = events
            .iter()
            .find(|event| !matches!(event.kind, Kind::ResetSucceeded));
        if let Some(event) = soft {
            return found(event, &events, Some(event), view);
        }
        if view.log().got().is_some() && gpu.driver.is_absent() {
            return Verdict::NotHere;
        }
        return match view.log_tells() {
            Seen::Got(()) => Verdict::fine("no line of the kernel log says that it hung"),
            other => Verdict::cannot_tell(
                format!("the kernel log, which alone tells: {}", other.why()),
                "`sudo journalctl -k -b -g 'ring|reset|MES'`",
            ),
        };
    };
    // A reset says so itself where it failed.
    let healed = events
        .iter()
        .skip_while(|event| !std::ptr::eq(**event, *last))
        .find(|event| matches!(event.kind, Kind::ResetSucceeded));
    found(last, &events, healed.copied(), view)
}

/// Lines about hangs and resets, but for those around sleep: there a reset belongs to the way.
fn events<'v>(gpu: &'v Gpu, view: &'v View) -> Vec<&'v Event<'v>> {
    let mut sleeps: Vec<(Option<u64>, Option<u64>)> = Vec::new();
    for event in &view.log_events {
        match event.kind {
            Kind::SuspendEntry => sleeps.push((event.line.at_us, None)),
            Kind::SuspendExit => {
                if let Some(sleep) = sleeps.last_mut() {
                    sleep.1 = event.line.at_us;
                }
            }
            _ => {}
        }
    }
    let in_sleep = |event: &Event| {
        let Some(at) = event.line.at_us else {
            return !sleeps.is_empty();
        };
        sleeps.iter().any(|(entry, exit)| {
            entry.is_some_and(|entry| at >= entry)
                && exit.is_none_or(|exit| at <= exit.saturating_add(WAKES_FOR_US))
        })
    };
    view.log_near(gpu)
        .filter(|event| {
            matches!(
                event.kind,
                Kind::RingTimeout { .. }
                    | Kind::MesFailed
                    | Kind::QueuePreemptionFailed
                    | Kind::ResetBegin
                    | Kind::ResetSucceeded
                    | Kind::ResetFailed { .. }
                    | Kind::VramLost
            ) && !in_sleep(event)
        })
        .collect()
}

fn found(last: &Event, events: &[&Event], healed: Option<&Event>, view: &View) -> Verdict {
    let failed = healed
        .is_none()
        .then(|| {
            events.iter().rfind(
                |event| matches!(event.kind, Kind::ResetFailed { error } if error != Some(0)),
            )
        })
        .flatten();
    let of = |wanted: fn(&Kind) -> bool| events.iter().rfind(|event| wanted(&event.kind));
    let mes = of(|kind| matches!(kind, Kind::MesFailed | Kind::QueuePreemptionFailed));
    let ring = of(|kind| matches!(kind, Kind::RingTimeout { .. }));
    let (title, cause, line) = match (failed, mes, ring) {
        (Some(event), ..) => (
            "this GPU hung, and the driver could not reset it",
            "reset-failed",
            *event,
        ),
        (None, Some(event), _) => (
            "the firmware that schedules the queues of this GPU stopped answering",
            "mes",
            *event,
        ),
        (None, None, Some(event)) => ("a queue of this GPU hung", "ring", *event),
        (None, None, None) => ("this GPU was reset", "reset", last),
    };
    let title = match healed {
        Some(_) => format!("{title}; the driver recovered"),
        None => title.to_owned(),
    };
    let mut finding = Finding::new(title)
        .cause(cause)
        .saw(view.log_source(), line.says());
    for event in [last].into_iter().chain(healed) {
        if !std::ptr::eq(event, line) && event.line != line.line {
            finding = finding.saw(view.log_source(), event.says());
        }
    }
    finding.evidence.dedup();
    if let Some(event) = of(|kind| matches!(kind, Kind::VramLost)) {
        let says = event.says();
        if finding
            .evidence
            .iter()
            .all(|evidence| evidence.says != says)
        {
            finding = finding.saw(view.log_source(), says);
        }
    }
    let fix = match (healed, cause) {
        (None, "reset-failed" | "mes") => "restart-after-gpu-hang",
        _ => "after-gpu-hang",
    };
    match healed {
        Some(_) => finding
            .severity(Severity::Warning)
            .why("The GPU works again; programs that ran on it at that time lost their queues, and it may come again"),
        None => finding.why("No line says that the GPU recovered: programs on it wait or fail"),
    }
    .fix(view.driver_fix(FixCall::new(fix)))
    .into()
}
