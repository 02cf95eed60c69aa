//! `gpucheck fit`: whether a model that the user names runs on the GPUs here, how fast it can be at most, and what system
//! memory says to it. Pure: a function of the view and the tables. The checks of the same questions ask it, too.

mod named;

pub use named::{Asked, named};

use crate::facts::Seen;
use crate::facts::nvml::{MigMemory, NvmlDevice};
use crate::finding::Evidence;
use crate::tables::Known;
use crate::view::figures::{Matrix, sold_bandwidth, sold_memory};
use crate::view::model::{Estimate, GIB, Makes, Model};
use crate::view::{Gpu, NvmlGround, Vendor, View};
use serde::{Serialize, Serializer};

/// Above this share of what is free there is no room to speak of.
const TIGHT: f64 = 0.9;

/// Whether a need is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// With room to spare.
    Fits,
    /// It is about as much as there is.
    Barely,
    /// Not even by the lowest estimate.
    DoesNotFit,
    /// What is free, or how much is needed, is not known.
    Unknown,
}

/// Memory that a model could have.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Room {
    /// Free now, in bytes; null: not known.
    #[serde(serialize_with = "whole")]
    pub free_bytes: Option<f64>,
    /// More cannot be had, in bytes; null: not known.
    #[serde(serialize_with = "whole")]
    pub most_bytes: Option<f64>,
    /// It is the memory of the machine.
    pub shared: bool,
    /// What was read.
    pub seen: Vec<Evidence>,
    /// Why it is not known what is free.
    pub unknown: Option<NotKnown>,
    /// Of what is free, what is not part of the machine's memory.
    #[serde(skip)]
    own: f64,
    /// It is that of a part of a divided GPU, which goes with no other.
    pub part: bool,
}

/// Why something is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotKnown {
    /// What was missing.
    pub why: String,
    /// What would tell.
    pub would_tell: String,
}

impl NotKnown {
    fn new(why: impl Into<String>, would_tell: impl Into<String>) -> Option<NotKnown> {
        Some(NotKnown {
            why: why.into(),
            would_tell: would_tell.into(),
        })
    }
}

/// How fast it can be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Speed {
    /// Bandwidth in GB/s; of several kinds of memory the best.
    pub bandwidth_gbs: f64,
    /// Not more tokens a second than this, one answer at a time.
    pub ceiling: f64,
    /// How the bandwidth is known, in a word of the tables.
    pub confidence: &'static str,
    /// It is known well enough to rest a finding on.
    #[serde(skip)]
    pub may_accuse: bool,
}

/// What one GPU, or several together, have for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Keys of the GPUs.
    pub gpus: Vec<String>,
    /// Marketing name; of several that of the first.
    pub name: Option<String>,
    /// Its memory.
    pub room: Room,
    /// What must be there, with what each GPU takes for itself.
    pub need: Estimate,
    /// Whether it fits.
    pub holds: Holds,
    /// How fast it can be.
    pub speed: Option<Speed>,
    /// Its units for matrices.
    #[serde(skip)]
    pub matrix: Option<Known<Matrix>>,
}

/// System memory against the weights.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemMemory {
    /// What must be in it at a time, in bytes; 0: nothing to speak of.
    #[serde(serialize_with = "whole_number")]
    pub needed_bytes: f64,
    /// `MemAvailable`.
    pub available_bytes: Option<u64>,
    /// `SwapFree`.
    pub swap_bytes: Option<u64>,
    /// Whether that is enough; null: not known.
    pub enough: Option<bool>,
    /// Why not.
    pub unknown: Option<NotKnown>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The best of all places.
    pub holds: Holds,
    /// Each GPU that counts.
    pub gpus: Vec<Place>,
    /// GPUs of one vendor together, as engines use them that split a model by layers.
    pub together: Vec<Place>,
    /// GPUs that do not count, and why.
    pub left_out: Vec<(String, &'static str)>,
    /// System memory.
    pub system_memory: SystemMemory,
}

