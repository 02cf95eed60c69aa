//! Machines that are broken or made to break the program: odd files, endless ones, very many, names that steer a terminal,
//! links that lead out, recordings that are cut or wrong. Nothing of it may crash or hang the program, take much memory, or
//! be passed on as it is.

use crate::common::{
    Folder, GPU, Ran, differences, gpu, gpucheck, have, machines, nvidia_tree, nvidia_tree_in,
    plain, root, run, skipped,
};
use gpucheck::facts::Facts;
use gpucheck::host::archive::Archive;
use gpucheck::host::machine::Entries;
use gpucheck::host::redact::Redactor;
use gpucheck::host::{Host, Options};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Files that are read of a machine with an NVIDIA GPU.
const FILES: &[&str] = &[
    "etc/os-release",
    "etc/passwd",
    "etc/group",
    "etc/nsswitch.conf",
    "etc/modprobe.d/x.conf",
    "etc/ld.so.conf.d/x.conf",
    "etc/vulkan/icd.d/x.json",
    "etc/OpenCL/vendors/x.icd",
    "lib/modules/6.8.0-49-generic/modules.dep",
    "lib/modules/6.8.0-49-generic/modules.builtin",
    "lib/modules/6.8.0-49-generic/updates/dkms/nvidia.ko",
    "lib/modules/6.8.0-49-generic/updates/dkms/nvidia.ko.zst",
    "lib/modules/6.8.0-49-generic/updates/dkms/nvidia.ko.xz",
    "proc/1/cgroup",
    "proc/cmdline",
    "proc/cpuinfo",
    "proc/devices",
    "proc/driver/nvidia/params",
    "proc/driver/nvidia/version",
    "proc/driver/nvidia/gpus/0000:01:00.0/information",
    "proc/meminfo",
    "proc/modules",
    "proc/self/mountinfo",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/tainted",
    "proc/uptime",
    "run/systemd/container",
    "sys/bus/pci/devices/0000:01:00.0/class",
    "sys/bus/pci/devices/0000:01:00.0/config",
    "sys/bus/pci/devices/0000:01:00.0/current_link_width",
    "sys/bus/pci/devices/0000:01:00.0/power/runtime_status",
    "sys/bus/pci/devices/0000:01:00.0/revision",
    "sys/bus/pci/devices/0000:01:00.0/uevent",
    "sys/bus/pci/devices/0000:01:00.0/vendor",
    "sys/class/dmi/id/product_name",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/drm/renderD128/uevent",
    "sys/class/kfd/kfd/topology/nodes/0/properties",
    "sys/kernel/security/lockdown",
    "sys/module/nvidia/version",
    "usr/share/misc/pci.ids",
    "usr/lib/x86_64-linux-gnu/libcuda.so.1",
];

/// Runs over a folder: the report in both forms, and a capture that can be replayed.
fn all_ways(folder: &Folder, what: &str) -> Vec<Ran> {
    let root = folder.0.to_str().expect("UTF-8");
    let mut runs = Vec::new();
    for arguments in [
        &["--root", root, "--format", "json", "--facts"][..],
        &["--root", root, "-v", "--color", "never"],
        &["capture", "--root", root],
    ] {
        let what = format!("{what} {arguments:?}");
        // Other tests run at the same time: a source gets more time than usual, and `modest` says how long all may take.
        let mut command = gpucheck();
        command.args(arguments).args(["--timeout", "25"]);
        runs.push(run(&mut command).good(&what).modest(&what));
    }
    let recorded = Folder::new();
    let recorded = (recorded.write("machine.txt", &runs[2].stdout), recorded);
    let replay = ["--replay".as_ref(), recorded.0.as_os_str()];
    runs.push(
        run(gpucheck()
            .args(replay)
            .args(["--format", "json", "--facts"]))
        .good(what)
        .modest(what),
    );
    let (seen, again) = (&runs[0].json(), &runs[3].json());
    for part in ["facts", "findings", "readiness", "gpus", "untold"] {
        let found = differences(&seen[part], &again[part]);
        assert!(
            found.is_empty(),
            "{what}: {part} of the replay:\n{}",
            found.join("\n")
        );
    }
    runs
}

