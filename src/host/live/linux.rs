//! The sources of a Linux system. See `files.rs` for how paths are opened.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the door that others have to go through"
)]

use super::files::{Files, Last, Problem, lossy};
use super::run::{self, Limits};
use super::{errno, log, rfc3339};
use crate::facts::environment::ProcessUser;
use crate::facts::module_files::ModInfo;
use crate::facts::software::Elf;
use crate::facts::{Failure, Seen, Why};
use crate::host::log::{JOURNALS, KMSG};
use crate::host::{LIST_LIMIT, Listing, PASSWD_LIMIT, Source, Stat, System, beside, elf, modinfo};
use rustix::fs::{Access, AtFlags, CWD, FileType, OFlags, RawDir};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::path::Path;
use std::time::{Duration, SystemTime};

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

/// Major number of NVIDIA's GPU nodes, and the minors from which on they are no GPUs (modeset and control).
const NVIDIA_MAJOR: u32 = 195;
const NVIDIA_FIRST_CONTROL_MINOR: u32 = 254;

/// Most of `/proc/devices` that is looked at; real ones have 1 kB.
const DEVICES_LIMIT: usize = 64 * 1024;

/// Longest that a program may take. The limit of the worker is far below, unless somebody asked for more.
const RUN_TIME: Duration = Duration::from_secs(120);

/// The running system.
#[derive(Debug)]
pub struct Live {
    tree: Tree,
}

/// A folder that holds a system. It has files and nothing else: no environment, user, clock, device or library.
#[derive(Debug)]
pub struct Root {
    tree: Tree,
}

impl Default for Live {
    fn default() -> Live {
        Live::new()
    }
}

impl Live {
    /// The running system.
    pub fn new() -> Live {
        Live {
            tree: Tree::new(Files::live()),
        }
    }
}

impl Root {
    /// The system in a folder.
    ///
    /// # Errors
    /// The folder cannot be opened, or is none.
    pub fn open(dir: &Path) -> std::io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(dir, flags, rustix::fs::Mode::empty())?;
        Ok(Root {
            tree: Tree::new(Files::below(root)),
        })
    }
}

/// Files, and what shows that the file systems which should be there are.
#[derive(Debug)]
struct Tree {
    files: Files,
    sys: OnceCell<bool>,
    proc: OnceCell<bool>,
    dev: OnceCell<bool>,
    usr: OnceCell<bool>,
}

impl Tree {
    fn new(files: Files) -> Tree {
        Tree {
            files,
            sys: OnceCell::new(),
            proc: OnceCell::new(),
            dev: OnceCell::new(),
            usr: OnceCell::new(),
        }
    }

    /// The file system that the path belongs to is really here, so that what cannot be found in it does not exist.
    fn proves(&self, path: &str) -> bool {
        let there = |path| self.files.locate(path, Last::Followed).is_ok();
        let sys = || *self.sys.get_or_init(|| there("/sys/kernel"));
        let proc = || *self.proc.get_or_init(|| there("/proc/version"));
        match beside("/", path).split('/').nth(1) {
            Some("sys") => sys(),
            Some("proc") => proc(),
            Some("dev") => *self.dev.get_or_init(|| there("/dev/null")) && sys() && proc(),
            _ => *self.usr.get_or_init(|| there("/usr/lib")),
        }
    }

    /// What the errno of a path look-up means.
    fn unfound<T>(&self, path: &str, errno: Errno) -> Seen<T> {
        match errno {
            Errno::NOENT | Errno::NOTDIR if self.proves(path) => Seen::Absent,
            Errno::NOENT | Errno::NOTDIR => Seen::Unasked(Why::NotCaptured),
            other => failed(other),
        }
    }

    fn problem<T>(&self, path: &str, problem: Problem) -> Seen<T> {
        match problem {
            Problem::Path(errno) => self.unfound(path, errno),
            Problem::Read(errno) => failed(errno),
            Problem::NotRegular => Seen::error("not a regular file"),
        }
    }

    fn bytes(&self, path: &str, limit: usize) -> Seen<Vec<u8>> {
        match self.files.read(path, limit.saturating_add(1)) {
            Ok(bytes) => Seen::Got(bytes),
            Err(problem) => self.problem(path, problem),
        }
    }

