//! Several GeForce cards that do not reach each other's memory.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, View};

crate::check! {
    /// Several GeForce cards of the generations RTX 40 and 50 are here, and NVIDIA's driver does not let them reach each
    /// other's memory over PCIe.
    ///
    /// ## Why it matters
    /// What such cards send each other goes through memory of the host. NCCL does that by itself and is slower for it; programs
    /// that want the direct way (`cudaDeviceEnablePeerAccess`) fail, and jobs that are told to take it may hang.
    ///
    /// ## How it comes about
    /// NVIDIA leaves the direct way to cards for data centres and workstations. Patched drivers that open it are made by others.
    /// A variable such as `NCCL_P2P_LEVEL=SYS`, copied from a guide for other cards, asks for it all the same.
    ///
    /// ## How to confirm
    /// `nvidia-smi topo -p2p r` shows NS (not supported) between the cards.
    "nvidia-p2p-unsupported", Capability, Note, each Stack, run
}

const WOULD_TELL: &str = "`nvidia-smi topo -p2p r`";
const LEVEL: &str = "NCCL_P2P_LEVEL";
const DISABLE: &str = "NCCL_P2P_DISABLE";
/// Ada Lovelace and Blackwell, as they come in GeForce cards.
const TARGETS: [&str; 2] = ["sm_89", "sm_120"];

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let cards: Vec<&Gpu> = view
        .gpus_of(stack)
        .filter(|gpu| gpu.is_held_by("nvidia"))
        .filter(|gpu| gpu.passed_in != Some(false) && is_meant(gpu))
        .collect();
    let (Some(first), true) = (cards.first(), cards.len() > 1) else {
        return Verdict::NotHere;
    };
    let name = first.name.as_deref().unwrap_or("GeForce");
    let mut finding = Finding::new(format!(
        "{} GeForce cards: NVIDIA's driver does not let them reach each other's memory",
        cards.len()
    ))
    // Each of them works by itself.
    .works_all_the_same()
    .likely()
    .why("NCCL goes through memory of the host by itself; what wants the direct way fails");
    for gpu in &cards {
        finding = finding.saw(
            format!("/sys/bus/pci/devices/{}/device", gpu.key),
            gpu.name.as_deref().unwrap_or(name),
        );
    }
    let is_off = match view.variable(DISABLE) {
        Seen::Got(value) => value.trim() != "0" && !value.trim().is_empty(),
        Seen::Absent => false,
        other => {
            return Verdict::cannot_tell(
                format!("whether the direct way is off; {DISABLE}: {}", other.why()),
                WOULD_TELL,
            );
        }
    };
    match view.variable(LEVEL) {
        // LOC and 0 mean: never; NVL by NVLink alone, which these cards do not have.
        Seen::Got(level)
            if !is_off
                && !matches!(
                    level.trim().to_ascii_uppercase().as_str(),
                    "" | "0" | "LOC" | "NVL"
                ) =>
        {
            finding
            .severity(Severity::Warning)
            .saw(LEVEL, level)
            .why("The variable asks NCCL for the direct way, which these cards do not have: jobs may hang")
            .fix(FixCall::new("let-nccl-choose").with("name", LEVEL))
            .into()
        }
        Seen::Got(_) | Seen::Absent => finding.into(),
        other => Verdict::cannot_tell(
            format!("whether the direct way is asked for; {LEVEL}: {}", other.why()),
            WOULD_TELL,
        ),
    }
}

fn is_meant(gpu: &Gpu) -> bool {
    let target = gpu.target.as_deref().unwrap_or_default();
    TARGETS.contains(&target)
        && gpu.target_may_accuse
        && gpu
            .name
            .as_deref()
            .is_some_and(|name| name.contains("GeForce"))
}
