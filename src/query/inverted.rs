//! The in-memory index of one scope: an inverted index over analysed text, with the columns that filters need.
//!
//! It is derived from the store and kept in step with it row by row: a row whose fingerprint changed is indexed anew, the
//! rest stays. Rejected rows are never indexed; only their ids are known, to tell a rejected successor from a missing one.
//! The index orders and filters; what an answer shows is read from SQLite afterwards, status included.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::names::{Name, Names};
use super::postings::{Posting, Postings};
use super::prepare::{Prepared, Team, unpack};
use super::semantic::{Code, Vectors};
use crate::encoder::Encoder;
use crate::error::StoreError;
use crate::memory::{self, Memory, Status, StatusFilter, Successor};
use crate::store::Snapshot;
use crate::store::read::RowKey;

/// When more than this share of the documents is dead, the index is built anew.
const DEAD_SHARE: usize = 8;
/// So few of them are never worth it.
const FEW_DEAD: usize = 64;

/// Bytes that a short string takes on the heap and in a map, about.
const STRING: usize = 80;

/// Rows that are prepared together.
const BATCH: usize = 2_048;

/// Number of a document within one index.
pub type DocId = u32;

/// What decides about a document at a glance: a bit for its status, none where it is dead, and [`SUCCEEDED`].
pub type Mark = u8;
/// The document names a successor; [`Index::is_superseded`] tells whether that one stands in for it.
pub const SUCCEEDED: Mark = 1 << 7;

/// The marks of live documents that a status filter allows: `mark & allowed != 0`.
pub fn allowed(filter: StatusFilter) -> Mark {
    let served = SERVED.iter().enumerate().filter(|(_, status)| filter.allows(**status));
    served.fold(0, |allowed, (place, _)| allowed | 1 << place)
}

/// The statuses that are indexed.
const SERVED: [Status; 3] = [Status::Approved, Status::Promoted, Status::Staging];

fn mark(status: Status, succeeded: bool) -> Mark {
    let place = SERVED.iter().position(|served| *served == status);
    place.map_or(0, |place| 1 << place) | if succeeded { SUCCEEDED } else { 0 }
}

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

