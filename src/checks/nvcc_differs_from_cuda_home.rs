//! `CUDA_HOME` names another toolkit than the one whose `nvcc` comes first on `PATH`.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};

crate::check! {
    /// `CUDA_HOME` names another CUDA toolkit than the one whose `nvcc` comes first on `PATH`.
    ///
    /// ## Why it matters
    /// Some builds take the compiler from `PATH` and headers and libraries from `CUDA_HOME`. Where these are of different
    /// versions they fail in odd ways, or make programs that want another CUDA than expected.
    ///
    /// ## How it comes about
    /// A second toolkit was installed and only one of the two lines in `~/.bashrc` changed; or the distribution's `nvcc` in
    /// `/usr/bin` comes before NVIDIA's.
    ///
    /// ## How to confirm
    /// `echo $CUDA_HOME; readlink -f "$(command -v nvcc)"`
    "nvcc-differs-from-cuda-home", Toolkit, Warning, each Stack, run
}

const WOULD_TELL: &str = "`echo $CUDA_HOME $CUDA_PATH; readlink -f \"$(command -v nvcc)\"`";

fn run(_stack: Stack, view: &View, _tables: &Tables) -> Verdict {
    let Some(software) = view.facts.software.got() else {
        return Verdict::cannot_tell("libraries and toolkits were not looked at", WOULD_TELL);
    };
    let named = ["CUDA_HOME", "CUDA_PATH"].map(|name| (name, view.variable(name)));
    let Some((variable, value)) = named
        .iter()
        .find_map(|(name, value)| Some((*name, *value.got()?)))
    else {
        return match named.iter().all(|(_, value)| value.is_absent()) {
            true => Verdict::NotHere,
            false => Verdict::cannot_tell("whether CUDA_HOME is set", WOULD_TELL),
        };
    };
    let home = match &software.cuda_home {
        Seen::Got(home) => home,
        Seen::Absent => {
            return Finding::new(format!("{variable} names a folder that is not there"))
                .saw(variable, value)
                .saw(value, "does not exist")
                .why("Builds look for the CUDA toolkit there and fail, whatever else is installed")
                .fix(FixCall::new("set-cuda-home"))
                .into();
        }
        other => {
            return Verdict::cannot_tell(
                format!(
                    "{variable} names {value}: {}",
                    other.as_ref().map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    };
    let first = match &software.nvcc {
        Seen::Got(first) => first,
        // Then the variable alone decides.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "the first nvcc on PATH: {}",
                    other.as_ref().map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    };
    if home == first {
        return Verdict::fine(format!("{variable} and PATH lead to {first}"));
    }
    let toolkits = software.cuda_toolkits.got();
    let version = |folder: &String| toolkits.and_then(|toolkits| toolkits.get(folder)?.got());
    let (one, other) = (version(home), version(first));
    if one.is_some() && one == other {
        return Verdict::fine(format!("{home} and {first} are of the same version"));
    }
    let mut finding =
        Finding::new(format!("{variable} names {home}, and PATH leads to the nvcc of {first}"))
            .saw(variable, value)
            .saw("PATH", format!("the first nvcc is that of {first}"))
            .why("Builds that take the compiler from one and the headers from the other fail or make programs for another CUDA")
            .fix(FixCall::new("set-cuda-home"));
    for (folder, version) in [(home, one), (first, other)] {
        if let Some(version) = version {
            finding = finding.saw(folder.as_str(), format!("CUDA {version}"));
        }
    }
    if one.is_none() || other.is_none() {
        // They may be of one version.
        finding = finding.severity(Severity::Note).likely();
    }
    finding.into()
}
