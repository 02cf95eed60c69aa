//! What is true of the world: embedded tables, parsed only when asked, with `--data` laid over.
//!
//! A question reads only the rows it is about: a binary search for a GPU, the named blocks of the others. A whole file is
//! parsed when somebody else's replaces it, and by the tests.

pub mod kinds;
mod rows;

pub use rows::{Field, Kind, Known, Row, Shape, Source};

use crate::terms::{Link, Risk, Severity};
use crate::version::{Version, compute_capability};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// How a row of a table is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Not found anywhere.
    #[default]
    Unknown,
    /// From somebody's memory.
    Memory,
    /// Follows from something that was read.
    Derived,
    /// Read in the source that is named.
    Quoted,
    /// Read out of a real binary.
    Measured,
}

impl Confidence {
    /// Enough to rest a finding on. What is not may inform, never accuse.
    pub fn may_accuse(self) -> bool {
        self >= Confidence::Derived
    }

    /// The word in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Unknown => "unknown",
            Confidence::Memory => "memory",
            Confidence::Derived => "derived",
            Confidence::Quoted => "quoted",
            Confidence::Measured => "measured",
        }
    }

    fn from_name(name: &str) -> Option<Confidence> {
        use Confidence::{Derived, Measured, Memory, Quoted, Unknown};
        [Unknown, Memory, Derived, Quoted, Measured]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

/// A row of `data/checks.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckRow {
    /// The stable name.
    pub name: String,
    /// Where in the chain.
    pub link: Link,
    /// Usual severity, and the ceiling where `max` is not given.
    pub severity: Severity,
    /// Ceiling where a rule can raise a finding above `severity`.
    pub max: Option<Severity>,
    /// When it differs.
    #[serde(default)]
    pub severity_rule: String,
    /// `gpu`, `stack`, `environment`, `machine`.
    pub each: String,
    /// Whose want decides: `cuda`, `rocm`, `level-zero`, `any`, `none`.
    pub stack: String,
    /// `nvidia`, `amd`, `intel`, `any`.
    pub applies: String,
    /// 1 to 3.
    pub tier: u8,
    /// Causes, where there are several.
    #[serde(default)]
    pub causes: Vec<String>,
    /// Names or whole links that a finding explains away.
    #[serde(default)]
    pub blocks: Vec<String>,
    /// Where the decisive signal comes from: `file`, `library`, `log`, `package`, `env`.
    #[serde(default)]
    pub evidence: String,
    /// Older names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The cause that an older name stood for.
    #[serde(default)]
    pub alias_causes: BTreeMap<String, String>,
    /// How it behaves under WSL, where that differs.
    pub in_wsl: Option<String>,
    /// How it behaves in a container, where that differs.
    pub in_container: Option<String>,
}

/// A row of `data/checks.toml` that is parsed when somebody needs it: most checks find nothing, and then only whom they
/// apply to is asked.
pub struct IndexRow<'t> {
    /// The stable name.
    pub name: &'t str,
    text: &'t str,
    parsed: OnceCell<Option<CheckRow>>,
}

impl<'t> IndexRow<'t> {
    /// The row with this name and text.
    pub fn new(name: &'t str, text: &'t str) -> IndexRow<'t> {
        IndexRow {
            name,
            text,
            parsed: OnceCell::new(),
        }
    }

    /// All of it. None: the text is no row, which nobody lays over the embedded tables.
    pub fn row(&self) -> Option<&CheckRow> {
        let parsed = || toml::from_str(self.text).ok();
        self.parsed.get_or_init(parsed).as_ref()
    }

    /// `nvidia`, `amd`, `intel`, `any`.
    pub fn applies(&self) -> &str {
        value(self.text, "applies").unwrap_or_else(|| self.row().map_or("", |row| &row.applies))
    }
}

/// What the embedded table knows of a GPU by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuFigures {
    /// Marketing name; empty where the id has none.
    pub name: String,
    /// Chip (`AD102`).
    pub chip: String,
    /// Architecture.
    pub architecture: Option<String>,
    /// `sm_89`, `gfx1100`. None with a chip of AMD: it has none, being older than GCN.
    pub target: Option<String>,
    /// Part of the processor.
    pub integrated: Option<bool>,
    /// A data-centre accelerator.
    pub data_centre: bool,
    /// How name and chip are known.
    pub confidence: Confidence,
    /// How architecture and target are known.
    pub target_confidence: Confidence,
}

impl GpuFigures {
    /// The target, where it is known well enough to rest a finding on.
    pub fn target_to_accuse_by(&self) -> Option<&str> {
        self.target
            .as_deref()
            .filter(|_| self.target_confidence.may_accuse())
    }
}

/// A row of `data/fixes.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixRow {
    /// Name of the recipe.
    pub recipe: String,
    /// `debian`, `ubuntu`, `fedora`, `rhel`, `arch`, `suse`, `nixos`, `ostree`, `container`, `wsl`, `any`.
    pub family: String,
    /// What to do, in words.
    pub words: String,
    /// Commands to paste; only where `source` is given.
    #[serde(default)]
    pub commands: Vec<String>,
    /// They need root.
    #[serde(default)]
    pub needs_root: bool,
    /// `reboot`, `new login`.
    pub after: Option<String>,
    /// What it may cost.
    pub risk: Risk,
    /// How to see that it worked.
    pub confirm: String,
    /// Where the commands were read.
    pub source: Option<String>,
    /// When they were checked.
    pub checked: Option<String>,
}

/// Another target whose kernels run on a GPU, though nobody supports that.
#[derive(Clone, Debug)]
pub struct Sibling {
    /// Its name.
    pub gfx: String,
    /// What may go wrong all the same, as a clause.
    pub caution: Option<String>,
}

/// A file of tables: its name, and the text that is built in.
const FILES: [(&str, &str); 11] = [
    (CHECKS, include_str!("../data/checks.toml")),
    (FIXES, include_str!("../data/fixes.toml")),
    (GPUS, include_str!("../data/gpus.csv")),
    (kinds::FIGURES.file, include_str!("../data/gpu-figures.csv")),
    (kinds::TARGET.file, include_str!("../data/gfx.toml")),
    (
        kinds::CAPABILITY.file,
        include_str!("../data/compute-capability.toml"),
    ),
    (kinds::TOOLKIT.file, include_str!("../data/cuda.toml")),
    (
        kinds::BRANCH.file,
        include_str!("../data/nvidia-drivers.toml"),
    ),
    (kinds::RELEASE.file, include_str!("../data/rocm.toml")),
    (kinds::XID.file, include_str!("../data/xid.csv")),
    (kinds::MODEL.file, include_str!("../data/models.csv")),
];
const CHECKS: &str = "checks.toml";
const FIXES: &str = "fixes.toml";
const GPUS: &str = kinds::GPU.file;

/// The columns of `gpus.csv`.
const GPU_COLUMNS: &str = "vendor,device,key,name,chip,architecture,target,integrated,data_centre,source,confidence,target_confidence";

/// The families that a row of `fixes.toml` may be for, in the order in which they stand there.
pub const FAMILIES: [&str; 11] = [
    "debian",
    "ubuntu",
    "fedora",
    "rhel",
    "arch",
    "suse",
    "nixos",
    "ostree",
    "container",
    "wsl",
    "any",
];

