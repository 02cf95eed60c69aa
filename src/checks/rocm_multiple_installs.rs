//! Several releases of ROCm, and paths that lead to different ones.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::software::{Library, RocmInstall};
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::{Stack, View};
use std::collections::BTreeMap;

crate::check! {
    /// Several releases of ROCm are installed, and variables of this shell lead to different ones.
    ///
    /// ## Why it matters
    /// A program then runs with the tools of one release, is built with the headers of another, or loads libraries of both. It ends with
    /// missing symbols, finds no GPU, or crashes.
    ///
    /// ## How it comes about
    /// Releases may stand side by side in `/opt`, and that is fine as long as one is used at a time. A line in a start-up file names
    /// the release of that time, and the link `/opt/rocm` has moved on since. Or `LD_LIBRARY_PATH` alone leads to an older
    /// release: its runtime, which has the same name in all of them, is loaded with HIP of the newer one.
    ///
    /// ## How to confirm
    /// `ls -d /opt/rocm*`, `readlink -f /opt/rocm`, `printenv | grep -E "ROCM|HIP_PATH|LD_LIBRARY_PATH|^PATH"`.
    "rocm-multiple-installs", Library, Warning, each Stack, run
}

const WOULD_TELL: &str = "`printenv | grep -E \"ROCM|HIP_PATH|LD_LIBRARY_PATH|^PATH\"`";
const LINK: &str = "/opt/rocm";
/// Variables that name a release, and whether they hold a list of folders. Of `PATH` only the first folder counts.
const VARIABLES: [(&str, bool); 5] = [
    ("ROCM_PATH", false),
    ("ROCM_HOME", false),
    ("HIP_PATH", false),
    ("PATH", true),
    ("LD_LIBRARY_PATH", true),
];

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let installs = match view.rocm_installs() {
        Seen::Got(installs) => installs,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("which ROCm is installed: {}", other.map(|_| ()).why()),
                "`ls -d /opt/rocm*`",
            );
        }
    };
    // That of the distribution is on every path.
    let roots: Vec<&str> = installs
        .keys()
        .map(String::as_str)
        .filter(|root| *root != "/usr")
        .collect();
    if installs.len() < 2 {
        return Verdict::NotHere;
    }
    let link = view.facts.software.as_ref();
    let link = link.and_then(|software| software.rocm_link.as_ref().map(String::as_str));
    // (variable, folder in it, release)
    let mut leads: Vec<(&str, &str, &str)> = Vec::new();
    let mut unknown = None;
    for (variable, is_list) in VARIABLES {
        let value = match view.variable(variable) {
            Seen::Got(value) => value,
            Seen::Absent => continue,
            other => {
                unknown.get_or_insert(format!("{variable}: {}", other.why()));
                continue;
            }
        };
        for folder in value.split(':') {
            match root_of(folder, &roots, link.got().copied()) {
                Root::Of(root) => leads.push((variable, folder, root)),
                Root::Unknown => {
                    unknown.get_or_insert(format!("where {LINK} leads: {}", link.why()));
                }
                Root::None => continue,
            }
            if !is_list || variable == "PATH" {
                break;
            }
        }
    }
    let other = leads
        .first()
        .and_then(|(.., first)| leads.iter().find(|(.., root)| root != first));
    if other.is_none() {
        if let Some(mix) = older_runtime(view, installs, &leads) {
            return mix.into();
        }
        if roots.len() < 2 {
            return Verdict::NotHere;
        }
        return match unknown {
            Some(why) => Verdict::cannot_tell(why, WOULD_TELL),
            None => Verdict::fine(format!(
                "{} releases side by side, and no variable mixes them",
                roots.len()
            )),
        };
    }
    let mut finding = Finding::new("variables of this shell lead to different releases of ROCm");
    for (variable, folder, root) in leads {
        let version = installs.get(root).and_then(|install| install.version.got());
        let version = version.map_or_else(String::new, |version| format!(", ROCm {version}"));
        finding = finding.saw(variable, format!("{folder}{version}"));
    }
    finding
        .likely()
        .why("Tools, headers and libraries of two releases come together in one program")
        .fix(FixCall::new("one-rocm"))
        .into()
}

/// The loader's path puts the runtime of an older release before HIP of the one that programs are built for where nothing
/// else is named: HIP has another number in each, the runtime has not. A newer runtime takes an older HIP.
fn older_runtime(
    view: &View,
    installs: &BTreeMap<String, RocmInstall>,
    leads: &[(&str, &str, &str)],
) -> Option<Finding> {
    let install_of = |file: &Library| {
        let path = file.target.got().unwrap_or(&file.path);
        let inside = installs.iter().filter(|(root, _)| is_below(path, root));
        let (root, install) = inside.max_by_key(|(root, _)| root.len())?;
        Some((root.as_str(), Version::parse(install.version.got()?)?))
    };
    let runtime = view.winner("libhsa-runtime64.so.1").into_got()?;
    let variable = runtime
        .via
        .as_deref()
        .filter(|via| via.starts_with("LD_"))?;
    let (root, version) = install_of(runtime)?;
    // Who names a release by more than that wants it.
    if leads
        .iter()
        .any(|(name, _, of)| *name != variable && *of == root)
    {
        return None;
    }
    let files = view.library("libamdhip64.so").into_got()?;
    let number = |file: &Library| {
        let (_, number) = file.target.got()?.rsplit_once(".so.")?;
        number.split('.').next()?.parse::<u32>().ok()
    };
    let of_runtime: Vec<u32> = files
        .iter()
        .filter(|file| install_of(file).is_some_and(|(of, _)| of == root))
        .filter_map(number)
        .collect();
    let link = view.facts.software.got()?.rocm_link.got();
    let (hip, newer) = files.iter().find_map(|file| {
        let (of, newer) = install_of(file)?;
        let usual = file.via.is_some() || link.is_some_and(|link| is_below(of, link));
        let parted = usual && newer > version && !of_runtime.contains(&number(file)?);
        parted.then_some((file, newer))
    })?;
    if of_runtime.is_empty() {
        return None;
    }
    Some(
        Finding::new(format!(
            "programs built with ROCm {newer} load the runtime of ROCm {version}"
        ))
        .saw(&runtime.path, format!("ROCm {version}, by way of {variable}"))
        .saw(&hip.path, format!("ROCm {newer}"))
        .likely()
        .why("HIP of a newer release calls what the older runtime does not have; programs built with the older one work")
        .fix(FixCall::new("one-rocm")),
    )
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

enum Root<'v> {
    /// The folder is of this release.
    Of(&'v str),
    /// It goes by the link, whose end is not known.
    Unknown,
    /// It is of none.
    None,
}

fn root_of<'v>(folder: &str, roots: &[&'v str], link: Option<&str>) -> Root<'v> {
    let inside = |folder: &str| roots.iter().find(|root| is_below(folder, root)).copied();
    if let Some(root) = inside(folder) {
        return Root::Of(root);
    }
    match folder.strip_prefix(LINK) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            match link {
                // From ROCm 7.13 on it is a folder, with links inside.
                Some(target) => inside(target).map_or(Root::Unknown, Root::Of),
                None => Root::Unknown,
            }
        }
        _ => Root::None,
    }
}
