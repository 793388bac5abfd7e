//! Builds a [`Toolset`] from `[tools]` of `config.toml`.

use super::{OfferedTool, Toolset, ToolsetPreset};
use ack_api::settings::{Problem, checked_description, invalid_name_message, is_name};
use ack_api::text;
use ack_service::config::tools::{ToolEntry, ToolsTable};

impl Toolset {
    pub fn build(table: &ToolsTable) -> Result<Self, Problem> {
        let set = match &table.surface {
            None => ToolsetPreset::Ack,
            Some(name) => name.parse().map_err(|_| {
                let message = format!("`{}` is not a built-in set of tools", text::line(name, 80));
                Problem::at(["surface"], message).with_candidates(name, ToolsetPreset::names())
            })?,
        };
        let mut tools = set.tools();
        let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let known = || names.iter().map(String::as_str);
        if let Some(key) = table.entries.keys().find(|key| !names.contains(key)) {
            let message = format!("there is no tool `{}` to change", text::line(key, 80));
            return Err(Problem::at([key.as_str()], message).with_candidates(key, known()));
        }
        if let Some(key) = table.hide.iter().find(|key| !names.contains(key)) {
            let message = format!("there is no tool `{}`", text::line(key, 80));
            return Err(Problem::at(["hide"], message).with_candidates(key, known()));
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
