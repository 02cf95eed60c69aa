//! The door: the only way to the machine. Every question to a file system, the environment, the process or a library goes
//! through `Host`, which answers with `Seen`, redacts private values before anyone parses them, and records what it
//! answered. A recorded machine answers through the same door, so probes cannot tell a replay from a live system.
//!
//! **Absence needs proof.** A path is `Absent` only where its surroundings show that its file system is really there (see
//! `Proof`); in an archive only where the archive says so. Everything else is `Unasked` or `Failed`.

pub mod archive;
mod elf;
pub mod live;
mod loader_cache;
mod log;
pub mod machine;
mod modinfo;
pub mod redact;

use crate::facts::environment::ProcessUser;
use crate::facts::kernel_log::{KernelLog, LogLine};
use crate::facts::module_files::ModInfo;
use crate::facts::software::Elf;
use crate::facts::{Failure, Seen, Why, from_json, to_json};
use log::{Holds, Messages};
use machine::{Entry, Form, Operation, Text};
use redact::Redactor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// Longest text that `Host::text` reads, in bytes. Attributes and configuration files are far below; what is longer is
/// not what it claims to be.
pub const TEXT_LIMIT: usize = 256 * 1024;
/// Longest file that `Host::lines` reads, in bytes.
pub const LINES_LIMIT: usize = 32 * 1024 * 1024;
/// Longest line that is looked at in it, in bytes: a group with ten thousand members is far below.
const LINE_LIMIT: usize = 1024 * 1024;
/// Most of `/etc/passwd` that the door itself looks at, in bytes.
const PASSWD_LIMIT: usize = 4 << 20;
/// Most names that `Host::list` takes from one folder.
pub const LIST_LIMIT: usize = 20_000;

/// Longest output of a program that `Host::run` reads, in bytes.
const OUTPUT_LIMIT: usize = 1024 * 1024;

/// As many links as the kernel follows in one path.
const MOST_LINKS: usize = 40;

/// What the user asked for that changes what may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Leave out what takes long.
    pub quick: bool,
    /// Ask sleeping GPUs too.
    pub wake: bool,
    /// Judge access for this user.
    pub user: Option<String>,
    /// File of the library to be asked, as a probe of files found it.
    pub library: Option<String>,
}

/// Names in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Sorted, without `.` and `..`.
    pub names: Vec<String>,
    /// These are all. False: others may be there too.
    pub whole: bool,
    /// These are all that somebody wanted when they were recorded, who may not have wanted the same.
    pub kept: bool,
}

/// Lines of a file that a filter kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Without line ends.
    pub lines: Vec<String>,
    /// The file was read to its end.
    pub whole: bool,
}

/// What a program of the system printed, of which a filter kept some lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Exit status.
    pub rc: i32,
    /// Without line ends.
    pub lines: Vec<String>,
    /// The output was read to its end.
    pub whole: bool,
}

/// `lstat` of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// `file`, `dir`, `link`, `char`, `block`, `fifo`, `socket`.
    pub kind: String,
    /// Permission bits with setuid, setgid and sticky; None: not recorded.
    pub mode: Option<u32>,
    /// Owner; None: not recorded.
    pub uid: Option<u32>,
    /// Group; None: not recorded.
    pub gid: Option<u32>,
    /// Size in bytes; None: not recorded.
    pub size: Option<u64>,
    /// Seconds since 1970; None: not recorded.
    pub mtime: Option<i64>,
    /// Major and minor number of a device node.
    pub device: Option<(u32, u32)>,
}

/// Which system this is, as `uname` tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// `linux`, `macos`, ...
    pub os: String,
    /// `x86_64`, `aarch64`, ...
    pub machine: String,
    /// Kernel release.
    pub release: String,
}

