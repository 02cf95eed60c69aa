//! All integration tests, as one binary: the real program is run on recorded machines, on real trees and by hand.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests make files, start programs and print what they skipped"
)]

mod advise;
#[cfg(unix)]
mod cli;
mod common;
mod evidence;
mod expect;
#[cfg(unix)]
mod fit;
mod fixtures;
mod generated;
#[cfg(target_os = "linux")]
mod hostile;
mod house;
mod installed;
mod kernel_log;
#[cfg(target_os = "linux")]
mod libraries;
mod machines;
#[cfg(target_os = "linux")]
mod oracles;
mod program;
#[cfg(target_os = "linux")]
mod real;
#[cfg(target_os = "linux")]
mod real_parts;
#[cfg(target_os = "linux")]
mod rocm_smi;
#[cfg(target_os = "linux")]
mod secrets;
mod system_probes;
#[cfg(target_os = "linux")]
mod workers;
