//! Windows lends no GPU to this WSL system.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{RELEASE_FILE, Stack, View, Wanted};

const DXG: &str = "/dev/dxg";
const LIBRARIES: &str = "/usr/lib/wsl/lib";
const DRIVERS: &str = "/usr/lib/wsl/drivers";

crate::check! {
    /// Windows does not lend its GPU to this WSL system.
    ///
    /// ## Why it matters
    /// Under WSL no Linux GPU driver runs. Windows shares its GPU through `/dev/dxg` and lays the user half of its driver into
    /// `/usr/lib/wsl/lib`. Where either is missing, nothing that is installed on the Linux side helps.
    ///
    /// ## How it comes about
    /// WSL 1 has no GPU at all. In WSL 2 the Windows driver or the WSL kernel is too old, Windows runs its basic display
    /// driver, or `/etc/wsl.conf` switches the GPU off (`[gpu] enabled=false`). `gpuSupport=false` in `.wslconfig` on the
    /// Windows side does the same and cannot be seen from here.
    ///
    /// ## How to confirm
    /// `ls -l /dev/dxg /usr/lib/wsl/lib/libcuda.so.1`; on Windows `wsl --version` and `nvidia-smi` in PowerShell.
    "wsl-host-driver-missing", Driver, Error, each Machine, run
}

fn run(view: &View, _: &Tables) -> Verdict {
    let Some(version) = view.wsl() else {
        return not_wsl(view);
    };
    // A container under WSL is given its GPU by its engine.
    if view.in_container() {
        return Verdict::NotHere;
    }
    let stack = wanted_stack(view);
    if version > 1 && view.place.is_unknown() {
        return Verdict::cannot_tell(
            format!("whether this is a container: {}", view.place.why()),
            "`ls /.dockerenv /run/.containerenv`",
        );
    }
    if version == 1 {
        let (source, release) = release(view);
        return Finding::new("this is WSL 1, which has no GPU support")
            .cause("wsl1")
            .about(Some(stack))
            .saw(source, release)
            .why("WSL 1 translates system calls and runs no Linux kernel: there is no GPU in it")
            .fix(FixCall::new("wsl-set-version-2"))
            .into();
    }
    match view.node(DXG) {
        Seen::Got(_) => libraries(view),
        Seen::Absent => no_dxg(view, stack),
        other => Verdict::cannot_tell(format!("{DXG}: {}", other.why()), "`ls -l /dev/dxg`"),
    }
}

/// The kernel does not call itself Microsoft's; where it does not say anything, hardware of its own tells.
fn not_wsl(view: &View) -> Verdict {
    let kernel = view.facts.kernel.got();
    let told = kernel
        .is_some_and(|kernel| kernel.release.got().is_some() || kernel.version.got().is_some());
    let own_hardware = view.facts.pci.items().next().is_some() || view.facts.dmi.got().is_some();
    if told || own_hardware {
        return Verdict::NotHere;
    }
    let why = view.kernel_release().why();
    Verdict::cannot_tell(format!("{RELEASE_FILE}: {why}"), "`uname -r`")
}

/// The text that names the kernel, and where it stands.
fn release<'v>(view: &'v View) -> (&'static str, &'v str) {
    match (view.kernel_release(), view.facts.kernel.got()) {
        (Seen::Got(release), _) => (RELEASE_FILE, release),
        (_, Some(kernel)) => (
            "/proc/version",
            kernel.version.got().map_or("", String::as_str),
        ),
        (_, None) => (RELEASE_FILE, ""),
    }
}

/// The stack that somebody wants here; CUDA, the commonest, where nobody does.
fn wanted_stack(view: &View) -> Stack {
    Stack::ALL
        .into_iter()
        .find(|stack| matches!(view.wanted(*stack), Wanted::Yes(_)))
        .unwrap_or(Stack::Cuda)
}

