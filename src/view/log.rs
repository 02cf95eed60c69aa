//! What lines of the kernel log say: one table of texts, and for each line the first row that fits. A line of a driver is
//! looked up among the rows of that driver and those that anybody may print.
//!
//! The texts were compared with the public sources that are named beside them. Those of NVIDIA's proprietary parts are not
//! public; they are as people quote them (`quoted`).

use super::{Gpu, View};
use crate::facts::Seen;
use crate::facts::kernel_log::{KernelLog, LogLine};
use crate::tables::{self, Tables, kinds};

/// A line that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'v> {
    /// What it says.
    pub kind: Kind,
    /// The line.
    pub line: &'v LogLine,
    /// PCI addresses that it names, as sysfs writes them (`0000:01:00.0`), in their order.
    pub addresses: Vec<String>,
    /// It belongs to the present load of its driver: the module was not loaded anew after it.
    pub current: bool,
}

impl Event<'_> {
    /// The line names this PCI address.
    pub fn names(&self, address: &str) -> bool {
        self.addresses.iter().any(|named| named == address)
    }

    /// The line as it is quoted as evidence, its parts on one line.
    pub fn says(&self) -> String {
        match self.line.at_us {
            Some(at) => format!(
                "[{}.{:06}] {}",
                at / 1_000_000,
                at % 1_000_000,
                in_one(&self.line.text)
            ),
            None => in_one(&self.line.text),
        }
    }
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// NVIDIA: an error that the driver reports by number.
    Xid {
        /// The number.
        number: u32,
        /// The process, where it is named.
        pid: Option<u32>,
        /// Its name, where it is named.
        process: Option<String>,
        /// What follows.
        text: String,
    },
    /// NVIDIA: the same of an NVSwitch.
    Sxid {
        /// The number.
        number: u32,
        /// `Fatal` and the like; what follows the number.
        text: String,
    },
    /// NVIDIA: the GPU stopped answering while the driver had it.
    FellOffBus,
    /// NVIDIA: the GPU did not answer when the driver looked at it first.
    LostAtProbe,
    /// NVIDIA: the driver could not bring the GPU up.
    InitFailed {
        /// The three codes, `0x61:0x56:1770`.
        code: String,
    },
    /// NVIDIA: no firmware file for the GPU System Processor.
    GspFirmwareMissing,
    /// NVIDIA: the GPU System Processor did not start.
    GspFailed,
    /// NVIDIA: the GPU System Processor did not answer in time.
    GspTimeout,
    /// NVIDIA: a library has another version than the kernel module.
    ApiMismatch {
        /// Version of the library.
        client: String,
        /// Version of the module.
        module: String,
        /// The program, where it is named.
        program: Option<String>,
    },
    /// NVIDIA: an older branch of the driver serves this GPU.
    NeedsLegacyDriver {
        /// `580.xx`.
        branch: String,
    },
    /// NVIDIA: this release of the driver does not know the GPU.
    NotSupportedByRelease {
        /// Its version.
        version: String,
    },
    /// NVIDIA: the open kernel module cannot drive it.
    NeedsProprietaryModule,
    /// NVIDIA: only the open kernel module can drive it.
    NeedsOpenModule,
    /// NVIDIA: the open kernel module, as it was up to branch 535, wants an option for GPUs of other than data centres.
    OpenModuleWantsOption,
    /// NVIDIA: the module found no GPU that it serves.
    NoGpuFound,
    /// NVIDIA: another driver holds so many of its GPUs.
    ProbeNotCalled {
        /// How many.
        count: u32,
    },
    /// NVIDIA: so many GPUs could not be taken.
    ProbesFailed {
        /// How many.
        count: u32,
    },
    /// NVIDIA: the module gives up, without a single GPU.
    NoneInitialized,
    /// NVIDIA: another driver holds the GPU.
    BoundElsewhere {
        /// Its name.
        driver: String,
    },
    /// NVIDIA: a BAR of the GPU has no usable address.
    BarInvalid {
        /// Its number.
        bar: u32,
    },
    /// NVIDIA: a power cable is missing.
    PowerCableMissing,
    /// NVIDIA: the system went to sleep without the driver's services.
    SuspendWithoutServices,
    /// NVIDIA: `nvidia-peermem` was called with a context that is gone.
    PeermemInvalidContext,
    /// The module loader refused a module.
    ModuleRejected {
        /// The module, where it is named.
        module: Option<String>,
        /// Why: `unsigned module`, `module with unavailable key`, `lockdown`.
        why: String,
    },
    /// A module was loaded although its signature could not be verified.
    ModuleUnverified {
        /// The module.
        module: String,
    },
    /// A module was built for another kernel.
    ModuleOfOtherKernel {
        /// The module.
        module: String,
        /// The symbol whose version differs, or the version string of the module.
        differs: String,
    },
    /// A module needs a symbol that nothing has.
    UnknownSymbol {
        /// The module.
        module: String,
        /// The symbol.
        symbol: String,
    },
    /// The kernel was locked down.
    LockedDown {
        /// By what.
        by: String,
    },
    /// A firmware file could not be loaded; the driver may do without.
    FirmwareFailed {
        /// Its path below the firmware folder.
        file: String,
        /// The error, `-2` for a missing file; None: not told.
        error: Option<i32>,
    },
    /// A driver gave a device up.
    ProbeFailed {
        /// The error.
        error: i32,
    },
    /// AMD: the driver could not bring the GPU up.
    InitFatal,
    /// AMD: a block of the GPU could not be brought up.
    IpBlockFailed {
        /// Name of the block, `psp`.
        block: String,
        /// The error.
        error: i32,
    },
    /// AMD: a GPU that had been brought up did not come back from sleep or from a reset.
    ResumeFailed {
        /// Name of the block that failed, `psp`.
        block: String,
    },
    /// AMD: the security processor did not take its firmware.
    PspFailed,
    /// AMD: no VBIOS.
    RomMissing,
    /// The kernel found no valid option ROM; healthy machines may say it, too.
    RomInvalid,
    /// AMD: the GPU does not answer on the bus any more.
    DeviceLost,
    /// A device does not answer when its power state is to change.
    DeviceInaccessible,
    /// A module was loaded with a parameter that it does not know; printed before the module begins.
    UnknownParameter {
        /// The module.
        module: String,
        /// The parameter.
        parameter: String,
    },
    /// AMD: a reset of the GPU begins.
    ResetBegin,
    /// AMD: it worked.
    ResetSucceeded,
    /// AMD: it did not.
    ResetFailed {
        /// The error; None: not told.
        error: Option<i32>,
    },
    /// AMD: a reset lost what was in the GPU's memory.
    VramLost,
    /// AMD: a queue of commands got stuck.
    RingTimeout {
        /// Its name.
        ring: String,
        /// Taking back the one job was enough.
        soft_recovered: bool,
    },
    /// AMD: a program used memory that is not mapped.
    PageFault,
    /// AMD: memory or logic errors that could not be corrected.
    RasUncorrectable {
        /// How many; None: not told.
        count: Option<u64>,
        /// Block of the GPU.
        block: String,
    },
    /// AMD: the scheduler firmware MES does not answer.
    MesFailed,
    /// AMD: compute queues could not be taken off the GPU.
    QueuePreemptionFailed,
    /// AMD: the driver let the GPU go.
    DriverFinished,
    /// AMD compute: left out because the slot has no PCIe atomics.
    AtomicsMissing {
        /// Vendor and device id.
        id: Option<(u16, u16)>,
        /// Version of the GPU's firmware, and the first one that does without; 0: none does. None: not told.
        firmware: Option<(u32, u32)>,
    },
    /// AMD compute: this chip is not known to it.
    NotSupportedInKfd {
        /// Its name, `TAHITI` or `GC IP 0b0004`.
        chip: String,
    },
    /// AMD compute: left out because of other errors.
    NotAddedToKfd {
        /// Vendor and device id.
        id: Option<(u16, u16)>,
    },
    /// Intel: the GPU hung.
    GpuHang,
    /// Intel: an engine was reset.
    EngineReset,
    /// Intel: the driver gave the GPU up.
    Wedged,
    /// PCIe error reporting.
    PcieError {
        /// It could not be corrected.
        uncorrected: bool,
        /// It was fatal for the link.
        fatal: bool,
    },
    /// A slower link than the device could have.
    PcieBandwidth {
        /// `8.0 GT/s PCIe x4`.
        link: String,
        /// Address of the function that is the limit.
        at: String,
    },
    /// The link of a hot-plug slot went down.
    SlotLinkDown,
    /// The card was pulled from a hot-plug slot.
    SlotEmpty,
    /// No address space for a BAR; a later attempt may have worked.
    BarUnassigned {
        /// Its number.
        bar: u32,
        /// It is one of the virtual functions.
        of_virtual_function: bool,
        /// It is for memory, not for ports.
        of_memory: bool,
    },
    /// A BAR has its address space.
    BarAssigned {
        /// Its number.
        bar: u32,
    },
    /// The IOMMU stopped an access of a device.
    IommuFault,
    /// The kernel killed a process for want of memory.
    OutOfMemory {
        /// The process.
        pid: Option<u32>,
        /// Its name.
        process: String,
    },
    /// The system goes to sleep.
    SuspendEntry,
    /// It wakes up.
    SuspendExit,
    /// A driver refused to let its device sleep or wake.
    DeviceSuspendFailed {
        /// The error.
        error: i32,
    },
}

