//! The tools that agents see: the built-in four, possibly renamed, described, hidden or joined by
//! aliases with mapped and preset arguments.
//!
//! A [`Toolset`] is a list of [`OfferedTool`]s, each of which calls one of the four [`Tool`]s. It
//! starts from a [`ToolsetPreset`], which is itself a file in the format of `[tools]`
//! ([`crate::config::tools`]). [`build`] checks it against the schemas of the four, so that nothing
//! can fail later. [`call`] translates arguments on the way in, and the names of tools and
//! arguments in errors and notes on the way out. The service does not know about it, and this
//! module does no input or output.

pub mod argument;
pub mod build;
pub mod call;
mod instructions;
pub mod schema;

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value, json};

use self::argument::Argument;
use crate::service::Error;
use crate::service::arguments;
use ack_api::wording::{Name, Vocabulary, reword};
use ack_api::{
    ContextRequest, ContextResponse, GetRequest, GetResponse, ListScopesRequest,
    ListScopesResponse, QueryRequest, QueryResponse, UNLISTED,
};

/// One of the four tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// What matters for a project when a session starts.
    GetContext,
    /// Memories by id.
    GetMemory,
    /// The scopes.
    ListScopes,
    /// Search.
    QueryMemories,
}

impl Tool {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 4] = [
        Self::GetContext,
        Self::GetMemory,
        Self::ListScopes,
        Self::QueryMemories,
    ];

    /// Its own name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetContext => "get_context",
            Self::GetMemory => "get_memory",
            Self::ListScopes => "list_scopes",
            Self::QueryMemories => "query_memories",
        }
    }

    /// The command that gives the same answer, if no tool does.
    const fn command(self) -> &'static str {
        match self {
            Self::GetContext => "`ack-memory context`",
            Self::GetMemory => "`ack-memory get`",
            Self::ListScopes => "`ack-memory scopes`",
            Self::QueryMemories => "`ack-memory query`",
        }
    }

    /// What agents read about it.
    pub const fn description(self) -> &'static str {
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

    /// The schema of its arguments. Built once, because every call reads it.
    pub fn input(self) -> &'static Map<String, Value> {
        static KNOWN: [OnceLock<Map<String, Value>>; 4] = [const { OnceLock::new() }; 4];
        let [context, get, scopes, query] = &KNOWN;
        match self {
            Self::GetContext => context.get_or_init(schema::input_schema::<ContextRequest>),
            Self::GetMemory => get.get_or_init(schema::input_schema::<GetRequest>),
            Self::ListScopes => scopes.get_or_init(schema::input_schema::<ListScopesRequest>),
            Self::QueryMemories => query.get_or_init(schema::input_schema::<QueryRequest>),
        }
    }

    /// The schema of its answer.
    pub fn output(self) -> Map<String, Value> {
        match self {
            Self::GetContext => schema::output_schema::<ContextResponse>(),
            Self::GetMemory => schema::output_schema::<GetResponse>(),
            Self::ListScopes => schema::output_schema::<ListScopesResponse>(),
            Self::QueryMemories => schema::output_schema::<QueryResponse>(),
        }
    }

    /// [`Tool::output`] with the fields of a result, for the main search tool.
    pub fn output_with_results(self) -> Map<String, Value> {
        schema::with_fields(self.output(), "results", &RESULT_FIELDS)
    }

    /// The properties of [`Tool::input`].
    fn properties(self) -> &'static Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        self.input()
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&NONE)
    }

    /// Checks that arguments have the types that a call needs.
    fn decode(self, values: Map<String, Value>) -> Result<(), Error> {
        match self {
            Self::GetContext => arguments::<ContextRequest>(self.name(), values).map(drop),
            Self::GetMemory => arguments::<GetRequest>(self.name(), values).map(drop),
            Self::ListScopes => arguments::<ListScopesRequest>(self.name(), values).map(drop),
            Self::QueryMemories => arguments::<QueryRequest>(self.name(), values).map(drop),
        }
    }
}

/// The result fields that a listed schema names: those of a concise result.
const RESULT_FIELDS: [&str; 8] = [
    "id", "title", "facts", "concepts", "project", "scope", "status", "type",
];

/// A built-in set of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolsetPreset {
    /// The built-in four.
    #[default]
    Ack,
    /// The tools of claude-mem.
    ClaudeMem,
    /// The tools of episodic-memory.
    EpisodicMemory,
    /// The tools of SiftCoder.
    Siftcoder,
    /// The tools of SIFS.
    Sifs,
}

