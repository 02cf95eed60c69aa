//! Fills `facts/rocm_smi.rs`: ROCm SMI.
//!
//! Runs in a worker of its own that can change nothing (`confine` in `worker.rs`): a call may hang, crash, or lie. What cannot
//! be true is a failure of that one value.
//!
//! The library is asked for little: other calls panic, abort or give garbage, some with one version and some with another.
//! By itself it leaves things behind: a mutex for each card in `/dev/shm`, and from ROCm 5.7 on two files for each card
//! in `/tmp`. A flag keeps it from the first (`RSMI_INIT_FLAG_THRAD_ONLY_MUTEX`, ROCm 6.1.2 and newer); the filter
//! of the process from the second, which the library takes without complaint.
//! Source: `src/rocm_smi_device.cc`, `third_party/shared_mutex/shared_mutex.cc` of ROCm/rocm_smi_lib.

use super::attributes::is_numbered;
use super::nvml::load;
use crate::facts::rocm_smi::{RocmSmi, RocmSmiDevice};
use crate::facts::{Seen, Told, Why};
use crate::host::Host;
use libloading::Library;
use rocm_smi_lib_sys::RawRsmi;
use rocm_smi_lib_sys::bindings::{
    RsmiMemoryType, RsmiTemperatureMetric, RsmiTemperatureSensor, RsmiVersion,
};
use rocm_smi_lib_sys::error::RocmErr;
use std::ffi::CStr;

/// `RSMI_INIT_FLAG_THRAD_ONLY_MUTEX`.
const MUTEX_OF_THE_PROCESS: u64 = 1 << 58;
/// Version of the library in ROCm 6.1.2, the first that knows the flag; later the numbers begin again.
const FIRST_WITH_FLAG: (u32, u32) = (7, 2);
/// Exported from ROCm 6.2 on.
const NEWER_THAN_FLAG: &[u8] = b"rsmi_dev_partition_id_get";
/// More devices than any machine has: eight GPUs of eight partitions are 64.
const MOST_DEVICES: u32 = 1024;
/// More memory than any GPU has, in bytes.
const MOST_MEMORY: u64 = 1 << 50;
/// Temperatures that a running chip has, in thousandths of a degree Celsius.
const TEMPERATURES: std::ops::RangeInclusive<i64> = 1_000..=150_000;
/// Room for a text, in bytes.
const TEXT: usize = 256;

/// `rsmi_status_t` without `RSMI_STATUS_`, by its number. The last three came with ROCm 6.4.
const STATUS: [&str; 23] = [
    "SUCCESS",
    "INVALID_ARGS",
    "NOT_SUPPORTED",
    "FILE_ERROR",
    "PERMISSION",
    "OUT_OF_RESOURCES",
    "INTERNAL_EXCEPTION",
    "INPUT_OUT_OF_BOUNDS",
    "INIT_ERROR",
    "NOT_YET_IMPLEMENTED",
    "NOT_FOUND",
    "INSUFFICIENT_SIZE",
    "INTERRUPT",
    "UNEXPECTED_SIZE",
    "NO_DATA",
    "UNEXPECTED_DATA",
    "BUSY",
    "REFCOUNT_OVERFLOW",
    "SETTING_UNAVAILABLE",
    "AMDGPU_RESTART_ERR",
    "DRM_ERROR",
    "FAIL_LOAD_MODULE",
    "FAIL_LOAD_SYMBOL",
];
/// A function that this version of the library does not have.
const NOT_EXPORTED: &str = "NOT_EXPORTED";
/// The call went well and what it gave cannot be.
const NONSENSE: &str = "the value makes no sense";

/// Source `rocm_smi`.
pub fn rocm_smi(host: &Host) -> Seen<RocmSmi> {
    host.answer("rocm_smi", || {
        load(host).and_then(|(path, library)| ask(host, &path, library))
    })
}

