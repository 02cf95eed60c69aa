//! Questions about kernel drivers: who holds a device, what is installed of NVIDIA's driver, and which GPUs it takes.

use super::ask::normalised;
use super::builds::build_fix;
use super::log::Kind;
use super::{Gpu, Loaded, Place, Stack, View, join};
use crate::facts::software::Library;
use crate::facts::{Seen, Why};
use crate::finding::Evidence;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::{Version, compute_capability};

/// Device ids of NVSwitches: of HGX-2, HGX A100, HGX H100 and H200 (pci.ids; Fabric Manager User Guide). Those of newer boards
/// are on no bus of the host.
const NVSWITCHES: [u16; 3] = [0x1ac2, 0x1af1, 0x22a3];

/// First major number of a compute capability that is driven by the open module alone: Blackwell (NVIDIA blog, "NVIDIA
/// Transitions Fully Towards Open-Source GPU Kernel Modules").
const OPEN_ALONE_FROM: u64 = 10;
/// Device ids of Grace Hopper, for which the same blog asks for the open module, unlike other GPUs of Hopper (torvalds/linux
/// drivers/vfio/pci/nvgrace-gpu/main.c).
const GRACE_HOPPER: [u16; 3] = [0x2342, 0x2345, 0x2348];
/// The last branch before GPUs of Maxwell and newer were the only ones left.
const BRANCHES_NOW: u64 = 500;

/// What stands in the way of an answer about the driver of this place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverGround {
    /// A machine of its own: its module folders and configuration are those of the kernel.
    Own,
    /// A container: kernel, modules and their configuration are the host's.
    Host,
    /// Not known which of both.
    Unknown(String),
}

/// Whether NVIDIA's driver takes a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It does.
    Yes,
    /// It does not any more: the last branch that did.
    No(u64),
    /// The version or the architecture is not known.
    Unknown,
}

/// Whether it matters that NVIDIA's driver fits a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FitGround {
    /// It does: the driver holds the GPU, or nobody does.
    Open,
    /// The question does not arise.
    NotHere,
    /// It fits, or need not.
    Fine(String),
    /// Who holds the GPU is not known.
    Unknown(String),
}

/// Whether NVIDIA's kernel module is of the flavour that a GPU needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// There is no module, or the question does not arise.
    NotHere,
    /// It is, or need not be.
    Fits(String),
    /// It is the other one.
    Wrong {
        /// What shows it.
        seen: Vec<Evidence>,
        /// The driver itself says so.
        said: bool,
    },
    /// Not known, and what would tell.
    Unknown(String, String),
}

/// The branch of the driver in each release of Debian (packages.debian.org, nvidia-driver; neurite.github.io/debian-setup).
const DEBIAN: [(&str, u64); 3] = [("11", 470), ("12", 535), ("13", 550)];
/// The first branch whose open module takes all cards from Turing on without being told to (NVIDIA/open-gpu-kernel-modules,
/// README.md of 535 and 550).
const OPEN_FOR_ALL: u64 = 550;

/// The last branch of NVIDIA's driver that takes a GPU. None: the newest does, or it is not known.
pub fn last_branch(gpu: &Gpu, tables: &Tables) -> Option<u64> {
    tables.last_nvidia_branch(gpu.target.as_deref()?)?.branch
}

/// The first branch that knows a GPU, as far as the tables are sure.
pub fn first_branch(gpu: &Gpu, tables: &Tables) -> Option<u64> {
    let row = tables.nvidia_architecture(gpu.target.as_deref()?)?;
    let first = row.version("first_branch")?;
    first.may_accuse().then(|| first.value.major()).flatten()
}

/// The same as the last one, where it is a branch that is no longer maintained.
pub fn legacy_branch(gpu: &Gpu, tables: &Tables) -> Option<u64> {
    last_branch(gpu, tables).filter(|branch| *branch < BRANCHES_NOW)
}

/// By its name a package that holds NVIDIA's module built for a kernel: of Ubuntu, of RPM distributions, of Arch and those
/// that follow it.
fn is_ready_nvidia_module(name: &str) -> bool {
    let of_arch = ["nvidia", "nvidia-lts", "nvidia-open", "nvidia-open-lts"];
    name.starts_with("linux-modules-nvidia-")
        || name.starts_with("kmod-nvidia")
        || (name.starts_with("nvidia") && name.contains("-kmp"))
        || of_arch.contains(&name)
        || (name.starts_with("linux")
            && !name.contains("firmware")
            && (name.ends_with("-nvidia") || name.ends_with("-nvidia-open")))
}

/// `linux-modules-nvidia-580-open-6.14.0-36-generic` and the name of a kernel give the package for that kernel.
fn ubuntu_module_for(package: &str, release: &str) -> Option<String> {
    let rest = package.strip_prefix("linux-modules-nvidia-")?;
    let (branch, rest) = rest.split_once('-')?;
    branch.parse::<u32>().ok()?;
    let variants: String = rest
        .split('-')
        .take_while(|word| matches!(*word, "server" | "open"))
        .map(|word| format!("-{word}"))
        .collect();
    Some(format!("linux-modules-nvidia-{branch}{variants}-{release}"))
}

/// Drivers that hold a device on purpose for something other than this system's own computing: a virtual machine, or a
/// program in user space.
pub fn is_set_aside(driver: &str) -> bool {
    // `gim` is AMD's driver of hosts that share a GPU among virtual machines.
    driver.contains("vfio")
        || matches!(
            driver,
            "pci-stub"
                | "xen-pciback"
                | "pciback"
                | "xen-pci-back"
                | "uio_pci_generic"
                | "igb_uio"
                | "gim"
        )
}

impl Gpu {
    /// The driver of that name is known to hold it.
    pub fn is_held_by(&self, name: &str) -> bool {
        self.driver.got().is_some_and(|driver| driver == name)
    }

