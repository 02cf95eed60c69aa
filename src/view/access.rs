//! Whether a user may use the device nodes of a stack: by a real open where that was done, else by mode, owner, groups and
//! access list.

use super::{Gpu, Stack, View};
use crate::facts::Seen;
use crate::facts::device_nodes::{Node, NodeStat};
use crate::facts::environment::Users;
use crate::facts::services::Unit;

/// Services whose programs compute on a GPU; true: they are there for nothing else.
pub const SERVICES: &[(&str, bool)] = &[
    ("comfyui.service", true),
    ("frigate.service", false),
    ("immich-machine-learning.service", false),
    ("jupyter.service", false),
    ("jupyterhub.service", false),
    ("jupyterlab.service", false),
    ("llama-server.service", true),
    ("localai.service", true),
    ("ollama.service", true),
    ("vllm.service", true),
];

impl Unit {
    /// It runs, or starts with the machine.
    pub fn is_used(&self) -> bool {
        !self.masked && (self.running.got().is_some() || self.enabled_by.got().is_some())
    }
}

/// A node that programs of a stack open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackNode {
    /// Path.
    pub path: String,
    /// Key of the GPU that it belongs to; None: every program needs it.
    pub gpu: Option<String>,
    /// It belongs to an NPU.
    pub npu: bool,
}

/// What a user may do with a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and write; and what shows it.
    Allowed(String),
    /// Refused by mode, owner, groups and access list.
    Denied(Denial),
    /// There is no such node.
    Missing,
    /// Not known, or refused by something that is no matter of permission.
    Unknown(String),
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Path of the node.
    pub path: String,
    /// The call that was refused, or what was computed from.
    pub by: String,
    /// A real open was refused; else it follows from `access(2)` or from mode and groups.
    pub certain: bool,
    /// Mode and owner of the node; None: not known.
    pub stat: Option<NodeStat>,
    /// Mode, owner, groups and access list would let the user in: something else refuses.
    pub mode_allows: bool,
    /// Users other than the judged one whom an access list lets in.
    pub listed_users: Vec<u32>,
}

/// What the judged user may do with the nodes of a stack.
#[derive(Clone, Debug, Default)]
pub struct Doors {
    /// How many open.
    pub allowed: usize,
    /// Those that do not.
    pub denied: Vec<(StackNode, Denial)>,
    /// Why it is not known of the first for which that is so.
    pub unknown: Option<String>,
}

impl Doors {
    /// Keys of the GPUs that are shut off; None: nodes are shut that every program needs, or none at all.
    pub fn only_gpus(&self) -> Option<Vec<String>> {
        let shut = self.denied.iter().filter(|(node, _)| !node.npu);
        let mut gpus: Vec<String> = shut
            .map(|(node, _)| node.gpu.clone())
            .collect::<Option<_>>()?;
        gpus.dedup();
        (!gpus.is_empty()).then_some(gpus)
    }
}

/// How it is said that neither mode nor group is the reason why a node does not open: looking at these tells nothing more.
pub const UNEXPLAINED: &str = "which neither its mode nor its group explains";

