//! Fills `facts/packages.rs`: the package databases, and where packages come from. dpkg and pacman keep files that anybody
//! may read; rpm's database has no stable form, so rpm itself is asked.

use crate::facts::packages::{Package, Packages, Pin, Repository, is_of_interest};
use crate::facts::{Named, Seen};
use crate::host::Host;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

const DPKG_STATUS: &str = "/var/lib/dpkg/status";
const PACMAN_FOLDER: &str = "/var/lib/pacman/local";
const RPM_FOLDERS: &[&str] = &["/usr/lib/sysimage/rpm", "/var/lib/rpm"];
/// Most packages that are kept, and most files of one folder that are read.
const PACKAGE_LIMIT: usize = 8192;
const FILE_LIMIT: usize = 512;

/// What names a repository of a GPU vendor, or one that packages its drivers.
const VENDOR_REPOSITORIES: &[&str] = &[
    "nvidia",
    "cuda",
    "radeon.com",
    "amd.com",
    "amdgpu",
    "rocm",
    "repositories.intel.com",
    "repos.intel.com",
    "intel-graphics",
    "graphics-drivers",
    "rpmfusion",
    "negativo17",
];

type Installed = Named<Vec<Package>>;

/// Source `packages`.
pub fn packages(host: &Host) -> Seen<Packages> {
    let mut answered: Option<(&str, Seen<Installed>)> = None;
    let mut unknown: Option<Seen<Installed>> = None;
    for (manager, ask) in [
        ("dpkg", dpkg as fn(&Host) -> Seen<Installed>),
        ("pacman", pacman),
        ("rpm", rpm),
    ] {
        match ask(host) {
            // A tool of another distribution may be installed, with an empty database.
            Seen::Got(installed) => {
                let is_used = !installed.items.is_empty();
                if is_used || answered.is_none() {
                    answered = Some((manager, Seen::Got(installed)));
                }
                if is_used {
                    break;
                }
            }
            Seen::Absent => {}
            other => {
                unknown.get_or_insert(other);
            }
        }
    }
    // An empty database beside one that did not answer is probably not the one that counts.
    let (manager, installed) = match (answered, unknown) {
        (Some((_, Seen::Got(installed))), Some(unknown)) if installed.items.is_empty() => {
            (None, unknown)
        }
        (Some((manager, installed)), _) => (Some(manager.to_owned()), installed),
        (None, unknown) => (None, unknown.unwrap_or(Seen::Absent)),
    };
    Seen::Got(Packages {
        manager,
        installed,
        repositories: repositories(host),
        pins: pins(host),
    })
}

fn add(installed: &mut Installed, name: &str, package: Package) {
    let known = installed.items.len();
    match installed.items.get_mut(name) {
        Some(packages) if packages.len() < FILE_LIMIT => packages.push(package),
        None if known < PACKAGE_LIMIT => {
            installed.items.insert(name.to_owned(), vec![package]);
        }
        _ => installed.whole = false,
    }
}

fn dpkg(host: &Host) -> Seen<Installed> {
    let status = stanzas(host, DPKG_STATUS);
    if status.is_absent() {
        return status_folder(host);
    }
    status.map(|(lines, whole)| {
        let mut installed = Named {
            whole,
            ..Named::default()
        };
        add_stanzas(&mut installed, &lines);
        installed
    })
}

/// Images without a package manager keep the stanzas of their packages in files of their own.
fn status_folder(host: &Host) -> Seen<Installed> {
    let folder = format!("{DPKG_STATUS}.d");
    host.list(&folder).map(|listing| {
        let files = listing
            .names
            .iter()
            .filter(|name| !name.ends_with(".md5sums"));
        let mut installed = Named {
            whole: listing.whole && files.clone().count() <= FILE_LIMIT,
            ..Named::default()
        };
        for name in files.take(FILE_LIMIT) {
            match stanzas(host, &format!("{folder}/{name}")) {
                Seen::Got((lines, whole)) => {
                    installed.whole &= whole;
                    add_stanzas(&mut installed, &lines);
                }
                _ => installed.whole = false,
            }
        }
        installed
    })
}

/// Of the stanzas of packages of interest the lines that matter, with the empty lines between them.
fn stanzas(host: &Host, path: &str) -> Seen<(Vec<String>, bool)> {
    let inside = Cell::new(false);
    let keep = |line: &str| {
        if let Some(name) = line.strip_prefix("Package: ") {
            inside.set(is_of_interest(name.trim()));
        }
        let wanted = [
            "Package: ",
            "Status: ",
            "Architecture: ",
            "Version: ",
            "Description: ",
        ];
        let kept =
            inside.get() && (line.is_empty() || wanted.iter().any(|word| line.starts_with(word)));
        if line.is_empty() {
            inside.set(false);
        }
        kept
    };
    host.lines(path, &keep).map(|kept| (kept.lines, kept.whole))
}

