//! A stand-in for `librocm_smi64.so`, as of ROCm 6.2 and newer. `FAKE_ROCM_SMI` says what it does, words with commas between:
//!
//! | word | what it does |
//! |---|---|
//! | `gpus=N` | N GPUs at 0000:03:00.0, 0000:04:00.0, ..., 0001:c3:00.0; one without the word |
//! | `parts=N` | each GPU is listed N times, the partition in its upper bits |
//! | `FUNCTION=NUMBER` | that function answers with this status |
//! | `hang=`, `segv=`, `abort=FUNCTION` | that function hangs, crashes, aborts |
//! | `garbage` | all values make no sense |
//! | `flood` | writes to standard output and error without end, from a thread |
//! | `noise` | throws words at both, once in each function |

mod orders;

use orders::{flood, has, number, odd, write_text};
use std::ffi::{c_char, c_int};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

const VARIABLE: &str = "FAKE_ROCM_SMI";
const INVALID_ARGS: c_int = 1;
const INSUFFICIENT_SIZE: c_int = 11;
const INIT_ERROR: c_int = 8;
/// `RSMI_INIT_FLAG_THRAD_ONLY_MUTEX`.
const MUTEX_OF_THE_PROCESS: u64 = 0x400_0000_0000_0000;

#[repr(C)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
    build: *const c_char,
}

fn enter(function: &str) -> c_int {
    if has("noise") {
        let _ = writeln!(std::io::stdout(), "end rocm_smi 1\nfacts rocm_smi {{}}");
        let _ = writeln!(std::io::stderr(), "Exception caught: {function}.");
    }
    orders::enter(function)
}

fn parts() -> u32 {
    number("parts").unwrap_or(1)
}

fn count() -> u32 {
    number("gpus").unwrap_or(1) * parts()
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),*) $body:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            let status = enter(stringify!($name));
            if status != 0 {
                return status;
            }
            unsafe { $body }
        })*
    };
}

macro_rules! of_device {
    ($($name:ident($index:ident $(, $argument:ident: $kind:ty)*) $body:expr;)*) => {
        functions! {
            $($name($index: u32 $(, $argument: $kind)*) {
                if $index >= count() {
                    return INVALID_ARGS;
                }
                $body
            };)*
        }
    };
}

#[unsafe(no_mangle)]
pub extern "C" fn rsmi_init(flags: u64) -> c_int {
    // The second time it only counts up.
    static ONCE: AtomicBool = AtomicBool::new(false);
    let status = enter("rsmi_init");
    if status != 0 {
        return status;
    }
    if has("flood") {
        flood();
    }
    if ONCE.swap(true, Ordering::Relaxed) || flags == MUTEX_OF_THE_PROCESS {
        0
    } else {
        INIT_ERROR
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rsmi_shut_down() -> c_int {
    enter("rsmi_shut_down")
}

functions! {
    rsmi_version_get(to: *mut Version) {
        *to = Version { major: 7, minor: 3, patch: 0, build: c"fake".as_ptr() };
        0
    };
    rsmi_num_monitor_devices(to: *mut u32) { *to = count(); 0 };
    rsmi_dev_partition_id_get(_index: u32, to: *mut u32) { *to = 0; 0 };
}

of_device! {
    rsmi_dev_pci_id_get(index, to: *mut u64) {
        let gpu = u64::from(index / parts());
        let part = u64::from(index % parts());
        let last = number("gpus").is_some_and(|gpus: u32| gpus > 2 && gpu + 1 == u64::from(gpus));
        let address = if last { (1 << 32) | (0xc3 << 8) } else { (3 + gpu) << 8 };
        *to = odd(address | (part << 28), u64::MAX);
        0
    };
    rsmi_dev_name_get(index, to: *mut c_char, length: usize) {
        write_text(to, length, if index == 1 { "0x744c" } else { "Navi 31 [Radeon RX 7900 XTX]" })
    };
    // The crate asks this one for names.
    rsmi_dev_brand_get(_index, to: *mut c_char, length: usize) write_text(to, length, "brand");
    rsmi_dev_memory_total_get(_index, kind: u32, to: *mut u64) {
        *to = odd(if kind == 0 { 24 << 30 } else { 1 }, 0);
        0
    };
    rsmi_dev_memory_usage_get(index, kind: u32, to: *mut u64) {
        *to = odd(if kind == 0 { u64::from(index + 1) << 30 } else { 1 }, u64::MAX);
        0
    };
    rsmi_dev_vbios_version_get(_index, to: *mut c_char, length: u32) {
        write_text(to, length as usize, "113-D7020100-102")
    };
    rsmi_dev_temp_metric_get(index, sensor: u32, metric: u32, to: *mut i64) {
        if (sensor, metric) != (0, 0) {
            return INVALID_ARGS;
        }
        *to = odd(53_000 + i64::from(index) * 1000, -273_000);
        0
    };
    rsmi_dev_busy_percent_get(index, to: *mut u32) { *to = odd(5 + index, 4_294_967_295); 0 };
}
