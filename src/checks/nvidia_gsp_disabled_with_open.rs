//! NVIDIA's open kernel module is told not to use the firmware that it cannot do without.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, View};

crate::check! {
    /// NVIDIA's open kernel module is told not to use the firmware of the GPU (`NVreg_EnableGpuFirmware=0`), and a GPU did
    /// not come up.
    ///
    /// ## Why it matters
    /// The open module leaves most of the work to the GPU's own processor and cannot drive a GPU without its firmware. Some
    /// releases take no notice of the option, others do not bring the GPU up.
    ///
    /// ## How it comes about
    /// The option was good advice for the proprietary module and stayed in /etc/modprobe.d or on the kernel command line when
    /// the open one came.
    ///
    /// ## How to confirm
    /// `grep EnableGpuFirmware /proc/driver/nvidia/params` and `cat /proc/driver/nvidia/version`.
    "nvidia-gsp-disabled-with-open", Driver, Error, each Stack, run
}

const PARAMETER: &str = "EnableGpuFirmware";
const OPTION: &str = "NVreg_EnableGpuFirmware=0";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let (open, evidence) = match view.nvidia_is_open() {
        Seen::Got(found) => found,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "which flavour of NVIDIA's module this is: {}",
                    other.map(|_| ()).why()
                ),
                "`cat /proc/driver/nvidia/version`",
            );
        }
    };
    if !open {
        return Verdict::fine("the proprietary module can do without that firmware");
    }
    match view.nvidia_parameter(PARAMETER) {
        Seen::Got("0") => {}
        Seen::Got(value) => return Verdict::fine(format!("{PARAMETER} is {value}")),
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("/proc/driver/nvidia/params: {}", other.why()),
                "`grep EnableGpuFirmware /proc/driver/nvidia/params`",
            );
        }
    }
    let held: Vec<&Gpu> = view
        .gpus_of(stack)
        .filter(|gpu| gpu.is_held_by("nvidia"))
        .collect();
    if held.iter().any(|gpu| view.nvml_device(gpu).is_some()) {
        return Verdict::fine(
            "the option is set and this release takes no notice of it: NVML reaches the GPUs",
        );
    }
    if !held.iter().any(|gpu| view.nvml_misses(gpu)) {
        return Verdict::cannot_tell(
            format!(
                "{PARAMETER} is 0; whether the GPUs come up all the same: {}",
                view.facts.nvml.as_ref().map(|_| ()).why()
            ),
            "`nvidia-smi`",
        );
    }
    let finding = Finding::new(
        "the open kernel module is told to do without the GPU's firmware, and no GPU came up",
    )
    .likely()
    .saw("/proc/driver/nvidia/params", format!("{PARAMETER}: 0"))
    .saw(evidence.source, evidence.says)
    .saw(
        "nvmlDeviceGetCount_v2()",
        "NVML lists no GPU that the driver holds",
    )
    .why("The open module cannot drive a GPU without its firmware");
    let line = view
        .modprobe_options()
        .find(|(_, module, line)| *module == "nvidia" && line.contains(OPTION));
    let (file, finding) = match line {
        Some((path, _, line)) => (path, finding.saw(path, line)),
        None => ("/etc/modprobe.d", finding),
    };
    let fix = FixCall::new("remove-module-option")
        .with("file", file)
        .with("word", OPTION);
    finding.fix(view.driver_fix(fix)).into()
}
