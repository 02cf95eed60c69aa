//! A container was given no GPU.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, View, Wanted};

crate::check! {
    /// This container was started without the device nodes of the host's GPUs, or without one that every program needs.
    ///
    /// ## Why it matters
    /// The host's bus shows in a container whatever it was given, and so does the host's driver. Programs reach a GPU through
    /// nodes in `/dev`, and what is not there when the container starts, nothing in it can make.
    ///
    /// ## How it comes about
    /// It was started without `--gpus`, `--device` or what the engine calls it (`not-requested`). `NVIDIA_VISIBLE_DEVICES` says
    /// `void` or `none`, as Kubernetes sets it for pods that ask for no GPU (`visible-devices-void`). Or an AMD GPU came without
    /// one of the two nodes that ROCm opens: `/dev/kfd` and the render node of the GPU (`kfd-not-passed`). Where nothing in
    /// the container asks for a GPU, that is as it should be, and the finding is a note.
    ///
    /// ## How to confirm
    /// `ls /dev/nvidia* /dev/kfd /dev/dri` in the container.
    "container-without-gpu-devices", Container, Error, each Stack, run, later ["apptainer-flag"]
}

const KFD: &str = "/dev/kfd";
const CONTROL: &str = "/dev/nvidiactl";
const VISIBLE: &str = "NVIDIA_VISIBLE_DEVICES";

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    // Under WSL there are no such nodes.
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let gpus: Vec<&Gpu> = view.gpus_of(stack).filter(|gpu| is_driven(gpu)).collect();
    let Some(first) = gpus.first() else {
        return Verdict::NotHere;
    };
    if view.place.is_unknown() {
        return Verdict::cannot_tell(
            format!("whether this is a container: {}", view.place.why()),
            "`ls /.dockerenv /run/.containerenv`",
        );
    }
    if !view.in_container() || is_left_out_on_purpose(stack, &gpus, view) {
        return Verdict::NotHere;
    }
    if let Some(gpu) = gpus.iter().find(|gpu| gpu.passed_in == Some(true)) {
        return match stack {
            Stack::Rocm => without_kfd(gpu, view),
            Stack::Cuda | Stack::LevelZero => Verdict::fine(format!("has the node of {}", gpu.key)),
        };
    }
    let Some(node) = node_of(first, view) else {
        return Verdict::cannot_tell(
            format!("the device node of {}: not known", first.key),
            "`ls -l /dev/nvidia* /dev/dri`",
        );
    };
    let seen = view.node(&node);
    let all_without = gpus.iter().all(|gpu| gpu.passed_in == Some(false));
    if !(all_without && seen.is_absent()) {
        let why = match seen {
            Seen::Got(_) => "is there, and whether the GPU was passed in is not known".to_owned(),
            other => other.map(|_| ()).why(),
        };
        return Verdict::cannot_tell(format!("{node}: {why}"), "`ls -l /dev/nvidia* /dev/dri`");
    }
    let kfd_alone = stack == Stack::Rocm && view.node(KFD).got().is_some();
    let visible = view.variable(VISIBLE).into_got();
    let is_void = |says: &str| matches!(says, "" | "void" | "none");
    let (title, cause) = match visible.filter(|says| stack == Stack::Cuda && is_void(says)) {
        _ if kfd_alone => (
            "the container has /dev/kfd and the render node of no GPU: start it with --device=/dev/dri",
            "kfd-not-passed",
        ),
        Some(_) => (
            "the container was told to have no NVIDIA GPU",
            "visible-devices-void",
        ),
        None => (not_requested(stack), "not-requested"),
    };
    let mut finding = in_container(Finding::new(title).cause(cause), view)
        .saw(&node, "does not exist")
        .saw_answer(first.driver_source.as_str(), &first.driver);
    if kfd_alone {
        finding = finding.saw(KFD, "is there");
    }
    if let (Some(says), Stack::Cuda) = (visible, stack) {
        let says = if says.is_empty() { "is empty" } else { says };
        finding = finding.saw(VISIBLE, says);
    }
    finding
        .why("The host drives the GPU, and programs in here have no way to it")
        .fix(start_anew(stack))
        .into()
}

/// Nothing in here asks for this stack, and the container has another GPU, has this one for the display, or could have but that
/// of the processor.
fn is_left_out_on_purpose(stack: Stack, gpus: &[&Gpu], view: &View) -> bool {
    !matches!(view.wanted(stack), Wanted::Yes(_))
        && (view.gpus.iter().any(|gpu| gpu.passed_in == Some(true))
            || gpus.iter().all(|gpu| gpu.integrated == Some(true)))
}

/// A GPU that the host could lend.
fn is_driven(gpu: &Gpu) -> bool {
    let driver = gpu.driver.got().map(String::as_str);
    gpu.is_on_bus() && matches!(driver, Some("nvidia" | "amdgpu" | "i915" | "xe"))
}

/// The node without which no program gets to a GPU.
fn node_of(gpu: &Gpu, view: &View) -> Option<String> {
    match (gpu.is_held_by("nvidia"), gpu.nvidia_minor) {
        (true, Some(minor)) if view.node(CONTROL).got().is_some() => {
            Some(format!("/dev/nvidia{minor}"))
        }
        (true, _) => Some(CONTROL.to_owned()),
        (false, _) => gpu
            .render
            .as_ref()
            .map(|render| format!("/dev/dri/{render}")),
    }
}

/// ROCm opens the node of the compute driver besides that of the GPU.
fn without_kfd(gpu: &Gpu, view: &View) -> Verdict {
    match view.node(KFD) {
        Seen::Got(_) => Verdict::fine(format!("has {KFD} and the node of {}", gpu.key)),
        Seen::Absent if view.facts.kfd.is_absent() => Verdict::cannot_tell(
            format!("{KFD} does not exist, and /sys/class/kfd neither"),
            "`ls /dev/kfd /sys/class/kfd` on the host",
        ),
        Seen::Absent => {
            let node = gpu.render.as_deref().unwrap_or("renderD128");
            in_container(
                Finding::new("the container has no /dev/kfd: start it with --device=/dev/kfd")
                    .cause("kfd-not-passed"),
                view,
            )
            .saw(KFD, "does not exist")
            .saw(format!("/dev/dri/{node}"), "is there")
            .why("Every ROCm program opens this node first; display, video and Vulkan do without")
            .fix(start_anew(Stack::Rocm))
            .into()
        }
        other => Verdict::cannot_tell(
            format!("{KFD}: {}", other.map(|_| ()).why()),
            "`ls -l /dev/kfd`",
        ),
    }
}

fn not_requested(stack: Stack) -> &'static str {
    match stack {
        Stack::Cuda => "the container was given no NVIDIA GPU: start it with --gpus all",
        Stack::Rocm => {
            "the container was given no AMD GPU: start it with --device=/dev/kfd --device=/dev/dri"
        }
        Stack::LevelZero => "the container was given no Intel GPU: start it with --device=/dev/dri",
    }
}

fn in_container(finding: Finding, view: &View) -> Finding {
    finding.saw(
        view.container_mark().unwrap_or("/proc/1/cgroup"),
        "this is a container",
    )
}

fn start_anew(stack: Stack) -> FixCall {
    FixCall::new(match stack {
        Stack::Cuda => "start-container-with-nvidia",
        Stack::Rocm => "start-container-with-amd",
        Stack::LevelZero => "start-container-with-dri",
    })
}
