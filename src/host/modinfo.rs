//! Reads the `.modinfo` section and the appended signature of a kernel module, packed or not.
//!
//! Of a plain file only the section table, its names, `.modinfo` and the end are read. A packed one has to be unpacked up to
//! its end, because the table stands there; that is bounded in bytes and time.

use crate::facts::module_files::ModInfo;
use crate::facts::{Seen, Why};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

/// What unpacking may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    bytes: usize,
    time: Duration,
}

const LIMITS: Limits = Limits {
    bytes: 64 << 20,
    time: Duration::from_millis(300),
};
/// Memory for the dictionary of a packed file; `xz -9` wants 65 MiB.
const DICTIONARY_KIB: u32 = 80 << 10;
/// Most bytes of one part of a module that are read: its section table, its names, its `.modinfo`.
const PART_LIMIT: u64 = 16 << 20;
/// Longest signature that is looked into; real ones have less than 1 kB.
const SIGNATURE_LIMIT: u64 = 64 << 10;
const SIGNATURE_END: &[u8] = b"~Module signature appended~\n";
/// The header before that end.
const SIGNATURE_HEADER: usize = 12;
/// The object id of commonName in a certificate.
const COMMON_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x03];

pub(super) const TRUNCATED: &str = "the file is truncated";
const NO_MODULE: &str = "not a kernel module";

/// Why a file tells nothing.
pub(super) enum Trouble {
    Limit,
    Words(String),
}

impl From<&str> for Trouble {
    fn from(words: &str) -> Trouble {
        Trouble::Words(words.to_owned())
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => TRUNCATED.into(),
            _ => Trouble::Words(format!("the file cannot be read: {error}")),
        }
    }
}

/// What a module file says of itself. Its first bytes tell how it is packed.
pub fn read(file: impl Read + Seek) -> Seen<ModInfo> {
    read_within(file, LIMITS)
}

fn read_within(file: impl Read + Seek, limits: Limits) -> Seen<ModInfo> {
    seen(module_of_any_kind(file, limits))
}

/// What a file said, or why it says nothing.
pub(super) fn seen<T>(answer: Result<T, Trouble>) -> Seen<T> {
    match answer {
        Ok(answer) => Seen::Got(answer),
        Err(Trouble::Limit) => Seen::Unasked(Why::Limit),
        Err(Trouble::Words(words)) => Seen::error(words),
    }
}

fn module_of_any_kind(mut file: impl Read + Seek, limits: Limits) -> Result<ModInfo, Trouble> {
    let mut start = Vec::new();
    file.by_ref().take(6).read_to_end(&mut start)?;
    file.rewind()?;
    let packed = io::BufReader::new(&mut file);
    let bytes = match start.as_slice() {
        [0x7f, b'E', b'L', b'F', ..] => return module(file),
        [0x1f, 0x8b, ..] => unpack(flate2::read::GzDecoder::new(packed), limits)?,
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            let reader = lzma_rust2::XzReader::new_mem_limit(packed, false, DICTIONARY_KIB);
            unpack(reader, limits)?
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let most = u64::from(DICTIONARY_KIB) << 10;
            let reader = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(packed, most)
                .map_err(broken_archive)?;
            unpack(reader, limits)?
        }
        _ => return Err(NO_MODULE.into()),
    };
    module(Cursor::new(bytes))
}

fn broken_archive(error: impl std::fmt::Display) -> Trouble {
    Trouble::Words(format!("the packed module file is broken: {error}"))
}

fn unpack(mut packed: impl Read, limits: Limits) -> Result<Vec<u8>, Trouble> {
    let start = Instant::now();
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        // One byte more than the limit shows that there is more.
        let step = (limits.bytes - before + 1).min(64 << 10);
        packed
            .by_ref()
            .take(step as u64)
            .read_to_end(&mut bytes)
            .map_err(broken_archive)?;
        if bytes.len() - before < step {
            return Ok(bytes);
        }
        if bytes.len() > limits.bytes || start.elapsed() > limits.time {
            return Err(Trouble::Limit);
        }
    }
}

