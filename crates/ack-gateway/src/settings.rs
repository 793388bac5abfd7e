//! `[upstream.NAME]` of `config.toml`: other MCP servers whose tools are offered with ack-memory's.
//!
//! [`check`] validates what the owner wrote, [`crate::server`] connects. Only servers that are
//! configured here are contacted.

pub mod check;

pub use self::check::{Connection, INHERITED_VARIABLES, Upstream, UpstreamTool, build};
pub use crate::error::{NotOffered, UpstreamError};
