//! ROCm and CUDA on disk: which installations there are, of which version, and for which GPUs they have kernels.

use super::{MAIN_FOLDERS, Names, first_on_path, program_file, system_folder};
use crate::facts::software::RocmInstall;
use crate::facts::{Named, Seen};
use crate::host::Host;
use std::collections::BTreeMap;

/// Most installations of one kind.
const LIMIT: usize = 64;
/// Variables that name a ROCm installation.
const ROCM_VARIABLES: &[&str] = &["ROCM_PATH", "ROCM_HOME", "HIP_PATH"];
/// Variables that name a CUDA toolkit.
const CUDA_VARIABLES: &[&str] = &["CUDA_HOME", "CUDA_PATH"];
/// Libraries that show that the distribution's own ROCm is installed, and what tells its version.
const ROCM_LIBRARIES: &[&str] = &[HIP, "libhsa-runtime64.so", "librocm-core.so"];
/// The library whose name tells the version of a CUDA toolkit.
const CUDA_RUNTIME: &str = "libcudart.so";
/// The HIP runtime.
const HIP: &str = "libamdhip64.so";
/// Where rocBLAS and hipBLASLt have had their kernels, below an installation.
const LIBRARY_FOLDERS: &[&str] = &["lib", "lib64"];

/// Installations by their folder; without one, why it is not known whether there is any.
type Installations<T> = Seen<BTreeMap<String, T>>;

/// Folders, sorted, each once, and why others may be there.
#[derive(Default)]
struct Roots {
    paths: Vec<String>,
    unknown: Option<Seen<()>>,
}

impl Roots {
    /// The folders whose names begin so.
    fn add_listed(&mut self, host: &Host, folder: &str, start: &str) {
        let listing = host.list(folder);
        let names = listing.got().into_iter().flat_map(|listing| &listing.names);
        let wanted = names.filter(|name| name.starts_with(start));
        for name in wanted.take(LIMIT) {
            // A link beside the folder that it leads to is the same installation.
            let path = format!("{folder}/{name}");
            self.add(host.real(&path).into_got().unwrap_or(path));
        }
        match listing {
            Seen::Got(listing) if listing.whole => {}
            Seen::Absent => {}
            Seen::Got(_) => self.not_all(Seen::default()),
            other => self.not_all(other.map(|_| ())),
        }
    }

    /// What the usual link leads to.
    fn add_link(&mut self, host: &Host, link: &str) {
        match host.real(link) {
            Seen::Got(target) => self.add(target),
            Seen::Absent => {}
            other => self.not_all(other.map(|_| ())),
        }
    }

    fn add(&mut self, path: String) {
        if self.paths.len() < LIMIT && !self.paths.contains(&path) {
            self.paths.push(path);
            self.paths.sort();
        }
    }

    fn not_all(&mut self, why: Seen<()>) {
        self.unknown.get_or_insert(why);
    }

    /// The installations among them; without one, what is known.
    fn installations<T>(self, found: BTreeMap<String, T>) -> Installations<T> {
        match self.unknown {
            _ if !found.is_empty() => Seen::Got(found),
            Some(why) => why.map(|()| BTreeMap::new()),
            None => Seen::Absent,
        }
    }
}

/// The folders that variables name. Those in homes are private.
fn named_folders(host: &Host, variables: &[&str]) -> Vec<String> {
    variables
        .iter()
        .filter_map(|name| system_folder(&host.env(name).into_got()?))
        .filter_map(|folder| host.real(&folder).into_got())
        .collect()
}

/// The distribution's folders of libraries that are there, each once.
fn main_folders(names: &Names) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    for folder in MAIN_FOLDERS {
        if let Seen::Got(real) = names.real(folder)
            && MAIN_FOLDERS.contains(&real.as_str())
            && !folders.contains(&real)
        {
            folders.push(real);
        }
    }
    folders
}

