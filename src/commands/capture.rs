//! `gpucheck capture`: look, and write down what was answered.

use super::look::look;
use super::{GOOD, say};
use crate::cli::CaptureArgs;
use crate::facts::Failure;
use crate::files;
use crate::host::machine::{Entries, Entry};
use crate::tables::Tables;
use anyhow::{Context, Result};

/// Looks and writes.
pub fn run(args: &CaptureArgs) -> Result<u8> {
    let looked = look(&args.look, &Tables::embedded(), true)?;
    let made_by = format!(
        "gpucheck {} {} {}",
        env!("CARGO_PKG_VERSION"),
        if args.look.root.is_some() {
            "root"
        } else {
            "live"
        },
        if args.look.keep_private {
            "private"
        } else {
            "redacted"
        },
    );
    let mut machine = Entries {
        made_by: Some(made_by),
        ..Entries::default()
    };
    for text in looked.entries {
        machine
            .push_text(text.leak())
            .map_err(anyhow::Error::msg)
            .context("what the worker wrote down cannot be read")?;
    }
    for (source, failure) in &looked.failed {
        say(&format!("{source} could not be recorded: {failure}"));
        if let Failure::TimedOut { at } = failure
            && at.starts_with('/')
        {
            machine.entries.push(Entry::Hang(at.clone().into()));
        }
    }
    let text = machine.to_string();
    files::write(&args.output, text.as_bytes())
        .with_context(|| format!("cannot write `{}`", args.output.display()))?;
    Ok(GOOD)
}
