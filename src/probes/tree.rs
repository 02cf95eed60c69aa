//! A machine in memory for the tests of probes: files and links by path, and a list of what was asked.

use crate::facts::{Failure, Seen};
use crate::host::redact::Redactor;
use crate::host::{Host, Listing, Options, Source, Stat};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The folder of the shared test material. None, and a line that says so: it is not here, which is a failure where
/// everything is required.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(
        std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none(),
        "no ../shared/{name}"
    );
    let _ = writeln!(std::io::stderr(), "skipped: no ../shared/{name}");
    None
}

/// What was asked, as `read PATH`, `list PATH` or `link PATH`.
pub(crate) type Asked = Rc<RefCell<Vec<String>>>;

/// The machine. A path without an entry is absent and a folder is whole where `proved` is set; else nothing is known of
/// what has no entry.
#[derive(Clone, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Vec<u8>>,
    links: BTreeMap<String, String>,
    folders: BTreeMap<String, BTreeSet<String>>,
    errors: BTreeMap<String, String>,
    proved: bool,
    without_programs: bool,
    asked: Asked,
}

impl Tree {
    /// A machine whose file systems are all there.
    pub(crate) fn proved() -> Tree {
        Tree {
            proved: true,
            ..Tree::default()
        }
    }

    /// A machine from a fixture. A checkout without links has small files with the target in their place.
    pub(crate) fn fixture(root: &Path) -> Tree {
        let mut tree = Tree::default();
        tree.add_folder(root, "");
        tree
    }

    fn add_folder(&mut self, folder: &Path, at: &str) {
        for entry in fs::read_dir(folder).expect("a folder of the fixture") {
            let path = entry.expect("an entry of the fixture").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            let at = format!("{at}/{name}");
            if let Ok(target) = fs::read_link(&path) {
                self.link(&at, &target.to_string_lossy());
            } else if path.is_dir() {
                self.note_parents(&format!("{at}/x"));
                self.folders.entry(at.clone()).or_default().remove("x");
                self.add_folder(&path, &at);
            } else {
                let bytes = fs::read(&path).expect("a file of the fixture");
                let text = String::from_utf8_lossy(&bytes);
                let is_link =
                    !text.ends_with('\n') && folder.join(&*text).exists() && text.contains('/')
                        || text.starts_with("../") && !text.contains('\n');
                if is_link {
                    self.link(&at, &text);
                } else {
                    self.note_parents(&at);
                    self.files.insert(at, bytes);
                }
            }
        }
    }

    fn note_parents(&mut self, path: &str) {
        let mut rest = path;
        while let Some((folder, name)) = rest.rsplit_once('/') {
            self.folders
                .entry(folder.to_owned())
                .or_default()
                .insert(name.to_owned());
            rest = folder;
        }
    }

    /// Writes the machine below a folder, links as links.
    #[cfg(unix)]
    pub(crate) fn write_below(&self, root: &Path) -> std::io::Result<()> {
        for folder in self.folders.keys() {
            fs::create_dir_all(root.join(folder.trim_start_matches('/')))?;
        }
        for (path, bytes) in &self.files {
            fs::write(root.join(path.trim_start_matches('/')), bytes)?;
        }
        for (path, target) in &self.links {
            std::os::unix::fs::symlink(target, root.join(path.trim_start_matches('/')))?;
        }
        Ok(())
    }

    /// Puts a file there.
    pub(crate) fn file(&mut self, path: &str, text: &str) {
        self.bytes(path, text.as_bytes());
    }

    /// Puts a file there that is no text.
    pub(crate) fn bytes(&mut self, path: &str, bytes: &[u8]) {
        self.note_parents(path);
        self.files.insert(path.to_owned(), bytes.to_owned());
    }