fn add_stanzas(installed: &mut Installed, lines: &[String]) {
    for stanza in lines.split(|line| line.is_empty()) {
        let field = |name: &str| {
            stanza
                .iter()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                .map(str::trim)
        };
        let Some(name) = field("Package").filter(|name| is_of_interest(name)) else {
            continue;
        };
        // What is wanted, whether it has to be installed anew, and what is.
        let status: Vec<&str> = field("Status")
            .unwrap_or("install ok installed")
            .split(' ')
            .collect();
        let (Some(version), [wanted, _, state]) = (field("Version"), &status[..]) else {
            // Removed without a trace, but for the name.
            continue;
        };
        let package = Package {
            version: version.to_owned(),
            architecture: field("Architecture").map(str::to_owned),
            state: (*state).to_owned(),
            held: *wanted == "hold",
            transitional: field("Description").map(is_transitional),
        };
        add(installed, name, package);
    }
}

/// Debian and Ubuntu name packages so that only pull in their successors.
fn is_transitional(description: &str) -> bool {
    let description = description.to_ascii_lowercase();
    ["transitional", "dummy package"]
        .iter()
        .any(|word| description.contains(word))
}

/// Each package has a folder `NAME-VERSION-RELEASE`.
fn pacman(host: &Host) -> Seen<Installed> {
    let keep =
        |folder: &str| name_and_version(folder).is_some_and(|(name, _)| is_of_interest(name));
    host.names(PACMAN_FOLDER, keep).map(|listing| {
        let ignored = ignored_by_pacman(host);
        let mut installed = Named {
            whole: listing.whole,
            ..Named::default()
        };
        for folder in &listing.names {
            let Some((name, version)) = name_and_version(folder) else {
                continue;
            };
            let package = Package {
                version: version.to_owned(),
                architecture: None,
                state: "installed".to_owned(),
                held: ignored.iter().any(|ignored| ignored == name),
                transitional: None,
            };
            add(&mut installed, name, package);
        }
        installed
    })
}

/// `NAME-VERSION-RELEASE`, taken apart from its end: the name may hold dashes.
fn name_and_version(text: &str) -> Option<(&str, &str)> {
    let (before, _release) = text.rsplit_once('-')?;
    let (name, _version) = before.rsplit_once('-')?;
    (!name.is_empty()).then(|| (name, &text[name.len() + 1..]))
}

/// Packages of interest that pacman leaves as they are.
fn ignored_by_pacman(host: &Host) -> Vec<String> {
    fn names(line: &str) -> Option<impl Iterator<Item = &str>> {
        let (key, value) = line.split_once('=')?;
        let value = value.split('#').next().unwrap_or_default();
        (key.trim() == "IgnorePkg")
            .then(|| value.split_whitespace().filter(|name| is_of_interest(name)))
    }
    let mut take = |line: &str| {
        let names: Vec<&str> = names(line)?.collect();
        (!names.is_empty()).then(|| format!("IgnorePkg = {}", names.join(" ")))
    };
    let kept = host.excerpt("/etc/pacman.conf", &mut take);
    let lines = kept.into_got().unwrap_or_default().lines;
    let ignored = lines.iter().filter_map(|line| names(line)).flatten();
    ignored.map(str::to_owned).collect()
}

fn rpm(host: &Host) -> Seen<Installed> {
    if RPM_FOLDERS
        .iter()
        .all(|folder| host.exists(folder).is_absent())
    {
        return Seen::Absent;
    }
    let keep = |line: &str| rpm_package(line).is_some();
    let output = match host.run(&["rpm", "-qa"], &keep) {
        // Only rpm can read its database: without it nothing is known of what is installed.
        Seen::Absent => Seen::error("there is a database and no rpm"),
        answer => answer,
    };
    output.and_then(|output| {
        if output.rc != 0 {
            return Seen::error(format!("rpm ended with {}", output.rc));
        }
        let mut installed = Named {
            whole: output.whole,
            ..Named::default()
        };
        for line in &output.lines {
            if let Some((name, package)) = rpm_package(line) {
                add(&mut installed, name, package);
            }
        }
        Seen::Got(installed)
    })
}

/// `NAME-VERSION-RELEASE.ARCHITECTURE` of a package of interest.
fn rpm_package(line: &str) -> Option<(&str, Package)> {
    let (before, architecture) = line.trim().rsplit_once('.')?;
    let (name, version) = name_and_version(before)?;
    let package = Package {
        version: version.to_owned(),
        architecture: Some(architecture.to_owned()),
        state: "installed".to_owned(),
        held: false,
        transitional: None,
    };
    is_of_interest(name).then_some((name, package))
}

