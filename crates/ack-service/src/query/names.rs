//! The names that occur in memories, for requests whose names occur in none.

use std::collections::{BTreeSet, HashSet};

use crate::search::Search;
use ack_api::memory::{Status, fold_name, nearest};
use ack_api::{cancel, text};
use ack_search::interner::NameId;
use ack_search::inverted::Index;

const MAX_TYPES: usize = 12;
const MAX_NEAR: usize = 3;

#[derive(Default)]
pub struct KnownNames<'a> {
    pub projects: NameSet<'a>,
    pub tags: NameSet<'a>,
    pub types: NameSet<'a>,
}

#[derive(Default)]
pub struct NameSet<'a> {
    /// Those of memories that the request may see.
    pub visible: BTreeSet<&'a str>,
    /// Those of memories that wait for review, unless the request asks for these. It learns that
    /// there are some, but not their names.
    waiting: BTreeSet<&'a str>,
}

impl<'a> KnownNames<'a> {
    pub fn of(search: &'a Search<'a>) -> Self {
        let mut known = Self::default();
        for view in &search.views {
            let index = view.index;
            let (mut projects, mut tags, mut types) =
                (HashSet::new(), HashSet::new(), HashSet::new());
            for (number, doc) in cancel::guarded(index.live()) {
                let is_shown = search.spec.filters.status.allows(doc.status);
                if is_shown || doc.status == Status::Staging {
                    projects.insert((is_shown, doc.project));
                    types.insert((is_shown, doc.kind));
                    tags.extend(index.tags(number).iter().map(|tag| (is_shown, *tag)));
                }
            }
            known.projects.extend(index, projects);
            known.tags.extend(index, tags);
            known.types.extend(index, types);
        }
        known
    }
}

impl<'a> NameSet<'a> {
    fn extend(&mut self, index: &'a Index, ids: HashSet<(bool, NameId)>) {
        let names = ids.into_iter().map(|(is_shown, id)| (is_shown, index.name(id)));
        for (is_shown, name) in names.filter(|(_, name)| !name.is_empty()) {
            if is_shown { &mut self.visible } else { &mut self.waiting }.insert(name);
        }
    }

    /// `has` says what memories with such a name do.
    pub fn unknown(&self, has: &str, wanted: &str) -> Option<String> {
        let folded = fold_name(wanted);
        let holds =
            |names: &BTreeSet<&str>| cancel::guarded(names).any(|name| fold_name(name) == folded);
        let quoted = format!("\"{}\"", text::line(wanted, 80));
        if holds(&self.visible) {
            return None;
        }
        if holds(&self.waiting) {
            return Some(format!("Every memory that {has} {quoted} waits for review"));
        }
        let near =
            |names: &BTreeSet<&str>| nearest(wanted, names.iter().copied(), MAX_NEAR).join(", ");
        let (visible, waiting) = (near(&self.visible), near(&self.waiting));
        let hint = if !visible.is_empty() {
            format!("; similar: {visible}")
        } else if !waiting.is_empty() {
            // The name is text that nobody reviewed.
            "; one that waits for review has a similar name".to_owned()
        } else {
            String::new()
        };
        Some(format!("No memory {has} {quoted}{hint}"))
    }
}

/// There are few types, so all are listed if none is similar.
pub fn unknown_types(wanted: Option<&str>, known: &NameSet<'_>) -> Vec<String> {
    let wanted = wanted.unwrap_or_default();
    if known.visible.iter().any(|name| fold_name(name) == fold_name(wanted)) {
        return Vec::new();
    }
    let wanted = wanted.split(',').map(str::trim).filter(|wanted| !wanted.is_empty());
    let messages = wanted.filter_map(|wanted| {
        let message = known.unknown("has the type", wanted)?;
        if message.ends_with('"') && !known.visible.is_empty() {
            let some: Vec<&str> = known.visible.iter().take(MAX_TYPES).copied().collect();
            return Some(format!("{message}; types are: {}", some.join(", ")));
        }
        Some(message)
    });
    messages.collect()
}
