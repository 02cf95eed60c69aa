//! `gpucheck tables`: what the tables know of a toolkit, a driver, a release, a GPU, a target or an error code, and where
//! that was read.

use super::{GOOD, names, style_for, tables_of};
use crate::cli::{ListFormat, TablesArgs};
use crate::files;
use crate::report::json;
use crate::report::page::Page;
use crate::report::style::{Style, clean};
use crate::tables::{
    Confidence, Kind, Known, Row, Shape, Source, Tables, kinds, lacks_tensor_cores,
};
use crate::version::Version;
use anyhow::{Result, bail};
use clap::ColorChoice;
use serde::Serialize;
use std::path::Path;

/// Most rows that one question may name: more are no answer.
const MOST_ANSWERS: usize = 20;

/// What was found.
#[derive(Serialize)]
struct Answer {
    name: String,
    facts: Vec<Fact>,
    sources: Vec<Source>,
}

/// One statement.
#[derive(Serialize)]
struct Fact {
    key: &'static str,
    #[serde(skip)]
    label: &'static str,
    value: String,
    confidence: &'static str,
    source: String,
}

/// What there is to ask for.
#[derive(Serialize)]
struct Contents {
    word: &'static str,
    names: Vec<String>,
}

/// Answers the question.
pub fn run(args: &TablesArgs, color: ColorChoice) -> Result<u8> {
    let tables = tables_of(args.data.as_deref(), true)?;
    let stdout = Path::new("-");
    let style = style_for(stdout, color);
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let text = if let Some(contents) = contents(&tables, &words)? {
        match args.format {
            ListFormat::Json => json::text(&contents)?,
            ListFormat::Terminal => contents_page(&contents, &style),
        }
    } else {
        let answers = answers(&tables, &words)?;
        match args.format {
            ListFormat::Json => json::text(&answers)?,
            ListFormat::Terminal => page(&answers, &style),
        }
    };
    files::write(stdout, text.as_bytes())?;
    Ok(GOOD)
}

/// The words that come before a name, and the rows that they stand for.
const WORDS: [(&str, &Kind); 6] = [
    ("cuda", &kinds::TOOLKIT),
    ("driver", &kinds::BRANCH),
    ("rocm", &kinds::RELEASE),
    ("gfx", &kinds::TARGET),
    ("sm", &kinds::CAPABILITY),
    ("model", &kinds::MODEL),
];

/// Where nothing is named: what could be.
fn contents(tables: &Tables, words: &[&str]) -> Result<Option<Vec<Contents>>> {
    let list = |(word, kind): &(&'static str, &Kind)| Contents {
        word,
        names: tables
            .rows(kind)
            .iter()
            .map(|row| row.key(kind).to_owned())
            .collect(),
    };
    Ok(match words {
        [] => Some(WORDS.iter().map(list).collect()),
        [word @ ("gpu" | "xid")] => bail!("`tables {word}` needs a name or a number behind it"),
        [word] => WORDS
            .iter()
            .find(|(known, _)| known == word)
            .map(|known| vec![list(known)]),
        _ => None,
    })
}

