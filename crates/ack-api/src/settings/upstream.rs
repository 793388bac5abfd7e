//! `[upstream.NAME]` of `config.toml`: another MCP server whose tools are offered with our own.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use super::bounded;

/// `[upstream.NAME]`: another MCP server whose tools are offered with our own. It is started by
/// `command` or reached at `url`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct UpstreamEntry {
    /// The program (an absolute path, or a name that is looked up in `PATH`) and its arguments. No
    /// shell is involved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Names of our own environment variables that are passed on to the process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<String>,
    /// Instead of `command`: the address of a streamable HTTP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The variable that holds its bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// Which of its tools are offered: the server's name for each, and the name that agents see.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, PublicName>,
    /// How long a call may take, in milliseconds, 100 to 600000 (default 30000). Starting the server
    /// may take as long, but at most 10 seconds.
    #[serde(deserialize_with = "bounded::<_, 100, 600000>")]
    #[schemars(range(min = 100, max = 600_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Whether to offer tools that do not say whether they are read-only.
    pub trust_unannotated: bool,
}

/// The name of an upstream tool that agents see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct PublicName(pub String);

// Written by hand for the text of the error.
impl<'de> Deserialize<'de> for PublicName {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = PublicName;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(
                    "the name that agents see; description and arguments are the server's own",
                )
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<PublicName, E> {
                Ok(PublicName(name.to_owned()))
            }
        }
        input.deserialize_str(Reader)
    }
}
