//! What can ever run a GPU: branches of a driver, toolkits, releases; and where that ends.

use super::figures::of_table;
use super::{Line, State, line, plan, wheel};
use crate::tables::{Confidence, Row, Tables, kinds};
use crate::view::{Gpu, Vendor, View};

/// The lines about one GPU.
pub(super) fn lines(gpu: &Gpu, state: State, view: &View, tables: &Tables) -> Vec<Line> {
    let mut lines = match gpu.vendor {
        Vendor::Nvidia => nvidia(gpu, view, tables),
        Vendor::Amd => amd(gpu, view, tables),
        Vendor::Intel | Vendor::Other => Vec::new(),
    };
    let branch = plan::branch(gpu, state, view, tables);
    if let Some(wheel) = wheel::of(gpu, branch, view.is_x86()) {
        lines.push(line("PyTorch", wheel.text));
    }
    lines.extend(vulkan(gpu, view));
    lines
}

fn nvidia(gpu: &Gpu, view: &View, tables: &Tables) -> Vec<Line> {
    let mut lines = Vec::new();
    let Some(target) = gpu.target.as_deref() else {
        // Through Windows it has no id.
        if gpu.is_on_bus() {
            lines.push(line(
                "branches",
                "the tables do not know this GPU: it is new, or very old",
            ));
        }
        return lines;
    };
    if let Some(row) = tables.nvidia_architecture(target) {
        lines.extend(branches(row, tables));
        // The module of Windows is no choice of this system.
        if let Some(open) = row.text("open_module").filter(|_| view.wsl().is_none()) {
            let text = match open.value.as_str() {
                "impossible" => "the proprietary one; the open kernel module is impossible",
                "required" => "the open kernel module is required",
                _ => "the open kernel module or the proprietary one",
            };
            lines.push(of_table("module", text.to_owned(), open.confidence));
        }
    }
    if let Some(row) = tables.capability(target) {
        let (first, last) = (row.text("first_cuda"), row.text("last_cuda"));
        let (text, confidence) = match (first, last) {
            (Some(first), Some(last)) => (
                format!(
                    "toolkits {} to {}, the last one that makes code for it",
                    first.value, last.value
                ),
                first.confidence.min(last.confidence),
            ),
            (Some(first), None) => (
                format!("toolkits {} and later", first.value),
                first.confidence,
            ),
            (None, Some(last)) => (
                format!(
                    "toolkits up to {}, the last one that makes code for it",
                    last.value
                ),
                last.confidence,
            ),
            (None, None) => return lines,
        };
        lines.push(of_table("CUDA", text, confidence));
    }
    lines
}

fn branches(row: &Row, tables: &Tables) -> Option<Line> {
    let first = row.text("first_branch");
    let Some(last) = row.text("last_branch") else {
        let first = first?;
        return Some(of_table(
            "branches",
            format!("{} and later", first.value),
            first.confidence,
        ));
    };
    let mut text = format!("up to {}, the last one that takes it", last.value);
    if let Some(branch) = tables.row(&kinds::BRANCH, &last.value) {
        if let Some(release) = branch.text("last") {
            text += &format!("; its last release known is {}", release.value);
        }
        if let Some(end) = branch.text("end_of_life").filter(|end| end.may_accuse()) {
            text += &format!(", maintained until {}", end.value);
        }
    }
    Some(of_table("branches", text, last.confidence))
}

fn amd(gpu: &Gpu, view: &View, tables: &Tables) -> Vec<Line> {
    let mut lines = Vec::new();
    let Some(target) = gpu.target.as_deref() else {
        if !gpu.is_on_bus() {
            return lines;
        }
        let text = match gpu.chip.is_some() {
            true => {
                "radeon of the kernel; the chip is older than GCN, so neither amdgpu nor ROCm ever took it"
            }
            false => "the tables do not know this GPU: it is new, or very old",
        };
        lines.push(line("driver", text));
        return lines;
    };
    if let Some(first) = tables
        .row(&kinds::TARGET, target)
        .and_then(|row| row.text("first_kernel"))
    {
        lines.push(of_table(
            "driver",
            format!(
                "amdgpu of Linux {} or later, which distributions bring along",
                first.value
            ),
            first.confidence,
        ));
    }
    lines.push(line("ROCm", rocm(target, view, tables)));
    lines
}

/// Supported, built for and dropped are different statements.
fn rocm(target: &str, view: &View, tables: &Tables) -> String {
    let lists = view.rocm_lists(target);
    let listed: Vec<&str> = lists
        .iter()
        .filter(|(_, listed)| *listed)
        .map(|(version, _)| version.text())
        .collect();
    let is_listed_now = lists.last().is_some_and(|(_, listed)| *listed);
    match (listed.first(), listed.last()) {
        (Some(first), Some(_)) if is_listed_now => {
            format!("AMD lists it from {first} up to the newest release known")
        }
        (_, Some(last)) => {
            format!("dropped: {last} was the last release whose list has it")
        }
        _ => {
            let rows = tables.rows(&kinds::RELEASE);
            let lists = |row: &Row| row.list("built").or_else(|| row.list("rocblas"));
            let known = rows.iter().rev().find(|row| lists(row).is_some());
            let built = rows.iter().rev().find(|row| {
                lists(row).is_some_and(|list| list.value.iter().any(|name| name == target))
            });
            match built {
                Some(row) if Some(row) == known => format!(
                    "in no list of AMD's, so unsupported; the libraries of {} hold code for it",
                    row.key(&kinds::RELEASE)
                ),
                Some(row) => format!(
                    "in no list of AMD's, so unsupported; the libraries of {} were the last that hold code for it",
                    row.key(&kinds::RELEASE)
                ),
                None => "in no list of AMD's".to_owned(),
            }
        }
    }
}

/// The way out where a stack has ended.
fn vulkan(gpu: &Gpu, view: &View) -> Option<Line> {
    // There it goes another way, which is no help for computing.
    if view.wsl().is_some() {
        return None;
    }
    let text = match gpu.vendor {
        Vendor::Nvidia => match gpu.architecture.as_deref()? {
            "Tesla" | "Fermi" => {
                let text = "none in NVIDIA's drivers for this generation".to_owned();
                return Some(of_table("Vulkan", text, Confidence::Memory));
            }
            _ => "with NVIDIA's driver; llama.cpp and others compute with it, without CUDA",
        },
        Vendor::Amd if gpu.target.is_none() => {
            gpu.chip.as_ref()?;
            "none for chips before GCN"
        }
        Vendor::Amd => "with amdgpu and Mesa; llama.cpp and others compute with it, without ROCm",
        Vendor::Intel => {
            "with Mesa, except on chips of long ago; llama.cpp and others compute with it"
        }
        Vendor::Other => return None,
    };
    Some(line("Vulkan", text))
}
