//! A GPU that is part of the processor may use little of the memory.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Evidence, Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::rocm::KFD_NODES;
use crate::view::{Gpu, View};

crate::check! {
    /// A GPU that shares the memory of the machine may use only a small part of it.
    ///
    /// ## Why it matters
    /// A GPU that is part of the processor has a small piece of memory for itself, which the firmware of the machine sets aside, and
    /// takes the rest from the memory of the machine up to a limit of the kernel (GTT). A model that needs more does not fit,
    /// however much memory is free.
    ///
    /// ## How it comes about
    /// Linux sets the limit to one half of the memory. The options `amdgpu.gttsize` (in MiB) and `ttm.pages_limit` (in pages of
    /// 4 KiB) may set less, and older kernels allowed less.
    ///
    /// ## How to confirm
    /// `cat /sys/class/drm/card*/device/mem_info_gtt_total` in bytes beside `MemTotal` in `/proc/meminfo`;
    /// `/sys/module/ttm/parameters/pages_limit` is the limit in pages of 4 KiB.
    "amdgpu-gtt-limit-small", Capability, Warning, each Gpu, run
}

const GIB: u64 = 1 << 30;
/// Where the machine has less, half of it is little and all of it would not be much more.
const WORTH_IT: u64 = 24 * GIB;
/// Above this share the limit was raised.
const RAISED_PERCENT: u64 = 56;
/// Below this share something set it lower than the kernel does.
const LOWERED_PERCENT: u64 = 44;
const WOULD_TELL: &str =
    "`cat /sys/class/drm/card*/device/mem_info_gtt_total` and `grep MemTotal /proc/meminfo`";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let Some(address) = &gpu.pci else {
        return Verdict::NotHere;
    };
    if view.wsl().is_some() || gpu.remembered || gpu.passed_in == Some(false) {
        return Verdict::NotHere;
    }
    if !gpu.is_held_by("amdgpu") {
        return Verdict::NotHere;
    }
    match gpu.integrated {
        Some(true) => {}
        Some(false) => return Verdict::NotHere,
        None => {
            return Verdict::cannot_tell(
                "whether it is part of the processor is not known",
                gpu.lspci(),
            );
        }
    }
    // An accelerator of this kind has fast memory of the whole package (MI300A).
    if gpu.data_centre || view.is_spare(gpu) {
        return Verdict::NotHere;
    }
    let (gtt, own) = match view.amdgpu_device(gpu) {
        Seen::Got(device) => (device.gtt_bytes.as_ref(), device.vram_bytes.as_ref()),
        _ => (Seen::default(), Seen::default()),
    };
    let memory = view
        .facts
        .proc_hardware
        .as_ref()
        .and_then(|hardware| hardware.memory_bytes.as_ref())
        .map(|bytes| (*bytes, "/proc/meminfo".to_owned()))
        .or_else(|| of_processors(view));
    let source = format!("/sys/bus/pci/devices/{address}/mem_info_gtt_total");
    let (gtt, (memory, memory_source)) = match (gtt, memory) {
        (Seen::Got(gtt), Seen::Got(memory)) if memory.0 > 0 => (*gtt, memory),
        (Seen::Got(_), other) => {
            let why = other.map(|_| ()).why();
            return Verdict::cannot_tell(format!("/proc/meminfo: {why}"), WOULD_TELL);
        }
        (other, _) => {
            let why = other.map(|_| ()).why();
            return Verdict::cannot_tell(format!("{source}: {why}"), WOULD_TELL);
        }
    };
    let percent = gtt.saturating_mul(100) / memory;
    if percent > RAISED_PERCENT {
        return Verdict::fine(format!("the GPU may use {percent} % of the memory"));
    }
    if memory < WORTH_IT {
        return Verdict::fine(format!("of {} GiB in all", gib(memory)));
    }
    // The firmware gave it the greater part: what is left is for the processor.
    if let Some(own) = own.got().filter(|own| ***own >= memory) {
        return Verdict::fine(format!("it has {} GiB of its own", gib(**own)));
    }
    let mut finding = Finding::new(format!(
        "this GPU may use {} of the {} GiB of memory that it shares with the processor",
        gib(gtt),
        gib(memory)
    ))
    .saw(source, format!("{gtt} bytes"))
    .saw(memory_source, format!("{memory} bytes of memory"));
    if let Some(own) = own.got() {
        finding = finding.saw(
            format!("/sys/bus/pci/devices/{address}/mem_info_vram_total"),
            format!("{own} bytes of its own"),
        );
    }
    if percent >= LOWERED_PERCENT {
        finding = finding.severity(Severity::Note).why(
            "One half is what Linux allows by itself; a model that needs more does not fit, and the limit can be raised",
        );
    } else if let Some((module, parameter, set)) = lowering(view) {
        finding = finding
            .saw(&set.source, &set.says)
            .why(format!(
                "Linux allows one half by itself, and `{module}.{parameter}` holds it lower"
            ))
            .fix(
                view.driver_fix(
                    FixCall::new("raise-gtt-option")
                        .with("version", pages(memory))
                        .with("line", &set.says)
                        .with("file", &set.source),
                ),
            );
        return finding.into();
    } else {
        let options_are_known =
            view.kernel_words().got().is_some() && view.facts.modprobe.got().is_some();
        finding = finding.why(match options_are_known {
            true => "Linux allows one half by itself. Neither `amdgpu.gttsize` nor `ttm.pages_limit` is set, so the kernel is an old one that allows less",
            false => "Linux allows one half by itself, so `amdgpu.gttsize`, `ttm.pages_limit` or an old kernel holds it lower",
        });
    }
    finding
        .fix(view.driver_fix(FixCall::new("raise-gtt-limit").with("version", pages(memory))))
        .into()
}

/// The option that sets the limit, and where.
fn lowering(view: &View) -> Option<(&'static str, &'static str, Evidence)> {
    [
        ("amdgpu", "gttsize"),
        ("ttm", "pages_limit"),
        ("amdttm", "pages_limit"),
    ]
    .into_iter()
    .find_map(|(module, parameter)| {
        let (value, set) = view.module_setting(module, parameter)?;
        (value != "-1").then_some((module, parameter, set))
    })
}

/// The memory of the machine as KFD shows it at its processors. Where a node is missing it is too little, and nobody is accused.
fn of_processors(view: &View) -> Seen<(u64, String)> {
    let kfd = view.facts.kfd.as_ref();
    kfd.and_then(|kfd| {
        let mut sum = 0;
        for node in kfd.nodes.items.values() {
            match &node.system_bytes {
                Seen::Got(bytes) => sum += bytes,
                other => return other.as_ref().map(|_| (0, String::new())),
            }
        }
        if sum == 0 {
            return Seen::default();
        }
        Seen::Got((sum, KFD_NODES.to_owned()))
    })
}

fn gib(bytes: u64) -> u64 {
    (bytes + GIB / 2) / GIB
}

/// All but 16 GiB or a quarter, whichever is more for the system, in pages of 4 KiB.
fn pages(memory: u64) -> String {
    let left = (memory / 4).max(16 * GIB).min(memory / 2);
    ((memory - left) / GIB * GIB / 4096).to_string()
}