/// Xids of errors that could not be corrected, mostly in memory: 171 and 172 say more of a 48, and 94 and 95 whether the error
/// stayed within one program.
const XIDS_OF_ECC: [u32; 6] = [48, 94, 95, 140, 171, 172];

/// Judged by checks of their own: power plugs, what becomes of bad memory, a GPU that is gone.
const XIDS_OF_OTHERS: [u32; 4] = [54, 63, 64, 79];

/// An Xid that comes from the hardware, or most likely does, and is an error.
pub struct HardwareXid<'v> {
    /// Its number.
    pub number: u32,
    /// The line that reports it.
    pub event: &'v Event<'v>,
    /// What the tables say of the number.
    pub row: tables::Row,
    /// The card itself is why, its firmware included; else a driver or a program may be.
    pub of_card: bool,
}

/// Whose line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    Nvidia,
    Amd,
    Intel,
    /// `[drm]` and `[drm:...]`: of any driver.
    Drm,
    Other,
}

/// A row: who prints it, a text in which `*` stands for anything, what it says given what stands for the `*`.
/// A text may stand anywhere in what its driver says; one of `Other` anywhere in what is said of a device, and else at the start
/// of the line. With `^` the line begins with it, with `$` at its end the line ends there.
type Row = (Speaker, &'static str, fn(&[&str]) -> Option<Kind>);

use Speaker::{Amd, Intel, Nvidia, Other};

/// The rows; the first that fits wins. Rows of `Other` are for every line.
const ROWS: &[Row] = &[
    // open-gpu-kernel-modules src/nvidia/src/kernel/gpu/rc/kernel_rc.c: "Xid (PCI:%04x:%02x:%02x GPU-I:%02u): %d, pid=%s, name=%s, %s";
    // drivers before 346 wrote "Xid (0000:03:00): 14, ..." (quoted).
    (Nvidia, "^NVRM: Xid (*): *, *", |words| {
        xid(words[0], words[1], words[2])
    }),
    (Nvidia, "^NVRM: Xid (*): *", |words| {
        xid(words[0], words[1], "")
    }),
    // src/common/nvswitch/kernel/inc/common_nvswitch.h
    (Nvidia, "^nvidia-nvswitch*: SXid (*): *, *", |words| {
        xid_address(words[1])?;
        Some(Kind::Sxid {
            number: number(words[2])?,
            text: words[3].to_owned(),
        })
    }),
    // src/nvidia/arch/nvalloc/unix/src/osapi.c, rm_is_supported_device
    (
        Nvidia,
        "^NVRM: The NVIDIA GPU * installed in this system has fallen off the bus",
        |_| Some(Kind::LostAtProbe),
    ),
    // src/nvidia/arch/nvalloc/unix/src/osinit.c
    (Nvidia, "GPU has fallen off the bus.", |_| {
        Some(Kind::FellOffBus)
    }),
    // before 460 (quoted)
    (Nvidia, "^NVRM: GPU at * has fallen off the bus", |_| {
        Some(Kind::FellOffBus)
    }),
    (Nvidia, "RmInitAdapter failed! (*)", |words| {
        Some(Kind::InitFailed {
            code: words[0].to_owned(),
        })
    }),
    (Nvidia, "No firmware image found", |_| {
        Some(Kind::GspFirmwareMissing)
    }),
    (Nvidia, "does not have the necessary power cables", |_| {
        Some(Kind::PowerCableMissing)
    }),
    // src/nvidia/src/kernel/gpu/gsp/: kernel_gsp.c, arch/turing/kernel_gsp_tu102.c, kernel_gsp_booter_tu102.c
    (Nvidia, "Cannot initialize GSP firmware RM", |_| {
        Some(Kind::GspFailed)
    }),
    (Nvidia, "Failed to boot GSP", |_| Some(Kind::GspFailed)),
    (Nvidia, "failed to execute Booter Load", |_| {
        Some(Kind::GspFailed)
    }),
    (Nvidia, "unexpected WPR2 already up", |_| {
        Some(Kind::GspFailed)
    }),
    (
        Nvidia,
        "sanity check failed * waiting for RPC response from GSP",
        |_| Some(Kind::GspTimeout),
    ),
    (Nvidia, "Rate limiting GSP RPC error prints", |_| {
        Some(Kind::GspTimeout)
    }),
    // src/nvidia/arch/nvalloc/unix/src/osapi.c; before 555 without program (quoted)
    (
        Nvidia,
        "API mismatch: the client '*' (pid *) has the version *, but this kernel module has the version *. ",
        |words| mismatch(words[2], words[3], Some(words[0])),
    ),
    (
        Nvidia,
        "API mismatch: the client has the version *, but this kernel module has the version *. ",
        |words| mismatch(words[0], words[1], None),
    ),
    (
        Nvidia,
        "API mismatch: the client has the version *, but this kernel module has the version *.$",
        |words| mismatch(words[0], words[1], None),
    ),
    // Closed: rm_is_legacy_device, rm_is_legacy_arch (quoted)
    (
        Nvidia,
        "is supported through the NVIDIA * Legacy drivers",
        |words| {
            Some(Kind::NeedsLegacyDriver {
                branch: words[0].to_owned(),
            })
        },
    ),
    // osapi.c, rm_is_supported_device; the text of the proprietary module is quoted
    (Nvidia, "is not supported by open nvidia.ko", |_| {
        Some(Kind::NeedsProprietaryModule)
    }),
    // osinit.c, up to branch 535
    (
        Nvidia,
        "Open nvidia.ko is only ready for use on Data Center GPUs",
        |_| Some(Kind::OpenModuleWantsOption),
    ),
    (
        Nvidia,
        "requires use of the NVIDIA open kernel modules",
        |_| Some(Kind::NeedsOpenModule),
    ),
    (
        Nvidia,
        "installed in this system is not supported by the NVIDIA * driver release",
        |words| {
            Some(Kind::NotSupportedByRelease {
                version: words[0].to_owned(),
            })
        },
    ),
    // kernel-open/nvidia/nv.c, nvidia_init_module
    (Nvidia, "^NVRM: No NVIDIA GPU found", |_| {
        Some(Kind::NoGpuFound)
    }),
    (Nvidia, "^NVRM: No NVIDIA PCI devices found", |_| {
        Some(Kind::NoGpuFound)
    }),
    (
        Nvidia,
        "The NVIDIA probe routine was not called for * device(s)",
        |words| {
            Some(Kind::ProbeNotCalled {
                count: number(words[0])?,
            })
        },
    ),
    (
        Nvidia,
        "The NVIDIA probe routine failed for * device(s)",
        |words| {
            Some(Kind::ProbesFailed {
                count: number(words[0])?,
            })
        },
    ),
    (Nvidia, "^NVRM: No NVIDIA devices probed", |_| {
        Some(Kind::NoneInitialized)
    }),
    (
        Nvidia,
        "None of the NVIDIA devices were initialized",
        |_| Some(Kind::NoneInitialized),
    ),
    // Closed (quoted)
    (Nvidia, "^NVRM: GPU * is already bound to *.$", |words| {
        Some(Kind::BoundElsewhere {
            driver: words[1].to_owned(),
        })
    }),
    // kernel-open/nvidia/nv-pci.c, nv_pci_validate_bars
    (
        Nvidia,
        "This PCI I/O region assigned to your NVIDIA device is invalid: BAR* is ",
        |words| {
            Some(Kind::BarInvalid {
                bar: number(words[0])?,
            })
        },
    ),
    // kernel-open/nvidia/nv.c, nv_power_management
    (
        Nvidia,
        "System Power Management attempted without driver procfs suspend interface",
        |_| Some(Kind::SuspendWithoutServices),
    ),
    // kernel-open/nvidia-peermem/nvidia-peermem.c
    (Nvidia, "^nvidia-peermem * detected invalid context", |_| {
        Some(Kind::PeermemInvalidContext)
    }),
    // linux drivers/gpu/drm/amd/amdgpu/: amdgpu_kms.c, amdgpu_device.c, amdgpu_psp.c, amdgpu_bios.c
    (Amd, "Fatal error during GPU init", |_| {
        Some(Kind::InitFatal)
    }),
    (Amd, "_init of IP block <*> failed *", |words| {
        block(words[0], words[1])
    }),
    (Amd, "resume of IP block <*> failed *", |words| {
        Some(Kind::ResumeFailed {
            block: words[0].to_owned(),
        })
    }),
    (Amd, "PSP load * failed", |_| Some(Kind::PspFailed)),
    (Amd, "PSP firmware loading failed", |_| {
        Some(Kind::PspFailed)
    }),
    (Amd, "PSP resume failed", |_| {
        Some(Kind::ResumeFailed {
            block: "psp".to_owned(),
        })
    }),
    (Amd, "Unable to locate a BIOS ROM", |_| {
        Some(Kind::RomMissing)
    }),
    (Amd, "device lost from bus", |_| Some(Kind::DeviceLost)),
    (Amd, "GPU reset begin!", |_| Some(Kind::ResetBegin)),
    (Amd, "GPU reset succeeded", |_| Some(Kind::ResetSucceeded)),
    // amdgpu_job.c, since Linux 6.12: of one queue alone
    (Amd, "Ring * reset succeeded", |_| {
        Some(Kind::ResetSucceeded)
    }),
    (Amd, "GPU reset(*) succeeded", |_| {
        Some(Kind::ResetSucceeded)
    }),
    (Amd, "GPU reset(*) failed", |_| {
        Some(Kind::ResetFailed { error: None })
    }),
    (Amd, "GPU reset end with ret = *", |words| {
        Some(Kind::ResetFailed {
            error: Some(number(words[0])?),
        })
    }),
    (Amd, "GPU Recovery Failed: *", |words| {
        Some(Kind::ResetFailed {
            error: Some(number(words[0])?),
        })
    }),
    (Amd, "VRAM is lost due to GPU reset", |_| {
        Some(Kind::VramLost)
    }),
    (Amd, "amdgpu: finishing device", |_| {
        Some(Kind::DriverFinished)
    }),
    // amdgpu_job.c
    (Amd, "ring * timeout, but soft recovered", |words| {
        ring(words[0], true)
    }),
    (Amd, "ring * timeout, signaled seq=", |words| {
        ring(words[0], false)
    }),
    // gmc_v9_0.c, gmc_v11_0.c and the like; `retry` and `no-retry` stand before the words
    (Amd, "[gfxhub*page fault (", |_| Some(Kind::PageFault)),
    (Amd, "[mmhub*page fault (", |_| Some(Kind::PageFault)),
    // amdgpu_ras.c; a clean count is `no` or 0
    (
        Amd,
        "*uncorrectable hardware errors detected in * block",
        |words| uncorrectable(words[0], words[1]),
    ),
    // mes_v11_0.c; mes_v12_0.c names the pipe, `MES(0)`
    (Amd, "MES* failed to respond to msg=", |_| {
        Some(Kind::MesFailed)
    }),
    (Amd, "MES might be in unrecoverable state", |_| {
        Some(Kind::MesFailed)
    }),
    (Amd, "MES* ring buffer is full", |_| Some(Kind::MesFailed)),
    // amdkfd/kfd_device_queue_manager.c
    (Amd, "qcm fence wait loop timeout expired", |_| {
        Some(Kind::QueuePreemptionFailed)
    }),
    (Amd, "due to an unsuccessful queues preemption", |_| {
        Some(Kind::QueuePreemptionFailed)
    }),
    // amdkfd/kfd_device.c; the versions came with Linux 5.11
    (Amd, "skipped device *, PCI rejects atomics *<*", |words| {
        atomics(words[0], number(words[1]).zip(number(words[2])))
    }),
    (Amd, "skipped device *, PCI rejects atomics", |words| {
        atomics(words[0], None)
    }),
    (Amd, "^kfd kfd: amdgpu: * not supported in kfd", |words| {
        chip(words[0])
    }),
    (Amd, "^kfd kfd: * not supported in kfd", |words| {
        chip(words[0])
    }),
    (Amd, "device * NOT added due to errors", |words| {
        Some(Kind::NotAddedToKfd { id: ids(words[0]) })
    }),
    // i915_gpu_error.c, i915/gt/intel_gt.c, i915_gem_pm.c
    (Intel, "GPU HANG: ecode", |_| Some(Kind::GpuHang)),
    (Intel, "declaring it wedged", |_| Some(Kind::Wedged)),
    // xe/xe_device.c, xe/xe_guc_submit.c
    (Intel, "has declared device * as wedged", |_| {
        Some(Kind::Wedged)
    }),
    (Intel, "Engine reset: engine_class=", |_| {
        Some(Kind::EngineReset)
    }),
    // kernel/module/signing.c, main.c, version.c; security/lockdown/lockdown.c
    (
        Other,
        "^* module verification failed: signature and/or required key missing",
        |words| {
            Some(Kind::ModuleUnverified {
                module: module(words[0])?,
            })
        },
    ),
    (Other, "^Loading of * is rejected", |words| {
        rejected(None, words[0])
    }),
    (Other, "^*: loading of * is rejected", |words| {
        rejected(Some(words[0]), words[1])
    }),
    (Other, "^*: Loading of * is rejected", |words| {
        rejected(Some(words[0]), words[1])
    }),
    (
        Other,
        "^Lockdown: *: unsigned module loading is restricted",
        |_| rejected(None, "lockdown"),
    ),
    (Other, "^Kernel is locked down from *;", |words| {
        Some(Kind::LockedDown {
            by: words[0].to_owned(),
        })
    }),
    (Other, "^*: disagrees about version of symbol *", |words| {
        other_kernel(words[0], words[1])
    }),
    (Other, "^*: version magic '*' should be '", |words| {
        other_kernel(words[0], words[1])
    }),
    (Other, "^*: Unknown symbol * (err", |words| {
        Some(Kind::UnknownSymbol {
            module: module(words[0])?,
            symbol: words[1].to_owned(),
        })
    }),
    // drivers/base/firmware_loader/main.c, then what amdgpu adds (amdgpu_ucode.c, amdgpu_device.c)
    (
        Other,
        "Direct firmware load for * failed with error *",
        |words| {
            Some(Kind::FirmwareFailed {
                file: words[0].to_owned(),
                error: Some(number(words[1])?),
            })
        },
    ),
    (Amd, "Failed to load firmware \"*\"", |words| {
        Some(Kind::FirmwareFailed {
            file: words[0].to_owned(),
            error: None,
        })
    }),
    (Amd, "Failed to get gpu_info firmware \"*\"", |words| {
        Some(Kind::FirmwareFailed {
            file: words[0].to_owned(),
            error: None,
        })
    }),
    // kernel/module/main.c, unknown_module_param_cb
    (Other, "^*: unknown parameter '*' ignored", |words| {
        Some(Kind::UnknownParameter {
            module: module(words[0])?,
            parameter: words[1].to_owned(),
        })
    }),
    // drivers/base/dd.c, before and since Linux 6.10
    (Other, "^*: probe of * failed with error *", |words| {
        module(words[0])?;
        Some(Kind::ProbeFailed {
            error: number(words[2])?,
        })
    }),
    (Other, "probe with driver * failed with error *", |words| {
        Some(Kind::ProbeFailed {
            error: number(words[1])?,
        })
    }),
    // drivers/pci/: rom.c, pci.c, pcie/aer.c, hotplug/pciehp_ctrl.c, setup-res.c before and since Linux 6.9
    (Other, "Invalid PCI ROM", |_| Some(Kind::RomInvalid)),
    (
        Other,
        "Unable to change power state from * to *, device inaccessible",
        |_| Some(Kind::DeviceInaccessible),
    ),
    (Other, "PCIe Bus Error: severity=*, type=", |words| {
        Some(Kind::PcieError {
            uncorrected: words[0].starts_with("Uncorrect"),
            fatal: words[0].contains("(Fatal)"),
        })
    }),
    (
        Other,
        "available PCIe bandwidth, limited by * link at * (capable",
        |words| {
            Some(Kind::PcieBandwidth {
                link: words[0].to_owned(),
                at: words[1].to_owned(),
            })
        },
    ),
    (Other, "Slot(*): Link Down$", |_| Some(Kind::SlotLinkDown)),
    (Other, "Slot(*): Card not present$", |_| {
        Some(Kind::SlotEmpty)
    }),
    (Other, "VF BAR * can't assign; no space", |words| {
        bar(words[0], words[0], true)
    }),
    (Other, "VF BAR * failed to assign*", |words| {
        bar(words[0], words[0], true)
    }),
    (Other, "BAR *: no space for *", |words| {
        bar(words[0], words[1], false)
    }),
    (Other, "BAR * can't assign; no space", |words| {
        bar(words[0], words[0], false)
    }),
    // the range stands before the words or behind them
    (Other, ": BAR *: failed to assign*", |words| {
        let range = if words[1].is_empty() {
            words[0]
        } else {
            words[1]
        };
        bar(words[0], range, false)
    }),
    (Other, ": BAR *: assigned*", |words| {
        Some(Kind::BarAssigned {
            bar: first_number(words[0])?,
        })
    }),
    // drivers/iommu/: amd/iommu.c, intel/dmar.c
    (Other, "AMD-Vi: Event logged [IO_PAGE_FAULT", |_| {
        Some(Kind::IommuFault)
    }),
    (
        Other,
        "^iommu ivhd*: AMD-Vi: Event logged [IO_PAGE_FAULT",
        |_| Some(Kind::IommuFault),
    ),
    (Other, "DMAR: [DMA * Request device [*]", |_| {
        Some(Kind::IommuFault)
    }),
    // mm/oom_kill.c; the older `Kill process` comes before the kill, and the kill has a line of its own
    (Other, "^Out of memory: Killed process *(*)", |words| {
        killed(words[0], words[1])
    }),
    (
        Other,
        "^Memory cgroup out of memory: Killed process *(*)",
        |words| killed(words[0], words[1]),
    ),
    // kernel/power/suspend.c, hibernate.c; drivers/base/power/main.c
    (Other, "PM: suspend entry", |_| Some(Kind::SuspendEntry)),
    (Other, "PM: suspend exit", |_| Some(Kind::SuspendExit)),
    // before Linux 5.3
    (Other, "PM: hibernation entry", |_| Some(Kind::SuspendEntry)),
    (Other, "PM: hibernation exit", |_| Some(Kind::SuspendExit)),
    (Other, "PM: hibernation: hibernation entry", |_| {
        Some(Kind::SuspendEntry)
    }),
    (Other, "PM: hibernation: hibernation exit", |_| {
        Some(Kind::SuspendExit)
    }),
    (Other, "PM: pci_pm_*(): * returns *", |words| {
        Some(Kind::DeviceSuspendFailed {
            error: number(words[2])?,
        })
    }),
];

fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.trim().parse().ok()
}

