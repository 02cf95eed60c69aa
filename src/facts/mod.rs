//! Facts: what each source said, shaped like the source. The wire format between a worker and the report, and what
//! `--facts` prints. Plain data: nothing here reads, joins or judges.
//!
//! One field is one source, filled by the probe of the same name in `probes/`.

pub mod device_nodes;
pub mod display;
pub mod environment;
pub mod firmware;
pub mod gpu_switches;
pub mod kernel;
pub mod kernel_log;
pub mod kfd;
pub mod module_files;
pub mod network;
pub mod nvidia_proc;
pub mod nvml;
pub mod packages;
pub mod pci;
pub mod platform;
pub mod python;
pub mod rocm_smi;
mod seen;
pub mod services;
pub mod software;

pub use seen::{Failure, Named, Seen, Told, Why};

use device_nodes::DeviceNodes;
use display::{Drm, Icd};
use environment::{Environment, Users};
use firmware::Firmware;
use gpu_switches::GpuSwitches;
use kernel::{CharDevices, Kernel, LoadedModules, Mounts, Security};
use kernel_log::KernelLog;
use kfd::Kfd;
use module_files::{Dkms, ModprobeConfig, ModuleFiles};
use network::Network;
use nvidia_proc::NvidiaProc;
use nvml::{CudaDriver, Nvml};
use packages::Packages;
use pci::{PciBus, PciNames};
use platform::{Dmi, OsRelease, ProcHardware, Surroundings, SysInfo, Wsl};
use python::Python;
use rocm_smi::RocmSmi;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use services::Services;
use software::Software;

/// A character of what a machine says that cannot be seen and makes the text around it look like another one: marks of
/// direction, blanks of no width and the like.
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Facts of any kind from a JSON value, by way of its text: a second deserializer for every kind of fact would be a tenth of
/// the program.
///
/// # Errors
/// The value is not of that kind.
pub fn from_json<T: DeserializeOwned>(value: &Value) -> serde_json::Result<T> {
    serde_json::from_str(&value.to_string())
}

/// Facts of any kind as a JSON value, likewise.
///
/// # Errors
/// They cannot be written as JSON.
pub fn to_json(facts: &impl Serialize) -> serde_json::Result<Value> {
    serde_json::from_str(&serde_json::to_string(facts)?)
}

macro_rules! facts {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// Everything that was seen of a machine, one field a source.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(default)]
        pub struct Facts {
            $($(#[$doc])* pub $name: Seen<$kind>,)*
        }

        impl Facts {
            /// The fields in the order in which they are filled.
            pub const SOURCES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// One field as JSON, for the stream of a worker. None: there is no such field.
            pub fn field_to_json(&self, source: &str) -> Option<Result<String, serde_json::Error>> {
                match source {
                    $(stringify!($name) => Some(serde_json::to_string(&self.$name)),)*
                    _ => None,
                }
            }

            /// Sets one field from JSON. False: there is no such field, or the JSON is not of its shape.
            pub fn set_field_from_json(&mut self, source: &str, json: &str) -> bool {
                match source {
                    $(stringify!($name) => match serde_json::from_str(json) {
                        Ok(value) => { self.$name = value; true }
                        Err(_) => false,
                    },)*
                    _ => false,
                }
            }

            /// The sources that were asked as a whole and failed, with why.
            pub fn failed_sources(&self) -> Vec<(&'static str, Failure)> {
                let mut failed = Vec::new();
                $(if let Seen::Failed(failure) = &self.$name {
                    failed.push((stringify!($name), failure.clone()));
                })*
                failed
            }

            /// Notes that this source was not asked.
            pub fn set_field_unasked(&mut self, source: &str, why: Why) {
                match source {
                    $(stringify!($name) => self.$name = Seen::Unasked(why),)*
                    _ => {}
                }
            }

            /// This source was not asked, and nothing says why.
            pub fn is_not_captured(&self, source: &str) -> bool {
                match source {
                    $(stringify!($name) => matches!(self.$name, Seen::Unasked(Why::NotCaptured)),)*
                    _ => false,
                }
            }

            /// Takes over what another run of probes was told by this source.
            pub fn take_field(&mut self, source: &str, from: &mut Facts) {
                match source {
                    $(stringify!($name) => self.$name = std::mem::take(&mut from.$name),)*
                    _ => {}
                }
            }

            /// Notes that the probe of this source did not come to its end.
            pub fn set_field_failed(&mut self, source: &str, failure: Failure) {
                match source {
                    $(stringify!($name) => self.$name = Seen::Failed(failure),)*
                    _ => {}
                }
            }
        }
    };
}

facts! {
    /// `/sys/bus/pci/devices`.
    pci: PciBus,
    /// The system's `pci.ids`, the rows of devices that are here.
    pci_ids: PciNames,
    /// `/etc/os-release`.
    os_release: OsRelease,
    /// `uname`, `/proc/cmdline`, `/proc/version` and the like.
    kernel: Kernel,
    /// `/sys/module`, `/proc/modules`.
    modules: LoadedModules,
    /// `/proc/self/mountinfo`.
    mounts: Mounts,
    /// `/proc/devices`.
    char_devices: CharDevices,
    /// Secure Boot, lockdown, signature enforcement.
    security: Security,
    /// `/sys/class/dmi/id`.
    dmi: Dmi,
    /// Marks that containers and hypervisors leave.
    surroundings: Surroundings,
    /// WSL: `/dev/dxg`, `/usr/lib/wsl`, `/etc/wsl.conf`.
    wsl: Wsl,
    /// `/proc/meminfo` and `/proc/cpuinfo`.
    proc_hardware: ProcHardware,
    /// Memory and processor as the crate `sysinfo` sees them; the running machine only.
    sysinfo: SysInfo,
    /// `/proc/driver/nvidia`.
    nvidia_proc: NvidiaProc,
    /// `/sys/class/drm` and the attributes of the GPU drivers.
    drm: Drm,
    /// `/sys/class/kfd`.
    kfd: Kfd,
    /// `/lib/modules` and `/run/booted-system/kernel-modules`.
    module_files: ModuleFiles,
    /// `/var/lib/dkms`, `/usr/src`, `/var/cache/akmods`.
    dkms: Dkms,
    /// `modprobe.d` in all its places.
    modprobe: ModprobeConfig,
    /// The process that asks, and rows of `/etc/passwd` and `/etc/group`.
    users: Users,
    /// Variables that steer GPU software.
    environment: Environment,
    /// Device nodes below `/dev`.
    device_nodes: DeviceNodes,
    /// Vulkan and OpenCL ICD files.
    icd: Icd,
    /// Libraries, toolkits and tools, by their files.
    software: Software,
    /// Package databases.
    packages: Packages,
    /// Systemd units, by their files.
    services: Services,
    /// The kernel log.
    kernel_log: KernelLog,
    /// Python environments, by their files.
    python: Python,
    /// Adapters that do RDMA, and what programs need for them.
    network: Network,
    /// What keeps a GPU off the bus.
    gpu_switches: GpuSwitches,
    /// Firmware files that go before those of the distribution.
    firmware: Firmware,
    /// NVML, NVIDIA's management library.
    nvml: Nvml,
    /// The CUDA driver library.
    cuda: CudaDriver,
    /// ROCm SMI, AMD's management library.
    rocm_smi: RocmSmi,
}
