//! Takes private values out of answers before anyone parses them.
//!
//! - Ids (UUIDs of GPUs, disks and boots, ids of AMD GPUs), hardware addresses, logins in URLs and long secrets are known by
//!   their form, in any text. `ids.rs` says how their placeholders are made.
//! - Names of users and hosts are replaced only in fields that hold them, because users are called `ubuntu`, `nvidia` or
//!   `render`: rows of passwd and group, `HOME`, `USER`, parameters of the kernel's command line, and the like. Folders of
//!   paths are such fields in any text: homes always, others where the name means nothing else.
//!   The asking user is `USER`; others are `USER-` and four hex digits.
//! - Placeholders are never replaced again, so a recorded machine can be recorded once more.
//!
//! What a probe gets as a path it may ask for: `Redactor::asked` turns `/home/USER` back.

mod ids;
mod scan;

use super::{PASSWD_LIMIT, Source};
use crate::facts::Seen;
use crate::facts::environment::ProcessUser;
use crate::facts::module_files::ModInfo;
use crate::facts::software::{PRIVATE_LIBRARIES, is_file_of};
use ids::Salt;
use scan::{REDACTED, is_secret, rewrite, run, starts_word, without_addresses};
use serde_json::Value;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};

#[cfg(test)]
mod tests;

/// Stands for the asking user's name.
const USER: &str = "USER";
/// Stands for the name of the host.
const HOST: &str = "HOST";
/// First uid of a person, and the one that belongs to nobody.
const FIRST_PERSON: u32 = 1000;
const NOBODY: u32 = 65_534;
/// So often a text is redacted at most.
const MOST_ROUNDS: usize = 4;
/// So many pairs of quotation marks around one another are looked into; real files have two.
const MOST_QUOTES: usize = 8;
/// Accounts of services, also where no row of passwd says so (systemd makes some up as they start).
const SERVICES: [&str; 10] = [
    "root",
    "nobody",
    "ollama",
    "nvidia-persistenced",
    "gdm",
    "sddm",
    "lightdm",
    "jellyfin",
    "plex",
    "www-data",
];
/// Folders whose subfolders are named after people.
const HOMES: [&str; 4] = ["/home/", "/Users/", "/users/", "/run/media/"];
/// Where removable disks appear, on some systems below the name of their user.
const MEDIA: &str = "/media/";
/// Stands for the name of the host with its domain.
const HOST_AND_DOMAIN: &str = "HOST.DOMAIN";
/// Folders of the system, in which no folder is named after a person.
const SYSTEM_FOLDERS: [&str; 14] = [
    "/bin/",
    "/boot/",
    "/dev/",
    "/etc/",
    "/lib/",
    "/lib64/",
    "/nix/",
    "/proc/",
    "/run/",
    "/sbin/",
    "/sys/",
    "/usr/",
    "/var/cache/",
    "/var/lib/",
];
/// Longest path that the kernel takes, in bytes.
const LONGEST_PATH: usize = 4096;
/// And those among them where one may be.
const PEOPLES_FOLDERS: [&str; 3] = ["/run/media/", "/run/user/", "/usr/local/"];
/// Parameters of the kernel's command line that describe the network; what they hold is of no use here.
const NETWORK_PARAMETERS: [&str; 12] = [
    "ip",
    "nfsroot",
    "nfsaddrs",
    "netroot",
    "ifname",
    "nameserver",
    "bootif",
    "netconsole",
    "vlan",
    "bond",
    "team",
    "bridge",
];
/// Values of those that say nothing of a network.
const NETWORK_WORDS: [&str; 14] = [
    "dhcp",
    "dhcp6",
    "auto6",
    "either6",
    "on",
    "any",
    "off",
    "none",
    "ibft",
    "link6",
    "link-local",
    "single-dhcp",
    "both",
    "bootp",
];
/// Parameters that may hold a name which the installer made from the host's.
const VOLUME_PARAMETERS: [&str; 8] = [
    "root",
    "resume",
    "rd.lvm.lv",
    "rd.lvm.vg",
    "cryptdevice",
    "rd.luks.name",
    "zfs",
    "swap",
];
/// Names that people give to users and hosts, and that mean something else wherever they stand.
const COMMON_WORDS: &str = " root user admin administrator ubuntu debian fedora arch linux centos rocky alma almalinux suse \
    opensuse redhat rhel nixos nix pop mint manjaro gentoo void alpine steam steamos deck raspberrypi jetson nvidia tegra amd \
    amdgpu radeon intel xe i915 nouveau cuda rocm hip opencl vulkan gpu gpus render video audio input kvm docker podman conda \
    mamba anaconda miniconda miniconda3 miniforge3 python python3 torch pytorch tensorflow jax ollama home data work dev test \
    tests guest live build buildd runner jenkins node host localhost server desktop laptop workstation lab tmp var usr opt etc \
    srv mnt media run lib lib64 libexec bin sbin share local src include cache config venv env envs site-packages targets \
    stubs compat boot sys proc modules firmware kernel drivers driver mapper disk vda sda nvme default none kfd dxg dri accel \
    uvm modeset caps overlay ";

