//! Kernel modules that are built on the machine itself: by dkms or akmods, and whether there is one for the running kernel.

use super::ask::normalised;
use super::wanted::is_source_of;
use super::{DriverGround, GpusToDrive, Stack, View};
use crate::facts::module_files::{BuildLog, DkmsVersion, ModuleFile};
use crate::facts::{Seen, Why};
use crate::finding::Evidence;
use crate::fix::FixCall;

/// What stands in the way of asking how a stack's module gets into the running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildGround {
    /// Nothing.
    Open,
    /// The question does not arise: no GPU to drive, or no kernel of this system's own.
    NotHere,
    /// Something that decides is not known.
    Unknown(String),
}

/// One version of a module in the tree of dkms.
#[derive(Clone, Copy, Debug)]
pub struct DkmsTree<'v> {
    /// Name of the module (`nvidia`).
    pub name: &'v str,
    /// Its version.
    pub version: &'v str,
    /// What is there of it.
    pub tree: &'v DkmsVersion,
}

/// Where akmods keeps what it builds.
const OF_AKMODS: &str = "/usr/src/akmods";

/// What builds a module is akmods.
pub fn is_akmods(builder: &Evidence) -> bool {
    builder.source == OF_AKMODS
}

/// How to have a module built for a kernel by what builds it on this machine.
pub fn build_fix(module: &'static str, builder: &Evidence, release: &str) -> FixCall {
    let recipe = match is_akmods(builder) {
        true => "build-with-akmods",
        false => "install-kernel-headers",
    };
    FixCall::new(recipe)
        .with("kernel", release)
        .with("module", module)
}

impl DkmsTree<'_> {
    /// Its folder.
    pub fn path(&self) -> String {
        format!("/var/lib/dkms/{}/{}", self.name, self.version)
    }
}

/// A driver's module that is loaded, beside the one that the next start takes.
pub enum NextModule<'v> {
    /// It is of another version.
    Other {
        /// The version that is loaded.
        loaded: &'v str,
        /// The file on the disk.
        path: &'v str,
        /// Its version.
        version: &'v str,
    },
    /// This version is loaded and on the disk.
    Same(&'v str),
    /// There is nothing to compare.
    NotHere,
    /// Not known.
    Unknown(String),
}