/// A tree in which each of the files is what `make` puts there.
fn odd_tree(make: impl Fn(&Folder, &str)) -> Folder {
    let folder = nvidia_tree();
    for file in FILES {
        let path = folder.path(file);
        let _ = fs::remove_file(&path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        make(&folder, file);
    }
    folder
}

fn gpus(report: &Value) -> usize {
    report["gpus"].as_array().expect("a list").len()
}

/// Puts something odd into a tree, at this path.
type Plant = fn(&Folder, &str);

#[test]
fn what_is_no_regular_file_is_not_read() {
    let kinds: [(&str, Plant); 7] = [
        ("FIFO", |folder, file| folder.fifo(file)),
        ("folder", |folder, file| {
            fs::create_dir(folder.path(file)).expect("a folder");
        }),
        ("link to itself", |folder, file| {
            let name = Path::new(file).file_name().expect("a name");
            symlink(name, folder.path(file)).expect("a link");
        }),
        ("link to a FIFO", |folder, file| {
            if !folder.path("fifo").exists() {
                folder.fifo("fifo");
            }
            symlink("/fifo", folder.path(file)).expect("a link");
        }),
        ("link to /dev/zero outside", |folder, file| {
            let up = "../".repeat(40) + "dev/zero";
            symlink(up, folder.path(file)).expect("a link");
        }),
        ("link to nothing", |folder, file| {
            symlink("/no/such/file", folder.path(file)).expect("a link");
        }),
        ("socket", |folder, file| {
            // Longer paths than a socket takes: the file is moved to its place.
            let socket =
                std::env::temp_dir().join(format!("gpucheck-it-{}.sock", std::process::id()));
            if !folder.path("socket").exists() {
                let bound = std::os::unix::net::UnixListener::bind(&socket);
                drop(bound.expect("a socket"));
                Command::new("mv")
                    .arg(&socket)
                    .arg(folder.path("socket"))
                    .status()
                    .expect("mv");
            }
            fs::hard_link(folder.path("socket"), folder.path(file)).expect("a link");
        }),
    ];
    for (kind, make) in kinds {
        let folder = odd_tree(make);
        let report = all_ways(&folder, kind)[0].json();
        // No ids, no driver: but a GPU that cannot be read is not an empty bus.
        let none_for_sure = gpus(&report) == 0 && report["gpus_whole"] == true;
        assert!(!none_for_sure, "{kind}: {report:#}");
    }
}

#[test]
fn devices_in_place_of_files_are_not_read() {
    if !root() || !have(&["mknod"]) {
        return;
    }
    let trial = Folder::new();
    let node = trial.path("zero");
    let made = Command::new("mknod")
        .arg(&node)
        .args(["c", "1", "5"])
        .output();
    if !made.expect("mknod").status.success() {
        return skipped("device nodes cannot be made here");
    }
    let folder = odd_tree(|folder, file| {
        fs::hard_link(&node, folder.path(file)).expect("a node");
    });
    all_ways(&folder, "device");
}

#[test]
fn endless_and_long_files_end_in_a_limit() {
    let folder = odd_tree(|folder, file| {
        let file = fs::File::create(folder.path(file)).expect("a file");
        file.set_len(1 << 40).expect("a file with a hole");
    });
    all_ways(&folder, "a hole of 1 TB");
    let text = "options nvidia NVreg_X=1\n".repeat(4_000_000);
    let folder = nvidia_tree();
    for name in ["etc/modprobe.d/long.conf", "proc/modules", "proc/cmdline"] {
        folder.write(name, &text);
    }
    folder.write("etc/group", &text[..4_000_000]);
    all_ways(&folder, "100 MB of text");
    let folder = odd_tree(|folder, file| {
        folder.write(file, "x".repeat(300_000));
    });
    all_ways(&folder, "one long line");
}

#[test]
fn bytes_that_are_no_text() {
    for bytes in [
        &b"\xff\xfe\x00\x80=\xc3\x28\n\xf0\x28\x8c\xbc\x00"[..],
        b"\x00\x00\x00\n\x00",
        b"=\n==\n:\n::::::\n\"\n'\n[\n{\n-1\n99999999999999999999999\n0x\n",
        b"\n\n\n",
        b"",
        b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff",
        b"\xfd7zXZ\x00\x00\x04\xff\xff",
        b"\x7fELF\x02\x01\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let folder = odd_tree(|folder, file| {
            folder.write(file, bytes);
        });
        all_ways(&folder, &format!("{:?}", String::from_utf8_lossy(bytes)));
    }
}

