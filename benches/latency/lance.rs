//! The same questions to LanceDB's own hybrid query, in the same run.

use std::path::Path;
use std::time::Instant;

use ack_lance::lancedb::index::Index;
use ack_lance::lancedb::index::scalar::{FtsIndexBuilder, FullTextSearchQuery};
use ack_lance::lancedb::index::vector::IvfRqIndexBuilder;
use ack_lance::lancedb::query::{QueryBase, QueryExecutionOptions, Select};
use ack_search::encoder::Encoder;
use futures::TryStreamExt;

use crate::{millis, report};

/// LanceDB's hybrid query (full text and vector, reciprocal rank fusion) over a copy of the table
/// that `index` built, with a vector index from 100,000 rows on. The question is encoded as our
/// server does.
pub fn measure(lance: &Path, folder: &Path, queries: &[String]) {
    let copy = folder.join("copy");
    copy_folder(lance, &copy);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let encoder = Encoder::embedded().unwrap();
    runtime.block_on(async {
        let connection =
            ack_lance::lancedb::connect(copy.to_str().unwrap()).execute().await.unwrap();
        let table = connection.open_table("memories").execute().await.unwrap();
        let rows = table.count_rows(None).await.unwrap();
        let started = Instant::now();
        table
            .create_index(&["text"], Index::FTS(FtsIndexBuilder::default().with_position(false)))
            .execute()
            .await
            .unwrap();
        let there = table.list_indices().await.unwrap();
        if rows >= 100_000
            && !there.iter().any(|index| index.columns.iter().any(|column| column == "vector"))
        {
            let vectors = IvfRqIndexBuilder::default()
                .distance_type(ack_lance::lancedb::DistanceType::Cosine);
            table.create_index(&["vector"], Index::IvfRq(vectors)).execute().await.unwrap();
        }
        let built = millis(started.elapsed());
        let mut times = Vec::new();
        for query in queries {
            let started = Instant::now();
            let vector = encoder.query(query).unwrap_or_else(|| vec![1.0; encoder.dimension]);
            let batches: Vec<_> = table
                .query()
                .only_if("status IN ('approved', 'promoted')")
                .select(Select::columns(&["id"]))
                .full_text_search(
                    FullTextSearchQuery::new(query.clone()).with_column("text".to_owned()).unwrap(),
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
                batches.iter().map(ack_lance::arrow::array::RecordBatch::num_rows).sum::<usize>()
                    <= 10
            );
            times.push(millis(started.elapsed()));
        }
        report(&format!("LanceDB hybrid ({:.1} s)", built / 1e3), &mut times);
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