fn answers(tables: &Tables, words: &[&str]) -> Result<Vec<Answer>> {
    let (first, rest) = words.split_first().unwrap_or((&"", &[]));
    let name = rest.join(" ");
    let word = first.to_lowercase();
    let word = word.as_str();
    if word != "model" && WORDS.iter().any(|(known, _)| *known == word) && rest.len() > 1 {
        bail!(
            "one name at a time, as in `gpucheck tables {word} {}`",
            rest[0]
        );
    }
    let found = match word {
        "cuda" => of_version(tables, &kinds::TOOLKIT, &name)
            .map(|row| toolkit(tables, &row))
            .collect(),
        "driver" | "nvidia" => of_version(tables, &kinds::BRANCH, &name)
            .map(|row| branch(tables, &row, &name))
            .collect(),
        "rocm" => of_version(tables, &kinds::RELEASE, &name)
            .map(|row| {
                Found::new(
                    &kinds::RELEASE,
                    &row,
                    format!("ROCm {}", row.key(&kinds::RELEASE)),
                )
            })
            .collect(),
        "gpu" => gpus(tables, &name)?,
        "model" => tables
            .model(&name)
            .map(|row| model(&row))
            .into_iter()
            .collect(),
        "xid" => tables
            .row(&kinds::XID, name.trim())
            .map(|row| Found::new(&kinds::XID, &row, format!("Xid {}", row.key(&kinds::XID))))
            .into_iter()
            .collect(),
        "gfx" | "sm" | "cc" => target(tables, &name).into_iter().collect::<Vec<_>>(),
        _ => match target(tables, first).filter(|_| rest.is_empty()) {
            Some(found) => vec![found],
            // The name of a GPU or of a model, without the word before it.
            None => match gpus(tables, &words.join(" ")) {
                Ok(found) if !found.is_empty() => found,
                _ => tables
                    .model(&words.join(" "))
                    .map(|row| model(&row))
                    .into_iter()
                    .collect(),
            },
        },
    };
    if found.is_empty() {
        bail!(
            "the tables have no `{}`; {}",
            words.join(" "),
            hint(tables, word, &name)
        );
    }
    Ok(found
        .into_iter()
        .map(|found| found.with_sources(tables))
        .collect())
}

fn hint(tables: &Tables, word: &str, name: &str) -> String {
    let kind = WORDS.iter().find(|(known, _)| *known == word);
    let keys: Vec<String> = kind.map_or_else(Vec::new, |(_, kind)| {
        let rows = tables.rows(kind);
        rows.iter().map(|row| row.key(kind).to_owned()).collect()
    });
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    if word == "cuda"
        && let Some(branch) = branch_that_reports(tables, name)
    {
        return format!("no toolkit has this number, though driver branch {branch} reports it");
    }
    match (names::nearest(name, &keys).as_slice(), word) {
        ([], "xid") => "a code that is not in them is unknown, not harmless".to_owned(),
        ([], _) => "`gpucheck tables` lists what they have".to_owned(),
        (near, _) => format!("the nearest are {}", near.join(", ")),
    }
}

/// The branch whose library speaks this version of CUDA.
fn branch_that_reports(tables: &Tables, cuda: &str) -> Option<String> {
    let kind = &kinds::BRANCH;
    let rows = tables.rows(kind);
    let row = rows
        .iter()
        .find(|row| row.text("cuda").is_some_and(|known| known.value == cuda))?;
    Some(row.key(kind).to_owned())
}

/// An answer while it grows.
struct Found {
    name: String,
    facts: Vec<(&'static Kind, Fact)>,
}

impl Found {
    fn new(kind: &'static Kind, row: &Row, name: String) -> Found {
        let mut found = Found {
            name,
            facts: Vec::new(),
        };
        found.take(kind, row, &[kind.key]);
        found
    }

    /// The values of a row, but for these.
    fn take(&mut self, kind: &'static Kind, row: &Row, but: &[&str]) {
        for (field, known) in row.values(kind) {
            if but.contains(&field.key) {
                continue;
            }
            let known = match (field.shape, known.value.as_str()) {
                (Shape::Flag, "1") => of(known, "yes"),
                (Shape::Flag, _) => of(known, "no"),
                _ => known,
            };
            self.add(kind, field.key, field.label, known);
        }
    }

    fn add(
        &mut self,
        kind: &'static Kind,
        key: &'static str,
        label: &'static str,
        known: Known<String>,
    ) {
        let fact = Fact {
            key,
            label,
            value: known.value,
            confidence: known.confidence.name(),
            source: known.source,
        };
        self.facts.push((kind, fact));
    }

