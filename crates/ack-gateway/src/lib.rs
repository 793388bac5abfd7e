//! Other MCP servers behind ours: the tools that `[upstream]` in `config.toml` names are offered
//! with our own.
//!
//! [`settings`] validates the configuration. [`server`] starts or reaches the servers, lists their
//! tools and forwards calls. No other crate starts a process or opens a connection.

mod error;
pub mod server;
pub mod settings;
