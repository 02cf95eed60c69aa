//! Rows that are read value by value, each value with how it is known: every table but the three that are read at each
//! run (`gpus.csv`, `checks.toml`, `fixes.toml`).
//!
//! In TOML a row is a `[[kind]]` block of texts and lists of texts, in CSV a line below the heading. `source` and
//! `confidence` speak for the whole row; `KEY_source` and `KEY_confidence` for one value of it.

use super::{Confidence, at_offset, at_row, blocks};
use crate::version::Version;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A value of a table, with how it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<T> {
    /// The value.
    pub value: T,
    /// How it is known.
    pub confidence: Confidence,
    /// Where it was read: names of `[[source]]` rows of the same file, or of the heading of a CSV file.
    pub source: String,
}

impl<T> Known<T> {
    /// Known well enough to rest a finding on.
    pub fn may_accuse(&self) -> bool {
        self.confidence.may_accuse()
    }

    fn and_then<U>(self, read: impl FnOnce(T) -> Option<U>) -> Option<Known<U>> {
        Some(Known {
            value: read(self.value)?,
            confidence: self.confidence,
            source: self.source,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    Text(String),
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cell, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Cell;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }
            fn visit_str<E>(self, text: &str) -> Result<Cell, E> {
                Ok(Cell::Text(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Cell, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Cell::List(list))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A row. A value that is not known is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    cells: BTreeMap<String, Cell>,
}

impl Row {
    fn plain(&self, key: &str) -> Option<&str> {
        match self.cells.get(key)? {
            Cell::Text(text) => Some(text),
            Cell::List(_) => None,
        }
    }

    fn known<'a, T>(
        &'a self,
        key: &str,
        read: impl FnOnce(&'a Cell) -> Option<T>,
    ) -> Option<Known<T>> {
        let value = read(self.cells.get(key)?)?;
        let said = |what: &str| {
            self.plain(&format!("{key}_{what}"))
                .or_else(|| self.plain(what))
        };
        Some(Known {
            value,
            confidence: said("confidence")
                .and_then(Confidence::from_name)
                .unwrap_or_default(),
            source: said("source").unwrap_or_default().to_owned(),
        })
    }

    /// A text, or the items of a list with commas between them.
    pub fn text(&self, key: &str) -> Option<Known<String>> {
        self.known(key, |cell| {
            Some(match cell {
                Cell::Text(text) => text.clone(),
                Cell::List(items) => items.join(", "),
            })
        })
    }

    /// The items of a list.
    pub fn list(&self, key: &str) -> Option<Known<Vec<String>>> {
        self.known(key, |cell| match cell {
            Cell::Text(_) => None,
            Cell::List(items) => Some(items.clone()),
        })
    }

    /// A version.
    pub fn version(&self, key: &str) -> Option<Known<Version>> {
        self.text(key)?.and_then(|text| Version::parse(&text))
    }

    /// What the row is found by.
    pub fn key(&self, kind: &Kind) -> &str {
        self.plain(kind.key).unwrap_or_default()
    }

    /// Values that are known, with their label and their key, in the order of the kind.
    pub fn values(&self, kind: &Kind) -> impl Iterator<Item = (&'static Field, Known<String>)> {
        let fields = kind.fields.iter();
        fields.filter_map(|field| Some((field, self.text(field.key)?)))
    }
}

/// What a value must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Any text.
    Text,
    /// A list.
    List,
    /// A version.
    Version,
    /// A number; alternatives are separated by `|`.
    Number,
    /// YYYY, YYYY-MM or YYYY-MM-DD.
    Date,
    /// 0 or 1.
    Flag,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// A value that rows of a kind may have.
#[derive(Debug)]
pub struct Field {
    /// Its key.
    pub key: &'static str,
    /// What it is, for people.
    pub label: &'static str,
    /// What it must look like.
    pub shape: Shape,
}

/// A kind of row.
#[derive(Debug)]
pub struct Kind {
    /// The file.
    pub file: &'static str,
    /// What stands in the double brackets; in CSV a name for messages.
    pub name: &'static str,
    /// What a row is found by.
    pub key: &'static str,
    /// What rows are sorted by, as versions. None: as the file has them.
    pub order: Option<&'static str>,
    /// What a row may say beside `source` and `confidence`. The key is one of them.
    pub fields: &'static [Field],
}

/// A field, written short.
pub const fn field(key: &'static str, label: &'static str, shape: Shape) -> Field {
    Field { key, label, shape }
}

impl Shape {
    fn fits(self, cell: &Cell) -> Result<(), String> {
        let text = match (self, cell) {
            (Shape::List, Cell::List(_)) => return Ok(()),
            (Shape::List, Cell::Text(_)) => return Err("is no list".to_owned()),
            (_, Cell::List(_)) => return Err("is a list".to_owned()),
            (_, Cell::Text(text)) => text,
        };
        let is_date = || {
            let mut parts = text.split('-').map(|part| match part.len() {
                2 | 4 if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse().ok(),
                _ => None,
            });
            let in_range = |part: Option<Option<u32>>, most| match part {
                Some(number) => number.is_some_and(|number| (1..=most).contains(&number)),
                None => true,
            };
            let year = parts.next().flatten().is_some_and(|year| year >= 1990);
            year && in_range(parts.next(), 12)
                && in_range(parts.next(), 31)
                && parts.next().is_none()
        };
        let good = match self {
            Shape::Text => !text.is_empty(),
            Shape::List => false,
            Shape::Version => Version::parse(text).is_some(),
            Shape::Number => text
                .split('|')
                .all(|one| one == "shared" || one.parse::<f64>().is_ok_and(|number| number >= 0.0)),
            Shape::Date => is_date(),
            Shape::Flag => ["0", "1"].contains(&text.as_str()),
            Shape::OneOf(words) => words.contains(&text.as_str()),
        };
        let wanted = match self {
            Shape::Text => "is empty".to_owned(),
            Shape::List => "is no list".to_owned(),
            Shape::Version => "is no version".to_owned(),
            Shape::Number => "is no number".to_owned(),
            Shape::Date => "is no date".to_owned(),
            Shape::Flag => "is neither 0 nor 1".to_owned(),
            Shape::OneOf(words) => format!("is none of {}", words.join(", ")),
        };
        good.then_some(()).ok_or(wanted)
    }
}

impl Kind {
    /// What is wrong with a row of this kind. `sources` are the names that a source may have.
    fn fault(&self, row: &Row, sources: &[&str]) -> Option<String> {
        for needed in [self.key, "source", "confidence"] {
            if row.plain(needed).is_none_or(str::is_empty) {
                return Some(format!("has no `{needed}`"));
            }
        }
        let field = |key: &str| self.fields.iter().find(|field| field.key == key);
        for (key, cell) in &row.cells {
            let base = ["source", "confidence"].into_iter().find_map(|what| {
                let of = key.strip_suffix(what)?;
                let of = of.strip_suffix('_').unwrap_or(of);
                (of.is_empty() || (field(of).is_some() && row.cells.contains_key(of)))
                    .then_some(what)
            });
            let text = row.plain(key).unwrap_or_default();
            let what = match (base, field(key)) {
                (Some("confidence"), _) => Confidence::from_name(text)
                    .is_none()
                    .then(|| "is no confidence".to_owned()),
                (Some(_), _) => text
                    .split(' ')
                    .find(|name| !sources.contains(name))
                    .map(|name| format!("names no source of this file: `{name}`")),
                (None, Some(field)) => field.shape.fits(cell).err(),
                (None, None) => Some("is no value of such a row".to_owned()),
            };
            if let Some(what) = what {
                return Some(format!("is not in order: `{key}` {what}"));
            }
        }
        None
    }

    fn sort_key(&self, row: &Row) -> Option<Version> {
        let order = self.order?;
        let text = row.plain(order)?;
        if order == "gfx" {
            gfx_numbers(text.strip_prefix(order)?)
        } else {
            Version::parse(text)
        }
    }
}

/// `90a` as 9.0.10: the last two digits of a gfx target are hexadecimal.
fn gfx_numbers(digits: &str) -> Option<Version> {
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let mut rest = rest.chars().map(|digit| digit.to_digit(16));
    let (minor, stepping) = (rest.next()??, rest.next()??);
    Version::parse(&format!(
        "{}.{minor}.{stepping}",
        major.parse::<u32>().ok()?
    ))
}

/// Where a table says that it was read.
const SOURCE: &str = "source";

/// A `[[source]]` row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The short name that rows use.
    pub id: String,
    /// What was read.
    pub what: String,
    /// Its date.
    pub date: String,
}

/// The sources of a file: `[[source]]` rows, or in CSV lines of the form `# source ID DATE WHAT`.
pub fn sources(text: &str) -> Vec<Source> {
    let remark = |line: &str| {
        let mut words = line.strip_prefix("# source ")?.splitn(3, ' ');
        Some(Source {
            id: words.next()?.to_owned(),
            date: words.next()?.to_owned(),
            what: words.next()?.to_owned(),
        })
    };
    if text.starts_with('#') && heading(text).is_some_and(|heading| heading.contains(',')) {
        return text.lines().filter_map(remark).collect();
    }
    blocks(text, SOURCE)
        .filter_map(|block| toml::from_str(block).ok())
        .collect()
}

/// All rows of a kind in a TOML text that was validated.
pub fn rows(text: &str, kind: &Kind) -> Vec<Row> {
    blocks(text, kind.name)
        .filter_map(|block| toml::from_str(block).ok())
        .map(|cells| Row { cells })
        .collect()
}

/// One row of a kind, by its key.
pub fn row(text: &str, kind: &Kind, wanted: &str) -> Option<Row> {
    let block =
        blocks(text, kind.name).find(|block| super::value(block, kind.key) == Some(wanted))?;
    let cells = toml::from_str(block).ok()?;
    Some(Row { cells })
}

/// Whether a TOML text may stand for the file of these kinds.
///
/// # Errors
/// What is wrong with it, with file, line and column.
pub fn validate(file: &str, text: &str, kinds: &[&Kind]) -> Result<(), String> {
    type Raw = BTreeMap<String, Cell>;
    let tables: BTreeMap<String, Vec<Raw>> = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        at_offset(file, text, offset, error.message())
    })?;
    for name in tables.keys() {
        if name != SOURCE && !kinds.iter().any(|kind| kind.name == name) {
            let offset = text.find(&format!("[[{name}]]")).unwrap_or(0);
            let what = format!("`{name}` is not a kind of row of this table");
            return Err(at_offset(file, text, offset, &what));
        }
    }
    let of_kind = |name: &str| tables.get(name).map_or(&[][..], Vec::as_slice);
    for (index, cells) in of_kind(SOURCE).iter().enumerate() {
        let keys: Vec<&str> = cells.keys().map(String::as_str).collect();
        let dated = cells.get("date").map(|date| Shape::Date.fits(date));
        if keys != ["date", "id", "what"] || dated != Some(Ok(())) {
            let what = "must have `id`, `what` and a `date` (YYYY-MM-DD)";
            return Err(at_row(file, text, SOURCE, index, what));
        }
    }
    let sources = sources(text);
    let ids: Vec<&str> = sources.iter().map(|source| source.id.as_str()).collect();
    super::all_found(file, text, SOURCE, "id", of_kind(SOURCE).len())?;
    for kind in kinds {
        let cells = of_kind(kind.name).iter().cloned();
        let rows: Vec<Row> = cells.map(|cells| Row { cells }).collect();
        for (index, row) in rows.iter().enumerate() {
            if let Some(what) = kind.fault(row, &ids) {
                return Err(at_row(file, text, kind.name, index, &what));
            }
        }
        super::all_found(file, text, kind.name, kind.key, rows.len())?;
        if kind.order.is_some() {
            let keys: Vec<_> = rows.iter().map(|row| kind.sort_key(row)).collect();
            super::in_order(file, text, kind.name, &keys)?;
        }
    }
    Ok(())
}

/// The columns of a CSV text: its first line that is no comment.
fn heading(text: &str) -> Option<&str> {
    text.lines().find(|line| !line.starts_with('#'))
}

/// A line below the heading of a CSV text. Empty fields are not there.
fn csv_row(heading: &str, line: &str) -> Row {
    let cells = heading.split(',').zip(line.split(','));
    Row {
        cells: cells
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| (key.to_owned(), Cell::Text(value.to_owned())))
            .collect(),
    }
}

