//! The words that the rules use: negations, opposites, units, and words that limit where a
//! statement holds. Mostly English; German, French, Spanish and Russian where a word decides.

/// Words that deny what follows them.
#[rustfmt::skip]
const DENY_NEXT: &[&str] = &[
    "aren't", "avoid", "avoids", "aucun", "aucune", "can't", "cannot", "couldn't", "didn't",
    "doesn't", "don't", "dont", "hadn't", "hasn't", "haven't", "isn't", "jamais", "jamás", "kein",
    "keine", "keinen", "keinem", "keiner", "mustn't", "n'a", "n'est", "n't", "ne", "needn't",
    "neither", "never", "nicht", "nie", "niemals", "no", "nor", "not", "nunca", "ohne", "pas",
    "sans", "shouldn't", "sin", "stop", "stopped", "unlike", "wasn't", "weren't", "without",
    "won't", "wouldn't", "не", "нельзя", "нет", "никогда", "без",
];

/// Words that deny what precedes them in the clause.
#[rustfmt::skip]
const DENY_PREVIOUS: &[&str] = &[
    "abandoned", "abgeschafft", "abolished", "decommissioned", "defunct", "discontinued", "deleted", "deprecated", "dropped",
    "eliminado", "entfernt", "gone", "obsolete", "obsolète", "obsoleto", "outdated",
    "overflüssig", "removed", "retired", "supprimé", "superseded", "unsupported", "veraltet",
    "удалён", "удален", "устарел",
];

/// Forms of `be` and `have`, before a word that denies their subject.
#[rustfmt::skip]
const AUXILIARIES: &[&str] = &[
    "are", "be", "been", "being", "es", "est", "fue", "get", "gets", "got", "had", "has", "have",
    "is", "ist", "now", "sido", "sind", "son", "sont", "was", "were", "wird", "wurde", "wurden",
    "était", "été", "был", "была", "были",
];

/// Verbs that many sentences contain.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "can", "cannot", "comes", "do", "does", "gives", "goes", "has", "keeps", "lives", "may",
    "means", "moved", "must", "needs", "owns", "reads", "requires", "runs", "serves", "should",
    "stays", "supports", "takes", "uses", "wants", "will", "works", "writes", "darf", "kann",
    "muss", "soll", "debe", "puede", "doit", "peut",
];

/// Words that mean opposite things, in groups with a name and two sides.
#[rustfmt::skip]
const OPPOSITES: &[(&str, &[&str], &[&str])] = &[
    ("always", &["always", "immer", "toujours", "siempre", "всегда"], &["never", "nie", "jamais",
        "nunca", "никогда"]),
    ("order", &["after", "afterwards", "nach", "après", "después", "после"], &["before",
        "beforehand", "vor", "avant", "antes", "до"]),
    ("on", &["enable", "enabled", "enables", "enabling", "on", "activated", "aktiviert", "activé",
        "включён", "включен"], &["disable", "disabled", "disables", "disabling", "off",
        "deactivated", "deaktiviert", "désactivé", "выключен", "отключён"]),
    ("allow", &["allow", "allowed", "allows", "permit", "permitted", "permits", "accept",
        "accepted", "accepts", "erlaubt", "autorisé", "permitido"], &["forbid", "forbidden",
        "forbids", "prohibit", "prohibited", "deny", "denied", "denies", "disallow", "disallowed",
        "disallows", "reject", "rejected", "rejects", "refuse", "refused", "refuses", "banned",
        "verboten", "interdit", "prohibido"]),
    ("need", &["required", "requires", "require", "must", "mandatory", "needed", "needs",
        "necessary", "compulsory", "obligatory", "nötig", "erforderlich", "obligatoire",
        "necesario", "нужно", "обязательно"], &["optional", "unnecessary", "superfluous",
        "needless", "überflüssig", "facultatif", "opcional", "необязательно"]),
    ("true", &["true"], &["false"]),
    ("sync", &["sync", "synchronous", "synchronously"], &["async", "asynchronous",
        "asynchronously"]),
    ("max", &["max", "maximum", "most"], &["min", "minimum", "least"]),
    ("ascending", &["ascending", "asc"], &["descending", "desc"]),
    ("include", &["include", "included", "includes", "including"], &["exclude", "excluded",
        "excludes", "excluding"]),
    ("valid", &["valid"], &["invalid"]),
    ("work", &["works", "succeeds", "succeed", "passes", "pass", "safe"], &["fails", "fail",
        "breaks", "broken", "unsafe", "dangerous"]),
    ("public", &["public", "publicly"], &["private", "privately"]),
    ("auto", &["automatic", "automatically"], &["manual", "manually", "hand"]),
    ("more", &["increase", "increased", "increases", "raise", "raised", "raises", "faster",
        "higher", "larger", "more"], &["decrease", "decreased", "decreases", "lower", "lowered",
        "lowers", "slower", "smaller", "less", "fewer", "reduce", "reduced"]),
    ("open", &["open", "opened", "opens"], &["close", "closed", "closes"]),
    ("mutable", &["mutable"], &["immutable"]),
    ("sensitive", &["sensitive", "case-sensitive"], &["insensitive", "case-insensitive"]),
    ("safe", &["thread-safe", "threadsafe"], &["thread-unsafe"]),
    ("first", &["first"], &["last"]), ("even", &["even"], &["odd"]),
    ("up", &["up", "upwards"], &["down", "downwards"]),
    ("client", &["client-side"], &["server-side"]),
    ("shared", &["shared"], &["separate", "isolated"]),
    ("idem", &["idempotent"], &["non-idempotent"]),
    ("blocking", &["blocking"], &["non-blocking", "nonblocking"]),
];

