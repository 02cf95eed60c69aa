//! The headline: how far each stack works.

use crate::chain::{Answer, Subject};
use crate::check::{Link, Verdict};
use crate::facts::Seen;
use crate::facts::rocm_smi::RocmSmiDevice;
use crate::finding::{Finding, Severity};
use crate::fix::{Fix, FixCall};
use crate::view::environments::Kind;
use crate::view::{AtFirstUse, Gpu, Loaded, Stack, View, Wanted};
use serde::{Deserialize, Serialize};

/// How far a stack works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The library answered for every GPU of the stack, and nothing at warning or above stands against it. No kernel was run.
    Ready,
    /// Some of its GPUs work.
    Partial,
    /// It cannot work.
    Broken,
    /// Nothing of it is installed, and nobody seems to want it.
    NotSetUp,
    /// What was seen does not tell, or not enough could be looked at.
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
    /// The finding that tells how to set it up.
    pub finding: Option<FindingRef>,
    /// For what is unknown: something that was asked did not answer as it does where the stack works.
    #[serde(default)]
    pub doubt: bool,
    /// Keys of the GPUs that work.
    pub gpus: Vec<String>,
}

/// Which finding is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingRef {
    /// Name of the check.
    pub check: String,
    /// Whom it is about: `machine`, `stack cuda`, `gpu 0000:01:00.0`.
    pub subject: String,
}

impl Readiness {
    /// Of a stack that no GPU is known to work with.
    pub fn new(stack: &str, state: State, because: impl Into<String>) -> Readiness {
        Readiness {
            stack: stack.to_owned(),
            state,
            broken_at: None,
            because: because.into(),
            finding: None,
            doubt: false,
            gpus: Vec::new(),
        }
    }
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
    let row = |state, because: String| Readiness::new(stack.name(), state, because);
    let wanted = view.wanted(stack);
    if !matches!(wanted, Wanted::Yes(_)) {
        return not_set_up(stack, &wanted, view, answers);
    }
    let errors = faults(stack, view, answers);
    let whole = errors.iter().find(|fault| fault.whole);
    if let Some(fault) = whole {
        return Readiness {
            broken_at: Some(fault.link),
            ..row(State::Broken, fault.words(&errors, view))
        };
    }
    if errors.is_empty()
        && let Some(row) = nothing_to_drive(stack, view, answers)
    {
        return row;
    }
    let lost = |gpu: &Gpu| errors.iter().any(|fault| fault.gpus.contains(&gpu.key));
    // What is gone, given to a virtual machine or not to this container cannot work here, though no fault of it.
    let counts = |gpu: &Gpu| {
        !gpu.remembered
            && !view.is_reserved(gpu)
            && gpu.passed_in != Some(false)
            && !is_driven_for_the_display(stack, gpu)
    };
    let (bad, mut good): (Vec<&Gpu>, Vec<&Gpu>) = view.gpus_of(stack).partition(|gpu| lost(gpu));
    good.retain(|gpu| counts(gpu));
    match (errors.first(), bad.is_empty(), good.is_empty()) {
        (Some(fault), false, true) => Readiness {
            broken_at: Some(fault.link),
            ..row(State::Broken, fault.words(&errors, view))
        },
        (Some(fault), false, false) => Readiness {
            broken_at: Some(fault.link),
            gpus: heard(stack, &good, view)
                .unwrap_or_else(|| good.iter().map(|gpu| gpu.key.clone()).collect()),
            ..row(State::Partial, fault.words(&errors, view))
        },
        _ => match answered(stack, &good, view, answers) {
            Ok(gpus) if gpus.len() == good.len() => Readiness {
                gpus,
                ..row(
                    State::Ready,
                    "the library answered for every GPU".to_owned(),
                )
            },
            Ok(gpus) => Readiness {
                broken_at: Some(Link::Library),
                because: unanswered(stack, &good, &gpus),
                gpus,
                ..row(State::Partial, String::new())
            },
            Err((why, doubt)) => Readiness {
                doubt,
                ..row(State::Unknown, why)
            },
        },
    }
}

