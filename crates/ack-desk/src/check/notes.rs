//! The checks within each note and between notes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ack_api::decision::DECISION_LOG;
use ack_api::memory::{Memory, Status, fold_name};
use ack_api::time::utc_day;
use ack_compare::groups::{NEARLY_EQUAL, alike};
use ack_store::folder::front_matter::{Header, split};
use ack_store::folder::lines;
use ack_store::folder::links::{Target, links, name_alone, target_paths};
use ack_store::folder::markdown::blank_comments;
use ack_store::folder::note::{self, Note, NoteStatus};
use ack_store::folder::parse;
use ack_store::folder::{Dialect, max_bytes};
use ack_sys::files;
use jiff::civil::Date;

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

struct CheckedFile<'a> {
    place: &'a NoteFolder,
    relative: &'a Path,
    shown_path: PathBuf,
}

impl Finding {
    fn error(rule: &'static str, at: (&Path, usize), message: impl Into<String>) -> Self {
        let (path, line) = (at.0.to_owned(), at.1.max(1));
        Self { severity: Severity::Error, rule, path, line, message: message.into() }
    }

    fn warning(rule: &'static str, at: (&Path, usize), message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, at, message) }
    }
}

#[derive(Default)]
pub struct CheckState {
    read: Vec<CheckedMemory>,
    findings: Vec<Finding>,
    /// Links to notes by name: file, line, name.
    note_links: Vec<(PathBuf, usize, String)>,
}

impl CheckState {
    fn error(&mut self, rule: &'static str, at: (&Path, usize), message: impl Into<String>) {
        self.findings.push(Finding::error(rule, at, message));
    }

    fn warn(&mut self, rule: &'static str, at: (&Path, usize), message: impl Into<String>) {
        self.findings.push(Finding::warning(rule, at, message));
    }

    fn find(&mut self, is_error: bool, at: (&Path, usize), rule: &'static str, message: String) {
        let finding = if is_error { Finding::error } else { Finding::warning };
        self.findings.push(finding(rule, at, message));
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
        let start = (shown_path.as_path(), 1);
        if relative.to_str().is_none() {
            let message = "its name is not UTF-8, so no reference approves it; rename it";
            self.error("unreadable", start, message);
        }
        let content = match files::read(&place.folder.join(relative), max_bytes(relative)) {
            Ok(content) => content,
            Err(error) => {
                return self.error("unreadable", start, format!("cannot be read: {error}"));
            }
        };
        if let Some(problem) = note::unreadable_reason(&content) {
            return self.error("unreadable", start, problem);
        }
        let Ok(content) = String::from_utf8(content) else {
            return self.error("unreadable", start, "is not UTF-8; save it as UTF-8");
        };
        // Editors on Windows add a byte order mark. Every reader of notes skips it.
        let content = content.trim_start_matches('\u{feff}');
        for (line, problem) in problems_by_line(content) {
            self.find(problem.is_error(), (start.0, line), problem.rule(), problem.describe());
        }
        let file = CheckedFile { place, relative, shown_path };
        if relative.as_os_str() == note::INDEX {
            self.index(&file, content);
        } else if !note::is_json_lines(relative) {
            self.note(&file, content);
        // What is not JSON may be a broken file of memories.
        } else if lines::are_memories(content) || lines::problem_without_json(content).is_some() {
            self.lines(&file, content);
        } else if relative.file_name() != Some(DECISION_LOG.as_ref()) {
            let message = "none of its first 20 lines has a `title`, so it is not read as memories";
            self.warn("schema", (&file.shown_path, 1), message);
        }
    }

    /// The memories in an index, and where it points to.
    fn index(&mut self, file: &CheckedFile<'_>, content: &str) {
        let (_, body) = split(content);
        self.links(file, body, content.lines().count() - body.lines().count());
        let dialect = Dialect::of(&file.place.folder);
        let (notes, _) =
            parse::read(dialect, file.relative, content.as_bytes(), SystemTime::UNIX_EPOCH);
        self.read.extend(notes.iter().map(|note| CheckedMemory {
            path: file.shown_path.clone(),
            line: 1,
            id: note.id.clone(),
            names: note.names.iter().map(|name| name.to_lowercase()).collect(),
            is_withdrawn: false,
            memory: memory_of_note(note),
        }));
    }

    /// Looks for the targets of a text's links. `above` is how many lines are above the text.
    fn links(&mut self, file: &CheckedFile<'_>, body: &str, above: usize) {
        let CheckedFile { place, relative, shown_path } = file;
        for link in links(&blank_comments(body)) {
            let line = above + link.line;
            match link.target {
                Target::Note(name) => self.note_links.push((shown_path.clone(), line, name)),
                Target::File(target) => {
                    let top = place.top.as_deref();
                    let paths = target_paths(&target, relative, &place.folder, top);
                    if !paths.iter().any(|path| path.exists()) {
                        self.error("dead-link", (shown_path, line), dead_link(&target));
                    }
                }
            }
        }
    }

