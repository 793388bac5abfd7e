//! What a reader can do next, as data.
//!
//! An error or a note carries [`Hint`]s. They name tools and arguments by our own names, and
//! commands without the flags of this process. The text is made where the reader is known: the
//! server has a [`Reader`] for agents, whose tools may be renamed or hidden, and the command line
//! has one for people at a shell. A hint that its reader cannot follow is left out.

use std::borrow::Cow;

use serde_json::Value;

use crate::text;

/// The longest text of a reader's hints, in characters.
const MAX_CHARS: usize = 600;

/// What a hint says of itself: a constant, or made for the occasion.
type Words = Cow<'static, str>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// Advice in words that are right for every reader. It names no tool, argument or command.
    Advice(Words),
    /// The call of a tool: ``get_memory with `status: "staging"` shows one in full``.
    Call {
        tool: Tool,
        arguments: Vec<Given>,
        outcome: Words,
    },
    /// A call that is worth trying: `use list_scopes to check available scopes`.
    Try {
        tool: Tool,
        purpose: Words,
    },
    /// The same request with one of these arguments: ``pass `status: "all"` to see it``.
    Pass {
        options: Vec<Given>,
        purpose: Words,
    },
    /// The same request without an argument: ``leave `scope` out to search every shared one``.
    Omit {
        argument: &'static str,
        purpose: Words,
    },
    NextPage,
    /// A command of this program, for the user: `` `ack-memory doctor` shows every scope``. It is
    /// given without the program's name.
    Command {
        command: Words,
        outcome: Words,
    },
    /// A setting, for the user: `` `max_status = "all"` in config.toml lets agents read them``.
    Setting {
        setting: Words,
        outcome: Words,
    },
}

/// An argument of a call, by our name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub argument: &'static str,
    /// The value; `None` leaves it to the reader.
    pub value: Option<Value>,
}

impl Given {
    pub fn value(argument: &'static str, value: impl Into<Value>) -> Self {
        Self { argument, value: Some(value.into()) }
    }

    /// An argument whose value the reader chooses.
    pub const fn any(argument: &'static str) -> Self {
        Self { argument, value: None }
    }
}

/// The four tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    GetContext,
    GetMemory,
    ListScopes,
    QueryMemories,
}

impl Tool {
    pub const ALL: [Self; 4] =
        [Self::GetContext, Self::GetMemory, Self::ListScopes, Self::QueryMemories];

    /// Its own name. Agents may know it under another one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetContext => "get_context",
            Self::GetMemory => "get_memory",
            Self::ListScopes => "list_scopes",
            Self::QueryMemories => "query_memories",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

/// Who reads a hint, and what they call tools, arguments and commands: by default by our own names.
pub trait Reader {
    /// Whether this is an agent. Commands and settings are then for its user.
    fn is_agent(&self) -> bool;

    /// The name of a tool; `None` if this reader does not have it.
    fn tool(&self, tool: Tool) -> Option<String> {
        Some(tool.name().to_owned())
    }

    /// How to call a tool with these arguments; `None` if this reader cannot.
    fn call(&self, tool: Tool, arguments: &[Given]) -> Option<String> {
        let argument = |given: &Given| self.argument(given.argument, given.value.as_ref());
        call_text(tool.name(), arguments.iter().map(argument))
    }

    /// An argument of the current request, in backticks, with its value if it has one; `None` if
    /// this reader cannot pass it.
    fn argument(&self, name: &str, value: Option<&Value>) -> Option<String> {
        Some(argument_text(name, value))
    }

    /// What leads to the next page of the current request.
    fn next_page(&self) -> Option<String> {
        Some("`next_cursor`".to_owned())
    }

    /// The command line for what comes after the program's name.
    fn command(&self, command: &str) -> String {
        format!("ack-memory {command}")
    }
}

impl<T: Into<Words>> From<T> for Hint {
    fn from(advice: T) -> Self {
        Self::advice(advice)
    }
}

impl Hint {
    pub fn advice(advice: impl Into<Words>) -> Self {
        Self::Advice(advice.into())
    }

    pub fn call(tool: Tool, outcome: impl Into<Words>) -> Self {
        Self::call_with(tool, [], outcome)
    }

    pub fn call_with(
        tool: Tool,
        arguments: impl Into<Vec<Given>>,
        outcome: impl Into<Words>,
    ) -> Self {
        Self::Call { tool, arguments: arguments.into(), outcome: outcome.into() }
    }

