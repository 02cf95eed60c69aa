//! Most of a GPU's memory is taken.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::nvml::{NvmlDevice, NvmlProcess};
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, NvmlGround, Place, Vendor, View, Wanted};

crate::check! {
    /// Little of the GPU's memory is free, and it is not this user's programs that hold it; or a display takes a good part.
    ///
    /// ## Why it matters
    /// Programs take what they need at their start. Where it is not free they end with `out of memory`, although the card would
    /// be large enough.
    ///
    /// ## How it comes about
    /// Another user or a service computes on the same GPU, a program that crashed still holds its memory, or several containers
    /// share the GPU by turns (time slicing), which keeps nobody within bounds. Programs of one's own, as servers that take
    /// most of the memory by design, are no finding; a service that does so is a note.
    ///
    /// ## How to confirm
    /// `nvidia-smi` lists programs and memory; for AMD `rocm-smi --showpids --showmeminfo vram`.
    "vram-occupied-by-others", Capability, Warning, each Gpu, run
}

/// From here on little is left, in percent.
const FULL: u64 = 90;
/// Less than this is what every GPU with a display has taken, in percent.
const MUCH: u64 = 10;
const MEMORY: &str = "nvmlDeviceGetMemoryInfo()";
const COMPUTE: &str = "nvmlDeviceGetComputeRunningProcesses_v3()";
const ASK_NVIDIA: &str = "`nvidia-smi`";
/// How to get it back, by the maker of the GPU.
const ON_NVIDIA: &str = "free-nvidia-memory";
const ON_AMD: &str = "free-amd-memory";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    // What is set aside for a GPU without memory of its own is always nearly full.
    if gpu.integrated == Some(true) {
        return Verdict::NotHere;
    }
    match gpu.vendor {
        Vendor::Nvidia => match view.nvml_ground(gpu) {
            NvmlGround::Says(device) => of_nvidia(device, view),
            NvmlGround::NotHere => Verdict::NotHere,
            NvmlGround::Unknown(why) => Verdict::cannot_tell(why, ASK_NVIDIA),
        },
        Vendor::Amd => of_amd(gpu, view),
        Vendor::Intel | Vendor::Other => Verdict::NotHere,
    }
}

fn of_nvidia(device: &NvmlDevice, view: &View) -> Verdict {
    let (total, used) = match (&device.memory_bytes.0, &device.memory_used_bytes.0) {
        (Seen::Got(total), Seen::Got(used)) if *total > 0 => (*total, *used),
        (told, _) if told.says("NOT_SUPPORTED") => return Verdict::NotHere,
        (Seen::Got(_), told) | (told, _) => {
            return Verdict::cannot_tell(format!("{MEMORY}: {}", told.why()), ASK_NVIDIA);
        }
    };
    let percent = used.saturating_mul(100) / total;
    let saw =
        |finding: Finding| finding.saw(MEMORY, format!("{percent} % of {} used", size(total)));
    if percent <= FULL {
        return match display(device, total, view) {
            Some(finding) => saw(finding).into(),
            None => Verdict::fine(format!("{percent} % of its memory is used")),
        };
    }
    let Some(processes) = device.processes.got() else {
        return saw(nearly_full(percent, ON_NVIDIA))
            .severity(Severity::Note)
            .likely()
            .into();
    };
    let own = view.own_user();
    let computing = processes.iter().filter(|process| process.kind == "compute");
    let of_others: Vec<&NvmlProcess> = computing
        .filter(|process| process.uid.zip(own).is_some_and(|(uid, own)| uid != own))
        .collect();
    // A server that takes most of the memory is meant to, and so is what runs in containers.
    let (people, services): (Vec<_>, Vec<_>) = of_others
        .into_iter()
        .partition(|process| process.uid.is_some_and(is_a_person));
    if share(&people, total) >= MUCH {
        return saw(nearly_full(percent, ON_NVIDIA))
            .saw(COMPUTE, format!("of other users: {}", names(&people)))
            .into();
    }
    if share(&services, total) >= MUCH {
        return saw(nearly_full(percent, ON_NVIDIA))
            .saw(COMPUTE, format!("of services: {}", names(&services)))
            .severity(Severity::Note)
            .into();
    }
    let all: Vec<&NvmlProcess> = processes.iter().collect();
    let owners_known = own.is_some() && all.iter().all(|process| process.uid.is_some());
    // In a container NVML does not tell of programs, one's own among them.
    match (&view.place, processes.is_empty()) {
        (Seen::Got(Place::Container(engine)), true) if engine == "kubernetes" => {
            saw(nearly_full(percent, ON_NVIDIA))
                .cause("time-slicing")
                .severity(Severity::Note)
                .likely()
                .saw(
                    "container",
                    "the programs of other containers cannot be seen from here",
                )
                .into()
        }
        (Seen::Got(Place::Host), true) => saw(nearly_full(percent, ON_NVIDIA))
            .saw(COMPUTE, "no program: one that ended may still hold it")
            .into(),
        (_, false) if !owners_known => saw(nearly_full(percent, ON_NVIDIA))
            .saw(COMPUTE, "not told whose programs use it")
            .severity(Severity::Note)
            .likely()
            .into(),
        // What the driver itself takes is far below.
        (_, false) if share(&all, total) + MUCH >= percent => Verdict::fine(format!(
            "{percent} % of its memory is used, by programs of this user"
        )),
        _ => saw(nearly_full(percent, ON_NVIDIA))
            .saw(
                COMPUTE,
                format!("its programs hold {} % of it", share(&all, total)),
            )
            .severity(Severity::Note)
            .likely()
            .into(),
    }
}

