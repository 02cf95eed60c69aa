//! The kernel log as text: takes messages out of what `/dev/kmsg`, the journal or a file holds, and writes them for a
//! recording. Every form of a line is told by its own look, so that one reader serves all sources:
//!
//! - `6,3964,206764307,-;text` of `/dev/kmsg`, a control character as `\xNN`; then lines of its dictionary behind a space
//! - `[    4.000001] text` of `dmesg` and the journal, also behind `<6>`, or with `HOST kernel: ` after the stamp
//! - `[Sun Feb 23 16:24:18 2025] text` of `dmesg -T`, and `kern  :warn  : 2025-01-21T04:41:44,283302+00:00 text` of `dmesg -x`
//! - `Jun 30 11:07:05 HOST kernel: [   12.345678] text` and `2025-06-30T11:07:05+00:00 HOST kernel: text` of syslog
//!
//! A line that begins with a blank goes on with the message before it.
//!
//! Only what the kernel says is a message: what programs put into `/dev/kmsg` under another facility is none, and files in which
//! any user can write a line of the kernel, with whatever stamp (`logger -t kernel`), are not read at all.

use crate::facts::kernel_log::LogLine;
use std::borrow::Cow;

/// Where the running kernel hands out its messages.
pub const KMSG: &str = "/dev/kmsg";
/// The folders of the journal; the first is the one that is named when it could not be read.
pub const JOURNALS: [&str; 2] = ["/var/log/journal", "/run/log/journal"];
/// Files that hold the kernel's messages alone; `dmesg` is made at boot and never grows. Not `messages` and `syslog`: there the
/// kernel's lines look like those of any program that calls itself `kernel`.
pub const FILES: [&str; 2] = ["/var/log/kern.log", "/var/log/dmesg"];

/// Every place that may refuse, in the order in which they are asked.
pub fn paths() -> impl Iterator<Item = &'static str> {
    [KMSG, JOURNALS[0]].into_iter().chain(FILES)
}

/// Longest message that is looked at, in bytes; the kernel's own limit is far below.
const LONGEST: usize = 64 * 1024;
/// Most messages that are kept, and how many of them are the first ones: what failed first is what mattered.
const MOST: usize = 4000;
const MOST_FIRST: usize = 1000;
/// The same in bytes.
const MOST_BYTES: usize = 512 * 1024;
const MOST_FIRST_BYTES: usize = 128 * 1024;
/// A stamp that is so much smaller than the one before belongs to a later boot, in microseconds. Processors may print a
/// little out of order.
const NEW_BOOT_US: u64 = 10_000_000;
/// Blanks before the lines that go on with a message.
const INDENT: &str = "               ";

/// The banner comes before the clock runs, in microseconds.
const BANNER_BEFORE_US: u64 = 1_000_000;
/// What the kernel says first of all; it stands in the log only where nothing was overwritten.
const BANNER: &str = "Linux version ";

/// Messages that a filter kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// In order.
    pub lines: Vec<LogLine>,
    /// They begin with the boot, and none is missing.
    pub from_boot: bool,
    /// Something shows where this boot begins, or that all of it is one boot.
    pub of_one_boot: bool,
}

/// What is in the text of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Messages of the running kernel, and nothing else.
    ThisBoot,
    /// Messages of several boots, and of other programs.
    Anything,
    /// What a recording holds: of this boot; a line without a stamp is a message without a time.
    Recording,
}

/// The messages that `keep` wants, of the last boot in the text. `whole`: nothing was lost on the way here.
pub fn messages(text: &str, holds: Holds, whole: bool, keep: &dyn Fn(&str) -> bool) -> Messages {
    let mut reader = Reader {
        holds,
        keep,
        lines: Vec::new(),
        open: None,
        before_us: None,
        stamped: false,
        begun: false,
        whole,
        in_record: false,
        of_process_us: None,
    };
    for line in text.split('\n') {
        reader.line(line.trim_end_matches('\r'));
    }
    reader.close();
    let (lines, cut) = cut(reader.lines);
    Messages {
        from_boot: reader.begun && reader.whole && !cut,
        of_one_boot: holds != Holds::Anything || reader.begun || reader.stamped,
        lines,
    }
}

