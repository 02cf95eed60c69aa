//! Intel's compute runtime is not installed.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, View, Wanted};

crate::check! {
    /// A driver holds a GPU of Intel, and the library through which programs compute on it is not installed.
    ///
    /// ## Why it matters
    /// PyTorch for XPU, OpenVINO and SYCL programs find no GPU.
    ///
    /// ## How it comes about
    /// The kernel's driver draws the display without it, so nobody misses it until something is to be computed. Distributions do
    /// not install it by themselves. A GPU that is part of the processor is judged only where somebody wants to compute on it.
    ///
    /// ## How to confirm
    /// `ldconfig -p | grep libze_intel_gpu`; `clinfo -l` for OpenCL.
    "intel-compute-runtime-missing", Library, Error, each Stack, run, later ["too-old"]
}

const LIBRARY: &str = "libze_intel_gpu.so.1";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    // Under WSL the GPU and most of its driver are Windows'.
    if view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let is_held = |gpu: &&Gpu| {
        let driver = gpu.driver.got().map(String::as_str);
        matches!(driver, Some("i915" | "xe")) && gpu.passed_in != Some(false)
    };
    let wanted = matches!(view.wanted(stack), Wanted::Yes(_));
    let held = view
        .gpus_of(stack)
        .find(|gpu| is_held(gpu) && (wanted || gpu.integrated == Some(false)));
    let Some(gpu) = held else {
        return Verdict::NotHere;
    };
    match view.winner(LIBRARY) {
        Seen::Got(file) => return Verdict::fine(format!("{} is there", file.path)),
        Seen::Absent => {}
        other => {
            return Verdict::cannot_tell(
                format!("{LIBRARY}: {}", other.map(|_| ()).why()),
                "`ldconfig -p | grep libze_intel_gpu`",
            );
        }
    }
    let opencl = view.facts.icd.got().and_then(|icd| icd.opencl.got());
    let by_opencl = opencl.and_then(|files| {
        let mut files = files.iter();
        files.find(|(_, library)| {
            library
                .got()
                .is_some_and(|library| library.contains("igdrcl"))
        })
    });
    let mut finding = Finding::new(
        "Intel's compute runtime is not installed: programs cannot compute on this GPU",
    )
    .cause("missing")
    .saw_answer(&gpu.driver_source, &gpu.driver)
    .saw(
        format!("/usr/lib/{LIBRARY}"),
        "does not exist, nor in any other folder of libraries",
    );
    if let Some((path, _)) = by_opencl {
        finding = finding.saw(path, "OpenCL alone is there");
    }
    finding
        .why("PyTorch for XPU, OpenVINO and SYCL programs find no GPU without it")
        .fix(FixCall::new("set-up-level-zero"))
        .into()
}
