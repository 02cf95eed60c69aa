//! NVIDIA's driver did not find the firmware for the GPU's own processor.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::log::{Event, Kind};
use crate::view::{Gpu, Stack, View};

crate::check! {
    /// NVIDIA's driver did not find the firmware for the GPU System Processor (GSP) of its own version.
    ///
    /// ## Why it matters
    /// From Turing on a GPU has a processor of its own that the driver starts with a firmware file of exactly its version.
    /// The open kernel module cannot do without; without the file the GPU is not brought up and `nvidia-smi` does not list it.
    ///
    /// ## How it comes about
    /// The driver was upgraded by half, a slim image left the firmware out, or the module is in the initramfs and its
    /// firmware is not.
    ///
    /// ## How to confirm
    /// `ls /lib/firmware/nvidia/$(cat /sys/module/nvidia/version)` and `sudo dmesg | grep -i gsp`.
    "nvidia-gsp-firmware-missing", Driver, Error, each Stack, run
}

const WOULD_TELL: &str =
    "`ls /lib/firmware/nvidia/$(cat /sys/module/nvidia/version)` and `sudo dmesg | grep -i gsp`";
const ENOENT: i32 = -2;

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if !view.has_own_nvidia_driver() {
        return Verdict::NotHere;
    }
    let held: Vec<&Gpu> = view
        .gpus_of(stack)
        .filter(|gpu| gpu.is_held_by("nvidia"))
        .collect();
    if held.is_empty() {
        return Verdict::NotHere;
    }
    if held.iter().all(|gpu| view.nvml_device(gpu).is_some()) {
        return Verdict::fine("NVML reaches every GPU of the driver");
    }
    let said: Vec<(&Gpu, &Event)> = held
        .iter()
        .filter(|gpu| view.nvml_device(gpu).is_none())
        .filter_map(|gpu| Some((*gpu, view.log_near(gpu).find(|event| is_missing(event))?)))
        .collect();
    let files = view
        .facts
        .module_files
        .as_ref()
        .and_then(|files| files.gsp_firmware.as_ref());
    let Some((_, event)) = said.first() else {
        return match view.log_tells() {
            Seen::Got(()) => Verdict::fine("the kernel log names no firmware that was missing"),
            unknown => Verdict::cannot_tell(
                format!(
                    "NVML does not tell of every GPU, and the kernel log: {}",
                    unknown.why()
                ),
                WOULD_TELL,
            ),
        };
    };
    let version = view
        .nvidia_loaded_version()
        .into_got()
        .map(|(version, _)| version);
    let folder = format!("/lib/firmware/nvidia/{}", version.unwrap_or("VERSION"));
    let finding = Finding::new("NVIDIA's driver did not find the firmware that it starts GPUs with")
        .saw(view.log_source(), event.says())
        .why("A GPU whose own processor has no firmware is not brought up, and nvidia-smi does not list it");
    let finding = match files {
        Seen::Absent => finding.saw(&folder, "does not exist"),
        Seen::Got(files) if files.whole && files.items.is_empty() => {
            finding.saw(&folder, "holds no gsp firmware")
        }
        // Where the module is loaded from the initramfs the file may be missing there, and be found later.
        _ if said.iter().any(|(gpu, _)| view.nvml_misses(gpu)) => finding
            .saw(
                "nvmlDeviceGetHandleByPciBusId_v2()",
                "NVML does not list this GPU",
            )
            .likely(),
        other => {
            return Verdict::cannot_tell(
                format!(
                    "the kernel log has `{}`; whether the file was found since: NVML {}, {folder} {}",
                    event.says(),
                    view.facts.nvml.as_ref().map(|_| ()).why(),
                    other.map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    };
    let finding = match said.len() < held.len() {
        true => finding.only_gpus(said.iter().map(|(gpu, _)| gpu.key.clone()).collect()),
        false => finding,
    };
    let branch = version
        .and_then(Version::parse)
        .and_then(|version| version.major())
        .map_or_else(String::new, |branch| branch.to_string());
    finding
        .fix(
            FixCall::new("install-gsp-firmware")
                .with("version", version.unwrap_or("VERSION"))
                .with("branch", branch),
        )
        .into()
}

/// An error other than ENOENT is no missing file: a process that was killed while it loaded, for one.
fn is_missing(event: &Event) -> bool {
    match &event.kind {
        Kind::GspFirmwareMissing => true,
        Kind::FirmwareFailed { file, error } => {
            *error == Some(ENOENT) && file.starts_with("nvidia/") && {
                let name = file.rsplit('/').next().unwrap_or_default();
                // nouveau and nova have folders by chip, with names of their own.
                let folder = file.split('/').nth(1).unwrap_or_default();
                name.starts_with("gsp") && folder.starts_with(|c: char| c.is_ascii_digit())
            }
        }
        _ => false,
    }
}