/// The row of a CSV text for a line that was found in it.
pub fn row_of_line(text: &str, line: &str) -> Option<Row> {
    Some(csv_row(heading(text)?, line))
}

/// All rows of a CSV text.
pub fn csv_rows(text: &str) -> impl Iterator<Item = Row> {
    let columns = heading(text).unwrap_or_default();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(move |line| csv_row(columns, line))
}

/// Whether a CSV text may stand for the file of a kind: its heading is that of the embedded file, and `key_fields` columns at
/// the start of its lines are what they are sorted by: as texts, or one column as a version. `fault` finds what is wrong with
/// a line of that many fields: the column, from 0, and what.
///
/// # Errors
/// What is wrong with it, with file, line and column.
pub fn validate_csv(
    kind: &Kind,
    text: &str,
    columns: &str,
    key_fields: usize,
    fault: &dyn Fn(&str) -> Option<(usize, String)>,
) -> Result<(), String> {
    let file = kind.file;
    let refused = |index: usize, column: usize, what: &str| {
        Err(format!(
            "{file} line {}, column {}: {what}",
            index + 1,
            column + 1
        ))
    };
    let mut previous: Option<&str> = None;
    let mut headed = false;
    for (index, line) in text.lines().enumerate() {
        if !headed {
            match line {
                comment if comment.starts_with('#') => {}
                heading if heading == columns => headed = true,
                _ => {
                    return refused(
                        index,
                        0,
                        &format!("the heading `{columns}` must come first"),
                    );
                }
            }
            continue;
        }
        let fields = line.split(',').count();
        let wanted = columns.split(',').count();
        if fields != wanted {
            return refused(index, 0, &format!("not {wanted} fields"));
        }
        if let Some((column, what)) = fault(line) {
            return refused(index, column, &what);
        }
        let key = line
            .match_indices(',')
            .nth(key_fields - 1)
            .map_or(line, |(comma, _)| &line[..=comma]);
        let sorted = previous.is_none_or(|previous| match kind.order {
            Some(_) => Version::parse(previous) < Version::parse(key),
            None => previous < key,
        });
        if !sorted {
            return refused(index, 0, "the row is not in order, or stands there twice");
        }
        previous = Some(key);
    }
    if headed {
        Ok(())
    } else {
        Err(format!("{file}: the heading `{columns}` is missing"))
    }
}

/// The same where the kind says what a line may hold.
///
/// # Errors
/// What is wrong with it, with file, line and column.
pub fn validate_csv_of(
    kind: &Kind,
    text: &str,
    columns: &str,
    key_fields: usize,
) -> Result<(), String> {
    let sources = sources(text);
    let ids: Vec<&str> = sources.iter().map(|source| source.id.as_str()).collect();
    validate_csv(kind, text, columns, key_fields, &|line| {
        let what = kind.fault(&csv_row(columns, line), &ids)?;
        Some((0, format!("this row {what}")))
    })
}
