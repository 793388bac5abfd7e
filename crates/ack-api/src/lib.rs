//! The contract between an agent and ack-memory: requests, answers, notes and the error body.
//!
//! These types define the tools' JSON schemas, the output of `--json` and the files under
//! `schemas/`. They hold no logic beyond defaults. Published field names do not change; a test
//! compares the schemas.
//!
//! The crate also holds what every other crate uses: the memory record and its status ([`memory`]),
//! memories as lines of JSON ([`import_line`]), safe text ([`text`]), dates ([`time`]), numbers in
//! words ([`number`]), what a reader can do next ([`hint`]), the numbers of the review queue
//! ([`queue`]), the addresses of scopes and memories ([`uri`]), and the cancellation of requests
//! ([`cancel`]). It does no input or output.

pub mod cancel;
mod code;
pub mod decision;
pub mod diagnostic;
pub mod hint;
pub mod import_line;
pub mod memory;
mod message;
mod note;
pub mod number;
pub mod queue;
pub mod remote;
mod request;
mod resource;
mod response;
pub mod settings;
pub mod shell;
pub mod source;
pub mod text;
pub mod time;
pub mod uri;

pub use code::ErrorCode;
pub use diagnostic::Diagnostic;
pub use hint::{Given, Hint, Reader, Tool};
pub use message::{Editor, Message, Resolve};
pub use note::{ErrorBody, Note, NoteKind};
pub use request::{
    ALIASES, COMMA_SEPARATED, ContextRequest, DAYS, Detail, FREE_TEXTS, GetRequest, Include,
    ListScopesRequest, MAX_DEPTH, MAX_IDS, MAX_LIMIT, MAX_NEIGHBOURS, MatchTags, Mode, Order,
    QueryRequest, UNLISTED, Within,
};
pub use resource::{ResourceEntry, ScopeResource, Warning};
pub use response::{
    Also, ContextResponse, Contradiction, Counts, Expected, Explanation, GetResponse, Health,
    HealthState, Hidden, HistoryEntry, IndexInfo, LegExplanation, LinkEntry, ListScopesResponse,
    MemoryDetail, MemoryHit, MissingMemory, Pending, ProjectInfo, QueryResponse, RelatedEntry,
    RelationKind, RelativeAge, ScopeInfo, Searched, SessionContext, SessionEntry, Skipped, Stage,
    TagCount, Timeline, TimelineEntry,
};
