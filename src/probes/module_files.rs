//! Fills `facts/module_files.rs`: kernel modules on disk, the trees of module builders, and `modprobe.d`.

use super::kernel::{self, GPU_MODULES, normalised};
use crate::facts::module_files::{
    BuildLog, ConfigLine, Dkms, DkmsVersion, InstalledKernel, ModInfo, ModprobeConfig, ModuleFile,
    ModuleFiles,
};
use crate::facts::{Named, Seen, Why};
use crate::host::{Host, Listing};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Where module folders are; a later place counts only where the earlier ones do not exist.
const PLACES: &[&str] = &[
    "/lib/modules",
    "/run/booted-system/kernel-modules/lib/modules",
    "/run/current-system/kernel-modules/lib/modules",
];
/// Folders of one kernel in which GPU modules stand, besides the sub-folders of `NESTED` and `kernel/nvidia*`.
const FOLDERS: &[&str] = &[
    "kernel/drivers/char/drm",
    "kernel/drivers/gpu/drm/amd/amdgpu",
    "kernel/drivers/gpu/drm/i915",
    "kernel/drivers/gpu/drm/nouveau",
    "kernel/drivers/gpu/drm/radeon",
    "kernel/drivers/gpu/drm/xe",
    "kernel/drivers/gpu/nova-core",
    "kernel/drivers/video",
    "kernel/misc",
    "misc",
];
/// Folders whose sub-folders hold modules too.
const NESTED: &[&str] = &["extra", "extramodules", "updates", "weak-updates"];
/// Most kernels that are looked at.
const KERNEL_LIMIT: usize = 32;
/// Most sub-folders that are looked at in one folder.
const SUBFOLDER_LIMIT: usize = 64;
/// Most names, files or lines of one kind that are kept.
const ITEM_LIMIT: usize = 256;
/// Most lines of the log of a build that are kept, and most bytes of one: the first errors are the cause, the rest follows.
const BUILD_LINES: usize = 12;
const BUILD_LINE_LIMIT: usize = 400;

