//! A GPU of NVIDIA has no tensor cores.

use crate::check::Verdict;
use crate::finding::Finding;
use crate::tables::{Known, Tables};
use crate::view::figures::Matrix;
use crate::view::{Gpu, Vendor, View};

crate::check! {
    /// The GPU has no tensor cores, the units that multiply matrices; it matters to who names a model.
    ///
    /// ## Why it matters
    /// Computing at 16 bit gains little over 32 bit here, and FP8 nothing: small formats save memory, not time. Prompts are
    /// read several times more slowly, and pictures take longer, than on a card that has them; many engines for servers do not
    /// run at all.
    ///
    /// ## How it comes about
    /// Tensor cores came with Volta (compute capability 7.0). Cards before it have none, nor do those of the series GTX 16
    /// (TU116 and TU117), although they are of the same generation as RTX 20.
    ///
    /// ## How to confirm
    /// `nvidia-smi --query-gpu=name,compute_cap --format=csv`, and `gpucheck tables sm_75` for what a capability has.
    "gpu-without-tensor-cores", Capability, Note, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if view.model.is_none()
        || gpu.vendor != Vendor::Nvidia
        || gpu.remembered
        || gpu.passed_in == Some(false)
        || view.is_reserved(gpu)
    {
        return Verdict::NotHere;
    }
    let would_tell = "`nvidia-smi --query-gpu=name,compute_cap --format=csv`";
    let Some(matrix) = view.matrix_of(gpu) else {
        return Verdict::cannot_tell("what this GPU can do is in no table", would_tell);
    };
    match &matrix.value {
        Matrix::None if gpu.target_may_accuse && Known::may_accuse(&matrix) => {}
        Matrix::None => {
            return Verdict::cannot_tell("that it has no tensor cores is from memory", would_tell);
        }
        Matrix::TensorCores(generation, _) => {
            return Verdict::fine(format!("tensor cores of generation {generation}"));
        }
        Matrix::Instructions(_) => return Verdict::NotHere,
    }
    let Some(seen) = view.seen_architecture(gpu) else {
        return Verdict::cannot_tell("the architecture of this GPU is not known", would_tell);
    };
    Finding::new("this GPU has no tensor cores")
        .saw(seen.source, seen.says)
        .why("Small formats save memory here and not time, and engines that need tensor cores do not run")
        .into()
}
