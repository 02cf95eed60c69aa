//! `HSA_OVERRIDE_GFX_VERSION` has a value that does harm, or none that is needed.

use crate::check::{Verdict, worst};
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::rocm::{Kernels, OVERRIDE, RocmAgent, Setting, Target};
use crate::view::{Gpu, View};

crate::check! {
    /// `HSA_OVERRIDE_GFX_VERSION` has a value that is wrong for a GPU, or that it does not need.
    ///
    /// ## Why it matters
    /// The variable makes ROCm take the GPU for another. Kernels for another generation do not run: programs crash, hang or see
    /// no GPU. A value that is no version, or an empty one, keeps the runtime from starting at all.
    ///
    /// ## How it comes about
    /// A line from a guide stays in a shell's start-up file when the card is changed or ROCm has learnt to know it. One value is
    /// for all GPUs, so it also hits a second one of another kind. The version has three decimal numbers: `gfx90a` is `9.0.10`,
    /// and `gfx1030`, `10.3` or `9.0.a` are refused. Settings of containers often set it to nothing, which is not the same as
    /// not setting it.
    ///
    /// ## How to confirm
    /// `rocminfo | grep gfx`, and once more under `env -u HSA_OVERRIDE_GFX_VERSION`.
    "hsa-override-wrong", Runtime, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let set = view.overrides();
    if set.is_absent() {
        return Verdict::fine(format!("{OVERRIDE} is not set"));
    }
    let agents = match view.rocm_agents_of(gpu) {
        Seen::Got(agents) => agents,
        Seen::Absent => return Verdict::NotHere,
        _ => {
            return Verdict::cannot_tell(view.why_rocm_agents_are_unknown(), "`rocminfo`");
        }
    };
    worst(agents.iter().map(|agent| judge(agent, view)))
}

fn judge(agent: &RocmAgent, view: &View) -> Verdict {
    let (variable, value, target) = match &agent.setting {
        Setting::None => return Verdict::fine("no override is set for this GPU"),
        Setting::Unknown(why) => {
            return Verdict::cannot_tell(
                why.as_str(),
                format!("`printenv {OVERRIDE}` where the program fails"),
            );
        }
        Setting::Refused(variable, value) => return refused(variable, value),
        Setting::Target(variable, value, target) => (variable, value, *target),
    };
    let Some(native) = agent.native else {
        return Verdict::cannot_tell(
            format!("{}: {}", agent.properties(), agent.native_words()),
            format!("`env -u {variable} rocminfo | grep gfx`"),
        );
    };
    if agent.shown == Some(false) {
        return Verdict::fine("hidden from the programs of this environment by another variable");
    }
    let (own, other) = (native.name(), target.name());
    let of_one_generation = view.are_of_one_generation(native, target);
    let fault = if of_one_generation == Some(false) {
        Finding::new(format!(
            "{variable}={value} makes ROCm take this GPU, {own}, for one of another generation, {other}"
        ))
        .cause("other-major")
        .why("Kernels of one generation do not run on another: programs crash or find no GPU")
    } else if native == target {
        if is_needed_elsewhere(variable, agent, view) {
            return Verdict::fine(format!("{variable}={value} is this GPU's own target"));
        }
        Finding::new(format!(
            "{variable}={value} gives this GPU the target that it has anyway"
        ))
        .cause("redundant")
        .severity(Severity::Note)
        .why("It does nothing now, and will be wrong for the next GPU")
    } else {
        match (view.rocblas_for(target), view.rocblas_for(native)) {
            (Kernels::Lacking(installs), _) => {
                let mut finding = Finding::new(format!(
                    "{variable}={value} makes ROCm take this GPU for {other}, for which rocBLAS has no kernels"
                ))
                .cause("target-not-shipped")
                .why("Programs that use this rocBLAS fail on this GPU; what brings its own libraries, such as PyTorch's wheels, was not looked at");
                for (root, targets) in installs {
                    finding = finding.saw(root, format!("rocBLAS has kernels for {targets}"));
                }
                finding
            }
            (Kernels::Unknown(why), _) | (_, Kernels::Unknown(why)) => {
                return Verdict::cannot_tell(
                    why,
                    "the names of the files in the folder `rocblas/library` of ROCm",
                );
            }
            (_, Kernels::In(root)) if !is_needed_elsewhere(variable, agent, view) => {
                Finding::new(format!(
                    "{variable}={value} makes ROCm take this GPU for {other}, although rocBLAS has kernels for {own}"
                ))
                .cause("redundant")
                .severity(Severity::Warning)
                .why("The GPU's own kernels fit it better; such a value often outlives the release that needed it")
                .saw(root, format!("rocBLAS has kernels for {own}"))
            }
            _ if of_one_generation.is_none() => {
                return Verdict::cannot_tell(
                    format!("whether kernels for {other} run on this GPU, {own}"),
                    format!("`env -u {variable} rocminfo | grep gfx`"),
                );
            }
            _ => return Verdict::fine(format!("{own} goes by {other}, of the same generation")),
        }
    };
    let mut finding = fault
        .saw(variable.as_str(), value.as_str())
        .saw(agent.properties(), agent.native_words());
    if agent.shown.is_none() {
        finding = finding.likely();
    }
    finding
        .fix(FixCall::new("unset-variable").with("name", variable.as_str()))
        .into()
}

/// A value that the runtime does not take.
fn refused(variable: &str, value: &str) -> Verdict {
    const WHY: &str = "ROCm does not start with such a value, for no GPU";
    if value.is_empty() {
        return Finding::new(format!("{variable} is set to nothing, which is no version"))
            .cause("empty")
            .saw(variable, "set to nothing")
            .why(WHY)
            .fix(FixCall::new("unset-variable").with("name", variable))
            .into();
    }
    let finding = Finding::new(format!(
        "{variable}={value} is no version of three numbers such as 10.3.0"
    ))
    .cause("malformed")
    .saw(variable, value)
    .why(WHY);
    let meant = Target::of_name(value.trim());
    let finding = match meant {
        Some(target) => finding.fix(
            FixCall::new("set-override")
                .with("name", variable)
                .with("word", target.version()),
        ),
        None => finding,
    };
    finding
        .fix(FixCall::new("unset-variable").with("name", variable))
        .into()
}

/// The one value for all is there for another GPU, which has no kernels of its own, or none that are known.
fn is_needed_elsewhere(variable: &str, agent: &RocmAgent, view: &View) -> bool {
    variable == OVERRIDE
        && view.rocm_agents.iter().any(|other| {
            let Setting::Target(by, _, target) = &other.setting else {
                return false;
            };
            let native = |native: Target| {
                native != *target
                    && native.major == target.major
                    && !matches!(view.rocblas_for(native), Kernels::In(_))
            };
            other.node != agent.node
                && by == variable
                && other.shown != Some(false)
                && other.native.is_none_or(native)
        })
}
