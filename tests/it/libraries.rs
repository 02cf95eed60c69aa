//! Drivers' libraries that answer, fail, hang, crash and lie: stand-ins of `tests/fakes/`, built here, asked by the real program.

use crate::common::{
    AGES, Folder, GPU, Ran, differences, gpu, gpucheck, have, nvidia_tree, plain, root, run,
    skipped,
};
use gpucheck::facts::nvml::{CudaDriver, MigMemory, Nvml, NvmlDevice};
use gpucheck::facts::{Facts, Failure, Seen, Why};
use gpucheck::worker::{Event, Gathered, Limits, Plan, gather};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A stand-in, built once: `nvml`, `nvml_old`, `cuda`, `rocm_smi`, `rocm_smi_old`. None: it cannot be built or loaded here, which is said.
pub fn fake(name: &str) -> Option<PathBuf> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = BUILT.get_or_init(build).as_ref()?;
    Some(folder.join(name))
}

/// Where a stand-in has the name of the library itself: the folder that the loader looks into.
fn fakes_by_name() -> Option<PathBuf> {
    fake("installed")
}

fn rustc() -> String {
    std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())
}

/// Compiles `tests/fakes/NAME.rs` alone, with nothing but the standard library.
pub fn compile(name: &str, kind: &str, into: &Path) {
    let source = format!("{}/tests/fakes/{name}.rs", env!("CARGO_MANIFEST_DIR"));
    let built = Command::new(rustc())
        .args(["--edition", "2024", "--crate-type", kind])
        .args(["-C", "opt-level=1", "-o"])
        .arg(into)
        .arg(source)
        .output()
        .expect("rustc");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
}

fn build() -> Option<PathBuf> {
    if !have(&[&rustc()]) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fakes");
    let installed = folder.join("installed");
    fs::create_dir_all(&installed).expect("a folder");
    for name in ["nvml", "nvml_old", "cuda", "rocm_smi", "rocm_smi_old"] {
        compile(name, "cdylib", &folder.join(name));
    }
    for (name, library) in [("nvml", "libnvidia-ml.so.1"), ("cuda", "libcuda.so.1")] {
        fs::copy(folder.join(name), installed.join(library)).expect("a copy");
    }
    // As root only what nobody else could have put there is loaded, and that counts here, too.
    let real = folder.canonicalize().expect("a folder");
    for above in real.ancestors() {
        let about = fs::metadata(above).expect("a folder");
        if rustix::process::geteuid().is_root() && (about.uid() != 0 || about.mode() & 0o022 != 0) {
            skipped(&format!("root loads nothing from `{}`", above.display()));
            return None;
        }
    }
    Some(folder)
}

/// What a worker of the library says, started by hand.
pub fn probe(worker: &str, library: &Path, acts: &str) -> Ran {
    let mut command = gpucheck();
    command.args(["probe", worker, "--library"]).arg(library);
    for variable in ["FAKE_NVML", "FAKE_CUDA", "FAKE_ROCM_SMI"] {
        command.env(variable, acts);
    }
    run(&mut command).sound(&format!("{worker} {acts}"))
}

/// What it answered.
pub fn facts(ran: &Ran) -> Facts {
    let mut facts = Facts::default();
    for line in ran.text().lines() {
        if let Some(Event::Facts(source, json)) = Event::parse(line) {
            assert!(facts.set_field_from_json(source, json), "{line}");
        }
    }
    facts
}

fn nvml(library: &Path, acts: &str) -> Seen<Nvml> {
    facts(&probe("nvml", library, acts)).nvml
}

fn got(library: &Path, acts: &str) -> Nvml {
    let told = nvml(library, acts);
    told.into_got()
        .unwrap_or_else(|| panic!("{acts}: no answer"))
}

pub fn error<T>(what: &str) -> Seen<T> {
    Seen::error(what)
}

