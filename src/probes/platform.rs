//! Fills `facts/platform.rs`: the distribution, the machine around the kernel, and what kind of place this is.

use crate::facts::platform::{Dmi, OsRelease, ProcHardware, Surroundings, SysInfo, Wsl};
use crate::facts::{Named, Seen, Why};
use crate::host::{Host, Lines};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Keys of os-release that are kept.
const OS_RELEASE_KEYS: &[&str] = &[
    "ID",
    "ID_LIKE",
    "VERSION_ID",
    "VERSION_CODENAME",
    "PRETTY_NAME",
    "VARIANT_ID",
    "NAME",
    "IMAGE_ID",
];
/// Words that container engines leave in `/proc/1/cgroup`.
const CONTAINER_WORDS: &[&str] = &[
    "docker",
    "containerd",
    "kubepods",
    "libpod",
    "podman",
    "crio",
    "lxc",
    "garden",
    "/ecs/",
    "machine.slice",
];
/// Keys of `/etc/wsl.conf` that concern the GPU. Others (user and host names, commands) are private and stay unread.
const WSL_KEYS: &[&str] = &[
    "enabled",
    "ldconfig",
    "mountfstab",
    "systemd",
    "appendwindowspath",
];
/// Most lines kept of `/proc/1/cgroup`.
const CGROUP_LIMIT: usize = 16;
/// Most processors that are counted in `/proc/cpuinfo`.
const CPU_LIMIT: usize = 8192;

/// Source `os_release`.
pub fn os_release(host: &Host) -> Seen<OsRelease> {
    let ostree = host.exists("/run/ostree-booted");
    let mut answer = Seen::Absent;
    for path in ["/etc/os-release", "/usr/lib/os-release"] {
        match host.text(path) {
            Seen::Got(text) => {
                return Seen::Got(OsRelease {
                    path: path.to_owned(),
                    fields: parse_os_release(&text),
                    ostree,
                });
            }
            other if answer.is_absent() => answer = other.map(|_| OsRelease::default()),
            _ => {}
        }
    }
    answer
}

/// The known keys of an os-release file, unquoted; keys set to nothing are left out.
fn parse_os_release(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.trim().split_once('='))
        .filter(|(key, _)| OS_RELEASE_KEYS.contains(key))
        .map(|(key, value)| (key.to_owned(), unquote(value)))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// The value of a shell assignment: one pair of quotes, and backslashes outside of single quotes.
fn unquote(value: &str) -> String {
    let value = value.trim();
    if let Some(inner) = value
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
    {
        return inner.to_owned();
    }
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(value);
    let mut plain = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            _ => plain.push(character),
        }
    }
    plain
}

/// Source `dmi`.
pub fn dmi(host: &Host) -> Seen<Dmi> {
    let attribute = |name: &str| {
        host.value(&format!("/sys/class/dmi/id/{name}"))
            .and_then(|value| {
                // Firmware that leaves a field empty has no such value.
                if value.is_empty() {
                    Seen::Absent
                } else {
                    Seen::Got(value)
                }
            })
    };
    Seen::Got(Dmi {
        vendor: attribute("sys_vendor"),
        product: attribute("product_name"),
        board_vendor: attribute("board_vendor"),
        board: attribute("board_name"),
        chassis: attribute("chassis_type"),
        bios_version: attribute("bios_version"),
    })
}

/// Source `surroundings`.
pub fn surroundings(host: &Host) -> Seen<Surroundings> {
    let containerenv = match host.text("/run/.containerenv") {
        Seen::Got(text) => Seen::Got(container_engine(&text)),
        // The file alone is the mark, whether or not it can be read.
        unread => match host.exists("/run/.containerenv") {
            Seen::Got(()) => Seen::Got(container_engine("")),
            _ => unread,
        },
    };
    let cgroup = host
        .lines("/proc/1/cgroup", &|line| {
            CONTAINER_WORDS.iter().any(|word| line.contains(word))
        })
        .map(|kept| kept.lines.into_iter().take(CGROUP_LIMIT).collect());
    Seen::Got(Surroundings {
        dockerenv: host.exists("/.dockerenv"),
        containerenv,
        systemd_container: host.value("/run/systemd/container"),
        cgroup,
        kubernetes: host.exists("/var/run/secrets/kubernetes.io"),
        singularity: host.exists("/.singularity.d"),
        hypervisor: host.value("/sys/hypervisor/type"),
    })
}