    /// Puts a link there.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.note_parents(path);
        self.links.insert(path.to_owned(), target.to_owned());
    }

    /// Every question about this path fails.
    pub(crate) fn error(&mut self, path: &str, errno: &str) {
        self.note_parents(path);
        self.errors.insert(path.to_owned(), errno.to_owned());
    }

    /// The system runs and has none of the programs that it could be asked for.
    pub(crate) fn runs_without_programs(&mut self) {
        self.without_programs = true;
    }

    /// A PCI function at this path below `/sys/devices`, with its link on the bus.
    pub(crate) fn function(&mut self, path: &str, uevent: &str) {
        let address = path.rsplit('/').next().expect("an address");
        self.link(
            &format!("/sys/bus/pci/devices/{address}"),
            &format!("../../../devices/{path}"),
        );
        self.file(&format!("/sys/devices/{path}/uevent"), uevent);
    }

    /// A door to the machine, and the list of what is asked through it.
    pub(crate) fn host(&self, options: Options) -> (Host, Asked) {
        let tree = self.clone();
        tree.asked.borrow_mut().clear();
        let asked = tree.asked.clone();
        (Host::new(Box::new(tree), Redactor::off(), options), asked)
    }

    /// What a probe sees of the machine.
    pub(crate) fn ask<T>(&self, probe: fn(&Host) -> T) -> T {
        probe(&self.host(Options::default()).0)
    }

    fn missing<T>(&self) -> Seen<T> {
        if self.proved {
            Seen::Absent
        } else {
            Seen::default()
        }
    }

    /// Follows links in the folders of a path, and at its end where that is asked for.
    fn walk(&self, path: &str, follow_last: bool) -> Seen<String> {
        let mut done: Vec<String> = Vec::new();
        let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut hops = 0;
        while let Some(part) = todo.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    done.pop();
                    continue;
                }
                _ => done.push(part),
            }
            let here = format!("/{}", done.join("/"));
            if let Some(errno) = self.errors.get(&here) {
                return Seen::Failed(Failure::errno(errno));
            }
            if let Some(target) = self.links.get(&here)
                && (follow_last || !todo.is_empty())
            {
                hops += 1;
                if hops > 40 {
                    return Seen::Failed(Failure::errno("ELOOP"));
                }
                done.pop();
                if target.starts_with('/') {
                    done.clear();
                }
                todo.extend(target.split('/').rev().map(str::to_owned));
            }
        }
        let path = format!("/{}", done.join("/"));
        if self.files.contains_key(&path)
            || self.links.contains_key(&path)
            || self.folders.contains_key(&path)
        {
            Seen::Got(path)
        } else {
            self.missing()
        }
    }

    fn note(&self, what: &str, path: &str) {
        self.asked.borrow_mut().push(format!("{what} {path}"));
    }
}

impl Source for Tree {
    fn bytes(&self, path: &str, limit: usize) -> Seen<Vec<u8>> {
        self.note("read", path);
        self.walk(path, true)
            .and_then(|path| match self.files.get(&path) {
                Some(bytes) => Seen::Got(bytes.iter().copied().take(limit + 1).collect()),
                None => Seen::Failed(Failure::errno("EISDIR")),
            })
    }
    fn text(&self, path: &str, limit: usize) -> Seen<(String, bool)> {
        self.bytes(path, limit).map(|bytes| {
            let whole = bytes.len() <= limit;
            (String::from_utf8_lossy(&bytes).into_owned(), whole)
        })
    }
    fn list(&self, path: &str) -> Seen<Listing> {
        self.note("list", path);
        self.walk(path, true)
            .and_then(|path| match self.folders.get(&path) {
                Some(names) => Seen::Got(Listing {
                    names: names.iter().cloned().collect(),
                    whole: self.proved,
                    kept: false,
                }),
                None => Seen::Failed(Failure::errno("ENOTDIR")),
            })
    }
    fn link(&self, path: &str) -> Seen<String> {
        self.note("link", path);
        self.walk(path, false)
            .and_then(|path| match self.links.get(&path) {
                Some(target) => Seen::Got(target.clone()),
                None => Seen::Failed(Failure::errno("EINVAL")),
            })
    }
    fn real(&self, path: &str) -> Seen<String> {
        self.note("real", path);
        self.walk(path, true)
    }
    fn run(&self, _command: &[&str], _limit: usize) -> Seen<(i32, String, bool)> {
        if self.without_programs {
            Seen::Absent
        } else {
            Seen::default()
        }
    }
    fn stat(&self, path: &str) -> Seen<Stat> {
        self.note("stat", path);
        self.walk(path, false).map(|path| {
            let bytes = self.files.get(&path);
            let kind = match bytes {
                Some(_) => "file",
                None if self.links.contains_key(&path) => "link",
                None => "dir",
            };
            Stat {
                kind: kind.to_owned(),
                size: bytes.map(|bytes| bytes.len() as u64),
                ..Stat::default()
            }
        })
    }
}