/// The address of `PCI:0000:3b:00`, which parts of the GPU may follow, and of the older `0000:03:00`.
fn xid_address(place: &str) -> Option<String> {
    let mut words = place.split(' ');
    let first = words.next()?;
    let found = address(first.strip_prefix("PCI:").unwrap_or(first))?;
    let is_part = |word: &str| {
        let number = word
            .strip_prefix("GPU-I:")
            .or_else(|| word.strip_prefix("GPU-CI:"));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    words.all(is_part).then_some(found)
}

fn xid(place: &str, code: &str, rest: &str) -> Option<Kind> {
    xid_address(place)?;
    let (pid, rest) = field(rest, "pid=");
    let (process, text) = field(rest, "name=");
    Some(Kind::Xid {
        number: number(code)?,
        pid: pid.and_then(number),
        process: process
            .filter(|name| *name != "<unknown>")
            .map(str::to_owned),
        text: text.to_owned(),
    })
}

/// The value of a field at the beginning, and what follows it.
fn field<'t>(text: &'t str, name: &str) -> (Option<&'t str>, &'t str) {
    match text.strip_prefix(name) {
        Some(rest) => {
            let (value, rest) = rest.split_once(',').unwrap_or((rest, ""));
            (Some(value), rest.trim_start())
        }
        None => (None, text),
    }
}

