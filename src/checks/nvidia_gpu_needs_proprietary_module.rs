//! The open kernel module of NVIDIA meets a GPU that only the proprietary one drives.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{FitGround, Gpu, Takes, View};

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

const WOULD_TELL: &str = "`cat /proc/driver/nvidia/version` and `sudo dmesg | grep NVRM`";

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    match view.nvidia_fit_ground(gpu) {
        FitGround::Open => {}
        FitGround::NotHere => return Verdict::NotHere,
        FitGround::Fine(says) => return Verdict::fine(says),
        FitGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    }
    let said = view
        .log_of(gpu)
        .find(|event| event.kind == Kind::NeedsProprietaryModule);
    let flavour = view.nvidia_is_open();
    if let Some(event) = said {
        let mut finding = found(gpu, view, tables).saw(view.log_source(), event.says());
        if let Seen::Got((_, evidence)) = flavour {
            finding = finding.saw(evidence.source, evidence.says);
        }
        return finding.into();
    }
    // The open module takes what every later branch takes, too: GPUs with a GSP.
    let has_gsp = gpu
        .target
        .as_deref()
        .and_then(|target| tables.last_nvidia_branch(target))
        .map(|row| row.branch.is_none());
    match (flavour, has_gsp) {
        (Seen::Absent, _) => Verdict::NotHere,
        (Seen::Got((false, evidence)), _) => Verdict::fine(format!(
            "it is the proprietary module: {} {}",
            evidence.source, evidence.says
        )),
        (_, Some(true)) => Verdict::fine("the open module drives GPUs of this architecture"),
        (Seen::Got((true, evidence)), Some(false)) => {
            let dropped = view.nvidia_driver_version().is_some_and(|(version, _)| {
                matches!(view.nvidia_driver_takes(gpu, version, tables), Takes::No(_))
            });
            // No flavour of such a branch takes it.
            if dropped {
                return Verdict::NotHere;
            }
            let mut finding = found(gpu, view, tables).saw(evidence.source, evidence.says);
            if let (Some(architecture), Some(address)) = (&gpu.architecture, &gpu.pci) {
                finding = finding.saw(
                    format!("/sys/bus/pci/devices/{address}/device"),
                    format!("a GPU of the architecture {architecture}, without a GSP"),
                );
            }
            if !gpu.target_may_accuse {
                finding = finding.likely().severity(Severity::Note);
            }
            finding.into()
        }
        (Seen::Got((true, _)), None) => Verdict::cannot_tell(
            "the module is the open one, and the architecture of this GPU is not known",
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
