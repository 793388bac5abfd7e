//! The answer of a tool, from the service to the client.
//!
//! It keeps its type until it is written as JSON or Markdown. One step puts it into the words of its
//! reader, and removes what a client cannot use: the time of day, and the paths of this machine if
//! clients may be on others. The errors of the tools and of the protocol are made here too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ack_api::{
    ContextResponse, Editor, ErrorBody, GetResponse, ListScopesResponse, Message, Note,
    QueryResponse, Resolve, text,
};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use super::{Server, markdown};
use crate::toolset::call::Call;
use crate::toolset::{AgentReader, Place, Tool};
use ack_service::{Error, Service};

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    Query(QueryResponse),
    Get(GetResponse),
    Scopes(ListScopesResponse),
    Context(ContextResponse),
}

impl Answer {
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let missing = match self {
            Self::Get(answer) => answer.missing.as_slice(),
            _ => &[],
        };
        missing.iter().map(|missing| missing.id.as_str())
    }

    pub const fn notes(&mut self) -> &mut Vec<Note> {
        match self {
            Self::Query(answer) => &mut answer.notes,
            Self::Get(answer) => &mut answer.notes,
            Self::Scopes(answer) => &mut answer.notes,
            Self::Context(answer) => &mut answer.notes,
        }
    }

    /// As text. `whole` is the tool that shows a memory in full, if there is one.
    pub fn to_markdown(&self, whole: Option<&str>) -> String {
        match self {
            Self::Query(answer) => markdown::query(answer, whole),
            Self::Get(answer) => markdown::get(answer),
            Self::Scopes(answer) => markdown::scopes(answer),
            Self::Context(answer) => markdown::context(answer),
        }
    }
}

impl Resolve for Answer {
    fn edit(&mut self, editor: &mut dyn Editor) {
        match self {
            Self::Query(answer) => answer.edit(editor),
            Self::Get(answer) => answer.edit(editor),
            Self::Scopes(answer) => answer.edit(editor),
            Self::Context(answer) => answer.edit(editor),
        }
    }
}

/// An answer as JSON, safe to print.
pub(super) fn to_json(answer: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    text::clean_json(&mut value);
    value
}

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
        let place = offered.map(|offered| Place::call(offered, &Call::default()));
        self.reader(place.unwrap_or(Place::Resource))
    }

    pub(super) fn body(&self, error: &Error, reader: &AgentReader) -> ErrorBody {
        let mut body = error.body_for_agent(reader);
        if self.is_shared {
            let places = Places::of(self.service);
            body.message = places.hidden(&body.message);
            body.hint = body.hint.map(|hint| places.hidden(&hint));
            body.path = body.path.map(|path| places.name(&path));
        }
        body
    }

    /// Converts a failure to a protocol error: invalid parameters if the client can correct them.
    pub(super) fn protocol_error(&self, error: &Error, place: Place) -> ErrorData {
        protocol_error(error, &self.body(error, &self.reader(place)))
    }

    /// Puts an answer into the words of its reader, without what a client cannot use.
    pub(super) fn for_reader(&self, answer: &mut impl Resolve, reader: &AgentReader) {
        answer.edit(&mut ForAgent { server: self, reader, places: None });
    }
}

/// An error result has only text: clients check structured content against the schema of a success.
pub(super) fn error_result(body: &ErrorBody) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(to_json(body).to_string())])
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

struct ForAgent<'a> {
    server: &'a Server,
    reader: &'a AgentReader,
    /// Found once a text may have a path.
    places: Option<Places>,
}

impl Editor for ForAgent<'_> {
    fn message(&mut self, message: &mut Message) {
        message.resolve(self.reader);
        let mut text = message.text().to_owned();
        self.place(&mut text);
        if text != message.text() {
            *message = text.into();
        }
    }

    /// A model needs no seconds, and they cost as many tokens as a line of text.
    fn time(&mut self, time: &mut String) {
        if let Some(day) = time.find('T') {
            time.truncate(day);
        }
    }

    fn place(&mut self, text: &mut String) {
        if self.server.is_shared && text.contains('/') {
            let service = self.server.service;
            let places = self.places.get_or_insert_with(|| Places::of(service));
            *text = places.hidden(text);
        }
    }
}

/// The paths of this machine, and what replaces them.
struct Places {
    names: HashMap<PathBuf, String>,
    project: PathBuf,
}

impl Places {
    /// The folders and stores of the scopes that a service sees, and the folder that it runs in.
    fn of(service: &Service) -> Self {
        let mut names = HashMap::new();
        let project = &service.config.project.value;
        if let Some(name) = project.file_name() {
            names.insert(project.clone(), name.to_string_lossy().into_owned());
        }
        for scope in service.registry.discover().scopes {
            let store = scope.store.path();
            let name = match store.file_name() {
                Some(file) if store.is_file() => {
                    format!("{}/{}", scope.name, file.to_string_lossy())
                }
                _ => scope.name.clone(),
            };
            names.insert(store.to_owned(), name);
            names.insert(scope.folder.clone(), scope.name.clone());
        }
        Self { names, project: project.clone() }
    }

    /// A text without paths of this machine. Messages have paths in backticks. A text that is
    /// another path than a scope's comes from the client.
    fn hidden(&self, text: &str) -> String {
        if text.starts_with('/') {
            let is_here = self.known(text).is_some() || self.project.starts_with(text);
            return if is_here { self.name(text) } else { text.to_owned() };
        }
        let parts = text.split('`').enumerate().map(|(number, part)| {
            let is_path = number % 2 == 1 && part.starts_with('/');
            if is_path { self.name(part) } else { part.to_owned() }
        });
        parts.collect::<Vec<_>>().join("`")
    }

    /// The name of a path: from the scope that it belongs to, or only its last part.
    fn name(&self, path: &str) -> String {
        self.known(path).unwrap_or_else(|| {
            let last = Path::new(path).file_name().unwrap_or_default();
            format!("…/{}", last.to_string_lossy())
        })
    }

    fn known(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        let (place, name) =
            path.ancestors().find_map(|place| Some((place, self.names.get(place)?)))?;
        let rest = path.strip_prefix(place).ok()?;
        Some(match rest.as_os_str().is_empty() {
            true => name.clone(),
            false => format!("{name}/{}", rest.display()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_by_its_scope_and_another_one_by_its_last_part() {
        let places = [
            ("/srv/ack/scopes/platform", "platform"),
            ("/home/ana/src/notes", "team"),
            ("/home/ana/mem.db", "own/mem.db"),
        ];
        let places = places.map(|(path, name)| (PathBuf::from(path), name.to_owned()));
        let places =
            Places { names: HashMap::from(places), project: PathBuf::from("/srv/shop/web") };
        for (text, hidden) in [
            ("/srv/ack/scopes/platform", "platform"),
            (
                "cannot read `/srv/ack/scopes/platform/decisions.jsonl`: no",
                "cannot read `platform/decisions.jsonl`: no",
            ),
            ("`/home/ana/src/notes/a.md` is", "`team/a.md` is"),
            ("`/home/ana/mem.db` is empty", "`own/mem.db` is empty"),
            ("`/home/ana/src/notes2` and `a/b`", "`…/notes2` and `a/b`"),
            ("/srv/shop", "…/shop"),
            ("/elsewhere/shop", "/elsewhere/shop"),
            ("either/or", "either/or"),
            ("no ` end /tmp", "no ` end /tmp"),
        ] {
            assert_eq!(places.hidden(text), hidden);
        }
    }
}
