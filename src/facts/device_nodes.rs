//! Device nodes below `/dev`.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};

/// GPU nodes by path: `/dev/nvidia*`, `/dev/nvidia-caps/*`, `/dev/dri/*`, `/dev/kfd`, `/dev/accel/*`, `/dev/dxg`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DeviceNodes {
    /// Nodes in `/dev`, and those in `/dev/nvidia-caps` and `/dev/nvidia-caps-imex-channels` as far as these could be
    /// listed, by path.
    pub dev: Named<Node>,
    /// Nodes in `/dev/dri`, by path. `Absent`: there is no such folder.
    pub dri: Seen<Named<Node>>,
    /// Nodes in `/dev/accel`, by path.
    pub accel: Seen<Named<Node>>,
    /// `/usr/bin/nvidia-modprobe`, where the driver looks for it, or where else it was found. `Absent`: not there, and not
    /// seen elsewhere.
    pub nvidia_modprobe: Seen<SetuidProgram>,
}

/// A device node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Node {
    /// Kind, numbers, mode and owner. Failed: the node is there and cannot be looked at.
    pub stat: Seen<NodeStat>,
    /// The access list, one entry a line as `getfacl` writes it (`user:1000:rw-`). `Absent`: none.
    pub acl: Seen<Vec<String>>,
    /// A real open for reading and writing: `ok`, or the name of the errno. Only of nodes that may be opened: control nodes,
    /// and render nodes of GPUs that are awake.
    pub open: Seen<String>,
    /// `access(2)` for reading and writing: `ok`, or the name of the errno.
    pub access: Seen<String>,
}

/// `stat` of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NodeStat {
    /// `c` for a character device; anything else (`file`, `dir`, `b`, ...) is no GPU node.
    pub kind: String,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Permission bits, as a number: `0o660`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A program that may be setuid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SetuidProgram {
    /// Path of the file, links resolved.
    pub path: String,
    /// Setuid bit is set and the owner is root.
    pub setuid_root: Seen<bool>,
}