fn mismatch(client: &str, module: &str, program: Option<&str>) -> Option<Kind> {
    Some(Kind::ApiMismatch {
        client: client.to_owned(),
        module: module.to_owned(),
        program: program.map(str::to_owned),
    })
}

fn block(name: &str, error: &str) -> Option<Kind> {
    Some(Kind::IpBlockFailed {
        block: name.to_owned(),
        error: number(error)?,
    })
}

fn ring(name: &str, soft_recovered: bool) -> Option<Kind> {
    (!name.contains(' ')).then(|| Kind::RingTimeout {
        ring: name.to_owned(),
        soft_recovered,
    })
}

fn uncorrectable(before: &str, block: &str) -> Option<Kind> {
    let last = before.split_whitespace().next_back().unwrap_or_default();
    let count: Option<u64> = number(last);
    let block = block.rsplit(' ').next().unwrap_or(block);
    (count != Some(0) && last != "no").then(|| Kind::RasUncorrectable {
        count,
        block: block.to_owned(),
    })
}

/// `1002:7340`.
fn ids(text: &str) -> Option<(u16, u16)> {
    let (vendor, device) = text.split_once(':')?;
    let hex = |text| u16::from_str_radix(text, 16).ok();
    hex(vendor).zip(hex(device))
}

fn atomics(device: &str, firmware: Option<(u32, u32)>) -> Option<Kind> {
    Some(Kind::AtomicsMissing {
        id: ids(device),
        firmware,
    })
}

