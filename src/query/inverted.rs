//! The in-memory index of one scope: an inverted index over analysed text, with the columns that filters need.
//!
//! It is derived from the store and kept in step with it row by row: a row whose fingerprint changed is indexed anew, the
//! rest stays. Rejected rows are never indexed; only their ids are known, to tell a rejected successor from a missing one.
//! The index orders and filters; what an answer shows is read from SQLite afterwards, status included.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::analysis::{self, Kind, Side, Token};
use crate::error::StoreError;
use crate::memory::{Memory, Status, StatusFilter, fold_name};
use crate::store::Snapshot;
use crate::store::read::RowKey;

/// Weights of the fields, in half units: title, facts and concepts, subtitle, body, files.
const TITLE: u32 = 8;
const FACTS: u32 = 4;
const SUBTITLE: u32 = 3;
const BODY: u32 = 2;
const FILES: u32 = 2;

/// When more than this share of the documents is dead, the index is built anew.
const DEAD_SHARE: usize = 8;

/// Number of a document within one index.
pub type DocId = u32;

/// A posting: the document in the upper 24 bits, the weighted frequency in half units (at most 255) in the lower 8.
type Posting = u32;

/// What filters and order need to know of a memory.
#[derive(Debug)]
pub struct Doc {
    /// Where the row lies in the store.
    pub key: RowKey,
    fingerprint: u64,
    /// Public id.
    pub id: Box<str>,
    /// Milliseconds since 1970; `i64::MIN` where unknown.
    pub created: i64,
    /// Milliseconds since 1970 of the last change; `i64::MIN` where unknown.
    pub updated: i64,
    /// Number of tokens.
    pub length: u32,
    /// Curation status when it was indexed.
    pub status: Status,
    /// Replaced, or gone from the store.
    pub dead: bool,
    /// Project, as written; see [`Index::name`] and [`Index::fold`].
    pub project: Name,
    /// The project's second name, as written.
    pub alias: Name,
    /// Session name.
    pub session: Name,
    /// Session id.
    pub session_id: Name,
    /// Type, as written.
    pub kind: Name,
    /// Tags, as written.
    pub tags: Box<[Name]>,
    /// Files, as stored.
    pub files: Box<[Name]>,
    /// Id of the memory that replaces this one.
    pub superseded_by: Option<Box<str>>,
}

/// An interned string; 0 is the empty one.
pub type Name = u32;

/// The index of one scope.
#[derive(Debug, Default)]
pub struct Index {
    docs: Vec<Doc>,
    by_id: HashMap<Box<str>, DocId>,
    by_row: HashMap<RowKey, DocId>,
    rejected: HashSet<Box<str>>,
    terms: HashMap<Box<str>, u32>,
    postings: Vec<Vec<Posting>>,
    names: HashMap<Box<str>, Name>,
    name_list: Vec<Box<str>>,
    /// The folded name of each name.
    folded: Vec<Name>,
    dead: usize,
    /// Live documents of each status, and their tokens.
    sizes: HashMap<Status, (u64, u64)>,
    /// Ids that stand twice in the store; the first row is the one that counts.
    pub duplicate_ids: usize,
    /// Rows without an id, which cannot be served.
    pub without_id: usize,
    /// Whether the store says which memories were reviewed.
    pub has_status: bool,
}

