//! NVIDIA's driver is installed, and the running kernel has no module of it that it could load.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::module_files::ModuleFile;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{DriverGround, Gpu, GpusToDrive, Loaded, RELEASE_FILE, Stack, View};

crate::check! {
    /// NVIDIA's driver is installed, but not with a kernel module that the running kernel can load.
    ///
    /// ## Why it matters
    /// A kernel loads only modules that were built for it. Without one the GPU stays without NVIDIA's driver although its
    /// packages and libraries are all there.
    ///
    /// ## How it comes about
    /// The kernel was upgraded and the module was not built for it: its headers were missing, the build failed, the package
    /// with the prebuilt module did not come along, or the driver was installed from a run file without dkms. Or a module
    /// was copied over from another kernel (cause `vermagic`).
    ///
    /// ## How to confirm
    /// `find /lib/modules/$(uname -r) -name 'nvidia.ko*'` and `dkms status`; `modinfo -F vermagic nvidia` begins with the
    /// kernel for which the module was built.
    "nvidia-module-missing-for-kernel", Driver, Error, each Stack, run
}

const WOULD_TELL: &str = "`find /lib/modules/$(uname -r) -name 'nvidia.ko*'`";

fn run(stack: Stack, view: &View, tables: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let gpus = view.gpus_to_drive(stack);
    if matches!(gpus, GpusToDrive::None) {
        return Verdict::NotHere;
    }
    if let Loaded::Yes(evidence) = view.loaded("nvidia") {
        return Verdict::fine(format!(
            "the module is loaded: {} {}",
            evidence.source, evidence.says
        ));
    }
    let gpus = match gpus {
        GpusToDrive::These(gpus) => gpus,
        GpusToDrive::None => return Verdict::NotHere,
        GpusToDrive::Unknown(why) => return Verdict::cannot_tell(why, "`lspci -nn -d 10de:`"),
    };
    match view.driver_ground() {
        DriverGround::Own => {}
        DriverGround::Host => {
            return Verdict::cannot_tell(
                "in a container the kernel's modules are the host's",
                "the same question on the host",
            );
        }
        DriverGround::Unknown(why) => return Verdict::cannot_tell(why, WOULD_TELL),
    }
    if view.nvidia_driver_installed().is_absent() {
        // Nothing of it is installed: that is another finding.
        return Verdict::NotHere;
    }
    let release = match view.kernel_release() {
        Seen::Got(release) => release,
        other => {
            return Verdict::cannot_tell(
                format!("release of the running kernel: {}", other.why()),
                "`uname -r`",
            );
        }
    };
    match view.module_files("nvidia") {
        Seen::Got(files) => of_files(files, release, view, |finding| {
            with_fixes(finding, release, &gpus, view, tables)
        }),
        Seen::Absent => not_built(release, view, |finding| {
            with_fixes(finding, release, &gpus, view, tables)
        }),
        other => Verdict::cannot_tell(
            format!(
                "{}: {}",
                view.running_kernel_folder(),
                other.map(|_| ()).why()
            ),
            WOULD_TELL,
        ),
    }
}

fn with_fixes(
    finding: Finding,
    release: &str,
    gpus: &[&Gpu],
    view: &View,
    tables: &Tables,
) -> Finding {
    view.nvidia_module_fixes(release, gpus, tables)
        .into_iter()
        .fold(finding, Finding::fix)
}

