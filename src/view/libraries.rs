//! Whom to ask when the files have shown what is here: packages, services and logs only where a GPU matters, a library only
//! where something shows its hardware, where that wakes nothing, and where there is a file to load.

use super::{Gpu, Loaded, Vendor, View};
use crate::facts::{Seen, Why};

/// What the user allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Nothing that takes long.
    pub quick: bool,
    /// GPUs may be woken.
    pub wake: bool,
}

/// Whether a source is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Yes.
    Yes,
    /// Yes: this library file.
    Load(String),
    /// No.
    No(Why),
    /// No: there is nothing to load, in words.
    NotLoaded(String),
}

impl View<'_> {
    /// Whether a worker of the second round is to be started: `system`, `nvml`, `cuda`, `rocm_smi`.
    pub fn asking(&self, worker: &str, allowed: Allowed) -> Asking {
        match worker {
            "nvml" if self.shows_nvidia() => {
                let asleep = self.sleeps(Vendor::Nvidia, "nvidia");
                self.loading("libnvidia-ml.so.1", asleep, allowed)
            }
            // The one call that is made opens no device.
            "cuda" if self.shows_nvidia() => self.loading("libcuda.so.1", false, allowed),
            "rocm_smi" if self.shows_amd() => {
                let asleep = self.sleeps(Vendor::Amd, "amdgpu");
                self.loading("librocm_smi64.so", asleep, allowed)
            }
            "system" if self.shows_hardware() => Asking::Yes,
            _ => Asking::No(Why::NoSuchHardware),
        }
    }

    /// A library whose hardware is shown.
    fn loading(&self, name: &str, asleep: bool, allowed: Allowed) -> Asking {
        if allowed.quick {
            return Asking::No(Why::Quick);
        }
        if asleep && !allowed.wake {
            return Asking::No(Why::Asleep);
        }
        match self.library(name) {
            // A stub is no answer, even where programs would take it.
            Seen::Got(files) => match self.loadable(files).find(|file| !file.is_stub()) {
                Some(file) => Asking::Load(file.path.clone()),
                None => Asking::NotLoaded(format!("no {name} that this program could load")),
            },
            Seen::Absent => Asking::NotLoaded(format!("no {name} in the folders of libraries")),
            Seen::Unasked(why) => Asking::No(why),
            Seen::Failed(failure) => {
                Asking::NotLoaded(format!("where {name} is could not be found out: {failure}"))
            }
        }
    }

    fn shows_hardware(&self) -> bool {
        let modules = ["nouveau", "radeon", "i915", "xe"];
        !self.gpus.is_empty()
            || self.shows_nvidia()
            || self.shows_amd()
            || modules.iter().any(|module| self.is_loaded(module))
    }

    fn shows_nvidia(&self) -> bool {
        // Under WSL the host's GPU may be anybody's.
        let unknown = |gpu: &Gpu| gpu.key == "dxg" && gpu.vendor == Vendor::Other;
        self.has_gpu_of(Vendor::Nvidia) || self.is_loaded("nvidia") || self.gpus.iter().any(unknown)
    }

    fn shows_amd(&self) -> bool {
        self.has_gpu_of(Vendor::Amd) || self.is_loaded("amdgpu")
    }

    fn has_gpu_of(&self, vendor: Vendor) -> bool {
        self.gpus.iter().any(|gpu| gpu.vendor == vendor)
    }

    fn is_loaded(&self, module: &str) -> bool {
        matches!(self.loaded(module), Loaded::Yes(_))
    }

    /// A GPU sleeps that the vendor's library would wake: one that another driver holds is none of its.
    fn sleeps(&self, vendor: Vendor, driver: &str) -> bool {
        self.gpus.iter().any(|gpu| {
            gpu.vendor == vendor
                && gpu.asleep == Some(true)
                && gpu.driver.got().is_none_or(|bound| bound == driver)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::device_nodes::{DeviceNodes, Node};
    use crate::facts::kernel::{Kernel, LoadedModule, LoadedModules};
    use crate::facts::pci::{PciDetail, PciFunction};
    use crate::facts::software::{Elf, Library, Software};
    use crate::facts::{Facts, Failure, Named};
    use crate::tables::Tables;

    const WORKERS: [&str; 4] = ["system", "nvml", "cuda", "rocm_smi"];
    const NOTHING: Asking = Asking::No(Why::NoSuchHardware);

    fn asked(facts: &Facts, allowed: Allowed) -> [Asking; 4] {
        let tables = Tables::embedded();
        let view = View::new(facts, &tables, &[]);
        WORKERS.map(|worker| view.asking(worker, allowed))
    }

    fn file(path: &str) -> Library {
        Library {
            path: path.to_owned(),
            bytes: Seen::Got(1000),
            ..Library::default()
        }
    }

    /// Both libraries of NVIDIA and the one of AMD.
    fn installed() -> Seen<Software> {
        let names = ["libnvidia-ml.so.1", "libcuda.so.1", "librocm_smi64.so"];
        let files = names.map(|name| {
            (
                name.to_owned(),
                Seen::Got(vec![file(&format!("/usr/lib/{name}"))]),
            )
        });
        Seen::Got(Software {
            libraries: files.into_iter().collect(),
            ..Software::default()
        })
    }

    fn load(name: &str) -> Asking {
        Asking::Load(format!("/usr/lib/{name}"))
    }

    /// One GPU on the bus: vendor, driver, sleeping or not.
    fn bus(vendor: u16, driver: &str, asleep: bool) -> Facts {
        let status = if asleep { "suspended" } else { "active" };
        let function = PciFunction {
            vendor: Seen::Got(vendor),
            device: Seen::Got(0x2684),
            class: Seen::Got(0x03_0000),
            driver: Seen::Got(driver.to_owned()),
            detail: Some(Box::new(PciDetail {
                runtime_status: Seen::Got(status.to_owned()),
                ..PciDetail::default()
            })),
            ..PciFunction::default()
        };
        Facts {
            pci: Seen::Got(Named {
                whole: true,
                items: [("0000:01:00.0".to_owned(), function)].into(),
            }),
            software: installed(),
            ..Facts::default()
        }
    }

    #[test]
    fn without_hardware_nobody_is_asked() {
        let facts = Facts {
            software: installed(),
            ..Facts::default()
        };
        assert_eq!(
            asked(&facts, Allowed::default()),
            [NOTHING, NOTHING, NOTHING, NOTHING]
        );
    }

    #[test]
    fn whose_hardware_is_here_decides() {
        let nvidia = [
            Asking::Yes,
            load("libnvidia-ml.so.1"),
            load("libcuda.so.1"),
            NOTHING,
        ];
        let amd = [Asking::Yes, NOTHING, NOTHING, load("librocm_smi64.so")];
        let default = Allowed::default();
        assert_eq!(asked(&bus(0x10de, "nvidia", false), default), nvidia);
        assert_eq!(asked(&bus(0x1002, "amdgpu", false), default), amd);
        let intel = [Asking::Yes, NOTHING, NOTHING, NOTHING];
        assert_eq!(asked(&bus(0x8086, "i915", false), default), intel);
        // A module that is loaded shows it as well: the bus may be hidden.
        for (module, expected) in [
            ("nvidia", nvidia),
            ("amdgpu", amd),
            ("xe", intel),
            ("e1000e", [NOTHING, NOTHING, NOTHING, NOTHING]),
        ] {
            let known = [(module.to_owned(), Seen::Got(LoadedModule::default()))];
            let facts = Facts {
                modules: Seen::Got(LoadedModules {
                    known: known.into(),
                    ..LoadedModules::default()
                }),
                software: installed(),
                ..Facts::default()
            };
            assert_eq!(asked(&facts, default), expected, "{module}");
        }
    }

    #[test]
    fn under_wsl_the_gpu_may_be_of_nvidia() {
        let nodes = DeviceNodes {
            dev: Named {
                whole: true,
                items: [("/dev/dxg".to_owned(), Node::default())].into(),
            },
            ..DeviceNodes::default()
        };
        let kernel = Kernel {
            release: Seen::Got("6.6.87.2-microsoft-standard-WSL2".to_owned()),
            ..Kernel::default()
        };
        let facts = Facts {
            kernel: Seen::Got(kernel),
            device_nodes: Seen::Got(nodes),
            software: installed(),
            ..Facts::default()
        };
        assert_eq!(
            asked(&facts, Allowed::default()),
            [
                Asking::Yes,
                load("libnvidia-ml.so.1"),
                load("libcuda.so.1"),
                NOTHING
            ]
        );
    }

    #[test]
    fn what_the_user_wants_decides_next() {
        let quick = Allowed {
            quick: true,
            wake: true,
        };
        let no = Asking::No(Why::Quick);
        assert_eq!(
            asked(&bus(0x10de, "nvidia", false), quick),
            [Asking::Yes, no.clone(), no, NOTHING]
        );
    }

    #[test]
    fn a_gpu_is_not_woken() {
        let asleep = Asking::No(Why::Asleep);
        let wake = Allowed {
            quick: false,
            wake: true,
        };
        let sleeping = bus(0x10de, "nvidia", true);
        let [_, nvml, cuda, _] = asked(&sleeping, Allowed::default());
        assert_eq!((nvml, cuda), (asleep.clone(), load("libcuda.so.1")));
        let [_, nvml, ..] = asked(&sleeping, wake);
        assert_eq!(nvml, load("libnvidia-ml.so.1"));
        let [.., smi] = asked(&bus(0x1002, "amdgpu", true), Allowed::default());
        assert_eq!(smi, asleep);
        // What another driver put to sleep is none of the library's.
        let [_, nvml, ..] = asked(&bus(0x10de, "vfio-pci", true), Allowed::default());
        assert_eq!(nvml, load("libnvidia-ml.so.1"));
    }

    #[test]
    fn the_file_that_fits_is_loaded() {
        let elf = |class, machine: &str| {
            Seen::Got(Elf {
                class,
                machine: machine.to_owned(),
                ..Elf::default()
            })
        };
        let mut facts = bus(0x10de, "nvidia", false);
        facts.kernel = Seen::Got(Kernel {
            machine: Seen::Got("x86_64".to_owned()),
            ..Kernel::default()
        });
        let mut nvml = |files: Seen<Vec<Library>>| {
            let name = "libnvidia-ml.so.1".to_owned();
            facts.software = Seen::Got(Software {
                libraries: [(name, files)].into(),
                ..Software::default()
            });
            let [_, nvml, ..] = asked(&facts, Allowed::default());
            nvml
        };
        let files = vec![
            file("/usr/local/cuda/lib64/stubs/libnvidia-ml.so.1"),
            Library {
                via: Some("LD_LIBRARY_PATH".to_owned()),
                ..file("/opt/cuda/lib64/stubs/libnvidia-ml.so.1")
            },
            file("/usr/local/cuda/compat/libnvidia-ml.so.1"),
            Library {
                bytes: Seen::Got(0),
                ..file("/usr/lib/empty.so.1")
            },
            Library {
                elf: elf(32, "i386"),
                ..file("/usr/lib/i386-linux-gnu/libnvidia-ml.so.1")
            },
            Library {
                elf: elf(64, "aarch64"),
                ..file("/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1")
            },
            Library {
                elf: elf(64, "x86_64"),
                ..file("/opt/libnvidia-ml.so.1")
            },
            file("/usr/lib/libnvidia-ml.so.1"),
        ];
        let unfit = Seen::Got(files[..6].to_vec());
        let load = |path: &str| Asking::Load(path.to_owned());
        assert_eq!(
            nvml(Seen::Got(files.clone())),
            load("/opt/libnvidia-ml.so.1")
        );
        let unread = Seen::Got(files[7..].to_vec());
        assert_eq!(nvml(unread), load("/usr/lib/libnvidia-ml.so.1"));
        let failed = Failure::errno("EIO");
        for nothing in [unfit, Seen::Absent, Seen::Failed(failed)] {
            let asking = nvml(nothing.clone());
            let Asking::NotLoaded(why) = asking else {
                panic!("{nothing:?}: {asking:?}");
            };
            assert!(why.contains("libnvidia-ml.so.1"), "{why}");
        }
        let unknown = Seen::Unasked(Why::Limit);
        assert_eq!(nvml(unknown), Asking::No(Why::Limit));
    }
}
