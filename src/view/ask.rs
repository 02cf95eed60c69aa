//! Questions that several checks ask of the facts: is a module loaded, is it on disk, can nodes be made at first use.

use super::visible::gpus;
use super::{Gpu, Vendor, View, join};
use crate::facts::device_nodes::Node;
use crate::facts::display::Sensors;
use crate::facts::kernel::LoadedModule;
use crate::facts::module_files::{InstalledKernel, ModuleFile};
use crate::facts::nvml::NvmlDevice;
use crate::facts::packages::Package;
use crate::facts::software::Library;
use crate::facts::{Failure, Named, Seen, Told, Why};
use crate::finding::Evidence;
use std::collections::BTreeMap;

/// Where the release of the running kernel can be read; `uname -r` prints the same.
pub const RELEASE_FILE: &str = "/proc/sys/kernel/osrelease";

/// Whether a kernel module is in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// Yes, and what proves it.
    Yes(Evidence),
    /// Proved not to be.
    No(Evidence),
    /// Nothing proves either, and why.
    Unknown(String),
}

/// Whether NVIDIA's device nodes can be made when the first program asks for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtFirstUse {
    /// Yes, and by what.
    Yes(String),
    /// No: the cause in the index, and what shows it.
    No(&'static str, Evidence),
    /// Something that decides is not known.
    Unknown(String),
}

/// What there is to ask NVML about a GPU.
pub enum NvmlGround<'v> {
    /// Its answers.
    Says(&'v NvmlDevice),
    /// Nothing: NVIDIA's driver does not hold this GPU, or it is not one of this place.
    NotHere,
    /// It did not answer, and why.
    Unknown(String),
}

fn evidence(source: impl Into<String>, says: impl Into<String>) -> Evidence {
    Evidence {
        source: source.into(),
        says: says.into(),
    }
}

