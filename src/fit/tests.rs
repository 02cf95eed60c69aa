use super::*;
use crate::tables::Tables;
use crate::view::model::Format;

fn model(name: &str, format: &str, context: u32) -> Model {
    let asked = Asked {
        format: Some(Format::named(format).expect("a format")),
        context: Some(context),
        bytes: None,
    };
    named(&Tables::embedded(), name, &asked).unwrap_or_else(|| panic!("no {name}"))
}

fn in_gib(estimate: Estimate) -> f64 {
    estimate.likely / GIB
}

/// The rows that people reckon with, in GiB: weights, cache of 8192 tokens, all together.
#[test]
fn needs_are_as_the_rules_say() {
    for (name, format, weights, kept, all) in [
        ("Llama-2-7B", "fp16", 12.6, 4.0, 17.6),
        ("Llama-2-7B", "Q4_K_M", 3.8, 4.0, 8.6),
        ("Llama-3-8B", "fp16", 15.0, 1.0, 17.0),
        ("Llama-3-8B", "Q8_0", 8.0, 1.0, 9.8),
        ("Llama-3-8B", "Q4_K_M", 4.6, 1.0, 6.4),
        ("Qwen2.5-14B", "Q4_K_M", 8.4, 1.5, 10.9),
        ("Qwen2.5-32B", "Q4_K_M", 18.5, 2.0, 21.5),
        ("Qwen2.5-32B", "FP8", 30.5, 2.0, 34.0),
        ("Llama-3.1-70B", "Q4_K_M", 40.0, 2.5, 44.0),
        ("Llama-3.1-70B", "FP8", 66.0, 2.5, 70.0),
        ("Llama-3.1-70B", "BF16", 131.0, 2.5, 137.0),
    ] {
        let model = model(name, format, 8192);
        let near = |is: f64, wanted: f64, what: &str| {
            let within = 0.06 + wanted * 0.012;
            assert!(
                (is - wanted).abs() <= within,
                "{name} at {format}: {what} {is:.2}, not {wanted}"
            );
        };
        near(in_gib(model.weights()), weights, "weights");
        near(in_gib(model.kept().expect("known")), kept, "cache");
        near(in_gib(model.need()), all, "all");
        assert!(model.need().least <= model.need().likely);
        assert!(model.need().likely <= model.need().most);
    }
}

#[test]
fn what_is_kept_of_a_token() {
    for (name, kib) in [
        ("Llama-2-7B", 512.0),
        ("Llama-3-8B", 128.0),
        ("Mistral-7B-v0.3", 128.0),
        ("Mixtral-8x7B", 128.0),
        ("Qwen2.5-7B", 56.0),
        ("Qwen2.5-32B", 256.0),
        ("Llama-3.1-70B", 320.0),
        ("Gemma-2-9B", 336.0),
        ("DeepSeek-V3", 68.625),
    ] {
        let kept = model(name, "Q4_K_M", 1024).kept().expect("known");
        assert_eq!(kept.likely / 1024.0 / 1024.0, kib, "{name}");
    }
    // Half of the layers look back 4096 tokens only.
    let gemma = model("Gemma-2-9B", "Q4_K_M", 8192).kept().expect("known");
    assert_eq!(gemma.least / gemma.likely, 0.75);
    let short = model("Gemma-2-9B", "Q4_K_M", 2048).kept().expect("known");
    assert_eq!(short.least, short.likely);
}

#[test]
fn all_experts_are_in_memory_and_few_are_read() {
    let mixtral = model("Mixtral-8x7B", "Q4_K_M", 8192);
    assert!((in_gib(mixtral.weights()) - 26.4).abs() < 0.1);
    let read = mixtral.read_for_token().expect("a language model");
    assert!((in_gib(read) - 26.4 * 12.88 / 46.7).abs() < 0.1);
    let dense = model("Llama-3-8B", "Q4_K_M", 8192);
    assert_eq!(dense.read_for_token(), Some(dense.weights()));
    assert_eq!(model("SDXL", "F16", 1).read_for_token(), None);
}

#[test]
fn published_formats_are_what_is_reckoned_with() {
    let oss = named(&Tables::embedded(), "gpt-oss:20b", &Asked::default()).expect("known");
    assert_eq!(oss.format.name, "MXFP4");
    assert_eq!(oss.weights().likely, 13e9);
    // Runs within 16 GB, as its makers say.
    assert!(in_gib(oss.need()) < 15.5);
    let llama = named(&Tables::embedded(), "llama3.1:8b", &Asked::default()).expect("known");
    assert_eq!(
        (llama.format.name.as_str(), llama.context),
        ("Q4_K_M", 8192)
    );
    let short = named(&Tables::embedded(), "Llama-2-7B", &Asked::default()).expect("known");
    assert_eq!(short.context, 4096);
}

