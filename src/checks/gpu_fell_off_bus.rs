//! A GPU does not answer on the PCI bus any more, or is gone from it.

use crate::check::Verdict;
use crate::facts::pci::{PciDetail, PciFunction};
use crate::facts::{Seen, Why};
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::{Event, Kind};
use crate::view::{Gpu, Loaded, Vendor, View};
use std::mem::discriminant;

crate::check! {
    /// A GPU that should be awake no longer answers on the PCI bus, or it has vanished from the bus while its driver still
    /// knows it.
    ///
    /// ## Why it matters
    /// Nothing can use such a GPU. Programs that were using it hang or fail, and asking the driver about it may block for
    /// a long time. Neither loading the driver anew nor installing another one brings it back.
    ///
    /// ## How it comes about
    /// The PCIe link died: too little power at a peak of load, a loose cable or card, a riser, heat, a link that is not
    /// stable at its highest speed, a bug of power management or firmware. Or an external GPU was unplugged while in use.
    /// A GPU that sleeps looks the same and is healthy; it is not judged. A GPU may also have been dead when its driver looked
    /// at it first (`lost-at-probe`); then the bus may answer all the same, and the kernel log alone tells.
    ///
    /// ## How to confirm
    /// `lspci -s ADDRESS -x` prints nothing but `ff` for a GPU that does not answer. `sudo journalctl -k -g 'Xid.*79|fallen off'` and
    /// `sudo journalctl -k -g pciehp` tell when it happened. `vendor` and `device` in sysfs tell nothing: the kernel keeps a copy.
    "gpu-fell-off-bus", Bus, Error, each Gpu, run
}

const WOULD_TELL: &str = "the kernel log around the time (`sudo journalctl -k -b`)";

const UNUSABLE: &str =
    "Nothing can use it until it has been without power: programs that ask for it hang or fail";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if gpu.remembered {
        return gone(gpu, view);
    }
    let Some(address) = &gpu.pci else {
        // Under WSL the GPU is on no bus of this side.
        return Verdict::NotHere;
    };
    let config_path = format!("/sys/bus/pci/devices/{address}/config");
    let ask_again = format!("`lspci -s {address} -x`");
    let function = view.facts.pci.entry(address);
    let Some(detail) = function
        .got()
        .and_then(|function| function.detail.as_deref())
    else {
        let why = function.map(|_| ()).why();
        return Verdict::cannot_tell(format!("{config_path}: {why}"), ask_again);
    };
    if sleeps(detail) {
        return Verdict::fine(format!(
            "asleep or switched off, which is no loss ({})",
            power(detail)
        ));
    }
    let config = match &detail.config {
        Seen::Got(config) => config,
        other => {
            return Verdict::cannot_tell(format!("{config_path}: {}", other.why()), ask_again);
        }
    };
    if !is_all_ones(config) {
        return answers(gpu, address, view);
    }
    // bbswitch turns an unused GPU off behind the kernel's back, which then takes it for awake.
    if gpu.driver.is_absent() && matches!(view.loaded("bbswitch"), Loaded::Yes(_)) {
        return Verdict::cannot_tell(
            format!("{config_path} is all ones, and bbswitch may have switched this GPU off"),
            "`cat /proc/acpi/bbswitch`",
        );
    }
    // Only a device that the kernel takes for awake is lost when it does not answer.
    match &detail.runtime_status {
        Seen::Got(status) if status == "active" || status == "unsupported" => {}
        Seen::Absent => {}
        other => {
            let status = other.got().cloned().unwrap_or_else(|| other.why());
            return Verdict::cannot_tell(
                format!(
                    "{config_path} is all ones, and whether the GPU sleeps is not known (runtime_status: {status})"
                ),
                format!(
                    "`cat /sys/bus/pci/devices/{address}/power/runtime_status`, then {ask_again}"
                ),
            );
        }
    }
    lost(gpu, address, detail, &config_path, view)
}