fn no_dxg(view: &View, stack: Stack) -> Verdict {
    let wsl = view.facts.wsl.got();
    let config = wsl.map(|wsl| &wsl.config);
    let finding = match config {
        Some(Seen::Got(_)) if view.wsl_gpu_is_off() => {
            Finding::new("the GPU is switched off in /etc/wsl.conf")
                .cause("gpu-disabled-in-config")
                .saw("/etc/wsl.conf", "[gpu] enabled=false")
                .fix(FixCall::new("wsl-enable-gpu"))
        }
        Some(Seen::Got(_) | Seen::Absent) => {
            Finding::new("Windows lends no GPU to this system: there is no /dev/dxg")
                .cause("no-dxg")
                .fix(FixCall::new("wsl-update"))
                .fix(FixCall::new("wsl-windows-driver"))
        }
        other => {
            let why = other.map_or_else(|| "not recorded here".to_owned(), Seen::why);
            return Verdict::cannot_tell(
                format!("{DXG} does not exist; why it does not, /etc/wsl.conf may say: {why}"),
                "`cat /etc/wsl.conf`",
            );
        }
    };
    finding
        .about(Some(stack))
        .saw(DXG, "does not exist")
        .why("Under WSL every GPU program reaches the GPU through /dev/dxg")
        .into()
}

/// The GPU is shared; NVIDIA's driver must also have lent its library. That is asked only where the GPU is NVIDIA's, or
/// where CUDA is wanted and no other maker's driver is lent.
fn libraries(view: &View) -> Verdict {
    let Some(wsl) = view.facts.wsl.got() else {
        return Verdict::cannot_tell(
            format!("{LIBRARIES}: {}", view.facts.wsl.why()),
            "`ls /usr/lib/wsl/lib`",
        );
    };
    let folders = match &wsl.drivers {
        Seen::Got(folders) => Some(folders),
        _ => None,
    };
    let nvidia =
        folders.is_some_and(|folders| folders.items.keys().any(|name| name.starts_with("nv")));
    let cuda_wanted = matches!(view.wanted(Stack::Cuda), Wanted::Yes(_));
    let nobody_else = wsl.drivers.is_absent()
        || folders.is_some_and(|folders| folders.whole && folders.items.is_empty());
    match wsl.libraries.entry("libcuda.so.1") {
        Seen::Got(()) => Verdict::fine(format!("{DXG} and {LIBRARIES}/libcuda.so.1 are there")),
        Seen::Absent if nvidia || (cuda_wanted && nobody_else) => {
            let title = match nvidia {
                true => "Windows lends no CUDA library: its NVIDIA driver has no WSL support",
                // Nothing says what GPU it is.
                false => "Windows lends no driver of a GPU to this system, and so no CUDA library",
            };
            let finding = Finding::new(title)
                .cause("no-libcuda")
                .about(Some(Stack::Cuda))
                .saw(format!("{LIBRARIES}/libcuda.so.1"), "does not exist");
            let finding = if nvidia {
                finding.saw(DRIVERS, "holds an NVIDIA driver")
            } else {
                finding.saw(DRIVERS, "holds no GPU driver").likely()
            };
            finding
                .why("libcuda.so.1 comes from the Windows driver; a Linux driver package must not replace it")
                .fix(FixCall::new("wsl-windows-driver"))
                .fix(FixCall::new("wsl-update"))
                .into()
        }
        // What the folder holds decides whose GPU it is.
        Seen::Absent
            if wsl.drivers.is_unknown() || folders.is_some_and(|folders| !folders.whole) =>
        {
            Verdict::cannot_tell(
                format!("{LIBRARIES} has no libcuda.so.1; whose GPU is lent, {DRIVERS} would tell"),
                "`ls /usr/lib/wsl/drivers`",
            )
        }
        Seen::Absent => Verdict::fine(format!("{DXG} is there, and no NVIDIA driver is lent")),
        other => Verdict::cannot_tell(
            format!("{DXG} is there; {LIBRARIES}/libcuda.so.1: {}", other.why()),
            "`ls -l /usr/lib/wsl/lib`",
        ),
    }
}