struct Reader<'keep> {
    holds: Holds,
    keep: &'keep dyn Fn(&str) -> bool,
    lines: Vec<LogLine>,
    open: Option<LogLine>,
    before_us: Option<u64>,
    /// A message had a stamp that counts from the boot.
    stamped: bool,
    /// The banner was seen.
    begun: bool,
    whole: bool,
    /// The last line was one of `/dev/kmsg`: what follows behind a space is its dictionary.
    in_record: bool,
    /// The stamp of a line that the kernel said of a process: daemons write a message of several lines as lines of the same
    /// stamp, and names of files may hold line ends.
    of_process_us: Option<u64>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str) {
        if line.len() > LONGEST {
            self.close();
            self.whole = false;
            return;
        }
        if line.starts_with([' ', '\t']) {
            let more = line.trim();
            if let Some(open) = self.open.as_mut().filter(|_| !self.in_record)
                && !more.is_empty()
                && open.text.len() + more.len() < LONGEST
            {
                open.text.push('\n');
                open.text.push_str(more);
            }
            return;
        }
        self.close();
        let record = kmsg_record(line);
        self.in_record = record.is_some();
        let message = match (record, self.holds) {
            (Some(Record::OfKernel(at_us, text)), _) => Some((Some(at_us), text)),
            (Some(Record::OfProgram), _) => None,
            (None, Holds::Recording) if !line.is_empty() => {
                Some(stamped(line, self.holds).unwrap_or((None, line.into())))
            }
            (None, _) => stamped(line, self.holds),
        };
        let Some((at_us, text)) = message else {
            return;
        };
        if self.holds == Holds::Anything && at_us.is_some() && at_us == self.of_process_us {
            return;
        }
        let mut text = joined(&text);
        if at_us.is_none() {
            // In a recording a blank would make it a part of the message before.
            text = text.trim_start().to_owned();
        }
        if text.trim().is_empty() {
            return;
        }
        let message = LogLine { at_us, text };
        self.of_process_us = at_us.filter(|_| message.is_of_process());
        self.boot(&message);
        self.open = Some(message);
    }

    /// A new boot begins with the kernel's banner, or where the stamps begin anew.
    fn boot(&mut self, message: &LogLine) {
        let at_us = message.at_us;
        // Where messages have stamps the kernel's first has one, too.
        let banner = is_banner(message)
            && (at_us.is_some() || !self.stamped || self.holds != Holds::Anything);
        let back = match (self.before_us, at_us) {
            (Some(before), Some(now)) => now + NEW_BOOT_US < before,
            _ => false,
        };
        if self.holds == Holds::Anything && (banner || back) {
            self.lines.clear();
            self.begun = false;
        }
        self.begun |= banner;
        self.stamped |= at_us.is_some();
        self.before_us = at_us.or(self.before_us);
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take()
            && (is_banner(&open) || is_gap(&open) || (self.keep)(&open.text))
        {
            self.lines.push(open);
        }
    }
}

/// The lines of one message, each without blanks around it, but for those that the first begins with.
fn joined(text: &str) -> String {
    let text = text.trim_end();
    if !text.contains('\n') {
        return text.to_owned();
    }
    let mut lines = text.lines();
    let mut joined = lines.next().unwrap_or_default().trim_end().to_owned();
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        joined.push('\n');
        joined.push_str(line);
    }
    joined
}

/// The kernel's first message.
pub fn is_banner(line: &LogLine) -> bool {
    line.text.starts_with(BANNER)
        && line.at_us.is_none_or(|at| at < BANNER_BEFORE_US)
        && !line.is_of_process()
}

/// Stands for messages that were left out.
fn gap(messages: usize) -> LogLine {
    LogLine {
        at_us: None,
        text: format!("({messages} lines left out)"),
    }
}

fn is_gap(line: &LogLine) -> bool {
    line.at_us.is_none()
        && line
            .text
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(" lines left out)"))
            .is_some_and(|number| number.parse::<usize>().is_ok())
}

/// The first and the last messages where there are too many, and whether any is missing.
fn cut(mut lines: Vec<LogLine>) -> (Vec<LogLine>, bool) {
    if lines.iter().any(is_gap) {
        return (lines, true);
    }
    let bytes: usize = lines.iter().map(|line| line.text.len()).sum();
    if lines.len() <= MOST && bytes <= MOST_BYTES {
        return (lines, false);
    }
    let fitting = |lines: &mut dyn Iterator<Item = &LogLine>, most: usize, most_bytes: usize| {
        let mut bytes = 0;
        lines
            .take(most)
            .take_while(|line| {
                bytes += line.text.len();
                bytes <= most_bytes
            })
            .count()
    };
    let first = fitting(&mut lines.iter(), MOST_FIRST, MOST_FIRST_BYTES);
    let last = fitting(
        &mut lines[first..].iter().rev(),
        // One place is that of the mark.
        MOST - MOST_FIRST - 1,
        MOST_BYTES - MOST_FIRST_BYTES,
    );
    let end = lines.len() - last;
    lines.splice(first..end, [gap(end - first)]);
    (lines, true)
}