impl Index {
    /// Builds the index of everything a snapshot holds.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn build(snapshot: &Snapshot<'_>) -> Result<Self, StoreError> {
        let mut index = Self {
            name_list: vec![Box::from("")],
            folded: vec![0],
            names: std::iter::once((Box::from(""), 0)).collect(),
            ..Self::default()
        };
        let mut writer = Writer::default();
        let mut duplicates = 0;
        snapshot.scan(|row| {
            if row.status == Status::Rejected {
                index.rejected.insert(row.id()?.into());
                return Ok(());
            }
            let memory = row.memory()?;
            if memory.id.is_empty() {
                index.without_id += 1;
                return Ok(());
            }
            if index.by_id.contains_key(memory.id.as_str()) {
                duplicates += 1;
                return Ok(());
            }
            index.add(&mut writer, row.key, row.fingerprint, &memory);
            Ok(())
        })?;
        index.duplicate_ids = duplicates;
        index.has_status = snapshot.layout.has_status();
        index.postings.iter_mut().for_each(Vec::shrink_to_fit);
        Ok(index)
    }

    /// Reads what changed since the index was made: the rows to add or replace, and the ids that are gone. Nothing is
    /// changed yet, because a snapshot that was disturbed is read again.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn changes(&self, snapshot: &Snapshot<'_>) -> Result<Changes, StoreError> {
        let mut changes = Changes::default();
        let mut seen = vec![false; self.docs.len()];
        let mut mark = |doc: DocId| seen.get_mut(doc as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        let mut added: HashSet<Box<str>> = HashSet::default();
        snapshot.scan(|row| {
            if row.status == Status::Rejected {
                changes.rejected.insert(row.id()?.into());
                return Ok(());
            }
            // Nearly every row is as it was, and costs no more than this.
            if let Some(number) = self.by_row.get(&row.key)
                && self.doc(*number).is_some_and(|doc| !doc.dead && doc.fingerprint == row.fingerprint)
            {
                mark(*number);
                return Ok(());
            }
            let memory = row.memory()?;
            if memory.id.is_empty() {
                changes.without_id += 1;
                return Ok(());
            }
            let id: Box<str> = memory.id.as_str().into();
            let known = self.by_id.get(&id).copied();
            let first = known.is_none_or(&mut mark) && added.insert(id);
            if first {
                changes.added.push((row.key, row.fingerprint, memory));
            } else {
                changes.duplicate_ids += 1;
            }
            Ok(())
        })?;
        changes.removed = self
            .by_id
            .iter()
            .filter(|(_, doc)| !seen.get(**doc as usize).copied().unwrap_or(false))
            .map(|(id, _)| id.clone())
            .collect();
        Ok(changes)
    }

    /// Applies what [`Index::changes`] found. Returns false, with nothing done, when building anew is the better way.
    pub fn apply(&mut self, changes: Changes) -> bool {
        let dying = changes.removed.len()
            + changes
                .added
                .iter()
                .filter(|(_, _, memory)| self.by_id.contains_key(memory.id.as_str()))
                .count();
        if (self.dead + dying) * DEAD_SHARE > self.docs.len() + changes.added.len() && dying > 64 {
            return false;
        }
        self.rejected = changes.rejected;
        self.duplicate_ids = changes.duplicate_ids;
        self.without_id = changes.without_id;
        for id in changes.removed {
            self.kill(&id);
        }
        let mut writer = Writer::default();
        for (key, fingerprint, memory) in changes.added {
            self.kill(&memory.id);
            self.add(&mut writer, key, fingerprint, &memory);
        }
        true
    }

    fn kill(&mut self, id: &str) {
        if let Some(number) = self.by_id.remove(id)
            && let Some(doc) = self.docs.get_mut(number as usize)
        {
            doc.dead = true;
            self.dead += 1;
            if self.by_row.get(&doc.key) == Some(&number) {
                self.by_row.remove(&doc.key);
            }
            if let Some((documents, tokens)) = self.sizes.get_mut(&doc.status) {
                *documents -= 1;
                *tokens -= u64::from(doc.length);
            }
        }
    }

    fn add(&mut self, writer: &mut Writer, key: RowKey, fingerprint: u64, memory: &Memory) {
        // 24 bits are 16 million documents; beyond that a scope is not searched in memory.
        let Ok(number) = DocId::try_from(self.docs.len()) else { return };
        if number >= 1 << 24 {
            return;
        }
        let length = writer.count(memory, |kind, text| self.term(kind, text));
        for (term, weight) in writer.weights.drain() {
            if let Some(list) = self.postings.get_mut(term as usize) {
                list.push(number << 8 | weight.min(255));
            }
        }
        let doc = Doc {
            key,
            fingerprint,
            id: memory.id.as_str().into(),
            created: memory.created_at.map_or(i64::MIN, jiff::Timestamp::as_millisecond),
            updated: memory.updated_at.map_or(i64::MIN, jiff::Timestamp::as_millisecond),
            length,
            status: memory.status,
            dead: false,
            project: self.intern(memory.project.as_deref().unwrap_or_default()),
            alias: self.intern(memory.project_alias.as_deref().unwrap_or_default()),
            session: self.intern(memory.session.as_deref().unwrap_or_default()),
            session_id: self.intern(memory.session_id.as_deref().unwrap_or_default()),
            kind: self.intern(memory.kind.as_deref().unwrap_or_default()),
            tags: memory.concepts.iter().map(|tag| self.intern(tag)).collect(),
            files: memory.files.iter().map(|file| self.intern(file)).collect(),
            superseded_by: memory.superseded_by.as_deref().filter(|newer| *newer != memory.id).map(Box::from),
        };
        let size = self.sizes.entry(doc.status).or_default();
        *size = (size.0 + 1, size.1 + u64::from(length));
        self.by_id.insert(doc.id.clone(), number);
        if key.rowid != 0 {
            self.by_row.insert(key, number);
        }
        self.docs.push(doc);
    }

    fn term(&mut self, kind: Kind, text: &str) -> u32 {
        let key = term_key(kind, text);
        if let Some(term) = self.terms.get(key.as_ref()) {
            return *term;
        }
        let term = u32::try_from(self.postings.len()).unwrap_or(u32::MAX);
        self.postings.push(Vec::new());
        self.terms.insert(key.into(), term);
        term
    }

    fn intern(&mut self, text: &str) -> Name {
        if let Some(name) = self.names.get(text) {
            return *name;
        }
        let name = self.new_name(text);
        let folded = fold_name(text);
        let fold = if folded == text {
            name
        } else {
            self.names.get(folded.as_str()).copied().unwrap_or_else(|| self.new_name(&folded))
        };
        if let Some(slot) = self.folded.get_mut(name as usize) {
            *slot = fold;
        }
        name
    }

    /// A new name, its own folded one until said otherwise.
    fn new_name(&mut self, text: &str) -> Name {
        let name = Name::try_from(self.name_list.len()).unwrap_or(0);
        self.name_list.push(text.into());
        self.folded.push(name);
        self.names.insert(text.into(), name);
        name
    }

    /// The number of an interned string, if any document has it.
    pub fn lookup(&self, text: &str) -> Option<Name> {
        self.names.get(text).copied()
    }

    /// The string behind a number.
    pub fn name(&self, name: Name) -> &str {
        self.name_list.get(name as usize).map_or("", AsRef::as_ref)
    }

    /// The folded name of a name: what comparisons go by.
    pub fn fold(&self, name: Name) -> Name {
        self.folded.get(name as usize).copied().unwrap_or(name)
    }

    /// How often each name occurs, those that fold alike together under their most frequent spelling; the most frequent
    /// first.
    pub fn counted(&self, names: impl Iterator<Item = Name>) -> Vec<(&str, u64)> {
        let mut spellings: HashMap<Name, u64> = HashMap::default();
        for name in names {
            *spellings.entry(name).or_default() += 1;
        }
        let mut groups: HashMap<Name, (u64, u64, &str)> = HashMap::default();
        for (name, count) in spellings {
            let group = groups.entry(self.fold(name)).or_insert((0, 0, ""));
            group.0 += count;
            let spelling = self.name(name);
            if (count, std::cmp::Reverse(spelling)) > (group.1, std::cmp::Reverse(group.2)) || group.1 == 0 {
                (group.1, group.2) = (count, spelling);
            }
        }
        let mut counted: Vec<(&str, u64)> = groups.into_values().map(|(count, _, spelling)| (spelling, count)).collect();
        counted.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        counted
    }

    /// A document by number, dead ones too.
    pub fn doc(&self, number: DocId) -> Option<&Doc> {
        self.docs.get(number as usize)
    }

    /// A live document by its public id.
    pub fn find(&self, id: &str) -> Option<(DocId, &Doc)> {
        let number = *self.by_id.get(id)?;
        Some((number, self.doc(number)?))
    }

    /// Every live document.
    pub fn live(&self) -> impl Iterator<Item = (DocId, &Doc)> {
        (0..).zip(self.docs.iter()).filter(|(_, doc)| !doc.dead)
    }

    /// How many live documents a filter allows, and how many tokens they have.
    pub fn size(&self, filter: StatusFilter) -> (u64, u64) {
        let allowed = self.sizes.iter().filter(|(status, _)| filter.allows(**status));
        allowed.fold((0, 0), |sum, (_, size)| (sum.0 + size.0, sum.1 + size.1))
    }

    /// Number of documents, dead ones too: document numbers lie below it.
    pub fn capacity(&self) -> usize {
        self.docs.len()
    }

    /// Every indexed word (identifiers apart), for a look at words like a misspelt one.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.terms.keys().map(AsRef::as_ref).filter(|term| !term.starts_with('='))
    }

    /// Whether a live document that the filter allows holds a term.
    pub fn holds(&self, key: &str, filter: StatusFilter) -> bool {
        self.postings(key)
            .any(|(doc, _)| self.doc(doc).is_some_and(|doc| !doc.dead && filter.allows(doc.status)))
    }

    /// The documents that hold a term (as [`term_key`] writes it), with the weighted frequency; dead documents too.
    pub fn postings(&self, key: &str) -> impl Iterator<Item = (DocId, f32)> {
        let list = self
            .terms
            .get(key)
            .and_then(|term| self.postings.get(*term as usize))
            .map_or(&[][..], Vec::as_slice);
        #[expect(clippy::cast_precision_loss, reason = "at most 255")]
        list.iter().map(|posting| (posting >> 8, (posting & 0xff) as f32 / 2.0))
    }

    /// The weighted frequency of a term in one document.
    pub fn frequency(&self, key: &str, doc: DocId) -> Option<f32> {
        let list = self.postings.get(*self.terms.get(key)? as usize)?;
        let position = list.binary_search_by_key(&doc, |posting| posting >> 8).ok()?;
        #[expect(clippy::cast_precision_loss, reason = "at most 255")]
        list.get(position).map(|posting| (posting & 0xff) as f32 / 2.0)
    }

    /// Whether a newer memory stands in for this one: its successor may be served too, or is gone from the store. A
    /// successor that was rejected or that the filter hides does not take its place, and a circle of successors has none.
    pub fn is_superseded(&self, doc: &Doc, filter: StatusFilter) -> bool {
        let Some(first) = &doc.superseded_by else { return false };
        if self.rejected.contains(first) {
            return false;
        }
        let Some((_, successor)) = self.find(first) else { return true };
        if !filter.allows(successor.status) {
            return false;
        }
        let mut next = successor;
        for _ in 0..32 {
            if next.id == doc.id {
                return false;
            }
            match next.superseded_by.as_ref().and_then(|id| self.find(id)) {
                Some((_, further)) => next = further,
                None => return true,
            }
        }
        true
    }
}