/// A stack that somebody wants and that has no GPU here: there is none, or each is kept for virtual machines or is shared
/// among them.
fn nothing_to_drive(stack: Stack, view: &View, answers: &[Answer]) -> Option<Readiness> {
    let row = |state, because: String| Some(Readiness::new(stack.name(), state, because));
    let gpus: Vec<&Gpu> = view.gpus_of(stack).collect();
    if gpus.is_empty() && view.gpus_whole && view.npus_of(stack).next().is_none() {
        let because = format!("no {} GPU is here", vendor_name(stack));
        return row(State::NotSetUp, because);
    }
    let is_shared = matches!(view.loaded("nvidia_vgpu_vfio"), Loaded::Yes(_));
    if stack == Stack::Cuda && is_shared && view.nvidia_library(LIBCUDA) == Ok(None) {
        let because =
            "this host shares its GPUs among virtual machines, and its driver brings no CUDA along";
        return row(State::NotSetUp, because.to_owned());
    }
    if gpus.is_empty() || !gpus.iter().all(|gpu| view.is_reserved(gpu)) {
        return None;
    }
    let kept = answers.iter().find_map(|answer| {
        let Verdict::Found(finding) = &answer.verdict else {
            return None;
        };
        let of_gpus = matches!(answer.subject, Subject::Gpu(_)) && answer.is_about(stack, view);
        let stands = answer.is_open() && answer.severity >= Severity::Warning;
        (of_gpus && stands && answer.link == Link::Driver).then_some((answer, finding))
    });
    match kept {
        Some((answer, finding)) => Some(Readiness {
            broken_at: Some(answer.link),
            ..Readiness::new(
                stack.name(),
                State::Broken,
                said(finding, &answer.subject, view),
            )
        }),
        None => row(
            State::NotSetUp,
            format!(
                "each {} GPU here is kept for virtual machines",
                vendor_name(stack)
            ),
        ),
    }
}

/// The library that speaks for the GPUs of a stack.
fn library_of(stack: Stack) -> &'static str {
    match stack {
        Stack::Cuda => "NVML",
        Stack::Rocm => "ROCm SMI",
        Stack::LevelZero => "Level Zero",
    }
}

fn unanswered(stack: Stack, all: &[&Gpu], answered: &[String]) -> String {
    let silent: Vec<&str> = all
        .iter()
        .map(|gpu| gpu.key.as_str())
        .filter(|key| !answered.iter().any(|answered| answered == key))
        .collect();
    format!(
        "{} says nothing of {}",
        library_of(stack),
        silent.join(", ")
    )
}

/// The keys of the GPUs that the library of the stack lists. None: it did not answer, or there is none to ask.
fn heard(stack: Stack, gpus: &[&Gpu], view: &View) -> Option<Vec<String>> {
    match stack {
        Stack::Cuda => {
            view.facts.nvml.got()?;
            let listed = gpus.iter().filter(|gpu| view.nvml_reaches(gpu));
            Some(listed.map(|gpu| gpu.key.clone()).collect())
        }
        Stack::Rocm => {
            let smi = view.facts.rocm_smi.got()?;
            let agrees = |gpu: &&&Gpu| {
                let Some(device) = smi.devices.get(&gpu.key) else {
                    return false;
                };
                // A library of another version than expected answers with figures that are none.
                let same = match (device.memory_bytes.got(), gpu.memory_bytes) {
                    (Some(says), Some(is)) => *says == is,
                    _ => true,
                };
                same && says_something(device)
            };
            let listed = gpus.iter().filter(agrees);
            Some(listed.map(|gpu| gpu.key.clone()).collect())
        }
        Stack::LevelZero => None,
    }
}