/// CUDA toolkits, and the one whose `nvcc` comes first on `PATH`.
pub(super) fn cuda(host: &Host, names: &Names) -> (Installations<Seen<String>>, Seen<String>) {
    let mut roots = Roots::default();
    roots.add_listed(host, "/usr/local", "cuda-");
    // The first link mostly leads to one of the folders; Arch and Debian have folders of their own.
    for link in ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"] {
        roots.add_link(host, link);
    }
    for folder in named_folders(host, CUDA_VARIABLES) {
        roots.add(folder);
    }
    let nvcc = nvcc(host);
    if let Some(folder) = nvcc.got().and_then(|folder| system_folder(folder)) {
        roots.add(folder);
    }
    let mut toolkits = BTreeMap::new();
    for path in &roots.paths {
        match cuda_version(host, names, path) {
            Some(version) => {
                toolkits.insert(path.clone(), version);
            }
            // Other packages put single libraries into such folders, and variables may name what is gone.
            None if program_file(host, &compiler_of(path)).is_absent() => {}
            None => {
                toolkits.insert(path.clone(), Seen::default());
            }
        }
    }
    (roots.installations(toolkits), nvcc)
}

/// The folder that builds take for the toolkit, by the first variable that names one.
pub(super) fn cuda_home(host: &Host) -> Seen<String> {
    let named = CUDA_VARIABLES.iter().map(|name| host.env(name));
    Seen::first_of(named).and_then(|folder| match system_folder(&folder) {
        // That of Debian's compiler is `/usr`.
        Some(folder) => host
            .real(&folder)
            .map(|folder| toolkit_of(host, &format!("{folder}/bin/nvcc"))),
        None => Seen::default(),
    })
}

/// Debian's toolkit is spread over `/usr`; its folder holds links for those who look for one.
const DEBIAN_TOOLKIT: &str = "/usr/lib/cuda";

/// Where the compiler of a toolkit is.
pub(super) fn compiler_of(toolkit: &str) -> String {
    let folder = if toolkit == DEBIAN_TOOLKIT {
        "/usr"
    } else {
        toolkit
    };
    format!("{folder}/bin/nvcc")
}

/// The folder of the toolkit whose `nvcc` comes first. A folder of `PATH` that cannot be looked at may have one.
fn nvcc(host: &Host) -> Seen<String> {
    first_on_path(host, "nvcc").map(|file| toolkit_of(host, &file))
}

/// The toolkit that a compiler belongs to.
fn toolkit_of(host: &Host, compiler: &str) -> String {
    match compiler.strip_suffix("/bin/nvcc") {
        Some("/usr") if host.exists(DEBIAN_TOOLKIT).got().is_some() => DEBIAN_TOOLKIT.to_owned(),
        Some(toolkit) => toolkit.to_owned(),
        None => compiler.to_owned(),
    }
}

/// What the toolkit's version file says, else what its runtime is called. None: neither is there.
fn cuda_version(host: &Host, names: &Names, folder: &str) -> Option<Seen<String>> {
    for (file, parse) in [
        ("version.json", parse_cuda_json as fn(&str) -> Seen<String>),
        ("version.txt", parse_cuda_text),
    ] {
        let version = host
            .text(&format!("{folder}/{file}"))
            .and_then(|text| parse(&text));
        if !version.is_absent() && version != Seen::default() {
            return Some(version);
        }
    }
    program_file(host, &compiler_of(folder)).got()?;
    let folders = if compiler_of(folder).starts_with("/usr/bin/") {
        main_folders(names)
    } else {
        vec![format!("{folder}/lib64")]
    };
    folders
        .iter()
        .filter_map(|folder| {
            let files = names.some(folder, |name| is_file_of(CUDA_RUNTIME, name));
            newest(files.into_got()?.names)
        })
        .find_map(|name| {
            let version = name.strip_prefix(CUDA_RUNTIME)?.strip_prefix('.')?;
            // `libcudart.so.11.0` names the interface, not the version.
            (version.split('.').count() >= 3 && is_version(version))
                .then(|| Seen::Got(version.to_owned()))
        })
}

/// The name that carries most of a version.
fn newest(names: Vec<String>) -> Option<String> {
    names
        .into_iter()
        .max_by_key(|name| (name.split('.').count(), numbers(name)))
}

