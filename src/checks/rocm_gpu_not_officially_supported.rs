//! A GPU that AMD's list does not have for the ROCm that is installed.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::rocm::{Kernels, Target, TargetGround};
use crate::view::{Gpu, View};

crate::check! {
    /// AMD does not list a GPU for the ROCm that is installed.
    ///
    /// ## Why it matters
    /// AMD tests each release of ROCm on the GPUs of its list alone. On others it often works all the same, in part or in full,
    /// as long as the libraries have kernels for them; but nobody promises that, and reports of faults are turned away.
    ///
    /// ## How it comes about
    /// The list is short: accelerators, some workstation cards, and the cards and processors of the last years. Of `gfx1030`
    /// it has the Radeon PRO W6800 and V620 alone. A new GPU comes onto the list some releases after it is sold.
    ///
    /// ## How to confirm
    /// `gpucheck tables rocm` shows which targets each release supports. Whether it works, a small program tells.
    "rocm-gpu-not-officially-supported", Runtime, Warning, each Gpu, run
}

/// A target of which AMD lists these products alone (ROCm 5.0 to 7.14 on Linux).
const BY_PRODUCT: (&str, &[&str]) = ("gfx1030", &["W6800", "V620"]);

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if is_beside_a_card(gpu, view) {
        return Verdict::NotHere;
    }
    let (target, parsed) = match view.target_ground(gpu) {
        TargetGround::Open(target, parsed) => (target, parsed),
        TargetGround::NotHere => return Verdict::NotHere,
        TargetGround::Unknown(why) => return Verdict::cannot_tell(why, gpu.lspci()),
    };
    let lists = view.rocm_lists(target);
    let first = lists
        .iter()
        .find(|(_, listed)| *listed)
        .map(|(release, _)| release);
    if first.is_some() && target == BY_PRODUCT.0 {
        return by_product(gpu, target, view);
    }
    match view.rocm_installs() {
        Seen::Got(installs) => {
            // That there are no kernels at all is another finding.
            if matches!(view.rocblas_for(parsed), Kernels::Lacking(_)) {
                return Verdict::NotHere;
            }
            of_installs(gpu, target, first, installs.iter(), view)
        }
        Seen::Absent => without_rocm(gpu, target, &lists, view),
        _ if view.facts.software.got().is_some() => without_rocm(gpu, target, &lists, view),
        other => Verdict::cannot_tell(
            format!("which ROCm is installed: {}", other.map(|_| ()).why()),
            "`ls -d /opt/rocm*`",
        ),
    }
}

/// The graphics of a processor, where a card is there to compute with.
fn is_beside_a_card(gpu: &Gpu, view: &View) -> bool {
    gpu.integrated == Some(true)
        && view
            .gpus
            .iter()
            .any(|other| other.key != gpu.key && other.integrated == Some(false))
}

/// Releases whose list here is that of Instinct accelerators and some cards; AMD's pages for Radeon and Ryzen had more.
fn lists_are_partial(release: &Version) -> bool {
    let mut numbers = release.numbers();
    match (numbers.next(), numbers.next()) {
        (Some(5), Some(minor)) => minor == 7,
        (Some(6), Some(minor)) => minor >= 4,
        (Some(7), Some(minor)) => minor <= 2,
        _ => false,
    }
}

