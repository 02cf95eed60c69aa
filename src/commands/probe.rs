//! `gpucheck probe`: a worker. Asks one source after another and writes what `worker.rs` reads, a line an event.
//!
//! A library of a driver runs in a worker of its own, which can change nothing any more when the library is loaded.

use super::look::{ask, options};
use super::{FAULT, GOOD};
use crate::cli::{AskArgs, LookArgs, ProbeArgs, Worker};
use crate::facts::{Facts, Seen, Why};
use crate::host::live::{Live, Root};
use crate::host::redact::{Private, Redactor};
use crate::host::{Host, Options, Source};
use crate::probes;
use crate::worker::{self, Event, Output};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::rc::Rc;
use std::time::Instant;

/// What a worker is started with, so that it looks as these flags say.
pub fn arguments(
    worker: &str,
    args: &LookArgs,
    record: bool,
    salt: u64,
    library: Option<&str>,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["probe".into(), worker.into()];
    arguments.extend(library.map(|library| format!("--library={library}").into()));
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

/// Asks every source of the worker, from the given one on.
pub fn run(args: &ProbeArgs) -> Result<u8> {
    worker::end_with_parent();
    let output = Rc::new(Output::take().context("cannot keep the output to itself")?);
    let is_first = matches!(args.worker, Worker::Files(_));
    let (sources, args, library) = of_worker(&args.worker);
    if library.is_some_and(|library| !library.starts_with('/')) {
        bail!("--library takes the whole path of a file");
    }
    let source = source(&args.look)?;
    let redactor = if args.look.keep_private {
        Redactor::off()
    } else {
        Redactor::on(args.salt, Private::of(&*source))
    };
    let options = Options {
        library: library.cloned(),
        ..options(&args.look)
    };
    let to_tell = Rc::clone(&output);
    let mut host = Host::new(source, redactor, options).before_read(move |path| {
        // Nobody reads: then nobody needs the rest either.
        if to_tell.tell(&Event::At(path.into())).is_err() {
            std::process::exit(FAULT.into());
        }
    });
    if args.record {
        host = host.recording();
    }
    // The first worker says when the machine was looked at.
    if is_first && let Some(clock) = host.clock() {
        output.tell(&Event::Clock(&clock))?;
    }
    // Of all sources: some need not ask again what another one knows.
    let mut facts = Facts::default();
    let from = |name: &&str| args.from.as_ref().is_some_and(|from| from != name);
    for probe in sources
        .into_iter()
        .skip_while(from)
        .filter_map(probes::named)
    {
        let (name, _) = probe;
        output.tell(&Event::Begin(name))?;
        let start = Instant::now();
        match may_ask(&host, library.is_some()) {
            Ok(()) => ask(&host, probe, &mut facts),
            Err(why) => facts.set_field_unasked(name, why),
        }
        let took = start.elapsed();
        if let Some(json) = facts.field_to_json(name) {
            output.tell(&Event::Facts(name, &json?))?;
        }
        let entries = host.take_entries();
        if !entries.is_empty() {
            let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
            output.tell(&Event::Entry(text.into()))?;
        }
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        output.tell(&Event::End(name, took))?;
    }
    Ok(GOOD)
}

/// Whether the source may be asked. Of a library everything that must be so before it is loaded is so then: it can change
/// nothing, and as root nobody else can have put it there.
fn may_ask(host: &Host, is_library: bool) -> Result<(), Why> {
    if !is_library {
        return Ok(());
    }
    let is_root = !matches!(host.user(), Seen::Got(user) if user.uid != 0);
    if is_root && !is_roots_own(host) {
        return Err(Why::RunsAsRoot);
    }
    match worker::confine() {
        Err(_) if is_root => Err(Why::RunsAsRoot),
        _ => Ok(()),
    }
}

/// The library, and every folder above it, belongs to root, and nobody else may write there. Root of a user namespace has
/// no more rights than who made it.
fn is_roots_own(host: &Host) -> bool {
    const EVERYBODY: [&str; 3] = ["0", "0", "4294967295"];
    let map = host.text("/proc/self/uid_map");
    if map
        .got()
        .is_some_and(|map| !map.split_whitespace().eq(EVERYBODY))
    {
        return true;
    }
    let Seen::Got(way) = host.way_to_library() else {
        // It is not there, or no path: then it is not loaded either, and that is the better answer.
        return true;
    };
    way.iter().all(|stat| {
        stat.got().is_some_and(|stat| {
            let others = if stat.gid == Some(0) { 0o002 } else { 0o022 };
            stat.uid == Some(0) && stat.mode.is_some_and(|mode| mode & others == 0)
        })
    })
}

/// The sources of a worker, how it asks, and the library that it loads.
fn of_worker(worker: &Worker) -> (Vec<&'static str>, &AskArgs, Option<&String>) {
    let (name, args, library) = match worker {
        Worker::Files(args) => return (probes::files().collect(), args, None),
        Worker::System(args) => ("system", args, None),
        Worker::Nvml(args) => ("nvml", &args.ask, Some(&args.library)),
        Worker::Cuda(args) => ("cuda", &args.ask, Some(&args.library)),
        Worker::RocmSmi(args) => ("rocm_smi", &args.ask, Some(&args.library)),
    };
    let late = probes::LATE.iter().find(|(worker, _)| *worker == name);
    let sources = late.map_or(&[][..], |(_, sources)| *sources);
    (sources.to_vec(), args, library)
}
