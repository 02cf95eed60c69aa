//! `gpucheck fit MODEL`: whether a model fits on the GPUs here, what is needed, and how fast it can be at most.

use super::look::{look, replay};
use super::{BAD, GOOD, names, style_for, tables_of};
use crate::cli::{FitArgs, ListFormat};
use crate::finding::Severity;
use crate::fit::{self, Asked, Fit, Holds, Place, gib};
use crate::report::page::{Page, Sign, sign_line};
use crate::report::style::{Style, clean};
use crate::report::{self, Report, json, terminal};
use crate::tables::{Known, Tables, kinds};
use crate::view::View;
use crate::view::figures::{Matrix, about};
use crate::view::model::{Estimate, Format, Makes, Model, Size};
use crate::{chain, checks, files, readiness};
use anyhow::{Context, Result, bail};
use clap::ColorChoice;
use serde::Serialize;
use std::path::Path;

/// Checks that ask about the model; the last one says what its owner cannot change.
const ABOUT_MODEL: [&str; 4] = [
    "model-exceeds-vram",
    "ram-smaller-than-model",
    "gpu-bandwidth-low",
    "gpu-without-tensor-cores",
];
/// What else is shown here: who holds the memory that is missing.
const BESIDE: &str = "vram-occupied-by-others";
/// Formats of which it is said whether they would fit, too.
const OTHERS: [&str; 5] = ["F16", "Q8_0", "Q6_K", "Q4_K_M", "Q3_K_M"];
/// Endings of files that hold a model.
const ENDINGS: [&str; 2] = [".gguf", ".safetensors"];

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    model: About<'a>,
    need: Need,
    #[serde(flatten)]
    fit: &'a Fit,
    report: &'a Report,
}

/// The model, as it was understood.
#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    makes: Makes,
    format: &'a str,
    context: Option<u32>,
    longest_context: Option<u32>,
    source: &'a str,
    note: &'a str,
}

/// What it needs, in bytes.
#[derive(Serialize)]
struct Need {
    weights: Estimate,
    kept_of_context: Option<Estimate>,
    overhead: Estimate,
    all: Estimate,
}

/// Looks and answers.
pub fn run(args: &FitArgs, color: ColorChoice) -> Result<u8> {
    let is_here = args.replay.is_none() && args.look.root.is_none();
    let tables = tables_of(args.data.as_deref(), is_here)?;
    // Who mistypes a name shall not wait for the machine.
    let model = model(args, &tables)?;
    let looked = match &args.replay {
        Some(machine) => replay(machine, &args.look, &tables)?,
        None => look(&args.look, &tables, false)?,
    };
    let view = View::new(&looked.facts, &tables, &[]).with_model(model);
    let (Some(model), Some(fit)) = (&view.model, fit::fit(&view)) else {
        bail!("a bug in gpucheck: the model was lost");
    };
    let answers = chain::judge(checks::ALL, &view, &tables);
    let readiness = readiness::rows(&view, &answers);
    let mut report = report::assemble(&view, &answers, &readiness, &looked.origin);
    let stdout = Path::new("-");
    let text = match args.format {
        ListFormat::Json => json::text(&document(model, &fit, &report))?,
        ListFormat::Terminal => {
            let style = style_for(stdout, color);
            let mut page = Page {
                style: &style,
                text: String::new(),
            };
            answer(model, &fit, &view, &mut page);
            findings(&mut report, args.verbose, &mut page, &style);
            page.text
        }
    };
    files::write(stdout, text.as_bytes())?;
    Ok(match fit.holds {
        Holds::Barely if fit.is_close(model) => BAD,
        Holds::Fits | Holds::Barely => GOOD,
        Holds::DoesNotFit | Holds::Unknown => BAD,
    })
}

fn document<'a>(model: &'a Model, fit: &'a Fit, report: &'a Report) -> Document<'a> {
    let language = model.makes == Makes::Language;
    Document {
        schema: 1,
        model: About {
            name: &model.name,
            makes: model.makes,
            format: &model.format.name,
            context: language.then_some(model.context),
            longest_context: model.longest,
            source: &model.source,
            note: &model.note,
        },
        need: Need {
            weights: model.weights(),
            kept_of_context: model.kept(),
            overhead: model.overhead(),
            all: model.need(),
        },
        fit,
        report,
    }
}