/// The tables.
#[derive(Default)]
pub struct Tables {
    overrides: BTreeMap<String, String>,
    /// The rows of architectures, once somebody asked: checks and the view ask for each GPU.
    architectures: OnceCell<Vec<Row>>,
}

impl Tables {
    /// The embedded tables.
    pub fn embedded() -> Tables {
        Tables::default()
    }

    /// The embedded tables with these files (name, text) in place of those of the same name.
    ///
    /// # Errors
    /// A file has no such name, or is not in order: which file, and at which line and column.
    pub fn with_overrides(files: Vec<(String, String)>) -> Result<Tables, String> {
        let mut overrides = BTreeMap::new();
        for (name, text) in files {
            validate(&name, &text)?;
            overrides.insert(name, text);
        }
        Ok(Tables {
            overrides,
            ..Tables::default()
        })
    }

    /// Date of the embedded tables.
    pub const AS_OF: &'static str = "2026-11-30";

    /// Names of the files that replace embedded ones.
    pub fn overridden(&self) -> impl Iterator<Item = &str> {
        self.overrides.keys().map(String::as_str)
    }

    fn text(&self, name: &str) -> &str {
        self.overrides.get(name).map_or_else(
            || {
                FILES
                    .iter()
                    .find(|(file, _)| *file == name)
                    .map_or("", |(_, text)| *text)
            },
            String::as_str,
        )
    }

    /// The rows of the index for these checks, in their order. A name that is not there has no row.
    pub fn index(&self, names: &[&str]) -> Vec<IndexRow<'_>> {
        let wanted: BTreeMap<&str, &str> = blocks(self.text(CHECKS), "check")
            .filter_map(|block| Some((value(block, "name")?, block)))
            .filter(|(name, _)| names.contains(name))
            .collect();
        names
            .iter()
            .filter_map(|name| wanted.get_key_value(*name))
            .map(|(name, text)| IndexRow::new(name, text))
            .collect()
    }

    /// The same, parsed.
    pub fn checks(&self, names: &[&str]) -> Vec<CheckRow> {
        let index = self.index(names).into_iter();
        index.filter_map(|row| row.row().cloned()).collect()
    }

    /// A GPU by its ids: the full subsystem triple or the exact revision first, then the device alone.
    pub fn gpu(
        &self,
        vendor: u16,
        device: u16,
        subsystem: Option<(u16, u16)>,
        revision: Option<u8>,
    ) -> Option<GpuFigures> {
        let line = line_of_gpu(self.text(GPUS), vendor, device, subsystem, revision)?;
        let mut figures = gpu_figures(line).ok()?;
        if figures.architecture.is_none() {
            figures.architecture = figures
                .target
                .as_deref()
                .and_then(|target| self.architecture(target));
        }
        Some(figures)
    }

    /// Architecture of a gfx target (`gfx1100` is `RDNA 3`) or of a compute capability (`sm_89` is `Ada Lovelace`).
    pub fn architecture(&self, target: &str) -> Option<String> {
        if target.starts_with("sm_") {
            let capability = compute_capability(target)?;
            return self.word(&kinds::CAPABILITY, &capability, "architecture");
        }
        self.word(&kinds::TARGET, target, "architecture")
    }

    /// The target of several GPUs whose kernels run on this one too (`gfx11-generic` for `gfx1100`).
    pub fn generic_of(&self, target: &str) -> Option<String> {
        self.word(&kinds::TARGET, target, "generic")
    }

    /// The target whose kernels somebody has seen run on this one under `HSA_OVERRIDE_GFX_VERSION`.
    pub fn sibling_of(&self, target: &str) -> Option<Sibling> {
        let row = self.row(&kinds::TARGET, target)?;
        let sibling = row.text("sibling")?;
        (sibling.confidence >= Confidence::Quoted).then(|| Sibling {
            gfx: sibling.value,
            caution: row.text("sibling_caution").map(|caution| caution.value),
        })
    }

    /// The row of a kind with this key.
    pub fn row(&self, kind: &Kind, key: &str) -> Option<Row> {
        let text = self.text(kind.file);
        if kind.is_csv() {
            return rows::csv_rows(text).find(|row| row.key(kind) == key);
        }
        rows::row(text, kind, key)
    }

    /// What the file of a kind says that it was read in.
    pub fn sources(&self, kind: &Kind) -> Vec<Source> {
        rows::sources(self.text(kind.file))
    }

    /// All rows of a kind, in the order of their file.
    pub fn rows(&self, kind: &Kind) -> Vec<Row> {
        let text = self.text(kind.file);
        if kind.is_csv() {
            return rows::csv_rows(text).collect();
        }
        rows::rows(text, kind)
    }

    fn word(&self, kind: &Kind, key: &str, wanted: &str) -> Option<String> {
        self.row(kind, key)?.text(wanted).map(|known| known.value)
    }

    /// What a GPU has by its ids, as it is sold; the most exact key counts, as in `gpu`.
    pub fn figures(
        &self,
        vendor: u16,
        device: u16,
        subsystem: Option<(u16, u16)>,
        revision: Option<u8>,
    ) -> Option<Row> {
        let text = self.text(kinds::FIGURES.file);
        let line = line_of_gpu(text, vendor, device, subsystem, revision)?;
        rows::row_of_line(text, line)
    }

    /// The row of a model by one of its names, however they are written: `llama3.1:8b`, `Llama 3.1 8B`,
    /// `meta-llama/Llama-3.1-8B-Instruct`.
    pub fn model(&self, name: &str) -> Option<Row> {
        let wanted = plain_name(name);
        self.rows(&kinds::MODEL).into_iter().find(|row| {
            let also = row.text("also").map_or(String::new(), |also| also.value);
            let mut names = also.split('|').chain([row.key(&kinds::MODEL)]);
            names.any(|known| !wanted.is_empty() && plain_name(known) == wanted)
        })
    }

    /// The rows of a recipe.
    pub fn fixes(&self, recipe: &str) -> Vec<FixRow> {
        blocks(self.text(FIXES), "fix")
            .filter(|block| value(block, "recipe") == Some(recipe))
            .filter_map(|block| toml::from_str(block).ok())
            .collect()
    }
}

/// Words in the name of a model that change nothing about its size.
const TUNED: [&str; 10] = [
    "meta", "instruct", "chat", "it", "base", "hf", "gguf", "text", "latest", "thinking",
];

/// The letters, digits and points of a model's name, without who publishes it and how it was tuned.
fn plain_name(name: &str) -> String {
    let own = name.trim().rsplit('/').next().unwrap_or_default();
    own.to_lowercase()
        .split(|c: char| !(c.is_alphanumeric() || c == '.'))
        .filter(|word| !TUNED.contains(word))
        .collect()
}

/// The pieces of a TOML text that follow a `[[name]]` line, without that line.
fn blocks<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    text.strip_prefix("[[")
        .unwrap_or(text)
        .split("\n[[")
        .filter_map(move |piece| piece.strip_prefix(name)?.strip_prefix("]]\n"))
}

/// The string behind `key = ` on a line of its own.
fn value<'a>(block: &'a str, key: &str) -> Option<&'a str> {
    block.lines().find_map(|line| {
        let quoted = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        quoted.strip_suffix('"')
    })
}

