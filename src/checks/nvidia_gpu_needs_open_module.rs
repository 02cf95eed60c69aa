//! The proprietary kernel module of NVIDIA meets a GPU that only the open one drives.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{Flavour, Gpu, View, is_akmods};

crate::check! {
    /// NVIDIA's proprietary kernel module is installed, and this GPU needs the open one.
    ///
    /// ## Why it matters
    /// GPUs from Blackwell on (RTX 50, B200, GB10 and the like) and those of Grace Hopper (GH200) are driven by the open kernel
    /// module alone. The proprietary one of the same version does not bring them up, and `nvidia-smi` finds no device.
    ///
    /// ## How it comes about
    /// The driver was installed before the card was changed, or from a package that still builds the proprietary module. Where
    /// both are installed, the wrong one may win.
    ///
    /// ## How to confirm
    /// `cat /proc/driver/nvidia/version` does not say `Open Kernel Module`; `modinfo -F license nvidia` prints `NVIDIA`.
    "nvidia-gpu-needs-open-module", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    let needs_it = gpu.needs_open_module();
    match view.nvidia_flavour(gpu, true, needs_it, &Kind::NeedsOpenModule) {
        Flavour::NotHere => Verdict::NotHere,
        Flavour::Fits(says) => Verdict::fine(says),
        Flavour::Unknown(why, would_tell) => Verdict::cannot_tell(why, would_tell),
        Flavour::Wrong { seen, said } => {
            let finding = seen
                .into_iter()
                .fold(found(gpu, view, tables), |finding, evidence| {
                    finding.saw(evidence.source, evidence.says)
                });
            if said || gpu.target_may_accuse {
                finding.into()
            } else {
                finding.likely().severity(Severity::Note).into()
            }
        }
    }
}

fn found(gpu: &Gpu, view: &View, tables: &Tables) -> Finding {
    let finding =
        Finding::new("the proprietary kernel module cannot drive this GPU: it needs the open one")
            .why("GPUs from Blackwell on, and those of Grace Hopper, are driven by NVIDIA's open kernel module alone");
    // RPM Fusion's package builds either.
    if let Seen::Got(builder) = view.builder_of("nvidia")
        && is_akmods(&builder)
    {
        return finding.fix(view.driver_fix(FixCall::new("rebuild-akmod-open")));
    }
    if gpu.needs_open_module() == Some(true) {
        view.nvidia_install_fixes(&[gpu], tables)
            .into_iter()
            .fold(finding, Finding::fix)
    } else {
        finding.fix(view.driver_fix(FixCall::new("install-nvidia-driver-open")))
    }
}
