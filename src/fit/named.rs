//! What the user calls a model: a name of the table, a file, or a number of parameters.

use crate::tables::{Confidence, Known, Row, Tables, kinds};
use crate::view::model::{Cache, Estimate, Format, Makes, Model, Size};

/// What to reckon with.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The format of the weights.
    pub format: Option<Format>,
    /// Tokens of context.
    pub context: Option<u32>,
    /// The size of its files in bytes, where the user named files.
    pub bytes: Option<u64>,
}

/// Tokens of context where nobody says how many.
const CONTEXT: u32 = 8192;
/// Formats where nobody says which: what engines for GGUF take by themselves, and what the others publish.
const OF_LANGUAGE: &str = "Q4_K_M";
const OF_OTHERS: &str = "F16";

/// The model of this name. None: the table has none, and it is no size either.
pub fn named(tables: &Tables, name: &str, asked: &Asked) -> Option<Model> {
    if let Some(bytes) = asked.bytes {
        return Some(of_files(tables, name, bytes, asked));
    }
    // `8B` alone is a size and `Q4_K_M` no model.
    let (model, format) = Format::split(name);
    let row = tables.model(name).map(|row| (row, None));
    let row = row.or_else(|| Some((tables.model(model)?, format.clone())));
    if let Some((row, of_name)) = row {
        let format = asked.format.clone().or(of_name);
        return of_row(&row, format, asked.context);
    }
    of_size(
        tables,
        model,
        asked.format.clone().or(format),
        asked.context,
    )
}

fn number(row: &Row, key: &str) -> Option<Known<f64>> {
    let known = row.text(key)?;
    Some(Known {
        value: known.value.parse().ok()?,
        confidence: known.confidence,
        source: known.source,
    })
}

fn value(row: &Row, key: &str) -> Option<f64> {
    number(row, key).map(|known| known.value)
}

fn cache(row: &Row) -> Option<Cache> {
    let token = value(row, "cache_bytes")?;
    let layers = value(row, "layers").unwrap_or(1.0).max(1.0);
    Some(Cache {
        token: Estimate::exactly(token),
        whole: value(row, "full_layers").map_or(1.0, |whole| whole / layers),
        window: value(row, "window").unwrap_or(f64::INFINITY),
    })
}

fn makes(row: &Row) -> Makes {
    match row.text("kind").map(|kind| kind.value).as_deref() {
        Some("image") => Makes::Image,
        Some("speech") => Makes::Speech,
        _ => Makes::Language,
    }
}

fn of_row(row: &Row, format: Option<Format>, context: Option<u32>) -> Option<Model> {
    let params = number(row, "params_b")?;
    let makes = makes(row);
    let published = row
        .text("native")
        .map(|native| native.value)
        .zip(value(row, "native_gb").map(|gb| gb * 1e9));
    let usual = match (makes, &published) {
        (_, Some((native, _))) => native.as_str(),
        (Makes::Language, None) => OF_LANGUAGE,
        (Makes::Image | Makes::Speech, None) => OF_OTHERS,
    };
    let format = match format {
        Some(format) => format,
        None => Format::named(usual)?,
    };
    let longest = row
        .text("context")
        .and_then(|known| known.value.parse().ok());
    let embeddings = value(row, "vocab").unwrap_or(0.0) * value(row, "hidden").unwrap_or(0.0);
    Some(Model {
        name: row.key(&kinds::MODEL).to_owned(),
        makes,
        format,
        active: value(row, "active_b").map_or(1.0, |active| (active / params.value).min(1.0)),
        size: Size::Parameters {
            count: Estimate::exactly(params.value * 1e9),
            embeddings,
            published,
            beside: value(row, "beside_gb").unwrap_or(0.0) * 1e9,
        },
        cache: cache(row),
        context: context.unwrap_or(longest.unwrap_or(CONTEXT).min(CONTEXT)),
        longest,
        may_accuse: params.may_accuse(),
        source: match params.confidence {
            Confidence::Memory | Confidence::Unknown => {
                "its size is from memory, unchecked".to_owned()
            }
            _ => format!(
                "`gpucheck tables model {}` names the sources",
                row.key(&kinds::MODEL)
            ),
        },
        note: row.text("note").map_or(String::new(), |note| note.value),
    })
}

