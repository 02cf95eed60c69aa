//! The GPUs: what each is, how it is driven, and by which numbers the world knows it.

use crate::report::page::{COLUMN, Page};
use crate::report::style::clean;
use crate::report::words::{filled, grouped, hardware, indexes, place_of, safe, state, title_of};
use crate::report::{GpuRow, NotGpuRow, Report};
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
