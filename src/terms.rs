//! The words that tables, findings and reports share: whose GPU, which stack, where in the chain, how bad, what it may cost.

use serde::{Deserialize, Serialize};

/// Who made the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vendor {
    /// 10de.
    Nvidia,
    /// 1002.
    Amd,
    /// 8086.
    Intel,
    /// Anyone else, or nobody can tell.
    Other,
}

/// A compute stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stack {
    /// NVIDIA's.
    Cuda,
    /// AMD's.
    Rocm,
    /// Intel's.
    LevelZero,
}

impl Stack {
    /// Every stack.
    pub const ALL: [Stack; 3] = [Stack::Cuda, Stack::Rocm, Stack::LevelZero];

    /// The name in the index, on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Stack::Cuda => "cuda",
            Stack::Rocm => "rocm",
            Stack::LevelZero => "level-zero",
        }
    }

    /// Whose GPUs it drives.
    pub fn vendor(self) -> Vendor {
        match self {
            Stack::Cuda => Vendor::Nvidia,
            Stack::Rocm => Vendor::Amd,
            Stack::LevelZero => Vendor::Intel,
        }
    }
}

impl Vendor {
    /// The vendor of a PCI id.
    pub fn from_id(id: u16) -> Vendor {
        match id {
            0x10de => Vendor::Nvidia,
            0x1002 => Vendor::Amd,
            0x8086 => Vendor::Intel,
            _ => Vendor::Other,
        }
    }

    /// The name in the index and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Vendor::Nvidia => "nvidia",
            Vendor::Amd => "amd",
            Vendor::Intel => "intel",
            Vendor::Other => "other",
        }
    }

    /// The compute stack of its GPUs.
    pub fn stack(self) -> Option<Stack> {
        match self {
            Vendor::Nvidia => Some(Stack::Cuda),
            Vendor::Amd => Some(Stack::Rocm),
            Vendor::Intel => Some(Stack::LevelZero),
            Vendor::Other => None,
        }
    }
}

/// Where in the chain from the bus to the framework a check stands. The order of the first seven is the order of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// The PCI bus shows the GPU.
    Bus,
    /// A kernel driver drives it.
    Driver,
    /// This user may use it.
    Access,
    /// The driver's libraries answer.
    Library,
    /// The runtime sees it.
    Runtime,
    /// A toolkit fits it.
    Toolkit,
    /// A framework computes on it.
    Framework,
    /// Containers and their engines.
    Container,
    /// Power, heat, errors.
    Health,
    /// What the hardware is good for.
    Capability,
}

impl Link {
    /// Stands in the chain, where an earlier fault hides a later question.
    pub fn in_chain(self) -> bool {
        self <= Link::Framework
    }

    /// The name in the index and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Link::Bus => "bus",
            Link::Driver => "driver",
            Link::Access => "access",
            Link::Library => "library",
            Link::Runtime => "runtime",
            Link::Toolkit => "toolkit",
            Link::Framework => "framework",
            Link::Container => "container",
            Link::Health => "health",
            Link::Capability => "capability",
        }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Works, but wrong, slow, fragile or about to break.
    Warning,
    /// Something that the user wants cannot work.
    Error,
}

/// What a step may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Can be undone and disturbs nothing.
    Safe,
    /// Interrupts something that runs, or needs a reboot to be undone.
    Disruptive,
    /// May lose data.
    DataLoss,
}
