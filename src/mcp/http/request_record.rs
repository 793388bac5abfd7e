//! What is known about an answered request, for the metrics and the log. It contains no text of a
//! memory or question.

use std::net::IpAddr;
use std::time::Instant;

use hyper::StatusCode;
use rmcp::model::{ClientRequest, JsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::toolset::Toolset;

/// The protocol's methods that clients can call.
const METHODS: [&str; 14] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    NOTIFICATION,
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];
/// Stands for every notification.
const NOTIFICATION: &str = "notification";
/// Replaces any other method or tool, because clients could invent any number of names.
const OTHER: &str = "other";

/// A request and how it ended.
#[derive(Debug)]
pub struct RequestRecord {
    /// When it arrived.
    pub started_at: Instant,
    /// Where it came from.
    pub address: IpAddr,
    /// The name of the client, if tokens have names.
    pub client: Option<String>,
    /// The protocol's method; empty if no message was read.
    pub method: &'static str,
    /// The tool that it calls; empty if it calls none.
    pub tool: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status.
    pub status: StatusCode,
    /// The length of the answer in bytes.
    pub bytes: usize,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Answered,
    /// It was answered with an error of the tool or the protocol.
    Failed,
    /// It was refused before that.
    Refused,
}

impl Outcome {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "ok",
            Self::Failed => "error",
            Self::Refused => "refused",
        }
    }
}

/// The parts of an answer that are read.
#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    error: Option<IgnoredAny>,
    #[serde(default)]
    result: Option<ToolResult>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult {
    #[serde(default)]
    is_error: bool,
}

impl RequestRecord {
    /// Starts a record for a new request.
    pub fn begin(address: IpAddr) -> Self {
        Self {
            started_at: Instant::now(),
            address,
            client: None,
            method: "",
            tool: String::new(),
            outcome: Outcome::Answered,
            status: StatusCode::OK,
            bytes: 0,
        }
    }

    /// Records the method and the tool of a message; `None` if it is not valid.
    pub fn record_message(
        &mut self,
        message: Option<&RxJsonRpcMessage<RoleServer>>,
        offered: &Toolset,
    ) {
        let method = match message {
            Some(JsonRpcMessage::Request(request)) => request.request.method(),
            Some(JsonRpcMessage::Notification(_)) => NOTIFICATION,
            _ => OTHER,
        };
        let known = METHODS.into_iter().find(|known| *known == method);
        self.method = known.unwrap_or(OTHER);
        if let Some(JsonRpcMessage::Request(request)) = message
            && let ClientRequest::CallToolRequest(call) = &request.request
        {
            let tool = offered.find(&call.params.name);
            let name = tool.map_or(OTHER, |tool| tool.name.as_str());
            self.tool = name.to_owned();
        }
    }

    /// Records how a message was answered.
    pub fn record_answer(&mut self, body: &[u8]) {
        let failed = serde_json::from_slice(body).is_ok_and(|reply: Reply| {
            reply.error.is_some() || reply.result.is_some_and(|result| result.is_error)
        });
        if failed {
            self.outcome = Outcome::Failed;
        }
    }

    /// Records the HTTP answer.
    pub fn end(&mut self, status: StatusCode, bytes: usize) {
        self.status = status;
        self.bytes = bytes;
        if status.is_client_error() || status.is_server_error() {
            self.outcome = Outcome::Refused;
        }
    }

    /// How long it has taken so far, in seconds.
    pub fn seconds(&self) -> f64 {
        self.started_at.elapsed().as_secs_f64()
    }
}
