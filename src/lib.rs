//! `ack-memory` answers a coding agent's questions from curated memories, and never writes to a
//! memory store.
//!
//! A request comes in through [`cli`], [`hook`] or [`mcp`], which decode it and call the
//! [`service`]. The service asks [`scope`] which scopes are meant, searches their indexes, reads the
//! records from their stores with the status of that moment, and answers in the types of `ack_api`.
//! [`import`] and [`demo`] write native stores; no request of an agent reaches them.
//!
//! `ARCHITECTURE.md` has the map of the crates and modules, the way of a request and the
//! invariants.

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

pub use ack_api as api;

pub mod cli;
pub mod config;
pub mod connect;
pub mod demo;
pub mod eval;
pub mod hook;
pub mod import;
mod live;
pub mod mcp;
pub mod offer;
pub mod scope;
pub mod service;
pub mod toolset;
