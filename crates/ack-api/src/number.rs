//! Numbers as people write them.

/// A number with its noun: `1 memory`, `1,234 memories`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", grouped(number))
}

/// A number with a comma before every third digit.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The form of a verb that agrees with a number: `1 row is`, `2 rows are`.
pub const fn verb(number: u64, singular: &'static str, plural: &'static str) -> &'static str {
    if number == 1 { singular } else { plural }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_their_nouns() {
        for (number, noun, expected) in [
            (1, "memory", "1 memory"),
            (0, "memory", "0 memories"),
            (12_345, "memory", "12,345 memories"),
            (2, "day", "2 days"),
            (1_000_000, "row", "1,000,000 rows"),
        ] {
            assert_eq!(count(number, noun), expected);
        }
    }
}
