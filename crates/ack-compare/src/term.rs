//! Splits a sentence into terms: words by their stems, names as written, numbers with their units.

use std::hash::{Hash, Hasher};

use ack_search::analysis;
use ack_search::encoder::Encoder;
use rustc_hash::FxHasher;

use crate::lexicon;
use crate::quantity::{self, Quantity, Unit};

/// Weight of a name: a path, an identifier, a flag.
const NAME_WEIGHT: f32 = 1.5;
/// Weight of a word that the encoder does not know: it is rare.
pub(crate) const RARE_WEIGHT: f32 = 1.2;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A path or an address.
    Path,
    /// An option of a command.
    Flag,
    /// A name in capitals, such as an environment variable.
    Constant,
    /// Any other identifier, or a word in a code span.
    Identifier,
    /// A capitalized word inside a sentence.
    Proper,
}

/// What a term is.
#[derive(Debug, Clone, PartialEq)]
pub enum TermKind {
    /// A stop word.
    Stop,
    /// A word.
    Word,
    /// A name.
    Name(NameKind),
    /// A number.
    Number(Quantity),
    /// A date or a year.
    Date,
}

/// A term of a sentence.
#[derive(Debug, Clone)]
pub struct Term {
    /// The word in lower case.
    pub word: String,
    /// The hash by which terms are compared: of the stem, or of the name.
    pub key: u64,
    /// The kind of term.
    pub kind: TermKind,
    /// How much it contributes to the subject.
    pub weight: f32,
    /// The clause that contains it.
    pub clause: u16,
    /// Whether the sentence denies it.
    pub denied: bool,
    /// Whether the sentence says that something else replaced it.
    pub replaced: bool,
    /// Whether the sentence names its replacement.
    pub has_replacement: bool,
    /// The name that it is assigned to: `timeout` in `timeout=30`.
    pub assigned_to: Option<u64>,
    /// The group of opposites that it belongs to, and its side.
    pub polarity: Option<(&'static str, bool)>,
}

impl Term {
    /// Whether it contributes to the subject. Numbers and opposites do not.
    pub fn is_content(&self) -> bool {
        matches!(self.kind, TermKind::Word | TermKind::Name(_)) && self.polarity.is_none()
    }

    /// The number, if it is one.
    pub fn quantity(&self) -> Option<&Quantity> {
        match &self.kind {
            TermKind::Number(quantity) => Some(quantity),
            _ => None,
        }
    }

    /// The hash that identifies the term in a whole text. Numbers are identified by their value.
    pub fn identity(&self) -> u64 {
        match &self.kind {
            TermKind::Number(quantity) => hash(&quantity.canonical()),
            // `id 4242` and `merchant 4242`
            TermKind::Name(NameKind::Identifier) => match self.word.parse() {
                Ok(number) => hash(&Quantity::plain(number).canonical()),
                Err(_) => self.key,
            },
            _ => self.key,
        }
    }

