//! Probes: each asks one source and fills one field of `Facts`, through the door alone.

mod attributes;
pub mod device_nodes;
pub mod display;
pub mod environment;
pub mod firmware;
#[cfg(test)]
mod fixture_tests;
pub mod gpu_switches;
pub mod kernel;
pub mod kernel_log;
pub mod kfd;
#[cfg(test)]
mod machine_tests;
pub mod module_files;
pub mod network;
pub mod nvidia_proc;
pub mod nvml;
pub mod packages;
pub mod pci;
pub mod platform;
pub mod python;
pub mod rocm_smi;
pub mod services;
pub mod software;
#[cfg(test)]
mod tree;

use crate::facts::Facts;
use crate::host::Host;

/// Name of the source, and what fills its field.
pub type Probe = (&'static str, fn(&Host, &mut Facts));

/// What is asked first, by one worker: files that show what is here.
pub fn files() -> impl Iterator<Item = &'static str> {
    let late = |name: &str| LATE.iter().any(|(_, sources)| sources.contains(&name));
    ALL.iter()
        .map(|(name, _)| *name)
        .filter(move |name| !late(name))
}

/// What is asked when it is known what is here: the workers, which run side by side, with their sources.
pub const LATE: &[(&str, &[&str])] = &[
    (
        "system",
        &[
            "packages",
            "services",
            "kernel_log",
            "python",
            "network",
            "gpu_switches",
            "firmware",
        ],
    ),
    ("nvml", &["nvml"]),
    ("cuda", &["cuda"]),
    ("rocm_smi", &["rocm_smi"]),
];

/// The probe of that name.
pub fn named(name: &str) -> Option<&'static Probe> {
    ALL.iter().find(|(source, _)| *source == name)
}

/// Every probe, in the order of `Facts::SOURCES`.
pub const ALL: &[Probe] = &[
    ("pci", |host, facts| facts.pci = pci::pci(host)),
    ("pci_ids", |host, facts| {
        facts.pci_ids = pci::pci_ids(host, &facts.pci)
    }),
    ("os_release", |host, facts| {
        facts.os_release = platform::os_release(host)
    }),
    ("kernel", |host, facts| facts.kernel = kernel::kernel(host)),
    ("modules", |host, facts| {
        facts.modules = kernel::modules(host)
    }),
    ("mounts", |host, facts| facts.mounts = kernel::mounts(host)),
    ("char_devices", |host, facts| {
        facts.char_devices = kernel::char_devices(host)
    }),
    ("security", |host, facts| {
        facts.security = kernel::security(host)
    }),
    ("dmi", |host, facts| facts.dmi = platform::dmi(host)),
    ("surroundings", |host, facts| {
        facts.surroundings = platform::surroundings(host)
    }),
    ("wsl", |host, facts| facts.wsl = platform::wsl(host)),
    ("proc_hardware", |host, facts| {
        facts.proc_hardware = platform::proc_hardware(host)
    }),
    ("sysinfo", |host, facts| {
        facts.sysinfo = platform::sysinfo(host)
    }),
    ("nvidia_proc", |host, facts| {
        facts.nvidia_proc = nvidia_proc::nvidia_proc(host)
    }),
    ("drm", |host, facts| facts.drm = display::drm(host)),
    ("kfd", |host, facts| facts.kfd = kfd::kfd(host)),
    ("module_files", |host, facts| {
        facts.module_files = module_files::module_files(host)
    }),
    ("dkms", |host, facts| facts.dkms = module_files::dkms(host)),
    ("modprobe", |host, facts| {
        facts.modprobe = module_files::modprobe(host)
    }),
    ("users", |host, facts| {
        facts.users = environment::users(host)
    }),
    ("environment", |host, facts| {
        facts.environment = environment::environment(host)
    }),
    ("device_nodes", |host, facts| {
        facts.device_nodes = device_nodes::device_nodes(host)
    }),
    ("icd", |host, facts| facts.icd = display::icd(host)),
    ("software", |host, facts| {
        facts.software = software::software(host)
    }),
    ("packages", |host, facts| {
        facts.packages = packages::packages(host)
    }),
    ("services", |host, facts| {
        facts.services = services::services(host)
    }),
    ("kernel_log", |host, facts| {
        facts.kernel_log = kernel_log::kernel_log(host)
    }),
    ("python", |host, facts| facts.python = python::python(host)),
    ("network", |host, facts| {
        facts.network = network::network(host)
    }),
    ("gpu_switches", |host, facts| {
        facts.gpu_switches = gpu_switches::gpu_switches(host)
    }),
    ("firmware", |host, facts| {
        facts.firmware = firmware::firmware(host)
    }),
    ("nvml", |host, facts| facts.nvml = nvml::nvml(host)),
    ("cuda", |host, facts| facts.cuda = nvml::cuda(host)),
    ("rocm_smi", |host, facts| {
        facts.rocm_smi = rocm_smi::rocm_smi(host)
    }),
];
