//! Fills `facts/software.rs`: libraries, toolkits and tools, known by their files alone. Nothing is loaded or run.

mod building;
mod toolkits;

use super::kernel;
use crate::facts::software::{
    CudaBuild, Library, PRIVATE_LIBRARIES, RocmInstall, Software, is_file_of,
};
use crate::facts::{Failure, Seen};
use crate::host::{Host, Listing, Stat, beside};
use std::cell::RefCell;
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
const LOADER_PRELOAD: &str = "LD_PRELOAD";
const LOADER_PATH: &str = "LD_LIBRARY_PATH";
const LOADER_CACHE: &str = "/etc/ld.so.cache";
const LOADER_CONFIG: &str = "/etc/ld.so.conf";
const DEFAULT_FOLDER: &str = "default folder";
/// Most folders that variables or `ld.so.conf.d` may add.
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
    let names = Names::of(host);
    let rocm = toolkits::rocm(host, &names);
    let (cuda_toolkits, nvcc) = toolkits::cuda(host, &names);
    let cached = cached(host);
    let folders = library_folders(host, &names, cached.as_deref(), rocm.got());
    let toolkits = cuda_toolkits.got().into_iter().flat_map(BTreeMap::keys);
    let cuda_builds: BTreeMap<String, CudaBuild> = toolkits
        .map(|toolkit| (toolkit.clone(), building::of_toolkit(host, toolkit)))
        .collect();
    let host_compiler = if cuda_builds.is_empty() {
        Seen::default()
    } else {
        Seen::Got(building::host_compiler(host))
    };
    let mut program_folders = PROGRAM_FOLDERS.to_vec();
    program_folders.retain(|folder| !host.stat(folder).is_absent());
    let libraries = LIBRARIES
        .iter()
        .map(|(name, home, files)| {
            let cached = cached.as_deref().unwrap_or_default();
            let found = library(host, &folders, cached, name, *home, files);
            ((*name).to_owned(), found)
        })
        .collect();
    let preloaded = PRIVATE_LIBRARIES.iter().flat_map(|name| {
        let files = preloaded(host, name).into_iter();
        files.map(|(path, target)| (path, target.map(|_| ())))
    });
    Seen::Got(Software {
        libraries,
        library_folders: folders
            .into_iter()
            .map(|folder| (folder.path, folder.there.into_inner()))
            .chain(preloaded)
            .collect(),
        loader_cache_read: cached.is_some(),
        nvcc,
        cuda_toolkits,
        cuda_home: toolkits::cuda_home(host),
        cuda_link: target(host, "/usr/local/cuda"),
        cuda_builds,
        host_compiler,
        rocm_link: if rocm.got().is_some_and(|installs| installs.len() > 1) {
            target(host, "/opt/rocm")
        } else {
            Seen::default()
        },
        rocm,
        programs: PROGRAMS
            .iter()
            .map(|name| ((*name).to_owned(), program(host, &program_folders, name)))
            .collect(),
    })
}

/// A folder that is asked for libraries.
struct Folder {
    path: String,
    /// Where its links end.
    real: Seen<String>,
    /// Of a private one also whether the libraries in it answered: nothing else shows that one may be there.
    there: RefCell<Seen<()>>,
    /// What brings the loader to every file in it.
    via: Option<&'static str>,
    /// The distribution may have its libraries here.
    main: bool,
    /// That nothing is known of it keeps a library from being proved absent.
    needed: bool,
    /// It holds libraries for 32-bit programs.
    narrow: bool,
    /// It is somebody's own, and not listed.
    private: bool,
    /// Names of libraries in it.
    names: Listing,
}

impl Folder {
    /// Where the links of a file in it end. What the listing proves missing is not asked for: most files are.
    fn target(&self, host: &Host, file: &str) -> Seen<String> {
        let path = format!("{}/{file}", self.path);
        let name = first_part(file);
        if self.names.names.iter().any(|known| known == name) {
            host.real(&path)
        } else if self.names.whole && !self.names.kept {
            host.proved_absent(&path);
            Seen::Absent
        } else {
            target(host, &path)
        }
    }
}