/// `libamdhip64.so`, or that with a version behind it.
fn is_file_of(library: &str, name: &str) -> bool {
    name.strip_prefix(library).is_some_and(|rest| {
        rest.is_empty()
            || rest
                .strip_prefix('.')
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    })
}

/// A file of a library of ROCm that shows that it is installed.
fn is_of_rocm(name: &str) -> bool {
    ROCM_LIBRARIES
        .iter()
        .any(|library| is_file_of(library, name))
}

/// What is looked for in folders of libraries here.
pub(super) fn is_wanted(name: &str) -> bool {
    is_of_rocm(name) || is_file_of(CUDA_RUNTIME, name)
}

/// The numbers behind `.so.`.
fn numbers(name: &str) -> Vec<u64> {
    let version = name
        .split_once(".so.")
        .map_or("", |(_, version)| version)
        .split('.');
    version
        .map_while(|part| {
            let digits = part
                .find(|character: char| !character.is_ascii_digit())
                .map_or(part, |end| &part[..end]);
            digits.parse().ok()
        })
        .collect()
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

/// ROCm installations.
pub(super) fn rocm(host: &Host, names: &Names) -> Installations<RocmInstall> {
    let mut roots = Roots::default();
    roots.add_listed(host, "/opt", "rocm-");
    match host.real("/opt/rocm") {
        // Up to ROCm 7.2 a link to one of those above, or a folder that is the installation (Arch). From 7.13 on a folder that
        // holds them: `core-7.13`, and `core` that leads to one of them.
        Seen::Got(folder) => {
            let mut inside = Roots::default();
            inside.add_listed(host, &folder, "core");
            if inside.paths.is_empty() {
                roots.add(folder);
            }
            for path in inside.paths {
                roots.add(path);
            }
        }
        Seen::Absent => {}
        other => roots.not_all(other.map(|_| ())),
    }
    let mut found: BTreeMap<String, RocmInstall> = BTreeMap::new();
    for root in &roots.paths {
        found.insert(root.clone(), installation(host, names, root));
    }
    for folder in named_folders(host, ROCM_VARIABLES) {
        // Up to ROCm 5 HIP had a folder of its own in there.
        let folder = folder.strip_suffix("/hip").unwrap_or(&folder);
        if folder == "/usr" || found.contains_key(folder) {
            continue;
        }
        let install = installation(host, names, folder);
        if install.version.got().is_some() || install.hip.got().is_some() {
            found.insert(folder.to_owned(), install);
        }
    }
    if let Some(own) = distribution(host, names, &mut roots) {
        found.insert("/usr".to_owned(), own);
    }
    roots.installations(found)
}

/// The distribution's own ROCm, by its libraries. That there is none is proved by one folder that was listed, or by there being
/// no such folder.
fn distribution(host: &Host, names: &Names, roots: &mut Roots) -> Option<RocmInstall> {
    let mut unknown = None;
    let mut answered = false;
    for folder in MAIN_FOLDERS {
        match names
            .real(folder)
            .and_then(|real| names.some(&real, is_of_rocm))
        {
            Seen::Got(listing) if !listing.names.is_empty() => {
                let kernels = |library: &str| {
                    kernels(
                        host,
                        &distribution_kernels(host, &format!("{folder}/{library}")),
                    )
                };
                let (version, version_source) = version_of_files(folder, &listing.names);
                let (rocblas_targets, rocblas_folder) = kernels("rocblas");
                return Some(RocmInstall {
                    version: version.map_or_else(Seen::default, Seen::Got),
                    version_source,
                    hip: hip(names, &[(*folder).to_owned()]),
                    rocblas_targets,
                    rocblas_folder,
                    hipblaslt_targets: kernels("hipblaslt").0,
                });
            }
            Seen::Got(listing) if listing.whole => answered = true,
            Seen::Got(_) => unknown = Some(Seen::default()),
            Seen::Absent => {}
            other => unknown = Some(other.map(|_| ())),
        }
    }
    if let Some(why) = unknown.filter(|_| !answered) {
        roots.not_all(why);
    }
    None
}

/// Fedora has the kernels in `/usr/lib64/rocblas/library`, Debian in `/usr/lib/x86_64-linux-gnu/rocblas/VERSION/library`.
fn distribution_kernels(host: &Host, folder: &str) -> Vec<String> {
    let versions = host.names(folder, |name| {
        name.starts_with(|first: char| first.is_ascii_digit())
    });
    let versions = versions.into_got().unwrap_or_default().names;
    let mut folders = vec![format!("{folder}/library")];
    folders.extend(
        versions
            .iter()
            .take(LIMIT)
            .map(|version| format!("{folder}/{version}/library")),
    );
    folders
}

fn installation(host: &Host, names: &Names, root: &str) -> RocmInstall {
    let libraries: Vec<String> = LIBRARY_FOLDERS
        .iter()
        .map(|folder| format!("{root}/{folder}"))
        .collect();
    let kernels = |library: &str, old: &str| {
        let mut folders: Vec<String> = libraries
            .iter()
            .map(|folder| format!("{folder}/{library}/library"))
            .collect();
        // Before ROCm 5.2.
        folders.push(format!("{root}/{old}"));
        kernels(host, &folders)
    };
    let (version, version_source) = version(host, names, root, &libraries);
    let (rocblas_targets, rocblas_folder) = kernels("rocblas", "rocblas/lib/library");
    RocmInstall {
        version,
        version_source,
        hip: hip(names, &libraries),
        rocblas_targets,
        rocblas_folder,
        hipblaslt_targets: kernels("hipblaslt", "hipblaslt/lib/library").0,
    }
}

/// What the version file says, then the header, then names of libraries.
fn version(
    host: &Host,
    names: &Names,
    root: &str,
    libraries: &[String],
) -> (Seen<String>, Option<String>) {
    let info = format!("{root}/.info/version");
    let first = host.text(&info).and_then(|text| parse_rocm_version(&text));
    if first.got().is_some() {
        return (first, Some(info));
    }
    let header = format!("{root}/include/rocm-core/rocm_version.h");
    for (file, parse) in [
        (
            format!("{info}-dev"),
            parse_rocm_version as fn(&str) -> Seen<String>,
        ),
        (header, parse_rocm_header),
    ] {
        let version = host.text(&file).and_then(|text| parse(&text));
        if version.got().is_some() {
            return (version, Some(file));
        }
    }
    for folder in libraries {
        let files = names.some(folder, is_of_rocm).into_got();
        let files = files.unwrap_or_default().names;
        if let (Some(version), source) = version_of_files(folder, &files) {
            return (Seen::Got(version), source);
        }
    }
    (first, None)
}

/// The version in the names of libraries: packed into the last number of AMD's own builds (`libamdhip64.so.6.3.60301`), else
/// the first two numbers of HIP, which are those of ROCm since 5.0.
fn version_of_files(folder: &str, names: &[String]) -> (Option<String>, Option<String>) {
    let of = |library: &'static str| {
        names
            .iter()
            .filter(move |name| is_file_of(library, name))
            .map(|name| (name, numbers(name)))
    };
    let packed = ["librocm-core.so", HIP, "libhsa-runtime64.so"]
        .into_iter()
        .flat_map(|library| of(library).map(move |(name, numbers)| (library, name, numbers)))
        .find_map(|(library, name, numbers)| {
            let &[major, _, last] = numbers.as_slice() else {
                return None;
            };
            let version = (last / 10_000, last / 100 % 100, last % 100);
            // HIP's own third number counts commits.
            let fits = library != HIP || version.0 == major;
            (fits && (3..1000).contains(&version.0))
                .then(|| (format!("{}.{}.{}", version.0, version.1, version.2), name))
        });
    let named = || {
        of(HIP).find_map(|(name, numbers)| match numbers.as_slice() {
            [major, minor, _] if *major >= 5 => Some((format!("{major}.{minor}"), name)),
            _ => None,
        })
    };
    packed
        .or_else(named)
        .map_or((None, None), |(version, name)| {
            (Some(version), Some(format!("{folder}/{name}")))
        })
}

