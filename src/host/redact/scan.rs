//! Finds private values in text by their form alone.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Stands for a value that has no form worth keeping.
pub const REDACTED: &str = "REDACTED";
/// Of the ranges kept for documentation, so that nobody takes them for real addresses.
const SOME_IPV4: &str = "192.0.2.1";
const SOME_IPV6: &str = "2001:db8::1";
const SOME_MAC: &str = "00:00:00:00:00:00";
/// Longest text of an IPv6 address.
const LONGEST_IPV6: usize = 45;
/// Digits of the ids that container engines make up.
const CONTAINER_ID: usize = 32;
/// A secret in the middle of any text is at least this long; what is shorter is a setting.
const LONG_SECRET: usize = 16;

/// Rewrites a text. At each place where `find` sees something, what it returns stands instead of as many bytes.
pub fn rewrite(text: &str, find: impl Fn(&str, usize) -> Option<(usize, String)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        match find(text, at) {
            Some((length, instead)) if length > 0 => {
                out.push_str(&instead);
                at += length;
            }
            _ => {
                out.push(next);
                at += next.len_utf8();
            }
        }
    }
    out
}

/// The byte before a place is none of a word.
pub fn starts_word(text: &str, at: usize) -> bool {
    at == 0 || !text.as_bytes()[at - 1].is_ascii_alphanumeric()
}

/// The byte at a place is none of a word.
fn ends_word(text: &str, at: usize) -> bool {
    text.as_bytes()
        .get(at)
        .is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

/// Length of the run of bytes that `belongs` accepts.
pub fn run(text: &str, at: usize, mut belongs: impl FnMut(u8) -> bool) -> usize {
    text.as_bytes()[at..]
        .iter()
        .take_while(|byte| belongs(**byte))
        .count()
}

/// A whole UUID at this place.
pub fn uuid_at(text: &str, at: usize) -> Option<&str> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let candidate = text.get(at..at + 36)?;
    let parts = candidate.split('-').map(str::len);
    let digits = candidate
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    (starts_word(text, at) && digits && parts.eq(LENGTHS) && ends_word(text, at + 36))
        .then_some(candidate)
}

/// Exactly so many hex digits at this place.
pub fn hex_at(text: &str, at: usize, length: usize) -> Option<&str> {
    if !starts_word(text, at) {
        return None;
    }
    let found = run(text, at, |byte| byte.is_ascii_hexdigit());
    (found == length && ends_word(text, at + length)).then(|| &text[at..at + length])
}

/// Ids of containers and pods, as they stand in the paths of control groups: long runs of hex digits, with dashes or
/// underscores at the places of a UUID's or without.
pub fn without_container_ids(text: &str) -> String {
    rewrite(text, |text, at| {
        let begins = starts_word(text, at) || text[..at].ends_with("pod");
        if !begins || !text.as_bytes()[at].is_ascii_hexdigit() {
            return None;
        }
        let length = run(text, at, |byte| {
            byte.is_ascii_hexdigit() || b"-_".contains(&byte)
        });
        let digits = text[at..at + length].bytes().filter(u8::is_ascii_hexdigit);
        (digits.count() >= CONTAINER_ID).then(|| (length, REDACTED.to_owned()))
    })
}

/// How the names of network adapters begin that are made of their hardware address (systemd.net-naming-scheme(7)).
const NAMED_BY_ADDRESS: [&str; 3] = ["enx", "wlx", "wwx"];

/// The name of an adapter that is made of its hardware address: `enx525400abcdef`.
pub fn adapter_at(text: &str, at: usize) -> Option<(usize, String)> {
    let kind = text.get(at..at + 3)?;
    let digits = run(text, at + 3, |byte| byte.is_ascii_hexdigit());
    let is_one = NAMED_BY_ADDRESS.contains(&kind)
        && digits == 12
        && starts_word(text, at)
        && ends_word(text, at + 15);
    is_one.then(|| (15, format!("{kind}000000000000")))
}

