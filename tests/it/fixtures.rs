//! Real trees of other machines, looked at with `--root`; and each of them captured and replayed.

use crate::expect::{self, Checks, differences, is_found, loud};
use crate::program::{self, Judgement, Temporary, words};
use gpucheck::report::{GpuRow, Report};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// `source.toml`: what is known to be right.
#[derive(Deserialize)]
struct Source {
    gpu_count: usize,
    healthy: bool,
    #[serde(default)]
    fire: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    explained: BTreeMap<String, String>,
    #[serde(default)]
    gpu: Vec<toml::Table>,
    #[serde(default)]
    not_gpu: Vec<Device>,
    #[serde(default)]
    npu: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    pci: String,
}

/// `machines.toml`: every tree.
#[derive(Deserialize)]
struct List {
    machine: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
}

struct Tree {
    name: String,
    folder: PathBuf,
}

/// Rests on `/usr/lib`, which none of the bare trees holds.
const NOT_PROVED_BY_TREES: &str = "nvidia-driver-not-installed";
/// Rests on variables and on libraries, which none of the bare trees holds.
const OF_AN_ENVIRONMENT: &str = "hsa-override-needed";
/// Rests on what the firmware says of the machine, which one of the bare trees does not hold.
const OF_FIRMWARE: &str = "vm-without-gpu";
/// Told without a message of the driver only by a table of drivers that is not here yet.
const OF_A_TABLE: &str = "nvidia-gpu-needs-legacy-driver";

fn trees() -> Vec<Tree> {
    let Some(fixtures) = program::shared("fixtures") else {
        return Vec::new();
    };
    let list = fs::read_to_string(fixtures.join("machines.toml")).expect("machines.toml is there");
    let list: List = toml::from_str(&list).expect("machines.toml is a list of machines");
    assert!(!list.machine.is_empty());
    list.machine
        .into_iter()
        .filter(|listed| program::is_chosen(&listed.name))
        .map(|listed| Tree {
            folder: fixtures.join(&listed.name),
            name: listed.name,
        })
        .collect()
}

/// A copy of a tree that goes away with its value.
struct Root(PathBuf);

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Tree {
    /// A copy of the tree with its links: where links cannot be kept, the material holds files with their targets.
    fn root(&self) -> Result<Root, String> {
        let copy = Root(program::temporary("root"));
        copy_tree(&self.folder.join("root"), &copy.0).map_err(|error| error.to_string())?;
        Ok(copy)
    }

    fn source(&self) -> Result<Source, String> {
        let text = fs::read_to_string(self.folder.join("source.toml"))
            .map_err(|error| format!("source.toml: {error}"))?;
        toml::from_str(&text).map_err(|error| format!("source.toml: {error}"))
    }
}

fn look(root: &Path, more: &[&str]) -> Result<(Report, i32), String> {
    let mut arguments: Vec<OsString> = vec!["--root".into(), root.into()];
    arguments.extend(words(more));
    program::report(arguments)
}

fn judge_all(title: &str, judge: impl Fn(&Tree) -> Result<Judgement, String> + Sync) {
    program::judge_all(
        title,
        &trees(),
        |tree| tree.name.clone(),
        |tree| {
            judge(tree).unwrap_or_else(|error| Judgement {
                failures: vec![error],
                later: Vec::new(),
            })
        },
    );
}

#[test]
fn trees_come_out_as_they_are() {
    let checks = program::checks();
    judge_all("trees", |tree| {
        let source = tree.source()?;
        let root = tree.root()?;
        let (report, _) = look(&root.0, &[])?;
        let mut judgement = Judgement::default();
        judge_devices(&source, &report, &mut judgement);
        judge_findings(&source, &report, &checks, &mut judgement);
        Ok(judgement)
    });
}

