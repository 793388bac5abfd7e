//! The projects that a store's memories name.

use rustc_hash::FxHashMap as HashMap;

use crate::layout::Field;
use crate::record::MemoryTable;
use crate::{Snapshot, StoreError, values};
use ack_api::memory::{Status, fold_name};
use ack_api::text;

const COLUMNS: [Field; 3] = [Field::Project, Field::ProjectAlias, Field::Status];
/// How many names are kept. If a store has more, they are not project names.
const MAX_NAMES: usize = 10_000;

/// The projects that memories name: how many memories name each, by folded name.
#[derive(Debug, Default)]
pub struct RecordedProjects(HashMap<String, u64>);

impl RecordedProjects {
    pub fn add(&mut self, name: &str, memories: u64) {
        let folded = fold_name(&text::line(name, 200));
        let is_full = self.0.len() >= MAX_NAMES && !self.0.contains_key(&folded);
        if !folded.is_empty() && !is_full {
            *self.0.entry(folded).or_default() += memories;
        }
    }

    /// How many memories name a project, by its folded name; `None` if none does.
    pub fn memories_of(&self, folded: &str) -> Option<u64> {
        self.0.get(folded).copied()
    }
}

impl Snapshot<'_> {
    /// The projects of all memories that are not rejected. A project's alias counts as a separate
    /// project.
    pub fn projects(&self) -> Result<RecordedProjects, StoreError> {
        let mut projects = RecordedProjects::default();
        for table in self.tables().map(MemoryTable::quick) {
            let names = [Field::Project, Field::ProjectAlias];
            if names.iter().all(|it| table.source.column(*it).is_none()) {
                continue;
            }
            let found = self.split_scan(table.source, |connection, clauses| {
                let mut counts: HashMap<Box<str>, u64> = HashMap::default();
                let sql = table.query(&COLUMNS, clauses);
                table.find(connection, &sql, [], |row| {
                    if row.joined.status == Status::Rejected {
                        return Ok(None::<()>);
                    }
                    for field in names {
                        // A store has few projects and many memories.
                        let name = values::text_of(row.value(field)?);
                        if name.is_empty() {
                            continue;
                        }
                        if let Some(count) = counts.get_mut(&*name) {
                            *count += 1;
                        } else if counts.len() < MAX_NAMES {
                            counts.insert(Box::from(name), 1);
                        }
                    }
                    Ok(None)
                })?;
                Ok(counts.into_iter().collect())
            })?;
            for (name, memories) in found {
                projects.add(&name, memories);
            }
        }
        Ok(projects)
    }
}
