//! Child processes that ask the machine, so that a read that never returns, a crash or a flood costs one source and never
//! the report.
//!
//! A worker writes one line per event to a pipe of its own: `begin SOURCE`, `at PATH` before each question that can block,
//! `facts SOURCE JSON`, `entry TEXT` when it records, `end SOURCE MICROSECONDS`. Every wait here has a limit, and nobody waits for the
//! end of a process: one that hangs inside the kernel survives even SIGKILL. A source without its `end` failed, whatever
//! came before it; the sources after it are asked by a fresh worker.
#![expect(
    clippy::disallowed_methods,
    reason = "workers are the only processes that are started, and from this very program"
)]

use crate::facts::{Facts, Failure, Why};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// What one line of a worker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// When the machine was looked at.
    Clock(&'a str),
    /// A source is about to be asked.
    Begin(&'a str),
    /// A question that can block is about to be asked of this path.
    At(Cow<'a, str>),
    /// What a source said, as JSON.
    Facts(&'a str, &'a str),
    /// Entries of the machine format.
    Entry(Cow<'a, str>),
    /// All that a source said was told; so many microseconds it took.
    End(&'a str, u64),
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Free text stands as JSON, so that it stays on its line.
        let quoted = |text: &str| serde_json::to_string(text).map_err(|_| fmt::Error);
        match self {
            Event::Clock(time) => write!(f, "clock {time}"),
            Event::Begin(source) => write!(f, "begin {source}"),
            Event::At(path) => write!(f, "at {}", quoted(path)?),
            Event::Facts(source, json) => write!(f, "facts {source} {json}"),
            Event::Entry(text) => write!(f, "entry {}", quoted(text)?),
            Event::End(source, took) => write!(f, "end {source} {took}"),
        }
    }
}

impl<'a> Event<'a> {
    /// Reads a line. None: it is none of ours.
    pub fn parse(line: &'a str) -> Option<Event<'a>> {
        let (word, rest) = line.split_once(' ')?;
        let unquoted = || serde_json::from_str(rest).ok().map(Cow::Owned);
        match word {
            "clock" => Some(Event::Clock(rest)),
            "begin" => Some(Event::Begin(rest)),
            "at" => unquoted().map(Event::At),
            "facts" => rest
                .split_once(' ')
                .map(|(source, json)| Event::Facts(source, json)),
            "entry" => unquoted().map(Event::Entry),
            "end" => {
                let (source, took) = rest.split_once(' ')?;
                Some(Event::End(source, took.parse().ok()?))
            }
            _ => None,
        }
    }
}

/// How long and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One source.
    pub source: Duration,
    /// All sources together.
    pub run: Duration,
    /// From then on the user is told what is waited for.
    pub patience: Duration,
    /// Longest line of a worker, in bytes.
    pub line: usize,
    /// All output of one worker, in bytes.
    pub total: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            source: Duration::from_secs(5),
            run: Duration::from_secs(60),
            patience: Duration::from_secs(1),
            line: 8 * 1024 * 1024,
            total: 64 * 1024 * 1024,
        }
    }
}

/// What to ask, and by which program.
pub struct Plan<'a> {
    /// The worker.
    pub program: PathBuf,
    /// Its arguments; `--from SOURCE` is added.
    pub arguments: Vec<OsString>,
    /// The sources in the order in which the worker asks them.
    pub sources: &'a [&'static str],
    /// How long and how much.
    pub limits: Limits,
    /// Called with what is waited for, once a source.
    pub waiting: &'a dyn Fn(&str),
}

