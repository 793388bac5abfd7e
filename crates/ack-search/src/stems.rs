//! Stems of English words: the Snowball stemmer, with corrections for technical text.
//!
//! Snowball cuts suffixes by rule. So it does not join irregular forms (`won` and `win`, `indices`
//! and `index`), and it gives some unrelated words the same stem (`identical` and `identity`,
//! `contain` and `container`). Two lists correct the common cases. The forms of the first are from
//! the lists of irregular verbs and plurals in Wiktionary, without those that are words of their own
//! (`found`, `left`, `led`, `got`). The second list comes from comparing the meanings of words with
//! the same stem in texts about software. British spellings get the stems of the American ones.
//!
//! Words in Cyrillic letters get the stems of Snowball's Russian stemmer.

use std::borrow::Cow;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use rustc_hash::FxHashMap;

use super::variants::american;

/// Words that get the stem of another word: irregular forms, and derived words that the stemmer
/// misses.
const IRREGULAR_FORMS: &[(&str, &str)] = &[
    ("addendum", "addenda"),
    ("alumnus", "alumni"),
    (
        "analysis",
        "analyses analyse analysed analysing analyze analyzed analyzes analyzing analyzer analyzers analyser analysers",
    ),
    ("appendix", "appendices"),
    ("apply", "applicable applicability"),
    ("arise", "arose arisen"),
    ("automaton", "automata"),
    ("axis", "axes"),
    ("bacterium", "bacteria"),
    ("become", "became"),
    ("begin", "began begun"),
    ("bend", "bent"),
    ("bite", "bitten"),
    ("bleed", "bled"),
    ("blow", "blew blown"),
    ("break", "broke broken"),
    ("breed", "bred"),
    ("bring", "brought"),
    ("build", "built"),
    ("burn", "burnt"),
    ("buy", "bought"),
    ("cactus", "cacti"),
    ("calf", "calves"),
    ("catch", "caught"),
    ("child", "children"),
    ("choose", "chose chosen choice choices"),
    ("cling", "clung"),
    ("codex", "codices"),
    ("collide", "collision collisions"),
    ("come", "came"),
    ("convert", "conversion conversions"),
    ("corpus", "corpora"),
    ("cortex", "cortices"),
    ("creep", "crept"),
    ("crisis", "crises"),
    ("criterion", "criteria"),
    ("deal", "dealt"),
    ("decide", "decision decisions"),
    ("define", "definition definitions"),
    ("describe", "description descriptions"),
    ("diagnosis", "diagnoses"),
    ("dig", "dug"),
    ("draw", "drew drawn"),
    ("dream", "dreamt"),
    ("drink", "drank drunk"),
    ("drive", "drove driven"),
    ("eat", "eaten"),
    ("ellipsis", "ellipses"),
    ("emphasis", "emphases"),
    ("erratum", "errata"),
    ("expand", "expansion expansions"),
    ("expose", "exposure exposures"),
    ("fail", "failure failures"),
    ("fall", "fell fallen"),
    ("feed", "fed"),
    ("feel", "felt"),
    ("fight", "fought"),
    ("flee", "fled"),
    ("fly", "flew flown"),
    ("focus", "foci"),
    ("foot", "feet"),
    ("forbid", "forbade forbidden"),
    ("foresee", "foresaw foreseen"),
    ("forget", "forgot forgotten"),
    ("forgive", "forgave forgiven"),
    ("freeze", "froze frozen"),
    ("fungus", "fungi"),
    ("genus", "genera"),
    ("give", "gave given"),
    ("go", "gone"),
    ("goose", "geese"),
    ("grow", "grew grown growth"),
    ("half", "halves"),
    ("hang", "hung"),
    ("hear", "heard"),
    ("helix", "helices"),
    ("hide", "hid hidden"),
    ("hold", "held"),
    ("hypothesis", "hypotheses"),
    ("identify", "identification identifications"),
    ("include", "inclusion inclusions"),
    ("index", "indices"),
    ("keep", "kept"),
    ("kneel", "knelt"),
    ("knife", "knives"),
    ("know", "knew known"),
    ("lay", "laid"),
    ("leap", "leapt"),
    ("learn", "learnt"),
    ("lemma", "lemmata"),
    ("lend", "lent"),
    ("light", "lit"),
    ("loaf", "loaves"),
    ("locus", "loci"),
    ("lose", "lost loss losses"),
    ("make", "made"),
    ("man", "men"),
    ("matrix", "matrices"),
    ("maximum", "maxima"),
    ("mean", "meant"),
    ("meet", "met"),
    ("memorandum", "memoranda"),
    ("minimum", "minima"),
    ("mislead", "misled"),
    ("mistake", "mistook mistaken"),
    ("misunderstand", "misunderstood"),
    ("modulus", "moduli"),
    ("momentum", "momenta"),
    ("mouse", "mice"),
    ("mow", "mown"),
    ("nucleus", "nuclei"),
    ("oasis", "oases"),
    ("octopus", "octopi"),
    ("optimum", "optima"),
    ("outgrow", "outgrew outgrown"),
    ("overcome", "overcame"),
    ("override", "overrode overridden"),
    ("overrun", "overran"),
    ("oversee", "oversaw overseen"),
    ("overtake", "overtook overtaken"),
    ("overwrite", "overwrote overwritten"),
    ("parenthesis", "parentheses"),
    ("pay", "paid"),
    ("phenomenon", "phenomena"),
    ("polyhedron", "polyhedra"),
    ("prognosis", "prognoses"),
    ("quantum", "quanta"),
    ("queue", "queuing"),
    ("radius", "radii"),
    ("rebuild", "rebuilt"),
    ("redo", "redid redone"),
    ("redraw", "redrew redrawn"),
    ("rerun", "reran"),
    ("resend", "resent"),
    ("resolve", "resolution resolutions"),
    ("retake", "retook retaken"),
    ("retell", "retold"),
    ("rethink", "rethought"),
    ("rethrow", "rethrew rethrown"),
    ("rewind", "rewound"),
    ("rewrite", "rewrote rewritten"),
    ("ride", "rode ridden"),
    ("rise", "risen"),
    ("run", "ran"),
    ("say", "said"),
    ("schema", "schemata"),
    ("see", "seen"),
    ("seek", "sought"),
    ("sell", "sold"),
    ("send", "sent"),
    ("sew", "sewn"),
    ("shake", "shook shaken"),
    ("shear", "shorn"),
    ("shelf", "shelves"),
    ("shine", "shone"),
    ("shoot", "shot"),
    ("show", "shown"),
    ("shrink", "shrank shrunk shrunken"),
    ("sing", "sang sung"),
    ("sink", "sank sunk"),
    ("sit", "sat"),
    ("sleep", "slept"),
    ("slide", "slid"),
    ("sling", "slung"),
    ("speak", "spoke spoken"),
    ("specify", "specification specifications"),
    ("spectrum", "spectra"),
    ("spell", "spelt"),
    ("spend", "spent"),
    ("spin", "spun"),
    ("stand", "stood"),
    ("steal", "stole stolen"),
    ("stick", "stuck"),
    ("stigma", "stigmata"),
    ("stimulus", "stimuli"),
    ("sting", "stung"),
    ("stratum", "strata"),
    ("strike", "struck stricken"),
    ("string", "strung"),
    ("strive", "strove striven"),
    ("submit", "submission submissions"),
    ("subscribe", "subscription subscriptions"),
    ("swear", "swore sworn"),
    ("sweep", "swept"),
    ("swell", "swollen"),
    ("swim", "swam swum"),
    ("swing", "swung"),
    ("syllabus", "syllabi"),
    ("synopsis", "synopses"),
    ("synthesis", "syntheses"),
    ("take", "took taken"),
    ("teach", "taught"),
    ("tear", "tore torn"),
    ("tell", "told"),
    ("thesis", "theses"),
    ("thief", "thieves"),
    ("think", "thought"),
    ("throw", "threw thrown"),
    ("tooth", "teeth"),
    ("torus", "tori"),
    ("unbind", "unbound"),
    ("undergo", "underwent undergone"),
    ("understand", "understood"),
    ("undo", "undid undone"),
    ("unfreeze", "unfroze unfrozen"),
    ("unwind", "unwound"),
    ("uphold", "upheld"),
    ("vertex", "vertices"),
    ("vortex", "vortices"),
    ("wake", "woke woken"),
    ("weave", "wove woven"),
    ("weep", "wept"),
    ("win", "won"),
    ("withdraw", "withdrew withdrawn"),
    ("withhold", "withheld"),
    ("wolf", "wolves"),
    ("woman", "women"),
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
    "liveness",
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
    "people peoples person persons",
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
    static RUSSIAN: Stemmer = Stemmer::create(Algorithm::Russian);
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
    if word.len() < 3 {
        return Cow::Borrowed(word);
    }
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return russian_stem(word).map_or(Cow::Borrowed(word), Cow::Owned);
    }
    if let Some(stem) = CORRECTIONS.get(word) {
        return Cow::Borrowed(stem);
    }
    let american = american(word);
    Cow::Owned(match CORRECTIONS.get(american.as_ref()) {
        Some(stem) => stem.to_string(),
        None => snowball(&american),
    })
}

/// The stem of a word in the letters of Russian.
fn russian_stem(word: &str) -> Option<String> {
    let is_russian = word.chars().all(|c| matches!(c, 'а'..='я'));
    is_russian.then(|| RUSSIAN.with(|stemmer| stemmer.stem(word).into_owned()))
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
        let mut unneeded = Vec::new();
        for (base, words) in IRREGULAR_FORMS {
            assert!(!seen.contains(base), "{base} has a stem of its own");
            for word in words.split(' ') {
                // Code that finds words in a text compares their first letters first.
                assert_eq!(word.as_bytes()[0], snowball(base).as_bytes()[0]);
                if snowball(&american(word)) == snowball(base) {
                    unneeded.push(word);
                }
            }
        }
        assert!(unneeded.is_empty(), "need no correction: {unneeded:?}");
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
