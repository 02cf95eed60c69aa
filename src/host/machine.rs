//! The machine format: one text format for captures, test machines and cases. This file knows its grammar and nothing of
//! what the entries mean together; `archive.rs` says how entries meet and answers questions from them.
//!
//! One entry begins with its word, fields are separated by one space, and content follows in lines that begin with `| `.
//! In a field `\xNN` stands for a byte of its UTF-8, `\\` for a backslash. In content `\x00` to `\x7f` stand for that
//! character and `\x80` to `\xff` for a byte of a binary attribute, which is held as the character of the same number (see
//! `bytes_as_text`), `\u{202e}` for a character that cannot be seen; everything else stands for itself. JSON stands as it is, with its own escapes.
//!
//! Beyond the common format two things are written here: `node` may end in SIZE and MTIME where both were recorded, and an
//! `answer` may be `{"absent": true}` or `{"unasked": "quick"}`, so that every kind of `Seen` can be replayed.

use super::{Stat, System};
use crate::facts::{
    Failure, Seen, Why, environment::ProcessUser, from_json, is_invisible, to_json,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The format's number.
const FORMAT: &str = "1";
/// Longest machine that is parsed, in bytes.
pub const MACHINE_LIMIT: usize = 64 * 1024 * 1024;
/// Longest line, in bytes.
pub const LINE_LIMIT: usize = 1024 * 1024;
/// Most entries of one machine.
pub const ENTRY_LIMIT: usize = 1_000_000;
/// Deepest path, in names. Deeper than any file system of a real machine.
pub const PATH_DEPTH_LIMIT: usize = 256;
/// Most names in all paths, targets and listings of one machine together.
pub const NAME_LIMIT: usize = 2_000_000;
/// Longest binary attribute that is written byte by byte.
const BINARY_LIMIT: usize = 4096;

/// What was asked of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Reading a file.
    Read,
    /// Listing a folder.
    List,
    /// Reading a link.
    Link,
    /// `stat`.
    Stat,
    /// A real open.
    Open,
    /// `access(2)`.
    Access,
}

/// How much of a file an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All of it.
    Whole,
    /// Only a beginning.
    Cut,
    /// Only the lines that a filter kept.
    Kept,
}

/// A text of a machine. Mostly it is a part of the whole text, which is read once and stays until the program ends: a large
/// machine has ten thousands of these, and copying them would be most of the work of a replay.
pub type Text = Cow<'static, str>;

/// One answer of the door. A machine has many, so what is large and rare is boxed.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// `clock TIME`.
    Clock(Text),
    /// `system OS ARCH RELEASE`.
    System(Box<System>),
    /// `user UID GID GROUPS ...`.
    User(Box<ProcessUser>),
    /// `env whole`.
    EnvWhole,
    /// `env NAME=VALUE`.
    Env(Text, Text),
    /// `unset NAME`.
    Unset(Text),
    /// `file PATH`, its bytes as text.
    File {
        /// Path.
        path: Text,
        /// The content.
        text: Text,
        /// How much of the file that is.
        form: Form,
    },
    /// `exists PATH`.
    Exists(Text),
    /// `link PATH -> TARGET`.
    Link(Text, Text),
    /// `dir PATH NAME ...`.
    Dir(Text, Vec<Text>),
    /// `whole PATH` or, with true, `whole PATH/**`.
    Whole(Text, bool),
    /// `kept PATH`.
    Kept(Text),
    /// `absent PATH`.
    Absent(Text),
    /// `error PATH OPERATION ERRNO`.
    Error(Text, Operation, Text),
    /// `hang PATH`.
    Hang(Text),
    /// `unasked PATH WHY [OPERATION]`.
    Unasked(Text, Why, Option<Operation>),
    /// `stat ...` and `node ...`.
    Stat(Text, Box<Stat>),
    /// `acl PATH ENTRY`, one entry of the list a line; None: `acl PATH none`.
    Acl(Text, Option<Text>),
    /// `open PATH rw RESULT`.
    Open(Text, Text),
    /// `access PATH rw RESULT`.
    Access(Text, Text),
    /// `modinfo PATH JSON`.
    ModInfo(Text, serde_json::Value),
    /// `elf PATH JSON`.
    Elf(Text, serde_json::Value),
    /// `run COMMAND ARG ... rc=N` with its output.
    Run {
        /// The command line.
        command: Vec<Text>,
        /// Exit status.
        rc: i32,
        /// Standard output.
        output: Text,
    },
    /// `log SOURCE`, with its lines. The source is `kmsg`, `journal`, `file NAME` or, without lines, `none ERRNO`.
    Log(Text, Vec<Text>),
    /// `answer @NAME JSON`.
    Answer(Text, serde_json::Value),
}

/// A machine as its entries tell it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// In order; a later one replaces an earlier one of the same path and kind.
    pub entries: Vec<Entry>,
    /// What stands after `made-by`: program, version, `live`, `root` or `hand`, `redacted` or `private`.
    pub made_by: Option<String>,
    /// What stands after `base`: the test machine that is taken first.
    pub base: Option<String>,
}

/// What is wrong with a machine, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ParseError {}

impl Operation {
    const ALL: [(Operation, &'static str); 6] = [
        (Operation::Read, "read"),
        (Operation::List, "list"),
        (Operation::Link, "link"),
        (Operation::Stat, "stat"),
        (Operation::Open, "open"),
        (Operation::Access, "access"),
    ];

    /// The name in the machine format.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(operation, _)| *operation == self)
            .map_or("read", |(_, name)| name)
    }

    /// The operation of that name in the machine format.
    pub fn from_name(name: &str) -> Option<Operation> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(operation, _)| *operation)
    }
}

impl Entries {
    /// Entries without a header of their own.
    pub fn new(entries: Vec<Entry>) -> Entries {
        Entries {
            entries,
            ..Entries::default()
        }
    }

    /// The test machine that these entries lie over, by name. Resolving it is the caller's matter (`overlay`).
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// A whole machine with its header.
    pub fn parse(text: &'static str) -> Result<Entries, ParseError> {
        let mut parser = Parser::new(text)?;
        let first = parser
            .next_line()?
            .ok_or_else(|| error(1, "the file is empty"))?;
        match first.text.strip_prefix("gpucheck-machine ") {
            Some(FORMAT) => {}
            Some(other) => {
                return Err(error(
                    first.number,
                    format!(
                        "format {} is not known to this version, which reads format {FORMAT}",
                        shown(other)
                    ),
                ));
            }
            None => {
                return Err(error(
                    first.number,
                    format!("the first line must be `gpucheck-machine {FORMAT}`"),
                ));
            }
        }
        let mut entries = Entries::default();
        parser.entries(&mut entries, true)?;
        // `absent /sys/class/kfd` that was cut short says more than was seen.
        match text.ends_with('\n') {
            true => Ok(entries),
            false => Err(error(
                parser.line,
                "the last line has no end, so the file may have been cut short; where it is whole, add a line end",
            )),
        }
    }

    /// Like `parse`, for bytes of which nobody knows yet that they are text.
    pub fn parse_bytes(bytes: &'static [u8]) -> Result<Entries, ParseError> {
        check_size(bytes.len())?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Entries::parse(text),
            Err(bad) => {
                let before = &bytes[..bad.valid_up_to()];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                Err(error(line, "not UTF-8"))
            }
        }
    }

    /// Adds the entries of a text without a header, as `Entry::to_string` writes them. Lines are counted from 1.
    pub fn push_text(&mut self, text: &'static str) -> Result<(), ParseError> {
        Parser::new(text)?.entries(self, false)
    }
}

/// One entry with its content lines, as `Entry::to_string` writes it.
pub fn parse_entry(text: &'static str) -> Result<Entry, ParseError> {
    let mut entries = Entries::default();
    entries.push_text(text)?;
    let mut found = entries.entries.into_iter();
    match (found.next(), found.next()) {
        (Some(entry), None) => Ok(entry),
        (None, _) => Err(error(1, "no entry")),
        (Some(_), Some(_)) => Err(error(1, "more than one entry")),
    }
}

