//! The stores of claude-mem: `observations` and `session_summaries` (4 and later), `memories` (3).
//!
//! Tables that hold tool input and tool output are never read, and that of raw prompts only by the
//! review desk ([`crate::prompts`]).

use super::ack;
use crate::layout::{
    Field, IdScheme, Layout, MemorySource, OverviewSource, Profile, SessionSource, Table, exact,
    find,
};

/// The parts of a session summary, in the order of an answer.
const SUMMARY_PARTS: [(&str, &str); 5] = [
    ("Investigated", "investigated"),
    ("Learned", "learned"),
    ("Completed", "completed"),
    ("Next steps", "next_steps"),
    ("Notes", "notes"),
];

/// The columns that name the session of a row, in several versions.
const SESSION: &[&str] = &["memory_session_id", "sdk_session_id", "session_id"];

/// The columns of memories in every version.
const COMMON: [(Field, &[&str]); 8] = [
    (Field::Project, &["project"]),
    (Field::Kind, &["type"]),
    (Field::Title, &["title"]),
    (Field::Subtitle, &["subtitle"]),
    (Field::Facts, &["facts"]),
    (Field::Status, &["status"]),
    (Field::CreatedEpoch, &["created_at_epoch"]),
    (Field::Created, &["created_at"]),
];

/// Recognises claude-mem 4 and later: `observations` has an id and a title or a text.
pub fn recognise(tables: &[Table]) -> Option<Layout> {
    let mut sources = vec![observations(find(tables, "observations")?)?];
    let mut overviews = Vec::new();
    if let Some((source, overview)) = find(tables, "session_summaries").and_then(summaries) {
        overviews.push(OverviewSource { memories: Some(sources.len()), ..overview });
        sources.push(source);
    }
    let sessions = find(tables, "sdk_sessions")
        .and_then(|table| sessions(table, &["memory_session_id", "sdk_session_id"]));
    Some(Layout {
        sessions: sessions.into_iter().collect(),
        overviews,
        prompts: prompts(tables),
        ..Layout::new(Profile::ClaudeMem, sources)
    })
}

fn observations(table: &Table) -> Option<MemorySource> {
    let id = numbered(None, "obs-", table)?;
    table.column(&["title", "text", "narrative"])?;
    let own: [(Field, &[&str]); 4] = [
        (Field::SessionId, SESSION),
        (Field::Concepts, &["concepts"]),
        (Field::Files, &["files_modified"]),
        (Field::FilesMore, &["files_read"]),
    ];
    let mut source = MemorySource::new(table, id, &[&COMMON[..], &own].concat())?;
    source.narrative = columns(table, &[("", "narrative"), ("", "text")]);
    source.add_parent_project(table);
    source.leave_out_empty_rows();
    Some(source)
}

fn summaries(table: &Table) -> Option<(MemorySource, OverviewSource)> {
    let id = numbered(None, "sum-", table)?;
    let session = table.column(SESSION)?;
    let mut source = MemorySource::new(
        table,
        id,
        &[
            (Field::Project, &["project"]),
            (Field::SessionId, SESSION),
            (Field::Title, &["request"]),
            (Field::Files, &["files_edited"]),
            (Field::FilesMore, &["files_read"]),
            (Field::Status, &["status"]),
            (Field::CreatedEpoch, &["created_at_epoch"]),
            (Field::Created, &["created_at"]),
        ],
    )?;
    source.kind = Some("session_summary");
    source.narrative = columns(table, &SUMMARY_PARTS);
    source.add_parent_project(table);
    source.leave_out_empty_rows();
    let overview = OverviewSource {
        table: source.table.clone(),
        session,
        project: table.column(&["project"]),
        content: source
            .narrative
            .iter()
            .filter(|(label, _)| ["Learned", "Completed"].contains(label))
            .cloned()
            .collect(),
        order: table
            .column(&["created_at_epoch", "created_at"])
            .unwrap_or_else(|| source.row_number.to_owned()),
        status: None,
        memories: None,
    };
    Some((source, overview))
}

