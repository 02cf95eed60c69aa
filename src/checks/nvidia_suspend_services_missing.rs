//! NVIDIA's driver is to keep the memory of its GPUs over a sleep, and the services that it needs for that are not enabled.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::services::Unit;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{Stack, View};

crate::check! {
    /// NVIDIA's driver is told to keep the memory of its GPUs over a sleep, and the services that tell it when to are not
    /// enabled.
    ///
    /// ## Why it matters
    /// With `NVreg_PreserveVideoMemoryAllocations=1` the driver refuses to sleep unless it was told through
    /// `/proc/driver/nvidia/suspend` before. Without the services nobody tells it: every attempt to sleep fails, and the machine
    /// wakes at once or hangs.
    ///
    /// ## How it comes about
    /// The option was written by hand or by a package, and nvidia-suspend, nvidia-hibernate and nvidia-resume were not enabled
    /// with it. From branch 595 on `NVreg_UseKernelSuspendNotifiers=1` does without them.
    ///
    /// ## How to confirm
    /// `grep PreserveVideoMemory /proc/driver/nvidia/params` and `systemctl is-enabled nvidia-suspend nvidia-resume`.
    "nvidia-suspend-services-missing", Driver, Error, each Stack, run
}

const UNITS: [&str; 2] = ["nvidia-suspend.service", "nvidia-resume.service"];
/// What every sleep goes through that keeps the memory of the machine.
const SLEEPS: [&str; 3] = ["sleep.target", "suspend.target", "systemd-suspend.service"];
const WOULD_TELL: &str = "`grep -E 'PreserveVideoMemory|SuspendNotifiers' /proc/driver/nvidia/params` and `systemctl is-enabled nvidia-suspend nvidia-resume`";
const PARAMS: &str = "/proc/driver/nvidia/params";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if !view.has_own_nvidia_driver() {
        return Verdict::NotHere;
    }
    match view.nvidia_parameter("PreserveVideoMemoryAllocations") {
        // 2 leaves it to the driver, which then does not refuse to sleep.
        Seen::Got("1") => {}
        Seen::Got(value) => {
            return Verdict::fine(format!("PreserveVideoMemoryAllocations is {value}"));
        }
        Seen::Absent => return Verdict::NotHere,
        other => return Verdict::cannot_tell(format!("{PARAMS}: {}", other.why()), WOULD_TELL),
    }
    match view.nvidia_parameter("UseKernelSuspendNotifiers") {
        Seen::Got("0") | Seen::Absent => {}
        Seen::Got(value) => {
            return Verdict::fine(format!("UseKernelSuspendNotifiers is {value}"));
        }
        other => return Verdict::cannot_tell(format!("{PARAMS}: {}", other.why()), WOULD_TELL),
    }
    let refused = view
        .log_events
        .iter()
        .rev()
        .find(|event| event.current && event.kind == Kind::SuspendWithoutServices);
    let units = match view.facts.services.as_ref() {
        Seen::Got(services) => &services.units,
        other => {
            return Verdict::cannot_tell(
                format!("the services: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    // A machine that was told not to sleep needs none of them.
    let masked = SLEEPS.iter().find_map(|name| {
        let unit = units.get(*name)?.got()?;
        unit.masked.then_some(name)
    });
    if let Some(name) = masked {
        return Verdict::fine(format!("this machine does not sleep: {name} is masked"));
    }
    // Without systemd something else may tell the driver.
    let has_systemd = units.values().any(|unit| unit.got().is_some());
    let mut finding = Finding::new(
        "the driver is to keep the memory of its GPUs over a sleep, and its sleep services are not enabled",
    )
    // Until it is to sleep everything works.
    .works_all_the_same()
    .saw(PARAMS, "PreserveVideoMemoryAllocations: 1");
    let mut lacks = false;
    for name in UNITS {
        match units.get(name) {
            Some(Seen::Got(unit)) => match state(unit) {
                Seen::Got(Some(says)) => {
                    lacks = true;
                    finding = finding.saw(&unit.file, says);
                }
                Seen::Got(None) => {}
                other => {
                    return Verdict::cannot_tell(
                        format!("whether {name} is enabled: {}", other.map(|_| ()).why()),
                        WOULD_TELL,
                    );
                }
            },
            Some(Seen::Absent) if has_systemd || refused.is_some() => {
                lacks = true;
                finding = finding.saw("/usr/lib/systemd/system", format!("no {name}"));
            }
            other => {
                let why = other.map_or_else(String::new, |unit| unit.as_ref().map(|_| ()).why());
                return Verdict::cannot_tell(format!("{name}: {why}"), WOULD_TELL);
            }
        }
    }
    if !lacks {
        return Verdict::fine("nvidia-suspend and nvidia-resume are enabled");
    }
    let finding = finding
        .why("The driver then refuses to sleep: the machine wakes up at once or hangs")
        .fix(FixCall::new("enable-nvidia-sleep-services"));
    // What computes in a rack does not sleep.
    let never_sleeps = view.gpus_of(stack).all(|gpu| gpu.data_centre);
    match refused {
        Some(event) => finding.saw(view.log_source(), event.says()),
        None if never_sleeps => finding.severity(Severity::Note),
        None => finding,
    }
    .into()
}

/// Why a unit is not started before a sleep; None: it is.
fn state(unit: &Unit) -> Seen<Option<&'static str>> {
    if unit.masked {
        return Seen::Got(Some("is masked"));
    }
    match &unit.enabled_by {
        Seen::Got(_) => Seen::Got(None),
        Seen::Absent => Seen::Got(Some("is not enabled")),
        other => other.as_ref().map(|_| None),
    }
}
