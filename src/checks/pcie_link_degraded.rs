//! The PCIe link of a GPU is narrower or slower than card and slot allow.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, PcieLink, Vendor, View};

crate::check! {
    /// The PCIe link of the GPU has fewer lanes than both card and slot have, or stays slow while the GPU computes.
    ///
    /// ## Why it matters
    /// All that goes to the GPU and back goes over this link: loading a model, and everything that does not fit into its memory.
    /// A link that came up with too few lanes is often an unsteady one.
    ///
    /// ## How it comes about
    /// The card does not sit right in its slot, contacts or a riser are bad, or another device shares the lanes of the slot. GPUs
    /// lower the speed of the link while they are idle, never its width; so speed is judged under load alone. Where the slot has
    /// no more lanes, nothing is wrong. GPUs of laptops, of virtual machines and behind Thunderbolt are not judged, nor
    /// those that are part of the processor. Of cards that bring a switch along, the link between card and slot counts.
    ///
    /// ## How to confirm
    /// `sudo lspci -vv -s ADDRESS | grep -E 'LnkCap|LnkSta'` for the card and for the port above it (`lspci -t`).
    "pcie-link-degraded", Health, Warning, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if !gpu.is_on_bus()
        || view.wsl().is_some()
        || view.hypervisor().is_some()
        || gpu.integrated == Some(true)
        || view.external(gpu).got().is_some()
        || view.is_of_laptop(gpu) == Seen::Got(true)
    {
        return Verdict::NotHere;
    }
    let ask = format!("{} under load, and of the port above it", gpu.lspci());
    if gpu.asleep == Some(true) {
        return Verdict::cannot_tell("the GPU is asleep, and so is its link", ask);
    }
    let Some(link) = &gpu.link else {
        return Verdict::cannot_tell("the link between card and slot is not known", ask);
    };
    let (Some(width), Some(card)) = (link.width, link.max_width) else {
        return Verdict::cannot_tell(
            format!("the width of the link at {} is not known", link.hop),
            ask,
        );
    };
    if width >= card {
        return speed(gpu, link, width, view);
    }
    let port = view.port_above(gpu, &link.hop);
    let of_port = port.and_then(|port| {
        let detail = view.pci_detail(port)?;
        detail
            .max_link_width
            .got()
            .copied()
            .filter(|lanes| (1..=32).contains(lanes))
    });
    let (Some(port), Some(slot)) = (port, of_port) else {
        return Verdict::cannot_tell(
            format!(
                "the card has {card} lanes and uses {width}; how many the slot has is not known"
            ),
            ask,
        );
    };
    let most = card.min(slot);
    if width >= most {
        return speed(gpu, link, width, view);
    }
    if view.is_of_laptop(gpu).is_unknown() {
        return Verdict::cannot_tell(
            format!(
                "it uses {width} of {most} lanes; whether it is built into a laptop, whose maker may have wired no more, is not known"
            ),
            "`cat /sys/class/dmi/id/chassis_type`",
        );
    }
    let finding = Finding::new(format!(
        "the GPU uses {width} of the {most} PCIe lanes that card and slot have"
    ))
    .cause("width")
    .works_all_the_same()
    // A slot may have fewer contacts than its port has lanes.
    .likely()
    .saw(format!("/sys/bus/pci/devices/{}/current_link_width", link.hop), width.to_string())
    .saw(format!("/sys/bus/pci/devices/{}/max_link_width", link.hop), card.to_string())
    .saw(format!("/sys/bus/pci/devices/{port}/max_link_width"), slot.to_string())
    .why("What goes to the GPU and back takes longer, and a link that lost lanes is often an unsteady one")
    .fix(FixCall::new("reseat-card").with(
        "file",
        format!("/sys/bus/pci/devices/{}/current_link_width", link.hop),
    ));
    // Some processors split the lanes of a slot over several ports and still call each of them full.
    match width * 2 >= most && has_busy_sibling(port, view) {
        true => finding.severity(Severity::Note).into(),
        false => finding.into(),
    }
}

