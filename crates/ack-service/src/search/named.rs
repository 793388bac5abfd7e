//! The project that a question names (`retries in payments-api`). Its name says where to look and not
//! what to find: its memories are preferred, and it is no word of the question.

use crate::open::OpenScopes;
use crate::scope::resolve::Selection;
use ack_api::memory::{StatusFilter, fold_name};
use ack_search::analysis::is_stop_word;
use ack_search::filter::ProjectNames;

/// How many words of a question are looked at.
const MAX_WORDS: usize = 64;

pub struct NamedProject {
    /// Its folded name.
    pub name: String,
    /// The question without the name.
    pub text: String,
}

impl NamedProject {
    /// The first project that a question names, besides something else. If all memories with the
    /// status belong to it, it says nothing.
    pub fn find(
        text: &str,
        opened: &OpenScopes,
        selection: &Selection,
        status: StatusFilter,
    ) -> Option<Self> {
        let is_one = |name: &str| is_one_of_several(name, opened, selection, status);
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().take(MAX_WORDS).position(|word| {
            let name = folded(word);
            !name.is_empty() && !is_stop_word(&name) && is_one(&name)
        })?;
        let (before, rest) = words.split_at_checked(at)?;
        let (name, after) = rest.split_first()?;
        let text = [before, after].concat().join(" ");
        let name = folded(name);
        text.contains(char::is_alphanumeric)
            .then_some(Self { name, text })
    }
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
    for open in opened.iter() {
        let (scope, Some(index)) = (&*open.scope, open.index()) else {
            continue;
        };
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
