//! The hardware probes over recorded machines: what `expect.toml` knows of their GPUs must be in the facts, and what the
//! verdicts rest on must turn into an unknown where it cannot be read.

use super::display::drm;
use super::kfd::kfd;
use super::nvidia_proc::nvidia_proc;
use super::pci::{pci, pci_ids};
use super::tree::shared;
use crate::facts::{Failure, Seen, Why};
use crate::host::archive::Archive;
use crate::host::machine::Entries;
use crate::host::redact::Redactor;
use crate::host::{Host, Options};
use serde::Deserialize;
use std::fs;
use std::path::Path;

fn host(entries: Entries) -> Host {
    Host::new(
        Box::new(Archive::new(entries)),
        Redactor::off(),
        Options::default(),
    )
}

/// A machine of the shared ones, laid over its base.
fn load(machines: &Path, name: &str) -> Entries {
    let path = machines.join(name).join("machine.txt");
    let text = fs::read_to_string(path).expect(name);
    let entries = Entries::parse(text.leak()).expect(name);
    match entries.base() {
        Some(base) => Entries::overlay(load(machines, base), entries),
        None => entries,
    }
}

/// A machine of the shared ones with some lines more.
fn changed(machines: &Path, name: &str, more: &str) -> Host {
    let more = format!("gpucheck-machine 1\nmade-by gpucheck 0.1.0 hand redacted\n{more}");
    let more = Entries::parse(more.leak()).expect("the lines");
    host(Entries::overlay(load(machines, name), more))
}

#[derive(Deserialize)]
struct Expected {
    #[serde(default)]
    gpus: Vec<Gpu>,
}

#[derive(Deserialize)]
struct Gpu {
    /// None: under WSL a GPU is on no bus of this side.
    key: Option<String>,
    id: Option<String>,
    driver: Option<String>,
    memory_bytes: Option<u64>,
    link_width: Option<u32>,
    asleep: Option<bool>,
}

#[test]
fn what_is_known_of_recorded_machines() {
    let Some(machines) = shared("machines") else {
        return;
    };
    let (mut all, mut gpus) = (0, 0);
    for entry in fs::read_dir(&machines).expect("the machines") {
        let folder = entry.expect("a machine").path();
        let Ok(text) = fs::read_to_string(folder.join("expect.toml")) else {
            continue;
        };
        let name = folder.file_name().expect("a name").to_string_lossy();
        let expected: Expected = toml::from_str(&text).expect("expect.toml");
        let host = host(load(&machines, &name));
        let (bus, drm) = (pci(&host), drm(&host));
        let _ = (pci_ids(&host, &bus), kfd(&host), nvidia_proc(&host));
        all += 1;
        for gpu in &expected.gpus {
            let Some(key) = gpu.key.as_deref() else {
                continue;
            };
            let at = format!("{name} {key}");
            let function = bus.entry(key).into_got().expect(&at);
            gpus += 1;
            let id = function.vendor.got().zip(function.device.got());
            let id = id.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}"));
            if gpu.id.is_some() {
                assert_eq!(id, gpu.id, "{at}");
            }
            if let Some(driver) = &gpu.driver {
                assert_eq!(function.driver.got(), Some(driver), "{at}");
            }
            let detail = function.detail.as_ref().expect(&at);
            if let Some(width) = gpu.link_width {
                assert_eq!(detail.current_link_width, Seen::Got(width), "{at}");
            }
            if let Some(asleep) = gpu.asleep {
                let unasked = detail.config == Seen::Unasked(Why::Asleep);
                assert_eq!(unasked, asleep, "{at}");
            }
            if let (Some(bytes), Some(Seen::Got("amdgpu"))) = (
                gpu.memory_bytes,
                Some(function.driver.as_ref().map(String::as_str)),
            ) {
                let device = drm.got().and_then(|drm| drm.amdgpu.get(key));
                let seen = device.map(|device| device.vram_bytes.clone());
                assert_eq!(seen, Some(Seen::Got(bytes)), "{at}");
            }
        }
    }
    assert!(all >= 140, "{all} machines");
    assert!(gpus >= 50, "{gpus} GPUs");
}