/// The index of one scope.
#[derive(Debug, Default)]
pub struct Index {
    docs: Vec<Doc>,
    by_id: HashMap<Box<str>, DocId>,
    by_row: HashMap<RowKey, DocId>,
    rejected: HashSet<Box<str>>,
    terms: HashMap<Box<str>, u32>,
    postings: Vec<Postings>,
    /// What the legs need of each document, beside the rest of it: its mark and its number of tokens.
    marks: Vec<Mark>,
    lengths: Vec<u32>,
    /// The vector of each document.
    vectors: Vectors,
    names: Names,
    dead: usize,
    /// So many documents came from the vector table; the others were read from the store.
    loaded: usize,
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
    /// An index of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds the index of everything a snapshot holds.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn build(snapshot: &Snapshot<'_>) -> Result<Self, StoreError> {
        let mut index = Self::new();
        let mut builder = Builder::default();
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
            if index.by_id.contains_key(memory.id.as_str()) || !builder.ids.insert(memory.id.as_str().into()) {
                duplicates += 1;
                return Ok(());
            }
            builder.batch.push((row.key, row.fingerprint, memory));
            if builder.batch.len() >= BATCH {
                builder.flush(&mut index);
            }
            Ok(())
        })?;
        builder.flush(&mut index);
        index.duplicate_ids = duplicates;
        index.has_status = snapshot.layout.has_status();
        index.shrink();
        Ok(index)
    }

    /// Gives back memory that growth left over.
    pub fn shrink(&mut self) {
        self.postings.iter_mut().for_each(Postings::shrink);
        self.docs.shrink_to_fit();
        self.vectors.shrink();
    }

    /// Reads what changed since the index was made: the rows to add or replace, and the ids that are gone. Nothing is
    /// changed yet, because a snapshot that was disturbed is read again.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn changes(&self, snapshot: &Snapshot<'_>) -> Result<Changes, StoreError> {
        let mut changes = Changes {
            has_status: snapshot.layout.has_status(),
            ..Changes::default()
        };
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
                && self
                    .doc(*number)
                    .is_some_and(|doc| !doc.dead && doc.fingerprint == row.fingerprint && doc.status == row.status)
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
        let dead = self.dead + dying;
        if dead * DEAD_SHARE > self.docs.len() + changes.added.len() && dead > FEW_DEAD {
            return false;
        }
        self.rejected = changes.rejected;
        self.duplicate_ids = changes.duplicate_ids;
        self.without_id = changes.without_id;
        self.has_status = changes.has_status;
        for id in changes.removed {
            self.kill(&id);
        }
        let mut builder = Builder::default();
        for row in changes.added {
            self.kill(&row.2.id);
            builder.batch.push(row);
            if builder.batch.len() >= BATCH {
                builder.flush(self);
            }
        }
        builder.flush(self);
        true
    }

    fn kill(&mut self, id: &str) {
        if let Some(number) = self.by_id.remove(id)
            && let Some(doc) = self.docs.get_mut(number as usize)
        {
            doc.dead = true;
            if let Some(mark) = self.marks.get_mut(number as usize) {
                *mark = 0;
            }
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

    /// Adds a memory with its terms as this index numbers them.
    fn add(&mut self, entry: &Entry<'_>, terms: impl Iterator<Item = (u32, u32)>) {
        // 24 bits are 16 million documents; beyond that a scope is not searched in memory.
        let Ok(number) = DocId::try_from(self.docs.len()) else { return };
        if number >= 1 << 24 {
            return;
        }
        for (term, weight) in terms {
            if let Some(list) = self.postings.get_mut(term as usize) {
                list.push(number << 8 | weight.min(255));
            }
        }
        self.vectors.push(entry.code.as_ref());
        let doc = Doc {
            key: entry.key,
            fingerprint: entry.fingerprint,
            id: entry.id.into(),
            created: entry.created,
            updated: entry.updated,
            length: entry.length,
            status: entry.status,
            dead: false,
            project: self.names.intern(entry.project),
            alias: self.names.intern(entry.alias),
            session: self.names.intern(entry.session),
            session_id: self.names.intern(entry.session_id),
            kind: self.names.intern(entry.kind),
            tags: entry.tags.iter().map(|tag| self.names.intern(tag)).collect(),
            files: entry.files.iter().map(|file| self.names.intern(file)).collect(),
            superseded_by: entry.superseded_by.filter(|newer| *newer != entry.id).map(Box::from),
        };
        let size = self.sizes.entry(doc.status).or_default();
        *size = (size.0 + 1, size.1 + u64::from(doc.length));
        self.marks.push(mark(doc.status, doc.superseded_by.is_some()));
        self.lengths.push(doc.length);
        self.by_id.insert(doc.id.clone(), number);
        if doc.key.rowid != 0 {
            self.by_row.insert(doc.key, number);
        }
        self.docs.push(doc);
    }

    /// The numbers of terms, new ones where need be.
    pub fn number_terms<'t>(&mut self, terms: impl Iterator<Item = &'t str>) -> Vec<u32> {
        terms.map(|term| self.term(term)).collect()
    }

    /// Adds a row of the vector table, its terms as this index numbers them. One whose id is known already is left to the
    /// store to decide.
    pub fn add_loaded(&mut self, entry: &Entry<'_>, terms: impl Iterator<Item = (u32, u32)>) {
        if entry.key.rowid != 0 && !self.by_id.contains_key(entry.id) && !self.by_row.contains_key(&entry.key) {
            self.add(entry, terms);
        }
    }

    /// Says that everything so far came from the vector table.
    pub fn set_loaded(&mut self) {
        self.loaded = self.docs.len();
        self.shrink();
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let postings: usize = self
            .postings
            .iter()
            .map(|list| size_of::<Postings>() + size_of_val(list.as_slice()))
            .sum();
        // Strings lie on the heap, each with an entry in a map or a list.
        let strings = (self.terms.len() + 2 * self.names.count() + 2 * self.docs.len()) * STRING;
        let documents = self.docs.capacity() * (size_of::<Doc>() + 2 * STRING);
        postings + strings + documents + self.vectors.bytes()
    }

    /// Share of the memories that came from the vector table as they are, 0 to 1.
    pub fn coverage(&self) -> f64 {
        let live = |docs: &[Doc]| docs.iter().filter(|doc| !doc.dead).count();
        let (loaded, all) = (live(self.docs.get(..self.loaded).unwrap_or_default()), live(&self.docs));
        #[expect(clippy::cast_precision_loss, reason = "counts of documents")]
        let share = if all == 0 { 1.0 } else { loaded as f64 / all as f64 };
        share
    }

    fn term(&mut self, key: &str) -> u32 {
        if let Some(term) = self.terms.get(key) {
            return *term;
        }
        let term = u32::try_from(self.postings.len()).unwrap_or(u32::MAX);
        self.postings.push(Postings::default());
        self.terms.insert(key.into(), term);
        term
    }

    /// The number of an interned string, if any document has it.
    pub fn lookup(&self, text: &str) -> Option<Name> {
        self.names.lookup(text)
    }

    /// The string behind a number.
    pub fn name(&self, name: Name) -> &str {
        self.names.name(name)
    }

    /// The folded name of a name: what comparisons go by.
    pub fn fold(&self, name: Name) -> Name {
        self.names.fold(name)
    }

    /// See [`Names::counted`].
    pub fn counted(&self, names: impl Iterator<Item = Name>) -> Vec<(&str, u64)> {
        self.names.counted(names)
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

    /// Whether the store holds a rejected row of this id.
    pub fn is_rejected(&self, id: &str) -> bool {
        self.rejected.contains(id)
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
        let allowed = allowed(filter);
        self.list(key).iter().any(|posting| self.mark(posting >> 8) & allowed != 0)
    }

    /// How many live documents that the filter allows hold a term.
    pub fn document_frequency(&self, key: &str, filter: StatusFilter) -> usize {
        let allowed = allowed(filter);
        self.list(key)
            .iter()
            .filter(|posting| self.mark(*posting >> 8) & allowed != 0)
            .count()
    }

    /// The mark of a document.
    pub fn mark(&self, doc: DocId) -> Mark {
        self.marks.get(doc as usize).copied().unwrap_or_default()
    }

    /// The number of tokens of every document, dead ones too.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    fn list(&self, key: &str) -> &[Posting] {
        let list = self.terms.get(key).and_then(|term| self.postings.get(*term as usize));
        list.map_or(&[], Postings::as_slice)
    }

    /// The documents that hold a term (as [`super::prepare::term_key`] writes it), with the weighted frequency; dead documents too.
    pub fn postings(&self, key: &str) -> impl Iterator<Item = (DocId, f32)> {
        #[expect(clippy::cast_precision_loss, reason = "at most 255")]
        self.list(key).iter().map(|posting| (posting >> 8, (posting & 0xff) as f32 / 2.0))
    }

    /// The vectors, one a document in the order of their numbers.
    pub const fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// The weighted frequency of a term in one document.
    pub fn frequency(&self, key: &str, doc: DocId) -> Option<f32> {
        let list = self.list(key);
        let position = list.binary_search_by_key(&doc, |posting| posting >> 8).ok()?;
        #[expect(clippy::cast_precision_loss, reason = "at most 255")]
        list.get(position).map(|posting| (posting & 0xff) as f32 / 2.0)
    }

    /// Whether a newer memory stands in for this one, see [`memory::is_superseded`].
    pub fn is_superseded(&self, doc: &Doc, filter: StatusFilter) -> bool {
        memory::is_superseded(&doc.id, doc.superseded_by.as_deref(), filter, |id| match self.find(id) {
            _ if self.rejected.contains(id) => Successor::Rejected,
            Some((_, found)) => Successor::There {
                status: found.status,
                next: found.superseded_by.as_deref(),
            },
            None => Successor::Gone,
        })
    }
}