/// Nothing that steers a terminal, and no mark of direction.
fn assert_plain(bytes: &[u8], what: &str) {
    let text = String::from_utf8(bytes.to_vec()).expect(what);
    let odd = text.chars().find(|character| {
        (character.is_control() && *character != '\n')
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}')
    });
    if let Some(odd) = odd {
        let line = text.lines().find(|line| line.contains(odd));
        panic!("{what}: {odd:?} in {line:?}");
    }
}

/// The same for a machine. The text of a file stands there as it is, but for control characters.
fn assert_plain_capture(capture: &Ran) {
    for line in capture.text().lines() {
        if line.starts_with("| ") {
            assert!(
                !line.chars().any(|c| c.is_control() && c != '\t'),
                "{line:?}"
            );
        } else {
            assert_plain(line.as_bytes(), "capture");
        }
    }
}

const ESCAPE: &str =
    "\u{1b}[31mRED\u{1b}]0;title\u{7}\u{9b}2J\r\u{8}\u{202e}evil\u{2066}\u{200b}\t\u{7f}";

#[test]
fn nothing_steers_the_terminal() {
    let folder = nvidia_tree();
    for file in FILES {
        if folder.path(file).exists() || file.ends_with("uevent") || file.ends_with("vendor") {
            continue;
        }
        folder.write(file, format!("{ESCAPE}: {ESCAPE}\n{ESCAPE}={ESCAPE}\n"));
    }
    folder.write(
        "etc/os-release",
        format!("ID=ubuntu\nPRETTY_NAME=\"{ESCAPE}\"\nNAME=\"{ESCAPE}\"\nVERSION_ID=\"{ESCAPE}\"\nVARIANT_ID={ESCAPE}\n"),
    );
    folder.write("proc/sys/kernel/osrelease", format!("6.8.0{ESCAPE}\n"));
    folder.write(
        "proc/driver/nvidia/version",
        format!("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550{ESCAPE}  Fri\n"),
    );
    folder.write("sys/module/nvidia/version", format!("550.1{ESCAPE}\n"));
    folder.write(
        "proc/cmdline",
        format!("nomodeset nouveau.modeset={ESCAPE} modprobe.blacklist=nvidia,{ESCAPE}\n"),
    );
    folder.write("proc/modules", format!("nvidia{ESCAPE} 1 0 - Live 0x0\n"));
    folder.write(
        "etc/modprobe.d/y.conf",
        format!(
            "blacklist nvidia # {ESCAPE}\ninstall nvidia /bin/{ESCAPE}\noptions nvidia {ESCAPE}\n"
        ),
    );
    folder.write(
        &format!("proc/driver/nvidia/gpus/{GPU}/information"),
        format!("Model: \t\t {ESCAPE}\nGPU UUID: \t {ESCAPE}\n"),
    );
    folder.write(
        &format!("sys/bus/pci/devices/{GPU}/class"),
        format!("0x030000{ESCAPE}\n"),
    );
    folder.write(
        &format!("sys/bus/pci/devices/{GPU}/power/runtime_status"),
        ESCAPE,
    );
    // Names with escapes and with line ends.
    let odd = OsStr::new("x\u{1b}[31m\nabsent /sys\n\u{9b}.conf");
    for place in [
        "sys/bus/pci/devices",
        "sys/module",
        "sys/class/drm",
        "sys/class/kfd/kfd/topology/nodes",
        "dev/dri",
        "lib/modules",
        "etc/modprobe.d",
        "etc/vulkan/icd.d",
        "etc/OpenCL/vendors",
        "proc/driver/nvidia/gpus",
        "usr/lib/x86_64-linux-gnu",
        "usr/local",
        "opt",
        "var/lib/dkms/nvidia",
        "var/lib/dpkg/info",
    ] {
        let place = folder.folder(place);
        for name in [
            odd,
            OsStr::new(&format!("renderD128{ESCAPE}")),
            OsStr::new(&format!("0000:02:00.0{ESCAPE}")),
        ] {
            fs::create_dir_all(place.join(name)).expect("a folder");
            fs::write(
                place.join(name).join("uevent"),
                format!("DRIVER={ESCAPE}\n"),
            )
            .expect("a file");
        }
        for name in [
            format!("libcuda.so.1{ESCAPE}"),
            format!("cuda-12.4{ESCAPE}"),
            format!("x{ESCAPE}.json"),
        ] {
            fs::write(place.join(name), ESCAPE).expect("a file");
        }
    }
    // A driver whose name is an escape sequence.
    gpu(&folder, "0000:03:00.0", "nvidia");
    let driver = folder.path("sys/bus/pci/devices/0000:03:00.0/driver");
    fs::remove_file(&driver).expect("a link");
    symlink(format!("../../drivers/nou{ESCAPE}"), &driver).expect("a link");
    folder.write(
        "sys/bus/pci/devices/0000:03:00.0/uevent",
        format!(
            "DRIVER=nou{ESCAPE}\nPCI_CLASS=30000\nPCI_ID=10DE:2684\nPCI_SLOT_NAME=0000:03:00.0\n"
        ),
    );
    let path = folder.0.to_str().expect("UTF-8").to_owned();
    let [facts, terminal, capture, replay] = &all_ways(&folder, "escapes")[..] else {
        panic!("four ways");
    };
    for run in [facts, terminal, replay] {
        assert_plain(&run.stdout, "stdout");
    }
    for run in [facts, terminal, capture, replay] {
        assert_plain(run.stderr.as_bytes(), "stderr");
    }
    assert_plain_capture(capture);
    let nobody = run(gpucheck().args(["--root", &path, "--user", ESCAPE])).sound("a user");
    assert_eq!(nobody.status, Some(2), "{}", nobody.stderr);
    assert_plain(nobody.stderr.as_bytes(), "stderr");
    for arguments in [&["-q"][..], &[], &["--quick"], &["--format", "markdown"]] {
        let run = run(gpucheck()
            .args(["--root", &path, "--color", "never"])
            .args(arguments))
        .good("escapes");
        assert_plain(&run.stdout, "stdout");
        assert_plain(run.stderr.as_bytes(), "stderr");
    }
    // Names that are no text at all cannot be asked for, but shown.
    for place in [
        "sys/bus/pci/devices",
        "sys/module",
        "etc/modprobe.d",
        "lib/modules",
        "dev/dri",
        "usr/local",
    ] {
        let name = OsStr::from_bytes(b"cuda-\x1b[31m\xff\xfe\x9b");
        fs::create_dir(folder.path(place).join(name)).expect("a folder");
    }
    for arguments in [
        &["--format", "json", "--facts"][..],
        &["-v", "--color", "never"],
    ] {
        let run = run(gpucheck().args(["--root", &path]).args(arguments)).good("names");
        assert_plain(&run.stdout, "stdout");
    }
    let capture = run(gpucheck().args(["capture", "--root", &path])).good("names");
    assert_plain_capture(&capture);
    assert!(Entries::parse(capture.text().leak()).is_ok());
    // The name of the folder itself.
    let inner = folder.folder(&format!("in{ESCAPE}\n"));
    for arguments in [&["-v"][..], &["--format", "json"]] {
        let run = run(gpucheck()
            .arg("--root")
            .arg(&inner)
            .args(["--color", "never"])
            .args(arguments))
        .good("a folder's name");
        assert_plain(&run.stdout, "stdout");
        assert_plain(run.stderr.as_bytes(), "stderr");
    }
}

