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
use ack_worktree::repository::Repository;
use jiff::civil::Date;

use super::yaml;
use super::{CheckReport, Finding, Severity};
use crate::document::Document;
use ack_api::import_line;
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
    memory: Memory,
    /// The names by which notes link to it, in lower case.
    names: Vec<String>,
}

struct CheckedFile<'a> {
    relative: &'a Path,
    shown_path: &'a Path,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, is_error: bool, rule: &'static str, at: (&Path, usize), message: String) {
        let severity = if is_error { Severity::Error } else { Severity::Warning };
        let (path, line) = (at.0.to_owned(), at.1.max(1));
        self.0.push(Finding { severity, rule, path, line, message });
    }

    fn error(&mut self, rule: &'static str, at: (&Path, usize), message: impl Into<String>) {
        self.add(true, rule, at, message.into());
    }

    fn warn(&mut self, rule: &'static str, at: (&Path, usize), message: impl Into<String>) {
        self.add(false, rule, at, message.into());
    }
}

pub struct FolderCheck {
    /// The folder, or the parent folder of the single file.
    folder: PathBuf,
    /// The top of the repository's working tree.
    top: Option<PathBuf>,
    repository: Option<String>,
    today: Date,
    dialect: Dialect,
    /// How many files were read or could not be.
    pub files: usize,
    read: Vec<CheckedMemory>,
    findings: Findings,
    /// Links to notes by name: file, line, name.
    note_links: Vec<(PathBuf, usize, String)>,
}

impl FolderCheck {
    pub fn new(folder: PathBuf, today: Date) -> Self {
        let repository = Repository::discover(&folder, None);
        Self {
            dialect: Dialect::of(&folder),
            repository: repository.as_ref().and_then(Repository::name),
            top: repository.map(|repository| repository.work_tree),
            folder,
            today,
            files: 0,
            read: Vec::new(),
            findings: Findings::default(),
            note_links: Vec::new(),
        }
    }

    /// The path of a file as findings show it. It is UTF-8, as JSON requires.
    fn shown_path(&self, relative: &Path) -> PathBuf {
        let full = self.folder.join(relative);
        let top = self.top.as_deref().unwrap_or(&self.folder);
        PathBuf::from(full.strip_prefix(top).unwrap_or(&full).to_string_lossy().into_owned())
    }

    pub fn report_unreadable(&mut self, relative: &Path, reason: &str) {
        let path = self.shown_path(relative);
        self.findings.error("unreadable", (&path, 1), format!("cannot be opened: {reason}"));
    }

    pub fn report_instructions(&mut self, relative: &Path) {
        let message = "has the name of instructions for agents, which hosts load themselves, so it \
                       is left out and never served; rename it if it should be a note";
        self.findings.warn("instructions", (&self.shown_path(relative), 1), message);
    }

    pub fn read(&mut self, relative: &Path) {
        self.files += 1;
        let shown_path = &self.shown_path(relative);
        let start = (shown_path.as_path(), 1);
        if relative.to_str().is_none() {
            let message = "its name is not UTF-8, so no reference approves it; rename it";
            self.findings.error("unreadable", start, message);
        }
        let read = files::read(&self.folder.join(relative), max_bytes(relative));
        let content = match read.map_err(|error| format!("cannot be read: {error}")).and_then(utf8)
        {
            Ok(content) => content,
            Err(problem) => return self.findings.error("unreadable", start, problem),
        };
        // Editors on Windows add a byte order mark. Every reader of notes skips it.
        let content = content.trim_start_matches('\u{feff}');
        for (line, problem) in problems_by_line(content) {
            let at = (start.0, line);
            self.findings.add(problem.is_error(), problem.rule(), at, problem.describe());
        }
        let file = CheckedFile { relative, shown_path };
        if relative.as_os_str() == note::INDEX {
            self.index(&file, content);
        } else if !note::is_json_lines(relative) {
            self.note(&file, content);
        // What is not JSON may be a broken file of memories.
        } else if lines::are_memories(content) || lines::problem_without_json(content).is_some() {
            self.lines(&file, content);
        } else if relative.file_name() != Some(DECISION_LOG.as_ref()) {
            let message = "none of its first 20 lines has a `title`, so it is not read as memories";
            self.findings.warn("schema", start, message);
        }
    }

