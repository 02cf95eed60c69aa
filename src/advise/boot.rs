//! What the next restart will change: a driver that waits for it, a kernel that has no module.

use super::{Step, step_of, words};
use crate::facts::Seen;
use crate::facts::module_files::InstalledKernel;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::{DriverGround, Gpu, Loaded, NextModule, Stack, View};

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

/// The flavour of a kernel behind its numbers: `generic`, `lts`; empty where it has none.
fn flavour(release: &str) -> &str {
    let last = release.rsplit('-').next().unwrap_or_default();
    let is_word = last.starts_with(|c: char| c.is_ascii_alphabetic()) && last != release;
    if is_word { last } else { "" }
}

/// The newest installed kernel of the running one's flavour, where that is newer than the running one. Which one really
/// boots, the boot loader decides.
fn newest<'v>(running: &str, view: &'v View) -> Option<(&'v str, &'v InstalledKernel)> {
    let files = view.facts.module_files.got()?;
    let kernels = files.kernels.items.iter();
    let (release, kernel) = kernels
        .filter(|(release, kernel)| {
            kernel.modules_dep.got().is_some() && flavour(release) == flavour(running)
        })
        .max_by_key(|(release, _)| Version::parse(release))?;
    (Version::parse(release) > Version::parse(running)).then_some((release, kernel))
}

/// NVIDIA's driver runs, and the newest kernel has no module of it.
fn next_boot(running: &str, view: &View, tables: &Tables) -> Option<Step> {
    let gpus: Vec<&Gpu> = view
        .gpus_of(Stack::Cuda)
        .filter(|gpu| gpu.is_held_by("nvidia"))
        .collect();
    let (release, kernel) = newest(running, view)?;
    let runs = matches!(view.loaded("nvidia"), Loaded::Yes(_))
        && view.module_files("nvidia").got().is_some()
        && view.driver_container().is_none();
    if gpus.is_empty() || !runs || !kernel.modules.get("nvidia").is_absent() {
        return None;
    }
    let is_one = |names: &[&str]| names.iter().any(|name| view.is_of_family(name));
    // Images bring driver and kernel together.
    if is_one(&["nixos", "ostree"]) {
        return None;
    }
    let broken = format!(
        "The next boot will likely break: kernel {release}, the newest one here, has no NVIDIA module built"
    );
    match (view.builder_of("nvidia"), view.ready_nvidia_module()) {
        (Seen::Got(builder), _) if builder.source.contains("akmods") => Some(words(format!(
            "Kernel {release}, which is likely to boot next, has no NVIDIA module yet; akmods builds it while that kernel starts, so the first start takes some minutes"
        ))),
        (Seen::Got(_), _) => {
            let why = match kernel.headers {
                Seen::Got(false) => format!("{broken}, and no headers to build it with"),
                _ => format!("{broken}; DKMS may still build it while that kernel starts"),
            };
            let call = view.nvidia_module_fixes(release, &gpus, tables);
            call.first()
                .and_then(|call| step_of(view, call))
                .map(|step| step.because(why))
        }
        // Ready-made modules of enterprise distributions serve several kernels, and their packages link them in.
        (Seen::Absent, Seen::Got(_)) if !is_one(&["rhel", "suse"]) => {
            let call = view.nvidia_module_fixes(release, &gpus, tables);
            call.first()
                .and_then(|call| step_of(view, call))
                .map(|step| step.because(broken))
        }
        (Seen::Absent, Seen::Absent) => Some(
            words(format!(
                "Install the driver again once kernel {release} runs, or start {running} in the boot menu"
            ))
            .because(format!(
                "{broken}, and nothing on this system was found that builds one"
            )),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_of_kernels() {
        for (release, wanted) in [
            ("6.8.0-45-generic", "generic"),
            ("6.1.0-18-amd64", "amd64"),
            ("6.6.44-1-lts", "lts"),
            ("6.10.3-arch1-2", ""),
            ("6.11.4-301.fc41.x86_64", ""),
            ("5.14.0-503.el9.x86_64", ""),
            ("6.4.0-150600.23.25-default", "default"),
        ] {
            assert_eq!(flavour(release), wanted, "{release}");
        }
    }
}