#[test]
fn the_name_of_a_root_may_begin_with_a_dash() {
    let folder = Folder::new();
    folder.write("-x/etc/os-release", "ID=debian\nPRETTY_NAME=Dash\n");
    let ran = run(gpucheck().current_dir(&folder.0).arg("--root=-x")).good("a root");
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(text.contains("Dash"), "{text}");
}

#[test]
fn nothing_leads_out_of_the_root() {
    const SECRET: &str = "planted-secret-42";
    let outside = Folder::new();
    outside.write(
        "file",
        format!(
            "{SECRET}\nPRETTY_NAME={SECRET}\nDRIVER={SECRET}\nPCI_ID=10DE:2684\nPCI_CLASS=30000\n"
        ),
    );
    outside.write("folder/vendor", "0x10de\n");
    outside.write("folder/device", "0x2684\n");
    outside.write("folder/class", "0x030000\n");
    outside.write(
        "folder/uevent",
        format!("DRIVER={SECRET}\nPCI_CLASS=30000\nPCI_ID=10DE:2684\nPCI_SLOT_NAME=0000:09:00.0\n"),
    );
    outside.write(
        &format!("folder/{SECRET}.conf"),
        format!("options nvidia {SECRET}\n"),
    );
    let up = |path: &Path| "../".repeat(40) + path.to_str().expect("UTF-8").trim_start_matches('/');
    let (file, inside) = (outside.path("file"), outside.path("folder"));
    type Target<'a> = (&'a str, String, String);
    let absolute = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let targets: [Target; 3] = [
        ("absolute", absolute(&file), absolute(&inside)),
        ("upwards", up(&file), up(&inside)),
        (
            "through /proc",
            "/proc/self/root".to_owned() + &absolute(&file),
            "/proc/self/root".to_owned() + &absolute(&inside),
        ),
    ];
    for (what, file, inside) in &targets {
        let folder = odd_tree(|folder, name| symlink(file, folder.path(name)).expect("a link"));
        folder.link("sys/bus/pci/devices/0000:09:00.0", inside);
        for name in [
            "etc/modprobe.d",
            "sys/module/nvidia",
            "sys/class/drm",
            "dev/dri",
            "lib/modules",
        ] {
            let path = folder.path(name);
            let _ = fs::remove_dir_all(&path);
            folder.link(name, inside);
        }
        for run in all_ways(&folder, what) {
            let text = String::from_utf8_lossy(&run.stdout);
            assert!(!text.contains(SECRET), "{what}: {text}");
            assert!(!run.stderr.contains(SECRET), "{what}: {}", run.stderr);
        }
        // The test can see it: without the links the same text does appear.
        if *what == "absolute" {
            let path = folder.path("etc/os-release");
            fs::remove_file(&path).expect("a link");
            folder.write("etc/os-release", format!("ID=x\nPRETTY_NAME={SECRET}\n"));
            assert!(all_ways(&folder, what)[0].text().contains(SECRET));
        }
    }
}