/// Private values of a machine, as far as they must be known to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Private {
    /// Name of the asking user; behind sudo, of the calling one. None: unknown, or root.
    pub user: Option<String>,
    /// Name of the host, without its domain.
    pub host: Option<String>,
    /// Home folder of that user, where it is not found by its form.
    pub home: Option<String>,
    /// Names of other people.
    pub people: BTreeSet<String>,
    /// Names of system users; these are no people.
    pub system: BTreeSet<String>,
}

impl Private {
    /// Asks a source. What it does not tell stays unknown.
    pub fn of(source: &dyn Source) -> Private {
        let mut private = Private::default();
        let user = source.user().into_got();
        let uid = user.map(|user| user.sudo_uid.unwrap_or(user.uid));
        let passwd = source.text("/etc/passwd", PASSWD_LIMIT).into_got();
        for row in passwd.iter().flat_map(|(text, _)| text.lines()) {
            let Some(row) = PasswdRow::of(row) else {
                continue;
            };
            if uid.is_some() && row.uid == uid && row.uid != Some(0) {
                private.user = Some(row.name.to_owned());
                private.home = Some(row.home.to_owned());
            } else if row.is_person() {
                private.people.insert(row.name.to_owned());
            } else {
                private.system.insert(row.name.to_owned());
            }
        }
        if private.user.is_none() && uid.is_some_and(|uid| uid >= FIRST_PERSON) {
            private.user = ["USER", "LOGNAME"]
                .iter()
                .find_map(|name| source.env(name).into_got());
            private.home = source.env("HOME").into_got();
        }
        private.host = ["/proc/sys/kernel/hostname", "/etc/hostname"]
            .iter()
            .find_map(|path| {
                let (text, _) = source.text(path, 300).into_got()?;
                let name = text.trim().split('.').next()?.to_owned();
                (!name.is_empty()).then_some(name)
            });
        private.user = private
            .user
            .filter(|name| !name.is_empty() && name != "root");
        private
    }
}

/// A salt that is the same for every look at one machine, so that two reports of it can be compared, and that nobody can
/// guess who does not have its machine id. Where there is none, a new one each time: hand it to every process that has a
/// part in one report.
pub fn salt(source: &dyn Source) -> u64 {
    match source.text("/etc/machine-id", 100) {
        Seen::Got((id, _)) if id.trim().len() >= 32 => {
            Salt(0).hash("machine", id.trim().as_bytes())
        }
        _ => RandomState::new().hash_one(0),
    }
}

/// Takes private values out.
pub struct Redactor {
    on: Option<Knowledge>,
}

struct Knowledge {
    salt: Salt,
    private: Private,
    /// Real names of the people whose placeholders were handed out.
    met: RefCell<BTreeMap<String, String>>,
}

impl Redactor {
    /// Hands everything through: `--keep-private`, and machines that were redacted when they were recorded.
    pub fn off() -> Redactor {
        Redactor { on: None }
    }

    /// Redacts. Two redactors with the same salt and the same knowledge answer the same.
    pub fn on(salt: u64, private: Private) -> Redactor {
        Redactor {
            on: Some(Knowledge {
                salt: Salt(salt),
                private,
                met: RefCell::default(),
            }),
        }
    }

    /// The text of a file, or one line of it.
    pub fn text(&self, path: &str, text: &str) -> String {
        self.change(text, |known, text| known.file(path, text))
    }

    /// A path that is itself an answer: home folders.
    pub fn path(&self, path: &str) -> String {
        self.change(path, |known, path| known.path(path))
    }

    /// Names in a folder.
    pub fn names(&self, folder: &str, names: Vec<String>) -> Vec<String> {
        match &self.on {
            Some(known) => known.names(folder, names),
            None => names,
        }
    }

    /// The value of a variable.
    pub fn variable(&self, name: &str, value: &str) -> String {
        self.change(value, |known, value| known.variable(name, value))
    }

    /// The name of a user: `USER`, another placeholder, or the name of a system user.
    pub fn name(&self, name: &str) -> String {
        self.change(name, |known, name| known.person(name))
    }

    /// Who asks.
    pub fn user(&self, mut user: ProcessUser) -> ProcessUser {
        user.name = user.name.map(|name| self.name(&name));
        user
    }

    /// What a module file says. The signer of a module that was built here is often named after the host.
    pub fn modinfo(&self, mut info: ModInfo) -> ModInfo {
        info.signer = info
            .signer
            .map(|signer| self.change(&signer, |known, signer| known.signer(signer)));
        info
    }

    /// The answer of a library.
    pub fn answer(&self, answer: Value) -> Value {
        match &self.on {
            Some(known) => known.json(None, answer),
            None => answer,
        }
    }