/// The path that an entry speaks of.
pub(super) fn path_of(entry: &Entry) -> Option<&Text> {
    match entry {
        Entry::File { path, .. }
        | Entry::Exists(path)
        | Entry::Link(path, _)
        | Entry::Dir(path, _)
        | Entry::Whole(path, _)
        | Entry::Kept(path)
        | Entry::Absent(path)
        | Entry::Error(path, ..)
        | Entry::Hang(path)
        | Entry::Unasked(path, ..)
        | Entry::Stat(path, _)
        | Entry::Acl(path, _)
        | Entry::Open(path, _)
        | Entry::Access(path, _)
        | Entry::ModInfo(path, _)
        | Entry::Elf(path, _) => Some(path),
        Entry::Clock(_)
        | Entry::System(_)
        | Entry::User(_)
        | Entry::EnvWhole
        | Entry::Env(..)
        | Entry::Unset(_)
        | Entry::Run { .. }
        | Entry::Log(..)
        | Entry::Answer(..) => None,
    }
}

fn error(line: usize, what: impl Into<String>) -> ParseError {
    ParseError {
        line,
        what: what.into(),
    }
}

/// Words of a broken file in a message: short, and nothing in it that a terminal would obey.
fn shown(words: &str) -> String {
    let short: String = words.chars().take(40).collect();
    let dots = if short.len() < words.len() { "..." } else { "" };
    format!("`{}{dots}`", short.escape_debug())
}

fn check_size(bytes: usize) -> Result<(), ParseError> {
    if bytes > MACHINE_LIMIT {
        return Err(error(
            1,
            format!("the machine is longer than {} MiB", MACHINE_LIMIT >> 20),
        ));
    }
    Ok(())
}

/// The highest bit of each of the eight bytes that are this one.
#[inline]
fn matches_of(bytes: [u8; 8], byte: u8) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x7f; 8]);
    let differ = u64::from_le_bytes(bytes) ^ u64::from_ne_bytes([byte; 8]);
    // No sum runs over into the next byte.
    !(((differ & LOW) + LOW) | differ | LOW)
}

/// Where a byte is met first. Eight at a time: most of the time that parsing takes is spent here, and in a program that is
/// compiled for size the set-up of the library's search costs more than a short field.
fn find_byte(bytes: &[u8], byte: u8) -> Option<usize> {
    let (eights, rest) = bytes.as_chunks::<8>();
    for (index, eight) in eights.iter().enumerate() {
        let matches = matches_of(*eight, byte);
        if matches != 0 {
            return Some(index * 8 + (matches.trailing_zeros() / 8) as usize);
        }
    }
    let before = bytes.len() - rest.len();
    for (at, other) in rest.iter().enumerate() {
        if *other == byte {
            return Some(before + at);
        }
    }
    None
}

/// Where a byte is met last.
pub(super) fn last_byte(bytes: &[u8], byte: u8) -> Option<usize> {
    let (rest, eights) = bytes.as_rchunks::<8>();
    for (index, eight) in eights.iter().enumerate().rev() {
        let matches = matches_of(*eight, byte);
        if matches != 0 {
            let behind = (matches.leading_zeros() / 8) as usize;
            return Some(rest.len() + index * 8 + 7 - behind);
        }
    }
    rest.iter().rposition(|other| *other == byte)
}

/// How often a byte is met.
fn count_byte(bytes: &[u8], byte: u8) -> usize {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut count = 0;
    for eight in eights {
        count += matches_of(*eight, byte).count_ones() as usize;
    }
    for other in rest {
        count += usize::from(*other == byte);
    }
    count
}

/// The text before the first such byte (an ASCII character), and what follows it.
pub(super) fn split_at_byte(text: &str, byte: u8) -> Option<(&str, &str)> {
    let at = find_byte(text.as_bytes(), byte)?;
    Some((&text[..at], &text[at + 1..]))
}

/// The length of the first line without its end, and whether it holds no backslash.
fn first_line(text: &[u8]) -> (usize, bool) {
    let (eights, rest) = text.as_chunks::<8>();
    let mut escapes = 0;
    for (index, eight) in eights.iter().enumerate() {
        let ends = matches_of(*eight, b'\n');
        // What stands before the first end: all of it where there is none.
        let before = !ends & ends.wrapping_sub(1);
        escapes |= matches_of(*eight, b'\\') & before;
        if ends != 0 {
            let length = index * 8 + (ends.trailing_zeros() / 8) as usize;
            return (length, escapes == 0);
        }
    }
    let last = rest.split(|byte| *byte == b'\n').next().unwrap_or(rest);
    let length = text.len() - rest.len() + last.len();
    (length, escapes == 0 && !last.contains(&b'\\'))
}

/// A line without its end.
#[derive(Clone, Copy)]
struct Line {
    /// From 1.
    number: usize,
    text: &'static str,
    /// Nothing in it is escaped.
    is_plain: bool,
}

/// Goes through a text line by line.
struct Parser {
    rest: &'static str,
    /// Number of the line that was read last.
    line: usize,
    /// Names met so far, of `NAME_LIMIT`.
    names: usize,
    /// The whole text cannot hold that many.
    is_short: bool,
}

impl Parser {
    fn new(text: &'static str) -> Result<Parser, ParseError> {
        check_size(text.len())?;
        Ok(Parser {
            rest: text,
            line: 0,
            names: 0,
            is_short: text.len() <= NAME_LIMIT,
        })
    }

