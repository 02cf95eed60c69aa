//! The findings: each with its evidence, reason and fixes, the same of several GPUs as one.

use crate::finding::Severity;
use crate::report::page::{INSET, LABEL, Page};
use crate::report::style::clean;
use crate::report::words::{
    commands, conditions, confidence, counted, explained, filled, gpu_key, groups, safe, severity,
    subjects, title,
};
use crate::report::{FindingRow, Report};
use std::collections::BTreeMap;

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
    let label = format!("{number}. {}:", severity(first.severity));
    let painted = match first.severity {
        Severity::Error => style.error(&label),
        Severity::Warning => style.warning(&label),
        Severity::Note => style.note(&label),
    };
    page.hang(0, (&label, &painted), INSET, &title(group), |line| {
        style.bold(line)
    });

    let cause = filled(&first.cause).map_or(String::new(), |cause| format!(" ({cause})"));
    let about = format!(
        "{}{cause}, {}{}",
        clean(&first.check),
        subjects(report, group, verbose),
        confidence(first.confidence)
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
        for command in commands(group, position) {
            page.verbatim(INSET + LABEL + 2, &page.style.bold(&command));
        }
        if !fix.confirm.trim().is_empty() {
            page.detail("check", &safe(fix.confirm.trim()));
        }
    }
}

/// One line for each finding that this one explains, the same of several subjects is said once; then how many questions have
/// no answer because of it.
fn folded(group: &[&FindingRow], verbose: bool, page: &mut Page) {
    let (lines, unanswered) = explained(group, verbose);
    let mut label = "explains";
    for (check, says) in lines {
        page.detail(label, &format!("{check}{says}"));
        label = "";
    }
    if unanswered > 0 {
        let questions = counted(unanswered, "question");
        let have = if unanswered == 1 { "has" } else { "have" };
        let text = format!("why {questions} {have} no answer (`-v` shows more)");
        page.detail(label, &text);
    }
}
