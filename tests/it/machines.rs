//! Whole machines as text, replayed with the real binary: those of the project (`tests/machines`, `tests/cases`) and those
//! of the shared material, which were written by other people than the checks.

use crate::evidence::{self, Variant};
use crate::expect::{self, Checks, Expect};
use crate::program::{self, Judgement, Temporary};
use gpucheck::facts::{Failure, Seen};
use gpucheck::host::Source;
use gpucheck::host::archive::Archive;
use gpucheck::host::machine::{Entries, Entry, Operation};
use gpucheck::report::{FindingRow, Report, VerdictRow};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A machine stands on a base, that one on another; more than this is a loop.
const DEEPEST_BASE: usize = 8;

/// Machines of the shared material whose first name of `fire` the index folds under the second.
const FIRST_IS_FOLDED: &[&str] = &["module-missing-dkms-without-headers"];

/// A folder with `machine.txt` and `expect.toml`.
struct Case {
    name: String,
    folder: PathBuf,
}

/// What a folder holds, with its base laid under it.
struct Machine {
    text: String,
    entries: Entries,
    stands_alone: bool,
    expect: Expect,
}

fn own(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder)
}

/// Every machine there is.
fn cases() -> Vec<Case> {
    let mut folders = program::folders(&own("machines"));
    for check in program::folders(&own("cases")) {
        folders.extend(program::folders(&check));
    }
    if let Some(shared) = program::shared("machines") {
        folders.extend(program::folders(&shared));
    }
    folders
        .into_iter()
        .filter_map(|folder| {
            let name = program::name_of(&folder);
            let in_cases = folder
                .strip_prefix(own("cases"))
                .ok()
                .map(|path| path.display().to_string());
            let name = in_cases.unwrap_or(name);
            program::is_chosen(&name).then_some(Case { name, folder })
        })
        .collect()
}

/// The text of the machine of that name, which others may stand on.
fn base_text(name: &str) -> Result<String, String> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/machines");
    [own("machines"), shared]
        .iter()
        .find_map(|folder| fs::read_to_string(folder.join(name).join("machine.txt")).ok())
        .ok_or_else(|| format!("there is no base `{name}`"))
}

/// A machine with its base, and the base of that one, under it.
pub fn resolve(text: &str, deep: usize) -> Result<Entries, String> {
    let entries =
        Entries::parse(text.to_owned().leak()).map_err(|error| format!("machine.txt, {error}"))?;
    match entries.base() {
        None => Ok(entries.settled()),
        Some(name) if deep < DEEPEST_BASE => {
            let base = resolve(&base_text(name)?, deep + 1)
                .map_err(|error| format!("base {name}: {error}"))?;
            Ok(Entries::overlay(base, entries))
        }
        Some(_) => Err("a machine is its own base".to_owned()),
    }
}

/// Every machine with its name and what it rests on.
pub fn every() -> Vec<(String, Entries)> {
    let load = |case: Case| {
        let text = fs::read_to_string(case.folder.join("machine.txt")).ok()?;
        Some((case.name, resolve(&text, 0).ok()?))
    };
    cases().into_iter().filter_map(load).collect()
}

impl Case {
    fn load(&self) -> Result<Machine, String> {
        let read = |file: &str| {
            fs::read_to_string(self.folder.join(file)).map_err(|error| format!("{file}: {error}"))
        };
        let text = read("machine.txt")?;
        let entries = resolve(&text, 0)?;
        let mut expect = Expect::parse(&read("expect.toml")?)?;
        if FIRST_IS_FOLDED.contains(&self.name.as_str()) {
            expect.fire.swap(0, 1);
        }
        Ok(Machine {
            stands_alone: !text.lines().any(|line| line.starts_with("base ")),
            expect,
            text,
            entries,
        })
    }
}

/// Writes a machine to a file that goes away with the value.
pub fn write(machine: &Entries) -> Result<Temporary, String> {
    let file = Temporary(program::temporary("machine.txt"));
    fs::write(&file.0, machine.to_string()).map_err(|error| error.to_string())?;
    Ok(file)
}

fn replay(machine: &Entries, expect: &Expect) -> Result<(Report, i32), String> {
    let file = write(machine)?;
    let mut arguments = expect.arguments();
    arguments.extend(["--replay".into(), file.0.clone().into()]);
    program::report(arguments)
}

