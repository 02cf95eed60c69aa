//! The system probes over the test machines and trees of the shared material, over hostile folders, and over the machine that
//! runs the tests.

use ::gpucheck::facts::device_nodes::DeviceNodes;
use ::gpucheck::facts::kernel::LoadedModule;
use ::gpucheck::facts::module_files::{InstalledKernel, ModuleFiles};
use ::gpucheck::facts::software::Library;
use ::gpucheck::facts::{Facts, Failure, Seen, Why};
use ::gpucheck::host::archive::Archive;
use ::gpucheck::host::machine::{Entries, Entry, Operation};
use ::gpucheck::host::{Host, Options, live::Live, live::Root, redact::Redactor};
use ::gpucheck::probes;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The shared machines. None: they are not here, which is said, and is an error where everything is demanded.
fn machines() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/machines");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none(),
        "the shared machines are missing"
    );
    let _ = writeln!(
        std::io::stderr(),
        "skipped: the shared machines are missing"
    );
    None
}

/// A machine with the machines it lies over.
fn entries(name: &str, more: &str) -> Option<Entries> {
    let path = machines()?.join(name).join("machine.txt");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut entries = Entries::parse(text.leak()).unwrap_or_else(|error| panic!("{name}: {error}"));
    if let Some(base) = entries.base().map(str::to_owned) {
        entries = Entries::overlay(self::entries(&base, "")?, entries);
    }
    if !more.is_empty() {
        let text = format!("gpucheck-machine 1\nmade-by gpucheck 0.1.0 hand redacted\n{more}");
        let more = Entries::parse(text.leak()).unwrap_or_else(|error| panic!("{error}"));
        entries = Entries::overlay(entries, more);
    }
    Some(entries)
}

fn probe(host: &Host) -> Facts {
    let mut facts = Facts::default();
    for (_, fill) in probes::ALL {
        fill(host, &mut facts);
    }
    facts
}

fn facts(name: &str) -> Option<Facts> {
    facts_with(name, "")
}

/// The facts of a machine with some entries laid over it.
fn facts_with(name: &str, more: &str) -> Option<Facts> {
    let archive = Archive::new(entries(name, more)?);
    Some(probe(&Host::new(
        Box::new(archive),
        Redactor::off(),
        Options::default(),
    )))
}

/// Both ways in which evidence can be missing: reading it fails, or nobody recorded it.
fn without_evidence(name: &str, paths: &[&str]) -> Option<[Facts; 2]> {
    let mut failing = String::new();
    let mut unrecorded = String::new();
    for path in paths {
        for operation in ["read", "list", "link", "stat", "open", "access"] {
            failing.push_str(&format!("error {path} {operation} EIO\n"));
        }
        unrecorded.push_str(&format!("unasked {path} not-captured\n"));
    }
    Some([facts_with(name, &failing)?, facts_with(name, &unrecorded)?])
}

fn all_machines() -> Vec<String> {
    let Some(folder) = machines() else {
        return Vec::new();
    };
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the folder of machines")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("machine.txt").is_file())
        .map(|path| {
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// The fields that the system probes fill.
const SOURCES: &[&str] = &[
    "os_release",
    "kernel",
    "modules",
    "mounts",
    "char_devices",
    "security",
    "dmi",
    "surroundings",
    "wsl",
    "proc_hardware",
    "sysinfo",
    "module_files",
    "dkms",
    "modprobe",
    "users",
    "environment",
    "device_nodes",
    "software",
    "network",
    "gpu_switches",
    "firmware",
];

fn field(facts: &Facts, source: &str) -> String {
    facts
        .field_to_json(source)
        .expect("a source")
        .expect("JSON")
}

fn kernel<'facts>(facts: &'facts Facts, release: &str) -> &'facts InstalledKernel {
    let files = facts.module_files.got().expect("module files");
    &files.kernels.items[release]
}

/// An installed kernel; absent only where that is proved.
fn installed<'facts>(facts: &'facts Facts, release: &str) -> Seen<&'facts InstalledKernel> {
    facts
        .module_files
        .as_ref()
        .and_then(|files: &ModuleFiles| files.kernels.get(release))
}

fn paths(kernel: &InstalledKernel, module: &str) -> Vec<String> {
    kernel.modules.items[module]
        .iter()
        .map(|file| file.path.clone())
        .collect()
}

fn lines(facts: &Facts, path: &str) -> Vec<String> {
    let config = facts.modprobe.got().expect("modprobe");
    let lines = config.files[path].got().expect("lines");
    lines.iter().map(|line| line.text.clone()).collect()
}

fn loaded<'facts>(facts: &'facts Facts, name: &str) -> &'facts Seen<LoadedModule> {
    &facts.modules.got().expect("modules").known[name]
}

fn nodes(facts: &Facts) -> &DeviceNodes {
    facts.device_nodes.got().expect("nodes")
}

fn library<'facts>(facts: &'facts Facts, name: &str) -> &'facts Seen<Vec<Library>> {
    &facts.software.got().expect("software").libraries[name]
}

fn got(text: &str) -> Seen<String> {
    Seen::Got(text.to_owned())
}

