//! How the driver of a GPU stands, and what to do about it on this distribution and release.

use super::{Plan, Purpose, State, Step, is_wanted, step_of, wheel, words};
use crate::facts::{Failure, Seen};
use crate::fix::FixCall;
use crate::tables::{Tables, kinds};
use crate::version::Version;
use crate::view::access::Access;
use crate::view::rocm::{Kernels, Target};
use crate::view::{
    AmdgpuGround, DriverGround, Gpu, Loaded, Stack, Takes, Vendor, View, carries_drivers_back,
    first_branch, last_branch, legacy_branch,
};

/// The newest branch is at least this one: all that a distribution without a release of its own has in its packages.
const NEWEST: u64 = 580;
/// The last branch with a proprietary module that takes Maxwell to Volta.
const LAST_PROPRIETARY: u64 = 580;

/// How the driver of a GPU stands.
pub(super) fn state(gpu: &Gpu, view: &View, tables: &Tables) -> (State, String) {
    if gpu.passed_in == Some(false) {
        let says = "the GPU of the host was not passed into this container";
        return (State::Elsewhere, says.to_owned());
    }
    if gpu.remembered {
        let says = "it is not on the bus any more; only a driver still remembers it";
        return (State::Unknown, says.to_owned());
    }
    if gpu.is_on_bus() && view.is_reserved(gpu) {
        let says = "set aside for virtual machines: the guest brings its driver";
        return (State::Elsewhere, says.to_owned());
    }
    match gpu.vendor {
        Vendor::Nvidia => nvidia_state(gpu, view, tables),
        Vendor::Amd => amd_state(gpu, view),
        Vendor::Intel => match gpu.driver.got().map(String::as_str) {
            Some(driver @ ("i915" | "xe")) => {
                (State::Right, format!("{driver} of the kernel holds it"))
            }
            _ => of_other_holder(gpu, "i915 or xe"),
        },
        Vendor::Other => {
            let says = "a maker whose drivers are in no table here";
            (State::Elsewhere, says.to_owned())
        }
    }
}

/// Nobody, or somebody else, holds a GPU that a driver of the kernel should.
fn of_other_holder(gpu: &Gpu, wanted: &str) -> (State, String) {
    match &gpu.driver {
        Seen::Got(driver) => (
            State::Unknown,
            format!("{driver} holds it instead of {wanted}"),
        ),
        Seen::Absent => (
            State::Missing,
            format!("no driver holds it: {wanted} should"),
        ),
        other => (
            State::Unknown,
            format!("who holds it is not known: {}", other.why()),
        ),
    }
}

