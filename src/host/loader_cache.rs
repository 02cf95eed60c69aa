//! Decodes `/etc/ld.so.cache`, which tells the loader of glibc where each library is. Two formats exist: that of glibc 2.2
//! and newer, alone or behind the older one, and the older one alone. The answer is lines as `ldconfig -p` prints them.
//!
//! The layout is that of `struct cache_file` and `struct cache_file_new` in glibc's `sysdeps/generic/dl-cache.h`, and the
//! words for the flags those of `print_entry` in `elf/cache.c`.

use super::LINES_LIMIT;
use crate::facts::Seen;
use std::borrow::Cow;
use std::ffi::CStr;

/// Where it is.
pub const PATH: &str = "/etc/ld.so.cache";
/// Longest cache that is read, in bytes; of a full desktop it has some 200 kB.
pub const LIMIT: usize = 16 << 20;

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;
const NEW_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const NEW_HEADER: usize = 48;
const NEW_ENTRY: usize = 24;
/// Place of the flags in the header; their lowest two bits tell the byte order.
const NEW_FLAGS: usize = 28;
const BIG_ENDIAN: u8 = 3;
/// Longest name or path, in bytes.
const NAME_LIMIT: usize = 4096;

/// Which names of libraries are wanted.
type Wanted<'a> = &'a dyn Fn(&str) -> bool;

/// Lines like `libz.so.1 (libc6,x86-64) => /usr/lib/libz.so.1` for the names that are wanted, in the order of the cache: of
/// equal names the loader takes the first of its own kind.
pub fn decode(bytes: &[u8], wanted: Wanted) -> Seen<String> {
    match lines(bytes, wanted) {
        Some(lines) if lines.len() > LINES_LIMIT => {
            Seen::error(format!("longer than {LINES_LIMIT} bytes"))
        }
        Some(lines) => Seen::Got(lines),
        None => Seen::error("not a cache of the loader"),
    }
}

fn lines(bytes: &[u8], wanted: Wanted) -> Option<String> {
    if !bytes.starts_with(OLD_MAGIC) {
        return new_format(bytes, wanted);
    }
    let count = number(bytes, OLD_HEADER - 4, false)?;
    let end = OLD_HEADER.checked_add(count.checked_mul(OLD_ENTRY)?)?;
    // The structure of the newer format is aligned as its longest number is on the machine that wrote it.
    [end.next_multiple_of(8), end.next_multiple_of(4)]
        .into_iter()
        .filter_map(|at| bytes.get(at..))
        .find_map(|bytes| new_format(bytes, wanted))
        .or_else(|| {
            let entries = bytes.get(OLD_HEADER..end)?.chunks_exact(OLD_ENTRY);
            entries_of(entries, bytes.get(end..)?, false, wanted)
        })
}

/// A cache in the newer format. None: it is none, or broken.
fn new_format(bytes: &[u8], wanted: Wanted) -> Option<String> {
    if !bytes.starts_with(NEW_MAGIC) {
        return None;
    }
    let big = bytes.get(NEW_FLAGS)? & 3 == BIG_ENDIAN;
    let count = number(bytes, NEW_MAGIC.len(), big)?;
    let end = NEW_HEADER.checked_add(count.checked_mul(NEW_ENTRY)?)?;
    let entries = bytes.get(NEW_HEADER..end)?.chunks_exact(NEW_ENTRY);
    entries_of(entries, bytes, big, wanted)
}

/// Each entry begins with flags, and the places of its name and its path among the strings. Any number of entries may name
/// the same long strings, so the lines may become far longer than the cache: beyond the limit nothing is added.
fn entries_of<'a>(
    entries: impl Iterator<Item = &'a [u8]>,
    strings: &[u8],
    big: bool,
    wanted: Wanted,
) -> Option<String> {
    let mut lines = String::new();
    for entry in entries {
        let name = one_line(string(strings, number(entry, 4, big)?)?);
        let path = string(strings, number(entry, 8, big)?)?;
        if wanted(&name) && lines.len() <= LINES_LIMIT {
            let kind = kind(number(entry, 0, big)?);
            lines += &format!("{name} ({kind}) => {}\n", one_line(path));
        }
    }
    Some(lines)
}

fn number(bytes: &[u8], at: usize, big: bool) -> Option<usize> {
    let field = bytes.get(at..)?.first_chunk::<4>()?;
    let value = if big {
        u32::from_be_bytes(*field)
    } else {
        u32::from_le_bytes(*field)
    };
    usize::try_from(value).ok()
}

fn string(strings: &[u8], at: usize) -> Option<&[u8]> {
    let rest = strings.get(at..)?;
    let text = CStr::from_bytes_until_nul(&rest[..rest.len().min(NAME_LIMIT)]);
    text.ok().map(CStr::to_bytes)
}

/// One line, whatever stands there.
fn one_line(bytes: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(bytes) {
        text if text.contains(['\n', '\r']) => text.replace(['\n', '\r'], "\u{fffd}").into(),
        text => text,
    }
}

