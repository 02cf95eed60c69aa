//! A virtual GPU has no licence.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, NvmlGround, View};

crate::check! {
    /// This is a virtual GPU of NVIDIA, and it has no licence.
    ///
    /// ## Why it matters
    /// A virtual GPU starts at full speed. Without a licence it is slowed down soon, and after some time CUDA refuses programs
    /// (46, `all CUDA-capable devices are busy or unavailable`), while `nvidia-smi` looks healthy.
    ///
    /// ## How it comes about
    /// The service nvidia-gridd fetches the licence with the token in /etc/nvidia/ClientConfigToken. The token is missing or has
    /// expired, the server does not answer, the clock is wrong, or the service does not run. A GPU that was passed through as a
    /// whole needs none.
    ///
    /// ## How to confirm
    /// `nvidia-smi -q | grep -A2 'vGPU Software Licensed Product'` and `sudo journalctl -u nvidia-gridd`.
    "nvidia-vgpu-unlicensed", Runtime, Error, each Gpu, run
}

const WOULD_TELL: &str = "`nvidia-smi -q | grep License`";
const UNIT: &str = "nvidia-gridd.service";
/// Minutes after the boot within which the service may still be fetching the licence, and nothing is slowed down.
const GRACE_MINUTES: u64 = 20;

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let device = match view.nvml_ground(gpu) {
        NvmlGround::Says(device) => device,
        NvmlGround::Unknown(why) if view.hypervisor().is_some() => {
            return Verdict::cannot_tell(why, WOULD_TELL);
        }
        _ => return Verdict::NotHere,
    };
    match &device.licence.0 {
        Seen::Got(state) if state == "unlicensed" => {}
        Seen::Got(_) => return Verdict::fine("this virtual GPU has a licence"),
        unknown if unknown.says("NOT_SUPPORTED") => return Verdict::NotHere,
        Seen::Failed(failure) => {
            return Verdict::cannot_tell(
                format!("whether it needs a licence: {failure}"),
                WOULD_TELL,
            );
        }
        _ => return Verdict::NotHere,
    }
    let mut finding = Finding::new("this virtual GPU has no licence: CUDA is slowed down, then refused")
        .saw("nvmlDeviceGetVirtualizationMode()", "a virtual GPU")
        .saw("nvmlDeviceGetGridLicensableFeatures_v4()", "no feature is licensed")
        .why("It starts at full speed, is slowed down soon, and after some time no program may use it any more");
    let services = view.facts.services.got();
    match services.and_then(|services| services.units.get(UNIT)) {
        Some(Seen::Absent) => {
            finding = finding.saw("/usr/lib/systemd/system", format!("no {UNIT}"))
        }
        Some(Seen::Got(unit)) if unit.running.is_absent() => {
            finding = finding.saw(&unit.file, "does not run");
        }
        _ => {}
    }
    let uptime = view
        .facts
        .kernel
        .got()
        .and_then(|kernel| kernel.uptime_seconds.got());
    match uptime {
        Some(seconds) if *seconds < GRACE_MINUTES * 60 => finding.severity(Severity::Warning).saw(
            "/proc/uptime",
            format!("{} minutes since the boot", seconds / 60),
        ),
        _ => finding,
    }
    .fix(FixCall::new("license-vgpu"))
    .into()
}
