//! Placeholders for ids: UUIDs, and the 64-bit ids of AMD GPUs.
//!
//! Digit *i* of a placeholder depends on the salt and on the digits 0 to *i* of the value, nothing else. So every process
//! with the same salt finds the same placeholder without asking another, all spellings of a value lead to one placeholder,
//! and an abbreviated value leads to an abbreviation of its placeholder: `CUDA_VISIBLE_DEVICES=GPU-1a2b` still names the
//! same GPU. A few digits at the end depend on the whole value and keep values apart that begin alike. Without the salt
//! nothing can be reckoned back.
//!
//! Placeholders begin with zeros, which tells them from values: they are never replaced again.

use std::hash::{DefaultHasher, Hasher};

/// What makes the placeholders of one machine differ from those of another.
#[derive(Clone, Copy, Debug)]
pub struct Salt(pub u64);

const UUID_DIGITS: usize = 32;
/// Zeros that begin the placeholder of a UUID.
const UUID_MARK: usize = 4;
/// Digits of a UUID before the part with its version.
const UUID_BEFORE_VERSION: usize = 12;
/// Version 4 and the usual variant, as a random UUID has them.
const UUID_VERSION: [u8; 8] = [4, 0, 0, 0, 8, 0, 0, 0];
/// Digits of a value that have a digit of their own in the placeholder, UUID and 64-bit id.
const UUID_OWN: usize = 14;
const AMD_OWN: usize = 6;
const AMD_DIGITS: usize = 16;
const AMD_MARK: usize = 6;

impl Salt {
    /// A number that depends on the salt, the kind of value and the value.
    pub fn hash(self, kind: &str, value: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher.write(kind.as_bytes());
        hasher.write_u8(0xff);
        hasher.write(value);
        hasher.finish()
    }

    /// One digit for each, so that different digits after the same beginning stay different.
    fn own_digits(self, digits: &[u8]) -> impl Iterator<Item = u8> {
        (0..digits.len()).map(move |index| {
            let pad = self.hash("digit", &digits[..index]);
            digits[index] ^ (pad & 0xf) as u8
        })
    }

    fn hash_digits(self, digits: &[u8], count: usize) -> impl Iterator<Item = u8> {
        let hash = self.hash("id", digits);
        (0..count).map(move |index| (hash >> (4 * index) & 0xf) as u8)
    }

    /// The placeholder of a UUID or of its beginning, as digits.
    fn uuid_digits(self, digits: &[u8]) -> Vec<u8> {
        let own: Vec<u8> = self
            .own_digits(&digits[..digits.len().min(UUID_OWN)])
            .collect();
        let (before, after) = own.split_at(own.len().min(UUID_BEFORE_VERSION - UUID_MARK));
        let mut placeholder = vec![0; UUID_MARK];
        placeholder.extend(before);
        if !after.is_empty() || digits.len() == UUID_DIGITS {
            placeholder.extend(UUID_VERSION);
            placeholder.extend(after);
        }
        if digits.len() == UUID_DIGITS {
            let left = UUID_DIGITS - placeholder.len();
            placeholder.extend(self.hash_digits(digits, left));
        }
        placeholder
    }

    /// The placeholder of a UUID, or of its beginning with at least one digit: digits, dashes at their places. None: this
    /// is no such thing. A UUID without any dash keeps none.
    pub fn uuid(self, text: &str) -> Option<String> {
        let digits = digits_of_uuid(text)?;
        if is_uuid_placeholder(&digits) {
            return Some(text.to_owned());
        }
        let bare = digits.len() == UUID_DIGITS && !text.contains('-');
        let mut placeholder = String::new();
        for (index, digit) in self.uuid_digits(&digits).into_iter().enumerate() {
            if DASHES.contains(&index) && !bare {
                placeholder.push('-');
            }
            placeholder.push(hex(digit));
        }
        Some(placeholder)
    }