    fn text(&self, path: &str, limit: usize) -> Seen<(String, bool)> {
        self.bytes(path, limit).map(|bytes| {
            let whole = bytes.len() <= limit;
            // The usual text is not copied: it may be long.
            let text = String::from_utf8(bytes).unwrap_or_else(|error| lossy(error.as_bytes()));
            (text, whole)
        })
    }

    fn list(&self, path: &str) -> Seen<Listing> {
        match self.files.stat(path, Last::Followed) {
            Err(errno) => return self.unfound(path, errno),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Directory => {
                return Seen::error("not a directory");
            }
            Ok(_) => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let folder = match self.files.open(path, flags, Last::Followed) {
            Ok(folder) => folder,
            Err(errno) => return self.unfound(path, errno),
        };
        let mut names = Vec::new();
        let mut whole = self.proves(path);
        let mut buffer = Vec::with_capacity(64 * 1024);
        let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let name = match &entry {
                Ok(entry) => entry.file_name().to_bytes(),
                Err(Errno::INTR) => continue,
                Err(errno) => return failed(*errno),
            };
            if name == b"." || name == b".." {
                continue;
            }
            if names.len() == LIST_LIMIT {
                whole = false;
                break;
            }
            names.push(lossy(name));
        }
        names.sort_unstable();
        Seen::Got(Listing {
            names,
            whole,
            kept: false,
        })
    }

    fn link(&self, path: &str) -> Seen<String> {
        match self.files.link(path) {
            Ok(target) => Seen::Got(target),
            Err(errno) => self.unfound(path, errno),
        }
    }

    fn real(&self, path: &str) -> Seen<String> {
        match self.files.real(path) {
            Ok(target) => Seen::Got(target),
            Err(errno) => self.unfound(path, errno),
        }
    }

    fn stat(&self, path: &str) -> Seen<Stat> {
        match self.files.stat(path, Last::Kept) {
            Ok(stat) => Seen::Got(stat_of(&stat)),
            Err(errno) => self.unfound(path, errno),
        }
    }

    fn modinfo(&self, path: &str) -> Seen<ModInfo> {
        match self.files.regular(path) {
            Ok(file) => modinfo::read(file),
            Err(problem) => self.problem(path, problem),
        }
    }

    fn elf(&self, path: &str) -> Seen<Elf> {
        match self.files.regular(path) {
            Ok(file) => elf::read(file),
            Err(problem) => self.problem(path, problem),
        }
    }

    /// A program of the system by its name. `Absent`: none of the folders has it.
    fn program(&self, name: &str) -> Seen<String> {
        Seen::first_of(run::FOLDERS.iter().map(|folder| {
            let path = format!("{folder}/{name}");
            match self.files.locate(&path, Last::Followed) {
                Ok(_) => Seen::Got(path),
                Err(errno) => self.unfound(&path, errno),
            }
        }))
    }
}

impl Source for Live {
    fn bytes(&self, path: &str, limit: usize) -> Seen<Vec<u8>> {
        self.tree.bytes(path, limit)
    }

    fn text(&self, path: &str, limit: usize) -> Seen<(String, bool)> {
        self.tree.text(path, limit)
    }

    fn list(&self, path: &str) -> Seen<Listing> {
        self.tree.list(path)
    }

    fn link(&self, path: &str) -> Seen<String> {
        self.tree.link(path)
    }

    fn real(&self, path: &str) -> Seen<String> {
        self.tree.real(path)
    }

    fn stat(&self, path: &str) -> Seen<Stat> {
        self.tree.stat(path)
    }

