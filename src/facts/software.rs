//! Libraries, toolkits and tools of the system, known by their files alone.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// the same proves that there is no other.
    pub libraries: BTreeMap<String, Seen<Vec<Library>>>,
    /// Folders that were asked for libraries: those that exist or may exist.
    pub library_folders: BTreeMap<String, Seen<()>>,
    /// `/etc/ld.so.cache` was read: what it has of these libraries is known.
    pub loader_cache_read: bool,
    /// CUDA toolkits by folder (`/usr/local/cuda-12.8`), with the version where one is written down: that of the toolkit
    /// (`12.8.1`), or else the one in the name of its runtime (`libcudart.so.11.8.89`). `Absent`: none in the usual places.
    pub cuda_toolkits: Seen<BTreeMap<String, Seen<String>>>,
    /// The toolkit whose `nvcc` comes first on `PATH`, by its folder. `Absent`: no folder of `PATH` has one.
    pub nvcc: Seen<String>,
    /// ROCm installations by folder: `/opt/rocm-7.2.1`, from ROCm 7.13 on `/opt/rocm/core-7.13`, `/usr` for a distribution's
    /// own.
    pub rocm: Seen<BTreeMap<String, RocmInstall>>,
    /// Programs of interest (`nvcc`, `nvidia-smi`, `nvidia-uninstall`, `rocminfo`, `hipcc`, `clinfo`, `ollama`) that are in a usual folder.
    pub programs: BTreeMap<String, Seen<String>>,
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
    /// What brings the loader to it: `LD_LIBRARY_PATH`, `/etc/ld.so.cache`, where that cannot be read `/etc/ld.so.conf`, or
    /// `default folder`. None: nothing that was seen.
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
    /// gfx targets for which hipBLASLt has kernels, likewise.
    pub hipblaslt_targets: Seen<Named<()>>,
}