/// A record of `/dev/kmsg`.
enum Record<'t> {
    /// When the kernel said it, in microseconds, and what.
    OfKernel(u64, Cow<'t, str>),
    /// A program wrote it, as systemd does at boot.
    OfProgram,
}

/// A record of `/dev/kmsg`: facility and priority, number, microseconds, flags, and what later kernels may add.
fn kmsg_record(line: &str) -> Option<Record<'_>> {
    let (head, text) = line.split_once(';')?;
    let mut fields = head.split(',');
    let number = |field: Option<&str>| field?.parse::<u64>().ok();
    let facility = number(fields.next())? >> 3;
    number(fields.next())?;
    let at_us = number(fields.next())?;
    fields.next()?;
    Some(match facility {
        0 => Record::OfKernel(at_us, without_escapes(text)),
        _ => Record::OfProgram,
    })
}

/// `\xNN` as the byte that it stands for; bytes that are no UTF-8 become U+FFFD.
fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains("\\x") {
        return text.into();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = bytes[at..]
            .strip_prefix(b"\\x")
            .and_then(|rest| std::str::from_utf8(rest.get(..2)?).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 4 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned().into()
}

/// Any other form that shows where a message begins. What stands behind a date in the log of a syslog daemon is a message of
/// the kernel only where its tag says so: anybody may write anything there under any other tag.
fn stamped(whole: &str, holds: Holds) -> Option<(Option<u64>, Cow<'_, str>)> {
    let line = without_level(whole);
    // No daemon's lines begin so.
    let is_of_dmesg = holds != Holds::Anything || line.len() < whole.len();
    if let Some((at_us, rest)) = stamp(line) {
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        return Some((at_us, of_syslog(after_kernel(rest).unwrap_or(rest))));
    }
    let of_a_date = begins_with_date(line)?;
    let rest = match after_kernel(of_a_date) {
        Some(rest) => rest,
        // `dmesg --time-format iso` prints nothing but the kernel's, without host and tag.
        None if is_of_dmesg && is_date_of_dmesg(line) => of_a_date,
        None => return None,
    };
    match stamp(rest) {
        Some((at_us @ Some(_), rest)) => {
            Some((at_us, of_syslog(rest.strip_prefix(' ').unwrap_or(rest))))
        }
        _ => Some((None, of_syslog(rest))),
    }
}

/// `2025-01-21T04:41:44,283302+00:00`: only dmesg has a comma there, syslog daemons write a full stop.
fn is_date_of_dmesg(line: &str) -> bool {
    let date = line.split(' ').next().unwrap_or_default();
    date.starts_with(|c: char| c.is_ascii_digit()) && date.contains(',')
}

/// Without `<6>` and `kern  :warn  : `.
fn without_level(line: &str) -> &str {
    if let Some((level, rest)) = line.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && level.bytes().all(|byte| byte.is_ascii_digit())
    {
        return rest;
    }
    let after_colon = |rest: &'_ str| -> Option<usize> {
        let colon = rest.find(':')?;
        rest[..colon]
            .trim_end()
            .bytes()
            .all(|byte| byte.is_ascii_lowercase())
            .then_some(colon + 1)
    };
    let Some(rest) = line
        .strip_prefix("kern")
        .filter(|rest| rest.starts_with([' ', ':']))
    else {
        return line;
    };
    let Some(rest) = after_colon(rest).map(|at| &rest[at..]) else {
        return line;
    };
    after_colon(rest).map_or(line, |at| rest[at..].trim_start())
}

/// `[    4.000001]` with its time, or `[Sun Feb 23 16:24:18 2025]` without one, and what follows.
fn stamp(line: &str) -> Option<(Option<u64>, &str)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    let inside = inside.trim_start();
    if let Some((seconds, micros)) = inside.split_once('.') {
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(seconds) || !digits(micros) || micros.len() != 6 {
            return None;
        }
        let at_us = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?;
        return Some((Some(at_us.checked_add(micros.parse().ok()?)?), rest));
    }
    let mut words = inside.split_whitespace();
    let day = words.next()?;
    let is_date = day.len() == 3 && words.next()?.len() == 3 && inside.contains(':');
    is_date.then_some((None, rest))
}

