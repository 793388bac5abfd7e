//! What single lines of a note say: the statements and relations of basic-memory, and links to
//! other notes by name, `[[name]]` or Serena's `mem:name`.

use std::path::Path;

use rustc_hash::FxHashSet;

use super::blocks::item;
use super::links::{MAX_NAME_BYTES, MAX_NOTES, linked_notes, name_alone, note_name, note_names};
use super::markdown::{lines, without_code};
use crate::links::SUPERSEDES;

const MAX_STATEMENTS: usize = 1_000;
/// The longest kind of a relation, in bytes.
const MAX_KIND_BYTES: usize = 40;
/// What Serena writes in front of the name of a memory.
const MEMORY_PREFIX: &str = "mem:";

/// The kind of a link to the note that replaces this one.
pub const SUPERSEDED_BY: &str = "superseded_by";
/// The kinds of relations to a note that this one replaces or that replaces it.
const REPLACEMENTS: [(&str, &str); 4] = [
    ("replaces", SUPERSEDES),
    ("supersedes", SUPERSEDES),
    ("replaced by", SUPERSEDED_BY),
    ("superseded by", SUPERSEDED_BY),
];

/// The kind of a link and the name of its target, or `/` and the path of its file.
type NamedLink = (String, String);

/// Whether a line is a statement `- [category] text`.
pub fn is_statement(line: &str) -> bool {
    item(line).and_then(|item| statement(item.text)).is_some()
}

/// The statements `- [category] text` of a text, and the links to other notes: by name and by file.
/// Those in code are not read, except that `mem:name` may stand between backticks. `note` is the
/// path of its file.
pub fn statements(text: &str, note: &Path) -> (Vec<String>, Vec<NamedLink>) {
    let (mut facts, mut links) = (Vec::new(), Vec::new());
    let related = |name: &str| ("related".to_owned(), name.to_owned());
    for line in lines(text).filter(|line| !line.is_code) {
        links.extend(memory_names(line.text).map(related));
        let entry = item(line.text).map(|item| item.text);
        if let Some(fact) = entry.and_then(statement) {
            facts.push(fact.trim_end().to_owned());
        } else {
            let plain = without_code(line.text);
            match item(&plain).and_then(|item| relation(item.text)) {
                Some((kind, name)) => links.push((replacement_kind(kind), name)),
                None => links.extend(note_names(&plain).map(|name| related(&name))),
            }
        }
        if links.len() > MAX_NOTES || facts.len() > MAX_STATEMENTS {
            break;
        }
    }
    let whole = links
        .iter()
        .filter(|(_, name)| !name.starts_with('/'))
        .filter_map(|(kind, name)| Some((kind.clone(), name_alone(name)?.to_owned())))
        .collect::<Vec<_>>();
    links.extend(whole);
    let known: FxHashSet<&str> = links.iter().map(|(_, name)| name.as_str()).collect();
    let mut files = linked_notes(text, note);
    files.retain(|file| !known.contains(&**file));
    links.extend(files.iter().map(|file| related(file)));
    (facts, links)
}

/// A kind of link; those of a replacement in one spelling.
fn replacement_kind(kind: String) -> String {
    let words = kind.replace(['_', '-'], " ");
    let known = REPLACEMENTS.iter().find(|(phrase, _)| *phrase == words);
    known.map_or(kind, |(_, kind)| (*kind).to_owned())
}

/// The text of a statement `[category] text`.
fn statement(entry: &str) -> Option<&str> {
    let (category, fact) = entry.strip_prefix('[')?.split_once(']')?;
    let fact = fact.strip_prefix(' ')?.trim();
    let is_category = !category.contains(['[', '(', ')'])
        && !is_task_mark(category)
        && !is_time(category.trim())
        && !category.trim().is_empty();
    (is_category && !fact.is_empty()).then_some(fact)
}

/// Whether the brackets mark a task, not a category: `[ ]`, `[x]`, `[-]`.
fn is_task_mark(category: &str) -> bool {
    let mut chars = category.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) => matches!(only, 'x' | 'X') || !only.is_alphanumeric(),
        _ => false,
    }
}

/// Whether this is a time in a transcript: `00:01:12`.
fn is_time(category: &str) -> bool {
    category.contains(':')
        && category
            .chars()
            .all(|c| c.is_ascii_digit() || ":.,- ".contains(c))
}

/// A relation `kind [[name]]` or `"some kind" [[name]] (context)`. A sentence with a link is not a
/// relation.
fn relation(entry: &str) -> Option<NamedLink> {
    let (kind, rest) = entry.split_once("[[")?;
    let (name, after) = rest.split_once("]]")?;
    let (kind, after) = (kind.trim(), after.trim());
    let quoted = ['"', '\'']
        .iter()
        .find_map(|quote| kind.strip_prefix(*quote)?.strip_suffix(*quote));
    let kind = match quoted {
        Some(kind) => kind.trim(),
        None if kind.contains(char::is_whitespace) => return None,
        None => kind,
    };
    let is_kind = !kind.is_empty()
        && kind.len() <= MAX_KIND_BYTES
        && kind
            .chars()
            .all(|c| c.is_alphanumeric() || "_- ".contains(c));
    let has_context = after.starts_with('(') && after.find(')') == Some(after.len() - 1);
    if !is_kind || !(after.is_empty() || has_context) {
        return None;
    }
    Some((kind.to_lowercase(), note_name(name)?))
}

/// The names after `mem:`, with which Serena refers to other memories.
fn memory_names(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || "_-/".contains(c);
    let found = line.match_indices(MEMORY_PREFIX);
    found.filter_map(move |(start, _)| {
        let is_start = !line.get(..start)?.ends_with(is_part);
        let rest = line.get(start + MEMORY_PREFIX.len()..)?;
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = rest.get(..length)?.trim_end_matches('/');
        (is_start && !name.is_empty() && name.len() <= MAX_NAME_BYTES).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_in_a_list_says_what_a_note_replaces_and_prose_does_not() {
        for (text, kind) in [
            ("- supersedes [[x]]", SUPERSEDES),
            ("- \"replaces\" [[x]] (since 2026)", SUPERSEDES),
            ("- superseded_by [[x]]", SUPERSEDED_BY),
            ("- replaced-by [[x]]", SUPERSEDED_BY),
            ("- part_of [[x]]", "part_of"),
            ("The cache replaces [[x]]", "related"),
            ("- HAProxy, replaced by [[x]]", "related"),
        ] {
            let (_, links) = statements(text, Path::new("note.md"));
            assert_eq!(links, [(kind.to_owned(), "x".to_owned())], "{text}");
        }
    }
}