impl Fit {
    /// What fits just so may not fit after all: no place has as much as is likely to be needed. Of a model for images parts
    /// may wait elsewhere, so that is no question there.
    pub fn is_close(&self, model: &Model) -> bool {
        let places = self.gpus.iter().chain(&self.together);
        let mut held = places.filter(|place| place.holds == Holds::Barely);
        self.holds == Holds::Barely && held.all(|place| place.is_close(model))
    }
}

impl Place {
    /// It has less than is likely to be needed.
    pub fn is_close(&self, model: &Model) -> bool {
        let is_less = |free| self.need.likely > free;
        model.makes != Makes::Image
            && self.holds == Holds::Barely
            && self.room.free_bytes.is_none_or(is_less)
    }
}

/// Holds a need against memory.
pub fn judge(need: &Estimate, room: &Room) -> Holds {
    let Some(free) = room.free_bytes else {
        return match room.most_bytes {
            Some(most) if need.least > most => Holds::DoesNotFit,
            _ => Holds::Unknown,
        };
    };
    if need.least > free {
        Holds::DoesNotFit
    } else if need.most <= free && need.likely <= free * TIGHT {
        Holds::Fits
    } else if need.most.is_finite() {
        Holds::Barely
    } else {
        Holds::Unknown
    }
}

/// Better comes later: what is not known may be better than what does not fit.
fn rank(holds: Holds) -> u8 {
    match holds {
        Holds::DoesNotFit => 0,
        Holds::Unknown => 1,
        Holds::Barely => 2,
        Holds::Fits => 3,
    }
}

/// Whether the model fits here. None: no model was named.
pub fn fit(view: &View) -> Option<Fit> {
    let model = view.model.as_ref()?;
    let mut left_out = Vec::new();
    let mut counting: Vec<&Gpu> = Vec::new();
    for gpu in &view.gpus {
        match why_not(gpu, view) {
            Some(why) => left_out.push((gpu.key.clone(), why)),
            None => counting.push(gpu),
        }
    }
    let gpus: Vec<Place> = counting
        .iter()
        .map(|gpu| {
            let (need, room) = (model.need(), room(gpu, view));
            Place {
                gpus: vec![gpu.key.clone()],
                name: gpu.name.clone(),
                holds: judge(&need, &room),
                need,
                room,
                speed: speed(gpu, model, view),
                matrix: view.matrix_of(gpu),
            }
        })
        .collect();
    // Encoder and decoder of the others are one piece each.
    let together = match model.makes {
        Makes::Language => together(&counting, &gpus, model),
        Makes::Image | Makes::Speech => Vec::new(),
    };
    let places = gpus.iter().chain(&together);
    let best = places.clone().map(|place| place.holds);
    let mut holds = best.max_by_key(|holds| rank(*holds));
    if holds.is_none_or(|holds| holds == Holds::DoesNotFit) && !view.gpus_whole {
        // There may be more GPUs than were seen.
        holds = Some(Holds::Unknown);
    }
    let holds = holds.unwrap_or(Holds::DoesNotFit);
    Some(Fit {
        holds,
        system_memory: system_memory(model, holds, places, view),
        gpus,
        together,
        left_out,
    })
}

/// Why a GPU does not count.
fn why_not(gpu: &Gpu, view: &View) -> Option<&'static str> {
    let is_card = |other: &Gpu| other.integrated == Some(false) && !view.is_reserved(other);
    if gpu.remembered {
        Some("it is gone")
    } else if gpu.passed_in == Some(false) {
        Some("it was not passed into this container")
    } else if view.is_reserved(gpu) {
        Some("it is kept for a virtual machine")
    } else if gpu.integrated == Some(true) && view.gpus.iter().any(is_card) {
        Some("it is part of the processor, beside a card")
    } else {
        None
    }
}