    /// Something is taken out.
    pub fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// The real path behind one that was handed out.
    pub fn asked<'path>(&self, path: &'path str) -> Cow<'path, str> {
        match &self.on {
            Some(known) if path.contains(USER) || path.contains(HOST) => {
                Cow::Owned(known.asked(path))
            }
            _ => Cow::Borrowed(path),
        }
    }

    /// Redacts until nothing changes any more: a placeholder may be longer than its value and so complete something that
    /// looks like a secret.
    fn change(&self, value: &str, change: impl Fn(&Knowledge, &str) -> String) -> String {
        let mut value = value.to_owned();
        let Some(known) = &self.on else {
            return value;
        };
        for _ in 0..MOST_ROUNDS {
            let next = change(known, &value);
            if next == value {
                break;
            }
            value = next;
        }
        value
    }
}

/// A row of `/etc/passwd`.
struct PasswdRow<'row> {
    name: &'row str,
    /// None: no number.
    uid: Option<u32>,
    gid: &'row str,
    home: &'row str,
    shell: &'row str,
}

impl<'row> PasswdRow<'row> {
    fn of(row: &'row str) -> Option<PasswdRow<'row>> {
        match row.trim_end().split(':').collect::<Vec<_>>()[..] {
            [name, _, uid, gid, _, home, shell] => Some(PasswdRow {
                name,
                uid: uid.parse().ok(),
                gid,
                home,
                shell,
            }),
            _ => None,
        }
    }

    fn is_person(&self) -> bool {
        self.uid
            .is_none_or(|uid| uid >= FIRST_PERSON && uid != NOBODY)
    }
}

impl Knowledge {
    /// What a file holds decides what may be private in it.
    fn file(&self, path: &str, text: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or(path);
        let in_dmi_or_serial = name.contains("serial") || name.ends_with("asset_tag");
        match name {
            "passwd" => each_line(text, |line| self.passwd_row(line)),
            "group" => each_line(text, |line| self.group_row(line)),
            "subuid" | "subgid" => each_line(text, |line| self.first_field(line)),
            "hostname" => each_line(text, |_| HOST.to_owned()),
            "wsl.conf" => each_line(text, |line| self.wsl_line(line)),
            "mountinfo" => each_line(text, |line| self.mount(line)),
            "unique_id" | "xgmi_hive_id" | "xgmi_device_id" => {
                each_line(text, |line| self.amd_value(name, line))
            }
            "properties" => each_line(text, |line| self.kfd_property(line)),
            "boot_id" | "machine-id" | "product_uuid" => each_line(text, |line| self.uuid_or(line)),
            "cpuinfo" => each_line(text, |line| self.cpuinfo_line(line)),
            "cgroup" => each_line(text, |line| {
                self.any_text(&scan::without_container_ids(line))
            }),
            "kmsg" => each_line(text, |line| self.kernel_message(line)),
            _ if in_dmi_or_serial => each_line(text, |line| self.serial(line)),
            // What people note down for themselves.
            _ if path.contains("/modprobe.d/") => each_line(text, |line| match line.trim_start() {
                comment if comment.starts_with('#') && line.ends_with('\\') => "#\\".to_owned(),
                comment if comment.starts_with('#') => "#".to_owned(),
                _ => self.any_text(line),
            }),
            _ if is_command_line(path) => each_line(text, |line| self.parameters(line)),
            _ if path.contains("/systemd/") => each_line(text, |line| self.unit_line(line)),
            _ => self.any_text(text),
        }
    }

    /// What is known by its form, wherever it stands.
    fn any_text(&self, text: &str) -> String {
        let text = self.without_odd_home(text);
        rewrite(&text, |text, at| {
            match text.as_bytes()[at] {
                b'(' => return scan::builder_at(text, at),
                b':' => return scan::login_at(text, at),
                b'/' => return self.folder_at(text, at),
                b'~' => return self.tilde_at(text, at),
                _ if !starts_word(text, at) => return None,
                _ => {}
            }
            if let Some(uuid) = scan::uuid_at(text, at) {
                return Some((uuid.len(), self.salt.uuid(uuid)?));
            }
            if let Some(id) = text[at..]
                .strip_prefix("GPU-")
                .and_then(|_| scan::hex_at(text, at + 4, 16))
                && text.as_bytes().get(at + 20) != Some(&b'-')
            {
                return Some((20, format!("GPU-{}", self.salt.amd_hex(id)?)));
            }
            scan::mac_at(text, at)
                .or_else(|| scan::adapter_at(text, at))
                .or_else(|| scan::known_token_at(text, at))
                .or_else(|| scan::long_secret_at(text, at))
        })
    }

    /// A path, in which nothing but folders of people is private.
    fn path(&self, path: &str) -> String {
        let path = self.without_odd_home(path);
        rewrite(&path, |text, at| {
            self.tilde_at(text, at).or_else(|| self.folder_at(text, at))
        })
    }

    /// `~NAME` of a shell, where a word begins.
    fn tilde_at(&self, text: &str, at: usize) -> Option<(usize, String)> {
        let name = text[at..].strip_prefix('~')?;
        let begins = at == 0 || ends_folder(text.as_bytes()[at - 1]);
        let length = run(name, 0, |byte| byte != b'/' && !ends_folder(byte));
        let name = &name[..length];
        let is_name = name.starts_with(|first: char| first.is_alphanumeric());
        (begins && is_name).then(|| (1 + length, format!("~{}", self.person(name))))
    }