/// Asks the library that was loaded from this path.
fn ask(host: &Host, path: &str, library: Library) -> Seen<RocmSmi> {
    host.calling("rsmi_version_get");
    let (version, knows_flag) = match version(&library) {
        Ok((major, minor, patch)) => (
            format!("{major}.{minor}.{patch}"),
            (major, minor) >= FIRST_WITH_FLAG || exports(&library, NEWER_THAN_FLAG),
        ),
        Err(status) => return Seen::error(format!("its version is not known: {status}")),
    };
    if !knows_flag && !mutexes_are_there(host) {
        return Seen::Unasked(Why::WouldChange);
    }
    host.calling("rsmi_init");
    let flags = if knows_flag { MUTEX_OF_THE_PROCESS } else { 0 };
    if let Err(status) = init(&library, flags) {
        return Seen::error(status);
    }
    let Some(mut smi) = Smi::of(library, path) else {
        return Seen::error("it was initialised and does not answer");
    };
    let mut answer = RocmSmi {
        library: host.options().library.clone(),
        version: Told(Seen::Got(version)),
        ..RocmSmi::default()
    };
    host.calling("rsmi_num_monitor_devices");
    answer.count = smi.count();
    for index in 0..answer.count.got().copied().unwrap_or(0) {
        host.calling(&format!("rsmi_dev_pci_id_get({index})"));
        let address = match smi.pci_id(index) {
            Ok(id) => address(host, id),
            Err(status) => {
                answer.unreachable.insert(index, status.to_owned());
                continue;
            }
        };
        if let Some(first) = answer.devices.get_mut(&address) {
            first.partitions.push(index);
            continue;
        }
        let device = smi.device(host, index);
        answer.devices.insert(address, device);
    }
    // No `rsmi_shut_down`: the process ends, and a library that hangs there would cost the answer.
    std::mem::forget(smi);
    Seen::Got(answer)
}

/// Whether the mutex of every AMD card is there already. A library that does not know the flag makes those that are missing.
fn mutexes_are_there(host: &Host) -> bool {
    let drm = "/sys/class/drm";
    let cards = match host.list(drm) {
        Seen::Got(listing) if listing.whole => listing.names,
        // Without cards there is nothing to guard.
        Seen::Absent => return true,
        _ => return false,
    };
    cards
        .iter()
        .filter(|name| is_numbered(name, "card"))
        .filter(|card| {
            host.value(&format!("{drm}/{card}/device/vendor"))
                .got()
                .is_none_or(|vendor| vendor == "0x1002")
        })
        .all(|card| {
            host.exists(&format!("/dev/shm/rocm_smi_{card}"))
                .got()
                .is_some()
        })
}

/// The PCI address in a BDFID: domain in bits 63 to 32, bus in 15 to 8, device in 7 to 3, function in 2 to 0. Bits 31 to 28
/// number the partition. Where the driver keeps that number in the function instead, no such function is on the bus, and
/// the address is that of the whole GPU.
fn address(host: &Host, id: u64) -> String {
    let (domain, bus, device, function) = (id >> 32, id >> 8 & 0xff, id >> 3 & 0x1f, id & 7);
    let function_zero = format!("{domain:04x}:{bus:02x}:{device:02x}.0");
    let address = format!("{domain:04x}:{bus:02x}:{device:02x}.{function}");
    let on_bus = |address: &str| host.exists(&format!("/sys/bus/pci/devices/{address}"));
    if function != 0 && on_bus(&address).is_absent() && on_bus(&function_zero).got().is_some() {
        function_zero
    } else {
        address
    }
}

fn status_name(status: u32) -> &'static str {
    let at = usize::try_from(status).ok();
    at.and_then(|at| STATUS.get(at))
        .copied()
        .unwrap_or("UNKNOWN_ERROR")
}

/// The same for a status of the crate.
fn name_of(status: RocmErr) -> &'static str {
    match status {
        // What the crate itself says when it finds no such function.
        RocmErr::RsmiLibLoadingError => NOT_EXPORTED,
        status => status_name(status as u32),
    }
}

/// A value, where the call went well and the value can be.
fn told<T>(status: RocmErr, value: T, makes_sense: impl FnOnce(&T) -> bool) -> Told<T> {
    Told(match status {
        RocmErr::RsmiStatusSuccess if makes_sense(&value) => Seen::Got(value),
        RocmErr::RsmiStatusSuccess => Seen::error(NONSENSE),
        status => Seen::error(name_of(status)),
    })
}

