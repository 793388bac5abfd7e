//! Lists of keys, page by page.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::objects::{Object, Objects};
use crate::refusal::Refusal;
use crate::route::Query;
use crate::xml::{CommonPrefix, Contents, ListBucketResult};

/// The characters that `encoding-type=url` encodes.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'/')
    .remove(b'_')
    .remove(b'~');

/// The last item of a page, after which the next page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LastEntry {
    Key(String),
    Prefix(String),
}

impl LastEntry {
    fn token(&self) -> String {
        let (kind, text) = match self {
            Self::Key(key) => ('k', key),
            Self::Prefix(prefix) => ('p', prefix),
        };
        format!("{kind}.{}", utf8_percent_encode(text, NON_ALPHANUMERIC))
    }

    fn read(token: &str) -> Option<Self> {
        let (kind, text) = token.split_once('.')?;
        let text = percent_decode_str(text).decode_utf8().ok()?.into_owned();
        match kind {
            "k" => Some(Self::Key(text)),
            "p" => Some(Self::Prefix(text)),
            _ => None,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Key(text) | Self::Prefix(text) => text,
        }
    }

    /// Whether a key is already covered by this prefix in the list.
    fn covers(&self, key: &str) -> bool {
        matches!(self, Self::Prefix(prefix) if key.starts_with(prefix.as_str()))
    }
}

/// A page of the list that a query asks for, of at most `page` keys and prefixes.
///
/// # Errors
/// A number or a token is invalid.
pub(crate) fn list(
    objects: &Objects,
    query: &Query,
    page: usize,
) -> Result<ListBucketResult, Refusal> {
    let filled = |name| query.get(name).filter(|value| !value.is_empty());
    let prefix = query.get("prefix").unwrap_or_default();
    let delimiter = filled("delimiter");
    let max_keys = match filled("max-keys") {
        Some(number) => number.parse().map_err(|_| Refusal::InvalidArgument)?,
        None => 1000,
    };
    let mut last = match filled("continuation-token") {
        Some(token) => Some(LastEntry::read(token).ok_or(Refusal::InvalidArgument)?),
        None => filled("start-after").map(|key| LastEntry::Key(key.to_owned())),
    };
    let url = query.get("encoding-type") == Some("url");
    let encoded = |text: &str| match url {
        true => utf8_percent_encode(text, ENCODED).to_string(),
        false => text.to_owned(),
    };

    let mut result = ListBucketResult {
        prefix: encoded(prefix),
        delimiter: delimiter.map(encoded),
        start_after: filled("start-after").map(encoded),
        continuation_token: filled("continuation-token").map(str::to_owned),
        encoding_type: url.then_some("url"),
        max_keys,
        ..ListBucketResult::default()
    };
    let after = last.as_ref().map_or("", LastEntry::text).to_owned();
    for (key, object) in objects.after(&after) {
        let Some(rest) = key.strip_prefix(prefix) else {
            continue;
        };
        if last.as_ref().is_some_and(|last| last.covers(key)) {
            continue;
        }
        if result.key_count >= max_keys.min(page) {
            result.is_truncated = max_keys > 0;
            break;
        }
        result.key_count += 1;
        let group = delimiter.and_then(|delimiter| {
            let (group, _) = rest.split_once(delimiter)?;
            Some(format!("{prefix}{group}{delimiter}"))
        });
        last = Some(match group {
            Some(group) => {
                let prefix = encoded(&group);
                result.common_prefixes.push(CommonPrefix { prefix });
                LastEntry::Prefix(group)
            }
            None => {
                result.contents.push(entry(encoded(key), object));
                LastEntry::Key(key.clone())
            }
        });
    }
    if result.is_truncated {
        result.next_continuation_token = last.as_ref().map(LastEntry::token);
    }
    Ok(result)
}

fn entry(key: String, object: &Object) -> Contents {
    Contents {
        key,
        last_modified: object
            .modified
            .strftime("%Y-%m-%dT%H:%M:%S.000Z")
            .to_string(),
        etag: object.etag.clone(),
        size: object.bytes.len(),
        storage_class: "STANDARD",
    }
}
