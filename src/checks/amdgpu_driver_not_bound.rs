//! No driver holds an AMD GPU that amdgpu drives.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{AmdgpuGround, DriverGround, Gpu, Loaded, View};

crate::check! {
    /// No kernel driver holds an AMD GPU that amdgpu could drive.
    ///
    /// ## Why it matters
    /// Without amdgpu the GPU has no render node and no entry in KFD: ROCm, Vulkan and OpenCL do not see it, and a display
    /// on it shows at best what the firmware left there.
    ///
    /// ## How it comes about
    /// Something forbids the module (`nomodeset`, a blacklist), it is not on disk for this kernel (slim cloud kernels leave it
    /// to a package of extra modules), it is too old for the GPU, its signature was refused, or it was loaded and could not
    /// bring the GPU up, for instance because firmware was missing. Where one of these is found, this finding hangs under it.
    ///
    /// ## How to confirm
    /// `lspci -nnk -d 1002:` names the driver in use; `modprobe -n -v amdgpu` says what loading it would do;
    /// `sudo journalctl -k -b -g amdgpu` has the reason where it was tried.
    "amdgpu-driver-not-bound", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    match view.amdgpu_ground(gpu) {
        AmdgpuGround::NotHere => Verdict::NotHere,
        AmdgpuGround::Holds => Verdict::fine("bound to amdgpu"),
        // The older driver, and drivers that hold it for somebody else, are other findings.
        AmdgpuGround::Other(driver) if driver == "radeon" || gpu.is_set_aside() => {
            Verdict::fine(format!("bound to {driver}"))
        }
        AmdgpuGround::Other(_) | AmdgpuGround::Free => found(gpu, view),
        AmdgpuGround::Unknown(why) => Verdict::cannot_tell(why, gpu.lspci()),
    }
}

fn found(gpu: &Gpu, view: &View) -> Verdict {
    let title = match gpu.driver.got() {
        Some(driver) => format!("{driver} holds this GPU instead of amdgpu"),
        None => "no kernel driver holds this GPU: amdgpu could".to_owned(),
    };
    let mut finding = Finding::new(title).saw_answer(gpu.driver_source.as_str(), &gpu.driver);
    if let Some(driver) = gpu.driver.got() {
        return finding
            .why(format!(
                "ROCm reaches an AMD GPU through amdgpu alone; where {driver} is removed, amdgpu takes it after a restart"
            ))
            .into();
    }
    finding = finding.why("ROCm, Vulkan and OpenCL reach an AMD GPU through amdgpu alone");
    if gpu.chip.is_none() {
        // Not in the tables: new, or so old that amdgpu never drove it.
        finding = finding.likely();
    } else if !gpu.target_may_accuse {
        finding = finding.likely().severity(Severity::Note);
    }
    let module = view.loaded_words("amdgpu");
    finding = finding.saw(module.source, module.says);
    let release = view.kernel_release().got().copied().unwrap_or_default();
    let on_disk = view.module_files("amdgpu");
    let built_in = view.is_built_in("amdgpu");
    // Inside a container the folders are not those of the kernel.
    let own_folders = !matches!(view.driver_ground(), DriverGround::Host);
    let call = match (view.loaded("amdgpu"), &on_disk) {
        (Loaded::Yes(_), _) => {
            // It could not bring the GPU up, or somebody took it away by hand; only for that a restart helps.
            finding = finding
                .fix(view.driver_fix(FixCall::new("read-kernel-log").with("word", "amdgpu")));
            FixCall::new("reboot")
        }
        // A driver that is built in shows in /sys/module, whether or not the list of them could be read.
        (loaded, Seen::Absent)
            if own_folders
                && (built_in == Seen::Got(false)
                    || matches!(loaded, Loaded::No(_)) && built_in != Seen::Got(true)) =>
        {
            finding = finding.saw(
                view.running_kernel_folder(),
                "no amdgpu module for the running kernel",
            );
            FixCall::new("install-amdgpu-module-package").with("kernel", release)
        }
        (_, Seen::Got(files)) if own_folders => {
            if let Some(file) = files.first() {
                finding = finding.saw(file.path.as_str(), "the module is there");
            }
            FixCall::new("load-amdgpu-module")
        }
        _ => FixCall::new("load-amdgpu-module"),
    };
    let call = view.driver_fix(call);
    if finding.fixes.contains(&call) {
        return finding.into();
    }
    finding.fix(call).into()
}
