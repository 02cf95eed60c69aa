//! The user may not open the device nodes of a stack.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::device_nodes::NodeStat;
use crate::finding::{Finding, Severity};
use crate::fix::{FixCall, WHO_PASTES};
use crate::tables::Tables;
use crate::view::access::{Denial, Doors, StackNode, UNEXPLAINED, UNMAPPED};
use crate::view::{Stack, View};
use std::collections::BTreeSet;

crate::check! {
    /// The user may not open the GPU's device nodes.
    ///
    /// ## Why it matters
    /// Programs talk to the GPU through nodes below `/dev`. Who may not open them sees no GPU, although driver and hardware
    /// are all right, and root sees everything working.
    ///
    /// ## How it comes about
    /// The nodes belong to a group (`render`, `video`; the number counts, not the name) that the user is not in. Or an option
    /// of the driver, or a udev rule, narrowed their mode. Or the system counts on an access list that the login manager gives to whoever
    /// sits at the screen, which a login over ssh or a service does not get.
    ///
    /// ## How to confirm
    /// `ls -l /dev/kfd /dev/dri/renderD* /dev/nvidia*`, `getfacl` of the node, and `id`.
    "gpu-device-permission-denied", Access, Error, each Stack, run
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    // Under WSL programs open /dev/dxg, which everybody may.
    if view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let doors = view.doors(stack);
    if !doors.denied.is_empty() {
        return found(&doors, view);
    }
    if let Some(why) = view.nodes_unknown(stack).or(doors.unknown) {
        let would_tell = match why.ends_with(UNEXPLAINED) {
            true => "`sudo dmesg` right after a program has failed to open it",
            false => "`ls -l` of the node and `id`, as the user whose program fails",
        };
        return Verdict::cannot_tell(why, would_tell);
    }
    let allowed = doors.allowed;
    if allowed == 0 {
        return Verdict::NotHere;
    }
    let root = view.facts.users.got().is_some_and(|users| {
        users.judged.is_none() && users.process.got().is_some_and(|user| user.uid == 0)
    });
    let others = if root {
        "; others than root were not judged"
    } else {
        ""
    };
    Verdict::fine(format!("{allowed} nodes may be opened{others}"))
}

/// How a refusal came about, and what mends it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The user is not in the group that owns the node.
    Group,
    /// The node counts on an access list.
    Seat,
    /// Somebody narrowed the mode of NVIDIA's nodes.
    Narrowed,
    /// The node is open to nobody but its owner, or to a group that nobody should join.
    OwnerOnly,
    /// Mode and groups would let the user in.
    NotTheMode,
}

fn found(doors: &Doors, view: &View) -> Verdict {
    let denied = doors.denied.as_slice();
    let of_gpus: Vec<&(StackNode, Denial)> = denied.iter().filter(|(node, _)| !node.npu).collect();
    let Some((_, first)) = of_gpus.first() else {
        return npu(denied, view);
    };
    let reason = reason(first, view);
    // Evidence and title count the same nodes.
    let of_npus = denied.iter().filter(|(node, _)| node.npu);
    let paths: Vec<&str> = of_gpus
        .iter()
        .copied()
        .chain(of_npus)
        .map(|(node, _)| node.path.as_str())
        .collect();
    // Where only nodes of single GPUs are shut, the others work.
    let gpus: Option<BTreeSet<String>> = of_gpus.iter().map(|(node, _)| node.gpu.clone()).collect();
    let mut finding = Finding::new(title(&paths, reason, first, view))
        .why(match (reason, &gpus) {
            (Reason::NotTheMode, _) => {
                "Mode and groups let the user in, so something else refuses: a security module such as SELinux, or a folder above"
            }
            (_, Some(gpus)) if gpus.len() == 1 => "Programs of this user cannot use this GPU, although the driver runs",
            (_, Some(_)) => "Programs of this user cannot use a GPU whose node they may not open, although its driver runs",
            (_, None) => "Programs of this user find no GPU here, although the driver runs",
        });
    if let Some(cause) = cause(reason) {
        finding = finding.cause(cause);
    }
    for (_, denial) in denied {
        finding = finding.saw(denial.path.as_str(), says(denial, view));
    }
    if reason == Reason::Narrowed
        && let Seen::Got(mode) = view.nvidia_parameter("DeviceFileMode")
    {
        let gid = view.nvidia_parameter("DeviceFileGID");
        finding = finding.saw(
            "/proc/driver/nvidia/params",
            format!(
                "DeviceFileMode: {mode} (decimal), DeviceFileGID: {}",
                gid.got().unwrap_or(&"?")
            ),
        );
    }
    if !of_gpus.iter().any(|(_, denial)| denial.certain) {
        finding = finding.likely();
    }
    if let Some(gpus) = gpus {
        finding = finding.only_gpus(gpus.into_iter().collect());
    }
    for fix in fixes(reason, first, view) {
        finding = finding.fix(fix);
    }
    finding.into()
}

