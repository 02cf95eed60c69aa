//! Fills `facts/kernel.rs`: the running kernel, its modules, mounts, majors, and what keeps unsigned modules out.

use crate::facts::kernel::{
    CharDevices, Kernel, LoadedModule, LoadedModules, Mount, Mounts, ProcModule, Security,
};
use crate::facts::{Seen, Why};
use crate::host::Host;
use std::collections::BTreeMap;

/// Modules that have to do with GPUs, as the kernel writes their names.
pub(crate) const GPU_MODULES: &[&str] = &[
    "amdgpu",
    "amdkcl",
    "amdttm",
    "amdxcp",
    "amdxdna",
    "ast",
    "bbswitch",
    "dxgkrnl",
    "gdrdrv",
    "i915",
    "intel_vpu",
    "mgag200",
    "nouveau",
    "nova_core",
    "nova_drm",
    "nv_peer_mem",
    "nvgpu",
    "nvidia",
    "nvidia_drm",
    "nvidia_fs",
    "nvidia_modeset",
    "nvidia_peermem",
    "nvidia_uvm",
    "nvidia_vgpu_vfio",
    "pci_stub",
    "radeon",
    "simpledrm",
    "ttm",
    "vfio_pci",
    "xe",
    "xen_pciback",
];
/// Parameters that decide something about GPUs, by module.
const PARAMETERS: &[(&str, &[&str])] = &[
    (
        "amdgpu",
        &[
            "aspm",
            "cik_support",
            "cwsr_enable",
            "dc",
            "exp_hw_support",
            "gpu_recovery",
            "gttsize",
            "mcbp",
            "mes",
            "modeset",
            "noretry",
            "pcie_gen_cap",
            "ppfeaturemask",
            "runpm",
            "sched_policy",
            "si_support",
            "vm_fragment_size",
        ],
    ),
    ("amdttm", &["pages_limit"]),
    ("i915", &["force_probe", "modeset"]),
    ("nouveau", &["modeset"]),
    ("nvidia_drm", &["fbdev", "modeset"]),
    ("radeon", &["cik_support", "modeset", "si_support"]),
    ("ttm", &["pages_limit"]),
    ("xe", &["force_probe", "modeset"]),
];
/// Mount points that decide what may be done with nodes, setuid programs and module folders.
const MOUNT_POINTS: &[&str] = &[
    "/",
    "/bin",
    "/dev",
    "/lib/modules",
    "/opt",
    "/proc",
    "/run",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/lib/modules",
    "/usr/local",
];
/// What a mount of GPU files has in its point or source.
const MOUNT_WORDS: &[&str] = &["nvidia", "rocm", "kfd", "/dri/", "cuda", "opengl-driver"];
/// Most mounts that are kept.
const MOUNT_LIMIT: usize = 500;
/// Prefix of the EFI variables, and the vendor ids of the two kinds.
const EFI_VARIABLES: &str = "/sys/firmware/efi/efivars";
const EFI_GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
const EFI_SHIM: &str = "605dab50-e046-4300-abb6-3dd810dd8b23";

/// The release of the running kernel, from `uname` or from the file that says the same.
pub(crate) fn release(host: &Host) -> Seen<String> {
    match host.system() {
        Seen::Got(system) if !system.release.is_empty() => Seen::Got(system.release),
        _ => host.value("/proc/sys/kernel/osrelease"),
    }
}

/// A module's name as the kernel writes it.
pub(crate) fn normalised(name: &str) -> String {
    name.replace('-', "_")
}

/// Source `kernel`.
pub fn kernel(host: &Host) -> Seen<Kernel> {
    Seen::Got(Kernel {
        release: release(host),
        version: host.value("/proc/version"),
        machine: host.system().and_then(|system| {
            if system.machine.is_empty() {
                Seen::default()
            } else {
                Seen::Got(system.machine)
            }
        }),
        command_line: host.value("/proc/cmdline"),
        tainted: host
            .value("/proc/sys/kernel/tainted")
            .and_then(|text| number(&text)),
        boot_id: host.value("/proc/sys/kernel/random/boot_id"),
        date: host.clock().map_or_else(Seen::default, |clock| {
            day(&clock).map_or_else(|| Seen::error("is no date"), Seen::Got)
        }),
        uptime_seconds: host
            .value("/proc/uptime")
            .and_then(|text| parse_uptime(&text)),
        suspends: host
            .value("/sys/power/suspend_stats/success")
            .and_then(|text| number(&text)),
    })
}

