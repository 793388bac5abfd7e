//! The same questions to plain SQLite FTS5, in the same run.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, params};

use crate::{millis, report};

/// SQLite FTS5: Porter stemming, OR of the quoted words, title 4, facts 2, body 1; the best ten
/// with their titles.
pub fn measure(store: &Path, folder: &Path, queries: &[String]) {
    let connection = Connection::open(folder.join("fts5.db")).unwrap();
    connection.execute("ATTACH DATABASE ?1 AS store", params![store.to_str().unwrap()]).unwrap();
    let started = Instant::now();
    connection
        .execute_batch(
            "CREATE VIRTUAL TABLE words USING fts5(title, facts, body, tokenize = 'porter unicode61'); \
             INSERT INTO words(rowid, title, facts, body) SELECT rowid, title, facts || ' ' || concepts || ' ' || subtitle, narrative \
             FROM store.memories WHERE status != 'staging'; INSERT INTO words(words) VALUES ('optimize')",
        )
        .unwrap();
    let built = millis(started.elapsed());
    let mut statement = connection
        .prepare(
            "SELECT memories.id, memories.title FROM words JOIN store.memories ON memories.rowid = words.rowid WHERE words MATCH ?1 \
             ORDER BY bm25(words, 4.0, 2.0, 1.0) LIMIT 10",
        )
        .unwrap();
    let mut times: Vec<f64> = queries
        .iter()
        .map(|query| {
            let quoted: Vec<String> =
                query.split_whitespace().map(|word| format!("\"{word}\"")).collect();
            let started = Instant::now();
            let rows = statement
                .query_map(params![quoted.join(" OR ")], |row| row.get::<_, String>(0))
                .unwrap();
            assert!(rows.count() <= 10);
            millis(started.elapsed())
        })
        .collect();
    report(&format!("FTS5 (built in {:.1} s)", built / 1e3), &mut times);
}
