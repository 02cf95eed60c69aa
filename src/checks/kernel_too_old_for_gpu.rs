//! The kernel is older than the GPU.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::log::Kind;
use crate::view::{
    AmdgpuGround, Gpu, Loaded, RELEASE_FILE, Stack, Vendor, View, Wanted, carries_drivers_back,
};

crate::check! {
    /// The running kernel is older than a GPU and its driver does not know it.
    ///
    /// ## Why it matters
    /// amdgpu takes only GPUs that its version knows. The card then has no driver, the screen runs on what the firmware of the
    /// machine left there, and Vulkan and ROCm see nothing.
    ///
    /// ## How it comes about
    /// A long-term release with the kernel of its year, and a newer card: RDNA 3 needs Linux 6.0 or 6.1, RDNA 4 needs 6.11.
    /// Distributions carry drivers back into older kernels, and AMD's `amdgpu-dkms` replaces the driver: then the number of the
    /// kernel says nothing.
    ///
    /// ## How to confirm
    /// `uname -r`, `lspci -nnk` for the driver in use, `sudo journalctl -k -b -g amdgpu`, and `gpucheck tables gpu NAME`.
    "kernel-too-old-for-gpu", Driver, Error, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if gpu.vendor != Vendor::Amd || gpu.passed_in == Some(false) {
        return Verdict::NotHere;
    }
    match view.amdgpu_ground(gpu) {
        AmdgpuGround::NotHere | AmdgpuGround::Other(_) => return Verdict::NotHere,
        AmdgpuGround::Holds => return of_kfd(gpu, view),
        AmdgpuGround::Free => {}
        AmdgpuGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    }
    let release = match view.kernel_release() {
        Seen::Got(release) => release,
        other => {
            return Verdict::cannot_tell(
                format!("{RELEASE_FILE}: {}", other.map(|_| ()).why()),
                "`uname -r`",
            );
        }
    };
    let Some(first) = view.first_kernel(gpu) else {
        return Verdict::cannot_tell(
            "since which kernel there is a driver for this GPU is in no table here",
            "`sudo journalctl -k -b -g amdgpu`",
        );
    };
    match Version::parse(release) {
        Some(running) if running < first.value => {}
        Some(_) => {
            return Verdict::fine(format!(
                "Linux {release} is not older than {}, the first one that knows it",
                first.value.text()
            ));
        }
        None => return Verdict::cannot_tell(format!("{release} is no version"), "`uname -r`"),
    }
    // Another amdgpu than the kernel's own may know more than its number says.
    match view.extra_module("amdgpu") {
        Seen::Absent => {}
        Seen::Got(file) => {
            return Verdict::cannot_tell(
                format!("{} is there, which is not the kernel's own", file.path),
                "`sudo journalctl -k -b -g amdgpu`",
            );
        }
        other if !view.in_container() => {
            return Verdict::cannot_tell(
                format!(
                    "whether there is another amdgpu than the kernel's own: {}",
                    other.map(|_| ()).why()
                ),
                "`modinfo -n amdgpu`",
            );
        }
        _ => {}
    }
    if carries_drivers_back(release) {
        return Verdict::cannot_tell(
            format!("kernels such as {release} have newer drivers than their number says"),
            "`sudo journalctl -k -b -g amdgpu`",
        );
    }
    let loaded = view.loaded("amdgpu");
    let mut finding = Finding::new(format!(
        "this kernel is older than the GPU, which wants Linux {} or later",
        first.value.text()
    ))
    .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
    .saw(RELEASE_FILE, release)
    .why("The driver of this kernel does not know the GPU and leaves it alone");
    let seen = view.seen_target(gpu);
    finding = finding.saw(seen.source, seen.says);
    if let Some(event) = view.amdgpu_failures(gpu).next() {
        // It tried, so it took the GPU for one of its own.
        finding = finding.saw(view.log_source(), event.says());
    } else if let Loaded::Yes(evidence) = loaded {
        finding = finding.saw(evidence.source, evidence.says);
    }
    finding
        .likely()
        .fix(view.driver_fix(FixCall::new("newer-kernel")))
        .into()
}

/// amdgpu holds the GPU, and the part of it for computing does not know the chip.
fn of_kfd(gpu: &Gpu, view: &View) -> Verdict {
    if !gpu.kfd_nodes.is_empty() {
        return Verdict::fine("bound to amdgpu, and KFD took it");
    }
    // Chips that KFD never took go by a name there, newer ones by the number of their graphics block.
    let event = view.log_near(gpu).find(
        |event| matches!(&event.kind, Kind::NotSupportedInKfd { chip } if chip.starts_with("GC IP")),
    );
    let Some(event) = event else {
        return match view.log_tells() {
            Seen::Got(()) => Verdict::fine("bound to amdgpu"),
            _ if view.facts.kfd.is_absent() => Verdict::fine("bound to amdgpu"),
            other => Verdict::cannot_tell(
                format!(
                    "bound to amdgpu; whether KFD knows it, the kernel log alone tells: {}",
                    other.why()
                ),
                "`sudo journalctl -k -b -g kfd`",
            ),
        };
    };
    let wanted = matches!(view.wanted(Stack::Rocm), Wanted::Yes(_));
    let finding = Finding::new(
        "ROCm cannot use this GPU: it is newer than the compute driver of the kernel (KFD), which does not know it",
    )
    .saw(view.log_source(), event.says())
    .why("ROCm does not see the GPU; display and Vulkan work")
    .likely()
    .fix(view.driver_fix(FixCall::new("newer-kernel")));
    match wanted {
        true => finding,
        false => finding.severity(Severity::Note),
    }
    .into()
}
