//! Builds the sample scopes of `scopes-example/` for `ack-memory demo` and the tests, and as an
//! example of a store. The texts are compiled in, so an installed binary has them too.

use std::io::{BufRead, Write};
use std::path::Path;

use rusqlite::{Connection, params};
use serde::Deserialize;

use crate::import::write::make_private;
use crate::import::{ImportError, ImportOptions, run};

struct Sample {
    name: &'static str,
    manifest: &'static str,
    memories: &'static str,
    sessions: &'static str,
    links: &'static str,
    log: &'static str,
}

macro_rules! sample {
    ($name:literal) => {
        Sample {
            name: $name,
            manifest: include_str!(concat!("../scopes-example/", $name, "/scope.toml")),
            memories: include_str!(concat!("../scopes-example/", $name, "/memories.jsonl")),
            sessions: include_str!(concat!("../scopes-example/", $name, "/sessions.jsonl")),
            links: include_str!(concat!("../scopes-example/", $name, "/links.jsonl")),
            log: include_str!(concat!("../scopes-example/", $name, "/curation_log.jsonl")),
        }
    };
}

const SAMPLES: [Sample; 4] = [
    sample!("dana-private"),
    sample!("kiosk-web"),
    sample!("ledger-api"),
    sample!("platform"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionLine {
    id: String,
    project: Option<String>,
    title: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    overview: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkLine {
    from_id: String,
    to_id: String,
    kind: String,
    source: Option<String>,
    confidence: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogLine {
    memory_id: String,
    action: String,
    previous_status: Option<String>,
    new_status: Option<String>,
    reason: Option<String>,
    actor: Option<String>,
    created_at: Option<String>,
}

/// Builds a scope root with the sample scopes in `root`, which must be empty or absent.
pub fn build(root: &Path, now: jiff::Timestamp) -> Result<(), ImportError> {
    for sample in &SAMPLES {
        let folder = root.join("scopes").join(sample.name);
        let io = |source| ImportError::Io {
            action: "create",
            path: folder.clone(),
            source,
        };
        make_private(&folder).map_err(io)?;
        write_private(&folder.join("scope.toml"), sample.manifest).map_err(io)?;
        let mut input: &[u8] = sample.memories.as_bytes();
        let report = run(
            folder.join("memory.db"),
            &mut input as &mut dyn BufRead,
            ImportOptions::default(),
            now,
            &mut |_| {},
            &mut |_| {},
        )?;
        around(&report.path, sample).map_err(|source| ImportError::Sqlite {
            path: report.path.clone(),
            source,
        })?;
    }
    Ok(())
}

/// Writes a new file that only its owner can read.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Adds what goes with the memories: sessions, overviews, links and the curation log.
fn around(path: &Path, sample: &Sample) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    let transaction = connection.transaction()?;
    // The samples bring their own log.
    transaction.execute("DELETE FROM curation_log", [])?;
    for line in lines::<SessionLine>(sample.sessions)? {
        transaction.execute(
            "INSERT INTO sessions (id, project, title, started_at, ended_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![line.id, line.project, line.title, line.started_at, line.ended_at],
        )?;
        if let Some(overview) = &line.overview {
            transaction.execute(
                "INSERT INTO overviews (project, session, content, created_at) VALUES (?1, ?2, ?3, ?4)",
                params![line.project, line.id, overview, line.ended_at],
            )?;
        }
    }
    for line in lines::<LinkLine>(sample.links)? {
        transaction.execute(
            "INSERT INTO memory_links (from_id, to_id, kind, source, confidence) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![line.from_id, line.to_id, line.kind, line.source, line.confidence],
        )?;
    }
    for line in lines::<LogLine>(sample.log)? {
        transaction.execute(
            "INSERT INTO curation_log (memory_id, action, previous_status, new_status, reason, actor, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![line.memory_id, line.action, line.previous_status, line.new_status, line.reason, line.actor, line.created_at],
        )?;
    }
    transaction.commit()
}

fn lines<T: for<'de> Deserialize<'de>>(text: &str) -> rusqlite::Result<Vec<T>> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            serde_json::from_str(line)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
        })
        .collect()
}
