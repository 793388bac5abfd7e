//! Short ids for people: the shortest prefix that no other memory shares, and what a prefix may
//! mean.
//!
//! The prefix common to all ids of a program (`ack_`, `obs-`) can be left out. For a native id
//! (`ack_7be29d_2026-02-09_002`), the code and the number are enough: `7be2-2`.

use std::collections::{BTreeSet, HashMap};

use super::engine::Service;
use super::open::{OpenScope, OpenScopes, RecordKey};
use crate::service::error::Error;
use ack_api::memory::{Status, StatusFilter};
use ack_search::inverted::Index;

/// The minimum length of a short id, in bytes.
const MIN_BYTES: usize = 4;
/// The longest common prefix that a short id leaves out.
const MAX_PREFIX: usize = 8;
/// Maximum memories to list for an ambiguous prefix.
const MAX_MATCHES: usize = 20;

/// A memory whose id begins with the typed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdMatch {
    /// Its id.
    pub id: String,
    /// The scope that holds it.
    pub scope: String,
    /// Its title.
    pub title: String,
    /// Its status.
    pub status: Status,
}

/// The memories that a prefix may mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdMatches {
    /// The first few.
    pub matches: Vec<IdMatch>,
    /// How many there are.
    pub total: usize,
}

impl Service {
    /// The memories whose ids begin with the typed text; empty if the text is a complete id.
    ///
    /// # Errors
    /// There is no scope, or no readable store.
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
        let known = |index: &Index| index.find(whole).is_some() || index.is_rejected(whole);
        if typed.is_empty() || opened.iter().filter_map(OpenScope::index).any(known) {
            return Ok(IdMatches::default());
        }
        let mut wanted = Vec::new();
        for (number, open) in opened.iter().enumerate() {
            let Some(index) = open.index() else { continue };
            wanted.extend(
                index
                    .live()
                    .filter(|(_, doc)| filter.allows(doc.status))
                    .filter(|(doc, _)| has_prefix(index.id(*doc), &typed))
                    .map(|(doc, _)| (index.id(doc), RecordKey { scope: number, doc })),
            );
        }
        wanted.sort_by(|a, b| a.0.cmp(b.0));
        let total = wanted.len();
        wanted.truncate(MAX_MATCHES);
        // The index may have an old status, so the store decides.
        let records = opened.read(wanted.iter().map(|(_, wanted)| *wanted), filter);
        let matches: Vec<IdMatch> = wanted
            .iter()
            .filter_map(|(id, wanted)| {
                let memory = records.found.get(&(wanted.scope, (*id).to_owned()))?;
                Some(IdMatch {
                    id: memory.id.clone(),
                    scope: opened.get(wanted.scope)?.name().to_owned(),
                    title: memory.title.clone(),
                    status: memory.status,
                })
            })
            .collect();
        let dropped = wanted.len() - matches.len();
        Ok(IdMatches {
            matches,
            total: total - dropped,
        })
    }

    /// The shortest form of each id that is unique in the searched scopes.
    ///
    /// # Errors
    /// There is no scope, or no readable store.
    pub(crate) fn short_ids(
        &self,
        ids: &[&str],
        scope: Option<&str>,
    ) -> Result<HashMap<String, String>, Error> {
        let mut selection = self.select(scope, None)?;
        let opened = OpenScopes::open(self, &mut selection, &mut Vec::new())?;
        let mut forms: Vec<IdForm<'_>> = ids.iter().map(|id| IdForm::of(id)).collect();
        for index in opened.iter().filter_map(OpenScope::index) {
            for (doc, _) in index.live() {
                let other = index.id(doc);
                forms
                    .iter_mut()
                    .for_each(|form| form.distinguish_from(other));
            }
        }
        Ok(forms
            .into_iter()
            .map(|form| (form.id.to_owned(), form.shortest()))
            .collect())
    }
}

/// The ids of some scopes, to find the shortest form of each that no other one shares.
#[derive(Debug, Default)]
pub struct ShortIds {
    /// The own parts, in lower case and in order.
    parts: Vec<String>,
    /// The codes of native ids by their numbers, in order.
    codes: HashMap<String, Vec<String>>,
}

