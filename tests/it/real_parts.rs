//! The real libraries of NVIDIA's driver, on machines without a GPU: `tests/real-parts.sh` fetches them. Always in a mount namespace
//! with a /dev of its own, since they change it when nobody stops them.

use crate::common::{AGES, Folder, GPU, Ran, have, nvidia_tree_in, plain, run};
use crate::libraries;
use gpucheck::facts::{Facts, Seen};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Branch of the driver, and the version of CUDA that it tells.
pub const BRANCHES: [(&str, u32); 2] = [("535", 12_020), ("550", 12_040)];
/// Where Debian's packages have the libraries.
pub const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu/nvidia/current";

/// Tells that a test cannot run here; with `GPUCHECK_REAL_PARTS` that is a failure.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("GPUCHECK_REAL_PARTS").is_none(), "{why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// The folder of fetched packages, and a place for a machine of its own. None: something for it is missing.
pub fn parts() -> Option<PathBuf> {
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/real-parts");
    if !parts.join("complete").is_file() {
        skipped("no real libraries are here: run `tests/real-parts.sh`");
        return None;
    }
    if !rustix::process::geteuid().is_root() || !have(&["unshare", "mount", "mknod", "setpriv"]) {
        skipped("real libraries need root, and a /dev of their own");
        return None;
    }
    Some(parts)
}

/// What stands at /dev/nvidiactl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    None,
    Right,
    Wrong,
    Closed,
}

/// A machine with an NVIDIA GPU on its bus and a driver's libraries, and nothing else of a driver. `modprobe` and
/// `nvidia-modprobe` write down that they were run.
struct Machine {
    folder: Folder,
    libraries: PathBuf,
}

impl Machine {
    fn new(parts: &Path, branch: &str) -> Machine {
        let folder = nvidia_tree_in(Folder::public());
        fs::remove_dir_all(folder.path("sys/module")).expect("own folder");
        let device = format!("sys/bus/pci/devices/{GPU}");
        fs::remove_file(folder.path(&format!("{device}/driver"))).expect("own link");
        // Vendor, device, and the class of a display: what the library itself looks at.
        let mut config = [0_u8; 64];
        config[..4].copy_from_slice(&[0xde, 0x10, 0x84, 0x26]);
        config[9..12].copy_from_slice(&[0, 0, 3]);
        folder.write(&format!("{device}/config"), config);
        let log = folder.path("log").display().to_string();
        folder.write("log", "");
        fs::set_permissions(folder.path("log"), fs::Permissions::from_mode(0o666))
            .expect("own file");
        for name in [
            "usr/sbin/modprobe",
            "usr/bin/modprobe",
            "usr/bin/nvidia-modprobe",
        ] {
            let tool = folder.write(
                &format!("fake/{name}"),
                format!("#!/bin/sh\necho \"$0 $*\" >>{log}\n"),
            );
            // A script does not become setuid, but that is what the library looks for.
            fs::set_permissions(tool, fs::Permissions::from_mode(0o4755)).expect("own file");
        }
        let program = folder.path("gpucheck");
        fs::copy(env!("CARGO_BIN_EXE_gpucheck"), &program).expect("a copy");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("own file");
        // Two copies: one that only root could have put there, and one that everybody may read.
        let real = parts.join(format!("nvidia-{branch}"));
        let public = folder.folder("libraries");
        for entry in fs::read_dir(real.join(LIBRARIES))
            .expect("the libraries")
            .flatten()
        {
            let to = public.join(entry.file_name());
            fs::copy(entry.path(), &to).expect("a copy");
            fs::set_permissions(to, fs::Permissions::from_mode(0o755)).expect("own file");
        }
        Machine {
            libraries: real,
            folder,
        }
    }

    /// The kernel has the module: the library needs no help to go on.
    fn loaded(self) -> Machine {
        self.folder.write("sys/module/nvidia/initstate", "live\n");
        self
    }

    fn libraries(&self, user: u32) -> PathBuf {
        match user {
            0 => self.libraries.join(LIBRARIES),
            _ => self.folder.path("libraries"),
        }
    }

