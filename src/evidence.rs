//! Checks whether what a memory cites is in a project's working tree: its files, and the names in
//! its text.
//!
//! Nothing outside the tree is accessed: paths that leave it and symbolic links are not followed.
//! What was not checked counts as unknown, never as gone, because a check has limits on time,
//! entries and bytes.
//!
//! Two checks are cheap enough for every answer. Whether the files exist costs one system call per
//! folder, and one listing of the tree if some seem to be gone. Whether a file changed comes from
//! its modification time: a file last written before the memory is unchanged; a later time proves
//! nothing, because a checkout also writes files. The number of commits ([`ack_worktree::history`])
//! and the search for names, which reads the files, are only for the reviewer.

mod cited_files;
mod names;
mod tree;

pub use self::cited_files::{FileState, Since};
pub use self::names::NameSearch;
pub use self::tree::{Bounds, WorkTree};
