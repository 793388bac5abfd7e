//! Notes (partial trouble as data) and the body of an error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text;

/// Most characters of a note. It quotes names, paths and what other programs said, all of which is made safe to print.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// Something the reader of an answer should know, in a form a program can act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// What kind of note it is.
    pub kind: NoteKind,
    /// The scope it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// One sentence for the reader.
    pub message: String,
}

impl Note {
    /// A note about the answer as a whole.
    pub fn new(kind: NoteKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            scope: None,
            message: text::line(&message.into(), MAX_MESSAGE_CHARS),
        }
    }

    /// A note about one scope.
    pub fn about(kind: NoteKind, scope: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            scope: Some(text::line(&scope.into(), 200)),
            ..Self::new(kind, message)
        }
    }
}

/// The kinds of notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A scope could not be read; the others answered.
    ScopeUnavailable,
    /// The scope's store has no status column; its rows count as the scope's `unreviewed` policy says.
    NoStatusColumn,
    /// Matching memories were left out by the status filter.
    HiddenByStatus,
    /// A stored value was broken and was read as far as possible.
    RepairedValues,
    /// The answer was cut, to keep within `max_tokens` or a bound that the note names.
    Cut,
    /// Something asked for is not available; the note says what was done instead.
    NotAvailable,
    /// The question has no vector: no word of it is known to the encoder. Its words were searched.
    NoSemanticLeg,
    /// A scope's vector table cannot be used; everything was searched all the same.
    IndexUnusable,
    /// A large scope was searched in its vector table: only its best matches are counted and can be paged through.
    BestMatchesOnly,
    /// The query held nothing to search for.
    EmptyQuery,
    /// The query's words are all so common that they were searched as they stand.
    OnlyStopWords,
    /// The server is pinned to one scope.
    Pinned,
    /// `scope` is the name of a project; the note says which scope claims it.
    ScopeOfProject,
    /// No scope could be derived from the project's path.
    NoCurrentScope,
    /// Nothing is there to search yet.
    NoScopes,
    /// A writer keeps a scope's store locked: the answer is of what was committed before.
    StoreLocked,
    /// The status of a memory changed between two pages or two reads.
    ChangedMeanwhile,
    /// Other scopes hold a memory of the same id; the note names them.
    SameId,
}

/// The body of an error: what is wrong, the value, what is allowed, the nearest match and a corrected example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// Stable code, listed in docs/tools.md.
    pub code: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The file or folder it is about, a missing database for instance.
    #[serde(skip_serializing_if = "Option::is_none", default)]
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
