//! What a GPU has by the tables: memory as it is sold, bandwidth, units for matrices; and the memory of the machine.

use super::{Gpu, Vendor, View};
use crate::tables::{Known, Row, kinds, lacks_tensor_cores};

/// Units for matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// It has none.
    None,
    /// Tensor cores: their generation, and the formats that they are fast in, where that is known.
    TensorCores(String, Vec<String>),
    /// AMD's instructions, by their name.
    Instructions(String),
}

/// Alternatives: a card is sold with one or the other.
fn numbers(known: Known<String>) -> Option<Known<Vec<f64>>> {
    let value: Vec<f64> = known
        .value
        .split('|')
        .filter_map(|one| one.parse().ok())
        .filter(|one| *one > 0.0)
        .collect();
    (!value.is_empty()).then_some(Known {
        value,
        confidence: known.confidence,
        source: known.source,
    })
}

/// Memory that a card is sold with, in GB as its vendor counts, which may be GiB.
pub fn sold_memory(row: &Row) -> Option<Known<Vec<f64>>> {
    numbers(row.text("memory_gb")?)
}

/// Bandwidth of the memory that a card is sold with, in GB/s.
pub fn sold_bandwidth(row: &Row) -> Option<Known<Vec<f64>>> {
    numbers(row.text("bandwidth_gbs")?)
}

/// A number of which two digits count: it is an estimate.
pub fn about(number: f64) -> String {
    match number {
        _ if number >= 100.0 => format!("{:.0}", (number / 10.0).round() * 10.0),
        _ if number >= 10.0 => format!("{number:.0}"),
        _ => format!("{number:.1}"),
    }
}

impl View<'_> {
    /// The units for matrices of a GPU. None: not in the tables.
    pub fn matrix_of(&self, gpu: &Gpu) -> Option<Known<Matrix>> {
        let target = gpu.target.as_deref()?;
        let known = |value, confidence, source| {
            Some(Known {
                value,
                confidence,
                source,
            })
        };
        if gpu.vendor == Vendor::Amd {
            let matrix = self.tables.row(&kinds::TARGET, target)?.text("matrix")?;
            let value = match matrix.value.as_str() {
                "none" => Matrix::None,
                name => Matrix::Instructions(name.to_owned()),
            };
            return known(value, matrix.confidence, matrix.source);
        }
        let row = self.tables.capability(target)?;
        let generation = row.text("tensor_generation")?;
        // Not all chips of a capability have them, so where the chip is not known that is not either.
        let chip = match gpu.chip.as_deref() {
            Some(chip) => chip,
            None if row.list("without_tensor").is_some() => return None,
            None => "",
        };
        let lacks = lacks_tensor_cores(&row, chip);
        if generation.value == "0" || lacks.is_some() {
            return known(Matrix::None, generation.confidence, generation.source);
        }
        let formats = row.list("tensor");
        let confidence = formats.as_ref().map_or(generation.confidence, |formats| {
            formats.confidence.min(generation.confidence)
        });
        let formats = formats.map_or_else(Vec::new, |formats| formats.value);
        let value = Matrix::TensorCores(generation.value, formats);
        known(value, confidence, generation.source)
    }

    /// All memory of the machine, in bytes, however it was asked for.
    pub fn machine_memory(&self) -> Option<u64> {
        let hardware = self.facts.proc_hardware.got();
        hardware
            .and_then(|hardware| hardware.memory_bytes.got().copied())
            .or_else(|| self.facts.sysinfo.got()?.memory_bytes)
    }

    /// Memory of the machine that a program can have without swapping, in bytes.
    pub fn free_memory(&self) -> Option<u64> {
        let hardware = self.facts.proc_hardware.got();
        hardware
            .and_then(|hardware| hardware.memory_available_bytes.got().copied())
            .or_else(|| self.facts.sysinfo.got()?.memory_available_bytes)
    }
}
