//! Detects what a database holds from its tables and columns, never from a version number.
//!
//! A [`Layout`] lists the sources of memories (a table and how its columns map to the record) and
//! the related tables; all their names are quoted. What each program writes is in
//! [`super::profiles`].

use rusqlite::Connection;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The native schema, `schemas/scope.sql`.
    Ack,
    /// claude-mem 4 and later.
    ClaudeMem,
    ClaudeMemV3,
    McpMemoryService,
    /// Notes in files, with the name of their format.
    Notes(&'static str),
}

impl Profile {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::ClaudeMem => "claude-mem",
            Self::ClaudeMemV3 => "claude-mem-v3",
            Self::McpMemoryService => "mcp-memory-service",
            Self::Notes(format) => format,
        }
    }

    /// The name with its article, as it is spoken: `a claude-mem`, `an mcp-memory-service`.
    pub fn with_article(self) -> String {
        let name = self.as_str();
        let is_an = name.starts_with(['a', 'e', 'i', 'o', 'u']) || name.starts_with("mcp");
        format!("{} {name}", if is_an { "an" } else { "a" })
    }

    pub const fn is_notes(self) -> bool {
        matches!(self, Self::Notes(_))
    }
}

#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub columns: Vec<String>,
    /// The name that reads SQLite's row number: `rowid`, unless a column has that name. `None` in a
    /// table WITHOUT ROWID (<https://www.sqlite.org/rowidtable.html>).
    pub row_number: Option<&'static str>,
}

impl Table {
    /// The first of the named columns that exists, quoted for SQL.
    pub fn column(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| {
            let mut columns = self.columns.iter();
            columns.find(|column| column.eq_ignore_ascii_case(name)).map(|column| quote(column))
        })
    }

    pub fn column_or_null(&self, names: &[&str]) -> String {
        self.column(names).unwrap_or_else(|| "NULL".to_owned())
    }

    pub fn quoted(&self) -> String {
        quote(&self.name)
    }
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An expression that is compared and ordered byte by byte. Its own collation may exist only in the
/// program that wrote the store, or may treat different ids as equal.
pub fn exact(expression: &str) -> String {
    format!("{expression} COLLATE BINARY")
}

macro_rules! fields {
    ($($name:ident $column:literal),+) => {
        /// The fields of a record with a column of their own, in the order of selection.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Field {
            $($name),+
        }

        impl Field {
            pub const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            /// Its column in the native schema, empty if there is none.
            pub const fn native_column(self) -> &'static str {
                match self {
                    $(Self::$name => $column),+
                }
            }
        }
    };
}

#[rustfmt::skip]
fields!(
    Project "project", ProjectAlias "", Session "session", SessionId "session_id", Date "date",
    Kind "type", Title "title", Subtitle "subtitle", Facts "facts", Concepts "concepts",
    Files "files", FilesMore "", Status "status", Confidence "confidence",
    ReviewedAt "reviewed_at", ReviewedBy "reviewed_by", SupersededBy "superseded_by",
    CreatedEpoch "", Created "created_at", UpdatedEpoch "", Updated "updated_at",
    StaleAfter "stale_after", TitleFromFile "title_from_file", AuthorStatus "author_status",
    Narrative ""
);

impl Field {
    /// The position in a selected row, which starts with the row number and the id. The columns of
    /// the narrative follow the fields.
    pub const fn position(self) -> usize {
        self as usize + 2
    }
}

#[derive(Debug, Clone)]
pub struct IdScheme {
    /// The column that holds it, quoted.
    pub column: Option<String>,
    /// Where that column is absent or empty: a prefix, for instance `obs-`, and an integer column.
    pub numbered: Option<(&'static str, String)>,
}

impl IdScheme {
    pub const fn column(column: String) -> Self {
        Self { column: Some(column), numbered: None }
    }

    pub fn expression(&self) -> String {
        let text = self.column.as_ref().map(|column| format!("CAST({column} AS TEXT)"));
        let number = self.numbered.as_ref();
        let number = number.map(|(prefix, column)| format!("'{prefix}' || {column}"));
        match (text, number) {
            (Some(text), Some(number)) => {
                format!("coalesce(nullif({}, ''), {number})", exact(&text))
            }
            (text, number) => text.or(number).unwrap_or_default(),
        }
    }

    /// A description for display: the column, or how the id is built.
    fn describe(&self) -> String {
        let column = self.column.iter().map(|column| bare(column).to_owned());
        let number = self.numbered.iter();
        let number = number.map(|(prefix, column)| format!("{prefix}<{}>", bare(column)));
        column.chain(number).collect::<Vec<_>>().join(", or ")
    }

