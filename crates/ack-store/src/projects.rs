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
                // A store has few projects and many memories.
                let mut counts: HashMap<Box<str>, u64> = HashMap::default();
                let mut count = |name: ValueRef<'_>| {
                    let name = values::text_of(name);
                    if let Some(count) = counts.get_mut(&*name) {
                        *count += 1;
                    } else if !name.is_empty() && counts.len() < MAX_NAMES {
                        counts.insert(Box::from(&*name), 1);
                    }
                };
                if table.rule.decisions.is_empty() {
                    // The status is what the store says, which takes no more than these columns.
                    let columns = COLUMNS.map(|field| table.source.column(field).unwrap_or("NULL"));
                    let sql = table.source.select(&columns.join(", "), clauses);
                    let mut statement = connection.prepare(&sql)?;
                    let mut rows = statement.query([])?;
                    while let Some(row) = rows.next()? {
                        let status = values::parse_status(row.get_ref(3)?);
                        if status.is_ok_and(|status| status != Status::Rejected) {
                            count(row.get_ref(1)?);
                            count(row.get_ref(2)?);
                        }
                    }
                } else {
                    table.find(connection, &table.source.query(clauses), [], |row| {
                        if row.joined.status != Status::Rejected {
                            count(row.value(Field::Project)?);
                            count(row.value(Field::ProjectAlias)?);
                        }
                        Ok(None::<()>)
                    })?;
                }
                Ok(counts.into_iter().collect())
            })?;
            for (name, memories) in found {
                projects.add(&name, memories);
            }
        }
        Ok(projects)
    }
}