/// The name in a folder that leads to a file below it.
fn first_part(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// A library of ROCm under its name with one number, whichever.
fn is_numbered(name: &str, home: Home, file: &str) -> bool {
    let number = || {
        let stem = name.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
        file.strip_prefix(stem)?.strip_prefix('.')
    };
    home == Home::Rocm
        && number().is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// Names of libraries in folders. These hold thousands, and several parts ask the same ones, so each is asked once.
struct Names<'host> {
    host: &'host Host,
    real: RefCell<BTreeMap<String, Seen<String>>>,
    listed: RefCell<BTreeMap<String, Seen<Listing>>>,
}

impl Names<'_> {
    fn of(host: &Host) -> Names<'_> {
        Names {
            host,
            real: RefCell::default(),
            listed: RefCell::default(),
        }
    }

    /// Where the links of a folder end.
    fn real(&self, folder: &str) -> Seen<String> {
        let mut real = self.real.borrow_mut();
        let ask = || target(self.host, folder);
        real.entry(folder.to_owned()).or_insert_with(ask).clone()
    }

    /// The names in a folder that any part wants.
    fn all(&self, folder: &str) -> Seen<Listing> {
        let mut listed = self.listed.borrow_mut();
        let listing = listed.entry(folder.to_owned()).or_insert_with(|| {
            self.host.names(folder, |file| {
                LIBRARIES.iter().any(|(name, home, files)| {
                    files.iter().any(|known| first_part(known) == file)
                        || is_numbered(name, *home, file)
                }) || toolkits::is_wanted(file)
            })
        });
        listing.clone()
    }

    /// Those of them that are wanted.
    fn some(&self, folder: &str, wanted: impl Fn(&str) -> bool) -> Seen<Listing> {
        self.all(folder).map(|mut listing| {
            listing.names.retain(|name| wanted(name));
            listing
        })
    }
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
        .loader_cache(&wanted)
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
    names: &Names,
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
        let real = names.real(&path);
        if real.is_absent() {
            continue;
        }
        let private = is_private(&path);
        // One that is asked for less stands for no other.
        let known = |folder: &&mut Folder| {
            real.got().is_some() && folder.real == real && folder.private == private
        };
        if let Some(folder) = folders.iter_mut().find(known) {
            folder.via = folder.via.or(via);
            continue;
        }
        let target = real.got().unwrap_or(&path);
        let narrow = NARROW_FOLDERS.contains(&path.as_str());
        folders.push(Folder {
            main: MAIN_FOLDERS.contains(&target.as_str()),
            needed: is_wsl && path == WSL_FOLDER,
            // A few names are not worth a listing.
            names: if narrow || private {
                Listing::default()
            } else {
                names.all(target).into_got().unwrap_or_default()
            },
            narrow,
            private,
            there: RefCell::new(real.as_ref().map(|_| ())),
            real,
            via,
            path,
        });
    }
    // Where each architecture has a folder of its own, the loader was not built to look here.
    let has_own = |folder: &Folder| folder.path.ends_with("-linux-gnu") && folder.main;
    if folders
        .iter()
        .any(|folder| has_own(folder) && folder.there.borrow().got().is_some())
    {
        for folder in &mut folders {
            if folder.path.ends_with("/lib64") && folder.via == Some(DEFAULT_FOLDER) {
                folder.via = None;
            }
        }
    }
    folders
}

/// `LD_LIBRARY_PATH`.
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

/// Libraries that `LD_PRELOAD` puts in front of all others under this name, with their ends: one that is loaded already is
/// taken for every other of its name. What else stands there the door left out.
fn preloaded(host: &Host, name: &str) -> Vec<(String, Seen<String>)> {
    let files = host.env(LOADER_PRELOAD).into_got().unwrap_or_default();
    files
        .split([':', ' '])
        .filter(|path| path.starts_with('/') && is_file_of(name, path))
        .take(ADDED_LIMIT)
        .map(|path| (path.to_owned(), target(host, path)))
        .collect()
}

/// A folder of a person.
fn is_private(path: &str) -> bool {
    let path = format!("{path}/");
    path.contains("/home/") || path.starts_with("/root/")
}

/// A folder of 64-bit libraries outside of homes.
fn system_folder(text: &str) -> Option<String> {
    plain_folder(text).filter(|path| !is_private(path))
}