#[test]
fn links_in_circles() {
    let folder = nvidia_tree();
    for (name, target) in [
        ("sys/bus/pci/devices/0000:04:00.0", "0000:05:00.0"),
        ("sys/bus/pci/devices/0000:05:00.0", "0000:04:00.0"),
        ("sys/bus/pci/devices/0000:06:00.0", "."),
        ("sys/bus/pci/devices/0000:07:00.0", "../../../.."),
        ("sys/class/drm/card0", "../drm"),
        ("sys/class/drm/renderD128", "."),
        ("sys/module/nvidia_uvm", "../module"),
        ("lib/modules/a", "../modules"),
        ("usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so"),
        ("usr/lib/x86_64-linux-gnu/libcuda.so", "libcuda.so.1"),
        ("usr/local/cuda", "cuda-12"),
        ("usr/local/cuda-12", "cuda"),
        ("etc/ld.so.conf", "ld.so.conf"),
        ("opt/rocm", "../opt/rocm/x"),
    ] {
        folder.link(name, target);
    }
    let report = all_ways(&folder, "circles")[0].json();
    assert!(gpus(&report) >= 1, "{report:#}");
}

#[test]
fn a_hundred_thousand_functions_on_the_bus() {
    let folder = nvidia_tree_in(Folder::in_memory());
    gpu(&folder, "0000:ff:1f.7", "nvidia");
    let devices = folder.path("sys/bus/pci/devices");
    for number in 0..100_000_u32 {
        let (domain, bus, device) = (1 + number / 8192, number / 32 % 256, number % 32);
        let name = format!("{domain:04x}:{bus:02x}:{device:02x}.0");
        // Some of them are the GPU once more, and far more than any machine has.
        let target = if number % 16 == 0 { GPU } else { "nothing" };
        symlink(target, devices.join(name)).expect("a link");
    }
    crowded(&folder, "100,000 functions");
}

