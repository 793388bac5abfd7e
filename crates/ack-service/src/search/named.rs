//! The project that a question names (`retries in payments-api`). It says where to look and not what to
//! find: its memories are preferred, and it is no word of the question.

use crate::open::OpenScopes;
use crate::scope::resolve::Selection;
use crate::validate::QuerySpec;
use ack_api::memory::{StatusFilter, fold_name};
use ack_search::analysis::is_stop_word;
use ack_search::filter::ProjectNames;

/// How many words of a question are looked at.
const MAX_WORDS: usize = 64;

#[derive(Debug, Default)]
pub struct Named {
    /// The project's folded name.
    pub project: Option<String>,
    /// The question without it; `None` if it names none.
    pub text: Option<String>,
}

impl Named {
    /// The first project that a question names, besides something else, unless all memories with the
    /// status belong to it.
    pub fn find(spec: &QuerySpec, opened: &OpenScopes, selection: &Selection) -> Option<Self> {
        let text = spec.text.as_deref().filter(|_| !spec.is_proposal)?;
        let is_one = |name: &str| is_one_of_several(name, opened, selection, spec.filters.status);
        let (project, text) = project(text, is_one).unzip();
        Some(Self { project, text })
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
