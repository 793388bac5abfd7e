//! Detects what a database holds from its tables and columns, never from a version number.
//!
//! A [`Layout`] lists the sources of memories (a table and how its columns map to the record) and
//! the related tables. What each program writes is in [`super::profiles`].

use std::collections::HashSet;

use rusqlite::Connection;

/// Which program wrote a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The native schema, `schemas/scope.sql`.
    Ack,
    /// claude-mem 4 and later.
    ClaudeMem,
    /// claude-mem 3.
    ClaudeMemV3,
    /// mcp-memory-service.
    McpMemoryService,
    /// Claude Code's auto-memory.
    AutoMemory,
    /// Codex's memories.
    Codex,
    /// A folder of Markdown notes.
    Markdown,
    /// server-memory's file of JSON lines.
    ServerMemory,
}

impl Profile {
    /// The name that answers show.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::ClaudeMem => "claude-mem",
            Self::ClaudeMemV3 => "claude-mem-v3",
            Self::McpMemoryService => "mcp-memory-service",
            Self::AutoMemory => "auto-memory",
            Self::Codex => "codex",
            Self::Markdown => "markdown",
            Self::ServerMemory => "server-memory",
        }
    }

    /// Whether the store is notes in files.
    pub const fn is_notes(self) -> bool {
        matches!(
            self,
            Self::AutoMemory | Self::Codex | Self::Markdown | Self::ServerMemory
        )
    }
}

/// A table or view with its columns.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<String>,
    /// The name that reads SQLite's row number: `rowid`, unless a column has that name. `None` in a
    /// table WITHOUT ROWID or a view (<https://www.sqlite.org/rowidtable.html>).
    pub row_number: Option<&'static str>,
}

impl Table {
    /// The first of the named columns that exists, quoted for SQL.
    pub fn column(&self, names: &[&str]) -> Option<String> {
        names
            .iter()
            .find_map(|name| {
                self.columns
                    .iter()
                    .find(|column| column.eq_ignore_ascii_case(name))
            })
            .map(|column| quote(column))
    }

    /// The table's name, quoted for SQL.
    pub fn quoted(&self) -> String {
        quote(&self.name)
    }
}

/// An identifier in double quotes.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An expression that is compared and ordered byte by byte. Its own collation may exist only in the
/// program that wrote the store, or may treat different ids as equal.
pub fn exact(expression: &str) -> String {
    format!("{expression} COLLATE BINARY")
}

/// The fields of a record that come from one column each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the record")]
pub enum Field {
    Project,
    ProjectAlias,
    Session,
    SessionId,
    Date,
    Kind,
    Title,
    Subtitle,
    Facts,
    Concepts,
    Files,
    FilesMore,
    Status,
    Confidence,
    ReviewedAt,
    ReviewedBy,
    SupersededBy,
    CreatedEpoch,
    Created,
    UpdatedEpoch,
    Updated,
    StaleAfter,
    TitleFromFile,
    AuthorStatus,
    SaysLittle,
}

impl Field {
    /// Every field, in the order in which they are selected.
    pub const ALL: [Self; 25] = [
        Self::Project,
        Self::ProjectAlias,
        Self::Session,
        Self::SessionId,
        Self::Date,
        Self::Kind,
        Self::Title,
        Self::Subtitle,
        Self::Facts,
        Self::Concepts,
        Self::Files,
        Self::FilesMore,
        Self::Status,
        Self::Confidence,
        Self::ReviewedAt,
        Self::ReviewedBy,
        Self::SupersededBy,
        Self::CreatedEpoch,
        Self::Created,
        Self::UpdatedEpoch,
        Self::Updated,
        Self::StaleAfter,
        Self::TitleFromFile,
        Self::AuthorStatus,
        Self::SaysLittle,
    ];

    /// The position in a selected row, which starts with `rowid` and the id.
    pub const fn position(self) -> usize {
        self as usize + 2
    }
}

/// How the public id of a row is built.
#[derive(Debug, Clone)]
pub enum IdScheme {
    /// From one column.
    Column(String),
    /// From a prefix and an integer key.
    Prefixed {
        /// For instance `obs-`.
        prefix: &'static str,
        /// The integer column, quoted.
        column: String,
    },
    /// From one column or, if that is empty, from a prefix and an integer key.
    ColumnOr {
        /// The column, quoted.
        public: String,
        /// The prefix.
        prefix: &'static str,
        /// The integer column, quoted.
        column: String,
    },
}

