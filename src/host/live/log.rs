//! The two live sources of the kernel log: `/dev/kmsg` and the journal. Neither may block, and nothing is ever written.

use super::files::{Files, Last, Problem, lossy};
use super::run::{Limits, run};
use crate::facts::Seen;
use crate::host::log::KMSG;
use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Number of `/dev/kmsg` among the memory devices (`Documentation/admin-guide/devices.txt`).
const KMSG_NUMBER: (u32, u32) = (1, 11);
/// Longest record that the kernel hands out is 8 KiB (`PRINTKRB_RECORD_MAX`, before it `CONSOLE_EXT_LOG_MAX`); a shorter buffer
/// than a record is an error.
const RECORD: usize = 16 * 1024;
/// Most that is taken from `/dev/kmsg`, in bytes and time. A buffer of 2 MiB, that of a server with 512 processors, becomes
/// about twice as long when it is read.
const KMSG_LIMIT: usize = 8 << 20;
const KMSG_TIME: Duration = Duration::from_millis(300);

/// Of a long log the last so many messages. Where the boot is not among them the log does not reach back to it.
const JOURNAL_LINES: &str = "50000";
const JOURNAL_LIMIT: usize = 32 << 20;
const JOURNAL_TIME: Duration = Duration::from_secs(2);

/// The records of `/dev/kmsg`, and whether none of those that are in the kernel was lost or left out.
pub fn kmsg(files: &Files) -> Result<(String, bool), Problem> {
    let found = files.stat(KMSG, Last::Followed).map_err(Problem::Path)?;
    // Containers put links, files and FIFOs there.
    if !is_kmsg(&found) {
        return Err(Problem::NotRegular);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let device = files
        .open(KMSG, flags, Last::Followed)
        .map_err(Problem::Read)?;
    if !is_kmsg(&rustix::fs::fstat(&device).map_err(Problem::Read)?) {
        return Err(Problem::NotRegular);
    }
    let mut text = Vec::new();
    let mut whole = true;
    let mut record = vec![0; RECORD];
    let end = Instant::now() + KMSG_TIME;
    loop {
        if text.len() > KMSG_LIMIT || Instant::now() > end {
            whole = false;
            break;
        }
        match rustix::io::read(&device, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(length) => {
                text.extend_from_slice(&record[..length]);
                if !text.ends_with(b"\n") {
                    text.push(b'\n');
                }
            }
            Err(Errno::INTR) => {}
            // Records were overwritten while we read; the next read goes on with the oldest that is left.
            Err(Errno::PIPE) => whole = false,
            Err(errno) if text.is_empty() => return Err(Problem::Read(errno)),
            Err(_) => {
                whole = false;
                break;
            }
        }
    }
    Ok((lossy(&text), whole))
}

fn is_kmsg(stat: &Stat) -> bool {
    let number = (
        rustix::fs::major(stat.st_rdev),
        rustix::fs::minor(stat.st_rdev),
    );
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && number == KMSG_NUMBER
}

/// The kernel's messages of this boot as this `journalctl` prints them. Who asks may be who may read it, so that root stays
/// root.
pub fn journal(journalctl: &str) -> Seen<(String, bool)> {
    let arguments = [
        "-k",
        "-b",
        "-q",
        "-a",
        "--no-pager",
        "--no-hostname",
        "-o",
        "short-monotonic",
        "-n",
        JOURNAL_LINES,
        // `-k` takes what programs wrote into `/dev/kmsg` as well.
        "SYSLOG_FACILITY=0",
    ];
    let limits = Limits {
        bytes: JOURNAL_LIMIT,
        time: JOURNAL_TIME,
        as_nobody: false,
    };
    run(journalctl, &arguments, limits).and_then(|(_, bytes)| {
        if bytes.is_empty() {
            // The kernel always says something: whoever reads nothing may not read it, or nothing of it was kept.
            Seen::error("no-entries")
        } else {
            Seen::Got((lossy(&bytes), bytes.len() <= JOURNAL_LIMIT))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Why;
    use crate::host::Source;
    use crate::host::live::{Live, Root};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("gpucheck-log-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("dev")).unwrap();
            Folder(path)
        }

        fn files(&self) -> Files {
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            Files::below(rustix::fs::open(&self.0, flags, rustix::fs::Mode::empty()).unwrap())
        }

        fn script(&self, name: &str, body: &str) -> String {
            let path = self.0.join(name);
            fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path.to_str().unwrap().to_owned()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_the_kernels_own_device_is_read() {
        let folder = Folder::new("kmsg");
        let kmsg = folder.0.join("dev/kmsg");
        assert_eq!(
            super::kmsg(&folder.files()),
            Err(Problem::Path(Errno::NOENT))
        );
        fs::write(&kmsg, "6,1,1,-;NVRM: no record\n").unwrap();
        assert_eq!(super::kmsg(&folder.files()), Err(Problem::NotRegular));
        fs::remove_file(&kmsg).unwrap();
        let fifo = rustix::fs::mknodat(
            rustix::fs::CWD,
            &kmsg,
            FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        );
        fifo.unwrap();
        assert_eq!(super::kmsg(&folder.files()), Err(Problem::NotRegular));
        fs::remove_file(&kmsg).unwrap();
        // Containers lead it to the console.
        symlink("console", &kmsg).unwrap();
        fs::write(folder.0.join("dev/console"), "").unwrap();
        assert_eq!(super::kmsg(&folder.files()), Err(Problem::NotRegular));
        // A folder has no kernel.
        let root = Root::open(&folder.0).unwrap();
        assert_eq!(root.kmsg(), Seen::Unasked(Why::NotCaptured));
        assert_eq!(root.journal(), Seen::Unasked(Why::NotCaptured));
    }

    #[test]
    fn the_kernel_is_read_without_waiting() {
        let begun = Instant::now();
        let answer = Live::new().kmsg();
        assert!(begun.elapsed() < Duration::from_secs(5));
        if let Seen::Got((text, _)) = answer {
            assert!(text.lines().any(|line| line.contains(';')), "{text}");
        }
    }

    #[test]
    fn the_journal_is_asked_in_a_small_world_and_not_for_long() {
        let folder = Folder::new("journal");
        let begun = Instant::now();
        let plain = folder.script("plain", "/usr/bin/env; echo \"$@\"; cat");
        let (text, whole) = super::journal(&plain).into_got().unwrap();
        assert!(whole);
        assert!(
            text.contains("LANG=C\n") && !text.contains("HOME="),
            "{text}"
        );
        assert!(text.contains("-k -b -q"), "{text}");
        let silent = folder.script("silent", "exit 1");
        assert_eq!(super::journal(&silent), Seen::error("no-entries"));
        let endless = folder.script("endless", "exec /usr/bin/yes NVRM: x");
        assert!(!matches!(super::journal(&endless), Seen::Got((_, true))));
        let hangs = folder.script("hangs", "echo begun; exec /bin/sleep 600");
        assert_eq!(super::journal(&hangs), Seen::error("ETIMEDOUT"));
        let gone = folder.0.join("gone").to_str().unwrap().to_owned();
        assert_eq!(super::journal(&gone), Seen::error("ENOENT"));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
