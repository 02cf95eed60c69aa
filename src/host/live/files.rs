//! Opens files of the running system, or below a folder that is taken for `/`.
//!
//! Below a folder no path, link or `..` may lead out of it. A joined path does not hold that promise, so every open goes
//! through `openat2(2)` or, where the kernel or a container runtime refuses that call, through a walk of our own.

use crate::host::MOST_LINKS;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::CString;
use std::fs::File;
use std::io::Read;

/// `openat2` gives EAGAIN when something was renamed under it; the walk comes after so many times.
const MOST_TRIES: usize = 8;
/// Longest path that the kernel takes.
const PATH_MAX: usize = 4096;

/// What came instead of a file's content.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// The path did not lead to a file.
    Path(Errno),
    /// The file is there and could not be read.
    Read(Errno),
    /// Something else than a regular file is there.
    NotRegular,
}

/// The file system that paths are meant in.
#[derive(Debug)]
pub struct Files {
    /// The folder taken for `/`; None: the running system's own.
    root: Option<OwnedFd>,
    /// Do not try `openat2` (again).
    walk_only: Cell<bool>,
}

/// Whether the last part of a path is followed where it is a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// The link's target is meant.
    Followed,
    /// The link itself is meant.
    Kept,
}

impl Files {
    /// The running system's files.
    pub fn live() -> Files {
        Files {
            root: None,
            walk_only: Cell::new(false),
        }
    }

    /// The files below a folder.
    pub fn below(root: OwnedFd) -> Files {
        Files {
            root: Some(root),
            walk_only: Cell::new(false),
        }
    }

    /// The same without `openat2`.
    #[cfg(test)]
    pub fn below_by_walk(root: OwnedFd) -> Files {
        Files {
            root: Some(root),
            walk_only: Cell::new(true),
        }
    }

    /// A handle that nothing can be read from. Never blocks and never wakes a device.
    pub fn locate(&self, path: &str, last: Last) -> Result<OwnedFd, Errno> {
        self.open(path, OFlags::PATH, last)
    }

    /// `stat` through such a handle.
    pub fn stat(&self, path: &str, last: Last) -> Result<Stat, Errno> {
        rustix::fs::fstat(self.locate(path, last)?)
    }

    /// Opens a path.
    pub fn open(&self, path: &str, flags: OFlags, last: Last) -> Result<OwnedFd, Errno> {
        if !path.starts_with('/') {
            return Err(Errno::INVAL);
        }
        let mut flags = flags | OFlags::CLOEXEC;
        if last == Last::Kept {
            flags |= OFlags::NOFOLLOW;
        }
        let Some(root) = &self.root else {
            return rustix::fs::open(path, flags, Mode::empty());
        };
        if !self.walk_only.get() {
            for _ in 0..MOST_TRIES {
                match rustix::fs::openat2(
                    root,
                    path,
                    flags,
                    Mode::empty(),
                    ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
                ) {
                    Err(Errno::AGAIN) => {}
                    // Old container runtimes answer EPERM to calls that they do not know. It can as well be the
                    // file's own answer, which the walk will then give again.
                    Err(Errno::PERM) => break,
                    Err(Errno::NOSYS) => {
                        self.walk_only.set(true);
                        break;
                    }
                    other => return other,
                }
            }
        }
        walk(root.as_fd(), path, last)?.open(flags)
    }

    /// The path with every link resolved, as it reads from inside.
    pub fn real(&self, path: &str) -> Result<String, Errno> {
        if !path.starts_with('/') {
            return Err(Errno::INVAL);
        }
        let top;
        let root = match &self.root {
            Some(root) => root.as_fd(),
            None => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                top = rustix::fs::open("/", flags, Mode::empty())?;
                top.as_fd()
            }
        };
        let place = walk(root, path, Last::Followed)?;
        place.open(OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        Ok(place.path())
    }

    /// Target of a link as it is written.
    pub fn link(&self, path: &str) -> Result<String, Errno> {
        let link = self.locate(path, Last::Kept)?;
        if FileType::from_raw_mode(rustix::fs::fstat(&link)?.st_mode) != FileType::Symlink {
            return Err(Errno::INVAL);
        }
        Ok(lossy(
            rustix::fs::readlinkat(&link, c"", Vec::new())?.to_bytes(),
        ))
    }

