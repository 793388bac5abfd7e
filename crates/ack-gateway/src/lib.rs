//! Other MCP servers behind ours: the tools that `[upstream]` of `config.toml` names are offered beside the memories.
//!
//! [`settings`] checks what the owner wrote; [`server`] starts or reaches the servers, lists their tools and passes calls on.
//! No other crate starts a process or opens a connection.

pub mod server;
pub mod settings;
