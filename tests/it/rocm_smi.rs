//! ROCm SMI: stand-ins that answer, fail, hang, crash and lie, and the real library of three releases over a made-up `/sys`.

use crate::common::{AGES, Folder, Ran, run};
use crate::libraries::{self, error, facts, fake, probe};
use crate::real_parts::{parts, skipped};
use gpucheck::facts::rocm_smi::RocmSmi;
use gpucheck::facts::{Failure, Seen, Why};
use gpucheck::worker::Gathered;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const GPU: &str = "0000:03:00.0";

fn smi(library: &Path, acts: &str) -> Seen<RocmSmi> {
    facts(&probe("rocm_smi", library, acts)).rocm_smi
}

fn got(library: &Path, acts: &str) -> RocmSmi {
    let told = smi(library, acts);
    told.into_got()
        .unwrap_or_else(|| panic!("{acts}: no answer"))
}

#[test]
fn one_gpu_with_all_its_values() {
    let Some(library) = fake("rocm_smi") else {
        return;
    };
    let smi = got(&library, "");
    assert_eq!(smi.library.as_deref(), library.to_str());
    assert_eq!(*smi.version, Seen::Got("7.3.0".to_owned()));
    assert_eq!(*smi.count, Seen::Got(1));
    assert!(smi.unreachable.is_empty());
    let gpu = &smi.devices[GPU];
    assert_eq!((gpu.index, gpu.partitions.len()), (0, 0));
    let name = "Navi 31 [Radeon RX 7900 XTX]".to_owned();
    assert_eq!(*gpu.name, Seen::Got(name));
    assert_eq!(*gpu.memory_bytes, Seen::Got(24 << 30));
    assert_eq!(*gpu.memory_used_bytes, Seen::Got(1 << 30));
    assert_eq!(*gpu.vbios, Seen::Got("113-D7020100-102".to_owned()));
    assert_eq!(*gpu.temperature_c, Seen::Got(53));
    assert_eq!(*gpu.busy_percent, Seen::Got(5));
}

#[test]
fn several_gpus_and_their_parts() {
    let Some(library) = fake("rocm_smi") else {
        return;
    };
    let smi = got(&library, "gpus=3");
    let found: Vec<(&str, u32)> = smi
        .devices
        .iter()
        .map(|(address, gpu)| (address.as_str(), gpu.index))
        .collect();
    assert_eq!(found, [(GPU, 0), ("0000:04:00.0", 1), ("0001:c3:00.0", 2)]);
    // A number is no name.
    assert_eq!(*smi.devices["0000:04:00.0"].name, error("NOT_FOUND"));

    let smi = got(&library, "gpus=2,parts=4");
    assert_eq!(*smi.count, Seen::Got(8));
    assert_eq!(smi.devices.len(), 2);
    assert_eq!(smi.devices[GPU].partitions, [1, 2, 3]);
    assert_eq!(smi.devices["0000:04:00.0"].partitions, [5, 6, 7]);
    assert_eq!(*smi.devices["0000:04:00.0"].temperature_c, Seen::Got(57));
}

#[test]
fn statuses_have_amds_names() {
    let Some(library) = fake("rocm_smi") else {
        return;
    };
    for (number, name) in [
        (2, "NOT_SUPPORTED"),
        (4, "PERMISSION"),
        (8, "INIT_ERROR"),
        (16, "BUSY"),
        (22, "FAIL_LOAD_SYMBOL"),
        (77, "UNKNOWN_ERROR"),
    ] {
        assert_eq!(smi(&library, &format!("rsmi_init={number}")), error(name));
    }
    let told = smi(&library, "rsmi_version_get=9");
    assert_eq!(told, error("its version is not known: NOT_YET_IMPLEMENTED"));
    let told = got(
        &library,
        "rsmi_dev_temp_metric_get=2,rsmi_dev_name_get=3,rsmi_dev_busy_percent_get=15,rsmi_dev_vbios_version_get=4",
    );
    let gpu = &told.devices[GPU];
    assert_eq!(*gpu.temperature_c, error("NOT_SUPPORTED"));
    assert_eq!(*gpu.name, error("FILE_ERROR"));
    assert_eq!(*gpu.busy_percent, error("UNEXPECTED_DATA"));
    assert_eq!(*gpu.vbios, error("PERMISSION"));
    assert_eq!(*gpu.memory_bytes, Seen::Got(24 << 30));
    let told = got(&library, "gpus=2,rsmi_dev_pci_id_get=8");
    let lost = "INIT_ERROR".to_owned();
    assert_eq!(told.unreachable, [(0, lost.clone()), (1, lost)].into());
    let told = got(&library, "rsmi_num_monitor_devices=8");
    assert_eq!((*told.count).clone(), error("INIT_ERROR"));
}

