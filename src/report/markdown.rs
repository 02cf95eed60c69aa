//! The report for a ticket: Markdown as GitHub and GitLab understand it.
//!
//! The verdict and the findings stand open, everything else is folded below. Text from the machine is shown as text: it
//! cannot start a heading, a link, a mention or a comment.

use super::style::clean;
use super::words::{
    addresses, commands, conditions, confidence, counted, driver_words, explained, filled, gib,
    gpu_key, grouped, groups, indexes, link_words, neutral, next_boot_words, no_gpu_words,
    not_judged, place_of, question, safe, severity, stack_words, stacks, state, subject_words,
    subjects, system_words, title, title_of, verdict_words,
};
use super::{FindingRow, Report, UntoldRow, VerdictRow};
use crate::finding::{Evidence, Severity};
use crate::readiness::State;
use std::fmt::Write as _;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Writes the report. `took` says how long each source took.
///
/// # Errors
/// Only what the writer says.
pub fn write(
    report: &Report,
    took: &[(String, Duration)],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    type Section<'a> = (&'a str, Box<dyn Fn() -> String + 'a>);
    let sections: Vec<Section> = vec![
        ("the verdict", Box::new(|| verdict(report))),
        ("the findings", Box::new(|| findings(report))),
        ("the GPUs", Box::new(|| gpus(report))),
        ("the versions", Box::new(|| versions(report))),
        ("the details", Box::new(|| details(report, took))),
    ];
    for (name, section) in sections {
        let text = catch_unwind(AssertUnwindSafe(section)).unwrap_or_else(|_| {
            format!(
                "(gpucheck has a bug: {name} could not be written; `--format json` holds them)\n\n"
            )
        });
        out.write_all(text.as_bytes())?;
    }
    out.flush()
}

fn verdict(report: &Report) -> String {
    let mut text = format!(
        "**gpucheck {}** on {}\n\n",
        inline(&report.version),
        inline(&system_words(&report.host))
    );
    if report.gpus.is_empty() {
        let hint = filled(&report.hint).map_or(String::new(), |hint| format!("; {hint}"));
        let words = format!("{}{hint}", no_gpu_words(report));
        let _ = writeln!(text, "{}\n", inline(&words));
    }
    if let Some(words) = not_judged(report) {
        let _ = writeln!(text, "{words}\n");
    }
    let rows: Vec<Vec<String>> = stacks(report)
        .into_iter()
        .map(|row| {
            let (name, state, because) = stack_words(report, row);
            let state = match row.state {
                State::Broken | State::Partial => format!("**{}**", inline(&state)),
                _ => inline(&state),
            };
            vec![inline(&name), state, inline(&because)]
        })
        .collect();
    text += &table(&["stack", "state", "because"], &rows);
    if let Some(words) = next_boot_words(report) {
        let _ = writeln!(text, "**{}**\n", inline(&words));
    }
    text
}

fn findings(report: &Report) -> String {
    let mut text = String::new();
    for (number, group) in groups(report).iter().enumerate() {
        finding(report, number + 1, group, &mut text);
    }
    text + &format!("{}\n\n", inline(&verdict_words(report)))
}

fn finding(report: &Report, number: usize, group: &[&FindingRow], text: &mut String) {
    let first = group[0];
    let cause = filled(&first.cause).map_or(String::new(), |cause| format!(" ({cause})"));
    let _ = writeln!(
        text,
        "### {number}. {}: {}\n\n{}{}, {}{}\n",
        severity(first.severity),
        inline(&title(group)),
        code(&first.check),
        inline(&cause),
        inline(&subjects(report, group, true)),
        confidence(first.confidence)
    );
    for seen in &first.evidence {
        let _ = writeln!(text, "- seen: {}", evidence(seen));
    }
    if !first.why.trim().is_empty() {
        let _ = writeln!(text, "- why: {}", inline(&safe(first.why.trim())));
    }
    fixes(group, text);
    let (lines, unanswered) = explained(group, false);
    for (check, says) in lines {
        let _ = writeln!(text, "- explains: {}{}", code(&check), inline(&says));
    }
    if unanswered > 0 {
        let have = if unanswered == 1 { "has" } else { "have" };
        let questions = counted(unanswered, "question");
        let _ = writeln!(text, "- explains: why {questions} {have} no answer");
    }
    text.push('\n');
    // What is said above was seen of the first; of the others it may differ.
    let others: Vec<Vec<String>> = group
        .iter()
        .skip(1)
        .flat_map(|row| {
            let about = inline(&subject_words(&row.subject));
            let seen = row.evidence.iter();
            seen.map(move |seen| vec![about.clone(), evidence(seen)])
        })
        .collect();
    folded("Seen of the others", &["about", "seen"], &others, text);
}

