//! There is more than one copy of the libraries of NVIDIA's driver where programs look.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::software::Library;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};

crate::check! {
    /// Programs find libraries of NVIDIA's driver of more than one version.
    ///
    /// ## Why it matters
    /// A driver's libraries fit one kernel module. Which copy a program loads depends on its environment, so some programs work
    /// and others are refused (803, `Driver/library version mismatch`).
    ///
    /// ## How it comes about
    /// An old driver was not removed whole, or one from NVIDIA's installer lies beside that of the packages (`old-install`). Or a
    /// copy came into an environment of Python or into an image and was put before the driver's own (`in-environment`). Stubs
    /// and the folders `compat` of CUDA do not count. The driver's compiler (libnvidia-ptxjitcompiler.so.1), of another version
    /// or gone, is a warning.
    ///
    /// ## How to confirm
    /// `ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'` and `echo $LD_LIBRARY_PATH $LD_PRELOAD`.
    "nvidia-driver-libraries-duplicated", Library, Error, each Stack, run
}

const LIBRARIES: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];
const JIT: &str = "libnvidia-ptxjitcompiler.so.1";
/// Packages that bring it together with libcuda, by the family of distributions.
const JIT_PACKAGES: [(&str, &str); 2] =
    [("ubuntu", "libnvidia-compute-*"), ("arch", "nvidia-utils")];
const WOULD_TELL: &str = "`ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'`";
/// A copy in the loader's order, with its version.
type Copy<'v> = (&'v Library, &'v str);

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    // The libraries of WSL are Windows', those of a Tegra board bear no version.
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let mut copies: Vec<Copy> = Vec::new();
    let mut seen = 0;
    let mut aside: Vec<&str> = Vec::new();
    for name in LIBRARIES {
        let files = match view.library(name) {
            Seen::Got(files) => files,
            Seen::Absent => continue,
            other => {
                return Verdict::cannot_tell(
                    format!("{name}: {}", other.map(|_| ()).why()),
                    WOULD_TELL,
                );
            }
        };
        for file in view.loadable(files) {
            let leads_aside = file
                .target
                .got()
                .is_some_and(|target| target.contains("/stubs/") || target.contains("compat/"));
            if file.is_stub() || file.is_compat() || leads_aside {
                continue;
            }
            // Who takes one from a folder that the loader does not look into knows why.
            if file.via.is_none() {
                aside.extend(view.library_version(file));
                continue;
            }
            seen += 1;
            if let Some(version) = view.library_version(file) {
                copies.push((file, version));
            }
        }
    }
    if seen == 0 {
        return match aside.first() {
            Some(first) if aside.iter().all(|version| version == first) => {
                Verdict::fine(format!("every library of the driver is of version {first}"))
            }
            Some(_) => Verdict::cannot_tell(
                "nothing that was seen brings the loader to any of several copies",
                WOULD_TELL,
            ),
            None => Verdict::NotHere,
        };
    }
    let Some(first) = copies.first().copied() else {
        return Verdict::cannot_tell("no library of the driver names its version", WOULD_TELL);
    };
    if copies.iter().all(|(_, version)| *version == first.1) {
        if let Some(why) = view.unknown_before_libraries() {
            return Verdict::cannot_tell(why, WOULD_TELL);
        }
        if let Seen::Failed(why) = view.library(JIT) {
            return Verdict::cannot_tell(format!("{JIT}: {why}"), WOULD_TELL);
        }
        return jit_compiler(first, view).map_or_else(
            || {
                Verdict::fine(format!(
                    "every library of the driver is of version {}",
                    first.1
                ))
            },
            Verdict::from,
        );
    }
    found(&copies, view)
}