fn number(text: &str) -> Seen<u64> {
    text.parse()
        .map_or_else(|_| Seen::error("is no number"), Seen::Got)
}

/// The day of a time as RFC 3339 writes it.
fn day(clock: &str) -> Option<String> {
    let day = clock.get(..10)?;
    let fits = day.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    fits.then(|| day.to_owned())
}

/// Whole seconds of the first number of `/proc/uptime`.
fn parse_uptime(text: &str) -> Seen<u64> {
    number(text.split(['.', ' ']).next().unwrap_or_default())
}

/// Source `modules`.
pub fn modules(host: &Host) -> Seen<LoadedModules> {
    let listing = host.list("/sys/module");
    let known = GPU_MODULES
        .iter()
        .map(|name| {
            let there = match &listing {
                Seen::Got(listing) if listing.names.iter().any(|found| found == name) => {
                    Seen::Got(())
                }
                Seen::Got(listing) if listing.whole => Seen::Absent,
                Seen::Absent => Seen::Absent,
                // The folder does not say, the path may.
                _ => host.exists(&format!("/sys/module/{name}")),
            };
            ((*name).to_owned(), there.map(|()| loaded(host, name)))
        })
        .collect();
    let proc_modules = host
        .lines("/proc/modules", &|line| {
            line.split(' ')
                .next()
                .is_some_and(|name| GPU_MODULES.contains(&name))
        })
        .map(|kept| {
            kept.lines
                .iter()
                .filter_map(|line| parse_proc_module(line))
                .collect()
        });
    Seen::Got(LoadedModules {
        known,
        proc_modules,
    })
}

fn loaded(host: &Host, name: &str) -> LoadedModule {
    let attribute = |attribute: &str| host.value(&format!("/sys/module/{name}/{attribute}"));
    let parameters = PARAMETERS
        .iter()
        .filter(|(module, _)| *module == name)
        .flat_map(|(_, parameters)| parameters.iter())
        .map(|parameter| {
            (
                (*parameter).to_owned(),
                attribute(&format!("parameters/{parameter}")),
            )
        })
        .collect();
    LoadedModule {
        version: attribute("version"),
        initstate: attribute("initstate"),
        taint: attribute("taint"),
        srcversion: attribute("srcversion"),
        parameters,
    }
}

/// `NAME SIZE USERS USED_BY STATE ADDRESS [(TAINT)]`.
fn parse_proc_module(line: &str) -> Option<(String, ProcModule)> {
    let mut words = line.split_whitespace();
    let (name, _size, users, _used_by, state) = (
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
    );
    let taint = words
        .nth(1)
        .map(|word| word.trim_matches(['(', ')']))
        .unwrap_or_default();
    Some((
        name.to_owned(),
        ProcModule {
            state: state.to_owned(),
            users: users.parse().unwrap_or(0),
            taint: taint.to_owned(),
        },
    ))
}

/// Source `mounts`.
pub fn mounts(host: &Host) -> Seen<Mounts> {
    host.lines("/proc/self/mountinfo", &|line| parse_mount(line).is_some())
        .map(|kept| Mounts {
            mounts: kept
                .lines
                .iter()
                .filter_map(|line| parse_mount(line))
                .take(MOUNT_LIMIT)
                .collect(),
        })
}

