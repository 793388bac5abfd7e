//! Cursors of result pages. A cursor names the last result of a page, so the next page continues
//! after it even if the store changed in between.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use xxhash_rust::xxh3::Xxh3;

use crate::ranking::Ranked;
use ack_api::QueryRequest;

/// A cursor that does not belong to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor does not belong to this request: {reason}")]
pub struct InvalidCursor {
    /// What is wrong with it.
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
    /// As in [`Ranked`], of the last result; likewise the next two.
    pub rank: i64,
    /// Whether it belongs to the current project.
    pub current_project: bool,
    /// When it was written.
    pub created: i64,
    /// The first page's weights, see [`Bm25Weights::freeze`](crate::lexical::Bm25Weights::freeze).
    pub weights: Option<String>,
}

/// The last result of a page.
#[derive(Debug, Clone, Copy)]
pub struct LastResult<'a> {
    /// Its position in the order.
    pub ranked: &'a Ranked,
    /// The name of its scope.
    pub scope: &'a str,
    /// Its id.
    pub id: &'a str,
}

/// The serialized form: the fields of [`Cursor`], in the same order.
type Parts<'a> = (
    u64,
    Cow<'a, str>,
    Cow<'a, str>,
    i64,
    bool,
    i64,
    Option<Cow<'a, str>>,
);

impl Cursor {
    /// The cursor after a page. `weights` are those of the first page.
    pub fn after(request: &QueryRequest, last: LastResult<'_>, weights: Option<String>) -> Self {
        let LastResult { ranked, scope, id } = last;
        Self {
            request: fingerprint(request),
            scope: scope.to_owned(),
            id: id.to_owned(),
            rank: ranked.rank,
            current_project: ranked.current_project,
            created: ranked.created,
            weights,
        }
    }

    /// Encodes the cursor as URL-safe base64 of a JSON array.
    pub fn encode(&self) -> String {
        let parts: Parts<'_> = (
            self.request,
            self.scope.as_str().into(),
            self.id.as_str().into(),
            self.rank,
            self.current_project,
            self.created,
            self.weights.as_deref().map(Cow::Borrowed),
        );
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&parts).unwrap_or_default())
    }

    /// Decodes the cursor of a request, if it has one.
    ///
    /// # Errors
    /// [`InvalidCursor`] if it is damaged or was made for other arguments.
    pub fn decode(request: &QueryRequest) -> Result<Option<Self>, InvalidCursor> {
        let damaged = InvalidCursor {
            reason: "it is damaged",
        };
        let Some(text) = request
            .cursor
            .as_deref()
            .filter(|text| !text.trim().is_empty())
        else {
            return Ok(None);
        };
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| damaged)?;
        let parts: Parts<'_> = serde_json::from_slice(&bytes).map_err(|_| damaged)?;
        let (hash, scope, id, rank, current_project, created, weights) = parts;
        if hash != fingerprint(request) {
            let reason = "it was made for other arguments";
            return Err(InvalidCursor { reason });
        }
        Ok(Some(Self {
            request: hash,
            scope: scope.into_owned(),
            id: id.into_owned(),
            rank,
            current_project,
            created,
            weights: weights.map(Cow::into_owned),
        }))
    }
}

/// Hash of the arguments that determine order and filters. The others (`cursor`, `limit`, `detail`,
/// `max_tokens` and `explain`) may change from page to page.
fn fingerprint(request: &QueryRequest) -> u64 {
    let mut request = request.clone();
    request.cursor = None;
    request.limit = None;
    request.detail = None;
    request.max_tokens = None;
    request.explain = None;
    let mut hash = Xxh3::new();
    serde_json::to_string(&request)
        .unwrap_or_default()
        .hash(&mut hash);
    // 53 bits, which every JSON parser reads exactly.
    hash.finish() >> 11
}
