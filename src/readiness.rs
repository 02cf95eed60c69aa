//! The headline: how far each stack works.

use crate::chain::{Answer, Subject};
use crate::check::{Link, Verdict};
use crate::facts::Seen;
use crate::finding::Severity;
use crate::fix::{Fix, FixCall};
use crate::view::{Gpu, Stack, View, Wanted};
use serde::{Deserialize, Serialize};

/// How far a stack works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The library answered for every GPU and nothing is wrong. No kernel was run.
    Ready,
    /// Some of its GPUs work.
    Partial,
    /// It cannot work.
    Broken,
    /// Nothing of it is installed, and nobody seems to want it.
    NotSetUp,
    /// What was seen does not tell.
    Unknown,
}

/// How far one stack works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Readiness {
    /// `cuda`, `rocm`, `level-zero`, `vulkan`.
    pub stack: String,
    /// How far.
    pub state: State,
    /// The link at which it breaks.
    pub broken_at: Option<Link>,
    /// Why: a finding, what is not known, or what would set it up.
    pub because: String,
    /// Keys of the GPUs that work.
    pub gpus: Vec<String>,
}

/// How far each stack works that there is a reason to speak of, then Vulkan.
pub fn rows(view: &View, answers: &[Answer]) -> Vec<Readiness> {
    let mut rows: Vec<Readiness> = view
        .stacks()
        .into_iter()
        .map(|stack| compute(stack, view, answers))
        .collect();
    if view.gpus.iter().any(|gpu| !gpu.remembered) {
        rows.push(vulkan(view, answers));
    }
    rows
}

fn compute(stack: Stack, view: &View, answers: &[Answer]) -> Readiness {
    let row = |state, because: String| Readiness {
        stack: stack.name().to_owned(),
        state,
        broken_at: None,
        because,
        gpus: Vec::new(),
    };
    let wanted = view.wanted(stack);
    if !matches!(wanted, Wanted::Yes(_)) {
        return row(State::NotSetUp, not_set_up(stack, &wanted, view, answers));
    }
    let errors = faults(stack, view, answers);
    let whole = errors.iter().find(|fault| fault.whole);
    if let Some(fault) = whole {
        return Readiness {
            broken_at: Some(fault.link),
            ..row(State::Broken, fault.says.clone())
        };
    }
    let lost = |gpu: &Gpu| errors.iter().any(|fault| fault.gpus.contains(&gpu.key));
    // What is gone, given to a virtual machine or not to this container cannot work here, though no fault of it.
    let counts = |gpu: &Gpu| !gpu.remembered && !gpu.is_set_aside() && gpu.passed_in != Some(false);
    let (bad, mut good): (Vec<&Gpu>, Vec<&Gpu>) = view.gpus_of(stack).partition(|gpu| lost(gpu));
    good.retain(|gpu| counts(gpu));
    match (errors.first(), bad.is_empty(), good.is_empty()) {
        (Some(fault), false, true) => Readiness {
            broken_at: Some(fault.link),
            ..row(State::Broken, fault.says.clone())
        },
        (Some(fault), false, false) => Readiness {
            broken_at: Some(fault.link),
            gpus: good.iter().map(|gpu| gpu.key.clone()).collect(),
            ..row(State::Partial, fault.says.clone())
        },
        _ => row(State::Unknown, nobody_asked(stack, view)),
    }
}

/// An error that concerns a stack.
struct Fault {
    link: Link,
    says: String,
    /// The whole stack has it.
    whole: bool,
    /// The GPUs that have it, where it is theirs.
    gpus: Vec<String>,
}

/// The errors of a stack, the earliest link first. What a root explains counts for the stack that it is about, in the words
/// of the root: that may be about the machine, or name another stack.
fn faults(stack: Stack, view: &View, answers: &[Answer]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = answers
        .iter()
        .filter(|answer| answer.severity == Severity::Error && answer.link.in_chain())
        .filter_map(|answer| {
            let Verdict::Found(finding) = &answer.verdict else {
                return None;
            };
            let (whole, gpus) = match &answer.subject {
                Subject::Machine => (finding.stack.is_none_or(|about| about == stack), Vec::new()),
                // A stack of which one node of eight is shut works on the other seven.
                Subject::Stack(about) if *about == stack => (
                    finding.gpus.is_none(),
                    finding.gpus.clone().unwrap_or_default(),
                ),
                Subject::Gpu(key) if view.gpus_of(stack).any(|gpu| gpu.key == *key) => {
                    (false, vec![key.clone()])
                }
                Subject::Stack(_) | Subject::Gpu(_) => return None,
            };
            let root = answer.folded_into.and_then(|root| answers.get(root));
            let root = root.unwrap_or(answer);
            let Verdict::Found(says) = &root.verdict else {
                return None;
            };
            (whole || !gpus.is_empty()).then_some(Fault {
                link: root.link,
                says: says.title.clone(),
                whole,
                gpus,
            })
        })
        .collect();
    faults.sort_by_key(|fault| fault.link);
    faults
}