fn judge_machine(machine: &Machine, checks: &Checks) -> Result<Judgement, String> {
    let (report, exit) = replay(&machine.entries, &machine.expect)?;
    let text = if machine.expect.says.is_empty() && machine.expect.says_not.is_empty() {
        None
    } else {
        let file = write(&machine.entries)?;
        let mut arguments = machine.expect.arguments();
        arguments.extend(["--replay".into(), file.0.clone().into()]);
        Some(program::run(&arguments)?.stdout)
    };
    let mut judgement = expect::judge(&machine.expect, &report, exit, text.as_deref(), checks);
    for finding in &report.findings {
        judge_sources(finding, &mut judgement);
        judge_fixes(finding, &mut judgement);
    }
    for row in &report.verdicts {
        judge_doubt(row, &mut judgement);
    }
    Ok(judgement)
}

/// Every piece of evidence says where anyone can look again, and what was read there; every finding says why it matters.
fn judge_sources(finding: &FindingRow, judgement: &mut Judgement) {
    let name = &finding.check;
    for evidence in &finding.evidence {
        let source = evidence.source.as_str();
        let is_path = source.starts_with('/') && !source.contains(char::is_whitespace);
        let is_call = source.ends_with("()");
        let is_variable = !source.is_empty()
            && source
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let is_real = !source.contains('*');
        if !(is_real && (is_path || is_call || is_variable || source == "container")) {
            judgement.fail(format!("{name}: `{source}` is no path, call or variable"));
        }
        if evidence.says.trim().is_empty() {
            judgement.fail(format!("{name}: what {source} says is not told"));
        }
    }
    if finding.evidence.is_empty() || finding.why.is_empty() || finding.title.is_empty() {
        judgement.fail(format!("{name}: without title, evidence or reason"));
    }
}

/// A fix about a GPU names its address, and leaves no gap for what the check knows.
fn judge_fixes(finding: &FindingRow, judgement: &mut Judgement) {
    for fix in &finding.fixes {
        for text in fix.commands.iter().chain([&fix.words, &fix.confirm]) {
            if text.contains("{address}") || text.contains("ADDRESS") {
                judgement.fail(format!("{}: no address in `{text}`", finding.check));
            }
        }
    }
}

/// What cannot be told names what was asked: `does not exist` alone tells nothing.
fn judge_doubt(row: &VerdictRow, judgement: &mut Judgement) {
    const ALONE: [&str; 5] = [
        "does not exist",
        "permission denied",
        "not recorded here",
        "could not be read",
        "left out by",
    ];
    let says = row.says.as_deref().unwrap_or_default();
    if row.verdict == "cannot_tell" && ALONE.iter().any(|start| says.starts_with(start)) {
        judgement.fail(format!("{}: of what: {says}", row.check));
    }
}

/// The report for a ticket says as much as the one for people, and holds together as Markdown.
fn judge_markdown(machine: &Machine) -> Result<Judgement, String> {
    let file = write(&machine.entries)?;
    let report = |format: &str| {
        let arguments = [
            "--replay".into(),
            file.0.clone().into(),
            "--format".into(),
            format.into(),
        ];
        program::run(&arguments).map(|output| output.stdout)
    };
    let (people, ticket) = (report("terminal")?, report("markdown")?);
    let mut judgement = Judgement::default();
    let severities = ["error", "warning", "note"];
    // `1. error: TITLE`, behind `### ` in Markdown.
    let findings = |text: &str, mark: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.strip_prefix(mark))
            .filter_map(|line| {
                let (number, rest) = line.split_once(". ")?;
                let (severity, _) = rest.split_once(':')?;
                let is_one = number.parse::<u32>().is_ok() && severities.contains(&severity);
                is_one.then(|| format!("{number} {severity}"))
            })
            .collect()
    };
    let (shown, ticketed) = (findings(&people, ""), findings(&ticket, "### "));
    if shown != ticketed {
        judgement.fail(format!(
            "people read {shown:?}, the ticket has {ticketed:?}"
        ));
    }
    let counts: Vec<String> = severities
        .iter()
        .filter_map(|severity| {
            let ends = ticketed.iter().filter(|line| line.ends_with(severity));
            match ends.count() {
                0 => None,
                1 => Some(format!("1 {severity}")),
                number => Some(format!("{number} {severity}s")),
            }
        })
        .collect();
    let is_count = |line: &str| match counts.is_empty() {
        true => {
            line.starts_with("Nothing wrong was found") || line.starts_with("No finding is shown")
        }
        false => line == counts.join(", "),
    };
    if !ticket.lines().any(is_count) {
        judgement.fail(format!("the ticket does not count {counts:?}"));
    }
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    if ticket.lines().filter(is_fence).count() % 2 != 0
        || ticket.matches("<details>").count() != ticket.matches("</details>").count()
    {
        judgement.fail("a block does not end".to_owned());
    }
    let mut columns = 0;
    for line in ticket.lines() {
        let bars = line.matches('|').count() - line.matches("\\|").count();
        if line.starts_with('|') && columns != 0 && bars != columns {
            judgement.fail(format!(
                "a row of {bars} bars in a table of {columns}: {line}"
            ));
        }
        columns = if line.starts_with('|') { bars } else { 0 };
    }
    judge_folding(&ticket, &mut judgement);
    if ticket
        .chars()
        .any(|letter| letter.is_control() && letter != '\n')
    {
        judgement.fail("a control character".to_owned());
    }
    Ok(judgement)
}

