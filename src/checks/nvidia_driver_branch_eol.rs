//! NVIDIA no longer maintains the branch of the driver, or does so for a short time only.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::tables::kinds::BRANCH;
use crate::tables::{Row, Tables};
use crate::version::Version;
use crate::view::{Stack, View, last_branch};

crate::check! {
    /// NVIDIA no longer maintains the branch of the driver that is installed, or it is a short-lived branch on a machine
    /// for computing.
    ///
    /// ## Why it matters
    /// A branch without maintenance gets no more fixes from NVIDIA, not of security holes either, and its module may no longer
    /// build on later kernels.
    ///
    /// ## How it comes about
    /// NVIDIA maintains production branches for about a year, long-term branches for three, and new feature branches only
    /// until the next one. A driver from NVIDIA's repository or installer stays on its branch until somebody changes it. Some
    /// distributions go on mending a branch by themselves; GPUs that later branches have dropped have no other choice.
    ///
    /// ## How to confirm
    /// `cat /proc/driver/nvidia/version` names the version; `gpucheck tables driver` when its branch ends.
    "nvidia-driver-branch-eol", Driver, Warning, each Stack, run
}

const WOULD_TELL: &str = "`cat /proc/driver/nvidia/version` and `gpucheck tables driver`";

fn run(stack: Stack, view: &View, tables: &Tables) -> Verdict {
    // The driver of WSL is Windows', with branches of its own; a Tegra board has that of its JetPack.
    // In a container it is the host's matter.
    if view.wsl().is_some() || view.is_tegra() || view.in_container() {
        return Verdict::NotHere;
    }
    // The driver of a virtual GPU follows that of its host; only such a GPU has a licence.
    let nvml = view.facts.nvml.got();
    if nvml.is_some_and(|nvml| {
        let mut devices = nvml.devices.values();
        devices.any(|device| device.licence.got().is_some())
    }) {
        return Verdict::NotHere;
    }
    let Some((version, source)) = view.nvidia_driver_version() else {
        return match view.nvidia_driver_installed() {
            Seen::Absent => Verdict::NotHere,
            _ => Verdict::cannot_tell("the version of NVIDIA's driver is not known", WOULD_TELL),
        };
    };
    let number = Version::parse(version).and_then(|version| version.major());
    let rows = tables.rows(&BRANCH);
    let branch_of = |row: &Row| {
        row.version("branch")
            .and_then(|branch| branch.value.major())
    };
    let row = rows.iter().find(|row| branch_of(row) == number);
    let (Some(number), Some(row)) = (number, row) else {
        return Verdict::cannot_tell(
            format!("driver {version} ({source}) is of no branch that is known"),
            WOULD_TELL,
        );
    };
    let today = match view
        .facts
        .kernel
        .as_ref()
        .and_then(|kernel| kernel.date.as_ref())
    {
        Seen::Got(today) => today.as_str(),
        other => {
            return Verdict::cannot_tell(
                format!(
                    "whether branch {number} has ended; the date: {}",
                    other.why()
                ),
                WOULD_TELL,
            );
        }
    };
    let end = row.text("end_of_life");
    let next = rows.iter().find(|later| {
        branch_of(later) > Some(number)
            && later
                .text("kind")
                .is_some_and(|kind| kind.value != "new feature")
            && later
                .text("end_of_life")
                .is_some_and(|end| end.may_accuse() && !is_over(&end.value, today))
    });
    let next = next.and_then(branch_of);
    let fix = |finding: Finding| match next {
        Some(branch) => finding.fix(view.newer_nvidia_driver(Some(branch.to_string()))),
        None => finding,
    };
    let Some(end) = end.filter(|end| is_over(&end.value, today)) else {
        let is_short = row
            .text("kind")
            .is_some_and(|kind| kind.value == "new feature");
        // On a desktop the newest features may be what somebody wants.
        if is_short && view.gpus_of(stack).any(|gpu| gpu.data_centre) {
            let finding = Finding::new(format!(
                "the driver is of branch {number}, a new feature branch that NVIDIA maintains for a short time only"
            ))
            .cause("feature-branch")
            .severity(Severity::Note)
            .saw(source, format!("version {version}"))
            .why("For a machine that computes NVIDIA means its production and long-term branches");
            return fix(finding).into();
        }
        return Verdict::fine(format!("branch {number} of NVIDIA's driver is maintained"));
    };
    let finding = Finding::new(format!(
        "NVIDIA stopped maintaining branch {number}, of which the driver is, in {}",
        end.value
    ))
    .cause("end-of-life")
    // It works all the same.
    .works_all_the_same()
    .saw(source, format!("version {version}"))
    .why("It gets no more fixes from NVIDIA, not of security holes either, and later kernels may not build it");
    // Nothing newer takes such a GPU.
    let is_last_for_one = view
        .gpus_of(stack)
        .any(|gpu| gpu.is_on_bus() && last_branch(gpu, tables).is_some_and(|last| last <= number));
    if is_last_for_one {
        return finding
            .severity(Severity::Note)
            .why("No later branch takes one of the GPUs of this machine")
            .into();
    }
    if !end.may_accuse() {
        return fix(finding.severity(Severity::Note).likely()).into();
    }
    match keeper(view, version) {
        Seen::Absent => fix(finding).into(),
        Seen::Got(package) => fix(finding.severity(Severity::Note).saw(
            view.package_database(),
            format!("{package}: from a distribution, which may mend the branch by itself"),
        ))
        .into(),
        _ => fix(finding.severity(Severity::Note).likely()).into(),
    }
}

