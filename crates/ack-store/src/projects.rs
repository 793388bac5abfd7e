//! The projects that a store's memories name.

use rustc_hash::FxHashMap as HashMap;

use crate::layout::Field;
use crate::record::MemoryTable;
use crate::{Snapshot, StoreError, values};
use ack_api::memory::{Status, fold_name};
use ack_api::text;

/// The columns that are read. Rows that are equal in all of them are counted together.
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
            // Decisions are about single rows.
            let are_grouped = self.decisions.is_empty();
            let sql = if are_grouped {
                // SQL counts columns from one.
                let groups = COLUMNS.map(|field| (field.position() + 1).to_string());
                let clauses = format!(" GROUP BY {}", groups.join(", "));
                table.source.count_fields(&COLUMNS, &clauses)
            } else {
                table.source.query("")
            };
            table.find(self.connection, &sql, [], |row| {
                if row.joined.status == Status::Rejected {
                    return Ok(None::<()>);
                }
                let count: i64 = if are_grouped {
                    row.row.get("memories")?
                } else {
                    1
                };
                for field in names {
                    let (name, _) = values::text_value(row.value(field)?);
                    let count = u64::try_from(count).unwrap_or_default();
                    projects.add(&name.unwrap_or_default(), count);
                }
                Ok(None)
            })?;
        }
        Ok(projects)
    }
}