    fn lines(&mut self, file: &CheckedFile<'_>, content: &str) {
        for (number, line) in (1..).zip(content.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let memory = match import_line::parse(line, jiff::Timestamp::UNIX_EPOCH) {
                Ok(row) => memory_of_line(row.line),
                Err(reason) => {
                    self.error("schema", (&file.shown_path, number), reason);
                    continue;
                }
            };
            self.evidence(file, number, &memory);
            self.read.push(CheckedMemory {
                path: file.shown_path.clone(),
                line: number,
                id: memory.id.clone(),
                is_withdrawn: memory.status == Status::Rejected,
                names: vec![memory.title.to_lowercase()],
                memory,
            });
        }
    }

    fn note(&mut self, file: &CheckedFile<'_>, content: &str) {
        let start = (file.shown_path.as_path(), 1);
        let document = Document::parse(content);
        let above = content.lines().count() - document.body.lines().count();
        let header = document.header();
        let is_open = !document.has_header && split(content).0.is_never_closed();
        if is_open {
            let message = "its front matter is never closed; end it with a line `---`";
            self.error("schema", start, message);
        }
        self.form(start.0, &document, &header);
        let has_type = header.text(&["type", "metadata.type", "problem_type"]).is_some();
        if !has_type && !is_open {
            let message = "has no `type`, which the Open Knowledge Format requires".to_owned();
            self.find(file.place.is_knowledge_format, start, "schema", message);
        }
        let dialect = Dialect::Markdown;
        let (notes, _) =
            parse::read(dialect, file.relative, content.as_bytes(), SystemTime::UNIX_EPOCH);
        let Some(note) = notes.into_iter().next() else {
            return;
        };
        self.values(file, &document, &header, &note);
        let has_text = !blank_comments(&document.body).trim().is_empty();
        if !has_text && note.subtitle.is_none() && note.facts.is_empty() {
            self.error("schema", start, "is empty: it has no text");
        }
        self.links(file, &document.body, above);
        let memory = memory_of_note(&note);
        self.evidence(file, line_of(&document, "files"), &memory);
        self.read.push(CheckedMemory {
            path: file.shown_path.clone(),
            line: line_of(&document, "id"),
            id: memory.id.clone(),
            names: note.names.iter().map(|name| name.to_lowercase()).collect(),
            is_withdrawn: note.status == NoteStatus::Withdrawn,
            memory,
        });
    }

    /// The form of a note's header: whether it is YAML, and each key is there once and has a value
    /// of its kind.
    fn form(&mut self, shown_path: &Path, document: &Document, header: &Header) {
        let yaml = yaml::check(&document.front_matter());
        let is_yaml = yaml.is_ok();
        if let Err(problem) = yaml {
            // The opening `---` is line 1.
            self.error("schema", (shown_path, problem.line + 1), problem.message);
        }
        let mut seen_keys: HashSet<&str> = HashSet::new();
        for (key, line) in document.keys() {
            if !seen_keys.insert(key) {
                let message = format!("the key `{key}` appears twice; the last one counts");
                self.error("schema", (shown_path, line), message);
            }
        }
        for key in ["stale_after", "created", "date"] {
            if let Some(value) = header.text(&[key]).filter(|value| !is_date(value)) {
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
                let is_id = *key == "id";
                let next = if is_id { parse::UNUSED_ID } else { "write one text" };
                let message = format!("`{key}` is {nested}, where one text belongs; {next}");
                self.find(is_id, (shown_path, line_of(document, key)), "schema", message);
            }
        }
    }

    /// The values of a note's header: an id and a status that can be used, a day that is not past.
    fn values(
        &mut self,
        file: &CheckedFile<'_>,
        document: &Document,
        header: &Header,
        note: &Note,
    ) {
        let at = |key| (file.shown_path.as_path(), line_of(document, key));
        let id = header.text(&["id"]).filter(|_| header.nested("id").is_none());
        if let Some(id) = id.filter(|_| note.declared_id.is_none()) {
            let message = format!(
                "the id `{id}` cannot be used; at most 200 characters on one line, not ending \
                 with `@edited`"
            );
            self.error("schema", at("id"), message);
        }
        let status = header.text(&["status"]);
        if let Some(status) = status.filter(|status| NoteStatus::parse(status).is_none()) {
            self.warn("schema", at("status"), parse::unknown_status(&status));
        }
        let is_withdrawn = note.status == NoteStatus::Withdrawn;
        if let Some(past) = expired_on(note, file.place.today).filter(|_| !is_withdrawn) {
            let message = format!(
                "was valid until {past}, the day its author set; see whether it still is, and set a \
                 later day or `status: deprecated`"
            );
            self.warn("past-day", at("stale_after"), message);
        }
    }

