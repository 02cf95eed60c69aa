//! Systemd units that use GPUs or that GPUs need, as their files say. Nobody is asked over a bus.

use super::Seen;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Units of interest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Services {
    /// By name (`nvidia-persistenced.service`, `ollama.service`, ...). `Absent`: no folder of units has it.
    pub units: BTreeMap<String, Seen<Unit>>,
    /// Users that these units run as and that `/etc/passwd` has, by name.
    pub users: BTreeMap<String, ServiceUser>,
}

/// One unit with its drop-ins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Unit {
    /// The unit file that counts. Where only a link that enables the unit was seen, what that link names.
    pub file: String,
    /// Its drop-ins in the order in which they are read.
    pub drop_ins: Vec<String>,
    /// All of these files, and those that they take variables from, were read. Else settings and variables may be missing.
    pub whole: bool,
    /// `*.wants` and `*.requires` folders that hold a link to it; `Absent`: it is not enabled.
    pub enabled_by: Seen<Vec<String>>,
    /// A link to /dev/null, or an empty file, makes it unusable.
    pub masked: bool,
    /// Its control group, so it runs; `Absent`: it has none.
    pub running: Seen<String>,
    /// Settings of `[Service]` that decide over devices: `User`, `Group`, `SupplementaryGroups`, `DynamicUser`, `DeviceAllow`,
    /// `DevicePolicy`, `PrivateDevices`, ... with the values that count, in order: of lists all, of others the last; an empty
    /// value resets those before it and is left out with them. Of NVIDIA's own units `ExecStart` too.
    pub settings: BTreeMap<String, Vec<String>>,
    /// Steering variables of `Environment=` and of the files that `EnvironmentFile=` names, by name. Of some only `set` is
    /// told.
    pub environment: BTreeMap<String, String>,
}

/// A user that a unit runs as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServiceUser {
    /// uid.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// Groups that name it as a member, by gid, of those that matter for GPUs: that own a node, or usually do.
    pub groups: Seen<BTreeMap<u32, String>>,
}
