//! What the package manager has installed, of the packages that GPU software consists of.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};

/// Names of the packages that are looked at, over all distributions: drivers, toolkits, runtimes, firmware, kernels with
/// their headers and modules, container engines. A star at the end stands for anything.
pub const OF_INTEREST: &[&str] = &[
    "akmod*",
    "amd-gpu-firmware",
    "amd-smi*",
    "amdgpu*",
    "amdsmi*",
    "amdvlk*",
    "bumblebee*",
    "clinfo",
    "comgr*",
    "containerd*",
    "cuda*",
    "cudnn*",
    "datacenter-gpu-manager*",
    "dkms*",
    "docker*",
    "envycontrol",
    "firmware-amd*",
    "firmware-intel*",
    "firmware-misc-nonfree",
    "firmware-nvidia*",
    "hip*",
    "hsa*",
    "intel-*",
    "kernel",
    "kernel-*",
    "kmod-nvidia*",
    "level-zero*",
    "libamd*",
    "libcu*",
    "libdrm-amdgpu*",
    "libgl1-mesa-dri",
    "libhip*",
    "libhsa*",
    "libigc*",
    "libigd*",
    "libmiopen*",
    "libnccl*",
    "libnv*",
    "libpocl*",
    "librccl*",
    "libroc*",
    "libvulkan1",
    "libxrt*",
    "libze*",
    "linux",
    "linux-*",
    "mesa*",
    "miopen*",
    "mokutil",
    "nvidia*",
    "ocl-icd*",
    "ollama*",
    "oneapi-level-zero*",
    "opencl-*",
    "optimus-manager*",
    "pocl*",
    "podman*",
    "proxmox-*",
    "pve-headers*",
    "pve-kernel*",
    "rccl*",
    "roc*",
    "supergfxctl",
    "suse-prime*",
    "system76-power",
    "tensorrt*",
    "vulkan-*",
    "xe-*",
    "xf86-video-*",
    "xorg-x11-drv-*",
    "xpu-smi",
    "xrt*",
    "xserver-xorg-video-*",
];

/// A package of that name, or any that a pattern with a star at its end means, is looked at.
pub fn is_of_interest(pattern: &str) -> bool {
    OF_INTEREST
        .iter()
        .any(|known| match known.strip_suffix('*') {
            Some(start) => pattern.starts_with(start),
            None => pattern == *known,
        })
}

/// Package databases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Packages {
    /// Which database answered: `dpkg`, `rpm`, `pacman`.
    pub manager: Option<String>,
    /// Packages whose names are of interest, by name. Whole: of such packages these are all. Several entries: several
    /// architectures or versions side by side. `Absent`: no package manager that is known here has a database.
    pub installed: Seen<Named<Vec<Package>>>,
    /// Files that name a repository of a GPU vendor, or one that packages its drivers (`/etc/apt/sources.list.d/rocm.list`).
    /// Whole: no other file names one.
    pub repositories: Named<Vec<Repository>>,
    /// Files that give packages a priority over others (`/etc/apt/preferences.d/*`) and name a GPU vendor's.
    pub pins: Named<Vec<Pin>>,
}

/// One installed package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Package {
    /// Version with epoch and revision, as the manager writes it.
    pub version: String,
    /// `amd64`, `x86_64`, ...
    pub architecture: Option<String>,
    /// `installed`; dpkg also has `half-configured`, `half-installed`, `unpacked`, `config-files`, `triggers-pending`.
    pub state: String,
    /// The manager was told to leave it as it is: dpkg's `hold`, pacman's `IgnorePkg`.
    pub held: bool,
    /// It says of itself that it holds nothing and only leads to another one. None: what it says was not recorded; only
    /// dpkg's descriptions are read.
    pub transitional: Option<bool>,
}

/// A place that packages come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Repository {
    /// Host and path, without scheme, login and query: `repo.radeon.com/rocm/apt/6.4`; a folder as `file:/var/...`.
    pub url: String,
    /// For apt the suite: mostly the code name of a release.
    pub suite: Option<String>,
    /// It is in use.
    pub enabled: bool,
}

/// A priority of packages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Pin {
    /// Names or patterns of packages.
    pub packages: String,
    /// What is preferred: `release o=repo.radeon.com`, `version 580*`.
    pub pin: String,
    /// The priority; above 1000 it may also go back to an older version, below 0 it forbids.
    pub priority: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interest() {
        assert!(OF_INTEREST.is_sorted());
        for name in [
            "linux",
            "linux-image-6.14.0-37-generic",
            "libnvidia-compute-580",
            "nvidia-driver*",
            "kmod-nvidia-open-dkms",
            "rocm-core",
            "libze1",
        ] {
            assert!(is_of_interest(name), "{name}");
        }
        for name in ["libc6", "linuxdoc", "truenas", "li*", "n*", ""] {
            assert!(!is_of_interest(name), "{name}");
        }
    }
}