/// Words that say where, for whom or when a statement holds. If both texts have one and these
/// differ, the texts are about different cases.
#[rustfmt::skip]
const QUALIFIERS: &[(&str, &[&str])] = &[
    ("production", &["prod", "production", "live"]),
    ("staging", &["staging", "preprod", "stage"]), ("development", &["dev", "development"]),
    ("local", &["local", "locally", "laptop", "laptops"]),
    ("ci", &["ci", "pipeline", "runner", "runners"]),
    ("test", &["test", "tests", "testing", "spec", "specs"]),
    ("linux", &["linux", "ubuntu", "debian", "alpine"]),
    ("mac", &["macos", "mac", "osx", "darwin"]), ("windows", &["windows"]),
    ("arm", &["arm", "arm64", "aarch64"]), ("x86", &["x86", "amd64", "x86_64", "x64"]),
    ("android", &["android"]), ("ios", &["ios", "iphone", "ipad"]),
    ("read", &["read", "reads", "reading"]), ("write", &["write", "writes", "writing"]),
    ("upload", &["upload", "uploads"]), ("download", &["download", "downloads"]),
    ("primary", &["primary", "leader", "master"]),
    ("replica", &["replica", "replicas", "follower", "standby"]),
    ("internal", &["internal", "internally"]), ("external", &["external", "externally"]),
    ("inbound", &["inbound", "incoming"]), ("outbound", &["outbound", "outgoing"]),
    ("small", &["small"]), ("large", &["large"]),
    ("debug", &["debug"]), ("release", &["release"]), ("soft", &["soft"]), ("hard", &["hard"]),
    ("connect", &["connect", "connection"]), ("default", &["default", "defaults"]),
    ("largest", &["largest", "maximum", "max", "highest", "longest", "most"]),
    ("smallest", &["smallest", "minimum", "min", "lowest", "shortest", "least"]),
    ("europe", &["eu", "europe"]), ("us", &["us-east-1", "us-west-2", "us"]),
];

/// Further words that say that something is not so, or goes wrong.
#[rustfmt::skip]
const NEGATIVE_WORDS: &[&str] = &[
    "away", "bad", "breaks", "broken", "broke", "crashed", "crashes", "dead", "disable",
    "disabled", "disables", "ended", "ends", "eol", "error", "errors", "except", "exclude",
    "excluded", "excludes", "expired", "fail", "failed", "failing", "fails", "false", "forbid",
    "forbidden", "forbids", "former", "hardly", "ignore", "ignored", "ignores", "ignoring",
    "impossible", "incorrect", "instead", "invalid", "lack", "lacked", "lacking", "lacks",
    "legacy", "lose", "loses", "lost", "miss", "missed", "misses", "missing", "moved", "needless",
    "none", "nothing", "nowhere", "old", "omit", "omits", "omitted", "phased", "prevent",
    "prevented", "preventing", "prevents", "rarely", "rather", "redundant", "refuse", "refused",
    "refuses", "reject", "rejected", "rejects", "replaced", "replaces", "seldom", "shut",
    "silently", "skip", "skipped", "skips", "sunset", "superfluous", "unable", "unless",
    "unnecessary", "unneeded", "unsafe", "unused", "useless", "wrong", "wrongly",
];