    /// The SQL condition and its parameter that find an id, or `None` if no row can have it.
    pub fn condition(&self, id: &str) -> Option<(String, rusqlite::types::Value)> {
        match (&self.column, &self.numbered) {
            // A column without a text type may hold numbers.
            (Some(column), None) => {
                let column = exact(column);
                let number = id.parse::<i64>().ok().filter(|number| number.to_string() == id);
                let or_number = number.map(|number| format!(" OR {column} = {number}"));
                let or_number = or_number.unwrap_or_default();
                Some((format!("({column} = ?1{or_number})"), id.to_owned().into()))
            }
            (None, Some((prefix, column))) => {
                let number: i64 = id.strip_prefix(prefix)?.parse().ok()?;
                let condition = format!("{} = ?1", exact(column));
                (id == format!("{prefix}{number}")).then(|| (condition, number.into()))
            }
            _ => Some((format!("{} = ?1", exact(&self.expression())), id.to_owned().into())),
        }
    }
}

fn bare(column: &str) -> &str {
    column.trim_matches('"')
}

/// A table of memories and how it maps to the record.
#[derive(Debug, Clone)]
pub struct MemorySource {
    pub name: String,
    /// The table, or a query for some of its rows.
    pub table: String,
    pub row_number: &'static str,
    pub id: IdScheme,
    pub columns: [Option<String>; Field::ALL.len()],
    /// The columns that make up the narrative, each with a label before it (may be empty).
    pub narrative: Vec<(&'static str, String)>,
    /// The type of every row, if the table has no column for it.
    pub kind: Option<&'static str>,
    /// Whether large values are truncated, see [`Layout::with_truncated_values`].
    truncate: bool,
}

impl MemorySource {
    /// A source over `table` with the first existing column for each field. `None` if rows have no
    /// number: nothing else names a row whatever its program takes for equal.
    pub fn new(table: &Table, id: IdScheme, wanted: &[(Field, &[&str])]) -> Option<Self> {
        let mut columns: [Option<String>; Field::ALL.len()] = Default::default();
        for (field, names) in wanted {
            if let Some(slot) = columns.get_mut(*field as usize) {
                *slot = table.column(names);
            }
        }
        Some(Self {
            name: table.name.clone(),
            table: table.quoted(),
            row_number: table.row_number?,
            id,
            columns,
            narrative: Vec::new(),
            kind: None,
            truncate: false,
        })
    }

    pub fn keep_rows(&mut self, condition: &str) {
        const ROW_NUMBER: &str = "ack_row_number";
        let Self { table, row_number, .. } = self;
        *table = format!("(SELECT {row_number} AS {ROW_NUMBER}, * FROM {table} WHERE {condition})");
        *row_number = ROW_NUMBER;
    }

    pub fn column(&self, field: Field) -> Option<&str> {
        self.columns.get(field as usize).and_then(Option::as_deref)
    }

    /// A query for whole rows. `clauses` follow the table's name.
    pub fn query(&self, clauses: &str) -> String {
        self.select(&self.columns_of_whole_rows(), clauses)
    }

    pub fn stored_order(&self) -> String {
        format!(" ORDER BY {}", self.row_number)
    }

    /// A query for some fields, with NULL for the others before the last of them.
    /// [`Field::Narrative`] stands for the columns of the narrative.
    pub fn query_fields(&self, fields: &[Field], clauses: &str) -> String {
        let all = Field::ALL.iter().zip(&self.columns);
        let wanted = all.map(|(field, column)| column.as_ref().filter(|_| fields.contains(field)));
        if fields.contains(&Field::Narrative) {
            let narrative = self.narrative.iter().map(|(_, column)| Some(column));
            return self.select(&self.columns(wanted.chain(narrative)), clauses);
        }
        let wanted: Vec<Option<&String>> = wanted.collect();
        let length = wanted.iter().rposition(Option::is_some).map_or(0, |it| it + 1);
        self.select(&self.columns(wanted.into_iter().take(length)), clauses)
    }

    /// A query for the row number and `columns`.
    pub fn select(&self, columns: &str, clauses: &str) -> String {
        let Self { table, row_number, .. } = self;
        format!("SELECT {row_number}, {columns} FROM {table}{clauses}")
    }

    pub fn columns_of_whole_rows(&self) -> String {
        let fields = self.columns.iter().map(Option::as_ref);
        self.columns(fields.chain(self.narrative.iter().map(|(_, column)| Some(column))))
    }

    /// The id and some columns, with NULL for those that the table lacks.
    fn columns<'a>(&self, columns: impl Iterator<Item = Option<&'a String>>) -> String {
        let id = match &self.id.column {
            Some(column) if self.truncate && self.id.numbered.is_none() => {
                format!("CAST({} AS TEXT)", truncate(column))
            }
            _ => self.id.expression(),
        };
        let columns = columns.map(|it| it.map_or_else(|| "NULL".to_owned(), |it| self.value(it)));
        std::iter::once(id).chain(columns).collect::<Vec<_>>().join(", ")
    }

    /// Both lists of files, as columns to select; `None` if the table has none.
    pub fn columns_of_files(&self) -> Option<String> {
        let columns = [Field::Files, Field::FilesMore].map(|field| self.column(field));
        let columns: Vec<String> = columns.into_iter().flatten().map(|it| self.value(it)).collect();
        (!columns.is_empty()).then(|| columns.join(", "))
    }

