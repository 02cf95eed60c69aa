//! NVIDIA's kernel module is there and holds no GPU.

use crate::check::Verdict;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{Gpu, GpusToDrive, Loaded, Stack, View};

crate::check! {
    /// NVIDIA's kernel module was loaded and holds none of the GPUs, although no other driver has them.
    ///
    /// ## Why it matters
    /// `nvidia-smi` says that there is no device, and CUDA finds none.
    ///
    /// ## How it comes about
    /// The module looked at every GPU and refused it: it is of a generation that this branch does not take, of one that wants
    /// the other flavour of the module, has no address space, or does not answer. Mostly the module then leaves the kernel
    /// again, and only the kernel log tells. Where the reason is known this finding hangs under it.
    ///
    /// ## How to confirm
    /// `ls -l /sys/bus/pci/drivers/nvidia` and `sudo dmesg | grep NVRM`.
    "nvidia-no-gpu-bound", Driver, Error, each Stack, run
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let gpus: Vec<&Gpu> = match view.gpus_to_drive(stack) {
        GpusToDrive::These(gpus) => gpus,
        GpusToDrive::None => return Verdict::NotHere,
        GpusToDrive::Unknown(why) => {
            return Verdict::cannot_tell(why, "`lspci -nnk -d 10de:`");
        }
    };
    if gpus.iter().any(|gpu| gpu.is_held_by("nvidia")) {
        return Verdict::fine("NVIDIA's driver holds a GPU");
    }
    if let Some(gpu) = gpus.iter().find(|gpu| gpu.driver.is_unknown()) {
        return Verdict::cannot_tell(
            format!("{}: {}", gpu.driver_source, gpu.driver.why()),
            gpu.lspci(),
        );
    }
    let free: Vec<&&Gpu> = gpus.iter().filter(|gpu| gpu.driver.is_absent()).collect();
    let Some(first) = free.first() else {
        return Verdict::NotHere;
    };
    let said = view.log_events.iter().rev().find(|event| {
        event.current
            && matches!(
                event.kind,
                Kind::NoneInitialized | Kind::NoGpuFound | Kind::ProbesFailed { .. }
            )
    });
    let mut finding = match view.loaded("nvidia") {
        Loaded::Yes(evidence) => {
            Finding::new("NVIDIA's kernel module is loaded and holds none of the GPUs")
                .saw(evidence.source, evidence.says)
        }
        loaded => match (said, loaded) {
            (Some(_), loaded) => {
                let finding = Finding::new(
                    "NVIDIA's kernel module was loaded, took none of the GPUs and left",
                )
                .likely();
                match loaded {
                    Loaded::No(evidence) => finding.saw(evidence.source, evidence.says),
                    _ => finding,
                }
            }
            // That it is not loaded at all another check says.
            (None, Loaded::No(_)) => return Verdict::NotHere,
            (None, _) => {
                return Verdict::cannot_tell(
                    "whether NVIDIA's kernel module is loaded",
                    "`ls /sys/module/nvidia`",
                );
            }
        },
    };
    finding = finding
        .saw_answer(first.driver_source.as_str(), &first.driver)
        .why("A GPU that the module refused is not there for nvidia-smi and CUDA");
    if let Some(event) = said {
        finding = finding.saw(view.log_source(), event.says());
    }
    if free.len() < gpus.len() {
        finding = finding.only_gpus(free.iter().map(|gpu| gpu.key.clone()).collect());
    }
    finding
        .fix(FixCall::new("read-kernel-log").with("word", "NVRM"))
        .into()
}
