//! Fills `facts/nvml.rs`: what NVIDIA's driver libraries answer.
//!
//! Runs in a worker of its own that can change nothing (`confine` in `worker.rs`): a call may hang, crash, or lie. What cannot be
//! true is a failure of that one value.

use crate::facts::nvml::{
    CudaDriver, MigMemory, Nvml, NvmlDevice, NvmlProcess, RemappedRows, RetiredPages,
};
use crate::facts::{Failure, Seen, Told};
use crate::host::Host;
use crate::host::machine::{NOT_LOADED, NOT_OF_THIS_SHAPE};
use libloading::Library;
use nvml_wrapper::Device;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{
    Clock, ComputeMode, EccCounter, GpuVirtualizationMode, MemoryError, RetirementCause,
    TemperatureSensor, TemperatureThreshold,
};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try, nvml_try_count};
use nvml_wrapper::struct_wrappers::device::{PciInfo, ProcessInfo};
use std::ffi::{OsStr, c_int};
use std::fmt::Display;
use std::mem::{ManuallyDrop, MaybeUninit};

/// Most devices that are asked: the largest machines have 16.
const MOST_DEVICES: u32 = 256;
/// Most MIG devices of a GPU that are asked for: a GPU has 7 at most.
const MOST_MIG: u32 = 16;
/// Most processes of a GPU that are listed.
const MOST_PROCESSES: usize = 32;
/// The longest list of processes or pages that is fetched.
const MOST_LISTED: u32 = 10_000;
/// No GPU has more memory, in bytes: the largest have a fiftieth of it.
const MOST_MEMORY: u64 = 16 << 40;
/// No chip is hotter, in degrees Celsius: all shut down before.
const MOST_DEGREES: u32 = 150;
/// No card draws more, in milliwatts: the largest draw a quarter of it.
const MOST_POWER: u32 = 5_000_000;
/// No clock is faster, in MHz.
const MOST_CLOCK: u32 = 100_000;
/// Longest text, in bytes: NVML's own buffers hold 96 at most.
const LONGEST_TEXT: usize = 128;

/// Source `nvml`.
pub fn nvml(host: &Host) -> Seen<Nvml> {
    // Who lists no GPU says how many there are.
    host.answer("nvml", || ask_nvml(host))
        .and_then(|nvml| match nvml.count.0 {
            Seen::Unasked(_) if nvml.devices.is_empty() => Seen::error(NOT_OF_THIS_SHAPE),
            _ => Seen::Got(nvml),
        })
}

/// Source `cuda`.
pub fn cuda(host: &Host) -> Seen<CudaDriver> {
    host.answer("cuda", || ask_cuda(host))
}

fn ask_nvml(host: &Host) -> Seen<Nvml> {
    let (file, _loaded) = match load(host) {
        Seen::Got(loaded) => loaded,
        other => return other.map(|_| Nvml::default()),
    };
    let caller = Caller { host, of: "" };
    let mut builder = nvml_wrapper::Nvml::builder();
    let init = caller.call("nvmlInit_v2", || builder.lib_path(OsStr::new(&file)).init());
    let nvml = match init {
        // Never shut down: that call can hang like any other, and the process ends in a moment.
        Seen::Got(nvml) => ManuallyDrop::new(nvml),
        other => return other.map(|_| Nvml::default()),
    };
    let version = caller.call("nvmlSystemGetCudaDriverVersion_v2", || {
        nvml.sys_cuda_driver_version()
    });
    let count = caller.call("nvmlDeviceGetCount_v2", || nvml.device_count());
    let mut facts = Nvml {
        library: host.options().library.clone(),
        driver_version: Told(
            caller
                .call("nvmlSystemGetDriverVersion", || nvml.sys_driver_version())
                .and_then(text),
        ),
        cuda_driver_version: Told(version.and_then(cuda_version)),
        nvml_version: Told(
            caller
                .call("nvmlSystemGetNVMLVersion", || nvml.sys_nvml_version())
                .and_then(text),
        ),
        count: Told(count.clone().and_then(|count| up_to(count, MOST_DEVICES))),
        ..Nvml::default()
    };
    let pids_are_ours = sees_all_processes(host);
    for index in 0..count.into_got().unwrap_or(0).min(MOST_DEVICES) {
        let of = format!("GPU {index}");
        let caller = Caller { host, of: &of };
        let found = caller
            .call("nvmlDeviceGetHandleByIndex_v2", || {
                nvml.device_by_index(index)
            })
            .and_then(|device| {
                let pci = caller.call("nvmlDeviceGetPciInfo_v3", || device.pci_info());
                pci.and_then(|pci| address(&pci))
                    .map(|address| (device, address))
            })
            .and_then(|(device, address)| {
                if facts.devices.contains_key(&address) {
                    return nonsense(format!("a second device at {address}"));
                }
                Seen::Got((device, address))
            });
        match found {
            Seen::Got((device, address)) => {
                let caller = Caller { host, of: &address };
                let told = ask_device(&caller, &device, index, pids_are_ours);
                facts.devices.insert(address, told);
            }
            Seen::Failed(Failure::Error { what }) => {
                facts.unreachable.insert(index, what);
            }
            other => {
                facts.unreachable.insert(index, other.map(|_| ()).why());
            }
        }
    }
    Seen::Got(facts)
}