fn judge_devices(source: &Source, report: &Report, judgement: &mut Judgement) {
    if report.gpus.len() != source.gpu_count {
        let keys: Vec<&str> = report.gpus.iter().map(|gpu| gpu.key.as_str()).collect();
        judgement.fail(format!(
            "{} GPUs, {} are listed: {}",
            source.gpu_count,
            keys.len(),
            keys.join(" ")
        ));
    }
    for device in source.not_gpu.iter().chain(&source.npu) {
        if report.gpus.iter().any(|gpu| gpu.key == device.pci) {
            judgement.fail(format!("{} is listed as a GPU", device.pci));
        }
    }
    // A console or a co-processor is named as what it is, not passed over.
    for device in &source.not_gpu {
        if !report.not_gpus.iter().any(|known| known.pci == device.pci) {
            judgement.fail(format!("{} is not listed as no GPU", device.pci));
        }
    }
    for wanted in &source.gpu {
        let pci = wanted
            .get("pci")
            .and_then(toml::Value::as_str)
            .unwrap_or_default();
        match report.gpus.iter().find(|gpu| gpu.key == pci) {
            None => judgement.fail(format!("GPU {pci} is not listed")),
            Some(gpu) => {
                for difference in gpu_differences(wanted, gpu) {
                    judgement.fail(format!("GPU {pci}: {difference}"));
                }
            }
        }
    }
}

/// Holds a row of the report against the words of `source.toml`, which differ from ours.
fn gpu_differences(wanted: &toml::Table, gpu: &GpuRow) -> Vec<String> {
    let mut ours = toml::Table::new();
    // An Intel card shows a link of its own that is not the card's: ours may be that of a bridge above, or none.
    let is_intel = gpu.vendor.as_deref() == Some("intel");
    let is_own_link = match &gpu.link {
        Some(link) => link.hop == gpu.key,
        None => !is_intel,
    };
    for (key, value) in wanted {
        let name = match key.as_str() {
            "id" | "target" | "driver" => key.as_str(),
            "vram_bytes" => "memory_bytes",
            // Banks of memory that KFD lists are a sign of the card's own memory, no more: it may stay unknown.
            "kfd_vram_bytes_sum"
                if gpu.memory_bytes.is_some() && !wanted.contains_key("vram_bytes") =>
            {
                "memory_bytes"
            }
            "current_link_speed" if is_own_link => "link_speed",
            "current_link_width" if is_own_link => "link_width",
            "max_link_speed" | "max_link_width" if is_own_link => key.as_str(),
            _ => continue,
        };
        ours.insert(name.to_owned(), value.clone());
    }
    if let Some(vendor) = wanted.get("vendor").and_then(toml::Value::as_str) {
        ours.insert("vendor".to_owned(), vendor.to_lowercase().into());
    }
    let mut found = differences(&ours, gpu);
    if let Some(nodes) = wanted.get("kfd_nodes").and_then(toml::Value::as_array) {
        let nodes: Vec<u32> = nodes
            .iter()
            .filter_map(|node| u32::try_from(node.as_integer()?).ok())
            .collect();
        if nodes != gpu.index.kfd_nodes {
            found.push(format!(
                "kfd_nodes must be {nodes:?}, they are {:?}",
                gpu.index.kfd_nodes
            ));
        }
    }
    found
}

fn judge_findings(source: &Source, report: &Report, checks: &Checks, judgement: &mut Judgement) {
    let in_fire = |check: &str| source.fire.iter().any(|name| name == check);
    for finding in loud(report) {
        if !in_fire(&finding.check) && !source.explained.contains_key(&finding.check) {
            let healthy = if source.healthy { "healthy" } else { "ailing" };
            judgement.fail(format!(
                "a false alarm on a {healthy} tree: {} of {} is {}: {}",
                finding.check,
                finding.subject,
                expect::severity_name(finding.severity),
                finding.title
            ));
        }
    }
    let said = |check: &str| {
        let said: BTreeSet<&str> = report
            .verdicts
            .iter()
            .filter(|row| row.check == check)
            .map(|row| row.verdict.as_str())
            .collect();
        said.into_iter().collect::<Vec<_>>().join(", ")
    };
    for name in &source.fire {
        let is_loud = loud(report).any(|finding| finding.check == *name);
        let is_folded = report.verdicts.iter().any(|row| {
            row.check == *name && is_found(row) && row.by.as_deref().is_some_and(in_fire)
        });
        if !checks.has(name) {
            judgement.later(name);
        } else if !is_loud && !is_folded {
            judgement.fail(format!("{name} must be loud, it is: {}", said(name)));
        }
    }
    for name in &source.notes {
        let rows = || report.verdicts.iter().filter(|row| row.check == *name);
        let is_told = rows().any(is_found)
            || ([NOT_PROVED_BY_TREES, OF_AN_ENVIRONMENT, OF_FIRMWARE].contains(&name.as_str())
                && rows().any(|row| row.verdict == "cannot_tell"));
        if !checks.has(name) || (name == OF_A_TABLE && !is_told) {
            judgement.later(name);
        } else if !is_told {
            judgement.fail(format!("{name} must be noted, it is: {}", said(name)));
        }
    }
}