/// A worker as the program starts it, and how long it took. Behaviour goes with its environment, so it is started through
/// `env`.
pub fn follow(
    worker: &'static str,
    library: &Path,
    acts: &str,
    limit: Duration,
) -> (Gathered, Duration) {
    let variable = format!("FAKE_{}={acts}", worker.to_uppercase());
    let library = format!("--library={}", library.display());
    let program = env!("CARGO_BIN_EXE_gpucheck");
    let arguments = [&variable, program, "probe", worker, &library];
    let start = Instant::now();
    let gathered = gather(&Plan {
        program: "/usr/bin/env".into(),
        arguments: arguments.iter().map(Into::into).collect(),
        sources: &[worker],
        limits: Limits {
            source: limit,
            ..Limits::default()
        },
        waiting: &|_| {},
    });
    (gathered, start.elapsed())
}

/// How the worker failed; whatever it is, it is over soon.
fn failure(library: &Path, acts: &str) -> Failure {
    let limit = Duration::from_millis(1500);
    let (gathered, took) = follow("nvml", library, acts, limit);
    assert!(took < limit + AGES / 4, "{acts}: {took:?}");
    match gathered.facts.nvml {
        Seen::Failed(failure) => failure,
        other => panic!("{acts}: {other:?}"),
    }
}

#[test]
fn one_gpu_with_all_its_values() {
    let Some(library) = fake("nvml") else { return };
    let nvml = got(&library, "busy");
    assert_eq!(nvml.library.as_deref(), library.to_str());
    assert_eq!(*nvml.driver_version, Seen::Got("550.120".to_owned()));
    assert_eq!(*nvml.cuda_driver_version, Seen::Got(12_040));
    assert_eq!(*nvml.count, Seen::Got(1));
    let gpu = &nvml.devices[GPU];
    // Each value but those of which the stand-in says that there is none.
    let json = serde_json::to_value(gpu).expect("JSON");
    let unknown = |value: &Value| value.get("unknown").is_some();
    let named = json.as_object().expect("an object").iter();
    let missing: Vec<&String> = named
        .filter(|(_, value)| unknown(value))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        missing,
        [
            "licence",
            "mig_instances",
            "mig_memory",
            "mig_mode",
            "mig_mode_pending",
            "mig_uuids"
        ]
    );
    assert_eq!(*gpu.mig_mode, error("NOT_SUPPORTED"));
    let text = |told: &Seen<String>| told.got().cloned().unwrap_or_default();
    assert_eq!(text(&gpu.name), "NVIDIA GeForce RTX 4090");
    assert_eq!(text(&gpu.vbios), "95.02.3C.00.8E");
    assert_eq!(text(&gpu.compute_capability), "8.9");
    assert_eq!(text(&gpu.compute_mode), "default");
    assert_eq!(text(&gpu.performance_state), "P8");
    assert_eq!(text(&gpu.fabric_state), "completed");
    assert_eq!(text(&gpu.fabric_status), "SUCCESS");
    assert_eq!(*gpu.memory_bytes, Seen::Got(24 << 30));
    assert_eq!(*gpu.memory_used_bytes, Seen::Got(1 << 30));
    assert_eq!(*gpu.bar1_bytes, Seen::Got(256 << 20));
    assert_eq!(*gpu.power_mw, Seen::Got(23_456));
    assert_eq!((*gpu.power_limit_min_mw).clone(), Seen::Got(150_000));
    assert_eq!((*gpu.power_limit_max_mw).clone(), Seen::Got(600_000));
    assert_eq!(
        [&*gpu.slowdown_c, &*gpu.shutdown_c],
        [&Seen::Got(97), &Seen::Got(100)]
    );
    assert_eq!(
        [&*gpu.sm_clock_mhz, &*gpu.memory_clock_mhz],
        [&Seen::Got(211), &Seen::Got(212)]
    );
    assert_eq!(
        [&*gpu.ecc, &*gpu.ecc_pending],
        [&Seen::Got(false), &Seen::Got(true)]
    );
    assert_eq!(
        [&*gpu.ecc_uncorrected, &*gpu.ecc_uncorrected_lifetime],
        [&Seen::Got(0), &Seen::Got(7)]
    );
    let rows = gpu.remapped_rows.got().expect("rows");
    assert_eq!(
        (
            rows.correctable,
            rows.uncorrectable,
            rows.pending,
            rows.failure
        ),
        (1, 2, true, false)
    );
    let pages = gpu.retired_pages.got().expect("pages");
    assert_eq!(
        (pages.single_bit, pages.double_bit, pages.pending),
        (3, 4, false)
    );
    let [process] = &gpu.processes.got().expect("processes")[..] else {
        panic!("{:?}", gpu.processes);
    };
    assert_eq!(
        (process.used_bytes, process.kind.as_str()),
        (Some(7 << 20), "compute")
    );
    // In a container the number may be that of another process.
    let first =
        fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns == Path::new("pid:[4026531836]"));
    assert_eq!(process.name.as_deref(), first.then_some("gpucheck"));
}