/// Another port of the same device of the processor has something below it.
fn has_busy_sibling(port: &str, view: &View) -> bool {
    let Some((device, _)) = port.rsplit_once('.') else {
        return false;
    };
    let is_sibling =
        |part: &str| part != port && part.rsplit_once('.').is_some_and(|(of, _)| of == device);
    view.facts.pci.items().any(|(_, function)| {
        let path = function.path.got().map_or("", String::as_str);
        path.rsplit('/').skip(1).any(is_sibling)
    })
}

/// Whether a link of full width stays slow while the GPU is busy.
fn speed(gpu: &Gpu, link: &PcieLink, width: u32, view: &View) -> Verdict {
    let slow = match gpu.vendor {
        Vendor::Nvidia => slow_nvidia(gpu, view),
        Vendor::Amd => slow_amd(gpu, link, view),
        Vendor::Intel | Vendor::Other => None,
    };
    let Some((is_very_slow, finding)) = slow else {
        return Verdict::fine(format!("{width} lanes, as many as card and slot have"));
    };
    let finding = finding
        .cause("speed")
        .works_all_the_same()
        // It was looked at once, and links retrain.
        .likely()
        .why("What goes to the GPU and back takes longer; a slower generation may also have been set on purpose")
        .fix(FixCall::new("retrain-link"));
    match is_very_slow {
        true => finding.into(),
        // Somebody may have set it, for a link that is not steady at its full speed.
        false => finding.severity(Severity::Note).into(),
    }
}

/// The first generations are what an idle link falls back to; nobody sets them.
fn slow_nvidia(gpu: &Gpu, view: &View) -> Option<(bool, Finding)> {
    let device = view.nvml_device(gpu)?;
    let state = device.performance_state.got()?;
    let (power, limit) = (device.power_mw.got()?, device.power_limit_mw.got()?);
    let (now, most) = (
        device.link_generation.got()?,
        device.max_link_generation.got()?,
    );
    let is_busy = matches!(state.as_str(), "P0" | "P1" | "P2") && power * 2 > *limit;
    (is_busy && now < most).then(|| {
        let finding = Finding::new(format!(
            "the PCIe link is of generation {now} while the GPU is busy, card and slot can do {most}"
        ))
        .saw("nvmlDeviceGetCurrPcieLinkGeneration()", now.to_string())
        .saw("nvmlDeviceGetMaxPcieLinkGeneration()", most.to_string())
        .saw("nvmlDeviceGetPowerUsage()", format!("{} W in {state}", power / 1000));
        (*now <= 2, finding)
    })
}

fn slow_amd(gpu: &Gpu, link: &PcieLink, view: &View) -> Option<(bool, Finding)> {
    let address = gpu.pci.as_deref()?;
    let busy = view.amdgpu_device(gpu).into_got()?.busy_percent.got()?;
    let port = view.port_above(gpu, &link.hop)?;
    let of_port = view.pci_detail(port)?.max_link_speed.got()?;
    let (now, card) = (link.speed.as_deref()?, link.max_speed.as_deref()?);
    let most = transfers(card)?.min(transfers(of_port)?);
    (*busy >= 90 && transfers(now)? < most).then(|| {
        let hop = &link.hop;
        let finding = Finding::new(format!(
            "the PCIe link runs at {now} while the GPU is busy, card and slot can do more"
        ))
        .saw(
            format!("/sys/bus/pci/devices/{hop}/current_link_speed"),
            now,
        )
        .saw(format!("/sys/bus/pci/devices/{hop}/max_link_speed"), card)
        .saw(
            format!("/sys/bus/pci/devices/{port}/max_link_speed"),
            of_port,
        )
        .saw(
            format!("/sys/bus/pci/devices/{address}/gpu_busy_percent"),
            busy.to_string(),
        );
        (transfers(now).is_some_and(|now| now <= 50), finding)
    })
}

/// Tenths of GT/s of `16.0 GT/s PCIe`.
fn transfers(speed: &str) -> Option<u32> {
    let (number, _) = speed.split_once(" GT/s")?;
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    Some(
        whole.trim().parse::<u32>().ok()?.checked_mul(10)?
            + tenth.parse::<u32>().ok().filter(|tenth| *tenth < 10)?,
    )
}