/// A line of mountinfo, if it is a mount that matters:
/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG ...] - KIND SOURCE SUPER_OPTIONS`.
fn parse_mount(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point, options) = (mount.next()?, mount.next()?, mount.next()?);
    let mut file_system = file_system.split(' ');
    let kind = file_system.next()?;
    let source = file_system.next().unwrap_or_default();
    let point = octal_unescaped(point);
    let matters = MOUNT_POINTS.contains(&point.as_str())
        || ["/dev/", "/proc/driver/nvidia", "/usr/lib/wsl"]
            .iter()
            .any(|start| point.starts_with(start))
        || MOUNT_WORDS.iter().any(|word| {
            [root, source, point.as_str()]
                .iter()
                .any(|part| part.contains(word))
        });
    matters.then(|| Mount {
        point,
        options: options.split(',').map(str::to_owned).collect(),
        kind: kind.to_owned(),
    })
}

/// Blanks, tabs, line ends and backslashes stand as `\NNN` in mountinfo.
fn octal_unescaped(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(code) = code {
            plain.push(code);
            rest = &tail[3..];
        } else {
            plain.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Source `char_devices`.
pub fn char_devices(host: &Host) -> Seen<CharDevices> {
    host.text("/proc/devices").and_then(|text| {
        // Every kernel has some; an empty file proves nothing.
        if !text.contains("Character devices:") {
            return Seen::error("has no list of character devices");
        }
        Seen::Got(CharDevices {
            majors: parse_char_devices(&text),
        })
    })
}

/// The character section, drivers of GPUs only. A name that stands twice keeps its first major.
fn parse_char_devices(text: &str) -> BTreeMap<String, u32> {
    let mut majors = BTreeMap::new();
    for line in text
        .lines()
        .take_while(|line| !line.starts_with("Block devices"))
    {
        let Some((major, name)) = line.trim().split_once(' ') else {
            continue;
        };
        let name = name.trim();
        let of_gpu = name.starts_with("nvidia") || ["drm", "kfd", "accel"].contains(&name);
        if let Ok(major) = major.parse()
            && of_gpu
        {
            majors.entry(name.to_owned()).or_insert(major);
        }
    }
    majors
}

/// Source `security`.
pub fn security(host: &Host) -> Seen<Security> {
    let efi = without_empty_folder(host, "/sys/firmware", host.exists("/sys/firmware/efi"));
    let variable = |name: &str, vendor: &str| match &efi {
        Seen::Absent => Seen::Absent,
        _ => {
            let value = host
                .bytes(&format!("{EFI_VARIABLES}/{name}-{vendor}"), 16)
                .and_then(|bytes| efi_flag(&bytes));
            without_empty_folder(host, EFI_VARIABLES, value)
        }
    };
    Seen::Got(Security {
        secure_boot: variable("SecureBoot", EFI_GLOBAL),
        setup_mode: variable("SetupMode", EFI_GLOBAL),
        shim_validation_off: variable("MokSBStateRT", EFI_SHIM),
        shim: shim(host, &efi),
        lockdown: without_empty_folder(
            host,
            "/sys/kernel/security",
            host.value("/sys/kernel/security/lockdown"),
        )
        .and_then(|text| bracketed(&text)),
        sig_enforce: host
            .value("/sys/module/module/parameters/sig_enforce")
            .and_then(|text| match text.as_str() {
                "Y" | "1" => Seen::Got(true),
                "N" | "0" => Seen::Got(false),
                _ => Seen::error("is neither Y nor N"),
            }),
    })
}

/// Variables that shim leaves for the running system (rhboot/shim mok.c); `SbatLevelRT` came with shim 15.3.
fn shim(host: &Host, efi: &Seen<()>) -> Seen<bool> {
    if efi.is_absent() {
        return Seen::Absent;
    }
    let mut answer = Seen::Got(false);
    for name in ["MokListRT", "SbatLevelRT"] {
        let path = format!("{EFI_VARIABLES}/{name}-{EFI_SHIM}");
        match without_empty_folder(host, EFI_VARIABLES, host.exists(&path)) {
            Seen::Got(()) => return Seen::Got(true),
            Seen::Absent => {}
            unknown => answer = unknown.map(|()| false),
        }
    }
    answer
}

/// A folder that is empty has no file system mounted on it (containers hide `/sys/firmware` so): what is missing in it
/// proves nothing.
fn without_empty_folder<T>(host: &Host, folder: &str, answer: Seen<T>) -> Seen<T> {
    if answer.is_absent()
        && host
            .list(folder)
            .got()
            .is_some_and(|listing| listing.whole && listing.names.is_empty())
    {
        return Seen::Unasked(Why::NotCaptured);
    }
    answer
}

/// Four attribute bytes, then the value.
fn efi_flag(bytes: &[u8]) -> Seen<bool> {
    match bytes {
        [_, _, _, _, value] => Seen::Got(*value == 1),
        _ => Seen::error("is no EFI variable of one byte"),
    }
}

/// The word in brackets: `none [integrity] confidentiality`.
fn bracketed(text: &str) -> Seen<String> {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or_else(
            || Seen::error("has no word in brackets"),
            |(word, _)| Seen::Got(word.to_owned()),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_module_with_and_without_taint() {
        let (name, module) = parse_proc_module(
            "nvidia 14372864 2 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (POE)",
        )
        .expect("a line");
        assert_eq!(name, "nvidia");
        assert_eq!(
            (module.users, module.state.as_str(), module.taint.as_str()),
            (2, "Live", "POE")
        );
        let (_, module) = parse_proc_module("amdgpu 1 - - Loading 0x0").expect("no count of users");
        assert_eq!(
            (module.users, module.state.as_str(), module.taint.as_str()),
            (0, "Loading", "")
        );
        assert!(parse_proc_module("amdgpu 1").is_none());
    }

    #[test]
    fn mounts_that_matter() {
        let mount = parse_mount(
            "23 22 0:6 / /dev rw,nosuid,relatime shared:2 - devtmpfs udev rw,size=1k,mode=755",
        )
        .expect("/dev");
        assert_eq!(mount.point, "/dev");
        assert_eq!(mount.options, ["rw", "nosuid", "relatime"]);
        assert_eq!(mount.kind, "devtmpfs");
        assert!(parse_mount("1 2 8:1 / /home/a rw - ext4 /dev/sda1 rw").is_none());
        let given = parse_mount("1 2 0:6 /nvidia0 /dev/nvidia0 ro,noexec - devtmpfs udev rw")
            .expect("a node that was passed in");
        assert_eq!(given.point, "/dev/nvidia0");
        for bad in ["", " - ", "1 2 3 - ext4", "1 2 0:6 / /dev"] {
            assert!(parse_mount(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn octal_escapes() {
        assert_eq!(octal_unescaped("/a\\040b\\011\\134"), "/a b\t\\");
        assert_eq!(octal_unescaped("/a\\9x\\04"), "/a\\9x\\04");
        assert_eq!(octal_unescaped("\\777"), "\\777");
    }

    #[test]
    fn only_character_devices_of_gpus() {
        let majors = parse_char_devices(
            "Character devices:\n  1 mem\n195 nvidia\n226 drm\n508 nvidia-uvm\n99999999999 kfd\n\nBlock devices:\n259 accel\n",
        );
        assert_eq!(majors["nvidia-uvm"], 508);
        assert_eq!(majors.len(), 3, "{majors:?}");
    }

    #[test]
    fn efi_variables_have_four_bytes_before_the_value() {
        assert_eq!(efi_flag(&[6, 0, 0, 0, 1]), Seen::Got(true));
        assert_eq!(efi_flag(&[6, 0, 0, 0, 0]), Seen::Got(false));
        assert!(efi_flag(&[6, 0, 0, 0]).is_unknown());
        assert!(efi_flag(&[]).is_unknown());
    }

    #[test]
    fn the_day_of_a_clock() {
        assert_eq!(day("2026-11-30T12:00:00Z").as_deref(), Some("2026-11-30"));
        for clock in [
            "",
            "now",
            "2026-11-3",
            "2026/11/30T12:00:00Z",
            "20261130T120000Z",
        ] {
            assert_eq!(day(clock), None, "{clock}");
        }
    }

    #[test]
    fn small_values() {
        assert_eq!(
            bracketed("none [integrity] confidentiality"),
            Seen::Got("integrity".to_owned())
        );
        assert!(bracketed("none").is_unknown());
        assert_eq!(parse_uptime("86400.00 600000.00"), Seen::Got(86_400));
        assert!(parse_uptime("\u{1b}[31m").is_unknown());
        assert!(parse_uptime("").is_unknown());
        assert!(number("-1").is_unknown());
    }

    #[test]
    fn names_are_sorted_and_normalised() {
        assert!(GPU_MODULES.is_sorted());
        assert!(GPU_MODULES.iter().all(|name| normalised(name) == *name));
        for (module, parameters) in PARAMETERS {
            assert!(GPU_MODULES.contains(module));
            assert!(parameters.is_sorted());
        }
    }
}
