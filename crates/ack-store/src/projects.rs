//! The projects that a store's memories name.

use rusqlite::types::ValueRef;
use rustc_hash::FxHashMap as HashMap;

use crate::layout::Field;
use crate::record::MemoryTable;
use crate::{Snapshot, StoreError, values};
use ack_api::memory::{Status, fold_name};
use ack_api::text;

const COLUMNS: [Field; 3] = [Field::Project, Field::ProjectAlias, Field::Status];
/// How many names are kept. If a store has more, they are not project names.
const MAX_NAMES: usize = 10_000;

/// How many memories name each project, by folded name.
#[derive(Debug, Default)]
pub struct RecordedProjects(HashMap<String, u64>);

impl RecordedProjects {
    fn add(&mut self, name: &str, memories: u64) {
        let folded = fold_name(&text::line(name, 200));
        let is_full = self.0.len() >= MAX_NAMES && !self.0.contains_key(&folded);
        if !folded.is_empty() && !is_full {
            *self.0.entry(folded).or_default() += memories;
        }
    }

    /// `None` if no memory names it.
    pub fn memories_of(&self, folded: &str) -> Option<u64> {
        self.0.get(folded).copied()
    }
}

/// How many rows have each name, as it is stored.
#[derive(Default)]
struct NameCounts(HashMap<Box<str>, u64>);

impl NameCounts {
    fn add(&mut self, names: [ValueRef<'_>; 2]) {
        let names = names.map(values::text_of);
        for name in names.iter().filter(|name| !name.is_empty()) {
            // A store has few projects and many memories.
            if let Some(count) = self.0.get_mut(&**name) {
                *count += 1;
            } else if self.0.len() < MAX_NAMES {
                self.0.insert(Box::from(&**name), 1);
            }
        }
    }
}

impl Snapshot<'_> {
    /// The projects of memories that are not rejected. An alias counts separately.
    pub fn projects(&self) -> Result<RecordedProjects, StoreError> {
        let mut projects = RecordedProjects::default();
        for table in self.tables().map(MemoryTable::quick) {
            let names = [Field::Project, Field::ProjectAlias];
            if names.iter().all(|it| table.source.column(*it).is_none()) {
                continue;
            }
            let found = self.split_scan(table.source, |connection, clauses| {
                let mut counts = NameCounts::default();
                if table.rule.decisions.is_empty() {
                    // The status is what the store says, which takes no more than these columns.
                    let columns = COLUMNS.map(|field| table.source.column(field).unwrap_or("NULL"));
                    let sql = table.source.select(&columns.join(", "), clauses);
                    let mut statement = connection.prepare(&sql)?;
                    let mut rows = statement.query([])?;
                    while let Some(row) = rows.next()? {
                        let status = values::parse_status(row.get_ref(3)?);
                        if status.is_ok_and(|status| status != Status::Rejected) {
                            counts.add([row.get_ref(1)?, row.get_ref(2)?]);
                        }
                    }
                } else {
                    table.find(connection, &table.source.query(clauses), [], |row| {
                        if row.joined.status != Status::Rejected {
                            let [name, alias] = names.map(|field| row.value(field));
                            counts.add([name?, alias?]);
                        }
                        Ok(None::<()>)
                    })?;
                }
                Ok(counts.0.into_iter().collect())
            })?;
            for (name, memories) in found {
                projects.add(&name, memories);
            }
        }
        Ok(projects)
    }
}