fn evidence(seen: &Evidence) -> String {
    let source = code(seen.source.trim());
    let says = inline(&safe(seen.says.trim()));
    match (source.is_empty(), says.is_empty()) {
        (false, false) => format!("{source}: {says}"),
        (false, true) => format!("{source}: empty"),
        (true, _) => says,
    }
}

fn fixes(group: &[&FindingRow], text: &mut String) {
    let first = group[0];
    // A note without a fix needs none.
    if first.fixes.is_empty() && first.severity > Severity::Note {
        text.push_str("- fix: no fix is known\n");
    }
    for (position, fix) in first.fixes.iter().enumerate() {
        let label = if position == 0 { "fix" } else { "or" };
        let conditions = conditions(fix);
        let conditions = if conditions.is_empty() {
            String::new()
        } else {
            format!(" ({conditions})")
        };
        let words = inline(&safe(fix.words.trim()));
        let _ = writeln!(text, "- {label}: {words}{}", inline(&conditions));
        let commands = commands(group, position);
        if !commands.is_empty() {
            let fence = "`".repeat(longest_run(&commands.join("\n")).max(2) + 1);
            let _ = writeln!(text, "\n  {fence}sh");
            for command in commands {
                let _ = writeln!(text, "  {command}");
            }
            let _ = writeln!(text, "  {fence}\n");
        }
        if !fix.confirm.trim().is_empty() {
            let _ = writeln!(text, "  - to check: {}", inline(&safe(fix.confirm.trim())));
        }
    }
}

fn gpus(report: &Report) -> String {
    let mut text = String::new();
    let rows: Vec<Vec<String>> = report
        .gpus
        .iter()
        .map(|gpu| {
            let memory = gpu.memory_bytes.filter(|bytes| *bytes > 0).map(gib);
            let link = gpu.link.as_ref().and_then(link_words);
            let mut known_as = indexes(gpu);
            // How it is driven has a column of its own.
            known_as.extend(state(gpu).into_iter().skip(1));
            [
                place_of(gpu),
                title_of(gpu),
                filled(&gpu.id).unwrap_or_default(),
                filled(&gpu.architecture).unwrap_or_default(),
                filled(&gpu.target).unwrap_or_default(),
                memory.unwrap_or_default(),
                driver_words(gpu),
                link.unwrap_or_default(),
                known_as.join(", "),
            ]
            .map(|text| inline(&text))
            .into()
        })
        .collect();
    if !rows.is_empty() {
        text.push_str("### GPUs\n\n");
        let heads = [
            "address",
            "GPU",
            "id",
            "architecture",
            "target",
            "memory",
            "driver",
            "link",
            "known as",
        ];
        text.push_str(&table(&heads, &rows));
    }
    if !report.gpus_whole && !report.gpus.is_empty() {
        text.push_str("There may be more GPUs: not all of the PCI bus could be looked at\n\n");
    }
    for device in &report.not_gpus {
        let name = filled(&device.name).or_else(|| filled(&device.id));
        let _ = writeln!(
            text,
            "Not a GPU: {} at {} ({})\n",
            inline(&name.unwrap_or_else(|| "device".to_owned())),
            inline(&device.pci),
            inline(&device.kind)
        );
    }
    text
}

fn versions(report: &Report) -> String {
    let host = &report.host;
    let threads = host.cpus.filter(|cpus| *cpus > 0);
    let threads = threads.map(|cpus| counted(cpus as usize, "thread"));
    let cpu = match (filled(&host.cpu), threads) {
        (Some(cpu), Some(threads)) => Some(format!("{cpu} ({threads})")),
        (cpu, threads) => cpu.or(threads),
    };
    let memory = host.memory_bytes.filter(|bytes| *bytes > 0).map(gib);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (what, version) in [
        ("system", &host.os),
        ("kernel", &host.kernel),
        ("machine", &host.product),
        ("processor", &cpu),
        ("memory", &memory),
        ("place", &host.place),
        ("Secure Boot", &host.secure_boot),
        ("judged for", &host.user),
    ] {
        if let Some(version) = filled(version) {
            rows.push(vec![what.to_owned(), inline(&version), String::new()]);
        }
    }
    for row in &report.versions {
        let version = filled(&row.version).unwrap_or_else(|| "not known".to_owned());
        rows.push(vec![inline(&row.what), inline(&version), code(&row.source)]);
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "### Versions\n\n{}",
        table(&["what", "version", "says"], &rows)
    )
}

