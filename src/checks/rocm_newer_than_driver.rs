//! ROCm is newer than AMD's kernel module allows.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::{Stack, View};

crate::check! {
    /// The ROCm that is installed is too new for the kernel module of AMD's driver package.
    ///
    /// ## Why it matters
    /// AMD tests a release of ROCm with modules of about a year around it: up to ROCm 6.3 with two releases before and after. With
    /// an older module programs may end with errors of memory or queues, or find no GPU.
    ///
    /// ## How it comes about
    /// ROCm was updated and the package `amdgpu-dkms` was not, or the machine was not restarted since. The module that comes with
    /// a kernel has no such number, and nothing is said about it.
    ///
    /// ## How to confirm
    /// `cat /sys/module/amdgpu/version` and `cat /opt/rocm/.info/version`; `gpucheck tables rocm` has the drivers that AMD tested
    /// with each release.
    "rocm-newer-than-driver", Runtime, Warning, each Stack, run
}

/// Versions of the module and the driver release that they belong to, oldest first: what `amdgpu-dkms` of that release puts in
/// `/sys/module/amdgpu/version` (ROCm/rocm-install-on-linux issue 684, ROCm/legacy-rocm-build issues 3883, 5109 and 6630).
const MODULES: &[(&str, &str)] = &[
    ("6.2.4", "5.7"),
    ("6.8.5", "6.2"),
    ("6.12.12", "6.4"),
    ("6.14.14", "30.10"),
    ("6.16.6", "30.20"),
    ("6.16.13", "30.30"),
    ("6.19.0", "31.20"),
    ("6.19.14", "31.40"),
];
const WOULD_TELL: &str =
    "AMD's matrix of user space and driver versions, with `cat /sys/module/amdgpu/version`";

/// How an installation stands to the module.
enum Fit {
    /// AMD tested this release with modules as old as this one.
    Inside,
    /// With none so old: the oldest driver release that AMD names, and the newest that this module can be of.
    Outside(String, String),
    Unknown(String),
}

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let module = match view.module_version("amdgpu") {
        Seen::Got(version) => version.as_str(),
        // There is none, or it is the kernel's own.
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("/sys/module/amdgpu/version: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let installs = match view.rocm_installs() {
        Seen::Got(installs) => installs,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("which ROCm is installed: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let mut outside = Vec::new();
    let mut unknown = None;
    for (root, install) in installs {
        let Some(version) = install.version.got() else {
            unknown = Some(format!("{root}: its version: {}", install.version.why()));
            continue;
        };
        match fit(version, module, view) {
            Fit::Inside => {
                return Verdict::fine(format!(
                    "AMD tested ROCm {version} ({root}) with modules as old as {module}"
                ));
            }
            Fit::Outside(oldest, own) => {
                let source = install.version_source.as_deref().unwrap_or(root);
                outside.push((source, version, oldest, own));
            }
            Fit::Unknown(why) => unknown = Some(why),
        }
    }
    let Some((source, version, oldest, own)) = outside.first() else {
        return match unknown {
            Some(why) => Verdict::cannot_tell(why, WOULD_TELL),
            None => Verdict::NotHere,
        };
    };
    if let Some(why) = unknown {
        return Verdict::cannot_tell(why, WOULD_TELL);
    }
    Finding::new(format!(
        "ROCm {version} is too new for the driver: AMD tested it with releases from {oldest} on, and this one is of {own} or before"
    ))
    .saw("/sys/module/amdgpu/version", module)
    .saw(*source, format!("ROCm {version}"))
    .why("Programs may fail to start their queues, or not find the GPU; what brings its own ROCm is not concerned")
    .fix(view.driver_fix(FixCall::new("newer-amdgpu-dkms").with("version", version.as_str())))
    .into()
}

fn fit(rocm: &str, module: &str, view: &View) -> Fit {
    let unknown = || {
        Fit::Unknown(format!(
            "how ROCm {rocm} and version {module} of the module go together is in no table here"
        ))
    };
    let drivers = view
        .rocm_release(rocm)
        .and_then(|row| row.list("drivers"))
        .filter(|drivers| drivers.may_accuse());
    let (Some(drivers), Some(module)) = (drivers, Version::parse(module)) else {
        return unknown();
    };
    // `6.2.x` is the whole line.
    let line = |text: &str| {
        let mut numbers = text.split('.').map_while(|part| part.parse::<u64>().ok());
        Some((numbers.next()?, numbers.next().unwrap_or(0)))
    };
    let oldest = drivers
        .value
        .iter()
        .filter_map(|name| Some((line(name)?, name)))
        .min_by_key(|(line, _)| *line);
    let Some((oldest, name)) = oldest else {
        return unknown();
    };
    let known = || {
        MODULES
            .iter()
            .filter_map(|(version, driver)| Some((Version::parse(version)?, line(driver)?)))
    };
    // Newer ones say which release they are of: `7.1.3.31500000`, `6.12.12.60401`.
    let own = module.numbers().nth(3).and_then(|packed| match packed {
        10_000_000.. => Some((packed / 1_000_000, packed / 10_000 % 100)),
        10_000..1_000_000 => Some((packed / 10_000, packed / 100 % 100)),
        _ => None,
    });
    let at_most = known().find(|(version, _)| module <= *version);
    let at_least = known().rfind(|(version, _)| *version <= module);
    let at_most = own.or(at_most.map(|(_, driver)| driver));
    let at_least = own.or(at_least.map(|(_, driver)| driver));
    match (at_least, at_most) {
        (Some(driver), _) if driver >= oldest => Fit::Inside,
        (_, Some(driver)) if driver < oldest => {
            Fit::Outside(name.clone(), format!("{}.{}", driver.0, driver.1))
        }
        _ => unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_sorted() {
        let versions: Vec<_> = MODULES
            .iter()
            .map(|(version, _)| Version::parse(version))
            .collect();
        assert!(versions.is_sorted());
    }
}