#[test]
fn eight_gpus() {
    let Some(library) = fake("nvml") else { return };
    let nvml = got(&library, "gpus=8");
    assert_eq!(*nvml.count, Seen::Got(8));
    let seen: Vec<(&str, u32)> = nvml
        .devices
        .iter()
        .map(|(at, gpu)| (at.as_str(), gpu.index))
        .collect();
    let expected: Vec<(String, u32)> = (0..8)
        .map(|index| (format!("0000:{:02x}:00.0", index + 1), index))
        .collect();
    assert_eq!(
        seen,
        expected
            .iter()
            .map(|(at, index)| (at.as_str(), *index))
            .collect::<Vec<_>>()
    );
    assert!(nvml.unreachable.is_empty());
}

#[test]
fn a_gpu_in_parts_and_a_virtual_one() {
    let Some(library) = fake("nvml") else { return };
    let nvml = got(&library, "gpus=2,mig,vgpu");
    let gpu = &nvml.devices[GPU];
    assert_eq!(*gpu.mig_mode, Seen::Got("enabled".to_owned()));
    assert_eq!(*gpu.mig_instances, Seen::Got(2));
    let memory = gpu.mig_memory.got().expect("memory of the parts");
    let each = |part: &MigMemory| (part.bytes, part.used_bytes);
    assert_eq!(
        memory.iter().map(each).collect::<Vec<_>>(),
        [(24 << 30, 1 << 30); 2]
    );
    let uuids = gpu.mig_uuids.got().expect("UUIDs");
    assert!(
        uuids.len() == 2 && uuids.iter().all(|uuid| uuid.starts_with("MIG-")),
        "{uuids:?}"
    );
    assert_eq!(*gpu.licence, Seen::Got("unlicensed".to_owned()));
    let other = &nvml.devices["0000:02:00.0"];
    assert_eq!(*other.mig_mode, Seen::Got("disabled".to_owned()));
    assert_eq!((*other.mig_instances).clone(), Seen::Got(0));
}

#[test]
fn uuids_are_private() {
    let Some(library) = fake("nvml") else { return };
    let ran = probe("nvml", &library, "gpus=2,mig");
    assert!(!ran.text().contains("8c1f3f3e"), "{}", ran.text());
    let mut command = gpucheck();
    command
        .args(["probe", "nvml", "--keep-private", "--library"])
        .arg(&library)
        .env("FAKE_NVML", "mig");
    let kept = run(&mut command).text();
    assert!(
        kept.contains("GPU-8c1f3f3e-") && kept.contains("MIG-8c1f3f3e-"),
        "{kept}"
    );
}