fn nvidia_state(gpu: &Gpu, view: &View, tables: &Tables) -> (State, String) {
    if view.is_tegra() {
        let says = "part of a Tegra chip: its driver comes with NVIDIA's JetPack alone";
        return (State::Elsewhere, says.to_owned());
    }
    let version = view.nvidia_driver_version().map(|(version, _)| version);
    let named = version.map_or_else(String::new, |version| format!(" {version}"));
    // An answer about a GPU that another driver holds contradicts what was seen.
    let may_be_nvidias =
        view.wsl().is_some() || gpu.driver.got().is_none_or(|driver| driver == "nvidia");
    if view.nvml_reaches(gpu) && may_be_nvidias {
        return (
            State::Right,
            match view.wsl() {
                Some(_) => "the driver of Windows serves it, and NVML answers".to_owned(),
                None => format!("NVIDIA's driver{named} holds it, and NVML answers"),
            },
        );
    }
    if view.wsl().is_some() {
        return match &view.facts.nvml {
            Seen::Unasked(_) => (
                State::Held,
                "it is seen through Windows; its library was not asked".to_owned(),
            ),
            Seen::Failed(failure) if !is_an_answer(failure) => (
                State::Unknown,
                format!("it is seen through Windows; NVIDIA's library: {failure}"),
            ),
            _ => (
                State::Unfinished,
                "it is seen through Windows, and NVIDIA's library does not answer".to_owned(),
            ),
        };
    }
    let takes = version.map(|version| (version, view.nvidia_driver_takes(gpu, version, tables)));
    let last = takes.and_then(|(version, takes)| match takes {
        Takes::No(last) => Some((version, last)),
        _ => None,
    });
    let wrong = last
        .map(|(version, last)| {
            format!(
                "NVIDIA's driver {version} does not take it: {last} was the last branch that did"
            )
        })
        .or_else(|| too_old(gpu, version, tables))
        .or_else(|| wrong_flavour(gpu, view, tables));
    match &gpu.driver {
        Seen::Got(driver) if driver == "nvidia" => match (wrong, &view.facts.nvml) {
            (Some(wrong), _) => (State::Wrong, wrong),
            (None, Seen::Unasked(_)) => (
                State::Held,
                format!("NVIDIA's driver{named} holds it; its library was not asked"),
            ),
            (None, Seen::Failed(failure)) if !is_an_answer(failure) => (
                State::Unknown,
                format!("NVIDIA's driver{named} holds it; its library: {failure}"),
            ),
            (None, _) if gpu.asleep == Some(true) => (
                State::Held,
                format!("NVIDIA's driver{named} holds it; it sleeps and was not woken"),
            ),
            (None, _) => (
                State::Unfinished,
                format!("NVIDIA's driver{named} holds it, and NVML does not answer for it"),
            ),
        },
        Seen::Got(_) | Seen::Absent => {
            let holder = gpu.driver.got().map_or_else(
                || "no driver holds it".to_owned(),
                |driver| format!("{driver} holds it"),
            );
            if view.in_container() {
                return (
                    State::Missing,
                    format!("{holder} on the host: a driver there is what counts"),
                );
            }
            let last = last
                .map(|(_, last)| last)
                .or_else(|| last_branch(gpu, tables));
            if view.nvidia_driver_serves_others(gpu, last) && wrong.is_some() {
                return (
                    State::Elsewhere,
                    format!(
                        "{holder}; the driver here serves other cards and does not take this one, and a system loads one driver: leave it as it is"
                    ),
                );
            }
            match (view.nvidia_driver_installed(), wrong) {
                (Seen::Absent, _) => (
                    State::Missing,
                    match gpu.driver.got().map(String::as_str) {
                        Some(driver @ ("nouveau" | "nova_core")) => format!(
                            "{driver} holds it, which shows pictures and has no CUDA; NVIDIA's driver is not installed"
                        ),
                        _ => format!("{holder}, and NVIDIA's driver is not installed"),
                    },
                ),
                (Seen::Got(_), Some(wrong)) => (State::Wrong, format!("{holder}; {wrong}")),
                (Seen::Got(_), None) if gpu.target.is_none() => (
                    State::Unknown,
                    format!(
                        "{holder}; whether NVIDIA's driver{named} takes it is in no table here"
                    ),
                ),
                (Seen::Got(_), None) => (
                    State::Unfinished,
                    format!("{holder}, though NVIDIA's driver{named} is installed"),
                ),
                (other, _) => (
                    State::Unknown,
                    format!(
                        "{holder}; whether NVIDIA's driver is installed: {}",
                        other.map(|_| ()).why()
                    ),
                ),
            }
        }
        other => (
            State::Unknown,
            format!("who holds it is not known: {}", other.why()),
        ),
    }
}

/// NVML itself refused, by an error of its own; else it is not known what it would say.
fn is_an_answer(failure: &Failure) -> bool {
    match failure {
        Failure::Error { what } => {
            let is_letter = |c: char| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit();
            what.len() > 4 && what.contains('_') && what.chars().all(is_letter)
                || what.starts_with("not loaded")
        }
        _ => false,
    }
}

