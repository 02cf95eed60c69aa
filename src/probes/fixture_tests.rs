//! The hardware probes over real trees: what `source.toml` knows to be right must be in the facts.

use super::display::drm;
use super::kfd::kfd;
use super::nvidia_proc::nvidia_proc;
use super::pci::pci;
use super::tree::{Tree, shared};
use crate::facts::Seen;
use crate::facts::kfd::KfdNode;
use crate::facts::pci::PciFunction;
use serde::Deserialize;
use std::fs;

#[derive(Deserialize)]
struct Expected {
    #[serde(default)]
    gpu: Vec<Device>,
    #[serde(default)]
    not_gpu: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    pci: String,
    id: Option<String>,
    subsystem: Option<String>,
    class: Option<String>,
    driver: Option<String>,
    current_link_speed: Option<String>,
    current_link_width: Option<u32>,
    max_link_speed: Option<String>,
    max_link_width: Option<u32>,
    vram_bytes: Option<u64>,
    kfd_vram_bytes_sum: Option<u64>,
    #[serde(default)]
    kfd_nodes: Vec<u32>,
}

fn ids(vendor: &Seen<u16>, device: &Seen<u16>) -> Option<String> {
    Some(format!("{:04x}:{:04x}", vendor.got()?, device.got()?))
}

fn compare(function: &PciFunction, expected: &Device, at: &str) {
    if let Some(id) = &expected.id {
        assert_eq!(
            ids(&function.vendor, &function.device).as_ref(),
            Some(id),
            "{at}"
        );
    }
    if let Some(subsystem) = &expected.subsystem {
        let seen = ids(&function.subsystem_vendor, &function.subsystem_device);
        assert_eq!(seen.as_ref(), Some(subsystem), "{at}");
    }
    if let Some(class) = &expected.class {
        let seen = function.class.got().map(|class| format!("0x{class:06x}"));
        assert_eq!(seen.as_ref(), Some(class), "{at}");
    }
    match expected.driver.as_deref() {
        Some("") => assert_eq!(function.driver, Seen::Absent, "{at}"),
        // The one tree that has nothing but the class knows the driver from elsewhere.
        Some(driver) if expected.id.is_some() => {
            assert_eq!(function.driver, Seen::Got(driver.to_owned()), "{at}");
        }
        _ => {}
    }
    let detail = function.detail.as_ref().expect(at);
    let speed = |expected: &Option<String>, seen: &Seen<String>| {
        if let Some(speed) = expected {
            let seen = seen.got().map_or("", |seen| seen.trim_end_matches(" PCIe"));
            assert_eq!(seen, speed.trim_end_matches(" PCIe"), "{at}");
        }
    };
    speed(&expected.current_link_speed, &detail.current_link_speed);
    speed(&expected.max_link_speed, &detail.max_link_speed);
    for (expected, seen) in [
        (expected.current_link_width, &detail.current_link_width),
        (expected.max_link_width, &detail.max_link_width),
    ] {
        if let Some(width) = expected {
            assert_eq!(seen, &Seen::Got(width), "{at}");
        }
    }
}

