//! Fills `facts/device_nodes.rs`: GPU nodes, who may open them, and the program that makes NVIDIA's.

use crate::facts::device_nodes::{DeviceNodes, Node, NodeStat, SetuidProgram};
use crate::facts::{Named, Seen, Why};
use crate::host::{Host, Listing};
use std::collections::BTreeMap;

/// Nodes that are asked for by name where `/dev` cannot be listed.
const IMPORTANT: &[&str] = &[
    "dxg",
    "kfd",
    "nvidia-modeset",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia0",
    "nvidiactl",
];
/// Folders of NVIDIA capabilities (MIG instances, IMEX channels).
const CAPABILITIES: &[&str] = &["nvidia-caps", "nvidia-caps-imex-channels"];
/// Nodes whose opening neither wakes nor initialises a GPU. `/dev/nvidiaN` must never be here.
const MAY_BE_OPENED: &[&str] = &["/dev/kfd", "/dev/nvidia-uvm", "/dev/nvidiactl"];
/// Where `nvidia-modprobe` may be. The driver itself calls the first; NixOS puts setuid programs into the second.
const MODPROBE_PLACES: &[&str] = &[
    "/usr/bin/nvidia-modprobe",
    "/run/wrappers/bin/nvidia-modprobe",
    "/usr/sbin/nvidia-modprobe",
    "/sbin/nvidia-modprobe",
];
/// Most nodes of one folder.
const NODE_LIMIT: usize = 512;

/// Source `device_nodes`.
pub fn device_nodes(host: &Host) -> Seen<DeviceNodes> {
    Seen::Got(DeviceNodes {
        dev: dev(host),
        dri: host.list("/dev/dri").map(|listing| {
            nodes(host, "/dev/dri", listing, |name| {
                name.starts_with("card") || name.starts_with("renderD")
            })
        }),
        accel: host.list("/dev/accel").map(|listing| {
            nodes(host, "/dev/accel", listing, |name| {
                name.starts_with("accel")
            })
        }),
        nvidia_modprobe: nvidia_modprobe(host),
    })
}

fn dev(host: &Host) -> Named<Node> {
    let is_node = |name: &str| {
        !CAPABILITIES.contains(&name)
            && (name.starts_with("nvidia") || name == "kfd" || name == "dxg")
    };
    let (listing, capabilities) = match host.list("/dev") {
        Seen::Got(listing) => {
            let capabilities: Vec<String> = CAPABILITIES
                .iter()
                .filter(|name| listing.names.iter().any(|found| found == *name))
                .map(|name| format!("/dev/{name}"))
                .collect();
            (listing, capabilities)
        }
        Seen::Absent => (
            Listing {
                whole: true,
                ..Listing::default()
            },
            Vec::new(),
        ),
        Seen::Unasked(_) | Seen::Failed(_) => (Listing::default(), Vec::new()),
    };
    let listed_whole = listing.whole;
    let mut dev = nodes(host, "/dev", listing, is_node);
    if !listed_whole {
        for name in IMPORTANT {
            let path = format!("/dev/{name}");
            if !dev.items.contains_key(&path) && host.stat(&path).got().is_some() {
                let node = node(host, &path);
                dev.items.insert(path, node);
            }
        }
    }
    for folder in capabilities {
        let listing = host.list(&folder).into_got().unwrap_or_default();
        dev.items
            .extend(nodes(host, &folder, listing, |_| true).items);
    }
    dev
}

fn nodes(
    host: &Host,
    folder: &str,
    listing: Listing,
    wanted: impl Fn(&str) -> bool,
) -> Named<Node> {
    let names: Vec<String> = listing
        .names
        .into_iter()
        .filter(|name| wanted(name))
        .collect();
    Named {
        whole: listing.whole && names.len() <= NODE_LIMIT,
        items: names
            .into_iter()
            .take(NODE_LIMIT)
            .map(|name| {
                let path = format!("{folder}/{name}");
                let node = node(host, &path);
                (path, node)
            })
            .collect::<BTreeMap<_, _>>(),
    }
}

fn node(host: &Host, path: &str) -> Node {
    let stat = host.stat(path).and_then(|stat| {
        let kind = match stat.kind.as_str() {
            "char" => "c".to_owned(),
            "block" => "b".to_owned(),
            _ => stat.kind,
        };
        // What is no device has no numbers.
        let device = stat
            .device
            .or_else(|| (kind != "c" && kind != "b").then_some((0, 0)));
        match (device, stat.mode, stat.uid, stat.gid) {
            (Some((major, minor)), Some(mode), Some(uid), Some(gid)) => Seen::Got(NodeStat {
                kind,
                major,
                minor,
                mode,
                uid,
                gid,
            }),
            _ => Seen::default(),
        }
    });
    let is_char = stat.as_ref().map(|stat| stat.kind == "c");
    let of_char = |ask: &dyn Fn() -> Seen<String>| match &is_char {
        Seen::Got(true) => ask(),
        Seen::Got(false) => Seen::error("is no character device"),
        unknown => unknown.clone().and_then(|_| Seen::default()),
    };
    Node {
        open: of_char(&|| open(host, path)),
        access: of_char(&|| host.access(path)),
        acl: host.acl(path),
        stat,
    }
}

/// A real open, where that changes and wakes nothing.
fn open(host: &Host, path: &str) -> Seen<String> {
    if MAY_BE_OPENED.contains(&path) {
        return host.open(path);
    }
    let Some(minor) = path.strip_prefix("/dev/dri/renderD") else {
        return Seen::default();
    };
    if host.options().wake {
        return host.open(path);
    }
    let status = format!("/sys/class/drm/renderD{minor}/device/power/runtime_status");
    match host.value(&status) {
        Seen::Got(status) if ["active", "unsupported"].contains(&status.as_str()) => {
            host.open(path)
        }
        Seen::Got(_) => Seen::Unasked(Why::Asleep),
        // A kernel without power management puts nothing to sleep.
        Seen::Absent => host.open(path),
        unknown => unknown,
    }
}

fn nvidia_modprobe(host: &Host) -> Seen<SetuidProgram> {
    let mut first = Seen::default();
    let mut elsewhere_failed = None;
    for (index, path) in MODPROBE_PLACES.iter().enumerate() {
        match host.real(path) {
            Seen::Got(target) => {
                let setuid_root = setuid_root(host, &target);
                return Seen::Got(SetuidProgram {
                    path: target,
                    setuid_root,
                });
            }
            other if index == 0 => first = other.map(|_| SetuidProgram::default()),
            Seen::Failed(failure) => {
                elsewhere_failed.get_or_insert(failure);
            }
            _ => {}
        }
    }
    match elsewhere_failed {
        Some(failure) if first.is_absent() => Seen::Failed(failure),
        _ => first,
    }
}

fn setuid_root(host: &Host, path: &str) -> Seen<bool> {
    host.stat(path)
        .and_then(|stat| match (stat.mode, stat.uid) {
            (Some(mode), Some(uid)) => {
                Seen::Got(stat.kind == "file" && mode & 0o4000 != 0 && uid == 0)
            }
            _ => Seen::default(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_initialises_a_gpu_is_never_opened() {
        for path in MAY_BE_OPENED {
            let rest = path.strip_prefix("/dev/nvidia").unwrap_or("x");
            assert!(
                !rest.starts_with(|first: char| first.is_ascii_digit()),
                "{path} initialises the GPU"
            );
        }
    }
}
