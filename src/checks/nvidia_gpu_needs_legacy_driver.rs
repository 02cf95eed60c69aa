//! NVIDIA's driver is of a branch that has dropped this GPU.

use crate::check::Verdict;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{FitGround, Gpu, Takes, View, is_of_module};

crate::check! {
    /// NVIDIA's driver is of a branch that no longer takes this GPU.
    ///
    /// ## Why it matters
    /// The driver ignores such a GPU, and where it is the only one the module unloads itself again. CUDA and `nvidia-smi`
    /// then report that there is no driver, although it is installed.
    ///
    /// ## How it comes about
    /// Branch 590 dropped Maxwell, Pascal and Volta, 495 dropped Kepler, and 396 Fermi. Rolling distributions upgrade across such
    /// a step in place. Names mislead: a GTX 16xx and an MX450 are newer than they sound, an MX350 is older.
    ///
    /// ## How to confirm
    /// `sudo dmesg | grep -A4 Legacy` has the driver's own words, with the branch that takes the GPU.
    "nvidia-gpu-needs-legacy-driver", Driver, Error, each Gpu, run, later ["vgpu-branch"]
}

const WOULD_TELL: &str = "`sudo dmesg | grep NVRM`";

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    match view.nvidia_fit_ground(gpu) {
        FitGround::Open => {}
        FitGround::NotHere => return Verdict::NotHere,
        FitGround::Fine(says) => return Verdict::fine(says),
        FitGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    }
    for event in view.log_of(gpu) {
        if let Kind::NeedsLegacyDriver { branch } = &event.kind {
            let number = branch.split('.').next().and_then(|text| text.parse().ok());
            let finding = found(gpu, number, view, tables).saw(view.log_source(), event.says());
            return with_version(finding, view).into();
        }
    }
    let Some((version, source)) = view.nvidia_driver_version() else {
        if view.nvidia_driver_installed().is_absent() {
            return Verdict::NotHere;
        }
        return Verdict::cannot_tell("the version of NVIDIA's driver is not known", WOULD_TELL);
    };
    match view.nvidia_driver_takes(gpu, version, tables) {
        // The module decides; where there is one, its version must be known.
        Takes::Yes if !is_of_module(&source) && !view.module_files("nvidia").is_absent() => {
            Verdict::cannot_tell(
                format!("the library is of version {version}; that of the module is not known"),
                "`modinfo -F version nvidia`",
            )
        }
        Takes::Yes => Verdict::fine(format!("driver {version} takes it")),
        Takes::Unknown => Verdict::cannot_tell(
            format!(
                "whether driver {version} ({source}) takes this GPU: its architecture is not known"
            ),
            WOULD_TELL,
        ),
        Takes::No(last) => {
            let mut finding = with_version(found(gpu, Some(last), view, tables), view);
            if !gpu.target_may_accuse {
                finding = finding.likely().severity(Severity::Note);
            } else if !is_of_module(&source) {
                // A library alone may be a left-over.
                finding = finding.likely();
            }
            finding.into()
        }
    }
}

fn with_version(finding: Finding, view: &View) -> Finding {
    match view.nvidia_driver_version() {
        Some((version, source)) => finding.saw(source, format!("version {version}")),
        None => finding,
    }
}

/// What is found, with the last branch that takes the GPU.
fn found(gpu: &Gpu, last: Option<u64>, view: &View, tables: &Tables) -> Finding {
    let title = match last {
        Some(last) => format!(
            "the installed driver has dropped this GPU: branch {last} is the last one for it"
        ),
        None => "the installed driver has dropped this GPU".to_owned(),
    };
    let mut finding = Finding::new(title)
        .why("The driver ignores a GPU that its branch has dropped, so CUDA does not see it");
    finding.cause = match last {
        Some(580) => Some("branch-580"),
        Some(470) => Some("branch-470"),
        Some(..=390) => Some("branch-390"),
        _ => None,
    };
    finding.evidence.extend(view.seen_architecture(gpu));
    let fixes = match last {
        _ if gpu.target.is_some() => view.nvidia_install_fixes(&[gpu], tables),
        Some(last) if last < 500 => {
            vec![FixCall::new("install-nvidia-driver-legacy").with("branch", last.to_string())]
        }
        _ => vec![view.driver_fix(FixCall::new("install-nvidia-driver-proprietary"))],
    };
    finding.fixes = fixes;
    if view.nvidia_driver_serves_others(gpu, last) {
        return finding.severity(Severity::Note).why(
            "The driver ignores a GPU that its branch has dropped; a branch that takes it would not serve the other GPUs, which this one drives",
        );
    }
    finding
}
