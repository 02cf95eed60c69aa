//! A GPU says that its power cables are not connected.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{Gpu, View};

crate::check! {
    /// NVIDIA's driver says that the GPU's own power cables are not connected.
    ///
    /// ## Why it matters
    /// A card that needs more than the slot gives is not brought up until all of its plugs have power. `nvidia-smi` does not
    /// list it.
    ///
    /// ## How it comes about
    /// A plug is missing or not pushed in, a cable is broken, or an adapter leaves the sense pins open.
    ///
    /// ## How to confirm
    /// `sudo dmesg | grep -i 'power cables'`; look at the plugs with the machine switched off.
    "nvidia-power-cable-missing", Bus, Error, each Gpu, run
}

/// What NVML calls it.
const NVML_ERROR: &str = "INSUFFICIENT_POWER";
/// The number under which the driver reports it while it runs.
const XID: u32 = 54;

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() || !gpu.is_on_bus() {
        return Verdict::NotHere;
    }
    if !gpu.is_held_by("nvidia") {
        return Verdict::NotHere;
    }
    let said = view.log_near(gpu).find(|event| match event.kind {
        Kind::PowerCableMissing => true,
        Kind::Xid { number, .. } => number == XID,
        _ => false,
    });
    let listed = view.nvml_device(gpu).is_some();
    let refused = view.facts.nvml.got().and_then(|nvml| {
        let mut errors = nvml.unreachable.iter();
        // With more than one missing the index does not say which it is.
        let (index, error) = errors.next()?;
        let is_only = errors.next().is_none()
            && view.gpus.iter().filter(|gpu| view.nvml_misses(gpu)).count() == 1;
        (error == NVML_ERROR && is_only && !listed).then_some((index, error))
    });
    match (said, refused) {
        // It was brought up since.
        (_, None) if listed => Verdict::fine("NVML lists it, so it has power"),
        (None, None) => match view.log_tells() {
            Seen::Got(()) => Verdict::fine("the kernel log has no such line"),
            unknown => Verdict::cannot_tell(
                format!("the kernel log: {}", unknown.why()),
                "`sudo dmesg | grep -i 'power cables'`",
            ),
        },
        (said, refused) => {
            let mut finding = Finding::new("this GPU's own power cables are not connected")
                .why("Without power on all of its plugs the card is not brought up");
            if let Some(event) = said {
                finding = finding.saw(view.log_source(), event.says());
            }
            if let Some((index, error)) = refused {
                finding = finding.saw(
                    "nvmlDeviceGetHandleByIndex_v2()",
                    format!("GPU {index}: {error}"),
                );
            }
            // It may have got power since, where NVML was not asked.
            if view.facts.nvml.got().is_none() {
                finding = finding.likely();
            }
            finding.fix(FixCall::new("connect-power-cables")).into()
        }
    }
}