/// GPUs of one vendor, where there are several: layers are split among them, and each takes something for itself.
fn together(gpus: &[&Gpu], places: &[Place], model: &Model) -> Vec<Place> {
    let vendors = [Vendor::Nvidia, Vendor::Amd, Vendor::Intel];
    let of_vendor = |vendor: Vendor| -> Option<Place> {
        let mut of: Vec<&Place> = gpus
            .iter()
            .zip(places)
            .filter(|(gpu, place)| gpu.vendor == vendor && !place.room.shared && !place.room.part)
            .map(|(_, place)| place)
            .collect();
        if of.len() < 2 {
            return None;
        }
        of.sort_by(|one, other| one.gpus.cmp(&other.gpus));
        let sum = |bytes: &dyn Fn(&Room) -> Option<f64>| -> Option<f64> {
            of.iter().map(|place| bytes(&place.room)).sum()
        };
        let more = Model::for_another_gpu().times((of.len() - 1) as f64);
        let need = model.need().plus(more);
        let unknown = of.iter().find_map(|place| place.room.unknown.clone());
        let room = Room {
            free_bytes: sum(&|room| room.free_bytes),
            most_bytes: sum(&|room| room.most_bytes),
            shared: false,
            seen: of
                .iter()
                .flat_map(|place| place.room.seen.clone())
                .collect(),
            unknown,
            own: of.iter().map(|place| place.room.own).sum(),
            part: false,
        };
        // One after the other reads its part, so it goes no faster than if all were on the fastest.
        let speeds: Option<Vec<Speed>> = of.iter().map(|place| place.speed).collect();
        let fastest = speeds.and_then(|speeds| {
            let by_ceiling = |one: &Speed, other: &Speed| one.ceiling.total_cmp(&other.ceiling);
            let fastest = speeds.iter().copied().max_by(by_ceiling)?;
            Some(Speed {
                may_accuse: speeds.iter().all(|speed| speed.may_accuse),
                ..fastest
            })
        });
        Some(Place {
            gpus: of.iter().flat_map(|place| place.gpus.clone()).collect(),
            name: of[0].name.clone(),
            holds: judge(&need, &room),
            need,
            room,
            speed: fastest,
            matrix: None,
        })
    };
    vendors.into_iter().filter_map(of_vendor).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are positive and far below 2^53"
)]
fn whole_number<S: Serializer>(bytes: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(bytes.round() as u64)
}

fn whole<S: Serializer>(bytes: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match bytes {
        Some(bytes) => whole_number(bytes, serializer),
        None => serializer.serialize_none(),
    }
}

fn bytes(number: u64) -> f64 {
    number as f64
}

/// `23.5 GiB`.
pub fn gib(bytes: f64) -> String {
    let gib = bytes / GIB;
    match gib {
        _ if gib >= 99.5 => format!("{gib:.0} GiB"),
        _ => format!("{gib:.1} GiB"),
    }
}

/// The memory of a GPU that a model could have.
fn room(gpu: &Gpu, view: &View) -> Room {
    match gpu.vendor {
        Vendor::Nvidia => of_nvidia(gpu, view),
        Vendor::Amd => of_amd(gpu, view),
        Vendor::Intel | Vendor::Other if gpu.integrated == Some(true) => of_machine(
            view,
            "how much of the machine's memory its driver lets a program take is not known",
        ),
        Vendor::Intel | Vendor::Other => unknown(
            gpu,
            view,
            "no driver says how much is free",
            "its driver's own tool",
        ),
    }
}

/// What is free is not known; what it has at most may be.
fn unknown(gpu: &Gpu, view: &View, why: impl Into<String>, would_tell: &str) -> Room {
    let sold = view.figures_of(gpu).as_ref().and_then(sold_memory);
    let sold = sold.filter(Known::may_accuse).map(|known| {
        let most = known.value.iter().copied().fold(0.0, f64::max);
        most * GIB
    });
    Room {
        most_bytes: gpu.memory_bytes.map(bytes).or(sold),
        unknown: NotKnown::new(why, would_tell),
        ..Room::default()
    }
}

/// A GPU whose memory is all the machine's.
fn of_machine(view: &View, why: &str) -> Room {
    Room {
        most_bytes: view.machine_memory().map(bytes),
        shared: true,
        unknown: NotKnown::new(why, "`free -g`"),
        ..Room::default()
    }
}

const MEMORY: &str = "nvmlDeviceGetMemoryInfo()";
const MEMINFO: &str = "/proc/meminfo";
const ASK_NVIDIA: &str = "`nvidia-smi`";