    fn open(&self, path: &str) -> Seen<String> {
        if is_gpu_of_nvidia(path) {
            return Seen::Unasked(Why::NotCaptured);
        }
        let stat = match self.tree.files.stat(path, Last::Followed) {
            Ok(stat) => stat,
            Err(errno) => return self.tree.unfound(path, errno),
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::CharacterDevice {
            return Seen::error("not a character device");
        }
        let major = rustix::fs::major(stat.st_rdev);
        // The same GPU under another name.
        if major == NVIDIA_MAJOR && rustix::fs::minor(stat.st_rdev) < NVIDIA_FIRST_CONTROL_MINOR {
            return Seen::Unasked(Why::NotCaptured);
        }
        // For a number that no driver has the kernel would load a module, and a node may outlive its driver.
        match self.text("/proc/devices", DEVICES_LIMIT) {
            Seen::Got((devices, _)) if has_char_major(&devices, major) => {}
            Seen::Got(_) => return Seen::Unasked(Why::NoSuchHardware),
            unknown => return unknown.and_then(|_| Seen::default()),
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY;
        Seen::Got(result(
            self.tree.files.open(path, flags, Last::Followed).map(drop),
        ))
    }

    fn access(&self, path: &str) -> Seen<String> {
        let wanted = Access::READ_OK | Access::WRITE_OK;
        match rustix::fs::accessat(CWD, path, wanted, AtFlags::EACCESS) {
            Err(Errno::NOENT | Errno::NOTDIR) => self.tree.unfound(path, Errno::NOENT),
            // No answer of the file: this kernel does not know the question.
            Err(Errno::NOSYS) => Seen::Unasked(Why::NotCaptured),
            answer => Seen::Got(result(answer)),
        }
    }

    fn acl(&self, path: &str) -> Seen<Vec<String>> {
        let mut value = Vec::with_capacity(64 * 1024);
        let buffer = rustix::buffer::spare_capacity(&mut value);
        match rustix::fs::getxattr(path, "system.posix_acl_access", buffer) {
            Ok(_) => acl_entries(&value)
                .map_or_else(|| Seen::error("an access list of unknown form"), Seen::Got),
            // No list, and a file system that has none at all.
            Err(Errno::NODATA | Errno::NOTSUP) => Seen::Absent,
            Err(errno) => self.tree.unfound(path, errno),
        }
    }

    fn modinfo(&self, path: &str) -> Seen<ModInfo> {
        self.tree.modinfo(path)
    }

    fn elf(&self, path: &str) -> Seen<Elf> {
        self.tree.elf(path)
    }

    fn run(&self, command: &[&str], limit: usize) -> Seen<(i32, String, bool)> {
        let Some((program, arguments)) = command.split_first() else {
            return Seen::error("no command");
        };
        let limits = Limits {
            bytes: limit,
            time: RUN_TIME,
            as_nobody: true,
        };
        self.tree
            .program(program)
            .and_then(|program| run::run(&program, arguments, limits))
            .map(|(rc, output)| (rc, lossy(&output), output.len() <= limit))
    }

    fn env(&self, name: &str) -> Seen<String> {
        match std::env::var_os(name) {
            Some(value) => Seen::Got(value.to_string_lossy().into_owned()),
            None => Seen::Absent,
        }
    }

    fn user(&self) -> Seen<ProcessUser> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let mut groups = match rustix::process::getgroups() {
            Ok(groups) => groups
                .into_iter()
                .map(|group| group.as_raw())
                .collect::<Vec<_>>(),
            Err(errno) => return failed(errno),
        };
        groups.push(gid.as_raw());
        groups.sort_unstable();
        groups.dedup();
        Seen::Got(ProcessUser {
            uid: uid.as_raw(),
            gid: gid.as_raw(),
            groups,
            real_uid: rustix::process::getuid().as_raw(),
            sudo_uid: if uid.is_root() {
                calling_user(
                    |name| std::env::var(name).ok(),
                    || self.text("/etc/passwd", PASSWD_LIMIT).into_got(),
                )
            } else {
                None
            },
            name: None,
        })
    }

    fn system(&self) -> Seen<System> {
        let uname = rustix::system::uname();
        Seen::Got(System {
            os: lossy(uname.sysname().to_bytes()).to_lowercase(),
            machine: lossy(uname.machine().to_bytes()),
            release: lossy(uname.release().to_bytes()),
        })
    }

    fn clock(&self) -> Option<String> {
        rfc3339(SystemTime::now())
    }

    fn kmsg(&self) -> Seen<(String, bool)> {
        match log::kmsg(&self.tree.files) {
            Ok(messages) => Seen::Got(messages),
            Err(Problem::Path(errno)) => self.tree.unfound(KMSG, errno),
            Err(Problem::Read(errno)) => failed(errno),
            Err(Problem::NotRegular) => Seen::error("not the kernel's own device"),
        }
    }

    fn journal(&self) -> Seen<(String, bool)> {
        let there = |path: &&str| self.tree.files.locate(path, Last::Followed).is_ok();
        if !JOURNALS.iter().any(there) {
            return Seen::Absent;
        }
        self.tree
            .program("journalctl")
            .and_then(|program| log::journal(&program))
    }

    fn is_live(&self) -> bool {
        true
    }
}

impl Source for Root {
    fn bytes(&self, path: &str, limit: usize) -> Seen<Vec<u8>> {
        self.tree.bytes(path, limit)
    }

