//! Python environments and the frameworks in them, by their files alone: no interpreter is run.

use super::Seen;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The environments that this user's shell leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Python {
    /// By the folder that holds their `bin`: what `VIRTUAL_ENV` and `CONDA_PREFIX` name, that of the first `python3` on
    /// `PATH`, the system's (`/usr`), and the user's own packages (`~/.local`).
    pub environments: BTreeMap<String, PythonEnvironment>,
    /// The environment of the first `python3` on `PATH`. `Absent`: there is none.
    pub first: Seen<String>,
}

/// One environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PythonEnvironment {
    /// `python3.12`: its interpreter, as the file is called.
    pub interpreter: Seen<String>,
    /// PyTorch. `Absent`: in none of its folders of packages.
    pub torch: Seen<Torch>,
    /// JAX's plugins for CUDA, as their folders are called (`jax_cuda12_plugin-0.5.3.dist-info`). `Absent`: none.
    pub jax_plugins: Seen<Vec<String>>,
}

/// What `torch/version.py` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Torch {
    /// The file.
    pub path: String,
    /// `2.7.1+cu128`.
    pub version: Seen<String>,
    /// The CUDA version that it was built for (`12.8`). `Absent`: not for CUDA.
    pub cuda: Seen<String>,
    /// The HIP version that it was built for. `Absent`: not for ROCm.
    pub hip: Seen<String>,
}
