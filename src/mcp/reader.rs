//! Who reads an answer or an error, and the errors of the protocol.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

use super::Server;
use crate::toolset::call::Call;
use crate::toolset::{AgentReader, Place, Tool};
use ack_api::{ErrorBody, text};
use ack_service::Error;

impl Server {
    /// The agent of a client, where it reads an answer.
    pub(super) fn reader(&self, place: Place) -> AgentReader {
        AgentReader {
            toolset: Arc::clone(&self.surface),
            place,
            // A client on another machine learns no paths of this one.
            command: if self.is_shared {
                |command| format!("ack-memory {command}")
            } else {
                self.service.config.command
            },
        }
    }

    pub(super) fn reader_of(&self, tool: Tool) -> AgentReader {
        let offered = self.surface.tool_for(tool);
        self.reader(
            offered.map_or(Place::Resource, |offered| Place::call(offered, &Call::default())),
        )
    }

    pub(super) fn body(&self, error: &Error, reader: &AgentReader) -> ErrorBody {
        let mut body = error.body_for_agent(reader);
        self.hide_paths_of(&mut body);
        body
    }

    /// Converts a failure to a protocol error: invalid parameters if the client can correct them.
    pub(super) fn protocol_error(&self, error: &Error, place: Place) -> ErrorData {
        protocol_error(error, &self.body(error, &self.reader(place)))
    }
}

/// An error result has only text: clients check structured content against the schema of a success.
pub(super) fn error_result(body: &ErrorBody) -> CallToolResult {
    let mut body = json!(body);
    text::clean_json(&mut body);
    CallToolResult::error(vec![ContentBlock::text(body.to_string())])
}

pub(super) fn protocol_error(error: &Error, body: &ErrorBody) -> ErrorData {
    let is_repairable = matches!(
        error,
        Error::InvalidArgument { .. }
            | Error::UnknownArgument { .. }
            | Error::OtherScope { .. }
            | Error::Scope(_)
    );
    let message = body.in_words();
    let body = serde_json::to_value(body).ok();
    if is_repairable {
        ErrorData::invalid_params(message, body)
    } else {
        ErrorData::internal_error(message, body)
    }
}
