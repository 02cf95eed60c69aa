//! Fills `facts/software.rs`: libraries, toolkits and tools, known by their files alone. Nothing is loaded or run.

mod toolkits;

use super::kernel;
use crate::facts::software::{Library, RocmInstall, Software};
use crate::facts::{Failure, Seen};
use crate::host::{Host, beside};
use std::collections::BTreeMap;

/// Where else than in the distribution's folder a library may be at home: while nothing is known of that place, the library
/// is not proved absent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// Nowhere else.
    Distribution,
    /// Below `/opt/rocm`.
    Rocm,
}

/// Libraries of interest, each with the file names under which it may be found. Packages without development files have
/// only the name with the version. Those of ROCm change that number again and again, so other numbers are looked for in the
/// listings of the folders; that none is there is proved by the names here.
const LIBRARIES: &[(&str, Home, &[&str])] = &[
    ("libOpenCL.so.1", Home::Distribution, &["libOpenCL.so.1"]),
    ("libamd_smi.so", Home::Rocm, &["libamd_smi.so"]),
    (
        "libamdhip64.so",
        Home::Rocm,
        &[
            "libamdhip64.so",
            "libamdhip64.so.10",
            "libamdhip64.so.7",
            "libamdhip64.so.6",
            "libamdhip64.so.5",
        ],
    ),
    ("libcuda.so.1", Home::Distribution, &["libcuda.so.1"]),
    ("libdxcore.so", Home::Distribution, &["libdxcore.so"]),
    (
        "libhsa-runtime64.so.1",
        Home::Rocm,
        &["libhsa-runtime64.so.1"],
    ),
    (
        "libigdrcl.so",
        Home::Distribution,
        &["intel-opencl/libigdrcl.so"],
    ),
    (
        "libnvidia-ml.so.1",
        Home::Distribution,
        &["libnvidia-ml.so.1"],
    ),
    (
        "libnvidia-opencl.so.1",
        Home::Distribution,
        &["libnvidia-opencl.so.1"],
    ),
    (
        "libnvidia-ptxjitcompiler.so.1",
        Home::Distribution,
        &["libnvidia-ptxjitcompiler.so.1"],
    ),
    (
        "librocdxg.so",
        Home::Rocm,
        &["librocdxg.so", "librocdxg.so.1"],
    ),
    (
        "librocm_smi64.so",
        Home::Rocm,
        &[
            "librocm_smi64.so",
            "librocm_smi64.so.1",
            "librocm_smi64.so.7",
            "librocm_smi64.so.6",
            "librocm_smi64.so.5",
        ],
    ),
    ("libvulkan.so.1", Home::Distribution, &["libvulkan.so.1"]),
    (
        "libze_intel_gpu.so.1",
        Home::Distribution,
        &["libze_intel_gpu.so.1"],
    ),
    (
        "libze_loader.so.1",
        Home::Distribution,
        &["libze_loader.so.1"],
    ),
];
/// Folders of which a distribution uses one for its libraries.
const MAIN_FOLDERS: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];
/// The same where `/lib` is no link to `/usr/lib`.
const OLD_FOLDERS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib64",
    "/lib",
];
/// Folders that drivers, toolkits and other systems add: nothing but their own settings brings the loader there.
const OTHER_FOLDERS: &[&str] = &[
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/nvidia/current",
    // Jetson boards: the older place, and that of JetPack 6.
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
    "/run/current-system/profile/lib",
    WSL_FOLDER,
    "/opt/rocm/lib",
];
const WSL_FOLDER: &str = "/usr/lib/wsl/lib";
/// Folders of libraries for 32-bit programs, and what is looked for there: whether only these parts of a driver were
/// installed.
const NARROW_FOLDERS: &[&str] = &[
    "/usr/lib/i386-linux-gnu",
    "/usr/lib/arm-linux-gnueabihf",
    "/usr/lib32",
];
const NARROW_LIBRARIES: &[&str] = &["libcuda.so.1", "libnvidia-ml.so.1"];
/// What brings the loader to a file, as the facts say it.
const LOADER_PATH: &str = "LD_LIBRARY_PATH";
const LOADER_CACHE: &str = "/etc/ld.so.cache";
const LOADER_CONFIG: &str = "/etc/ld.so.conf";
const DEFAULT_FOLDER: &str = "default folder";
/// Most folders that the environment or `ld.so.conf.d` may add.
const ADDED_LIMIT: usize = 64;

