//! The kernel log: the texts of the shared material, recordings, folders and this machine.

use crate::common::{Folder, skipped};
use crate::program;
use gpucheck::facts::kernel_log::KernelLog;
use gpucheck::facts::{Failure, Seen, Why};
use gpucheck::host::archive::Archive;
use gpucheck::host::live::{Live, Root};
use gpucheck::host::machine::{Entries, Entry};
use gpucheck::host::redact::{Private, Redactor, salt};
use gpucheck::host::{Host, Options, Source};
use gpucheck::probes::kernel_log::kernel_log;
use gpucheck::view::log::{self, Event, Kind};
use serde::Deserialize;
use std::fs;
use std::time::{Duration, Instant};

fn host(source: impl Source + 'static) -> Host {
    Host::new(Box::new(source), Redactor::off(), Options::default())
}

/// A machine that holds these lines of `log SOURCE`.
fn recording(source: &str, lines: &str) -> Archive {
    let lines = lines.lines().map(|line| line.to_owned().into()).collect();
    let mut entries = Entries::parse("gpucheck-machine 1\n").expect("a machine");
    entries
        .entries
        .push(Entry::Log(source.to_owned().into(), lines));
    Archive::new(entries)
}

fn read(source: impl Source + 'static) -> KernelLog {
    kernel_log(&host(source)).into_got().expect("a log")
}

/// The same after it was recorded, written, read and replayed.
fn replayed(entries: Vec<Entry>) -> Seen<KernelLog> {
    let mut machine = Entries::parse("gpucheck-machine 1\n").expect("a machine");
    machine.entries = entries;
    let text = machine.to_string();
    let machine =
        Entries::parse(text.clone().leak()).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    kernel_log(&host(Archive::new(machine)))
}

#[track_caller]
fn comes_back_the_same(source: impl Source + 'static) -> Seen<KernelLog> {
    let host = host(source).recording();
    let log = kernel_log(&host);
    assert_eq!(replayed(host.take_entries()), log);
    log
}

fn names(events: &[Event]) -> Vec<String> {
    let name = |event: &Event| {
        let words = format!("{:?}", event.kind);
        let end = words.find(' ').unwrap_or(words.len());
        words[..end].to_owned()
    };
    events.iter().map(name).collect()
}

/// The events of each text, by name; `*N` stands for so many of the kind.
const EXPECTED: &[(&str, &str)] = &[
    ("c-amdgpu-boot-ok", ""),
    (
        "c-amdgpu-firmware-missing",
        "FirmwareFailed FirmwareFailed InitFatal ProbeFailed",
    ),
    (
        "c-amdgpu-mes-fail",
        "MesFailed RingTimeout ResetBegin ResetFailed",
    ),
    ("c-amdgpu-pagefault", "PageFault"),
    (
        "c-amdgpu-ras-ue",
        "RasUncorrectable RasUncorrectable ResetBegin",
    ),
    (
        "c-amdgpu-ring-timeout-reset-ok",
        "RingTimeout ResetBegin ResetSucceeded VramLost",
    ),
    ("c-api-mismatch", "ApiMismatch"),
    ("c-api-mismatch-new-format", "ApiMismatch"),
    ("c-api-mismatch-syslog012", "ApiMismatch"),
    (
        "c-bar0-not-assigned",
        "BarInvalid ProbeFailed BarUnassigned",
    ),
    ("c-clean-no-gpu-lines", ""),
    ("c-i915-hang", "GpuHang"),
    ("c-kfd-no-atomics", "AtomicsMissing"),
    ("c-nouveau-conflict", "ProbeNotCalled NoneInitialized"),
    ("c-open-module-unsupported", "NeedsProprietaryModule"),
    ("c-pcie-aer-bwlimit", "PcieBandwidth PcieError"),
    (
        "c-rminit-gsp-firmware-missing",
        "FirmwareFailed GspFirmwareMissing InitFailed",
    ),
    (
        "c-secureboot-key-rejected",
        "ModuleRejected ModuleRejected ModuleUnverified",
    ),
    ("c-sxid-nvswitch", "Sxid Sxid"),
    (
        "c-unsupported-gpu-legacy",
        "NotSupportedByRelease ProbeFailed",
    ),
    ("c-xe-wedged", "EngineReset Wedged"),
    ("c-xid-unknown-99999", "Xid"),
    ("c-xid13-14-legacy-format", "Xid"),
    ("c-xid149-154-fabric", "Xid Xid"),
    ("c-xid31-app-fault", "Xid"),
    ("c-xid43-45-kill", "Xid Xid"),
    ("c-xid48-63-94-ecc", "Xid Xid Xid"),
    ("c-xid64-95-remap-failure", "Xid Xid"),
    ("c-xid74-nvlink", "Xid"),
    ("c-xid79-fallen-off-bus", "Xid FellOffBus"),
    ("gpud-kmsg-nvswitch", ""),
    ("gpud-peermem", "PeermemInvalidContext*7"),
    ("gpud-pstore-2", ""),
    ("gpud-xid119", "Xid*3 GspTimeout Xid*2"),
    ("gpud-xid13", "Xid*17 OutOfMemory OutOfMemory"),
];