/// Words for what was, or what could be.
#[rustfmt::skip]
const PAST_WORDS: &[&str] = &[
    "could", "earlier", "formerly", "had", "might", "once", "originally", "previously", "used",
    "maybe", "perhaps", "probably", "was", "were", "would", "früher", "war", "waren", "wurde", "wurden", "était", "étaient", "era",
    "eran", "был", "была", "было", "были",
];

/// Words for a change, after which `from` names the old state and `to` the new one.
#[rustfmt::skip]
const CHANGE_WORDS: &[&str] = &[
    "bumped", "changed", "changes", "cut", "decreased", "doubled", "down", "dropped", "increased",
    "lowered", "migrated", "migrating", "migration", "move", "moved", "moving", "raised",
    "reduced", "renamed", "shortened", "lengthened", "extended", "switch", "switched",
    "switching", "up", "upgrade", "upgraded", "went", "transferred", "ported", "gewechselt",
    "umgestellt", "geändert", "erhöht", "gesenkt", "passé", "passée", "migré", "cambió",
    "migramos", "pasó", "перешли", "переехал", "изменён",
];

/// Stop words of other languages than English.
#[rustfmt::skip]
const FOREIGN_STOPS: &[&str] = &[
    "aber", "als", "am", "an", "auf", "aus", "bei", "beim", "bis", "das", "dass", "dem", "den",
    "der", "des", "die", "du", "durch", "ein", "eine", "einem", "einen", "einer", "er", "es",
    "für", "hat", "im", "in", "ist", "mit", "nach", "oder", "seit", "sich", "sie", "sind", "so",
    "statt", "um", "und", "vom", "von", "vor", "war", "was", "wenn", "werden", "wie", "wir",
    "wird", "wurde", "zu", "zum", "zur", "über", "au", "aux", "avec", "ce", "cette", "chez",
    "dans", "de", "del", "des", "donc", "du", "elle", "en", "est", "et", "il", "la", "le", "les",
    "leur", "lorsque", "mais", "ou", "par", "plus", "pour", "quand", "que", "qui", "se", "si",
    "son", "sont", "sur", "un", "une", "vers", "à", "été", "al", "como", "con", "cuando", "desde",
    "el", "era", "esta", "está", "este", "ha", "hay", "lo", "los", "las", "más", "para", "pero",
    "por", "porque", "según", "ser", "son", "su", "una", "uno", "y", "ya", "в", "во", "для", "до",
    "его", "же", "за", "и", "из", "или", "их", "к", "как", "когда", "на", "над", "но", "о", "об",
    "от", "по", "при", "с", "со", "то", "у", "что", "это",
];

/// Different spellings of the same thing.
#[rustfmt::skip]
const CANONICAL_SPELLINGS: &[(&str, &str)] = &[
    ("auth", "authentication"), ("config", "configuration"), ("configs", "configuration"),
    ("conf", "configuration"), ("db", "database"), ("dbs", "database"), ("dev", "development"),
    ("dir", "directory"), ("dirs", "directory"), ("docs", "documentation"),
    ("env", "environment"), ("folder", "directory"), ("folders", "directory"),
    ("js", "javascript"), ("k8s", "kubernetes"), ("repo", "repository"), ("repos", "repository"),
    ("pg", "postgres"), ("postgresql", "postgres"), ("prod", "production"),
    ("settings", "configuration"), ("ts", "typescript"), ("param", "parameter"),
    ("params", "parameter"), ("args", "argument"), ("arg", "argument"), ("msg", "message"),
    ("max", "maximum"), ("min", "minimum"), ("upper", "maximum"), ("cap", "limit"),
    ("capped", "limit"), ("expire", "lifetime"), ("expires", "lifetime"), ("expiry", "lifetime"),
    ("ttl", "lifetime"), ("valid", "lifetime"), ("lives", "lifetime"), ("attempts", "retry"),
    ("tries", "retry"), ("attempt", "retry"), ("retried", "retry"), ("retries", "retry"),
    ("retrying", "retry"), ("owner", "own"), ("owned", "own"), ("owns", "own"),
    ("ownership", "own"),
];

