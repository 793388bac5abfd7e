//! The rows of the in-memory database: which note is in which row, and under which id.

use std::ffi::{OsStr, OsString};
use std::hash::Hash as _;
use std::path::Path;

use ack_api::memory::lower_case;
use ack_worktree::committed::ObjectName;
use rusqlite::{Connection, params};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::Xxh3;

use super::dialect::Dialect;
use super::note::{EDITED_SUFFIX, Note};

/// The tables of the notes. `memory_links` is made from the others, see [`RESOLVE_LINKS`]. All rows
/// of one [`RowKey`] have the same `slot`.
const SCHEMA: &str = "
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE memories (slot INTEGER, id TEXT, project TEXT, session_id TEXT, type TEXT, title TEXT, subtitle TEXT,
  facts TEXT, concepts TEXT, files TEXT, narrative TEXT, created_at TEXT, updated_at TEXT, stale_after TEXT,
  superseded_by TEXT, source_file TEXT, title_from_file INTEGER, author_status TEXT);
CREATE INDEX memories_id ON memories (id);
CREATE INDEX memories_slot ON memories (slot);
CREATE TABLE note_names (slot INTEGER, name TEXT, id TEXT);
CREATE INDEX note_names_name ON note_names (name);
CREATE INDEX note_names_slot ON note_names (slot);
CREATE TABLE note_links (slot INTEGER, from_id TEXT, kind TEXT, name TEXT);
CREATE INDEX note_links_from ON note_links (from_id);
CREATE INDEX note_links_slot ON note_links (slot);
CREATE TABLE memory_links (from_id TEXT, to_id TEXT, kind TEXT);
CREATE INDEX memory_links_from ON memory_links (from_id);
CREATE INDEX memory_links_to ON memory_links (to_id);
";
/// Additional columns for a folder whose owner names a reference.
const STATUS_SCHEMA: &str = "
ALTER TABLE memories ADD COLUMN status TEXT;
ALTER TABLE memories ADD COLUMN reviewed_at TEXT;
ALTER TABLE memories ADD COLUMN reviewed_by TEXT;
";
/// Finds the notes that links name, by name or by file. A name may have moved to another note.
/// Files are only searched if a link names one: SQLite then creates an index of them. Of several
/// notes that replace one, the first counts: if the others replace it in turn, they follow it.
const RESOLVE_LINKS: &str = "
DELETE FROM memory_links;
INSERT INTO memory_links SELECT DISTINCT l.from_id, n.id, l.kind
  FROM note_links l JOIN note_names n ON n.name = l.name
  WHERE n.id <> l.from_id;
INSERT INTO memory_links SELECT DISTINCT l.from_id, m.id, l.kind
  FROM note_links l CROSS JOIN memories m ON m.source_file = substr(l.name, 2)
  WHERE l.name LIKE '/%' AND m.id <> l.from_id AND NOT EXISTS (SELECT 1 FROM memory_links k
    WHERE k.from_id = l.from_id AND k.to_id = m.id AND k.kind = l.kind);
INSERT INTO memory_links SELECT DISTINCT to_id, from_id, 'supersedes' FROM memory_links l
  WHERE kind = 'superseded_by' AND NOT EXISTS (SELECT 1 FROM memory_links k
    WHERE k.from_id = l.to_id AND k.to_id = l.from_id AND k.kind = 'supersedes');
DELETE FROM memory_links WHERE kind = 'superseded_by';
UPDATE memories SET superseded_by = NULL WHERE superseded_by IS NOT NULL;
UPDATE memories SET superseded_by = (SELECT n.id FROM memory_links l JOIN memories n ON n.id = l.from_id
    WHERE l.to_id = memories.id AND l.kind = 'supersedes'
    ORDER BY coalesce(n.created_at, n.updated_at), n.id LIMIT 1)
  WHERE id IN (SELECT to_id FROM memory_links WHERE kind = 'supersedes');
";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    Hash(u64),
    Object(ObjectName),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    /// Compared byte by byte, which is faster than by components.
    pub relative: OsString,
    /// Whether it is the working tree's text of a file whose committed text differs.
    pub is_edited: bool,
}