/// A hardware address at this place.
pub fn mac_at(text: &str, at: usize) -> Option<(usize, String)> {
    let candidate = text.get(at..at + 17)?;
    let alone = (at == 0 || text.as_bytes()[at - 1] != b':')
        && text.as_bytes().get(at + 17) != Some(&b':')
        && starts_word(text, at)
        && ends_word(text, at + 17);
    let mut pairs = candidate.split(':');
    let shaped =
        pairs.all(|pair| pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (alone && shaped).then(|| (17, SOME_MAC.to_owned()))
}

/// Accounts that distributions build with; who they are is no secret and tells where a kernel comes from.
const BUILDERS: [&str; 10] = [
    "USER",
    "Microsoft",
    "buildd",
    "builder",
    "debian-kernel",
    "linux",
    "mockbuild",
    "nixbld",
    "dvs-builder",
    "root",
];

/// `(user@host)` at this place, as compilers leave it in version texts.
pub fn builder_at(text: &str, at: usize) -> Option<(usize, String)> {
    let word = |at| {
        let length = run(text, at, |byte| {
            byte.is_ascii_alphanumeric() || b"._-+".contains(&byte)
        });
        (length > 0).then_some(at + length)
    };
    let bytes = text.as_bytes();
    let user_end = word(at + 1).filter(|end| bytes.get(*end) == Some(&b'@'))?;
    let host_end = word(user_end + 1).filter(|end| bytes.get(*end) == Some(&b')'))?;
    let user = &text[at + 1..user_end];
    let user = if BUILDERS.contains(&user) {
        user
    } else {
        "USER"
    };
    Some((host_end + 1 - at, format!("({user}@HOST)")))
}

/// `://user:password@` at this place.
pub fn login_at(text: &str, at: usize) -> Option<(usize, String)> {
    let rest = text[at..].strip_prefix("://")?;
    let authority = run(rest, 0, |byte| {
        !byte.is_ascii_whitespace() && !b"/?#\"'<>".contains(&byte)
    });
    let login = rest[..authority].rfind('@')?;
    Some((3 + login + 1, format!("://{REDACTED}@")))
}

/// `token=...` and the like at this place, with a long value that looks like a secret.
pub fn long_secret_at(text: &str, at: usize) -> Option<(usize, String)> {
    let in_key = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    // Only the whole key: looking at each of its ends would take the square of a long text's length.
    if at > 0 && in_key(text.as_bytes()[at - 1]) {
        return None;
    }
    let key = run(text, at, in_key);
    if key == 0 || text.as_bytes().get(at + key) != Some(&b'=') {
        return None;
    }
    let value_at = at + key + 1;
    let value = run(text, value_at, |byte| {
        byte.is_ascii_alphanumeric() || b"+/=_-.".contains(&byte)
    });
    (value >= LONG_SECRET && is_secret(&text[at..at + key])).then(|| {
        (
            key + 1 + value,
            format!("{}={REDACTED}", &text[at..at + key]),
        )
    })
}

/// A token that says by its beginning which service gave it out.
pub fn known_token_at(text: &str, at: usize) -> Option<(usize, String)> {
    const BEGINNINGS: [&str; 8] = [
        "hf_",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "nvapi-",
        "xoxb-",
    ];
    let start = BEGINNINGS
        .iter()
        .find(|start| text[at..].starts_with(**start))?;
    let random = run(text, at + start.len(), |byte| byte.is_ascii_alphanumeric());
    (random >= LONG_SECRET).then(|| {
        let length = run(text, at, |byte| {
            byte.is_ascii_alphanumeric() || b"_-".contains(&byte)
        });
        (length, REDACTED.to_owned())
    })
}

/// The name of a variable, option or parameter says that its value is secret.
pub fn is_secret(name: &str) -> bool {
    const ENDS: [&str; 6] = ["key", "token", "secret", "password", "passwd", "passphrase"];
    const WORDS: [&str; 7] = [
        "keys",
        "tokens",
        "secrets",
        "pass",
        "auth",
        "credential",
        "credentials",
    ];
    name.to_ascii_lowercase()
        .split(['.', '_', '-'])
        .any(|word| ENDS.iter().any(|end| word.ends_with(end)) || WORDS.contains(&word))
}

/// Replaces network addresses. Masks, loopback and the addresses kept for documentation say nothing and stay.
pub fn without_addresses(text: &str) -> String {
    rewrite(text, |text, at| {
        ipv4_at(text, at).or_else(|| ipv6_at(text, at))
    })
}

fn ipv4_at(text: &str, at: usize) -> Option<(usize, String)> {
    // Behind a letter, a dash or a dot it is a part of a name or of a version.
    if at > 0 && (!starts_word(text, at) || b"._+-".contains(&text.as_bytes()[at - 1])) {
        return None;
    }
    let length = run(text, at, |byte| byte.is_ascii_digit() || byte == b'.');
    let candidate = text[at..at + length].trim_end_matches('.');
    let next = text.as_bytes().get(at + candidate.len());
    if next.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(byte)) {
        return None;
    }
    let address: Ipv4Addr = candidate.parse().ok()?;
    let [first, ..] = address.octets();
    let plain = address.is_loopback() || address.is_documentation() || first == 0 || first == 255;
    (!plain).then(|| (candidate.len(), SOME_IPV4.to_owned()))
}

fn ipv6_at(text: &str, at: usize) -> Option<(usize, String)> {
    if !starts_word(text, at) || at > 0 && text.as_bytes()[at - 1] == b':' {
        return None;
    }
    let length = text.as_bytes()[at..]
        .iter()
        .take(LONGEST_IPV6 + 1)
        .take_while(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte))
        .count();
    let candidate = &text[at..at + length];
    if !ends_word(text, at + length) {
        return None;
    }
    let address: Ipv6Addr = candidate.parse().ok()?;
    let plain = address.is_loopback()
        || address.is_unspecified()
        || address.segments()[..2] == [0x2001, 0xdb8];
    (!plain).then(|| (length, SOME_IPV6.to_owned()))
}
