//! Joins what the sources know into physical GPUs, by PCI address.

use super::{Gpu, NotGpu, Place, Stack, Vendor, pcie};
use crate::facts::kfd::KfdNode;
use crate::facts::nvml::NvmlDevice;
use crate::facts::pci::PciFunction;
use crate::facts::{Facts, Named, Seen, Why};
use crate::tables::{GpuFigures, Tables};
use crate::version::gfx_target;
use std::collections::BTreeMap;

/// The key of the GPU that Windows lends to WSL.
const DXG: &str = "dxg";

/// What joining gives.
pub struct Joined {
    /// Physical GPUs in order of their keys.
    pub gpus: Vec<Gpu>,
    /// Devices that look like GPUs and are none.
    pub not_gpus: Vec<NotGpu>,
    /// There are no others.
    pub whole: bool,
}

/// What a PCI function is to us.
enum Role {
    Gpu,
    Not(&'static str, Option<Stack>),
    /// Its class could not be read, so it may be anything.
    Unknown,
    Other,
}

/// Joins the facts.
pub fn join(facts: &Facts, tables: &Tables, place: &Seen<Place>) -> Joined {
    let kfd = kfd_by_address(facts);
    let mut gpus = Vec::new();
    let mut not_gpus = Vec::new();
    let bus = facts.pci.got();
    let mut whole = bus.is_some_and(|bus| bus.whole) || facts.pci.is_absent();

    for (address, function) in facts.pci.items() {
        let known_by_driver = proc_knows(facts, address) || kfd.contains_key(address);
        match role(function, known_by_driver) {
            Role::Gpu => gpus.push(on_the_bus(address, function, &kfd, facts, tables)),
            Role::Not(kind, stack) => not_gpus.push(NotGpu {
                pci: address.clone(),
                id: id(function),
                kind,
                name: system_name(function, facts),
                stack,
            }),
            Role::Unknown => whole = false,
            Role::Other => {}
        }
    }
    whole &= unread_list(facts).is_none();
    gpus.extend(remembered(facts, tables, &kfd));
    if let Some(gpu) = through_dxg(facts, place) {
        gpus.push(gpu);
        whole = true;
    }
    let bus_is_whole = bus.is_some_and(|bus| bus.whole);
    gpus.extend(known_to_nvml_alone(&gpus, bus_is_whole, facts));
    for gpu in &mut gpus {
        what_libraries_say(gpu, facts, tables);
        gpu.passed_in = passed_in(gpu, facts, place);
    }
    gpus.sort_by(|one, other| one.key.cmp(&other.key));
    Joined {
        gpus,
        not_gpus,
        whole,
    }
}

fn id(function: &PciFunction) -> Option<(u16, u16)> {
    Some((*function.vendor.got()?, *function.device.got()?))
}

fn proc_knows(facts: &Facts, address: &str) -> bool {
    facts
        .nvidia_proc
        .got()
        .is_some_and(|proc| proc.gpus.entry(address).got().is_some())
}

fn role(function: &PciFunction, known_by_driver: bool) -> Role {
    if let Some(detail) = &function.detail
        && detail.physfn.got().is_some()
    {
        return Role::Not("virtual function", None);
    }
    let vendor = function.vendor.got().copied();
    let device = function.device.got().copied();
    let Some(class) = function.class.got().copied() else {
        return match function.driver.got().map(String::as_str) {
            Some("nvidia" | "nouveau" | "amdgpu" | "radeon" | "i915" | "xe") => Role::Gpu,
            _ if known_by_driver => Role::Gpu,
            _ => Role::Unknown,
        };
    };
    match (class >> 16, class >> 8) {
        (0x03, _) => match not_a_gpu(vendor, device, function) {
            Some(kind) => Role::Not(kind, None),
            None => Role::Gpu,
        },
        (0x12, _) => match vendor {
            Some(0x1002) => Role::Gpu,
            Some(0x8086) => Role::Not("NPU", Some(Stack::LevelZero)),
            _ => Role::Not("accelerator", None),
        },
        (_, 0x1180) if vendor == Some(0x1022) && matches!(device, Some(0x1502 | 0x17f0)) => {
            Role::Not("NPU", Some(Stack::Rocm))
        }
        (0x0b, 0x0b40) if vendor == Some(0x8086) => Role::Not("co-processor", None),
        _ => Role::Other,
    }
}

/// Display devices that draw a console and nothing more. Vendor ids from `pci.ids`.
fn not_a_gpu(
    vendor: Option<u16>,
    device: Option<u16>,
    function: &PciFunction,
) -> Option<&'static str> {
    match (vendor?, device) {
        // Matrox G200 in its server forms, ASPEED, HiSilicon, XGI, Silicon Motion: baseboard management controllers.
        (0x102b | 0x1a03 | 0x19e5 | 0x18ca | 0x126f, _) => Some("server management graphics"),
        // ATI ES1000 and its RV100 relatives on server boards.
        (0x1002, Some(0x515e | 0x5969)) => Some("server management graphics"),
        // Bochs and QEMU's VGA, QXL, virtio, Cirrus, VMware, VirtualBox, Hyper-V, Xen, Parallels, Red Hat.
        (0x1234 | 0x1b36 | 0x1af4 | 0x1013 | 0x15ad | 0x80ee | 0x5853 | 0x1ab8, _) => {
            Some("virtual display")
        }
        // The adapter through which WSL shows the host's GPU: no GPU of its own.
        (0x1414, Some(0x008e)) => Some("stands for the GPU of Windows, listed as dxg"),
        (0x1414, _) => Some("virtual display"),
        (0, _) => Some("device without an id"),
        _ => (function.driver.got().map(String::as_str) == Some("virtio-pci"))
            .then_some("virtual display"),
    }
}

