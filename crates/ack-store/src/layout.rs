//! Finds out what a database holds by looking at its tables and columns, never at a version number.
//!
//! A [`Layout`] lists the sources of memories (a table and how its columns map to the record) and the tables around them.
//! The profiles themselves stand in [`super::ack`] and [`super::claude_mem`].

use rusqlite::Connection;

use super::{ack, claude_mem};

/// What kind of program wrote a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The native schema, `schemas/scope.sql`.
    Ack,
    /// claude-mem 4 and later.
    ClaudeMem,
    /// claude-mem 3.
    ClaudeMemV3,
}

impl Profile {
    /// The name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::ClaudeMem => "claude-mem",
            Self::ClaudeMemV3 => "claude-mem-v3",
        }
    }
}

/// A table or view with its columns.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<String>,
    /// The name under which SQLite's row number can be read: `rowid` unless a column has that name; `None` in a table
    /// WITHOUT ROWID (<https://www.sqlite.org/rowidtable.html>).
    pub row_number: Option<&'static str>,
}

impl Table {
    /// The first of the named columns that is there, quoted for SQL.
    pub fn column(&self, names: &[&str]) -> Option<String> {
        names
            .iter()
            .find_map(|name| self.columns.iter().find(|column| column.eq_ignore_ascii_case(name)))
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

/// A column, or another expression, as it is compared and ordered: byte by byte. Its own collation may be one that only the
/// writing program has, or one for which other ids are the same.
pub fn exact(expression: &str) -> String {
    format!("{expression} COLLATE BINARY")
}

/// The fields of a record that one column each can fill.
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
}

impl Field {
    /// Every field, in the order in which they are selected.
    pub const ALL: [Self; 21] = [
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
    ];

    /// Position in a selected row: `rowid` and the id come first.
    pub const fn position(self) -> usize {
        self as usize + 2
    }
}

/// How the public id of a row is made.
#[derive(Debug, Clone)]
pub enum IdScheme {
    /// A column holds it.
    Column(String),
    /// A prefix before an integer key.
    Prefixed {
        /// For instance `obs-`.
        prefix: &'static str,
        /// The integer column, quoted.
        column: String,
    },
    /// A column holds it, or, where that is empty, a prefix before an integer key.
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
    /// SQL that yields the id as text.
    pub fn expression(&self) -> String {
        match self {
            Self::Column(column) => format!("CAST({column} AS TEXT)"),
            Self::Prefixed { prefix, column } => format!("'{prefix}' || {column}"),
            Self::ColumnOr { public, prefix, column } => {
                format!("coalesce(nullif(CAST({public} AS TEXT) COLLATE BINARY, ''), '{prefix}' || {column})")
            }
        }
    }

    /// What a person reads: the column, or how the id is put together.
    pub fn describe(&self) -> String {
        let bare = |column: &str| column.trim_matches('"').to_owned();
        match self {
            Self::Column(column) => bare(column),
            Self::Prefixed { prefix, column } => format!("{prefix}<{}>", bare(column)),
            Self::ColumnOr { public, prefix, column } => format!("{}, or {prefix}<{}>", bare(public), bare(column)),
        }
    }