    pub fn pass(options: impl Into<Vec<Given>>, purpose: impl Into<Words>) -> Self {
        Self::Pass { options: options.into(), purpose: purpose.into() }
    }

    pub fn omit(argument: &'static str, purpose: impl Into<Words>) -> Self {
        Self::Omit { argument, purpose: purpose.into() }
    }

    pub fn command(command: impl Into<Words>, outcome: impl Into<Words>) -> Self {
        Self::Command { command: command.into(), outcome: outcome.into() }
    }

    pub fn setting(setting: impl Into<Words>, outcome: impl Into<Words>) -> Self {
        Self::Setting { setting: setting.into(), outcome: outcome.into() }
    }

    const fn is_for_people(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Setting { .. })
    }

    /// The text for a reader; `None` if they cannot follow it.
    fn render(&self, reader: &dyn Reader) -> Option<String> {
        let text = match self {
            Self::Advice(advice) => advice.to_string(),
            Self::Call { tool, arguments, outcome } => {
                format!("{} {outcome}", reader.call(*tool, arguments)?)
            }
            Self::Try { tool, purpose } => format!("use {} {purpose}", reader.call(*tool, &[])?),
            Self::Pass { options, purpose } => {
                let argument = |it: &Given| reader.argument(it.argument, it.value.as_ref());
                let options = options.iter().filter_map(argument).collect::<Vec<_>>().join(" or ");
                if options.is_empty() {
                    return None;
                }
                format!("pass {options} {purpose}")
            }
            Self::Omit { argument, purpose } => {
                let argument = reader.argument(argument, None)?;
                format!("leave {argument} out {purpose}")
            }
            Self::NextPage => format!("{} continues", reader.next_page()?),
            Self::Command { command, outcome } => {
                format!("`{}` {outcome}", reader.command(command))
            }
            Self::Setting { setting, outcome } => format!("{setting} {outcome}"),
        };
        Some(text.trim_end().to_owned())
    }
}

/// The text of several hints for a reader; `None` if there is nothing that they can follow.
pub fn render(hints: &[Hint], reader: &dyn Reader) -> Option<String> {
    let mut out = String::new();
    let mut was_for_people = false;
    for hint in hints {
        let Some(text) = hint.render(reader) else {
            continue;
        };
        if !out.is_empty() {
            out.push_str("; ");
        }
        let is_for_people = hint.is_for_people() && reader.is_agent();
        if is_for_people && !was_for_people {
            out.push_str("for the user: ");
        }
        was_for_people = is_for_people;
        out.push_str(&text);
    }
    (!out.is_empty()).then(|| text::line(&out, MAX_CHARS))
}

/// A reader that knows the four tools by their own names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnNames {
    Agent,
    /// A person or an agent: the text is stored, and its reader is not known.
    Anyone,
}

impl Reader for OwnNames {
    fn is_agent(&self) -> bool {
        *self == Self::Agent
    }
}

/// The call of a tool as an agent reads it; `None` if one of the arguments cannot be passed.
pub fn call_text(name: &str, arguments: impl Iterator<Item = Option<String>>) -> Option<String> {
    let arguments: Option<Vec<String>> = arguments.collect();
    Some(match arguments?.join(" and ") {
        none if none.is_empty() => name.to_owned(),
        some => format!("{name} with {some}"),
    })
}

/// An argument as an agent reads it, in backticks.
pub fn argument_text(name: &str, value: Option<&Value>) -> String {
    match value {
        Some(value) => format!("`{name}: {value}`"),
        None => format!("`{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hints: &[Hint], expected: &str) {
        assert_eq!(render(hints, &OwnNames::Agent).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_for_the_user_is_marked_once() {
        check(
            &[
                Hint::advice("go on without memories"),
                Hint::command("setup", "sets them up"),
                Hint::command("demo", "shows samples"),
                Hint::call(Tool::ListScopes, "shows the scopes"),
                Hint::setting("`--pin a`", "pins it"),
            ],
            "go on without memories; for the user: `ack-memory setup` sets them up; \
             `ack-memory demo` shows samples; list_scopes shows the scopes; for the user: \
             `--pin a` pins it",
        );
        assert_eq!(render(&[], &OwnNames::Agent), None);
    }

    #[test]
    fn a_hint_without_an_outcome_ends_with_its_subject() {
        check(&[Hint::omit("scope", "")], "leave `scope` out");
    }
}
