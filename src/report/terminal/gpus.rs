//! The GPUs: what each is, how it is driven, and by which numbers the world knows it.

use super::page::{COLUMN, Page, filled, gib, grouped, safe};
use crate::report::style::clean;
use crate::report::{GpuRow, LinkRow, NotGpuRow, Report};
use unicode_width::UnicodeWidthStr;

pub(super) fn gpus(report: &Report, verbose: bool, page: &mut Page) {
    // GPUs that are the same but for where they are share a block.
    let kind = |gpu: &GpuRow| (title_of(gpu), hardware(gpu), state(gpu));
    for group in grouped(&report.gpus, kind) {
        gpu_block(&group, verbose, page);
    }
    if !report.gpus_whole && !report.gpus.is_empty() {
        page.row(
            "",
            "There may be more GPUs: not all of the PCI bus could be looked at",
        );
    }
    let kind = |device: &NotGpuRow| (device.id.clone(), device.name.clone(), device.kind.clone());
    for group in grouped(&report.not_gpus, kind) {
        let (first, number) = (group[0], group.len());
        let mut text = if number > 1 {
            format!("{number} x ")
        } else {
            String::new()
        };
        text += &filled(&first.name)
            .or_else(|| filled(&first.id))
            .unwrap_or_else(|| "device".to_owned());
        text += &format!(" at {} ({})", clean(&first.pci), safe(&first.kind));
        page.row("Not a GPU", &text);
    }
}

fn gpu_block(group: &[&GpuRow], verbose: bool, page: &mut Page) {
    let style = page.style;
    let first = group[0];
    let mut title = title_of(first);
    if group.len() > 1 {
        title = format!("{} x {title}", group.len());
    } else {
        title += &format!(" at {}", place_of(first));
    }
    let painted = style.dim("GPU");
    page.hang(0, ("GPU", &painted), COLUMN, &title, |line| {
        style.bold(line)
    });
    let hardware = hardware(first);
    if !hardware.is_empty() {
        page.row("", &hardware.join(", "));
    }
    let mut state = state(first);
    if group.len() == 1 {
        state.extend(indexes(first));
    }
    page.row("", &state.join(", "));
    if group.len() > 1 {
        if group.iter().all(|gpu| indexes(gpu).is_empty()) {
            let places: Vec<String> = group.iter().map(|gpu| place_of(gpu)).collect();
            page.row("", &places.join(", "));
        } else {
            for gpu in group {
                let place = place_of(gpu);
                let column = COLUMN + place.width() + 2;
                let indexes = indexes(gpu).join(", ");
                page.hang(COLUMN, (&place, &place), column, &indexes, str::to_owned);
            }
        }
    }
    if verbose {
        for gpu in group {
            if let Some(link) = gpu
                .link
                .as_ref()
                .filter(|link| gpu.pci.as_ref() != Some(&link.hop))
            {
                let hop = clean(&link.hop);
                page.row(
                    "",
                    &format!("link of {} is measured at {hop}", place_of(gpu)),
                );
            }
        }
    }
}

/// The key of a GPU, in words where it is no address.
pub(super) fn key_words(key: &str) -> String {
    match (key.strip_prefix("proc:"), key.strip_prefix("kfd:")) {
        (Some(address), _) => clean(address),
        (_, Some(node)) => format!("KFD node {}", clean(node)),
        _ => clean(key),
    }
}

fn maker(vendor: &Option<String>) -> Option<&str> {
    match vendor.as_deref() {
        Some("nvidia") => Some("NVIDIA"),
        Some("amd") => Some("AMD"),
        Some("intel") => Some("Intel"),
        _ => None,
    }
}

fn title_of(gpu: &GpuRow) -> String {
    let maker = maker(&gpu.vendor);
    let id = filled(&gpu.id);
    let name = filled(&gpu.name);
    match (name, id) {
        (Some(name), _) => {
            let prefix = maker
                .filter(|maker| !name.to_lowercase().starts_with(&maker.to_lowercase()))
                .map_or(String::new(), |maker| format!("{maker} "));
            format!("{prefix}{name}")
        }
        (None, Some(id)) => format!("{} {id}, name unknown", with_gpu(maker)),
        (None, None) => format!("{}, name unknown", with_gpu(maker)),
    }
}

fn with_gpu(maker: Option<&str>) -> String {
    maker.map_or("GPU".to_owned(), |maker| format!("{maker} GPU"))
}

fn place_of(gpu: &GpuRow) -> String {
    match &gpu.pci {
        Some(pci) if *pci == gpu.key => clean(pci),
        Some(pci) => format!("{} ({})", clean(pci), clean(&gpu.key)),
        None if gpu.key == "dxg" => "dxg (through Windows)".to_owned(),
        None if gpu.key.starts_with("proc:") => {
            format!("{} (gone from the bus)", key_words(&gpu.key))
        }
        None => key_words(&gpu.key),
    }
}

