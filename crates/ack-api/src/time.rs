//! Parses and formats dates of stores and requests.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Parses a time: RFC 3339, a date and time without a zone (taken as UTC), a date, or a number of
/// seconds or milliseconds since 1970. An invalid date such as 30 February is `None`.
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant);
    }
    if let Ok(number) = text.parse::<f64>() {
        return from_epoch(number);
    }
    let civil: DateTime = text.parse().ok()?;
    civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// Converts a number since 1970: seconds, milliseconds or microseconds, depending on its size. Zero
/// and negative numbers are `None`.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before the conversion")]
pub fn from_epoch(number: f64) -> Option<Timestamp> {
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    let millis = if number >= 1e14 {
        number / 1e3
    } else if number >= 1e11 {
        number
    } else {
        number * 1e3
    };
    if millis > 2.5e14 {
        return None;
    }
    Timestamp::from_millisecond(millis as i64).ok()
}

pub fn to_rfc3339(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub fn utc_day(instant: Timestamp) -> Date {
    instant.to_zoned(TimeZone::UTC).date()
}

pub fn to_date(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d").to_string()
}

/// The start of a day in UTC or, with `until`, the start of the next day. `None` unless the text is
/// a valid day written `YYYY-MM-DD`.
pub fn day_bound(text: &str, until: bool) -> Option<Timestamp> {
    let text = text.trim();
    if text.len() != 10 {
        return None;
    }
    let day: Date = text.parse().ok()?;
    // The last representable day has no next day.
    let day = if until { day.checked_add(1.day()) } else { Ok(day) };
    let start = day.and_then(|day| day.to_zoned(TimeZone::UTC));
    Some(start.map_or(Timestamp::MAX, |zoned| zoned.timestamp()))
}

/// The valid day nearest to a text that looks like `YYYY-MM-DD`, for an error message.
pub fn nearest_day(text: &str) -> Option<String> {
    let mut parts = text.trim().get(..10.min(text.trim().len()))?.split(['-', '/', '.']);
    let year: i16 = parts.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let month: i8 = parts.next()?.parse().ok()?;
    let day: i8 = parts.next().unwrap_or("1").parse().unwrap_or(1);
    let first = Date::new(year, month.clamp(1, 12), 1).ok()?;
    let day = day.clamp(1, first.days_in_month());
    Date::new(year, first.month(), day).ok().map(|date| date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_day_is_included() {
        assert_eq!(
            day_bound("2026-02-28", true).map(to_rfc3339).as_deref(),
            Some("2026-03-01T00:00:00Z")
        );
        assert_eq!(
            day_bound("2026-02-28", false).map(to_rfc3339).as_deref(),
            Some("2026-02-28T00:00:00Z")
        );
        assert_eq!(day_bound("2026-02-30", false), None);
        assert_eq!(day_bound("20260228", false), None);
        assert_eq!(nearest_day("2026-02-30").as_deref(), Some("2026-02-28"));
        assert_eq!(nearest_day("31.01.2026"), None, "what comes first is not a year");
    }
}