#[test]
fn a_driver_that_cannot_be_looked_at_is_unknown() {
    let Some(machines) = shared("machines") else {
        return;
    };
    let folder = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
    let name = "nvidia-not-loaded-by-hand";
    let driver = |host: Host| {
        let bus = pci(&host);
        let gpu = bus.entry("0000:01:00.0").into_got().expect("the GPU");
        assert_eq!(gpu.vendor, Seen::Got(0x10de));
        gpu.driver.clone()
    };
    assert_eq!(driver(changed(&machines, name, "")), Seen::Absent);
    let broken = format!(
        "error {folder}/uevent read EIO\nerror {folder}/driver link EIO\nerror {folder}/driver stat EIO\n"
    );
    assert_eq!(
        driver(changed(&machines, name, &broken)),
        Seen::Failed(Failure::errno("EIO"))
    );
    let taken_out =
        format!("unasked {folder}/uevent not-captured\nunasked {folder}/driver not-captured\n");
    assert_eq!(
        driver(changed(&machines, name, &taken_out)),
        Seen::Unasked(Why::NotCaptured)
    );
}

#[test]
fn a_bus_or_driver_folder_that_cannot_be_looked_at_is_unknown() {
    let Some(machines) = shared("machines") else {
        return;
    };
    let (with, without) = ("ubuntu-24.04-mi300x8", "debian-12-no-gpu-vm");
    let broken = |path: &str| {
        ["read", "list", "link", "stat"]
            .map(|operation| format!("error {path} {operation} EIO\n"))
            .concat()
    };
    let host = changed(&machines, with, &broken("/sys/bus/pci/devices"));
    assert!(pci(&host).is_unknown());
    let host = changed(
        &machines,
        with,
        &broken("/sys/class/kfd/kfd/topology/nodes"),
    );
    assert!(kfd(&host).is_unknown());
    assert_eq!(kfd(&changed(&machines, without, "")), Seen::Absent);
    assert_eq!(nvidia_proc(&changed(&machines, without, "")), Seen::Absent);
    let host = changed(
        &machines,
        without,
        &(broken("/proc/driver") + &broken("/proc/driver/nvidia")),
    );
    assert!(nvidia_proc(&host).is_unknown());
}

#[test]
fn memory_of_a_node_that_was_recorded_without_a_listing() {
    let Some(machines) = shared("machines") else {
        return;
    };
    let seen = kfd(&changed(&machines, "ubuntu-24.04-mi300x8", ""));
    let nodes = seen.into_got().expect("a topology").nodes;
    assert!(nodes.whole);
    assert_eq!(nodes.items.len(), 10);
    let node = nodes.items.get("2").expect("a GPU");
    assert_eq!(node.memory_bytes, Seen::Got(206_141_652_992));
}

#[test]
fn what_a_replay_records_gives_the_same_facts() {
    let Some(machines) = shared("machines") else {
        return;
    };
    for name in [
        "ubuntu-24.04-rtx4090",
        "ubuntu-24.04-mi300x8",
        "arch-hybrid-laptop",
    ] {
        let first = changed(&machines, name, "").recording();
        let ask = |host: &Host| {
            (
                pci(host),
                pci_ids(host, &Seen::default()),
                drm(host),
                kfd(host),
                nvidia_proc(host),
            )
        };
        let facts = ask(&first);
        let again = host(Entries::new(first.take_entries()));
        let facts_again = ask(&again);
        assert_eq!(facts.0, facts_again.0, "{name}");
        assert_eq!(facts.1, facts_again.1, "{name}");
        assert_eq!(facts.2, facts_again.2, "{name}");
        assert_eq!(facts.3, facts_again.3, "{name}");
        assert_eq!(facts.4, facts_again.4, "{name}");
    }
}