/// The size of files is exact; what is kept of the context only the table tells, by the name of the file.
fn of_files(tables: &Tables, name: &str, bytes: u64, asked: &Asked) -> Model {
    let path = name.trim_end_matches('/');
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file
        .trim_end_matches(".gguf")
        .trim_end_matches(".safetensors");
    // `-00001-of-00003`
    let stem = stem.split("-0000").next().unwrap_or(stem);
    let (model, format) = Format::split(stem);
    let row = tables.model(model);
    let known = row
        .as_ref()
        .and_then(|row| of_row(row, None, asked.context));
    let is_gguf = file.ends_with(".gguf") || format.as_ref().is_some_and(|format| format.mapped);
    let format = Format {
        mapped: is_gguf,
        ..format.unwrap_or(Format {
            name: "the format of its file".to_owned(),
            bits: Estimate::exactly(16.0),
            mapped: is_gguf,
            unit: "",
        })
    };
    Model {
        name: file.to_owned(),
        format,
        size: Size::Files(bytes as f64),
        makes: known.as_ref().map_or(Makes::Language, |known| known.makes),
        active: known.as_ref().map_or(1.0, |known| known.active),
        cache: known.as_ref().and_then(|known| known.cache),
        context: known
            .as_ref()
            .map_or(asked.context.unwrap_or(CONTEXT), |known| known.context),
        longest: known.as_ref().and_then(|known| known.longest),
        may_accuse: true,
        source: match &known {
            Some(known) => format!("the size of its files; by its name it is {}", known.name),
            None => "the size of its files; its name is in no table".to_owned(),
        },
        note: known.map_or(String::new(), |known| known.note),
    }
}

/// `70B`: the models of about that size say how much such a model keeps of its context.
fn of_size(
    tables: &Tables,
    text: &str,
    format: Option<Format>,
    context: Option<u32>,
) -> Option<Model> {
    let text = text.trim();
    let digits = text.strip_suffix(['b', 'B', 'm', 'M'])?.trim();
    let in_billions = if text.ends_with(['m', 'M']) {
        1e-3
    } else {
        1.0
    };
    let billions = digits.parse::<f64>().ok()? * in_billions;
    if !(0.01..=10_000.0).contains(&billions) {
        return None;
    }
    let rows: Vec<Row> = tables
        .rows(&kinds::MODEL)
        .into_iter()
        .filter(|row| makes(row) == Makes::Language)
        .filter(|row| {
            let params = value(row, "params_b").unwrap_or_default();
            (billions * 0.87..=billions * 1.15).contains(&params)
        })
        .collect();
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let of_rows = |key: &str| -> Vec<f64> {
        let mut values: Vec<f64> = rows.iter().filter_map(|row| value(row, key)).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (mut params, caches) = (of_rows("params_b"), of_rows("cache_bytes"));
    params.extend([billions * 0.97, billions * 1.03]);
    Some(Model {
        name: format!("a model of {billions}B"),
        makes: Makes::Language,
        format: match format {
            Some(format) => format,
            None => Format::named(OF_LANGUAGE)?,
        },
        size: Size::Parameters {
            count: Estimate::new(least(&params), billions, most(&params)).times(1e9),
            embeddings: 0.0,
            published: None,
            beside: 0.0,
        },
        active: 1.0,
        cache: caches.get(caches.len() / 2).map(|middle| Cache {
            token: Estimate::new(least(&caches), *middle, most(&caches)),
            whole: 1.0,
            window: f64::INFINITY,
        }),
        context: context.unwrap_or(CONTEXT),
        longest: None,
        may_accuse: true,
        source: match rows.len() {
            0 => {
                "no model of about that size is in the tables, so its cache is not known".to_owned()
            }
            count => format!("what {count} models of about that size keep of their context"),
        },
        note: "reckoned as dense: all of it is read for each token".to_owned(),
    })
}