impl View<'_> {
    /// The kernel module that drives the GPUs of a stack and that packages bring along as source. None: such sources of it
    /// are not known here.
    pub fn module_of(&self, stack: Stack) -> Option<&'static str> {
        match stack {
            Stack::Cuda => Some("nvidia"),
            Stack::Rocm => Some("amdgpu"),
            Stack::LevelZero => None,
        }
    }

    /// Whether module files and builds of this place can be judged for a stack.
    pub fn build_ground(&self, stack: Stack) -> BuildGround {
        // In a container they are the host's.
        if self.wsl().is_some() || self.is_tegra() || self.driver_ground() == DriverGround::Host {
            return BuildGround::NotHere;
        }
        match (self.gpus_to_drive(stack), self.driver_ground()) {
            (GpusToDrive::None, _) => BuildGround::NotHere,
            (GpusToDrive::Unknown(why), _) | (_, DriverGround::Unknown(why)) => {
                BuildGround::Unknown(why)
            }
            _ => BuildGround::Open,
        }
    }

    /// Whether the module of a stack's driver that is loaded is the one that the next start takes.
    pub fn next_module(&self, stack: Stack) -> NextModule<'_> {
        let Some(module) = self.module_of(stack) else {
            return NextModule::NotHere;
        };
        // One from a container brings its module along; what is on the disk is left over.
        if stack == Stack::Cuda && self.driver_container().is_some() {
            return NextModule::NotHere;
        }
        match self.build_ground(stack) {
            BuildGround::Open => {}
            BuildGround::NotHere => return NextModule::NotHere,
            BuildGround::Unknown(why) => return NextModule::Unknown(why),
        }
        let source = format!("/sys/module/{module}/version");
        // A module that comes with the kernel has no version.
        let loaded = match self.module_version(module) {
            Seen::Got(loaded) if loaded.trim().is_empty() => {
                return NextModule::Unknown(format!("{source} is empty"));
            }
            Seen::Got(loaded) => loaded.trim(),
            Seen::Absent => return NextModule::NotHere,
            other => return NextModule::Unknown(format!("{source}: {}", other.why())),
        };
        let files = match self.module_files(module) {
            Seen::Got(files) => files,
            // Another check says that there is none for this kernel.
            Seen::Absent => return NextModule::NotHere,
            other => {
                let why = other.map(|_| ()).why();
                let folder = self.running_kernel_folder();
                return NextModule::Unknown(format!("{folder}: {why}"));
            }
        };
        let versions: Vec<(&str, Option<&str>)> = files
            .iter()
            .map(|file| {
                let version = file.info.got().and_then(|info| info.version.as_deref());
                (file.path.as_str(), version)
            })
            .collect();
        // Of files of one name `modules.dep` decides; which of several names (Debian's `nvidia-current` beside
        // `nvidia-tesla-470`) is taken is set elsewhere.
        let stem = |path: &str| {
            let file = path.rsplit('/').next().unwrap_or(path);
            file.split_once(".ko").map(|(stem, _)| normalised(stem))
        };
        let is_decided = versions
            .iter()
            .all(|(path, _)| stem(path) == stem(versions[0].0))
            && self
                .running_kernel()
                .got()
                .is_some_and(|kernel| kernel.modules_dep.got().is_some());
        let mut taken = versions
            .iter()
            .take(if is_decided { 1 } else { versions.len() });
        if taken.any(|(_, version)| *version == Some(loaded)) {
            return NextModule::Same(loaded);
        }
        // The first file is the one that the next start takes; one of AMD that comes with the kernel has no version.
        let Some((path, Some(version))) = versions.first().copied() else {
            return NextModule::Unknown(format!(
                "the version of {module} on the disk is not known"
            ));
        };
        if !is_decided && versions.iter().any(|(_, version)| version.is_none()) {
            return NextModule::Unknown(format!("not every file of {module} tells its version"));
        }
        NextModule::Other {
            loaded,
            path,
            version,
        }
    }

    /// A file of a module for the running kernel that does not come with the kernel: every one of NVIDIA's, and an amdgpu
    /// outside of the kernel's own folder. `Absent`: proved that there is none.
    pub fn extra_module(&self, name: &str) -> Seen<&ModuleFile> {
        let own = format!("{}/kernel/", self.running_kernel_folder());
        self.running_kernel().and_then(|kernel| {
            let files = kernel.modules.get(name);
            let extra = files.got().and_then(|files| {
                files
                    .iter()
                    .find(|file| name == "nvidia" || !file.path.starts_with(&own))
            });
            match extra {
                Some(file) => Seen::Got(file),
                None if kernel.modules.whole => Seen::Absent,
                None => Seen::Unasked(Why::NotCaptured),
            }
        })
    }

    /// The versions of a module in the tree of dkms, with whether these are all. `Absent`: dkms has none.
    pub fn dkms_trees(&self, module: &str) -> Seen<(Vec<DkmsTree<'_>>, bool)> {
        let modules = self
            .facts
            .dkms
            .as_ref()
            .and_then(|dkms| dkms.modules.as_ref());
        modules.and_then(|modules| {
            let mut whole = modules.whole;
            let mut trees = Vec::new();
            for (name, versions) in &modules.items {
                if !is_source_of(module, name) {
                    continue;
                }
                whole &= versions.whole;
                trees.extend(versions.items.iter().map(|(version, tree)| DkmsTree {
                    name,
                    version,
                    tree,
                }));
            }
            if trees.is_empty() && whole {
                return Seen::Absent;
            }
            Seen::Got((trees, whole))
        })
    }

    /// Logs of akmods about builds of a module that failed. The folder says whose a log is: one of NVIDIA's says nothing of
    /// amdgpu.
    pub fn akmods_failed(&self, module: &str) -> Seen<Vec<&BuildLog>> {
        let logs = self
            .facts
            .dkms
            .as_ref()
            .and_then(|dkms| dkms.akmods_failed.as_ref());
        logs.map(|logs| {
            let is_of_module = |log: &&BuildLog| {
                let below = log.path.strip_prefix("/var/cache/akmods/");
                let folder = below.and_then(|below| below.split('/').next());
                folder.is_some_and(|folder| is_source_of(module, folder))
            };
            logs.iter().filter(is_of_module).collect()
        })
    }

    /// What builds a module on this machine. `Absent`: nothing does.
    pub fn builder_of(&self, module: &str) -> Seen<Evidence> {
        let evidence = |source: String, says: String| Seen::Got(Evidence { source, says });
        let by_dkms = self
            .dkms_trees(module)
            .and_then(|(trees, whole)| match trees.first() {
                Some(tree) => evidence(tree.path(), "dkms has its source".to_owned()),
                None if whole => Seen::Absent,
                None => Seen::Unasked(Why::NotCaptured),
            });
        let by_akmods = || {
            let packages = self
                .facts
                .dkms
                .as_ref()
                .and_then(|dkms| dkms.akmods.as_ref());
            packages.and_then(|packages| {
                // Folders of the cache stay when the package goes.
                packages
                    .iter()
                    .find(|name| is_source_of(module, name) && name.ends_with(".src.rpm"))
                    .map_or(Seen::Absent, |name| {
                        evidence(
                            OF_AKMODS.to_owned(),
                            format!("{name} is there: akmods builds it"),
                        )
                    })
            })
        };
        match by_dkms {
            Seen::Got(found) => Seen::Got(found),
            Seen::Absent => by_akmods(),
            unknown => match by_akmods() {
                Seen::Got(found) => Seen::Got(found),
                _ => unknown,
            },
        }
    }
}