/// How a file names repositories.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `deb [options] URL SUITE COMPONENT ...`.
    OneLine,
    /// Fields of stanzas: `URIs:`, `Suites:`, `Enabled:`.
    Stanzas,
    /// Sections of an ini file: `baseurl=`, `enabled=`.
    Sections,
}

fn repositories(host: &Host) -> Named<Vec<Repository>> {
    let mut files = vec![("/etc/apt/sources.list".to_owned(), Form::OneLine)];
    let mut found = Named {
        whole: true,
        ..Named::default()
    };
    for (folder, end, form) in [
        ("/etc/apt/sources.list.d", ".list", Form::OneLine),
        ("/etc/apt/sources.list.d", ".sources", Form::Stanzas),
        ("/etc/yum.repos.d", ".repo", Form::Sections),
        ("/etc/zypp/repos.d", ".repo", Form::Sections),
    ] {
        let (names, whole) = files_of(host, folder);
        found.whole &= whole;
        let names = names.into_iter().filter(|name| name.ends_with(end));
        files.extend(names.map(|name| (format!("{folder}/{name}"), form)));
    }
    let asked = files
        .into_iter()
        .map(|(path, form)| (repositories_of(host, &path, form), path));
    collect(asked, &mut found);
    found
}

/// Puts in what files say, each under its path; those that say nothing have no place.
fn collect<T>(
    files: impl Iterator<Item = (Seen<(Vec<T>, bool)>, String)>,
    into: &mut Named<Vec<T>>,
) {
    for (answer, path) in files {
        match answer {
            Seen::Got((items, whole)) => {
                into.whole &= whole;
                if !items.is_empty() {
                    into.items.insert(path, items);
                }
            }
            Seen::Absent => {}
            _ => into.whole = false,
        }
    }
}

/// Names in a folder of settings, and whether these are all.
fn files_of(host: &Host, folder: &str) -> (Vec<String>, bool) {
    match host.list(folder) {
        Seen::Got(mut listing) => {
            let whole = listing.whole && listing.names.len() <= FILE_LIMIT;
            listing.names.truncate(FILE_LIMIT);
            (listing.names, whole)
        }
        Seen::Absent => (Vec::new(), true),
        _ => (Vec::new(), false),
    }
}

fn names_vendor(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    VENDOR_REPOSITORIES.iter().any(|word| text.contains(word))
}

/// The repositories of GPU vendors that a file names. Lines about others never leave the door, and of a vendor's only what
/// says where it is: the rest may name servers and hold passwords that are nobody's business.
fn repositories_of(host: &Host, path: &str, form: Form) -> Seen<(Vec<Repository>, bool)> {
    let mut excerpt = Excerpt::default();
    let mut take = |line: &str| match form {
        Form::OneLine => one_line_excerpt(line),
        Form::Stanzas => excerpt.of_stanza(line),
        Form::Sections => excerpt.of_section(line),
    };
    host.excerpt(path, &mut take).map(|kept| {
        let lines: Vec<&str> = kept
            .lines
            .iter()
            .flat_map(|lines| lines.split('\n'))
            .collect();
        let repositories = match form {
            Form::OneLine => lines.iter().filter_map(|line| one_line(line)).collect(),
            Form::Stanzas => lines
                .split(|line| line.trim().is_empty())
                .flat_map(stanza)
                .collect(),
            Form::Sections => sections(&lines),
        };
        (repositories, kept.whole)
    })
}

/// Takes of a stanza or section what tells of a vendor's repository, and nothing where none is named.
#[derive(Default)]
struct Excerpt {
    /// What stands before the first address of a vendor.
    held: Vec<String>,
    /// Such an address was seen.
    names_vendor: bool,
    /// The last field goes on in lines that begin with a blank.
    in_addresses: bool,
}