#[test]
fn a_hundred_thousand_names_everywhere() {
    let folder = nvidia_tree_in(Folder::in_memory());
    let many = folder.folder("many");
    let one = folder.write("one", "options nvidia x=1\n");
    for number in 0..100_000 {
        let name = match number % 5 {
            0 => format!("{number}.conf"),
            1 => format!("renderD{number}"),
            2 => format!("{number}.json"),
            3 => format!("6.8.{number}-generic"),
            _ => format!("libcuda.so.{number}"),
        };
        // Links cost no blocks of a disk.
        fs::hard_link(&one, many.join(&name))
            .or_else(|_| symlink("../one", many.join(name)))
            .expect("a link");
    }
    for name in [
        "sys/module",
        "sys/class/drm",
        "sys/class/kfd/kfd/topology/nodes",
        "sys/class/accel",
        "sys/bus/pci/drivers/nvidia",
        "dev/dri",
        "dev/accel",
        "lib/modules",
        "etc/modprobe.d",
        "etc/ld.so.conf.d",
        "etc/vulkan/icd.d",
        "etc/OpenCL/vendors",
        "proc/driver/nvidia/gpus",
        "usr/lib/x86_64-linux-gnu",
        "usr/local/lib",
        "usr/local",
        "opt",
        "var/lib/dkms/nvidia",
        "var/lib/dpkg/info",
    ] {
        let path = folder.path(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).expect("a folder");
        }
        folder.link(name, "/many");
    }
    crowded(&folder, "100,000 names");
}

/// Very many: the program ends in time and in bounds; what a source had no time for may be unknown.
fn crowded(folder: &Folder, what: &str) {
    let root = folder.0.to_str().expect("UTF-8");
    for arguments in [&["--format", "json"][..], &["-q"]] {
        let run = run(gpucheck().args(["--root", root]).args(arguments))
            .good(what)
            .modest(what);
        assert_plain(&run.stdout, what);
        if arguments[0] == "--format" {
            // Nobody counted to the end.
            let report = run.json();
            let sure = report["gpus_whole"] == true;
            assert!(!sure || gpus(&report) > 0, "{what}");
        }
    }
}

#[test]
fn long_names_and_values() {
    let folder = nvidia_tree();
    let long = "n".repeat(4096);
    folder.write(
        "etc/os-release",
        format!("ID={long}\nPRETTY_NAME=\"{long}\"\nVERSION_ID=\"{long}\"\n"),
    );
    folder.write("sys/module/nvidia/version", &long);
    folder.write("proc/sys/kernel/osrelease", &long);
    folder.write("sys/class/dmi/id/product_name", &long);
    folder.write(
        &format!("proc/driver/nvidia/gpus/{GPU}/information"),
        format!("Model: {long}\n{long}: {long}\n"),
    );
    folder.link("usr/lib/x86_64-linux-gnu/libcuda.so.1", &long[..4000]);
    folder.write(&format!("sys/module/{}/version", &long[..255]), &long);
    folder.folder(&format!("lib/modules/{}", &long[..255]));
    all_ways(&folder, "long values");
    let root = folder.0.to_str().expect("UTF-8");
    let nobody = run(gpucheck().args(["--root", root, "--user", &long])).sound("a long user");
    assert_eq!(nobody.status, Some(2), "{}", nobody.stderr);
    for arguments in [
        ["--replay", &long],
        ["--root", &long],
        ["--only", &long],
        ["explain", &long],
    ] {
        let run = run(gpucheck().args(arguments)).sound("a long argument");
        assert_eq!(run.status, Some(2));
    }
}

