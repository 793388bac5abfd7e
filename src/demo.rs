//! Builds the sample scopes of `scopes-example/` for `ack-memory demo` and the tests, and as an
//! example of a store. The texts are compiled in, so an installed binary has them too.

use std::io::Write;
use std::path::Path;

use rusqlite::Connection;

use crate::import::{ImportError, ImportOptions, run};
use ack_sys::files::{create_private, make_private};

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

const SAMPLES: [Sample; 4] =
    [sample!("dana-private"), sample!("kiosk-web"), sample!("ledger-api"), sample!("platform")];

/// Adds lines of JSON, `?1`, to the tables of a store.
const SESSIONS: &str = "
    INSERT INTO sessions (id, project, title, started_at, ended_at)
    SELECT value->>'id', value->>'project', value->>'title', value->>'started_at',
           value->>'ended_at'
    FROM json_each(?1)";
const OVERVIEWS: &str = "
    INSERT INTO overviews (project, session, content, created_at)
    SELECT value->>'project', value->>'id', value->>'overview', value->>'ended_at'
    FROM json_each(?1) WHERE value->>'overview' IS NOT NULL";
const LINKS: &str = "
    INSERT INTO memory_links (from_id, to_id, kind, source, confidence)
    SELECT value->>'from_id', value->>'to_id', value->>'kind', value->>'source',
           value->>'confidence'
    FROM json_each(?1)";
const LOG: &str = "
    INSERT INTO curation_log
        (memory_id, action, previous_status, new_status, reason, actor, created_at)
    SELECT value->>'memory_id', value->>'action', value->>'previous_status',
           value->>'new_status', value->>'reason', value->>'actor', value->>'created_at'
    FROM json_each(?1)";

/// Builds a scope root with the sample scopes in `root`, which must be empty or absent.
pub fn build(root: &Path, now: jiff::Timestamp) -> Result<(), ImportError> {
    for sample in &SAMPLES {
        let folder = root.join("scopes").join(sample.name);
        let io = |source| ImportError::Io { action: "create", path: folder.clone(), source };
        make_private(&folder).map_err(io)?;
        let manifest = create_private(&folder.join("scope.toml"));
        let written = manifest.and_then(|mut file| file.write_all(sample.manifest.as_bytes()));
        written.map_err(io)?;
        let path = folder.join("memory.db");
        let (mut input, options) = (sample.memories.as_bytes(), ImportOptions::default());
        run(path.clone(), &mut input, options, now)?;
        around(&path, sample).map_err(|source| ImportError::Sqlite { path, source })?;
    }
    Ok(())
}

/// Adds what goes with the memories: sessions, overviews, links and the curation log.
fn around(path: &Path, sample: &Sample) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    let transaction = connection.transaction()?;
    // The samples bring their own log.
    transaction.execute("DELETE FROM curation_log", [])?;
    for (statement, lines) in [
        (SESSIONS, sample.sessions),
        (OVERVIEWS, sample.sessions),
        (LINKS, sample.links),
        (LOG, sample.log),
    ] {
        let lines: Vec<&str> = lines.lines().filter(|line| !line.is_empty()).collect();
        transaction.execute(statement, [format!("[{}]", lines.join(","))])?;
    }
    transaction.commit()
}