fn expected(name: &str) -> Vec<String> {
    let (_, kinds) = EXPECTED
        .iter()
        .find(|(text, _)| *text == name)
        .unwrap_or_else(|| panic!("{name}: nobody wrote down what is in it"));
    kinds
        .split_whitespace()
        .flat_map(|kind| {
            let (kind, times) = kind.split_once('*').unwrap_or((kind, "1"));
            vec![kind.to_owned(); times.parse().expect("a number")]
        })
        .collect()
}

#[derive(Deserialize)]
struct Index {
    log: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    file: String,
    kind: String,
    #[serde(default)]
    xids: Vec<u32>,
    xid_lines: Option<usize>,
    #[serde(default)]
    sxids: Vec<u32>,
    amdgpu_gpu_reset: Option<bool>,
    client_version: Option<String>,
    module_version: Option<String>,
}

/// What the index says of a text.
fn compare(text: &Text, events: &[Event]) {
    let numbers = |of: fn(&Kind) -> Option<u32>| {
        let mut numbers: Vec<u32> = events.iter().filter_map(|event| of(&event.kind)).collect();
        let lines = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        (numbers, lines)
    };
    let file = &text.file;
    let (xids, lines) = numbers(|kind| match kind {
        Kind::Xid { number, .. } => Some(*number),
        _ => None,
    });
    assert_eq!(xids, text.xids, "{file}");
    assert_eq!(lines, text.xid_lines.unwrap_or(0), "{file}");
    let (sxids, _) = numbers(|kind| match kind {
        Kind::Sxid { number, .. } => Some(*number),
        _ => None,
    });
    assert_eq!(sxids, text.sxids, "{file}");
    let reset = events.iter().any(|event| event.kind == Kind::ResetBegin);
    assert_eq!(reset, text.amdgpu_gpu_reset.unwrap_or(false), "{file}");
    let versions = events.iter().find_map(|event| match &event.kind {
        Kind::ApiMismatch { client, module, .. } => Some((client.clone(), module.clone())),
        _ => None,
    });
    let known = text.client_version.clone().zip(text.module_version.clone());
    assert_eq!(versions, known, "{file}");
}