#[test]
fn what_is_known_of_real_machines() {
    let Some(fixtures) = shared("fixtures") else {
        return;
    };
    let mut trees = 0;
    let mut devices = 0;
    for entry in fs::read_dir(fixtures).expect("the fixtures") {
        let folder = entry.expect("a fixture").path();
        let Ok(text) = fs::read_to_string(folder.join("source.toml")) else {
            continue;
        };
        let expected: Expected = toml::from_str(&text).expect("source.toml");
        let tree = Tree::fixture(&folder.join("root"));
        let (bus, drm, kfd) = (tree.ask(pci), tree.ask(drm), tree.ask(kfd));
        let name = folder.file_name().expect("a name").to_string_lossy();
        trees += 1;
        for device in expected.gpu.iter().chain(&expected.not_gpu) {
            let at = format!("{name} {}", device.pci);
            compare(bus.entry(&device.pci).into_got().expect(&at), device, &at);
            devices += 1;
            if let Some(bytes) = device.vram_bytes {
                let amdgpu = drm.got().and_then(|drm| drm.amdgpu.get(&device.pci));
                let seen = amdgpu.map(|device| device.vram_bytes.clone());
                assert_eq!(seen, Some(Seen::Got(bytes)), "{at}");
            }
            let nodes: Vec<&KfdNode> = device
                .kfd_nodes
                .iter()
                .map(|number| {
                    let nodes = &kfd.got().expect(&at).nodes;
                    nodes.items.get(&number.to_string()).expect(&at)
                })
                .collect();
            for node in &nodes {
                assert_ne!(node.gpu_id, Seen::Got(0), "{at}");
                let target = node.properties.got().and_then(|all| all.get("simd_count"));
                assert!(target.is_some_and(|count| *count > 0), "{at}");
            }
            if let Some(sum) = device.kfd_vram_bytes_sum {
                let seen: u64 = nodes
                    .iter()
                    .filter_map(|node| node.memory_bytes.got())
                    .sum();
                assert_eq!(seen, sum, "{at}");
            }
        }
        // No tree proves any absence.
        assert!(
            !bus.is_absent() && !drm.is_absent() && !kfd.is_absent(),
            "{name}"
        );
    }
    assert!(trees >= 44, "{trees} trees");
    assert!(devices >= 88, "{devices} devices");
}

#[test]
fn partitions_have_minors_of_their_own() {
    let Some(fixtures) = shared("fixtures/amd-mi300x-cpx/root") else {
        return;
    };
    let drm = Tree::fixture(&fixtures)
        .ask(drm)
        .into_got()
        .expect("minors");
    let devices: Vec<&String> = drm
        .minors
        .items
        .iter()
        .filter(|(name, _)| name.starts_with("renderD"))
        .filter_map(|(_, device)| device.got())
        .collect();
    assert_eq!(devices.len(), 63);
    let on_the_bus = devices.iter().filter(|name| name.starts_with("0000:"));
    assert_eq!(on_the_bus.count(), 8);
    assert_eq!(drm.amdgpu.len(), 8);
}

#[test]
fn a_driver_that_shows_only_its_gpus() {
    let Some(fixtures) = shared("fixtures/power9-v100x6-numastatus/root") else {
        return;
    };
    let seen = Tree::fixture(&fixtures).ask(nvidia_proc).into_got();
    let seen = seen.expect("a driver");
    assert!(seen.version.is_unknown());
    assert_eq!(seen.gpus.items().count(), 6);
}

/// The door to a folder gives the probes the same answers as the machine in memory that the other tests rest on.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_and_the_machine_in_memory_agree() {
    use crate::host::live::Root;
    use crate::host::redact::Redactor;
    use crate::host::{Host, Options};

    let Some(fixtures) = shared("fixtures") else {
        return;
    };
    for name in [
        "amd-phoenix-laptop",
        "amd-vangogh-steamdeck",
        "hybrid-intel-amd-latitude3590",
        "intel-b580-xe",
        "nogpu-rpi4",
        "power9-v100x6-numastatus",
        "server-h100x8-dell",
    ] {
        let tree = Tree::fixture(&fixtures.join(name).join("root"));
        let folder = std::env::temp_dir().join(format!("gpucheck-{}-{name}", std::process::id()));
        tree.write_below(&folder).expect("a copy of the tree");
        let root = Root::open(&folder).expect("the copy");
        let host = Host::new(Box::new(root), Redactor::off(), Options::default());
        let seen = (pci(&host), drm(&host), kfd(&host), nvidia_proc(&host));
        fs::remove_dir_all(&folder).expect("the copy removed");
        assert_eq!(seen.0, tree.ask(pci), "{name}");
        assert_eq!(seen.1, tree.ask(drm), "{name}");
        assert_eq!(seen.2, tree.ask(kfd), "{name}");
        assert_eq!(seen.3, tree.ask(nvidia_proc), "{name}");
    }
}