fn title(paths: &[&str], reason: Reason, first: &Denial, view: &View) -> String {
    let user = who(view);
    let nodes = match paths {
        [path] => (*path).to_owned(),
        [path, ..] => format!("{path} and {} more", paths.len() - 1),
        [] => "the GPU's nodes".to_owned(),
    };
    match reason {
        Reason::NotTheMode => {
            format!("{user} may not open {nodes}, although mode and groups would allow it")
        }
        Reason::Narrowed if by_option(view) => {
            format!("an option of the NVIDIA driver closes {nodes} to {user}")
        }
        Reason::Group | Reason::Seat | Reason::Narrowed | Reason::OwnerOnly => {
            let mode = first.stat.as_ref().map_or_else(
                || "mode and owner are not known".to_owned(),
                |stat| match nameless(stat, view) {
                    true => format!("mode {:04o}, {}", stat.mode, group_words(stat, view)),
                    false => format!("mode {:04o}, group {}", stat.mode, group_name(stat, view)),
                },
            );
            format!("{user} may not open {nodes} ({mode})")
        }
    }
}

fn fixes(reason: Reason, first: &Denial, view: &View) -> Vec<FixCall> {
    let group = first.stat.as_ref().map(|stat| group_name(stat, view));
    let join = group
        .as_ref()
        .filter(|_| {
            let stat = first.stat.as_ref();
            stat.is_some_and(|stat| {
                (group_helps(stat) && !nameless(stat, view)) || is_host_group(stat, view)
            })
        })
        .map(|group| {
            FixCall::new("join-group")
                .with("group", group.as_str())
                .with("user", user_name(view))
        });
    let more = match reason {
        Reason::Narrowed => Some(FixCall::new("node-mode-option")),
        Reason::Seat => {
            let call = FixCall::new("seat-session");
            Some(match group {
                Some(group) => call.with("group", group),
                None => call,
            })
        }
        Reason::OwnerOnly => Some(FixCall::new("node-udev-rule")),
        // Nobody can join a group that does not exist.
        Reason::Group if join.is_none() => Some(FixCall::new("node-udev-rule")),
        Reason::Group | Reason::NotTheMode => None,
    };
    match reason {
        Reason::NotTheMode => Vec::new(),
        _ => join.into_iter().chain(more).collect(),
    }
}

/// Nothing but an NPU: the GPUs work, and few programs use it.
fn npu(denied: &[(StackNode, Denial)], view: &View) -> Verdict {
    let mut finding = Finding::new(format!("{} may not open the NPU's node", who(view)))
        .cause("npu")
        .severity(Severity::Warning)
        .likely()
        .only_gpus(Vec::new())
        .why("Programs that want the NPU find none; the GPU is not concerned");
    for (node, denial) in denied {
        finding = finding.saw(node.path.as_str(), says(denial, view));
    }
    finding.fix(FixCall::new("npu-udev-rule")).into()
}

