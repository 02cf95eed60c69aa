//! What the user wants. A desktop on nouveau or an office iGPU is healthy: a stack that nobody wants is not broken.

use super::{Stack, View, Wanted};
use crate::facts::{Seen, Why};

/// Collects signs: the first one found decides, and what could not be looked at is remembered.
#[derive(Default)]
struct Signs {
    found: Option<String>,
    unknown: bool,
}

impl Signs {
    fn add(&mut self, sign: Seen<String>) {
        match sign {
            Seen::Got(says) if self.found.is_none() => self.found = Some(says),
            Seen::Got(_) | Seen::Absent => {}
            Seen::Unasked(_) | Seen::Failed(_) => self.unknown = true,
        }
    }

    fn judged(self) -> Wanted {
        match self {
            Signs {
                found: Some(says), ..
            } => Wanted::Yes(says),
            Signs { unknown: true, .. } => Wanted::Unknown,
            Signs { .. } => Wanted::No,
        }
    }

    /// A sign that a search through known things gave or did not give.
    fn add_found(&mut self, sign: Option<String>) {
        self.add(sign.map_or(Seen::Absent, Seen::Got));
    }
}

impl View<'_> {
    /// Whether the user wants this stack. The in-kernel drivers amdgpu, i915 and xe prove nothing: every desktop has them.
    pub fn wanted(&self, stack: Stack) -> Wanted {
        let mut signs = self.signs_of_use(stack);
        if stack == Stack::Cuda {
            self.signs_of_nvidia_driver(&mut signs);
        }
        signs.judged()
    }

    /// Whether the user wants to compute with CUDA: by more than NVIDIA's driver alone, which many have for games and for the
    /// display.
    pub fn wanted_for_computing(&self) -> Wanted {
        self.signs_of_use(Stack::Cuda).judged()
    }

    /// The signs that somebody computes with this stack.
    fn signs_of_use(&self, stack: Stack) -> Signs {
        let mut signs = Signs::default();
        signs.add_found(
            self.required
                .contains(&stack)
                .then(|| format!("--require {}", stack.name())),
        );
        signs.add_found(self.accelerator_of(stack));
        let is_here = self.gpus_of(stack).next().is_some();
        // Schedulers set those of every maker.
        if is_here || self.scheduler_job().is_none() {
            for variable in self.steering(stack) {
                signs.add(
                    self.variable(variable)
                        .map(|_| format!("{variable} is set")),
                );
            }
        }
        if is_here {
            signs.add_found(self.first_framework(stack).map(|(framework, _)| framework));
        }
        for library in libraries(stack) {
            signs.add(self.own_library(library));
        }
        for program in programs(stack) {
            signs.add(self.facts.software.as_ref().and_then(|software| {
                software
                    .programs
                    .get(*program)
                    .map_or(Seen::Unasked(Why::NotCaptured), |path| {
                        path.as_ref().map(|path| format!("{path} is there"))
                    })
            }));
        }
        match stack {
            Stack::Cuda => self.signs_of_cuda(&mut signs),
            Stack::Rocm => self.signs_of_rocm(&mut signs),
            Stack::LevelZero => {}
        }
        signs
    }

    /// Variables that only a user of the stack sets. HIP reads CUDA's as well, so with none but AMD GPUs it says nothing.
    fn steering(&self, stack: Stack) -> &'static [&'static str] {
        match stack {
            Stack::Cuda
                if self.gpus_of(Stack::Cuda).next().is_none()
                    && self.gpus_of(Stack::Rocm).next().is_some() =>
            {
                &["CUDA_DEVICE_ORDER"]
            }
            Stack::Cuda => &["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"],
            Stack::Rocm => &[
                "HIP_VISIBLE_DEVICES",
                "ROCR_VISIBLE_DEVICES",
                "HSA_OVERRIDE_GFX_VERSION",
            ],
            Stack::LevelZero => &["ZE_AFFINITY_MASK"],
        }
    }

    /// A data-centre accelerator that no virtual machine and no other container is to have, or a partition mode that somebody
    /// set.
    fn accelerator_of(&self, stack: Stack) -> Option<String> {
        let gpu = self
            .gpus_of(stack)
            .filter(|gpu| !self.is_reserved(gpu) && gpu.passed_in != Some(false))
            .find(|gpu| gpu.data_centre || gpu.kfd_nodes.len() > 1 || self.is_partitioned(gpu))?;
        let name = gpu.name.as_deref().unwrap_or("this GPU");
        Some(if gpu.data_centre {
            format!("{name} at {} is a data-centre accelerator", gpu.key)
        } else {
            format!("{name} at {} is partitioned", gpu.key)
        })
    }

    fn is_partitioned(&self, gpu: &super::Gpu) -> bool {
        let mode = self.facts.drm.got().and_then(|drm| {
            drm.amdgpu
                .get(&gpu.key)?
                .compute_partition
                .got()
                .map(String::as_str)
        });
        matches!(mode, Some(mode) if !mode.is_empty() && mode != "SPX" && mode != "N/A")
    }

    /// A library that was installed here; what Windows lends to WSL says nothing of this user, and nobody computes with one
    /// for 32-bit programs.
    fn own_library(&self, name: &str) -> Seen<String> {
        self.library(name).and_then(|files| {
            files
                .iter()
                .find(|file| !file.is_32_bit() && !file.path.starts_with("/usr/lib/wsl/"))
                .map_or(Seen::Absent, |file| {
                    Seen::Got(format!("{} is there", file.path))
                })
        })
    }

    fn signs_of_cuda(&self, signs: &mut Signs) {
        let Some(software) = self.facts.software.got() else {
            signs.unknown = true;
            return;
        };
        signs.add(software.cuda_toolkits.as_ref().and_then(|toolkits| {
            toolkits.keys().next().map_or(Seen::Absent, |path| {
                Seen::Got(format!("CUDA toolkit in {path}"))
            })
        }));
    }

    fn signs_of_nvidia_driver(&self, signs: &mut Signs) {
        signs.add_found(
            self.gpus_of(Stack::Cuda)
                .find(|gpu| gpu.is_held_by("nvidia") && gpu.passed_in != Some(false))
                .map(|gpu| format!("{} is bound to nvidia", gpu.key)),
        );
        if self.gpus_of(Stack::Cuda).next().is_none() {
            return;
        }
        signs.add(self.module_of_any_kernel("nvidia"));
        signs.add(self.built_from_source("nvidia"));
    }

    fn signs_of_rocm(&self, signs: &mut Signs) {
        match self.facts.software.got() {
            Some(software) => {
                signs.add(
                    software
                        .rocm
                        .as_ref()
                        .map(|_| ())
                        .and_then(|()| Seen::Absent),
                );
                for (path, install) in software.rocm.got().into_iter().flatten() {
                    signs.add(match path.as_str() {
                        // The runtime alone may have come along with something else.
                        "/usr" => install
                            .rocblas_targets
                            .as_ref()
                            .map(|_| "rocBLAS in /usr".to_owned()),
                        path => Seen::Got(format!("ROCm in {path}")),
                    });
                }
            }
            None => signs.unknown = true,
        }
        // Most systems have none of them, so that the list of packages is not known takes nothing away.
        signs.add_found(ROCM_PACKAGES.iter().find_map(|pattern| {
            let (name, _) = *self.packages_matching(pattern).got()?.first()?;
            Some(format!("the package {name} is installed"))
        }));
        if self.gpus_of(Stack::Rocm).next().is_none() {
            return;
        }
        signs.add_found(
            self.gpus_of(Stack::Rocm)
                .find(|gpu| gpu.flavour.as_deref() == Some("dkms") && gpu.passed_in != Some(false))
                .map(|_| "the loaded amdgpu module is AMD's own".to_owned()),
        );
        signs.add(self.built_from_source("amdgpu"));
    }

    /// Sources of a kernel module of the vendor, for dkms or akmods. What dkms builds stands in its tree, so without the
    /// tree `/usr/src` can add a sign and not take one away.
    pub fn built_from_source(&self, module: &str) -> Seen<String> {
        let Some(dkms) = self.facts.dkms.got() else {
            return self.facts.dkms.as_ref().map(|_| String::new());
        };
        let in_tree = dkms.modules.as_ref().and_then(|modules| {
            let mut answer = if modules.whole {
                Seen::Absent
            } else {
                Seen::Unasked(Why::NotCaptured)
            };
            for (name, versions) in &modules.items {
                if !is_source_of(module, name) {
                    continue;
                }
                // An empty folder is left behind when a driver is removed.
                if !versions.items.is_empty() {
                    return Seen::Got(format!("/var/lib/dkms/{name} is there"));
                }
                if !versions.whole {
                    answer = Seen::Unasked(Why::NotCaptured);
                }
            }
            answer
        });
        let in_source = |folders: &Seen<Vec<String>>| {
            folders.as_ref().and_then(|folders| {
                folders
                    .iter()
                    .find(|name| is_source_of(module, name))
                    .map_or(Seen::Absent, |name| {
                        Seen::Got(format!("sources of {name} are there"))
                    })
            })
        };
        in_tree
            .or_else(|| in_source(&dkms.sources))
            .or_else(|| in_source(&dkms.akmods))
    }
}

