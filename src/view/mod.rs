//! What the facts add up to: sources joined per GPU by PCI address, names and targets from the tables, what kind of place
//! this is, and what the user seems to want. Borrowed from the facts, computed once, never serialised.

pub mod access;
mod amdgpu;
mod ask;
mod boot;
mod builds;
mod drivers;
pub mod environments;
pub mod figures;
mod halves;
mod installed;
mod join;
mod libraries;
pub mod log;
pub mod model;
mod network;
mod pcie;
mod place;
pub mod rocm;
pub mod visible;
mod wanted;

pub use crate::terms::{Stack, Vendor};
pub use amdgpu::{AmdgpuGround, MissingFirmware, carries_drivers_back};
pub use ask::{AtFirstUse, Loaded, NvmlGround, RELEASE_FILE, normalised};
pub use boot::{Brings, KernelWithoutNvidia};
pub use builds::{BuildGround, DkmsTree, NextModule, build_fix, is_akmods};
pub use drivers::{
    DriverGround, FitGround, Flavour, GpusToDrive, Takes, first_branch, is_of_module, is_set_aside,
    last_branch, legacy_branch,
};
pub use environments::Environment;
pub use halves::{Compared, PackageHalves};
pub use libraries::{Allowed, Asking};
pub use network::RdmaGround;
pub use pcie::is_address;

use crate::facts::{Facts, Seen};
use crate::fix::{self, Fix, FixCall, Ground};
use crate::tables::Tables;

/// What kind of place this system runs in. Decides which questions arise and where a fix belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A machine of its own, virtual ones among them.
    Host,
    /// A container; the value is its engine where that is known (`docker`, `podman`, `kubernetes`, `lxc`, ...).
    Container(String),
    /// WSL of this version, 1 or 2.
    Wsl(u8),
}

/// Whether the user wants a stack to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Yes, because of this.
    Yes(String),
    /// Everything that would show it was looked at, and nothing does.
    No,
    /// Not all of it could be looked at, and nothing seen shows it.
    Unknown,
}

/// A physical GPU.
#[derive(Clone, Debug)]
pub struct Gpu {
    /// PCI address; where it is on no bus `dxg`, `kfd:NODE` or `proc:ADDRESS`.
    pub key: String,
    /// PCI address, where it is on the bus.
    pub pci: Option<String>,
    /// Maker.
    pub vendor: Vendor,
    /// Vendor and device id.
    pub id: Option<(u16, u16)>,
    /// Marketing name, from the driver, `pci.ids` or the embedded table.
    pub name: Option<String>,
    /// Chip name (`AD102`, `Navi 31`).
    pub chip: Option<String>,
    /// Architecture (`Ada Lovelace`, `RDNA 3`).
    pub architecture: Option<String>,
    /// `sm_89` or `gfx1100`.
    pub target: Option<String>,
    /// The target is known well enough to rest a finding on.
    pub target_may_accuse: bool,
    /// Memory of its own, in bytes, as the driver reports it.
    pub memory_bytes: Option<u64>,
    /// Bound kernel driver; `Absent`: proved unbound.
    pub driver: Seen<String>,
    /// Path that says so.
    pub driver_source: String,
    /// Flavour of the NVIDIA module (`open`, `proprietary`) or the amdgpu driver's origin (`dkms`, `in-tree`).
    pub flavour: Option<String>,
    /// Part of the processor.
    pub integrated: Option<bool>,
    /// Runtime-suspended; None: not known.
    pub asleep: Option<bool>,
    /// In a container: it was given to it.
    pub passed_in: Option<bool>,
    /// A data-centre accelerator, wanted for compute by itself.
    pub data_centre: bool,
    /// The function itself and the bridges above it, nearest first, as addresses.
    pub upstream: Vec<String>,
    /// PCIe link of the hop that connects the card with the machine.
    pub link: Option<PcieLink>,
    /// DRM card number (`card1`).
    pub drm_card: Option<String>,
    /// Render node (`renderD128`).
    pub render: Option<String>,
    /// KFD nodes; several where it is partitioned.
    pub kfd_nodes: Vec<u32>,
    /// Minor of `/dev/nvidiaN`.
    pub nvidia_minor: Option<u32>,
    /// Only a driver still remembers it; it is not on the bus.
    pub remembered: bool,
}

/// A PCIe link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcieLink {
    /// Address of the function that the figures are of.
    pub hop: String,
    /// Current speed, as sysfs writes it.
    pub speed: Option<String>,
    /// Current width in lanes.
    pub width: Option<u32>,
    /// Highest speed.
    pub max_speed: Option<String>,
    /// Highest width in lanes.
    pub max_width: Option<u32>,
}