#[test]
fn folders_that_this_user_may_not_read() {
    let places = [
        "sys/bus/pci/devices",
        "sys/bus/pci/devices/0000:01:00.0",
        "sys/module",
        "sys/class/drm",
        "sys",
        "proc",
        "proc/driver",
        "proc/modules",
        "dev",
        "etc",
        "etc/modprobe.d",
        "etc/os-release",
        "lib/modules",
        "usr",
    ];
    // Only root has to become somebody else for that.
    let outer = Folder::public();
    let program = outer.path("gpucheck");
    fs::copy(env!("CARGO_BIN_EXE_gpucheck"), &program).expect("a copy");
    let become_nobody = rustix::process::geteuid().is_root();
    if become_nobody && !have(&["setpriv"]) {
        return;
    }
    let start = |arguments: &[&str]| {
        let mut command = if become_nobody {
            let mut command = Command::new("setpriv");
            command
                .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
                .arg(&program);
            command
        } else {
            Command::new(&program)
        };
        plain(&mut command);
        run(command.args(arguments)).good(&format!("{arguments:?}"))
    };
    for place in places {
        let folder = nvidia_tree_in(Folder::public());
        for name in [
            "etc/modprobe.d/x.conf",
            "lib/modules/6.8.0-49-generic/modules.dep",
            "sys/class/drm/card0/uevent",
        ] {
            folder.write(name, "");
        }
        let path = folder.path(place);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("own file");
        let root = folder.0.to_str().expect("UTF-8");
        let report = start(&["--root", root, "--format", "json"]).json();
        let none_for_sure = gpus(&report) == 0 && report["gpus_whole"] == true;
        let errors = report["counts"]["errors"].clone();
        let text = start(&["--root", root]).text();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("own file");
        assert!(!none_for_sure, "{place}: {report:#}");
        // What may not be read is no fault of the machine.
        let whole = start(&["--root", root, "--format", "json"]).json();
        assert!(
            errors.as_u64() <= whole["counts"]["errors"].as_u64(),
            "{place}: {report:#}"
        );
        assert!(!text.to_lowercase().contains("no gpu\n"), "{place}: {text}");
    }
}

/// Every source asked of a recorded machine, in this process. None: it is refused, with the number of a line.
fn ask_all(text: &str) -> Option<Facts> {
    let entries = match Entries::parse(text.to_owned().leak()) {
        Ok(entries) => entries,
        Err(error) => {
            let number = error.to_string();
            let first_line = !text.starts_with("gpucheck-machine 1");
            assert!(first_line || number.contains("line "), "{error}");
            return None;
        }
    };
    // What was read is written the same again.
    let written = entries.to_string();
    let again = Entries::parse(written.clone().leak())
        .unwrap_or_else(|error| panic!("{error}:\n{written}"));
    assert_eq!(again.to_string(), written);
    let host = Host::new(
        Box::new(Archive::new(entries)),
        Redactor::off(),
        Options::default(),
    );
    let mut facts = Facts::default();
    for (_, probe) in gpucheck::probes::ALL {
        probe(&host, &mut facts);
    }
    Some(facts)
}

