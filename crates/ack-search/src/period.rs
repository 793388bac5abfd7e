//! A month, a day or a stretch of days that a question names (`the outage of November 2022`, `what
//! broke last week`), in the languages of the encoder. It says when something was written down, and
//! not what to find.

use std::ops::Range;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::analysis::is_unspaced;

/// The months, each in English, German, French, Spanish, Portuguese, Italian, Russian and Polish, in
/// the forms that stand before a year.
const MONTHS: [&str; 12] = [
    "january jan januar janvier enero janeiro gennaio январь января январе styczeń stycznia styczniu",
    "february feb februar février febrero fevereiro febbraio февраль февраля феврале luty lutego lutym",
    "march mar märz mars marzo março март марта марте marzec marca marcu",
    "april apr avril abril aprile апрель апреля апреле kwiecień kwietnia kwietniu",
    "may mai mayo maio maggio май мая мае maj maja maju",
    "june jun juni juin junio junho giugno июнь июня июне czerwiec czerwca czerwcu",
    "july jul juli juillet julio julho luglio июль июля июле lipiec lipca lipcu",
    "august aug août agosto август августа августе sierpień sierpnia sierpniu",
    "september sep sept septembre septiembre setembro settembre сентябрь сентября сентябре wrzesień \
     września wrześniu",
    "october oct oktober octobre octubre outubro ottobre октябрь октября октябре październik \
     października październiku",
    "november nov novembre noviembre novembro ноябрь ноября ноябре listopad listopada listopadzie",
    "december dec dezember décembre diciembre dezembro dicembre декабрь декабря декабре grudzień \
     grudnia grudniu",
];
/// What stands before such a date, or between its month and its year.
const LINKS: &str = "\
    in of from since on im vom seit en de du depuis em desde nel del da в во с за w z od tháng năm";
/// What a question begins or ends with, for yesterday, for the week and for the month before.
const BEFORE: [&str; 3] = [
    "yesterday|gestern|ayer|ontem|ieri|вчера|wczoraj|昨天|昨日|어제|hôm qua",
    "last week|letzte woche|letzter woche|letzten woche|vorige woche|voriger woche|vorigen woche|\
     la semaine dernière|semaine dernière|la semana pasada|semana pasada|na semana passada|\
     semana passada|la settimana scorsa|settimana scorsa|на прошлой неделе|прошлой недели|\
     w zeszłym tygodniu|w ubiegłym tygodniu|zeszłego tygodnia|上周|上週|先週|지난주|지난주에|tuần trước",
    "last month|letzten monat|letzten monats|vorigen monat|vorigen monats|le mois dernier|\
     mois dernier|el mes pasado|mes pasado|no mês passado|mês passado|il mese scorso|mese scorso|\
     в прошлом месяце|прошлого месяца|w zeszłym miesiącu|w ubiegłym miesiącu|zeszłego miesiąca|\
     上个月|上個月|先月|지난달|지난달에|tháng trước",
];

const MAX_WORDS: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub struct Period {
    /// In milliseconds since 1970.
    pub millis: Range<i64>,
    pub text: String,
}

impl Period {
    /// The period that a question names, besides something else.
    pub fn find(text: &str, now: Timestamp) -> Option<Self> {
        let (days, text) = month(text).or_else(|| Some((before(text, now)?, text.to_owned())))?;
        let millis = |day: Date| {
            let start = day.to_zoned(TimeZone::UTC).ok()?;
            Some(start.timestamp().as_millisecond())
        };
        text.contains(char::is_alphanumeric)
            .then_some(Self { millis: millis(days.start)?..millis(days.end)?, text })
    }
}

fn month(text: &str) -> Option<(Range<Date>, String)> {
    // Most questions name no year.
    if text.chars().filter(char::is_ascii_digit).count() < 4 {
        return None;
    }
    let text = text.replace('月', "月 ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let (place, length, first) = (0..words.len().min(MAX_WORDS)).find_map(|place| {
        let words = words.get(place..)?;
        (1..=4).find_map(|length| Some((place, length, first_day(words.get(..length)?)?)))
    })?;
    let (before, rest) = words.split_at_checked(place)?;
    let is_link = |word: &&&str| LINKS.split_whitespace().any(|link| link == word.to_lowercase());
    let links = before.iter().rev().take_while(is_link).count();
    let before = before.get(..before.len() - links)?;
    let text = [before, rest.get(length..)?].concat().join(" ");
    Some((first..first.checked_add(1.month()).ok()?, text))
}

