//! ROCm under WSL lacks its way to the GPU of Windows.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::{Stack, Vendor, View, Wanted};

crate::check! {
    /// ROCm is here under WSL, and does not reach the GPU that Windows lends.
    ///
    /// ## Why it matters
    /// Under WSL there is no amdgpu and no `/dev/kfd`: ROCm goes through `/dev/dxg`, with a library of its own for that. Without
    /// it ROCm finds no GPU.
    ///
    /// ## How it comes about
    /// ROCm was installed as on any Linux. From 7.2 on it needs the library `librocdxg`; older releases the package
    /// `hsa-runtime-rocr4wsl-amdgpu`. Before ROCm 7.13 the library is used only where `HSA_ENABLE_DXG_DETECTION=1` is set.
    ///
    /// ## How to confirm
    /// `ldconfig -p | grep librocdxg`, `printenv HSA_ENABLE_DXG_DETECTION`, and `rocminfo`.
    "wsl-rocm-not-ready", Library, Error, each Stack, run, later ["gpu-unsupported"]
}

const LIBRARY: &str = "librocdxg.so";
const VARIABLE: &str = "HSA_ENABLE_DXG_DETECTION";
const PACKAGE: &str = "hsa-runtime-rocr4wsl-amdgpu";
const WOULD_TELL: &str = "`ldconfig -p | grep librocdxg` and `printenv HSA_ENABLE_DXG_DETECTION`";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl() != Some(2) || view.in_container() {
        return Verdict::NotHere;
    }
    // Without the node nothing of this matters.
    let Some(gpu) = view.gpus.iter().find(|gpu| gpu.key == "dxg") else {
        return Verdict::NotHere;
    };
    if !matches!(view.wanted(stack), Wanted::Yes(_)) {
        return Verdict::NotHere;
    }
    let installs = match view.rocm_installs() {
        Seen::Got(installs) => installs,
        // ROCm may come along with a program; nothing here belongs to this system.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("which ROCm is installed: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    match view.library(LIBRARY) {
        Seen::Got(files) => {
            let path = files.first().map_or(LIBRARY, |file| file.path.as_str());
            detection(path, installs, view)
        }
        // That ROCm is here and a GPU of another maker is lent, is no fault.
        Seen::Absent if !matches!(gpu.vendor, Vendor::Amd | Vendor::Other) => Verdict::NotHere,
        Seen::Absent => match view.package(PACKAGE) {
            Seen::Got(_) => Verdict::fine(format!("the package {PACKAGE} is installed")),
            Seen::Absent => {
                Finding::new("this ROCm has no way to the GPU of Windows: librocdxg is missing")
                    .cause("runtime-missing")
                    .saw(view.package_database(), format!("no package {PACKAGE}"))
                    .saw(
                        "/opt/rocm/lib/librocdxg.so",
                        "does not exist, nor in any other folder of libraries",
                    )
                    .why("Under WSL ROCm reaches the GPU through this library alone")
                    .fix(FixCall::new("install-rocm-for-wsl"))
                    .into()
            }
            other => Verdict::cannot_tell(
                format!(
                    "{LIBRARY} is in no folder; the package {PACKAGE}: {}",
                    other.map(|_| ()).why()
                ),
                WOULD_TELL,
            ),
        },
        other => Verdict::cannot_tell(
            format!("{LIBRARY}: {}", other.map(|_| ()).why()),
            WOULD_TELL,
        ),
    }
}

/// Before ROCm 7.13 a variable must switch the library on (ROCm/librocdxg issue 34).
fn detection(
    path: &str,
    installs: &std::collections::BTreeMap<String, crate::facts::software::RocmInstall>,
    view: &View,
) -> Verdict {
    let mut older = None;
    for (root, install) in installs {
        let Some(version) = install.version.got() else {
            return Verdict::cannot_tell(
                format!("{root}: its version: {}", install.version.why()),
                WOULD_TELL,
            );
        };
        let needs = Version::parse(version)
            .zip(Version::parse("7.13"))
            .is_some_and(|(own, first)| own < first);
        if needs {
            let source = install.version_source.as_deref().unwrap_or(root);
            older = Some((source, version));
        }
    }
    let Some((source, version)) = older else {
        return Verdict::fine(format!("{path} is there, and this ROCm uses it by itself"));
    };
    let (says, finding) = match view.variable(VARIABLE) {
        Seen::Got("1") => return Verdict::fine(format!("{VARIABLE}=1 is set")),
        Seen::Got(value) => (
            format!("set to {value:?}"),
            Finding::new(format!(
                "ROCm {version} does not look for the GPU of Windows: {VARIABLE} is not 1"
            )),
        ),
        Seen::Absent => (
            "not set".to_owned(),
            Finding::new(format!(
                "ROCm {version} does not look for the GPU of Windows: {VARIABLE} is not set"
            )),
        ),
        other => {
            return Verdict::cannot_tell(
                format!("{VARIABLE}: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    finding
        .cause("dxg-detection-off")
        .saw(VARIABLE, says)
        .saw(source, format!("ROCm {version}"))
        .saw(path, "is there")
        .why("Before ROCm 7.13 this way to the GPU is off by default, and ROCm finds no GPU")
        .fix(FixCall::new("switch-dxg-detection-on"))
        .into()
}
