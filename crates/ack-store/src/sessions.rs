//! Decides what answers may show about sessions.
//!
//! Sessions are not reviewed, so their memories decide: a session is shown if the status filter
//! currently allows at least one memory that was learned in it. Its title is then shown as
//! recorded. Its overview covers everything that was done, including what was rejected later. So it
//! is shown only in three cases: the scope's owner allows it (`overviews` in `scope.toml`), every
//! row of the store is approved, or the overview is itself a memory (a summary of claude-mem) whose
//! status is allowed.

mod overviews;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use self::overviews::{Overview, content};
use super::layout::{SessionSource, exact};
use super::{Snapshot, record, values};
use crate::StoreError;
use ack_api::memory::{Memory, StatusFilter, fold_name};
use ack_api::source::RowKey;
use ack_api::text;
use ack_api::time;
use ack_api::{SessionContext, SessionEntry};

/// How many sessions of the wanted projects are considered, newest first.
const MAX_PROJECT_SESSIONS: usize = 500;
/// How many sessions of all projects are read, newest first.
const MAX_SESSIONS: usize = 20_000;
/// How many memories of a session are kept: one that may be shown, and a few that can provide its
/// title.
pub const MAX_MEMBERS: usize = 8;

/// Memories by the name or the id of their session, at most [`MAX_MEMBERS`] each, in stored order.
pub type Members = HashMap<String, Vec<(RowKey, String)>>;

/// Which sessions to find.
#[derive(Debug, Clone, Copy)]
pub struct SessionQuery<'a> {
    /// The folded names of the projects.
    pub projects: &'a [String],
    /// Whether sessions without a project are included.
    pub unnamed: bool,
    /// Which memories are allowed.
    pub filter: StatusFilter,
    /// The largest number of sessions.
    pub limit: usize,
}

/// A session that may be shown, with the memories that can provide a title if it has none.
#[derive(Debug, Clone)]
pub struct RecentSession {
    /// Every value by which a memory may name it.
    pub names: Vec<String>,
    /// The session, with its own title only.
    entry: SessionEntry,
    /// The ids and titles of its memories, its summary first.
    headings: Vec<(String, String)>,
    /// Whether it has an overview that is not shown, as [`Snapshot::withholds_overview`] says.
    pub withholds_overview: bool,
}

/// A row of a table of sessions.
struct SessionRow {
    /// Every value by which a memory may name it.
    names: Vec<String>,
    title: Option<String>,
    project: Option<String>,
    started: Option<Timestamp>,
}

impl RecentSession {
    /// The entry for an answer that already shows other memories, so that no text appears twice.
    pub fn into_entry(self, is_shown: impl Fn(&str) -> bool) -> SessionEntry {
        let Self {
            mut entry,
            headings,
            ..
        } = self;
        if entry.summary.as_deref().is_some_and(&is_shown) {
            entry.overview = None;
        }
        if entry.title.is_none() {
            let heading = headings.into_iter().find(|(id, _)| !is_shown(id));
            entry.title = heading.map(|(_, title)| title);
        }
        entry
    }

    /// Orders sessions by start time, newest first.
    pub fn newest_first(&self, other: &Self) -> Ordering {
        let began = other.entry.started_at.cmp(&self.entry.started_at);
        began.then_with(|| self.entry.id.cmp(&other.entry.id))
    }
}

