//! The codes of errors in a text. Two codes of one kind share most of their words, and mean
//! different errors.

use std::collections::{BTreeMap, BTreeSet};

pub struct ErrorCodes(BTreeMap<String, BTreeSet<String>>);

impl ErrorCodes {
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut codes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for text in texts {
            for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                if let Some(kind) = kind(word) {
                    codes.entry(kind).or_default().insert(word.to_owned());
                }
            }
        }
        Self(codes)
    }

    /// Whether both have codes of one kind, and none in common.
    pub fn are_others(&self, others: &Self) -> bool {
        let mut kinds = self.0.iter();
        kinds.any(|(kind, ours)| others.0.get(kind).is_some_and(|it| ours.is_disjoint(it)))
    }
}

/// The kind of an error code; `None` if the word is not one.
fn kind(word: &str) -> Option<String> {
    let is_upper = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
    // `ERR_PNPM_NO_LOCKFILE`: the codes of a program.
    if let Some(rest) = word.strip_prefix("ERR_") {
        let (program, _) = rest.split_once('_')?;
        return Some(format!("ERR_{program}"));
    }
    // `E0308`, `TS2345`: letters and as many digits.
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = word.len() - letters.len();
    if (1..=4).contains(&letters.len()) && is_upper(letters) && (3..=5).contains(&digits) {
        return Some(format!("{letters}{}", "0".repeat(digits)));
    }
    // `EADDRINUSE`, but not `ERROR` and `EXCEPTION`.
    let is_errno = word.len() > 4
        && word.starts_with('E')
        && is_upper(word)
        && !["ERR", "EXC"].iter().any(|start| word.starts_with(start));
    is_errno.then(|| "E".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_one_kind_are_other_errors_unless_one_is_in_both() {
        let are_others = |ours: &str, theirs: &str| {
            let of = |text| ErrorCodes::of([text].into_iter());
            of(ours).are_others(&of(theirs))
        };
        for (ours, theirs) in [
            ("ERR_PNPM_NO_LOCKFILE  Cannot install", "fails with ERR_PNPM_OUTDATED_LOCKFILE"),
            ("error[E0308]: mismatched types", "E0277 or E0502"),
            ("src/a.ts(1,2): error TS2345: x", "TS2322: y"),
            ("Error: EACCES: permission denied", "`ENOENT` when it starts"),
        ] {
            assert!(are_others(ours, theirs), "{ours}: {theirs}");
        }
        for (ours, theirs) in [
            ("error[E0308]", "E0277 and E0308 have one cause"),
            ("error[E0308]", "npm says E404"),
            ("ERR_PNPM_NO_LOCKFILE", "ERR_MODULE_NOT_FOUND"),
            ("ERROR: address already in use", "EADDRINUSE"),
            ("HTTP 500", "no code"),
        ] {
            assert!(!are_others(ours, theirs), "{ours}: {theirs}");
        }
    }
}
