//! WSL: Windows lends the CUDA library, and programs do not find it.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};

crate::check! {
    /// Windows lends this WSL system its CUDA library, and the loader does not look into the folder where it is.
    ///
    /// ## Why it matters
    /// Programs that use CUDA do not start or see no GPU, although everything is there.
    ///
    /// ## How it comes about
    /// WSL writes `/etc/ld.so.conf.d/ld.wsl.conf` and renews the loader's cache when it starts a distribution, unless
    /// `ldconfig=false` in `/etc/wsl.conf` or the distribution itself prevents it. Services, `sudo` and containers do not take
    /// `LD_LIBRARY_PATH` along.
    ///
    /// ## How to confirm
    /// `ldconfig -p | grep libcuda.so.1` prints nothing, and `ls /usr/lib/wsl/lib/libcuda.so.1` does.
    "wsl-libcuda-not-on-path", Library, Error, each Stack, run, later ["smi-only"]
}

const LENT: &str = "/usr/lib/wsl/lib/libcuda.so.1";
const CACHE: &str = "/etc/ld.so.cache";
const WOULD_TELL: &str = "`ldconfig -p | grep libcuda.so.1`";

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl() != Some(2) || view.in_container() {
        return Verdict::NotHere;
    }
    let lent = view
        .facts
        .wsl
        .as_ref()
        .and_then(|wsl| wsl.libraries.entry("libcuda.so.1"));
    match lent {
        Seen::Got(()) => {}
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("{LENT}: {}", other.why()),
                "`ls -l /usr/lib/wsl/lib`",
            );
        }
    }
    match view.library("libcuda.so.1") {
        Seen::Got(files) => {
            let found = files
                .iter()
                .find(|file| !file.is_32_bit() && file.via.is_some());
            if let Some((file, via)) = found.and_then(|file| Some((file, file.via.as_ref()?))) {
                return Verdict::fine(format!("programs load {} by way of {via}", file.path));
            }
        }
        Seen::Absent => {}
        other => {
            return Verdict::cannot_tell(
                format!("libcuda.so.1: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    }
    let reads_cache = view
        .facts
        .software
        .got()
        .is_some_and(|software| software.loader_cache_read);
    let path = view.variable("LD_LIBRARY_PATH");
    if !reads_cache || path.is_unknown() {
        return Verdict::cannot_tell(
            format!("{LENT} is there; which folders the loader looks into is not known"),
            WOULD_TELL,
        );
    }
    Finding::new("Windows lends CUDA to this system, and programs do not find its library")
        .cause("loader-cache")
        .saw(LENT, "is there")
        .saw(CACHE, "has no libcuda.so.1")
        .saw_answer("LD_LIBRARY_PATH", &path)
        .why("Programs that use CUDA do not start or see no GPU")
        .fix(FixCall::new("wsl-loader-folder"))
        .into()
}