/// What is missing, in the words of the finding that says so, and what sets it up.
fn not_set_up(stack: Stack, wanted: &Wanted, view: &View, answers: &[Answer]) -> String {
    let missing = answers.iter().find_map(|answer| {
        let Verdict::Found(finding) = &answer.verdict else {
            return None;
        };
        let about = match &answer.subject {
            Subject::Machine => finding.stack == Some(stack),
            Subject::Stack(about) => *about == stack,
            Subject::Gpu(key) => view.gpus_of(stack).any(|gpu| gpu.key == *key),
        };
        (about && answer.folded_into.is_none() && answer.link <= Link::Driver).then_some(finding)
    });
    let recipe = match stack {
        Stack::Cuda => "set-up-cuda",
        Stack::Rocm => "set-up-rocm",
        Stack::LevelZero => "set-up-level-zero",
    };
    match missing {
        Some(finding) => match finding.fixes.first().and_then(|call| view.fix(call)) {
            Some(fix) => format!("{}; {}", finding.title, to_set_up(&fix)),
            None => finding.title.clone(),
        },
        None if *wanted == Wanted::Unknown => {
            "no sign of it was seen, but not everything could be looked at".to_owned()
        }
        None => match view.fix(&FixCall::new(recipe)) {
            Some(fix) => to_set_up(&fix),
            None => "nothing of it was seen".to_owned(),
        },
    }
}

/// One line of a recipe: its words, and the command where there is one.
fn to_set_up(fix: &Fix) -> String {
    let mut letters = fix.words.chars();
    let words: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_lowercase)
        .chain(letters)
        .collect();
    match fix.commands.first() {
        Some(command) => format!("to use it, {words}: `{command}`"),
        None => format!("to use it, {words}"),
    }
}

/// As long as no library was asked it cannot be more than unknown.
fn nobody_asked(stack: Stack, view: &View) -> String {
    let library = match stack {
        Stack::Cuda => "NVML",
        Stack::Rocm => "ROCm SMI",
        Stack::LevelZero => "Level Zero",
    };
    if view.gpus_of(stack).next().is_none() {
        return format!("no {} GPU was seen", vendor_name(stack));
    }
    format!("no fault was found; {library}, which would tell, was not asked")
}

fn vendor_name(stack: Stack) -> &'static str {
    match stack {
        Stack::Cuda => "NVIDIA",
        Stack::Rocm => "AMD",
        Stack::LevelZero => "Intel",
    }
}

/// Vulkan needs a kernel driver and a driver manifest; whether a device comes up, only the loader can say.
fn vulkan(view: &View, answers: &[Answer]) -> Readiness {
    let row = |state, because: &str| Readiness {
        stack: "vulkan".to_owned(),
        state,
        broken_at: None,
        because: because.to_owned(),
        gpus: Vec::new(),
    };
    // One GPU with a driver is enough for Vulkan.
    let undriven = view
        .gpus
        .iter()
        .filter(|gpu| !gpu.remembered)
        .all(|gpu| gpu.driver.is_absent());
    let held_back = answers.iter().find(|answer| {
        undriven
            && answer.is_open()
            && answer.severity == Severity::Error
            && answer.check == "nomodeset-set"
    });
    if let Some(Answer {
        verdict: Verdict::Found(finding),
        link,
        ..
    }) = held_back
    {
        return Readiness {
            broken_at: Some(*link),
            ..row(State::Broken, &finding.title)
        };
    }
    let manifests = view.facts.icd.as_ref().and_then(|icd| icd.vulkan.as_ref());
    match manifests {
        Seen::Got(files) if files.is_empty() => row(State::NotSetUp, "no Vulkan driver manifest"),
        Seen::Absent => row(State::NotSetUp, "no Vulkan driver manifest"),
        Seen::Got(_) => row(
            State::Unknown,
            "driver manifests are there; the Vulkan loader was not asked",
        ),
        _ => row(State::Unknown, "driver manifests could not be looked for"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::facts::pci::{PciBus, PciFunction};
    use crate::finding::Finding;
    use crate::tables::Tables;

    /// A root that names CUDA and explains why the AMD GPU has no driver: ROCm is broken all the same.
    #[test]
    fn what_a_root_of_another_stack_explains_breaks_its_own() {
        let function = PciFunction {
            vendor: Seen::Got(0x1002),
            class: Seen::Got(0x03_0000),
            ..PciFunction::default()
        };
        let facts = Facts {
            pci: Seen::Got(PciBus {
                whole: true,
                items: [("0000:03:00.0".to_owned(), function)].into(),
            }),
            ..Facts::default()
        };
        let tables = Tables::embedded();
        let view = View::new(&facts, &tables, &[Stack::Rocm]);
        let answer = |check, subject, finding: Finding, folded_into| Answer {
            check,
            link: Link::Driver,
            subject,
            verdict: finding.into(),
            severity: Severity::Error,
            folded_into,
        };
        let answers = [
            answer(
                "running-kernel-not-installed",
                Subject::Machine,
                Finding::new("modules are gone").about(Some(Stack::Cuda)),
                None,
            ),
            answer(
                "amdgpu-driver-not-bound",
                Subject::Gpu("0000:03:00.0".to_owned()),
                Finding::new("no driver"),
                Some(0),
            ),
        ];
        let row = compute(Stack::Rocm, &view, &answers);
        assert_eq!(row.state, State::Broken);
        assert_eq!(row.because, "modules are gone");
    }
}
