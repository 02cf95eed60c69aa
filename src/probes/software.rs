//! Fills `facts/software.rs`: libraries, toolkits and tools, known by their files alone. Nothing is loaded or run.

use super::kernel;
use crate::facts::software::{Library, Software};
use crate::facts::{Failure, Seen};
use crate::host::Host;
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
/// only the name with the version.
const LIBRARIES: &[(&str, Home, &[&str])] = &[
    ("libOpenCL.so.1", Home::Distribution, &["libOpenCL.so.1"]),
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
/// Folders that drivers, toolkits and other systems add.
const OTHER_FOLDERS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib64",
    "/lib",
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/nvidia/current",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
    WSL_FOLDER,
    "/opt/rocm/lib",
];
const WSL_FOLDER: &str = "/usr/lib/wsl/lib";
/// Most folders that the environment or `ld.so.conf.d` may add.
const ADDED_LIMIT: usize = 64;
/// Most toolkits of one kind.
const TOOLKIT_LIMIT: usize = 64;

/// Programs of interest.
const PROGRAMS: &[&str] = &[
    "amd-smi",
    "clinfo",
    "hipcc",
    "nvcc",
    "nvidia-smi",
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
    let rocm = rocm(host);
    let folders = library_folders(host, rocm.got());
    Seen::Got(Software {
        libraries: LIBRARIES
            .iter()
            .map(|(name, home, files)| ((*name).to_owned(), library(host, &folders, *home, files)))
            .collect(),
        library_folders: folders
            .into_iter()
            .map(|folder| (folder.path, folder.there))
            .collect(),
        cuda_toolkits: cuda_toolkits(host),
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
    there: Seen<()>,
    /// The distribution may have its libraries here.
    main: bool,
    /// That nothing is known of it keeps a library from being proved absent.
    needed: bool,
}

/// The folders in the loader's order: its path, its configuration, its defaults, then those of drivers and toolkits. Left
/// out: folders that do not exist, and those that are another one by a link.
fn library_folders(host: &Host, rocm: Option<&BTreeMap<String, Seen<String>>>) -> Vec<Folder> {
    let is_wsl = kernel::release(host)
        .got()
        .is_some_and(|release| release.to_ascii_lowercase().contains("microsoft"));
    let machine = host.system().into_got().unwrap_or_default().machine;
    let foreign = match machine.as_str() {
        "x86_64" => "aarch64-linux-gnu",
        "aarch64" => "x86_64-linux-gnu",
        _ => "no such folder",
    };
    let mut paths = loader_path(host);
    paths.extend(configured_folders(host));
    paths.extend(
        MAIN_FOLDERS
            .iter()
            .chain(OTHER_FOLDERS)
            .map(|path| (*path).to_owned()),
    );
    paths.extend(
        rocm.into_iter()
            .flat_map(|rocm| rocm.keys())
            .map(|root| format!("{root}/lib")),
    );

    let mut folders: Vec<Folder> = Vec::new();
    let mut targets: Vec<String> = Vec::new();
    for path in paths {
        if path.contains(foreign) || folders.iter().any(|folder| folder.path == path) {
            continue;
        }
        let real = target(host, &path);
        match &real {
            Seen::Absent => continue,
            Seen::Got(target) if targets.contains(target) => continue,
            Seen::Got(target) => targets.push(target.clone()),
            Seen::Unasked(_) | Seen::Failed(_) => {}
        }
        let target = real.got().unwrap_or(&path);
        folders.push(Folder {
            main: MAIN_FOLDERS.contains(&target.as_str()),
            needed: is_wsl && path == WSL_FOLDER,
            there: real.map(|_| ()),
            path,
        });
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

/// Folders that `/etc/ld.so.conf.d/*.conf` names.
fn configured_folders(host: &Host) -> Vec<String> {
    let folder = "/etc/ld.so.conf.d";
    let names = host.list(folder).into_got().unwrap_or_default().names;
    names
        .iter()
        .filter(|name| name.ends_with(".conf"))
        .take(ADDED_LIMIT)
        .filter_map(|name| host.text(&format!("{folder}/{name}")).into_got())
        .flat_map(|text| text.lines().filter_map(plain_folder).collect::<Vec<_>>())
        .take(ADDED_LIMIT)
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

/// Every file of a library. See `Software::libraries` for what proves that there is none.
fn library(host: &Host, folders: &[Folder], home: Home, files: &[&str]) -> Seen<Vec<Library>> {
    let mut found: Vec<Library> = Vec::new();
    let mut failure: Option<Failure> = None;
    let mut unknown = false;
    let mut all_answered = true;
    let mut main_folder_answered = false;
    for folder in folders {
        let mut folder_answered = true;
        for file in files {
            let path = format!("{}/{file}", folder.path);
            match target(host, &path) {
                Seen::Got(target) => found.push(Library {
                    path,
                    bytes: host
                        .stat(&target)
                        .and_then(|stat| stat.size.map_or_else(Seen::default, Seen::Got)),
                    target: Seen::Got(target),
                }),
                Seen::Absent => {}
                Seen::Unasked(_) => folder_answered = false,
                Seen::Failed(why) => {
                    folder_answered = false;
                    failure.get_or_insert(why);
                }
            }
        }
        let needed = folder.needed || (home == Home::Rocm && folder.path.starts_with("/opt/rocm"));
        unknown |= needed && !folder_answered;
        all_answered &= folder_answered;
        main_folder_answered |= folder_answered && folder.main && folder.there.got().is_some();
    }
    match (found.is_empty(), failure) {
        (false, _) => Seen::Got(found),
        (true, Some(why)) => Seen::Failed(why),
        (true, None) if (main_folder_answered || all_answered) && !unknown => Seen::Absent,
        (true, None) => Seen::default(),
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

/// Versions by the folder of the installation; without one, why it is not known whether there is any.
type Installations = Seen<BTreeMap<String, Seen<String>>>;

/// Folders whose names begin so, and those to which the usual links lead, sorted; and why others may be there.
fn roots(
    host: &Host,
    folder: &str,
    start: &str,
    links: &[&str],
) -> (Vec<String>, Option<Installations>) {
    let listing = host.list(folder);
    let mut roots: Vec<String> = listing
        .got()
        .into_iter()
        .flat_map(|listing| &listing.names)
        .filter(|name| name.starts_with(start))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    let mut unknown = match listing {
        Seen::Got(listing) => (!listing.whole).then(Seen::default),
        Seen::Absent => None,
        other => Some(other.map(|_| BTreeMap::new())),
    };
    for link in links {
        match host.real(link) {
            Seen::Got(target) => roots.push(target),
            Seen::Absent => {}
            other => unknown = unknown.or_else(|| Some(other.map(|_| BTreeMap::new()))),
        }
    }
    roots.sort();
    roots.dedup();
    roots.truncate(TOOLKIT_LIMIT);
    (roots, unknown)
}

fn cuda_toolkits(host: &Host) -> Installations {
    // The first link mostly leads to one of the folders; Arch and Debian have folders of their own.
    let links = ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"];
    let (candidates, unknown) = roots(host, "/usr/local", "cuda-", &links);
    let mut toolkits = BTreeMap::new();
    for path in candidates {
        match cuda_version(host, &path) {
            Some(version) => {
                toolkits.insert(path, version);
            }
            // Other packages put single libraries into such folders.
            None if host.exists(&format!("{path}/bin/nvcc")).is_absent() => {}
            None => {
                toolkits.insert(path, Seen::default());
            }
        }
    }
    match unknown {
        _ if !toolkits.is_empty() => Seen::Got(toolkits),
        Some(why) => why,
        None => Seen::Absent,
    }
}

/// What the toolkit's version file says. None: it has none.
fn cuda_version(host: &Host, folder: &str) -> Option<Seen<String>> {
    let json = host
        .text(&format!("{folder}/version.json"))
        .and_then(|text| parse_cuda_json(&text));
    if !json.is_absent() && json != Seen::default() {
        return Some(json);
    }
    let text = host
        .text(&format!("{folder}/version.txt"))
        .and_then(|text| parse_cuda_text(&text));
    (!text.is_absent() && text != Seen::default()).then_some(text)
}

fn parse_cuda_json(text: &str) -> Seen<String> {
    serde_json::from_str::<serde_json::Value>(text)
        .ok()
        .and_then(|json| Some(json.get("cuda")?.get("version")?.as_str()?.to_owned()))
        .filter(|version| is_version(version))
        .map_or_else(|| Seen::error("names no CUDA version"), Seen::Got)
}

/// `CUDA Version 10.2.89`.
fn parse_cuda_text(text: &str) -> Seen<String> {
    text.split_whitespace()
        .next_back()
        .filter(|version| is_version(version))
        .map_or_else(
            || Seen::error("names no CUDA version"),
            |version| Seen::Got(version.to_owned()),
        )
}

/// Begins with a digit and is short and plain.
fn is_version(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.len() <= 64
        && text.chars().all(|character| character.is_ascii_graphic())
}

fn rocm(host: &Host) -> Installations {
    let (roots, unknown) = roots(host, "/opt", "rocm-", &["/opt/rocm"]);
    let installations: BTreeMap<String, Seen<String>> = roots
        .into_iter()
        .map(|root| {
            let version = host
                .text(&format!("{root}/.info/version"))
                .and_then(|text| parse_rocm_version(&text));
            (root, version)
        })
        .collect();
    match unknown {
        _ if !installations.is_empty() => Seen::Got(installations),
        Some(why) => why,
        None => Seen::Absent,
    }
}

/// `7.2.1-112`: the number behind the dash is the build's.
fn parse_rocm_version(text: &str) -> Seen<String> {
    text.split_whitespace()
        .next()
        .and_then(|word| word.split('-').next())
        .filter(|version| is_version(version))
        .map_or_else(
            || Seen::error("names no ROCm version"),
            |version| Seen::Got(version.to_owned()),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Why;

    #[test]
    fn cuda_versions() {
        assert_eq!(
            parse_cuda_json(r#"{ "cuda" : { "name" : "CUDA SDK", "version" : "12.8.1" } }"#),
            Seen::Got("12.8.1".to_owned())
        );
        for bad in [
            "",
            "{}",
            "[1]",
            r#"{"cuda":{"version":12}}"#,
            r#"{"cuda":{"version":"\u001b[0m"}}"#,
        ] {
            assert!(parse_cuda_json(bad).is_unknown(), "{bad}");
        }
        assert_eq!(
            parse_cuda_text("CUDA Version 10.2.89\n"),
            Seen::Got("10.2.89".to_owned())
        );
        assert!(parse_cuda_text("CUDA Version").is_unknown());
    }

    #[test]
    fn rocm_versions() {
        assert_eq!(
            parse_rocm_version("7.2.1-112\n"),
            Seen::Got("7.2.1".to_owned())
        );
        assert_eq!(parse_rocm_version("10.0.0"), Seen::Got("10.0.0".to_owned()));
        assert!(parse_rocm_version("").is_unknown());
        assert!(parse_rocm_version("\u{fffd}").is_unknown());
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
