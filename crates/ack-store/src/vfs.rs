//! An SQLite file layer that cannot write, so that reading is read-only by construction.
//!
//! `mode=ro` alone still creates an empty `-wal` if a writer closes at the wrong moment, and
//! deletes the `-wal` of an empty database. This layer wraps the platform's default
//! (<https://www.sqlite.org/vfs.html>): it opens every file read-only, creates none and deletes
//! none. As root, SQLite would also give a log the owner of its database; this is turned off for
//! the whole process.
//!
//! SQLite takes a file layer as a C structure, so this is the only module of the crate with
//! `unsafe` code.
#![expect(
    unsafe_code,
    reason = "SQLite takes a file layer as a C structure with function pointers"
)]

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use rusqlite::ffi;

/// The layer's name, for `Connection::open_with_flags_and_vfs`.
pub const NAME: &CStr = c"ack-readonly";

/// The platform's own layer, as an address: the structure lives as long as the process.
static BASE: OnceLock<usize> = OnceLock::new();

/// Registers the layer, once. Returns whether it is registered; without it a database must not be
/// opened in place.
pub fn register() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| {
        // SAFETY: the default layer is registered by `sqlite3_initialize`, which `sqlite3_vfs_find`
        // runs, and is never freed.
        let base = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        if base.is_null() {
            return false;
        }
        // SAFETY: `base` points to a valid structure; its fields are plain data and function
        // pointers.
        let mut layer = unsafe { std::ptr::read(base) };
        layer.zName = NAME.as_ptr();
        layer.pNext = std::ptr::null_mut();
        layer.xOpen = Some(open);
        layer.xDelete = Some(delete);
        if BASE.set(base as usize).is_err() {
            return false;
        }
        // SAFETY: `base` is valid; SQLite calls the replacement with the arguments of fchown(2), as
        // its type says.
        unsafe {
            if let Some(set) = (*base).xSetSystemCall {
                let call: unsafe extern "C" fn(c_int, u32, u32) -> c_int = keep_owner;
                let call = std::mem::transmute::<
                    unsafe extern "C" fn(c_int, u32, u32) -> c_int,
                    unsafe extern "C" fn(),
                >(call);
                // If there is no such call to replace, there is nothing to prevent.
                let _ = set(base, c"fchown".as_ptr(), Some(call));
            }
        }
        // The structure is leaked on purpose: SQLite keeps the pointer for good.
        let layer = Box::into_raw(Box::new(layer));
        // SAFETY: `layer` is valid for the rest of the process; 0 keeps the default layer the
        // default.
        unsafe { ffi::sqlite3_vfs_register(layer, 0) == ffi::SQLITE_OK }
    })
}

unsafe extern "C" fn open(
    _layer: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let Some(base) = BASE.get().map(|address| *address as *mut ffi::sqlite3_vfs) else {
        return ffi::SQLITE_CANTOPEN;
    };
    // Temporary files (a sorter's, for instance) have no name, live in the temporary folder and are
    // no part of a store.
    let flags = if name.is_null() {
        flags
    } else {
        let writing = ffi::SQLITE_OPEN_READWRITE
            | ffi::SQLITE_OPEN_CREATE
            | ffi::SQLITE_OPEN_DELETEONCLOSE
            | ffi::SQLITE_OPEN_EXCLUSIVE;
        (flags & !writing) | ffi::SQLITE_OPEN_READONLY
    };
    // SAFETY: the pointers come from SQLite unchanged, and `base` is the layer whose file structure
    // `file` has room for (`szOsFile` was copied from it).
    unsafe {
        match (*base).xOpen {
            Some(base_open) => base_open(base, name, file, flags, out_flags),
            None => ffi::SQLITE_CANTOPEN,
        }
    }
}

unsafe extern "C" fn delete(
    _layer: *mut ffi::sqlite3_vfs,
    _name: *const c_char,
    _sync_dir: c_int,
) -> c_int {
    ffi::SQLITE_IOERR_DELETE
}

unsafe extern "C" fn keep_owner(_file: c_int, _user: u32, _group: u32) -> c_int {
    0
}
