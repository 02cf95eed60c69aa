//! Programs load the stub of libcuda that only serves for linking.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::software::Library;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};

crate::check! {
    /// Programs load a stub of `libcuda.so.1` or `libnvidia-ml.so.1` instead of the driver's library.
    ///
    /// ## Why it matters
    /// A toolkit brings stubs along so that programs can be linked where there is no driver. They hold no code: every CUDA
    /// program that loads one ends with error 34 (`CUDA driver is a stub library`).
    ///
    /// ## How it comes about
    /// A folder `stubs` was put on `LD_LIBRARY_PATH` or into `/etc/ld.so.conf.d` to make something link, or a link
    /// `libcuda.so.1` in another folder leads to it. That stubs are on the disk is normal; for linking `LIBRARY_PATH` is the
    /// place.
    ///
    /// ## How to confirm
    /// `echo $LD_LIBRARY_PATH` and `ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'`.
    "libcuda-stub-loaded", Library, Error, each Stack, run
}

const LIBRARIES: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];
const WOULD_TELL: &str = "`ldconfig -p | grep libcuda.so.1` and `echo $LD_LIBRARY_PATH`";

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    let mut unknown = None;
    let mut fine = None;
    for name in LIBRARIES {
        match view.winner(name) {
            Seen::Got(file) if leads_to_stubs(file) => return found(name, file),
            Seen::Got(file) => fine = fine.or(Some(&file.path)),
            Seen::Absent => {}
            other => {
                unknown = unknown.or(Some(format!("{name}: {}", other.map(|_| ()).why())));
            }
        }
    }
    if let (Some(_), Some(why)) = (fine, view.unknown_before_libraries()) {
        return Verdict::cannot_tell(why, WOULD_TELL);
    }
    match (unknown, fine) {
        (Some(why), _) => Verdict::cannot_tell(why, WOULD_TELL),
        (None, Some(path)) => Verdict::fine(format!("programs load {path}")),
        (None, None) => Verdict::NotHere,
    }
}

fn leads_to_stubs(file: &Library) -> bool {
    let target = file.target.got().map_or("", String::as_str);
    (file.is_stub() || target.contains("/stubs/")) && file.via.is_some()
}

fn found(name: &str, file: &Library) -> Verdict {
    let via = file.via.as_deref().unwrap_or("the loader");
    let mut finding = Finding::new(format!(
        "programs load a stub of {name}, which only serves for linking"
    ))
    .saw(&file.path, format!("loaded by way of {via}"))
    .why("A stub holds no code: every CUDA program that loads it ends with error 34");
    if let Some(target) = file.target.got().filter(|target| **target != file.path) {
        finding = finding.saw(&file.path, format!("leads to {target}"));
    }
    finding
        .fix(
            FixCall::new("leave-stubs-out")
                .with("file", &file.path)
                .with("name", via),
        )
        .into()
}