#[test]
fn texts_of_the_shared_material() {
    let Some(folder) = program::shared("fixtures").map(|folder| folder.join("logs")) else {
        return;
    };
    let index = fs::read_to_string(folder.join("index.toml")).expect("the index");
    let index: Index = toml::from_str(&index).expect("the index");
    let texts: Vec<&Text> = index
        .log
        .iter()
        .filter(|text| text.kind == "kernel")
        .collect();
    assert_eq!(texts.len(), EXPECTED.len());
    for text in texts {
        let content = fs::read_to_string(folder.join(&text.file)).expect(&text.file);
        let name = text
            .file
            .trim_start_matches("kernel/")
            .trim_end_matches(".txt");
        // As a recording holds it.
        let recorded = read(recording("kmsg", &content));
        let events = log::events(&recorded.lines);
        assert_eq!(names(&events), expected(name), "{name}");
        assert!(events.iter().all(|event| event.current), "{name}");
        compare(text, &events);
        comes_back_the_same(recording("kmsg", &content));
        // As a file of a folder holds it, behind another boot.
        let before = "[    0.000000] Linux version 6.1.0\n[    9.000000] NVRM: Xid (PCI:0000:0a:00): 79, lost\n";
        let root = Folder::new();
        let banner = "[    0.000000] Linux version 6.8.0 (builder@host)\n";
        root.write("var/log/kern.log", format!("{before}{banner}{content}"));
        let file = comes_back_the_same(Root::open(&root.path("")).expect("a folder"));
        let file = file.into_got().expect(name);
        assert_eq!(file.source, "file /var/log/kern.log", "{name}");
        assert!(file.from_boot, "{name}");
        assert_eq!(names(&log::events(&file.lines)), expected(name), "{name}");
    }
}

/// The same event in the words of older and newer kernels and drivers.
#[test]
fn other_releases_say_it_in_other_words() {
    for (text, kind) in [
        (
            "amdgpu 0000:03:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE",
            "MesFailed",
        ),
        (
            "amdgpu 0000:03:00.0: amdgpu: MES(1) failed to respond to msg=REMOVE_QUEUE",
            "MesFailed",
        ),
        (
            "amdgpu 0000:03:00.0: amdgpu: MES(0) ring buffer is full.",
            "MesFailed",
        ),
        (
            "NVRM: GPU at 0000:01:00.0 has fallen off the bus.",
            "FellOffBus",
        ),
        (
            "NVRM: GPU at 0000:01:00.0 does not have the necessary power cables connected.",
            "PowerCableMissing",
        ),
        ("PM: hibernation entry", "SuspendEntry"),
        ("PM: hibernation: hibernation exit", "SuspendExit"),
        (
            "pci 0000:01:00.0: BAR 6: failed to assign [mem size 0x00080000 pref]",
            "BarUnassigned { bar: 6, of_virtual_function: false, of_memory: true }",
        ),
        (
            "pci 0000:01:00.0: BAR 4 [io  size 0x0080]: failed to assign",
            "BarUnassigned { bar: 4, of_virtual_function: false, of_memory: false }",
        ),
        (
            "amdgpu 0000:01:00.0: BAR 0: assigned [mem 0x4000000000-0x43ffffffff 64bit pref]",
            "BarAssigned { bar: 0 }",
        ),
        (
            "pci 0000:01:00.0: BAR 2 [mem 0xd0000000-0xd01fffff 64bit pref]: assigned",
            "BarAssigned { bar: 2 }",
        ),
    ] {
        let log = read(recording("journal", &format!("[    1.000001] {text}\n")));
        let events = log::events(&log.lines);
        let kinds: Vec<String> = events
            .iter()
            .map(|event| format!("{:?}", event.kind))
            .collect();
        assert_eq!(kinds, [kind], "{text}");
    }
    let of_a_virtual_function =
        "[    1.000001] pci 0000:01:00.0: VF BAR 0 [mem 0xd0000000-0xd01fffff 64bit]: assigned\n";
    let log = read(recording("journal", of_a_virtual_function));
    assert!(log::events(&log.lines).is_empty());
}