impl IdScheme {
    /// SQL for the id as text.
    pub fn expression(&self) -> String {
        match self {
            Self::Column(column) => format!("CAST({column} AS TEXT)"),
            Self::Prefixed { prefix, column } => format!("'{prefix}' || {column}"),
            Self::ColumnOr {
                public,
                prefix,
                column,
            } => {
                format!(
                    "coalesce(nullif(CAST({public} AS TEXT) COLLATE BINARY, ''), '{prefix}' || {column})"
                )
            }
        }
    }

    /// A description for display: the column, or how the id is built.
    pub fn describe(&self) -> String {
        let bare = |column: &str| column.trim_matches('"').to_owned();
        match self {
            Self::Column(column) => bare(column),
            Self::Prefixed { prefix, column } => format!("{prefix}<{}>", bare(column)),
            Self::ColumnOr {
                public,
                prefix,
                column,
            } => format!("{}, or {prefix}<{}>", bare(public), bare(column)),
        }
    }

    /// The SQL condition and its parameter that find an id, or `None` if no row can have it.
    pub fn condition(&self, id: &str) -> Option<(String, rusqlite::types::Value)> {
        match self {
            // A column without a text type may hold numbers.
            Self::Column(column) => {
                let column = exact(column);
                let number = id
                    .parse::<i64>()
                    .ok()
                    .filter(|number| number.to_string() == id);
                let or_number =
                    number.map_or_else(String::new, |number| format!(" OR {column} = {number}"));
                Some((format!("({column} = ?1{or_number})"), id.to_owned().into()))
            }
            Self::Prefixed { prefix, column } => {
                let number: i64 = id.strip_prefix(prefix)?.parse().ok()?;
                (id == format!("{prefix}{number}"))
                    .then(|| (format!("{} = ?1", exact(column)), number.into()))
            }
            Self::ColumnOr { .. } => Some((
                format!("{} = ?1", exact(&self.expression())),
                id.to_owned().into(),
            )),
        }
    }
}

/// A table of memories and how it maps to the record.
#[derive(Debug, Clone)]
pub struct MemorySource {
    /// The table's name.
    pub name: String,
    /// The table, quoted, or a query for some of its rows.
    pub table: String,
    /// The name that reads the row number, if there is one.
    pub row_number: Option<&'static str>,
    /// How ids are built.
    pub id: IdScheme,
    /// The quoted column of each field that has one.
    pub columns: [Option<String>; Field::ALL.len()],
    /// The columns that make up the narrative, each with a label before it (may be empty).
    pub narrative: Vec<(&'static str, String)>,
    /// The type of every row, if the table has no column for it.
    pub kind: Option<&'static str>,
    /// Whether large values are truncated, see [`Layout::with_truncated_values`].
    pub truncate: bool,
}

impl MemorySource {
    /// A source over `table` with the first existing column for each field.
    pub fn new(table: &Table, id: IdScheme, wanted: &[(Field, &[&str])]) -> Self {
        let mut columns: [Option<String>; Field::ALL.len()] = Default::default();
        for (field, names) in wanted {
            if let Some(slot) = columns.get_mut(*field as usize) {
                *slot = table.column(names);
            }
        }
        Self {
            name: table.name.clone(),
            table: table.quoted(),
            row_number: table.row_number,
            id,
            columns,
            narrative: Vec::new(),
            kind: None,
            truncate: false,
        }
    }

    /// SQL that reads a value.
    fn value(&self, expression: &str) -> String {
        if self.truncate {
            truncate(expression)
        } else {
            expression.to_owned()
        }
    }

    /// The column of a field, quoted.
    pub fn column(&self, field: Field) -> Option<&str> {
        self.columns.get(field as usize).and_then(Option::as_deref)
    }

    /// The select list that [`super::record`] decodes: `rowid`, id, every field, the columns of the
    /// narrative.
    pub fn select_list(&self) -> String {
        let mut list = self.select_only(&Field::ALL);
        for (_, column) in &self.narrative {
            list.push_str(", ");
            list.push_str(&self.value(column));
        }
        list
    }

    /// A query for whole rows. `clauses` follow the table's name.
    pub fn query(&self, clauses: &str) -> String {
        format!("SELECT {} FROM {}{clauses}", self.select_list(), self.table)
    }

    /// The clause for the order in which rows are stored; empty if they have no number.
    pub fn stored_order(&self) -> String {
        self.row_number
            .map_or_else(String::new, |number| format!(" ORDER BY {number}"))
    }

