//! Adapters by which GPUs of several machines reach each other's memory.

use super::{Gpu, Stack, View};
use crate::facts::Seen;
use crate::facts::network::{Network, RdmaAdapter};
use crate::finding::Evidence;

const ADAPTERS: &str = "/sys/class/infiniband";

/// What can be done by RDMA here. The evidence names an adapter or a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RdmaGround {
    /// There is no adapter, none whose cable leads anywhere, or none that this container was given.
    None,
    /// A port of InfiniBand is active: it is there for nothing else.
    InfiniBand(Evidence),
    /// A port of another kind is active. Most adapters for Ethernet can do RDMA, and few are used so.
    Ethernet(Evidence),
    /// There are adapters; how their ports stand is not known.
    Adapters(Evidence),
    /// Not known.
    Unknown(String),
}

impl View<'_> {
    /// Adapters, and what programs need for them.
    pub fn network(&self) -> Seen<&Network> {
        self.facts.network.as_ref()
    }

    /// The GPUs of a stack that take part in jobs on several GPUs: graphics of a processor only where they are all there is.
    pub fn gpus_of_jobs(&self, stack: Stack) -> Vec<&Gpu> {
        let alone = self.gpus.len() == 1 && stack != Stack::LevelZero;
        self.gpus_of(stack)
            .filter(|gpu| gpu.is_on_bus() && gpu.passed_in != Some(false))
            .filter(|gpu| gpu.driver.got().is_some() && !gpu.is_set_aside())
            .filter(|gpu| gpu.integrated != Some(true) || alone)
            .collect()
    }

    /// What can be done by RDMA here.
    pub fn rdma_ground(&self) -> RdmaGround {
        let unknown = |why: String| RdmaGround::Unknown(format!("{ADAPTERS}: {why}"));
        let network = match self.network() {
            Seen::Got(network) => network,
            other => return unknown(other.map(|_| ()).why()),
        };
        let adapters = match &network.rdma {
            Seen::Got(adapters) => adapters,
            Seen::Absent => return RdmaGround::None,
            other => return unknown(other.why()),
        };
        // Containers see the adapters of the host, and use those whose nodes they were given.
        if self.in_container() {
            match &network.verbs {
                Seen::Got(nodes) if !nodes.items.is_empty() => {}
                Seen::Got(nodes) if nodes.whole => return RdmaGround::None,
                Seen::Absent => return RdmaGround::None,
                other => {
                    return RdmaGround::Unknown(format!("/dev/infiniband: {}", other.why()));
                }
            }
        }
        let mut ground = match adapters.whole {
            true => RdmaGround::None,
            false => unknown("not all of it could be listed".to_owned()),
        };
        for (name, adapter) in &adapters.items {
            match adapter_ground(name, adapter) {
                RdmaGround::None => {}
                found @ RdmaGround::InfiniBand(_) => return found,
                found @ RdmaGround::Ethernet(_) => ground = found,
                found if matches!(ground, RdmaGround::None | RdmaGround::Unknown(_)) => {
                    ground = found;
                }
                _ => {}
            }
        }
        ground
    }
}

fn adapter_ground(name: &str, adapter: &RdmaAdapter) -> RdmaGround {
    let folder = format!("{ADAPTERS}/{name}");
    let unknown = || {
        RdmaGround::Adapters(Evidence {
            source: folder.clone(),
            says: "an adapter that does RDMA".to_owned(),
        })
    };
    let ports = match &adapter.ports {
        Seen::Got(ports) => ports,
        Seen::Absent => return RdmaGround::None,
        _ => return unknown(),
    };
    let mut ground = match ports.whole {
        true => RdmaGround::None,
        false => unknown(),
    };
    for (number, port) in &ports.items {
        let is_active = match &port.state {
            Seen::Got(state) => state.ends_with("ACTIVE"),
            Seen::Absent => false,
            _ => return unknown(),
        };
        if !is_active {
            continue;
        }
        let Seen::Got(layer) = &port.link_layer else {
            return unknown();
        };
        let evidence = Evidence {
            source: format!("{folder}/ports/{number}/state"),
            says: format!("ACTIVE, a port of {layer}"),
        };
        if layer == "InfiniBand" {
            return RdmaGround::InfiniBand(evidence);
        }
        ground = RdmaGround::Ethernet(evidence);
    }
    ground
}
