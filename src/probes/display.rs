//! Fills `facts/display.rs`.

use super::attributes::{
    COUNT_LIMIT, Power, device_path, is_numbered, is_pci_address, number, word,
};
use super::pci::bound_driver;
use crate::facts::display::{AmdgpuDevice, Drm, Icd, IntelDevice, Sensors};
use crate::facts::{Named, Seen, Why};
use crate::host::{Host, Listing};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

const DRM: &str = "/sys/class/drm";
const ACCEL: &str = "/sys/class/accel";

/// Where the Vulkan loader looks for manifests; the last one is NixOS's.
const VULKAN_FOLDERS: [&str; 5] = [
    "/etc/vulkan/icd.d",
    "/usr/local/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
    "/run/opengl-driver/share/vulkan/icd.d",
];
const OPENCL_FOLDERS: [&str; 1] = ["/etc/OpenCL/vendors"];

/// Most files of one folder that are read: ICD files, firmware versions, sensors. Real folders have a tenth of it.
const FILE_LIMIT: usize = 256;
/// Most devices whose driver attributes are read: each costs up to a hundred questions.
const DEVICE_LIMIT: usize = 256;

/// Source `drm`.
pub fn drm(host: &Host) -> Seen<Drm> {
    let listing = host.list(DRM);
    let mut drm = Drm {
        accel: read_accel(host),
        ..Drm::default()
    };
    let mut addresses = BTreeSet::new();
    if let Seen::Got(listing) = &listing {
        drm.minors = read_minors(host, listing);
        addresses.extend(
            drm.minors
                .items
                .values()
                .filter_map(|device| device.got())
                .filter(|device| is_pci_address(device))
                .cloned(),
        );
    }
    let drivers = bound_to(host, &addresses);
    for (address, driver) in drivers {
        let folder = device_path(host, "/sys/bus/pci/devices", &address)
            .into_got()
            .unwrap_or_else(|| format!("/sys/bus/pci/devices/{address}"));
        if driver == "amdgpu" {
            drm.amdgpu.insert(address, read_amdgpu(host, &folder));
        } else {
            drm.intel.insert(address, read_intel(host, &folder));
        }
    }
    let something = !drm.amdgpu.is_empty()
        || !drm.intel.is_empty()
        || drm.accel.got().is_some_and(|nodes| !nodes.is_empty());
    match listing {
        Seen::Got(_) => Seen::Got(drm),
        _ if something => Seen::Got(drm),
        other => other.and_then(|_| Seen::default()),
    }
}

/// Source `icd`.
pub fn icd(host: &Host) -> Seen<Icd> {
    Seen::Got(Icd {
        vulkan: read_icd_files(host, &VULKAN_FOLDERS, ".json", parse_vulkan),
        opencl: read_icd_files(host, &OPENCL_FOLDERS, ".icd", parse_opencl),
    })
}

fn read_minors(host: &Host, listing: &Listing) -> Named<Seen<String>> {
    let mut minors = Named {
        whole: listing.whole,
        items: BTreeMap::new(),
    };
    for name in &listing.names {
        if !is_numbered(name, "card") && !is_numbered(name, "renderD") {
            continue;
        }
        if minors.items.len() == COUNT_LIMIT {
            minors.whole = false;
            break;
        }
        minors
            .items
            .insert(name.clone(), read_device(host, DRM, name));
    }
    minors
}

/// The device that a class entry belongs to: by its own place below `/sys/devices`, else by its `device` link.
fn read_device(host: &Host, class: &str, name: &str) -> Seen<String> {
    let path = device_path(host, class, name);
    if path.is_absent() {
        return Seen::Absent;
    }
    let kind = class.rsplit('/').next().unwrap_or(class);
    if let Some(device) = path.got().and_then(|path| device_of(path, kind)) {
        return Seen::Got(device);
    }
    host.real(&format!("{class}/{name}/device"))
        .and_then(|device| match name_of_device(&device) {
            Some(name) => Seen::Got(name),
            None => Seen::error("a device that is none"),
        })
}

fn read_accel(host: &Host) -> Seen<BTreeMap<String, String>> {
    host.list(ACCEL).map(|listing| {
        listing
            .names
            .iter()
            .filter(|name| is_numbered(name, "accel"))
            .take(COUNT_LIMIT)
            .filter_map(|name| Some((name.clone(), read_device(host, ACCEL, name).into_got()?)))
            .collect()
    })
}

