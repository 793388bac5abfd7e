//! Negation words of the languages in which people write notes.

/// English, German, Dutch, Swedish, Danish, Norwegian, French, Spanish, Portuguese, Italian, Polish,
/// Czech, Russian, Ukrainian, Turkish, Finnish, Vietnamese and Korean.
#[rustfmt::skip]
const NEGATIONS: &[&str] = &[
    "cannot", "neither", "never", "no", "nobody", "none", "nor", "not", "nothing", "without",
    "kein", "keine", "keinem", "keinen", "keiner", "keines", "nicht", "nichts", "nie", "niemals",
    "ohne", "geen", "niet", "nooit", "zonder", "aldrig", "ikke", "ingen", "inte", "uden", "utan",
    "uten", "aucun", "aucune", "jamais", "ne", "non", "pas", "sans", "jamás", "ningún", "ninguna",
    "nunca", "sin", "nenhum", "nenhuma", "não", "sem", "nessun", "nessuna", "senza", "bez", "nigdy",
    "żaden", "nejsou", "není", "nikdy", "без", "не", "нельзя", "нет", "никогда", "немає", "ні",
    "ніколи", "değil", "ei", "eivät", "ilman", "älä", "chưa", "chẳng", "không", "đừng", "못", "안",
];

/// How Korean words begin that deny: `않는다`, `없다`, `아니다`, `마세요`, `금지`.
const KOREAN_NEGATIONS: &[&str] =
    &["않", "없", "아니", "못하", "말아", "마세요", "마십시오", "금지"];
/// Begins like one of them: to remove.
const KOREAN_REMOVAL: &str = "없애";
/// Endings of Korean verbs and particles, the longest first.
#[rustfmt::skip]
const KOREAN_ENDINGS: &[&str] = &[
    "하십시오", "했습니다", "하였습니다", "합니다", "됩니다", "습니다", "하세요", "되어", "하지", "한다", "했다", "하다", "해야",
    "하는", "하고", "하면", "되지", "된다", "되다", "되는", "됐다", "에서", "으로", "한", "지", "다", "을", "를",
    "이", "가", "은", "는", "에", "의", "로", "와", "과", "도", "만",
];

/// What denies in Chinese and Japanese, the longest first. Not what is part of another word.
#[rustfmt::skip]
const UNSPACED_NEGATIONS: &[&str] = &[
    "ませんでした", "なかった", "ないで", "ません", "不需要", "不可以", "ない", "不要", "不能", "不可", "不得",
    "不会", "不會", "不应", "不應", "不再", "没有", "沒有", "禁止", "不", "没", "沒", "勿",
];
/// Words that begin or end like one of them.
const NO_NEGATIONS: &[&str] =
    &["少ない", "不同", "不过", "不過", "不仅", "不僅", "不断", "不斷", "不少"];

/// The parts of a text without spaces, each with whether it denies something.
pub fn parts(text: &str) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let word =
            |words: &[&'static str]| words.iter().find(|word| rest.starts_with(**word)).copied();
        let length = match (word(NO_NEGATIONS), word(UNSPACED_NEGATIONS)) {
            (None, Some(negation)) => {
                parts.extend(text.get(start..at).map(|part| (part, false)));
                parts.push((negation, true));
                start = at + negation.len();
                negation.len()
            }
            (Some(other), _) => other.len(),
            (None, None) => rest.chars().next().map_or(1, char::len_utf8),
        };
        at += length;
    }
    parts.extend(text.get(start..).map(|part| (part, false)));
    parts
}

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
    let is_korean = || {
        let mut beginnings = KOREAN_NEGATIONS.iter();
        beginnings.any(|beginning| word.starts_with(beginning)) && !word.starts_with(KOREAN_REMOVAL)
    };
    is_korean() || elided || word.ends_with("n't") || NEGATIONS.contains(&word)
}

/// A Korean word without its ending, so that `사용하지` is `사용한다`; any other word as it is.
pub fn without_ending(word: &str) -> &str {
    let mut stems = KOREAN_ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending));
    stems.find(|stem| !stem.is_empty()).unwrap_or(word)
}

pub fn says_gone(before: &str, word: &str) -> bool {
    GONE.contains(&word) && AUXILIARIES.contains(&before)
}
