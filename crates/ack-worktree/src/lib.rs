//! What git knows about a folder, read from its files: its repository and the branch that is
//! checked out ([`repository`]), its remotes ([`remote`]), the changed files ([`changes`]) with what
//! is staged and what the commits of the branch changed ([`history`], [`objects`]), and the new
//! files that git does not ignore ([`untracked`]), what references point to ([`references`]), and
//! which files of a folder are committed there ([`committed`]). No process is started and nothing is
//! written.

pub mod changes;
pub mod committed;
pub mod history;
pub mod objects;
pub mod references;
pub mod remote;
pub mod repository;
pub mod untracked;
