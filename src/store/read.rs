//! The questions asked of a store. Each runs inside one snapshot; whoever asks decides what the status allow-list lets
//! through, and rows it does not are returned with their status or not at all, as each function says.

use std::collections::HashMap;

use rusqlite::{Connection, Row};

use super::layout::{Field, Source};
use super::{Snapshot, record, values};
use crate::api::{Counts, HistoryEntry, SessionContext, SessionEntry};
use crate::error::StoreError;
use crate::memory::{Memory, Status, StatusFilter, fold_name};
use crate::{text, time};

/// Where a row lies: its source and its row number (0 where the table has none).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// Index into [`super::layout::Layout::sources`].
    pub source: u8,
    /// SQLite's row number.
    pub rowid: i64,
}

/// A row during a scan, decoded only as far as it is asked to.
pub struct ScannedRow<'a> {
    /// Where it lies.
    pub key: RowKey,
    /// Its status now.
    pub status: Status,
    /// Hash of all its values.
    pub fingerprint: u64,
    row: &'a Row<'a>,
    source: &'a Source,
    snapshot: &'a Snapshot<'a>,
}

/// What is told of a row in a list of all.
#[derive(Debug)]
pub enum ListedRow {
    /// It is rejected; its id.
    Rejected(String),
    /// Where it lies, the hash of all its values, and its status.
    There(RowKey, u64, Status),
}

/// Tells the fingerprint of a row.
type Fingerprint<'a> = &'a mut dyn FnMut() -> rusqlite::Result<u64>;

impl ScannedRow<'_> {
    /// The row's public id.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn id(&self) -> Result<String, StoreError> {
        self.snapshot.fail(record::id(self.row))
    }

    /// The row as a memory.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn memory(&self) -> Result<Memory, StoreError> {
        self.snapshot.fail(record::memory(self.row, self.source, self.snapshot.unreviewed))
    }
}

