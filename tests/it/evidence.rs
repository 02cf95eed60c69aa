//! The evidence test: when what a verdict rests on is taken away, the verdict must become "cannot tell", never "fine".
//!
//! A machine names what decides in comments: `# decides CHECK: WHAT ...`.

use crate::expect::{Checks, is_found, state_name};
use crate::program::Judgement;
use gpucheck::facts::Why;
use gpucheck::host::machine::{Entries, Entry, Operation};
use gpucheck::readiness::State;
use gpucheck::report::{Report, VerdictRow};
use std::collections::BTreeSet;

const OPERATIONS: [Operation; 6] = [
    Operation::Read,
    Operation::List,
    Operation::Link,
    Operation::Stat,
    Operation::Open,
    Operation::Access,
];

/// One line of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decides {
    pub check: String,
    pub what: Vec<What>,
}

/// One thing that a verdict rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Path(String),
    Env(String),
    Log,
    Answer(String),
    Run(Vec<String>),
}

/// How the evidence is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Asking gives an error.
    Fails,
    /// Nobody asked.
    Unknown,
}

impl Variant {
    pub const ALL: [Variant; 2] = [Variant::Fails, Variant::Unknown];

    pub fn name(self) -> &'static str {
        match self {
            Variant::Fails => "EIO",
            Variant::Unknown => "unknown",
        }
    }
}

/// The lines of a machine that name evidence.
pub fn decides(machine: &str) -> Result<Vec<Decides>, String> {
    machine
        .lines()
        .filter_map(|line| line.strip_prefix("# decides "))
        .map(|line| {
            let (check, what) = line
                .split_once(": ")
                .ok_or_else(|| format!("`# decides {line}` names no check"))?;
            Ok(Decides {
                check: check.to_owned(),
                what: whats(what)?,
            })
        })
        .collect()
}

fn whats(text: &str) -> Result<Vec<What>, String> {
    let mut words = text.split_whitespace().peekable();
    let begins =
        |word: &str| word.starts_with('/') || ["env", "log", "answer", "run"].contains(&word);
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let mut follows = || words.next().ok_or_else(|| format!("`{text}` is cut short"));
        found.push(match word {
            "env" => What::Env(follows()?.to_owned()),
            "log" => {
                if follows()? == "file" {
                    follows()?;
                }
                What::Log
            }
            "answer" => What::Answer(follows()?.trim_start_matches('@').to_owned()),
            "run" => {
                let mut command = vec![follows()?.to_owned()];
                while let Some(word) = words.next_if(|word| !begins(word)) {
                    command.push(word.to_owned());
                }
                What::Run(command)
            }
            path if path.starts_with('/') => What::Path(path.to_owned()),
            other => return Err(format!("`{other}` is no evidence")),
        });
    }
    if found.is_empty() {
        return Err(format!("`{text}` names nothing"));
    }
    Ok(found)
}

/// The machine without the evidence of a line; all of it goes at once. The machine is settled, with its base under it.
pub fn without(machine: &Entries, what: &[What], variant: Variant) -> Entries {
    let mut machine = machine.clone();
    let mut later = Vec::new();
    for what in what {
        match what {
            What::Path(path) => {
                match variant {
                    Variant::Fails => later.extend(OPERATIONS.map(|operation| {
                        Entry::Error(path.clone().into(), operation, "EIO".into())
                    })),
                    Variant::Unknown => {
                        forget(&mut machine.entries, path);
                        later.push(Entry::Unasked(path.clone().into(), Why::NotCaptured, None));
                    }
                }
            }
            What::Env(variable) => machine.entries.retain(|entry| match entry {
                Entry::EnvWhole => false,
                Entry::Env(name, _) | Entry::Unset(name) => name != variable,
                _ => true,
            }),
            What::Log => later.push(Entry::Log("none EPERM".into(), Vec::new())),
            What::Answer(library) => machine
                .entries
                .retain(|entry| !matches!(entry, Entry::Answer(name, _) if name == library)),
            What::Run(wanted) => {
                for entry in &mut machine.entries {
                    if let Entry::Run {
                        command,
                        rc,
                        output,
                    } = entry
                        && wanted.iter().eq(command.iter().take(wanted.len()))
                    {
                        *rc = 1;
                        *output = "".into();
                    }
                }
            }
        }
    }
    Entries::overlay(machine, Entries::new(later))
}

/// Takes a path out: what is said of it, its name in the listing of its folder, and every `whole` that would prove that it
/// does not exist. What stands below it stays.
fn forget(entries: &mut Vec<Entry>, path: &str) {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = if folder.is_empty() { "/" } else { folder };
    let is_below = |above: &str| path.starts_with(&format!("{}/", above.trim_end_matches('/')));
    entries.retain_mut(|entry| match entry {
        Entry::Whole(above, false) => above != folder && above != path,
        Entry::Whole(above, true) => !is_below(above) && above != path,
        Entry::Dir(listed, names) if listed == folder => {
            names.retain(|listed| listed != name);
            true
        }
        _ => true,
    });
}

/// A GPU that only a driver still knows.
fn is_remembered(subject: &str) -> bool {
    subject.starts_with("gpu proc:") || subject.starts_with("gpu kfd:")
}

