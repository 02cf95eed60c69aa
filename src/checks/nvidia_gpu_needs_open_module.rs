//! The proprietary kernel module of NVIDIA meets a GPU that only the open one drives.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{FitGround, Gpu, View};

crate::check! {
    /// NVIDIA's proprietary kernel module is installed, and this GPU needs the open one.
    ///
    /// ## Why it matters
    /// GPUs from Blackwell on (RTX 50, B200, GB10 and the like) are driven by the open kernel module alone. The proprietary one
    /// of the same version refuses them, and `nvidia-smi` finds no device.
    ///
    /// ## How it comes about
    /// The driver was installed before the card was changed, or from a package that still builds the proprietary module. Where
    /// both are installed, the wrong one may win.
    ///
    /// ## How to confirm
    /// `cat /proc/driver/nvidia/version` does not say `Open Kernel Module`; `modinfo -F license nvidia` prints `NVIDIA`.
    "nvidia-gpu-needs-open-module", Driver, Error, each Gpu, run
}

const WOULD_TELL: &str = "`cat /proc/driver/nvidia/version` and `modinfo -F license nvidia`";
/// First major number of a compute capability that is driven by the open module alone: Blackwell (NVIDIA blog,
/// "NVIDIA Transitions Fully Towards Open-Source GPU Kernel Modules").
const OPEN_ALONE_FROM: u32 = 10;

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    match view.nvidia_fit_ground(gpu) {
        FitGround::Open => {}
        FitGround::NotHere => return Verdict::NotHere,
        FitGround::Fine(says) => return Verdict::fine(says),
        FitGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    }
    let said = view
        .log_of(gpu)
        .find(|event| event.kind == Kind::NeedsOpenModule);
    let flavour = view.nvidia_is_open();
    if let Some(event) = said {
        let mut finding = found(view).saw(view.log_source(), event.says());
        if let Seen::Got((_, evidence)) = flavour {
            finding = finding.saw(evidence.source, evidence.says);
        }
        return finding.into();
    }
    let needs_open = gpu
        .target
        .as_deref()
        .and_then(major)
        .map(|major| major >= OPEN_ALONE_FROM);
    match (flavour, needs_open) {
        (Seen::Absent, _) => Verdict::NotHere,
        (Seen::Got((true, evidence)), _) => Verdict::fine(format!(
            "it is the open module: {} {}",
            evidence.source, evidence.says
        )),
        (_, Some(false)) => Verdict::fine("both kernel modules drive GPUs of this architecture"),
        (Seen::Got((false, evidence)), Some(true)) => {
            let mut finding = found(view).saw(evidence.source, evidence.says);
            if let (Some(architecture), Some(address)) = (&gpu.architecture, &gpu.pci) {
                finding = finding.saw(
                    format!("/sys/bus/pci/devices/{address}/device"),
                    format!("a GPU of the architecture {architecture}"),
                );
            }
            if !gpu.target_may_accuse {
                finding = finding.likely().severity(Severity::Note);
            }
            finding.into()
        }
        (Seen::Got((false, _)), None) => Verdict::cannot_tell(
            "the module is the proprietary one, and the architecture of this GPU is not known",
            WOULD_TELL,
        ),
        (other, _) => Verdict::cannot_tell(
            format!(
                "which flavour of NVIDIA's module this is: {}",
                other.map(|_| ()).why()
            ),
            WOULD_TELL,
        ),
    }
}

/// 12 of `sm_120`.
fn major(target: &str) -> Option<u32> {
    let digits = target
        .strip_prefix("sm_")?
        .trim_end_matches(|c: char| c.is_ascii_lowercase());
    digits.get(..digits.len().checked_sub(1)?)?.parse().ok()
}

fn found(view: &View) -> Finding {
    Finding::new("the proprietary kernel module cannot drive this GPU: it needs the open one")
        .why("GPUs from Blackwell on are driven by NVIDIA's open kernel module alone")
        .fix(view.driver_fix(FixCall::new("install-nvidia-driver-open")))
}
