//! Packages of NVIDIA's kernel module and of its libraries are of different versions.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{NextModule, PackageHalves, Stack, View};

crate::check! {
    /// The packages of NVIDIA's kernel module and those of its libraries are of different versions.
    ///
    /// ## Why it matters
    /// Module and libraries work together only where their versions are equal to the last digit. Where the packages differ a
    /// restart does not help: the same pair comes back. It is a warning as long as what is loaded fits, and a note where module
    /// and libraries refuse each other already, which is told as an error of its own.
    ///
    /// ## How it comes about
    /// The halves come from different repositories and were published at different times, an upgrade was cut short, one half
    /// is held back, or an image was put together from both.
    ///
    /// ## How to confirm
    /// `rpm -qa '*nvidia*'`, `dpkg -l '*nvidia*'` or `pacman -Q | grep nvidia`.
    "nvidia-packages-out-of-step", Library, Error, each Stack, run
}

const WOULD_TELL: &str = "the versions of all packages with nvidia in their name";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    let [of_kernel, of_libraries] = match view.nvidia_packages() {
        PackageHalves::Apart(halves) => halves,
        PackageHalves::NotHere => return Verdict::NotHere,
        PackageHalves::Together(name, version) => {
            return Verdict::fine(format!("{name} and the libraries are of version {version}"));
        }
        // It compares the versions before it answers.
        PackageHalves::Unknown(_) if view.facts.nvml.got().is_some() => {
            return Verdict::fine("NVML answers, so module and libraries fit");
        }
        PackageHalves::Unknown(why) => {
            return Verdict::cannot_tell(format!("packages: {why}"), WOULD_TELL);
        }
    };
    let database = view.package_database();
    let mut finding = Finding::new(format!(
        "the packages of NVIDIA's kernel module are of version {}, those of its libraries of {}",
        of_kernel.2, of_libraries.2
    ));
    for (name, version, _) in [of_kernel, of_libraries] {
        finding = finding.saw(database, format!("{name} {version}"));
    }
    if let NextModule::Other { path, version, .. } = view.next_module(stack) {
        finding = finding.saw(path, format!("version {version}, for the next start"));
    }
    let finding = finding.fix(FixCall::new("match-nvidia-module-and-libraries"));
    match &view.facts.nvml {
        // What that breaks is an error already, and this is why a restart does not mend it.
        _ if view.nvidia_libraries_differ() && !view.place.is_unknown() => finding
            .severity(Severity::Note)
            .why("That is why module and libraries do not fit now; a restart does not help"),
        // It compares the versions before it answers.
        Seen::Got(_) => finding
            .works_all_the_same()
            .severity(Severity::Warning)
            .saw("nvmlInit_v2()", "answers: what is loaded now fits")
            .why("What is loaded now still fits. The next restart loads what the packages hold, and CUDA is gone: bring them together first"),
        _ => finding.why(
            "Module and libraries work together only where their versions are equal to the last digit; a restart does not help",
        ),
    }
    .into()
}