fn of_installs<'v>(
    gpu: &Gpu,
    target: &str,
    first: Option<&Version>,
    installs: impl Iterator<Item = (&'v String, &'v crate::facts::software::RocmInstall)>,
    view: &'v View,
) -> Verdict {
    let mut without = Vec::new();
    let mut unknown = None;
    let mut own = None;
    for (root, install) in installs {
        if root == "/usr" {
            own = Some((root, install));
            continue;
        }
        let Some(version) = install.version.got() else {
            unknown = Some(format!("{root}: its version: {}", install.version.why()));
            continue;
        };
        let row = view.rocm_release(version);
        let list = row.as_ref().and_then(|row| row.list("targets"));
        match list.filter(|list| list.may_accuse()) {
            Some(list) if list.value.iter().any(|name| name == target) => {
                return Verdict::fine(format!("AMD lists {target} for ROCm {version} ({root})"));
            }
            Some(_)
                if first.is_some()
                    && Version::parse(version).is_some_and(|own| lists_are_partial(&own)) =>
            {
                unknown = Some(format!(
                    "AMD's pages for Radeon and Ryzen of ROCm {version} are in no table here"
                ));
            }
            Some(_) => without.push((root, version, install)),
            None => {
                unknown = Some(format!(
                    "what AMD supports with ROCm {version} is in no table here"
                ));
            }
        }
    }
    if let Some(why) = unknown {
        return Verdict::cannot_tell(why, "AMD's compatibility matrix of that release");
    }
    let Some((_, version, _)) = without.first() else {
        return match (own, first) {
            (Some(_), Some(first)) => Verdict::fine(format!(
                "AMD lists {target} for ROCm {} and others",
                first.text()
            )),
            (Some((root, _)), None) => {
                let finding = Finding::new(format!(
                    "AMD lists this GPU ({target}) for no release of ROCm; the distribution's own may work on it"
                ))
                .severity(Severity::Note)
                .saw(root.as_str(), "ROCm of the distribution");
                finish(finding, gpu, target, view)
            }
            (None, _) => Verdict::NotHere,
        };
    };
    let mut finding = Finding::new(format!(
        "AMD does not list this GPU ({target}) for ROCm {version}"
    ));
    for (root, version, install) in &without {
        let source = install.version_source.as_deref().unwrap_or(root);
        finding = finding.saw(source, format!("ROCm {version}"));
    }
    if let Kernels::In(root) =
        Target::of_name(target).map_or(Kernels::NoLibrary, |parsed| view.rocblas_for(parsed))
    {
        finding = finding.saw(root, format!("rocBLAS has kernels for {target}"));
    }
    finish(finding, gpu, target, view)
}

/// While there is no ROCm, what there is to know before one is installed.
fn without_rocm(gpu: &Gpu, target: &str, lists: &[(Version, bool)], view: &View) -> Verdict {
    let (first, last) = (
        lists.iter().find(|(_, listed)| *listed),
        lists.iter().rfind(|(_, listed)| *listed),
    );
    // Through all releases from one of the older line on.
    if let (Some((first, _)), Some((last, _)), Some((newest, _))) = (first, last, lists.last())
        && last == newest
        && first.major() < newest.major().map(|major| major.min(7))
    {
        return Verdict::fine(format!("AMD lists {target} since ROCm {}", first.text()));
    }
    // Since when is not known where the lists before are not whole.
    let mut before = lists.iter().take_while(|(_, listed)| !listed);
    let since_when_is_open = before.any(|(release, _)| lists_are_partial(release));
    let title = match (first, last) {
        (Some((first, _)), Some((last, _)))
            if Some(last) == lists.last().map(|(newest, _)| newest) =>
        {
            let first = first.text();
            match since_when_is_open {
                true => format!(
                    "not every ROCm is for this GPU ({target}): AMD lists it for {first}, and pages of some releases before are in no table here"
                ),
                false => format!(
                    "not every ROCm is for this GPU ({target}): AMD lists it from {first} on"
                ),
            }
        }
        (Some(_), Some((last, _))) => format!(
            "no current ROCm is for this GPU ({target}): AMD listed it up to {}",
            last.text()
        ),
        _ => format!("AMD lists this GPU ({target}) for no release of ROCm"),
    };
    finish(
        Finding::new(title).severity(Severity::Note),
        gpu,
        target,
        view,
    )
}

fn by_product(gpu: &Gpu, target: &str, view: &View) -> Verdict {
    let products = BY_PRODUCT.1;
    let Some(name) = &gpu.name else {
        return Verdict::cannot_tell(
            format!("of {target} AMD lists some products alone, and this one's name is not known"),
            gpu.lspci(),
        );
    };
    if products.iter().any(|product| name.contains(product)) {
        return Verdict::fine(format!("AMD lists the {name}"));
    }
    let finding = Finding::new(format!(
        "of {target} AMD lists {} for ROCm alone, and this is another card",
        products.join(" and ")
    ))
    .severity(Severity::Note);
    finish(finding, gpu, target, view)
}

fn finish(finding: Finding, gpu: &Gpu, target: &str, view: &View) -> Verdict {
    let seen = view.seen_target(gpu);
    finding
        .saw(seen.source, seen.says)
        .why("It may work all the same; AMD does not test it, and the next release may end it")
        .fix(FixCall::new("rocm-that-lists-gpu").with("name", target))
        .into()
}
