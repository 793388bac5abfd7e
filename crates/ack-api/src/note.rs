//! Notes (partial failures as data) and the body of an error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text;
use crate::{Hint, Message};

/// Something the reader should know, in a form that a program can act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// What kind of note this is.
    pub kind: NoteKind,
    /// The scope that it is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// One sentence for the reader.
    pub message: Message,
}

impl Note {
    /// Each message once, with the scopes that it is about, for plain-text output.
    pub fn by_message<'a>(
        notes: impl IntoIterator<Item = &'a Self>,
    ) -> Vec<(String, Vec<&'a str>)> {
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for note in notes {
            let scope = note.scope.as_deref();
            let text = note.message.to_string();
            let known = groups.iter_mut();
            let mut known = known.filter(|(message, scopes)| {
                *message == text && scopes.is_empty() == scope.is_none()
            });
            match known.next() {
                Some((_, scopes)) => scopes.extend(scope),
                None => groups.push((text, scope.into_iter().collect())),
            }
        }
        groups
    }

    pub fn new(kind: NoteKind, message: impl Into<Message>) -> Self {
        Self { kind, scope: None, message: message.into() }
    }

    #[must_use]
    pub fn with(mut self, hint: Hint) -> Self {
        self.message = self.message.with(hint);
        self
    }

    /// A note about one scope.
    pub fn about(kind: NoteKind, scope: impl Into<String>, message: impl Into<Message>) -> Self {
        Self { scope: Some(text::line(&scope.into(), 200)), ..Self::new(kind, message) }
    }
}

/// The kinds of notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A scope could not be read; the others answered.
    ScopeUnavailable,
    /// The scope's store has no status column; its `unreviewed` policy applies.
    NoStatusColumn,
    /// The status filter left out matching memories.
    HiddenByStatus,
    /// A stored value was broken and was read as far as possible.
    RepairedValues,
    /// The answer was cut to fit `max_tokens` or a limit that the note names.
    Cut,
    /// Something is not available; the note says what was done instead.
    NotAvailable,
    /// Arguments had another form than their schema says; the note says how each was read.
    ArgumentsRead,
    /// The encoder knows no word of the query, so only its words were searched.
    NoSemanticLeg,
    /// A scope's vector table cannot be used; everything was searched without it.
    IndexUnusable,
    /// A large scope was searched in its vector table: only its best matches are counted and paged.
    BestMatchesOnly,
    /// The query contains nothing to search for.
    EmptyQuery,
    /// The query has only very common words; they were searched as they are.
    OnlyStopWords,
    /// No memory contains a word of the query; the results are the nearest in meaning.
    NoWordMatches,
    /// The server is pinned to one scope.
    Pinned,
    /// `scope` names a project; the note says which scope claims it.
    ScopeOfProject,
    /// No scope was found for the project's path.
    NoCurrentScope,
    /// Nothing is certain to help: the results of a query are the nearest in meaning, and a new
    /// session gets nothing from other projects that is merely recent.
    NothingCertain,
    /// There are no scopes to search yet.
    NoScopes,
    /// A writer has locked a scope's store; the answer is the last committed state.
    StoreLocked,
    /// The status of a memory changed between two pages or two reads.
    ChangedMeanwhile,
    /// Other scopes contain a memory with the same id; the note names them.
    SameId,
    /// A bucket could not be reached recently: the last version fetched from it was searched.
    RemoteStale,
    /// Nothing from a bucket is on this machine yet.
    RemoteCold,
}

/// The body of an error: what is wrong, what is allowed, the nearest match, a corrected example.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// Stable code, listed in docs/tools.md.
    pub code: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The file or folder it is about, such as a missing database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The argument at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The value at fault, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub allowed: Vec<String>,
    /// The nearest allowed values, best first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub nearest: Vec<String>,
    /// Corrected arguments, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

impl ErrorBody {
    /// The message and the hint, in one line.
    pub fn in_words(&self) -> String {
        let hint = self.hint.iter().map(String::as_str);
        [self.message.as_str()].into_iter().chain(hint).collect::<Vec<_>>().join("; ")
    }
}
