//! No driver holds an NVIDIA GPU, and NVIDIA's module is not in the kernel.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{DriverGround, Gpu, Loaded, Takes, View, legacy_branch};

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
    /// `ls /sys/module/nvidia`; `sudo modprobe nvidia` loads it or says why not; `sudo journalctl -k -b -g nvidia` has the rest.
    "nvidia-module-not-loaded", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    // Under WSL and on a Tegra board no such module belongs, and a GPU that is gone cannot be held.
    if view.wsl().is_some() || view.is_tegra() || !gpu.is_on_bus() {
        return Verdict::NotHere;
    }
    match &gpu.driver {
        Seen::Absent if view.is_reserved(gpu) => {
            return Verdict::fine("set aside for virtual machines");
        }
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
    if let Some(branch) = too_old_for(gpu, view, tables)
        && let Some(address) = &gpu.pci
    {
        let architecture = gpu.architecture.as_deref().unwrap_or("an old one");
        let branch = branch.to_string();
        return finding
            .saw(
                format!("/sys/bus/pci/devices/{address}/device"),
                format!("a GPU of the architecture {architecture}: branch {branch} of NVIDIA's driver is the last one for it"),
            )
            .fix(view.driver_fix(
                FixCall::new("install-nvidia-driver-legacy").with("branch", branch),
            ))
            .into();
    }
    fixes(gpu, view, tables)
        .into_iter()
        .fold(finding, Finding::fix)
        .into()
}

/// The last branch for a GPU that current drivers have dropped, unless the driver that is here is known to take it.
fn too_old_for(gpu: &Gpu, view: &View, tables: &Tables) -> Option<u64> {
    let branch = legacy_branch(gpu, tables)?;
    let takes = view
        .nvidia_driver_version()
        .map_or(Takes::Unknown, |(version, _)| {
            view.nvidia_driver_takes(gpu, version, tables)
        });
    (takes != Takes::Yes).then_some(branch)
}

fn fixes(gpu: &Gpu, view: &View, tables: &Tables) -> Vec<FixCall> {
    let release = view.kernel_release();
    let own_folders = view.driver_ground() == DriverGround::Own;
    match (view.module_files("nvidia"), release) {
        (Seen::Absent, Seen::Got(release)) if own_folders => {
            view.nvidia_module_fixes(release, &[gpu], tables)
        }
        _ => vec![view.driver_fix(FixCall::new("load-nvidia-module"))],
    }
}