    /// Runs a program of this machine as this user. What it does to /dev is seen afterwards.
    fn start(
        &self,
        node: Node,
        user: u32,
        program: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Ran {
        let script = r#"
folder=$1 node=$2 user=$3; shift 3
mount --bind "$folder/sys" /sys
mount -t overlay fake -o "lowerdir=$folder/fake/usr:/usr" /usr
mount -t tmpfs -o mode=755 own /dev
mknod -m 666 /dev/null c 1 3
case $node in
    Right) mknod -m 666 /dev/nvidiactl c 195 255 ;;
    Closed) mknod -m 600 /dev/nvidiactl c 195 255 ;;
    Wrong) mknod -m 666 /dev/nvidiactl c 1 3 ;;
esac
ls -lnR --time-style=full-iso /dev >"$folder/before"
status=0
if [ "$user" = 0 ]; then "$@" || status=$?
else setpriv --reuid="$user" --regid="$user" --clear-groups -- "$@" || status=$?; fi
ls -lnR --time-style=full-iso /dev >"$folder/after"
exit $status
"#;
        let mut command = Command::new("unshare");
        command.args([
            "-m",
            "--propagation",
            "private",
            "sh",
            "-e",
            "-c",
            script,
            "sh",
        ]);
        command
            .arg(&self.folder.0)
            .arg(format!("{node:?}"))
            .arg(user.to_string());
        // For this program alone: the shim would stop the others, too.
        command.arg("env").args(
            variables
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        command.arg(program).args(arguments).current_dir("/");
        command.env("LD_LIBRARY_PATH", self.libraries(user));
        run(plain(&mut command))
    }

    /// What the worker of a library says.
    fn probe(
        &self,
        worker: &str,
        library: &str,
        node: Node,
        user: u32,
        variables: &[(&str, &str)],
    ) -> Facts {
        let library = self.libraries(user).join(library);
        let arguments = [
            "probe",
            worker,
            "--library",
            library.to_str().expect("UTF-8"),
        ];
        let ran = self.start(
            node,
            user,
            &self.folder.path("gpucheck"),
            &arguments,
            variables,
        );
        libraries::facts(&ran.sound("a real library"))
    }

    fn nvml(&self, node: Node, user: u32, variables: &[(&str, &str)]) -> String {
        match self
            .probe("nvml", "libnvidia-ml.so.1", node, user, variables)
            .nvml
        {
            Seen::Failed(failure) => failure.to_string(),
            other => panic!("{node:?} as {user}: {other:?}"),
        }
    }

    fn whole(&self, node: Node, user: u32, more: &[&str], variables: &[(&str, &str)]) -> Ran {
        let arguments = [&["--format", "json", "--facts"][..], more].concat();
        let ran = self.start(
            node,
            user,
            &self.folder.path("gpucheck"),
            &arguments,
            variables,
        );
        ran.good("a whole run")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path(name)).expect("a file")
    }

    /// Neither /dev was changed, nor anything run.
    fn is_as_it_was(&self, what: &str) {
        assert_eq!(self.read("before"), self.read("after"), "{what}");
        assert_eq!(self.read("log"), "", "{what}");
    }
}

fn error(what: &str) -> String {
    format!("could not be read ({what})")
}

#[test]
fn without_a_driver() {
    let Some(parts) = parts() else { return };
    for (branch, cuda) in BRANCHES {
        let machine = Machine::new(&parts, branch);
        for user in [0, 65534] {
            let facts = machine.probe("cuda", "libcuda.so.1", Node::None, user, &[]);
            let told = facts.cuda.got().expect("an answer");
            assert_eq!(*told.driver_version, Seen::Got(cuda), "{branch}");
            machine.is_as_it_was("cuda");
            assert_eq!(
                machine.nvml(Node::None, user, &[]),
                error("DRIVER_NOT_LOADED"),
                "{branch}"
            );
            machine.is_as_it_was("nvml");
        }
        // The whole program, which finds the libraries by itself.
        let ran = machine.whole(Node::None, 65534, &[], &[]);
        let report = ran.json();
        assert_eq!(
            report["facts"]["nvml"]["failed"]["error"]["what"], "DRIVER_NOT_LOADED",
            "{branch}"
        );
        assert_eq!(
            report["facts"]["cuda"]["got"]["driver_version"], cuda,
            "{branch}"
        );
        machine.is_as_it_was("a whole run");
    }
}