#[test]
fn a_library_that_lacks_functions() {
    let Some(library) = fake("rocm_smi_old") else {
        return;
    };
    let smi = got(&library, "");
    assert_eq!(smi.unreachable, [(1, "INIT_ERROR".to_owned())].into());
    let gpu = &smi.devices[GPU];
    assert_eq!(*gpu.memory_bytes, Seen::Got(8 << 30));
    assert_eq!(*gpu.name, error("NOT_EXPORTED"));
    assert_eq!(*gpu.vbios, error("NOT_EXPORTED"));
    assert_eq!(*gpu.busy_percent, error("NOT_EXPORTED"));
    // A library of somebody else.
    let Some(other) = fake("cuda") else { return };
    let told = self::smi(&other, "");
    assert_eq!(told, error("its version is not known: NOT_EXPORTED"));
    let told = self::smi(Path::new("/nonexistent/librocm_smi64.so"), "");
    let Seen::Failed(Failure::Error { what }) = told else {
        panic!("{told:?}");
    };
    assert!(what.starts_with("not loaded: "), "{what}");
}

#[test]
fn what_cannot_be_true_is_not_believed() {
    let Some(library) = fake("rocm_smi") else {
        return;
    };
    let ran = probe("rocm_smi", &library, "gpus=2,garbage");
    assert!(!ran.text().contains("RED"), "{}", ran.text());
    let smi = facts(&ran).rocm_smi.into_got().expect("an answer");
    // Without an address nothing more is asked.
    assert_eq!((smi.devices.len(), smi.unreachable.len()), (0, 2));
    let many = got(&library, "gpus=10000");
    assert!(many.count.is_unknown() && many.devices.is_empty());
}

/// A worker as the program starts it. Behaviour goes with its environment, so it is started through `env`.
fn follow(library: &Path, acts: &str, limit: Duration) -> Gathered {
    let (gathered, took) = libraries::follow("rocm_smi", library, acts, limit);
    assert!(took < limit + AGES / 4, "{acts}");
    gathered
}

#[test]
fn hangs_and_crashes_are_told() {
    let Some(library) = fake("rocm_smi") else {
        return;
    };
    for (acts, at) in [
        ("hang=rsmi_init", "rsmi_init"),
        (
            "gpus=2,hang=rsmi_dev_memory_usage_get",
            "rsmi_dev_memory_usage_get(0)",
        ),
    ] {
        let failed = follow(&library, acts, Duration::from_millis(1500));
        let at = at.to_owned();
        let expected = Seen::Failed(Failure::TimedOut { at });
        assert_eq!(failed.facts.rocm_smi, expected, "{acts}");
    }
    for (acts, how) in [
        ("segv=rsmi_init", "SIGSEGV"),
        ("segv=rsmi_dev_busy_percent_get", "SIGSEGV"),
        ("abort=rsmi_dev_vbios_version_get", "SIGABRT"),
    ] {
        let failed = follow(&library, acts, AGES);
        let how = how.to_owned();
        let expected = Seen::Failed(Failure::Crashed { how });
        assert_eq!(failed.facts.rocm_smi, expected, "{acts}");
    }
    // Nobody waits for a shutdown.
    let told = follow(&library, "hang=rsmi_shut_down", AGES);
    assert!(told.facts.rocm_smi.got().is_some());
}

#[test]
fn what_it_prints_disturbs_nobody() {
    let Some(library) = fake("rocm_smi") else {
        return;
    };
    let quiet = got(&library, "gpus=3");
    for acts in ["gpus=3,flood", "gpus=3,noise"] {
        let told = follow(&library, acts, AGES);
        assert_eq!(told.facts.rocm_smi, Seen::Got(quiet.clone()), "{acts}");
    }
}

