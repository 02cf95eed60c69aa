//! Fills `facts/kernel_log.rs`: the kernel log.

use crate::facts::Seen;
use crate::facts::kernel_log::KernelLog;
use crate::host::Host;

/// How lines of GPU drivers and of their helpers begin.
const DRIVERS: [&str; 19] = [
    "NVRM:",
    "nvidia",
    "nouveau",
    "NovaCore",
    "nova_core",
    "amdgpu",
    "amdkcl",
    "amdttm",
    "amddrm",
    "amd-sched",
    "amdxdna",
    "radeon",
    "kfd",
    "[drm",
    "drm",
    "ttm",
    "i915",
    "xe ",
    "misc dxg:",
];
/// The same for lines of a module that could not be loaded, where a colon follows the name.
const MODULES: [&str; 2] = ["xe:", "gpu_sched:"];

/// What may concern a GPU, whoever says it: refused modules, faults of the PCI bus and of the IOMMU, programs that were killed
/// for want of memory, and sleep.
const TELLING: [&str; 26] = [
    " is rejected",
    "Key was rejected",
    "PKCS#7 signature not signed",
    "Lockdown:",
    "Kernel is locked down",
    "Secure boot",
    "PCIe Bus Error",
    "AER:",
    "DPC:",
    "pciehp",
    "available PCIe bandwidth",
    "can't assign",
    "failed to assign",
    ": no space for",
    // Takes back what one of the three before says.
    "]: assigned",
    ": assigned [mem",
    "device inaccessible",
    "Invalid PCI ROM",
    "AMD-Vi: Event logged",
    "DMAR: [",
    "Out of memory: Kill",
    "Memory cgroup out of memory: Kill",
    "PM: suspend e",
    "PM: hibernation e",
    "PM: hibernation: hibernation e",
    "PM: pci_pm_",
];

/// Source `kernel_log`.
pub fn kernel_log(host: &Host) -> Seen<KernelLog> {
    host.kernel_log(&is_telling)
}

fn is_telling(message: &str) -> bool {
    // These name drivers and tell nothing of them: kernel parameters, and what was loaded when something else failed.
    if [
        "Command line:",
        "Kernel command line:",
        "Modules linked in:",
    ]
    .iter()
    .any(|start| message.starts_with(start))
    {
        return false;
    }
    DRIVERS
        .iter()
        .chain(&MODULES)
        .any(|start| message.starts_with(start))
        || TELLING.iter().any(|part| message.contains(part))
}
