//! What the ROCm runtime makes of each GPU in this environment: the target that an override gives it, whether the variables
//! leave it, and for which targets the libraries that are installed have kernels.

use super::{Gpu, View};
use crate::facts::software::RocmInstall;
use crate::facts::{Failure, Named, Seen};
use crate::finding::Evidence;
use crate::tables::{Row, kinds};
use crate::version::Version;
use std::collections::BTreeMap;

/// The variable that makes the runtime take every GPU for another. With `_` and the number of a KFD node behind it, it is for
/// that node alone, and goes first; processors are nodes, too (ROCm/ROCR-Runtime libhsakmt `topology.c`, since ROCm 6.2).
pub const OVERRIDE: &str = "HSA_OVERRIDE_GFX_VERSION";
/// Nodes whose own variable is read: those from 0 up to this one.
const NODES: u32 = 8;

/// The folder of KFD's nodes.
pub const KFD_NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// A gfx target as its three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// 11 of `gfx1100`.
    pub major: u8,
    minor: u8,
    stepping: u8,
}

impl Target {
    /// `gfx90a`: all but the last two digits are the major number, and those two are hexadecimal.
    pub fn of_name(name: &str) -> Option<Target> {
        let digits = name.strip_prefix("gfx")?;
        let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
        let mut rest = rest.chars().map(|digit| digit.to_digit(16));
        let mut next = || u8::try_from(rest.next()??).ok();
        Some(Target {
            major: major.parse().ok()?,
            minor: next()?,
            stepping: next()?,
        })
    }

    /// `10.3.0` as the runtime reads it: three decimal numbers of at most 63, 255 and 255 with nothing behind them
    /// (ROCm/ROCR-Runtime libhsakmt `topology.c`, `sscanf` with `%u.%u.%u%c`). Blanks before a number and a plus are skipped.
    pub fn of_override(value: &str) -> Option<Target> {
        let mut numbers = value.split('.').map(|part| {
            let digits = part.trim_start();
            let digits = digits.strip_prefix('+').unwrap_or(digits);
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse::<u8>().ok()).flatten()
        });
        let mut next = || numbers.next().flatten();
        let target = Target {
            major: next().filter(|major| *major <= 63)?,
            minor: next()?,
            stepping: next()?,
        };
        numbers.next().is_none().then_some(target)
    }

    /// `gfx90a`.
    pub fn name(self) -> String {
        format!("gfx{}{:x}{:x}", self.major, self.minor, self.stepping)
    }

    /// `9.0.10`, as the variable wants it.
    pub fn version(self) -> String {
        format!("{}.{}.{}", self.major, self.minor, self.stepping)
    }
}

/// What an override makes of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// None is set: it goes by its own target.
    None,
    /// The variable, its value, and the target that it gives.
    Target(String, String, Target),
    /// The variable and a value that the runtime refuses: it does not start then, whatever GPU the variable is for.
    Refused(String, String),
    /// The variables are not known: which, and why.
    Unknown(String),
}

/// A GPU, or a partition of one, as programs of this environment find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RocmAgent {
    /// Key of the physical GPU; None: it belongs to none that is known.
    pub gpu: Option<String>,
    /// KFD node.
    pub node: u32,
    /// Its own target; None: not known.
    pub native: Option<Target>,
    /// What an override makes of it.
    pub setting: Setting,
    /// The variables leave it; None: not known.
    pub shown: Option<bool>,
}

impl RocmAgent {
    /// The target that the runtime reports; None: not known, or the runtime does not start.
    pub fn effective(&self) -> Option<Target> {
        match &self.setting {
            Setting::None => self.native,
            Setting::Target(_, _, target) => Some(*target),
            Setting::Refused(..) | Setting::Unknown(_) => None,
        }
    }

    /// Where its own target stands.
    pub fn properties(&self) -> String {
        format!("{KFD_NODES}/{}/properties", self.node)
    }

    /// `gfx_target_version 110000 (gfx1100)`.
    pub fn native_words(&self) -> String {
        match self.native {
            Some(target) => {
                let Target {
                    major,
                    minor,
                    stepping,
                } = target;
                format!(
                    "gfx_target_version {} ({})",
                    u32::from(major) * 10_000 + u32::from(minor) * 100 + u32::from(stepping),
                    target.name()
                )
            }
            None => "no gfx_target_version".to_owned(),
        }
    }
}

