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
#[cfg(test)]
mod hint_tests;
mod instructions;
mod reader;
mod reading;
pub mod schema;
mod sets;

use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value, json};
use strum::{EnumString, IntoStaticStr, VariantArray};

use self::argument::Argument;
use ack_api::{
    ContextRequest, ContextResponse, GetRequest, GetResponse, ListScopesRequest,
    ListScopesResponse, QueryRequest, QueryResponse, UNLISTED,
};

pub use self::reader::{AgentReader, Place};
pub use ack_api::Tool;

/// The schemas and descriptions of the four tools.
pub trait ToolSchemas {
    /// What agents read about it.
    fn description(self) -> &'static str;
    /// The schema of its arguments. Built once, because every call reads it.
    fn input(self) -> &'static Map<String, Value>;
    fn output(self) -> Map<String, Value>;
    /// [`ToolSchemas::output`] with the fields of a result, for the main search tool.
    fn output_with_results(self) -> Map<String, Value>;
    /// The properties of [`ToolSchemas::input`].
    fn properties(self) -> &'static Map<String, Value>;
}

impl ToolSchemas for Tool {
    fn description(self) -> &'static str {
        match self {
            Self::GetContext => {
                "What matters for a project when a session starts: its memories, recent sessions, learnings of other projects."
            }
            Self::GetMemory => "Memories in full by id, with their session.",
            Self::ListScopes => {
                "The memory scopes: what they hold, what waits for review, health; which one is current and why."
            }
            Self::QueryMemories => {
                "Search learnings of past sessions in all projects by words, error message or identifier; or list the newest."
            }
        }
    }

    fn input(self) -> &'static Map<String, Value> {
        static KNOWN: [OnceLock<Map<String, Value>>; 4] = [const { OnceLock::new() }; 4];
        let [context, get, scopes, query] = &KNOWN;
        match self {
            Self::GetContext => context.get_or_init(schema::input_schema::<ContextRequest>),
            Self::GetMemory => get.get_or_init(schema::input_schema::<GetRequest>),
            Self::ListScopes => scopes.get_or_init(schema::input_schema::<ListScopesRequest>),
            Self::QueryMemories => query.get_or_init(schema::input_schema::<QueryRequest>),
        }
    }

    fn output(self) -> Map<String, Value> {
        match self {
            Self::GetContext => schema::output_schema::<ContextResponse>(),
            Self::GetMemory => schema::output_schema::<GetResponse>(),
            Self::ListScopes => schema::output_schema::<ListScopesResponse>(),
            Self::QueryMemories => schema::output_schema::<QueryResponse>(),
        }
    }

    fn output_with_results(self) -> Map<String, Value> {
        static SEARCH: LazyLock<Map<String, Value>> = LazyLock::new(|| {
            let output = Tool::QueryMemories.output();
            schema::with_fields::<QueryResponse>(output, "results", &RESULT_FIELDS)
        });
        SEARCH.clone()
    }

    fn properties(self) -> &'static Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        self.input().get("properties").and_then(Value::as_object).unwrap_or(&NONE)
    }
}

/// The result fields that a listed schema names: those of a concise result.
const RESULT_FIELDS: [&str; 8] =
    ["id", "title", "facts", "concepts", "project", "scope", "status", "type"];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, VariantArray, IntoStaticStr, EnumString)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum ToolsetPreset {
    /// The built-in four.
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

/// A tool as agents see it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    pub name: String,
    /// What agents read about it.
    pub description: String,
    /// The built-in tool that answers it.
    pub operation: Tool,
    arguments: Vec<Argument>,
    /// Arguments that are always passed.
    preset: Map<String, Value>,
}

impl OfferedTool {
    /// A tool with arguments, which are listed in the order of the operation's own; those without
    /// effect come last.
    pub(crate) fn new(
        name: &str,
        operation: Tool,
        description: &str,
        mut arguments: Vec<Argument>,
    ) -> Self {
        let known = operation.properties();
        arguments.sort_by_key(|argument| {
            let is = argument.is.as_ref();
            let place = is.and_then(|is| known.keys().position(|name| name == is));
            place.unwrap_or(usize::MAX)
        });
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            operation,
            arguments,
            preset: Map::new(),
        }
    }

    /// Whether calls need no translation.
    pub fn is_plain(&self) -> bool {
        self.preset.is_empty()
            && self.arguments.iter().all(Argument::is_plain)
            && self.arguments.len() == self.operation.properties().len()
    }

    /// The schema of its arguments. Diagnostic arguments of the search are left out, unless the
    /// owner chose the arguments.
    pub fn input(&self) -> Map<String, Value> {
        let known = self.operation.properties();
        let is_chosen = self.arguments.len() < known.len();
        let is_listed = |argument: &&Argument| {
            is_chosen || !argument.is_plain() || !UNLISTED.contains(&argument.name.as_str())
        };
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
        root.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            root.insert("required".to_owned(), Value::Array(required));
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

    pub(crate) fn new(set: ToolsetPreset, mut tools: Vec<OfferedTool>) -> Self {
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Self { set, tools }
    }

    pub fn tools(&self) -> &[OfferedTool] {
        &self.tools
    }

    pub fn find(&self, name: &str) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The name of a tool here; `None` if it is hidden.
    pub fn name_of(&self, tool: Tool) -> Option<&str> {
        self.tool_for(tool).map(|offered| offered.name.as_str())
    }

    /// The tool for an operation: one that takes its first argument, with the fewest presets.
    pub fn tool_for(&self, operation: Tool) -> Option<&OfferedTool> {
        let first = operation.properties().keys().next();
        let tools = self.tools.iter().filter(|tool| tool.operation == operation);
        tools.min_by_key(|tool| {
            let takes =
                |name: &String| tool.arguments.iter().any(|argument| argument.has_target(name));
            (first.is_some_and(|name| !takes(name)), tool.preset.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_are_plain() {
        assert!(Toolset::default().tools().iter().all(OfferedTool::is_plain));
    }
}