fn of_nvidia(gpu: &Gpu, view: &View) -> Room {
    let device = match view.nvml_ground(gpu) {
        NvmlGround::Says(device) => Ok(device),
        NvmlGround::NotHere => Err("no driver that computes holds it".to_owned()),
        NvmlGround::Unknown(why) => Err(why),
    };
    if gpu.integrated == Some(true) {
        let mut room = of_machine(
            view,
            "how much of the machine's memory is free is not known",
        );
        if let (Some(free), Ok(_)) = (view.free_memory(), device) {
            room.free_bytes = Some(bytes(free));
            room.seen.push(Evidence {
                source: MEMINFO.to_owned(),
                says: format!("MemAvailable {}", gib(bytes(free))),
            });
            room.unknown = None;
        }
        return room;
    }
    let device = match device {
        Ok(device) => device,
        Err(why) => return unknown(gpu, view, why, ASK_NVIDIA),
    };
    if device.mig_mode.got().is_some_and(|mode| mode == "enabled") {
        return of_part(gpu, device, view);
    }
    match (&device.memory_bytes.0, &device.memory_used_bytes.0) {
        (Seen::Got(total), Seen::Got(used)) if *total > 0 => {
            own_memory(MEMORY.to_owned(), bytes(*total), bytes(*used))
        }
        (Seen::Got(_), told) | (told, _) => {
            unknown(gpu, view, format!("{MEMORY}: {}", told.why()), ASK_NVIDIA)
        }
    }
}

/// A program gets one part of a GPU in MIG mode, so the one with the most room counts.
fn of_part(gpu: &Gpu, device: &NvmlDevice, view: &View) -> Room {
    let parts = device.mig_memory.got();
    let free = |part: &&MigMemory| part.bytes.saturating_sub(part.used_bytes);
    if let Some(part) = parts.and_then(|parts| parts.iter().max_by_key(free)) {
        let mut room = own_memory(MEMORY.to_owned(), bytes(part.bytes), bytes(part.used_bytes));
        room.part = true;
        for seen in &mut room.seen {
            seen.says += " in the part of this GPU (MIG) that has the most";
        }
        return room;
    }
    let parts = match device.mig_instances.got() {
        Some(1) => "it is in MIG mode, and a program gets its one part".to_owned(),
        Some(count) => format!("it is in MIG mode, and a program gets one of its {count} parts"),
        None => "it is in MIG mode, and a program gets one of its parts".to_owned(),
    };
    let why = format!("{parts}; how much memory that has is not known");
    let would_tell = "`nvidia-smi`, which lists the memory of each part";
    Room {
        part: true,
        ..unknown(gpu, view, why, would_tell)
    }
}

fn own_memory(source: String, total: f64, used: f64) -> Room {
    let free = (total - used).max(0.0);
    Room {
        free_bytes: Some(free),
        most_bytes: Some(total),
        shared: false,
        seen: vec![Evidence {
            source,
            says: format!("{} of {} free", gib(free), gib(total)),
        }],
        unknown: None,
        own: free,
        part: false,
    }
}

