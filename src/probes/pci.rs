//! Fills `facts/pci.rs`.
//!
//! On a machine without a GPU this is most of the work, so a function costs two questions there: its link on the bus and
//! its `uevent`, which holds ids, class and driver.

use super::attributes::{COUNT_LIMIT, Power, device_path, is_pci_address, number, parse_hex, word};
use crate::facts::pci::{Bar, PciBus, PciDetail, PciFunction, PciNames};
use crate::facts::{Named, Seen, Why};
use crate::host::Host;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const DEVICES: &str = "/sys/bus/pci/devices";

/// Where distributions keep `pci.ids`, in the order in which they are looked for.
const ID_FILES: [&str; 4] = [
    "/usr/share/hwdata/pci.ids",
    "/usr/share/misc/pci.ids",
    "/usr/share/pci.ids",
    "/var/lib/pciutils/pci.ids",
];

/// Longest name of a driver: the kernel's names of modules are shorter.
const NAME_LIMIT: usize = 64;

/// Bytes of `config` that everyone may read.
const CONFIG_BYTES: usize = 64;

/// Source `pci`.
pub fn pci(host: &Host) -> Seen<PciBus> {
    bus(host).map(|mut bus| {
        let mut bridges = BTreeSet::new();
        for (address, function) in &mut bus.items {
            if !is_gpu_like(function) {
                continue;
            }
            bridges.extend(upstream(function).map(str::to_owned));
            let folder = folder(address, function);
            complete_identity(host, &folder, function);
            function.detail = Some(Box::new(read_detail(host, &folder, false)));
        }
        for address in bridges {
            if let Some(function) = bus.items.get_mut(&address)
                && function.detail.is_none()
            {
                let folder = folder(&address, function);
                function.detail = Some(Box::new(read_detail(host, &folder, true)));
            }
        }
        bus
    })
}

/// Source `pci_ids`. The bus is asked again only where source `pci` did not answer in this process.
pub fn pci_ids(host: &Host, known: &Seen<PciBus>) -> Seen<PciNames> {
    let asked;
    let bus = if known.got().is_some() {
        known
    } else {
        asked = bus(host);
        &asked
    };
    let wanted: Vec<WantedIds> = match bus.as_ref() {
        Seen::Got(bus) => bus.items.values().filter_map(WantedIds::of).collect(),
        Seen::Absent => Vec::new(),
        Seen::Unasked(why) => return Seen::Unasked(why),
        Seen::Failed(failure) => return Seen::Failed(failure),
    };
    if wanted.is_empty() {
        return Seen::Unasked(Why::NoSuchHardware);
    }
    Seen::first_of(ID_FILES.iter().map(|path| {
        let section = Section::default();
        let lines = host.lines(path, &|line| section.wants(&wanted, line));
        lines.map(|lines| parse_names(path, &wanted, &lines.lines))
    }))
}

/// The driver that is bound to a PCI function, by its folder.
pub(super) fn bound_driver(host: &Host, folder: &str) -> Seen<String> {
    driver(host, folder, &host.text(&format!("{folder}/uevent")))
}

/// Every function on the bus with what its `uevent` tells.
fn bus(host: &Host) -> Seen<PciBus> {
    host.list(DEVICES).map(|listing| {
        let mut bus = Named {
            whole: listing.whole,
            items: BTreeMap::new(),
        };
        for address in listing.names {
            if !is_pci_address(&address) {
                continue;
            }
            if bus.items.len() == COUNT_LIMIT {
                bus.whole = false;
                break;
            }
            let path = device_path(host, DEVICES, &address);
            // Gone since the bus was listed.
            if path.is_absent() {
                continue;
            }
            let function = read_identity(host, &address, path);
            bus.items.insert(address, function);
        }
        bus
    })
}

/// The folder by which a function is asked: the real one where that is known.
fn folder(address: &str, function: &PciFunction) -> String {
    function
        .path
        .got()
        .cloned()
        .unwrap_or_else(|| format!("{DEVICES}/{address}"))
}

