//! Libraries, toolkits and tools of the system, known by their files alone.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is looked for in folders of people and in `LD_PRELOAD`, each by its name alone: one library of each driver's user
/// space. What else is there is nobody's business.
pub const PRIVATE_LIBRARIES: [&str; 3] =
    ["libcuda.so.1", "libhsa-runtime64.so.1", "libnvidia-ml.so.1"];

/// The path leads to a file of such a library, under whichever number.
pub fn is_file_of(library: &str, path: &str) -> bool {
    let stem = library.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
    let file = path.rsplit('/').next().unwrap_or_default();
    file.strip_prefix(stem)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What is installed, as far as files show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Software {
    /// For every library of interest (`libcuda.so.1`, `libnvidia-ml.so.1`, `libamdhip64.so`, `libhsa-runtime64.so.1`,
    /// `librocm_smi64.so`, `libze_loader.so.1`, `libze_intel_gpu.so.1`, `libvulkan.so.1`, `libOpenCL.so.1`, ...): the files
    /// found, in the order in which the loader would take them, also under names with a version (`libamdhip64.so.7`).
    /// `Absent`: in none of the folders, none of them failed to answer, and the folder that holds this system's libraries
    /// was looked at, and for libraries of ROCm its own too. That a minor folder was not recorded does not count. Of
    /// `libcuda.so.1` and `libnvidia-ml.so.1` those for 32-bit programs are here too; they alone are an answer only where
    /// the same proves that there is no other. In folders of people only `libcuda.so.1`, `libnvidia-ml.so.1` and
    /// `libhsa-runtime64.so.1` are looked for.
    pub libraries: BTreeMap<String, Seen<Vec<Library>>>,
    /// Folders that were asked for libraries: those that exist or may exist. Of those of people also whether the
    /// libraries in them answered. And those libraries that `LD_PRELOAD` names.
    pub library_folders: BTreeMap<String, Seen<()>>,
    /// `/etc/ld.so.cache` was read: what it has of these libraries is known.
    pub loader_cache_read: bool,
    /// CUDA toolkits by folder (`/usr/local/cuda-12.8`), with the version where one is written down: that of the toolkit
    /// (`12.8.1`), or else the one in the name of its runtime (`libcudart.so.11.8.89`). `Absent`: none in the usual places.
    pub cuda_toolkits: Seen<BTreeMap<String, Seen<String>>>,
    /// The toolkit whose `nvcc` comes first on `PATH`, by its folder. `Absent`: no folder of `PATH` has one.
    pub nvcc: Seen<String>,
    /// Where the folder that `CUDA_HOME`, or else `CUDA_PATH`, names is in the end. `Absent`: neither is set, or the folder is
    /// not there.
    pub cuda_home: Seen<String>,
    /// Where the link `/usr/local/cuda` ends, which builds take where nothing else names a toolkit.
    pub cuda_link: Seen<String>,
    /// What building with these toolkits is bound to, by their folders; only where there is one.
    pub cuda_builds: BTreeMap<String, CudaBuild>,
    /// What compiles the host's part of CUDA programs where nothing else is named, and the C library's headers; only asked
    /// where there is a CUDA toolkit.
    pub host_compiler: Seen<HostCompiler>,
    /// ROCm installations by folder: `/opt/rocm-7.2.1`, from ROCm 7.13 on `/opt/rocm/core-7.13`, `/usr` for a distribution's
    /// own.
    pub rocm: Seen<BTreeMap<String, RocmInstall>>,
    /// Where the link `/opt/rocm` ends. Asked only where there are several installations.
    pub rocm_link: Seen<String>,
    /// Programs of interest (`nvcc`, `nvidia-smi`, `nvidia-uninstall`, `rocminfo`, `hipcc`, `clinfo`, `ollama`) that are in a usual folder.
    pub programs: BTreeMap<String, Seen<String>>,
}

/// What the headers of a CUDA toolkit say of what they can be compiled with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CudaBuild {
    /// Its compiler. `Absent`: this is a runtime alone, which nothing is built with.
    pub compiler: Seen<String>,
    /// The header with the limits (`/usr/local/cuda-12.4/include/crt/host_config.h`).
    pub limits: Option<String>,
    /// The newest major version of GCC that it lets pass. `Absent`: it names none.
    pub newest_gcc: Seen<u32>,
    /// Functions of `crt/math_functions.h` that are declared without an exception specification, of `sinpi` (glibc 2.41
    /// declares it otherwise) and `rsqrt` (glibc 2.42).
    pub plain_functions: Seen<Vec<String>>,
    /// A compiler beside `nvcc`, which takes it before those on `PATH`.
    pub own_compiler: Seen<String>,
}

/// The compiler of the host's part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostCompiler {
    /// Where the links of the first `gcc` on `PATH` end. `Absent`: there is none.
    pub path: Seen<String>,
    /// Major versions of GCC whose C++ compiler is installed.
    pub installed: Seen<Vec<u32>>,
    /// A file for login shells that names another compiler for `nvcc` (`NVCC_CCBIN`), with the line.
    pub in_profile: Seen<String>,
    /// Version of the C library's headers (`2.41`). `Absent`: they are not installed.
    pub glibc: Seen<String>,
}

/// A library file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Library {
    /// Path as found.
    pub path: String,
    /// Where its links end, if it is one: the file name usually carries the version.
    pub target: Seen<String>,
    /// Size of the target in bytes. An empty file is what some container runtimes leave behind.
    pub bytes: Seen<u64>,
    /// What brings the loader to it: `LD_PRELOAD`, `LD_LIBRARY_PATH`, `/etc/ld.so.cache`, where that cannot be read
    /// `/etc/ld.so.conf`, or `default folder`. None: nothing that was seen.
    pub via: Option<String>,
    /// What the file says of itself; only asked of libraries of NVIDIA's driver.
    pub elf: Seen<Elf>,
}

/// What an ELF file says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Elf {
    /// 32 or 64.
    pub class: u32,
    /// `x86_64`, `i386`, `aarch64`, ...; the number of another one.
    pub machine: String,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// `DT_NEEDED`.
    pub needed: Vec<String>,
    /// `DT_RUNPATH` or `DT_RPATH`.
    pub runpath: Vec<String>,
}

/// A ROCm installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RocmInstall {
    /// Version.
    pub version: Seen<String>,
    /// The file that says so, by its content or its name.
    pub version_source: Option<String>,
    /// The HIP runtime in it, as its file is called (`libamdhip64.so.6.3.60301`).
    pub hip: Seen<String>,
    /// gfx targets for which rocBLAS has kernels, by the names of its files: `gfx90a`, also those of several GPUs
    /// (`gfx9-4-generic`). `Absent`: it has no folder of kernels.
    pub rocblas_targets: Seen<Named<()>>,
    /// The folder of those kernels; of several the first.
    pub rocblas_folder: Option<String>,
    /// gfx targets for which hipBLASLt has kernels, likewise.
    pub hipblaslt_targets: Seen<Named<()>>,
}
