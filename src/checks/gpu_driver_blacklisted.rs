//! Something forbids the kernel driver of a GPU.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::module_files::{ConfigLine, ModprobeConfig};
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{DriverGround, Gpu, Loaded, Vendor, View};
use std::collections::BTreeMap;

crate::check! {
    /// The kernel command line or a file of modprobe forbids the driver that this GPU needs.
    ///
    /// ## Why it matters
    /// A module on a blacklist is not loaded when the kernel finds the GPU. `module_blacklist=` on the command line and
    /// `install ... /bin/false` in a file stop even root from loading it by name.
    ///
    /// ## How it comes about
    /// Guides for passing a GPU to a virtual machine, installers of other drivers and attempts at a first installation leave
    /// such lines behind. On laptops a tool that switches GPUs (`supergfxctl`, `envycontrol`, `prime-select`,
    /// `optimus-manager`) writes them when the machine is to run on the integrated GPU alone.
    /// `rd.driver.blacklist=` acts in the initramfs only, and names such as `nvidiafb` and `nvidia_drm` are other modules:
    /// neither is reported.
    ///
    /// ## How to confirm
    /// `modprobe --showconfig | grep -E '(nvidia|amdgpu|i915|xe)( |$)'` and `cat /proc/cmdline`
    "gpu-driver-blacklisted", Driver, Error, each Gpu, run
}

const COMMAND_LINE: &str = "/proc/cmdline";
const WOULD_TELL: &str = "`modprobe --showconfig` and `cat /proc/cmdline`";
/// Folders of modprobe's configuration: a file hides those of the same name in later folders.
const FOLDERS: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || !gpu.is_on_bus() {
        return Verdict::NotHere;
    }
    let driver = gpu.driver.got().map(String::as_str);
    let modules: &[&str] = match (gpu.vendor, driver) {
        // Held or kept for a virtual machine, where a blacklist is part of the setup.
        _ if view.is_reserved(gpu) => return Verdict::NotHere,
        (Vendor::Nvidia, _) => &["nvidia"],
        // What radeon holds, amdgpu would not take.
        (Vendor::Amd, Some("radeon")) => return Verdict::NotHere,
        (Vendor::Amd, _) => &["amdgpu"],
        // Two drivers share these GPUs; forbidding one of them is how the other is chosen.
        (Vendor::Intel, Some("i915")) => &["i915"],
        (Vendor::Intel, Some("xe")) => &["xe"],
        (Vendor::Intel, _) => &["i915", "xe"],
        (Vendor::Other, _) => return Verdict::NotHere,
    };
    let sources = look(view, modules);
    if sources.bans.is_empty() {
        return match sources.unknown {
            Some(why) => Verdict::cannot_tell(why, WOULD_TELL),
            None => Verdict::fine(format!("nothing forbids {}", modules.join(" or "))),
        };
    }
    found(gpu, view, modules, sources.bans)
}

/// How a module is forbidden. The order is that of strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Tool,
    CommandLine,
    InstallFalse,
    Blacklist,
}

impl Way {
    fn cause(self) -> &'static str {
        match self {
            Way::Tool => "power-tool",
            Way::CommandLine => "kernel-command-line",
            Way::InstallFalse => "modprobe-install-false",
            Way::Blacklist => "modprobe-blacklist",
        }
    }
}

/// Something that forbids a module.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ban {
    way: Way,
    module: &'static str,
    source: String,
    /// The word or the line.
    text: String,
    /// The tool that writes a file of this name, and whether nobody else does.
    tool: Option<(&'static str, bool)>,
}

/// What was found, and what could not be looked at.
#[derive(Debug, Default)]
struct Sources {
    bans: Vec<Ban>,
    unknown: Option<String>,
}

