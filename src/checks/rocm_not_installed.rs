//! ROCm is wanted and not installed.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View, Wanted};

crate::check! {
    /// Somebody wants to compute with ROCm here, and this system has none.
    ///
    /// ## Why it matters
    /// Programs that are linked with ROCm do not start, and `rocminfo` is not there to show the GPUs. What brings its own ROCm,
    /// such as PyTorch's wheels and Ollama, does not need it.
    ///
    /// ## How it comes about
    /// Only the driver was installed, or ROCm was removed.
    ///
    /// ## How to confirm
    /// `ls -d /opt/rocm*` and `which rocminfo`.
    "rocm-not-installed", Library, Note, each Stack, run
}

/// Where the names of ROCm's packages begin.
const PACKAGES: &[&str] = &[
    "rocm*",
    "hsa-*",
    "libhsa-runtime64*",
    "libamdhip64*",
    "hip-runtime*",
    "rocblas*",
    "librocblas*",
];
const WOULD_TELL: &str = "`ls -d /opt/rocm*` and `which rocminfo`";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    let Wanted::Yes(wanted) = view.wanted(stack) else {
        return Verdict::NotHere;
    };
    let software = match &view.facts.software {
        Seen::Got(software) => software,
        other => {
            return Verdict::cannot_tell(
                format!("what is installed: {}", other.as_ref().map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    match &software.rocm {
        Seen::Got(installs) => {
            let roots: Vec<&str> = installs.keys().map(String::as_str).collect();
            return Verdict::fine(format!("ROCm is in {}", roots.join(", ")));
        }
        Seen::Absent => {}
        other => {
            return Verdict::cannot_tell(
                format!("ROCm: {}", other.as_ref().map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    }
    // What brings its own is enough for itself.
    if software
        .programs
        .get("ollama")
        .is_some_and(|path| path.got().is_some())
        || view.first_framework(stack).is_some()
    {
        return Verdict::NotHere;
    }
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if !view.variable(variable).is_absent() {
            return Verdict::cannot_tell(
                "a Python environment may bring its own ROCm",
                "`python3 -c 'import torch; print(torch.version.hip)'`",
            );
        }
    }
    let packages = PACKAGES
        .iter()
        .find_map(|pattern| view.packages_matching(pattern).into_got());
    if let Some((name, _)) = packages.and_then(|packages| packages.first().copied()) {
        return Verdict::cannot_tell(
            format!("the package {name} is installed, and no folder of it was found"),
            WOULD_TELL,
        );
    }
    Finding::new("ROCm is not installed on this system")
        .saw("/opt/rocm", "does not exist")
        .saw("/usr/lib", format!("no library of ROCm; it is wanted: {wanted}"))
        .why("Programs that are linked with ROCm do not start; what brings its own, such as PyTorch's wheels, does")
        .fix(FixCall::new("set-up-rocm"))
        .into()
}
