//! How a section is laid out: labels, indents, wrapping.

use crate::report::style::{Style, clean};
use unicode_width::UnicodeWidthStr;

/// Column at which the text of a labelled row starts.
pub(crate) const COLUMN: usize = 10;
/// Where the text of a finding starts, below its number.
pub(crate) const INSET: usize = 3;
/// Where the labels of items stand.
const ITEM: usize = 4;
/// Where the text behind the label of an item starts.
const ITEM_TEXT: usize = 16;
/// Room for the labels inside a finding.
pub(crate) const LABEL: usize = 9;

/// The text of a section while it grows.
pub(crate) struct Page<'a> {
    pub(crate) style: &'a Style,
    pub(crate) text: String,
}

impl Page<'_> {
    /// A line as it is, however long.
    pub(crate) fn verbatim(&mut self, indent: usize, text: &str) {
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// Wraps `text` behind `label`, which stands at `indent`; the text starts at `column` on every line. `paint` colours
    /// the text a line at a time.
    pub(crate) fn hang(
        &mut self,
        indent: usize,
        (label, painted_label): (&str, &str),
        column: usize,
        text: &str,
        paint: impl Fn(&str) -> String,
    ) {
        let width = self.style.width.max(24);
        let column = column.min(width / 2);
        let lead = indent + label.width();
        let start = if label.is_empty() {
            column
        } else {
            column.max(lead + 1)
        };
        let mut lines = wrap(text, width.saturating_sub(start), width - column).into_iter();
        let first = lines.next().unwrap_or_default();
        let pad = if first.is_empty() {
            0
        } else {
            start.saturating_sub(lead)
        };
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(painted_label);
        self.text.push_str(&" ".repeat(pad));
        if !first.is_empty() {
            self.text.push_str(&paint(&first));
        }
        self.text.push('\n');
        for line in lines {
            self.text.push_str(&" ".repeat(column));
            self.text.push_str(&paint(&line));
            self.text.push('\n');
        }
    }

    /// Wrapped text with the same indent on every line.
    pub(crate) fn paragraph(&mut self, indent: usize, text: &str) {
        self.hang(indent, ("", ""), indent, text, str::to_owned);
    }

    /// A row with a label in the first column.
    pub(crate) fn row(&mut self, label: &str, text: &str) {
        let painted = self.style.dim(label);
        self.hang(0, (label, &painted), COLUMN, text, str::to_owned);
    }

    /// The heading of a section, after an empty line.
    pub(crate) fn heading(&mut self, text: &str) {
        self.text.push('\n');
        let style = self.style;
        self.hang(0, ("", ""), 0, &clean(text), |line| style.bold(line));
    }

    /// A labelled line of a section.
    pub(crate) fn item(&mut self, label: &str, text: &str) {
        let painted = self.style.dim(label);
        self.hang(
            ITEM,
            (label, &painted),
            ITEM_TEXT,
            &clean(text),
            str::to_owned,
        );
    }

    /// A row inside a finding.
    pub(crate) fn detail(&mut self, label: &str, text: &str) {
        let painted = self.style.dim(label);
        self.hang(INSET, (label, &painted), INSET + LABEL, text, str::to_owned);
    }
}

/// Breaks text at spaces; the first line may be shorter than the others. A word that is longer than a line stays whole: it
/// is a path that someone will copy. So does a command in backticks.
pub(crate) fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in words(text) {
        let room = if lines.is_empty() { first } else { rest };
        if !line.is_empty() && line.width() + 1 + word.width() > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines
}

/// What may not be broken: words, and everything between two backticks.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let mut ticks_left = text.matches('`').count();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(command) if open => {
                command.push(' ');
                command.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        for _ in word.matches('`') {
            ticks_left -= 1;
            // A backtick without a partner opens nothing.
            open = !open && ticks_left > 0;
        }
    }
    words
}

/// What stands before a line: told by its shape, colour only helps.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    Good,
    Bad,
    Warning,
    None,
    Unknown,
}

impl Sign {
    pub(crate) fn text(self, style: &Style) -> (&'static str, String) {
        let (ascii, unicode) = match self {
            Sign::Good => ("ok", "\u{2714}"),
            Sign::Bad => ("!!", "\u{2718}"),
            Sign::Warning => ("! ", "!"),
            Sign::None => ("--", "\u{2013}"),
            Sign::Unknown => ("??", "?"),
        };
        let text = if style.unicode { unicode } else { ascii };
        let painted = match self {
            Sign::Good => style.good(text),
            Sign::Bad => style.error(text),
            Sign::Warning => style.warning(text),
            Sign::None => style.dim(text),
            Sign::Unknown => style.note(text),
        };
        (text, painted)
    }
}

pub(crate) fn sign_line(sign: Sign, text: &str, page: &mut Page) {
    let style = page.style;
    let (label, painted) = sign.text(style);
    let column = label.width() + 1;
    page.hang(0, (label, &painted), column, text, |line| style.bold(line));
}
