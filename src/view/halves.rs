//! Whether the two halves of NVIDIA's driver fit: the kernel module and the libraries, as loaded, as files and as packages.

use super::{NextModule, Stack, View};
use crate::facts::Seen;
use crate::facts::packages::Package;
use crate::facts::software::Library;
use crate::version::Version;

/// Libraries that talk to the module, in the order in which a finding names them.
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "libcuda.so.1"];

/// Folders that the programs of a distribution look into although the loader's settings do not name them.
const OWN_FOLDERS: [&str; 2] = ["/run/opengl-driver/", "/run/current-system/"];

/// Folders that loaders search by themselves, each on some distribution.
const DEFAULT_FOLDERS: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// Packages whose version is that of the kernel module in them. Those of Ubuntu with a module ready-made bear the version of the
/// kernel and are not here.
const OF_KERNEL: &[&str] = &[
    "akmod-nvidia*",
    "kmod-nvidia*",
    "nvidia-dkms*",
    "nvidia-driver-G0*",
    "nvidia-kernel-dkms",
    "nvidia-kernel-open-dkms",
    "nvidia-open-dkms*",
    "nvidia-open-driver-G0*",
    "nvidia-open-kernel-dkms",
];
/// The same on Arch; elsewhere packages of these names hold nothing themselves.
const OF_KERNEL_ON_ARCH: &[&str] = &["nvidia", "nvidia-lts", "nvidia-open", "nvidia-open-lts"];
/// Packages that hold libcuda.
const OF_LIBRARIES: &[&str] = &[
    "libcuda1",
    "libnvidia-compute-*",
    "nvidia-compute-G0*",
    "nvidia-driver-cuda-libs",
    "nvidia-utils",
    "xorg-x11-drv-nvidia*",
];

/// Name, package and version of one half.
type Half<'v> = Vec<(&'v str, &'v Package, &'v str)>;

/// A library beside the loaded module.
pub enum Compared<'v> {
    /// Of the same version.
    Fits(&'v str),
    /// Of this other version.
    Differs(&'v Library, &'v str),
    /// Not there, or none of the driver's own.
    NotHere,
    /// Not known, and why.
    Unknown(String),
}