/// The driver's compiler, which libcuda loads only for programs that bring no code for this GPU.
fn jit_compiler((libcuda, version): Copy, view: &View) -> Option<Finding> {
    let finding = |title: String| {
        Finding::new(title)
            .severity(Severity::Warning)
            .saw(&libcuda.path, format!("version {version}"))
            .why("libcuda loads it for programs without code for this GPU (PTX); those fail, and others work")
    };
    let files = match view.library(JIT) {
        Seen::Got(files) => files,
        Seen::Absent => return without_jit_compiler(version, finding, view),
        _ => return None,
    };
    let file = view.loadable(files).find(|file| file.via.is_some())?;
    let other = view
        .library_version(file)
        .filter(|other| *other != version)?;
    let finding = finding(format!(
        "{JIT} is of version {other}, and libcuda.so.1 of {version}"
    ))
    .saw(&file.path, format!("version {other}"))
    .likely();
    Some(match file.of_environment() {
        Some(variable) => finding.cause("in-environment").fix(
            FixCall::new("leave-driver-copy-out")
                .with("file", &file.path)
                .with("name", variable),
        ),
        None => finding
            .cause("old-install")
            .fix(FixCall::new("keep-one-nvidia-driver")),
    })
}

/// Only where a package is known to bring it: others pack it apart, or leave it out.
fn without_jit_compiler(
    version: &str,
    finding: impl FnOnce(String) -> Finding,
    view: &View,
) -> Option<Finding> {
    if view.in_container() || view.place.is_unknown() {
        return None;
    }
    let (_, pattern) = JIT_PACKAGES
        .iter()
        .find(|(family, _)| view.is_of_family(family))?;
    let packages = view.packages_matching(pattern).into_got()?;
    // That of libcuda, and not one that was left behind.
    let own = packages
        .iter()
        .find(|(_, package)| package.upstream() == version);
    let (name, package) = *own?;
    Some(
        finding(format!("{JIT} of NVIDIA's driver is missing"))
            .saw(
                view.package_database(),
                format!("{name} {}, to which it belongs", package.version),
            )
            .fix(FixCall::new("reinstall-nvidia-libraries").with("name", name)),
    )
}

fn found(copies: &[Copy], view: &View) -> Verdict {
    let loaded = view.nvidia_loaded_version().into_got();
    let foreign = copies
        .iter()
        .find_map(|(file, _)| Some((file, file.of_environment()?)));
    let mut finding =
        Finding::new("programs find libraries of NVIDIA's driver of several versions")
            .why("Only those of the kernel module's version work with it");
    for (file, version) in copies {
        let via = file.via.as_deref().unwrap_or("the loader");
        finding = finding.saw(&file.path, format!("version {version}, by way of {via}"));
    }
    if let Some((version, source)) = loaded {
        finding = finding.saw(source, version);
    }
    if let Some((file, variable)) = foreign {
        return finding
            .cause("in-environment")
            .severity(Severity::Warning)
            .fix(
                FixCall::new("leave-driver-copy-out")
                    .with("file", &file.path)
                    .with("name", variable),
            )
            .into();
    }
    // Where the first of each fits the others are left-overs that nobody loads.
    let firsts = LIBRARIES
        .iter()
        .filter_map(|name| view.winner(name).into_got())
        .filter_map(|file| view.library_version(file));
    let mut firsts = firsts.peekable();
    let fits = loaded.is_some_and(|(version, _)| {
        firsts.peek().is_some() && firsts.all(|first| first == version)
    });
    // In a container the engine brings the right ones in, beside those of the image.
    let odd = copies
        .iter()
        .find(|(_, version)| loaded.is_some_and(|(loaded, _)| loaded != *version));
    let fix = match odd {
        Some((file, _)) if view.in_container() => FixCall::new("leave-driver-copy-out")
            .with("file", &file.path)
            .with("name", "LD_LIBRARY_PATH"),
        _ => FixCall::new("keep-one-nvidia-driver"),
    };
    let finding = finding.cause("old-install").fix(fix);
    match fits {
        true => finding
            .works_all_the_same()
            .severity(Severity::Note)
            .why("Those that programs find first fit the kernel module; the others are left over"),
        false => finding,
    }
    .into()
}
