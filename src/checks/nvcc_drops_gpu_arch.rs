//! The CUDA toolkit that builds take makes no code for this GPU any more.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::{Version, compute_capability};
use crate::view::{Gpu, Stack, View};

crate::check! {
    /// The CUDA toolkit that builds take makes no code for this GPU any more.
    ///
    /// ## Why it matters
    /// Programs that are already built run as before. Whatever is built with this toolkit does not run on the GPU: `nvcc`
    /// refuses its architecture, and code for newer ones ends in "no kernel image is available".
    ///
    /// ## How it comes about
    /// CUDA 13 dropped everything before compute capability 7.5 (Maxwell, Pascal, Volta), CUDA 12 everything before 5.0.
    ///
    /// ## How to confirm
    /// `nvcc --list-gpu-arch` names what it makes code for; `gpucheck tables cuda 13.0` the same for a version.
    "nvcc-drops-gpu-arch", Toolkit, Error, each Gpu, run
}

const WOULD_TELL: &str = "`nvcc --list-gpu-arch`";

fn run(gpu: &Gpu, view: &View, _tables: &Tables) -> Verdict {
    let driver = gpu.driver.got().map(String::as_str);
    let is_driven = matches!(driver, Some("nvidia" | "dxgkrnl")) || gpu.driver.is_unknown();
    if gpu.passed_in == Some(false) || !is_driven {
        return Verdict::NotHere;
    }
    let software = view.facts.software.as_ref();
    let toolkits = match software.and_then(|software| software.cuda_toolkits.as_ref()) {
        Seen::Got(toolkits) => toolkits,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("CUDA toolkits: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let capability = gpu.target.as_deref().and_then(compute_capability);
    let Some(capability) = capability.as_deref().and_then(Version::parse) else {
        return Verdict::cannot_tell(
            "the compute capability of this GPU is not known",
            "`nvidia-smi --query-gpu=compute_cap --format=csv`",
        );
    };
    let drops = |version: &Seen<String>| Some(capability < oldest_of(version, view)?);
    let builds = view
        .facts
        .software
        .got()
        .map(|software| &software.cuda_builds);
    let has_none = |folder: &String| {
        let build = builds.and_then(|builds| builds.get(folder));
        build.is_some_and(|build| build.compiler.is_absent())
    };
    // A runtime alone makes nothing.
    let dropped: Vec<(&String, Option<bool>)> = toolkits
        .iter()
        .filter(|(folder, _)| !has_none(folder))
        .map(|(folder, version)| (folder, drops(version)))
        .collect();
    let chosen = view.chosen_toolkit();
    let of_chosen = chosen.got().and_then(|(chosen, _)| {
        dropped
            .iter()
            .find(|(folder, _)| folder.as_str() == *chosen)
    });
    let (folder, is_chosen) = match of_chosen {
        Some((folder, Some(true))) => (*folder, true),
        Some((folder, Some(false))) => {
            return Verdict::fine(format!(
                "the toolkit in {folder} makes code for {capability}"
            ));
        }
        Some((folder, None)) => {
            return Verdict::cannot_tell(
                format!("for which GPUs the toolkit in {folder} makes code"),
                WOULD_TELL,
            );
        }
        // Several, of which none is chosen: one that can is enough.
        None => match dropped.iter().find(|(_, drops)| *drops != Some(true)) {
            Some((folder, Some(false))) => {
                return Verdict::fine(format!(
                    "the toolkit in {folder} makes code for {capability}"
                ));
            }
            Some((folder, _)) => {
                return Verdict::cannot_tell(
                    format!("for which GPUs the toolkit in {folder} makes code"),
                    WOULD_TELL,
                );
            }
            None => match dropped.last() {
                Some((folder, _)) => (*folder, false),
                None => return Verdict::NotHere,
            },
        },
    };
    let version = toolkits[folder].got().map_or("", String::as_str);
    let serves = |other: &Gpu| {
        let oldest = oldest_of(&toolkits[folder], view);
        let capability = other.target.as_deref().and_then(compute_capability);
        let capability = capability.as_deref().and_then(Version::parse);
        oldest
            .zip(capability)
            .is_some_and(|(oldest, capability)| capability >= oldest)
    };
    let mut finding = Finding::new(format!(
        "CUDA {version} makes no code for this GPU any more (compute capability {capability})"
    ))
    .saw(folder.as_str(), format!("CUDA {version}"))
    .why("Programs that exist run; those built with this toolkit do not run on this GPU")
    .fix(FixCall::new("older-cuda-toolkit").with("version", "12"));
    finding.evidence.extend(view.seen_architecture(gpu));
    if !gpu.target_may_accuse {
        finding = finding.likely().severity(Severity::Note);
    } else if view.gpus_of(Stack::Cuda).any(serves) {
        // It is there for the other GPU.
        finding = finding.severity(Severity::Note);
    } else if !is_chosen {
        finding = finding.severity(Severity::Warning);
    }
    finding.into()
}

/// The oldest compute capability that a toolkit makes code for; targets are written `75` and `100a`.
fn oldest_of(version: &Seen<String>, view: &View) -> Option<Version> {
    let row = view.toolkit_row(version.got()?)?;
    let targets = row.list("targets").filter(|targets| targets.may_accuse())?;
    let capabilities = targets
        .value
        .iter()
        .filter_map(|target| Version::parse(&compute_capability(&format!("sm_{target}"))?));
    capabilities.min()
}
