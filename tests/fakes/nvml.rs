//! A stand-in for `libnvidia-ml.so.1`. `FAKE_NVML` says what it does, words with commas between:
//!
//! | word | what it does |
//! |---|---|
//! | `gpus=N` | N GPUs at 0000:01:00.0, 0000:02:00.0, ...; one without the word |
//! | `FUNCTION=NUMBER` | that function answers with this error |
//! | `lost=N` | GPU N cannot be reached |
//! | `dies=N` | GPU N is lost as soon as its power was asked for |
//! | `hang=`, `segv=`, `abort=`, `fork=FUNCTION` | that function hangs, crashes, aborts, leaves a process behind that does what it can to live on |
//! | `mig` | GPU 0 is divided in two |
//! | `vgpu` | GPU 0 is a vGPU without a licence |
//! | `busy` | the asking process uses GPU 0 |
//! | `garbage` | all values make no sense |
//! | `flood` | writes to standard output and error without end, from a thread |
//! | `harm=FOLDER` | tries to change the machine when it is initialised, and answers UNKNOWN where anything worked |

mod orders;

use orders::{flood, has, is, number, odd, value, write_text};
use std::ffi::{CString, c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

unsafe extern "C" {
    fn bind(socket: c_int, address: *const c_void, length: c_uint) -> c_int;
    fn chroot(path: *const c_char) -> c_int;
    fn fork() -> c_int;
    fn getppid() -> c_int;
    fn kill(process: c_int, signal: c_int) -> c_int;
    fn listen(socket: c_int, backlog: c_int) -> c_int;
    fn mknod(path: *const c_char, mode: c_uint, device: c_ulong) -> c_int;
    fn mq_open(name: *const c_char, flags: c_int, ...) -> c_int;
    fn msgget(key: c_int, flags: c_int) -> c_int;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn posix_fallocate(file: c_int, offset: i64, length: i64) -> c_int;
    fn semget(key: c_int, count: c_int, flags: c_int) -> c_int;
    fn setpgid(process: c_int, group: c_int) -> c_int;
    fn setpriority(which: c_int, who: c_int, value: c_int) -> c_int;
    fn setsid() -> c_int;
    fn shmget(key: c_int, bytes: usize, flags: c_int) -> c_int;
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn unshare(flags: c_int) -> c_int;
}

const VARIABLE: &str = "FAKE_NVML";
const NOT_SUPPORTED: c_int = 3;
const NOT_FOUND: c_int = 6;
const INSUFFICIENT_SIZE: c_int = 7;
const GPU_IS_LOST: c_int = 15;
const UNKNOWN: c_int = 999;

type Device = *mut c_void;

fn enter(function: &str) -> c_int {
    if is("fork", function) && unsafe { fork() } == 0 {
        // As a daemon does, to live on.
        unsafe {
            setsid();
            setpgid(0, 0);
            if fork() > 0 {
                std::process::exit(0);
            }
        }
        std::thread::sleep(std::time::Duration::from_secs(1000));
    }
    orders::enter(function)
}

fn gpus() -> usize {
    number("gpus").unwrap_or(1)
}

/// The GPU behind a handle; a MIG device is 1000 and more.
fn index(device: Device) -> usize {
    device as usize - 1
}

static DEAD: AtomicU32 = AtomicU32::new(0);

fn enter_device(function: &str, device: Device) -> c_int {
    let error = enter(function);
    if number("dies") == Some(index(device)) {
        if DEAD.load(Ordering::Relaxed) != 0 {
            return GPU_IS_LOST;
        }
        DEAD.store(
            (function == "nvmlDeviceGetPowerUsage") as u32,
            Ordering::Relaxed,
        );
    }
    error
}

macro_rules! of_device {
    ($($name:ident($($argument:ident: $kind:ty),*) |$device:ident| $body:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($device: Device $(, $argument: $kind)*) -> c_int {
            let error = enter_device(stringify!($name), $device);
            if error != 0 {
                return error;
            }
            unsafe { $body }
        })*
    };
}

macro_rules! of_system {
    ($($name:ident($($argument:ident: $kind:ty),*) $body:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            let error = enter(stringify!($name));
            if error != 0 {
                return error;
            }
            unsafe { $body }
        })*
    };
}

