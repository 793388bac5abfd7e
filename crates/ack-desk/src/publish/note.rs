//! A memory as a Markdown file in the Open Knowledge Format, including the keys that record its
//! origin.

use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;

use ack_api::memory::Memory;
use ack_api::time::to_rfc3339;
use ack_store::folder::Dialect;
use ack_store::folder::note::{Note, NoteStatus};
use ack_store::folder::parse::{FACTS_HEADING, read};
use sha2::{Digest as _, Sha256};

use crate::document::{Document, list, scalar};

/// The key that names the memory's origin: scope, `/`, id.
pub const ORIGIN_KEY: &str = "published_from";
/// The key with the digests of the memory and of the written text.
const DIGEST_KEY: &str = "published_digest";
/// The type of a memory without one, because the format requires a type.
const DEFAULT_TYPE: &str = "memory";
const MAX_SLUG_CHARS: usize = 60;
/// How many bytes of a digest are kept.
const DIGEST_BYTES: usize = 16;
/// The keys that we set, each with the aliases under which it is read.
const PUBLISHED_KEYS: [&[&str]; 12] = [
    &["type", "problem_type"],
    &["id"],
    &["title", "name"],
    &["description", "summary"],
    &["tags", "keywords"],
    &["project"],
    &["files", "resource", "resources"],
    &["created", "created_at", "date", "generated"],
    &["verified"],
    &["status"],
    &[ORIGIN_KEY],
    &[DIGEST_KEY],
];

#[derive(Debug, Clone)]
pub struct PublishedMemory<'a> {
    pub scope: &'a str,
    pub memory: &'a Memory,
    /// The content of the file that the memory was read from, if there is one.
    pub source: Option<&'a str>,
}

