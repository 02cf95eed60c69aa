//! The C library's headers clash with those of the CUDA toolkit.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::environments::ToolkitGround;
use crate::view::{Stack, View};

crate::check! {
    /// The C library's headers and those of the CUDA toolkit declare the same functions differently.
    ///
    /// ## Why it matters
    /// Whatever is built with this toolkit stops with "exception specification is incompatible with that of previous function
    /// sinpi". No other version of gcc helps. Programs that are already built run as before.
    ///
    /// ## How it comes about
    /// glibc 2.41 brought `sinpi` and `cospi`, glibc 2.42 `rsqrt`, and declares that they throw nothing; the headers of older
    /// toolkits have functions of these names without such a promise. CUDA 13.0 agrees with glibc 2.41, and 13.2 with 2.42. Some
    /// distributions mend the header of their toolkit.
    ///
    /// ## How to confirm
    /// `ldd --version`, and `grep -rE '(sinpi|rsqrt)\(double x' /usr/local/cuda/include/crt`: the line ends in `(double x);`
    /// where it clashes.
    "nvcc-glibc-incompatible", Toolkit, Error, each Stack, run
}

const WOULD_TELL: &str =
    r"`ldd --version`, and `grep -rE '(sinpi|rsqrt)\(double x' /usr/local/cuda/include/crt`";
/// Functions, the first glibc that declares them (its NEWS), and the first CUDA whose headers agree: 13.0 has those of the first,
/// and 13.2 brought `_NV_RSQRT_SPECIFIER` (llvm/llvm-project pull request 185701; 13.1 still clashes, ggml-org/llama.cpp issue
/// 19100).
const SINCE: &[(&str, &str, &str)] = &[("sinpi", "2.41", "13.0"), ("rsqrt", "2.42", "13.2")];

fn run(_stack: Stack, view: &View, _tables: &Tables) -> Verdict {
    let (folder, build) = match view.toolkit_ground() {
        ToolkitGround::Open(folder, build) => (folder, build),
        ToolkitGround::NotHere => return Verdict::NotHere,
        ToolkitGround::Unknown(why, ask) => {
            return Verdict::cannot_tell(why, ask.unwrap_or(WOULD_TELL));
        }
    };
    let plain = match &build.plain_functions {
        Seen::Got(plain) => plain,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "the headers of {folder}: {}",
                    other.as_ref().map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    };
    let software = view.facts.software.as_ref();
    let compiler = software.and_then(|software| software.host_compiler.as_ref());
    let glibc = match compiler.and_then(|compiler| compiler.glibc.as_ref()) {
        Seen::Got(glibc) => glibc,
        // Without its headers nothing is built.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("the headers of the C library: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let Some(version) = Version::parse(glibc) else {
        return Verdict::cannot_tell("the version of the C library", WOULD_TELL);
    };
    let declared = || {
        SINCE
            .iter()
            .filter(|(_, since, _)| Version::parse(since).is_some_and(|since| version >= since))
    };
    let clash = declared().find(|(name, ..)| plain.iter().any(|function| function == name));
    // A toolkit that agrees on one of them may still clash on the next.
    let agrees = declared().next_back();
    let (Some((name, since, _)), Some((.., agrees))) = (clash, agrees) else {
        return Verdict::fine(format!(
            "the headers of {folder} and of glibc {glibc} agree"
        ));
    };
    Finding::new(format!(
        "nothing can be built with {folder}: its headers clash with those of glibc {glibc}"
    ))
    .saw(
        format!("{folder}/include/crt/math_functions.h"),
        format!("{name}(double x) without an exception specification"),
    )
    .saw(
        "/usr/include/features.h",
        format!("glibc {glibc}, which declares {name} itself (from {since} on)"),
    )
    .why("The compiler stops at the first file that includes both; another gcc does not help, and programs that exist run")
    .fix(FixCall::new("newer-cuda-toolkit").with("version", *agrees))
    .into()
}