    /// A folder that is named after a person, at this place: of homes, or any other with a name that means nothing else
    /// (`/scratch/NAME/env`).
    fn folder_at(&self, text: &str, at: usize) -> Option<(usize, String)> {
        self.home_at(text, at)
            .or_else(|| self.own_folder_at(text, at))
            .or_else(|| self.other_folder_at(text, at))
            .or_else(|| self.host_folder_at(text, at))
    }

    /// The host's name as a whole part of a path, with its domain or without.
    fn host_folder_at(&self, text: &str, at: usize) -> Option<(usize, String)> {
        let host = self
            .private
            .host
            .as_deref()
            .filter(|host| is_telling(host))?;
        let rest = text[at..].strip_prefix('/')?.strip_prefix(host)?;
        let domain = match rest.as_bytes().first() {
            Some(b'.') => run(rest, 0, |byte| byte != b'/' && !ends_folder(byte)),
            _ => 0,
        };
        let ends = rest[domain..].bytes().next().is_none_or(ends_folder);
        if !ends || is_of_the_system(text, at) {
            return None;
        }
        let placeholder = if domain == 0 { HOST } else { HOST_AND_DOMAIN };
        let name = format!("{host}{}", &rest[..domain]);
        let length = 1 + name.len();
        self.met.borrow_mut().insert(placeholder.to_owned(), name);
        Some((length, format!("/{placeholder}")))
    }

    /// The asking user's name as a whole part of a path.
    fn own_folder_at(&self, text: &str, at: usize) -> Option<(usize, String)> {
        let user = self
            .private
            .user
            .as_deref()
            .filter(|user| is_telling(user))?;
        let rest = text[at..].strip_prefix('/')?.strip_prefix(user)?;
        let ends = rest.bytes().next().is_none_or(ends_folder);
        ends.then(|| (1 + user.len(), format!("/{USER}")))
    }

    /// The name of another person as a whole part of a path. Not in the system's own folders, where it is the name of
    /// something else by chance.
    fn other_folder_at(&self, text: &str, at: usize) -> Option<(usize, String)> {
        if self.private.people.is_empty() || !text[at..].starts_with('/') {
            return None;
        }
        let length = run(text, at + 1, |byte| byte != b'/' && !ends_folder(byte));
        let name = &text[at + 1..at + 1 + length];
        if !self.private.people.contains(name) || !is_telling(name) {
            return None;
        }
        (!is_of_the_system(text, at)).then(|| (1 + length, format!("/{}", self.person(name))))
    }

    /// A home folder that does not stand in one of the usual places.
    fn without_odd_home(&self, text: &str) -> String {
        let Some(home) = self.odd_home() else {
            return text.to_owned();
        };
        rewrite(text, |text, at| {
            let rest = text[at..].strip_prefix(home)?;
            let begins = at == 0 || !text.as_bytes()[at - 1].is_ascii_alphanumeric();
            let ends = rest
                .bytes()
                .next()
                .is_none_or(|next| !next.is_ascii_alphanumeric() && !b"._-".contains(&next));
            (begins && ends).then(|| (home.len(), format!("/home/{USER}")))
        })
    }

    fn odd_home(&self) -> Option<&str> {
        const OF_THE_SYSTEM: [&str; 9] = [
            "/var/lib",
            "/var/cache",
            "/var/run",
            "/usr",
            "/opt",
            "/run",
            "/etc",
            "/nonexistent",
            "/root",
        ];
        let home = self.private.home.as_deref()?.trim_end_matches('/');
        // The form of a name ends at a blank.
        let usual = HOMES.iter().any(|homes| home.contains(homes)) && !home.contains(' ');
        let system = OF_THE_SYSTEM.iter().any(|folder| home.starts_with(folder));
        (home.matches('/').count() >= 2 && !usual && !system).then_some(home)
    }

    /// `/home/NAME` at this place.
    fn home_at(&self, text: &str, at: usize) -> Option<(usize, String)> {
        let rest = &text[at..];
        if let Some(homes) = HOMES.iter().find(|homes| rest.starts_with(**homes)) {
            let name = name_of_folder(rest, homes);
            let real = name
                .bytes()
                .next()
                .is_some_and(|first| first.is_ascii_alphanumeric() || first >= 0x80);
            return (real && name != "linuxbrew").then(|| {
                (
                    homes.len() + name.len(),
                    format!("{homes}{}", self.person(name)),
                )
            });
        }
        let name = rest
            .starts_with(MEDIA)
            .then(|| name_of_folder(rest, MEDIA))?;
        // A disk's own folder has no name of a user, and what is on it is not looked at here as a rule.
        let holds_disks = rest[MEDIA.len() + name.len()..].starts_with('/') && !name.is_empty();
        (holds_disks || self.is_known_person(name)).then(|| {
            (
                MEDIA.len() + name.len(),
                format!("{MEDIA}{}", self.person(name)),
            )
        })
    }