    /// Keeps a memory for the comparison with the others.
    fn keep(&mut self, file: &CheckedFile<'_>, line: usize, memory: Memory, names: &[String]) {
        let names = names.iter().map(|name| name.to_lowercase()).collect();
        let path = file.shown_path.to_owned();
        self.read.push(CheckedMemory { path, line, memory, names });
    }

    /// The memories in an index, and where it points to.
    fn index(&mut self, file: &CheckedFile<'_>, content: &str) {
        let (_, body) = split(content);
        self.links(file, body, content.lines().count() - body.lines().count());
        let (notes, _) =
            parse::read(self.dialect, file.relative, content.as_bytes(), SystemTime::UNIX_EPOCH);
        for note in &notes {
            self.keep(file, 1, memory_of_note(note), &note.names);
        }
    }

    /// Looks for the targets of a text's links. `above` is how many lines are above the text.
    fn links(&mut self, file: &CheckedFile<'_>, body: &str, above: usize) {
        let CheckedFile { relative, shown_path } = *file;
        for link in links(&blank_comments(body)) {
            let line = above + link.line;
            match link.target {
                Target::Note(name) => self.note_links.push((shown_path.to_owned(), line, name)),
                Target::File(target) => {
                    let top = self.top.as_deref();
                    let paths = target_paths(&target, relative, &self.folder, top);
                    if !paths.iter().any(|path| path.exists()) {
                        self.findings.error("dead-link", (shown_path, line), dead_link(&target));
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
            match import_line::parse(line, jiff::Timestamp::UNIX_EPOCH) {
                Ok(row) => {
                    let memory = Memory { status: row.status, ..Memory::from(row.line) };
                    self.evidence(file, number, &memory);
                    let names = [memory.title.clone()];
                    self.keep(file, number, memory, &names);
                }
                Err(reason) => self.findings.error("schema", (file.shown_path, number), reason),
            }
        }
    }

    fn note(&mut self, file: &CheckedFile<'_>, content: &str) {
        let start = (file.shown_path, 1);
        let document = Document::parse(content);
        let above = content.lines().count() - document.body.lines().count();
        let header = document.header();
        let is_open = !document.has_header && split(content).0.is_never_closed();
        if is_open {
            let message = "its front matter is never closed; end it with a line `---`";
            self.findings.error("schema", start, message);
        }
        self.form(start.0, &document, &header);
        let has_type = header.text(&["type", "metadata.type", "problem_type"]).is_some();
        if !has_type && !is_open {
            let message = "has no `type`, which the Open Knowledge Format requires".to_owned();
            let is_required = self.dialect == Dialect::Knowledge;
            self.findings.add(is_required, "schema", start, message);
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
            self.findings.error("schema", start, "is empty: it has no text");
        }
        self.links(file, &document.body, above);
        let memory = memory_of_note(&note);
        self.evidence(file, line_of(&document, "files"), &memory);
        self.keep(file, line_of(&document, "id"), memory, &note.names);
    }

    /// The form of a note's header: whether it is YAML, and each key is there once and has a value
    /// of its kind.
    fn form(&mut self, shown_path: &Path, document: &Document, header: &Header) {
        let yaml = yaml::check(&document.front_matter());
        let is_yaml = yaml.is_ok();
        if let Err(problem) = yaml {
            // The opening `---` is line 1.
            self.findings.error("schema", (shown_path, problem.line + 1), problem.message);
        }
        let mut seen_keys: HashSet<&str> = HashSet::new();
        for (key, line) in document.keys() {
            if !seen_keys.insert(key) {
                let message = format!("the key `{key}` appears twice; the last one counts");
                self.findings.error("schema", (shown_path, line), message);
            }
        }
        for key in ["stale_after", "created", "date"] {
            if let Some(value) = header.text(&[key]).filter(|value| !is_date(value)) {
                let message = format!(
                    "`{key}` is `{value}`; write a day (2026-03-14) or an RFC \
                     3339 date and time"
                );
                self.findings.error("schema", (shown_path, line_of(document, key)), message);
            }
        }
        for key in TEXT_KEYS {
            // What is wrong with the header as YAML was said above.
            if let Some(nested) = header.nested(key).filter(|_| is_yaml) {
                let is_id = *key == "id";
                let next = if is_id { parse::UNUSED_ID } else { "write one text" };
                let message = format!("`{key}` is {nested}, where one text belongs; {next}");
                let at = (shown_path, line_of(document, key));
                self.findings.add(is_id, "schema", at, message);
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
        let at = |key| (file.shown_path, line_of(document, key));
        let id = header.text(&["id"]).filter(|_| header.nested("id").is_none());
        if let Some(id) = id.filter(|_| note.declared_id.is_none()) {
            let message = format!(
                "the id `{id}` cannot be used; at most 200 characters on one line, not ending \
                 with `@edited`"
            );
            self.findings.error("schema", at("id"), message);
        }
        // What is wrong with a list or a map was said above.
        if let Some(doubt) = note.doubt.as_ref().filter(|_| header.nested("status").is_none()) {
            self.findings.warn("schema", at("status"), doubt);
        }
        let is_withdrawn = note.status == NoteStatus::Withdrawn;
        if let Some(past) = expired_on(note, self.today).filter(|_| !is_withdrawn) {
            let message = format!(
                "was valid until {past}, the day its author set; see whether it still is, and set a \
                 later day or `status: deprecated`"
            );
            self.findings.warn("past-day", at("stale_after"), message);
        }
    }

    /// Looks for the files that a memory cites. Skips memories of another project, whose files are
    /// not here.
    fn evidence(&mut self, file: &CheckedFile<'_>, line: usize, memory: &Memory) {
        let Self { top: Some(top), repository, findings, .. } = self else { return };
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
                findings.warn("missing-file", (file.shown_path, line), message);
            }
        }
    }

    /// Compares the notes with each other and sorts the findings.
    pub fn report(mut self) -> CheckReport {
        self.same_ids();
        self.dead_names();
        self.near_duplicates();
        let Findings(mut findings) = self.findings;
        findings.sort_by(|a, b| {
            (&a.path, a.line, a.severity, a.rule).cmp(&(&b.path, b.line, b.severity, b.rule))
        });
        let errors = findings.iter().filter(|it| it.severity == Severity::Error).count();
        let warnings = findings.len() - errors;
        let (files, memories) = (self.files, self.read.len());
        CheckReport { files, memories, errors, warnings, findings }
    }

    fn same_ids(&mut self) {
        let mut first: HashMap<&str, &CheckedMemory> = HashMap::new();
        for read in &self.read {
            let id = &read.memory.id;
            let other = *first.entry(id).or_insert(read);
            if !std::ptr::eq(other, read) {
                let (path, line) = (other.path.display(), other.line);
                let message = format!(
                    "has the id `{id}`, as does `{path}` (line {line}); give it another one"
                );
                self.findings.error("duplicate-id", (&read.path, read.line), message);
            }
        }
    }

    fn dead_names(&mut self) {
        let names = self.read.iter().flat_map(|read| read.names.iter().chain([&read.memory.id]));
        let names: HashSet<&str> = names.map(String::as_str).collect();
        let is_known =
            |name: &str| names.contains(name) || names.contains(name.to_lowercase().as_str());
        for (path, line, name) in &self.note_links {
            if !is_known(name) && !name_alone(name).is_some_and(is_known) {
                let message = format!("links to the note `{name}`, which does not exist");
                self.findings.warn("dead-link", (path, *line), message);
            }
        }
    }

    fn near_duplicates(&mut self) {
        let kept = self.read.iter().filter(|read| read.memory.status != Status::Rejected);
        let kept: Vec<&CheckedMemory> = kept.collect();
        let memories: Vec<&Memory> = kept.iter().map(|read| &read.memory).collect();
        for group in alike(&memories, NEARLY_EQUAL) {
            let mut group = group.into_iter().filter_map(|number| kept.get(number));
            let Some(first) = group.next() else { continue };
            let (id, path) = (&first.memory.id, first.path.display());
            for later in group {
                let message = format!(
                    "has nearly the words of `{id}` ({path}); if both say the same, keep one of \
                     them"
                );
                self.findings.warn("near-duplicate", (&later.path, later.line), message);
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

/// The text of a file, or why there is none.
fn utf8(content: Vec<u8>) -> Result<String, String> {
    match note::unreadable_reason(&content) {
        Some(problem) => Err(problem.into()),
        None => String::from_utf8(content).map_err(|_| "is not UTF-8; save it as UTF-8".to_owned()),
    }
}

/// The fields of a note that the comparison needs. One that its author withdrew counts as rejected.
fn memory_of_note(note: &Note) -> Memory {
    let is_withdrawn = note.status == NoteStatus::Withdrawn;
    Memory {
        status: if is_withdrawn { Status::Rejected } else { Status::Staging },
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
