//! The checks within each note and between notes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ack_api::decision::DECISION_LOG;
use ack_api::memory::{Memory, Status};
use ack_compare::groups::{NEARLY_EQUAL, alike};
use ack_store::folder::front_matter::split;
use ack_store::folder::lines;
use ack_store::folder::links::{Target, links, name_alone, target_paths};
use ack_store::folder::markdown::blank_comments;
use ack_store::folder::note::{self, Note, NoteStatus};
use ack_store::folder::parse;
use ack_store::folder::{Dialect, max_bytes};
use ack_sys::files;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::yaml;
use super::{CheckReport, Finding, NoteFolder, Severity};
use crate::document::Document;
use ack_api::import_line::{self, ImportLine};
use ack_flags::sharing::problems_by_line;

/// The keys of front matter whose value is one text.
const TEXT_KEYS: &[&str] = &[
    "id",
    "title",
    "name",
    "description",
    "summary",
    "type",
    "status",
    "project",
    "created",
    "date",
];

pub fn dead_link(target: &str) -> String {
    format!("links to `{target}`, which does not exist")
}

struct CheckedMemory {
    path: PathBuf,
    line: usize,
    id: String,
    memory: Memory,
    /// The names by which notes link to it, in lower case.
    names: Vec<String>,
    is_withdrawn: bool,
}

/// What was read and found so far.
#[derive(Default)]
pub struct CheckState {
    read: Vec<CheckedMemory>,
    findings: Vec<Finding>,
    /// Links to notes by name: file, line, name.
    note_links: Vec<(PathBuf, usize, String)>,
}

impl CheckState {
    fn find(
        &mut self,
        severity: Severity,
        rule: &'static str,
        at: (&Path, usize),
        message: impl Into<String>,
    ) {
        self.findings.push(Finding {
            severity,
            rule,
            path: at.0.to_owned(),
            line: at.1.max(1),
            message: message.into(),
        });
    }

    fn error(&mut self, rule: &'static str, at: (&Path, usize), message: impl Into<String>) {
        self.find(Severity::Error, rule, at, message);
    }

    fn warn(&mut self, rule: &'static str, at: (&Path, usize), message: impl Into<String>) {
        self.find(Severity::Warning, rule, at, message);
    }

    pub fn report_unreadable(&mut self, place: &NoteFolder, relative: &Path, reason: &str) {
        let message = format!("cannot be opened: {reason}");
        self.error("unreadable", (&place.shown_path(relative), 1), message);
    }

    pub fn report_instructions(&mut self, place: &NoteFolder, relative: &Path) {
        let message = "has the name of instructions for agents, which hosts load themselves, so it \
                       is left out and never served; rename it if it should be a note";
        self.warn("instructions", (&place.shown_path(relative), 1), message);
    }

    pub fn read(&mut self, place: &NoteFolder, relative: &Path) {
        let shown_path = place.shown_path(relative);
        if relative.to_str().is_none() {
            let message = "its name is not UTF-8, so no reference approves it; rename it";
            self.error("unreadable", (&shown_path, 1), message);
        }
        let content = match files::read(&place.folder.join(relative), max_bytes(relative)) {
            Ok(content) => content,
            Err(error) => {
                return self.error(
                    "unreadable",
                    (&shown_path, 1),
                    format!("cannot be read: {error}"),
                );
            }
        };
        if let Some(problem) = note::unreadable_reason(&content) {
            return self.error("unreadable", (&shown_path, 1), problem);
        }
        let Ok(content) = String::from_utf8(content) else {
            let message = "is not UTF-8; save it as UTF-8";
            return self.error("unreadable", (&shown_path, 1), message);
        };
        // Editors on Windows add a byte order mark. Every reader of notes skips it.
        let content = content.trim_start_matches('\u{feff}');
        for (line, problem) in problems_by_line(content) {
            let severity = if problem.is_error() { Severity::Error } else { Severity::Warning };
            self.find(severity, problem.rule(), (&shown_path, line), problem.describe());
        }
        if note::is_json_lines(relative) {
            // What is not JSON may be a broken file of memories.
            if lines::are_memories(content) || lines::problem_without_json(content).is_some() {
                self.lines(place, &shown_path, content);
            } else if relative.file_name() != Some(DECISION_LOG.as_ref()) {
                let message =
                    "none of its first 20 lines has a `title`, so it is not read as memories";
                self.warn("schema", (&shown_path, 1), message);
            }
        } else if relative.as_os_str() == note::INDEX {
            self.index(place, relative, &shown_path, content);
        } else {
            self.note(place, relative, &shown_path, content);
        }
    }

