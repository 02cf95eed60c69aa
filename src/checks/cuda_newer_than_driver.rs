//! A toolkit, a framework or an image is of a CUDA major version that the driver does not offer.

use crate::check::Verdict;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::{Tables, kinds};
use crate::view::environments::Kind;
use crate::view::{Environment, Stack, View};

crate::check! {
    /// Programs of this toolkit, environment or image want a newer CUDA than the driver offers.
    ///
    /// ## Why it matters
    /// A CUDA program brings its runtime along, and the runtime asks the driver for its own major version at least: CUDA 13
    /// wants a driver of branch 580 or later, CUDA 12 one of branch 525, CUDA 11 one of branch 450. Below that every call ends
    /// in error 35, "CUDA driver version is insufficient", and PyTorch says that the driver "is too old".
    ///
    /// ## How it comes about
    /// `pip install torch` takes the newest build, which is for the newest CUDA; a toolkit was installed without the driver
    /// that it came with; an image is newer than the host that runs it. A newer minor version is no fault: CUDA 12.8 runs on a
    /// driver that offers 12.2, but for code that the driver has to compile itself.
    ///
    /// ## How to confirm
    /// The head of `nvidia-smi` names the newest CUDA that the driver offers; `python3 -c "import torch; print(torch.version.cuda)"`
    /// and `nvcc --version` what the programs want.
    "cuda-newer-than-driver", Runtime, Error, each Environment, run
}

const WOULD_TELL: &str = "`nvidia-smi`: its head names the newest CUDA of the driver";

fn run(environment: &Environment, view: &View, tables: &Tables) -> Verdict {
    let cuda = environment.cuda(view);
    let Some(wanted) = cuda.got() else {
        if cuda.is_absent() {
            return Verdict::NotHere;
        }
        return Verdict::cannot_tell(
            format!(
                "the CUDA version of {}: {}",
                environment.key,
                cuda.map(|_| ()).why()
            ),
            match environment.kind {
                Kind::Python(_) => "`python3 -c \"import torch; print(torch.version.cuda)\"`",
                _ => "`nvcc --version` of that toolkit",
            },
        );
    };
    let Some(major) = wanted.version.major() else {
        return Verdict::NotHere;
    };
    let driver = view.driver_cuda();
    let Some(offered) = driver.got() else {
        return Verdict::cannot_tell("no driver said which CUDA it offers".to_owned(), WOULD_TELL);
    };
    if major <= offered.major {
        return Verdict::fine(format!(
            "the driver offers CUDA {} ({}), and {} wants {}",
            offered.major, offered.source, environment.key, wanted.version
        ));
    }
    let row = tables.row(&kinds::MAJOR, &major.to_string());
    let floor = row.and_then(|row| row.version("floor"));
    let title = match environment.kind {
        Kind::Toolkit(_) => format!(
            "programs built with CUDA {} cannot run here: the driver offers CUDA {}",
            wanted.version, offered.major
        ),
        Kind::Python(_) => format!(
            "{} in {} wants CUDA {major}, and the driver offers CUDA {}",
            if wanted.cause == "jax" {
                "JAX"
            } else {
                "PyTorch"
            },
            environment.key,
            offered.major
        ),
        Kind::Image | Kind::Model => format!(
            "this image wants CUDA {}, and the driver of its host offers CUDA {}",
            wanted.version, offered.major
        ),
    };
    let mut finding = Finding::new(title)
        .cause(wanted.cause)
        .saw(wanted.source.as_str(), wanted.says.as_str())
        .saw(offered.source.as_str(), offered.says.as_str())
        .why("The runtime refuses a driver of an older major version: every program ends in error 35, \"driver version is insufficient\"");
    let in_use = match environment.kind {
        Kind::Toolkit(_) => match view.chosen_toolkit().got() {
            Some((folder, via)) if *folder == environment.key => Some(*via),
            _ => None,
        },
        Kind::Python(_) => view.is_first_python(&environment.key).then_some("PATH"),
        Kind::Image | Kind::Model => Some("the image"),
    };
    match (in_use, environment.kind) {
        // The toolkit's compatibility library may serve such GPUs, where a job puts it first.
        (Some(_), Kind::Toolkit(_)) if view.gpus_of(Stack::Cuda).any(|gpu| gpu.data_centre) => {
            finding = finding.severity(Severity::Warning).likely();
        }
        (Some(_), _) => {}
        // Toolkits side by side are there to be chosen from.
        (None, Kind::Toolkit(_)) => finding = finding.severity(Severity::Note),
        (None, _) => finding = finding.severity(Severity::Warning),
    }
    if let Some(floor) = floor.as_ref().filter(|floor| floor.may_accuse()) {
        let branch = floor.value.major().map(|branch| branch.to_string());
        finding = finding.fix(view.newer_nvidia_driver(branch));
    }
    let older = match environment.kind {
        Kind::Python(_) if wanted.cause == "torch" => "torch-for-older-cuda",
        Kind::Python(_) => "jax-for-older-cuda",
        Kind::Toolkit(_) => "older-cuda-toolkit",
        Kind::Image | Kind::Model => "image-for-older-cuda",
    };
    finding
        .about(Some(Stack::Cuda))
        .fix(
            FixCall::new(older)
                .with("version", offered.major.to_string())
                .with("file", environment.key.as_str()),
        )
        .into()
}
