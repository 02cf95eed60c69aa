//! The report that people read.
//!
//! The verdict comes first, then the machine, what is wrong and how to mend it, what could not be told, and the counts.
//! Each section is written on its own, so that a bug in one never loses the others. Text is wrapped to the width of the
//! terminal, commands never: they are there to be pasted.

mod findings;
mod gpus;
#[cfg(test)]
mod tests;

use super::page::{INSET, Page, Sign, sign_line};
use super::style::{Style, Verbosity, clean};
use super::words::{
    Question, addresses, counted, doubtful, filled, gib, gpu_key, grouped, is_broken,
    next_boot_words, no_gpu_words, not_judged, nothing_told, question, safe, stack_words, stacks,
    subject_words, system_words, verdict_words,
};
use super::{Report, UntoldRow, VerdictRow};
use crate::finding::Severity;
use crate::readiness::{Readiness, State};
use findings::findings;
use gpus::gpus;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// Most groups of questions without an answer that are shown unless all are asked for.
const UNTOLD_GROUPS: usize = 3;

/// Writes the report. `took` says how long each probe ran, for the verbose form.
///
/// # Errors
/// Only what the writer says.
pub fn write(
    report: &Report,
    style: &Style,
    verbosity: Verbosity,
    took: &[(String, Duration)],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let quiet = verbosity == Verbosity::Quiet;
    let verbose = verbosity == Verbosity::Verbose;
    let mut sections: Vec<(&str, bool, Section)> = Vec::new();
    let mut add = |name, gap, write| sections.push((name, gap, write));
    if !quiet {
        add("the header", false, boxed(move |page| header(report, page)));
        add(
            "the verdict",
            false,
            boxed(move |page| verdict(report, page)),
        );
        add(
            "the machine",
            true,
            boxed(move |page| machine(report, verbose, page)),
        );
        add(
            "the GPUs",
            false,
            boxed(move |page| gpus(report, verbose, page)),
        );
    }
    add(
        "the findings",
        true,
        boxed(move |page| findings(report, verbose, page)),
    );
    if !quiet {
        add(
            "what could not be told",
            true,
            boxed(move |page| untold(report, verbose, page)),
        );
    }
    if verbose {
        add(
            "the answers",
            true,
            boxed(move |page| answers(report, page)),
        );
        add("the probes", true, boxed(move |page| durations(took, page)));
    }
    add(
        "the counts",
        true,
        boxed(move |page| footer(report, verbosity, page)),
    );

    let mut begun = false;
    for (name, gap, section) in sections {
        let text = rendered(name, style, &section);
        if text.is_empty() {
            continue;
        }
        if gap && begun {
            out.write_all(b"\n")?;
        }
        out.write_all(text.as_bytes())?;
        begun = true;
    }
    out.flush()
}

/// The findings alone, as the report shows them; empty where there are none.
pub(crate) fn findings_alone(report: &Report, style: &Style, verbose: bool) -> String {
    let section = boxed(move |page| findings(report, verbose, page));
    rendered("the findings", style, &section)
}

/// What could not be told, alone.
pub(crate) fn untold_alone(report: &Report, style: &Style) -> String {
    let section = boxed(move |page| untold(report, true, page));
    rendered("what could not be told", style, &section)
}

type Section<'a> = Box<dyn Fn(&mut Page) + 'a>;

fn boxed<'a>(section: impl Fn(&mut Page) + 'a) -> Section<'a> {
    Box::new(section)
}

/// The text of a section, or the confession that there is none.
fn rendered(name: &str, style: &Style, section: &Section) -> String {
    catch_unwind(AssertUnwindSafe(|| {
        let mut page = Page {
            style,
            text: String::new(),
        };
        section(&mut page);
        page.text
    }))
    .unwrap_or_else(|_| {
        format!("(gpucheck has a bug: {name} could not be written; `--format json` holds them)\n")
    })
}

fn header(report: &Report, page: &mut Page) {
    let name = format!("gpucheck {}", clean(&report.version));
    let painted = page.style.bold(&name);
    let text = format!("on {}", system_words(&report.host));
    page.hang(0, (&name, &painted), 2, &text, str::to_owned);
}

/// The lines that answer "does it work?": one a stack, what is broken first.
fn verdict(report: &Report, page: &mut Page) {
    if report.gpus.is_empty() {
        no_gpu(report, page);
    }
    for readiness in stacks(report) {
        stack_line(report, readiness, page);
    }
    if let Some(text) = next_boot_words(report) {
        sign_line(Sign::Warning, &text, page);
    }
    if let Some(text) = not_judged(report) {
        let sign = if report.findings.is_empty() {
            Sign::Unknown
        } else {
            Sign::Bad
        };
        sign_line(sign, text, page);
    }
}