#[test]
fn a_healthy_desktop() {
    let Some(facts) = facts("ubuntu-24.04-rtx4090") else {
        return;
    };
    let os = facts.os_release.got().expect("os-release");
    assert_eq!(os.fields["ID"], "ubuntu");
    assert_eq!(os.fields["VERSION_ID"], "24.04");
    let kernel_facts = facts.kernel.got().expect("kernel");
    assert_eq!(kernel_facts.release, got("6.14.0-37-generic"));
    assert_eq!(kernel_facts.tainted, Seen::Got(4096));
    assert_eq!(kernel_facts.uptime_seconds, Seen::Got(86_400));
    let nvidia = loaded(&facts, "nvidia").got().expect("loaded");
    assert_eq!(nvidia.version, got("580.126.09"));
    assert_eq!(nvidia.taint, got("OE"));
    assert!(loaded(&facts, "nouveau").is_absent());
    let modules = facts.modules.got().expect("modules");
    let proc_modules = modules.proc_modules.got().expect("/proc/modules");
    assert_eq!(proc_modules["nvidia"].users, 2);
    assert!(!proc_modules.contains_key("snd_hda_intel"));
    let majors = &facts.char_devices.got().expect("majors").majors;
    assert_eq!(majors["nvidia-uvm"], 508);
    let security = facts.security.got().expect("security");
    assert_eq!(security.secure_boot, Seen::Got(true));
    assert_eq!(security.lockdown, got("integrity"));

    let installed = kernel(&facts, "6.14.0-37-generic");
    assert!(installed.modules.whole);
    assert_eq!(installed.headers, Seen::Got(true));
    let nvidia = &installed.modules.items["nvidia"];
    assert_eq!(nvidia.len(), 1, "one file, found twice: {nvidia:?}");
    let info = nvidia[0].info.got().expect("modinfo");
    assert_eq!(info.license.as_deref(), Some("Dual MIT/GPL"));
    assert!(installed.modules.items.contains_key("nouveau"));
    assert!(installed.modules.get("nova_core").is_absent());

    let dev = &nodes(&facts).dev;
    assert!(dev.whole);
    assert_eq!(dev.items["/dev/nvidiactl"].open, got("ok"));
    assert_eq!(dev.items["/dev/nvidia0"].access, got("ok"));
    assert!(dev.items["/dev/nvidia0"].open.got().is_none());
    let dri = nodes(&facts).dri.got().expect("/dev/dri");
    assert_eq!(dri.items["/dev/dri/renderD128"].open, got("ok"));
    assert_eq!(
        dri.items["/dev/dri/card1"].acl,
        Seen::Got(vec!["user:1000:rw-".to_owned()])
    );
    let program = nodes(&facts)
        .nvidia_modprobe
        .got()
        .expect("nvidia-modprobe");
    assert_eq!(program.setuid_root, Seen::Got(true));

    let cuda = library(&facts, "libcuda.so.1").got().expect("libcuda");
    assert_eq!(cuda.len(), 1);
    assert_eq!(
        cuda[0].target,
        got("/usr/lib/x86_64-linux-gnu/libcuda.so.580.126.09")
    );
    let software = facts.software.got().expect("software");
    let toolkits = software.cuda_toolkits.got().expect("toolkits");
    assert_eq!(toolkits["/usr/local/cuda-12.8"], got("12.8.1"));
    assert_eq!(toolkits.len(), 1, "the link is no toolkit of its own");
    assert!(software.rocm.is_unknown(), "nobody looked into /opt");
    assert!(library(&facts, "libamdhip64.so").is_unknown());

    let users = facts.users.got().expect("users");
    assert_eq!(users.groups.got().expect("groups")[&992].members, ["USER"]);
    assert_eq!(users.judged, None);
    let environment = facts.environment.got().expect("environment");
    assert!(environment.whole);
    assert!(!environment.variables.contains_key("CUDA_VISIBLE_DEVICES"));
}

#[test]
fn which_boot_it_is() {
    let more = "file /proc/sys/kernel/random/boot_id\n| UUID-00000001\n";
    let Some(facts) = facts_with("ubuntu-24.04-rtx4090", more) else {
        return;
    };
    let boot_id = facts.kernel.got().expect("kernel").boot_id.got().cloned();
    assert!(boot_id.is_some_and(|id| !id.is_empty()));
}

#[test]
fn only_root_makes_a_setuid_program_of_root() {
    for (owner, mode, is) in [
        ("0:0", "4755", true),
        ("1000:0", "4755", false),
        ("0:0", "0755", false),
    ] {
        let more = format!("stat /usr/bin/nvidia-modprobe file {mode} {owner} 50000 -\n");
        let Some(facts) = facts_with("ubuntu-24.04-rtx4090", &more) else {
            return;
        };
        let program = nodes(&facts).nvidia_modprobe.got().expect("it is there");
        assert_eq!(program.setuid_root, Seen::Got(is), "{mode} {owner}");
    }
}

#[test]
fn a_server_with_dkms() {
    let Some(facts) = facts("ubuntu-22.04-a100x8") else {
        return;
    };
    let dkms = facts.dkms.got().expect("dkms");
    let modules = dkms.modules.got().expect("tree");
    let version = &modules.items["nvidia"].items["550.144.03"];
    assert!(version.kernels.items.contains_key("5.15.0-131-generic"));
    assert!(version.kernels.whole);
    assert_eq!(version.kernels.items.len(), 1, "`source` is no kernel");
    let installed = kernel(&facts, "5.15.0-131-generic");
    assert_eq!(
        paths(installed, "nvidia"),
        ["/lib/modules/5.15.0-131-generic/updates/dkms/nvidia.ko"]
    );
    let info = installed.modules.items["nvidia"][0].info.got();
    assert_eq!(
        info.and_then(|info| info.license.as_deref()),
        Some("NVIDIA")
    );
    let environment = facts.environment.got().expect("environment");
    assert_eq!(environment.variables["SSH_CONNECTION"], "set");
    let dri = nodes(&facts).dri.got().expect("/dev/dri");
    let open = dri
        .items
        .iter()
        .filter(|(path, node)| path.contains("renderD") && node.open == got("ok"));
    assert_eq!(open.count(), 8);
}