impl PublishedMemory<'_> {
    /// The value of [`ORIGIN_KEY`].
    pub fn from(&self) -> String {
        format!("{}/{}", self.scope, self.memory.id)
    }

    /// A readable and stable file name. It has only lower-case letters, digits and hyphens, and a
    /// part derived from the id, so that no two memories share a name on any file system.
    pub fn file_name(&self) -> String {
        let mut slug = String::new();
        for c in self.memory.title.chars() {
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        slug.truncate(MAX_SLUG_CHARS);
        let slug = slug.trim_end_matches('-');
        let slug = if slug.is_empty() { DEFAULT_TYPE } else { slug };
        format!("{slug}-{}.md", hex(&Sha256::digest(self.from())).get(..8).unwrap_or_default())
    }

    fn digest(&self) -> String {
        let memory = self.memory;
        let content = serde_json::json!([
            self.from(),
            memory.kind,
            memory.title,
            memory.subtitle,
            memory.facts,
            memory.concepts,
            memory.files,
            memory.narrative,
            memory.project,
            memory.reviewed_by,
            self.source,
        ]);
        hex(&Sha256::digest(content.to_string()))
    }

    /// The file's text. Other keys, order and comments of `existing`, its present content, stay.
    pub fn render(&self, existing: Option<&str>) -> String {
        let memory = self.memory;
        let base = existing.or(self.source);
        let mut document = Document::parse(base.unwrap_or_default());
        if let (Some(_), Some(source)) = (existing, self.source) {
            document.adopt(&Document::parse(source), |key| {
                PUBLISHED_KEYS.iter().any(|names| names.contains(&key))
            });
        }
        let known = base.map(read_note).unwrap_or_default();
        self.set_fields(&mut document, &known, base.is_some());
        self.set_review(&mut document, &known);
        let narrative = memory.narrative.as_deref().unwrap_or_default().trim();
        if base.is_none() || known.text.trim() != narrative || known.facts != memory.facts {
            document.body = body(memory);
        }
        document.set(&[ORIGIN_KEY], &scalar(&self.from()));
        let digest = digest_of(&document.text());
        document.set(&[DIGEST_KEY], &format!("{}-{digest}", self.digest()));
        document.text()
    }

    /// The text of a note that comes from no other scope. It is a draft unless somebody vouches for it.
    pub fn new_note(&self) -> String {
        let (mut document, nothing) = (Document::parse(""), Note::default());
        self.set_fields(&mut document, &nothing, false);
        self.set_review(&mut document, &nothing);
        if self.memory.reviewed_by.is_none() {
            document.set(&["status"], "draft");
        }
        document.body = body(self.memory);
        document.text()
    }

    /// Sets the keys with what the memory says, where the note that is known says something else.
    fn set_fields(&self, document: &mut Document, known: &Note, has_base: bool) {
        let memory = self.memory;
        let [kind, id, title, subtitle, tags, project, files, ..] = PUBLISHED_KEYS;
        let type_name = memory.kind.as_deref().unwrap_or(DEFAULT_TYPE);
        let known_title = has_base.then_some(known.title.as_str());
        set_text(document, kind, known.kind.as_deref(), Some(type_name));
        set_text(document, id, known.declared_id.as_deref(), Some(&memory.id));
        set_text(document, title, known_title, Some(&memory.title));
        set_text(document, subtitle, known.subtitle.as_deref(), memory.subtitle.as_deref());
        set_list(document, tags, &known.tags, &memory.concepts);
        set_text(document, project, known.project.as_deref(), memory.project.as_deref());
        set_list(document, files, &known.files, &memory.files);
    }

    /// Sets the keys about its review, if the document does not have them.
    fn set_review(&self, document: &mut Document, known: &Note) {
        let [.., created, verified, status, _, _] = PUBLISHED_KEYS;
        if let Some(at) = self.memory.created_at
            && !document.has(created)
        {
            document.set(created, &scalar(&to_rfc3339(at)));
        }
        if let Some(by) = &self.memory.reviewed_by
            && !document.has(verified)
        {
            let mut review = format!("\n- by: {}", scalar(by));
            if let Some(at) = self.memory.reviewed_at {
                let _ = write!(review, "\n  at: {}", scalar(&to_rfc3339(at)));
            }
            document.set(verified, &review);
        }
        let is_shown = matches!(known.status, NoteStatus::Plain | NoteStatus::Promoted);
        if !document.has(status) || !is_shown {
            document.set(status, "stable");
        }
    }

    /// Whether the memory is not what it was when its file was written.
    pub fn has_changed(&self, published: &Published) -> bool {
        published.memory_digest != self.digest()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub scope: String,
    pub id: String,
    memory_digest: String,
    /// Whether somebody changed the file since it was written.
    pub is_edited: bool,
}

impl Published {
    /// Reads a file; `None` if it was not published. A copy with another id does not count.
    pub fn read(text: &str) -> Option<Self> {
        let header = Document::parse(text).header();
        let from = header.text(&[ORIGIN_KEY])?;
        let (scope, id) = from.split_once('/')?;
        if header.text(&["id"]).as_deref() != Some(id) {
            return None;
        }
        let digest = header.text(&[DIGEST_KEY]).unwrap_or_default();
        let (of_memory, as_written) = digest.split_once('-').unwrap_or_default();
        Some(Self {
            scope: scope.to_owned(),
            id: id.to_owned(),
            memory_digest: of_memory.to_owned(),
            is_edited: digest_of(text) != as_written,
        })
    }
}

/// The digest of a memory's content as read from a file.
fn digest_of(text: &str) -> String {
    let note = read_note(text);
    let content = serde_json::json!([
        note.kind,
        note.title,
        note.subtitle,
        note.facts,
        note.tags,
        note.files,
        note.text,
        note.project,
    ]);
    hex(&Sha256::digest(content.to_string()))
}

/// The note that serving reads from a file.
pub fn read_note(text: &str) -> Note {
    let path = Path::new("note.md");
    let (notes, _) = read(Dialect::Markdown, path, text.as_bytes(), SystemTime::UNIX_EPOCH);
    notes.into_iter().next().unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

fn set_text(document: &mut Document, keys: &[&str], known: Option<&str>, wanted: Option<&str>) {
    match wanted {
        _ if known == wanted => {}
        Some(wanted) => document.set(keys, &scalar(wanted)),
        None => document.remove(keys),
    }
}

fn set_list(document: &mut Document, keys: &[&str], known: &[String], wanted: &[String]) {
    match wanted {
        _ if known == wanted => {}
        [] => document.remove(keys),
        _ => document.set(keys, &list(wanted)),
    }
}

fn body(memory: &Memory) -> String {
    let mut body = format!("\n# {}\n", memory.title);
    if let Some(narrative) = &memory.narrative {
        let _ = write!(body, "\n{}\n", narrative.trim());
    }
    if !memory.facts.is_empty() {
        let _ = write!(body, "\n{FACTS_HEADING}\n\n");
        for fact in &memory.facts {
            let fact = fact.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(body, "- [fact] {fact}");
        }
    }
    body
}
