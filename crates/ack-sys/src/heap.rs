//! Returns freed memory to the system. An allocator keeps freed memory for later use, but after an
//! index or an image of a store is dropped, there may be no later use.

use std::sync::OnceLock;

/// How the allocator of this process releases memory. The owner of the process sets it.
static RELEASE: OnceLock<fn()> = OnceLock::new();

/// If less was freed, a release is not worth the milliseconds it takes.
pub const MIN_RELEASE_BYTES: usize = 4 << 20;

/// Sets how memory is released.
pub fn set_release(release: fn()) {
    let _ = RELEASE.set(release);
}

/// Releases free memory, if [`set_release`] was called.
pub fn release() {
    if let Some(release) = RELEASE.get() {
        release();
    }
}
