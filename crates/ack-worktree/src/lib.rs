//! What git knows about a folder, read from its files: its repository and the branch that is
//! checked out ([`repository`]), its remotes ([`remote`]), the changed files ([`changes`]), and the
//! new files that git does not ignore ([`untracked`]). No process is started and nothing is
//! written.

pub mod changes;
pub mod remote;
pub mod repository;
pub mod untracked;