/// The keys of the GPUs for which the library of the stack answered; else why it is not known whether the stack works, and
/// whether that is a sign that it may not. No error stands against it.
fn answered(
    stack: Stack,
    gpus: &[&Gpu],
    view: &View,
    answers: &[Answer],
) -> Result<Vec<String>, (String, bool)> {
    let found = worst(stack, view, answers);
    if gpus.is_empty() || stack == Stack::LevelZero {
        let is_kept_out = view.gpus_of(stack).any(|gpu| gpu.passed_in == Some(false));
        return Err((nobody_asked(stack, &found, view), is_kept_out));
    }
    let library = library_of(stack);
    let asked = match stack {
        Stack::Cuda => view.facts.nvml.as_ref().map(|_| ()),
        _ => view.facts.rocm_smi.as_ref().map(|_| ()),
    };
    let Some(heard) = heard(stack, gpus, view) else {
        let failed = matches!(asked, Seen::Failed(_));
        let mut why = format!("{found}; {library}, which would tell: {}", asked.why());
        // PyTorch's wheels for ROCm bring all of it along.
        if let (Stack::Rocm, Some((_, folder))) = (stack, view.first_framework(stack)) {
            why += &format!("; what {folder} brings of its own was not asked");
        }
        return Err((why, failed));
    };
    // What programs load is another library than NVML.
    if let (Stack::Cuda, Seen::Failed(failure)) = (stack, &view.facts.cuda) {
        return Err((format!("{found}; libcuda.so.1: {failure}"), true));
    }
    if heard.is_empty() {
        let why = match gpus.iter().find_map(|gpu| view.nvml_refusal(gpu)) {
            Some(refusal) => format!("{found}; {library} answers {refusal}"),
            None => format!("{found}; {library} has no answers of the GPUs"),
        };
        return Err((why, true));
    }
    match open_doubt(stack, view, answers) {
        Some(doubt) => Err((format!("{library} answered, but {doubt}"), true)),
        None => Ok(heard),
    }
}

/// Not every question failed. What a machine was not asked for does not count.
fn says_something(device: &RocmSmiDevice) -> bool {
    let failed = [
        matches!(device.name.0, Seen::Failed(_)),
        matches!(device.memory_bytes.0, Seen::Failed(_)),
        matches!(device.memory_used_bytes.0, Seen::Failed(_)),
        matches!(device.temperature_c.0, Seen::Failed(_)),
    ];
    failed.contains(&false)
}

/// The worst that was found about a stack and is no error: that there is nothing is said only where there is nothing.
fn worst(stack: Stack, view: &View, answers: &[Answer]) -> String {
    let warning = answers.iter().find_map(|answer| {
        let Verdict::Found(finding) = &answer.verdict else {
            return None;
        };
        let stands = answer.is_open() && answer.severity >= Severity::Warning;
        // What is said of the machine may concern any stack.
        let about = answer.is_about(stack, view)
            || (answer.subject == Subject::Machine && finding.stack.is_none());
        (stands && about).then(|| said(finding, &answer.subject, view))
    });
    warning.unwrap_or_else(|| "no fault was found".to_owned())
}

/// The title of a finding, where there are several GPUs with the address of the one that it is about.
fn said(finding: &Finding, subject: &Subject, view: &View) -> String {
    let title = finding.title.as_str();
    let Subject::Gpu(key) = subject else {
        return title.to_owned();
    };
    if view.gpus.len() < 2 || title.contains(key.as_str()) {
        return title.to_owned();
    }
    let name = match (key.strip_prefix("proc:"), key.strip_prefix("kfd:")) {
        (Some(address), _) => format!("GPU {address}"),
        (_, Some(node)) => format!("GPU of KFD node {node}"),
        _ => format!("GPU {key}"),
    };
    match title.contains("this GPU") {
        true => title.replacen("this GPU", &name, 1),
        false => format!("{name}: {title}"),
    }
}

