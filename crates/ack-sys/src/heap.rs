//! Memory that was freed and is kept by the allocator for what comes next. After an index or an image of a store was given up,
//! that is memory which nobody needs.

use std::sync::OnceLock;

/// How the allocator of this process gives memory back; set_release by whoever owns the process.
static RELEASE: OnceLock<fn()> = OnceLock::new();

/// So many bytes that were freed are worth the milliseconds that giving them back takes.
pub const MIN_RELEASE_BYTES: usize = 4 << 20;

/// Says how memory is given back.
pub fn set_release(release: fn()) {
    let _ = RELEASE.set(release);
}

/// Gives back what is free, where somebody said how.
pub fn release() {
    if let Some(release) = RELEASE.get() {
        release();
    }
}
