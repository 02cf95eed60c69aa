//! The kernel saves the waves of Strix Halo in too little space.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::rocm::KFD_NODES;
use crate::view::{Gpu, RELEASE_FILE, View};

crate::check! {
    /// The kernel lacks a fix that computing on Strix Halo (`gfx1151`) needs.
    ///
    /// ## Why it matters
    /// The kernel and ROCm must agree on how much space the state of a stopped program takes (CWSR). Kernels before the fix
    /// reckoned too little for this GPU: programs end with page faults, or the GPU hangs.
    ///
    /// ## How it comes about
    /// The fix is in Linux 6.18.4, in Ubuntu's 6.17.0-19 for 24.04, in its OEM kernel 6.14.0-1018, and in 26.04. ROCm from 7.2
    /// on expects it; ROCm up to 7.1 expects the kernel without it.
    ///
    /// ## How to confirm
    /// `grep cwsr_size /sys/class/kfd/kfd/topology/nodes/*/properties` finds a line where the kernel has it.
    "amdgpu-cwsr-fix-missing", Driver, Error, each Gpu, run
}

const TARGET: &str = "gfx1151";
/// What a kernel with the fix adds to the properties of a node.
const PROPERTY: &str = "cwsr_size";
const PARAMETER: &str = "cwsr_enable";
const WOULD_TELL: &str = "`grep cwsr_size /sys/class/kfd/kfd/topology/nodes/*/properties`";

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    let is_meant = gpu.target_may_accuse && gpu.target.as_deref() == Some(TARGET);
    if !is_meant || view.wsl().is_some() || gpu.remembered || gpu.passed_in == Some(false) {
        return Verdict::NotHere;
    }
    // Without a node it does not compute at all.
    let Some(number) = gpu.kfd_nodes.first() else {
        return match view.rocm_agents_whole() {
            Seen::Got(()) | Seen::Absent => Verdict::NotHere,
            _ => Verdict::cannot_tell(view.why_rocm_agents_are_unknown(), WOULD_TELL),
        };
    };
    let source = format!("{KFD_NODES}/{number}/properties");
    let node = view
        .facts
        .kfd
        .got()
        .and_then(|kfd| kfd.nodes.items.get(&number.to_string()));
    let Some(properties) = node.and_then(|node| node.properties.got()) else {
        return Verdict::cannot_tell(format!("{source} is not known"), WOULD_TELL);
    };
    if properties.contains_key(PROPERTY) {
        return Verdict::fine(format!("{source} has {PROPERTY}"));
    }
    let module = view.module("amdgpu");
    let enabled = module
        .got()
        .and_then(|module| module.parameters.get(PARAMETER));
    if let Some(Seen::Got(value)) = enabled
        && value.trim() == "0"
    {
        return Verdict::fine("amdgpu.cwsr_enable=0 keeps the kernel from saving them");
    }
    let release = match view.kernel_release() {
        Seen::Got(release) => release,
        other => {
            let why = other.map(|_| ()).why();
            return Verdict::cannot_tell(format!("{RELEASE_FILE}: {why}"), WOULD_TELL);
        }
    };
    match view.module_version("amdgpu") {
        Seen::Absent => {}
        Seen::Got(version) => {
            return Verdict::cannot_tell(
                format!(
                    "the driver is version {version} of AMD's package; whether it has the fix is in no table here"
                ),
                WOULD_TELL,
            );
        }
        other => {
            let why = other.map(|_| ()).why();
            return Verdict::cannot_tell(format!("/sys/module/amdgpu/version: {why}"), WOULD_TELL);
        }
    }
    if may_have_fix(release) {
        return Verdict::cannot_tell(
            format!("{source} has no {PROPERTY}, and Linux {release} may have the fix"),
            WOULD_TELL,
        );
    }
    let mut finding =
        Finding::new("this kernel lacks the fix that computing on Strix Halo needs (CWSR)")
            .saw(source, format!("no {PROPERTY}"))
            .saw(RELEASE_FILE, release);
    let mut expects = false;
    for (root, install) in view.rocm_installs().into_got().into_iter().flatten() {
        if let Some(version) = install.version.got()
            && expects_fix(version)
        {
            expects = true;
            let source = install.version_source.as_deref().unwrap_or(root);
            finding = finding.saw(source, format!("ROCm {version}, which expects it"));
        }
    }
    match expects {
        true => finding.why("Programs that compute end with page faults or hang the GPU"),
        false => finding.severity(Severity::Note).why(
            "ROCm from 7.2 on expects the fix; older ROCm goes with this kernel as far as it goes",
        ),
    }
    .fix(view.driver_fix(FixCall::new("newer-kernel")))
    .into()
}

/// By its number, as AMD's page on RDNA 3.5 systems has it.
fn may_have_fix(release: &str) -> bool {
    let numbers: Vec<u64> = Version::parse(release)
        .map(|version| version.numbers().collect())
        .unwrap_or_default();
    let build = numbers.get(3).copied().unwrap_or(0);
    let mainline = numbers.get(..3).unwrap_or(&numbers);
    mainline >= &[6, 18, 4]
        || mainline == [6, 17, 0] && build >= 19
        || mainline == [6, 14, 0] && build >= 1018
        // Kernels of RHEL carry fixes back under old numbers.
        || release.contains(".el")
}

/// ROCm 7.2 and its later releases, and the line built with TheRock from 7.11 on.
fn expects_fix(version: &str) -> bool {
    let numbers: Vec<u64> = Version::parse(version)
        .map(|version| version.numbers().collect())
        .unwrap_or_default();
    match *numbers.as_slice() {
        [7, minor, ..] => minor >= 2 && !(9..=10).contains(&minor),
        [major, ..] => major > 7,
        [] => false,
    }
}