/// What differs by nothing but the GPU is one row of a table.
fn judge_folding(ticket: &str, judgement: &mut Judgement) {
    let is_in_address = |letter: char| letter.is_ascii_hexdigit() || ":.".contains(letter);
    for title in ["What could not be told", "Every answer"] {
        let table = ticket.split_once(&format!("<summary>{title}"));
        let rows = table.and_then(|(_, rest)| rest.split_once("</details>"));
        let mut seen = BTreeSet::new();
        for row in rows.map_or("", |(rows, _)| rows).lines().skip(4) {
            let bare: Vec<&str> = row
                .split(|letter: char| !is_in_address(letter))
                .map(|word| word.trim_end_matches('.'))
                .filter(|word| word.contains(':') && word.contains('.'))
                .collect();
            let bare = bare
                .iter()
                .fold(row.to_owned(), |row, word| row.replace(word, ""));
            if row.contains("GPU") && !seen.insert(bare) {
                judgement.fail(format!("one row of several GPUs is not folded: {row}"));
            }
        }
    }
}

fn judge_evidence(machine: &Machine, checks: &Checks) -> Result<Judgement, String> {
    let mut judgement = Judgement::default();
    let lines = evidence::decides(&machine.text)?;
    if lines.is_empty() {
        return Ok(judgement);
    }
    let (with, _) = replay(&machine.entries, &machine.expect)?;
    for line in lines {
        for variant in Variant::ALL {
            let less = evidence::without(&machine.entries, &line.what, variant);
            match replay(&less, &machine.expect) {
                Ok((without, _)) => {
                    let found = evidence::judge(&line.check, variant, &with, &without, checks);
                    judgement.add(found);
                }
                Err(error) => judgement.fail(format!(
                    "{}, evidence {}: {error}",
                    line.check,
                    variant.name()
                )),
            }
        }
    }
    judgement.later.dedup();
    Ok(judgement)
}

fn judge_a_line_less(machine: &Machine) -> Result<Judgement, String> {
    let mut judgement = Judgement::default();
    for index in 0..machine.entries.entries.len() {
        let mut less = machine.entries.clone();
        let line = less.entries.remove(index);
        if !matches!(line, Entry::Whole(..) | Entry::Absent(_)) {
            continue;
        }
        let (report, _) =
            replay(&less, &machine.expect).map_err(|error| format!("without `{line}`: {error}"))?;
        for finding in expect::loud(&report) {
            judgement.fail(format!(
                "without `{line}`: {} of {} is loud: {}",
                finding.check, finding.subject, finding.title
            ));
        }
    }
    Ok(judgement)
}

/// Loads each machine and judges it; what cannot be loaded or run is a failure like any other.
fn judge_all(
    title: &str,
    cases: &[Case],
    judge: impl Fn(&Machine) -> Result<Judgement, String> + Sync,
) {
    program::judge_all(
        title,
        cases,
        |case| case.name.clone(),
        |case| {
            case.load()
                .and_then(|machine| judge(&machine))
                .unwrap_or_else(|error| Judgement {
                    failures: vec![error],
                    later: Vec::new(),
                })
        },
    );
}

