//! The processor sees only a small window of a GPU's memory.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::{Version, compute_capability};
use crate::view::{Gpu, Vendor, View};

crate::check! {
    /// The processor reaches only a window of 256 MiB of the GPU's memory: Resizable BAR is off.
    ///
    /// ## Why it matters
    /// Intel's Arc cards lose much of their speed without it. Between several AMD GPUs direct transfers want it. For CUDA on a
    /// single GPU it matters little.
    ///
    /// ## How it comes about
    /// The firmware of the machine has `Above 4G Decoding` or `Resizable BAR` off, or starts in its old mode (CSM); or the card's
    /// own firmware is too old. Cards for data centres and GPUs that are part of the processor have the whole window as a rule;
    /// NVIDIA cards before the RTX 30 cannot resize it.
    ///
    /// ## How to confirm
    /// `sudo lspci -vv -s ADDRESS | grep -A3 Resizable`; `nvidia-smi -q -d MEMORY` (BAR1).
    "resizable-bar-off", Capability, Note, each Gpu, run
}

/// The window that cards have without it.
const SMALL: u64 = 256 << 20;

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if !gpu.is_on_bus() || view.wsl().is_some() || gpu.data_centre || gpu.integrated == Some(true) {
        return Verdict::NotHere;
    }
    match gpu.vendor {
        Vendor::Nvidia => of_nvidia(gpu, view),
        Vendor::Amd => of_amd(gpu, view),
        Vendor::Intel => of_intel(gpu, view),
        Vendor::Other => Verdict::NotHere,
    }
}

fn found(says: &str) -> Finding {
    Finding::new(
        "the processor reaches only a small window of this GPU's memory: Resizable BAR is off",
    )
    .works_all_the_same()
    .why(says)
    .fix(FixCall::new("enable-resizable-bar"))
}

/// The largest window into memory, with where it stands.
fn window(gpu: &Gpu, view: &View) -> Seen<(String, u64)> {
    let source = format!(
        "/sys/bus/pci/devices/{}/resource",
        gpu.pci.as_deref().unwrap_or(&gpu.key)
    );
    let Some(detail) = view.detail_of(gpu) else {
        return Seen::default();
    };
    detail.bars.as_ref().and_then(|bars| {
        let windows = bars.iter().filter(|bar| bar.prefetchable);
        match windows.map(|bar| bar.bytes).max() {
            Some(bytes) => Seen::Got((source.clone(), bytes)),
            None => Seen::error("no window into memory"),
        }
    })
}

fn not_told(gpu: &Gpu, window: &Seen<(String, u64)>) -> Verdict {
    let why = window.as_ref().map(|_| ()).why();
    Verdict::cannot_tell(
        format!("the size of its window into memory: {why}"),
        match &gpu.pci {
            Some(address) => format!("`sudo lspci -vv -s {address}`"),
            None => gpu.lspci(),
        },
    )
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn of_nvidia(gpu: &Gpu, view: &View) -> Verdict {
    // RTX 30 was the first.
    let capability = gpu.target.as_deref().and_then(compute_capability);
    let Some(capability) = capability.as_deref().and_then(Version::parse) else {
        return Verdict::cannot_tell(
            "whether this GPU can resize its window: its generation is not known",
            gpu.lspci(),
        );
    };
    if Some(capability) < Version::parse("8.6") {
        return Verdict::NotHere;
    }
    let from_nvml = || match view.nvml_device(gpu).map(|device| &device.bar1_bytes.0) {
        Some(bytes) => bytes
            .as_ref()
            .map(|bytes| ("nvmlDeviceGetBAR1MemoryInfo()".to_owned(), *bytes)),
        None => Seen::default(),
    };
    match window(gpu, view).or_else(from_nvml) {
        Seen::Got((source, bytes)) if bytes <= SMALL => found("CUDA on one GPU works as well without; mapping its memory, and transfers between cards past the driver, do not")
            .saw(source, mib(bytes))
            .into(),
        Seen::Got((_, bytes)) => Verdict::fine(format!("a window of {}", mib(bytes))),
        other => not_told(gpu, &other),
    }
}

fn of_amd(gpu: &Gpu, view: &View) -> Verdict {
    let address = gpu.pci.as_deref().unwrap_or(&gpu.key);
    let file = |name: &str| format!("/sys/bus/pci/devices/{address}/{name}");
    let Seen::Got(device) = view.amdgpu_device(gpu) else {
        return match gpu.driver.got().map(String::as_str) {
            Some("amdgpu") | None if !gpu.driver.is_absent() => {
                Verdict::cannot_tell("what amdgpu shows of its memory is not known", gpu.lspci())
            }
            _ => Verdict::NotHere,
        };
    };
    let (visible, total) = match (&device.visible_vram_bytes, &device.vram_bytes) {
        (Seen::Got(visible), Seen::Got(total)) => (*visible, *total),
        (Seen::Absent, _) => return Verdict::NotHere,
        (visible, total) => {
            let unknown = if visible.got().is_some() {
                total
            } else {
                visible
            };
            return Verdict::cannot_tell(
                format!("{}: {}", file("mem_info_vis_vram_total"), unknown.why()),
                format!("`cat {}`", file("mem_info_vis_vram_total")),
            );
        }
    };
    if visible >= total || visible > SMALL {
        return Verdict::fine(format!("a window of {}", mib(visible)));
    }
    if gpu.integrated.is_none() {
        return Verdict::cannot_tell(
            "whether this GPU is part of the processor is not known",
            gpu.lspci(),
        );
    }
    let has_small_window = |other: &&Gpu| {
        other.integrated == Some(false)
            && view.amdgpu_device(other).got().is_some_and(|device| {
                let sizes = device.visible_vram_bytes.got().zip(device.vram_bytes.got());
                sizes.is_some_and(|(visible, total)| visible < total && *visible <= SMALL)
            })
    };
    let finding = match view.gpus.iter().filter(has_small_window).count() > 1 {
        true => found("Several AMD GPUs cannot reach each other's memory through so small a window: transfers go by way of the processor")
            .cause("multi-gpu")
            .severity(Severity::Warning),
        false => found("On a single card most programs compute as well without; loading takes longer"),
    };
    finding
        .saw(file("mem_info_vis_vram_total"), mib(visible))
        .saw(file("mem_info_vram_total"), mib(total))
        .into()
}

fn of_intel(gpu: &Gpu, view: &View) -> Verdict {
    match (gpu.integrated, window(gpu, view)) {
        // All cards of the Arc series have more memory than that.
        (Some(false), Seen::Got((source, bytes))) if bytes <= SMALL => {
            found("Without it an Arc card loses much of its speed, and Intel's compute runtime may refuse it")
                .cause("intel-arc")
                .severity(Severity::Warning)
                .saw(source, mib(bytes))
                .into()
        }
        (_, Seen::Got((_, bytes))) => Verdict::fine(format!("a window of {}", mib(bytes))),
        (_, other) => not_told(gpu, &other),
    }
}