/// What a GPU is. What is not known is left out.
fn hardware(gpu: &GpuRow) -> Vec<String> {
    let mut traits = Vec::new();
    traits.extend(filled(&gpu.architecture));
    traits.extend(filled(&gpu.target));
    if let Some(bytes) = gpu.memory_bytes.filter(|bytes| *bytes > 0) {
        traits.push(gib(bytes));
    }
    if gpu.integrated == Some(true) {
        traits.push("integrated".to_owned());
    }
    traits.extend(gpu.link.as_ref().and_then(link_words));
    let id = filled(&gpu.id).filter(|_| filled(&gpu.name).is_some());
    traits.extend(id.map(|id| format!("id {id}")));
    traits
}

/// How a GPU is driven. An unknown driver is said: it is what everyone looks for.
fn state(gpu: &GpuRow) -> Vec<String> {
    let mut traits = vec![driver_words(gpu)];
    if gpu.asleep == Some(true) {
        traits.push("asleep".to_owned());
    }
    if gpu.passed_in == Some(false) {
        traits.push("not passed in".to_owned());
    }
    traits
}

fn driver_words(gpu: &GpuRow) -> String {
    let Some(driver) = filled(&gpu.driver) else {
        return if gpu.key == "dxg" {
            "driver of Windows".to_owned()
        } else {
            "driver unknown".to_owned()
        };
    };
    if driver == "none" {
        return "no driver bound".to_owned();
    }
    let version = filled(&gpu.driver_version).map_or(String::new(), |text| format!(" {text}"));
    let flavour = filled(&gpu.flavour).map_or(String::new(), |text| format!(" ({text})"));
    format!("driver {driver}{version}{flavour}")
}

/// The link as cards are sold, `PCIe 4.0 x16`, and what it runs at now where that differs: idle GPUs slow it down.
fn link_words(link: &LinkRow) -> Option<String> {
    let known = |width: Option<u32>| width.filter(|width| (1..=32).contains(width));
    let now = (speed_words(&link.speed), known(link.width));
    let most = (speed_words(&link.max_speed), known(link.max_width));
    let words = |speed: &Option<String>, width: Option<u32>| {
        let width = width.map(|width| format!("x{width}"));
        let parts: Vec<String> = speed.iter().cloned().chain(width).collect();
        Some(parts.join(" ")).filter(|words| !words.is_empty())
    };
    let same_width = now.1 == most.1 && now.0.is_some();
    let short = words(&now.0, now.1.filter(|_| !same_width));
    // A width that no link has is left out, as of a GPU that does not answer: then only the speed can differ.
    let same = (now.0.is_none() || now.0 == most.0) && (now.1.is_none() || now.1 == most.1);
    match (words(&now.0, now.1), words(&most.0, most.1)) {
        (None, None) => None,
        (Some(now), None) => Some(format!("PCIe {now}")),
        (None, Some(most)) => Some(format!("PCIe up to {most}")),
        (Some(_), Some(most)) if same => Some(format!("PCIe {most}")),
        (Some(now), Some(most)) => Some(format!("PCIe {most} (now {})", short.unwrap_or(now))),
    }
}

/// `16.0 GT/s PCIe` as the version of the standard that brought this speed.
fn speed_words(speed: &Option<String>) -> Option<String> {
    let speed = filled(speed)?;
    let rate = speed.split_whitespace().next().unwrap_or_default();
    let version = match rate.trim_end_matches(".0") {
        "2.5" => "1.0",
        "5" => "2.0",
        "8" => "3.0",
        "16" => "4.0",
        "32" => "5.0",
        "64" => "6.0",
        _ if rate.starts_with(|first: char| first.is_ascii_digit()) => return Some(speed),
        _ => return None,
    };
    Some(version.to_owned())
}

fn indexes(gpu: &GpuRow) -> Vec<String> {
    let index = &gpu.index;
    let mut all = Vec::new();
    all.extend(index.nvml.map(|number| format!("NVML {number}")));
    all.extend(index.cuda.map(|number| format!("CUDA {number}")));
    all.extend(index.hip.map(|number| format!("HIP {number}")));
    all.extend(filled(&index.drm_card));
    all.extend(filled(&index.render));
    if !index.kfd_nodes.is_empty() {
        let plural = if index.kfd_nodes.len() > 1 { "s" } else { "" };
        let nodes: Vec<String> = index.kfd_nodes.iter().map(u32::to_string).collect();
        all.push(format!("KFD node{plural} {}", nodes.join(" ")));
    }
    all
}