#[test]
fn a_ticket_says_what_people_read() {
    judge_all("tickets", &cases(), judge_markdown);
}

#[test]
fn machines_come_out_as_expected() {
    let checks = program::checks();
    judge_all("machines", &cases(), |machine| {
        judge_machine(machine, &checks)
    });
}

#[test]
fn no_verdict_outlives_its_evidence() {
    let checks = program::checks();
    judge_all("evidence", &cases(), |machine| {
        judge_evidence(machine, &checks)
    });
}

#[test]
fn what_is_unknown_on_a_healthy_machine_is_no_fault() {
    let bases: Vec<Case> = cases()
        .into_iter()
        .filter(|case| {
            case.load()
                .is_ok_and(|machine| machine.stands_alone && machine.expect.fire.is_empty())
        })
        .collect();
    judge_all("bases with a line less", &bases, judge_a_line_less);
}

#[test]
fn every_machine_has_a_base_and_well_formed_expectations() {
    let cases = cases();
    program::judge_all(
        "machines as written",
        &cases,
        |case| case.name.clone(),
        |case| {
            let mut judgement = Judgement::default();
            match case.load() {
                Err(error) => judgement.fail(error),
                Ok(machine) => {
                    for text in machine.expect.fire.iter().chain(&machine.expect.hush) {
                        if let Err(error) = expect::alternatives(text) {
                            judgement.fail(error);
                        }
                    }
                    if let Err(error) = evidence::decides(&machine.text) {
                        judgement.fail(error);
                    }
                    judge_answers(&machine.entries, &mut judgement);
                    // The machine that is replayed is the one that was meant, without its base.
                    match Entries::parse(machine.entries.to_string().leak()) {
                        Ok(again) if again == machine.entries => {}
                        Ok(_) => judgement.fail("it is another machine once written and read"),
                        Err(error) => judgement.fail(error.to_string()),
                    }
                }
            }
            judgement
        },
    );
}

/// What is recorded is answered, also where links lead and folders are whole.
fn judge_answers(entries: &Entries, judgement: &mut Judgement) {
    let archive = Archive::new(entries.clone());
    for entry in &entries.entries {
        let is_answered = match entry {
            Entry::File { path, text, .. } => {
                archive.text(path, usize::MAX / 4).map(|(text, _)| text)
                    == Seen::Got(text.to_string())
            }
            Entry::Exists(path) => archive.real(path).got().is_some(),
            Entry::Link(path, target) => archive.link(path) == Seen::Got(target.to_string()),
            Entry::Dir(path, names) => archive.list(path).got().is_some_and(|listing| {
                names
                    .iter()
                    .all(|name| listing.names.iter().any(|listed| listed == name))
            }),
            Entry::Whole(path, _) => archive.list(path).got().is_some(),
            Entry::Absent(path) => archive.real(path).is_absent(),
            Entry::Error(path, Operation::Read, errno) => {
                archive.text(path, 9) == Seen::Failed(Failure::errno(errno))
            }
            Entry::Stat(path, stat) => archive.stat(path).got() == Some(&**stat),
            Entry::Acl(path, Some(line)) => archive
                .acl(path)
                .got()
                .is_some_and(|list| list.iter().any(|listed| listed == line)),
            Entry::Open(path, result) => archive.open(path) == Seen::Got(result.to_string()),
            Entry::Access(path, result) => archive.access(path) == Seen::Got(result.to_string()),
            Entry::ModInfo(path, _) => archive.modinfo(path).got().is_some(),
            Entry::Env(name, value) => archive.env(name) == Seen::Got(value.to_string()),
            _ => true,
        };
        if !is_answered {
            judgement.fail(format!("`{entry}` is recorded and not answered"));
        }
    }
}

#[test]
fn a_missing_base_and_a_loop_are_errors() {
    assert!(resolve("gpucheck-machine 1\nbase no-such-machine\n", 0).is_err());
    assert!(resolve("gpucheck-machine 1\nbase x\n", DEEPEST_BASE).is_err());
    assert!(resolve("gpucheck-machine 1\n", 0).is_ok());
}