/// The model that the words name: files where they are a path, else a row of the table or a size.
fn model(args: &FitArgs, tables: &Tables) -> Result<Model> {
    let name = args.words.join(" ");
    let format = args
        .quant
        .as_deref()
        .map(|text| {
            Format::named(text).with_context(|| {
                let known: Vec<&str> = Format::names().collect();
                format!(
                    "no format is called `{text}`; there are {}, or a number of bits from 1 to 64",
                    known.join(", ")
                )
            })
        })
        .transpose()?;
    let mut asked = Asked {
        format,
        context: args.context,
        bytes: None,
    };
    let lower = name.to_lowercase();
    let is_path = ENDINGS.iter().any(|ending| lower.ends_with(ending))
        || ["/", "./", "../"]
            .iter()
            .any(|start| name.starts_with(start));
    if !is_path && let Some(model) = fit::named(tables, &name, &asked) {
        return Ok(model);
    }
    let bytes = files::model_bytes(Path::new(&name));
    match bytes {
        Ok(_) if asked.format.is_some() => {
            bail!(
                "--quant is for models of the table and for sizes: a file has the format that it has"
            )
        }
        Ok(0) => bail!("`{name}` is empty"),
        Ok(bytes) => {
            asked.bytes = Some(bytes);
            fit::named(tables, &name, &asked).context("a bug in gpucheck: files are no model")
        }
        Err(error) if is_path => {
            Err(error).with_context(|| format!("cannot weigh the model `{name}`"))
        }
        Err(_) => bail!("no model is called `{name}`; {}", hint(tables, &name)),
    }
}

fn hint(tables: &Tables, name: &str) -> String {
    let rows = tables.rows(&kinds::MODEL);
    let known: Vec<&str> = rows.iter().map(|row| row.key(&kinds::MODEL)).collect();
    let (own, _) = Format::split(name.rsplit('/').next().unwrap_or(name));
    match names::nearest(own, &known).as_slice() {
        [] => {
            "`gpucheck tables model` lists them, and a size such as 8B or a file will do".to_owned()
        }
        near => format!("the nearest are {}", near.join(", ")),
    }
}

/// The answer for people, without the findings.
fn answer(model: &Model, fit: &Fit, view: &View, page: &mut Page) {
    let place = best(fit);
    let name = format!("{} at {}", clean(&model.name), clean(&model.format.name));
    let (sign, text) = match (fit.holds, place) {
        (Holds::Fits, Some(place)) => (Sign::Good, format!("{name} fits on {}", called(place))),
        (Holds::Barely, Some(place)) => (
            Sign::Warning,
            match model.makes {
                Makes::Image => format!(
                    "{name} fits on {} while parts of it wait in system memory",
                    called(place)
                ),
                _ if fit.is_close(model) => format!(
                    "{name} may just fit on {}, or may not: it needs about as much as is free",
                    called(place)
                ),
                _ => format!("{name} just fits on {}", called(place)),
            },
        ),
        (Holds::DoesNotFit, _) if fit.gpus.is_empty() => {
            (Sign::None, format!("{name}: no GPU here could run it"))
        }
        (Holds::DoesNotFit, _) => (Sign::Bad, format!("{name} does not fit on any GPU here")),
        (Holds::Unknown, _) if fit.gpus.is_empty() => (
            Sign::Unknown,
            format!(
                "{name}: no GPU was seen, which is no proof: {}",
                view.why_gpus_are_unknown()
            ),
        ),
        (_, _) => (
            Sign::Unknown,
            format!("{name}: whether it fits could not be told"),
        ),
    };
    sign_line(sign, &format!("{}.", clean(&text)), page);
    need(model, page);
    // Cards of one kind are many in a server, and what there is to say of them is the same.
    let mut rest: Vec<&Place> = fit.gpus.iter().collect();
    while let Some(first) = rest.first().copied() {
        let (alike, others): (Vec<&Place>, Vec<&Place>) =
            rest.into_iter().partition(|other| is_alike(first, other));
        let keys: Vec<&str> = alike.iter().map(|place| place.gpus[0].as_str()).collect();
        let name = first
            .name
            .as_deref()
            .unwrap_or("a GPU without a known name");
        page.heading(&format!("{name} ({})", keys.join(", ")));
        gpu(first, model, page);
        rest = others;
    }
    for place in &fit.together {
        let (count, keys) = (place.gpus.len(), place.gpus.join(", "));
        page.heading(&format!("{count} GPUs together ({keys})"));
        gpu(place, model, page);
    }
    for (key, why) in &fit.left_out {
        page.paragraph(0, &format!("{} does not count: {why}.", clean(key)));
    }
    system_memory(fit, page);
}