/// The file of the HIP runtime.
fn hip(names: &Names, folders: &[String]) -> Seen<String> {
    Seen::first_of(folders.iter().map(|folder| {
        let files = names.some(folder, |name| is_file_of(HIP, name));
        files.and_then(|listing| match newest(listing.names) {
            Some(name) => Seen::Got(name),
            None if listing.whole => Seen::Absent,
            None => Seen::default(),
        })
    }))
}

/// The targets for which these folders have kernels, and the first of them that there is.
fn kernels(host: &Host, folders: &[String]) -> (Seen<Named<()>>, Option<String>) {
    let mut found: Option<Named<()>> = None;
    let mut first = None;
    let mut unknown = None;
    for folder in folders {
        let mut targets = BTreeMap::new();
        // One name for each target is enough, of thousands.
        let listing = host.names(folder, |name| {
            gfx_targets(name).into_iter().fold(false, |new, target| {
                targets.insert(target, ()).is_none() | new
            })
        });
        match listing {
            Seen::Got(listing) => {
                first.get_or_insert_with(|| folder.clone());
                let found = found.get_or_insert(Named {
                    whole: true,
                    items: BTreeMap::new(),
                });
                found.whole &= listing.whole;
                found.items.append(&mut targets);
            }
            Seen::Absent => {}
            other => unknown = Some(other.map(|_| Named::default())),
        }
    }
    // A library looks into one folder: what is elsewhere matters only as long as that is not found.
    let targets = found.map_or(unknown.unwrap_or(Seen::Absent), Seen::Got);
    (targets, first)
}