/// Folders of modprobe's configuration; a file masks those of the same name in later folders.
const MODPROBE_FOLDERS: &[&str] = &[
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

/// The GPU module that a file holds, as the kernel writes its name; None: it is no file of a GPU module.
fn module_of_file(file_name: &str) -> Option<String> {
    let (stem, packing) = file_name.split_once(".ko")?;
    if !["", ".gz", ".xz", ".zst"].contains(&packing) {
        return None;
    }
    let name = gpu_module(stem)?;
    // These are in every kernel, belong to no GPU of interest or are built in: their files decide nothing.
    let counts = ![
        "ast",
        "mgag200",
        "pci_stub",
        "simpledrm",
        "ttm",
        "vfio_pci",
        "xen_pciback",
    ]
    .contains(&name.as_str());
    counts.then_some(name)
}

/// The GPU module of that name. Distributions that keep several NVIDIA drivers beside each other put the kind into the name
/// (`nvidia-current-uvm`, `nvidia-legacy-390xx`, `nvidia-384`): the kernel knows them without it.
fn gpu_module(name: &str) -> Option<String> {
    let name = normalised(name);
    if GPU_MODULES.contains(&name.as_str()) {
        return Some(name);
    }
    let mut rest = name
        .strip_prefix("nvidia_")
        .filter(|rest| !rest.is_empty())?;
    loop {
        let (word, tail) = rest.split_once('_').unwrap_or((rest, ""));
        let is_kind = ["current", "legacy", "open", "server", "tesla"].contains(&word)
            || (word.starts_with(|first: char| first.is_ascii_digit())
                && word
                    .trim_end_matches("xx")
                    .chars()
                    .all(|digit| digit.is_ascii_digit()));
        if !is_kind {
            break;
        }
        rest = tail;
    }
    let plain = if rest.is_empty() {
        "nvidia".to_owned()
    } else {
        format!("nvidia_{rest}")
    };
    GPU_MODULES.contains(&plain.as_str()).then_some(plain)
}

/// Source `module_files`.
pub fn module_files(host: &Host) -> Seen<ModuleFiles> {
    let release = kernel::release(host);
    let mut answer = Seen::Absent;
    for place in PLACES {
        let listing = match host.list(place) {
            // The folder does not say; the one that matters most may be asked by its name.
            unlisted @ (Seen::Unasked(_) | Seen::Failed(_)) => match &release {
                Seen::Got(release)
                    if host.exists(&format!("{place}/{release}")).got().is_some() =>
                {
                    Seen::Got(Listing {
                        names: vec![release.clone()],
                        ..Listing::default()
                    })
                }
                _ => unlisted,
            },
            listed => listed,
        };
        match listing {
            Seen::Got(listing) => {
                let kernels = installed_kernels(host, place, listing, release.got());
                return Seen::Got(ModuleFiles {
                    path: (*place).to_owned(),
                    gsp_firmware: gsp_firmware(host, &kernels),
                    kernels,
                });
            }
            Seen::Absent => {}
            unknown if answer.is_absent() => answer = unknown.map(|_| ModuleFiles::default()),
            _ => {}
        }
    }
    answer
}

/// The firmware for NVIDIA's loaded module; nobody looks for it where no kernel has such a module.
fn gsp_firmware(host: &Host, kernels: &Named<InstalledKernel>) -> Seen<Named<()>> {
    let has_module = |kernel: &InstalledKernel| kernel.modules.items.contains_key("nvidia");
    if !kernels.items.values().any(has_module) {
        return Seen::default();
    }
    let version = host.value("/sys/module/nvidia/version").into_got();
    let is_version = |text: &String| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match version.filter(is_version) {
        Some(version) => host
            .list(&format!("/lib/firmware/nvidia/{version}"))
            .map(|listing| Named {
                whole: listing.whole,
                items: listing
                    .names
                    .into_iter()
                    .filter(|name| name.starts_with("gsp"))
                    .take(ITEM_LIMIT)
                    .map(|name| (name, ()))
                    .collect(),
            }),
        None => Seen::default(),
    }
}

/// The running kernel, then the newest by name, up to the limit.
fn installed_kernels(
    host: &Host,
    place: &str,
    listing: Listing,
    running: Option<&String>,
) -> Named<InstalledKernel> {
    let mut names = listing.names;
    names.sort_by_key(|name| Some(name) == running);
    let cut = names.len().saturating_sub(KERNEL_LIMIT);
    Named {
        whole: listing.whole && cut == 0,
        items: names
            .drain(cut..)
            .map(|name| {
                let is_running = Some(&name) == running;
                let kernel = installed_kernel(host, &format!("{place}/{name}"), is_running);
                (name, kernel)
            })
            .collect(),
    }
}

fn installed_kernel(host: &Host, folder: &str, running: bool) -> InstalledKernel {
    let mut found = Found::default();
    let dep_path = format!("{folder}/modules.dep");
    let dep = host.lines(&dep_path, &|line| module_of_dep_line(line).is_some());
    found.answered(dep.as_ref().map(|kept| kept.whole));
    for line in dep.got().into_iter().flat_map(|kept| &kept.lines) {
        if let Some((module, path)) = module_of_dep_line(line) {
            let path = if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("{folder}/{path}")
            };
            found.file(module, path);
        }
    }
    search_folders(host, folder, &mut found);
    let builtin = host
        .lines(&format!("{folder}/modules.builtin"), &|line| {
            module_of_path(line).is_some()
        })
        .and_then(|kept| {
            if kept.whole {
                let names: BTreeSet<String> = kept
                    .lines
                    .iter()
                    .filter_map(|line| module_of_path(line))
                    .collect();
                Seen::Got(names.into_iter().collect())
            } else {
                Seen::default()
            }
        });
    let headers = match host.exists(&format!("{folder}/build")) {
        Seen::Absent => Seen::Got(false),
        other => other.map(|()| true),
    };
    InstalledKernel {
        modules_dep: match dep {
            Seen::Got(_) => Seen::Got(()),
            Seen::Absent => Seen::Absent,
            // Not read, but perhaps seen.
            unread => match host.exists(&dep_path) {
                Seen::Got(()) => Seen::Got(()),
                _ => unread.map(|_| ()),
            },
        },
        modules: Named {
            whole: found.whole,
            items: found
                .files
                .into_iter()
                .map(|(name, paths)| {
                    let files = describe(host, &name, paths, running, folder);
                    (name, files)
                })
                .collect(),
        },
        builtin,
        headers,
    }
}

