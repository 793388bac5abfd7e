//! Overviews of sessions: which of them may be shown, and their text.

use rusqlite::Row;

use crate::layout::{Field, OverviewSource, exact};
use crate::{Snapshot, StoreError, values};
use ack_api::memory::{Memory, Overviews, StatusFilter};
use ack_api::text;

const OVERVIEW_CAP: usize = 1_500;

#[derive(Clone, Copy)]
pub(super) struct SessionRef<'a> {
    pub names: &'a [String],
    pub project: Option<&'a str>,
    pub filter: StatusFilter,
}

impl<'a> SessionRef<'a> {
    pub fn of(memory: &'a Memory, names: &'a [String], filter: StatusFilter) -> Self {
        Self { names, project: memory.project.as_deref(), filter }
    }
}

pub(super) struct Overview {
    pub text: String,
    pub memory: Option<Memory>,
}

impl Overview {
    pub fn is_unreviewed(&self) -> bool {
        let status = self.memory.as_ref().map(|memory| memory.status);
        !status.is_some_and(|status| StatusFilter::Approved.allows(status))
    }
}

impl Snapshot<'_> {
    pub(super) fn overview(&self, of: SessionRef<'_>) -> Result<Option<Overview>, StoreError> {
        if self.store.overviews == Some(Overviews::Hide) {
            return Ok(None);
        }
        for source in &self.layout.overviews {
            if source.memories.is_none() && !self.may_show_overviews()? {
                continue;
            }
            if let Some(found) = self.find_overview(source, of)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Whether a session has an overview that is not shown, because the owner has not decided about
    /// overviews and some row is not approved.
    pub(super) fn has_withheld_overview(&self, of: SessionRef<'_>) -> Result<bool, StoreError> {
        if self.store.overviews.is_some() || self.may_show_overviews()? {
            return Ok(false);
        }
        for source in self.layout.overviews.iter().filter(|source| source.memories.is_none()) {
            if self.find_overview(source, of)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The overview of a session that a table has: those of its project first, then the newest.
    fn find_overview(
        &self,
        source: &OverviewSource,
        SessionRef { names, project, filter }: SessionRef<'_>,
    ) -> Result<Option<Overview>, StoreError> {
        if source.content.is_empty() {
            return Ok(None);
        }
        let columns: Vec<&str> = source.content.iter().map(|(_, it)| it.as_str()).collect();
        let columns = columns.join(", ");
        let clauses = format!(
            " WHERE {} = ?1 ORDER BY ({} IS ?2) DESC, {} DESC LIMIT 50",
            exact(&source.session),
            exact(source.project.as_deref().unwrap_or("NULL")),
            exact(&source.order)
        );
        let memories = source.memories.and_then(|number| self.tables().nth(number));
        for name in names {
            let found = if let Some(table) = memories {
                let columns = format!("{}, {columns}", table.source.columns_of_whole_rows());
                let sql = table.source.select(&columns, &clauses);
                table.find(self.connection, &sql, (name, project), |row| {
                    if !filter.allows(row.joined.status) {
                        return Ok(None);
                    }
                    let first = 2 + Field::ALL.len() + table.source.narrative.len();
                    let memory = Some(row.memory()?);
                    let text = content(row.row, source, first)?;
                    Ok(text.map(|text| Overview { text, memory }))
                })?
            } else {
                let status = source.status.as_deref().unwrap_or("NULL");
                let sql = format!("SELECT {status}, {columns} FROM {}{clauses}", source.table);
                self.find_in_rows(&sql, (name, project), |row| {
                    let is_allowed = source.status.is_none()
                        || values::parse_status(row.get_ref(0)?).is_ok_and(|it| filter.allows(it));
                    let text = if is_allowed { content(row, source, 1)? } else { None };
                    let text = text.filter(|text| !self.holds_back_text(text));
                    Ok(text.map(|text| Overview { text, memory: None }))
                })?
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// By the owner's decision, or else if every row is approved.
    pub(super) fn may_show_overviews(&self) -> Result<bool, StoreError> {
        match self.store.overviews {
            Some(policy) => Ok(policy == Overviews::Show),
            None => self.known_or(|it| &mut it.overviews_shown, || self.is_all_approved()),
        }
    }

    fn is_all_approved(&self) -> Result<bool, StoreError> {
        for table in self.tables() {
            let clauses = match table.source.column(Field::Status) {
                _ if !self.decisions.is_empty() || self.holds_back() => String::new(),
                None => " LIMIT 1".to_owned(),
                Some(status) => format!(" GROUP BY {}", exact(status)),
            };
            let sql = table.query(&[Field::Status], &clauses);
            let hidden = table.find(self.connection, &sql, [], |row| {
                let is_shown = StatusFilter::Approved.allows(row.joined.status);
                Ok((!is_shown).then_some(()))
            })?;
            if hidden.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The text of an overview whose columns start at `first`. `None` if all of them are empty.
fn content(
    row: &Row<'_>,
    source: &OverviewSource,
    first: usize,
) -> rusqlite::Result<Option<String>> {
    let mut parts = Vec::new();
    for (position, (label, _)) in source.content.iter().enumerate() {
        let (value, _) = values::text_value(row.get_ref(first + position)?);
        let part = text::block(&value.unwrap_or_default());
        if !part.is_empty() {
            parts.push(if label.is_empty() { part } else { format!("{label}: {part}") });
        }
    }
    let text = text::cut(&parts.join("\n"), OVERVIEW_CAP).0.into_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}