    /// The memories in an index, and where it points to.
    fn index(&mut self, place: &NoteFolder, relative: &Path, shown_path: &Path, content: &str) {
        let (_, body) = split(content);
        let above = content.lines().count() - body.lines().count();
        self.links(place, (relative, shown_path), body, above);
        let dialect = Dialect::of(&place.folder);
        let (notes, _) = parse::read(dialect, relative, content.as_bytes(), SystemTime::UNIX_EPOCH);
        for note in notes {
            self.read.push(CheckedMemory {
                path: shown_path.to_owned(),
                line: 1,
                id: note.id.clone(),
                names: note.names.iter().map(|name| name.to_lowercase()).collect(),
                is_withdrawn: false,
                memory: memory_of_note(&note),
            });
        }
    }

    /// Looks for the targets of a text's links. `above` is how many lines are above the text.
    fn links(
        &mut self,
        place: &NoteFolder,
        (relative, shown_path): (&Path, &Path),
        body: &str,
        above: usize,
    ) {
        for link in links(&blank_comments(body)) {
            let at = (shown_path, above + link.line);
            match link.target {
                Target::Note(name) => self.note_links.push((at.0.to_owned(), at.1, name)),
                Target::File(target) => {
                    let top = place.top.as_deref();
                    let paths = target_paths(&target, relative, &place.folder, top);
                    if !paths.iter().any(|path| path.exists()) {
                        self.error("dead-link", at, dead_link(&target));
                    }
                }
            }
        }
    }

    fn lines(&mut self, place: &NoteFolder, shown_path: &Path, content: &str) {
        for (number, line) in (1..).zip(content.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let row = match import_line::parse(line, jiff::Timestamp::UNIX_EPOCH) {
                Ok(row) => row,
                Err(reason) => {
                    self.error("schema", (shown_path, number), reason);
                    continue;
                }
            };
            let memory = memory_of_line(&row.line);
            self.evidence(place, shown_path, number, &memory);
            self.read.push(CheckedMemory {
                path: shown_path.to_owned(),
                line: number,
                id: memory.id.clone(),
                is_withdrawn: memory.status == Status::Rejected,
                names: vec![memory.title.to_lowercase()],
                memory,
            });
        }
    }

    fn note(&mut self, place: &NoteFolder, relative: &Path, shown_path: &Path, content: &str) {
        let document = Document::parse(content);
        let above = content.lines().count() - document.body.lines().count();
        let header = document.header();
        let is_open = !document.has_header && split(content).0.is_never_closed();
        if is_open {
            let message = "its front matter is never closed; end it with a line `---`";
            self.error("schema", (shown_path, 1), message);
        }
        self.form(shown_path, &document);
        let has_type = header.text(&["type", "metadata.type", "problem_type"]).is_some();
        if !has_type && !is_open {
            let message = "has no `type`, which the Open Knowledge Format requires";
            let severity =
                if place.is_knowledge_format { Severity::Error } else { Severity::Warning };
            self.find(severity, "schema", (shown_path, 1), message);
        }
        let (notes, _) =
            parse::read(Dialect::Markdown, relative, content.as_bytes(), SystemTime::UNIX_EPOCH);
        let Some(note) = notes.into_iter().next() else {
            return;
        };
        self.values(place, shown_path, &document, &note);
        if blank_comments(&document.body).trim().is_empty()
            && note.subtitle.is_none()
            && note.facts.is_empty()
        {
            self.error("schema", (shown_path, 1), "is empty: it has no text");
        }
        self.links(place, (relative, shown_path), &document.body, above);
        let memory = memory_of_note(&note);
        self.evidence(place, shown_path, line_of(&document, "files"), &memory);
        self.read.push(CheckedMemory {
            path: shown_path.to_owned(),
            line: line_of(&document, "id"),
            id: memory.id.clone(),
            names: note.names.iter().map(|name| name.to_lowercase()).collect(),
            is_withdrawn: note.status == NoteStatus::Withdrawn,
            memory,
        });
    }