    fn is_known_person(&self, name: &str) -> bool {
        self.private.user.as_deref() == Some(name) || self.private.people.contains(name)
    }

    /// The placeholder for a name.
    fn person(&self, name: &str) -> String {
        if self.private.user.as_deref() == Some(name) {
            return USER.to_owned();
        }
        let number = name.bytes().all(|byte| byte.is_ascii_digit());
        let of_the_system = self.private.system.contains(name)
            || SERVICES.contains(&name) && !self.private.people.contains(name);
        if number || of_the_system || is_placeholder(name) {
            return name.to_owned();
        }
        let placeholder = format!(
            "{USER}-{:04x}",
            self.salt.hash("person", name.as_bytes()) & 0xffff
        );
        self.met
            .borrow_mut()
            .insert(placeholder.clone(), name.to_owned());
        placeholder
    }

    fn asked(&self, path: &str) -> String {
        let below_home = path
            .strip_prefix("/home/USER")
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        if let (Some(home), Some(rest)) = (self.odd_home(), below_home) {
            return format!("{home}{rest}");
        }
        let met = self.met.borrow();
        let parts = path.split('/').map(|part| match &self.private.user {
            Some(user) if part == USER => user,
            _ => met.get(part).map_or(part, String::as_str),
        });
        parts.collect::<Vec<_>>().join("/")
    }

    fn names(&self, folder: &str, mut names: Vec<String>) -> Vec<String> {
        let folder = format!("{}/", folder.trim_end_matches('/'));
        let of_homes = HOMES.iter().any(|homes| folder.ends_with(homes));
        for name in &mut names {
            let of_a_person = match folder.as_str() {
                _ if of_homes => name != "linuxbrew" && !name.starts_with('.'),
                MEDIA => self.is_known_person(name),
                "/opt/" | "/usr/local/" => self.is_known_person(name) && is_telling(name),
                _ => false,
            };
            if of_a_person {
                *name = self.person(name);
            } else if folder == "/dev/" {
                *name = self.without_host(name);
            }
        }
        names.sort_unstable();
        names
    }

    fn variable(&self, name: &str, value: &str) -> String {
        match name {
            "USER" | "LOGNAME" | "USERNAME" | "SUDO_USER" | "DOAS_USER" => {
                return self.person(value);
            }
            "HOST" | "HOSTNAME" if !value.is_empty() => return HOST.to_owned(),
            _ if value.is_empty() => return String::new(),
            "LD_PRELOAD" => return self.any_text(&of_drivers(value)),
            _ if is_secret(name) || name.ends_with("_HOST") || name.starts_with("SSH_") => {
                return REDACTED.to_owned();
            }
            _ => {}
        }
        if name.contains("VISIBLE_DEVICES") || name.ends_with("DEVICE_ORDINAL") {
            let devices = value.split(',').map(|device| self.device(name, device));
            return devices.collect::<Vec<_>>().join(",");
        }
        let value = self.any_text(value);
        let of_the_network = [
            "ADDR", "HOST", "PROXY", "proxy", "DISPLAY", "URL", "ENDPOINT",
        ];
        if of_the_network.iter().any(|part| name.contains(part)) {
            return without_addresses(&value);
        }
        value
    }

    /// An entry of `CUDA_VISIBLE_DEVICES` and the like. A UUID may be abbreviated there.
    fn device(&self, variable: &str, device: &str) -> String {
        let trimmed = device.trim();
        let id_at = trimmed
            .find("GPU-")
            .or_else(|| trimmed.find("MIG-"))
            .map_or(0, |kind| kind + "GPU-".len());
        let id_length = run(trimmed, id_at, |byte| {
            byte.is_ascii_hexdigit() || byte == b'-'
        });
        let id = &trimmed[id_at..id_at + id_length];
        if id_at == 0 && id_length != 36 {
            return self.any_text(device);
        }
        let of_amd = !id.contains('-')
            && (id.len() == 16
                || variable.starts_with("ROCR_")
                || variable.starts_with("HIP_")
                || variable.starts_with("AMD_"));
        let placeholder = if of_amd {
            self.salt.amd_hex(id)
        } else {
            self.salt.uuid(id)
        };
        match placeholder {
            Some(placeholder) => device.replace(id, &placeholder),
            None => self.any_text(device),
        }
    }

    /// A line of kernel parameters, or of a file that holds some.
    fn parameters(&self, line: &str) -> String {
        self.quoted_parameters(line, 0)
    }

    /// The same inside of so many pairs of quotation marks.
    fn quoted_parameters(&self, line: &str, quotes: usize) -> String {
        let mut out = String::new();
        let mut rest = line;
        while !rest.is_empty() {
            let blank = run(rest, 0, |byte| byte.is_ascii_whitespace());
            let word = length_of_word(&rest[blank..]);
            out.push_str(&rest[..blank]);
            out.push_str(&self.parameter(&rest[blank..blank + word], quotes));
            rest = &rest[blank + word..];
        }
        out
    }