/// KFD nodes of GPUs by the PCI address of the physical device. A partition carries its number in the function bits.
fn kfd_by_address(facts: &Facts) -> BTreeMap<String, Vec<(u32, &KfdNode)>> {
    let mut nodes: BTreeMap<String, Vec<(u32, &KfdNode)>> = BTreeMap::new();
    let Some(kfd) = facts.kfd.got() else {
        return nodes;
    };
    let on_bus = |address: &str| facts.pci.entry(address).got().is_some();
    for (number, node) in &kfd.nodes.items {
        let Ok(number) = number.parse::<u32>() else {
            continue;
        };
        let Some(properties) = node.properties.got() else {
            continue;
        };
        let value = |name: &str| properties.get(name).copied();
        if value("simd_count").unwrap_or(0) == 0 {
            continue;
        }
        let Some(location) = value("location_id") else {
            continue;
        };
        let domain = value("domain").unwrap_or(0);
        let address = |function: u64| {
            format!(
                "{domain:04x}:{:02x}:{:02x}.{function:x}",
                (location >> 8) & 0xff,
                (location >> 3) & 0x1f
            )
        };
        let own = address(location & 7);
        let elsewhere = || {
            let device = value("device_id").filter(|_| value("domain").is_none())?;
            in_any_domain(&own, device, facts)
        };
        let key = if on_bus(&own) {
            own
        } else {
            elsewhere().unwrap_or_else(|| address(0))
        };
        nodes.entry(key).or_default().push((number, node));
    }
    for list in nodes.values_mut() {
        list.sort_by_key(|(number, _)| *number);
    }
    nodes
}

/// Kernels before 5.7 do not tell the domain of a node: the one AMD device of that id that stands in the same place of another
/// domain is meant.
fn in_any_domain(address: &str, device: u64, facts: &Facts) -> Option<String> {
    let (_, place) = address.split_once(':')?;
    let mut found = facts.pci.items().filter(|(key, function)| {
        key.split_once(':').is_some_and(|(_, other)| other == place)
            && function.vendor.got() == Some(&0x1002)
            && function.device.got().copied().map(u64::from) == Some(device)
    });
    match (found.next(), found.next()) {
        (Some((key, _)), None) => Some(key.clone()),
        _ => None,
    }
}

