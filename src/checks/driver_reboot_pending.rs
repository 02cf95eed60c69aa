//! The kernel module that is loaded is of another version than the one on the disk.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{BuildGround, Stack, View};

crate::check! {
    /// A driver was upgraded on the disk, and the kernel still has the old one.
    ///
    /// ## Why it matters
    /// While the libraries fit the old module all works. As soon as they are of the new version programs are refused, and a
    /// module that is loaded later does not fit the rest.
    ///
    /// ## How it comes about
    /// An upgrade, often an unattended one, replaced the module file of the running kernel. The kernel takes it at the next
    /// start.
    ///
    /// ## How to confirm
    /// `cat /sys/module/nvidia/version` and `modinfo -F version nvidia` (with AMD's packages `amdgpu` instead of `nvidia`).
    "driver-reboot-pending", Driver, Warning, each Stack, run
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    let Some(module) = view.module_of(stack) else {
        return Verdict::NotHere;
    };
    let would_tell =
        format!("`cat /sys/module/{module}/version` and `modinfo -F version {module}`");
    // One from a container brings its module along; what is on the disk is left over.
    if stack == Stack::Cuda && view.driver_container().is_some() {
        return Verdict::NotHere;
    }
    match view.build_ground(stack) {
        BuildGround::Open => {}
        BuildGround::NotHere => return Verdict::NotHere,
        BuildGround::Unknown(why) => return Verdict::cannot_tell(why, would_tell),
    }
    // A module that comes with the kernel has no version.
    let loaded = match view
        .module(module)
        .and_then(|module| module.version.as_ref())
    {
        Seen::Got(loaded) if loaded.trim().is_empty() => {
            return Verdict::cannot_tell(
                format!("/sys/module/{module}/version is empty"),
                would_tell,
            );
        }
        Seen::Got(loaded) => loaded.trim(),
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("/sys/module/{module}/version: {}", other.why()),
                would_tell,
            );
        }
    };
    let files = match view.module_files(module) {
        Seen::Got(files) => files,
        // Another check says that there is none for this kernel.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "{}: {}",
                    view.running_kernel_folder(),
                    other.map(|_| ()).why()
                ),
                would_tell,
            );
        }
    };
    let versions: Vec<(&str, Option<&str>)> = files
        .iter()
        .map(|file| {
            let version = file.info.got().and_then(|info| info.version.as_deref());
            (file.path.as_str(), version)
        })
        .collect();
    if versions.iter().any(|(_, version)| *version == Some(loaded)) {
        return Verdict::fine(format!("{module} {loaded} is loaded and on the disk"));
    }
    // The first file is the one that the next start takes; one of AMD that comes with the kernel has no version.
    let Some((path, Some(version))) = versions.first().copied() else {
        return Verdict::cannot_tell(
            format!("the version of {module} on the disk is not known"),
            would_tell,
        );
    };
    if versions.iter().any(|(_, version)| version.is_none()) {
        return Verdict::cannot_tell(
            format!("not every file of {module} tells its version"),
            would_tell,
        );
    }
    let fix = match stack {
        Stack::Cuda => "restart-after-nvidia-upgrade",
        _ => "reboot",
    };
    Finding::new(format!(
        "{module} {version} is installed, and {loaded} is still loaded: a restart is due"
    ))
    // Where the libraries are new already another check says what that breaks.
    .only_gpus(Vec::new())
    .saw(format!("/sys/module/{module}/version"), loaded)
    .saw(path, format!("version {version}"))
    .why("All works as long as the libraries fit the old module; the restart takes the new one")
    .fix(FixCall::new(fix))
    .into()
}