/// Tries to leave things with the kernel, and to reach other processes: what each call answers.
unsafe fn reaches_others(path: &CString, file: &CString) -> [(c_int, &'static str); 13] {
    const CREATE: c_int = 0o1600;
    const UNIX: c_int = 1;
    let mut address = [0_u8; 110];
    address[..2].copy_from_slice(&(UNIX as u16).to_ne_bytes());
    let name = path.as_bytes_with_nul();
    address[2..2 + name.len()].copy_from_slice(name);
    let key = std::process::id() as c_int;
    unsafe {
        let unix = socket(UNIX, 1, 0);
        let there = open(file.as_ptr(), 2, 0);
        [
            (bind(unix, address.as_ptr().cast(), 110), "bind"),
            (listen(socket(2, 1, 0), 1), "listen"),
            (shmget(key, 4096, CREATE), "shmget"),
            (msgget(key, CREATE), "msgget"),
            (semget(key, 1, CREATE), "semget"),
            (mq_open(c"/gpucheck-test".as_ptr(), 0o100 | 2, 0o600, 0_usize), "mq_open"),
            (-posix_fallocate(there, 0, 100_000), "fallocate"),
            (kill(getppid(), 0), "kill"),
            (setpriority(0, getppid(), 19), "setpriority"),
            (chroot(c"/".as_ptr()), "chroot"),
            // A user namespace is what anybody may have.
            (unshare(0x1000_0000), "unshare"),
            (setsid(), "setsid"),
            (setpgid(0, 0), "setpgid"),
        ]
    }
}

/// Tries to change the machine. The answer is whether anything worked.
fn harm(folder: &str) -> bool {
    let path = |name: &str| format!("{folder}/{name}");
    let text = |name: &str| CString::new(path(name)).unwrap();
    let device = (195 << 8) | 255;
    let emptied = std::fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path("there"))
        .is_ok();
    // A temporary file that has no name.
    let nameless = CString::new(folder).unwrap();
    let nameless = unsafe { open(nameless.as_ptr(), 0o20200000 | 2, 0o600) } >= 0;
    let _ = nameless;
    let reaches = unsafe { reaches_others(&text("socket"), &text("there")) };
    for (number, name) in reaches {
        eprintln!("{name}: {number}");
    }
    emptied
        | reaches.iter().any(|(answer, _)| *answer >= 0)
        | (unsafe { mknod(text("node").as_ptr(), 0o020666, device) } == 0)
        | std::fs::write(path("new"), "x").is_ok()
        | std::fs::rename(path("there"), path("gone")).is_ok()
        | std::fs::remove_file(path("there")).is_ok()
        | std::fs::hard_link(path("there"), path("second")).is_ok()
        | std::os::unix::fs::symlink("x", path("link")).is_ok()
        | std::fs::create_dir(path("folder")).is_ok()
        | std::fs::set_permissions(
            path("there"),
            std::os::unix::fs::PermissionsExt::from_mode(0o777),
        )
        .is_ok()
        | std::process::Command::new("/bin/touch")
            .arg(path("run"))
            .status()
            .is_ok()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    let error = enter("nvmlInit_v2");
    if error == 0 && has("flood") {
        flood();
    }
    match value("harm") {
        Some(folder) if error == 0 && harm(&folder) => UNKNOWN,
        _ => error,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_int {
    enter("nvmlShutdown")
}

of_system! {
    nvmlSystemGetDriverVersion(to: *mut c_char, length: c_uint) write_text(to, length as usize, "550.120");
    nvmlSystemGetNVMLVersion(to: *mut c_char, length: c_uint) write_text(to, length as usize, "12.550.120");
    nvmlSystemGetCudaDriverVersion_v2(to: *mut c_int) { *to = odd(12040, -7); 0 };
    nvmlDeviceGetCount_v2(to: *mut c_uint) { *to = gpus() as c_uint; 0 };
    nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut Device) {
        *to = (index as usize + 1) as Device;
        if number("lost") == Some(index as usize) { GPU_IS_LOST } else { 0 }
    };
}

#[repr(C)]
pub struct Pci {
    legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    id: c_uint,
    subsystem: c_uint,
    bus_id: [c_char; 32],
}

#[repr(C)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

#[repr(C)]
pub struct MemoryV2 {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

#[repr(C)]
pub struct Fabric {
    cluster: [u8; 16],
    status: c_uint,
    clique: c_uint,
    state: u8,
}

#[repr(C)]
pub struct Process {
    pid: c_uint,
    used: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

#[repr(C)]
pub struct Feature {
    code: c_uint,
    state: c_uint,
    info: [c_char; 128],
    product: [c_char; 128],
    enabled: c_uint,
    expiry: [u32; 4],
}

#[repr(C)]
pub struct Features {
    supported: c_int,
    count: c_uint,
    features: [Feature; 3],
}

/// Answers one of these, the first of GPU 0.
fn one(of: Device, first: u32, other: u32) -> u32 {
    odd(if index(of) == 0 { first } else { other }, u32::MAX)
}

of_device! {
    nvmlDeviceGetPciInfo_v3(to: *mut Pci) |of| {
        let bus = index(of) + 1;
        let (domain, bus) = (bus / 256, bus % 256);
        let address = if has("garbage") && index(of) == 1 { "../../x".to_owned() } else { format!("{domain:08X}:{bus:02X}:00.0") };
        write_pci(&raw mut (*to).bus_id, &address)
    };
    nvmlDeviceGetMinorNumber(to: *mut c_uint) |of| { *to = one(of, 0, index(of) as u32); 0 };
    nvmlDeviceGetName(to: *mut c_char, length: c_uint) |_of| write_text(to, length as usize, "NVIDIA GeForce RTX 4090");
    nvmlDeviceGetUUID(to: *mut c_char, length: c_uint) |of| {
        let kind = if index(of) >= 1000 { "MIG" } else { "GPU" };
        write_text(to, length as usize, &format!("{kind}-8c1f3f3e-5d3a-4f5e-9d6c-0123456{:05x}", index(of)))
    };
    nvmlDeviceGetVbiosVersion(to: *mut c_char, length: c_uint) |_of| write_text(to, length as usize, "95.02.3C.00.8E");
    nvmlDeviceGetMemoryInfo(to: *mut Memory) |_of| {
        *to = Memory { total: odd(24 << 30, 0), free: 0, used: odd(1 << 30, u64::MAX) };
        0
    };
    nvmlDeviceGetMemoryInfo_v2(to: *mut MemoryV2) |of| {
        let version = (*to).version;
        let total = if index(of) == 0 { u64::MAX } else { 0 };
        *to = MemoryV2 { version, total: odd(24 << 30, total), reserved: 0, free: 0, used: odd(1 << 30, u64::MAX) };
        0
    };
    nvmlDeviceGetBAR1MemoryInfo(to: *mut Memory) |_of| {
        *to = Memory { total: odd(256 << 20, u64::MAX), free: 0, used: 0 };
        0
    };
    nvmlDeviceGetCudaComputeCapability(major: *mut c_int, minor: *mut c_int) |_of| {
        *major = odd(8, 0);
        *minor = odd(9, -1);
        0
    };
    nvmlDeviceGetComputeMode(to: *mut c_uint) |of| { *to = one(of, 0, 3); 0 };
    nvmlDeviceGetPerformanceState(to: *mut c_uint) |of| { *to = one(of, 8, 0); 0 };
    nvmlDeviceGetPersistenceMode(to: *mut c_uint) |of| { *to = one(of, 1, 0); 0 };
    nvmlDeviceGetDisplayActive(to: *mut c_uint) |of| { *to = one(of, 0, 0); 0 };
    nvmlDeviceGetPowerUsage(to: *mut c_uint) |of| { *to = one(of, 23_456, 99_000); 0 };
    nvmlDeviceGetEnforcedPowerLimit(to: *mut c_uint) |of| { *to = one(of, 450_000, 450_000); 0 };
    nvmlDeviceGetPowerManagementDefaultLimit(to: *mut c_uint) |of| { *to = one(of, 450_000, 450_000); 0 };
    nvmlDeviceGetPowerManagementLimitConstraints(low: *mut c_uint, high: *mut c_uint) |of| {
        *low = one(of, 150_000, 150_000);
        *high = one(of, 600_000, 600_000);
        0
    };
    nvmlDeviceGetTemperature(_sensor: c_uint, to: *mut c_uint) |of| { *to = one(of, 41, 45); 0 };
    nvmlDeviceGetTemperatureThreshold(kind: c_uint, to: *mut c_uint) |of| {
        *to = if kind == 0 { one(of, 100, 100) } else { one(of, 97, 97) };
        0
    };
    nvmlDeviceGetClockInfo(kind: c_uint, to: *mut c_uint) |of| { *to = one(of, 210 + kind, 210); 0 };
    nvmlDeviceGetMaxClockInfo(kind: c_uint, to: *mut c_uint) |of| { *to = one(of, 3000 + kind, 3000); 0 };
    nvmlDeviceGetCurrentClocksThrottleReasons(to: *mut u64) |_of| { *to = odd(1, u64::MAX); 0 };
    nvmlDeviceGetEccMode(now: *mut c_uint, pending: *mut c_uint) |of| {
        *now = one(of, 0, 1);
        *pending = one(of, 1, 1);
        0
    };
    nvmlDeviceGetTotalEccErrors(_kind: c_uint, counter: c_uint, to: *mut u64) |_of| { *to = counter as u64 * 7; 0 };
    nvmlDeviceGetRemappedRows(one_: *mut c_uint, two: *mut c_uint, pending: *mut c_uint, failed: *mut c_uint) |_of| {
        (*one_, *two, *pending, *failed) = (1, 2, 1, 0);
        0
    };
    nvmlDeviceGetRetiredPages(cause: c_uint, count: *mut c_uint, _to: *mut u64) |_of| {
        let room = *count;
        *count = odd(3 + cause, u32::MAX);
        if room < *count { INSUFFICIENT_SIZE } else { 0 }
    };
    nvmlDeviceGetRetiredPagesPendingStatus(to: *mut c_uint) |of| { *to = one(of, 0, 0); 0 };
    nvmlDeviceGetCurrPcieLinkGeneration(to: *mut c_uint) |of| { *to = one(of, 1, 4); 0 };
    nvmlDeviceGetCurrPcieLinkWidth(to: *mut c_uint) |of| { *to = one(of, 16, 8); 0 };
    nvmlDeviceGetMaxPcieLinkGeneration(to: *mut c_uint) |of| { *to = one(of, 4, 4); 0 };
    nvmlDeviceGetMaxPcieLinkWidth(to: *mut c_uint) |of| { *to = one(of, 16, 16); 0 };
    nvmlDeviceGetMigMode(now: *mut c_uint, pending: *mut c_uint) |of| {
        if !has("mig") && !has("garbage") {
            return NOT_SUPPORTED;
        }
        *now = one(of, 1, 0);
        *pending = one(of, 1, 0);
        0
    };
    nvmlDeviceGetMaxMigDeviceCount(to: *mut c_uint) |_of| { *to = odd(7, u32::MAX); 0 };
    nvmlDeviceGetMigDeviceHandleByIndex(number: c_uint, to: *mut Device) |_of| {
        // Places may be empty.
        if number != 0 && number != 3 {
            return NOT_FOUND;
        }
        *to = (1001 + number as usize) as Device;
        0
    };
    nvmlDeviceGetGpuFabricInfo(to: *mut Fabric) |_of| {
        *to = Fabric { cluster: [0; 16], status: odd(0, 77), clique: 0, state: odd(3, 200) };
        0
    };
    nvmlDeviceGetVirtualizationMode(to: *mut c_uint) |_of| { *to = if has("vgpu") { 2 } else { odd(0, 99) }; 0 };
    nvmlDeviceGetGridLicensableFeatures_v4(to: *mut Features) |_of| {
        (*to).supported = 1;
        (*to).count = 1;
        (*to).features[0].state = 0;
        (*to).features[0].enabled = 1;
        0
    };
    nvmlDeviceGetComputeRunningProcesses_v3(count: *mut c_uint, to: *mut Process) |of| {
        let room = *count;
        *count = odd((has("busy") && index(of) == 0) as c_uint, u32::MAX);
        if room < *count {
            return INSUFFICIENT_SIZE;
        }
        if *count == 1 {
            *to = Process { pid: std::process::id(), used: 7 << 20, gpu_instance: u32::MAX, compute_instance: u32::MAX };
        }
        0
    };
    nvmlDeviceGetGraphicsRunningProcesses_v3(count: *mut c_uint, _to: *mut Process) |_of| { *count = 0; 0 };
}

unsafe fn write_pci(to: *mut [c_char; 32], text: &str) -> c_int {
    for (at, byte) in text.bytes().chain([0]).enumerate() {
        unsafe { (*to)[at] = byte as c_char };
    }
    0
}
