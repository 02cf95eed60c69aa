//! Fills `facts/gpu_switches.rs`: what keeps a GPU off the bus.

use crate::facts::gpu_switches::{GpuSwitches, RemoveRules, ThunderboltDevice};
use crate::facts::{Named, Seen};
use crate::host::Host;
use std::collections::BTreeSet;

/// The switch of ASUS firmware, by the driver of today and the one before.
const DGPU_DISABLE: [&str; 2] = [
    "/sys/class/firmware-attributes/asus-armoury/attributes/dgpu_disable/current_value",
    "/sys/devices/platform/asus-nb-wmi/dgpu_disable",
];
/// Folders of udev's rules. In those of packages only files whose names tell of such a rule are read.
const RULES: [(&str, bool); 5] = [
    ("/etc/udev/rules.d", true),
    ("/run/udev/rules.d", true),
    ("/usr/local/lib/udev/rules.d", true),
    ("/usr/lib/udev/rules.d", false),
    ("/lib/udev/rules.d", false),
];
const THUNDERBOLT: &str = "/sys/bus/thunderbolt/devices";
/// Most files of one folder and most devices.
const LIMIT: usize = 128;
/// Most lines of a file of rules.
const LINES: usize = 32;

/// Source `gpu_switches`.
pub fn gpu_switches(host: &Host) -> Seen<GpuSwitches> {
    let switch = |path: &&str| ((*path).to_owned(), host.value(path));
    Seen::Got(GpuSwitches {
        dgpu_disable: DGPU_DISABLE.iter().map(switch).collect(),
        supergfxd_mode: supergfxd_mode(host),
        remove_rules: remove_rules(host),
        thunderbolt: thunderbolt(host),
    })
}

/// The value of `"mode": "Integrated"` in a file of JSON, a setting a line.
fn supergfxd_mode(host: &Host) -> Seen<String> {
    let mut take = |line: &str| {
        let value = line.trim().strip_prefix("\"mode\"")?.trim_start();
        let value = value.strip_prefix(':')?.trim().trim_end_matches(',');
        let word = value.trim_matches('"');
        let is_word = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_word.then(|| format!("  \"mode\": \"{word}\""))
    };
    let kept = host.excerpt("/etc/supergfxd.conf", &mut take);
    kept.and_then(|kept| {
        let mode = kept.lines.first().and_then(|line| line.split('"').nth(3));
        mode.map_or_else(
            || Seen::error("names no mode"),
            |mode| Seen::Got(mode.to_owned()),
        )
    })
}

fn remove_rules(host: &Host) -> Named<RemoveRules> {
    let mut rules = Named {
        whole: true,
        ..Named::default()
    };
    // A file masks those of the same name in later folders.
    let mut seen = BTreeSet::new();
    for (folder, all) in RULES {
        let is_rule = |name: &str| {
            name.ends_with(".rules")
                && (all || ["remove", "nvidia"].iter().any(|word| name.contains(word)))
        };
        let listing = match host.names(folder, is_rule) {
            Seen::Got(listing) => listing,
            Seen::Absent => continue,
            // What packages bring removes no GPU.
            _ => {
                rules.whole &= !all;
                continue;
            }
        };
        rules.whole &= !all || listing.whole && listing.names.len() <= LIMIT;
        for name in listing.names.into_iter().take(LIMIT) {
            let path = format!("{folder}/{name}");
            if !seen.insert(name) {
                continue;
            }
            match host.lines(&path, &is_kept) {
                Seen::Got(kept) => {
                    rules.whole &= kept.whole;
                    add(&mut rules, path, kept.lines);
                }
                Seen::Absent => {}
                _ => rules.whole = false,
            }
        }
    }
    rules
}

fn add(rules: &mut Named<RemoveRules>, path: String, lines: Vec<String>) {
    let (comments, lines): (Vec<String>, Vec<String>) = lines
        .into_iter()
        .take(LINES)
        .partition(|line| line.starts_with('#'));
    if !lines.is_empty() {
        let by_envycontrol = !comments.is_empty();
        rules.items.insert(
            path,
            RemoveRules {
                lines,
                by_envycontrol,
            },
        );
    }
}

fn is_kept(line: &str) -> bool {
    match line.trim_start().strip_prefix('#') {
        Some(comment) => line.starts_with('#') && comment.contains("by EnvyControl"),
        None => line.contains("ATTR{remove}"),
    }
}

