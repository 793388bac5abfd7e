//! Stems of English words: the Snowball stemmer, with corrections for technical text.
//!
//! Snowball cuts suffixes by rule. So it does not join irregular forms (`won` and `win`, `indices`
//! and `index`), and it gives some unrelated words the same stem (`identical` and `identity`,
//! `contain` and `container`). Two lists correct the common cases. The second list comes from
//! comparing the meanings of words with the same stem in texts about software.

use std::borrow::Cow;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use rustc_hash::FxHashMap;

/// Words that get the stem of another word: irregular forms, and derived words that the stemmer
/// misses.
const IRREGULAR_FORMS: &[(&str, &str)] = &[
    (
        "analysis",
        "analyses analyse analysed analysing analyze analyzed analyzes analyzing analyzer analyzers analyser analysers",
    ),
    ("apply", "applicable applicability"),
    ("become", "became"),
    ("begin", "began begun"),
    ("behavior", "behaviour behaviours"),
    ("bite", "bitten"),
    ("break", "broke broken"),
    ("bring", "brought"),
    ("build", "built"),
    ("buy", "bought"),
    ("catch", "caught"),
    ("child", "children"),
    ("choose", "chose chosen choice choices"),
    ("collide", "collision collisions"),
    ("color", "colour colours coloured"),
    ("convert", "conversion conversions"),
    ("criterion", "criteria"),
    ("decide", "decision decisions"),
    ("define", "definition definitions"),
    ("describe", "description descriptions"),
    ("draw", "drew drawn"),
    ("drive", "drove driven"),
    ("eat", "eaten"),
    ("expand", "expansion expansions"),
    ("expose", "exposure exposures"),
    ("fail", "failure failures"),
    ("fall", "fell fallen"),
    ("fly", "flew flown"),
    ("forget", "forgot forgotten"),
    ("freeze", "froze frozen"),
    ("give", "gave given"),
    ("go", "gone"),
    ("grow", "grew grown growth"),
    ("hang", "hung"),
    ("hide", "hid hidden"),
    ("hold", "held"),
    ("identify", "identification identifications"),
    ("include", "inclusion inclusions"),
    ("index", "indices"),
    ("keep", "kept"),
    ("know", "knew known"),
    ("lose", "lost loss losses"),
    ("man", "men"),
    ("matrix", "matrices"),
    ("meet", "met"),
    ("override", "overrode overridden"),
    ("overwrite", "overwrote overwritten"),
    ("pay", "paid"),
    ("rebuild", "rebuilt"),
    ("rerun", "reran"),
    ("resend", "resent"),
    ("resolve", "resolution resolutions"),
    ("rewrite", "rewrote rewritten"),
    ("ride", "rode ridden"),
    ("run", "ran"),
    ("schema", "schemata"),
    ("seek", "sought"),
    ("sell", "sold"),
    ("send", "sent"),
    ("shake", "shook shaken"),
    ("shoot", "shot"),
    ("shrink", "shrank shrunk shrunken"),
    ("sleep", "slept"),
    ("speak", "spoke spoken"),
    ("specify", "specification specifications"),
    ("spend", "spent"),
    ("steal", "stole stolen"),
    ("stick", "stuck"),
    ("submit", "submission submissions"),
    ("subscribe", "subscription subscriptions"),
    ("sweep", "swept"),
    ("take", "took taken"),
    ("teach", "taught"),
    ("tear", "tore torn"),
    ("tell", "told"),
    ("think", "thought"),
    ("throw", "threw thrown"),
    ("understand", "understood"),
    ("undo", "undid undone"),
    ("unfreeze", "unfroze unfrozen"),
    ("vertex", "vertices"),
    ("wake", "woke woken"),
    ("win", "won"),
    ("withdraw", "withdrew withdrawn"),
    ("write", "wrote written"),
];