/// Module files as they are found, and whether every place answered.
struct Found {
    files: BTreeMap<String, Vec<String>>,
    whole: bool,
}

impl Default for Found {
    fn default() -> Self {
        Found {
            files: BTreeMap::new(),
            whole: true,
        }
    }
}

impl Found {
    /// A place answered, whole (`Got(true)`) or not; one that is proved absent holds nothing.
    fn answered(&mut self, answer: Seen<bool>) {
        self.whole &= matches!(answer, Seen::Got(true) | Seen::Absent);
    }

    fn file(&mut self, module: String, path: String) {
        let files = self.files.entry(module).or_default();
        if files.len() >= ITEM_LIMIT {
            self.whole = false;
        } else if !files.contains(&path) {
            files.push(path);
        }
    }

    /// Takes the module files of a folder and hands out its names.
    fn folder(&mut self, host: &Host, folder: &str) -> Vec<String> {
        let listing = host.list(folder);
        self.answered(listing.as_ref().map(|listing| listing.whole));
        let names = listing.into_got().unwrap_or_default().names;
        for name in &names {
            if let Some(module) = module_of_file(name) {
                self.file(module, format!("{folder}/{name}"));
            }
        }
        names
    }

    /// Takes the module files of those sub-folders. A name that turns out to be no folder has none.
    fn subfolders(&mut self, host: &Host, folder: &str, names: Vec<String>) {
        self.whole &= names.len() <= SUBFOLDER_LIMIT;
        for name in names.into_iter().take(SUBFOLDER_LIMIT) {
            let path = format!("{folder}/{name}");
            let before = self.whole;
            self.folder(host, &path);
            if before && !self.whole && is_no_folder(host, &path) {
                self.whole = true;
            }
        }
    }
}

fn is_no_folder(host: &Host, path: &str) -> bool {
    host.stat(path)
        .got()
        .is_some_and(|stat| stat.kind == "file")
}

fn search_folders(host: &Host, folder: &str, found: &mut Found) {
    for place in FOLDERS {
        found.folder(host, &format!("{folder}/{place}"));
    }
    for place in NESTED {
        let path = format!("{folder}/{place}");
        let names = found.folder(host, &path);
        let names = names
            .into_iter()
            .filter(|name| !name.contains(".ko"))
            .collect();
        found.subfolders(host, &path, names);
    }
    let path = format!("{folder}/kernel");
    let names = found.folder(host, &path);
    let names = names
        .into_iter()
        .filter(|name| name.starts_with("nvidia"))
        .collect();
    found.subfolders(host, &path, names);
}

/// The GPU module of a line of `modules.dep` (`PATH: PATH ...`), and its path.
fn module_of_dep_line(line: &str) -> Option<(String, &str)> {
    let (path, _) = line.split_once(':')?;
    Some((module_of_path(path)?, path))
}

fn module_of_path(path: &str) -> Option<String> {
    module_of_file(path.rsplit('/').next()?.trim_end())
}

fn describe(
    host: &Host,
    name: &str,
    paths: Vec<String>,
    running: bool,
    folder: &str,
) -> Vec<ModuleFile> {
    paths
        .into_iter()
        .enumerate()
        .map(|(index, path)| {
            let link = if running {
                host.link(&path).into_got()
            } else {
                None
            };
            // Unpacking is the slow part: only where a version, flavour or signature decides something.
            let decides = match name {
                "nvidia" => index < 2,
                "nvidia_uvm" => index == 0,
                "amdgpu" => index < 2 && !path.starts_with(&format!("{folder}/kernel/")),
                _ => false,
            };
            let info: Seen<ModInfo> = if !(running && decides) {
                Seen::Unasked(Why::Limit)
            } else if host.options().quick {
                Seen::Unasked(Why::Quick)
            } else {
                host.modinfo(&path)
            };
            ModuleFile { path, link, info }
        })
        .collect()
}

