//! What git knows about a folder, read from its files: its repository and the checked-out branch
//! ([`repository`]), its remotes ([`remote`]), changed files ([`changes`]) including staged files
//! and what the commits of the branch changed ([`history`], [`objects`]), new files that git does
//! not ignore ([`untracked`]), what references point to ([`references`]), and which files of a
//! folder are committed there ([`committed`]). It starts no process and writes nothing.

pub mod changes;
pub mod committed;
pub mod history;
pub mod objects;
pub mod references;
pub mod remote;
pub mod repository;
pub mod untracked;
