//! The machine that the tests run on, whatever it is, and odd ways to start the program on it.

use crate::common::{
    Folder, Ran, differences, gpucheck, have, nvidia_tree, plain, root, run, skipped,
};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn json(command: &mut Command, what: &str) -> Value {
    run(command).good(what).json()
}

/// Nothing in it says that there is no GPU because nothing could be asked.
fn assert_honest(report: &Value, what: &str) {
    assert_ne!(report["gpus_whole"], true, "{what}: {report:#}");
    for row in report["readiness"].as_array().into_iter().flatten() {
        assert_ne!(row["state"], "ready", "{what}: {row:#}");
    }
}

/// The bus of this machine shows no GPU.
fn no_gpu(report: &Value) -> bool {
    report["gpus_whole"] == true && report["gpus"].as_array().is_some_and(Vec::is_empty)
}

#[test]
fn a_machine_without_a_gpu_is_healthy() {
    let report = json(gpucheck().args(["--format", "json"]), "live");
    if !no_gpu(&report) {
        return skipped("a GPU is here, or nobody can tell");
    }
    assert_eq!(report["counts"]["errors"], 0, "{report:#}");
    assert_eq!(report["counts"]["warnings"], 0, "{report:#}");
    let live = run(&mut gpucheck());
    assert_eq!(live.status, Some(0), "{}", live.stderr);
    assert!(live.text().contains("GPU"), "{}", live.text());
    assert_eq!(
        run(gpucheck().args(["--fail-on", "warning"])).status,
        Some(0)
    );
    for stack in ["cuda", "rocm", "level-zero", "vulkan", "gpus=1"] {
        let run = run(gpucheck().args(["--require", stack]));
        assert_eq!(run.status, Some(1), "{stack}");
    }
}

/// Names, kinds, modes, owners and times of everything in /dev that belongs to GPUs, and the names of the rest.
fn device_nodes() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["/dev", "/dev/dri", "/dev/accel", "/dev/nvidia-caps"] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(there) = fs::symlink_metadata(&path) else {
                continue;
            };
            let name = path.display().to_string();
            let (mode, owner, device) = (there.mode(), (there.uid(), there.gid()), there.rdev());
            found.push(format!("{name} {mode:o} {owner:?} {device:x}"));
        }
    }
    found.sort();
    found
}

#[test]
fn nothing_is_changed_and_no_driver_library_is_loaded() {
    if !have(&["strace"]) {
        return;
    }
    let folder = Folder::new();
    let log = folder.path("strace");
    let before = device_nodes();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "300", "-o"]).arg(&log);
    command.args([
        "-e",
        "trace=%file,%network,ioctl,mount,init_module,finit_module,kill",
    ]);
    command.arg(env!("CARGO_BIN_EXE_gpucheck"));
    let traced = run(plain(&mut command));
    if traced.stderr.contains("Operation not permitted") && !log.exists() {
        return skipped("strace may not trace here");
    }
    traced.good("strace");
    assert_eq!(device_nodes(), before);
    let text = fs::read_to_string(log).expect("a log");
    let mut faults = Vec::new();
    let (mut opens, mut workers) = (0, 0);
    for line in text.lines() {
        // `PID call(arguments) = result`
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let name = call.split('(').next().unwrap_or_default();
        let opened = name.starts_with("open");
        opens += usize::from(opened);
        workers += usize::from(name == "execve" && call.contains("\"probe\""));
        let library = [
            "libnvidia-ml",
            "libcuda",
            "librocm_smi",
            "libamdhip",
            "libhsa-runtime",
            "libze_",
            "libvulkan",
            "libOpenCL",
            "libamd_smi",
            "libdrm",
            "libnvcuvid",
        ];
        if opened
            && !call.contains("O_PATH")
            && library.iter().any(|library| call.contains(library))
        {
            faults.push(line);
        }
        // `/dev/nvidiaN` is never opened: that starts the GPU.
        let gpu = call
            .split("\"/dev/nvidia")
            .nth(1)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if opened && gpu && !call.contains("O_PATH") {
            faults.push(line);
        }
        let writes = opened
            && ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
                .iter()
                .any(|flag| call.contains(flag));
        // A node is opened as a program would, to see whether it may.
        let may = [
            "/dev/dri/renderD",
            "/dev/kfd",
            "/dev/nvidiactl",
            "/dev/nvidia-uvm",
            "/dev/null",
            "/dev/dxg",
            "/dev/accel/",
        ];
        if writes && (call.contains("O_CREAT") || !may.iter().any(|path| call.contains(path))) {
            faults.push(line);
        }
        let changing = [
            "mknod",
            "mknodat",
            "unlink",
            "unlinkat",
            "rename",
            "renameat",
            "renameat2",
            "chmod",
            "fchmodat",
            "fchmodat2",
            "chown",
            "lchown",
            "fchownat",
            "link",
            "linkat",
            "symlink",
            "symlinkat",
            "mkdir",
            "mkdirat",
            "rmdir",
            "truncate",
            "utimensat",
            "mount",
            "umount2",
            "init_module",
            "finit_module",
            "connect",
            "bind",
            "sendto",
            "sendmsg",
            "listen",
            "accept4",
            "setxattr",
            "lsetxattr",
            "creat",
            "swapon",
            "chroot",
            "pivot_root",
        ];
        if changing.contains(&name) {
            faults.push(line);
        }
        // No other program is started: the two of them are gpucheck. `journalctl` is asked where the kernel's own buffer has
        // lost its beginning.
        let journal = call.contains("/journalctl\", [") && call.contains("\"--no-pager\"");
        let own = call.contains("gpucheck") || call.contains("/proc/self/exe");
        if name == "execve" && !own && !journal {
            faults.push(line);
        }
    }
    assert!(
        opens > 50,
        "{opens} opens: the trace is not what this test takes it for"
    );
    assert!(workers > 0, "no worker in the trace");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_pipe_ends() {
    let program = env!("CARGO_BIN_EXE_gpucheck");
    for line in [
        "\"$0\" | cat",
        "\"$0\" --format json | head -1",
        "\"$0\" capture | cat > /dev/null",
        "{ \"$0\"; } 2>&1 | cat",
    ] {
        let mut command = Command::new("sh");
        run(plain(command.args(["-c", line, program]))).good(line);
    }
}