#[test]
fn errors_have_nvidias_names() {
    let Some(library) = fake("nvml") else { return };
    for (number, name) in [
        (1, "UNINITIALIZED"),
        (2, "INVALID_ARGUMENT"),
        (4, "NO_PERMISSION"),
        (8, "INSUFFICIENT_POWER"),
        (9, "DRIVER_NOT_LOADED"),
        (10, "TIMEOUT"),
        (11, "IRQ_ISSUE"),
        (12, "LIBRARY_NOT_FOUND"),
        (13, "FUNCTION_NOT_FOUND"),
        (14, "CORRUPTED_INFOROM"),
        (15, "GPU_IS_LOST"),
        (16, "RESET_REQUIRED"),
        (17, "OPERATING_SYSTEM"),
        (18, "LIB_RM_VERSION_MISMATCH"),
        (20, "MEMORY"),
        (29, "GPU_NOT_FOUND"),
        (999, "UNKNOWN"),
        (777, "makes no sense: 777"),
    ] {
        assert_eq!(
            nvml(&library, &format!("nvmlInit_v2={number}")),
            error(name)
        );
    }
    let nvml = got(
        &library,
        "nvmlDeviceGetPowerUsage=3,nvmlDeviceGetName=999,nvmlSystemGetDriverVersion=1",
    );
    assert_eq!(*nvml.driver_version, error("UNINITIALIZED"));
    assert_eq!(*nvml.devices[GPU].power_mw, error("NOT_SUPPORTED"));
    assert_eq!(*nvml.devices[GPU].name, error("UNKNOWN"));
    assert_eq!(*nvml.devices[GPU].minor, Seen::Got(0));
    let nvml = got(&library, "nvmlDeviceGetCount_v2=15");
    assert_eq!(
        (nvml.count.0, nvml.devices.len()),
        (error("GPU_IS_LOST"), 0)
    );
}

#[test]
fn a_gpu_that_is_lost_costs_no_other() {
    let Some(library) = fake("nvml") else { return };
    let whole = got(&library, "gpus=4");
    let nvml = got(&library, "gpus=4,lost=2");
    assert_eq!(nvml.unreachable, [(2, "GPU_IS_LOST".to_owned())].into());
    let mut others = whole.devices.clone();
    others.remove("0000:03:00.0");
    assert_eq!(nvml.devices, others);

    let nvml = got(&library, "gpus=4,dies=1");
    let dead = nvml.devices.get("0000:02:00.0").expect("it is listed");
    assert_eq!(*dead.name, Seen::Got("NVIDIA GeForce RTX 4090".to_owned()));
    assert_eq!(*dead.temperature_c, error("GPU_IS_LOST"));
    assert_eq!(*dead.processes, error("GPU_IS_LOST"));
    for at in ["0000:01:00.0", "0000:03:00.0", "0000:04:00.0"] {
        assert_eq!(nvml.devices[at], whole.devices[at]);
    }
}

#[test]
fn a_driver_that_is_older_than_the_question() {
    let Some(library) = fake("nvml_old") else {
        return;
    };
    let nvml = got(&library, "");
    let missing = "FUNCTION_NOT_FOUND";
    assert_eq!(*nvml.driver_version, error(missing));
    let gpu = &nvml.devices["0000:0a:00.0"];
    assert_eq!(*gpu.memory_bytes, Seen::Got(12 << 30));
    assert_eq!(*gpu.name, error(missing));
    assert_eq!(*gpu.remapped_rows, error(missing));
    assert_eq!(*gpu.processes, error(missing));
    // A library of somebody else.
    let Some(cuda) = fake("cuda") else { return };
    assert_eq!(self::nvml(&cuda, ""), error(missing));
}