/// Only the version is asked for: `cuInit` would open devices.
fn ask_cuda(host: &Host) -> Seen<CudaDriver> {
    load(host).and_then(|(_, library)| {
        // The process ends in a moment; nothing in the library needs to be taken down first.
        let library = ManuallyDrop::new(library);
        host.calling("cuDriverGetVersion");
        let mut version: c_int = 0;
        #[expect(
            unsafe_code,
            reason = "a function of a library that is loaded at run time"
        )]
        // SAFETY: cuda.h declares `CUresult cuDriverGetVersion(int *)`, an enum of the size of an int. It may be called before
        // `cuInit`, and writes one int.
        let status = unsafe {
            match library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"cuDriverGetVersion\0")
            {
                Ok(function) => function(&mut version),
                Err(_) => return Seen::error("FUNCTION_NOT_FOUND"),
            }
        };
        if status != 0 {
            return Seen::error(format!("CUDA error {status}"));
        }
        Seen::Got(CudaDriver {
            library: host.options().library.clone(),
            driver_version: Told(cuda_version(version)),
        })
    })
}

/// Loads the library that was found for a source. The answer is its real path, and the library itself. It may hang, crash and
/// print, so nothing else may run in this process.
pub(super) fn load(host: &Host) -> Seen<(String, Library)> {
    let file = match host.library_file() {
        Seen::Got(file) => file.clone(),
        Seen::Unasked(why) => return Seen::Unasked(*why),
        other => return Seen::error(format!("{NOT_LOADED}{}", other.why())),
    };
    host.calling("dlopen");
    #[expect(
        unsafe_code,
        clippy::disallowed_methods,
        reason = "a library that is loaded at run time"
    )]
    // SAFETY: loading runs the library's own start-up code. It is a library of the driver or of ROCm, which programs that use
    // the GPU load, and this process is there for nothing else: what it breaks is an answer.
    let library = unsafe { Library::new(&file) };
    match library {
        Ok(library) => Seen::Got((file, library)),
        Err(error) => {
            let handed_out = host.options().library.as_deref().unwrap_or_default();
            let why = reason(&error).replace(&file, handed_out);
            Seen::error(format!("{NOT_LOADED}{why}"))
        }
    }
}

/// The loader's own words.
fn reason(error: &libloading::Error) -> String {
    let words = match error {
        libloading::Error::DlOpen { desc } => format!("{desc:?}"),
        other => other.to_string(),
    };
    let words = words.trim_matches('"').chars().filter(|c| !c.is_control());
    words.take(4 * LONGEST_TEXT).collect()
}

/// Says what is called, of which device.
struct Caller<'a> {
    host: &'a Host,
    of: &'a str,
}

impl Caller<'_> {
    fn call<T>(&self, call: &str, ask: impl FnOnce() -> Result<T, NvmlError>) -> Seen<T> {
        let call = format!("{call} {}", self.of);
        self.host.calling(call.trim_end());
        match ask() {
            Ok(value) => Seen::Got(value),
            Err(error) => Seen::error(name(&error)),
        }
    }
}