fn too_old(gpu: &Gpu, version: Option<&str>, tables: &Tables) -> Option<String> {
    let version = version?;
    let branch = Version::parse(version)?.major()?;
    let first = first_branch(gpu, tables)?;
    (branch < first).then(|| {
        format!("NVIDIA's driver {version} is too old for it: {first} was the first branch")
    })
}

fn wrong_flavour(gpu: &Gpu, view: &View, tables: &Tables) -> Option<String> {
    let says = match view.nvidia_misfit(gpu, tables)? {
        false => "NVIDIA's module is the proprietary one, and this GPU needs the open one",
        true => "NVIDIA's module is the open one, which cannot run this GPU",
    };
    Some(says.to_owned())
}

fn amd_state(gpu: &Gpu, view: &View) -> (State, String) {
    if view.wsl().is_some() {
        let says = "the driver of Windows serves it";
        return (State::Held, says.to_owned());
    }
    match view.amdgpu_ground(gpu) {
        AmdgpuGround::Holds => {
            let origin = match gpu.flavour.as_deref() {
                Some("dkms") => "amdgpu of AMD's packages holds it",
                _ => "amdgpu of the kernel holds it",
            };
            match &view.facts.rocm_smi {
                Seen::Failed(failure @ (Failure::Crashed { .. } | Failure::TimedOut { .. })) => {
                    (State::Held, format!("{origin}; ROCm SMI: {failure}"))
                }
                _ => (State::Right, origin.to_owned()),
            }
        }
        AmdgpuGround::Other("radeon") => (
            State::Missing,
            "the older driver radeon holds it, which shows pictures and has no Vulkan".to_owned(),
        ),
        AmdgpuGround::Other(_) | AmdgpuGround::Free | AmdgpuGround::Unknown(_) => {
            of_other_holder(gpu, "amdgpu")
        }
        AmdgpuGround::NotHere => match gpu.driver.got() {
            Some(driver) => (
                State::Elsewhere,
                format!("{driver} holds it, the driver for chips of its age"),
            ),
            None => (
                State::Elsewhere,
                "no driver holds it, and none of today would compute on it".to_owned(),
            ),
        },
    }
}

/// The branch of NVIDIA's driver that runs, or that the plan for this release brings.
pub(super) fn branch(gpu: &Gpu, state: State, view: &View, tables: &Tables) -> u64 {
    let running = || {
        let (version, _) = view.nvidia_driver_version()?;
        Version::parse(version)?.major()
    };
    let kept = match state {
        State::Right | State::Held | State::Unfinished => running(),
        _ => None,
    };
    kept.unwrap_or_else(|| {
        let last = last_branch(gpu, tables).unwrap_or(u64::MAX);
        let here = match view.debian_branch() {
            Some(branch) if first_branch(gpu, tables).is_none_or(|first| first <= branch) => branch,
            _ => NEWEST,
        };
        here.min(last)
    })
}

/// The plans for all drivers.
pub(super) fn plans(
    gpus: &[(&Gpu, State, String)],
    view: &View,
    tables: &Tables,
    purpose: Option<Purpose>,
) -> Vec<Plan> {
    let mut plans = Vec::new();
    plans.extend(nvidia(gpus, view, tables));
    plans.extend(amd_driver(gpus, view));
    plans.extend(intel_driver(gpus, view));
    if is_wanted(Stack::Rocm, view, purpose) {
        plans.extend(rocm(gpus, view, tables, purpose.is_some()));
    }
    if is_wanted(Stack::LevelZero, view, purpose) {
        plans.extend(level_zero(gpus, view, purpose.is_some()));
    }
    if purpose == Some(Purpose::Pytorch) {
        let only = gpus.len() == 1;
        plans.extend(
            gpus.iter()
                .filter_map(|gpu| pytorch(gpu, only, view, tables)),
        );
    }
    if plans.is_empty() && gpus.is_empty() && view.wsl().is_some() {
        plans.extend(wsl_without_gpu(view));
    }
    plans
}