impl ToolsetPreset {
    /// All presets.
    pub const ALL: [Self; 5] = [
        Self::Ack,
        Self::ClaudeMem,
        Self::EpisodicMemory,
        Self::Siftcoder,
        Self::Sifs,
    ];

    /// Its name on the command line and in `config.toml`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::ClaudeMem => "claude-mem",
            Self::EpisodicMemory => "episodic-memory",
            Self::Siftcoder => "siftcoder",
            Self::Sifs => "sifs",
        }
    }

    /// The preset with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// The preset as a `config.toml` that changes the four.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Ack => "",
            Self::ClaudeMem => include_str!("toolset/sets/claude-mem.toml"),
            Self::EpisodicMemory => include_str!("toolset/sets/episodic-memory.toml"),
            Self::Siftcoder => include_str!("toolset/sets/siftcoder.toml"),
            Self::Sifs => include_str!("toolset/sets/sifs.toml"),
        }
    }
}

/// A tool as agents see it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// What agents read about it.
    pub description: String,
    /// The built-in tool that answers it.
    pub operation: Tool,
    /// Its arguments, in listing order.
    arguments: Vec<Argument>,
    /// Arguments that are always passed.
    preset: Map<String, Value>,
}

impl OfferedTool {
    /// One of the four, unchanged.
    fn built_in(operation: Tool) -> Self {
        Self {
            name: operation.name().to_owned(),
            description: operation.description().to_owned(),
            operation,
            arguments: operation
                .properties()
                .keys()
                .map(|name| Argument::own(name))
                .collect(),
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
                required.push(Value::from(argument.name.clone()));
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
    /// The preset it started from.
    pub set: ToolsetPreset,
    tools: Vec<OfferedTool>,
}

impl Default for Toolset {
    fn default() -> Self {
        Self {
            set: ToolsetPreset::Ack,
            tools: Tool::ALL.map(OfferedTool::built_in).into(),
        }
    }
}

impl Toolset {
    /// The tools.
    pub fn tools(&self) -> &[OfferedTool] {
        &self.tools
    }

    /// The tool with this name.
    pub fn find(&self, name: &str) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Whether each of the four has its own name, so that no text needs translation.
    fn has_own_names(&self) -> bool {
        Tool::ALL
            .into_iter()
            .all(|operation| self.name_of(operation) == operation.name())
    }

    /// The name of an operation in this toolset, or the command if no tool calls it.
    fn name_of(&self, operation: Tool) -> &str {
        self.tool_for(operation)
            .map_or(operation.command(), |tool| tool.name.as_str())
    }

    /// The tool for an operation: one that takes its first argument, with the fewest presets.
    pub fn tool_for(&self, operation: Tool) -> Option<&OfferedTool> {
        let first = operation.properties().keys().next();
        let tools = self.tools.iter().filter(|tool| tool.operation == operation);
        tools.min_by_key(|tool| {
            let takes = |name: &String| {
                tool.arguments
                    .iter()
                    .any(|argument| argument.has_target(name))
            };
            (first.is_some_and(|name| !takes(name)), tool.preset.len())
        })
    }

    /// One of our texts, with this toolset's names of the four.
    pub fn with_tool_names<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.has_own_names() {
            return Cow::Borrowed(text);
        }
        reword(text, &mut ToolNames(self))
    }
}

/// The names of the four tools in a toolset.
struct ToolNames<'a>(&'a Toolset);

impl ToolNames<'_> {
    /// The name of one of the four, or the equivalent command if no tool calls it.
    fn tool(&self, name: Name<'_>) -> Option<String> {
        let (word, is_quoted) = match name {
            Name::Tool(word) => (word, false),
            Name::Argument(word, None) => (word, true),
            Name::Argument(..) => return None,
        };
        let operation = Tool::ALL.into_iter().find(|tool| tool.name() == word)?;
        Some(match self.0.tool_for(operation) {
            Some(tool) if is_quoted => format!("`{}`", tool.name),
            Some(tool) => tool.name.clone(),
            None => operation.command().to_owned(),
        })
    }
}

impl Vocabulary for ToolNames<'_> {
    fn translate(&mut self, name: Name<'_>) -> Option<String> {
        self.tool(name)
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