fn of_amd(gpu: &Gpu, view: &View) -> Room {
    let address = gpu.pci.as_deref().unwrap_or(&gpu.key);
    let file = |name: &str| format!("/sys/bus/pci/devices/{address}/{name}");
    let would_tell = format!("`cat {}`", file("mem_info_vram_used"));
    let device = match view.amdgpu_device(gpu) {
        Seen::Got(device) => device,
        Seen::Absent => return unknown(gpu, view, "amdgpu does not hold it", &would_tell),
        other => return unknown(gpu, view, other.map(|_| ()).why(), &would_tell),
    };
    if gpu.kfd_nodes.len() > 1 {
        let parts = gpu.kfd_nodes.len();
        let why = format!("it is divided into {parts} partitions, and a program gets one of them");
        return unknown(gpu, view, why, "`amd-smi`");
    }
    let (total, used) = (device.vram_bytes.got(), device.vram_used_bytes.got());
    let own = match (total, used) {
        (Some(total), Some(used)) if *total > 0 => Ok(own_memory(
            file("mem_info_vram_used"),
            bytes(*total),
            bytes(*used),
        )),
        (None, _) => Err(format!("mem_info_vram_total: {}", device.vram_bytes.why())),
        _ => Err(format!(
            "mem_info_vram_used: {}",
            device.vram_used_bytes.why()
        )),
    };
    if gpu.integrated != Some(true) {
        return own.unwrap_or_else(|why| unknown(gpu, view, why, &would_tell));
    }
    // Of a GPU in a processor what counts is what it may take of the system's memory besides what was set aside for it.
    let Some(gtt) = device.gtt_bytes.got().map(|gtt| bytes(*gtt)) else {
        return of_machine(
            view,
            "how much of the machine's memory it may take is not known",
        );
    };
    let most = gtt + total.map_or(0.0, |total| bytes(*total));
    let mut room = of_machine(
        view,
        "how much of the machine's memory is free is not known",
    );
    room.most_bytes = Some(most);
    room.seen.push(Evidence {
        source: file("mem_info_gtt_total"),
        says: format!("{} of the machine's memory at most", gib(gtt)),
    });
    let own = own.unwrap_or_default();
    room.seen.extend(own.seen);
    if let Some(free) = view.free_memory() {
        room.free_bytes = Some(own.own + gtt.min(bytes(free)));
        room.own = own.own;
        room.seen.push(Evidence {
            source: MEMINFO.to_owned(),
            says: format!("MemAvailable {}", gib(bytes(free))),
        });
        room.unknown = None;
    }
    room
}

/// The ceiling that memory sets: for each token all weights that count are read once.
fn speed(gpu: &Gpu, model: &Model, view: &View) -> Option<Speed> {
    let read = model.read_for_token()?;
    let sold = view.figures_of(gpu).as_ref().and_then(sold_bandwidth)?;
    let bandwidth = sold.value.iter().copied().fold(0.0, f64::max);
    Some(Speed {
        bandwidth_gbs: bandwidth,
        ceiling: bandwidth * 1e9 / read.least.max(1.0),
        confidence: sold.confidence.name(),
        may_accuse: sold.may_accuse(),
    })
}

/// What must pass through system memory: the whole of a checkpoint, and of a file that engines map what no GPU holds.
fn system_memory<'p>(
    model: &Model,
    holds: Holds,
    places: impl Iterator<Item = &'p Place>,
    view: &View,
) -> SystemMemory {
    let weights = model.weights().least;
    let places: Vec<&Place> = places.collect();
    let own = places
        .iter()
        .map(|place| place.room.own)
        .fold(0.0, f64::max);
    let fits = matches!(holds, Holds::Fits | Holds::Barely);
    let on_card = places
        .iter()
        .any(|place| !place.room.shared && matches!(place.holds, Holds::Fits | Holds::Barely));
    let needed = match model.format.mapped {
        true if fits && on_card => 0.0,
        true => (weights - own).max(0.0),
        false => weights,
    };
    let available = view.free_memory();
    let hardware = view.facts.proc_hardware.got();
    let swap = hardware.and_then(|hardware| hardware.swap_free_bytes.got().copied());
    let enough = match (available, swap) {
        _ if needed <= 0.0 => Ok(true),
        (Some(available), _) if needed <= bytes(available) => Ok(true),
        // A GPU may hold it, and then nothing is needed.
        _ if model.format.mapped && holds == Holds::Unknown => {
            Err("whether a GPU holds it could not be told".to_owned())
        }
        (Some(available), Some(swap)) => Ok(needed <= bytes(available) + bytes(swap)),
        (None, _) => Err(format!("{MEMINFO}: it does not say how much is available")),
        (_, None) => Err(format!("{MEMINFO}: it does not say how much swap is free")),
    };
    let enough = match enough {
        Ok(true) if needed > 0.0 && view.in_container() => {
            Err("how much memory this container may have is not known".to_owned())
        }
        enough => enough,
    };
    SystemMemory {
        needed_bytes: needed,
        available_bytes: available,
        swap_bytes: swap,
        enough: enough.as_ref().ok().copied(),
        unknown: enough.err().and_then(|why| NotKnown::new(why, "`free -g`")),
    }
}

#[cfg(test)]
mod tests;
