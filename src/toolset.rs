//! The tools that agents see: the built-in four, or those of another memory server that they
//! answer, possibly renamed, described or hidden.
//!
//! A [`Toolset`] is a list of [`OfferedTool`]s, each of which calls one of the four [`Tool`]s. It
//! starts from a [`ToolsetPreset`] ([`sets`]), which [`build`] changes as `[tools]` of `config.toml`
//! says. [`call`] translates arguments on the way in, and [`AgentReader`] puts the hints
//! of errors and notes into the names that the agent knows on the way out. The service does not
//! know about it, and this module does no input or output.

mod argument;
mod build;
pub mod call;
mod day;
mod instructions;
mod reader;
mod reading;
pub mod schema;
mod sets;

use serde_json::{Map, Value, json};
use strum::{EnumString, IntoStaticStr, VariantArray};

use self::argument::Argument;
use ack_api::UNLISTED;

pub use self::reader::{AgentReader, Place};
pub use ack_api::Tool;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, VariantArray, IntoStaticStr, EnumString)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum ToolsetPreset {
    #[default]
    Ack,
    ClaudeMem,
    EpisodicMemory,
    Siftcoder,
    Sifs,
}

impl ToolsetPreset {
    /// The names on the command line and in `config.toml`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().map(|set| set.into_str())
    }

    pub const fn name(self) -> &'static str {
        self.into_str()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    pub name: String,
    pub description: String,
    /// The built-in tool that answers it.
    pub operation: Tool,
    arguments: Vec<Argument>,
    preset: Map<String, Value>,
}

impl OfferedTool {
    /// Whether it is one of the four under its own arguments.
    pub fn is_plain(&self) -> bool {
        self.preset.is_empty()
            && self.arguments.iter().all(Argument::is_plain)
            && self.arguments.len() == schema::properties(self.operation).len()
    }

    /// The schema of its arguments, without the diagnostic ones of our own search.
    pub fn input(&self) -> Map<String, Value> {
        let known = schema::properties(self.operation);
        let is_plain = self.is_plain();
        let is_listed =
            |argument: &&Argument| !is_plain || !UNLISTED.contains(&argument.name.as_str());
        let mut properties = Map::new();
        let mut required = Vec::new();
        for argument in self.arguments.iter().filter(is_listed) {
            properties.insert(argument.name.clone(), argument.schema(known));
            if argument.required {
                required.push(Value::from(argument.name.as_str()));
            }
        }
        let mut root = Map::new();
        root.insert("type".to_owned(), json!("object"));
        root.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            root.insert("required".to_owned(), required.into());
        }
        root.insert("additionalProperties".to_owned(), json!(false));
        root
    }
}

/// The tools that agents see, in listing order.
#[derive(Debug, Clone, PartialEq)]
pub struct Toolset {
    pub set: ToolsetPreset,
    tools: Vec<OfferedTool>,
}

impl Default for Toolset {
    fn default() -> Self {
        Self::of(ToolsetPreset::Ack)
    }
}

impl Toolset {
    pub fn of(set: ToolsetPreset) -> Self {
        Self::new(set, set.tools())
    }

    fn new(set: ToolsetPreset, mut tools: Vec<OfferedTool>) -> Self {
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Self { set, tools }
    }

    pub fn tools(&self) -> &[OfferedTool] {
        &self.tools
    }

    pub fn find(&self, name: &str) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub fn name_of(&self, tool: Tool) -> Option<&str> {
        self.tool_for(tool).map(|offered| offered.name.as_str())
    }

    /// The tool for an operation: one that takes its first argument, with the fewest presets.
    pub fn tool_for(&self, operation: Tool) -> Option<&OfferedTool> {
        let first = schema::properties(operation).keys().next();
        let tools = self.tools.iter().filter(|tool| tool.operation == operation);
        tools.min_by_key(|tool| {
            let takes =
                |name: &String| tool.arguments.iter().any(|argument| argument.has_target(name));
            (first.is_some_and(|name| !takes(name)), tool.preset.len())
        })
    }
}