fn read_identity(host: &Host, address: &str, path: Seen<String>) -> PciFunction {
    let mut function = PciFunction {
        path,
        ..PciFunction::default()
    };
    let folder = folder(address, &function);
    let uevent = host.text(&format!("{folder}/uevent"));
    let ids = uevent
        .got()
        .map(|text| parse_uevent(text))
        .unwrap_or_default();
    let (vendor, device) = ids.id.unzip();
    let (subsystem_vendor, subsystem_device) = ids.subsystem.unzip();
    function.vendor = or_file(vendor, || id(host, &folder, "vendor"));
    function.device = or_file(device, || id(host, &folder, "device"));
    function.class = or_file(ids.class, || class(host, &folder));
    function.subsystem_vendor = subsystem_vendor.map_or_else(Seen::default, Seen::Got);
    function.subsystem_device = subsystem_device.map_or_else(Seen::default, Seen::Got);
    function.driver = driver(host, &folder, &uevent);
    function
}

/// What `uevent` does not have, of the functions that matter.
fn complete_identity(host: &Host, folder: &str, function: &mut PciFunction) {
    function.revision = hex(host, folder, "revision");
    if function.subsystem_vendor.got().is_none() {
        function.subsystem_vendor = id(host, folder, "subsystem_vendor");
    }
    if function.subsystem_device.got().is_none() {
        function.subsystem_device = id(host, folder, "subsystem_device");
    }
}

fn or_file<T>(known: Option<T>, ask: impl FnOnce() -> Seen<T>) -> Seen<T> {
    known.map_or_else(ask, Seen::Got)
}

fn hex<T: TryFrom<u32>>(host: &Host, folder: &str, name: &str) -> Seen<T> {
    word(host, &format!("{folder}/{name}")).and_then(|text| {
        match parse_hex(&text).and_then(|number| T::try_from(number).ok()) {
            Some(number) => Seen::Got(number),
            None => Seen::error("not a hexadecimal number of the expected size"),
        }
    })
}

fn id(host: &Host, folder: &str, name: &str) -> Seen<u16> {
    hex(host, folder, name)
}

fn class(host: &Host, folder: &str) -> Seen<u32> {
    hex(host, folder, "class").and_then(|class: u32| {
        if class <= 0xff_ffff {
            Seen::Got(class)
        } else {
            Seen::error("longer than a class code")
        }
    })
}

/// The bound driver: `uevent` tells it in one read and is whole, so a missing line proves that none is bound. Where it
/// cannot be read the link tells the name.
fn driver(host: &Host, folder: &str, uevent: &Seen<String>) -> Seen<String> {
    if let Seen::Got(text) = uevent {
        let parsed = parse_uevent(text);
        if let Some(driver) = parsed.driver {
            return Seen::Got(driver);
        }
        if parsed.of_pci && !parsed.odd_driver {
            return Seen::Absent;
        }
    }
    match (host.link_name(&format!("{folder}/driver")), uevent) {
        (Seen::Unasked(_), Seen::Failed(failure)) => Seen::Failed(failure.clone()),
        (answer, _) => answer,
    }
}

/// What a PCI function's `uevent` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Uevent {
    driver: Option<String>,
    class: Option<u32>,
    id: Option<(u16, u16)>,
    subsystem: Option<(u16, u16)>,
    /// A line that only PCI functions have was there, else this is no `uevent` of one.
    of_pci: bool,
    /// There was a driver line that holds no name.
    odd_driver: bool,
}

fn parse_uevent(text: &str) -> Uevent {
    let pair = |value: &str| {
        let (vendor, device) = value.split_once(':')?;
        Some((
            u16::try_from(parse_hex(vendor)?).ok()?,
            u16::try_from(parse_hex(device)?).ok()?,
        ))
    };
    let mut uevent = Uevent::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        uevent.of_pci |= name.starts_with("PCI_");
        match name {
            "DRIVER" if (1..=NAME_LIMIT).contains(&value.len()) => {
                uevent.driver = Some(value.to_owned())
            }
            "DRIVER" => uevent.odd_driver = true,
            "PCI_CLASS" => uevent.class = parse_hex(value).filter(|class| *class <= 0xff_ffff),
            "PCI_ID" => uevent.id = pair(value),
            "PCI_SUBSYS_ID" => uevent.subsystem = pair(value),
            _ => {}
        }
    }
    uevent
}

