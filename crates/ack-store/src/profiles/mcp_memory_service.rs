//! The database of mcp-memory-service: memories without titles. Deleted rows stay for a while.

use crate::layout::{Field, IdScheme, Layout, MemorySource, Profile, Table, find};

/// Recognises the layout: memories have a content, a hash of it and a type.
pub fn recognise(tables: &[Table]) -> Option<Layout> {
    let memories = find(tables, "memories")?;
    memories.column(&["memory_type"])?;
    let mut source = MemorySource::new(
        memories,
        IdScheme::column(memories.column(&["content_hash"])?),
        &[
            (Field::Kind, &["memory_type"]),
            (Field::Concepts, &["tags"]),
            (Field::SupersededBy, &["superseded_by"]),
            (Field::CreatedEpoch, &["created_at"]),
            (Field::Created, &["created_at_iso"]),
            (Field::UpdatedEpoch, &["updated_at"]),
            (Field::Updated, &["updated_at_iso"]),
            (Field::Confidence, &["confidence"]),
        ],
    )?;
    source.narrative = vec![("", memories.column(&["content"])?)];
    let deleted = memories.column(&["deleted_at"]);
    if let Some(deleted) = &deleted {
        source.keep_rows(&format!("{deleted} IS NULL"));
    }
    let table = memories.quoted();
    Some(Layout {
        deleted: deleted
            .map(|deleted| format!("SELECT count(*) FROM {table} WHERE {deleted} IS NOT NULL")),
        ..Layout::new(Profile::McpMemoryService, vec![source])
    })
}
