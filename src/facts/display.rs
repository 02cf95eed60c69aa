//! `/sys/class/drm` and what the GPU drivers hang below their devices; Vulkan and OpenCL loaders' files.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// DRM minors and driver attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Drm {
    /// `cardN` and `renderDN` of `/sys/class/drm` (connectors left out), with the PCI address of the device; a device that
    /// is not on the PCI bus has the last part of its path (`amdgpu_xcp_30`, `simple-framebuffer.0`, a USB interface).
    pub minors: Named<Seen<String>>,
    /// `/sys/class/accel`: NPU nodes (`accel0`) with the PCI address of the device.
    pub accel: Seen<BTreeMap<String, String>>,
    /// Attributes of amdgpu devices by PCI address, with or without DRM minors.
    pub amdgpu: BTreeMap<String, AmdgpuDevice>,
    /// Attributes of i915 and xe devices by PCI address.
    pub intel: BTreeMap<String, IntelDevice>,
}

/// Attributes that amdgpu adds to its PCI device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AmdgpuDevice {
    /// `mem_info_vram_total`, in bytes.
    pub vram_bytes: Seen<u64>,
    /// `mem_info_vram_used`, in bytes; read only of a GPU that is awake.
    pub vram_used_bytes: Seen<u64>,
    /// `mem_info_vis_vram_total`, in bytes.
    pub visible_vram_bytes: Seen<u64>,
    /// `mem_info_gtt_total`, in bytes.
    pub gtt_bytes: Seen<u64>,
    /// `mem_info_vram_vendor`: only discrete cards have it; some kernels say `unknown` of others.
    pub vram_vendor: Seen<String>,
    /// `board_info` is there: only discrete cards have it.
    pub board_info: Seen<String>,
    /// `vbios_version`.
    pub vbios: Seen<String>,
    /// `unique_id`, replaced by a placeholder unless private values are kept.
    pub unique_id: Seen<String>,
    /// `fw_version/*_fw_version` by name.
    pub firmware: BTreeMap<String, String>,
    /// `current_compute_partition`.
    pub compute_partition: Seen<String>,
    /// `current_memory_partition`.
    pub memory_partition: Seen<String>,
    /// `gpu_busy_percent`.
    pub busy_percent: Seen<u32>,
    /// `hwmon/hwmonN/*`, raw numbers by file name (`temp1_input` in millidegrees, `power1_cap` in microwatts); read only
    /// of a GPU that is awake. A sensor that gave no number is left out.
    pub hwmon: Seen<Sensors>,
    /// `ras/*_err_count` as written, by file name; read only of a GPU that is awake. `Absent`: the driver counts no errors
    /// of this GPU.
    pub ras: Seen<BTreeMap<String, String>>,
    /// `ip_discovery/die/0/GC/0/{major,minor,revision}` as `11.0.0`. Not the gfx target.
    pub gc_version: Seen<String>,
}

/// Attributes that i915 and xe add to their devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IntelDevice {
    /// Local memory in bytes, where the driver shows it; integrated GPUs have none.
    pub lmem_bytes: Seen<u64>,
    /// `hwmon/hwmonN/*` raw numbers by file name; read only of a GPU that is awake.
    pub hwmon: Seen<Sensors>,
}

/// A hardware monitor of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sensors {
    /// Its folder below `hwmon`, as `hwmon4`.
    pub monitor: String,
    /// Raw numbers by the names of files.
    pub values: BTreeMap<String, i64>,
}

/// Files by which the Vulkan and OpenCL loaders find drivers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Icd {
    /// Vulkan ICD manifests by path; the value is the library path in it. Some were found, or none in any folder: where
    /// nothing was found and a folder did not answer, nothing is known.
    pub vulkan: Seen<BTreeMap<String, Seen<String>>>,
    /// OpenCL vendor files by path; the value is the library named in it.
    pub opencl: Seen<BTreeMap<String, Seen<String>>>,
}
