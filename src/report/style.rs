//! Colour, width and signs, decided once per stream. The only file that names the crate `colored`.

use crate::facts::is_invisible;
use colored::{Color, ColoredString, Colorize};
use std::fmt::Write as _;

/// How a stream is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// Escape sequences for colour may be written.
    pub colour: bool,
    /// Columns to fill, 40 to 100.
    pub width: usize,
    /// Characters beyond ASCII may be written.
    pub unicode: bool,
}

/// How much the report says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// What is wrong and nothing else.
    Quiet,
    /// What matters.
    #[default]
    Normal,
    /// Every answer of every check, and what each source took.
    Verbose,
}

/// Columns where nobody says how many there are.
const USUAL_WIDTH: usize = 80;
/// Fewer cannot hold a report.
const LEAST_WIDTH: usize = 40;
/// Longer lines are hard to read.
const MOST_WIDTH: usize = 100;

impl Style {
    /// ASCII without colour, 80 columns: for streams that nobody looks at, and for tests.
    pub fn plain() -> Style {
        Style {
            colour: false,
            width: USUAL_WIDTH,
            unicode: false,
        }
    }

    /// Decides for one stream. `asked` is `--color always` or `never`, `terminal` says whether the stream is one, with its
    /// columns where they are known; `variable` looks up an environment variable.
    pub fn decide(
        asked: Option<bool>,
        terminal: bool,
        columns: Option<usize>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Style {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let colour = asked.unwrap_or_else(|| {
            if set("NO_COLOR").is_some() {
                return false;
            }
            if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
                return true;
            }
            terminal
                && set("CLICOLOR").is_none_or(|value| value != "0")
                && set("TERM").is_some_and(|value| value != "dumb")
        });
        let width = set("COLUMNS")
            .and_then(|value| value.parse().ok())
            .filter(|columns| *columns > 0)
            .or(columns.filter(|columns| *columns > 0))
            .unwrap_or(USUAL_WIDTH)
            .clamp(LEAST_WIDTH, MOST_WIDTH);
        let unicode = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| set(name))
            .is_some_and(|locale| {
                let locale = locale.to_ascii_lowercase();
                locale.contains("utf-8") || locale.contains("utf8")
            });
        Style {
            colour,
            width,
            unicode,
        }
    }

    /// Text about an error.
    pub fn error(&self, text: &str) -> String {
        self.paint(text, |text| text.color(Color::Red).bold())
    }

    /// Text about a warning.
    pub fn warning(&self, text: &str) -> String {
        self.paint(text, |text| text.color(Color::Yellow).bold())
    }

    /// Text about a note.
    pub fn note(&self, text: &str) -> String {
        self.paint(text, |text| text.color(Color::Cyan))
    }

    /// Text about what is right.
    pub fn good(&self, text: &str) -> String {
        self.paint(text, |text| text.color(Color::Green))
    }

    /// What may be skipped when reading.
    pub fn dim(&self, text: &str) -> String {
        self.paint(text, |text| text.dimmed())
    }

    /// Headings.
    pub fn bold(&self, text: &str) -> String {
        self.paint(text, |text| text.bold())
    }

    /// A path, a command, a variable.
    pub fn path(&self, text: &str) -> String {
        self.paint(text, |text| text.underline())
    }

    fn paint(&self, text: &str, paint: impl FnOnce(&str) -> ColoredString) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        // `colored` has a switch of its own that looks at stdout alone; here the style of the stream decides.
        colored::control::set_override(true);
        paint(text).to_string()
    }
}

/// The text with everything made visible that could steer a terminal or disguise what stands there: control characters,
/// escape sequences, line ends, characters without width, marks that turn the direction of writing.
pub fn clean(text: &str) -> String {
    if !text.chars().any(is_unsafe) {
        return text.to_owned();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            _ if !is_unsafe(character) => safe.push(character),
            '\0'..='\u{ff}' => {
                let _ = write!(safe, "\\x{:02x}", u32::from(character));
            }
            _ => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
            }
        }
    }
    safe
}

/// Could steer a terminal or disguise the text around it.
pub(crate) fn is_unsafe(character: char) -> bool {
    character.is_control() || is_invisible(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(asked: Option<bool>, terminal: bool, variables: &[(&str, &str)]) -> Style {
        Style::decide(asked, terminal, None, &|name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn colour_follows_flag_then_variables_then_terminal() {
        let xterm = ("TERM", "xterm");
        for (asked, terminal, variables, colour) in [
            (None, true, vec![xterm], true),
            (None, false, vec![xterm], false),
            (None, true, vec![], false),
            (None, true, vec![("TERM", "dumb")], false),
            (None, true, vec![xterm, ("NO_COLOR", "1")], false),
            (None, true, vec![xterm, ("NO_COLOR", "")], true),
            (None, false, vec![("CLICOLOR_FORCE", "1")], true),
            (None, false, vec![("CLICOLOR_FORCE", "0")], false),
            (None, true, vec![xterm, ("CLICOLOR", "0")], false),
            (
                None,
                false,
                vec![("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
                false,
            ),
            (Some(true), false, vec![("NO_COLOR", "1")], true),
            (
                Some(false),
                true,
                vec![xterm, ("CLICOLOR_FORCE", "1")],
                false,
            ),
        ] {
            assert_eq!(
                decide(asked, terminal, &variables).colour,
                colour,
                "{asked:?} {terminal} {variables:?}"
            );
        }
    }

    #[test]
    fn width_and_signs() {
        assert_eq!(decide(None, false, &[]).width, 80);
        assert_eq!(decide(None, false, &[("COLUMNS", "90")]).width, 90);
        assert_eq!(decide(None, false, &[("COLUMNS", "400")]).width, 100);
        assert_eq!(decide(None, false, &[("COLUMNS", "3")]).width, 40);
        assert_eq!(decide(None, false, &[("COLUMNS", "wide")]).width, 80);
        assert_eq!(Style::decide(None, true, Some(64), &|_| None).width, 64);
        assert_eq!(Style::decide(None, true, Some(0), &|_| None).width, 80);
        assert!(decide(None, false, &[("LANG", "de_DE.UTF-8")]).unicode);
        assert!(!decide(None, false, &[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]).unicode);
        assert!(!decide(None, false, &[]).unicode);
    }

    #[test]
    fn painting_is_the_styles_own_decision() {
        let colourful = decide(Some(true), false, &[]);
        assert!(colourful.error("x").starts_with('\u{1b}'));
        assert!(colourful.error("x").ends_with("\u{1b}[0m"));
        assert_eq!(colourful.dim(""), "");
        for painted in [
            Style::plain().error("x"),
            Style::plain().bold("x"),
            Style::plain().path("x"),
        ] {
            assert_eq!(painted, "x");
        }
    }

    #[test]
    fn clean_text_steers_no_terminal() {
        assert_eq!(
            clean("GeForce RTX 4090 ✓ \\x1b"),
            "GeForce RTX 4090 ✓ \\x1b"
        );
        assert_eq!(clean("a\u{1b}[31mb"), "a\\x1b[31mb");
        assert_eq!(clean("a\nb\r\tc\0"), "a\\nb\\r\\tc\\x00");
        assert_eq!(clean("\u{9b}2J\u{7f}"), "\\x9b2J\\x7f");
        assert_eq!(clean("a\u{202e}b\u{2066}"), "a\\u{202e}b\\u{2066}");
        assert!(!clean("\u{200b}\u{feff}").chars().any(is_unsafe));
    }
}
