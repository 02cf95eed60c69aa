//! A GPU is in MIG mode and not divided: nobody can compute on it.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, NvmlGround, View};

crate::check! {
    /// A GPU is in MIG mode, and no part of it was made.
    ///
    /// ## Why it matters
    /// In MIG mode programs compute on parts of a GPU and never on the whole. While there is none CUDA says that there is no
    /// device, although `nvidia-smi` lists the GPU.
    ///
    /// ## How it comes about
    /// The mode lasts over a restart, the parts do not: something (`nvidia-mig-manager`, a script) must make them again each
    /// time. Or somebody switched the mode on and stopped there.
    ///
    /// ## How to confirm
    /// `nvidia-smi -L` shows parts below the GPU, `nvidia-smi mig -lgi` lists them (as root).
    "nvidia-mig-without-instances", Runtime, Error, each Gpu, run
}

const WOULD_TELL: &str = "`nvidia-smi -L`";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let device = match view.nvml_ground(gpu) {
        NvmlGround::Says(device) => device,
        // Few others can be divided, none of them by itself.
        NvmlGround::Unknown(why) if gpu.data_centre => {
            return Verdict::cannot_tell(why, WOULD_TELL);
        }
        _ => return Verdict::NotHere,
    };
    let mode = match &device.mig_mode.0 {
        Seen::Got(mode) => mode,
        unknown if unknown.says("NOT_SUPPORTED") => return Verdict::NotHere,
        unknown => {
            // What was recorded before this was asked says nothing of it.
            return match unknown {
                Seen::Failed(_) => {
                    Verdict::cannot_tell(format!("MIG mode: {}", unknown.why()), WOULD_TELL)
                }
                _ => Verdict::NotHere,
            };
        }
    };
    if mode != "enabled" {
        return Verdict::fine("it is not in MIG mode");
    }
    match device.mig_instances.got() {
        Some(0) => {}
        Some(count) => return Verdict::fine(format!("it is divided into {count}")),
        None => {
            return Verdict::cannot_tell(
                format!(
                    "the parts of a GPU in MIG mode: {}",
                    device.mig_instances.why()
                ),
                WOULD_TELL,
            );
        }
    }
    // NVML shows only the parts that this user may open.
    if let Some(why) = hidden_parts(view) {
        return Verdict::cannot_tell(why, "`sudo nvidia-smi mig -lgi`");
    }
    let finding = Finding::new("this GPU is in MIG mode and has no parts to compute on")
        .saw("nvmlDeviceGetMigMode()", "enabled")
        .saw("nvmlDeviceGetMigDeviceHandleByIndex()", "no MIG device")
        .why("CUDA finds only the parts of a GPU in MIG mode, and there is none")
        .fix(FixCall::new("create-mig-instances").with("name", device.index.to_string()));
    match device.mig_mode_pending.got() {
        Some(pending) if pending != mode => finding.saw(
            "nvmlDeviceGetMigMode()",
            format!("{pending} from the next reset on"),
        ),
        _ => finding,
    }
    .into()
}

/// Why there may be parts that NVML does not show.
fn hidden_parts(view: &View) -> Option<String> {
    if let Some(variable) = view.scheduler_job() {
        return Some(format!("{variable} is set: a job sees only its own parts"));
    }
    if view.in_container() {
        return Some("a container sees only the parts that it was given".to_owned());
    }
    // The first two are for making and watching parts.
    let nodes = view.facts.device_nodes.got()?;
    let node = nodes.dev.items.keys().find(|path| {
        path.strip_prefix("/dev/nvidia-caps/nvidia-cap")
            .and_then(|number| number.parse::<u32>().ok())
            .is_some_and(|number| number > 2)
    })?;
    Some(format!("{node} belongs to a part of some GPU"))
}
