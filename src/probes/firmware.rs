//! Fills `facts/firmware.rs`: firmware files that go before those of the distribution.

use crate::facts::firmware::Firmware;
use crate::facts::{Named, Seen};
use crate::host::Host;

/// Most files that are kept: AMD's package brings several hundred.
const LIMIT: usize = 1024;

/// Source `firmware`.
pub fn firmware(host: &Host) -> Seen<Firmware> {
    if host.exists("/sys/module/amdgpu").is_absent() {
        return Seen::Got(Firmware::default());
    }
    let is_firmware = |name: &str| {
        let name = name.trim_end_matches(".xz").trim_end_matches(".zst");
        name.ends_with(".bin")
    };
    let listing = host.names("/lib/firmware/updates/amdgpu", is_firmware);
    Seen::Got(Firmware {
        amdgpu_updates: listing.map(|listing| Named {
            whole: listing.whole && listing.names.len() <= LIMIT,
            items: listing
                .names
                .into_iter()
                .take(LIMIT)
                .map(|name| (name, ()))
                .collect(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::tree::Tree;

    #[test]
    fn only_where_the_driver_is() {
        let mut tree = Tree::proved();
        tree.file("/lib/firmware/updates/amdgpu/gc_11_5_1_mes_2.bin", "");
        tree.file("/lib/firmware/updates/amdgpu/gc_11_5_1_mes1.bin.zst", "");
        tree.file("/lib/firmware/updates/amdgpu/README", "");
        let names = |tree: &Tree| tree.ask(firmware).into_got().expect("facts").amdgpu_updates;
        assert!(names(&tree).is_unknown());
        tree.file("/sys/module/amdgpu/initstate", "live");
        assert_eq!(names(&tree).items().count(), 2);
    }
}
