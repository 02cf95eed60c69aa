//! A stand-in for a `librocm_smi64.so` of some other age: it has few of the functions.

#[repr(C)]
pub struct Version {
    numbers: [u32; 3],
    build: *const u8,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_version_get(to: *mut Version) -> i32 {
    let numbers = [7, 2, 0];
    unsafe {
        to.write(Version {
            numbers,
            build: std::ptr::null(),
        })
    };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_init(_flags: u64) -> i32 {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_num_monitor_devices(to: *mut u32) -> i32 {
    unsafe { *to = 2 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_dev_pci_id_get(index: u32, to: *mut u64) -> i32 {
    if index == 1 {
        return 8;
    }
    unsafe { *to = 0x0300 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_dev_memory_total_get(_index: u32, _kind: u32, to: *mut u64) -> i32 {
    unsafe { *to = 8 << 30 };
    0
}
