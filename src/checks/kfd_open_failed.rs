//! /dev/kfd does not open, and permissions are not the reason.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::rocm::KFD_NODES;
use crate::view::{Stack, View};

crate::check! {
    /// Opening `/dev/kfd` fails for another reason than permissions.
    ///
    /// ## Why it matters
    /// Every ROCm program opens this node first. Where the kernel refuses, ROCm sees no GPU at all, whoever asks.
    ///
    /// ## How it comes about
    /// EINVAL: the state of the compute driver is stale, after a GPU was pulled out, given to a virtual machine or lost. ENOMEM has
    /// nothing to do with memory: the driver took no GPU, or `/dev` is mounted `noexec`. EAGAIN: it is locked, while a GPU is
    /// being reset or the machine goes to sleep.
    ///
    /// ## How to confirm
    /// `rocminfo` says which error it is. That `cat /dev/kfd` answers "Invalid argument" is healthy: the open has worked then.
    "kfd-open-failed", Access, Error, each Stack, run
}

const NODE: &str = "/dev/kfd";

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let answer = match view.node(NODE) {
        Seen::Got(node) => match &node.open {
            Seen::Got(answer) => answer.as_str(),
            other => {
                return Verdict::cannot_tell(
                    format!("whether {NODE} opens: {}", other.as_ref().map(|_| ()).why()),
                    "`rocminfo`",
                );
            }
        },
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("{NODE}: {}", other.map(|_| ()).why()),
                "`ls -l /dev/kfd`",
            );
        }
    };
    let finding = |title: &str| Finding::new(title).saw(NODE, format!("open: {answer}"));
    match answer {
        "ok" => Verdict::fine(format!("{NODE} opens")),
        // Permissions and the rules of a container are other findings.
        "EACCES" | "EPERM" => Verdict::NotHere,
        "EINVAL" => finding("the compute driver of the kernel is in a stale state: /dev/kfd refuses every program")
            .cause("stale")
            .why("No ROCm program starts; groups and modes have nothing to do with it")
            .likely()
            .fix(view.driver_fix(FixCall::new("reboot")))
            .into(),
        "EAGAIN" => finding("the compute driver of the kernel is locked, for a reset or for sleep")
            .cause("locked")
            .why("No ROCm program starts until it is unlocked; where that does not come, the reset hangs")
            .likely()
            .fix(view.driver_fix(FixCall::new("read-kernel-log").with("word", "amdgpu")))
            .into(),
        "ENOMEM" => out_of_gpus(finding, view),
        other => Verdict::cannot_tell(
            format!("open of {NODE} answers {other}, which says nothing here"),
            "`sudo journalctl -k -b -g kfd`",
        ),
    }
}

/// The kernel says that it has no memory, and means something else.
fn out_of_gpus(finding: impl Fn(&str) -> Finding, view: &View) -> Verdict {
    if view.rocm_agents.is_empty() && view.rocm_agents_whole().got().is_some() {
        return finding("the compute driver of the kernel took no GPU, so /dev/kfd does not open")
            .cause("no-gpu")
            .saw(KFD_NODES, "no node of a GPU")
            .why("No ROCm program starts; that the error reads `Cannot allocate memory` says nothing about memory")
            .fix(view.driver_fix(FixCall::new("read-kernel-log").with("word", "kfd")))
            .into();
    }
    match view.mount_of(NODE) {
        Seen::Got(mount)
            if mount.point != "/" && mount.options.iter().any(|option| option == "noexec") =>
        {
            finding("/dev is mounted noexec, and the compute driver of the kernel wants to map it executable")
                .cause("dev-noexec")
                .saw(
                    "/proc/self/mountinfo",
                    format!("{} is mounted {}", mount.point, mount.options.join(",")),
                )
                .why("No ROCm program starts; that the error reads `Cannot allocate memory` says nothing about memory")
                .likely()
                .fix(view.driver_fix(FixCall::new("remount-dev-exec")))
                .into()
        }
        _ => finding("/dev/kfd does not open: the kernel answers ENOMEM")
            .why("No ROCm program starts; the kernel log may say why")
            .likely()
            .fix(view.driver_fix(FixCall::new("read-kernel-log").with("word", "kfd")))
            .into(),
    }
}