/// Holds the report of a machine without evidence against that of the machine itself.
pub fn judge(
    check: &str,
    variant: Variant,
    with: &Report,
    without: &Report,
    checks: &Checks,
) -> Judgement {
    let mut judgement = Judgement::default();
    if !checks.has(check) {
        judgement.later(check);
        return judgement;
    }
    let subjects: BTreeSet<&str> = with
        .verdicts
        .iter()
        .filter(|row| row.check == check && is_found(row))
        .map(|row| row.subject.as_str())
        .collect();
    if subjects.is_empty() {
        judgement.fail(format!(
            "{check} is not found, so nothing can be taken from it"
        ));
    }
    for subject in subjects {
        let row = without
            .verdicts
            .iter()
            .find(|row| row.check == check && row.subject == subject);
        let what = format!("{check} of {subject}, evidence {}", variant.name());
        match row {
            // A GPU that is on no bus is known from the evidence alone: without it nobody can name it, and the list of GPUs
            // must say that it is not complete.
            None if is_remembered(subject) && !without.gpus_whole => {}
            None => judgement.fail(format!("{what}: it is not asked any more")),
            Some(row) if is_honest(row) => {}
            Some(row) => judgement.fail(format!(
                "{what}: it must not be {}: {}",
                row.verdict,
                row.says.as_deref().unwrap_or_default()
            )),
        }
    }
    // What was not ready with all the evidence is not ready with less of it.
    for row in without
        .readiness
        .iter()
        .filter(|row| row.state == State::Ready)
    {
        let before = with
            .readiness
            .iter()
            .find(|other| other.stack == row.stack)
            .map_or(State::Unknown, |other| other.state);
        if before != State::Ready {
            judgement.fail(format!(
                "{check}, evidence {}: {} was {} and must not become ready",
                variant.name(),
                row.stack,
                state_name(before)
            ));
        }
    }
    judgement
}

/// Cannot tell, or found by other evidence; folded or not.
fn is_honest(row: &VerdictRow) -> bool {
    let verdict = match row.verdict.as_str() {
        "blocked" => row.was.as_deref().unwrap_or_default(),
        verdict => verdict,
    };
    matches!(verdict, "cannot_tell" | "found")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpucheck::facts::Seen;
    use gpucheck::host::Source;
    use gpucheck::host::archive::Archive;

    #[test]
    fn lines_that_name_evidence_are_read() {
        let machine = "# a comment\n# decides a: /x env A log journal answer @nvml run rpm -qa /y log file z\nclock now\n# decides b: run rpm";
        let found = decides(machine).expect("well-formed");
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0].what,
            [
                What::Path("/x".to_owned()),
                What::Env("A".to_owned()),
                What::Log,
                What::Answer("nvml".to_owned()),
                What::Run(vec!["rpm".to_owned(), "-qa".to_owned()]),
                What::Path("/y".to_owned()),
                What::Log,
            ]
        );
        assert_eq!(found[1].check, "b");
        for bad in ["a", "a: ", "a: env", "a: word", "a: log"] {
            assert!(decides(&format!("# decides {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn evidence_is_taken_away_in_both_ways() {
        let machine = Entries::parse(
            "gpucheck-machine 1\ndir /d n m\nwhole /d\nfile /d/n\n| x\nfile /d/n2/deep\n| x\nwhole /lib/**\n\
             absent /lib/a\nenv whole\nenv A=1\nenv B=2\nlog kmsg\n| x\nanswer @nvml {\"ok\":1}\nrun rpm -qa rc=0\n| x\n",
        )
        .expect("well-formed")
        .settled();
        let what = whats("/d/n /d/n2 /lib/a env A log kmsg answer @nvml run rpm").expect("what");
        let failing = Archive::new(without(&machine, &what, Variant::Fails));
        assert_eq!(failing.text("/d/n", 9), Seen::error("EIO"));
        assert_eq!(failing.real("/d/n"), Seen::error("EIO"));
        assert_eq!(failing.stat("/lib/a"), Seen::error("EIO"));
        assert_eq!(failing.text("/lib/b", 9), Seen::Absent);
        let unknown = without(&machine, &what, Variant::Unknown);
        let text = unknown.to_string();
        for gone in [
            "whole /d",
            "whole /lib/**",
            "absent",
            "env A",
            "env whole",
            "@nvml",
            "| x\nlog",
        ] {
            assert!(!text.contains(gone), "{gone} in\n{text}");
        }
        for kept in [
            "env B=2",
            "dir /d m\n",
            "run rpm -qa rc=1\n",
            "log none EPERM\n",
        ] {
            assert!(text.contains(kept), "{kept} not in\n{text}");
        }
        let unknown = Archive::new(unknown);
        let nothing = Seen::Unasked(Why::NotCaptured);
        assert_eq!(unknown.real("/d/n"), nothing);
        assert_eq!(unknown.real("/lib/a"), nothing);
        assert_eq!(unknown.real("/lib/b"), nothing);
        assert!(unknown.text("/d/n2/deep", 9).got().is_some());
        assert_eq!(unknown.env("A"), nothing);
    }
}