#[test]
fn closed_streams() {
    let program = env!("CARGO_BIN_EXE_gpucheck");
    let expected = run(gpucheck().args(["--format", "json"]))
        .good("live")
        .json();
    for (line, writes) in [
        ("\"$0\" --format json <&-", true),
        ("\"$0\" --format json 2>&-", true),
        ("\"$0\" --format json <&- 2>&-", true),
        ("\"$0\" --format json >&-", false),
        ("\"$0\" --format json <&- >&- 2>&-", false),
        ("\"$0\" --replay - <&-", false),
        ("\"$0\" capture >&-", false),
    ] {
        let mut command = Command::new("sh");
        let run = run(plain(command.args(["-c", line, program]))).sound(line);
        if writes {
            assert_eq!(run.json()["gpus"], expected["gpus"], "{line}");
        }
    }
}

#[test]
fn an_empty_environment() {
    let expected = json(gpucheck().args(["--format", "json"]), "live");
    let report = json(
        gpucheck().env_clear().args(["--format", "json"]),
        "an empty environment",
    );
    assert_eq!(report["gpus"], expected["gpus"]);
    assert_eq!(report["counts"]["errors"], expected["counts"]["errors"]);
    run(gpucheck().env_clear()).good("an empty environment");
    run(gpucheck()
        .current_dir("/")
        .env("TERM", "dumb")
        .env("LANG", "C"))
    .good("dumb");
}

/// The dynamic loader that the program names, where it names one.
fn loader() -> Option<PathBuf> {
    let names = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    names.iter().map(PathBuf::from).find(|path| path.exists())
}

#[test]
fn started_through_the_loader() {
    let Some(loader) = loader() else {
        return skipped("no loader that this test knows");
    };
    let mut command = Command::new(loader);
    command
        .arg(env!("CARGO_BIN_EXE_gpucheck"))
        .args(["--format", "json"]);
    let run = run(plain(&mut command)).sound("the loader");
    // The report, or the statement that it cannot be made; never a report about nothing.
    if run.status == Some(2) {
        assert!(!run.stderr.is_empty());
        assert!(run.stdout.is_empty());
    } else {
        let expected = json(gpucheck().args(["--format", "json"]), "live");
        let report = run.json();
        assert_eq!(report["gpus"], expected["gpus"]);
        assert_eq!(report["gpus_whole"], expected["gpus_whole"]);
        assert_eq!(report["untold"], expected["untold"]);
    }
}

