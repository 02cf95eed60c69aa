//! Fixes are data: a check names a recipe of `data/fixes.toml`; this module picks the row of the distribution at hand.

pub use crate::terms::Risk;

use crate::facts::platform::OsRelease;
use crate::tables::{FAMILIES, FixRow, Tables};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A recipe that a check asks for, with what to put into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixCall {
    /// Name of the recipe.
    pub recipe: &'static str,
    /// Values for `{name}` in its texts. They are quoted for a shell where they stand in a command.
    pub arguments: BTreeMap<&'static str, String>,
}

impl FixCall {
    /// The recipe of that name.
    pub fn new(recipe: &'static str) -> FixCall {
        FixCall {
            recipe,
            arguments: BTreeMap::new(),
        }
    }

    /// Puts a value in for `{name}`.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> FixCall {
        self.arguments.insert(name, value.into());
        self
    }
}

/// A fix for this machine, ready to print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Fix {
    /// What to do, in words.
    pub words: String,
    /// Commands to paste, in order; empty where no source vouches for one.
    pub commands: Vec<String>,
    /// It needs root.
    pub needs_root: bool,
    /// What must follow before it works: `reboot`, `new login`; null: nothing.
    pub after: Option<String>,
    /// What it may cost.
    pub risk: Risk,
    /// How to see that it worked.
    pub confirm: String,
}

/// Where a fix would be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// A machine of its own, or nobody can tell.
    Machine,
    /// Inside a container: drivers and device nodes are the host's matter.
    Container,
    /// Inside WSL: the driver is Windows'.
    Wsl,
}

/// The names that may stand in braces in the texts of `fixes.toml`.
pub const PLACEHOLDERS: [&str; 13] = [
    "address", "branch", "file", "group", "kernel", "line", "module", "name", "point", "tool",
    "user", "version", "word",
];

/// The row of a recipe for these families, first match first, with the arguments put in. None: there is no such recipe, or
/// it has nothing for any of them.
pub fn resolve(call: &FixCall, families: &[String], tables: &Tables) -> Option<Fix> {
    let rows = tables.fixes(call.recipe);
    let row = families
        .iter()
        .map(String::as_str)
        .chain(["any"])
        .find_map(|family| rows.iter().find(|row| row.family == family))?;
    // A command with a gap or with a value that no shell should see is not printed; the words still say what to do.
    let commands = row
        .commands
        .iter()
        .map(|command| put_in(command, |name| quoted(call.arguments.get(name)?)))
        .collect::<Option<Vec<_>>>()
        .unwrap_or_default();
    let in_words = |text: &str| put_in_words(text, call);
    Some(Fix {
        words: in_words(&row.words),
        needs_root: row.needs_root,
        after: row.after.clone(),
        risk: row.risk,
        confirm: in_words(&row.confirm),
        commands,
    })
}