    fn parameter(&self, word: &str, quotes: usize) -> String {
        let Some((name, value)) = word.split_once('=') else {
            return self.parameter_value("", word, quotes);
        };
        let key = name.trim_start_matches(['"', '\'']).to_ascii_lowercase();
        let short = key.rsplit('.').next().unwrap_or(&key);
        // A quotation mark that was opened in front of the name stays.
        let (value, end) = match value.strip_suffix(['"', '\'']) {
            Some(inner) if inner.len() < value.len() && !inner.starts_with(['"', '\'']) => {
                (inner, &value[inner.len()..])
            }
            _ => (value, ""),
        };
        let instead = if value.is_empty()
            || NETWORK_WORDS.contains(&value) && NETWORK_PARAMETERS.contains(&short)
        {
            value.to_owned()
        } else if NETWORK_PARAMETERS.contains(&short) || key.contains("iscsi") || is_secret(&key) {
            REDACTED.to_owned()
        } else if short == "hostname" {
            HOST.to_owned()
        } else if short == "user" || short == "username" {
            self.person(value)
        } else if short == "setenv"
            && let Some((variable, text)) = value.split_once('=')
        {
            format!("{variable}={}", self.variable(variable, text))
        } else {
            self.parameter_value(&key, value, quotes)
        };
        format!("{name}={instead}{end}")
    }

    fn parameter_value(&self, key: &str, value: &str, quotes: usize) -> String {
        if quotes > MOST_QUOTES {
            return REDACTED.to_owned();
        }
        // A whole command line in quotation marks, as in /etc/default/grub.
        if let [quote @ (b'"' | b'\''), .., last] = value.as_bytes()
            && quote == last
        {
            let quote = char::from(*quote);
            let inner = self.quoted_parameters(&value[1..value.len() - 1], quotes + 1);
            return format!("{quote}{inner}{quote}");
        }
        if let Some((kind, _)) = value.split_once(':')
            && ["nfs", "nfs4", "iscsi", "nbd", "cifs"].contains(&kind)
        {
            return format!("{kind}:{REDACTED}");
        }
        let value = without_addresses(&self.any_text(value));
        // Boot entries stand in a folder that is named after the machine's id.
        let value = rewrite(&value, |text, at| {
            let id = scan::hex_at(text, at, 32)?;
            Some((id.len(), self.salt.uuid(id)?))
        });
        if VOLUME_PARAMETERS.contains(&key) {
            self.without_host(&value)
        } else {
            value
        }
    }

    /// The host's name in the name of a volume, which installers make from it.
    fn without_host(&self, text: &str) -> String {
        match self.private.host.as_deref().filter(|host| is_telling(host)) {
            Some(host) => {
                // The device mapper doubles dashes in names.
                let text = replace_word(text, &host.replace('-', "--"), HOST);
                replace_word(&text, host, HOST)
            }
            None => text.to_owned(),
        }
    }

    fn passwd_row(&self, line: &str) -> String {
        if line.trim().is_empty() || line.starts_with('#') {
            return line.to_owned();
        }
        let Some(row) = PasswdRow::of(line) else {
            return REDACTED.to_owned();
        };
        let own = self.private.user.as_deref() == Some(row.name);
        let uid = row.uid.map(|uid| uid.to_string()).unwrap_or_default();
        let (name, home) = if row.is_person() || own {
            let name = self.person(row.name);
            let home = format!("/home/{name}");
            (name, home)
        } else {
            (row.name.to_owned(), self.path(row.home))
        };
        format!("{name}:x:{uid}:{}::{home}:{}", row.gid, row.shell)
    }

    fn group_row(&self, line: &str) -> String {
        if line.trim().is_empty() || line.starts_with('#') {
            return line.to_owned();
        }
        let [name, _, gid, members] = line.trim_end().split(':').collect::<Vec<_>>()[..] else {
            return REDACTED.to_owned();
        };
        // The group of one person bears that person's name; a system group may by chance.
        let of_a_person =
            gid.parse::<u32>().is_ok_and(|gid| gid >= FIRST_PERSON) && self.is_known_person(name);
        let name = if of_a_person {
            self.person(name)
        } else {
            name.to_owned()
        };
        let members = members.split(',').map(|member| self.person(member.trim()));
        format!("{name}:x:{gid}:{}", members.collect::<Vec<_>>().join(","))
    }

    fn first_field(&self, line: &str) -> String {
        match line.split_once(':') {
            Some((name, rest)) => format!("{}:{rest}", self.person(name)),
            None => line.to_owned(),
        }
    }

    fn wsl_line(&self, line: &str) -> String {
        match line
            .split_once('=')
            .map(|(key, value)| (key, key.trim().to_ascii_lowercase(), value.trim()))
        {
            Some((key, name, value)) if name == "default" => {
                format!("{key}={}", self.person(value))
            }
            Some((key, name, value)) if name == "hostname" && !value.is_empty() => {
                format!("{key}={HOST}")
            }
            _ => self.any_text(line),
        }
    }

