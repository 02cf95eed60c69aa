//! `gpucheck explain NAME`: what a check finds, in the words of its own documentation.

use super::{GOOD, names, style_for};
use crate::check::{Ask, Check};
use crate::cli::ExplainArgs;
use crate::finding::Severity;
use crate::report::page::wrap;
use crate::report::style::Style;
use crate::tables::{CheckRow, Tables};
use crate::{checks, files};
use anyhow::{Result, bail};
use clap::ColorChoice;
use std::path::Path;

/// Writes the explanation.
pub fn run(args: &ExplainArgs, color: ColorChoice) -> Result<u8> {
    let tables = Tables::embedded();
    let all = names::all();
    let typed = args.name.as_str();
    let name = if all.contains(&typed) {
        Some(typed)
    } else {
        names::of_alias(typed, &tables)
    };
    let Some(check) = checks::ALL.iter().find(|check| Some(check.name) == name) else {
        bail!("no check is called `{typed}`; {}", names::hint(typed, &all));
    };
    let row = tables.checks(&[check.name]).into_iter().next();
    let stdout = Path::new("-");
    let text = explanation(check, row.as_ref(), typed, &style_for(stdout, color));
    files::write(stdout, text.as_bytes())?;
    Ok(GOOD)
}

fn explanation(check: &Check, row: Option<&CheckRow>, typed: &str, style: &Style) -> String {
    let mut text = format!("{}\n", style.bold(check.name));
    if typed != check.name {
        text += &format!("once called {typed}\n");
    }
    text += &format!("{}\n", wrapped(&facts(check, row), style.width));
    let mut paragraph = String::new();
    let mut in_fence = false;
    for line in lines(check.explanation) {
        let starts_anew = line.is_empty()
            || ["- ", "## ", "```", "|"]
                .iter()
                .any(|sign| line.starts_with(sign));
        if in_fence || starts_anew {
            text += &wrapped(&std::mem::take(&mut paragraph), style.width);
        }
        if line.starts_with("```") {
            in_fence = !in_fence;
        } else if in_fence {
            text += &format!("    {line}\n");
        } else if let Some(heading) = line.strip_prefix("## ") {
            text += &format!("{}\n", style.bold(heading));
        } else if line.is_empty() {
            text.push('\n');
        } else {
            paragraph += &format!("{line} ");
        }
    }
    text + &wrapped(&paragraph, style.width)
}

/// The words in lines of at most this width, commands whole; those after the first of a list are indented.
fn wrapped(paragraph: &str, width: usize) -> String {
    if paragraph.trim().is_empty() {
        return String::new();
    }
    let indent = if paragraph.starts_with("- ") {
        "  "
    } else {
        ""
    };
    let lines = wrap(paragraph, width, width - indent.len());
    lines.join(&format!("\n{indent}")) + "\n"
}

/// The lines of a doc comment without the space that each begins with.
pub fn lines(explanation: &str) -> impl Iterator<Item = &str> {
    explanation
        .trim_end()
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
}

/// Link, severity, subject and causes in one line.
pub fn facts(check: &Check, row: Option<&CheckRow>) -> String {
    let subject = match check.ask {
        Ask::Gpu(_) => "each GPU",
        Ask::Stack(_) => "each stack",
        Ask::Environment(_) => "each toolkit, Python environment, container image and named model",
        Ask::Machine(_) => "the machine",
    };
    let mut text = format!(
        "link {}, usually {}, asked of {subject}",
        check.link.name(),
        match check.severity {
            Severity::Error => "an error",
            Severity::Warning => "a warning",
            Severity::Note => "a note",
        },
    );
    let (later, asked): (Vec<&str>, Vec<&str>) = row
        .map_or(&[][..], |row| &row.causes)
        .iter()
        .map(String::as_str)
        .partition(|cause| check.later.contains(cause));
    if !asked.is_empty() {
        text += &format!("; causes: {}", asked.join(", "));
    }
    if !later.is_empty() {
        text += &format!("; not looked for yet: {}", later.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Link, Verdict};

    #[test]
    fn an_explanation_reads_well_without_markup() {
        let check = Check {
            name: "a-fault",
            link: Link::Driver,
            severity: Severity::Error,
            ask: Ask::Machine(|_, _| Verdict::NotHere),
            explanation: " It is\n broken.\n\n ## How to confirm\n ```sh\n lspci\n ```\n - one\n - two\n   more\n",
            later: &[],
        };
        assert_eq!(
            explanation(&check, None, "old-name", &Style::plain()),
            "a-fault\nonce called old-name\nlink driver, usually an error, asked of the machine\n\n\
             It is broken.\n\nHow to confirm\n    lspci\n- one\n- two more\n"
        );
    }

    #[test]
    fn explanations_fit_into_80_columns() {
        let tables = Tables::embedded();
        for check in checks::ALL {
            let row = tables.checks(&[check.name]).into_iter().next();
            let text = explanation(check, row.as_ref(), check.name, &Style::plain());
            let long = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{}", check.name);
        }
    }

    #[test]
    fn wrapping() {
        assert_eq!(wrapped("aa bb cc", 5), "aa bb\ncc\n");
        assert_eq!(wrapped("- aa bb cc", 7), "- aa bb\n  cc\n");
        assert_eq!(wrapped("longer-than-that a", 5), "longer-than-that\na\n");
        assert_eq!(wrapped("", 5), "");
        // What somebody copies stays in one piece.
        assert_eq!(wrapped("ask `a b c d` now", 8), "ask\n`a b c d`\nnow\n");
    }
}