/// What the workers told.
#[derive(Debug, Default)]
pub struct Gathered {
    /// What each source said, or how it failed.
    pub facts: Facts,
    /// When the machine was looked at.
    pub clock: Option<String>,
    /// Entries of the machine format, in order.
    pub entries: Vec<String>,
    /// How long each source took that came to its end.
    pub took: Vec<(&'static str, Duration)>,
    /// Sources that did not come to their end.
    pub failed: Vec<(&'static str, Failure)>,
    /// No worker asked anything at all: that is no answer, but a fault of gpucheck or of the place it runs in.
    pub fault: Option<String>,
}

impl Gathered {
    /// Takes over what workers told that asked other sources.
    pub fn add(&mut self, sources: &[&str], mut other: Gathered) {
        for source in sources {
            self.facts.take_field(source, &mut other.facts);
        }
        self.entries.append(&mut other.entries);
        self.took.append(&mut other.took);
        self.failed.append(&mut other.failed);
    }
}

/// The program that runs: a worker is the same program.
pub fn this_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// For a worker: end when the process that started it ends, and everything with it that it started itself.
pub fn end_with_parent() {
    let output = io::stdout().as_fd().try_clone_to_owned();
    let watches = output.is_ok_and(|output| {
        let has_reader = is_pipe(&output);
        let watch = move || {
            // Without events this returns when nobody has the other end any more, and any kind of end closes that.
            let mut pipe = [PollFd::new(&output, PollFlags::empty())];
            while rustix::event::poll(&mut pipe, None) == Err(Errno::INTR) {}
            end_own_group();
        };
        has_reader && leads_group() && std::thread::Builder::new().spawn(watch).is_ok()
    });
    // The signal is the worker's alone, and mostly comes before the watch has done its work. Where neither can be had a
    // worker still ends at its next line, when nobody reads the pipe.
    if !watches {
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    }
}

fn is_pipe(file: impl AsFd) -> bool {
    rustix::fs::fstat(file)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// Who was started by hand may share a group with others.
fn leads_group() -> bool {
    rustix::process::getpgrp() == rustix::process::getpid()
}

fn end_own_group() {
    if leads_group() {
        let _ = rustix::process::kill_current_process_group(Signal::KILL);
    }
}

/// Where a worker tells its events: its standard output, out of reach of anything that prints there. What a library prints
/// would be taken for an answer.
pub struct Output(File);

impl Output {
    /// Takes the standard output for itself.
    pub fn take() -> io::Result<Output> {
        let own = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let nowhere = File::options().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&nowhere)?;
        Ok(Output(own))
    }

    /// One line, written at once: what stands in a buffer when a read hangs tells nobody anything.
    pub fn tell(&self, event: &Event) -> io::Result<()> {
        let told = (&self.0).write_all(format!("{event}\n").as_bytes());
        if told.is_err() && is_pipe(&self.0) {
            // Nobody reads any more; what was started may be at work all the same.
            end_own_group();
        }
        told
    }
}

/// Most memory that a library may fill, in bytes. What it only reserves, as CUDA does by terabytes, does not count.
const MOST_MEMORY: u64 = 4 << 30;

/// For a worker: from now on it can make, remove and rename no files and nodes, change no modules, mounts and namespaces,
/// start no other program, leave its process group and signal nobody else. Drivers' libraries make device nodes, load kernel modules
/// and run setuid programs when they are merely asked; without that they answer just as well. What they need stays: to
/// open what is there for writing, as devices are, and to ask a daemon. No protection from a library that means harm.
///
/// # Errors
/// This processor or kernel has no such filter; all that is sure then is that no setuid program gains rights.
pub fn confine() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let memory = rustix::process::getrlimit(Resource::Data);
    let lower =
        |limit: Option<u64>| Some(limit.map_or(MOST_MEMORY, |limit| limit.min(MOST_MEMORY)));
    let lower = Rlimit {
        current: lower(memory.current),
        maximum: lower(memory.maximum),
    };
    // A process may always lower its own; where it is refused all the same the machine's memory is the limit.
    let _ = rustix::process::setrlimit(Resource::Data, lower);
    // Holds for this thread and what it starts: beside it there is only the one that waits for the end of the parent.
    for (calls, errno) in [
        (refused_calls()?, libc::EPERM),
        (unseen_calls(), libc::ENOSYS),
    ] {
        let errno = SeccompAction::Errno(errno.unsigned_abs());
        let arch = std::env::consts::ARCH
            .try_into()
            .map_err(io::Error::other)?;
        let filter = SeccompFilter::new(calls, SeccompAction::Allow, errno, arch);
        let filter: BpfProgram = filter
            .and_then(SeccompFilter::try_into)
            .map_err(io::Error::other)?;
        seccompiler::apply_filter(&filter).map_err(io::Error::other)?;
    }
    Ok(())
}

/// What a library may not do.
fn refused_calls() -> io::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let mut calls = vec![
        libc::SYS_acct,
        libc::SYS_add_key,
        libc::SYS_adjtimex,
        libc::SYS_bind,
        libc::SYS_bpf,
        libc::SYS_chroot,
        libc::SYS_clock_adjtime,
        libc::SYS_clock_settime,
        libc::SYS_delete_module,
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_fallocate,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_finit_module,
        libc::SYS_fremovexattr,
        libc::SYS_fsconfig,
        libc::SYS_fsetxattr,
        libc::SYS_fsmount,
        libc::SYS_fsopen,
        libc::SYS_init_module,
        // What it does passes by this filter.
        libc::SYS_io_uring_setup,
        libc::SYS_kexec_file_load,
        libc::SYS_kexec_load,
        libc::SYS_keyctl,
        libc::SYS_linkat,
        libc::SYS_listen,
        libc::SYS_lremovexattr,
        libc::SYS_lsetxattr,
        libc::SYS_mkdirat,
        libc::SYS_mknodat,
        libc::SYS_mount,
        libc::SYS_mount_setattr,
        libc::SYS_move_mount,
        libc::SYS_mq_open,
        libc::SYS_mq_unlink,
        libc::SYS_msgctl,
        libc::SYS_msgget,
        libc::SYS_open_tree,
        libc::SYS_pidfd_send_signal,
        libc::SYS_pivot_root,
        libc::SYS_process_vm_writev,
        libc::SYS_ptrace,
        libc::SYS_quotactl,
        libc::SYS_reboot,
        libc::SYS_removexattr,
        libc::SYS_renameat2,
        libc::SYS_request_key,
        libc::SYS_semctl,
        libc::SYS_semget,
        libc::SYS_setdomainname,
        libc::SYS_sethostname,
        // Out of the group it would live on when that is killed.
        libc::SYS_setpgid,
        libc::SYS_setsid,
        libc::SYS_setns,
        libc::SYS_settimeofday,
        libc::SYS_setxattr,
        libc::SYS_shmctl,
        libc::SYS_shmget,
        libc::SYS_swapoff,
        libc::SYS_swapon,
        libc::SYS_symlinkat,
        // Reads the kernel log, and clears it.
        libc::SYS_syslog,
        libc::SYS_truncate,
        libc::SYS_umount2,
        libc::SYS_unlinkat,
        libc::SYS_unshare,
        libc::SYS_utimensat,
        libc::SYS_vhangup,
    ];
    // Later architectures have only the forms that take a folder.
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        libc::SYS_chmod,
        libc::SYS_chown,
        libc::SYS_creat,
        libc::SYS_futimesat,
        libc::SYS_ioperm,
        libc::SYS_iopl,
        libc::SYS_lchown,
        libc::SYS_link,
        libc::SYS_mkdir,
        libc::SYS_mknod,
        libc::SYS_rename,
        libc::SYS_renameat,
        libc::SYS_rmdir,
        libc::SYS_symlink,
        libc::SYS_unlink,
        libc::SYS_utime,
        libc::SYS_utimes,
    ]);
    #[cfg(target_arch = "aarch64")]
    calls.push(libc::SYS_renameat);
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> =
        calls.into_iter().map(|call| (call, Vec::new())).collect();
    // No file is made or emptied by opening it.
    let makes = [libc::O_CREAT, libc::O_TRUNC];
    calls.insert(libc::SYS_openat, with_any(2, makes)?);
    #[cfg(target_arch = "x86_64")]
    calls.insert(libc::SYS_open, with_any(1, makes)?);
    // Threads and processes are made in the namespaces that are there.
    let namespaces = [
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWUTS,
    ];
    calls.insert(libc::SYS_clone, with_any(0, namespaces)?);
    // Attributes of files, and what types into a terminal.
    let changes: [u32; 5] = [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x5412, 0x541c];
    let changes = changes.into_iter();
    let changes = changes.map(|request| rule([condition(1, SeccompCmpOp::Eq, request)?]));
    calls.insert(libc::SYS_ioctl, changes.collect::<io::Result<_>>()?);
    // Nobody but this process is meant, by its number or by none; what it starts has another one.
    let own = rustix::process::getpid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs();
    let others = |argument| condition(argument, SeccompCmpOp::Ne, own);
    let set = |argument| condition(argument, SeccompCmpOp::Ne, 0);
    for call in [
        libc::SYS_kill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_tgkill,
        libc::SYS_tkill,
    ] {
        calls.insert(call, vec![rule([others(0)?])?]);
    }
    calls.insert(libc::SYS_prlimit64, vec![rule([others(0)?, set(0)?])?]);
    calls.insert(
        libc::SYS_setpriority,
        vec![rule([set(0)?])?, rule([others(1)?, set(1)?])?],
    );
    Ok(calls)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u32) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
        .map_err(io::Error::other)
}