    /// Whether it names something.
    pub fn name(&self) -> Option<NameKind> {
        match self.kind {
            TermKind::Name(kind) => Some(kind),
            _ => None,
        }
    }
}

/// The hash of a text.
pub fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The terms of a sentence, in order.
pub fn terms(sentence: &str) -> Vec<Term> {
    let mut reader = TermReader::default();
    let mut in_code = false;
    for piece in sentence.split_whitespace() {
        let (before, address, after) = address(piece);
        reader.piece(before, &mut in_code);
        // A link target is not content; a written-out address is.
        if !before.ends_with("](") && !before.ends_with('"') && !address.is_empty() {
            reader.push(address, TermKind::Name(NameKind::Path));
        }
        reader.piece(after, &mut in_code);
    }
    reader.terms
}

/// The URL in a piece of text, and what precedes and follows it.
fn address(piece: &str) -> (&str, &str, &str) {
    let scheme = ["https://", "http://"]
        .iter()
        .filter_map(|scheme| piece.find(scheme))
        .min();
    let (before, rest) = piece
        .split_at_checked(scheme.unwrap_or(piece.len()))
        .unwrap_or((piece, ""));
    let end = rest
        .find([')', '>', '"', '`', ']', ',', ';'])
        .unwrap_or(rest.len());
    let (address, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
    (before, address.trim_end_matches(['.', ':']), after)
}

#[derive(Default)]
struct TermReader {
    terms: Vec<Term>,
    clause: u16,
    /// The term before an equals sign.
    assigned_to: Option<u64>,
}

impl TermReader {
    /// Parses the text between two spaces.
    fn piece(&mut self, piece: &str, in_code: &mut bool) {
        let separates = |c: char| "()[]{}<>\"“”„«»,;|`=…!?".contains(c);
        let mut start = 0;
        for (at, c) in piece.char_indices().filter(|(_, c)| separates(*c)) {
            let chunk = piece.get(start..at).unwrap_or_default();
            let next = piece.get(at + c.len_utf8()..).unwrap_or_default();
            // A comma inside a number belongs to it.
            let digits = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
            if c == ',' && chunk.ends_with(|c: char| c.is_ascii_digit()) && digits(next) {
                continue;
            }
            self.chunk(chunk, *in_code);
            start = at + c.len_utf8();
            match c {
                '`' => *in_code = !*in_code,
                '=' => self.assigned_to = self.terms.last().map(|term| term.key),
                '(' | ')' | ',' | ';' => self.clause += 1,
                _ => {}
            }
        }
        let last = piece.get(start..).unwrap_or_default();
        self.chunk(last, *in_code);
        self.assigned_to = None;
        if last.ends_with([':', '.', '–', '—']) || last == "-" {
            self.clause += 1;
        }
    }

    fn chunk(&mut self, chunk: &str, in_code: bool) {
        let chunk = chunk.trim_matches(['\'', '*', '‘', '’', '~', ':']);
        let chunk = chunk.trim_end_matches(['.', ':', '\'', '’', '*']);
        let chunk = chunk
            .strip_suffix("'s")
            .or_else(|| chunk.strip_suffix("’s"))
            .unwrap_or(chunk);
        if !chunk.contains(|c: char| c.is_alphanumeric()) {
            return;
        }
        // `localhost:8080` is a host and a port.
        if let Some((host, port)) = chunk.rsplit_once(':')
            && host.contains(char::is_alphabetic)
            && !host.ends_with(':')
            && port.len() >= 2
            && port.starts_with(|c: char| c.is_ascii_digit())
            && port
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            self.chunk(host, in_code);
            if let Some(quantity) = quantity::parse(port) {
                // `alpine:3.19` has no port.
                let is_port = !port.contains('.');
                let name = if is_port {
                    format!("port {port}")
                } else {
                    port.to_owned()
                };
                self.push(&name, TermKind::Number(quantity));
            }
            return;
        }
        if let Some(quantity) = quantity::parse(chunk) {
            self.number(chunk, quantity);
            return;
        }
        if let Some((from, to)) = chunk.split_once(['-', '–'])
            && let (Some(mut from), Some(to)) = (quantity::parse(from), quantity::parse(to))
            && !is_date(chunk)
        {
            // `80-150ms`: the unit follows the second number.
            if from.unit == Unit::None && to.unit != Unit::None {
                let unit = chunk.trim_start_matches(|c: char| !c.is_alphabetic());
                from.with_unit(&unit.to_lowercase());
            }
            self.push(chunk, TermKind::Number(from));
            self.push(chunk, TermKind::Number(to));
            return;
        }
        if !in_code
            && chunk.contains('-')
            && !chunk.starts_with('-')
            && chunk
                .chars()
                .all(|c| c.is_lowercase() || c == '-' || c.is_uppercase())
            && lexicon::polarity(&chunk.to_lowercase()).is_none()
        {
            for part in chunk.split('-').filter(|part| !part.is_empty()) {
                self.chunk(part, in_code);
            }
            return;
        }
        let lower = chunk.to_lowercase().replace('’', "'");
        if self.accept_unit(&lower) {
            return;
        }
        if let Some(value) = lexicon::number(&lower) {
            self.push(&lower, TermKind::Number(Quantity::plain(value)));
            return;
        }
        let kind = self.kind_of(chunk, &lower, in_code);
        self.push(&lower, kind);
        if CLAUSE_STARTERS.contains(&lower.as_str()) {
            self.clause += 1;
            if let Some(term) = self.terms.last_mut() {
                term.clause = self.clause;
            }
        }
    }

    /// Whether a word is the unit of the number before it.
    fn accept_unit(&mut self, word: &str) -> bool {
        // `half an hour`
        let is_article = |term: &Term| term.word == "a" || term.word == "an";
        let skipped = usize::from(self.terms.last().is_some_and(is_article));
        match self.terms.iter_mut().rev().nth(skipped) {
            Some(Term {
                kind: TermKind::Number(quantity),
                ..
            }) => quantity.with_unit(word),
            _ => false,
        }
    }

    fn number(&mut self, chunk: &str, quantity: Quantity) {
        let before = self.terms.last().map(|term| term.word.clone());
        let before = before.unwrap_or_default();
        let is_whole = quantity.unit == Unit::None && quantity.value.fract() == 0.0;
        let is_year = is_whole && (1990.0..2100.0).contains(&quantity.value) && chunk.len() == 4;
        let is_day = MONTHS.iter().any(|month| before.starts_with(month)) && before.len() < 10;
        let is_code = NUMBER_LABELS.contains(&before.as_str());
        let kind = if (is_year && YEAR_PREPOSITIONS.contains(&before.as_str())) || is_day {
            TermKind::Date
        } else if is_code && is_whole {
            TermKind::Name(NameKind::Identifier)
        } else {
            TermKind::Number(quantity)
        };
        if is_day && let Some(month) = self.terms.last_mut() {
            month.kind = TermKind::Date;
            month.weight = 0.0;
        }
        self.push(chunk, kind);
    }

    fn kind_of(&self, chunk: &str, lower: &str, in_code: bool) -> TermKind {
        if is_date(chunk) {
            return TermKind::Date;
        }
        if analysis::is_stop_word(lower) && !in_code {
            return TermKind::Stop;
        }
        if PERIODS.contains(&lower) {
            return TermKind::Name(NameKind::Proper);
        }
        let has_inner = |c: char| chunk.trim_matches(c).contains(c);
        let has_digit = chunk.contains(|c: char| c.is_ascii_digit());
        let uppers = chunk.chars().filter(|c| c.is_uppercase()).count();
        let letters = chunk.chars().filter(|c| c.is_alphabetic()).count();
        let is_file = chunk.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty() && (1..=5).contains(&end.len()) && end.is_ascii()
        });
        if chunk.starts_with('-') && letters > 0 {
            TermKind::Name(NameKind::Flag)
        } else if has_inner('/') || chunk.starts_with(['/', '~']) || is_file {
            TermKind::Name(NameKind::Path)
        } else if uppers > 1 && uppers == letters && has_inner('_') {
            TermKind::Name(NameKind::Constant)
        } else if in_code
            || has_digit
            || ['_', ':', '.', '#', '@', '\\', '$']
                .into_iter()
                .any(has_inner)
            || chunk.starts_with(['#', '@', '$'])
            || is_camel(chunk)
        {
            TermKind::Name(NameKind::Identifier)
        } else if uppers > 0 && !self.terms.is_empty() {
            TermKind::Name(NameKind::Proper)
        } else if lexicon::is_foreign_stop(lower) {
            TermKind::Stop
        } else {
            TermKind::Word
        }
    }

    fn push(&mut self, word: &str, kind: TermKind) {
        let word = word.to_lowercase();
        let canonical = lexicon::canonical_spelling(&word);
        let key = match kind {
            TermKind::Name(NameKind::Flag) => hash(word.trim_start_matches('-')),
            TermKind::Name(NameKind::Path) => {
                hash(word.trim_start_matches("./").trim_end_matches('/'))
            }
            _ => hash(&ack_search::stems::stem(canonical)),
        };
        let weight = match kind {
            TermKind::Stop | TermKind::Number(_) | TermKind::Date => 0.0,
            TermKind::Name(NameKind::Proper) | TermKind::Word => weight(&word),
            TermKind::Name(_) => NAME_WEIGHT,
        };
        let polarity = lexicon::polarity(&word);
        self.terms.push(Term {
            word,
            key,
            kind,
            weight,
            clause: self.clause,
            denied: false,
            replaced: false,
            has_replacement: false,
            assigned_to: self.assigned_to.take(),
            polarity,
        });
    }
}

