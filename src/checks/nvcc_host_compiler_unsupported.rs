//! The host's compiler is newer than the CUDA toolkit lets pass.

use crate::check::{Verdict, worst};
use crate::facts::Seen;
use crate::facts::software::{CudaBuild, HostCompiler};
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::environments::ToolkitGround;
use crate::view::{Stack, View};

crate::check! {
    /// `nvcc` refuses the compiler that it would take for the host's part of a program.
    ///
    /// ## Why it matters
    /// Whatever is built with this toolkit ends in "unsupported GNU version! gcc versions later than N are not supported".
    /// Programs that are already built run as before.
    ///
    /// ## How it comes about
    /// The distribution's compiler is newer than the toolkit. `-allow-unsupported-compiler` only hides the question: the
    /// headers of the newer compiler then often fail elsewhere.
    ///
    /// ## How to confirm
    /// `gcc --version` beside the line `#if __GNUC__ > N` of the toolkit's `include/crt/host_config.h`.
    "nvcc-host-compiler-unsupported", Toolkit, Warning, each Stack, run
}

const WOULD_TELL: &str =
    "`gcc --version`, and `grep __GNUC__ /usr/local/cuda/include/crt/host_config.h`";
/// Variables and options that name another compiler.
const VARIABLES: &[&str] = &["NVCC_CCBIN", "CUDAHOSTCXX", "CC"];
const OPTIONS: &[&str] = &["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"];

fn run(_stack: Stack, view: &View, _tables: &Tables) -> Verdict {
    let (folder, build) = match view.toolkit_ground() {
        ToolkitGround::Open(folder, build) => (folder, build),
        ToolkitGround::NotHere => return Verdict::NotHere,
        ToolkitGround::Unknown(why, ask) => {
            return Verdict::cannot_tell(why, ask.unwrap_or(WOULD_TELL));
        }
    };
    let newest = match &build.newest_gcc {
        Seen::Got(newest) => *newest,
        // A runtime alone, or a toolkit that takes everything.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "the newest gcc of {folder}: {}",
                    other.as_ref().map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    };
    let software = view.facts.software.got();
    let compiler = software.and_then(|software| software.host_compiler.got());
    if let Some(named) = named_otherwise(build, compiler, view) {
        return named;
    }
    let Some(compiler) = compiler else {
        return Verdict::cannot_tell("the compiler of the host was not looked at", WOULD_TELL);
    };
    let path = match &compiler.path {
        Seen::Got(path) => path,
        // Nothing can be built, and nobody tries.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "the first gcc on PATH: {}",
                    other.as_ref().map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    };
    let candidates = match major_of(path) {
        Some(major) => vec![major],
        None => match &compiler.installed {
            // A compiler of another place is none of these.
            Seen::Got(installed) if path.starts_with("/usr/bin/") => installed.clone(),
            Seen::Got(_) | Seen::Absent => {
                return Verdict::cannot_tell(format!("the version of {path}"), WOULD_TELL);
            }
            other => {
                return Verdict::cannot_tell(
                    format!(
                        "the version of {path}: {}",
                        other.as_ref().map(|_| ()).why()
                    ),
                    WOULD_TELL,
                );
            }
        },
    };
    let limits = build.limits.as_deref().unwrap_or(folder);
    worst_of_all(&candidates, |major| {
        if major <= newest {
            return Verdict::fine(format!("gcc {major}, and {limits} lets {newest} pass"));
        }
        let mut finding = Finding::new(format!(
            "nvcc of {folder} refuses gcc {major}: it takes {newest} at most"
        ))
        .saw(path.as_str(), format!("gcc {major}"))
        .saw(limits, format!("#if __GNUC__ > {newest}: an error"))
        .why("Whatever is compiled with this toolkit stops at its first file; programs that exist run")
        .fix(FixCall::new("gcc-for-nvcc").with("version", newest.to_string()));
        if view.builds_extensions() {
            finding = finding
                .severity(Severity::Error)
                .saw("TORCH_CUDA_ARCH_LIST", "set: extensions are built here");
        }
        finding.into()
    })
}

/// Where the very compiler is not known: found only if all agree.
fn worst_of_all(majors: &[u32], verdict: impl Fn(u32) -> Verdict) -> Verdict {
    let verdicts: Vec<Verdict> = majors.iter().map(|major| verdict(*major)).collect();
    let is_found = |verdict: &Verdict| matches!(verdict, Verdict::Found(_));
    let found = verdicts.iter().filter(|verdict| is_found(verdict)).count();
    if found > 0 && found < verdicts.len() {
        return Verdict::cannot_tell(
            "several versions of gcc are installed, and which one comes first is not known",
            WOULD_TELL,
        );
    }
    worst(verdicts.into_iter())
}

/// `/usr/bin/x86_64-linux-gnu-gcc-13`.
fn major_of(path: &str) -> Option<u32> {
    let (_, version) = path.rsplit_once('-')?;
    version.split('.').next()?.parse().ok()
}

/// Something names another compiler than the first one on `PATH`.
fn named_otherwise(
    build: &CudaBuild,
    compiler: Option<&HostCompiler>,
    view: &View,
) -> Option<Verdict> {
    match &build.own_compiler {
        Seen::Got(path) => {
            return Some(Verdict::fine(format!(
                "nvcc takes the compiler beside it, {path}"
            )));
        }
        Seen::Absent => {}
        other => {
            return Some(Verdict::cannot_tell(
                format!(
                    "a compiler beside nvcc: {}",
                    other.as_ref().map(|_| ()).why()
                ),
                WOULD_TELL,
            ));
        }
    }
    for name in VARIABLES.iter().chain(OPTIONS) {
        match view.variable(name) {
            Seen::Absent => {}
            Seen::Got(value) if OPTIONS.contains(name) && !names_compiler(value) => {}
            Seen::Got(value) => {
                return Some(Verdict::cannot_tell(
                    format!("{name} names the compiler: {value}"),
                    "`$NVCC_CCBIN --version`",
                ));
            }
            other => {
                return Some(Verdict::cannot_tell(
                    format!("{name}: {}", other.map(|_| ()).why()),
                    WOULD_TELL,
                ));
            }
        }
    }
    match compiler.map(|compiler| &compiler.in_profile) {
        Some(Seen::Got(line)) => Some(Verdict::cannot_tell(
            format!("/etc/profile.d/cuda.sh names the compiler for login shells: {line}"),
            "`$NVCC_CCBIN --version` in a new login",
        )),
        _ => None,
    }
}

fn names_compiler(options: &str) -> bool {
    [
        "-ccbin",
        "--compiler-bindir",
        "-allow-unsupported-compiler",
        "--allow-unsupported-compiler",
    ]
    .iter()
    .any(|option| options.contains(option))
}