#[test]
fn a_desktop_with_rocm() {
    let Some(facts) = facts("fedora-42-rx7900xtx") else {
        return;
    };
    let hip = library(&facts, "libamdhip64.so").got().expect("hip");
    assert_eq!(hip[0].path, "/usr/lib64/libamdhip64.so.6");
    assert_eq!(hip[0].target, got("/usr/lib64/libamdhip64.so.6.3.42134"));
    assert!(library(&facts, "libcuda.so.1").is_absent());
    let amdgpu = loaded(&facts, "amdgpu").got().expect("loaded");
    assert!(amdgpu.version.is_absent(), "the kernel's own has none");
    assert_eq!(amdgpu.parameters["modeset"], got("-1"));
    assert_eq!(nodes(&facts).dev.items["/dev/kfd"].open, got("ok"));
    let files = kernel(&facts, "6.16.7-200.fc42.x86_64");
    assert!(files.modules.get("nvidia").is_absent());
    let amdgpu = &files.modules.items["amdgpu"][0];
    assert!(amdgpu.info.is_unknown(), "not unpacked without need");
    // The older kernel's folder is only known to be there.
    let older = kernel(&facts, "6.15.10-200.fc42.x86_64");
    assert_eq!(older.modules_dep, Seen::Got(()));
    assert!(older.modules.get("nvidia").is_unknown());
    let groups = facts.users.got().and_then(|users| users.groups.got());
    let groups = groups.expect("groups");
    assert_eq!(groups[&105].name, "render");
    assert!(groups[&105].members.is_empty());
    assert!(groups.contains_key(&10), "a group of the process");
    assert_eq!(
        facts.os_release.got().expect("os-release").fields["VARIANT_ID"],
        "workstation"
    );
}

#[test]
fn other_places() {
    let Some(facts) = facts("quiet-nvidia-nixos-paths") else {
        return;
    };
    let files = facts.module_files.got().expect("module files");
    assert_eq!(files.path, "/run/booted-system/kernel-modules/lib/modules");
    let installed = &files.kernels.items["6.12.60"];
    let nvidia = &installed.modules.items["nvidia"];
    assert_eq!(nvidia.len(), 1);
    assert!(
        nvidia[0]
            .link
            .as_deref()
            .is_some_and(|link| link.starts_with("/nix/store/"))
    );
    let cuda = library(&facts, "libcuda.so.1").got().expect("libcuda");
    assert_eq!(cuda[0].path, "/run/opengl-driver/lib/libcuda.so.1");
    let program = nodes(&facts)
        .nvidia_modprobe
        .got()
        .expect("nvidia-modprobe");
    assert_eq!(program.path, "/run/wrappers/bin/nvidia-modprobe");
    assert!(program.setuid_root.is_unknown());
}

#[test]
fn a_module_of_another_kernel_by_link() {
    let Some(facts) = facts("quiet-module-weak-updates") else {
        return;
    };
    let running = kernel(&facts, "5.14.0-611.5.1.el9_7.x86_64");
    let nvidia = &running.modules.items["nvidia"];
    assert_eq!(nvidia.len(), 1);
    assert_eq!(
        nvidia[0].link.as_deref(),
        Some("/lib/modules/5.14.0-570.12.1.el9_6.x86_64/extra/nvidia/nvidia.ko")
    );
    let vermagic = nvidia[0].info.got().and_then(|info| info.vermagic.clone());
    assert!(vermagic.is_some_and(|text| text.starts_with("5.14.0-570.12.1.el9_6.x86_64 ")));
    assert!(running.modules.items.contains_key("nvidia_drm"));
    let older = kernel(&facts, "5.14.0-570.12.1.el9_6.x86_64");
    assert_eq!(
        paths(older, "nvidia"),
        ["/lib/modules/5.14.0-570.12.1.el9_6.x86_64/extra/nvidia/nvidia.ko"]
    );
}

#[test]
fn a_kernel_without_modules() {
    let Some(facts) = facts("quiet-kernel-monolithic") else {
        return;
    };
    assert!(
        facts
            .modules
            .got()
            .expect("modules")
            .proc_modules
            .is_absent()
    );
    assert!(facts.module_files.got().is_none());
    let amdgpu = loaded(&facts, "amdgpu").got().expect("built in");
    assert!(amdgpu.initstate.is_absent());
}

#[test]
fn a_kernel_whose_modules_are_gone() {
    let running = [
        ("kernel-gone-after-upgrade-rtx4090", "6.14.0-37-generic"),
        ("kernel-gone-arch-laptop", "6.17.3-arch1-1"),
    ];
    for (name, release) in running {
        let Some(facts) = facts(name) else { return };
        let kernels = &facts.module_files.got().expect("module files").kernels;
        assert!(kernels.get(release).is_absent(), "{name}");
        let folder = format!("/lib/modules/{release}");
        for facts in without_evidence(name, &["/lib/modules", &folder]).expect("facts") {
            let kernel = installed(&facts, release);
            assert!(kernel.is_unknown(), "{name}: {kernel:?}");
        }
    }
    let name = "kernel-gone-leftover-folder";
    let release = "6.16.7-200.fc42.x86_64";
    let Some(facts) = facts(name) else { return };
    assert!(kernel(&facts, release).modules_dep.is_absent());
    let folder = format!("/lib/modules/{release}");
    let dep = format!("{folder}/modules.dep");
    for facts in without_evidence(name, &["/lib/modules", &folder, &dep]).expect("facts") {
        if let Seen::Got(kernel) = installed(&facts, release) {
            assert!(kernel.modules_dep.is_unknown(), "{:?}", kernel.modules_dep);
        }
    }
}