/// A device that looks like a GPU and is none: BMC graphics, a virtual VGA, a co-processor, an NPU.
#[derive(Clone, Debug)]
pub struct NotGpu {
    /// PCI address.
    pub pci: String,
    /// Vendor and device id.
    pub id: Option<(u16, u16)>,
    /// What it is, in words: `server management graphics`, `virtual display`, `NPU`, `co-processor`.
    pub kind: &'static str,
    /// Name, where known.
    pub name: Option<String>,
    /// For an NPU: the stack that it belongs to.
    pub stack: Option<Stack>,
}

/// The joined picture.
pub struct View<'a> {
    /// What was seen.
    pub facts: &'a Facts,
    /// What the world knows.
    pub tables: &'a Tables,
    /// Physical GPUs in order of their keys.
    pub gpus: Vec<Gpu>,
    /// Devices that are no GPUs.
    pub not_gpus: Vec<NotGpu>,
    /// The list of GPUs is complete: the bus and the lists of the drivers could be read, every display device on the bus was
    /// identified, and this is no board with a Tegra chip, whose GPU is on no bus.
    pub gpus_whole: bool,
    /// What kind of place this is; unknown where the marks could not be looked for.
    pub place: Seen<Place>,
    /// `--require` names these.
    pub required: Vec<Stack>,
    /// What the kernel log says, in its order.
    pub log_events: Vec<log::Event<'a>>,
    /// What brings a runtime of its own: toolkits, Python environments, the image of a container; and the model that the
    /// user names, which runs in one of them.
    pub environments: Vec<Environment<'a>>,
    /// The model that the user names.
    pub model: Option<model::Model>,
    /// Every GPU that the ROCm runtime finds here, before and after its variables, in its order.
    pub rocm_agents: Vec<rocm::RocmAgent>,
}

impl<'a> View<'a> {
    /// Joins the facts. `required` are the stacks that `--require` names.
    pub fn new(facts: &'a Facts, tables: &'a Tables, required: &[Stack]) -> View<'a> {
        let place = place::place(facts);
        let joined = join::join(facts, tables, &place);
        let mut view = View {
            facts,
            tables,
            gpus: joined.gpus,
            not_gpus: joined.not_gpus,
            gpus_whole: joined.whole,
            place,
            required: required.to_vec(),
            log_events: facts
                .kernel_log
                .got()
                .map_or_else(Vec::new, |log| log::events(&log.lines)),
            environments: Vec::new(),
            model: None,
            rocm_agents: Vec::new(),
        };
        view.environments = view.find_environments();
        // The GPU of such a chip is on no bus, so nothing here would name it.
        view.gpus_whole &= !view.is_tegra();
        view.rocm_agents = view.find_rocm_agents();
        view
    }

    /// The same, with a model that the user names: an environment of its own, which every GPU here may serve.
    #[must_use]
    pub fn with_model(mut self, model: model::Model) -> View<'a> {
        self.environments.push(Environment {
            key: model.name.clone(),
            // Whatever GPU holds it will do.
            stack: None,
            kind: environments::Kind::Model,
        });
        self.model = Some(model);
        self
    }

    /// The environment of that key is the model that the user names.
    pub fn is_model(&self, key: &str) -> bool {
        self.model.as_ref().is_some_and(|model| model.name == key)
    }

    /// The physical GPUs that a stack drives.
    pub fn gpus_of(&self, stack: Stack) -> impl Iterator<Item = &Gpu> {
        self.gpus
            .iter()
            .filter(move |gpu| gpu.vendor == stack.vendor())
    }

    /// The stacks that there is a reason to ask about: hardware that they drive, or somebody who wants them.
    pub fn stacks(&self) -> Vec<Stack> {
        Stack::ALL
            .into_iter()
            .filter(|stack| {
                self.gpus_of(*stack).next().is_some()
                    || self.npus_of(*stack).next().is_some()
                    || matches!(self.wanted(*stack), Wanted::Yes(_))
            })
            .collect()
    }

    /// The families of this distribution, the nearest first, wherever it runs.
    pub fn families(&self) -> Vec<String> {
        fix::families(self.facts.os_release.got(), Ground::Machine)
    }

    /// This distribution is of that family.
    pub fn is_of_family(&self, name: &str) -> bool {
        self.families().iter().any(|family| family == name)
    }

    /// A fix for this distribution and place; None: the recipe has no row for it.
    pub fn fix(&self, call: &FixCall) -> Option<Fix> {
        let ground = match self.place {
            Seen::Got(Place::Container(_)) => Ground::Container,
            _ if self.wsl().is_some() => Ground::Wsl,
            _ => Ground::Machine,
        };
        let families = fix::families(self.facts.os_release.got(), ground);
        fix::resolve(call, &families, self.tables)
    }

    /// The NPUs that count with a stack.
    pub fn npus_of(&self, stack: Stack) -> impl Iterator<Item = &NotGpu> {
        self.not_gpus
            .iter()
            .filter(move |device| device.stack == Some(stack))
    }
}
