//! The rules of the house: who may use whom, and that tables, checks, cases and documents agree.

use gpucheck::check::{Ask, Check};
use gpucheck::checks;
use gpucheck::finding::Severity;
use gpucheck::tables::{CheckRow, Tables};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Who may use whom. `docs/design.md` holds the same table.
const MAY_USE: &[(&str, &[&str])] = &[
    ("main", &["cli", "commands"]),
    ("cli", &[]),
    (
        "commands",
        &[
            "advise",
            "chain",
            "check",
            "checks",
            "cli",
            "facts",
            "files",
            "finding",
            "fit",
            "fix",
            "host",
            "probes",
            "readiness",
            "report",
            "tables",
            "terms",
            "version",
            "view",
            "worker",
        ],
    ),
    (
        "advise",
        &["facts", "fix", "tables", "terms", "version", "view"],
    ),
    ("probes", &["facts", "host", "version"]),
    (
        "view",
        &["facts", "finding", "fix", "tables", "terms", "version"],
    ),
    (
        "checks",
        &[
            "check", "facts", "finding", "fit", "fix", "tables", "version", "view",
        ],
    ),
    ("check", &["finding", "tables", "terms", "view"]),
    ("finding", &["facts", "fix", "terms"]),
    ("fit", &["facts", "finding", "tables", "view"]),
    ("fix", &["facts", "tables", "terms", "version"]),
    ("tables", &["facts", "fix", "terms", "version"]),
    ("host", &["facts"]),
    ("worker", &["facts"]),
    (
        "chain",
        &["check", "facts", "finding", "fix", "tables", "view"],
    ),
    (
        "readiness",
        &[
            "chain", "check", "facts", "finding", "fix", "tables", "view",
        ],
    ),
    (
        "report",
        &[
            "chain",
            "check",
            "facts",
            "finding",
            "fix",
            "readiness",
            "tables",
            "view",
        ],
    ),
    ("facts", &[]),
    ("files", &[]),
    ("terms", &[]),
    ("version", &[]),
    ("lib", &[]),
];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder of the repository, by their path in it.
fn files_below(folder: &str) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    let mut folders = vec![repository().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = entry.path();
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(repository()).expect("below it");
                files.insert(name.to_str().expect("UTF-8").to_owned(), path);
            }
        }
    }
    files
}

/// The source files with their text.
fn sources() -> Vec<(String, String)> {
    files_below("src")
        .into_iter()
        .filter(|(name, _)| name.ends_with(".rs"))
        .map(|(name, path)| (name, fs::read_to_string(path).expect("text")))
        .collect()
}

/// The module of the crate's root that a source file belongs to.
fn module_of(file: &str) -> &str {
    let below = file.strip_prefix("src/").expect("a source file");
    let first = below.split('/').next().expect("a part");
    first.trim_end_matches(".rs")
}

/// A source without its comments, so that words in them count for nothing.
fn code(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| line.split(" // ").next().unwrap_or_default().to_owned() + "\n")
        .collect()
}

/// The code that is in the program: without the tests at the end of a file. None: the whole file is tests.
fn shipped(file: &str, text: &str, tests: &BTreeSet<String>) -> Option<String> {
    if tests.contains(file) {
        return None;
    }
    let code = code(text);
    let end = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
    Some(code[..end].to_owned())
}

/// Files that are compiled for tests alone: what `mod NAME;` behind `#[cfg(test)]` names.
fn test_files(sources: &[(String, String)]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (file, text) in sources {
        let own = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line != "#[cfg(test)]" {
                continue;
            }
            let mut path = None;
            let mut next = lines.next().unwrap_or_default();
            if let Some(rest) = next.strip_prefix("#[path = \"") {
                let folder = file.rsplit_once('/').expect("a folder").0;
                path = Some(format!("{folder}/{}", rest.trim_end_matches("\"]")));
                next = lines.next().unwrap_or_default();
            }
            let name = next
                .strip_prefix("mod ")
                .and_then(|name| name.strip_suffix(';'));
            if let Some(name) = name {
                found.insert(path.unwrap_or(format!("{own}/{name}.rs")));
            }
        }
    }
    found
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// What follows each place where a word stands, as a word of its own.
fn after_word<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(word).filter_map(move |(at, _)| {
        let after = &text[at + word.len()..];
        let begins = !text[..at].ends_with(is_word);
        (begins && !after.starts_with(is_word)).then_some(after)
    })
}

