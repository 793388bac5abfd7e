//! How agents and people at a shell read the same hints.

use std::sync::Arc;

use super::{AgentReader, Place, Toolset};
use ack_api::hint::render;
use ack_api::shell::flag;
use ack_api::{Given, Hint};

#[test]
fn a_resource_takes_no_arguments_and_a_prompt_takes_its_own() {
    let mut agent = AgentReader {
        toolset: Arc::new(Toolset::default()),
        place: Place::Resource,
        command: |command| format!("ack-memory --root /r {command}"),
    };
    let hints = [Hint::pass([Given::value("status", "all")], "to see it"), Hint::omit("scope", "")];
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