/// Prompts name their session as the client does, which the table of sessions translates.
fn prompts(tables: &[Table]) -> Option<String> {
    const OF_CLIENT: &[&str] = &["content_session_id", "claude_session_id"];
    let (table, sessions) = (find(tables, "user_prompts")?, find(tables, "sdk_sessions")?);
    let text = table.column(&["prompt_text"])?;
    let asked = table.column(&["created_at_epoch"])?;
    let session = format!(
        "SELECT s.{} FROM {} s WHERE {} = p.{} LIMIT 1",
        sessions.column(SESSION)?,
        sessions.quoted(),
        exact(&format!("s.{}", sessions.column(OF_CLIENT)?)),
        table.column(OF_CLIENT)?
    );
    Some(format!(
        "SELECT substr(p.{text}, 1, {}), ({session}), p.{asked} FROM {} p ORDER BY {} DESC LIMIT ?1",
        crate::prompts::MAX_CHARS,
        table.quoted(),
        exact(&format!("p.{asked}"))
    ))
}

fn columns(table: &Table, wanted: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    wanted.iter().filter_map(|(label, name)| Some((*label, table.column(&[name])?))).collect()
}

/// Ids that have a prefix before the number of the row, unless `column` holds one.
fn numbered(column: Option<String>, prefix: &'static str, table: &Table) -> Option<IdScheme> {
    Some(IdScheme { column, numbered: Some((prefix, table.column(&["id"])?)) })
}

/// Recognises claude-mem 3: `memories` has an integer id, a public id in `document_id`, and
/// `files_touched`.
pub fn recognise_v3(tables: &[Table]) -> Option<Layout> {
    let memories = find(tables, "memories")?;
    memories.column(&["title", "text"])?;
    let id = numbered(memories.column(&["document_id"]), "mem-", memories)?;
    let own: [(Field, &[&str]); 3] = [
        (Field::SessionId, &["session_id"]),
        (Field::Concepts, &["concepts", "keywords"]),
        (Field::Files, &["files_touched"]),
    ];
    let mut source = MemorySource::new(memories, id, &[&COMMON[..], &own].concat())?;
    source.narrative = columns(memories, &[("", "text"), ("", "narrative")]);
    source.leave_out_empty_rows();
    let overviews = find(tables, "overviews").and_then(ack::overviews);
    let sessions = find(tables, "sessions").and_then(|table| sessions(table, &["session_id"]));
    Some(Layout {
        sessions: sessions.into_iter().collect(),
        overviews: overviews.into_iter().collect(),
        ..Layout::new(Profile::ClaudeMemV3, vec![source])
    })
}

fn parent_project(project: &str) -> String {
    format!("nullif(substr({project}, 1, instr({project}, '/') - 1), '')")
}

impl MemorySource {
    /// Adds the project to which a row also belongs: the one that its worktree was merged into, or
    /// the one before the `/` in the name of a worktree (`parent/worktree`).
    fn add_parent_project(&mut self, table: &Table) {
        let merged = table.column(&["merged_into_project"]);
        let merged = merged.map(|column| format!("WHEN {column} > '' THEN {column} "));
        let parent = table.column(&["project"]).map(|project| {
            let parent = parent_project(&project);
            format!("WHEN instr({project}, '/') THEN {parent} ")
        });
        let cases: Vec<String> = merged.into_iter().chain(parent).collect();
        let alias = (!cases.is_empty()).then(|| format!("CASE {}END", cases.concat()));
        if let Some(slot) = self.columns.get_mut(Field::ProjectAlias as usize) {
            *slot = alias;
        }
    }

    /// Leaves out the rows without any text: their program wrote them before it had one.
    fn leave_out_empty_rows(&mut self) {
        let fields = [Field::Title, Field::Subtitle, Field::Facts].into_iter();
        let texts = fields.filter_map(|field| self.column(field));
        let texts = texts.chain(self.narrative.iter().map(|(_, column)| column.as_str()));
        let is_text =
            |column: &str| format!("trim({column}, char(9, 10, 13, 32)) NOT IN ('', '[]', 'null')");
        // Nearly every row has a title, and to compare it copies nothing.
        let has_title = self.column(Field::Title);
        let has_title = has_title.map(|title| format!("{} >= '!'", exact(title)));
        let conditions: Vec<String> = has_title.into_iter().chain(texts.map(is_text)).collect();
        self.keep_rows(&conditions.join(" OR "));
    }
}

fn sessions(table: &Table, keys: &[&str]) -> Option<SessionSource> {
    Some(SessionSource {
        table: table.quoted(),
        keys: vec![table.column(keys)?],
        title: table.column(&["custom_title", "title"]),
        project: table.column(&["project"]),
        parent_project: table.column(&["project"]).map(|project| parent_project(&project)),
        started: table.column(&[
            "started_at_epoch",
            "created_at_epoch",
            "started_at",
            "created_at",
        ]),
    })
}
