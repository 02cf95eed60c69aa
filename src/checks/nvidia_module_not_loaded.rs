//! No driver holds an NVIDIA GPU, and NVIDIA's module is not in the kernel.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{DriverGround, Gpu, Loaded, View};

crate::check! {
    /// No kernel driver holds an NVIDIA GPU, and NVIDIA's kernel module is not loaded.
    ///
    /// ## Why it matters
    /// CUDA, NVML and `nvidia-smi` talk to the kernel module. However well the libraries are installed, without the module
    /// they report that there is no driver.
    ///
    /// ## How it comes about
    /// Something keeps the module away: a blacklist, no module for this kernel, a refused signature. Where one of these is
    /// found, this finding hangs under it. Else the module was just never loaded: the driver was installed without a
    /// restart, or somebody unloaded it.
    ///
    /// ## How to confirm
    /// `ls /sys/module/nvidia`; `sudo modprobe nvidia` loads it or says why not; `journalctl -k -b -g nvidia` has the rest.
    "nvidia-module-not-loaded", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    // Under WSL and on a Tegra board no such module belongs, and a GPU that is gone cannot be held.
    if view.wsl().is_some() || view.is_tegra() || !gpu.is_on_bus() {
        return Verdict::NotHere;
    }
    match &gpu.driver {
        Seen::Absent => {}
        // What it means that another driver holds the GPU, other checks say.
        Seen::Got(driver) => return Verdict::fine(format!("bound to {driver}")),
        other => {
            return Verdict::cannot_tell(
                format!("{}: {}", gpu.driver_source.as_str(), other.why()),
                gpu.lspci(),
            );
        }
    }
    let mut finding =
        Finding::new("no driver holds this GPU: NVIDIA's kernel module is not loaded")
            .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
            .why("CUDA and nvidia-smi reach the GPU through this module alone");
    match view.loaded("nvidia") {
        Loaded::Yes(evidence) => {
            return Verdict::fine(format!(
                "the module is loaded: {} {}",
                evidence.source, evidence.says
            ));
        }
        Loaded::No(evidence) => {
            finding = finding
                .cause("not-loaded")
                .saw(evidence.source, evidence.says);
        }
        Loaded::Unknown(_) => {
            let evidence = view.loaded_words("nvidia");
            finding.title = "no driver holds this GPU".to_owned();
            finding = finding
                .cause("unknown")
                .saw(evidence.source, evidence.says)
                .why("Without a driver CUDA cannot use it; `ls /sys/module/nvidia` tells whether the module is loaded at all");
        }
    }
    finding.fix(view.driver_fix(fix(view))).into()
}

fn fix(view: &View) -> FixCall {
    let release = view.kernel_release();
    let own_folders = view.driver_ground() == DriverGround::Own;
    match (view.module_files("nvidia"), release) {
        (Seen::Absent, Seen::Got(release)) if own_folders => {
            FixCall::new("build-nvidia-module-for-kernel").with("kernel", release)
        }
        _ => FixCall::new("load-nvidia-module"),
    }
}
