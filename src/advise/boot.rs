//! What the next restart will change: a driver that waits for it, a kernel that has no module.

use super::{Step, step_of, words};
use crate::facts::Seen;
use crate::facts::module_files::InstalledKernel;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Brings, DriverGround, NextModule, Stack, View};

/// What is to be said before the plan. Empty: nothing waits, or nothing is known.
pub(super) fn steps(view: &View, tables: &Tables) -> Vec<Step> {
    if view.wsl().is_some() || view.is_tegra() || view.driver_ground() != DriverGround::Own {
        return Vec::new();
    }
    let release = view.kernel_release().got().copied();
    let Some(release) = release else {
        return Vec::new();
    };
    if is_gone(release, view) {
        let why = format!(
            "The running kernel {release} is not installed any more: reboot pending, and until then no further module can be loaded"
        );
        let step = step_of(view, &FixCall::new("reboot-into-installed-kernel"));
        return step.map(|step| step.because(why)).into_iter().collect();
    }
    let mut steps: Vec<Step> = [Stack::Cuda, Stack::Rocm]
        .into_iter()
        .filter_map(|stack| replaced(stack, view))
        .collect();
    steps.extend(next_boot(release, view, tables));
    steps
}

/// The running kernel was removed by an update: its modules are gone, it can load some, and another kernel is there. One
/// that was started from elsewhere has no folder either.
fn is_gone(release: &str, view: &View) -> bool {
    let Some(files) = view.facts.module_files.got() else {
        return false;
    };
    let gone = match files.kernels.get(release) {
        Seen::Got(kernel) => kernel.modules_dep.is_absent(),
        other => other.is_absent(),
    };
    let other = |(name, kernel): (&String, &InstalledKernel)| {
        name != release && kernel.modules_dep.got().is_some()
    };
    let modules = view.facts.modules.got();
    gone && files.kernels.items.iter().any(other)
        && modules.is_some_and(|modules| modules.proc_modules.got().is_some())
}

/// The driver on the disk is another one than that in the kernel.
fn replaced(stack: Stack, view: &View) -> Option<Step> {
    let NextModule::Other {
        loaded, version, ..
    } = view.next_module(stack)
    else {
        return None;
    };
    let module = view.module_of(stack)?;
    if stack == Stack::Cuda && view.restart_parts_nvidia() {
        let why = format!(
            "{module} {loaded} is loaded and {version} is installed, and the libraries are of another version: a restart would part them"
        );
        let step = step_of(view, &FixCall::new("match-nvidia-module-and-libraries"))?;
        return Some(step.because(why));
    }
    let why = format!(
        "The running driver is not the one on disk ({module} {loaded} is loaded, {version} is installed): reboot pending"
    );
    Some(step_of(view, &FixCall::new("reboot"))?.because(why))
}

/// NVIDIA's driver runs, and the newest kernel has no module of it.
fn next_boot(running: &str, view: &View, tables: &Tables) -> Option<Step> {
    let kernel = view.next_kernel_without_nvidia()?;
    let release = kernel.release;
    let Some(broken) = kernel.says() else {
        return Some(words(format!(
            "Kernel {release}, which is likely to boot next, has no NVIDIA module yet; akmods builds it while that kernel starts, so the first start takes some minutes"
        )));
    };
    let mended = |why: String| {
        let calls = view.nvidia_module_fixes(release, &kernel.gpus, tables);
        let step = step_of(view, calls.first()?)?;
        Some(step.because(why))
    };
    match kernel.brings {
        Brings::Dkms if kernel.lacks_headers => {
            mended(format!("{broken}, and no headers to build it with"))
        }
        Brings::Dkms => mended(format!(
            "{broken}; DKMS may still build it while that kernel starts"
        )),
        Brings::Akmods | Brings::Package => mended(broken),
        Brings::Nothing => Some(
            words(format!(
                "Install the driver again once kernel {release} runs, or start {running} in the boot menu"
            ))
            .because(format!(
                "{broken}, and nothing on this system was found that builds one"
            )),
        ),
    }
}