/// What keeps a stack whose library answered from being called ready.
fn open_doubt(stack: Stack, view: &View, answers: &[Answer]) -> Option<String> {
    if let Some(why) = view.doors(stack).unknown {
        return Some(format!(
            "whether programs may open its device nodes is not known: {why}"
        ));
    }
    if stack == Stack::Cuda && view.wsl().is_none() && view.nvidia_library(LIBCUDA) == Ok(None) {
        return Some(format!("{LIBCUDA} is nowhere that the loader looks"));
    }
    if stack == Stack::Cuda
        && let Some(contradiction) = view.nvml_contradicts()
    {
        return Some(contradiction);
    }
    // NVML says nothing of it: what programs load beside it takes few GPUs and only some drivers.
    if stack == Stack::Cuda
        && let Seen::Got(library) = view.winner(LIBCUDA)
        && library.is_compat()
        && !view.compat_serves(library)
    {
        return Some(format!(
            "programs load {}, of a compatibility package, and whether that takes these GPUs is not known",
            library.path
        ));
    }
    if stack == Stack::Cuda && view.wsl().is_none() && view.node(UVM).is_absent() {
        match view.nvidia_nodes_at_first_use("nvidia_uvm") {
            AtFirstUse::Yes(_) => {}
            AtFirstUse::No(..) => return Some(format!("{UVM} does not exist")),
            AtFirstUse::Unknown(why) => {
                return Some(format!(
                    "{UVM} does not exist, and whether it can be made: {why}"
                ));
            }
        }
    }
    if stack == Stack::Rocm && view.wsl().is_none() && view.node(KFD).is_absent() {
        return Some(format!("{KFD} does not exist"));
    }
    // ROCm SMI asks the display side of the driver; programs go through KFD.
    if stack == Stack::Rocm && view.facts.kfd.got().is_some() {
        let left_out = view.gpus_of(stack).find(|gpu| {
            gpu.is_held_by("amdgpu") && gpu.passed_in != Some(false) && gpu.kfd_nodes.is_empty()
        });
        if let Some(gpu) = left_out {
            return Some(format!("KFD has no node for {} that is known", gpu.key));
        }
    }
    answers.iter().find_map(|answer| {
        let about = answer.is_about(stack, view);
        match &answer.verdict {
            Verdict::Found(finding) => {
                // What only building wants keeps no program from running.
                let stands = answer.is_open()
                    && answer.severity >= Severity::Warning
                    && answer.link != Link::Toolkit;
                (stands && !finding.is_of_no_gpu() && about)
                    .then(|| said(finding, &answer.subject, view))
            }
            // Where the library answered, what comes before it works; what comes after may still break.
            Verdict::CannotTell { why, .. } => {
                let later = (Link::Library..Link::Toolkit).contains(&answer.link);
                (later && answer.usual == Severity::Error && about)
                    .then(|| format!("{} could not be told: {why}", answer.check))
            }
            Verdict::Fine(_) | Verdict::NotHere => None,
        }
    })
}

/// Node that every CUDA program opens.
const UVM: &str = "/dev/nvidia-uvm";
/// Library that every CUDA program loads.
const LIBCUDA: &str = "libcuda.so.1";
/// Node that every ROCm program opens.
const KFD: &str = "/dev/kfd";

/// A GPU that another driver holds, such as nouveau, is not one of the stack's; that this is wrong, a finding would say.
fn is_driven_for_the_display(stack: Stack, gpu: &Gpu) -> bool {
    let computes: &[&str] = match stack {
        Stack::Cuda => &["nvidia", "dxgkrnl"],
        Stack::Rocm => &["amdgpu", "dxgkrnl"],
        Stack::LevelZero => &["i915", "xe", "dxgkrnl"],
    };
    gpu.driver
        .got()
        .is_some_and(|driver| !computes.contains(&driver.as_str()))
}

/// An error that concerns a stack.
struct Fault {
    link: Link,
    says: String,
    /// The GPU that it is about, by its key.
    about: Option<String>,
    /// The whole stack has it.
    whole: bool,
    /// The GPUs that have it, where it is theirs.
    gpus: Vec<String>,
}

impl Fault {
    /// Its title, with the GPU that it is about and how many others have the same.
    fn words(&self, all: &[Fault], view: &View) -> String {
        let subject = match &self.about {
            Some(key) => Subject::Gpu(key.clone()),
            None => return self.says.clone(),
        };
        let same: std::collections::BTreeSet<&String> = all
            .iter()
            .filter(|fault| fault.says == self.says)
            .filter_map(|fault| fault.about.as_ref())
            .collect();
        let words = said(&Finding::new(self.says.as_str()), &subject, view);
        match same.len() {
            0 | 1 => words,
            2 => format!("{words} (and 1 more GPU)"),
            number => format!("{words} (and {} more GPUs)", number - 1),
        }
    }
}

