//! Times as people say them. `--json` has the exact times.

use jiff::civil::Date;

use crate::cli::screen::Screen;
use ack_api::number::count;
use ack_api::time;

/// How long ago something was: `3 hours ago`, `yesterday`, `9 months ago`. A text that is not a
/// time is returned unchanged.
pub fn age(time: &str, screen: &Screen) -> String {
    let today = screen.now.to_zoned(screen.zone.clone()).date();
    let (day, instant) = match (time.parse::<Date>(), time::parse(time)) {
        // A date without a time is in UTC.
        (Ok(day), _) if time.len() == 10 => (day, None),
        (_, Some(instant)) => (instant.to_zoned(screen.zone.clone()).date(), Some(instant)),
        _ => return time.to_owned(),
    };
    let seconds = instant.map(|instant| screen.now.duration_since(instant).as_secs());
    match seconds {
        Some(seconds) if (-60..60).contains(&seconds) => return "just now".to_owned(),
        Some(seconds @ 60..3_600) => return age_text(seconds / 60, "minute"),
        Some(seconds @ 3_600..43_200) => return age_text(seconds / 3_600, "hour"),
        _ => {}
    }
    let days = day.until(today).map_or(0, |span| i64::from(span.get_days()));
    match days {
        ..0 => day.to_string(),
        0 => "today".to_owned(),
        1 => "yesterday".to_owned(),
        2..14 => age_text(days, "day"),
        14..60 => age_text(days / 7, "week"),
        60..730 => age_text(days * 12 / 365, "month"),
        _ => age_text(days / 365, "year"),
    }
}

/// A time with its age: `2026-05-20 11:03 (6 months ago)`, in the local zone.
pub fn exact_time(time: &str, screen: &Screen) -> String {
    let age = age(time, screen);
    let text = match time::parse(time).filter(|_| time.len() != 10) {
        Some(at) => at.to_zoned(screen.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string(),
        None => time.to_owned(),
    };
    if age == text || age == time { text } else { format!("{text} ({age})") }
}

pub fn day(time: &str, screen: &Screen) -> String {
    match time::parse(time).filter(|_| time.len() > 10) {
        Some(instant) => instant.to_zoned(screen.zone.clone()).date().to_string(),
        None => time.to_owned(),
    }
}

fn age_text(number: i64, unit: &str) -> String {
    format!("{} ago", count(number.unsigned_abs(), unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(zone: &str) -> Screen {
        Screen {
            now: "2026-03-15T01:30:00Z".parse().unwrap(),
            zone: jiff::tz::TimeZone::fixed(jiff::tz::offset(zone.parse().unwrap())),
            ..Screen::default()
        }
    }

    #[test]
    fn ages_are_shown_in_plain_words() {
        for (written, expected) in [
            ("2026-03-15T01:29:30Z", "just now"),
            ("2026-03-15T01:29:00Z", "1 minute ago"),
            ("2026-03-14T23:30:00Z", "2 hours ago"),
            ("2026-03-14T01:00:00Z", "yesterday"),
            ("2026-03-14", "yesterday"),
            ("2026-03-15", "today"),
            ("2026-03-02T00:00:00Z", "13 days ago"),
            ("2026-03-01", "2 weeks ago"),
            ("2025-06-15", "8 months ago"),
            ("2024-01-01", "2 years ago"),
            ("2027-01-01", "2027-01-01"),
            ("last spring", "last spring"),
        ] {
            assert_eq!(age(written, &screen("0")), expected, "{written}");
        }
        // Days begin and end in the reader's time zone.
        assert_eq!(age("2026-03-14T01:00:00Z", &screen("-5")), "yesterday");
        assert_eq!(age("2026-03-13T23:00:00Z", &screen("-5")), "yesterday");
        assert_eq!(
            exact_time("2026-03-13T23:00:00Z", &screen("-5")),
            "2026-03-13 18:00 (yesterday)"
        );
    }
}