/// NVML's own name of an error, without `NVML_ERROR_`.
fn name(error: &NvmlError) -> String {
    let name = match error {
        NvmlError::Uninitialized => "UNINITIALIZED",
        NvmlError::InvalidArg => "INVALID_ARGUMENT",
        NvmlError::NotSupported => "NOT_SUPPORTED",
        NvmlError::NoPermission => "NO_PERMISSION",
        NvmlError::NotFound => "NOT_FOUND",
        NvmlError::InsufficientSize(_) => "INSUFFICIENT_SIZE",
        NvmlError::InsufficientPower => "INSUFFICIENT_POWER",
        NvmlError::DriverNotLoaded => "DRIVER_NOT_LOADED",
        NvmlError::Timeout => "TIMEOUT",
        NvmlError::IrqIssue => "IRQ_ISSUE",
        NvmlError::LibraryNotFound => "LIBRARY_NOT_FOUND",
        // The driver is older than the question.
        NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_) => "FUNCTION_NOT_FOUND",
        NvmlError::CorruptedInfoROM => "CORRUPTED_INFOROM",
        NvmlError::GpuLost => "GPU_IS_LOST",
        NvmlError::ResetRequired => "RESET_REQUIRED",
        NvmlError::OperatingSystem => "OPERATING_SYSTEM",
        NvmlError::LibRmVersionMismatch => "LIB_RM_VERSION_MISMATCH",
        NvmlError::InUse => "IN_USE",
        NvmlError::InsufficientMemory => "MEMORY",
        NvmlError::NoData => "NO_DATA",
        NvmlError::VgpuEccNotSupported => "VGPU_ECC_NOT_SUPPORTED",
        NvmlError::Unknown => "UNKNOWN",
        NvmlError::UnexpectedVariant(25) => "FREQ_NOT_SUPPORTED",
        NvmlError::UnexpectedVariant(26) => "ARGUMENT_VERSION_MISMATCH",
        NvmlError::UnexpectedVariant(27) => "DEPRECATED",
        NvmlError::UnexpectedVariant(28) => "NOT_READY",
        NvmlError::UnexpectedVariant(29) => "GPU_NOT_FOUND",
        NvmlError::UnexpectedVariant(30) => "INVALID_STATE",
        NvmlError::UnexpectedVariant(number) => return format!("makes no sense: {number}"),
        _ => "makes no sense",
    };
    name.to_owned()
}

/// An answer that cannot be true.
fn nonsense<T>(value: impl Display) -> Seen<T> {
    Seen::error(format!("makes no sense: {value}"))
}

fn up_to(value: u32, most: u32) -> Seen<u32> {
    if value > most {
        return nonsense(value);
    }
    Seen::Got(value)
}

fn between(value: u32, least: u32, most: u32) -> Seen<u32> {
    if value < least {
        return nonsense(value);
    }
    up_to(value, most)
}

fn bytes(value: u64) -> Seen<u64> {
    if value > MOST_MEMORY {
        return nonsense(value);
    }
    Seen::Got(value)
}

/// Bytes of something that is there.
fn some_bytes(value: u64) -> Seen<u64> {
    if value == 0 {
        return nonsense(value);
    }
    bytes(value)
}

fn milliwatts(value: u32) -> Seen<u64> {
    up_to(value, MOST_POWER).map(u64::from)
}

fn degrees(value: u32) -> Seen<u32> {
    up_to(value, MOST_DEGREES)
}

fn megahertz(value: u32) -> Seen<u32> {
    up_to(value, MOST_CLOCK)
}

/// A text as it is, where it is one.
fn text(value: String) -> Seen<String> {
    if value.is_empty() || value.len() > LONGEST_TEXT || value.chars().any(char::is_control) {
        return Seen::error("makes no sense: no text");
    }
    Seen::Got(value)
}

/// `12040` is CUDA 12.4.
fn cuda_version(value: c_int) -> Seen<u32> {
    match u32::try_from(value) {
        Ok(version) => between(version, 1_000, 99_999),
        Err(_) => nonsense(value),
    }
}

