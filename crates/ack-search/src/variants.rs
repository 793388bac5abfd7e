//! British spellings: each gets the stem of the American one.
//!
//! The pairs are from the list "American and British English spelling differences" (Wikipedia) and
//! the Variant Conversion Info of SCOWL (VarCon), limited to words that texts about software use.

use std::borrow::Cow;

/// Beginnings of words, as British and as American English write them. No other word begins like a
/// British one. Sorted.
const BEGINNINGS: &[(&str, &str)] = &[
    ("acknowledgement", "acknowledgment"),
    ("aeroplane", "airplane"),
    ("ageing", "aging"),
    ("aluminium", "aluminum"),
    ("analogue", "analog"),
    ("armour", "armor"),
    ("artefact", "artifact"),
    ("behaviour", "behavior"),
    ("cancell", "cancel"),
    ("catalogue", "catalog"),
    ("cataloguing", "cataloging"),
    ("centimetre", "centimeter"),
    ("centre", "center"),
    ("centring", "centering"),
    ("channell", "channel"),
    ("colour", "color"),
    ("counsell", "counsel"),
    ("defence", "defense"),
    ("dialled", "dialed"),
    ("dialling", "dialing"),
    ("dialogue", "dialog"),
    ("discolour", "discolor"),
    ("endeavour", "endeavor"),
    ("enrolment", "enrollment"),
    ("favour", "favor"),
    ("fibre", "fiber"),
    ("flavour", "flavor"),
    ("fuell", "fuel"),
    ("fulfilment", "fulfillment"),
    ("fulfils", "fulfills"),
    ("funnell", "funnel"),
    ("grey", "gray"),
    ("harbour", "harbor"),
    ("honour", "honor"),
    ("humour", "humor"),
    ("instalment", "installment"),
    ("jewell", "jewel"),
    ("judgement", "judgment"),
    ("kilometre", "kilometer"),
    ("labelled", "labeled"),
    ("labelling", "labeling"),
    ("labour", "labor"),
    ("levelled", "leveled"),
    ("levelling", "leveling"),
    ("licence", "license"),
    ("litre", "liter"),
    ("manoeuvr", "maneuver"),
    ("marshalled", "marshaled"),
    ("marshalling", "marshaling"),
    ("metre", "meter"),
    ("millimetre", "millimeter"),
    ("misbehaviour", "misbehavior"),
    ("modelled", "modeled"),
    ("modelling", "modeling"),
    ("mould", "mold"),
    ("neighbour", "neighbor"),
    ("offence", "offense"),
    ("panelled", "paneled"),
    ("parcelled", "parceled"),
    ("plough", "plow"),
    ("practis", "practic"),
    ("pretence", "pretense"),
    ("programme", "program"),
    ("recolour", "recolor"),
    ("relabelled", "relabeled"),
    ("relabelling", "relabeling"),
    ("remodelled", "remodeled"),
    ("remodelling", "remodeling"),
    ("rigour", "rigor"),
    ("rumour", "rumor"),
    ("sceptic", "skeptic"),
    ("signalled", "signaled"),
    ("signalling", "signaling"),
    ("spectre", "specter"),
    ("spiralled", "spiraled"),
    ("spiralling", "spiraling"),
    ("sulphur", "sulfur"),
    ("theatre", "theater"),
    ("totalled", "totaled"),
    ("totalling", "totaling"),
    ("travelled", "traveled"),
    ("traveller", "traveler"),
    ("travelling", "traveling"),
    ("tunnelled", "tunneled"),
    ("tunnelling", "tunneling"),
    ("tyre", "tire"),
    ("uncancell", "uncancel"),
    ("unlabelled", "unlabeled"),
    ("unmarshalled", "unmarshaled"),
    ("unmarshalling", "unmarshaling"),
    ("vapour", "vapor"),
];

/// Words that begin like a British one but are spelt alike everywhere. Sorted.
const NOT_BRITISH: &[&str] = &[
    "cancellation",
    "cancellations",
    "greyhound",
    "programmed",
    "programmer",
    "programmers",
];

/// How words end before `-ise` where American English has `-ize`.
const BEFORE_IZE: &[&str] = &[
    "al", "an", "ar", "ard", "at", "el", "en", "er", "ern", "et", "ic", "il", "im", "in", "it",
    "iv", "ll", "log", "memo", "nt", "ogn", "ol", "om", "on", "or", "phas", "thes", "tr", "um",
    "ym",
];
/// Words that end like these before `-ise` and are spelt with `s` everywhere.
const ALWAYS_S: &[&str] = &["cer", "prom", "treat", "val"];

/// The endings of verbs in `-ise`, and of the words that are made from them.
const ISE_ENDINGS: &[&str] = &[
    "isations", "isation", "isable", "isers", "ising", "ised", "iser", "ises", "ise",
];
/// A word in American spelling.
pub fn american(word: &str) -> Cow<'_, str> {
    if let Some(word) = american_beginning(word) {
        return Cow::Owned(word);
    }
    let mut endings = ISE_ENDINGS.iter();
    match endings.find_map(|ending| word.strip_suffix(ending)) {
        Some(before) if is_before_ize(before) => {
            let ending = word.get(before.len() + "is".len()..).unwrap_or_default();
            Cow::Owned(format!("{before}iz{ending}"))
        }
        _ => Cow::Borrowed(word),
    }
}

fn is_before_ize(before: &str) -> bool {
    let ends_like = |list: &[&str]| list.iter().any(|ending| before.ends_with(ending));
    before.len() > 2 && ends_like(BEFORE_IZE) && !ends_like(ALWAYS_S)
}

fn american_beginning(word: &str) -> Option<String> {
    let after = BEGINNINGS.partition_point(|(british, _)| *british <= word);
    // A longer entry that the word begins with is nearer than a shorter one.
    let near = BEGINNINGS.get(after.saturating_sub(3)..after)?;
    let (british, american) = near
        .iter()
        .rfind(|(british, _)| word.starts_with(british))?;
    let rest = word.get(british.len()..)?;
    (!NOT_BRITISH.contains(&word)).then(|| format!("{american}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_keep_the_first_letter() {
        assert!(BEGINNINGS.is_sorted());
        assert!(NOT_BRITISH.is_sorted());
        for (british, american) in BEGINNINGS {
            assert_eq!(british.as_bytes()[0], american.as_bytes()[0]);
            assert_ne!(super::american(american).as_ref(), *british);
        }
    }

    #[test]
    fn british_words_are_written_as_american_ones() {
        for (british, expected) in [
            ("behaviours", "behaviors"),
            ("cancelled", "canceled"),
            ("cancellation", "cancellation"),
            ("programmer", "programmer"),
            ("organisation", "organization"),
            ("serialised", "serialized"),
            ("initialiser", "initializer"),
            ("greyscale", "grayscale"),
            ("otherwise", "otherwise"),
            ("bitwise", "bitwise"),
            ("precise", "precise"),
            ("raised", "raised"),
            ("noise", "noise"),
            ("rises", "rises"),
            ("promised", "promised"),
            ("memoise", "memoize"),
            ("optimisation", "optimization"),
            ("recognisable", "recognizable"),
        ] {
            assert_eq!(american(british), expected);
        }
    }
}