#[test]
fn what_stands_in_the_way_has_its_name() {
    let Some(parts) = parts() else { return };
    for (branch, _) in BRANCHES {
        let machine = Machine::new(&parts, branch);
        let told = |node| {
            let told = machine.nvml(node, 65534, &[]);
            machine.is_as_it_was(&format!("{node:?}"));
            told
        };
        assert_eq!(told(Node::Right), error("DRIVER_NOT_LOADED"), "{branch}");
        assert_eq!(told(Node::Closed), error("NO_PERMISSION"), "{branch}");
        // It would have nvidia-modprobe mend that, which is not run.
        assert_eq!(told(Node::Wrong), error("OPERATING_SYSTEM"), "{branch}");
    }
}

#[test]
fn as_root_nothing_is_changed() {
    let Some(parts) = parts() else { return };
    for (branch, _) in BRANCHES {
        for node in [Node::None, Node::Right, Node::Wrong] {
            let machine = Machine::new(&parts, branch);
            let told = machine.nvml(node, 0, &[]);
            machine.is_as_it_was(&format!("{branch} {node:?}"));
            let named = [
                "DRIVER_NOT_LOADED",
                "UNKNOWN",
                "NO_PERMISSION",
                "OPERATING_SYSTEM",
            ];
            assert!(
                named.iter().any(|name| told == error(name)),
                "{branch} {node:?}: {told}"
            );
            let report = machine.whole(node, 0, &[], &[]).json();
            machine.is_as_it_was(&format!("{branch} {node:?}, a whole run"));
            assert!(
                report["facts"]["cuda"]["got"].is_object(),
                "{}",
                report["facts"]["cuda"]
            );
        }
        // The same library, asked by its own program, does change the machine: else all of this would show nothing.
        let machine = Machine::new(&parts, branch);
        let smi = parts.join(format!("nvidia-{branch}/usr/lib/nvidia/current/nvidia-smi"));
        machine.start(Node::None, 0, &smi, &[], &[]);
        let changed =
            machine.read("before") != machine.read("after") || !machine.read("log").is_empty();
        assert!(changed, "{branch}: nvidia-smi changed nothing");
    }
}

/// The shim that lets the real library see another driver. None: it is not here.
fn shim(folder: &Folder) -> Option<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/tools/nvidiactl-shim.c");
    if !source.is_file() || !have(&["cc"]) {
        skipped("the shim cannot be built here");
        return None;
    }
    let shim = folder.path("shim.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(&shim)
        .arg(source)
        .output();
    let built = built.expect("cc");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).expect("own file");
    Some(shim.display().to_string())
}

#[test]
fn another_version_of_the_driver() {
    let Some(parts) = parts() else { return };
    for (branch, _) in BRANCHES {
        let machine = Machine::new(&parts, branch).loaded();
        let Some(shim) = shim(&machine.folder) else {
            return;
        };
        let variables = [("LD_PRELOAD", shim.as_str()), ("SHIM_KVER", "525.60.13")];
        assert_eq!(
            machine.nvml(Node::Right, 65534, &variables),
            error("LIB_RM_VERSION_MISMATCH"),
            "{branch}"
        );
        machine.is_as_it_was(branch);
    }
}

#[test]
fn a_real_library_that_hangs() {
    let Some(parts) = parts() else { return };
    for (branch, _) in BRANCHES {
        let machine = Machine::new(&parts, branch).loaded();
        let Some(shim) = shim(&machine.folder) else {
            return;
        };
        let variables = [("LD_PRELOAD", shim.as_str()), ("SHIM_HANG", "1000")];
        let start = Instant::now();
        let ran = machine.whole(Node::Right, 65534, &["--timeout", "3"], &variables);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(3) + AGES / 4, "{took:?}");
        let report: Value = ran.json();
        assert_eq!(
            report["facts"]["nvml"]["failed"]["timed_out"]["at"], "nvmlInit_v2",
            "{branch}"
        );
        assert!(report["facts"]["cuda"]["got"].is_object(), "{branch}");
        assert_eq!(report["gpus"].as_array().map(Vec::len), Some(1));
        assert!(
            ran.stderr.contains("waiting for nvmlInit_v2"),
            "{}",
            ran.stderr
        );
    }
}
