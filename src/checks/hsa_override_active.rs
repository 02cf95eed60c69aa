//! `HSA_OVERRIDE_GFX_VERSION` is in effect.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::services::Unit;
use crate::finding::Finding;
use crate::tables::Tables;
use crate::view::access::SERVICES;
use crate::view::rocm::{OVERRIDE, RocmAgent, Setting};
use crate::view::{Stack, View};
use std::collections::BTreeMap;

crate::check! {
    /// `HSA_OVERRIDE_GFX_VERSION` makes ROCm take a GPU for another.
    ///
    /// ## Why it matters
    /// With it programs load kernels that were compiled for another GPU. That is the way to use a GPU for which nothing was
    /// compiled, and it is the first thing to know when a program crashes or computes nonsense. `/sys` and the kernel go on
    /// naming the GPU's own target.
    ///
    /// ## How it comes about
    /// A guide said so: in a shell's start-up file, in the unit of a service, in an image. One value is for all GPUs; with
    /// `_1` behind the name it is for KFD's node 1 alone, where processors are counted, too, so that `_0` is mostly a
    /// processor and does nothing. An upgrade may bring kernels for the GPU itself, and then it is in the way.
    ///
    /// ## How to confirm
    /// `printenv | grep HSA_OVERRIDE`, `systemctl show -p Environment ollama`, and `rocminfo | grep gfx` with and without it.
    "hsa-override-active", Runtime, Note, each Stack, run
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.gpus_of(stack).next().is_none() && view.gpus_whole {
        return Verdict::NotHere;
    }
    let here = view.overrides();
    let (services, unknown) = services(view);
    if here.got().is_none() && services.is_empty() {
        if here.is_unknown() {
            return Verdict::cannot_tell(
                format!("{OVERRIDE}: {}", here.why()),
                format!("`printenv {OVERRIDE}` where the program fails"),
            );
        }
        return match unknown {
            Some(why) => Verdict::cannot_tell(
                format!("{OVERRIDE} is not set in this environment, and of services: {why}"),
                "`systemctl show -p Environment` of the service",
            ),
            None => Verdict::fine(format!("{OVERRIDE} is set nowhere that was looked at")),
        };
    }
    let set = here.got().map_or(&[][..], Vec::as_slice);
    let title = match (set, services.keys().next()) {
        ([first, ..], _) => {
            let goes_by = |name: &str| {
                let mut agents = view.rocm_agents.iter();
                agents.any(|agent| matches!(&agent.setting, Setting::Target(by, ..) if by == name))
            };
            let used = set.iter().find(|(name, _)| goes_by(name));
            let (name, value) = used.unwrap_or(first);
            match used.is_some() || view.rocm_agents.is_empty() {
                true => format!("{name}={value} is in effect for programs of this environment"),
                false => format!("{name}={value} is set, and no GPU is known to go by it"),
            }
        }
        ([], Some(unit)) => format!("{OVERRIDE} is in effect for {unit}"),
        ([], None) => return Verdict::NotHere,
    };
    let mut finding = Finding::new(title);
    for (name, value) in set {
        finding = finding.saw(name.as_str(), effect(name, value, &view.rocm_agents));
    }
    for (file, settings) in services.values() {
        finding = finding.saw(*file, settings.as_str());
    }
    finding
        .why("ROCm loads kernels that were compiled for another GPU; name this in every report of a fault")
        .into()
}

/// The value, and for each GPU that it is for what becomes of it.
fn effect(name: &str, value: &str, agents: &[RocmAgent]) -> String {
    let value = if value.is_empty() {
        "set to nothing"
    } else {
        value
    };
    let changed: Vec<String> = agents
        .iter()
        .filter_map(|agent| match &agent.setting {
            Setting::Target(variable, _, target) if variable == name => {
                let native = agent
                    .native
                    .map_or("a GPU".to_owned(), |native| native.name());
                let own = format!("node {}", agent.node);
                let key = agent.gpu.as_ref().unwrap_or(&own);
                Some(format!("{key}: {native} goes by {}", target.name()))
            }
            _ => None,
        })
        .collect();
    if changed.is_empty() {
        format!("{value} (no GPU goes by it)")
    } else {
        format!("{value} ({})", changed.join(", "))
    }
}

/// Units that set an override, with the file and what they set; and why there may be more.
fn services<'v>(view: &'v View) -> (BTreeMap<&'v str, (&'v str, String)>, Option<String>) {
    let units = match &view.facts.services {
        Seen::Got(services) => &services.units,
        Seen::Absent => return (BTreeMap::new(), None),
        other => return (BTreeMap::new(), Some(other.as_ref().map(|_| ()).why())),
    };
    // Units of the administrator's are among them only where they set such variables.
    let set = |unit: &'v Seen<Unit>| {
        let unit = unit.got()?;
        Some((unit.file.as_str(), settings(unit)?))
    };
    let found: BTreeMap<&str, (&str, String)> = units
        .iter()
        .filter_map(|(name, unit)| Some((name.as_str(), set(unit)?)))
        .collect();
    let unknown = SERVICES
        .iter()
        .find_map(|(name, _)| match units.get(*name) {
            Some(Seen::Got(unit)) if unit.whole => None,
            Some(Seen::Got(_)) => Some(format!("not all files of {name} could be read")),
            Some(Seen::Absent) => None,
            Some(other) => Some(format!("{name}: {}", other.as_ref().map(|_| ()).why())),
            None => Some(format!("{name} was not recorded")),
        });
    (found, unknown)
}

fn settings(unit: &Unit) -> Option<String> {
    let settings: Vec<String> = unit
        .environment
        .iter()
        .filter(|(name, _)| name.starts_with(OVERRIDE))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    (!settings.is_empty()).then(|| settings.join(" "))
}