/// The address as the kernel writes it. NVML writes the domain with eight digits.
fn address(pci: &PciInfo) -> Seen<String> {
    let parts: Vec<&str> = pci.bus_id.split([':', '.']).collect();
    let hex = |text: &str, most: u32| {
        let number = u32::from_str_radix(text, 16).ok();
        number.filter(|number| *number <= most && !text.starts_with('+'))
    };
    if let [domain, bus, device, function] = parts[..]
        && let Some(domain) = hex(domain, u32::MAX)
        && let Some(bus) = hex(bus, 0xff)
        && let Some(device) = hex(device, 0x1f)
        && let Some(function) = hex(function, 7)
    {
        return Seen::Got(format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"));
    }
    Seen::error("makes no sense: no PCI address")
}

fn enabled(value: u32) -> Seen<String> {
    match value {
        0 => Seen::Got("disabled".to_owned()),
        1 => Seen::Got("enabled".to_owned()),
        other => nonsense(other),
    }
}

/// Numbers of processes mean the same here as to the kernel: this is no container.
fn sees_all_processes(host: &Host) -> bool {
    /// Number of the first pid namespace, `PROC_PID_INIT_INO` of the kernel.
    const FIRST: &str = "pid:[4026531836]";
    host.link("/proc/self/ns/pid")
        .got()
        .is_some_and(|namespace| namespace == FIRST)
}

fn ask_device(caller: &Caller, device: &Device, index: u32, pids_are_ours: bool) -> NvmlDevice {
    let memory = caller.call("nvmlDeviceGetMemoryInfo", || memory(device));
    let limits = caller.call("nvmlDeviceGetPowerManagementLimitConstraints", || {
        device.power_management_limit_constraints()
    });
    let ecc = caller.call("nvmlDeviceGetEccMode", || device.is_ecc_enabled());
    let ecc_errors = |kind, counter| {
        caller.call("nvmlDeviceGetTotalEccErrors", || {
            device.total_ecc_errors(kind, counter)
        })
    };
    let limit = |threshold| {
        let call = "nvmlDeviceGetTemperatureThreshold";
        let told = caller.call(call, || device.temperature_threshold(threshold));
        Told(told.and_then(degrees))
    };
    let clock = |kind| {
        let told = caller.call("nvmlDeviceGetClockInfo", || device.clock_info(kind));
        Told(told.and_then(megahertz))
    };
    let max_clock = |kind| {
        let told = caller.call("nvmlDeviceGetMaxClockInfo", || device.max_clock_info(kind));
        Told(told.and_then(megahertz))
    };
    let mig = caller.call("nvmlDeviceGetMigMode", || device.mig_mode());
    let mig_mode = mig.as_ref().and_then(|mode| enabled(mode.current));
    let mig_devices = match mig_mode.got().map(String::as_str) {
        Some("enabled") => mig_devices(caller, device),
        _ => mig_mode.clone().map(|_| Vec::new()),
    };
    let fabric = caller.call("nvmlDeviceGetGpuFabricInfo", || fabric(device));
    NvmlDevice {
        index,
        minor: Told(
            caller
                .call("nvmlDeviceGetMinorNumber", || device.minor_number())
                .and_then(|minor| up_to(minor, 0xf_ffff)),
        ),
        name: Told(
            caller
                .call("nvmlDeviceGetName", || device.name())
                .and_then(text),
        ),
        uuid: Told(
            caller
                .call("nvmlDeviceGetUUID", || device.uuid())
                .and_then(text),
        ),
        vbios: Told(
            caller
                .call("nvmlDeviceGetVbiosVersion", || device.vbios_version())
                .and_then(text),
        ),
        memory_bytes: Told(memory.as_ref().and_then(|(total, _)| some_bytes(*total))),
        memory_used_bytes: Told(memory.and_then(|(total, used)| {
            if total == 0 || used > total {
                return nonsense(used);
            }
            bytes(used)
        })),
        bar1_bytes: Told(
            caller
                .call("nvmlDeviceGetBAR1MemoryInfo", || device.bar1_memory_info())
                .and_then(|bar1| some_bytes(bar1.total)),
        ),
        compute_capability: Told(
            caller
                .call("nvmlDeviceGetCudaComputeCapability", || {
                    device.cuda_compute_capability()
                })
                .and_then(|capability| match (capability.major, capability.minor) {
                    (major @ 1..=99, minor @ 0..=99) => Seen::Got(format!("{major}.{minor}")),
                    (major, minor) => nonsense(format!("{major}.{minor}")),
                }),
        ),
        compute_mode: Told(
            caller
                .call("nvmlDeviceGetComputeMode", || device.compute_mode())
                .map(|mode| match mode {
                    ComputeMode::Default => "default".to_owned(),
                    ComputeMode::ExclusiveThread => "exclusive_thread".to_owned(),
                    ComputeMode::Prohibited => "prohibited".to_owned(),
                    ComputeMode::ExclusiveProcess => "exclusive_process".to_owned(),
                }),
        ),
        performance_state: Told(
            caller
                .call("nvmlDeviceGetPerformanceState", || {
                    device.performance_state()
                })
                .and_then(|state| up_to(state.as_c(), 15))
                .map(|state| format!("P{state}")),
        ),
        persistence: Told(caller.call("nvmlDeviceGetPersistenceMode", || {
            device.is_in_persistent_mode()
        })),
        display_active: Told(
            caller.call("nvmlDeviceGetDisplayActive", || device.is_display_active()),
        ),
        power_mw: Told(
            caller
                .call("nvmlDeviceGetPowerUsage", || device.power_usage())
                .and_then(milliwatts),
        ),
        power_limit_mw: Told(
            caller
                .call("nvmlDeviceGetEnforcedPowerLimit", || {
                    device.enforced_power_limit()
                })
                .and_then(milliwatts),
        ),
        power_limit_default_mw: Told(
            caller
                .call("nvmlDeviceGetPowerManagementDefaultLimit", || {
                    device.power_management_limit_default()
                })
                .and_then(milliwatts),
        ),
        power_limit_min_mw: Told(
            limits
                .as_ref()
                .and_then(|limits| milliwatts(limits.min_limit)),
        ),
        power_limit_max_mw: Told(limits.and_then(|limits| milliwatts(limits.max_limit))),
        temperature_c: Told(
            caller
                .call("nvmlDeviceGetTemperature", || {
                    device.temperature(TemperatureSensor::Gpu)
                })
                .and_then(degrees),
        ),
        slowdown_c: limit(TemperatureThreshold::Slowdown),
        shutdown_c: limit(TemperatureThreshold::Shutdown),
        sm_clock_mhz: clock(Clock::SM),
        memory_clock_mhz: clock(Clock::Memory),
        max_sm_clock_mhz: max_clock(Clock::SM),
        max_memory_clock_mhz: max_clock(Clock::Memory),
        throttle_reasons: Told(
            caller
                .call("nvmlDeviceGetCurrentClocksThrottleReasons", || {
                    device.current_throttle_reasons()
                })
                .map(reasons),
        ),
        ecc: Told(ecc.as_ref().map(|ecc| ecc.currently_enabled)),
        ecc_pending: Told(ecc.map(|ecc| ecc.pending_enabled)),
        ecc_uncorrected: Told(ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)),
        ecc_uncorrected_lifetime: Told(ecc_errors(MemoryError::Uncorrected, EccCounter::Aggregate)),
        ecc_corrected: Told(ecc_errors(MemoryError::Corrected, EccCounter::Volatile)),
        remapped_rows: Told(caller.call("nvmlDeviceGetRemappedRows", || remapped(device))),
        retired_pages: Told(retired(caller, device)),
        link_generation: Told(
            caller
                .call("nvmlDeviceGetCurrPcieLinkGeneration", || {
                    device.current_pcie_link_gen()
                })
                .and_then(|generation| between(generation, 1, 10)),
        ),
        link_width: Told(
            caller
                .call("nvmlDeviceGetCurrPcieLinkWidth", || {
                    device.current_pcie_link_width()
                })
                .and_then(|lanes| between(lanes, 1, 64)),
        ),
        max_link_generation: Told(
            caller
                .call("nvmlDeviceGetMaxPcieLinkGeneration", || {
                    device.max_pcie_link_gen()
                })
                .and_then(|generation| between(generation, 1, 10)),
        ),
        max_link_width: Told(
            caller
                .call("nvmlDeviceGetMaxPcieLinkWidth", || {
                    device.max_pcie_link_width()
                })
                .and_then(|lanes| between(lanes, 1, 64)),
        ),
        mig_mode_pending: Told(mig.and_then(|mode| enabled(mode.pending))),
        mig_mode: Told(mig_mode),
        mig_instances: Told(
            mig_devices
                .as_ref()
                .map(|devices| u32::try_from(devices.len()).unwrap_or(MOST_MIG)),
        ),
        mig_memory: Told(mig_devices.as_ref().map(|devices| {
            let memory = devices.iter().filter_map(|(_, memory)| memory.clone());
            memory.collect()
        })),
        mig_uuids: Told(
            mig_devices.map(|devices| devices.into_iter().filter_map(|(uuid, _)| uuid).collect()),
        ),
        fabric_state: Told(fabric.clone().and_then(|(state, _)| match state {
            0 => Seen::Got("not_supported".to_owned()),
            1 => Seen::Got("not_started".to_owned()),
            2 => Seen::Got("in_progress".to_owned()),
            3 => Seen::Got("completed".to_owned()),
            other => nonsense(other),
        })),
        fabric_status: Told(fabric.map(|(_, status)| status)),
        licence: Told(licence(caller, device)),
        processes: Told(processes(caller, device, pids_are_ours)),
    }
}