impl RowKey {
    /// The committed note that this one is, or is an edited version of.
    fn as_committed(&self) -> Self {
        Self { is_edited: false, ..self.clone() }
    }
}

/// Which text a row has.
#[derive(Debug, Clone, Copy)]
pub struct RowText {
    pub content: Content,
    /// Whether it comes from git's objects.
    pub is_from_git: bool,
    /// Whether it is the committed one, if there is a reference.
    pub is_committed: bool,
    /// The committed version of an edited text.
    pub committed_as: Option<ObjectName>,
}

impl RowText {
    /// Whether it gives the same memories with the same status.
    fn is_same(&self, other: &Self) -> bool {
        (self.content, self.is_committed, self.committed_as)
            == (other.content, other.is_committed, other.committed_as)
    }
}

#[derive(Debug)]
pub struct StoredFile {
    slot: i64,
    pub text: RowText,
    /// A hash of each note's content, by the id that it has in its file, if that may hold several.
    content_hashes: FxHashMap<String, u64>,
    /// The note of a file that holds one.
    pub single: Option<SingleNote>,
    /// What is wrong with a part of its text.
    pub problem: Option<String>,
}

#[derive(Debug)]
pub struct SingleNote {
    id: String,
    path_id: String,
    declared_id: Option<String>,
    /// Why a reference does not approve it.
    pub doubt: Option<String>,
}

#[derive(Debug)]
pub struct FileNotes {
    pub notes: Vec<Note>,
    /// As the end of a sentence about the file.
    pub problem: Option<String>,
}

#[derive(Debug)]
pub struct Rows {
    pub connection: Connection,
    rows: FxHashMap<RowKey, StoredFile>,
    next_slot: i64,
    dialect: Dialect,
    has_status: bool,
}