/// The device of `/sys/devices/.../DEVICE/drm/card0`.
fn device_of(path: &str, kind: &str) -> Option<String> {
    let (class_folder, _minor) = path.rsplit_once('/')?;
    let (device, folder) = class_folder.rsplit_once('/')?;
    if folder != kind {
        return None;
    }
    name_of_device(device)
}

/// A device's PCI address; its own name where it is not a PCI function or a part of one. Virtio and auxiliary devices are
/// parts of the function above them. A USB display is no part of the USB controller, and the firmware's frame buffer is
/// not driven by the GPU's driver although its folder is below the GPU.
fn name_of_device(path: &str) -> Option<String> {
    let mut below = Vec::new();
    for part in path.rsplit('/').filter(|part| !part.is_empty()) {
        if is_pci_address(part) {
            let foreign = below
                .iter()
                .any(|part: &&str| part.contains("-framebuffer") || part.starts_with("usb"));
            if foreign {
                break;
            }
            return Some(part.to_owned());
        }
        below.push(part);
    }
    below.first().map(|name| (*name).to_owned())
}

/// The devices whose driver has attributes that are read here, with that driver: what the drivers' folders name, and where
/// those do not tell, what the display devices say themselves.
fn bound_to(host: &Host, displays: &BTreeSet<String>) -> BTreeMap<String, &'static str> {
    const DRIVERS: [&str; 3] = ["amdgpu", "i915", "xe"];
    let mut bound = BTreeMap::new();
    let mut complete = true;
    for driver in DRIVERS {
        match host.list(&format!("/sys/bus/pci/drivers/{driver}")) {
            Seen::Got(listing) => {
                complete &= listing.whole;
                for name in listing
                    .names
                    .into_iter()
                    .filter(|name| is_pci_address(name))
                {
                    bound.insert(name, driver);
                }
            }
            Seen::Absent => {}
            Seen::Unasked(_) | Seen::Failed(_) => complete = false,
        }
    }
    if !complete {
        for address in displays {
            if bound.contains_key(address) {
                continue;
            }
            let name = bound_driver(host, &format!("/sys/bus/pci/devices/{address}"));
            if let Some(driver) = DRIVERS
                .into_iter()
                .find(|driver| name.got().is_some_and(|name| name == driver))
            {
                bound.insert(address.clone(), driver);
            }
        }
    }
    while bound.len() > DEVICE_LIMIT {
        bound.pop_last();
    }
    bound
}

/// Reads the attributes of an amdgpu device. What the driver keeps in memory may be read of a sleeping GPU too; what it
/// asks the hardware for may not.
fn read_amdgpu(host: &Host, folder: &str) -> AmdgpuDevice {
    let at = |name: &str| format!("{folder}/{name}");
    let power = Power::read(host, folder);
    let counters = || {
        let is_there = host.list(&at("ras")).map(|_| ());
        is_there.map(|()| read_folder(host, &at("ras"), |name| name.ends_with("_err_count")))
    };
    AmdgpuDevice {
        vram_bytes: number(host, &at("mem_info_vram_total")),
        vram_used_bytes: power.if_awake(|| number(host, &at("mem_info_vram_used"))),
        visible_vram_bytes: number(host, &at("mem_info_vis_vram_total")),
        gtt_bytes: number(host, &at("mem_info_gtt_total")),
        vram_vendor: word(host, &at("mem_info_vram_vendor")),
        board_info: word(host, &at("board_info")),
        vbios: word(host, &at("vbios_version")),
        unique_id: word(host, &at("unique_id")),
        firmware: read_folder(host, &at("fw_version"), |name| {
            name.ends_with("_fw_version")
        }),
        // Both are read from registers, without waking the GPU first.
        compute_partition: power.if_awake(|| word(host, &at("current_compute_partition"))),
        memory_partition: power.if_awake(|| word(host, &at("current_memory_partition"))),
        busy_percent: power.if_awake(|| number(host, &at("gpu_busy_percent"))),
        hwmon: power.if_awake(|| read_hwmon(host, folder)),
        ras: power.if_awake(counters),
        gc_version: read_gc_version(host, folder),
    }
}