    fn value(&self, expression: &str) -> String {
        if self.truncate { truncate(expression) } else { expression.to_owned() }
    }
}

/// If values are truncated: the largest value that is read whole, in bytes.
const MAX_WHOLE_BYTES: u32 = 8 << 20;
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

#[derive(Debug, Clone)]
pub struct SessionSource {
    pub table: String,
    /// The columns that a memory's `session` or `session_id` may equal.
    pub keys: Vec<String>,
    pub title: Option<String>,
    pub project: Option<String>,
    /// SQL for the project of which that one is a part.
    pub parent_project: Option<String>,
    pub started: Option<String>,
}

#[derive(Debug, Clone)]
pub struct OverviewSource {
    pub table: String,
    pub session: String,
    pub project: Option<String>,
    /// The columns that make up the overview, with labels.
    pub content: Vec<(&'static str, String)>,
    /// SQL that orders several overviews of one session.
    pub order: String,
    /// A row that is not approved is never shown.
    pub status: Option<String>,
    /// If its rows are memories, whose status decides: an index into [`Layout::sources`].
    pub memories: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct LinkSource {
    pub table: String,
    /// From, to, kind, source and confidence.
    pub columns: [String; 5],
}

#[derive(Debug, Clone)]
pub struct LogSource {
    pub table: String,
    pub memory: String,
    /// SQL that orders entries of the same time.
    pub order: &'static str,
    /// Action, previous status, new status, reason, actor and time.
    pub columns: [String; 6],
}

#[derive(Debug, Clone)]
pub struct Layout {
    pub profile: Profile,
    pub sources: Vec<MemorySource>,
    pub sessions: Vec<SessionSource>,
    pub overviews: Vec<OverviewSource>,
    /// SQL for the text, the session as memories name it, and the time of the newest `?1` prompts
    /// that a person typed. They are no memories: only the review desk reads them, to see what that
    /// person's agents would have needed.
    pub prompts: Option<String>,
    pub links: Option<LinkSource>,
    pub log: Option<LogSource>,
    /// SQL for the number of rows that are left out, because their program marked them as deleted.
    pub deleted: Option<String>,
}

impl Layout {
    pub const fn new(profile: Profile, sources: Vec<MemorySource>) -> Self {
        Self {
            profile,
            sources,
            sessions: Vec::new(),
            overviews: Vec::new(),
            prompts: None,
            links: None,
            log: None,
            deleted: None,
        }
    }

    pub fn has_status(&self) -> bool {
        self.sources.iter().all(|source| source.column(Field::Status).is_some())
    }

    /// The same layout with truncated values, for a store whose values would take too much memory.
    #[must_use]
    pub fn with_truncated_values(mut self) -> Self {
        for source in &mut self.sources {
            source.truncate = true;
        }
        let titles = self.sessions.iter_mut().filter_map(|it| it.title.as_mut());
        let contents = self.overviews.iter_mut().flat_map(|it| &mut it.content);
        for value in titles.chain(contents.map(|(_, column)| column)) {
            *value = truncate(value);
        }
        self
    }

    /// One line per source with its table and columns, for `doctor`.
    pub fn describe(&self) -> Vec<String> {
        let describe = |source: &MemorySource| {
            let fields = Field::ALL.iter().filter_map(|field| {
                let column = bare(source.column(*field)?);
                Some(format!("{}={column}", format!("{field:?}").to_lowercase()))
            });
            let narrative = source.narrative.iter().map(|(_, column)| bare(column));
            format!(
                "{}: id={}, {}, narrative={}",
                source.name,
                source.id.describe(),
                fields.collect::<Vec<_>>().join(", "),
                narrative.collect::<Vec<_>>().join("+")
            )
        };
        self.sources.iter().map(describe).collect()
    }
}

/// Reads the tables of a database, with their columns. Views are left out: one may be a recursion
/// without end.
pub fn tables(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    // `table_info` leaves out generated columns, and one of them may be the status.
    let mut columns = connection
        .prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden != 1 ORDER BY cid")?;
    let mut listed = connection.prepare(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' \
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )?;
    let tables = listed.query_map([], |row| {
        let (name, is_without_rowid): (String, bool) = (row.get(0)?, row.get(1)?);
        let mut table = Table {
            columns: columns.query_map([&name], |row| row.get(0))?.collect::<Result<_, _>>()?,
            name,
            row_number: None,
        };
        if !is_without_rowid {
            let mut names = ["rowid", "_rowid_", "oid"].into_iter();
            table.row_number = names.find(|name| table.column(&[name]).is_none());
        }
        Ok(table)
    })?;
    tables.collect()
}

pub fn find<'a>(tables: &'a [Table], name: &str) -> Option<&'a Table> {
    tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_has_the_article_that_is_spoken() {
        let names = [Profile::Ack, Profile::ClaudeMem, Profile::McpMemoryService];
        let names = names.map(Profile::with_article);
        assert_eq!(names, ["an ack", "a claude-mem", "an mcp-memory-service"]);
    }
}
