//! What a machine must come out as (`expect.toml`), and how a report is held against it.

use crate::program::Judgement;
use gpucheck::finding::Severity;
use gpucheck::readiness::State;
use gpucheck::report::{FindingRow, GpuRow, Report, VerdictRow};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// An entry of `gpucheck list --format json`.
#[derive(Clone, Debug, Deserialize)]
pub struct CheckInfo {
    pub name: String,
    pub link: String,
    #[serde(default)]
    pub causes: Vec<String>,
}

/// The checks that the program has, by name.
pub struct Checks(BTreeMap<String, CheckInfo>);

impl Checks {
    pub fn new(list: Vec<CheckInfo>) -> Checks {
        Checks(
            list.into_iter()
                .map(|check| (check.name.clone(), check))
                .collect(),
        )
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn is_of_link(&self, name: &str, link: &str) -> bool {
        self.0.get(name).is_some_and(|check| check.link == link)
    }
}

/// What a machine must come out as.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    pub fire: Vec<String>,
    pub hush: Vec<String>,
    pub loudest: Option<String>,
    pub only: bool,
    pub gpus: Vec<toml::Table>,
    pub gpu_count: Option<usize>,
    pub readiness: BTreeMap<String, String>,
    pub exit: Option<i32>,
    pub says: Vec<String>,
    pub says_not: Vec<String>,
    pub untold: Vec<String>,
    /// What `gpucheck fit` is asked; without it the report is judged.
    pub model: Option<String>,
    pub quant: Option<String>,
    pub context: Option<u32>,
}

impl Expect {
    /// The command line that comes out as expected, but for the machine.
    pub fn arguments(&self) -> Vec<OsString> {
        let Some(model) = &self.model else {
            return Vec::new();
        };
        let mut arguments: Vec<OsString> = vec!["fit".into(), model.into()];
        if let Some(quant) = &self.quant {
            arguments.extend(["--quant".into(), quant.into()]);
        }
        if let Some(context) = self.context {
            arguments.extend(["--context".into(), context.to_string().into()]);
        }
        arguments
    }

    pub fn parse(text: &str) -> Result<Expect, String> {
        toml::from_str(text).map_err(|error| format!("expect.toml: {error}"))
    }
}

/// A name in `fire` or `hush`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `NAME`, `NAME(cause=X, severity=S)`.
    Check {
        name: String,
        cause: Option<String>,
        severity: Option<String>,
    },
    /// `link:driver`: every check of that link.
    Link(String),
    /// `text:...`: wording, which a reader judges.
    Text,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let text = text.trim();
        if text.starts_with("text:") {
            return Ok(Pattern::Text);
        }
        if let Some(link) = text.strip_prefix("link:") {
            return Ok(Pattern::Link(link.to_owned()));
        }
        let (name, inside) = match text.split_once('(') {
            Some((name, rest)) => (
                name,
                rest.strip_suffix(')')
                    .ok_or_else(|| format!("`{text}`: no closing bracket"))?,
            ),
            None => (text, ""),
        };
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        if !is_name(name) {
            return Err(format!("`{text}` is no name of a check"));
        }
        let (mut cause, mut severity) = (None, None);
        for part in inside.split(',').filter(|part| !part.trim().is_empty()) {
            match part.trim().split_once('=') {
                Some(("cause", value)) => cause = Some(value.to_owned()),
                Some(("severity", value)) => {
                    level(value).ok_or_else(|| format!("`{text}`: no severity `{value}`"))?;
                    severity = Some(value.to_owned());
                }
                _ => return Err(format!("`{text}`: only cause and severity may be named")),
            }
        }
        Ok(Pattern::Check {
            name: name.to_owned(),
            cause,
            severity,
        })
    }

    /// The check, and the cause where one is named, exist. `severity` needs nothing.
    fn exists(&self, checks: &Checks) -> bool {
        match self {
            Pattern::Check { name, cause, .. } => checks.0.get(name).is_some_and(|check| {
                cause
                    .as_ref()
                    .is_none_or(|cause| check.causes.iter().any(|known| known == cause))
            }),
            Pattern::Link(_) | Pattern::Text => true,
        }
    }

    fn names(&self, check: &str) -> bool {
        matches!(self, Pattern::Check { name, .. } if name == check)
    }

    /// An answer that was found, folded or not, is the one meant. A root has the severity to which it was raised.
    fn meets(&self, row: &VerdictRow, checks: &Checks) -> bool {
        match self {
            Pattern::Check {
                name,
                cause,
                severity,
            } => {
                let is_severity =
                    |wanted: &String| row.severity.is_some_and(|is| severity_name(is) == wanted);
                *name == row.check
                    && (cause.is_none() || *cause == row.cause)
                    && severity.as_ref().is_none_or(is_severity)
            }
            Pattern::Link(link) => checks.is_of_link(&row.check, link),
            Pattern::Text => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Check {
                name,
                cause,
                severity,
            } => {
                f.write_str(name)?;
                let cause = cause.iter().map(|cause| format!("cause={cause}"));
                let severity = severity
                    .iter()
                    .map(|severity| format!("severity={severity}"));
                let inside: Vec<String> = cause.chain(severity).collect();
                if !inside.is_empty() {
                    write!(f, "({})", inside.join(", "))?;
                }
                Ok(())
            }
            Pattern::Link(link) => write!(f, "link:{link}"),
            Pattern::Text => f.write_str("text"),
        }
    }
}