/// All memory and memory in use, in bytes. Drivers before 510 have the first form of the call only, which the wrapper lacks.
fn memory(device: &Device) -> Result<(u64, u64), NvmlError> {
    match device.memory_info() {
        Ok(memory) => Ok((memory.total, memory.used)),
        Err(NvmlError::FailedToLoadSymbol(_)) => {
            let call = nvml_sym(device.nvml().lib().nvmlDeviceGetMemoryInfo.as_ref())?;
            let mut memory = MaybeUninit::zeroed();
            #[expect(unsafe_code, reason = "a call that the wrapper lacks")]
            // SAFETY: the handle is the library's own, the structure is the one of the declaration, and all zeros are a value
            // of it.
            let memory = unsafe {
                nvml_try(call(device.handle(), memory.as_mut_ptr()))?;
                memory.assume_init()
            };
            Ok((memory.total, memory.used))
        }
        Err(error) => Err(error),
    }
}

/// The wrapper lacks this call.
fn remapped(device: &Device) -> Result<RemappedRows, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetRemappedRows.as_ref())?;
    let (mut correctable, mut uncorrectable, mut pending, mut failure) = (0, 0, 0, 0);
    #[expect(unsafe_code, reason = "a call that the wrapper lacks")]
    // SAFETY: the handle is the library's own, and the call writes four unsigned ints.
    unsafe {
        nvml_try(call(
            device.handle(),
            &mut correctable,
            &mut uncorrectable,
            &mut pending,
            &mut failure,
        ))?;
    }
    Ok(RemappedRows {
        correctable,
        uncorrectable,
        pending: pending != 0,
        failure: failure != 0,
    })
}

