//! A file of JSON lines among notes: each line is a memory, in the form that `import` reads.

use ack_api::import_line::{self, Row};
use jiff::Timestamp;

use super::note::{Note, NoteStatus};

/// How many lines are examined to find out what a file contains.
const SAMPLE_LINES: usize = 20;

/// The memories in a file, and what is wrong with lines that hold none.
#[derive(Debug, Default)]
pub struct Lines {
    /// The memories.
    pub notes: Vec<Note>,
    /// What is wrong with one line or several, as the end of a sentence about the file.
    pub problem: Option<String>,
}

impl Lines {
    /// The memories, and what is wrong.
    pub fn into_parts(self) -> (Vec<Note>, Option<String>) {
        (self.notes, self.problem)
    }
}

/// The lines that were left out.
#[derive(Debug, Default)]
pub struct RefusedLines {
    first: Option<(usize, String)>,
    count: usize,
}

impl RefusedLines {
    /// Adds a line, by its number.
    pub fn add(&mut self, number: usize, reason: String) {
        self.first.get_or_insert((number, reason));
        self.count += 1;
    }

    /// The first one and the number of the others, as the end of a sentence about the file.
    pub fn describe(&self) -> Option<String> {
        let (number, reason) = self.first.as_ref()?;
        let more = match self.count {
            1 => String::new(),
            2 => " (and 1 more line)".to_owned(),
            count => format!(" (and {} more lines)", count - 1),
        };
        Some(format!("line {number} was left out: {reason}{more}"))
    }
}

/// Whether this is a file of memories: JSON lines may hold anything, and a memory has a title.
pub fn are_memories(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.take(SAMPLE_LINES).any(|line| {
        serde_json::from_str::<serde_json::Value>(line)
            .is_ok_and(|value| value.get("title").is_some_and(serde_json::Value::is_string))
    })
}

/// What is wrong with a file in which no line is JSON, as the end of a sentence about the file: it
/// may be a broken file of memories.
pub fn problem_without_json(text: &str) -> Option<String> {
    let mut refused = RefusedLines::default();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<serde_json::Value>(line) {
            Ok(_) => return None,
            Err(error) => refused.add(number, ack_api::text::json_line_problem(&error)),
        }
    }
    refused.describe()
}

/// Reads a file of memories. A broken line is left out and reported, and so is a memory with the id
/// of an earlier line.
pub fn read(text: &str) -> Lines {
    let mut lines = Lines::default();
    let mut refused = RefusedLines::default();
    let mut ids = rustc_hash::FxHashSet::default();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        match import_line::parse(line, Timestamp::UNIX_EPOCH) {
            Ok(row) if ids.insert(row.id.clone()) => lines.notes.push(note(row)),
            Ok(row) => refused.add(
                number,
                format!("an earlier line has the id `{}` too", row.id),
            ),
            Err(reason) => refused.add(number, reason),
        }
    }
    lines.problem = refused.describe();
    lines
}

fn note(row: Row) -> Note {
    let Row {
        line,
        id,
        has_status,
        has_date,
        ..
    } = row;
    let stated_status = line.status.filter(|_| has_status);
    Note {
        names: vec![id.clone(), line.title.clone()],
        id,
        // `import` refuses other words.
        status: stated_status
            .map(|word| NoteStatus::parse(&word).unwrap_or(NoteStatus::Draft))
            .unwrap_or_default(),
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
        links: line
            .superseded_by
            .map(|newer| ("superseded_by".to_owned(), newer))
            .into_iter()
            .collect(),
        ..Note::default()
    }
}
