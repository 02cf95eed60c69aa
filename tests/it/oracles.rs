//! NVIDIA's own answers to what fits with what: its runtime libraries on its drivers' libraries, and its assembler. None of them needs
//! a GPU; `tests/real-parts.sh` fetches them.

use crate::common::{Folder, gpucheck, run};
use crate::libraries;
use crate::real_parts::{BRANCHES, LIBRARIES, parts};
use gpucheck::tables::{Tables, kinds};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Releases of CUDA, with their runtime library and a version of the toolkit.
const RUNTIMES: [(&str, &str, &str); 3] = [
    ("11.8", "libcudart.so.11.0", "11.8.0"),
    ("12.9", "libcudart.so.12", "12.9.1"),
    ("13.5", "libcudart.so.13", "13.5.0"),
];
/// Releases whose assembler is here.
const ASSEMBLERS: [&str; 2] = ["12.9", "13.5"];

/// The folder of what was fetched. With `GPUCHECK_REAL_WHEELS` that it is not there is a failure.
fn wheels() -> Option<PathBuf> {
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/real-parts");
    if parts.join("wheels").is_file() {
        return Some(parts);
    }
    let why = "no runtimes and assemblers of NVIDIA are here: run `tests/real-parts.sh`";
    assert!(std::env::var_os("GPUCHECK_REAL_WHEELS").is_none(), "{why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
    None
}

/// The program that asks a runtime library.
fn asker() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ask_runtime");
    libraries::compile("ask_runtime", "bin", &program);
    program
}

/// What `cuda-newer-than-driver` says of a toolkit on a driver whose library tells this number.
fn verdict(folder: &Folder, toolkit: &str, number: u32) -> String {
    let base =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines/desktop-nvidia/machine.txt");
    let base = fs::read_to_string(base).expect("a machine");
    let release = toolkit.rsplit_once('.').expect("a version").0;
    let machine = format!(
        "{base}file /usr/local/cuda-{release}/version.json\n| {{\"cuda\": {{\"version\": \"{toolkit}\"}}}}\n\
         answer @cuda {{\"ok\": {{\"driver_version\": {number}}}}}\n"
    );
    let path = folder.write("machine.txt", machine);
    let mut command = gpucheck();
    command.arg("--replay").arg(path).args(["--format", "json"]);
    let report = run(&mut command).good("a replay").json();
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    let subject = format!("environment /usr/local/cuda-{release}");
    let of_toolkit = |row: &&Value| {
        row["check"] == "cuda-newer-than-driver" && row["subject"] == subject.as_str()
    };
    let row = verdicts.iter().find(of_toolkit).expect("a verdict");
    row["verdict"].as_str().expect("a word").to_owned()
}

/// A vendor's program that may hang.
fn limited(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.arg("60").arg(program);
    command
}

#[test]
fn toolkits_fit_drivers_as_the_runtimes_themselves_say() {
    let (Some(wheels), Some(parts)) = (wheels(), parts()) else {
        return;
    };
    let asker = asker();
    let folder = Folder::new();
    for (branch, number) in BRANCHES {
        let libraries = parts.join(format!("nvidia-{branch}")).join(LIBRARIES);
        for (release, library, toolkit) in RUNTIMES {
            let library = wheels.join(format!("cuda-{release}")).join(library);
            // The driver's library makes device nodes and loads modules where nobody stops it, and would see a GPU that is here.
            let told = limited("unshare")
                .args(["-m", "sh", "-c"])
                .arg(
                    "mount -t tmpfs own /sys && mount -t tmpfs own /dev && mknod -m 666 /dev/null c 1 3 && \
                     exec setpriv --no-new-privs --bounding-set=-mknod,-sys_module -- \"$@\"",
                )
                .arg("sh")
                .arg(&asker)
                .arg(&library)
                .env("LD_LIBRARY_PATH", &libraries)
                .output()
                .expect("unshare");
            let answer = String::from_utf8_lossy(&told.stdout).trim().to_owned();
            let expected = match answer.as_str() {
                "35" => "found",
                "100" => "fine",
                _ => panic!(
                    "{release} on {branch}: {answer} {}",
                    String::from_utf8_lossy(&told.stderr)
                ),
            };
            assert_eq!(
                verdict(&folder, toolkit, number),
                expected,
                "CUDA {release} on a driver of branch {branch}: the runtime says {answer}"
            );
        }
    }
}