/// The packages of NVIDIA's kernel module beside those of its libraries.
pub enum PackageHalves<'v> {
    /// There are not both, or they are not this system's matter.
    NotHere,
    /// A package of the one and of the other are of this version.
    Together(&'v str, &'v str),
    /// They differ: the newest of each, as name, version of the package, and version of the driver in it.
    Apart([(&'v str, &'v str, &'v str); 2]),
    /// Not known, and why.
    Unknown(String),
}

impl View<'_> {
    /// The libraries of NVIDIA's driver that programs load, each beside the module of this version.
    pub fn nvidia_libraries_beside<'v>(
        &'v self,
        module: &'v str,
    ) -> [(&'static str, Compared<'v>); 2] {
        LIBRARIES.map(|name| (name, self.library_beside(name, module)))
    }

    /// The same for the module that is loaded: NVML compares the versions before it answers anything else.
    pub fn nvidia_libraries_beside_loaded<'v>(
        &'v self,
        loaded: &'v str,
    ) -> [(&'static str, Compared<'v>); 2] {
        let is_answered = self.facts.nvml.got().is_some();
        self.nvidia_libraries_beside(loaded).map(|(name, one)| {
            match is_answered && name == LIBRARIES[0] {
                true => (name, Compared::Fits(loaded)),
                false => (name, one),
            }
        })
    }

    fn library_beside<'v>(&'v self, name: &str, module: &'v str) -> Compared<'v> {
        let library = match self.winner(name) {
            Seen::Got(library) => library,
            Seen::Absent => return Compared::NotHere,
            other => return Compared::Unknown(other.map(|_| ()).why()),
        };
        // Neither is of the driver: that they are taken is another question.
        if leads_to(library, "compat/") || leads_to(library, "/stubs/") {
            return Compared::NotHere;
        }
        match self.library_version(library) {
            Some(version) if version == module => Compared::Fits(module),
            Some(_) if library.via.is_none() && !is_in_own_folder(library) => {
                Compared::Unknown(format!(
                    "nothing that was seen brings the loader to {}, which is of another version than the module",
                    library.path
                ))
            }
            Some(version) => Compared::Differs(library, version),
            None => Compared::Unknown(format!("{} does not name its version", library.path)),
        }
    }

    /// The library of NVIDIA's driver that programs load by this name. None: proved that there is none, or that nothing leads
    /// the loader to the one that is there. The error: why that is not known.
    pub fn nvidia_library(&self, name: &str) -> Result<Option<&Library>, String> {
        let library = match self.winner(name) {
            Seen::Got(library) => library,
            Seen::Absent => return Ok(None),
            other => return Err(format!("{name}: {}", other.map(|_| ()).why())),
        };
        // Which of its default folders a loader has, the distribution decided.
        let folder = library.path.rsplit_once('/').map(|(folder, _)| folder);
        let is_default = folder.is_some_and(|folder| DEFAULT_FOLDERS.contains(&folder));
        if library.via.is_some() || is_default || is_in_own_folder(library) {
            return Ok(Some(library));
        }
        let software = self.facts.software.got();
        let path = &library.path;
        match self.unknown_before_libraries() {
            Some(why) => Err(format!("what leads the loader to {path}: {why}")),
            None if software.is_some_and(|software| software.loader_cache_read) => Ok(None),
            None => Err(format!(
                "nothing that was seen leads the loader to {path}, and its cache was not read"
            )),
        }
    }

    /// A compatibility library of CUDA is known to serve the GPUs of this place: it is as new as the module, or newer and they
    /// are for data centres, for which NVIDIA made it.
    pub fn compat_serves(&self, compat: &Library) -> bool {
        let version = self.library_version(compat).and_then(Version::parse);
        let loaded = self.nvidia_loaded_version().into_got();
        let loaded = loaded.and_then(|(loaded, _)| Version::parse(loaded));
        let (Some(version), Some(loaded)) = (version, loaded) else {
            return false;
        };
        let mut gpus = self
            .gpus_of(Stack::Cuda)
            .filter(|gpu| gpu.passed_in != Some(false))
            .peekable();
        let is_any = gpus.peek().is_some();
        is_any && (version == loaded || version > loaded && gpus.all(|gpu| gpu.data_centre))
    }

    /// The loaded module and a library are known to differ, which no program of this system gets past.
    pub fn nvidia_libraries_differ(&self) -> bool {
        // It compares the versions before it answers anything else.
        if self.facts.nvml.says("LIB_RM_VERSION_MISMATCH") {
            return true;
        }
        let Seen::Got((loaded, _)) = self.nvidia_loaded_version() else {
            return false;
        };
        self.nvidia_libraries_beside_loaded(loaded)
            .iter()
            .any(|(_, one)| matches!(one, Compared::Differs(..)))
    }

    /// The version of the libraries that stay behind when the next start loads another module than now: that restart parts what
    /// works.
    pub fn nvidia_libraries_left_behind(&self) -> Option<(&Library, &str)> {
        let NextModule::Other { version, .. } = self.next_module(Stack::Cuda) else {
            return None;
        };
        self.nvidia_libraries_beside(version)
            .into_iter()
            .find_map(|(_, one)| match one {
                // What a variable leads to stays as it is.
                Compared::Differs(library, of_library) if library.of_environment().is_none() => {
                    Some((library, of_library))
                }
                _ => None,
            })
    }

    /// The next start loads a module that does not fit the libraries.
    pub fn restart_parts_nvidia(&self) -> bool {
        matches!(self.nvidia_packages(), PackageHalves::Apart(_))
            || self.nvidia_libraries_left_behind().is_some()
    }

    /// The packages of the two halves of NVIDIA's driver.
    pub fn nvidia_packages(&self) -> PackageHalves<'_> {
        let is_elsewhere = self.wsl().is_some() || self.is_tegra() || self.in_container();
        // A driver container brings its own halves along.
        if is_elsewhere || self.driver_container().is_some() {
            return PackageHalves::NotHere;
        }
        let packages = self.facts.packages.got();
        let manager = packages.and_then(|packages| packages.manager.as_deref());
        let mut of_kernel = OF_KERNEL.to_vec();
        if manager == Some("pacman") {
            of_kernel.extend(OF_KERNEL_ON_ARCH);
        }
        let (kernel, libraries) = match (half(&of_kernel, self), half(OF_LIBRARIES, self)) {
            (Seen::Got(kernel), Seen::Got(libraries)) => (kernel, libraries),
            (Seen::Absent, _) | (_, Seen::Absent) => return PackageHalves::NotHere,
            (Seen::Got(_), other) | (other, _) => {
                return PackageHalves::Unknown(other.map(|_| ()).why());
            }
        };
        // A module for a kernel that was upgraded later may be older than the rest.
        let together = kernel
            .iter()
            .find(|(.., version)| libraries.iter().any(|(.., other)| other == version));
        if let Some((name, _, version)) = together {
            return PackageHalves::Together(name, version);
        }
        match (newest(&kernel), newest(&libraries)) {
            (Some(kernel), Some(libraries)) => PackageHalves::Apart([kernel, libraries]),
            _ => PackageHalves::NotHere,
        }
    }
}

/// A part of the path under which a library was found, or where its links end.
fn leads_to(library: &Library, part: &str) -> bool {
    let target = library.target.got().map_or("", String::as_str);
    library.path.contains(part) || target.contains(part)
}

fn is_in_own_folder(library: &Library) -> bool {
    OWN_FOLDERS.iter().any(|own| leads_to(library, own))
}

fn half<'v>(patterns: &[&str], view: &'v View<'_>) -> Seen<Half<'v>> {
    let mut found: Half = Vec::new();
    let mut answer = Seen::Absent;
    for pattern in patterns {
        match view.packages_matching(pattern) {
            Seen::Got(packages) => found.extend(
                packages
                    .into_iter()
                    .filter_map(|(name, package)| Some((name, package, holds(name, package)?))),
            ),
            Seen::Absent => {}
            unknown => answer = unknown.map(|_| Vec::new()),
        }
    }
    // One that is not known may be the one that fits.
    match (found.is_empty(), answer) {
        (false, Seen::Absent) => Seen::Got(found),
        (_, answer) => answer,
    }
}

/// The version of the driver that a package holds; None: it is none of those meant.
fn holds<'v>(name: &str, package: &'v Package) -> Option<&'v str> {
    let is_other = name.starts_with("nvidia-driver-G0") && !name.contains("kmp")
        || name.starts_with("nvidia-open-driver-G0") && !name.contains("kmp")
        || name.starts_with("xorg-x11-drv-nvidia") && !name.ends_with("cuda-libs")
        || package.transitional == Some(true);
    let upstream = package.upstream();
    let end = upstream
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(upstream.len());
    let version = &upstream[..end];
    (!is_other && version.contains('.')).then_some(version)
}

fn newest<'v>(half: &Half<'v>) -> Option<(&'v str, &'v str, &'v str)> {
    half.iter()
        .max_by_key(|(.., version)| Version::parse(version))
        .map(|(name, package, version)| (*name, package.version.as_str(), *version))
}
