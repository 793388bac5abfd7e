//! Decides what answers may show about sessions, which nobody reviews.
//!
//! A session is shown if the status filter allows at least one memory that was learned in it. Its
//! recorded title is shown only if the store's default approves what nobody reviewed, or if
//! overviews may be shown; else the title of such a memory stands in its place. Its overview covers
//! everything that was done, including what was rejected later. So it is shown only if the scope's
//! owner allows it (`overviews` in `scope.toml`), every row of the store is approved, or it is
//! itself a memory (a summary of claude-mem) whose status is allowed.

mod overviews;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use rusqlite::Row;

use self::overviews::{Overview, SessionRef};
use crate::layout::{SessionSource, exact};
use crate::{Snapshot, StoreError, record, values};
use ack_api::memory::{Memory, Overviews, Status, StatusFilter, Unreviewed, fold_name};
use ack_api::source::RowKey;
use ack_api::{SessionContext, SessionEntry, text, time};

/// How many sessions of the wanted projects are considered, newest first.
const MAX_PROJECT_SESSIONS: usize = 500;
const MAX_SESSIONS: usize = 20_000;
/// One memory that may be shown, and a few that can provide its session's title.
pub const MAX_MEMBERS: usize = 8;

/// Memories by the name or the id of their session, at most [`MAX_MEMBERS`] each, in stored order.
pub type Members = HashMap<String, Vec<(RowKey, String)>>;

#[derive(Debug, Clone, Copy)]
pub struct SessionQuery<'a> {
    pub projects: &'a [String],
    pub unnamed: bool,
    pub filter: StatusFilter,
    pub limit: usize,
}

/// A session that may be shown, with the memories that can provide a title if it has none.
#[derive(Debug, Clone)]
pub struct RecentSession {
    /// Every value by which a memory may name it.
    pub names: Vec<String>,
    entry: SessionEntry,
    /// The ids and titles of its memories, its summary first.
    headings: Vec<(String, String)>,
    pub withholds_overview: bool,
}

struct SessionRow {
    names: Vec<String>,
    title: Option<String>,
    project: Option<String>,
    started: Option<Timestamp>,
}

impl RecentSession {
    /// The entry for an answer that already shows other memories, so that no text appears twice.
    pub fn into_entry(self, is_shown: impl Fn(&str) -> bool) -> SessionEntry {
        let Self { mut entry, headings, .. } = self;
        if entry.summary.as_deref().is_some_and(&is_shown) {
            entry.overview = None;
        }
        if entry.title.is_none() {
            let heading = headings.into_iter().find(|(id, _)| !is_shown(id));
            entry.title = heading.map(|(_, title)| title);
        }
        entry
    }

    pub fn newest_first(&self, other: &Self) -> Ordering {
        let began = other.entry.started_at.cmp(&self.entry.started_at);
        began.then_with(|| self.entry.id.cmp(&other.entry.id))
    }
}