/// A GPU whose config space answers. NVIDIA's driver reads a register of the GPU itself before it takes one, and says in the
/// kernel log alone that it got nothing.
fn answers(gpu: &Gpu, address: &str, view: &View) -> Verdict {
    const FINE: &str = "its config space answers";
    if gpu.vendor != Vendor::Nvidia {
        return match view.log_of(gpu).find(|event| is_loss(event)) {
            // It may have come back since.
            Some(lost) => Verdict::cannot_tell(
                format!(
                    "{FINE}, but the kernel log has `{}` since the driver was loaded",
                    lost.says()
                ),
                WOULD_TELL,
            ),
            None => Verdict::fine(FINE),
        };
    }
    if gpu.driver.is_absent() {
        if view
            .log_of(gpu)
            .any(|event| event.kind == Kind::LostAtProbe)
        {
            return log_evidence(lost_at_probe(view), gpu, view)
                .saw(
                    format!("/sys/bus/pci/devices/{address}/driver"),
                    "does not exist: the driver did not take it",
                )
                .into();
        }
        // Where the module is not loaded, nobody has looked.
        let tells = view.log_tells();
        if tells.is_unknown() && matches!(view.loaded("nvidia"), Loaded::Yes(_)) {
            return Verdict::cannot_tell(
                format!(
                    "{FINE}, but the driver did not take it, and whether it got an answer stands in the kernel log alone: {}",
                    tells.why()
                ),
                WOULD_TELL,
            );
        }
        return Verdict::fine(FINE);
    }
    if let Some(verdict) = nvml_lost(gpu, address, view) {
        return verdict;
    }
    let Some(lost) = view.log_of(gpu).find(|event| is_loss(event)) else {
        return Verdict::fine(FINE);
    };
    match &view.facts.nvml {
        // It was reset, or plugged in again.
        Seen::Got(nvml) if nvml.devices.contains_key(address) => {
            Verdict::fine(format!("{FINE}, and NVML reaches it"))
        }
        // All of the library's devices fail so when one is lost, so the log must name this one.
        Seen::Failed(failure) if failure.to_string().contains(NVML_LOST) => {
            lost_to_driver("nvmlInit_v2()", NVML_LOST, gpu, view).into()
        }
        other => Verdict::cannot_tell(
            format!(
                "{FINE}, but the kernel log has `{}` since the driver was loaded (NVML: {})",
                lost.says(),
                other.as_ref().map(|_| ()).why()
            ),
            format!("`nvidia-smi -i {address}`"),
        ),
    }
}

/// NVML's name for a GPU that it has lost.
const NVML_LOST: &str = "GPU_IS_LOST";

fn lost_to_driver(call: &str, says: &str, gpu: &Gpu, view: &View) -> Finding {
    let finding = Finding::new("the driver lost the GPU, although its config space answers")
        .cause("link-lost")
        .saw(call, says);
    log_evidence(finding, gpu, view)
        .why(UNUSABLE)
        .fix(without_power(view))
}

/// What NVML says of a GPU that it has lost: of one that it lists, or of one for which it gives no device.
fn nvml_lost(gpu: &Gpu, address: &str, view: &View) -> Option<Verdict> {
    let found = |call: &str| lost_to_driver(call, &format!("{NVML_LOST} for {address}"), gpu, view);
    if view.nvml_refusal(gpu) == Some(NVML_LOST) {
        return Some(found("nvmlDeviceGetMemoryInfo()").into());
    }
    let nvml = view.facts.nvml.got()?;
    let lost = nvml
        .unreachable
        .values()
        .filter(|error| *error == NVML_LOST);
    let lost = lost.count();
    if lost == 0 || nvml.devices.contains_key(address) {
        return None;
    }
    // NVML gives no address for it: where as many GPUs are missing, it is these.
    let missing = view
        .gpus
        .iter()
        .filter(|gpu| gpu.is_held_by("nvidia") && view.nvml_device(gpu).is_none());
    let finding = found("nvmlDeviceGetHandleByIndex_v2()");
    Some(if missing.count() == lost {
        finding.into()
    } else {
        finding.likely().into()
    })
}

/// The driver lost it while it had it.
fn is_loss(event: &Event) -> bool {
    matches!(
        event.kind,
        Kind::Xid { number: 79, .. } | Kind::FellOffBus | Kind::DeviceLost
    )
}

/// Adds what the kernel log says of the loss; the first line of each kind is enough.
fn log_evidence(mut finding: Finding, gpu: &Gpu, view: &View) -> Finding {
    let mut told = Vec::new();
    for event in view.log_of(gpu) {
        let kind = discriminant(&event.kind);
        if (is_loss(event) || event.kind == Kind::LostAtProbe) && !told.contains(&kind) {
            told.push(kind);
            finding = finding.saw(view.log_source(), event.says());
        }
    }
    finding
}