impl View<'_> {
    /// What the package manager has installed. `Absent`: no package manager that is known here has a database.
    pub fn packages(&self) -> Seen<&Named<Vec<Package>>> {
        let packages = self.facts.packages.as_ref();
        packages.and_then(|packages| packages.installed.as_ref())
    }

    /// Release of the running kernel.
    pub fn kernel_release(&self) -> Seen<&str> {
        self.facts
            .kernel
            .as_ref()
            .and_then(|kernel| kernel.release.as_ref().map(String::as_str))
    }

    /// Words of the kernel command line up to `--`: what follows belongs to init. A space between double quotes parts no
    /// words; quotes around a word or a value are taken off, as the kernel does.
    pub fn kernel_words(&self) -> Seen<Vec<String>> {
        self.facts.kernel.as_ref().and_then(|kernel| {
            kernel
                .command_line
                .as_ref()
                .map(|line| split_command_line(line))
        })
    }

    /// `/sys/module/NAME`.
    pub fn module(&self, name: &str) -> Seen<&LoadedModule> {
        self.facts.modules.as_ref().and_then(|modules| {
            modules
                .known
                .get(name)
                .map_or(Seen::Unasked(Why::NotCaptured), Seen::as_ref)
        })
    }

    /// `/sys/module/NAME/version`. `Absent`: it is not loaded, or it comes with the kernel and has none.
    pub fn module_version(&self, name: &str) -> Seen<&String> {
        self.module(name).and_then(|module| module.version.as_ref())
    }

    /// Whether a module is in the kernel, by whatever proves it. A device that is bound to a driver proves its module.
    pub fn loaded(&self, name: &str) -> Loaded {
        if let Some(gpu) = self.gpus.iter().find(|gpu| {
            !gpu.remembered
                && gpu
                    .driver
                    .got()
                    .is_some_and(|driver| normalised(driver) == name)
        }) {
            let says = if gpu.driver_source.ends_with("/driver") {
                format!("bound to {name}")
            } else {
                "lists the GPU".to_owned()
            };
            return Loaded::Yes(evidence(&gpu.driver_source, says));
        }
        let module = self.module(name);
        if module.got().is_some() {
            return Loaded::Yes(evidence(format!("/sys/module/{name}"), "is there"));
        }
        let proc_modules = self
            .facts
            .modules
            .as_ref()
            .and_then(|modules| modules.proc_modules.as_ref());
        if proc_modules
            .got()
            .is_some_and(|modules| modules.contains_key(name))
        {
            return Loaded::Yes(evidence("/proc/modules", format!("lists {name}")));
        }
        if name == "nvidia" && self.facts.nvidia_proc.got().is_some() {
            return Loaded::Yes(evidence("/proc/driver/nvidia", "is there"));
        }
        if module.is_absent() {
            return Loaded::No(evidence(format!("/sys/module/{name}"), "does not exist"));
        }
        // NVIDIA's modules are never built in, so the list of loadable ones is enough; others may be.
        if name.starts_with("nvidia") && proc_modules.got().is_some() {
            return Loaded::No(evidence("/proc/modules", format!("does not list {name}")));
        }
        Loaded::Unknown(format!("/sys/module/{name}: {}", module.why()))
    }

    /// The folder of the running kernel below `/lib/modules`.
    pub fn running_kernel(&self) -> Seen<&InstalledKernel> {
        self.kernel_release().and_then(|release| {
            self.facts
                .module_files
                .as_ref()
                .and_then(|files| files.kernels.get(release))
        })
    }

    /// Path of that folder.
    pub fn running_kernel_folder(&self) -> String {
        let release = self.kernel_release().got().copied().unwrap_or_default();
        format!("{}/{release}", self.module_folder())
    }

    /// Files of a module for the running kernel; `Absent`: proved to have none.
    pub fn module_files(&self, name: &str) -> Seen<&Vec<ModuleFile>> {
        self.running_kernel()
            .and_then(|kernel| match kernel.modules.get(name) {
                Seen::Got(files) if files.is_empty() => Seen::Absent,
                other => other,
            })
    }

    /// A file of a module for any installed kernel, in words; `Absent`: proved that none has one.
    pub fn module_of_any_kernel(&self, name: &str) -> Seen<String> {
        let Some(files) = self.facts.module_files.got() else {
            return self.facts.module_files.as_ref().map(|_| String::new());
        };
        let mut proved = files.kernels.whole;
        for (release, kernel) in &files.kernels.items {
            match kernel.modules.get(name) {
                Seen::Got(found) => {
                    if let Some(file) = found.first() {
                        return Seen::Got(format!("{} is there, for kernel {release}", file.path));
                    }
                }
                Seen::Absent => {}
                Seen::Unasked(_) | Seen::Failed(_) => proved = false,
            }
        }
        if proved {
            Seen::Absent
        } else {
            Seen::Unasked(Why::NotCaptured)
        }
    }

    /// The files of a library; `Absent`: in none of the folders where it may be.
    pub fn library(&self, name: &str) -> Seen<&Vec<Library>> {
        self.facts
            .software
            .as_ref()
            .and_then(|software| match software.libraries.get(name) {
                Some(Seen::Got(files)) if files.is_empty() => Seen::Absent,
                Some(seen) => seen.as_ref(),
                None => Seen::Unasked(Why::NotCaptured),
            })
    }

    /// What NVML says of a GPU; None: it did not answer, or does not list it.
    pub fn nvml_device(&self, gpu: &Gpu) -> Option<&NvmlDevice> {
        join::nvml_device(&gpu.key, self.facts)
    }

    /// What there is to ask NVML about a GPU: nothing where NVIDIA's driver does not hold it.
    pub fn nvml_ground(&self, gpu: &Gpu) -> NvmlGround<'_> {
        if gpu.vendor != Vendor::Nvidia || gpu.remembered || gpu.passed_in == Some(false) {
            return NvmlGround::NotHere;
        }
        if let Some(device) = self.nvml_device(gpu) {
            return NvmlGround::Says(device);
        }
        let of_driver = matches!(
            gpu.driver.got().map(String::as_str),
            Some("nvidia" | "dxgkrnl")
        );
        if !of_driver && !gpu.driver.is_unknown() {
            return NvmlGround::NotHere;
        }
        NvmlGround::Unknown(match &self.facts.nvml {
            _ if gpu.asleep == Some(true) => {
                "the GPU is asleep, and asking NVML would wake it".to_owned()
            }
            Seen::Got(_) => "NVML does not list this GPU".to_owned(),
            other => format!("NVML: {}", other.as_ref().map(|_| ()).why()),
        })
    }

    /// The sensors that amdgpu, i915 or xe shows: their folder, and raw numbers by the names of files in it. `Absent`: its
    /// driver shows none.
    pub fn sensors_of(&self, gpu: &Gpu) -> Seen<(String, &BTreeMap<String, i64>)> {
        let folder = |sensors: &Sensors| {
            let address = gpu.pci.as_deref().unwrap_or(&gpu.key);
            format!("/sys/bus/pci/devices/{address}/hwmon/{}", sensors.monitor)
        };
        self.facts.drm.as_ref().and_then(|drm| {
            let amd = drm.amdgpu.get(&gpu.key).map(|device| &device.hwmon);
            let intel = drm.intel.get(&gpu.key).map(|device| &device.hwmon);
            match (amd.or(intel), gpu.driver.got().map(String::as_str)) {
                (Some(sensors), _) => sensors
                    .as_ref()
                    .map(|sensors| (folder(sensors), &sensors.values)),
                (None, Some("amdgpu" | "i915" | "xe")) => Seen::default(),
                (None, _) => gpu.driver.as_ref().and_then(|_| Seen::Absent),
            }
        })
    }

    /// What NVML answers about a GPU that it lists and that is lost to it: `GPU_IS_LOST`, or `RESET_REQUIRED`.
    pub fn nvml_refusal(&self, gpu: &Gpu) -> Option<&str> {
        fn error<T>(told: &Told<T>) -> Option<&str> {
            match &told.0 {
                Seen::Failed(Failure::Error { what }) => Some(what),
                _ => None,
            }
        }
        let device = self.nvml_device(gpu)?;
        [
            error(&device.memory_bytes),
            error(&device.memory_used_bytes),
            error(&device.uuid),
            error(&device.name),
            error(&device.temperature_c),
            error(&device.performance_state),
            error(&device.power_mw),
            error(&device.sm_clock_mhz),
            error(&device.minor),
            error(&device.compute_capability),
        ]
        .into_iter()
        .flatten()
        .find(|what| ["GPU_IS_LOST", "RESET_REQUIRED"].contains(what))
    }

    /// NVML lists a GPU and has its answers. Where memory is shared with the processor it has no size.
    pub fn nvml_reaches(&self, gpu: &Gpu) -> bool {
        let Some(device) = self.nvml_device(gpu) else {
            return false;
        };
        let memory = &device.memory_bytes;
        let has_memory = memory.got().is_some()
            || memory.says("NOT_SUPPORTED")
            || matches!(memory.0, Seen::Unasked(_));
        let said =
            device.name.got().is_some() || device.uuid.got().is_some() || memory.got().is_some();
        has_memory && said && self.nvml_refusal(gpu).is_none()
    }

    /// NVML answered and does not list a GPU that NVIDIA's driver holds.
    pub fn nvml_misses(&self, gpu: &Gpu) -> bool {
        let nvml = self.facts.nvml.got();
        nvml.is_some_and(|nvml| !matches!(nvml.count.0, Seen::Failed(_)))
            && self.nvml_device(gpu).is_none()
            && gpu.is_held_by("nvidia")
    }

    /// What NVML answered cannot be true of this machine, so nothing rests on it.
    pub fn nvml_contradicts(&self) -> Option<String> {
        let nvml = self.facts.nvml.got()?;
        let named = nvml.devices.len() + nvml.unreachable.len();
        if let Some(count) = nvml.count.got()
            && *count as usize != named
        {
            return Some(format!(
                "it counts {} and names {named}",
                gpus(*count as usize)
            ));
        }
        let devices: Vec<_> = nvml.devices.iter().collect();
        for (at, (address, device)) in devices.iter().enumerate() {
            let same = |other: &NvmlDevice| {
                let uuid = device.uuid.got();
                other.index == device.index || uuid.is_some() && other.uuid.got() == uuid
            };
            if let Some((other, _)) = devices[..at].iter().find(|(_, other)| same(other)) {
                return Some(format!("it says the same of {other} and {address}"));
            }
        }
        // There the bus is not that of its GPUs.
        if self.wsl().is_some() || self.is_tegra() {
            return None;
        }
        if let Some(bus) = self.facts.pci.got()
            && bus.whole
            && let Some(address) = nvml
                .devices
                .keys()
                .find(|key| !bus.items.contains_key(*key))
        {
            return Some(format!("it lists {address}, which is not on the bus"));
        }
        let says = nvml.driver_version.got()?;
        let (is, source) = self.nvidia_loaded_version().into_got()?;
        (says != is).then(|| format!("it says driver {says}, {source} says {is}"))
    }

    /// A variable of this environment. `Absent`: unset, which is not the same as empty.
    pub fn variable(&self, name: &str) -> Seen<&str> {
        self.facts.environment.as_ref().and_then(|environment| {
            match environment.variables.get(name) {
                Some(value) => Seen::Got(value.as_str()),
                None if environment.whole => Seen::Absent,
                None => Seen::Unasked(Why::NotCaptured),
            }
        })
    }

    /// A device node by its path.
    pub fn node(&self, path: &str) -> Seen<&Node> {
        let Some(nodes) = self.facts.device_nodes.got() else {
            return match &self.facts.device_nodes {
                Seen::Failed(failure) => Seen::Failed(failure.clone()),
                Seen::Absent => Seen::Absent,
                _ => Seen::Unasked(Why::NotCaptured),
            };
        };
        if path.starts_with("/dev/dri/") {
            nodes.dri.entry(path)
        } else if path.starts_with("/dev/accel/") {
            nodes.accel.entry(path)
        } else {
            nodes.dev.get(path)
        }
    }

    /// A parameter of the loaded NVIDIA driver, from `/proc/driver/nvidia/params`.
    pub fn nvidia_parameter(&self, name: &str) -> Seen<&str> {
        self.facts.nvidia_proc.as_ref().and_then(|proc| {
            proc.params
                .as_ref()
                .and_then(|params| match params.get(name) {
                    Some(value) => Seen::Got(value.as_str()),
                    None => Seen::Absent,
                })
        })
    }

    /// Whether NVIDIA's nodes can be made at first use: a setuid nvidia-modprobe on a mount without `nosuid`, and the
    /// module (`nvidia` or `nvidia_uvm`) on disk or loaded. Nothing makes nodes inside a container.
    pub fn nvidia_nodes_at_first_use(&self, module: &str) -> AtFirstUse {
        let modify = self.nvidia_parameter("ModifyDeviceFiles");
        if modify.got() == Some(&"0") {
            return AtFirstUse::No(
                "created-by-admin",
                evidence("/proc/driver/nvidia/params", "ModifyDeviceFiles: 0"),
            );
        }
        if let Some(point) = self.driver_container() {
            return AtFirstUse::Unknown(format!(
                "the driver runs from a container ({point}), which makes the nodes that its containers need"
            ));
        }
        // Without the mounts neither a driver container nor nodes that were passed in can be ruled out.
        if self.facts.mounts.is_unknown() {
            return AtFirstUse::Unknown(format!(
                "/proc/self/mountinfo: {}",
                self.facts.mounts.why()
            ));
        }
        let program = match self.nvidia_modprobe() {
            Ok(path) => path,
            Err(answer) => return answer,
        };
        if modify.is_unknown() {
            return AtFirstUse::Unknown(format!("/proc/driver/nvidia/params: {}", modify.why()));
        }
        if matches!(self.loaded(module), Loaded::Yes(_)) {
            return AtFirstUse::Yes(format!("{program} is setuid and {module} is loaded"));
        }
        match self.module_files(module) {
            Seen::Got(_) => AtFirstUse::Yes(format!("{program} is setuid and {module} is on disk")),
            Seen::Absent => AtFirstUse::No(
                "module-not-loaded",
                evidence(
                    self.running_kernel_folder(),
                    format!("no {module} module for the running kernel"),
                ),
            ),
            other => AtFirstUse::Unknown(format!("{module} on disk: {}", other.why())),
        }
    }

    /// Where NVIDIA's GPU operator mounts the system of its driver container: then nothing of the driver is installed on
    /// the machine itself.
    pub fn driver_container(&self) -> Option<&str> {
        let mounts = self.facts.mounts.got()?;
        mounts
            .mounts
            .iter()
            .map(|mount| mount.point.as_str())
            .find(|point| {
                *point == "/run/nvidia/driver" || point.starts_with("/run/nvidia/driver/")
            })
    }

    /// The path of an `nvidia-modprobe` that becomes root, or why there is none.
    fn nvidia_modprobe(&self) -> Result<&str, AtFirstUse> {
        let program = self
            .facts
            .device_nodes
            .as_ref()
            .and_then(|nodes| nodes.nvidia_modprobe.as_ref());
        let no = |cause, proof| Err(AtFirstUse::No(cause, proof));
        let program = match program {
            Seen::Got(program) => program,
            Seen::Absent => {
                return no(
                    "no-nvidia-modprobe",
                    evidence("/usr/bin/nvidia-modprobe", "does not exist"),
                );
            }
            other => {
                return Err(AtFirstUse::Unknown(format!(
                    "nvidia-modprobe: {}",
                    other.why()
                )));
            }
        };
        match &program.setuid_root {
            Seen::Got(true) => {}
            Seen::Got(false) => {
                return no(
                    "no-nvidia-modprobe",
                    evidence(&program.path, "is not setuid root"),
                );
            }
            other => {
                return Err(AtFirstUse::Unknown(format!(
                    "{}: {}",
                    program.path,
                    other.why()
                )));
            }
        }
        match self.mount_of(&program.path) {
            Seen::Got(mount) if mount.options.iter().any(|option| option == "nosuid") => no(
                "nosuid-mount",
                evidence(
                    "/proc/self/mountinfo",
                    format!("{} is mounted nosuid", mount.point),
                ),
            ),
            Seen::Got(_) => Ok(&program.path),
            other => Err(AtFirstUse::Unknown(format!(
                "mount options: {}",
                other.why()
            ))),
        }
    }

    /// The mount that a path stands on: the one with the longest mount point above it, the last one where several are.
    pub fn mount_of(&self, path: &str) -> Seen<&crate::facts::kernel::Mount> {
        self.facts.mounts.as_ref().and_then(|mounts| {
            mounts
                .mounts
                .iter()
                .filter(|mount| {
                    mount.point == "/"
                        || path == mount.point
                        || path
                            .strip_prefix(mount.point.as_str())
                            .is_some_and(|rest| rest.starts_with('/'))
                })
                // `max_by_key` takes the last of several equal ones, which is the mount on top.
                .max_by_key(|mount| mount.point.len())
                .map_or(Seen::Unasked(Why::NotCaptured), Seen::Got)
        })
    }
}

/// A driver's name as the kernel writes the name of its module.
pub fn normalised(name: &str) -> String {
    name.replace('-', "_")
}

fn split_command_line(line: &str) -> Vec<String> {
    let mut quoted = false;
    line.split(|character: char| {
        quoted ^= character == '"';
        character.is_whitespace() && !quoted
    })
    .filter(|word| !word.is_empty())
    .take_while(|word| *word != "--")
    .map(|word| word.replace('"', ""))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::split_command_line;

    #[test]
    fn words_of_the_command_line() {
        for (line, words) in [
            ("", vec![]),
            ("ro  quiet\n", vec!["ro", "quiet"]),
            ("ro \"nomodeset\" x", vec!["ro", "nomodeset", "x"]),
            (
                "dyndbg=\"file a nomodeset\" ro",
                vec!["dyndbg=file a nomodeset", "ro"],
            ),
            ("modprobe.blacklist=\"a,b\"", vec!["modprobe.blacklist=a,b"]),
            ("ro -- nomodeset", vec!["ro"]),
            (
                "ro \"never ends nomodeset",
                vec!["ro", "never ends nomodeset"],
            ),
        ] {
            assert_eq!(split_command_line(line), words, "{line}");
        }
    }
}
