//! A sentence for the reader of an answer, with what to do next.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hint::{self, Hint, OwnNames, Reader};
use crate::text;
use crate::{
    ContextResponse, GetResponse, ListScopesResponse, MemoryDetail, MemoryHit, Note, Pending,
    QueryResponse, ScopeInfo, ScopeResource, Searched,
};

/// The longest message, in characters.
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
        Self { text: text::line(&sentence.into(), MAX_CHARS), ..Self::default() }
    }

    /// A hint as an entry of a list of suggestions.
    pub fn suggestion(hint: Hint) -> Self {
        Self { is_suggestion: true, ..hint.into() }
    }

    #[must_use]
    pub fn with(mut self, hint: Hint) -> Self {
        self.hints.push(hint);
        self
    }

    #[must_use]
    pub fn with_all(mut self, hints: impl IntoIterator<Item = Hint>) -> Self {
        self.hints.extend(hints);
        self
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn hints(&self) -> &[Hint] {
        &self.hints
    }

    pub const fn is_empty(&self) -> bool {
        self.text.is_empty() && self.hints.is_empty()
    }

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

    pub fn render(&self, reader: &dyn Reader) -> String {
        match hint::render(&self.hints, reader) {
            Some(mut hints) if self.is_suggestion => {
                if let Some(first) = hints.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
                hints
            }
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

impl<T: Into<String>> From<T> for Message {
    fn from(sentence: T) -> Self {
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
        Ok(Self { text: String::deserialize(deserializer)?, ..Self::default() })
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

/// Changes what depends on the reader of an answer.
pub trait Editor {
    fn message(&mut self, message: &mut Message);

    fn time(&mut self, _time: &mut String) {}

    /// A text that may name a path of this machine.
    fn place(&mut self, _text: &mut String) {}
}

struct InWords<'a>(&'a dyn Reader);

impl Editor for InWords<'_> {
    fn message(&mut self, message: &mut Message) {
        message.resolve(self.0);
    }
}

/// An answer, with what depends on its reader.
pub trait Resolve {
    fn edit(&mut self, editor: &mut dyn Editor);

    /// Puts every message into the words of a reader. A message without any is left out.
    fn resolve(&mut self, reader: &dyn Reader) {
        self.edit(&mut InWords(reader));
    }
}

impl<T: Resolve> Resolve for Vec<T> {
    fn edit(&mut self, editor: &mut dyn Editor) {
        self.iter_mut().for_each(|one| one.edit(editor));
    }
}

impl<T: Resolve> Resolve for Option<T> {
    fn edit(&mut self, editor: &mut dyn Editor) {
        self.iter_mut().for_each(|one| one.edit(editor));
    }
}

fn edit_times<'a>(
    times: impl IntoIterator<Item = &'a mut Option<String>>,
    editor: &mut dyn Editor,
) {
    for time in times.into_iter().flatten() {
        editor.time(time);
    }
}

/// Messages of a list, and notes, may consist of hints only. Those that the reader cannot follow
/// are left out.
fn edit_messages(messages: &mut Vec<Message>, editor: &mut dyn Editor) {
    messages.iter_mut().for_each(|one| editor.message(one));
    messages.retain(|one| !one.is_empty());
}

fn edit_notes(notes: &mut Vec<Note>, editor: &mut dyn Editor) {
    notes.iter_mut().for_each(|note| editor.message(&mut note.message));
    notes.retain(|note| !note.message.is_empty());
}

impl Resolve for Searched {
    fn edit(&mut self, editor: &mut dyn Editor) {
        for skipped in &mut self.skipped {
            editor.message(&mut skipped.reason);
        }
        self.detected_by.iter_mut().for_each(|it| editor.place(it));
    }
}

impl Resolve for MemoryHit {
    fn edit(&mut self, editor: &mut dyn Editor) {
        edit_times([&mut self.created_at], editor);
    }
}

impl Resolve for QueryResponse {
    fn edit(&mut self, editor: &mut dyn Editor) {
        self.results.edit(editor);
        edit_messages(&mut self.suggestions, editor);
        edit_notes(&mut self.notes, editor);
        self.searched.edit(editor);
        if let Some(expected) = &mut self.expected {
            editor.message(&mut expected.message);
        }
    }
}

impl Resolve for MemoryDetail {
    fn edit(&mut self, editor: &mut dyn Editor) {
        self.memory.edit(editor);
        edit_times([&mut self.reviewed_at, &mut self.updated_at], editor);
        if let Some(timeline) = &mut self.timeline {
            let entries = timeline.before.iter_mut().chain(&mut timeline.after);
            edit_times(entries.map(|entry| &mut entry.created_at), editor);
        }
        let history = self.history.iter_mut();
        edit_times(history.map(|entry| &mut entry.created_at), editor);
    }
}

impl Resolve for GetResponse {
    fn edit(&mut self, editor: &mut dyn Editor) {
        if let Some(memory) = &mut self.memory {
            memory.edit(editor);
        }
        self.memories.edit(editor);
        for missing in &mut self.missing {
            editor.message(&mut missing.reason);
        }
        edit_notes(&mut self.notes, editor);
    }
}

impl Resolve for Pending {
    fn edit(&mut self, editor: &mut dyn Editor) {
        edit_times([&mut self.oldest], editor);
    }
}

impl Resolve for ContextResponse {
    fn edit(&mut self, editor: &mut dyn Editor) {
        editor.place(&mut self.project.path);
        let detected_by = &mut self.project.detected_by;
        detected_by.iter_mut().for_each(|it| editor.place(it));
        self.recent_memories.edit(editor);
        self.cross_project_learnings.edit(editor);
        let sessions = self.recent_sessions.iter_mut();
        edit_times(sessions.map(|session| &mut session.started_at), editor);
        self.pending.edit(editor);
        edit_notes(&mut self.notes, editor);
        self.searched.edit(editor);
    }
}

impl Resolve for ScopeInfo {
    fn edit(&mut self, editor: &mut dyn Editor) {
        let texts = [&mut self.path, &mut self.store, &mut self.description];
        for text in texts.into_iter().flatten() {
            editor.place(text);
        }
        self.projects.iter_mut().for_each(|it| editor.place(it));
        edit_times([&mut self.last_updated], editor);
        let index = self.index.iter_mut();
        edit_times(index.map(|index| &mut index.built_at), editor);
        self.pending.edit(editor);
        edit_messages(&mut self.health.problems, editor);
    }
}

impl Resolve for ListScopesResponse {
    fn edit(&mut self, editor: &mut dyn Editor) {
        self.scopes.edit(editor);
        self.detected_by.iter_mut().for_each(|it| editor.place(it));
        edit_notes(&mut self.notes, editor);
    }
}

impl Resolve for ScopeResource {
    fn edit(&mut self, editor: &mut dyn Editor) {
        self.scope.edit(editor);
        let newest = self.newest.iter_mut();
        edit_times(newest.map(|entry| &mut entry.created_at), editor);
        edit_notes(&mut self.notes, editor);
    }
}
