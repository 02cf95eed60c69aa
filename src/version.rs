//! Versions as drivers, kernels and toolkits write them, and the number that stands for a gfx target.

use std::cmp::Ordering;
use std::fmt;

/// A version: its text, ordered by its parts. Numbers are compared as numbers (12.10 is after 12.9, 6.8.0-49 before 6.8.0-100).
#[derive(Clone, Debug)]
pub struct Version {
    text: String,
    parts: Vec<Part>,
}

/// The order of the variants is the order of versions: `6.19-rc1`, `6.19`, `6.19-generic`, `6.19.1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Before(String),
    End,
    Word(String),
    Number(u64),
}

impl Version {
    /// The version in a text. None: it holds no digit.
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim();
        if !text.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        Some(Version {
            text: text.to_owned(),
            parts: parts(text),
        })
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The numbers before the first word: 6, 8, 0, 49 of `6.8.0-49-generic`.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().map_while(|part| match part {
            Part::Number(number) => Some(*number),
            _ => None,
        })
    }

    /// The first number: the branch of an NVIDIA driver, the major version of anything else.
    pub fn major(&self) -> Option<u64> {
        self.numbers().next()
    }
}

fn parts(text: &str) -> Vec<Part> {
    text.split(|c: char| !c.is_alphanumeric())
        .flat_map(digits_apart)
        .map(|piece| match piece.parse::<u64>() {
            Ok(number) => Part::Number(number),
            Err(_) if piece.starts_with(|c: char| c.is_ascii_digit()) => Part::Number(u64::MAX),
            Err(_) => {
                let word = piece.to_lowercase();
                if ["rc", "alpha", "beta", "pre", "dev"].contains(&word.as_str()) {
                    Part::Before(word)
                } else {
                    Part::Word(word)
                }
            }
        })
        .collect()
}

/// `rc1` as `rc` and `1`.
fn digits_apart(word: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let digits = first.is_ascii_digit();
        let end = rest
            .find(|c: char| c.is_ascii_digit() != digits)
            .unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.parts.len().max(other.parts.len());
        let padded = |version: &Version, index: usize| {
            version.parts.get(index).cloned().unwrap_or(Part::End)
        };
        (0..length)
            .map(|index| padded(self, index).cmp(&padded(other, index)))
            .find(|order| order.is_ne())
            // 580.65.06 and 580.65.6: equal in every part, still two texts.
            .unwrap_or_else(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Version {}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The gfx target that KFD writes as a decimal number: 90010 is `gfx90a`, 110501 is `gfx1151`. None: 0 (a processor), or
/// no number of that form.
pub fn gfx_target(version: u64) -> Option<String> {
    let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
    // One hexadecimal digit each: anything above would read as another target.
    (major > 0 && minor < 16 && stepping < 16).then(|| format!("gfx{major}{minor:x}{stepping:x}"))
}

/// The compute capability of a target: `8.9` for `sm_89`; sm_90a and sm_100f are 9.0 and 10.0 with features of one
/// architecture or family.
pub fn compute_capability(target: &str) -> Option<String> {
    let digits = target.strip_prefix("sm_")?;
    let digits = digits.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    (!major.is_empty()).then(|| format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).expect("a version")
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let sorted = [
            "6.1-rc3",
            "6.1",
            "6.1-generic",
            "6.1.0",
            "6.8.0-49-generic",
            "6.8.0-100-generic",
            "12.9",
            "12.10",
            "535.183.01",
            "550.54.14",
            "580.65.06",
            "580.95.05",
            "580.105.08",
        ];
        for (index, low) in sorted.iter().enumerate() {
            for (other, high) in sorted.iter().enumerate() {
                assert_eq!(
                    version(low).cmp(&version(high)),
                    index.cmp(&other),
                    "{low} and {high}"
                );
            }
        }
    }

    #[test]
    fn equal_means_the_same_text() {
        assert_eq!(version(" 580.65.06\n"), version("580.65.06"));
        assert_ne!(version("580.65.06"), version("580.65.6"));
        assert_ne!(
            version("580.65.06").cmp(&version("580.65.6")),
            Ordering::Equal
        );
    }

    #[test]
    fn numbers_end_at_the_first_word() {
        assert_eq!(
            version("6.8.0-49-generic").numbers().collect::<Vec<_>>(),
            [6, 8, 0, 49]
        );
        assert_eq!(version("580.65.06").major(), Some(580));
        assert_eq!(version("v12").major(), None);
    }

    #[test]
    fn nonsense_is_no_version_and_a_huge_number_no_panic() {
        assert!(Version::parse("").is_none());
        assert!(Version::parse("unknown").is_none());
        assert!(version("99999999999999999999999.1") > version("580.1"));
        assert!(version("1.é2") > version("1"));
    }

    #[test]
    fn gfx_targets_are_hexadecimal_in_minor_and_stepping() {
        for (number, name) in [
            (90010, "gfx90a"),
            (90012, "gfx90c"),
            (90402, "gfx942"),
            (90500, "gfx950"),
            (70001, "gfx701"),
            (100306, "gfx1036"),
            (110003, "gfx1103"),
            (110501, "gfx1151"),
            (120001, "gfx1201"),
            (120500, "gfx1250"),
        ] {
            assert_eq!(gfx_target(number).as_deref(), Some(name));
        }
        for number in [0, 7, 9_999, 91_600, 90_016, 90_099] {
            assert_eq!(gfx_target(number), None, "{number}");
        }
    }
}