/// Replaces every `{name}` of words for people. What stands in a code span beside other things may be pasted, and is quoted as
/// in a command.
fn put_in_words(text: &str, call: &FixCall) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut in_span = false;
    while let Some((before, name, after)) = next_placeholder(rest) {
        out.push_str(before);
        in_span ^= before.matches('`').count() % 2 == 1;
        let is_alone = before.ends_with('`') && after.starts_with('`');
        let value = call.arguments.get(name);
        let shown = match value {
            Some(value) if in_span && !is_alone => quoted(value).map(|value| printable(&value)),
            value => value.map(|value| printable(value)),
        };
        out.push_str(&shown.unwrap_or_else(|| name.to_uppercase()));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Replaces every `{name}` of a text. None: one of them has no replacement.
fn put_in(text: &str, replace: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = next_placeholder(rest) {
        out.push_str(before);
        out.push_str(&replace(name)?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// The text before the first `{name}`, the name, and the text after it.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    for (open, _) in text.match_indices('{') {
        let (name, after) = text[open + 1..].split_once('}')?;
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Some((&text[..open], name, after));
        }
    }
    None
}

/// Stands for whoever pastes the command: reports do not hold the user's name.
pub const WHO_PASTES: &str = "$USER";

/// A value as one word of a shell. None: it holds control characters, or would be taken for an option.
fn quoted(value: &str) -> Option<String> {
    if value == WHO_PASTES {
        return Some(format!("\"{value}\""));
    }
    if value.starts_with('-') || value.chars().any(char::is_control) {
        return None;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return Some(value.to_owned());
    }
    Some(format!("'{}'", value.replace('\'', r"'\''")))
}

/// A value for people: control characters are written out, and nothing ends the code span around it.
fn printable(value: &str) -> String {
    value
        .chars()
        .map(|c| if c == '`' { '\'' } else { c })
        .flat_map(|c| {
            let escaped: Vec<char> = if c.is_control() {
                c.escape_default().collect()
            } else {
                vec![c]
            };
            escaped
        })
        .collect()
}

/// Systems whose base is read-only or whose packages are their own, although they name a family as their like.
const OWN_WAYS: [&str; 11] = [
    "amazon-bottlerocket",
    "azurelinux",
    "bottlerocket",
    "cos",
    "flatcar",
    "opensuse-aeon",
    "opensuse-kalpa",
    "opensuse-microos",
    "sle-micro",
    "steamos",
    "ubuntu-core",
];

/// Variants and descendants of Fedora that are built as images.
const OSTREE: [&str; 13] = [
    "aurora",
    "bazzite",
    "bluefin",
    "budgie-atomic",
    "coreos",
    "cosmic-atomic",
    "fedora-coreos",
    "iot",
    "kinoite",
    "onyx",
    "sericea",
    "silverblue",
    "sway-atomic",
];

/// The families whose rows of `fixes.toml` fit here, best first, `any` last.
pub fn families(os_release: Option<&OsRelease>, ground: Ground) -> Vec<String> {
    let place = match ground {
        Ground::Machine => None,
        Ground::Container => Some("container"),
        Ground::Wsl => Some("wsl"),
    };
    let distribution = os_release.map(of_distribution).unwrap_or_default();
    place
        .into_iter()
        .chain(distribution)
        .chain(["any"])
        .map(str::to_owned)
        .collect()
}

fn of_distribution(os_release: &OsRelease) -> Vec<&'static str> {
    let field = |name: &str| {
        os_release
            .fields
            .get(name)
            .map(|value| value.to_lowercase())
            .unwrap_or_default()
    };
    let (id, variant, like) = (field("ID"), field("VARIANT_ID"), field("ID_LIKE"));
    if OWN_WAYS.contains(&id.as_str()) {
        return Vec::new();
    }
    // What changes a package-based system does not last on an image, so its distribution's rows are left out.
    if os_release.ostree.got().is_some()
        || OSTREE.contains(&id.as_str())
        || OSTREE.contains(&variant.as_str())
    {
        return vec!["ostree"];
    }
    let mut found: Vec<&'static str> = Vec::new();
    for name in std::iter::once(id.as_str()).chain(like.split_whitespace()) {
        let families: &[&'static str] = match name {
            "debian" | "raspbian" | "kali" => &["debian"],
            "ubuntu" => &["ubuntu", "debian"],
            "fedora" => &["fedora"],
            "rhel" | "centos" | "rocky" | "almalinux" | "ol" | "amzn" => &["rhel"],
            "arch" | "archlinux" => &["arch"],
            "suse" | "opensuse" | "sles" | "sled" => &["suse"],
            name if name.starts_with("opensuse-") => &["suse"],
            "nixos" => &["nixos"],
            _ => &[],
        };
        for family in families {
            if !found.contains(family) {
                found.push(family);
            }
        }
    }
    // Whoever is like RHEL says that it is like Fedora, too, but takes its drivers from elsewhere.
    if found.first() == Some(&"rhel") {
        found.retain(|family| *family != "fedora");
    }
    found
}

