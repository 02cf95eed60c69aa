//! nova_core holds an NVIDIA GPU.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, View};

crate::check! {
    /// The new driver nova_core of the kernel holds an NVIDIA GPU, so CUDA cannot use it.
    ///
    /// ## Why it matters
    /// One driver holds a GPU at a time. CUDA, NVML and `nvidia-smi` need NVIDIA's own. nova_core is being developed and
    /// neither computes nor draws yet.
    ///
    /// ## How it comes about
    /// Kernels since 6.15 may bring it, and it takes GPUs from Turing on. Blacklists that name nouveau alone, as every older
    /// guide has them, do not keep it away. From the initramfs it comes before NVIDIA's module.
    ///
    /// ## How to confirm
    /// `lspci -nnk -d 10de:` names the driver in use.
    "nova-core-bound", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, tables: &Tables) -> Verdict {
    if view.wsl().is_some() || !gpu.is_on_bus() {
        return Verdict::NotHere;
    }
    let source = gpu.driver_source.as_str();
    let driver = match &gpu.driver {
        Seen::Got(driver) => driver,
        Seen::Absent => return Verdict::fine("no driver is bound"),
        other => return Verdict::cannot_tell(format!("{source}: {}", other.why()), gpu.lspci()),
    };
    // The module is called nova_core, its driver NovaCore.
    if driver.to_ascii_lowercase().replace(['-', '_'], "") != "novacore" {
        return Verdict::fine(format!("bound to {driver}"));
    }
    let finding = Finding::new("nova_core holds this GPU: CUDA cannot use it")
        .saw(source, driver)
        .why("CUDA and nvidia-smi see only GPUs that NVIDIA's own driver holds");
    // Without NVIDIA's driver nothing would hold the GPU afterwards.
    if view.nvidia_driver_installed().is_absent() {
        let fixes = view.nvidia_install_fixes(&[gpu], tables).into_iter();
        return fixes.fold(finding, Finding::fix).into();
    }
    finding
        .fix(view.driver_fix(FixCall::new("blacklist-nova-core")))
        .into()
}
