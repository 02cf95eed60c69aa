//! Fills `facts/kfd.rs`.

use super::attributes::{COUNT_LIMIT, is_numbered, number, word};
use crate::facts::kfd::{Kfd, KfdNode};
use crate::facts::{Named, Seen, Why};
use crate::host::Host;
use std::collections::BTreeMap;

const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// Heap types of memory banks that are memory of the GPU: visible to the processor and not.
const VRAM_HEAPS: [u64; 2] = [1, 2];
/// The heap type of memory of the machine.
const SYSTEM_HEAP: u64 = 0;
/// Most memory banks of one node; real nodes have one or two.
const BANK_LIMIT: usize = 64;

/// Source `kfd`.
pub fn kfd(host: &Host) -> Seen<Kfd> {
    match host.list(NODES) {
        Seen::Got(listing) => {
            let mut nodes = Named {
                whole: listing.whole,
                items: BTreeMap::new(),
            };
            for name in listing.names {
                if !is_numbered(&name, "") {
                    continue;
                }
                if nodes.items.len() == COUNT_LIMIT {
                    nodes.whole = false;
                    break;
                }
                let node = read_node(host, &format!("{NODES}/{name}"));
                nodes.items.insert(name, node);
            }
            Seen::Got(Kfd { nodes })
        }
        // The class without its topology would be a kernel that nobody knows.
        Seen::Absent => match host.exists("/sys/class/kfd") {
            Seen::Absent => Seen::Absent,
            Seen::Got(()) => Seen::error("no topology below /sys/class/kfd"),
            Seen::Unasked(why) => Seen::Unasked(why),
            Seen::Failed(failure) => Seen::Failed(failure),
        },
        Seen::Unasked(why) => Seen::Unasked(why),
        Seen::Failed(failure) => Seen::Failed(failure),
    }
}

fn read_node(host: &Host, folder: &str) -> KfdNode {
    let properties = host
        .text(&format!("{folder}/properties"))
        .map(|text| parse_properties(&text));
    let unique_id = properties
        .as_ref()
        .and_then(|properties| match &properties.unique_id {
            Some(id) => Seen::Got(id.clone()),
            None => Seen::Absent,
        });
    let properties = properties.and_then(|properties| {
        if properties.numbers.is_empty() {
            Seen::error("no numbers by name")
        } else {
            Seen::Got(properties.numbers)
        }
    });
    let bank_count = properties
        .got()
        .and_then(|numbers| numbers.get("mem_banks_count"))
        .copied();
    let banks = read_memory(host, folder, bank_count);
    KfdNode {
        gpu_id: number(host, &format!("{folder}/gpu_id")),
        name: word(host, &format!("{folder}/name")),
        memory_bytes: banks.as_ref().map(|banks| banks.gpu),
        system_bytes: banks.map(|banks| banks.system),
        properties,
        unique_id,
    }
}

/// Sums of memory banks in bytes.
#[derive(Default)]
struct Banks {
    /// Those that are VRAM.
    gpu: u64,
    /// Those that are memory of the machine.
    system: u64,
}

