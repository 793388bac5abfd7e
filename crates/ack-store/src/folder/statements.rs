//! What single lines of a note say: the statements and relations of basic-memory, and links to
//! other notes by name, `[[name]]` or Serena's `mem:name`.

use super::links::without_code;

/// The longest name in a link, in bytes.
const MAX_NAME_BYTES: usize = 200;
/// The longest kind of a relation, in bytes.
const MAX_KIND_BYTES: usize = 40;
/// What Serena writes in front of the name of a memory.
const MEMORY_PREFIX: &str = "mem:";

/// The kind of a link and the name of its target.
type NamedLink = (String, String);

/// Whether a line is a statement `- [category] text`.
pub fn is_statement(line: &str) -> bool {
    list_item(line.trim()).and_then(statement).is_some()
}

/// The statements `- [category] text` of a text, and all links to other notes. Those in code
/// are not read, except that `mem:name` may stand between backticks.
pub fn statements(text: &str) -> (Vec<String>, Vec<NamedLink>) {
    let (mut facts, mut links) = (Vec::new(), Vec::new());
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| line.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        if fence.is_some() || mark.is_some() {
            continue;
        }
        links.extend(memory_names(line).map(|name| ("related".to_owned(), name.to_owned())));
        let entry = list_item(line);
        if let Some(fact) = entry.and_then(statement) {
            facts.push(fact.to_owned());
            continue;
        }
        let line = without_code(line);
        match list_item(&line).and_then(relation) {
            Some(relation) => links.push(relation),
            None => links.extend(note_names(&line).map(|name| ("related".to_owned(), name))),
        }
    }
    (facts, links)
}

/// The text of an entry of a list: `- text`, `* text`, `+ text` or `1. text`.
fn list_item(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(['-', '*', '+']).or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = line.len() - rest.len();
        (1..=9)
            .contains(&number)
            .then(|| rest.strip_prefix(['.', ')']))?
    })?;
    rest.strip_prefix(' ').map(str::trim_start)
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

/// The names in all links `[[name]]` and `[[name|shown]]`.
fn note_names(line: &str) -> impl Iterator<Item = String> {
    let links = line.split("[[").skip(1);
    links.filter_map(|rest| note_name(rest.split_once("]]")?.0))
}

fn note_name(link: &str) -> Option<String> {
    let name = link.split('|').next().unwrap_or_default().trim();
    (!name.is_empty() && name.len() <= MAX_NAME_BYTES).then(|| name.to_owned())
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