impl Snapshot<'_> {
    pub(super) fn fail<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| StoreError::sqlite(self.path, error))
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = (u8, &Source)> {
        (0u8..).zip(self.layout.sources.iter())
    }

    /// Visits every row, rejected ones too, in the order in which they were stored.
    ///
    /// # Errors
    /// What SQLite said, or what `visit` returned.
    pub fn scan(&self, mut visit: impl FnMut(&ScannedRow<'_>) -> Result<(), StoreError>) -> Result<(), StoreError> {
        self.scanned.set(true);
        let mut bytes = Vec::new();
        for (number, source) in self.sources() {
            let order = source.row_number.map_or_else(String::new, |number| format!(" ORDER BY {number}"));
            let sql = format!("SELECT {} FROM {}{order}", source.select_list(), source.table);
            let mut statement = self.fail(self.connection.prepare(&sql))?;
            let mut rows = self.fail(statement.query([]))?;
            while let Some(row) = self.fail(rows.next())? {
                let status = self.fail(record::status(row, source, self.unreviewed))?;
                let key = RowKey {
                    source: number,
                    rowid: self.fail(row.get(0))?,
                };
                let fingerprint = self.fail(record::fingerprint(row, source, &mut bytes))?;
                visit(&ScannedRow {
                    key,
                    status,
                    fingerprint,
                    row,
                    source,
                    snapshot: self,
                })?;
            }
        }
        Ok(())
    }

    /// What tells whether a row is as it was, of every row, in the order in which they were stored.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn list(&self) -> Result<Vec<ListedRow>, StoreError> {
        self.gather(|key, status, row, fingerprint| {
            Ok(Some(match status {
                Status::Rejected => ListedRow::Rejected(record::id(row)?),
                _ => ListedRow::There(key, fingerprint()?, status),
            }))
        })
    }

    /// Every row that may be served and has a row number, by its id, with its fingerprint, in the order in which they were
    /// stored. Ids may stand twice.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn fingerprints(&self) -> Result<Vec<(RowKey, u64, Box<str>)>, StoreError> {
        self.gather(|key, status, row, fingerprint| {
            if status == Status::Rejected || key.rowid == 0 {
                return Ok(None);
            }
            let id = record::id(row)?;
            Ok(if id.is_empty() {
                None
            } else {
                Some((key, fingerprint()?, id.into_boxed_str()))
            })
        })
    }

    /// What `make` makes of each row, given where it lies, its status, itself, and what tells its fingerprint.
    fn gather<T: Send>(
        &self,
        make: impl Fn(RowKey, Status, &Row<'_>, Fingerprint<'_>) -> rusqlite::Result<Option<T>> + Sync,
    ) -> Result<Vec<T>, StoreError> {
        self.scanned.set(true);
        let mut gathered = Vec::new();
        let unreviewed = self.unreviewed;
        for (number, source) in self.sources() {
            let pass = |connection: &Connection, within: &str| {
                let sql = format!("SELECT {} FROM {}{within}", source.select_list(), source.table);
                let mut statement = connection.prepare(&sql)?;
                let mut rows = statement.query([])?;
                let (mut made, mut bytes) = (Vec::new(), Vec::new());
                while let Some(row) = rows.next()? {
                    let status = record::status(row, source, unreviewed)?;
                    let key = RowKey {
                        source: number,
                        rowid: row.get(0)?,
                    };
                    made.extend(make(key, status, row, &mut || record::fingerprint(row, source, &mut bytes))?);
                }
                Ok(made)
            };
            gathered.append(&mut self.in_halves(source, pass)?);
        }
        Ok(gathered)
    }

    /// Reads the memories at the given places, in any order. Rows that are gone, or whose status is not allowed now, are
    /// not in the result.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn memories(&self, wanted: &[(RowKey, &str)], filter: StatusFilter) -> Result<HashMap<String, Memory>, StoreError> {
        let mut found = HashMap::with_capacity(wanted.len());
        for (number, source) in self.sources() {
            let list = source.select_list();
            let by_row = source
                .row_number
                .map(|number| format!("SELECT {list} FROM {} WHERE {number} = ?1", source.table));
            let mut statement = by_row.map(|sql| self.fail(self.connection.prepare_cached(&sql))).transpose()?;
            for (key, id) in wanted.iter().filter(|(key, _)| key.source == number) {
                let memory = match &mut statement {
                    Some(statement) => {
                        let mut rows = self.fail(statement.query([key.rowid]))?;
                        match self.fail(rows.next())? {
                            Some(row) => Some(self.fail(record::memory(row, source, self.unreviewed))?),
                            None => None,
                        }
                    }
                    None => match self.in_source(source, id)? {
                        None => self.by_shown_id(source, id)?,
                        found => found,
                    },
                };
                // A row number may have been given to another memory meanwhile.
                if let Some(memory) = memory.filter(|memory| memory.id == *id && filter.allows(memory.status)) {
                    found.insert(memory.id.clone(), memory);
                }
            }
        }
        Ok(found)
    }

    /// Reads the rows at the given places with their fingerprints, whatever their status; those that are gone are not in the
    /// result.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn rows(&self, wanted: &[RowKey]) -> Result<Vec<(RowKey, u64, Memory)>, StoreError> {
        let mut found = Vec::with_capacity(wanted.len());
        let mut bytes = Vec::new();
        for (number, source) in self.sources() {
            let Some(row_number) = &source.row_number else { continue };
            let sql = format!("SELECT {} FROM {} WHERE {row_number} = ?1", source.select_list(), source.table);
            let mut statement = self.fail(self.connection.prepare(&sql))?;
            for key in wanted.iter().filter(|key| key.source == number) {
                let mut rows = self.fail(statement.query([key.rowid]))?;
                if let Some(row) = self.fail(rows.next())? {
                    let fingerprint = self.fail(record::fingerprint(row, source, &mut bytes))?;
                    found.push((*key, fingerprint, self.fail(record::memory(row, source, self.unreviewed))?));
                }
            }
        }
        Ok(found)
    }

    /// The memory with this id, whatever its status. Callers check [`Memory::status`] before they show it.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn by_id(&self, id: &str) -> Result<Option<Memory>, StoreError> {
        for (_, source) in self.sources() {
            if let Some(memory) = self.in_source(source, id)? {
                return Ok(Some(memory));
            }
        }
        Ok(None)
    }

    /// Finds a row of a table without row numbers whose id is not shown as it is stored (see [`record::memory`]).
    fn by_shown_id(&self, source: &Source, id: &str) -> Result<Option<Memory>, StoreError> {
        let sql = format!("SELECT {} FROM {}", source.select_list(), source.table);
        let mut statement = self.fail(self.connection.prepare(&sql))?;
        let mut rows = self.fail(statement.query([]))?;
        while let Some(row) = self.fail(rows.next())? {
            if self.fail(record::id(row))? == id {
                return Ok(Some(self.fail(record::memory(row, source, self.unreviewed))?));
            }
        }
        Ok(None)
    }

    fn in_source(&self, source: &Source, id: &str) -> Result<Option<Memory>, StoreError> {
        let Some((condition, parameter)) = source.id.condition(id) else {
            return Ok(None);
        };
        let sql = format!("SELECT {} FROM {} WHERE {condition} LIMIT 1", source.select_list(), source.table);
        let mut statement = self.fail(self.connection.prepare(&sql))?;
        let mut rows = self.fail(statement.query([parameter]))?;
        match self.fail(rows.next())? {
            Some(row) => Ok(Some(self.fail(record::memory(row, source, self.unreviewed))?)),
            None => Ok(None),
        }
    }

    /// How many rows there are of each status.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn counts(&self) -> Result<Counts, StoreError> {
        let mut counts = Counts::default();
        for (_, source) in self.sources() {
            let column = source.column(Field::Status).unwrap_or("NULL");
            let sql = format!("SELECT CAST({column} AS TEXT), count(*) FROM {} GROUP BY 1", source.table);
            let mut statement = self.fail(self.connection.prepare(&sql))?;
            let mut rows = self.fail(statement.query([]))?;
            while let Some(row) = self.fail(rows.next())? {
                let (word, _) = values::string(self.fail(row.get_ref(0))?);
                let count: i64 = self.fail(row.get(1))?;
                let word = word.unwrap_or_default();
                let status = match (source.column(Field::Status), word.trim()) {
                    (None, _) => Some(self.unreviewed.status()),
                    (Some(_), "") => Some(Status::Staging),
                    (Some(_), word) => Status::parse(word),
                };
                let slot = match status {
                    Some(Status::Approved) => &mut counts.approved,
                    Some(Status::Promoted) => &mut counts.promoted,
                    Some(Status::Staging) => &mut counts.staging,
                    Some(Status::Rejected) => &mut counts.rejected,
                    None => &mut counts.unknown,
                };
                *slot += u64::try_from(count).unwrap_or_default();
            }
        }
        Ok(counts)
    }

    /// What the session of a memory was about. An overview that is itself an unreviewed memory is shown only where the
    /// filter lets unreviewed rows through.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn session_context(&self, memory: &Memory, filter: StatusFilter) -> Result<Option<SessionContext>, StoreError> {
        let names: Vec<String> = [&memory.session, &memory.session_id].into_iter().flatten().cloned().collect();
        if names.is_empty() {
            return Ok(None);
        }
        let context = SessionContext {
            title: self.session_title(&names)?,
            overview: self.overview(&names, memory.project.as_deref(), filter)?,
        };
        Ok((context != SessionContext::default()).then_some(context))
    }

    fn session_title(&self, names: &[String]) -> Result<Option<String>, StoreError> {
        for source in &self.layout.sessions {
            let Some(title) = &source.title else { continue };
            for name in names {
                let condition: Vec<String> = source.keys.iter().map(|key| format!("{key} = ?1")).collect();
                let sql = format!("SELECT {title} FROM {} WHERE {} LIMIT 1", source.table, condition.join(" OR "));
                let mut statement = self.fail(self.connection.prepare(&sql))?;
                let mut rows = self.fail(statement.query([name]))?;
                if let Some(row) = self.fail(rows.next())?
                    && let (Some(title), _) = values::string(self.fail(row.get_ref(0))?)
                    && !title.trim().is_empty()
                {
                    return Ok(Some(text::line(&title, 200)));
                }
            }
        }
        Ok(None)
    }

    fn overview(&self, names: &[String], project: Option<&str>, filter: StatusFilter) -> Result<Option<String>, StoreError> {
        for source in &self.layout.overviews {
            if source.content.is_empty() || (source.is_memory && !filter.allows(self.unreviewed.status())) {
                continue;
            }
            let columns: Vec<&str> = source.content.iter().map(|(_, column)| column.as_str()).collect();
            let project_column = source.project.as_deref().unwrap_or("NULL");
            let sql = format!(
                "SELECT {} FROM {} WHERE {} = ?1 ORDER BY ({project_column} IS ?2) DESC, {} DESC LIMIT 1",
                columns.join(", "),
                source.table,
                source.session,
                source.order
            );
            let mut statement = self.fail(self.connection.prepare(&sql))?;
            for name in names {
                let mut rows = self.fail(statement.query((name, project)))?;
                let Some(row) = self.fail(rows.next())? else { continue };
                let mut parts = Vec::new();
                for (position, (label, _)) in source.content.iter().enumerate() {
                    let (value, _) = values::string(self.fail(row.get_ref(position))?);
                    let part = text::block(&value.unwrap_or_default());
                    if !part.is_empty() {
                        parts.push(if label.is_empty() { part } else { format!("{label}: {part}") });
                    }
                }
                if !parts.is_empty() {
                    return Ok(Some(text::cut(&parts.join("\n"), 1_500).0.into_owned()));
                }
            }
        }
        Ok(None)
    }

    /// The newest sessions whose project is one of `projects` (folded names), with their overviews; sessions without a
    /// project count only with `unnamed`.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn recent_sessions(
        &self,
        projects: &[String],
        unnamed: bool,
        filter: StatusFilter,
        most: usize,
    ) -> Result<Vec<SessionEntry>, StoreError> {
        let mut dated: Vec<(Option<jiff::Timestamp>, SessionEntry)> = Vec::new();
        for source in &self.layout.sessions {
            let Some(key) = source.keys.first() else { continue };
            let or_null = |column: &Option<String>| column.clone().unwrap_or_else(|| "NULL".to_owned());
            let started = or_null(&source.started);
            let sql = format!(
                "SELECT {key}, {}, {}, {started} FROM {} WHERE {key} IS NOT NULL ORDER BY {started} DESC LIMIT 500",
                or_null(&source.title),
                or_null(&source.project),
                source.table
            );
            let mut statement = self.fail(self.connection.prepare(&sql))?;
            let mut rows = self.fail(statement.query([]))?;
            while let Some(row) = self.fail(rows.next())? {
                let (Some(session), _) = values::string(self.fail(row.get_ref(0))?) else {
                    continue;
                };
                let (title, _) = values::string(self.fail(row.get_ref(1))?);
                let (project, _) = values::string(self.fail(row.get_ref(2))?);
                let mine = project.as_deref().map_or(unnamed, |project| projects.contains(&fold_name(project)));
                let title = title.map(|title| text::line(&title, 200)).filter(|title| !title.is_empty());
                if !mine || session.trim().is_empty() {
                    continue;
                }
                let date = values::instant(self.fail(row.get_ref(3))?);
                let overview = self.overview(std::slice::from_ref(&session), project.as_deref(), filter)?;
                if title.is_none() && overview.is_none() {
                    continue;
                }
                let overview = overview.map(|overview| text::line(&overview, 500));
                dated.push((
                    date,
                    SessionEntry {
                        session: text::line(&session, 200),
                        title,
                        overview,
                        date: date.map(time::show),
                    },
                ));
                if dated.len() >= most * (self.layout.sessions.len()).max(1) {
                    break;
                }
            }
        }
        dated.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.session.cmp(&b.1.session)));
        Ok(dated.into_iter().take(most).map(|(_, entry)| entry).collect())
    }

    /// The curation log of a memory, oldest first.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn history(&self, id: &str) -> Result<Vec<HistoryEntry>, StoreError> {
        let Some(source) = &self.layout.log else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT {} FROM {} WHERE {} = ?1 ORDER BY {}, {} LIMIT 200",
            source.columns.join(", "),
            source.table,
            source.memory,
            source.columns[5],
            source.order
        );
        let mut statement = self.fail(self.connection.prepare(&sql))?;
        let mut rows = self.fail(statement.query([id]))?;
        let mut entries = Vec::new();
        while let Some(row) = self.fail(rows.next())? {
            let text = |position| -> Result<Option<String>, StoreError> {
                Ok(values::string(self.fail(row.get_ref(position))?)
                    .0
                    .map(|value| text::line(&value, 500))
                    .filter(|value| !value.is_empty()))
            };
            entries.push(HistoryEntry {
                action: text(0)?.unwrap_or_default(),
                previous_status: text(1)?,
                new_status: text(2)?,
                reason: text(3)?,
                actor: text(4)?,
                created_at: values::instant(self.fail(row.get_ref(5))?).map(time::show),
            });
        }
        Ok(entries)
    }
}