fn details(report: &Report, took: &[(String, Duration)]) -> String {
    let mut text = String::new();
    // What differs by nothing but the GPU is one row.
    let of = |row: &UntoldRow, text: &str| match question(&row.what).gpu {
        Some(key) => neutral(text, key),
        None => text.to_owned(),
    };
    let alike = |row: &UntoldRow| {
        let asked = question(&row.what);
        let texts = [of(row, &row.why), of(row, &row.would_tell)];
        (asked.words, asked.of_gpu, texts)
    };
    let untold: Vec<Vec<String>> = grouped(&report.untold, alike)
        .iter()
        .map(|rows| {
            let first = rows[0];
            let asked = question(&first.what);
            let keys: Vec<&str> = rows
                .iter()
                .filter_map(|row| question(&row.what).gpu)
                .collect();
            let of = match (keys.is_empty(), asked.of_gpu) {
                (true, _) => String::new(),
                (false, true) => format!(" of {}", addresses(report, &keys, true)),
                (false, false) => format!(" ({})", addresses(report, &keys, true)),
            };
            let what = format!("{}{of}", asked.words);
            let why = alike_words(&first.why, &keys);
            vec![inline(&what), inline(&why), inline(&first.would_tell)]
        })
        .collect();
    let heads = ["what", "why not", "would tell"];
    folded("What could not be told", &heads, &untold, &mut text);
    let told: Vec<&VerdictRow> = report
        .verdicts
        .iter()
        .filter(|row| row.verdict != "not_here")
        .collect();
    let alike = |row: &&VerdictRow| {
        let says = filled(&row.says).unwrap_or_default();
        // Of a GPU without its address, of anything else with its name.
        let (about, says) = match gpu_key(&row.subject) {
            Some(key) => (String::new(), neutral(&says, key)),
            None => (row.subject.clone(), says),
        };
        let answer = (row.check.clone(), row.verdict.clone(), row.by.clone());
        (answer, about, says)
    };
    let verdicts: Vec<Vec<String>> = grouped(&told, alike)
        .iter()
        .map(|rows| {
            let row = rows[0];
            let keys: Vec<&str> = rows
                .iter()
                .filter_map(|row| gpu_key(&row.subject))
                .collect();
            let about = match keys.is_empty() {
                true => subject_words(&row.subject),
                false => addresses(report, &keys, true),
            };
            let by = filled(&row.by).map_or(String::new(), |by| format!(" by {by}"));
            vec![
                code(&row.check),
                inline(&about),
                inline(&format!("{}{by}", row.verdict.replace('_', " "))),
                inline(&alike_words(&filled(&row.says).unwrap_or_default(), &keys)),
            ]
        })
        .collect();
    let heads = ["check", "about", "answer", "says"];
    folded("Every answer", &heads, &verdicts, &mut text);
    let took: Vec<Vec<String>> = took
        .iter()
        .map(|(source, took)| {
            let milliseconds = took.as_secs_f64() * 1000.0;
            vec![inline(source), format!("{milliseconds:.1} ms")]
        })
        .collect();
    folded("Sources", &["source", "took"], &took, &mut text);
    let clock = filled(&report.clock).map_or(String::new(), |clock| format!(", {clock}"));
    let source = format!("{}{clock}; tables of {}", report.origin, report.tables);
    let _ = writeln!(text, "Source: {}", inline(&source));
    text
}

/// What was said of the first of several GPUs, where it names that one.
fn alike_words(text: &str, keys: &[&str]) -> String {
    match keys {
        [first, _, ..] if text.contains(first) => format!("{text} (the others alike)"),
        _ => text.to_owned(),
    }
}

/// A folded table with its number of rows in the line that opens it.
fn folded(title: &str, heads: &[&str], rows: &[Vec<String>], text: &mut String) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "<details><summary>{title} ({})</summary>\n\n{}</details>\n",
        rows.len(),
        table(heads, rows)
    );
}

