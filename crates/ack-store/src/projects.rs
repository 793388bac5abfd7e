//! The projects that a store's memories name.

use rustc_hash::FxHashMap as HashMap;

use crate::StoreError;
use crate::layout::Field;
use crate::{Snapshot, record, values};
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
    /// Counts memories that name a project.
    pub fn add(&mut self, name: &str, memories: u64) {
        let folded = fold_name(&text::line(name, 200));
        if folded.is_empty() {
            return;
        }
        let full = self.0.len() >= MAX_NAMES;
        match self.0.get_mut(&folded) {
            Some(known) => *known += memories,
            None if full => {}
            None => drop(self.0.insert(folded, memories)),
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
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn projects(&self) -> Result<RecordedProjects, StoreError> {
        let mut projects = RecordedProjects::default();
        for source in &self.layout.sources {
            if source.column(Field::Project).is_none()
                && source.column(Field::ProjectAlias).is_none()
            {
                continue;
            }
            // SQL counts columns from one.
            let groups: Vec<String> = COLUMNS
                .iter()
                .map(|field| (field.position() + 1).to_string())
                .collect();
            // Decisions are about single rows.
            let is_counted = self.decisions.is_empty();
            let sql = if is_counted {
                format!(
                    "SELECT {}, count(*) AS memories FROM {} GROUP BY {}",
                    source.select_only(&COLUMNS),
                    source.table,
                    groups.join(", ")
                )
            } else {
                source.query("")
            };
            self.visit_rows(&sql, [], |row| {
                if record::status(row, source, self.rule())? == Status::Rejected {
                    return Ok(());
                }
                let count: i64 = if is_counted { row.get("memories")? } else { 1 };
                for field in [Field::Project, Field::ProjectAlias] {
                    let (name, _) = values::text_value(row.get_ref(field.position())?);
                    let count = u64::try_from(count).unwrap_or_default();
                    projects.add(&name.unwrap_or_default(), count);
                }
                Ok(())
            })?;
        }
        Ok(projects)
    }
}
