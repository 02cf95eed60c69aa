//! `gpucheck fit` with files of models, and what holds of it on any machine.

use crate::common::{Folder, Ran, gpucheck, run};
use crate::machines;
use crate::program::{self, Judgement};
use gpucheck::host::machine::Entries;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};

const MODEL: &str = "Llama-3.1-8B";
const ABOUT_MODEL: [&str; 4] = [
    "gpu-bandwidth-low",
    "gpu-without-tensor-cores",
    "model-exceeds-vram",
    "ram-smaller-than-model",
];

fn machine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines/desktop-nvidia/machine.txt")
}

fn fit(arguments: &[&str]) -> Ran {
    run(gpucheck()
        .arg("fit")
        .args(arguments)
        .arg("--replay")
        .arg(machine()))
    .sound("fit")
}

/// A file of that many bytes, which takes no room on the disk.
fn file(folder: &Folder, name: &str, bytes: u64) -> String {
    let path = folder.0.join(name);
    let file = File::create(&path).expect("a file");
    file.set_len(bytes).expect("a size");
    path.to_str().expect("UTF-8").to_owned()
}

fn weights(ran: &Ran) -> u64 {
    let weights = &ran.json()["need"]["weights"];
    assert_eq!(weights["least"], weights["most"]);
    weights["likely"].as_u64().expect("a number")
}

#[test]
fn the_size_of_files_is_what_counts() {
    let folder = Folder::new();
    let whole = file(&folder, "Llama-3.1-8B-Instruct-Q4_K_M.gguf", 4_900_000_000);
    let ran = fit(&[&whole, "--format", "json"]);
    assert_eq!(weights(&ran), 4_900_000_000);
    let json = ran.json();
    assert_eq!(json["model"]["format"], "Q4_K_M");
    // By its name it is a model of the table.
    assert_eq!(json["need"]["kept_of_context"]["likely"], 131_072 * 8192);

    let parts = Folder::new();
    let first = file(&parts, "big-00001-of-00002.gguf", 1_000);
    file(&parts, "big-00002-of-00002.gguf", 500);
    file(&parts, "mmproj-big.gguf", 7);
    file(&parts, "README.md", 9);
    for path in [first.as_str(), parts.0.to_str().expect("UTF-8")] {
        assert_eq!(weights(&fit(&[path, "--format", "json"])), 1_500, "{path}");
    }

    let hub = Folder::new();
    file(&hub, "model-00001-of-00002.safetensors", 20);
    file(&hub, "model-00002-of-00002.safetensors", 22);
    file(&hub, "consolidated.safetensors", 42);
    let path = hub.0.to_str().expect("UTF-8");
    let ran = fit(&[path, "--format", "json"]);
    assert_eq!(weights(&ran), 42);
    // What it keeps of its context is in no table, and nobody says that it fits.
    assert!(ran.json()["need"]["all"]["most"].is_null());
    assert_ne!(ran.json()["holds"], "fits");
}

#[test]
fn what_is_no_model_is_a_fault() {
    let folder = Folder::new();
    let path = folder.0.to_str().expect("UTF-8").to_owned();
    let fault = |arguments: &[&str]| {
        let ran = fit(arguments);
        assert_eq!(ran.status, Some(2), "{arguments:?}: {}", ran.text());
        assert!(ran.stdout.is_empty());
        ran.stderr
    };
    assert!(fault(&[&path]).contains("no .gguf"));
    let part = file(&folder, "x-00001-of-00002.gguf", 10);
    assert!(fault(&[&part]).contains("1 of the 2 parts"));
    let other = file(&folder, "y.gguf", 10);
    assert!(fault(&[&format!("{path}/")]).contains("several models"));
    assert!(fault(&[&other, "--quant", "Q8_0"]).contains("--quant"));
    let empty = file(&folder, "z.gguf", 0);
    assert!(fault(&[&empty]).contains("is empty"));
    assert!(fault(&["/no/such.gguf"]).contains("cannot weigh"));
    assert!(fault(&["/dev/null"]).contains("neither"));
    assert!(fault(&["lama-3.1-8b"]).contains("Llama-3.1-8B"));
    assert!(fault(&["a\u{1b}[31mb\u{202e}"]).is_ascii());
    assert!(fault(&[MODEL, "--quant", "Q9"]).contains("Q4_K_M"));
    for arguments in [
        &[][..],
        &[MODEL, "--context", "0"],
        &[MODEL, "--context", "many"],
        &[MODEL, "--format", "xml"],
    ] {
        fault(arguments);
    }
}