/// Sums of the banks; known only where every bank could be read.
fn read_memory(host: &Host, folder: &str, bank_count: Option<u64>) -> Seen<Banks> {
    let folder = format!("{folder}/mem_banks");
    let banks = match host.list(&folder) {
        Seen::Got(listing) => {
            let mut banks = listing.names;
            banks.retain(|name| is_numbered(name, ""));
            if !listing.whole && bank_count != u64::try_from(banks.len()).ok() {
                return Seen::default();
            }
            banks
        }
        // The kernel counts the banks from 0, so a folder that was recorded without its listing can be read.
        Seen::Unasked(Why::NotCaptured) => match bank_count.map(usize::try_from) {
            Some(Ok(count)) => (0..count.min(BANK_LIMIT + 1))
                .map(|bank| bank.to_string())
                .collect(),
            _ => return Seen::default(),
        },
        other => return other.and_then(|_| Seen::default()),
    };
    if banks.len() > BANK_LIMIT {
        return Seen::Unasked(Why::Limit);
    }
    let mut sums = Banks::default();
    for bank in banks {
        let text = match host.text(&format!("{folder}/{bank}/properties")) {
            Seen::Got(text) => text,
            other => return other.and_then(|_| Seen::default()),
        };
        let numbers = parse_properties(&text).numbers;
        let (Some(heap), Some(bytes)) = (numbers.get("heap_type"), numbers.get("size_in_bytes"))
        else {
            return Seen::error("a memory bank without type or size");
        };
        let sum = match *heap {
            SYSTEM_HEAP => &mut sums.system,
            heap if VRAM_HEAPS.contains(&heap) => &mut sums.gpu,
            _ => continue,
        };
        let Some(total) = sum.checked_add(*bytes) else {
            return Seen::error("memory banks beyond any size");
        };
        *sum = total;
    }
    Seen::Got(sums)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Properties {
    numbers: BTreeMap<String, u64>,
    unique_id: Option<String>,
}

/// A name and a number a line. The two ids are private: one is kept as the text that the door made of it.
fn parse_properties(text: &str) -> Properties {
    let mut properties = Properties::default();
    for line in text.lines() {
        let Some((name, value)) = line.trim().split_once(char::is_whitespace) else {
            continue;
        };
        let value = value.trim();
        match name {
            "unique_id" => properties.unique_id = Some(value.to_owned()),
            "hive_id" => {}
            _ => {
                if let Ok(number) = value.parse() {
                    properties.numbers.insert(name.to_owned(), number);
                }
            }
        }
    }
    properties
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Failure;
    use crate::probes::tree::Tree;

    fn machine() -> Tree {
        let mut tree = Tree::proved();
        for (name, text) in [
            ("0/gpu_id", "0\n"),
            ("0/name", "\n"),
            (
                "0/properties",
                "cpu_cores_count 16\nsimd_count 0\nmem_banks_count 1\n",
            ),
            (
                "0/mem_banks/0/properties",
                "heap_type 0\nsize_in_bytes 67291475968\n",
            ),
            ("1/gpu_id", "20000\n"),
            ("1/name", "aqua_vanjaram\n"),
            (
                "1/properties",
                "simd_count 1216\nmem_banks_count 2\ngfx_target_version 90402\nlocation_id 1280\ndomain 0\n\
                 unique_id 900000000000000001\nhive_id 77\nlocal_mem_size 0\n",
            ),
            (
                "1/mem_banks/0/properties",
                "heap_type 1\nsize_in_bytes 206141652992\nflags 0\nwidth 8192\n",
            ),
            (
                "1/mem_banks/1/properties",
                "heap_type 2\nsize_in_bytes 8\nflags 0\nwidth 8192\n",
            ),
        ] {
            tree.file(&format!("{NODES}/{name}"), text);
        }
        tree
    }

    fn node(seen: &Seen<Kfd>, name: &str) -> KfdNode {
        let node: Seen<&KfdNode> = seen.as_ref().and_then(|kfd| kfd.nodes.get(name));
        node.into_got().expect("a node").clone()
    }

    #[test]
    fn processors_and_gpus() {
        let seen = machine().ask(kfd);
        assert!(seen.got().expect("a topology").nodes.whole);
        let processor = node(&seen, "0");
        assert_eq!(processor.gpu_id, Seen::Got(0));
        assert_eq!(processor.memory_bytes, Seen::Got(0));
        assert_eq!(processor.unique_id, Seen::Absent);
        let gpu = node(&seen, "1");
        assert_eq!(gpu.name, Seen::Got("aqua_vanjaram".to_owned()));
        assert_eq!(gpu.memory_bytes, Seen::Got(206_141_653_000));
        assert_eq!(gpu.unique_id, Seen::Got("900000000000000001".to_owned()));
        let properties = gpu.properties.got().expect("properties");
        assert_eq!(properties.get("gfx_target_version"), Some(&90402));
        assert_eq!(properties.get("unique_id"), None);
        assert_eq!(properties.get("hive_id"), None);
    }

    #[test]
    fn a_node_that_the_container_may_not_use() {
        let mut tree = machine();
        for name in ["gpu_id", "name", "properties", "mem_banks/0/properties"] {
            tree.error(&format!("{NODES}/1/{name}"), "EPERM");
        }
        let gpu = node(&tree.ask(kfd), "1");
        let denied = Failure::errno("EPERM");
        assert_eq!(gpu.gpu_id, Seen::Failed(denied.clone()));
        assert_eq!(gpu.properties, Seen::Failed(denied.clone()));
        assert_eq!(gpu.unique_id, Seen::Failed(denied.clone()));
        assert_eq!(gpu.memory_bytes, Seen::Failed(denied));
    }

    #[test]
    fn odd_content_is_an_unknown() {
        let mut tree = machine();
        tree.bytes(
            &format!("{NODES}/1/properties"),
            b"\xff\x1b[31m\nx y\n\n99\n",
        );
        tree.file(&format!("{NODES}/1/gpu_id"), "-1\n");
        tree.file(
            &format!("{NODES}/1/mem_banks/1/properties"),
            "heap_type 2\nsize_in_bytes 18446744073709551615\n",
        );
        let gpu = node(&tree.ask(kfd), "1");
        assert!(matches!(gpu.properties, Seen::Failed(_)));
        assert!(matches!(gpu.gpu_id, Seen::Failed(_)));
        assert!(matches!(gpu.memory_bytes, Seen::Failed(_)));
    }

    #[test]
    fn an_id_that_the_door_replaced_stays_text() {
        let properties = parse_properties("simd_count 4\nunique_id UNIQUE-1\n");
        assert_eq!(properties.unique_id.as_deref(), Some("UNIQUE-1"));
        assert_eq!(properties.numbers.len(), 1);
    }

    #[test]
    fn no_kfd_only_where_that_is_proved() {
        assert_eq!(Tree::proved().ask(kfd), Seen::Absent);
        assert_eq!(Tree::default().ask(kfd), Seen::default());
        let mut tree = Tree::proved();
        tree.file("/sys/class/kfd/kfd/dev", "1:1\n");
        assert!(matches!(tree.ask(kfd), Seen::Failed(_)));
        tree.error("/sys/class/kfd", "EACCES");
        assert!(matches!(
            tree.ask(kfd),
            Seen::Failed(Failure::Denied { .. })
        ));
    }

    #[test]
    fn endless_nodes_are_cut() {
        let mut tree = Tree::proved();
        for number in 0..COUNT_LIMIT + 1 {
            tree.file(&format!("{NODES}/{number}/gpu_id"), "0\n");
        }
        for number in 0..100_000 {
            tree.file(&format!("{NODES}/0/mem_banks/{number}/properties"), "");
        }
        let seen = tree.ask(kfd);
        assert_eq!(node(&seen, "0").memory_bytes, Seen::Unasked(Why::Limit));
        let nodes = seen.into_got().expect("a topology").nodes;
        assert!(!nodes.whole);
        assert_eq!(nodes.items.len(), COUNT_LIMIT);
    }
}
