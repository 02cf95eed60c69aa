//! Looking at a machine: the running one and a folder through workers, a recorded one in this process.

use crate::cli::LookArgs;
use crate::facts::{Facts, Failure};
use crate::files;
use crate::host::archive::Archive;
use crate::host::machine::Entries;
use crate::host::redact::Redactor;
#[cfg(target_os = "linux")]
use crate::host::redact::{self, Private};
use crate::host::{Host, Options};
use crate::probes::{self, Probe};
use crate::report::Origin;
use crate::tables::Tables;
use crate::view::{Allowed, Asking, View};
#[cfg(target_os = "linux")]
use crate::{
    facts::Seen,
    host::machine::{self, Entry, NOT_LOADED},
    worker::Gathered,
};
use anyhow::{Context, Result, bail};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// What looking gave.
pub struct Looked {
    /// What each source said.
    pub facts: Facts,
    /// Where that comes from.
    pub origin: Origin,
    /// Entries of the machine format, where they were asked for.
    pub entries: Vec<String>,
    /// How long each source took.
    pub took: Vec<(String, Duration)>,
    /// Sources that did not come to their end.
    pub failed: Vec<(&'static str, Failure)>,
}

/// What may be read, as the flags say.
pub fn options(args: &LookArgs) -> Options {
    Options {
        quick: args.quick,
        wake: args.wake,
        user: args.user.clone(),
        library: None,
    }
}

/// Asks one source. A bug in its probe is a failure of that source alone.
pub fn ask(host: &Host, (source, probe): &Probe, facts: &mut Facts) {
    if catch_unwind(AssertUnwindSafe(|| probe(host, facts))).is_err() {
        let how = "a bug in gpucheck".to_owned();
        facts.set_field_failed(source, Failure::Crashed { how });
    }
}

/// A recorded machine; `-` is standard input.
pub fn replay(path: &Path, args: &LookArgs, tables: &Tables) -> Result<Looked> {
    let name = || format!("cannot replay `{}`", path.display());
    let text = files::read(path).with_context(name)?;
    // It may stay until the program ends, which is soon: entries are parts of it.
    let entries = Entries::parse(text.leak())
        .map_err(anyhow::Error::msg)
        .with_context(name)?;
    if let Some(base) = entries.base() {
        bail!("{}: it rests on `{base}`, which only tests have", name());
    }
    let words = origin(entries.made_by.as_deref());
    let host = Host::new(
        Box::new(Archive::new(entries)),
        Redactor::off(),
        options(args),
    );
    let clock = host.clock();
    let mut facts = Facts::default();
    let mut took = Vec::new();
    let mut ask_timed = |source: &str, facts: &mut Facts| {
        let start = Instant::now();
        if let Some(probe) = probes::named(source) {
            ask(&host, probe, facts);
        }
        took.push((source.to_owned(), start.elapsed()));
    };
    for source in probes::files() {
        ask_timed(source, &mut facts);
    }
    for late in Late::of(&facts, tables, args) {
        // What a library answered may be recorded, whatever would be done about it today.
        if late.asking == Asking::Yes || late.is_library() {
            for source in late.sources {
                ask_timed(source, &mut facts);
            }
        }
        late.note_unasked(&mut facts);
    }
    // The process ends soon, and taking a large machine apart entry by entry takes longer than judging it.
    std::mem::forget(host);
    known_user(&facts, args)?;
    Ok(Looked {
        facts,
        origin: Origin { words, clock },
        entries: Vec::new(),
        took,
        failed: Vec::new(),
    })
}

/// A worker of the second round.
struct Late {
    worker: &'static str,
    sources: &'static [&'static str],
    asking: Asking,
}

impl Late {
    /// All of them, with whether they are to ask, by what the files show.
    fn of(facts: &Facts, tables: &Tables, args: &LookArgs) -> Vec<Late> {
        let view = View::new(facts, tables, &[]);
        let allowed = Allowed {
            quick: args.quick,
            wake: args.wake,
        };
        let late = probes::LATE.iter();
        late.map(|(worker, sources)| Late {
            worker,
            sources,
            asking: view.asking(worker, allowed),
        })
        .collect()
    }

    fn is_library(&self) -> bool {
        self.worker != "system"
    }

    /// Says of sources of which nothing is known why they are not asked.
    fn note_unasked(&self, facts: &mut Facts) {
        if let Asking::No(why) = self.asking {
            for source in self.sources {
                if facts.is_not_captured(source) {
                    facts.set_field_unasked(source, why);
                }
            }
        }
    }
}

/// The user of `--user` must be found: judging somebody else in silence would be a false answer.
fn known_user(facts: &Facts, args: &LookArgs) -> Result<()> {
    let users = facts.users.got();
    if let (Some(_), Some(name)) = (
        users.and_then(|users| users.unknown_user.as_ref()),
        &args.user,
    ) {
        bail!(
            "/etc/passwd has no user `{name}` that could be judged; `--user` takes the number of a user, too"
        );
    }
    Ok(())
}

/// Who wrote a recorded machine down, in words. The field reads `gpucheck 0.1.0 live redacted`.
fn origin(made_by: Option<&str>) -> String {
    let fields: Vec<&str> = made_by.unwrap_or_default().split_whitespace().collect();
    match fields[..] {
        [program, version, "live", ..] => {
            format!("replay of a live capture by {program} {version}")
        }
        [program, version, "root", ..] => {
            format!("replay of a capture of a root by {program} {version}")
        }
        [_, _, "hand", ..] => "replay of a machine written by hand".to_owned(),
        _ => "replay of a recorded machine".to_owned(),
    }
}