#[test]
fn what_cannot_be_true_is_not_believed() {
    let Some(library) = fake("nvml") else { return };
    let ran = probe("nvml", &library, "gpus=3,garbage");
    assert!(!ran.text().contains("RED"), "{}", ran.text());
    let nvml = facts(&ran).nvml.into_got().expect("an answer");
    assert_eq!(nvml.unreachable.keys().collect::<Vec<_>>(), [&1]);
    for gpu in nvml.devices.values() {
        let NvmlDevice {
            name,
            uuid,
            memory_bytes,
            memory_used_bytes,
            bar1_bytes,
            ..
        } = gpu;
        assert!(name.is_unknown() && uuid.is_unknown());
        assert!(
            memory_bytes.is_unknown() && memory_used_bytes.is_unknown() && bar1_bytes.is_unknown()
        );
        assert!(gpu.compute_capability.is_unknown() && gpu.compute_mode.is_unknown());
        assert!(
            gpu.power_mw.is_unknown()
                && gpu.temperature_c.is_unknown()
                && gpu.sm_clock_mhz.is_unknown()
        );
        assert!(
            gpu.mig_mode.is_unknown() && gpu.mig_uuids.is_unknown() && gpu.processes.is_unknown()
        );
        assert!(gpu.retired_pages.is_unknown() && gpu.link_width.is_unknown());
    }
    let many = got(&library, "gpus=10000");
    assert_eq!(*many.count, error("makes no sense: 10000"));
    assert_eq!(many.devices.len(), 256);
}

#[test]
fn hangs_are_named_and_end() {
    let Some(library) = fake("nvml") else { return };
    for (acts, at) in [
        ("hang=nvmlInit_v2", "nvmlInit_v2".to_owned()),
        (
            "gpus=2,hang=nvmlDeviceGetPowerUsage",
            format!("nvmlDeviceGetPowerUsage {GPU}"),
        ),
        (
            "hang=nvmlDeviceGetHandleByIndex_v2",
            "nvmlDeviceGetHandleByIndex_v2 GPU 0".to_owned(),
        ),
    ] {
        assert_eq!(failure(&library, acts), Failure::TimedOut { at });
    }
    // Nobody waits for a shutdown.
    assert!(nvml(&library, "hang=nvmlShutdown").got().is_some());
}

#[test]
fn crashes_are_told_by_name() {
    let Some(library) = fake("nvml") else { return };
    for (acts, how) in [
        ("segv=nvmlInit_v2", "SIGSEGV"),
        ("segv=nvmlDeviceGetTemperature", "SIGSEGV"),
        ("abort=nvmlDeviceGetUUID", "SIGABRT"),
    ] {
        let how = how.to_owned();
        assert_eq!(failure(&library, acts), Failure::Crashed { how });
    }
}

#[test]
fn what_a_library_prints_disturbs_nobody() {
    let Some(library) = fake("nvml") else { return };
    let (gathered, took) = follow("nvml", &library, "gpus=8,flood", Duration::from_secs(20));
    assert!(took < AGES / 2, "{took:?}");
    let nvml = gathered.facts.nvml.got().expect("an answer");
    assert_eq!(nvml.devices.len(), 8);
}