/// A row of a store with its fingerprint.
type Row = (RowKey, u64, Memory);

/// What the index keeps of a memory, before it is numbered.
pub struct Entry<'a> {
    /// Where the row lies.
    pub key: RowKey,
    /// Hash of the row.
    pub fingerprint: u64,
    /// Public id.
    pub id: &'a str,
    /// As in [`Doc`].
    pub created: i64,
    /// As in [`Doc`].
    pub updated: i64,
    /// Number of tokens.
    pub length: u32,
    /// Curation status.
    pub status: Status,
    /// Empty where unknown, as the next four.
    pub project: &'a str,
    /// The project's second name.
    pub alias: &'a str,
    /// Session name.
    pub session: &'a str,
    /// Session id.
    pub session_id: &'a str,
    /// Type.
    pub kind: &'a str,
    /// Tags.
    pub tags: Vec<&'a str>,
    /// Files.
    pub files: Vec<&'a str>,
    /// Id of the memory that replaces this one.
    pub superseded_by: Option<&'a str>,
    /// Its vector.
    pub code: Option<Code>,
}

impl<'a> Entry<'a> {
    fn of((key, fingerprint, memory): &'a Row, prepared: &Prepared) -> Self {
        let instant = |time: Option<jiff::Timestamp>| time.map_or(i64::MIN, jiff::Timestamp::as_millisecond);
        Self {
            key: *key,
            fingerprint: *fingerprint,
            id: &memory.id,
            created: instant(memory.created_at),
            updated: instant(memory.updated_at),
            length: prepared.length,
            status: memory.status,
            project: memory.project.as_deref().unwrap_or_default(),
            alias: memory.project_alias.as_deref().unwrap_or_default(),
            session: memory.session.as_deref().unwrap_or_default(),
            session_id: memory.session_id.as_deref().unwrap_or_default(),
            kind: memory.kind.as_deref().unwrap_or_default(),
            tags: memory.concepts.iter().map(String::as_str).collect(),
            files: memory.files.iter().map(String::as_str).collect(),
            superseded_by: memory.superseded_by.as_deref(),
            code: prepared.code(),
        }
    }
}