/// The running system, or the one below `--root`; with `record` every answer is written down.
#[cfg(target_os = "linux")]
pub fn look(args: &LookArgs, tables: &Tables, record: bool) -> Result<Looked> {
    use super::probe;
    use crate::worker::{self, Limits, Plan};

    let start = Instant::now();
    let limits = limits(args.timeout, Limits::default());
    // Every worker makes the same placeholders of the same values.
    let salt = salt(args, limits.source)?;
    let redactor = if args.keep_private {
        Redactor::off()
    } else {
        Redactor::on(salt, Private::default())
    };
    let words = match &args.root {
        None => "live".to_owned(),
        Some(root) => format!("root {}", redactor.path(&root.to_string_lossy())),
    };
    let program = worker::this_program().context("cannot find the program that runs")?;
    let gather = |worker: &str, library: Option<&str>, sources: &[&'static str], limits| {
        worker::gather(&Plan {
            program: program.clone(),
            arguments: probe::arguments(worker, args, record, salt, library),
            sources,
            limits,
            waiting: &|place| super::say(&format!("waiting for {place}")),
        })
    };
    let files: Vec<&str> = probes::files().collect();
    let mut gathered = gather("files", None, &files, limits);
    if let Some(fault) = gathered.fault {
        bail!("the process that reads the machine did not work: {fault}");
    }
    let late = Late::of(&gathered.facts, tables, args);
    // All at once: whatever hangs, it is waited for together.
    let told: Vec<(&[&str], worker::Gathered)> = std::thread::scope(|scope| {
        let running: Vec<_> = late
            .iter()
            .filter_map(|late| {
                let (library, source) = match &late.asking {
                    Asking::Yes => (None, limits.source),
                    Asking::Load(library) if args.root.is_none() => (
                        Some(library.as_str()),
                        args.timeout.unwrap_or(LIBRARY_LIMIT),
                    ),
                    _ => return None,
                };
                let run = limits.run.saturating_sub(start.elapsed());
                let limits = Limits {
                    source,
                    run,
                    ..limits
                };
                let gather = &gather;
                let asking = move || gather(late.worker, library, late.sources, limits);
                Some((late.sources, scope.spawn(asking)))
            })
            .collect();
        let told = running.into_iter();
        told.map(|(sources, told)| (sources, told.join().unwrap_or_default()))
            .collect()
    });
    for (sources, told) in told {
        gathered.add(sources, told);
    }
    for late in late {
        late.note_unasked(&mut gathered.facts);
        if args.root.is_none() && late.is_library() {
            late.note_unloaded(&mut gathered.facts);
            gathered
                .failed
                .retain(|(source, _)| !late.sources.contains(source));
            if record {
                let entries: Vec<String> = late.entries(&gathered).collect();
                gathered.entries.extend(entries);
            }
        }
    }
    known_user(&gathered.facts, args)?;
    let took = gathered.took.into_iter();
    Ok(Looked {
        facts: gathered.facts,
        origin: Origin {
            words,
            clock: gathered.clock,
        },
        entries: gathered.entries,
        took: took
            .map(|(source, took)| (source.to_owned(), took))
            .collect(),
        failed: gathered.failed,
    })
}

/// How long a library of a driver may take: on a host with many GPUs its start alone can take 10 seconds and more.
#[cfg(target_os = "linux")]
const LIBRARY_LIMIT: Duration = Duration::from_secs(30);

#[cfg(target_os = "linux")]
impl Late {
    /// Says of a library that there is none to load.
    fn note_unloaded(&self, facts: &mut Facts) {
        if let Asking::NotLoaded(why) = &self.asking {
            for source in self.sources {
                let what = format!("{NOT_LOADED}{why}");
                facts.set_field_failed(source, Failure::Error { what });
            }
        }
    }

    /// Why a library did not answer, as it is written down: its worker did not come to that.
    fn entries(&self, gathered: &Gathered) -> impl Iterator<Item = String> {
        let is_written = |source: &str| {
            let start = format!("answer @{source} ");
            let mut lines = gathered.entries.iter().flat_map(|text| text.lines());
            lines.any(|line| line.starts_with(&start))
        };
        let sources = self
            .sources
            .iter()
            .filter(move |source| !is_written(source));
        sources.filter_map(|source| {
            let json = gathered.facts.field_to_json(source)?.ok()?;
            let answer: Seen<serde_json::Value> = serde_json::from_str(&json).ok()?;
            let entry = Entry::Answer((*source).into(), machine::answer_to_json(&answer));
            Some(format!("{entry}\n"))
        })
    }
}

/// Asked by a thread: a root may lie on a file system that never answers, and no worker runs yet.
#[cfg(target_os = "linux")]
fn salt(args: &LookArgs, patience: Duration) -> Result<u64> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let asked = args.clone();
    std::thread::spawn(move || {
        let salt = super::probe::source(&asked).map(|source| redact::salt(&*source));
        // Nobody listens any more where it took too long.
        let _ = sender.send(salt);
    });
    receiver.recv_timeout(patience).unwrap_or_else(|_| {
        let root = args.root.as_deref().unwrap_or(Path::new("/"));
        bail!("no answer in time at `{}`", root.display())
    })
}

/// Elsewhere only recorded machines can be judged.
#[cfg(not(target_os = "linux"))]
pub fn look(_args: &LookArgs, _tables: &Tables, _record: bool) -> Result<Looked> {
    bail!("only Linux systems can be looked at; `gpucheck --replay FILE` works here")
}

/// A longer limit for one source makes room for it in the whole run.
#[cfg(target_os = "linux")]
fn limits(timeout: Option<Duration>, usual: crate::worker::Limits) -> crate::worker::Limits {
    let source = timeout.unwrap_or(usual.source);
    crate::worker::Limits {
        source,
        run: usual.run.max(source * 2),
        ..usual
    }
}