/// `A | B`: one of them.
pub fn alternatives(text: &str) -> Result<Vec<Pattern>, String> {
    text.split('|').map(Pattern::parse).collect()
}

pub fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// How loud a severity or `none` is.
fn level(name: &str) -> Option<u8> {
    ["none", "note", "warning", "error"]
        .iter()
        .position(|known| *known == name)
        .map(|at| at as u8)
}

pub fn state_name(state: State) -> &'static str {
    match state {
        State::Ready => "ready",
        State::Partial => "partial",
        State::Broken => "broken",
        State::NotSetUp => "not_set_up",
        State::Unknown => "unknown",
    }
}

/// Found, standing open or folded under another finding.
pub fn is_found(row: &VerdictRow) -> bool {
    row.verdict == "found" || (row.verdict == "blocked" && row.was.as_deref() == Some("found"))
}

/// Findings that a person would call an alarm.
pub fn loud(report: &Report) -> impl Iterator<Item = &FindingRow> {
    report
        .findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Warning)
}

/// Holds a report against what is expected.
pub fn judge(
    expect: &Expect,
    report: &Report,
    exit: i32,
    text: Option<&str>,
    checks: &Checks,
) -> Judgement {
    let mut judgement = Judgement::default();
    let waits = judge_fire(expect, report, checks, &mut judgement);
    if let Some(text) = text {
        let of_text = judge_text(expect, text).failures;
        if waits {
            // It may be the text of the finding that comes later.
            judgement.later.extend(of_text);
        } else {
            judgement.failures.extend(of_text);
        }
    }
    judge_hush(expect, report, checks, &mut judgement);
    judge_loudness(expect, report, &mut judgement);
    judge_gpus(expect, report, &mut judgement);
    judge_readiness(expect, report, waits, &mut judgement);
    if let Some(wanted) = expect.exit.filter(|wanted| *wanted != exit) {
        let what = format!("exit status {wanted}, it is {exit}");
        if waits {
            judgement.later(what);
        } else {
            judgement.fail(what);
        }
    }
    for what in &expect.untold {
        if !report.untold.iter().any(|row| row.what.contains(what)) {
            judgement.fail(format!("`{what}` must be listed as not told"));
        }
    }
    judgement
}

/// Rules 1 and 2. True: some name of `fire` waits for a check or cause that does not exist yet.
fn judge_fire(
    expect: &Expect,
    report: &Report,
    checks: &Checks,
    judgement: &mut Judgement,
) -> bool {
    let mut fire = Vec::new();
    for text in &expect.fire {
        match alternatives(text) {
            Ok(patterns) => fire.push(patterns),
            Err(error) => judgement.fail(error),
        }
    }
    let in_fire = |check: &str| fire.iter().flatten().any(|pattern| pattern.names(check));
    let mut waits = false;
    for (index, patterns) in fire.iter().enumerate() {
        let shown: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let shown = shown.join(" or ");
        let (known, unknown): (Vec<&Pattern>, Vec<&Pattern>) =
            patterns.iter().partition(|pattern| pattern.exists(checks));
        let found: Vec<&VerdictRow> = report
            .verdicts
            .iter()
            .filter(|row| is_found(row))
            .filter(|row| known.iter().any(|pattern| pattern.meets(row, checks)))
            .collect();
        if found.is_empty() && !unknown.is_empty() {
            waits = true;
            judgement.later(shown);
            continue;
        }
        let is_open = found.iter().any(|row| row.verdict == "found");
        let is_folded_well = found
            .iter()
            .any(|row| row.by.as_deref().is_some_and(in_fire));
        if found.is_empty() {
            judgement.fail(format!("{shown} must be found, {}", seen(patterns, report)));
        } else if index == 0 && !is_open {
            judgement.fail(format!(
                "{shown} must stand open, {}",
                seen(patterns, report)
            ));
        } else if !is_open && !is_folded_well {
            judgement.fail(format!(
                "{shown} may only be folded under another name of `fire`, {}",
                seen(patterns, report)
            ));
        }
    }
    if expect.only {
        for finding in loud(report).filter(|finding| !in_fire(&finding.check)) {
            judgement.fail(format!("only `fire` may be loud, {}", told(finding)));
        }
    }
    waits
}

