//! `--only` and `--skip`: every check runs all the same; these decide what is shown and counted.

use super::names;
use crate::report::{FindingRow, Report};
use crate::tables::Tables;
use anyhow::{Result, bail};

/// Which checks to show.
pub struct Filter {
    all: Vec<&'static str>,
    /// None: all.
    only: Option<Vec<&'static str>>,
    skip: Vec<&'static str>,
}

impl Filter {
    /// Reads the patterns. An error: one of them matches no check.
    pub fn new(only: &[String], skip: &[String], tables: &Tables) -> Result<Filter> {
        let all = names::all();
        let only = match only {
            [] => None,
            patterns => Some(expand(patterns, &all, tables)?),
        };
        let skip = expand(skip, &all, tables)?;
        Ok(Filter { all, only, skip })
    }

    fn skips(&self, check: &str) -> bool {
        self.skip.contains(&check)
    }

    fn shows(&self, check: &str) -> bool {
        !self.skips(check) && self.only.as_ref().is_none_or(|only| only.contains(&check))
    }

    /// A finding stays, too, for what it explains: who asks for one check only must not be told that all is well because
    /// the reason has another name.
    fn shows_finding(&self, finding: &FindingRow) -> bool {
        self.shows(&finding.check)
            || !self.skips(&finding.check)
                && finding
                    .folded
                    .iter()
                    .any(|folded| folded.was == "found" && self.shows(&folded.check))
    }

    /// Takes out of the report what is not to be shown, and counts again.
    pub fn apply(&self, report: &mut Report) {
        if self.only.is_none() && self.skip.is_empty() {
            return;
        }
        report
            .findings
            .retain(|finding| self.shows_finding(finding));
        report.verdicts.retain(|verdict| self.shows(&verdict.check));
        report.untold.retain(|untold| {
            // The row of a check begins with its name; other rows are about sources and stay.
            let first = untold.what.split([' ', ':']).next().unwrap_or_default();
            !self.all.contains(&first) || self.shows(first)
        });
        report.count();
    }
}

fn expand(patterns: &[String], all: &[&'static str], tables: &Tables) -> Result<Vec<&'static str>> {
    let mut expanded = Vec::new();
    for pattern in patterns {
        let before = expanded.len();
        expanded.extend(all.iter().filter(|name| names::matches(pattern, name)));
        if expanded.len() == before {
            match names::of_alias(pattern, tables) {
                Some(name) => expanded.push(name),
                None => bail!(
                    "no check matches `{pattern}`; {}",
                    names::hint(pattern, all)
                ),
            }
        }
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use crate::report::{Counts, FoldedRow, HostLine, UntoldRow, VerdictRow};

    fn filter(only: Option<&[&'static str]>, skip: &[&'static str]) -> Filter {
        Filter {
            all: vec!["root", "effect", "other"],
            only: only.map(<[_]>::to_vec),
            skip: skip.to_vec(),
        }
    }

    fn finding(check: &str, severity: Severity, folded: &[&str]) -> FindingRow {
        FindingRow {
            folded: folded
                .iter()
                .map(|check| FoldedRow {
                    check: (*check).to_owned(),
                    subject: "machine".to_owned(),
                    was: "found".to_owned(),
                    says: String::new(),
                })
                .collect(),
            ..FindingRow::sample(check, severity)
        }
    }

    fn verdict(check: &str, verdict: &str) -> VerdictRow {
        VerdictRow {
            check: check.to_owned(),
            subject: "machine".to_owned(),
            verdict: verdict.to_owned(),
            says: None,
            by: None,
            was: None,
            cause: None,
            severity: None,
        }
    }

    fn report() -> Report {
        let untold = |what: &str| UntoldRow {
            what: what.to_owned(),
            why: String::new(),
            would_tell: String::new(),
        };
        Report {
            schema: 1,
            version: String::new(),
            tables: String::new(),
            origin: String::new(),
            clock: None,
            host: HostLine::default(),
            gpus: Vec::new(),
            gpus_whole: true,
            not_gpus: Vec::new(),
            versions: Vec::new(),
            readiness: Vec::new(),
            findings: vec![
                finding("root", Severity::Error, &["effect"]),
                finding("other", Severity::Note, &[]),
            ],
            verdicts: vec![
                verdict("root", "found"),
                verdict("effect", "blocked"),
                verdict("other", "found"),
            ],
            untold: vec![untold("other (gpu 0)"), untold("pci")],
            next_boot: None,
            hint: None,
            counts: Counts::default(),
            facts: None,
        }
    }

    fn shown(filter: &Filter) -> (Vec<String>, Vec<String>, usize, Counts) {
        let mut report = report();
        filter.apply(&mut report);
        let findings = report.findings.into_iter().map(|row| row.check).collect();
        let verdicts = report.verdicts.into_iter().map(|row| row.check).collect();
        (findings, verdicts, report.untold.len(), report.counts)
    }

    #[test]
    fn only_and_skip_decide_what_is_shown_and_counted() {
        let (findings, verdicts, untold, counts) = shown(&filter(Some(&["other"]), &[]));
        assert_eq!(
            (findings, verdicts),
            (vec!["other".into()], vec!["other".into()])
        );
        assert_eq!((untold, counts.errors, counts.notes), (2, 0, 1));

        let (findings, verdicts, untold, counts) = shown(&filter(None, &["other"]));
        assert_eq!(findings, ["root"]);
        assert_eq!(verdicts, ["root", "effect"]);
        assert_eq!(
            (untold, counts.errors, counts.folded, counts.notes),
            (1, 1, 1, 0)
        );

        let (findings, ..) = shown(&filter(Some(&["root", "other"]), &["root"]));
        assert_eq!(findings, ["other"]);
    }

    #[test]
    fn a_root_is_shown_for_what_it_explains() {
        let (findings, verdicts, _, counts) = shown(&filter(Some(&["effect"]), &[]));
        assert_eq!(findings, ["root"]);
        assert_eq!(verdicts, ["effect"]);
        assert_eq!(counts.errors, 1);
        let (findings, ..) = shown(&filter(Some(&["effect"]), &["root"]));
        assert!(findings.is_empty());
        let (findings, ..) = shown(&filter(None, &["effect"]));
        assert_eq!(findings, ["root", "other"]);
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_an_error() {
        let wrong = Filter::new(&["no-such-check".to_owned()], &[], &Tables::embedded());
        assert!(wrong.is_err());
        let wrong = Filter::new(&[], &["*-nothing-like-it".to_owned()], &Tables::embedded());
        assert!(wrong.is_err());
    }
}
