//! The open kernel module of NVIDIA meets a GPU that only the proprietary one drives.

use crate::check::Verdict;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{Flavour, Gpu, Takes, View};

crate::check! {
    /// NVIDIA's open kernel module is installed, and this GPU needs the proprietary one.
    ///
    /// ## Why it matters
    /// The open module leaves much of its work to a processor on the GPU, the GSP, which came with Turing. A Maxwell, Pascal
    /// or Volta GPU has none: the module may hold it, and still no program can use it.
    ///
    /// ## How it comes about
    /// Distributions and NVIDIA's own packages install the open module by default by now.
    ///
    /// ## How to confirm
    /// `cat /proc/driver/nvidia/version` names the open module; `sudo dmesg | grep -A3 'open'` has the driver's own words.
    "nvidia-gpu-needs-proprietary-module", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    // The open module takes what every later branch takes, too: GPUs with a GSP.
    let last_branch = gpu
        .target
        .as_deref()
        .and_then(|target| tables.last_nvidia_branch(target))
        .map(|row| row.branch);
    let needs_it = last_branch.map(|branch| branch.is_some());
    let dropped = || {
        view.nvidia_driver_version().is_some_and(|(version, _)| {
            matches!(view.nvidia_driver_takes(gpu, version, tables), Takes::No(_))
        })
    };
    match view.nvidia_flavour(gpu, false, needs_it, &Kind::NeedsProprietaryModule) {
        Flavour::NotHere => Verdict::NotHere,
        Flavour::Fits(says) => Verdict::fine(says),
        Flavour::Unknown(why, would_tell) => Verdict::cannot_tell(why, would_tell),
        // No flavour of such a branch takes it.
        Flavour::Wrong { said: false, .. } if dropped() => Verdict::NotHere,
        Flavour::Wrong { seen, said } => {
            let finding = seen
                .into_iter()
                .fold(found(gpu, view, tables), |finding, evidence| {
                    finding.saw(evidence.source, evidence.says)
                });
            if view.nvidia_driver_serves_others(gpu, last_branch.flatten()) {
                return finding
                    .severity(Severity::Note)
                    .why("The open module needs a processor on the GPU that came with Turing; the proprietary module would not serve the other GPUs, which the open one drives")
                    .into();
            }
            if said || gpu.target_may_accuse {
                finding.into()
            } else {
                finding.likely().severity(Severity::Note).into()
            }
        }
    }
}

fn found(gpu: &Gpu, view: &View, tables: &Tables) -> Finding {
    let mut finding = Finding::new("the open kernel module cannot drive this GPU: it needs the proprietary one")
        .why("The open module needs a processor on the GPU that came with Turing; without it no program can use the GPU, even where the driver holds it");
    finding.fixes = if gpu.target.is_some() {
        view.nvidia_install_fixes(&[gpu], tables)
    } else {
        vec![view.driver_fix(FixCall::new("install-nvidia-driver-proprietary"))]
    };
    finding
}
