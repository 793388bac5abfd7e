//! Recognises databases of programs whose memories cannot be served yet, and counts what is in
//! them. They are opened as every store is: nothing of theirs changes.

use std::path::Path;

use crate::open::{self, Opening};
use crate::store::gate;
use crate::{StoreError, layout, lock};

/// A database of mcp-memory-service (`sqlite_vec.db`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpMemoryService {
    /// Memories that are neither deleted nor superseded. `None` while another program writes, and
    /// for a log or journal that only a writable folder can process.
    pub memories: Option<u64>,
}

/// Reads a database if mcp-memory-service wrote it; `None` if another program did.
///
/// # Errors
/// The database cannot be read.
pub fn mcp_memory_service(path: &Path) -> Result<Option<McpMemoryService>, StoreError> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // The connection may hold locks until it is closed, see [`open`].
    let gate = gate(&real);
    let _held = lock(&gate);
    let (before, opening) = open::inspect(&real)?;
    let sqlite = |error| StoreError::sqlite(path, error);
    let connection = open::connect(&real, opening).map_err(sqlite)?;
    let tables = layout::tables(&connection).map_err(sqlite)?;
    let has = |columns: &[&str]| {
        layout::find(&tables, "memories").is_some_and(|table| {
            columns
                .iter()
                .all(|column| table.column(&[column]).is_some())
        })
    };
    if !has(&["content_hash", "content", "memory_type"]) {
        return Ok(None);
    }
    let mut sql = "SELECT count(*) FROM memories WHERE 1".to_owned();
    for column in ["deleted_at", "superseded_by"] {
        if has(&[column]) {
            sql += &format!(" AND coalesce({column}, '') = ''");
        }
    }
    let count: i64 = connection
        .query_row(&sql, [], |row| row.get(0))
        .map_err(sqlite)?;
    let steady = match opening {
        Opening::Live => true,
        Opening::AtRest | Opening::Kept => {
            drop(connection);
            open::inspect(&real)?.0 == before
        }
        Opening::Copied | Opening::Locked | Opening::Parsed => false,
    };
    Ok(Some(McpMemoryService {
        memories: u64::try_from(count).ok().filter(|_| steady),
    }))
}