fn chip(name: &str) -> Option<Kind> {
    Some(Kind::NotSupportedInKfd {
        chip: name.to_owned(),
    })
}

/// The module's name, which a colon may follow.
fn module(name: &str) -> Option<String> {
    let name = name.trim_end_matches(':');
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (!name.is_empty() && name.chars().all(is_part)).then(|| name.to_owned())
}

fn rejected(name: Option<&str>, why: &str) -> Option<Kind> {
    let module = match name {
        Some(name) => Some(module(name)?),
        None => None,
    };
    Some(Kind::ModuleRejected {
        module,
        why: why.to_owned(),
    })
}

fn other_kernel(name: &str, differs: &str) -> Option<Kind> {
    Some(Kind::ModuleOfOtherKernel {
        module: module(name)?,
        differs: differs.to_owned(),
    })
}

fn first_number(text: &str) -> Option<u32> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    number(&text[..digits])
}

/// Its number stands first, with or without a colon; the range is like `[mem size 0x10000000 64bit pref]`.
fn bar(text: &str, range: &str, of_virtual_function: bool) -> Option<Kind> {
    Some(Kind::BarUnassigned {
        bar: first_number(text)?,
        of_virtual_function,
        of_memory: range.contains("[mem"),
    })
}

fn killed(before: &str, name: &str) -> Option<Kind> {
    let digits = before.bytes().take_while(u8::is_ascii_digit).count();
    Some(Kind::OutOfMemory {
        pid: number(&before[..digits]),
        process: name.to_owned(),
    })
}

