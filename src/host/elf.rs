//! Reads what an ELF file tells the loader: its class, its name and what it needs. Of the file only the header, the
//! program headers, the dynamic section and the names are read, each of them bounded: a library may be large, or none.

use super::modinfo::{TRUNCATED, Trouble, part, seen};
use crate::facts::Seen;
use crate::facts::software::Elf;
use ::elf::abi;
use ::elf::dynamic::Dyn;
use ::elf::endian::AnyEndian;
use ::elf::file::{Class, FileHeader, parse_ident};
use ::elf::parse::{ParseAt, ParseError, ParsingTable};
use ::elf::segment::ProgramHeader;
use std::io::{Read, Seek, SeekFrom};

/// Bytes of a header of 64 bits, the longer one.
const HEADER_SIZE: u64 = 64;
/// Most entries of the dynamic section that are looked at; real ones have some thirty.
const MOST_ENTRIES: usize = 4096;
/// Most names of one kind that are kept.
const MOST_NAMES: usize = 256;
/// Longest name, in bytes.
const NAME_LIMIT: usize = 4096;

const NO_ELF: &str = "not an ELF file";

/// What an ELF file says of itself.
pub fn read(mut file: impl Read + Seek) -> Seen<Elf> {
    seen(parse(&mut file))
}

impl From<ParseError> for Trouble {
    fn from(error: ParseError) -> Trouble {
        match error {
            ParseError::BadMagic(_)
            | ParseError::UnsupportedElfClass(_)
            | ParseError::UnsupportedElfEndianness(_)
            | ParseError::UnsupportedVersion(_) => NO_ELF.into(),
            ParseError::SliceReadError(_) => TRUNCATED.into(),
            error => Trouble::Words(format!("the ELF file is broken: {error}")),
        }
    }
}

fn parse(file: &mut (impl Read + Seek)) -> Result<Elf, Trouble> {
    let length = file.seek(SeekFrom::End(0))?;
    if length == 0 {
        return Err("the file is empty".into());
    }
    let head = part(file, length, 0, length.min(HEADER_SIZE))?;
    if !head.starts_with(&abi::ELFMAGIC) {
        return Err(NO_ELF.into());
    }
    let (ident, rest) = head.split_at_checked(abi::EI_NIDENT).ok_or(TRUNCATED)?;
    let header = FileHeader::parse_tail(parse_ident::<AnyEndian>(ident)?, rest)?;
    let mut elf = Elf {
        class: match header.class {
            Class::ELF32 => 32,
            Class::ELF64 => 64,
        },
        machine: machine(header.e_machine),
        ..Elf::default()
    };
    let segments: Vec<ProgramHeader> = if header.e_phoff == 0 {
        Vec::new()
    } else {
        let size = ProgramHeader::validate_entsize(header.class, header.e_phentsize.into())?;
        let table = size as u64 * u64::from(header.e_phnum);
        let table = part(file, length, header.e_phoff, table)?;
        ParsingTable::new(header.endianness, header.class, &table)
            .iter()
            .collect()
    };
    let Some(dynamic) = segments
        .iter()
        .find(|segment| segment.p_type == abi::PT_DYNAMIC)
    else {
        return Ok(elf);
    };
    let table = part(file, length, dynamic.p_offset, dynamic.p_filesz)?;
    let entries: Vec<Dyn> = ParsingTable::new(header.endianness, header.class, &table)
        .iter()
        .take_while(|entry: &Dyn| entry.d_tag != abi::DT_NULL)
        .take(MOST_ENTRIES)
        .collect();
    let value = |tag| {
        let found = entries.iter().find(|entry| entry.d_tag == tag);
        found.map(Dyn::d_val)
    };
    let (Some(address), Some(size)) = (value(abi::DT_STRTAB), value(abi::DT_STRSZ)) else {
        return Ok(elf);
    };
    let offset = offset_of(&segments, address).ok_or("the ELF file has no names")?;
    let names = part(file, length, offset, size)?;
    for entry in &entries {
        let wanted = [
            abi::DT_SONAME,
            abi::DT_NEEDED,
            abi::DT_RPATH,
            abi::DT_RUNPATH,
        ];
        if !wanted.contains(&entry.d_tag) {
            continue;
        }
        let name = name_at(&names, entry.d_val()).ok_or(TRUNCATED)?;
        match entry.d_tag {
            abi::DT_SONAME => elf.soname = Some(name),
            abi::DT_NEEDED if elf.needed.len() < MOST_NAMES => elf.needed.push(name),
            abi::DT_RPATH | abi::DT_RUNPATH => {
                let folders = name.split(':').filter(|folder| !folder.is_empty());
                elf.runpath.extend(folders.map(str::to_owned));
                elf.runpath.truncate(MOST_NAMES);
            }
            _ => {}
        }
    }
    Ok(elf)
}

/// Where in the file an address of the loaded library comes from.
fn offset_of(segments: &[ProgramHeader], address: u64) -> Option<u64> {
    segments
        .iter()
        .filter(|segment| segment.p_type == abi::PT_LOAD)
        .find_map(|segment| {
            let inside = address.checked_sub(segment.p_vaddr)?;
            (inside < segment.p_filesz).then(|| segment.p_offset.checked_add(inside))?
        })
}