/// How much of the memory these programs hold, in percent. One that draws and computes is listed twice.
fn share(processes: &[&NvmlProcess], total: u64) -> u64 {
    let mut by_program = std::collections::BTreeMap::new();
    for process in processes {
        let bytes: &mut u64 = by_program.entry(process.pid).or_default();
        *bytes = (*bytes).max(process.used_bytes.unwrap_or_default());
    }
    let sum = by_program.into_values().fold(0, u64::saturating_add);
    sum.saturating_mul(100) / total
}

fn names(processes: &[&NvmlProcess]) -> String {
    let named = processes.iter().take(3).map(|process| {
        let name = process.name.as_deref().unwrap_or("a program");
        let bytes = size(process.used_bytes.unwrap_or_default());
        format!("{name} ({}) with {bytes}", process.pid)
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Ids of users below, and those that systemd gives to services for a while, are no people's.
fn is_a_person(uid: u32) -> bool {
    const FIRST: u32 = 1000;
    const OF_SERVICES: std::ops::RangeInclusive<u32> = 61184..=65534;
    uid >= FIRST && !OF_SERVICES.contains(&uid)
}

fn nearly_full(percent: u64, fix: &'static str) -> Finding {
    Finding::new(format!("{percent} % of the GPU's memory is taken"))
        .cause("other-process")
        .works_all_the_same()
        .why("A program that wants more than what is free ends with `out of memory`")
        .fix(FixCall::new(fix))
}

/// Somebody computes on the GPU that also drives the display.
fn display(device: &NvmlDevice, total: u64, view: &View) -> Option<Finding> {
    let drawing: u64 = device
        .processes
        .got()?
        .iter()
        .filter(|process| process.kind == "graphics")
        .filter_map(|process| process.used_bytes)
        .sum();
    let is_much = drawing.saturating_mul(100) / total >= MUCH;
    let computes = matches!(view.wanted_for_computing(), Wanted::Yes(_));
    (is_much && computes && device.display_active.got() == Some(&true)).then(|| {
        Finding::new(format!(
            "the display takes {} of the GPU's memory",
            size(drawing)
        ))
        .cause("display")
        .severity(Severity::Note)
        .saw("nvmlDeviceGetGraphicsRunningProcesses_v3()", size(drawing))
        .why("What windows and desktop hold is not there for a model")
        .fix(FixCall::new("move-display"))
    })
}

fn of_amd(gpu: &Gpu, view: &View) -> Verdict {
    let Some(address) = gpu.pci.as_deref() else {
        return Verdict::NotHere;
    };
    let file = |name: &str| format!("/sys/bus/pci/devices/{address}/{name}");
    let device = match view.amdgpu_device(gpu) {
        Seen::Got(device) => device,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "{}: {}",
                    file("mem_info_vram_used"),
                    other.map(|_| ()).why()
                ),
                format!("`cat {}`", file("mem_info_vram_used")),
            );
        }
    };
    match (&device.vram_bytes, &device.vram_used_bytes) {
        (Seen::Got(total), Seen::Got(used)) if *total > 0 => {
            let percent = used.saturating_mul(100) / total;
            if percent <= FULL {
                return Verdict::fine(format!("{percent} % of its memory is used"));
            }
            // By whom amdgpu does not say here.
            nearly_full(percent, ON_AMD)
                .severity(Severity::Note)
                .likely()
                .saw(file("mem_info_vram_used"), size(*used))
                .saw(file("mem_info_vram_total"), size(*total))
                .into()
        }
        (Seen::Absent, _) => Verdict::NotHere,
        (total, used) => {
            let unknown = if total.got().is_some() { used } else { total };
            Verdict::cannot_tell(
                format!("{}: {}", file("mem_info_vram_used"), unknown.why()),
                format!("`cat {}`", file("mem_info_vram_used")),
            )
        }
    }
}

fn size(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
