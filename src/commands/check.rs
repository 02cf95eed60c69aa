//! `gpucheck`: look, judge, report.

use super::filter::Filter;
use super::look::{look, replay};
use super::{BAD, GOOD, say, style_for};
use crate::cli::{CheckArgs, FailOn, Format, Requirement};
use crate::finding::Severity;
use crate::readiness::State;
use crate::report::style::Verbosity;
use crate::report::{self, Report, json, markdown, terminal};
use crate::view::{Stack, View};
use crate::{chain, checks, files, readiness};
use anyhow::{Context, Result, bail};
use clap::ColorChoice;
use std::collections::BTreeSet;

/// Looks, judges, reports.
pub fn run(args: &CheckArgs, color: ColorChoice) -> Result<u8> {
    if args.facts && args.format != Format::Json {
        bail!("--facts needs --format json");
    }
    let tables = super::tables_of(
        args.data.as_deref(),
        args.replay.is_none() && args.look.root.is_none(),
    )?;
    let filter = Filter::new(&args.only, &args.skip, &tables)?;
    let looked = match &args.replay {
        Some(machine) => replay(machine, &args.look, &tables)?,
        None => look(&args.look, &tables, false)?,
    };

    let view = View::new(&looked.facts, &tables, &required_stacks(&args.require));
    let answers = chain::judge(checks::ALL, &view, &tables);
    let readiness = readiness::rows(&view, &answers);
    let mut report = report::assemble(&view, &answers, &readiness, &looked.origin);
    filter.apply(&mut report);
    if args.facts {
        report.facts = Some(Box::new(looked.facts.clone()));
    }

    let mut text = Vec::new();
    match args.format {
        Format::Json => json::write(&report, &mut text)?,
        Format::Markdown => markdown::write(&report, &looked.took, &mut text)?,
        Format::Terminal => {
            let style = style_for(&args.output, color);
            terminal::write(&report, &style, verbosity(args), &looked.took, &mut text)?;
        }
    }
    files::write(&args.output, &text)
        .with_context(|| format!("cannot write `{}`", args.output.display()))?;

    let unmet: Vec<String> = args
        .require
        .iter()
        .filter_map(|requirement| unmet(requirement, &report))
        .collect();
    for why in &unmet {
        say(&format!("not met: {why}"));
    }
    let failed = !unmet.is_empty() || fails(args.fail_on, &report);
    Ok(if failed { BAD } else { GOOD })
}

fn required_stacks(requirements: &[Requirement]) -> Vec<Stack> {
    let named = |stack: &Stack| requirements.contains(&Requirement::Stack(stack.name().to_owned()));
    Stack::ALL.into_iter().filter(named).collect()
}

fn verbosity(args: &CheckArgs) -> Verbosity {
    match (args.quiet, args.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    }
}

fn fails(fail_on: FailOn, report: &Report) -> bool {
    let worst = report.findings.iter().map(|finding| finding.severity).max();
    match fail_on {
        FailOn::Never => false,
        FailOn::Note => worst.is_some(),
        FailOn::Warning => worst >= Some(Severity::Warning),
        FailOn::Error => worst >= Some(Severity::Error),
    }
}

/// Why a requirement is not met; None: it is. Only `ready` is enough: what could not be told is no yes.
fn unmet(requirement: &Requirement, report: &Report) -> Option<String> {
    match requirement {
        Requirement::Stack(name) => {
            let Some(row) = report.readiness.iter().find(|row| row.stack == *name) else {
                return Some(format!(
                    "{name} is unknown: nothing here was asked about it"
                ));
            };
            let state = state(row.state);
            (row.state != State::Ready).then(|| format!("{name} is {state}: {}", row.because))
        }
        Requirement::Gpus(count) => {
            let works = |state| matches!(state, State::Ready | State::Partial);
            let working = report.readiness.iter().filter(|row| works(row.state));
            let ready: BTreeSet<&String> = working.flat_map(|row| &row.gpus).collect();
            (ready.len() < *count).then(|| {
                let seen = report.gpus.len();
                let ready = ready.len();
                let mut why = format!("gpus={count}: {ready} ready, {seen} seen");
                for row in &report.readiness {
                    // Of Vulkan no GPU is counted.
                    let counts = Stack::ALL.iter().any(|stack| stack.name() == row.stack);
                    if counts && !matches!(row.state, State::Ready | State::NotSetUp) {
                        why += &format!("; {} is {}: {}", row.stack, state(row.state), row.because);
                    }
                }
                why
            })
        }
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Ready => "ready",
        State::Partial => "partly ready",
        State::Broken => "not ready",
        State::NotSetUp => "not set up",
        State::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::readiness::Readiness;
    use crate::report::{FindingRow, Origin};
    use crate::tables::Tables;

    fn report() -> Report {
        let (facts, tables) = (Facts::default(), Tables::embedded());
        let view = View::new(&facts, &tables, &[]);
        let mut report = report::assemble(&view, &[], &[], &Origin::default());
        report.findings.clear();
        report
    }

    fn finding(severity: Severity) -> FindingRow {
        FindingRow::sample("a-fault", severity)
    }

    #[test]
    fn the_worst_finding_decides() {
        use FailOn::{Error, Never, Note, Warning};
        let fail_on = [Error, Warning, Note, Never];
        for (worst, expected) in [
            (None, [false; 4]),
            (Some(Severity::Note), [false, false, true, false]),
            (Some(Severity::Warning), [false, true, true, false]),
            (Some(Severity::Error), [true, true, true, false]),
        ] {
            let mut report = report();
            report.findings.extend(worst.map(finding));
            assert_eq!(
                fail_on.map(|from| fails(from, &report)),
                expected,
                "{worst:?}"
            );
        }
    }

    #[test]
    fn only_what_is_ready_meets_a_requirement() {
        let mut report = report();
        let row = |stack: &str, state, gpus: &[&str]| Readiness {
            stack: stack.to_owned(),
            state,
            broken_at: None,
            because: format!("of {stack}"),
            finding: None,
            doubt: false,
            gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
        };
        report.readiness = vec![
            row("cuda", State::Ready, &["a", "b"]),
            row("rocm", State::Broken, &[]),
            row("vulkan", State::Partial, &["b", "c"]),
            row("level-zero", State::Unknown, &["d"]),
        ];
        let unmet_stack = |stack: &str| unmet(&Requirement::Stack(stack.to_owned()), &report);
        assert_eq!(unmet_stack("cuda"), None);
        for (stack, state) in [
            ("rocm", "not ready"),
            ("vulkan", "partly ready"),
            ("level-zero", "unknown"),
        ] {
            let why = format!("{stack} is {state}: of {stack}");
            assert_eq!(unmet_stack(stack), Some(why));
        }
        assert_eq!(unmet(&Requirement::Gpus(3), &report), None);
        let why = unmet(&Requirement::Gpus(4), &report).expect("too few");
        assert!(why.starts_with("gpus=4: 3 ready, 0 seen"), "{why}");
        assert!(why.contains("rocm is not ready: of rocm"), "{why}");
        assert!(!why.contains("vulkan"), "{why}");
        report.readiness.clear();
        assert!(unmet(&Requirement::Stack("cuda".to_owned()), &report).is_some());
        assert!(unmet(&Requirement::Gpus(1), &report).is_some());
    }
}