impl Excerpt {
    fn of_stanza(&mut self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            return std::mem::take(self).names_vendor.then(String::new);
        }
        if line.starts_with('#') {
            return None;
        }
        let (key, value) = setting(line);
        let is_more = line.starts_with([' ', '\t']);
        if is_more && self.in_addresses {
            // One field of several lines is one of several fields here.
            return self.addresses("URIs: ", line);
        }
        if is_more {
            return None;
        }
        self.in_addresses = key == "uris";
        match key.as_str() {
            "uris" => self.addresses("URIs: ", value),
            "types" | "suites" | "enabled" => self.other(format!("{key}: {value}")),
            _ => None,
        }
    }

    fn of_section(&mut self, line: &str) -> Option<String> {
        if line.starts_with('[') {
            // Only that one begins is of use; its name is the administrator's.
            *self = Excerpt {
                held: vec!["[repository]".to_owned()],
                ..Excerpt::default()
            };
            return None;
        }
        let (key, value) = setting(line);
        if is_url_key(&key) {
            return self.addresses(&format!("{key}="), value);
        }
        (key == "enabled").then(|| self.other(format!("{key}={value}")))?
    }

    fn addresses(&mut self, start: &str, value: &str) -> Option<String> {
        let urls: Vec<String> = value
            .split_whitespace()
            .filter_map(vendors_address)
            .map(|address| address.to_string())
            .collect();
        if urls.is_empty() {
            return None;
        }
        self.names_vendor = true;
        self.held.push(format!("{start}{}", urls.join(" ")));
        Some(std::mem::take(&mut self.held).join("\n"))
    }

    fn other(&mut self, line: String) -> Option<String> {
        if self.names_vendor {
            return Some(line);
        }
        self.held.push(line);
        None
    }
}

/// `KEY: VALUE` or `KEY=VALUE`, the key in small letters.
fn setting(line: &str) -> (String, &str) {
    let (key, value) = line.split_once([':', '=']).unwrap_or((line, ""));
    (key.trim().to_ascii_lowercase(), value.trim())
}

fn is_url_key(key: &str) -> bool {
    ["baseurl", "mirrorlist", "metalink"].contains(&key)
}

fn is_no(value: &str) -> bool {
    ["0", "no", "false", "off"].contains(&value.to_ascii_lowercase().as_str())
}

/// Type, address, suite and components of a line, and what of it is kept.
fn one_line_words(line: &str) -> Option<(&str, Address<'_>, Vec<&str>)> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let (kind, rest) = line.split_once(|c: char| c.is_whitespace() || c == '[')?;
    if !["deb", "deb-src"].contains(&kind) {
        return None;
    }
    // Options stand in brackets before the address and may hold blanks.
    let rest = match line[kind.len()..].trim_start().strip_prefix('[') {
        Some(options) => options.split_once(']')?.1,
        None => rest,
    };
    let mut words = rest.split_whitespace();
    let address = vendors_address(words.next()?)?;
    Some((kind, address, words.collect()))
}

fn one_line_excerpt(line: &str) -> Option<String> {
    let (kind, address, words) = one_line_words(line)?;
    Some(
        [&[kind, &address.to_string()], &words[..]]
            .concat()
            .join(" "),
    )
}

fn one_line(line: &str) -> Option<Repository> {
    let (_, address, words) = one_line_words(line)?;
    Some(Repository {
        url: address.shown(),
        suite: words.first().map(|suite| (*suite).to_owned()),
        enabled: true,
    })
}

fn stanza(lines: &[&str]) -> Vec<Repository> {
    let values = |name: &'static str| {
        let settings = lines.iter().map(|line| setting(line));
        settings
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value)
    };
    let urls = values("uris").flat_map(str::split_whitespace);
    urls.filter_map(vendors_address)
        .map(|address| Repository {
            url: address.shown(),
            suite: values("suites").next().map(str::to_owned),
            enabled: !values("enabled").next().is_some_and(is_no),
        })
        .collect()
}

fn sections(lines: &[&str]) -> Vec<Repository> {
    let mut found: Vec<Repository> = Vec::new();
    let mut enabled = true;
    // The first of the section at hand.
    let mut current: Option<usize> = None;
    for line in lines {
        let (key, value) = setting(line);
        if line.starts_with('[') {
            (enabled, current) = (true, None);
        } else if is_url_key(&key) {
            for address in value.split_whitespace().filter_map(vendors_address) {
                current.get_or_insert(found.len());
                found.push(Repository {
                    url: address.shown(),
                    suite: None,
                    enabled,
                });
            }
        } else if key == "enabled" {
            enabled = !is_no(value);
            for one in current
                .and_then(|first| found.get_mut(first..))
                .into_iter()
                .flatten()
            {
                one.enabled = enabled;
            }
        }
    }
    found
}

/// Where a repository is, without login, fragment and all of the query but which repository is meant.
struct Address<'url> {
    /// Empty where none is given.
    scheme: &'url str,
    host: &'url str,
    path: &'url str,
    /// `repo=nonfree-fedora-42` of a list of mirrors.
    query: Option<&'url str>,
}

