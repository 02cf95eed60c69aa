//! The versions that a maintainer asks for first, each with where it was read.

use super::VersionRow;
use crate::view::{Stack, View};

/// Libraries whose file name carries the version of what they belong to.
const LIBRARIES: &[(Stack, &str)] = &[
    (Stack::Cuda, "libcuda.so.1"),
    (Stack::Cuda, "libnvidia-ml.so.1"),
    (Stack::Rocm, "libamdhip64.so"),
    (Stack::Rocm, "librocm_smi64.so"),
    (Stack::LevelZero, "libze_intel_gpu.so.1"),
    (Stack::LevelZero, "libze_loader.so.1"),
];

/// Everything that is here and has a version: kernel modules, what the libraries answer, library files, toolkits.
pub(super) fn versions(view: &View) -> Vec<VersionRow> {
    let mut rows = Vec::new();
    let mut add = |what: &str, version: Option<String>, source: String| {
        rows.push(VersionRow {
            what: what.to_owned(),
            version,
            source,
        });
    };
    if let Some((version, source)) = view.nvidia_loaded_version().got() {
        add(
            "NVIDIA kernel module",
            Some((*version).to_owned()),
            (*source).to_owned(),
        );
    }
    if let Some(version) = view
        .module("amdgpu")
        .got()
        .and_then(|module| module.version.got())
    {
        let source = "/sys/module/amdgpu/version".to_owned();
        add("amdgpu kernel module", Some(version.clone()), source);
    }
    if let Some(nvml) = view.facts.nvml.got()
        && let Some(version) = nvml.driver_version.got()
    {
        add("NVIDIA driver", Some(version.clone()), "NVML".to_owned());
    }
    if let Some(cuda) = view.facts.cuda.got()
        && let Some(number) = cuda.driver_version.got()
    {
        let version = format!("{}.{}", number / 1000, number % 1000 / 10);
        add(
            "CUDA of the driver",
            Some(version),
            "cuDriverGetVersion".to_owned(),
        );
    }
    if let Some(smi) = view.facts.rocm_smi.got()
        && let Some(version) = smi.version.got()
    {
        add(
            "ROCm SMI",
            Some(version.clone()),
            "rsmi_version_get".to_owned(),
        );
    }
    for (stack, name) in LIBRARIES {
        // What a machine without such a GPU has of it is no news.
        if view.gpus_of(*stack).next().is_none() {
            continue;
        }
        let files = view.library(name);
        // One file is found under several names.
        let mut targets = Vec::new();
        for library in files.got().into_iter().flat_map(|files| files.iter()) {
            if !targets.contains(&&library.target) || library.target.is_unknown() {
                targets.push(&library.target);
                let version = view.library_version(library).map(str::to_owned);
                add(name, version, library.path.clone());
            }
        }
    }
    let software = view.facts.software.got();
    for (path, version) in software
        .and_then(|software| software.cuda_toolkits.got())
        .into_iter()
        .flatten()
    {
        add("CUDA toolkit", version.got().cloned(), path.clone());
    }
    for (path, install) in software
        .and_then(|software| software.rocm.got())
        .into_iter()
        .flatten()
    {
        let source = install
            .version_source
            .clone()
            .unwrap_or_else(|| path.clone());
        add("ROCm", install.version.got().cloned(), source);
    }
    rows
}