    /// With the sources that its facts name. Files may use the same short name for different ones.
    fn with_sources(self, tables: &Tables) -> Answer {
        let mut sources: Vec<Source> = Vec::new();
        let mut facts = Vec::new();
        for (kind, mut fact) in self.facts {
            let known = tables.sources(kind);
            let named = fact.source.split(' ').map(|id| {
                let Some(source) = known.iter().find(|source| source.id == id) else {
                    return id.to_owned();
                };
                let mut source = source.clone();
                let taken = |source: &Source| {
                    let same = |other: &Source| other.id == source.id && other != source;
                    sources.iter().any(same)
                };
                while taken(&source) {
                    source.id.push('+');
                }
                let id = source.id.clone();
                if !sources.contains(&source) {
                    sources.push(source);
                }
                id
            });
            fact.source = named.collect::<Vec<_>>().join(" ");
            facts.push(fact);
        }
        Answer {
            name: self.name,
            facts,
            sources,
        }
    }
}

fn of(known: Known<String>, value: &str) -> Known<String> {
    Known {
        value: value.to_owned(),
        ..known
    }
}

/// What follows from several values is as sure as the least sure of them, and no better than derived.
fn follows<T>(value: String, from: &[&Known<T>]) -> Known<String> {
    let least = from.iter().map(|known| known.confidence).min();
    let mut sources: Vec<&str> = Vec::new();
    for source in from.iter().flat_map(|known| known.source.split(' ')) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    Known {
        value,
        confidence: least.unwrap_or_default().min(Confidence::Derived),
        source: sources.join(" "),
    }
}

/// Rows whose version begins with the numbers of this one, or the one whose numbers this one begins with: 7.2 is 7.2.0,
/// 12.8.1 is an update of 12.8, and 580.95.05 belongs to branch 580.
fn of_version<'a>(tables: &Tables, kind: &'a Kind, name: &str) -> impl Iterator<Item = Row> + 'a {
    let asked: Vec<u64> = Version::parse(name)
        .map(|version| version.numbers().collect())
        .unwrap_or_default();
    let rows = tables.rows(kind).into_iter();
    rows.filter(move |row| {
        let numbers: Vec<u64> = Version::parse(row.key(kind))
            .map(|version| version.numbers().collect())
            .unwrap_or_default();
        !asked.is_empty() && (numbers.starts_with(&asked) || asked.starts_with(&numbers))
    })
}

fn toolkit(tables: &Tables, row: &Row) -> Found {
    let kind = &kinds::TOOLKIT;
    let version = row.key(kind).to_owned();
    let mut found = Found::new(kind, row, format!("CUDA toolkit {version}"));
    let wanted = Version::parse(&version);
    let speaks = tables.rows(&kinds::BRANCH).into_iter().find_map(|branch| {
        let cuda = branch.version("cuda")?;
        (Some(&cuda.value) >= wanted.as_ref()).then_some((branch, cuda))
    });
    if let Some((branch, cuda)) = speaks {
        let first = branch.key(&kinds::BRANCH);
        let words = follows(format!("{first} and later"), &[&cuda]);
        found.add(
            &kinds::BRANCH,
            "branches",
            "driver branches that speak it",
            words,
        );
    }
    let major = version.split('.').next().unwrap_or_default();
    if let Some(major) = tables.row(&kinds::MAJOR, major)
        && let Some(below) = major.text("below_branch")
    {
        found.add(
            &kinds::MAJOR,
            "below_branch",
            "no minor-version compatibility needed from branch",
            below,
        );
    }
    found
}

fn branch(tables: &Tables, row: &Row, asked: &str) -> Found {
    let kind = &kinds::BRANCH;
    let mut found = Found::new(kind, row, format!("NVIDIA driver {}", row.key(kind)));
    let last = row.version("last");
    if let (Some(asked), Some(last)) = (Version::parse(asked), &last)
        && asked.numbers().count() > 1
    {
        let words = if asked < last.value {
            format!("{asked} is behind {}", last.value)
        } else if asked == last.value {
            format!("{asked} is the last release known")
        } else {
            format!("{asked} is newer than this table, or does not exist")
        };
        found.add(kind, "asked", "this release", follows(words, &[last]));
    }
    if let Some(cuda) = row.version("cuda") {
        let major = cuda.value.major().unwrap_or_default().to_string();
        if let Some(floor) = tables
            .row(&kinds::MAJOR, &major)
            .and_then(|row| row.version("floor"))
        {
            let words = format!("all of CUDA {major}, from driver {} on", floor.value);
            found.add(
                &kinds::MAJOR,
                "minor_compatibility",
                "runs in part",
                follows(words, &[&floor]),
            );
        }
    }
    found
}