/// Parts of a message that was cut at its line ends; the longest has six.
const MOST_PARTS: usize = 6;

/// What stands for each `*`, where the pattern fits.
fn fit<'t>(pattern: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let (pattern, to_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let (pattern, from_start) = match pattern.strip_prefix('^') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let first = parts.next()?;
    let mut rest = if from_start {
        text.strip_prefix(first)?
    } else {
        &text[text.find(first)? + first.len()..]
    };
    let mut words = Vec::new();
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let (word, after) = match part {
            // The last `*` takes all that is left.
            "" if last => (rest, ""),
            _ if last && to_end => (rest.strip_suffix(part)?, ""),
            _ => {
                let at = rest.find(part)?;
                (&rest[..at], &rest[at + part.len()..])
            }
        };
        words.push(word.trim());
        rest = after;
    }
    (!to_end || rest.is_empty()).then_some(words)
}

/// A message of several lines as one. NVIDIA's driver begins each with its name.
fn in_one(text: &str) -> String {
    if !text.contains('\n') {
        return text.to_owned();
    }
    let lines = text.lines().map(str::trim);
    let lines = lines.enumerate().map(|(at, line)| match at {
        0 => line,
        _ => line.strip_prefix("NVRM:").unwrap_or(line).trim(),
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// Where an old log daemon has cut messages of NVIDIA's driver at their line ends, the first part of one says how it goes on.
fn goes_on(text: &str) -> bool {
    text.starts_with("NVRM: ")
        && !text.contains('\n')
        && (text.starts_with("NVRM: API mismatch: ") && !text.ends_with('.')
            || text.starts_with("NVRM: The NVIDIA ") && !text.ends_with('.')
            || text.ends_with("NVIDIA device is invalid:"))
}

/// Whose line it is, by the prefix that the driver puts before all that it says.
fn speaker(text: &str) -> Speaker {
    let says = |name: &str| {
        text.strip_prefix(name).is_some_and(|rest| {
            rest.starts_with(": ") || is_of_device(text) && rest.starts_with(' ')
        })
    };
    let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    let drm = begins(&["[drm] ", "[drm:"]);
    if begins(&["NVRM: ", "nvidia-", "nvidia_"]) || says("nvidia") {
        Speaker::Nvidia
    } else if says("amdgpu")
        || says("kfd")
        || text.starts_with("kfd kfd: ")
        || says("radeon")
        || drm
            && text
                .split("]] ")
                .next()
                .is_some_and(|head| head.ends_with("[amdgpu"))
    {
        Speaker::Amd
    } else if says("i915") || says("xe") {
        Speaker::Intel
    } else if drm {
        Speaker::Drm
    } else {
        Speaker::Other
    }
}

/// `DRIVER 0000:01:00.0: ...`, as the kernel begins what it says of a PCI device; older kernels say of ports
/// `pciehp 0000:00:1c.0:pcie004: ...`.
fn is_of_device(text: &str) -> bool {
    let Some((driver, rest)) = text.split_once(' ') else {
        return false;
    };
    let Some((named, _)) = rest.split_once(": ") else {
        return false;
    };
    let named = named.split(":pcie").next().unwrap_or(named);
    module(driver).is_some() && address(named).is_some()
}

/// A driver's line up to where it names a process, whose name is whatever its user likes.
fn without_process(text: &str) -> &str {
    let ends = [" process ", " Process "].into_iter();
    let end = ends.filter_map(|word| text.find(word)).min();
    &text[..end.unwrap_or(text.len())]
}

/// PCI addresses in a text: `0000:01:00.0`, `PCI:0000:01:00`, `(0000:03:00)`.
fn addresses(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let is_part = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    for word in text.split(|c: char| !is_part(c)) {
        // `PCI:` leaves the colon before the domain, and texts go on behind one.
        if let Some(address) = address(word.trim_matches([':', '.']))
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

fn address(word: &str) -> Option<String> {
    let (domain, rest) = word.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (slot, function) = rest.split_once('.').unwrap_or((rest, "0"));
    let hex = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        digits
            .contains(&text.len())
            .then(|| u32::from_str_radix(text, 16).ok())?
    };
    let (domain, bus) = (hex(domain, 4..=8)?, hex(bus, 2..=2)?);
    let (slot, function) = (hex(slot, 2..=2)?, hex(function, 1..=1)?);
    (slot < 32 && function < 8).then(|| format!("{domain:04x}:{bus:02x}:{slot:02x}.{function}"))
}

/// Where the present load of a driver begins, as an index into the lines; 0: nothing shows an earlier load.
///
/// NVIDIA's module says `Nvlink Core is being initialized` before it looks at its GPUs and `loading NVIDIA UNIX` after it
/// (kernel-open/nvidia/nv.c), the latter only where that went well; old ones say the latter alone.
fn load_begins(lines: &[LogLine], speaker: Speaker) -> usize {
    let mut begin = 0;
    let mut loaded_since = true;
    for (at, line) in lines.iter().enumerate() {
        let text = line.text.as_str();
        if line.is_of_process() {
            continue;
        }
        match speaker {
            Speaker::Nvidia => {
                if text.starts_with("nvidia-nvlink: Nvlink Core is being initialized") {
                    (begin, loaded_since) = (at, false);
                } else if text.starts_with("nvidia: loading out-of-tree module")
                    || text.starts_with("nvidia: module license")
                {
                    if loaded_since {
                        (begin, loaded_since) = (at, false);
                    }
                } else if text.starts_with("NVRM: loading ") {
                    if loaded_since {
                        begin = at;
                    }
                    loaded_since = true;
                }
            }
            // drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c, amdgpu_init
            Speaker::Amd
                if text.contains("amdgpu kernel modesetting enabled")
                    && matches!(self::speaker(text), Amd | Speaker::Drm) =>
            {
                begin = at;
            }
            _ => {}
        }
    }
    begin
}

/// What the lines say, in their order.
pub fn events(lines: &[LogLine]) -> Vec<Event<'_>> {
    let nvidia_begins = load_begins(lines, Nvidia);
    let amd_begins = load_begins(lines, Amd);
    let mut events = Vec::new();
    let mut next = 0;
    while let Some(line) = lines.get(next) {
        let at = next;
        next += 1;
        if line.is_of_process() {
            continue;
        }
        let mut text = in_one(&line.text);
        if goes_on(&line.text) {
            let parts = lines[next..].iter().take(MOST_PARTS);
            for part in parts.map_while(|line| line.text.strip_prefix("NVRM: ")) {
                text.push(' ');
                text.push_str(&in_one(part));
                next += 1;
                if part.ends_with('.') {
                    break;
                }
            }
        }
        let speaker = speaker(&text);
        let text = match speaker {
            Amd | Intel | Speaker::Drm => without_process(&text),
            Nvidia | Other => &text,
        };
        let of_device = is_of_device(text);
        let found = ROWS.iter().find_map(|(of, pattern, kind)| {
            let of_any = speaker == Speaker::Drm && matches!(of, Amd | Intel);
            if *of != Other && *of != speaker && !of_any {
                return None;
            }
            let anywhere = *of != Other || of_device;
            let start = pattern.split(['*', '$']).next().unwrap_or_default();
            if !anywhere && !pattern.starts_with('^') && !text.starts_with(start) {
                return None;
            }
            kind(&fit(pattern, text)?).map(|kind| (*of, kind))
        });
        if let Some((of, kind)) = found {
            let begins = match (of, speaker) {
                (Nvidia, _) | (_, Nvidia) => nvidia_begins,
                (Amd, _) | (_, Amd) => amd_begins,
                _ => 0,
            };
            // What follows the number may hold the name of a process.
            let named = match kind {
                Kind::Xid { .. } | Kind::Sxid { .. } => text.split("): ").next().unwrap_or(text),
                _ => text,
            };
            events.push(Event {
                kind,
                line,
                addresses: addresses(named),
                current: at >= begins,
            });
        }
    }
    events
}

impl<'a> View<'a> {
    /// The kernel log, where it could be read. What is in it happened; what is not may have been overwritten: see `log_tells`.
    pub fn log(&self) -> Seen<&'a KernelLog> {
        self.facts.kernel_log.as_ref()
    }

    /// Whether a line that is not in the log was not printed since the boot.
    pub fn log_tells(&self) -> Seen<()> {
        self.log().and_then(|log| {
            if log.from_boot {
                Seen::Got(())
            } else {
                Seen::error("it does not reach back to the boot")
            }
        })
    }

    /// Where anyone can read the log again.
    pub fn log_source(&self) -> &'a str {
        let source = self.log().got().map_or("", |log| log.source.as_str());
        match source.strip_prefix("file ") {
            Some(path) => path,
            None if source == "journal" => "/var/log/journal",
            None => "/dev/kmsg",
        }
    }

    /// What the log says of a GPU since its driver was loaded.
    pub fn log_of<'g>(&'g self, gpu: &'g Gpu) -> impl Iterator<Item = &'g Event<'a>> {
        self.log_events.iter().filter(|event| {
            event.current && gpu.pci.as_ref().is_some_and(|address| event.names(address))
        })
    }

    /// The first of the worst errors of the hardware that NVIDIA's driver reported of a GPU: the rest mostly follow from it.
    pub fn hardware_xid<'g>(&'g self, gpu: &'g Gpu) -> Option<HardwareXid<'g>> {
        let mut worst: Option<((bool, u8), HardwareXid)> = None;
        for event in self.log_of(gpu) {
            let Kind::Xid { number, .. } = event.kind else {
                continue;
            };
            if XIDS_OF_OTHERS.contains(&number) || XIDS_OF_ECC.contains(&number) {
                continue;
            }
            let Some((rank, row)) = of_hardware(number, self.tables) else {
                continue;
            };
            if worst.as_ref().is_none_or(|(worst, ..)| rank > *worst) {
                let xid = HardwareXid {
                    number,
                    event,
                    row,
                    of_card: rank.0,
                };
                worst = Some((rank, xid));
            }
        }
        worst.map(|(_, xid)| xid)
    }

    /// The first line about an error of this GPU that could not be corrected, of NVIDIA's driver.
    pub fn xid_of_ecc<'g>(&'g self, gpu: &'g Gpu) -> Option<&'g Event<'a>> {
        self.log_of(gpu).find(|event| match event.kind {
            Kind::Xid { number, .. } => XIDS_OF_ECC.contains(&number),
            _ => false,
        })
    }

    /// Lines about this GPU, and those that name none where it is the only one of its vendor.
    pub fn log_near<'g>(&'g self, gpu: &'g Gpu) -> impl Iterator<Item = &'g Event<'a>> {
        let same = self.gpus.iter().filter(|other| other.vendor == gpu.vendor);
        let alone = same.count() == 1;
        self.log_events.iter().filter(move |event| {
            let named = |address: &String| event.names(address);
            event.current
                && (gpu.pci.as_ref().is_some_and(named) || alone && event.addresses.is_empty())
        })
    }
}