/// The line of a GPU: that of the full subsystem or of the exact revision first, then that of the device alone.
fn line_of_gpu(
    text: &str,
    vendor: u16,
    device: u16,
    subsystem: Option<(u16, u16)>,
    revision: Option<u8>,
) -> Option<&str> {
    let subsystem = subsystem.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}"));
    let revision = revision.map(|revision| format!("{revision:02x}"));
    [subsystem, revision, Some("*".to_owned())]
        .into_iter()
        .flatten()
        .find_map(|key| line_of(text, &format!("{vendor:04x},{device:04x},{key},")))
}

/// The line that begins with these characters, in a text whose lines are sorted below the heading.
fn line_of<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let heading = if text.starts_with("vendor,") {
        0
    } else {
        text.find("\nvendor,")? + 1
    };
    let body = text[heading..].split_once('\n')?.1;
    let bytes = body.as_bytes();
    let (mut low, mut high) = (0, bytes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = bytes[..middle]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let end = bytes[start..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(bytes.len(), |newline| start + newline);
        let line = &body[start..end];
        if line.starts_with(beginning) {
            return Some(line);
        }
        if line < beginning {
            low = end + 1;
        } else {
            high = start;
        }
    }
    None
}

/// A line of `gpus.csv`. The error is the number of the field, from 0, and what is wrong with it.
fn gpu_figures(line: &str) -> Result<GpuFigures, (usize, &'static str)> {
    let fields: Vec<&str> = line.split(',').collect();
    let [
        vendor,
        device,
        key,
        name,
        chip,
        architecture,
        target,
        integrated,
        data_centre,
        source,
        confidence,
        target_confidence,
    ] = fields[..]
    else {
        return Err((fields.len().min(12), "not 12 fields"));
    };
    let hexadecimal = |text: &str, length| {
        text.len() == length
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let known_key = key == "*"
        || hexadecimal(key, 2)
        || key
            .split_once(':')
            .is_some_and(|(vendor, device)| hexadecimal(vendor, 4) && hexadecimal(device, 4));
    let flag = |text| match text {
        "0" => Ok(Some(false)),
        "1" => Ok(Some(true)),
        "" => Ok(None),
        _ => Err("neither 0 nor 1"),
    };
    if !hexadecimal(vendor, 4) {
        return Err((0, "not four hexadecimal digits in lower case"));
    }
    if !hexadecimal(device, 4) {
        return Err((1, "not four hexadecimal digits in lower case"));
    }
    if !known_key {
        return Err((
            2,
            "neither a subsystem (`10de:1485`) nor a revision (`c2`) nor `*`",
        ));
    }
    if !(target.is_empty() || target.starts_with("sm_") || target.starts_with("gfx")) {
        return Err((6, "neither an `sm_` nor a `gfx` target"));
    }
    if source.is_empty() {
        return Err((9, "no source"));
    }
    let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(GpuFigures {
        name: name.to_owned(),
        chip: chip.to_owned(),
        architecture: named(architecture),
        target: named(target),
        integrated: flag(integrated).map_err(|what| (7, what))?,
        data_centre: flag(data_centre)
            .map_err(|what| (8, what))?
            .ok_or((8, "neither 0 nor 1"))?,
        confidence: Confidence::from_name(confidence).ok_or((10, "no such confidence"))?,
        target_confidence: Confidence::from_name(target_confidence)
            .ok_or((11, "no such confidence"))?,
    })
}

/// Whether a file of this name may replace the embedded one.
fn validate(name: &str, text: &str) -> Result<(), String> {
    match name {
        CHECKS => {
            let rows: Vec<CheckRow> = all_rows(name, text, "check", "name")?;
            let mut seen = BTreeSet::new();
            for (index, row) in rows.iter().enumerate() {
                if !seen.insert(&row.name) {
                    return Err(at_row(name, text, "check", index, "stands there twice"));
                }
            }
            Ok(())
        }
        FIXES => {
            let rows: Vec<FixRow> = all_rows(name, text, "fix", "recipe")?;
            crate::fix::faults(&rows)
                .into_iter()
                .next()
                .map_or(Ok(()), |(index, what)| {
                    Err(at_row(name, text, "fix", index, &what))
                })
        }
        GPUS => rows::validate_csv(&kinds::GPU, text, GPU_COLUMNS, 3, &|line| {
            let (field, what) = gpu_figures(line).err()?;
            let before = line.split(',').take(field);
            let column = before.map(|before| before.chars().count() + 1).sum();
            Some((column, what.to_owned()))
        }),
        _ if kinds::ALL.iter().any(|kind| kind.file == name) => kinds::validate(name, text),
        _ => {
            let known: Vec<&str> = FILES.iter().map(|(file, _)| *file).collect();
            Err(format!(
                "{name}: no table has this name; there are {}",
                known.join(", ")
            ))
        }
    }
}

/// All rows of a file that holds nothing but `[[name]]` rows, each with a line for `key` as the look-up wants it.
fn all_rows<T: DeserializeOwned>(
    file: &str,
    text: &str,
    name: &str,
    key: &str,
) -> Result<Vec<T>, String> {
    let mut tables: BTreeMap<String, Vec<T>> = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        at_offset(file, text, offset, error.message())
    })?;
    let rows = tables.remove(name).unwrap_or_default();
    if let Some(other) = tables.keys().next() {
        let offset = text.find(&format!("[[{other}]]")).unwrap_or(0);
        let what = format!("`{other}` is not a kind of row of this table");
        return Err(at_offset(file, text, offset, &what));
    }
    all_found(file, text, name, key, rows.len())?;
    Ok(rows)
}

/// The look-up finds a row by its text. One that TOML knows and the look-up does not would be lost in silence.
fn all_found(file: &str, text: &str, name: &str, key: &str, rows: usize) -> Result<(), String> {
    let found = blocks(text, name)
        .filter(|block| value(block, key).is_some())
        .count();
    if found != rows {
        return Err(format!(
            "{file}: {rows} rows, of which {found} can be looked up; `[[{name}]]` and `{key} = \"...\"` must each be a line of their own"
        ));
    }
    Ok(())
}

/// Every key is known and stands after the one before.
fn in_order<T: PartialOrd>(
    file: &str,
    text: &str,
    name: &str,
    keys: &[Option<T>],
) -> Result<(), String> {
    for (index, key) in keys.iter().enumerate() {
        if key.is_none() {
            return Err(at_row(
                file,
                text,
                name,
                index,
                "is not named as it should be",
            ));
        }
        if index > 0 && keys[index - 1] >= *key {
            return Err(at_row(
                file,
                text,
                name,
                index,
                "is not in order, or stands there twice",
            ));
        }
    }
    Ok(())
}

fn at_offset(file: &str, text: &str, offset: usize, what: &str) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |last| last.chars().count())
        + 1;
    format!("{file} line {line}, column {column}: {}", what.trim())
}

/// What is wrong with a row, with the place where it begins.
fn at_row(file: &str, text: &str, name: &str, index: usize, what: &str) -> String {
    let header = format!("[[{name}]]");
    let line = text
        .lines()
        .enumerate()
        .filter(|(_, line)| *line == header)
        .nth(index)
        .map_or(0, |(number, _)| number);
    format!("{file} line {}, column 1: this row {what}", line + 1)
}

