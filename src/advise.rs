//! `gpucheck advise`: what can run a GPU, what to install on this system, what the next restart changes, and what the GPU is
//! good for. A pure function of the view and the tables; commands come from `data/fixes.toml` alone.

mod boot;
mod figures;
mod plan;
mod support;
mod wheel;

use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, Vendor, View};
use serde::Serialize;

/// What the advice is narrowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// NVIDIA's driver and toolkits.
    Cuda,
    /// AMD's driver and ROCm.
    Rocm,
    /// PyTorch, with what it needs below it.
    Pytorch,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The distribution and the running kernel, as far as they are known.
    pub system: String,
    /// The answer in a sentence.
    pub summary: String,
    /// What a restart changes or breaks.
    pub boot: Vec<Step>,
    /// GPUs in order of their keys.
    pub gpus: Vec<GpuAdvice>,
    /// What to do, a plan for each driver.
    pub plans: Vec<Plan>,
    /// What a check found wrong with a GPU whose driver is there.
    pub fault: Option<String>,
}

impl Advice {
    /// Where nothing is missing, something may still be wrong: the title of an error about the GPUs or their stacks.
    pub fn with_fault(mut self, title: Option<String>) -> Advice {
        let is_there =
            |gpu: &GpuAdvice| matches!(gpu.state, State::Right | State::Held | State::Elsewhere);
        if let Some(title) = title.filter(|_| self.gpus.iter().all(is_there)) {
            self.summary = format!("The driver is there, and `gpucheck` finds an error: {title}");
            self.fault = Some(title);
        }
        self
    }
}

/// About one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuAdvice {
    /// Key, as in the report.
    pub key: String,
    /// Marketing name.
    pub name: Option<String>,
    /// `nvidia`, `amd`, `intel`.
    pub vendor: &'static str,
    /// Architecture.
    pub generation: Option<String>,
    /// `sm_89`, `gfx1100`.
    pub target: Option<String>,
    /// How its driver stands.
    pub state: State,
    /// The same in words.
    pub driver: String,
    /// What can ever run it.
    pub support: Vec<Line>,
    /// What it is good for.
    pub good_for: Vec<Line>,
}

/// How the driver of a GPU stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It holds the GPU, and where a library was asked, that answers.
    Right,
    /// It holds the GPU; whether it works was not asked.
    Held,
    /// It is installed, and the GPU does not work with it.
    Unfinished,
    /// It is installed and cannot run this GPU.
    Wrong,
    /// There is none.
    Missing,
    /// No driver of this system is meant to hold it.
    Elsewhere,
    /// What was seen does not tell.
    Unknown,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What it is about.
    pub label: &'static str,
    /// What there is to say.
    pub text: String,
    /// How it is known, in a word of the tables; what was seen here or follows from a rule is `derived`.
    pub confidence: &'static str,
}

/// What to do for one driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// What it is for.
    pub title: String,
    /// Keys of the GPUs.
    pub gpus: Vec<String>,
    /// In this order.
    pub steps: Vec<Step>,
    /// How to see that it worked.
    pub confirm: Option<String>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What to do.
    pub words: String,
    /// Commands to paste, in order.
    pub commands: Vec<String>,
    /// It needs root.
    pub needs_root: bool,
    /// Why.
    pub why: Option<String>,
    /// How to see that it worked.
    pub confirm: Option<String>,
    /// It takes a restart to count.
    #[serde(skip)]
    reboots: bool,
}

impl Step {
    fn because(mut self, why: impl Into<String>) -> Step {
        self.why = Some(why.into());
        self
    }
}

/// A step without commands.
fn words(text: impl Into<String>) -> Step {
    Step {
        words: text.into(),
        commands: Vec::new(),
        needs_root: false,
        why: None,
        confirm: None,
        reboots: false,
    }
}

/// The row of a recipe for this place: the only source of commands.
fn step_of(view: &View, call: &FixCall) -> Option<Step> {
    let fix = view.fix(call)?;
    // What confirms that a check is content says nothing here.
    let confirm = (fix.confirm != "The finding is gone").then_some(fix.confirm);
    Some(Step {
        words: fix.words,
        commands: fix.commands,
        needs_root: fix.needs_root,
        why: None,
        confirm,
        reboots: fix.after.as_deref() == Some("reboot"),
    })
}

/// A line by a rule of thumb, or from what was seen here.
fn line(label: &'static str, text: impl Into<String>) -> Line {
    Line {
        label,
        text: text.into(),
        confidence: "derived",
    }
}