/// Words that the stemmer confuses with others: each line has its own stem, its first word.
const UNRELATED_FORMS: &[&str] = &[
    "animal animals",
    "authority authorities",
    "authorize authorized authorizes authorizing authorization authorizations authorizer authorizers \
     authorise authorised authorises authorising authorisation authorisations",
    "business businesses",
    "consistent consistently consistency",
    "container containers containerized",
    "contention",
    "conversation conversations conversational",
    "customer customers",
    "designate designated designates designation",
    "digital digitally",
    "direction directions directional",
    "directive directives",
    "discretion",
    "edition editions",
    "effective effectively effectiveness",
    "engineer engineers engineering engineered",
    "exceptional exceptionally",
    "executive executives",
    "experiment experiments experimental experimentally",
    "expression expressions",
    "extensive extensively",
    "formation",
    "identical identically",
    "important importantly importance",
    "informal informally",
    "integral",
    "integrity",
    "internal internally internals",
    "locale locales",
    "mechanics mechanical mechanically",
    "numerous",
    "objection objections",
    "objective objectives",
    "operator operators",
    "organize organized organizes organizing organizer organizers organization organizations \
     organizational",
    "original originally originals",
    "paste pasted pastes pasting",
    "positive positively positives",
    "practical practically",
    "principle principles",
    "probability probabilities",
    "production productions",
    "productive productivity productively",
    "provider providers",
    "relative relatively",
    "reservation reservations",
    "responsible responsibly responsibility responsibilities",
    "responsive responsiveness",
    "several",
    "successive successively succession",
    "terminal terminals",
    "transformer transformers",
    "transition transitions transitional transitioned transitioning",
    "universal universally",
    "university universities",
    "utilize utilized utilizes utilizing utilization",
];

thread_local! {
    static SNOWBALL: Stemmer = Stemmer::create(Algorithm::English);
}

fn snowball(word: &str) -> String {
    SNOWBALL.with(|stemmer| stemmer.stem(word).into_owned())
}

static CORRECTIONS: LazyLock<FxHashMap<&'static str, Box<str>>> = LazyLock::new(|| {
    let like = IRREGULAR_FORMS.iter().flat_map(|(base, words)| {
        let stem = snowball(base);
        words
            .split(' ')
            .map(move |word| (word, stem.clone().into_boxed_str()))
    });
    let apart = UNRELATED_FORMS.iter().flat_map(|line| {
        let first = line.split(' ').next().unwrap_or_default();
        line.split(' ').map(move |word| (word, first.into()))
    });
    like.chain(apart).collect()
});

/// The stem of a normalized word. Words with digits or letters of other alphabets are unchanged.
pub fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    match CORRECTIONS.get(word) {
        Some(stem) => Cow::Borrowed(stem),
        None => Cow::Owned(snowball(word)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn irregular_forms_share_a_stem_and_unrelated_words_do_not() {
        for (a, b) in [
            ("won", "wins"),
            ("indices", "indexes"),
            ("wrote", "writing"),
            ("failure", "failed"),
            ("identity", "identities"),
            ("identifies", "identify"),
            ("containers", "container"),
        ] {
            assert_eq!(stem(a), stem(b), "{a} {b}");
        }
        for (a, b) in [
            ("identical", "identity"),
            ("identical", "identify"),
            ("important", "import"),
            ("contains", "container"),
            ("integration", "integrity"),
            ("severe", "several"),
            ("author", "authorization"),
        ] {
            assert_ne!(stem(a), stem(b), "{a} {b}");
        }
        assert_eq!(stem("Größe"), "Größe");
    }

    #[test]
    fn every_stem_correction_is_needed_and_listed_once() {
        let words = IRREGULAR_FORMS
            .iter()
            .flat_map(|(_, words)| words.split(' '));
        let words = words.chain(UNRELATED_FORMS.iter().flat_map(|line| line.split(' ')));
        let mut seen = BTreeSet::new();
        for word in words {
            assert!(seen.insert(word), "{word} is there twice");
        }
        for (base, words) in IRREGULAR_FORMS {
            assert!(!seen.contains(base), "{base} has a stem of its own");
            for word in words.split(' ') {
                // Code that finds words in a text compares their first letters first.
                assert_eq!(word.as_bytes()[0], snowball(base).as_bytes()[0]);
                assert_ne!(snowball(word), snowball(base), "{word} needs no correction");
            }
        }
        let stems: BTreeSet<&str> = UNRELATED_FORMS
            .iter()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(stems.len(), UNRELATED_FORMS.len());
        for stem in &stems {
            assert_ne!(snowball(stem), *stem, "others still have this stem");
        }
        for base in IRREGULAR_FORMS.iter().map(|(base, _)| snowball(base)) {
            assert!(!stems.contains(base.as_str()), "{base} means two families");
        }
    }
}