fn plan(title: impl Into<String>, gpus: &[&Gpu], steps: Vec<Step>) -> Option<Plan> {
    if steps.is_empty() {
        return None;
    }
    Some(Plan {
        title: title.into(),
        gpus: gpus.iter().map(|gpu| gpu.key.clone()).collect(),
        confirm: steps.iter().find_map(|step| step.confirm.clone()),
        steps,
    })
}

fn of_vendor<'g>(
    gpus: &[(&'g Gpu, State, String)],
    vendor: Vendor,
    states: &[State],
) -> Vec<&'g Gpu> {
    gpus.iter()
        .filter(|(gpu, state, _)| gpu.vendor == vendor && states.contains(state))
        .map(|(gpu, ..)| *gpu)
        .collect()
}

fn wsl_without_gpu(view: &View) -> Option<Plan> {
    let recipe = match view.wsl() {
        Some(1) => "wsl-set-version-2",
        _ if view.wsl_gpu_is_off() => "wsl-enable-gpu",
        _ => "wsl-windows-driver",
    };
    let steps = step_of(view, &FixCall::new(recipe)).into_iter().collect();
    plan("a GPU of Windows in WSL", &[], steps)
}

fn nvidia(gpus: &[(&Gpu, State, String)], view: &View, tables: &Tables) -> Option<Plan> {
    use State::{Held, Missing, Right, Unfinished, Unknown, Wrong};
    let to_mend = of_vendor(gpus, Vendor::Nvidia, &[Missing, Wrong, Unfinished]);
    if to_mend.is_empty() {
        return None;
    }
    let title = "NVIDIA's driver";
    if view.wsl().is_some() {
        return wsl_without_gpu(view).map(|plan| Plan {
            title: title.to_owned(),
            gpus: to_mend.iter().map(|gpu| gpu.key.clone()).collect(),
            ..plan
        });
    }
    if matches!(view.driver_ground(), DriverGround::Host) {
        let steps = step_of(view, &FixCall::new("driver-on-host"));
        return plan(title, &to_mend, steps.into_iter().collect());
    }
    let has = |wanted: State| {
        gpus.iter()
            .any(|(gpu, state, _)| gpu.vendor == Vendor::Nvidia && *state == wanted)
    };
    if !has(Missing) && !has(Wrong) {
        return plan(title, &to_mend, unfinished(&to_mend, view, tables));
    }
    // A system loads one driver, so it must fit what works already as well.
    let all = of_vendor(
        gpus,
        Vendor::Nvidia,
        &[Missing, Wrong, Unfinished, Right, Held, Unknown],
    );
    let mut steps = Vec::new();
    let is_family = |name: &str| view.is_of_family(name);
    let calls = view.nvidia_install_calls(&all, tables);
    if calls.len() > 1 && !is_family("ubuntu") {
        steps.push(
            words("Find out the generation of this GPU before a driver is installed: Turing and newer take the open kernel module, Maxwell to Volta the proprietary one of branch 580, older ones a legacy branch")
                .because("the tables do not know this GPU"),
        );
        return plan(title, &all, steps);
    }
    if view.hypervisor().is_some() && to_mend.iter().any(|gpu| gpu.data_centre) {
        steps.push(words(
            "Ask the provider of this virtual machine first: where it lends a part of a GPU (vGPU), its GRID driver is the one to install, and the steps below are for a whole GPU",
        ));
    }
    for call in calls.iter().take(1) {
        steps.extend(for_release(call, &all, view, tables));
    }
    let installs = steps.iter().any(|step| step.reboots);
    if has(Wrong) && installs && !is_family("nixos") && !is_family("ostree") {
        let away = "Take the driver that is installed now away, with the tool that installed it: two drivers get in each other's way";
        steps.insert(0, words(away));
    }
    finish(&mut steps, view);
    plan(title, &all, steps)
}

