//! Turns a file into memories: a note is one, and an index or a graph holds several.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::time::SystemTime;

use jiff::Timestamp;

use super::dialect::{Cut, Dialect};
use super::front_matter::{Header, split};
use super::links::resolve_note;
use super::markdown::without_comments;
use super::note::{EDITED_SUFFIX, Note, NoteStatus, id_from_path, is_json_lines};
use super::sections::{below, sections};
use super::statements::{SUPERSEDED_BY, is_statement, statements};
use super::{graph, index, lines};
use crate::links::SUPERSEDES;

const MAX_ID_CHARS: usize = 200;
const MAX_ALIASES: usize = 50;

/// The memories in a file, and what is wrong with a part of it. A note that says nothing is none.
pub fn memories(
    dialect: Dialect,
    relative: &Path,
    content: &[u8],
    modified: SystemTime,
) -> (Vec<Note>, Option<String>) {
    let (mut notes, mut problem) = read(dialect, relative, content, modified);
    let count = notes.len();
    notes.retain(|note| !note.says_nothing);
    if notes.len() < count {
        problem.get_or_insert_with(|| "has no text, so it is not a memory".to_owned());
    }
    (notes, problem)
}

/// The notes in a file, and what is wrong with a part of it. `relative` is its path in the folder.
pub fn read(
    dialect: Dialect,
    relative: &Path,
    content: &[u8],
    modified: SystemTime,
) -> (Vec<Note>, Option<String>) {
    let text = String::from_utf8_lossy(content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content));
    let is_utf8 = matches!(text, Cow::Borrowed(_));
    let (mut notes, problem) = cut(dialect, relative, &text);
    let modified = Timestamp::try_from(modified).ok().map(ack_api::time::to_rfc3339);
    for note in &mut notes {
        note.modified.clone_from(&modified);
    }
    let problem = match (is_utf8, problem) {
        (true, problem) => problem,
        (false, None) => Some(NOT_UTF8.to_owned()),
        (false, Some(problem)) => Some(format!("{NOT_UTF8}; it also {problem}")),
    };
    (notes, problem)
}

fn cut(dialect: Dialect, relative: &Path, text: &str) -> (Vec<Note>, Option<String>) {
    let body = || without_comments(split(text).1);
    let notes = match dialect.cut(relative) {
        Some(Cut::Entities) => return graph::read(text),
        Some(Cut::Items) if text.trim_start().starts_with(SESSION_HEADING) => Vec::new(),
        Some(Cut::Items) => index::memories(&body(), relative),
        Some(Cut::ItemsBelow(heading)) => {
            index::memories(&below(&without_comments(text), heading), relative)
        }
        Some(Cut::Groups(mark)) => sections(&without_comments(text), relative, mark, None),
        Some(Cut::Sections(mark)) => {
            let headings = Headings::of(dialect, relative, &split(text).0, &body());
            let body = without_title(&body(), &headings.title);
            named_by_file(sections(&body, relative, mark, Some(headings.title)), relative)
        }
        Some(Cut::Parts(between)) => {
            named_by_file(index::parts(&body(), relative, between), relative)
        }
        Some(Cut::Rollout) => vec![rollout(relative, text)],
        _ if is_json_lines(relative) && lines::are_memories(text) => return lines::read(text),
        _ if is_json_lines(relative) => return (Vec::new(), lines::problem_without_json(text)),
        Some(Cut::Whole) | None => {
            let (note, problem) = markdown(dialect, relative, text);
            return (vec![note], problem);
        }
    };
    (notes, None)
}

/// The beginning of a file in which OpenClaw keeps what was said in a session.
const SESSION_HEADING: &str = "# Session:";

fn named_by_file(mut notes: Vec<Note>, relative: &Path) -> Vec<Note> {
    for note in &mut notes {
        note.kind = Some(stem(relative));
    }
    notes
}

const NOT_UTF8: &str = "is not UTF-8, so some of its letters are lost; save it as UTF-8";

/// The lines that Codex writes above the summary of a rollout.
const ROLLOUT_KEYS: [&str; 6] =
    ["thread_id", "session_id", "updated_at", "rollout_path", "cwd", "git_branch"];

fn rollout(relative: &Path, mut content: &str) -> Note {
    let (mut project, mut session, mut updated) = (None, None, None);
    while let Some((key, value, rest)) = rollout_line(content) {
        let value = Some(value.to_owned()).filter(|value| !value.is_empty());
        match key {
            "thread_id" | "session_id" => session = value,
            "updated_at" => updated = value,
            "cwd" => project = value.as_deref().and_then(last_part),
            _ => {}
        }
        content = rest;
    }
    let (note, _) = markdown(Dialect::Codex, relative, content);
    Note {
        project: project.or(note.project),
        session: session.or(note.session),
        created: updated.clone().or(note.created),
        updated: updated.or(note.updated),
        ..note
    }
}

