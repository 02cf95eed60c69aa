//! Variables of this shell that a service does not have.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::services::Unit;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::access::SERVICES;
use crate::view::{Stack, View};

crate::check! {
    /// A variable that steers GPU programs is set in this shell, and a service that computes does not have it or has another
    /// value.
    ///
    /// ## Why it matters
    /// What was tried in the shell is then not what the service does: it uses other GPUs, another backend, or fails where the
    /// program that was started by hand works.
    ///
    /// ## How it comes about
    /// Services do not get the variables of a shell. What `export` and `~/.bashrc` say counts for the programs of that shell;
    /// a service has what its unit says (`Environment=`). A server that was started by hand beside the service is a second one, with
    /// the variables of its shell.
    ///
    /// ## How to confirm
    /// `systemctl show -p Environment,EnvironmentFiles ollama` beside `printenv`.
    "service-environment-differs", Runtime, Note, each Stack, run
}

const WOULD_TELL: &str = "`systemctl show -p Environment,EnvironmentFiles` of the service";

/// Variables that programs of a stack read, whatever they are.
fn variables(stack: Stack) -> &'static [&'static str] {
    match stack {
        Stack::Cuda => &["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"],
        Stack::Rocm => &[
            "HSA_OVERRIDE_GFX_VERSION",
            "ROCR_VISIBLE_DEVICES",
            "HIP_VISIBLE_DEVICES",
        ],
        Stack::LevelZero => &["ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"],
    }
}

/// Those that only Ollama reads.
const OLLAMA: [&str; 3] = ["OLLAMA_LLM_LIBRARY", "OLLAMA_VULKAN", "OLLAMA_IGPU_ENABLE"];

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    // What a scheduler sets is for its job alone, and no service runs in a container.
    if view.in_container() || view.scheduler_job().is_some() || view.gpus_of(stack).next().is_none()
    {
        return Verdict::NotHere;
    }
    let of_stack = variables(stack).iter().chain(&OLLAMA);
    let mut answers = of_stack.map(|variable| view.variable(variable));
    if answers.all(|answer| answer.is_absent()) {
        return Verdict::fine("no such variable is set in this shell");
    }
    let services = match &view.facts.services {
        Seen::Got(services) => services,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "which services there are: {}",
                    other.as_ref().map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    };
    let mut unknown = None;
    let mut compared = false;
    for &(name, _) in SERVICES.iter().filter(|(_, alone)| *alone) {
        let unit = match services.units.get(name) {
            Some(Seen::Got(unit)) if unit.is_used() => unit,
            Some(Seen::Got(_) | Seen::Absent) => continue,
            Some(other) => {
                let why = other.as_ref().map(|_| ()).why();
                unknown.get_or_insert(format!("{name}: {why}"));
                continue;
            }
            None => continue,
        };
        compared = true;
        match compare(name, unit, stack, view) {
            Ok(None) => {}
            Ok(Some(finding)) => return finding.into(),
            Err(why) => {
                unknown.get_or_insert(why);
            }
        }
    }
    match unknown {
        Some(why) => Verdict::cannot_tell(why, WOULD_TELL),
        None if compared => Verdict::fine("no service lacks a variable of this shell"),
        None => Verdict::NotHere,
    }
}

/// What the shell has and a unit does not. Err: not known.
fn compare(name: &str, unit: &Unit, stack: Stack, view: &View) -> Result<Option<Finding>, String> {
    let mut stacks = view.stacks().into_iter();
    let speaks = stacks.find(|stack| view.gpus_of(*stack).next().is_some());
    let of_ollama = match name {
        // It serves all stacks, and one of them speaks of it.
        "ollama.service" if speaks == Some(stack) => &OLLAMA[..],
        _ => &[],
    };
    let mut differ = Vec::new();
    let mut unknown = None;
    for variable in variables(stack).iter().chain(of_ollama) {
        let here = match view.variable(variable) {
            Seen::Got(here) => here,
            Seen::Absent => continue,
            other => {
                unknown.get_or_insert(format!("{variable}: {}", other.why()));
                continue;
            }
        };
        match unit.environment.get(*variable) {
            Some(there) if there == here => {}
            Some(there) => differ.push((*variable, here, format!("{variable}={there}"))),
            None if unit.whole => {
                differ.push((*variable, here, format!("does not set {variable}")))
            }
            None => {
                unknown.get_or_insert(format!("{name}: not all of its files could be read"));
            }
        }
    }
    let Some((first, ..)) = differ.first() else {
        return unknown.map_or(Ok(None), Err);
    };
    let mut finding = Finding::new(format!("{first} of this shell is not what {name} has"))
        .why("The service computes otherwise than programs of this shell: what works here need not work there")
        .fix(FixCall::new("variable-in-unit").with("name", name).with("word", *first));
    for (variable, here, there) in differ {
        let here = if here.is_empty() {
            "set to nothing"
        } else {
            here
        };
        finding = finding.saw(variable, here).saw(unit.file.as_str(), there);
    }
    Ok(Some(finding))
}
