// ASCII letters in upper case.  Build:
//   rustc --target wasm32-unknown-unknown --crate-type cdylib -C opt-level=3 -C panic=abort -C strip=symbols upper.rs
use std::cell::UnsafeCell;

struct Room(UnsafeCell<Vec<u8>>);
// An instance has one thread.
unsafe impl Sync for Room {}
static ROOM: Room = Room(UnsafeCell::new(Vec::new()));

fn room() -> &'static mut Vec<u8> {
    unsafe { &mut *ROOM.0.get() }
}

/// Where the host puts up to `size` bytes before each `feed`.
#[no_mangle]
pub extern "C" fn alloc(size: usize) -> *mut u8 {
    room().resize(size, 0);
    room().as_mut_ptr()
}

/// Answers with where the output lies: address in the upper half, length in the lower one.
#[no_mangle]
pub extern "C" fn feed(_at: *mut u8, size: usize) -> i64 {
    room()[..size].make_ascii_uppercase();
    ((room().as_ptr() as i64) << 32) | size as i64
}

#[no_mangle]
pub extern "C" fn finish() -> i64 {
    0
}