/// How much a word contributes to the subject: about 1 for an ordinary noun.
fn weight(word: &str) -> f32 {
    let known = Encoder::embedded().and_then(|encoder| encoder.weight(word));
    known.unwrap_or(RARE_WEIGHT).clamp(0.2, 1.5)
}

fn is_camel(chunk: &str) -> bool {
    let lower_then_upper = |pair: &[char]| match pair {
        [one, other] => one.is_lowercase() && other.is_uppercase(),
        _ => false,
    };
    let chars: Vec<char> = chunk.chars().collect();
    chars.windows(2).any(lower_then_upper)
}

/// Whether a chunk is a date: `2026-03-04`, `04.03.2026`, `3/4/2026`.
fn is_date(chunk: &str) -> bool {
    let day = chunk.split('T').next().unwrap_or(chunk);
    let parts: Vec<&str> = day.split(['-', '.', '/']).collect();
    let numbers = parts
        .iter()
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let has_year = [parts.first(), parts.last()]
        .iter()
        .flatten()
        .any(|part| part.len() == 4);
    numbers && has_year && (2..=3).contains(&parts.len()) && day.len() >= 7
}

/// Words that begin a new clause.
const CLAUSE_STARTERS: [&str; 20] = [
    "but", "while", "whereas", "unless", "because", "so", "since", "until", "when", "if", "which",
    "aber", "weil", "wenn", "sondern", "mais", "pero", "sino", "но", "а",
];
/// Words before a number that is a name.
const NUMBER_LABELS: [&str; 27] = [
    "part", "figure", "example", "volume", "appendix", "code", "error", "issue", "pr", "rfc",
    "step", "line", "lines", "chapter", "status", "http", "ticket", "row", "id", "section", "exit",
    "case", "pull", "errno", "adr", "sprint", "phase",
];
const YEAR_PREPOSITIONS: [&str; 10] = [
    "in", "since", "of", "until", "by", "seit", "im", "en", "depuis", "до",
];
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
/// Months and weekdays: something may hold in or until one of them.
const PERIODS: [&str; 18] = [
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