fn verdicts(report: &Value) -> impl Iterator<Item = &Value> {
    report["verdicts"].as_array().into_iter().flatten()
}

/// Answers of checks that do not ask about the model.
fn others(report: &Value) -> Vec<&Value> {
    verdicts(report)
        .filter(|row| !ABOUT_MODEL.iter().any(|check| row["check"] == *check))
        .filter(|row| row["subject"] != format!("environment {MODEL}"))
        .collect()
}

fn judge_machine(machine: &Entries) -> Result<Judgement, String> {
    let mut judgement = Judgement::default();
    let file = machines::write(machine)?;
    let ask = |words: &[&str]| {
        let mut arguments = program::words(words);
        arguments.extend(["--replay".into(), file.0.clone().into()]);
        program::run(&arguments)
    };
    let parsed = |text: &str| -> Result<Value, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    };
    let output = ask(&["fit", MODEL, "--format", "json"])?;
    let (fit, plain) = (
        parsed(&output.stdout)?,
        parsed(&ask(&["--format", "json"])?.stdout)?,
    );
    let report = &fit["report"];
    if others(report) != others(&plain) || report["readiness"] != plain["readiness"] {
        judgement.fail("naming a model changes what is said of other things");
    }
    let holds = fit["holds"].as_str().unwrap_or_default();
    let close = verdicts(report)
        .any(|row| row["check"] == "model-exceeds-vram" && row["verdict"] == "cannot_tell");
    let good = holds == "fits" || holds == "barely" && !close;
    if output.exit != i32::from(!good) {
        judgement.fail(format!("exit status {}, and it `{holds}`", output.exit));
    }
    let list = |key: &str| fit[key].as_array().cloned().unwrap_or_default();
    let gpus = report["gpus"].as_array().map_or(0, Vec::len);
    if list("gpus").len() + list("left_out").len() != gpus {
        judgement.fail(format!("{gpus} GPUs, and not each of them has an answer"));
    }
    for place in list("gpus").iter().chain(&list("together")) {
        let (free, most) = (&place["room"]["free_bytes"], &place["room"]["most_bytes"]);
        let knows = place["holds"] != "unknown";
        if free.is_null() && place["holds"] != "does_not_fit" && knows {
            judgement.fail(format!("what is free is not known: {place}"));
        }
        let most_of_all = free.as_f64().or(most.as_f64());
        if place["holds"] == "does_not_fit" && place["need"]["least"].as_f64() <= most_of_all {
            judgement.fail(format!("it may fit: {place}"));
        }
        if free.as_f64() > most.as_f64() {
            judgement.fail(format!("more is free than there is: {place}"));
        }
    }
    let exceeds = |row: &Value| row["check"] == "model-exceeds-vram" && row["verdict"] == "found";
    if verdicts(report).any(exceeds) && holds != "does_not_fit" {
        judgement.fail(format!("a finding, and it `{holds}`"));
    }
    let text = ask(&["fit", MODEL])?.stdout;
    let wide = text.lines().find(|line| line.chars().count() > 80);
    if let Some(line) = wide.filter(|line| !line.trim().starts_with(['/', '`'])) {
        judgement.fail(format!("a line is too long: {line}"));
    }
    if text
        .chars()
        .any(|letter| letter.is_control() && letter != '\n')
    {
        judgement.fail("a control character");
    }
    Ok(judgement)
}

#[test]
fn answers_hold_on_any_machine() {
    let name = |(name, _): &(String, Entries)| name.clone();
    // Three runs each: a part of them will do, another one as machines are added.
    let some: Vec<_> = machines::every().into_iter().step_by(5).collect();
    program::judge_all("fit", &some, name, |(_, machine)| {
        judge_machine(machine).unwrap_or_else(|error| {
            let mut judgement = Judgement::default();
            judgement.fail(error);
            judgement
        })
    });
}
