//! A GPU may draw less power than it comes with.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, NvmlGround, Vendor, View};

crate::check! {
    /// The power limit of the GPU is below the one that it comes with.
    ///
    /// ## Why it matters
    /// Under load it lowers its clocks sooner, so it computes slower than it could.
    ///
    /// ## How it comes about
    /// Somebody set it (`nvidia-smi -pl`, a tool for fans and clocks, a service at boot), often on purpose: for the power supply,
    /// for less heat or noise. Or the machine's firmware or an older driver sets a wrong one. GPUs of laptops are not judged:
    /// there the limit follows the temperature and the power supply.
    ///
    /// ## How to confirm
    /// `nvidia-smi -q -d POWER`; for AMD compare `power1_cap` with `power1_cap_default` in
    /// `/sys/bus/pci/devices/ADDRESS/hwmon/hwmon*/`.
    "power-limit-below-default", Health, Warning, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if gpu.integrated == Some(true) || view.is_of_laptop(gpu) == Seen::Got(true) {
        return Verdict::NotHere;
    }
    let verdict = match gpu.vendor {
        Vendor::Nvidia => of_nvidia(gpu, view),
        Vendor::Amd => of_amd(gpu, view),
        Vendor::Intel | Vendor::Other => Verdict::NotHere,
    };
    match (&verdict, view.is_of_laptop(gpu)) {
        (Verdict::Found(_), unknown) if unknown.is_unknown() => Verdict::cannot_tell(
            "its power limit is below the default, as that of a laptop may be; what kind of machine this is is not known",
            "`cat /sys/class/dmi/id/chassis_type`",
        ),
        _ => verdict,
    }
}

fn of_nvidia(gpu: &Gpu, view: &View) -> Verdict {
    const ASK: &str = "`nvidia-smi -q -d POWER`";
    const LIMIT: &str = "nvmlDeviceGetEnforcedPowerLimit()";
    const DEFAULT: &str = "nvmlDeviceGetPowerManagementDefaultLimit()";
    let device = match view.nvml_ground(gpu) {
        NvmlGround::Says(device) => device,
        NvmlGround::NotHere => return Verdict::NotHere,
        NvmlGround::Unknown(why) => return Verdict::cannot_tell(why, ASK),
    };
    let (limit, default) = (&device.power_limit_mw.0, &device.power_limit_default_mw.0);
    match (limit, default) {
        (Seen::Got(limit), Seen::Got(default)) => judge(
            (LIMIT, limit / 1000),
            (DEFAULT, default / 1000),
            FixCall::new("set-nvidia-power-limit").with("name", &gpu.key),
        ),
        (told, other) => {
            let unknown = if told.got().is_some() { other } else { told };
            match unknown.says("NOT_SUPPORTED") {
                true => Verdict::NotHere,
                false => Verdict::cannot_tell(format!("power limits: {}", unknown.why()), ASK),
            }
        }
    }
}

fn of_amd(gpu: &Gpu, view: &View) -> Verdict {
    let folder = format!(
        "/sys/bus/pci/devices/{}/hwmon",
        gpu.pci.as_deref().unwrap_or(&gpu.key)
    );
    let (folder, sensors) = match view.sensors_of(gpu) {
        Seen::Got(found) => found,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("{folder}: {}", other.map(|_| ()).why()),
                format!("`grep . {folder}/hwmon*/power1_cap*`"),
            );
        }
    };
    // In microwatts; 0 stands for no limit of its own.
    let watts = |name: &str| {
        let value = sensors.get(name).filter(|value| **value > 0)?;
        u64::try_from(value / 1_000_000).ok()
    };
    let (Some(limit), Some(default)) = (watts("power1_cap"), watts("power1_cap_default")) else {
        return Verdict::NotHere;
    };
    judge(
        (&format!("{folder}/power1_cap"), limit),
        (&format!("{folder}/power1_cap_default"), default),
        FixCall::new("set-amd-power-limit").with("file", format!("{folder}/power1_cap")),
    )
}

/// Limits in watts, each with its source.
fn judge(limit: (&str, u64), default: (&str, u64), fix: FixCall) -> Verdict {
    let (limit_source, limit) = limit;
    let (default_source, default) = default;
    // Some round one of them.
    if limit + 1 >= default {
        return Verdict::fine(format!("{limit} W, and it comes with {default} W"));
    }
    Finding::new(format!(
        "the power limit is {limit} W, and the card comes with {default} W"
    ))
    .works_all_the_same()
    .saw(limit_source, format!("{limit} W"))
    .saw(default_source, format!("{default} W"))
    .why("Under load it lowers its clocks sooner; all is well if somebody wants it so")
    .fix(fix.with("version", default.to_string()))
    .into()
}