/// Display controllers, processing accelerators, co-processors and AMD's NPUs, which are signal processors by class. NVSwitches
/// are bridges by class and none of these.
fn is_gpu_like(function: &PciFunction) -> bool {
    let Some(class) = function.class.got() else {
        return false;
    };
    match class >> 8 {
        0x0300..=0x03ff | 0x1200..=0x12ff | 0x0b40 => true,
        0x1180 => {
            function.vendor.got() == Some(&0x1022)
                && matches!(function.device.got(), Some(0x1502 | 0x17f0))
        }
        _ => false,
    }
}

/// Addresses of the bridges above a function, by its path.
fn upstream(function: &PciFunction) -> impl Iterator<Item = &str> {
    let path = function.path.got().map_or("", String::as_str);
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    above.split('/').filter(|part| is_pci_address(part))
}

fn read_detail(host: &Host, folder: &str, bridge: bool) -> PciDetail {
    let at = |name: &str| format!("{folder}/{name}");
    let power = Power::read(host, folder);
    let mut detail = PciDetail {
        power_control: word(host, &at("power/control")),
        removable: word(host, &at("removable")),
        current_link_speed: power.if_awake(|| word(host, &at("current_link_speed"))),
        current_link_width: power.if_awake(|| number(host, &at("current_link_width"))),
        max_link_speed: power.if_awake(|| word(host, &at("max_link_speed"))),
        max_link_width: power.if_awake(|| number(host, &at("max_link_width"))),
        config: power.if_awake(|| read_config(host, folder)),
        ..PciDetail::default()
    };
    if !bridge {
        detail.enabled = number(host, &at("enable")).map(|count: u32| count != 0);
        detail.boot_vga = number(host, &at("boot_vga")).map(|first: u32| first == 1);
        detail.numa_node = number(host, &at("numa_node"));
        detail.iommu_group = host.link_name(&at("iommu_group"));
        detail.iommu_type = word(host, &at("iommu_group/type"));
        // The kernel writes so that none is set.
        detail.driver_override = word(host, &at("driver_override")).and_then(|name| match name {
            name if name == "(null)" => Seen::Absent,
            name => Seen::Got(name),
        });
        detail.physfn = host.link_name(&at("physfn"));
        detail.bars = host
            .text(&at("resource"))
            .and_then(|text| parse_resource(&text));
    }
    detail.runtime_status = power.runtime_status;
    detail.power_state = power.power_state;
    detail
}

/// The header of the configuration space. What a device answered while it fell asleep is no answer, so its state is
/// looked at again.
fn read_config(host: &Host, folder: &str) -> Seen<String> {
    let config = host
        .bytes(&format!("{folder}/config"), CONFIG_BYTES)
        .and_then(|bytes| {
            if bytes.is_empty() {
                return Seen::error("empty");
            }
            let mut text = String::with_capacity(bytes.len() * 2);
            for byte in bytes {
                // Writing to a string cannot fail.
                let _ = write!(text, "{byte:02x}");
            }
            Seen::Got(text)
        });
    if config.got().is_none() {
        return config;
    }
    Power::read(host, folder).if_awake(|| config)
}

/// The base address registers in `resource`: start, end and flags a line.
fn parse_resource(text: &str) -> Seen<Vec<Bar>> {
    const MEMORY: u64 = 0x200;
    const PREFETCHABLE: u64 = 0x2000;
    const WIDE: u64 = 0x10_0000;
    // IORESOURCE_UNSET of include/linux/ioport.h
    const UNSET: u64 = 0x2000_0000;
    let number = |word: Option<&str>| {
        word.and_then(|word| word.strip_prefix("0x"))
            .filter(|digits| !digits.starts_with('+'))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
    };
    let mut bars = Vec::new();
    for (index, line) in (0u8..6).zip(text.lines()) {
        let mut words = line.split_whitespace();
        let (Some(start), Some(end), Some(flags)) = (
            number(words.next()),
            number(words.next()),
            number(words.next()),
        ) else {
            return Seen::error("not a list of address ranges");
        };
        if end <= start {
            continue;
        }
        let Some(bytes) = (end - start).checked_add(1) else {
            return Seen::error("an address range that is no size");
        };
        bars.push(Bar {
            index,
            bytes,
            assigned: start != 0 && flags & UNSET == 0,
            prefetchable: flags & MEMORY != 0 && flags & PREFETCHABLE != 0 && flags & WIDE != 0,
        });
    }
    Seen::Got(bars)
}

