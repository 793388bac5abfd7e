//! The same questions to plain SQLite FTS5 and to LanceDB's own hybrid query, in the same run.

use std::path::Path;
use std::time::Instant;

use ack_lance::lancedb::index::Index;
use ack_lance::lancedb::index::scalar::{FtsIndexBuilder, FullTextSearchQuery};
use ack_lance::lancedb::index::vector::IvfRqIndexBuilder;
use ack_lance::lancedb::query::{QueryBase, QueryExecutionOptions, Select};
use ack_search::encoder::Encoder;
use futures::TryStreamExt;
use rusqlite::{Connection, params};

use crate::{millis, report};

/// SQLite FTS5: Porter stemming, OR of the quoted words, title 4, facts 2, body 1; the best ten
/// with their titles.
pub fn fts5(store: &Path, folder: &Path, queries: &[String]) {
    let connection = Connection::open(folder.join("fts5.db")).unwrap();
    connection
        .execute(
            "ATTACH DATABASE ?1 AS store",
            params![store.to_str().unwrap()],
        )
        .unwrap();
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
            let quoted: Vec<String> = query
                .split_whitespace()
                .map(|word| format!("\"{word}\""))
                .collect();
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

/// LanceDB's hybrid query (full text and vector, reciprocal rank fusion) over a copy of the table
/// that `index` built, with a vector index from 100,000 rows on. The question is encoded as our
/// server does.
pub fn lance(lance: &Path, folder: &Path, queries: &[String]) {
    let copy = folder.join("copy");
    copy_folder(lance, &copy);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let encoder = Encoder::embedded().unwrap();
    runtime.block_on(async {
        let connection = ack_lance::lancedb::connect(copy.to_str().unwrap())
            .execute()
            .await
            .unwrap();
        let table = connection.open_table("memories").execute().await.unwrap();
        let rows = table.count_rows(None).await.unwrap();
        let started = Instant::now();
        table
            .create_index(
                &["text"],
                Index::FTS(FtsIndexBuilder::default().with_position(false)),
            )
            .execute()
            .await
            .unwrap();
        let there = table.list_indices().await.unwrap();
        if rows >= 100_000
            && !there
                .iter()
                .any(|index| index.columns.iter().any(|column| column == "vector"))
        {
            let vectors = IvfRqIndexBuilder::default()
                .distance_type(ack_lance::lancedb::DistanceType::Cosine);
            table
                .create_index(&["vector"], Index::IvfRq(vectors))
                .execute()
                .await
                .unwrap();
        }
        let built = millis(started.elapsed());
        let mut times = Vec::new();
        for query in queries {
            let started = Instant::now();
            let vector = encoder
                .query(query)
                .unwrap_or_else(|| vec![1.0; encoder.dimension()]);
            let batches: Vec<_> = table
                .query()
                .only_if("status IN ('approved', 'promoted')")
                .select(Select::columns(&["id"]))
                .full_text_search(
                    FullTextSearchQuery::new(query.clone())
                        .with_column("text".to_owned())
                        .unwrap(),
                )
                .limit(10)
                .nearest_to(vector)
                .unwrap()
                .distance_type(ack_lance::lancedb::DistanceType::Cosine)
                .refine_factor(5)
                .execute_hybrid(QueryExecutionOptions::default())
                .await
                .unwrap()
                .try_collect()
                .await
                .unwrap();
            assert!(
                batches
                    .iter()
                    .map(ack_lance::arrow::array::RecordBatch::num_rows)
                    .sum::<usize>()
                    <= 10
            );
            times.push(millis(started.elapsed()));
        }
        report(
            &format!("LanceDB hybrid ({:.1} s)", built / 1e3),
            &mut times,
        );
    });
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from).into_iter().map(Result::unwrap) {
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}
