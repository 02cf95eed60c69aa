//! `gpucheck list`: all checks.

use super::{GOOD, style_for};
use crate::check::Check;
use crate::cli::{ListArgs, ListFormat};
use crate::finding::Severity;
use crate::report::json;
use crate::report::style::Style;
use crate::tables::Tables;
use crate::{checks, files};
use anyhow::Result;
use clap::ColorChoice;
use serde::Serialize;
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// A row of the list.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    link: &'static str,
    severity: Severity,
    causes: Vec<String>,
    summary: String,
}

/// Writes the list.
pub fn run(args: &ListArgs, color: ColorChoice) -> Result<u8> {
    let rows = rows(checks::ALL, &Tables::embedded());
    let stdout = Path::new("-");
    let text = match args.format {
        ListFormat::Json => json::text(&rows)?,
        ListFormat::Terminal => table(&rows, &style_for(stdout, color)),
    };
    files::write(stdout, text.as_bytes())?;
    Ok(GOOD)
}

fn rows(checks: &[Check], tables: &Tables) -> Vec<Row> {
    let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
    let index = tables.checks(&names);
    let row = |check: &Check| Row {
        name: check.name,
        link: check.link.name(),
        severity: check.severity,
        causes: index
            .iter()
            .find(|row| row.name == check.name)
            .map(|row| row.causes.clone())
            .unwrap_or_default(),
        summary: summary(check.explanation),
    };
    checks.iter().map(row).collect()
}

/// The first sentence of an explanation, without its full stop.
pub fn summary(explanation: &str) -> String {
    let first: Vec<&str> = explanation
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .collect();
    let paragraph = first.join(" ");
    let sentence = paragraph
        .split_once(". ")
        .map_or(paragraph.as_str(), |(sentence, _)| sentence);
    sentence.trim_end_matches('.').to_owned()
}

/// The name of a severity.
fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Columns of name, link and severity, as wide as their longest; then the summary, which is left whole for `grep`.
fn table(rows: &[Row], style: &Style) -> String {
    let wide = |cell: fn(&Row) -> &str| rows.iter().map(|row| cell(row).width()).max();
    let name = wide(|row| row.name).unwrap_or(0);
    let link = wide(|row| row.link).unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let level = format!("{:<7}", severity(row.severity));
        let level = match row.severity {
            Severity::Error => style.error(&level),
            Severity::Warning => style.warning(&level),
            Severity::Note => style.note(&level),
        };
        text += &format!(
            "{}  {:<link$}  {level}  {}\n",
            style.bold(&format!("{:<name$}", row.name)),
            row.link,
            row.summary,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Ask, Link, Verdict};

    const CHECKS: &[Check] = &[
        Check {
            name: "a-fault",
            link: Link::Driver,
            severity: Severity::Error,
            ask: Ask::Machine(|_, _| Verdict::NotHere),
            explanation: " It is\n broken. And more.\n\n ## Why it matters\n",
            later: &[],
        },
        Check {
            name: "another-fault",
            link: Link::Bus,
            severity: Severity::Note,
            ask: Ask::Machine(|_, _| Verdict::NotHere),
            explanation: " All of it\n",
            later: &[],
        },
    ];

    #[test]
    fn a_table_with_aligned_columns() {
        let rows = rows(CHECKS, &Tables::embedded());
        assert_eq!(
            table(&rows, &Style::plain()),
            "a-fault        driver  error    It is broken\n\
             another-fault  bus     note     All of it\n"
        );
        assert_eq!(table(&[], &Style::plain()), "");
    }

    #[test]
    fn rows_as_json() {
        let json = json::text(&rows(CHECKS, &Tables::embedded())).expect("JSON");
        let rows: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
        assert_eq!(
            rows[0],
            serde_json::json!({
                "name": "a-fault",
                "link": "driver",
                "severity": "error",
                "causes": [],
                "summary": "It is broken",
            })
        );
    }
}