fn on_the_bus(
    address: &str,
    function: &PciFunction,
    kfd: &BTreeMap<String, Vec<(u32, &KfdNode)>>,
    facts: &Facts,
    tables: &Tables,
) -> Gpu {
    let from_proc = proc_knows(facts, address);
    let vendor = match function.vendor.got() {
        Some(id) => Vendor::from_id(*id),
        None if from_proc => Vendor::Nvidia,
        None if kfd.contains_key(address) => Vendor::Amd,
        None => match function.driver.got().map(String::as_str) {
            Some("nvidia" | "nouveau") => Vendor::Nvidia,
            Some("amdgpu" | "radeon") => Vendor::Amd,
            Some("i915" | "xe") => Vendor::Intel,
            _ => Vendor::Other,
        },
    };
    let (driver, driver_source) = if from_proc && function.driver.is_unknown() {
        // The driver lists only devices that it holds.
        (
            Seen::Got("nvidia".to_owned()),
            format!("/proc/driver/nvidia/gpus/{address}"),
        )
    } else {
        let source = format!("/sys/bus/pci/devices/{address}/driver");
        (function.driver.clone(), source)
    };
    let figures = id(function).and_then(|(vendor, device)| {
        let subsystem = function
            .subsystem_vendor
            .got()
            .copied()
            .zip(function.subsystem_device.got().copied());
        tables.gpu(vendor, device, subsystem, function.revision.got().copied())
    });
    let nodes = kfd.get(address).map_or(&[][..], Vec::as_slice);
    let (drm_card, render) = drm_minors(address, facts);
    let accelerator = function
        .class
        .got()
        .is_some_and(|class| class >> 16 == 0x12);
    let mut gpu = Gpu {
        key: address.to_owned(),
        pci: Some(address.to_owned()),
        vendor,
        id: id(function),
        name: proc_model(address, facts)
            .or_else(|| figures.as_ref().map(|figures| figures.name.clone()))
            .or_else(|| system_name(function, facts)),
        chip: figures.as_ref().map(|figures| figures.chip.clone()),
        architecture: None,
        target: None,
        target_may_accuse: false,
        memory_bytes: memory(address, nodes, facts),
        flavour: flavour(&driver, facts),
        driver,
        driver_source,
        integrated: integrated(address, vendor, figures.as_ref(), facts),
        asleep: asleep(function),
        passed_in: None,
        data_centre: figures.as_ref().is_some_and(|figures| figures.data_centre)
            || (vendor == Vendor::Amd && accelerator),
        upstream: pcie::upstream(function),
        link: facts
            .pci
            .got()
            .and_then(|bus| pcie::card_link(address, vendor, bus)),
        drm_card,
        render,
        kfd_nodes: nodes.iter().map(|(number, _)| *number).collect(),
        nvidia_minor: nvidia_minor(address, facts),
        remembered: false,
    };
    set_target(&mut gpu, nodes, figures.as_ref(), tables);
    gpu
}

/// The target decides the architecture; what the driver says of the target beats the table.
fn set_target(
    gpu: &mut Gpu,
    nodes: &[(u32, &KfdNode)],
    figures: Option<&GpuFigures>,
    tables: &Tables,
) {
    let from_kfd = nodes
        .iter()
        .find_map(|(_, node)| gfx_target(*node.properties.got()?.get("gfx_target_version")?));
    gpu.target_may_accuse = from_kfd.is_some()
        || figures.is_some_and(|figures| figures.target_to_accuse_by().is_some());
    gpu.target = from_kfd.or_else(|| figures.and_then(|figures| figures.target.clone()));
    gpu.architecture = gpu
        .target
        .as_ref()
        .and_then(|target| tables.architecture(target))
        .or_else(|| figures.and_then(|figures| figures.architecture.clone()));
}

/// The list of a driver that could not be read whole, and why: a GPU that is gone from the bus may be missing without it.
pub(super) fn unread_list(facts: &Facts) -> Option<String> {
    let nvidia = facts
        .nvidia_proc
        .as_ref()
        .and_then(|proc| proc.gpus.as_ref());
    let kfd = facts.kfd.as_ref().map(|kfd| &kfd.nodes);
    let nvidia = why_unread(&facts.nvidia_proc, &nvidia)
        .map(|why| format!("/proc/driver/nvidia/gpus: {why}"));
    nvidia.or_else(|| {
        why_unread(&facts.kfd, &kfd).map(|why| format!("/sys/class/kfd/kfd/topology/nodes: {why}"))
    })
}

/// None: read whole, or proved not to exist. A source that nobody asked as a whole is not waited for.
fn why_unread<S, T>(source: &Seen<S>, list: &Seen<&Named<T>>) -> Option<String> {
    match list {
        Seen::Got(list) if list.whole => None,
        Seen::Got(_) => Some("not all of it was read".to_owned()),
        Seen::Absent => None,
        Seen::Unasked(_) if matches!(source, Seen::Unasked(_)) => None,
        other => Some(other.as_ref().map(|_| ()).why()),
    }
}

