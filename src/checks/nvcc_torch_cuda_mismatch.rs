//! Extensions for PyTorch are built with a toolkit of another CUDA version than PyTorch itself.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::environments::Kind;
use crate::view::{Environment, View};

crate::check! {
    /// The toolkit that builds take is of another CUDA version than PyTorch.
    ///
    /// ## Why it matters
    /// PyTorch itself runs: it brings its own CUDA libraries. But whatever is compiled against it, `flash-attn` and the like,
    /// is refused with "The detected CUDA version mismatches the version that was used to compile PyTorch" where the major
    /// versions differ. Another minor version only makes PyTorch warn.
    ///
    /// ## How it comes about
    /// The toolkit of the distribution is older (Ubuntu's `nvidia-cuda-toolkit`), or PyTorch was updated to a build for
    /// the next CUDA.
    ///
    /// ## How to confirm
    /// `nvcc --version` beside `python3 -c "import torch; print(torch.version.cuda)"`.
    "nvcc-torch-cuda-mismatch", Toolkit, Warning, each Environment, run
}

fn run(environment: &Environment, view: &View, _tables: &Tables) -> Verdict {
    let Kind::Python(python) = environment.kind else {
        return Verdict::NotHere;
    };
    let torch = match &python.torch {
        Seen::Got(torch) => torch,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "PyTorch in {}: {}",
                    environment.key,
                    other.as_ref().map(|_| ()).why()
                ),
                "`python3 -c \"import torch; print(torch.version.cuda)\"`",
            );
        }
    };
    let (folder, via) = match view.chosen_toolkit() {
        Seen::Got(chosen) => chosen,
        // Without a compiler nothing is built.
        Seen::Absent => return Verdict::NotHere,
        _ => {
            return Verdict::cannot_tell(
                "which CUDA toolkit a build would take is not known",
                "`command -v nvcc`",
            );
        }
    };
    let software = view.facts.software.got();
    let toolkits = software.and_then(|software| software.cuda_toolkits.got());
    let toolkit = toolkits
        .and_then(|toolkits| toolkits.get(folder)?.got())
        .and_then(|version| Version::parse(version));
    let built_for = torch.cuda.got().and_then(|version| Version::parse(version));
    let (Some(toolkit), Some(built_for)) = (toolkit, built_for) else {
        return Verdict::cannot_tell(
            format!("the CUDA version of {folder} or of {}", torch.path),
            "`nvcc --version`",
        );
    };
    let two = |version: &Version| {
        let mut numbers = version.numbers();
        (numbers.next(), numbers.next())
    };
    let (one, other) = (two(&toolkit), two(&built_for));
    if one == other {
        return Verdict::fine(format!(
            "{folder} and {} are both of CUDA {built_for}",
            torch.path
        ));
    }
    let mut finding = Finding::new(format!(
        "builds take CUDA {toolkit}, and PyTorch in {} is for CUDA {built_for}",
        environment.key
    ))
    .saw(folder, format!("CUDA {toolkit}, by way of {via}"))
    .saw(torch.path.as_str(), format!("cuda = '{built_for}'"));
    if one.0 == other.0 {
        return finding
            .severity(Severity::Note)
            .why("PyTorch runs, and extensions can be built: it only warns of another minor version. Nothing has to be done unless a build fails")
            .into();
    }
    finding = finding
        .why("PyTorch runs; extensions that have to be compiled, like flash-attn, are refused");
    let is_in_use = view.is_first_python(&environment.key);
    // A toolkit that nobody chose shows no wish to build.
    let is_chosen = ["CUDA_HOME", "PATH"].contains(&via);
    if is_in_use && view.builds_extensions() {
        finding = finding
            .severity(Severity::Error)
            .saw("TORCH_CUDA_ARCH_LIST", "set: extensions are built here");
    } else if !is_in_use || !is_chosen {
        finding = finding.severity(Severity::Note);
    }
    finding
        .fix(FixCall::new("cuda-home-of-torch").with("version", built_for.text()))
        .into()
}
