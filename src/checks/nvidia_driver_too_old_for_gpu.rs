//! The installed NVIDIA driver is older than the GPU.

use crate::check::Verdict;
use crate::finding::{Finding, Severity};
use crate::tables::{Known, Tables};
use crate::version::Version;
use crate::view::log::Kind;
use crate::view::{FitGround, Gpu, View, is_of_module};

crate::check! {
    /// The installed NVIDIA driver is older than the GPU and does not know it.
    ///
    /// ## Why it matters
    /// A driver takes only GPUs that it knows. The module loads, or refuses to for want of a GPU, and neither `nvidia-smi` nor CUDA
    /// lists the card.
    ///
    /// ## How it comes about
    /// The driver of the distribution was packaged before the card came out: a GPU of the Blackwell generation (RTX 50) wants
    /// branch 570 at least, one of Ada Lovelace (RTX 40) branch 520.
    ///
    /// ## How to confirm
    /// `sudo dmesg | grep NVRM` says that the GPU "is not supported by the NVIDIA ... driver release", and
    /// `gpucheck tables gpu NAME` since when there is a driver for it.
    "nvidia-driver-too-old-for-gpu", Driver, Error, each Gpu, run
}

const WOULD_TELL: &str = "`sudo dmesg | grep NVRM`";

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    match view.nvidia_fit_ground(gpu) {
        FitGround::Open => {}
        FitGround::NotHere => return Verdict::NotHere,
        FitGround::Fine(says) => return Verdict::fine(says),
        FitGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    }
    let generation = gpu
        .target
        .as_deref()
        .and_then(|target| tables.nvidia_architecture(target));
    let first = generation
        .as_ref()
        .and_then(|row| row.version("first_branch"));
    let driver = view.nvidia_driver_version();
    let branch = driver
        .as_ref()
        .and_then(|(version, _)| Version::parse(version)?.major());
    let is_older = first
        .as_ref()
        .and_then(|first| Some(branch? < first.value.major()?));
    let said = view
        .log_of(gpu)
        .find(|event| matches!(event.kind, Kind::NotSupportedByRelease { .. }));
    if let Some(event) = said {
        let mut finding = found(gpu, first.as_ref(), view).saw(view.log_source(), event.says());
        // The same is said of GPUs that this driver refuses for other reasons.
        if is_older != Some(true) {
            finding = finding.likely();
        }
        return finding.into();
    }
    let Some((version, source)) = driver else {
        if view.nvidia_driver_installed().is_absent() {
            return Verdict::NotHere;
        }
        return Verdict::cannot_tell("the version of NVIDIA's driver is not known", WOULD_TELL);
    };
    match (is_older, first) {
        (Some(true), Some(first)) => {
            let mut finding = found(gpu, Some(&first), view);
            if !(first.may_accuse() && gpu.target_may_accuse) {
                finding = finding.likely().severity(Severity::Note);
            } else if !is_of_module(&source) {
                // A library alone may be a left-over.
                finding = finding.likely();
            }
            finding.into()
        }
        // The module decides; where there is one, its version must be known.
        (Some(false), _) if !is_of_module(&source) && !view.module_files("nvidia").is_absent() => {
            Verdict::cannot_tell(
                format!("the library is of version {version}; that of the module is not known"),
                "`modinfo -F version nvidia`",
            )
        }
        // A driver of the very first branch may lack later cards of the generation.
        (Some(false), Some(first)) if branch > first.value.major() => Verdict::fine(format!(
            "driver {version} is newer than the first one for this generation, branch {}",
            first.value
        )),
        (_, Some(first)) => Verdict::cannot_tell(
            format!(
                "driver {version} is of branch {}, the first one for GPUs of this generation; whether it knows this very one",
                first.value
            ),
            WOULD_TELL,
        ),
        // Only generations that have an end have no beginning in the table.
        (_, None)
            if generation
                .as_ref()
                .is_some_and(|row| row.version("last_branch").is_some()) =>
        {
            Verdict::fine("its generation is older than every driver that is in use")
        }
        (_, None) => Verdict::cannot_tell(
            format!(
                "whether driver {version} ({source}) knows this GPU: its generation is not known"
            ),
            WOULD_TELL,
        ),
    }
}

fn found(gpu: &Gpu, first: Option<&Known<Version>>, view: &View) -> Finding {
    let title = match first {
        Some(first) => format!(
            "the installed driver is older than this GPU, which wants branch {} or later",
            first.value
        ),
        None => "the installed driver does not know this GPU".to_owned(),
    };
    let mut finding = Finding::new(title)
        .why("The driver leaves alone what it does not know, so neither nvidia-smi nor CUDA lists the GPU");
    finding.evidence.extend(view.seen_architecture(gpu));
    if let Some((version, source)) = view.nvidia_driver_version() {
        finding = finding.saw(source, format!("version {version}"));
    }
    let branch = first.map(|first| first.value.text().to_owned());
    finding.fix(view.newer_nvidia_driver(branch))
}