/// All of these are so.
fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions.into()).map_err(io::Error::other)
}

/// Any of the flags is set.
fn with_any<const N: usize>(argument: u8, flags: [i32; N]) -> io::Result<Vec<SeccompRule>> {
    let flags = flags.map(i32::unsigned_abs).into_iter();
    flags
        .map(|flag| {
            let operator = SeccompCmpOp::MaskedEq(flag.into());
            rule([condition(argument, operator, flag)?])
        })
        .collect()
}

/// Calls whose arguments a filter cannot see, and which everybody can do without. Newer ones have no name in `libc` yet; their
/// numbers are the same on all architectures.
fn unseen_calls() -> BTreeMap<i64, Vec<SeccompRule>> {
    const FCHMODAT2: i64 = 452;
    const SETXATTRAT: i64 = 463;
    const REMOVEXATTRAT: i64 = 466;
    let calls = [
        libc::SYS_clone3,
        libc::SYS_openat2,
        FCHMODAT2,
        SETXATTRAT,
        REMOVEXATTRAT,
    ];
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}

/// Asks all sources, in as many workers as it takes.
pub fn gather(plan: &Plan) -> Gathered {
    let mut run = Run {
        plan,
        end: Instant::now() + plan.limits.run,
        left: plan.sources.iter().copied().collect(),
        bytes: 0,
        current: None,
        since: Instant::now(),
        began: 0,
        gathered: Gathered::default(),
    };
    while let Some(first) = run.left.front().copied() {
        if Instant::now() >= run.end {
            run.leave_out_the_rest();
            break;
        }
        let began = run.began;
        let Err(failure) = run.one_worker(first) else {
            break;
        };
        if let Some(current) = run.current.take() {
            run.gathered.entries.truncate(current.entries);
            run.fail(current.source, failure);
        } else if run.began == began {
            // The next worker would do no better.
            if began == 0 {
                run.gathered.fault = Some(failure.to_string());
            }
            for source in std::mem::take(&mut run.left) {
                run.fail(source, failure.clone());
            }
        }
    }
    run.gathered
}