/// Where answers come from: the running system, a folder that holds one, or a recorded machine. Everyone has files; what a
/// source has no answer to besides was not asked.
pub trait Source {
    /// The bytes of a regular file, at most `limit` + 1 of them: one more than the limit shows that the file is longer.
    fn bytes(&self, path: &str, limit: usize) -> Seen<Vec<u8>>;
    /// Like `bytes` for text of which only a part may have been recorded: the text, and whether it is the whole file.
    fn text(&self, path: &str, limit: usize) -> Seen<(String, bool)>;
    /// Names in a folder.
    fn list(&self, path: &str) -> Seen<Listing>;
    /// Target of a link, as it is written.
    fn link(&self, path: &str) -> Seen<String>;
    /// The path with every link resolved; it exists.
    fn real(&self, path: &str) -> Seen<String>;
    /// `lstat`.
    fn stat(&self, path: &str) -> Seen<Stat>;
    /// Opens for reading and writing and closes at once: `ok` or an errno.
    fn open(&self, _path: &str) -> Seen<String> {
        Seen::default()
    }
    /// `access(2)` for reading and writing, with effective ids: `ok` or an errno.
    fn access(&self, _path: &str) -> Seen<String> {
        Seen::default()
    }
    /// The access list as `getfacl` writes it; `Absent` where there is none.
    fn acl(&self, _path: &str) -> Seen<Vec<String>> {
        Seen::default()
    }
    /// What a module file says of itself.
    fn modinfo(&self, _path: &str) -> Seen<ModInfo> {
        Seen::default()
    }
    /// What an ELF file says of itself.
    fn elf(&self, _path: &str) -> Seen<Elf> {
        Seen::default()
    }
    /// `/etc/ld.so.cache` as lines, at least those for the names that `wanted` says, and whether these are all.
    fn loader_cache(&self, wanted: &dyn Fn(&str) -> bool) -> Seen<(String, bool)> {
        self.bytes(loader_cache::PATH, loader_cache::LIMIT)
            .and_then(|bytes| loader_cache::decode(&bytes, wanted))
            .map(|text| (text, true))
    }
    /// Exit status and output of a program of the system, and whether that is all of it. Only the running system has
    /// programs that can be run.
    fn run(&self, _command: &[&str], _limit: usize) -> Seen<(i32, String, bool)> {
        Seen::default()
    }
    /// A variable of the environment.
    fn env(&self, _name: &str) -> Seen<String> {
        Seen::default()
    }
    /// The ids of this process.
    fn user(&self) -> Seen<ProcessUser> {
        Seen::default()
    }
    /// What `uname` says.
    fn system(&self) -> Seen<System> {
        Seen::default()
    }
    /// When the machine was looked at, RFC 3339. None: a folder cannot tell.
    fn clock(&self) -> Option<String> {
        None
    }
    /// A recorded answer of a library, as JSON. `Unasked` where the library itself has to be asked.
    fn answer(&self, _library: &str) -> Seen<serde_json::Value> {
        Seen::default()
    }
    /// The messages in `/dev/kmsg`, in its own form, and whether none was lost.
    fn kmsg(&self) -> Seen<(String, bool)> {
        Seen::default()
    }
    /// The kernel's messages in the journal of this boot, with stamps that count from the boot, and whether these are all.
    fn journal(&self) -> Seen<(String, bool)> {
        Seen::default()
    }
    /// A recorded kernel log: its source and its lines. None: the system itself has to be asked.
    fn recorded_log(&self) -> Option<Seen<(&str, &[Text])>> {
        None
    }
    /// Libraries of the running system may be asked.
    fn is_live(&self) -> bool {
        false
    }
}

/// A text of an entry that is recorded.
fn owned(text: &str) -> Text {
    Text::Owned(text.to_owned())
}

fn joined(lines: &[String]) -> String {
    lines
        .iter()
        .fold(String::new(), |all, line| all + line + "\n")
}