#[test]
fn a_module_that_is_missing_for_the_running_kernel() {
    let machines = [
        (
            "module-missing-after-kernel-upgrade",
            "6.14.0-37-generic",
            "6.14.0-36-generic",
        ),
        (
            "module-missing-dkms-without-headers",
            "5.15.0-134-generic",
            "5.15.0-131-generic",
        ),
    ];
    for (name, running, other) in machines {
        let Some(facts) = facts(name) else { return };
        assert!(
            kernel(&facts, running).modules.get("nvidia").is_absent(),
            "{name}"
        );
        assert!(
            kernel(&facts, other).modules.items.contains_key("nvidia"),
            "{name}"
        );
        let folder = format!("/lib/modules/{running}");
        let evidence =
            ["", "/kernel", "/updates", "/modules.dep"].map(|end| format!("{folder}{end}"));
        let evidence: Vec<&str> = evidence.iter().map(String::as_str).collect();
        for facts in without_evidence(name, &evidence).expect("facts") {
            let kernel = installed(&facts, running);
            let nvidia = kernel.and_then(|kernel| kernel.modules.get("nvidia"));
            assert!(nvidia.is_unknown(), "{name}: {nvidia:?}");
        }
        // Each place alone spoils the proof as well.
        for path in &evidence[1..] {
            for facts in without_evidence(name, &[path]).expect("facts") {
                let kernel = installed(&facts, running);
                let nvidia = kernel.and_then(|kernel| kernel.modules.get("nvidia"));
                assert!(nvidia.is_unknown(), "{name}, {path}: {nvidia:?}");
            }
        }
    }
    let Some(facts) = facts("module-missing-dkms-without-headers") else {
        return;
    };
    assert_eq!(
        kernel(&facts, "5.15.0-134-generic").headers,
        Seen::Got(false)
    );
    let dkms = facts.dkms.got().and_then(|dkms| dkms.modules.got());
    let version = &dkms.expect("tree").items["nvidia"].items["550.144.03"];
    assert!(version.kernels.get("5.15.0-134-generic").is_absent());
}

#[test]
fn a_module_copied_from_another_kernel() {
    let name = "module-missing-vermagic";
    let Some(facts) = facts(name) else { return };
    let release = "6.14.0-37-generic";
    let nvidia = &kernel(&facts, release).modules.items["nvidia"][0];
    let vermagic = nvidia.info.got().and_then(|info| info.vermagic.clone());
    assert!(vermagic.is_some_and(|text| text.starts_with("6.14.0-36-generic ")));
    let file = format!("/lib/modules/{release}/extra/nvidia.ko.zst");
    for facts in without_evidence(name, &[&file]).expect("facts") {
        let nvidia = &kernel(&facts, release).modules.items["nvidia"][0];
        assert_eq!(nvidia.path, file);
        assert!(nvidia.info.is_unknown());
    }
}

#[test]
fn wsl() {
    let Some(facts) = facts("wsl2-ubuntu-rtx3080") else {
        return;
    };
    let wsl = facts.wsl.got().expect("wsl");
    let libraries = wsl.libraries.got().expect("libraries");
    assert!(libraries.whole && libraries.items.contains_key("libcuda.so.1"));
    let drivers = wsl.drivers.got().expect("drivers");
    assert!(drivers.items.keys().any(|name| name.starts_with("nv")));
    assert!(nodes(&facts).dev.items.contains_key("/dev/dxg"));
    let cuda = library(&facts, "libcuda.so.1").got().expect("libcuda");
    assert_eq!(cuda[0].path, "/usr/lib/wsl/lib/libcuda.so.1");
    let hardware = facts.proc_hardware.got().expect("hardware");
    assert_eq!(hardware.hypervisor_flag, Seen::Got(true));

    let facts = self::facts("wsl-gpu-disabled-in-config").expect("facts");
    let wsl = facts.wsl.got().expect("wsl");
    assert_eq!(wsl.config.got().expect("config")["gpu.enabled"], "false");
    assert!(wsl.libraries.is_absent());
    assert!(nodes(&facts).dev.get("/dev/dxg").is_absent());
    let evidence = ["/etc/wsl.conf", "/dev", "/dev/dxg", "/usr/lib/wsl/lib"];
    for facts in without_evidence("wsl-gpu-disabled-in-config", &evidence).expect("facts") {
        let wsl = facts.wsl.got().expect("wsl");
        assert!(wsl.config.is_unknown() && wsl.libraries.is_unknown());
        assert!(nodes(&facts).dev.get("/dev/dxg").is_unknown());
        assert!(library(&facts, "libcuda.so.1").is_unknown());
    }

    let facts = self::facts("wsl-no-dxg").expect("facts");
    assert!(nodes(&facts).dev.get("/dev/dxg").is_absent());
    let facts = self::facts("wsl-no-libcuda").expect("facts");
    let wsl = facts.wsl.got().expect("wsl");
    assert!(wsl.libraries.entry("libcuda.so.1").is_absent());
    assert!(library(&facts, "libcuda.so.1").is_absent());
    let facts = self::facts("wsl1").expect("facts");
    assert_eq!(
        facts.kernel.got().expect("kernel").release,
        got("4.4.0-19041-Microsoft")
    );
    assert!(loaded(&facts, "nvidia").is_absent());
}

#[test]
fn a_container() {
    let Some(facts) = facts("docker-in-rtx4090") else {
        return;
    };
    let surroundings = facts.surroundings.got().expect("surroundings");
    assert_eq!(surroundings.dockerenv, Seen::Got(()));
    assert!(surroundings.containerenv.is_absent());
    assert!(facts.module_files.got().is_none());
    let mounts = &facts.mounts.got().expect("mounts").mounts;
    assert!(
        mounts
            .iter()
            .any(|mount| mount.point == "/proc/driver/nvidia")
    );
    let security = facts.security.got().expect("security");
    assert!(
        security.secure_boot.is_unknown(),
        "the folder is hidden, not missing"
    );
}

