//! akmods is still building NVIDIA's module for the kernel that was just started.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{BuildGround, Loaded, Stack, View};

crate::check! {
    /// A new kernel was just started, and akmods is probably still building NVIDIA's module for it.
    ///
    /// ## Why it matters
    /// Until the module is built and loaded CUDA has no driver. Who restarts before that interrupts the build, and has no module
    /// after the restart either.
    ///
    /// ## How it comes about
    /// On Fedora and its kin akmods builds the module for a new kernel at its first start, which takes some minutes.
    ///
    /// ## How to confirm
    /// `pgrep -a akmods` shows the build, `/var/cache/akmods/nvidia` its logs, `modinfo nvidia` the module when it is done.
    "akmods-build-unfinished", Driver, Warning, each Stack, run
}

/// A build takes a few minutes; what is not there by then failed.
const BUILD_SECONDS: u64 = 10 * 60;

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    match view.build_ground(stack) {
        BuildGround::Open => {}
        BuildGround::NotHere => return Verdict::NotHere,
        BuildGround::Unknown(why) => return Verdict::cannot_tell(why, "`modinfo nvidia`"),
    }
    // An image brings the module along.
    let is_image = view.is_of_family("ostree");
    let builder = match view.builder_of("nvidia") {
        Seen::Got(builder) if builder.source == "/usr/src/akmods" && !is_image => builder,
        _ => return Verdict::NotHere,
    };
    if let Loaded::Yes(evidence) = view.loaded("nvidia") {
        return Verdict::fine(format!("{} {}", evidence.source, evidence.says));
    }
    match view.module_files("nvidia") {
        Seen::Absent => {}
        Seen::Got(_) => return Verdict::fine("the module for this kernel is built"),
        other => {
            return Verdict::cannot_tell(
                format!(
                    "{}: {}",
                    view.running_kernel_folder(),
                    other.map(|_| ()).why()
                ),
                "`modinfo nvidia`",
            );
        }
    }
    // One that has failed is another question.
    if view
        .akmods_failed("nvidia")
        .got()
        .is_some_and(|logs| !logs.is_empty())
    {
        return Verdict::NotHere;
    }
    let uptime = view
        .facts
        .kernel
        .as_ref()
        .and_then(|kernel| kernel.uptime_seconds.as_ref());
    let seconds = match uptime {
        Seen::Got(seconds) => *seconds,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "whether akmods had the time to build; /proc/uptime: {}",
                    other.why()
                ),
                "`pgrep -a akmods`",
            );
        }
    };
    if seconds >= BUILD_SECONDS {
        return Verdict::fine(format!(
            "the kernel runs for {} minutes: no build takes that long",
            seconds / 60
        ));
    }
    let release = view.kernel_release().got().copied().unwrap_or_default();
    Finding::new("akmods is probably still building NVIDIA's module for this kernel")
        .likely()
        .saw(builder.source, builder.says)
        .saw(view.running_kernel_folder(), "no nvidia module")
        .saw(
            "/proc/uptime",
            format!("{} minutes since the boot", seconds / 60),
        )
        .why("A restart before the build is done interrupts it, and the module is missing again")
        .fix(FixCall::new("wait-for-akmods").with("kernel", release))
        .into()
}
