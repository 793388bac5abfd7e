//! The database of mcp-memory-service: one table of memories without titles. Deleted rows stay
//! there for a while and are skipped.

use crate::layout::{Field, IdScheme, Layout, MemorySource, Profile, Table, find};

/// The name of the row number in the query for rows that are not deleted.
const ROW_NUMBER: &str = "ack_row_number";

/// Recognises the layout: memories have a content, a hash of it and a type.
pub fn recognise(tables: &[Table]) -> Option<Layout> {
    let memories = find(tables, "memories")?;
    let hash = memories.column(&["content_hash"])?;
    let content = memories.column(&["content"])?;
    let kind = memories.column(&["memory_type"])?;
    let mut source = MemorySource::new(
        memories,
        IdScheme::Column(hash),
        &[
            (Field::Concepts, &["tags"]),
            (Field::SupersededBy, &["superseded_by"]),
            (Field::CreatedEpoch, &["created_at"]),
            (Field::Created, &["created_at_iso"]),
            (Field::UpdatedEpoch, &["updated_at"]),
            (Field::Updated, &["updated_at_iso"]),
            (Field::Confidence, &["confidence"]),
        ],
    );
    if let Some(column) = source.columns.get_mut(Field::Kind as usize) {
        *column = Some(kind);
    }
    source.narrative = vec![("", content)];
    let deleted = memories.column(&["deleted_at"]);
    if let (Some(deleted), Some(row)) = (&deleted, memories.row_number) {
        source.table = format!(
            "(SELECT {row} AS {ROW_NUMBER}, * FROM {} WHERE {deleted} IS NULL)",
            memories.quoted()
        );
        source.row_number = Some(ROW_NUMBER);
    }
    Some(Layout {
        deleted: deleted.map(|deleted| {
            format!(
                "SELECT count(*) FROM {} WHERE {deleted} IS NOT NULL",
                memories.quoted()
            )
        }),
        ..Layout::new(Profile::McpMemoryService, vec![source])
    })
}
