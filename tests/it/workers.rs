//! Workers that hang, die, flood and lie. A shell script stands in for each.

use crate::common::Folder;
use gpucheck::facts::{Facts, Failure, Seen, Why};
use gpucheck::worker::{Gathered, Limits, Plan, gather};
use std::cell::RefCell;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SOURCES: &[&str] = &["pci", "pci_ids", "os_release"];

/// Far more than anything here may take, even on a busy machine.
const AGES: Duration = Duration::from_secs(20);

/// A worker that does as it should, but for what `odd` does while it is asked for `pci_ids`.
fn script(odd: &str) -> PathBuf {
    let text = format!(
        r#"
while [ "$1" != --from ]; do shift; done
on=0
for source in pci pci_ids os_release; do
    [ "$source" = "$2" ] && on=1
    [ $on = 1 ] || continue
    echo "begin $source"
    if [ $source = pci_ids ]; then
        {odd}
    fi
    echo "facts $source \"absent\""
    echo "end $source 5"
done
"#
    );
    write_script(&text)
}

fn write_script(text: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("worker-{}-{number}.sh", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a script");
    path
}

fn limits() -> Limits {
    Limits {
        source: Duration::from_millis(1500),
        run: AGES,
        patience: Duration::from_millis(100),
        line: 100_000,
        total: 1_000_000,
    }
}

fn gather_with(script: &Path, limits: Limits) -> (Gathered, Vec<String>) {
    let waited: RefCell<Vec<String>> = RefCell::default();
    let start = Instant::now();
    let gathered = gather(&Plan {
        program: "/bin/sh".into(),
        arguments: vec![script.into()],
        sources: SOURCES,
        limits,
        waiting: &|place| waited.borrow_mut().push(place.to_owned()),
    });
    assert!(start.elapsed() < AGES, "it took {:?}", start.elapsed());
    let _ = std::fs::remove_file(script);
    (gathered, waited.into_inner())
}

/// What became of `pci_ids` when a worker does this; its neighbours must not suffer.
fn failure_of(odd: &str) -> Failure {
    let (gathered, _) = gather_with(&script(odd), limits());
    assert_eq!(gathered.fault, None);
    assert_eq!(gathered.facts.pci, Seen::Absent);
    assert_eq!(gathered.facts.os_release, Seen::Absent);
    let took: Vec<&str> = gathered.took.iter().map(|(source, _)| *source).collect();
    assert_eq!(took, ["pci", "os_release"]);
    let [("pci_ids", failure)] = &gathered.failed[..] else {
        panic!("{:?}", gathered.failed);
    };
    assert_eq!(gathered.facts.pci_ids, Seen::Failed(failure.clone()));
    failure.clone()
}

fn crashed(how: &str) -> Failure {
    Failure::Crashed {
        how: how.to_owned(),
    }
}

fn error(what: &str) -> Failure {
    Failure::Error {
        what: what.to_owned(),
    }
}

fn all_is_well(odd: &str) {
    let (gathered, _) = gather_with(&script(odd), limits());
    assert_eq!((gathered.fault, gathered.failed), (None, Vec::new()));
    assert_eq!(gathered.facts.pci_ids, Seen::Absent);
    let five = Duration::from_micros(5);
    let took: Vec<(&str, Duration)> = SOURCES.iter().map(|source| (*source, five)).collect();
    assert_eq!(gathered.took, took);
}

#[test]
fn a_worker_that_does_as_it_should() {
    all_is_well("echo 'at \"/sys\"'");
}

#[test]
fn a_hang_costs_one_source_and_is_named() {
    let script = script(r#"echo 'at "/dev/stuck"'; sleep 1000"#);
    let (gathered, waited) = gather_with(&script, limits());
    assert_eq!(gathered.facts.pci, Seen::Absent);
    assert_eq!(gathered.facts.os_release, Seen::Absent);
    let at = "/dev/stuck".to_owned();
    assert_eq!(
        gathered.facts.pci_ids,
        Seen::Failed(Failure::TimedOut { at })
    );
    assert_eq!(waited, ["/dev/stuck"]);
}

#[test]
fn a_hang_before_any_path_is_named_after_its_source() {
    let at = "pci_ids".to_owned();
    assert_eq!(failure_of("sleep 1000"), Failure::TimedOut { at });
}

#[test]
fn progress_does_not_prolong_the_limit() {
    let failure = failure_of(r#"while :; do echo 'at "/x"'; sleep 0.05; done"#);
    let at = "/x".to_owned();
    assert_eq!(failure, Failure::TimedOut { at });
}

#[test]
fn what_hung_is_killed_with_its_children() {
    let pids = write_script("");
    let odd = format!("sleep 1000 & echo $$ $! > {}; wait", pids.display());
    failure_of(&odd);
    let text = std::fs::read_to_string(&pids).expect("the script wrote its numbers");
    let _ = std::fs::remove_file(&pids);
    let start = Instant::now();
    for pid in text.split_whitespace() {
        // Gone, or dead and not yet reaped.
        let alive = || {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|s| s.starts_with(" Z")))
        };
        while alive() {
            assert!(start.elapsed() < AGES, "{pid} lives");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn what_a_worker_runs_ends_with_the_program() {
    let folder = Folder::new();
    let mark = format!("GPUCHECK_TEST_MARK={}", std::process::id());
    let (name, value) = mark.split_once('=').expect("a variable");
    // The watch ends the whole group of a worker: here a shell, in whose place the worker is started, has a child.
    let script = write_script(
        "sleep 1000 & head -c 65536 /dev/zero; exec \"$0\" probe files --salt=1 --root=\"$1\"",
    );
    let mut worker = Command::new("sh");
    worker
        .arg("-c")
        .arg(std::fs::read_to_string(&script).expect("own file"))
        .arg(env!("CARGO_BIN_EXE_gpucheck"))
        .arg(&folder.0)
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let mut child = worker.spawn().expect("a shell");
    let _ = std::fs::remove_file(script);
    // The pipe is full, so the worker waits there; then nobody has the other end any more.
    let mut first = [0];
    let mut output = child.stdout.take().expect("a pipe");
    output.read_exact(&mut first).expect("what fills the pipe");
    drop(output);
    let alive = || {
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        let mut environments =
            processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
        environments.any(|bytes| String::from_utf8_lossy(&bytes).contains(&mark))
    };
    let start = Instant::now();
    while alive() {
        assert!(start.elapsed() < AGES, "it lives");
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.wait();
}

#[test]
fn what_a_source_wrote_down_goes_with_its_answer() {
    let odd = r#"printf '%s\n' 'facts pci_ids {"got":{}}' 'entry "file /x\n"'; kill -SEGV $$"#;
    let (gathered, _) = gather_with(&script(odd), limits());
    assert_eq!(gathered.facts.pci_ids, Seen::Failed(crashed("SIGSEGV")));
    assert_eq!(gathered.entries, Vec::<String>::new());
}

#[test]
fn deaths_are_told_by_name() {
    assert_eq!(failure_of("kill -SEGV $$"), crashed("SIGSEGV"));
    assert_eq!(failure_of("kill -KILL $$"), crashed("SIGKILL"));
    assert_eq!(failure_of("exit 3"), crashed("exit status 3"));
}

#[test]
fn an_end_without_end_is_a_crash_whatever_came_before() {
    assert_eq!(failure_of("exit 0"), crashed("exit status 0"));
    assert_eq!(
        failure_of(r#"echo 'facts pci_ids "absent"'; exit 0"#),
        crashed("exit status 0")
    );
    assert_eq!(
        failure_of(r#"printf 'facts pci_ids "abs'; exit 0"#),
        crashed("exit status 0")
    );
    assert_eq!(
        failure_of("exec 1>&-; sleep 1000"),
        crashed("it closed its output")
    );
}

#[test]
fn floods_end() {
    let flood = error("the worker wrote more than it may");
    assert_eq!(failure_of("tr '\\0' x < /dev/zero"), flood);
    assert_eq!(failure_of(r#"yes 'at "/x"'"#), flood);
    assert_eq!(failure_of(r#"yes 'entry "x"'"#), flood);
}

#[test]
fn a_flood_on_standard_error_disturbs_nobody() {
    all_is_well("head -c 5000000 /dev/zero >&2");
}

#[test]
fn standard_input_is_empty() {
    all_is_well("cat");
}

#[test]
fn a_grandchild_that_holds_the_pipe_holds_nobody_up() {
    all_is_well("sleep 1000 &");
    all_is_well("setsid sleep 25 &");
    assert_eq!(failure_of("sleep 1000 & exit 4"), crashed("exit status 4"));
    assert_eq!(
        failure_of("setsid sleep 25 & exit 4"),
        crashed("exit status 4")
    );
}

#[test]
fn nonsense_is_no_answer() {
    let nonsense = error("the worker's answer made no sense");
    for odd in [
        "echo hello world",
        "echo",
        "printf 'at \"\\377\"\\n'",
        "echo 'at /not/quoted'",
        r#"echo 'facts pci_ids {"got":7}'"#,
        r#"echo 'facts pci "absent"'"#,
        r#"echo 'facts surprise "absent"'"#,
        "echo 'begin os_release'",
        "echo 'end pci_ids 5'",
        "echo 'end pci 5'",
        "echo 'end pci_ids'",
    ] {
        assert_eq!(failure_of(odd), nonsense, "{odd}");
    }
}

#[test]
fn a_source_that_is_not_next_is_nonsense() {
    let script = write_script("echo 'begin os_release'; sleep 1000");
    let (gathered, _) = gather_with(&script, limits());
    assert!(gathered.fault.is_some());
    assert_eq!(gathered.failed.len(), SOURCES.len());
}

#[test]
fn an_empty_stream_is_a_fault() {
    let (gathered, _) = gather_with(&write_script("exit 127"), limits());
    let fault = gathered.fault.expect("a fault");
    assert!(fault.contains("exit status 127"), "{fault}");
    for source in SOURCES {
        let json = gathered.facts.field_to_json(source).expect("a source");
        assert!(json.expect("JSON").contains("crashed"), "{source}");
    }
    assert!(gathered.took.is_empty());
}

#[test]
fn a_worker_that_cannot_start_is_a_fault() {
    let gathered = gather(&Plan {
        program: "/no/such/program".into(),
        arguments: Vec::new(),
        sources: SOURCES,
        limits: limits(),
        waiting: &|_| {},
    });
    let fault = gathered.fault.expect("a fault");
    assert!(fault.contains("could not be started"), "{fault}");
}

#[test]
fn a_fresh_worker_that_asks_nothing_ends_it() {
    let script = write_script(
        r#"
while [ "$1" != --from ]; do shift; done
[ "$2" = pci ] || exit 9
echo 'begin pci'
exit 1
"#,
    );
    let (gathered, _) = gather_with(&script, limits());
    assert_eq!(gathered.fault, None);
    assert_eq!(gathered.facts.pci, Seen::Failed(crashed("exit status 1")));
    assert_eq!(
        gathered.facts.pci_ids,
        Seen::Failed(crashed("exit status 9"))
    );
    assert_eq!(
        gathered.facts.os_release,
        Seen::Failed(crashed("exit status 9"))
    );
}

#[test]
fn the_whole_run_has_an_end() {
    let limits = Limits {
        source: AGES,
        run: Duration::from_millis(500),
        ..limits()
    };
    let (gathered, _) = gather_with(&script("sleep 1000"), limits);
    assert_eq!(gathered.facts.pci, Seen::Absent);
    assert!(matches!(
        gathered.facts.pci_ids,
        Seen::Failed(Failure::TimedOut { .. })
    ));
    assert_eq!(gathered.facts.os_release, Seen::Unasked(Why::Limit));
}

#[test]
fn entries_and_clock_come_through() {
    let script =
        script(r#"printf '%s\n' 'entry "file /x\n| a\n"'; echo 'clock 2026-11-30T12:00:00Z'"#);
    let (gathered, _) = gather_with(&script, limits());
    assert_eq!(gathered.entries, ["file /x\n| a\n"]);
    assert_eq!(gathered.clock.as_deref(), Some("2026-11-30T12:00:00Z"));
}

#[test]
fn probes_and_sources_have_the_same_order() {
    let probes: Vec<&str> = gpucheck::probes::ALL
        .iter()
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(probes, Facts::SOURCES);
}

#[test]
fn every_source_is_asked_by_one_worker() {
    let late = gpucheck::probes::LATE.iter();
    let late = late.flat_map(|(_, sources)| sources.iter().copied());
    let asked: Vec<&str> = gpucheck::probes::files().chain(late).collect();
    assert_eq!(asked, Facts::SOURCES);
}
