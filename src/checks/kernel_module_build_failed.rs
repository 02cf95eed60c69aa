//! A GPU driver that is built on this machine failed to build for the running kernel.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::module_files::BuildLog;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{BuildGround, DkmsTree, Loaded, RELEASE_FILE, Stack, View};

crate::check! {
    /// A GPU driver that is built on this machine failed to build for the running kernel.
    ///
    /// ## Why it matters
    /// dkms and akmods compile the driver for each kernel. Where that fails there is no module, and after the restart the GPU has
    /// no driver; with AMD's package the driver that comes with the kernel works instead.
    ///
    /// ## How it comes about
    /// The source is older than the kernel and does not compile with it any more (cause `branch-too-old`), the compiler is not the
    /// one that built the kernel (`compiler-mismatch`), dkms has lost the source of a version (`tree-corrupt`), or
    /// something else went wrong: a full disk, a missing tool.
    ///
    /// ## How to confirm
    /// `dkms status`, and the first errors in `/var/lib/dkms/NAME/VERSION/build/make.log`, or the `.failed.log` below
    /// `/var/cache/akmods`. A driver's log says that the compiler differs in builds that went well, too.
    "kernel-module-build-failed", Driver, Error, each Stack, run
}

/// Most errors that are quoted.
const QUOTED: usize = 3;
/// What programs say of a full disk (ENOSPC, strerror(3)).
const DISK_FULL: &str = "No space left on device";
/// Most characters of an error that are quoted.
const QUOTED_LENGTH: usize = 200;

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    let Some(module) = view.module_of(stack) else {
        return Verdict::NotHere;
    };
    match view.build_ground(stack) {
        BuildGround::Open => {}
        BuildGround::NotHere => return Verdict::NotHere,
        BuildGround::Unknown(why) => {
            return Verdict::cannot_tell(why, "the same question on the machine itself");
        }
    }
    let release = view.kernel_release().got().copied().unwrap_or_default();
    let (trees, whole) = match view.dkms_trees(module) {
        Seen::Got(found) => found,
        Seen::Absent => (Vec::new(), true),
        _ => (Vec::new(), false),
    };
    let on_disk = view.extra_module(module);
    let loaded = view.loaded(module);
    // NVIDIA's module can only be loaded where it was built; an amdgpu may be the kernel's own.
    let present = match (&on_disk, &loaded) {
        (Seen::Got(file), _) => Some(format!("{} is for this kernel", file.path)),
        (_, Loaded::Yes(evidence)) if module == "nvidia" => {
            Some(format!("{} {}", evidence.source, evidence.says))
        }
        _ => None,
    };
    if let Some(broken) = trees.iter().find(|tree| tree.tree.conf.is_absent()) {
        return corrupt(broken, present.is_some(), release, view);
    }
    if let Some(says) = present {
        // A version without its source may keep later kernels from getting a module.
        return match trees.iter().find(|tree| tree.tree.conf.is_unknown()) {
            Some(tree) => Verdict::cannot_tell(
                format!(
                    "{says}; {}/source/dkms.conf: {}",
                    tree.path(),
                    tree.tree.conf.why()
                ),
                "`dkms status`",
            ),
            None => Verdict::fine(says),
        };
    }
    let would_tell = "`dkms status`, and the log of the build below /var/lib/dkms";
    if let other @ (Seen::Unasked(_) | Seen::Failed(_)) = on_disk {
        return Verdict::cannot_tell(
            format!(
                "whether there is a {module} for this kernel: {}",
                other.map(|_| ()).why()
            ),
            would_tell,
        );
    }
    let instead = matches!(loaded, Loaded::Yes(_));
    if let Some((log, tool)) = failed_build(&trees, module, release, view) {
        return failed(log, tool, module, instead, view);
    }
    // A half-configured package is one whose build failed, perhaps for another kernel: so this kernel must have none.
    let is_built = trees
        .iter()
        .any(|tree| tree.tree.kernels.items.contains_key(release));
    if !is_built
        && !trees.is_empty()
        && let Some((name, state)) = half_configured(module, view)
    {
        let finding = base(module, instead, view)
            .cause("other")
            .saw("/var/lib/dpkg/status", format!("{name} is {state}"))
            .saw(trees[0].path(), format!("has no module for {release}"))
            .likely()
            .fix(
                FixCall::new("read-build-log")
                    .with("file", format!("{}/build/make.log", trees[0].path())),
            )
            .fix(newer_driver(module, release));
        return with_last_resort(finding, module).into();
    }
    unbuilt(&trees, whole, module, view)
}

