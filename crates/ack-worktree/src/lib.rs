//! What git says about a folder, read from its files: which repository it belongs to and which branch is checked out
//! ([`repository`]), where it comes from ([`remote`]), which files were changed ([`changes`]), and which new ones git does
//! not ignore ([`untracked`]). No process is started and nothing is written.

pub mod changes;
pub mod remote;
pub mod repository;
pub mod untracked;
