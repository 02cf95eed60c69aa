//! InfiniBand adapters beside GPUs whose memory they cannot reach.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::{Gpu, Loaded, Stack, View};

crate::check! {
    /// This machine has InfiniBand adapters and GPUs for data centres, and nothing lets the adapters reach the memory of the
    /// GPUs.
    ///
    /// ## Why it matters
    /// Without GPUDirect RDMA everything that GPUs of several machines send each other goes through memory of the host. NCCL
    /// then says `GPU Direct RDMA Disabled`, and jobs on several machines are many times slower.
    ///
    /// ## How it comes about
    /// With the proprietary kernel module it takes the module nvidia_peermem, which is not loaded by itself, or was built when
    /// the network driver (OFED, DOCA) was not there yet. The open kernel module does without, by DMA-BUF, from Linux 5.12 on.
    ///
    /// ## How to confirm
    /// `lsmod | grep peermem`, `cat /proc/driver/nvidia/version`, and NCCL with `NCCL_DEBUG=INFO`.
    "gpudirect-rdma-missing", Library, Warning, each Stack, run
}

const WOULD_TELL: &str = "`lsmod | grep peermem` and `cat /proc/driver/nvidia/version`";
/// nvidia_peermem comes with the driver, nv_peer_mem was a package of its own before.
const MODULES: [&str; 2] = ["nvidia_peermem", "nv_peer_mem"];
/// Class of InfiniBand adapters. Those of Ethernet may do RDMA too, and mostly nobody uses it.
const INFINIBAND: u32 = 0x0207;
/// Linux from which RDMA takes DMA-BUF, as NVIDIA's documentation of GPUDirect RDMA has it.
const FIRST_DMA_BUF: &str = "5.12";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    // What amdgpu needs for it no file of this version tells.
    if stack != Stack::Cuda
        || view.wsl().is_some()
        || view.is_tegra()
        || view.hypervisor().is_some()
    {
        return Verdict::NotHere;
    }
    let gpus = view.gpus_of(stack);
    let mut held = gpus.filter(|gpu: &&Gpu| gpu.data_centre && gpu.is_held_by("nvidia"));
    if held.next().is_none() {
        return Verdict::NotHere;
    }
    let adapter = view.facts.pci.items().find(|(_, function)| {
        function
            .class
            .got()
            .is_some_and(|class| class >> 8 == INFINIBAND)
            && function.driver.got().is_some()
    });
    let Some((adapter, function)) = adapter else {
        return match view.facts.pci.got().is_some_and(|pci| pci.whole) {
            true => Verdict::NotHere,
            false => Verdict::cannot_tell(
                "whether there are InfiniBand adapters: the bus is not known whole",
                "`lspci -d ::0207`",
            ),
        };
    };
    let mut evidence = Vec::new();
    for module in MODULES {
        match view.loaded(module) {
            Loaded::Yes(seen) => {
                return Verdict::fine(format!("{} {}", seen.source, seen.says));
            }
            Loaded::No(seen) => evidence.push(seen),
            Loaded::Unknown(why) => return Verdict::cannot_tell(why, WOULD_TELL),
        }
    }
    match view.nvidia_is_open() {
        Seen::Got((false, seen)) => evidence.push(seen),
        Seen::Got((true, seen)) => {
            let release = view.kernel_release().into_got().unwrap_or_default();
            return match Version::parse(release) {
                version if version.is_some() && version >= Version::parse(FIRST_DMA_BUF) => {
                    Verdict::fine("the open kernel module gives the adapters memory by DMA-BUF")
                }
                // Kernels of distributions have it from later ones.
                _ => Verdict::cannot_tell(
                    format!(
                        "whether kernel {release} lets the open module give memory by DMA-BUF ({}: {})",
                        seen.source, seen.says
                    ),
                    WOULD_TELL,
                ),
            };
        }
        other => {
            return Verdict::cannot_tell(
                format!(
                    "which flavour of NVIDIA's module this is: {}",
                    other.map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    }
    let driver = function.driver.got().map_or("", String::as_str);
    let mut finding = Finding::new(
        "InfiniBand adapters cannot reach the memory of the GPUs: GPUDirect RDMA is not set up",
    )
    // On this machine alone everything works.
    .works_all_the_same()
    .likely()
    .saw(
        format!("/sys/bus/pci/devices/{adapter}"),
        format!("an InfiniBand adapter, held by {driver}"),
    );
    finding.evidence.extend(evidence);
    finding
        .why("What GPUs of several machines send each other then goes through memory of the host, many times slower")
        .fix(view.driver_fix(FixCall::new("load-nvidia-peermem")))
        .into()
}
