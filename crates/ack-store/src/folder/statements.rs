//! What single lines of a note say: the statements and relations of basic-memory, and links to
//! other notes by name, `[[name]]` or Serena's `mem:name`.

use std::path::Path;

use rustc_hash::FxHashSet;

use super::blocks::item;
use super::links::{
    MAX_NAME_BYTES, MAX_NOTES, Target, links_in, name_alone, resolve_note, targets,
};
use super::markdown::{lines, without_code};
use crate::links::SUPERSEDES;

const MAX_STATEMENTS: usize = 1_000;
const MAX_KIND_BYTES: usize = 40;
/// What Serena writes in front of the name of a memory.
const MEMORY_PREFIX: &str = "mem:";

/// The kind of a link to the note that replaces this one.
pub const SUPERSEDED_BY: &str = "superseded_by";
/// The phrases before a link to a note that this one replaces or that replaces it, as in the files
/// of adr-tools too, and the kinds of these links.
const REPLACEMENTS: [(&str, &str); 6] = [
    ("replaces", SUPERSEDES),
    ("supersedes", SUPERSEDES),
    ("supercedes", SUPERSEDES),
    ("replaced by", SUPERSEDED_BY),
    ("superseded by", SUPERSEDED_BY),
    ("superceded by", SUPERSEDED_BY),
];
const MARKS: [char; 12] = [' ', '\t', ':', '*', '_', '-', '–', '—', '→', ',', '&', '"'];

/// How much after such a phrase may be links.
const MAX_LINKS_BYTES: usize = 4_000;

/// The kind of a link and the name of its target, or `/` and the path of its file.
type NamedLink = (String, String);

pub fn is_statement(line: &str) -> bool {
    item(line).and_then(|item| statement(item.text)).is_some()
}