/// The driver is installed and does not run the GPU: its module may be missing, or something else is wrong.
fn unfinished(gpus: &[&Gpu], view: &View, tables: &Tables) -> Vec<Step> {
    let mut steps = Vec::new();
    let missing = matches!(view.loaded("nvidia"), Loaded::No(_))
        && view.module_files("nvidia").is_absent()
        && view.driver_ground() == DriverGround::Own;
    if let Some(release) = view.kernel_release().got().filter(|_| missing) {
        let calls = view.nvidia_module_fixes(release, gpus, tables);
        // Without a builder that is the driver itself, which the report tells apart better.
        let is_install = |call: &FixCall| call.recipe.starts_with("install-nvidia-driver");
        if let Some(step) = calls
            .first()
            .filter(|call| !is_install(call))
            .and_then(|call| step_of(view, call))
        {
            steps.push(step.because(format!(
                "the driver has no module for the running kernel {release}"
            )));
            finish(&mut steps, view);
            return steps;
        }
    }
    steps.push(
        words("Run `gpucheck`: it says what keeps the installed driver from working, and how to mend that")
            .because("installing a driver once more mends little"),
    );
    steps
}

/// The steps of a recipe, as the release of this distribution needs them.
fn for_release(call: &FixCall, gpus: &[&Gpu], view: &View, tables: &Tables) -> Vec<Step> {
    let step = |call: &FixCall| step_of(view, call);
    let first = gpus
        .iter()
        .filter(|gpu| legacy_branch(gpu, tables).is_none())
        .filter_map(|gpu| first_branch(gpu, tables))
        .max();
    let is_family = |name: &str| view.is_of_family(name);
    let release = view.os_field("VERSION_ID");
    let open = call.recipe == "install-nvidia-driver-open";
    // Of all recipes only the one for legacy drivers names a branch.
    let legacy = call.arguments.contains_key("branch");
    let is_470 = call
        .arguments
        .get("branch")
        .is_some_and(|branch| branch == "470");
    if let Some((call, why)) = view.debian_instead(call, gpus, tables) {
        return step(&call)
            .map(|step| step.because(why))
            .into_iter()
            .collect();
    }
    if is_family("debian") && !is_family("ubuntu") {
        let own = view.debian_branch();
        if legacy && is_470 && own == Some(470) {
            let why = "branch 470 is the last one for this GPU, and no longer maintained by NVIDIA";
            return step(&FixCall::new("install-nvidia-driver-of-release"))
                .map(|step| step.because(why))
                .into_iter()
                .collect();
        }
    }
    let mut steps = Vec::new();
    let major = release.split('.').next().unwrap_or_default();
    let has_streams = matches!(major, "8" | "9") || view.os_field("ID") == "amzn";
    if is_family("rhel") && open && has_streams {
        steps.extend(step(&FixCall::new("enable-nvidia-open-stream")));
    }
    let why = if legacy {
        Some(end_of_road(gpus, tables))
    } else if call.recipe == "install-nvidia-driver-proprietary" {
        Some(format!(
            "a GPU here is of a generation that the open kernel module cannot run, and {LAST_PROPRIETARY} is the last branch with the other one"
        ))
    } else if open && gpus.iter().any(|gpu| gpu.needs_open_module() == Some(true)) {
        first.map(|first| {
            format!("this GPU needs branch {first} or later and the open kernel module")
        })
    } else {
        None
    };
    // Distributions that package it, as far as is known.
    let has_470 = ["ubuntu", "fedora", "arch"].into_iter().any(is_family)
        || (release == "12" && view.debian_branch().is_some());
    let call = match legacy && is_470 && has_470 {
        true => &FixCall::new("install-nvidia-driver-470"),
        false => call,
    };
    steps.extend(step(call).map(|step| Step { why, ..step }));
    steps
}

