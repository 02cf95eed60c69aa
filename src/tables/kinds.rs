//! What rows the tables hold: the files, their kinds of rows, and what each value is.

use super::rows::{self, Kind, Shape, field};

/// A CUDA toolkit.
pub const TOOLKIT: Kind = Kind {
    file: "cuda.toml",
    name: "toolkit",
    key: "version",
    order: Some("version"),
    fields: &[
        field("version", "version", Shape::Version),
        field("driver", "needs driver", Shape::Version),
        field("driver_branch", "needs driver branch", Shape::Version),
        field("update_drivers", "drivers of its updates", Shape::List),
        field("floor", "runs in part from driver", Shape::Version),
        field(
            "driver_latest",
            "driver of its last installer",
            Shape::Version,
        ),
        field("targets", "makes code for", Shape::List),
        field("deprecated", "warns about", Shape::List),
        field("gcc", "newest gcc", Shape::Version),
        field("clang", "newest clang", Shape::Version),
        field("note", "note", Shape::Text),
    ],
};

/// What all toolkits of a major version share.
pub const MAJOR: Kind = Kind {
    file: "cuda.toml",
    name: "major",
    key: "major",
    order: Some("major"),
    fields: &[
        field("major", "major version", Shape::Version),
        field("floor", "floor", Shape::Version),
        field("below_branch", "not needed from branch", Shape::Version),
    ],
};

/// A branch of NVIDIA's driver.
pub const BRANCH: Kind = Kind {
    file: "nvidia-drivers.toml",
    name: "branch",
    key: "branch",
    order: Some("branch"),
    fields: &[
        field("branch", "branch", Shape::Version),
        field("kind", "kind", Shape::Text),
        field("first", "first release", Shape::Version),
        field("last", "last release known", Shape::Version),
        field("last_date", "released", Shape::Date),
        field("end_of_life", "end of life", Shape::Date),
        field("cuda", "newest CUDA", Shape::Version),
        field("lowest", "oldest architecture", Shape::Text),
        field("highest", "newest architecture", Shape::Text),
        field(
            "open_module",
            "open kernel module",
            Shape::OneOf(&[
                "none",
                "available",
                "default where possible",
                "only",
                "only in packages",
            ]),
        ),
        field("kernels", "newest kernel a release knows", Shape::List),
        field("oldest_kernel", "oldest kernel", Shape::Version),
        field("note", "note", Shape::Text),
    ],
};

/// What NVIDIA's driver makes of the GPUs of an architecture.
pub const ARCHITECTURE: Kind = Kind {
    file: "nvidia-drivers.toml",
    name: "architecture",
    key: "name",
    order: Some("lowest"),
    fields: &[
        field("name", "architecture", Shape::Text),
        field("lowest", "compute capability from", Shape::Version),
        field("highest", "to", Shape::Version),
        field("first_branch", "not before driver branch", Shape::Version),
        field("last_branch", "last driver branch", Shape::Version),
        field(
            "open_module",
            "open kernel module",
            Shape::OneOf(&["impossible", "possible", "required"]),
        ),
    ],
};

/// A compute capability.
pub const CAPABILITY: Kind = Kind {
    file: "compute-capability.toml",
    name: "capability",
    key: "cc",
    order: Some("cc"),
    fields: &[
        field("cc", "compute capability", Shape::Version),
        field("architecture", "architecture", Shape::Text),
        field("chips", "chips", Shape::Text),
        field("first_cuda", "first CUDA toolkit", Shape::Version),
        field("last_cuda", "last CUDA toolkit", Shape::Version),
        field(
            "tensor_generation",
            "tensor cores, generation",
            Shape::Number,
        ),
        field("tensor", "tensor cores take", Shape::List),
        field("without_tensor", "chips without tensor cores", Shape::List),
    ],
};

/// An AMD gfx target.
pub const TARGET: Kind = Kind {
    file: "gfx.toml",
    name: "target",
    key: "gfx",
    order: Some("gfx"),
    fields: &[
        field("gfx", "target", Shape::Text),
        field("architecture", "architecture", Shape::Text),
        field("chips", "chips", Shape::Text),
        field("integrated", "part of a processor", Shape::Flag),
        field("first_kernel", "amdgpu takes it from Linux", Shape::Version),
        field("kernel_note", "but", Shape::Text),
        field("generic", "also runs code for", Shape::Text),
        field(
            "sibling",
            "with an override also runs code for",
            Shape::Text,
        ),
        field("sibling_caution", "but", Shape::Text),
        field("wavefront", "lanes of a wavefront", Shape::Text),
        field("matrix", "matrix instructions", Shape::Text),
    ],
};

/// A ROCm release.
pub const RELEASE: Kind = Kind {
    file: "rocm.toml",
    name: "release",
    key: "version",
    order: Some("version"),
    fields: &[
        field("version", "version", Shape::Version),
        field("date", "released", Shape::Date),
        field("targets", "supports", Shape::List),
        field("deprecated", "deprecated", Shape::List),
        field("built", "its libraries hold code for", Shape::List),
        field("rocblas", "rocBLAS holds code for", Shape::List),
        field("drivers", "tested with drivers", Shape::List),
        field("systems", "systems", Shape::List),
        field("systems_instinct", "systems, Instinct", Shape::List),
        field("systems_radeon", "systems, Radeon", Shape::List),
        field("systems_ryzen", "systems, Ryzen", Shape::List),
        field("pytorch", "PyTorch", Shape::List),
        field("tensorflow", "TensorFlow", Shape::List),
        field("jax", "JAX", Shape::List),
        field("onnxruntime", "ONNX Runtime", Shape::List),
        field("rocm_smi", "librocm_smi64.so", Shape::Version),
        field("amd_smi", "libamd_smi.so", Shape::Version),
        field("note", "note", Shape::Text),
    ],
};

