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
    /// most of the memory by design, are no finding.
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
        return saw(nearly_full(percent))
            .severity(Severity::Note)
            .likely()
            .into();
    };
    let of_others = |process: &&NvmlProcess| match (process.uid, own_user(view)) {
        (Some(uid), Some(own)) => uid != own,
        _ => false,
    };
    let bytes = |process: &NvmlProcess| process.used_bytes.unwrap_or_default();
    let others: Vec<&NvmlProcess> = processes.iter().filter(of_others).collect();
    let sum: u64 = others.iter().map(|process| bytes(process)).sum();
    if sum.saturating_mul(100) / total >= MUCH {
        let names: Vec<String> = others
            .iter()
            .take(3)
            .map(|process| {
                let name = process.name.as_deref().unwrap_or("a program");
                format!("{name} ({}) with {}", process.pid, size(bytes(process)))
            })
            .collect();
        return saw(nearly_full(percent))
            .saw(COMPUTE, format!("of other users: {}", names.join(", ")))
            .into();
    }
    let owners_known =
        own_user(view).is_some() && processes.iter().all(|process| process.uid.is_some());
    // In a container NVML does not tell of programs, one's own among them.
    match (&view.place, processes.is_empty()) {
        (Seen::Got(Place::Container(engine)), true) if engine == "kubernetes" => {
            saw(nearly_full(percent))
                .cause("time-slicing")
                .severity(Severity::Note)
                .likely()
                .saw(
                    "container",
                    "the programs of other containers cannot be seen from here",
                )
                .into()
        }
        (Seen::Got(Place::Host), true) => saw(nearly_full(percent))
            .saw(COMPUTE, "no program: one that ended may still hold it")
            .into(),
        (_, false) if owners_known => Verdict::fine(format!(
            "{percent} % of its memory is used, by programs of this user"
        )),
        _ => saw(nearly_full(percent))
            .saw(COMPUTE, "not told whose programs use it")
            .severity(Severity::Note)
            .likely()
            .into(),
    }
}

/// The user whose programs are one's own.
fn own_user(view: &View) -> Option<u32> {
    let users = view.facts.users.got()?;
    match &users.judged {
        Some(judged) => Some(judged.uid),
        None => Some(users.process.got()?.real_uid),
    }
}

fn nearly_full(percent: u64) -> Finding {
    Finding::new(format!("{percent} % of the GPU's memory is taken"))
        .cause("other-process")
        .why("A program that wants more than what is free ends with `out of memory`")
        .fix(FixCall::new("free-gpu-memory"))
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
                other.map(|_| ()).why(),
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
            nearly_full(percent)
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
