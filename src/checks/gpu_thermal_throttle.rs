//! A GPU is too hot.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, NvmlGround, Vendor, View};
use std::collections::BTreeMap;

crate::check! {
    /// The GPU holds its clocks down because it is too hot, or its fan stands still while it is hot.
    ///
    /// ## Why it matters
    /// It computes slower than it could, and heat wears it out. Where the hardware itself steps in, clocks fall to a fraction.
    ///
    /// ## How it comes about
    /// Dust, a fan that failed, thermal paste that dried out, too little air in the case: a card without fans wants the air
    /// stream of a server. The limits are those that the GPU itself names. A GPU that is at its power limit, or idle, also
    /// lowers its clocks, and that is healthy. Fans that stand still on a cool card are, too.
    ///
    /// ## How to confirm
    /// `nvidia-smi -q -d TEMPERATURE,PERFORMANCE` while it computes; for AMD and Intel `sensors`.
    "gpu-thermal-throttle", Health, Warning, each Gpu, run
}

const REASONS: &str = "nvmlDeviceGetCurrentClocksThrottleReasons()";
/// No GPU is told to slow down below, in degrees Celsius: a lower limit is none.
const LOWEST_LIMIT: u32 = 60;
const ASK_NVIDIA: &str = "`nvidia-smi -q -d TEMPERATURE,PERFORMANCE`";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if gpu.asleep == Some(true) {
        return Verdict::fine("asleep, so it is not hot");
    }
    match gpu.vendor {
        Vendor::Nvidia => of_nvidia(gpu, view),
        Vendor::Amd | Vendor::Intel => by_sensors(gpu, view),
        Vendor::Other => Verdict::NotHere,
    }
}

fn found(title: &str, cause: &'static str) -> Finding {
    let finding = Finding::new(title)
        .cause(cause)
        .why("It computes slower than it could, and heat wears it out")
        .fix(FixCall::new("cool-gpu"));
    match cause {
        "software" => finding.works_all_the_same(),
        _ => finding.severity(Severity::Error),
    }
}

fn of_nvidia(gpu: &Gpu, view: &View) -> Verdict {
    let device = match view.nvml_ground(gpu) {
        NvmlGround::Says(device) => device,
        NvmlGround::NotHere => return Verdict::NotHere,
        NvmlGround::Unknown(why) => return Verdict::cannot_tell(why, ASK_NVIDIA),
    };
    let temperature = device.temperature_c.got();
    let with_heat = |finding: Finding| match temperature {
        Some(celsius) => finding.saw(
            "nvmlDeviceGetTemperature()",
            format!("{celsius} degrees Celsius"),
        ),
        None => finding,
    };
    let reasons = device.throttle_reasons.0.as_ref();
    let held = |reason: &str| {
        reasons
            .got()
            .is_some_and(|all| all.iter().any(|one| one == reason))
    };
    if held("hw_thermal_slowdown") {
        let title = "the hardware holds the clocks down: the GPU is too hot";
        return with_heat(found(title, "hardware").saw(REASONS, "hw_thermal_slowdown")).into();
    }
    if let (Some(celsius), Some(limit)) = (temperature, device.slowdown_c.got())
        && *limit >= LOWEST_LIMIT
        && celsius >= limit
    {
        let title = "the GPU is as hot as it may be before the hardware slows it down";
        return with_heat(found(title, "hardware").likely())
            .saw(
                "nvmlDeviceGetTemperatureThreshold()",
                format!("{limit} degrees Celsius"),
            )
            .into();
    }
    if held("sw_thermal_slowdown") {
        let title = "the driver holds the clocks down: the GPU is hot";
        let finding = with_heat(found(title, "software").saw(REASONS, "sw_thermal_slowdown"));
        // That of a laptop is meant to run at this limit.
        return match view.is_of_laptop(gpu) {
            Seen::Got(false) => finding,
            _ => finding.severity(Severity::Note),
        }
        .into();
    }
    match (reasons, temperature) {
        (Seen::Got(_), Some(celsius)) => Verdict::fine(format!(
            "heat does not hold its clocks down ({celsius} degrees Celsius)"
        )),
        (Seen::Got(_), None) => Verdict::fine("heat does not hold its clocks down"),
        (told, _) if told.says("NOT_SUPPORTED") => Verdict::NotHere,
        (told, _) => {
            Verdict::cannot_tell(format!("{REASONS}: {}", told.map(|_| ()).why()), ASK_NVIDIA)
        }
    }
}

/// From here on a fan must turn, in millidegrees.
const HOT: i64 = 90_000;

fn by_sensors(gpu: &Gpu, view: &View) -> Verdict {
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
                "`sensors`",
            );
        }
    };
    let temperatures: Vec<(&str, i64)> = sensors
        .iter()
        .filter_map(|(name, value)| Some((name.strip_suffix("_input")?, *value)))
        .filter(|(name, _)| name.starts_with("temp"))
        .collect();
    let degrees = |value: i64| format!("{} degrees Celsius", value / 1000);
    let hottest = temperatures.iter().max_by_key(|(_, value)| *value);
    let Some((name, value)) = hottest else {
        return Verdict::NotHere;
    };
    // What counts the fans of a laptop is not the driver of its GPU.
    let has_own_fan = view.is_of_laptop(gpu) == Seen::Got(false) && !gpu.data_centre;
    if *value >= HOT && stands_still(sensors) && gpu.integrated == Some(false) && has_own_fan {
        return found("the fan stands still while the GPU is hot", "fan-stopped")
            .likely()
            .why("A fan that stands still at such heat is blocked, unplugged, broken or switched off by a setting: the GPU gets hotter until it slows down or switches off")
            .saw(format!("{folder}/{name}_input"), degrees(*value))
            .saw(format!("{folder}/fan1_input"), "0 turns a minute")
            .into();
    }
    let over = temperatures.iter().find_map(|(name, value)| {
        let limit = *sensors.get(&format!("{name}_crit"))?;
        (limit > 0 && *value >= limit).then_some((name, value, limit))
    });
    if let Some((name, value, limit)) = over {
        return found("the GPU is as hot as it may be", "software")
            .saw(format!("{folder}/{name}_input"), degrees(*value))
            .saw(format!("{folder}/{name}_crit"), degrees(limit))
            .into();
    }
    Verdict::fine(format!("{} at its hottest sensor", degrees(*value)))
}

fn stands_still(sensors: &BTreeMap<String, i64>) -> bool {
    sensors.get("fan1_input") == Some(&0)
}
