//! The memory of a GPU is too slow for the model that the user names.

use crate::check::Verdict;
use crate::finding::Finding;
use crate::fit::{self, Holds, gib};
use crate::tables::Tables;
use crate::view::figures::about;
use crate::view::{Gpu, View};

crate::check! {
    /// The memory of this GPU is so slow that the model that was named answers more slowly than people read.
    ///
    /// ## Why it matters
    /// For each token all weights that count are read from memory once, so its bandwidth sets a ceiling, whatever the chip
    /// computes. Below 5 tokens a second people read faster than it writes: they read four to five words a second, and a word is a
    /// little more than one token.
    ///
    /// ## How it comes about
    /// The GPU shares the memory of the machine, or has much memory of a slow kind. A model with experts reads only some of
    /// its weights and may be fast on the same memory.
    ///
    /// ## How to confirm
    /// `llama-bench -m FILE` measures it; the ceiling is bandwidth divided by the size of the weights.
    "gpu-bandwidth-low", Capability, Note, each Gpu, run
}

/// Tokens a second below which people wait for words.
const READING: f64 = 5.0;

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let (Some(model), Some(fit)) = (view.model.as_ref(), fit::fit(view)) else {
        return Verdict::NotHere;
    };
    let Some(read) = model.read_for_token() else {
        return Verdict::NotHere;
    };
    // Alone, or as a part of several.
    let can_run = |holds: Holds| holds != Holds::DoesNotFit;
    let places = fit.gpus.iter().chain(&fit.together);
    let mut places = places.filter(|place| place.gpus.contains(&gpu.key));
    if !places.any(|place| can_run(place.holds)) {
        return Verdict::NotHere;
    }
    let own = fit.gpus.iter().find(|place| place.gpus[0] == gpu.key);
    let Some(speed) = own.and_then(|place| place.speed) else {
        return Verdict::cannot_tell(
            "how fast its memory is, is in no table",
            "the data sheet of the GPU, or `llama-bench`",
        );
    };
    let ceiling = about(speed.ceiling);
    if speed.ceiling >= READING {
        return Verdict::fine(format!("no more than about {ceiling} tokens a second"));
    }
    if !speed.may_accuse {
        return Verdict::cannot_tell(
            "how fast its memory is, is from memory alone",
            "the data sheet of the GPU, or `llama-bench`",
        );
    }
    let address = gpu.pci.as_deref().unwrap_or(&gpu.key);
    let name = gpu.name.as_deref().unwrap_or("this GPU");
    Finding::new(format!(
        "{} at {} writes no more than about {ceiling} tokens a second on this GPU",
        model.name, model.format.name
    ))
    .saw(
        format!("/sys/bus/pci/devices/{address}/device"),
        format!("{name}, whose memory reads {} GB/s", speed.bandwidth_gbs),
    )
    .why(format!(
        "Each token reads {} of weights; people read faster than that",
        gib(read.likely)
    ))
    .into()
}