impl Rows {
    /// No rows. With `has_status`, each row has its own status.
    #[expect(
        clippy::disallowed_methods,
        reason = "the notes are files, and this database only holds what was read from them"
    )]
    pub fn new(dialect: Dialect, has_status: bool) -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(SCHEMA)?;
        if has_status {
            connection.execute_batch(STATUS_SCHEMA)?;
        }
        Ok(Self { connection, rows: FxHashMap::default(), next_slot: 1, dialect, has_status })
    }

    /// Replaces the rows with the wanted ones. `notes` returns the memories of each that is new or
    /// changed; one without any is left out. Returns which files could not get the id that they
    /// declare.
    pub fn update(
        &mut self,
        rows: &[(RowKey, RowText)],
        mut notes: impl FnMut(&RowKey, RowText) -> Option<FileNotes>,
        project: Option<&str>,
    ) -> rusqlite::Result<Vec<String>> {
        self.connection.execute_batch("PRAGMA query_only = OFF; BEGIN")?;
        let keys: FxHashSet<&RowKey> = rows.iter().map(|(key, _)| key).collect();
        let removed: Vec<RowKey> =
            self.rows.keys().filter(|key| !keys.contains(key)).cloned().collect();
        for key in removed {
            self.remove(&key)?;
        }
        for (key, text) in rows {
            if let Some(row) = self.rows.get_mut(key).filter(|row| row.text.is_same(text)) {
                row.text = *text;
                continue;
            }
            self.remove(key)?;
            if let Some(notes) = notes(key, *text) {
                self.insert(key, *text, notes, project)?;
            }
        }
        let problems = self.assign_ids()?;
        self.connection.execute_batch(RESOLVE_LINKS)?;
        self.connection.execute_batch("COMMIT; PRAGMA query_only = ON")?;
        Ok(problems)
    }

    pub fn find(&self, id: &str) -> Option<(&RowKey, Content)> {
        let has_id = |row: &StoredFile| row.single.as_ref().is_some_and(|single| single.id == id);
        let found = self.rows.iter().find(|(_, row)| has_id(row));
        found.map(|(key, row)| (key, row.text.content))
    }

    pub fn hash(&self) -> u64 {
        let mut rows: Vec<(&RowKey, &StoredFile)> = self.rows.iter().collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        let mut hash = Xxh3::new();
        for (key, row) in rows {
            hash.update(key.relative.as_encoded_bytes());
            hash.update(&[0, u8::from(key.is_edited), u8::from(row.text.is_committed)]);
            match row.text.content {
                Content::Hash(content) => hash.update(&content.to_ne_bytes()),
                Content::Object(name) => hash.update(name.as_slice()),
            }
            hash.update(row.single.as_ref().map_or("", |single| &single.id).as_bytes());
        }
        hash.digest().max(1)
    }

    pub fn files(&self) -> impl Iterator<Item = (&OsStr, &StoredFile)> {
        self.rows.iter().map(|(key, row)| (key.relative.as_os_str(), row))
    }

    fn remove(&mut self, key: &RowKey) -> rusqlite::Result<()> {
        let Some(row) = self.rows.remove(key) else { return Ok(()) };
        for table in ["memories", "note_names", "note_links"] {
            let sql = format!("DELETE FROM {table} WHERE slot = ?1");
            self.connection.prepare_cached(&sql)?.execute([row.slot])?;
        }
        Ok(())
    }

    fn insert(
        &mut self,
        key: &RowKey,
        text: RowText,
        FileNotes { mut notes, problem }: FileNotes,
        project: Option<&str>,
    ) -> rusqlite::Result<()> {
        let slot = self.next_slot;
        self.next_slot += 1;
        for note in &mut notes {
            note.project = note.project.take().or_else(|| project.map(str::to_owned));
            // Copies of a commit get their files at different times.
            note.modified = note.modified.take().filter(|_| !text.is_committed);
        }
        let has_lines = self.dialect.holds_several(Path::new(&key.relative));
        if has_lines && key.is_edited {
            self.keep_edited_lines(key, &mut notes);
        }
        for note in &notes {
            add(&self.connection, slot, &key.relative, note)?;
            if self.has_status {
                let status = note.status.status(text.is_committed);
                let sql = "UPDATE memories SET status = ?3, reviewed_at = ?4, reviewed_by = ?5
                           WHERE slot = ?1 AND id = ?2";
                let Note { id, reviewed_at, reviewed_by, .. } = note;
                let mut update = self.connection.prepare_cached(sql)?;
                update.execute(params![slot, id, status, reviewed_at, reviewed_by])?;
            }
        }
        let mut row =
            StoredFile { slot, text, content_hashes: FxHashMap::default(), single: None, problem };
        if has_lines {
            row.content_hashes =
                notes.into_iter().map(|note| (note.id.clone(), content_hash(&note))).collect();
        } else if let Some(Note { id, declared_id, doubt, .. }) = notes.pop() {
            row.single = Some(SingleNote { path_id: id.clone(), id, declared_id, doubt });
        }
        self.rows.insert(key.clone(), row);
        Ok(())
    }

    /// Keeps the lines of an edited file that the reference lacks, or, with an id of their own, has
    /// with other content.
    fn keep_edited_lines(&self, key: &RowKey, notes: &mut Vec<Note>) {
        let Some(committed) = self.rows.get(&key.as_committed()) else { return };
        notes.retain_mut(|note| {
            let known = committed.content_hashes.get(&note.id);
            let is_edited = known != Some(&content_hash(note));
            if known.is_some() {
                note.id.push_str(EDITED_SUFFIX);
            }
            is_edited
        });
    }

    /// Gives each note the id that its file declares, if no other note has it, or else the one that
    /// comes from its path. Committed notes come first, then the order of the paths.
    fn assign_ids(&mut self) -> rusqlite::Result<Vec<String>> {
        // `a.md` and `a.markdown` have the same path without the extension.
        let is_usual_name = |path: &OsStr| path.as_encoded_bytes().ends_with(b".md");
        let single = || {
            self.rows.iter().filter_map(|(key, row)| Some((key, row.text, row.single.as_ref()?)))
        };
        let has_path_id = |(key, _, note): (&RowKey, RowText, &SingleNote)| {
            note.declared_id.is_none()
                && !key.is_edited
                && note.id == note.path_id
                && is_usual_name(&key.relative)
        };
        if single().all(has_path_id) {
            return Ok(Vec::new());
        }
        let place = single().map(|(key, text, _)| {
            (key.is_edited, !text.is_committed, !is_usual_name(&key.relative), key.clone())
        });
        let mut order: Vec<(bool, bool, bool, RowKey)> = place.collect();
        order.sort_unstable();
        let mut owners: FxHashMap<String, OsString> = FxHashMap::default();
        let mut problems = Vec::new();
        for (.., key) in order {
            let single = |key| self.rows.get(key).and_then(|row| row.single.as_ref());
            let Some(note) = single(&key) else { continue };
            let (first, second) = if key.is_edited {
                let main = single(&key.as_committed()).map_or(&note.path_id, |it| &it.id);
                let edited = |id: &str| format!("{id}{EDITED_SUFFIX}");
                (Some(edited(main)), edited(&note.path_id))
            } else {
                (note.declared_id.clone(), note.path_id.clone())
            };
            let numbered = (2..).map(|number| format!("{second}@{number}"));
            let mut ids = first.into_iter().chain([second.clone()]).chain(numbered);
            let Some(id) = ids.find(|id| !owners.contains_key(id)) else { continue };
            if let Some(declared) = note.declared_id.as_ref().filter(|declared| **declared != id)
                && !key.is_edited
            {
                problems.push(format!(
                    "`{}` has the id `{declared}`, which `{}` has too; it is served as `{id}`",
                    display_path(&key.relative),
                    owners.get(declared).map(|other| display_path(other)).unwrap_or_default(),
                ));
            }
            owners.insert(id.clone(), key.relative.clone());
            self.rename(&key, id)?;
        }
        Ok(problems)
    }

    fn rename(&mut self, key: &RowKey, id: String) -> rusqlite::Result<()> {
        let Some(StoredFile { slot, single: Some(note), .. }) = self.rows.get_mut(key) else {
            return Ok(());
        };
        if note.id == id {
            return Ok(());
        }
        for (table, column) in [("memories", "id"), ("note_names", "id"), ("note_links", "from_id")]
        {
            let sql = format!("UPDATE {table} SET {column} = ?2 WHERE slot = ?1");
            self.connection.prepare_cached(&sql)?.execute(params![*slot, id])?;
        }
        note.id = id;
        Ok(())
    }
}

