//! The commands; each reads like a paragraph. Data goes to standard output, everything else to standard error.

mod advise;
mod capture;
mod check;
mod explain;
mod filter;
mod fit;
pub mod generate;
mod list;
mod look;
mod names;
#[cfg(target_os = "linux")]
mod probe;
mod tables;

use crate::cli::{Cli, Command};
use crate::files;
use crate::report::style::{self, Style};
use crate::tables::Tables;
use anyhow::{Context, Result};
use clap::ColorChoice;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Exit status: nothing is wrong that the user asked to fail on.
const GOOD: u8 = 0;
/// Exit status: something is, or a requirement is not met.
const BAD: u8 = 1;
/// Exit status: gpucheck itself could not do its work.
pub const FAULT: u8 = 2;

/// Does what the command line says. The answer is the exit status.
pub fn run(cli: &Cli) -> u8 {
    let done = match &cli.command {
        None => check::run(&cli.check, cli.color),
        Some(Command::Explain(args)) => explain::run(args, cli.color),
        Some(Command::List(args)) => list::run(args, cli.color),
        Some(Command::Advise(args)) => advise::run(args, cli.color),
        Some(Command::Fit(args)) => fit::run(args, cli.color),
        Some(Command::Tables(args)) => tables::run(args, cli.color),
        Some(Command::Capture(args)) => capture::run(args),
        Some(Command::Generate(args)) => generate::run(args),
        #[cfg(target_os = "linux")]
        Some(Command::Probe(args)) => probe::run(args),
        #[cfg(not(target_os = "linux"))]
        Some(Command::Probe(_)) => Err(anyhow::anyhow!("only Linux systems can be looked at")),
    };
    match done {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => GOOD,
        Err(error) => {
            // As the parser of the command line says it.
            tell(&format!("error: {error:#}"));
            FAULT
        }
    }
}

/// The reader of our output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// One line on standard error that is no error.
pub fn say(text: &str) {
    tell(&format!("gpucheck: {text}"));
}

fn tell(text: &str) {
    // Where nobody can be told, nobody can be told that either.
    let _ = writeln!(io::stderr(), "{}", style::clean(text));
}

/// The built-in tables with those of a folder over them; a running system may have some of its own below those.
fn tables_of(folder: Option<&Path>, of_this_system: bool) -> Result<Tables> {
    const OF_THE_SYSTEM: &str = "/etc/gpucheck/data";
    let mut overrides = Vec::new();
    if of_this_system {
        match files::read_tables(Path::new(OF_THE_SYSTEM)) {
            Ok(tables) => overrides = tables,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{OF_THE_SYSTEM}`"));
            }
        }
    }
    if let Some(folder) = folder {
        let tables = files::read_tables(folder)
            .with_context(|| format!("cannot read the tables in `{}`", folder.display()))?;
        // Later ones of the same name win.
        overrides.extend(tables);
    }
    if overrides.is_empty() {
        return Ok(Tables::embedded());
    }
    Tables::with_overrides(overrides)
        .map_err(anyhow::Error::msg)
        .context("a table is not in order")
}

/// How to write to this place.
fn style_for(output: &Path, color: ColorChoice) -> Style {
    let asked = match color {
        ColorChoice::Auto => None,
        ColorChoice::Always => Some(true),
        ColorChoice::Never => Some(false),
    };
    let terminal = files::is_stream(output) && io::stdout().is_terminal();
    let columns = terminal.then(columns).flatten();
    Style::decide(asked, terminal, columns, &files::variable)
}

#[cfg(unix)]
fn columns() -> Option<usize> {
    rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}