fn rollout_line(text: &str) -> Option<(&str, &str, &str)> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (key, value) = line.split_once(':')?;
    ROLLOUT_KEYS.contains(&key).then_some((key, value.trim(), rest))
}

/// The last part of a path, of this system or of Windows.
fn last_part(path: &str) -> Option<String> {
    let mut parts = path.rsplit(['/', '\\']);
    parts.find(|part| !part.is_empty() && !part.ends_with(':')).map(str::to_owned)
}

fn markdown(dialect: Dialect, relative: &Path, content: &str) -> (Note, Option<String>) {
    let (header, text) = split(content);
    let text = &*without_comments(text);
    let headings = Headings::of(dialect, relative, &header, text);
    let body = without_title(text, &headings.title);
    let (mut facts, mut links) = statements(&body, relative);
    links.extend(replacements(&header, relative));
    // What was found out about a solved problem.
    facts.extend(header.list(&["symptoms"]).iter().map(|symptom| format!("Symptom: {symptom}")));
    facts.extend(header.text(&["root_cause"]).map(|cause| format!("Root cause: {cause}")));
    let aliases = aliases(&header);
    if !aliases.is_empty() {
        facts.push(format!("Also known as: {}", aliases.join(", ")));
    }
    let body = without_facts(&body);
    let says_nothing = headings.are_from_file
        && headings.subtitle.is_none()
        && facts.is_empty()
        && body.trim().is_empty();
    // What is no word, or may come from elsewhere in the header, could be any status.
    let nested = ["status", "<<"].into_iter().find_map(|key| header.nested(key));
    let nested = nested.or_else(|| header.has_unread_status().then_some(UNREAD_STATUS));
    let word = header.text(&["status"]).or_else(|| nested.map(str::to_owned));
    let (status, doubt) = declared_status(word.as_deref());
    let note = Note {
        id: id_from_path(relative),
        declared_id: declared_id(&header),
        says_nothing,
        status,
        withheld_by: word.filter(|_| status.withholds()),
        doubt,
        reviewed_by: header.text(&["verified.by"]),
        reviewed_at: header.text(&["verified.at"]),
        names: names(relative, &header, &headings.title, aliases),
        title: headings.title,
        is_named_by_file: headings.are_from_file,
        subtitle: headings.subtitle,
        kind: header.text(&["type", "metadata.type", "problem_type"]),
        project: header.text(&["project"]),
        session: header.text(&["originsessionid", "metadata.originsessionid"]),
        facts,
        tags: tags(&header),
        files: header.list(&["files", "resource", "resources"]),
        text: body,
        created: header.text(&["created", "created_at", "date", "generated", "generated.at"]),
        modified: None,
        stale_after: header.text(&["stale_after", "stale_after.date"]),
        updated: header.text(&[
            "modified",
            "metadata.modified",
            "updated",
            "updated_at",
            "timestamp",
        ]),
        links,
    };
    (note, header_problem(&header))
}

struct Headings {
    title: String,
    subtitle: Option<String>,
    are_from_file: bool,
}

impl Headings {
    fn of(dialect: Dialect, relative: &Path, header: &Header, text: &str) -> Self {
        // In auto-memory, `name` repeats the file's name, and the description says what the note is
        // about.
        let name = if dialect == Dialect::AutoMemory {
            header.text(&["title", "description", "name"])
        } else {
            header.text(&["title", "name"])
        };
        let subtitle = header
            .text(&["description", "summary"])
            .filter(|subtitle| name.as_ref() != Some(subtitle));
        let heading = text.lines().find_map(|line| line.strip_prefix("# "));
        let title = name.or_else(|| heading.map(|heading| heading.trim().to_owned()));
        Self {
            are_from_file: title.is_none(),
            title: title
                .unwrap_or_else(|| stem(relative).replace(['_', '-'], " ").trim().to_owned()),
            subtitle,
        }
    }
}

/// What the word in a header means, and why the note waits for review if that is not known.
fn declared_status(word: Option<&str>) -> (NoteStatus, Option<String>) {
    match word.map(|word| (word, NoteStatus::parse(word))) {
        None => (NoteStatus::Plain, None),
        Some((_, Some(status))) => (status, None),
        Some((word, None)) => (NoteStatus::Draft, Some(unknown_status(word))),
    }
}

/// The id in a header. One in another form could not be found again.
fn declared_id(header: &Header) -> Option<String> {
    let id = header.text(&["id"]).filter(|_| header.nested("id").is_none());
    id.filter(|id| ack_api::text::line(id, MAX_ID_CHARS) == *id && !id.ends_with(EDITED_SUFFIX))
}