impl ShortIds {
    /// The forms of these ids.
    pub fn of(ids: impl Iterator<Item = String>) -> Self {
        let ids: BTreeSet<String> = ids.collect();
        let mut short = Self::default();
        for id in &ids {
            short.parts.push(own_part(id).to_ascii_lowercase());
            if let Some((code, number)) = code_and_number(id) {
                let codes = short.codes.entry(number.to_owned()).or_default();
                codes.push(code.to_ascii_lowercase());
            }
        }
        short.parts.sort_unstable();
        short.codes.values_mut().for_each(|codes| codes.sort());
        short
    }

    /// The shortest form of an id; the whole of one that is not known.
    pub fn shortest(&self, id: &str) -> String {
        let Some(shared) = longest_shared(&self.parts, own_part(id)) else {
            return id.to_owned();
        };
        let shared_code = code_and_number(id)
            .and_then(|(code, number)| longest_shared(self.codes.get(number)?, code));
        let form = IdForm {
            id,
            shared,
            shared_code: shared_code.unwrap_or_default(),
        };
        form.shortest()
    }
}

/// The longest prefix that a text shares with another one of a sorted list, in bytes. `None` if the
/// list does not contain it.
fn longest_shared(sorted: &[String], text: &str) -> Option<usize> {
    let text = text.to_ascii_lowercase();
    let at = sorted.binary_search(&text).ok()?;
    let before = at.checked_sub(1).and_then(|at| sorted.get(at));
    let both = before.into_iter().chain(sorted.get(at + 1));
    Some(
        both.map(|other| common_prefix(&text, other))
            .max()
            .unwrap_or(0),
    )
}

/// An id without the prefix common to all ids of its program.
fn own_part(id: &str) -> &str {
    let end = id.find(['_', '-', ':']).unwrap_or(0);
    match id.split_at_checked(end + 1) {
        Some((prefix, rest))
            if (1..=MAX_PREFIX).contains(&end)
                && !rest.is_empty()
                && prefix
                    .bytes()
                    .take(end)
                    .all(|byte| byte.is_ascii_alphabetic()) =>
        {
            rest
        }
        _ => id,
    }
}

/// The code and number of a native id.
fn code_and_number(id: &str) -> Option<(&str, &str)> {
    let mut parts = id.strip_prefix("ack_")?.split('_');
    let (code, day, number) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let hex = code.bytes().all(|byte| byte.is_ascii_hexdigit());
    (parts.next().is_none() && hex && code.len() == 6 && day.len() == 10 && digits(number))
        .then_some((code, number))
}

/// The form of an id for shell completion: the full id, or its own part, whichever begins with the
/// typed text.
pub fn completion_of<'a>(id: &'a str, typed: &str) -> Option<&'a str> {
    let mut forms = [id, own_part(id)].into_iter();
    forms.find(|form| form.starts_with(typed))
}

/// Whether an id begins with the typed text, in lower case.
pub fn has_prefix(id: &str, typed: &str) -> bool {
    let starts = |text: &str| {
        text.get(..typed.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(typed))
    };
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

/// What distinguishes an id from the others.
struct IdForm<'a> {
    id: &'a str,
    /// The longest prefix of its own part that another id shares, in bytes.
    shared: usize,
    /// For a native id, the longest prefix of its code that another id with the same number shares.
    shared_code: usize,
}

impl<'a> IdForm<'a> {
    const fn of(id: &'a str) -> Self {
        Self {
            id,
            shared: 0,
            shared_code: 0,
        }
    }

    fn distinguish_from(&mut self, other: &str) {
        if other == self.id {
            return;
        }
        self.shared = self
            .shared
            .max(common_prefix(own_part(self.id), own_part(other)));
        if let (Some((code, number)), Some((other_code, other_number))) =
            (code_and_number(self.id), code_and_number(other))
            && number == other_number
        {
            self.shared_code = self.shared_code.max(common_prefix(code, other_code));
        }
    }

    fn shortest(&self) -> String {
        if let Some((code, number)) = code_and_number(self.id)
            && let Some(code) = code.get(..(self.shared_code + 1).max(MIN_BYTES))
        {
            let number = number.trim_start_matches('0');
            return format!("{code}-{}", if number.is_empty() { "0" } else { number });
        }
        let own_part_of_id = own_part(self.id);
        // What follows `@`, as in `@edited`, would not be understood if it were cut.
        let end = own_part_of_id.rfind('@').unwrap_or(own_part_of_id.len());
        let mut length = (self.shared + 1).max(MIN_BYTES);
        while let Some(form) = own_part_of_id.get(..length).filter(|_| length <= end) {
            // Avoid a form that ends in a separator, or could be the number of a result.
            let numeric = form.bytes().all(|byte| byte.is_ascii_digit());
            if !numeric
                && form.ends_with(|c: char| c.is_alphanumeric())
                && length + 2 < own_part_of_id.len()
            {
                return form.to_owned();
            }
            length += 1;
        }
        self.id.to_owned()
    }
}

