//! What a run has to say, as plain data: the JSON document, schema 1, and the only thing that the other formats render.

mod assemble;
pub mod json;
pub mod markdown;
pub(crate) mod page;
pub mod style;
pub mod terminal;
mod versions;
mod words;

pub use assemble::{Origin, assemble};

use crate::check::Link;
use crate::facts::Facts;
use crate::finding::{Confidence, Evidence, Severity};
use crate::fix::Fix;
use crate::readiness::Readiness;
use serde::{Deserialize, Serialize};

/// A whole report.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// Version of this format: 1. Additions keep it.
    pub schema: u32,
    /// Version of gpucheck.
    pub version: String,
    /// Date of the embedded tables, `2026-11-30`.
    pub tables: String,
    /// Where the facts come from: `live`, `root DIR`, `replay of a live capture by gpucheck 0.1.0`.
    pub origin: String,
    /// When the machine was looked at, RFC 3339; null where a root cannot tell.
    pub clock: Option<String>,
    /// The machine.
    pub host: HostLine,
    /// Physical GPUs, by key.
    pub gpus: Vec<GpuRow>,
    /// False: the bus could not be listed, so there may be more GPUs.
    pub gpus_whole: bool,
    /// Devices that look like GPUs and are none.
    pub not_gpus: Vec<NotGpuRow>,
    /// Versions of the system, drivers, libraries and toolkits that were seen.
    pub versions: Vec<VersionRow>,
    /// How far each stack works.
    pub readiness: Vec<Readiness>,
    /// Findings that stand open, worst first.
    pub findings: Vec<FindingRow>,
    /// Every answer of every check that was asked.
    pub verdicts: Vec<VerdictRow>,
    /// What could not be told.
    pub untold: Vec<UntoldRow>,
    /// What works now and will likely break with the next boot, in one line.
    #[serde(default)]
    pub next_boot: Option<String>,
    /// A hint where there is no GPU.
    pub hint: Option<String>,
    /// Open findings by severity, and the rest by kind.
    pub counts: Counts,
    /// Everything that was seen; only with `--facts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<Facts>>,
}

/// The machine in one line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostLine {
    /// `PRETTY_NAME` of os-release.
    pub os: Option<String>,
    /// `ID` of os-release.
    pub os_id: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// `x86_64`, `aarch64`.
    pub machine: Option<String>,
    /// Processor.
    pub cpu: Option<String>,
    /// Logical processors.
    pub cpus: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Maker and product, from DMI.
    pub product: Option<String>,
    /// `host`, `container (docker)`, `wsl 2`, ...; null: not known.
    pub place: Option<String>,
    /// Hypervisor, where there is a sign of one.
    pub hypervisor: Option<String>,
    /// `on`, `off`; null: not known.
    pub secure_boot: Option<String>,
    /// For whom access was judged: `uid 1000 (USER)`.
    pub user: Option<String>,
}

/// A GPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GpuRow {
    /// PCI address, `dxg`, `kfd:NODE` or `proc:ADDRESS`.
    pub key: String,
    /// PCI address; null: on no bus.
    pub pci: Option<String>,
    /// `nvidia`, `amd`, `intel`, `other`; null: not known.
    pub vendor: Option<String>,
    /// `10de:2684`.
    pub id: Option<String>,
    /// Marketing name.
    pub name: Option<String>,
    /// Architecture.
    pub architecture: Option<String>,
    /// `sm_89`, `gfx1100`.
    pub target: Option<String>,
    /// Own memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Bound kernel driver, `none` when proved unbound; null: not known.
    pub driver: Option<String>,
    /// Version of the driver's module, where it has one of its own.
    pub driver_version: Option<String>,
    /// `open`, `proprietary`, `dkms`, `in-tree`.
    pub flavour: Option<String>,
    /// Part of the processor.
    pub integrated: Option<bool>,
    /// Runtime-suspended.
    pub asleep: Option<bool>,
    /// In a container: its nodes are here.
    pub passed_in: Option<bool>,
    /// A finding says that it does not answer, or is gone.
    #[serde(default)]
    pub lost: bool,
    /// PCIe link of the card.
    pub link: Option<LinkRow>,
    /// The numbers by which the world knows it.
    pub index: IndexRow,
}

