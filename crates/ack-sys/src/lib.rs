//! What the other crates need from the operating system: opening regular files only ([`files`]),
//! detecting that a folder changed ([`watch`]), keeping resources open for a short time
//! ([`idle_pool`]), changing text files ([`text_file`]), the free space of a disk ([`disk`]), and
//! releasing freed memory ([`heap`]).

pub mod disk;
pub mod files;
pub mod heap;
pub mod idle_pool;
pub mod text_file;
pub mod watch;

#[cfg(not(unix))]
compile_error!("ack-memory runs on Linux and macOS: it opens stores with Unix calls");
