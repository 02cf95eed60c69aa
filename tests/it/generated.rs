//! Files that the program writes itself are committed as it writes them now, and what it says fits its own schema.

use crate::common::{Folder, gpucheck, machines, nvidia_tree, run};
use gpucheck::checks;
use gpucheck::commands::generate::generated;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

#[test]
fn what_is_committed_is_what_would_be_written() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    for (name, text) in generated().expect("memory") {
        let path = docs().join(&name);
        names.insert(path.clone());
        if fs::read_to_string(&path).ok().as_ref() == Some(&text) {
            continue;
        }
        if bless {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, text).expect("a file");
        } else {
            faults.push(format!("docs/{} is not up to date", name.display()));
        }
    }
    for folder in ["man", "completions"] {
        let Ok(entries) = fs::read_dir(docs().join(folder)) else {
            faults.push(format!("docs/{folder} is missing"));
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if names.contains(&path) {
                continue;
            }
            if bless {
                fs::remove_file(path).expect("a file");
            } else {
                faults.push(format!("{} is not generated any more", path.display()));
            }
        }
    }
    let hint = "`BLESS=1 cargo test` or `cargo run -- generate docs` writes them";
    assert!(faults.is_empty(), "\n{}\n{hint}", faults.join("\n"));
}

#[test]
fn the_command_writes_the_same() {
    let folder = Folder::new();
    run(gpucheck().arg("generate").arg(&folder.0)).good("generate");
    for (name, text) in generated().expect("memory") {
        let written = fs::read_to_string(folder.0.join(&name));
        assert!(written.expect("it is there") == text, "{}", name.display());
    }
}

#[test]
fn every_check_and_cause_is_in_the_documentation() {
    let page = fs::read_to_string(docs().join("checks.md")).expect("text");
    let names: Vec<&str> = checks::ALL.iter().map(|check| check.name).collect();
    let rows = gpucheck::tables::Tables::embedded().checks(&names);
    for (check, row) in checks::ALL.iter().zip(&rows) {
        let heading = format!("\n## {}\n", check.name);
        let section = page
            .split(&heading)
            .nth(1)
            .unwrap_or_else(|| panic!("no {}", check.name));
        let section = section.split("\n## ").next().expect("a text");
        for cause in &row.causes {
            assert!(section.contains(cause), "{}: {cause}", check.name);
        }
        let later = section
            .split("not looked for yet: ")
            .nth(1)
            .unwrap_or_default();
        let later = later.split('*').next().unwrap_or_default();
        for cause in check.later {
            assert!(later.contains(cause), "{}: {cause}", check.name);
        }
    }
}

/// What is wrong with a value by a schema, as far as schemas are written here. A keyword that this does not know is wrong.
fn faults(schema: &Value, value: &Value, whole: &Value, at: &str, faults: &mut Vec<String>) {
    let schema = match schema {
        Value::Bool(true) => return,
        Value::Object(schema) => schema,
        _ => return faults.push(format!("{at}: nothing is allowed here")),
    };
    let fits = |schema: &Value| {
        let mut inner = Vec::new();
        self::faults(schema, value, whole, at, &mut inner);
        inner.is_empty()
    };
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    for (keyword, says) in schema {
        let mut fault = |what: String| faults.push(format!("{at}: {what}"));
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => {}
            // With `properties`, `items` and the like, below.
            "patternProperties" | "additionalProperties" => {}
            "$ref" => {
                let path = says.as_str().and_then(|path| path.strip_prefix('#'));
                match path.and_then(|path| whole.pointer(path)) {
                    Some(schema) if fits(schema) => {}
                    Some(_) => fault(format!("is no {says}: {value}")),
                    None => fault(format!("{says} leads nowhere")),
                }
            }
            "anyOf" if list(says).iter().any(fits) => {}
            "oneOf" if list(says).iter().filter(|schema| fits(schema)).count() == 1 => {}
            "allOf" if list(says).iter().all(fits) => {}
            "anyOf" | "oneOf" | "allOf" => fault(format!("fits not as {keyword} wants: {value}")),
            "const" if says == value => {}
            "enum" if list(says).contains(value) => {}
            "const" | "enum" => fault(format!("{value} is not {says}")),
            "type" => {
                let is = |name: &Value| match name.as_str() {
                    Some("null") => value.is_null(),
                    Some("boolean") => value.is_boolean(),
                    Some("integer") => value.is_i64() || value.is_u64(),
                    Some("number") => value.is_number(),
                    Some("string") => value.is_string(),
                    Some("array") => value.is_array(),
                    Some("object") => value.is_object(),
                    _ => false,
                };
                if !is(says) && !list(says).iter().any(is) {
                    fault(format!("{value} is no {says}"));
                }
            }
            "minimum" | "maximum" => {
                if let (Some(number), Some(limit)) = (value.as_f64(), says.as_f64()) {
                    let within = if keyword == "minimum" {
                        number >= limit
                    } else {
                        number <= limit
                    };
                    if !within {
                        fault(format!("{number} is beyond the {keyword} {limit}"));
                    }
                }
            }
            "minItems" | "maxItems" => {
                if let (Some(items), Some(limit)) = (value.as_array(), says.as_u64()) {
                    let count = items.len() as u64;
                    if (keyword == "minItems" && count < limit)
                        || (keyword == "maxItems" && count > limit)
                    {
                        fault(format!("{count} items, {keyword} is {limit}"));
                    }
                }
            }
            "required" => {
                for name in list(says) {
                    let name = name.as_str().unwrap_or_default();
                    if value.is_object() && value.get(name).is_none() {
                        fault(format!("lacks {name}"));
                    }
                }
            }
            "items" => {
                for (number, item) in list(value).iter().enumerate() {
                    self::faults(says, item, whole, &format!("{at}/{number}"), faults);
                }
            }
            "properties" => {}
            other => fault(format!("the test does not know the keyword {other}")),
        }
    }
    for (name, item) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{name}");
        let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let named = schema.get("properties").and_then(|all| all.get(name));
        // The only pattern that is written here: numbers as names.
        let by_pattern = schema
            .get("patternProperties")
            .and_then(|all| all.get(r"^\d+$"))
            .filter(|_| digits);
        if let Some(schema) = named.or(by_pattern).or(schema.get("additionalProperties")) {
            self::faults(schema, item, whole, &at, faults);
        }
    }
}