    /// The placeholder of a 64-bit id. Small numbers are placeholders already, or say "none".
    pub fn amd_id(self, id: u64) -> u64 {
        if id >> (64 - 4 * AMD_MARK) == 0 || id == u64::MAX {
            return id;
        }
        let digits: Vec<u8> = (0..AMD_DIGITS)
            .map(|index| (id >> (60 - 4 * index) & 0xf) as u8)
            .collect();
        let left = AMD_DIGITS - AMD_MARK - AMD_OWN;
        self.own_digits(&digits[..AMD_OWN])
            .chain(self.hash_digits(&digits, left))
            .fold(0, |id, digit| id << 4 | u64::from(digit))
    }

    /// The placeholder of a 64-bit id in hex digits, or of its beginning. None: this is no such thing.
    pub fn amd_hex(self, text: &str) -> Option<String> {
        if text.is_empty() || text.len() > AMD_DIGITS {
            return None;
        }
        let digits = text.bytes().map(digit).collect::<Option<Vec<u8>>>()?;
        if text.len() == AMD_DIGITS {
            let id = u64::from_str_radix(text, 16).ok()?;
            return Some(format!("{:016x}", self.amd_id(id)));
        }
        if digits.len() >= AMD_MARK && digits[..AMD_MARK].iter().all(|digit| *digit == 0) {
            return Some(text.to_owned());
        }
        let own = self.own_digits(&digits[..digits.len().min(AMD_OWN)]);
        Some("0".repeat(AMD_MARK) + &own.map(hex).collect::<String>())
    }
}

/// Where a UUID has dashes, counted in digits.
const DASHES: [usize; 4] = [8, 12, 16, 20];

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).unwrap_or('0')
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// The digits of a UUID or of its beginning; dashes stand at their places, or nowhere.
fn digits_of_uuid(text: &str) -> Option<Vec<u8>> {
    let with_dashes = text.contains('-');
    let mut digits = Vec::new();
    let mut before_dash = false;
    for byte in text.bytes() {
        let at_dash = with_dashes && DASHES.contains(&digits.len()) && !before_dash;
        if at_dash {
            if byte != b'-' {
                return None;
            }
            before_dash = true;
            continue;
        }
        before_dash = false;
        digits.push(digit(byte)?);
    }
    (1..=UUID_DIGITS).contains(&digits.len()).then_some(digits)
}

