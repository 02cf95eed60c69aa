//! `gpucheck probe`: a worker. Asks one source after another and writes what `worker.rs` reads, a line an event.

use super::look::{ask, options};
use super::{FAULT, GOOD};
use crate::cli::{LookArgs, ProbeArgs, Worker};
use crate::facts::Facts;
use crate::host::live::{Live, Root};
use crate::host::redact::{Private, Redactor};
use crate::host::{Host, Source};
use crate::probes;
use crate::worker::{self, Event};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Instant;

/// What a worker is started with, so that it looks as these flags say.
pub fn arguments(args: &LookArgs, record: bool, salt: u64) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["probe".into(), "files".into()];
    arguments.push(format!("--salt={salt}").into());
    if let Some(root) = &args.root {
        // In one word: the name may begin with a dash.
        let mut argument = OsString::from("--root=");
        argument.push(root);
        arguments.push(argument);
    }
    if let Some(user) = &args.user {
        arguments.push(format!("--user={user}").into());
    }
    for (set, flag) in [
        (record, "--record"),
        (args.quick, "--quick"),
        (args.wake, "--wake"),
        (args.keep_private, "--keep-private"),
    ] {
        if set {
            arguments.push(flag.into());
        }
    }
    arguments
}

/// The running system, or the one below `--root`.
pub fn source(args: &LookArgs) -> Result<Box<dyn Source>> {
    Ok(match &args.root {
        None => Box::new(Live::new()),
        Some(root) => Box::new(
            Root::open(root).with_context(|| format!("cannot look below `{}`", root.display()))?,
        ),
    })
}

/// Asks every source from the given one on.
pub fn run(args: &ProbeArgs) -> Result<u8> {
    worker::end_with_parent();
    let Worker::Files {
        from,
        record,
        salt,
        look,
    } = &args.worker;
    let source = source(look)?;
    let redactor = if look.keep_private {
        Redactor::off()
    } else {
        Redactor::on(*salt, Private::of(&*source))
    };
    let mut host = Host::new(source, redactor, options(look)).before_read(|path| {
        // Nobody reads: then nobody needs the rest either.
        if tell(&Event::At(path.into())).is_err() {
            std::process::exit(FAULT.into());
        }
    });
    if *record {
        host = host.recording();
    }
    if let Some(clock) = host.clock() {
        tell(&Event::Clock(&clock))?;
    }
    for probe in probes::ALL.iter().skip_while(|(name, _)| name != from) {
        let (name, _) = probe;
        let mut facts = Facts::default();
        tell(&Event::Begin(name))?;
        let start = Instant::now();
        ask(&host, probe, &mut facts);
        let took = start.elapsed();
        if let Some(json) = facts.field_to_json(name) {
            tell(&Event::Facts(name, &json?))?;
        }
        let entries = host.take_entries();
        if !entries.is_empty() {
            let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
            tell(&Event::Entry(text.into()))?;
        }
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        tell(&Event::End(name, took))?;
    }
    Ok(GOOD)
}

/// One line, written at once: what stands in a buffer when a read hangs tells nobody anything.
fn tell(event: &Event) -> io::Result<()> {
    let line = format!("{event}\n");
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}
