//! Pages: a cursor names the last result of the page before, so that the next page goes on behind it whatever changed.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use xxhash_rust::xxh3::Xxh3;

use ack_api::QueryRequest;

/// A cursor that belongs to no page of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor does not belong to this request: {reason}")]
pub struct InvalidCursor {
    /// What does not fit.
    pub reason: &'static str,
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    /// Fingerprint of the request's other arguments.
    request: u64,
    /// Scope of the last result.
    pub scope: String,
    /// Id of the last result.
    pub id: String,
    /// Its rank score.
    pub rank: i64,
    /// Whether it was one of the current project's.
    pub mine: bool,
    /// When it was written.
    pub created: i64,
    /// The weights the first page was ranked by (`lexical::Statistics::freeze`).
    pub weights: Option<String>,
}

/// As it travels, in the order of [`Cursor`]'s fields.
type Parts<'a> = (u64, Cow<'a, str>, Cow<'a, str>, i64, bool, i64, Option<Cow<'a, str>>);

impl Cursor {
    /// The cursor behind a place: scope and id, then rank score, whether it is the current project's, and when it was written.
    pub fn new(
        request: &QueryRequest,
        (scope, id): (&str, &str),
        (rank, mine, created): (i64, bool, i64),
        weights: Option<String>,
    ) -> Self {
        Self {
            request: fingerprint(request),
            scope: scope.to_owned(),
            id: id.to_owned(),
            rank,
            mine,
            created,
            weights,
        }
    }

    /// As it travels: URL-safe base64 of a JSON array.
    pub fn encode(&self) -> String {
        let parts: Parts<'_> = (
            self.request,
            self.scope.as_str().into(),
            self.id.as_str().into(),
            self.rank,
            self.mine,
            self.created,
            self.weights.as_deref().map(Cow::Borrowed),
        );
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&parts).unwrap_or_default())
    }

    /// Reads the cursor of a request.
    ///
    /// # Errors
    /// [`InvalidCursor`] when it is damaged or was made for other arguments.
    pub fn decode(request: &QueryRequest) -> Result<Option<Self>, InvalidCursor> {
        let Some(text) = request.cursor.as_deref().filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim())
            .map_err(|_| InvalidCursor { reason: "it is damaged" })?;
        let parts: Parts<'_> = serde_json::from_slice(&bytes).map_err(|_| InvalidCursor { reason: "it is damaged" })?;
        let (hash, scope, id, rank, mine, created, weights) = parts;
        let (scope, id, weights) = (scope.into_owned(), id.into_owned(), weights.map(Cow::into_owned));
        let cursor = Self {
            request: hash,
            scope,
            id,
            rank,
            mine,
            created,
            weights,
        };
        if cursor.request != fingerprint(request) {
            return Err(InvalidCursor {
                reason: "it was made for other arguments",
            });
        }
        Ok(Some(cursor))
    }
}

/// Hash of what decides about order and filters; `cursor`, `limit`, `detail`, `max_tokens` and `explain` may change from
/// page to page.
fn fingerprint(request: &QueryRequest) -> u64 {
    let mut rest = request.clone();
    rest.cursor = None;
    rest.limit = None;
    rest.detail = None;
    rest.max_tokens = None;
    rest.explain = None;
    let mut hash = Xxh3::new();
    serde_json::to_string(&rest).unwrap_or_default().hash(&mut hash);
    // 53 bits, so that any JSON reader keeps the number.
    hash.finish() >> 11
}
