//! ROCm shows programs the processor's own GPU beside a card.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::rocm::{Kernels, RocmAgent};
use crate::view::{Gpu, Stack, View};

crate::check! {
    /// ROCm shows programs the GPU inside the processor beside the card that is meant for computing.
    ///
    /// ## Why it matters
    /// Programs try every GPU that ROCm shows, or take the first. The small GPU of a desktop processor is slow and has little
    /// memory, and mostly no kernels were compiled for it: then the program crashes although the card works.
    ///
    /// ## How it comes about
    /// Desktop processors of AMD have such a GPU since Ryzen 7000, and amdgpu gives it to ROCm like any other. Which number it
    /// has depends on the machine.
    ///
    /// ## How to confirm
    /// `rocminfo | grep -E 'gfx|Marketing'` lists the GPUs in their order. `ROCR_VISIBLE_DEVICES` with the number of the card,
    /// counted from 0 among the GPUs, leaves that one alone.
    "igpu-visible-to-rocm", Runtime, Warning, each Stack, run
}

/// GPUs of processors that are meant for computing themselves: of Strix Halo, with the memory of the whole machine.
const LARGE: &[&str] = &["gfx1151"];

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.facts.kfd.is_absent() {
        return Verdict::NotHere;
    }
    let agents = &view.rocm_agents;
    let gpu_of = |agent: &RocmAgent| {
        let key = agent.gpu.as_ref()?;
        view.gpus_of(stack).find(|gpu| gpu.key == *key)
    };
    let known: Vec<(&RocmAgent, Option<&Gpu>)> =
        agents.iter().map(|agent| (agent, gpu_of(agent))).collect();
    let is = |gpu: &Option<&Gpu>, integrated: bool| {
        gpu.is_some_and(|gpu| gpu.integrated == Some(integrated))
    };
    let all_of = |integrated: bool| known.iter().all(|(_, gpu)| is(gpu, integrated));
    if let Some(why) = unknown(&known, view) {
        return Verdict::cannot_tell(why, "`rocminfo`");
    }
    if all_of(true) || all_of(false) {
        return Verdict::NotHere;
    }
    let shown: Vec<_> = known
        .iter()
        .filter(|(agent, _)| agent.shown != Some(false))
        .collect();
    let card = shown.iter().any(|(_, gpu)| is(gpu, false));
    let spare = shown.iter().find_map(|(agent, gpu)| {
        let large = agent
            .native
            .is_some_and(|native| LARGE.contains(&native.name().as_str()));
        gpu.filter(|gpu| gpu.integrated == Some(true) && !large)
            .map(|gpu| (*agent, gpu))
    });
    let Some((agent, gpu)) = spare.filter(|_| card) else {
        return Verdict::fine("programs are not shown a small GPU of the processor beside a card");
    };
    if known.iter().any(|(agent, _)| agent.shown.is_none()) {
        return Verdict::cannot_tell(
            "which GPUs the variables leave is not known",
            "`rocminfo` where the program fails",
        );
    }
    found(agent, gpu, &known, view)
}

/// Why it is not known which GPUs the runtime finds, or of what kind they are.
fn unknown(known: &[(&RocmAgent, Option<&Gpu>)], view: &View) -> Option<String> {
    let whole = view.rocm_agents_whole();
    if whole.got().is_none() {
        return Some(view.why_rocm_agents_are_unknown());
    }
    let kind =
        |(_, gpu): &&(&RocmAgent, Option<&Gpu>)| gpu.is_none_or(|gpu| gpu.integrated.is_none());
    let (agent, _) = known.iter().find(kind).filter(|_| known.len() > 1)?;
    Some(format!(
        "whether the GPU of {} is part of the processor is not known",
        agent.properties()
    ))
}

fn found(
    agent: &RocmAgent,
    gpu: &Gpu,
    known: &[(&RocmAgent, Option<&Gpu>)],
    view: &View,
) -> Verdict {
    let target = agent.effective();
    let name = target.map_or("a target that is not known".to_owned(), |target| {
        target.name()
    });
    let kernels = match target {
        Some(target) => view.rocblas_for(target),
        None => Kernels::Unknown("its target is not known".to_owned()),
    };
    let cards: Vec<String> = known
        .iter()
        .enumerate()
        .filter(|(_, (_, gpu))| gpu.is_some_and(|gpu| gpu.integrated == Some(false)))
        .map(|(place, _)| place.to_string())
        .collect();
    let title = format!("ROCm shows programs the GPU of the processor ({name}) beside the card");
    let mut finding = Finding::new(title).only_gpus(vec![gpu.key.clone()]);
    for (agent, gpu) in known {
        let what = match gpu {
            Some(gpu) if gpu.integrated == Some(true) => "part of the processor",
            _ => "a card",
        };
        finding = finding.saw(
            agent.properties(),
            format!("{}, {what}", agent.native_words()),
        );
    }
    finding = match kernels {
        Kernels::Lacking(installs) => {
            for (root, targets) in installs {
                finding = finding.saw(root, format!("rocBLAS has kernels for {targets}"));
            }
            finding
                .severity(Severity::Error)
                .why("Programs that try every GPU crash on this one: rocBLAS has no kernels for it")
        }
        Kernels::In(root) => finding
            .saw(root, format!("rocBLAS has kernels for {name}"))
            .severity(Severity::Note)
            .why("Programs that take the first GPU, or all, may compute on this slow one"),
        // What programs bring along is not looked at.
        Kernels::NoLibrary => finding
            .severity(Severity::Note)
            .why("Programs that try every GPU may take this slow one; those that bring libraries without kernels for it crash"),
        Kernels::Unknown(_) => finding
            .why("Programs that try every GPU may crash on this one: for most GPUs of processors nothing was compiled"),
    };
    for name in ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"] {
        if let Seen::Got(value) = view.variable(name) {
            finding = finding.saw(name, value);
        }
    }
    finding
        .fix(FixCall::new("hide-igpu").with("word", cards.join(",")))
        .into()
}
