//! A file of JSON lines among notes: each line is a memory, in the form that `import` reads.

use ack_api::import_line::{self, Row};
use jiff::Timestamp;

use super::note::{Note, NoteStatus};
use super::statements::SUPERSEDED_BY;

const SAMPLE_LINES: usize = 20;

/// Passes each line that is not blank to `read`. Returns the reason for the first one that it
/// refuses and the number of the others, as the end of a sentence about the file.
pub fn read_lines(text: &str, mut read: impl FnMut(&str) -> Result<(), String>) -> Option<String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let mut refused = lines.filter_map(|(number, line)| Some((number, read(line).err()?)));
    let (number, reason) = refused.next()?;
    let more = match refused.count() {
        0 => String::new(),
        1 => " (and 1 more line)".to_owned(),
        count => format!(" (and {count} more lines)"),
    };
    Some(format!("line {number} was left out: {reason}{more}"))
}

/// Whether this is a file of memories: JSON lines may hold anything, and a memory has a title.
pub fn are_memories(text: &str) -> bool {
    text.lines().filter(|line| !line.trim().is_empty()).take(SAMPLE_LINES).any(|line| {
        serde_json::from_str::<serde_json::Value>(line)
            .is_ok_and(|value| value.get("title").is_some_and(serde_json::Value::is_string))
    })
}

/// What is wrong with a file without JSON: it may be a broken file of memories.
pub fn problem_without_json(text: &str) -> Option<String> {
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).map(drop);
    if text.lines().any(|line| parse(line).is_ok()) {
        return None;
    }
    read_lines(text, |line| parse(line).map_err(|error| ack_api::text::json_line_problem(&error)))
}

/// Reads a file of memories. A line that is broken, or repeats an id, is left out.
pub fn read(text: &str) -> (Vec<Note>, Option<String>) {
    let mut notes = Vec::new();
    let mut ids = rustc_hash::FxHashSet::default();
    let problem = read_lines(text, |line| {
        let row = import_line::parse(line, Timestamp::UNIX_EPOCH)?;
        if !ids.insert(row.id.clone()) {
            return Err(format!("an earlier line has the id `{}` too", row.id));
        }
        notes.push(note(row));
        Ok(())
    });
    (notes, problem)
}

fn note(row: Row) -> Note {
    let Row { line, id, has_status, has_date, .. } = row;
    let word = line.status.filter(|_| has_status);
    // `import` refuses other words.
    let meaning = |word: &str| NoteStatus::parse(word).unwrap_or(NoteStatus::Draft);
    let status = word.as_deref().map_or(NoteStatus::Plain, meaning);
    Note {
        names: vec![id.clone(), line.title.clone()],
        id,
        status,
        withheld_by: word.filter(|_| status.withholds()),
        reviewed_by: line.reviewed_by,
        reviewed_at: line.reviewed_at,
        title: line.title,
        subtitle: line.subtitle,
        kind: line.kind,
        project: line.project,
        session: line.session.or(line.session_id),
        facts: line.facts,
        tags: line.concepts,
        files: line.files,
        text: line.narrative.unwrap_or_default(),
        created: line.created_at.filter(|_| has_date),
        updated: line.updated_at,
        links: Vec::from_iter(line.superseded_by.map(|newer| (SUPERSEDED_BY.to_owned(), newer))),
        ..Note::default()
    }
}