#[test]
fn a_captured_tree_says_the_same() {
    judge_all("captures of trees", |tree| {
        let file = Temporary(program::temporary("capture.txt"));
        let tree = tree.root()?;
        let mut arguments = words(&["capture", "--root"]);
        arguments.push(tree.0.clone().into());
        arguments.push("--output".into());
        arguments.push(file.0.clone().into());
        let output = program::run(&arguments)?;
        if output.exit != 0 {
            return Err(format!(
                "capture: exit status {}: {}",
                output.exit,
                output.stderr.trim()
            ));
        }
        let (root, root_exit) = look(&tree.0, &["--facts"])?;
        let (replay, replay_exit) = program::report(vec![
            "--replay".into(),
            file.0.clone().into(),
            "--facts".into(),
        ])?;
        let mut judgement = Judgement::default();
        if root.facts.is_none() {
            judgement.fail("`--facts` shows no facts");
        }
        if root_exit != replay_exit {
            judgement.fail(format!(
                "exit status {root_exit} of the root, {replay_exit} of its capture"
            ));
        }
        compare("facts", &root.facts, &replay.facts, &mut judgement);
        compare("verdicts", &root.verdicts, &replay.verdicts, &mut judgement);
        compare("findings", &root.findings, &replay.findings, &mut judgement);
        compare("gpus", &root.gpus, &replay.gpus, &mut judgement);
        compare(
            "readiness",
            &root.readiness,
            &replay.readiness,
            &mut judgement,
        );
        Ok(judgement)
    });
}

fn compare<T: serde::Serialize>(what: &str, root: &T, replay: &T, judgement: &mut Judgement) {
    let json = |value: &T| serde_json::to_value(value).unwrap_or_default();
    let mut found = Vec::new();
    compare_json(what, &json(root), &json(replay), &mut found);
    let more = found.len().saturating_sub(10);
    judgement.failures.extend(found.into_iter().take(10));
    if more > 0 {
        judgement.fail(format!("{what}: and {more} more differences"));
    }
}

/// Names every place where two documents differ.
fn compare_json(at: &str, root: &Value, replay: &Value, found: &mut Vec<String>) {
    let short = |value: &Value| {
        let text = value.to_string();
        if text.chars().count() > 120 {
            text.chars().take(120).collect::<String>() + "..."
        } else {
            text
        }
    };
    match (root, replay) {
        (Value::Object(root), Value::Object(replay)) if root.keys().eq(replay.keys()) => {
            for (key, value) in root {
                compare_json(&format!("{at}.{key}"), value, &replay[key], found);
            }
        }
        (Value::Array(root), Value::Array(replay)) if root.len() == replay.len() => {
            for (index, (one, other)) in root.iter().zip(replay).enumerate() {
                compare_json(&format!("{at}[{index}]"), one, other, found);
            }
        }
        (one, other) if one == other => {}
        (one, other) => found.push(format!(
            "{at}: {} in the root, {} in its capture",
            short(one),
            short(other)
        )),
    }
}

/// The trees say nothing of what is installed. With the proof that nothing is, the newcomer's card has no driver.
#[test]
fn a_card_without_a_driver_is_noted_once_that_is_proved() {
    let checks = program::checks();
    judge_all("trees with the proof laid over", |tree| {
        let mut judgement = Judgement::default();
        if !tree
            .source()?
            .notes
            .iter()
            .any(|name| name == NOT_PROVED_BY_TREES)
        {
            return Ok(judgement);
        }
        if !checks.has(NOT_PROVED_BY_TREES) {
            judgement.later(NOT_PROVED_BY_TREES);
            return Ok(judgement);
        }
        let root = tree.root()?;
        lay_over(&root.0).map_err(|error| error.to_string())?;
        let (report, _) = look(&root.0, &[])?;
        let mut rows = report
            .verdicts
            .iter()
            .filter(|row| row.check == NOT_PROVED_BY_TREES);
        if !rows.clone().any(is_found) {
            let said: Vec<String> = rows
                .by_ref()
                .map(|row| {
                    format!(
                        "{} ({})",
                        row.verdict,
                        row.says.as_deref().unwrap_or_default()
                    )
                })
                .collect();
            judgement.fail(format!(
                "{NOT_PROVED_BY_TREES} must be found, it is: {}",
                said.join(", ")
            ));
        }
        Ok(judgement)
    });
}