    /// SQL condition and parameter that find one id, or `None` where no row can have it.
    pub fn condition(&self, id: &str) -> Option<(String, rusqlite::types::Value)> {
        match self {
            // A column without a text type may hold numbers.
            Self::Column(column) => {
                let column = exact(column);
                let number = id.parse::<i64>().ok().filter(|number| number.to_string() == id);
                let or_number = number.map_or_else(String::new, |number| format!(" OR {column} = {number}"));
                Some((format!("({column} = ?1{or_number})"), id.to_owned().into()))
            }
            Self::Prefixed { prefix, column } => {
                let number: i64 = id.strip_prefix(prefix)?.parse().ok()?;
                (id == format!("{prefix}{number}")).then(|| (format!("{} = ?1", exact(column)), number.into()))
            }
            Self::ColumnOr { .. } => Some((format!("{} = ?1", exact(&self.expression())), id.to_owned().into())),
        }
    }
}

/// A table of memories and how it maps to the record.
#[derive(Debug, Clone)]
pub struct MemorySource {
    /// The table, quoted.
    pub table: String,
    /// The name under which the row number can be read, if there is one.
    pub row_number: Option<&'static str>,
    /// How ids are made.
    pub id: IdScheme,
    /// One quoted column a field, where there is one.
    pub columns: [Option<String>; Field::ALL.len()],
    /// Columns that together make the narrative, each with the label that goes before it (may be empty).
    pub narrative: Vec<(&'static str, String)>,
    /// The type of every row, where the table has no column for it.
    pub kind: Option<&'static str>,
    /// Whether large values are read truncate, see [`Layout::with_truncated_values`].
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

    /// The select list that [`super::record`] decodes: `rowid`, id, every field, the parts of the narrative.
    pub fn select_list(&self) -> String {
        let key = self.row_number.unwrap_or("0");
        let mut list = format!("{key}, {}", self.shown_id());
        for column in &self.columns {
            list.push_str(", ");
            list.push_str(&column.as_deref().map_or_else(|| "NULL".to_owned(), |column| self.value(column)));
        }
        for (_, column) in &self.narrative {
            list.push_str(", ");
            list.push_str(&self.value(column));
        }
        list
    }

    /// As [`MemorySource::select_list`], with NULL in the place of every field that is not among `fields`, and of the narrative.
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

    /// SQL that yields the id as text.
    fn shown_id(&self) -> String {
        match &self.id {
            IdScheme::Column(column) if self.truncate => format!("CAST({} AS TEXT)", truncate(column)),
            other => other.expression(),
        }
    }

    /// SQL that orders rows by the time they were written, as well as the columns allow.
    pub fn created_expression(&self) -> String {
        let parts: Vec<&str> = [Field::CreatedEpoch, Field::Created, Field::Date]
            .iter()
            .filter_map(|field| self.column(*field))
            .collect();
        match parts.as_slice() {
            [] => "NULL".to_owned(),
            [one] => (*one).to_owned(),
            many => format!("coalesce({})", many.join(", ")),
        }
    }
}

/// The largest value that is read as it is where values are truncate, the largest that is read at all, and what is read of it,
/// which is more than any record keeps.
const CUT: [u32; 3] = [8 << 20, 64 << 20, (2 << 20) + 1];

/// SQL that reads of a large value its beginning, and of one that is too large even for that something that is no text. How
/// long it is, SQLite knows without reading it.
fn truncate(expression: &str) -> String {
    let [whole, most, beginning] = CUT;
    format!(
        "CASE WHEN coalesce(octet_length({expression}), 0) <= {whole} THEN {expression} \
         WHEN octet_length({expression}) <= {most} THEN substr({expression}, 1, {beginning}) ELSE X'FF' END"
    )
}

/// A table of sessions.
#[derive(Debug, Clone)]
pub struct SessionSource {
    /// The table, quoted.
    pub table: String,
    /// Columns that a memory's `session` or `session_id` may equal, quoted.
    pub keys: Vec<String>,
    /// The session's title.
    pub title: Option<String>,
    /// Its project.
    pub project: Option<String>,
    /// When it began: an expression.
    pub started: Option<String>,
}

/// A table of session overviews.
#[derive(Debug, Clone)]
pub struct OverviewSource {
    /// The table, quoted.
    pub table: String,
    /// The column that names the session, quoted.
    pub session: String,
    /// The column that names the project, quoted.
    pub project: Option<String>,
    /// Columns that together make the overview, with labels.
    pub content: Vec<(&'static str, String)>,
    /// SQL that orders several overviews of one session.
    pub order: String,
    /// The column that holds a status of its rows, quoted: what it turns down is never told.
    pub status: Option<String>,
    /// Where its rows are memories themselves: their source, an index into [`Layout::sources`]. The status of each decides.
    pub memories: Option<usize>,
}

/// Names of the columns of `memory_links`, quoted; absent ones are `NULL`.
#[derive(Debug, Clone)]
pub struct LinkSource {
    /// The table, quoted.
    pub table: String,
    /// From, to, kind, source and confidence.
    pub columns: [String; 5],
}

/// Names of the columns of `curation_log`, quoted; absent ones are `NULL`.
#[derive(Debug, Clone)]
pub struct LogSource {
    /// The table, quoted.
    pub table: String,
    /// The column that names the memory.
    pub memory: String,
    /// SQL that orders lines of one instant.
    pub order: &'static str,
    /// Action, previous status, new status, reason, actor and time.
    pub columns: [String; 6],
}

/// What a database holds.
#[derive(Debug, Clone)]
pub struct Layout {
    /// What kind of program wrote it.
    pub profile: Profile,
    /// Where memories are.
    pub sources: Vec<MemorySource>,
    /// Where sessions are.
    pub sessions: Vec<SessionSource>,
    /// Where overviews are.
    pub overviews: Vec<OverviewSource>,
    /// Where links are.
    pub links: Option<LinkSource>,
    /// Where the curation log is.
    pub log: Option<LogSource>,
}

impl Layout {
    /// Whether any source lets the store decide about status.
    pub fn has_status(&self) -> bool {
        self.sources.iter().all(|source| source.column(Field::Status).is_some())
    }