/// An error code of NVIDIA's driver in the kernel log.
pub const XID: Kind = Kind {
    file: "xid.csv",
    name: "xid",
    key: "code",
    order: Some("code"),
    fields: &[
        field("code", "code", Shape::Number),
        field("mnemonic", "name", Shape::Text),
        field("kind", "comes from", Shape::Text),
        field(
            "severity",
            "severity",
            Shape::OneOf(&["info", "warning", "error", "critical"]),
        ),
        field("meaning", "meaning", Shape::Text),
        field("action", "first action", Shape::Text),
    ],
};

/// What a GPU has, as it is sold.
pub const FIGURES: Kind = Kind {
    file: "gpu-figures.csv",
    name: "figures",
    key: "device",
    order: None,
    fields: &[
        field("vendor", "vendor", Shape::Text),
        field("device", "device", Shape::Text),
        field("key", "key", Shape::Text),
        field("memory_gb", "memory, GB", Shape::Number),
        field("memory_type", "memory type", Shape::Text),
        field("bandwidth_gbs", "memory bandwidth, GB/s", Shape::Number),
        field("power_w", "board power, W", Shape::Number),
        field("typical_supply_w", "usual power supply, W", Shape::Number),
        field("laptop", "laptop", Shape::Flag),
        field(
            "supply_w",
            "power supply the vendor asks for, W",
            Shape::Number,
        ),
    ],
};

/// A model that people run.
pub const MODEL: Kind = Kind {
    file: "models.csv",
    name: "model",
    key: "name",
    order: None,
    fields: &[
        field("name", "model", Shape::Text),
        field("also", "also called", Shape::Text),
        field(
            "kind",
            "makes",
            Shape::OneOf(&["language", "image", "speech"]),
        ),
        field("params_b", "parameters, billions", Shape::Number),
        field("active_b", "read for a token, billions", Shape::Number),
        field("layers", "layers", Shape::Number),
        field("hidden", "width of a layer", Shape::Number),
        field("heads", "heads", Shape::Number),
        field("kv_heads", "heads of the cache", Shape::Number),
        field("head_dim", "width of a head", Shape::Number),
        field("context", "longest context, tokens", Shape::Number),
        field("cache_bytes", "cache of a token, bytes", Shape::Number),
        field(
            "full_layers",
            "layers with the whole context",
            Shape::Number,
        ),
        field("window", "tokens in the other layers", Shape::Number),
        field("vocab", "rows of the embeddings", Shape::Number),
        field("native", "published in", Shape::Text),
        field("native_gb", "weights as published, GB", Shape::Number),
        field("beside_gb", "encoders and the like, GB", Shape::Number),
        field("note", "note", Shape::Text),
    ],
};

/// A GPU by its id; at each run it is read by `Tables::gpu`.
pub const GPU: Kind = Kind {
    file: "gpus.csv",
    name: "gpu",
    key: "device",
    order: None,
    fields: &[
        field("vendor", "vendor", Shape::Text),
        field("device", "device", Shape::Text),
        field("key", "key", Shape::Text),
        field("name", "name", Shape::Text),
        field("chip", "chip", Shape::Text),
        field("architecture", "architecture", Shape::Text),
        field("target", "target", Shape::Text),
        field("integrated", "part of a processor", Shape::Flag),
        field("data_centre", "for data centres", Shape::Flag),
    ],
};

/// The kinds whose files are validated by their kinds alone.
pub const ALL: [&Kind; 10] = [
    &TOOLKIT,
    &MAJOR,
    &BRANCH,
    &ARCHITECTURE,
    &CAPABILITY,
    &TARGET,
    &RELEASE,
    &XID,
    &FIGURES,
    &MODEL,
];

const XID_COLUMNS: &str = "code,mnemonic,kind,severity,meaning,action,source,confidence,mnemonic_confidence,action_confidence";
const FIGURES_COLUMNS: &str = "vendor,device,key,memory_gb,memory_type,bandwidth_gbs,power_w,typical_supply_w,laptop,source,confidence,supply_w,supply_w_source,supply_w_confidence";
const MODEL_COLUMNS: &str = "name,also,kind,params_b,active_b,layers,hidden,heads,kv_heads,head_dim,context,cache_bytes,full_layers,window,vocab,native,native_gb,beside_gb,note,source,confidence,params_b_source,params_b_confidence,context_source,context_confidence,native_gb_source,native_gb_confidence,beside_gb_source,beside_gb_confidence";

impl Kind {
    /// A row is a line of CSV.
    pub fn is_csv(&self) -> bool {
        self.file.ends_with(".csv")
    }
}

/// Whether a text may stand for the file of this name.
///
/// # Errors
/// What is wrong with it, with file, line and column.
pub fn validate(file: &str, text: &str) -> Result<(), String> {
    match file {
        _ if file == XID.file => rows::validate_csv_of(&XID, text, XID_COLUMNS, 1),
        _ if file == FIGURES.file => rows::validate_csv_of(&FIGURES, text, FIGURES_COLUMNS, 3),
        _ if file == MODEL.file => rows::validate_csv_of(&MODEL, text, MODEL_COLUMNS, 1),
        _ => {
            let kinds: Vec<&Kind> = ALL.into_iter().filter(|kind| kind.file == file).collect();
            rows::validate(file, text, &kinds)
        }
    }
}