/// The vendor whose GPUs a purpose is about; None: all.
fn vendor_of(purpose: Option<Purpose>) -> Option<Vendor> {
    match purpose {
        Some(Purpose::Cuda) => Some(Vendor::Nvidia),
        Some(Purpose::Rocm) => Some(Vendor::Amd),
        Some(Purpose::Pytorch) | None => None,
    }
}

/// The advice for a machine.
pub fn advise(view: &View, tables: &Tables, purpose: Option<Purpose>) -> Advice {
    let wanted = |gpu: &&Gpu| vendor_of(purpose).is_none_or(|vendor| gpu.vendor == vendor);
    let gpus: Vec<(&Gpu, State, String)> = view
        .gpus
        .iter()
        .filter(wanted)
        .map(|gpu| {
            let (state, driver) = plan::state(gpu, view, tables);
            (gpu, state, driver)
        })
        .collect();
    let plans = plan::plans(&gpus, view, tables, purpose);
    let boot = match gpus.is_empty() {
        true => Vec::new(),
        false => boot::steps(view, tables),
    };
    let mut summary = summary(&gpus, &plans, view, purpose);
    if !boot.is_empty() {
        summary += "; a restart changes how things stand, see below";
    }
    Advice {
        system: system(view),
        summary,
        boot,
        gpus: gpus
            .into_iter()
            .map(|(gpu, state, driver)| GpuAdvice {
                key: gpu.key.clone(),
                name: gpu.name.clone(),
                vendor: gpu.vendor.name(),
                generation: gpu.architecture.clone(),
                target: gpu.target.clone(),
                state,
                driver,
                support: support::lines(gpu, state, view, tables),
                good_for: figures::lines(gpu, view),
            })
            .collect(),
        plans,
        fault: None,
    }
}

fn system(view: &View) -> String {
    let name = match view.os_field("PRETTY_NAME") {
        "" => "a distribution that is not known",
        name => name,
    };
    match view.kernel_release().got() {
        Some(release) => format!("{name}, kernel {release}"),
        None => name.to_owned(),
    }
}

fn summary(
    gpus: &[(&Gpu, State, String)],
    plans: &[Plan],
    view: &View,
    purpose: Option<Purpose>,
) -> String {
    if gpus.is_empty() {
        return match purpose {
            Some(Purpose::Cuda) if !view.gpus.is_empty() => {
                "CUDA needs a GPU of NVIDIA, and none was found here".to_owned()
            }
            Some(Purpose::Rocm) if !view.gpus.is_empty() => {
                "ROCm needs a GPU of AMD, and none was found here".to_owned()
            }
            _ if view.wsl().is_some() => "No GPU of Windows is seen from WSL".to_owned(),
            _ if view.gpus_whole => "No GPU was found here, so no driver is needed".to_owned(),
            _ => format!(
                "No GPU was seen, which is no proof: {}",
                view.why_gpus_are_unknown()
            ),
        };
    }
    let is = |wanted: &[State]| gpus.iter().any(|(_, state, _)| wanted.contains(state));
    let installs = plans.iter().any(|plan| !plan.steps.is_empty());
    let text = if is(&[State::Missing]) {
        "A GPU here has no driver to compute with yet"
    } else if is(&[State::Wrong]) {
        "The driver that is installed cannot run a GPU here"
    } else if is(&[State::Unfinished]) {
        "A driver is installed, and a GPU does not work with it yet"
    } else if is(&[State::Unknown]) {
        "How the driver of a GPU stands could not be told"
    } else if installs {
        "The driver is right; the plan below is for what comes on top of it"
    } else if is(&[State::Held]) {
        "The driver holds the GPU, and whether it works was not asked; nothing needs to be installed as far as can be told"
    } else if is(&[State::Right]) {
        "The driver is right, and nothing needs to be installed now; `gpucheck` looks at the rest"
    } else {
        "No GPU here is this system's own to drive"
    };
    text.to_owned()
}

/// Whether a stack is asked for, by the purpose or by what is on the system.
fn is_wanted(stack: Stack, view: &View, purpose: Option<Purpose>) -> bool {
    match (purpose, stack) {
        (Some(Purpose::Rocm), Stack::Rocm) | (Some(Purpose::Cuda), Stack::Cuda) => true,
        // PyTorch's wheels bring the libraries of ROCm along, those for Intel's GPUs do not.
        (Some(Purpose::Pytorch), Stack::LevelZero) => true,
        (Some(_), _) => false,
        (None, _) => matches!(view.wanted(stack), crate::view::Wanted::Yes(_)),
    }
}