/// The length of the common prefix of two texts.
fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes()
        .zip(b.bytes())
        .take_while(|(a, b)| a.eq_ignore_ascii_case(b))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ids: &[&str], short: &[&str]) {
        for (id, expected) in ids.iter().zip(short) {
            let mut form = IdForm::of(id);
            ids.iter().for_each(|other| form.distinguish_from(other));
            let form = form.shortest();
            assert_eq!(&form, expected);
            let matching: Vec<&&str> = ids
                .iter()
                .filter(|id| has_prefix(id, &form.to_lowercase()) || **id == form)
                .collect();
            let exact = ids.contains(&form.as_str());
            assert!(exact || matching == [id], "{form} means {matching:?}");
        }
    }

    #[test]
    fn a_short_form_means_one_memory() {
        check(
            &[
                "ack_7be29d_2026-02-09_001",
                "ack_7be29d_2026-02-09_002",
                "ack_7be1ff_2026-03-09_002",
                "ack_7be100_2026-03-09_002",
            ],
            &["7be2-1", "7be2-2", "7be1f-2", "7be10-2"],
        );
        check(
            &["obs-1", "obs-12", "obs-123456789"],
            &["obs-1", "obs-12", "obs-123456789"],
        );
        check(
            &[
                "3f2a9c1e-0b1d-4a8e-9d57-6a8f0c2b7e11",
                "3f2a9c1e-ffff-4a8e-9d57-6a8f0c2b7e11",
                "12345678-aaaa-4a8e-9d57-6a8f0c2b7e11",
            ],
            &["3f2a9c1e-0", "3f2a9c1e-f", "12345678-a"],
        );
        // The whole suffix, or none of it.
        check(
            &["n7", "n7@edited", "monday", "monday@2", "tuesday@edited"],
            &["n7", "n7@edited", "monday", "monday@2", "tues"],
        );
        // The same code and number on two days.
        check(
            &["ack_7be29d_2026-02-09_001", "ack_7be29d_2026-02-10_001"],
            &["7be29d_2026-02-0", "7be29d_2026-02-1"],
        );
        check(
            &["abc", "Abd", "überlang-und-eigen"],
            &["abc", "Abd", "übe"],
        );
    }

    #[test]
    fn the_short_forms_of_many_ids_are_those_of_each() {
        let ids = [
            "ack_7be29d_2026-02-09_001",
            "ack_7be29d_2026-02-09_002",
            "ack_7be1ff_2026-03-09_002",
            "ack_7be29d_2026-02-10_001",
            "obs-abcdefgh",
            "les-abcdefgh",
            "3f2a9c1e-0b1d-4a8e-9d57-6a8f0c2b7e11",
            "3f2a9c1e-ffff-4a8e-9d57-6a8f0c2b7e11",
            "Abcdefghij",
            "obs-1",
        ];
        let short = ShortIds::of(ids.iter().map(|id| (*id).to_owned()));
        for id in ids {
            let mut form = IdForm::of(id);
            ids.iter().for_each(|other| form.distinguish_from(other));
            assert_eq!(short.shortest(id), form.shortest());
        }
        assert_eq!(short.shortest("3f2a9c1e-unknown"), "3f2a9c1e-unknown");
    }

    #[test]
    fn a_beginning_is_read_in_every_form() {
        let id = "ack_7be29d_2026-02-09_002";
        for typed in [
            "7be2",
            "ack_7be2",
            "7be29d_2026",
            "7be2-2",
            "7be29d-002",
            "7be29d·002",
            "7be2.2",
        ] {
            assert!(has_prefix(id, typed), "{typed}");
        }
        for typed in [
            "7be3",
            "e29d",
            "7be2-3",
            "-2",
            "7be2-",
            "002",
            "ack_7be29d_2026-02-09_0022",
        ] {
            assert!(!has_prefix(id, typed), "{typed}");
        }
    }
}
