//! The built-in sets of tools: those of other memory servers that read, answered by our four. Each
//! is a table in `sets/`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::argument::Argument;
use super::{OfferedTool, Tool, ToolsetPreset, schema};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolRow {
    calls: String,
    description: String,
    arguments: BTreeMap<String, ArgumentRow>,
    #[serde(default)]
    preset: Map<String, Value>,
}

/// An argument of a tool: the name of the one it stands for, or a table.
#[derive(Deserialize)]
#[serde(untagged)]
enum ArgumentRow {
    Name(String),
    Table(Argument),
}

impl ToolsetPreset {
    pub(super) fn tools(self) -> Vec<OfferedTool> {
        let table = match self {
            Self::Ack => return Tool::ALL.map(built_in).into(),
            Self::ClaudeMem => include_str!("sets/claude-mem.toml"),
            Self::EpisodicMemory => include_str!("sets/episodic-memory.toml"),
            Self::Siftcoder => include_str!("sets/siftcoder.toml"),
            Self::Sifs => include_str!("sets/sifs.toml"),
        };
        // A test reads each of them.
        let rows: BTreeMap<String, ToolRow> = toml::from_str(table).unwrap_or_default();
        rows.into_iter().filter_map(tool).collect()
    }
}

fn built_in(operation: Tool) -> OfferedTool {
    let description = match operation {
        Tool::GetContext => {
            "What matters for a project when a session starts: its memories, recent sessions, learnings of other projects."
        }
        Tool::GetMemory => "Memories in full by id, with their session.",
        Tool::ListScopes => {
            "The memory scopes: what they hold, what waits for review, health; which one is current and why."
        }
        Tool::QueryMemories => {
            "Search learnings of past sessions in all projects by words, error message or identifier; or list the newest."
        }
    };
    OfferedTool {
        name: operation.name().to_owned(),
        description: description.to_owned(),
        operation,
        arguments: schema::properties(operation).keys().map(|name| Argument::own(name)).collect(),
        preset: Map::new(),
    }
}

fn tool((name, row): (String, ToolRow)) -> Option<OfferedTool> {
    let operation = Tool::from_name(&row.calls)?;
    let arguments = row.arguments.into_iter().map(|(name, row)| match row {
        ArgumentRow::Name(is) => Argument { is: Some(is), name, ..Argument::default() },
        ArgumentRow::Table(argument) => Argument { name, ..argument },
    });
    let mut arguments: Vec<Argument> = arguments.collect();
    // In the order of the operation's own; those without effect come last.
    let known = schema::properties(operation);
    arguments.sort_by_key(|argument| {
        let is = argument.is.as_ref();
        is.and_then(|is| known.keys().position(|name| name == is)).unwrap_or(usize::MAX)
    });
    Some(OfferedTool {
        name,
        description: row.description,
        operation,
        arguments,
        preset: row.preset,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolset::argument::Form;

    #[test]
    fn every_argument_of_a_set_stands_for_one_that_its_tool_has() {
        for set in ToolsetPreset::names().map(|name| name.parse::<ToolsetPreset>().unwrap()) {
            assert!(set.tools().len() > 1, "{}", set.name());
            for tool in set.tools() {
                assert_eq!(tool.is_plain(), set == ToolsetPreset::Ack, "{}", tool.name);
                let known = schema::properties(tool.operation);
                let presets = tool.preset.keys().map(String::as_str);
                let targets = tool.arguments.iter().flat_map(Argument::targets);
                for name in presets.chain(targets) {
                    assert!(known.contains_key(name), "{}: {name}", tool.name);
                }
                for argument in &tool.arguments {
                    let is_ignored = matches!(argument.form, Form::Ignored(..) | Form::OnlyZero(_));
                    assert_eq!(argument.is.is_none(), is_ignored, "{argument:?}");
                    let schema = argument.schema(known);
                    let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
                    if argument.form == Form::Clamped || argument.default.is_some() {
                        let bounds = bound("minimum").unwrap()..=bound("maximum").unwrap();
                        let default = argument.default.unwrap_or(*bounds.start());
                        assert!(bounds.contains(&default), "{}: {schema}", tool.name);
                    }
                    if let Form::Choice(words) = &argument.form {
                        let allowed = known[argument.is.as_ref().unwrap()]["enum"].as_array();
                        for ours in words.values() {
                            assert!(allowed.unwrap().contains(&Value::from(&**ours)), "{ours}");
                        }
                    }
                }
            }
        }
    }
}
