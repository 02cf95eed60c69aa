//! Fills `facts/services.rs`: systemd units, by their files. Of a unit only what decides over GPUs is taken; other
//! variables, which may be secrets, never leave the door.

use super::environment::{Accounts, ONLY_SET, STEERING, accounts, group_sources};
use crate::facts::Seen;
use crate::facts::services::{ServiceUser, Services, Unit};
use crate::host::Host;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Folders of units; of equal names the first counts (systemd.unit(5)).
const FOLDERS: [&str; 5] = [
    LOCAL_FOLDER,
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// Where the administrator's units are, and the links that enable units.
const LOCAL_FOLDER: &str = "/etc/systemd/system";

/// Units that use GPUs or that GPUs need, each with what usually wants it: where the unit itself cannot be read, a link
/// there decides whether it is enabled.
const UNITS: &[(&str, &[&str])] = &[
    ("comfyui.service", USERS),
    ("containerd.service", USERS),
    ("docker.service", USERS),
    ("frigate.service", USERS),
    ("immich-machine-learning.service", USERS),
    ("immich-server.service", USERS),
    ("incus.service", USERS),
    ("jellyfin.service", USERS),
    ("jupyter.service", USERS),
    ("jupyterhub.service", USERS),
    ("jupyterlab.service", USERS),
    ("k3s.service", USERS),
    ("kubelet.service", USERS),
    ("lactd.service", USERS),
    ("libvirtd.service", USERS),
    ("llama-server.service", USERS),
    ("localai.service", USERS),
    ("nvidia-cdi-refresh.service", USERS),
    ("nvidia-dcgm.service", USERS),
    ("nvidia-fabricmanager.service", USERS),
    ("nvidia-gridd.service", USERS),
    ("nvidia-hibernate.service", &["systemd-hibernate.service"]),
    ("nvidia-imex.service", USERS),
    ("nvidia-mig-manager.service", USERS),
    ("nvidia-persistenced.service", USERS),
    ("nvidia-powerd.service", USERS),
    (
        "nvidia-resume.service",
        &["systemd-suspend.service", "systemd-hibernate.service"],
    ),
    ("nvidia-suspend.service", &["systemd-suspend.service"]),
    (
        "nvidia-suspend-then-hibernate.service",
        &["systemd-suspend-then-hibernate.service"],
    ),
    ("ollama.service", &["default.target", "multi-user.target"]),
    ("open-webui.service", USERS),
    ("plexmediaserver.service", USERS),
    ("podman.service", &["default.target", "multi-user.target"]),
    ("sleep.target", &[]),
    ("slurmd.service", USERS),
    ("snap.lxd.daemon.service", USERS),
    ("suspend.target", &[]),
    ("systemd-suspend.service", &[]),
    ("virtqemud.service", USERS),
    ("vllm.service", USERS),
    ("xpum.service", USERS),
];
const USERS: &[&str] = &["multi-user.target"];

/// Settings of `[Service]` that are kept. Of the first all values count, of the others the last one.
const LISTS: &[&str] = &["DeviceAllow", "ExecStart", "SupplementaryGroups"];
const SINGLES: &[&str] = &[
    "DevicePolicy",
    "DynamicUser",
    "Group",
    "MemoryDenyWriteExecute",
    "NoNewPrivileges",
    "PrivateDevices",
    "PrivateUsers",
    "ProtectKernelModules",
    "RootDirectory",
    "RootImage",
    "Slice",
    "User",
];

/// Units whose command line is kept: NVIDIA brings them, and what they are told steers GPUs. That of any other unit may hold a
/// password.
const OWN_COMMANDS: [&str; 5] = [
    "nvidia-dcgm.service",
    "nvidia-fabricmanager.service",
    "nvidia-imex.service",
    "nvidia-persistenced.service",
    "nvidia-powerd.service",
];

/// Drop-ins for all services, which are read before those of one.
const FOR_ALL: &str = "service.d";

/// Where the link of a masked unit leads.
const NOTHING: &str = "/dev/null";
/// Most units of the administrator's that are looked into, and most files of one folder of drop-ins.
const LIMIT: usize = 64;
/// Longest setting that goes over several lines, in bytes.
const LONGEST: usize = 64 * 1024;

/// Source `services`.
pub fn services(host: &Host) -> Seen<Services> {
    let common = Common {
        links: Links::of(host),
        slices: slices(host),
        drop_ins: drop_ins_of(host, FOR_ALL),
        read: RefCell::default(),
    };
    let mut names: BTreeMap<String, &[&str]> = UNITS
        .iter()
        .map(|(name, wanted_by)| ((*name).to_owned(), *wanted_by))
        .collect();
    for name in own_units(host, &common) {
        names.entry(name).or_insert(&[]);
    }
    let units: BTreeMap<String, Seen<Unit>> = names
        .into_iter()
        .map(|(name, wanted_by)| {
            let unit = unit(host, &name, wanted_by, &common);
            (name, unit)
        })
        .collect();
    Seen::Got(Services {
        users: users(host, &units),
        units,
    })
}

/// Units of the administrator's that give devices or set steering variables, themselves or in drop-ins.
fn own_units(host: &Host, common: &Common) -> Vec<String> {
    let names = common.links.names();
    let candidate = |name: &String| {
        let unit = name.strip_suffix(".d").unwrap_or(name);
        (unit.ends_with(".service") && !UNITS.iter().any(|(known, _)| *known == unit))
            .then(|| unit.to_owned())
    };
    let candidates: BTreeSet<String> = names.iter().filter_map(candidate).collect();
    candidates
        .into_iter()
        .take(LIMIT)
        .filter(|unit| {
            let file = format!("{LOCAL_FOLDER}/{unit}");
            let mut files = vec![file.clone()];
            if names.binary_search(unit).is_err() {
                files.clear();
            } else if host.link(&file).got().is_some_and(|target| {
                target.starts_with("/lib/") || target.starts_with("/usr/lib/")
            }) {
                // Another name of a unit that a package brings.
                return false;
            }
            let folder = format!("{unit}.d");
            if names.binary_search(&folder).is_ok() {
                files.extend(drop_ins_in(host, &format!("{LOCAL_FOLDER}/{folder}")).0);
            }
            files.into_iter().any(|file| {
                let read = read_settings(host, &file, true);
                let is_one = read.got().is_some_and(|(settings, _)| !settings.is_empty());
                if is_one {
                    common.read.borrow_mut().insert(file, read);
                }
                is_one
            })
        })
        .collect()
}

fn unit(host: &Host, name: &str, wanted_by: &[&str], common: &Common) -> Seen<Unit> {
    let (links, slices) = (&common.links, common.slices.as_deref());
    let file = first_file(host, name);
    let (file, real) = match file {
        Seen::Got(found) => found,
        Seen::Absent => return Seen::Absent,
        // The link that enables it proves that it is there, or was.
        unknown => {
            let enabled_by = links.of_unit(host, name, wanted_by, None);
            let Some(folder) = enabled_by.got().and_then(|folders| folders.first()) else {
                return unknown.map(|_| Unit::default());
            };
            let link = host.link(&format!("{folder}/{name}"));
            return Seen::Got(Unit {
                file: link.into_got().unwrap_or_default(),
                running: running(host, name, None, slices),
                enabled_by,
                ..Unit::default()
            });
        }
    };
    let text = if real == NOTHING {
        Seen::Absent
    } else {
        common.read(host, &file)
    };
    let mut unit = Unit {
        masked: real == NOTHING || is_empty(host, &real),
        whole: text.is_absent() || text.got().is_some_and(|(_, whole)| *whole),
        file,
        ..Unit::default()
    };
    let (settings, _) = text.into_got().unwrap_or_default();
    let is_known = unit.whole;
    let installs: Vec<String> = settings
        .iter()
        .filter_map(|(section, key, value)| {
            let kind = match (section.as_str(), key.as_str()) {
                ("Install", "WantedBy") => "wants",
                ("Install", "RequiredBy") => "requires",
                _ => return None,
            };
            Some(
                value
                    .split_whitespace()
                    .map(move |target| format!("{target}.{kind}"))
                    .collect::<Vec<_>>(),
            )
        })
        .flatten()
        .collect();
    unit.enabled_by = links.of_unit(host, name, wanted_by, is_known.then_some(&installs[..]));
    let mut environment_files = Vec::new();
    unit.apply(settings, &mut environment_files);
    let (own, all) = drop_ins_of(host, &format!("{name}.d"));
    let (of_all, all_of_all) = &common.drop_ins;
    unit.whole &= all && *all_of_all;
    let drop_ins = [&of_all[..], &own].concat();
    for path in &drop_ins {
        match common.read(host, path) {
            Seen::Got((settings, whole)) => {
                unit.whole &= whole;
                unit.apply(settings, &mut environment_files);
            }
            Seen::Absent => {}
            _ => unit.whole = false,
        }
    }
    unit.drop_ins = drop_ins;
    for file in environment_files {
        unit.take_environment_file(host, &file);
    }
    let slice = unit.settings.get("Slice").and_then(|values| values.last());
    unit.running = running(host, name, slice.map(String::as_str), slices);
    Seen::Got(unit)
}

/// The file of a unit, and where its links end.
fn first_file(host: &Host, name: &str) -> Seen<(String, String)> {
    Seen::first_of(FOLDERS.iter().map(|folder| {
        let path = format!("{folder}/{name}");
        // Most do not exist, and `lstat` says so at a fraction of the cost.
        if host.stat(&path).is_absent() {
            return Seen::Absent;
        }
        let real = match host.link(&path) {
            Seen::Got(target) if target == NOTHING => Seen::Got(target),
            // A link to nowhere is no unit.
            _ => host.real(&path),
        };
        real.map(|real| (path, real))
    }))
}

fn is_empty(host: &Host, path: &str) -> bool {
    host.stat(path)
        .got()
        .is_some_and(|stat| stat.kind == "file" && stat.size == Some(0))
}

/// A setting: its section, its name and its value.
type Setting = (String, String, String);
/// Settings of a file, and whether all of it was read.
type Settings = Seen<(Vec<Setting>, bool)>;

/// What is asked once for all units.
struct Common {
    links: Links,
    /// The control group of the system's services.
    slices: Option<String>,
    /// Drop-ins for all services, and whether these are all.
    drop_ins: (Vec<String>, bool),
    /// Files that were read.
    read: RefCell<BTreeMap<String, Settings>>,
}

impl Common {
    fn read(&self, host: &Host, path: &str) -> Settings {
        let mut read = self.read.borrow_mut();
        let ask = || read_settings(host, path, false);
        read.entry(path.to_owned()).or_insert_with(ask).clone()
    }
}

/// The unit that a file or a drop-in belongs to, by where it lies; whatever the drop-in itself is called.
fn unit_of(path: &str) -> &str {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = folder.rsplit('/').next().unwrap_or(folder);
    folder.strip_suffix(".d").unwrap_or(file)
}

/// What of a unit is taken.
fn is_kept(section: &str, key: &str) -> bool {
    match section {
        "Service" => {
            ["Environment", "EnvironmentFile", "UnsetEnvironment"].contains(&key)
                || LISTS.contains(&key)
                || SINGLES.contains(&key)
        }
        "Install" => ["WantedBy", "RequiredBy"].contains(&key),
        _ => false,
    }
}

/// The settings of a file that are kept, in order. Only they are recorded, and of variables only those that steer. With
/// `if_it_steers` none of them, unless the file gives devices or sets such variables: what else the administrator runs is no
/// business of ours.
fn read_settings(host: &Host, path: &str, if_it_steers: bool) -> Settings {
    // What stands before the first line that shows it.
    let mut held = if_it_steers.then(Vec::new);
    // A setting goes on in the next line behind a backslash; comments may stand in between.
    let mut begun = String::new();
    let mut section = String::new();
    let mut kept_of = |line: &str| {
        let line = line.trim();
        if line.starts_with(['#', ';']) || line.is_empty() && begun.is_empty() {
            return None;
        }
        if begun.len() < LONGEST {
            begun += line;
        }
        if begun.ends_with('\\') {
            begun.pop();
            begun.push(' ');
            return None;
        }
        let line = std::mem::take(&mut begun);
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
            return ["Service", "Install"]
                .contains(&section.as_str())
                .then_some((false, line));
        }
        let (key, value) = line.split_once('=')?;
        let (key, value) = (key.trim(), value.trim());
        if !is_kept(&section, key) {
            return None;
        }
        if key != "Environment" || value.is_empty() {
            let is_private = key == "ExecStart" && !OWN_COMMANDS.contains(&unit_of(path));
            let shows = ["DeviceAllow", "Environment"].contains(&key);
            return (!is_private).then(|| (shows, format!("{key}={value}")));
        }
        let steering: Vec<String> = assignments(value)
            .into_iter()
            .filter_map(|(name, value)| steering(host, &name, value))
            .map(|(name, value)| format!("Environment=\"{name}={}\"", quoted(&value)))
            .collect();
        (!steering.is_empty()).then(|| (true, steering.join("\n")))
    };
    let mut take = |line: &str| {
        let (shows, line) = kept_of(line)?;
        let Some(before) = &mut held else {
            return Some(line);
        };
        before.push(line);
        shows.then(|| held.take().unwrap_or_default().join("\n"))
    };
    host.excerpt(path, &mut take).map(|kept| {
        let mut section = String::new();
        let mut settings = Vec::new();
        for line in kept.lines.iter().flat_map(|lines| lines.lines()) {
            match (line.strip_prefix('['), line.split_once('=')) {
                (Some(name), _) => section = name.trim_end_matches(']').to_owned(),
                (None, Some((key, value))) => {
                    settings.push((section.clone(), key.to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
        (settings, kept.whole)
    })
}

/// A variable that steers GPU software, with what may be told of it.
fn steering(host: &Host, name: &str, value: String) -> Option<(String, String)> {
    if !STEERING.iter().any(|(known, _)| *known == name) {
        return None;
    }
    Some(told((name.to_owned(), host.variable(name, &value))))
}

/// A variable as the facts have it: of some only that they are set, whatever the door or a recording left of them.
fn told((name, value): (String, String)) -> (String, String) {
    if ONLY_SET.contains(&name.as_str()) {
        return (name, "set".to_owned());
    }
    (name, value)
}

fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The assignments of `Environment=`: parted by blanks, in quotation marks where a value holds some.
fn assignments(text: &str) -> Vec<(String, String)> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (_, '\\') => word.extend(characters.next()),
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, _) if character.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(character),
        }
    }
    words.push(word);
    words
        .iter()
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

impl Unit {
    /// Adds the settings of one file, in order.
    fn apply(&mut self, settings: Vec<Setting>, environment_files: &mut Vec<String>) {
        for (section, key, value) in settings {
            if section != "Service" {
                continue;
            }
            match key.as_str() {
                "Environment" if value.is_empty() => self.environment.clear(),
                "Environment" => self
                    .environment
                    .extend(assignments(&value).into_iter().map(told)),
                "UnsetEnvironment" => {
                    for name in value.split_whitespace() {
                        self.environment.remove(name);
                    }
                }
                "EnvironmentFile" if value.is_empty() => environment_files.clear(),
                "EnvironmentFile" => environment_files.push(value),
                _ if value.is_empty() => {
                    self.settings.remove(&key);
                }
                _ => {
                    let values = self.settings.entry(key.clone()).or_default();
                    if SINGLES.contains(&key.as_str()) {
                        values.clear();
                    }
                    if values.len() < LIMIT {
                        values.push(value);
                    }
                }
            }
        }
    }

    /// Takes the variables of a file: `NAME=VALUE` in lines. They win over those of the unit. A dash before the path: it may
    /// be missing.
    fn take_environment_file(&mut self, host: &Host, path: &str) {
        let path = path.trim_start_matches('-');
        // Patterns and specifiers name files that are not known here.
        if !path.starts_with('/') || path.contains(['*', '?', '[', '%']) {
            self.whole = false;
            return;
        }
        let mut take = |line: &str| {
            let line = line.trim();
            let (name, value) = line.split_once('=')?;
            if line.starts_with(['#', ';']) {
                return None;
            }
            let value = value.trim().trim_matches(['"', '\'']).to_owned();
            let (name, value) = steering(host, name.trim(), value)?;
            Some(format!("{name}={value}"))
        };
        match host.excerpt(path, &mut take) {
            Seen::Got(kept) => {
                self.whole &= kept.whole;
                let variables = kept.lines.iter().filter_map(|line| line.split_once('='));
                self.environment.extend(
                    variables.map(|(name, value)| told((name.to_owned(), value.to_owned()))),
                );
            }
            Seen::Absent => {}
            _ => self.whole = false,
        }
    }
}

/// Drop-ins of one kind in the order in which they are read: by their names, whatever folder they are in. Of equal names the
/// first folder counts. And whether these are all.
fn drop_ins_of(host: &Host, kind: &str) -> (Vec<String>, bool) {
    let mut all = true;
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    for folder in FOLDERS {
        let (paths, whole) = drop_ins_in(host, &format!("{folder}/{kind}"));
        // What packages bring for all services or one of these says nothing of devices.
        all &= whole || folder != LOCAL_FOLDER;
        for path in paths {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            by_name.entry(name).or_insert(path);
        }
    }
    (by_name.into_values().collect(), all)
}

/// The files of one folder of drop-ins, and whether these are all.
fn drop_ins_in(host: &Host, folder: &str) -> (Vec<String>, bool) {
    if host.stat(folder).is_absent() {
        return (Vec::new(), true);
    }
    match host.names(folder, |name| name.ends_with(".conf")) {
        Seen::Got(listing) => {
            let names = listing.names.iter();
            let paths: Vec<String> = names
                .take(LIMIT)
                .map(|name| format!("{folder}/{name}"))
                .collect();
            let whole = listing.whole && paths.len() < LIMIT;
            (paths, whole)
        }
        Seen::Absent => (Vec::new(), true),
        _ => (Vec::new(), false),
    }
}

/// The folders whose links enable units.
struct Links {
    /// Services in the administrator's folder, their drop-ins, and the folders of links. None: it cannot be listed.
    local: Option<Vec<String>>,
    whole: bool,
}

impl Links {
    fn of(host: &Host) -> Links {
        // Timers, mounts and the like may be called after anything and say nothing of GPUs.
        let ends = [".service", ".service.d", ".wants", ".requires"];
        match host.names(LOCAL_FOLDER, |name| {
            ends.iter().any(|end| name.ends_with(end))
        }) {
            Seen::Got(listing) => Links {
                local: Some(listing.names),
                whole: listing.whole,
            },
            Seen::Absent => Links {
                local: Some(Vec::new()),
                whole: true,
            },
            _ => Links {
                local: None,
                whole: false,
            },
        }
    }

    fn names(&self) -> &[String] {
        self.local.as_deref().unwrap_or_default()
    }

    /// Folders that hold a link to a unit. `installs` are those that the unit itself names, where it was read.
    fn of_unit(
        &self,
        host: &Host,
        unit: &str,
        wanted_by: &[&str],
        installs: Option<&[String]>,
    ) -> Seen<Vec<String>> {
        let usual: Vec<String> = wanted_by.iter().map(|one| format!("{one}.wants")).collect();
        let decisive = installs.unwrap_or(&usual);
        let is_folder = |name: &&String| name.ends_with(".wants") || name.ends_with(".requires");
        let local = self.names().iter().filter(is_folder);
        let kinds: BTreeSet<&String> = local.chain(&usual).chain(decisive).collect();
        let mut found = Vec::new();
        let mut proved = self.whole || !decisive.is_empty();
        for kind in kinds {
            for folder in FOLDERS {
                let is_local = folder == LOCAL_FOLDER;
                // Folders that packages bring hold few links; those of the administrator's were listed.
                if !is_local && !decisive.contains(kind) && !usual.contains(kind) {
                    continue;
                }
                let path = format!("{folder}/{kind}");
                match host.stat(&format!("{path}/{unit}")) {
                    Seen::Got(_) => found.push(path),
                    Seen::Absent => {}
                    _ if is_local && (self.whole || decisive.contains(kind)) => proved = false,
                    _ => {}
                }
            }
        }
        match found.is_empty() {
            false => Seen::Got(found),
            true if proved => Seen::Absent,
            true => Seen::default(),
        }
    }
}

/// The control group of the system's services, where there is one: of the newer kind, of the older one, of both together.
fn slices(host: &Host) -> Option<String> {
    [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/systemd",
        "/sys/fs/cgroup/unified",
    ]
    .into_iter()
    .find(|root| host.exists(&format!("{root}/system.slice")).got().is_some())
    .map(str::to_owned)
}

/// The control group of a unit. In a container those of the machine cannot be seen: then nothing is proved.
fn running(host: &Host, unit: &str, slice: Option<&str>, root: Option<&str>) -> Seen<String> {
    let Some(root) = root else {
        return Seen::default();
    };
    let usual = matches!(slice, None | Some("system.slice"));
    // `a-b.slice` lies in `a.slice`.
    let slice = slice.unwrap_or("system.slice");
    let mut path = root.to_owned();
    let parts: Vec<&str> = slice.trim_end_matches(".slice").split('-').collect();
    for count in 1..=parts.len() {
        path += &format!("/{}.slice", parts[..count].join("-"));
    }
    path += &format!("/{unit}");
    match host.stat(&path) {
        Seen::Got(_) => Seen::Got(path),
        Seen::Absent if !usual => Seen::default(),
        other => other.map(|_| path),
    }
}

/// The users that the units run as.
fn users(host: &Host, units: &BTreeMap<String, Seen<Unit>>) -> BTreeMap<String, ServiceUser> {
    let names: BTreeSet<String> = units
        .values()
        .filter_map(Seen::got)
        .filter_map(|unit| unit.settings.get("User")?.last().cloned())
        .collect();
    if names.is_empty() {
        return BTreeMap::new();
    }
    let Accounts { passwd, groups, .. } = accounts(host, host.user().got(), &names);
    let rows = passwd.into_got().unwrap_or_default();
    let sources = match group_sources(host) {
        // Without the file the C library reads /etc/group alone.
        Seen::Absent => Seen::Got(Vec::new()),
        other => other,
    };
    names
        .into_iter()
        .filter_map(|name| {
            let (uid, row) = rows
                .iter()
                .find(|(uid, row)| row.name == name || uid.to_string() == name)?;
            // Where else groups may stand is for whoever judges; that nobody knows leaves them unknown here.
            let groups = sources
                .as_ref()
                .and_then(|_| groups.as_ref())
                .map(|groups| {
                    groups
                        .iter()
                        .filter(|(_, group)| group.members.contains(&row.name))
                        .map(|(gid, group)| (*gid, group.name.clone()))
                        .collect()
                });
            let user = ServiceUser {
                uid: *uid,
                gid: row.gid,
                groups,
            };
            Some((name, user))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;
    use crate::host::Options;
    use crate::host::archive::Archive;
    use crate::host::machine::Entries;
    use crate::host::redact::{Private, Redactor};

    fn ask(tree: &Tree) -> Services {
        tree.ask(services).into_got().expect("an answer")
    }

    fn got<'a>(services: &'a Services, name: &str) -> &'a Unit {
        services.units[name].got().expect(name)
    }

    /// A system with the control groups of its services.
    fn system() -> Tree {
        let mut tree = Tree::proved();
        tree.file(
            "/sys/fs/cgroup/system.slice/ssh.service/cgroup.procs",
            "1\n",
        );
        tree
    }

    #[test]
    fn a_unit_with_drop_ins() {
        let mut tree = system();
        tree.file(
            "/etc/systemd/system/ollama.service",
            "[Unit]\nUser=nobody\n[Service]\nExecStart=/usr/local/bin/ollama serve --key secret\nUser=ollama\n\
             DeviceAllow=/dev/kfd rw\nEnvironment=\"PATH=/usr/bin\" TOKEN=secret \\\n# between\n  'CUDA_VISIBLE_DEVICES=0 1'\n\
             EnvironmentFile=-/etc/default/ollama\n[Install]\nWantedBy=default.target\n",
        );
        tree.file(
            "/etc/systemd/system/ollama.service.d/20-late.conf",
            "[Service]\nUser=\nDeviceAllow=\nDeviceAllow=/dev/dri rw\nDynamicUser=yes\nEnvironment=OLLAMA_HOST=10.1.2.3\n",
        );
        tree.file(
            "/usr/lib/systemd/system/ollama.service.d/10-early.conf",
            "[Service]\nUser=early\nSupplementaryGroups=render video\nEnvironment=HSA_OVERRIDE_GFX_VERSION=10.3.0\n",
        );
        tree.file(
            "/etc/default/ollama",
            "# CUDA_VISIBLE_DEVICES=7\nSECRET=x\nHSA_OVERRIDE_GFX_VERSION=\"11.0.0\"\n",
        );
        tree.link(
            "/etc/systemd/system/default.target.wants/ollama.service",
            "/etc/systemd/system/ollama.service",
        );
        tree.file(
            "/sys/fs/cgroup/system.slice/ollama.service/cgroup.procs",
            "2\n",
        );
        let (host, _) = tree.host(Options::default());
        let host = host.recording();
        let seen = services(&host).into_got().expect("an answer");
        let unit = got(&seen, "ollama.service");
        assert!(unit.whole && !unit.masked);
        assert_eq!(unit.file, "/etc/systemd/system/ollama.service");
        assert_eq!(
            unit.drop_ins,
            [
                "/usr/lib/systemd/system/ollama.service.d/10-early.conf",
                "/etc/systemd/system/ollama.service.d/20-late.conf"
            ]
        );
        assert_eq!(
            unit.enabled_by,
            Seen::Got(vec!["/etc/systemd/system/default.target.wants".to_owned()])
        );
        assert_eq!(
            unit.running,
            Seen::Got("/sys/fs/cgroup/system.slice/ollama.service".to_owned())
        );
        let settings: Vec<_> = unit
            .settings
            .iter()
            .map(|(key, values)| format!("{key}={}", values.join(";")))
            .collect();
        assert_eq!(
            settings,
            [
                "DeviceAllow=/dev/dri rw",
                "DynamicUser=yes",
                "SupplementaryGroups=render video"
            ]
        );
        let environment: Vec<_> = unit
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            environment,
            [
                "CUDA_VISIBLE_DEVICES=0 1",
                "HSA_OVERRIDE_GFX_VERSION=11.0.0",
                "OLLAMA_HOST=set",
                "PATH=/usr/bin"
            ]
        );
        let entries = host.take_entries();
        let recorded: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        for private in ["secret", "TOKEN", "10.1.2.3", "SECRET", "10.1.2"] {
            assert!(!recorded.contains(private), "{private} in\n{recorded}");
        }
        assert!(recorded.contains("CUDA_VISIBLE_DEVICES=0 1"), "{recorded}");
    }

    #[test]
    fn command_lines_of_other_units_stay_at_the_door() {
        let mut tree = system();
        let command = "[Service]\nDeviceAllow=/dev/nvidia0 rw\nExecStart=/opt/x --key CANARY\n";
        for path in [
            "ollama.service",
            "ollama.service.d/nvidia-gpu.conf",
            "nvidia-exporter.service",
            "nvidia-exporter.service.d/nvidia-persistenced.service",
            "service.d/nvidia-persistenced.service.conf",
            "train.service.d/nvidia-persistenced.service",
            "nvidia-persistenced.service.wants/train.service",
        ] {
            tree.file(&format!("/etc/systemd/system/{path}"), command);
        }
        tree.file(
            "/etc/systemd/system/nvidia-persistenced.service.d/own.conf",
            "[Service]\nExecStart=/usr/bin/nvidia-persistenced --verbose\n",
        );
        tree.file(
            "/usr/lib/systemd/system/nvidia-persistenced.service",
            "[Service]\n",
        );
        let (host, _) = tree.host(Options::default());
        let host = host.recording();
        let seen = services(&host).into_got().expect("an answer");
        assert_eq!(
            got(&seen, "nvidia-persistenced.service").settings["ExecStart"],
            ["/usr/bin/nvidia-persistenced --verbose"]
        );
        assert!(
            got(&seen, "ollama.service")
                .settings
                .contains_key("DeviceAllow")
        );
        let entries = host.take_entries();
        let recorded: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        assert!(!recorded.contains("CANARY"), "{recorded}");
    }

    #[test]
    fn a_replay_says_what_was_said() {
        let mut tree = system();
        tree.file(
            "/etc/systemd/system/ollama.service",
            "[Service]\nEnvironment=\"OLLAMA_HOST=10.1.2.3\"\nEnvironmentFile=-/srv/alicia/x.env\nRootDirectory=/srv/alicia\n",
        );
        tree.file("/srv/alicia/x.env", "CUDA_HOME=/srv/alicia/cuda\n");
        let private = Private {
            user: Some("alicia".to_owned()),
            ..Private::default()
        };
        let redactor = Redactor::on(42, private);
        let host = Host::new(Box::new(tree), redactor, Options::default()).recording();
        let seen = services(&host);
        let recorded: String = host
            .take_entries()
            .iter()
            .map(|entry| format!("{entry}\n"))
            .collect();
        assert!(!recorded.contains("alicia"), "{recorded}");
        let entries =
            Entries::parse(format!("gpucheck-machine 1\n{recorded}").leak()).expect("a machine");
        let replay = Host::new(
            Box::new(Archive::new(entries)),
            Redactor::off(),
            Options::default(),
        );
        let services = seen.got().expect("an answer");
        let unit = got(services, "ollama.service");
        assert_eq!(unit.environment["OLLAMA_HOST"], "set");
        assert_eq!(unit.environment["CUDA_HOME"], "/srv/USER/cuda");
        assert_eq!(unit.settings["RootDirectory"], ["/srv/USER"]);
        let replayed = super::services(&replay).into_got().expect("an answer");
        assert_eq!(
            replayed.units["ollama.service"],
            services.units["ollama.service"]
        );
    }

    #[test]
    fn what_is_private_in_units_stays_at_the_door() {
        let mut tree = system();
        tree.file(
            "/etc/systemd/system/ollama.service",
            "[Service]\nEnvironment='CUDA_HOME=/scratch/alicia/\"cuda\"'\nEnvironmentFile=/etc/ollama/env\n",
        );
        tree.file(
            "/etc/ollama/env",
            "ROCM_HOME=/scratch/alicia/rocm\nCUDA_VISIBLE_DEVICES=GPU-5a1b2c3d\n",
        );
        for private in ["mnt-acme.mount", "acme.timer", "ollama.service.d/acme.bak"] {
            tree.file(&format!("/etc/systemd/system/{private}"), "");
        }
        tree.file(
            "/etc/systemd/system/backup.service",
            "[Service]\nUser=root\nSlice=acme.slice\n",
        );
        let private = Private {
            user: Some("alicia".to_owned()),
            ..Private::default()
        };
        let redactor = Redactor::on(42, private);
        let host = Host::new(Box::new(tree), redactor, Options::default()).recording();
        let seen = services(&host).into_got().expect("an answer");
        let unit = got(&seen, "ollama.service");
        assert!(unit.whole);
        assert_eq!(unit.environment["CUDA_HOME"], "/scratch/USER/\"cuda\"");
        assert_eq!(unit.environment["ROCM_HOME"], "/scratch/USER/rocm");
        assert_ne!(unit.environment["CUDA_VISIBLE_DEVICES"], "GPU-5a1b2c3d");
        let entries = host.take_entries();
        let recorded: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        for private in ["alicia", "5a1b2c3d", "acme"] {
            assert!(!recorded.contains(private), "{private} in\n{recorded}");
        }
    }

    #[test]
    fn a_file_is_read_once() {
        let mut tree = system();
        let files = [
            "/etc/systemd/system/trainer.service",
            "/etc/systemd/system/trainer.service.d/gpu.conf",
            "/etc/systemd/system/service.d/all.conf",
        ];
        for (file, text) in files.iter().zip([
            "[Service]\nUser=root\nEnvironment=CUDA_VISIBLE_DEVICES=0\n[Install]\nWantedBy=x.target\n",
            "[Service]\nDeviceAllow=/dev/nvidia0\n",
            "[Service]\nPrivateDevices=yes\n",
        ]) {
            tree.file(file, text);
        }
        let (host, asked) = tree.host(Options::default());
        let seen = services(&host).into_got().expect("an answer");
        let unit = got(&seen, "trainer.service");
        assert_eq!(unit.environment["CUDA_VISIBLE_DEVICES"], "0");
        for name in ["User", "DeviceAllow", "PrivateDevices"] {
            assert!(unit.settings.contains_key(name), "{name}: {unit:?}");
        }
        let asked = asked.borrow();
        for file in files {
            let read = format!("read {file}");
            let count = asked.iter().filter(|one| **one == read).count();
            assert_eq!(count, 1, "{file}");
        }
        let listed = |one: &&String| *one == "list /etc/systemd/system/service.d";
        assert_eq!(asked.iter().filter(listed).count(), 1);
    }

    #[test]
    fn enabled_masked_and_running_need_their_own_proof() {
        let mut tree = system();
        tree.file(
            "/usr/lib/systemd/system/nvidia-persistenced.service",
            "[Service]\nExecStart=/usr/bin/nvidia-persistenced --no-persistence-mode\n[Install]\nWantedBy=multi-user.target\n",
        );
        tree.link("/etc/systemd/system/nvidia-powerd.service", "/dev/null");
        tree.file("/etc/systemd/system/slurmd.service", "");
        tree.file(
            "/usr/lib/systemd/system/slurmd.service",
            "[Service]\nUser=root\n",
        );
        tree.file(
            "/usr/lib/systemd/system/kubelet.service",
            "[Service]\nSlice=pod-runtime.slice\n",
        );
        let seen = ask(&tree);
        let unit = got(&seen, "nvidia-persistenced.service");
        assert_eq!(unit.enabled_by, Seen::Absent);
        assert_eq!(unit.running, Seen::Absent);
        assert_eq!(
            unit.settings["ExecStart"],
            ["/usr/bin/nvidia-persistenced --no-persistence-mode"]
        );
        assert!(got(&seen, "nvidia-powerd.service").masked);
        let empty = got(&seen, "slurmd.service");
        assert!(empty.masked && empty.settings.is_empty());
        assert_eq!(seen.units["docker.service"], Seen::Absent);
        assert!(got(&seen, "kubelet.service").running.is_unknown());

        tree.file(
            "/sys/fs/cgroup/pod.slice/pod-runtime.slice/kubelet.service/x",
            "",
        );
        tree.link(
            "/etc/systemd/system/multi-user.target.requires/nvidia-persistenced.service",
            "/x",
        );
        tree.error("/etc/systemd/system/sleep.target.wants", "EIO");
        let seen = ask(&tree);
        assert!(got(&seen, "kubelet.service").running.got().is_some());
        let unit = got(&seen, "nvidia-persistenced.service");
        assert_eq!(
            unit.enabled_by,
            Seen::Got(vec![
                "/etc/systemd/system/multi-user.target.requires".to_owned()
            ])
        );
        // One folder of links cannot be looked into.
        assert!(got(&seen, "kubelet.service").enabled_by.is_unknown());
    }

    #[test]
    fn nothing_known_proves_nothing() {
        let seen = ask(&Tree::default());
        assert!(seen.units.values().all(Seen::is_unknown));
        let mut tree = Tree::proved();
        tree.file("/usr/lib/systemd/system/docker.service", "[Service]\n");
        let unit = &ask(&tree).units["docker.service"];
        // No control groups: a container sees none of its machine's.
        assert!(unit.got().expect("docker").running.is_unknown());
    }

    #[test]
    fn units_of_the_administrator_that_give_devices() {
        let mut tree = system();
        tree.file(
            "/etc/systemd/system/train.service",
            "[Service]\nUser=1000\nEnvironment=CUDA_VISIBLE_DEVICES=1\n",
        );
        tree.file(
            "/etc/systemd/system/web.service",
            "[Service]\nUser=web\nEnvironment=KEY=secret\n",
        );
        tree.file(
            "/etc/systemd/system/sshd.service.d/gpu.conf",
            "[Service]\nDeviceAllow=char-drm rw\n",
        );
        tree.file(
            "/usr/lib/systemd/system/sshd.service",
            "[Service]\nUser=sshd\n",
        );
        tree.link(
            "/etc/systemd/system/alias.service",
            "/usr/lib/systemd/system/sshd.service",
        );
        tree.file("/etc/passwd", "a:x:1000:1000::/home/a:/bin/sh\nweb:x:33:33::/:/bin/sh\nsshd:x:100:65534::/:/bin/false\n");
        tree.file(
            "/etc/group",
            "render:x:104:a,web,sshd\nvideo:x:44:web\nwheel:x:10:a\n",
        );
        let seen = ask(&tree);
        assert!(seen.units.contains_key("train.service"));
        assert!(!seen.units.contains_key("web.service"));
        assert!(!seen.units.contains_key("alias.service"));
        let unit = got(&seen, "sshd.service");
        assert_eq!(unit.settings["DeviceAllow"], ["char-drm rw"]);
        let users: Vec<_> = seen
            .users
            .iter()
            .map(|(name, user)| (name.as_str(), user.uid, user.gid, user.groups.clone()))
            .collect();
        let render = || Seen::Got(BTreeMap::from([(104, "render".to_owned())]));
        assert_eq!(
            users,
            [
                ("1000", 1000, 1000, render()),
                ("sshd", 100, 65_534, render())
            ]
        );
        tree.error("/etc/group", "EACCES");
        assert!(ask(&tree).users["sshd"].groups.is_unknown());
    }

    #[test]
    fn assignments_in_quotation_marks() {
        for (text, expected) in [
            ("A=1 B=2", vec![("A", "1"), ("B", "2")]),
            (r#""A=1 2" 'B="x"'"#, vec![("A", "1 2"), ("B", "\"x\"")]),
            (r#"A=\"x\ y"#, vec![("A", "\"x y")]),
            ("A", vec![]),
            (r#""A=1"#, vec![("A", "1")]),
            ("A=", vec![("A", "")]),
        ] {
            let found = assignments(text);
            let found: Vec<_> = found
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
        let value = "a \"b\" \\ c";
        let again = assignments(&format!("\"X={}\"", quoted(value)));
        assert_eq!(again, [("X".to_owned(), value.to_owned())]);
    }
}
