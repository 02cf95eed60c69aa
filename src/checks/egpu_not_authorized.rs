//! A device on a Thunderbolt or USB4 cable was not let in.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::gpu_switches::ThunderboltDevice;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View, Wanted};

crate::check! {
    /// A Thunderbolt or USB4 device is plugged in, and nobody has let it in: what is behind it is not on the PCI bus.
    ///
    /// ## Why it matters
    /// A GPU in an enclosure that is not authorized does not exist for the kernel and for every tool. The screen and USB of a dock work
    /// all the same.
    ///
    /// ## How it comes about
    /// Devices on such cables can read the memory of the machine, so by default the user is asked. On a server, or before somebody
    /// logs in, nobody is there to ask; the question may have been dismissed, or `bolt` is not installed. What the device
    /// is cannot be seen from here: a GPU may be in it, or none. It is an error only where its name tells of graphics.
    ///
    /// ## How to confirm
    /// `boltctl list` shows `status: connected` and no `authorized` time;
    /// `grep . /sys/bus/thunderbolt/devices/*/authorized` says 0.
    "egpu-not-authorized", Bus, Error, each Machine, run
}

const FOLDER: &str = "/sys/bus/thunderbolt/devices";
const WOULD_TELL: &str = "`boltctl list`, or `grep . /sys/bus/thunderbolt/devices/*/authorized`";
/// What enclosures for GPUs have in their names.
const GRAPHICS: [&str; 5] = ["egpu", "egfx", "graphics", "gpu", "gaming box"];

fn run(view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.in_container() || view.hypervisor().is_some() {
        return Verdict::NotHere;
    }
    let devices = match &view.facts.gpu_switches {
        Seen::Got(switches) => &switches.thunderbolt,
        // Nobody asks where nothing tells of a GPU.
        other => return unknown(other.as_ref().map(|_| ())),
    };
    let devices = match devices {
        Seen::Got(devices) => devices,
        Seen::Absent => return Verdict::NotHere,
        other => return unknown(other.as_ref().map(|_| ())),
    };
    let shut = devices
        .items
        .iter()
        .filter(|(_, device)| device.authorized.got().is_some_and(|is| is == "0"));
    // That with the name that tells most.
    if let Some((name, device)) = shut.max_by_key(|(_, device)| is_for_graphics(device)) {
        return found(name, device, view).into();
    }
    let unread = devices
        .items
        .iter()
        .find(|(_, device)| device.authorized.is_unknown());
    match unread {
        Some((name, device)) => Verdict::cannot_tell(
            format!("{FOLDER}/{name}/authorized: {}", device.authorized.why()),
            WOULD_TELL,
        ),
        None if !devices.whole => Verdict::cannot_tell(
            format!("{FOLDER}: not all of it could be listed"),
            WOULD_TELL,
        ),
        None if devices.items.is_empty() => Verdict::NotHere,
        None => Verdict::fine("every device on a Thunderbolt or USB4 cable is authorized"),
    }
}

fn unknown(answer: Seen<()>) -> Verdict {
    match answer {
        Seen::Absent | Seen::Unasked(crate::facts::Why::NoSuchHardware) => Verdict::NotHere,
        other => Verdict::cannot_tell(format!("{FOLDER}: {}", other.why()), WOULD_TELL),
    }
}

fn is_for_graphics(device: &ThunderboltDevice) -> bool {
    let name = device.name.got().map(|name| name.to_lowercase());
    name.is_some_and(|name| GRAPHICS.iter().any(|word| name.contains(word)))
}

fn found(name: &str, device: &ThunderboltDevice, view: &View) -> Finding {
    let called: Vec<&str> = [&device.vendor, &device.name]
        .into_iter()
        .filter_map(|part| part.got().map(String::as_str))
        .filter(|part| !part.is_empty())
        .collect();
    // Somebody wants a GPU that is not here.
    let missed = Stack::ALL.into_iter().find(|stack| {
        view.gpus_whole
            && view.gpus_of(*stack).next().is_none()
            && matches!(view.wanted(*stack), Wanted::Yes(_))
    });
    let severity = match (is_for_graphics(device), missed) {
        (true, _) => Severity::Error,
        (false, Some(_)) => Severity::Warning,
        (false, None) => Severity::Note,
    };
    let title = match called.is_empty() {
        true => "a Thunderbolt or USB4 device is not authorized".to_owned(),
        false => format!("{} is plugged in and not authorized", called.join(" ")),
    };
    let mut finding = Finding::new(title)
        .severity(severity)
        .about(missed)
        .saw(format!("{FOLDER}/{name}/authorized"), "0");
    if !called.is_empty() {
        finding = finding.saw(format!("{FOLDER}/{name}/device_name"), called.join(" "));
    }
    finding
        // Whether a GPU is in it cannot be seen.
        .likely()
        // What is on the bus works.
        .works_all_the_same()
        .why("If a GPU is in it, it is not on the bus, and nothing can use it until the device is authorized")
        .fix(FixCall::new("authorize-thunderbolt"))
}
