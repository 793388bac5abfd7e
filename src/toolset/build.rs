//! Builds a [`Toolset`] from `[tools]` and checks every name, argument and preset against the
//! schemas of the four.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::argument::Argument;
use super::{OfferedTool, Tool, ToolSchemas as _, Toolset, ToolsetPreset};
use crate::config::tools::{ArgumentEntry, ArgumentTable, Conversion, Kind, ToolEntry, ToolsTable};
use crate::config::{Config, ConfigFile};
use crate::service::validate::QuerySpec;
use ack_api::settings::{Problem, checked_description, invalid_name_message, is_name};
use ack_api::text;

/// Maximum number of tools.
const MAX_TOOLS: usize = 32;

impl Toolset {
    /// The toolset of a preset.
    pub fn of(set: ToolsetPreset, config: &Config) -> Self {
        let table = toml::from_str::<ConfigFile>(set.file())
            .map(|file| file.tools)
            .unwrap_or_default();
        let mut surface = Self::default()
            .apply_table(&table, config)
            .unwrap_or_default();
        surface.set = set;
        surface
    }

    /// The toolset that `[tools]` describes.
    ///
    /// # Errors
    /// The first [`Problem`].
    pub fn build(table: &ToolsTable, config: &Config) -> Result<Self, Problem> {
        let set = match &table.surface {
            None => ToolsetPreset::Ack,
            Some(name) => ToolsetPreset::from_name(name).ok_or_else(|| {
                let message = format!("`{}` is not a built-in set of tools", text::line(name, 80));
                Problem::at(["surface"], message)
                    .with_candidates(name, ToolsetPreset::ALL.map(ToolsetPreset::name))
            })?,
        };
        Self::of(set, config).apply_table(table, config)
    }

    fn apply_table(mut self, table: &ToolsTable, config: &Config) -> Result<Self, Problem> {
        let mut keyed: Vec<(String, OfferedTool)> = self
            .tools
            .into_iter()
            .map(|tool| (tool.name.clone(), tool))
            .collect();
        for (key, entry) in &table.entries {
            let position = keyed.iter().position(|(known, _)| known == key);
            let before = position.map(|position| keyed.swap_remove(position).1);
            let names: Vec<String> = keyed.iter().map(|(known, _)| known.clone()).collect();
            let tool = tool_of_entry(key, entry, before, &names, config)
                .map_err(|problem| problem.below_path(&[key]))?;
            keyed.push((key.clone(), tool));
        }
        for hidden in &table.hide {
            let Some(position) = keyed.iter().position(|(known, _)| known == hidden) else {
                let message = format!("there is no tool `{}`", text::line(hidden, 80));
                return Err(Problem::at(["hide"], message)
                    .with_candidates(hidden, keyed.iter().map(|(known, _)| known.as_str())));
            };
            keyed.swap_remove(position);
        }
        keyed.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        if let Some([(a, first), (b, _)]) = keyed
            .array_windows()
            .find(|[(_, a), (_, b)]| a.name == b.name)
        {
            // Blame the entry that the file names; of two, the later one.
            let (key, other) = if table.entries.contains_key(b) {
                (b, a)
            } else {
                (a, b)
            };
            let message = match *other == first.name {
                true => format!("there is already a tool named `{other}`"),
                false => format!(
                    "two tools have the name `{}`: this one and `{other}`",
                    first.name
                ),
            };
            let path: &[&str] = match table.entries.get(key) {
                Some(entry) if entry.name.is_some() => &[key, "name"],
                _ => &[key],
            };
            return Err(Problem::at([], message).below_path(path));
        }
        if keyed.is_empty() {
            return Err(Problem::at(["hide"], "every tool is hidden; leave one"));
        }
        if keyed.len() > MAX_TOOLS {
            return Err(Problem::at(
                [],
                format!("{} tools; at most {MAX_TOOLS} are offered", keyed.len()),
            ));
        }
        self.tools = keyed.into_iter().map(|(_, tool)| tool).collect();
        Ok(self)
    }
}

