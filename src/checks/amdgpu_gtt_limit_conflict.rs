//! Settings for the memory that a GPU may share contradict each other.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Evidence, Finding};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{DriverGround, Loaded, Stack, View};

crate::check! {
    /// Settings for the memory that a GPU shares with the processor contradict each other, or are of no use.
    ///
    /// ## Why it matters
    /// The limit that counts is then another one than was meant: a model does not fit, or the machine runs out of memory while
    /// it is loaded.
    ///
    /// ## How it comes about
    /// `amdgpu.gttsize` (in MiB) is the older setting and `ttm.pages_limit` (in pages of 4 KiB) the newer one; with both the
    /// smaller counts. AMD's package `amdgpu-dkms` brings a module `amdttm` of its own, which does not read the settings of `ttm`.
    /// A limit near the whole memory leaves nothing for the system.
    ///
    /// ## How to confirm
    /// `cat /proc/cmdline`, `grep -r pages_limit /etc/modprobe.d`, and
    /// `grep . /sys/module/{ttm,amdttm}/parameters/pages_limit`.
    "amdgpu-gtt-limit-conflict", Capability, Warning, each Stack, run
}

const PAGE: u64 = 4096;
/// What the system needs for itself.
const FOR_THE_SYSTEM: u64 = 8 << 30;
const COMMAND_LINE: &str = "/proc/cmdline";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.driver_ground() == DriverGround::Host {
        return Verdict::NotHere;
    }
    let shares = view
        .gpus_of(stack)
        .any(|gpu| gpu.integrated == Some(true) && gpu.is_held_by("amdgpu"));
    if !shares {
        return Verdict::NotHere;
    }
    let words = view.kernel_words().map(|_| ());
    if words != Seen::Got(()) {
        return Verdict::cannot_tell(
            format!("{COMMAND_LINE}: {}", words.why()),
            "`cat /proc/cmdline`",
        );
    }
    let set = |module: &str, parameter: &str| view.module_setting(module, parameter);
    let (size, of_kernel, of_package) = (
        set("amdgpu", "gttsize").filter(|(value, _)| value != "-1"),
        set("ttm", "pages_limit"),
        set("amdttm", "pages_limit"),
    );
    let pages = of_kernel.as_ref().or(of_package.as_ref());
    let finding = |title: &str, cause, seen: Vec<&Evidence>| {
        let mut finding = Finding::new(title)
            .cause(cause)
            .fix(view.driver_fix(FixCall::new("one-gtt-limit")));
        finding.evidence.extend(seen.into_iter().cloned());
        finding
    };
    let differ = |mebibytes: &str, pages: &str| -> Option<bool> {
        let pages = pages.parse::<u64>().ok()?.saturating_mul(PAGE);
        let bytes = mebibytes.parse::<u64>().ok()?.saturating_mul(1 << 20);
        // Guides round.
        Some(bytes.abs_diff(pages) > pages / 64)
    };
    if let (Some((mebibytes, size)), Some((number, pages))) = (&size, pages)
        && differ(mebibytes, number) != Some(false)
    {
        return finding(
            "both amdgpu.gttsize and a limit of pages are set: the smaller one counts",
            "gttsize-and-pages-limit",
            vec![size, pages],
        )
        .why("What the GPU may use is then another amount than the larger one says")
        .into();
    }
    let wrong = match (&of_kernel, &of_package, view.loaded("amdttm")) {
        (Some((_, seen)), None, Loaded::Yes(loaded)) => Some((
            "the limit is set for ttm, and AMD's driver package uses amdttm",
            seen,
            loaded,
        )),
        (None, Some((_, seen)), Loaded::No(loaded)) => Some((
            "the limit is set for amdttm, and the driver of this kernel uses ttm",
            seen,
            loaded,
        )),
        (Some((_, seen)), None, Loaded::Unknown(why)) => {
            return Verdict::cannot_tell(
                format!(
                    "{}: {}; whether amdttm is loaded: {why}",
                    seen.source, seen.says
                ),
                "`ls /sys/module/amdttm`",
            );
        }
        _ => None,
    };
    if let Some((title, seen, loaded)) = wrong {
        return finding(title, "wrong-module", vec![seen, &loaded])
            .why("The setting does nothing, and the limit is what the driver sets by itself")
            .into();
    }
    let Some((value, seen)) = pages else {
        return Verdict::fine("no limit of pages is set");
    };
    let hardware = view.facts.proc_hardware.as_ref();
    let memory = hardware.and_then(|hardware| hardware.memory_bytes.as_ref());
    match (value.parse::<u64>(), memory) {
        (Ok(limit), Seen::Got(memory))
            if limit.saturating_mul(PAGE) > memory.saturating_sub(FOR_THE_SYSTEM) =>
        {
            let total = Evidence {
                source: "/proc/meminfo".to_owned(),
                says: format!("MemTotal {} kB", memory / 1024),
            };
            finding(
                "the limit for the GPU leaves less than 8 GiB of memory for the system",
                "too-large",
                vec![seen, &total],
            )
            .why("A program that fills the GPU's share drives the machine out of memory")
            .into()
        }
        (Ok(_), Seen::Got(_)) => Verdict::fine(format!("{}: {}", seen.source, seen.says)),
        (Err(_), _) => Verdict::cannot_tell(
            format!("{}: {} is no number of pages", seen.source, seen.says),
            "`cat /sys/module/ttm/parameters/pages_limit`",
        ),
        (_, other) => Verdict::cannot_tell(
            format!("/proc/meminfo: {}", other.map(|_| ()).why()),
            "`grep MemTotal /proc/meminfo`",
        ),
    }
}