/// The modules of the crate's root that a source names: after `crate::`, one or a group in braces.
fn used(code: &str, root: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for after in after_word(code, root) {
        let Some(path) = after.strip_prefix("::") else {
            continue;
        };
        match path.strip_prefix('{') {
            None => {
                found.insert(first_word(path));
            }
            Some(group) => {
                let (mut depth, mut start) = (0, true);
                for (at, character) in group.char_indices() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        _ if depth == 0 && start && is_word(character) => {
                            found.insert(first_word(&group[at..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| is_word(*c)).collect()
}

/// Fails with everything that is wrong, not with the first of it.
fn nothing_wrong(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn groups_and_paths_are_read() {
    let code = "use crate::{a::{b, c}, d};\nuse crate::e::F;\nlet x = crate::g::h(); $crate::i::J; mycrate::k;";
    let found: Vec<String> = used(code, "crate").into_iter().collect();
    assert_eq!(found, ["a", "d", "e", "g", "i"]);
}

#[test]
fn modules_use_only_whom_they_may() {
    let mut faults = Vec::new();
    let sources = sources();
    let table: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut seen = BTreeSet::new();
    for (file, text) in &sources {
        let module = module_of(file);
        seen.insert(module);
        let code = code(text);
        let Some(may) = table.get(module) else {
            faults.push(format!("{file}: `{module}` is not in the table"));
            continue;
        };
        // `super` at the left edge of a file of the root is the root itself, past this test.
        let outermost = file.matches('/').count() == 1
            || file.ends_with("/mod.rs") && file.matches('/').count() == 2;
        if outermost && code.lines().any(|line| line.starts_with("use super::")) {
            faults.push(format!(
                "{file}: `use super::` of the root; write `crate::`"
            ));
        }
        let root = if module == "main" {
            "gpucheck"
        } else {
            "crate"
        };
        for other in used(&code, root) {
            if other != module && !may.contains(&other.as_str()) {
                faults.push(format!("{file}: `{module}` may not use `{other}`"));
            }
        }
    }
    for module in table.keys().filter(|module| !seen.contains(*module)) {
        faults.push(format!("`{module}` is in the table and not in src/"));
    }
    nothing_wrong(&faults);
}

#[test]
fn the_table_stands_in_the_design() {
    let design = fs::read_to_string(repository().join("docs/design.md")).expect("text");
    let section = design
        .split("Who may import whom")
        .nth(1)
        .expect("the table");
    let names = |cell: &str| -> Vec<String> {
        let names = cell.split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect()
    };
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').collect();
        let all = cells[2].contains("everything");
        for module in names(cells[1]) {
            let may: BTreeSet<String> = if all {
                let others = MAY_USE.iter().map(|(name, _)| (*name).to_owned());
                others
                    .filter(|name| *name != module && name != "main" && name != "lib")
                    .collect()
            } else {
                names(cells[2]).into_iter().collect()
            };
            told.insert(module, may);
        }
    }
    for (module, may) in MAY_USE.iter().filter(|(module, _)| *module != "lib") {
        let may: BTreeSet<String> = may.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(
            told.remove(*module),
            Some(may),
            "{module} in docs/design.md"
        );
    }
    assert!(told.is_empty(), "only in docs/design.md: {told:?}");
}

#[test]
fn few_files_name_colour_flags_and_the_machine() {
    let mut faults = Vec::new();
    let sources = sources();
    let tests = test_files(&sources);
    assert!(tests.contains("src/probes/tree.rs"), "{tests:?}");
    for (file, text) in &sources {
        let Some(code) = shipped(file, text, &tests) else {
            continue;
        };
        let mut only_in = |word: &str, allowed: bool| {
            if !allowed && after_word(&code, word).next().is_some() {
                faults.push(format!("{file} names `{word}`"));
            }
        };
        let module = module_of(file);
        let commands = matches!(module, "cli" | "commands" | "main");
        only_in("colored", file == "src/report/style.rs");
        for name in ["clap", "clap_complete", "clap_mangen"] {
            only_in(name, commands);
        }
        let door = matches!(module, "host" | "worker" | "files");
        for name in ["rustix", "sysinfo"] {
            // The width of a terminal is no answer of the machine; `sysinfo` is a field of the facts, too.
            let terminal = name == "rustix" && file == "src/commands/mod.rs";
            let field = name == "sysinfo"
                && (module == "probes"
                    || after_word(&code, name).all(|after| !after.starts_with("::")));
            only_in(name, door || terminal || field);
        }
        let library = ["src/probes/nvml.rs", "src/probes/rocm_smi.rs"].contains(&file.as_str());
        for name in ["libloading", "nvml_wrapper"] {
            only_in(name, library);
        }
        only_in("rocm_smi_lib_sys", file == "src/probes/rocm_smi.rs");
        for name in ["libc", "seccompiler"] {
            only_in(name, module == "worker");
        }
        only_in("fs", door || after_word(&code, "std::fs").next().is_none());
        for name in ["std::fs", "std::net", "std::os"] {
            only_in(name, door);
        }
        for (name, may) in [
            ("std::process", &["ExitCode", "exit"][..]),
            ("std::env", &["args_os"][..]),
        ] {
            let mild = after_word(&code, name).all(|after| {
                let what = after.trim_start_matches("::");
                may.contains(&first_word(what).as_str())
            });
            only_in(name, door || commands && mild);
        }
        // Only these write to a stream that nobody passed in.
        for name in ["stdout", "stderr"] {
            let call = format!("io::{name}");
            only_in(&call, commands || door);
        }
    }
    nothing_wrong(&faults);
}

#[test]
fn clippy_knows_who_may_touch_the_machine() {
    let text = fs::read_to_string(repository().join("clippy.toml")).expect("text");
    for path in [
        "std::fs::read",
        "std::fs::read_to_string",
        "std::fs::read_dir",
        "std::fs::read_link",
        "std::fs::metadata",
        "std::fs::symlink_metadata",
        "std::fs::canonicalize",
        "std::fs::exists",
        "std::fs::write",
        "std::fs::copy",
        "std::fs::rename",
        "std::fs::remove_file",
        "std::fs::File::open",
        "std::fs::File::create",
        "std::fs::OpenOptions::open",
        "std::path::Path::exists",
        "std::path::Path::try_exists",
        "std::path::Path::is_file",
        "std::path::Path::is_dir",
        "std::path::Path::metadata",
        "std::path::Path::read_dir",
        "std::path::Path::read_link",
        "std::path::Path::canonicalize",
        "std::process::Command::new",
        "std::env::var",
        "std::env::var_os",
        "std::env::vars",
        "std::env::vars_os",
        "libloading::Library::new",
    ] {
        assert!(
            text.contains(&format!("path = \"{path}\"")),
            "{path} is allowed"
        );
    }
    let cargo = fs::read_to_string(repository().join("Cargo.toml")).expect("text");
    for lint in [
        "disallowed_methods",
        "print_stdout",
        "print_stderr",
        "unwrap_used",
        "unsafe_code",
    ] {
        let held = cargo.lines().any(|line| {
            let (name, level) = line.split_once('=').unwrap_or_default();
            name.trim() == lint && ["\"warn\"", "\"deny\""].contains(&level.trim())
        });
        assert!(held, "the lint {lint} is not on");
    }
}

/// The file of a check.
fn file_of(check: &Check) -> String {
    format!("src/checks/{}.rs", check.name.replace('-', "_"))
}

/// The text of every check's file. Parts that several share stand in files beside them.
fn check_texts() -> BTreeMap<String, String> {
    sources()
        .into_iter()
        .filter(|(file, _)| module_of(file) == "checks")
        .collect()
}

#[test]
fn the_list_of_checks_is_the_folder() {
    let declares = |text: &str| text.contains("crate::check! {");
    let mut names = Vec::new();
    let mut shared = Vec::new();
    for (file, text) in check_texts() {
        let Some(name) = file
            .strip_prefix("src/checks/")
            .and_then(|name| name.strip_suffix(".rs"))
        else {
            continue;
        };
        match name {
            "mod" => {}
            _ if name.contains('/') => {}
            _ if declares(&text) => names.push(name.to_owned()),
            _ => shared.push(name.to_owned()),
        }
    }
    let mut modules: Vec<(String, bool)> = names.iter().map(|name| (name.clone(), true)).collect();
    modules.extend(shared.into_iter().map(|name| (name, false)));
    modules.sort();
    let mut expected = "//! Every check, in a file of its own. This list is written by `BLESS=1 cargo test`.\n\nuse crate::check::Check;\n\n".to_owned();
    for (name, public) in &modules {
        let public = if *public { "pub " } else { "" };
        expected += &format!("{public}mod {name};\n");
    }
    expected += "\n/// All checks, by name.\npub const ALL: &[Check] = &[\n";
    for name in &names {
        expected += &format!("    {name}::CHECK,\n");
    }
    expected += "];\n";
    let path = repository().join("src/checks/mod.rs");
    let there = fs::read_to_string(&path).expect("text");
    if there != expected && std::env::var_os("BLESS").is_some() {
        fs::write(path, expected).expect("a file");
        panic!("src/checks/mod.rs was written: run again");
    }
    assert_eq!(there, expected, "`BLESS=1 cargo test` writes it");
}

fn index() -> Vec<CheckRow> {
    let names: Vec<&str> = checks::ALL.iter().map(|check| check.name).collect();
    Tables::embedded().checks(&names)
}

#[test]
fn checks_and_index_agree() {
    let texts = check_texts();
    // What several checks ask stands in the view, with the cause that comes of it.
    let view: String = sources()
        .iter()
        .filter(|(file, _)| module_of(file) == "view")
        .map(|(_, text)| code(text))
        .collect();
    let index = index();
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    for check in checks::ALL {
        let name = check.name;
        let mut fault = |what: String| faults.push(format!("{name}: {what}"));
        if !names.insert(name) {
            fault("stands there twice".to_owned());
        }
        let Some(text) = texts.get(&file_of(check)) else {
            fault(format!("is not declared in {}", file_of(check)));
            continue;
        };
        if !text.contains(&format!("    \"{name}\", ")) {
            fault("another file declares it".to_owned());
        }
        let Some(row) = index.iter().find(|row| row.name == name) else {
            fault("has no row in data/checks.toml".to_owned());
            continue;
        };
        if row.link != check.link {
            fault(format!(
                "stands at {:?}, in the index at {:?}",
                check.link, row.link
            ));
        }
        if row.severity != check.severity {
            fault(format!(
                "is {:?}, in the index {:?}",
                check.severity, row.severity
            ));
        }
        let each = match check.ask {
            Ask::Gpu(_) => "gpu",
            Ask::Stack(_) => "stack",
            Ask::Environment(_) => "environment",
            Ask::Machine(_) => "machine",
        };
        if row.each != each {
            fault(format!("asks each {each}, in the index each {}", row.each));
        }
        let ceiling = row.max.unwrap_or(row.severity);
        for (word, severity) in [
            ("Error", Severity::Error),
            ("Warning", Severity::Warning),
            ("Note", Severity::Note),
        ] {
            if severity > ceiling && text.contains(&format!(".severity(Severity::{word})")) {
                fault(format!("may be {word}, above {ceiling:?} of the index"));
            }
        }
        for fault_of_causes in causes(check, row, text, &view) {
            fault(fault_of_causes);
        }
    }
    nothing_wrong(&faults);
}

/// What is wrong with the causes that a check gives.
fn causes(check: &Check, row: &CheckRow, text: &str, view: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let code = code(text);
    for after in code.split(".cause(\"").skip(1) {
        let cause = after.split('"').next().unwrap_or_default();
        if !row.causes.iter().any(|known| known == cause) {
            faults.push(format!(
                "gives the cause {cause}, which is not in the index"
            ));
        }
    }
    if row.causes.is_empty() && code.contains(".cause(") {
        faults.push("gives a cause, and the index has none".to_owned());
    }
    let later: BTreeSet<&str> = check.later.iter().copied().collect();
    for cause in &later {
        if !row.causes.iter().any(|known| known == cause) {
            faults.push(format!(
                "will ask later for {cause}, which is not in the index"
            ));
        }
    }
    for cause in &row.causes {
        // Once in `later [..]`, else nowhere.
        let quoted = format!("\"{cause}\"");
        let times = code.matches(&quoted).count() + view.matches(&quoted).count();
        match (later.contains(cause.as_str()), times) {
            (false, 0) => faults.push(format!(
                "never gives the cause {cause} and does not say so (`later`)"
            )),
            (true, 2..) => faults.push(format!(
                "gives the cause {cause}, which is said to come later"
            )),
            _ => {}
        }
    }
    faults
}

#[test]
fn every_explanation_has_its_sections() {
    let mut faults = Vec::new();
    for check in checks::ALL {
        let mut last = 0;
        for section in [
            "\n ## Why it matters\n",
            "\n ## How it comes about\n",
            "\n ## How to confirm\n",
        ] {
            match check.explanation.find(section) {
                Some(at) if at > last => {
                    last = at;
                    let text = check.explanation[at + section.len()..]
                        .split("\n ##")
                        .next();
                    if text.is_none_or(|text| text.trim().is_empty()) {
                        faults.push(format!("{}: nothing stands under{section}", check.name));
                    }
                }
                _ => faults.push(format!("{}: lacks{section}", check.name)),
            }
        }
        if !check.explanation.starts_with(' ') || check.explanation.starts_with(" ##") {
            faults.push(format!("{}: does not begin with a sentence", check.name));
        }
    }
    nothing_wrong(&faults);
}

/// The machines and cases of the project: the check whose folder it is in, if any; the name; what is expected.
fn expectations() -> Vec<(Option<String>, String, toml::Table)> {
    let mut found = Vec::new();
    for folder in ["tests/cases", "tests/machines"] {
        if !repository().join(folder).is_dir() {
            continue;
        }
        for (name, path) in files_below(folder) {
            if !name.ends_with("/expect.toml") {
                continue;
            }
            let text = fs::read_to_string(path).expect("text");
            let expected = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let check = name
                .strip_prefix("tests/cases/")
                .and_then(|rest| rest.split('/').next());
            found.push((check.map(str::to_owned), name.clone(), expected));
        }
    }
    found
}

/// The names in a list of `fire` or `hush`, without what is in brackets.
fn names_in(expected: &toml::Table, key: &str) -> Vec<String> {
    let list = expected.get(key).and_then(toml::Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(toml::Value::as_str)
        .flat_map(|entry| entry.split('|'))
        .map(|name| name.split('(').next().unwrap_or_default().trim().to_owned())
        .collect()
}

#[test]
fn every_check_fires_twice_and_stays_quiet_once() {
    let expectations = expectations();
    let mut faults = Vec::new();
    for check in checks::ALL {
        let of_check = |key: &'static str| {
            let names_it = |expected: &toml::Table| {
                names_in(expected, key)
                    .iter()
                    .any(|name| name == check.name)
            };
            expectations
                .iter()
                .filter(move |(_, _, expected)| names_it(expected))
        };
        let fires: BTreeSet<&String> = of_check("fire").map(|(_, name, _)| name).collect();
        let quiet = of_check("hush").any(|(_, name, _)| !fires.contains(name));
        let in_folder = |(folder, name, _): &&(Option<String>, String, toml::Table)| {
            folder.as_deref() == Some(check.name) && !fires.contains(name)
        };
        if fires.len() < 2 {
            faults.push(format!(
                "{}: fires in {} cases, needs 2",
                check.name,
                fires.len()
            ));
        }
        if !quiet && expectations.iter().find(in_folder).is_none() {
            faults.push(format!("{}: no case shows that it stays quiet", check.name));
        }
    }
    for (folder, name, _) in &expectations {
        if let Some(folder) = folder
            && !checks::ALL.iter().any(|check| check.name == folder)
        {
            faults.push(format!("{name}: there is no such check"));
        }
    }
    nothing_wrong(&faults);
}

/// The causes of a check that the names in `fire` ask for.
fn causes_in(expected: &toml::Table, check: &str) -> BTreeSet<String> {
    let list = expected.get("fire").and_then(toml::Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(toml::Value::as_str)
        .flat_map(|entry| entry.split('|'))
        .filter_map(|name| name.trim().strip_prefix(check)?.strip_prefix('('))
        .flat_map(|inside| inside.trim_end_matches(')').split(','))
        .filter_map(|part| Some(part.trim().strip_prefix("cause=")?.to_owned()))
        .collect()
}

#[test]
fn every_cause_fires_in_a_case() {
    let expectations = expectations();
    let rows = index();
    let mut faults = Vec::new();
    for check in checks::ALL {
        let shown: BTreeSet<String> = expectations
            .iter()
            .flat_map(|(_, _, expected)| causes_in(expected, check.name))
            .collect();
        let Some(row) = rows.iter().find(|row| row.name == check.name) else {
            continue;
        };
        for cause in &row.causes {
            if !check.later.contains(&cause.as_str()) && !shown.contains(cause) {
                faults.push(format!("{}: no case has the cause {cause}", check.name));
            }
        }
    }
    nothing_wrong(&faults);
}

/// What must come out, what must not, how loud, and which GPUs are here: a machine says all of it at once.
#[test]
fn every_machine_says_what_it_is() {
    let mut faults = Vec::new();
    for (_, name, expected) in expectations() {
        for key in ["fire", "hush", "loudest", "gpu_count"] {
            if !expected.contains_key(key) {
                faults.push(format!("{name}: no `{key}`"));
            }
        }
        let text =
            fs::read_to_string(repository().join(name.replace("/expect.toml", "/machine.txt")))
                .expect("a machine");
        for check in names_in(&expected, "fire") {
            if !text.contains(&format!("\n# decides {check}: ")) {
                faults.push(format!("{name}: nothing says what decides {check}"));
            }
        }
    }
    nothing_wrong(&faults);
}

/// The strings in a code, without escapes.
fn strings(code: &str) -> BTreeSet<&str> {
    code.split('"').skip(1).collect()
}

/// The names in braces in the texts of a row.
fn gaps(row: &toml::Table) -> BTreeSet<String> {
    let mut texts: Vec<&str> = ["words", "confirm"]
        .iter()
        .filter_map(|key| row.get(*key)?.as_str())
        .collect();
    let commands = row.get("commands").and_then(toml::Value::as_array);
    texts.extend(
        commands
            .into_iter()
            .flatten()
            .filter_map(toml::Value::as_str),
    );
    texts
        .into_iter()
        .flat_map(|text| text.split('{').skip(1))
        .filter_map(|rest| Some(rest.split_once('}')?.0))
        .filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()))
        .map(str::to_owned)
        .collect()
}

#[test]
fn recipes_and_checks_agree() {
    let text = fs::read_to_string(repository().join("data/fixes.toml")).expect("text");
    let table: toml::Table = toml::from_str(&text).expect("TOML");
    let rows = table["fix"].as_array().expect("rows");
    let mut recipes: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let row = row.as_table().expect("a row");
        let recipe = row["recipe"].as_str().expect("a name");
        recipes.entry(recipe).or_default().extend(gaps(row));
    }
    let mut faults = Vec::new();
    let mut asked_for = BTreeSet::new();
    // The view may ask for one, too: it knows what an administrator would type here.
    let sources = sources();
    let tests = test_files(&sources);
    for (file, text) in &sources {
        if !matches!(
            module_of(file),
            "advise" | "checks" | "view" | "readiness" | "report"
        ) {
            continue;
        }
        let Some(code) = shipped(file, text, &tests) else {
            continue;
        };
        if !code.contains("FixCall") {
            continue;
        }
        for after in code.split("FixCall::new(\"").skip(1) {
            let recipe = after.split('"').next().unwrap_or_default();
            if !recipes.contains_key(recipe) {
                faults.push(format!("{file}: there is no recipe {recipe}"));
            }
        }
        let strings = strings(&code);
        let here: Vec<&str> = recipes
            .keys()
            .copied()
            .filter(|recipe| strings.contains(recipe))
            .collect();
        asked_for.extend(here.iter().copied());
        let passed: BTreeSet<&str> = code
            .split(".with(")
            .skip(1)
            .filter_map(|after| after.trim_start().strip_prefix('"')?.split('"').next())
            .collect();
        let wanted: BTreeSet<&str> = here
            .iter()
            .flat_map(|recipe| &recipes[recipe])
            .map(String::as_str)
            // The report puts in the address of the GPU that a finding is about.
            .filter(|name| *name != "address" || !code.contains("each Gpu"))
            .collect();
        for name in passed.difference(&wanted) {
            faults.push(format!(
                "{file}: passes {{{name}}}, which no recipe in it has ({here:?})"
            ));
        }
        for name in wanted.difference(&passed) {
            faults.push(format!("{file}: does not pass {{{name}}} ({here:?})"));
        }
    }
    for recipe in recipes.keys().filter(|recipe| !asked_for.contains(*recipe)) {
        faults.push(format!("data/fixes.toml: nobody asks for {recipe}"));
    }
    nothing_wrong(&faults);
}

#[test]
fn nothing_tells_where_it_was_made() {
    // In pieces, so that this file does not hold them.
    let words = [
        concat!("/wo", "rk/"),
        concat!("/far", "m/"),
        concat!("/root", "/."),
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("python", "hosted"),
        concat!("npm", "js"),
        concat!("proxy.golang", ".org"),
        concat!("work", "tree"),
        concat!("sub", "agent"),
        concat!("sub-", "agent"),
        concat!("BRIEF", ".md"),
        concat!("Clau", "de"),
        concat!("Anth", "ropic"),
    ];
    let mut faults = Vec::new();
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(repository()).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("UTF-8");
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() && !matches!(name.as_str(), ".git" | "target") {
            files.extend(files_below(&name));
        } else if kind.is_file() && !matches!(name.as_str(), ".git" | "Cargo.lock") {
            files.insert(name, entry.path());
        }
    }
    assert!(files.contains_key(".ci/run") && files.contains_key("src/lib.rs"));
    for (name, path) in files {
        let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
        for (number, line) in text.lines().enumerate() {
            for word in words {
                // A folder of that name below another one is somebody else's.
                let own = line.match_indices(word).any(|(at, _)| {
                    !word.starts_with('/')
                        || !line[..at].ends_with(|c: char| is_word(c) || c == '.')
                });
                if own && !(name == ".ci/run" && line.contains("git grep")) {
                    faults.push(format!("{name}:{}: {word}", number + 1));
                }
            }
        }
    }
    nothing_wrong(&faults);
}