    /// The next line without its end. A carriage return before the end belongs to the end: the writer escapes real ones.
    fn next_line(&mut self) -> Result<Option<Line>, ParseError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        let (length, is_plain) = first_line(self.rest.as_bytes());
        let (line, rest) = self.rest.split_at(length);
        self.rest = rest.get(1..).unwrap_or_default();
        if line.len() > LINE_LIMIT {
            return Err(error(
                self.line,
                format!("longer than {} MiB", LINE_LIMIT >> 20),
            ));
        }
        let text = match line.as_bytes() {
            [.., b'\r'] => &line[..line.len() - 1],
            _ => line,
        };
        Ok(Some(Line {
            number: self.line,
            text,
            is_plain,
        }))
    }

    fn entries(&mut self, into: &mut Entries, header: bool) -> Result<(), ParseError> {
        // An entry of a capture takes some fifty bytes. Growing by and by would copy all of them several times.
        into.entries
            .reserve((self.rest.len() / 48).min(ENTRY_LIMIT));
        while let Some(line) = self.next_line()? {
            if matches!(line.text.as_bytes(), [] | [b'#', ..]) {
                continue;
            }
            let number = line.number;
            let mut fields = Fields::new(line);
            match fields.word {
                "made-by" if header => {
                    once(&mut into.made_by, fields.rest()?, number, "made-by")?;
                }
                "base" if header => {
                    let name = fields.next("a name")?;
                    fields.end()?;
                    once(&mut into.base, name, number, "base")?;
                }
                _ => {
                    let entry = self.entry(fields)?;
                    if into.entries.len() >= ENTRY_LIMIT {
                        return Err(error(number, format!("more than {ENTRY_LIMIT} entries")));
                    }
                    self.count_names(number, &entry)?;
                    into.entries.push(entry);
                }
            }
        }
        Ok(())
    }

    /// A tree of names is made of a machine. This bounds it.
    fn count_names(&mut self, number: usize, entry: &Entry) -> Result<(), ParseError> {
        let count = |path: &str| count_byte(path.as_bytes(), b'/');
        let path = path_of(entry).map_or("", |path| path);
        if path.len() > PATH_DEPTH_LIMIT && count(path) > PATH_DEPTH_LIMIT {
            return Err(error(
                number,
                format!("a path of more than {PATH_DEPTH_LIMIT} names"),
            ));
        }
        // A name takes a byte at least.
        if self.is_short {
            return Ok(());
        }
        self.names += count(path);
        match entry {
            Entry::Dir(_, names) => self.names += names.len(),
            Entry::Link(_, target) => self.names += count(target),
            _ => {}
        }
        if self.names > NAME_LIMIT {
            return Err(error(
                number,
                format!("more than {NAME_LIMIT} names up to here"),
            ));
        }
        Ok(())
    }

    fn entry(&mut self, mut fields: Fields) -> Result<Entry, ParseError> {
        // The most frequent words come first: they are tried in turn.
        let entry = match fields.word {
            "absent" => Entry::Absent(fields.path()?),
            "file" => return self.file(fields),
            "unset" => Entry::Unset(fields.next("a name")?),
            "clock" => Entry::Clock(fields.next("a time")?),
            "system" => Entry::System(Box::new(System {
                os: fields.next("an operating system")?.into_owned(),
                machine: fields.next("an architecture")?.into_owned(),
                release: fields.next("a release")?.into_owned(),
            })),
            "user" => Entry::User(Box::new(user(&mut fields)?)),
            "env" => return environment(&mut fields),
            "exists" => Entry::Exists(fields.path()?),
            "link" => {
                let path = fields.path()?;
                if fields.raw("`->`")? != "->" {
                    return Err(fields.wrong("`->` must follow the path"));
                }
                Entry::Link(path, fields.next("a target")?)
            }
            "dir" => Entry::Dir(fields.path()?, fields.names()?),
            "whole" => whole(&mut fields)?,
            "kept" => Entry::Kept(fields.path()?),
            "error" => Entry::Error(
                fields.path()?,
                fields.operation()?,
                fields.next("an errno")?,
            ),
            "hang" => Entry::Hang(fields.path()?),
            "unasked" => Entry::Unasked(
                fields.path()?,
                fields.why()?,
                if fields.is_at_end() {
                    None
                } else {
                    Some(fields.operation()?)
                },
            ),
            "stat" => stat(&mut fields)?,
            "node" => node(&mut fields)?,
            "acl" => {
                let path = fields.path()?;
                let line = fields.next("an entry of the list")?;
                Entry::Acl(path, Some(line).filter(|line| line != "none"))
            }
            "open" => Entry::Open(fields.path()?, fields.result()?),
            "access" => Entry::Access(fields.path()?, fields.result()?),
            "modinfo" => return Ok(Entry::ModInfo(fields.path()?, fields.object()?)),
            "elf" => return Ok(Entry::Elf(fields.path()?, fields.object()?)),
            "run" => return self.run(fields),
            "log" => return self.log(fields),
            "answer" => {
                let library = fields.next("`@` and a library")?;
                let Some(library) = library.strip_prefix('@').filter(|name| !name.is_empty())
                else {
                    return Err(fields.wrong("`@` and a library must follow `answer`"));
                };
                return Ok(Entry::Answer(library.to_owned().into(), fields.object()?));
            }
            "|" => return Err(fields.wrong("content without a `file`, `run` or `log` before it")),
            "made-by" | "base" => {
                return Err(fields.wrong("a header may only stand in a whole machine"));
            }
            other => {
                return Err(fields.wrong(format!("{} is no entry of this format", shown(other))));
            }
        };
        fields.end()?;
        Ok(entry)
    }

    fn file(&mut self, mut fields: Fields) -> Result<Entry, ParseError> {
        let path = fields.path()?;
        let form = if fields.is_at_end() {
            Form::Whole
        } else {
            match fields.raw("`cut` or `kept`")? {
                "cut" => Form::Cut,
                "kept" => Form::Kept,
                _ => return Err(fields.wrong("only `cut` or `kept` may follow the path")),
            }
        };
        fields.end()?;
        let text = self.content()?;
        Ok(Entry::File { path, text, form })
    }

    fn run(&mut self, mut fields: Fields) -> Result<Entry, ParseError> {
        let mut command = Vec::new();
        while !fields.is_at_end() {
            command.push(fields.next("a word")?);
        }
        let rc = command
            .pop()
            .and_then(|last| last.strip_prefix("rc=")?.parse().ok())
            .ok_or_else(|| fields.wrong("the line must end in `rc=` and a number"))?;
        if command.is_empty() {
            return Err(fields.wrong("a command is missing"));
        }
        let output = self.content()?;
        Ok(Entry::Run {
            command,
            rc,
            output,
        })
    }

    fn log(&mut self, mut fields: Fields) -> Result<Entry, ParseError> {
        let mut source = fields.next("a source")?;
        match &*source {
            "kmsg" | "journal" => {}
            "file" | "none" => {
                let name = fields.next("a file name or an errno")?;
                source = format!("{source} {name}").into();
            }
            _ => {
                return Err(fields.wrong("a log is `kmsg`, `journal`, `file NAME` or `none ERRNO`"));
            }
        }
        fields.end()?;
        let mut lines = Vec::new();
        while let Some((raw, ends)) = self.content_line()? {
            if !ends {
                return Err(error(raw.number, "a log line ends in a lone backslash"));
            }
            if raw.is_plain {
                lines.push(raw.text.into());
                continue;
            }
            let mut line = String::with_capacity(raw.text.len());
            decode_content(raw, &mut line)?;
            lines.push(line.into());
        }
        if source.starts_with("none ") && !lines.is_empty() {
            return Err(error(self.line, "`log none` has no lines"));
        }
        Ok(Entry::Log(source, lines))
    }

    /// The content lines that follow, as one text.
    fn content(&mut self) -> Result<Text, ParseError> {
        let mut text = String::new();
        let mut ended = true;
        let before = self.rest;
        while let Some((raw, ends)) = self.content_line()? {
            if !ended {
                return Err(error(
                    raw.number - 1,
                    "a lone backslash may only end the last line",
                ));
            }
            // Most files are one line, which stands here as it is meant, its end included.
            if text.is_empty()
                && ends
                && raw.is_plain
                && self.rest.as_bytes().first() != Some(&b'|')
                && let Some(whole) = before.get(2..raw.text.len() + 3)
                && whole.ends_with('\n')
            {
                return Ok(whole.into());
            }
            text.reserve(raw.text.len() + 1);
            decode_content(raw, &mut text)?;
            if ends {
                text.push('\n');
            }
            ended = ends;
        }
        Ok(text.into())
    }

    /// The next line if it is one of content: as it is written, and whether a line end belongs to it.
    fn content_line(&mut self) -> Result<Option<(Line, bool)>, ParseError> {
        if self.rest.as_bytes().first() != Some(&b'|') {
            return Ok(None);
        }
        let Some(mut line) = self.next_line()? else {
            return Ok(None);
        };
        // An editor that strips spaces at line ends leaves a bare `|` of an empty line.
        line.text = match line.text.strip_prefix("| ") {
            Some(text) => text,
            None if line.text == "|" => "",
            None => return Err(error(line.number, "a content line must begin with `| `")),
        };
        let bytes = line.text.bytes().rev();
        let backslashes = bytes.take_while(|byte| *byte == b'\\').count();
        if backslashes % 2 == 1 {
            line.text = &line.text[..line.text.len() - 1];
            return Ok(Some((line, false)));
        }
        Ok(Some((line, true)))
    }
}

fn once(
    slot: &mut Option<String>,
    value: Text,
    number: usize,
    word: &str,
) -> Result<(), ParseError> {
    match slot.replace(value.into_owned()) {
        None => Ok(()),
        Some(_) => Err(error(number, format!("a second `{word}`"))),
    }
}

/// The fields of a line after its first word.
struct Fields {
    line: Line,
    word: &'static str,
    rest: Option<&'static str>,
}

impl Fields {
    fn new(line: Line) -> Fields {
        let (word, rest) = match split_at_byte(line.text, b' ') {
            Some((word, rest)) => (word, Some(rest)),
            None => (line.text, None),
        };
        Fields { line, word, rest }
    }

    fn wrong(&self, what: impl Into<String>) -> ParseError {
        error(self.line.number, what)
    }

    fn decode(&self, raw: &'static str) -> Result<Text, ParseError> {
        if self.line.is_plain {
            return Ok(raw.into());
        }
        decode_field(self.line.number, raw)
    }

    fn is_at_end(&self) -> bool {
        self.rest.is_none()
    }

