//! A stand-in for `libcuda.so.1`: `FAKE_CUDA` is the version that it tells, `hang`, or the error `-N`.

use std::ffi::c_int;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    let told = std::env::var("FAKE_CUDA").unwrap_or_default();
    if told == "hang" {
        std::thread::sleep(std::time::Duration::from_secs(1000));
    }
    let number: c_int = told.parse().unwrap_or(12040);
    if number < 0 {
        return -number;
    }
    unsafe { *version = number };
    0
}

/// Nobody may call this: it would open devices.
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: u32) -> c_int {
    std::process::abort()
}