/// What is left for a card whose last branch is no longer made.
fn end_of_road(gpus: &[&Gpu], tables: &Tables) -> String {
    let oldest = gpus
        .iter()
        .filter_map(|gpu| legacy_branch(gpu, tables))
        .min();
    format!(
        "the end of the road: branch {} was the last one for this generation, so there are no fixes, and new kernels leave it behind",
        oldest.map_or_else(|| "that is named".to_owned(), |branch| branch.to_string())
    )
}

/// Secure Boot and the restart, behind an installation.
fn finish(steps: &mut Vec<Step>, view: &View) {
    let installs = steps.iter().any(|step| step.reboots);
    let security = view.facts.security.got();
    let enforced = security.is_some_and(|security| {
        security.secure_boot == Seen::Got(true) && security.shim_validation_off != Seen::Got(true)
    });
    // Advice alone brings no module.
    let brings_module = installs || steps.iter().any(|step| !step.commands.is_empty());
    if enforced && brings_module {
        let no_shim = security.is_some_and(|security| security.shim == Seen::Got(false));
        let recipe = if no_shim {
            "start-through-shim"
        } else {
            "enrol-module-key"
        };
        let why = match view.families().first().map(String::as_str) {
            Some("ubuntu") => {
                "Secure Boot is on: the kernel takes signed modules alone. Ready-made ones of Ubuntu (`linux-modules-nvidia-...`) are signed already and need no key, those that DKMS builds do"
            }
            _ => {
                "Secure Boot is on: the kernel takes only modules that are signed with a key it knows"
            }
        };
        let step = step_of(view, &FixCall::new(recipe).with("module", "nvidia"));
        steps.extend(step.map(|step| Step {
            confirm: None,
            ..step.because(why)
        }));
    }
    if installs {
        steps.extend(step_of(view, &FixCall::new("reboot")));
    }
}

fn amd_driver(gpus: &[(&Gpu, State, String)], view: &View) -> Option<Plan> {
    let to_mend = of_vendor(gpus, Vendor::Amd, &[State::Missing, State::Wrong]);
    let gpu = *to_mend.first()?;
    let title = "AMD's driver";
    if matches!(view.driver_ground(), DriverGround::Host) {
        let steps = step_of(view, &FixCall::new("driver-on-host"));
        return plan(title, &to_mend, steps.into_iter().collect());
    }
    let radeon = gpu.driver.got().is_some_and(|driver| driver == "radeon");
    let release = view.kernel_release().got().copied().unwrap_or_default();
    let first = view
        .first_kernel(gpu)
        // Others have newer drivers than their number says.
        .filter(|_| !carries_drivers_back(release) && view.extra_module("amdgpu").got().is_none());
    let too_old = first
        .as_ref()
        .filter(|first| Version::parse(release).is_some_and(|running| running < first.value));
    let no_module = view.module_files("amdgpu").is_absent()
        && matches!(view.loaded("amdgpu"), Loaded::No(_))
        && view.is_built_in("amdgpu") != Seen::Got(true);
    let (call, why) = if let Some((call, why)) = nomodeset(view) {
        (call, Some(why))
    } else if radeon {
        (FixCall::new("amdgpu-instead-of-radeon"), None)
    } else if let Some(first) = too_old {
        let why = format!(
            "the driver is part of the kernel, and Linux {} was the first to know this GPU; {release} runs",
            first.value.text()
        );
        (FixCall::new("newer-kernel"), Some(why))
    } else if no_module {
        let why = format!("the driver is part of the kernel, and {release} came without it");
        let call = FixCall::new("install-amdgpu-module-package").with("kernel", release);
        (call, Some(why))
    } else if matches!(view.loaded("amdgpu"), Loaded::Yes(_)) {
        let step = words("Run `gpucheck`: it says what keeps amdgpu from the GPU")
            .because("the driver is part of the kernel and loaded, so there is nothing to install");
        return plan(title, &to_mend, vec![step]);
    } else {
        let why = "the driver is part of the kernel, so there is nothing to install; where `gpucheck` names a reason, such as a blacklist, that comes first";
        (FixCall::new("load-amdgpu-module"), Some(why.to_owned()))
    };
    plan(title, &to_mend, with_restart(&call, why, view))
}