/// The `engine=` line of `/run/.containerenv`. Only privileged podman containers have one.
fn container_engine(text: &str) -> String {
    text.lines()
        .find_map(|line| line.trim().strip_prefix("engine="))
        .map(unquote)
        .filter(|engine| !engine.is_empty())
        .unwrap_or_else(|| "podman".to_owned())
}

/// Source `wsl`.
pub fn wsl(host: &Host) -> Seen<Wsl> {
    let names = |path: &str| {
        host.list(path).map(|listing| Named {
            whole: listing.whole,
            items: listing.names.into_iter().map(|name| (name, ())).collect(),
        })
    };
    Seen::Got(Wsl {
        libraries: names("/usr/lib/wsl/lib"),
        drivers: names("/usr/lib/wsl/drivers"),
        config: host
            .lines("/etc/wsl.conf", &is_wsl_line)
            .map(|kept| parse_wsl_config(&kept.lines)),
    })
}

/// A section, or a line that sets one of the keys that are kept.
fn is_wsl_line(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('[')
        || line
            .split_once('=')
            .is_some_and(|(key, _)| WSL_KEYS.contains(&key.trim().to_ascii_lowercase().as_str()))
}

/// Values by `section.key`. Names are lower case; what follows `#` is a comment.
fn parse_wsl_config(lines: &[String]) -> BTreeMap<String, String> {
    let mut section = String::new();
    let mut values = BTreeMap::new();
    for line in lines {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name.trim().to_ascii_lowercase();
        } else if let Some((key, value)) = line.split_once('=') {
            let key = key.trim().to_ascii_lowercase();
            values.insert(format!("{section}.{key}"), unquote(value));
        }
    }
    values
}

/// Source `proc_hardware`.
pub fn proc_hardware(host: &Host) -> Seen<ProcHardware> {
    let memory = host.lines("/proc/meminfo", &|line| {
        ["MemTotal:", "MemAvailable:", "SwapFree:"]
            .iter()
            .any(|name| line.starts_with(name))
    });
    let (seen_model, seen_flags, processors) = (Cell::new(false), Cell::new(false), Cell::new(0));
    let cpu = host.lines(
        "/proc/cpuinfo",
        &|line| match line.split(':').next().map(str::trim) {
            Some("model name") => !seen_model.replace(true),
            Some("flags") => !seen_flags.replace(true),
            Some("processor") => {
                processors.set(processors.get() + 1);
                processors.get() <= CPU_LIMIT
            }
            _ => false,
        },
    );
    Seen::Got(ProcHardware {
        memory_bytes: field(&memory, "MemTotal").and_then(|value| parse_kilobytes(&value)),
        memory_available_bytes: field(&memory, "MemAvailable")
            .and_then(|value| parse_kilobytes(&value)),
        swap_free_bytes: field(&memory, "SwapFree").and_then(|value| parse_kilobytes(&value)),
        cpu: field(&cpu, "model name"),
        cpus: cpu
            .as_ref()
            .and_then(|kept| match count_processors(&kept.lines) {
                0 | 1 => Seen::Unasked(Why::NotCaptured),
                count => Seen::Got(count),
            }),
        hypervisor_flag: field(&cpu, "flags")
            .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
    })
}

/// The value of the first `name: value` line. Absent only where the file was read to its end.
fn field(answer: &Seen<Lines>, name: &str) -> Seen<String> {
    answer.as_ref().and_then(|kept| {
        kept.lines
            .iter()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().to_owned())
            .filter(|value| !value.is_empty())
            .map_or_else(
                || {
                    if kept.whole {
                        Seen::Absent
                    } else {
                        Seen::Unasked(Why::NotCaptured)
                    }
                },
                Seen::Got,
            )
    })
}

/// `65536000 kB` in bytes.
fn parse_kilobytes(value: &str) -> Seen<u64> {
    value
        .strip_suffix("kB")
        .and_then(|number| number.trim().parse::<u64>().ok())
        .and_then(|kilobytes| kilobytes.checked_mul(1024))
        .map_or_else(|| Seen::error("is no number of kB"), Seen::Got)
}

