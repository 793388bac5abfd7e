//! Short ids for people: the shortest prefix that no other memory shares, and what a prefix may
//! mean.
//!
//! The prefix common to all ids of a program (`ack_`, `obs-`) can be left out. For a native id
//! (`ack_7be29d_2026-02-09_002`), the code and the number are enough: `7be2-2`.

use std::collections::{BTreeSet, HashMap};

use super::answer;
use super::engine::Service;
use super::open::OpenScopes;
use crate::error::Error;
use ack_api::memory::StatusFilter;
use ack_api::{Detail, MemoryHit};
use ack_search::inverted::Index;

const MIN_BYTES: usize = 4;
/// The longest common prefix that a short id leaves out.
const MAX_PREFIX: usize = 8;
const MAX_MATCHES: usize = 20;

#[derive(Debug, Default)]
pub struct IdMatches {
    pub matches: Vec<MemoryHit>,
    pub total: usize,
}

impl Service {
    /// The memories whose ids begin with the typed text; empty if the text is a complete id.
    pub fn ids_with_prefix(
        &self,
        typed: &str,
        scope: Option<&str>,
        filter: StatusFilter,
    ) -> Result<IdMatches, Error> {
        let whole = typed.trim();
        let typed = whole.to_lowercase();
        let mut selection = self.select(scope, None)?;
        let opened = OpenScopes::open(self, &mut selection, &mut Vec::new())?;
        let known = |index: &Index| index.find_typed(whole).is_some() || index.is_rejected(whole);
        if typed.is_empty() || opened.indexed().any(|(_, index)| known(index)) {
            return Ok(IdMatches::default());
        }
        let mut wanted = opened.ordered(|index, doc, row| {
            let id = index.id(doc);
            (filter.allows(row.status) && has_prefix(id, &typed)).then_some(id)
        });
        let total = wanted.len();
        wanted.truncate(MAX_MATCHES);
        // The index may have an old status, so the store decides.
        let records = opened.read(wanted.iter().map(|(_, wanted)| *wanted), filter);
        let matches = wanted.iter().filter_map(|(id, wanted)| {
            let memory = &records.found.get(&(wanted.scope, (*id).to_owned()))?.memory;
            Some(answer::hit(memory, &opened.get(wanted.scope)?.scope.name, Detail::Concise))
        });
        let matches: Vec<MemoryHit> = matches.collect();
        let total = total - (wanted.len() - matches.len());
        Ok(IdMatches { matches, total })
    }

    /// The shortest form of each id that is unique in the searched scopes.
    pub fn short_ids(
        &self,
        ids: &[&str],
        scope: Option<&str>,
    ) -> Result<HashMap<String, String>, Error> {
        let mut selection = self.select(scope, None)?;
        let opened = OpenScopes::open(self, &mut selection, &mut Vec::new())?;
        let known =
            opened.indexed().flat_map(|(_, index)| index.live().map(|(doc, _)| index.id(doc)));
        let short = ShortIds::of(known.chain(ids.iter().copied()));
        Ok(ids.iter().map(|id| ((*id).to_owned(), short.shortest(id))).collect())
    }
}

#[derive(Debug, Default)]
pub struct ShortIds {
    /// The own parts, in lower case and in order.
    parts: Vec<String>,
    /// The codes of native ids by their numbers, in order.
    codes: HashMap<String, Vec<String>>,
}

impl ShortIds {
    pub fn of<T: AsRef<str> + Ord>(ids: impl Iterator<Item = T>) -> Self {
        let ids: BTreeSet<T> = ids.collect();
        let mut short = Self::default();
        for id in ids.iter().map(AsRef::as_ref) {
            short.parts.push(own_part(id).to_ascii_lowercase());
            if let Some((code, number)) = code_and_number(id) {
                short.codes.entry(number.to_owned()).or_default().push(code.to_ascii_lowercase());
            }
        }
        short.parts.sort_unstable();
        short.codes.values_mut().for_each(|codes| codes.sort());
        short
    }

    /// The shortest form of an id; the whole of one that is not known.
    pub fn shortest(&self, id: &str) -> String {
        let own = own_part(id);
        let Some(shared) = longest_shared(&self.parts, own) else {
            return id.to_owned();
        };
        if let Some((code, number)) = code_and_number(id) {
            let codes = self.codes.get(number);
            let shared = codes.and_then(|codes| longest_shared(codes, code));
            if let Some(code) = code.get(..(shared.unwrap_or(0) + 1).max(MIN_BYTES)) {
                let number = number.trim_start_matches('0');
                return format!("{code}-{}", if number.is_empty() { "0" } else { number });
            }
        }
        // What follows `@`, as in `@edited`, would not be understood if it were cut.
        let end = own.rfind('@').unwrap_or(own.len()).min(own.len().saturating_sub(3));
        // A form of digits could be the number of a result.
        let is_clear = |form: &&str| {
            form.ends_with(char::is_alphanumeric) && !form.bytes().all(|byte| byte.is_ascii_digit())
        };
        ((shared + 1).max(MIN_BYTES)..=end)
            .filter_map(|length| own.get(..length))
            .find(is_clear)
            .unwrap_or(id)
            .to_owned()
    }
}