#[test]
fn what_keeps_a_module_away() {
    let Some(facts) = facts("blacklist-file-nvidia") else {
        return;
    };
    assert_eq!(
        lines(&facts, "/etc/modprobe.d/local-gpu.conf"),
        ["blacklist nvidia"]
    );
    assert!(lines(&facts, "/etc/modprobe.d/blacklist-framebuffer.conf").is_empty());
    let evidence = ["/etc/modprobe.d", "/etc/modprobe.d/local-gpu.conf"];
    for facts in without_evidence("blacklist-file-nvidia", &evidence).expect("facts") {
        let config = facts.modprobe.got().expect("modprobe");
        assert_ne!(config.folders["/etc/modprobe.d"], Seen::Got(true));
        assert!(
            config
                .files
                .get("/etc/modprobe.d/local-gpu.conf")
                .is_none_or(Seen::is_unknown)
        );
    }

    let facts = self::facts("blacklist-install-false-nvidia").expect("facts");
    assert_eq!(
        lines(&facts, "/usr/lib/modprobe.d/zz-no-nvidia.conf"),
        ["install nvidia /bin/false", "install nvidia_uvm /bin/false"]
    );
    let config = facts.modprobe.got().expect("modprobe");
    assert!(
        !config.folders.contains_key("/lib/modprobe.d"),
        "the same folder"
    );
    let facts = self::facts("blacklist-power-tool-laptop").expect("facts");
    assert!(
        lines(&facts, "/etc/modprobe.d/supergfxd.conf").contains(&"alias nvidia off".to_owned())
    );
    let facts = self::facts("blacklist-cmdline-amdgpu").expect("facts");
    let line = &facts.kernel.got().expect("kernel").command_line;
    assert!(
        line.got()
            .is_some_and(|line| line.contains("module_blacklist=amdgpu"))
    );
    assert!(loaded(&facts, "amdgpu").is_absent());
    let facts = self::facts("quiet-blacklist-lines-that-do-nothing").expect("facts");
    let config = facts.modprobe.got().expect("modprobe");
    for line in config.files.values().filter_map(Seen::got).flatten() {
        assert!(
            !line.text.starts_with('#') && !line.text.contains("nvidiafb"),
            "{line:?}"
        );
    }
}

#[test]
fn who_may_open_nodes() {
    let Some(facts) = facts("denied-group-file-unreadable") else {
        return;
    };
    let users = facts.users.got().expect("users");
    assert!(matches!(
        &users.groups,
        Seen::Failed(Failure::Denied { .. })
    ));
    assert_eq!(nodes(&facts).dev.items["/dev/kfd"].open, got("EACCES"));
    let accel = nodes(&facts).accel.got().expect("/dev/accel");
    assert_eq!(accel.items["/dev/accel/accel0"].access, got("EACCES"));
    assert!(accel.items["/dev/accel/accel0"].open.got().is_none());

    let facts = self::facts("denied-not-in-group-strix-halo").expect("facts");
    let groups = facts.users.got().and_then(|users| users.groups.got());
    assert!(groups.expect("groups")[&992].members.is_empty());
    let facts = self::facts("denied-no-seat-acl-ssh").expect("facts");
    assert_eq!(
        nodes(&facts).dev.items["/dev/kfd"].acl,
        Seen::Got(vec!["user:1001:rw-".to_owned()])
    );
    let facts = self::facts("denied-node-mode-option-nvidia").expect("facts");
    let control = &nodes(&facts).dev.items["/dev/nvidiactl"];
    assert_eq!(control.open, got("EACCES"));
    let stat = control.stat.got().expect("stat");
    assert_eq!((stat.mode, stat.gid), (0o660, 44));
    let facts = self::facts("denied-npu-root-only").expect("facts");
    let accel = nodes(&facts).accel.got().expect("/dev/accel");
    let stat = accel.items["/dev/accel/accel0"].stat.got();
    assert_eq!(stat.map(|stat| stat.mode), Some(0o600));
    let facts = self::facts("denied-one-of-eight-render-nodes").expect("facts");
    let dri = nodes(&facts).dri.got().expect("/dev/dri");
    assert_eq!(dri.items["/dev/dri/renderD130"].open, got("EACCES"));
    assert_eq!(dri.items["/dev/dri/renderD129"].open, got("ok"));
    let more = "dir /dev/accel accel0\nerror /dev/accel/accel0 stat EIO\nerror /dev/accel/accel0 access EIO\n";
    let failing = facts_with("denied-npu-root-only", more).expect("facts");
    let accel = nodes(&failing).accel.got().expect("/dev/accel");
    let node = &accel.items["/dev/accel/accel0"];
    assert!(node.stat.is_unknown() && node.access.is_unknown());
}

#[test]
fn a_gpu_that_sleeps_is_not_opened() {
    let more = "node /dev/dri/renderD129 c 226:129 0666 0:989\nopen /dev/dri/renderD129 rw ok\n";
    let Some(facts) = facts_with("arch-hybrid-laptop", more) else {
        return;
    };
    let dri = nodes(&facts).dri.got().expect("/dev/dri");
    let asleep = Seen::Unasked(Why::Asleep);
    assert_eq!(dri.items["/dev/dri/renderD129"].open, asleep);
    assert_ne!(dri.items["/dev/dri/renderD128"].open, asleep);
}

#[test]
fn a_driver_that_is_not_installed() {
    for name in [
        "nvidia-not-installed-a100x8",
        "nvidia-not-installed-dpkg-rc",
        "nvidia-not-installed-toolkit-only",
    ] {
        let Some(facts) = facts(name) else { return };
        assert!(library(&facts, "libcuda.so.1").is_absent(), "{name}");
        assert!(nodes(&facts).nvidia_modprobe.is_absent(), "{name}");
        assert!(
            facts.dkms.got().expect("dkms").modules.is_absent(),
            "{name}"
        );
        let files = facts.module_files.got().expect("module files");
        assert!(files.kernels.whole, "{name}");
        for kernel in files.kernels.items.values() {
            assert!(kernel.modules.get("nvidia").is_absent(), "{name}");
        }
        let folder = "/usr/lib/x86_64-linux-gnu";
        let evidence = [
            folder,
            &format!("{folder}/libcuda.so.1"),
            "/usr/bin/nvidia-modprobe",
        ];
        for facts in without_evidence(name, &evidence).expect("facts") {
            assert!(library(&facts, "libcuda.so.1").is_unknown(), "{name}");
            assert!(nodes(&facts).nvidia_modprobe.is_unknown(), "{name}");
        }
    }
}

