//! The findings: each with its evidence, reason and fixes, the same of several GPUs as one.

use super::page::{INSET, LABEL, Page};
use crate::finding::{Confidence, Severity};
use crate::report::style::clean;
use crate::report::words::{
    conditions, counted, gpu_key, grouped, groups, neutral, safe, subjects,
};
use crate::report::{FindingRow, FoldedRow, Report};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn findings(report: &Report, verbose: bool, page: &mut Page) {
    let mut shown = BTreeMap::new();
    for (number, group) in groups(report).iter().enumerate() {
        if number > 0 {
            page.text.push('\n');
        }
        finding(report, number + 1, group, verbose, page);
        fixes(number + 1, group, &mut shown, page);
        folded(group, verbose, page);
    }
}

fn finding(report: &Report, number: usize, group: &[&FindingRow], verbose: bool, page: &mut Page) {
    let style = page.style;
    let first = group[0];
    let severity = match first.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let label = format!("{number}. {severity}:");
    let painted = match first.severity {
        Severity::Error => style.error(&label),
        Severity::Warning => style.warning(&label),
        Severity::Note => style.note(&label),
    };
    let mut title = safe(&first.title);
    if group.len() > 1 && gpu_key(&first.subject).is_some_and(|key| first.title.contains(key)) {
        title += &format!(" (and {})", counted(group.len() - 1, "more GPU"));
    }
    page.hang(0, (&label, &painted), INSET, &title, |line| {
        style.bold(line)
    });

    let likely = match first.confidence {
        Confidence::Likely => ", likely",
        Confidence::Certain => "",
    };
    let about = format!(
        "{}, {}{likely}",
        clean(&first.check),
        subjects(report, group, verbose)
    );
    page.hang(INSET, ("", ""), INSET, &about, |line| style.dim(line));
    evidence(group, verbose, page);
    if !first.why.trim().is_empty() {
        page.detail("why", &safe(&first.why));
    }
}

fn evidence(group: &[&FindingRow], verbose: bool, page: &mut Page) {
    let shown = if verbose { group.len() } else { 1 };
    let mut label = "seen";
    for row in group.iter().take(shown) {
        for seen in &row.evidence {
            let source = clean(seen.source.trim());
            let says = safe(seen.says.trim());
            let text = match (source.is_empty(), says.is_empty()) {
                (false, false) => format!("{source}: {says}"),
                (false, true) => format!("{source}: empty"),
                (true, _) => says,
            };
            page.detail(label, &text);
            label = "";
        }
    }
    if shown < group.len() && label.is_empty() {
        let key = gpu_key(&group[0].subject).unwrap_or_default();
        let others = counted(group.len() - 1, "other");
        let text = format!("(of {}; `-v` shows the {others})", clean(key));
        page.detail("", &text);
    }
}

/// `shown` holds the fixes of earlier findings with their numbers: what mends two is said once.
fn fixes<'a>(
    number: usize,
    group: &[&'a FindingRow],
    shown: &mut BTreeMap<(&'a str, &'a [String]), usize>,
    page: &mut Page,
) {
    // A note without a fix needs none.
    if group[0].fixes.is_empty() && group[0].severity > Severity::Note {
        page.detail("fix", "no fix is known");
    }
    for (position, fix) in group[0].fixes.iter().enumerate() {
        let label = if position == 0 { "fix" } else { "or" };
        let first = *shown
            .entry((fix.words.as_str(), fix.commands.as_slice()))
            .or_insert(number);
        if first < number {
            page.detail(label, &format!("as for finding {first}"));
            continue;
        }
        let conditions = conditions(fix);
        let words = safe(fix.words.trim());
        let text = match (words.is_empty(), conditions.is_empty()) {
            (_, true) => words,
            (true, false) => format!("({conditions})"),
            (false, false) => format!("{words} ({conditions})"),
        };
        page.detail(label, &text);
        // Each GPU of a merged finding may need a command of its own; what is common is said once.
        let mut said = BTreeSet::new();
        for row in group {
            for command in row.fixes.get(position).map_or(&[][..], |fix| &fix.commands) {
                let command = clean(command.trim());
                if said.insert(command.clone()) {
                    page.verbatim(INSET + LABEL + 2, &page.style.bold(&command));
                }
            }
        }
        if !fix.confirm.trim().is_empty() {
            page.detail("check", &safe(fix.confirm.trim()));
        }
    }
}

/// One line for each finding that this one explains, the same of several subjects is said once; then how many questions have
/// no answer because of it.
fn folded(group: &[&FindingRow], verbose: bool, page: &mut Page) {
    let (all, unanswered): (Vec<_>, Vec<_>) = group
        .iter()
        .flat_map(|root| root.folded.iter().map(move |row| (*root, row)))
        .partition(|(_, row): &(&FindingRow, &FoldedRow)| verbose || row.was != "cannot_tell");
    let same = |(root, row): &(&FindingRow, &FoldedRow)| {
        let key = gpu_key(&row.subject).or(gpu_key(&root.subject));
        let says = key.map_or_else(|| row.says.clone(), |key| neutral(&row.says, key));
        (row.check.clone(), row.was.clone(), says)
    };
    let mut label = "explains";
    for lines in grouped(&all, same) {
        let row = lines[0].1;
        let mut text = clean(&row.check);
        if lines.len() > 1 {
            text += &format!(" ({} times)", lines.len());
        }
        if row.was == "cannot_tell" {
            text += ": cannot be told";
        }
        text += &format!(": {}", safe(row.says.trim()));
        page.detail(label, &text);
        label = "";
    }
    if !unanswered.is_empty() {
        let questions = counted(unanswered.len(), "question");
        let have = if unanswered.len() == 1 { "has" } else { "have" };
        let text = format!("why {questions} {have} no answer (`-v` shows more)");
        page.detail(label, &text);
    }
}
