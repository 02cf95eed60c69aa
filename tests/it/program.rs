//! Runs the real binary in an empty environment, and finds the material.

use crate::expect::{CheckInfo, Checks};
use gpucheck::report::Report;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Generous: a run takes some ten milliseconds. Only a hang reaches it.
const LIMIT: Duration = Duration::from_secs(60);

/// What came out of one run.
pub struct Output {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A file name that no other test uses.
pub fn temporary(name: &str) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}-{name}", std::process::id()))
}

/// A temporary file that goes away with its value.
pub struct Temporary(pub PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs the program with nothing but PATH in its environment, so that the machine of the tests steers nothing.
pub fn run(arguments: &[OsString]) -> Result<Output, String> {
    let shown = || {
        let words: Vec<String> = arguments
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        format!("`gpucheck {}`", words.join(" "))
    };
    let (out, err) = (Temporary(temporary("out")), Temporary(temporary("err")));
    let create = |file: &Temporary| File::create(&file.0).map_err(|error| error.to_string());
    let mut child = Command::new(env!("CARGO_BIN_EXE_gpucheck"))
        .args(arguments)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .stdin(Stdio::null())
        .stdout(create(&out)?)
        .stderr(create(&err)?)
        .spawn()
        .map_err(|error| format!("{} does not start: {error}", shown()))?;
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{} does not end", shown()));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let read = |file: &Temporary| {
        fs::read(&file.0)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|error| error.to_string())
    };
    let (stdout, stderr) = (read(&out)?, read(&err)?);
    match status.code() {
        Some(exit) => Ok(Output {
            exit,
            stdout,
            stderr,
        }),
        None => Err(format!("{} was killed ({status}): {stderr}", shown())),
    }
}

/// Words of a command line.
pub fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Runs the program for its JSON document. Exit status 0 and 1 are answers, everything else is a failure.
pub fn report(mut arguments: Vec<OsString>) -> Result<(Report, i32), String> {
    arguments.extend(words(&["--format", "json"]));
    let output = run(&arguments)?;
    if !(0..=1).contains(&output.exit) {
        return Err(format!(
            "exit status {}: {}",
            output.exit,
            output.stderr.trim()
        ));
    }
    let wrong = |error| format!("the JSON is not a report: {error}");
    let mut json: serde_json::Value = serde_json::from_str(&output.stdout).map_err(wrong)?;
    // `gpucheck fit` has it beside its own answer.
    if arguments.first().is_some_and(|first| first == "fit") {
        json = json["report"].take();
    }
    let report = serde_json::from_value(json).map_err(wrong)?;
    Ok((report, output.exit))
}

/// The checks that this program has.
pub fn checks() -> Checks {
    let output = run(&words(&["list", "--format", "json"])).expect("`gpucheck list` runs");
    let list: Vec<CheckInfo> = serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("`gpucheck list --format json` is no list: {error}"));
    assert!(!list.is_empty(), "`gpucheck list` names no check");
    Checks::new(list)
}

/// A folder of the shared material. None, with a note: it is not on this machine.
pub fn shared(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared")
        .join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none(),
        "../shared/{name} is missing"
    );
    // The harness hides what a passing test prints, and not what it writes.
    let _ = writeln!(std::io::stderr(), "skipped: ../shared/{name} is missing");
    None
}

/// Names of the folders in a folder, sorted; none where it is missing.
pub fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

/// The last part of a path.
pub fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// `GPUCHECK_ONLY=WORD cargo test` looks at the machines and trees alone whose names hold the word.
pub fn is_chosen(name: &str) -> bool {
    std::env::var("GPUCHECK_ONLY").map_or(true, |word| name.contains(&word))
}

/// What a test says of one machine or tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What is wrong.
    pub failures: Vec<String>,
    /// What waits for a check or a cause that does not exist yet.
    pub later: Vec<String>,
}

impl Judgement {
    pub fn fail(&mut self, what: impl Into<String>) {
        self.failures.push(what.into());
    }

    pub fn later(&mut self, what: impl Into<String>) {
        self.later.push(what.into());
    }

    pub fn add(&mut self, other: Judgement) {
        self.failures.extend(other.failures);
        self.later.extend(other.later);
    }
}

/// Judges every item on two threads, prints what waits, and fails with all that is wrong at once.
pub fn judge_all<T: Sync>(
    title: &str,
    items: &[T],
    name: impl Fn(&T) -> String + Sync,
    judge: impl Fn(&T) -> Judgement + Sync,
) {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Judgement)>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let judgement = judge(item);
                    results
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, judgement));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    assert_eq!(results.len(), items.len(), "{title}: some were not judged");
    let mut wrong = String::new();
    let mut failed = 0;
    let mut waiting: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (index, judgement) in &results {
        let name = name(&items[*index]);
        if !judgement.failures.is_empty() {
            failed += 1;
            wrong += &format!("\n{name}\n");
            for failure in &judgement.failures {
                wrong += &format!("    {failure}\n");
            }
        }
        for later in &judgement.later {
            waiting.entry(later).or_default().push(name.clone());
        }
    }
    for (later, names) in &waiting {
        println!("expected later: {later}: {}", names.join(" "));
    }
    // Past the harness, which hides what a passing test prints: nobody shall take what waits for passed.
    let _ = writeln!(
        std::io::stderr(),
        "{title}: {} judged, {failed} wrong, {} expectations wait for checks that do not exist yet (`--nocapture` lists them)",
        results.len(),
        waiting.values().map(Vec::len).sum::<usize>()
    );
    assert!(
        wrong.is_empty(),
        "{title}: {failed} of {} are wrong\n{wrong}",
        results.len()
    );
}
