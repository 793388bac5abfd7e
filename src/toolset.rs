//! The tools that agents see: the built-in four, or those of another memory server that they
//! answer, possibly renamed, described or hidden.
//!
//! A [`Toolset`] is a list of [`OfferedTool`]s, each of which calls one of the four [`Tool`]s. It
//! starts from a [`ToolsetPreset`] ([`sets`]), which `[tools]` of `config.toml` may change.
//! [`call`] translates arguments on the way in, and [`AgentReader`] puts the hints
//! of errors and notes into the names that the agent knows on the way out. The service does not
//! know about it, and this module does no input or output.

mod argument;
pub mod call;
mod instructions;
mod reader;
mod reading;
pub mod schema;
mod sets;

use serde_json::{Map, Value, json};
use strum::{EnumString, IntoStaticStr, VariantArray};

use self::argument::Argument;
use ack_api::settings::{Problem, checked_description, invalid_name_message, is_name};
use ack_api::{UNLISTED, text};
use ack_service::config::tools::{ToolEntry, ToolsTable};

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

    pub fn build(table: &ToolsTable) -> Result<Self, Problem> {
        let set = match &table.surface {
            None => ToolsetPreset::Ack,
            Some(name) => name.parse().map_err(|_| {
                let message = format!("`{}` is not a built-in set of tools", text::line(name, 80));
                Problem::at(["surface"], message).with_candidates(name, ToolsetPreset::names())
            })?,
        };
        let mut tools = set.tools();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let is_unknown = |key: &&String| !names.contains(&key.as_str());
        if let Some(key) = table.entries.keys().find(is_unknown) {
            let message = format!("there is no tool `{}` to change", text::line(key, 80));
            return Err(Problem::at([key.as_str()], message).with_candidates(key, names));
        }
        if let Some(key) = table.hide.iter().find(is_unknown) {
            let message = format!("there is no tool `{}`", text::line(key, 80));
            return Err(Problem::at(["hide"], message).with_candidates(key, names));
        }
        tools.retain(|tool| !table.hide.contains(&tool.name));
        if tools.is_empty() {
            return Err(Problem::at(["hide"], "every tool is hidden; leave one"));
        }
        // A tool that is not renamed keeps its name.
        let is_renamed =
            |tool: &OfferedTool| table.entries.get(&tool.name).is_some_and(|it| it.name.is_some());
        let unchanged = tools.iter().filter(|tool| !is_renamed(tool));
        let mut taken: Vec<String> = unchanged.map(|tool| tool.name.clone()).collect();
        for tool in &mut tools {
            if let Some((key, entry)) = table.entries.get_key_value(&tool.name) {
                change(tool, entry, &mut taken).map_err(|problem| problem.below_path(&[key]))?;
            }
        }
        Ok(Self::new(set, tools))
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

/// Gives a tool the name and the description of an entry. `taken` are the names of other tools.
fn change(
    tool: &mut OfferedTool,
    entry: &ToolEntry,
    taken: &mut Vec<String>,
) -> Result<(), Problem> {
    if let Some(name) = &entry.name {
        if !is_name(name) {
            return Err(Problem::at(["name"], invalid_name_message(name)));
        }
        if taken.contains(name) {
            let message = format!("there is already a tool named `{name}`");
            return Err(Problem::at(["name"], message));
        }
        taken.push(name.clone());
        tool.name.clone_from(name);
    }
    if let Some(description) = &entry.description {
        tool.description = checked_description(description)
            .map_err(|message| Problem::at(["description"], message))?;
    }
    Ok(())
}
