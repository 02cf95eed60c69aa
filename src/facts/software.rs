//! Libraries, toolkits and tools of the system, known by their files alone.

use super::Seen;
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
    /// was looked at, and for libraries of ROCm its own too. That a minor folder was not recorded does not count.
    pub libraries: BTreeMap<String, Seen<Vec<Library>>>,
    /// Folders that were asked for libraries: those that exist or may exist.
    pub library_folders: BTreeMap<String, Seen<()>>,
    /// CUDA toolkits by folder (`/usr/local/cuda-12.8`), with the version where one is written down. `Absent`: none in
    /// the usual places.
    pub cuda_toolkits: Seen<BTreeMap<String, Seen<String>>>,
    /// ROCm installations by folder (`/opt/rocm-7.2.1`), with the version.
    pub rocm: Seen<BTreeMap<String, Seen<String>>>,
    /// Programs of interest (`nvcc`, `nvidia-smi`, `rocminfo`, `hipcc`, `clinfo`, `ollama`) that are in a usual folder.
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
}