/// How a file stands to the running kernel.
enum Fit {
    Fits(&'static str),
    OtherKernel(String),
    Unknown(String),
}

/// One file that fits is enough.
fn of_files(
    files: &[ModuleFile],
    release: &str,
    view: &View,
    with_fixes: impl Fn(Finding) -> Finding,
) -> Verdict {
    let fits: Vec<(&ModuleFile, Fit)> = files
        .iter()
        .map(|file| (file, fit(file, release, view)))
        .collect();
    for (file, fit) in &fits {
        if let Fit::Fits(how) = fit {
            return Verdict::fine(format!("{} {how}", file.path));
        }
    }
    for (file, fit) in &fits {
        if let Fit::Unknown(why) = fit {
            return Verdict::cannot_tell(
                format!("{}: {why}", file.path),
                format!("`modinfo -F vermagic {}`", file.path),
            );
        }
    }
    let mut finding = Finding::new(format!(
        "NVIDIA's module for the running kernel {release} was built for another one"
    ))
    .cause("vermagic")
    .why("The kernel refuses modules that do not fit it");
    for (file, fit) in &fits {
        if let Fit::OtherKernel(vermagic) = fit {
            finding = finding.saw(file.path.as_str(), format!("vermagic: {vermagic}"));
            // Such a module is judged by the interface of each symbol, which may by chance be the same.
            if vermagic.contains("modversions") {
                finding = finding.likely();
            }
        }
    }
    with_fixes(finding.saw(RELEASE_FILE, release)).into()
}

fn fit(file: &ModuleFile, release: &str, view: &View) -> Fit {
    // Links below weak-updates lead to a module of an older kernel with the same interface, which is what they are for.
    if file.link.is_some() || file.path.contains("/weak-updates/") {
        return Fit::Fits("is a module for a kernel of the same interface");
    }
    let vermagic = match &file.info {
        Seen::Got(info) => match &info.vermagic {
            Some(vermagic) => vermagic,
            None => {
                return Fit::Unknown("it does not say for which kernel it was built".to_owned());
            }
        },
        other => return Fit::Unknown(other.why()),
    };
    let built_for = vermagic.split_whitespace().next().unwrap_or_default();
    if built_for == release {
        Fit::Fits("is for the running kernel")
    } else if base(built_for) != base(release) {
        Fit::OtherKernel(vermagic.trim().to_owned())
    } else {
        match keeps_interface(view) {
            Some(true) => Fit::Fits("is a module for a kernel of the same interface"),
            Some(false) => Fit::OtherKernel(vermagic.trim().to_owned()),
            None => Fit::Unknown(format!(
                "it was built for {built_for}, and whether this distribution keeps its kernel's interface is not known"
            )),
        }
    }
}

/// Enterprise distributions keep the interface for modules stable within a kernel series, and their packages rely on it.
/// None: the distribution is not known.
fn keeps_interface(view: &View) -> Option<bool> {
    let os = view.facts.os_release.got()?;
    let field = |name: &str| os.fields.get(name).map(String::as_str).unwrap_or_default();
    let keeps = field("ID")
        .split(' ')
        .chain(field("ID_LIKE").split(' '))
        .any(|word| {
            matches!(
                word,
                "rhel"
                    | "centos"
                    | "rocky"
                    | "almalinux"
                    | "ol"
                    | "suse"
                    | "sles"
                    | "sled"
                    | "sle_hpc"
            )
        });
    Some(keeps)
}

/// `5.14.0` of `5.14.0-611.5.1.el9_7.x86_64`.
fn base(release: &str) -> &str {
    release.split('-').next().unwrap_or(release)
}

fn not_built(release: &str, view: &View, with_fixes: impl Fn(Finding) -> Finding) -> Verdict {
    let folder = view.running_kernel_folder();
    let sign = match view.nvidia_driver_installed() {
        Seen::Got(sign) => sign,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "{folder} has no module of NVIDIA; whether the driver is installed at all: {}",
                    other.map(|_| ()).why()
                ),
                "`find /lib/modules -name 'nvidia.ko*'` and `ldconfig -p | grep libcuda.so.1`",
            );
        }
    };
    let mut finding = Finding::new(format!(
        "NVIDIA's driver is installed, but has no module for the running kernel {release}"
    ))
    .cause("not-built")
    .saw(folder.as_str(), "no nvidia module")
    .saw(sign.source, sign.says)
    .why("Without a module for this kernel the driver cannot be loaded");
    if let Seen::Got(kernel) = view.running_kernel()
        && kernel.headers == Seen::Got(false)
    {
        finding = finding.saw(
            format!("{folder}/build"),
            "no headers, so none could be built",
        );
    }
    finding = with_fixes(finding);
    if view.other_kernel_with("nvidia").is_some() {
        finding = finding.fix(FixCall::new("boot-other-kernel-or-rebuild").with("kernel", release));
    }
    finding.into()
}