/// Nothing is known of a build that failed.
fn unbuilt(trees: &[DkmsTree], whole: bool, module: &str, view: &View) -> Verdict {
    let would_tell = "`dkms status`, and the log of the build below /var/lib/dkms";
    if !whole {
        return Verdict::cannot_tell(
            format!("what dkms has of {module} is not known"),
            would_tell,
        );
    }
    let akmods = view.akmods_failed(module).map(|_| ());
    let unread = trees
        .iter()
        .find(|tree| tree.tree.log.is_unknown())
        .map(|tree| {
            (
                format!("{}/build/make.log", tree.path()),
                tree.tree.log.as_ref().map(|_| ()).why(),
            )
        });
    if let Some((path, why)) = unread {
        return Verdict::cannot_tell(format!("{path}: {why}"), would_tell);
    }
    match view.builder_of(module) {
        Seen::Absent => Verdict::NotHere,
        Seen::Got(_) if !akmods.is_unknown() => {
            Verdict::fine("no build for this kernel that failed is on record")
        }
        _ => Verdict::cannot_tell(format!("/var/cache/akmods: {}", akmods.why()), would_tell),
    }
}

/// The log of a build for the running kernel that failed, and the tool that built.
fn failed_build<'v>(
    trees: &[DkmsTree<'v>],
    module: &str,
    release: &str,
    view: &'v View,
) -> Option<(&'v BuildLog, &'static str)> {
    let is_ours =
        |log: &&BuildLog| log.kernel.as_deref() == Some(release) && !log.errors.is_empty();
    let by_dkms = trees
        .iter()
        .rev()
        .filter(|tree| !tree.tree.kernels.items.contains_key(release))
        .filter_map(|tree| tree.tree.log.got())
        .find(is_ours);
    if let Some(log) = by_dkms {
        return Some((log, "dkms"));
    }
    let logs = view.akmods_failed(module).into_got()?;
    let log = logs
        .into_iter()
        .rev()
        .find(|log| log.kernel.as_deref() == Some(release))?;
    Some((log, "akmods"))
}

fn base(module: &str, instead: bool, view: &View) -> Finding {
    let release = view.kernel_release().got().copied().unwrap_or_default();
    let finding = Finding::new(format!(
        "{module} was not built for the running kernel {release}: the build failed"
    ))
    .saw(RELEASE_FILE, release)
    .saw(
        view.running_kernel_folder(),
        format!("no {module} module that was built here"),
    );
    if instead {
        let evidence = view.loaded_words(module);
        finding
            .severity(Severity::Warning)
            .saw(evidence.source, format!("{}: the driver of the kernel itself works instead", evidence.says))
            .why("The driver that came with the kernel does the work; what the package would add is not there")
    } else {
        finding.why("Without a module for this kernel the driver cannot be loaded")
    }
}

fn failed(log: &BuildLog, tool: &str, module: &str, instead: bool, view: &View) -> Verdict {
    let release = view.kernel_release().got().copied().unwrap_or_default();
    let cause = cause(&log.errors);
    let mut finding = base(module, instead, view).cause(cause);
    finding.title = match cause {
        "compiler-mismatch" => format!(
            "{module} was not built for the running kernel {release}: the compiler is not the one that built the kernel"
        ),
        "branch-too-old" => format!(
            "{module} was not built for the running kernel {release}: its source does not compile with this kernel"
        ),
        _ => finding.title,
    };
    if log.errors.is_empty() {
        finding = finding.saw(
            log.path.as_str(),
            format!("{tool} kept the log of a build that failed"),
        );
    }
    for error in quoted(&log.errors) {
        finding = finding.saw(log.path.as_str(), error);
    }
    finding = match cause {
        "compiler-mismatch" => match compiler_of_kernel(view) {
            Some(compiler) => finding
                .saw(
                    "/proc/version",
                    format!("the kernel was built by {compiler}"),
                )
                .fix(compiler_fix(module, release).with("name", compiler)),
            None => finding.fix(compiler_fix(module, release)),
        },
        "branch-too-old" => finding.fix(newer_driver(module, release)),
        // Of a driver's release a full disk knows nothing.
        _ if log.errors.iter().any(|error| error.contains(DISK_FULL)) => finding.fix(
            FixCall::new("free-disk-space")
                .with("kernel", release)
                .with("module", module),
        ),
        _ => finding
            .fix(FixCall::new("read-build-log").with("file", log.path.as_str()))
            .fix(newer_driver(module, release)),
    };
    with_last_resort(finding, module).into()
}

fn newer_driver(module: &str, release: &str) -> FixCall {
    FixCall::new("newer-driver-or-older-kernel")
        .with("kernel", release)
        .with("module", module)
}

fn compiler_fix(module: &str, release: &str) -> FixCall {
    FixCall::new("install-kernel-compiler")
        .with("kernel", release)
        .with("module", module)
}

/// AMD's driver comes with the kernel, too.
fn with_last_resort(finding: Finding, module: &str) -> Finding {
    if module == "amdgpu" {
        finding.fix(FixCall::new("amdgpu-of-the-kernel"))
    } else {
        finding
    }
}

