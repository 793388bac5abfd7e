//! Days as clients write them: with a time, an offset, other separators, or as a number.

use jiff::civil::{Date, DateTime};
use jiff::{Timestamp, fmt::rfc2822};
use serde_json::Value;

use ack_api::time;

/// The day of a text in another form: with a time and an offset, the day in UTC; without an offset,
/// the day as written. `None` if it is a day already, or no day.
pub(super) fn day(text: &str) -> Option<String> {
    if time::day_bound(text, false).is_some() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Eight digits are a day.
        return match text.len() {
            8 => Some(text.parse::<Date>().ok()?.to_string()),
            _ => instant(&Value::from(text.parse::<i64>().ok()?)),
        };
    }
    let mail = || rfc2822::parse(text).map(|at| at.timestamp());
    if let Ok(instant) = text.parse::<Timestamp>().or_else(|_| mail()) {
        return Some(time::to_date(instant));
    }
    if let Ok(at) = text.parse::<DateTime>() {
        return Some(at.date().to_string());
    }
    let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
    let [year, month, day] = parts.as_slice() else {
        return None;
    };
    let year = year.parse().ok().filter(|_| year.len() == 4)?;
    Some(Date::new(year, month.parse().ok()?, day.parse().ok()?).ok()?.to_string())
}

/// The day of seconds or milliseconds since 1970. `None` for a number that may be something else.
pub(super) fn instant(number: &Value) -> Option<String> {
    let number = number.as_i64().or_else(|| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a cast saturates, and no such day exists"
        )]
        number.as_f64().map(|number| number as i64)
    })?;
    match number {
        // From 1973 to 5138.
        100_000_000..100_000_000_000 => Timestamp::from_second(number).ok().map(time::to_date),
        100_000_000_000.. => Timestamp::from_millisecond(number).ok().map(time::to_date),
        _ => None,
    }
}