/// A made-up `/sys` with AMD GPUs at these addresses: what ROCm SMI looks at, in the values of an RX 7900 XTX.
fn amd_sys(gpus: &[&str]) -> Folder {
    let sys = Folder::new();
    let text = |path: String, text: &str| {
        sys.write(&path, format!("{text}\n"));
    };
    let nodes = "class/kfd/kfd/topology/nodes";
    text("class/kfd/kfd/topology/generation_id".to_owned(), "2");
    text(
        "class/kfd/kfd/topology/system_properties".to_owned(),
        "platform_oem 0",
    );
    let node = |number: usize, gpu_id: usize, properties: &str| {
        text(format!("{nodes}/{number}/gpu_id"), &gpu_id.to_string());
        text(format!("{nodes}/{number}/name"), "x");
        text(format!("{nodes}/{number}/properties"), properties);
        text(
            format!("{nodes}/{number}/mem_banks/0/properties"),
            "heap_type 1\nsize_in_bytes 25753026560\nflags 0",
        );
        sys.folder(&format!("{nodes}/{number}/io_links"));
    };
    node(
        0,
        0,
        "cpu_cores_count 16\nsimd_count 0\nlocation_id 0\ndomain 0\nunique_id 0",
    );
    for (number, address) in gpus.iter().enumerate() {
        let device = format!("devices/pci0000:00/{address}");
        let used = (1_249_800_192 + number).to_string();
        let busy = (5 + number).to_string();
        for (name, value) in [
            ("vendor", "0x1002"),
            ("device", "0x744c"),
            ("class", "0x030000"),
            ("revision", "0xc8"),
            ("subsystem_vendor", "0x1da2"),
            ("subsystem_device", "0xe471"),
            ("mem_info_vram_total", "25753026560"),
            ("mem_info_vram_used", &used),
            ("mem_info_vis_vram_total", "25753026560"),
            ("mem_info_vis_vram_used", "1249800192"),
            ("mem_info_gtt_total", "16000000000"),
            ("mem_info_gtt_used", "1000000"),
            ("vbios_version", "113-4E4710U-T4Y"),
            ("gpu_busy_percent", &busy),
            ("unique_id", &format!("{:016x}", 0x5b1_4e3a_9d2c + number)),
        ] {
            text(format!("{device}/{name}"), value);
        }
        let edge = (53_000 + 1000 * number).to_string();
        for (name, value) in [
            ("name", "amdgpu"),
            ("temp1_input", &edge),
            ("temp1_label", "edge"),
            ("temp2_input", "60000"),
            ("temp2_label", "junction"),
            ("in0_input", "700"),
            ("in0_label", "vddgfx"),
        ] {
            text(format!("{device}/hwmon/hwmon{number}/{name}"), value);
        }
        for (name, minor) in [("card", number), ("renderD", 128 + number)] {
            let node = format!("{device}/drm/{name}{minor}");
            text(format!("{node}/dev"), &format!("226:{minor}"));
            sys.link(&format!("{node}/device"), &format!("../../../{address}"));
            sys.link(
                &format!("class/drm/{name}{minor}"),
                &format!("../../{node}"),
            );
        }
        sys.link(
            &format!("bus/pci/devices/{address}"),
            &format!("../../../{device}"),
        );
        let number_at = |from: usize, to: usize| u64::from_str_radix(&address[from..to], 16);
        let (domain, bus) = (number_at(0, 4).expect("hex"), number_at(5, 7).expect("hex"));
        node(
            number + 1,
            4000 + number,
            &format!(
                "cpu_cores_count 0\nsimd_count 192\nhive_id 0\nsimd_arrays_per_engine 2\narray_count 12\ncu_per_simd_array 8\nlocation_id {}\ndomain {domain}\ndrm_render_minor {}\nunique_id {}\ngfx_target_version 110000",
                bus << 8,
                128 + number,
                0x5b1_4e3a_9d2c_u64 + number as u64,
            ),
        );
    }
    text("module/amdgpu/initstate".to_owned(), "live");
    sys.folder("kernel");
    sys
}

/// A release of the real library.
struct Release {
    /// Folder of its package.
    package: PathBuf,
    /// What a program needs that loads it: a newer C library than that of the oldest systems the tests run on.
    loader: Vec<String>,
}

impl Release {
    fn new(parts: &Path, name: &str) -> Release {
        let package = parts.join(name);
        let libc = parts.join("libc-2.41/usr/lib/x86_64-linux-gnu");
        let loader = if name == "rocm-smi-5.2" {
            Vec::new()
        } else {
            vec![
                libc.join("ld-linux-x86-64.so.2").display().to_string(),
                "--library-path".to_owned(),
                format!("{}:/usr/lib/x86_64-linux-gnu", libc.display()),
            ]
        };
        Release { package, loader }
    }