/// The source that is being asked.
struct Current {
    source: &'static str,
    /// The last path that the worker named.
    at: Option<String>,
    answered: bool,
    told: bool,
    /// How many entries came before it.
    entries: usize,
}

struct Run<'a> {
    plan: &'a Plan<'a>,
    end: Instant,
    left: VecDeque<&'static str>,
    /// What the present worker wrote.
    bytes: usize,
    current: Option<Current>,
    /// When the current source was begun; between two sources, when the last one or the start of the worker ended.
    since: Instant,
    /// How many sources were begun so far.
    began: usize,
    gathered: Gathered,
}

/// What the threads beside a worker tell.
enum Message {
    Bytes(Vec<u8>),
    Closed,
    Exited(String),
}

/// Output that is still in the pipe when a worker has ended arrives within this; what holds the pipe open for longer is
/// some other process.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes taken from the pipe at once.
const CHUNK: usize = 64 * 1024;
/// Chunks that may wait to be looked at.
const CHUNKS: usize = 16;

impl Run<'_> {
    /// Follows one worker until nothing is left to ask, or until it failed. It is gone or given up afterwards.
    fn one_worker(&mut self, first: &'static str) -> Result<(), Failure> {
        let mut child = Command::new(&self.plan.program)
            .args(&self.plan.arguments)
            .arg("--from")
            .arg(first)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::Error {
                what: format!("the worker could not be started: {error}"),
            })?;
        let group = Pid::from_child(&child);
        let output = child.stdout.take();
        let (sender, receiver) = mpsc::sync_channel(CHUNKS);
        let (keep_unreaped, may_reap) = mpsc::channel::<()>();
        if let Some(output) = output {
            let sender = sender.clone();
            std::thread::spawn(move || pass_on(output, &sender));
        }
        std::thread::spawn(move || {
            tell_exit(&child, &sender);
            // Until it is reaped nobody else can have its number, and the group can be killed without a doubt.
            let _ = may_reap.recv();
            let _ = child.wait();
        });
        let followed = self.follow(&receiver);
        // Also after a good end: nothing that the worker started may stay behind. A group that is gone is no error.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        drop(keep_unreaped);
        followed
    }

    fn follow(&mut self, messages: &Receiver<Message>) -> Result<(), Failure> {
        self.since = Instant::now();
        self.bytes = 0;
        let mut pending = Vec::new();
        let mut exited: Option<(String, Instant)> = None;
        let mut closed: Option<Instant> = None;
        loop {
            let now = Instant::now();
            let over = match exited.as_ref().map(|(_, at)| *at).or(closed) {
                Some(at) => at + GRACE,
                None => (self.since + self.plan.limits.source).min(self.end),
            };
            let wake = self.tell_waiting(now).map_or(over, |tell| tell.min(over));
            // What has arrived counts, however late it is looked at: on a busy machine that is no fault of the worker.
            match messages.recv_timeout(wake.saturating_duration_since(now)) {
                Ok(Message::Bytes(bytes)) => {
                    self.take(&bytes, &mut pending)?;
                    if self.left.is_empty() {
                        return Ok(());
                    }
                }
                Ok(Message::Closed) => closed = Some(Instant::now()),
                Ok(Message::Exited(how)) => exited = Some((how, Instant::now())),
                Err(RecvTimeoutError::Timeout) if wake < over => {}
                Err(RecvTimeoutError::Timeout) => return Err(self.ended(exited, closed)),
                Err(RecvTimeoutError::Disconnected) => {
                    closed.get_or_insert(now);
                    exited.get_or_insert(("nobody saw how".to_owned(), now));
                }
            }
            if exited.is_some() && closed.is_some() {
                return Err(self.ended(exited, closed));
            }
        }
    }

    /// How a worker failed that ended, or whose time is over.
    fn ended(&self, exited: Option<(String, Instant)>, closed: Option<Instant>) -> Failure {
        match exited {
            Some((how, _)) => Failure::Crashed { how },
            None if closed.is_some() => Failure::Crashed {
                how: "it closed its output".to_owned(),
            },
            None => Failure::TimedOut { at: self.place() },
        }
    }

    /// Tells what is waited for when it is time to. The answer is when that will be; None: not again for this source.
    fn tell_waiting(&mut self, now: Instant) -> Option<Instant> {
        let when = self.since + self.plan.limits.patience;
        let current = self.current.as_mut().filter(|current| !current.told)?;
        if now < when {
            return Some(when);
        }
        current.told = true;
        (self.plan.waiting)(current.at.as_deref().unwrap_or(current.source));
        None
    }

    fn place(&self) -> String {
        self.current.as_ref().map_or_else(
            || "the start of the worker".to_owned(),
            |current| {
                current
                    .at
                    .clone()
                    .unwrap_or_else(|| current.source.to_owned())
            },
        )
    }

    /// Takes in the lines that these bytes end.
    fn take(&mut self, bytes: &[u8], pending: &mut Vec<u8>) -> Result<(), Failure> {
        let flood = || Failure::Error {
            what: "the worker wrote more than it may".to_owned(),
        };
        self.bytes += bytes.len();
        if self.bytes > self.plan.limits.total {
            return Err(flood());
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if pending.len() + part.len() > self.plan.limits.line {
                return Err(flood());
            }
            pending.extend_from_slice(part);
            if pending.last() == Some(&b'\n') {
                pending.pop();
                let line = std::mem::take(pending);
                std::str::from_utf8(&line)
                    .ok()
                    .and_then(Event::parse)
                    .and_then(|event| self.event(event))
                    .ok_or_else(|| Failure::Error {
                        what: "the worker's answer made no sense".to_owned(),
                    })?;
            }
        }
        Ok(())
    }

    /// Takes in one event. None: it makes no sense here.
    fn event(&mut self, event: Event) -> Option<()> {
        match (event, &mut self.current) {
            (Event::Clock(time), _) => self.gathered.clock = Some(time.to_owned()),
            (Event::Begin(name), current @ None) => {
                let source = *self.left.front().filter(|source| **source == name)?;
                self.began += 1;
                self.since = Instant::now();
                *current = Some(Current {
                    source,
                    at: None,
                    answered: false,
                    told: false,
                    entries: self.gathered.entries.len(),
                });
            }
            (Event::At(path), Some(current)) => current.at = Some(path.into_owned()),
            (Event::Facts(name, json), Some(current)) if current.source == name => {
                if !self.gathered.facts.set_field_from_json(name, json) {
                    return None;
                }
                current.answered = true;
            }
            (Event::Entry(text), _) => self.gathered.entries.push(text.into_owned()),
            (Event::End(name, took), Some(current))
                if current.source == name && current.answered =>
            {
                let took = Duration::from_micros(took);
                self.gathered.took.push((current.source, took));
                self.since = Instant::now();
                self.left.pop_front();
                self.current = None;
            }
            _ => return None,
        }
        Some(())
    }

    fn fail(&mut self, source: &'static str, failure: Failure) {
        self.left.retain(|left| *left != source);
        self.gathered
            .facts
            .set_field_failed(source, failure.clone());
        self.gathered.failed.push((source, failure));
    }

    /// The run has lasted its time: what is left was not asked.
    fn leave_out_the_rest(&mut self) {
        for source in self.left.drain(..) {
            self.gathered.facts.set_field_unasked(source, Why::Limit);
        }
    }
}