    /// Held for a virtual machine or a program in user space.
    pub fn is_set_aside(&self) -> bool {
        self.driver.got().is_some_and(|driver| is_set_aside(driver))
    }

    /// On the bus of this system, so that a driver of this kernel could hold it.
    pub fn is_on_bus(&self) -> bool {
        self.pci.is_some() && !self.remembered
    }

    /// NVIDIA's open module alone drives it. None: its compute capability is not known.
    pub fn needs_open_module(&self) -> Option<bool> {
        let is_grace_hopper = self
            .id
            .is_some_and(|(vendor, device)| vendor == 0x10de && GRACE_HOPPER.contains(&device));
        if is_grace_hopper {
            return Some(true);
        }
        let capability = Version::parse(&compute_capability(self.target.as_deref()?)?)?;
        Some(capability.major()? >= OPEN_ALONE_FROM)
    }

    /// The command that shows the bound driver.
    pub fn lspci(&self) -> String {
        let address = self.pci.as_deref().unwrap_or(&self.key);
        format!("`lspci -nnk -s {address}`")
    }
}

/// A version with where it stands; an empty one is none.
fn said<'v>(version: Seen<&'v String>, path: &'static str) -> Seen<(&'v str, &'static str)> {
    version.and_then(|version| match version.trim() {
        "" => Seen::error("is empty"),
        version => Seen::Got((version, path)),
    })
}

/// Whether what `nvidia_driver_version` names as its source speaks of the kernel module, not of a library.
pub fn is_of_module(source: &str) -> bool {
    source.starts_with("/sys/") || source.starts_with("/proc/") || source.contains(".ko")
}