#[test]
fn events_tell_what_the_line_tells() {
    let text = "\
[    1.0] no stamp
[    4.000001] NVRM: Xid (PCI:0000:3B:00 GPU-I:05): 94, pid=7194, name=python, Contained: CE User Channel (0x9). RST: No
[    5.000001] NVRM: Xid (PCI:10000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[    6.000001] NVRM: GPU 0000:06:00.0: RmInitAdapter failed! (0x61:0x56:1697)
[    7.000001] kfd kfd: amdgpu: skipped device 1002:7341, PCI rejects atomics 123<145
[    7.100001] kfd kfd: amdgpu: TAHITI  not supported in kfd
[    8.000001] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, but soft recovered
[    8.500001] amdgpu 0000:0b:00.0: 1048560 uncorrectable hardware errors detected in umc block
[    8.600001] amdgpu 0000:0b:00.0: amdgpu: no uncorrectable hardware errors detected in gfx block
[    8.700001] amdgpu 0000:0b:00.0: amdgpu: 0 uncorrectable hardware errors detected in gfx block
[    8.800001] amdgpu 0000:0b:00.0: amdgpu: 4 correctable hardware errors detected in gfx block
[    9.000001] pcieport 0000:c0:01.1: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)
[    9.100001] pcieport 0000:00:01.0: pciehp: Slot(1): Link Down/Up ignored
[    9.200001] pci 0000:01:00.0: BAR 1 [mem size 0x400000000 64bit pref]: can't assign; no space
[    9.300001] pci 0006:03:00.0: VF BAR 0 [mem size 0x02000000 64bit pref]: can't assign; no space
[    9.400001] nvidia: loading of module with unavailable key is rejected
[    9.500001] nvidia: disagrees about version of symbol module_layout
[    9.600001] Memory cgroup out of memory: Killed process 863987 (python3) total-vm:1kB
[    9.700001] pci 0000:01:00.0: 32.000 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at 0000:00:1c.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)
[    9.800001] NVRM: The NVIDIA GeForce GTX 1050 GPU installed in this system is
               NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please
               NVRM:  visit the download page
[    9.900001] NVRM: GPU 0000:3b:00.0 is already bound to nouveau.
[    9.950001] amdgpu: unknown parameter 'gpu_recover' ignored
";
    let log = read(recording("journal", text));
    let events = log::events(&log.lines);
    let kinds: Vec<&Kind> = events.iter().map(|event| &event.kind).collect();
    assert_eq!(
        kinds,
        [
            &Kind::Xid {
                number: 94,
                pid: Some(7194),
                process: Some("python".to_owned()),
                text: "Contained: CE User Channel (0x9). RST: No".to_owned(),
            },
            &Kind::Xid {
                number: 79,
                pid: None,
                process: None,
                text: "GPU has fallen off the bus.".to_owned(),
            },
            &Kind::InitFailed {
                code: "0x61:0x56:1697".to_owned()
            },
            &Kind::AtomicsMissing {
                id: Some((0x1002, 0x7341)),
                firmware: Some((123, 145)),
            },
            &Kind::NotSupportedInKfd {
                chip: "TAHITI".to_owned()
            },
            &Kind::RingTimeout {
                ring: "gfx".to_owned(),
                soft_recovered: true,
            },
            &Kind::RasUncorrectable {
                count: Some(1_048_560),
                block: "umc".to_owned(),
            },
            &Kind::PcieError {
                uncorrected: true,
                fatal: true,
            },
            &Kind::BarUnassigned {
                bar: 1,
                of_virtual_function: false,
                of_memory: true,
            },
            &Kind::BarUnassigned {
                bar: 0,
                of_virtual_function: true,
                of_memory: true,
            },
            &Kind::ModuleRejected {
                module: Some("nvidia".to_owned()),
                why: "module with unavailable key".to_owned(),
            },
            &Kind::ModuleOfOtherKernel {
                module: "nvidia".to_owned(),
                differs: "module_layout".to_owned(),
            },
            &Kind::OutOfMemory {
                pid: Some(863_987),
                process: "python3".to_owned(),
            },
            &Kind::PcieBandwidth {
                link: "8.0 GT/s PCIe x4".to_owned(),
                at: "0000:00:1c.0".to_owned(),
            },
            &Kind::NeedsLegacyDriver {
                branch: "580.xx".to_owned()
            },
            &Kind::BoundElsewhere {
                driver: "nouveau".to_owned()
            },
            &Kind::UnknownParameter {
                module: "amdgpu".to_owned(),
                parameter: "gpu_recover".to_owned(),
            },
        ]
    );
    assert_eq!(events[0].addresses, ["0000:3b:00.0"]);
    assert_eq!(events[1].addresses, ["10000:01:00.0"]);
    assert_eq!(events[2].addresses, ["0000:06:00.0"]);
    assert!(events[3].addresses.is_empty());
    assert_eq!(events[13].addresses, ["0000:01:00.0", "0000:00:1c.0"]);
    assert_eq!(events[2].line.at_us, Some(6_000_001));
}