/// A table of cells that are Markdown already. A column in which nothing stands is left out.
fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let used: Vec<usize> = (0..heads.len())
        .filter(|column| rows.iter().any(|row| !row[*column].is_empty()))
        .collect();
    let line = |cells: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = used.iter().map(|column| cells(*column)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&|column| heads[column].to_owned());
    text += &line(&|_| "---".to_owned());
    for row in rows {
        text += &line(&|column| row[column].replace('|', "\\|"));
    }
    text.push('\n');
    text
}

/// The longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0)
}

/// Text as code, whatever stands in it.
fn code(text: &str) -> String {
    let text = clean(text);
    if text.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Text as text. Commands between two backticks stay code.
fn inline(text: &str) -> String {
    let text = clean(text);
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks is no pair of marks.
    if parts.len().is_multiple_of(2) {
        return parts
            .iter()
            .map(|part| escaped(part))
            .collect::<Vec<_>>()
            .join("\\`");
    }
    let mut result = String::new();
    for (place, part) in parts.iter().enumerate() {
        match (place % 2, part.trim().is_empty()) {
            (0, _) => result += &escaped(part),
            (_, true) => result += "\\`\\`",
            (_, false) => {
                let _ = write!(result, "`{part}`");
            }
        }
    }
    result
}

/// Takes their meaning from the signs that have one. What GitHub and GitLab turn into a mention or a reference after the
/// Markdown is read is parted by an empty comment: a backslash does not help there.
fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied().unwrap_or(' ');
        let within_word = before.is_alphanumeric() && next.is_alphanumeric();
        match character {
            '<' => result += "&lt;",
            '&' if next.is_alphanumeric() || next == '#' => result += "&amp;<!-- -->",
            '\\' | '*' | '[' | ']' | '>' => {
                result.push('\\');
                result.push(character);
            }
            '_' if !within_word => result += "\\_",
            '@' | '#' | '!' | '$' | '%' if next.is_alphanumeric() || matches!(next, '"' | '{') => {
                result.push(character);
                result += "<!-- -->";
            }
            '~' => result += "\\~<!-- -->",
            // What looks like an address of the web, or like `GH-12`, becomes a link.
            ':' if next == '/' => result += ":<!-- -->",
            '.' if result.to_ascii_lowercase().ends_with("www") => result += "<!-- -->.",
            '-' if result.ends_with("GH") => result += "<!-- -->-",
            _ => result.push(character),
        }
        before = character;
    }
    // At the beginning of a line it would be a heading, a list, a quotation or a fence.
    match result.chars().next() {
        Some('#' | '+' | '-' | '=') => format!("\\{result}"),
        _ => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_the_machine_stays_text() {
        for (text, markdown) in [
            ("plain 580.95.05", "plain 580.95.05"),
            ("sm_89 and _x_", "sm_89 and \\_x\\_"),
            ("<img src=x>", "&lt;img src=x\\>"),
            ("[a](b)", "\\[a\\](b)"),
            ("ask @octocat", "ask @<!-- -->octocat"),
            ("see #12", "see #<!-- -->12"),
            ("# head", "\\# head"),
            ("https://a.example", "https:<!-- -->//a.example"),
            ("see WWW.a.example", "see WWW<!-- -->.a.example"),
            ("GH-12", "GH<!-- -->-12"),
            ("&amp;", "&amp;<!-- -->amp;"),
            ("**b**", "\\*\\*b\\*\\*"),
            ("run `a b*` now", "run `a b*` now"),
            ("a ` b", "a \\` b"),
            ("a `` b", "a \\`\\` b"),
            ("\u{1b}[31mred\n- x", "\\\\x1b\\[31mred\\\\n- x"),
        ] {
            assert_eq!(inline(text), markdown, "{text:?}");
        }
    }

    #[test]
    fn code_holds_anything() {
        for (text, markdown) in [
            ("/sys/x", "`/sys/x`"),
            ("a`b", "``a`b``"),
            ("`", "`` ` ``"),
            ("a``b|c", "```a``b|c```"),
            (" ", ""),
        ] {
            assert_eq!(code(text), markdown, "{text:?}");
        }
    }

    #[test]
    fn cells_do_not_break_a_table() {
        let rows = [vec![code("a|b"), String::new(), inline("c | d")]];
        assert_eq!(
            table(&["x", "y", "z"], &rows),
            "| x | z |\n| --- | --- |\n| `a\\|b` | c \\| d |\n\n"
        );
        assert_eq!(table(&["x"], &[]), "");
    }
}
