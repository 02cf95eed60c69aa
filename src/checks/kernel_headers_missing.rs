//! A GPU driver is built on this machine, and the running kernel has no headers to build it with.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::tables::Tables;
use crate::view::{BuildGround, Loaded, RELEASE_FILE, Stack, View, build_fix};

crate::check! {
    /// A GPU driver is built on this machine, and the headers of the running kernel are not installed.
    ///
    /// ## Why it matters
    /// dkms and akmods build a module for each kernel with the headers of that kernel. Without them they skip it, often in
    /// silence, and after the restart the GPU has no driver.
    ///
    /// ## How it comes about
    /// The kernel was upgraded and its headers were not: no package that pulls them in (`linux-headers-generic`,
    /// `linux-headers-amd64`, `kernel-devel-matched`) is installed, or they are of another kernel flavour.
    ///
    /// ## How to confirm
    /// `ls /lib/modules/$(uname -r)/build/` fails; `dkms status` lists the driver without this kernel.
    "kernel-headers-missing", Driver, Error, each Stack, run
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    let Some(module) = view.module_of(stack) else {
        return Verdict::NotHere;
    };
    let ground = view.build_ground(stack);
    if ground == BuildGround::NotHere {
        return Verdict::NotHere;
    }
    if let Loaded::Yes(evidence) = view.loaded(module) {
        return Verdict::fine(format!(
            "{module} is loaded: {} {}",
            evidence.source, evidence.says
        ));
    }
    if let BuildGround::Unknown(why) = ground {
        return Verdict::cannot_tell(why, "the same question on the machine itself");
    }
    let build = format!("{}/build", view.running_kernel_folder());
    let would_tell = "`ls /lib/modules/$(uname -r)/build/` and `dkms status`";
    let kernel = match view.running_kernel() {
        // A kernel whose folder is gone needs a restart, not headers.
        Seen::Absent => return Verdict::NotHere,
        Seen::Got(kernel) if kernel.modules_dep.is_absent() => return Verdict::NotHere,
        Seen::Got(kernel) => kernel,
        other => {
            return Verdict::cannot_tell(
                format!("{build}: {}", other.map(|_| ()).why()),
                would_tell,
            );
        }
    };
    let builder = match view.builder_of(module) {
        Seen::Got(builder) => builder,
        Seen::Absent => return Verdict::NotHere,
        other => {
            if kernel.headers == Seen::Got(true) {
                return Verdict::fine(format!("{build} is there"));
            }
            return Verdict::cannot_tell(
                format!(
                    "whether {module} is built on this machine, /var/lib/dkms would tell: {}",
                    other.map(|_| ()).why()
                ),
                "`dkms status`",
            );
        }
    };
    match &kernel.headers {
        Seen::Got(true) => return Verdict::fine(format!("{build} is there")),
        Seen::Got(false) => {}
        other => return Verdict::cannot_tell(format!("{build}: {}", other.why()), would_tell),
    }
    match view.extra_module(module) {
        Seen::Got(file) => {
            return Verdict::fine(format!("{} is for this kernel", file.path));
        }
        Seen::Absent => {}
        other => {
            return Verdict::cannot_tell(
                format!(
                    "whether there is a {module} for this kernel: {}",
                    other.map(|_| ()).why()
                ),
                would_tell,
            );
        }
    }
    let release = view.kernel_release().got().copied().unwrap_or_default();
    Finding::new(format!(
        "the headers of the running kernel {release} are missing: {module} cannot be built for it"
    ))
    .saw(build, "does not exist, or leads nowhere")
    .saw(builder.source.as_str(), builder.says.as_str())
    .saw(
        view.running_kernel_folder(),
        format!("no {module} module that was built here"),
    )
    .saw(RELEASE_FILE, release)
    .why("A driver that is built on the machine is skipped for each kernel without headers")
    .fix(build_fix(module, &builder, release))
    .into()
}
