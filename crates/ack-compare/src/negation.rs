//! Negation words of the languages in which people write notes.

/// Negation words in English, German, Dutch, Swedish, Danish, Norwegian,
/// French, Spanish, Portuguese, Italian, Polish, Czech, Russian, Ukrainian, Turkish and Finnish.
#[rustfmt::skip]
const NEGATIONS: &[&str] = &[
    "cannot", "neither", "never", "no", "nobody", "none", "nor", "not", "nothing", "without",
    "kein", "keine", "keinem", "keinen", "keiner", "keines", "nicht", "nichts", "nie", "niemals",
    "ohne", "geen", "niet", "nooit", "zonder", "aldrig", "ikke", "ingen", "inte", "uden", "utan",
    "uten", "aucun", "aucune", "jamais", "ne", "non", "pas", "sans", "jamás", "ningún", "ninguna",
    "nunca", "sin", "nenhum", "nenhuma", "não", "sem", "nessun", "nessuna", "senza", "bez", "nigdy",
    "żaden", "nejsou", "není", "nikdy", "без", "не", "нельзя", "нет", "никогда", "немає", "ні",
    "ніколи", "değil", "ei", "eivät", "ilman", "älä",
];

/// Words that say that their subject is no more.
#[rustfmt::skip]
const GONE: &[&str] = &[
    "abolished", "deprecated", "discontinued", "dropped", "eliminated", "gone", "obsolete",
    "removed", "retired", "reverted",
];
/// What precedes one of them.
const AUXILIARIES: &[&str] = &["are", "been", "got", "is", "was", "were"];

/// Whether a word in lower case denies something: `not`, `isn't`, `n'est`.
pub fn denies(word: &str) -> bool {
    let elided = word.strip_prefix("n'").is_some_and(|rest| !rest.is_empty());
    elided || word.ends_with("n't") || NEGATIONS.contains(&word)
}

pub fn says_gone(before: &str, word: &str) -> bool {
    GONE.contains(&word) && AUXILIARIES.contains(&before)
}
