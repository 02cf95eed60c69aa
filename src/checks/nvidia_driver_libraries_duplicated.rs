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
    /// and the folders `compat` of CUDA do not count.
    ///
    /// ## How to confirm
    /// `ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'` and `echo $LD_LIBRARY_PATH`.
    "nvidia-driver-libraries-duplicated", Library, Error, each Stack, run
}

const LIBRARIES: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];
const WOULD_TELL: &str = "`ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'`";
const VARIABLE: &str = "LD_LIBRARY_PATH";
/// Where drivers put their libraries: what lies elsewhere belongs to somebody's environment.
const SYSTEM: [&str; 6] = [
    "/usr/lib/",
    "/usr/lib64/",
    "/lib/",
    "/lib64/",
    "/usr/local/nvidia/",
    "/run/",
];

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
                .is_some_and(|target| target.contains("/stubs/") || target.contains("/compat/"));
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
        return Verdict::fine(format!(
            "every library of the driver is of version {}",
            first.1
        ));
    }
    found(&copies, view)
}

fn found(copies: &[Copy], view: &View) -> Verdict {
    let loaded = view.nvidia_loaded_version().into_got();
    let is_own = |(file, _): &&Copy| SYSTEM.iter().any(|folder| file.path.starts_with(folder));
    let foreign = copies
        .iter()
        .find(|copy| copy.0.via.as_deref() == Some(VARIABLE) && !is_own(copy));
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
    if let Some((file, _)) = foreign {
        return finding
            .cause("in-environment")
            .severity(Severity::Warning)
            .fix(
                FixCall::new("leave-driver-copy-out")
                    .with("file", &file.path)
                    .with("name", VARIABLE),
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
            .with("name", VARIABLE),
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