/// State of the fabric and the name of its status. The wrapper lacks this call.
fn fabric(device: &Device) -> Result<(u32, String), NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetGpuFabricInfo.as_ref())?;
    let mut info = MaybeUninit::zeroed();
    #[expect(unsafe_code, reason = "a call that the wrapper lacks")]
    // SAFETY: the handle is the library's own, the structure is the one of the declaration, and all zeros are a value of it.
    let info = unsafe {
        nvml_try(call(device.handle(), info.as_mut_ptr()))?;
        info.assume_init()
    };
    let status = nvml_try(info.status).map_or_else(|error| name(&error), |()| "SUCCESS".to_owned());
    Ok((u32::from(info.state), status))
}

/// Only a vGPU needs a licence to compute. The wrapper lacks the call.
fn licence(caller: &Caller, device: &Device) -> Seen<String> {
    let mode = caller.call("nvmlDeviceGetVirtualizationMode", || {
        device.virtualization_mode()
    });
    match mode {
        Seen::Got(GpuVirtualizationMode::Vgpu) => {}
        Seen::Got(_) => return Seen::error("NOT_SUPPORTED"),
        other => return other.map(|_| String::new()),
    }
    let licensed = caller.call("nvmlDeviceGetGridLicensableFeatures_v4", || {
        let lib = device.nvml().lib();
        let call = nvml_sym(lib.nvmlDeviceGetGridLicensableFeatures_v4.as_ref())?;
        let mut features = MaybeUninit::zeroed();
        #[expect(unsafe_code, reason = "a call that the wrapper lacks")]
        // SAFETY: the handle is the library's own, the structure is the one of the declaration, and all zeros are a value
        // of it.
        let features = unsafe {
            nvml_try(call(device.handle(), features.as_mut_ptr()))?;
            features.assume_init()
        };
        if features.isGridLicenseSupported == 0 {
            return Err(NvmlError::NotSupported);
        }
        let count = usize::try_from(features.licensableFeaturesCount).unwrap_or(usize::MAX);
        let listed = features.gridLicensableFeatures.iter().take(count);
        Ok(listed
            .map(|feature| feature.featureState)
            .any(|state| state != 0))
    });
    licensed.map(|licensed| if licensed { "licensed" } else { "unlicensed" }.to_owned())
}

