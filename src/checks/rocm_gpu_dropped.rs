//! A GPU that AMD has dropped from ROCm.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::rocm::{Kernels, RocmAgent, TargetGround};
use crate::view::{Gpu, View};

crate::check! {
    /// AMD's releases of ROCm no longer serve a GPU.
    ///
    /// ## Why it matters
    /// A release that has dropped a GPU has no kernels for it in its libraries: programs end with `invalid device function` or
    /// `Cannot read TensileLibrary.dat`, or do not see the GPU at all. No setting brings it back, and no other target's kernels
    /// run on it.
    ///
    /// ## How it comes about
    /// AMD serves a GPU for some years. GCN 1 to 4 (up to the RX 500 series) are in no release since 5.0. Vega 10 and Vega 20
    /// (`gfx900`, `gfx906`) and the first RDNA (`gfx1010`, `gfx1012`) had kernels in AMD's packages up to 6.3. Distributions and
    /// others build ROCm for some of them.
    ///
    /// ## How to confirm
    /// `rocminfo | grep gfx` names the target, `ls /opt/rocm/lib/rocblas/library` the targets that have kernels, and
    /// `gpucheck tables rocm` what each release supports.
    "rocm-gpu-dropped", Runtime, Error, each Gpu, run
}

/// Targets that rocBLAS of AMD's packages had kernels for up to the release that is named, and not in 6.4.0 any more
/// (ROCm/legacy-rocm-build issue 4625; the lists of files in ROCm/rocBLAS issue 1339 and ROCm/legacy-rocm-build issue 2719).
const KERNELS_UP_TO: &str = "6.3";
const HAD_KERNELS: &[&str] = &["gfx900", "gfx906", "gfx1010", "gfx1012"];

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let (target, parsed) = match view.target_ground(gpu) {
        TargetGround::Open(target, parsed) => (target, parsed),
        TargetGround::NotHere => return Verdict::NotHere,
        TargetGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    };
    let lists = view.rocm_lists(target);
    let is_listed_now = lists.last().is_some_and(|(_, listed)| *listed);
    let last = lists.iter().rfind(|(_, listed)| *listed);
    let had_kernels = HAD_KERNELS.contains(&target);
    if is_listed_now || (parsed.major >= 9 && !had_kernels && last.is_none()) {
        return Verdict::NotHere;
    }
    if let Some(root) = served_by(target, view) {
        return Verdict::fine(format!("the ROCm of {root} is of a release for it"));
    }
    let kernels = view.rocblas_for(parsed);
    if let Kernels::In(root) = &kernels {
        return Verdict::fine(format!("the rocBLAS of {root} has kernels for {target}"));
    }
    let mut finding = Finding::new(match (last, had_kernels) {
        (Some((release, _)), _) => format!(
            "AMD dropped this GPU ({target}) from ROCm: {} was the last release that it was listed for",
            release.text()
        ),
        (None, true) => format!(
            "AMD's packages of ROCm have no kernels for this GPU ({target}) any more: {KERNELS_UP_TO} was the last release that had"
        ),
        (None, false) => format!(
            "ROCm does not serve this GPU ({target}): no release since 5.0 has anything for it"
        ),
    });
    let seen = view.seen_target(gpu);
    finding = finding.saw(seen.source, seen.says);
    // Hidden from programs, or taken for a relative that has kernels: then the libraries are no fault.
    let spared = |agent: &&RocmAgent| {
        let taken_for = agent.effective().filter(|target| *target != parsed);
        agent.shown == Some(false)
            || taken_for.is_some_and(|other| matches!(view.rocblas_for(other), Kernels::In(_)))
    };
    let is_spared = view.is_spare(gpu)
        || view
            .rocm_agents_of(gpu)
            .got()
            .is_some_and(|agents| agents.iter().all(spared));
    let mut why = "Current releases of ROCm cannot compute on it; programs that use Vulkan or OpenCL instead can";
    match kernels {
        Kernels::Lacking(installs) => {
            for (root, targets) in installs {
                finding = finding.saw(root, format!("rocBLAS has kernels for {targets}"));
            }
            if is_spared {
                finding = finding.severity(Severity::Note);
            } else {
                why = "The ROCm that is installed here has no kernels for it, and programs that compute with it fail";
            }
        }
        Kernels::In(_) | Kernels::NoLibrary | Kernels::Unknown(_) => {
            finding = finding.severity(Severity::Note);
        }
    }
    if had_kernels && last.is_some() {
        finding = finding.why(format!(
            "{why}. Up to {KERNELS_UP_TO} AMD's packages had kernels for it all the same"
        ));
    } else {
        finding = finding.why(why);
    }
    finding
        .fix(FixCall::new("compute-without-rocm").with("name", target))
        .into()
}

/// The folder of an installation whose release AMD lists this target for.
fn served_by<'v>(target: &str, view: &'v View) -> Option<&'v str> {
    let Seen::Got(installs) = view.rocm_installs() else {
        return None;
    };
    installs.iter().find_map(|(root, install)| {
        let row = view.rocm_release(install.version.got()?)?;
        let list = row.list("targets")?;
        list.value
            .iter()
            .any(|name| name == target)
            .then_some(root.as_str())
    })
}