/// Inside a virtual machine nobody reaches cables and slots.
fn without_power(view: &View) -> FixCall {
    FixCall::new(match view.hypervisor() {
        Some(_) => "redeploy-instance",
        None => "power-cycle-and-reseat",
    })
}

fn lost_at_probe(view: &View) -> Finding {
    Finding::new("the GPU gave no answer when the driver looked at it first")
        .cause("lost-at-probe")
        .why(UNUSABLE)
        .fix(without_power(view))
}

/// Asleep, or on its way there, or switched off behind the back of runtime power management.
fn sleeps(detail: &PciDetail) -> bool {
    let status = detail.runtime_status.got().map(String::as_str);
    let deep = detail
        .power_state
        .got()
        .is_some_and(|state| state.starts_with("D3"));
    matches!(status, Some("suspended" | "suspending"))
        || (deep && detail.config == Seen::Unasked(Why::Asleep))
}

fn power(detail: &PciDetail) -> String {
    match (&detail.runtime_status, &detail.power_state) {
        (Seen::Got(status), Seen::Got(state)) => format!("runtime_status {status}, {state}"),
        (Seen::Got(status), _) => format!("runtime_status {status}"),
        (_, Seen::Got(state)) => format!("power_state {state}"),
        _ => "power state not known".to_owned(),
    }
}

/// Nothing but `ff`, in hexadecimal.
fn is_all_ones(config: &str) -> bool {
    config.len() >= 8 && config.bytes().all(|digit| digit == b'f')
}

fn lost(gpu: &Gpu, address: &str, detail: &PciDetail, config_path: &str, view: &View) -> Verdict {
    // A bridge that is gone takes all below along: the topmost one is where to look.
    let dead_bridge = gpu
        .upstream
        .iter()
        .rev()
        .find(|bridge| function(view, bridge).is_some_and(is_silent_bridge));
    let title = match dead_bridge {
        Some(bridge) => {
            format!(
                "the GPU does not answer on the bus, and neither does the PCIe bridge {bridge} above it"
            )
        }
        None => "the GPU does not answer on the bus although it counts as awake".to_owned(),
    };
    let at_probe = gpu.driver.is_absent()
        && view
            .log_of(gpu)
            .any(|event| event.kind == Kind::LostAtProbe);
    let mut finding = Finding::new(title)
        .cause(if at_probe {
            "lost-at-probe"
        } else {
            "link-lost"
        })
        .saw(config_path, "reads all ones: no device answers")
        .saw_answer(
            format!("/sys/bus/pci/devices/{address}/power/runtime_status"),
            &detail.runtime_status,
        );
    if let Some(bridge) = dead_bridge {
        finding = finding.saw(
            format!("/sys/bus/pci/devices/{bridge}/config"),
            "reads all ones: no device answers",
        );
    }
    if let Some(evidence) = view.unread_uuid(gpu) {
        finding = finding.saw(evidence.source, evidence.says);
    }
    log_evidence(finding, gpu, view)
        .why(UNUSABLE)
        .fix(without_power(view))
        .into()
}

fn function<'v>(view: &'v View, address: &str) -> Option<&'v PciFunction> {
    view.facts.pci.entry(address).into_got()
}

fn is_silent_bridge(bridge: &PciFunction) -> bool {
    bridge.detail.as_deref().is_some_and(|detail| {
        !sleeps(detail)
            && detail
                .config
                .got()
                .is_some_and(|config| is_all_ones(config))
    })
}

/// A GPU that a driver still lists and that is not on the bus, which was read whole.
fn gone(gpu: &Gpu, view: &View) -> Verdict {
    let (source, address) = match remembered_at(gpu, view) {
        Ok(found) => found,
        Err(why) => return Verdict::cannot_tell(why, WOULD_TELL),
    };
    let removable = removable_port(&address, view);
    let (cause, title) = if removable.is_some() {
        (
            "egpu-unplugged",
            "an external GPU was unplugged while its driver held it",
        )
    } else {
        (
            "link-lost",
            "the GPU is gone from the bus while its driver still knows it",
        )
    };
    let mut finding = Finding::new(title)
        .cause(cause)
        .saw(source, "still listed by the driver")
        .saw(
            format!("/sys/bus/pci/devices/{address}"),
            "does not exist, and the bus was listed whole",
        );
    if let Some((bridge, says)) = removable {
        finding = finding.saw(format!("/sys/bus/pci/devices/{bridge}"), says);
    }
    finding = slot_evidence(finding, &address, view);
    let fix = if cause == "egpu-unplugged" {
        FixCall::new("egpu-replug")
    } else {
        without_power(view)
    };
    finding
        .why("Programs that were using it hang or fail, and the driver may need a restart of the machine")
        .fix(fix)
        .into()
}