/// What an unpacked module says of itself.
fn module(mut file: impl Read + Seek) -> Result<ModInfo, Trouble> {
    let length = file.seek(SeekFrom::End(0))?;
    let section = modinfo_section(&mut file, length)?;
    let mut info = ModInfo::default();
    for text in section.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(text);
        let Some((key, value)) = text.split_once('=') else {
            continue;
        };
        let field = match key {
            "name" => &mut info.name,
            "version" => &mut info.version,
            "license" => &mut info.license,
            "vermagic" => &mut info.vermagic,
            "srcversion" => &mut info.srcversion,
            _ => continue,
        };
        field.get_or_insert_with(|| value.trim_end().to_owned());
    }
    let signature = signature(&mut file, length)?;
    info.signed = Some(signature.is_some());
    info.signer = signature.and_then(|signature| signer(&signature));
    Ok(info)
}

/// Reads a part of a file; a part that reaches behind the file's end is an error before anything is allocated.
pub(super) fn part(
    file: &mut (impl Read + Seek),
    length: u64,
    offset: u64,
    size: u64,
) -> Result<Vec<u8>, Trouble> {
    if offset.checked_add(size).is_none_or(|end| end > length) {
        return Err(TRUNCATED.into());
    }
    if size > PART_LIMIT {
        return Err(Trouble::Limit);
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != size {
        return Err(TRUNCATED.into());
    }
    Ok(bytes)
}

/// How an ELF file writes its numbers.
#[derive(Clone, Copy)]
struct Layout {
    wide: bool,
    big_endian: bool,
}

impl Layout {
    /// A number of `size` bytes; what lies outside the bytes is an error.
    fn number(self, bytes: &[u8], offset: usize, size: usize) -> Result<u64, Trouble> {
        let field = offset
            .checked_add(size)
            .and_then(|end| bytes.get(offset..end))
            .ok_or(TRUNCATED)?;
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Ok(if self.big_endian {
            field.iter().fold(0, add)
        } else {
            field.iter().rev().fold(0, add)
        })
    }
}

fn modinfo_section(file: &mut (impl Read + Seek), length: u64) -> Result<Vec<u8>, Trouble> {
    let ident = part(file, length, 0, 16)?;
    if !ident.starts_with(b"\x7fELF") {
        return Err(NO_MODULE.into());
    }
    let layout = match (ident[4], ident[5]) {
        (class @ 1..=2, order @ 1..=2) => Layout {
            wide: class == 2,
            big_endian: order == 2,
        },
        _ => return Err(NO_MODULE.into()),
    };
    // Sizes and offsets of the fields, as the ELF specification has them for files of 64 and of 32 bits.
    let (header_size, table_offset, entry_size, word) = if layout.wide {
        (64, 40, 64, 8)
    } else {
        (52, 32, 40, 4)
    };
    let header = part(file, length, 0, header_size)?;
    let counts = header_size as usize - 6;
    let table_at = layout.number(&header, table_offset, word)?;
    let stated_entry_size = layout.number(&header, counts, 2)?;
    let mut count = layout.number(&header, counts + 2, 2)?;
    let mut names_index = layout.number(&header, counts + 4, 2)?;
    if table_at == 0 || stated_entry_size != entry_size {
        return Err(NO_MODULE.into());
    }
    let (name_at, offset_at, size_at, link_at) = (0, 8 + 2 * word, 8 + 3 * word, 8 + 4 * word);
    if count == 0 || names_index == 0xffff {
        // Too many sections for the header: the first entry of the table holds the numbers.
        let first = part(file, length, table_at, entry_size)?;
        if count == 0 {
            count = layout.number(&first, size_at, word)?;
        }
        if names_index == 0xffff {
            names_index = layout.number(&first, link_at, 4)?;
        }
    }
    let table_size = count.checked_mul(entry_size).ok_or(TRUNCATED)?;
    let table = part(file, length, table_at, table_size)?;
    let mut contents = |index: usize| {
        let entry = table
            .chunks_exact(entry_size as usize)
            .nth(index)
            .ok_or(NO_MODULE)?;
        let offset = layout.number(entry, offset_at, word)?;
        let size = layout.number(entry, size_at, word)?;
        part(file, length, offset, size)
    };
    let names = contents(usize::try_from(names_index).map_err(|_| NO_MODULE)?)?;
    for (index, entry) in table.chunks_exact(entry_size as usize).enumerate() {
        let name = usize::try_from(layout.number(entry, name_at, 4)?).map_err(|_| NO_MODULE)?;
        if names
            .get(name..)
            .is_some_and(|name| name.starts_with(b".modinfo\0"))
        {
            return contents(index);
        }
    }
    Err(NO_MODULE.into())
}

/// The signature that is appended to a module. None: there is none.
fn signature(file: &mut (impl Read + Seek), length: u64) -> Result<Option<Vec<u8>>, Trouble> {
    let end_size = (SIGNATURE_HEADER + SIGNATURE_END.len()) as u64;
    let Some(header_at) = length.checked_sub(end_size) else {
        return Ok(None);
    };
    let end = part(file, length, header_at, end_size)?;
    if !end.ends_with(SIGNATURE_END) {
        return Ok(None);
    }
    let size = end[8..SIGNATURE_HEADER]
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    match header_at.checked_sub(size) {
        Some(offset) if size <= SIGNATURE_LIMIT => part(file, length, offset, size).map(Some),
        _ => Err("the module's signature states an impossible length".into()),
    }
}

/// The first common name in a signature: that of the certificate's issuer. None: it names nobody.
fn signer(signature: &[u8]) -> Option<String> {
    let at = signature
        .windows(COMMON_NAME.len())
        .position(|window| window == COMMON_NAME)?;
    let [tag, length, rest @ ..] = &signature[at + COMMON_NAME.len()..] else {
        return None;
    };
    // UTF8String, PrintableString, T61String and IA5String are bytes of text.
    if ![0x0c, 0x13, 0x14, 0x16].contains(tag) {
        return None;
    }
    // Longer than 127 bytes: the length follows in a byte of its own.
    let (length, rest) = match (length, rest) {
        (0x81, [length, rest @ ..]) => (length, rest),
        (length, _) if *length < 0x80 => (length, rest),
        _ => return None,
    };
    let name = rest.get(..usize::from(*length))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const STRINGS: &[u8] = b"license=Dual MIT/GPL\0version=580.65.06\0srcversion=0123456789ABCDEF0123456\0\
        alias=pci:v000010DEd*\0name=nvidia\0vermagic=6.8.0-49-generic SMP preempt mod_unload modversions \0license=second\0noequals\0";

    /// A module with the sections null, `.text` (a text that only looks like modinfo), `.modinfo` and `.shstrtab`.
    fn elf(layout: Layout, strings: &[u8], extended: bool) -> Vec<u8> {
        let put = |bytes: &mut Vec<u8>, value: u64, size: usize| {
            let little = value.to_le_bytes();
            if layout.big_endian {
                bytes.extend(little[..size].iter().rev());
            } else {
                bytes.extend(&little[..size]);
            }
        };
        let (word, header_size, entry_size) = if layout.wide {
            (8, 64, 64)
        } else {
            (4, 52, 40)
        };
        let text = b"\0version=%s\0license=wrong\0";
        let names = b"\0.text\0.modinfo\0.shstrtab\0";
        let text_at = header_size;
        let modinfo_at = text_at + text.len();
        let names_at = modinfo_at + strings.len();
        let table_at = names_at + names.len();
        let mut file = vec![
            0x7f,
            b'E',
            b'L',
            b'F',
            1 + u8::from(layout.wide),
            1 + u8::from(layout.big_endian),
            1,
        ];
        file.resize(16, 0);
        put(&mut file, 1, 2);
        put(&mut file, 62, 2);
        put(&mut file, 1, 4);
        put(&mut file, 0, word);
        put(&mut file, 0, word);
        put(&mut file, table_at as u64, word);
        put(&mut file, 0, 4);
        put(&mut file, header_size as u64, 2);
        put(&mut file, 0, 2);
        put(&mut file, 0, 2);
        put(&mut file, entry_size, 2);
        put(&mut file, if extended { 0 } else { 4 }, 2);
        put(&mut file, if extended { 0xffff } else { 3 }, 2);
        assert_eq!(file.len(), header_size);
        file.extend(text);
        file.extend(strings);
        file.extend(names);
        let (real_count, real_names) = if extended { (4, 3) } else { (0, 0) };
        for (name, at, size, link) in [
            (0, 0, real_count, real_names),
            (1, text_at, text.len(), 0),
            (7, modinfo_at, strings.len(), 0),
            (16, names_at, names.len(), 0),
        ] {
            put(&mut file, name, 4);
            put(&mut file, 1, 4);
            put(&mut file, 0, word);
            put(&mut file, 0, word);
            put(&mut file, at as u64, word);
            put(&mut file, size as u64, word);
            put(&mut file, link, 4);
            put(&mut file, 0, 4);
            put(&mut file, 1, word);
            put(&mut file, 0, word);
        }
        file
    }

    const COMMON: Layout = Layout {
        wide: true,
        big_endian: false,
    };

    fn plain() -> Vec<u8> {
        elf(COMMON, STRINGS, false)
    }

    /// A signature that names its signer after some other bytes.
    fn blob(name: &str) -> Vec<u8> {
        let mut blob = vec![
            0x30, 0x82, 0x01, 0x00, 0x06, 0x03, 0x55, 0x04, 0x0a, 0x0c, 1, b'O',
        ];
        blob.extend(COMMON_NAME);
        blob.push(0x0c);
        if name.len() >= 0x80 {
            blob.push(0x81);
        }
        blob.push(u8::try_from(name.len()).unwrap());
        blob.extend(name.as_bytes());
        blob.extend([0xa5; 40]);
        blob
    }

    fn signed(blob: &[u8]) -> Vec<u8> {
        let mut file = plain();
        file.extend(blob);
        file.extend([0, 0, 2, 0, 0, 0, 0, 0]);
        file.extend(u32::try_from(blob.len()).unwrap().to_be_bytes());
        file.extend(SIGNATURE_END);
        file
    }

    fn expected() -> ModInfo {
        ModInfo {
            name: Some("nvidia".to_owned()),
            version: Some("580.65.06".to_owned()),
            license: Some("Dual MIT/GPL".to_owned()),
            vermagic: Some("6.8.0-49-generic SMP preempt mod_unload modversions".to_owned()),
            srcversion: Some("0123456789ABCDEF0123456".to_owned()),
            signed: Some(false),
            signer: None,
        }
    }

    fn expected_signed(signer: Option<&str>) -> Seen<ModInfo> {
        Seen::Got(ModInfo {
            signed: Some(true),
            signer: signer.map(str::to_owned),
            ..expected()
        })
    }

    fn info(bytes: &[u8]) -> Seen<ModInfo> {
        // Unpacking without optimisation is slow, and nothing here is about time.
        let time = Duration::from_secs(60);
        read_within(Cursor::new(bytes), Limits { time, ..LIMITS })
    }

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    // Both hold `signed(&blob("somebody"))`: `xz --check=crc32 --lzma2=dict=1MiB` and `zstd -19`.
    const XZ: &[u8] = include_bytes!("../../tests/data/module.ko.xz");
    const ZST: &[u8] = include_bytes!("../../tests/data/module.ko.zst");

    #[test]
    fn a_plain_module_is_read_by_its_section_table() {
        for wide in [true, false] {
            for big_endian in [true, false] {
                for extended in [true, false] {
                    let file = elf(Layout { wide, big_endian }, STRINGS, extended);
                    assert_eq!(
                        info(&file),
                        Seen::Got(expected()),
                        "{wide} {big_endian} {extended}"
                    );
                }
            }
        }
        assert_eq!(
            info(&elf(COMMON, b"", false)),
            Seen::Got(ModInfo {
                signed: Some(false),
                ..ModInfo::default()
            })
        );
        assert_eq!(
            info(&elf(COMMON, b"version=a\xff\xfeb", false)).map(|info| info.version),
            Seen::Got(Some("a\u{fffd}\u{fffd}b".to_owned()))
        );
    }

    #[test]
    fn the_signer_is_named() {
        let name = "Canonical Ltd. Secure Boot Signing (2021 v3)";
        assert_eq!(info(&signed(&blob(name))), expected_signed(Some(name)));
        let long = "x".repeat(200);
        assert_eq!(info(&signed(&blob(&long))), expected_signed(Some(&long)));
        assert_eq!(info(&signed(&[0x30; 300])), expected_signed(None));
        assert_eq!(info(&signed(&[])), expected_signed(None));
        // A name of a kind or length that makes no sense is no name.
        for tail in [
            &[][..],
            &[0x0c],
            &[0x0c, 5, b'a'],
            &[0x1e, 1, b'a'],
            &[0x0c, 0x82, 0, 1, b'a'],
            &[0x0c, 0x81],
        ] {
            assert_eq!(
                info(&signed(&[COMMON_NAME, tail].concat())),
                expected_signed(None),
                "{tail:?}"
            );
        }
    }

    #[test]
    fn impossible_signature_lengths_are_errors() {
        let file = signed(&blob("somebody"));
        for length in [
            u32::MAX,
            1 << 31,
            70_000,
            u32::try_from(file.len()).unwrap(),
        ] {
            let mut broken = file.clone();
            let at = broken.len() - SIGNATURE_END.len() - 4;
            broken[at..at + 4].copy_from_slice(&length.to_be_bytes());
            assert!(matches!(info(&broken), Seen::Failed(_)), "{length}");
        }
    }

    #[test]
    fn packed_modules_are_unpacked() {
        let file = signed(&blob("somebody"));
        assert_eq!(info(&gz(&file)), expected_signed(Some("somebody")));
        assert_eq!(info(XZ), expected_signed(Some("somebody")));
        assert_eq!(info(ZST), expected_signed(Some("somebody")));
        assert_eq!(
            info(&gz(b"this is no kernel module")),
            Seen::error(NO_MODULE)
        );
        assert_eq!(info(&gz(b"")), Seen::error(TRUNCATED));
    }

    #[test]
    fn nothing_truncated_is_taken_for_whole() {
        for (kind, file) in [
            ("plain", plain()),
            ("gz", gz(&plain())),
            ("xz", XZ.to_vec()),
            ("zst", ZST.to_vec()),
        ] {
            for length in 0..file.len() {
                assert!(
                    matches!(info(&file[..length]), Seen::Failed(_)),
                    "{kind} {length}"
                );
            }
        }
        // Without its end a signature cannot be seen; what is left is a module all the same.
        let file = signed(&blob("somebody"));
        for length in plain().len()..file.len() {
            assert_eq!(info(&file[..length]), Seen::Got(expected()), "{length}");
        }
    }

    #[test]
    fn no_broken_byte_makes_it_panic() {
        for file in [
            signed(&blob("somebody")),
            gz(&plain()),
            XZ.to_vec(),
            ZST.to_vec(),
        ] {
            for index in 0..file.len() {
                for value in [0, 1, 0x7f, 0x80, 0xff, file[index] ^ 0x10] {
                    let mut broken = file.clone();
                    broken[index] = value;
                    let _ = info(&broken);
                }
            }
        }
    }

    #[test]
    fn other_files_are_no_modules() {
        for bytes in [
            &b""[..],
            b"x",
            b"#!/bin/sh\n",
            b"\x7fELF",
            b"\x1f\x8b",
            b"\xfd7zXZ\0",
            b"\x28\xb5\x2f\xfd",
            &[0; 500],
        ] {
            assert!(matches!(info(bytes), Seen::Failed(_)), "{bytes:?}");
        }
        let mut without_section = plain();
        let at = without_section
            .windows(8)
            .position(|window| window == b".modinfo")
            .unwrap();
        without_section[at + 1] = b'x';
        assert_eq!(info(&without_section), Seen::error(NO_MODULE));
    }

    #[test]
    fn what_unpacks_to_too_much_or_too_slowly_is_left() {
        let bomb = gz(&vec![0; 1 << 20]);
        let bytes = 1 << 16;
        let time = Duration::from_secs(60);
        let limited = |limits| read_within(Cursor::new(&bomb), limits);
        assert_eq!(limited(Limits { bytes, time }), Seen::Unasked(Why::Limit));
        let time = Duration::ZERO;
        assert_eq!(
            limited(Limits { time, ..LIMITS }),
            Seen::Unasked(Why::Limit)
        );
        // A limit that is just not reached is no limit.
        let file = plain();
        let time = Duration::from_secs(60);
        let exact = |bytes| read_within(Cursor::new(gz(&file)), Limits { bytes, time });
        assert_eq!(exact(file.len()), Seen::Got(expected()));
        assert_eq!(exact(file.len() - 1), Seen::Unasked(Why::Limit));
    }
}