impl View<'_> {
    /// The architecture of a GPU on the bus, as its id tells it.
    pub fn seen_architecture(&self, gpu: &Gpu) -> Option<Evidence> {
        self.facts.pci.got()?;
        let (architecture, address) = (gpu.architecture.as_ref()?, gpu.pci.as_ref()?);
        Some(Evidence {
            source: format!("/sys/bus/pci/devices/{address}/device"),
            says: format!("a GPU of the architecture {architecture}"),
        })
    }

    /// Whose kernel, module folders and module configuration can be seen from here.
    pub fn driver_ground(&self) -> DriverGround {
        match &self.place {
            Seen::Got(Place::Container(_)) => DriverGround::Host,
            Seen::Got(Place::Host | Place::Wsl(_)) if self.is_chroot() => DriverGround::Unknown(
                "no file system is mounted at /, so this is a chroot, and its folders are not those of the running kernel"
                    .to_owned(),
            ),
            Seen::Got(Place::Host | Place::Wsl(_)) => DriverGround::Own,
            other => DriverGround::Unknown(format!(
                "whether this is a container: {}",
                other.as_ref().map(|_| ()).why()
            )),
        }
    }

    /// Where the root is no mount point, mountinfo lists none at `/`: a chroot into a folder. One into a mounted disk is not
    /// told from a machine of its own.
    fn is_chroot(&self) -> bool {
        self.facts.mounts.got().is_some_and(|mounts| {
            !mounts.mounts.is_empty() && mounts.mounts.iter().all(|mount| mount.point != "/")
        })
    }

    /// One of NVIDIA's boards with a Tegra chip. CUDA runs on `nvgpu` there; where `nvidia` is loaded, it only drives the
    /// display, without `nvidia_uvm` and without a GPU on the bus.
    pub fn is_tegra(&self) -> bool {
        matches!(self.loaded("nvgpu"), Loaded::Yes(_))
            || self
                .kernel_release()
                .got()
                .is_some_and(|release| release.contains("tegra"))
    }

    /// NVIDIA's driver runs, or may run, and the libraries and services that go with it are this system's own: under WSL they
    /// are of Windows, in a container of the host, and on a Tegra board of another kind.
    pub fn has_own_nvidia_driver(&self) -> bool {
        self.wsl().is_none()
            && !self.is_tegra()
            && !self.in_container()
            && !matches!(self.loaded("nvidia"), Loaded::No(_))
    }

    /// A UUID of question marks: NVIDIA's driver never reached the GPU, or lost it. By itself no sign, for a GPU that nobody
    /// used since boot has it too.
    pub fn unread_uuid(&self, gpu: &Gpu) -> Option<Evidence> {
        let address = gpu.pci.as_deref()?;
        let proc = self.facts.nvidia_proc.got()?;
        let information = proc.gpus.entry(address).into_got()?.information.got()?;
        let uuid = information
            .get("GPU UUID")
            .filter(|uuid| uuid.contains("????"))?;
        Some(Evidence {
            source: format!("/proc/driver/nvidia/gpus/{address}/information"),
            says: format!("GPU UUID: {uuid}"),
        })
    }

    /// Addresses of the NVSwitches that belong to this system: what its GPUs send each other does not go over PCIe.
    pub fn nvswitches(&self) -> impl Iterator<Item = &str> {
        self.facts.pci.items().filter_map(|(address, function)| {
            let driver = function.driver.got().map_or("", String::as_str);
            let by_id = function.vendor.got() == Some(&0x10de)
                && function
                    .class
                    .got()
                    .is_some_and(|class| class >> 8 == 0x0680)
                && function
                    .device
                    .got()
                    .is_some_and(|device| NVSWITCHES.contains(device));
            ((by_id || driver == "nvidia-nvswitch") && !is_set_aside(driver))
                .then_some(address.as_str())
        })
    }

    /// Set aside for virtual machines: held for one, or held by nobody while vfio or pci-stub is told to take it, which some
    /// hypervisors do when the virtual machine starts.
    pub fn is_reserved(&self, gpu: &Gpu) -> bool {
        gpu.is_set_aside() || (gpu.driver.is_absent() && self.claim_for_guests(gpu).is_some())
    }

    /// `vfio-pci.ids=` on the command line, or `options vfio-pci ids=` in a file of modprobe, that names this kind of device.
    pub fn claim_for_guests(&self, gpu: &Gpu) -> Option<Evidence> {
        let (vendor, device) = gpu.id?;
        let id = format!("{vendor:04x}:{device:04x}");
        let names_it = |list: &str| {
            list.split(',').any(|entry| {
                let entry = entry.trim_matches('"').to_ascii_lowercase();
                entry
                    .strip_prefix(id.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            })
        };
        let is_holder = |module: &str| matches!(module, "vfio_pci" | "pci_stub");
        let words = self.kernel_words().into_got().unwrap_or_default();
        let on_command_line = words.into_iter().find(|word| {
            word.split_once(".ids=")
                .is_some_and(|(module, list)| is_holder(&normalised(module)) && names_it(list))
        });
        if let Some(says) = on_command_line {
            return Some(Evidence {
                source: "/proc/cmdline".to_owned(),
                says,
            });
        }
        self.modprobe_options().find_map(|(path, module, line)| {
            let mut options = line.split_whitespace().skip(2);
            (is_holder(&normalised(module))
                && options.any(|word| word.strip_prefix("ids=").is_some_and(names_it)))
            .then(|| Evidence {
                source: path.to_owned(),
                says: line.to_owned(),
            })
        })
    }

    /// What of modprobe's configuration could not be read. None: all of it was.
    pub fn unread_modprobe(&self) -> Option<String> {
        let config = match &self.facts.modprobe {
            Seen::Got(config) => config,
            Seen::Absent => return None,
            other => return Some(format!("/etc/modprobe.d: {}", other.why())),
        };
        let folder = config
            .folders
            .iter()
            .find_map(|(folder, listed)| match listed {
                Seen::Got(true) | Seen::Absent => None,
                Seen::Got(false) => Some(format!("{folder}: not listed whole")),
                other => Some(format!("{folder}: {}", other.why())),
            });
        folder.or_else(|| {
            let mut files = config.files.iter();
            let (path, lines) = files.find(|(_, lines)| lines.is_unknown())?;
            Some(format!("{path}: {}", lines.why()))
        })
    }

    /// The `options` lines of modprobe's configuration: file, module and the whole line.
    pub fn modprobe_options(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let config = self.facts.modprobe.got().into_iter();
        let files = config.flat_map(|config| config.files.iter());
        files.flat_map(|(path, lines)| {
            lines.got().into_iter().flatten().filter_map(move |line| {
                let mut words = line.text.split_whitespace();
                (words.next() == Some("options"))
                    .then(|| words.next())
                    .flatten()
                    .map(|module| (path.as_str(), module, line.text.as_str()))
            })
        })
    }

    /// The value that was set for a module's parameter, with where it stands: the command line goes before files of modprobe.
    pub fn module_setting(&self, module: &str, parameter: &str) -> Option<(String, Evidence)> {
        let start = format!("{module}.{parameter}=");
        let words = self.kernel_words().into_got().unwrap_or_default();
        let on_command_line = words.into_iter().rev().find_map(|word| {
            let value = word.strip_prefix(&start)?.to_owned();
            Some((value, "/proc/cmdline".to_owned(), word))
        });
        let in_files = || {
            let files = &self.facts.modprobe.got()?.files;
            files.iter().rev().find_map(|(path, lines)| {
                lines.got()?.iter().find_map(|line| {
                    let mut words = line.text.split_whitespace();
                    if words.next() != Some("options") || words.next() != Some(module) {
                        return None;
                    }
                    let value =
                        words.find_map(|word| word.strip_prefix(parameter)?.strip_prefix('='))?;
                    Some((value.to_owned(), path.clone(), line.text.clone()))
                })
            })
        };
        let (value, source, says) = on_command_line.or_else(in_files)?;
        Some((value, Evidence { source, says }))
    }

    /// A way to mend something about a kernel driver: inside a container only the host can, as the row for containers says, where
    /// there is one.
    pub fn driver_fix(&self, call: FixCall) -> FixCall {
        let rows = self.tables.fixes(call.recipe);
        let tells_the_host = rows.iter().any(|row| row.family == "container");
        match self.driver_ground() {
            DriverGround::Host if !tells_the_host => FixCall::new("driver-on-host"),
            DriverGround::Host | DriverGround::Own | DriverGround::Unknown(_) => call,
        }
    }

    /// Where module folders are: as found, else the usual place.
    pub fn module_folder(&self) -> &str {
        self.facts
            .module_files
            .got()
            .map(|files| files.path.as_str())
            .filter(|path| !path.is_empty())
            .unwrap_or("/lib/modules")
    }

    /// A module is part of the kernel image, as `modules.builtin` of the running kernel says.
    pub fn is_built_in(&self, name: &str) -> Seen<bool> {
        self.running_kernel().and_then(|kernel| {
            kernel
                .builtin
                .as_ref()
                .map(|names| names.iter().any(|built_in| built_in == name))
        })
    }

    /// The newest installed kernel for which there is a file of a module, other than the running one: release and file.
    pub fn other_kernel_with(&self, module: &str) -> Option<(&str, &str)> {
        let running = self.kernel_release().got().copied();
        let files = self.facts.module_files.got()?;
        files
            .kernels
            .items
            .iter()
            .filter(|(release, _)| Some(release.as_str()) != running)
            .filter_map(|(release, kernel)| {
                let found = kernel.modules.items.get(module)?.first()?;
                Some((release.as_str(), found.path.as_str()))
            })
            .max_by_key(|(release, _)| Version::parse(release))
    }

    /// The driver's own `libcuda.so.1`: not the one that Windows lends to WSL, not a toolkit's stub, not one of a
    /// compatibility package and not the empty file that a container engine leaves behind; all these come without a driver.
    /// Nor one for 32-bit programs, which games bring along.
    pub fn driver_library(&self) -> Seen<&Library> {
        let is_own = |file: &&Library| {
            let of_windows = file.path.starts_with("/usr/lib/wsl/");
            let is_other = file.is_stub() || file.is_compat() || file.is_32_bit();
            !(file.is_empty() || of_windows || is_other)
        };
        self.library("libcuda.so.1")
            .and_then(|files| files.iter().find(is_own).map_or(Seen::Absent, Seen::Got))
    }

    /// Version of NVIDIA's module in the kernel, and where it stands.
    pub fn nvidia_loaded_version(&self) -> Seen<(&str, &'static str)> {
        let of_module = self
            .module("nvidia")
            .and_then(|module| said(module.version.as_ref(), "/sys/module/nvidia/version"));
        of_module.or_else(|| {
            let proc = self.facts.nvidia_proc.as_ref();
            said(
                proc.and_then(|proc| proc.version.as_ref()),
                "/proc/driver/nvidia/version",
            )
        })
    }

    /// Version of NVIDIA's driver: the loaded one, else that of a module for this kernel, else that of its library; with
    /// where it stands.
    pub fn nvidia_driver_version(&self) -> Option<(&str, String)> {
        if let Seen::Got((version, source)) = self.nvidia_loaded_version() {
            return Some((version, source.to_owned()));
        }
        let on_disk = self.module_files("nvidia").into_got();
        let of_file = on_disk.into_iter().flatten().find_map(|file| {
            let version = file.info.got()?.version.as_deref()?;
            Some((version, file.path.clone()))
        });
        of_file.or_else(|| {
            let file = self.driver_library().into_got()?;
            Some((self.library_version(file)?, file.path.clone()))
        })
    }

    /// Whether a version of NVIDIA's driver takes a GPU.
    pub fn nvidia_driver_takes(&self, gpu: &Gpu, version: &str, tables: &Tables) -> Takes {
        let branch = Version::parse(version).and_then(|version| version.major());
        let last = gpu
            .target
            .as_deref()
            .and_then(|target| tables.last_nvidia_branch(target));
        match (branch, last) {
            (Some(_), Some(row)) if row.branch.is_none() => Takes::Yes,
            (Some(branch), Some(row)) => match row.branch {
                Some(last) if branch > last => Takes::No(last),
                _ => Takes::Yes,
            },
            _ => Takes::Unknown,
        }
    }

    /// Whether another GPU computes with the loaded driver and would lose it to the one that `gpu` needs, of which `last` is
    /// the last branch: a system loads one branch in one flavour.
    pub fn nvidia_driver_serves_others(&self, gpu: &Gpu, last: Option<u64>) -> bool {
        let listed = |other: &Gpu| match &self.facts.nvml {
            Seen::Got(_) => self.nvml_device(other).is_some(),
            _ => true,
        };
        // Branches before 500 take none of the newer GPUs and build for old kernels alone; the last one for Maxwell to Volta
        // takes the newer ones as well, where its proprietary module does.
        let loses = |other: &Gpu| {
            last.is_some_and(|last| last < BRANCHES_NOW) || other.needs_open_module() == Some(true)
        };
        self.gpus_of(Stack::Cuda).any(|other| {
            other.key != gpu.key
                && !other.remembered
                && other.is_held_by("nvidia")
                && listed(other)
                && loses(other)
        })
    }

    /// Whether NVIDIA's driver should drive a GPU here, so that its branch and flavour matter.
    pub fn nvidia_fit_ground(&self, gpu: &Gpu) -> FitGround {
        if self.wsl().is_some()
            || self.is_tegra()
            || !gpu.is_on_bus()
            || gpu.passed_in == Some(false)
        {
            return FitGround::NotHere;
        }
        if self.is_reserved(gpu) {
            return FitGround::Fine("set aside for virtual machines".to_owned());
        }
        if self.nvml_device(gpu).is_some() {
            return FitGround::Fine("NVML reaches it".to_owned());
        }
        match &gpu.driver {
            Seen::Got(driver) if driver != "nvidia" => {
                FitGround::Fine(format!("bound to {driver}"))
            }
            Seen::Got(_) | Seen::Absent => FitGround::Open,
            other => FitGround::Unknown(format!("{}: {}", gpu.driver_source, other.why())),
        }
    }

    /// Whether NVIDIA's module is the open one, with what shows it: the loaded one, else the one on disk for this kernel.
    /// `Absent`: there is none.
    pub fn nvidia_is_open(&self) -> Seen<(bool, Evidence)> {
        let evidence = |source: &str, says: &str| Evidence {
            source: source.to_owned(),
            says: says.to_owned(),
        };
        let words = |open: bool| {
            if open {
                "the open kernel module"
            } else {
                "the proprietary kernel module"
            }
        };
        match self.loaded("nvidia") {
            Loaded::Yes(_) => self
                .facts
                .nvidia_proc
                .as_ref()
                .and_then(|proc| proc.open.as_ref())
                .map(|open| (*open, evidence("/proc/driver/nvidia/version", words(*open)))),
            Loaded::Unknown(why) => Seen::error(why),
            // Several files side by side: which one would be loaded is not known.
            Loaded::No(_) => self.module_files("nvidia").and_then(|files| {
                let licences: Vec<Option<&str>> = files
                    .iter()
                    .map(|file| file.info.got()?.license.as_deref())
                    .collect();
                match (licences.first(), files.first()) {
                    (Some(Some(licence)), Some(file))
                        if licences.iter().all(|other| *other == Some(*licence)) =>
                    {
                        let says = format!("license: {licence}");
                        Seen::Got((*licence != "NVIDIA", evidence(&file.path, &says)))
                    }
                    _ => Seen::Unasked(Why::NotCaptured),
                }
            }),
        }
    }

    /// NVIDIA's module is of the flavour that cannot run a GPU: `true`, the open one. None: it is of the other one, or that is
    /// not known.
    pub fn nvidia_misfit(&self, gpu: &Gpu, tables: &Tables) -> Option<bool> {
        let (is_open, _) = self.nvidia_is_open().into_got()?;
        let cannot = match is_open {
            // The open module drives no GPU that a later branch has dropped.
            true => last_branch(gpu, tables).is_some(),
            false => gpu.needs_open_module() == Some(true),
        };
        cannot.then_some(is_open)
    }

    /// Whether NVIDIA's module is the open one (`open`), or the proprietary one, where the GPU needs that. `needs_it`: the
    /// architecture does; None: not known. A line of the log of the kind `says` outweighs it.
    pub fn nvidia_flavour(
        &self,
        gpu: &Gpu,
        open: bool,
        needs_it: Option<bool>,
        says: &Kind,
    ) -> Flavour {
        match self.nvidia_fit_ground(gpu) {
            FitGround::Open => {}
            FitGround::NotHere => return Flavour::NotHere,
            FitGround::Fine(says) => return Flavour::Fits(says),
            FitGround::Unknown(why) => return Flavour::Unknown(why, gpu.lspci()),
        }
        let flavour = self.nvidia_is_open();
        if let Some(event) = self.log_of(gpu).find(|event| event.kind == *says) {
            let mut seen = vec![Evidence {
                source: self.log_source().to_owned(),
                says: event.says(),
            }];
            seen.extend(flavour.into_got().map(|(_, evidence)| evidence));
            return Flavour::Wrong { seen, said: true };
        }
        let words = |open: bool| if open { "open" } else { "proprietary" };
        let would_tell = "`cat /proc/driver/nvidia/version` and `modinfo -F license nvidia`";
        match (flavour, needs_it) {
            (Seen::Absent, _) => Flavour::NotHere,
            (Seen::Got((is, evidence)), _) if is == open => Flavour::Fits(format!(
                "it is the {} module: {} {}",
                words(open),
                evidence.source,
                evidence.says
            )),
            (_, Some(false)) => Flavour::Fits(format!(
                "GPUs of this architecture do not need the {} module",
                words(open)
            )),
            (Seen::Got((_, evidence)), Some(true)) => {
                let mut seen = vec![evidence];
                seen.extend(self.seen_architecture(gpu));
                Flavour::Wrong { seen, said: false }
            }
            (Seen::Got(_), None) => Flavour::Unknown(
                format!(
                    "the module is the {} one, and the architecture of this GPU is not known",
                    words(!open)
                ),
                would_tell.to_owned(),
            ),
            (other, _) => Flavour::Unknown(
                format!(
                    "which flavour of NVIDIA's module this is: {}",
                    other.map(|_| ()).why()
                ),
                would_tell.to_owned(),
            ),
        }
    }

    /// How to install a driver of NVIDIA that takes these GPUs, as this release needs it; in a container what to do on the host.
    pub fn nvidia_install_fixes(&self, gpus: &[&Gpu], tables: &Tables) -> Vec<FixCall> {
        self.nvidia_install_calls(gpus, tables)
            .into_iter()
            .map(|call| match self.debian_instead(&call, gpus, tables) {
                Some((call, _)) => self.driver_fix(call),
                None => self.driver_fix(call),
            })
            .collect()
    }

    /// What to install on Debian in place of the open module of its own driver, and why: that is too old for some GPUs, and in
    /// older releases for data centres alone.
    pub fn debian_instead(
        &self,
        call: &FixCall,
        gpus: &[&Gpu],
        tables: &Tables,
    ) -> Option<(FixCall, String)> {
        let is_debian = self.is_of_family("debian") && !self.is_of_family("ubuntu");
        if !is_debian || call.recipe != "install-nvidia-driver-open" {
            return None;
        }
        let release = self.os_field("VERSION_ID");
        let own = self.debian_branch();
        let first = gpus
            .iter()
            .filter(|gpu| legacy_branch(gpu, tables).is_none())
            .filter_map(|gpu| first_branch(gpu, tables))
            .max();
        if let Some(first) = first
            && own.is_none_or(|own| own < first)
            && (own.is_some() || first > DEBIAN[DEBIAN.len() - 1].1)
        {
            let mut call = FixCall::new("install-nvidia-driver-from-nvidia");
            // Of older releases NVIDIA no longer packages new branches, and of unknown ones nothing is known.
            if own.is_some() && release != "11" && self.is_x86() {
                call = call.with("version", release);
            }
            let why = match own {
                Some(own) => format!(
                    "this GPU needs branch {first} or later, and the driver of Debian {release} itself is of branch {own}"
                ),
                None => format!(
                    "this GPU needs branch {first} or later; which one this release has, `apt policy nvidia-driver` shows"
                ),
            };
            return Some((call, why));
        }
        let data_centre = gpus.iter().all(|gpu| gpu.data_centre);
        let own = own.filter(|own| *own < OPEN_FOR_ALL && !(data_centre && *own >= 515))?;
        let why = format!(
            "the driver of Debian {release} is of branch {own}, whose open module is not for this card"
        );
        Some((FixCall::new("install-nvidia-driver-of-release"), why))
    }

    /// The branch of Debian's own driver. None: this is not Debian, or a release that is not known here.
    pub fn debian_branch(&self) -> Option<u64> {
        if self.os_field("ID") != "debian" {
            return None;
        }
        let release = self.os_field("VERSION_ID");
        let known = DEBIAN.iter().find(|(known, _)| *known == release);
        known.map(|(_, branch)| *branch)
    }

    /// A field of os-release; empty where it is not there or not known.
    pub fn os_field(&self, name: &str) -> &str {
        let os = self.facts.os_release.got();
        os.and_then(|os| os.fields.get(name))
            .map_or("", String::as_str)
    }

    /// For another processor wheels and repositories differ.
    pub fn is_x86(&self) -> bool {
        let kernel = self.facts.kernel.got();
        let machine = kernel.and_then(|kernel| kernel.machine.got());
        machine.is_none_or(|machine| machine == "x86_64")
    }

    /// How to install a driver of NVIDIA that takes these GPUs: the open module needs Turing or newer; the newest branch that
    /// takes Maxwell to Volta has a proprietary one; older GPUs need a branch of their own. Where the architecture is not
    /// known, both of the first two.
    pub fn nvidia_install_calls(&self, gpus: &[&Gpu], tables: &Tables) -> Vec<FixCall> {
        let open = || FixCall::new("install-nvidia-driver-open");
        let proprietary = || FixCall::new("install-nvidia-driver-proprietary");
        let last_branches: Vec<Option<Option<u64>>> = gpus
            .iter()
            .map(|gpu| {
                let row = tables.last_nvidia_branch(gpu.target.as_deref()?)?;
                Some(row.branch)
            })
            .collect();
        let is_old = |last: &Option<Option<u64>>| matches!(last, Some(Some(branch)) if *branch < BRANCHES_NOW);
        let oldest = last_branches
            .iter()
            .filter(|last| is_old(last))
            .filter_map(|last| last.flatten())
            .min();
        if let Some(branch) = oldest
            && last_branches.iter().all(is_old)
        {
            let branch = branch.to_string();
            return vec![FixCall::new("install-nvidia-driver-legacy").with("branch", branch)];
        }
        if let Some((open, proprietary)) = self.nvidia_gpus_of_two_flavours(tables) {
            return vec![
                FixCall::new("no-nvidia-driver-for-all")
                    .with("name", open)
                    .with("word", proprietary),
            ];
        }
        // An old card beside newer ones gets no driver: nobody gives up the newer ones for it.
        let current = || last_branches.iter().filter(|last| !is_old(last));
        let calls = if current().any(Option::is_none) {
            vec![open(), proprietary()]
        } else if current().all(|last| *last == Some(None)) {
            vec![open()]
        } else {
            vec![proprietary()]
        };
        let of_data_centre = gpus.iter().any(|gpu| gpu.data_centre);
        match of_data_centre.then(|| self.nvidia_server_fix(&calls)) {
            Some(Some(call)) => vec![call],
            _ => calls,
        }
    }

    /// The addresses of two GPUs of which one needs the open module and the other the proprietary one.
    fn nvidia_gpus_of_two_flavours(&self, tables: &Tables) -> Option<(&str, &str)> {
        let gpus = || {
            let all = self.gpus_of(Stack::Cuda);
            all.filter(|gpu| gpu.is_on_bus() && !self.is_reserved(gpu))
        };
        let open = gpus().find(|gpu| gpu.needs_open_module() == Some(true))?;
        let proprietary = gpus().find(|gpu| {
            let last = last_branch(gpu, tables);
            last.is_some_and(|last| last >= BRANCHES_NOW)
        })?;
        Some((&open.key, &proprietary.key))
    }

    /// How a driver for data-centre GPUs is installed, where that is not as for any other.
    fn nvidia_server_fix(&self, calls: &[FixCall]) -> Option<FixCall> {
        let is_ubuntu = self.is_of_family("ubuntu");
        let is_open = calls
            .iter()
            .any(|call| call.recipe == "install-nvidia-driver-open");
        match self.nvswitches().next() {
            Some(_) if is_ubuntu || is_open => Some(FixCall::new("install-nvidia-driver-nvswitch")),
            None if is_ubuntu => Some(FixCall::new("install-nvidia-driver-server")),
            _ => None,
        }
    }

    /// How to get a newer driver of NVIDIA, of this branch or later: Ubuntu has a line of its own for servers.
    pub fn newer_nvidia_driver(&self, branch: Option<String>) -> FixCall {
        let of_data_centre = self.gpus_of(Stack::Cuda).any(|gpu| gpu.data_centre);
        let call = match of_data_centre && self.is_of_family("ubuntu") {
            true => FixCall::new("newer-nvidia-driver-server"),
            false => FixCall::new("newer-nvidia-driver"),
        };
        self.driver_fix(match branch {
            Some(branch) => call.with("branch", branch),
            None => call,
        })
    }

    /// How to get NVIDIA's module into a kernel that has none, by how it comes onto this machine: dkms or akmods builds it, or
    /// a package brings it ready-made. Where neither is here, the driver itself is to be installed.
    pub fn nvidia_module_fixes(
        &self,
        release: &str,
        gpus: &[&Gpu],
        tables: &Tables,
    ) -> Vec<FixCall> {
        let is_image = self.is_of_family("nixos") || self.is_of_family("ostree");
        let builder = self.builder_of("nvidia");
        let call = match (&builder, self.ready_nvidia_module()) {
            (Seen::Got(builder), _) if !is_image => build_fix("nvidia", builder, release),
            (_, Seen::Got(package)) if !is_image => {
                let call = FixCall::new("install-nvidia-ready-module").with("kernel", release);
                match ubuntu_module_for(package, release) {
                    Some(name) => call.with("name", name),
                    None => call,
                }
            }
            (Seen::Absent, Seen::Absent) if !is_image => {
                return self.nvidia_install_fixes(gpus, tables);
            }
            _ => FixCall::new("build-nvidia-module-for-kernel").with("kernel", release),
        };
        vec![self.driver_fix(call)]
    }

    /// A package that brings NVIDIA's module ready-made; of several the newest. `Absent`: the database of packages has none.
    pub fn ready_nvidia_module(&self) -> Seen<&str> {
        let mut unknown = false;
        let mut found: Vec<&str> = Vec::new();
        for pattern in ["linux-*", "kmod-nvidia*", "nvidia*"] {
            match self.packages_matching(pattern) {
                Seen::Got(packages) => found.extend(packages.into_iter().map(|(name, _)| name)),
                Seen::Absent => {}
                _ => unknown = true,
            }
        }
        found.retain(|name| is_ready_nvidia_module(name));
        match found.into_iter().max_by_key(|name| Version::parse(name)) {
            Some(name) => Seen::Got(name),
            None if unknown => Seen::Unasked(Why::NotCaptured),
            None => Seen::Absent,
        }
    }

    /// Something of NVIDIA's driver is on this system: a module for any kernel, sources of it, or its library.
    pub fn nvidia_driver_installed(&self) -> Seen<Evidence> {
        let mut unknown = None;
        let signs = [
            self.module_of_any_kernel("nvidia")
                .map(|says| (self.module_folder().to_owned(), says)),
            self.driver_library()
                .map(|file| (file.path.clone(), "is there".to_owned())),
            self.built_from_source("nvidia")
                .map(|says| ("/var/lib/dkms".to_owned(), says)),
        ];
        for sign in signs {
            match sign {
                Seen::Got((source, says)) => return Seen::Got(Evidence { source, says }),
                Seen::Absent => {}
                other => {
                    unknown.get_or_insert(other.map(|_| Evidence {
                        source: String::new(),
                        says: String::new(),
                    }));
                }
            }
        }
        unknown.unwrap_or(Seen::Absent)
    }

    /// What follows for every driver check of a stack from its GPUs alone: nothing to ask where none is on this bus, or
    /// where all are set aside for virtual machines.
    pub fn gpus_to_drive(&self, stack: Stack) -> GpusToDrive<'_> {
        let mut set_aside = false;
        let mut mine = Vec::new();
        for gpu in self.gpus_of(stack).filter(|gpu| gpu.is_on_bus()) {
            if self.is_reserved(gpu) {
                set_aside = true;
            } else {
                mine.push(gpu);
            }
        }
        if !mine.is_empty() {
            return GpusToDrive::These(mine);
        }
        if self.gpus_whole {
            GpusToDrive::None
        } else if set_aside {
            GpusToDrive::Unknown("whether there are GPUs besides those set aside".to_owned())
        } else {
            GpusToDrive::Unknown(self.why_gpus_are_unknown())
        }
    }

    /// Why the list of GPUs may not be complete.
    pub fn why_gpus_are_unknown(&self) -> String {
        if self.is_tegra() {
            return "the GPU of a Tegra chip is on no bus, and this version does not read it"
                .to_owned();
        }
        if self.facts.pci.is_unknown() {
            return format!("/sys/bus/pci/devices: {}", self.facts.pci.why());
        }
        join::unread_list(self.facts).unwrap_or_else(|| {
            "/sys/bus/pci/devices: not every device on the bus could be identified".to_owned()
        })
    }

    /// A module's state as words for evidence: loaded or not, and what shows it.
    pub fn loaded_words(&self, module: &str) -> Evidence {
        match self.loaded(module) {
            Loaded::Yes(evidence) | Loaded::No(evidence) => evidence,
            Loaded::Unknown(_) => Evidence {
                source: format!("/sys/module/{module}"),
                says: self.module(module).why(),
            },
        }
    }
}

