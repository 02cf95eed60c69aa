//! A model that the user names: what must be in memory before it runs, and what is read for each token. All of it is an
//! estimate, from the least that it can be to the most, by rules that people who run models go by.

use serde::Serialize;

/// Bytes in a GiB.
pub const GIB: f64 = 1_073_741_824.0;
/// Bytes in a GB, in which contexts and buffers of drivers are given.
const GB: f64 = 1e9;

/// An estimate, mostly in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "Bytes")]
pub struct Estimate {
    /// It is not less.
    pub least: f64,
    /// What to reckon with.
    pub likely: f64,
    /// It is not more; infinite: not known.
    pub most: f64,
}

/// How an estimate stands in JSON.
#[derive(Serialize)]
struct Bytes {
    least: u64,
    likely: u64,
    most: Option<u64>,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are positive and far below 2^53"
)]
impl From<Estimate> for Bytes {
    fn from(estimate: Estimate) -> Bytes {
        let whole = |bytes: f64| bytes.round() as u64;
        Bytes {
            least: whole(estimate.least),
            likely: whole(estimate.likely),
            most: estimate.most.is_finite().then(|| whole(estimate.most)),
        }
    }
}

impl Estimate {
    /// Nothing about it is uncertain.
    pub fn exactly(value: f64) -> Estimate {
        Estimate::new(value, value, value)
    }

    /// From the least over the likely to the most.
    pub fn new(least: f64, likely: f64, most: f64) -> Estimate {
        Estimate {
            least,
            likely,
            most,
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Estimate) -> Estimate {
        Estimate::new(
            self.least + other.least,
            self.likely + other.likely,
            self.most + other.most,
        )
    }

    /// So many times as much.
    #[must_use]
    pub fn times(self, factor: f64) -> Estimate {
        Estimate::new(
            self.least * factor,
            self.likely * factor,
            self.most * factor,
        )
    }
}

/// What a model makes; each has a rule of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Makes {
    /// Text, a token at a time: keeps keys and values of all tokens before.
    Language,
    /// Pictures: encoders and decoder are needed before and after, and may wait in system memory.
    Image,
    /// Text from speech.
    Speech,
}

/// A format of weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// Its name, as people write it.
    pub name: String,
    /// Bits that a parameter takes, scales included.
    pub bits: Estimate,
    /// A format of GGUF, whose engines map the file and need not hold it in system memory.
    pub mapped: bool,
    /// What units for matrices call the format; empty: none computes in it.
    pub unit: &'static str,
}

/// Names, bits, whether it is of GGUF, and what units for matrices call it. K quants mix several formats, so their files
/// differ by a few percent.
const FORMATS: [(&[&str], [f64; 3], bool, &str); 18] = [
    (&["F32", "FP32"], [32.0, 32.0, 32.0], false, ""),
    (&["F16", "FP16", "16"], [16.0, 16.0, 16.0], false, "fp16"),
    (&["BF16"], [16.0, 16.0, 16.0], false, "bf16"),
    (&["FP8", "F8"], [8.0, 8.0, 8.16], false, "fp8"),
    (&["INT8"], [8.0, 8.0, 8.16], false, "int8"),
    (&["AWQ", "GPTQ"], [4.1, 4.25, 4.5], false, ""),
    (&["NF4"], [4.1, 4.5, 4.6], false, ""),
    (&["MXFP4"], [4.25, 4.25, 5.1], false, "fp4/fp6"),
    (&["Q8_0", "Q8"], [8.3, 8.5, 8.7], true, ""),
    (&["Q6_K", "Q6"], [6.4, 6.56, 6.8], true, ""),
    (&["Q5_K_M", "Q5"], [5.5, 5.7, 5.9], true, ""),
    (&["Q4_K_M", "Q4"], [4.7, 4.85, 5.0], true, ""),
    (&["Q4_0"], [4.4, 4.5, 4.7], true, ""),
    (&["IQ4_XS"], [4.15, 4.25, 4.45], true, ""),
    (&["Q3_K_M", "Q3"], [3.75, 3.9, 4.1], true, ""),
    (&["Q2_K", "Q2"], [3.0, 3.2, 3.5], true, ""),
    (&["8"], [8.0, 8.5, 8.7], false, ""),
    (&["4"], [4.1, 4.5, 5.0], false, ""),
];

