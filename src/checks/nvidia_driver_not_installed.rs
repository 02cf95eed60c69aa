//! There is an NVIDIA GPU and nothing of NVIDIA's driver.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::tables::Tables;
use crate::view::{DriverGround, Gpu, GpusToDrive, Loaded, Stack, View};

crate::check! {
    /// There is an NVIDIA GPU, and NVIDIA's driver is not installed in any form.
    ///
    /// ## Why it matters
    /// CUDA is two things: a toolkit or a framework that programs are built with, and a driver that runs them. The driver is
    /// a kernel module and `libcuda.so.1`; neither the toolkit nor a Python wheel brings it. Without it nothing computes on
    /// the GPU. A desktop that only draws pictures runs well on nouveau and needs no driver of NVIDIA.
    ///
    /// ## How it comes about
    /// Most distributions do not install it by themselves. Installing the CUDA toolkit alone is the usual misunderstanding.
    /// A package that was removed may still be listed by `dpkg -l` as `rc`: only its configuration is left.
    ///
    /// ## How to confirm
    /// `find /lib/modules -name 'nvidia.ko*'`, `ldconfig -p | grep libcuda.so.1` and `dkms status` all print nothing.
    "nvidia-driver-not-installed", Driver, Error, each Stack, run
}

const WOULD_TELL: &str =
    "`find /lib/modules -name 'nvidia.ko*'`, `ldconfig -p | grep libcuda.so.1` and `dkms status`";

fn run(stack: Stack, view: &View, tables: &Tables) -> Verdict {
    // Windows lends its driver to WSL; NVIDIA's boards with a Tegra chip have a driver of their own, `nvgpu`.
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let nothing_to_drive = match view.gpus_to_drive(stack) {
        GpusToDrive::None => return Verdict::NotHere,
        GpusToDrive::These(gpus) => Ok(gpus),
        GpusToDrive::Unknown(why) => Err(why),
    };
    if let Loaded::Yes(evidence) = view.loaded("nvidia") {
        return Verdict::fine(format!(
            "the module is loaded: {} {}",
            evidence.source, evidence.says
        ));
    }
    let gpus = match nothing_to_drive {
        Ok(gpus) => gpus,
        Err(why) => return Verdict::cannot_tell(why, "`lspci -nn -d 10de:`"),
    };
    match view.driver_ground() {
        DriverGround::Own => {}
        DriverGround::Host => {
            return Verdict::cannot_tell(
                "in a container the driver is the host's, and its module is not seen loaded",
                "`nvidia-smi` on the host",
            );
        }
        DriverGround::Unknown(why) => return Verdict::cannot_tell(why, WOULD_TELL),
    }
    match view.nvidia_driver_installed() {
        // Half a driver is installed, and other checks say what is missing of it.
        Seen::Got(evidence) => Verdict::fine(format!("{}: {}", evidence.source, evidence.says)),
        Seen::Absent => found(&gpus, view, tables),
        other => Verdict::cannot_tell(
            format!(
                "what is installed of the driver: {}",
                other.map(|_| ()).why()
            ),
            WOULD_TELL,
        ),
    }
}

fn found(gpus: &[&Gpu], view: &View, tables: &Tables) -> Verdict {
    let kernels = view
        .facts
        .module_files
        .got()
        .map_or(0, |files| files.kernels.items.len());
    let folder = view.module_folder();
    let mut finding = Finding::new("NVIDIA's driver is not installed")
        .saw(
            folder,
            match kernels {
                0 => "no kernel has a module of NVIDIA".to_owned(),
                1 => "the one installed kernel has no module of NVIDIA".to_owned(),
                count => format!("none of {count} installed kernels has a module of NVIDIA"),
            },
        )
        .saw("/var/lib/dkms", "no sources of NVIDIA's module")
        .why("CUDA needs NVIDIA's kernel module and libcuda.so.1; toolkits and Python wheels do not bring them");
    finding = match view.library("libcuda.so.1").into_got() {
        Some(files) => files.iter().fold(finding, |finding, file| {
            finding.saw(
                file.path.as_str(),
                "no library of a driver for 64-bit programs: a stub, an empty file, one of a compatibility package, or one for 32-bit programs",
            )
        }),
        None => finding.saw(
            "/usr/lib",
            "no libcuda.so.1 here or in another folder of libraries",
        ),
    };
    if let [gpu] = gpus
        && let Some(driver) = gpu.driver.got()
    {
        finding = finding.saw(gpu.driver_source.as_str(), driver.as_str());
    }
    view.nvidia_install_fixes(gpus, tables)
        .into_iter()
        .fold(finding, Finding::fix)
        .into()
}