    /// The form of a note's header: whether it is YAML, and each key is there once and has a value
    /// of its kind.
    fn form(&mut self, shown_path: &Path, document: &Document) {
        let header = document.header();
        let yaml = yaml::check(&document.front_matter());
        let is_yaml = yaml.is_ok();
        if let Err(problem) = yaml {
            // The opening `---` is line 1.
            let line = problem.line + 1;
            self.error("schema", (shown_path, line), problem.message);
        }
        let mut seen_keys: HashSet<&str> = HashSet::new();
        for (key, line) in document.keys() {
            if !seen_keys.insert(key) {
                let message = format!("the key `{key}` appears twice; the last one counts");
                self.error("schema", (shown_path, line), message);
            }
        }
        for key in ["stale_after", "created", "date"] {
            let value = header.text(&[key]).filter(|value| !is_date(value));
            if let Some(value) = value {
                let message = format!(
                    "`{key}` is `{value}`; write a day (2026-03-14) or an RFC \
                     3339 date and time"
                );
                self.error("schema", (shown_path, line_of(document, key)), message);
            }
        }
        for key in TEXT_KEYS {
            // What is wrong with the header as YAML was said above.
            if let Some(nested) = header.nested(key).filter(|_| is_yaml) {
                let (severity, next) = match *key {
                    "id" => (Severity::Error, parse::UNUSED_ID),
                    _ => (Severity::Warning, "write one text"),
                };
                let message = format!("`{key}` is {nested}, where one text belongs; {next}");
                let at = (shown_path, line_of(document, key));
                self.find(severity, "schema", at, message);
            }
        }
    }

    /// The values of a note's header: an id and a status that can be used, a day that is not past.
    fn values(&mut self, place: &NoteFolder, shown_path: &Path, document: &Document, note: &Note) {
        let header = document.header();
        if header.nested("id").is_none()
            && let (Some(id), None) = (header.text(&["id"]), &note.declared_id)
        {
            let message = format!(
                "the id `{id}` cannot be used; at most 200 characters on one line, not ending \
                 with `@edited`"
            );
            self.error("schema", (shown_path, line_of(document, "id")), message);
        }
        let status = header.text(&["status"]);
        if let Some(status) = status.filter(|status| NoteStatus::parse(status).is_none()) {
            let message = parse::unknown_status(&status);
            self.warn("schema", (shown_path, line_of(document, "status")), message);
        }
        let is_withdrawn = note.status == NoteStatus::Withdrawn;
        if let Some(past) = expired_on(note, place.today).filter(|_| !is_withdrawn) {
            let message = format!(
                "was valid until {past}, the day its author set; see whether it still is, and set a \
                 later day or `status: deprecated`"
            );
            let at = (shown_path, line_of(document, "stale_after"));
            self.warn("past-day", at, message);
        }
    }

    /// Looks for the files that a memory cites. Skips memories of another project, whose files are
    /// not here.
    fn evidence(&mut self, place: &NoteFolder, shown_path: &Path, line: usize, memory: &Memory) {
        let Some(top) = &place.top else { return };
        let fold = ack_api::memory::fold_name;
        let is_elsewhere = memory.project.as_ref().is_some_and(|project| {
            place.repository.as_ref().map(|name| fold(name)) != Some(fold(project))
        });
        if is_elsewhere {
            return;
        }
        for file in &memory.files {
            let path = file.split(':').next().unwrap_or_default().replace('\\', "/");
            let path = path.trim_start_matches("./");
            let is_looked_for = !path.is_empty()
                && !path.starts_with(['/', '~'])
                && !path.contains(['*', '?', '{', '<'])
                && !file.contains("://")
                && !path.split('/').any(|part| part == "..");
            if is_looked_for && !top.join(path).exists() {
                let message = format!(
                    "cites `{file}`, which is no longer in the repository; see whether it still \
                     holds"
                );
                self.warn("missing-file", (shown_path, line), message);
            }
        }
    }

    /// Compares the notes with each other and sorts the findings.
    pub fn report(mut self, files: usize) -> CheckReport {
        self.same_ids();
        self.dead_names();
        self.near_duplicates();
        self.findings.sort_by(|a, b| {
            (&a.path, a.line, a.severity, a.rule).cmp(&(&b.path, b.line, b.severity, b.rule))
        });
        let count = |severity| {
            let findings = self.findings.iter();
            findings.filter(|finding| finding.severity == severity).count()
        };
        CheckReport {
            files,
            memories: self.read.len(),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            findings: self.findings,
        }
    }