fn no_gpu(report: &Report, page: &mut Page) {
    let sign = if report.gpus_whole {
        Sign::None
    } else {
        Sign::Unknown
    };
    sign_line(sign, &no_gpu_words(report), page);
    if let Some(hint) = filled(&report.hint) {
        let painted = page.style.note("hint:");
        page.hang(3, ("hint:", &painted), 3, &hint, str::to_owned);
    }
}

fn stack_line(report: &Report, readiness: &Readiness, page: &mut Page) {
    let sign = match readiness.state {
        State::Ready => Sign::Good,
        State::Partial => Sign::Warning,
        State::Broken => Sign::Bad,
        State::NotSetUp => Sign::None,
        State::Unknown => Sign::Unknown,
    };
    let (name, state, because) = stack_words(report, readiness);
    let mut text = format!("{name}: {state}");
    if !because.is_empty() {
        text += &format!(" - {because}");
    }
    sign_line(sign, &text, page);
}

fn machine(report: &Report, verbose: bool, page: &mut Page) {
    let host = &report.host;
    let mut parts = Vec::new();
    parts.extend(filled(&host.product));
    let cpus = host
        .cpus
        .filter(|cpus| *cpus > 0)
        .map(|cpus| counted(cpus as usize, "thread"));
    match (filled(&host.cpu), cpus) {
        (Some(cpu), Some(cpus)) => parts.push(format!("{cpu} ({cpus})")),
        (cpu, cpus) => parts.extend(cpu.or(cpus)),
    }
    if let Some(bytes) = host.memory_bytes.filter(|bytes| *bytes > 0) {
        parts.push(format!("{} memory", gib(bytes)));
    }
    // WSL is a virtual machine by its nature, and has been named.
    let wsl = host
        .place
        .as_deref()
        .is_some_and(|place| place.starts_with("wsl"));
    match filled(&host.hypervisor).filter(|_| !wsl).as_deref() {
        Some("a hypervisor") => parts.push("virtual machine".to_owned()),
        Some(name) => parts.push(format!("virtual machine ({name})")),
        None => {}
    }
    if let Some(secure_boot) = filled(&host.secure_boot) {
        parts.push(format!("Secure Boot {secure_boot}"));
    }
    if !parts.is_empty() {
        page.row("Machine", &parts.join(", "));
    }
    let live = report.origin == "live" || report.origin.is_empty();
    if let Some(user) = filled(&host.user).filter(|_| verbose || !live) {
        page.row("User", &user);
    }
    if verbose || !live {
        let clock = filled(&report.clock).map_or(String::new(), |clock| format!(", {clock}"));
        let tables = clean(&report.tables);
        let origin = safe(&report.origin);
        page.row("Source", &format!("{origin}{clock}; tables of {tables}"));
    }
}

fn untold(report: &Report, verbose: bool, page: &mut Page) {
    // The numbers that libraries give a GPU are for programs: who reads the report does not miss them.
    let asked: Vec<UntoldRow> = report
        .untold
        .iter()
        .filter(|row| verbose || !row.what.contains(" index."))
        .cloned()
        .collect();
    if asked.is_empty() {
        return;
    }
    let style = page.style;
    let reason = |row: &UntoldRow| {
        let what = verbose.then(|| row.what.clone());
        (what, row.why.clone(), row.would_tell.clone())
    };
    let mut groups = grouped(&asked, reason);
    // What a check could not tell comes before a field that is not known of a GPU, however many have none.
    groups.sort_by_key(|group| {
        (
            gpu_key(&group[0].what).is_some(),
            std::cmp::Reverse(group.len()),
        )
    });
    let shown = if verbose {
        groups.len()
    } else if report.findings.is_empty() {
        UNTOLD_GROUPS
    } else {
        UNTOLD_GROUPS - 1
    };
    let rest: usize = groups.iter().skip(shown).map(Vec::len).sum();
    page.paragraph(0, "Could not be told");
    for group in groups.iter().take(shown) {
        let first = group[0];
        let mut text = questions(report, group);
        text += &format!(": {}", safe(&first.why));
        if !first.would_tell.trim().is_empty() {
            text += &format!("; would tell: {}", safe(&first.would_tell));
        }
        let (label, painted) = Sign::Unknown.text(style);
        page.hang(
            0,
            (label, &painted),
            label.width() + 1,
            &text,
            str::to_owned,
        );
    }
    if rest > 0 {
        page.paragraph(3, &format!("and {rest} more, `gpucheck -v` shows all"));
    }
}