/// What fits into a card of that many GiB, of which a little is taken.
fn on(name: &str, format: &str, gib: f64) -> Holds {
    let room = own_memory(String::new(), gib * GIB, 0.4 * GIB);
    judge(&model(name, format, 8192).need(), &room)
}

#[test]
fn cards_hold_what_people_say_that_they_hold() {
    use Holds::{Barely, DoesNotFit, Fits};
    for (name, format, gib, holds) in [
        ("Llama-3-8B", "Q4_K_M", 8.0, Fits),
        ("Llama-3-8B", "fp16", 16.0, DoesNotFit),
        ("Llama-3-8B", "fp16", 24.0, Fits),
        ("Qwen2.5-14B", "Q4_K_M", 12.0, Barely),
        ("Qwen2.5-32B", "Q4_K_M", 24.0, Barely),
        ("Qwen2.5-32B", "Q4_K_M", 16.0, DoesNotFit),
        ("Llama-3.1-70B", "Q4_K_M", 48.0, Barely),
        ("Llama-3.1-70B", "BF16", 141.0, Barely),
        ("Llama-3.1-70B", "BF16", 80.0, DoesNotFit),
        ("gpt-oss-120b", "MXFP4", 80.0, Fits),
        // Encoders may wait in system memory: `Barely`.
        ("SD-1.5", "F16", 6.0, Fits),
        ("SDXL", "F16", 8.0, Barely),
        ("SDXL", "F16", 12.0, Fits),
        ("SD-3.5-large", "F16", 24.0, Barely),
        ("FLUX.1-dev", "F16", 24.0, Barely),
        ("FLUX.1-dev", "FP8", 16.0, Barely),
        ("FLUX.1-dev", "F16", 16.0, DoesNotFit),
        ("FLUX.1-dev", "Q4_K_M", 12.0, Barely),
    ] {
        assert_eq!(on(name, format, gib), holds, "{name} at {format} on {gib}");
    }
}

#[test]
fn what_is_not_known_is_no_answer_unless_it_cannot_matter() {
    let need = model("Llama-3.1-70B", "Q4_K_M", 8192).need();
    let most = |gib: f64| Room {
        most_bytes: Some(gib * GIB),
        ..Room::default()
    };
    assert_eq!(judge(&need, &Room::default()), Holds::Unknown);
    assert_eq!(judge(&need, &most(80.0)), Holds::Unknown);
    assert_eq!(judge(&need, &most(24.0)), Holds::DoesNotFit);
}

#[test]
fn a_size_stands_for_models_of_about_that_size() {
    let tables = Tables::embedded();
    let of = |text: &str| named(&tables, text, &Asked::default());
    let seven = of("7B").expect("a size");
    let need = seven.need();
    assert!(need.least / GIB < 5.5 && need.most / GIB > 8.5, "{need:?}");
    let seventy = of("70b").expect("a size").need();
    assert!((42.0..46.0).contains(&in_gib(seventy)), "{seventy:?}");
    // Nothing in the tables tells what such a model keeps.
    let odd = of("1700B").expect("a size");
    assert_eq!(odd.kept(), None);
    assert!(odd.need().most.is_infinite());
    for no_size in ["B", "-3B", "0B", "7", "7C", "1e9B", "nanB", ""] {
        assert_eq!(of(no_size), None, "{no_size}");
    }
}

#[test]
fn the_size_of_files_counts_where_there_are_files() {
    let tables = Tables::embedded();
    let of = |name: &str| {
        let asked = Asked {
            bytes: Some(5_000_000_000),
            ..Asked::default()
        };
        named(&tables, name, &asked).expect("files")
    };
    let known = of("/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf");
    assert_eq!(known.weights(), Estimate::exactly(5e9));
    assert_eq!(in_gib(known.kept().expect("by its name")), 1.0);
    assert!(known.format.mapped);
    assert_eq!(known.format.name, "Q4_K_M");
    let sharded = of("./qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf");
    assert_eq!(
        sharded.kept().expect("by its name").likely,
        57344.0 * 8192.0
    );
    let strange = of("mine.safetensors");
    assert_eq!(strange.kept(), None);
    assert!(!strange.format.mapped && strange.need().most.is_infinite());
    // A file has the format that it has.
    assert_eq!(known.in_format(Format::named("Q8_0").expect("known")), None);
}