/// The tool that an entry describes or changes.
fn tool_of_entry(
    key: &str,
    entry: &ToolEntry,
    before: Option<OfferedTool>,
    names: &[String],
    config: &Config,
) -> Result<OfferedTool, Problem> {
    let calls = match &entry.calls {
        None => None,
        Some(calls) => Some(
            Tool::ALL
                .into_iter()
                .find(|operation| operation.name() == calls)
                .ok_or_else(|| {
                    let message =
                        format!("`{}` is not one of the four tools", text::line(calls, 80));
                    Problem::at(["calls"], message)
                        .with_candidates(calls, Tool::ALL.map(Tool::name))
                })?,
        ),
    };
    let mut tool = match (before, calls) {
        (Some(before), Some(calls)) if before.operation != calls => {
            let message = format!(
                "`{key}` is answered by {}; add a tool under another key for {}",
                before.operation.name(),
                calls.name()
            );
            return Err(Problem::at(["calls"], message));
        }
        (Some(before), _) => before,
        (None, Some(operation)) => OfferedTool {
            name: key.to_owned(),
            ..OfferedTool::built_in(operation)
        },
        (None, None) => {
            let message = format!(
                "there is no tool `{}` to change, and a new one needs `calls`",
                text::line(key, 80)
            );
            return Err(
                Problem::at([], message).with_candidates(key, names.iter().map(String::as_str))
            );
        }
    };
    if let Some(name) = &entry.name {
        if !is_name(name) {
            return Err(Problem::at(["name"], invalid_name_message(name)));
        }
        tool.name.clone_from(name);
    } else if !is_name(&tool.name) {
        return Err(Problem::at([], invalid_name_message(key)));
    }
    if let Some(description) = &entry.description {
        tool.description = checked_description(description)
            .map_err(|message| Problem::at(["description"], message))?;
    }
    let known = tool.operation.properties();
    for (name, value) in &entry.preset {
        let value = Argument::own(name).read(known, value);
        check_preset(tool.operation, name, &value, known, config)
            .map_err(|problem| problem.below_path(&["preset", name]))?;
        tool.preset.insert(name.clone(), value);
    }
    if let Some(entries) = &entry.arguments {
        tool.arguments = offered_arguments(entries, entry.others, &tool, known)?;
    } else if entry.others {
        return Err(Problem::at(
            ["others"],
            "without `arguments`, all of them are offered already",
        ));
    }
    tool.arguments.retain(|argument| {
        argument
            .is
            .as_ref()
            .is_none_or(|is| !tool.preset.contains_key(is))
    });
    for argument in &mut tool.arguments {
        argument.also.retain(|also| !tool.preset.contains_key(also));
        check_default(argument, tool.operation, known, config)
            .map_err(|problem| problem.below_path(&["arguments", &argument.name]))?;
    }
    let reaches = |ours: &str| {
        tool.preset.contains_key(ours)
            || tool
                .arguments
                .iter()
                .any(|argument| argument.has_target(ours))
    };
    if tool.operation == Tool::GetMemory && !reaches("id") && !reaches("ids") {
        let at: &[&str] = if entry.arguments.is_some() {
            &["arguments"]
        } else {
            &[]
        };
        return Err(
            Problem::at([], "get_memory needs an id: no argument is `id` or `ids`").below_path(at),
        );
    }
    if tool.preset.contains_key("id") && reaches("ids") && tool.operation == Tool::GetMemory {
        tool.arguments
            .retain(|argument| argument.is.as_deref() != Some("ids"));
    }
    Ok(tool)
}

/// The arguments that `arguments` offers, in the operation's own order. Those without effect come
/// last.
fn offered_arguments(
    entries: &BTreeMap<String, ArgumentEntry>,
    others: bool,
    tool: &OfferedTool,
    known: &Map<String, Value>,
) -> Result<Vec<Argument>, Problem> {
    let mut arguments = Vec::new();
    for (name, entry) in entries {
        let table = entry.table();
        let is_table = matches!(entry, ArgumentEntry::Table(_));
        let argument = build_argument(name, table, tool, known).map_err(|mut problem| {
            if !is_table {
                problem.path.clear();
            }
            problem.below_path(&["arguments", name])
        })?;
        arguments.push(argument);
    }
    if others {
        for name in known.keys() {
            let targets_in_use = arguments
                .iter()
                .any(|argument: &Argument| argument.has_target(name) || argument.name == *name);
            if !targets_in_use {
                arguments.push(Argument::own(name));
            }
        }
    }
    let order_of = |argument: &Argument| {
        let is = argument.is.as_ref();
        is.and_then(|is| known.keys().position(|name| name == is))
            .unwrap_or(usize::MAX)
    };
    arguments.sort_by_key(order_of);
    Ok(arguments)
}