impl<'url> Address<'url> {
    fn of(url: &'url str) -> Address<'url> {
        let is_scheme = |scheme: &str| {
            !scheme.is_empty()
                && scheme
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+-".contains(&byte))
        };
        let (scheme, rest) = url
            .split_once(':')
            .filter(|(scheme, _)| is_scheme(scheme))
            .unwrap_or(("", url));
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may hold a slash or an at sign that nobody escaped.
        let rest = rest.rsplit('@').next().unwrap_or_default();
        let rest = rest.trim_matches('/');
        let (host, path) = match rest.split_once('/') {
            _ if scheme == "file" => ("", rest),
            Some((host, path)) => (host, path),
            None => (rest, ""),
        };
        Address {
            scheme,
            host,
            path: path.trim_start_matches('/'),
            query: query.split('&').find(|part| {
                part.strip_prefix("repo=")
                    .is_some_and(|name| !name.contains(['/', ':']))
            }),
        }
    }

    /// As the facts have it.
    fn shown(&self) -> String {
        let query = self
            .query
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        let path = [self.path, &query].concat();
        if self.scheme == "file" {
            return format!("file:/{path}");
        }
        let between = if self.path.is_empty() { "" } else { "/" };
        [self.host, between, &path].concat()
    }
}

/// As a file of settings has it.
impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() && self.scheme != "file" {
            write!(f, "{}://", self.scheme)?;
        }
        f.write_str(&self.shown())
    }
}

/// The address, where it is that of a vendor's repository.
fn vendors_address(url: &str) -> Option<Address<'_>> {
    let address = Address::of(url);
    names_vendor(&address.shown()).then_some(address)
}

fn pins(host: &Host) -> Named<Vec<Pin>> {
    let folder = "/etc/apt/preferences.d";
    let (names, whole) = files_of(host, folder);
    let mut found = Named {
        whole,
        items: BTreeMap::new(),
    };
    let files = names.iter().map(|name| format!("{folder}/{name}"));
    let files = files.chain(["/etc/apt/preferences".to_owned()]);
    collect(files.map(|path| (pins_of(host, &path), path)), &mut found);
    found
}

/// Where packages of GPU software are pinned, or a vendor's repository is. What else is pinned never leaves the door.
fn pins_of(host: &Host, path: &str) -> Seen<(Vec<Pin>, bool)> {
    let mut stanza: Vec<(String, String)> = Vec::new();
    let mut done = false;
    let mut take = |line: &str| {
        if line.trim().is_empty() {
            (stanza, done) = (Vec::new(), false);
            return None;
        }
        let (key, value) = setting(line);
        if done || !["package", "pin", "pin-priority"].contains(&key.as_str()) {
            return None;
        }
        stanza.push((key, value.to_owned()));
        let pin = pin_of(&stanza)?;
        done = true;
        Some(format!(
            "Package: {}\nPin: {}\nPin-Priority: {}\n",
            pin.packages, pin.pin, pin.priority
        ))
    };
    host.excerpt(path, &mut take).map(|kept| {
        let lines: Vec<&str> = kept
            .lines
            .iter()
            .flat_map(|lines| lines.split('\n'))
            .collect();
        let pins = lines
            .split(|line| line.trim().is_empty())
            .filter_map(|stanza| {
                let settings = stanza.iter().map(|line| setting(line));
                let settings = settings.map(|(key, value)| (key, value.to_owned()));
                pin_of(&settings.collect::<Vec<_>>())
            });
        (pins.collect(), kept.whole)
    })
}