/// Runs a script in a mount namespace of its own, as root; `$0` is the program. None: that is not possible here.
fn unshared(script: &str, arguments: &[&Path]) -> Option<Ran> {
    if !root() || !have(&["unshare"]) {
        return None;
    }
    let mut trial = Command::new("unshare");
    let possible = trial
        .args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/sys"])
        .output();
    if !possible.is_ok_and(|output| output.status.success()) {
        skipped("nothing may be mounted here");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args([
        "-m",
        "sh",
        "-e",
        "-c",
        script,
        env!("CARGO_BIN_EXE_gpucheck"),
    ]);
    Some(run(plain(command.args(arguments))))
}

#[test]
fn another_sys() {
    let tree = nvidia_tree();
    let script = "mount --bind \"$1\" /sys; exec \"$0\" --format json --facts";
    let Some(ran) = unshared(script, &[&tree.path("sys")]) else {
        return;
    };
    let report = ran.good("another /sys").json();
    let gpus = report["gpus"].as_array().expect("a list");
    assert_eq!(gpus.len(), 1, "{report:#}");
    let text = gpus[0].to_string();
    assert!(
        text.contains("10de") && text.contains("0000:01:00.0"),
        "{text}"
    );
    assert!(
        !report["facts"]["pci"]["got"]["items"]["0000:01:00.0"]["vendor"].is_null(),
        "{:#}",
        report["facts"]["pci"]
    );
}

#[test]
fn an_empty_sys_is_no_machine_without_a_gpu() {
    let script = "mount -t tmpfs tmpfs /sys; exec \"$0\" --format json";
    let Some(ran) = unshared(script, &[]) else {
        return;
    };
    assert_honest(&ran.good("an empty /sys").json(), "an empty /sys");
}

#[test]
fn without_proc_and_sys() {
    let script = "mount -t tmpfs tmpfs /sys; mount -t tmpfs tmpfs /proc; exec \"$0\" --format json";
    let Some(ran) = unshared(script, &[]) else {
        return;
    };
    let ran = ran.sound("no /proc and no /sys");
    match ran.status {
        Some(2) => assert!(!ran.stderr.is_empty()),
        _ => assert_honest(&ran.json(), "no /proc and no /sys"),
    }
}

#[test]
fn in_an_almost_empty_root() {
    let new = Folder::new();
    for name in ["lib", "lib64", "usr", "bin", "gpucheck"] {
        new.folder(name);
    }
    let script = "mount -t tmpfs tmpfs \"$1\"; cd \"$1\"; mkdir lib lib64 usr; cp \"$0\" gpucheck; \
        for name in lib lib64 usr; do [ ! -e /$name ] || mount --rbind /$name $name; done; \
        exec chroot . /gpucheck --format json";
    if !have(&["chroot"]) {
        return;
    }
    let Some(ran) = unshared(script, &[&new.0]) else {
        return;
    };
    let ran = ran.sound("a chroot without /proc, /sys and /dev");
    match ran.status {
        Some(2) => assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr),
        _ => assert_honest(&ran.json(), "a chroot"),
    }
}

#[test]
fn as_nobody() {
    if !root() || !have(&["setpriv"]) {
        return;
    }
    let place = Folder::public();
    let program = place.path("gpucheck");
    fs::copy(env!("CARGO_BIN_EXE_gpucheck"), &program).expect("a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("own file");
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--",
        ])
        .arg(&program);
    let report = json(
        plain(command.args(["--format", "json", "--facts"])).current_dir("/"),
        "nobody",
    );
    let expected = json(gpucheck().args(["--format", "json"]), "live");
    assert_eq!(report["gpus_whole"], expected["gpus_whole"]);
    assert_eq!(
        report["gpus"].as_array().map(Vec::len),
        expected["gpus"].as_array().map(Vec::len)
    );
    assert_eq!(
        report["facts"]["users"]["got"]["process"]["got"]["uid"],
        65534
    );
    if no_gpu(&expected) {
        assert_eq!(report["counts"]["errors"], 0, "{report:#}");
        assert_eq!(report["counts"]["warnings"], 0, "{report:#}");
    }
}

/// Values that another look at the same machine may find changed.
fn may_change(line: &str) -> bool {
    ["/uptime", "/meminfo", "memory", "/loadavg", "clock"]
        .iter()
        .any(|word| line.contains(word))
}

#[test]
fn a_capture_tells_the_same_as_the_machine() {
    let folder = Folder::new();
    for flags in [&["--keep-private"][..], &[]] {
        let live = json(
            gpucheck().args(["--format", "json", "--facts"]).args(flags),
            "live",
        );
        let capture = run(gpucheck().arg("capture").args(flags)).good("capture");
        let path = folder.write("machine.txt", &capture.stdout);
        let replay = json(
            gpucheck()
                .args(["--format", "json", "--facts", "--replay"])
                .arg(&path),
            "replay",
        );
        for part in [
            "facts",
            "gpus",
            "gpus_whole",
            "findings",
            "untold",
            "readiness",
            "counts",
            "verdicts",
        ] {
            let found: Vec<String> = differences(&live[part], &replay[part])
                .into_iter()
                .filter(|line| !may_change(line))
                .collect();
            assert!(found.is_empty(), "{flags:?} {part}:\n{}", found.join("\n"));
        }
        let twice = json(
            gpucheck()
                .args(["--format", "json", "--facts", "--replay"])
                .arg(&path),
            "replay",
        );
        assert_eq!(twice, replay);
    }
}

#[test]
fn two_captures_are_the_same() {
    for flags in [&["--keep-private"][..], &[]] {
        let capture = || {
            run(gpucheck().arg("capture").args(flags))
                .good("capture")
                .text()
        };
        let (one, other) = (capture(), capture());
        assert_eq!(one.lines().count(), other.lines().count());
        let mut entry = "";
        for (first, second) in one.lines().zip(other.lines()) {
            if !first.starts_with("| ") {
                entry = first;
            }
            let same = first == second
                || may_change(first)
                || may_change(entry)
                || entry.starts_with("answer @sysinfo");
            assert!(same, "{flags:?} {entry}:\n{first}\n{second}");
        }
    }
}

#[test]
fn standard_input_is_left_alone() {
    // Who pipes a list into a loop of commands loses nothing of it.
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "printf 'a\\nb\\n' | { \"$0\" -q >/dev/null; cat; }",
        env!("CARGO_BIN_EXE_gpucheck"),
    ]);
    let ran = run(command.stdin(Stdio::null()));
    assert_eq!(ran.text(), "a\nb\n");
}