/// What is said of them is the same.
fn is_alike(one: &Place, other: &Place) -> bool {
    let said = |place: &Place| {
        let rounded = |bytes: Option<f64>| bytes.map(gib);
        let room = &place.room;
        let why = room.unknown.clone().map(|unknown| unknown.why);
        (
            place.name.clone(),
            rounded(room.free_bytes),
            rounded(room.most_bytes),
            why,
        )
    };
    said(one) == said(other) && one.holds == other.holds
}

/// The place that the verdict is about: one GPU before several.
fn best(fit: &Fit) -> Option<&Place> {
    let mut places = fit.gpus.iter().chain(&fit.together);
    places.find(|place| place.holds == fit.holds)
}

fn called(place: &Place) -> String {
    let name = place.name.as_deref().unwrap_or("a GPU");
    match place.gpus.as_slice() {
        [key] => format!("{name} ({key})"),
        keys => format!("{} GPUs together", keys.len()),
    }
}

fn need(model: &Model, page: &mut Page) {
    page.heading("What it needs");
    let need = model.need();
    let spread = |estimate: &Estimate| {
        let likely = gib(estimate.likely);
        if estimate.most.is_infinite() {
            format!("{likely} and what is kept of the context, which is not known")
        } else if (estimate.most - estimate.least) / estimate.likely.max(1.0) > 0.15 {
            format!(
                "about {likely}, {} to {}",
                gib(estimate.least),
                gib(estimate.most)
            )
        } else {
            format!("about {likely}")
        }
    };
    page.item("memory", &spread(&need));
    let weights = gib(model.weights().likely);
    let of = match &model.size {
        Size::Files(_) => String::new(),
        Size::Parameters { count, .. } => format!(
            "{:.2} billion parameters at about {} bits; ",
            count.likely / 1e9,
            model.format.bits.likely
        ),
    };
    page.item("weights", &format!("{weights}: {of}{}", model.source));
    if model.makes == Makes::Language {
        let mut text = match model.kept() {
            Some(kept) => format!(
                "{} for {} tokens at 16 bit, one answer at a time",
                gib(kept.likely),
                model.context
            ),
            None => "not known".to_owned(),
        };
        if let Some(longest) = model.longest.filter(|longest| *longest < model.context) {
            text += &format!("; it was made for {longest} tokens at most");
        }
        page.item("context", &text);
    }
    page.item(
        "buffers",
        &format!(
            "about {}: driver, engine, computing",
            gib(model.overhead().likely)
        ),
    );
    if !model.note.is_empty() {
        page.item("note", &model.note);
    }
}

fn gpu(place: &Place, model: &Model, page: &mut Page) {
    let room = &place.room;
    let memory = match (room.free_bytes, room.most_bytes) {
        (Some(free), Some(most)) if room.shared => format!(
            "{} free, of {} that it may share with the processor",
            gib(free),
            gib(most)
        ),
        (Some(free), Some(most)) => format!("{} of {} free", gib(free), gib(most)),
        (Some(free), None) => format!("{} free", gib(free)),
        (None, Some(most)) => format!("{} at most", gib(most)),
        (None, None) => "not known".to_owned(),
    };
    let memory = match &room.unknown {
        Some(unknown) => format!(
            "{memory}; {}; would tell: {}",
            unknown.why, unknown.would_tell
        ),
        None => memory,
    };
    let memory = match room.part && room.free_bytes.is_some() {
        true => format!("{memory} in the part (MIG) that has the most"),
        false => memory,
    };
    page.item("memory", &memory);
    let holds = words(place, model);
    let how = match place.gpus.len() {
        1 => "",
        _ => ", where an engine splits it by layers (llama.cpp and Ollama do)",
    };
    page.item("this model", &format!("{holds}{how}"));
    if place.gpus.len() == 1 {
        let others = others(place, model);
        if !others.is_empty() {
            page.item("otherwise", &others);
        }
    }
    if place.holds != Holds::DoesNotFit {
        if let Some(speed) = place.speed {
            page.item(
                "speed",
                &format!(
                    "no more than about {} tokens a second, one answer at a time: memory reads {} GB/s{}",
                    about(speed.ceiling),
                    speed.bandwidth_gbs,
                    if speed.may_accuse { "" } else { " (unchecked)" }
                ),
            );
        } else if model.makes == Makes::Language && place.gpus.len() == 1 {
            page.item("speed", "its bandwidth is in no table");
        }
    }
    if let Some(matrix) = &place.matrix {
        page.item("matrix", &matrix_words(matrix, model));
    }
}

