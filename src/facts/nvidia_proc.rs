//! `/proc/driver/nvidia`.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `/proc/driver/nvidia`; `Absent` for the whole source: no NVIDIA module is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NvidiaProc {
    /// Version of the loaded module, from the first line of `version`.
    pub version: Seen<String>,
    /// True: the first line names the open kernel module.
    pub open: Seen<bool>,
    /// `params`, by name.
    pub params: Seen<BTreeMap<String, String>>,
    /// `gpus/ADDRESS`.
    pub gpus: Seen<Named<NvidiaProcGpu>>,
}

/// `/proc/driver/nvidia/gpus/ADDRESS/information`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NvidiaProcGpu {
    /// The fields of the file by name (`Model`, `GPU UUID`, `Device Minor`, `GPU Firmware`, `Video BIOS`, `GPU Excluded`).
    pub information: Seen<BTreeMap<String, String>>,
    /// `power`: the fields by name (`Runtime D3 status`, `Video Memory`).
    pub power: Seen<BTreeMap<String, String>>,
}