    /// A regular file, ready to be read. Anything else is never opened: a FIFO would block, a device might wake.
    pub fn regular(&self, path: &str) -> Result<File, Problem> {
        let found = self.stat(path, Last::Followed).map_err(Problem::Path)?;
        if !is_regular(&found) {
            return Err(Problem::NotRegular);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        // From here on the path is known to lead to a file, so that an error is the file's own.
        let file = self
            .open(path, flags, Last::Followed)
            .map_err(|errno| match errno {
                Errno::NOENT | Errno::NOTDIR => Problem::Path(errno),
                other => Problem::Read(other),
            })?;
        // It may have been exchanged in between; thanks to O_NONBLOCK the open did not block then.
        if !is_regular(&rustix::fs::fstat(&file).map_err(Problem::Read)?) {
            return Err(Problem::NotRegular);
        }
        Ok(File::from(file))
    }

    /// The bytes of a regular file, at most `most` of them. The size that the file states is not believed: in sysfs and
    /// procfs it is 0 or 4096.
    pub fn read(&self, path: &str, most: usize) -> Result<Vec<u8>, Problem> {
        let file = self.regular(path)?;
        let mut bytes = Vec::new();
        file.take(most as u64)
            .read_to_end(&mut bytes)
            .map_err(|error| Problem::Read(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        Ok(bytes)
    }
}

/// Bytes as text: what is no UTF-8 becomes U+FFFD.
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Where a walk ended: the folders on the way, and a name in the last of them.
struct Place<'root> {
    root: BorrowedFd<'root>,
    folders: Vec<(CString, OwnedFd)>,
    /// None: the last folder itself.
    name: Option<CString>,
}

impl Place<'_> {
    fn folder(&self) -> BorrowedFd<'_> {
        self.folders
            .last()
            .map_or(self.root, |(_, folder)| folder.as_fd())
    }

    /// Opens what is at the place. The name is no link, unless the link itself is meant, and must not become one.
    fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let name = self.name.as_deref().unwrap_or(c".");
        rustix::fs::openat(self.folder(), name, flags | OFlags::NOFOLLOW, Mode::empty())
    }

    fn path(&self) -> String {
        let names = self.folders.iter().map(|(name, _)| name).chain(&self.name);
        let path: String = names
            .map(|name| format!("/{}", lossy(name.as_bytes())))
            .collect();
        if path.is_empty() {
            "/".to_owned()
        } else {
            path
        }
    }
}

/// Walks a path part by part, as the kernel does with `RESOLVE_IN_ROOT`: an absolute link starts again at the root, and
/// `..` stays there.
fn walk<'root>(root: BorrowedFd<'root>, path: &str, last: Last) -> Result<Place<'root>, Errno> {
    if path.len() >= PATH_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    let mut place = Place {
        root,
        folders: Vec::new(),
        name: None,
    };
    let mut rest = parts(path.as_bytes())?;
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        match name.as_bytes() {
            b"." => continue,
            b".." => {
                place.folders.pop();
                continue;
            }
            _ => {}
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(place.folder(), &name, flags, Mode::empty())?;
        match FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode) {
            FileType::Symlink if !rest.is_empty() || last == Last::Followed => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = rustix::fs::readlinkat(&found, c"", Vec::new())?;
                if target.is_empty() {
                    return Err(Errno::NOENT);
                }
                if target.as_bytes().starts_with(b"/") {
                    place.folders.clear();
                }
                let mut longer = parts(target.as_bytes())?;
                longer.append(&mut rest);
                rest = longer;
            }
            FileType::Directory => place.folders.push((name, found)),
            _ if rest.is_empty() => place.name = Some(name),
            _ => return Err(Errno::NOTDIR),
        }
    }
    Ok(place)
}

/// The parts of a path. A slash at its end asks for a folder and stays as a last part `.`.
fn parts(path: &[u8]) -> Result<VecDeque<CString>, Errno> {
    let mut parts = path
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .map(|part| CString::new(part).map_err(|_| Errno::INVAL))
        .collect::<Result<VecDeque<CString>, Errno>>()?;
    if path.ends_with(b"/") {
        parts.push_back(c".".to_owned());
    }
    Ok(parts)
}
