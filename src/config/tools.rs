//! `[tools]` of `config.toml` as it is written. The built-in sets (`src/toolset/sets/`) use the
//! same format.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// `[tools]`: which tools agents see. Keys other than these two name a tool: one of the set, to
/// change it, or a new one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(default)]
pub struct ToolsTable {
    /// The built-in set to begin with: `ack` (the default), `claude-mem`, `episodic-memory`,
    /// `siftcoder` or `sifs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// Tools of the set to hide.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<String>,
    /// The tools that are changed or added, by name.
    #[serde(flatten)]
    pub entries: BTreeMap<String, ToolEntry>,
}

/// `[tools.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ToolEntry {
    /// The tool that answers a new one: `query_memories`, `get_memory`, `list_scopes` or
    /// `get_context`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<String>,
    /// The name that agents see, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What agents read about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments: the name that agents use, and what it maps to. Default: the arguments of the
    /// tool it calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, ArgumentEntry>>,
    /// Whether to also offer the arguments that `arguments` does not list, under their own names.
    pub others: bool,
    /// Arguments of the tool it calls that always have this value; agents do not see them.
    #[serde(
        skip_serializing_if = "Map::is_empty",
        deserialize_with = "ack_api::settings::values"
    )]
    pub preset: Map<String, Value>,
}

/// An argument: the name of the one it stands for, or a table.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few of them are read once, at the start"
)]
pub enum ArgumentEntry {
    /// The argument that it stands for.
    Name(String),
    /// More about it.
    Table(ArgumentTable),
}

/// An argument, in full.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ArgumentTable {
    /// The argument that it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
    /// Further arguments that get the same value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Instead of `is`: the argument is accepted without effect, for this reason. The answer says
    /// so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
    /// With `ignored`: the only values that are accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Value>,
    /// Its type in the schema: any with `ignored`; `string` for one entry of a list.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// What agents read about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a call without it is refused.
    pub required: bool,
    /// The default value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// How its value is read.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// The pattern for a bare number, with `{}` for the number: `obs-{}`. If no memory has that id,
    /// the number itself is tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<String>,
    /// Prefixes to strip from a string: `#` if agents write `#7`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Patterns for a number after these letters: `{ S = "sum-{}" }` reads `S12` as `sum-12`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prefixed: BTreeMap<String, String>,
    /// The allowed words, each with the value it maps to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Whether to clamp a number that is out of bounds. The answer says so.
    pub clamp: bool,
}

/// The type of an argument in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    String,
    Number,
    Integer,
    Boolean,
    Array,
}

/// How to convert a value in another format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conversion {
    /// A day, or a point in time as its day.
    Day,
    /// A list, or texts separated by commas.
    List,
    /// A list of texts as one text.
    Words,
    /// A question, replaced by the id of the memory that answers it best.
    BestMatch,
}

impl ArgumentEntry {
    /// The argument as a table. A bare name becomes a table with only `is`.
    pub fn table(&self) -> ArgumentTable {
        match self {
            Self::Name(name) => ArgumentTable {
                is: Some(name.clone()),
                ..ArgumentTable::default()
            },
            Self::Table(table) => table.clone(),
        }
    }
}

// Handwritten, because serde's derived code for flattened and untagged types loses the position of
// an error.

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

impl<'de> Deserialize<'de> for ArgumentEntry {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = ArgumentEntry;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the name of an argument, or a table")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<ArgumentEntry, E> {
                Ok(ArgumentEntry::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ArgumentEntry, A::Error> {
                ArgumentTable::deserialize(MapAccessDeserializer::new(map))
                    .map(ArgumentEntry::Table)
            }
        }
        input.deserialize_any(Reader)
    }
}