/// What the checks that were meant said instead.
fn seen(patterns: &[Pattern], report: &Report) -> String {
    let mut said: Vec<String> = report
        .verdicts
        .iter()
        .filter(|row| patterns.iter().any(|pattern| pattern.names(&row.check)))
        .map(|row| {
            let by = row.by.as_ref().map(|by| format!(" by {by}"));
            let cause = row.cause.as_ref().map(|cause| format!(" (cause={cause})"));
            let severity = row
                .severity
                .map(|severity| format!(" ({})", severity_name(severity)));
            let says = row.says.as_ref().map(|says| format!(": {says}"));
            format!(
                "{} of {} is {}{}{}{}{}",
                row.check,
                row.subject,
                row.verdict,
                by.unwrap_or_default(),
                cause.unwrap_or_default(),
                severity.unwrap_or_default(),
                says.unwrap_or_default()
            )
        })
        .collect();
    said.dedup();
    if said.is_empty() {
        return "it was not asked".to_owned();
    }
    let more = said.len().saturating_sub(4);
    said.truncate(4);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    said.join("; ") + &more
}

fn told(finding: &FindingRow) -> String {
    let cause = finding
        .cause
        .as_ref()
        .map(|cause| format!(" (cause={cause})"));
    format!(
        "{} of {} is open as {}{}: {}",
        finding.check,
        finding.subject,
        severity_name(finding.severity),
        cause.unwrap_or_default(),
        finding.title
    )
}

fn judge_hush(expect: &Expect, report: &Report, checks: &Checks, judgement: &mut Judgement) {
    for text in &expect.hush {
        let pattern = match Pattern::parse(text) {
            Ok(pattern) => pattern,
            Err(error) => {
                judgement.fail(error);
                continue;
            }
        };
        if !pattern.exists(checks) {
            judgement.later(format!("not {pattern}"));
        }
        for row in report.verdicts.iter().filter(|row| is_found(row)) {
            if pattern.meets(row, checks) {
                judgement.fail(format!(
                    "{pattern} must not be found, {} of {} is {}: {}",
                    row.check,
                    row.subject,
                    row.verdict,
                    row.says.as_deref().unwrap_or_default()
                ));
            }
        }
    }
}

fn judge_loudness(expect: &Expect, report: &Report, judgement: &mut Judgement) {
    let Some(loudest) = &expect.loudest else {
        return;
    };
    let Some(limit) = level(loudest) else {
        judgement.fail(format!("`loudest`: no severity `{loudest}`"));
        return;
    };
    for finding in &report.findings {
        if level(severity_name(finding.severity)) > Some(limit) {
            judgement.fail(format!("nothing may be above {loudest}, {}", told(finding)));
        }
    }
}

fn judge_gpus(expect: &Expect, report: &Report, judgement: &mut Judgement) {
    if let Some(count) = expect.gpu_count
        && count != report.gpus.len()
    {
        let keys: Vec<&str> = report.gpus.iter().map(|gpu| gpu.key.as_str()).collect();
        judgement.fail(format!(
            "{count} GPUs, {} are listed: {}",
            keys.len(),
            keys.join(" ")
        ));
    }
    for wanted in &expect.gpus {
        let key = wanted.get("key").and_then(toml::Value::as_str);
        match key {
            Some(key) => match report.gpus.iter().find(|gpu| gpu.key == key) {
                Some(gpu) => {
                    for difference in differences(wanted, gpu) {
                        judgement.fail(format!("GPU {key}: {difference}"));
                    }
                }
                None => judgement.fail(format!("GPU {key} is not listed")),
            },
            // On no bus the key is the program's choice: one of the GPUs must fit.
            None => {
                let fits = |gpu: &GpuRow| differences(wanted, gpu).is_empty();
                let found: Vec<String> = report
                    .gpus
                    .iter()
                    .map(|gpu| format!("{}: {}", gpu.key, differences(wanted, gpu).join(", ")))
                    .collect();
                let what = format!("no GPU is as expected ({})", found.join("; "));
                if report.gpus.iter().any(fits) {
                    continue;
                }
                // Name and target of such a GPU are known to a library alone, which may not be asked yet.
                if report.gpus.iter().any(|gpu| is_nameless(wanted, gpu)) {
                    judgement.later(what);
                } else {
                    judgement.fail(what);
                }
            }
        }
    }
}

