//! What the user names: recorded machines, table folders, places for output; and the variables that steer our own output.
//! Nothing here asks about the machine under diagnosis.
#![expect(
    clippy::disallowed_methods,
    reason = "the files that the user names are opened here and nowhere else"
)]

use std::collections::BTreeMap;
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
/// Most names in a folder of models that are looked at.
const LISTING_LIMIT: usize = 10_000;
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

/// How many bytes the files of a model have: those of one file and of the parts that belong to it
/// (`-00001-of-00003.gguf`), or of the one model in a folder. Only listings and sizes are asked for.
///
/// # Errors
/// There is no such file, a part is missing, or the folder holds no model or several.
pub fn model_bytes(path: &Path) -> io::Result<u64> {
    let (sender, answer) = mpsc::sync_channel(1);
    let path = path.to_owned();
    std::thread::spawn(move || {
        // Nobody listens any more where it took too long.
        let _ = sender.send(model_bytes_at(&path));
    });
    answer.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer for {} s", PATIENCE.as_secs()),
        ))
    })
}

fn model_bytes_at(path: &Path) -> io::Result<u64> {
    let there = fs::metadata(path)?;
    let (folder, wanted) = if there.is_dir() {
        (path, None)
    } else if there.is_file() {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some((stem, _)) = name.and_then(parts_of) else {
            return Ok(there.len());
        };
        (folder_of(path), Some(stem))
    } else {
        return Err(io::Error::other("neither a regular file nor a folder"));
    };
    let mut models = model_files(folder)?;
    models.retain(|stem, _| wanted.is_none_or(|wanted| wanted == stem));
    if models.len() > 1 {
        // A second copy of the weights, which some makers publish.
        models.retain(|stem, _| !stem.starts_with("consolidated"));
    }
    let mut models = models.iter();
    match (models.next(), models.next()) {
        (Some((_, files)), None) if files.here == files.parts => Ok(files.bytes),
        (Some((_, files)), None) => Err(io::Error::other(format!(
            "{} of the {} parts of the model are here",
            files.here, files.parts
        ))),
        (None, _) => Err(io::Error::other(
            "no .gguf and no .safetensors file is in it",
        )),
        (Some((one, _)), Some((other, _))) => Err(io::Error::other(format!(
            "it holds several models, among them `{one}` and `{other}`: name the file"
        ))),
    }
}

/// The files of a model.
#[derive(Default)]
struct ModelFiles {
    bytes: u64,
    here: u32,
    parts: u32,
}

/// For `x-00001-of-00003.gguf` the name with another number in its place, by which all its parts are known, and their number.
fn parts_of(name: &str) -> Option<(&str, u32)> {
    let (stem, kind) = name.rsplit_once('.')?;
    let (stem, parts) = stem.rsplit_once("-of-")?;
    let (stem, number) = stem.rsplit_once('-')?;
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let known = ["gguf", "safetensors"].contains(&kind);
    (known && is_number(number) && is_number(parts)).then_some((stem, parts.parse().ok()?))
}

/// The models in a folder, by the name of their files without the number. `mmproj-...` is a part that goes beside one.
fn model_files(folder: &Path) -> io::Result<BTreeMap<String, ModelFiles>> {
    let mut found: BTreeMap<String, ModelFiles> = BTreeMap::new();
    for entry in fs::read_dir(folder)?.take(LISTING_LIMIT) {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let is_model = name.ends_with(".gguf") || name.ends_with(".safetensors");
        if !is_model || name.starts_with("mmproj") || name.starts_with('.') {
            continue;
        }
        let (model, parts) = parts_of(name).unwrap_or((name, 1));
        let files = found.entry(model.to_owned()).or_default();
        files.bytes += fs::metadata(&path)?.len();
        files.here += 1;
        files.parts = parts;
    }
    Ok(found)
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
    fn parts_of_a_model_belong_together() {
        assert_eq!(
            parts_of("x-Q4_K_M-00001-of-00003.gguf"),
            Some(("x-Q4_K_M", 3))
        );
        assert_eq!(
            parts_of("model-00002-of-00010.safetensors"),
            Some(("model", 10))
        );
        for whole in ["x.gguf", "x-1-of-3.gguf", "x-00001-of-00003.bin", "x"] {
            assert_eq!(parts_of(whole), None, "{whole}");
        }
    }

    #[test]
    fn the_folder_of_a_bare_name_is_the_current_one() {
        assert_eq!(folder_of(Path::new("x")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/x")), Path::new("a"));
        assert_eq!(folder_of(Path::new("/x")), Path::new("/"));
    }
}