/// What follows `Jun 30 11:07:05 ` or `2025-06-30T11:07:05+00:00 `.
fn begins_with_date(line: &str) -> Option<&str> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let first = line.split(' ').next()?;
    if first.starts_with(|c: char| c.is_ascii_digit()) {
        let (day, time) = first.split_once('T')?;
        let is_date = day.len() == 10 && day.matches('-').count() == 2 && time.contains(':');
        return is_date.then(|| line[first.len()..].trim_start());
    }
    let month = line.get(..3).filter(|month| month.is_ascii())?;
    let known = MONTHS
        .as_bytes()
        .chunks(3)
        .any(|known| known == month.as_bytes());
    let rest = line[3..].strip_prefix(' ')?.trim_start();
    let (day, rest) = rest.split_once(' ')?;
    let (time, rest) = rest.split_once(' ')?;
    let is_date = known && day.parse::<u8>().is_ok() && time.matches(':').count() == 2;
    is_date.then_some(rest)
}

/// What follows `kernel: ` or `HOST kernel: `.
fn after_kernel(rest: &str) -> Option<&str> {
    if let Some(text) = rest.strip_prefix("kernel: ") {
        return Some(text);
    }
    rest.split_once(' ')?.1.strip_prefix("kernel: ")
}

/// Syslog daemons write control characters as `#` and three octal digits.
fn of_syslog(text: &str) -> Cow<'_, str> {
    if !text.contains("#0") {
        return text.into();
    }
    text.replace("#012", "\n").replace("#011", "\t").into()
}

