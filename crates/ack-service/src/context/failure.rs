//! The memory that explains why a command failed, if one certainly does.
//!
//! A hook runs in its own process after every failed command, so this builds no index: one pass
//! over the stores looks for the words of the error, and only the memories that share the rarest of
//! them are read. Nobody asked for it, so a memory is shown only if both its words and its
//! meaning fit.

mod error_text;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::about_files::{Certain, record};
use super::evidence::{Weights, weight};
use super::outlines;
use super::words::{WordKind, Words};
use crate::engine::Service;
use crate::error::Error;
use crate::evidence::Bounds;
use crate::open::Record;
use crate::scope::Scope;
use crate::service_state::serves_unreviewed;
use crate::stale::Staleness;
use ack_api::memory::{Memory, StatusFilter};
use ack_search::analysis::{self, TextRole};
use ack_search::analyzer::Analyzer;
use ack_search::encoder::Encoder;
use ack_search::semantic::QuantizedVector;
use ack_store::Access;
use ack_store::outline::{RowMatches, WordMatches};

const LOCK_TIMEOUT: Duration = Duration::from_millis(50);
const MAX_CANDIDATES: usize = 8;
const MAX_TEXT_BYTES: usize = 8_000;
/// Exit codes that say more than that something failed.
const TELLING_EXIT_CODES: [i64; 7] = [124, 126, 127, 134, 137, 139, 143];

// The evidence that a memory explains an error is the cosine between them, and three shares with
// these weights. See docs/benchmarks.md for how they and the minimum were chosen.
/// How rare the three rarest words are that both have.
const RARITY_WEIGHT: f64 = 0.2;
/// How much of the error the memory quotes in one piece.
const QUOTE_WEIGHT: f64 = 0.3;
/// How much of the error's words the memory has; those in its title and tags count twice.
const COVERAGE_WEIGHT: f64 = 0.9;
const MIN_EVIDENCE: f64 = 1.205;
/// Fewer words in common say nothing, however rare they are.
const MIN_WORDS: u32 = 3;
/// A quotation of so many of the rarest words counts in full.
const LONG_QUOTE: f64 = 4.0;
const STOP_WORD_WEIGHT: f64 = 0.3;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedCommand {
    pub command: String,
    /// `None` if the host does not say.
    pub exit_code: Option<i64>,
    /// Whether it is known that it failed. If not, only an output that names an error counts.
    pub is_known: bool,
    pub output: String,
}

impl Service {
    /// The memory, if any, that explains why a command failed in the project of a folder, or else
    /// in the current one. Skips scopes that cannot be read.
    pub fn about_failure(
        &self,
        folder: Option<&str>,
        failed: &FailedCommand,
    ) -> Result<Certain, Error> {
        let mut lines = error_text::lines(&failed.output, failed.is_known);
        let code = failed.exit_code.filter(|code| TELLING_EXIT_CODES.contains(code));
        lines.extend(code.map(|code| format!("exit code {code}")));
        let text = lines.join("\n");
        let words = words_of(&text);
        if words.is_empty() {
            return Ok(Certain::default());
        }
        let mut notes = Vec::new();
        // To recognise the project by its memories would take as long as the search.
        let mut selection = super::select(self, folder, &mut notes, false)?;
        let read =
            outlines::read_scopes(&mut selection, self.wait_policy, &mut notes, |scope, _| {
                let rows = scope.store.read(Access::QuickScan, LOCK_TIMEOUT, |snapshot| {
                    snapshot.word_matches(StatusFilter::Approved, &words)
                })?;
                Ok((Arc::clone(scope), rows))
            })?;
        let text = format!("{text}\n{}", programs(&failed.command));
        let failure = Failure::new(&lines, &text, &words, &read);
        // The memories that share the most and the rarest words with the error.
        let rows = read.iter().flat_map(|(scope, rows)| rows.iter().map(move |row| (scope, row)));
        let similar = rows.filter(|(_, row)| row.words.anywhere.count_ones() >= MIN_WORDS);
        let candidates = failure.weights.best(similar, |(_, row)| row.words, MAX_CANDIDATES);
        let mut best: Option<(f64, &Scope, Record)> = None;
        for (scope, row) in candidates {
            let Some(found) = record(scope, row.key, LOCK_TIMEOUT) else { continue };
            if are_others(&failure.codes, &error_codes(found.memory.texts())) {
                continue;
            }
            let evidence = failure.evidence(row.words, &found.memory);
            let is_best = best.as_ref().is_none_or(|(best, ..)| evidence > *best);
            if evidence >= MIN_EVIDENCE && is_best {
                best = Some((evidence, scope, found));
            }
        }
        let Some((_, scope, found)) = best else { return Ok(Certain::default()) };
        // Whether its files are missing depends on the project that it belongs to.
        if !found.memory.files.is_empty() {
            selection = super::select(self, folder, &mut notes, true)?;
        }
        let staleness = Staleness::new((self.config.clock)(), &selection.current, Bounds::ANSWER);
        Ok(Certain {
            unreviewed: serves_unreviewed(scope),
            memories: vec![staleness.hit(&found, scope)],
        })
    }
}

struct Failure<'a> {
    lines: Vec<Vec<(String, f64)>>,
    words: &'a Words,
    weights: Weights,
    /// The weight of a word that one memory has.
    max_weight: f64,
    /// The weight of all its known words, if they stand in a title.
    total: f64,
    vector: Option<QuantizedVector>,
    codes: Vec<ErrorCode<'a>>,
}

