//! The stores of claude-mem: `observations` and `session_summaries` (4 and later), `memories` (3).
//!
//! Tables that hold raw prompts, tool input and tool output are never read.

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

/// Recognises claude-mem 4 and later: `observations` has an id and a title or a text.
pub fn recognise(tables: &[Table]) -> Option<Layout> {
    let observations = find(tables, "observations")?;
    let id = observations.column(&["id"])?;
    observations.column(&["title", "text", "narrative"])?;
    let session_column = &["memory_session_id", "sdk_session_id", "session_id"];
    let mut source = MemorySource::new(
        observations,
        IdScheme::Prefixed {
            prefix: "obs-",
            column: id,
        },
        &[
            (Field::Project, &["project"]),
            (Field::SessionId, session_column),
            (Field::Kind, &["type"]),
            (Field::Title, &["title"]),
            (Field::Subtitle, &["subtitle"]),
            (Field::Facts, &["facts"]),
            (Field::Concepts, &["concepts"]),
            (Field::Files, &["files_modified"]),
            (Field::FilesMore, &["files_read"]),
            (Field::Status, &["status"]),
            (Field::CreatedEpoch, &["created_at_epoch"]),
            (Field::Created, &["created_at"]),
        ],
    );
    source.narrative = ["narrative", "text"]
        .iter()
        .filter_map(|name| observations.column(&[name]))
        .map(|column| ("", column))
        .collect();
    source.add_parent_project(observations);
    source.leave_out_empty_rows(observations);
    let mut sources = vec![source];
    let mut overviews = Vec::new();
    if let Some(summaries) = find(tables, "session_summaries")
        && let (Some(id), Some(session)) =
            (summaries.column(&["id"]), summaries.column(session_column))
    {
        let mut source = MemorySource::new(
            summaries,
            IdScheme::Prefixed {
                prefix: "sum-",
                column: id,
            },
            &[
                (Field::Project, &["project"]),
                (Field::SessionId, session_column),
                (Field::Title, &["request"]),
                (Field::Files, &["files_edited"]),
                (Field::FilesMore, &["files_read"]),
                (Field::Status, &["status"]),
                (Field::CreatedEpoch, &["created_at_epoch"]),
                (Field::Created, &["created_at"]),
            ],
        );
        source.kind = Some("session_summary");
        source.narrative = SUMMARY_PARTS
            .iter()
            .filter_map(|(label, name)| Some((*label, summaries.column(&[name])?)))
            .collect();
        source.add_parent_project(summaries);
        source.leave_out_empty_rows(summaries);
        overviews.push(OverviewSource {
            table: source.table.clone(),
            session,
            project: summaries.column(&["project"]),
            content: source
                .narrative
                .iter()
                .filter(|(label, _)| ["Learned", "Completed"].contains(label))
                .cloned()
                .collect(),
            order: summaries
                .column(&["created_at_epoch", "created_at"])
                .unwrap_or_else(|| source.row_number.unwrap_or("NULL").to_owned()),
            status: None,
            memories: Some(sources.len()),
        });
        sources.push(source);
    }
    let sessions = find(tables, "sdk_sessions")
        .and_then(|table| sessions(table, &["memory_session_id", "sdk_session_id"]));
    Some(Layout {
        deleted: None,
        profile: Profile::ClaudeMem,
        sources,
        sessions: sessions.into_iter().collect(),
        overviews,
        links: None,
        log: None,
    })
}

/// Recognises claude-mem 3: `memories` has an integer id, a public id in `document_id`, and
/// `files_touched`.
pub fn recognise_v3(tables: &[Table]) -> Option<Layout> {
    let memories = find(tables, "memories")?;
    let id = memories.column(&["id"])?;
    memories.column(&["title", "text"])?;
    let scheme = match memories.column(&["document_id"]) {
        Some(public) => IdScheme::ColumnOr {
            public,
            prefix: "mem-",
            column: id,
        },
        None => IdScheme::Prefixed {
            prefix: "mem-",
            column: id,
        },
    };
    let mut source = MemorySource::new(
        memories,
        scheme,
        &[
            (Field::Project, &["project"]),
            (Field::SessionId, &["session_id"]),
            (Field::Kind, &["type"]),
            (Field::Title, &["title"]),
            (Field::Subtitle, &["subtitle"]),
            (Field::Facts, &["facts"]),
            (Field::Concepts, &["concepts", "keywords"]),
            (Field::Files, &["files_touched"]),
            (Field::Status, &["status"]),
            (Field::CreatedEpoch, &["created_at_epoch"]),
            (Field::Created, &["created_at"]),
        ],
    );
    source.narrative = ["text", "narrative"]
        .iter()
        .filter_map(|name| memories.column(&[name]))
        .map(|column| ("", column))
        .collect();
    source.leave_out_empty_rows(memories);
    let overviews = find(tables, "overviews").and_then(|table| {
        Some(OverviewSource {
            table: table.quoted(),
            session: table.column(&["session_id", "session"])?,
            project: table.column(&["project"]),
            content: vec![("", table.column(&["content"])?)],
            order: table
                .column(&["created_at_epoch", "created_at"])
                .unwrap_or_else(|| table.row_number.unwrap_or("NULL").to_owned()),
            status: table.column(&["status"]),
            memories: None,
        })
    });
    let sessions = find(tables, "sessions").and_then(|table| sessions(table, &["session_id"]));
    Some(Layout {
        deleted: None,
        profile: Profile::ClaudeMemV3,
        sources: vec![source],
        sessions: sessions.into_iter().collect(),
        overviews: overviews.into_iter().collect(),
        links: None,
        log: None,
    })
}

/// SQL for the project of which a row's project is a worktree.
fn parent_project(project: &str) -> String {
    format!("nullif(substr({project}, 1, instr({project}, '/') - 1), '')")
}

/// The name of the row number in a query for the rows with a text.
const ROW_NUMBER: &str = "ack_row_number";

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
    fn leave_out_empty_rows(&mut self, table: &Table) {
        let fields = [Field::Title, Field::Subtitle, Field::Facts].into_iter();
        let texts = fields.filter_map(|field| self.column(field));
        let texts = texts.chain(self.narrative.iter().map(|(_, column)| column.as_str()));
        let is_text =
            |column: &str| format!("trim({column}, char(9, 10, 13, 32)) NOT IN ('', '[]', 'null')");
        // Nearly every row has a title, and to compare it copies nothing.
        let has_title = self.column(Field::Title);
        let has_title = has_title.map(|title| format!("{} >= '!'", exact(title)));
        let conditions: Vec<String> = has_title.into_iter().chain(texts.map(is_text)).collect();
        let key = table
            .row_number
            .map_or_else(String::new, |row| format!("{row} AS {ROW_NUMBER}, "));
        self.table = format!(
            "(SELECT {key}* FROM {} WHERE {})",
            table.quoted(),
            conditions.join(" OR ")
        );
        self.row_number = table.row_number.map(|_| ROW_NUMBER);
    }
}

fn sessions(table: &Table, keys: &[&str]) -> Option<SessionSource> {
    Some(SessionSource {
        table: table.quoted(),
        keys: vec![table.column(keys)?],
        title: table.column(&["custom_title", "title"]),
        project: table.column(&["project"]),
        parent_project: table
            .column(&["project"])
            .map(|project| parent_project(&project)),
        started: table.column(&[
            "started_at_epoch",
            "created_at_epoch",
            "started_at",
            "created_at",
        ]),
    })
}
