//! Fills `facts/network.rs`: adapters that do RDMA, and what programs need for them.

use crate::facts::network::{Limit, Network, RdmaAdapter, RdmaPort};
use crate::facts::{Named, Seen};
use crate::host::{Host, Listing};

const ADAPTERS: &str = "/sys/class/infiniband";
/// Most adapters, and most ports of one.
const LIMIT: usize = 64;

/// Source `network`.
pub fn network(host: &Host) -> Seen<Network> {
    let rdma = host
        .list(ADAPTERS)
        .map(|listing| named(listing, |name| adapter(host, name)));
    let has_adapter = rdma.items().next().is_some();
    let verbs = || {
        let nodes = host.names("/dev/infiniband", |name| name.starts_with("uverbs"));
        nodes.map(|listing| named(listing, |_| ()))
    };
    // Its programs lock memory, too.
    let has_npu = || host.exists("/sys/module/amdxdna").got().is_some();
    Seen::Got(Network {
        verbs: if has_adapter {
            verbs()
        } else {
            Seen::default()
        },
        locked_memory: if has_adapter || has_npu() {
            locked_memory(host)
        } else {
            Seen::default()
        },
        interfaces: host
            .env("NCCL_SOCKET_IFNAME")
            .and_then(|value| interfaces(host, &value)),
        rdma,
    })
}

fn named<T>(listing: Listing, of: impl Fn(&str) -> T) -> Named<T> {
    Named {
        whole: listing.whole && listing.names.len() <= LIMIT,
        items: listing
            .names
            .into_iter()
            .take(LIMIT)
            .map(|name| {
                let item = of(&name);
                (name, item)
            })
            .collect(),
    }
}

fn adapter(host: &Host, name: &str) -> RdmaAdapter {
    let folder = format!("{ADAPTERS}/{name}/ports");
    let ports = host.list(&folder).map(|listing| {
        let port = |number: &str| RdmaPort {
            state: host.value(&format!("{folder}/{number}/state")),
            link_layer: host.value(&format!("{folder}/{number}/link_layer")),
        };
        named(listing, port)
    });
    RdmaAdapter { ports }
}

/// `Max locked memory  SOFT  HARD  bytes`.
fn locked_memory(host: &Host) -> Seen<Limit> {
    let is_it = |line: &str| line.starts_with("Max locked memory ");
    let kept = host.lines("/proc/self/limits", &is_it);
    kept.and_then(|kept| {
        let limits = kept.lines.first().and_then(|line| {
            let mut words = line.split_whitespace().skip(3);
            Some(Limit {
                soft: limit(words.next()?)?,
                hard: limit(words.next()?)?,
            })
        });
        limits.map_or_else(|| Seen::error("names no limit"), Seen::Got)
    })
}

fn limit(word: &str) -> Option<Option<u64>> {
    match word {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

/// Interfaces that a value of `NCCL_SOCKET_IFNAME` may mean.
fn interfaces(host: &Host, value: &str) -> Seen<Named<()>> {
    let wanted: Vec<&str> = value
        .trim_start_matches(['^', '='])
        .split(',')
        .map(|entry| entry.split(':').next().unwrap_or(entry))
        .filter(|name| !name.is_empty())
        .collect();
    let keep = |name: &str| {
        wanted.iter().any(|wanted| name.starts_with(wanted)) && !holds_hardware_address(name)
    };
    let listing = host.names("/sys/class/net", keep);
    listing.map(|listing| named(listing, |_| ()))
}

/// `enxa1b2c3d4e5f6`: the name of an adapter that is plugged in is made of its hardware address.
fn holds_hardware_address(name: &str) -> bool {
    name.get(2..)
        .and_then(|rest| rest.strip_prefix('x'))
        .is_some_and(|rest| rest.len() == 12 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::tree::Tree;

    #[test]
    fn adapters_and_the_limit() {
        let mut tree = Tree::proved();
        assert_eq!(
            tree.ask(network).into_got().expect("facts").rdma,
            Seen::Absent
        );
        let port = "/sys/class/infiniband/mlx5_0/ports/1";
        tree.file(&format!("{port}/state"), "4: ACTIVE\n");
        tree.file(&format!("{port}/link_layer"), "InfiniBand\n");
        tree.file("/dev/infiniband/uverbs0", "");
        tree.file("/dev/infiniband/rdma_cm", "");
        tree.file(
            "/proc/self/limits",
            "Limit   Soft Limit  Hard Limit  Units\nMax locked memory  65536  unlimited  bytes\n",
        );
        let seen = tree.ask(network).into_got().expect("facts");
        let adapters = seen.rdma.into_got().expect("adapters");
        let ports = adapters.items["mlx5_0"].ports.got().expect("ports");
        assert_eq!(ports.items["1"].state, Seen::Got("4: ACTIVE".to_owned()));
        assert_eq!(
            ports.items["1"].link_layer,
            Seen::Got("InfiniBand".to_owned())
        );
        assert_eq!(seen.verbs.items().count(), 1);
        let limit = seen.locked_memory.into_got().expect("a limit");
        assert_eq!((limit.soft, limit.hard), (Some(65536), None));
    }

    #[test]
    fn interfaces_are_told_only_as_far_as_they_are_named() {
        let mut tree = Tree::proved();
        for name in ["lo", "eth0", "eth1", "enxa1b2c3d4e5f6", "ib0"] {
            tree.file(&format!("/sys/class/net/{name}/mtu"), "1500");
        }
        let (host, _) = tree.host(crate::host::Options::default());
        let names = |value: &str| {
            let seen = interfaces(&host, value).into_got().expect("names");
            seen.items.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(names("eth"), ["eth0", "eth1"]);
        assert_eq!(names("=eth1,ib0:4000"), ["eth1", "ib0"]);
        assert!(names("enx").is_empty());
    }
}
