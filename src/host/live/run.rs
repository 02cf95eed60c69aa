//! Runs a program of the system that only prints what is installed or what was logged. It gets nothing of this environment,
//! can change nothing, and ends with the worker that started it: it belongs to the worker's process group, which is killed
//! after its limit.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the door that others have to go through"
)]

use super::errno;
use crate::facts::{Failure, Seen};
use rustix::io::Errno;
use std::io::{Error, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Folders of the system's own programs; NixOS has them in the last.
pub const FOLDERS: [&str; 5] = [
    "/usr/bin",
    "/bin",
    "/usr/sbin",
    "/sbin",
    "/run/current-system/sw/bin",
];
/// The user and group that root's question is asked as: whose are nobody's.
const NOBODY: u32 = 65_534;
/// A program that has printed all it had to say ends at once; this long until it is asked again whether it has.
const PAUSE: Duration = Duration::from_millis(1);

/// How a program is run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of its output; one more shows that there were more.
    pub bytes: usize,
    /// How long it may take. Then it is killed, and nobody waits for it.
    pub time: Duration,
    /// Where root asks the program runs as nobody.
    pub as_nobody: bool,
}

/// Exit status and output of a program.
pub fn run(program: &str, arguments: &[&str], limits: Limits) -> Seen<(i32, Vec<u8>)> {
    let end = Instant::now() + limits.time;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", FOLDERS.join(":"))
        .env("LANG", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if limits.as_nobody && rustix::process::geteuid().is_root() {
        // Also takes the supplementary groups away.
        command.uid(NOBODY).gid(NOBODY);
    }
    let answer = command.spawn().map_err(|error| failure(&error));
    let answer = answer.and_then(|mut child| {
        let answer = output(&mut child, limits.bytes, end);
        // It has ended, has printed too much, or takes too long. An error means that it is gone.
        let _ = child.kill();
        let _ = child.try_wait();
        answer
    });
    answer.map_or_else(Seen::Failed, Seen::Got)
}

fn output(child: &mut Child, limit: usize, end: Instant) -> Result<(i32, Vec<u8>), Failure> {
    let (tell, told) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(limit as u64 + 1).read_to_end(&mut bytes);
            // Nobody listens any more when it took too long.
            let _ = tell.send(read.map(|_| bytes));
        });
    }
    let late = || Failure::errno("ETIMEDOUT");
    let bytes = told
        .recv_timeout(end.saturating_duration_since(Instant::now()))
        .map_err(|_| late())?
        .map_err(|error| failure(&error))?;
    if bytes.len() > limit {
        // Nobody waits for the rest.
        return Ok((0, bytes));
    }
    let status = loop {
        match child.try_wait().map_err(|error| failure(&error))? {
            Some(status) => break status,
            None if Instant::now() >= end => return Err(late()),
            None => std::thread::sleep(PAUSE),
        }
    };
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok((code, bytes)),
        (None, signal) => Err(Failure::Crashed {
            how: format!("signal {}", signal.unwrap_or_default()),
        }),
    }
}

fn failure(error: &Error) -> Failure {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    Failure::errno(&errno::name(errno))
}
