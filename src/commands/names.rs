//! Names of checks as users type them: patterns, older names, near misses.

use crate::checks;
use crate::tables::Tables;

/// Names of all checks.
pub fn all() -> Vec<&'static str> {
    checks::ALL.iter().map(|check| check.name).collect()
}

/// The check that was once called this.
pub fn of_alias(alias: &str, tables: &Tables) -> Option<&'static str> {
    let names = all();
    let row = tables
        .checks(&names)
        .into_iter()
        .find(|row| row.aliases.iter().any(|known| known == alias))?;
    names.into_iter().find(|name| *name == row.name)
}

/// Whether the pattern describes the whole name; `*` stands for any characters, `?` for one.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut seen) = (0, 0);
    // Where to go on when what follows the last star did not fit.
    let mut star = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, seen));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || *wanted == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (at, seen) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|left| *left == b'*')
}

/// At most three names that may have been meant, best first; capitals make no difference.
pub fn nearest<'a>(typed: &str, names: &[&'a str]) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let distance = distance(&typed, &lower);
            let close = distance <= (typed.len() / 3).max(2);
            let part = typed.len() >= 3 && lower.contains(&typed);
            (close || part).then_some((distance, *name))
        })
        .collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// What to add to an error about a name that nobody knows.
pub fn hint(typed: &str, names: &[&str]) -> String {
    let lower = typed.to_lowercase();
    if lower != typed && names.iter().any(|name| matches(&lower, name)) {
        return format!("names are in lower case: `{lower}`");
    }
    let near = nearest(&lower, names);
    if near.is_empty() {
        return "`gpucheck list` shows all".to_owned();
    }
    let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    format!("did you mean {}?", quoted.join(" or "))
}

/// How many characters must be added, taken away or replaced to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    // Longer than any name: no near miss, and the work grows with the length.
    if one.len() > 200 {
        return usize::MAX;
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, character) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, compared) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(*compared != character);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("a", "a"),
            ("*", ""),
            ("*", "abc"),
            ("nvidia-*", "nvidia-driver-not-installed"),
            ("*-bound", "nouveau-bound"),
            ("n*o*d", "nouveau-bound"),
            ("a?c", "abc"),
            ("**a", "aaa"),
            ("*ab", "aab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("a", "ab"),
            ("?", ""),
            ("a?", "a"),
            ("nvidia-*", "amdgpu-nvidia-x"),
            ("*-bound", "nouveau-bound-x"),
            ("[a]", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        // Stays quick where a naive matcher does not.
        assert!(!matches(&"*a".repeat(40), &"b".repeat(2000)));
    }

    #[test]
    fn near_misses() {
        let names = [
            "nouveau-bound",
            "nvidia-driver-not-installed",
            "gpu-fell-off-bus",
        ];
        assert_eq!(nearest("nouveau-bond", &names), ["nouveau-bound"]);
        assert_eq!(
            nearest("driver-not-installed", &names),
            ["nvidia-driver-not-installed"]
        );
        assert!(nearest("xyz", &names).is_empty());
        assert_eq!(
            hint("NVIDIA-*", &names),
            "names are in lower case: `nvidia-*`"
        );
        assert_eq!(
            hint("NOUVEAU-BOND", &names),
            "did you mean `nouveau-bound`?"
        );
        assert!(nearest(&"x".repeat(100_000), &names).is_empty());
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