/// An absolute folder of 64-bit libraries.
fn plain_folder(text: &str) -> Option<String> {
    let path = text.split('#').next().unwrap_or_default().trim();
    let path = path.trim_end_matches('/');
    let left_out = ["i386", "i686", "lib32", "libx32"];
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
        if folder.narrow && !NARROW_LIBRARIES.contains(&name)
            || folder.private && !PRIVATE_LIBRARIES.contains(&name)
        {
            continue;
        }
        let mut folder_answered = true;
        let numbered = folder.names.names.iter().map(String::as_str);
        let numbered =
            numbered.filter(|file| is_numbered(name, home, file) && !files.contains(file));
        for file in files.iter().copied().chain(numbered) {
            match folder.target(host, file) {
                Seen::Got(target) => {
                    let path = format!("{}/{file}", folder.path);
                    let (order, via) = way_to(folder, file, cached);
                    let library = library_file(host, name, path, target, via);
                    let is_narrow =
                        folder.narrow || library.elf.got().is_some_and(|elf| elf.class == 32);
                    any_wide |= !is_narrow;
                    found.push((order, library));
                }
                Seen::Absent => {}
                other => {
                    folder_answered = false;
                    if folder.private {
                        folder.there.replace(other.as_ref().map(|_| ()));
                    }
                    // Something of that name is there, whatever it is.
                    let name = first_part(file);
                    unknown |= folder.names.names.iter().any(|known| known == name);
                    if let Seen::Failed(why) = other {
                        failure.get_or_insert(why);
                    }
                }
            }
        }
        if folder.narrow || folder.private {
            continue;
        }
        let needed = folder.needed || (home == Home::Rocm && folder.path.starts_with("/opt/rocm"));
        unknown |= needed && !folder_answered;
        all_answered &= folder_answered;
        main_folder_answered |=
            folder_answered && folder.main && folder.there.borrow().got().is_some();
    }
    found.sort_by_key(|(order, _)| *order);
    let preloaded = match PRIVATE_LIBRARIES.contains(&name) {
        true => preloaded(host, name),
        false => Vec::new(),
    };
    let preloaded = preloaded.into_iter().filter_map(|(path, target)| {
        let target = target.into_got()?;
        Some(library_file(host, name, path, target, Some(LOADER_PRELOAD)))
    });
    let mut all: Vec<Library> = preloaded.collect();
    any_wide |= !all.is_empty();
    all.extend(found.into_iter().map(|(_, library)| library));
    let found = all;
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

/// What brings the loader to a file, and the place of that in the loader's order behind `LD_PRELOAD`: its path, its cache or configuration, its
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
fn program(host: &Host, folders: &[&str], name: &str) -> Seen<String> {
    Seen::first_of(folders.iter().map(|folder| {
        let path = format!("{folder}/{name}");
        program_file(host, &path).map(|_| path)
    }))
}

/// Where the links to a program end. `Absent` also where something else is in its place.
fn program_file(host: &Host, path: &str) -> Seen<String> {
    target(host, path).and_then(|target| match host.stat(&target) {
        Seen::Got(stat) if !may_run(&stat) => Seen::Absent,
        _ => Seen::Got(target),
    })
}

/// Where the links of the first program of that name on `PATH` end.
fn first_on_path(host: &Host, name: &str) -> Seen<String> {
    host.env("PATH").and_then(|path| {
        let folders = path.split(':').filter(|folder| folder.starts_with('/'));
        for folder in folders.take(ADDED_LIMIT) {
            match program_file(host, &format!("{}/{name}", folder.trim_end_matches('/'))) {
                Seen::Absent => {}
                found => return found,
            }
        }
        Seen::Absent
    })
}