/// GPUs that are not on the bus any more and that a driver still remembers.
fn remembered(
    facts: &Facts,
    tables: &Tables,
    kfd: &BTreeMap<String, Vec<(u32, &KfdNode)>>,
) -> Vec<Gpu> {
    let mut gpus = Vec::new();
    // A bus without any device is one that this place does not show: the bridge of a lost GPU would remain.
    let bus_is_whole = facts
        .pci
        .got()
        .is_some_and(|bus| bus.whole && !bus.items.is_empty());
    let gone = |address: &str| facts.pci.entry(address).got().is_none();
    let in_proc = facts
        .nvidia_proc
        .got()
        .into_iter()
        .flat_map(|proc| proc.gpus.items().map(|(address, _)| address));
    for address in in_proc.filter(|address| gone(address)) {
        let mut gpu = blank(format!("proc:{address}"), Vendor::Nvidia);
        gpu.name = proc_model(address, facts);
        gpu.nvidia_minor = nvidia_minor(address, facts);
        gpu.flavour = flavour(&Seen::Got("nvidia".to_owned()), facts);
        gpu.driver_source = format!("/proc/driver/nvidia/gpus/{address}");
        place_off_the_bus(&mut gpu, address, bus_is_whole, "nvidia");
        gpus.push(gpu);
    }
    for (address, nodes) in kfd.iter().filter(|(address, _)| gone(address)) {
        let number = nodes.first().map_or(0, |(number, _)| *number);
        let mut gpu = blank(format!("kfd:{number}"), Vendor::Amd);
        gpu.kfd_nodes = nodes.iter().map(|(number, _)| *number).collect();
        gpu.memory_bytes = memory(address, nodes, facts);
        let ids = nodes.first().and_then(|(_, node)| {
            let properties = node.properties.got()?;
            Some((
                u16::try_from(*properties.get("vendor_id")?).ok()?,
                u16::try_from(*properties.get("device_id")?).ok()?,
            ))
        });
        let figures = ids.and_then(|(vendor, device)| tables.gpu(vendor, device, None, None));
        gpu.id = ids;
        gpu.name = figures.as_ref().map(|figures| figures.name.clone());
        gpu.chip = figures.as_ref().map(|figures| figures.chip.clone());
        gpu.data_centre = figures.as_ref().is_some_and(|figures| figures.data_centre);
        set_target(&mut gpu, nodes, figures.as_ref(), tables);
        gpu.driver_source = format!("/sys/class/kfd/kfd/topology/nodes/{number}");
        place_off_the_bus(&mut gpu, address, bus_is_whole, "amdgpu");
        gpus.push(gpu);
    }
    gpus
}

/// Where the bus was read whole the device is gone from it; where not, it is just not known to be there, and its driver
/// knows it: an ordinary GPU.
fn place_off_the_bus(gpu: &mut Gpu, address: &str, bus_is_whole: bool, driver: &str) {
    if bus_is_whole {
        gpu.remembered = true;
    } else {
        gpu.key = address.to_owned();
        gpu.pci = Some(address.to_owned());
        gpu.driver = Seen::Got(driver.to_owned());
    }
}