/// Source `dkms`.
pub fn dkms(host: &Host) -> Seen<Dkms> {
    let release = kernel::release(host).into_got();
    let release = release.as_deref();
    let cache = host.list("/var/cache/akmods");
    Seen::Got(Dkms {
        modules: host.list("/var/lib/dkms").map(|listing| {
            named(listing, is_driver_source, |name| {
                dkms_module(host, name, release)
            })
        }),
        sources: names_where(host.list("/usr/src"), is_driver_source),
        akmods_failed: release.map_or_else(Seen::default, |release| {
            akmods_failed(host, &cache, release)
        }),
        akmods: both(
            names_where(host.list("/usr/src/akmods"), |name| name.contains("nvidia")),
            names_where(cache, |name| name.contains("nvidia")),
        ),
    })
}

/// akmods keeps the log of a build that failed as `VERSION-for-KERNEL.failed.log`.
fn akmods_failed(host: &Host, cache: &Seen<Listing>, release: &str) -> Seen<Vec<BuildLog>> {
    let mut logs = Vec::new();
    let folders = names_where(cache.clone(), |name| name.contains("nvidia"));
    let end = format!("-for-{release}.failed.log");
    for folder in folders.got().into_iter().flatten() {
        let folder = format!("/var/cache/akmods/{folder}");
        match host.list(&folder) {
            Seen::Got(listing) => {
                let failed = listing.names.iter().filter(|name| name.ends_with(&end));
                for name in failed.take(BUILD_LINES) {
                    let log = build_log(host, &format!("{folder}/{name}"));
                    logs.extend(log.into_got().map(|log| BuildLog {
                        kernel: Some(release.to_owned()),
                        ..log
                    }));
                }
                if !listing.whole && logs.is_empty() {
                    return Seen::default();
                }
            }
            Seen::Absent => {}
            unknown => return unknown.map(|_| Vec::new()),
        }
    }
    folders.map(|_| logs)
}

/// The kernel that a build was for, and its first errors.
fn build_log(host: &Host, path: &str) -> Seen<BuildLog> {
    let kept = Cell::new(0);
    let keep = |line: &str| {
        let wanted = line.len() <= BUILD_LINE_LIMIT
            && (kernel_of_log(line).is_some() || names_error(line))
            && kept.get() <= BUILD_LINES;
        kept.set(kept.get() + usize::from(wanted));
        wanted
    };
    host.lines(path, &keep).map(|kept| BuildLog {
        path: path.to_owned(),
        kernel: kept.lines.iter().find_map(|line| kernel_of_log(line)),
        errors: kept
            .lines
            .into_iter()
            .filter(|line| names_error(line))
            .take(BUILD_LINES)
            .map(|line| line.trim().to_owned())
            .collect(),
    })
}