/// What changed in a store since its index was made.
#[derive(Debug, Default)]
pub struct Changes {
    added: Vec<(RowKey, u64, Memory)>,
    removed: Vec<Box<str>>,
    rejected: HashSet<Box<str>>,
    duplicate_ids: usize,
    without_id: usize,
}

/// How a term is written in the index: words as they are (stemmed), identifiers behind `=`.
pub fn term_key(kind: Kind, text: &str) -> std::borrow::Cow<'_, str> {
    match kind {
        Kind::Word => analysis::stem(text),
        Kind::Identifier => std::borrow::Cow::Owned(format!("={text}")),
    }
}

/// Counts the terms of one memory after the other; remembers which term a word is, so that a word is stemmed once.
#[derive(Default)]
struct Writer {
    words: HashMap<Box<str>, Option<u32>>,
    identifiers: HashMap<Box<str>, Option<u32>>,
    weights: HashMap<u32, u32>,
}

impl Writer {
    /// Fills `weights` with the weighted frequency of every term; returns the number of tokens.
    fn count(&mut self, memory: &Memory, mut term: impl FnMut(Kind, &str) -> u32) -> u32 {
        let Self {
            words,
            identifiers,
            weights,
        } = self;
        weights.clear();
        let mut length = 0;
        let mut field = |text: &str, weight: u32| {
            analysis::tokenize(text, Side::Document, &mut |token: Token<'_>| {
                let seen = if token.kind == Kind::Word { &mut *words } else { &mut *identifiers };
                let number = seen.get(token.text.as_ref()).copied().unwrap_or_else(|| {
                    let stop = token.kind == Kind::Word && analysis::is_stop_word(&token.text);
                    let number = (!stop).then(|| term(token.kind, &token.text));
                    seen.insert(token.text.into_owned().into(), number);
                    number
                });
                if let Some(number) = number {
                    *weights.entry(number).or_default() += weight;
                    length += 1;
                }
            });
        };
        field(&memory.title, TITLE);
        memory.subtitle.iter().for_each(|text| field(text, SUBTITLE));
        memory.facts.iter().chain(&memory.concepts).for_each(|text| field(text, FACTS));
        memory.narrative.iter().for_each(|text| field(text, BODY));
        memory.files.iter().for_each(|text| field(text, FILES));
        length
    }
}
