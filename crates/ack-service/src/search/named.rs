//! The project and the time that a question names (`retries in payments-api`, `the outage of November
//! 2022`). They say where to look and not what to find: memories of this project and of this time are
//! preferred, and they are no words of the question.

use std::ops::Range;

use crate::open::OpenScopes;
use crate::scope::resolve::Selection;
use crate::validate::QuerySpec;
use ack_api::Mode;
use ack_api::memory::{StatusFilter, fold_name};
use ack_search::analysis::is_stop_word;
use ack_search::filter::ProjectNames;
use ack_search::period::Period;

/// How many words of a question are looked at.
const MAX_WORDS: usize = 64;

#[derive(Debug, Default)]
pub struct Named {
    /// The project's folded name.
    pub project: Option<String>,
    /// The time, in milliseconds since 1970.
    pub period: Option<Range<i64>>,
    /// The question without them; `None` if it names neither.
    pub text: Option<String>,
}

impl Named {
    /// What a question names, besides something else: the first project, unless all memories with the
    /// status belong to it, and a time. A search by words or by meaning alone prefers nothing, so a time
    /// is a part of its question.
    pub fn find(spec: &QuerySpec, opened: &OpenScopes, selection: &Selection) -> Option<Self> {
        let text = spec.text.as_deref().filter(|_| !spec.is_proposal)?;
        let is_one = |name: &str| is_one_of_several(name, opened, selection, spec.filters.status);
        let (project, rest) = project(text, is_one).unzip();
        let text = rest.as_deref().unwrap_or(text);
        let is_hybrid = spec.mode == Mode::Hybrid;
        let found = is_hybrid.then(|| Period::find(text, opened.now)).flatten();
        let (period, without) = found.map(|found| (found.millis, found.text)).unzip();
        Some(Self { project, period, text: without.or(rest) })
    }
}

/// The first project that a question names, and the question without it.
fn project(text: &str, is_one: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().take(MAX_WORDS).position(|word| {
        let name = folded(word);
        !name.is_empty() && !is_stop_word(&name) && is_one(&name)
    })?;
    let (before, rest) = words.split_at_checked(at)?;
    let (name, after) = rest.split_first()?;
    let text = [before, after].concat().join(" ");
    text.contains(char::is_alphanumeric).then(|| (folded(name), text))
}

/// A name as memories are compared by it, without the punctuation around it.
fn folded(word: &str) -> String {
    fold_name(word.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// Whether some memories with a status belong to a project and others do not.
fn is_one_of_several(
    name: &str,
    opened: &OpenScopes,
    selection: &Selection,
    status: StatusFilter,
) -> bool {
    let (mut some, mut others) = (false, false);
    for (scope, index) in opened.indexed() {
        let project = ProjectNames::resolve(&selection.rows_of(name, scope), index);
        let has = |is_in: bool| {
            let mut docs = index.live().filter(|(_, doc)| status.allows(doc.status));
            docs.any(|(_, doc)| project.contains(index, doc) == is_in)
        };
        some = some || !project.is_unknown() && has(true);
        others = others || has(false);
    }
    some && others
}
