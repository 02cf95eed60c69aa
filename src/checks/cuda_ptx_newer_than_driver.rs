//! The toolkit that builds take makes PTX that the driver cannot compile.

use crate::check::Verdict;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::environments::Kind;
use crate::view::{Environment, View};

crate::check! {
    /// The toolkit that builds take is newer than the driver, which then cannot compile the PTX that it makes.
    ///
    /// ## Why it matters
    /// Within one major version a newer toolkit works on an older driver, with one exception: PTX, which the driver compiles
    /// for the GPU when a program starts. A driver knows the PTX of its own CUDA version and older. Programs that hold nothing
    /// but newer PTX for this GPU end in error 222, "the provided PTX was compiled with an unsupported toolchain".
    ///
    /// ## How it comes about
    /// `nvcc` without `-arch` or `-gencode` makes code for one old architecture and PTX; every newer GPU then depends on the PTX.
    ///
    /// ## How to confirm
    /// `cuobjdump --list-elf PROGRAM` names the architectures that a program holds code for. Where this GPU is among them, all
    /// is well.
    "cuda-ptx-newer-than-driver", Toolkit, Error, each Environment, run
}

fn run(environment: &Environment, view: &View, _tables: &Tables) -> Verdict {
    // Frameworks and images hold code for GPUs; what they hold is not looked into here.
    let Kind::Toolkit(_) = environment.kind else {
        return Verdict::NotHere;
    };
    let chosen = view.chosen_toolkit();
    if chosen
        .got()
        .is_none_or(|(folder, _)| *folder != environment.key)
    {
        return match chosen.is_unknown() {
            true => Verdict::cannot_tell(
                "which CUDA toolkit a build would take is not known",
                "`command -v nvcc`",
            ),
            false => Verdict::NotHere,
        };
    }
    let cuda = environment.cuda(view);
    let (Some(wanted), Some(offered)) = (cuda.got(), view.driver_cuda().into_got()) else {
        return Verdict::cannot_tell(
            "the CUDA version of the toolkit or of the driver is not known".to_owned(),
            "`nvcc --version` and the head of `nvidia-smi`",
        );
    };
    let mut numbers = wanted.version.numbers();
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
        return Verdict::NotHere;
    };
    if major != offered.major {
        return match major < offered.major {
            true => Verdict::fine(format!(
                "the driver offers CUDA {}, and the toolkit is of CUDA {major}.{minor}",
                offered.major
            )),
            // Nothing of it runs, whatever it holds.
            false => Verdict::NotHere,
        };
    }
    let Some(known) = offered.minor else {
        return Verdict::cannot_tell(
            format!("the driver offers CUDA {major}, and its minor version is not known"),
            "the head of `nvidia-smi`",
        );
    };
    if minor <= known {
        return Verdict::fine(format!(
            "the driver compiles the PTX of CUDA {major}.{known}, and the toolkit is of {major}.{minor}"
        ));
    }
    Finding::new(format!(
        "the driver cannot compile PTX of CUDA {major}.{minor}: it offers {major}.{known}"
    ))
    // Only what a program holds decides whether it needs that.
    .severity(Severity::Note)
    .likely()
    .saw(wanted.source.as_str(), wanted.says.as_str())
    .saw(offered.source, offered.says)
    .why("Programs built with this toolkit run where they hold code for this very GPU; those with nothing but PTX for it end in error 222")
    .fix(FixCall::new("build-for-this-gpu"))
    .into()
}