impl Snapshot<'_> {
    /// The context of a memory's session. The caller has checked that the memory may be shown.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn session_context(
        &self,
        memory: &Memory,
        filter: StatusFilter,
    ) -> Result<Option<SessionContext>, StoreError> {
        let names: Vec<String> = sessions_of(memory).cloned().collect();
        if names.is_empty() {
            return Ok(None);
        }
        let title = self.session_title(&names)?;
        let overview = self.overview(&names, memory.project.as_deref(), filter)?;
        // If the overview is the memory itself, it is not repeated.
        let overview = overview.filter(|overview| {
            overview
                .memory
                .as_ref()
                .is_none_or(|summary| summary.id != memory.id)
        });
        let context = SessionContext {
            unreviewed: title.is_some() || overview.as_ref().is_some_and(Overview::is_unreviewed),
            title,
            overview: overview.map(|overview| overview.text),
        };
        Ok((context != SessionContext::default()).then_some(context))
    }

    /// Whether the session of a memory has an overview that is not shown, because the owner has not
    /// decided about overviews and some row of the store is not approved.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn withholds_overview(
        &self,
        memory: &Memory,
        filter: StatusFilter,
    ) -> Result<bool, StoreError> {
        let names: Vec<String> = sessions_of(memory).cloned().collect();
        self.has_withheld_overview(&names, memory.project.as_deref(), filter)
    }

    /// The title of a memory's session, for a reviewer.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn title_of_session(&self, memory: &Memory) -> Result<Option<String>, StoreError> {
        self.session_title(&sessions_of(memory).cloned().collect::<Vec<_>>())
    }

    fn session_title(&self, names: &[String]) -> Result<Option<String>, StoreError> {
        for source in &self.layout.sessions {
            let Some(title) = &source.title else { continue };
            for name in names {
                let condition: Vec<String> = source
                    .keys
                    .iter()
                    .map(|key| format!("{} = ?1", exact(key)))
                    .collect();
                let sql = format!(
                    "SELECT {title} FROM {} WHERE {} LIMIT 1",
                    source.table,
                    condition.join(" OR ")
                );
                let title = self.find_in_rows(&sql, [name], |row| {
                    let (title, _) = values::text_value(row.get_ref(0)?);
                    Ok(title
                        .as_deref()
                        .and_then(|title| self.readable_title(title)))
                })?;
                if title.is_some() {
                    return Ok(title);
                }
            }
        }
        Ok(None)
    }

    /// The newest sessions that may be shown. `members` returns the memories of the named sessions;
    /// their status is read from the store again.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn recent_sessions(
        &self,
        wanted: SessionQuery<'_>,
        members: impl FnOnce(&HashSet<&str>) -> Members,
    ) -> Result<Vec<RecentSession>, StoreError> {
        let mut tables = Vec::with_capacity(self.layout.sessions.len());
        for source in &self.layout.sessions {
            tables.push(self.session_rows(source, wanted)?);
        }
        let names: HashSet<&str> = tables
            .iter()
            .flatten()
            .flat_map(|row| row.names.iter().map(String::as_str))
            .collect();
        let members = if names.is_empty() {
            Members::new()
        } else {
            members(&names)
        };
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
            let string = |position| -> rusqlite::Result<Option<String>> {
                Ok(values::text_value(row.get_ref(position)?).0)
            };
            let project = string(1)?;
            let parent = string(3)?;
            let mine = project.as_deref().map_or(wanted.unnamed, |project| {
                let mut names = [Some(project), parent.as_deref()].into_iter().flatten();
                names.any(|name| wanted.projects.contains(&fold_name(name)))
            });
            if !mine {
                return Ok(None);
            }
            let mut names = names_of_session(row, 4)?;
            let mut known = HashSet::new();
            names.retain(|name| known.insert(name.clone()));
            sessions.push(SessionRow {
                names,
                title: string(0)?
                    .as_deref()
                    .and_then(|title| self.readable_title(title)),
                project,
                started: values::time_value(row.get_ref(2)?),
            });
            Ok((sessions.len() == MAX_PROJECT_SESSIONS).then_some(()))
        })?;
        Ok(sessions)
    }

    /// A session as it may be shown, or `None` if no memory allows it.
    fn visible_session(
        &self,
        row: SessionRow,
        members: &Members,
        filter: StatusFilter,
    ) -> Result<Option<RecentSession>, StoreError> {
        let known = row
            .names
            .iter()
            .filter_map(|name| members.get(name))
            .flatten();
        let wanted: Vec<(RowKey, &str)> = known.map(|(key, id)| (*key, id.as_str())).collect();
        let (Some(id), false) = (row.names.first(), wanted.is_empty()) else {
            return Ok(None);
        };
        let mut memories = self.memories(&wanted, filter)?;
        let memories: Vec<Memory> = wanted
            .iter()
            .filter_map(|(_, id)| memories.remove(*id))
            .collect();
        // In the meantime, a row number may have been reused, or a memory may have moved to another
        // session.
        let here = |memory: &Memory| sessions_of(memory).any(|name| row.names.contains(name));
        let memories: Vec<&Memory> = memories.iter().filter(|memory| here(memory)).collect();
        if memories.is_empty() {
            return Ok(None);
        }
        let overview = self.overview(&row.names, row.project.as_deref(), filter)?;
        let withholds_overview = overview.is_none()
            && self.has_withheld_overview(&row.names, row.project.as_deref(), filter)?;
        let unreviewed =
            row.title.is_some() || overview.as_ref().is_some_and(Overview::is_unreviewed);
        let started = row
            .started
            .or_else(|| memories.iter().filter_map(|memory| memory.created_at).min());
        let (overview, summary) = overview.map_or((None, None), |overview| {
            (Some(overview.text), overview.memory)
        });
        let headings = summary
            .iter()
            .chain(memories)
            .filter(|memory| is_heading(memory));
        let headings = headings
            .map(|memory| (memory.id.clone(), text::line(&memory.title, 200)))
            .collect();
        Ok(Some(RecentSession {
            names: row.names.clone(),
            entry: SessionEntry {
                id: id.clone(),
                date: started.map(time::to_date),
                title: row.title,
                overview: overview.map(|overview| text::line(&overview, 500)),
                summary: summary.map(|summary| summary.id),
                started_at: started.map(time::to_rfc3339),
                unreviewed,
            },
            headings,
            withholds_overview,
        }))
    }

    /// The title of a session, if it can be shown.
    fn readable_title(&self, title: &str) -> Option<String> {
        let line = text::line(title, 200);
        (!line.is_empty() && !self.holds_back_text(title)).then_some(line)
    }

    /// Whether the text of a session is flagged, in a store whose memories nobody reviewed one by
    /// one.
    pub(super) fn holds_back_text(&self, text: &str) -> bool {
        self.holds_back() && (record::hides(text) || ack_flags::is_flagged(text))
    }

    /// Visits the texts of all sessions: each title, and each overview that may be shown and is not
    /// a memory, with the names of its session. The caller decides by the session's memories
    /// whether it may be shown.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn session_texts(&self, mut visit: impl FnMut(&[String], &str)) -> Result<(), StoreError> {
        for source in &self.layout.sessions {
            let Some(title) = &source.title else { continue };
            let sql = format!(
                "SELECT {title}, {} FROM {}",
                source.keys.join(", "),
                source.table
            );
            self.visit_texts(
                &sql,
                1,
                &mut |row| Ok(values::text_value(row.get_ref(0)?).0),
                &mut visit,
            )?;
        }
        for source in self
            .layout
            .overviews
            .iter()
            .filter(|source| source.memories.is_none())
        {
            if source.content.is_empty() || !self.may_show_overviews()? {
                continue;
            }
            let columns: Vec<&str> = source
                .content
                .iter()
                .map(|(_, column)| column.as_str())
                .collect();
            let status = source.status.as_deref();
            let sql = format!(
                "SELECT {}, {}, {} FROM {}",
                status.unwrap_or("NULL"),
                columns.join(", "),
                source.session,
                source.table
            );
            let mut text = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Option<String>> {
                let is_withheld = status.is_some()
                    && !values::parse_status(row.get_ref(0)?)
                        .is_ok_and(|status| StatusFilter::Approved.allows(status));
                if is_withheld {
                    Ok(None)
                } else {
                    content(row, source, 1)
                }
            };
            self.visit_texts(&sql, 1 + columns.len(), &mut text, &mut visit)?;
        }
        Ok(())
    }

    /// Visits the texts of some rows. The names of the session start at column `first`.
    fn visit_texts(
        &self,
        sql: &str,
        first: usize,
        text: &mut dyn FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<Option<String>>,
        visit: &mut dyn FnMut(&[String], &str),
    ) -> Result<(), StoreError> {
        self.visit_rows(sql, [], |row| {
            if let Some(text) = text(row)?.filter(|text| !self.holds_back_text(text)) {
                visit(&names_of_session(row, first)?, &text);
            }
            Ok(())
        })
    }
}

/// The names of a session in the columns from `first` on, read as a memory's session is.
fn names_of_session(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Vec<String>> {
    let mut names = Vec::new();
    for column in first..row.as_ref().column_count() {
        let (name, _) = values::text_value(row.get_ref(column)?);
        let name = name.map(|name| text::line(&name, 200));
        names.extend(name.filter(|name| !name.is_empty()));
    }
    Ok(names)
}

/// The names of a memory's session.
fn sessions_of(memory: &Memory) -> impl Iterator<Item = &String> {
    [&memory.session, &memory.session_id].into_iter().flatten()
}

/// Whether a memory has its own title, not a placeholder or the start of its text.
fn is_heading(memory: &Memory) -> bool {
    let borrowed = memory
        .narrative
        .as_ref()
        .is_some_and(|text| text.starts_with(memory.title.trim_end_matches('…')));
    !borrowed && memory.title != record::UNTITLED
}
