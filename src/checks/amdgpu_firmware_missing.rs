//! The kernel did not find a firmware file for an AMD GPU.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{AmdgpuGround, Gpu, Loaded, MissingFirmware, View};

crate::check! {
    /// The kernel did not find a firmware file that amdgpu asked for.
    ///
    /// ## Why it matters
    /// Most blocks of an AMD GPU run firmware that the driver loads at each start. Without a file that it needs the driver gives
    /// the GPU up: no display beyond what the firmware of the machine left there, no Vulkan, no ROCm. Files that it only asks
    /// for, such as the applications of the security processor, may be missing.
    ///
    /// ## How it comes about
    /// The GPU is newer than the firmware package, Debian was installed without `non-free-firmware`, or the initramfs was built
    /// before the package came and holds no copy.
    ///
    /// ## How to confirm
    /// `sudo journalctl -k -b -g firmware` names the file; `ls /lib/firmware/amdgpu` shows what is there, packed as `.xz` or
    /// `.zst` too, and `lsinitramfs` or `lsinitrd` what the initramfs holds.
    "amdgpu-firmware-missing", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let bound = match view.amdgpu_ground(gpu) {
        AmdgpuGround::Holds => true,
        AmdgpuGround::Free => false,
        AmdgpuGround::NotHere | AmdgpuGround::Other(_) => return Verdict::NotHere,
        AmdgpuGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    };
    // What the driver needs comes first; of one kind the first file is where it stopped.
    let missing = view.missing_firmware(gpu);
    let first = missing.min_by_key(|missing| missing.optional);
    let failed = view.amdgpu_failures(gpu).next().is_some();
    match first {
        Some(missing) if bound => return optional(gpu, &missing, view),
        // Then something else keeps the driver away.
        Some(missing) if missing.optional => {
            return Verdict::fine(format!(
                "{} is missing, and amdgpu does without",
                missing.file
            ));
        }
        Some(missing) if failed => return needed(gpu, &missing, view),
        Some(missing) => {
            return Verdict::cannot_tell(
                format!(
                    "{} is missing, and no line says whether that is why no driver holds the GPU",
                    missing.file
                ),
                "`sudo journalctl -k -b -g amdgpu` after `sudo modprobe amdgpu`",
            );
        }
        None => {}
    }
    if !bound && matches!(view.loaded("amdgpu"), Loaded::No(_)) {
        return Verdict::NotHere;
    }
    match view.log_tells() {
        Seen::Got(()) => {
            Verdict::fine("no line of the kernel log names a firmware file that was missing")
        }
        other => Verdict::cannot_tell(
            format!(
                "the kernel log, which alone names such a file: {}",
                other.why()
            ),
            "`sudo journalctl -k -b -g firmware`",
        ),
    }
}

fn needed(gpu: &Gpu, first: &MissingFirmware, view: &View) -> Verdict {
    let title = format!(
        "amdgpu gave this GPU up: the firmware file {} is missing",
        first.file
    );
    let mut finding = files(Finding::new(title), gpu, view);
    if let Some(failure) = view.amdgpu_failures(gpu).next() {
        finding = finding.saw(view.log_source(), failure.says());
    }
    finding
        .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
        .why("Without this file the driver cannot start the GPU")
        .fix(view.driver_fix(FixCall::new("install-amdgpu-firmware")))
        .into()
}

fn optional(gpu: &Gpu, first: &MissingFirmware, view: &View) -> Verdict {
    let title = format!("the firmware file {} was not found", first.file);
    files(Finding::new(title).severity(Severity::Note), gpu, view)
        .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
        .why("amdgpu holds the GPU all the same, so it does without this file; newer firmware may bring it")
        .fix(view.driver_fix(FixCall::new("install-amdgpu-firmware")))
        .into()
}

/// Adds the line of each file.
fn files(mut finding: Finding, gpu: &Gpu, view: &View) -> Finding {
    let mut told: Vec<&str> = Vec::new();
    for missing in view.missing_firmware(gpu) {
        if !told.contains(&missing.file) {
            told.push(missing.file);
            finding = finding.saw(view.log_source(), missing.says.says());
        }
    }
    finding
}
