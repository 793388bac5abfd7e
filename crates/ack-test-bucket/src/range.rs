//! Byte ranges of a read (RFC 9110, section 14).

use std::ops::Range;

use crate::refusal::Refusal;

/// The bytes that the header `Range` asks for, of `size`. `None` for the whole object: multiple
/// ranges and invalid ones are ignored, as in S3.
///
/// # Errors
/// The range contains no byte of the object.
pub(crate) fn requested(header: &str, size: usize) -> Result<Option<Range<usize>>, Refusal> {
    let Some((first, last)) = header
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
    else {
        return Ok(None);
    };
    let range = match (first.trim(), last.trim()) {
        ("", suffix) => match suffix.parse::<usize>() {
            Ok(length) => size.saturating_sub(length)..size,
            Err(_) => return Ok(None),
        },
        (first, "") => match first.parse::<usize>() {
            Ok(first) => first..size,
            Err(_) => return Ok(None),
        },
        (first, last) => match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) if first <= last => first..size.min(last.saturating_add(1)),
            _ => return Ok(None),
        },
    };
    if range.is_empty() {
        return Err(Refusal::InvalidRange { size });
    }
    Ok(Some(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, size: usize, expected: &Result<Option<Range<usize>>, Refusal>) {
        assert_eq!(&requested(header, size), expected, "{header} of {size}");
    }

    #[test]
    fn ranges_are_clipped_to_the_object() {
        check("bytes=0-0", 10, &Ok(Some(0..1)));
        check("bytes=2-5", 10, &Ok(Some(2..6)));
        check("bytes=2-99", 10, &Ok(Some(2..10)));
        check("bytes=2-", 10, &Ok(Some(2..10)));
        check("bytes=-3", 10, &Ok(Some(7..10)));
        check("bytes=-99", 10, &Ok(Some(0..10)));
    }

    #[test]
    fn a_range_without_a_byte_is_refused() {
        let refused = |size| Err(Refusal::InvalidRange { size });
        check("bytes=10-", 10, &refused(10));
        check("bytes=11-12", 10, &refused(10));
        check("bytes=-0", 10, &refused(10));
        check("bytes=0-", 0, &refused(0));
        check("bytes=-5", 0, &refused(0));
    }

    #[test]
    fn anything_but_a_single_range_returns_the_whole_object() {
        for header in [
            "bytes=5-2",
            "bytes=-",
            "bytes=a-b",
            "bytes=0-1,3-4",
            "items=0-1",
            "",
        ] {
            check(header, 10, &Ok(None));
        }
    }
}
