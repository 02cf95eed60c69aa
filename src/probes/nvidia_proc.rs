//! Fills `facts/nvidia_proc.rs`.

use super::attributes::{COUNT_LIMIT, is_pci_address};
use crate::facts::nvidia_proc::{NvidiaProc, NvidiaProcGpu};
use crate::facts::{Named, Seen};
use crate::host::Host;
use std::collections::BTreeMap;

const FOLDER: &str = "/proc/driver/nvidia";

/// Source `nvidia_proc`.
pub fn nvidia_proc(host: &Host) -> Seen<NvidiaProc> {
    let folder = host.exists(FOLDER);
    if folder.is_absent() {
        return Seen::Absent;
    }
    let text = host.text(&format!("{FOLDER}/version"));
    let version = text.and_then(|text| match parse_version(&text) {
        Some(version) => Seen::Got(version),
        None => Seen::error("no version in it"),
    });
    let answer = NvidiaProc {
        open: version.as_ref().map(|(_, open)| *open),
        version: version.map(|(version, _)| version),
        params: host
            .text(&format!("{FOLDER}/params"))
            .map(|text| parse_fields(&text)),
        gpus: read_gpus(host),
    };
    let nothing = answer.version.got().is_none()
        && answer.params.got().is_none()
        && answer.gpus.got().is_none();
    match folder {
        Seen::Unasked(why) if nothing => Seen::Unasked(why),
        Seen::Failed(failure) if nothing => Seen::Failed(failure),
        _ => Seen::Got(answer),
    }
}

fn read_gpus(host: &Host) -> Seen<Named<NvidiaProcGpu>> {
    let folder = format!("{FOLDER}/gpus");
    host.list(&folder).map(|listing| {
        let mut gpus = Named {
            whole: listing.whole,
            items: BTreeMap::new(),
        };
        for name in listing.names {
            if !is_pci_address(&name) {
                continue;
            }
            if gpus.items.len() == COUNT_LIMIT {
                gpus.whole = false;
                break;
            }
            let fields = |file: &str| {
                host.text(&format!("{folder}/{name}/{file}"))
                    .map(|text| parse_fields(&text))
            };
            let gpu = NvidiaProcGpu {
                information: fields("information"),
                power: fields("power"),
            };
            gpus.items.insert(name, gpu);
        }
        gpus
    })
}

/// Version and flavour from the line `NVRM version: NVIDIA UNIX ... Kernel Module ...  VERSION  ...`. True: the open one.
/// The word for the processor stands before or after `Kernel Module`, so the version is the first dotted number.
fn parse_version(text: &str) -> Option<(String, bool)> {
    let line = text.lines().find_map(|line| {
        line.trim_start()
            .strip_prefix("NVRM version:")
            .filter(|rest| rest.contains("Kernel Module"))
    })?;
    let version = line.split_whitespace().find(|word| {
        let mut parts = word.split('.');
        word.len() <= 32
            && word.contains('.')
            && parts.all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    })?;
    Some((version.to_owned(), line.contains("Open Kernel Module")))
}

/// `Name: value` a line; a heading without a value is no field.
fn parse_fields(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Failure;
    use crate::probes::tree::Tree;

    #[test]
    fn versions_of_both_flavours() {
        for (line, version, open) in [
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.126.09  Release Build  (builder@host)\n\
                 GCC version:  gcc (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0\n",
                "580.126.09",
                true,
            ),
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025\n",
                "550.163.01",
                false,
            ),
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build\n",
                "540.4.0",
                true,
            ),
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Oct 12 09:19:07 UTC 2022\n",
                "390.157",
                false,
            ),
        ] {
            assert_eq!(
                parse_version(line),
                Some((version.to_owned(), open)),
                "{line}"
            );
        }
        for line in [
            "",
            "GCC version:  gcc 13.3.0\n",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64\n",
            "NVRM version: NVIDIA UNIX Kernel Module 580.\u{1b}[31m\n",
        ] {
            assert_eq!(parse_version(line), None, "{line}");
        }
    }

    fn machine() -> Tree {
        let mut tree = Tree::proved();
        for (name, text) in [
            (
                "version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.126.09  Release Build\n",
            ),
            (
                "params",
                "ModifyDeviceFiles: 1\nDeviceFileMode: 438\nRegistryDwords: \"\"\n",
            ),
            (
                "gpus/0000:01:00.0/information",
                "Model: \t\t NVIDIA GeForce RTX 4090\nGPU UUID: \t GPU-00000001-0000-4000-8000-000000000000\n\
                 Bus Location: \t 0000:01:00.0\nDevice Minor: \t 0\nGPU Excluded:\t No\n",
            ),
            (
                "gpus/0000:01:00.0/power",
                "Runtime D3 status:          Enabled (fine-grained)\nVideo Memory:               Off\n\n\
                 GPU Hardware Support:\n Video Memory Self Refresh: Supported\n",
            ),
        ] {
            tree.file(&format!("{FOLDER}/{name}"), text);
        }
        tree
    }

    #[test]
    fn a_loaded_driver() {
        let seen = machine().ask(nvidia_proc).into_got().expect("a driver");
        assert_eq!(seen.version, Seen::Got("580.126.09".to_owned()));
        assert_eq!(seen.open, Seen::Got(true));
        let params = seen.params.got().expect("parameters");
        assert_eq!(
            params.get("DeviceFileMode").map(String::as_str),
            Some("438")
        );
        assert_eq!(
            params.get("RegistryDwords").map(String::as_str),
            Some("\"\"")
        );
        let gpu = seen.gpus.entry("0000:01:00.0");
        let gpu = gpu.got().expect("a GPU");
        let field = |map: &Seen<BTreeMap<String, String>>, name: &str| {
            map.got().and_then(|map| map.get(name).cloned())
        };
        let information = |name| field(&gpu.information, name);
        assert_eq!(
            information("Model").as_deref(),
            Some("NVIDIA GeForce RTX 4090")
        );
        assert_eq!(information("Bus Location").as_deref(), Some("0000:01:00.0"));
        assert_eq!(information("Device Minor").as_deref(), Some("0"));
        assert_eq!(
            field(&gpu.power, "Runtime D3 status").as_deref(),
            Some("Enabled (fine-grained)")
        );
        assert_eq!(field(&gpu.power, "GPU Hardware Support"), None);
    }

    #[test]
    fn absent_only_where_that_is_proved() {
        assert_eq!(Tree::proved().ask(nvidia_proc), Seen::Absent);
        assert_eq!(Tree::default().ask(nvidia_proc), Seen::default());
        let mut tree = Tree::proved();
        tree.error(FOLDER, "EIO");
        assert_eq!(tree.ask(nvidia_proc), Seen::Failed(Failure::errno("EIO")));
    }

    #[test]
    fn one_unreadable_file_hides_nothing_else() {
        let mut tree = machine();
        tree.error(&format!("{FOLDER}/version"), "EIO");
        tree.file(&format!("{FOLDER}/gpus/not an address/information"), "");
        let seen = tree.ask(nvidia_proc).into_got().expect("a driver");
        assert_eq!(seen.version, Seen::Failed(Failure::errno("EIO")));
        assert_eq!(seen.open, Seen::Failed(Failure::errno("EIO")));
        assert_eq!(seen.gpus.items().count(), 1);
    }
}