/// Whether the rocBLAS of this system can compute for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// It can; the folder of the installation.
    In(String),
    /// No installation can: the folder of the kernels of each, and the targets for which it has kernels.
    Lacking(Vec<(String, String)>),
    /// There is no rocBLAS.
    NoLibrary,
    /// Why that is not known.
    Unknown(String),
}

/// What there is to say of how ROCm and a GPU fit.
pub enum TargetGround<'g> {
    /// Its target, by name and taken apart.
    Open(&'g str, Target),
    /// Nothing: it is not on this system, kept for a guest, or older than what ROCm ever took.
    NotHere,
    /// Why that is not known.
    Unknown(&'static str),
}

impl View<'_> {
    /// The overrides of this environment, by name. `Absent`: none is set.
    pub fn overrides(&self) -> Seen<Vec<(String, &str)>> {
        let names = (0..NODES).map(|node| format!("{OVERRIDE}_{node}"));
        let mut set = Vec::new();
        let mut unknown = None;
        for name in std::iter::once(OVERRIDE.to_owned()).chain(names) {
            match self.variable(&name) {
                Seen::Got(value) => set.push((name, value)),
                Seen::Absent => {}
                other => unknown = unknown.or(Some(other)),
            }
        }
        match unknown {
            _ if !set.is_empty() => Seen::Got(set),
            Some(unknown) => unknown.map(|_| Vec::new()),
            None => Seen::Absent,
        }
    }

    fn setting(&self, node: u32) -> Setting {
        for name in [format!("{OVERRIDE}_{node}"), OVERRIDE.to_owned()] {
            match self.variable(&name) {
                Seen::Got(value) => {
                    return match Target::of_override(value) {
                        Some(target) => Setting::Target(name, value.to_owned(), target),
                        None => Setting::Refused(name, value.to_owned()),
                    };
                }
                Seen::Absent => {}
                // Nobody reads the variables of further nodes.
                _ if node >= NODES && name != OVERRIDE => {}
                other => return Setting::Unknown(format!("{name}: {}", other.why())),
            }
        }
        Setting::None
    }

    pub(super) fn find_rocm_agents(&self) -> Vec<RocmAgent> {
        let filters = [
            "ROCR_VISIBLE_DEVICES",
            "HIP_VISIBLE_DEVICES",
            "CUDA_VISIBLE_DEVICES",
        ];
        let unfiltered = filters.iter().all(|name| self.variable(name).is_absent());
        let left = self.left_to_hip();
        let nodes = self.facts.kfd.got().map(|kfd| &kfd.nodes.items);
        let target = |node: u32| {
            let properties = nodes?.get(&node.to_string())?.properties.got()?;
            let version = *properties.get("gfx_target_version")?;
            Target::of_name(&crate::version::gfx_target(version)?)
        };
        // Kernels before 5.16 tell no target.
        let by_table = |key: &Option<String>| {
            let gpu = self
                .gpus
                .iter()
                .find(|gpu| Some(&gpu.key) == key.as_ref())?;
            let known = gpu.target.as_deref().filter(|_| gpu.target_may_accuse);
            Target::of_name(known?)
        };
        self.rocm_devices()
            .agents
            .into_iter()
            .filter_map(|agent| {
                let node = agent.kfd_node?;
                let shown = match &left {
                    _ if unfiltered => Some(true),
                    Some(left) => Some(left.iter().any(|left| left.kfd_node == Some(node))),
                    None => None,
                };
                Some(RocmAgent {
                    native: target(node).or_else(|| by_table(&agent.gpu)),
                    gpu: agent.gpu,
                    node,
                    setting: self.setting(node),
                    shown,
                })
            })
            .collect()
    }

    /// Whether `rocm_agents` are all. In a container the nodes of GPUs that were not given to it refuse to be read, and the
    /// runtime does not find them either.
    pub fn rocm_agents_whole(&self) -> Seen<()> {
        self.facts.kfd.as_ref().and_then(|kfd| {
            for (node, seen) in &kfd.nodes.items {
                match &seen.properties {
                    Seen::Got(_) => {}
                    Seen::Failed(Failure::Denied { .. }) if self.in_container() => {}
                    other => {
                        return Seen::error(format!(
                            "{KFD_NODES}/{node}/properties: {}",
                            other.as_ref().map(|_| ()).why()
                        ));
                    }
                }
            }
            if kfd.nodes.whole {
                Seen::Got(())
            } else {
                Seen::error(format!("{KFD_NODES}: not all nodes are known"))
            }
        })
    }

    /// Why it is not known which GPUs the ROCm runtime finds, with what was asked.
    pub fn why_rocm_agents_are_unknown(&self) -> String {
        match self.rocm_agents_whole() {
            Seen::Failed(Failure::Error { what }) if what.starts_with(KFD_NODES) => what,
            other => format!("{KFD_NODES}: {}", other.why()),
        }
    }

    /// A GPU as the runtime finds it: several where it is partitioned. `Absent`: it is none of the runtime's.
    pub fn rocm_agents_of(&self, gpu: &Gpu) -> Seen<Vec<&RocmAgent>> {
        if self.wsl().is_some() || gpu.remembered || gpu.passed_in == Some(false) {
            return Seen::Absent;
        }
        let of_gpu = |agent: &&RocmAgent| agent.gpu.as_ref() == Some(&gpu.key);
        let agents: Vec<&RocmAgent> = self.rocm_agents.iter().filter(of_gpu).collect();
        if !agents.is_empty() {
            return Seen::Got(agents);
        }
        self.rocm_agents_whole().and_then(|()| Seen::Absent)
    }

    /// Part of a processor, while a card of its own is there to compute with: nobody means to use it.
    pub fn is_spare(&self, gpu: &Gpu) -> bool {
        gpu.integrated == Some(true)
            && self.rocm_agents.iter().any(|agent| {
                agent.shown != Some(false)
                    && self.gpus.iter().any(|other| {
                        agent.gpu.as_ref() == Some(&other.key) && other.integrated == Some(false)
                    })
            })
    }

    /// Whether two targets are of one generation, so that the kernels of one may run on the other. None: one of them is not
    /// in the tables. The major number 9 stands for several: GCN 5 and each of CDNA have instructions of their own.
    pub fn are_of_one_generation(&self, one: Target, other: Target) -> Option<bool> {
        if one == other {
            return Some(true);
        }
        if one.major != other.major {
            return Some(false);
        }
        if one.major != 9 {
            return Some(true);
        }
        let family = |target: Target| {
            let name = target.name();
            let generic = self.tables.generic_of(&name);
            generic.or_else(|| self.tables.architecture(&name))
        };
        Some(family(one)? == family(other)?)
    }

    /// The ROCm of this system by its folder. `Absent`: there is none.
    pub fn rocm_installs(&self) -> Seen<&BTreeMap<String, RocmInstall>> {
        let software = self.facts.software.as_ref();
        software.and_then(|software| software.rocm.as_ref())
    }

    /// The row of a release by the version of an installation. Of ROCm 5 there is one row for all that share two numbers.
    pub fn rocm_release(&self, version: &str) -> Option<Row> {
        let row = |key: &str| self.tables.row(&kinds::RELEASE, key);
        row(version).or_else(|| {
            let (line, _) = version.rsplit_once('.')?;
            line.starts_with("5.").then(|| row(line)).flatten()
        })
    }

    /// The releases that AMD lists a target for, in their order: (release, it is listed). Those whose list is not known are
    /// left out.
    pub fn rocm_lists(&self, target: &str) -> Vec<(Version, bool)> {
        let rows = self.tables.rows(&kinds::RELEASE);
        rows.iter()
            .filter_map(|row| {
                let list = row.list("targets").filter(|list| list.may_accuse())?;
                let version = row.version("version")?.value;
                Some((version, list.value.iter().any(|name| name == target)))
            })
            .collect()
    }

    /// Whether it can be said how ROCm and a GPU fit: its target, as the tables and as the runtime know it.
    pub fn target_ground<'g>(&self, gpu: &'g Gpu) -> TargetGround<'g> {
        if self.wsl().is_some()
            || !gpu.is_on_bus()
            || gpu.passed_in == Some(false)
            || self.is_reserved(gpu)
        {
            return TargetGround::NotHere;
        }
        match &gpu.target {
            Some(target) if gpu.target_may_accuse => Target::of_name(target)
                .map_or(TargetGround::NotHere, |parsed| {
                    TargetGround::Open(target, parsed)
                }),
            // Older than GCN: nobody ever meant to compute with ROCm on it.
            None if gpu.chip.is_some() => TargetGround::NotHere,
            _ => TargetGround::Unknown("the target of this GPU is not known"),
        }
    }

    /// What tells the target of a GPU: its node in KFD, else its id.
    pub fn seen_target(&self, gpu: &Gpu) -> Evidence {
        let agent = self
            .rocm_agents
            .iter()
            .find(|agent| agent.gpu.as_ref() == Some(&gpu.key) && agent.native.is_some());
        match (agent, &gpu.pci) {
            (Some(agent), _) => Evidence {
                source: agent.properties(),
                says: agent.native_words(),
            },
            (None, address) => Evidence {
                source: format!(
                    "/sys/bus/pci/devices/{}/device",
                    address.as_ref().unwrap_or(&gpu.key)
                ),
                says: format!(
                    "a GPU of the target {}",
                    gpu.target.as_deref().unwrap_or("that is not known")
                ),
            },
        }
    }

    /// Whether the rocBLAS of any ROCm of this system has kernels for a target. What frameworks bring along is not looked at.
    pub fn rocblas_for(&self, target: Target) -> Kernels {
        let installs = match self.rocm_installs() {
            Seen::Got(installs) => installs,
            Seen::Absent => return Kernels::NoLibrary,
            other => {
                return Kernels::Unknown(format!("ROCm: {}", other.as_ref().map(|_| ()).why()));
            }
        };
        let generic = self.tables.generic_of(&target.name());
        let fits = |name: &String| *name == target.name() || Some(name) == generic.as_ref();
        let mut lacking = Vec::new();
        let mut unknown = None;
        for (root, install) in installs {
            match &install.rocblas_targets {
                Seen::Absent => {}
                Seen::Got(Named { items, .. }) if items.keys().any(fits) => {
                    return Kernels::In(root.clone());
                }
                // Where the names tell no target at all, all of them are in files whose names tell none.
                Seen::Got(Named { items, whole: true }) if !items.is_empty() => {
                    let names: Vec<&str> = items.keys().map(String::as_str).collect();
                    let folder = install.rocblas_folder.as_ref().unwrap_or(root);
                    lacking.push((folder.clone(), names.join(", ")));
                }
                Seen::Got(_) => {
                    unknown = Some(format!(
                        "{root}: of rocBLAS not all files with kernels are known"
                    ));
                }
                other => {
                    unknown = Some(format!(
                        "{root}: the kernels of rocBLAS: {}",
                        other.as_ref().map(|_| ()).why()
                    ));
                }
            }
        }
        match unknown {
            Some(why) => Kernels::Unknown(why),
            None if lacking.is_empty() => Kernels::NoLibrary,
            None => Kernels::Lacking(lacking),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_names_and_versions() {
        for (name, version) in [
            ("gfx90a", "9.0.10"),
            ("gfx1036", "10.3.6"),
            ("gfx1151", "11.5.1"),
            ("gfx803", "8.0.3"),
        ] {
            let target = Target::of_name(name).expect("a target");
            assert_eq!(
                (target.name(), target.version()),
                (name.into(), version.into())
            );
            assert_eq!(Target::of_override(version), Some(target));
        }
        for name in ["", "gfx", "gfx9", "gfx11-generic", "sm_90"] {
            assert_eq!(Target::of_name(name), None, "{name}");
        }
    }

    #[test]
    fn overrides_are_read_as_the_runtime_reads_them() {
        for value in [
            "", " ", "gfx1030", "10.3", "10.3.0.0", "9.0.a", "10.3.0 ", "10.3.0\n", "10.3.",
            "64.0.0", "10.256.0", "-1.3.0", "10..0",
        ] {
            assert_eq!(Target::of_override(value), None, "{value:?}");
        }
        for value in ["10.3.0", " 10.3.0", "010.3.0", "+10.3.00"] {
            assert_eq!(
                Target::of_override(value).map(Target::name).as_deref(),
                Some("gfx1030"),
                "{value:?}"
            );
        }
    }
}