    /// Like [`MemorySource::select_list`], but without the narrative, and with NULL for every field
    /// that is not in `fields`.
    pub fn select_only(&self, fields: &[Field]) -> String {
        let key = self.row_number.unwrap_or("0");
        let mut list = format!("{key}, {}", self.shown_id());
        for field in Field::ALL {
            let column = self.column(field).filter(|_| fields.contains(&field));
            list.push_str(", ");
            list.push_str(&column.map_or_else(|| "NULL".to_owned(), |column| self.value(column)));
        }
        list
    }

    /// SQL for the row number and both lists of files (the second one is NULL if there is one
    /// list); `None` if there are none.
    pub fn select_files(&self) -> Option<String> {
        let columns = [Field::Files, Field::FilesMore].map(|field| self.column(field));
        let [Some(first), second] = columns else {
            return columns[1].map(|second| self.files_list(second, None));
        };
        Some(self.files_list(first, second))
    }

    fn files_list(&self, first: &str, second: Option<&str>) -> String {
        let second = second.map_or_else(|| "NULL".to_owned(), |column| self.value(column));
        let key = self.row_number.unwrap_or("0");
        format!("{key}, {}, {second}", self.value(first))
    }

    /// SQL for the id as text.
    fn shown_id(&self) -> String {
        match &self.id {
            IdScheme::Column(column) if self.truncate => {
                format!("CAST({} AS TEXT)", truncate(column))
            }
            other => other.expression(),
        }
    }
}

/// If values are truncated: the largest value that is read whole, in bytes.
const MAX_WHOLE_BYTES: u32 = 8 << 20;
/// The largest value that is read at all.
const MAX_TRUNCATED_BYTES: u32 = 64 << 20;
/// How much of a truncated value is read. No record keeps that much.
const TRUNCATED_CHARS: u32 = (2 << 20) + 1;

/// SQL that truncates a large value and replaces a very large one by a blob that is not text.
/// SQLite knows the length of a value without reading it.
fn truncate(expression: &str) -> String {
    format!(
        "CASE WHEN coalesce(octet_length({expression}), 0) <= {MAX_WHOLE_BYTES} THEN {expression} \
         WHEN octet_length({expression}) <= {MAX_TRUNCATED_BYTES} THEN substr({expression}, 1, {TRUNCATED_CHARS}) ELSE X'FF' END"
    )
}

/// A table of sessions.
#[derive(Debug, Clone)]
pub struct SessionSource {
    /// The table, quoted.
    pub table: String,
    /// The quoted columns that a memory's `session` or `session_id` may equal.
    pub keys: Vec<String>,
    /// The session's title.
    pub title: Option<String>,
    /// Its project.
    pub project: Option<String>,
    /// SQL for the project of which that one is a part.
    pub parent_project: Option<String>,
    /// SQL for its start time.
    pub started: Option<String>,
}

/// A table of session overviews.
#[derive(Debug, Clone)]
pub struct OverviewSource {
    /// The table, quoted.
    pub table: String,
    /// The quoted column that names the session.
    pub session: String,
    /// The quoted column that names the project.
    pub project: Option<String>,
    /// The columns that make up the overview, with labels.
    pub content: Vec<(&'static str, String)>,
    /// SQL that orders several overviews of one session.
    pub order: String,
    /// The quoted status column. A row that is not approved is never shown.
    pub status: Option<String>,
    /// If its rows are memories themselves: their source, an index into [`Layout::sources`]. The
    /// status of each row decides.
    pub memories: Option<usize>,
}

/// The table `memory_links`.
#[derive(Debug, Clone)]
pub struct LinkSource {
    /// The table, quoted.
    pub table: String,
    /// The quoted columns for from, to, kind, source and confidence; `NULL` if absent.
    pub columns: [String; 5],
}

/// The table `curation_log`.
#[derive(Debug, Clone)]
pub struct LogSource {
    /// The table, quoted.
    pub table: String,
    /// The column that names the memory.
    pub memory: String,
    /// SQL that orders entries of the same time.
    pub order: &'static str,
    /// The quoted columns for action, previous status, new status, reason, actor and time; `NULL`
    /// if absent.
    pub columns: [String; 6],
}

/// What a database holds.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Which program wrote it.
    pub profile: Profile,
    /// The tables of memories.
    pub sources: Vec<MemorySource>,
    /// The tables of sessions.
    pub sessions: Vec<SessionSource>,
    /// The tables of overviews.
    pub overviews: Vec<OverviewSource>,
    /// The table of links.
    pub links: Option<LinkSource>,
    /// The table of the curation log.
    pub log: Option<LogSource>,
    /// SQL for the number of rows that are left out, because their program marked them as deleted.
    pub deleted: Option<String>,
}

impl Layout {
    /// A layout with nothing but memories.
    pub const fn new(profile: Profile, sources: Vec<MemorySource>) -> Self {
        Self {
            profile,
            sources,
            sessions: Vec::new(),
            overviews: Vec::new(),
            links: None,
            log: None,
            deleted: None,
        }
    }