/// The row of a number that comes from the hardware, or most likely does, and is an error; with whether nothing but the card is
/// why, and how bad it is.
fn of_hardware(number: u32, tables: &Tables) -> Option<((bool, u8), tables::Row)> {
    let row = tables.row(&kinds::XID, &number.to_string())?;
    let kind = row.text("kind")?;
    if !(kind.may_accuse() && (kind.value.starts_with("hardware") || kind.value == "firmware")) {
        return None;
    }
    let of_card = !(kind.value.contains("driver") || kind.value.contains("app"));
    match row.text("severity")?.value.as_str() {
        "critical" => Some(((of_card, 2), row)),
        "error" => Some(((of_card, 1), row)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_they_are_written() {
        for (pattern, text, words) in [
            ("b", "abc", Some(vec![])),
            ("^b", "abc", None),
            ("b$", "abc", None),
            ("a*c$", "abcbc", Some(vec!["bcb"])),
            ("a*c", "abcbc", Some(vec!["b"])),
            ("a *", "x a  é ü ", Some(vec!["é ü"])),
            ("*é*", "ü é x", Some(vec!["ü", "x"])),
            ("^* b * d", "a b c d", Some(vec!["a", "c"])),
            ("(*)", "(", None),
            ("", "", Some(vec![])),
        ] {
            assert_eq!(fit(pattern, text), words, "{pattern} in {text}");
        }
    }

    fn kinds_of(text: &str) -> Vec<(Kind, Vec<String>)> {
        let line = LogLine {
            at_us: Some(100_000_000),
            text: text.to_owned(),
        };
        let lines = [line];
        let events = events(&lines).into_iter();
        events.map(|event| (event.kind, event.addresses)).collect()
    }

    /// Names of programs, files, groups of processes and volumes are whatever a user likes.
    #[test]
    fn names_are_no_errors() {
        for text in [
            "amdgpu[4242]: segfault at 0 ip 0000000000401136 sp 00007ffd1c3a error 4 in 0000:03:00.0 99 uncorrectable hardware errors detected in umc block[401000+1000] likely on CPU 0 (core 0, socket 0)",
            "amdgpu[42]: segfault at 0 error 4 in 0000:03:00.0 ring gfx_0.0.0 timeout, signaled seq=1[401000+1000] likely on CPU 0",
            "amdgpu[42]: segfault at 0 error 4 in 0000:03:00.0 GPU reset(2) failed[401000+1000] likely on CPU 0",
            "NVRM: Xid ([42]: segfault at 0 error 4 in PCI:0000:01:00): 48, pid=1, name=x, DBE[401000+1000] likely on CPU 0",
            "NVRM: [42]: segfault at 0 in GPU 0000:01:00.0: RmInitAdapter failed! (0x61:0x56:1697)[401000+1000]",
            "[drm:f [amdgpu][1]: unhandled level 2 translation fault (11) at 0x0 in Fatal error during GPU init[0+1000]",
            "a[42]: segfault at 0 in pcieport 0000:00:01.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=x[0+1]",
            "traps: nvidia[42] trap invalid opcode ip:1 in a: loading of module with unavailable key is rejected[0+1]",
            "x 0000:03:00.0: page allocation failure: order:0, cpuset=PCIe Bus Error: severity=Uncorrectable (Fatal), type=x",
            "nvidia invoked oom-killer: gfp_mask=0, order=0, cpuset=GPU has fallen off the bus.",
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/AMD-Vi: Event logged [IO_PAGE_FAULT",
            "UDF-fs: INFO Mounting volume 'nvidia: disagrees about version of symbol a', timestamp 0",
            "NVRM: Xid (a 0000:01:00): 48, b",
            "NVRM: Xid (PCI:0000:01:00 x): 48, b",
            "NVRM: Xid (PCI:0000:01:00): x 48, b",
            "NVRM: Xid (PCI:0000:01:00) 48, b",
            "NVRM: API mismatch: the client 'SXid (0): 1, ' (pid 1)",
            "amdgpud: Fatal error during GPU init",
            "amdgpu 0000:03:00.0: amdgpu:  Process PSP load pid 1 thread  failed pid 2",
            "usb 1-1: Product: amdgpu 0000:03:00.0: GPU reset(2) failed",
        ] {
            assert_eq!(kinds_of(text), [], "{text}");
        }
    }

    #[test]
    fn a_name_says_of_no_other_gpu() {
        for (text, address) in [
            (
                "NVRM: Xid (PCI:0000:01:00 GPU-I:01 GPU-CI:00): 48, pid=1, name=0000:02:00.0, x",
                "0000:01:00.0",
            ),
            (
                "amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0, for process 0000:04:00.0 pid 1 thread x pid 1)",
                "0000:03:00.0",
            ),
        ] {
            let found = kinds_of(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].1, [address], "{text}");
        }
        let fault = "iommu ivhd0: AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:01:00.0 domain=0x1 address=0x0 flags=0x0]";
        assert_eq!(kinds_of(fault)[0].0, Kind::IommuFault);
    }

    #[test]
    fn addresses_in_all_spellings() {
        for (text, found) in [
            ("NVRM: Xid (PCI:0000:3B:00): 13", vec!["0000:3b:00.0"]),
            ("Xid (0000:03:00): 14", vec!["0000:03:00.0"]),
            ("GPU 0000:06:00.1: x 0000:06:00.1", vec!["0000:06:00.1"]),
            ("PCI:00000001:00:1f.7.", vec!["0001:00:1f.7"]),
            ("10000:e1:00.0", vec!["10000:e1:00.0"]),
            (
                "[8086:9d13] 12:34:56 0000:00 1:2:3 00:11:22:33:44:55",
                vec![],
            ),
            ("0000:00:20.0 0000:00:00.8 0000:000:00.0", vec![]),
        ] {
            assert_eq!(addresses(text), found, "{text}");
        }
    }
}
