//! The JSON document, schema 1.

use super::Report;
use super::style::is_unsafe;
use std::fmt::Write as _;
use std::io;

/// Writes the report: the fields in the order of the schema, two spaces a level, a line end at the end.
pub fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(text(report)?.as_bytes())
}

/// Any value in the form of the report.
pub(crate) fn text<T: serde::Serialize>(value: &T) -> io::Result<String> {
    let mut text = safe(serde_json::to_string_pretty(value)?);
    text.push('\n');
    Ok(text)
}

/// JSON leaves characters alone that steer a terminal all the same. They can only stand in strings, where an escape means
/// the same.
fn safe(json: String) -> String {
    let stands_in_a_string = |character: char| character != '\n' && is_unsafe(character);
    if !json.chars().any(stands_in_a_string) {
        return json;
    }
    let mut safe = String::with_capacity(json.len() + 8);
    for character in json.chars() {
        if stands_in_a_string(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_means_the_same() {
        let value = "a\u{1b}[0m\u{9b}\u{202e}\u{e0041}\u{7f}\n✓";
        let json = text(&vec![value]).expect("a string");
        assert_eq!(
            json,
            "[\n  \"a\\u001b[0m\\u009b\\u202e\\udb40\\udc41\\u007f\\n✓\"\n]\n"
        );
        let read: Vec<String> = serde_json::from_str(&json).expect("JSON");
        assert_eq!(read, [value]);
    }

    /// `docs/report.schema.json` is made here, so that the program itself carries nothing that makes schemas.
    #[test]
    fn the_committed_schema_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/report.schema.json");
        let schema = schemars::schema_for!(crate::report::Report);
        let text = serde_json::to_string_pretty(&schema).expect("a schema") + "\n";
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &text).expect("docs can be written");
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == text,
            "docs/report.schema.json is not that of the types: `BLESS=1 cargo test` writes it"
        );
    }
}
