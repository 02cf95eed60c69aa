//! The program from outside: flags, exit status, what is written where.

use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Far more than anything here may take, even on a busy machine.
const AGES: Duration = Duration::from_secs(30);

/// A machine about which nothing is known.
const NOTHING: &str = "gpucheck-machine 1\nmade-by gpucheck 0.1.0 hand redacted\n";

fn gpucheck() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpucheck"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    gpucheck().args(arguments).output().expect("it starts")
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("no signal")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Runs what must fail because gpucheck cannot do its work, and gives what it says.
fn fault(arguments: &[&str]) -> String {
    let start = Instant::now();
    let output = run(arguments);
    let said = stderr(&output);
    assert_eq!(status(&output), 2, "{arguments:?}: {said}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
    assert!(!said.is_empty(), "{arguments:?} says nothing");
    assert!(!said.contains("a bug"), "{arguments:?}: {said}");
    assert!(start.elapsed() < AGES, "{arguments:?}");
    said
}

/// An empty folder of its own, gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cli-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        path
    }

    fn fifo(&self, name: &str) -> String {
        let path = self.path(name);
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo").success());
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string())
            .map(|name| name.expect("UTF-8"))
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn help_and_version() {
    for arguments in [&["--help"][..], &["-h"], &["capture", "--help"]] {
        let output = run(arguments);
        assert_eq!(status(&output), 0);
        assert!(stdout(&output).contains("Usage: gpucheck"));
    }
    assert!(stdout(&run(&["--help"])).contains("Examples:"));
    assert!(!stdout(&run(&["--help"])).contains("probe"));
    let version = format!("gpucheck {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&run(&["--version"])), version);
}

#[test]
fn the_filters_in_the_examples_of_the_help_name_checks_that_are_there() {
    let help = stdout(&run(&["--help"]));
    let filters = help
        .lines()
        .find_map(|line| line.trim().strip_prefix("gpucheck --only "))
        .expect("an example of --only");
    let words: Vec<&str> = filters.split_whitespace().collect();
    let [only, "--skip", skip] = words[..] else {
        panic!("{filters}");
    };
    let filtered = run(&[
        "--fail-on",
        "never",
        "--only",
        only.trim_matches('\''),
        "--skip",
        skip,
    ]);
    assert_eq!(status(&filtered), 0, "{}", stderr(&filtered));
}

#[test]
fn what_makes_no_sense_is_a_fault() {
    for arguments in [
        &["--surprise"][..],
        &["surprise"],
        &["--format", "xml"],
        &["--fail-on", "sometimes"],
        &["--require", "opencl"],
        &["--require", "gpus=0"],
        &["--require", "gpus=many"],
        &["--timeout", "0"],
        &["--timeout", "soon"],
        &["--root", "/", "--replay", "x"],
        &["--only", "no-such-check"],
        &["--only", ""],
        &["--skip", "no-such-*"],
        &["--facts"],
        &["-v", "-q"],
        &["--quick", "list"],
        &["explain"],
        &["explain", "no-such-check"],
        &["list", "surprise"],
        &["tables", "surprise"],
        &["tables", "gpu"],
        &["tables", "xid", "9999"],
        &["tables", "cuda", "12.7"],
        &["tables", "--data", "/no/such/folder"],
        &["--quick", "tables"],
        &[
            "probe",
            "files",
            "--from",
            "pci",
            "--root",
            "/no/such/folder",
        ],
        &["--root", "/no/such/folder"],
        &["--root", "/dev/null"],
        &["capture", "--root", "/no/such/folder"],
        &["--data", "/no/such/folder"],
    ] {
        fault(arguments);
    }
}

#[test]
fn errors_pass_no_escape_sequence_on() {
    for arguments in [
        &["explain", "a\u{1b}[31mb\nc"][..],
        &["--only", "a\u{1b}[31mb\u{202e}"],
        &["tables", "cuda", "a\u{1b}[31mb\u{202e}"],
        &["tables", "a\u{1b}[31mb\u{9b}"],
        &["--replay", "/no/such\u{1b}[31m\u{9b}2J"],
    ] {
        let said = fault(arguments);
        assert!(!said.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{said:?}");
    }
}

#[test]
fn this_machine_whatever_it_is() {
    for flags in [&[][..], &["--quick"], &["--keep-private"], &["--root", "/"]] {
        let start = Instant::now();
        let output = gpucheck()
            .args(["--format", "json"])
            .args(flags)
            .output()
            .expect("it starts");
        assert!(start.elapsed() < AGES * 3);
        let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        assert_eq!(report["schema"], 1);
        let errors = report["counts"]["errors"].as_u64().expect("a number");
        assert_eq!(status(&output), i32::from(errors > 0));
        // No GPU is no error.
        if report["gpus_whole"] == true && report["gpus"].as_array().is_some_and(Vec::is_empty) {
            assert_eq!(status(&output), 0);
        }
    }
    let output = run(&[]);
    assert!(!stdout(&output).is_empty());
    assert!(!output.stdout.contains(&0x1b), "colour without a terminal");
}

#[test]
fn a_machine_about_which_nothing_is_known_is_no_fault() {
    let folder = Folder::new();
    let machine = folder.write("machine.txt", NOTHING);
    let output = run(&["--replay", &machine, "--format", "json"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["gpus_whole"], false);
    assert_eq!(report["facts"], Value::Null);
    let output = run(&["--replay", &machine, "--format", "json", "--facts"]);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert!(
        report["facts"]["pci"].is_object(),
        "{}",
        report["facts"]["pci"]
    );
    let twice = run(&["--replay", &machine, "--format", "json", "--facts"]);
    assert_eq!(twice.stdout, output.stdout);
}

#[test]
fn nothing_is_ready_where_nothing_is_known() {
    let folder = Folder::new();
    let machine = folder.write("machine.txt", NOTHING);
    for requirement in ["cuda", "rocm", "level-zero", "vulkan", "gpus=1"] {
        let output = run(&["--replay", &machine, "--require", requirement]);
        assert_eq!(status(&output), 1, "{requirement}");
        let said = stderr(&output);
        assert!(said.contains("not met"), "{said}");
        assert!(said.lines().count() == 1, "{said}");
    }
    let output = run(&["--replay", &machine, "--require", "cuda,rocm"]);
    assert_eq!(stderr(&output).lines().count(), 2);
}

/// A machine of the shared material, where that is at hand.
fn shared_machine(name: &str) -> Option<String> {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/machines");
    let path = machines.join(name).join("machine.txt");
    if path.is_file() {
        return Some(path.to_str().expect("UTF-8").to_owned());
    }
    assert!(
        std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none(),
        "{} is missing",
        path.display()
    );
    let _ = writeln!(std::io::stderr(), "skipped: {} is missing", path.display());
    None
}

/// Whoever copies a line of the help or of the README must not learn that there is no such check.
#[test]
fn examples_name_checks_that_exist() {
    let help = stdout(&gpucheck().arg("--help").output().expect("it starts"));
    let readme = include_str!("../../README.md");
    let mut tried = 0;
    for text in [help.as_str(), readme] {
        for (at, found) in text.match_indices("gpucheck explain ") {
            let rest = &text[at + found.len()..];
            let name: String = rest
                .chars()
                .take_while(|letter| letter.is_ascii_lowercase() || "-0123456789".contains(*letter))
                .collect();
            if !name.is_empty() {
                let output = gpucheck()
                    .args(["explain", &name])
                    .output()
                    .expect("it starts");
                assert_eq!(status(&output), 0, "{name}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 2, "the help and the README explain something");
}

/// Judging somebody else instead would be a false answer.
#[test]
fn a_user_that_nobody_knows_is_a_fault() {
    let output = gpucheck()
        .args(["-q", "--user", "no-such-user-here"])
        .output()
        .expect("it starts");
    assert_eq!(status(&output), 2);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("no-such-user-here"), "{errors}");
}

#[test]
fn flags_decide_what_counts() {
    let Some(machine) = shared_machine("arch-hybrid-laptop") else {
        return;
    };
    let replay = |flags: &[&str]| {
        let output = gpucheck()
            .args(["--replay", &machine, "--format", "json"])
            .args(flags)
            .output()
            .expect("it starts");
        let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        (status(&output), report)
    };
    let names = |report: &Value, key: &str| -> Vec<String> {
        let rows = report[key].as_array().expect("an array").iter();
        rows.map(|row| row["check"].as_str().expect("a name").to_owned())
            .collect()
    };
    let (_, report) = replay(&[]);
    let findings = names(&report, "findings");
    let first = findings
        .first()
        .expect("this machine has a finding")
        .as_str();
    let count = |severity: &str| report["counts"][severity].as_u64().expect("a number");
    let (errors, warnings) = (count("errors"), count("warnings"));
    for (fail_on, expected) in [
        ("error", errors > 0),
        ("warning", errors + warnings > 0),
        ("note", true),
        ("never", false),
    ] {
        let (status, same) = replay(&["--fail-on", fail_on]);
        assert_eq!(status, i32::from(expected), "{fail_on}");
        assert_eq!(same, report, "{fail_on}");
    }

    let (status, only) = replay(&["--fail-on", "note", "--only", first]);
    assert_eq!(
        (status, names(&only, "findings")),
        (1, vec![first.to_owned()])
    );
    assert!(!names(&only, "verdicts").is_empty());
    assert!(names(&only, "verdicts").iter().all(|name| name == first));
    let pattern = format!("{}*", &first[..first.len() - 1]);
    assert_eq!(replay(&["--only", &pattern]).1, only);

    let (_, skip) = replay(&["--skip", first]);
    assert_eq!(names(&skip, "findings"), findings[1..]);
    assert!(!names(&skip, "verdicts").iter().any(|name| name == first));
    let (status, none) = replay(&["--fail-on", "note", "--skip", "*"]);
    assert_eq!((status, names(&none, "findings").len()), (0, 0));
    assert_eq!(names(&none, "verdicts").len(), 0);
    assert_eq!(none["counts"]["notes"], 0);
    assert_eq!(none["gpus"], report["gpus"]);
}

#[test]
fn a_machine_comes_from_standard_input_too() {
    let mut child = gpucheck()
        .args(["--replay", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(NOTHING.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(status(&output), 0);
    assert!(stdout(&output).contains("\"schema\": 1"));
}

#[test]
fn a_machine_comes_from_a_fifo_too() {
    let folder = Folder::new();
    let fifo = folder.fifo("fifo");
    let to = fifo.clone();
    let writer = std::thread::spawn(move || fs::write(to, NOTHING));
    let output = run(&["--replay", &fifo]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    writer.join().expect("no panic").expect("it was read");
}

#[test]
fn a_fifo_that_nobody_writes_to_is_a_fault() {
    let folder = Folder::new();
    let said = fault(&["--replay", &folder.fifo("fifo")]);
    assert!(said.contains("nothing came"), "{said}");
}

#[test]
fn what_is_no_machine_is_a_fault() {
    let folder = Folder::new();
    for text in [
        &b""[..],
        b"\n",
        b"hello",
        b"\x7fELF\x00\xff\xfe",
        b"gpucheck-machine 2\n",
        b"{\"schema\": 1}",
        b"gpucheck-machine 1\nmade-by gpucheck 0.1.0 hand redacted\nbase some-machine\n",
    ] {
        let path = folder.write("machine.txt", text);
        fault(&["--replay", &path]);
    }
    fault(&["--replay", &folder.path("missing")]);
    fault(&["--replay", &folder.path("")]);
    fault(&["--replay", "/dev/zero"]);
    fault(&["--replay", "/dev/null"]);
    symlink("loop", folder.path("loop")).expect("a link");
    fault(&["--replay", &folder.path("loop")]);
    // Standard input is empty here.
    fault(&["--replay", "-"]);
}

#[test]
fn output_is_a_new_file_for_its_owner_alone() {
    let folder = Folder::new();
    let machine = folder.write("machine.txt", NOTHING);
    let target = folder.path("report.json");
    let arguments = [
        "--replay", &machine, "--format", "json", "--output", &target,
    ];
    for _ in 0..2 {
        let output = run(&arguments);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        let mode = fs::metadata(&target).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(&target).expect("text");
        let expected = run(&["--replay", &machine, "--format", "json"]);
        assert_eq!(text, stdout(&expected));
        // The second round replaces a file that everybody may read.
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).expect("own file");
    }
    assert_eq!(folder.names(), ["machine.txt", "report.json"]);

    let output = run(&["--replay", &machine, "-o", "-"]);
    assert!(!stdout(&output).is_empty());
}

#[test]
fn output_leaves_what_is_no_file_alone() {
    let folder = Folder::new();
    let machine = folder.write("machine.txt", NOTHING);
    let fifo = folder.fifo("fifo");
    let inner = folder.path("folder");
    fs::create_dir(&inner).expect("a folder");
    symlink("nowhere", folder.path("dangling")).expect("a link");
    symlink("fifo", folder.path("to-fifo")).expect("a link");
    symlink("folder", folder.path("to-folder")).expect("a link");
    symlink("loop", folder.path("loop")).expect("a link");
    let names = folder.names();
    for target in [
        "fifo",
        "folder",
        "dangling",
        "to-fifo",
        "to-folder",
        "loop",
        "missing/report",
        "machine.txt/report",
        "folder/..",
        "new/",
        "",
    ] {
        let path = if target.is_empty() {
            target.to_owned()
        } else {
            folder.path(target)
        };
        fault(&["--replay", &machine, "--output", &path]);
        assert_eq!(folder.names(), names, "{target}");
    }
    for target in ["/dev/null", "/dev/zero", "/", "/dev/stdin"] {
        fault(&["--replay", &machine, "--output", target]);
    }
    let fifo = fs::metadata(fifo).expect("it stays");
    assert!(fifo.file_type().is_fifo());
    assert_eq!(fs::read_dir(inner).expect("it stays").count(), 0);
}

#[test]
fn output_replaces_a_link_and_not_what_it_leads_to() {
    let folder = Folder::new();
    let machine = folder.write("machine.txt", NOTHING);
    let kept = folder.write("kept", "precious");
    let link = folder.path("link");
    symlink("kept", &link).expect("a link");
    let output = run(&["--replay", &machine, "--output", &link]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert_eq!(fs::read_to_string(kept).expect("text"), "precious");
    assert!(fs::symlink_metadata(&link).expect("a file").is_file());
}

#[test]
fn output_to_a_full_disk_is_a_fault() {
    let folder = Folder::new();
    let machine = folder.write("machine.txt", NOTHING);
    let full = File::options().write(true).open("/dev/full");
    for arguments in [&["--replay", &machine][..], &["list", "--format", "json"]] {
        let output = gpucheck()
            .args(arguments)
            .stdout(full.as_ref().expect("a device").try_clone().expect("it"))
            .output()
            .expect("it starts");
        assert_eq!(status(&output), 2, "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    let folder = Folder::new();
    let machine = folder.write("machine.txt", NOTHING);
    for arguments in [
        &["--replay", &machine][..],
        &["--replay", &machine, "--format", "json"],
        &["list", "--format", "json"],
        &["capture"],
        &["--help"],
        &[],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = gpucheck()
            .args(arguments)
            .stdout(writer)
            .output()
            .expect("it starts");
        assert_eq!(status(&output), 0, "{arguments:?}");
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn standard_streams_may_be_closed() {
    for redirection in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let program = env!("CARGO_BIN_EXE_gpucheck");
        let line = format!("exec '{program}' {redirection}");
        let output = Command::new("sh")
            .args(["-c", &line])
            .output()
            .expect("a shell");
        let status = status(&output);
        assert!(status < 2, "{redirection}: {status} {}", stderr(&output));
    }
}

#[test]
fn a_pipe_ends_when_gpucheck_does() {
    let start = Instant::now();
    let mut child = gpucheck()
        .arg("capture")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut text = String::new();
    let mut output = child.stdout.take().expect("a pipe");
    output.read_to_string(&mut text).expect("UTF-8");
    assert!(child.wait().expect("it ends").success());
    assert!(start.elapsed() < AGES * 3);
    assert!(text.starts_with("gpucheck-machine 1\nmade-by gpucheck "));
}

#[test]
fn a_capture_can_be_replayed() {
    let folder = Folder::new();
    let machine = folder.path("machine.txt");
    let output = run(&["capture", "--output", &machine]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let mode = fs::metadata(&machine).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let output = run(&["--replay", &machine, "--format", "json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        report["origin"],
        format!("replay of a live capture by gpucheck {version}")
    );
    assert!(report["clock"].is_string());
}

#[test]
fn started_through_the_loader_there_is_no_report() {
    let loader = "/lib64/ld-linux-x86-64.so.2";
    if !Path::new(loader).exists() {
        let _ = writeln!(std::io::stderr(), "skipped: there is no {loader}");
        return;
    }
    let program = env!("CARGO_BIN_EXE_gpucheck");
    let output = Command::new(loader)
        .arg(program)
        .output()
        .expect("it starts");
    assert_eq!(status(&output), 2);
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output).contains("exit status"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn tables_that_are_not_in_order_are_a_fault() {
    let folder = Folder::new();
    let machine = folder.write("machine.txt", NOTHING);
    let data = folder.path("data");
    fs::create_dir(&data).expect("a folder");
    let with_data = ["--replay", &machine, "--data", &data];
    assert_eq!(status(&run(&with_data)), 0);
    fs::write(folder.path("data/notes.txt"), "no table").expect("a file");
    assert_eq!(status(&run(&with_data)), 0);
    for (name, text) in [
        ("checks.toml", &b"[[check]]\nsurprise = 1\n"[..]),
        ("checks.toml", b"\xff\xfe"),
        ("unheard-of.toml", b""),
    ] {
        let path = folder.path(&format!("data/{name}"));
        fs::write(&path, text).expect("a file");
        let said = fault(&with_data);
        assert!(said.contains(name), "{said}");
        fs::remove_file(path).expect("it was there");
    }
    folder.fifo("data/gpus.csv");
    assert!(fault(&with_data).contains("gpus.csv"));
}

#[test]
fn the_list_is_an_array_of_checks() {
    let output = run(&["list", "--format", "json"]);
    assert_eq!(status(&output), 0);
    let rows: Vec<Value> = serde_json::from_str(&stdout(&output)).expect("JSON");
    let table = stdout(&run(&["list"]));
    assert_eq!(table.lines().count(), rows.len());
    for (row, line) in rows.iter().zip(table.lines()) {
        let keys: Vec<&String> = row.as_object().expect("an object").keys().collect();
        assert_eq!(keys.len(), 5, "{keys:?}");
        for key in ["name", "link", "severity", "summary"] {
            assert!(
                row[key].as_str().is_some_and(|text| !text.is_empty()),
                "{key}"
            );
        }
        assert!(row["causes"].is_array());
        let name = row["name"].as_str().expect("text");
        assert!(line.starts_with(name), "{line}");
        let explained = run(&["explain", name]);
        assert_eq!(status(&explained), 0, "{name}");
        assert!(stdout(&explained).starts_with(name));
        let near = fault(&["explain", &format!("{name}x")]);
        assert!(near.contains(name), "{near}");
    }
}

#[test]
fn tables_say_the_same_to_people_and_to_programs() {
    for words in [
        &["cuda", "12.8"][..],
        &["driver", "580"],
        &["rocm", "7.14"],
        &["gpu", "RTX", "5090"],
        &["gfx1151"],
        &["sm_89"],
        &["xid", "79"],
        &["model", "llama3.1:8b"],
    ] {
        let arguments = [&["tables"][..], words].concat();
        let text = stdout(&run(&arguments));
        let json = stdout(&run(&[&arguments[..], &["--format", "json"]].concat()));
        let answers: Value = serde_json::from_str(&json).expect("JSON");
        let answers = answers.as_array().expect("a list");
        assert!(!answers.is_empty(), "{words:?}");
        let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for answer in answers {
            assert!(text.contains(answer["name"].as_str().expect("text")));
            for fact in answer["facts"].as_array().expect("a list") {
                let value = fact["value"].as_str().expect("text");
                assert!(unwrapped.contains(value), "{words:?}: {value}");
                assert!(fact["confidence"].is_string() && fact["source"].is_string());
            }
            for source in answer["sources"].as_array().expect("a list") {
                let date = source["date"].as_str().expect("text");
                assert!(text.contains(date), "{words:?}: {date}");
            }
        }
    }
    let list = stdout(&run(&["tables"]));
    assert!(list.contains("12.8") && list.contains("gfx1151"), "{list}");
}

#[test]
fn other_tables_may_take_the_place_of_the_built_in_ones() {
    let folder = Folder::new();
    let row = |version: &str| {
        format!(
            "[[source]]\nid = \"me\"\nwhat = \"my own eyes\"\ndate = \"2026-11-30\"\n\n\
             [[toolkit]]\nversion = \"{version}\"\ndriver = \"999.1\"\nsource = \"me\"\nconfidence = \"measured\"\n"
        )
    };
    let data = folder.path("data");
    fs::create_dir(&data).expect("a folder");
    fs::write(format!("{data}/cuda.toml"), row("99.0")).expect("a table");
    let text = stdout(&run(&["tables", "cuda", "99", "--data", &data]));
    assert!(
        text.contains("999.1") && text.contains("my own eyes"),
        "{text}"
    );
    fs::write(format!("{data}/cuda.toml"), row("next")).expect("a table");
    let said = fault(&["tables", "cuda", "99", "--data", &data]);
    assert!(said.contains("cuda.toml line 6, column 1"), "{said}");
}

#[test]
fn colour_is_for_those_who_want_it() {
    let escape = |output: &Output| output.stdout.contains(&0x1b);
    let help = |color: &str| run(&["--color", color, "--help"]);
    assert!(escape(&help("always")));
    assert!(!escape(&help("never")));
    assert!(!escape(&help("auto")));
    let list = |color: &str| run(&["list", "--color", color]);
    assert_eq!(escape(&list("always")), !list("always").stdout.is_empty());
    assert!(!escape(&list("never")));
    let forced = gpucheck()
        .arg("list")
        .env("CLICOLOR_FORCE", "1")
        .env("NO_COLOR", "1")
        .output();
    assert!(!escape(&forced.expect("it starts")));
}

/// It would write over a folder that somebody has for something else.
#[test]
fn where_to_generate_must_be_said() {
    let output = run(&["generate"]);
    assert_eq!(status(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("<DIR>"), "{}", stderr(&output));
}

#[test]
fn generated_files_are_the_same_each_time() {
    let folder = Folder::new();
    let read = |name: &str| {
        let docs = folder.path(name);
        let output = run(&["generate", &docs]);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        let names = [
            "checks.md",
            "man/gpucheck.1",
            "man/gpucheck-explain.1",
            "completions/gpucheck.bash",
        ];
        names.map(|name| fs::read_to_string(format!("{docs}/{name}")).expect(name))
    };
    let once = read("docs");
    assert_eq!(once, read("docs"), "written over itself");
    assert_eq!(once, read("other/deep/docs"));
}
