//! What keeps a GPU off the bus: switches of the firmware, tools that turn a GPU off, rules that remove it, and Thunderbolt
//! devices that nobody let in.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Such switches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GpuSwitches {
    /// `dgpu_disable` of ASUS laptops by path; `1`: the firmware has turned the discrete GPU off. `Absent`: this firmware has
    /// no such switch, or its driver is not loaded.
    pub dgpu_disable: BTreeMap<String, Seen<String>>,
    /// `mode` in `/etc/supergfxd.conf`: `Hybrid`, `Integrated`, `Vfio`, `AsusMuxDgpu`, ... `Absent`: there is no such file.
    pub supergfxd_mode: Seen<String>,
    /// Lines of udev's rules that remove PCI devices, by file. Whole: no other rule of the administrator's does.
    pub remove_rules: Named<RemoveRules>,
    /// `/sys/bus/thunderbolt/devices`, those that can be authorized, by name (`0-1`).
    pub thunderbolt: Seen<Named<ThunderboltDevice>>,
}

/// A file of udev's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RemoveRules {
    /// The lines that remove PCI devices.
    pub lines: Vec<String>,
    /// A comment says that EnvyControl wrote it.
    pub by_envycontrol: bool,
}

/// A device on a Thunderbolt or USB4 cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThunderboltDevice {
    /// `authorized`, as written: `0` not, `1` and `2` yes.
    pub authorized: Seen<String>,
    /// `vendor_name`; read only of a device that is not authorized.
    pub vendor: Seen<String>,
    /// `device_name`, likewise.
    pub name: Seen<String>,
}