    /// Looks for the files that a memory cites. Skips memories of another project, whose files are
    /// not here.
    fn evidence(&mut self, file: &CheckedFile<'_>, line: usize, memory: &Memory) {
        let NoteFolder { top: Some(top), repository, .. } = file.place else { return };
        let is_elsewhere = |project: &String| {
            repository.as_ref().is_none_or(|name| fold_name(name) != fold_name(project))
        };
        if memory.project.as_ref().is_some_and(is_elsewhere) {
            return;
        }
        for cited in &memory.files {
            let path = cited.split(':').next().unwrap_or_default().replace('\\', "/");
            let path = path.trim_start_matches("./");
            let is_looked_for = !path.is_empty()
                && !path.starts_with(['/', '~'])
                && !path.contains(['*', '?', '{', '<'])
                && !cited.contains("://")
                && !path.split('/').any(|part| part == "..");
            if is_looked_for && !top.join(path).exists() {
                let message = format!(
                    "cites `{cited}`, which is no longer in the repository; see whether it still \
                     holds"
                );
                self.warn("missing-file", (&file.shown_path, line), message);
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
        let is_error = |finding: &&Finding| finding.severity == Severity::Error;
        let errors = self.findings.iter().filter(is_error).count();
        CheckReport {
            files,
            memories: self.read.len(),
            errors,
            warnings: self.findings.len() - errors,
            findings: self.findings,
        }
    }

    fn same_ids(&mut self) {
        let mut first: HashMap<&str, &CheckedMemory> = HashMap::new();
        for read in &self.read {
            let other = *first.entry(&read.id).or_insert(read);
            if !std::ptr::eq(other, read) {
                let (path, line) = (other.path.display(), other.line);
                let id = &read.id;
                let message = format!(
                    "has the id `{id}`, as does `{path}` (line {line}); give it another one"
                );
                let at = (read.path.as_path(), read.line);
                self.findings.push(Finding::error("duplicate-id", at, message));
            }
        }
    }

    fn dead_names(&mut self) {
        let read = self.read.iter();
        let names: HashSet<&str> =
            read.flat_map(|read| read.names.iter().chain([&read.id]).map(String::as_str)).collect();
        let is_known =
            |name: &str| names.contains(name) || names.contains(name.to_lowercase().as_str());
        for (path, line, name) in &self.note_links {
            if !is_known(name) && !name_alone(name).is_some_and(is_known) {
                let message = format!("links to the note `{name}`, which does not exist");
                self.findings.push(Finding::warning("dead-link", (path, *line), message));
            }
        }
    }

    fn near_duplicates(&mut self) {
        let kept: Vec<&CheckedMemory> =
            self.read.iter().filter(|read| !read.is_withdrawn).collect();
        let memories: Vec<&Memory> = kept.iter().map(|read| &read.memory).collect();
        let mut found: Vec<(usize, usize)> = Vec::new();
        for group in alike(&memories, NEARLY_EQUAL) {
            if let [first, later @ ..] = group.as_slice() {
                found.extend(later.iter().map(|later| (*later, *first)));
            }
        }
        found.sort_unstable();
        for (later, earlier) in found {
            if let (Some(later), Some(earlier)) = (kept.get(later), kept.get(earlier)) {
                let (id, path) = (&earlier.id, earlier.path.display());
                let message = format!(
                    "has nearly the words of `{id}` ({path}); if both say the same, keep one of \
                     them"
                );
                let at = (later.path.as_path(), later.line);
                self.findings.push(Finding::warning("near-duplicate", at, message));
            }
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
    value.parse().ok().map(utc_day).or_else(|| value.parse().ok())
}

fn is_date(value: &str) -> bool {
    value.parse::<jiff::Timestamp>().is_ok()
        || value.parse::<Date>().is_ok()
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

fn memory_of_line(line: ImportLine) -> Memory {
    let rejected = line.status.as_deref() == Some("rejected");
    Memory {
        id: line.id.unwrap_or_default(),
        project: line.project,
        title: line.title,
        subtitle: line.subtitle,
        facts: line.facts,
        concepts: line.concepts,
        files: line.files,
        narrative: line.narrative,
        status: if rejected { Status::Rejected } else { Status::Staging },
        ..Memory::default()
    }
}