/// A gfx target or a compute capability, however it is written: `gfx1151`, `1151`, `sm_89`, `8.9`.
fn target(tables: &Tables, name: &str) -> Option<Found> {
    let name = name.trim().trim_start_matches('v').to_lowercase();
    // `rocminfo` writes the features of a target behind it.
    let name = name.split(':').next().unwrap_or_default().to_owned();
    let gfx = if name.starts_with("gfx") {
        name.clone()
    } else {
        format!("gfx{name}")
    };
    if let Some(row) = tables.row(&kinds::TARGET, &gfx) {
        let mut found = Found::new(&kinds::TARGET, &row, format!("AMD target {gfx}"));
        releases_of(tables, &gfx, &mut found);
        return Some(found);
    }
    let digits = ["sm_", "sm", "compute_"]
        .iter()
        .find_map(|start| name.strip_prefix(start))
        .unwrap_or(&name);
    let sm = if digits.contains('.') {
        format!("sm_{}", digits.replace('.', ""))
    } else {
        format!("sm_{digits}")
    };
    let row = tables.capability(&sm)?;
    let cc = row.key(&kinds::CAPABILITY);
    let mut found = Found::new(
        &kinds::CAPABILITY,
        &row,
        format!("compute capability {cc} ({sm})"),
    );
    drivers_of(tables, &sm, &mut found);
    Some(found)
}

/// Which releases of ROCm support a target, and which only hold code for it.
fn releases_of(tables: &Tables, gfx: &str, found: &mut Found) {
    let kind = &kinds::RELEASE;
    let rows = tables.rows(kind);
    let says = |keys: &[&str]| -> Vec<(String, Option<Known<bool>>)> {
        let one = |row: &Row| {
            let known = keys.iter().find_map(|key| row.list(key))?;
            Some(Known {
                value: known.value.iter().any(|target| target == gfx),
                confidence: known.confidence,
                source: known.source,
            })
        };
        rows.iter()
            .map(|row| (row.key(kind).to_owned(), one(row)))
            .collect()
    };
    for (key, label, keys) in [
        ("supported_by", "in AMD's lists of ROCm", &["targets"][..]),
        (
            "built_in",
            "ROCm libraries hold code",
            &["built", "rocblas"][..],
        ),
    ] {
        let said = says(keys);
        let known: Vec<&Known<bool>> = said
            .iter()
            .filter_map(|(_, known)| known.as_ref())
            .collect();
        if known.is_empty() {
            continue;
        }
        let value = match ranges(&said) {
            none if none.is_empty() => "no release in the table".to_owned(),
            ranges => ranges.join(", "),
        };
        found.add(kind, key, label, follows(value, &known));
    }
}

/// `6.4.1 to 7.2.0, 10.0.0`: stretches of releases that say yes. Of which nothing is known do not end one.
fn ranges(said: &[(String, Option<Known<bool>>)]) -> Vec<String> {
    let mut ranges: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for (version, known) in said {
        match known {
            Some(known) if known.value => {
                match ranges.last_mut() {
                    Some((_, last)) if open => last.clone_from(version),
                    _ => ranges.push((version.clone(), version.clone())),
                }
                open = true;
            }
            Some(_) => open = false,
            None => {}
        }
    }
    ranges
        .into_iter()
        .map(|(first, last)| {
            if first == last {
                first
            } else {
                format!("{first} to {last}")
            }
        })
        .collect()
}

/// Which drivers of NVIDIA take a compute capability.
fn drivers_of(tables: &Tables, sm: &str, found: &mut Found) {
    if let Some(row) = tables.nvidia_architecture(sm) {
        let kind = &kinds::ARCHITECTURE;
        if row.text("last_branch").is_none()
            && let Some(name) = row.text("name")
        {
            let words = of(name, "none: the newest branch known still takes it");
            found.add(kind, "last_branch", "last driver branch", words);
        }
        found.take(kind, row, &["name", "lowest", "highest"]);
    }
}