/// The longest prefix that a text shares with another one of a sorted list, in bytes. `None` if the
/// list does not contain it.
fn longest_shared(sorted: &[String], text: &str) -> Option<usize> {
    let text = text.to_ascii_lowercase();
    let at = sorted.binary_search(&text).ok()?;
    let before = at.checked_sub(1).and_then(|at| sorted.get(at));
    let both = before.into_iter().chain(sorted.get(at + 1));
    let shared =
        both.map(|other| text.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count());
    Some(shared.max().unwrap_or(0))
}

/// An id without the prefix common to all ids of its program. What follows must read as an id: a
/// path of a note is one from its beginning.
fn own_part(id: &str) -> &str {
    let end = id.find(['_', '-', ':']).unwrap_or(0);
    match id.split_at_checked(end + 1) {
        Some((prefix, rest))
            if (1..=MAX_PREFIX).contains(&end)
                && rest.starts_with(char::is_alphanumeric)
                && !rest.contains('/')
                && prefix.bytes().take(end).all(|byte| byte.is_ascii_alphabetic()) =>
        {
            rest
        }
        _ => id,
    }
}

fn code_and_number(id: &str) -> Option<(&str, &str)> {
    let mut parts = id.strip_prefix("ack_")?.split('_');
    let (code, day, number) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let hex = code.bytes().all(|byte| byte.is_ascii_hexdigit());
    (parts.next().is_none() && hex && code.len() == 6 && day.len() == 10 && digits(number))
        .then_some((code, number))
}

/// Whether an id begins with the typed text, in lower case.
pub fn has_prefix(id: &str, typed: &str) -> bool {
    let starts =
        |text: &str| text.get(..typed.len()).is_some_and(|start| start.eq_ignore_ascii_case(typed));
    starts(id) || starts(own_part(id)) || {
        let number = |text: &str| text.parse::<u32>().ok();
        match (typed.split_once(['-', '.', '·']), code_and_number(id)) {
            (Some((code, typed)), Some((code_of_id, digits))) => {
                !code.is_empty()
                    && code_of_id.starts_with(code)
                    && number(typed).is_some()
                    && number(typed) == number(digits)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ids: &str, short: &str) {
        let ids: Vec<&str> = ids.split(' ').collect();
        let forms = ShortIds::of(ids.iter());
        for (id, expected) in ids.iter().zip(short.split(' ')) {
            let form = forms.shortest(id);
            assert_eq!(form, expected);
            let means = |id: &&&str| has_prefix(id, &form.to_lowercase()) || **id == form;
            let matching: Vec<&&str> = ids.iter().filter(means).collect();
            let exact = ids.contains(&form.as_str());
            assert!(exact || matching == [id], "{form} means {matching:?}");
        }
    }

    #[test]
    fn a_short_form_means_one_memory() {
        check(
            "ack_7be29d_2026-02-09_001 ack_7be29d_2026-02-09_002 ack_7be1ff_2026-03-09_002 \
             ack_7be100_2026-03-09_002",
            "7be2-1 7be2-2 7be1f-2 7be10-2",
        );
        check("obs-1 obs-12 obs-123456789", "obs-1 obs-12 obs-123456789");
        check(
            "3f2a9c1e-0b1d-4a8e-9d57-6a8f0c2b7e11 3f2a9c1e-ffff-4a8e-9d57-6a8f0c2b7e11 \
             12345678-aaaa-4a8e-9d57-6a8f0c2b7e11",
            "3f2a9c1e-0 3f2a9c1e-f 12345678-a",
        );
        // The whole suffix, or none of it.
        check("n7 n7@edited monday monday@2 tuesday@edited", "n7 n7@edited monday monday@2 tues");
        // The same code and number on two days.
        check(
            "ack_7be29d_2026-02-09_001 ack_7be29d_2026-02-10_001",
            "7be29d_2026-02-0 7be29d_2026-02-1",
        );
        check("abc Abd überlang-und-eigen", "abc Abd übe");
        check("obs-abcdefgh les-abcdefgh", "obs-abcdefgh les-abcdefgh");
        // A note's path, and a name that is no prefix with an id.
        check("kiosk-web/alpha kiosk-web/beta ex-relay/alpha", "kiosk-web/a kiosk-web/b ex-r");
        check("Root-\u{a0}a-title", "Root");
        let short = ShortIds::of(std::iter::once("known"));
        assert_eq!(short.shortest("unknown"), "unknown");
    }

    #[test]
    fn a_beginning_is_read_in_every_form() {
        let id = "ack_7be29d_2026-02-09_002";
        for typed in
            "7be2 | ack_7be2 | 7be29d_2026 | 7be2-2 | 7be29d-002 | 7be29d·002 | 7be2.2".split(" | ")
        {
            assert!(has_prefix(id, typed), "{typed}");
        }
        for typed in "7be3 e29d 7be2-3 -2 7be2- 002 ack_7be29d_2026-02-09_0022".split(' ') {
            assert!(!has_prefix(id, typed), "{typed}");
        }
    }
}