/// A MIG device: its UUID and its memory, where it tells them.
type MigDevice = (Option<String>, Option<MigMemory>);

fn mig_devices(caller: &Caller, device: &Device) -> Seen<Vec<MigDevice>> {
    let most = caller.call("nvmlDeviceGetMaxMigDeviceCount", || {
        device.mig_device_count()
    });
    most.map(|most| {
        let mut found = Vec::new();
        for index in 0..most.min(MOST_MIG) {
            let call = "nvmlDeviceGetMigDeviceHandleByIndex";
            if let Seen::Got(part) = caller.call(call, || device.mig_device_by_index(index)) {
                let uuid = caller.call("nvmlDeviceGetUUID", || part.uuid());
                let memory = caller.call("nvmlDeviceGetMemoryInfo", || memory(&part));
                let memory = memory.and_then(|(all, used)| {
                    some_bytes(all).and_then(|bytes| match used {
                        used if used <= bytes => Seen::Got(MigMemory {
                            bytes,
                            used_bytes: used,
                        }),
                        used => nonsense(used),
                    })
                });
                found.push((uuid.and_then(text).into_got(), memory.into_got()));
            }
        }
        found
    })
}

fn retired(caller: &Caller, device: &Device) -> Seen<RetiredPages> {
    let pages = |cause| {
        let call = "nvmlDeviceGetRetiredPages";
        let told = caller.call(call, || retired_count(device, cause));
        told.and_then(|count| up_to(count, MOST_LISTED))
    };
    pages(RetirementCause::MultipleSingleBitEccErrors).and_then(|single_bit| {
        pages(RetirementCause::DoubleBitEccError).and_then(|double_bit| {
            let pending = caller.call("nvmlDeviceGetRetiredPagesPendingStatus", || {
                device.are_pages_pending_retired()
            });
            pending.map(|pending| RetiredPages {
                single_bit,
                double_bit,
                pending,
            })
        })
    })
}

/// How many pages there are. The wrapper would make room for as many as the library says, however many that are.
fn retired_count(device: &Device, cause: RetirementCause) -> Result<u32, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetRetiredPages.as_ref())?;
    let (mut count, mut nowhere) = (0, 0);
    #[expect(unsafe_code, reason = "a call that the wrapper has with a list only")]
    // SAFETY: the handle is the library's own; there is room for no address, and that is what the count says.
    nvml_try_count(unsafe { call(device.handle(), cause.as_c(), &mut count, &mut nowhere) })?;
    Ok(count)
}

/// The names of the reasons, as NVML calls them.
fn reasons(reasons: ThrottleReasons) -> Vec<String> {
    let named = reasons.iter_names();
    named.map(|(name, _)| name.to_ascii_lowercase()).collect()
}

fn processes(caller: &Caller, device: &Device, pids_are_ours: bool) -> Seen<Vec<NvmlProcess>> {
    let fits = |count: Result<u32, NvmlError>| match count? {
        0..=MOST_LISTED => Ok(()),
        other => Err(NvmlError::UnexpectedVariant(other)),
    };
    let compute = caller.call("nvmlDeviceGetComputeRunningProcesses_v3", || {
        fits(device.running_compute_processes_count())?;
        device.running_compute_processes()
    });
    let graphics = caller.call("nvmlDeviceGetGraphicsRunningProcesses_v3", || {
        fits(device.running_graphics_processes_count())?;
        device.running_graphics_processes()
    });
    let listed = |processes: Vec<ProcessInfo>, kind: &str| -> Vec<NvmlProcess> {
        let processes = processes.into_iter();
        processes
            .map(|process| NvmlProcess {
                pid: process.pid,
                name: None,
                uid: None,
                used_bytes: match process.used_gpu_memory {
                    UsedGpuMemory::Used(used) => bytes(used).into_got(),
                    UsedGpuMemory::Unavailable => None,
                },
                kind: kind.to_owned(),
            })
            .collect()
    };
    let mut all = match (compute, graphics) {
        (Seen::Got(compute), Seen::Got(graphics)) => {
            let mut all = listed(compute, "compute");
            all.extend(listed(graphics, "graphics"));
            all
        }
        // Compute cards know of no graphics.
        (Seen::Got(compute), _) => listed(compute, "compute"),
        (other, _) => return other.map(|_| Vec::new()),
    };
    all.truncate(MOST_PROCESSES);
    for process in &mut all {
        (process.name, process.uid) = name_and_owner(caller.host, process.pid, pids_are_ours);
    }
    Seen::Got(all)
}

