//! The door: the only way to the machine. Every question to a file system, the environment, the process or a library goes
//! through `Host`, which answers with `Seen`, redacts private values before anyone parses them, and records what it
//! answered. A recorded machine answers through the same door, so probes cannot tell a replay from a live system.
//!
//! **Absence needs proof.** A path is `Absent` only where its surroundings show that its file system is really there (see
//! `Proof`); in an archive only where the archive says so. Everything else is `Unasked` or `Failed`.

pub mod archive;
pub mod live;
pub mod machine;
mod modinfo;
pub mod redact;

use crate::facts::environment::ProcessUser;
use crate::facts::module_files::ModInfo;
use crate::facts::{Failure, Seen, Why};
use machine::{Entry, Form, Operation};
use redact::Redactor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;

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
}

/// Names in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Sorted, without `.` and `..`.
    pub names: Vec<String>,
    /// These are all. False: others may be there too.
    pub whole: bool,
}

/// Lines of a file that a filter kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Without line ends.
    pub lines: Vec<String>,
    /// The file was read to its end.
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

/// Where answers come from: the running system, a folder that holds one, or a recorded machine.
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
    fn open(&self, path: &str) -> Seen<String>;
    /// `access(2)` for reading and writing, with effective ids: `ok` or an errno.
    fn access(&self, path: &str) -> Seen<String>;
    /// The access list as `getfacl` writes it; `Absent` where there is none.
    fn acl(&self, path: &str) -> Seen<Vec<String>>;
    /// What a module file says of itself.
    fn modinfo(&self, path: &str) -> Seen<ModInfo>;
    /// A variable of the environment.
    fn env(&self, name: &str) -> Seen<String>;
    /// The ids of this process.
    fn user(&self) -> Seen<ProcessUser>;
    /// What `uname` says.
    fn system(&self) -> Seen<System>;
    /// When the machine was looked at, RFC 3339. None: a folder cannot tell.
    fn clock(&self) -> Option<String>;
    /// A recorded answer of a library, as JSON. `Unasked` where the library itself has to be asked.
    fn answer(&self, library: &str) -> Seen<serde_json::Value>;
    /// Libraries of the running system may be asked.
    fn is_live(&self) -> bool {
        false
    }
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
            path: path.to_owned(),
            text: text.clone(),
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
            path: path.to_owned(),
            text: machine::bytes_as_text(bytes),
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
                let fits = |line: &&str| line.len() <= LINE_LIMIT;
                let short = text.len() <= LINES_LIMIT && text.lines().all(|line| fits(&line));
                let text_lines = text.lines().filter(fits);
                let redact = |line: &str| self.redactor.text(path, line);
                // Who looks for a user knows the placeholder only; elsewhere most lines need no work.
                let lines = if redact::holds_names(path) {
                    text_lines.map(redact).filter(|line| keep(line)).collect()
                } else {
                    text_lines.filter(|line| keep(line)).map(redact).collect()
                };
                let whole = whole && short;
                Lines { lines, whole }
            });
        self.note(path, Operation::Read, &answer, |lines| Entry::File {
            path: path.to_owned(),
            text: lines
                .lines
                .iter()
                .fold(String::new(), |all, line| all + line + "\n"),
            form: if lines.whole { Form::Kept } else { Form::Cut },
        });
        answer
    }

    /// Names in a folder, sorted; at most `LIST_LIMIT` of them.
    pub fn list(&self, path: &str) -> Seen<Listing> {
        (self.before_read)(path);
        let answer = self
            .source
            .list(&self.redactor.asked(path))
            .map(|listing| Listing {
                names: self.redactor.names(path, listing.names),
                whole: listing.whole,
            });
        self.note(path, Operation::List, &answer, |listing| {
            Entry::Dir(path.to_owned(), listing.names.clone())
        });
        if answer.got().is_some_and(|listing| listing.whole) {
            self.push(|| Entry::Whole(path.to_owned(), false));
        }
        answer
    }

    /// Target of a link, as it is written; `EINVAL` where the path is no link.
    pub fn link(&self, path: &str) -> Seen<String> {
        let answer = self
            .source
            .link(&self.redactor.asked(path))
            .map(|target| self.redactor.path(&target));
        self.note(path, Operation::Link, &answer, |target| {
            Entry::Link(path.to_owned(), target.clone())
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
                Entry::Exists(path.to_owned())
            } else {
                Entry::Link(path.to_owned(), target.clone())
            }
        });
        if let Some(target) = answer.got().filter(|target| *target != path) {
            self.push(|| Entry::Exists(target.clone()));
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
            Entry::Stat(path.to_owned(), Box::new(stat.clone()))
        });
        answer
    }

    /// Opens a node for reading and writing and closes it at once: `ok` or the name of the errno. Never for
    /// `/dev/nvidiaN`: that would initialise the GPU.
    pub fn open(&self, path: &str) -> Seen<String> {
        (self.before_read)(path);
        let answer = self.source.open(&self.redactor.asked(path));
        self.note(path, Operation::Open, &answer, |result| {
            Entry::Open(path.to_owned(), result.clone())
        });
        answer
    }

    /// `access(2)` for reading and writing with effective ids: `ok` or the name of the errno.
    pub fn access(&self, path: &str) -> Seen<String> {
        let answer = self.source.access(&self.redactor.asked(path));
        self.note(path, Operation::Access, &answer, |result| {
            Entry::Access(path.to_owned(), result.clone())
        });
        answer
    }

    /// The access list of a node as `getfacl` writes it; `Absent`: it has none.
    pub fn acl(&self, path: &str) -> Seen<Vec<String>> {
        let answer = self.source.acl(&self.redactor.asked(path));
        match &answer {
            Seen::Got(entries) => {
                for entry in entries {
                    self.push(|| Entry::Acl(path.to_owned(), Some(entry.clone())));
                }
            }
            Seen::Absent => self.push(|| Entry::Acl(path.to_owned(), None)),
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
            Entry::ModInfo(
                path.to_owned(),
                serde_json::to_value(info).unwrap_or_default(),
            )
        });
        answer
    }

    /// A variable of the environment; only names of the steering list may be asked for.
    pub fn env(&self, name: &str) -> Seen<String> {
        let answer = self
            .source
            .env(name)
            .map(|value| self.redactor.variable(name, &value));
        match &answer {
            Seen::Got(value) => self.push(|| Entry::Env(name.to_owned(), value.clone())),
            // Not `env whole`: a later version asks for more variables than this one did.
            Seen::Absent => self.push(|| Entry::Unset(name.to_owned())),
            Seen::Unasked(_) | Seen::Failed(_) => {}
        }
        answer
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
            self.push(|| Entry::System(system.clone()));
        }
        answer
    }

    /// When the machine was looked at, RFC 3339. None: a folder cannot tell.
    pub fn clock(&self) -> Option<String> {
        let clock = self.source.clock();
        if let Some(clock) = &clock {
            self.push(|| Entry::Clock(clock.clone()));
        }
        clock
    }

    /// The answer of a library: asked with `ask` on the running system, else as it was recorded.
    pub fn answer<T: Serialize + DeserializeOwned>(
        &self,
        library: &str,
        ask: impl FnOnce() -> Seen<T>,
    ) -> Seen<T> {
        if self.source.is_live() {
            let answer = self.redacted(ask());
            self.push(|| Entry::Answer(library.to_owned(), machine::answer_to_json(&answer)));
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
            let redacted = serde_json::to_value(value)
                .map(|json| self.redactor.answer(json))
                .and_then(serde_json::from_value);
            redacted.map_or_else(
                |error| Seen::error(format!("the answer cannot be redacted: {error}")),
                Seen::Got,
            )
        })
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
            self.push(|| Entry::Link(place.clone(), target.clone()));
            place = beside(&place, &target);
        }
        let missing = self.source.stat(&self.redactor.asked(&place)).is_absent();
        if missing || place == path {
            self.push(|| Entry::Absent(place));
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
            Seen::Absent => Entry::Absent(path.to_owned()),
            Seen::Unasked(why) => Entry::Unasked(path.to_owned(), *why, Some(operation)),
            Seen::Failed(Failure::TimedOut { .. }) => Entry::Hang(path.to_owned()),
            Seen::Failed(Failure::Denied { errno: what } | Failure::Error { what })
            | Seen::Failed(Failure::Crashed { how: what }) => {
                Entry::Error(path.to_owned(), operation, what.clone())
            }
        });
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
