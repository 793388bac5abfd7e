//! `[tools]` of `config.toml` as it is written.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// `[tools]`: which tools agents see. Keys other than these two name a tool of the set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(default)]
pub struct ToolsTable {
    /// The built-in set: `ack` (the default), `claude-mem`, `episodic-memory`, `siftcoder` or
    /// `sifs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// Tools of the set to hide.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<String>,
    /// The tools that are renamed or described, by name.
    #[serde(flatten)]
    pub entries: BTreeMap<String, ToolEntry>,
}

/// `[tools.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ToolEntry {
    /// The name that agents see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What agents read about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

// Handwritten, because serde's derived code for flattened types loses the position of an error.
impl<'de> Deserialize<'de> for ToolsTable {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = ToolsTable;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a table of tools")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ToolsTable, A::Error> {
                let mut tools = ToolsTable::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "surface" => tools.surface = Some(map.next_value()?),
                        "hide" => tools.hide = map.next_value()?,
                        _ => {
                            let entry = map.next_value()?;
                            tools.entries.insert(key, entry);
                        }
                    }
                }
                Ok(tools)
            }
        }
        input.deserialize_map(Reader)
    }
}