/// The name that begins at this place of the names. None: it has no end there.
fn name_at(names: &[u8], at: u64) -> Option<String> {
    let rest = names.get(usize::try_from(at).ok()?..)?;
    let length = rest.iter().take(NAME_LIMIT).position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..length]).into_owned())
}

fn machine(number: u16) -> String {
    match number {
        abi::EM_386 => "i386".to_owned(),
        abi::EM_X86_64 => "x86_64".to_owned(),
        abi::EM_ARM => "arm".to_owned(),
        abi::EM_AARCH64 => "aarch64".to_owned(),
        abi::EM_PPC64 => "ppc64".to_owned(),
        abi::EM_RISCV => "riscv".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Cursor;

    /// A library of this system, as real as they come.
    fn real() -> Vec<u8> {
        let folders = [
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
        ];
        folders
            .iter()
            .find_map(|folder| fs::read(format!("{folder}/libm.so.6")).ok())
            .expect("the C library")
    }

    /// A 32-bit library of big-endian numbers, as small as it can be: a header, two segments, the dynamic section, names.
    fn small() -> Vec<u8> {
        let names = b"\0libx.so.1\0libc.so.6\0/opt/a:/opt/b\0";
        let (table_at, dynamic_at, names_at) = (52_u32, 52 + 64, 52 + 64 + 48);
        let mut file = vec![0x7f, b'E', b'L', b'F', 1, 2, 1];
        file.resize(16, 0);
        let half = |file: &mut Vec<u8>, value: u16| file.extend(value.to_be_bytes());
        let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_be_bytes());
        half(&mut file, 3);
        half(&mut file, 20);
        for value in [1, 0, table_at, 0, 0] {
            word(&mut file, value);
        }
        for value in [52, 32, 2, 0, 0, 0] {
            half(&mut file, value);
        }
        let size = names_at + names.len() as u32;
        for value in [1, 0, 0x1000, 0x1000, size, size, 4, 1] {
            word(&mut file, value);
        }
        for value in [2, dynamic_at, 0x1000, 0, 48, 48, 4, 4] {
            word(&mut file, value);
        }
        for value in [5, 0x1000 + names_at, 10, names.len() as u32, 14, 1] {
            word(&mut file, value);
        }
        for value in [1, 11, 29, 21, 0, 0] {
            word(&mut file, value);
        }
        file.extend(names);
        file
    }

    #[test]
    fn a_library_of_this_system() {
        let elf = read(Cursor::new(real())).into_got().expect("an answer");
        assert_eq!(elf.class, 64);
        assert_eq!(elf.machine, std::env::consts::ARCH);
        assert_eq!(elf.soname.as_deref(), Some("libm.so.6"));
        assert!(elf.needed.iter().any(|name| name == "libc.so.6"), "{elf:?}");
        assert!(elf.runpath.is_empty());
    }

    #[test]
    fn another_class_and_order() {
        let elf = read(Cursor::new(small())).into_got().expect("an answer");
        assert_eq!(elf.class, 32);
        assert_eq!(elf.machine, "20");
        assert_eq!(elf.soname.as_deref(), Some("libx.so.1"));
        assert_eq!(elf.needed, ["libc.so.6"]);
        assert_eq!(elf.runpath, ["/opt/a", "/opt/b"]);
    }

    #[test]
    fn what_is_no_library_says_so() {
        for (bytes, says) in [
            (&b""[..], "the file is empty"),
            (b"#!/bin/sh\necho\n", NO_ELF),
            (b"/* GNU ld script */ INPUT(libx.so)", NO_ELF),
            (b"\x7fELF", TRUNCATED),
            (
                b"\x7fELF\x09\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                NO_ELF,
            ),
        ] {
            assert_eq!(read(Cursor::new(bytes)), Seen::error(says), "{bytes:?}");
        }
    }

    #[test]
    fn a_library_that_is_cut_short_never_answers_wrongly() {
        for whole in [real(), small()] {
            let right = read(Cursor::new(&whole));
            let steps = (0..whole.len()).step_by((whole.len() / 2000).max(1));
            for length in steps {
                let cut = read(Cursor::new(&whole[..length]));
                assert!(cut == right || cut.is_unknown(), "{length}: {cut:?}");
            }
        }
    }

    /// Every byte of the small file, and of the real one those that the reader looks at, changed to the values that hurt.
    #[test]
    fn a_broken_library_neither_hangs_nor_takes_memory() {
        let (small, mut real) = (small(), real());
        real.truncate(1 << 20);
        let end = small.len();
        for (mut file, places) in [(small, 0..end), (real, 0..1200)] {
            for at in places {
                let part = at..(at + 8).min(file.len());
                let right = file[part.clone()].to_vec();
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    file[part.clone()].fill(value);
                    let _ = read(Cursor::new(&file));
                }
                file[part].copy_from_slice(&right);
            }
        }
    }
}
