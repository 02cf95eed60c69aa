//! Firmware files that go before those of the distribution.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};

/// Firmware of GPUs outside of its usual place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Firmware {
    /// Names in `/lib/firmware/updates/amdgpu`, which the kernel looks into first. Asked only where amdgpu is in the kernel.
    pub amdgpu_updates: Seen<Named<()>>,
}