/// `DKMS make.log for nvidia-580.95.05 for kernel 6.14.0-33-generic (x86_64)`, with more words in newer versions of dkms.
fn kernel_of_log(line: &str) -> Option<String> {
    let (_, rest) = line.strip_prefix("DKMS ")?.split_once("make.log for ")?;
    let (_, rest) = rest.split_once(" for kernel ")?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// A line of compilers, `make` or a shell that says what went wrong. NVIDIA's own tests of the kernel print none.
fn names_error(line: &str) -> bool {
    ["error:", "ERROR:", "*** "]
        .iter()
        .any(|mark| line.contains(mark))
        || line.ends_with(": not found")
        || line.ends_with(": command not found")
        || line.contains("No space left on device")
}

fn is_driver_source(name: &str) -> bool {
    name.starts_with("nvidia") || name == "amdgpu" || name.starts_with("amdgpu-")
}

/// The names that are wanted, each with what there is of it.
fn named<T>(listing: Listing, wanted: impl Fn(&str) -> bool, of: impl Fn(&str) -> T) -> Named<T> {
    let names: Vec<String> = listing
        .names
        .into_iter()
        .filter(|name| wanted(name))
        .collect();
    Named {
        whole: listing.whole && names.len() <= ITEM_LIMIT,
        items: names
            .into_iter()
            .take(ITEM_LIMIT)
            .map(|name| {
                let item = of(&name);
                (name, item)
            })
            .collect(),
    }
}

/// Versions of a module. Beside them stand links to builds (`kernel-RELEASE-ARCHITECTURE`) and the module that was there
/// before.
fn dkms_module(host: &Host, module: &str, release: Option<&str>) -> Named<DkmsVersion> {
    let folder = format!("/var/lib/dkms/{module}");
    let is_version = |name: &str| !name.starts_with("kernel-") && name != "original_module";
    host.list(&folder)
        .map(|listing| {
            named(listing, is_version, |version| {
                dkms_version(host, &format!("{folder}/{version}"), release)
            })
        })
        .into_got()
        .unwrap_or_default()
}

/// `RELEASE/ARCHITECTURE/module` holds what was built. Without a file there the build failed.
fn dkms_version(host: &Host, folder: &str, release: Option<&str>) -> DkmsVersion {
    let is_kernel = |name: &str| !["build", "source", "log"].contains(&name);
    let Seen::Got(listing) = host.list(folder) else {
        return DkmsVersion::default();
    };
    // Without a link to the source dkms does not count the version as its own.
    let conf = if listing.names.iter().any(|name| name == "source") {
        host.exists(&format!("{folder}/source/dkms.conf"))
    } else {
        Seen::default()
    };
    let mut kernels = named(listing, is_kernel, |release| {
        dkms_built(host, &format!("{folder}/{release}"))
    });
    kernels.whole &= kernels.items.values().all(Option::is_some);
    let is_built = |release: &str| kernels.items.get(release) == Some(&Some(true));
    let log = match release {
        Some(release) if !is_built(release) => build_log(host, &format!("{folder}/build/make.log")),
        _ => Seen::default(),
    };
    DkmsVersion {
        conf,
        log,
        kernels: Named {
            whole: kernels.whole,
            items: kernels
                .items
                .into_iter()
                .filter(|(_, built)| *built == Some(true))
                .map(|(release, _)| (release, ()))
                .collect(),
        },
    }
}

/// Whether a built module is there; None: cannot be told.
fn dkms_built(host: &Host, folder: &str) -> Option<bool> {
    let architectures = host.list(folder).into_got()?;
    let mut whole = architectures.whole;
    for architecture in architectures.names.iter().take(ITEM_LIMIT) {
        match host.list(&format!("{folder}/{architecture}/module")) {
            Seen::Got(listing) if !listing.names.is_empty() => return Some(true),
            Seen::Got(listing) => whole &= listing.whole,
            Seen::Absent => {}
            Seen::Unasked(_) | Seen::Failed(_) => whole = false,
        }
    }
    whole.then_some(false)
}

/// Names of a listing that fit. An empty answer counts only where the listing is whole.
fn names_where(listing: Seen<Listing>, fits: impl Fn(&str) -> bool) -> Seen<Vec<String>> {
    listing.and_then(|listing| {
        let whole = listing.whole;
        let names: Vec<String> = listing
            .names
            .into_iter()
            .filter(|name| fits(name))
            .take(ITEM_LIMIT)
            .collect();
        if names.is_empty() && !whole {
            Seen::default()
        } else {
            Seen::Got(names)
        }
    })
}

/// What two places hold together. One that holds nothing says nothing while the other is unknown.
fn both(first: Seen<Vec<String>>, second: Seen<Vec<String>>) -> Seen<Vec<String>> {
    match (first, second) {
        (Seen::Got(mut names), Seen::Got(more)) => {
            names.extend(more);
            Seen::Got(names)
        }
        (Seen::Absent, other) | (other, Seen::Absent) => other,
        (Seen::Got(names), unknown) | (unknown, Seen::Got(names)) => {
            if names.is_empty() {
                unknown
            } else {
                Seen::Got(names)
            }
        }
        (unknown, _) => unknown,
    }
}

/// Source `modprobe`.
pub fn modprobe(host: &Host) -> Seen<ModprobeConfig> {
    let mut config = ModprobeConfig::default();
    let mut masked = BTreeSet::new();
    for folder in MODPROBE_FOLDERS {
        let is_usr = *folder == "/lib/modprobe.d"
            && host.real(folder).got().map(String::as_str) == Some("/usr/lib/modprobe.d");
        if is_usr {
            continue;
        }
        let listing = host.list(folder);
        let names: Vec<String> = listing
            .got()
            .into_iter()
            .flat_map(|listing| &listing.names)
            .filter(|name| name.ends_with(".conf"))
            .cloned()
            .collect();
        config.folders.insert(
            (*folder).to_owned(),
            listing.map(|listing| listing.whole && names.len() <= ITEM_LIMIT),
        );
        for name in names.into_iter().take(ITEM_LIMIT) {
            if masked.insert(name.clone()) {
                let path = format!("{folder}/{name}");
                let lines = modprobe_file(host, &path);
                config.files.insert(path, lines);
            }
        }
    }
    Seen::Got(config)
}

fn modprobe_file(host: &Host, path: &str) -> Seen<Vec<ConfigLine>> {
    match host.text(path) {
        Seen::Got(text) => Seen::Got(parse_modprobe(&text)),
        // The usual way to mask a packaged file.
        _ if host.link(path) == Seen::Got("/dev/null".to_owned()) => Seen::Got(Vec::new()),
        other => other.map(|_| Vec::new()),
    }
}

/// Lines that name a GPU module. A backslash at the end joins the next line; a line that begins with `#` is a comment.
fn parse_modprobe(text: &str) -> Vec<ConfigLine> {
    let mut lines = Vec::new();
    let mut open: Option<ConfigLine> = None;
    for (index, line) in text.lines().enumerate() {
        let continued = line.strip_suffix('\\');
        let part = continued.unwrap_or(line);
        let mut joined = open.take().unwrap_or_else(|| ConfigLine {
            number: index + 1,
            text: String::new(),
        });
        joined.text.push_str(part);
        if continued.is_some() {
            open = Some(joined);
        } else {
            lines.push(joined);
        }
    }
    lines.extend(open);
    lines
        .into_iter()
        .map(|line| ConfigLine {
            text: line.text.trim().to_owned(),
            ..line
        })
        .filter(|line| !line.text.starts_with('#') && names_gpu_module(&line.text))
        .take(ITEM_LIMIT)
        .collect()
}

fn names_gpu_module(line: &str) -> bool {
    line.split(|character: char| character.is_whitespace() || ",;&|".contains(character))
        .any(|word| gpu_module(word).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_base_names_only() {
        for (file, module) in [
            ("nvidia.ko", "nvidia"),
            ("nvidia-uvm.ko.zst", "nvidia_uvm"),
            ("nvidia_drm.ko.xz", "nvidia_drm"),
            ("nvidia-current.ko", "nvidia"),
            ("nvidia-current-uvm.ko.gz", "nvidia_uvm"),
            ("nvidia-legacy-390xx-modeset.ko", "nvidia_modeset"),
            ("nvidia-tesla-470-drm.ko", "nvidia_drm"),
            ("nvidia-384.ko", "nvidia"),
            ("amdgpu.ko.xz", "amdgpu"),
            ("nova_core.ko", "nova_core"),
        ] {
            assert_eq!(module_of_file(file).as_deref(), Some(module), "{file}");
        }
        for file in [
            "nvidiafb.ko",
            "i2c-nvidia-gpu.ko",
            "nvidia-wmi-ec-backlight.ko",
            "nvidia.ko.bak",
            "nvidia",
            "nvidia-current",
            "xnvidia.ko",
            "nvidia-.ko",
            ".ko",
            "vfio-pci.ko",
        ] {
            assert_eq!(module_of_file(file), None, "{file}");
        }
    }

    #[test]
    fn dep_lines() {
        assert_eq!(
            module_of_dep_line("updates/dkms/nvidia-uvm.ko: updates/dkms/nvidia.ko"),
            Some(("nvidia_uvm".to_owned(), "updates/dkms/nvidia-uvm.ko"))
        );
        assert_eq!(
            module_of_dep_line("kernel/drivers/video/fbdev/nvidia/nvidiafb.ko: x.ko"),
            None
        );
        assert_eq!(module_of_dep_line("kernel/x.ko: updates/nvidia.ko"), None);
        assert_eq!(module_of_dep_line(""), None);
    }

    #[test]
    fn modprobe_lines_are_joined_and_filtered() {
        let lines = parse_modprobe(
            "# blacklist nvidia\nblacklist nvidiafb\noptions nvidia \\\n  NVreg_DeviceFileMode=0660 \\\n  NVreg_DeviceFileGID=44\n  #blacklist nouveau\ninstall nvidia-uvm /bin/false\nalias nouveau off\nblacklist i2c_nvidia_gpu\noptions vfio-pci ids=10de:2684\nblacklist nvidia-current\n",
        );
        let found: Vec<(usize, &str)> = lines
            .iter()
            .map(|line| (line.number, line.text.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (
                    3,
                    "options nvidia   NVreg_DeviceFileMode=0660   NVreg_DeviceFileGID=44"
                ),
                (7, "install nvidia-uvm /bin/false"),
                (8, "alias nouveau off"),
                (10, "options vfio-pci ids=10de:2684"),
                (11, "blacklist nvidia-current"),
            ]
        );
    }

    #[test]
    fn a_comment_may_be_continued_and_the_text_may_end_in_a_backslash() {
        let lines = parse_modprobe("# off \\\nblacklist nvidia\nblacklist amdgpu \\");
        assert_eq!(lines.len(), 1);
        assert_eq!(
            (lines[0].number, lines[0].text.as_str()),
            (3, "blacklist amdgpu")
        );
        assert!(parse_modprobe("\\\n\\\n\u{fffd}\u{1b}[0m").is_empty());
    }

    #[test]
    fn logs_of_builds() {
        for (line, kernel) in [
            (
                "DKMS make.log for nvidia-580.95.05 for kernel 6.14.0-33-generic (x86_64)",
                Some("6.14.0-33-generic"),
            ),
            (
                "DKMS (dkms-3.2.2) make.log for nvidia/580.95.05 for kernel 6.17.7-arch1-1 (x86_64)",
                Some("6.17.7-arch1-1"),
            ),
            ("make.log for nvidia for kernel 6.1", None),
            ("DKMS make.log for nvidia for kernel ", None),
        ] {
            assert_eq!(kernel_of_log(line).as_deref(), kernel, "{line}");
        }
        for line in [
            "/var/lib/dkms/nvidia/470.256.02/build/nvidia/nv-acpi.c:84:19: error: too few arguments",
            "make[2]: *** [scripts/Makefile.build:243: nvidia/nv.o] Error 1",
            "*** Failed CC version check. Bailing out! ***",
            "/bin/sh: 1: gcc-12: not found",
            "ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol '__rcu_read_lock'",
        ] {
            assert!(names_error(line), "{line}");
        }
        for line in [
            "  CC [M]  nvidia/nv-errors.o",
            "warning: the compiler differs from the one used to build the kernel",
            "",
        ] {
            assert!(!names_error(line), "{line}");
        }
    }

    #[test]
    fn two_places_together() {
        let names = |name: &str| Seen::Got(vec![name.to_owned()]);
        let unknown = || Seen::Unasked(Why::NotCaptured);
        assert_eq!(both(names("a"), Seen::Absent), names("a"));
        assert_eq!(both(Seen::Absent, Seen::Absent), Seen::Absent);
        assert_eq!(both(unknown(), names("a")), names("a"));
        assert_eq!(both(Seen::Got(Vec::new()), unknown()), unknown());
        assert_eq!(both(Seen::Absent, unknown()), unknown());
    }
}