/// The first day of the month that words write: `November 2022`, `noviembre de 2022`, `2022-11`,
/// `tháng 11 năm 2022`, `2022年11月`.
fn first_day(words: &[&str]) -> Option<Date> {
    let text = words.join(" ").to_lowercase();
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    let parts =
        text.split([' ', '-', '/', '年', '月', '년', '월']).map(|part| part.trim_matches(','));
    let mut parts =
        parts.filter(|part| !part.is_empty() && !LINKS.split(' ').any(|it| it == *part));
    let (one, other) = (parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let (year, month) = match one.len() {
        4 if one.starts_with("20") => (one, other),
        _ => (other, one),
    };
    let is_name = |names: &&str| names.split_whitespace().any(|name| name == month);
    let named = || (1..).zip(&MONTHS).find(|(_, names)| is_name(names));
    let month = named().map(|(number, _)| number).or(month.parse().ok())?;
    let is_written = text.contains(['-', '/', '年', '년']) || text.starts_with("tháng");
    if named().is_none() && !is_written {
        return None;
    }
    let year = year.parse().ok();
    let year = year.filter(|year| (1990..2100).contains(year))?;
    Date::new(year, month, 1).ok()
}

/// The days that a question begins or ends with. It may be about them (`the prices of yesterday`), so
/// they are words of it, too.
fn before(text: &str, now: Timestamp) -> Option<Range<Date>> {
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    let text = format!(" {} ", text.to_lowercase());
    let is_named = |phrase: &str| {
        let spaced = format!(" {phrase} ");
        let is_unspaced = phrase.starts_with(is_unspaced);
        let phrase = if is_unspaced { spaced.trim() } else { &spaced };
        let text = if is_unspaced { text.trim() } else { &text };
        text.starts_with(phrase) || text.ends_with(phrase)
    };
    let today = now.to_zoned(TimeZone::UTC).date();
    let weekday = i64::from(today.weekday().to_monday_zero_offset());
    let monday = today.checked_sub(weekday.days()).ok()?;
    let ends = [today, monday, today.first_of_month()];
    let lengths = [1.day(), 1.week(), 1.month()];
    let mut named = BEFORE.iter().zip(ends.into_iter().zip(lengths));
    let (_, (end, length)) = named.find(|(phrases, _)| phrases.split('|').any(is_named))?;
    Some(end.checked_sub(length).ok()?..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(question: &str) -> Option<Period> {
        Period::find(question, "2026-11-28T10:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_question_names_when_a_memory_was_written() {
        let questions = "\
            the outage of November 2022 | 2022-11-01 2022-12-01 | the outage
            Was lief im März 2026 schief? | 2026-03-01 2026-04-01 | Was lief schief?
            la caída de noviembre de 2022 | 2022-11-01 2022-12-01 | la caída
            сбой в ноябре 2022 | 2022-11-01 2022-12-01 | сбой
            2022年11月の障害 | 2022-11-01 2022-12-01 | の障害
            2022년 11월 장애 | 2022-11-01 2022-12-01 | 장애
            sự cố tháng 11 năm 2022 | 2022-11-01 2022-12-01 | sự cố
            retries in 2025-12 | 2025-12-01 2026-01-01 | retries
            die Ausfälle der letzten Woche | 2026-11-16 2026-11-23 | die Ausfälle der letzten Woche
            what broke last week? | 2026-11-16 2026-11-23 | what broke last week?
            先月のデプロイ | 2026-10-01 2026-11-01 | 先月のデプロイ
            Deploy gestern | 2026-11-27 2026-11-28 | Deploy gestern";
        for line in questions.lines() {
            let parts: Vec<&str> = line.trim().split(" | ").collect();
            let Period { millis, text } = find(parts[0]).unwrap();
            let days = [millis.start, millis.end].map(|millis| {
                let instant = Timestamp::from_millisecond(millis).unwrap();
                ack_api::time::to_date(instant)
            });
            assert_eq!([&*days.join(" "), &*text], parts[1..], "{line}");
        }
    }

    #[test]
    fn a_version_or_a_word_that_looks_like_a_date_is_none() {
        let questions = "November 2022 | Rust 2018 edition | the last week number | CVE-2022-11223 | \
            the outage of 2022-11-03 | ledger 2024 12 | may 20 retries fail | Stunden vorgestern";
        for question in questions.split(" | ") {
            assert_eq!(find(question), None, "{question}");
        }
    }
}
