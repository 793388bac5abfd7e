//! The built-in sets of tools: those of other memory servers that read, answered by our four. Each
//! is a table in `sets/`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::argument::Argument;
use super::{OfferedTool, Tool, ToolSchemas as _, ToolsetPreset};

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

/// One of the four, unchanged.
fn built_in(operation: Tool) -> OfferedTool {
    let arguments = operation.properties().keys();
    OfferedTool::new(
        operation.name(),
        operation,
        operation.description(),
        arguments.map(|name| Argument::own(name)).collect(),
    )
}

fn tool((name, row): (String, ToolRow)) -> Option<OfferedTool> {
    let operation = Tool::ALL.into_iter().find(|tool| tool.name() == row.calls)?;
    let arguments = row.arguments.into_iter().map(|(name, row)| match row {
        ArgumentRow::Name(is) => Argument { is: Some(is), name, ..Argument::default() },
        ArgumentRow::Table(argument) => Argument { name, ..argument },
    });
    let tool = OfferedTool::new(&name, operation, &row.description, arguments.collect());
    Some(OfferedTool { preset: row.preset, ..tool })
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
                let known = tool.operation.properties();
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