/// Chips of a compute capability's row lack tensor cores although others of it have them.
pub fn lacks_tensor_cores(row: &Row, chip: &str) -> Option<Known<()>> {
    let without = row.list("without_tensor")?;
    let mut starts = without.value.iter();
    starts
        .any(|start| chip.starts_with(start.as_str()))
        .then_some(Known {
            value: (),
            confidence: without.confidence,
            source: without.source,
        })
}

/// How long NVIDIA's driver takes GPUs of an architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastBranch {
    /// Architecture.
    pub architecture: String,
    /// The last branch that takes them; None: the newest one known still does.
    pub branch: Option<u64>,
    /// How this is known.
    pub confidence: Confidence,
}

impl Tables {
    /// The row of the architecture that a compute capability (`sm_61`) belongs to. None: no row tells.
    pub fn nvidia_architecture(&self, target: &str) -> Option<&Row> {
        let capability = Version::parse(&compute_capability(target)?)?;
        let rows = self
            .architectures
            .get_or_init(|| self.rows(&kinds::ARCHITECTURE));
        rows.iter().find(|row| {
            let edge = |key| row.version(key).map(|known| known.value);
            edge("lowest").is_some_and(|lowest| lowest <= capability)
                && edge("highest").is_some_and(|highest| capability <= highest)
        })
    }

    /// The row of a compute capability by its target (`sm_90a`).
    pub fn capability(&self, target: &str) -> Option<Row> {
        self.row(&kinds::CAPABILITY, &compute_capability(target)?)
    }

    /// How long NVIDIA's driver takes GPUs of a compute capability (`sm_61`). None: no row tells.
    pub fn last_nvidia_branch(&self, target: &str) -> Option<LastBranch> {
        let row = self.nvidia_architecture(target)?;
        let name = row.text("name")?;
        Some(LastBranch {
            architecture: name.value,
            branch: row
                .version("last_branch")
                .and_then(|branch| branch.value.major()),
            confidence: name.confidence,
        })
    }
}

#[cfg(test)]
mod last_branch_tests {
    use super::*;

    #[test]
    fn the_last_branch_follows_from_the_compute_capability() {
        let tables = Tables::embedded();
        let branch = |target: &str| tables.last_nvidia_branch(target).map(|row| row.branch);
        assert_eq!(branch("sm_30"), Some(Some(470)));
        assert_eq!(branch("sm_61"), Some(Some(580)));
        assert_eq!(branch("sm_70"), Some(Some(580)));
        assert_eq!(branch("sm_75"), Some(None));
        assert_eq!(branch("sm_90a"), Some(None));
        assert_eq!(branch("sm_120"), Some(None));
        // Newer than the table, older than it, and none at all.
        assert_eq!(branch("sm_150"), None);
        assert_eq!(branch("sm_"), None);
        assert_eq!(branch("gfx900"), None);
    }

    /// Every compute capability has a row of its architecture, under the same name.
    #[test]
    fn architectures_are_named_as_elsewhere() {
        let tables = Tables::embedded();
        for row in tables.rows(&kinds::CAPABILITY) {
            let capability = row.key(&kinds::CAPABILITY).replace('.', "");
            let architecture = tables
                .nvidia_architecture(&format!("sm_{capability}"))
                .unwrap_or_else(|| panic!("sm_{capability} has no architecture"));
            assert_eq!(
                architecture.text("name").map(|name| name.value),
                row.text("architecture").map(|name| name.value),
                "sm_{capability}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::Path;

    const TARGETS: &str = kinds::TARGET.file;
    const ME: &str = "[[source]]\nid = \"me\"\nwhat = \"I know\"\ndate = \"2026-01-01\"\n";

    fn embedded(name: &str) -> &'static str {
        FILES
            .iter()
            .find(|(file, _)| *file == name)
            .expect("a file of tables")
            .1
    }

    fn refused(name: &str, text: &str) -> String {
        Tables::with_overrides(vec![(name.to_owned(), text.to_owned())])
            .err()
            .unwrap_or_else(|| panic!("{name} must be refused: {text}"))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test may be told to skip nothing"
    )]
    fn skipped(what: &str) {
        assert!(
            std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none(),
            "everything is required, but {what} is not here"
        );
        let _ = writeln!(std::io::stderr(), "skipped: {what} is not here");
    }

    /// A table as others gathered it; None where the material is not at hand.
    fn reference(name: &str) -> Option<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference");
        let text = std::fs::read_to_string(path.join(name)).ok();
        if text.is_none() {
            assert!(
                std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none(),
                "{name} is missing"
            );
            skipped(name);
        }
        text
    }

