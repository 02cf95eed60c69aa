//! Asks a CUDA runtime library how many GPUs it can use, and prints the number of its answer: `ask_runtime LIBRARY`.
//! 35: the driver is too old for it. 100: it fits, and there is no GPU. A program of its own, since the library does as it likes.

use std::ffi::{CString, c_char, c_int, c_void};

#[link(name = "dl")]
unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

fn main() {
    let path = std::env::args().nth(1).expect("a library");
    let path = CString::new(path).expect("no NUL");
    let library = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
    assert!(!library.is_null(), "the library cannot be loaded");
    let call = unsafe { dlsym(library, c"cudaGetDeviceCount".as_ptr()) };
    assert!(!call.is_null(), "no cudaGetDeviceCount in it");
    let call: extern "C" fn(*mut c_int) -> c_int = unsafe { std::mem::transmute(call) };
    let mut count = 0;
    println!("{}", call(&mut count));
}
