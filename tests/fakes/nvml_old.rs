//! An old, or half, `libnvidia-ml.so.1`: it knows how many GPUs there are and little else.

use std::ffi::{c_char, c_int, c_uint, c_void};

#[repr(C)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> c_int {
    unsafe { *to = 1 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(
    _index: c_uint,
    to: *mut *mut c_void,
) -> c_int {
    unsafe { *to = to.cast() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(_of: *mut c_void, to: *mut c_char) -> c_int {
    // The address stands behind 16 bytes of text and five numbers.
    for (at, byte) in b"00000000:0A:00.0\0".iter().enumerate() {
        unsafe { *to.add(36 + at) = *byte as c_char };
    }
    0
}

/// Drivers before 510 have this form only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(_of: *mut c_void, to: *mut Memory) -> c_int {
    unsafe {
        *to = Memory {
            total: 12 << 30,
            free: 11 << 30,
            used: 1 << 30,
        }
    };
    0
}
