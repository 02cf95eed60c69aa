//! What NVIDIA's driver libraries answer. Every value is its own: a call that is not supported costs that value alone.

use super::Told;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What NVML says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Nvml {
    /// The library file that answered.
    pub library: Option<String>,
    /// `nvmlSystemGetDriverVersion`.
    pub driver_version: Told<String>,
    /// `nvmlSystemGetCudaDriverVersion_v2`: 12040 is CUDA 12.4.
    pub cuda_driver_version: Told<u32>,
    /// `nvmlSystemGetNVMLVersion`.
    pub nvml_version: Told<String>,
    /// `nvmlDeviceGetCount_v2`.
    pub count: Told<u32>,
    /// The devices by PCI address (`0000:01:00.0`).
    pub devices: BTreeMap<String, NvmlDevice>,
    /// Indices for which NVML gave no device, with its error (`GPU_IS_LOST`).
    pub unreachable: BTreeMap<u32, String>,
}

impl Nvml {
    /// Every GPU that it counts is among its devices: it does not list any other.
    pub fn is_whole(&self) -> bool {
        self.count
            .got()
            .is_some_and(|count| *count as usize == self.devices.len())
    }
}

/// What NVML says of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NvmlDevice {
    /// NVML's index: the order of PCI addresses.
    pub index: u32,
    /// Minor number of `/dev/nvidiaN`.
    pub minor: Told<u32>,
    /// Name as the driver has it.
    pub name: Told<String>,
    /// `GPU-...`, replaced by a placeholder unless private values are kept.
    pub uuid: Told<String>,
    /// VBIOS version.
    pub vbios: Told<String>,
    /// All memory in bytes.
    pub memory_bytes: Told<u64>,
    /// Memory in use in bytes.
    pub memory_used_bytes: Told<u64>,
    /// BAR1 in bytes.
    pub bar1_bytes: Told<u64>,
    /// `8.9`.
    pub compute_capability: Told<String>,
    /// `default`, `exclusive_process`, `prohibited`.
    pub compute_mode: Told<String>,
    /// `P0` to `P15`.
    pub performance_state: Told<String>,
    /// Persistence mode is on.
    pub persistence: Told<bool>,
    /// A display is driven by it.
    pub display_active: Told<bool>,
    /// Power drawn, in milliwatts.
    pub power_mw: Told<u64>,
    /// Power limit that holds, in milliwatts.
    pub power_limit_mw: Told<u64>,
    /// Power limit that the card comes with, in milliwatts.
    pub power_limit_default_mw: Told<u64>,
    /// Lowest power limit that may be set, in milliwatts.
    pub power_limit_min_mw: Told<u64>,
    /// Highest power limit that may be set, in milliwatts.
    pub power_limit_max_mw: Told<u64>,
    /// Temperature of the chip in degrees Celsius.
    pub temperature_c: Told<u32>,
    /// Temperature at which it slows down, in degrees Celsius.
    pub slowdown_c: Told<u32>,
    /// Temperature at which it shuts down, in degrees Celsius.
    pub shutdown_c: Told<u32>,
    /// Clock of the streaming multiprocessors in MHz.
    pub sm_clock_mhz: Told<u32>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Told<u32>,
    /// Highest clock of the streaming multiprocessors in MHz.
    pub max_sm_clock_mhz: Told<u32>,
    /// Highest clock of the memory in MHz.
    pub max_memory_clock_mhz: Told<u32>,
    /// Why clocks are held down (`gpu_idle`, `sw_power_cap`, `hw_thermal_slowdown`, ...).
    pub throttle_reasons: Told<Vec<String>>,
    /// ECC is on.
    pub ecc: Told<bool>,
    /// ECC will be on after the next reset.
    pub ecc_pending: Told<bool>,
    /// Uncorrected memory errors since the driver was loaded.
    pub ecc_uncorrected: Told<u64>,
    /// Uncorrected memory errors in the life of the card.
    pub ecc_uncorrected_lifetime: Told<u64>,
    /// Corrected memory errors since the driver was loaded.
    pub ecc_corrected: Told<u64>,
    /// Rows of memory that were replaced.
    pub remapped_rows: Told<RemappedRows>,
    /// Pages of memory that are no longer used (before Ampere): after single-bit errors, after double-bit errors.
    pub retired_pages: Told<RetiredPages>,
    /// PCIe generation now.
    pub link_generation: Told<u32>,
    /// Lanes now.
    pub link_width: Told<u32>,
    /// Highest generation of card and slot together.
    pub max_link_generation: Told<u32>,
    /// Most lanes of card and slot together.
    pub max_link_width: Told<u32>,
    /// `enabled` or `disabled`; unknown with NOT_SUPPORTED where the GPU has no MIG.
    pub mig_mode: Told<String>,
    /// MIG mode after the next reset.
    pub mig_mode_pending: Told<String>,
    /// How many MIG devices there are.
    pub mig_instances: Told<u32>,
    /// UUIDs of the MIG devices (`MIG-...`).
    pub mig_uuids: Told<Vec<String>>,
    /// Memory of the MIG devices that tell theirs.
    pub mig_memory: Told<Vec<MigMemory>>,
    /// NVSwitch fabric: `not_supported`, `not_started`, `in_progress`, `completed`.
    pub fabric_state: Told<String>,
    /// Status of the fabric's training: NVML's error name, `SUCCESS` where it is in order.
    pub fabric_status: Told<String>,
    /// vGPU licence: `licensed`, `unlicensed`; unknown with NOT_SUPPORTED on a GPU that needs none.
    pub licence: Told<String>,
    /// Who uses it.
    pub processes: Told<Vec<NvmlProcess>>,
}

/// Memory of a MIG device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MigMemory {
    /// All of it, in bytes.
    pub bytes: u64,
    /// In use, in bytes.
    pub used_bytes: u64,
}

/// Replaced rows of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RemappedRows {
    /// After corrected errors.
    pub correctable: u32,
    /// After uncorrected errors.
    pub uncorrectable: u32,
    /// Some wait for a reset.
    pub pending: bool,
    /// Replacing failed: no spare row was left.
    pub failure: bool,
}

/// Memory pages that are no longer used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RetiredPages {
    /// After several single-bit errors.
    pub single_bit: u32,
    /// After a double-bit error.
    pub double_bit: u32,
    /// Some wait for a reset.
    pub pending: bool,
}

/// A process that uses a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NvmlProcess {
    /// Process id.
    pub pid: u32,
    /// Name of the program, without its folder.
    pub name: Option<String>,
    /// Whose it is; unknown in a container, where numbers of processes may be those of others.
    pub uid: Option<u32>,
    /// Memory in bytes; unknown where the driver does not tell, as under WSL.
    pub used_bytes: Option<u64>,
    /// `compute` or `graphics`.
    pub kind: String,
}

/// What the CUDA driver library says without being initialised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CudaDriver {
    /// The library file that answered.
    pub library: Option<String>,
    /// `cuDriverGetVersion`: 12040 is CUDA 12.4.
    pub driver_version: Told<u32>,
}