    fn library(&self) -> PathBuf {
        let name = "librocm_smi64.so.1";
        let old = self.package.join("usr/lib").join(name);
        let new = self.package.join("usr/lib/x86_64-linux-gnu").join(name);
        if old.exists() { old } else { new }
    }

    fn gpucheck(&self) -> Vec<String> {
        let mut command = self.loader.clone();
        command.push(env!("CARGO_BIN_EXE_gpucheck").to_owned());
        command.extend(["probe", "rocm_smi", "--library"].map(str::to_owned));
        command.push(self.library().display().to_string());
        command
    }

    /// Debian's own tool over the same library.
    fn tool(&self) -> Option<Vec<String>> {
        let tool = self.package.join("usr/libexec/rocm_smi/rocm_smi.py");
        let python = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .ok()?;
        let python = String::from_utf8(python.stdout).ok()?.trim().to_owned();
        let beside = Path::new(&python).parent()?.parent()?.join("lib");
        let mut command = self.loader.clone();
        let folder = self.library().parent()?.display().to_string();
        match command.last_mut() {
            Some(path) => *path = format!("{folder}:{path}:{}", beside.display()),
            None => command.extend(["env".to_owned(), format!("LD_LIBRARY_PATH={folder}")]),
        }
        command.push(python);
        command.push(tool.display().to_string());
        let shows = [
            "--showmeminfo",
            "vram",
            "--showtemp",
            "--showuse",
            "--showbus",
            "--showvbios",
            "--json",
        ];
        command.extend(shows.map(str::to_owned));
        Some(command)
    }
}

/// What a machine with this `/sys` gives for two commands, and the files that stood in `/dev/shm` and `/tmp` after each.
fn on(sys: &Folder, first: &[String], second: &[String]) -> (Ran, Ran, [BTreeSet<String>; 2]) {
    let script = r#"
sys=$1 out=$2 count=$3; shift 3
mount --bind "$sys" /sys
mount -t tmpfs -o mode=755 own /dev
mknod -m 666 /dev/null c 1 3
mkdir -m 1777 /dev/shm
mount -t tmpfs -o mode=1777 own /tmp
left() { (cd /dev/shm; ls -A; cd /tmp; ls -A) >"$out/left-$1"; }
run() { left=$1; shift; timeout 60 "$@" >"$out/out-$left" 2>"$out/err-$left" || true; left "$left"; }
first=$1; shift
case $count in
    0) : >"$out/out-first"; left first ;;
    *) run first sh -c "$first" ;;