/// Under WSL the GPU is on no bus of this side: it is `dxg`. Whose it is, the names of the host's driver folders tell.
fn through_dxg(facts: &Facts, place: &Seen<Place>) -> Option<Gpu> {
    let wsl =
        matches!(place, Seen::Got(Place::Wsl(_))) || super::place::wsl_version(facts).is_some();
    let node = facts
        .device_nodes
        .got()
        .is_some_and(|nodes| nodes.dev.items.contains_key("/dev/dxg"));
    if !wsl || !node {
        return None;
    }
    let folders = facts.wsl.got().and_then(|wsl| wsl.drivers.got());
    let has = |prefixes: &[&str]| {
        folders.is_some_and(|folders| {
            folders
                .items
                .keys()
                .any(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        })
    };
    // Folder names of Windows display drivers: `nv_dispi.inf_...`, `u0401234.inf_...` (AMD), `iigd_dch.inf_...` (Intel).
    let vendor = if has(&["nv"]) {
        Vendor::Nvidia
    } else if has(&["u0", "c0", "amd", "ati"]) {
        Vendor::Amd
    } else if has(&["iigd", "igd"]) {
        Vendor::Intel
    } else {
        Vendor::Other
    };
    let mut gpu = blank(DXG.to_owned(), vendor);
    gpu.driver = Seen::Got("dxgkrnl".to_owned());
    gpu.driver_source = "/dev/dxg".to_owned();
    Some(gpu)
}

/// Where the bus could not be read, as in some containers, NVML knows its GPUs all the same.
fn known_to_nvml_alone(gpus: &[Gpu], bus_is_whole: bool, facts: &Facts) -> Vec<Gpu> {
    let (false, Some(nvml)) = (bus_is_whole, facts.nvml.got()) else {
        return Vec::new();
    };
    nvml.devices
        .keys()
        .filter(|address| {
            !gpus
                .iter()
                .any(|gpu| gpu.key == DXG || gpu.key.ends_with(address.as_str()))
        })
        .map(|address| {
            let mut gpu = blank(address.clone(), Vendor::Nvidia);
            gpu.driver_source = "NVML".to_owned();
            place_off_the_bus(&mut gpu, address, false, "nvidia");
            gpu
        })
        .collect()
}

/// What NVML says of a GPU. Under WSL the only one it lists is the one behind `dxg`.
pub(super) fn nvml_device<'a>(key: &str, facts: &'a Facts) -> Option<&'a NvmlDevice> {
    let devices = &facts.nvml.got()?.devices;
    match devices.get(key) {
        None if key == DXG && devices.len() == 1 => devices.values().next(),
        device => device,
    }
}

/// Adds what the driver's libraries say: they know a GPU better than tables do, and sysfs knows it better than they.
fn what_libraries_say(gpu: &mut Gpu, facts: &Facts, tables: &Tables) {
    if let Some(device) = nvml_device(&gpu.key, facts) {
        gpu.name = device.name.got().cloned().or(gpu.name.take());
        gpu.memory_bytes = gpu.memory_bytes.or(device.memory_bytes.got().copied());
        gpu.nvidia_minor = gpu.nvidia_minor.or(device.minor.got().copied());
        if let Some(capability) = device.compute_capability.got() {
            let target = format!("sm_{}", capability.replace('.', ""));
            gpu.architecture = tables.architecture(&target).or(gpu.architecture.take());
            gpu.target = Some(target);
            gpu.target_may_accuse = true;
        }
    }
    let rocm_smi = facts.rocm_smi.got();
    if let Some(device) = rocm_smi.and_then(|smi| smi.devices.get(&gpu.key)) {
        gpu.name = gpu.name.take().or(device.name.got().cloned());
        gpu.memory_bytes = gpu.memory_bytes.or(device.memory_bytes.got().copied());
    }
}

fn blank(key: String, vendor: Vendor) -> Gpu {
    Gpu {
        key,
        pci: None,
        vendor,
        id: None,
        name: None,
        chip: None,
        architecture: None,
        target: None,
        target_may_accuse: false,
        memory_bytes: None,
        driver: Seen::Unasked(Why::NotCaptured),
        driver_source: String::new(),
        flavour: None,
        integrated: None,
        asleep: None,
        passed_in: None,
        data_centre: false,
        upstream: Vec::new(),
        link: None,
        drm_card: None,
        render: None,
        kfd_nodes: Vec::new(),
        nvidia_minor: None,
        remembered: false,
    }
}

fn proc_field(address: &str, field: &str, facts: &Facts) -> Option<String> {
    let proc = facts.nvidia_proc.got()?;
    let gpu = proc.gpus.entry(address).got().copied()?;
    gpu.information.got()?.get(field).cloned()
}

fn proc_model(address: &str, facts: &Facts) -> Option<String> {
    // A GPU that never came up is called `Unknown`.
    proc_field(address, "Model", facts).filter(|model| !model.is_empty() && model != "Unknown")
}

fn nvidia_minor(address: &str, facts: &Facts) -> Option<u32> {
    proc_field(address, "Device Minor", facts)?.parse().ok()
}

/// The marketing name in `pci.ids` stands in brackets behind the chip: `AD102 [GeForce RTX 4090]`.
fn system_name(function: &PciFunction, facts: &Facts) -> Option<String> {
    let (vendor, device) = id(function)?;
    let names = facts.pci_ids.got()?;
    let name = names.devices.get(&format!("{vendor:04x}:{device:04x}"))?;
    match (name.find('['), name.rfind(']')) {
        (Some(open), Some(close)) if open < close => Some(name[open + 1..close].to_owned()),
        _ => Some(name.clone()),
    }
}

