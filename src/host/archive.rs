//! A recorded machine as a source of answers: how entries meet, and what they say together.
//!
//! Three rules carry the rest. A path *exists* where an entry shows it or something below it. It is `Absent` only where
//! `absent` says so, for it or a folder above, or where a folder above is `whole` and no entry names it. Everything else is
//! unknown, and what is unknown breaks a proof: below a folder that could not be looked at nothing is absent.
//!
//! Machines may be broken or hostile. Entries are kept in a tree, so a path costs what it is long; links are followed as
//! the kernel would, at most `LINKS` of them and `STEPS` names a question.

use super::machine::{
    self, Entries, Entry, Form, Operation, Text, last_byte, path_of, split_at_byte,
};
use super::{LINES_LIMIT, LIST_LIMIT, Listing, Source, Stat, System, loader_cache};
use crate::facts::environment::ProcessUser;
use crate::facts::module_files::ModInfo;
use crate::facts::software::Elf;
use crate::facts::{Failure, Seen, Why, from_json};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;

/// Links followed in one question before it fails with ELOOP, as in the kernel.
const LINKS: usize = 40;
/// Names walked in one question before it fails with ENAMETOOLONG.
const STEPS: usize = 2048;
/// Names walked while a machine is taken in. A real one needs some ten thousand.
const BUILD_STEPS: usize = 20_000_000;

/// What stands at one path. At most one entry of each kind, in the order in which they are written.
#[derive(Default)]
struct Answers {
    entries: Vec<Entry>,
    /// The access list; empty and recorded: there is none.
    acl: Option<Vec<Text>>,
}

/// Entries after they met.
#[derive(Default)]
struct Settled {
    clock: Option<Text>,
    system: Option<Box<System>>,
    user: Option<Box<ProcessUser>>,
    env_whole: bool,
    /// None: unset.
    env: BTreeMap<Text, Option<Text>>,
    /// Sorted by path, byte by byte.
    paths: Vec<(Text, Answers)>,
    /// By program and first argument.
    runs: BTreeMap<(Text, Text), Entry>,
    log: Option<Entry>,
    answers: BTreeMap<Text, Value>,
}

/// The question that an entry answers, or refuses to answer. None: it speaks of the path as a whole.
fn operation_of(entry: &Entry) -> Option<Operation> {
    match entry {
        Entry::File { .. } | Entry::ModInfo(..) | Entry::Elf(..) => Some(Operation::Read),
        Entry::Dir(..) | Entry::Whole(..) | Entry::Kept(_) => Some(Operation::List),
        Entry::Link(..) => Some(Operation::Link),
        Entry::Stat(..) | Entry::Exists(_) => Some(Operation::Stat),
        Entry::Open(..) => Some(Operation::Open),
        Entry::Access(..) => Some(Operation::Access),
        Entry::Error(_, operation, _) => Some(*operation),
        Entry::Unasked(_, _, operation) => *operation,
        _ => None,
    }
}

/// Place of an entry among those of its path. Equal ranks replace each other.
fn rank(entry: &Entry) -> u8 {
    match entry {
        Entry::Absent(_) | Entry::Unasked(_, _, None) => 0,
        Entry::Hang(_) => 1,
        Entry::Link(..) => 2,
        Entry::Stat(..) => 3,
        Entry::Open(..) => 4,
        Entry::Access(..) => 5,
        Entry::Exists(_) => 6,
        Entry::File { .. } => 7,
        Entry::ModInfo(..) => 8,
        Entry::Elf(..) => 9,
        Entry::Dir(..) => 10,
        Entry::Whole(_, false) => 11,
        Entry::Whole(_, true) => 12,
        Entry::Kept(_) => 13,
        Entry::Error(_, operation, _) | Entry::Unasked(_, _, Some(operation)) => {
            20 + *operation as u8
        }
        _ => u8::MAX,
    }
}

fn is_refusal(entry: &Entry) -> bool {
    matches!(entry, Entry::Error(..) | Entry::Unasked(_, _, Some(_)))
}

/// Reading and listing are what a hang stands for.
fn reads(entry: &Entry) -> bool {
    matches!(operation_of(entry), Some(Operation::Read | Operation::List))
}

/// A later entry for the same path takes the place of an earlier one.
fn replaces(new: &Entry, old: &Entry) -> bool {
    match (new, old) {
        (_, Entry::Absent(_) | Entry::Unasked(_, _, None)) => true,
        (Entry::Absent(_) | Entry::Unasked(_, _, None), _) => true,
        (Entry::Hang(_), old) => reads(old) || is_refusal(old) || matches!(old, Entry::Hang(_)),
        (new, Entry::Hang(_)) => reads(new),
        (new, old) => {
            operation_of(new) == operation_of(old)
                && (is_refusal(new) || is_refusal(old) || rank(new) == rank(old))
        }
    }
}

impl Answers {
    fn put(&mut self, entry: Entry) {
        if matches!(
            entry,
            Entry::Unasked(_, _, None)
                | Entry::Error(_, Operation::Stat, _)
                | Entry::Unasked(_, _, Some(Operation::Stat))
        ) {
            self.acl = None;
        }
        match &mut self.entries[..] {
            // Most paths have one entry. The usual growth would make room for four.
            [] => {
                self.entries = vec![entry];
                return;
            }
            [only] if rank(only) == rank(&entry) => {
                *only = entry;
                return;
            }
            _ => self.entries.retain(|old| !replaces(&entry, old)),
        }
        let at = self
            .entries
            .partition_point(|other| rank(other) < rank(&entry));
        self.entries.insert(at, entry);
    }

    /// Takes an entry that another path may have led to. What one path showed is not taken back by what another one lacks.
    fn meet(&mut self, entry: Entry) {
        let weaker = match &entry {
            Entry::Absent(_) | Entry::Unasked(_, _, None) => !self.entries.is_empty(),
            Entry::Hang(_) => self.entries.iter().any(reads),
            entry if is_refusal(entry) => self
                .entries
                .iter()
                .any(|other| operation_of(other) == operation_of(entry)),
            _ => false,
        };
        if !weaker {
            self.put(entry);
        }
    }

    fn is_absent(&self) -> bool {
        matches!(self.entries.first(), Some(Entry::Absent(_)))
    }
}

/// What every path below this one begins with.
fn prefix(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let mut prefix = String::with_capacity(path.len() + 32);
    prefix.push_str(path);
    prefix.push('/');
    prefix
}

fn join(folder: &str, name: &str) -> String {
    prefix(folder) + name
}

/// Whether a path of the set begins with a prefix.
fn any_below(paths: &BTreeSet<String>, prefix: &str) -> bool {
    paths
        .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
        .next()
        .is_some_and(|path| path.starts_with(prefix))
}

/// What stands before the last slash and behind it.
fn split_at_last_slash(path: &str) -> Option<(&str, &str)> {
    let at = last_byte(path.as_bytes(), b'/')?;
    Some((&path[..at], &path[at + 1..]))
}

/// These bytes of a text, without a copy where it is one of a machine.
fn part(text: &Text, start: usize, end: usize) -> Text {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
        Cow::Owned(text) => Cow::Owned(text[start..end].to_owned()),
    }
}

/// The folder and the name that `join` makes this path of.
fn folder_and_name(path: &str) -> Option<(&str, &str)> {
    split_at_last_slash(path).filter(|(folder, name)| !folder.ends_with('/') && !name.is_empty())
}

/// The listings of one folder, with their places among the entries.
#[derive(Default)]
struct Listings<'a> {
    lists: Vec<(usize, &'a [Text])>,
    /// All names with the places where they are listed, sorted. Made when it is needed: mostly no listing is behind an
    /// `absent` of a name in its folder.
    names: OnceCell<Vec<(&'a str, usize)>>,
    /// Names that are absent in the end, sorted.
    absent: Vec<&'a str>,
}

impl Listings<'_> {
    /// The first listing behind this place that holds the name.
    fn next_of(&self, name: &str, after: usize) -> Option<usize> {
        if self.lists.last().is_none_or(|(at, _)| *at < after) {
            return None;
        }
        let names = self.names.get_or_init(|| {
            let lists = self.lists.iter();
            let mut names: Vec<(&str, usize)> = lists
                .flat_map(|(at, names)| names.iter().map(|name| (&**name, *at)))
                .collect();
            names.sort_unstable();
            names
        });
        let next = names.partition_point(|known| *known <= (name, after));
        let (known, at) = names.get(next)?;
        (*known == name).then_some(*at)
    }

    /// How many of the first entries of a name a later listing ends: it holds the name, and nothing but an absence stood
    /// there. That an absent node has no access list is no sign of life.
    fn end(&self, name: &str, entries: &[Entry], places: &[usize]) -> usize {
        let Some(first) = places.first() else {
            return 0;
        };
        if !matches!(entries[*first], Entry::Absent(_)) {
            return 0;
        }
        let Some(listed) = self.next_of(name, *first) else {
            return 0;
        };
        let before = places.partition_point(|at| *at < listed);
        let nothing_is_there = places[..before]
            .iter()
            .all(|at| matches!(entries[*at], Entry::Absent(_) | Entry::Acl(_, None)));
        if nothing_is_there { before } else { 0 }
    }

    /// The listings that hold absent names, without those.
    fn shortened(&self) -> impl Iterator<Item = (usize, Vec<Text>)> {
        let is_absent = |name: &Text| self.absent.binary_search(&&**name).is_ok();
        let lists = self.lists.iter().filter(|_| !self.absent.is_empty());
        lists
            .filter(move |(_, names)| names.iter().any(is_absent))
            .map(move |(at, names)| {
                let stays = names.iter().filter(|name| !is_absent(name));
                (*at, stays.cloned().collect())
            })
    }
}