/// A PCIe link.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkRow {
    /// Current speed, `16.0 GT/s PCIe`. It drops when the GPU idles.
    pub speed: Option<String>,
    /// Current width in lanes.
    pub width: Option<u32>,
    /// Highest speed.
    pub max_speed: Option<String>,
    /// Highest width in lanes.
    pub max_width: Option<u32>,
    /// Address of the function that the figures are of.
    pub hop: String,
}

/// Which number the world knows a GPU by.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IndexRow {
    /// NVML's.
    pub nvml: Option<u32>,
    /// CUDA's for programs of this environment; null: a variable hides the GPU, no program can use it, or it is not known and
    /// `untold` says so.
    pub cuda: Option<u32>,
    /// HIP's, likewise; of a partitioned GPU that of its first partition.
    pub hip: Option<u32>,
    /// `card1`.
    pub drm_card: Option<String>,
    /// `renderD128`.
    pub render: Option<String>,
    /// KFD node numbers.
    pub kfd_nodes: Vec<u32>,
}

/// A device that looks like a GPU and is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotGpuRow {
    /// PCI address.
    pub pci: String,
    /// `102b:0534`.
    pub id: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// What it is, in words.
    pub kind: String,
}

/// A version of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VersionRow {
    /// What: `NVIDIA kernel module`, `libcuda.so.1`, `CUDA toolkit`, ...
    pub what: String,
    /// Its version; null: it is there, and nothing that was read says which.
    pub version: Option<String>,
    /// Path, call or package database that says so.
    pub source: String,
}

/// A finding that stands open.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingRow {
    /// Name of the check.
    pub check: String,
    /// Which cause.
    pub cause: Option<String>,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Where in the chain.
    pub link: Link,
    /// `machine`, `stack cuda`, `gpu 0000:01:00.0`.
    pub subject: String,
    /// What is wrong.
    pub title: String,
    /// What was seen.
    pub evidence: Vec<Evidence>,
    /// Why it matters.
    pub why: String,
    /// How to mend it; empty: no fix is known.
    pub fixes: Vec<Fix>,
    /// What it explains: each with its check, subject and what was said.
    pub folded: Vec<FoldedRow>,
}

/// An answer that a root explains.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoldedRow {
    /// Name of the check.
    pub check: String,
    /// Whom it is about.
    pub subject: String,
    /// `found` or `cannot_tell`: what it was before folding.
    pub was: String,
    /// What it said.
    pub says: String,
}

/// One answer of one check about one subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerdictRow {
    /// Name of the check.
    pub check: String,
    /// Whom it is about.
    pub subject: String,
    /// `fine`, `not_here`, `cannot_tell`, `found`, `blocked`.
    pub verdict: String,
    /// What it said.
    pub says: Option<String>,
    /// For `blocked`: the check that explains it.
    pub by: Option<String>,
    /// For `blocked`: `found` or `cannot_tell`.
    pub was: Option<String>,
    /// For an answer that is found, folded or not: its cause.
    pub cause: Option<String>,
    /// For an answer that is found, folded or not: its severity.
    pub severity: Option<Severity>,
}

/// Something that could not be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UntoldRow {
    /// A check with its subject, a source, or a field of a GPU.
    pub what: String,
    /// Why not.
    pub why: String,
    /// What would tell.
    pub would_tell: String,
}

/// How many of each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counts {
    /// Open errors.
    pub errors: u32,
    /// Open warnings.
    pub warnings: u32,
    /// Open notes.
    pub notes: u32,
    /// Answers that are fine.
    pub fine: u32,
    /// Questions that do not arise.
    pub not_here: u32,
    /// Questions that could not be told and are not explained.
    pub cannot_tell: u32,
    /// Answers that a root explains.
    pub folded: u32,
}

#[cfg(test)]
impl FindingRow {
    /// A finding about the machine that says nothing, for tests of what is done with findings.
    pub(crate) fn sample(check: &str, severity: Severity) -> FindingRow {
        FindingRow {
            check: check.to_owned(),
            cause: None,
            severity,
            confidence: Confidence::Certain,
            link: Link::Driver,
            subject: "machine".to_owned(),
            title: String::new(),
            evidence: Vec::new(),
            why: String::new(),
            fixes: Vec::new(),
            folded: Vec::new(),
        }
    }
}