    fn same_ids(&mut self) {
        let mut first: HashMap<&str, &CheckedMemory> = HashMap::new();
        let mut found = Vec::new();
        for read in &self.read {
            match first.get(read.id.as_str()) {
                None => drop(first.insert(&read.id, read)),
                Some(other) => found.push((
                    read.path.clone(),
                    read.line,
                    format!(
                        "has the id `{}`, as does `{}` (line {}); give it another one",
                        read.id,
                        other.path.display(),
                        other.line
                    ),
                )),
            }
        }
        for (path, line, message) in found {
            self.error("duplicate-id", (&path, line), message);
        }
    }

    fn dead_names(&mut self) {
        let names: HashSet<&str> = self
            .read
            .iter()
            .flat_map(|read| read.names.iter().map(String::as_str).chain([read.id.as_str()]))
            .collect();
        let dead: Vec<(PathBuf, usize, String)> = self
            .note_links
            .iter()
            .filter(|(.., name)| {
                let is_known = |name: &str| {
                    names.contains(name) || names.contains(name.to_lowercase().as_str())
                };
                !is_known(name) && !name_alone(name).is_some_and(is_known)
            })
            .cloned()
            .collect();
        for (path, line, name) in dead {
            let message = format!("links to the note `{name}`, which does not exist");
            self.warn("dead-link", (&path, line), message);
        }
    }

    fn near_duplicates(&mut self) {
        let kept: Vec<usize> = (0..self.read.len())
            .filter(|at| self.read.get(*at).is_some_and(|read| !read.is_withdrawn))
            .collect();
        let memories: Vec<&Memory> =
            kept.iter().filter_map(|at| Some(&self.read.get(*at)?.memory)).collect();
        let mut found: Vec<(usize, usize)> = Vec::new();
        for group in alike(&memories, NEARLY_EQUAL) {
            let mut members = group.iter().filter_map(|at| kept.get(*at).copied());
            if let Some(first) = members.next() {
                found.extend(members.map(|later| (later, first)));
            }
        }
        found.sort_unstable();
        for (later, earlier) in found {
            let (Some(later), Some(earlier)) = (self.read.get(later), self.read.get(earlier))
            else {
                continue;
            };
            let (path, line) = (later.path.clone(), later.line);
            let message = format!(
                "has nearly the words of `{}` ({}); if both say the same, keep one of them",
                earlier.id,
                earlier.path.display()
            );
            self.warn("near-duplicate", (&path, line), message);
        }
    }
}

/// The line of a key in a note's header, or the first line.
fn line_of(document: &Document, key: &str) -> usize {
    let mut keys = document.keys();
    keys.find(|(known, _)| *known == key).map_or(1, |(_, line)| line)
}

/// The `stale_after` day of a note, if it has passed and nobody has reviewed the note since.
fn expired_on(note: &Note, today: Date) -> Option<Date> {
    let day = day(note.stale_after.as_ref()?).filter(|day| *day < today)?;
    let reviewed = note.reviewed_at.as_deref().and_then(self::day);
    reviewed.is_none_or(|reviewed| reviewed <= day).then_some(day)
}

fn day(value: &str) -> Option<Date> {
    let of_instant = |instant: jiff::Timestamp| instant.to_zoned(TimeZone::UTC).date();
    let instant = value.parse().ok().map(of_instant);
    instant.or_else(|| value.parse().ok())
}

fn is_date(value: &str) -> bool {
    value.parse::<jiff::Timestamp>().is_ok()
        || value.parse::<jiff::civil::Date>().is_ok()
        || value.parse::<jiff::civil::DateTime>().is_ok()
}

/// The fields of a note that the comparison needs.
fn memory_of_note(note: &Note) -> Memory {
    Memory {
        id: note.declared_id.clone().unwrap_or_else(|| note.id.clone()),
        project: note.project.clone(),
        title: note.title.clone(),
        subtitle: note.subtitle.clone(),
        facts: note.facts.clone(),
        concepts: note.tags.clone(),
        files: note.files.clone(),
        narrative: Some(note.text.clone()),
        ..Memory::default()
    }
}

fn memory_of_line(line: &ImportLine) -> Memory {
    let rejected = line.status.as_deref() == Some("rejected");
    Memory {
        id: line.id.clone().unwrap_or_default(),
        project: line.project.clone(),
        title: line.title.clone(),
        subtitle: line.subtitle.clone(),
        facts: line.facts.clone(),
        concepts: line.concepts.clone(),
        files: line.files.clone(),
        narrative: line.narrative.clone(),
        status: if rejected { Status::Rejected } else { Status::Staging },
        ..Memory::default()
    }
}