    /// A line of a systemd unit.
    fn unit_line(&self, line: &str) -> String {
        match line.split_once('=') {
            Some(("User", name)) => format!("User={}", self.person(name.trim())),
            Some((key @ ("Group" | "SupplementaryGroups"), names)) => {
                // A person's own group. All others keep their names, so that they can be looked up in `/etc/group`.
                let names = names.split_whitespace().map(|name| {
                    if self.is_known_person(name) && is_telling(name) {
                        self.person(name)
                    } else {
                        name.to_owned()
                    }
                });
                format!("{key}={}", names.collect::<Vec<_>>().join(" "))
            }
            Some(("Environment", value)) => {
                // One assignment in quotation marks, as probes take it out of longer lines.
                let inner = value
                    .strip_prefix('"')
                    .and_then(|rest| rest.strip_suffix('"'));
                match inner.and_then(|inner| inner.split_once('=')) {
                    Some((name, value)) if !value.contains('"') => {
                        format!("Environment=\"{name}={}\"", self.variable(name, value))
                    }
                    _ => format!("Environment={}", self.parameters(value)),
                }
            }
            _ => self.any_text(line),
        }
    }

    /// A line of mountinfo. Its source and last options name servers and accounts where the file system is one of a network.
    fn mount(&self, line: &str) -> String {
        let Some((place, file_system)) = line.split_once(" - ") else {
            return self.any_text(line);
        };
        let place = self.any_text(place);
        match file_system.split(' ').collect::<Vec<_>>()[..] {
            [kind, source, _]
                if source.contains(':') || source.starts_with("//") || source.contains('@') =>
            {
                format!("{place} - {kind} {REDACTED} {REDACTED}")
            }
            [kind, source, options] => {
                let source = self.without_host(&self.any_text(source));
                format!("{place} - {kind} {source} {}", self.any_text(options))
            }
            _ => format!("{place} - {}", self.any_text(file_system)),
        }
    }

    fn amd_value(&self, file: &str, line: &str) -> String {
        let text = line.trim();
        let digits = text.strip_prefix("0x").unwrap_or(text);
        if file == "unique_id" || digits.len() < text.len() {
            return self
                .salt
                .amd_hex(digits)
                .map_or_else(|| line.to_owned(), |id| text.replace(digits, &id));
        }
        text.parse()
            .map_or_else(|_| line.to_owned(), |id| self.salt.amd_id(id).to_string())
    }

    fn kfd_property(&self, line: &str) -> String {
        match line.split_once(' ') {
            Some((name @ ("unique_id" | "hive_id"), value)) => {
                format!("{name} {}", self.amd_value("", value))
            }
            _ => line.to_owned(),
        }
    }

    fn uuid_or(&self, line: &str) -> String {
        self.salt
            .uuid(line.trim())
            .unwrap_or_else(|| self.any_text(line))
    }

    /// A Raspberry Pi tells its serial number there.
    fn cpuinfo_line(&self, line: &str) -> String {
        match line.split_once(':') {
            Some((name, value)) if name.trim() == "Serial" => {
                format!("{name}: {}", self.serial(value.trim()))
            }
            _ => self.any_text(line),
        }
    }

    fn serial(&self, line: &str) -> String {
        let serial = line.trim().trim_matches('\0');
        let says_nothing = serial
            .bytes()
            .all(|byte| !byte.is_ascii_alphanumeric() || byte == b'0')
            || [
                "N/A",
                "None",
                "Not Specified",
                "Unknown",
                "To be filled by O.E.M.",
            ]
            .iter()
            .any(|nothing| serial.eq_ignore_ascii_case(nothing));
        if says_nothing || serial.starts_with("SERIAL-") {
            return line.to_owned();
        }
        format!(
            "SERIAL-{:08x}",
            self.salt.hash("serial", serial.as_bytes()) >> 32
        )
    }

    /// NVIDIA's driver names the board: `GPU serial number is NUMBER.`, `GPU Board Serial Number: NUMBER`.
    fn kernel_message(&self, line: &str) -> String {
        const NAME: &str = "serial number";
        let after_name = line
            .to_ascii_lowercase()
            .find(NAME)
            .map(|at| at + NAME.len());
        let number_at = after_name.and_then(|at| {
            let rest = &line[at..];
            let sign = [" is ", ": "]
                .iter()
                .find(|sign| rest.starts_with(**sign))?;
            Some(at + sign.len())
        });
        match number_at {
            Some(at) => {
                let length = run(line, at, |byte| {
                    byte.is_ascii_alphanumeric() || byte == b'-'
                });
                let (number, rest) = line[at..].split_at(length);
                self.any_text(&line[..at]) + &self.serial(number) + &self.any_text(rest)
            }
            None => self.any_text(line),
        }
    }

    /// dkms and shim name keys `HOST Secure Boot Module Signature key`, akmods `HOST-NUMBER`.
    fn signer(&self, signer: &str) -> String {
        const OF_SHIM: &str = " Secure Boot Module Signature key";
        if let Some(host) = signer.strip_suffix(OF_SHIM)
            && !host.is_empty()
        {
            return format!("{HOST}{OF_SHIM}");
        }
        if let Some((host, number)) = signer.rsplit_once(['-', '_'])
            && !host.contains(' ')
            && number.len() >= 5
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            return format!("{HOST}-00000");
        }
        let signer = self.any_text(signer);
        self.without_host(&signer)
    }

