//! Other MCP servers behind ack-memory: the tools that `[upstream]` in `config.toml` names are
//! offered with its own four.
//!
//! [`settings`] validates the configuration. [`server`] starts or reaches the servers, lists their
//! tools and forwards calls. No other code starts or contacts upstream servers.

mod error;
pub mod server;
pub mod settings;
