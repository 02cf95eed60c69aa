//! The kernel log: lines of GPU drivers, of the PCI bus, of the module loader and of the memory killer. No other line is kept.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kernel log of this boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct KernelLog {
    /// Which source worked: `kmsg`, `journal`, `file NAME`.
    pub source: String,
    /// Other sources that were asked and refused, by path, with why (`EPERM`).
    pub tried: BTreeMap<String, String>,
    /// Every line that was wanted is here, from the start of this boot on: none was overwritten, lost or left out.
    pub from_boot: bool,
    /// The lines in order. The kernel's banner (`Linux version ...`) is among them where the source holds it.
    pub lines: Vec<LogLine>,
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LogLine {
    /// Microseconds since the boot; None: the source has no such time.
    pub at_us: Option<u64>,
    /// The message without time stamp and priority. Lines that go on with it are joined by a line end.
    pub text: String,
}