    fn json(&self, key: Option<&str>, value: Value) -> Value {
        let named = |part: &str| key.is_some_and(|key| key.contains(part));
        match value {
            Value::String(text) if named("serial") => self.serial(&text).into(),
            Value::String(text) if named("unique_id") || named("hive_id") => {
                self.amd_value("unique_id", &text).into()
            }
            Value::String(text) if named("uuid") => self.device("", &text).into(),
            Value::String(text) => self.any_text(&text).into(),
            Value::Number(number) if named("unique_id") || named("hive_id") => number
                .as_u64()
                .map_or(Value::Number(number), |id| self.salt.amd_id(id).into()),
            Value::Array(items) => items.into_iter().map(|item| self.json(key, item)).collect(),
            Value::Object(fields) => fields
                .into_iter()
                .map(|(name, item)| {
                    // `{"serial": {"got": ...}}`: how an answer is wrapped says nothing of what it is.
                    let key = if name == "got" {
                        key.map(str::to_owned)
                    } else {
                        Some(name.clone())
                    };
                    (self.any_text(&name), self.json(key.as_deref(), item))
                })
                .collect(),
            other => other,
        }
    }
}

/// What `LD_PRELOAD` has of the libraries of drivers: what else people put there is nobody's business.
fn of_drivers(value: &str) -> String {
    let kept = value.split([':', ' ']).filter(|path| {
        PRIVATE_LIBRARIES
            .iter()
            .any(|library| is_file_of(library, path))
    });
    kept.collect::<Vec<_>>().join(":")
}

/// The rows of the file begin with names of users.
pub fn holds_names(path: &str) -> bool {
    ["/passwd", "/group", "/subuid", "/subgid"]
        .iter()
        .any(|name| path.ends_with(name))
}

/// The file holds kernel parameters.
fn is_command_line(path: &str) -> bool {
    const PLACES: [&str; 5] = [
        "cmdline",
        "/grub",
        "/loader/entries/",
        "/extlinux/",
        "/etc/default/",
    ];
    PLACES.iter().any(|place| path.contains(place))
}

/// Length of a word that may have blanks between quotation marks.
fn length_of_word(text: &str) -> usize {
    let mut quote = None;
    run(text, 0, |byte| {
        match quote {
            Some(open) if open == byte => quote = None,
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            _ => {}
        }
        quote.is_some() || !byte.is_ascii_whitespace()
    })
}

/// The part of a path after such a folder. Windows allows blanks in names.
fn name_of_folder<'text>(text: &'text str, folder: &str) -> &'text str {
    let rest = &text[folder.len()..];
    let ends = |byte: u8| byte.is_ascii_control() || b"/:;,\"'()<>=|&\\".contains(&byte);
    let long = run(rest, 0, |byte| !ends(byte));
    if folder == "/Users/" && rest.as_bytes().get(long) == Some(&b'/') {
        return &rest[..long];
    }
    &rest[..run(rest, 0, |byte| !ends(byte) && byte != b' ')]
}

/// Ends a part of a path that stands in a text, or all of it.
fn ends_folder(byte: u8) -> bool {
    byte.is_ascii_control() || b"/:;,\"'()<>[]{}=|& ".contains(&byte)
}

/// A name that stands for a person or host and nothing else.
fn is_telling(name: &str) -> bool {
    name.len() >= 3
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !is_placeholder(name)
        && !COMMON_WORDS
            .split_whitespace()
            .any(|word| word.eq_ignore_ascii_case(name))
}

/// The part of a path that begins here stands in a folder of the system.
fn is_of_the_system(text: &str, at: usize) -> bool {
    let before = text[..at].bytes().rev().take(LONGEST_PATH);
    let start = at
        - before
            .take_while(|byte| *byte == b'/' || !ends_folder(*byte))
            .count();
    let path = text.get(start..at).unwrap_or_default();
    let path = path.find('/').map_or("", |slash| &path[slash..]);
    let path = format!("{path}/");
    SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder))
        && !PEOPLES_FOLDERS
            .iter()
            .any(|folder| path.starts_with(folder))
}

fn is_placeholder(name: &str) -> bool {
    let other = name.strip_prefix("USER-");
    [USER, HOST, HOST_AND_DOMAIN, REDACTED].contains(&name)
        || other.is_some_and(|digits| {
            digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

fn replace_word(text: &str, word: &str, instead: &str) -> String {
    rewrite(text, |text, at| {
        let rest = text[at..].strip_prefix(word)?;
        let ends = rest
            .bytes()
            .next()
            .is_none_or(|next| !next.is_ascii_alphanumeric());
        (starts_word(text, at) && ends).then(|| (word.len(), instead.to_owned()))
    })
}

/// Changes each line and keeps the line ends.
fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => change(line) + "\n",
            None => change(line),
        })
        .collect()
}