/// The ids of a function that are looked up in `pci.ids`.
#[derive(Debug)]
struct WantedIds {
    vendor: u16,
    device: u16,
    subsystem: Option<(u16, u16)>,
}

impl WantedIds {
    fn of(function: &PciFunction) -> Option<WantedIds> {
        if !is_gpu_like(function) {
            return None;
        }
        Some(WantedIds {
            vendor: *function.vendor.got()?,
            device: *function.device.got()?,
            subsystem: function
                .subsystem_vendor
                .got()
                .copied()
                .zip(function.subsystem_device.got().copied()),
        })
    }
}

/// A row of `pci.ids` with the ids of the rows that it stands below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Vendor(u16),
    Device(u16, u16),
    Subsystem(u16, u16, u16, u16),
}

/// Where in `pci.ids` the reader is: rows are indented below their vendor and device.
#[derive(Debug, Default)]
struct Section {
    vendor: Cell<Option<u16>>,
    device: Cell<Option<u16>>,
}

impl Section {
    /// Takes the next row and says what it is; None: a comment, a class, a row of something that is not wanted.
    fn next(&self, wanted: &[WantedIds], line: &str) -> Option<Row> {
        let bytes = line.as_bytes();
        match bytes {
            [b'\t', b'\t', rest @ ..] => {
                let (vendor, device) = (self.vendor.get()?, self.device.get()?);
                let (subvendor, rest) = four_digits(rest)?;
                let (subdevice, _) = four_digits(rest.strip_prefix(b" ")?)?;
                wanted
                    .iter()
                    .any(|ids| {
                        (ids.vendor, ids.device) == (vendor, device)
                            && ids.subsystem == Some((subvendor, subdevice))
                    })
                    .then_some(Row::Subsystem(vendor, device, subvendor, subdevice))
            }
            [b'\t', rest @ ..] => {
                let vendor = self.vendor.get()?;
                self.device.set(None);
                let (device, _) = four_digits(rest)?;
                let found = wanted
                    .iter()
                    .any(|ids| (ids.vendor, ids.device) == (vendor, device));
                self.device.set(found.then_some(device));
                found.then_some(Row::Device(vendor, device))
            }
            [] | [b'#', ..] => None,
            _ => {
                self.vendor.set(None);
                self.device.set(None);
                let (vendor, rest) = four_digits(bytes)?;
                let found = rest.starts_with(b" ") && wanted.iter().any(|ids| ids.vendor == vendor);
                self.vendor.set(found.then_some(vendor));
                found.then_some(Row::Vendor(vendor))
            }
        }
    }

    fn wants(&self, wanted: &[WantedIds], line: &str) -> bool {
        self.next(wanted, line).is_some()
    }
}

/// Four hexadecimal digits and what follows them.
fn four_digits(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = bytes.split_at_checked(4)?;
    let mut number = 0;
    for digit in digits {
        number = number * 16 + u16::try_from(char::from(*digit).to_digit(16)?).ok()?;
    }
    Some((number, rest))
}

