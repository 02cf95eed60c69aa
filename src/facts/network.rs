//! The networks over which GPUs of several machines speak, as far as they decide what GPU software can do.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};

/// Adapters that read and write memory by themselves (RDMA), and what programs need for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Network {
    /// `/sys/class/infiniband` by name (`mlx5_0`): adapters of InfiniBand, and those of Ethernet that do RDMA.
    pub rdma: Seen<Named<RdmaAdapter>>,
    /// Nodes in `/dev/infiniband` through which programs use them (`uverbs0`). Asked only where there is an adapter.
    pub verbs: Seen<Named<()>>,
    /// How much memory this process may lock. Asked only where there is an adapter, or an NPU that amdxdna drives.
    pub locked_memory: Seen<Limit>,
    /// Names of network interfaces that begin with one of the names in `NCCL_SOCKET_IFNAME`; of others nothing is told.
    /// Asked only where that variable is set.
    pub interfaces: Seen<Named<()>>,
}

/// One adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RdmaAdapter {
    /// Its ports by number. `Absent`: it has none.
    pub ports: Seen<Named<RdmaPort>>,
}

/// A port of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RdmaPort {
    /// `state`, as written: `4: ACTIVE`, `1: DOWN`.
    pub state: Seen<String>,
    /// `link_layer`: `InfiniBand`, `Ethernet`.
    pub link_layer: Seen<String>,
}

/// A limit of this process (`/proc/self/limits`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Limit {
    /// The limit that counts, in bytes; None: unlimited.
    pub soft: Option<u64>,
    /// How far the process may raise it, in bytes; None: unlimited.
    pub hard: Option<u64>,
}