impl<'a> Failure<'a> {
    /// `text` is what the meaning of memories is compared with.
    fn new(
        lines: &'a [String],
        text: &str,
        words: &'a Words,
        read: &[(Arc<Scope>, Vec<RowMatches>)],
    ) -> Self {
        let rows = || read.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.words));
        let vector = Encoder::embedded().and_then(|encoder| encoder.query(text));
        let weights = Weights::new(rows(), words);
        let codes = error_codes(lines.iter().map(String::as_str));
        let weighted = |word: String| {
            let weight = words.number(&word).map_or(STOP_WORD_WEIGHT, |number| weights.of(number));
            (word, weight)
        };
        let lines = lines.iter().map(|line| plain_words(line).into_iter().map(weighted).collect());
        let known = words.without_parts(weights.counted());
        let all_in_title = WordMatches { title_or_tags: known, ..WordMatches::default() };
        Self {
            lines: lines.collect(),
            words,
            max_weight: weight(1, rows().count()),
            total: weights.sum(all_in_title, known),
            weights,
            vector: vector.as_deref().and_then(QuantizedVector::quantize),
            codes,
        }
    }

    fn evidence(&self, matches: WordMatches, memory: &Memory) -> f64 {
        // Whoever has `git.corp.internal` has `corp` too.
        let found = self.words.without_parts(matches.anywhere);
        let cosine = || {
            let analyzed = Analyzer::default().analyze(memory, Encoder::embedded());
            let (own, other) = (self.vector.as_ref()?, analyzed.quantized_vector()?);
            Some(f64::from(own.cosine(&other)))
        };
        let rarity = self.weights.sum_of_rarest(found, 3) / (3.0 * self.max_weight);
        let quote = self.longest_quote(memory) / (LONG_QUOTE * self.max_weight);
        let coverage = self.weights.sum(matches, found) / self.total.max(f64::MIN_POSITIVE);
        cosine().unwrap_or_default()
            + RARITY_WEIGHT * rarity.min(1.0)
            + QUOTE_WEIGHT * quote.min(1.0)
            + COVERAGE_WEIGHT * coverage.min(1.0)
    }

    /// The weight of the longest piece of the error, of two words or more, that a memory repeats.
    fn longest_quote(&self, memory: &Memory) -> f64 {
        let mut best = 0.0f64;
        for text in memory.texts() {
            let text = plain_words(ack_api::text::cut(text, MAX_TEXT_BYTES).0.as_ref());
            let mut positions: HashMap<&str, Vec<usize>> = HashMap::new();
            for (at, word) in text.iter().enumerate() {
                positions.entry(word).or_default().push(at);
            }
            for line in &self.lines {
                // The pieces that end at the word before, by where they end in the memory.
                let mut before: HashMap<usize, (f64, usize)> = HashMap::new();
                for (word, weight) in line {
                    let mut now = HashMap::new();
                    for at in positions.get(word.as_str()).into_iter().flatten() {
                        let so_far = at.checked_sub(1).and_then(|at| before.get(&at));
                        let (sum, length) = so_far.copied().unwrap_or_default();
                        now.insert(*at, (sum + weight, length + 1));
                        if length > 0 {
                            best = best.max(sum + weight);
                        }
                    }
                    before = now;
                }
            }
        }
        best
    }
}

/// The words of a text in lower case, stop words included.
fn plain_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// The programs that a shell command runs, each with its first argument if that is a word.
fn programs(command: &str) -> String {
    let mut found: Vec<&str> = Vec::new();
    for part in command.split(['|', ';', '&', '\n']) {
        let is_setting = |word: &&str| word.contains('=') || *word == "sudo" || *word == "env";
        let mut words = part.split_whitespace().skip_while(is_setting);
        let Some(program) = words.next().filter(|word| *word != "cd") else {
            continue;
        };
        found.extend(program.rsplit('/').next());
        let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        found.extend(words.next().filter(is_word).filter(|word| !word.starts_with('-')));
    }
    found.join(" ")
}

fn words_of(text: &str) -> Words {
    let mut list = Vec::new();
    analysis::tokenize(text, TextRole::Query, &mut |token| {
        let is_number = token.text.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = token.text.chars().all(char::is_alphabetic);
        let kind = if is_word { WordKind::Prose } else { WordKind::Name };
        if !is_number || token.text.len() == 3 {
            list.push((token.text.into_owned(), kind));
        }
    });
    Words::new(list)
}

/// A code and its kind. Two codes of one kind share most of their words, and mean different errors.
type ErrorCode<'a> = (String, &'a str);

fn error_codes<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<ErrorCode<'a>> {
    let words = texts.flat_map(|it| it.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter_map(|word| Some((code_kind(word)?, word))).collect()
}

/// Whether both have codes of one kind, and none in common.
fn are_others(ours: &[ErrorCode<'_>], theirs: &[ErrorCode<'_>]) -> bool {
    ours.iter().any(|(kind, _)| {
        let mut same_kind = theirs.iter().filter(|(other, _)| other == kind).peekable();
        same_kind.peek().is_some() && !same_kind.any(|code| ours.contains(code))
    })
}

/// The kind of an error code; `None` if the word is not one.
fn code_kind(word: &str) -> Option<String> {
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
            super::are_others(
                &error_codes(std::iter::once(ours)),
                &error_codes(std::iter::once(theirs)),
            )
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