fn parse_names(path: &str, wanted: &[WantedIds], lines: &[String]) -> PciNames {
    let mut names = PciNames {
        path: path.to_owned(),
        ..PciNames::default()
    };
    let section = Section::default();
    for line in lines {
        // Ids and name are two spaces apart in every kind of row.
        let Some((_, name)) = line.split_once("  ") else {
            continue;
        };
        let name = name.trim().to_owned();
        match section.next(wanted, line) {
            Some(Row::Vendor(vendor)) => {
                names.vendors.insert(format!("{vendor:04x}"), name);
            }
            Some(Row::Device(vendor, device)) => {
                names
                    .devices
                    .insert(format!("{vendor:04x}:{device:04x}"), name);
            }
            Some(Row::Subsystem(vendor, device, subvendor, subdevice)) => {
                names.subsystems.insert(
                    format!("{vendor:04x}:{device:04x}:{subvendor:04x}:{subdevice:04x}"),
                    name,
                );
            }
            None => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Failure;
    use crate::host::Options;
    use crate::probes::tree::Tree;

    const GPU: &str = "pci0000:00/0000:00:01.0/0000:01:00.0";
    const GPU_UEVENT: &str = "DRIVER=nvidia\nPCI_CLASS=30000\nPCI_ID=10DE:2684\nPCI_SUBSYS_ID=1043:889D\n\
         PCI_SLOT_NAME=0000:01:00.0\n";

    /// A bridge with a GPU below it, and a disk.
    fn desktop() -> Tree {
        let mut tree = Tree::proved();
        tree.function(
            "pci0000:00/0000:00:01.0",
            "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=8086:A70D\nPCI_SUBSYS_ID=0000:0000\n",
        );
        tree.function(GPU, GPU_UEVENT);
        tree.function(
            "pci0000:00/0000:00:06.0",
            "DRIVER=nvme\nPCI_CLASS=10802\nPCI_ID=144D:A80C\nPCI_SUBSYS_ID=0000:0000\n",
        );
        for (name, text) in [
            ("vendor", "0x10de\n"),
            ("device", "0x2684\n"),
            ("class", "0x030000\n"),
            ("revision", "0xa1\n"),
            ("power/runtime_status", "active\n"),
            ("power/control", "on\n"),
            ("power_state", "D0\n"),
            ("enable", "3\n"),
            ("boot_vga", "1\n"),
            ("numa_node", "-1\n"),
            ("current_link_speed", "16.0 GT/s PCIe\n"),
            ("current_link_width", "16\n"),
            ("max_link_speed", "16.0 GT/s PCIe\n"),
            ("max_link_width", "16\n"),
        ] {
            tree.file(&format!("/sys/devices/{GPU}/{name}"), text);
        }
        tree.bytes(
            &format!("/sys/devices/{GPU}/config"),
            &[[0xde, 0x10, 0x84, 0x26].as_slice(), &[0; 252]].concat(),
        );
        tree.link(
            &format!("/sys/devices/{GPU}/iommu_group"),
            "../../../../kernel/iommu_groups/12",
        );
        tree.link(
            &format!("/sys/devices/{GPU}/driver"),
            "../../../../bus/pci/drivers/nvidia",
        );
        tree.file("/sys/bus/pci/drivers/nvidia/bind", "");
        tree
    }

    fn gpu(bus: &Seen<PciBus>) -> PciFunction {
        let gpu: &PciFunction = bus.entry("0000:01:00.0").into_got().expect("a GPU");
        gpu.clone()
    }

    fn detail(bus: &Seen<PciBus>) -> PciDetail {
        *gpu(bus).detail.expect("its detail")
    }

    fn got<T: From<&'static str>>(text: &'static str) -> Seen<T> {
        Seen::Got(T::from(text))
    }

    #[test]
    fn a_gpu_and_the_bridge_above_it() {
        let bus = desktop().ask(pci);
        assert!(bus.got().expect("a bus").whole);
        let gpu = gpu(&bus);
        assert_eq!(gpu.path, Seen::Got(format!("/sys/devices/{GPU}")));
        assert_eq!(gpu.vendor, Seen::Got(0x10de));
        assert_eq!(gpu.device, Seen::Got(0x2684));
        assert_eq!(gpu.class, Seen::Got(0x030000));
        assert_eq!(gpu.revision, Seen::Got(0xa1));
        assert_eq!(gpu.subsystem_vendor, Seen::Got(0x1043));
        assert_eq!(gpu.subsystem_device, Seen::Got(0x889d));
        assert_eq!(gpu.driver, got("nvidia"));
        let detail = detail(&bus);
        assert_eq!(detail.enabled, Seen::Got(true));
        assert_eq!(detail.boot_vga, Seen::Got(true));
        assert_eq!(detail.numa_node, Seen::Got(-1));
        assert_eq!(detail.iommu_group, got("12"));
        assert_eq!(detail.current_link_width, Seen::Got(16));
        assert_eq!(detail.max_link_speed, got("16.0 GT/s PCIe"));
        assert_eq!(detail.physfn, Seen::Absent);
        let config = detail.config.got().expect("a header");
        assert!(config.starts_with("de108426"));
        assert_eq!(config.len(), 2 * CONFIG_BYTES);
        assert!(
            bus.entry("0000:00:01.0")
                .got()
                .expect("a bridge")
                .detail
                .is_some()
        );
        assert!(
            bus.entry("0000:00:06.0")
                .got()
                .expect("a disk")
                .detail
                .is_none()
        );
    }

    #[test]
    fn without_a_gpu_a_function_costs_two_questions() {
        let mut tree = Tree::proved();
        for slot in 0..20 {
            tree.function(
                &format!("pci0000:00/0000:00:{slot:02x}.0"),
                "DRIVER=x\nPCI_CLASS=68000\nPCI_ID=10DE:22A3\nPCI_SUBSYS_ID=0000:0000\n",
            );
        }
        let (host, asked) = tree.host(Options::default());
        assert_eq!(pci(&host).got().map(|bus| bus.items.len()), Some(20));
        assert_eq!(asked.borrow().len(), 1 + 2 * 20);
        // No name is needed of any of them.
        assert_eq!(pci_ids(&host), Seen::Unasked(Why::NoSuchHardware));
        assert!(
            !asked
                .borrow()
                .iter()
                .any(|question| question.contains("pci.ids"))
        );
    }

    #[test]
    fn a_sleeping_gpu_is_not_woken() {
        let mut tree = desktop();
        tree.file(
            &format!("/sys/devices/{GPU}/power/runtime_status"),
            "suspended\n",
        );
        let (host, asked) = tree.host(Options::default());
        let detail = detail(&pci(&host));
        assert_eq!(detail.config, Seen::Unasked(Why::Asleep));
        assert_eq!(detail.current_link_width, Seen::Unasked(Why::Asleep));
        assert_eq!(detail.max_link_speed, Seen::Unasked(Why::Asleep));
        assert_eq!(detail.boot_vga, Seen::Got(true));
        let of_gpu = |question: &&String| question.contains("0000:01:00.0/");
        assert!(
            !asked
                .borrow()
                .iter()
                .filter(of_gpu)
                .any(|question| { question.contains("link_") || question.ends_with("/config") })
        );

        let (host, _) = tree.host(Options {
            wake: true,
            ..Options::default()
        });
        assert_eq!(self::detail(&pci(&host)).current_link_width, Seen::Got(16));
    }

    #[test]
    fn power_is_the_first_thing_asked_of_a_gpu() {
        let (host, asked) = desktop().host(Options::default());
        let _ = pci(&host);
        let asked = asked.borrow();
        let place = |name: &str| {
            asked
                .iter()
                .position(|question| question.ends_with(&format!("0000:01:00.0/{name}")))
                .expect(name)
        };
        for later in ["current_link_speed", "config", "power/control", "enable"] {
            assert!(place("power/runtime_status") < place(later), "{later}");
        }
        // And once more after the header.
        assert!(
            asked
                .iter()
                .skip(place("config"))
                .any(|question| question.ends_with("0000:01:00.0/power/runtime_status"))
        );
    }

    #[test]
    fn unreadable_state_is_no_proof_of_an_unbound_gpu() {
        let mut tree = desktop();
        tree.error(&format!("/sys/devices/{GPU}/uevent"), "EIO");
        assert_eq!(gpu(&tree.ask(pci)).driver, got("nvidia"));
        tree.error(&format!("/sys/devices/{GPU}/driver"), "EIO");
        let gpu = gpu(&tree.ask(pci));
        assert_eq!(gpu.driver, Seen::Failed(Failure::errno("EIO")));
        assert_eq!(gpu.device, Seen::Got(0x2684));
        assert!(gpu.detail.is_some());
    }

    #[test]
    fn a_whole_uevent_proves_an_unbound_gpu() {
        let mut tree = desktop();
        tree.function(GPU, "PCI_CLASS=30000\nPCI_ID=10DE:2684\n");
        assert_eq!(gpu(&tree.ask(pci)).driver, Seen::Absent);
        // A name that is none proves nothing, so the link is asked.
        tree.function(GPU, "DRIVER=\nPCI_CLASS=30000\nPCI_ID=10DE:2684\n");
        assert_eq!(gpu(&tree.ask(pci)).driver, got("nvidia"));
    }

    #[test]
    fn odd_content_is_an_unknown() {
        let mut tree = desktop();
        tree.error(&format!("/sys/devices/{GPU}/uevent"), "EIO");
        for (name, text) in [
            ("device", "0x12684\n"),
            ("revision", "\u{1b}[31m\n"),
            ("numa_node", "99999999999999\n"),
            ("current_link_width", "-16\n"),
            ("power_state", ""),
        ] {
            tree.file(&format!("/sys/devices/{GPU}/{name}"), text);
        }
        tree.bytes(&format!("/sys/devices/{GPU}/max_link_width"), b"\xff\xfe16");
        let bus = tree.ask(pci);
        let gpu = gpu(&bus);
        let detail = detail(&bus);
        assert!(matches!(gpu.device, Seen::Failed(_)));
        assert!(matches!(gpu.revision, Seen::Failed(_)));
        assert!(matches!(detail.numa_node, Seen::Failed(_)));
        assert!(matches!(detail.current_link_width, Seen::Failed(_)));
        assert!(matches!(detail.max_link_width, Seen::Failed(_)));
        assert!(matches!(detail.power_state, Seen::Failed(_)));
        assert!(
            !serde_json::to_string(&bus)
                .expect("facts as JSON")
                .contains('\u{1b}')
        );
    }

    #[test]
    fn an_endless_bus_is_cut() {
        let mut tree = Tree::proved();
        for number in 0..COUNT_LIMIT + 100 {
            let (domain, bus) = (number / 256, number % 256);
            tree.link(
                &format!("/sys/bus/pci/devices/{domain:04x}:{bus:02x}:00.0"),
                "../../../devices/x",
            );
        }
        tree.link("/sys/bus/pci/devices/no address", "../../../devices/x");
        let bus = tree.ask(pci).into_got().expect("a bus");
        assert!(!bus.whole);
        assert_eq!(bus.items.len(), COUNT_LIMIT);
    }

    #[test]
    fn no_bus_and_an_unknown_bus() {
        assert_eq!(Tree::proved().ask(pci), Seen::Absent);
        assert_eq!(Tree::default().ask(pci), Seen::default());
        assert_eq!(
            Tree::proved().ask(pci_ids),
            Seen::Unasked(Why::NoSuchHardware)
        );
        let mut tree = Tree::proved();
        tree.error(DEVICES, "EIO");
        assert_eq!(tree.ask(pci), Seen::Failed(Failure::errno("EIO")));
        assert!(matches!(tree.ask(pci_ids), Seen::Failed(_)));
    }

    #[test]
    fn npus_by_their_ids() {
        let function = |class, vendor, device| PciFunction {
            class: Seen::Got(class),
            vendor: Seen::Got(vendor),
            device: Seen::Got(device),
            ..PciFunction::default()
        };
        assert!(is_gpu_like(&function(0x118000, 0x1022, 0x17f0)));
        assert!(is_gpu_like(&function(0x120000, 0x8086, 0x7d1d)));
        assert!(is_gpu_like(&function(0x0b4000, 0x8086, 0x225c)));
        assert!(is_gpu_like(&function(0x038000, 0x1002, 0x1586)));
        // A sensor hub, an NVSwitch, an audio function.
        assert!(!is_gpu_like(&function(0x118000, 0x1022, 0x164a)));
        assert!(!is_gpu_like(&function(0x068000, 0x10de, 0x22a3)));
        assert!(!is_gpu_like(&function(0x040300, 0x10de, 0x22ba)));
    }

    #[test]
    fn base_address_registers() {
        let text = "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n\
                    0x000000e000000000 0x000000e7ffffffff 0x000000000014220c\n\
                    0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
                    0x000000e800000000 0x000000e801ffffff 0x000000000014220c\n\
                    0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
                    0x0000000000006000 0x000000000000607f 0x0000000000040101\n\
                    0x00000000000c0000 0x00000000000dffff 0x0000000000000212\n";
        let bars = parse_resource(text).into_got().expect("bars");
        assert!(bars.iter().all(|bar| bar.assigned));
        let without = "0x0000000000000000 0x000000000fffffff 0x000000000014220c\n\
                       0x00000000e0000000 0x00000000e0ffffff 0x0000000020040200\n";
        let bars_without = parse_resource(without).into_got().expect("bars");
        assert!(bars_without.len() == 2 && !bars_without.iter().any(|bar| bar.assigned));
        let sizes: Vec<_> = bars
            .iter()
            .map(|bar| (bar.index, bar.bytes, bar.prefetchable))
            .collect();
        assert_eq!(
            sizes,
            [
                (0, 16 << 20, false),
                (1, 32 << 30, true),
                (3, 32 << 20, true),
                (5, 128, false)
            ]
        );
        assert!(matches!(parse_resource("0x0 0x10\n"), Seen::Failed(_)));
        assert!(matches!(
            parse_resource("0x0 0xffffffffffffffff 0x200\n"),
            Seen::Failed(_)
        ));
    }

    const IDS: &str = "# comment\n\
         1043  ASUSTeK Computer Inc.\n\
         \t2684  Not this one\n\
         10de  NVIDIA Corporation\n\
         \t2504  GA106 [GeForce RTX 3060 Lite Hash Rate]\n\
         \t\t1043 889d  Not this one\n\
         \t2684  AD102 [GeForce RTX 4090]\n\
         \t\t1043 889d  ROG Strix RTX 4090\n\
         \t\t10de 16f3  Founders Edition\n\
         # a comment in between\n\
         \t2685  AD102 [GeForce RTX 4090 D]\n\
         \t\t1043 889d  Not this one\n\
         ffff  Illegal Vendor ID\n\
         C 03  Display controller\n\
         \t2684  Not this one\n";

    fn pci_ids(host: &Host) -> Seen<PciNames> {
        super::pci_ids(host, &Seen::default())
    }

    #[test]
    fn a_bus_that_is_known_is_not_asked_for_ids() {
        let mut tree = desktop();
        tree.file("/usr/share/misc/pci.ids", IDS);
        let known = tree.ask(pci);
        let (host, asked) = tree.host(Options::default());
        let names = super::pci_ids(&host, &known);
        let sys = |one: &&String| one.contains("/sys/");
        assert_eq!(asked.borrow().iter().find(sys), None);
        assert_eq!(names, tree.ask(pci_ids));
        // Who did not get that answer asks.
        assert_eq!(super::pci_ids(&host, &Seen::error("x")), names);
    }

    #[test]
    fn names_of_the_ids_on_the_bus() {
        let mut tree = desktop();
        tree.file("/usr/share/misc/pci.ids", IDS);
        let (host, _) = tree.host(Options::default());
        let host = host.recording();
        let names = pci_ids(&host);
        let names = names.into_got().expect("names");
        assert_eq!(names.path, "/usr/share/misc/pci.ids");
        let list = |map: &BTreeMap<String, String>| {
            map.iter()
                .map(|(id, name)| format!("{id} {name}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(list(&names.vendors), ["10de NVIDIA Corporation"]);
        assert_eq!(list(&names.devices), ["10de:2684 AD102 [GeForce RTX 4090]"]);
        assert_eq!(
            list(&names.subsystems),
            ["10de:2684:1043:889d ROG Strix RTX 4090"]
        );
        // Only the three rows are recorded, and they give the same once more.
        let kept = host
            .take_entries()
            .into_iter()
            .find_map(|entry| match entry {
                crate::host::machine::Entry::File { path, text, .. }
                    if path.ends_with("pci.ids") =>
                {
                    Some(text)
                }
                _ => None,
            })
            .expect("the recorded rows");
        assert_eq!(kept.lines().count(), 3);
        let mut replay = desktop();
        replay.file("/usr/share/misc/pci.ids", &kept);
        assert_eq!(replay.ask(pci_ids), Seen::Got(names));
    }

    #[test]
    fn no_list_of_names() {
        assert_eq!(desktop().ask(pci_ids), Seen::Absent);
        let mut tree = desktop();
        tree.error(ID_FILES[3], "EACCES");
        assert_eq!(tree.ask(pci_ids), Seen::Failed(Failure::errno("EACCES")));
    }
}