/// The statements `- [category] text` of a text, and the links to other notes: by name and by file,
/// with the notes that it replaces or that replace it. Those in code are not read, except that
/// `mem:name` may stand between backticks. `note` is the path of its file.
pub fn statements(text: &str, note: &Path) -> (Vec<String>, Vec<NamedLink>) {
    let (mut facts, mut links, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let related = |name: &str| ("related".to_owned(), name.to_owned());
    let mut is_about_note = true;
    for line in lines(text).filter(|line| !line.is_code) {
        links.extend(memory_names(line.text).map(related));
        let entry = item(line.text).map(|item| item.text);
        let plain = without_code(line.text);
        let mut others = Vec::new();
        for target in targets(&plain) {
            match target {
                Target::Note(name) => others.push(name),
                Target::File(file) => files.extend(resolve_note(&file, note)),
            }
        }
        if line.text.starts_with("##") {
            is_about_note = line.text.trim_matches(['#', ' ']).eq_ignore_ascii_case("status");
        }
        if let Some(fact) = entry.and_then(statement) {
            facts.push(fact.trim_end().to_owned());
        } else {
            let replaced = replacements(&plain, note, is_about_note);
            let relation = item(&plain).and_then(|item| relation(item.text));
            match relation.filter(|_| replaced.is_empty()) {
                Some((kind, name)) => links.push((replacement_kind(kind), name)),
                None => {
                    let known: FxHashSet<&str> = names(&replaced).collect();
                    others.retain(|name| !known.contains(&**name));
                    links.extend(others.iter().map(|name| related(name)));
                }
            }
            links.extend(replaced);
        }
        if links.len() + files.len() > MAX_NOTES || facts.len() > MAX_STATEMENTS {
            break;
        }
    }
    let by_name = links.iter().filter(|(_, name)| !name.starts_with('/'));
    let whole = by_name.filter_map(|(kind, it)| Some((kind.clone(), name_alone(it)?.to_owned())));
    links.extend(whole.collect::<Vec<_>>());
    let known: FxHashSet<&str> = names(&links).collect();
    files.retain(|file| !known.contains(&**file));
    links.extend(files.iter().map(|file| related(file)));
    (facts, links)
}

fn names(links: &[NamedLink]) -> impl Iterator<Item = &str> {
    links.iter().map(|(_, name)| name.as_str())
}

/// A kind of link; those of a replacement in one spelling.
fn replacement_kind(kind: String) -> String {
    let words = kind.replace(['_', '-'], " ");
    let known = REPLACEMENTS.iter().find(|(phrase, _)| *phrase == words);
    known.map_or(kind, |(_, kind)| (*kind).to_owned())
}

/// The notes that a line says it replaces, or is replaced by: the links after such a phrase at the
/// beginning of the line or of a sentence. `superseded by` below a heading is about what the heading
/// names, unless that is the status, and an entry below another one is about that one.
fn replacements(line: &str, note: &Path, is_about_note: bool) -> Vec<NamedLink> {
    let mut found = Vec::new();
    if line.starts_with(char::is_whitespace) || !line.contains('[') {
        return found;
    }
    let mut start = 0;
    for (number, sentence) in line.split(". ").enumerate() {
        let end = start + sentence.len();
        start = end + ". ".len();
        let said = sentence.trim_start_matches(|c: char| !c.is_alphanumeric());
        // `e.g. replaced by` is no sentence.
        if number > 0 && !said.starts_with(char::is_uppercase) {
            continue;
        }
        let said = match said.split_at_checked("status".len()) {
            Some((word, rest)) if word.eq_ignore_ascii_case("status") => {
                rest.trim_start_matches(MARKS)
            }
            _ => said,
        };
        // As many bytes as before.
        let lower = said.to_ascii_lowercase().replace(['_', '-'], " ");
        let phrase = REPLACEMENTS.iter().find(|(phrase, _)| lower.starts_with(phrase));
        let Some((phrase, kind)) = phrase.filter(|(_, kind)| is_about_note || *kind == SUPERSEDES)
        else {
            continue;
        };
        // The text of a link may hold what looks like the end of a sentence: `[2. Use SQL](2.md)`.
        let rest = line.get(end - said.len() + phrase.len()..).unwrap_or_default();
        let rest = rest.get(..rest.floor_char_boundary(MAX_LINKS_BYTES)).unwrap_or_default();
        let mut read = 0;
        for link in links_in(rest) {
            let before = rest.get(read..link.range.start).unwrap_or_default();
            if before.split(MARKS).any(|word| !["", "and"].contains(&word)) {
                break;
            }
            let name = match link.target {
                Some(Target::Note(name)) => Some(name),
                Some(Target::File(file)) => resolve_note(&file, note),
                None => None,
            };
            found.extend(name.map(|name| ((*kind).to_owned(), name)));
            read = link.range.end;
        }
    }
    found
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
    let first = chars.next();
    chars.next().is_none() && first.is_some_and(|c| "xX".contains(c) || !c.is_alphanumeric())
}

/// Whether this is a time in a transcript: `00:01:12`.
fn is_time(category: &str) -> bool {
    category.contains(':') && category.chars().all(|c| c.is_ascii_digit() || ":.,- ".contains(c))
}

/// A relation `kind [[name]]` or `"some kind" [[name]] (context)`, not a sentence with a link.
fn relation(entry: &str) -> Option<NamedLink> {
    let link = links_in(entry).next()?;
    let Some(Target::Note(name)) = link.target else { return None };
    let kind = entry.get(..link.range.start)?.trim();
    let after = entry.get(link.range.end..)?.trim();
    let quoted = ['"', '\''].iter().find_map(|it| kind.strip_prefix(*it)?.strip_suffix(*it));
    let kind = match quoted {
        Some(kind) => kind.trim(),
        None if kind.contains(char::is_whitespace) => return None,
        None => kind,
    };
    let is_kind = !kind.is_empty()
        && kind.len() <= MAX_KIND_BYTES
        && kind.chars().all(|c| c.is_alphanumeric() || "_- ".contains(c));
    let has_context = after.starts_with('(') && after.find(')') == Some(after.len() - 1);
    if !is_kind || !(after.is_empty() || has_context) {
        return None;
    }
    Some((kind.to_lowercase(), name))
}

/// The names after `mem:`, with which Serena refers to other memories.
fn memory_names(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || "_-/".contains(c);
    line.match_indices(MEMORY_PREFIX).filter_map(move |(start, _)| {
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

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let (_, links) = statements(text, Path::new("ops/note.md"));
        let links: Vec<(&str, &str)> = links.iter().map(|(kind, it)| (&**kind, &**it)).collect();
        assert_eq!(links, expected, "{text}");
    }

    #[test]
    fn a_note_says_what_it_replaces_and_what_replaces_it() {
        for text in [
            "Replaces [[old]]",
            "The rest. Replaces [[old]].",
            "supersedes: [[old|the old rule]]",
            "**Supersedes:** [[old]]",
            "_Replaces_ [[old]] since March",
            "- Replaces **[[old]]**",
            "> Supersedes: [[old]]",
            "- supersedes [[old]]",
            "- \"replaces\" [[old]] (since 2026)",
            "## Decision\n\nSupersedes [[old]]",
        ] {
            check(text, &[(SUPERSEDES, "old")]);
        }
        for text in [
            "Superseded by [[new]]",
            "Status: superseded by [[new]].",
            "**Status:** superseded by [[new]]",
            "*Replaced by:* [[new]]",
            "- superseded_by [[new]]",
            "- superseded-by: [[new]]",
            "* Replaced by → [[new]]",
            "## Status\n\nSuperceded by [[new]]",
        ] {
            check(text, &[(SUPERSEDED_BY, "new")]);
        }
        check("Supersedes [the first](first.md)", &[(SUPERSEDES, "/ops/first.md")]);
        check(
            "Superseded by [2. Use Postgres](0002-use-postgres.md)",
            &[(SUPERSEDED_BY, "/ops/0002-use-postgres.md")],
        );
        check(
            "Replaces [[a]], [[b#why]] and [c](../c.md); see [[d]] and [e](e.md)",
            &[
                ("related", "d"),
                (SUPERSEDES, "a"),
                (SUPERSEDES, "b#why"),
                (SUPERSEDES, "/c.md"),
                (SUPERSEDES, "b"),
                ("related", "/ops/e.md"),
            ],
        );
    }

    #[test]
    fn a_sentence_about_something_else_replaces_no_note() {
        for text in [
            "The cache never replaces [[x]]",
            "It is not replaced by [[x]]",
            "We used HAProxy (replaced by [[x]]).",
            "HAProxy: replaced by [[x]]",
            "| HAProxy | replaced by [[x]] |",
            "- HAProxy\n  - replaced by: [[x]]",
            "Tools, e.g. replaced by [[x]]",
            "## The old proxy\n\nReplaced by [[x]]",
            "A replacement for [[x]]",
        ] {
            let (_, links) = statements(text, Path::new("note.md"));
            let kinds: Vec<&str> = links.iter().map(|(kind, _)| kind.as_str()).collect();
            assert_eq!(kinds, ["related"], "{text}");
        }
        check("`Replaces [[x]]`\n```\nReplaces [[x]]\n```", &[]);
        let many = "replaces [[".repeat(100_000);
        check(&many, &[]);
    }
}