/// Numbers of the Xids that are of the present load.
fn current_xids(lines: &str) -> Vec<u32> {
    let log = read(recording("journal", lines));
    let events = log::events(&log.lines);
    events
        .iter()
        .filter(|event| event.current)
        .filter_map(|event| match event.kind {
            Kind::Xid { number, .. } => Some(number),
            Kind::LostAtProbe => Some(1),
            _ => None,
        })
        .collect()
}

#[test]
fn what_was_before_the_last_load_is_old() {
    let nvlink = "[    4.1] x\n[   10.000000] nvidia-nvlink: Nvlink Core is being initialized, major device number 511\n";
    let loading =
        "[   11.000000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.126.09\n";
    let taints = "[   10.000000] nvidia: loading out-of-tree module taints kernel.\n";
    let xid = |number: u32| format!("[   20.000000] NVRM: Xid (PCI:0000:01:00): {number}, x\n");
    let lost = "[    9.000001] NVRM: The NVIDIA GPU 0000:b3:00.0\n               NVRM: (PCI ID: 10de:26b5) installed in this system has\n               NVRM: fallen off the bus and is not responding to commands.\n";
    let none: [u32; 0] = [];
    assert_eq!(current_xids(&format!("{}{loading}", xid(79))), none);
    assert_eq!(current_xids(&format!("{loading}{}", xid(79))), [79]);
    assert_eq!(
        current_xids(&format!("{}{nvlink}{loading}{}", xid(79), xid(13))),
        [13]
    );
    // What is said while the module looks at its GPUs stands before `loading`.
    assert_eq!(current_xids(&format!("{nvlink}{lost}{loading}")), [1]);
    assert_eq!(current_xids(&format!("{taints}{lost}{loading}")), [1]);
    assert_eq!(
        current_xids(&format!("{taints}{nvlink}{lost}{loading}")),
        [1]
    );
    // Two loads, the last without a GPU, so that it does not say `loading`.
    assert_eq!(
        current_xids(&format!("{nvlink}{loading}{}{nvlink}{lost}", xid(79))),
        [1]
    );
    assert_eq!(
        current_xids(&format!("{nvlink}{lost}{nvlink}{loading}")),
        none
    );
    // The mark of another module.
    let other = "[   30.000000] vboxdrv: loading out-of-tree module taints kernel.\n";
    assert_eq!(current_xids(&format!("{loading}{}{other}", xid(79))), [79]);
    let amd = "[    3.0] x\n[    1.000000] amdgpu 0000:03:00.0: amdgpu: device lost from bus!\n[    2.000000] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=1\n[    3.000000] [drm] amdgpu kernel modesetting enabled.\n[    4.000000] [drm] VRAM is lost due to GPU reset!\n";
    let log = read(recording("kmsg", amd));
    let events = log::events(&log.lines);
    let current: Vec<bool> = events.iter().map(|event| event.current).collect();
    assert_eq!(current, [false, false, true]);
}

