//! What a GPU is good for: figures of the tables and of the driver as readable lines.

use super::{Line, line};
use crate::facts::Seen;
use crate::tables::{Confidence, Row};
use crate::view::figures::{Matrix, about, sold_bandwidth, sold_memory};
use crate::view::model::GIB;
use crate::view::{Gpu, Vendor, View};

/// A size of language models: its name, billions of parameters, and GiB for context (8192 tokens) and buffers.
struct Model {
    name: &'static str,
    billions: f64,
    beside: f64,
}

/// Llama 3 8B, Qwen 2.5 14B and 32B, Llama 3 70B: their context by layers, key-value heads and their width.
const MODELS: [Model; 4] = [
    Model {
        name: "7B to 8B",
        billions: 8.0,
        beside: 1.9,
    },
    Model {
        name: "13B to 14B",
        billions: 14.8,
        beside: 2.5,
    },
    Model {
        name: "30B to 32B",
        billions: 32.8,
        beside: 3.0,
    },
    Model {
        name: "65B to 70B",
        billions: 70.6,
        beside: 5.5,
    },
];
/// Bits a parameter takes: 16 bit, Q8_0 and Q4_K_M of llama.cpp.
const PRECISIONS: [(&str, f64); 3] = [("16 bit", 16.0), ("8 bit", 8.5), ("4 bit", 4.85)];
/// Of the memory that a card has by its name some is gone before a program starts.
const USABLE: f64 = 0.97;
/// From this part of the memory on there is no room to speak of.
const TIGHT: f64 = 0.85;
/// Bytes of a model with 8 billion parameters at 4 bit, in 10^9: each of them is read once for a token.
const EIGHT_AT_FOUR: f64 = 4.9;

/// Memory that a program can use, in GiB.
struct Memory {
    gib: f64,
    shared: bool,
}

impl Model {
    /// The best precision at which it fits, in words.
    fn at(&self, memory: &Memory) -> Option<String> {
        // What is shared is counted as what may be taken.
        let usable = if memory.shared { 1.0 } else { USABLE };
        PRECISIONS.iter().find_map(|(precision, bits)| {
            let need = self.billions * 1e9 * bits / 8.0 / GIB + self.beside;
            let tight = match need > memory.gib * TIGHT {
                true => ", just",
                false => "",
            };
            (need <= memory.gib * usable).then(|| format!("{} at {precision}{tight}", self.name))
        })
    }
}

/// The lines about one GPU.
pub(super) fn lines(gpu: &Gpu, view: &View) -> Vec<Line> {
    let row = view.figures_of(gpu);
    let integrated = gpu.integrated == Some(true);
    let mut lines = Vec::new();
    lines.extend(kind(gpu, view));
    let memory = memory(gpu, view, row.as_ref(), &mut lines);
    if let Some(memory) = &memory {
        lines.push(line("images", images(memory.gib)));
        lines.push(line("language", models(memory)));
    }
    if !integrated {
        let holds_eight = memory
            .as_ref()
            .is_none_or(|memory| MODELS[0].at(memory).is_some());
        lines.extend(bandwidth(row.as_ref(), holds_eight));
    }
    lines.extend(matrix(gpu, view));
    if !integrated {
        power(gpu, view, row.as_ref(), &mut lines);
        lines.push(line("used card", wear(gpu, view)));
    }
    lines
}

/// A value with the words for how it is known, where that is no better than memory.
pub(super) fn of_table(label: &'static str, text: String, confidence: Confidence) -> Line {
    let mut line = line(label, text);
    line.confidence = confidence.name();
    if !confidence.may_accuse() {
        line.text += " (unchecked)";
    }
    line
}

fn kind(gpu: &Gpu, view: &View) -> Option<Line> {
    if gpu.integrated == Some(true) {
        return Some(line(
            "kind",
            "part of the processor: it has no memory of its own and shares that of the system",
        ));
    }
    if view.external(gpu).got().is_some() {
        return Some(line(
            "kind",
            "in a box outside (Thunderbolt or USB4): loading models and moving data is slower than in a slot, computing is not",
        ));
    }
    (view.is_of_laptop(gpu) == Seen::Got(true)).then(|| {
        line(
            "kind",
            "built into a laptop: its maker decides how much power it gets, so it is slower than the desktop card of that name",
        )
    })
}

