//! `[upstream.NAME]` of `config.toml`: other MCP servers whose tools are offered with ack-memory's.
//!
//! These types are what the owner may write; [`check`] validates them and [`crate::server`]
//! connects. Only servers that are configured here are contacted.

pub mod check;
pub mod declared;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use ack_api::settings::bounded;

pub use self::check::{Connection, INHERITED_VARIABLES, Token, Upstream, build};
pub use crate::error::{NotOffered, UpstreamError};

/// `[upstream.NAME]`: another MCP server whose tools are offered with our own. It is started by
/// `command` or reached at `url`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct UpstreamEntry {
    /// The program (an absolute path, or a name that is looked up in `PATH`) and its arguments. No
    /// shell is involved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment variables for the process, with their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Names of our own environment variables that are passed on to the process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<String>,
    /// The folder it is started in. Default: our own working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Instead of `command`: the address of a streamable HTTP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers for every request to it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The variable that holds its bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The file that holds its bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Which of its tools are offered: for each, the name that agents see, or a table.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolOfUpstream>,
    /// How long a call may take, in milliseconds, 100 to 600000 (default 30000).
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::<_, 100, 600000>"
    )]
    #[schemars(range(min = 100, max = 600_000))]
    pub timeout_ms: Option<u32>,
    /// How long it may take to start and list its tools, in milliseconds, 100 to 120000 (default
    /// 10000).
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::<_, 100, 120000>"
    )]
    #[schemars(range(min = 100, max = 120_000))]
    pub start_timeout_ms: Option<u32>,
    /// How long the first tool list waits for it, in milliseconds, 0 to 10000 (default 1500).
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::<_, 0, 10000>"
    )]
    #[schemars(range(min = 0, max = 10_000))]
    pub list_wait_ms: Option<u32>,
    /// Whether to offer tools that do not say whether they are read-only.
    pub trust_unannotated: bool,
}

/// A tool of an upstream server: the name that agents see, or a table.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few of them are read once, at the start"
)]
pub enum ToolOfUpstream {
    /// The name that agents see.
    Name(String),
    /// All its settings.
    Table(UpstreamTool),
}

/// The settings of an upstream tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct UpstreamTool {
    /// The name that agents see.
    pub name: String,
    /// The description that agents read, instead of the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema of its arguments that agents see, instead of the server's. With it, the tool
    /// stays listed while the server is down.
    #[serde(
        alias = "inputSchema",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "schema_of_arguments"
    )]
    pub input_schema: Option<Map<String, Value>>,
    /// Renamed arguments: the name that agents use, and the server's own. All others keep their
    /// names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Arguments that always have this value; agents do not see them.
    #[serde(
        skip_serializing_if = "Map::is_empty",
        deserialize_with = "ack_api::settings::values"
    )]
    pub preset: Map<String, Value>,
    /// Default values of arguments, under the server's own names.
    #[serde(
        skip_serializing_if = "Map::is_empty",
        deserialize_with = "ack_api::settings::values"
    )]
    pub defaults: Map<String, Value>,
}

fn schema_of_arguments<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<Map<String, Value>>, D::Error> {
    ack_api::settings::values(input).map(Some)
}

// Written by hand: a derived implementation for an untagged enum loses the position of an error.
impl<'de> Deserialize<'de> for ToolOfUpstream {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = ToolOfUpstream;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the name that agents see, or a table")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<ToolOfUpstream, E> {
                Ok(ToolOfUpstream::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ToolOfUpstream, A::Error> {
                UpstreamTool::deserialize(MapAccessDeserializer::new(map))
                    .map(ToolOfUpstream::Table)
            }
        }
        input.deserialize_any(Reader)
    }
}