/// What stands when all entries have been said.
#[derive(Default)]
struct Standing {
    /// The places of the entries that stand, but for those that `Answers::put` replaces: sorted by path, and for each path
    /// in their order.
    places: Vec<usize>,
    /// Listings that lost names which were proved absent after them, by their places.
    shortened: Vec<(usize, Vec<Text>)>,
}

/// An `absent` ends what was said before of its path and of all below it, and is ended by a later listing that holds its
/// name.
///
/// Entries are sorted once instead of being looked up one by one: that is most of the time that a replay takes.
fn standing(entries: &[Entry]) -> Standing {
    // Path, place, and whether the path is that of the entry.
    let mut order: Vec<(&str, usize, bool)> = Vec::with_capacity(entries.len());
    let mut listings: HashMap<&str, Listings> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let Some(path) = path_of(entry) else {
            continue;
        };
        order.push((path, at, true));
        match entry {
            // What is below `/a//` begins with `/a/`, which is sorted before it: the absence must be met there.
            Entry::Absent(_) if path.ends_with("//") => {
                let above = &path[..=path.trim_end_matches('/').len()];
                order.push((above, at, false));
            }
            Entry::Dir(_, names) => {
                let listings = listings.entry(path.trim_end_matches('/')).or_default();
                listings.lists.push((at, names));
            }
            _ => {}
        }
    }
    // Stable, as this sort is the faster one where parts are sorted already: a capture is.
    order.sort_by(|(one, ..), (other, ..)| one.as_bytes().cmp(other.as_bytes()));

    let is_absent = |at: &usize| matches!(entries[*at], Entry::Absent(_));
    let mut places = Vec::with_capacity(order.len());
    // The folder whose listings were looked up last: its names mostly follow each other.
    let mut folder_at_hand = ("", listings.get_mut(""));
    // Absent paths that the path at hand begins with, and the last place where they are absent.
    let mut above: Vec<(&str, usize)> = Vec::new();
    for group in order.chunk_by(|(one, ..), (other, ..)| one == other) {
        let path = group[0].0;
        while above
            .pop_if(|(start, _)| !path.starts_with(*start))
            .is_some()
        {}
        let absent = group.iter().map(|(_, at, _)| *at).rfind(is_absent);
        if let Some(at) = absent {
            above.push((path.trim_end_matches('/'), at));
        }
        let is_below = |folder: &str| path.as_bytes().get(folder.len()) == Some(&b'/');
        let ended = above
            .iter()
            .filter(|(folder, _)| is_below(folder))
            .map(|(_, at)| *at)
            .max()
            .max(absent);
        let from = places.len();
        let of_path = group.iter().filter(|(.., is_own)| *is_own);
        places.extend(
            of_path
                .map(|(_, at, _)| *at)
                .filter(|at| Some(*at) >= ended),
        );
        // The rest is about absent names of a folder.
        if absent.is_none() || places.len() == from {
            continue;
        }
        let Some((folder, name)) = folder_and_name(path) else {
            continue;
        };
        if folder_at_hand.0 != folder {
            folder_at_hand = (folder, listings.get_mut(folder));
        }
        let Some(listings) = &mut folder_at_hand.1 else {
            continue;
        };
        let ended = listings.end(name, entries, &places[from..]);
        places.drain(from..from + ended);
        // Every other entry takes the place of an absence.
        let last = places[from..]
            .iter()
            .rfind(|at| !matches!(entries[**at], Entry::Acl(_, None)));
        if last.is_some_and(is_absent) {
            listings.absent.push(name);
        }
    }
    Standing {
        places,
        shortened: listings.values().flat_map(Listings::shortened).collect(),
    }
}

impl Settled {
    fn new(mut entries: Vec<Entry>) -> Settled {
        let mut settled = Settled::default();
        let mut lines = HashSet::new();
        let Standing { places, shortened } = standing(&entries);
        for (at, stays) in shortened {
            if let Entry::Dir(_, names) = &mut entries[at] {
                *names = stays;
            }
        }
        settled.paths.reserve(places.len());
        for at in places {
            let taken = std::mem::replace(&mut entries[at], Entry::Hang(Text::default()));
            settled.put(taken, &mut lines);
        }
        for entry in entries {
            match entry {
                Entry::Clock(time) => settled.clock = Some(time),
                Entry::System(system) => settled.system = Some(system),
                Entry::User(user) => settled.user = Some(user),
                Entry::EnvWhole => settled.env_whole = true,
                Entry::Env(name, value) => {
                    settled.env.insert(name, Some(value));
                }
                Entry::Unset(name) => {
                    settled.env.insert(name, None);
                }
                Entry::Run { ref command, .. } => {
                    let word = |at: usize| command.get(at).cloned().unwrap_or_default();
                    settled.runs.insert((word(0), word(1)), entry);
                }
                Entry::Log(..) => settled.log = Some(entry),
                Entry::Answer(library, json) => {
                    settled.answers.insert(library, json);
                }
                // Of a path: taken above, or ended by an `absent`.
                _ => {}
            }
        }
        settled
    }

    /// Takes the next entry in the order of `Standing`. The lines are those in the access list of its path.
    fn put(&mut self, entry: Entry, lines: &mut HashSet<Text>) {
        let Some(path) = path_of(&entry) else {
            return;
        };
        if self.paths.last().is_none_or(|(last, _)| last != path) {
            self.paths.push((path.clone(), Answers::default()));
        }
        let Some((_, answers)) = self.paths.last_mut() else {
            return;
        };
        match entry {
            // An absent node has no list either: that is no sign of life.
            Entry::Acl(_, None) if answers.is_absent() => {}
            Entry::Acl(_, None) => answers.acl = Some(Vec::new()),
            Entry::Acl(_, Some(line)) => {
                answers.entries.retain(|old| rank(old) != 0);
                let list = answers.acl.get_or_insert_default();
                if list.is_empty() {
                    lines.clear();
                }
                if lines.insert(line.clone()) {
                    list.push(line);
                }
            }
            entry => answers.put(entry),
        }
    }

    /// Every path that an entry names, itself or in a listing.
    fn named(&self) -> BTreeSet<String> {
        let mut named = BTreeSet::new();
        for (path, answers) in &self.paths {
            named.insert(path.to_string());
            for entry in &answers.entries {
                if let Entry::Dir(_, names) = entry {
                    named.extend(names.iter().map(|name| join(path, name)));
                }
            }
        }
        named
    }

    /// Takes out what a `whole` of the later machine rules out: what stands in that folder (or anywhere below it) and is not
    /// named by the later machine, itself or by something below it.
    fn drop_ruled_out(&mut self, later: &Settled) {
        let named = later.named();
        let is_named = |path: &str| named.contains(path) || any_below(&named, &prefix(path));
        for (folder, answers) in &later.paths {
            for entry in &answers.entries {
                let Entry::Whole(_, everywhere) = entry else {
                    continue;
                };
                let start = prefix(folder);
                let ruled_out = |path: &str| {
                    let below = &path[start.len()..];
                    match below.split_once('/') {
                        Some((child, _)) if !everywhere => !is_named(&join(folder, child)),
                        _ => !is_named(path),
                    }
                };
                self.paths
                    .retain(|(path, _)| !(path.starts_with(&start) && ruled_out(path)));
                for (path, answers) in &mut self.paths {
                    let inside = *path == *folder || (*everywhere && path.starts_with(&start));
                    for entry in answers.entries.iter_mut().filter(|_| inside) {
                        if let Entry::Dir(_, names) = entry {
                            names.retain(|name| is_named(&join(path, name)));
                        }
                    }
                }
            }
        }
    }

    fn into_entries(self) -> Vec<Entry> {
        let mut entries = Vec::new();
        entries.extend(self.clock.map(Entry::Clock));
        entries.extend(self.system.map(Entry::System));
        entries.extend(self.user.map(Entry::User));
        entries.extend(self.env_whole.then_some(Entry::EnvWhole));
        entries.extend(self.env.into_iter().map(|(name, value)| match value {
            Some(value) => Entry::Env(name, value),
            None => Entry::Unset(name),
        }));
        for (path, answers) in self.paths {
            entries.extend(answers.entries);
            if let Some(acl) = answers.acl {
                if acl.is_empty() {
                    entries.push(Entry::Acl(path.clone(), None));
                }
                entries.extend(
                    acl.into_iter()
                        .map(|line| Entry::Acl(path.clone(), Some(line))),
                );
            }
        }
        entries.extend(self.runs.into_values());
        entries.extend(self.log);
        entries.extend(
            self.answers
                .into_iter()
                .map(|(library, json)| Entry::Answer(library, json)),
        );
        entries
    }
}

/// The path whose access list this is a line of.
fn listed_access(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Acl(path, Some(_)) => Some(path),
        _ => None,
    }
}

impl Entries {
    /// The same machine with one entry for each answer, sorted: what was replaced is gone.
    #[must_use]
    pub fn settled(&self) -> Entries {
        Entries {
            entries: Settled::new(self.entries.clone()).into_entries(),
            made_by: self.made_by.clone(),
            base: self.base.clone(),
        }
    }

    /// A machine laid over another one; settled, and on the base of the other one, if it has one.
    #[must_use]
    pub fn overlay(base: Entries, later: Entries) -> Entries {
        let mut below = Settled::new(base.entries);
        below.drop_ruled_out(&Settled::new(later.entries.clone()));
        let mut entries = below.into_entries();
        // The lines of an access list add up within one machine. Those of the later machine replace the earlier list.
        let listed: HashSet<&str> = later.entries.iter().filter_map(listed_access).collect();
        entries.retain(|entry| listed_access(entry).is_none_or(|path| !listed.contains(path)));
        entries.extend(later.entries);
        Entries {
            entries: Settled::new(entries).into_entries(),
            made_by: later.made_by.or(base.made_by),
            base: base.base,
        }
    }
}