/// The lines that a recording holds of a message.
pub fn written(line: &LogLine) -> Vec<String> {
    let mut parts = line.text.split('\n');
    let first = parts.next().unwrap_or_default();
    let first = match line.at_us {
        Some(at) => format!("[{:5}.{:06}] {first}", at / 1_000_000, at % 1_000_000),
        None => first.to_owned(),
    };
    let more = parts.map(|more| format!("{INDENT}{more}"));
    std::iter::once(first).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, holds: Holds) -> Vec<(Option<u64>, String)> {
        let messages = messages(text, holds, true, &|_| true);
        let lines = messages.lines.into_iter();
        lines.map(|line| (line.at_us, line.text)).collect()
    }

    #[track_caller]
    fn one(line: &str, at_us: Option<u64>, text: &str) {
        assert_eq!(
            read(line, Holds::ThisBoot),
            [(at_us, text.to_owned())],
            "{line}"
        );
    }

    #[test]
    fn every_form_of_a_line() {
        one("6,3964,206764307,-;a: b", Some(206_764_307), "a: b");
        one("6,3964,206764307,c,caller=T1;a;b", Some(206_764_307), "a;b");
        one("[    4.000001] a", Some(4_000_001), "a");
        one("<6>[  201.650687] a", Some(201_650_687), "a");
        one("[    4.000001]  <TASK>", Some(4_000_001), " <TASK>");
        one("[    4.000001] kernel: a", Some(4_000_001), "a");
        one("[    4.000001] host kernel: a", Some(4_000_001), "a");
        one(
            "[    4.000001] systemd[1]: a",
            Some(4_000_001),
            "systemd[1]: a",
        );
        one("[Sun Feb 23 16:24:18 2025] a", None, "a");
        one(
            "kern  :warn  : 2025-01-21T04:41:44,283302+00:00 a: b",
            None,
            "a: b",
        );
        one("kern  :warn  : [   12.000001] a", Some(12_000_001), "a");
        one("Jun 30 11:07:05 host kernel: a", None, "a");
        one(
            "Jun  3 11:07:05 host kernel: [   12.345678] a",
            Some(12_345_678),
            "a",
        );
        one(
            "2025-06-30T11:07:05.1+00:00 host kernel: [   12.345678] a",
            Some(12_345_678),
            "a",
        );
        one("Jun 30 11:07:05 host kernel: a#012b#011c", None, "a\nb\tc");
        for other in [
            "Jun 30 11:07:05 host sshd[1]: a",
            "Jun 30 11:07:05 host alice: NVRM: a",
            "Jun 30 11:07:05 host alice: kernel: NVRM: a",
            "2025-06-30T11:07:05.1+00:00 host sshd[1]: a",
            "2025-06-30T11:07:05.1+00:00 host alice: NVRM: a",
            "2025-06-30T11:07:05+00:00 host alice: kernel: NVRM: a",
            "2025-06-30T11:07:05.1+00:00 host sudo:    alice : TTY=pts/0",
            "2025-06-30T11:07:05.1+00:00 NVRM: a",
            "2025-06-30T11:07:05.1+00:00 [   12.345678] NVRM: a",
            "kern  :warn  : 2025-06-30T11:07:05.1+00:00 host alice: NVRM: a",
            "a",
            "[drm] a",
            "[drm:f [amdgpu]] a",
            "6,1;a",
            "",
        ] {
            assert_eq!(read(other, Holds::ThisBoot), [], "{other}");
        }
        // A daemon's file may be written by anybody, however the date looks.
        for other in [
            "2025-06-30T11:07:05,283302+00:00 host alice: NVRM: a",
            "2025-06-30T11:07:05,283302+00:00 NVRM: a",
        ] {
            assert_eq!(read(other, Holds::Anything), [], "{other}");
        }
        assert_eq!(
            read("[drm] a", Holds::Recording),
            [(None, "[drm] a".to_owned())]
        );
    }

    #[test]
    fn lines_go_on_and_dictionaries_do_not() {
        let journal =
            "[    4.000001] kernel: NVRM: a\n                 NVRM: b\n[    5.000000] kernel: c\n";
        assert_eq!(
            read(journal, Holds::ThisBoot),
            [
                (Some(4_000_001), "NVRM: a\nNVRM: b".to_owned()),
                (Some(5_000_000), "c".to_owned())
            ]
        );
        let kmsg = "4,1,7,-;NVRM: a\\x0aNVRM: b\n SUBSYSTEM=pci\n DEVICE=+pci:0000:01:00.0\n";
        one(kmsg, Some(7), "NVRM: a\nNVRM: b");
    }

    #[test]
    fn what_is_written_is_read_again() {
        for (at_us, text) in [
            (Some(0), "a"),
            (Some(123_456_789_012), " a  b\nc\nd"),
            (None, "a\nb"),
        ] {
            let line = LogLine {
                at_us,
                text: text.to_owned(),
            };
            let lines = written(&line).join("\n");
            assert_eq!(read(&lines, Holds::Recording), [(at_us, text.to_owned())]);
        }
    }

    #[test]
    fn only_the_kernel_speaks() {
        // Of a program, with a dictionary.
        let kmsg = "14,5,100,-;NVRM: a\n SUBSYSTEM=pci\n4,6,101,-;b\n";
        for holds in [Holds::ThisBoot, Holds::Recording] {
            assert_eq!(read(kmsg, holds), [(Some(101), "b".to_owned())]);
        }
        // A name of a file with a line end in it, as rsyslog writes what the kernel says of it.
        let file = "Jun 30 11:07:05 host kernel: [   12.345678] a[4]: segfault at 0 in x\n\
                    Jun 30 11:07:05 host kernel: [   12.345678] NVRM: a\n\
                    Jun 30 11:07:05 host kernel: [   12.345679] NVRM: b\n";
        let lines = read(file, Holds::Anything);
        let texts: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["a[4]: segfault at 0 in x", "NVRM: b"]);
    }

    #[test]
    fn a_boot_begins_where_the_clock_does() {
        let at = |line: &str| format!("Jun 30 11:07:05 host kernel: {line}\n");
        let error = at("[  100.000000] NVRM: a");
        let hidden = |line: &str| {
            let text = at("[    0.000000] Linux version 6.8.0") + &error + &at(line);
            !read(&text, Holds::Anything)
                .iter()
                .any(|(_, text)| text == "NVRM: a")
        };
        assert!(hidden("[    0.000000] Linux version 6.9.0"));
        assert!(hidden("[   10.000000] a"));
        assert!(!hidden("Linux version 6.8.0"));
        assert!(!hidden("[  100.000000] Linux version 6.8.0"));
        assert!(!hidden("[  100.000000] Linux version [42]: segfault at 0"));
        // Without stamps there is nothing but the banner.
        let text = at("NVRM: a") + &at("Linux version 6.8.0") + &at("NVRM: b");
        let messages = messages(&text, Holds::Anything, true, &|_| true);
        assert_eq!(messages.lines.len(), 2);
        // A program may call itself so.
        let text = "[    0.100000] Linux version [42]: segfault at 0\n";
        let messages = super::messages(text, Holds::ThisBoot, true, &|_| true);
        assert!(!messages.from_boot);
    }

    #[test]
    fn lost_records_make_a_log_incomplete() {
        let text = "5,0,0,-;Linux version 6\n6,1,1,-;a\n";
        assert!(messages(text, Holds::ThisBoot, true, &|_| true).from_boot);
        assert!(!messages(text, Holds::ThisBoot, false, &|_| true).from_boot);
        assert!(!messages("6,1,1,-;a\n", Holds::ThisBoot, true, &|_| true).from_boot);
    }
}
