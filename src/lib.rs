//! ack-memory answers a coding agent's questions from notes that people approved. It never writes
//! to the stores it reads.
//!
//! The binary speaks the Model Context Protocol. A Rust program can ask the same questions through
//! [`Service`]: [`Config::at`] names a scope root, and each tool is a method over the types of
//! [`api`].
//!
//! ```
//! use ack_memory::api::{GetRequest, QueryRequest};
//! use ack_memory::{Config, Service};
//!
//! # fn is_shared<T: Send + Sync>() {}
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # is_shared::<Service>();
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! # ack_memory::demo::build(root, jiff::Timestamp::now())?;
//! let service = Service::new(Config::at(root)?);
//! let answer = service.query_memories(&QueryRequest {
//!     query: Some("exit code 137".to_owned()),
//!     ..QueryRequest::default()
//! })?;
//! let best = answer.results.first().ok_or("nothing found")?;
//! println!("{}: {}", best.scope, best.title);
//!
//! let whole = service.get_memory(&GetRequest {
//!     id: Some(best.id.clone()),
//!     ..GetRequest::default()
//! })?;
//! assert!(whole.memory.is_some_and(|memory| memory.memory.title == best.title));
//! service.close();
//! # Ok(())
//! # }
//! ```
//!
//! A [`Service`] is `Send` and `Sync`; share one, because it holds the indexes. Every method blocks
//! on the file system, so an async program must call it from a blocking thread. [`Service::close`]
//! removes the temporary copies of stores; call it at the end.
//! `ARCHITECTURE.md` has a map of the crates and modules, the path of a request and the invariants.

#![deny(unsafe_code, missing_docs)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::print_stdout,
        clippy::print_stderr,
        clippy::exit,
        clippy::todo,
        clippy::dbg_macro
    )
)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::needless_pass_by_value,
    clippy::redundant_clone
)]

mod check;
mod connect;
mod curate;
mod desk;
mod gate;
mod hook;
mod live;
mod publish;
mod remote;
mod shell;

pub use ack_api as api;

pub use self::config::{Config, SettingsError};
pub use self::service::{Error, Service};

// For the binary, the tests and the benchmarks. Not part of the library's interface.
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod config;
#[doc(hidden)]
pub mod demo;
#[doc(hidden)]
pub mod eval;
#[doc(hidden)]
pub mod evidence;
#[doc(hidden)]
pub mod import;
#[doc(hidden)]
pub mod mcp;
#[doc(hidden)]
pub mod offer;
#[doc(hidden)]
pub mod recogniser;
#[doc(hidden)]
pub mod scope;
#[doc(hidden)]
pub mod service;
#[doc(hidden)]
pub mod toolset;
pub mod warnings;
