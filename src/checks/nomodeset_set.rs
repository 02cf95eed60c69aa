//! `nomodeset` on the running kernel's command line.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Vendor, View, Wanted};

crate::check! {
    /// The kernel was started with `nomodeset`, which tells the drivers of the kernel to leave GPUs alone.
    ///
    /// ## Why it matters
    /// amdgpu, i915, xe and nouveau refuse to take a GPU while this word is on the command line: no acceleration, no ROCm, no
    /// Level Zero, and a screen at the firmware's resolution. NVIDIA's own driver computes all the same.
    ///
    /// ## How it comes about
    /// Installers offer it as safe graphics for hardware that they do not know yet, guides recommend it against a black
    /// screen, and it stays in the boot loader's configuration when the reason is long gone.
    ///
    /// ## How to confirm
    /// `grep -w nomodeset /proc/cmdline`
    "nomodeset-set", Driver, Error, each Gpu, run
}

const COMMAND_LINE: &str = "/proc/cmdline";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    // Held or kept for a virtual machine, gone from the bus, lent by Windows, or of a maker whose drivers are not meant.
    if view.wsl().is_some()
        || !gpu.is_on_bus()
        || view.is_reserved(gpu)
        || gpu.vendor == Vendor::Other
    {
        return Verdict::NotHere;
    }
    let words = match view.kernel_words() {
        Seen::Got(words) => words,
        other => {
            return Verdict::cannot_tell(
                format!("{COMMAND_LINE}: {}", other.why()),
                "`cat /proc/cmdline`",
            );
        }
    };
    if !words.iter().any(|word| word == "nomodeset") {
        return Verdict::fine("the kernel was started without nomodeset");
    }
    let finding = Finding::new("").saw(COMMAND_LINE, "nomodeset");
    let finding = match (&gpu.driver, gpu.vendor) {
        (Seen::Absent, Vendor::Amd | Vendor::Intel) if is_idle(gpu, view) => Finding {
            title: "the kernel was started with nomodeset, so no driver takes the integrated GPU".to_owned(),
            ..finding
                .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
                .severity(Severity::Note)
                .why("amdgpu, i915 and xe refuse to start while it is there; a server without a screen does not need them")
        },
        (Seen::Absent, Vendor::Amd | Vendor::Intel) => Finding {
            title: "the kernel was started with nomodeset, so no driver takes this GPU".to_owned(),
            ..finding.saw_answer(gpu.driver_source.as_str(), &gpu.driver).why(
                "amdgpu, i915 and xe refuse to start while nomodeset is on the command line",
            )
        },
        (Seen::Got(driver), _) => Finding {
            title: format!("the kernel was started with nomodeset; {driver} holds this GPU all the same"),
            ..finding
                .saw(gpu.driver_source.as_str(), driver.as_str())
                .severity(Severity::Note)
                .why("It holds back the drivers of the kernel and should go once the display works")
        },
        (Seen::Absent, _) => Finding {
            title: "the kernel was started with nomodeset, which holds nouveau back; NVIDIA's own driver does not depend on it".to_owned(),
            ..finding
                .saw_answer(gpu.driver_source.as_str(), &gpu.driver)
                .severity(Severity::Note)
                .why("It holds back the drivers of the kernel and should go once the display works")
        },
        // Whether it does harm here cannot be told, so it is no more than a remark.
        (unknown, _) => Finding {
            title: "the kernel was started with nomodeset, which may keep drivers from this GPU".to_owned(),
            ..finding
                .saw_answer(gpu.driver_source.as_str(), unknown)
                .severity(Severity::Note)
                .likely()
                .why("amdgpu, i915, xe and nouveau refuse to start while it is there; whether one of them holds this GPU is not known")
        },
    };
    finding
        .fix(view.driver_fix(FixCall::new("remove-kernel-parameter").with("word", "nomodeset")))
        .into()
}

/// The GPU of a processor that nobody computes or draws on, as far as is known: some providers start all their servers with
/// `nomodeset`, and nothing is wrong there.
fn is_idle(gpu: &Gpu, view: &View) -> bool {
    let wanted = gpu
        .vendor
        .stack()
        .is_some_and(|stack| matches!(view.wanted(stack), Wanted::Yes(_)));
    let draws = matches!(
        view.variable("XDG_SESSION_TYPE"),
        Seen::Got("x11" | "wayland")
    );
    gpu.integrated == Some(true) && !wanted && !draws
}