/// What is wrong with a header, as the end of a sentence about the file.
fn header_problem(header: &Header) -> Option<String> {
    if let Some(nested) = header.nested("id") {
        return Some(format!("has {nested} as its `id`, where one text belongs; {UNUSED_ID}"));
    }
    header.is_never_closed().then(|| NEVER_CLOSED.to_owned())
}

fn tags(header: &Header) -> Vec<String> {
    let mut tags = Vec::new();
    let key = if header.list(&["tags"]).is_empty() { "keywords" } else { "tags" };
    // In one text, commas separate tags; in a list, they belong to them.
    let is_list = header.nested(key).is_some();
    for tag in header.list(&[key]) {
        let parts = tag.split(|c| c == ',' && !is_list);
        let parts = parts.map(|tag| tag.trim().trim_start_matches('#'));
        tags.extend(parts.filter(|tag| !tag.is_empty()).map(str::to_owned));
    }
    for key in ["module", "component", "severity"] {
        tags.extend(header.text(&[key]));
    }
    let mut known = HashSet::new();
    tags.retain(|tag| known.insert(tag.to_lowercase()));
    tags
}

/// The names by which other notes link to a note.
fn names(relative: &Path, header: &Header, title: &str, aliases: Vec<String>) -> Vec<String> {
    let permalink = header.text(&["permalink"]);
    // basic-memory puts the project's name in front.
    let in_project = permalink.as_deref().and_then(|link| Some(link.split_once('/')?.1.to_owned()));
    let names = [
        Some(stem(relative)),
        Some(title.to_owned()),
        header.text(&["name"]),
        Some(id_from_path(relative)).filter(|path| path.contains('/')),
        permalink,
        in_project,
    ];
    names.into_iter().flatten().chain(aliases).collect()
}

fn stem(relative: &Path) -> String {
    relative.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn aliases(header: &Header) -> Vec<String> {
    let written = header.list(&["aliases", "alias"]).into_iter();
    let mut aliases: Vec<String> = Vec::new();
    for alias in written.take(MAX_ALIASES) {
        let alias = ack_api::text::line(&alias, MAX_ID_CHARS);
        if !alias.is_empty() && !aliases.contains(&alias) {
            aliases.push(alias);
        }
    }
    aliases
}

fn replacements(header: &Header, note: &Path) -> Vec<(String, String)> {
    let mut links = Vec::new();
    for (kind, keys) in [
        (SUPERSEDES, ["supersedes", "replaces"]),
        (SUPERSEDED_BY, ["superseded_by", "replaced_by"]),
    ] {
        for name in header.list(&keys) {
            let name = name.trim_start_matches('[').trim_end_matches(']');
            let name = name.split('|').next().unwrap_or_default().trim();
            let target = resolve_note(name, note).unwrap_or_else(|| name.to_owned());
            links.push((kind.to_owned(), target));
        }
    }
    links
}

const NEVER_CLOSED: &str = "has front matter that is never closed; end it with a line `---`";

pub const UNUSED_ID: &str =
    "it is not used, so the id is the file's path; write one text, or leave `id` out";

/// Stands for the word of a status that cannot be read.
const UNREAD_STATUS: &str = "unreadable";

fn unknown_status(status: &str) -> String {
    if status == UNREAD_STATUS {
        return "names a status in its header in a way that cannot be read, so it waits for \
                review; write it at the beginning of a line, as in `status: draft`"
            .to_owned();
    }
    format!(
        "has the status `{}`, which is not known, so it waits for review; write `stable`, `draft` \
         or `deprecated`",
        ack_api::text::line(status, 40)
    )
}

/// The text without a heading that only repeats the title.
fn without_title(text: &str, title: &str) -> String {
    let text = text.trim_start_matches(['\n', '\r', ' ']);
    let rest = text.strip_prefix("# ").and_then(|rest| {
        let (heading, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        (heading.trim() == title.trim()).then_some(rest)
    });
    rest.unwrap_or(text).trim().to_owned()
}

/// The heading of the last section of a note that `publish` writes.
pub const FACTS_HEADING: &str = "## Facts";

/// The text without a last section that contains only statements.
fn without_facts(text: &str) -> String {
    let Some(start) = text.rfind(FACTS_HEADING) else { return text.to_owned() };
    let (before, section) = text.split_at(start);
    let mut lines = section.lines();
    let is_section = (before.is_empty() || before.ends_with('\n'))
        && lines.next() == Some(FACTS_HEADING)
        && lines.all(|line| line.trim().is_empty() || is_statement(line));
    if is_section { before } else { text }.trim_end().to_owned()
}