/// The step of a recipe, and the restart where it takes one.
fn with_restart(call: &FixCall, why: Option<String>, view: &View) -> Vec<Step> {
    let Some(step) = step_of(view, call) else {
        return Vec::new();
    };
    let restart = match step.reboots {
        true => step_of(view, &FixCall::new("reboot")),
        false => None,
    };
    [Step { why, ..step }].into_iter().chain(restart).collect()
}

/// Drivers of GPUs stay away where this word is on the kernel's command line.
fn nomodeset(view: &View) -> Option<(FixCall, String)> {
    let words = view.kernel_words().into_got()?;
    words.iter().any(|word| word == "nomodeset").then(|| {
        (
            FixCall::new("remove-kernel-parameter").with("word", "nomodeset"),
            "`nomodeset` on the kernel's command line keeps the driver from the GPU".to_owned(),
        )
    })
}

fn intel_driver(gpus: &[(&Gpu, State, String)], view: &View) -> Option<Plan> {
    let missing = of_vendor(gpus, Vendor::Intel, &[State::Missing]);
    if missing.is_empty() {
        return None;
    }
    if let Some((call, why)) = nomodeset(view) {
        return plan(
            "Intel's driver",
            &missing,
            with_restart(&call, Some(why), view),
        );
    }
    let step = words("Start a newer kernel of this distribution, with its firmware packages: i915 and xe are part of the kernel")
        .because("no driver holds the GPU; where `gpucheck` names another reason, that comes first");
    plan("Intel's driver", &missing, vec![step])
}

/// ROCm on top of the driver; `asked`: somebody asks for it, else something on the system only shows that it is wanted.
fn rocm(gpus: &[(&Gpu, State, String)], view: &View, tables: &Tables, asked: bool) -> Option<Plan> {
    use State::{Held, Missing, Right};
    let candidates = of_vendor(gpus, Vendor::Amd, &[Right, Held, Missing]);
    let mine: Vec<&Gpu> = candidates
        .into_iter()
        .filter(|gpu| !view.is_spare(gpu))
        .collect();
    let gpu = *mine.first()?;
    let installed = view.rocm_installs().got().is_some();
    let missing = match asked {
        true => !installed,
        false => view.rocm_installs().is_absent() && !brings_its_own(view),
    };
    if view.wsl().is_some() {
        if !missing {
            return None;
        }
        let steps = step_of(view, &FixCall::new("install-rocm-for-wsl"));
        return plan("ROCm", &mine, steps.into_iter().collect());
    }
    let target = gpu.target.as_deref()?;
    let lists = view.rocm_lists(target);
    let listed_now = lists.last().is_some_and(|(_, listed)| *listed);
    let ever = lists.iter().any(|(_, listed)| *listed);
    let mut steps = Vec::new();
    if !listed_now {
        let kernels = Target::of_name(target).map(|target| view.rocblas_for(target));
        if matches!(kernels, Some(Kernels::In(_))) || !(asked || missing) {
            return None;
        }
        let why = match ever {
            true => "the end of the road: newer releases of ROCm have dropped this GPU",
            false => "AMD lists this GPU in no release of ROCm that is known here",
        };
        let call = FixCall::new("compute-without-rocm").with("name", target);
        steps.extend(step_of(view, &call).map(|step| step.because(why)));
        return plan("computing without ROCm", &mine, steps);
    }
    if missing {
        let debian = view.is_of_family("debian");
        let old = matches!(view.os_field("VERSION_ID"), "10" | "11" | "12")
            && view.os_field("ID") == "debian";
        let recipe = match debian && old && !view.in_container() {
            true => "install-rocm-from-amd",
            false => "set-up-rocm",
        };
        let why = newest_rocm(target, view, tables);
        steps.extend(
            step_of(view, &FixCall::new(recipe).with("name", target))
                .map(|step| Step { why, ..step }),
        );
    }
    if let Access::Denied(denial) = view.access("/dev/kfd")
        && let Some(stat) = denial.stat
        && let Some(group) = group_of(stat.gid, view)
    {
        let call = FixCall::new("join-group")
            .with("group", group)
            .with("user", crate::fix::WHO_PASTES);
        steps
            .extend(step_of(view, &call).map(|step| step.because("you may not open /dev/kfd yet")));
    }
    plan("ROCm", &mine, steps)
}