fn is_uuid_placeholder(digits: &[u8]) -> bool {
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    if digits.len() < UUID_DIGITS {
        return zeros >= UUID_MARK;
    }
    // Ours, and those that others wrote by hand.
    let version = &digits[UUID_BEFORE_VERSION..UUID_BEFORE_VERSION + UUID_VERSION.len()];
    zeros >= UUID_BEFORE_VERSION || zeros >= UUID_MARK && version == UUID_VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: Salt = Salt(0x1234_5678_9abc_def0);
    const UUID: &str = "5a1b2c3d-4e5f-6789-abcd-ef0123456789";

    #[test]
    fn a_uuid_keeps_its_shape() {
        let placeholder = SALT.uuid(UUID).unwrap();
        assert_eq!(placeholder.len(), 36);
        assert!(placeholder.starts_with("0000"), "{placeholder}");
        assert_eq!(&placeholder[13..24], "-4000-8000-", "{placeholder}");
        assert_eq!(SALT.uuid(&UUID.to_uppercase()).unwrap(), placeholder);
        let bare = SALT.uuid(&UUID.replace('-', "")).unwrap();
        assert_eq!(bare, placeholder.replace('-', ""));
        assert_ne!(Salt(1).uuid(UUID).unwrap(), placeholder);
    }

    #[test]
    fn what_is_no_uuid_is_none() {
        for text in [
            "",
            "-",
            "xyz",
            "5a1b2c3-d4e5f",
            "5a1b2c3d--4e5f",
            "5a1b2c3d-4e5f6789-abcd",
            "5a1b2c3d-4e5f-6789-abcd-ef01234567890",
        ] {
            assert_eq!(SALT.uuid(text), None, "{text}");
        }
        assert_eq!(SALT.amd_hex("12345678901234567"), None);
        assert_eq!(SALT.amd_hex("xx"), None);
        assert_eq!(SALT.amd_hex(""), None);
    }

    #[test]
    fn beginnings_lead_to_beginnings() {
        let whole = SALT.uuid(UUID).unwrap();
        let mut before = 0;
        for length in 1..UUID.len() {
            let begin = UUID[..length].trim_end_matches('-');
            let placeholder = SALT.uuid(begin).unwrap();
            assert!(
                whole.starts_with(&placeholder),
                "{begin} {placeholder} {whole}"
            );
            assert!(placeholder.len() >= before && placeholder.len() > UUID_MARK);
            before = placeholder.len();
        }
        let whole = SALT.amd_hex("9f3c5a1b2d4e6f70").unwrap();
        for length in 1..16 {
            let placeholder = SALT.amd_hex(&"9f3c5a1b2d4e6f70"[..length]).unwrap();
            assert!(
                whole.starts_with(&placeholder),
                "{length} {placeholder} {whole}"
            );
        }
    }

    #[test]
    fn different_values_stay_apart() {
        let mut uuids = std::collections::BTreeSet::new();
        let mut ids = std::collections::BTreeSet::new();
        let mut short = std::collections::BTreeSet::new();
        for number in 0..2000_u64 {
            // The first digits differ, or only the last.
            uuids.insert(SALT.uuid(&format!("{number:08x}-aaaa-4bbb-8ccc-123456789abc")));
            uuids.insert(SALT.uuid(&format!("5a1b2c3d-aaaa-4bbb-8ccc-12345678{number:04x}")));
            short.insert(SALT.uuid(&format!("{:04x}", number + 0x1000)));
            ids.insert(SALT.amd_id(number << 44 | 0xf000_0000_0000_0000));
        }
        assert_eq!((uuids.len(), short.len(), ids.len()), (4000, 2000, 2000));
        let alike: std::collections::BTreeSet<u64> = (0..8)
            .map(|last| SALT.amd_id(0x9f3c_5a1b_2d4e_6f70 | last))
            .collect();
        assert_eq!(alike.len(), 8);
    }

    #[test]
    fn hex_and_decimal_are_one_value() {
        let id = 0x9f3c_5a1b_2d4e_6f70;
        let placeholder = SALT.amd_id(id);
        assert_ne!(placeholder, id);
        assert_eq!(placeholder >> 40, 0);
        assert_eq!(
            SALT.amd_hex(&format!("{id:016x}")),
            Some(format!("{placeholder:016x}"))
        );
        assert_eq!(
            SALT.amd_hex(&format!("{id:016X}")),
            Some(format!("{placeholder:016x}"))
        );
    }

    #[test]
    fn placeholders_stay() {
        for salt in [SALT, Salt(7)] {
            for length in 1..=UUID.len() {
                let once = SALT.uuid(UUID[..length].trim_end_matches('-')).unwrap();
                assert_eq!(salt.uuid(&once).unwrap(), once);
            }
            for length in 1..=16 {
                let once = SALT.amd_hex(&"9f3c5a1b2d4e6f70"[..length]).unwrap();
                assert_eq!(salt.amd_hex(&once).unwrap(), once);
            }
            let once = SALT.amd_id(0x9f3c_5a1b_2d4e_6f70);
            assert_eq!(salt.amd_id(once), once);
            for text in [
                "00000001-0000-4000-8000-000000000000",
                "00000000-0000-0000-0000-000000000010",
                "00000012",
            ] {
                assert_eq!(salt.uuid(text).as_deref(), Some(text));
            }
            for id in [0, 1, 1001, u64::MAX] {
                assert_eq!(salt.amd_id(id), id);
            }
            assert_eq!(
                salt.amd_hex("0000000000000001").as_deref(),
                Some("0000000000000001")
            );
        }
    }
}