#[test]
fn cut_machines() {
    let Some(machines) = machines() else { return };
    let text =
        fs::read_to_string(machines.join("ubuntu-24.04-rtx4090/machine.txt")).expect("a machine");
    let whole = ask_all(&text).expect("it is right");
    let mut refused = 0;
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        // The file ends within the line, or the line is cut and the rest follows.
        let places = [
            1,
            line.len() / 3,
            line.len() / 2,
            line.len().saturating_sub(2),
        ];
        let place = places[number % places.len()].min(line.len());
        if line.is_char_boundary(place) {
            refused += usize::from(ask_all(&text[..at + place]).is_none());
            if number % 4 == 0 {
                let cut = format!(
                    "{}{}\n{}",
                    &text[..at],
                    &line[..place],
                    &text[at + line.len()..]
                );
                refused += usize::from(ask_all(&cut).is_none());
            }
        }
        at += line.len();
    }
    assert!(refused > 10, "{refused}");
    assert!(whole.pci.got().is_some());
    // The program itself, for a few of them.
    let folder = Folder::new();
    for part in [10, 35, 60, 85] {
        let path = folder.write("machine.txt", &text.as_bytes()[..text.len() * part / 100]);
        let run = run(gpucheck().arg("--replay").arg(path))
            .sound("cut")
            .modest("cut");
        assert!(
            run.status != Some(2) || run.stderr.contains("line "),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn broken_entries() {
    const HEAD: &str = "gpucheck-machine 1\nmade-by gpucheck 0.1.0 hand redacted\n";
    let right = [
        "clock 2026-11-30T12:00:00Z",
        "system linux x86_64 6.8.0",
        "user 1000 1000 1000,44 name=USER",
        "env whole",
        "env A=b",
        "unset A",
        "file /a",
        "file /a cut",
        "exists /a",
        "link /a -> b",
        "dir /a b c",
        "whole /a",
        "whole /a/**",
        "absent /a",
        "error /a read EACCES",
        "hang /a",
        "unasked /a quick",
        "unasked /a quick open",
        "stat /a file 0644 0:0 1 1",
        "node /dev/a c 195:255 0666 0:0",
        "acl /a user:1000:rw-",
        "open /a rw ok",
        "access /a rw EACCES",
        "modinfo /a {\"version\": \"1\"}",
        "elf /a {\"soname\": \"b\"}",
        "run rpm -qa rc=0",
        "log kmsg",
        "log none EPERM",
        "answer @nvml {\"ok\": {}}",
        "answer @sysinfo {\"error\": \"x\"}",
        "base x",
        "made-by x",
        "gpucheck-machine 1",
        "surprise /a",
    ];
    let nested = "[".repeat(100_000);
    let mut accepted = 0;
    for line in right {
        let (keyword, rest) = line.split_once(' ').expect("a field");
        let mut broken = vec![
            keyword.to_owned(),
            format!("{keyword} "),
            format!("{keyword}  {rest}"),
            format!(" {line}"),
            format!("{line} "),
            format!("{line} more"),
            format!("{line}\\"),
            format!("{line}\\x"),
            format!("{line}\\xZZ"),
            format!("{line}\\q"),
            format!("{line}\0"),
            format!("{line}\r"),
            format!("{line}\u{1b}[31m"),
            format!("{line}\n| text\n|no space\n|"),
            format!("{line}\n| text\\"),
            format!("| text\n{line}"),
            format!("{keyword} {}", "../".repeat(2000)),
            format!("{keyword} /{}", "a/".repeat(50_000)),
            format!("{keyword} /a {}", "x".repeat(200_000)),
            format!("{keyword} /a {nested}"),
            format!("{keyword} @nvml {nested}"),
            format!("{keyword} /a -1 99999999999999999999 0999 -1:-1 - -"),
            format!("{keyword} -1 -1 -1"),
            format!("{keyword} 4294967296 4294967296 4294967296"),
            format!("{keyword} a b c d e f g h i j k l m n o p q r s t u v w"),
            format!("{keyword} \u{202e}\u{0}"),
            line.to_uppercase(),
        ];
        let fields: Vec<&str> = line.split(' ').collect();
        for skipped in 1..fields.len() {
            let kept = fields.iter().enumerate().filter(|(at, _)| *at != skipped);
            broken.push(kept.map(|(_, field)| *field).collect::<Vec<_>>().join(" "));
        }
        for end in 1..line.len() {
            broken.push(line[..end].to_owned());
        }
        for text in broken {
            accepted += usize::from(ask_all(&format!("{HEAD}{text}\n")).is_some());
            ask_all(&format!("{HEAD}{text}"));
        }
    }
    assert!(accepted > 50, "{accepted}");
    // The program itself says where.
    let folder = Folder::new();
    let path = folder.write(
        "machine.txt",
        format!("{HEAD}# fine\nerror /a surprise\u{1b}[31m EACCES\n"),
    );
    let run = run(gpucheck().arg("--replay").arg(path)).sound("an entry that makes no sense");
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("line 4"), "{}", run.stderr);
    assert_plain(run.stderr.as_bytes(), "stderr");
}

#[test]
fn large_machines() {
    let mut text =
        "gpucheck-machine 1\nmade-by gpucheck 0.1.0 hand redacted\ndir /sys/bus/pci/devices"
            .to_owned();
    for number in 0..50_000_u32 {
        text += &format!(
            " {:04x}:{:02x}:{:02x}.0",
            number / 8192,
            number / 32 % 256,
            number % 32
        );
    }
    text += "\n";
    for number in 0..50_000_u32 {
        let address = format!(
            "{:04x}:{:02x}:{:02x}.0",
            number / 8192,
            number / 32 % 256,
            number % 32
        );
        text += &format!(
            "file /sys/bus/pci/devices/{address}/uevent\n| PCI_CLASS=30000\n| PCI_ID=10DE:2684\n"
        );
    }
    text += "whole /**\nabsent /\nwhole /sys/**\n";
    let folder = Folder::new();
    let path = folder.write("machine.txt", &text);
    for format in ["terminal", "json"] {
        let run = run(gpucheck().args(["--format", format, "--replay"]).arg(&path))
            .good("a large machine");
        assert_plain(&run.stdout, "a large machine");
    }
}
