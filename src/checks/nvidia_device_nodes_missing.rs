//! `/dev/nvidiactl` or `/dev/nvidiaN` is missing and nothing makes it at first use.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{AtFirstUse, Loaded, Stack, View};

crate::check! {
    /// The NVIDIA driver is loaded, but its device nodes are missing and nothing will make them when a program asks.
    ///
    /// ## Why it matters
    /// Programs reach the GPU through `/dev/nvidiactl` and `/dev/nvidia0`, `/dev/nvidia1` and so on. Without them CUDA and
    /// `nvidia-smi` report that there is no driver, although it runs.
    ///
    /// ## How it comes about
    /// The kernel does not make these nodes. A setuid program, `nvidia-modprobe`, makes them when the first program asks;
    /// else a udev rule, the persistence daemon, or root running `nvidia-smi` does. On servers without any of them there
    /// is no node after boot. `nosuid` on the mount of `/usr` makes the
    /// setuid bit useless, and `ModifyDeviceFiles: 0`
    /// leaves the nodes to the administrator.
    ///
    /// ## How to confirm
    /// `ls -l /dev/nvidia* /usr/bin/nvidia-modprobe`
    "nvidia-device-nodes-missing", Access, Error, each Stack, run
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    // Under WSL no such node belongs, Tegra has nodes of its own, and in a container they are passed in, never made.
    if view.wsl().is_some() || view.is_tegra() || view.in_container() {
        return Verdict::NotHere;
    }
    if view.place.is_unknown() {
        return Verdict::cannot_tell(
            format!("whether this is a container: {}", view.place.why()),
            "`ls /.dockerenv /run/.containerenv`",
        );
    }
    match view.loaded("nvidia") {
        Loaded::Yes(_) => {}
        Loaded::No(_) => return Verdict::NotHere,
        Loaded::Unknown(why) => {
            return Verdict::cannot_tell(why, "`cat /sys/module/nvidia/version`");
        }
    }
    let mut held = Vec::new();
    for gpu in view.gpus_of(stack).filter(|gpu| !gpu.remembered) {
        match &gpu.driver {
            Seen::Got(driver) if driver == "nvidia" => held.push(gpu),
            Seen::Got(_) | Seen::Absent => {}
            other => {
                return Verdict::cannot_tell(
                    format!("driver of {}: {}", gpu.key, other.why()),
                    "`lspci -k`",
                );
            }
        }
    }
    if held.is_empty() {
        return Verdict::NotHere;
    }
    let mut nodes = vec![("/dev/nvidiactl".to_owned(), None)];
    let mut unnamed = None;
    for gpu in &held {
        match gpu.nvidia_minor {
            Some(minor) => nodes.push((format!("/dev/nvidia{minor}"), Some(&gpu.key))),
            None => unnamed = Some(&gpu.key),
        }
    }
    let mut missing = Vec::new();
    for (path, gpu) in &nodes {
        match view.node(path) {
            Seen::Got(_) => {}
            Seen::Absent => missing.push((path, gpu)),
            other => {
                return Verdict::cannot_tell(
                    format!("{path}: {}", other.why()),
                    "`ls -l /dev/nvidia*`",
                );
            }
        }
    }
    if let (true, Some(gpu)) = (missing.is_empty(), unnamed) {
        return Verdict::cannot_tell(
            format!("which node {gpu} has is not known"),
            "`cat /proc/driver/nvidia/gpus/*/information` and `ls -l /dev/nvidia*`",
        );
    }
    if missing.is_empty() {
        return Verdict::fine(format!("{} nodes are there", nodes.len()));
    }
    let (cause, proof) = match view.nvidia_nodes_at_first_use("nvidia") {
        AtFirstUse::Yes(how) => return Verdict::fine(format!("made at first use: {how}")),
        AtFirstUse::No(cause, proof) => (cause, proof),
        AtFirstUse::Unknown(why) => {
            return Verdict::cannot_tell(
                format!("nodes are missing; whether they are made at first use: {why}"),
                "`ls -l /usr/bin/nvidia-modprobe` and `findmnt -T /usr/bin/nvidia-modprobe`",
            );
        }
    };
    let title = match cause {
        "created-by-admin" => {
            "NVIDIA device nodes are missing, and the driver is told to leave them to the administrator"
        }
        "nosuid-mount" => {
            "NVIDIA device nodes are missing, and nvidia-modprobe cannot make them on a nosuid mount"
        }
        _ => "NVIDIA device nodes are missing, and no setuid nvidia-modprobe is there to make them",
    };
    let mut finding = Finding::new(title)
        .cause(cause)
        .why("Programs reach the GPU through these nodes: without them CUDA and nvidia-smi find no driver");
    for (path, _) in &missing {
        finding = finding.saw(path.as_str(), "does not exist");
    }
    finding = finding.saw(proof.source, proof.says);
    // Where the control node is there, only the GPUs whose own node is missing are lost.
    if missing.iter().all(|(_, gpu)| gpu.is_some()) && missing.len() < held.len() {
        let lost = missing.iter().filter_map(|(_, gpu)| gpu.map(String::clone));
        finding = finding.only_gpus(lost.collect());
    }
    finding = match cause {
        "created-by-admin" => finding.fix(FixCall::new("set-modify-device-files")),
        "nosuid-mount" => {
            finding.fix(FixCall::new("remount-suid").with("point", mount_point(view)))
        }
        _ => finding.fix(match nvidia_modprobe(view) {
            Some(program) => FixCall::new("make-setuid").with("file", program),
            None => FixCall::new("install-nvidia-modprobe"),
        }),
    };
    // Neither nvidia-modprobe nor the daemon, which calls its code, makes nodes where the driver is told not to.
    if cause == "created-by-admin" {
        return finding.into();
    }
    if nvidia_modprobe(view).is_some() {
        finding = finding.fix(FixCall::new("create-nvidia-nodes"));
    }
    finding.fix(FixCall::new("nvidia-persistence")).into()
}

/// The program that makes the nodes, setuid or not.
fn nvidia_modprobe<'a>(view: &View<'a>) -> Option<&'a str> {
    let nodes = view.facts.device_nodes.got()?;
    let program = nodes.nvidia_modprobe.got()?;
    Some(&program.path)
}

fn mount_point(view: &View) -> String {
    let mount = nvidia_modprobe(view).and_then(|program| view.mount_of(program).into_got());
    mount.map_or_else(|| "/usr".to_owned(), |mount| mount.point.clone())
}