/// A GPU on no bus that fits but for its name and target, which are not known.
fn is_nameless(wanted: &toml::Table, gpu: &GpuRow) -> bool {
    let mut rest = wanted.clone();
    rest.remove("name");
    rest.remove("target");
    gpu.pci.is_none()
        && gpu.name.is_none()
        && gpu.target.is_none()
        && differences(&rest, gpu).is_empty()
}

/// What is not as expected; only the keys that stand there are looked at.
pub fn differences(wanted: &toml::Table, gpu: &GpuRow) -> Vec<String> {
    let json = serde_json::to_value(gpu).unwrap_or_default();
    let mut found = Vec::new();
    for (key, value) in wanted {
        let is = match key.as_str() {
            "link_width" => &json["link"]["width"],
            "link_speed" => &json["link"]["speed"],
            "max_link_width" => &json["link"]["max_width"],
            "max_link_speed" => &json["link"]["max_speed"],
            known => match json.get(known) {
                Some(is) => is,
                None => {
                    found.push(format!("`{known}` is no field of a GPU"));
                    continue;
                }
            },
        };
        let fits = match (key.as_str(), value) {
            ("name", toml::Value::String(part)) => {
                is.as_str().is_some_and(|name| name.contains(part.as_str()))
            }
            ("driver", toml::Value::String(driver)) if driver.is_empty() => is == "none",
            (_, toml::Value::String(text)) => is == text.as_str(),
            (_, toml::Value::Integer(number)) => is.as_i64() == Some(*number),
            (_, toml::Value::Boolean(truth)) => is.as_bool() == Some(*truth),
            _ => false,
        };
        if !fits {
            let value = serde_json::to_value(value).unwrap_or_default();
            found.push(format!("{key} must be {value}, it is {is}"));
        }
    }
    found
}

/// Rule 4.
fn judge_readiness(expect: &Expect, report: &Report, waits: bool, judgement: &mut Judgement) {
    for (stack, wanted) in &expect.readiness {
        let row = report.readiness.iter().find(|row| row.stack == *stack);
        let state = row.map_or("not listed", |row| state_name(row.state));
        let because = row.map_or("", |row| row.because.as_str());
        let what = format!("{stack} is {wanted}, it is said to be {state}: {because}");
        match (wanted.as_str(), state) {
            (wanted, state) if wanted == state => {}
            // Of these stacks no library is asked.
            ("ready" | "partial", "unknown")
                if matches!(stack.as_str(), "level-zero" | "vulkan") => {}
            // The fault that breaks it is not looked for yet.
            ("broken", "unknown" | "partial" | "ready") | ("partial", "broken") if waits => {
                judgement.later(what);
            }
            _ => judgement.fail(what),
        }
    }
}