fn look(view: &View, modules: &[&'static str]) -> Sources {
    let mut sources = Sources::default();
    let names = names_of(view, modules);
    match view.kernel_words() {
        Seen::Got(words) => sources
            .bans
            .extend(words.iter().filter_map(|word| ban_of_word(word, &names))),
        other => sources.unknown = Some(format!("{COMMAND_LINE}: {}", other.why())),
    }
    match view.driver_ground() {
        DriverGround::Own => {}
        // These files are the container's, and its kernel does not read them.
        DriverGround::Host => {
            let driven = modules
                .iter()
                .any(|module| matches!(view.loaded(module), Loaded::Yes(_)));
            if !driven {
                sources.unknown.get_or_insert(
                    "in a container the host's files of modprobe cannot be seen".to_owned(),
                );
            }
            return sources;
        }
        DriverGround::Unknown(why) => {
            sources.unknown.get_or_insert(why);
            return sources;
        }
    }
    if let Seen::Got(config) = &view.facts.modprobe {
        let lines = effective(config).into_iter().flat_map(|(path, lines)| {
            let lines = lines.got().into_iter().flatten();
            lines.filter_map(|line| ban_of_line(path, line, &names))
        });
        sources.bans.extend(lines.collect::<Vec<_>>());
    }
    sources.unknown = sources.unknown.or_else(|| view.unread_modprobe());
    sources
}

/// A name by which modprobe knows a module.
struct ModuleName {
    name: String,
    module: &'static str,
}

/// Modules by their own names and by those of their files: Debian's `nvidia-current.ko` is the module nvidia, and modprobe
/// knows it by the file.
fn names_of(view: &View, modules: &[&'static str]) -> Vec<ModuleName> {
    let mut names = Vec::new();
    for module in modules.iter().copied() {
        let own = (*module).to_owned();
        let files = view.module_files(module).into_got();
        let of_files = files.into_iter().flatten().filter_map(|file| {
            let (stem, _) = file.path.rsplit('/').next()?.split_once(".ko")?;
            Some(stem.replace('-', "_"))
        });
        for name in std::iter::once(own).chain(of_files) {
            names.push(ModuleName { name, module });
        }
    }
    names
}

/// The files that count: of several with one name the first in the order of the folders.
fn effective(config: &ModprobeConfig) -> BTreeMap<&str, &Seen<Vec<ConfigLine>>> {
    let mut by_name: BTreeMap<&str, (usize, &str, &Seen<Vec<ConfigLine>>)> = BTreeMap::new();
    for (path, lines) in &config.files {
        let Some((folder, name)) = path.rsplit_once('/') else {
            continue;
        };
        if !name.ends_with(".conf") {
            continue;
        }
        let rank = FOLDERS
            .iter()
            .position(|known| *known == folder)
            .unwrap_or(FOLDERS.len());
        let entry = by_name.entry(name).or_insert((rank, path, lines));
        if rank < entry.0 {
            *entry = (rank, path, lines);
        }
    }
    by_name
        .into_values()
        .map(|(_, path, lines)| (path, lines))
        .collect()
}

/// `modprobe.blacklist=a,b` is read by modprobe, `module_blacklist=` by the kernel itself; `initcall_blacklist=` names the
/// function with which a driver starts.
fn ban_of_word(word: &str, known: &[ModuleName]) -> Option<Ban> {
    let (key, names) = word.split_once('=')?;
    let starts_with: fn(&str) -> Option<&'static str> = match key.replace('-', "_").as_str() {
        "modprobe.blacklist" | "module_blacklist" => |_| None,
        "initcall_blacklist" => |module| match module {
            "nvidia" => Some("nvidia_init_module"),
            "amdgpu" => Some("amdgpu_init"),
            "i915" => Some("i915_init"),
            "xe" => Some("xe_init"),
            _ => None,
        },
        _ => return None,
    };
    let module = names.split(',').find_map(|name| {
        let name = name.replace('-', "_");
        known
            .iter()
            .find(|known| starts_with(known.module).unwrap_or(&known.name) == name)
            .map(|known| known.module)
    })?;
    Some(Ban {
        way: Way::CommandLine,
        module,
        source: COMMAND_LINE.to_owned(),
        text: word.to_owned(),
        tool: None,
    })
}

fn ban_of_line(path: &str, line: &ConfigLine, known: &[ModuleName]) -> Option<Ban> {
    let mut words = line.text.split_whitespace();
    let command = words.next()?;
    let name = words.next()?.replace('-', "_");
    let module = known.iter().find(|known| known.name == name)?.module;
    let rest: Vec<&str> = words.take_while(|word| !word.starts_with('#')).collect();
    let way = match (command, rest.as_slice()) {
        ("blacklist", _) => Way::Blacklist,
        // `off` is no module: the name then leads nowhere.
        ("alias", ["off"]) => Way::Blacklist,
        ("install", [program]) if does_nothing(program) => Way::InstallFalse,
        _ => return None,
    };
    let tool = tool_of_file(path).filter(|_| module == "nvidia");
    Some(Ban {
        way: if tool.is_some() { Way::Tool } else { way },
        module,
        source: path.to_owned(),
        text: line.text.clone(),
        tool,
    })
}

/// A command that loads nothing: `/bin/false`, `/usr/bin/true`, `:`.
fn does_nothing(program: &str) -> bool {
    let name = program.trim_end_matches(';').rsplit('/').next();
    matches!(name, Some("false" | "true" | ":"))
}

/// The tool that writes a file of this name, and whether nobody else would call it so.
fn tool_of_file(path: &str) -> Option<(&'static str, bool)> {
    let (folder, name) = path.rsplit_once('/')?;
    match name {
        "supergfxd.conf" => Some(("supergfxctl", true)),
        "optimus-manager.conf" => Some(("optimus-manager", true)),
        "system76-power.conf" => Some(("system76-power", true)),
        // In the folder of packages it is `prime-select`, in that of the administrator `envycontrol`, or a person.
        "blacklist-nvidia.conf" if folder == "/etc/modprobe.d" => Some(("envycontrol", false)),
        "blacklist-nvidia.conf" => Some(("prime-select", true)),
        _ if name.contains("bbswitch") || name == "bumblebee.conf" => Some(("bumblebee", true)),
        _ if name.contains("envycontrol") => Some(("envycontrol", true)),
        _ if name.contains("prime") && name.contains("nvidia") => Some(("prime-select", true)),
        _ => None,
    }
}

/// How a tool is told to keep the GPU.
fn hybrid_mode(tool: &str) -> &'static str {
    match tool {
        "supergfxctl" => "supergfxctl -m Hybrid",
        "optimus-manager" => "optimus-manager --switch hybrid",
        "system76-power" => "sudo system76-power graphics hybrid",
        "envycontrol" => "sudo envycontrol -s hybrid",
        "prime-select" => "sudo prime-select on-demand",
        // bbswitch has no such mode: its package is what keeps the GPU off.
        _ => "optirun PROGRAM",
    }
}

