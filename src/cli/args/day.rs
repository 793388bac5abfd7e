//! Dates as people write them: a date, `today`, `yesterday`, or how long ago.

use ack_api::time::utc_day;
use jiff::{Span, Timestamp, ToSpan, civil::Date};

/// Parses a day for `--since` and `--until` and returns it as `YYYY-MM-DD`. Days are in UTC, as in
/// requests.
pub(super) fn day(text: &str) -> Result<String, String> {
    let today = utc_day(Timestamp::now());
    // `-7d` is how other programs write an age.
    let age = text.strip_prefix('-').unwrap_or(text);
    read(age, today).ok_or_else(|| {
        "use a date such as 2026-02-28, today, yesterday, or an age such as 7d, 2w, 3m, 1y"
            .to_owned()
    })
}

/// Parses a day for `--until` of `stage`: a date, `tomorrow`, or a time from now. Returns it as
/// `YYYY-MM-DD`.
pub(in crate::cli) fn parse_later_day(text: &str) -> Result<String, String> {
    let text = text.trim();
    parse_later(text, utc_day(Timestamp::now())).ok_or_else(|| match text.parse::<Date>() {
        Ok(_) if is_date(text) => {
            format!("{text} is in the past; give a later date, or `tomorrow`, `7d`, `2w`, `3m`")
        }
        _ => "give a future date such as 2027-02-28, or `tomorrow`, `7d`, `2w`, `3m`".to_owned(),
    })
}

fn parse_later(text: &str, today: Date) -> Option<String> {
    let text = text.trim().to_lowercase();
    let day = match text.strip_prefix("in ").unwrap_or(&text).trim() {
        "tomorrow" => today.tomorrow().ok()?,
        text if is_date(text) => text.parse().ok()?,
        text => today.checked_add(span(text)?).ok()?,
    };
    (day > today && day.year() > 0).then(|| day.to_string())
}

fn read(text: &str, today: Date) -> Option<String> {
    let text = text.trim().to_lowercase();
    let text = text.strip_suffix(" ago").unwrap_or(&text).trim();
    // For a day that does not exist, the error later suggests the nearest one.
    if is_date(text) {
        return Some(text.to_owned());
    }
    let span = match text {
        "today" => 0.days(),
        "yesterday" => 1.day(),
        _ => span(text)?,
    };
    let day = today.checked_sub(span).ok()?;
    (day.year() > 0).then(|| day.to_string())
}

fn span(text: &str) -> Option<Span> {
    let (number, unit) = text.split_at_checked(text.find(|c: char| !c.is_ascii_digit())?)?;
    let number: i64 = number.parse().ok().filter(|number| *number < 10_000)?;
    Some(match unit.trim() {
        "d" | "day" | "days" => number.days(),
        "w" | "week" | "weeks" => number.weeks(),
        "m" | "mo" | "month" | "months" => number.months(),
        "y" | "year" | "years" => number.years(),
        _ => return None,
    })
}

fn is_date(text: &str) -> bool {
    let is_fitting = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(is_fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_to_come_is_written_in_many_ways() {
        let today: Date = "2026-01-31".parse().unwrap();
        let read = |text| parse_later(text, today);
        for (text, day) in [
            ("2026-02-28", "2026-02-28"),
            ("Tomorrow", "2026-02-01"),
            ("2w", "2026-02-14"),
            ("in 2 weeks", "2026-02-14"),
            ("1m", "2026-02-28"),
        ] {
            assert_eq!(read(text).as_deref(), Some(day), "{text}");
        }
        for text in "2026-01-31 | 2026-02-30 | 0d | yesterday | 7 | soon | ".split(" | ") {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_is_written_in_many_ways() {
        let today: Date = "2026-03-31".parse().unwrap();
        let read = |text| read(text, today);
        for (text, day) in [
            ("2026-02-28", "2026-02-28"),
            ("today", "2026-03-31"),
            ("Yesterday", "2026-03-30"),
            ("7d", "2026-03-24"),
            ("2w", "2026-03-17"),
            ("2 weeks ago", "2026-03-17"),
            // The last day of a shorter month.
            ("1m", "2026-02-28"),
            ("1y", "2025-03-31"),
        ] {
            assert_eq!(read(text).as_deref(), Some(day), "{text}");
        }
        for text in
            "2026-2-30 | 7 | d | 7x | -1d | 99999d | 9999y | soon | 7d ago ago | ".split(" | ")
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