impl View<'_> {
    /// Tries the nodes of a stack.
    pub fn doors(&self, stack: Stack) -> Doors {
        let mut doors = Doors::default();
        for node in self.nodes_of(stack) {
            match self.access(&node.path) {
                Access::Allowed(_) => doors.allowed += 1,
                Access::Denied(denial) => doors.denied.push((node, denial)),
                Access::Missing => {}
                Access::Unknown(why) => doors.unknown = doors.unknown.or(Some(why)),
            }
        }
        doors
    }

    /// The nodes that programs of a stack open, those of its NPUs last.
    pub fn nodes_of(&self, stack: Stack) -> Vec<StackNode> {
        let mut nodes = Vec::new();
        let node = |path: String, gpu: Option<&String>| StackNode {
            path,
            gpu: gpu.cloned(),
            npu: false,
        };
        let shared: &[&str] = match stack {
            Stack::Cuda => &["/dev/nvidiactl", "/dev/nvidia-uvm"],
            Stack::Rocm => &["/dev/kfd"],
            Stack::LevelZero => &[],
        };
        nodes.extend(shared.iter().map(|path| node((*path).to_owned(), None)));
        for gpu in self.gpus_of(stack).filter(|gpu| !gpu.remembered) {
            let paths = match stack {
                Stack::Cuda => gpu
                    .nvidia_minor
                    .map(|minor| format!("/dev/nvidia{minor}"))
                    .into_iter()
                    .collect(),
                Stack::Rocm | Stack::LevelZero => self.render_nodes(gpu),
            };
            nodes.extend(paths.into_iter().map(|path| node(path, Some(&gpu.key))));
        }
        nodes.extend(self.npu_nodes(stack).into_iter().map(|path| StackNode {
            path,
            gpu: None,
            npu: true,
        }));
        nodes
    }

    /// Why there may be nodes of a stack besides those of `nodes_of`; None: these are all.
    pub fn nodes_unknown(&self, stack: Stack) -> Option<String> {
        let unnamed = self.gpus_of(stack).find(|gpu| {
            let held = match gpu.driver.got().map(String::as_str) {
                Some(driver) => matches!(driver, "nvidia" | "amdgpu" | "i915" | "xe"),
                None => gpu.driver.is_unknown(),
            };
            let named = match stack {
                Stack::Cuda => gpu.nvidia_minor.is_some(),
                Stack::Rocm | Stack::LevelZero => {
                    !self.render_nodes(gpu).is_empty() || self.minors_are_whole()
                }
            };
            held && !named && !gpu.remembered && gpu.passed_in != Some(false)
        });
        if let Some(gpu) = unnamed {
            return Some(format!("which device node {} has is not known", gpu.key));
        }
        let npu = self.npus_of(stack).next()?;
        let named = self
            .npu_nodes(stack)
            .iter()
            .any(|path| !self.node(path).is_absent());
        let driver = self.facts.pci.entry(&npu.pci);
        let held = driver.got().is_some_and(|npu| {
            let driver = npu.driver.got().map(String::as_str);
            matches!(driver, Some("amdxdna" | "intel_vpu"))
        });
        let folder = self.facts.device_nodes.got().map(|nodes| &nodes.accel);
        let known = match folder {
            _ if named => true,
            // Whoever drives an NPU makes a node for it, though not in every container.
            Some(Seen::Got(folder)) => folder.whole && !held,
            Some(Seen::Absent) => !held || self.in_container(),
            _ => false,
        };
        (!known).then(|| format!("which device node the NPU at {} has is not known", npu.pci))
    }

    fn minors_are_whole(&self) -> bool {
        match &self.facts.drm {
            Seen::Got(drm) => {
                drm.minors.whole && drm.minors.items.values().all(|owner| !owner.is_unknown())
            }
            other => other.is_absent(),
        }
    }

    /// The render nodes of a GPU, each once: its own, and those that KFD names, of which a partitioned one has several.
    fn render_nodes(&self, gpu: &Gpu) -> Vec<String> {
        let mut paths: Vec<String> = gpu
            .render
            .iter()
            .map(|name| format!("/dev/dri/{name}"))
            .collect();
        for number in &gpu.kfd_nodes {
            let minor = self
                .facts
                .kfd
                .got()
                .and_then(|kfd| kfd.nodes.items.get(&number.to_string()))
                .and_then(|node| node.properties.got()?.get("drm_render_minor"));
            // Below 128 are no render nodes: 0 stands for none.
            if let Some(minor) = minor.filter(|minor| **minor >= 128) {
                let path = format!("/dev/dri/renderD{minor}");
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths
    }

    /// Nodes of the stack's NPUs. Where `/sys/class/accel` does not say whose a node is, it is theirs if nothing else here
    /// makes such nodes.
    fn npu_nodes(&self, stack: Stack) -> Vec<String> {
        let is_own = |address: &str| self.npus_of(stack).any(|device| device.pci == address);
        let accel = self.facts.drm.got().map(|drm| &drm.accel);
        if let Some(Seen::Got(owners)) = accel {
            return owners
                .iter()
                .filter(|(_, address)| is_own(address))
                .map(|(name, _)| format!("/dev/accel/{name}"))
                .collect();
        }
        let makers: Vec<Option<Stack>> = self
            .not_gpus
            .iter()
            .filter(|device| matches!(device.kind, "NPU" | "accelerator"))
            .map(|device| device.stack)
            .collect();
        let alone = !makers.is_empty() && makers.iter().all(|maker| *maker == Some(stack));
        let nodes = self.facts.device_nodes.got();
        nodes
            .filter(|_| alone && accel.is_none_or(Seen::is_unknown))
            .and_then(|nodes| nodes.accel.got())
            .map(|folder| folder.items.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// The user whose programs are one's own: the one who is judged, else who asks.
    pub fn own_user(&self) -> Option<u32> {
        let users = self.facts.users.got()?;
        match &users.judged {
            Some(judged) => Some(judged.uid),
            None => Some(users.process.got()?.real_uid),
        }
    }

    /// What the judged user may do with a node.
    pub fn access(&self, path: &str) -> Access {
        let node = match self.node(path) {
            Seen::Got(node) => node,
            Seen::Absent => return Access::Missing,
            other => return Access::Unknown(format!("{path}: {}", other.why())),
        };
        let Some(users) = self.facts.users.got() else {
            return Access::Unknown(format!("who asks: {}", self.facts.users.why()));
        };
        match &users.judged {
            Some(judged) => self.access_of_other(path, node, judged.uid, &judged.name, users),
            None => access_of_caller(path, node, users),
        }
    }

    /// Whether mode, owner, groups and access list of a node let a user in who is not the caller. None: not known, or there is
    /// no such node.
    pub fn permits(&self, path: &str, uid: u32, groups: &[u32]) -> Option<bool> {
        let node = self.node(path).into_got()?;
        permitted(node.stat.got()?, &node.acl, uid, groups)
    }

    /// Mode and list alone, for a user who is not the caller: nobody can open a node in another's name.
    fn access_of_other(
        &self,
        path: &str,
        node: &Node,
        uid: u32,
        name: &str,
        users: &Users,
    ) -> Access {
        let Seen::Got(stat) = &node.stat else {
            return Access::Unknown(format!("{path}: {}", node.stat.why()));
        };
        let rows = users.groups.got();
        let mut groups: Vec<u32> = rows
            .into_iter()
            .flatten()
            .filter(|(_, row)| row.members.iter().any(|member| member == name))
            .map(|(gid, _)| *gid)
            .collect();
        let primary = users
            .passwd
            .got()
            .and_then(|rows| rows.get(&uid))
            .map(|row| row.gid);
        groups.extend(primary);
        // Groups of a directory service are not in the file: then a refusal is not proved.
        let all_groups = users.groups.got().is_some()
            && primary.is_some()
            && users.group_sources.got().is_none_or(|sources| {
                sources.iter().all(|source| {
                    matches!(source.as_str(), "files" | "compat" | "systemd" | "altfiles")
                })
            });
        match permitted(stat, &node.acl, uid, &groups) {
            Some(true) => Access::Allowed(format!("{path}: mode and groups let {name} in")),
            Some(false) if all_groups => Access::Denied(Denial {
                path: path.to_owned(),
                by: format!("mode, owner, groups and access list for uid {uid}"),
                certain: false,
                stat: Some(stat.clone()),
                mode_allows: false,
                listed_users: listed_users(&node.acl, uid),
            }),
            _ => Access::Unknown(format!("{path}: the groups of {name} are not all known")),
        }
    }
}

/// The process itself: a real open decides, then `access(2)` where the mode agrees, then mode and groups.
fn access_of_caller(path: &str, node: &Node, users: &Users) -> Access {
    let process = users.process.got();
    let uid = process.map(|process| process.uid);
    let groups = process.map_or(&[][..], |process| &process.groups);
    let stat = node.stat.got();
    let by_mode = uid
        .zip(stat)
        .and_then(|(uid, stat)| permitted(stat, &node.acl, uid, groups));
    let denied = |by: String, certain: bool| {
        Access::Denied(Denial {
            path: path.to_owned(),
            by,
            certain,
            stat: stat.cloned(),
            mode_allows: by_mode == Some(true),
            listed_users: listed_users(&node.acl, uid.unwrap_or(u32::MAX)),
        })
    };
    let by_call = match (&node.open, &node.access) {
        (Seen::Got(result), _) => Some((result, "open", true)),
        (_, Seen::Got(result)) => Some((result, "access", false)),
        (Seen::Failed(_), _) => return Access::Unknown(format!("{path}: {}", node.open.why())),
        (_, Seen::Failed(_)) => return Access::Unknown(format!("{path}: {}", node.access.why())),
        _ => None,
    };
    match by_call {
        Some((result, call, _)) if result == "ok" => {
            Access::Allowed(format!("{call} of {path} succeeds"))
        }
        // What `access(2)` says proves nothing where the mode says otherwise: it does not ask everybody whom an open asks.
        Some((result, "access", _)) if result == "EACCES" && by_mode == Some(true) => {
            Access::Unknown(format!(
                "access of {path} answers EACCES, although its mode lets the user in"
            ))
        }
        Some((result, call, certain)) if result == "EACCES" => {
            denied(format!("{call} for reading and writing: EACCES"), certain)
        }
        Some((result, call, _)) => {
            Access::Unknown(format!("{call} of {path} answers {result}, {UNEXPLAINED}"))
        }
        None => match (uid, stat, by_mode) {
            (Some(uid), Some(_), Some(true)) => {
                Access::Allowed(format!("{path}: mode and groups let uid {uid} in"))
            }
            (Some(_), Some(_), Some(false)) => {
                denied("mode, owner, groups and access list".to_owned(), false)
            }
            (Some(_), Some(_), None) => Access::Unknown(format!(
                "{path}: its access list, or whom an id of another user namespace stands for, is not known"
            )),
            (None, ..) => Access::Unknown(format!("who asks: {}", users.process.why())),
            (_, None, _) => Access::Unknown(format!("{path}: {}", node.stat.why())),
        },
    }
}

/// Users other than this one whom an access list lets read and write.
fn listed_users(acl: &Seen<Vec<String>>, uid: u32) -> Vec<u32> {
    acl.got()
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let (name, rights) = entry.strip_prefix("user:")?.split_once(':')?;
            let other = name.parse::<u32>().ok()?;
            (other != uid && rights.starts_with("rw")).then_some(other)
        })
        .collect()
}

/// How the kernel shows users and groups that a user namespace does not map.
pub const UNMAPPED: u32 = 65534;

/// Reading and writing by the rules of the kernel for mode bits and access lists. None: the list decides and is not known, or
/// what an unmapped id stands for.
fn permitted(stat: &NodeStat, acl: &Seen<Vec<String>>, uid: u32, groups: &[u32]) -> Option<bool> {
    let both = |bits: u32| bits & 0o6 == 0o6;
    // Ids that the user namespace of a container does not map all look alike: whose they are is not known, and root in there
    // has no power over such a node.
    let is_hidden = (stat.gid == UNMAPPED && (uid == 0 || groups.contains(&UNMAPPED)))
        || (stat.uid == UNMAPPED && (uid == 0 || uid == UNMAPPED));
    if is_hidden {
        let for_all = [0, 3, 6].iter().all(|shift| both(stat.mode >> shift));
        return for_all.then_some(true);
    }
    if uid == 0 {
        return Some(true);
    }
    if uid == stat.uid {
        return Some(both(stat.mode >> 6));
    }
    let in_group = groups.contains(&stat.gid);
    let entries = match acl {
        Seen::Got(entries) => entries.as_slice(),
        Seen::Absent => &[],
        // Without the list only a right of everybody is sure: no entry takes it from a user whom none names.
        _ => return (both(stat.mode) && both(stat.mode >> 3)).then_some(true),
    };
    let rights = |entry: &str| {
        let (_, rights) = entry.rsplit_once(':')?;
        let bit = |letter: char, value: u32| if rights.contains(letter) { value } else { 0 };
        Some(bit('r', 4) | bit('w', 2))
    };
    let find = |prefix: &str| entries.iter().find(|entry| entry.starts_with(prefix));
    let mask = find("mask:").and_then(|entry| rights(entry)).unwrap_or(0o7);
    if let Some(entry) = find(&format!("user:{uid}:")) {
        return Some(both(rights(entry).unwrap_or(0) & mask));
    }
    // With a list the group bits of the mode are its mask; the group's own rights stand in the list.
    let owning = find("group::")
        .and_then(|entry| rights(entry))
        .unwrap_or(stat.mode >> 3 & 0o7);
    let mut matched = in_group;
    let mut granted = in_group && both(owning & mask);
    for entry in entries.iter().filter(|entry| entry.starts_with("group:")) {
        let gid = entry
            .split(':')
            .nth(1)
            .and_then(|gid| gid.parse::<u32>().ok());
        if gid.is_some_and(|gid| groups.contains(&gid)) {
            matched = true;
            granted |= both(rights(entry).unwrap_or(0) & mask);
        }
    }
    Some(if matched { granted } else { both(stat.mode) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(mode: u32, uid: u32, gid: u32) -> NodeStat {
        NodeStat {
            kind: "c".to_owned(),
            mode,
            uid,
            gid,
            ..NodeStat::default()
        }
    }

    fn list(entries: &[&str]) -> Seen<Vec<String>> {
        Seen::Got(entries.iter().map(|entry| (*entry).to_owned()).collect())
    }

    #[test]
    fn mode_bits_decide_without_a_list() {
        let none = Seen::Absent;
        assert_eq!(
            permitted(&node(0o660, 0, 44), &none, 1000, &[44]),
            Some(true)
        );
        assert_eq!(
            permitted(&node(0o660, 0, 44), &none, 1000, &[45]),
            Some(false)
        );
        assert_eq!(permitted(&node(0o666, 0, 44), &none, 1000, &[]), Some(true));
        // The owner's bits hold for the owner even where others may more.
        assert_eq!(
            permitted(&node(0o466, 1000, 44), &none, 1000, &[44]),
            Some(false)
        );
        // And the group's for the group.
        assert_eq!(
            permitted(&node(0o606, 0, 44), &none, 1000, &[44]),
            Some(false)
        );
        assert_eq!(permitted(&node(0o600, 0, 0), &none, 0, &[]), Some(true));
    }

    #[test]
    fn a_list_lets_named_users_and_groups_in() {
        let stat = node(0o660, 0, 992);
        assert_eq!(
            permitted(&stat, &list(&["user:1000:rw-"]), 1000, &[]),
            Some(true)
        );
        assert_eq!(
            permitted(&stat, &list(&["user:1001:rw-"]), 1000, &[]),
            Some(false)
        );
        assert_eq!(
            permitted(&stat, &list(&["group:44:rw-"]), 1000, &[44]),
            Some(true)
        );
        assert_eq!(
            permitted(&stat, &list(&["user:1000:rw-", "mask::r--"]), 1000, &[]),
            Some(false)
        );
    }

    #[test]
    fn an_unknown_list_proves_nothing_but_a_right_of_everybody() {
        let unknown = Seen::default();
        assert_eq!(permitted(&node(0o660, 0, 44), &unknown, 1000, &[]), None);
        assert_eq!(
            permitted(&node(0o666, 0, 44), &unknown, 1000, &[]),
            Some(true)
        );
    }

    fn caller(open: &str, access: &str, stat: NodeStat) -> Access {
        let answer = |errno: &str| match errno {
            "" => Seen::default(),
            errno => Seen::Got(errno.to_owned()),
        };
        let node = Node {
            stat: Seen::Got(stat),
            acl: Seen::Absent,
            open: answer(open),
            access: answer(access),
        };
        let users = Users {
            process: Seen::Got(crate::facts::environment::ProcessUser {
                uid: 1000,
                groups: vec![1000],
                ..Default::default()
            }),
            ..Users::default()
        };
        access_of_caller("/dev/kfd", &node, &users)
    }

    #[test]
    fn an_open_decides_and_access_only_where_the_mode_agrees() {
        let shut = || node(0o660, 0, 992);
        let wide = || node(0o666, 0, 992);
        let denied = |access: Access| match access {
            Access::Denied(denial) => Some((denial.certain, denial.mode_allows)),
            _ => None,
        };
        assert_eq!(denied(caller("EACCES", "", shut())), Some((true, false)));
        assert_eq!(denied(caller("EACCES", "", wide())), Some((true, true)));
        assert_eq!(denied(caller("", "EACCES", shut())), Some((false, false)));
        assert!(matches!(caller("", "EACCES", wide()), Access::Unknown(_)));
        assert!(matches!(caller("EPERM", "", wide()), Access::Unknown(_)));
        assert!(matches!(caller("ENOMEM", "", shut()), Access::Unknown(_)));
        assert_eq!(denied(caller("", "", shut())), Some((false, false)));
        assert!(matches!(caller("", "", wide()), Access::Allowed(_)));
        assert!(matches!(caller("ok", "", shut()), Access::Allowed(_)));
    }
}