/// Where the target of a link lies, by its text: right where no folder on the way is a link itself.
pub fn beside(link: &str, target: &str) -> String {
    let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = if target.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The door.
pub struct Host {
    source: Box<dyn Source>,
    redactor: Redactor,
    options: Options,
    record: Option<RefCell<Vec<Entry>>>,
    /// The names that were recorded of each folder: of several listings of one folder the last counts.
    listed: RefCell<BTreeMap<String, BTreeSet<String>>>,
    library: OnceCell<Seen<String>>,
    before_read: Box<dyn Fn(&str)>,
}

impl Host {
    /// A door to the source. Recorded machines are redacted already: give `Redactor::off()` for them.
    pub fn new(source: Box<dyn Source>, redactor: Redactor, mut options: Options) -> Host {
        // Probes meet users under their placeholders only.
        options.user = options.user.map(|user| redactor.name(&user));
        Host {
            source,
            redactor,
            options,
            record: None,
            listed: RefCell::default(),
            library: OnceCell::new(),
            before_read: Box::new(|_| {}),
        }
    }

    /// Keeps every answer as an entry of the machine format; `take_entries` hands them out.
    #[must_use]
    pub fn recording(mut self) -> Host {
        self.record = Some(RefCell::default());
        self
    }

    /// Calls this with the path before each question that can block.
    #[must_use]
    pub fn before_read(mut self, tell: impl Fn(&str) + 'static) -> Host {
        self.before_read = Box::new(tell);
        self
    }

    /// The entries recorded since the last call.
    pub fn take_entries(&self) -> Vec<Entry> {
        self.record
            .as_ref()
            .map(|record| record.take())
            .unwrap_or_default()
    }

    /// What the user asked for.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// A small text file, whole. Bytes that are no UTF-8 become U+FFFD. A longer file than `TEXT_LIMIT` is an error: it is
    /// not what it claims to be.
    pub fn text(&self, path: &str) -> Seen<String> {
        (self.before_read)(path);
        let answer = self
            .source
            .text(&self.redactor.asked(path), TEXT_LIMIT)
            .and_then(|(text, whole)| {
                if whole {
                    Seen::Got(self.redactor.text(path, &text))
                } else if text.len() > TEXT_LIMIT {
                    Seen::error(format!("longer than {TEXT_LIMIT} bytes"))
                } else {
                    Seen::Unasked(Why::NotCaptured)
                }
            });
        self.note(path, Operation::Read, &answer, |text| Entry::File {
            path: owned(path),
            text: owned(text),
            form: Form::Whole,
        });
        answer
    }

    /// A small text file, its text trimmed at both ends: the usual form of a sysfs attribute.
    pub fn value(&self, path: &str) -> Seen<String> {
        self.text(path).map(|text| text.trim().to_owned())
    }

    /// The first bytes of a small binary attribute with a fixed meaning (PCI `config`, EFI variables), at most 256.
    pub fn bytes(&self, path: &str, limit: usize) -> Seen<Vec<u8>> {
        let limit = limit.min(256);
        (self.before_read)(path);
        let answer = self
            .source
            .bytes(&self.redactor.asked(path), limit)
            .map(|mut bytes| {
                bytes.truncate(limit);
                bytes
            });
        self.note(path, Operation::Read, &answer, |bytes| Entry::File {
            path: owned(path),
            text: machine::bytes_as_text(bytes).into(),
            form: Form::Cut,
        });
        answer
    }

    /// The lines of a file that `keep` wants, in order. Only those are recorded.
    pub fn lines(&self, path: &str, keep: &dyn Fn(&str) -> bool) -> Seen<Lines> {
        (self.before_read)(path);
        let answer = self
            .source
            .text(&self.redactor.asked(path), LINES_LIMIT)
            .map(|(text, whole)| {
                // Who looks for a user knows the placeholder only; elsewhere most lines need no work.
                let names = redact::holds_names(path);
                let mut short = text.len() <= LINES_LIMIT;
                let mut lines = Vec::new();
                // Some files have tens of thousands of lines, so each is gone through once.
                for line in text.lines() {
                    if line.len() > LINE_LIMIT {
                        short = false;
                    } else if names {
                        let line = self.redactor.text(path, line);
                        if keep(&line) {
                            lines.push(line);
                        }
                    } else if keep(line) {
                        lines.push(self.redactor.text(path, line));
                    }
                }
                let whole = whole && short;
                Lines { lines, whole }
            });
        self.note_lines(path, &answer);
        answer
    }

    /// Parts of a small text file: what `take` makes of its lines, in order. Only that is recorded, so that nothing else of
    /// a line gets out.
    pub fn excerpt(&self, path: &str, take: &mut dyn FnMut(&str) -> Option<String>) -> Seen<Lines> {
        (self.before_read)(path);
        let answer = self
            .source
            .text(&self.redactor.asked(path), TEXT_LIMIT)
            .map(|(text, whole)| Lines {
                lines: text
                    .lines()
                    .filter_map(take)
                    .map(|line| self.redactor.text(path, &line))
                    .collect(),
                whole,
            });
        self.note_lines(path, &answer);
        answer
    }

    fn note_lines(&self, path: &str, answer: &Seen<Lines>) {
        self.note(path, Operation::Read, answer, |lines| Entry::File {
            path: owned(path),
            text: joined(&lines.lines).into(),
            form: if lines.whole { Form::Kept } else { Form::Cut },
        });
    }

    /// Names in a folder, sorted; at most `LIST_LIMIT` of them.
    pub fn list(&self, path: &str) -> Seen<Listing> {
        (self.before_read)(path);
        let answer = self
            .source
            .list(&self.redactor.asked(path))
            .map(|listing| Listing {
                names: self.redactor.names(path, listing.names),
                ..listing
            });
        self.note(path, Operation::List, &answer, |listing| {
            self.listing(path, &listing.names)
        });
        if answer.got().is_some_and(|listing| listing.whole) {
            self.push(|| Entry::Whole(owned(path), false));
        }
        answer
    }

    /// The names in a folder that `keep` wants, which is asked in their order. Only those are recorded: a folder of
    /// libraries holds thousands.
    pub fn names(&self, path: &str, mut keep: impl FnMut(&str) -> bool) -> Seen<Listing> {
        (self.before_read)(path);
        let answer = self.source.list(&self.redactor.asked(path)).map(|listing| {
            let mut names = self.redactor.names(path, listing.names);
            names.retain(|name| keep(name));
            Listing {
                names,
                whole: listing.whole || listing.kept,
                kept: listing.kept && !listing.whole,
            }
        });
        self.note(path, Operation::List, &answer, |listing| {
            self.listing(path, &listing.names)
        });
        if answer.got().is_some_and(|listing| listing.whole) {
            self.push(|| Entry::Kept(owned(path)));
        }
        answer
    }

    /// A name is not in a folder, as its listing proves. Nobody is asked; it is recorded, so that who replays it need not know
    /// which names were kept of the listing.
    pub fn proved_absent(&self, path: &str) {
        self.push(|| Entry::Absent(owned(path)));
    }

    /// Target of a link, as it is written; `EINVAL` where the path is no link.
    pub fn link(&self, path: &str) -> Seen<String> {
        let answer = self
            .source
            .link(&self.redactor.asked(path))
            .map(|target| self.redactor.path(&target));
        self.note(path, Operation::Link, &answer, |target| {
            Entry::Link(owned(path), owned(target))
        });
        answer
    }

    /// The last part of a link's target: the name of a bound driver, of an IOMMU group.
    pub fn link_name(&self, path: &str) -> Seen<String> {
        self.link(path).map(|target| {
            let trimmed = target.trim_end_matches('/');
            trimmed.rsplit('/').next().unwrap_or(trimmed).to_owned()
        })
    }

    /// The path with all links resolved, where it exists.
    pub fn real(&self, path: &str) -> Seen<String> {
        (self.before_read)(path);
        let answer = self
            .source
            .real(&self.redactor.asked(path))
            .map(|target| self.redactor.path(&target));
        self.note(path, Operation::Link, &answer, |target| {
            if target == path {
                Entry::Exists(owned(path))
            } else {
                Entry::Link(owned(path), owned(target))
            }
        });
        if let Some(target) = answer.got().filter(|target| *target != path) {
            self.push(|| Entry::Exists(owned(target)));
        }
        answer
    }

    /// Whether the path exists, links followed. Says nothing of its kind.
    pub fn exists(&self, path: &str) -> Seen<()> {
        self.real(path).map(|_| ())
    }

    /// `lstat`.
    pub fn stat(&self, path: &str) -> Seen<Stat> {
        (self.before_read)(path);
        let answer = self.source.stat(&self.redactor.asked(path));
        self.note(path, Operation::Stat, &answer, |stat| {
            Entry::Stat(owned(path), Box::new(stat.clone()))
        });
        answer
    }

    /// Opens a node for reading and writing and closes it at once: `ok` or the name of the errno. Never for
    /// `/dev/nvidiaN`: that would initialise the GPU.
    pub fn open(&self, path: &str) -> Seen<String> {
        (self.before_read)(path);
        let answer = self.source.open(&self.redactor.asked(path));
        self.note(path, Operation::Open, &answer, |result| {
            Entry::Open(owned(path), owned(result))
        });
        answer
    }

    /// `access(2)` for reading and writing with effective ids: `ok` or the name of the errno.
    pub fn access(&self, path: &str) -> Seen<String> {
        let answer = self.source.access(&self.redactor.asked(path));
        self.note(path, Operation::Access, &answer, |result| {
            Entry::Access(owned(path), owned(result))
        });
        answer
    }

    /// The access list of a node as `getfacl` writes it; `Absent`: it has none.
    pub fn acl(&self, path: &str) -> Seen<Vec<String>> {
        let answer = self.source.acl(&self.redactor.asked(path));
        match &answer {
            Seen::Got(entries) => {
                for entry in entries {
                    self.push(|| Entry::Acl(owned(path), Some(owned(entry))));
                }
            }
            Seen::Absent => self.push(|| Entry::Acl(owned(path), None)),
            Seen::Unasked(_) | Seen::Failed(_) => {}
        }
        answer
    }

    /// What a module file says of itself.
    pub fn modinfo(&self, path: &str) -> Seen<ModInfo> {
        (self.before_read)(path);
        let answer = self
            .source
            .modinfo(&self.redactor.asked(path))
            .map(|info| self.redactor.modinfo(info));
        self.note(path, Operation::Read, &answer, |info| {
            Entry::ModInfo(owned(path), to_json(info).unwrap_or_default())
        });
        answer
    }

    /// The messages of the kernel log that `keep` wants, of this boot. Only those are recorded. `/dev/kmsg` is asked first, then
    /// the journal where that was not allowed or has lost its beginning, then the files of syslog daemons; below a
    /// root those files alone.
    pub fn kernel_log(&self, keep: &dyn Fn(&str) -> bool) -> Seen<KernelLog> {
        let mut tried = BTreeMap::new();
        let found = match self.source.recorded_log() {
            Some(recorded) => self.recorded_log(recorded, keep, &mut tried),
            None => self.log_of_the_system(keep, &mut tried),
        };
        for (path, why) in &tried {
            let error = || Entry::Error(owned(path), Operation::Read, owned(why));
            self.push(error);
        }
        match found {
            Seen::Got((source, messages)) => {
                let lines = messages.lines.into_iter().map(|line| LogLine {
                    at_us: line.at_us,
                    text: self.redactor.text(log::KMSG, &line.text),
                });
                let lines: Vec<LogLine> = lines.collect();
                // A recording without the banner is one that does not begin with the boot.
                let lines: Vec<LogLine> = if messages.from_boot {
                    lines
                } else {
                    lines
                        .into_iter()
                        .filter(|line| !log::is_banner(line))
                        .collect()
                };
                self.push(|| {
                    let lines = lines
                        .iter()
                        .flat_map(log::written)
                        .map(Text::from)
                        .collect();
                    Entry::Log(owned(&source), lines)
                });
                Seen::Got(KernelLog {
                    source,
                    tried,
                    from_boot: messages.from_boot,
                    lines,
                })
            }
            Seen::Failed(failure) => {
                let errno = failure.what();
                self.push(|| Entry::Log(format!("none {errno}").into(), Vec::new()));
                Seen::Failed(Failure::errno(errno))
            }
            other => other.and_then(|_| Seen::Absent),
        }
    }

    fn recorded_log(
        &self,
        recorded: Seen<(&str, &[Text])>,
        keep: &dyn Fn(&str) -> bool,
        tried: &mut BTreeMap<String, String>,
    ) -> Seen<(String, Messages)> {
        recorded.and_then(|(source, lines)| {
            if let Some(errno) = source.strip_prefix("none ") {
                return Seen::Failed(Failure::errno(errno));
            }
            for path in log::paths() {
                note_refusal(&self.source.text(path, 0), path, tried);
            }
            let text = lines.join("\n");
            let messages = log::messages(&text, Holds::Recording, true, keep);
            Seen::Got((source.to_owned(), messages))
        })
    }

    fn log_of_the_system(
        &self,
        keep: &dyn Fn(&str) -> bool,
        tried: &mut BTreeMap<String, String>,
    ) -> Seen<(String, Messages)> {
        let mut best: Option<(String, Messages)> = None;
        let mut first_failure = None;
        for (source, path) in [("kmsg", log::KMSG), ("journal", log::JOURNALS[0])] {
            (self.before_read)(path);
            let answer = if source == "kmsg" {
                self.source.kmsg()
            } else {
                self.source.journal()
            };
            note_refusal(&answer, path, tried);
            match answer {
                Seen::Got((text, whole)) => {
                    let messages = log::messages(&text, Holds::ThisBoot, whole, keep);
                    if messages.from_boot {
                        return Seen::Got((source.to_owned(), messages));
                    }
                    best.get_or_insert((source.to_owned(), messages));
                }
                Seen::Failed(failure) => {
                    first_failure.get_or_insert(failure);
                }
                Seen::Absent | Seen::Unasked(_) => {}
            }
        }
        if let Some(best) = best {
            return Seen::Got(best);
        }
        let boot = self.source.is_live().then(|| self.boot_time()).flatten();
        for path in log::FILES {
            (self.before_read)(path);
            let answer = self.log_file(path, boot, keep);
            note_refusal(&answer, path, tried);
            match answer {
                Seen::Got(messages) => return Seen::Got((format!("file {path}"), messages)),
                Seen::Failed(failure) => {
                    first_failure.get_or_insert(failure);
                }
                Seen::Absent | Seen::Unasked(_) => {}
            }
        }
        match first_failure {
            Some(failure) => Seen::Failed(failure),
            // It exists on every system; here nothing leads to it.
            None if self.source.is_live() => Seen::error("ENOENT"),
            None => Seen::default(),
        }
    }

    /// A file that a syslog daemon writes. `boot` is when the running system was booted, in seconds since 1970: what was
    /// written before says nothing of it.
    fn log_file(
        &self,
        path: &str,
        boot: Option<i64>,
        keep: &dyn Fn(&str) -> bool,
    ) -> Seen<Messages> {
        if self.source.is_live() {
            let written = self
                .source
                .stat(path)
                .into_got()
                .and_then(|stat| stat.mtime);
            match (boot, written) {
                (Some(boot), Some(written)) if written >= boot => {}
                (_, None) => return self.source.text(path, 0).and_then(|_| Seen::default()),
                _ => return Seen::error("older than this boot"),
            }
        }
        self.source
            .text(path, LINES_LIMIT)
            .and_then(|(text, whole)| {
                if !whole {
                    // The end is what matters, and this is the beginning.
                    return Seen::error(format!("longer than {LINES_LIMIT} bytes"));
                }
                // Made once, right after the boot.
                let grows = !path.ends_with("/dmesg");
                let messages = log::messages(&text, Holds::Anything, grows, keep);
                if messages.of_one_boot {
                    Seen::Got(messages)
                } else {
                    Seen::error("does not show where this boot begins")
                }
            })
    }

    /// When the running system was booted, in seconds since 1970.
    fn boot_time(&self) -> Option<i64> {
        let (text, _) = self.source.text("/proc/stat", LINES_LIMIT).into_got()?;
        let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
        line.trim().parse().ok()
    }

    /// What an ELF file says of itself.
    pub fn elf(&self, path: &str) -> Seen<Elf> {
        (self.before_read)(path);
        let answer = self.redacted(self.source.elf(&self.redactor.asked(path)));
        self.note(path, Operation::Read, &answer, |elf| {
            let json = to_json(elf).unwrap_or_default();
            Entry::Elf(owned(path), json)
        });
        answer
    }

    /// The lines of `/etc/ld.so.cache` for the names that `wanted` says, as `ldconfig -p` prints them and in its order:
    /// `libcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1`.
    pub fn loader_cache(&self, wanted: &dyn Fn(&str) -> bool) -> Seen<Lines> {
        let path = loader_cache::PATH;
        let keep = |line: &str| line.split(' ').next().is_some_and(wanted);
        (self.before_read)(path);
        let answer = self.source.loader_cache(wanted).map(|(text, whole)| Lines {
            lines: self.kept(path, &text, &keep),
            whole,
        });
        self.note_lines(path, &answer);
        answer
    }

    /// Runs a program of the system that prints what is installed and changes nothing, without this environment and, for
    /// root, as nobody. The lines that `keep` wants; only those are recorded. `Absent`: no folder of programs has it. In a
    /// recorded machine program and first argument decide which run is meant.
    pub fn run(&self, command: &[&str], keep: &dyn Fn(&str) -> bool) -> Seen<Output> {
        (self.before_read)(command.first().unwrap_or(&""));
        let answer = self
            .source
            .run(command, OUTPUT_LIMIT)
            .map(|(rc, text, whole)| Output {
                rc,
                lines: self.kept("", &text, keep),
                whole,
            });
        // A part of an output would later look like all of it.
        if let Some(output) = answer.got().filter(|output| output.whole) {
            self.push(|| Entry::Run {
                command: command.iter().map(|word| owned(word)).collect(),
                rc: output.rc,
                output: joined(&output.lines).into(),
            });
        }
        answer
    }

    /// The lines that a filter wants, redacted.
    fn kept(&self, path: &str, text: &str, keep: &dyn Fn(&str) -> bool) -> Vec<String> {
        text.lines()
            .filter(|line| line.len() <= LINE_LIMIT && keep(line))
            .map(|line| self.redactor.text(path, line))
            .collect()
    }

    /// A variable of the environment; only names of the steering list may be asked for.
    pub fn env(&self, name: &str) -> Seen<String> {
        let answer = self
            .source
            .env(name)
            .map(|value| self.redactor.variable(name, &value));
        match &answer {
            Seen::Got(value) => self.push(|| Entry::Env(owned(name), owned(value))),
            // Not `env whole`: a later version asks for more variables than this one did.
            Seen::Absent => self.push(|| Entry::Unset(owned(name))),
            Seen::Unasked(_) | Seen::Failed(_) => {}
        }
        answer
    }

    /// The value of a variable that a file sets, as it may be told: what names a variable in a file needs as much care as
    /// one of the environment, whatever form the file has.
    pub fn variable(&self, name: &str, value: &str) -> String {
        self.redactor.variable(name, value)
    }

    /// The ids of this process.
    pub fn user(&self) -> Seen<ProcessUser> {
        let answer = self.source.user().map(|user| self.redactor.user(user));
        if let Seen::Got(user) = &answer {
            self.push(|| Entry::User(Box::new(user.clone())));
        }
        answer
    }

    /// What `uname` says.
    pub fn system(&self) -> Seen<System> {
        let answer = self.source.system();
        if let Seen::Got(system) = &answer {
            self.push(|| Entry::System(Box::new(system.clone())));
        }
        answer
    }

    /// When the machine was looked at, RFC 3339. None: a folder cannot tell.
    pub fn clock(&self) -> Option<String> {
        let clock = self.source.clock();
        if let Some(clock) = &clock {
            self.push(|| Entry::Clock(owned(clock)));
        }
        clock
    }

    /// Says which call into a library comes next: it can block like a read.
    pub fn calling(&self, call: &str) {
        (self.before_read)(call);
    }

    /// The file that a library is to be loaded from: the real path with every link resolved, which must not be handed on.
    /// It is the same however often it is asked for, so that what is loaded is what was checked before.
    pub fn library_file(&self) -> &Seen<String> {
        self.library.get_or_init(|| match &self.options.library {
            Some(library) => {
                (self.before_read)(library);
                self.source.real(&self.redactor.asked(library))
            }
            None => Seen::default(),
        })
    }

    /// `lstat` of that file and of each folder above it.
    pub fn way_to_library(&self) -> Seen<Vec<Seen<Stat>>> {
        self.library_file().as_ref().map(|file| {
            let ends = file.match_indices('/').map(|(at, _)| at.max(1));
            let ends = ends.chain([file.len()]);
            ends.map(|end| self.source.stat(&file[..end])).collect()
        })
    }

    /// The answer of a library: asked with `ask` on the running system, else as it was recorded.
    pub fn answer<T: Serialize + DeserializeOwned>(
        &self,
        library: &str,
        ask: impl FnOnce() -> Seen<T>,
    ) -> Seen<T> {
        if self.source.is_live() {
            let answer = self.redacted(ask());
            self.push(|| Entry::Answer(owned(library), machine::answer_to_json(&answer)));
            return answer;
        }
        self.source
            .answer(library)
            .and_then(|json| machine::answer_from_json(&json))
    }

    /// The answer of a library without private values.
    fn redacted<T: Serialize + DeserializeOwned>(&self, answer: Seen<T>) -> Seen<T> {
        if !self.redactor.is_on() {
            return answer;
        }
        answer.and_then(|value| {
            let redacted = to_json(&value)
                .map(|json| self.redactor.answer(json))
                .and_then(|json| from_json(&json));
            redacted.map_or_else(
                |error| Seen::error(format!("the answer cannot be redacted: {error}")),
                Seen::Got,
            )
        })
    }

    /// The entry of these names and of those that were recorded of the folder before.
    fn listing(&self, path: &str, names: &[String]) -> Entry {
        let mut listed = self.listed.borrow_mut();
        let all = listed.entry(path.to_owned()).or_default();
        all.extend(names.iter().cloned());
        Entry::Dir(owned(path), all.iter().map(|name| owned(name)).collect())
    }

    fn push(&self, entry: impl FnOnce() -> Entry) {
        if let Some(record) = &self.record {
            record.borrow_mut().push(entry());
        }
    }

    /// Records that a path leads to nothing. A link whose target is missing is there itself, so it stays in its folder, and
    /// what it leads to is what is absent.
    fn note_absent(&self, path: &str) {
        if self.record.is_none() {
            return;
        }
        let mut place = path.to_owned();
        for _ in 0..MOST_LINKS {
            let Seen::Got(target) = self.source.link(&self.redactor.asked(&place)) else {
                break;
            };
            let target = self.redactor.path(&target);
            self.push(|| Entry::Link(owned(&place), owned(&target)));
            place = beside(&place, &target);
        }
        let missing = self.source.stat(&self.redactor.asked(&place)).is_absent();
        if missing || place == path {
            self.push(|| Entry::Absent(place.into()));
        }
    }

    /// Records an answer: what was got by `got`, everything else in the one way the format has for it.
    fn note<T>(
        &self,
        path: &str,
        operation: Operation,
        answer: &Seen<T>,
        got: impl FnOnce(&T) -> Entry,
    ) {
        if answer.is_absent() {
            return self.note_absent(path);
        }
        self.push(|| match answer {
            Seen::Got(value) => got(value),
            Seen::Absent => Entry::Absent(owned(path)),
            Seen::Unasked(why) => Entry::Unasked(owned(path), *why, Some(operation)),
            Seen::Failed(Failure::TimedOut { .. }) => Entry::Hang(owned(path)),
            Seen::Failed(failure) => Entry::Error(owned(path), operation, owned(failure.what())),
        });
    }
}

/// Notes why a source of the kernel log refused.
fn note_refusal<T>(answer: &Seen<T>, path: &str, tried: &mut BTreeMap<String, String>) {
    if let Seen::Failed(failure) = answer
        // The journal is a folder, which says nothing of its lines.
        && failure.what() != "EISDIR"
    {
        tried.insert(path.to_owned(), failure.what().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::beside;

    #[test]
    fn targets_of_links_by_their_text() {
        for (link, target, place) in [
            (
                "/sys/bus/pci/devices/x",
                "../../../devices/pci0000:00/x",
                "/sys/devices/pci0000:00/x",
            ),
            ("/sys/a", "../../../../etc", "/etc"),
            ("/sys/a", "/etc//x/./", "/etc/x"),
            ("/a", "b", "/b"),
            ("/a/b", ".", "/a"),
        ] {
            assert_eq!(beside(link, target), place, "{link} {target}");
        }
    }
}