#[test]
fn messages_that_a_log_daemon_has_cut_are_one() {
    let text = "\
[    9.000001] NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2c31)
[    9.000001] NVRM: installed in this system requires use of the NVIDIA open kernel modules.
[    9.000002] NVRM: GPU 0000:02:00.0: RmInitAdapter failed! (0x22:0x56:1017)
[   12.000001] NVRM: API mismatch: the client has the version 570.211.01, but
[   12.000001] NVRM: this kernel module has the version 570.195.03.  Please
[   12.000001] NVRM: make sure that this kernel module and all NVIDIA driver
[   12.000001] NVRM: components have the same version.
[   13.000001] NVRM: Xid (PCI:0000:02:00): 13, x
";
    let log = read(recording("kmsg", text));
    let events = log::events(&log.lines);
    let names = names(&events);
    assert_eq!(
        names,
        ["NeedsOpenModule", "InitFailed", "ApiMismatch", "Xid"]
    );
    assert_eq!(events[0].addresses, ["0000:02:00.0"]);
}

#[test]
fn the_beginning_of_the_boot_is_known_by_its_banner() {
    let line = "[    4.000000] NVRM: No NVIDIA GPU found.\n";
    let banner = "[    0.000000] Linux version 6.8.0 (builder@host)\n";
    let log = read(recording("journal", line));
    assert!(!log.from_boot);
    let log = read(recording("journal", &format!("{banner}{line}")));
    assert!(log.from_boot);
    assert_eq!(log.lines.len(), 2);
    comes_back_the_same(recording("journal", &format!("{banner}{line}")));
    // On ARM another line comes first.
    let arm = "[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x413fd0c1]\n";
    assert!(read(recording("kmsg", &format!("{arm}{banner}{line}"))).from_boot);
}

#[test]
fn a_log_that_may_not_be_read_is_unknown() {
    let refused = recording("none EPERM", "");
    assert_eq!(
        comes_back_the_same(refused),
        Seen::Failed(Failure::errno("EPERM"))
    );
    let nothing = Archive::new(Entries::parse("gpucheck-machine 1\n").expect("a machine"));
    assert_eq!(
        comes_back_the_same(nothing),
        Seen::Unasked(Why::NotCaptured)
    );
    let root = Folder::new();
    root.folder("usr/lib");
    let root = Root::open(&root.path("")).expect("a folder");
    assert_eq!(comes_back_the_same(root), Seen::Unasked(Why::NotCaptured));
}

#[test]
fn files_of_a_folder() {
    let text = "\
Jun 29 11:07:05 somehost kernel: [    0.000000] Linux version 6.8.0
Jun 29 11:07:05 somehost kernel: [    5.000000] NVRM: Xid (PCI:0000:01:00): 79, x
Jun 30 11:07:05 somehost kernel: [    0.000000] Linux version 6.8.1
Jun 30 11:07:05 somehost sshd[12]: NVRM: Xid (PCI:0000:01:00): 79, from elsewhere
Jun 30 11:07:05 somehost kernel: [    5.000000] NVRM: Xid (PCI:0000:01:00): 31, x
";
    let root = Folder::new();
    root.write("var/log/kern.log", text);
    let open = || Root::open(&root.path("")).expect("a folder");
    let log = comes_back_the_same(open()).into_got().expect("a log");
    assert_eq!(log.source, "file /var/log/kern.log");
    assert!(log.from_boot);
    assert_eq!(log.lines.len(), 2);
    assert_eq!(log.lines[1].at_us, Some(5_000_000));
    assert_eq!(log.lines[1].text, "NVRM: Xid (PCI:0000:01:00): 31, x");
    // Without stamps and without the banner nobody knows which lines are of this boot.
    root.write(
        "var/log/kern.log",
        "2025-06-30T11:07:05.1+00:00 somehost kernel: NVRM: Xid (PCI:0000:01:00): 31, x\n",
    );
    let unknown = comes_back_the_same(open());
    assert!(matches!(unknown, Seen::Failed(_)), "{unknown:?}");
    // Stamps that begin anew show a boot, too; a file that is no file is no log.
    let root = Folder::new();
    let open = || Root::open(&root.path("")).expect("a folder");
    root.fifo("var/log/kern.log");
    root.write(
        "var/log/dmesg",
        "Jun 29 11:07:05 h kernel: [  500.000000] NVRM: Xid (PCI:0000:01:00): 79, x\nJun 30 11:07:05 h kernel: [    5.000000] NVRM: Xid (PCI:0000:01:00): 31, x\n",
    );
    let log = comes_back_the_same(open()).into_got().expect("a log");
    assert_eq!(log.lines.len(), 1);
    assert!(!log.from_boot);
    assert_eq!(
        log.tried.get("/var/log/kern.log").map(String::as_str),
        Some("not a regular file")
    );
    // Anybody can write there in the name of the kernel.
    for name in ["messages", "syslog"] {
        let root = Folder::new();
        root.write(&format!("var/log/{name}"), text);
        let root = Root::open(&root.path("")).expect("a folder");
        assert_eq!(comes_back_the_same(root), Seen::Unasked(Why::NotCaptured));
    }
}