impl Format {
    /// By its name, in any spelling, or by a number of bits.
    pub fn named(text: &str) -> Option<Format> {
        let plain = |name: &str| name.to_uppercase().replace(['-', '_', ' '], "");
        let wanted = plain(text);
        let known = FORMATS
            .iter()
            .find(|(names, ..)| names.iter().any(|name| plain(name) == wanted));
        if let Some((names, [least, likely, most], mapped, unit)) = known {
            let only_bits = names[0].len() == 1;
            return Some(Format {
                name: if only_bits {
                    format!("{} bit", names[0])
                } else {
                    names[0].to_owned()
                },
                bits: Estimate::new(*least, *likely, *most),
                mapped: *mapped,
                unit,
            });
        }
        let bits: f64 = wanted.parse().ok()?;
        (1.0..=64.0).contains(&bits).then(|| Format {
            name: format!("{bits} bit"),
            bits: Estimate::exactly(bits),
            mapped: false,
            unit: "",
        })
    }

    /// Names that may be asked for.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let names = FORMATS.iter().map(|(names, ..)| names[0]);
        names.filter(|name| name.len() > 1)
    }

    /// Takes the name of a format off the end of the name of a model or of a file.
    pub fn split(name: &str) -> (&str, Option<Format>) {
        let upper = name.to_ascii_uppercase();
        for (names, ..) in FORMATS {
            for known in names.iter().filter(|known| known.len() > 2) {
                let Some(rest) = upper.strip_suffix(known) else {
                    continue;
                };
                if let Some(model) = rest.strip_suffix(['-', '_', '.', ':']) {
                    return (&name[..model.len()], Format::named(known));
                }
            }
        }
        (name, None)
    }
}

/// What tells how much the weights take.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// Files of so many bytes.
    Files(f64),
    /// Parameters.
    Parameters {
        /// All of them.
        count: Estimate,
        /// Those of the embeddings, where they weigh much: files of few bits often keep them at 16.
        embeddings: f64,
        /// Bytes of the weights in the format that its makers publish.
        published: Option<(String, f64)>,
        /// Bytes at 16 bit of what is needed before and after: text encoders, a decoder.
        beside: f64,
    },
}

/// What a model keeps of the tokens that it has seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cache {
    /// Bytes for a token in all layers, at 2 bytes a value.
    pub token: Estimate,
    /// Share of the layers that keep the whole context.
    pub whole: f64,
    /// Tokens that the other layers need.
    pub window: f64,
}

/// A model that the user names.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name, as reports show it.
    pub name: String,
    /// What it makes.
    pub makes: Makes,
    /// The format that was asked for, or that the file is in.
    pub format: Format,
    /// How much there is of it.
    pub size: Size,
    /// The share of the weights that is read for a token; 1 unless only some experts are.
    pub active: f64,
    /// What it keeps of each token. None: not known.
    pub cache: Option<Cache>,
    /// Tokens to reckon with.
    pub context: u32,
    /// The longest context that it was made for, where that is known.
    pub longest: Option<u32>,
    /// How large it is, is known well enough to rest a finding on.
    pub may_accuse: bool,
    /// Where its figures were read, in words.
    pub source: String,
    /// What else there is to say.
    pub note: String,
}

impl Model {
    /// The same model in another format. None: a file has the format that it has.
    pub fn in_format(&self, format: Format) -> Option<Model> {
        match self.size {
            Size::Files(_) => None,
            Size::Parameters { .. } => Some(Model {
                format,
                ..self.clone()
            }),
        }
    }

    /// The same model with another context.
    pub fn with_context(&self, context: u32) -> Model {
        Model {
            context,
            ..self.clone()
        }
    }