/// The targets that the name of a file with kernels, or of a folder of such, tells: `Kernels.so-000-gfx90a-xnack+.hsaco`,
/// `TensileLibrary_lazy_gfx1100.dat`, `TensileLibrary_gfx9-4-generic.co`.
fn gfx_targets(name: &str) -> Vec<String> {
    let of_kernels = [".co", ".hsaco", ".dat"]
        .iter()
        .any(|end| name.ends_with(end));
    if !of_kernels && name.contains('.') {
        return Vec::new();
    }
    let mut targets = Vec::new();
    for (at, _) in name.match_indices("gfx") {
        let starts_word = !name[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
        let rest = &name[at + 3..];
        let end = rest
            .find(|character: char| !matches!(character, '0'..='9' | 'a'..='f'))
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        // `-generic`, or `-4-generic`.
        let kind = after.strip_prefix('-').and_then(|after| {
            let (minor, rest) = match after.split_once('-') {
                Some((minor, rest)) if minor.bytes().all(|byte| byte.is_ascii_digit()) => {
                    (format!("-{minor}"), rest)
                }
                _ => (String::new(), after),
            };
            let rest = rest.strip_prefix("generic")?;
            let ends = !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
            ends.then(|| format!("{minor}-generic"))
        });
        if starts_word && !number.is_empty() {
            match kind {
                Some(kind) => targets.push(format!("gfx{number}{kind}")),
                None if number.len() >= 3 => targets.push(format!("gfx{number}")),
                None => {}
            }
        }
    }
    targets
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

/// `#define ROCM_VERSION_MAJOR 7` and so on.
fn parse_rocm_header(text: &str) -> Seen<String> {
    let part = |name: &str| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let defined = words.next() == Some("#define") && words.next() == Some(name);
            defined.then(|| words.next()?.parse::<u32>().ok()).flatten()
        })
    };
    let major = part("ROCM_VERSION_MAJOR");
    let parts = major.zip(part("ROCM_VERSION_MINOR").zip(part("ROCM_VERSION_PATCH")));
    parts.map_or_else(
        || Seen::error("names no ROCm version"),
        |(major, (minor, patch))| Seen::Got(format!("{major}.{minor}.{patch}")),
    )
}

#[cfg(test)]
mod tests;