fn memory(gpu: &Gpu, view: &View, row: Option<&Row>, lines: &mut Vec<Line>) -> Option<Memory> {
    if gpu.integrated == Some(true) {
        return shared_memory(gpu, view, lines);
    }
    let kind = row
        .and_then(|row| row.text("memory_type"))
        .map(|kind| format!(" {}", kind.value.replace('|', " or ")))
        .unwrap_or_default();
    if let Some(bytes) = gpu.memory_bytes.filter(|bytes| *bytes > 0) {
        let gib = to_gib(bytes);
        lines.push(line(
            "memory",
            format!("{gib:.0} GiB{kind}, as its driver says"),
        ));
        return Some(Memory { gib, shared: false });
    }
    let Some(sold) = row.and_then(sold_memory) else {
        lines.push(line("memory", "not in the tables, and no driver says it"));
        return None;
    };
    let text = format!("{} GB{kind}, as it is sold", alternatives(&sold.value));
    lines.push(of_table("memory", text, sold.confidence));
    match sold.value.as_slice() {
        [gib] => Some(Memory {
            gib: *gib,
            shared: false,
        }),
        _ => None,
    }
}

/// `800 or 960`.
fn alternatives(numbers: &[f64]) -> String {
    let texts: Vec<String> = numbers.iter().map(f64::to_string).collect();
    texts.join(" or ")
}

/// Of a GPU in a processor what counts is what it may take of the system's memory, not the part that the firmware sets aside.
fn shared_memory(gpu: &Gpu, view: &View, lines: &mut Vec<Line>) -> Option<Memory> {
    let total = view.machine_memory();
    let device = view.amdgpu_device(gpu).into_got();
    let gtt = device.and_then(|device| device.gtt_bytes.got().copied());
    let carved = device.and_then(|device| device.vram_bytes.got().copied());
    if let Some(gtt) = gtt {
        let carved = carved.unwrap_or_default();
        let gib = to_gib(gtt + carved);
        let mut text = format!(
            "{:.1} GiB that the firmware sets aside and {:.1} GiB of the system's memory (GTT)",
            to_gib(carved),
            to_gib(gtt)
        );
        if let Some(total) = total {
            text += &format!(", of {:.0} GiB that Linux has", to_gib(total));
        }
        lines.push(line("memory", text));
        return Some(Memory { gib, shared: true });
    }
    let total = to_gib(total?);
    lines.push(line(
        "memory",
        format!("shared: the system has {total:.0} GiB; how much of it the GPU may take, its driver decides"),
    ));
    None
}

fn images(gib: f64) -> String {
    match gib {
        _ if gib >= 34.0 => "all common models, FLUX at 16 bit among them",
        _ if gib >= 23.0 => "all common models; FLUX at 16 bit with parts kept in system memory",
        _ if gib >= 15.5 => "SDXL with room, FLUX at 8 bit",
        _ if gib >= 11.5 => "SDXL; FLUX at 4 bit",
        _ if gib >= 7.5 => "SDXL with parts kept in system memory; FLUX at 4 bit barely",
        _ if gib >= 3.8 => {
            "Stable Diffusion 1.5 and its like; 12 to 16 GB are what newer models want"
        }
        _ => "too little: even Stable Diffusion 1.5 takes about 4 GB",
    }
    .to_owned()
}

/// The best precision at which each size fits.
fn models(memory: &Memory) -> String {
    let fits = |model: &Model| model.at(memory);
    let fitting: Vec<String> = MODELS.iter().filter_map(fits).collect();
    let first_not = MODELS.iter().find(|model| fits(model).is_none());
    match (fitting.is_empty(), first_not) {
        (true, _) => "not even 7B at 4 bit fits; smaller ones may".to_owned(),
        (false, None) => fitting.join("; "),
        (false, Some(model)) => {
            format!("{}; {} does not fit", fitting.join("; "), model.name)
        }
    }
}

/// `holds_eight`: a model with 8B at 4 bit fits, so that its speed is a question.
fn bandwidth(row: Option<&Row>, holds_eight: bool) -> Option<Line> {
    let sold = sold_bandwidth(row?)?;
    let most = sold.value.iter().copied().fold(0.0, f64::max);
    let mut text = format!("{} GB/s", alternatives(&sold.value));
    if holds_eight {
        text += &format!(
            ": no more than about {} tokens a second of a model with 8B at 4 bit, one answer at a time",
            about(most / EIGHT_AT_FOUR)
        );
    }
    Some(of_table("bandwidth", text, sold.confidence))
}

