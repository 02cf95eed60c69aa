//! Several releases of ROCm, and paths that lead to different ones.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};

crate::check! {
    /// Several releases of ROCm are installed, and variables of this shell lead to different ones.
    ///
    /// ## Why it matters
    /// A program then runs with the tools of one release, is built with the headers of another, or loads libraries of both. It ends with
    /// missing symbols, finds no GPU, or crashes.
    ///
    /// ## How it comes about
    /// Releases may stand side by side in `/opt`, and that is fine as long as one is used at a time. A line in a start-up file names
    /// the release of that time, and the link `/opt/rocm` has moved on since.
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
    if roots.len() < 2 {
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

enum Root<'v> {
    /// The folder is of this release.
    Of(&'v str),
    /// It goes by the link, whose end is not known.
    Unknown,
    /// It is of none.
    None,
}

fn root_of<'v>(folder: &str, roots: &[&'v str], link: Option<&str>) -> Root<'v> {
    let inside = |folder: &str| {
        let is_in = |root: &&&str| {
            folder
                .strip_prefix(**root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        roots.iter().find(is_in).copied()
    };
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