/// The text in a buffer, where it is one.
fn text(status: RocmErr, buffer: &[u8]) -> Told<String> {
    let text = CStr::from_bytes_until_nul(buffer)
        .ok()
        .and_then(|text| text.to_str().ok())
        .unwrap_or_default()
        .trim()
        .to_owned();
    told(status, text, |text| {
        !text.is_empty() && text.chars().all(|character| !character.is_control())
    })
}

#[expect(unsafe_code, reason = "only the library's header gives its types")]
fn exports(library: &Library, function: &[u8]) -> bool {
    // SAFETY: the function is looked up and never called.
    unsafe { library.get::<unsafe extern "C" fn()>(function) }.is_ok()
}

/// Major, minor and patch. May be asked before `init`.
#[expect(unsafe_code, reason = "only the library's header gives its types")]
fn version(library: &Library) -> Result<(u32, u32, u32), &'static str> {
    let mut version = RsmiVersion {
        major: 0,
        minor: 0,
        patch: 0,
        build: std::ptr::null_mut(),
    };
    // SAFETY: signature and structure as in `rocm_smi.h`, the same in all versions. The crate's own can be asked only after
    // `init`.
    let status = unsafe {
        let get = library.get::<unsafe extern "C" fn(*mut RsmiVersion) -> u32>(b"rsmi_version_get");
        get.map_err(|_| NOT_EXPORTED)?(&raw mut version)
    };
    match status {
        0 => Ok((version.major, version.minor, version.patch)),
        status => Err(status_name(status)),
    }
}

#[expect(unsafe_code, reason = "only the library's header gives its types")]
fn init(library: &Library, flags: u64) -> Result<(), &'static str> {
    // SAFETY: the signature as in `rocm_smi.h`, the same in all versions. The crate's takes 32 bits, and the flag is bit 58.
    let status = unsafe {
        let init = library.get::<unsafe extern "C" fn(u64) -> u32>(b"rsmi_init");
        init.map_err(|_| NOT_EXPORTED)?(flags)
    };
    match status {
        0 => Ok(()),
        status => Err(status_name(status)),
    }
}

/// The library, initialised. All calls have the signatures of `rocm_smi.h`, which are the same in all versions; none of them
/// gives a status that `RocmErr` does not know (22 came with ROCm 6.4, for market names).
struct Smi {
    raw: RawRsmi,
    library: Library,
}

impl Smi {
    #[expect(unsafe_code, reason = "the crate's calls are unsafe")]
    fn of(library: Library, path: &str) -> Option<Smi> {
        let path: &'static str = Box::leak(path.to_owned().into_boxed_str());
        // SAFETY: the library is loaded and initialised, so this counts both up and does nothing more.
        let raw = unsafe { RawRsmi::with_path(0, path) }.ok()?;
        Some(Smi { raw, library })
    }

    #[expect(unsafe_code, reason = "the crate's calls are unsafe")]
    fn count(&mut self) -> Told<u32> {
        let mut count = 0;
        // SAFETY: see `Smi`; the pointer is valid.
        let status = unsafe { self.raw.rsmi_num_monitor_devices(&raw mut count) };
        told(status, count, |count| *count <= MOST_DEVICES)
    }