    /// The next field as it is written.
    fn raw(&mut self, what: &str) -> Result<&'static str, ParseError> {
        let rest = self
            .rest
            .ok_or_else(|| self.wrong(format!("{what} is missing")))?;
        match split_at_byte(rest, b' ') {
            Some((field, rest)) => {
                self.rest = Some(rest);
                Ok(field)
            }
            None => {
                self.rest = None;
                Ok(rest)
            }
        }
    }

    /// The next field, decoded; not empty.
    fn next(&mut self, what: &str) -> Result<Text, ParseError> {
        let raw = self.raw(what)?;
        if raw.is_empty() {
            return Err(self.wrong(format!("{what} is missing (two spaces, or one at the end)")));
        }
        self.decode(raw)
    }

    fn path(&mut self) -> Result<Text, ParseError> {
        let path = self.next("a path")?;
        self.absolute(path)
    }

    fn absolute(&self, path: Text) -> Result<Text, ParseError> {
        if path.as_bytes().first() != Some(&b'/') {
            return Err(self.wrong("a path must begin with `/`"));
        }
        Ok(path)
    }

    fn names(&mut self) -> Result<Vec<Text>, ParseError> {
        let mut names = Vec::new();
        while !self.is_at_end() {
            let name = self.next("a name")?;
            if find_byte(name.as_bytes(), b'/').is_some() || name == "." || name == ".." {
                return Err(self.wrong(format!("{} is no name in a folder", shown(&name))));
            }
            names.push(name);
        }
        Ok(names)
    }

    fn operation(&mut self) -> Result<Operation, ParseError> {
        let name = self.raw("an operation")?;
        Operation::from_name(name)
            .ok_or_else(|| self.wrong(format!("{} is no operation", shown(name))))
    }

    fn why(&mut self) -> Result<Why, ParseError> {
        let name = self.raw("a reason")?;
        Why::from_name(name).ok_or_else(|| self.wrong(format!("{} is no reason", shown(name))))
    }

    /// `rw` and what came of it.
    fn result(&mut self) -> Result<Text, ParseError> {
        if self.raw("`rw`")? != "rw" {
            return Err(self.wrong("`rw` must follow the path"));
        }
        self.next("`ok` or an errno")
    }

    /// Everything up to the end of the line, decoded.
    fn rest(&mut self) -> Result<Text, ParseError> {
        let raw = self
            .rest
            .take()
            .ok_or_else(|| self.wrong("nothing follows"))?;
        self.decode(raw)
    }

    /// The JSON object up to the end of the line.
    fn object(&mut self) -> Result<Value, ParseError> {
        let raw = self
            .rest
            .take()
            .ok_or_else(|| self.wrong("JSON is missing"))?;
        match serde_json::from_str(raw) {
            Ok(Value::Object(object)) => Ok(Value::Object(object)),
            Ok(_) => Err(self.wrong("the JSON is no object")),
            Err(bad) => Err(self.wrong(format!("no JSON at column {} of it", bad.column()))),
        }
    }

    fn end(&self) -> Result<(), ParseError> {
        match self.rest {
            None => Ok(()),
            Some(rest) => Err(self.wrong(format!("{} is too much", shown(rest)))),
        }
    }

    /// A field that is a number, or `-`: not known.
    fn number<T>(&self, field: &str, parse: impl FnOnce(&str) -> Option<T>) -> OptionResult<T> {
        if field == "-" {
            return Ok(None);
        }
        match parse(field) {
            Some(value) => Ok(Some(value)),
            None => Err(self.wrong(format!("{} is no number", shown(field)))),
        }
    }

    fn mode(&mut self) -> OptionResult<u32> {
        let field = self.raw("a mode")?;
        self.number(field, |text| {
            u32::from_str_radix(text, 8)
                .ok()
                .filter(|mode| *mode <= 0o7777)
        })
    }

    fn owner(&mut self) -> Result<(Option<u32>, Option<u32>), ParseError> {
        let field = self.raw("an owner")?;
        if field == "-" {
            return Ok((None, None));
        }
        let (uid, gid) = field
            .split_once(':')
            .ok_or_else(|| self.wrong("an owner is UID:GID"))?;
        Ok((
            self.number(uid, |text| text.parse().ok())?,
            self.number(gid, |text| text.parse().ok())?,
        ))
    }

    fn size_and_mtime(&mut self) -> Result<(Option<u64>, Option<i64>), ParseError> {
        let size = self.raw("a size")?;
        let mtime = self.raw("a time")?;
        Ok((
            self.number(size, |text| text.parse().ok())?,
            self.number(mtime, |text| text.parse().ok())?,
        ))
    }
}

type OptionResult<T> = Result<Option<T>, ParseError>;

fn user(fields: &mut Fields) -> Result<ProcessUser, ParseError> {
    let id = |fields: &Fields, text: &str| {
        text.parse::<u32>()
            .map_err(|_| fields.wrong(format!("{} is no id", shown(text))))
    };
    let uid = fields.raw("a uid")?;
    let gid = fields.raw("a gid")?;
    let groups = fields.raw("groups")?;
    let mut user = ProcessUser {
        uid: id(fields, uid)?,
        gid: id(fields, gid)?,
        ..ProcessUser::default()
    };
    user.real_uid = user.uid;
    if groups != "-" {
        for group in groups.split(',') {
            user.groups.push(id(fields, group)?);
        }
    }
    while !fields.is_at_end() {
        let field = fields.raw("a field")?;
        match field.split_once('=') {
            Some(("name", name)) => user.name = Some(fields.decode(name)?.into_owned()),
            Some(("real", uid)) => user.real_uid = id(fields, uid)?,
            Some(("sudo", uid)) => user.sudo_uid = Some(id(fields, uid)?),
            _ => return Err(fields.wrong("only `name=`, `real=` and `sudo=` may follow")),
        }
    }
    Ok(user)
}

fn environment(fields: &mut Fields) -> Result<Entry, ParseError> {
    let raw = fields.rest.take().unwrap_or("");
    if raw == "whole" {
        return Ok(Entry::EnvWhole);
    }
    match raw.split_once('=') {
        Some((name, value)) if !name.is_empty() && !name.contains(' ') => {
            Ok(Entry::Env(fields.decode(name)?, fields.decode(value)?))
        }
        _ => Err(fields.wrong("`whole` or NAME=VALUE must follow `env`")),
    }
}

fn whole(fields: &mut Fields) -> Result<Entry, ParseError> {
    let raw = fields.raw("a path")?;
    // The stars count as written: a folder that is really named so has them escaped.
    let (folder, below) = match raw.strip_suffix("/**") {
        Some("") => ("/", true),
        Some(folder) => (folder, true),
        None => (raw, false),
    };
    let path = fields.decode(folder)?;
    Ok(Entry::Whole(fields.absolute(path)?, below))
}

const KINDS: [&str; 7] = ["file", "dir", "link", "char", "block", "fifo", "socket"];

fn stat(fields: &mut Fields) -> Result<Entry, ParseError> {
    let path = fields.path()?;
    let kind = fields.raw("a kind")?;
    let kind = match kind {
        "-" => "",
        known if KINDS.contains(&known) => known,
        other => return Err(fields.wrong(format!("{} is no kind of file", shown(other)))),
    };
    let mode = fields.mode()?;
    let (uid, gid) = fields.owner()?;
    let (size, mtime) = fields.size_and_mtime()?;
    Ok(Entry::Stat(
        path,
        Box::new(Stat {
            kind: kind.to_owned(),
            mode,
            uid,
            gid,
            size,
            mtime,
            device: None,
        }),
    ))
}

fn node(fields: &mut Fields) -> Result<Entry, ParseError> {
    let path = fields.path()?;
    let kind = match fields.raw("`c` or `b`")? {
        "c" => "char",
        "b" => "block",
        other => return Err(fields.wrong(format!("{} is neither `c` nor `b`", shown(other)))),
    };
    let device = fields
        .raw("MAJOR:MINOR")?
        .split_once(':')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| fields.wrong("the numbers of a node are MAJOR:MINOR"))?;
    let mode = fields.mode()?;
    let (uid, gid) = fields.owner()?;
    let (size, mtime) = if fields.is_at_end() {
        (None, None)
    } else {
        fields.size_and_mtime()?
    };
    Ok(Entry::Stat(
        path,
        Box::new(Stat {
            kind: kind.to_owned(),
            mode,
            uid,
            gid,
            size,
            mtime,
            device: Some(device),
        }),
    ))
}

/// The byte that an escape stands for, and what follows it. The text begins after the backslash.
fn escape(number: usize, text: &str) -> Result<(u8, &str), ParseError> {
    if let Some(rest) = text.strip_prefix('\\') {
        return Ok((b'\\', rest));
    }
    let digits = text
        .strip_prefix('x')
        .and_then(|rest| rest.get(..2))
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
    match digits {
        Some(byte) => Ok((byte, &text[3..])),
        None => Err(error(
            number,
            "a backslash must be followed by another one or by `x` and two hex digits",
        )),
    }
}

fn decode_field(number: usize, raw: &str) -> Result<Text, ParseError> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = split_at_byte(rest, b'\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (byte, after) = escape(number, after)?;
        bytes.push(byte);
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes)
        .map(Text::from)
        .map_err(|_| error(number, "an escaped field is not UTF-8"))
}

fn decode_content(line: Line, into: &mut String) -> Result<(), ParseError> {
    let mut rest = line.text;
    while !line.is_plain
        && let Some((before, after)) = split_at_byte(rest, b'\\')
    {
        into.push_str(before);
        if let Some(digits) = after.strip_prefix("u{") {
            let (character, after) = digits
                .split_once('}')
                .filter(|(digits, _)| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
                .and_then(|(digits, after)| {
                    let number = u32::from_str_radix(digits, 16).ok()?;
                    Some((char::from_u32(number)?, after))
                })
                .ok_or_else(|| {
                    error(
                        line.number,
                        "`\\u{` must be followed by the number of a character and `}`",
                    )
                })?;
            into.push(character);
            rest = after;
            continue;
        }
        let (byte, after) = escape(line.number, after)?;
        into.push(char::from(byte));
        rest = after;
    }
    into.push_str(rest);
    Ok(())
}

/// Where a text is written: what has to be escaped differs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Field,
    /// The last field of a line, which may hold spaces.
    Rest,
    Content,
}

