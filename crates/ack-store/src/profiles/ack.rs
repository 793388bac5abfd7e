//! The native profile, `schemas/scope.sql`. Only `id` and `title` are required.

use crate::layout::{
    Field, IdScheme, Layout, LinkSource, LogSource, MemorySource, OverviewSource, Profile,
    SessionSource, Table, find,
};

/// `None` if something identifies `memories` as claude-mem's.
pub fn recognise(tables: &[Table]) -> Option<Layout> {
    let memories = find(tables, "memories")?;
    let id = memories.column(&["id"])?;
    memories.column(&["title"])?;
    // These columns identify claude-mem 3, which has a table of the same name.
    if memories.column(&["document_id", "files_touched"]).is_some() {
        return None;
    }
    let mut source = MemorySource::new(memories, IdScheme::column(id), &[])?;
    source.columns = Field::ALL.map(|field| memories.column(&[field.native_column()]));
    source.narrative = Vec::from_iter(memories.column(&["narrative"]).map(|column| ("", column)));
    let sessions_of = |name: &&str| sessions(find(tables, name)?);
    Some(Layout {
        sessions: ["sessions", "streaming_sessions"].iter().filter_map(sessions_of).collect(),
        overviews: Vec::from_iter(find(tables, "overviews").and_then(overviews)),
        links: find(tables, "memory_links").and_then(links),
        log: find(tables, "curation_log").and_then(log),
        ..Layout::new(Profile::Ack, vec![source])
    })
}

fn sessions(table: &Table) -> Option<SessionSource> {
    let keys = ["id", "session", "session_id", "name"];
    let keys: Vec<String> = keys.iter().filter_map(|name| table.column(&[name])).collect();
    (!keys.is_empty()).then(|| SessionSource {
        table: table.quoted(),
        keys,
        title: table.column(&["title", "name"]),
        project: table.column(&["project"]),
        parent_project: None,
        started: table.column(&["started_at", "created_at", "date"]),
    })
}

pub(super) fn overviews(table: &Table) -> Option<OverviewSource> {
    Some(OverviewSource {
        table: table.quoted(),
        session: table.column(&["session", "session_id"])?,
        project: table.column(&["project"]),
        content: vec![("", table.column(&["content", "overview"])?)],
        order: table
            .column(&["created_at_epoch", "created_at", "updated_at"])
            .unwrap_or_else(|| table.row_number.unwrap_or("NULL").to_owned()),
        status: table.column(&["status"]),
        memories: None,
    })
}

fn links(table: &Table) -> Option<LinkSource> {
    Some(LinkSource {
        table: table.quoted(),
        columns: [
            table.column(&["from_id"])?,
            table.column(&["to_id"])?,
            table.column_or_null(&["kind", "type"]),
            table.column_or_null(&["source"]),
            table.column_or_null(&["confidence"]),
        ],
    })
}

fn log(table: &Table) -> Option<LogSource> {
    let columns = ["action", "previous_status", "new_status", "reason", "actor", "created_at"];
    Some(LogSource {
        table: table.quoted(),
        memory: table.column(&["memory_id"])?,
        order: table.row_number.unwrap_or("NULL"),
        columns: columns.map(|name| table.column_or_null(&[name])),
    })
}
