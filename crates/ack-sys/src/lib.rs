//! What the other crates need from the operating system: opening files that are certainly files
//! ([`files`]), keeping things open for a moment ([`idle_pool`]), and releasing freed memory
//! ([`heap`]).

pub mod files;
pub mod heap;
pub mod idle_pool;

#[cfg(not(unix))]
compile_error!("ack-memory runs on Linux and macOS: it opens stores with Unix calls");