/// What a process is called, and whose it is. In a container the number may be that of another one, which is not looked at.
fn name_and_owner(host: &Host, pid: u32, pids_are_ours: bool) -> (Option<String>, Option<u32>) {
    if !pids_are_ours {
        return (None, None);
    }
    let comm = host.value(&format!("/proc/{pid}/comm"));
    let owner = host.stat(&format!("/proc/{pid}")).into_got();
    (
        comm.and_then(text).into_got(),
        owner.and_then(|stat| stat.uid),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;
    use crate::host::Options;

    fn at(bus_id: &str) -> Seen<String> {
        address(&PciInfo {
            bus: 0,
            bus_id: bus_id.to_owned(),
            device: 0,
            domain: 0,
            pci_device_id: 0,
            pci_sub_system_id: None,
        })
    }

    #[test]
    fn addresses_are_the_kernels() {
        for (written, address) in [
            ("00000000:01:00.0", "0000:01:00.0"),
            ("0000:C1:1F.7", "0000:c1:1f.7"),
            ("00010000:01:00.0", "10000:01:00.0"),
        ] {
            assert_eq!(at(written), Seen::Got(address.to_owned()));
        }
        for wrong in [
            "",
            "01:00.0",
            "00000000:01:00",
            "0000:01:20.0",
            "0000:01:00.8",
            "0000:100:00.0",
            "0000:+1:00.0",
            "0000:01:00.0\u{1b}",
            "0000:01:00.0.0",
            "x:y:z.0",
        ] {
            assert!(matches!(at(wrong), Seen::Failed(_)), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_true_is_a_failure() {
        assert_eq!(some_bytes(24 << 30), Seen::Got(24 << 30));
        for wrong in [0, (16 << 40) + 1, u64::MAX] {
            assert!(some_bytes(wrong).is_unknown(), "{wrong}");
        }
        assert_eq!(bytes(0), Seen::Got(0));
        assert_eq!(degrees(0), Seen::Got(0));
        assert!(degrees(151).is_unknown());
        assert_eq!(milliwatts(450_000), Seen::Got(450_000));
        assert!(milliwatts(u32::MAX).is_unknown());
        assert_eq!(cuda_version(12_040), Seen::Got(12_040));
        for wrong in [-1, 0, 999, 100_000] {
            assert!(cuda_version(wrong).is_unknown(), "{wrong}");
        }
        assert_eq!(text("RTX".to_owned()), Seen::Got("RTX".to_owned()));
        for wrong in ["", "RTX\u{1b}[31m", "a\nb", &"x".repeat(200)] {
            assert!(text(wrong.to_owned()).is_unknown(), "{wrong:?}");
        }
        assert_eq!(enabled(1), Seen::Got("enabled".to_owned()));
        assert!(enabled(2).is_unknown());
    }

    #[test]
    fn processes_of_others_are_not_looked_at() {
        let mut tree = Tree::proved();
        tree.file("/proc/7/comm", "python3\n");
        let (host, asked) = tree.host(Options::default());
        assert_eq!(name_and_owner(&host, 7, false), (None, None));
        assert!(asked.borrow().is_empty(), "{asked:?}");
        let (name, _) = name_and_owner(&host, 7, true);
        assert_eq!(name.as_deref(), Some("python3"));
    }

    #[test]
    fn reasons_have_their_names() {
        let some = ThrottleReasons::GPU_IDLE | ThrottleReasons::HW_THERMAL_SLOWDOWN;
        assert_eq!(reasons(some), ["gpu_idle", "hw_thermal_slowdown"]);
        assert!(reasons(ThrottleReasons::empty()).is_empty());
    }
}
