//! The system slept, and NVIDIA's driver did not keep what CUDA had in the GPU's memory.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{Loaded, Stack, View};

crate::check! {
    /// The system has slept since `nvidia_uvm` was loaded, and NVIDIA's driver is not told to keep the memory of the GPU meanwhile.
    ///
    /// ## Why it matters
    /// After waking up CUDA often answers every new program with 999 (`unknown error`), while `nvidia-smi` and the desktop
    /// work. gpucheck starts no CUDA program, so this is a warning: the settings let it happen, nobody saw it.
    ///
    /// ## How it comes about
    /// With `NVreg_PreserveVideoMemoryAllocations=0`, the default of most releases, the driver saves only what the display needs.
    /// `nvidia_uvm`, through which CUDA allocates, loses its state then. From branch 595 on the default is 2: kept where the
    /// kernel tells the driver of the sleep (`UseKernelSuspendNotifiers: 1`).
    ///
    /// ## How to confirm
    /// `cat /sys/power/suspend_stats/success` and `grep -E 'Preserve|Notifiers' /proc/driver/nvidia/params`; a CUDA program that
    /// works again once `nvidia_uvm` was loaded anew.
    "nvidia-uvm-stale-after-suspend", Runtime, Error, each Stack, run
}

const STATS: &str = "/sys/power/suspend_stats/success";
const PARAMETERS: &str = "/proc/driver/nvidia/params";
const PRESERVE: &str = "PreserveVideoMemoryAllocations";
const NOTIFIERS: &str = "UseKernelSuspendNotifiers";

/// What the module says when it is loaded (kernel-open/nvidia-uvm/uvm.c).
const UVM_LOADED: &str = "nvidia-uvm: Loaded the UVM driver";

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    // In a container the host sleeps, and only there something can be done. Where the module is not loaded nothing is stale.
    if !view.has_own_nvidia_driver() || matches!(view.loaded("nvidia_uvm"), Loaded::No(_)) {
        return Verdict::NotHere;
    }
    if let Loaded::Unknown(why) = view.loaded("nvidia_uvm") {
        return Verdict::cannot_tell(
            format!("whether nvidia_uvm is loaded: {why}"),
            "`cat /sys/module/nvidia_uvm/initstate`",
        );
    }
    let (source, says) = match slept(view) {
        Slept::Yes(source, says) => (source, says),
        Slept::No(says) => return Verdict::fine(says),
        Slept::Unknown(why) => {
            // Where the memory is kept it does not matter.
            return match keeps(view) {
                Ok(Some(says)) => Verdict::fine(says),
                _ if sleeps(view).got().is_none() && never_sleeps(view) => Verdict::NotHere,
                _ => Verdict::cannot_tell(
                    format!("whether the system has slept since nvidia_uvm was loaded: {why}"),
                    "`cat /sys/power/suspend_stats/success` and `sudo journalctl -k -b -g 'PM: suspend|UVM driver'`",
                ),
            };
        }
    };
    match keeps(view) {
        Ok(Some(says)) => Verdict::fine(format!("the system has slept, and {says}")),
        Ok(None) => found(source, says, view),
        Err(why) => Verdict::cannot_tell(
            format!("the system has slept; {PARAMETERS}: {why}"),
            "`grep -E 'Preserve|Notifiers' /proc/driver/nvidia/params`",
        ),
    }
}

enum Slept {
    /// Since the module was loaded; where that stands, and what.
    Yes(String, String),
    No(String),
    Unknown(String),
}

/// How often the system has slept since boot.
fn sleeps<'v>(view: &'v View) -> Seen<&'v u64> {
    let kernel = view.facts.kernel.as_ref();
    kernel.and_then(|kernel| kernel.suspends.as_ref())
}