#[test]
fn the_assembler_makes_code_for_the_targets_of_its_row() {
    let Some(wheels) = wheels() else {
        return;
    };
    let tables = Tables::embedded();
    // Every target of any release, and each capability with and without the letters.
    let mut known: BTreeSet<String> = tables
        .rows(&kinds::TOOLKIT)
        .iter()
        .filter_map(|row| row.list("targets"))
        .flat_map(|targets| targets.value)
        .collect();
    for row in tables.rows(&kinds::CAPABILITY) {
        let number = row.key(&kinds::CAPABILITY).replace('.', "");
        known.extend(["", "a", "f"].map(|letter| format!("{number}{letter}")));
    }
    let folder = Folder::new();
    let mut accepted = Vec::new();
    for release in ASSEMBLERS {
        let ptxas = wheels.join(format!("cuda-{release}")).join("ptxas");
        let row = tables.row(&kinds::TOOLKIT, release).expect("a row");
        let targets: BTreeSet<String> = row
            .list("targets")
            .expect("targets")
            .value
            .into_iter()
            .collect();
        let oldest = targets
            .iter()
            .filter_map(|target| target.parse::<u32>().ok())
            .min()
            .expect("a number");
        let source = folder.write(
            "empty.ptx",
            format!(".version 6.3\n.target sm_{oldest}\n.address_size 64\n.visible .entry k()\n{{\nret;\n}}\n"),
        );
        for target in &known {
            let made = limited(&ptxas)
                .arg(format!("-arch=sm_{target}"))
                .arg(&source)
                .args(["-o", "/dev/null"])
                .output()
                .expect("ptxas");
            assert_eq!(
                made.status.success(),
                targets.contains(target),
                "ptxas {release}, sm_{target}: {}",
                String::from_utf8_lossy(&made.stderr)
            );
        }
        let help = limited(&ptxas).arg("--help").output().expect("ptxas");
        let help = String::from_utf8_lossy(&help.stdout);
        let named: BTreeSet<String> = help
            .split('\'')
            .filter_map(|word| word.strip_prefix("sm_"))
            .map(str::to_owned)
            .collect();
        assert_eq!(named, targets, "what ptxas {release} names");
        accepted.push(named);
    }
    // The assembler warns of nothing; what it no longer takes in the next major release was deprecated in the last one before.
    let [before, after] = accepted.as_slice() else {
        panic!("two assemblers");
    };
    let dropped: BTreeSet<String> = before
        .difference(after)
        // Its number became 110.
        .filter(|target| !target.starts_with("101"))
        .cloned()
        .collect();
    let row = tables.row(&kinds::TOOLKIT, ASSEMBLERS[0]).expect("a row");
    let deprecated = row.list("deprecated").expect("capabilities").value;
    let deprecated: BTreeSet<String> = deprecated.iter().map(|cc| cc.replace('.', "")).collect();
    assert_eq!(dropped, deprecated, "what {} deprecates", ASSEMBLERS[0]);
}

/// Releases of Debian that people run.
const RELEASES: [&str; 2] = ["bookworm", "trixie"];

#[test]
fn debian_has_the_packages_that_its_fixes_install() {
    let Some(parts) = parts() else {
        return;
    };
    let apt = parts.join("apt");
    let option = |name: &str, value: &Path| format!("{name}={}", value.display());
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/fixes.toml"))
        .expect("the fixes");
    let rows: toml::Table = text.parse().expect("TOML");
    let mut wanted = BTreeSet::new();
    for row in rows["fix"].as_array().expect("rows") {
        let commands = row.get("commands").and_then(toml::Value::as_array);
        for command in commands
            .into_iter()
            .flatten()
            .filter_map(|line| line.as_str())
        {
            let Some((_, packages)) = command.split_once("apt install ") else {
                continue;
            };
            let recipe = row["recipe"].as_str().expect("a recipe");
            // Those come from NVIDIA's repository.
            if row["family"].as_str() != Some("debian") || recipe.ends_with("-from-nvidia") {
                continue;
            }
            // Branch 470 left Debian after bookworm, and the plan that names it knows.
            let releases = match recipe {
                "install-nvidia-driver-470" => &RELEASES[..1],
                _ => &RELEASES[..],
            };
            // The headers of a kernel are named after it; the name that follows the newest one stands for all.
            let packages = packages
                .replace("{kernel}", "amd64")
                .replace("$(uname -r)", "amd64");
            wanted.extend(
                packages
                    .split_whitespace()
                    .filter(|word| !word.starts_with('-') && !word.contains('{'))
                    .map(|word| (word.to_owned(), releases)),
            );
        }
    }
    assert!(wanted.len() > 5, "{wanted:?}");
    for (package, releases) in wanted {
        let known = Command::new("apt-cache")
            .args([
                "-o",
                &option("Dir::Etc::sourcelist", &apt.join("parts.list")),
            ])
            .args(["-o", "Dir::Etc::sourceparts=/dev/null"])
            .args(["-o", &option("Dir::State::Lists", &apt.join("lists"))])
            .args(["-o", &option("Dir::Cache", &apt.join("cache"))])
            .args(["-o", "Dir::Cache::pkgcache=pkgcache.bin"])
            .args(["madison", &package])
            .output()
            .expect("apt-cache");
        let known = String::from_utf8_lossy(&known.stdout);
        for release in releases {
            assert!(
                known
                    .lines()
                    .any(|line| line.contains(&format!(" {release}/"))),
                "{package} is not in {release}: {known}"
            );
        }
    }
}
