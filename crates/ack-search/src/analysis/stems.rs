//! Stems of words: the Snowball stemmers for English and Russian.
//!
//! Snowball cuts endings by rule, so it misses irregular forms and gives some unrelated words the
//! same stem. `FAMILIES` has the ones that matter in notes about software. Longer lists of
//! irregular forms and of British spellings changed no set, see `docs/retrieval.md`.

use std::borrow::Cow;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use rustc_hash::FxHashMap;

/// Words that share a stem, a line each: the first word, which begins like the others.
const FAMILIES: &str = "\
    author authors authored authoring
    authorize authorized authorizes authorizing authorization authorizations authorizer
    break broke broken
    build built
    business businesses
    child children
    choos chose chosen
    container containers containerized
    fail failure failures
    identical identically
    important importantly importance
    index indices
    integrity
    internal internally internals
    keep kept
    liveness
    matrix matrices
    operator operators
    organize organized organizes organizing organization organizations organizational
    overrid overrode overridden
    people person persons
    production productions
    provider providers
    run ran
    send sent
    several
    terminal terminals
    vertex vertices
    win won
    write wrote written";

static STEMS: LazyLock<FxHashMap<&str, &str>> = LazyLock::new(|| {
    let families = FAMILIES.lines().filter_map(|family| {
        let stem = family.split_whitespace().next()?;
        Some(family.split_whitespace().map(move |word| (word, stem)))
    });
    families.flatten().collect()
});

thread_local! {
    static ENGLISH: Stemmer = Stemmer::create(Algorithm::English);
    static RUSSIAN: Stemmer = Stemmer::create(Algorithm::Russian);
}

/// The stem of a normalized word. Words with digits or letters of other alphabets are unchanged.
pub fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 3 {
        return Cow::Borrowed(word);
    }
    let stemmer = if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        if let Some(stem) = STEMS.get(word) {
            return Cow::Borrowed(stem);
        }
        &ENGLISH
    } else if word.chars().all(|c| matches!(c, 'а'..='я')) {
        &RUSSIAN
    } else {
        return Cow::Borrowed(word);
    };
    Cow::Owned(stemmer.with(|stemmer| stemmer.stem(word).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_family_is_there_once_and_begins_like_its_stem() {
        let words: Vec<&str> = FAMILIES.split_whitespace().collect();
        assert_eq!(words.len(), STEMS.len());
        // Code that finds words in a text compares their first letters first.
        assert!(STEMS.iter().all(|(word, stem)| word[..1] == stem[..1]));
    }
}