    /// The same for a store with values so large that reading them would take too much memory: they are read truncate.
    #[must_use]
    pub fn with_truncated_values(mut self) -> Self {
        self.sources.iter_mut().for_each(|source| source.truncate = true);
        let titles = self.sessions.iter_mut().filter_map(|source| source.title.as_mut());
        let contents = self.overviews.iter_mut().flat_map(|source| &mut source.content);
        for value in titles.chain(contents.map(|(_, column)| column)) {
            *value = truncate(value);
        }
        self
    }

    /// One line a source: the table and what maps to what. For `doctor`.
    pub fn describe(&self) -> Vec<String> {
        self.sources
            .iter()
            .map(|source| {
                let mapped: Vec<String> = Field::ALL
                    .iter()
                    .filter_map(|field| {
                        source
                            .column(*field)
                            .map(|column| format!("{}={}", format!("{field:?}").to_lowercase(), column.trim_matches('"')))
                    })
                    .collect();
                let narrative: Vec<&str> = source.narrative.iter().map(|(_, column)| column.trim_matches('"')).collect();
                format!(
                    "{}: id={}, {}, narrative={}",
                    source.table.trim_matches('"'),
                    source.id.describe(),
                    mapped.join(", "),
                    narrative.join("+")
                )
            })
            .collect()
    }
}

/// Reads the tables and columns of a database.
///
/// # Errors
/// What SQLite said.
pub fn tables(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut statement = connection.prepare(
        "SELECT t.name, t.wr, c.name FROM pragma_table_list AS t, pragma_table_info(t.name) AS c \
         WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         ORDER BY t.name, c.cid",
    )?;
    let mut rows = statement.query([])?;
    let mut tables: Vec<Table> = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let without: bool = row.get(1)?;
        let column: String = row.get(2)?;
        match tables.last_mut().filter(|table| table.name == name) {
            Some(table) => table.columns.push(column),
            None => tables.push(Table {
                name,
                columns: vec![column],
                row_number: (!without).then_some("rowid"),
            }),
        }
    }
    for table in tables.iter_mut().filter(|table| table.row_number.is_some()) {
        table.row_number = ["rowid", "_rowid_", "oid"].into_iter().find(|name| table.column(&[name]).is_none());
    }
    Ok(tables)
}

/// Recognises the layout of a database, or `None` where no table holds memories.
pub fn recognise(tables: &[Table]) -> Option<Layout> {
    claude_mem::recognise(tables)
        .or_else(|| ack::recognise(tables))
        .or_else(|| claude_mem::recognise_v3(tables))
}

/// A table by name, in any case.
pub fn find<'a>(tables: &'a [Table], name: &str) -> Option<&'a Table> {
    tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
}
