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
//! # ack_memory::internal::build_demo(root, jiff::Timestamp::now())?;
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

#![deny(unsafe_code)]
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

mod add;
mod cli;
mod demo;
mod eval;
mod hook;
mod import;
mod mcp;
mod offer;
mod toolset;

pub use ack_api as api;

pub use ack_service::config::{Config, SettingsError};
pub use ack_service::{Error, Service};

/// What the binary, the tests, the benchmarks and the fuzz targets use besides. Not part of the
/// library's interface.
#[doc(hidden)]
pub mod internal {
    pub use crate::cli::args::Cli;
    pub use crate::cli::panics::install as install_panic_hook;
    pub use crate::cli::run as run_command_line;
    pub use crate::demo::build as build_demo;
    pub use crate::mcp::http::tokens::ClientEntry;
    pub use crate::mcp::{INSTRUCTIONS, TOOLS, serve_lines, tools};
    pub use crate::offer::Offer;
    pub use crate::toolset::{Toolset, ToolsetPreset};
    pub use ack_service::arguments;
    pub use ack_service::config::{
        ConfigFile, ENV_DB, ENV_SCOPE, ENVIRONMENT, Inputs, MaxStatus, Setting,
    };
    pub use ack_service::context::brief::{BriefRequest, MEMORIES_AT_START};
    pub use ack_service::evidence::{Bounds, FileState, WorkTree};
    pub use ack_service::scope::manifest::Manifest;
    pub use ack_service::scope::resolve::current as current_scope;

    /// Loading memories from JSON lines.
    pub mod import {
        pub use crate::import::write::SCHEMA;
        pub use crate::import::{ImportOptions, read, run};
    }

    pub mod eval {
        pub use crate::eval::{Estimate, Measures, Run, parse, percentile, run};
    }

    pub mod recogniser {
        pub use ack_connect::recogniser::{StoreKind, StorePlaces, Support, at, survey};
    }
}