/// GPUs whose name holds all these words, or the one with this id (`10de:2684`, `2684`).
fn gpus(tables: &Tables, name: &str) -> Result<Vec<Found>> {
    let wanted: Vec<String> = name
        .to_lowercase()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    if wanted.is_empty() {
        bail!("`tables gpu` needs a name behind it");
    }
    let kind = &kinds::GPU;
    let plain = |row: &Row, key| row.text(key).map_or(String::new(), |known| known.value);
    let rows = tables.rows(kind);
    let of_id = |row: &&Row| {
        let (vendor, device) = (plain(row, "vendor"), plain(row, "device"));
        let asked = wanted[0].trim_start_matches("0x");
        wanted.len() == 1 && (asked == device || asked == format!("{vendor}:{device}"))
    };
    let words = |row: &Row| -> Vec<String> {
        let name = plain(row, "name").to_lowercase();
        name.split(|c: char| !c.is_alphanumeric())
            .map(str::to_owned)
            .collect()
    };
    let by_id: Vec<&Row> = rows.iter().filter(of_id).collect();
    let mut matching: Vec<&Row> = if by_id.is_empty() {
        rows.iter()
            .filter(|row| {
                let words = words(row);
                wanted.iter().all(|word| words.contains(word))
            })
            .collect()
    } else {
        by_id
    };
    // Names with nothing but the words asked for, if there are any: the RTX 4090 and not the RTX 4090 D.
    let makers = [
        "nvidia", "amd", "intel", "geforce", "radeon", "graphics", "",
    ];
    let exact = |row: &&&Row| {
        let words = words(row);
        words
            .iter()
            .all(|word| wanted.contains(word) || makers.contains(&word.as_str()))
    };
    let exactly: Vec<&Row> = matching.iter().filter(exact).copied().collect();
    // One name of a card for data centres stands for its forms: boards, sizes of memory.
    let has_forms = exactly.iter().any(|row| plain(row, "data_centre") == "1");
    if !exactly.is_empty() && !has_forms {
        matching = exactly;
    }
    if matching.len() > MOST_ANSWERS {
        let mut names: Vec<String> = matching.iter().map(|row| plain(row, "name")).collect();
        names.sort();
        names.dedup();
        let shown = names.len().min(MOST_ANSWERS);
        bail!(
            "{} names have these words: {}{}",
            names.len(),
            names[..shown].join(", "),
            if shown < names.len() { ", ..." } else { "" }
        );
    }
    Ok(matching.into_iter().map(|row| gpu(tables, row)).collect())
}

/// A model, with what its weights weigh in the commonest formats.
fn model(row: &Row) -> Found {
    let kind = &kinds::MODEL;
    let mut found = Found::new(kind, row, row.key(kind).to_owned());
    if let Some(params) = row.text("params_b") {
        for (key, label, bits) in [
            ("weights_gb_16bit", "weights at 16 bit, GB", 16.0),
            ("weights_gb_q8_0", "weights at Q8_0, GB", 8.5),
            ("weights_gb_q4_k_m", "weights at Q4_K_M, GB", 4.85),
        ] {
            let billions: f64 = params.value.parse().unwrap_or_default();
            let value = format!("{:.1}", billions * bits / 8.0);
            found.add(kind, key, label, follows(value, &[&params]));
        }
    }
    found
}

fn gpu(tables: &Tables, row: &Row) -> Found {
    let plain = |key| row.text(key).map_or(String::new(), |known| known.value);
    let hexadecimal = |text: &str| u16::from_str_radix(text, 16).ok();
    let (vendor, device, key) = (plain("vendor"), plain("device"), plain("key"));
    let subsystem = key
        .split_once(':')
        .and_then(|(vendor, device)| Some((hexadecimal(vendor)?, hexadecimal(device)?)));
    let revision = (key.len() == 2)
        .then(|| u8::from_str_radix(&key, 16).ok())
        .flatten();
    let which = match (subsystem, revision) {
        (Some(_), _) => format!(", subsystem {key}"),
        (_, Some(_)) => format!(", revision {key}"),
        _ => String::new(),
    };
    let name = plain("name");
    let name = if name.is_empty() { plain("chip") } else { name };
    let mut found = Found {
        name: format!("{name} ({vendor}:{device}{which})"),
        facts: Vec::new(),
    };
    found.take(&kinds::GPU, row, &["vendor", "device", "key", "name"]);
    if let (Some(vendor), Some(device)) = (hexadecimal(&vendor), hexadecimal(&device))
        && let Some(figures) = tables.figures(vendor, device, subsystem, revision)
    {
        found.take(&kinds::FIGURES, &figures, &["vendor", "device", "key"]);
    }
    let target = plain("target");
    if let Some(row) = tables.capability(&target) {
        let lacks = lacks_tensor_cores(&row, &plain("chip"));
        let mut but = vec!["cc", "architecture", "chips", "without_tensor"];
        if let Some(lacks) = lacks {
            but.extend(["tensor", "tensor_generation"]);
            let none = Known {
                value: "none".to_owned(),
                confidence: lacks.confidence,
                source: lacks.source,
            };
            found.add(
                &kinds::CAPABILITY,
                "tensor_generation",
                "tensor cores, generation",
                none,
            );
        }
        found.take(&kinds::CAPABILITY, &row, &but);
        drivers_of(tables, &target, &mut found);
    } else if let Some(row) = tables.row(&kinds::TARGET, &target) {
        found.take(&kinds::TARGET, &row, &["gfx", "chips", "integrated"]);
        releases_of(tables, &target, &mut found);
    }
    found
}

