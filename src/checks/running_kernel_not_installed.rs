//! The modules of the running kernel are gone from disk.

use crate::check::Verdict;
use crate::facts::module_files::{InstalledKernel, ModuleFiles};
use crate::facts::{Named, Seen};
use crate::finding::{Evidence, Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::{DriverGround, Gpu, Loaded, RELEASE_FILE, Stack, Vendor, View, Wanted};

crate::check! {
    /// The running kernel's modules are no longer on disk, so no module can be loaded before the next restart.
    ///
    /// ## Why it matters
    /// What is loaded goes on working. A module that is not loaded yet cannot be any more: often `nvidia_uvm`, which is loaded
    /// when the first CUDA program starts, so that the desktop works and CUDA does not.
    ///
    /// ## How it comes about
    /// The kernel was upgraded and the machine was not restarted since. Rolling distributions delete the modules of the old
    /// kernel at once, others when old kernels are cleaned away.
    ///
    /// ## How to confirm
    /// `uname -r` and `ls /lib/modules`
    "running-kernel-not-installed", Driver, Error, each Machine, run
}

const WOULD_TELL: &str = "`uname -r` and `ls /lib/modules`";

fn run(view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.in_container() {
        return Verdict::NotHere;
    }
    if view.gpus.is_empty() {
        if view.gpus_whole {
            return Verdict::NotHere;
        }
        let why = view.why_gpus_are_unknown();
        return Verdict::cannot_tell(format!("whether there is a GPU: {why}"), "`lspci -nn`");
    }
    if let DriverGround::Unknown(why) = view.driver_ground() {
        return Verdict::cannot_tell(why, WOULD_TELL);
    }
    let release = match view.kernel_release() {
        Seen::Got(release) => release,
        other => {
            return Verdict::cannot_tell(
                format!("release of the running kernel: {}", other.why()),
                WOULD_TELL,
            );
        }
    };
    let files = match &view.facts.module_files {
        Seen::Got(files) => files,
        other => {
            return Verdict::cannot_tell(format!("/lib/modules: {}", other.why()), WOULD_TELL);
        }
    };
    let folder = format!("{}/{release}", files.path);
    let evidence = match gone(files, release, &folder) {
        Gone::No(says) => return Verdict::fine(says),
        Gone::Yes(evidence) => evidence,
        Gone::Unknown(why) => return Verdict::cannot_tell(why, WOULD_TELL),
    };
    if let Err(why) = loads_modules(view) {
        return Verdict::cannot_tell(
            format!("{}; {why}", in_words(&evidence)),
            "`ls /proc/modules`",
        );
    }
    let Some(other) = newest_other(&files.kernels, release) else {
        return Verdict::cannot_tell(
            format!(
                "{}, and no other kernel is installed either: this kernel may come from elsewhere",
                in_words(&evidence)
            ),
            "where this kernel is started from",
        );
    };
    found(view, release, evidence, &files.path, other)
}

fn in_words(evidence: &Evidence) -> String {
    format!("{} {}", evidence.source, evidence.says)
}

/// Whether the modules of the running kernel are gone.
enum Gone {
    No(String),
    Yes(Evidence),
    Unknown(String),
}

fn gone(files: &ModuleFiles, release: &str, folder: &str) -> Gone {
    let evidence = |source: String, says: &str| Evidence {
        source,
        says: says.to_owned(),
    };
    match files.kernels.get(release) {
        Seen::Got(kernel) => {
            let path = format!("{folder}/modules.dep");
            match &kernel.modules_dep {
                Seen::Got(()) => Gone::No(format!("{path} is there")),
                // Only a left-over of the folder is there.
                Seen::Absent => Gone::Yes(evidence(path, "does not exist")),
                other => Gone::Unknown(format!("{path}: {}", other.why())),
            }
        }
        Seen::Absent => Gone::Yes(evidence(folder.to_owned(), "does not exist")),
        other => Gone::Unknown(format!("{folder}: {}", other.map(|_| ()).why())),
    }
}

/// A kernel without loadable modules needs no folder of them.
fn loads_modules(view: &View) -> Result<(), String> {
    let modules = view.facts.modules.got();
    let listed = view
        .facts
        .modules
        .as_ref()
        .and_then(|modules| modules.proc_modules.as_ref().map(|_| ()));
    // Only what was loaded has an initstate.
    let loaded = modules.is_some_and(|modules| {
        modules
            .known
            .values()
            .filter_map(Seen::got)
            .any(|module| module.initstate.got().is_some())
    });
    match listed {
        Seen::Got(()) => Ok(()),
        Seen::Absent => Err("this kernel has no loadable modules and needs no folder".to_owned()),
        _ if loaded => Ok(()),
        other => Err(format!(
            "whether this kernel has loadable modules: /proc/modules: {}",
            other.why()
        )),
    }
}

/// The newest other kernel that is really installed.
fn newest_other<'v>(kernels: &'v Named<InstalledKernel>, running: &str) -> Option<&'v str> {
    kernels
        .items
        .iter()
        .filter(|(release, kernel)| *release != running && kernel.modules_dep.got().is_some())
        .map(|(release, _)| release.as_str())
        .max_by_key(|release| Version::parse(release))
}