/// Collects rows and adds them to an index in batches, prepared on several threads.
struct Builder {
    team: Team,
    batch: Vec<Row>,
    /// Ids in the batch.
    ids: HashSet<Box<str>>,
    /// What the index calls the terms of each analyst.
    translate: Vec<Vec<u32>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            team: Team::new(Encoder::embedded()),
            batch: Vec::new(),
            ids: HashSet::default(),
            translate: Vec::new(),
        }
    }
}

impl Builder {
    fn flush(&mut self, index: &mut Index) {
        let memories: Vec<&Memory> = self.batch.iter().map(|(_, _, memory)| memory).collect();
        let prepared = self.team.prepare(&memories);
        for (row, (analyst, prepared)) in self.batch.iter().zip(&prepared) {
            if self.translate.len() <= *analyst {
                self.translate.resize_with(analyst + 1, Vec::new);
            }
            let Some(translate) = self.translate.get_mut(*analyst) else {
                continue;
            };
            let known = translate.len();
            let new = self.team.terms(*analyst).get(known..).unwrap_or_default();
            translate.extend(new.iter().map(|term| index.term(term)));
            let own = |term: u32| translate.get(term as usize).copied();
            let terms = prepared.terms.iter().map(|weighted| unpack(*weighted));
            let terms = terms.filter_map(|(term, weight)| Some((own(term)?, weight)));
            index.add(&Entry::of(row, prepared), terms);
        }
        self.batch.clear();
        self.ids.clear();
    }
}

/// What changed in a store since its index was made.
#[derive(Debug, Default)]
pub struct Changes {
    added: Vec<Row>,
    removed: Vec<Box<str>>,
    rejected: HashSet<Box<str>>,
    duplicate_ids: usize,
    without_id: usize,
    has_status: bool,
}