/// A folder or package of the driver itself (`nvidia`, `nvidia-open-580.95.05`, `akmod-nvidia-...`): NVIDIA's modules for file
/// systems and network cards are none.
pub(super) fn is_source_of(module: &str, name: &str) -> bool {
    let own = name.contains(module);
    let other = ["nvidia-fs", "nvidia_fs", "nvidia-peer", "nvidia_peer"]
        .iter()
        .any(|part| name.contains(part));
    own && !other
}

/// Libraries that come with the user space of the stack and with nothing else. ROCm's runtime is none: distributions bring
/// `libamdhip64` and `libhsa-runtime64` along with Open MPI and with programs that can do without.
fn libraries(stack: Stack) -> &'static [&'static str] {
    match stack {
        Stack::Cuda => &["libcuda.so.1"],
        Stack::Rocm => &[],
        Stack::LevelZero => &["libze_intel_gpu.so.1"],
    }
}

/// Packages that nobody installs but to compute with ROCm: none of those that others need at run time.
const ROCM_PACKAGES: &[&str] = &[
    "hipcc*",
    "librocblas*",
    "rocblas*",
    "rocm",
    "rocm-dev*",
    "rocm-hip-sdk",
    "rocminfo",
];

/// Programs that come with the toolkit or the user space of the stack and with nothing else.
fn programs(stack: Stack) -> &'static [&'static str] {
    match stack {
        Stack::Cuda => &["nvcc"],
        Stack::Rocm => &["rocminfo", "hipcc"],
        Stack::LevelZero => &[],
    }
}