/// Questions in words, those that differ by nothing but the GPU as one, values of the same GPUs as one.
fn questions(report: &Report, rows: &[&UntoldRow]) -> String {
    let asked: Vec<Question> = rows.iter().map(|row| question(&row.what)).collect();
    let kinds = grouped(&asked, |question| (question.words.clone(), question.of_gpu));
    let mut said: Vec<(Vec<String>, String, usize)> = Vec::new();
    for kind in kinds {
        let first = kind[0];
        let keys: Vec<&str> = kind.iter().filter_map(|asked| asked.gpu).collect();
        let gpus = match (keys.is_empty(), first.of_gpu) {
            (true, _) => String::new(),
            (_, true) => format!(" of {}", addresses(report, &keys, false)),
            (_, false) => format!(" ({})", addresses(report, &keys, false)),
        };
        match said
            .iter_mut()
            .find(|(_, same, _)| first.of_gpu && *same == gpus)
        {
            Some((words, _, number)) => {
                words.push(first.words.clone());
                *number += kind.len();
            }
            None => said.push((vec![first.words.clone()], gpus, kind.len())),
        }
    }
    let shown: Vec<String> = said
        .iter()
        .take(2)
        .map(|(words, gpus, _)| format!("{}{gpus}", words.join(" and ")))
        .collect();
    let rest: usize = said.iter().skip(2).map(|(.., number)| number).sum();
    let more = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

fn answers(report: &Report, page: &mut Page) {
    if report.verdicts.is_empty() {
        return;
    }
    page.paragraph(0, &format!("Answers ({})", report.verdicts.len()));
    for row in &report.verdicts {
        let style = page.style;
        let (label, painted) = answer_sign(row).text(style);
        let mut text = format!("{} ({})", clean(&row.check), subject_words(&row.subject));
        match (row.verdict.as_str(), filled(&row.by)) {
            ("not_here", _) => text += ": does not arise",
            ("blocked", Some(by)) => text += &format!(": explained by {by}"),
            ("cannot_tell", _) => text += ": cannot be told",
            _ => {}
        }
        if let Some(says) = filled(&row.says) {
            text += &format!(": {says}");
        }
        page.hang(
            0,
            (label, &painted),
            label.width() + 1,
            &text,
            str::to_owned,
        );
    }
}

fn answer_sign(row: &VerdictRow) -> Sign {
    match (row.verdict.as_str(), row.severity) {
        ("fine", _) => Sign::Good,
        ("found", Some(Severity::Error)) => Sign::Bad,
        ("found", _) => Sign::Warning,
        ("cannot_tell", _) => Sign::Unknown,
        _ => Sign::None,
    }
}

fn durations(took: &[(String, Duration)], page: &mut Page) {
    if took.is_empty() {
        return;
    }
    page.paragraph(0, "Time that each probe took");
    let longest = took.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    for (name, duration) in took {
        let name = clean(name);
        let micros = duration.as_micros();
        let pad = " ".repeat(longest.saturating_sub(name.width()));
        page.verbatim(
            INSET,
            &format!(
                "{name}{pad} {:>6}.{} ms",
                micros / 1000,
                micros % 1000 / 100
            ),
        );
    }
}

fn footer(report: &Report, verbosity: Verbosity, page: &mut Page) {
    let counts = &report.counts;
    let contradicts = report.findings.is_empty() && is_broken(report);
    let sign = match (counts.errors, counts.warnings) {
        (1.., _) => Sign::Bad,
        _ if contradicts => Sign::Bad,
        (0, 1..) => Sign::Warning,
        (0, 0) if report.next_boot.is_some() => Sign::Warning,
        (0, 0) if nothing_told(report) || doubtful(report).is_some() => Sign::Unknown,
        (0, 0) => Sign::Good,
    };
    let verdict = verdict_words(report);
    let mut rest = Vec::new();
    // Where nothing was found, the verdict says it.
    let doubt = doubtful(report)
        .filter(|_| matches!(sign, Sign::Unknown | Sign::Warning) && counts.notes > 0)
        .filter(|_| counts.errors + counts.warnings == 0)
        .map_or(String::new(), |doubt| format!(", but {doubt}"));
    for (number, words) in [
        (counts.fine, "fine"),
        (counts.cannot_tell, "not told"),
        (counts.folded, "explained by a finding"),
    ] {
        if number > 0 {
            rest.push(format!("{number} {words}"));
        }
    }
    let rest = if rest.is_empty() {
        String::new()
    } else {
        format!("; answers: {}", rest.join(", "))
    };
    sign_line(sign, &format!("{verdict}{doubt}{rest}"), page);
    if verbosity == Verbosity::Quiet {
        return;
    }
    if let Some(first) = report.findings.first() {
        let check = clean(&first.check);
        page.verbatim(3, &format!("More on a finding: `gpucheck explain {check}`"));
        // What is replayed is a capture already.
        match report.origin.strip_prefix("root ") {
            Some(root) => {
                let root = clean(root);
                let command = format!("gpucheck capture --root {root} --output machine.txt");
                page.verbatim(3, &format!("For a ticket: `{command}`"));
            }
            None if report.origin == "live" || report.origin.is_empty() => {
                page.verbatim(3, "For a ticket: `gpucheck capture --output machine.txt`");
            }
            None => {}
        }
    }
}
