//! Numbers with their units: `30 s`, `1 min`, `512MB`, `10k`, `3.11`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    None,
    /// Milliseconds.
    Time,
    /// Bytes.
    Size,
    Percent,
    Version,
    /// A factor: `30x`.
    Factor,
    Clock,
    Money(char),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    pub value: f64,
    pub unit: Unit,
    /// The digits as written, if it may be a version: `3.10` is not `3.1`.
    pub version: Option<Box<str>>,
}

impl Quantity {
    pub fn equals(&self, other: &Self) -> bool {
        if let (Some(one), Some(other)) = (&self.version, &other.version) {
            // `1.4` and `1.4.2` may both be true of one thing.
            return one == other
                || one.strip_prefix(&**other).is_some_and(|rest| rest.starts_with('.'))
                || other.strip_prefix(&**one).is_some_and(|rest| rest.starts_with('.'));
        }
        // 1 GB is 1000 MB to some and 1024 MB to others.
        let tolerance = if self.unit == Unit::Size { 0.05 } else { 1e-9 };
        (self.value - other.value).abs() <= tolerance * self.value.abs().max(other.value.abs())
    }

    /// Applies the unit that a word names, if the number has none yet.
    pub fn with_unit(&mut self, word: &str) -> bool {
        let Some((unit, factor)) = unit(word).filter(|_| self.unit == Unit::None) else {
            return false;
        };
        self.value *= factor;
        self.unit = unit;
        self.version = None;
        true
    }
}

#[rustfmt::skip]
const WORDS: [(&str, f64); 20] = [
    ("zero", 0.0), ("two", 2.0), ("three", 3.0), ("four", 4.0), ("five", 5.0), ("six", 6.0),
    ("seven", 7.0), ("eight", 8.0), ("nine", 9.0), ("ten", 10.0), ("eleven", 11.0),
    ("twelve", 12.0), ("fifteen", 15.0), ("twenty", 20.0), ("thirty", 30.0), ("forty", 40.0),
    ("fifty", 50.0), ("sixty", 60.0), ("ninety", 90.0), ("hundred", 100.0),
];

pub fn in_words(word: &str) -> Option<Quantity> {
    let (_, value) = WORDS.iter().find(|(known, _)| *known == word)?;
    Some(Quantity { value: *value, unit: Unit::None, version: None })
}

const SECOND: f64 = 1_000.0;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
const KIB: f64 = 1_024.0;

/// The unit that a word names, and its factor to the base unit.
pub fn unit(word: &str) -> Option<(Unit, f64)> {
    Some(match word {
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" | "millisekunden"
        | "millisecondes" => (Unit::Time, 1.0),
        "s" | "sec" | "secs" | "second" | "seconds" | "sekunde" | "sekunden" | "seconde"
        | "secondes" | "segundo" | "segundos" | "секунда" | "секунды" | "секунд" | "сек" => {
            (Unit::Time, SECOND)
        }
        "min" | "mins" | "minute" | "minutes" | "minuten" | "minuto" | "minutos" | "минута"
        | "минуты" | "минут" => (Unit::Time, MINUTE),
        "h" | "hr" | "hrs" | "hour" | "hours" | "stunde" | "stunden" | "heure" | "heures"
        | "hora" | "horas" | "час" | "часа" | "часов" => (Unit::Time, HOUR),
        "d" | "day" | "days" | "tag" | "tage" | "tagen" | "jour" | "jours" | "día" | "días"
        | "день" | "дня" | "дней" => (Unit::Time, DAY),
        "w" | "week" | "weeks" | "woche" | "wochen" | "semaine" | "semaines" | "semana"
        | "semanas" | "неделя" | "недели" | "недель" => (Unit::Time, 7.0 * DAY),
        "month" | "months" | "monat" | "monate" | "mois" | "mes" | "meses" | "месяц" | "месяца"
        | "месяцев" => (Unit::Time, 30.0 * DAY),
        "year" | "years" | "jahr" | "jahre" | "ans" | "años" | "год" | "года" | "лет" => {
            (Unit::Time, 365.0 * DAY)
        }
        "b" | "byte" | "bytes" => (Unit::Size, 1.0),
        "kb" | "kib" | "kilobytes" => (Unit::Size, KIB),
        "mb" | "mib" | "megabytes" | "meg" => (Unit::Size, KIB * KIB),
        "gb" | "gib" | "gigabytes" | "gig" | "gi" => (Unit::Size, KIB * KIB * KIB),
        "mi" => (Unit::Size, KIB * KIB),
        "tb" | "tib" | "terabytes" => (Unit::Size, KIB * KIB * KIB * KIB),
        "%" | "percent" | "prozent" | "процентов" | "процента" => {
            (Unit::Percent, 1.0)
        }
        "€" | "eur" | "euro" | "euros" => (Unit::Money('€'), 1.0),
        "$" | "usd" | "dollars" | "dollar" => (Unit::Money('$'), 1.0),
        "k" => (Unit::None, 1_000.0),
        "m" | "million" | "millions" => (Unit::None, 1_000_000.0),
        _ => return None,
    })
}

/// Reads a chunk as a number: `30`, `1,000`, `10_000`, `v3.11`, `30s`, `5%`, `14:30`, `$40`.
pub fn parse(chunk: &str) -> Option<Quantity> {
    let chunk = chunk.trim_start_matches(['~', '≈', '+', '±', '≤', '≥']);
    let (money, chunk) = match chunk.chars().next()? {
        sign @ ('$' | '€') => (Some(sign), chunk.get(sign.len_utf8()..)?),
        _ => (None, chunk),
    };
    let (is_version, digits) = match chunk.strip_prefix(['v', 'V']) {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => (true, rest),
        _ => (false, chunk),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some((hours, minutes)) = digits.split_once(':') {
        let (hours, minutes): (f64, f64) = (hours.parse().ok()?, minutes.parse().ok()?);
        let is_time = hours < 25.0 && minutes < 60.0;
        return is_time.then_some(Quantity {
            value: hours * HOUR + minutes * MINUTE,
            unit: Unit::Clock,
            version: None,
        });
    }
    let end =
        digits.find(|c: char| !(c.is_ascii_digit() || ".,_".contains(c))).unwrap_or(digits.len());
    let (number, suffix) = digits.split_at_checked(end)?;
    let number = number.trim_end_matches(['.', ',']);
    let suffix = suffix.trim_start_matches('-').to_lowercase();
    let dots = number.matches('.').count();
    let mut quantity = if is_version || dots > 1 {
        let (major, rest) = number.split_once('.').unwrap_or((number, ""));
        let minor = rest.split('.').next().unwrap_or("");
        Quantity {
            value: format!("{major}.{minor}0").parse().ok()?,
            unit: Unit::Version,
            version: Some(number.into()),
        }
    } else {
        let plain: String = number.chars().filter(|c| !",_".contains(*c)).collect();
        Quantity {
            value: plain.parse().ok()?,
            unit: Unit::None,
            version: (dots == 1).then(|| number.into()),
        }
    };
    if let Some(sign) = money {
        quantity.unit = Unit::Money(sign);
        quantity.version = None;
    }
    if suffix.is_empty() || quantity.with_unit(&suffix) {
        return Some(quantity);
    }
    // `v2-beta`, `16px`, `5x`: a name.
    quantity.unit = Unit::Factor;
    (suffix == "x").then_some(quantity)
}
