//! `/sys/class/kfd`: the topology of the AMD compute driver.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The topology; `Absent` for the whole source: the kernel has no KFD.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Kfd {
    /// `topology/nodes/N` by number.
    pub nodes: Named<KfdNode>,
}

/// One node: a processor, a GPU, or a partition of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct KfdNode {
    /// `gpu_id`; 0 for processors. EPERM: the GPU is on the host and this container may not use it.
    pub gpu_id: Seen<u64>,
    /// `name`.
    pub name: Seen<String>,
    /// `properties`, numbers by name: `simd_count`, `gfx_target_version`, `location_id`, `domain`, `drm_render_minor`, ...
    /// `unique_id` and `hive_id` are left out.
    pub properties: Seen<BTreeMap<String, u64>>,
    /// Sum of `size_in_bytes` of the banks in `mem_banks` that are VRAM (heap type 1 or 2), in bytes.
    pub memory_bytes: Seen<u64>,
    /// The same of the banks that are memory of the machine (heap type 0).
    pub system_bytes: Seen<u64>,
    /// `properties` as text for ids that are private: `unique_id`, as placeholder.
    pub unique_id: Seen<String>,
}
