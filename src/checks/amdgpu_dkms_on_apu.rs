//! AMD's driver package drives a GPU that is part of a recent processor.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, View};

crate::check! {
    /// The kernel module of AMD's package `amdgpu-dkms` drives a GPU that is part of a Ryzen processor.
    ///
    /// ## Why it matters
    /// AMD makes that module for accelerators and cards. For the GPUs of Ryzen processors AMD's engineers say to take the driver
    /// of the kernel: with the package some of them end with `HSA_STATUS_ERROR_OUT_OF_RESOURCES` or hang.
    ///
    /// ## How it comes about
    /// `amdgpu-install` adds the module unless `--no-dkms` is given.
    ///
    /// ## How to confirm
    /// `cat /sys/module/amdgpu/version`: only the module of the package has one.
    "amdgpu-dkms-on-apu", Driver, Warning, each Gpu, run
}

/// Targets of processors for which this was said (ROCm/legacy-rocm-build issues 5433, 5890 and 6193).
const TARGETS: &[&str] = &["gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"];
const VERSION: &str = "/sys/module/amdgpu/version";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let is_meant = gpu.target_may_accuse
        && gpu
            .target
            .as_deref()
            .is_some_and(|target| TARGETS.contains(&target));
    if !is_meant
        || view.wsl().is_some()
        || !gpu.is_on_bus()
        || gpu.passed_in == Some(false)
        || view.is_reserved(gpu)
    {
        return Verdict::NotHere;
    }
    let version = view.module_version("amdgpu");
    let version = match version {
        Seen::Got(version) => version,
        Seen::Absent => return Verdict::fine("the driver is the kernel's own"),
        other => {
            return Verdict::cannot_tell(
                format!("{VERSION}: {}", other.map(|_| ()).why()),
                format!("`cat {VERSION}`"),
            );
        }
    };
    let seen = view.seen_target(gpu);
    let mut finding = Finding::new(
        "AMD's package amdgpu-dkms drives this GPU, which is part of the processor",
    )
    .saw(VERSION, version.as_str())
    .saw(seen.source, seen.says)
    .why("AMD's engineers say to use the driver of the kernel for it; with the package programs may find no resources");
    if let Some(event) = view.amdgpu_failures(gpu).next() {
        finding = finding
            .severity(Severity::Error)
            .saw(view.log_source(), event.says());
    }
    finding
        .fix(view.driver_fix(FixCall::new("remove-amdgpu-dkms")))
        .into()
}
