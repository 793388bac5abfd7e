//! How an agent reads a hint: with the names of the tools and arguments that it has.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::argument::{Argument, Form};
use super::call::Call;
use super::{OfferedTool, Tool, Toolset};
use ack_api::hint::{argument_text, call_text};
use ack_api::{Given, Reader};

#[derive(Debug, Clone)]
pub struct AgentReader {
    pub toolset: Arc<Toolset>,
    pub place: Place,
    /// The command line of this program for what comes after its name.
    pub command: fn(&str) -> String,
}

/// What an agent reads an answer of. It can pass other arguments there.
#[derive(Debug, Clone)]
pub enum Place {
    /// A call of the tool with this name, with its arguments as pairs of our name and the agent's.
    Call(String, Vec<(String, String)>),
    Prompt(&'static [&'static str]),
    /// A resource, which has no arguments.
    Resource,
}

impl Place {
    pub fn call(tool: &OfferedTool, call: &Call) -> Self {
        Self::Call(tool.name.clone(), call.given_arguments.clone())
    }
}

impl Reader for AgentReader {
    fn is_agent(&self) -> bool {
        true
    }

    fn tool(&self, tool: Tool) -> Option<String> {
        let called = match &self.place {
            Place::Call(name, _) => self.toolset.find(name),
            Place::Prompt(_) | Place::Resource => None,
        };
        match called.filter(|called| called.operation == tool) {
            Some(called) => Some(called.name.clone()),
            None => self.toolset.name_of(tool).map(str::to_owned),
        }
    }

    fn call(&self, tool: Tool, arguments: &[Given]) -> Option<String> {
        let offered = self.toolset.tool_for(tool)?;
        let arguments = arguments.iter().map(|given| {
            let argument = offered.argument_for(given.argument, &[])?;
            public(argument, given.value.as_ref())
        });
        call_text(&offered.name, arguments)
    }

    fn argument(&self, name: &str, value: Option<&Value>) -> Option<String> {
        public(&*self.offered(name)?, value)
    }

    fn next_page(&self) -> Option<String> {
        self.offered("cursor")?;
        Some("`next_cursor`".to_owned())
    }

    fn command(&self, command: &str) -> String {
        (self.command)(command)
    }
}

impl AgentReader {
    /// The argument that an agent passes here for one of our own.
    fn offered(&self, ours: &str) -> Option<Cow<'_, Argument>> {
        match &self.place {
            Place::Call(name, names) => {
                let tool = self.toolset.find(name)?;
                tool.argument_for(ours, names).map(Cow::Borrowed)
            }
            Place::Prompt(names) => names.contains(&ours).then(|| Cow::Owned(Argument::own(ours))),
            Place::Resource => None,
        }
    }
}

/// An argument as the agent passes it; `None` if it has no word for the value.
fn public(argument: &Argument, value: Option<&Value>) -> Option<String> {
    let value = match (&argument.form, value) {
        (Form::Choice(words), Some(Value::String(ours))) => {
            let (word, _) = words.iter().find(|(_, value)| *value == ours)?;
            Some(Value::from(word.as_str()))
        }
        (_, value) => value.cloned(),
    };
    Some(argument_text(&argument.name, value.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ack_api::Hint;
    use ack_api::hint::render;
    use ack_api::shell::flag;

    #[test]
    fn a_resource_takes_no_arguments_and_a_prompt_takes_its_own() {
        let mut agent = AgentReader {
            toolset: Arc::new(Toolset::default()),
            place: Place::Resource,
            command: |command| format!("ack-memory --root /r {command}"),
        };
        let hints =
            [Hint::pass([Given::value("status", "all")], "to see it"), Hint::omit("scope", "")];
        assert_eq!(render(&hints, &agent), None);
        agent.place = Place::Prompt(&["query", "scope"]);
        assert_eq!(render(&hints, &agent).as_deref(), Some("leave `scope` out"));
    }

    #[test]
    fn every_argument_of_the_tools_has_a_flag() {
        for schema in [
            schemars::schema_for!(ack_api::QueryRequest),
            schemars::schema_for!(ack_api::GetRequest),
            schemars::schema_for!(ack_api::ListScopesRequest),
            schemars::schema_for!(ack_api::ContextRequest),
        ] {
            let schema = schema.to_value();
            for argument in schema["properties"].as_object().unwrap().keys() {
                assert!(flag(argument).is_some(), "{argument}");
            }
        }
    }
}