fn count_processors(lines: &[String]) -> u32 {
    let count = lines
        .iter()
        .filter(|line| line.split(':').next().map(str::trim) == Some("processor"))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Source `sysinfo`.
pub fn sysinfo(host: &Host) -> Seen<SysInfo> {
    host.answer("sysinfo", || {
        let mut system = sysinfo::System::new();
        system.refresh_memory();
        system.refresh_cpu_list(sysinfo::CpuRefreshKind::nothing());
        let known = |bytes: u64| (bytes != 0).then_some(bytes);
        Seen::Got(SysInfo {
            memory_bytes: known(system.total_memory()),
            memory_available_bytes: known(system.available_memory()),
            cpu: system
                .cpus()
                .first()
                .map(|cpu| cpu.brand().trim().to_owned())
                .filter(|brand| !brand.is_empty()),
            cpus: u32::try_from(system.cpus().len())
                .ok()
                .filter(|count| *count != 0),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn os_release_is_unquoted_and_filtered() {
        let fields = parse_os_release(
            "NAME=\"Fedora Linux\"\nID=fedora\nVERSION_CODENAME=\"\"\nPRETTY_NAME='A \"b\" \\c'\n# ID=no\nHOME_URL=x\nVARIANT_ID=a\\$b\n",
        );
        assert_eq!(fields["NAME"], "Fedora Linux");
        assert_eq!(fields["ID"], "fedora");
        assert_eq!(fields["PRETTY_NAME"], "A \"b\" \\c");
        assert_eq!(fields["VARIANT_ID"], "a$b");
        assert_eq!(fields.len(), 4, "{fields:?}");
    }

    #[test]
    fn unquote_takes_odd_input() {
        assert_eq!(unquote("\""), "\"");
        assert_eq!(unquote("'"), "'");
        assert_eq!(unquote("\"a\\"), "\"a");
        assert_eq!(unquote("  plain "), "plain");
    }

    #[test]
    fn wsl_config_knows_sections_and_case() {
        let text = "[boot]\nsystemd=true\ncommand = rm\n[user]\ndefault=me\n[GPU]\nEnabled = false # off\n";
        let kept: Vec<String> = text
            .lines()
            .filter(|line| is_wsl_line(line))
            .map(str::to_owned)
            .collect();
        let values = parse_wsl_config(&kept);
        assert_eq!(values["gpu.enabled"], "false");
        assert_eq!(values["boot.systemd"], "true");
        assert_eq!(values.len(), 2, "names and commands stay out: {values:?}");
    }

    #[test]
    fn memory_is_bytes_or_an_error() {
        assert_eq!(parse_kilobytes("65536000 kB"), Seen::Got(67_108_864_000));
        for bad in ["", "12", "-1 kB", "99999999999999999999 kB", "\u{fffd} kB"] {
            assert!(matches!(parse_kilobytes(bad), Seen::Failed(_)), "{bad}");
        }
        assert!(matches!(
            parse_kilobytes(&format!("{} kB", u64::MAX)),
            Seen::Failed(_)
        ));
    }

    #[test]
    fn a_missing_field_is_absent_only_in_a_whole_file() {
        let kept = |whole| {
            Seen::Got(Lines {
                lines: lines("MemTotal:  1 kB"),
                whole,
            })
        };
        assert_eq!(field(&kept(true), "MemTotal"), Seen::Got("1 kB".to_owned()));
        assert_eq!(field(&kept(true), "MemAvailable"), Seen::Absent);
        assert!(field(&kept(false), "MemAvailable").is_unknown());
    }

    #[test]
    fn container_engine_falls_back_to_podman() {
        assert_eq!(
            container_engine("engine=\"podman-5.2\"\nname=x\n"),
            "podman-5.2"
        );
        assert_eq!(container_engine(""), "podman");
    }

    #[test]
    fn processors_are_counted() {
        assert_eq!(
            count_processors(&lines("processor\t: 0\nmodel name\t: x\nprocessor\t: 1")),
            2
        );
    }
}
