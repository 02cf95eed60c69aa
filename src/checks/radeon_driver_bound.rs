//! The older driver radeon holds a GPU.

use crate::check::Verdict;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{AmdgpuGround, Gpu, Stack, View, Wanted};

crate::check! {
    /// The older kernel driver `radeon` holds a GPU that amdgpu could drive, too.
    ///
    /// ## Why it matters
    /// `radeon` draws the screen and has neither Vulkan nor a part for computing. With amdgpu such a card has Vulkan; ROCm
    /// serves it with neither.
    ///
    /// ## How it comes about
    /// For GCN 1 and 2 (Radeon HD 7000 to R9 300) most kernels take `radeon` by default; newer kernels take amdgpu.
    ///
    /// ## How to confirm
    /// `lspci -nnk` names the driver in use.
    "radeon-driver-bound", Driver, Note, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    match view.amdgpu_ground(gpu) {
        AmdgpuGround::Other("radeon") => {}
        AmdgpuGround::Holds => return Verdict::fine("bound to amdgpu"),
        AmdgpuGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
        _ => return Verdict::NotHere,
    }
    // Without its chip nobody knows whether amdgpu could.
    if gpu.target.is_none() {
        return Verdict::cannot_tell(
            "bound to radeon; whether amdgpu could drive it is in no table here",
            gpu.lspci(),
        );
    }
    let seen = view.seen_target(gpu);
    let finding = Finding::new("the older driver radeon holds this GPU")
        .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
        .saw(seen.source, seen.says)
        .fix(view.driver_fix(FixCall::new("amdgpu-instead-of-radeon")));
    match view.wanted(Stack::Rocm) {
        Wanted::Yes(_) => finding.severity(Severity::Error).why(
            "ROCm reaches no GPU through radeon; amdgpu gives this one Vulkan, while ROCm does not serve it",
        ),
        _ => finding.why("The screen works; with amdgpu the GPU would have Vulkan, too"),
    }
    .into()
}