esac
run second "$@"
"#;
    let out = Folder::new();
    let quoted: Vec<String> = first.iter().map(|word| format!("'{word}'")).collect();
    let mut command = Command::new("unshare");
    command
        .args(["-m", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(&sys.0)
        .arg(&out.0)
        .arg(first.len().to_string())
        .arg(quoted.join(" "))
        .args(second);
    let all = run(&mut command);
    assert_eq!(all.status, Some(0), "{}", all.stderr);
    let read = |name: &str| fs::read_to_string(out.path(name)).unwrap_or_default();
    let ran = |name: &str| Ran {
        status: Some(0),
        stdout: read(&format!("out-{name}")).into_bytes(),
        stderr: read(&format!("err-{name}")),
        took: Duration::ZERO,
        peak: 0,
    };
    let left = ["first", "second"].map(|name| {
        let names = read(&format!("left-{name}"));
        names.lines().map(str::to_owned).collect()
    });
    (ran("first"), ran("second"), left)
}

const THREE: [&str; 3] = ["0000:03:00.0", "0000:83:00.0", "0001:c3:00.0"];

fn as_made_up(smi: &RocmSmi, gpus: &[&str]) {
    assert_eq!(*smi.count, Seen::Got(gpus.len() as u32));
    let addresses: Vec<&str> = smi.devices.keys().map(String::as_str).collect();
    assert_eq!(addresses, gpus);
    for (number, gpu) in smi.devices.values().enumerate() {
        assert_eq!(gpu.index, number as u32);
        assert_eq!(*gpu.memory_bytes, Seen::Got(25_753_026_560));
        assert_eq!(
            *gpu.memory_used_bytes,
            Seen::Got(1_249_800_192 + number as u64)
        );
        assert_eq!(*gpu.vbios, Seen::Got("113-4E4710U-T4Y".to_owned()));
        assert_eq!(*gpu.temperature_c, Seen::Got(53 + number as u32));
        assert_eq!(*gpu.busy_percent, Seen::Got(5 + number as u32));
    }
}

#[test]
fn the_real_library_answers_and_leaves_nothing_behind() {
    let Some(parts) = parts() else { return };
    for (name, version) in [("rocm-smi-6.1", "7.2.0"), ("rocm-smi-6.4", "7.6.0")] {
        let release = Release::new(&parts, name);
        for gpus in [&THREE[..1], &THREE] {
            let sys = amd_sys(gpus);
            let (_, ran, left) = on(&sys, &[], &release.gpucheck());
            let told = facts(&ran).rocm_smi;
            let smi = told
                .into_got()
                .unwrap_or_else(|| panic!("{name}: {}", ran.text()));
            assert_eq!(*smi.version, Seen::Got(version.to_owned()));
            as_made_up(&smi, gpus);
            assert_eq!(left, [BTreeSet::new(), BTreeSet::new()], "{name}");
        }
        let none = amd_sys(&[]);
        fs::remove_dir_all(none.path("class/kfd")).expect("own folder");
        let (_, ran, left) = on(&none, &[], &release.gpucheck());
        assert_eq!(facts(&ran).rocm_smi, error("INIT_ERROR"), "{name}");
        assert!(left[1].is_empty(), "{name}: {left:?}");
    }
}

#[test]
fn a_real_library_that_would_leave_something_behind_is_not_asked() {
    let Some(parts) = parts() else { return };
    let release = Release::new(&parts, "rocm-smi-5.2");
    let sys = amd_sys(&THREE);
    let (_, ran, left) = on(&sys, &[], &release.gpucheck());
    assert_eq!(facts(&ran).rocm_smi, Seen::Unasked(Why::WouldChange));
    assert!(left[1].is_empty(), "{left:?}");
    // Once its own tool was run what it needs is there, and the answer comes.
    let Some(tool) = release.tool() else {
        return skipped("no Python is here");
    };
    let (_, ran, [before, after]) = on(&sys, &tool, &release.gpucheck());
    let told = facts(&ran).rocm_smi;
    let smi = told.into_got().unwrap_or_else(|| panic!("{}", ran.text()));
    assert_eq!(*smi.version, Seen::Got("1.0.0".to_owned()));
    as_made_up(&smi, &THREE);
    assert!(before.contains("rocm_smi_card0"), "{before:?}");
    assert_eq!(before, after);
}

#[test]
fn the_real_library_says_what_its_own_tool_says() {
    let Some(parts) = parts() else { return };
    for name in ["rocm-smi-5.2", "rocm-smi-6.1"] {
        let release = Release::new(&parts, name);
        let Some(tool) = release.tool() else {
            return skipped("no Python is here");
        };
        let sys = amd_sys(&THREE);
        let (tool, ran, _) = on(&sys, &tool, &release.gpucheck());
        let json = tool.text();
        let json = json.lines().find(|line| line.starts_with('{'));
        let cards: Value =
            serde_json::from_str(json.unwrap_or_else(|| panic!("{}", tool.stderr))).expect("JSON");
        let smi = facts(&ran).rocm_smi.into_got().expect(name);
        assert_eq!(
            cards.as_object().map(serde_json::Map::len),
            Some(smi.devices.len())
        );
        for card in cards
            .as_object()
            .into_iter()
            .flat_map(|cards| cards.values())
        {
            let text = |key: &str| card[key].as_str().unwrap_or_default().to_owned();
            let gpu = &smi.devices[&text("PCI Bus").to_lowercase()];
            let number = |key: &str| text(key).parse::<f64>().expect("a number");
            assert_eq!(*gpu.vbios, Seen::Got(text("VBIOS version")));
            assert_eq!(
                *gpu.memory_bytes,
                Seen::Got(number("VRAM Total Memory (B)") as u64)
            );
            assert_eq!(
                *gpu.memory_used_bytes,
                Seen::Got(number("VRAM Total Used Memory (B)") as u64)
            );
            assert_eq!(
                *gpu.temperature_c,
                Seen::Got(number("Temperature (Sensor edge) (C)") as u32)
            );
            assert_eq!(*gpu.busy_percent, Seen::Got(number("GPU use (%)") as u32));
        }
    }
}