/// Programs that bring ROCm's libraries along.
fn brings_its_own(view: &View) -> bool {
    let software = view.facts.software.got();
    let ollama = software
        .and_then(|software| software.programs.get("ollama"))
        .is_some_and(|path| path.got().is_some());
    let python = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .any(|name| view.variable(name).got().is_some());
    ollama || python
}

fn group_of(gid: u32, view: &View) -> Option<String> {
    let users = view.facts.users.got()?;
    let group = users.groups.got()?.get(&gid)?;
    (gid != 0).then(|| group.name.clone())
}

/// The newest release that AMD lists for both this GPU and this system.
fn newest_rocm(target: &str, view: &View, tables: &Tables) -> Option<String> {
    let name = match view.os_field("ID") {
        "ubuntu" => "Ubuntu",
        "debian" => "Debian",
        "rhel" => "RHEL",
        "rocky" => "Rocky Linux",
        "ol" => "Oracle Linux",
        _ => return None,
    };
    let release = view.os_field("VERSION_ID");
    let system = format!("{name} {release}");
    let fits = |text: &String| {
        let rest = text.strip_prefix(system.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let rows = tables.rows(&kinds::RELEASE);
    let found = rows.iter().rev().find(|row| {
        let listed = row
            .list("targets")
            .is_some_and(|list| list.may_accuse() && list.value.iter().any(|name| name == target));
        let keys = [
            "systems",
            "systems_instinct",
            "systems_radeon",
            "systems_ryzen",
        ];
        listed
            && keys.iter().any(|key| {
                row.list(key)
                    .is_some_and(|list| list.value.iter().any(fits))
            })
    })?;
    Some(format!(
        "ROCm {} is the newest release whose lists have both {target} and {system}",
        found.key(&kinds::RELEASE)
    ))
}

/// `asked`: for PyTorch, whose wheels are meant for cards.
fn level_zero(gpus: &[(&Gpu, State, String)], view: &View, asked: bool) -> Option<Plan> {
    let mut mine = of_vendor(gpus, Vendor::Intel, &[State::Right, State::Missing]);
    mine.retain(|gpu| !asked || gpu.integrated == Some(false));
    if mine.is_empty() || !view.library("libze_intel_gpu.so.1").is_absent() {
        return None;
    }
    let steps = step_of(view, &FixCall::new("set-up-level-zero"));
    plan(
        "Intel's compute runtime",
        &mine,
        steps.into_iter().collect(),
    )
}

/// `only`: there is no other GPU, so that one in a processor counts as well.
fn pytorch(
    (gpu, state, _): &(&Gpu, State, String),
    only: bool,
    view: &View,
    tables: &Tables,
) -> Option<Plan> {
    if *state == State::Elsewhere || view.is_spare(gpu) {
        return None;
    }
    let found = wheel::of(gpu, branch(gpu, *state, view, tables), view.is_x86())?;
    if found.index.is_none() && gpu.integrated == Some(true) && !only {
        return None;
    }
    let step = match found.index {
        Some(index) => {
            step_of(view, &FixCall::new("install-pytorch").with("word", index))?.because(found.text)
        }
        None => words("There is no wheel of PyTorch for this GPU here; programs with a Vulkan backend, such as llama.cpp, may do without")
            .because(found.text),
    };
    plan("PyTorch", &[gpu], vec![step])
}