    /// The fields of a line of CSV that may quote some of them.
    fn fields(line: &str) -> Vec<String> {
        let mut fields = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                other => fields.last_mut().expect("one").push(other),
            }
        }
        fields
    }

    fn hex16(text: &str) -> u16 {
        u16::from_str_radix(text, 16).expect("four hexadecimal digits")
    }

    #[test]
    fn every_embedded_file_would_pass_as_an_override() {
        for (name, text) in FILES {
            assert_eq!(validate(name, text), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_model_is_found_however_its_name_is_written() {
        let tables = Tables::embedded();
        let found = |name: &str| Some(tables.model(name)?.key(&kinds::MODEL).to_owned());
        for (written, name) in [
            ("llama3.1:8b", "Llama-3.1-8B"),
            ("Llama 3.1 8B", "Llama-3.1-8B"),
            ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
            ("Meta-Llama-3-8B", "Llama-3-8B"),
            ("QWEN2.5_7b", "Qwen2.5-7B"),
            ("mistral:7b", "Mistral-7B-v0.3"),
            ("Mistral-7B-Instruct-v0.3", "Mistral-7B-v0.3"),
            ("mixtral:8x7b", "Mixtral-8x7B"),
            ("gpt-oss:20b", "gpt-oss-20b"),
            ("deepseek-r1", "DeepSeek-V3"),
            ("gemma-3-27b-it", "Gemma-3-27B"),
            ("sdxl", "SDXL-1.0"),
            ("FLUX.1-schnell", "FLUX.1-dev"),
        ] {
            assert_eq!(found(written).as_deref(), Some(name), "{written}");
        }
        for unknown in ["", "-", "Llama-3.8B", "llama", "8B", "Qwen2.5-70B"] {
            assert_eq!(found(unknown), None, "{unknown}");
        }
    }

    /// What follows from other values of a row does, and no name stands for two models.
    #[test]
    fn models_are_consistent() {
        let tables = Tables::embedded();
        let mut names = BTreeSet::new();
        for row in tables.rows(&kinds::MODEL) {
            let name = row.key(&kinds::MODEL).to_owned();
            let number = |key: &str| row.text(key).and_then(|known| known.value.parse().ok());
            let also = row.text("also").map_or(String::new(), |also| also.value);
            for one in also
                .split('|')
                .filter(|one| !one.is_empty())
                .chain([&*name])
            {
                assert!(names.insert(plain_name(one)), "{name}: {one} stands twice");
            }
            assert!(number("active_b") <= number("params_b"), "{name}");
            if row
                .text("kind")
                .is_some_and(|kind| kind.value != "language")
            {
                continue;
            }
            let product = ["layers", "kv_heads", "head_dim"]
                .iter()
                .map(|key| number(key).unwrap_or_else(|| panic!("{name}: no {key}")))
                .product::<f64>();
            // MLA keeps one vector for keys and values.
            let kept = if name == "DeepSeek-V3" { 1.0 } else { 2.0 };
            assert_eq!(number("cache_bytes"), Some(kept * product * 2.0), "{name}");
            assert_eq!(number("full_layers").is_some(), number("window").is_some());
            assert!(number("full_layers").unwrap_or(0.0) < number("layers").expect("layers"));
        }
    }

    #[test]
    fn models_are_those_that_were_gathered() {
        let Some(text) = reference("models.csv") else {
            return;
        };
        let tables = Tables::embedded();
        let mut lines = text.lines().map(fields);
        let columns = lines.next().expect("a heading");
        let mut count = 0;
        for line in lines {
            let value = |key: &str| {
                let at = columns.iter().position(|column| column == key);
                line[at.expect("a column")].clone()
            };
            // `DeepSeek-V3 / R1`: one row for both.
            let name = value("name");
            let name = name.split(" / ").next().expect("a name");
            let row = tables.model(name).unwrap_or_else(|| panic!("no {name}"));
            let ours = |key: &str| row.text(key).map_or(String::new(), |known| known.value);
            for (key, of) in [
                ("params_b", "params_b"),
                ("active_b", "active_b"),
                ("layers", "layers"),
                ("cache_bytes", "kv_bytes_per_token_fp16"),
            ] {
                assert_eq!(ours(key), value(of), "{name}: {key}");
            }
            count += 1;
        }
        assert_eq!(count, tables.rows(&kinds::MODEL).len());
    }

    #[test]
    fn a_gpu_is_found_by_its_most_exact_key() {
        let tables = Tables::embedded();
        let rtx = tables.gpu(0x10de, 0x2684, None, None).expect("RTX 4090");
        assert_eq!(rtx.chip, "AD102");
        assert_eq!(rtx.architecture.as_deref(), Some("Ada Lovelace"));
        assert_eq!(rtx.target.as_deref(), Some("sm_89"));
        assert_eq!(rtx.target_to_accuse_by(), Some("sm_89"));
        assert_eq!((rtx.integrated, rtx.data_centre), (Some(false), false));

        let name = |subsystem| {
            tables
                .gpu(0x10de, 0x25b6, subsystem, Some(0xa1))
                .map(|gpu| gpu.name)
        };
        assert_eq!(name(Some((0x10de, 0x14a9))).as_deref(), Some("NVIDIA A16"));
        assert_eq!(name(Some((0x10de, 0x157e))).as_deref(), Some("NVIDIA A2"));
        for other in [None, Some((0x10de, 0xffff))] {
            assert_eq!(name(other).as_deref(), Some("NVIDIA A16 / NVIDIA A2"));
        }

        let navi = |revision| {
            tables
                .gpu(0x1002, 0x744c, None, revision)
                .map(|gpu| gpu.name)
        };
        assert_eq!(navi(Some(0xc8)).as_deref(), Some("Radeon RX 7900 XTX"));
        assert_ne!(navi(Some(0xc8)), navi(None));
        assert_eq!(navi(Some(0xfe)), navi(None));
    }

    #[test]
    fn amd_gpus_have_the_architecture_of_their_target() {
        let tables = Tables::embedded();
        for (device, target, architecture, integrated) in [
            (0x744c, "gfx1100", "RDNA 3", false),
            (0x1586, "gfx1151", "RDNA 3.5", true),
            (0x74a1, "gfx942", "CDNA 3", false),
            (0x6798, "gfx600", "GCN 1", false),
            (0x6818, "gfx601", "GCN 1", false),
            (0x6617, "gfx602", "GCN 1", false),
            (0x6663, "gfx602", "GCN 1", false),
            (0x67df, "gfx803", "GCN 3/4", false),
            (0x98e4, "gfx810", "GCN 3", true),
        ] {
            let gpu = tables.gpu(0x1002, device, None, None).expect("a GPU");
            assert_eq!(gpu.target.as_deref(), Some(target), "{device:04x}");
            assert_eq!(gpu.architecture.as_deref(), Some(architecture));
            assert_eq!(gpu.integrated, Some(integrated), "{device:04x}");
        }
        let trinity = tables.gpu(0x1002, 0x990b, None, None).expect("before GCN");
        assert_eq!((trinity.target, trinity.architecture), (None, None));
        assert_eq!(trinity.chip, "Richland");
    }

    #[test]
    fn intel_gpus_are_known_by_family() {
        let tables = Tables::embedded();
        for (device, architecture, integrated, data_centre) in [
            (0xe20b, "Xe2", false, false),
            (0x56a5, "Xe-HPG", false, false),
            (0x56c0, "Xe-HPG", false, true),
            (0x0bd5, "Xe-HPC", false, true),
            (0x9b41, "Gen9.5", true, false),
            (0x0a16, "Gen7.5", true, false),
            (0xa7a8, "Xe-LP", true, false),
        ] {
            let gpu = tables.gpu(0x8086, device, None, None).expect("a GPU");
            assert_eq!(gpu.architecture.as_deref(), Some(architecture));
            assert_eq!(gpu.integrated, Some(integrated), "{device:04x}");
            assert_eq!(gpu.data_centre, data_centre, "{device:04x}");
            assert_eq!(gpu.target, None);
        }
    }

    #[test]
    fn data_centre_cards_are_told_from_workstation_and_mining_cards() {
        let tables = Tables::embedded();
        let data_centre = |vendor, device| {
            tables
                .gpu(vendor, device, None, None)
                .expect("a GPU")
                .data_centre
        };
        for device in [
            0x20b0, 0x2330, 0x2901, 0x1eb8, 0x27b8, 0x2235, 0x118a, 0x1db2, 0x26b5,
        ] {
            assert!(data_centre(0x10de, device), "10de:{device:04x}");
        }
        for device in [0x2684, 0x2082, 0x1dba, 0x2230, 0x2e12, 0x20f6] {
            assert!(!data_centre(0x10de, device), "10de:{device:04x}");
        }
        for device in [0x740f, 0x74a1, 0x738c, 0x7408] {
            assert!(data_centre(0x1002, device), "1002:{device:04x}");
        }
        for device in [0x744c, 0x66af, 0x73a3] {
            assert!(!data_centre(0x1002, device), "1002:{device:04x}");
        }
    }

    #[test]
    fn what_is_not_in_the_table_has_no_row() {
        let tables = Tables::embedded();
        assert_eq!(tables.gpu(0, 0, None, None), None);
        assert_eq!(tables.gpu(0x10de, 0xffff, None, None), None);
        assert_eq!(
            tables.gpu(0xffff, 0xffff, Some((0xffff, 0xffff)), Some(0xff)),
            None
        );
        assert_eq!(tables.architecture(""), None);
        assert_eq!(tables.architecture("sm_"), None);
        assert_eq!(tables.architecture("sm_88"), None);
        assert_eq!(tables.architecture("gfx9"), None);
    }

    #[test]
    fn architectures_are_known_by_target() {
        let tables = Tables::embedded();
        for (target, architecture) in [
            ("sm_10", "Tesla"),
            ("sm_89", "Ada Lovelace"),
            ("sm_90a", "Hopper"),
            ("sm_100f", "Blackwell"),
            ("sm_121", "Blackwell"),
            ("gfx90a", "CDNA 2"),
            ("gfx1100", "RDNA 3"),
            ("gfx1250", "CDNA 5"),
        ] {
            assert_eq!(
                tables.architecture(target).as_deref(),
                Some(architecture),
                "{target}"
            );
        }
    }

    /// The binary search against a plain one.
    #[test]
    fn every_line_of_the_gpu_table_is_found() {
        let text = embedded(GPUS);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() > 2000);
        for line in &lines[1..] {
            let fields: Vec<&str> = line.split(',').collect();
            let beginning = format!("{},{},{},", fields[0], fields[1], fields[2]);
            assert_eq!(line_of(text, &beginning), Some(*line));
        }
    }

    /// All ids of the reference are there, with its target.
    #[test]
    fn the_reference_is_covered() {
        let tables = Tables::embedded();
        if let Some(text) = reference("nvidia-gpus.csv") {
            for line in text.lines().skip(1) {
                let row = fields(line);
                let subsystem = (!row[1].is_empty()).then(|| (hex16(&row[1]), hex16(&row[2])));
                let gpu = tables
                    .gpu(0x10de, hex16(&row[0]), subsystem, None)
                    .unwrap_or_else(|| panic!("10de:{} is missing", row[0]));
                assert_eq!(gpu.name, row[3], "{}", row[0]);
                assert_eq!(gpu.chip, row[4], "{}", row[0]);
                let target =
                    (row[6] != "unknown").then(|| format!("sm_{}", row[6].replace('.', "")));
                assert_eq!(gpu.target, target, "{}", row[0]);
                assert_eq!(gpu.architecture.as_deref(), Some(row[5].as_str()));
            }
        }
        if let Some(text) = reference("amd-gpus.csv") {
            for line in text.lines().skip(1) {
                let row = fields(line);
                let revision = u8::from_str_radix(&row[1], 16).ok();
                let gpu = tables
                    .gpu(0x1002, hex16(&row[0]), None, revision)
                    .unwrap_or_else(|| panic!("1002:{} is missing", row[0]));
                // The reference leaves out names that depend on the revision; the table may know them.
                if !row[2].is_empty() {
                    assert_eq!(gpu.name, row[2], "{}", row[0]);
                }
                assert_eq!(gpu.chip, row[3], "{}", row[0]);
                assert_eq!(gpu.target.as_deref(), Some(row[4].as_str()), "{}", row[0]);
                assert_eq!(gpu.integrated, Some(row[5] == "1"), "{}", row[0]);
                assert!(gpu.architecture.is_some(), "{}", row[0]);
            }
        }
    }

    #[test]
    fn every_target_of_the_gpu_table_has_an_architecture() {
        let tables = Tables::embedded();
        for line in embedded(GPUS)
            .lines()
            .filter(|line| !line.starts_with('#'))
            .skip(1)
        {
            let gpu = gpu_figures(line).expect("a row");
            if let Some(target) = &gpu.target {
                let architecture = tables.architecture(target);
                assert!(architecture.is_some(), "{line}");
                assert!(
                    gpu.architecture.is_none() || gpu.architecture == architecture,
                    "{line}"
                );
                assert_ne!(gpu.target_confidence, Confidence::Unknown, "{line}");
            }
        }
    }

    #[test]
    fn memory_and_ignorance_never_accuse() {
        for (confidence, may) in [
            (Confidence::Unknown, false),
            (Confidence::Memory, false),
            (Confidence::Derived, true),
            (Confidence::Quoted, true),
            (Confidence::Measured, true),
        ] {
            assert_eq!(confidence.may_accuse(), may, "{confidence:?}");
            let figures = GpuFigures {
                target: Some("gfx803".to_owned()),
                target_confidence: confidence,
                ..GpuFigures::default()
            };
            assert_eq!(figures.target_to_accuse_by().is_some(), may);
        }
        let barco = Tables::embedded()
            .gpu(0x1002, 0x698f, None, None)
            .expect("a row from memory");
        assert_eq!(barco.target.as_deref(), Some("gfx803"));
        assert_eq!(barco.target_to_accuse_by(), None);
    }

    #[test]
    fn checks_come_as_asked_and_unknown_names_have_no_row() {
        let tables = Tables::embedded();
        let rows = tables.checks(&["nomodeset-set", "no-such-check", "gpu-fell-off-bus"]);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["nomodeset-set", "gpu-fell-off-bus"]);
        let lost = &rows[1];
        assert_eq!(lost.link, Link::Bus);
        assert_eq!(lost.severity, Severity::Error);
        assert_eq!(
            lost.causes,
            ["link-lost", "lost-at-probe", "egpu-unplugged"]
        );
        assert!(lost.blocks.contains(&"driver".to_owned()));
        assert!(lost.in_wsl.is_some());
        assert!(tables.checks(&[]).is_empty());
    }

    #[test]
    fn the_index_is_the_one_of_the_catalogue() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/catalogue/index.toml");
        let Ok(theirs) = std::fs::read_to_string(path) else {
            assert!(std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none());
            skipped("the catalogue");
            return;
        };
        let parsed = |text: &str| {
            let mut table: toml::Table = toml::from_str(text).expect("TOML");
            let mut rows = table.remove("check").expect("checks");
            for row in rows.as_array_mut().expect("rows") {
                row.as_table_mut().expect("a row").remove("where");
            }
            rows
        };
        // The project says more plainly whose seat it is; nothing else differs.
        let [ours, seat] = [
            "when the user who is logged in may",
            concat!("when this ", "session may"),
        ]
        .map(|start| format!("{start} and a service may not"));
        let theirs = theirs.replace(&seat, &ours);
        assert_eq!(parsed(embedded(CHECKS)), parsed(&theirs));
    }

    #[test]
    fn the_index_names_only_what_exists() {
        let rows: Vec<CheckRow> =
            all_rows(CHECKS, embedded(CHECKS), "check", "name").expect("rows");
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let links = [
            "bus",
            "driver",
            "access",
            "library",
            "runtime",
            "toolkit",
            "framework",
            "container",
            "health",
            "capability",
        ];
        for row in &rows {
            for blocked in &row.blocks {
                assert!(
                    names.contains(blocked.as_str()) || links.contains(&blocked.as_str()),
                    "{} blocks {blocked}",
                    row.name
                );
            }
            for cause in row.alias_causes.values() {
                assert!(row.causes.contains(cause), "{}: {cause}", row.name);
            }
            assert!(["gpu", "stack", "environment", "machine"].contains(&row.each.as_str()));
            assert!(["cuda", "rocm", "level-zero", "any", "none"].contains(&row.stack.as_str()));
            assert!(["nvidia", "amd", "intel", "any"].contains(&row.applies.as_str()));
            assert!(row.max.is_none_or(|max| max > row.severity), "{}", row.name);
        }
    }

    /// Where sources disagree or a figure is easily taken for another one.
    #[test]
    fn figures_that_are_easily_wrong() {
        let tables = Tables::embedded();
        let figure = |vendor, device, key: &str| {
            let row = tables.figures(vendor, device, None, None).expect("a row");
            row.text(key).map(|known| known.value)
        };
        for (what, vendor, device, key, expected) in [
            ("MI300X, bandwidth", 0x1002, 0x74a1, "bandwidth_gbs", "5300"),
            ("MI325X, memory", 0x1002, 0x74a5, "memory_gb", "256"),
            ("MI300A, memory", 0x1002, 0x74a0, "memory_gb", "128"),
            ("L40S, power", 0x10de, 0x26b9, "power_w", "350"),
            ("A10G, power", 0x10de, 0x2237, "power_w", "300"),
            ("H20, power", 0x10de, 0x2329, "power_w", "500"),
            (
                "B200, memory as its driver says",
                0x10de,
                0x2901,
                "memory_gb",
                "180",
            ),
            ("RTX 4090, supply", 0x10de, 0x2684, "supply_w", "850"),
            ("RTX 5090, supply", 0x10de, 0x2b85, "supply_w", "1000"),
            (
                "RTX 5090, by others",
                0x10de,
                0x2b85,
                "typical_supply_w",
                "950",
            ),
            ("B200, bandwidth", 0x10de, 0x2901, "bandwidth_gbs", "7700"),
            ("B300, memory", 0x10de, 0x3182, "memory_gb", "270"),
            ("GB300, memory", 0x10de, 0x31c2, "memory_gb", "278"),
            ("V100 SXM2, power", 0x10de, 0x1db1, "power_w", "300"),
            ("V100 PCIe, power", 0x10de, 0x1db4, "power_w", "250"),
            (
                "RTX PRO 6000 Server, bandwidth",
                0x10de,
                0x2bb5,
                "bandwidth_gbs",
                "1597|1792",
            ),
            ("a die of MI250X, memory", 0x1002, 0x7408, "memory_gb", "64"),
            ("a die of MI250, memory", 0x1002, 0x740c, "memory_gb", "64"),
            (
                "a die of MI250, bandwidth",
                0x1002,
                0x740c,
                "bandwidth_gbs",
                "1638",
            ),
        ] {
            assert_eq!(
                figure(vendor, device, key).as_deref(),
                Some(expected),
                "{what}"
            );
        }
        // Laptops: the maker sets the power.
        assert_eq!(figure(0x10de, 0x2757, "power_w"), None);
        let capability = |cc: &str| tables.row(&kinds::CAPABILITY, cc).expect("a row");
        let formats = |cc: &str| capability(cc).list("tensor").expect("formats").value;
        for (cc, is_fast) in [
            ("8.0", true),
            ("9.0", true),
            ("8.6", false),
            ("8.9", false),
            ("12.0", false),
        ] {
            assert_eq!(
                formats(cc).contains(&"fp64".to_owned()),
                is_fast,
                "fp64 of {cc}"
            );
        }
        let without = capability("7.5")
            .list("without_tensor")
            .expect("chips")
            .value;
        assert_eq!(without, ["TU116", "TU117"]);
    }

    #[test]
    fn versions_of_rows_that_are_easily_wrong() {
        let tables = Tables::embedded();
        let toolkit = |version: &str| tables.row(&kinds::TOOLKIT, version).expect("a row");
        let driver = |version: &str, key: &str| {
            let known = toolkit(version).version(key).expect("a driver");
            known.value.text().to_owned()
        };
        // The table of NVIDIA and the name of the installer differ.
        assert_eq!(driver("12.8", "driver"), "570.26");
        assert_eq!(driver("9.1", "driver"), "390.46");
        let update = |version: &str| {
            let drivers = toolkit(version).list("update_drivers").expect("drivers");
            drivers.value[1].clone()
        };
        assert_eq!(update("11.7"), "515.48.07");
        assert_eq!(update("12.2"), "535.86.09");
        // The test in the header, not its message.
        assert_eq!(driver("12.2", "clang"), "16");
        assert_eq!(driver("12.3", "clang"), "16");
        // Its own minimum lies below the floor of its major version: either will do.
        let (own, floor) = (
            toolkit("11.0").version("driver"),
            toolkit("11.0").version("floor"),
        );
        assert!(own.expect("a driver").value < floor.expect("a floor").value);
        let branch = |branch: &str, key: &str| {
            let row = tables.row(&kinds::BRANCH, branch).expect("a row");
            row.text(key).map(|known| known.value)
        };
        assert_eq!(branch("580", "end_of_life").as_deref(), Some("2028-06"));
        assert_eq!(branch("610", "end_of_life").as_deref(), Some("2026-08"));
        assert_eq!(branch("410", "first").as_deref(), Some("410.48"));
        assert_eq!(branch("418", "last").as_deref(), Some("418.226.00"));
        assert_eq!(branch("560", "last").as_deref(), Some("560.35.05"));
        let reset = tables.row(&kinds::XID, "109").expect("a row");
        let action = reset.text("action").expect("an action").value;
        assert!(action.starts_with("reset the GPU"), "{action}");
        // 7.2, 7.9, 7.14, 10.0: neither text nor decimal numbers.
        let releases = tables.rows(&kinds::RELEASE);
        let place = |version: &str| {
            let is_it = |row: &Row| row.key(&kinds::RELEASE) == version;
            releases.iter().position(is_it).expect("a release")
        };
        let places = ["7.2.0", "7.9.0", "7.14.0", "10.0.0"].map(place);
        assert!(places.is_sorted(), "{places:?}");
        let jax = releases[place("6.3.0")].list("jax").expect("versions");
        assert_eq!(jax.value, ["0.4.31"]);
        let onnx = releases[place("10.0.0")].list("onnxruntime");
        assert_eq!(onnx.expect("versions").value, ["1.29.0"]);
        // Supported and built for are two statements.
        let row = &releases[place("7.14.0")];
        let targets = row.list("targets").expect("targets").value;
        let built = row.list("built").expect("targets").value;
        for target in ["gfx900", "gfx906"].map(str::to_owned) {
            assert!(!targets.contains(&target), "{target}");
            assert!(built.contains(&target), "{target}");
        }
        // Early MI300 stand in lists of libraries; no GPU has these targets.
        for target in ["gfx940", "gfx941"] {
            assert!(tables.row(&kinds::TARGET, target).is_none(), "{target}");
        }
    }

    /// The rows of toolkits and those of compute capabilities tell the same from two sides.
    #[test]
    fn toolkits_and_compute_capabilities_agree() {
        let tables = Tables::embedded();
        let toolkits = tables.rows(&kinds::TOOLKIT);
        let oldest = Version::parse(toolkits[0].key(&kinds::TOOLKIT));
        let targets = |row: &Row| row.list("targets").expect("targets").value;
        for row in tables.rows(&kinds::CAPABILITY) {
            let cc = row.key(&kinds::CAPABILITY).to_owned();
            let target = cc.replace('.', "");
            let with: Vec<usize> = (0..toolkits.len())
                .filter(|at| targets(&toolkits[*at]).contains(&target))
                .collect();
            let last = row.version("last_cuda").map(|last| last.value);
            let (Some(from), Some(to)) = (with.first(), with.last()) else {
                assert!(last < oldest, "{cc}");
                continue;
            };
            assert_eq!(with.len(), to - from + 1, "{cc}: a gap");
            let release = |at: usize| Version::parse(toolkits[at].key(&kinds::TOOLKIT));
            let first = row.version("first_cuda").map(|first| first.value);
            if *from == 0 {
                assert!(first <= oldest, "{cc}");
            } else {
                assert_eq!(first, release(*from), "{cc}");
            }
            let ended = (to + 1 < toolkits.len()).then(|| release(*to)).flatten();
            assert_eq!(last, ended, "{cc}");
        }
        for row in &toolkits {
            let targets = targets(row);
            let deprecated = row.list("deprecated").map(|known| known.value);
            for cc in deprecated.into_iter().flatten() {
                assert!(targets.contains(&cc.replace('.', "")), "{cc} is no target");
            }
        }
    }

    #[test]
    fn overrides_replace_the_file_of_their_name() {
        let tables = Tables::with_overrides(vec![
            (
                GPUS.to_owned(),
                format!("{GPU_COLUMNS}\n10de,2684,*,Mine é,X1,A1,sm_89,0,1,me,memory,memory\n"),
            ),
            (
                TARGETS.to_owned(),
                format!("{ME}[[target]]\ngfx = \"gfx1100\"\narchitecture = \"Mine\"\nchips = \"X\"\nsource = \"me\"\nconfidence = \"quoted\"\n"),
            ),
        ])
        .expect("both are in order");
        let gpu = tables.gpu(0x10de, 0x2684, None, None).expect("a row");
        assert_eq!((gpu.name.as_str(), gpu.data_centre), ("Mine é", true));
        assert_eq!(gpu.target_to_accuse_by(), None);
        assert_eq!(tables.gpu(0x10de, 0x2685, None, None), None);
        assert_eq!(tables.architecture("gfx1100").as_deref(), Some("Mine"));
        assert_eq!(tables.architecture("gfx1101"), None);
        assert_eq!(
            tables.architecture("sm_89").as_deref(),
            Some("Ada Lovelace")
        );
        assert_eq!(tables.overridden().collect::<Vec<_>>(), [TARGETS, GPUS]);
    }

    #[test]
    fn a_broken_override_is_refused_with_its_place() {
        let xid = |rows: &[&str]| {
            let columns = "code,mnemonic,kind,severity,meaning,action,source,confidence,mnemonic_confidence,action_confidence";
            format!(
                "# source me 2026-01-01 I know\n{columns}\n{}\n",
                rows.join("\n")
            )
        };
        let row_of = |gfx: &str, more: &str| {
            format!(
                "[[target]]\ngfx = \"{gfx}\"\narchitecture = \"A\"\nchips = \"C\"\nsource = \"me\"\nconfidence = \"quoted\"\n{more}"
            )
        };
        let target = |gfx: &str, more: &str| format!("{ME}{}", row_of(gfx, more));
        let row = |device: &str, rest: &str| format!("10de,{device},*,N,C,A,sm_89,{rest}\n");
        let good = "0,0,me,quoted,quoted";
        for (name, text, says) in [
            ("opencl.toml", String::new(), "opencl.toml: no table has this name"),
            (TARGETS, "[[target]]\ngfx = \n".to_owned(), "gfx.toml line 2, column"),
            (TARGETS, target("gfx1100", "colour = \"red\"\n"), "line 5, column 1: this row is not in order: `colour` is no value"),
            (TARGETS, target("gfx1100", "[[taget]]\n"), "gfx.toml line 11, column 1"),
            (TARGETS, target("gfx1100", &row_of("gfx90a", "")), "gfx.toml line 11, column 1"),
            (TARGETS, target("gfx1100", &row_of("gfx1100", "")), "gfx.toml line 11, column 1"),
            (TARGETS, target("navi31", ""), "is not named as it should be"),
            (TARGETS, target("gfx1100", "").replace("gfx = ", "gfx="), "can be looked up"),
            (TARGETS, target("gfx1100", "").replace('\n', "\r\n"), "can be looked up"),
            (TARGETS, target("gfx1100", "wavefront_source = \"me\"\n"), "`wavefront_source` is no value"),
            (TARGETS, target("gfx1100", "wavefront = \"32\"\nwavefront_source = \"you\"\n"), "`wavefront_source` names no source of this file: `you`"),
            (TARGETS, target("gfx1100", "wavefront = \"32\"\nwavefront_confidence = \"sure\"\n"), "is no confidence"),
            (TARGETS, target("gfx1100", "").replace("source = \"me\"\n", ""), "this row has no `source`"),
            (TARGETS, target("gfx1100", "integrated = \"yes\"\n"), "`integrated` is neither 0 nor 1"),
            (TARGETS, target("gfx1100", "matrix = [\"WMMA\"]\n"), "`matrix` is a list"),
            (TARGETS, target("gfx1100", "matrix = 3\n"), "gfx.toml line"),
            (TARGETS, target("gfx1100", "").replace("2026-01-01", "lately"), "line 1, column 1: this row must have"),
            (TARGETS, target("gfx1100", "").replace("2026-01-01", "2026-13-45"), "line 1, column 1: this row must have"),
            (kinds::XID.file, "79,NAME,hardware,critical,M,A,me,quoted,,\n".to_owned(), "xid.csv line 1, column 1: the heading"),
            (kinds::XID.file, xid(&["79,NAME,hardware,critical,M,A,me,,"]), "not 10 fields"),
            (kinds::XID.file, xid(&["x,NAME,hardware,critical,M,A,me,quoted,,"]), "`code` is no number"),
            (kinds::XID.file, xid(&["79,NAME,hardware,bad,M,A,me,quoted,,"]), "`severity` is none of"),
            (kinds::XID.file, xid(&["79,NAME,hardware,info,M,A,,quoted,,"]), "has no `source`"),
            (kinds::XID.file, xid(&["79,N,hardware,info,M,A,me,quoted,,", "8,N,hardware,info,M,A,me,quoted,,"]), "xid.csv line 4, column 1"),
            (CHECKS, "[[check]]\nname = \"x\"\n".to_owned(), "checks.toml line 1"),
            (FIXES, "[[fix]]\nrecipe = \"x\"\nfamily = \"any\"\nwords = \"x\"\nrisk = \"none\"\nconfirm = \"\"\n".to_owned(), "fixes.toml line 5"),
            (FIXES, "[[fix]]\nrecipe = \"x\"\nfamily = \"gentoo\"\nwords = \"x\"\nrisk = \"safe\"\nconfirm = \"\"\n".to_owned(), "fixes.toml line 1, column 1: this row is for a family"),
            (GPUS, String::new(), "is missing"),
            (GPUS, row("2684", good), "gpus.csv line 1, column 1"),
            (GPUS, format!("{GPU_COLUMNS}\n{}", row("26G4", good)), "gpus.csv line 2, column 6"),
            (GPUS, format!("{GPU_COLUMNS}\n{}", row("2684", "x,0,me,quoted,quoted")), "gpus.csv line 2, column 25"),
            (GPUS, format!("{GPU_COLUMNS}\n{}", row("2684", "0,0,me,quoted")), "not 12 fields"),
            (GPUS, format!("{GPU_COLUMNS}\n{}", row("2684", "0,0,me,quoted,sure")), "no such confidence"),
            (GPUS, format!("{GPU_COLUMNS}\n{}{}", row("2685", good), row("2684", good)), "gpus.csv line 3, column 1"),
            (GPUS, format!("{GPU_COLUMNS}\n{}{}", row("2684", good), row("2684", good)), "gpus.csv line 3, column 1"),
        ] {
            let error = refused(name, &text);
            assert!(error.starts_with(name) && error.contains(says), "{says:?}: {error}");
        }
        for (name, text) in FILES {
            // A file that ends in the middle of a row.
            let last = if name.ends_with(".csv") { "," } else { " = " };
            refused(name, text.rsplit_once(last).expect("a row").0);
        }
    }
}