    /// Whether every source has a status column.
    pub fn has_status(&self) -> bool {
        self.sources
            .iter()
            .all(|source| source.column(Field::Status).is_some())
    }

    /// The same layout with truncated values, for a store whose values would take too much memory.
    #[must_use]
    pub fn with_truncated_values(mut self) -> Self {
        self.sources
            .iter_mut()
            .for_each(|source| source.truncate = true);
        let titles = self
            .sessions
            .iter_mut()
            .filter_map(|source| source.title.as_mut());
        let contents = self
            .overviews
            .iter_mut()
            .flat_map(|source| &mut source.content);
        for value in titles.chain(contents.map(|(_, column)| column)) {
            *value = truncate(value);
        }
        self
    }

    /// One line per source with its table and columns, for `doctor`.
    pub fn describe(&self) -> Vec<String> {
        self.sources
            .iter()
            .map(|source| {
                let mapped: Vec<String> = Field::ALL
                    .iter()
                    .filter_map(|field| {
                        source.column(*field).map(|column| {
                            format!(
                                "{}={}",
                                format!("{field:?}").to_lowercase(),
                                column.trim_matches('"')
                            )
                        })
                    })
                    .collect();
                let narrative: Vec<&str> = source
                    .narrative
                    .iter()
                    .map(|(_, column)| column.trim_matches('"'))
                    .collect();
                format!(
                    "{}: id={}, {}, narrative={}",
                    source.name,
                    source.id.describe(),
                    mapped.join(", "),
                    narrative.join("+")
                )
            })
            .collect()
    }
}

/// A table or view, as SQLite lists it.
struct ListedTable {
    name: String,
    is_view: bool,
    is_without_rowid: bool,
}

/// Leaves out views with a `WITH` clause, and those that read one of them: it may be a recursion
/// without end.
fn leave_out_endless_views(listed: &mut Vec<(ListedTable, String)>) {
    let words = |sql: &str| -> HashSet<String> {
        let words = sql.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.map(str::to_lowercase).collect()
    };
    let mut endless = HashSet::from(["with".to_owned()]);
    loop {
        let before = endless.len();
        for (table, sql) in listed.iter() {
            if table.is_view && !endless.is_disjoint(&words(sql)) {
                endless.insert(table.name.to_lowercase());
            }
        }
        if endless.len() == before {
            break;
        }
    }
    listed.retain(|(table, sql)| !table.is_view || endless.is_disjoint(&words(sql)));
}

/// Reads the tables and views of a database, with their columns. A view that cannot be read is left
/// out, and so is one with a `WITH` clause: that may be a recursion without end.
///
/// # Errors
/// The error from SQLite.
pub fn tables(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut statement = connection.prepare(
        "SELECT t.name, t.type = 'view', t.wr, coalesce(s.sql, '') FROM pragma_table_list AS t \
         JOIN sqlite_schema AS s ON s.name = t.name AND s.type IN ('table', 'view') \
         WHERE t.schema = 'main' AND t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY t.name",
    )?;
    let listed = statement.query_map([], |row| {
        let listed = ListedTable {
            name: row.get(0)?,
            is_view: row.get(1)?,
            is_without_rowid: row.get(2)?,
        };
        Ok((listed, row.get(3)?))
    })?;
    let mut listed: Vec<(ListedTable, String)> = listed.collect::<Result<_, _>>()?;
    leave_out_endless_views(&mut listed);
    let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    let mut tables = Vec::with_capacity(listed.len());
    for (listed, _) in listed {
        let ListedTable {
            name,
            is_view,
            is_without_rowid,
        } = listed;
        let read = columns
            .query_map([&name], |row| row.get(0))
            .and_then(Iterator::collect);
        let columns: Vec<String> = match read {
            Err(_) if is_view => continue,
            read => read?,
        };
        let mut table = Table {
            name,
            columns,
            row_number: None,
        };
        if !is_view && !is_without_rowid {
            let names = ["rowid", "_rowid_", "oid"].into_iter();
            table.row_number = names.clone().find(|name| table.column(&[name]).is_none());
        }
        tables.push(table);
    }
    Ok(tables)
}

/// Finds a table by name, ignoring case.
pub fn find<'a>(tables: &'a [Table], name: &str) -> Option<&'a Table> {
    tables
        .iter()
        .find(|table| table.name.eq_ignore_ascii_case(name))
}
