//! nouveau holds an NVIDIA GPU.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, Takes, View};

crate::check! {
    /// The open-source driver nouveau holds an NVIDIA GPU, so CUDA cannot use it.
    ///
    /// ## Why it matters
    /// One driver holds a GPU at a time. CUDA, NVML and `nvidia-smi` need NVIDIA's own; while nouveau is bound they do not
    /// see this GPU. For a desktop that only draws pictures nouveau is all right.
    ///
    /// ## How it comes about
    /// nouveau is part of the kernel and is often loaded from the initramfs, before NVIDIA's module has its turn: a
    /// blacklist in `/etc/modprobe.d` works only after the initramfs was built anew. nouveau also takes over where NVIDIA's
    /// module is missing for this kernel or could not be loaded. Current drivers of NVIDIA do not take old GPUs; for
    /// those nouveau is the only driver that is still maintained.
    ///
    /// ## How to confirm
    /// `lspci -nnk -d 10de:` names the driver in use.
    "nouveau-bound", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    if view.wsl().is_some() || !gpu.is_on_bus() {
        return Verdict::NotHere;
    }
    let source = gpu.driver_source.as_str();
    let driver = match &gpu.driver {
        Seen::Got(driver) => driver,
        Seen::Absent => return Verdict::fine("no driver is bound"),
        other => {
            return Verdict::cannot_tell(format!("{source}: {}", other.why()), gpu.lspci());
        }
    };
    if driver != "nouveau" {
        return Verdict::fine(format!("bound to {driver}"));
    }
    let installed = view.nvidia_driver_version();
    let takes = installed.as_ref().map_or(Takes::Unknown, |(version, _)| {
        view.nvidia_driver_takes(gpu, version, tables)
    });
    let mut finding = Finding::new("nouveau holds this GPU: CUDA cannot use it")
        .saw(source, "nouveau")
        .why("CUDA and nvidia-smi see only GPUs that NVIDIA's own driver holds");
    if let Some((version, source)) = &installed {
        finding = finding.saw(source.as_str(), format!("NVIDIA's driver {version}"));
    }
    let other_computes = view
        .gpus_of(Stack::Cuda)
        .any(|other| other.is_held_by("nvidia"));
    match (takes, other_computes) {
        // An old card that draws the pictures beside one that computes: this driver has nothing to do with it.
        (Takes::No(last), true) => finding
            .severity(Severity::Note)
            .why(format!(
                "The loaded driver takes no GPU of this age (the last branch that did is {last}), so nouveau is right for it"
            ))
            .into(),
        (Takes::No(last), false) => finding
            .why(format!(
                "The installed driver takes no GPU of this age: the last branch that does is {last}"
            ))
            .fix(view.driver_fix(
                FixCall::new("install-nvidia-driver-legacy").with("branch", last.to_string()),
            ))
            .into(),
        (Takes::Unknown, true) => finding
            .severity(Severity::Note)
            .likely()
            .why("Another GPU computes on NVIDIA's driver; whether that driver takes this one too is not known")
            .into(),
        _ => fixes(gpu, view, tables)
            .into_iter()
            .fold(finding, Finding::fix)
            .into(),
    }
}

/// nouveau is what remains where NVIDIA's driver is not there, or has no module for this kernel: then that comes first, or
/// the screen goes dark. The same where nobody knows whether it is there.
fn fixes(gpu: &Gpu, view: &View, tables: &Tables) -> Vec<FixCall> {
    if view.nvidia_driver_installed().got().is_none() {
        return view.nvidia_install_fixes(&[gpu], tables);
    }
    match view.kernel_release() {
        Seen::Got(release) if view.module_files("nvidia").is_absent() => {
            view.nvidia_module_fixes(release, &[gpu], tables)
        }
        _ => vec![view.driver_fix(FixCall::new("blacklist-nouveau"))],
    }
}