/// Nothing shows that it is no program: a folder of that name, a pipe, a file without content or that nobody may run.
fn may_run(stat: &Stat) -> bool {
    stat.kind == "file" && stat.size != Some(0) && stat.mode.is_none_or(|mode| mode & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;
    use crate::host::Options;
    use crate::host::archive::Archive;
    use crate::host::machine::Entries;
    use crate::host::redact::Redactor;

    fn system() -> Tree {
        let mut tree = Tree::proved();
        tree.file("/usr/lib/libcuda.so.580.65.06", "");
        tree.link("/usr/lib/libcuda.so.1", "libcuda.so.580.65.06");
        tree.file("/usr/lib/libamdhip64.so.8", "");
        tree.file("/usr/lib/libz.so.1", "");
        tree
    }

    fn replayed(entries: Entries) -> Host {
        Host::new(
            Box::new(Archive::new(entries)),
            Redactor::off(),
            Options::default(),
        )
    }

    #[test]
    fn only_what_can_be_run_is_a_program() {
        let path = "/opt/cuda/bin/rocminfo";
        for (entry, is_program) in [
            (format!("exists {path}"), true),
            (format!("stat {path} file 0755 0:0 4096 -"), true),
            (format!("file {path} cut\n| x"), true),
            (format!("stat {path} file 0644 0:0 4096 -"), false),
            (format!("stat {path} file 0755 0:0 0 -"), false),
            (format!("stat {path} fifo 0755 0:0 - -"), false),
            (format!("stat {path} socket 0755 0:0 - -"), false),
            (format!("dir {path}"), false),
            (
                format!("link {path} -> rocminfo-6\nstat {path}-6 dir 0755 0:0 - -"),
                false,
            ),
            (
                format!("link {path} -> rocminfo-6\nstat {path}-6 file 0755 0:0 9 -"),
                true,
            ),
        ] {
            let machine = format!("gpucheck-machine 1\nwhole /**\n{entry}\n");
            let host = replayed(Entries::parse(machine.leak()).expect("a machine"));
            let seen = program(&host, PROGRAM_FOLDERS, "rocminfo");
            let expected = if is_program {
                Seen::Got(path.to_owned())
            } else {
                Seen::Absent
            };
            assert_eq!(seen, expected, "{entry}");
        }
    }

    #[test]
    fn a_folder_is_listed_once_and_not_asked_for_what_is_not_in_it() {
        let (host, asked) = system().host(Options::default());
        let host = host.recording();
        let seen = software(&host);
        let libraries = &seen.got().expect("an answer").libraries;
        for (name, there) in [
            ("libcuda.so.1", true),
            ("libamdhip64.so", true),
            ("libvulkan.so.1", false),
            ("libigdrcl.so", false),
        ] {
            assert_eq!(libraries[name].got().is_some(), there, "{name}");
            assert_eq!(libraries[name].is_absent(), !there, "{name}");
        }
        let asked = asked.borrow();
        let count = |question: &str| asked.iter().filter(|one| *one == question).count();
        assert_eq!(count("list /usr/lib"), 1, "{asked:?}");
        assert_eq!(count("stat /usr/lib"), 1, "{asked:?}");
        let missing = |one: &&String| one.contains("/usr/lib/libvulkan") || one.contains("igdrcl");
        assert_eq!(asked.iter().find(missing), None);
        assert_eq!(software(&replayed(Entries::new(host.take_entries()))), seen);
    }

    #[test]
    fn names_that_somebody_else_kept_prove_nothing() {
        // An older version did not look for libraries under these names.
        let text = "gpucheck-machine 1\nmade-by gpucheck 0.0.1 live redacted\nsystem linux x86_64 6.8.0\nenv whole\n\
            dir /usr/lib\nkept /usr/lib\n";
        let seen = software(&replayed(Entries::parse(text).expect("a machine")));
        let libraries = seen.into_got().expect("an answer").libraries;
        assert!(libraries.values().all(Seen::is_unknown), "{libraries:?}");
    }

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
            "/usr/lib32",
            "/usr/lib/i386-linux-gnu",
        ] {
            assert_eq!(plain_folder(other), None, "{other}");
        }
        for home in ["/home/a/lib", "/data/home/a", "/root", "/root/lib"] {
            assert_eq!(plain_folder(home).as_deref(), Some(home));
            assert_eq!(system_folder(home), None, "{home}");
        }
        assert!(system_folder("/opt/root/lib").is_some());
    }

    #[test]
    fn tables_are_sorted() {
        assert!(LIBRARIES.is_sorted_by(|one, other| one.0 < other.0));
        assert!(PROGRAMS.is_sorted());
    }
}
