//! The model that the user names is larger than what its GPUs have free.

use crate::check::Verdict;
use crate::finding::Finding;
use crate::fit::{self, Fit, Holds, Place, gib};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::figures::about;
use crate::view::model::{Format, GIB, Makes, Model};
use crate::view::{Environment, Vendor, View};

crate::check! {
    /// The model that was named needs more memory than any GPU here has free, or all of one vendor together.
    ///
    /// ## Why it matters
    /// Engines then keep a part of the model in system memory, which makes it slower many times over, or end with `out of
    /// memory`.
    ///
    /// ## How it comes about
    /// Weights, what is kept of the context, and buffers must be in memory at a time. A format of more bits, a long context, or
    /// another program that holds a part of the memory make the difference. The lowest estimate is what counts here; of a GPU
    /// that shares the memory of the machine, all that it may take of that.
    ///
    /// ## How to confirm
    /// `gpucheck fit MODEL` shows the sum; `ollama ps` shows under `PROCESSOR` how much of a model is on the GPU, and
    /// `nvidia-smi` what is free.
    "model-exceeds-vram", Capability, Warning, each Environment, run
}

/// Places of which the evidence is shown.
const SHOWN: usize = 4;
/// Formats to fall back to, from more bits to fewer.
const SMALLER: [&str; 5] = ["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M"];
/// A context below this is of little use, in tokens.
const SHORT: u32 = 2048;

fn run(environment: &Environment, view: &View, _: &Tables) -> Verdict {
    let model = view.model.as_ref();
    let Some(model) = model.filter(|_| view.is_model(&environment.key)) else {
        return Verdict::NotHere;
    };
    let Some(fit) = fit::fit(view) else {
        return Verdict::NotHere;
    };
    if fit.gpus.is_empty() && view.gpus_whole {
        return Verdict::NotHere;
    }
    let need = model.need();
    let needs = format!("about {}", gib(need.likely));
    match fit.holds {
        Holds::Fits => Verdict::fine(format!("it needs {needs}, which fits")),
        // The estimate is no better than that.
        Holds::Barely if fit.is_close(model) => Verdict::cannot_tell(
            format!("it needs {needs}, about as much as is free"),
            "loading it",
        ),
        Holds::Barely => Verdict::fine(format!("it needs {needs}, which just fits")),
        Holds::Unknown => {
            let known = fit.gpus.iter().find_map(|place| place.room.unknown.clone());
            match known {
                Some(unknown) => Verdict::cannot_tell(unknown.why, unknown.would_tell),
                None if !view.gpus_whole => {
                    Verdict::cannot_tell(view.why_gpus_are_unknown(), "`lspci -nn`")
                }
                None => Verdict::cannot_tell(
                    format!(
                        "how much it keeps of its context is not known: {}",
                        model.source
                    ),
                    "loading it",
                ),
            }
        }
        Holds::DoesNotFit if !model.may_accuse => Verdict::cannot_tell(
            "how large it is, is from memory alone",
            "the size of its files: `gpucheck fit FILE`",
        ),
        Holds::DoesNotFit => found(model, &fit, view).into(),
    }
}

fn found(model: &Model, fit: &Fit, view: &View) -> Finding {
    let need = model.need();
    let places: Vec<&Place> = fit.gpus.iter().chain(&fit.together).collect();
    let free = |place: &Place| place.room.free_bytes.or(place.room.most_bytes);
    let most = places
        .iter()
        .filter_map(|place| free(place))
        .fold(0.0, f64::max);
    let what = match (
        fit.gpus.len(),
        fit.gpus.iter().all(|place| place.room.free_bytes.is_some()),
    ) {
        (_, false) => format!("and there is {} at most", gib(most)),
        (1, true) => format!("and {} is free", gib(most)),
        (_, true) => format!("and {} is free at most", gib(most)),
    };
    let mut finding = Finding::new(format!(
        "{} at {} needs about {}, {what}",
        model.name,
        model.format.name,
        gib(need.likely)
    ))
    .why(format!(
        "{}; what does not fit runs from system memory, many times slower, or not at all",
        parts(model)
    ));
    for place in fit.gpus.iter().take(SHOWN) {
        for evidence in &place.room.seen {
            finding = finding.saw(&evidence.source, &evidence.says);
        }
        if place.room.seen.is_empty() {
            let (key, name) = (&place.gpus[0], place.name.as_deref().unwrap_or("a GPU"));
            let most = place.room.most_bytes.map_or(String::new(), gib);
            finding = finding.saw(
                format!("/sys/bus/pci/devices/{key}/device"),
                format!("{name}, which has {most}"),
            );
        }
    }
    // Where it would fit if nobody else used the GPU.
    let empty = |place: &&&Place| place.room.most_bytes.is_some_and(|all| need.likely <= all);
    let emptied = places.iter().find(empty).and_then(|place| {
        let key = place.gpus.first()?;
        view.gpus.iter().find(|gpu| gpu.key == *key)
    });
    if let Some(gpu) = emptied.filter(|_| !places.iter().all(|place| place.room.shared)) {
        let recipe = match gpu.vendor {
            Vendor::Nvidia => "free-nvidia-memory",
            _ => "free-amd-memory",
        };
        finding = finding.fix(FixCall::new(recipe).with("address", &gpu.key));
    }
    let fits = |model: &Model| model.need().likely <= most;
    let smaller = SMALLER
        .iter()
        .filter_map(|name| Format::named(name))
        .filter(|format| format.bits.likely < model.format.bits.likely)
        .filter_map(|format| model.in_format(format))
        .find(fits);
    if let Some(smaller) = smaller {
        let word = format!(
            "{} needs about {}",
            smaller.format.name,
            gib(smaller.need().likely)
        );
        finding = finding.fix(FixCall::new("take-smaller-format").with("word", word));
    }
    let mut shorter = model.context / 2;
    while shorter >= SHORT && !fits(&model.with_context(shorter)) {
        shorter /= 2;
    }
    if model.makes == Makes::Language && shorter >= SHORT && fits(&model.with_context(shorter)) {
        finding = finding.fix(FixCall::new("shorten-context").with("word", shorter.to_string()));
    }
    if model.makes == Makes::Language {
        // With a little room to spare; models of such sizes keep about 2 GiB of 8192 tokens, and buffers take another.
        let billions = (most * 0.95 / GIB - 3.0) * GIB * 8.0 / 4.85 / 1e9;
        if billions >= 1.0 {
            finding = finding.fix(FixCall::new("take-smaller-model").with("word", about(billions)));
        }
    }
    finding
}

/// What the need is made of.
fn parts(model: &Model) -> String {
    let weights = gib(model.weights().likely);
    let buffers = gib(model.overhead().likely);
    match model.kept().filter(|kept| kept.likely > 0.0) {
        Some(kept) => format!(
            "weights take {weights}, {} tokens of context {}, buffers about {buffers}",
            model.context,
            gib(kept.likely)
        ),
        None => format!("weights take {weights}, buffers about {buffers}"),
    }
}