#[test]
fn a_flood_is_cut_in_the_middle() {
    let mut text = "[    0.000000] Linux version 6.8.0\n".to_owned();
    for at in 0..100_000 {
        text += &format!(
            "[{:5}.{:06}] NVRM: Xid (PCI:0000:01:00): 13, number {at}\n",
            at / 10,
            at % 10
        );
    }
    let log = comes_back_the_same(recording("kmsg", &text))
        .into_got()
        .expect("a log");
    assert!(log.lines.len() <= 4000);
    assert!(!log.from_boot);
    assert!(log.lines[0].text.ends_with("number 0"));
    assert!(
        log.lines[log.lines.len() - 1]
            .text
            .ends_with("number 99999")
    );
    let left_out = log
        .lines
        .iter()
        .filter(|line| line.text.ends_with(" lines left out)"));
    assert_eq!(left_out.count(), 1);
    let bytes: usize = log.lines.iter().map(|line| line.text.len()).sum();
    assert!(bytes <= 512 * 1024 + 100);
}

#[test]
fn hostile_files_cost_little() {
    let root = Folder::new();
    let open = || Root::open(&root.path("")).expect("a folder");
    let begun = Instant::now();
    // Longer than what is read, and one line of 10 MB.
    let file = fs::File::create(root.write("var/log/kern.log", "x")).expect("a file");
    file.set_len(100 << 20).expect("a hole");
    assert!(matches!(comes_back_the_same(open()), Seen::Failed(_)));
    let mut long = b"[    0.000000] Linux version 6\n[    1.000000] NVRM: ".to_vec();
    long.resize(10 << 20, b'x');
    long.extend_from_slice(b"\n[    2.000000] NVRM: Xid (PCI:0000:01:00): 13, after\n");
    root.write("var/log/kern.log", &long);
    let log = comes_back_the_same(open()).into_got().expect("a log");
    assert!(!log.from_boot);
    assert_eq!(log.lines.len(), 1);
    // Bytes of every kind, cut records, escapes.
    let mut odd =
        b"[    0.000000] Linux version 6\n[    1.000000] NVRM: \xff\xfe\x1b[31m red \x00\x07\n"
            .to_vec();
    odd.extend_from_slice(b"6,1,2\n6,1,x,-;y\n6,99999999999999999999,1,-;y\n6,1,2000000,-;NVRM: a\\x0aNVRM: b\\x1b[0m\\xff\\x\\xz\n SUBSYSTEM=pci\n");
    odd.extend_from_slice(b"[99999999999999.000000] NVRM: late\n[   .5] NVRM: x\n[] NVRM: y\n<6\n<>\nkern\nkern:\nkern  :\n\n \n\t\n");
    odd.extend_from_slice("[    3.000000] NVRM: Xid (PCI:0000:01:00): é\u{202e}, ü\n".as_bytes());
    odd.extend_from_slice(b"[    4.000000] NVRM: Xid (");
    root.write("var/log/kern.log", &odd);
    let log = comes_back_the_same(open()).into_got().expect("a log");
    let events = log::events(&log.lines);
    assert!(events.is_empty(), "{events:?}");
    let record = log.lines.iter().find(|line| line.at_us == Some(2_000_000));
    assert_eq!(
        record.map(|line| line.text.as_str()),
        Some("NVRM: a\nNVRM: b\u{1b}[0m\u{fffd}\\x\\xz")
    );
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn every_cut_of_a_log_is_read() {
    let text = "6,1,2000000,-;NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=x, GPU\n SUBSYSTEM=pci\n[Sun Feb 23 16:24:18 2025] NVRM: API mismatch: the client 'é' (pid 7)\n   has the version 1, but\nkern  :warn  : 2025-01-21T04:41:44,283302+00:00 NVRM: x\nJun 30 11:07:05 host kernel: [   12.345678] amdgpu 0000:03:00.0: ring gfx timeout, signaled seq=1";
    for (cut, _) in text.char_indices() {
        for text in [&text[..cut], &text[cut..]] {
            let log = comes_back_the_same(recording("kmsg", text))
                .into_got()
                .expect("a log");
            let _ = log::events(&log.lines);
        }
    }
}

#[test]
fn private_values_do_not_enter() {
    let text = "\
Jun 30 11:07:05 secrethost kernel: [    0.000000] Linux version 6.8.0 (builder@secrethost)
Jun 30 11:07:05 secrethost kernel: [    5.000000] NVRM: GPU at PCI:0000:9b:00: GPU-12345678-1234-1234-1234-123456789abc
Jun 30 11:07:05 secrethost kernel: [    6.000000] NVRM: GPU Board Serial Number: 1320921000123
Jun 30 11:07:05 secrethost kernel: [    7.000000] NVRM: GPU 0000:9b:00.0: GPU serial number is 1320921000123.
Jun 30 11:07:05 secrethost kernel: [    8.000000] Memory cgroup out of memory: Killed process 1 (/home/alice/a)
";
    let root = Folder::new();
    root.write("var/log/kern.log", text);
    let source = Root::open(&root.path("")).expect("a folder");
    let redactor = Redactor::on(7, Private::of(&source));
    let host = Host::new(Box::new(source), redactor, Options::default()).recording();
    let log = kernel_log(&host).into_got().expect("a log");
    let entries = host.take_entries();
    let everything = format!("{log:?} {entries:?}");
    for secret in ["secrethost", "12345678-1234", "1320921000123", "alice"] {
        assert!(!everything.contains(secret), "{secret} in {everything}");
    }
    assert!(
        everything.contains("serial number is SERIAL-"),
        "{everything}"
    );
    assert_eq!(replayed(entries), Seen::Got(log));
}

#[test]
fn the_log_of_this_machine() {
    let begun = Instant::now();
    let live = Live::new();
    let redactor = Redactor::on(salt(&live), Private::of(&live));
    let host = Host::new(Box::new(live), redactor, Options::default()).recording();
    let log = kernel_log(&host);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(replayed(host.take_entries()), log);
    match &log {
        Seen::Got(log) => assert!(!log.source.is_empty()),
        other => skipped(&format!("the kernel log of this machine: {}", other.why())),
    }
    // Whoever may read the kernel's buffer gets its messages.
    let all = Host::new(Box::new(Live::new()), Redactor::off(), Options::default());
    if let Seen::Got(log) = all.kernel_log(&|_| true)
        && log.source == "kmsg"
    {
        assert!(log.lines.iter().any(|line| line.at_us.is_some()), "{log:?}");
        assert!(log.tried.is_empty() || !log.from_boot, "{:?}", log.tried);
    }
}