/// What the errors of a build come down to.
fn cause(errors: &[String]) -> &'static str {
    let says = |marks: &[&str]| {
        errors
            .iter()
            .any(|error| marks.iter().any(|mark| error.contains(mark)))
    };
    let no_compiler = errors.iter().any(|error| {
        error.ends_with("not found")
            && ["gcc", "clang", "cc:"]
                .iter()
                .any(|name| error.contains(name))
    });
    // NVIDIA's conftest.sh; what gcc says to the flags of a newer one, or of clang.
    if no_compiler
        || says(&[
            "Failed CC version check",
            "unrecognized command-line option",
            "unrecognized command line option",
        ])
    {
        return "compiler-mismatch";
    }
    // What a compiler says where functions, types and headers of the kernel are others than the source expects.
    if says(&[
        "implicit declaration of function",
        "too few arguments to function",
        "too many arguments to function",
        "has no member named",
        "incompatible pointer type",
        "fatal error: linux/",
        "fatal error: drm/",
        "fatal error: asm/",
        "undeclared (first use",
        "conflicting types for",
        "uses GPL-only symbol",
        "has incomplete type",
    ]) {
        return "branch-too-old";
    }
    "other"
}

/// The errors that say most: those of the compiler first.
fn quoted(errors: &[String]) -> Vec<String> {
    let is_plain = |error: &&String| !error.contains("***");
    let mut found: Vec<&String> = errors.iter().filter(is_plain).collect();
    if found.is_empty() {
        found = errors.iter().collect();
    }
    found
        .into_iter()
        .take(QUOTED)
        .map(|error| error.chars().take(QUOTED_LENGTH).collect())
        .collect()
}

/// `gcc-13` of `(x86_64-linux-gnu-gcc-13 (Ubuntu ...`, `gcc (GCC) 15.1.1` of `(gcc (GCC) 15.1.1 ...`, `clang version 19.1.7`.
fn compiler_of_kernel(view: &View) -> Option<String> {
    let version = view.facts.kernel.got()?.version.got()?;
    // Behind the name of who built it.
    let (_, rest) = version.split_once(") (")?;
    let rest = rest.trim_start_matches('(');
    let words: Vec<&str> = rest.split_whitespace().collect();
    let first = *words.first()?;
    if let Some(at) = words.iter().position(|word| *word == "clang") {
        let number = words.get(at + 2)?.trim_end_matches(',');
        return Some(format!("clang {number}"));
    }
    let name = first.rsplit("-linux-gnu-").next().unwrap_or(first);
    if name.starts_with("gcc-") {
        return Some(name.to_owned());
    }
    let number = words
        .iter()
        .skip(1)
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    name.starts_with("gcc")
        .then(|| format!("gcc {}", number.trim_end_matches([')', ','])))
}

/// A package of dkms that dpkg could not finish.
fn half_configured<'v>(module: &str, view: &'v View) -> Option<(&'v str, &'v str)> {
    let pattern = if module == "nvidia" {
        "nvidia*"
    } else {
        "amdgpu*"
    };
    let packages = view.packages_matching(pattern).into_got()?;
    packages
        .into_iter()
        .find(|(name, package)| name.contains("dkms") && package.state == "half-configured")
        .map(|(name, package)| (name, package.state.as_str()))
}

/// dkms refuses a version whose source is gone, and some releases of it then refuse everything.
fn corrupt(tree: &DkmsTree, present: bool, release: &str, view: &View) -> Verdict {
    let path = tree.path();
    let finding = Finding::new(format!(
        "dkms has lost the source of {} {}",
        tree.name, tree.version
    ))
    .cause("tree-corrupt")
    .saw(format!("{path}/source/dkms.conf"), "does not exist")
    .fix(
        FixCall::new("repair-dkms-tree")
            .with("name", format!("{}/{}", tree.name, tree.version))
            .with("file", path),
    );
    if present {
        finding
            .severity(Severity::Warning)
            .why("This kernel has its module; some releases of dkms stop at such a version, and then no later kernel gets one")
    } else {
        finding
            .saw(
                view.running_kernel_folder(),
                format!("no module that was built here for {release}"),
            )
            .why("Without the source nothing can be built, and some releases of dkms stop at such a version")
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_of_errors() {
        for (error, expected) in [
            (
                "*** Failed CC version check. Bailing out! ***",
                "compiler-mismatch",
            ),
            ("/bin/sh: 1: gcc-12: not found", "compiler-mismatch"),
            (
                "gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'",
                "compiler-mismatch",
            ),
            (
                "nvidia/nv-gpio.c:24:10: fatal error: linux/of_gpio.h: No such file or directory",
                "branch-too-old",
            ),
            (
                "nv-acpi.c:84:19: error: too few arguments to function 'acpi_bus_get_device'",
                "branch-too-old",
            ),
            ("as: No space left on device", "other"),
            ("make: *** [Makefile:82: modules] Error 2", "other"),
            ("/bin/sh: 1: bc: not found", "other"),
        ] {
            assert_eq!(cause(&[error.to_owned()]), expected, "{error}");
        }
        assert_eq!(cause(&[]), "other");
    }

    #[test]
    fn the_errors_of_the_compiler_come_first() {
        let errors = ["make: *** x Error 1", "a.c:1: error: b"].map(str::to_owned);
        assert_eq!(quoted(&errors), ["a.c:1: error: b"]);
        assert_eq!(quoted(&errors[..1]), ["make: *** x Error 1"]);
    }
}
