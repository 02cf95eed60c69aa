//! The rocBLAS of this system has no kernels for a GPU.

use crate::check::{Verdict, worst};
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::rocm::{Kernels, RocmAgent, Setting};
use crate::view::{Gpu, View};

crate::check! {
    /// The rocBLAS that is installed here has no kernels for a GPU.
    ///
    /// ## Why it matters
    /// ROCm's libraries are compiled for each gfx target by itself. rocBLAS has its kernels in files that bear the target in
    /// their names; without any for the GPU a program stops at the first product of matrices, with
    /// `Cannot read TensileLibrary.dat` or `invalid device function`. What brings its own libraries, such as PyTorch's wheels
    /// and Ollama, is not concerned.
    ///
    /// ## How it comes about
    /// AMD builds its packages for few GPUs; distributions build for more. A release may drop older GPUs, and new ones come with
    /// a new release. `HSA_OVERRIDE_GFX_VERSION` may also give the GPU a target for which there is nothing.
    ///
    /// ## How to confirm
    /// `rocminfo | grep gfx` names the target after all variables, and `ls /opt/rocm*/lib/rocblas/library | grep -o 'gfx[0-9a-f]*' | sort -u`
    /// (Fedora: `/usr/lib64/rocblas/library`) those that have kernels.
    "rocm-libraries-lack-gfx", Runtime, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let agents = match view.rocm_agents_of(gpu) {
        Seen::Got(agents) => agents,
        Seen::Absent => return Verdict::NotHere,
        _ => {
            return Verdict::cannot_tell(view.why_rocm_agents_are_unknown(), "`rocminfo`");
        }
    };
    worst(agents.iter().map(|agent| judge(gpu, agent, view)))
}

fn judge(gpu: &Gpu, agent: &RocmAgent, view: &View) -> Verdict {
    if let Some(native) = agent.native
        && view.rocblas_for(native) == Kernels::NoLibrary
    {
        return Verdict::NotHere;
    }
    if agent.shown == Some(false) {
        return Verdict::fine("hidden from the programs of this environment by a variable");
    }
    if let Setting::Unknown(why) = &agent.setting {
        return Verdict::cannot_tell(
            why.as_str(),
            "`rocminfo | grep gfx` where the program fails",
        );
    }
    // A value that the runtime refuses keeps it from every GPU, whatever the libraries have.
    if matches!(agent.setting, Setting::Refused(..)) {
        return Verdict::NotHere;
    }
    let Some(target) = agent.effective() else {
        return Verdict::cannot_tell(
            format!("{}: {}", agent.properties(), agent.native_words()),
            "`rocminfo | grep gfx`",
        );
    };
    let name = target.name();
    match view.rocblas_for(target) {
        Kernels::In(root) => Verdict::fine(format!("the rocBLAS of {root} has kernels for {name}")),
        Kernels::NoLibrary => Verdict::NotHere,
        Kernels::Unknown(why) => Verdict::cannot_tell(
            why,
            "the names of the files in the folder `rocblas/library` of ROCm",
        ),
        Kernels::Lacking(_) if view.is_spare(gpu) => {
            Verdict::fine("part of the processor, beside a card that ROCm is meant for")
        }
        Kernels::Lacking(installs) => found(agent, &name, &installs),
    }
}

fn found(agent: &RocmAgent, name: &str, installs: &[(String, String)]) -> Verdict {
    let title = match &agent.setting {
        Setting::Target(variable, ..) => {
            format!("rocBLAS has no kernels for {name}, which {variable} makes of this GPU")
        }
        _ => format!("the rocBLAS of this system has no kernels for this GPU ({name})"),
    };
    let mut finding = Finding::new(title).saw(agent.properties(), agent.native_words());
    if let Setting::Target(variable, value, _) = &agent.setting {
        finding = finding.saw(variable.as_str(), value.as_str());
    }
    for (root, targets) in installs {
        finding = finding.saw(root.as_str(), format!("rocBLAS has kernels for {targets}"));
    }
    if agent.shown.is_none() {
        finding = finding.likely();
    }
    let finding = finding.why(
        "Programs that use this rocBLAS fail on this GPU; what brings its own libraries, such as PyTorch's wheels, was not looked at",
    );
    match &agent.setting {
        Setting::Target(variable, ..) => finding
            .fix(FixCall::new("unset-variable").with("name", variable.as_str()))
            .into(),
        _ => finding
            .fix(FixCall::new("rocm-for-target").with("name", name))
            .into(),
    }
}
