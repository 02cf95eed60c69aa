//! Who asks, and what steers the programs that they start.

use super::Seen;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Variables that steer GPU software; none else is ever read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Environment {
    /// By name, those that are set. Set to nothing is not unset. Of some only `set` is told.
    pub variables: BTreeMap<String, String>,
    /// Every variable of the list that is not here is unset.
    pub whole: bool,
}

/// The process that asks and the users who may matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Users {
    /// This process. Unknown under a root.
    pub process: Seen<ProcessUser>,
    /// `/etc/passwd`: own row, the calling user's under sudo, and the one that `--user` names; by uid.
    pub passwd: Seen<BTreeMap<u32, PasswdRow>>,
    /// `/etc/group`: rows of groups that own a GPU node or are usual for them, and of own groups; by gid.
    pub groups: Seen<BTreeMap<u32, GroupRow>>,
    /// The user that access is judged for, where it is not the caller: from sudo, pkexec, doas or `--user`.
    pub judged: Option<JudgedUser>,
    /// The user that `--user` names, where `/etc/passwd` does not tell which uid that is: then nobody but the caller is
    /// judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_user: Option<String>,
    /// `/etc/nsswitch.conf`, the sources of `group:` (`files`, `sss`, `ldap`, `systemd`, ...).
    pub group_sources: Seen<Vec<String>>,
}

/// Effective ids of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProcessUser {
    /// Effective uid.
    pub uid: u32,
    /// Effective gid.
    pub gid: u32,
    /// Supplementary groups, the effective one among them, sorted.
    pub groups: Vec<u32>,
    /// Real uid.
    pub real_uid: u32,
    /// uid of the user behind sudo, pkexec or doas.
    pub sudo_uid: Option<u32>,
    /// Name, or the placeholder for it.
    pub name: Option<String>,
}

/// A row of `/etc/passwd`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PasswdRow {
    /// Name, or the placeholder for it.
    pub name: String,
    /// Primary group.
    pub gid: u32,
}

/// A row of `/etc/group`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GroupRow {
    /// Name of the group.
    pub name: String,
    /// Members, of those in `passwd` above; others are left out.
    pub members: Vec<String>,
}

/// A user other than the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JudgedUser {
    /// uid.
    pub uid: u32,
    /// Name, or the placeholder for it.
    pub name: String,
    /// How we come to judge for this user: `sudo` or `--user`.
    pub via: String,
}
