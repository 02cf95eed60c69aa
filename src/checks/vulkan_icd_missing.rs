//! Vulkan's loader is here, and no driver for a GPU.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, View};

crate::check! {
    /// Vulkan's loader is installed, and none of the drivers that it knows is one for this GPU.
    ///
    /// ## Why it matters
    /// Programs that compute with Vulkan (llama.cpp, ollama) do not see the GPU, or compute on the processor with Mesa's
    /// software driver. CUDA, ROCm and Level Zero do not need it. That the loader is there does not say that somebody computes
    /// with Vulkan, so it is told as a note.
    ///
    /// ## How it comes about
    /// The package with the Vulkan driver is missing: on servers NVIDIA's driver is often installed without its parts for
    /// graphics. A container needs the capability `graphics` besides.
    ///
    /// ## How to confirm
    /// `ls /usr/share/vulkan/icd.d /etc/vulkan/icd.d`; `vulkaninfo --summary`.
    "vulkan-icd-missing", Library, Warning, each Gpu, run
}

const WOULD_TELL: &str = "`vulkaninfo --summary`";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    // What computes in a rack mostly has no part for graphics, and needs none.
    let is_seldom_asked = gpu.data_centre || gpu.passed_in == Some(false);
    if !gpu.is_on_bus() || view.wsl().is_some() || is_seldom_asked {
        return Verdict::NotHere;
    }
    // Parts of the names of libraries, and of the manifest where a distribution names it so.
    let drivers: &[&str] = match gpu.driver.got().map(String::as_str) {
        Some("nvidia") => &["libGLX_nvidia", "libEGL_nvidia", "nvidia_icd"],
        Some("amdgpu") => &["libvulkan_radeon", "radeon_icd", "amdvlk", "amd_icd"],
        Some("i915" | "xe") => &["libvulkan_intel", "intel_icd", "intel_hasvk"],
        Some(_) => return Verdict::NotHere,
        None if gpu.driver.is_absent() => return Verdict::NotHere,
        None => {
            return Verdict::cannot_tell(
                format!("{}: {}", gpu.driver_source, gpu.driver.why()),
                gpu.lspci(),
            );
        }
    };
    let loader = match view.winner("libvulkan.so.1") {
        Seen::Got(file) => file,
        // Nobody uses Vulkan here.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("libvulkan.so.1: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    for variable in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
        let value = view.variable(variable);
        if !value.is_absent() {
            let says = value
                .got()
                .map_or_else(|| value.why(), |_| "is set".to_owned());
            return Verdict::cannot_tell(
                format!("which drivers the loader takes: {variable} {says}"),
                WOULD_TELL,
            );
        }
    }
    let empty = std::collections::BTreeMap::new();
    let files = match view.facts.icd.as_ref().and_then(|icd| icd.vulkan.as_ref()) {
        Seen::Got(files) => files,
        Seen::Absent => &empty,
        other => {
            return Verdict::cannot_tell(
                format!("Vulkan's drivers: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let fits = |text: &str| drivers.iter().any(|driver| text.contains(driver));
    let own = files
        .iter()
        .find(|(path, library)| fits(path) || library.got().is_some_and(|library| fits(library)));
    if let Some((path, _)) = own {
        return Verdict::fine(format!("{path} is there"));
    }
    if let Some((path, library)) = files.iter().find(|(_, library)| library.is_unknown()) {
        return Verdict::cannot_tell(format!("{path}: {}", library.why()), WOULD_TELL);
    }
    let others: Vec<&str> = files
        .keys()
        .filter_map(|path| path.rsplit('/').next())
        .collect();
    let says = match others.is_empty() {
        true => "no driver, nor in any other folder".to_owned(),
        false => format!("none for this GPU, only {}", others.join(", ")),
    };
    let fix = match gpu.driver.got().map(String::as_str) {
        Some("nvidia") => {
            let call = FixCall::new("install-nvidia-vulkan-driver");
            match view
                .nvidia_driver_version()
                .and_then(|(version, _)| version.split('.').next())
            {
                Some(branch) => call.with("branch", branch),
                None => call,
            }
        }
        Some("amdgpu") => FixCall::new("install-vulkan-driver").with("word", "radeon"),
        _ => FixCall::new("install-vulkan-driver").with("word", "intel"),
    };
    Finding::new("Vulkan's loader has no driver for this GPU")
        // That the loader is here does not say that somebody computes with Vulkan.
        .severity(Severity::Note)
        .saw(&loader.path, "is there")
        .saw("/usr/share/vulkan/icd.d", says)
        .why("Programs that compute with Vulkan do not see the GPU; CUDA, ROCm and Level Zero do not need it")
        .fix(view.driver_fix(fix))
        .into()
}
