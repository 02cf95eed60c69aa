//! The program: parses, runs, exits.

use gpucheck::{cli, commands};
use std::process::ExitCode;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        commands::say(&format!("a bug in gpucheck, please report it: {panic}"));
    }));
    let cli = cli::parse(std::env::args_os().collect()).unwrap_or_else(|error| error.exit());
    let status = std::panic::catch_unwind(|| commands::run(&cli));
    ExitCode::from(status.unwrap_or(commands::FAULT))
}
