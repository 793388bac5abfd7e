//! Whether what a memory cites is in a project's working tree: its files, and the names in its
//! text.
//!
//! Nothing outside the tree is touched: a path that leads out of it, or through a symbolic link, is
//! not followed. What was not looked at counts as unknown, never as gone: a look is bounded in time,
//! in entries and in bytes.
//!
//! Two questions are cheap, and answers ask them: whether the files exist costs a system call for
//! each of their folders, and if some seem to be gone, one listing of the tree. Whether a file
//! changed is read from the time in its metadata: one that was written before the memory has not
//! changed since; for one that was written later this is not known, as a checkout writes files too.
//! How often it changed is asked of git, commit by commit ([`ack_worktree::history`]); that and the
//! search for names, which reads the files, are for the reviewer.

mod cited;
mod names;
mod tree;

pub use self::cited::{CitedFile, FileState, Since};
pub use self::names::{CitedName, NamesLook};
pub use self::tree::{Bounds, WorkTree};