fn read_gc_version(host: &Host, folder: &str) -> Seen<String> {
    let part = |name: &str| -> Seen<u32> {
        number(host, &format!("{folder}/ip_discovery/die/0/GC/0/{name}"))
    };
    part("major").and_then(|major| {
        part("minor").and_then(|minor| {
            part("revision").map(|revision| format!("{major}.{minor}.{revision}"))
        })
    })
}

fn read_intel(host: &Host, folder: &str) -> IntelDevice {
    let power = Power::read(host, folder);
    IntelDevice {
        lmem_bytes: read_lmem(host, folder),
        hwmon: power.if_awake(|| read_hwmon(host, folder)),
    }
}

/// Local memory: a sum over the tiles of xe.
fn read_lmem(host: &Host, folder: &str) -> Seen<u64> {
    let tile = |index: u32| -> Seen<u64> {
        number(
            host,
            &format!("{folder}/tile{index}/physical_vram_size_bytes"),
        )
    };
    // No GPU has had more than two tiles.
    tile(0).and_then(|first| match tile(1) {
        Seen::Got(second) => first
            .checked_add(second)
            .map_or_else(|| Seen::error("beyond any size"), Seen::Got),
        Seen::Absent | Seen::Unasked(Why::NotCaptured) => Seen::Got(first),
        other => other,
    })
}

/// The values of a folder's files that the filter wants and that could be read, by name.
fn read_folder(
    host: &Host,
    folder: &str,
    wanted: impl Fn(&str) -> bool,
) -> BTreeMap<String, String> {
    let names = host.list(folder).into_got().unwrap_or_default().names;
    names
        .into_iter()
        .filter(|name| wanted(name))
        .take(FILE_LIMIT)
        .filter_map(|name| {
            let value = word(host, &format!("{folder}/{name}")).into_got()?;
            Some((name, value))
        })
        .collect()
}

/// Numbers of the first hardware monitor below a device. A sensor that gives no number (ENODATA) is left out.
fn read_hwmon(host: &Host, folder: &str) -> Seen<Sensors> {
    let folder = format!("{folder}/hwmon");
    host.list(&folder).and_then(|monitors| {
        let Some(monitor) = monitors
            .names
            .iter()
            .find(|name| is_numbered(name, "hwmon"))
        else {
            return if monitors.whole {
                Seen::Absent
            } else {
                Seen::default()
            };
        };
        let folder = format!("{folder}/{monitor}");
        host.list(&folder).map(|files| {
            let values = files
                .names
                .into_iter()
                .filter(|name| is_sensor(name))
                .take(FILE_LIMIT)
                .filter_map(|name| {
                    let value = number(host, &format!("{folder}/{name}")).into_got()?;
                    Some((name, value))
                })
                .collect();
            Sensors {
                monitor: monitor.clone(),
                values,
            }
        })
    })
}

/// `temp1_input`, `power1_cap_default` and their like: a kind, a number and what of it.
fn is_sensor(name: &str) -> bool {
    const KINDS: [&str; 7] = ["temp", "power", "fan", "freq", "in", "energy", "curr"];
    const WHAT: [&str; 11] = [
        "input",
        "average",
        "max",
        "min",
        "crit",
        "emergency",
        "rated_max",
        "cap",
        "cap_default",
        "cap_max",
        "cap_min",
    ];
    let Some((sensor, what)) = name.split_once('_') else {
        return false;
    };
    WHAT.contains(&what) && KINDS.iter().any(|kind| is_numbered(sensor, kind))
}

/// ICD files of several folders by path. Nothing found is an answer only where every folder answered.
fn read_icd_files(
    host: &Host,
    folders: &[&str],
    suffix: &str,
    parse: fn(&str) -> Seen<String>,
) -> Seen<BTreeMap<String, Seen<String>>> {
    let mut files = BTreeMap::new();
    let mut nothing = Seen::Absent;
    for folder in folders {
        match host.list(folder) {
            Seen::Got(listing) => {
                if nothing.is_absent() {
                    nothing = if listing.whole {
                        Seen::Got(BTreeMap::new())
                    } else {
                        Seen::default()
                    };
                }
                for name in listing
                    .names
                    .iter()
                    .filter(|name| name.ends_with(suffix))
                    .take(FILE_LIMIT)
                {
                    let path = format!("{folder}/{name}");
                    let library = host.text(&path).and_then(|text| parse(&text));
                    files.insert(path, library);
                }
            }
            Seen::Absent => {}
            Seen::Unasked(why) => nothing = Seen::Unasked(why),
            Seen::Failed(failure) => nothing = Seen::Failed(failure),
        }
    }
    if files.is_empty() {
        nothing
    } else {
        Seen::Got(files)
    }
}