fn assert_valid(schema: &Value, value: &Value, what: &str) {
    let mut found = Vec::new();
    faults(schema, value, schema, "", &mut found);
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

fn schema(name: &str) -> Value {
    let text = fs::read_to_string(docs().join(name)).expect("it is committed");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_validator_can_say_no() {
    let schema = json!({
        "type": "object",
        "required": ["a"],
        "additionalProperties": false,
        "properties": {
            "a": { "$ref": "#/$defs/A" },
            "b": { "type": ["string", "null"] },
            "c": { "type": "array", "items": { "type": "integer", "minimum": 1 } },
            "d": { "oneOf": [{ "const": "x" }, { "enum": ["y"] }] },
            "e": { "type": "object", "patternProperties": { r"^\d+$": { "type": "string" } }, "additionalProperties": false },
        },
        "$defs": { "A": { "type": "boolean" } },
    });
    for right in [
        json!({ "a": true }),
        json!({ "a": false, "b": null, "c": [1, 2], "d": "y", "e": { "12": "" } }),
    ] {
        assert_valid(&schema, &right, "right");
    }
    for wrong in [
        json!([]),
        json!({}),
        json!({ "a": 1 }),
        json!({ "a": true, "b": 1 }),
        json!({ "a": true, "c": [0] }),
        json!({ "a": true, "c": [1.5] }),
        json!({ "a": true, "d": "z" }),
        json!({ "a": true, "e": { "x": "" } }),
        json!({ "a": true, "e": { "1": 1 } }),
        json!({ "a": true, "f": 1 }),
    ] {
        let mut found = Vec::new();
        faults(&schema, &wrong, &schema, "", &mut found);
        assert!(!found.is_empty(), "{wrong}");
    }
    let mut found = Vec::new();
    faults(
        &json!({ "surprise": 1 }),
        &json!(1),
        &json!({}),
        "",
        &mut found,
    );
    assert_eq!(found.len(), 1);
}

#[test]
fn reports_fit_the_committed_schema() {
    let schema = schema("report.schema.json");
    let check = |arguments: &[&str], what: &str| {
        for facts in [&["--facts"][..], &[]] {
            let report = run(gpucheck()
                .args(["--format", "json"])
                .args(arguments)
                .args(facts))
            .good(what)
            .json();
            assert_valid(&schema, &report, what);
            assert_eq!(report["facts"].is_object(), !facts.is_empty(), "{what}");
        }
    };
    check(&[], "this machine");
    let tree = nvidia_tree();
    check(&["--root", tree.0.to_str().expect("UTF-8")], "a folder");
    let Some(machines) = machines() else { return };
    let mut count = 0;
    for entry in fs::read_dir(machines).expect("a folder") {
        let path = entry.expect("an entry").path().join("machine.txt");
        let text = fs::read_to_string(&path).unwrap_or_default();
        // One in three; those that lay something over another machine are read by the tests of machines.
        if text.is_empty() || text.lines().any(|line| line.starts_with("base ")) {
            continue;
        }
        count += 1;
        if count % 3 == 0 {
            let path = path.to_str().expect("UTF-8");
            check(&["--replay", path], path);
        }
    }
    assert!(count > 9, "{count} machines");
}