#[test]
fn nodes_are_unknown_without_their_folder() {
    let Some(found) = facts("nodes-missing-no-modprobe-server") else {
        return;
    };
    assert!(nodes(&found).dev.get("/dev/nvidiactl").is_absent());
    assert!(nodes(&found).nvidia_modprobe.is_absent());
    let evidence = ["/dev", "/dev/nvidiactl", "/dev/nvidia0"];
    for facts in without_evidence("nodes-missing-no-modprobe-server", &evidence).expect("facts") {
        assert!(nodes(&facts).dev.get("/dev/nvidiactl").is_unknown());
    }
    // A node that is there is found by its name.
    let lost = facts_with("ubuntu-24.04-rtx4090", "error /dev list EACCES\n").expect("facts");
    assert!(!nodes(&lost).dev.whole);
    assert_eq!(nodes(&lost).dev.items["/dev/nvidiactl"].open, got("ok"));
}

#[test]
fn a_loaded_module_is_found_without_the_listing() {
    let Some(facts) = facts_with("ubuntu-24.04-rtx4090", "error /sys/module list EACCES\n") else {
        return;
    };
    assert!(loaded(&facts, "nvidia").got().is_some());
    let evidence = ["/sys/module", "/sys/module/nvidia"];
    for facts in without_evidence("blacklist-file-nvidia", &evidence).expect("facts") {
        assert!(loaded(&facts, "nvidia").is_unknown());
    }
}

#[test]
fn another_user_is_judged() {
    let name = "ubuntu-24.04-rtx4090";
    let more = "user 0 0 0 real=0 sudo=1000\n\
                file /etc/passwd kept\n| root:x:0:0::/root:/bin/sh\n| USER:x:1000:1000::/home/USER:/bin/bash\n\
                | ollama:x:998:997::/usr/share/ollama:/bin/false\n| other:x:7:7::/:/bin/sh\n";
    let Some(facts) = facts_with(name, more) else {
        return;
    };
    let users = facts.users.got().expect("users");
    let judged = users.judged.as_ref().expect("sudo");
    assert_eq!(
        (judged.uid, judged.name.as_str(), judged.via.as_str()),
        (1000, "USER", "sudo")
    );
    assert!(!users.passwd.got().expect("passwd").contains_key(&7));

    let ask = |user: &str| {
        let options = Options {
            user: Some(user.to_owned()),
            ..Options::default()
        };
        let archive = Archive::new(entries(name, more).expect("a machine"));
        let facts = probe(&Host::new(Box::new(archive), Redactor::off(), options));
        facts.users.into_got().expect("users")
    };
    for user in ["ollama", "998"] {
        let users = ask(user);
        let judged = users.judged.expect("a user of the system");
        assert_eq!(
            (judged.uid, judged.name.as_str(), judged.via.as_str()),
            (998, "ollama", "--user")
        );
        assert_eq!(users.unknown_user, None);
    }
    let users = ask("nobody-here");
    assert_eq!(users.judged, None, "sudo's user was not asked for");
    assert_eq!(users.unknown_user.as_deref(), Some("nobody-here"));
}

#[test]
fn quick_unpacks_nothing() {
    let Some(entries) = entries("ubuntu-24.04-rtx4090", "") else {
        return;
    };
    let options = Options {
        quick: true,
        ..Options::default()
    };
    let host = Host::new(Box::new(Archive::new(entries)), Redactor::off(), options);
    let facts = probe(&host);
    let nvidia = &kernel(&facts, "6.14.0-37-generic").modules.items["nvidia"][0];
    assert_eq!(nvidia.info, Seen::Unasked(Why::Quick));
}

#[test]
fn no_machine_opens_a_node_that_initialises_a_gpu() {
    for name in all_machines() {
        let archive = Archive::new(entries(&name, "").expect("a machine"));
        let host = Host::new(Box::new(archive), Redactor::off(), Options::default()).recording();
        probe(&host);
        for entry in host.take_entries() {
            if let Entry::Open(path, _) | Entry::Error(path, Operation::Open, _) = entry {
                let may = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/kfd"].contains(&&*path)
                    || path.starts_with("/dev/dri/renderD");
                assert!(may, "{name}: {path}");
            }
        }
    }
}

#[test]
fn facts_survive_the_wire() {
    for name in all_machines() {
        let facts = facts(&name).expect("facts");
        let mut back = Facts::default();
        for source in SOURCES {
            assert!(
                back.set_field_from_json(source, &field(&facts, source)),
                "{name}: {source}"
            );
            assert_eq!(field(&back, source), field(&facts, source), "{name}");
        }
    }
}

/// What is recorded of a machine tells the same again.
fn assert_told_again(name: &str, host: Host) {
    let host = host.recording();
    let facts = probe(&host);
    let archive = Archive::new(Entries::new(host.take_entries()));
    let again = probe(&Host::new(
        Box::new(archive),
        Redactor::off(),
        Options::default(),
    ));
    for source in SOURCES {
        assert_eq!(
            field(&again, source),
            field(&facts, source),
            "{name}: {source}"
        );
    }
}

#[test]
fn a_capture_says_what_the_machine_said() {
    for name in all_machines() {
        let archive = Archive::new(entries(&name, "").expect("a machine"));
        assert_told_again(
            &name,
            Host::new(Box::new(archive), Redactor::off(), Options::default()),
        );
    }
    assert_told_again(
        "live",
        Host::new(Box::new(Live::new()), Redactor::off(), Options::default()),
    );
}