/// The library that a Vulkan manifest names.
fn parse_vulkan(text: &str) -> Seen<String> {
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(rename = "ICD")]
        icd: Library,
    }
    #[derive(Deserialize)]
    struct Library {
        library_path: String,
    }
    match serde_json::from_str::<Manifest>(text) {
        Ok(manifest) => Seen::Got(manifest.icd.library_path),
        Err(_) => Seen::error("not a Vulkan manifest"),
    }
}

/// The library that an OpenCL vendor file names in its first line.
fn parse_opencl(text: &str) -> Seen<String> {
    match text.lines().next().map(str::trim) {
        Some(library) if !library.is_empty() => Seen::Got(library.to_owned()),
        _ => Seen::error("no library in it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Failure;
    use crate::host::Options;
    use crate::probes::tree::Tree;

    const GPU: &str = "pci0000:00/0000:00:01.1/0000:03:00.0";

    #[test]
    fn devices_of_minors() {
        for (path, device) in [
            (
                "/sys/devices/pci0000:00/0000:00:02.0/drm/card1",
                "0000:00:02.0",
            ),
            (
                "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/drm/renderD128",
                "0000:01:00.0",
            ),
            (
                "/sys/devices/pci0000:00/0000:00:01.0/virtio0/drm/card0",
                "0000:00:01.0",
            ),
            (
                "/sys/devices/platform/amdgpu_xcp_30/drm/card17",
                "amdgpu_xcp_30",
            ),
            (
                "/sys/devices/platform/simple-framebuffer.0/drm/card0",
                "simple-framebuffer.0",
            ),
            (
                "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/simple-framebuffer.0/drm/card0",
                "simple-framebuffer.0",
            ),
            (
                "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/drm/card2",
                "1-2:1.0",
            ),
            (
                "/sys/devices/pci0000:00/0000:01:00.0/nova_core.nova-drm.0/drm/card0",
                "0000:01:00.0",
            ),
            ("/sys/devices/platform/axi/axi:gpu/drm/card1", "axi:gpu"),
        ] {
            assert_eq!(device_of(path, "drm").as_deref(), Some(device), "{path}");
        }
        assert_eq!(device_of("/sys/devices/x", "drm"), None);
        assert_eq!(device_of("card0", "drm"), None);
    }

    fn amd() -> Tree {
        let mut tree = Tree::proved();
        tree.function(GPU, "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\n");
        for name in ["card1", "renderD128", "card1-HDMI-A-1"] {
            tree.link(
                &format!("/sys/class/drm/{name}"),
                &format!("../../devices/{GPU}/drm/{name}"),
            );
            tree.file(
                &format!("/sys/devices/{GPU}/drm/{name}/uevent"),
                "MAJOR=226\n",
            );
        }
        tree.file("/sys/class/drm/version", "drm 1.1.0 20060810\n");
        tree.link(
            "/sys/bus/pci/drivers/amdgpu/0000:03:00.0",
            &format!("../../../../devices/{GPU}"),
        );
        for (name, text) in [
            ("power/runtime_status", "active\n"),
            ("power_state", "D0\n"),
            ("mem_info_vram_total", "25753026560\n"),
            ("mem_info_vram_used", "28082176\n"),
            ("mem_info_vis_vram_total", "25753026560\n"),
            ("mem_info_gtt_total", "33527054336\n"),
            ("mem_info_vram_vendor", "samsung\n"),
            ("vbios_version", "113-D70401XT-P11\n"),
            ("gpu_busy_percent", "3\n"),
            ("fw_version/mec_fw_version", "0x00000252\n"),
            ("fw_version/smc_fw_version", "0x004e7e00\n"),
            ("fw_version/uevent", "x\n"),
            ("hwmon/hwmon4/name", "amdgpu\n"),
            ("hwmon/hwmon4/temp1_input", "44000\n"),
            ("hwmon/hwmon4/power1_cap", "303000000\n"),
            ("hwmon/hwmon4/power1_label", "PPT\n"),
            ("ras/umc_err_count", "ue: 0\nce: 2\n"),
            ("ras/features", "feature mask: 0x0\n"),
            ("ip_discovery/die/0/GC/0/major", "11\n"),
            ("ip_discovery/die/0/GC/0/minor", "0\n"),
            ("ip_discovery/die/0/GC/0/revision", "0\n"),
        ] {
            tree.file(&format!("/sys/devices/{GPU}/{name}"), text);
        }
        tree
    }

    fn device(tree: &Tree) -> AmdgpuDevice {
        let drm = tree.ask(drm).into_got().expect("display devices");
        drm.amdgpu.get("0000:03:00.0").expect("a GPU").clone()
    }

    #[test]
    fn an_amdgpu_device() {
        let drm = amd().ask(drm).into_got().expect("display devices");
        assert!(drm.minors.whole);
        let minors: Vec<_> = drm
            .minors
            .items
            .iter()
            .map(|(name, device)| (name.as_str(), device.got().map_or("", String::as_str)))
            .collect();
        assert_eq!(
            minors,
            [("card1", "0000:03:00.0"), ("renderD128", "0000:03:00.0")]
        );
        assert_eq!(drm.accel, Seen::Absent);
        let gpu = device(&amd());
        assert_eq!(gpu.vram_bytes, Seen::Got(25_753_026_560));
        assert_eq!(gpu.vram_used_bytes, Seen::Got(28_082_176));
        assert_eq!(gpu.vram_vendor, Seen::Got("samsung".to_owned()));
        assert_eq!(gpu.board_info, Seen::Absent);
        assert_eq!(gpu.busy_percent, Seen::Got(3));
        assert_eq!(gpu.gc_version, Seen::Got("11.0.0".to_owned()));
        let names: Vec<_> = gpu.firmware.keys().map(String::as_str).collect();
        assert_eq!(names, ["mec_fw_version", "smc_fw_version"]);
        let hwmon = gpu.hwmon.got().expect("sensors");
        assert_eq!(hwmon.monitor, "hwmon4");
        let hwmon = &hwmon.values;
        assert_eq!(hwmon.get("power1_cap"), Some(&303_000_000));
        assert_eq!(hwmon.len(), 2);
        let ras = gpu.ras.got().expect("counters");
        assert_eq!(ras.len(), 1);
        assert_eq!(
            ras.get("umc_err_count").map(String::as_str),
            Some("ue: 0\nce: 2")
        );
    }

    #[test]
    fn a_sleeping_amdgpu_is_not_woken() {
        let mut tree = amd();
        tree.file(
            &format!("/sys/devices/{GPU}/power/runtime_status"),
            "suspended\n",
        );
        let (host, asked) = tree.host(Options::default());
        let drm = drm(&host).into_got().expect("display devices");
        let gpu = drm.amdgpu.get("0000:03:00.0").expect("a GPU");
        assert_eq!(gpu.vram_bytes, Seen::Got(25_753_026_560));
        assert_eq!(gpu.vram_used_bytes, Seen::Unasked(Why::Asleep));
        assert_eq!(gpu.busy_percent, Seen::Unasked(Why::Asleep));
        assert_eq!(gpu.hwmon, Seen::Unasked(Why::Asleep));
        assert_eq!(gpu.compute_partition, Seen::Unasked(Why::Asleep));
        assert_eq!(gpu.memory_partition, Seen::Unasked(Why::Asleep));
        assert_eq!(gpu.ras, Seen::Unasked(Why::Asleep));
        assert!(!asked.borrow().iter().any(|question| {
            question.contains("hwmon") || question.contains("/ras") || question.contains("busy")
        }));
    }

    #[test]
    fn an_attribute_without_data_is_no_zero() {
        let mut tree = amd();
        let at = |name: &str| format!("/sys/devices/{GPU}/{name}");
        tree.error(&at("mem_info_vram_used"), "EIO");
        tree.error(&at("hwmon/hwmon4/temp1_input"), "ENODATA");
        tree.file(&at("mem_info_vram_total"), "99999999999999999999\n");
        tree.bytes(&at("gpu_busy_percent"), b"\xff\x1b[0m");
        let gpu = device(&tree);
        assert_eq!(gpu.vram_used_bytes, Seen::Failed(Failure::errno("EIO")));
        assert!(matches!(gpu.vram_bytes, Seen::Failed(_)));
        assert!(matches!(gpu.busy_percent, Seen::Failed(_)));
        assert_eq!(gpu.hwmon.got().map(|hwmon| hwmon.values.len()), Some(1));
    }

    #[test]
    fn a_compute_gpu_without_a_display_class() {
        // The driver's folder names the device where the class is unknown.
        let mut tree = amd();
        tree.error("/sys/class/drm", "EACCES");
        let drm = tree.ask(drm).into_got().expect("driver attributes");
        assert!(!drm.minors.whole);
        assert_eq!(drm.amdgpu.len(), 1);
    }

    #[test]
    fn the_driver_of_a_display_device_where_its_folder_is_unknown() {
        let mut tree = amd();
        tree.error("/sys/bus/pci/drivers/amdgpu", "EACCES");
        assert_eq!(device(&tree).busy_percent, Seen::Got(3));
    }

    #[test]
    fn no_display_class_is_cheap() {
        let tree = Tree::proved();
        let (host, asked) = tree.host(Options::default());
        assert_eq!(drm(&host), Seen::Absent);
        assert_eq!(asked.borrow().len(), 5);
        assert_eq!(Tree::default().ask(drm), Seen::default());
    }

    #[test]
    fn npu_nodes() {
        let mut tree = Tree::proved();
        tree.link(
            "/sys/class/accel/accel0",
            "../../devices/pci0000:00/0000:00:0b.0/accel/accel0",
        );
        let drm = tree.ask(drm).into_got().expect("an NPU");
        let nodes = drm.accel.got().expect("nodes");
        assert_eq!(
            nodes.get("accel0").map(String::as_str),
            Some("0000:00:0b.0")
        );
    }

    #[test]
    fn sensors() {
        for name in [
            "temp1_input",
            "power1_cap_default",
            "power1_rated_max",
            "fan2_input",
        ] {
            assert!(is_sensor(name), "{name}");
        }
        for name in [
            "name",
            "temp1_label",
            "temp_input",
            "pwm1",
            "power1_cap_x",
            "x1_input",
        ] {
            assert!(!is_sensor(name), "{name}");
        }
    }

    #[test]
    fn loader_files() {
        let mut tree = Tree::proved();
        tree.file(
            "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json",
            "{\"ICD\": {\"api_version\": \"1.4.305\", \"library_path\": \"/usr/lib/libvulkan_radeon.so\"}, \
             \"file_format_version\": \"1.0.0\"}",
        );
        tree.file("/usr/share/vulkan/icd.d/broken.json", "{\"ICD\": ");
        tree.file("/usr/share/vulkan/icd.d/README", "no manifest");
        tree.file("/etc/OpenCL/vendors/amdocl64.icd", "libamdocl64.so\nmore\n");
        tree.file("/etc/OpenCL/vendors/empty.icd", "\n");
        let icd = tree.ask(icd).into_got().expect("files");
        let vulkan = icd.vulkan.got().expect("manifests");
        assert_eq!(vulkan.len(), 2);
        assert_eq!(
            vulkan["/usr/share/vulkan/icd.d/radeon_icd.x86_64.json"],
            Seen::Got("/usr/lib/libvulkan_radeon.so".to_owned())
        );
        assert!(matches!(
            vulkan["/usr/share/vulkan/icd.d/broken.json"],
            Seen::Failed(_)
        ));
        let opencl = icd.opencl.got().expect("vendor files");
        assert_eq!(
            opencl["/etc/OpenCL/vendors/amdocl64.icd"],
            Seen::Got("libamdocl64.so".to_owned())
        );
        assert!(matches!(
            opencl["/etc/OpenCL/vendors/empty.icd"],
            Seen::Failed(_)
        ));
    }

    #[test]
    fn no_loader_files_only_where_every_folder_answered() {
        let none = Tree::proved().ask(icd).into_got().expect("an answer");
        assert_eq!((none.vulkan, none.opencl), (Seen::Absent, Seen::Absent));
        let mut tree = Tree::proved();
        tree.error("/etc/vulkan/icd.d", "EACCES");
        tree.file("/usr/share/vulkan/icd.d/README", "no manifest");
        let icd = tree.ask(icd).into_got().expect("an answer");
        assert!(matches!(icd.vulkan, Seen::Failed(Failure::Denied { .. })));
    }
}
