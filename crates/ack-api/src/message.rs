//! A sentence for the reader of an answer, with what to do next.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hint::{self, Hint, OwnNames, Reader};
use crate::text;
use crate::{ContextResponse, GetResponse, ListScopesResponse, Note, QueryResponse, Review};
use crate::{ScopeInfo, ScopeResource, Searched};

/// The longest message, in characters. It may quote names, paths and other programs; all are made
/// safe to print.
const MAX_CHARS: usize = 2_000;

/// A sentence, and what to do next. It is one string in JSON: see [`Message::resolve`] for whose
/// words it has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    text: String,
    hints: Vec<Hint>,
    /// Whether it begins with a capital letter even without a sentence.
    is_suggestion: bool,
}

impl Message {
    /// A sentence. It names no tool, argument or command.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self {
            text: text::line(&sentence.into(), MAX_CHARS),
            ..Self::default()
        }
    }

    /// A hint as an entry of a list of suggestions.
    pub fn suggestion(hint: Hint) -> Self {
        Self {
            is_suggestion: true,
            ..hint.into()
        }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with(mut self, hint: Hint) -> Self {
        self.hints.push(hint);
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_all(mut self, hints: impl IntoIterator<Item = Hint>) -> Self {
        self.hints.extend(hints);
        self
    }

    /// The sentence without what to do next: all of it once it is [resolved](Self::resolve).
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What to do next.
    pub fn hints(&self) -> &[Hint] {
        &self.hints
    }

    /// Keeps the hints that `is_useful` accepts.
    pub fn retain(&mut self, is_useful: impl Fn(&Hint) -> bool) {
        self.hints.retain(is_useful);
    }

    /// Shortens the sentence. What to do next is left out if it is then too long.
    pub fn shorten(&mut self, max_chars: usize) {
        self.text = text::line(&self.text, max_chars);
        if self.render(&OwnNames::Agent).chars().count() > max_chars {
            self.hints.clear();
        }
    }

    /// The text for a reader.
    pub fn render(&self, reader: &dyn Reader) -> String {
        match hint::render(&self.hints, reader) {
            Some(hints) if self.is_suggestion => capitalized(&hints),
            Some(hints) if self.text.is_empty() => hints,
            Some(hints) => format!("{}; {hints}", self.text),
            None => self.text.clone(),
        }
    }

    /// Puts all of it into the words of a reader. Until then, it has those of an agent with the
    /// four tools.
    pub fn resolve(&mut self, reader: &dyn Reader) {
        if !self.hints.is_empty() {
            self.text = self.render(reader);
            self.hints.clear();
        }
    }
}

impl From<String> for Message {
    fn from(sentence: String) -> Self {
        Self::new(sentence)
    }
}

impl From<&str> for Message {
    fn from(sentence: &str) -> Self {
        Self::new(sentence)
    }
}

impl From<Hint> for Message {
    fn from(hint: Hint) -> Self {
        Self::default().with(hint)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.render(&OwnNames::Agent))
    }
}

impl PartialEq<&str> for Message {
    fn eq(&self, other: &&str) -> bool {
        self.render(&OwnNames::Agent) == *other
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self {
            text: String::deserialize(deserializer)?,
            ..Self::default()
        })
    }
}

impl JsonSchema for Message {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).collect()
}

/// An answer with messages for its reader.
pub trait Resolve {
    /// Puts every message into the words of a reader. A message without any is left out.
    fn resolve(&mut self, reader: &dyn Reader);
}

impl<T: Resolve> Resolve for Vec<T> {
    fn resolve(&mut self, reader: &dyn Reader) {
        self.iter_mut().for_each(|one| one.resolve(reader));
    }
}

impl Resolve for Note {
    fn resolve(&mut self, reader: &dyn Reader) {
        self.message.resolve(reader);
    }
}

/// Messages of a list, and notes, may consist of hints only. Those that the reader cannot follow
/// are left out.
fn resolve_messages(messages: &mut Vec<Message>, reader: &dyn Reader) {
    messages.iter_mut().for_each(|one| one.resolve(reader));
    messages.retain(|one| !one.text.is_empty());
}

fn resolve_notes(notes: &mut Vec<Note>, reader: &dyn Reader) {
    notes.resolve(reader);
    notes.retain(|note| !note.message.text.is_empty());
}

impl Resolve for Searched {
    fn resolve(&mut self, reader: &dyn Reader) {
        for skipped in &mut self.skipped {
            skipped.reason.resolve(reader);
        }
    }
}

impl Resolve for QueryResponse {
    fn resolve(&mut self, reader: &dyn Reader) {
        resolve_messages(&mut self.suggestions, reader);
        resolve_notes(&mut self.notes, reader);
        self.searched.resolve(reader);
        if let Some(expected) = &mut self.expected {
            expected.message.resolve(reader);
        }
    }
}

impl Resolve for GetResponse {
    fn resolve(&mut self, reader: &dyn Reader) {
        for missing in &mut self.missing {
            missing.reason.resolve(reader);
        }
        resolve_notes(&mut self.notes, reader);
    }
}

impl Resolve for ContextResponse {
    fn resolve(&mut self, reader: &dyn Reader) {
        resolve_notes(&mut self.notes, reader);
        self.searched.resolve(reader);
    }
}

impl Resolve for ScopeInfo {
    fn resolve(&mut self, reader: &dyn Reader) {
        resolve_messages(&mut self.health.problems, reader);
    }
}

impl Resolve for ListScopesResponse {
    fn resolve(&mut self, reader: &dyn Reader) {
        self.scopes.resolve(reader);
        resolve_notes(&mut self.notes, reader);
    }
}

impl Resolve for ScopeResource {
    fn resolve(&mut self, reader: &dyn Reader) {
        self.scope.resolve(reader);
        resolve_notes(&mut self.notes, reader);
    }
}

impl Resolve for Review {
    fn resolve(&mut self, reader: &dyn Reader) {
        resolve_notes(&mut self.notes, reader);
        self.searched.resolve(reader);
    }
}