fn memory(address: &str, nodes: &[(u32, &KfdNode)], facts: &Facts) -> Option<u64> {
    let drm = facts.drm.got();
    let amdgpu = drm.and_then(|drm| drm.amdgpu.get(address)?.vram_bytes.got().copied());
    let intel = drm.and_then(|drm| drm.intel.get(address)?.lmem_bytes.got().copied());
    // The banks of one partition are not those of the card.
    let kfd = match nodes {
        [(_, node)] => node.memory_bytes.got().copied(),
        _ => None,
    };
    amdgpu.or(intel).or(kfd).filter(|bytes| *bytes > 0)
}

fn flavour(driver: &Seen<String>, facts: &Facts) -> Option<String> {
    let module = |name: &str| {
        facts
            .modules
            .got()
            .and_then(|modules| modules.known.get(name)?.got())
    };
    match driver.got().map(String::as_str) {
        Some("nvidia") => {
            let open = facts
                .nvidia_proc
                .got()
                .and_then(|proc| proc.open.got().copied());
            let tainted = module("nvidia").and_then(|module| module.taint.got());
            match (open, tainted) {
                (Some(true), _) => Some("open".to_owned()),
                (Some(false), _) => Some("proprietary".to_owned()),
                (None, Some(letters)) if letters.contains('P') => Some("proprietary".to_owned()),
                _ => None,
            }
        }
        // Only AMD's own package gives the module a version.
        Some("amdgpu") => match &module("amdgpu")?.version {
            Seen::Got(_) => Some("dkms".to_owned()),
            Seen::Absent => Some("in-tree".to_owned()),
            _ => None,
        },
        _ => None,
    }
}

fn integrated(
    address: &str,
    vendor: Vendor,
    figures: Option<&GpuFigures>,
    facts: &Facts,
) -> Option<bool> {
    let amdgpu = facts.drm.got().and_then(|drm| drm.amdgpu.get(address));
    // Only discrete cards have a board, and memory of somebody's; older kernels say `unknown` of the memory of others.
    let discrete = amdgpu.is_some_and(|device| {
        let maker = device.vram_vendor.got().map(String::as_str);
        maker.is_some_and(|maker| maker != "unknown") || device.board_info.got().is_some()
    });
    figures
        .and_then(|figures| figures.integrated)
        .or(discrete.then_some(false))
        .or_else(|| match vendor {
            // Intel's processors have theirs at this address, and no card can have it.
            Vendor::Intel => Some(address.ends_with("00:02.0")),
            _ => None,
        })
}

fn asleep(function: &PciFunction) -> Option<bool> {
    let detail = function.detail.as_ref()?;
    match detail.runtime_status.got().map(String::as_str) {
        Some("active" | "unsupported" | "error") => Some(false),
        Some("suspended" | "suspending") => Some(true),
        Some("resuming") => Some(false),
        _ => match detail.power_state.got().map(String::as_str) {
            Some("D3cold" | "D3hot") => Some(true),
            Some("D0") => Some(false),
            _ => None,
        },
    }
}

fn drm_minors(address: &str, facts: &Facts) -> (Option<String>, Option<String>) {
    let Some(drm) = facts.drm.got() else {
        return (None, None);
    };
    let of = |prefix: &str| {
        drm.minors
            .items
            .iter()
            .find(|(name, owner)| {
                name.starts_with(prefix) && owner.got().map(String::as_str) == Some(address)
            })
            .map(|(name, _)| name.clone())
    };
    (of("card"), of("renderD"))
}