fn write_escaped(f: &mut impl fmt::Write, text: &str, place: Place) -> fmt::Result {
    let special = |c: char| match c {
        '\\' => true,
        ' ' => place == Place::Field,
        '\t' => place != Place::Content,
        _ => c.is_control() || is_invisible(c),
    };
    // A space at the very end would not survive an editor.
    let (text, last_space) = match text.strip_suffix(' ') {
        Some(text) if place == Place::Rest => (text, true),
        _ => (text, false),
    };
    let mut rest = text;
    while let Some(at) = rest.find(special) {
        f.write_str(&rest[..at])?;
        let c = rest[at..].chars().next().unwrap_or_default();
        match c {
            '\\' => f.write_str("\\\\")?,
            _ if place == Place::Content && u32::from(c) > 0xff => {
                write!(f, "\\u{{{:x}}}", u32::from(c))?;
            }
            _ if place == Place::Content => write!(f, "\\x{:02x}", u32::from(c))?,
            _ => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    write!(f, "\\x{byte:02x}")?;
                }
            }
        }
        rest = &rest[at + c.len_utf8()..];
    }
    f.write_str(rest)?;
    if last_space {
        f.write_str("\\x20")?;
    }
    Ok(())
}

/// A text in the way of a field.
struct Field<'a>(&'a str);

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.0, Place::Field)
    }
}

/// A value, or `-`.
struct Known<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

/// JSON on one line. Its own escapes hold all control characters but those that JSON allows as they are.
struct OneLine<'a>(&'a Value);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(|c: char| c.is_control() || is_invisible(c)) {
            let c = rest[at..].chars().next().unwrap_or_default();
            f.write_str(&rest[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(f, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// Bytes rather than text: a NUL or a C1 control character is in it, and nothing that is no byte.
fn is_binary(text: &str) -> bool {
    text.len() <= BINARY_LIMIT
        && text.contains(|c| matches!(c, '\0' | '\u{80}'..='\u{9f}'))
        && text.chars().all(|c| u32::from(c) <= 0xff)
}

/// Content lines, each with a line end before it.
fn write_content(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    if is_binary(text) {
        f.write_str("\n| ")?;
        for c in text.chars() {
            write!(f, "\\x{:02x}", u32::from(c))?;
        }
        return f.write_char('\\');
    }
    let mut rest = text;
    while !rest.is_empty() {
        f.write_str("\n| ")?;
        match rest.split_once('\n') {
            Some((line, after)) => {
                write_escaped(f, line, Place::Content)?;
                rest = after;
            }
            None => {
                write_escaped(f, rest, Place::Content)?;
                f.write_char('\\')?;
                rest = "";
            }
        }
    }
    Ok(())
}

/// The text up to a line that no reader would take: longer than a line may be, once it is escaped.
fn writable(text: &str) -> &str {
    if text.len() < LINE_LIMIT / 4 {
        return text;
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        // Four bytes for one is the most that escaping makes of a text.
        let mut counter = Counter(0);
        if line.len() >= LINE_LIMIT / 4
            && (write_escaped(&mut counter, line, Place::Content).is_err()
                || counter.0 + 8 > LINE_LIMIT)
        {
            return &text[..start];
        }
        start += line.len();
    }
    text
}

struct Counter(usize);

impl fmt::Write for Counter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// One entry with its content lines, without a line end after the last.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Clock(time) => write!(f, "clock {}", Field(time)),
            Entry::System(system) => write!(
                f,
                "system {} {} {}",
                Field(&system.os),
                Field(&system.machine),
                Field(&system.release)
            ),
            Entry::User(user) => write_user(f, user),
            Entry::EnvWhole => f.write_str("env whole"),
            Entry::Env(name, value) => {
                // An equals sign ends the name.
                let name = Field(name).to_string().replace('=', "\\x3d");
                write!(f, "env {name}=")?;
                write_escaped(f, value, Place::Rest)
            }
            Entry::Unset(name) => write!(f, "unset {}", Field(name)),
            Entry::File { path, text, form } => {
                let writable = writable(text);
                let word = match form {
                    _ if writable.len() < text.len() => " cut",
                    Form::Whole => "",
                    Form::Cut => " cut",
                    Form::Kept => " kept",
                };
                write!(f, "file {}{word}", Field(path))?;
                write_content(f, writable)
            }
            Entry::Exists(path) => write!(f, "exists {}", Field(path)),
            Entry::Link(path, target) => write!(f, "link {} -> {}", Field(path), Field(target)),
            Entry::Dir(path, names) => {
                write!(f, "dir {}", Field(path))?;
                names
                    .iter()
                    .try_for_each(|name| write!(f, " {}", Field(name)))
            }
            Entry::Whole(path, below) => {
                let stars = if *below { "/**" } else { "" };
                let folder = Field(if *below && path == "/" { "" } else { path }).to_string();
                match folder.strip_suffix("/**") {
                    Some(parent) => write!(f, "whole {parent}/\\x2a\\x2a{stars}"),
                    None => write!(f, "whole {folder}{stars}"),
                }
            }
            Entry::Kept(path) => write!(f, "kept {}", Field(path)),
            Entry::Absent(path) => write!(f, "absent {}", Field(path)),
            Entry::Error(path, operation, errno) => write!(
                f,
                "error {} {} {}",
                Field(path),
                operation.name(),
                Field(errno)
            ),
            Entry::Hang(path) => write!(f, "hang {}", Field(path)),
            Entry::Unasked(path, why, operation) => {
                write!(f, "unasked {} {}", Field(path), why.name())?;
                match operation {
                    Some(operation) => write!(f, " {}", operation.name()),
                    None => Ok(()),
                }
            }
            Entry::Stat(path, stat) => write_stat(f, path, stat),
            Entry::Acl(path, line) => write!(
                f,
                "acl {} {}",
                Field(path),
                Field(line.as_deref().unwrap_or("none"))
            ),
            Entry::Open(path, result) => write!(f, "open {} rw {}", Field(path), Field(result)),
            Entry::Access(path, result) => write!(f, "access {} rw {}", Field(path), Field(result)),
            Entry::ModInfo(path, json) => write!(f, "modinfo {} {}", Field(path), OneLine(json)),
            Entry::Elf(path, json) => write!(f, "elf {} {}", Field(path), OneLine(json)),
            Entry::Run {
                command,
                rc,
                output,
            } => {
                f.write_str("run ")?;
                for word in command {
                    write!(f, "{} ", Field(word))?;
                }
                write!(f, "rc={rc}")?;
                write_content(f, writable(output))
            }
            Entry::Log(source, lines) => {
                match source.split_once(' ') {
                    Some((kind, name)) => write!(f, "log {kind} {}", Field(name))?,
                    None => write!(f, "log {}", Field(source))?,
                }
                for line in lines {
                    f.write_str("\n| ")?;
                    write_escaped(f, line, Place::Content)?;
                }
                Ok(())
            }
            Entry::Answer(library, json) => {
                write!(f, "answer @{} {}", Field(library), OneLine(json))
            }
        }
    }
}

fn write_user(f: &mut fmt::Formatter<'_>, user: &ProcessUser) -> fmt::Result {
    write!(f, "user {} {} ", user.uid, user.gid)?;
    if user.groups.is_empty() {
        f.write_char('-')?;
    }
    for (index, group) in user.groups.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(f, "{comma}{group}")?;
    }
    if let Some(name) = &user.name {
        write!(f, " name={}", Field(name))?;
    }
    if user.real_uid != user.uid {
        write!(f, " real={}", user.real_uid)?;
    }
    if let Some(uid) = user.sudo_uid {
        write!(f, " sudo={uid}")?;
    }
    Ok(())
}

fn write_stat(f: &mut fmt::Formatter<'_>, path: &str, stat: &Stat) -> fmt::Result {
    let mode = Known(stat.mode.map(|mode| format!("{mode:04o}")));
    let owner = format!("{}:{}", Known(stat.uid), Known(stat.gid));
    let (size, mtime) = (Known(stat.size), Known(stat.mtime));
    let path = Field(path);
    if let Some((major, minor)) = stat.device {
        let kind = if stat.kind == "block" { "b" } else { "c" };
        write!(f, "node {path} {kind} {major}:{minor} {mode} {owner}")?;
        if stat.size.is_some() || stat.mtime.is_some() {
            write!(f, " {size} {mtime}")?;
        }
        return Ok(());
    }
    let kind = Known(Some(stat.kind.as_str()).filter(|kind| KINDS.contains(kind)));
    write!(f, "stat {path} {kind} {mode} {owner} {size} {mtime}")
}

