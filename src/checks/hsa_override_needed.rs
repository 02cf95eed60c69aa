//! A GPU without kernels of its own, which those of a sibling would serve.

use crate::check::{Verdict, worst};
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::rocm::{Kernels, OVERRIDE, RocmAgent, Setting, Target};
use crate::view::{Gpu, View};

crate::check! {
    /// rocBLAS has no kernels for a GPU, but has those of a sibling that run on it.
    ///
    /// ## Why it matters
    /// ROCm's libraries are compiled for few of AMD's GPUs. Some of the others have the same instructions as one of them, and
    /// with `HSA_OVERRIDE_GFX_VERSION` ROCm takes the GPU for that sibling. AMD does not support this, and many use it.
    ///
    /// ## How it comes about
    /// The GPU is a smaller one of its generation: `gfx1031`, `gfx1032` and `gfx1034` are such siblings of `gfx1030`. Between
    /// generations this never works.
    ///
    /// ## How to confirm
    /// `rocminfo | grep gfx` names the target; run the program once with the variable in front of it.
    "hsa-override-needed", Runtime, Warning, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    let agents = match view.rocm_agents_of(gpu) {
        Seen::Got(agents) => agents,
        Seen::Absent => return Verdict::NotHere,
        _ => {
            return Verdict::cannot_tell(view.why_rocm_agents_are_unknown(), "`rocminfo`");
        }
    };
    worst(agents.iter().map(|agent| judge(gpu, agent, view, tables)))
}

fn judge(gpu: &Gpu, agent: &RocmAgent, view: &View, tables: &Tables) -> Verdict {
    let Some(native) = agent.native else {
        return Verdict::cannot_tell(
            format!("{}: {}", agent.properties(), agent.native_words()),
            "`rocminfo | grep gfx`",
        );
    };
    let name = native.name();
    let installs = match view.rocblas_for(native) {
        Kernels::NoLibrary => return Verdict::NotHere,
        Kernels::In(root) => {
            return Verdict::fine(format!("the rocBLAS of {root} has kernels for {name}"));
        }
        Kernels::Unknown(why) => {
            return Verdict::cannot_tell(
                why,
                "the names of the files in the folder `rocblas/library` of ROCm",
            );
        }
        Kernels::Lacking(installs) => installs,
    };
    if agent.shown == Some(false) || view.is_spare(gpu) {
        return Verdict::NotHere;
    }
    match &agent.setting {
        Setting::None => {}
        Setting::Unknown(why) => {
            return Verdict::cannot_tell(
                why.as_str(),
                format!("`printenv {OVERRIDE}` where the program fails"),
            );
        }
        Setting::Target(variable, value, _) | Setting::Refused(variable, value) => {
            return Verdict::fine(format!("{variable}={value} is set"));
        }
    }
    let Some(sibling) = tables.sibling_of(&name) else {
        return Verdict::NotHere;
    };
    let Some(target) = Target::of_name(&sibling.gfx).filter(|target| target.major == native.major)
    else {
        return Verdict::NotHere;
    };
    let Kernels::In(root) = view.rocblas_for(target) else {
        return Verdict::NotHere;
    };
    // One value is for all GPUs, so another kind of GPU needs to be left out.
    let alone = view
        .rocm_agents
        .iter()
        .all(|other| other.native == agent.native);
    let variable = if alone {
        OVERRIDE.to_owned()
    } else {
        format!("{OVERRIDE}_{}", agent.node)
    };
    let (other, version) = (target.name(), target.version());
    let why = match sibling.caution {
        Some(caution) => format!(
            "With {variable}={version} this GPU, {name}, goes by {other}. AMD does not support this, and {caution}"
        ),
        None => format!(
            "With {variable}={version} this GPU, {name}, goes by {other}, whose instructions it has; AMD does not support this"
        ),
    };
    let mut finding = Finding::new(format!(
        "rocBLAS has no kernels for {name}, and those for {other} run on it under {variable}={version}"
    ))
    .saw(agent.properties(), agent.native_words());
    for (root, targets) in installs {
        finding = finding.saw(root, format!("rocBLAS has kernels for {targets}"));
    }
    finding
        .saw(root, format!("rocBLAS has kernels for {other}"))
        .saw(OVERRIDE, "not set")
        .why(why)
        .likely()
        .fix(FixCall::new("rocm-for-target").with("name", name))
        .fix(
            FixCall::new("set-override")
                .with("name", variable)
                .with("word", version),
        )
        .into()
}
