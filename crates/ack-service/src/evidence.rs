//! Checks whether what a memory cites is in a project's working tree: its files, and the names in
//! its text.
//!
//! Nothing outside the tree is accessed: paths that leave it and symbolic links are not followed.
//! What was not checked counts as unknown, never as gone, because a check has limits on time,
//! entries and bytes.
//!
//! Whether the files exist is cheap enough for every answer: one system call per folder, and one
//! listing of the tree if some seem to be gone. The number of commits ([`ack_worktree::history`])
//! and the search for names, which reads the files, are only for the reviewer.

mod names;
mod tree;

pub use self::names::NameSearch;
pub use self::tree::{Bounds, FileState, WorkTree};