/// What is wrong with rows of `fixes.toml`: the index of the row, and what.
pub fn faults(rows: &[FixRow]) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let mut previous = None;
    for (index, row) in rows.iter().enumerate() {
        let mut fault = |what: &str| faults.push((index, what.to_owned()));
        let Some(family) = FAMILIES.iter().position(|family| *family == row.family) else {
            fault("is for a family that does not exist");
            continue;
        };
        let key = (row.recipe.as_str(), family);
        if previous >= Some(key) {
            fault("is not in order, or stands there twice");
        }
        previous = Some(key);
        if !row.commands.is_empty() && (row.source.is_none() || row.checked.is_none()) {
            fault("has commands and does not say where and when they were read");
        }
        if row.commands.is_empty() && row.words.is_empty() {
            fault("says nothing");
        }
        if !matches!(row.after.as_deref(), None | Some("reboot" | "new login")) {
            fault("has an `after` that is neither `reboot` nor `new login`");
        }
        let texts = row.commands.iter().chain([&row.words, &row.confirm]);
        for unknown in texts
            .flat_map(|text| placeholders(text))
            .filter(|name| !PLACEHOLDERS.contains(name))
        {
            faults.push((index, format!("asks for an unknown value {{{unknown}}}")));
        }
    }
    faults.extend(recipes_with_gaps(rows));
    faults
}

/// Every recipe answers everywhere, and one that changes a system says what to do where the system is somebody else's.
fn recipes_with_gaps(rows: &[FixRow]) -> Vec<(usize, String)> {
    let mut recipes: BTreeMap<&str, (usize, BTreeSet<&str>, bool)> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let recipe = recipes.entry(&row.recipe).or_default();
        recipe.0 = index;
        recipe.1.insert(&row.family);
        recipe.2 |= row.needs_root;
    }
    let mut faults = Vec::new();
    for (_, (index, families, needs_root)) in recipes {
        if !families.contains("any") && families.len() < FAMILIES.len() - 1 {
            faults.push((
                index,
                "is of a recipe that lacks a row for `any`".to_owned(),
            ));
        }
        let elsewhere = families.contains("container") && families.contains("wsl");
        if needs_root && !elsewhere {
            faults.push((
                index,
                "is of a recipe that needs root and lacks rows for `container` and `wsl`"
                    .to_owned(),
            ));
        }
    }
    faults
}