/// A name in the tree, with what is said of it.
#[derive(Default)]
struct Node {
    name: Text,
    parent: usize,
    /// Sorted by name.
    children: Vec<usize>,
    answers: Answers,
    exists: bool,
}

impl Node {
    fn entry(&self, wanted: impl Fn(&Entry) -> bool) -> Option<&Entry> {
        self.answers.entries.iter().find(|entry| wanted(entry))
    }

    fn link(&self) -> Option<&str> {
        self.answers.entries.iter().find_map(|entry| match entry {
            Entry::Link(_, target) => Some(&**target),
            _ => None,
        })
    }

    fn is_whole(&self) -> bool {
        self.entry(|entry| matches!(entry, Entry::Whole(..)))
            .is_some()
    }

    fn is_whole_below(&self) -> bool {
        self.entry(|entry| matches!(entry, Entry::Whole(_, true)))
            .is_some()
    }

    fn is_folder(&self) -> bool {
        let lists =
            |entry: &Entry| matches!(entry, Entry::Dir(..) | Entry::Whole(..) | Entry::Kept(_));
        self.entry(lists).is_some() || self.stat().is_some_and(|stat| stat.kind == "dir")
    }

    fn is_file(&self) -> bool {
        self.entry(|entry| {
            matches!(
                entry,
                Entry::File { .. } | Entry::ModInfo(..) | Entry::Elf(..)
            )
        })
        .is_some()
            || self
                .stat()
                .is_some_and(|stat| stat.kind != "dir" && !stat.kind.is_empty())
    }

    /// Recorded as existing. The usual case is a regular file; a path that was only looked for may be a folder too.
    fn is_there(&self) -> bool {
        self.entry(|entry| matches!(entry, Entry::Exists(_)))
            .is_some()
    }

    fn stat(&self) -> Option<&Stat> {
        self.answers.entries.iter().find_map(|entry| match entry {
            Entry::Stat(_, stat) => Some(&**stat),
            _ => None,
        })
    }

    /// An entry here shows that the path exists. Errors of a look-up show nothing, and no other error does once `stat`
    /// itself has failed.
    fn shows_life(&self) -> bool {
        let stat_failed = || {
            self.entry(|entry| matches!(entry, Entry::Error(_, Operation::Stat, _)))
                .is_some()
        };
        self.answers
            .acl
            .as_ref()
            .is_some_and(|list| !list.is_empty())
            || self
                .entry(|entry| match entry {
                    Entry::Error(_, _, errno) => !is_lookup_error(errno) && !stat_failed(),
                    Entry::Open(_, result) => !is_lookup_error(result),
                    Entry::Access(_, result) => result == "ok",
                    Entry::Hang(_) => true,
                    Entry::Absent(_) | Entry::Unasked(..) => false,
                    _ => true,
                })
                .is_some()
    }

    /// Something was tried here, and nothing shows whether the path exists.
    fn is_doubtful(&self) -> bool {
        !self.exists
            && self
                .entry(|entry| match entry {
                    Entry::Absent(_) => false,
                    Entry::Error(_, _, result)
                    | Entry::Open(_, result)
                    | Entry::Access(_, result) => result != "ENOENT",
                    _ => true,
                })
                .is_some()
    }

    /// What is below this folder could not be looked at.
    fn is_barred(&self) -> bool {
        self.entry(|entry| match entry {
            Entry::Hang(_) | Entry::Unasked(_, _, None | Some(Operation::List)) => true,
            Entry::Error(_, operation, _) => {
                matches!(operation, Operation::List | Operation::Stat)
            }
            _ => false,
        })
        .is_some()
    }
}

/// Errors that the kernel gives before it has reached the file.
fn is_lookup_error(errno: &str) -> bool {
    matches!(
        errno,
        "ENOENT" | "ENOTDIR" | "EACCES" | "EPERM" | "ELOOP" | "ENAMETOOLONG"
    )
}

/// A name that is none of a file.
fn is_odd(name: &str) -> bool {
    matches!(name, "" | "." | "..")
}

/// A node, and what it took to get there.
#[derive(Clone, Copy, Default)]
struct Way {
    node: usize,
    /// Names walked.
    steps: usize,
    /// Links followed.
    links: usize,
}

/// Where a path leads.
struct Place<'a> {
    /// The way to the deepest part of it that the tree has.
    way: Way,
    /// What the tree does not have.
    missing: Vec<&'a str>,
}

/// What is known of a path's existence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Presence {
    Exists,
    Absent,
    Unknown,
}

/// A recorded machine.
pub struct Archive {
    nodes: Vec<Node>,
    clock: Option<Text>,
    system: Option<Box<System>>,
    user: Option<Box<ProcessUser>>,
    env_whole: bool,
    env: BTreeMap<Text, Option<Text>>,
    /// By program and first argument.
    runs: BTreeMap<(Text, Text), Entry>,
    answers: BTreeMap<Text, Value>,
    /// Source and lines of the kernel log.
    log: Option<(Text, Vec<Text>)>,
    /// Recorded from a folder, where nobody asked for access lists.
    of_folder: bool,
    /// The folders on the way to the path that was taken in last, each with its own path. Paths come sorted, so the way to
    /// the next one mostly begins there.
    folders: Vec<(Text, Way)>,
    /// Steps left while the machine is taken in; at 0 some entries have no place, so nothing is proved absent.
    budget: usize,
}

const ROOT: usize = 0;

impl Archive {
    /// Takes a machine in. A base that it names must have been laid under it before (`Entries::overlay`).
    pub fn new(entries: Entries) -> Archive {
        let made_by = entries.made_by.unwrap_or_default();
        let mut settled = Settled::new(entries.entries);
        let mut archive = Archive {
            nodes: vec![Node::default()],
            clock: settled.clock,
            system: settled.system,
            user: settled.user,
            env_whole: settled.env_whole,
            env: settled.env,
            runs: settled.runs,
            answers: settled.answers,
            log: match settled.log {
                Some(Entry::Log(source, lines)) => Some((source, lines)),
                _ => None,
            },
            of_folder: made_by.split_whitespace().nth(2) == Some("root"),
            folders: Vec::new(),
            budget: BUILD_STEPS,
        };
        archive.nodes.reserve(settled.paths.len());
        archive.take_links(&mut settled.paths);
        for (path, answers) in settled.paths {
            archive.take(&path, answers);
        }
        archive.mark_existing();
        archive
    }

    /// Puts links into the tree, so that other entries find their place. A link may be recorded by a path that goes through
    /// another link; outer ones come first.
    fn take_links(&mut self, paths: &mut [(Text, Answers)]) {
        let mut links = Vec::new();
        for (path, answers) in paths {
            let is_link = |entry: &mut Entry| matches!(entry, Entry::Link(..));
            links.extend(
                answers
                    .entries
                    .extract_if(.., is_link)
                    .map(|entry| (path.clone(), entry)),
            );
        }
        links.sort_by_cached_key(|(path, _)| path.matches('/').count());
        for (path, entry) in &links {
            if path.split('/').any(|name| name == "." || name == "..") {
                continue;
            }
            let node = path
                .split('/')
                .filter(|name| !name.is_empty())
                .fold(ROOT, |node, name| self.grow(node, &name.to_owned().into()));
            self.nodes[node].answers.put(entry.clone());
        }
        for (path, entry) in links {
            let Some(node) = self.place(&path, false) else {
                continue;
            };
            let Entry::Link(_, target) = &entry else {
                continue;
            };
            if self.nodes[node].link().is_some() {
                continue;
            }
            // `real` records where a path leads in the end, also where only a folder above it is a link.
            let from = if target.starts_with('/') {
                ROOT
            } else {
                self.nodes[node].parent
            };
            let from = Way {
                node: from,
                ..Way::default()
            };
            let leads_here = self
                .walk(from, target, false)
                .is_ok_and(|place| place.way.node == node && place.missing.is_empty());
            if leads_here {
                self.nodes[node].answers.put(Entry::Exists(path));
            } else {
                self.nodes[node].answers.put(entry);
                // Now other ways may lead to the folders.
                self.folders.clear();
            }
        }
    }

    /// Puts what stands at one path into the tree, each entry where its question leads.
    fn take(&mut self, path: &Text, answers: Answers) {
        if let Some(list) = answers.acl
            && let Some(node) = self.place(path, true)
        {
            self.nodes[node].answers.acl.get_or_insert(list);
        }
        let mut entries = answers.entries;
        if entries.len() == 1 {
            let Some(node) = self.place_of(path, &entries[0]) else {
                return;
            };
            let here = &mut self.nodes[node].answers;
            if here.entries.is_empty() && here.acl.is_none() {
                // As it is, without a new list: most paths have one entry.
                std::mem::swap(&mut here.entries, &mut entries);
            }
            for entry in entries {
                here.meet(entry);
            }
            return;
        }
        for entry in entries {
            if let Some(node) = self.place_of(path, &entry) {
                self.nodes[node].answers.meet(entry);
            }
        }
    }

    /// The node that the question of an entry leads to, with the names that it lists.
    fn place_of(&mut self, path: &Text, entry: &Entry) -> Option<usize> {
        let follow = match operation_of(entry) {
            Some(Operation::Link) => false,
            Some(Operation::Stat) => matches!(entry, Entry::Exists(_)),
            Some(_) => true,
            None => matches!(entry, Entry::Hang(_)),
        };
        let node = self
            .place(path, follow)
            .or_else(|| self.place(path, false))?;
        if let Entry::Dir(_, names) = entry {
            for name in names {
                let child = self.grow(node, name);
                self.nodes[child].exists = true;
            }
        }
        Some(node)
    }

