//! Kernel modules on disk, how they are built, and what keeps them away.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `/lib/modules`, and `/run/booted-system/kernel-modules/lib/modules` where that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ModuleFiles {
    /// The folder that was looked into.
    pub path: String,
    /// Every installed kernel by release.
    pub kernels: Named<InstalledKernel>,
    /// Files of firmware for the GPU's own processor (`gsp_ga10x.bin`) in `/lib/firmware/nvidia/VERSION`, VERSION being that
    /// of NVIDIA's loaded module. `Absent`: there is no such folder.
    #[serde(skip_serializing_if = "is_not_captured")]
    pub gsp_firmware: Seen<Named<()>>,
}

/// Where nobody looks for it, it is left out.
fn is_not_captured(firmware: &Seen<Named<()>>) -> bool {
    *firmware == Seen::default()
}

/// The module folder of one installed kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct InstalledKernel {
    /// `modules.dep` is there: the folder belongs to an installed kernel and is no left-over.
    pub modules_dep: Seen<()>,
    /// GPU modules by name as the kernel writes it (`nvidia_uvm`, also for files that a distribution names
    /// `nvidia-current-uvm.ko`), with the files found, those that `modules.dep` names first. `whole`: every place where a
    /// module may stand was looked at.
    pub modules: Named<Vec<ModuleFile>>,
    /// GPU modules that `modules.builtin` names.
    pub builtin: Seen<Vec<String>>,
    /// `build` leads to something that exists: headers are installed. False: it is missing or leads nowhere.
    pub headers: Seen<bool>,
}

/// A module file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ModuleFile {
    /// Path of the file.
    pub path: String,
    /// Its target, where it is a link (weak-updates).
    pub link: Option<String>,
    /// What the file says of itself; read for the running kernel only, of `nvidia`, `nvidia_uvm` and an amdgpu that does
    /// not come with the kernel.
    pub info: Seen<ModInfo>,
}

/// The `.modinfo` section of a module and the signature at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ModInfo {
    /// `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `license`: `NVIDIA` is the proprietary flavour, `Dual MIT/GPL` the open one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// `vermagic`; its first word is the kernel release it was built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vermagic: Option<String>,
    /// `srcversion`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srcversion: Option<String>,
    /// A signature is appended. Whether it is good or its key enrolled is not claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
    /// Common name of the signer, where the signature names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

/// Trees of module builders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Dkms {
    /// `/var/lib/dkms`: module names with their versions; GPU modules only.
    pub modules: Seen<Named<Named<DkmsVersion>>>,
    /// `/usr/src` folders of GPU drivers (`nvidia-580.65.06`, `amdgpu-6.12.12`).
    pub sources: Seen<Vec<String>>,
    /// `/usr/src/akmods` packages and `/var/cache/akmods` folders of GPU drivers.
    pub akmods: Seen<Vec<String>>,
    /// Logs of builds by akmods for the running kernel that failed (`/var/cache/akmods/nvidia/*.failed.log`).
    pub akmods_failed: Seen<Vec<BuildLog>>,
}

/// One version of a module in the dkms tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DkmsVersion {
    /// Kernel releases that it was built for: those with a built module, not those of a build that failed.
    pub kernels: Named<()>,
    /// `source/dkms.conf`: dkms refuses a version whose `source` leads nowhere. Unknown where there is no `source`.
    pub conf: Seen<()>,
    /// `build/make.log`, which only a build that failed leaves there. Read where the running kernel has no built module.
    pub log: Seen<BuildLog>,
}

/// The log of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BuildLog {
    /// Path of the file.
    pub path: String,
    /// Release of the kernel that was built for; None: it does not say.
    pub kernel: Option<String>,
    /// The first lines that name an error.
    pub errors: Vec<String>,
}

/// `modprobe.d`: the files in `/etc`, `/run`, `/usr/local/lib`, `/usr/lib` and `/lib`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ModprobeConfig {
    /// By folder: what reading it gave. `Got(true)`: listed whole. `/lib/modprobe.d` is left out where it is the same folder
    /// as `/usr/lib/modprobe.d`.
    pub folders: BTreeMap<String, Seen<bool>>,
    /// By path: the lines that name a GPU module, comments dropped, continuation lines joined. A file that one of the same
    /// name in an earlier folder masks is left out.
    pub files: BTreeMap<String, Seen<Vec<ConfigLine>>>,
}

/// A line of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfigLine {
    /// Line number, from 1.
    pub number: usize,
    /// Its text.
    pub text: String,
}