/// Programs of interest.
const PROGRAMS: &[&str] = &[
    "amd-smi",
    "clinfo",
    "hipcc",
    "nvcc",
    "nvidia-smi",
    "nvidia-uninstall",
    "ollama",
    "rocm-smi",
    "rocminfo",
    "vulkaninfo",
    "xpu-smi",
];
/// Folders of programs.
const PROGRAM_FOLDERS: &[&str] = &[
    "/usr/bin",
    "/usr/local/bin",
    "/opt/rocm/bin",
    "/usr/local/cuda/bin",
    "/opt/cuda/bin",
    "/usr/lib/wsl/lib",
    "/run/current-system/sw/bin",
];

/// Source `software`.
pub fn software(host: &Host) -> Seen<Software> {
    let rocm = toolkits::rocm(host);
    let (cuda_toolkits, nvcc) = toolkits::cuda(host);
    let cached = cached(host);
    let folders = library_folders(host, cached.as_deref(), rocm.got());
    Seen::Got(Software {
        libraries: LIBRARIES
            .iter()
            .map(|(name, home, files)| {
                let cached = cached.as_deref().unwrap_or_default();
                let found = library(host, &folders, cached, name, *home, files);
                ((*name).to_owned(), found)
            })
            .collect(),
        library_folders: folders
            .into_iter()
            .map(|folder| (folder.path, folder.there))
            .collect(),
        nvcc,
        cuda_toolkits,
        rocm,
        programs: PROGRAMS
            .iter()
            .map(|name| ((*name).to_owned(), program(host, name)))
            .collect(),
    })
}

/// A folder that is asked for libraries.
struct Folder {
    path: String,
    /// Where its links end.
    real: Seen<String>,
    there: Seen<()>,
    /// What brings the loader to every file in it.
    via: Option<&'static str>,
    /// The distribution may have its libraries here.
    main: bool,
    /// That nothing is known of it keeps a library from being proved absent.
    needed: bool,
    /// It holds libraries for 32-bit programs.
    narrow: bool,
    /// Files of ROCm's libraries in it that have a number, as far as it could be listed.
    numbered: Vec<String>,
}