    fn text(&self, path: &str, limit: usize) -> Seen<(String, bool)> {
        self.tree.text(path, limit)
    }

    fn list(&self, path: &str) -> Seen<Listing> {
        self.tree.list(path)
    }

    fn link(&self, path: &str) -> Seen<String> {
        self.tree.link(path)
    }

    fn real(&self, path: &str) -> Seen<String> {
        self.tree.real(path)
    }

    fn stat(&self, path: &str) -> Seen<Stat> {
        self.tree.stat(path)
    }

    fn modinfo(&self, path: &str) -> Seen<ModInfo> {
        self.tree.modinfo(path)
    }

    fn elf(&self, path: &str) -> Seen<Elf> {
        self.tree.elf(path)
    }
}

fn failed<T>(errno: Errno) -> Seen<T> {
    Seen::Failed(Failure::errno(&errno::name(errno)))
}

fn result(answer: Result<(), Errno>) -> String {
    match answer {
        Ok(()) => "ok".to_owned(),
        Err(errno) => errno::name(errno),
    }
}

/// `/dev/nvidia` and digits: opening one initialises the GPU, and takes its time.
fn is_gpu_of_nvidia(path: &str) -> bool {
    path.strip_prefix("/dev/nvidia").is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The text of `/proc/devices` names a driver of character devices with this number.
fn has_char_major(devices: &str, major: u32) -> bool {
    devices
        .lines()
        .take_while(|line| !line.starts_with("Block"))
        .filter_map(|line| line.split_whitespace().next())
        .any(|number| number.parse() == Ok(major))
}

fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice).then(|| {
        (
            rustix::fs::major(stat.st_rdev),
            rustix::fs::minor(stat.st_rdev),
        )
    });
    Stat {
        kind: match kind {
            FileType::RegularFile => "file",
            FileType::Directory => "dir",
            FileType::Symlink => "link",
            FileType::CharacterDevice => "char",
            FileType::BlockDevice => "block",
            FileType::Fifo => "fifo",
            FileType::Socket => "socket",
            FileType::Unknown => "unknown",
        }
        .to_owned(),
        mode: Some(stat.st_mode & 0o7777),
        uid: Some(stat.st_uid),
        gid: Some(stat.st_gid),
        size: u64::try_from(stat.st_size).ok(),
        mtime: Some(stat.st_mtime),
        device,
    }
}

/// uid of the user behind sudo, pkexec or doas. doas tells a name, and the row of passwd whose uid that is.
fn calling_user(
    variable: impl Fn(&str) -> Option<String>,
    passwd: impl Fn() -> Option<(String, bool)>,
) -> Option<u32> {
    let by_number = ["SUDO_UID", "PKEXEC_UID"]
        .iter()
        .find_map(|name| variable(name)?.parse().ok());
    let by_name = || {
        let name = variable("DOAS_USER")?;
        let (passwd, _) = passwd()?;
        passwd.lines().find_map(|row| {
            let mut fields = row.split(':');
            (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
        })
    };
    // root may call sudo too: then nobody else is behind it.
    by_number.or_else(by_name).filter(|uid| *uid != 0)
}

/// The entries of a `system.posix_acl_access` attribute as `getfacl` writes them. None: of another form.
fn acl_entries(value: &[u8]) -> Option<Vec<String>> {
    let entries = value.strip_prefix(&2_u32.to_le_bytes())?;
    if entries.len() % 8 != 0 {
        return None;
    }
    entries
        .chunks_exact(8)
        .map(|entry| {
            let tag = u16::from_le_bytes([entry[0], entry[1]]);
            let bits = u16::from_le_bytes([entry[2], entry[3]]);
            let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
            let who = match tag {
                0x01 => "user:".to_owned(),
                0x02 => format!("user:{id}"),
                0x04 => "group:".to_owned(),
                0x08 => format!("group:{id}"),
                0x10 => "mask:".to_owned(),
                0x20 => "other:".to_owned(),
                _ => return None,
            };
            let letter = |bit, letter| if bits & bit != 0 { letter } else { '-' };
            Some(format!(
                "{who}:{}{}{}",
                letter(4, 'r'),
                letter(2, 'w'),
                letter(1, 'x')
            ))
        })
        .collect()
}
