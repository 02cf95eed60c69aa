//! The kernel module that is loaded is of another version than the one on the disk.

use crate::check::Verdict;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{NextModule, PackageHalves, Stack, View};

crate::check! {
    /// A driver was upgraded on the disk, and the kernel still has the old one.
    ///
    /// ## Why it matters
    /// While the libraries fit the old module all works. As soon as they are of the new version programs are refused, and a
    /// module that is loaded later does not fit the rest.
    ///
    /// ## How it comes about
    /// An upgrade, often an unattended one, replaced the module file of the running kernel. The kernel takes it at the next
    /// start. Where NVIDIA's libraries were not upgraded along, that start parts them from the module: then bring the packages
    /// to one version first.
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
    let (loaded, path, version) = match view.next_module(stack) {
        NextModule::Other {
            loaded,
            path,
            version,
        } => (loaded, path, version),
        NextModule::Same(loaded) => {
            return Verdict::fine(format!("{module} {loaded} is loaded and on the disk"));
        }
        NextModule::NotHere => return Verdict::NotHere,
        NextModule::Unknown(why) => return Verdict::cannot_tell(why, would_tell),
    };
    if stack == Stack::Cuda && matches!(view.nvidia_packages(), PackageHalves::Apart(_)) {
        // A restart is due only when the packages fit again: till then it breaks what works.
        return Verdict::NotHere;
    }
    let finding = |end: &str| {
        Finding::new(format!(
            "{module} {version} is installed, and {loaded} is still loaded: {end}"
        ))
        // Where the libraries are new already another check says what that breaks.
        .works_all_the_same()
        .saw(format!("/sys/module/{module}/version"), loaded)
        .saw(path, format!("version {version}"))
    };
    let left_behind = match stack {
        Stack::Cuda => view.nvidia_libraries_left_behind(),
        _ => None,
    };
    if let Some((library, of_library)) = left_behind {
        return finding("do not restart before the libraries fit")
            .saw(&library.path, format!("version {of_library}"))
            .why("What is loaded now works. The next start loads the new module beside the old libraries, which refuse each other")
            .fix(FixCall::new("match-nvidia-module-and-libraries"))
            .into();
    }
    let fix = match stack {
        Stack::Cuda => "restart-after-nvidia-upgrade",
        _ => "reboot",
    };
    finding("a restart is due")
        .why("All works as long as the libraries fit the old module; the restart takes the new one")
        .fix(FixCall::new(fix))
        .into()
}