impl Snapshot<'_> {
    /// The context of a memory's session. The caller has checked that the memory may be shown.
    pub fn session_context(
        &self,
        memory: &Memory,
        filter: StatusFilter,
    ) -> Result<Option<SessionContext>, StoreError> {
        let names = sessions_of(memory);
        let title = if self.may_show_titles(filter)? { self.session_title(&names)? } else { None };
        let overview = self.overview(SessionRef::of(memory, &names, filter))?;
        // If the overview is the memory itself, it is not repeated.
        let overview = overview.filter(|it| it.memory.as_ref().is_none_or(|it| it.id != memory.id));
        let context = SessionContext {
            unreviewed: title.is_some() || overview.as_ref().is_some_and(Overview::is_unreviewed),
            title,
            overview: overview.map(|overview| overview.text),
        };
        Ok((context != SessionContext::default()).then_some(context))
    }

    /// See [`Snapshot::has_withheld_overview`].
    pub fn withholds_overview(
        &self,
        memory: &Memory,
        filter: StatusFilter,
    ) -> Result<bool, StoreError> {
        self.has_withheld_overview(SessionRef::of(memory, &sessions_of(memory), filter))
    }

    pub fn title_of_session(&self, memory: &Memory) -> Result<Option<String>, StoreError> {
        self.session_title(&sessions_of(memory))
    }

    fn may_show_titles(&self, filter: StatusFilter) -> Result<bool, StoreError> {
        if filter.allows(Status::Staging) {
            return Ok(true);
        }
        match self.store.overviews {
            Some(policy) => Ok(policy == Overviews::Show),
            None if self.store.unreviewed() == Unreviewed::Approved => Ok(true),
            None => self.may_show_overviews(),
        }
    }

    fn session_title(&self, names: &[String]) -> Result<Option<String>, StoreError> {
        for source in &self.layout.sessions {
            let Some(title) = &source.title else { continue };
            let keys = source.keys.iter().map(|key| format!("{} = ?1", exact(key)));
            let condition = keys.collect::<Vec<_>>().join(" OR ");
            let table = &source.table;
            let sql = format!("SELECT {title} FROM {table} WHERE {condition} LIMIT 1");
            for name in names {
                let title = self.find_in_rows(&sql, [name], |row| self.readable_title(row, 0))?;
                if title.is_some() {
                    return Ok(title);
                }
            }
        }
        Ok(None)
    }

    /// The newest sessions that may be shown. `members` returns the memories of the named sessions;
    /// their status is read from the store again.
    pub fn recent_sessions(
        &self,
        wanted: SessionQuery<'_>,
        members: impl FnOnce(&HashSet<&str>) -> Result<Members, StoreError>,
    ) -> Result<Vec<RecentSession>, StoreError> {
        let tables = self.layout.sessions.iter().map(|source| self.session_rows(source, wanted));
        let tables: Vec<Vec<SessionRow>> = tables.collect::<Result<_, _>>()?;
        let names = tables.iter().flatten().flat_map(|row| &row.names);
        let members = members(&names.map(String::as_str).collect())?;
        let mut found = Vec::new();
        for rows in tables {
            let before = found.len();
            for row in rows {
                if found.len() - before == wanted.limit {
                    break;
                }
                found.extend(self.visible_session(row, &members, wanted.filter)?);
            }
        }
        found.sort_by(RecentSession::newest_first);
        found.truncate(wanted.limit);
        Ok(found)
    }

    fn session_rows(
        &self,
        source: &SessionSource,
        wanted: SessionQuery<'_>,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let or_null = |column: &Option<String>| column.clone().unwrap_or_else(|| "NULL".to_owned());
        let started = or_null(&source.started);
        let sql = format!(
            "SELECT {}, {}, {started}, {}, {} FROM {} ORDER BY {} DESC LIMIT {MAX_SESSIONS}",
            or_null(&source.title),
            or_null(&source.project),
            or_null(&source.parent_project),
            source.keys.join(", "),
            source.table,
            exact(&started)
        );
        let mut sessions = Vec::new();
        self.find_in_rows(&sql, [], |row| {
            let (project, _) = values::text_value(row.get_ref(1)?);
            let (parent, _) = values::text_value(row.get_ref(3)?);
            let is_wanted = project.as_deref().map_or(wanted.unnamed, |project| {
                let mut names = [Some(project), parent.as_deref()].into_iter().flatten();
                names.any(|name| wanted.projects.contains(&fold_name(name)))
            });
            if !is_wanted {
                return Ok(None);
            }
            sessions.push(SessionRow {
                names: names_of_session(row, 4)?,
                title: self.readable_title(row, 0)?,
                project,
                started: values::time_value(row.get_ref(2)?),
            });
            Ok((sessions.len() == MAX_PROJECT_SESSIONS).then_some(()))
        })?;
        Ok(sessions)
    }

    fn visible_session(
        &self,
        mut row: SessionRow,
        members: &Members,
        filter: StatusFilter,
    ) -> Result<Option<RecentSession>, StoreError> {
        let memories = self.members_of(&row, members, filter)?;
        let (Some(id), false) = (row.names.first().cloned(), memories.is_empty()) else {
            return Ok(None);
        };
        if !self.may_show_titles(filter)? {
            row.title = None;
        }
        let session = SessionRef { names: &row.names, project: row.project.as_deref(), filter };
        let overview = self.overview(session)?;
        let withholds_overview = overview.is_none() && self.has_withheld_overview(session)?;
        let unreviewed =
            row.title.is_some() || overview.as_ref().is_some_and(Overview::is_unreviewed);
        let oldest = || memories.iter().filter_map(|memory| memory.created_at).min();
        let started = row.started.or_else(oldest);
        let (overview, summary) =
            overview.map_or((None, None), |overview| (Some(overview.text), overview.memory));
        let headings = summary.iter().chain(&memories);
        let headings = headings.filter(|memory| is_heading(memory));
        let headings = headings.map(|it| (it.id.clone(), text::line(&it.title, 200)));
        Ok(Some(RecentSession {
            headings: headings.collect(),
            names: row.names,
            entry: SessionEntry {
                id,
                date: started.map(time::to_date),
                title: row.title,
                overview: overview.map(|overview| text::line(&overview, 500)),
                summary: summary.map(|summary| summary.id),
                started_at: started.map(time::to_rfc3339),
                unreviewed,
            },
            withholds_overview,
        }))
    }

    fn members_of(
        &self,
        row: &SessionRow,
        members: &Members,
        filter: StatusFilter,
    ) -> Result<Vec<Memory>, StoreError> {
        let known = row.names.iter().filter_map(|name| members.get(name)).flatten();
        let wanted: Vec<(RowKey, &str)> = known.map(|(key, id)| (*key, id.as_str())).collect();
        let mut memories = self.memories(&wanted, filter)?;
        let memories = wanted.iter().filter_map(|(_, id)| memories.remove(*id));
        // In the meantime, a row number may have been reused, or a memory may have moved to another
        // session.
        let is_here = |memory: &Memory| sessions_of(memory).iter().any(|it| row.names.contains(it));
        Ok(memories.filter(is_here).collect())
    }

    fn readable_title(&self, row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
        let title = row.get_ref(column)?;
        let line = values::line(title, 200);
        Ok(line.filter(|_| !self.holds_back_text(&values::text_of(title))))
    }

    /// Whether a session's text is flagged, in a store that was not reviewed one by one.
    fn holds_back_text(&self, text: &str) -> bool {
        self.holds_back() && (record::hides(text) || ack_flags::is_flagged(text))
    }
}

/// The names of a session in the columns from `first` on, each once, read as a memory's session is.
fn names_of_session(row: &Row<'_>, first: usize) -> rusqlite::Result<Vec<String>> {
    let mut names = Vec::new();
    for column in first..row.as_ref().column_count() {
        let name = values::line(row.get_ref(column)?, 200);
        names.extend(name.filter(|name| !names.contains(name)));
    }
    Ok(names)
}

fn sessions_of(memory: &Memory) -> Vec<String> {
    [&memory.session, &memory.session_id].into_iter().flatten().cloned().collect()
}

/// Whether a memory has its own title, not a placeholder or the start of its text.
fn is_heading(memory: &Memory) -> bool {
    let beginning = memory.title.trim_end_matches('…');
    let is_borrowed = memory.narrative.as_ref().is_some_and(|text| text.starts_with(beginning));
    !is_borrowed && memory.title != record::UNTITLED
}
