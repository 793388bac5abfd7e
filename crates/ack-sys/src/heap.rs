//! Returns freed memory to the system. An allocator keeps freed memory for reuse, but after an
//! index or an image of a store is dropped, it may never be reused.

use std::sync::OnceLock;

/// How the allocator of this process releases memory. The binary sets it.
static RELEASE: OnceLock<fn()> = OnceLock::new();

/// Below this size, a release is not worth the time it takes.
pub const MIN_RELEASE_BYTES: usize = 4 << 20;

pub fn set_release(release: fn()) {
    let _ = RELEASE.set(release);
}

/// Releases free memory, if [`set_release`] was called.
pub fn release() {
    if let Some(release) = RELEASE.get() {
        release();
    }
}