/// Where the driver remembers the GPU, and its address. The error says why its absence from the bus is no proof.
fn remembered_at(gpu: &Gpu, view: &View) -> Result<(String, String), String> {
    if let Some(address) = gpu.key.strip_prefix("proc:") {
        let source = format!("/proc/driver/nvidia/gpus/{address}");
        return Ok((source, address.to_owned()));
    }
    let number = gpu.key.strip_prefix("kfd:").unwrap_or(&gpu.key);
    let source = format!("/sys/class/kfd/kfd/topology/nodes/{number}");
    let properties = view
        .facts
        .kfd
        .got()
        .and_then(|kfd| kfd.nodes.items.get(number)?.properties.got());
    let value = |name: &str| properties.and_then(|properties| properties.get(name).copied());
    let Some(location) = value("location_id") else {
        return Err(format!("{source}/properties: no location_id"));
    };
    let slot = format!(
        "{:02x}:{:02x}.",
        (location >> 8) & 0xff,
        (location >> 3) & 0x1f
    );
    let Some(domain) = value("domain") else {
        // Old kernels do not tell the domain: then the GPU may be the one at this slot of another domain.
        let elsewhere = view.facts.pci.items().any(|(address, _)| {
            address
                .split_once(':')
                .is_some_and(|(_, rest)| rest.starts_with(&slot))
        });
        if elsewhere {
            return Err(format!("{source}/properties: the PCI domain is not told"));
        }
        return Ok((source, format!("0000:{slot}0")));
    };
    Ok((source, format!("{domain:04x}:{slot}{:x}", location & 7)))
}

/// Adds what the kernel log says of the hot-plug slot that led to an address: the last line of each kind.
fn slot_evidence(mut finding: Finding, address: &str, view: &View) -> Finding {
    let Some((bridge, _)) = bridge_to(address, view) else {
        return finding;
    };
    for kind in [Kind::SlotLinkDown, Kind::SlotEmpty] {
        let mut of_slot = view.log_events.iter().rev();
        if let Some(event) = of_slot.find(|event| event.kind == kind && event.names(bridge)) {
            finding = finding.saw(view.log_source(), event.says());
        }
    }
    finding
}

/// The bridge right above an address. Bytes 25 and 26 of a bridge's config space are the first and the last bus below it.
fn bridge_to<'v>(address: &str, view: &'v View) -> Option<(&'v String, &'v PciFunction)> {
    let (domain, rest) = address.split_once(':')?;
    let bus = u8::from_str_radix(rest.get(..2)?, 16).ok()?;
    view.facts
        .pci
        .items()
        .filter(|(bridge, _)| bridge.split_once(':').is_some_and(|(own, _)| own == domain))
        .filter_map(|(bridge, function)| {
            let (first, last) = buses_below(function)?;
            (first..=last)
                .contains(&bus)
                .then_some((last - first, bridge, function))
        })
        .min_by_key(|(width, ..)| *width)
        .map(|(_, bridge, function)| (bridge, function))
}

/// The bridge that led to an address, where it or one above it is a port that devices may be pulled from.
fn removable_port(address: &str, view: &View) -> Option<(String, String)> {
    let (nearest, bridge) = bridge_to(address, view)?;
    let above = bridge
        .path
        .got()
        .into_iter()
        .flat_map(|path| path.rsplit('/'))
        .chain([nearest.as_str()]);
    above
        .filter_map(|name| Some((name, function(view, name)?.detail.as_deref()?)))
        .find(|(_, detail)| detail.removable.got().map(String::as_str) == Some("removable"))
        .map(|(name, _)| (name.to_owned(), "removable: removable".to_owned()))
}

fn buses_below(function: &PciFunction) -> Option<(u8, u8)> {
    if function.class.got()? >> 8 != 0x0604 {
        return None;
    }
    let config = function.detail.as_deref()?.config.got()?;
    let byte = |index: usize| u8::from_str_radix(config.get(2 * index..2 * index + 2)?, 16).ok();
    let (first, last) = (byte(25)?, byte(26)?);
    (first > 0 && first <= last && !is_all_ones(config)).then_some((first, last))
}