/// A date without a day lasts until the end of its month.
fn is_over(end: &str, today: &str) -> bool {
    match end.len() {
        7 => today > format!("{end}-31").as_str(),
        _ => today > end,
    }
}

/// A package of the driver that a distribution built, which mends branches longer than NVIDIA. It is one where no repository
/// of NVIDIA's is in use; beside one Ubuntu's, Debian's and RPM Fusion's old branches still show by names and versions.
/// `Absent`: the driver comes from NVIDIA.
fn keeper(view: &View, version: &str) -> Seen<String> {
    let Some(packages) = view.facts.packages.got() else {
        // No package manager: it came with NVIDIA's installer.
        return view.facts.packages.as_ref().map(|_| String::new());
    };
    let mut repositories = packages.repositories.items.values().flatten();
    let contains = |url: &str, words: &[&str]| words.iter().any(|word| url.contains(word));
    // Mirrors keep NVIDIA's names; others who package its driver have them, too.
    let has_nvidias = repositories.any(|one| {
        one.enabled
            && contains(&one.url, &["nvidia", "cuda"])
            && !contains(&one.url, &["rpmfusion", "negativo17", "graphics-drivers"])
    });
    let mut unknown = !has_nvidias && !packages.repositories.whole;
    for pattern in [
        "nvidia*",
        "libnvidia*",
        "libcuda1",
        "linux-modules-nvidia*",
        "akmod-nvidia*",
        "kmod-nvidia*",
        "xorg-x11-drv-nvidia*",
    ] {
        let found = match view.packages_matching(pattern) {
            Seen::Got(found) => found,
            Seen::Absent => continue,
            _ => {
                unknown = true;
                continue;
            }
        };
        let mut of_driver = found
            .iter()
            .filter(|(_, package)| package.upstream().starts_with(version));
        let own = of_driver.find(|(name, package)| {
            !has_nvidias && packages.repositories.whole
                || ["ubuntu0.", "~deb", "+deb", "~bpo"]
                    .iter()
                    .any(|mark| package.version.contains(mark))
                || name.contains("xx")
                || name.starts_with("linux-modules-nvidia")
        });
        if let Some((name, package)) = own {
            return Seen::Got(format!("{name} {}", package.version));
        }
    }
    match unknown {
        true => Seen::default(),
        false => Seen::Absent,
    }
}