/// In a container: whether this GPU was given to it.
fn passed_in(gpu: &Gpu, facts: &Facts, place: &Seen<Place>) -> Option<bool> {
    if !matches!(place, Seen::Got(Place::Container(_))) {
        return None;
    }
    // It is known from its node alone.
    if gpu.key == DXG {
        return Some(true);
    }
    // NVML lists the GPUs whose nodes open.
    if let (Vendor::Nvidia, Some(nvml)) = (gpu.vendor, facts.nvml.got()) {
        let listed = nvml.devices.contains_key(&gpu.key);
        if listed || nvml.is_whole() {
            return Some(listed);
        }
    }
    let nodes = facts.device_nodes.got()?;
    let node = match (gpu.vendor, gpu.nvidia_minor, &gpu.render) {
        (Vendor::Nvidia, Some(minor), _) => nodes.dev.get(&format!("/dev/nvidia{minor}")),
        (Vendor::Nvidia, None, _) => match nodes.dev.get("/dev/nvidiactl") {
            // The control node may have come with another GPU: where only some were given, all are on the bus and bound
            // all the same, but the container's `/proc/driver/nvidia` leaves the others out.
            Seen::Got(_) => {
                let proc = facts.nvidia_proc.got()?;
                return proc.gpus.entry(&gpu.key).is_absent().then_some(false);
            }
            other => other,
        },
        (_, _, Some(render)) => nodes.dri.entry(&format!("/dev/dri/{render}")),
        _ => Seen::Unasked(Why::NotCaptured),
    };
    match node {
        Seen::Got(_) => Some(true),
        Seen::Absent => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::device_nodes::{DeviceNodes, Node};
    use crate::facts::kernel::Kernel;
    use crate::facts::nvidia_proc::{NvidiaProc, NvidiaProcGpu};
    use crate::facts::platform::Surroundings;

    /// A container with these nodes below `/dev`, whose folder was read whole.
    fn container(nodes: &[&str]) -> Facts {
        Facts {
            surroundings: Seen::Got(Surroundings {
                dockerenv: Seen::Got(()),
                ..Surroundings::default()
            }),
            device_nodes: Seen::Got(DeviceNodes {
                dev: Named {
                    whole: true,
                    items: nodes
                        .iter()
                        .map(|path| ((*path).to_owned(), Node::default()))
                        .collect(),
                },
                ..DeviceNodes::default()
            }),
            ..Facts::default()
        }
    }

    fn passed(facts: &Facts) -> Vec<Option<bool>> {
        let place = super::super::place::place(facts);
        let joined = join(facts, &Tables::embedded(), &place);
        joined.gpus.iter().map(|gpu| gpu.passed_in).collect()
    }

    #[test]
    fn a_list_of_a_driver_that_was_not_read_leaves_the_gpus_open() {
        let whole = |gpus: Seen<Named<NvidiaProcGpu>>| {
            let facts = Facts {
                pci: Seen::Got(Named {
                    whole: true,
                    ..Named::default()
                }),
                nvidia_proc: Seen::Got(NvidiaProc {
                    gpus,
                    ..NvidiaProc::default()
                }),
                ..Facts::default()
            };
            join(&facts, &Tables::embedded(), &Seen::Absent).whole
        };
        let listed = |whole| {
            Seen::Got(Named {
                whole,
                ..Named::default()
            })
        };
        assert!(whole(listed(true)));
        assert!(whole(Seen::Absent));
        assert!(!whole(listed(false)));
        assert!(!whole(Seen::error("EIO")));
        assert!(!whole(Seen::Unasked(Why::NotCaptured)));
    }

    #[test]
    fn what_windows_lends_to_a_container_is_passed_in() {
        let mut facts = container(&["/dev/dxg"]);
        facts.kernel = Seen::Got(Kernel {
            release: Seen::Got("6.6.87.2-microsoft-standard-WSL2".to_owned()),
            ..Kernel::default()
        });
        facts.wsl = Seen::Got(crate::facts::platform::Wsl {
            drivers: Seen::Got(Named {
                whole: true,
                items: [("nv_dispi.inf_amd64".to_owned(), ())].into(),
            }),
            ..Default::default()
        });
        assert_eq!(passed(&facts), [Some(true)]);
    }

    #[test]
    fn the_control_node_says_nothing_of_a_gpu_without_a_number() {
        let mut facts = container(&["/dev/nvidiactl", "/dev/nvidia0"]);
        let function = PciFunction {
            vendor: Seen::Got(0x10de),
            class: Seen::Got(0x03_0200),
            ..PciFunction::default()
        };
        facts.pci = Seen::Got(Named {
            whole: true,
            items: [("0000:01:00.0".to_owned(), function)].into(),
        });
        assert_eq!(passed(&facts), [None]);
        facts.nvidia_proc = Seen::Got(NvidiaProc {
            gpus: Seen::Got(Named {
                whole: true,
                ..Named::default()
            }),
            ..NvidiaProc::default()
        });
        assert_eq!(passed(&facts), [Some(false)]);
    }
}