    #[expect(unsafe_code, reason = "the crate's calls are unsafe")]
    fn pci_id(&mut self, index: u32) -> Result<u64, &'static str> {
        let mut id = u64::MAX;
        // SAFETY: see `Smi`; the pointer is valid.
        match unsafe { self.raw.rsmi_dev_pci_id_get(index, &raw mut id) } {
            RocmErr::RsmiStatusSuccess if id != u64::MAX => Ok(id),
            RocmErr::RsmiStatusSuccess => Err(NONSENSE),
            status => Err(name_of(status)),
        }
    }

    fn device(&mut self, host: &Host, index: u32) -> RocmSmiDevice {
        let calling = |call: &str| host.calling(&format!("{call}({index})"));
        calling("rsmi_dev_name_get");
        let name = self.name(index);
        calling("rsmi_dev_memory_total_get");
        let memory_bytes = self.memory(index);
        calling("rsmi_dev_memory_usage_get");
        let most = memory_bytes.got().copied().unwrap_or(MOST_MEMORY);
        let memory_used_bytes = self.memory_used(index, most);
        calling("rsmi_dev_vbios_version_get");
        let vbios = self.vbios(index);
        calling("rsmi_dev_temp_metric_get");
        let temperature_c = self.temperature(index);
        calling("rsmi_dev_busy_percent_get");
        let busy_percent = self.busy(index);
        RocmSmiDevice {
            index,
            partitions: Vec::new(),
            name,
            memory_bytes,
            memory_used_bytes,
            vbios,
            temperature_c,
            busy_percent,
        }
    }

    /// Without `pci.ids` the library gives the number (`0x744c`) for a name.
    #[expect(unsafe_code, reason = "only the library's header gives its types")]
    fn name(&self, index: u32) -> Told<String> {
        type Get = unsafe extern "C" fn(u32, *mut u8, usize) -> u32;
        let mut buffer = [0; TEXT];
        // SAFETY: the signature as in `rocm_smi.h`; as long as it says, the buffer is valid. The crate's own function of this
        // name calls another one of the library.
        let status = unsafe {
            match self.library.get::<Get>(b"rsmi_dev_name_get") {
                Ok(get) => get(index, buffer.as_mut_ptr(), TEXT),
                Err(_) => return Told(Seen::error(NOT_EXPORTED)),
            }
        };
        if status != 0 {
            return Told(Seen::error(status_name(status)));
        }
        match text(RocmErr::RsmiStatusSuccess, &buffer).0 {
            Seen::Got(name) if name.starts_with("0x") => Told(Seen::error("NOT_FOUND")),
            name => Told(name),
        }
    }

    #[expect(unsafe_code, reason = "the crate's calls are unsafe")]
    fn memory(&mut self, index: u32) -> Told<u64> {
        let mut bytes = u64::MAX;
        let vram = RsmiMemoryType::RsmiMemTypeVram;
        // SAFETY: see `Smi`; the pointer is valid.
        let status = unsafe {
            self.raw
                .rsmi_dev_memory_total_get(index, vram, &raw mut bytes)
        };
        told(status, bytes, |bytes| (1..MOST_MEMORY).contains(bytes))
    }

    #[expect(unsafe_code, reason = "the crate's calls are unsafe")]
    fn memory_used(&mut self, index: u32, most: u64) -> Told<u64> {
        let mut bytes = u64::MAX;
        let vram = RsmiMemoryType::RsmiMemTypeVram;
        // SAFETY: see `Smi`; the pointer is valid.
        let status = unsafe {
            self.raw
                .rsmi_dev_memory_usage_get(index, vram, &raw mut bytes)
        };
        told(status, bytes, |bytes| *bytes <= most)
    }

    #[expect(unsafe_code, reason = "the crate's calls are unsafe")]
    fn vbios(&mut self, index: u32) -> Told<String> {
        let mut buffer = [0_u8; TEXT];
        // SAFETY: see `Smi`; the buffer is as long as it says.
        let status = unsafe {
            let start = buffer.as_mut_ptr().cast();
            self.raw
                .rsmi_dev_vbios_version_get(index, start, TEXT as u32)
        };
        text(status, &buffer)
    }

    #[expect(unsafe_code, reason = "the crate's calls are unsafe")]
    fn temperature(&mut self, index: u32) -> Told<u32> {
        let mut thousandths = i64::MAX;
        // SAFETY: see `Smi`; the pointer is valid.
        let status = unsafe {
            self.raw.rsmi_dev_temp_metric_get(
                index,
                RsmiTemperatureSensor::RsmiTempTypeEdge,
                RsmiTemperatureMetric::RsmiTempCurrent,
                &raw mut thousandths,
            )
        };
        let told = told(status, thousandths, |value| TEMPERATURES.contains(value));
        Told(told.0.and_then(|thousandths| {
            u32::try_from(thousandths / 1000).map_or_else(|_| Seen::error(NONSENSE), Seen::Got)
        }))
    }

    #[expect(unsafe_code, reason = "the crate's calls are unsafe")]
    fn busy(&mut self, index: u32) -> Told<u32> {
        let mut percent = u32::MAX;
        // SAFETY: see `Smi`; the pointer is valid.
        let status = unsafe { self.raw.rsmi_dev_busy_percent_get(index, &raw mut percent) };
        told(status, percent, |percent| *percent <= 100)
    }
}