fn reason(denial: &Denial, view: &View) -> Reason {
    if denial.mode_allows {
        return Reason::NotTheMode;
    }
    let Some(stat) = &denial.stat else {
        return Reason::Group;
    };
    let by_nvidia =
        denial.path.starts_with("/dev/nvidia") && view.facts.nvidia_proc.got().is_some();
    let by_option = by_nvidia && by_option(view);
    if !denial.listed_users.is_empty() && !by_option {
        Reason::Seat
    } else if by_nvidia {
        // The driver makes its nodes 0666: an option or a udev rule shut this one.
        Reason::Narrowed
    } else if group_helps(stat) || is_host_group(stat, view) {
        Reason::Group
    } else {
        Reason::OwnerOnly
    }
}

fn cause(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::Group | Reason::OwnerOnly => Some("not-in-group"),
        Reason::Seat => Some("no-seat-acl"),
        Reason::Narrowed => Some("node-mode-option"),
        Reason::NotTheMode => None,
    }
}

/// Whoever joins the group gets in; nobody should join root's, and 65534 stands for a group of another namespace.
fn group_helps(stat: &NodeStat) -> bool {
    stat.mode & 0o060 == 0o060 && stat.gid != 0 && stat.gid != UNMAPPED
}

/// A group of the host that this container does not know: whoever starts the container can hand it on.
fn is_host_group(stat: &NodeStat, view: &View) -> bool {
    view.in_container() && stat.mode & 0o060 == 0o060 && stat.gid == UNMAPPED
}

fn by_option(view: &View) -> bool {
    [
        ("DeviceFileMode", "438"),
        ("DeviceFileGID", "0"),
        ("DeviceFileUID", "0"),
    ]
    .iter()
    .any(|(name, usual)| matches!(view.nvidia_parameter(name), Seen::Got(value) if value != *usual))
}

fn who(view: &View) -> String {
    let users = view.facts.users.got();
    match users.and_then(|users| users.judged.as_ref()) {
        Some(judged) => format!("{} (uid {})", judged.name, judged.uid),
        None => "this user".to_owned(),
    }
}

/// Who has to join a group: by name only where the user named somebody.
fn user_name(view: &View) -> String {
    let users = view.facts.users.got();
    users
        .and_then(|users| users.judged.as_ref())
        .filter(|judged| judged.via == "--user")
        .map_or_else(|| WHO_PASTES.to_owned(), |judged| judged.name.clone())
}

fn group_name(stat: &NodeStat, view: &View) -> String {
    let users = view.facts.users.got();
    users
        .and_then(|users| Some(users.groups.got()?.get(&stat.gid)?.name.clone()))
        .unwrap_or_else(|| stat.gid.to_string())
}

/// The group is proved to be in no list of groups here. In a container its name stands on the host.
fn nameless(stat: &NodeStat, view: &View) -> bool {
    let groups = view.facts.users.got().and_then(|users| users.groups.got());
    groups.is_some_and(|groups| !groups.contains_key(&stat.gid)) && !view.in_container()
}

fn group_words(stat: &NodeStat, view: &View) -> String {
    let name = group_name(stat, view);
    if nameless(stat, view) {
        format!("group {name}, which /etc/group does not name")
    } else if name == stat.gid.to_string() {
        format!("group {name}")
    } else {
        format!("group {name} ({})", stat.gid)
    }
}

fn owner(uid: u32) -> String {
    match uid {
        0 => "root".to_owned(),
        uid => format!("uid {uid}"),
    }
}

fn says(denial: &Denial, view: &View) -> String {
    let list: Vec<String> = denial.listed_users.iter().map(u32::to_string).collect();
    let list = match list.as_slice() {
        [] => String::new(),
        users => format!("; an access list lets uid {} in", users.join(", ")),
    };
    let stat = denial.stat.as_ref().map_or_else(String::new, |stat| {
        format!(
            "mode {:04o}, owner {}, {}; ",
            stat.mode,
            owner(stat.uid),
            group_words(stat, view)
        )
    });
    format!("{stat}{}{list}", denial.by)
}