fn words(place: &Place, model: &Model) -> &'static str {
    let room = &place.room;
    let empty = room.most_bytes.is_some_and(|most| place.need.most <= most);
    match (place.holds, model.makes) {
        (Holds::Fits, _) => "fits",
        (Holds::Barely, Makes::Image) => "fits while parts of it wait in system memory (offload)",
        (Holds::Barely, _) if place.is_close(model) => {
            "may fit or not: it needs about as much as is free"
        }
        (Holds::Barely, _) => "just fits: there is no room to speak of",
        (Holds::DoesNotFit, _) => "does not fit",
        (Holds::Unknown, _) if empty => "not known; it would fit if all of that were free",
        (Holds::Unknown, _) => "not known",
    }
}

/// Whether it fits in other formats.
fn others(place: &Place, model: &Model) -> String {
    let formats = OTHERS
        .iter()
        .filter_map(|name| Format::named(name))
        .filter(|format| format.name != model.format.name)
        .filter_map(|format| model.in_format(format));
    let said: Vec<String> = formats
        .filter_map(|model| {
            let words = match fit::judge(&model.need(), &place.room) {
                Holds::Fits => "fits",
                Holds::Barely => "just fits",
                Holds::DoesNotFit => "does not fit",
                Holds::Unknown => return None,
            };
            Some(format!("{} {words}", model.format.name))
        })
        .collect();
    said.join(", ")
}

fn matrix_words(matrix: &Known<Matrix>, model: &Model) -> String {
    let unsure = if matrix.may_accuse() {
        ""
    } else {
        " (unchecked)"
    };
    let text = match &matrix.value {
        Matrix::None => {
            "no units for matrices: small formats save memory here, not time".to_owned()
        }
        Matrix::Instructions(name) => format!("instructions for matrices: {name}"),
        Matrix::TensorCores(generation, formats) => {
            let mut text = format!("tensor cores of generation {generation}");
            if !formats.is_empty() {
                text += &format!(", fast in {}", formats.join(", "));
                let unit = model.format.unit;
                if !unit.is_empty() && !formats.iter().any(|format| format == unit) {
                    text += &format!("; not in {}, which saves memory alone", model.format.name);
                }
            }
            text
        }
    };
    text + unsure
}

fn system_memory(fit: &Fit, page: &mut Page) {
    let memory = &fit.system_memory;
    page.heading("System memory");
    let needed = if memory.needed_bytes > 0.0 {
        format!("{} of weights pass through it", gib(memory.needed_bytes))
    } else {
        "little: engines map a file of this format, and the GPU holds it".to_owned()
    };
    page.item("needed", &needed);
    let number = |bytes: u64| gib(bytes as f64);
    let free = match (memory.available_bytes, memory.swap_bytes) {
        (Some(available), Some(swap)) => {
            format!("{}, and {} of swap", number(available), number(swap))
        }
        (Some(available), None) => format!("{}; swap is not known", number(available)),
        (None, _) => "not known".to_owned(),
    };
    let enough = match memory.enough {
        Some(true) => ": enough",
        Some(false) => ": not enough",
        None => "",
    };
    page.item("free", &format!("{free}{enough}"));
    if let Some(unknown) = &memory.unknown {
        page.item("not known", &unknown.why);
    }
}

/// The findings that are about the model, as the report shows them, and how many there are beside them.
fn findings(report: &mut Report, verbose: bool, page: &mut Page, style: &Style) {
    let shown = |check: &str| match check {
        "gpu-without-tensor-cores" => verbose,
        check => ABOUT_MODEL.contains(&check) || check == BESIDE,
    };
    let (about_model, others): (Vec<_>, Vec<_>) = std::mem::take(&mut report.findings)
        .into_iter()
        .partition(|finding| {
            let explains = |check: &str| ABOUT_MODEL.contains(&check);
            shown(&finding.check)
                || finding
                    .folded
                    .iter()
                    .any(|folded| folded.was == "found" && explains(&folded.check))
        });
    let loud = others
        .iter()
        .filter(|finding| finding.severity > Severity::Note)
        .count();
    report.findings = about_model;
    report.untold.retain(|row| {
        let first = row.what.split(' ').next().unwrap_or_default();
        ABOUT_MODEL.contains(&first)
    });
    let mut add = |text: String| {
        if !text.is_empty() {
            page.text.push('\n');
            page.text.push_str(&text);
        }
    };
    add(terminal::findings_alone(report, style, verbose));
    if verbose {
        add(terminal::untold_alone(report, style));
    }
    if loud > 0 {
        page.text.push('\n');
        let (number, are) = match loud {
            1 => ("One thing".to_owned(), "is"),
            number => (format!("{number} things"), "are"),
        };
        page.paragraph(
            0,
            &format!("{number} beside this {are} not right here; `gpucheck` shows more."),
        );
    }
}