/// Devices on cables. Domains, and computers at the other end of a cable, have nothing to authorize; what they are called is
/// not read.
fn thunderbolt(host: &Host) -> Seen<Named<ThunderboltDevice>> {
    host.names(THUNDERBOLT, is_device).map(|listing| Named {
        whole: listing.whole && listing.names.len() <= LIMIT,
        items: listing
            .names
            .into_iter()
            .take(LIMIT)
            .filter_map(|name| {
                let attribute = |file: &str| host.value(&format!("{THUNDERBOLT}/{name}/{file}"));
                let authorized = attribute("authorized");
                if authorized.is_absent() {
                    return None;
                }
                let of_stranger = |file: &str| match authorized.got().map(String::as_str) {
                    Some("0") => attribute(file),
                    _ => Seen::default(),
                };
                let device = ThunderboltDevice {
                    vendor: of_stranger("vendor_name"),
                    name: of_stranger("device_name"),
                    authorized,
                };
                Some((name, device))
            })
            .collect(),
    })
}

/// `0-1`, `1-301`: a domain and the way to the device; `0-0` is the computer itself.
fn is_device(name: &str) -> bool {
    let is_number =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split_once('-').is_some_and(|(domain, route)| {
        is_number(domain) && is_number(route) && route.bytes().any(|byte| byte != b'0')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::tree::Tree;

    const NOBODY_ASKED: Seen<String> = Seen::Unasked(crate::facts::Why::NotCaptured);

    #[test]
    fn nothing_of_it() {
        let (host, asked) = Tree::proved().host(crate::host::Options::default());
        let seen = gpu_switches(&host).into_got().expect("facts");
        assert!(seen.dgpu_disable.values().all(Seen::is_absent));
        assert!(seen.supergfxd_mode.is_absent() && seen.thunderbolt.is_absent());
        assert!(seen.remove_rules.whole && seen.remove_rules.items.is_empty());
        assert!(asked.borrow().len() <= 9, "{:?}", asked.borrow());
    }

    #[test]
    fn modes_rules_and_devices() {
        let mut tree = Tree::proved();
        tree.file(
            "/etc/supergfxd.conf",
            "{\n  \"mode\": \"Integrated\",\n  \"vfio_enable\": false\n}\n",
        );
        tree.file(
            "/lib/udev/rules.d/50-remove-nvidia.rules",
            "# Automatically generated by EnvyControl\n#ATTR{remove}=\"1\"\nATTR{vendor}==\"0x10de\", ATTR{remove}=\"1\"\n",
        );
        tree.file("/lib/udev/rules.d/60-other.rules", "ATTR{remove}=\"1\"\n");
        for (name, authorized) in [("0-0", "1"), ("0-1", "0"), ("0-301", "1")] {
            let folder = format!("{THUNDERBOLT}/{name}");
            tree.file(&format!("{folder}/authorized"), authorized);
            tree.file(&format!("{folder}/device_name"), "Box\n");
        }
        tree.file(
            &format!("{THUNDERBOLT}/0-2/device_name"),
            "somebodys-laptop",
        );
        let seen = tree.ask(gpu_switches).into_got().expect("facts");
        assert_eq!(seen.supergfxd_mode, Seen::Got("Integrated".to_owned()));
        let rules = &seen.remove_rules.items;
        assert_eq!(rules.len(), 1);
        let rule = &rules["/lib/udev/rules.d/50-remove-nvidia.rules"];
        assert_eq!((rule.lines.len(), rule.by_envycontrol), (1, true));
        let devices = seen.thunderbolt.into_got().expect("devices").items;
        assert_eq!(devices.keys().collect::<Vec<_>>(), ["0-1", "0-301"]);
        assert_eq!(devices["0-1"].name, Seen::Got("Box".to_owned()));
        assert_eq!(devices["0-301"].name, NOBODY_ASKED);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let mut tree = Tree::proved();
        tree.error("/etc/udev/rules.d/50-gpu.rules", "EIO");
        tree.error("/etc/supergfxd.conf", "EIO");
        let seen = tree.ask(gpu_switches).into_got().expect("facts");
        assert!(!seen.remove_rules.whole);
        assert!(seen.supergfxd_mode.is_unknown());
    }
}