/// The machine with its header, settled and sorted, so that two captures can be compared line by line.
impl fmt::Display for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "gpucheck-machine {FORMAT}")?;
        if let Some(made_by) = &self.made_by {
            f.write_str("made-by ")?;
            write_escaped(f, made_by, Place::Rest)?;
            f.write_char('\n')?;
        }
        if let Some(base) = &self.base {
            writeln!(f, "base {}", Field(base))?;
        }
        for entry in self.settled().entries {
            writeln!(f, "{entry}")?;
        }
        Ok(())
    }
}

/// Bytes of a binary attribute in the way a `file` entry holds them: each byte is the character of the same number.
pub fn bytes_as_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The reverse of `bytes_as_text`. A character that is no byte, from a text file, becomes its UTF-8.
pub fn text_as_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u8::try_from(u32::from(c)) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Begins the words of a failure that means: there was no library to ask, or it could not be loaded.
pub const NOT_LOADED: &str = "not loaded: ";
/// A recorded answer that says something else than what was asked.
pub const NOT_OF_THIS_SHAPE: &str = "the recorded answer is not of this version's shape";

/// The answer of a library as the JSON of an `answer` entry:
///
/// | `Seen` | JSON |
/// | --- | --- |
/// | `Got` | `{"ok": ...}`, in the shape of the facts |
/// | `Failed`, denied or with an error | `{"error": "DRIVER_NOT_LOADED"}` |
/// | `Failed`, an error whose words begin with `NOT_LOADED` | `{"not_loaded": "why"}` |
/// | `Failed`, crashed | `{"crashed": "SIGSEGV"}` |
/// | `Failed`, timed out | `{"timed_out": "nvmlInit"}` |
/// | `Absent` | `{"absent": true}` |
/// | `Unasked` | `{"unasked": "quick"}` |
pub fn answer_to_json<T: Serialize>(answer: &Seen<T>) -> Value {
    let (key, value) = match answer {
        Seen::Got(value) => match to_json(&value) {
            Ok(json) => ("ok", json),
            Err(_) => ("error", Value::from("the answer cannot be written as JSON")),
        },
        Seen::Absent => ("absent", Value::Bool(true)),
        Seen::Unasked(why) => ("unasked", Value::from(why.name())),
        Seen::Failed(Failure::TimedOut { at }) => ("timed_out", Value::from(at.as_str())),
        Seen::Failed(Failure::Crashed { how }) => ("crashed", Value::from(how.as_str())),
        Seen::Failed(Failure::Denied { errno: what } | Failure::Error { what }) => {
            match what.strip_prefix(NOT_LOADED) {
                Some(why) => ("not_loaded", Value::from(why)),
                None => ("error", Value::from(what.as_str())),
            }
        }
    };
    Value::Object([(key.to_owned(), value)].into_iter().collect())
}

