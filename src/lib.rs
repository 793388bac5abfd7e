//! `ack-memory` answers a coding agent's questions from curated memories, and never writes to a memory store.
//!
//! # Map
//!
//! In the order in which a request flows through it:
//!
//! ```text
//! cli ─┐                 scope.rs       query/lexical.rs  ─┐
//! hook ┼─► service.rs ─► resolve.rs ──► query/semantic.rs ─┴─► query/retrieve.rs ─► query::order ─► store ─► api
//! mcp ─┘   (api types)   (scopes)        (legs)                (fusion)             (total order)   (records, status re-checked)
//! cli ──► import.rs, demo.rs  (write stores), table/build.rs (writes vector tables); unreachable from service and mcp
//! cli ──► eval.rs ──► service.rs
//! ```
//!
//! - [`api`]: the contract. Requests, answers, notes and the error body, exactly as they travel; no logic.
//! - [`memory`]: the vocabulary. The record, its status, names. [`text`] makes stored text safe, [`time`] reads dates,
//!   [`uri`] writes and reads the addresses of scopes and memories.
//! - [`files`]: reading what should be a file, and is perhaps a pipe or a device. [`heap`]: giving freed memory back to the system.
//! - [`error`]: what can go wrong, each with a stable code and the next step. [`cancel`]: how a request is told to stop.
//! - [`config`]: flags, then environment, then `config.toml`, then defaults; every value keeps its source.
//! - [`scope`]: which scopes there are ([`scope::Registry`]), what their owner says of them ([`scope::manifest`]), what the
//!   project's repository says ([`scope::repository`], [`scope::remote`]) and which of its files were changed ([`scope::changes`]) or are new
//!   ([`scope::untracked`]), which scope and which of its projects is current
//!   ([`scope::detect`], [`scope::project`]), which are searched ([`scope::resolve`]).
//! - [`store`]: reading SQLite databases of several programs without changing a byte: how to open ([`store::open`],
//!   [`store::vfs`]), what is there ([`store::layout`] and the profiles), what a row means ([`store::record`]), the
//!   questions asked ([`store::read`]). `linger` keeps open for a moment what is likely to be read again.
//! - [`query`]: retrieval, stage by stage. Each scope has an index in memory ([`query::inverted`]) that follows its store; of a
//!   large scope it holds the columns alone, and terms and vectors are asked of the vector table ([`query::view`]).
//! - [`encoder`]: from text to a vector, with the table that the binary carries.
//! - [`table`]: the LanceDB table beside a store, from which an index is read faster than from the store, which a large scope is
//!   searched in ([`table::search`]), and `index`, which builds it.
//! - [`eval`]: measures retrieval on somebody's questions.
//! - [`service`]: one method an operation, tool, resource or prompt; [`context`] chooses what a session needs, for the tool
//!   with the indexes, for a hook without one ([`context::brief`]).
//! - [`cli`], [`hook`] and [`mcp`]: adapters. They decode, call the service, and encode. [`mcp`] speaks over standard input and
//!   output or over HTTP ([`mcp::http`], with [`mcp::http::gate`] before it).
//! - [`surface`]: the tools as agents see them, renamed, hidden or aliased, with built-in sets in the form of other servers';
//!   [`upstream`]: other servers whose tools are offered too, as their owner describes them ([`mcp::upstream`] connects).
//! - [`connect`]: puts this server into the configuration files of clients, and takes it out again.
//! - [`import`] and [`demo`]: build native stores.
//!
//! # Invariants
//!
//! - Curation is decided by SQLite: a record enters an answer only through [`store::read`], with the status that the store
//!   says in that snapshot. The in-memory index orders and filters; it never vouches for a status.
//! - The vector table is a cache: what an index takes from it is compared with the store row by row, by the hash of all
//!   values and the status, before anything is answered; what a search finds in it later counts only for rows that passed.
//! - A store is opened for reading only in [`store::open`], in place through a file layer that cannot write, as a private
//!   copy, or as an image in memory. [`import`] and [`demo`] write native stores, and no request of an agent reaches them.
//! - Only [`mcp`] names rmcp, only [`mcp::http`] hyper, and only [`mcp::upstream`] reqwest; it starts processes and opens
//!   connections that `config.toml` describes, each process with a shell that ends it where we are killed, and nothing else does. rusqlite is named in [`store`], in what builds stores ([`import`], [`demo`]) and where errors
//!   and versions are reported. Only [`table`] names LanceDB and arrow.
//! - The environment, the working directory, the calendar and standard input and output belong to [`cli`] (and, for the
//!   protocol, to [`mcp`]). So does the token of HTTP: [`cli`] finds or makes it, [`mcp`] compares. The library never prints.
//! - [`api`], [`memory`], [`surface`], [`text`], [`time`], [`upstream`] and [`uri`] do no input or output.
//! - The engine knows the four tools by their own names; what they are called on a [`surface`] is put in between [`mcp`] and
//!   [`service`], arguments on the way in and names on the way out. No call of ours waits for an upstream server.
//! - Adapters hold no rules and do not call each other. [`service`] cannot reach [`import`].
//! - A request runs on one blocking thread from beginning to end; the async threads only move messages. Reading a whole
//!   store and comparing a working tree take a few more ([`query::inverted`], [`store::read`], [`table`], [`scope::changes`]), and
//!   LanceDB has a runtime of its own that such a thread waits for.
//! - `unsafe` code is in [`store::vfs`] alone, but for a few lines of [`cli`], which tell LanceDB of the processors and the
//!   allocator to give memory back.

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
