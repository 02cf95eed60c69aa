//! The PCI hierarchy above a GPU, and which hop's link figures are those of the card.

use super::{PcieLink, Vendor};
use crate::facts::Seen;
use crate::facts::pci::{PciBus, PciFunction};

/// `0000:01:00.0`: four or more, two, two and one hexadecimal digits.
pub fn is_address(text: &str) -> bool {
    let Some((domain, rest)) = text.split_once(':') else {
        return false;
    };
    let Some((bus, rest)) = rest.split_once(':') else {
        return false;
    };
    let Some((device, function)) = rest.split_once('.') else {
        return false;
    };
    let hexadecimal = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    hexadecimal(domain, 4..=8)
        && hexadecimal(bus, 2..=2)
        && hexadecimal(device, 2..=2)
        && hexadecimal(function, 1..=1)
}

/// The bridges above a function, nearest first, from its folder below `/sys/devices`.
pub fn upstream(function: &PciFunction) -> Vec<String> {
    let Some(path) = function.path.got() else {
        return Vec::new();
    };
    path.rsplit('/')
        .skip(1)
        .take_while(|part| is_address(part))
        .map(str::to_owned)
        .collect()
}

/// The link of the hop that connects the card with the machine. Cards of AMD since RDNA and Intel's cards carry a switch
/// of their own: what the GPU itself shows is the hop inside the card, always wide and fast (AMD) or always one slow lane
/// (Intel).
pub fn card_link(address: &str, vendor: Vendor, bus: &PciBus) -> Option<PcieLink> {
    let function = bus.items.get(address)?;
    let above = upstream(function);
    let is_bridge_of = |address: &String, id: u16| {
        bus.items.get(address).is_some_and(|bridge| {
            bridge.vendor.got() == Some(&id)
                && bridge.class.got().is_some_and(|class| class >> 8 == 0x0604)
        })
    };
    let hop = match vendor {
        Vendor::Amd => above
            .iter()
            .take_while(|address| is_bridge_of(address, 0x1002))
            .last(),
        // The switch is one downstream and one upstream port. A root port, the last one above, is Intel's too and no part
        // of the card.
        Vendor::Intel => above
            .iter()
            .take(above.len().saturating_sub(1).min(2))
            .take_while(|address| is_bridge_of(address, 0x8086))
            .last(),
        Vendor::Nvidia | Vendor::Other => None,
    };
    let hop = match (hop, vendor) {
        (Some(hop), _) => hop.as_str(),
        // The hop inside the card alone says nothing of the slot.
        (None, Vendor::Intel) => return None,
        (None, _) => address,
    };
    let detail = bus.items.get(hop)?.detail.as_ref()?;
    // Devices inside a processor have no link: the kernel writes `Unknown` and a width of 0 or 255.
    let speed = |seen: &Seen<String>| seen.got().filter(|text| text.contains("GT/s")).cloned();
    let width = |seen: &Seen<u32>| seen.got().copied().filter(|lanes| (1..=32).contains(lanes));
    let link = PcieLink {
        hop: hop.to_owned(),
        speed: speed(&detail.current_link_speed),
        width: width(&detail.current_link_width),
        max_speed: speed(&detail.max_link_speed),
        max_width: width(&detail.max_link_width),
    };
    let anything = link.speed.is_some()
        || link.width.is_some()
        || link.max_speed.is_some()
        || link.max_width.is_some();
    anything.then_some(link)
}