/// The reverse of `answer_to_json`. What is of no known form is a failure, never an answer.
pub fn answer_from_json<T: DeserializeOwned>(json: &Value) -> Seen<T> {
    let mut members = json.as_object().into_iter().flatten();
    let (Some((key, value)), None) = (members.next(), members.next()) else {
        return Seen::error("the recorded answer is of no known form");
    };
    match (key.as_str(), value, value.as_str()) {
        // A list would do for facts whose every value may be missing.
        ("ok", value, _) => match from_json(value) {
            Ok(answer) if value.is_object() => Seen::Got(answer),
            _ => Seen::error(NOT_OF_THIS_SHAPE),
        },
        ("absent", Value::Bool(true), _) => Seen::Absent,
        ("unasked", _, Some(why)) => match Why::from_name(why) {
            Some(why) => Seen::Unasked(why),
            None => Seen::error("the recorded answer is of no known form"),
        },
        ("timed_out", _, Some(at)) => Seen::Failed(Failure::TimedOut { at: at.to_owned() }),
        ("crashed", _, Some(how)) => Seen::Failed(Failure::Crashed {
            how: how.to_owned(),
        }),
        ("error", _, Some(what)) => Seen::Failed(Failure::errno(what)),
        ("not_loaded", _, Some(why)) => Seen::error(format!("{NOT_LOADED}{why}")),
        _ => Seen::error("the recorded answer is of no known form"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn parse(body: &str) -> Result<Entries, ParseError> {
        let end = if body.ends_with('\n') { "" } else { "\n" };
        Entries::parse(format!("gpucheck-machine 1\n{body}{end}").leak())
    }

    #[test]
    fn a_last_line_that_may_be_cut_is_refused() {
        for (text, line) in [
            ("gpucheck-machine 1\nabsent /", 2),
            ("gpucheck-machine 1\nfile /a\n| 1", 3),
            ("gpucheck-machine 1", 1),
        ] {
            let error = Entries::parse(text).expect_err(text);
            assert!(error.to_string().contains("cut short"), "{error}");
            assert_eq!(error.line, line);
        }
    }

    /// Machines of the shared material; empty, with a note, where it is not here.
    #[expect(clippy::disallowed_methods, reason = "a test reads its material")]
    fn shared_machines() -> Vec<(String, Vec<u8>)> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/machines");
        let Ok(listing) = std::fs::read_dir(&folder) else {
            assert!(
                std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none(),
                "../shared/machines is missing"
            );
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "skipped: ../shared/machines is missing");
            return Vec::new();
        };
        let mut machines: Vec<(String, Vec<u8>)> = listing
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let bytes = std::fs::read(path.join("machine.txt")).ok()?;
                Some((path.file_name()?.to_string_lossy().into_owned(), bytes))
            })
            .collect();
        machines.sort();
        assert!(machines.len() > 100);
        machines
    }

    #[test]
    fn every_line_of_the_grammar_is_read_and_written_back() {
        let lines = [
            "clock 2026-11-30T12:00:00Z",
            "system linux x86_64 6.8.0-49-generic",
            "user 1000 1000 1000,44,109 name=USER",
            "user 0 0 - real=1000 sudo=1000",
            "env whole",
            "env CUDA_VISIBLE_DEVICES=",
            "env LD_LIBRARY_PATH=/a b:/c=d\\\\e\\x20",
            "unset HIP_VISIBLE_DEVICES",
            "file /etc/a\n| first line\n| \n| second line\\",
            "file /etc/a\\x20b cut\n| \\x1b[31m\ttab \\\\ \\x0d",
            "file /etc/empty",
            "file /proc/modules kept\n| a\n| b",
            "file /config cut\n| \\x86\\x80\\x00\\x0a\\x25\\",
            "exists /usr/bin/nvidia-smi",
            "link /a -> ../b\\x20c",
            "dir /lib/modules 6.8.0 with\\x20space",
            "dir /empty",
            "whole /dev",
            "whole /lib/**",
            "whole /**",
            "whole /",
            "whole /a/\\x2a\\x2a",
            "absent /dev/kfd",
            "error /dev/kfd stat EACCES",
            "error /a read longer\\x20than\\x205\\x20bytes",
            "hang /proc/x",
            "unasked /config asleep",
            "unasked /dev/dri/renderD128 asleep open",
            "stat /usr/bin/nvidia-modprobe file 4755 0:0 - -",
            "stat /a dir 0755 -:- 4096 -12",
            "stat /a - - 0:- - 1700000000",
            "node /dev/nvidia0 c 195:0 0666 0:0",
            "node /dev/sda b 8:0 - -:- 0 1700000000",
            "acl /dev/kfd user:1000:rw-",
            "acl /dev/kfd none",
            "open /dev/kfd rw ok",
            "access /dev/kfd rw EACCES",
            "modinfo /a.ko {\"version\":\"580.95.05\"}",
            "elf /a.so {\"needed\":[\"libc.so.6\"],\"soname\":\"a\"}",
            "run rpm -qa rc=0\n| kernel-6.8.0\\",
            "file /a\n| \\u{202e}x\\u{200b}\\xad\\u{e0041}",
            "log kmsg\n| \\u{202e}x\\u{feff}",
            "answer @nvml {\"ok\":\"\\u202e\\udb40\\udc41\"}",
            "log kmsg\n| [    1.0] \\x1b line \\\\",
            "log file /var/log/kern.log\n| a",
            "log none EPERM",
            "answer @nvml {\"error\":\"DRIVER_NOT_LOADED\"}",
        ];
        for line in lines {
            let entry = parse_entry(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(entry.to_string(), line);
        }
    }

    #[test]
    fn broken_lines_are_named_with_their_line() {
        let lines = [
            "nonsense /a",
            "clock",
            "clock a b",
            "system linux x86_64",
            "user 1000 1000",
            "user x 1000 1000",
            "user 1000 1000 1000,",
            "user 1000 1000 - shell=sh",
            "env",
            "env NAME",
            "env =value",
            "unset",
            "file",
            "file relative",
            "file /a half",
            "file /a cut more",
            "file /a ",
            "file  /a",
            "exists relative",
            "link /a",
            "link /a b",
            "link /a => b",
            "link /a -> b c",
            "link /a ->",
            "dir",
            "dir /a b/c",
            "dir /a ..",
            "dir /a  b",
            "whole relative/**",
            "absent",
            "absent /a b",
            "error /a read",
            "error /a write EIO",
            "error /a read EIO EIO",
            "hang",
            "unasked /a",
            "unasked /a because",
            "unasked /a quick write",
            "stat /a file 0644 0:0 1",
            "stat /a pipe 0644 0:0 1 1",
            "stat /a file 0999 0:0 1 1",
            "stat /a file 77777 0:0 1 1",
            "stat /a file 0644 0 1 1",
            "stat /a file 0644 0:0 x 1",
            "node /a d 1:1 0666 0:0",
            "node /a c 1 0666 0:0",
            "node /a c 1:1 0666",
            "node /a c 1:1 0666 0:0 1",
            "acl /a",
            "open /a ok",
            "open /a r ok",
            "access /a rw",
            "modinfo /a",
            "modinfo /a {",
            "modinfo /a []",
            "elf /a \"x\"",
            "run rc=0",
            "run rpm -qa",
            "run rpm -qa rc=x",
            "log",
            "log syslog",
            "log file",
            "log none EPERM\n| a line",
            "log kmsg\n| half\\",
            "answer nvml {}",
            "answer @ {}",
            "answer @nvml",
            "answer @nvml {\"ok\":}",
            "absent /a\\",
            "absent /a\\x2",
            "absent /a\\n",
            "absent /a\\x+1",
            "absent /\\xff",
            "file /a\n| one\\\n| two",
            "file /a\n|two",
            "file /a\n| \\q",
            "| content",
            "base a b",
            "base a\nbase b",
            "made-by a\nmade-by b",
        ];
        for line in lines {
            let error = parse(&format!("clock now\n{line}\n")).expect_err(line);
            assert!(
                error.line >= 3 && error.line <= 4,
                "{line}: reported as {error}"
            );
            assert!(!error.what.is_empty());
        }
        // A header is none of an entry's business.
        assert!(parse_entry("base a").is_err());
        assert!(parse_entry("").is_err());
        assert!(parse_entry("absent /a\nabsent /b").is_err());
    }

    #[test]
    fn the_header_is_asked_for() {
        assert_eq!(
            Entries::parse("").expect_err("empty").to_string(),
            "line 1: the file is empty"
        );
        assert!(Entries::parse("gpucheck-machine\n").is_err());
        assert!(Entries::parse("\ngpucheck-machine 1\n").is_err());
        let newer = Entries::parse("gpucheck-machine 2\n").expect_err("format 2");
        assert!(newer.to_string().contains("format `2`"), "{newer}");
        let entries = Entries::parse(
            "gpucheck-machine 1\r\nmade-by gpucheck 0.1.0 hand redacted\r\n\r\n# note\r\nbase some-machine\r\n",
        )
        .expect("with carriage returns");
        assert_eq!(entries.base(), Some("some-machine"));
        assert_eq!(
            entries.made_by.as_deref(),
            Some("gpucheck 0.1.0 hand redacted")
        );
    }

    #[test]
    fn bytes_are_found_and_counted_eight_at_a_time() {
        // Neighbours of the byte, in its value and in its place, and bytes with the highest bit.
        let mut text = Vec::new();
        for round in 0..40_usize {
            text.extend_from_slice(&[b'.', b'/', b'0', 0xaf, 0, 0xff][..round % 7 % 6]);
            text.extend(std::iter::repeat_n(b'0', round % 11));
        }
        for start in 0..text.len() {
            for end in start..text.len().min(start + 40) {
                let part = &text[start..end];
                for byte in [b'/', b'0', 0, 0xaf, b'!'] {
                    let is_it = |other: &u8| *other == byte;
                    assert_eq!(find_byte(part, byte), part.iter().position(is_it));
                    assert_eq!(last_byte(part, byte), part.iter().rposition(is_it));
                    let count = part.iter().filter(|other| is_it(other)).count();
                    assert_eq!(count_byte(part, byte), count);
                }
            }
        }
    }

    #[test]
    fn messages_carry_no_escape_sequences() {
        let error = parse("\u{1b}[31mred /a").expect_err("no such word");
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let error = Entries::parse_bytes(b"gpucheck-machine 1\n# \xff\n").expect_err("no UTF-8");
        assert_eq!(error.line, 2);
        assert!(Entries::parse_bytes(b"gpucheck-machine 1\nclock now\n").is_ok());
    }

    #[test]
    fn limits_are_errors() {
        let long = format!("file /a\n| {}\n", "x".repeat(LINE_LIMIT));
        assert_eq!(parse(&long).expect_err("long line").line, 3);
        let many = "hang /a\n".repeat(ENTRY_LIMIT + 1);
        assert_eq!(parse(&many).expect_err("many").line, ENTRY_LIMIT + 2);
        let huge = "#".repeat(MACHINE_LIMIT + 1);
        assert!(Entries::parse(huge.leak()).is_err());
        let deep = format!("absent {}\n", "/a".repeat(PATH_DEPTH_LIMIT + 1));
        assert_eq!(parse(&deep).expect_err("deep").line, 2);
        let wide = format!("dir /a{}\n", " a".repeat(250_000)).repeat(12);
        assert!(parse(&wide).expect_err("wide").line > 2);
    }

    #[test]
    fn content_survives_every_kind_of_text() {
        let texts = [
            "",
            "\n",
            "\n\n",
            "a",
            "a\n",
            "a\n\nb",
            "ends in a backslash\\",
            "ends in a backslash\\\n",
            "two\\\\\n",
            "\\x41\n",
            "carriage\r\nreturn\r",
            "tab\tand \u{1b}[0m and bell \u{7}\n",
            "nul\0",
            "\0\u{80}\u{ff}\n",
            "é and 漢字 and \u{10ffff}\n",
            "\u{85}\u{2028}\n",
            " leading and trailing \n",
            "| bar\n# hash\n",
        ];
        for text in texts {
            for form in [Form::Whole, Form::Cut, Form::Kept] {
                let entry = Entry::File {
                    path: "/a".into(),
                    text: text.into(),
                    form,
                };
                let written = entry.to_string();
                assert_eq!(
                    parse_entry(written.clone().leak()).as_ref(),
                    Ok(&entry),
                    "{written}"
                );
                assert!(
                    written
                        .chars()
                        .all(|c| !c.is_control() || c == '\n' || c == '\t'),
                    "{written:?}"
                );
            }
        }
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(text_as_bytes(&bytes_as_text(&bytes)), bytes);
        assert_eq!(text_as_bytes("漢"), "漢".as_bytes());
    }

    #[test]
    fn binary_attributes_are_written_byte_by_byte() {
        let entry = Entry::File {
            path: "/config".into(),
            text: bytes_as_text(&[0xde, 0x10, 0x04, 0x25, 0x00]).into(),
            form: Form::Cut,
        };
        assert_eq!(
            entry.to_string(),
            "file /config cut\n| \\xde\\x10\\x04\\x25\\x00\\"
        );
    }

    #[test]
    fn a_line_that_no_reader_would_take_is_cut() {
        let entry = Entry::File {
            path: "/a".into(),
            text: format!("first\n{}\n", "\u{1b}".repeat(LINE_LIMIT / 3)).into(),
            form: Form::Kept,
        };
        assert_eq!(entry.to_string(), "file /a cut\n| first");
        let entry = Entry::File {
            path: "/a".into(),
            text: format!("{}\n", "x".repeat(LINE_LIMIT - 100)).into(),
            form: Form::Kept,
        };
        assert_eq!(parse_entry(entry.to_string().leak()), Ok(entry));
    }

    #[test]
    fn answers_of_libraries_go_both_ways() {
        type Answer = std::collections::BTreeMap<String, u32>;
        let seven: Answer = [("a".to_owned(), 7)].into();
        let answers: [(Seen<Answer>, &str); 9] = [
            (Seen::Got(seven), "{\"ok\":{\"a\":7}}"),
            (Seen::Absent, "{\"absent\":true}"),
            (Seen::Unasked(Why::Quick), "{\"unasked\":\"quick\"}"),
            (
                Seen::error("DRIVER_NOT_LOADED"),
                "{\"error\":\"DRIVER_NOT_LOADED\"}",
            ),
            (
                Seen::Failed(Failure::errno("EPERM")),
                "{\"error\":\"EPERM\"}",
            ),
            (
                Seen::error("not loaded: no library"),
                "{\"not_loaded\":\"no library\"}",
            ),
            (
                Seen::Failed(Failure::Crashed {
                    how: "SIGSEGV".to_owned(),
                }),
                "{\"crashed\":\"SIGSEGV\"}",
            ),
            (
                Seen::Failed(Failure::TimedOut {
                    at: "nvmlInit".to_owned(),
                }),
                "{\"timed_out\":\"nvmlInit\"}",
            ),
            (
                Seen::Unasked(Why::NoSuchHardware),
                "{\"unasked\":\"no-such-hardware\"}",
            ),
        ];
        for (answer, json) in answers {
            assert_eq!(answer_to_json(&answer).to_string(), json);
            let value: Value = serde_json::from_str(json).expect(json);
            assert_eq!(answer_from_json::<Answer>(&value), answer);
        }
        for json in [
            "{}",
            "[]",
            "{\"ok\":\"text\"}",
            "{\"ok\":1,\"error\":\"x\"}",
            "{\"absent\":false}",
            "{\"unasked\":\"because\"}",
            "{\"other\":1}",
        ] {
            let value: Value = serde_json::from_str(json).expect(json);
            assert!(
                matches!(answer_from_json::<Answer>(&value), Seen::Failed(_)),
                "{json}"
            );
        }
    }

    #[test]
    fn real_machines_are_stable() {
        for (name, bytes) in shared_machines() {
            let entries = Entries::parse_bytes(bytes.leak())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let printed = entries.to_string();
            let again = Entries::parse(printed.clone().leak())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(again, entries.settled(), "{name}");
            assert_eq!(again.to_string(), printed, "{name}");
            for entry in &entries.entries {
                assert_eq!(
                    parse_entry(entry.to_string().leak()).as_ref(),
                    Ok(entry),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn a_machine_may_end_anywhere() {
        let text = "gpucheck-machine 1\nmade-by gpucheck 0.1.0 hand redacted\nuser 1000 1000 1000,44 name=US\\x20ER real=0\nenv A=b\nfile /a\\x20b cut\n| \\x86é\\\n| b\nlink /a -> ../b\nstat /a file 0644 0:0 - -\nnode /d c 1:2 0666 0:0 1 2\nmodinfo /m {\"version\": \"1\"}\nrun rpm -qa rc=0\n| x\nlog file a\n| y\nanswer @nvml {\"ok\": {}}\n";
        let mut texts = vec![text.as_bytes().to_vec()];
        texts.extend(
            shared_machines()
                .into_iter()
                .map(|(_, bytes)| bytes)
                .filter(|bytes| bytes.len() < 9000)
                .max_by_key(Vec::len),
        );
        for text in texts {
            let text: &'static [u8] = text.leak();
            let mut good = 0;
            for end in 0..text.len() {
                if let Ok(entries) = Entries::parse_bytes(&text[..end]) {
                    good += 1;
                    if end % 97 == 0 {
                        let _ = super::super::archive::Archive::new(entries);
                    }
                }
            }
            assert!(good > 0);
        }
    }

    /// Small numbers from a seed, the same everywhere.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as usize % end
        }

        fn pick(&mut self, from: &[&'static str]) -> &'static str {
            from[self.below(from.len())]
        }

        fn text(&mut self) -> Text {
            let parts = [
                "a", "B", " ", "\n", "\\", "\r", "\t", "\u{1b}", "\0", "é", "\u{80}", "\u{ff}",
                "漢", "|", "#", "->", "**", "=", "x41", "\u{85}", "\u{7f}",
            ];
            (0..self.below(8)).map(|_| self.pick(&parts)).collect()
        }

        fn word(&mut self) -> Text {
            let word = self.text().replace('/', "");
            if word.is_empty() || word == "." || word == ".." {
                "w".into()
            } else {
                word.into()
            }
        }

        fn path(&mut self) -> Text {
            let names = ["a", "b", "c d", "**", "e\\", "é", "\u{1b}", "-"];
            (0..1 + self.below(4)).fold(Text::default(), |path, _| path + "/" + self.pick(&names))
        }

        fn known<T>(&mut self, value: T) -> Option<T> {
            (self.below(3) > 0).then_some(value)
        }

        fn entry(&mut self) -> Entry {
            let path = self.path();
            let operation = Operation::ALL[self.below(6)].0;
            match self.below(25) {
                0 => Entry::Clock(self.word()),
                1 => Entry::System(Box::new(System {
                    os: self.word().into_owned(),
                    machine: self.word().into_owned(),
                    release: self.word().into_owned(),
                })),
                2 => Entry::User(Box::new(ProcessUser {
                    uid: self.below(3) as u32,
                    gid: self.below(3) as u32,
                    groups: (0..self.below(3) as u32).collect(),
                    real_uid: self.below(3) as u32,
                    sudo_uid: self.known(5),
                    name: Some(self.word().into_owned()).filter(|name| name.len() > 2),
                })),
                3 => Entry::EnvWhole,
                4 => Entry::Env(self.word(), self.text()),
                5 => Entry::Unset(self.word()),
                6 | 7 => Entry::File {
                    path,
                    text: self.text(),
                    form: [Form::Whole, Form::Cut, Form::Kept][self.below(3)],
                },
                8 => Entry::Exists(path),
                9 => Entry::Link(path, self.word()),
                10 | 11 => Entry::Dir(path, (0..self.below(3)).map(|_| self.word()).collect()),
                12 => Entry::Whole(path, self.below(2) == 0),
                24 => Entry::Kept(path),
                13 | 14 => Entry::Absent(path),
                15 => Entry::Error(path, operation, self.word()),
                16 => Entry::Hang(path),
                17 => {
                    let operation = self.known(operation);
                    Entry::Unasked(path, Why::ALL[self.below(6)].0, operation)
                }
                18 => {
                    let numbers = (self.below(300) as u32, self.below(300) as u32);
                    let device = self.known(numbers);
                    let kind = match device {
                        Some(_) => ["char", "block"][self.below(2)],
                        None => KINDS[self.below(7)],
                    };
                    Entry::Stat(
                        path,
                        Box::new(Stat {
                            kind: kind.to_owned(),
                            mode: self.known(0o4755),
                            uid: self.known(0),
                            gid: self.known(44),
                            size: self.known(12),
                            mtime: self.known(-3),
                            device,
                        }),
                    )
                }
                19 => {
                    let line = Some(self.word()).filter(|line| line.len() > 3 && line != "none");
                    Entry::Acl(path, line)
                }
                20 => Entry::Open(path, self.word()),
                21 => Entry::ModInfo(path, serde_json::json!({ "version": self.text() })),
                22 => Entry::Log(
                    self.pick(&["kmsg", "journal", "file a b"]).into(),
                    (0..self.below(3)).map(|_| self.text()).collect(),
                ),
                _ => Entry::Run {
                    command: vec![self.word(), self.word()],
                    rc: self.below(3) as i32 - 1,
                    output: self.text(),
                },
            }
        }
    }

    #[test]
    fn random_machines_are_stable() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for _ in 0..3000 {
            let entries = Entries::new((0..random.below(12)).map(|_| random.entry()).collect());
            for entry in &entries.entries {
                let written = entry.to_string();
                assert_eq!(
                    parse_entry(written.clone().leak()).as_ref(),
                    Ok(entry),
                    "{written}"
                );
            }
            let settled = entries.settled();
            assert_eq!(settled.settled(), settled, "{:#?}", entries.entries);
            let printed = entries.to_string();
            let again = Entries::parse(printed.clone().leak())
                .unwrap_or_else(|error| panic!("{error} in\n{printed}"));
            assert_eq!(again, settled, "{printed}");
            assert_eq!(again.to_string(), printed);
            // Laid over nothing and under nothing it is the same machine.
            assert_eq!(
                Entries::overlay(Entries::default(), entries.clone()),
                settled
            );
            assert_eq!(Entries::overlay(entries, Entries::default()), settled);
        }
    }
}