fn slept(view: &View) -> Slept {
    let count = sleeps(view);
    let lines = view
        .log()
        .into_got()
        .map_or(&[][..], |log| log.lines.as_slice());
    let woke = view
        .log_events
        .iter()
        .rev()
        .find(|event| event.kind == Kind::SuspendExit);
    let woke_at = woke.and_then(|event| {
        lines
            .iter()
            .rposition(|line| std::ptr::eq(line, event.line))
    });
    let loaded_at = lines
        .iter()
        .rposition(|line| line.text.starts_with(UVM_LOADED));
    match (count, woke, woke_at) {
        (_, Some(_), Some(woke_at)) if loaded_at.is_some_and(|loaded| loaded > woke_at) => {
            Slept::No("nvidia_uvm was loaded anew after the system woke up last".to_owned())
        }
        // The count leaves hibernation out, and the log has attempts that failed, too.
        (Seen::Got(0), Some(event), _) if event.line.text.contains("hibernation") => {
            Slept::Yes(view.log_source().to_owned(), event.says())
        }
        (Seen::Got(0), ..) => Slept::No("the system has not slept since boot".to_owned()),
        // The log goes on after the sleep, and nobody loaded the module since.
        (_, Some(event), _) => Slept::Yes(view.log_source().to_owned(), event.says()),
        // The count is that since boot: the module may have been loaded since.
        (Seen::Got(times), None, _) => Slept::Unknown(match view.log_tells() {
            Seen::Got(()) => format!("{STATS} says {times}, and the kernel log has no sleep"),
            unknown => format!(
                "{STATS} says {times} since boot; the kernel log, which has the order: {}",
                unknown.why()
            ),
        }),
        // Every running system of today has the count. Where it was not recorded a log that was read is the next best: sleeping
        // and waking up leave lines that are rarely the first to be lost.
        (_, None, _) if view.log().got().is_some() => {
            Slept::No("the kernel log has no sleep as far as it could be read".to_owned())
        }
        (unknown, None, _) => Slept::Unknown(format!("{STATS}: {}", unknown.map(|_| ()).why())),
    }
}

/// The driver keeps the memory of the GPU while the system sleeps, and what says so; None: it does not. The error: not known.
fn keeps(view: &View) -> Result<Option<String>, String> {
    match view.nvidia_parameter(PRESERVE) {
        Seen::Got("1") => Ok(Some(format!(
            "{PRESERVE} is 1: the driver keeps the memory"
        ))),
        Seen::Got("2") => match view.nvidia_parameter(NOTIFIERS) {
            Seen::Got("0") => Ok(None),
            Seen::Got(_) => Ok(Some(format!("{PRESERVE} is 2 and {NOTIFIERS} is on"))),
            other => Err(format!("{NOTIFIERS}: {}", other.map(|_| ()).why())),
        },
        Seen::Got("0") => Ok(None),
        Seen::Got(value) => Err(format!("{PRESERVE} is {value}")),
        other => Err(format!("{PRESERVE}: {}", other.map(|_| ()).why())),
    }
}

/// Servers do not sleep.
fn never_sleeps(view: &View) -> bool {
    let mut gpus = view.gpus_of(Stack::Cuda).peekable();
    gpus.peek().is_some() && gpus.all(|gpu| gpu.data_centre)
}

fn found(source: String, says: String, view: &View) -> Verdict {
    let mut finding = Finding::new(
        "the system has slept, and the NVIDIA driver does not keep the GPU's memory: CUDA may answer 999",
    )
    .severity(Severity::Warning)
    .likely()
    .saw(source, says)
    .saw(
        PARAMETERS,
        match view.nvidia_parameter(PRESERVE) {
            Seen::Got("2") => format!("{PRESERVE}: 2, {NOTIFIERS}: 0"),
            _ => format!("{PRESERVE}: 0"),
        },
    );
    // A program whose memory was lost, or one that failed for its own reasons.
    let woke = view
        .log_events
        .iter()
        .rposition(|event| event.kind == Kind::SuspendExit);
    let after = woke.map_or(&[][..], |woke| &view.log_events[woke..]);
    let xid = after.iter().find(|event| {
        event.current
            && matches!(
                event.kind,
                Kind::Xid {
                    number: 13 | 31,
                    ..
                }
            )
    });
    if let Some(event) = xid {
        finding = finding.saw(view.log_source(), event.says());
    }
    finding
        .why("nvidia_uvm loses its state when that memory is not kept; programs that ask for CUDA then fail until it is loaded anew")
        .fix(FixCall::new("reload-nvidia-uvm"))
        .fix(FixCall::new("keep-video-memory-in-sleep"))
        .into()
}