/// The errors of a stack, the earliest link first. What a root explains counts for the stack that it is about, in the words
/// of the root: that may be about the machine, or name another stack.
fn faults(stack: Stack, view: &View, answers: &[Answer]) -> Vec<Fault> {
    // An error of the hardware over which NVML lost the GPU: no program finds it.
    let is_lost = |answer: &Answer| {
        let of_gpu = |gpu: &Gpu| answer.subject == Subject::Gpu(gpu.key.clone());
        answer.link == Link::Health
            && view
                .gpus
                .iter()
                .any(|gpu| of_gpu(gpu) && view.nvml_misses(gpu))
    };
    // What the image of this container brings is what runs in it.
    let is_image = |key: &String| {
        let mut environments = view.environments.iter();
        environments.any(|environment| {
            matches!(environment.kind, Kind::Image)
                && environment.key == *key
                && environment.stack == Some(stack)
        })
    };
    let mut faults: Vec<Fault> = answers
        .iter()
        // What only building wants keeps no program from running.
        .filter(|answer| {
            let of_container = answer.link == Link::Container && view.in_container();
            let breaks = answer.link < Link::Toolkit || of_container || is_lost(answer);
            answer.severity == Severity::Error && breaks
        })
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
                Subject::Environment(key) if is_image(key) => (true, Vec::new()),
                Subject::Stack(_) | Subject::Gpu(_) | Subject::Environment(_) => return None,
            };
            let root = answer.folded_into.and_then(|root| answers.get(root));
            let root = root.unwrap_or(answer);
            let Verdict::Found(says) = &root.verdict else {
                return None;
            };
            (whole || !gpus.is_empty()).then_some(Fault {
                link: match root.link {
                    Link::Health => Link::Driver,
                    link => link,
                },
                says: says.title.clone(),
                about: match &root.subject {
                    Subject::Gpu(key) => Some(key.clone()),
                    Subject::Machine | Subject::Stack(_) | Subject::Environment(_) => None,
                },
                whole,
                gpus,
            })
        })
        .collect();
    faults.sort_by_key(|fault| fault.link);
    faults
}

/// Of a stack that nobody seems to want: what is missing, in the words of the finding that says so, else what sets it up.
fn not_set_up(stack: Stack, wanted: &Wanted, view: &View, answers: &[Answer]) -> Readiness {
    let missing = answers.iter().find_map(|answer| {
        let Verdict::Found(finding) = &answer.verdict else {
            return None;
        };
        (answer.is_about(stack, view)
            && answer.folded_into.is_none()
            && (answer.link <= Link::Driver || answer.link == Link::Container))
            .then_some((answer, finding))
    });
    let recipe = match stack {
        Stack::Cuda => "set-up-cuda",
        Stack::Rocm => "set-up-rocm",
        Stack::LevelZero => "set-up-level-zero",
    };
    let row = |state, because: String| Readiness::new(stack.name(), state, because);
    match missing {
        // How to mend it takes more than a line, and stands there.
        Some((answer, finding)) => Readiness {
            finding: Some(FindingRef {
                check: answer.check.to_owned(),
                subject: answer.subject.name(),
            }),
            ..row(State::NotSetUp, said(finding, &answer.subject, view))
        },
        None if *wanted == Wanted::Unknown && !software_was_seen(view) => row(
            State::Unknown,
            "nothing of it was seen, for none of the folders of libraries could be looked into"
                .to_owned(),
        ),
        None if !software_was_seen(view) => row(
            State::Unknown,
            "none of the folders that would hold it is here".to_owned(),
        ),
        None if *wanted == Wanted::Unknown => row(
            State::NotSetUp,
            "no sign of it was seen, but not everything could be looked at".to_owned(),
        ),
        None => match view.fix(&FixCall::new(recipe)) {
            Some(fix) => row(State::NotSetUp, to_set_up(&fix)),
            None => row(State::NotSetUp, "nothing of it was seen".to_owned()),
        },
    }
}

/// Some folder in which software lies was looked into: a tree without `/usr` says nothing of what is installed.
fn software_was_seen(view: &View) -> bool {
    view.facts.software.got().is_some_and(|software| {
        let mut folders = software.library_folders.values();
        folders.any(|folder| folder.got().is_some())
    })
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
fn nobody_asked(stack: Stack, found: &str, view: &View) -> String {
    if view.gpus_of(stack).next().is_none() {
        return format!("no {} GPU was seen", vendor_name(stack));
    }
    let library = library_of(stack);
    format!("{found}; {library}, which would tell, was not asked")
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
    let row = |state, because: &str| Readiness::new("vulkan", state, because);
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
            usual: Severity::Error,
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