#[test]
fn the_running_machine() {
    let host = Host::new(Box::new(Live::new()), Redactor::off(), Options::default());
    let facts = probe(&host);
    let kernel = facts.kernel.got().expect("kernel");
    assert!(
        kernel
            .release
            .got()
            .is_some_and(|release| !release.is_empty())
    );
    let hardware = facts.proc_hardware.got().expect("hardware");
    let memory = hardware.memory_bytes.got().expect("memory");
    let sysinfo = facts.sysinfo.got().expect("sysinfo");
    assert_eq!(sysinfo.memory_bytes, Some(*memory), "two witnesses");
    assert!(
        facts
            .users
            .got()
            .is_some_and(|users| users.process.got().is_some())
    );
    assert!(
        facts
            .environment
            .got()
            .is_some_and(|environment| environment.whole)
    );
}

/// A folder that holds a system, taken away at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let scratch = Scratch(folder);
        // What shows that these file systems are really there.
        scratch.write("/proc/version", b"Linux version 6.1.0");
        scratch.folder("/sys/kernel");
        scratch.folder("/usr/lib");
        scratch
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.path(path)).expect("a folder");
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        symlink(target, path).expect("a link");
    }

    fn fifo(&self, path: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).expect("a FIFO");
    }

    fn facts(&self) -> Facts {
        let root = Root::open(&self.0).expect("a root");
        let begin = Instant::now();
        let facts = probe(&Host::new(
            Box::new(root),
            Redactor::off(),
            Options::default(),
        ));
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "as good as hanging"
        );
        for source in SOURCES {
            assert!(
                field(&facts, source).len() < 1_000_000,
                "{source} is unbounded"
            );
        }
        facts
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_empty_root_proves_only_what_it_shows() {
    let scratch = Scratch::new("empty");
    let facts = scratch.facts();
    assert!(
        facts.environment.got().is_none(),
        "a folder has no environment"
    );
    let users = facts.users.got().expect("users");
    assert!(users.process.is_unknown());
    assert_eq!(users.judged, None);
    assert!(facts.sysinfo.is_unknown(), "that would be another machine");
    assert!(
        library(&facts, "libcuda.so.1").is_absent(),
        "/usr/lib is there"
    );
    let kernel = facts.kernel.got().expect("kernel");
    assert!(kernel.machine.is_unknown());

    let nothing = Scratch::new("nothing");
    fs::remove_dir_all(&nothing.0).expect("it can be emptied");
    fs::create_dir_all(&nothing.0).expect("a folder");
    let facts = nothing.facts();
    assert!(facts.os_release.is_unknown());
    assert!(facts.module_files.is_unknown());
    assert!(library(&facts, "libcuda.so.1").is_unknown());
    assert!(loaded(&facts, "nvidia").is_unknown());
    assert!(!nodes(&facts).dev.whole);
    assert!(nodes(&facts).nvidia_modprobe.is_unknown());
}

#[test]
fn files_that_are_no_files() {
    let scratch = Scratch::new("hostile");
    scratch.fifo("/etc/os-release");
    scratch.fifo("/etc/modprobe.d/a-fifo.conf");
    scratch.link("/etc/modprobe.d/b-masked.conf", "/dev/null");
    scratch.write("/usr/lib/modprobe.d/b-masked.conf", b"blacklist nvidia\n");
    scratch.write(
        "/etc/modprobe.d/c-bytes.conf",
        b"\xff\xfe\x1b[31m\nblacklist nvidia\x1b[0m\nblacklist amdgpu\n\0\n",
    );
    scratch.link("/etc/modprobe.d/d-loop.conf", "d-loop.conf");
    scratch.folder("/etc/modprobe.d/e-folder.conf");
    scratch.folder("/etc/group");
    scratch.write("/etc/passwd", &[b'x'; 300_000]);
    scratch.write(
        "/proc/devices",
        b"Character devices:\n4294967296 nvidia\n-1 drm\n",
    );
    scratch.write("/proc/meminfo", b"MemTotal: -1 kB\nMemAvailable: 1 MB\n");
    scratch.fifo("/proc/cpuinfo");
    scratch.write("/proc/uptime", b"\xff");
    scratch.write("/proc/sys/kernel/tainted", b"99999999999999999999999");
    let mounts: String = (0..5000)
        .map(|number| format!("1 2 0:6 / /dev/\\04{number} rw - t s rw\n"))
        .collect();
    scratch.write("/proc/self/mountinfo", mounts.as_bytes());
    let efi = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    scratch.write(efi, b"\x06\0\0\0");
    scratch.write("/usr/local/cuda-12.8/version.json", &[b'['; 1_000_000]);
    scratch.link("/opt/rocm", "/opt/rocm");
    scratch.write("/dev/nvidiactl", b"no device");
    scratch.folder("/dev/dri/renderD128");
    let facts = scratch.facts();
    assert!(facts.os_release.is_unknown());
    let config = facts.modprobe.got().expect("modprobe");
    assert!(config.files["/etc/modprobe.d/a-fifo.conf"].is_unknown());
    assert_eq!(
        config.files["/etc/modprobe.d/b-masked.conf"],
        Seen::Got(Vec::new())
    );
    assert!(
        !config
            .files
            .contains_key("/usr/lib/modprobe.d/b-masked.conf")
    );
    assert_eq!(
        lines(&facts, "/etc/modprobe.d/c-bytes.conf"),
        ["blacklist amdgpu"]
    );
    assert!(config.files["/etc/modprobe.d/d-loop.conf"].is_unknown());
    assert!(config.files["/etc/modprobe.d/e-folder.conf"].is_unknown());
    let users = facts.users.got().expect("users");
    assert!(users.groups.is_unknown());
    assert!(facts.char_devices.got().expect("majors").majors.is_empty());
    let hardware = facts.proc_hardware.got().expect("hardware");
    assert!(hardware.memory_bytes.is_unknown() && hardware.memory_available_bytes.is_unknown());
    assert!(hardware.cpu.is_unknown() && hardware.hypervisor_flag.is_unknown());
    let kernel = facts.kernel.got().expect("kernel");
    assert!(kernel.tainted.is_unknown() && kernel.uptime_seconds.is_unknown());
    let security = facts.security.got().expect("security");
    assert!(security.secure_boot.is_unknown());
    let software = facts.software.got().expect("software");
    let toolkits = software
        .cuda_toolkits
        .got()
        .expect("a folder with a version file");
    assert!(toolkits["/usr/local/cuda-12.8"].is_unknown());
    assert!(software.rocm.is_unknown());
    assert!(library(&facts, "libamdhip64.so").is_unknown());
    let control = &nodes(&facts).dev.items["/dev/nvidiactl"];
    assert_eq!(
        control.stat.got().map(|stat| stat.kind.as_str()),
        Some("file")
    );
    assert!(control.open.is_unknown());
}