fn found(view: &View, release: &str, evidence: Evidence, path: &str, other: &str) -> Verdict {
    let finding = |title: String| {
        Finding::new(title)
            .saw(evidence.source.as_str(), evidence.says.as_str())
            .saw(path, format!("{other} is installed"))
            .saw(RELEASE_FILE, release)
    };
    let fix = FixCall::new("reboot-into-installed-kernel");
    match missing_module(view) {
        Some((stack, module, proof)) => finding(format!(
            "the modules of the running kernel {release} are gone: {module} cannot be loaded before a restart"
        ))
        .saw(proof.source, proof.says)
        .about(Some(stack))
        .why("What a GPU here needs is not loaded, and cannot be loaded from modules that are not there")
        .fix(fix)
        .into(),
        None => finding(format!(
            "the modules of the running kernel {release} are gone; none that a GPU needs is seen missing"
        ))
        .severity(Severity::Note)
        .why("What is loaded goes on working; no other module can be loaded before the next restart")
        .fix(fix)
        .into(),
    }
}

/// A module that a GPU here needs and that is proved not to be loaded, of a stack that somebody wants if there is one.
fn missing_module(view: &View) -> Option<(Stack, &'static str, Evidence)> {
    let mut missing: Vec<(Stack, &'static str, Evidence)> = view
        .gpus
        .iter()
        .filter(|gpu| gpu.is_on_bus() && !view.is_reserved(gpu))
        .filter_map(|gpu| missing_for(gpu, view))
        .collect();
    missing.sort_by_key(|(stack, ..)| !matches!(view.wanted(*stack), Wanted::Yes(_)));
    missing.into_iter().next()
}

fn missing_for(gpu: &Gpu, view: &View) -> Option<(Stack, &'static str, Evidence)> {
    let stack = gpu.vendor.stack()?;
    let proof = |module: &'static str| match view.loaded(module) {
        Loaded::No(evidence) => Some((stack, module, evidence)),
        Loaded::Yes(_) | Loaded::Unknown(_) => None,
    };
    match gpu.vendor {
        Vendor::Nvidia => {
            let installed = matches!(view.loaded("nvidia"), Loaded::Yes(_))
                || view.nvidia_driver_installed().got().is_some();
            installed
                .then(|| proof("nvidia").or_else(|| proof("nvidia_uvm")))
                .flatten()
        }
        Vendor::Amd if gpu.driver.is_absent() => proof("amdgpu"),
        // Either of both may be the one for this GPU.
        Vendor::Intel if gpu.driver.is_absent() => proof("i915").and_then(|_| proof("xe")),
        Vendor::Amd | Vendor::Intel | Vendor::Other => None,
    }
}