    /// The node of a path, made if it is not there. None: the path leads nowhere (a loop).
    fn place(&mut self, path: &Text, follow: bool) -> Option<usize> {
        if self.budget == 0 {
            return None;
        }
        let way = match split_at_last_slash(path) {
            Some((folder, name)) if !is_odd(name) => self
                .folder(path, folder.len())
                .and_then(|way| self.step(way, path, folder.len() + 1, path.len(), follow)),
            // Before an odd name stands the last one, and whether that is followed is not for the way to a folder to say.
            _ => self.go(Way::default(), path, follow),
        };
        let steps = way.map_or(STEPS, |way| way.steps);
        self.budget = self.budget.saturating_sub(steps);
        Some(way?.node)
    }

    /// The way to the folder whose path these first bytes of a path are, made if it is not there.
    fn folder(&mut self, path: &Text, end: usize) -> Option<Way> {
        let folder = &path[..end];
        let is_on_the_way = |above: &str| {
            folder
                .strip_prefix(above)
                .is_some_and(|rest| matches!(rest.as_bytes(), [] | [b'/', ..]))
        };
        while self
            .folders
            .pop_if(|(above, _)| !is_on_the_way(above))
            .is_some()
        {}
        if let Some((above, way)) = self.folders.last()
            && above.len() == end
        {
            return Some(*way);
        }
        let way = match split_at_last_slash(folder) {
            Some((above, _)) => {
                let way = self.folder(path, above.len())?;
                self.step(way, path, above.len() + 1, end, true)?
            }
            None => Way {
                steps: 1,
                ..Way::default()
            },
        };
        self.folders.push((part(path, 0, end), way));
        Some(way)
    }

    /// Goes on by one name, these bytes of a path.
    fn step(
        &mut self,
        mut way: Way,
        path: &Text,
        start: usize,
        end: usize,
        follow: bool,
    ) -> Option<Way> {
        let name = &path[start..end];
        let found = self.child(way.node, name);
        let is_link = |child: usize| self.nodes[child].link().is_some();
        if is_odd(name) || follow && found.is_ok_and(is_link) {
            return self.go(way, name, follow);
        }
        way.steps += 1;
        way.node =
            found.unwrap_or_else(|position| self.add(way.node, position, part(path, start, end)));
        (way.steps <= STEPS).then_some(way)
    }

    /// Walks along a path and makes what is not there.
    fn go(&mut self, from: Way, path: &str, follow: bool) -> Option<Way> {
        let Place { mut way, missing } = self.walk(from, path, follow).ok()?;
        let missing: Vec<Text> = missing.iter().map(|name| name.to_string().into()).collect();
        for name in &missing {
            way.node = self.grow(way.node, name);
        }
        Some(way)
    }

    /// The child of that name, or where it belongs among the children. Paths are taken in sorted, so mostly it is the last
    /// one or a new one behind it.
    fn child(&self, folder: usize, name: &str) -> Result<usize, usize> {
        let children = &self.nodes[folder].children;
        let compare = |child: &usize| self.nodes[*child].name.as_bytes().cmp(name.as_bytes());
        match children.last().map(compare) {
            None | Some(Ordering::Less) => Err(children.len()),
            Some(Ordering::Equal) => Ok(children[children.len() - 1]),
            Some(Ordering::Greater) => children.binary_search_by(compare).map(|at| children[at]),
        }
    }

    /// The child of that name, made if it is not there.
    fn grow(&mut self, folder: usize, name: &Text) -> usize {
        self.child(folder, name)
            .unwrap_or_else(|position| self.add(folder, position, name.clone()))
    }

    fn add(&mut self, parent: usize, position: usize, name: Text) -> usize {
        let child = self.nodes.len();
        self.nodes.push(Node {
            name,
            parent,
            children: Vec::new(),
            answers: Answers::default(),
            exists: false,
        });
        let children = &mut self.nodes[parent].children;
        // Those behind it have to move, which is little work for each; but a hostile machine has many.
        let moved = children.len() - position;
        self.budget = self.budget.saturating_sub(moved / 64);
        children.insert(position, child);
        child
    }

    /// What exists has a folder that exists. Children stand behind their folders in the list.
    fn mark_existing(&mut self) {
        for index in (0..self.nodes.len()).rev() {
            if self.nodes[index].exists || self.nodes[index].shows_life() {
                self.nodes[index].exists = true;
                let parent = self.nodes[index].parent;
                self.nodes[parent].exists = true;
            }
        }
    }
}

impl Archive {
    /// Goes along a path from a node, links followed. The error is the name of an errno.
    fn walk<'a>(
        &'a self,
        from: Way,
        path: &'a str,
        follow: bool,
    ) -> Result<Place<'a>, &'static str> {
        let mut way = from;
        let mut missing: Vec<&str> = Vec::new();
        // What is still to go: the path itself, above it the targets of links met on the way.
        let mut ahead = vec![path];
        while let Some(rest) = ahead.pop() {
            let name = match split_at_byte(rest, b'/') {
                Some((name, rest)) => {
                    ahead.push(rest);
                    name
                }
                None => rest,
            };
            way.steps += 1;
            if way.steps > STEPS {
                return Err("ENAMETOOLONG");
            }
            match name {
                "" | "." => continue,
                ".." => {
                    if missing.pop().is_none() {
                        way.node = self.nodes[way.node].parent;
                    }
                    continue;
                }
                _ => {}
            }
            let child = match self.child(way.node, name) {
                Ok(child) if missing.is_empty() => child,
                _ => {
                    missing.push(name);
                    continue;
                }
            };
            let Some(target) = self.nodes[child].link() else {
                way.node = child;
                continue;
            };
            let is_last = || {
                let mut names = ahead.iter().flat_map(|rest| rest.split('/'));
                names.all(|name| name.is_empty() || name == ".")
            };
            if !follow && is_last() {
                way.node = child;
                continue;
            }
            way.links += 1;
            if way.links > LINKS {
                return Err("ELOOP");
            }
            if target.starts_with('/') {
                way.node = ROOT;
            }
            ahead.push(target);
        }
        Ok(Place { way, missing })
    }

    /// Folders from the root down to a node, the node last.
    fn way_to(&self, node: usize) -> Vec<usize> {
        let mut way = vec![node];
        let mut node = node;
        while node != ROOT {
            node = self.nodes[node].parent;
            way.push(node);
        }
        way.reverse();
        way
    }

    /// Whether a place exists, and whether everything directly in it is recorded.
    fn presence(&self, place: &Place<'_>) -> (Presence, bool) {
        // Nothing below here exists but what is named.
        let mut absent = false;
        // Everything below here is recorded.
        let mut everywhere = false;
        let mut listed = false;
        for index in self.way_to(place.way.node) {
            let node = &self.nodes[index];
            if node.answers.is_absent() {
                absent = true;
            } else if node.is_doubtful() {
                (absent, everywhere) = (false, false);
            } else if !node.exists && (listed || everywhere) && index != ROOT {
                absent = true;
            }
            if node.is_barred() {
                (absent, everywhere, listed) = (false, false, false);
            } else {
                everywhere |= node.is_whole_below();
                listed = node.is_whole() || everywhere;
            }
        }
        let node = &self.nodes[place.way.node];
        let presence = if !place.missing.is_empty() {
            if (absent || listed) && self.budget > 0 {
                Presence::Absent
            } else {
                Presence::Unknown
            }
        } else if node.exists {
            Presence::Exists
        } else if absent && !node.is_doubtful() && self.budget > 0 {
            Presence::Absent
        } else {
            Presence::Unknown
        };
        (presence, listed && self.budget > 0)
    }

    /// The node that a question about a path is answered from, or the answer where there is none.
    fn at(&self, path: &str, operation: Operation, follow: bool) -> Result<&Node, Unanswered> {
        if !path.starts_with('/') {
            return Err(Unanswered::Failed(Failure::errno("ENOENT")));
        }
        let place = self
            .walk(Way::default(), path, follow)
            .map_err(|errno| Unanswered::Failed(Failure::errno(errno)))?;
        let node = &self.nodes[place.way.node];
        let presence = || self.presence(&place).0;
        if !place.missing.is_empty() {
            return Err(if presence() == Presence::Absent {
                Unanswered::Absent
            } else {
                Unanswered::Unasked(Why::NotCaptured)
            });
        }
        for entry in &node.answers.entries {
            match entry {
                Entry::Error(_, refused, errno) if *refused == operation => {
                    return Err(if errno == "ENOENT" && presence() == Presence::Absent {
                        Unanswered::Absent
                    } else {
                        Unanswered::Failed(Failure::errno(errno))
                    });
                }
                Entry::Unasked(_, why, refused) if refused.is_none_or(|it| it == operation) => {
                    return Err(Unanswered::Unasked(*why));
                }
                _ => {}
            }
        }
        if !node.exists && presence() == Presence::Absent {
            return Err(Unanswered::Absent);
        }
        Ok(node)
    }
}

/// Why a question has no answer: `Seen` without `Got`, for every type of answer.
enum Unanswered {
    Absent,
    Unasked(Why),
    Failed(Failure),
}

impl<T> From<Unanswered> for Seen<T> {
    fn from(unanswered: Unanswered) -> Seen<T> {
        match unanswered {
            Unanswered::Absent => Seen::Absent,
            Unanswered::Unasked(why) => Seen::Unasked(why),
            Unanswered::Failed(failure) => Seen::Failed(failure),
        }
    }
}