/// The pin of a stanza, as far as it is about GPU software.
fn pin_of(stanza: &[(String, String)]) -> Option<Pin> {
    let value = |name: &str| {
        let (_, value) = stanza.iter().find(|(key, _)| key == name)?;
        Some(value.as_str())
    };
    let (packages, pin) = (value("package")?, value("pin")?);
    let priority = value("pin-priority")?.parse().ok()?;
    let ours: Vec<&str> = packages
        .split_whitespace()
        .filter(|name| is_of_interest(name) && *name != "*")
        .collect();
    let packages = match ours.is_empty() {
        true if packages == "*" && names_vendor(pin) => packages.to_owned(),
        false if names_vendor(pin) || !pin.starts_with("origin") => ours.join(" "),
        _ => return None,
    };
    Some(Pin {
        packages,
        pin: pin.to_owned(),
        priority,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;
    use crate::host::archive::Archive;
    use crate::host::machine::Entries;
    use crate::host::redact::Redactor;

    fn ask(tree: &Tree) -> Packages {
        tree.ask(packages).into_got().expect("an answer")
    }

    #[test]
    fn dpkg_has_states_and_several_architectures() {
        let mut tree = Tree::proved();
        tree.file(
            DPKG_STATUS,
            "Package: libc6\nStatus: install ok installed\nVersion: 2.39\n\n\
             Package: libcuda1\nStatus: hold ok installed\nArchitecture: amd64\nMulti-Arch: same\nVersion: 535.1-1\n\
             Description: x\n Status: not a field\n\n\
             Package: libcuda1\nStatus: install ok half-configured\nArchitecture: i386\nVersion: 535.1-1\n\n\
             Package: nvidia-smi\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 525.1-1\n\n\
             Package: nvidia-gone\nStatus: purge ok not-installed\nArchitecture: amd64\n",
        );
        let packages = ask(&tree);
        assert_eq!(packages.manager.as_deref(), Some("dpkg"));
        let installed = packages.installed.into_got().expect("packages");
        assert!(installed.whole);
        assert_eq!(
            installed.items.keys().collect::<Vec<_>>(),
            ["libcuda1", "nvidia-smi"]
        );
        let libcuda = &installed.items["libcuda1"];
        let states: Vec<_> = libcuda
            .iter()
            .map(|one| (one.architecture.as_deref(), one.state.as_str(), one.held))
            .collect();
        assert_eq!(
            states,
            [
                (Some("amd64"), "installed", true),
                (Some("i386"), "half-configured", false)
            ]
        );
        assert_eq!(installed.items["nvidia-smi"][0].state, "config-files");
    }

    #[test]
    fn stanzas_in_files_of_their_own() {
        let mut tree = Tree::proved();
        tree.file(
            "/var/lib/dpkg/status.d/cuda-cudart-12-4",
            "Package: cuda-cudart-12-4\nVersion: 12.4.127-1\nArchitecture: amd64\n",
        );
        tree.file("/var/lib/dpkg/status.d/cuda-cudart-12-4.md5sums", "0 usr\n");
        let installed = ask(&tree).installed.into_got().expect("packages");
        assert!(installed.whole);
        let package = &installed.items["cuda-cudart-12-4"][0];
        assert_eq!(
            (package.version.as_str(), package.state.as_str()),
            ("12.4.127-1", "installed")
        );
    }

    #[test]
    fn pacman_keeps_folders() {
        let mut tree = Tree::proved();
        for name in ["nvidia-utils-580.95.05-5", "mesa-1:25.2.4-1", "bash-5.3-1"] {
            tree.file(&format!("{PACMAN_FOLDER}/{name}/desc"), "");
        }
        tree.file(&format!("{PACMAN_FOLDER}/ALPM_DB_VERSION"), "9\n");
        tree.file(
            "/etc/pacman.conf",
            "[options]\nIgnorePkg = linux nvidia-utils # x\n#IgnorePkg = mesa\n",
        );
        let packages = ask(&tree);
        assert_eq!(packages.manager.as_deref(), Some("pacman"));
        let installed = packages.installed.into_got().expect("packages").items;
        let seen: Vec<_> = installed
            .iter()
            .map(|(name, one)| (name.as_str(), one[0].version.as_str(), one[0].held))
            .collect();
        assert_eq!(
            seen,
            [
                ("mesa", "1:25.2.4-1", false),
                ("nvidia-utils", "580.95.05-5", true)
            ]
        );
    }

    #[test]
    fn names_of_rpm_packages_end_where_the_version_begins() {
        for (line, name, version, architecture) in [
            (
                "kmod-nvidia-6.17.8-200.fc42.x86_64-580.119.02-1.fc42.x86_64",
                "kmod-nvidia-6.17.8-200.fc42.x86_64",
                "580.119.02-1.fc42",
                "x86_64",
            ),
            (
                "kernel-6.17.8-200.fc42.x86_64",
                "kernel",
                "6.17.8-200.fc42",
                "x86_64",
            ),
            (
                "linux-firmware-20250808-1.fc42.noarch",
                "linux-firmware",
                "20250808-1.fc42",
                "noarch",
            ),
        ] {
            let (found, package) = rpm_package(line).expect(line);
            assert_eq!((found, package.version.as_str()), (name, version));
            assert_eq!(package.architecture.as_deref(), Some(architecture));
        }
        for other in [
            "",
            "kernel",
            "kernel.x86_64",
            "gpg-pubkey-105ef944-65ca83d1",
            "bash-5.2-1.x86_64",
        ] {
            assert!(rpm_package(other).is_none(), "{other}");
        }
    }

    #[test]
    fn an_empty_database_of_another_manager_does_not_hide_the_right_one() {
        let mut tree = Tree::proved();
        tree.file(DPKG_STATUS, "");
        tree.file(&format!("{PACMAN_FOLDER}/linux-6.17.5.arch1-1/desc"), "");
        assert_eq!(ask(&tree).manager.as_deref(), Some("pacman"));
        // rpm cannot be asked here.
        let mut tree = Tree::proved();
        tree.file(DPKG_STATUS, "");
        tree.file("/var/lib/rpm/rpmdb.sqlite", "");
        let packages = ask(&tree);
        assert!(packages.manager.is_none() && packages.installed.is_unknown());
        // Nor where it is not installed: its database is there all the same.
        tree.runs_without_programs();
        let packages = ask(&tree);
        assert!(packages.manager.is_none() && packages.installed.is_unknown());
        let nothing = ask(&Tree::proved());
        assert!(nothing.installed.is_absent() && nothing.repositories.whole);
        let unknown = ask(&Tree::default());
        assert!(unknown.installed.is_unknown() && !unknown.repositories.whole);
    }

    #[test]
    fn repositories_of_vendors_without_logins() {
        let mut tree = Tree::proved();
        tree.file(
            "/etc/apt/sources.list",
            "deb http://mirror.corp.example/debian bookworm main\n# deb https://repo.radeon.com/old x\n",
        );
        tree.file(
            "/etc/apt/sources.list.d/rocm.list",
            "deb [arch=amd64 signed-by=/etc/apt/keyrings/rocm.gpg] https://me:secret@repo.radeon.com/rocm/apt/6.4/ noble main\n\
             deb https://apt.corp.example/rocm.d noble main\n",
        );
        tree.file(
            "/etc/apt/sources.list.d/cuda.sources",
            "Types: deb\nURIs: file:///var/cuda-repo-ubuntu2404-12-8-local https://mirror.corp.example/x\nSuites: /\nEnabled: no\n\n\
             Types: deb\nURIs: https://archive.corp.example\nSuites: noble\n",
        );
        tree.file(
            "/etc/yum.repos.d/all.repo",
            "[corp]\nbaseurl=https://corp.example/x\nenabled=0\n[cuda-rhel9]\nname=cuda\nenabled=0\nbaseurl = https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64\n\
             [x]\nmetalink=https://mirrors.rpmfusion.org/metalink?repo=nonfree-fedora-42&arch=x86_64\n[other]\nenabled=0\n",
        );
        let (host, _) = tree.host(crate::host::Options::default());
        let host = host.recording();
        let seen = packages(&host).into_got().expect("an answer").repositories;
        assert!(seen.whole);
        let rows: Vec<_> = seen
            .items
            .values()
            .flatten()
            .map(|one| (one.url.as_str(), one.suite.as_deref(), one.enabled))
            .collect();
        assert_eq!(
            rows,
            [
                (
                    "file:/var/cuda-repo-ubuntu2404-12-8-local",
                    Some("/"),
                    false
                ),
                ("repo.radeon.com/rocm/apt/6.4", Some("noble"), true),
                ("apt.corp.example/rocm.d", Some("noble"), true),
                (
                    "developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64",
                    None,
                    false
                ),
                (
                    "mirrors.rpmfusion.org/metalink?repo=nonfree-fedora-42",
                    None,
                    true
                ),
            ]
        );
        let recorded: String = host
            .take_entries()
            .iter()
            .map(|entry| format!("{entry}\n"))
            .collect();
        for private in [
            "archive.corp",
            "debian.org",
            "[corp]",
            "corp.example/x\n| enabled",
        ] {
            assert!(!recorded.contains(private), "{private} in\n{recorded}");
        }
    }

    /// What a machine gives, as facts and as a recording; the recording says the same when it is replayed.
    fn recorded(tree: &Tree) -> (Packages, String) {
        let (host, _) = tree.host(crate::host::Options::default());
        let host = host.recording();
        let seen = packages(&host).into_got().expect("an answer");
        let entries = host.take_entries();
        let recorded: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        let entries =
            Entries::parse(format!("gpucheck-machine 1\n{recorded}").leak()).expect("a machine");
        let replay = Host::new(
            Box::new(Archive::new(entries)),
            Redactor::off(),
            crate::host::Options::default(),
        );
        assert_eq!(packages(&replay).into_got().as_ref(), Some(&seen));
        (seen, recorded)
    }

    #[test]
    fn nothing_but_where_a_vendors_repository_is_leaves_the_door() {
        let mut tree = Tree::proved();
        tree.file(
            "/etc/apt/sources.list",
            "deb [signed-by=/k trusted=SECRET] https://me:SE/SECRET@repo.radeon.com/rocm?token=SECRET noble main # SECRET\n\
             deb https://SECRET.example/x noble main # nvidia\n\
             debugging SECRET nvidia\n\
             deb-src https://developer.download.nvidia.com/x?sig=SECRET&auth=SECRET /\n",
        );
        tree.file(
            "/etc/apt/sources.list.d/a.sources",
            "# nvidia SECRET\nTypes: deb\nSuites: SECRET\nURIs: https://SECRET.example\n\n\
             Suites: noble\nTypes: deb\nURIs: https://SECRET.example/x\n https://u:SECRET@repo.radeon.com/amdgpu https://SECRET\nEnabled: no\nSigned-By: SECRET\n",
        );
        tree.file(
            "/etc/yum.repos.d/a.repo",
            "[nvidia-SECRET]\nname=SECRET\nenabled=0\nbaseurl=https://SECRET/x https://SECRET:SECRET@repo.radeon.com/yum\npassword=SECRET\n\
             [cuda-SECRET]\nenabled=1\nbaseurl=https://nvidia:SECRET@corp.example/?nvidia\n",
        );
        tree.file(
            "/etc/apt/preferences.d/a",
            "Package: SECRET nvidia-driver-580\nPin: version 580*\nPin-Priority: 1001\n\nPackage: SECRET\nPin: release o=SECRET\nPin-Priority: 5\n",
        );
        tree.file(
            "/etc/pacman.conf",
            "IgnorePkg = SECRET nvidia-utils # SECRET\nIgnorePkg = SECRET\n",
        );
        for name in ["nvidia-utils-580.95.05-5", "SECRET-1-1"] {
            tree.file(&format!("{PACMAN_FOLDER}/{name}/desc"), "");
        }
        let (seen, recorded) = recorded(&tree);
        assert!(!recorded.contains("SECRET"), "{recorded}");
        let rows: Vec<_> = seen
            .repositories
            .items
            .values()
            .flatten()
            .map(|one| (one.url.as_str(), one.suite.as_deref(), one.enabled))
            .collect();
        assert_eq!(
            rows,
            [
                ("repo.radeon.com/rocm", Some("noble"), true),
                ("developer.download.nvidia.com/x", Some("/"), true),
                ("repo.radeon.com/amdgpu", Some("noble"), false),
                ("repo.radeon.com/yum", None, false),
            ]
        );
        let pins = &seen.pins.items["/etc/apt/preferences.d/a"];
        assert_eq!(
            (pins.len(), pins[0].packages.as_str()),
            (1, "nvidia-driver-580")
        );
        let installed = seen.installed.into_got().expect("packages");
        assert!(installed.whole && installed.items["nvidia-utils"][0].held);
    }

    #[test]
    fn priorities_of_vendors() {
        let mut tree = Tree::proved();
        tree.file(
            "/etc/apt/preferences.d/rocm-pin-600",
            "Package: *\nPin: release o=repo.radeon.com\nPin-Priority: 600\n\n\
             Package: nvidia-driver-580 libnvidia-*\nPin: version 580*\nPin-Priority: 1001\n",
        );
        tree.file(
            "/etc/apt/preferences.d/corp",
            "Package: *\nPin: origin apt.corp.example\nPin-Priority: 900\n",
        );
        let pins = ask(&tree).pins;
        assert!(pins.whole);
        let rows: Vec<_> = pins.items["/etc/apt/preferences.d/rocm-pin-600"]
            .iter()
            .map(|pin| (pin.packages.as_str(), pin.pin.as_str(), pin.priority))
            .collect();
        assert_eq!(
            rows,
            [
                ("*", "release o=repo.radeon.com", 600),
                ("nvidia-driver-580 libnvidia-*", "version 580*", 1001)
            ]
        );
        assert_eq!(pins.items.len(), 1);
    }

    #[test]
    fn addresses_without_logins() {
        for (url, seen) in [
            (
                "https://a:b@repo.radeon.com/x/?token=1",
                "repo.radeon.com/x",
            ),
            ("http://repo.radeon.com", "repo.radeon.com"),
            ("file:/var/nvidia", "file:/var/nvidia"),
            ("file:///var/nvidia/", "file:/var/nvidia"),
            (
                "https://me:pa/ss@wo@repo.radeon.com:8443/x",
                "repo.radeon.com:8443/x",
            ),
            (
                "https://repo.radeon.com/x?sig=a&auth=b&token=c#nvidia",
                "repo.radeon.com/x",
            ),
            (
                "https://x/list?a=b&repo=nvidia&token=c",
                "x/list?repo=nvidia",
            ),
            ("VENDOR/rocm/apt/7.2", "VENDOR/rocm/apt/7.2"),
            ("@", ""),
            ("", ""),
        ] {
            assert_eq!(Address::of(url).shown(), seen, "{url}");
            assert_eq!(
                Address::of(&Address::of(url).to_string()).shown(),
                seen,
                "{url}"
            );
        }
    }
}