    /// Weights that must be in memory, in bytes. What is needed before and after may wait elsewhere, so the least is
    /// without it.
    pub fn weights(&self) -> Estimate {
        let (count, embeddings, published, beside) = match &self.size {
            Size::Files(bytes) => return Estimate::exactly(*bytes),
            Size::Parameters {
                count,
                embeddings,
                published,
                beside,
            } => (count, *embeddings, published, *beside),
        };
        let bits = self.format.bits;
        let mut weights = Estimate::new(
            count.least * bits.least / 8.0,
            count.likely * bits.likely / 8.0,
            count.most * bits.most / 8.0 + embeddings * (16.0 - bits.likely).max(0.0) / 8.0,
        );
        if let Some((format, bytes)) = published
            && *format == self.format.name
        {
            weights.likely = *bytes;
            weights.most = weights.most.max(*bytes * 1.03);
        }
        // Encoders are seldom cut down further than to 8 bit.
        let beside = beside * bits.likely.clamp(8.0, 16.0) / 16.0;
        weights.plus(Estimate::new(0.0, beside, beside))
    }

    /// Keys and values of the context, in bytes. None: not known.
    pub fn kept(&self) -> Option<Estimate> {
        let Some(cache) = self.cache else {
            return (self.makes != Makes::Language).then(|| Estimate::exactly(0.0));
        };
        let context = f64::from(self.context);
        let least = cache.whole * context + (1.0 - cache.whole) * context.min(cache.window);
        // Engines that know nothing of windows keep everything.
        Some(Estimate::new(
            cache.token.least * least,
            cache.token.likely * context,
            cache.token.most * context,
        ))
    }

    /// What programs take on top: the context of the driver and buffers to compute in, in bytes.
    pub fn overhead(&self) -> Estimate {
        let weights = self.weights().likely;
        match self.makes {
            Makes::Language | Makes::Speech => {
                let likely = 0.75 * GIB + 0.0175 * weights;
                Estimate::new(0.6 * GB, likely, likely + 0.05 * weights)
            }
            Makes::Image => Estimate::new(GIB, 2.0 * GIB, 2.5 * GIB),
        }
    }

    /// All that must be in memory, in bytes. The most is infinite where the cache is not known.
    pub fn need(&self) -> Estimate {
        let without_end = Estimate::new(0.0, 0.0, f64::INFINITY);
        let kept = self.kept().unwrap_or(without_end);
        self.weights().plus(kept).plus(self.overhead())
    }

    /// What each GPU takes more when a model is split among several, in bytes.
    pub fn for_another_gpu() -> Estimate {
        Estimate::new(0.3 * GB, 0.6 * GB, 0.6 * GB)
    }

    /// Bytes that are read for each token. None: it makes none, or at another pace.
    pub fn read_for_token(&self) -> Option<Estimate> {
        (self.makes == Makes::Language).then(|| self.weights().times(self.active))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_in_any_spelling() {
        let bits = |text: &str| Format::named(text).map(|format| format.bits.likely);
        for (text, wanted) in [
            ("q4_k_m", Some(4.85)),
            ("Q4-K-M", Some(4.85)),
            ("Q4", Some(4.85)),
            ("fp16", Some(16.0)),
            ("bf16", Some(16.0)),
            ("16", Some(16.0)),
            ("8", Some(8.5)),
            ("4.25", Some(4.25)),
            ("mxfp4", Some(4.25)),
            ("Q9", None),
            ("0.5", None),
            ("", None),
        ] {
            assert_eq!(bits(text), wanted, "{text}");
        }
        for name in Format::names() {
            assert_eq!(Format::named(name).expect("known").name, name);
        }
    }

    #[test]
    fn a_name_may_end_in_its_format() {
        let split = |name| {
            let (rest, format) = Format::split(name);
            (rest, format.map(|format| format.name))
        };
        let with = |rest, format: &str| (rest, Some(format.to_owned()));
        assert_eq!(
            split("Llama-3.1-8B-Instruct-Q4_K_M"),
            with("Llama-3.1-8B-Instruct", "Q4_K_M")
        );
        assert_eq!(split("qwen2.5-7b-fp16"), with("qwen2.5-7b", "F16"));
        assert_eq!(split("llama3.1:8b-bf16"), with("llama3.1:8b", "BF16"));
        assert_eq!(split("Qwen3-8B"), ("Qwen3-8B", None));
        assert_eq!(split("Q4_K_M"), ("Q4_K_M", None));
    }
}
