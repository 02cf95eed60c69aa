//! The PCI hierarchy above a GPU, and which hop's link figures are those of the card.

use super::{Gpu, PcieLink, Vendor, View};
use crate::facts::Seen;
use crate::facts::pci::{PciBus, PciDetail, PciFunction};
use crate::tables::Row;

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

impl View<'_> {
    /// What was read of a PCI function beyond its ids.
    pub fn pci_detail(&self, address: &str) -> Option<&PciDetail> {
        let function = self.facts.pci.entry(address).into_got()?;
        function.detail.as_deref()
    }

    /// The same of a GPU on the bus.
    pub fn detail_of(&self, gpu: &Gpu) -> Option<&PciDetail> {
        self.pci_detail(gpu.pci.as_deref()?)
    }

    /// The port that a link leads to: the bridge right above the function that shows it.
    pub fn port_above<'g>(&self, gpu: &'g Gpu, hop: &str) -> Option<&'g str> {
        let mut above = gpu.upstream.iter().map(String::as_str);
        if gpu.pci.as_deref() != Some(hop) {
            above.find(|address| *address == hop)?;
        }
        above.next()
    }

    /// The function that says that a GPU is outside of the machine, behind a port of Thunderbolt or USB4. The kernel marks all
    /// that hangs there. `Absent`: it is inside.
    pub fn external<'g>(&self, gpu: &'g Gpu) -> Seen<&'g str> {
        let is_removable = |address: &&str| {
            self.pci_detail(address)
                .is_some_and(|detail| detail.removable.got().is_some_and(|is| is == "removable"))
        };
        let Some(own) = gpu.pci.as_deref() else {
            return Seen::default();
        };
        let mut functions = [own]
            .into_iter()
            .chain(gpu.upstream.iter().map(String::as_str));
        match (functions.find(is_removable), self.detail_of(gpu)) {
            (Some(address), _) => Seen::Got(address),
            (None, Some(detail)) => detail.removable.as_ref().and_then(|_| Seen::Absent),
            (None, None) => Seen::default(),
        }
    }

    /// What a GPU has as it is sold.
    pub fn figures_of(&self, gpu: &Gpu) -> Option<Row> {
        let (vendor, device) = gpu.id?;
        let function = self.facts.pci.entry(gpu.pci.as_deref()?).into_got()?;
        let subsystem = function
            .subsystem_vendor
            .got()
            .copied()
            .zip(function.subsystem_device.got().copied());
        self.tables
            .figures(vendor, device, subsystem, function.revision.got().copied())
    }

    /// A GPU that is built into a laptop: how it is wired and how much power it gets, the maker of the laptop decided.
    pub fn is_of_laptop(&self, gpu: &Gpu) -> Seen<bool> {
        let words = ["Laptop", "Mobile", "Max-Q"];
        // `Radeon RX 6800M`, `RX 7600S`.
        let is_model = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(['M', 'S'])
        };
        let is_one = |name: &str| {
            words.iter().any(|word| name.contains(word))
                || gpu.vendor == Vendor::Amd && name.split(' ').any(is_model)
        };
        // `RX 6600/6600 XT/6600M` may be any of these.
        let named = |name: &str| name.split('/').all(is_one);
        if gpu.name.as_deref().is_some_and(named) {
            return Seen::Got(true);
        }
        // From the RX 5000 on those of laptops have their letter in the name.
        let is_card = |word: &str| {
            let is_new = word.len() == 4 && word.starts_with(['5', '6', '7', '8', '9']);
            is_new && word.chars().all(|c| c.is_ascii_digit())
        };
        let of_card = |name: &str| {
            name.contains(" RX ")
                && !name.split('/').any(is_one)
                && name.split([' ', '/']).any(is_card)
        };
        if gpu.data_centre || gpu.vendor == Vendor::Amd && gpu.name.as_deref().is_some_and(of_card)
        {
            return Seen::Got(false);
        }
        let sold = self.figures_of(gpu).and_then(|row| row.text("laptop"));
        if let Some(laptop) = sold.filter(|laptop| laptop.may_accuse()) {
            return Seen::Got(laptop.value == "1");
        }
        let chassis = self.facts.dmi.as_ref().and_then(|dmi| dmi.chassis.as_ref());
        chassis.and_then(|kind| match kind.trim() {
            // SMBIOS: portable, laptop, notebook, sub notebook; tablet, convertible, detachable.
            "8" | "9" | "10" | "14" | "30" | "31" | "32" => Seen::Got(true),
            // Desktop and tower in their forms, all in one, rack and blade, mini and stick PC.
            "3" | "4" | "5" | "6" | "7" | "13" | "15" | "16" | "17" | "23" | "28" | "29" | "35"
            | "36" => Seen::Got(false),
            _ => Seen::default(),
        })
    }
}