fn found(gpu: &Gpu, view: &View, modules: &[&'static str], mut bans: Vec<Ban>) -> Verdict {
    bans.sort_by_key(|ban| ban.way);
    let first = &bans[0];
    let module = first.module;
    let held = gpu
        .driver
        .got()
        .is_some_and(|driver| modules.contains(&driver.as_str()));
    let loaded = view.loaded(module);
    let by = match first.way {
        Way::CommandLine => "on the kernel command line".to_owned(),
        Way::Tool => format!(
            "by {}",
            first
                .tool
                .map_or("a tool that switches GPUs", |(tool, _)| tool)
        ),
        Way::InstallFalse | Way::Blacklist => format!("in {}", first.source),
    };
    // Something else keeps a driver that is loaded from this GPU.
    if matches!(loaded, Loaded::Yes(_)) && gpu.driver.is_absent() {
        return Verdict::fine(format!(
            "the driver {module} is forbidden {by}, and loaded all the same: that is not why it does not hold this GPU"
        ));
    }
    let mut finding =
        Finding::new(format!("the driver {module} is forbidden {by}")).cause(first.way.cause());
    for ban in &bans {
        finding = finding.saw(ban.source.as_str(), ban.text.as_str());
    }
    let evidence = view.loaded_words(module);
    finding = finding.saw(evidence.source, evidence.says);
    finding = match (held, &loaded, &gpu.driver) {
        (true, ..) | (_, Loaded::Yes(_), _) => {
            finding.title = format!("the driver {module} is forbidden {by}, and loaded all the same");
            finding
                .severity(Severity::Note)
                .why("It may have been loaded by name, from the initramfs, or before it was forbidden; the next start may come up without it")
        }
        // Neither is the module known to be missing nor the GPU to be without a driver.
        (_, Loaded::Unknown(_), Seen::Unasked(_) | Seen::Failed(_)) => {
            finding.severity(Severity::Note).likely().why(
                "A forbidden driver is not loaded when the kernel finds the GPU; whether it is loaded now is not known",
            )
        }
        _ => finding.why("The kernel does not load a forbidden driver when it finds the GPU"),
    };
    let other_driver = modules.len() > 1
        && !modules
            .iter()
            .all(|module| bans.iter().any(|ban| ban.module == *module));
    if other_driver || first.tool.is_some_and(|(_, sure)| !sure) {
        // Another driver may be the one for this GPU, or another hand may have written the file.
        finding = finding.likely();
    }
    let mut calls: Vec<FixCall> = Vec::new();
    for call in bans.iter().flat_map(fixes) {
        let call = view.driver_fix(call);
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    calls.into_iter().fold(finding, Finding::fix).into()
}

fn fixes(ban: &Ban) -> Vec<FixCall> {
    let call = match (ban.way, ban.tool) {
        (Way::Tool, Some((tool, _))) => FixCall::new("power-tool-mode")
            .with("tool", tool)
            .with("word", hybrid_mode(tool)),
        (Way::CommandLine, _) => {
            FixCall::new("remove-kernel-parameter").with("word", ban.text.as_str())
        }
        (Way::InstallFalse, _) => FixCall::new("remove-modprobe-install-line")
            .with("file", ban.source.as_str())
            .with("line", ban.text.as_str()),
        (Way::Blacklist | Way::Tool, _) => FixCall::new("remove-blacklist-line")
            .with("file", ban.source.as_str())
            .with("line", ban.text.as_str()),
    };
    // With the word goes what else it keeps away, and nouveau must not come back.
    let frees_nouveau = ban.way == Way::CommandLine
        && ban.module == "nvidia"
        && ban.text.split(['=', ',']).any(|name| name == "nouveau");
    let mut calls = vec![call];
    if frees_nouveau {
        calls.push(FixCall::new("blacklist-nouveau"));
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(module: &'static str) -> ModuleName {
        ModuleName {
            name: module.to_owned(),
            module,
        }
    }

    fn way_of_line(path: &str, text: &str) -> Option<Way> {
        let line = ConfigLine {
            number: 1,
            text: text.to_owned(),
        };
        ban_of_line(path, &line, &[name_of("nvidia")]).map(|ban| ban.way)
    }

    #[test]
    fn lines_that_forbid_and_lines_that_do_not() {
        let way = |text| way_of_line("/etc/modprobe.d/x.conf", text);
        for (text, expected) in [
            ("blacklist nvidia", Way::Blacklist),
            ("blacklist\tnvidia # for the guest", Way::Blacklist),
            ("alias nvidia off", Way::Blacklist),
            ("install nvidia /bin/false", Way::InstallFalse),
            ("install nvidia /usr/bin/true # gone", Way::InstallFalse),
            ("install nvidia false", Way::InstallFalse),
            ("install nvidia :", Way::InstallFalse),
        ] {
            assert_eq!(way(text), Some(expected), "{text}");
        }
        for text in [
            "#blacklist nvidia",
            "blacklist nvidiafb",
            "blacklist nvidia-drm",
            "blacklist i2c_nvidia_gpu",
            "blacklist nouveau",
            "blacklist",
            "options nvidia NVreg_DeviceFileMode=0660",
            "alias char-major-195* nvidia",
            "alias nvidia nvidia-current",
            "install nvidia /sbin/modprobe --ignore-install nvidia && /sbin/modprobe nvidia-uvm",
            "install nvidia /bin/true; /sbin/modprobe -i nvidia",
            "remove nvidia /bin/true",
            "softdep nvidia pre: nouveau",
        ] {
            assert_eq!(way(text), None, "{text}");
        }
    }

    #[test]
    fn tools_are_known_by_the_names_of_their_files() {
        for (path, tool) in [
            ("/etc/modprobe.d/supergfxd.conf", Some("supergfxctl")),
            ("/etc/modprobe.d/blacklist-nvidia.conf", Some("envycontrol")),
            (
                "/usr/lib/modprobe.d/blacklist-nvidia.conf",
                Some("prime-select"),
            ),
            (
                "/lib/modprobe.d/blacklist-nvidia.conf",
                Some("prime-select"),
            ),
            (
                "/etc/modprobe.d/optimus-manager.conf",
                Some("optimus-manager"),
            ),
            ("/etc/modprobe.d/bbswitch.conf", Some("bumblebee")),
            (
                "/etc/modprobe.d/09-nvidia-modprobe-bbswitch-G04.conf",
                Some("bumblebee"),
            ),
            ("/etc/modprobe.d/local.conf", None),
        ] {
            assert_eq!(tool_of_file(path).map(|(tool, _)| tool), tool, "{path}");
        }
        assert_eq!(
            way_of_line("/etc/modprobe.d/supergfxd.conf", "blacklist nvidia"),
            Some(Way::Tool)
        );
        assert_eq!(
            way_of_line("/etc/modprobe.d/supergfxd.conf", "blacklist nouveau"),
            None
        );
    }

    #[test]
    fn words_of_the_command_line() {
        for (word, module, forbids) in [
            ("modprobe.blacklist=nvidia", "nvidia", true),
            ("modprobe.blacklist=nouveau,nvidia,pcspkr", "nvidia", true),
            ("module_blacklist=amdgpu", "amdgpu", true),
            ("module-blacklist=amdgpu", "amdgpu", true),
            ("initcall_blacklist=amdgpu_init", "amdgpu", true),
            ("initcall_blacklist=nvidia_init_module", "nvidia", true),
            ("initcall_blacklist=amdgpu", "amdgpu", false),
            ("modprobe.blacklist=nvidia_drm,nvidiafb", "nvidia", false),
            ("rd.driver.blacklist=nvidia", "nvidia", false),
            ("rd.modprobe.blacklist=nvidia", "nvidia", false),
            ("modprobe.blacklist", "nvidia", false),
            ("nvidia", "nvidia", false),
        ] {
            assert_eq!(
                ban_of_word(word, &[name_of(module)]).is_some(),
                forbids,
                "{word}"
            );
        }
    }

    #[test]
    fn a_file_hides_those_of_its_name_in_later_folders() {
        let lines = |text: &str| {
            Seen::Got(vec![ConfigLine {
                number: 1,
                text: text.to_owned(),
            }])
        };
        let config = ModprobeConfig {
            files: [
                (
                    "/usr/lib/modprobe.d/a.conf".to_owned(),
                    lines("blacklist nvidia"),
                ),
                ("/etc/modprobe.d/a.conf".to_owned(), Seen::Got(Vec::new())),
                (
                    "/lib/modprobe.d/b.conf".to_owned(),
                    lines("blacklist nvidia"),
                ),
                (
                    "/usr/lib/modprobe.d/c.conf.bak".to_owned(),
                    lines("blacklist nvidia"),
                ),
            ]
            .into(),
            ..ModprobeConfig::default()
        };
        let paths: Vec<&str> = effective(&config).into_keys().collect();
        assert_eq!(paths, ["/etc/modprobe.d/a.conf", "/lib/modprobe.d/b.conf"]);
    }
}