/// Kind of an entry in words.
fn kind(flags: usize) -> String {
    let library = match flags & 0xff {
        0 => "libc4",
        1 => "ELF",
        2 => "libc5",
        3 => "libc6",
        _ => "unknown",
    };
    let machine = match flags & 0xff00 {
        0 => "",
        0x0300 => ",x86-64",
        0x0200 => ",IA-64",
        0x0100 | 0x0400 | 0x0500 | 0x0700 => ",64bit",
        0x0600 => ",N32",
        0x0800 => ",x32",
        0x0900 => ",hard-float",
        0x0a00 => ",AArch64",
        0x0b00 | 0x0f00 | 0x1100 => ",soft-float",
        0x1000 | 0x1200 => ",double-float",
        other => return format!("{library},{other}"),
    };
    format!("{library}{machine}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    const STRINGS: &[u8] = b"libcuda.so.1\0/usr/lib/libcuda.so.1\0";
    const LINE: &str = "libcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1\n";

    fn all(_: &str) -> bool {
        true
    }

    fn words(file: &mut Vec<u8>, values: &[u32]) {
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    fn new_cache() -> Vec<u8> {
        let mut file = NEW_MAGIC.to_vec();
        words(&mut file, &[1, STRINGS.len() as u32, 2, 0, 0, 0, 0]);
        let at = (NEW_HEADER + NEW_ENTRY) as u32;
        words(&mut file, &[0x0303, at, at + 13, 0, 0, 0]);
        file.extend(STRINGS);
        file
    }

    fn old_cache() -> Vec<u8> {
        let mut file = OLD_MAGIC.to_vec();
        file.push(0);
        words(&mut file, &[1, 0x0303, 0, 13]);
        file
    }

    #[test]
    fn all_three_forms() {
        let old_alone = [old_cache(), STRINGS.to_vec()].concat();
        let mut both = old_cache();
        both.resize(both.len().next_multiple_of(8), 0);
        both.extend(new_cache());
        for cache in [new_cache(), old_alone, both] {
            assert_eq!(decode(&cache, &all), Seen::Got(LINE.to_owned()));
        }
    }

    #[test]
    fn the_cache_of_this_system() {
        let (Ok(cache), Ok(output)) = (
            fs::read(PATH),
            Command::new("/sbin/ldconfig").arg("-p").output(),
        ) else {
            return;
        };
        let printed = String::from_utf8(output.stdout).expect("text");
        // What follows the kind (a processor, a kernel) is left out here.
        let expected: Vec<String> = printed
            .lines()
            .filter_map(|line| {
                let (name, rest) = line.strip_prefix('\t')?.split_once(" (")?;
                let (kind, path) = rest.split_once(") => ")?;
                let kind = kind.split(", ").next()?;
                Some(format!("{name} ({kind}) => {path}"))
            })
            .collect();
        let decoded = decode(&cache, &all).into_got().expect("the cache");
        assert_eq!(decoded.lines().collect::<Vec<_>>(), expected);
        assert!(expected.iter().any(|line| line.starts_with("libc.so.6 (")));
    }

    #[test]
    fn a_broken_cache_is_an_error() {
        for bytes in [
            &b""[..],
            b"ld.so-1.7.0",
            NEW_MAGIC,
            b"\x7fELF",
            b"libc.so.6",
        ] {
            assert!(decode(bytes, &all).is_unknown(), "{bytes:?}");
        }
        for cache in [new_cache(), [old_cache(), STRINGS.to_vec()].concat()] {
            for length in 0..cache.len() {
                assert!(decode(&cache[..length], &all).is_unknown(), "{length}");
            }
            for at in 0..cache.len() {
                let mut broken = cache.clone();
                broken[at..]
                    .iter_mut()
                    .take(4)
                    .for_each(|byte| *byte = 0xff);
                let _ = decode(&broken, &all);
            }
        }
    }

    #[test]
    fn a_name_stays_on_its_line() {
        let mut cache = new_cache();
        let at = cache.len() - STRINGS.len();
        cache[at] = b'\n';
        let lines = decode(&cache, &all).into_got().expect("an answer");
        assert_eq!(lines.lines().count(), 1);
    }

    #[test]
    fn only_what_is_wanted_and_no_more_than_the_limit() {
        let cache = new_cache();
        assert_eq!(
            decode(&cache, &|name| name == "x"),
            Seen::Got(String::new())
        );
        let wanted = decode(&cache, &|name| name == "libcuda.so.1");
        assert_eq!(wanted, Seen::Got(LINE.to_owned()));
        // Each entry names the same strings, which are as long as they may be.
        let count = LINES_LIMIT / NAME_LIMIT;
        let at = (NEW_HEADER + NEW_ENTRY * count) as u32;
        let mut cache = NEW_MAGIC.to_vec();
        words(&mut cache, &[count as u32, 0, 2, 0, 0, 0, 0]);
        for _ in 0..count {
            words(&mut cache, &[0x0303, at, at, 0, 0, 0]);
        }
        cache.extend([b'x'; NAME_LIMIT - 1]);
        cache.push(0);
        assert!(decode(&cache, &all).is_unknown());
        assert_eq!(decode(&cache, &|_| false), Seen::Got(String::new()));
    }
}