/// The names in braces in a text.
fn placeholders(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, name, after)) = next_placeholder(rest) {
        found.push(name);
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Seen;

    fn embedded() -> Vec<FixRow> {
        let text = include_str!("../data/fixes.toml");
        let mut table: BTreeMap<String, Vec<FixRow>> = toml::from_str(text).expect("rows");
        table.remove("fix").expect("rows of fixes")
    }

    fn recipes() -> BTreeSet<String> {
        embedded().into_iter().map(|row| row.recipe).collect()
    }

    /// A call of any recipe with something for every placeholder.
    fn call(recipe: &str) -> FixCall {
        let recipe: &'static str = Box::leak(recipe.to_owned().into_boxed_str());
        PLACEHOLDERS
            .iter()
            .fold(FixCall::new(recipe), |call, name| call.with(name, "value"))
    }

    fn os(fields: &[(&str, &str)]) -> OsRelease {
        OsRelease {
            fields: fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..OsRelease::default()
        }
    }

    fn on(id: &str, like: &str) -> Vec<String> {
        families(Some(&os(&[("ID", id), ("ID_LIKE", like)])), Ground::Machine)
    }

    #[test]
    fn the_embedded_rows_have_no_faults() {
        let rows = embedded();
        let faults: Vec<String> = faults(&rows)
            .into_iter()
            .map(|(index, what)| format!("{} {} {what}", rows[index].recipe, rows[index].family))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
        assert!(rows.len() > 100);
    }

    #[test]
    fn the_embedded_rows_are_written_as_the_house_writes() {
        for row in embedded() {
            let place = format!("{} {}", row.recipe, row.family);
            assert!(!row.words.ends_with('.'), "{place}");
            assert!(
                !row.confirm.is_empty() && !row.confirm.ends_with('.'),
                "{place}"
            );
            assert_eq!(row.words.matches('`').count() % 2, 0, "{place}");
            assert_eq!(row.confirm.matches('`').count() % 2, 0, "{place}");
            assert!(row.words.is_ascii(), "{place}");
            let sudo = row.commands.iter().any(|command| command.contains("sudo "));
            if row.needs_root && !row.commands.is_empty() {
                assert!(sudo, "{place}: commands that need root say so");
            }
            let mut texts = row.commands.iter().chain([&row.words]);
            // There the words are about the host, or about Windows.
            let is_elsewhere =
                ["container", "wsl"].contains(&row.family.as_str()) && row.commands.is_empty();
            let as_root = texts.any(|text| {
                const OF_ROOT: [&str; 6] = [
                    "/var/lib",
                    "as root",
                    "mokutil",
                    "rpm-ostree",
                    "install the driver",
                    "dkms ",
                ];
                let sudo = text.contains("sudo ") || text.contains("/etc");
                sudo || !is_elsewhere && OF_ROOT.iter().any(|word| text.contains(word))
            });
            assert!(row.needs_root || !as_root, "{place}: it needs root");
            if row.after.as_deref() == Some("reboot") {
                assert_ne!(
                    row.risk,
                    Risk::Safe,
                    "{place}: a restart interrupts what runs"
                );
            }
        }
    }

    /// A fault of any kind is found, so that the test above means something.
    #[test]
    fn what_may_be_pasted_out_of_words_is_quoted() {
        let shown =
            |text: &str, value: &str| put_in_words(text, &FixCall::new("x").with("kernel", value));
        let pasted = "run `sudo akmods --kernels {kernel}` for {kernel}";
        for (value, expected) in [
            ("6.14.9", "run `sudo akmods --kernels 6.14.9` for 6.14.9"),
            ("6;id", "run `sudo akmods --kernels '6;id'` for 6;id"),
            ("-x", "run `sudo akmods --kernels KERNEL` for -x"),
        ] {
            assert_eq!(shown(pasted, value), expected);
        }
        // Nothing ends the span.
        assert_eq!(shown(pasted, "6`id`").matches('`').count(), 2);
        assert_eq!(
            shown("take the line `{kernel}` out", "options x y=1"),
            "take the line `options x y=1` out"
        );
    }

    #[test]
    fn faults_are_found() {
        let good = FixRow {
            recipe: "a".to_owned(),
            family: "any".to_owned(),
            words: "do it".to_owned(),
            commands: vec!["ls {file}".to_owned()],
            needs_root: false,
            after: None,
            risk: Risk::Safe,
            confirm: "see".to_owned(),
            source: Some("ls(1)".to_owned()),
            checked: Some("2026-11-30".to_owned()),
        };
        assert_eq!(faults(std::slice::from_ref(&good)), []);
        let broken = |change: &dyn Fn(&mut FixRow)| {
            let mut row = good.clone();
            change(&mut row);
            faults(&[row])
                .first()
                .map(|(_, what)| what.clone())
                .unwrap_or_default()
        };
        for (change, says) in [
            (
                &(|row: &mut FixRow| row.source = None) as &dyn Fn(&mut FixRow),
                "where and when",
            ),
            (&|row: &mut FixRow| row.checked = None, "where and when"),
            (
                &|row: &mut FixRow| row.family = "gentoo".to_owned(),
                "does not exist",
            ),
            (
                &|row: &mut FixRow| row.family = "arch".to_owned(),
                "lacks a row for `any`",
            ),
            (
                &|row: &mut FixRow| row.needs_root = true,
                "`container` and `wsl`",
            ),
            (
                &|row: &mut FixRow| row.after = Some("lunch".to_owned()),
                "`after`",
            ),
            (
                &|row: &mut FixRow| row.commands.push("rm {disk}".to_owned()),
                "{disk}",
            ),
            (
                &|row: &mut FixRow| row.words = "see {it}".to_owned(),
                "{it}",
            ),
            (
                &|row: &mut FixRow| row.confirm = "see {it}".to_owned(),
                "{it}",
            ),
        ] {
            let what = broken(change);
            assert!(what.contains(says), "{says:?}: {what:?}");
        }
        let twice = faults(&[good.clone(), good.clone()]);
        assert_eq!(twice.len(), 1);
        assert_eq!(twice[0].0, 1);
    }

    #[test]
    fn every_recipe_answers_everywhere_with_nothing_left_open() {
        let tables = Tables::embedded();
        for recipe in recipes() {
            for family in FAMILIES {
                let fix = resolve(&call(&recipe), &[family.to_owned()], &tables)
                    .unwrap_or_else(|| panic!("{recipe} has nothing for {family}"));
                for text in fix.commands.iter().chain([&fix.words, &fix.confirm]) {
                    assert_eq!(placeholders(text), [] as [&str; 0], "{recipe} {family}");
                }
            }
            assert!(resolve(&call(&recipe), &[], &tables).is_some(), "{recipe}");
        }
        assert_eq!(resolve(&FixCall::new("no-such-recipe"), &[], &tables), None);
    }

    #[test]
    fn nothing_in_a_container_or_under_wsl_changes_a_driver_or_a_kernel() {
        let tables = Tables::embedded();
        let forbidden = [
            "apt",
            "dnf",
            "yum",
            "zypper",
            "pacman",
            "rpm-ostree",
            "nixos-rebuild",
            "ubuntu-drivers",
            "modprobe",
            "dkms",
            "akmods",
            "dracut",
            "mkinitcpio",
            "update-initramfs",
            "update-grub",
            "grubby",
            "reboot",
            "mount",
            "systemctl",
            "udevadm",
        ];
        let systems = [
            ("ubuntu", "debian"),
            ("debian", ""),
            ("fedora", ""),
            ("rocky", "rhel centos fedora"),
            ("arch", ""),
            ("opensuse-leap", "suse opensuse"),
            ("nixos", ""),
            ("bazzite", "fedora"),
            ("unheard-of", ""),
        ];
        for recipe in recipes() {
            for (id, like) in systems {
                for ground in [Ground::Container, Ground::Wsl] {
                    let os = os(&[("ID", id), ("ID_LIKE", like)]);
                    let families = families(Some(&os), ground);
                    let fix = resolve(&call(&recipe), &families, &tables).expect("a row");
                    for word in fix.commands.iter().flat_map(|command| command.split(' ')) {
                        assert!(
                            !forbidden.contains(&word),
                            "{recipe} {ground:?} on {id}: {word}"
                        );
                    }
                    assert!(!fix.words.contains("apt install nvidia"), "{recipe}");
                }
            }
        }
    }

    #[test]
    fn the_recipes_of_the_checks_are_there() {
        let recipes = recipes();
        for recipe in [
            "ask-scheduler",
            "blacklist-nouveau",
            "boot-other-kernel-or-rebuild",
            "build-nvidia-module-for-kernel",
            "correct-variable",
            "create-nvidia-nodes",
            "create-uvm-node",
            "driver-on-host",
            "egpu-replug",
            "install-amdgpu-module-package",
            "install-nvidia-driver-legacy",
            "install-nvidia-driver-open",
            "install-nvidia-driver-proprietary",
            "install-nvidia-modprobe",
            "install-nvidia-ready-module",
            "join-group",
            "load-amdgpu-module",
            "load-nvidia-module",
            "log-in-again",
            "make-setuid",
            "node-mode-option",
            "node-udev-rule",
            "npu-udev-rule",
            "nvidia-persistence",
            "power-cycle-and-reseat",
            "power-tool-mode",
            "reboot",
            "reboot-into-installed-kernel",
            "recreate-stale-uvm-node",
            "remount-suid",
            "remove-blacklist-line",
            "remove-kernel-parameter",
            "remove-modprobe-install-line",
            "seat-session",
            "set-modify-device-files",
            "set-up-cuda",
            "set-up-level-zero",
            "set-up-rocm",
            "unset-variable",
            "wsl-enable-gpu",
            "wsl-set-version-2",
            "wsl-update",
            "wsl-windows-driver",
        ] {
            assert!(recipes.contains(recipe), "{recipe}");
        }
    }

    /// With `-u` nvidia-modprobe makes the nodes of nvidia_uvm and no others; 255 is the minor of nvidiactl.
    #[test]
    fn nvidia_modprobe_is_told_which_nodes_to_make() {
        let tables = Tables::embedded();
        let commands = |recipe| {
            let call = FixCall::new(recipe);
            let fix = resolve(&call, &["any".to_owned()], &tables);
            fix.expect("a row").commands
        };
        assert_eq!(
            commands("create-nvidia-nodes"),
            ["sudo nvidia-modprobe -c 255 -c 0"]
        );
        for recipe in ["create-uvm-node", "recreate-stale-uvm-node"] {
            assert_eq!(
                commands(recipe).last().map(String::as_str),
                Some("sudo nvidia-modprobe -c 0 -u")
            );
        }
    }

    #[test]
    fn the_row_of_the_distribution_is_taken() {
        let tables = Tables::embedded();
        let commands = |families: &[String]| {
            resolve(
                &FixCall::new("install-nvidia-driver-open"),
                families,
                &tables,
            )
            .expect("a row")
            .commands
        };
        assert_eq!(
            commands(&on("ubuntu", "debian")),
            ["sudo ubuntu-drivers install"]
        );
        assert_eq!(
            commands(&on("linuxmint", "ubuntu debian")),
            ["sudo ubuntu-drivers install"]
        );
        assert!(commands(&on("debian", ""))[0].contains(" nvidia-open-kernel-dkms "));
        assert!(commands(&on("fedora", ""))[0].contains("akmod-nvidia"));
        assert_eq!(
            commands(&on("rocky", "rhel centos fedora")),
            ["sudo dnf install nvidia-open"]
        );
        assert!(commands(&on("endeavouros", "arch"))[0].starts_with("sudo pacman"));
        assert!(commands(&on("gentoo", "")).is_empty());
        assert!(commands(&on("bazzite", "fedora")).is_empty());
    }

    /// The verdict has room for one line of it.
    #[test]
    fn what_sets_a_stack_up_is_one_thing_to_do() {
        for row in embedded() {
            if row.recipe.starts_with("set-up-") {
                let place = format!("{} {}", row.recipe, row.family);
                assert!(row.commands.len() <= 1, "{place}");
                let glued = row.words.contains("; ") && !row.commands.is_empty();
                assert!(!glued, "{place}: a command behind the last clause alone");
            }
        }
    }

    /// Each builder has commands of its own, on every distribution.
    #[test]
    fn what_akmods_builds_is_not_told_to_dkms() {
        let tables = Tables::embedded();
        for (recipe, builds, never) in [
            ("build-with-akmods", "akmods", "dkms"),
            ("install-kernel-headers", "dkms", "akmods"),
        ] {
            for id in ["fedora", "rhel", "debian", "ubuntu"] {
                let fix = resolve(&call(recipe), &on(id, ""), &tables).expect("a row");
                let text = format!("{} {}", fix.commands.join(" "), fix.words);
                assert!(text.contains(builds), "{recipe} {id}");
                assert!(!text.contains(never), "{recipe} {id}");
            }
        }
    }

    #[test]
    fn arguments_are_one_word_of_a_shell_in_commands_and_plain_in_words() {
        let tables = Tables::embedded();
        let call = FixCall::new("join-group")
            .with("group", "render")
            .with("user", "o'neil; rm -rf ~");
        let fix = resolve(&call, &on("debian", ""), &tables).expect("a row");
        assert_eq!(
            fix.commands,
            [r"sudo usermod -aG render 'o'\''neil; rm -rf ~'"]
        );
        assert!(fix.words.contains("o'neil; rm -rf ~"));
        assert_eq!(fix.after.as_deref(), Some("new login"));
        assert!(fix.needs_root);
    }

    #[test]
    fn a_value_that_no_shell_should_see_takes_the_commands_away() {
        let tables = Tables::embedded();
        for user in ["a\nreboot", "\u{1b}[2Jx", "-G", "x\0"] {
            let call = FixCall::new("join-group")
                .with("group", "render")
                .with("user", user);
            let fix = resolve(&call, &on("debian", ""), &tables).expect("a row");
            assert!(fix.commands.is_empty(), "{user:?}");
            assert!(!fix.words.chars().any(char::is_control), "{user:?}");
        }
        let fix = resolve(&FixCall::new("join-group"), &[], &tables).expect("a row");
        assert!(fix.commands.is_empty());
        assert!(fix.words.contains("USER") && fix.confirm.contains("GROUP"));
    }

    #[test]
    fn quoting() {
        for (value, word) in [
            ("6.8.0-49-generic", "6.8.0-49-generic"),
            (
                "modprobe.blacklist=nvidia,nouveau",
                "modprobe.blacklist=nvidia,nouveau",
            ),
            ("", "''"),
            ("two words", "'two words'"),
            ("$(id)", "'$(id)'"),
            ("a`id`", "'a`id`'"),
            ("~root", "'~root'"),
            ("it's", r"'it'\''s'"),
            ("gr\u{fc}n", "'gr\u{fc}n'"),
        ] {
            assert_eq!(quoted(value).as_deref(), Some(word));
        }
        assert_eq!(quoted("-x"), None);
        assert_eq!(quoted("\t"), None);
    }

    #[test]
    fn only_lower_case_names_in_braces_are_placeholders() {
        assert_eq!(
            placeholders("{a} ${HOME} {b c} {} { {kernel} }"),
            ["a", "kernel"]
        );
        assert_eq!(placeholders("{open"), [] as [&str; 0]);
        assert_eq!(
            put_in("{a}{b}", |name| Some(name.repeat(2))).as_deref(),
            Some("aabb")
        );
    }

    #[test]
    fn families_follow_id_then_its_likes() {
        for (id, like, expected) in [
            ("debian", "", "debian any"),
            ("ubuntu", "debian", "ubuntu debian any"),
            ("linuxmint", "ubuntu debian", "ubuntu debian any"),
            ("linuxmint", "debian", "debian any"),
            ("pop", "ubuntu debian", "ubuntu debian any"),
            ("raspbian", "debian", "debian any"),
            ("fedora", "", "fedora any"),
            ("nobara", "fedora", "fedora any"),
            ("rhel", "fedora", "rhel any"),
            ("rocky", "rhel centos fedora", "rhel any"),
            ("almalinux", "rhel centos fedora", "rhel any"),
            ("centos", "rhel fedora", "rhel any"),
            ("ol", "fedora", "rhel any"),
            ("amzn", "fedora", "rhel any"),
            ("arch", "", "arch any"),
            ("manjaro", "arch", "arch any"),
            ("cachyos", "arch", "arch any"),
            ("opensuse-tumbleweed", "opensuse suse", "suse any"),
            ("opensuse-leap", "suse opensuse", "suse any"),
            ("sles", "suse", "suse any"),
            ("nixos", "", "nixos any"),
            ("bazzite", "fedora", "ostree any"),
            ("steamos", "arch", "any"),
            (
                "opensuse-microos",
                "suse opensuse opensuse-tumbleweed",
                "any",
            ),
            ("gentoo", "", "any"),
            ("", "", "any"),
        ] {
            assert_eq!(on(id, like).join(" "), expected, "{id}");
        }
        let mut silverblue = os(&[("ID", "fedora"), ("VARIANT_ID", "silverblue")]);
        assert_eq!(
            families(Some(&silverblue), Ground::Machine),
            ["ostree", "any"]
        );
        silverblue.fields.remove("VARIANT_ID");
        silverblue.ostree = Seen::Absent;
        assert_eq!(
            families(Some(&silverblue), Ground::Machine),
            ["fedora", "any"]
        );
        silverblue.ostree = Seen::Got(());
        assert_eq!(
            families(Some(&silverblue), Ground::Machine),
            ["ostree", "any"]
        );
        assert_eq!(families(None, Ground::Machine), ["any"]);
    }

    #[test]
    fn the_place_comes_before_the_distribution() {
        let ubuntu = os(&[("ID", "ubuntu"), ("ID_LIKE", "debian")]);
        assert_eq!(
            families(Some(&ubuntu), Ground::Container),
            ["container", "ubuntu", "debian", "any"]
        );
        assert_eq!(
            families(Some(&ubuntu), Ground::Wsl),
            ["wsl", "ubuntu", "debian", "any"]
        );
        assert_eq!(families(None, Ground::Container), ["container", "any"]);
    }
}
