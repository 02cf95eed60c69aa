//! What the stand-ins have in common: the words of a variable say what they do.

use crate::{INSUFFICIENT_SIZE, VARIABLE};
use std::ffi::{CString, c_char, c_int};
use std::io::Write;
use std::str::FromStr;

unsafe extern "C" {
    fn abort() -> !;
}

fn words() -> String {
    std::env::var(VARIABLE).unwrap_or_default()
}

pub fn has(word: &str) -> bool {
    words().split(',').any(|given| given == word)
}

pub fn value(name: &str) -> Option<String> {
    let words = words();
    let mut given = words.split(',').filter_map(|word| word.split_once('='));
    let (_, value) = given.find(|(given, _)| *given == name)?;
    Some(value.to_owned())
}

pub fn number<T: FromStr>(name: &str) -> Option<T> {
    value(name)?.parse().ok()
}

/// The function is the one that this word names.
pub fn is(word: &str, function: &str) -> bool {
    value(word).is_some_and(|value| value == function)
}

/// What is to happen when a function is entered; the answer is its error, 0 where it goes on.
pub fn enter(function: &str) -> c_int {
    if is("hang", function) {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(1000));
        }
    }
    if is("segv", function) {
        unsafe { std::ptr::null_mut::<u8>().write_volatile(1) };
    }
    if is("abort", function) {
        unsafe { abort() };
    }
    number(function).unwrap_or(0)
}

/// Writes without end, from a thread.
pub fn flood() {
    std::thread::spawn(|| {
        loop {
            let _ = std::io::stdout().write_all(&[b'x'; 4096]);
            let _ = std::io::stderr().write_all(&[b'x'; 4096]);
        }
    });
}

pub fn odd<T>(value: T, garbage: T) -> T {
    if has("garbage") { garbage } else { value }
}

pub unsafe fn write_text(to: *mut c_char, length: usize, text: &str) -> c_int {
    let text = CString::new(odd(text, "\x1b[31mRED\x1b]0;title\x07")).unwrap();
    let bytes = text.as_bytes_with_nul();
    if bytes.len() > length {
        return INSUFFICIENT_SIZE;
    }
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, bytes.len()) };
    0
}
