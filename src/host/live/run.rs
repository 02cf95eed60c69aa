//! Runs a program of the system that only prints what is installed. It gets nothing of this environment, can change
//! nothing, and ends with the worker that started it: it belongs to the worker's process group, which is killed after its
//! limit.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the door that others have to go through"
)]

use crate::facts::{Failure, Seen};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

/// Folders of the system's own programs.
pub const FOLDERS: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
/// The user and group that root's question is asked as: whose are nobody's.
const NOBODY: u32 = 65_534;

/// Exit status and output of a program, at most `limit` + 1 bytes of it.
pub fn run(program: &str, arguments: &[&str], limit: usize) -> Seen<(i32, Vec<u8>)> {
    match run_it(program, arguments, limit) {
        Ok(answer) => answer,
        Err(error) => Seen::error(format!("cannot be run: {}", error.kind())),
    }
}

fn run_it(
    program: &str,
    arguments: &[&str],
    limit: usize,
) -> std::io::Result<Seen<(i32, Vec<u8>)>> {
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
    if rustix::process::geteuid().is_root() {
        // Also takes the supplementary groups away.
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.spawn()?;
    let mut output = Vec::new();
    let read = match child.stdout.take() {
        Some(stdout) => stdout
            .take(limit as u64 + 1)
            .read_to_end(&mut output)
            .map(drop),
        None => Ok(()),
    };
    if output.len() > limit || read.is_err() {
        // Nobody waits for the rest.
        child.kill()?;
        child.wait()?;
        return read.map(|()| Seen::Got((0, output)));
    }
    let status = child.wait()?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Seen::Got((code, output)),
        (None, signal) => Seen::Failed(Failure::Crashed {
            how: format!("signal {}", signal.unwrap_or_default()),
        }),
    })
}