#[test]
fn what_a_library_leaves_behind_ends_with_it() {
    let Some(library) = fake("nvml") else { return };
    let mark = format!("gpus=1,fork=nvmlDeviceGetName,mark={}", std::process::id());
    let (gathered, _) = follow("nvml", &library, &mark, Duration::from_secs(20));
    assert!(gathered.facts.nvml.got().is_some());
    let left = || {
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        let mut environments =
            processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
        environments.any(|bytes| String::from_utf8_lossy(&bytes).contains(&mark))
    };
    let start = Instant::now();
    while left() {
        assert!(start.elapsed() < AGES, "it lives");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_is_no_library_is_not_loaded() {
    let Some(library) = fake("nvml") else { return };
    let folder = Folder::new();
    let mut foreign = fs::read(&library).expect("a library");
    // e_machine: s390.
    foreign[18..20].copy_from_slice(&22_u16.to_le_bytes());
    let bytes = foreign.len();
    let mut cut = fs::read(&library).expect("a library");
    cut.truncate(bytes / 3);
    for (name, content) in [
        ("text", &b"#!/bin/sh\n"[..]),
        ("empty", b""),
        ("zeros", &[0; 100_000]),
        ("foreign", &foreign),
        ("head", &cut[..64]),
    ] {
        let path = folder.write(name, content);
        match nvml(&path, "") {
            Seen::Failed(Failure::Error { what }) => {
                assert!(what.starts_with("not loaded: "), "{name}: {what}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    // What is missing of this one may be noticed when it is loaded, or when it is run.
    cut.truncate(20_000);
    let cut = folder.write("cut", &cut);
    let (gathered, _) = follow("nvml", &cut, "", AGES / 4);
    assert!(matches!(gathered.facts.nvml, Seen::Failed(_)));
    for nothing in [folder.path("nothing"), folder.0.clone()] {
        assert!(matches!(
            nvml(&nothing, ""),
            Seen::Failed(Failure::Error { .. })
        ));
    }
    let ran = run(gpucheck().args(["probe", "nvml", "--library", "libc.so.6"]));
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    let ran = run(gpucheck().args(["probe", "nvml"]));
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("--library"), "{}", ran.stderr);
}

#[test]
fn a_library_changes_nothing() {
    let Some(library) = fake("nvml") else { return };
    let folder = Folder::new();
    folder.write("there", "as it was");
    let before = fs::metadata(folder.path("there")).expect("a file");
    let acts = format!("harm={}", folder.0.display());
    assert!(nvml(&library, &acts).got().is_some(), "something worked");
    let names: Vec<_> = fs::read_dir(&folder.0)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["there"]);
    assert_eq!(
        fs::read_to_string(folder.path("there")).expect("a file"),
        "as it was"
    );
    let after = fs::metadata(folder.path("there")).expect("a file");
    assert_eq!(before.permissions(), after.permissions());
}

#[test]
fn root_loads_nothing_that_others_can_write() {
    let Some(library) = fake("nvml") else { return };
    if !root() || !have(&["setpriv"]) {
        return;
    }
    let folder = Folder::public();
    let copy = folder.path("libnvidia-ml.so.1");
    fs::copy(&library, &copy).expect("a copy");
    // Below /tmp, where everybody can write.
    assert_eq!(nvml(&copy, ""), Seen::Unasked(Why::RunsAsRoot));
    let program = folder.path("gpucheck");
    fs::copy(env!("CARGO_BIN_EXE_gpucheck"), &program).expect("a copy");
    for path in [&copy, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("own file");
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program);
    command
        .args(["probe", "nvml", "--library"])
        .arg(&copy)
        .current_dir("/");
    let ran = run(plain(&mut command)).sound("nobody");
    assert!(facts(&ran).nvml.got().is_some(), "{}", ran.text());
}

#[test]
fn the_cuda_driver_tells_its_version() {
    let Some(library) = fake("cuda") else { return };
    let told = |acts: &str| facts(&probe("cuda", &library, acts)).cuda;
    let CudaDriver {
        library: file,
        driver_version,
    } = told("13020").into_got().expect("an answer");
    assert_eq!(
        (file.as_deref(), driver_version.0),
        (library.to_str(), Seen::Got(13_020))
    );
    assert_eq!(told("-100"), error("CUDA error 100"));
    let odd = told("7").into_got().expect("an answer");
    assert_eq!(*odd.driver_version, error("makes no sense: 7"));
    let Some(other) = fake("nvml") else { return };
    assert_eq!(
        facts(&probe("cuda", &other, "")).cuda,
        error("FUNCTION_NOT_FOUND")
    );
}

/// A machine in a mount namespace: this /sys, and the libraries of `LD_LIBRARY_PATH`. None: that cannot be had here.
struct Machine {
    tree: Folder,
    libraries: PathBuf,
}

impl Machine {
    fn new() -> Option<Machine> {
        if !have(&["unshare", "mount"]) {
            return None;
        }
        let machine = Machine {
            tree: nvidia_tree(),
            libraries: fakes_by_name()?,
        };
        let trial = run(&mut machine.command(&["--version"]));
        if trial.status != Some(0) {
            skipped(&format!("nothing may be mounted here: {}", trial.stderr));
            return None;
        }
        Some(machine)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let root = rustix::process::geteuid().is_root();
        let script = "mount --bind \"$1/sys\" /sys; program=$2; shift 2; exec \"$program\" \"$@\"";
        let mut command = Command::new("unshare");
        command
            .arg(if root { "-m" } else { "-Urm" })
            .args(["sh", "-e", "-c", script, "sh"])
            .arg(&self.tree.0)
            .arg(env!("CARGO_BIN_EXE_gpucheck"))
            .args(arguments)
            .env("LD_LIBRARY_PATH", &self.libraries)
            .env_remove("FAKE_NVML")
            .env_remove("FAKE_CUDA");
        plain(&mut command);
        command
    }

    fn run(&self, arguments: &[&str], acts: &str) -> Ran {
        let mut command = self.command(arguments);
        command.env("FAKE_NVML", acts);
        if acts.contains("hang") {
            command.env("FAKE_CUDA", "hang");
        }
        run(&mut command).good(acts)
    }

    /// The report, after a capture that must come out the same when it is replayed.
    fn report(&self, more: &[&str], acts: &str) -> Value {
        let json = ["--format", "json", "--facts"];
        let report = self.run(&[&json[..], more].concat(), acts).json();
        let captured = self.run(&[&["capture"][..], more].concat(), acts);
        assert!(
            !captured.text().contains("8c1f3f3e"),
            "{acts}: a private value"
        );
        for library in ["nvml", "cuda", "rocm_smi"] {
            let start = format!("answer @{library} ");
            let text = captured.text();
            let answers = text.lines().filter(|line| line.starts_with(&start));
            assert_eq!(answers.count(), 1, "{acts}: {library}");
        }
        let folder = Folder::new();
        let machine = folder.write("machine.txt", &captured.stdout);
        let replay = run(gpucheck()
            .args(json)
            .args(more)
            .arg("--replay")
            .arg(machine))
        .good(acts)
        .json();
        for part in ["findings", "readiness", "gpus"] {
            let found = differences(&report[part], &replay[part]);
            assert!(found.is_empty(), "{acts}: {part}: {found:?}");
        }
        // What the clock and the load of the machine change is none of the libraries' doing.
        for source in [
            "packages",
            "services",
            "kernel_log",
            "nvml",
            "cuda",
            "rocm_smi",
            "software",
        ] {
            let mut found = differences(&report["facts"][source], &replay["facts"][source]);
            found.retain(|difference| !difference.contains("/pid:"));
            assert!(found.is_empty(), "{acts}: {source}: {found:?}");
        }
        report
    }
}

#[test]
fn a_whole_run_with_libraries() {
    let Some(machine) = Machine::new() else {
        return;
    };
    for bus in 2..=8 {
        gpu(&machine.tree, &format!("0000:{bus:02x}:00.0"), "nvidia");
    }
    let report = machine.report(&[], "gpus=8");
    let nvml = &report["facts"]["nvml"]["got"];
    assert_eq!(nvml["count"], 8);
    assert_eq!(
        nvml["devices"].as_object().map(|devices| devices.len()),
        Some(8)
    );
    assert_eq!(report["facts"]["cuda"]["got"]["driver_version"], 12_040);
    assert_eq!(report["facts"]["rocm_smi"]["unasked"], "no-such-hardware");

    let report = machine.report(&[], "nvmlInit_v2=18");
    assert_eq!(
        report["facts"]["nvml"]["failed"]["error"]["what"],
        "LIB_RM_VERSION_MISMATCH"
    );
    let report = machine.report(&[], "segv=nvmlDeviceGetName");
    assert_eq!(
        report["facts"]["nvml"]["failed"]["crashed"]["how"],
        "SIGSEGV"
    );

    let report = machine.report(&["--quick"], "");
    for library in ["nvml", "cuda"] {
        assert_eq!(report["facts"][library]["unasked"], "quick", "{library}");
    }
}

#[test]
fn libraries_that_hang_are_waited_for_together() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let limit = Duration::from_millis(2500);
    let start = Instant::now();
    let ran = machine.run(
        &["--format", "json", "--facts", "--timeout", "2.5"],
        "hang=nvmlInit_v2",
    );
    let took = start.elapsed();
    // One after the other they would take twice as long.
    assert!(took > limit && took < limit * 2, "{took:?}");
    for call in ["nvmlInit_v2", "cuDriverGetVersion"] {
        assert!(
            ran.stderr.contains(&format!("waiting for {call}")),
            "{}",
            ran.stderr
        );
    }
    let report = ran.json();
    assert_eq!(
        report["facts"]["nvml"]["failed"]["timed_out"]["at"],
        "nvmlInit_v2"
    );
    assert_eq!(
        report["facts"]["cuda"]["failed"]["timed_out"]["at"],
        "cuDriverGetVersion"
    );
    assert_eq!(report["gpus"].as_array().map(Vec::len), Some(1));
    let report = machine.report(&["--timeout", "1"], "hang=nvmlDeviceGetPowerUsage");
    let at = format!("nvmlDeviceGetPowerUsage {GPU}");
    assert_eq!(report["facts"]["nvml"]["failed"]["timed_out"]["at"], at);
}

#[test]
fn a_gpu_that_sleeps_is_let_alone() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let status = format!("sys/bus/pci/devices/{GPU}/power/runtime_status");
    machine.tree.write(&status, "suspended\n");
    let report = machine.report(&[], "");
    assert_eq!(report["facts"]["nvml"]["unasked"], "asleep");
    assert_eq!(report["facts"]["cuda"]["got"]["driver_version"], 12_040);
    let report = machine.report(&["--wake"], "");
    assert_eq!(report["facts"]["nvml"]["got"]["count"], 1);
}

#[test]
fn without_a_library_nothing_is_loaded() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    let empty = Folder::new();
    machine.libraries = empty.0.clone();
    let report = machine.report(&[], "");
    let what = report["facts"]["nvml"]["failed"]["error"]["what"]
        .as_str()
        .unwrap_or_default();
    if fs::exists("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").expect("/usr/lib") {
        return skipped("this machine has a driver of its own");
    }
    assert!(
        what.starts_with("not loaded: no libnvidia-ml.so.1"),
        "{what}"
    );
}

#[test]
fn below_a_root_no_library_is_asked() {
    let tree = nvidia_tree();
    let Some(library) = fake("nvml") else { return };
    tree.write(
        "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
        fs::read(library).expect("a library"),
    );
    let mut command = gpucheck();
    command
        .args(["--format", "json", "--facts", "--root"])
        .arg(&tree.0);
    let report = run(&mut command).good("root").json();
    assert_eq!(report["facts"]["nvml"]["unasked"], "not-captured");
    assert_eq!(report["facts"]["rocm_smi"]["unasked"], "no-such-hardware");
}

#[test]
fn where_no_gpu_is_no_second_worker_is_started() {
    if !have(&["strace"]) {
        return;
    }
    let tree = Folder::new();
    tree.folder("sys/kernel");
    tree.folder("sys/bus/pci/devices");
    let traces = Folder::new();
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-e", "trace=execve", "-o"])
        .arg(traces.path("trace"));
    command
        .arg(env!("CARGO_BIN_EXE_gpucheck"))
        .arg("--root")
        .arg(&tree.0);
    run(plain(&mut command)).good("strace");
    let trace = fs::read_to_string(traces.path("trace")).expect("a trace");
    let started: Vec<&str> = trace
        .lines()
        .filter(|line| line.contains("\"probe\""))
        .collect();
    assert_eq!(started.len(), 1, "{trace}");
}
