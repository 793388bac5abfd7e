//! Memory that was freed and is kept by the allocator for what comes next. After an index or an image of a store was given up,
//! that is memory which nobody needs.

use std::sync::OnceLock;

/// How the allocator of this process gives memory back; set by whoever owns the process.
static GIVE_BACK: OnceLock<fn()> = OnceLock::new();

/// So many bytes that were freed are worth the milliseconds that giving them back takes.
pub const WORTH: usize = 4 << 20;

/// Says how memory is given back.
pub fn set(give_back: fn()) {
    let _ = GIVE_BACK.set(give_back);
}

/// Gives back what is free, where somebody said how.
pub fn give_back() {
    if let Some(give_back) = GIVE_BACK.get() {
        give_back();
    }
}
