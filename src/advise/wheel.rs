//! Which wheel of PyTorch runs on a GPU with a driver. By the lists of targets that the wheels hold and the releases that
//! still have them: pytorch/pytorch `.ci/manywheel`, RELEASE.md, and wheels of 2.9 to 2.15 that were looked into.

use crate::version::{Version, compute_capability};
use crate::view::{Gpu, Vendor};

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wheel {
    /// The last part of the index's address; None: there is no wheel.
    pub index: Option<&'static str>,
    /// In words.
    pub text: String,
}

/// Targets of AMD that the wheels for ROCm 7.2 hold code for.
const ROCM: [&str; 15] = [
    "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1101",
    "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201",
];
/// Capabilities of Jetson boards, for which NVIDIA builds wheels of its own.
const JETSON: [(u64, u64); 5] = [(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)];

fn wheel(index: &'static str, text: impl Into<String>) -> Wheel {
    Wheel {
        index: Some(index),
        text: text.into(),
    }
}

fn none(text: impl Into<String>) -> Wheel {
    Wheel {
        index: None,
        text: text.into(),
    }
}

/// The wheel for a GPU; `branch` of NVIDIA's driver, `x86`: the processor is no other. None: nothing is known.
pub(super) fn of(gpu: &Gpu, branch: u64, x86: bool) -> Option<Wheel> {
    match gpu.vendor {
        Vendor::Nvidia => of_nvidia(gpu.target.as_deref()?, branch, x86),
        Vendor::Amd => of_amd(gpu, x86),
        // No source says for which of the older ones it works.
        Vendor::Intel if gpu.integrated == Some(false) && x86 => Some(wheel(
            "xpu",
            "the wheels for Intel's GPUs (index `xpu`), for Arc and newer",
        )),
        Vendor::Intel | Vendor::Other => None,
    }
}

fn of_nvidia(target: &str, branch: u64, x86: bool) -> Option<Wheel> {
    let capability = Version::parse(&compute_capability(target)?)?;
    let mut numbers = capability.numbers();
    let at = (numbers.next()?, numbers.next().unwrap_or_default());
    if JETSON.contains(&at) {
        return Some(none("NVIDIA's own wheels for Jetson boards"));
    }
    if at < (5, 0) {
        return Some(none(
            "no wheel of a release that is still made has code for this GPU",
        ));
    }
    if at > (12, 1) || at == (10, 7) {
        return None;
    }
    let newest = || {
        wheel(
            "cu130",
            "wheels for CUDA 13.0 or newer (index `cu130`), with driver 580 or later",
        )
    };
    if !x86 {
        return (at >= (8, 0) && branch >= 580).then(newest);
    }
    Some(match at {
        _ if at < (7, 5) && branch >= 525 => wheel(
            "cu126",
            "wheels for CUDA 12.6 (index `cu126`), which end with PyTorch 2.14",
        ),
        _ if at >= (7, 5) && branch >= 580 => newest(),
        _ if at >= (10, 0) && branch >= 570 => wheel(
            "cu128",
            "wheels for CUDA 12.8 (index `cu128`), which end with PyTorch 2.11; with driver 580 or later those for CUDA 13.0",
        ),
        _ if at >= (10, 0) => none("wheels for CUDA 12.8 or newer, which need a newer driver"),
        _ if at >= (7, 5) && branch >= 525 => wheel(
            "cu126",
            "wheels for CUDA 12.6 (index `cu126`), as newer ones need driver 580; they end with PyTorch 2.14",
        ),
        _ => none(format!(
            "no wheel of today: they need driver 525 or later, and this one is of branch {branch}"
        )),
    })
}

fn of_amd(gpu: &Gpu, x86: bool) -> Option<Wheel> {
    let target = gpu.target.as_deref()?;
    if !x86 {
        return None;
    }
    Some(match ROCM.contains(&target) {
        true => wheel("rocm7.2", "wheels for ROCm 7.2 (index `rocm7.2`)"),
        false => none(format!(
            "PyTorch's own wheels for ROCm have no code for {target}"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(target: &str, branch: u64) -> Option<&'static str> {
        of_nvidia(target, branch, true)?.index
    }

    #[test]
    fn a_wheel_fits_gpu_and_driver() {
        // Maxwell, Pascal and Volta; Kepler has none.
        for target in ["sm_50", "sm_52", "sm_61", "sm_70"] {
            assert_eq!(index(target, 580), Some("cu126"), "{target}");
        }
        assert_eq!(index("sm_35", 470), None);
        assert_eq!(index("sm_61", 470), None);
        // Turing to Hopper follow the driver.
        for target in ["sm_75", "sm_86", "sm_89", "sm_90"] {
            assert_eq!(index(target, 580), Some("cu130"), "{target}");
            assert_eq!(index(target, 535), Some("cu126"), "{target}");
        }
        // Blackwell needs 12.8 at least.
        assert_eq!(index("sm_120", 580), Some("cu130"));
        assert_eq!(index("sm_121", 580), Some("cu130"));
        assert_eq!(index("sm_100", 570), Some("cu128"));
        assert_eq!(index("sm_120", 550), None);
        assert_eq!(index("sm_87", 580), None);
        assert_eq!(index("sm_150", 700), None);
        assert_eq!(of_nvidia("sm_86", 535, false), None);
    }
}
