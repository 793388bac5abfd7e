//! Which projects the memories of a store name.

use rustc_hash::FxHashMap as HashMap;

use crate::StoreError;
use crate::layout::Field;
use crate::{Snapshot, record, values};
use ack_api::memory::{Status, fold_name};
use ack_api::text;

/// What is read of a row; rows in which all of this is equal are counted together.
const COLUMNS: [Field; 3] = [Field::Project, Field::ProjectAlias, Field::Status];
/// Most names that are kept. What a store with more of them writes there is something else.
const MAX_NAMES: usize = 10_000;

/// The projects that memories name, by folded name.
#[derive(Debug, Default)]
pub struct RecordedProjects(HashMap<String, RecordedProject>);

/// A project that memories name.
#[derive(Debug)]
pub struct RecordedProject {
    /// A spelling of it, as an answer shows it.
    pub name: String,
    /// How many memories name it.
    pub memories: u64,
}

impl RecordedProjects {
    /// Counts memories that name a project.
    pub fn add(&mut self, name: &str, memories: u64) {
        let name = text::line(name, 200);
        let folded = fold_name(&name);
        if folded.is_empty() {
            return;
        }
        let full = self.0.len() >= MAX_NAMES;
        match self.0.get_mut(&folded) {
            Some(known) => known.memories += memories,
            None if full => {}
            None => drop(self.0.insert(folded, RecordedProject { name, memories })),
        }
    }

    /// The project of a folded name.
    pub fn get(&self, folded: &str) -> Option<&RecordedProject> {
        self.0.get(folded)
    }
}

impl Snapshot<'_> {
    /// The projects of the memories that are not rejected; a second name counts as one of its own.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn projects(&self) -> Result<RecordedProjects, StoreError> {
        let mut projects = RecordedProjects::default();
        for source in &self.layout.sources {
            if source.column(Field::Project).is_none() && source.column(Field::ProjectAlias).is_none() {
                continue;
            }
            // SQL counts columns from one.
            let groups: Vec<String> = COLUMNS.iter().map(|field| (field.position() + 1).to_string()).collect();
            let (columns, groups) = (source.select_only(&COLUMNS), groups.join(", "));
            let sql = format!("SELECT {columns}, count(*) FROM {} GROUP BY {groups}", source.table);
            let mut statement = self.fail(self.connection.prepare(&sql))?;
            let counted = statement.column_count().saturating_sub(1);
            let mut rows = self.fail(statement.query([]))?;
            while let Some(row) = self.fail(rows.next())? {
                if self.fail(record::status(row, source, self.unreviewed))? == Status::Rejected {
                    continue;
                }
                let count: i64 = self.fail(row.get(counted))?;
                for field in [Field::Project, Field::ProjectAlias] {
                    let (name, _) = values::string(self.fail(row.get_ref(field.position()))?);
                    projects.add(&name.unwrap_or_default(), u64::try_from(count).unwrap_or_default());
                }
            }
        }
        Ok(projects)
    }
}
