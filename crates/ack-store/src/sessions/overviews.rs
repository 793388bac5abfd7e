//! Overviews of sessions: which of them may be shown, and their text.

use super::super::layout::{Field, MemorySource, OverviewSource, exact};
use super::super::{Snapshot, record, values};
use crate::StoreError;
use ack_api::memory::{Memory, Overviews, StatusFilter};
use ack_api::text;

/// The largest overview in bytes.
const OVERVIEW_CAP: usize = 1_500;

/// A session to find overviews of.
#[derive(Clone, Copy)]
struct SessionRef<'a> {
    /// One of its names.
    name: &'a str,
    /// The project whose overviews come first.
    project: Option<&'a str>,
}

/// An overview that may be shown.
pub(super) struct Overview {
    pub(super) text: String,
    /// The memory, if the overview is one.
    pub(super) memory: Option<Memory>,
}

impl Snapshot<'_> {
    /// The overview of a session, if it may be shown.
    pub(super) fn overview(
        &self,
        names: &[String],
        project: Option<&str>,
        filter: StatusFilter,
    ) -> Result<Option<Overview>, StoreError> {
        if self.overviews == Some(Overviews::Hide) {
            return Ok(None);
        }
        for source in self
            .layout
            .overviews
            .iter()
            .filter(|source| !source.content.is_empty())
        {
            for name in names {
                let session = SessionRef { name, project };
                let found = match source
                    .memories
                    .and_then(|number| self.layout.sources.get(number))
                {
                    Some(memories) => self.summary_overview(source, memories, session, filter)?,
                    None if self.may_show_overviews()? => self
                        .recorded_overview(source, session, filter)?
                        .map(|text| Overview { text, memory: None }),
                    None => None,
                };
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// Whether a session has an overview that is not shown, because the owner has not decided about
    /// overviews and some row is not approved.
    pub(super) fn has_withheld_overview(
        &self,
        names: &[String],
        project: Option<&str>,
        filter: StatusFilter,
    ) -> Result<bool, StoreError> {
        if self.overviews.is_some() || self.may_show_overviews()? {
            return Ok(false);
        }
        let sources = self.layout.overviews.iter();
        for source in sources.filter(|it| !it.content.is_empty() && it.memories.is_none()) {
            for name in names {
                let session = SessionRef { name, project };
                if self.recorded_overview(source, session, filter)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The text of an overview that is not a memory.
    fn recorded_overview(
        &self,
        source: &OverviewSource,
        session: SessionRef<'_>,
        filter: StatusFilter,
    ) -> Result<Option<String>, StoreError> {
        let status = source.status.as_deref();
        let sql = select(source, status.unwrap_or("NULL"));
        self.find_in_rows(&sql, (session.name, session.project), |row| {
            let is_allowed = status.is_none()
                || values::parse_status(row.get_ref(0)?).is_ok_and(|it| filter.allows(it));
            if !is_allowed {
                return Ok(None);
            }
            let text = content(row, source, 1)?;
            Ok(text.filter(|text| !self.holds_back_text(text)))
        })
    }

    /// An overview that is a memory, if its status is allowed.
    fn summary_overview(
        &self,
        source: &OverviewSource,
        memories: &MemorySource,
        session: SessionRef<'_>,
        filter: StatusFilter,
    ) -> Result<Option<Overview>, StoreError> {
        let sql = select(source, &memories.select_list());
        self.find_in_rows(&sql, (session.name, session.project), |row| {
            if !filter.allows(record::status(row, memories, self.rule())?) {
                return Ok(None);
            }
            let first = 2 + Field::ALL.len() + memories.narrative.len();
            let Some(text) = content(row, source, first)? else {
                return Ok(None);
            };
            Ok(Some(Overview {
                text,
                memory: Some(record::memory(row, memories, self.rule())?),
            }))
        })
    }

    /// Whether overviews that are not memories may be shown: the owner allows it, or has not
    /// decided and every row is approved.
    pub(super) fn may_show_overviews(&self) -> Result<bool, StoreError> {
        if let Some(known) = self.overviews_shown.get() {
            return Ok(known);
        }
        let overviews_shown = match self.overviews {
            Some(policy) => policy == Overviews::Show,
            None => self.is_all_approved()?,
        };
        self.overviews_shown.set(Some(overviews_shown));
        Ok(overviews_shown)
    }

    fn is_all_approved(&self) -> Result<bool, StoreError> {
        for (_, source) in self.sources() {
            let clauses = match source.column(Field::Status) {
                _ if !self.decisions.is_empty() || self.holds_back() => String::new(),
                None => " LIMIT 1".to_owned(),
                Some(status) => format!(" GROUP BY {}", exact(status)),
            };
            let sql = self.rule().query(source, &[Field::Status], &clauses);
            let hidden = self.find_in_rows(&sql, [], |row| {
                let status = record::status(row, source, self.rule())?;
                Ok((!StatusFilter::Approved.allows(status)).then_some(()))
            })?;
            if hidden.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Overview {
    /// Whether the overview was never reviewed.
    pub(super) fn is_unreviewed(&self) -> bool {
        let status = self.memory.as_ref().map(|memory| memory.status);
        !status.is_some_and(|status| StatusFilter::Approved.allows(status))
    }
}

/// SQL that finds the overviews of a session (`?1`): those of a project (`?2`) first, then the
/// newest. It selects `list`, followed by the columns of the text.
fn select(source: &OverviewSource, list: &str) -> String {
    let columns: Vec<&str> = source
        .content
        .iter()
        .map(|(_, column)| column.as_str())
        .collect();
    format!(
        "SELECT {list}, {} FROM {} WHERE {} = ?1 ORDER BY ({} IS ?2) DESC, {} DESC LIMIT 50",
        columns.join(", "),
        source.table,
        exact(&source.session),
        exact(source.project.as_deref().unwrap_or("NULL")),
        exact(&source.order)
    )
}

/// The text of an overview whose columns start at `first`. `None` if all of them are empty.
pub(super) fn content(
    row: &rusqlite::Row<'_>,
    source: &OverviewSource,
    first: usize,
) -> rusqlite::Result<Option<String>> {
    let mut parts = Vec::new();
    for (position, (label, _)) in source.content.iter().enumerate() {
        let (value, _) = values::text_value(row.get_ref(first + position)?);
        let part = text::block(&value.unwrap_or_default());
        if !part.is_empty() {
            parts.push(if label.is_empty() {
                part
            } else {
                format!("{label}: {part}")
            });
        }
    }
    let text = text::cut(&parts.join("\n"), OVERVIEW_CAP).0.into_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}