fn build_argument(
    name: &str,
    table: ArgumentTable,
    tool: &OfferedTool,
    known: &Map<String, Value>,
) -> Result<Argument, Problem> {
    let operation = tool.operation;
    if !is_name(name) {
        return Err(Problem::at(
            [],
            invalid_name_message(name).replace("a tool", "an argument"),
        ));
    }
    let description = match &table.description {
        None => None,
        Some(description) => Some(
            checked_description(description)
                .map_err(|message| Problem::at(["description"], message))?,
        ),
    };
    let only_with = |is_set: bool, key: &'static str, other: &str| match is_set {
        true => Err(Problem::at([key], format!("`{key}` needs {other}"))),
        false => Ok(()),
    };
    let mut argument = Argument {
        name: name.to_owned(),
        description,
        required: table.required,
        ..Argument::default()
    };
    let is = match (table.is, table.ignored) {
        (Some(is), None) => is,
        (None, Some(reason)) => {
            only_with(table.required, "required", "`is`")?;
            only_with(table.conversion.is_some(), "as", "`is`")?;
            only_with(table.numbers.is_some(), "numbers", "`is`")?;
            only_with(!table.without.is_empty(), "without", "`is`")?;
            only_with(!table.prefixed.is_empty(), "prefixed", "`is`")?;
            only_with(!table.values.is_empty(), "values", "`is`")?;
            only_with(table.clamp, "clamp", "`is`")?;
            only_with(!table.also.is_empty(), "also", "`is`")?;
            only_with(table.default.is_some(), "default", "`is`")?;
            if reason.trim().is_empty() {
                return Err(Problem::at(
                    ["ignored"],
                    "say in a few words why it has no effect",
                ));
            }
            argument.ignored = checked_description(&reason)
                .map_err(|message| Problem::at(["ignored"], message))?;
            argument.allow = table.allow;
            argument.kind = table.kind;
            return Ok(argument);
        }
        (Some(_), Some(_)) => return Err(Problem::at(["ignored"], "either `is` or `ignored`")),
        (None, None) => {
            return Err(Problem::at(
                [],
                "`is` says what the argument stands for, or `ignored` why it has no effect",
            ));
        }
    };
    only_with(!table.allow.is_empty(), "allow", "`ignored`")?;
    let Some(schema) = known.get(&is) else {
        let message = format!(
            "{} has no argument `{}`",
            operation.name(),
            text::line(&is, 80)
        );
        return Err(
            Problem::at(["is"], message).with_candidates(&is, known.keys().map(String::as_str))
        );
    };
    if tool.preset.contains_key(&is) {
        return Err(Problem::at(
            ["is"],
            format!("`{is}` has a fixed value in `preset`"),
        ));
    }
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("string");
    let wanted = |key: &'static str, fits: bool, what: &str| match fits {
        true => Ok(()),
        false => Err(Problem::at(
            [key],
            format!("`{is}` takes {kind}s; this is for {what}"),
        )),
    };
    if let Some(given) = table.kind {
        wanted(
            "type",
            kind == "array" && given == Kind::String,
            "lists, as `string`, or for `ignored`",
        )?;
        argument.kind = Some(given);
    }
    match table.conversion {
        None => {}
        Some(Conversion::Day) => wanted(
            "as",
            ["since", "until"].contains(&is.as_str()),
            "`since` and `until`",
        )?,
        Some(Conversion::List) => wanted("as", kind == "array", "lists")?,
        Some(Conversion::Words) => wanted("as", kind == "string", "texts")?,
        Some(Conversion::BestMatch) => wanted(
            "as",
            is == "id" && operation == Tool::GetMemory,
            "`id` of get_memory",
        )?,
    }
    argument.conversion = table.conversion;
    if let Some(pattern) = &table.numbers {
        wanted(
            "numbers",
            kind == "string" || kind == "array",
            "texts and lists of them",
        )?;
        if pattern.matches("{}").count() != 1 {
            return Err(Problem::at(["numbers"], "`{}` stands for the number, once"));
        }
        argument.numbers = Some(pattern.clone());
    }
    for (letters, pattern) in &table.prefixed {
        wanted(
            "prefixed",
            kind == "string" || kind == "array",
            "texts and lists of them",
        )?;
        if letters.is_empty() || pattern.matches("{}").count() != 1 {
            return Err(Problem::at(
                ["prefixed"],
                "letters, and a text in which `{}` stands for the number, once",
            ));
        }
        argument.prefixed.push((letters.clone(), pattern.clone()));
    }
    if !table.without.is_empty() {
        wanted(
            "without",
            kind == "string" || kind == "array",
            "texts and lists of them",
        )?;
        if table.without.iter().any(String::is_empty) {
            return Err(Problem::at(
                ["without"],
                "a prefix to leave out cannot be empty",
            ));
        }
        argument.without.clone_from(&table.without);
    }
    for (word, ours) in &table.values {
        let words: Vec<&str> = schema
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if kind != "string" {
            return Err(Problem::at(
                ["values"],
                format!("`{is}` takes {kind}s; this is for texts"),
            ));
        }
        if !words.is_empty() && !words.contains(&ours.as_str()) {
            let message = format!("`{}` is not a value of `{is}`", text::line(ours, 80));
            return Err(Problem::at(["values", word], message).with_candidates(ours, words));
        }
        argument.values.push((word.clone(), ours.clone()));
    }
    if table.clamp {
        let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
        match (bound("minimum"), bound("maximum")) {
            (Some(min), Some(max)) => argument.clamp = Some((min, max)),
            _ => {
                return Err(Problem::at(
                    ["clamp"],
                    format!("`{is}` has no minimum and maximum"),
                ));
            }
        }
    }
    if table.required && table.default.is_some() {
        return Err(Problem::at(
            ["default"],
            "it is `required`, so it cannot have a default",
        ));
    }
    argument.default = table.default;
    for also in table.also {
        let Some(other) = known.get(&also) else {
            let message = format!(
                "{} has no argument `{}`",
                operation.name(),
                text::line(&also, 80)
            );
            return Err(Problem::at(["also"], message)
                .with_candidates(&also, known.keys().map(String::as_str)));
        };
        let alike = ["type", "enum", "minimum", "maximum"]
            .iter()
            .all(|key| other.get(key) == schema.get(key));
        if also == is || !alike {
            return Err(Problem::at(
                ["also"],
                format!("`{also}` does not take the values of `{is}`"),
            ));
        }
        if tool.preset.contains_key(&also) {
            return Err(Problem::at(
                ["also"],
                format!("`{also}` has a fixed value in `preset`"),
            ));
        }
        argument.also.push(also);
    }
    argument.is = Some(is);
    Ok(argument)
}