/// A library of ROCm under its name with one number, whichever.
fn is_numbered(name: &str, home: Home, file: &str) -> bool {
    let stem = name.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
    let number = file
        .strip_prefix(stem)
        .and_then(|rest| rest.strip_prefix('.'));
    home == Home::Rocm
        && number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// Files of ROCm's libraries in a folder that have a number.
fn numbered(host: &Host, folder: &str) -> Vec<String> {
    let wanted = |file: &str| {
        LIBRARIES
            .iter()
            .any(|(name, home, _)| is_numbered(name, *home, file))
    };
    host.names(folder, wanted)
        .into_got()
        .unwrap_or_default()
        .names
}

/// Paths that the loader's cache has for libraries of interest that 64-bit programs can load, in its order, with the links
/// in their folders resolved. None: it cannot be read.
fn cached(host: &Host) -> Option<Vec<String>> {
    let wanted = |file: &str| {
        LIBRARIES
            .iter()
            .any(|(name, home, files)| files.contains(&file) || is_numbered(name, *home, file))
    };
    let lines = host
        .loader_cache(&|line| line.split(' ').next().is_some_and(wanted))
        .into_got()
        .filter(|lines| lines.whole)?
        .lines;
    let mut folders: BTreeMap<&str, String> = BTreeMap::new();
    let paths = lines
        .iter()
        .filter_map(|line| {
            let (kind, path) = line.split_once(") => ")?;
            let wide = ["x86-64", "AArch64", "64bit", "double-float"];
            let (folder, name) = path.rsplit_once('/')?;
            if !wide.iter().any(|word| kind.ends_with(word)) || plain_folder(folder).is_none() {
                return None;
            }
            let folder = folders
                .entry(folder)
                .or_insert_with(|| host.real(folder).into_got().unwrap_or(folder.to_owned()));
            Some(format!("{folder}/{name}"))
        })
        .take(ADDED_LIMIT)
        .collect();
    Some(paths)
}

/// The folders in the loader's order: its path, its cache or else its configuration, its defaults, then those of drivers
/// and toolkits. Left out: folders that do not exist, and those that are another one by a link.
fn library_folders(
    host: &Host,
    cached: Option<&[String]>,
    rocm: Option<&BTreeMap<String, RocmInstall>>,
) -> Vec<Folder> {
    let is_wsl = kernel::release(host)
        .got()
        .is_some_and(|release| release.to_ascii_lowercase().contains("microsoft"));
    let machine = host.system().into_got().unwrap_or_default().machine;
    let foreign: &[&str] = match machine.as_str() {
        "x86_64" => &["aarch64-linux-gnu", "arm-linux-gnu"],
        "aarch64" => &["x86_64-linux-gnu", "i386-linux-gnu"],
        _ => &[],
    };
    let with = |via: Option<&'static str>| move |path: &&str| ((*path).to_owned(), via);
    let mut paths: Vec<(String, Option<&'static str>)> = Vec::new();
    paths.extend(
        loader_path(host)
            .into_iter()
            .map(|path| (path, Some(LOADER_PATH))),
    );
    match cached {
        // The loader is brought to single files there; `library` knows which.
        Some(cached) => paths.extend(
            cached
                .iter()
                .filter_map(|path| Some((path.rsplit_once('/')?.0.to_owned(), None))),
        ),
        None => {
            let folders = configured_folders(host).into_iter();
            paths.extend(folders.map(|path| (path, Some(LOADER_CONFIG))));
        }
    }
    let defaults = MAIN_FOLDERS.iter().chain(OLD_FOLDERS);
    paths.extend(defaults.map(with(Some(DEFAULT_FOLDER))));
    paths.extend(OTHER_FOLDERS.iter().map(with(None)));
    paths.extend(
        rocm.into_iter()
            .flat_map(|rocm| rocm.keys())
            .map(|root| (format!("{root}/lib"), None)),
    );
    paths.extend(NARROW_FOLDERS.iter().map(with(None)));

    let mut folders: Vec<Folder> = Vec::new();
    for (path, via) in paths {
        if foreign.iter().any(|foreign| path.contains(foreign)) {
            continue;
        }
        let known = |folder: &&mut Folder| folder.path == path;
        if let Some(folder) = folders.iter_mut().find(known) {
            folder.via = folder.via.or(via);
            continue;
        }
        let real = target(host, &path);
        if real.is_absent() {
            continue;
        }
        let known = |folder: &&mut Folder| real.got().is_some() && folder.real == real;
        if let Some(folder) = folders.iter_mut().find(known) {
            folder.via = folder.via.or(via);
            continue;
        }
        let target = real.got().unwrap_or(&path);
        let narrow = NARROW_FOLDERS.contains(&path.as_str());
        folders.push(Folder {
            main: MAIN_FOLDERS.contains(&target.as_str()),
            needed: is_wsl && path == WSL_FOLDER,
            numbered: if narrow {
                Vec::new()
            } else {
                numbered(host, &path)
            },
            narrow,
            there: real.as_ref().map(|_| ()),
            real,
            via,
            path,
        });
    }
    // Where each architecture has a folder of its own, the loader was not built to look here.
    let has_own = |folder: &Folder| folder.path.ends_with("-linux-gnu") && folder.main;
    if folders
        .iter()
        .any(|folder| has_own(folder) && folder.there.got().is_some())
    {
        for folder in &mut folders {
            if folder.path.ends_with("/lib64") && folder.via == Some(DEFAULT_FOLDER) {
                folder.via = None;
            }
        }
    }
    folders
}

/// `LD_LIBRARY_PATH`. Folders in homes are private and were replaced by the door.
fn loader_path(host: &Host) -> Vec<String> {
    let path = host.env("LD_LIBRARY_PATH").into_got().unwrap_or_default();
    path.split([':', ';'])
        .filter_map(plain_folder)
        .take(ADDED_LIMIT)
        .collect()
}

/// Folders that `/etc/ld.so.conf` and the files that it includes name.
fn configured_folders(host: &Host) -> Vec<String> {
    let usual = || "include ld.so.conf.d/*.conf".to_owned();
    let text = host.text(LOADER_CONFIG).into_got().unwrap_or_else(usual);
    let mut folders = Vec::new();
    for line in text.lines().take(ADDED_LIMIT) {
        match line.trim_start().strip_prefix("include") {
            Some(patterns) if patterns.starts_with(char::is_whitespace) => {
                let patterns = patterns.split('#').next().unwrap_or_default();
                for pattern in patterns.split_whitespace() {
                    for file in included(host, &beside(LOADER_CONFIG, pattern)) {
                        let text = host.text(&file).into_got().unwrap_or_default();
                        folders.extend(text.lines().filter_map(plain_folder));
                    }
                }
            }
            _ => folders.extend(plain_folder(line)),
        }
    }
    folders.truncate(ADDED_LIMIT);
    folders
}

/// Files that a pattern names whose last part may hold one `*`.
fn included(host: &Host, pattern: &str) -> Vec<String> {
    let Some((folder, name)) = pattern.rsplit_once('/') else {
        return Vec::new();
    };
    let Some((start, end)) = name.split_once('*') else {
        return vec![pattern.to_owned()];
    };
    let names = host.list(folder).into_got().unwrap_or_default().names;
    names
        .iter()
        .filter(|name| {
            let rest = name.strip_prefix(start);
            rest.is_some_and(|rest| rest.ends_with(end)) && !name.starts_with('.')
        })
        .take(ADDED_LIMIT)
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

/// An absolute folder of 64-bit libraries, outside of homes.
fn plain_folder(text: &str) -> Option<String> {
    let path = text.split('#').next().unwrap_or_default().trim();
    let path = path.trim_end_matches('/');
    let left_out = ["/home/", "/root/", "i386", "i686", "lib32", "libx32"];
    (path.starts_with('/') && !left_out.iter().any(|word| path.contains(word)))
        .then(|| path.to_owned())
}

/// Where the links of a path end. Most paths that are asked do not exist, and `lstat` says so at a fraction of the cost.
fn target(host: &Host, path: &str) -> Seen<String> {
    match host.stat(path) {
        Seen::Absent => Seen::Absent,
        _ => host.real(path),
    }
}

/// Every file of a library, in the order in which the loader would take them. See `Software::libraries` for what proves
/// that there is none.
fn library(
    host: &Host,
    folders: &[Folder],
    cached: &[String],
    name: &str,
    home: Home,
    files: &[&str],
) -> Seen<Vec<Library>> {
    // Each with its place in the order.
    let mut found: Vec<(usize, Library)> = Vec::new();
    let mut any_wide = false;
    let mut failure: Option<Failure> = None;
    let mut unknown = false;
    let mut all_answered = true;
    let mut main_folder_answered = false;
    for folder in folders {
        if folder.narrow && !NARROW_LIBRARIES.contains(&name) {
            continue;
        }
        let mut folder_answered = true;
        let numbered = folder
            .numbered
            .iter()
            .map(String::as_str)
            .filter(|file| !files.contains(file) && is_numbered(name, home, file));
        for file in files.iter().copied().chain(numbered) {
            let path = format!("{}/{file}", folder.path);
            match target(host, &path) {
                Seen::Got(target) => {
                    let (order, via) = way_to(folder, file, cached);
                    let library = library_file(host, name, path, target, via);
                    let is_narrow =
                        folder.narrow || library.elf.got().is_some_and(|elf| elf.class == 32);
                    any_wide |= !is_narrow;
                    found.push((order, library));
                }
                Seen::Absent => {}
                Seen::Unasked(_) => folder_answered = false,
                Seen::Failed(why) => {
                    folder_answered = false;
                    failure.get_or_insert(why);
                }
            }
        }
        if folder.narrow {
            continue;
        }
        let needed = folder.needed || (home == Home::Rocm && folder.path.starts_with("/opt/rocm"));
        unknown |= needed && !folder_answered;
        all_answered &= folder_answered;
        main_folder_answered |= folder_answered && folder.main && folder.there.got().is_some();
    }
    found.sort_by_key(|(order, _)| *order);
    let found: Vec<Library> = found.into_iter().map(|(_, library)| library).collect();
    let proved = (main_folder_answered || all_answered) && !unknown;
    match failure {
        // What only 32-bit programs can load does not prove that there is nothing else.
        _ if any_wide => Seen::Got(found),
        Some(why) => Seen::Failed(why),
        None if !proved => Seen::default(),
        None if found.is_empty() => Seen::Absent,
        None => Seen::Got(found),
    }
}

/// What brings the loader to a file, and the place of that in the loader's order: its path, its cache or configuration, its
/// default folders, nothing at all.
fn way_to(folder: &Folder, file: &str, cached: &[String]) -> (usize, Option<&'static str>) {
    let in_cache = || {
        let path = format!("{}/{file}", folder.real.got()?);
        cached.iter().position(|cached| *cached == path)
    };
    match folder.via {
        Some(LOADER_PATH) => (0, folder.via),
        Some(LOADER_CONFIG) => (1, folder.via),
        via => match in_cache() {
            Some(place) => (1 + place, Some(LOADER_CACHE)),
            None if via.is_some() => (usize::MAX - 1, via),
            None => (usize::MAX, None),
        },
    }
}

fn library_file(
    host: &Host,
    name: &str,
    path: String,
    target: String,
    via: Option<&str>,
) -> Library {
    let of_nvidia = name.starts_with("libcuda.") || name.starts_with("libnvidia-");
    Library {
        path,
        bytes: host
            .stat(&target)
            .and_then(|stat| stat.size.map_or_else(Seen::default, Seen::Got)),
        via: via.map(str::to_owned),
        elf: if of_nvidia {
            host.elf(&target)
        } else {
            Seen::default()
        },
        target: Seen::Got(target),
    }
}

/// The first file of that name. `Absent`: every folder answered, and none has it.
fn program(host: &Host, name: &str) -> Seen<String> {
    first_known(
        PROGRAM_FOLDERS
            .iter()
            .map(|folder| format!("{folder}/{name}"))
            .map(|path| target(host, &path).map(|_| path)),
    )
}

/// The first answer; without one, the first that is unknown; else absent.
fn first_known<T>(answers: impl Iterator<Item = Seen<T>>) -> Seen<T> {
    let mut result = Seen::Absent;
    for answer in answers {
        match answer {
            Seen::Got(value) => return Seen::Got(value),
            Seen::Absent => {}
            unknown if result.is_absent() => result = unknown,
            _ => {}
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Why;

    #[test]
    fn folders_of_the_loader() {
        assert_eq!(
            plain_folder("/usr/lib/wsl/lib/").as_deref(),
            Some("/usr/lib/wsl/lib")
        );
        for other in [
            "# generated",
            "include x",
            "",
            "/",
            "/home/a/lib",
            "/usr/lib32",
            "/usr/lib/i386-linux-gnu",
        ] {
            assert_eq!(plain_folder(other), None, "{other}");
        }
    }

    #[test]
    fn the_first_answer_wins_and_one_unknown_spoils_the_proof() {
        let unknown = Seen::Unasked(Why::NotCaptured);
        assert_eq!(
            first_known([Seen::Absent, unknown.clone(), Seen::Got(1)].into_iter()),
            Seen::Got(1)
        );
        assert_eq!(
            first_known([Seen::Absent, unknown.clone()].into_iter()),
            unknown
        );
        assert_eq!(
            first_known::<u8>([Seen::Absent, Seen::Absent].into_iter()),
            Seen::Absent
        );
    }

    #[test]
    fn tables_are_sorted() {
        assert!(LIBRARIES.is_sorted_by(|one, other| one.0 < other.0));
        assert!(PROGRAMS.is_sorted());
    }
}