/// The answers for people.
fn page(answers: &[Answer], style: &Style) -> String {
    let mut page = Page {
        style,
        text: String::new(),
    };
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            page.text.push('\n');
        }
        page.verbatim(0, &style.bold(&clean(&answer.name)));
        let column = 2
            + answer
                .facts
                .iter()
                .map(|fact| fact.label.len())
                .max()
                .unwrap_or(0)
            + 2;
        for fact in &answer.facts {
            let sure = match fact.confidence {
                "quoted" | "measured" => String::new(),
                other => format!(" ({other})"),
            };
            let text = clean(&format!("{}{sure} [{}]", fact.value, fact.source));
            page.hang(
                2,
                (fact.label, &style.dim(fact.label)),
                column,
                &text,
                str::to_owned,
            );
        }
        if !answer.sources.is_empty() {
            page.verbatim(2, &style.dim("read in"));
        }
        for source in &answer.sources {
            let label = clean(&format!("[{}]", source.id));
            let text = clean(&format!("{} ({})", source.what, source.date));
            page.hang(4, (&label, &style.dim(&label)), 8, &text, str::to_owned);
        }
    }
    let marked = |answer: &Answer| {
        let mut facts = answer.facts.iter();
        facts.any(|fact| !["quoted", "measured"].contains(&fact.confidence))
    };
    if answers.iter().any(marked) {
        page.text.push('\n');
        page.paragraph(0, MARKS);
    }
    page.text
}

/// What the marks behind values mean.
const MARKS: &str = "(derived) follows from what was read; (memory) and (unknown) were not found anywhere, and never make gpucheck accuse; the rest was read as it stands.";

