//! What the user names: recorded machines, table folders, places for output; and the variables that steer our own output.
//! Nothing here asks about the machine under diagnosis.
#![expect(
    clippy::disallowed_methods,
    reason = "the files that the user names are opened here and nowhere else"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// Longest recorded machine that is read, in bytes.
pub const READ_LIMIT: usize = 64 * 1024 * 1024;
/// Longest table that is read, in bytes.
const TABLE_LIMIT: usize = 8 * 1024 * 1024;
/// Most files in a folder of tables.
const TABLE_COUNT: usize = 200;
/// Where nothing comes for so long nothing will: a FIFO that nobody writes to, a dead network mount.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the path means a standard stream.
pub fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// All text of a file; `-` is standard input. FIFOs and devices are read too (`<(unpack)` is one), but for 64 MiB at most
/// and not where nothing comes.
pub fn read(path: &Path) -> io::Result<String> {
    if is_stream(path) {
        return read_text(io::stdin().lock(), READ_LIMIT);
    }
    text_of(read_patiently(path, READ_LIMIT)?, READ_LIMIT)
}

/// The bytes of a file, and something more where it is longer than the limit. A thread reads it, since opening and reading
/// may both block for ever.
fn read_patiently(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let (sender, chunks) = mpsc::sync_channel(4);
    let path = path.to_owned();
    std::thread::spawn(move || {
        let sent = File::open(path).and_then(|file| send_all(file, &sender));
        if let Err(error) = sent {
            let _ = sender.send(Err(error));
        }
    });
    let mut bytes = Vec::new();
    while bytes.len() <= limit {
        match chunks.recv_timeout(PATIENCE) {
            // Mostly the whole file is the first chunk: no copy of it.
            Ok(chunk) if bytes.is_empty() => bytes = chunk?,
            Ok(chunk) => bytes.append(&mut chunk?),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("nothing came for {} s", PATIENCE.as_secs()),
                ));
            }
        }
    }
    Ok(bytes)
}

/// Sends what can be read, until nobody takes it.
fn send_all(mut file: File, chunks: &SyncSender<io::Result<Vec<u8>>>) -> io::Result<()> {
    let about = file.metadata()?;
    loop {
        let mut chunk;
        if about.is_file() {
            // Nobody has to wait for the writer of a regular file.
            let size = about.len().min(1024 * 1024);
            chunk = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
            (&file).take(1024 * 1024).read_to_end(&mut chunk)?;
        } else {
            chunk = vec![0; 64 * 1024];
            let length = file.read(&mut chunk)?;
            chunk.truncate(length);
        }
        if chunk.is_empty() || chunks.send(Ok(chunk)).is_err() {
            return Ok(());
        }
    }
}

fn read_text(reader: impl Read, limit: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    text_of(bytes, limit)
}

fn text_of(bytes: Vec<u8>, limit: usize) -> io::Result<String> {
    if bytes.len() > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("longer than {} MiB", limit / 1024 / 1024),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("no UTF-8 text, from byte {at} on"),
        )
    })
}

/// The `.toml` and `.csv` files of a folder with their names, sorted.
pub fn read_tables(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let mut tables = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if !(name.ends_with(".toml") || name.ends_with(".csv")) || name.starts_with('.') {
            continue;
        }
        if tables.len() == TABLE_COUNT {
            return Err(io::Error::other(format!("more than {TABLE_COUNT} tables")));
        }
        let in_file = |error: io::Error| io::Error::new(error.kind(), format!("`{name}`: {error}"));
        if !fs::metadata(&path).map_err(in_file)?.is_file() {
            return Err(in_file(io::Error::other("not a regular file")));
        }
        let text = File::open(&path)
            .and_then(|file| read_text(file, TABLE_LIMIT))
            .map_err(in_file)?;
        tables.push((name.to_owned(), text));
    }
    tables.sort();
    Ok(tables)
}

/// Writes to standard output (`-`) or to a file that only its owner may read. The file is there whole or not at all: a new
/// one is written beside it and takes its place. A link to a regular file is replaced, not followed. Anything else that
/// stands there (a FIFO, a device, a folder, a link to such or to nothing) is an error.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if is_stream(path) || path == Path::new("/dev/stdout") {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        return stdout.flush();
    }
    refuse_special(path)?;
    replace(path, bytes, 0o600)
}

/// Writes a file that everybody may read, and the folders above it.
pub fn write_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    refuse_special(path)?;
    replace(path, bytes, 0o644)
}

fn refuse_special(path: &Path) -> io::Result<()> {
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if there.is_symlink() {
        // `/dev/stderr` is a link that leads to a regular file where the stream was redirected; it must stay.
        let in_dev = folder_of(path)
            .canonicalize()
            .is_ok_and(|folder| folder.starts_with("/dev") || folder.starts_with("/proc"));
        if in_dev || !fs::metadata(path).is_ok_and(|target| target.is_file()) {
            return refused("a link that does not lead to a regular file");
        }
        return Ok(());
    }
    if there.is_dir() {
        return refused("a folder, not a file");
    }
    if !there.is_file() {
        return refused("not a regular file");
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (temporary, mut file) = new_beside(path, mode)?;
    let done = file
        .write_all(bytes)
        .and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        // Nothing more can be done where this fails too; the first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    done
}

/// A new file in the same folder, under a name that nobody had.
fn new_beside(path: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let folder = folder_of(path);
    for attempt in 0..100 {
        let name = format!(".gpucheck-{}-{attempt}.tmp", std::process::id());
        let temporary = folder.join(name);
        match options.open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

/// A variable that steers how gpucheck itself writes (`NO_COLOR`, `COLUMNS`, `LANG`); None where it is unset or no text.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_bounded_and_utf8() {
        assert_eq!(read_text(&b"abc"[..], 3).expect("fits"), "abc");
        let long = read_text(io::repeat(b'a'), 3).expect_err("endless");
        assert_eq!(long.kind(), io::ErrorKind::FileTooLarge);
        let odd = read_text(&b"ab\xff"[..], 9).expect_err("no text");
        assert_eq!(odd.to_string(), "no UTF-8 text, from byte 2 on");
    }

    #[test]
    fn the_folder_of_a_bare_name_is_the_current_one() {
        assert_eq!(folder_of(Path::new("x")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/x")), Path::new("a"));
        assert_eq!(folder_of(Path::new("/x")), Path::new("/"));
    }
}