/// What a number can measure, as stems.
#[rustfmt::skip]
const ATTRIBUTES: &[&str] = &[
    "age", "attempt", "backlog", "batch", "budget", "buffer", "cache", "capacity", "concurr",
    "connect", "core", "count", "default", "delay", "depth", "durat", "file", "heap", "interv",
    "job", "keep", "keepal", "kept", "latenc", "length", "level", "lifetim", "limit", "line",
    "maximum", "memori", "minimum", "page", "parallel", "pool", "port", "quota", "rate",
    "replica", "request", "retent", "retri", "row", "shard", "size", "thread", "threshold",
    "timeout", "token", "version", "wait", "width", "window", "worker",
];

/// Numbers in words.
#[rustfmt::skip]
const NUMBERS: &[(&str, f64)] = &[
    ("zero", 0.0), ("half", 0.5), ("two", 2.0), ("three", 3.0), ("four", 4.0), ("five", 5.0),
    ("six", 6.0), ("seven", 7.0), ("eight", 8.0), ("nine", 9.0), ("ten", 10.0), ("eleven", 11.0),
    ("twelve", 12.0), ("fifteen", 15.0), ("twenty", 20.0), ("thirty", 30.0), ("forty", 40.0),
    ("fifty", 50.0), ("sixty", 60.0), ("ninety", 90.0), ("hundred", 100.0), ("once", 1.0),
    ("twice", 2.0), ("zwei", 2.0), ("drei", 3.0), ("fünf", 5.0), ("zehn", 10.0), ("deux", 2.0),
    ("trois", 3.0), ("cinq", 5.0), ("dix", 10.0), ("dos", 2.0), ("tres", 3.0), ("cinco", 5.0),
    ("diez", 10.0), ("два", 2.0), ("две", 2.0), ("три", 3.0), ("пять", 5.0), ("десять", 10.0),
];

/// Whether a word denies what follows it.
pub fn denies_next(word: &str) -> bool {
    DENY_NEXT.contains(&word) || word.ends_with("n't")
}

/// Whether a word denies what precedes it.
pub fn denies_previous(word: &str) -> bool {
    DENY_PREVIOUS.contains(&word)
}

/// Whether a word is a form of `be` or `have`.
pub fn is_auxiliary(word: &str) -> bool {
    AUXILIARIES.contains(&word)
}

/// Whether a word says that something is not so, or goes wrong.
pub fn is_negative(word: &str) -> bool {
    ["0", "zero"].contains(&word)
        || NEGATIVE_WORDS.contains(&word)
        || denies_next(word)
        || denies_previous(word)
}

/// Whether a word is about what was, or what could be.
pub fn is_past(word: &str) -> bool {
    PAST_WORDS.contains(&word)
}

/// The group of opposites that a word belongs to, and its side.
pub fn polarity(word: &str) -> Option<(&'static str, bool)> {
    OPPOSITES.iter().find_map(|(group, one, other)| {
        if one.contains(&word) {
            Some((*group, true))
        } else {
            other.contains(&word).then_some((*group, false))
        }
    })
}

/// The case that a word limits a statement to.
pub fn qualifier(word: &str) -> Option<&'static str> {
    let found = QUALIFIERS.iter().find(|(_, words)| words.contains(&word));
    found.map(|(case, _)| *case)
}

/// Whether a word turns others into a sentence.
pub fn is_verb(word: &str) -> bool {
    is_auxiliary(word) || VERBS.contains(&word)
}

/// Whether a word says that something changed.
pub fn is_change(word: &str) -> bool {
    CHANGE_WORDS.contains(&word)
}

/// Whether a word is a stop word of another language than English.
pub fn is_foreign_stop(word: &str) -> bool {
    FOREIGN_STOPS.contains(&word)
}

/// The usual spelling of a word.
pub fn canonical_spelling(word: &str) -> &str {
    let found = CANONICAL_SPELLINGS
        .iter()
        .find(|(spelling, _)| *spelling == word);
    found.map_or(word, |(_, canonical)| canonical)
}

/// Whether a stem names what a number measures.
pub fn is_attribute(stem: &str) -> bool {
    ATTRIBUTES.contains(&stem)
}

/// The value of a number in words.
pub fn number(word: &str) -> Option<f64> {
    let found = NUMBERS.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value)
}
