//! Pages: a cursor names the last result of the page before, so that the next page goes on behind it whatever changed.

use std::hash::{Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::api::QueryRequest;
use crate::error::Error;

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Fingerprint of the request's other arguments.
    #[serde(rename = "r")]
    request: u64,
    /// Scope of the last result.
    #[serde(rename = "s")]
    pub scope: String,
    /// Id of the last result.
    #[serde(rename = "i")]
    pub id: String,
    /// Its rank score.
    #[serde(rename = "q")]
    pub rank: i64,
    /// Whether it was one of the current project's.
    #[serde(rename = "m")]
    pub mine: bool,
    /// When it was written.
    #[serde(rename = "c")]
    pub created: i64,
}

impl Cursor {
    /// The cursor behind a result of this request.
    pub fn new(request: &QueryRequest, scope: &str, id: &str, rank: i64, mine: bool, created: i64) -> Self {
        Self {
            request: fingerprint(request),
            scope: scope.to_owned(),
            id: id.to_owned(),
            rank,
            mine,
            created,
        }
    }

    /// As it travels: URL-safe base64 of JSON.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads the cursor of a request.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] when it is damaged or was made for other arguments.
    pub fn decode(request: &QueryRequest) -> Result<Option<Self>, Error> {
        let Some(text) = request.cursor.as_deref() else { return Ok(None) };
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim())
            .map_err(|_| Error::InvalidCursor { reason: "it is damaged" })?;
        let cursor: Self = serde_json::from_slice(&bytes).map_err(|_| Error::InvalidCursor { reason: "it is damaged" })?;
        if cursor.request != fingerprint(request) {
            return Err(Error::InvalidCursor {
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