pub fn display_path(relative: &OsStr) -> String {
    ack_api::text::line(&relative.to_string_lossy(), 120)
}

/// A hash of what a memory says: two with the same hash are one memory.
fn content_hash(note: &Note) -> u64 {
    let mut hash = Xxh3::new();
    (&note.title, &note.subtitle, &note.text).hash(&mut hash);
    (&note.facts, &note.tags, &note.files).hash(&mut hash);
    (&note.kind, &note.session, &note.project).hash(&mut hash);
    hash.digest()
}

fn json_list(values: &[String]) -> String {
    serde_json::to_string(values).unwrap_or_default()
}

fn add(connection: &Connection, slot: i64, relative: &OsStr, note: &Note) -> rusqlite::Result<()> {
    let modified = note.modified.as_ref();
    connection
        .prepare_cached(
            "INSERT INTO memories (slot, id, project, session_id, type, title, subtitle, facts,
               concepts, files, narrative, created_at, updated_at, stale_after, source_file,
               title_from_file, author_status)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
               nullif(?16, 0), ?17)",
        )?
        .execute(params![
            slot,
            note.id,
            note.project,
            note.session,
            note.kind,
            note.title,
            note.subtitle,
            json_list(&note.facts),
            json_list(&note.tags),
            json_list(&note.files),
            note.text,
            note.created.as_ref().or(modified),
            note.updated.as_ref().or(modified),
            note.stale_after,
            relative.to_string_lossy(),
            note.is_named_by_file,
            note.withheld_by,
        ])?;
    for name in &note.names {
        connection
            .prepare_cached("INSERT INTO note_names VALUES (?1, ?2, ?3)")?
            .execute(params![slot, lower_case(name), note.id])?;
    }
    for (kind, name) in &note.links {
        let name = if name.starts_with('/') { name.clone() } else { lower_case(name) };
        connection
            .prepare_cached("INSERT INTO note_links VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![slot, note.id, kind, name])?;
    }
    Ok(())
}
