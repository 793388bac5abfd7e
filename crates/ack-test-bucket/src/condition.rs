//! Conditional reads and writes.

use hyper::HeaderMap;
use hyper::http::header::{
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
};
use jiff::Timestamp;

use crate::dialect::{Dialect, IF_GENERATION};
use crate::objects::Object;
use crate::refusal::Refusal;

/// Whether the object may be read.
///
/// # Errors
/// [`Refusal::PreconditionFailed`] or [`Refusal::NotModified`].
pub(crate) fn check_read(headers: &HeaderMap, object: &Object) -> Result<(), Refusal> {
    match text(headers, &IF_MATCH) {
        Some(tags) if !names(tags, &object.etag) => return Err(Refusal::PreconditionFailed),
        Some(_) => {}
        None => {
            if date(headers, &IF_UNMODIFIED_SINCE).is_some_and(|date| object.second() > date) {
                return Err(Refusal::PreconditionFailed);
            }
        }
    }
    match text(headers, &IF_NONE_MATCH) {
        Some(tags) if names(tags, &object.etag) => Err(Refusal::NotModified),
        Some(_) => Ok(()),
        None if date(headers, &IF_MODIFIED_SINCE).is_some_and(|date| object.second() <= date) => {
            Err(Refusal::NotModified)
        }
        None => Ok(()),
    }
}

/// Whether a write has conditions.
pub(crate) fn is_conditional(dialect: Dialect, headers: &HeaderMap) -> bool {
    match dialect {
        Dialect::Amazon => headers.contains_key(IF_MATCH) || headers.contains_key(IF_NONE_MATCH),
        Dialect::Google => headers.contains_key(IF_GENERATION),
    }
}

/// Whether the object may be written; `old` is the existing one.
///
/// # Errors
/// [`Refusal::PreconditionFailed`]; at Amazon, [`Refusal::NoSuchKey`] if there is no object for
/// `If-Match`, and [`Refusal::NotImplemented`] for an `If-None-Match` other than `*`; at Google,
/// [`Refusal::InvalidArgument`] for a generation that is not a number.
pub(crate) fn check_write(
    dialect: Dialect,
    headers: &HeaderMap,
    old: Option<&Object>,
) -> Result<(), Refusal> {
    match dialect {
        Dialect::Amazon => check_tags(headers, old),
        Dialect::Google => check_generation(headers, old),
    }
}

fn check_generation(headers: &HeaderMap, old: Option<&Object>) -> Result<(), Refusal> {
    let Some(expected) = headers.get(IF_GENERATION) else {
        return Ok(());
    };
    let expected = expected.to_str().ok().and_then(|text| text.parse().ok());
    let expected: u64 = expected.ok_or(Refusal::InvalidArgument)?;
    if old.map_or(0, |old| old.generation) == expected {
        Ok(())
    } else {
        Err(Refusal::PreconditionFailed)
    }
}

fn check_tags(headers: &HeaderMap, old: Option<&Object>) -> Result<(), Refusal> {
    if let Some(tags) = text(headers, &IF_NONE_MATCH) {
        if tags != "*" {
            return Err(Refusal::NotImplemented);
        }
        if old.is_some() {
            return Err(Refusal::PreconditionFailed);
        }
    }
    match (text(headers, &IF_MATCH), old) {
        (Some(_), None) => Err(Refusal::NoSuchKey),
        (Some(tags), Some(old)) if !names(tags, &old.etag) => Err(Refusal::PreconditionFailed),
        _ => Ok(()),
    }
}

/// Whether a list of `ETag`s, quoted or not, contains this one.
fn names(list: &str, etag: &str) -> bool {
    let bare = |tag: &str| {
        tag.trim()
            .trim_start_matches("W/")
            .trim_matches('"')
            .to_owned()
    };
    list.trim() == "*" || list.split(',').any(|tag| bare(tag) == bare(etag))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A date in seconds; an invalid header is ignored.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<i64> {
    let date = jiff::fmt::rfc2822::parse(text(headers, name)?).ok()?;
    Some(Timestamp::from(date).as_second())
}