/// The GPUs that a stack's kernel driver should hold here.
#[derive(Clone, Debug)]
pub enum GpusToDrive<'v> {
    /// Proved to be none.
    None,
    /// These, and perhaps others.
    These(Vec<&'v Gpu>),
    /// None was seen, and why that is no proof.
    Unknown(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::module_files::{InstalledKernel, ModuleFiles};
    use crate::facts::pci::PciFunction;
    use crate::facts::software::Software;
    use crate::facts::{Facts, Named};

    /// A bus with GPUs of NVIDIA, by their device ids, each held by a driver.
    fn bus(gpus: &[(u16, &str)]) -> Facts {
        let function = |(index, (device, driver)): (usize, &(u16, &str))| {
            let function = PciFunction {
                vendor: Seen::Got(0x10de),
                device: Seen::Got(*device),
                class: Seen::Got(0x03_0000),
                driver: Seen::Got((*driver).to_owned()),
                ..PciFunction::default()
            };
            (format!("0000:{index:02x}:00.0"), function)
        };
        Facts {
            pci: Seen::Got(Named {
                whole: true,
                items: gpus.iter().enumerate().map(function).collect(),
            }),
            ..Facts::default()
        }
    }

    fn install_fixes(devices: &[u16]) -> Vec<String> {
        let gpus: Vec<(u16, &str)> = devices.iter().map(|device| (*device, "nouveau")).collect();
        let (facts, tables) = (bus(&gpus), Tables::embedded());
        let view = View::new(&facts, &tables, &[]);
        let gpus: Vec<&Gpu> = view.gpus.iter().collect();
        view.nvidia_install_fixes(&gpus, &tables)
            .into_iter()
            .map(|call| {
                let branch = call.arguments.get("branch").map(String::as_str);
                format!("{}{}", call.recipe, branch.unwrap_or_default())
            })
            .collect()
    }

    #[test]
    fn what_to_install_follows_from_the_architecture() {
        const OPEN: &str = "install-nvidia-driver-open";
        const PROPRIETARY: &str = "install-nvidia-driver-proprietary";
        // RTX 4070; GTX 1070; GT 640; an id that is in no table.
        let (ada, pascal, kepler, unknown) = (0x2786, 0x1b81, 0x0fc1, 0xfffd);
        assert_eq!(install_fixes(&[ada]), [OPEN]);
        assert_eq!(install_fixes(&[pascal]), [PROPRIETARY]);
        assert_eq!(
            install_fixes(&[kepler]),
            ["install-nvidia-driver-legacy470"]
        );
        assert_eq!(install_fixes(&[ada, pascal]), [PROPRIETARY]);
        assert_eq!(install_fixes(&[ada, kepler]), [OPEN]);
        assert_eq!(install_fixes(&[pascal, kepler]), [PROPRIETARY]);
        assert_eq!(install_fixes(&[unknown]), [OPEN, PROPRIETARY]);
        assert_eq!(install_fixes(&[unknown, ada]), [OPEN, PROPRIETARY]);
        // RTX 5070 Ti: no flavour takes it and a card of Pascal; whichever is asked about.
        let blackwell = 0x2c05;
        assert_eq!(
            install_fixes(&[blackwell, pascal]),
            ["no-nvidia-driver-for-all"]
        );
        assert_eq!(install_fixes(&[blackwell, ada]), [OPEN]);
        assert_eq!(install_fixes(&[blackwell, kepler]), [OPEN]);
    }

    #[test]
    fn the_package_for_another_kernel_keeps_its_branch() {
        let name = |package| ubuntu_module_for(package, "6.14.0-37-generic");
        for (package, wanted) in [
            (
                "linux-modules-nvidia-580-open-6.14.0-36-generic",
                "linux-modules-nvidia-580-open-6.14.0-37-generic",
            ),
            (
                "linux-modules-nvidia-535-server-generic",
                "linux-modules-nvidia-535-server-6.14.0-37-generic",
            ),
            (
                "linux-modules-nvidia-570-server-open-aws",
                "linux-modules-nvidia-570-server-open-6.14.0-37-generic",
            ),
        ] {
            assert_eq!(name(package).as_deref(), Some(wanted));
            assert!(is_ready_nvidia_module(package));
        }
        assert_eq!(name("kmod-nvidia-open"), None);
        assert_eq!(name("linux-modules-nvidia-fs-generic"), None);
        for other in ["nvidia-utils", "linux-firmware-nvidia", "nvidia-open-dkms"] {
            assert!(!is_ready_nvidia_module(other), "{other}");
        }
    }

    #[test]
    fn a_driver_takes_what_its_branch_takes() {
        let (facts, tables) = (
            bus(&[(0x0fc1, "nouveau"), (0x2786, "nvidia")]),
            Tables::embedded(),
        );
        let view = View::new(&facts, &tables, &[]);
        let takes =
            |index: usize, version| view.nvidia_driver_takes(&view.gpus[index], version, &tables);
        assert_eq!(takes(0, "470.256.02"), Takes::Yes);
        assert_eq!(takes(0, "580.95.05"), Takes::No(470));
        assert_eq!(takes(1, "580.95.05"), Takes::Yes);
        assert_eq!(takes(0, "unknown"), Takes::Unknown);
    }

    #[test]
    fn devices_that_are_set_aside() {
        for driver in ["vfio-pci", "pci-stub", "xen-pciback", "gim"] {
            assert!(is_set_aside(driver), "{driver}");
        }
        for driver in [
            "nvidia",
            "nouveau",
            "amdgpu",
            "radeon",
            "i915",
            "xe",
            "fglrx_pci",
        ] {
            assert!(!is_set_aside(driver), "{driver}");
        }
        let (facts, tables) = (bus(&[(0x2786, "vfio-pci")]), Tables::embedded());
        let view = View::new(&facts, &tables, &[]);
        assert!(matches!(view.gpus_to_drive(Stack::Cuda), GpusToDrive::None));
        assert!(matches!(view.gpus_to_drive(Stack::Rocm), GpusToDrive::None));
    }

    /// Each of the three signs decides by itself, and an unknown one keeps absence from being proved.
    #[test]
    fn installed_is_proved_by_one_sign_and_absence_by_all() {
        let tables = Tables::embedded();
        let nothing = || {
            let mut facts = bus(&[(0x2786, "nouveau")]);
            let kernel = InstalledKernel {
                modules: Named {
                    whole: true,
                    ..Named::default()
                },
                ..InstalledKernel::default()
            };
            facts.module_files = Seen::Got(ModuleFiles {
                path: "/lib/modules".to_owned(),
                kernels: Named {
                    whole: true,
                    items: [("6.8.0".to_owned(), kernel)].into(),
                },
                ..ModuleFiles::default()
            });
            facts.dkms = Seen::Got(crate::facts::module_files::Dkms {
                modules: Seen::Absent,
                ..Default::default()
            });
            facts.software = Seen::Got(Software {
                libraries: [("libcuda.so.1".to_owned(), Seen::Absent)].into(),
                ..Software::default()
            });
            facts
        };
        let installed = |facts: &Facts| {
            View::new(facts, &tables, &[])
                .nvidia_driver_installed()
                .map(|evidence| evidence.source)
        };
        assert_eq!(installed(&nothing()), Seen::Absent);

        let mut facts = nothing();
        facts.dkms = Seen::default();
        assert!(installed(&facts).is_unknown());
        let mut facts = nothing();
        facts.software = Seen::default();
        assert!(installed(&facts).is_unknown());
        let mut facts = nothing();
        facts.module_files = Seen::default();
        assert!(installed(&facts).is_unknown());

        let library = |path: &str, bytes| Library {
            path: path.to_owned(),
            target: Seen::default(),
            bytes: Seen::Got(bytes),
            ..Library::default()
        };
        for (path, bytes, there) in [
            ("/usr/lib64/libcuda.so.1", 1000, true),
            ("/usr/lib64/libcuda.so.1", 0, false),
            ("/usr/lib/wsl/lib/libcuda.so.1", 1000, false),
            ("/usr/local/cuda-12.8/compat/libcuda.so.1", 1000, false),
            ("/usr/local/cuda/lib64/stubs/libcuda.so.1", 1000, false),
        ] {
            let mut facts = nothing();
            facts.software = Seen::Got(Software {
                libraries: [(
                    "libcuda.so.1".to_owned(),
                    Seen::Got(vec![library(path, bytes)]),
                )]
                .into(),
                ..Software::default()
            });
            assert_eq!(installed(&facts).got().is_some(), there, "{path} {bytes}");
        }
    }
}