fn contents_page(contents: &[Contents], style: &Style) -> String {
    let mut page = Page {
        style,
        text: String::new(),
    };
    for one in contents {
        page.row(one.word, &clean(&one.names.join("  ")));
    }
    if contents.len() > 1 {
        page.row("gpu", "by name or id");
        page.row("xid", "by number");
        page.paragraph(0, &format!("As of {}.", Tables::AS_OF));
    }
    page.text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Vec<Answer> {
        answers(&Tables::embedded(), words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn refused(words: &[&str]) -> String {
        match answers(&Tables::embedded(), words) {
            Ok(found) => panic!("{words:?}: {}", found[0].name),
            Err(error) => error.to_string(),
        }
    }

    fn value<'a>(answer: &'a Answer, key: &str) -> Option<&'a str> {
        let fact = answer.facts.iter().find(|fact| fact.key == key)?;
        Some(&fact.value)
    }

    #[test]
    fn a_toolkit_says_what_it_needs() {
        for words in [&["cuda", "12.8"][..], &["cuda", "12.8.1"]] {
            let found = asked(words);
            assert_eq!(found.len(), 1, "{words:?}");
            let toolkit = &found[0];
            assert_eq!(toolkit.name, "CUDA toolkit 12.8");
            assert_eq!(value(toolkit, "driver"), Some("570.26"));
            assert_eq!(value(toolkit, "floor"), Some("525.60.13"));
            assert_eq!(value(toolkit, "branches"), Some("570 and later"));
            assert_eq!(value(toolkit, "below_branch"), Some("580"));
            assert_eq!(value(toolkit, "gcc"), Some("14"));
            assert!(value(toolkit, "targets").is_some_and(|list| list.ends_with("120, 120a")));
        }
        // Before CUDA 11 there is no minor-version compatibility.
        assert_eq!(value(&asked(&["cuda", "10.2"])[0], "floor"), None);
        // 12.1 is not 12.10, and there was no 12.7.
        assert!(refused(&["cuda", "12.10"]).contains("the nearest are"));
        assert!(refused(&["cuda", "12.7"]).contains("driver branch 565 reports it"));
        assert!(refused(&["cuda", "12.8", "12.9"]).contains("one name at a time"));
        refused(&["cuda", "new"]);
    }

    #[test]
    fn a_driver_is_known_by_its_branch() {
        let branch = &asked(&["driver", "580"])[0];
        assert_eq!(value(branch, "cuda"), Some("13.0"));
        assert_eq!(value(branch, "highest"), Some("Blackwell"));
        assert_eq!(value(branch, "asked"), None);
        for (release, words) in [
            ("580.65.06", "is behind"),
            ("580.999.01", "newer than this table"),
        ] {
            let branch = &asked(&["driver", release])[0];
            assert!(value(branch, "asked").is_some_and(|said| said.contains(words)));
        }
        assert_eq!(
            value(&asked(&["driver", "620"])[0], "open_module"),
            Some("only")
        );
        refused(&["driver", "58"]);
        refused(&["driver", "581"]);
    }

    #[test]
    fn releases_are_found_by_the_numbers_that_are_given() {
        let names = |words: &[&str]| -> Vec<String> {
            asked(words).into_iter().map(|answer| answer.name).collect()
        };
        assert_eq!(names(&["rocm", "6.0"]), ["ROCm 6.0.0", "ROCm 6.0.2"]);
        assert_eq!(names(&["rocm", "10.0"]), ["ROCm 10.0.0"]);
        let seven = names(&["rocm", "7"]);
        let at = |name: &str| seven.iter().position(|known| known == name);
        assert!(at("ROCm 7.2.0") < at("ROCm 7.9.0") && at("ROCm 7.9.0") < at("ROCm 7.14.0"));
        assert!(refused(&["rocm", "8.0"]).contains("no `rocm 8.0`"));
    }

    #[test]
    fn a_target_is_found_however_it_is_written() {
        for words in [&["gfx1151"][..], &["gfx", "1151"], &["GFX1151"]] {
            let target = &asked(words)[0];
            assert_eq!(target.name, "AMD target gfx1151");
            assert!(
                value(target, "supported_by").is_some_and(|ranges| ranges.starts_with("7.14.0"))
            );
            // Supported and built for are two statements.
            assert!(value(target, "built_in").is_some_and(|ranges| !ranges.starts_with("7.14.0")));
        }
        assert_eq!(
            asked(&["gfx90a:sramecc+:xnack-"])[0].name,
            "AMD target gfx90a"
        );
        for words in [
            &["sm_89"][..],
            &["8.9"],
            &["cc", "8.9"],
            &["sm", "89"],
            &["sm89"],
            &["compute_89"],
        ] {
            assert_eq!(
                asked(words)[0].name,
                "compute capability 8.9 (sm_89)",
                "{words:?}"
            );
        }
        let pascal = &asked(&["sm_61"])[0];
        assert_eq!(value(pascal, "last_branch"), Some("580"));
        assert_eq!(value(pascal, "open_module"), Some("impossible"));
        assert_eq!(value(pascal, "last_cuda"), Some("12.9"));
        for nonsense in ["gfx", "sm_", "surprise", "\u{202e}"] {
            refused(&[nonsense, nonsense]);
        }
    }

    #[test]
    fn a_gpu_is_found_by_its_name_or_id() {
        let rtx = asked(&["gpu", "RTX", "5090"]);
        assert_eq!(rtx.len(), 1);
        assert_eq!(value(&rtx[0], "memory_gb"), Some("32"));
        assert_eq!(value(&rtx[0], "open_module"), Some("required"));
        assert!(rtx[0].name.contains("10de:2b85"), "{}", rtx[0].name);
        let same = asked(&["gpu", "10de:2b85"]);
        assert_eq!(same[0].name, rtx[0].name);
        // The subsystem tells what the id alone cannot.
        assert!(
            asked(&["gpu", "A16"])
                .iter()
                .any(|gpu| gpu.name.contains("subsystem"))
        );
        let navi = asked(&["gpu", "7900", "XTX"]);
        assert_eq!(value(&navi[0], "target"), Some("gfx1100"));
        assert!(
            navi.iter()
                .any(|gpu| value(gpu, "bandwidth_gbs") == Some("960"))
        );
        assert!(refused(&["gpu", "GeForce"]).contains("names have these words"));
        assert_eq!(asked(&["RTX", "5090"])[0].name, rtx[0].name);
        assert_eq!(asked(&["gpu", "0x2b85"])[0].name, rtx[0].name);
        // A generation's tensor cores are not in all of its chips.
        assert_eq!(
            value(&asked(&["gpu", "10de:1f96"])[0], "tensor_generation"),
            Some("none")
        );
        assert_eq!(
            value(&asked(&["gpu", "10de:1eb8"])[0], "tensor_generation"),
            Some("2")
        );
        assert!(asked(&["gpu", "H100"]).len() > 2);
        refused(&["gpu", "no such card"]);
    }

    #[test]
    fn a_code_that_is_not_there_is_not_called_harmless() {
        assert_eq!(
            value(&asked(&["xid", "79"])[0], "severity"),
            Some("critical")
        );
        assert!(refused(&["xid", "9999"]).contains("not harmless"));
    }

    #[test]
    fn a_model_is_found_by_its_name() {
        for words in [
            &["model", "Llama-3.1-8B"][..],
            &["model", "llama", "3.1", "8b"],
            &["llama3.1:8b"],
        ] {
            let model = &asked(words)[0];
            assert_eq!(model.name, "Llama-3.1-8B", "{words:?}");
            assert_eq!(value(model, "cache_bytes"), Some("131072"));
            assert_eq!(value(model, "weights_gb_q4_k_m"), Some("4.9"));
        }
        assert!(refused(&["model", "llama-3.1-9b"]).contains("Llama-3.1-8B"));
    }

    /// Every statement says where it was read, by a name that stands below.
    #[test]
    fn every_source_that_is_named_is_listed() {
        for words in [
            &["cuda", "13.0"][..],
            &["driver", "550"],
            &["rocm", "6.4"],
            &["gfx942"],
            &["sm_90"],
            &["gpu", "H100"],
            &["gpu", "MI300X"],
            &["xid", "13"],
            &["model", "gpt-oss-20b"],
        ] {
            for answer in asked(words) {
                for fact in &answer.facts {
                    for id in fact.source.split(' ') {
                        assert!(
                            answer.sources.iter().any(|source| source.id == id),
                            "{}: {} was read in `{id}`",
                            answer.name,
                            fact.key
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn stretches_of_releases() {
        let said = |answers: &str| -> Vec<(String, Option<Known<bool>>)> {
            answers
                .chars()
                .enumerate()
                .map(|(at, answer)| {
                    let known = (answer != '?').then(|| Known {
                        value: answer == 'y',
                        confidence: Confidence::Quoted,
                        source: String::new(),
                    });
                    (at.to_string(), known)
                })
                .collect()
        };
        assert_eq!(ranges(&said("ny?yn?y")), ["1 to 3", "6"]);
        assert_eq!(ranges(&said("nn?")), [""; 0]);
    }

    #[test]
    fn the_page_has_a_line_for_each_statement() {
        let text = page(&asked(&["xid", "79"]), &Style::plain());
        assert!(text.starts_with("Xid 79\n  name"), "{text}");
        assert!(
            text.contains("  read in\n    [gpud] leptonai/gpud"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let contents = contents(&Tables::embedded(), &[])
            .expect("no error")
            .expect("a list");
        let text = contents_page(&contents, &Style::plain());
        for word in ["12.8", "580", "7.14.0", "gfx1151", "8.9", "xid"] {
            assert!(text.contains(word), "{word}");
        }
    }
}