/// What is said where a path is known but this question has no entry: reading that never ends, else nothing.
fn not_recorded<T>(node: &Node, path: &str) -> Seen<T> {
    match node.entry(|entry| matches!(entry, Entry::Hang(_))) {
        Some(_) => Seen::Failed(Failure::TimedOut {
            at: path.to_owned(),
        }),
        None => Seen::default(),
    }
}

/// The beginning of a text, `limit` + 1 bytes or up to three more so that no character is cut.
fn beginning(text: &str, limit: usize) -> &str {
    let mut end = limit.saturating_add(1).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    &text[..end]
}

impl Source for Archive {
    fn bytes(&self, path: &str, limit: usize) -> Seen<Vec<u8>> {
        self.read(path).map(|(text, _)| {
            let mut bytes = machine::text_as_bytes(beginning(text, limit.saturating_mul(2)));
            bytes.truncate(limit.saturating_add(1));
            bytes
        })
    }

    fn text(&self, path: &str, limit: usize) -> Seen<(String, bool)> {
        self.read(path).map(|(text, form)| {
            let short = beginning(text, limit);
            let whole = form != Form::Cut && short.len() == text.len() && text.len() <= limit;
            (short.to_owned(), whole)
        })
    }

    fn list(&self, path: &str) -> Seen<Listing> {
        let node = match self.at(path, Operation::List, true) {
            Ok(node) => node,
            Err(unanswered) => return unanswered.into(),
        };
        let place = match self.walk(Way::default(), path, true) {
            Ok(place) => place,
            Err(errno) => return Seen::Failed(Failure::errno(errno)),
        };
        let all_recorded = self.presence(&place).1;
        let is_folder = node.is_folder() || !node.children.is_empty();
        if node.is_file() && !is_folder {
            return Seen::Failed(Failure::errno("ENOTDIR"));
        }
        let hangs = node
            .entry(|entry| matches!(entry, Entry::Hang(_)))
            .is_some();
        if hangs || !node.exists || !(is_folder || all_recorded) {
            return not_recorded(node, path);
        }
        let kept = node
            .entry(|entry| matches!(entry, Entry::Kept(_)))
            .is_some();
        let mut whole = all_recorded;
        let mut names = Vec::new();
        for child in &node.children {
            let child = &self.nodes[*child];
            if child.exists && names.len() < LIST_LIMIT {
                names.push(child.name.to_string());
            } else if child.exists || child.is_doubtful() {
                whole = false;
            }
        }
        Seen::Got(Listing { names, whole, kept })
    }

    fn link(&self, path: &str) -> Seen<String> {
        let node = match self.at(path, Operation::Link, false) {
            Ok(node) => node,
            Err(unanswered) => return unanswered.into(),
        };
        match node.link() {
            Some(target) => Seen::Got(target.to_owned()),
            None if node.is_file() || node.is_there() || node.stat().is_some() => {
                Seen::Failed(Failure::errno("EINVAL"))
            }
            None => not_recorded(node, path),
        }
    }

    fn real(&self, path: &str) -> Seen<String> {
        // EINVAL only says that the path is no link.
        let node = match self.at(path, Operation::Link, true) {
            Ok(node) => node,
            Err(Unanswered::Failed(Failure::Error { what })) if what == "EINVAL" => {
                match self.at(path, Operation::Stat, true) {
                    Ok(node) => node,
                    Err(unanswered) => return unanswered.into(),
                }
            }
            Err(unanswered) => return unanswered.into(),
        };
        if !node.exists {
            return match self.at(path, Operation::Stat, true) {
                Ok(_) => not_recorded(node, path),
                Err(unanswered) => unanswered.into(),
            };
        }
        let answers = &node.answers.entries;
        if !answers.is_empty() && answers.iter().all(|entry| matches!(entry, Entry::Hang(_))) {
            return not_recorded(node, path);
        }
        let mut names: Vec<&str> = Vec::new();
        let mut here = node;
        while !here.name.is_empty() {
            names.push(&here.name);
            here = &self.nodes[here.parent];
        }
        names.push("");
        names.reverse();
        let real = names.join("/");
        Seen::Got(if real.is_empty() {
            "/".to_owned()
        } else {
            real
        })
    }

    fn stat(&self, path: &str) -> Seen<Stat> {
        let node = match self.at(path, Operation::Stat, false) {
            Ok(node) => node,
            Err(unanswered) => return unanswered.into(),
        };
        if let Some(stat) = node.stat() {
            return Seen::Got(stat.clone());
        }
        let kind = if node.link().is_some() {
            "link"
        } else if node.is_folder() || node.children.iter().any(|at| self.nodes[*at].exists) {
            "dir"
        } else if node.is_file() || node.is_there() {
            "file"
        } else {
            return not_recorded(node, path);
        };
        Seen::Got(Stat {
            kind: kind.to_owned(),
            ..Stat::default()
        })
    }

    fn open(&self, path: &str) -> Seen<String> {
        match self.at(path, Operation::Open, true) {
            Ok(node) => node
                .answers
                .entries
                .iter()
                .find_map(|entry| match entry {
                    Entry::Open(_, result) => Some(Seen::Got(result.to_string())),
                    _ => None,
                })
                .unwrap_or_else(|| not_recorded(node, path)),
            Err(unanswered) => unanswered.into(),
        }
    }

    fn access(&self, path: &str) -> Seen<String> {
        match self.at(path, Operation::Access, true) {
            Ok(node) => node
                .answers
                .entries
                .iter()
                .find_map(|entry| match entry {
                    Entry::Access(_, result) => Some(Seen::Got(result.to_string())),
                    _ => None,
                })
                .unwrap_or_else(|| not_recorded(node, path)),
            Err(unanswered) => unanswered.into(),
        }
    }

    fn acl(&self, path: &str) -> Seen<Vec<String>> {
        let node = match self.at(path, Operation::Stat, true) {
            Ok(node) => node,
            Err(unanswered) => return unanswered.into(),
        };
        match &node.answers.acl {
            Some(list) if list.is_empty() => Seen::Absent,
            Some(list) => Seen::Got(list.iter().map(Text::to_string).collect()),
            // Who recorded the node would have recorded its list.
            None if node.stat().is_some() && !self.of_folder => Seen::Absent,
            None => not_recorded(node, path),
        }
    }

    fn modinfo(&self, path: &str) -> Seen<ModInfo> {
        self.said(path, |entry| match entry {
            Entry::ModInfo(_, json) => Some(json),
            _ => None,
        })
    }

    fn elf(&self, path: &str) -> Seen<Elf> {
        self.said(path, |entry| match entry {
            Entry::Elf(_, json) => Some(json),
            _ => None,
        })
    }

    fn loader_cache(&self, _wanted: &dyn Fn(&str) -> bool) -> Seen<(String, bool)> {
        self.text(loader_cache::PATH, LINES_LIMIT)
    }

    fn run(&self, command: &[&str], limit: usize) -> Seen<(i32, String, bool)> {
        let word = |at: usize| Text::from((*command.get(at).unwrap_or(&"")).to_owned());
        match self.runs.get(&(word(0), word(1))) {
            Some(Entry::Run { rc, output, .. }) => {
                let short = beginning(output, limit);
                Seen::Got((*rc, short.to_owned(), short.len() == output.len()))
            }
            _ => Seen::default(),
        }
    }

    fn env(&self, name: &str) -> Seen<String> {
        match self.env.get(name) {
            Some(Some(value)) => Seen::Got(value.to_string()),
            Some(None) => Seen::Absent,
            None if self.env_whole => Seen::Absent,
            None => Seen::default(),
        }
    }

    fn user(&self) -> Seen<ProcessUser> {
        let user = self.user.as_deref().cloned();
        user.map_or_else(Seen::default, Seen::Got)
    }

    fn system(&self) -> Seen<System> {
        let system = self.system.as_deref().cloned();
        system.map_or_else(Seen::default, Seen::Got)
    }

    fn clock(&self) -> Option<String> {
        self.clock.as_deref().map(str::to_owned)
    }

    fn recorded_log(&self) -> Option<Seen<(&str, &[Text])>> {
        Some(match &self.log {
            Some((source, lines)) => Seen::Got((source, lines)),
            None => Seen::Unasked(Why::NotCaptured),
        })
    }

    fn answer(&self, library: &str) -> Seen<Value> {
        self.answers
            .get(library)
            .cloned()
            .map_or_else(Seen::default, Seen::Got)
    }
}

impl Archive {
    /// What a file says of itself, recorded as JSON.
    fn said<T: DeserializeOwned>(
        &self,
        path: &str,
        json_of: impl Fn(&Entry) -> Option<&Value>,
    ) -> Seen<T> {
        let node = match self.at(path, Operation::Read, true) {
            Ok(node) => node,
            Err(unanswered) => return unanswered.into(),
        };
        match node.answers.entries.iter().find_map(json_of) {
            Some(json) => from_json(json).map_or_else(
                |_| Seen::error("what was recorded of the file makes no sense"),
                Seen::Got,
            ),
            None => not_recorded(node, path),
        }
    }