#[test]
fn folders_without_end() {
    let scratch = Scratch::new("endless");
    for number in 0..3000 {
        scratch.write(
            &format!("/etc/modprobe.d/{number}.conf"),
            b"blacklist nvidia\n",
        );
        scratch.write(&format!("/dev/nvidia{number}"), b"");
    }
    for number in 0..100 {
        scratch.folder(&format!("/lib/modules/5.0.{number}"));
        scratch.folder(&format!("/lib/modules/6.1.0/updates/{number}"));
        scratch.folder(&format!("/usr/local/cuda-{number}/bin/nvcc"));
        scratch.folder(&format!("/opt/rocm-{number}"));
    }
    scratch.write("/proc/sys/kernel/osrelease", b"6.1.0\n");
    let dep: String = (0..50_000)
        .map(|number| format!("updates/{number}/nvidia.ko: x\n"))
        .collect();
    scratch.write("/lib/modules/6.1.0/modules.dep", dep.as_bytes());
    scratch.write("/lib/modules/6.1.0/extra/README", b"no folder");
    scratch.write("/lib/modules/4.0.0", b"no folder either");
    let facts = scratch.facts();
    let files = facts.module_files.got().expect("module files");
    assert!(!files.kernels.whole, "not all were looked at");
    assert!(files.kernels.items.len() <= 32);
    let running = &files.kernels.items["6.1.0"];
    assert!(!running.modules.whole);
    assert!(!nodes(&facts).dev.whole);
    assert!(nodes(&facts).dev.get("/dev/nvidia-uvm").is_unknown());
    let config = facts.modprobe.got().expect("modprobe");
    assert_eq!(config.folders["/etc/modprobe.d"], Seen::Got(false));
}

#[test]
fn a_readme_among_module_folders_is_no_gap() {
    let scratch = Scratch::new("readme");
    scratch.write("/proc/sys/kernel/osrelease", b"6.1.0\n");
    scratch.write("/lib/modules/6.1.0/modules.dep", b"kernel/a.ko:\n");
    scratch.write("/lib/modules/6.1.0/extra/README", b"no folder");
    scratch.write(
        "/lib/modules/6.1.0/weak-updates/updates/nvidia.ko",
        b"no module",
    );
    scratch.link("/lib/modules/6.1.0/build", "/usr/src/gone");
    let facts = scratch.facts();
    let running = kernel(&facts, "6.1.0");
    assert!(running.modules.whole);
    assert!(running.modules.get("amdgpu").is_absent());
    let nvidia = &running.modules.items["nvidia"][0];
    assert!(nvidia.info.is_unknown(), "that is no module");
    assert_eq!(running.headers, Seen::Got(false), "the link leads nowhere");
}

#[test]
fn trees_of_real_machines() {
    let Some(folder) = machines().map(|folder| folder.with_file_name("fixtures")) else {
        return;
    };
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the folder of trees") {
        let root = entry.expect("an entry").path().join("root");
        if !root.is_dir() {
            continue;
        }
        count += 1;
        let source = Root::open(&root).expect("a root");
        let host = Host::new(Box::new(source), Redactor::off(), Options::default());
        assert_told_again(&root.display().to_string(), host);
    }
    assert!(count > 0, "no tree was found");
}

#[test]
fn builders_of_modules() {
    let scratch = Scratch::new("builders");
    let tree = "/var/lib/dkms/nvidia/580.95.05";
    scratch.write(&format!("{tree}/6.1.0/x86_64/module/nvidia.ko"), b"x");
    scratch.write(&format!("{tree}/6.2.0/x86_64/log/make.log"), b"Error 2");
    scratch.write(&format!("{tree}/build/make.log"), b"Error 2");
    scratch.link(&format!("{tree}/source"), "/usr/src/nvidia-580.95.05");
    scratch.link(
        "/var/lib/dkms/nvidia/kernel-6.1.0-x86_64",
        "580.95.05/6.1.0/x86_64",
    );
    scratch.folder("/var/lib/dkms/nvidia/original_module");
    scratch.folder("/var/lib/dkms/zfs/2.2");
    scratch.folder("/usr/src/nvidia-580.95.05");
    scratch.folder("/usr/src/linux-headers-6.1.0");
    scratch.folder("/var/cache/akmods/nvidia");
    scratch.write("/usr/src/akmods/nvidia-kmod-580.95.05.src.rpm", b"x");
    scratch.write("/usr/src/akmods/zfs-kmod.src.rpm", b"x");
    let facts = scratch.facts();
    let dkms = facts.dkms.got().expect("dkms");
    let modules = dkms.modules.got().expect("tree");
    assert_eq!(modules.items.len(), 1);
    let versions = &modules.items["nvidia"];
    assert_eq!(versions.items.len(), 1, "links are no versions");
    let kernels = &versions.items["580.95.05"].kernels;
    assert_eq!(kernels.get("6.1.0"), Seen::Got(&()));
    assert!(kernels.get("6.2.0").is_absent(), "that build failed");
    assert_eq!(kernels.items.len(), 1);
    assert_eq!(dkms.sources, Seen::Got(vec!["nvidia-580.95.05".to_owned()]));
    let mut akmods = dkms.akmods.got().expect("akmods").clone();
    akmods.sort();
    assert_eq!(akmods, ["nvidia", "nvidia-kmod-580.95.05.src.rpm"]);
}
