//! The distribution, the machine around the kernel, and what kind of place this is.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `/etc/os-release`, else `/usr/lib/os-release`: the keys that are used, unquoted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OsRelease {
    /// The file it was read from.
    pub path: String,
    /// `ID`, `ID_LIKE`, `VERSION_ID`, `VERSION_CODENAME`, `PRETTY_NAME`, `VARIANT_ID`, `NAME`, `IMAGE_ID`.
    pub fields: BTreeMap<String, String>,
    /// `/run/ostree-booted` exists: an image-based system.
    pub ostree: Seen<()>,
}

/// `/sys/class/dmi/id`; serial numbers are never read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Dmi {
    /// `sys_vendor`.
    pub vendor: Seen<String>,
    /// `product_name`.
    pub product: Seen<String>,
    /// `board_vendor`.
    pub board_vendor: Seen<String>,
    /// `board_name`.
    pub board: Seen<String>,
    /// `chassis_type`, the SMBIOS number.
    pub chassis: Seen<String>,
    /// `bios_version`.
    pub bios_version: Seen<String>,
}

/// Marks that containers and hypervisors leave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Surroundings {
    /// `/.dockerenv`.
    pub dockerenv: Seen<()>,
    /// `/run/.containerenv` (podman), its `engine=` line if it has one.
    pub containerenv: Seen<String>,
    /// `/run/systemd/container`.
    pub systemd_container: Seen<String>,
    /// `/proc/1/cgroup`, lines that name a container engine.
    pub cgroup: Seen<Vec<String>>,
    /// `/var/run/secrets/kubernetes.io`.
    pub kubernetes: Seen<()>,
    /// `/.singularity.d`, in images of Apptainer and Singularity.
    pub singularity: Seen<()>,
    /// `/sys/hypervisor/type`.
    pub hypervisor: Seen<String>,
}

/// What WSL lays into a Linux system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Wsl {
    /// `/usr/lib/wsl/lib`: names of the files.
    pub libraries: Seen<Named<()>>,
    /// `/usr/lib/wsl/drivers`: names of the folders, each a Windows driver (`nv_dispi.inf_amd64_...`).
    pub drivers: Seen<Named<()>>,
    /// `/etc/wsl.conf`: values by `section.key`, lower case.
    pub config: Seen<BTreeMap<String, String>>,
}

/// Memory and processor from procfs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProcHardware {
    /// `MemTotal` of `/proc/meminfo`, in bytes.
    pub memory_bytes: Seen<u64>,
    /// `MemAvailable`, in bytes.
    pub memory_available_bytes: Seen<u64>,
    /// `SwapFree`, in bytes.
    pub swap_free_bytes: Seen<u64>,
    /// First `model name` of `/proc/cpuinfo`.
    pub cpu: Seen<String>,
    /// Number of `processor` lines. Absent where the file holds only the first one.
    pub cpus: Seen<u32>,
    /// The flag `hypervisor` of the first processor.
    pub hypervisor_flag: Seen<bool>,
}

/// What the crate `sysinfo` answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SysInfo {
    /// Memory in bytes; null where it said 0.
    pub memory_bytes: Option<u64>,
    /// Memory that can be had without swapping, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Brand of the first processor.
    pub cpu: Option<String>,
    /// Logical processors.
    pub cpus: Option<u32>,
}
