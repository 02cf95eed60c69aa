//! The scheduler firmware of a GPU is a release that hangs.

use crate::check::Verdict;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, View};

crate::check! {
    /// The firmware that schedules the queues of this GPU (MES) is the release that hangs under computing.
    ///
    /// ## Why it matters
    /// With it programs of ROCm end with page faults, or the GPU hangs and is reset. The display may look healthy.
    ///
    /// ## How it comes about
    /// linux-firmware of 2025-11-25 brought version 0x83 for Strix Point and Strix Halo; it was taken back some days later.
    /// Distributions that packaged that release, AMD's `amdgpu-dkms-firmware`, and an initramfs that was not rebuilt keep it.
    ///
    /// ## How to confirm
    /// `cat /sys/class/drm/card*/device/fw_version/mes_fw_version`: the last three digits are the version.
    "amdgpu-mes-firmware-bad", Driver, Error, each Gpu, run
}

/// Targets and the version of MES that hangs on them (ROCm/legacy-rocm-build issues 5724, 5616 and 5747).
const TARGETS: &[&str] = &["gfx1150", "gfx1151"];
const BAD: u64 = 0x83;
/// The version is in the low bits.
const VERSION: u64 = 0xfff;
const FILE: &str = "mes_fw_version";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let Some(address) = &gpu.pci else {
        return Verdict::NotHere;
    };
    let is_meant = gpu.target_may_accuse
        && gpu
            .target
            .as_deref()
            .is_some_and(|target| TARGETS.contains(&target));
    if !is_meant || view.wsl().is_some() || gpu.remembered || gpu.passed_in == Some(false) {
        return Verdict::NotHere;
    }
    if !gpu.is_held_by("amdgpu") {
        return Verdict::NotHere;
    }
    let path = format!("/sys/bus/pci/devices/{address}/fw_version/{FILE}");
    let device = view.amdgpu_device(gpu).into_got();
    let text = device.and_then(|device| device.firmware.get(FILE));
    let version = text.and_then(|text| {
        let digits = text.trim().strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    });
    let (Some(text), Some(version)) = (text, version) else {
        return Verdict::cannot_tell(
            "the version of the scheduler firmware is not known",
            format!("`cat {path}`"),
        );
    };
    if version & VERSION != BAD {
        return Verdict::fine(format!("{path}: {}", text.trim()));
    }
    let seen = view.seen_target(gpu);
    Finding::new("the scheduler firmware (MES) of this GPU is the release 0x83, which hangs")
        .saw(path, text.trim())
        .saw(seen.source, seen.says)
        .why("Programs that compute end with page faults or hang the GPU; the release before it and those after it do not")
        .fix(view.driver_fix(FixCall::new("install-amdgpu-firmware")))
        .into()
}