/// Adds empty folders of libraries and modules to a tree.
fn lay_over(copy: &Path) -> io::Result<()> {
    let release = copy.join("proc/sys/kernel/osrelease");
    if !release.exists() {
        fs::create_dir_all(copy.join("proc/sys/kernel"))?;
        fs::write(&release, "6.8.0-49-generic\n")?;
    }
    let name = fs::read_to_string(&release)?;
    let modules = copy.join("lib/modules").join(name.trim());
    fs::create_dir_all(modules.join("kernel"))?;
    fs::write(modules.join("modules.dep"), "")?;
    fs::create_dir_all(copy.join("usr/lib"))
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&path, &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&path)?, &target)?;
        } else {
            let content = fs::read(&path)?;
            match link_target(&content) {
                Some(link) => symlink(link, &target)?,
                None => fs::write(&target, content)?,
            }
        }
    }
    Ok(())
}

/// The target of a link that was checked out as a file: one relative path without a line end. No attribute looks so.
fn link_target(content: &[u8]) -> Option<&str> {
    std::str::from_utf8(content)
        .ok()
        .filter(|text| text.starts_with("../") && !text.contains('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn links_that_became_files_are_told_from_attributes() {
        assert_eq!(link_target(b"../../devices/x"), Some("../../devices/x"));
        assert_eq!(link_target(b"../x\n"), None);
        assert_eq!(link_target(b"0x10de"), None);
        assert_eq!(link_target(b"../\xff"), None);
    }

    #[test]
    fn documents_are_compared_to_the_last_value() {
        let mut found = Vec::new();
        compare_json(
            "a",
            &json!({"b": [1, 2]}),
            &json!({"b": [1, 2]}),
            &mut found,
        );
        assert!(found.is_empty());
        compare_json(
            "a",
            &json!({"b": [1, 2]}),
            &json!({"b": [1, 3]}),
            &mut found,
        );
        compare_json("a", &json!({"b": 1}), &json!({"c": 1}), &mut found);
        compare_json("a", &json!([1]), &json!([1, 2]), &mut found);
        assert_eq!(found.len(), 3);
        assert!(
            found[0].starts_with("a.b[1]: 2 in the root, 3"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn rows_are_held_against_the_words_of_the_trees() {
        let gpu: GpuRow = serde_json::from_value(json!({
            "key": "0000:01:00.0", "pci": null, "vendor": "nvidia", "id": "10de:2684", "name": null,
            "architecture": null, "target": "sm_89", "memory_bytes": 5, "driver": "none",
            "driver_version": null, "flavour": null, "integrated": null, "asleep": null,
            "passed_in": null,
            "link": {"speed": "16.0 GT/s PCIe", "width": 16, "max_speed": null, "max_width": 16, "hop": "0000:01:00.0"},
            "index": {"nvml": null, "cuda": null, "hip": null, "drm_card": null, "render": null, "kfd_nodes": [1]},
        }))
        .expect("a row");
        let wanted = |text: &str| text.parse::<toml::Table>().expect("a table");
        let good = wanted(
            "pci = '0000:01:00.0'\nid = '10de:2684'\nname = 'ignored'\nvendor = 'NVIDIA'\ndriver = ''\nvram_bytes = 5\nkfd_nodes = [1]\ncurrent_link_speed = '16.0 GT/s PCIe'\nmax_link_width = 16",
        );
        assert_eq!(gpu_differences(&good, &gpu), Vec::<String>::new());
        for bad in [
            "id = '10de:1'",
            "driver = 'nvidia'",
            "target = 'sm_90'",
            "vram_bytes = 6",
            "current_link_width = 8",
            "max_link_speed = '16.0 GT/s PCIe'",
            "kfd_nodes = [1, 2]",
            "vendor = 'AMD'",
        ] {
            assert_eq!(gpu_differences(&wanted(bad), &gpu).len(), 1, "{bad}");
        }
    }
}
