//! NVIDIA's driver runs, and its libraries for 64-bit programs are not there.

use crate::check::Verdict;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Loaded, Stack, View, Wanted};

crate::check! {
    /// NVIDIA's kernel module is loaded, and libcuda.so.1 or libnvidia-ml.so.1 for 64-bit programs is nowhere.
    ///
    /// ## Why it matters
    /// Programs reach the driver through these two libraries: libcuda.so.1 for everything that computes, libnvidia-ml.so.1 for
    /// `nvidia-smi` and all that watches or counts GPUs. They come with the driver, never with the CUDA toolkit or a framework.
    ///
    /// ## How it comes about
    /// Many distributions pack them apart from what games and the display need, so the driver works for pictures and not for
    /// CUDA. Or only the 32-bit copy was installed, with a game store. Or the libraries lie in a folder of the driver, and the
    /// links that lead there are gone. Where nothing here computes, the finding is a note.
    ///
    /// ## How to confirm
    /// `ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'`; `nvidia-smi` lies in the same package as a rule.
    "nvidia-libraries-missing", Library, Error, each Stack, run
}

const CUDA: &str = "libcuda.so.1";
const NVML: &str = "libnvidia-ml.so.1";
const WOULD_TELL: &str = "`ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'`";

/// Systems made for containers, which keep the driver's libraries in a place of their own.
const OWN_PLACES: [&str; 5] = [
    "amazon-bottlerocket",
    "bottlerocket",
    "cos",
    "flatcar",
    "talos",
];

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    // The host of virtual GPUs has no CUDA of its own.
    if !view.has_own_nvidia_driver()
        || view.driver_container().is_some()
        || matches!(view.loaded("nvidia_vgpu_vfio"), Loaded::Yes(_))
    {
        return Verdict::NotHere;
    }
    let (missing, nvml_too) = match (view.nvidia_library(CUDA), view.nvidia_library(NVML)) {
        (Ok(None), nvml) => (CUDA, nvml == Ok(None)),
        (Ok(Some(_)), Ok(None)) => (NVML, true),
        (Ok(Some(cuda)), Ok(Some(nvml))) => {
            return Verdict::fine(format!("{} and {} are there", cuda.path, nvml.path));
        }
        (Err(why), _) | (_, Err(why)) => return Verdict::cannot_tell(why, WOULD_TELL),
    };
    if let Some(why) = not_known(view) {
        return Verdict::cannot_tell(
            format!("{missing} is in none of the usual folders; {why}"),
            WOULD_TELL,
        );
    }
    found(missing, nvml_too, view)
}

/// What keeps the absence of a library from being a fault for certain.
fn not_known(view: &View) -> Option<String> {
    if let Loaded::Unknown(why) = view.loaded("nvidia") {
        return Some(format!("whether NVIDIA's driver runs here: {why}"));
    }
    if view.place.is_unknown() {
        return Some(format!("whether this is a container: {}", view.place.why()));
    }
    // The driver may come from a container of its own.
    if view.facts.mounts.is_unknown() {
        return Some(format!("/proc/self/mountinfo: {}", view.facts.mounts.why()));
    }
    if view.facts.os_release.is_unknown() {
        return Some(format!(
            "where this distribution keeps them: /etc/os-release: {}",
            view.facts.os_release.why()
        ));
    }
    let id = view
        .facts
        .os_release
        .got()
        .and_then(|os| os.fields.get("ID"));
    id.filter(|id| OWN_PLACES.contains(&id.as_str()))
        .map(|id| format!("{id} keeps the driver's libraries elsewhere"))
}

fn found(missing: &'static str, nvml_too: bool, view: &View) -> Verdict {
    let narrow = view
        .library(missing)
        .into_got()
        .and_then(|files| files.iter().find(|file| file.is_32_bit()));
    // It may be there, and nothing leads the loader to it.
    let aside = view.winner(missing).into_got();
    let title = match (narrow, missing) {
        _ if aside.is_some() => {
            format!("{missing} is there, and nothing leads the loader to it")
        }
        (Some(_), _) => format!("{missing} is there for 32-bit programs alone"),
        (None, NVML) => format!("NVIDIA's driver runs, and {NVML} is missing"),
        (None, _) => format!("NVIDIA's driver runs, and {CUDA} is missing: nothing can use CUDA"),
    };
    let cause = match (narrow, missing) {
        (Some(_), _) if aside.is_none() => "only-32-bit",
        (_, NVML) => "no-nvml",
        (_, _) => "no-libcuda",
    };
    let mut finding = Finding::new(title).cause(cause);
    let lacks = match (missing, nvml_too) {
        _ if aside.is_some() => format!("does not name {missing}"),
        (CUDA, true) => format!("holds neither {CUDA} nor {NVML} for 64-bit programs"),
        _ => format!("holds no {missing} for 64-bit programs"),
    };
    if let Some(file) = aside {
        finding = finding
            .saw(&file.path, "is there")
            .saw("/etc/ld.so.cache", lacks);
    } else {
        for folder in view.usual_library_folders() {
            finding = finding.saw(folder, lacks.as_str());
        }
        if let Some(file) = narrow {
            finding = finding.saw(&file.path, "is there, for 32-bit programs");
        }
    }
    let loaded = view.loaded_words("nvidia");
    finding = finding.saw(loaded.source, loaded.says);
    // CUDA works without NVML, but for what counts GPUs or watches them.
    let severity = match (missing, view.wanted_for_computing()) {
        (NVML, Wanted::Yes(_)) => Some(Severity::Warning),
        (_, Wanted::Yes(_)) => None,
        (_, Wanted::No | Wanted::Unknown) => Some(Severity::Note),
    };
    if let Some(severity) = severity {
        finding = finding.severity(severity);
    }
    let mut fix = FixCall::new("install-nvidia-compute-libraries").with("file", missing);
    let version = view.nvidia_loaded_version().into_got();
    if let Some((branch, _)) = version.and_then(|(version, _)| version.split_once('.')) {
        fix = fix.with("branch", branch);
    }
    finding
        .why(match missing {
            NVML => "nvidia-smi and all that counts or watches GPUs need it; CUDA itself does not",
            _ => "Every CUDA program loads it first; the toolkit and frameworks do not bring it along",
        })
        .fix(match aside {
            Some(_) => FixCall::new("lead-loader-to-nvidia-libraries").with("file", missing),
            None => fix,
        })
        .into()
}