    fn read(&self, path: &str) -> Seen<(&str, Form)> {
        let node = match self.at(path, Operation::Read, true) {
            Ok(node) => node,
            Err(unanswered) => return unanswered.into(),
        };
        let file = node.answers.entries.iter().find_map(|entry| match entry {
            Entry::File { text, form, .. } => Some((&**text, *form)),
            _ => None,
        });
        match file {
            Some(file) => Seen::Got(file),
            None if node.is_folder() => Seen::Failed(Failure::errno("EISDIR")),
            None => not_recorded(node, path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn entries(body: &str) -> Entries {
        Entries::parse(format!("gpucheck-machine 1\n{body}").leak())
            .unwrap_or_else(|error| panic!("{error} in\n{body}"))
    }

    fn archive(body: &str) -> Archive {
        Archive::new(entries(body))
    }

    /// The machine of the second text laid over that of the first.
    fn over(base: &str, later: &str) -> Archive {
        Archive::new(Entries::overlay(entries(base), entries(later)))
    }

    fn unknown<T>() -> Seen<T> {
        Seen::Unasked(Why::NotCaptured)
    }

    fn text(archive: &Archive, path: &str) -> Seen<String> {
        archive.text(path, 1000).map(|(text, _)| text)
    }

    fn got(text: &str) -> Seen<String> {
        Seen::Got(text.to_owned())
    }

    fn names(archive: &Archive, path: &str) -> Seen<(String, bool)> {
        archive
            .list(path)
            .map(|listing| (listing.names.join(" "), listing.whole))
    }

    fn listed(names: &str, whole: bool) -> Seen<(String, bool)> {
        Seen::Got((names.to_owned(), whole))
    }

    #[test]
    fn the_last_entry_of_a_kind_wins() {
        let archive = over(
            "file /a\n| old\nopen /a rw EACCES\nenv A=1\nenv B=1\nclock then\nanswer @nvml {\"ok\":1}\n",
            "file /a\n| older\nfile /a\n| new\nenv A=2\nunset B\nclock now\nanswer @nvml {\"ok\":2}\n",
        );
        assert_eq!(text(&archive, "/a"), got("new\n"));
        assert_eq!(archive.open("/a"), got("EACCES"));
        assert_eq!(archive.env("A"), got("2"));
        assert_eq!(archive.env("B"), Seen::Absent);
        assert_eq!(archive.env("C"), unknown());
        assert_eq!(archive.clock().as_deref(), Some("now"));
        assert_eq!(
            archive
                .answer("nvml")
                .got()
                .map(Value::to_string)
                .as_deref(),
            Some("{\"ok\":2}")
        );
        assert_eq!(archive.answer("cuda"), unknown());
    }

    #[test]
    fn an_error_takes_the_place_of_an_answer_and_the_other_way_round() {
        let base = "file /a\n| text\ndir /d x\nwhole /d\nmodinfo /m.ko {\"name\":\"m\"}\n";
        let denied = "error /a read EACCES\nerror /d list EIO\nerror /m.ko read EIO\n";
        let archive = over(base, denied);
        let no = Seen::Failed(Failure::errno("EACCES"));
        assert_eq!(text(&archive, "/a"), no);
        assert_eq!(names(&archive, "/d"), Seen::error("EIO"));
        assert_eq!(archive.modinfo("/m.ko"), Seen::error("EIO"));
        // The proof that nothing else was in the folder went with the listing.
        assert_eq!(text(&archive, "/d/y"), unknown());
        let archive = over(denied, base);
        assert_eq!(text(&archive, "/a"), got("text\n"));
        assert_eq!(names(&archive, "/d"), listed("x", true));
        assert_eq!(
            archive.modinfo("/m.ko").map(|info| info.name),
            Seen::Got(Some("m".to_owned()))
        );
    }

    #[test]
    fn absent_removes_what_stood_before_and_a_later_entry_brings_it_back() {
        let archive = over(
            "file /opt/a/x\n| x\ndir /opt a b\nlink /l -> /opt\n",
            "absent /opt/a\n",
        );
        assert_eq!(text(&archive, "/opt/a/x"), Seen::Absent);
        assert_eq!(archive.stat("/opt/a/never/named"), Seen::Absent);
        assert_eq!(text(&archive, "/l/a"), Seen::Absent);
        assert_eq!(names(&archive, "/opt"), listed("b", false));
        assert_eq!(text(&archive, "/opt/c"), unknown());
        let archive = over(
            "absent /opt\nabsent /dev/kfd\n",
            "file /opt/a/x\n| x\ndir /dev kfd\n",
        );
        assert_eq!(text(&archive, "/opt/a/x"), got("x\n"));
        assert_eq!(archive.real("/opt/a"), got("/opt/a"));
        // What was not brought back stays absent.
        assert_eq!(text(&archive, "/opt/b"), Seen::Absent);
        assert_eq!(text(&archive, "/opt/a/y"), Seen::Absent);
        assert_eq!(archive.real("/dev/kfd"), got("/dev/kfd"));
        // In one machine the order decides as well.
        assert_eq!(text(&one("file /a\n| x\nabsent /a\n"), "/a"), Seen::Absent);
        assert_eq!(text(&one("absent /a\nfile /a\n| x\n"), "/a"), got("x\n"));
    }

    fn one(body: &str) -> Archive {
        archive(body)
    }

    #[test]
    fn whole_proves_absence_in_that_folder_only() {
        let archive = archive(
            "dir /dev null\nfile /dev/dri/by-path/x\nwhole /dev\nnode /dev/kfd c 1:2 0666 0:0\n",
        );
        assert_eq!(names(&archive, "/dev"), listed("dri kfd null", true));
        assert_eq!(archive.open("/dev/nvidia0"), Seen::Absent);
        assert_eq!(archive.stat("/dev/nvidia-caps/nvidia-cap1"), Seen::Absent);
        assert_eq!(archive.stat("/dev/dri/card0"), unknown());
        assert_eq!(names(&archive, "/dev/dri"), listed("by-path", false));
        // Named, but nothing is said of it.
        assert_eq!(archive.open("/dev/null"), unknown());
        assert_eq!(archive.real("/dev/null"), got("/dev/null"));
    }

    #[test]
    fn whole_with_stars_proves_absence_anywhere_below() {
        let archive =
            archive("dir /lib/m kernel modules.dep\nfile /lib/m/kernel/a.ko\nwhole /lib/m/**\n");
        assert_eq!(archive.modinfo("/lib/m/updates/dkms/a.ko"), Seen::Absent);
        assert_eq!(archive.real("/lib/m/kernel/b.ko"), Seen::Absent);
        assert_eq!(archive.real("/lib/other"), unknown());
        assert_eq!(names(&archive, "/lib/m/kernel"), listed("a.ko", true));
        assert_eq!(names(&archive, "/lib/m/modules.dep"), listed("", true));
        assert_eq!(names(&archive, "/lib/m/updates"), Seen::Absent);
    }

    #[test]
    fn a_later_whole_drops_what_only_the_base_holds() {
        let base = "dir /m old both\nfile /m/old/deep\n| x\nfile /m/both/deep\n| y\nwhole /m/old\nfile /m/f\n| z\n";
        let archive = over(base, "dir /m both\nwhole /m\n");
        assert_eq!(text(&archive, "/m/old/deep"), Seen::Absent);
        assert_eq!(text(&archive, "/m/f"), Seen::Absent);
        assert_eq!(text(&archive, "/m/both/deep"), got("y\n"));
        assert_eq!(names(&archive, "/m"), listed("both", true));
        let archive = over(base, "exists /m/both\nwhole /m/**\n");
        assert_eq!(text(&archive, "/m/both/deep"), Seen::Absent);
        assert_eq!(names(&archive, "/m"), listed("both", true));
        // A whole of the base drops nothing of the later machine.
        let archive = over("dir /m a\nwhole /m\n", "file /m/b\n| x\n");
        assert_eq!(names(&archive, "/m"), listed("a b", true));
    }

    #[test]
    fn dir_says_nothing_of_other_names() {
        let archive = archive("dir /usr/bin nvidia-smi\n");
        assert_eq!(names(&archive, "/usr/bin"), listed("nvidia-smi", false));
        assert_eq!(archive.real("/usr/bin/rocminfo"), unknown());
        // Entries below a folder show it, and what it holds at least.
        let archive = one("file /proc/version\n| x\n");
        assert_eq!(names(&archive, "/proc"), listed("version", false));
    }

    #[test]
    fn a_later_log_replaces_all_earlier_ones() {
        let merged = Entries::overlay(
            entries("log kmsg\n| a\nlog file x\n| b\n"),
            entries("log none EPERM\n"),
        );
        assert_eq!(
            merged.entries,
            [Entry::Log("none EPERM".into(), Vec::new())]
        );
    }

    #[test]
    fn variables_are_unset_only_where_that_is_proved() {
        assert_eq!(archive("env A=\n").env("A"), got(""));
        assert_eq!(archive("env A=\n").env("B"), unknown());
        assert_eq!(archive("env whole\n").env("B"), Seen::Absent);
        assert_eq!(archive("unset B\n").env("B"), Seen::Absent);
        assert_eq!(
            over("env whole\nenv A=1\n", "unset A\n").env("A"),
            Seen::Absent
        );
        assert_eq!(over("unset A\n", "env A=1\n").env("A"), got("1"));
    }

    #[test]
    fn links_are_followed_as_the_kernel_would() {
        let archive = archive(
            "link /sys/bus/pci/devices/0000:01:00.0 -> ../../../devices/pci0/0000:01:00.0\n\
             file /sys/devices/pci0/0000:01:00.0/vendor\n| 0x10de\n\
             whole /sys/devices/pci0/0000:01:00.0\n\
             link /sys/devices/pci0/0000:01:00.0/driver -> ../../../bus/pci/drivers/nvidia\n\
             link /lib -> usr/lib\n\
             dir /usr/lib/modules 6.8\n\
             link /etc/a -> /etc/b\nlink /etc/b -> c\nfile /etc/c\n| end\n\
             link /etc/gone -> nothing\nabsent /etc/nothing\nlink /etc/far -> /elsewhere\n",
        );
        let device = "/sys/bus/pci/devices/0000:01:00.0";
        assert_eq!(text(&archive, &format!("{device}/vendor")), got("0x10de\n"));
        assert_eq!(text(&archive, &format!("{device}/device")), Seen::Absent);
        assert_eq!(
            archive.link(&format!("{device}/driver")),
            got("../../../bus/pci/drivers/nvidia")
        );
        assert_eq!(archive.real(device), got("/sys/devices/pci0/0000:01:00.0"));
        assert_eq!(names(&archive, device), listed("driver vendor", true));
        assert_eq!(archive.stat(device).map(|stat| stat.kind), got("link"));
        assert_eq!(
            archive.stat(&format!("{device}/")).map(|stat| stat.kind),
            got("link")
        );
        assert_eq!(names(&archive, "/lib/modules"), listed("6.8", false));
        assert_eq!(
            archive.real("/lib//./modules/../modules/6.8"),
            got("/usr/lib/modules/6.8")
        );
        assert_eq!(text(&archive, "/etc/a"), got("end\n"));
        assert_eq!(archive.link("/etc/c"), Seen::error("EINVAL"));
        assert_eq!(archive.real("/etc/gone"), Seen::Absent);
        assert_eq!(text(&archive, "/etc/gone"), Seen::Absent);
        assert_eq!(archive.link("/etc/gone"), got("nothing"));
        assert_eq!(archive.real("/etc/far"), unknown());
        assert_eq!(archive.real("/.."), got("/"));
    }

    /// What stands at the end if the entries are taken one by one, as the rules tell it.
    fn one_by_one(entries: &[Entry]) -> Vec<(String, Vec<Entry>)> {
        let mut paths: BTreeMap<String, Answers> = BTreeMap::new();
        for entry in entries {
            let path = path_of(entry).expect("of a path").to_string();
            match entry {
                Entry::Absent(_) => paths.retain(|other, _| !other.starts_with(&prefix(&path))),
                Entry::Dir(_, names) => {
                    for name in names {
                        let child = join(&path, name);
                        if paths.get(&child).is_some_and(Answers::is_absent) {
                            paths.remove(&child);
                        }
                    }
                }
                _ => {}
            }
            paths.entry(path).or_default().put(entry.clone());
        }
        let absent: Vec<String> = paths
            .iter()
            .filter(|(_, answers)| answers.is_absent())
            .map(|(path, _)| path.clone())
            .collect();
        let stays = |folder: &str, name: &str| !absent.contains(&join(folder, name));
        paths
            .into_iter()
            .map(|(path, mut answers)| {
                for entry in &mut answers.entries {
                    if let Entry::Dir(_, names) = entry {
                        names.retain(|name| stays(&path, name));
                    }
                }
                (path, answers.entries)
            })
            .collect()
    }

    #[test]
    fn what_stands_is_what_stands_one_by_one() {
        let all = entries(
            "absent /\nabsent /a\nabsent /a/\nabsent /a//\nabsent /a/b\nabsent /a-/b\ndir /a b c\ndir /a/ b\ndir /a\n\
             file /a/b\n| x\nfile /a/b/c\nexists /a-/b\nexists /a//b\n",
        )
        .entries;
        let count = all.len();
        for which in 0..count.pow(4) {
            let chosen: Vec<Entry> = (0..4)
                .map(|at| all[which / count.pow(at) % count].clone())
                .collect();
            let settled = Settled::new(chosen.clone());
            let stands: Vec<(String, Vec<Entry>)> = settled
                .paths
                .into_iter()
                .map(|(path, answers)| (path.into_owned(), answers.entries))
                .collect();
            assert_eq!(stands, one_by_one(&chosen), "{chosen:?}");
        }
    }

    #[test]
    fn an_absent_node_has_no_access_list() {
        let gone = archive("dir /d\nabsent /d/n\nacl /d/n none\ndir /d n\n");
        assert_eq!(gone.acl("/d/n"), unknown());
        let listed = archive("absent /d/n\ndir /d n\nacl /d/n none\n");
        assert_eq!(listed.acl("/d/n"), Seen::Absent);
        assert_eq!(listed.real("/d/n"), got("/d/n"));
        let again = "acl /n user:1:rw-\nacl /n user:2:rw-\n";
        let again = archive(&format!("{again}absent /n\n{again}"));
        assert_eq!(again.acl("/n").map(|list| list.len()), Seen::Got(2));
    }

    #[test]
    fn entries_may_be_recorded_by_a_path_through_links() {
        // A capture holds the paths that were asked for, and what `real` answered.
        let archive = archive(
            "link /sys/class/drm/card1 -> ../../devices/gpu/drm/card1\n\
             link /sys/class/drm/card1/device -> ../../../gpu\n\
             file /sys/class/drm/card1/device/vendor\n| 0x1002\n\
             link /sys/class/drm/card1/device/vendor -> /sys/devices/gpu/vendor\n\
             exists /sys/devices/gpu/vendor\n\
             whole /sys/devices/gpu\n",
        );
        assert_eq!(text(&archive, "/sys/devices/gpu/vendor"), got("0x1002\n"));
        assert_eq!(
            text(&archive, "/sys/class/drm/card1/device/vendor"),
            got("0x1002\n")
        );
        assert_eq!(
            archive.real("/sys/class/drm/card1/device/vendor"),
            got("/sys/devices/gpu/vendor")
        );
        assert_eq!(
            names(&archive, "/sys/class/drm/card1/device"),
            listed("drm vendor", true)
        );
    }

    #[test]
    fn loops_and_long_chains_fail() {
        let archive = archive("link /a -> /b\nlink /b -> a\nlink /c -> c\nfile /c/x\n| lost\n");
        let looped: Seen<String> = Seen::error("ELOOP");
        assert_eq!(text(&archive, "/a"), looped);
        assert_eq!(archive.real("/c/x/y"), looped);
        assert_eq!(archive.link("/a"), got("/b"));
        let chain = |links: usize| {
            let mut body = String::from("file /l0\n| end\n");
            for at in 1..=links {
                body += &format!("link /l{at} -> l{}\n", at - 1);
            }
            text(&one(&body), &format!("/l{links}"))
        };
        assert_eq!(chain(40), got("end\n"));
        assert_eq!(chain(41), looped);
        assert_eq!(archive.open("relative"), Seen::error("ENOENT"));
    }

    #[test]
    fn errors_say_what_was_asked_and_no_more() {
        let archive = archive(
            "error /sys/module list EACCES\nfile /sys/module/nvidia/version\n| 580\n\
             error /x stat EACCES\nerror /y read EIO\nerror /w/z read ENOENT\nwhole /w\n\
             error /loose read ENOENT\nfile /y2\n| a\nerror /y2 link EINVAL\n",
        );
        let denied = Seen::Failed(Failure::errno("EACCES"));
        assert_eq!(
            names(&archive, "/sys/module"),
            denied.clone().map(|_: ()| unreachable!())
        );
        assert_eq!(text(&archive, "/sys/module/nvidia/version"), got("580\n"));
        assert_eq!(text(&archive, "/sys/module/amdgpu"), unknown());
        assert_eq!(archive.stat("/x"), Seen::Failed(Failure::errno("EACCES")));
        assert_eq!(archive.real("/x"), Seen::Failed(Failure::errno("EACCES")));
        assert_eq!(text(&archive, "/x"), unknown());
        // The disk gave an error for a file that is there.
        assert_eq!(archive.real("/y"), got("/y"));
        assert_eq!(text(&archive, "/y"), Seen::error("EIO"));
        // "No such file" is a proof only in a folder that was seen whole.
        assert_eq!(text(&archive, "/w/z"), Seen::Absent);
        assert_eq!(text(&archive, "/loose"), Seen::error("ENOENT"));
        assert_eq!(archive.real("/y2"), got("/y2"));
        assert_eq!(archive.link("/y2"), Seen::error("EINVAL"));
    }

    #[test]
    fn what_could_not_be_asked_is_never_absent() {
        let all = "error /d/n read EIO\nerror /d/n list EIO\nerror /d/n link EIO\nerror /d/n stat EIO\nerror /d/n open EIO\nerror /d/n access EIO\n";
        let archive = over("dir /d other\nwhole /d/**\nabsent /d/n\n", all);
        let failed: Seen<String> = Seen::error("EIO");
        assert_eq!(text(&archive, "/d/n"), failed);
        assert_eq!(archive.open("/d/n"), failed);
        assert_eq!(archive.access("/d/n"), failed);
        assert_eq!(archive.link("/d/n"), failed);
        assert_eq!(archive.real("/d/n"), failed);
        assert_eq!(archive.stat("/d/n"), Seen::error("EIO"));
        assert_eq!(names(&archive, "/d/n"), Seen::error("EIO"));
        // Nobody knows whether it is one of them.
        assert_eq!(names(&archive, "/d"), listed("other", false));
        assert_eq!(text(&archive, "/d/n/below"), unknown());
        assert_eq!(text(&archive, "/d/m"), Seen::Absent);
        let archive = over("whole /d\nabsent /d/n\n", "unasked /d/n asleep\n");
        let asleep = Seen::Unasked(Why::Asleep);
        assert_eq!(text(&archive, "/d/n"), asleep);
        assert_eq!(archive.open("/d/n"), asleep);
        assert_eq!(archive.real("/d/n"), asleep);
        assert_eq!(names(&archive, "/d"), listed("", false));
        let archive = one("node /n c 1:2 0666 0:0\nunasked /n runs-as-root open\n");
        assert_eq!(archive.open("/n"), Seen::Unasked(Why::RunsAsRoot));
        assert_eq!(archive.access("/n"), unknown());
        assert!(archive.stat("/n").got().is_some());
    }

    #[test]
    fn what_hangs_answers_nothing() {
        let archive =
            archive("dir /proc x\nhang /proc/x\nhang /proc/y\nstat /proc/y fifo 0644 0:0 - -\n");
        let hangs = |path: &str| Failure::TimedOut {
            at: path.to_owned(),
        };
        assert_eq!(text(&archive, "/proc/x"), Seen::Failed(hangs("/proc/x")));
        assert_eq!(archive.bytes("/proc/x", 9), Seen::Failed(hangs("/proc/x")));
        assert_eq!(names(&archive, "/proc/x"), Seen::Failed(hangs("/proc/x")));
        assert_eq!(archive.modinfo("/proc/x"), Seen::Failed(hangs("/proc/x")));
        assert_eq!(archive.stat("/proc/x"), Seen::Failed(hangs("/proc/x")));
        assert_eq!(archive.real("/proc/x"), Seen::Failed(hangs("/proc/x")));
        assert_eq!(archive.stat("/proc/y").map(|stat| stat.kind), got("fifo"));
        assert_eq!(text(&archive, "/proc/y"), Seen::Failed(hangs("/proc/y")));
        assert_eq!(names(&archive, "/proc"), listed("x y", false));
        assert_eq!(text(&over("hang /a\n", "file /a\n| x\n"), "/a"), got("x\n"));
    }

    #[test]
    fn parts_of_files_are_told_from_whole_ones() {
        let archive = archive(
            "file /w\n| abc\nfile /k kept\n| abc\nfile /c cut\n| abc\nfile /b cut\n| \\x86\\x80\\xff\\\nfile /u\n| é漢\\\n",
        );
        assert_eq!(archive.text("/w", 4), Seen::Got(("abc\n".to_owned(), true)));
        assert_eq!(archive.text("/k", 9), Seen::Got(("abc\n".to_owned(), true)));
        assert_eq!(
            archive.text("/c", 9),
            Seen::Got(("abc\n".to_owned(), false))
        );
        // One more than the limit shows that there is more.
        assert_eq!(archive.text("/w", 2), Seen::Got(("abc".to_owned(), false)));
        assert_eq!(archive.text("/u", 2), Seen::Got(("é漢".to_owned(), false)));
        assert_eq!(archive.bytes("/b", 64), Seen::Got(vec![0x86, 0x80, 0xff]));
        assert_eq!(archive.bytes("/b", 1), Seen::Got(vec![0x86, 0x80]));
    }

    #[test]
    fn stat_tells_what_the_entries_show() {
        let archive = archive(
            "file /f\n| x\nexists /e\nlink /l -> f\ndir /d\nfile /i/x\nmodinfo /m {}\nopen /o rw ok\n\
             node /dev/nvidia0 c 195:0 0660 0:44\nstat /s file 4755 0:0 - 5\ndir /n x\n",
        );
        let kind = |path: &str| archive.stat(path).map(|stat| stat.kind);
        assert_eq!(kind("/f"), got("file"));
        assert_eq!(kind("/e"), got("file"));
        assert_eq!(kind("/l"), got("link"));
        assert_eq!(kind("/d"), got("dir"));
        assert_eq!(kind("/i"), got("dir"));
        assert_eq!(kind("/m"), got("file"));
        assert_eq!(kind("/o"), unknown());
        assert_eq!(kind("/n/x"), unknown());
        assert_eq!(
            archive.stat("/dev/nvidia0"),
            Seen::Got(Stat {
                kind: "char".to_owned(),
                mode: Some(0o660),
                uid: Some(0),
                gid: Some(44),
                size: None,
                mtime: None,
                device: Some((195, 0)),
            })
        );
        let stat = archive.stat("/s").into_got().unwrap_or_default();
        assert_eq!(
            (stat.mode, stat.size, stat.mtime),
            (Some(0o4755), None, Some(5))
        );
        assert_eq!(text(&archive, "/d"), Seen::error("EISDIR"));
        assert_eq!(names(&archive, "/f"), Seen::error("ENOTDIR"));
        assert_eq!(names(&archive, "/e"), unknown());
    }

    #[test]
    fn access_lists_belong_to_recorded_nodes() {
        let body = "node /n c 1:2 0660 0:44\nacl /n user:1:rw-\nacl /n user:2:r--\nacl /n user:1:rw-\n\
             node /bare c 1:3 0660 0:44\nacl /none none\nabsent /gone\nacl /gone none\nexists /e\n";
        let archive = archive(body);
        let list = |lines: &[&str]| Seen::Got(lines.iter().map(ToString::to_string).collect());
        assert_eq!(archive.acl("/n"), list(&["user:1:rw-", "user:2:r--"]));
        assert_eq!(archive.acl("/bare"), Seen::Absent);
        assert_eq!(archive.acl("/none"), Seen::Absent);
        assert_eq!(archive.real("/none"), unknown());
        assert_eq!(archive.acl("/gone"), Seen::Absent);
        assert_eq!(archive.real("/gone"), Seen::Absent);
        assert_eq!(archive.acl("/e"), unknown());
        let archive = over(body, "acl /n user:3:rw-\nacl /n group:4:rw-\n");
        assert_eq!(archive.acl("/n"), list(&["user:3:rw-", "group:4:rw-"]));
        let archive = over(body, "error /n stat EIO\n");
        assert_eq!(archive.acl("/n"), Seen::error("EIO"));
    }

    #[test]
    fn commands_meet_by_program_and_first_argument() {
        let merged = Entries::overlay(
            entries("run rpm -qa rc=0\n| a\nrun dpkg -l rc=0\n"),
            entries("run rpm -qa --last rc=1\n"),
        );
        assert_eq!(merged.entries.len(), 2);
        assert!(merged.to_string().contains("run rpm -qa --last rc=1"));
    }

    #[test]
    fn user_and_system_are_unknown_until_recorded() {
        let archive = archive("user 1000 1000 44,1000 sudo=1000\n");
        assert_eq!(
            archive.user().map(|user| user.sudo_uid),
            Seen::Got(Some(1000))
        );
        assert_eq!(archive.system(), unknown());
        assert!(!archive.is_live());
        let archive = one("system linux x86_64 6.8.0\n");
        assert_eq!(archive.user(), unknown());
        assert_eq!(archive.system().map(|system| system.release), got("6.8.0"));
        assert_eq!(archive.clock(), None);
    }

    /// Runs on a thread that may be left behind, so that a hang is a failure and no hang.
    fn within_a_minute(what: &str, work: impl FnOnce() + Send + 'static) {
        let (done, waits) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            work();
            let _ = done.send(());
        });
        assert!(
            waits.recv_timeout(Duration::from_secs(60)).is_ok(),
            "{what} failed or hangs"
        );
    }

    #[test]
    fn hostile_machines_cost_little() {
        within_a_minute("a big folder", || {
            let mut body = String::from("whole /d\n");
            for at in 0..100_000 {
                body += &format!("absent /d/a{at}\nfile /d/f{at}\n| x\n");
            }
            let archive = archive(&body);
            let listing = archive.list("/d").into_got().unwrap_or_default();
            assert_eq!((listing.names.len(), listing.whole), (LIST_LIMIT, false));
            for at in 0..1000 {
                assert_eq!(text(&archive, &format!("/d/f{at}")), got("x\n"));
                assert_eq!(text(&archive, &format!("/d/a{at}")), Seen::Absent);
            }
        });
        within_a_minute("links that multiply", || {
            // Each link names the one before twice: 2^n names, if nobody counts.
            let mut body = String::from("file /l0/x\n| x\n");
            for at in 1..60 {
                let before = at - 1;
                body += &format!("link /l{at} -> /l{before}/../l{before}/.././l{before}\n");
            }
            for at in 0..20_000 {
                body += &format!("file /l59/{at}\n| x\n");
            }
            let archive = archive(&body);
            for _ in 0..1000 {
                assert!(archive.real("/l59/x").is_unknown());
            }
        });
        within_a_minute("a deep path", || {
            let deep = "/a".repeat(250);
            let mut body = String::new();
            for at in 0..2000 {
                body += &format!(
                    "file {deep}/{at}\nlink {deep}/l{at} -> {}\n",
                    "../".repeat(200)
                );
            }
            let archive = archive(&body);
            assert!(archive.real(&format!("{deep}/7")).got().is_some());
            assert!(archive.real(&"/a".repeat(1_000_000)).is_unknown());
        });
        within_a_minute("many access lists and names", || {
            let mut body = String::from("node /n c 1:2 0666 0:0\n");
            for at in 0..100_000 {
                body += &format!("acl /n user:{at}:rw-\n");
            }
            for _ in 0..3 {
                body += "dir /d";
                for at in 0..50_000 {
                    body += &format!(" {at}");
                }
                body += "\n";
            }
            let archive = archive(&body);
            assert_eq!(archive.acl("/n").map(|list| list.len()), Seen::Got(100_000));
        });
    }

    #[test]
    fn half_a_megabyte_is_parsed_at_once() {
        let mut body = String::from("gpucheck-machine 1\n");
        while body.len() < 500_000 {
            let at = body.len();
            body += &format!(
                "file /sys/devices/pci0000:00/{at}/uevent\n| DRIVER=nvidia\n| PCI_ID=10DE:2684\n"
            );
        }
        let start = Instant::now();
        let entries = Entries::parse(body.leak()).expect("well-formed");
        let _ = Archive::new(entries);
        // Some milliseconds; the bound only catches what grows with the square.
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
