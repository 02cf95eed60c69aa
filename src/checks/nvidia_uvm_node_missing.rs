//! `/dev/nvidia-uvm` is missing, or leads nowhere.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{AtFirstUse, Loaded, Stack, View, Wanted};

const NODE: &str = "/dev/nvidia-uvm";

crate::check! {
    /// `/dev/nvidia-uvm` is missing or leads nowhere: `nvidia-smi` works, every CUDA program fails.
    ///
    /// ## Why it matters
    /// CUDA allocates memory through the module `nvidia_uvm` and its node; NVML and `nvidia-smi` do not need it. So all looks
    /// well until a program asks for CUDA and reads `unknown error` (999) or `no CUDA-capable device` (100).
    ///
    /// ## How it comes about
    /// On most systems nobody loads `nvidia_uvm` at boot: the CUDA library does it through the setuid program
    /// `nvidia-modprobe`. Where that is missing the first run as root makes the node, until the next boot. The major number
    /// is given out anew at each load, so a node that was made by hand or restored from an image may carry an old one.
    /// Nothing makes nodes inside a container.
    ///
    /// ## How to confirm
    /// `grep nvidia-uvm /proc/devices; ls -l /dev/nvidia-uvm`: the major numbers must agree.
    "nvidia-uvm-node-missing", Access, Error, each Stack, run
}

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    // Without the driver no node is of use, and under WSL there is none. On Tegra CUDA runs without it, and so does the driver
    // of a host that shares its GPU among virtual machines.
    if view.wsl().is_some()
        || view.is_tegra()
        || matches!(view.loaded("nvidia"), Loaded::No(_))
        || matches!(view.loaded("nvidia_vgpu_vfio"), Loaded::Yes(_))
    {
        return Verdict::NotHere;
    }
    match view.node(NODE) {
        Seen::Got(node) => {
            // A node whose numbers cannot be read proves nothing about where it leads.
            let Seen::Got(stat) = &node.stat else {
                return Verdict::cannot_tell(
                    format!("{NODE}: {}", node.stat.why()),
                    "`ls -l /dev/nvidia-uvm`",
                );
            };
            if stat.kind != "c" {
                return without_module(view, "is no device node");
            }
            node_is_there(stat.major, view)
        }
        Seen::Absent => node_is_missing(view),
        other => Verdict::cannot_tell(
            format!("{NODE}: {}", other.why()),
            "`ls -l /dev/nvidia-uvm`",
        ),
    }
}

fn node_is_there(major: u32, view: &View) -> Verdict {
    let Seen::Got(devices) = &view.facts.char_devices else {
        return Verdict::cannot_tell(
            format!("/proc/devices: {}", view.facts.char_devices.why()),
            "`grep nvidia-uvm /proc/devices`",
        );
    };
    match devices.majors.get("nvidia-uvm") {
        Some(given) if *given == major => {
            Verdict::fine(format!("{NODE} has major {major}, as /proc/devices says"))
        }
        Some(given) => Finding::new(format!(
            "{NODE} carries major {major}, the kernel gave nvidia-uvm {given}: the node leads nowhere"
        ))
        .cause("stale-major")
        .saw(NODE, format!("character device, major {major}"))
        .saw("/proc/devices", format!("{given} nvidia-uvm"))
        .why("CUDA opens this node and reaches no driver; nvidia-smi does not need it and works")
        .fix(FixCall::new("recreate-stale-uvm-node"))
        .into(),
        // Made earlier, and the module is not in the kernel now: what happens at first use decides.
        None => without_module(view, "is there, but /proc/devices does not list nvidia-uvm"),
    }
}

fn node_is_missing(view: &View) -> Verdict {
    // Without the control node all nodes are missing, which is another question.
    match view.node("/dev/nvidiactl") {
        Seen::Got(_) => {}
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("/dev/nvidiactl: {}", other.why()),
                "`ls -l /dev/nvidia*`",
            );
        }
    }
    without_module(view, "does not exist")
}

