//! The contract: requests, answers, notes and the error body, exactly as they travel.
//!
//! These types are at once the tools' JSON schemas, the output of `--json` and the files under `schemas/`. They hold no
//! logic beyond defaults. Fields that the published design names keep their names; a test compares the schemas.

mod note;
mod request;
mod resource;
mod response;

pub use note::{ErrorBody, Note, NoteKind};
pub use request::{
    ContextRequest, Detail, GetRequest, Include, ListScopesRequest, MAX_DEPTH, MAX_IDS, MAX_LIMIT, MAX_NEIGHBOURS, MatchTags, Mode, Order,
    QueryRequest, Within,
};
pub use resource::{Completions, ResourceEntry, Review, ReviewItem, ScopeResource};
pub use response::{
    Also, ContextResponse, Counts, Expected, Explanation, GetResponse, Health, HealthState, Hidden, HistoryEntry, IndexInfo,
    LegExplanation, LinkEntry, ListScopesResponse, MemoryDetail, MemoryHit, MissingMemory, Pending, ProjectInfo, QueryResponse,
    RelatedEntry, ScopeInfo, Searched, SessionContext, SessionEntry, Skipped, Stage, TagCount, Timeline, TimelineEntry,
};
