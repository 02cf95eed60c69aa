//! What the tests share that start the program from outside.

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Far more than anything here may take, even on a busy machine.
pub const AGES: Duration = Duration::from_secs(60);

/// The program, as a user without settings of his own starts it.
pub fn gpucheck() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpucheck"));
    plain(&mut command);
    command
}

/// Takes away what steers the output, and standard input.
pub fn plain(command: &mut Command) -> &mut Command {
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null())
}

/// What a run of the program gave.
pub struct Ran {
    pub status: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub took: Duration,
    /// The most memory that one of its processes held at once, in KiB, as far as it was seen; 0: it was too quick to see.
    pub peak: u64,
}

impl Ran {
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("UTF-8")
    }

    /// The JSON report.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stderr))
    }

    /// It ended by itself, with a status that the program has, and met no bug.
    pub fn sound(self, what: &str) -> Ran {
        let status = self.status.unwrap_or(-1);
        assert!(
            (0..=2).contains(&status),
            "{what}: {status} {}",
            self.stderr
        );
        for bug in ["panicked", "a bug in gpucheck"] {
            assert!(!self.stderr.contains(bug), "{what}: {}", self.stderr);
            let stdout = String::from_utf8_lossy(&self.stdout);
            assert!(!stdout.contains(bug), "{what}: {stdout}");
        }
        self
    }

    /// It was quick and took little memory, as far as every machine must be read.
    pub fn modest(self, what: &str) -> Ran {
        assert!(self.took < AGES / 2, "{what}: took {:?}", self.took);
        // Every check answers about every GPU, and a crowd of them is thousands.
        assert!(self.peak <= 96 * 1024, "{what}: {} KiB", self.peak);
        self
    }

    /// Sound, and it could do its work.
    pub fn good(self, what: &str) -> Ran {
        assert_ne!(self.status, Some(2), "{what}: {}", self.stderr);
        self.sound(what)
    }
}

/// Runs to the end, and watches the memory of the process and of its children.
pub fn run(command: &mut Command) -> Ran {
    let start = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = child.stdout.take().expect("a pipe");
    let mut err = child.stderr.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).expect("it can be read");
        bytes
    });
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        err.read_to_end(&mut bytes).expect("it can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let mut peak = 0;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        peak = peak.max(memory(child.id()));
        if start.elapsed() > AGES {
            child.kill().expect("a child");
            panic!("{command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Ran {
        status: status.code(),
        stdout: reader.join().expect("no panic"),
        stderr: errors.join().expect("no panic"),
        took: start.elapsed(),
        peak,
    }
}

/// The most memory that the process or one below it has held so far, in KiB.
fn memory(pid: u32) -> u64 {
    let own = fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()
        .and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.split_whitespace().next()?.parse().ok()
        })
        .unwrap_or(0);
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .map(memory)
        .fold(own, u64::max)
}

/// An empty folder of its own that everybody may read, gone when the test is over.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        Folder::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// One in memory, where that is possible: for very many files.
    pub fn in_memory() -> Folder {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            return Folder::below(memory);
        }
        Folder::below(&std::env::temp_dir())
    }

    /// One that other users can get at.
    pub fn public() -> Folder {
        let folder = Folder::below(&std::env::temp_dir());
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).expect("own folder");
        folder
    }

    fn below(above: &Path) -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = above.join(format!("gpucheck-it-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("nobody else has a folder of that name");
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name.trim_start_matches('/'))
    }

    /// A file, with the folders above it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// A link, with the folders above it.
    pub fn link(&self, name: &str, target: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        symlink(target, path).expect("a link");
    }

    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("a folder");
        path
    }

    /// A FIFO, with the folders above it.
    pub fn fifo(&self, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo").success());
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A machine in a folder: Ubuntu with one RTX 4090 on NVIDIA's driver, as far as files show it.
pub fn nvidia_tree() -> Folder {
    nvidia_tree_in(Folder::new())
}

/// The same in this folder.
pub fn nvidia_tree_in(root: Folder) -> Folder {
    root.write(
        "etc/os-release",
        "NAME=\"Ubuntu\"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n",
    );
    root.write("proc/version", "Linux version 6.8.0-49-generic\n");
    root.write("proc/sys/kernel/osrelease", "6.8.0-49-generic\n");
    root.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet\n");
    root.write("proc/modules", "nvidia 1 0 - Live 0x0\n");
    root.write(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.120  Fri Sep 13 10:10:01 UTC 2024\n",
    );
    root.write("sys/module/nvidia/version", "550.120\n");
    root.folder("sys/kernel");
    root.folder("usr/lib/x86_64-linux-gnu");
    root.write("dev/null", "");
    gpu(&root, GPU, "nvidia");
    root
}

/// The address of the GPU in `nvidia_tree`.
pub const GPU: &str = "0000:01:00.0";

/// An RTX 4090 at this address.
pub fn gpu(root: &Folder, address: &str, driver: &str) {
    let device = format!("sys/bus/pci/devices/{address}");
    for (name, text) in [
        ("vendor", "0x10de\n"),
        ("device", "0x2684\n"),
        ("class", "0x030000\n"),
        ("revision", "0xa1\n"),
        ("subsystem_vendor", "0x1043\n"),
        ("subsystem_device", "0x8889\n"),
        ("enable", "1\n"),
        ("power/runtime_status", "active\n"),
        ("current_link_width", "16\n"),
        ("max_link_width", "16\n"),
    ] {
        root.write(&format!("{device}/{name}"), text);
    }
    root.write(
        &format!("{device}/uevent"),
        format!("DRIVER={driver}\nPCI_CLASS=30000\nPCI_ID=10DE:2684\nPCI_SLOT_NAME={address}\n"),
    );
    root.folder(&format!("sys/bus/pci/drivers/{driver}"));
    root.link(
        &format!("{device}/driver"),
        &format!("../../drivers/{driver}"),
    );
}

/// Where two JSON values differ: the places, with both values.
pub fn differences(one: &Value, other: &Value) -> Vec<String> {
    fn compare(one: &Value, other: &Value, at: &str, found: &mut Vec<String>) {
        match (one, other) {
            (Value::Object(first), Value::Object(second)) => {
                for name in first
                    .keys()
                    .chain(second.keys().filter(|name| !first.contains_key(*name)))
                {
                    compare(&one[name], &other[name], &format!("{at}/{name}"), found);
                }
            }
            (Value::Array(first), Value::Array(second)) if first.len() == second.len() => {
                for (number, (one, other)) in first.iter().zip(second).enumerate() {
                    compare(one, other, &format!("{at}/{number}"), found);
                }
            }
            _ if one == other => {}
            _ => found.push(format!("{at}: {one} and {other}")),
        }
    }
    let mut found = Vec::new();
    compare(one, other, "", &mut found);
    found
}

/// Tells that a test cannot run here. Where everything is required that is a failure.
pub fn skipped(why: &str) {
    assert!(
        std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none(),
        "everything is required, but: {why}"
    );
    // The harness hides what a passing test prints, and not what it writes.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Whether these programs are here; a test without one of them is skipped.
pub fn have(tools: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for tool in tools {
        if !std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()) {
            skipped(&format!("there is no {tool}"));
            return false;
        }
    }
    true
}

/// Whether this is root; a test that needs it is skipped.
pub fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("this needs root");
    }
    root
}

/// The recorded machines beside the repository, where they are there.
pub fn machines() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/machines");
    if path.is_dir() {
        return Some(path);
    }
    skipped("../shared/machines is not here");
    None
}