/// Units for matrices, and the formats that they are fast in.
fn matrix(gpu: &Gpu, view: &View) -> Option<Line> {
    let known = view.matrix_of(gpu)?;
    let text = match known.value {
        Matrix::None if gpu.vendor == Vendor::Amd => {
            "no instructions for matrices: computing at 16 bit gains less here".to_owned()
        }
        Matrix::None => "no tensor cores".to_owned(),
        Matrix::Instructions(name) => format!("instructions for matrices: {name}"),
        Matrix::TensorCores(generation, formats) if formats.is_empty() => {
            format!("tensor cores of generation {generation}")
        }
        Matrix::TensorCores(generation, formats) => format!(
            "tensor cores of generation {generation}, fast in {}",
            formats.join(", ")
        ),
    };
    Some(of_table("matrix", text, known.confidence))
}

fn power(gpu: &Gpu, view: &View, row: Option<&Row>, lines: &mut Vec<Line>) {
    if view.is_of_laptop(gpu) == Seen::Got(true) {
        return;
    }
    let Some(row) = row else {
        return;
    };
    // What is from memory alone is left out: people buy by it.
    let checked = |key: &str| row.text(key).filter(crate::tables::Known::may_accuse);
    if let Some(power) = checked("power_w") {
        lines.push(of_table(
            "power",
            format!("{} W for the board", power.value),
            power.confidence,
        ));
    }
    if gpu.data_centre {
        return;
    }
    if let Some(supply) = checked("supply_w") {
        let text = format!("{} W, as its vendor asks for", supply.value);
        lines.push(of_table("supply", text, supply.confidence));
    } else if let Some(supply) = checked("typical_supply_w") {
        let text = format!("{} W, as TechPowerUp suggests", supply.value);
        lines.push(of_table("supply", text, supply.confidence));
    }
}

/// How to look for wear, with what the counters say where they were read. They tell of memory and links, never of a use.
fn wear(gpu: &Gpu, view: &View) -> String {
    match gpu.vendor {
        Vendor::Nvidia => {
            let mut read = Vec::new();
            if let Some(device) = view.nvml_device(gpu) {
                if let Some(pages) = device.retired_pages.got() {
                    read.push(format!("{} retired pages", pages.single_bit + pages.double_bit));
                }
                if let Some(rows) = device.remapped_rows.got() {
                    read.push(format!("{} remapped rows", rows.correctable + rows.uncorrectable));
                }
            }
            let now = match read.is_empty() {
                true => String::new(),
                false => format!("; now {}", read.join(", ")),
            };
            format!(
                "`nvidia-smi -q` shows retired pages or remapped rows and PCIe replays, where the card counts them: rising numbers are consistent with worn memory, a bad slot or cable; zero proves nothing{now}"
            )
        }
        Vendor::Amd => "`ras/*_err_count` of the device in sysfs counts memory errors on cards that have ECC: rising numbers are consistent with worn memory; no counter tells how a card was used".to_owned(),
        _ => "no counter of this card tells how it was used: watch temperature, clocks and the kernel log under load".to_owned(),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of memory are shown in GiB"
)]
fn to_gib(bytes: u64) -> f64 {
    bytes as f64 / GIB
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(gib: f64) -> String {
        models(&Memory { gib, shared: false })
    }

    #[test]
    fn models_fit_as_the_rules_say() {
        assert_eq!(of(4.0), "not even 7B at 4 bit fits; smaller ones may");
        assert_eq!(of(8.0), "7B to 8B at 4 bit; 13B to 14B does not fit");
        assert_eq!(
            of(24.0),
            "7B to 8B at 16 bit; 13B to 14B at 8 bit; 30B to 32B at 4 bit, just; 65B to 70B does not fit"
        );
        assert!(of(48.0).ends_with("65B to 70B at 4 bit, just"));
        assert!(of(141.0).contains("65B to 70B at 8 bit"));
        assert!(of(16.0).starts_with("7B to 8B at 8 bit; 13B to 14B at 4 bit;"));
    }

    #[test]
    fn images_want_12_to_16() {
        assert!(images(12.0).starts_with("SDXL;"));
        assert!(images(16.0).contains("FLUX at 8 bit"));
        assert!(images(2.0).starts_with("too little"));
    }

    #[test]
    fn tokens_are_an_estimate() {
        assert_eq!(about(1008.0 / EIGHT_AT_FOUR), "210");
        assert_eq!(about(80.0 / EIGHT_AT_FOUR), "16");
    }
}