/// Checks the default value of an argument.
fn check_default(
    argument: &Argument,
    operation: Tool,
    known: &Map<String, Value>,
    config: &Config,
) -> Result<(), Problem> {
    let (Some(is), Some(value)) = (&argument.is, &argument.default) else {
        return Ok(());
    };
    let under = |problem: Problem| problem.below_path(&["default"]);
    let mut notes = Vec::new();
    let converted = argument.convert(value.clone(), &mut notes, &mut Vec::new());
    let value = converted
        .map_err(|refusal| under(Problem::at([], refusal.body(&argument.name).message)))?;
    if let Some(notes) = notes.first() {
        return Err(under(Problem::at([], notes.as_str())));
    }
    check_preset(operation, is, &value, known, config).map_err(under)
}

/// Checks a preset value: the argument exists, and the service accepts the value and its bounds.
fn check_preset(
    operation: Tool,
    name: &str,
    value: &Value,
    known: &Map<String, Value>,
    config: &Config,
) -> Result<(), Problem> {
    let Some(schema) = known.get(name) else {
        let message = format!(
            "{} has no argument `{}`",
            operation.name(),
            text::line(name, 80)
        );
        return Err(
            Problem::at([], message).with_candidates(name, known.keys().map(String::as_str))
        );
    };
    let refused = |error: &crate::service::Error| {
        let body = error.body();
        let mut problem = Problem::at([], body.message);
        problem.nearest = body.nearest;
        problem.known = body.allowed;
        problem
    };
    let values = Map::from_iter([(name.to_owned(), value.clone())]);
    operation
        .decode(values.clone())
        .map_err(|error| refused(&error))?;
    let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
    if let (Some(number), Some(min), Some(max)) =
        (value.as_i64(), bound("minimum"), bound("maximum"))
        && !(min..=max).contains(&number)
    {
        return Err(Problem::at(
            [],
            format!("{number} is not allowed; allowed are {min} to {max}"),
        ));
    }
    if let (Some(entries), Some(max)) = (
        value.as_array(),
        schema.get("maxItems").and_then(Value::as_u64),
    ) && entries.len() as u64 > max
    {
        return Err(Problem::at(
            [],
            format!("{} entries; at most {max} are allowed", entries.len()),
        ));
    }
    if operation == Tool::QueryMemories {
        let request =
            crate::service::arguments(operation.name(), values).map_err(|error| refused(&error))?;
        QuerySpec::new(&request, config)
            .map(drop)
            .map_err(|error| refused(&error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Inputs, Setting};

    fn config() -> Config {
        Config::load(Inputs {
            root: Some(Setting::flag("--root", "/nowhere".into())),
            ..Inputs::default()
        })
        .unwrap()
    }

    #[test]
    fn every_built_in_set_is_a_valid_file_and_has_tools_of_its_own() {
        for set in ToolsetPreset::ALL {
            let file: ConfigFile = toml::from_str(set.file())
                .unwrap_or_else(|error| panic!("{}: {error}", set.name()));
            let built = Toolset::default().apply_table(&file.tools, &config());
            let built = built.unwrap_or_else(|problem| panic!("{}: {problem:?}", set.name()));
            assert_eq!(
                set == ToolsetPreset::Ack,
                built == Toolset::default(),
                "{}",
                set.name()
            );
            assert_eq!(Toolset::of(set, &config()).tools(), built.tools());
        }
    }
}
