//! The running kernel.

use super::Seen;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the running kernel says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Kernel {
    /// Release, as `uname -r` prints it. Unknown under a root that does not hold `/proc/sys/kernel/osrelease`.
    pub release: Seen<String>,
    /// `/proc/version`, one line.
    pub version: Seen<String>,
    /// Architecture as `uname -m` prints it.
    pub machine: Seen<String>,
    /// `/proc/cmdline`, redacted.
    pub command_line: Seen<String>,
    /// `/proc/sys/kernel/tainted`, the bit mask.
    pub tainted: Seen<u64>,
    /// `/proc/sys/kernel/random/boot_id`, replaced by a placeholder unless private values are kept.
    pub boot_id: Seen<String>,
    /// Day on which the machine was looked at: `2026-11-30`. A folder cannot tell.
    pub date: Seen<String>,
    /// Seconds since boot, from `/proc/uptime`.
    pub uptime_seconds: Seen<u64>,
    /// How often the system has slept and woken up since boot, from `/sys/power/suspend_stats/success`.
    pub suspends: Seen<u64>,
}

/// Kernel modules that are in the kernel now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoadedModules {
    /// For every module that has to do with GPUs: `/sys/module/NAME`, with its name as the kernel writes it
    /// (`nvidia_uvm`). Built-in modules may stand here too. `Absent` only where that is proved.
    pub known: BTreeMap<String, Seen<LoadedModule>>,
    /// The lines of `/proc/modules` of those modules. `Absent`: this kernel cannot load modules.
    pub proc_modules: Seen<BTreeMap<String, ProcModule>>,
}

/// `/sys/module/NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoadedModule {
    /// `version`; in-tree modules have none.
    pub version: Seen<String>,
    /// `initstate`: `live`, `coming`, `going`; built-in modules have none.
    pub initstate: Seen<String>,
    /// `taint` letters: P proprietary, O out of tree, E unsigned.
    pub taint: Seen<String>,
    /// `srcversion`.
    pub srcversion: Seen<String>,
    /// `parameters/*` that have to do with GPUs.
    pub parameters: BTreeMap<String, Seen<String>>,
}

/// A line of `/proc/modules`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProcModule {
    /// `Live`, `Loading` or `Unloading`.
    pub state: String,
    /// Number of users; 0 also where the kernel does not count them.
    pub users: u64,
    /// Taint letters in the brackets at the end, if any.
    pub taint: String,
}

/// Mounts that decide what may be done with nodes and setuid programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Mounts {
    /// In the order of the file: a later mount of the same point hides the earlier one.
    pub mounts: Vec<Mount>,
}

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Mount {
    /// Mount point.
    pub point: String,
    /// Options of the mount: `ro`, `nosuid`, `noexec`, ...
    pub options: Vec<String>,
    /// File system type.
    pub kind: String,
}

/// Character majors by name, from `/proc/devices`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CharDevices {
    /// Major number by name (`nvidia`, `nvidia-uvm`, `drm`, `kfd`, `accel`).
    pub majors: BTreeMap<String, u32>,
}

/// What may keep an unsigned module out of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Security {
    /// Secure Boot, the last byte of the EFI variable. `Absent`: no EFI.
    pub secure_boot: Seen<bool>,
    /// EFI `SetupMode`.
    pub setup_mode: Seen<bool>,
    /// `MokSBStateRT` is 1: shim does not validate.
    pub shim_validation_off: Seen<bool>,
    /// shim started this system: a variable that it leaves (`MokListRT`, `SbatLevelRT`) is there. Without shim nobody can
    /// enrol a machine owner's key. `Absent`: no EFI.
    pub shim: Seen<bool>,
    /// The bracketed word of `/sys/kernel/security/lockdown`: `none`, `integrity`, `confidentiality`.
    pub lockdown: Seen<String>,
    /// `/sys/module/module/parameters/sig_enforce`.
    pub sig_enforce: Seen<bool>,
}