/// The node cannot be used now: right where it is made at first use, else a fault.
fn without_module(view: &View, state: &str) -> Verdict {
    if view.place.is_unknown() {
        return Verdict::cannot_tell(
            format!(
                "{NODE} {state}; whether this is a container: {}",
                view.place.why()
            ),
            "`ls /.dockerenv /run/.containerenv`",
        );
    }
    let proof = if view.in_container() {
        None
    } else {
        match view.nvidia_nodes_at_first_use("nvidia_uvm") {
            AtFirstUse::Yes(how) => return Verdict::fine(format!("made at first use: {how}")),
            AtFirstUse::No(_, proof) => Some(proof),
            AtFirstUse::Unknown(why) => {
                return Verdict::cannot_tell(
                    format!("{NODE} {state}; whether it is made at first use: {why}"),
                    "`ls -l /usr/bin/nvidia-modprobe` and `findmnt -T /usr/bin/nvidia-modprobe`",
                );
            }
        }
    };
    let not_asked_for = match not_asked_for(view) {
        Ok(why) => why,
        Err(why) => {
            return Verdict::cannot_tell(
                format!("{NODE} {state}; whether anything here computes with CUDA: {why}"),
                "`ldconfig -p | grep libcuda.so.1`",
            );
        }
    };
    let finding = match view.loaded("nvidia_uvm") {
        Loaded::Yes(loaded) => Finding::new(format!(
            "{NODE} {state} although nvidia_uvm is loaded: CUDA cannot start"
        ))
        .cause("node-missing")
        .saw(NODE, state)
        .saw(loaded.source, loaded.says),
        Loaded::No(unloaded) => Finding::new(format!(
            "nvidia_uvm is not loaded and nothing loads it at first use: CUDA cannot start ({NODE} {state})"
        ))
        .cause("module-not-loaded")
        .saw(NODE, state)
        .saw(unloaded.source, unloaded.says),
        Loaded::Unknown(why) => {
            return Verdict::cannot_tell(
                format!("{NODE} {state}; whether nvidia_uvm is loaded: {why}"),
                "`grep nvidia_uvm /proc/modules`",
            );
        }
    };
    let program = view.facts.device_nodes.as_ref();
    let program = program.and_then(|nodes| nodes.nvidia_modprobe.as_ref());
    // The usual command is that very program.
    let fix = if view.in_container() {
        FixCall::new("create-uvm-node")
    } else if view.module_files("nvidia_uvm").is_absent()
        && view.module_files("nvidia").got().is_some()
    {
        // What is not on the disk cannot be loaded.
        let call = FixCall::new("reinstall-nvidia-module");
        match view.ready_nvidia_module() {
            Seen::Got(package) => call.with("name", package),
            _ => call,
        }
    } else if program.is_absent() {
        FixCall::new("install-nvidia-modprobe")
    } else {
        FixCall::new("create-uvm-node")
    };
    let finding = match proof {
        Some(proof) => finding.saw(proof.source, proof.says),
        None => finding.saw(
            view.container_mark().unwrap_or("/proc/1/cgroup"),
            "this is a container: nothing makes device nodes in here",
        ),
    };
    let finding = match not_asked_for {
        Some((source, says)) => finding.saw(source, says).severity(Severity::Note),
        None => finding,
    };
    finding
        .why("CUDA allocates memory through this node; nvidia-smi does not need it and works")
        .fix(fix)
        .into()
}

/// Nobody computes with CUDA here, as far as can be seen: the driver alone is there for games and the display, or the
/// container was given it for something else. The evidence, where that is so; the error: what is not known.
fn not_asked_for(view: &View) -> Result<Option<(&'static str, String)>, String> {
    const CAPABILITIES: &str = "NVIDIA_DRIVER_CAPABILITIES";
    if view.in_container()
        && let Seen::Got(given) = view.variable(CAPABILITIES)
        && !given.is_empty()
        && !given
            .split(',')
            .any(|one| matches!(one.trim(), "all" | "compute"))
    {
        return Ok(Some((CAPABILITIES, given.to_owned())));
    }
    match view.wanted_for_computing() {
        Wanted::Yes(_) => Ok(None),
        Wanted::No => Ok(Some((
            "libcuda.so.1",
            "in none of the folders of libraries, nor a toolkit: nothing here computes with CUDA"
                .to_owned(),
        ))),
        Wanted::Unknown => Err(match view.library("libcuda.so.1") {
            Seen::Absent => "not everything that would show it could be looked at".to_owned(),
            other => format!("libcuda.so.1: {}", other.map(|_| ()).why()),
        }),
    }
}
