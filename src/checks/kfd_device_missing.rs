//! amdgpu drives a GPU, and there is no /dev/kfd.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{DriverGround, Stack, View};

crate::check! {
    /// amdgpu drives a GPU, and the device node of its compute part, `/dev/kfd`, is missing.
    ///
    /// ## Why it matters
    /// Every ROCm program opens this node first. Without it ROCm sees no GPU, while display and Vulkan work.
    ///
    /// ## How it comes about
    /// The kernel was built without `CONFIG_HSA_AMD`, as custom kernels are. Where the kernel has it, the node was deleted, or
    /// `/dev` is not the kernel's own.
    ///
    /// ## How to confirm
    /// `ls /sys/class/kfd /dev/kfd` and `grep HSA_AMD /boot/config-$(uname -r)`.
    "kfd-device-missing", Driver, Error, each Stack, run
}

const NODE: &str = "/dev/kfd";
const CLASS: &str = "/sys/class/kfd";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.driver_ground() == DriverGround::Host {
        return Verdict::NotHere;
    }
    let held = view
        .gpus_of(stack)
        .find(|gpu| gpu.is_on_bus() && gpu.is_held_by("amdgpu"));
    let Some(gpu) = held else {
        return Verdict::NotHere;
    };
    match view.node(NODE) {
        Seen::Got(_) => return Verdict::fine(format!("{NODE} is there")),
        Seen::Absent => {}
        other => {
            return Verdict::cannot_tell(
                format!("{NODE}: {}", other.map(|_| ()).why()),
                "`ls -l /dev/kfd`",
            );
        }
    }
    if let DriverGround::Unknown(why) = view.driver_ground() {
        return Verdict::cannot_tell(why, "`ls -l /dev/kfd` on the machine itself");
    }
    let finding = |title: &str| {
        Finding::new(title)
            .saw(NODE, "does not exist")
            .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
    };
    match &view.facts.kfd {
        Seen::Absent => {
            finding("this kernel has no compute driver for AMD GPUs, so there is no /dev/kfd")
                .saw(CLASS, "does not exist")
                .why("ROCm reaches no GPU on this kernel; display and Vulkan work")
                .fix(FixCall::new("kernel-with-kfd"))
                .into()
        }
        Seen::Got(_) => finding(
            "the kernel has its compute driver for AMD GPUs, and the node /dev/kfd is missing",
        )
        .saw(CLASS, "is there")
        .why("Every ROCm program opens this node first")
        .fix(FixCall::new("reboot"))
        .into(),
        other => Verdict::cannot_tell(
            format!(
                "{NODE} does not exist; {CLASS}: {}",
                other.as_ref().map(|_| ()).why()
            ),
            "`ls /sys/class/kfd`",
        ),
    }
}
