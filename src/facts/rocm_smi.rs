//! What ROCm SMI answers: the second witness beside sysfs.

use super::Told;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What ROCm SMI says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RocmSmi {
    /// The library file that answered.
    pub library: Option<String>,
    /// Version of the library (`1.0.70200`), as it says itself.
    pub version: Told<String>,
    /// `rsmi_num_monitor_devices`.
    pub count: Told<u32>,
    /// The devices by PCI address (`0000:03:00.0`).
    pub devices: BTreeMap<String, RocmSmiDevice>,
    /// Indices for which it gave no address, with its status (`INIT_ERROR`).
    pub unreachable: BTreeMap<u32, String>,
}

/// What ROCm SMI says of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RocmSmiDevice {
    /// ROCm SMI's index.
    pub index: u32,
    /// Indices of its further partitions, where it is split up (CPX of an MI300X: seven). The values are those of the first.
    pub partitions: Vec<u32>,
    /// Name, from the system's `pci.ids`.
    pub name: Told<String>,
    /// All memory of its own in bytes.
    pub memory_bytes: Told<u64>,
    /// Memory of its own in use in bytes.
    pub memory_used_bytes: Told<u64>,
    /// VBIOS version.
    pub vbios: Told<String>,
    /// Temperature at the edge of the chip in degrees Celsius.
    pub temperature_c: Told<u32>,
    /// Share of the last moment in which the GPU was busy, in percent.
    pub busy_percent: Told<u32>,
}