/// Hands on what the worker writes, until nobody listens.
fn pass_on(mut output: impl Read, sender: &SyncSender<Message>) {
    let mut chunk = vec![0; CHUNK];
    loop {
        match output.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => {
                if sender
                    .send(Message::Bytes(chunk[..length].to_vec()))
                    .is_err()
                {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let _ = sender.send(Message::Closed);
}

/// Waits for the end of the worker, for as long as it takes, and tells how it ended. Does not reap it.
fn tell_exit(child: &Child, sender: &SyncSender<Message>) {
    let pid = Pid::from_child(child);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let how = loop {
        match rustix::process::waitid(WaitId::Pid(pid), options) {
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => break format!("exit status {code}"),
                (_, Some(signal)) => break signal_name(signal),
                (None, None) => break "nobody saw how".to_owned(),
            },
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break "nobody saw how".to_owned(),
        }
    };
    let _ = sender.send(Message::Exited(how));
}

fn signal_name(signal: i32) -> String {
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
    ];
    known
        .iter()
        .find(|(known, _)| known.as_raw() == signal)
        .map_or_else(
            || format!("signal {signal}"),
            |(_, name)| (*name).to_owned(),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_from_their_lines() {
        for event in [
            Event::Clock("2026-11-30T12:00:00Z"),
            Event::Begin("pci"),
            Event::At("/sys/a b\n\u{1b}".into()),
            Event::Facts("pci", r#"{"got":{"a b":1}}"#),
            Event::Entry("file /x\n| a\n".into()),
            Event::End("pci", 1500),
        ] {
            let line = event.to_string();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Event::parse(&line), Some(event));
        }
        for line in [
            "",
            "begin",
            "at /x",
            "facts pci",
            "entry \"",
            "end pci",
            "end pci x",
            "hello world",
        ] {
            assert_eq!(Event::parse(line), None, "{line}");
        }
    }
}