/// The terminal report, as one line, against `says` and `says_not`.
fn judge_text(expect: &Expect, text: &str) -> Judgement {
    let mut judgement = Judgement::default();
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = flat(text);
    for part in &expect.says {
        if !text.contains(&flat(part)) {
            judgement.fail(format!("the report must say `{part}`"));
        }
    }
    for part in &expect.says_not {
        if text.contains(&flat(part)) {
            judgement.fail(format!("the report must not say `{part}`"));
        }
    }
    judgement
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn checks() -> Checks {
        let list = json!([
            {"name": "gpu-fell-off-bus", "link": "bus", "causes": ["link-lost"], "severity": "error"},
            {"name": "driver-a", "link": "driver", "severity": "error", "summary": ""},
            {"name": "driver-b", "link": "driver", "severity": "error"},
        ]);
        Checks::new(serde_json::from_value(list).expect("a list of checks"))
    }

    /// Check, verdict, by, cause, severity.
    type Row = (
        &'static str,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
        Option<&'static str>,
    );

    /// A report with these verdicts. What is found is a finding too.
    fn report(rows: &[Row]) -> Report {
        let verdicts: Vec<Value> = rows
            .iter()
            .map(|(check, verdict, by, cause, severity)| {
                json!({
                    "check": check, "subject": "machine", "verdict": verdict, "says": "words",
                    "by": by, "was": by.map(|_| "found"), "cause": cause, "severity": severity,
                })
            })
            .collect();
        let findings: Vec<Value> = rows
            .iter()
            .filter(|row| row.1 == "found")
            .map(|(check, _, _, cause, severity)| {
                json!({
                    "check": check, "cause": cause, "severity": severity, "confidence": "certain",
                    "link": "bus", "subject": "machine", "title": "wrong", "evidence": [],
                    "why": "", "fixes": [], "folded": [],
                })
            })
            .collect();
        serde_json::from_value(json!({
            "schema": 1, "version": "0", "tables": "", "origin": "", "clock": null,
            "host": {
                "os": null, "os_id": null, "kernel": null, "machine": null, "cpu": null, "cpus": null,
                "memory_bytes": null, "product": null, "place": null, "hypervisor": null,
                "secure_boot": null, "user": null
            },
            "gpus": [{
                "key": "0000:01:00.0", "pci": "0000:01:00.0", "vendor": "nvidia", "id": "10de:2684",
                "name": "NVIDIA GeForce RTX 4090", "architecture": null, "target": "sm_89",
                "memory_bytes": 25757220864u64, "driver": "none", "driver_version": null,
                "flavour": null, "integrated": false, "asleep": null, "passed_in": null,
                "link": {"speed": null, "width": 16, "max_speed": null, "max_width": null, "hop": ""},
                "index": {
                    "nvml": null, "cuda": null, "hip": null, "drm_card": null, "render": null,
                    "kfd_nodes": []
                },
            }],
            "gpus_whole": true, "not_gpus": [], "versions": [],
            "readiness": [{
                "stack": "cuda", "state": "broken", "broken_at": null, "because": "", "gpus": []
            }, {
                "stack": "rocm", "state": "unknown", "broken_at": null, "because": "", "gpus": []
            }, {
                "stack": "level-zero", "state": "unknown", "broken_at": null, "because": "", "gpus": []
            }],
            "findings": findings, "verdicts": verdicts,
            "untold": [{"what": "bus", "why": "", "would_tell": ""}], "hint": null,
            "counts": {
                "errors": 0, "warnings": 0, "notes": 0, "fine": 0, "not_here": 0, "cannot_tell": 0,
                "folded": 0
            },
        }))
        .expect("a report")
    }

    const LOST: Row = (
        "gpu-fell-off-bus",
        "found",
        None,
        Some("link-lost"),
        Some("error"),
    );

    /// Number of failures and of things that wait.
    fn counts(expect: &str, rows: &[Row]) -> (usize, usize) {
        let expect = Expect::parse(expect).expect("an expect.toml");
        let judgement = judge(&expect, &report(rows), 1, None, &checks());
        (judgement.failures.len(), judgement.later.len())
    }

    #[test]
    fn patterns_are_parsed() {
        let check = |name: &str, cause: Option<&str>, severity: Option<&str>| Pattern::Check {
            name: name.to_owned(),
            cause: cause.map(str::to_owned),
            severity: severity.map(str::to_owned),
        };
        assert_eq!(Pattern::parse("a-b1"), Ok(check("a-b1", None, None)));
        assert_eq!(
            Pattern::parse("a(cause=x, severity=error)"),
            Ok(check("a", Some("x"), Some("error")))
        );
        assert_eq!(
            Pattern::parse("a(severity=note)"),
            Ok(check("a", None, Some("note")))
        );
        assert_eq!(
            Pattern::parse("link:driver"),
            Ok(Pattern::Link("driver".to_owned()))
        );
        assert_eq!(Pattern::parse("text:anything (goes"), Ok(Pattern::Text));
        assert_eq!(
            alternatives("a(cause=x) | b").map(|found| found.len()),
            Ok(2)
        );
        for bad in [
            "",
            "A",
            "a b",
            "a(cause=x",
            "a(colour=red)",
            "a(severity=bad)",
            "a |",
        ] {
            assert!(alternatives(bad).is_err(), "{bad}");
        }
        assert_eq!(
            check("a", Some("x"), Some("note")).to_string(),
            "a(cause=x, severity=note)"
        );
        assert!(Expect::parse("fires = []").is_err());
    }

    #[test]
    fn the_first_name_stands_open_and_others_may_be_folded_under_it() {
        let folded = (
            "driver-a",
            "blocked",
            Some("gpu-fell-off-bus"),
            None,
            Some("error"),
        );
        let both = r#"fire = ["gpu-fell-off-bus(cause=link-lost, severity=error)", "driver-a"]"#;
        assert_eq!(counts(both, &[LOST, folded]), (0, 0));
        assert_eq!(counts(both, &[LOST]), (1, 0));
        assert_eq!(
            counts(both, &[LOST, ("driver-a", "cannot_tell", None, None, None)]),
            (1, 0)
        );
        // Folded under something that is not asked for.
        let astray = ("driver-a", "blocked", Some("driver-b"), None, Some("error"));
        assert_eq!(counts(both, &[LOST, astray]), (1, 0));
        // The first one is folded.
        assert_eq!(
            counts(
                r#"fire = ["driver-a", "gpu-fell-off-bus"]"#,
                &[LOST, folded]
            ),
            (1, 0)
        );
        // Both open is right.
        let open = ("driver-a", "found", None, None, Some("warning"));
        assert_eq!(counts(both, &[LOST, open]), (0, 0));
    }

    #[test]
    fn cause_and_severity_count() {
        assert_eq!(
            counts(r#"fire = ["gpu-fell-off-bus(severity=warning)"]"#, &[LOST]),
            (1, 0)
        );
        // A cause that no check asks for yet waits, as does a check.
        assert_eq!(
            counts(r#"fire = ["gpu-fell-off-bus(cause=egpu)"]"#, &[LOST]),
            (0, 1)
        );
        assert_eq!(
            counts(
                r#"fire = ["gpu-fell-off-bus(cause=egpu) | gpu-fell-off-bus(cause=link-lost)"]"#,
                &[LOST]
            ),
            (0, 0)
        );
        assert_eq!(counts(r#"fire = ["some-day | driver-a"]"#, &[]), (0, 1));
        assert_eq!(
            counts(r#"fire = ["some-day", "gpu-fell-off-bus"]"#, &[LOST]),
            (0, 1)
        );
        assert_eq!(
            counts(r#"fire = ["some-day", "gpu-fell-off-bus"]"#, &[]),
            (1, 1)
        );
    }

    #[test]
    fn what_must_be_quiet_is_quiet() {
        assert_eq!(counts(r#"hush = ["gpu-fell-off-bus"]"#, &[LOST]), (1, 0));
        assert_eq!(
            counts(r#"hush = ["gpu-fell-off-bus(severity=note)"]"#, &[LOST]),
            (0, 0)
        );
        assert_eq!(
            counts(r#"hush = ["link:bus", "link:driver"]"#, &[LOST]),
            (1, 0)
        );
        assert_eq!(
            counts(r#"hush = ["text:words", "some-day"]"#, &[LOST]),
            (0, 1)
        );
        let folded = (
            "driver-a",
            "blocked",
            Some("gpu-fell-off-bus"),
            None,
            Some("error"),
        );
        assert_eq!(counts(r#"hush = ["driver-a"]"#, &[LOST, folded]), (1, 0));
        let told = ("driver-a", "cannot_tell", None, None, None);
        assert_eq!(counts(r#"hush = ["driver-a"]"#, &[told]), (0, 0));
    }

    #[test]
    fn loudness_is_that_of_open_findings() {
        let note = ("driver-a", "found", None, None, Some("note"));
        assert_eq!(counts("loudest = 'warning'", &[LOST, note]), (1, 0));
        assert_eq!(counts("loudest = 'error'", &[LOST, note]), (0, 0));
        assert_eq!(counts("loudest = 'note'", &[note]), (0, 0));
        assert_eq!(counts("loudest = 'none'", &[note]), (1, 0));
        assert_eq!(counts("loudest = 'loud'", &[note]), (1, 0));
        let only = "only = true\nfire = ['driver-a']";
        assert_eq!(counts(only, &[note]), (0, 0));
        assert_eq!(counts(only, &[note, LOST]), (1, 0));
        let folded = ("driver-b", "blocked", Some("driver-a"), None, Some("error"));
        assert_eq!(counts(only, &[note, folded]), (0, 0));
    }

    #[test]
    fn gpus_are_compared_by_the_keys_that_stand_there() {
        let good = r#"gpus = [{ key = "0000:01:00.0", id = "10de:2684", name = "RTX 4090", target = "sm_89", driver = "", memory_bytes = 25757220864, link_width = 16, integrated = false }]
gpu_count = 1"#;
        assert_eq!(counts(good, &[]), (0, 0));
        assert_eq!(counts("gpu_count = 2", &[]), (1, 0));
        for bad in [
            r#"key = "0000:02:00.0""#,
            r#"key = "0000:01:00.0", name = "RTX 4080""#,
            r#"key = "0000:01:00.0", driver = "nvidia""#,
            r#"key = "0000:01:00.0", link_width = 8"#,
            r#"key = "0000:01:00.0", asleep = false"#,
            r#"key = "0000:01:00.0", weight = 2"#,
            r#"name = "RTX 3080""#,
        ] {
            assert_eq!(
                counts(&format!("gpus = [{{ {bad} }}]"), &[]),
                (1, 0),
                "{bad}"
            );
        }
        let by_name = r#"gpus = [{ name = "RTX 4090", target = "sm_89" }]"#;
        assert_eq!(counts(by_name, &[]), (0, 0));
        let mut nameless = report(&[]);
        let gpu = &mut nameless.gpus[0];
        (gpu.pci, gpu.name, gpu.target) = (None, None, None);
        let expect = Expect::parse(by_name).expect("well-formed");
        let judgement = judge(&expect, &nameless, 0, None, &checks());
        assert_eq!((judgement.failures.len(), judgement.later.len()), (0, 1));
    }

    #[test]
    fn unknown_may_stand_for_ready_and_partial_where_no_library_is_asked() {
        for (expect, failures) in [
            ("cuda = 'broken'", 0),
            ("cuda = 'ready'", 1),
            ("cuda = 'partial'", 1),
            ("level-zero = 'ready'", 0),
            ("level-zero = 'partial'", 0),
            ("level-zero = 'broken'", 1),
            ("rocm = 'ready'", 1),
            ("rocm = 'partial'", 1),
            ("rocm = 'broken'", 1),
            ("rocm = 'not_set_up'", 1),
            ("vulkan = 'ready'", 1),
        ] {
            let expect = format!("readiness = {{ {expect} }}");
            assert_eq!(counts(&expect, &[]), (failures, 0), "{expect}");
        }
        // What breaks it is not looked for yet.
        let later = "fire = ['some-day']\nreadiness = { rocm = 'broken' }";
        assert_eq!(counts(later, &[]), (0, 2));
        let later = "fire = ['some-day']\nreadiness = { cuda = 'ready' }";
        assert_eq!(counts(later, &[]), (1, 1));
        let later = "fire = ['some-day']\nreadiness = { rocm = 'not_set_up' }";
        assert_eq!(counts(later, &[]), (1, 1));
    }

    #[test]
    fn exit_status_and_untold_are_looked_at() {
        assert_eq!(counts("exit = 1", &[]), (0, 0));
        assert_eq!(counts("exit = 0", &[]), (1, 0));
        assert_eq!(counts("exit = 0\nfire = ['some-day']", &[]), (0, 2));
        assert_eq!(counts("untold = ['bus']", &[]), (0, 0));
        assert_eq!(counts("untold = ['driver']", &[]), (1, 0));
    }

    #[test]
    fn texts_are_found_over_line_breaks() {
        let expect =
            Expect::parse("says = ['group 992']\nsays_not = ['apt install']").expect("well-formed");
        assert_eq!(
            judge_text(&expect, "of group\n    992 it is")
                .failures
                .len(),
            0
        );
        assert_eq!(judge_text(&expect, "apt  install x").failures.len(), 2);
        // Only a finding that comes later may bring its text later; a name of `hush` that waits brings none.
        for (more, expected) in [
            ("hush = ['some-day']", (1, 1)),
            ("fire = ['some-day']", (0, 2)),
        ] {
            let expect = Expect::parse(&format!("says = ['group 992']\n{more}"));
            let expect = expect.expect("well-formed");
            let judgement = judge(&expect, &report(&[]), 0, Some("nothing"), &checks());
            let counts = (judgement.failures.len(), judgement.later.len());
            assert_eq!(counts, expected, "{more}");
        }
    }
}
