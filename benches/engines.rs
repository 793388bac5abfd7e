//! Large scopes: LanceDB's own scores compared with ours.
//! `ACK_TEST_EVALS=DIR cargo bench --bench engines [-- SIZE]`.
//!
//! One scope holds the memories of all development sets and, up to SIZE, generated ones. The
//! questions of the sets are answered in four ways:
//!
//! - *in memory*: the whole scope is in memory;
//! - *table*: LanceDB's indexes find candidates, and our code scores them (`limits.resident`);
//! - *LanceDB's scores*: the same indexes, and their scores fused by our formula;
//! - *LanceDB's hybrid query*: its own text analysis, and fusion by rank.
//!
//! Prints how many of the ten best results are also found in memory, nDCG@10 by the labels of the
//! sets (with a 95 % interval of the difference to *in memory*), and times in milliseconds.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    dead_code,
    reason = "a program that measures and prints, with parts of another one"
)]

#[path = "latency/data.rs"]
mod data;
#[path = "latency/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ack_lance::arrow::array::{AsArray, RecordBatch};
use ack_lance::arrow::datatypes::Float32Type;
use ack_lance::lancedb::index::Index;
use ack_lance::lancedb::index::scalar::{
    FtsIndexBuilder, FtsQuery, FullTextSearchQuery, MatchQuery,
};
use ack_lance::lancedb::query::{ExecutableQuery, QueryBase, QueryExecutionOptions, Select};
use ack_lance::lancedb::{DistanceType, Table, connect};
use ack_memory::internal::eval::{Estimate, Measures, percentile};
use ack_memory::internal::import::{self, ImportOptions};
use ack_search::encoder::Encoder;
use ack_search::query::QueryTerms;
use futures::TryStreamExt;
use rusqlite::Connection;
use serde_json::{Value, json};

use self::data::Random;
use self::server::Server;

/// Questions of each set.
const QUESTIONS: usize = 40;
/// How many candidates the indexes are asked for, as in `ack-lance`.
const BY_WORDS: usize = 150;
const BY_MEANING: usize = 400;
/// The weight of a cosine beside the best lexical score, as in `ack-search`.
const COSINE_WEIGHT: f32 = 4.0;
const BEST: usize = 10;

/// A question and the memories that answer it.
struct Question {
    text: String,
    relevant: BTreeSet<String>,
}

/// What one way answered: the best ten of each question.
type Answers = Vec<Vec<String>>;

fn main() {
    let Some(sets) = std::env::var_os("ACK_TEST_EVALS").map(|path| PathBuf::from(path).join("dev"))
    else {
        println!("ACK_TEST_EVALS names no folder of development sets");
        return;
    };
    let size: usize = std::env::args().find_map(|word| word.parse().ok()).unwrap_or_default();
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let questions = fill(root, &sets, size);
    resident(root, 10_000);
    let began = Instant::now();
    index(root);
    println!("{} questions; `index` took {:?}", questions.len(), began.elapsed());

    resident(root, 16_000_000);
    let (memory, times) = served(root, &questions);
    report("in memory", &memory, &memory, &questions, times);
    resident(root, 10_000);
    let (table, times) = served(root, &questions);
    report("table", &table, &memory, &questions, times);

    let copy = root.join("copy");
    copy_folder(&root.join("scopes/all/lance"), &copy);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let encoder = Encoder::embedded().unwrap();
    runtime.block_on(async {
        let connection = connect(copy.to_str().unwrap()).execute().await.unwrap();
        let table = connection.open_table("memories").execute().await.unwrap();
        let (mut found, mut times) = (Vec::new(), Vec::new());
        for question in &questions {
            let began = Instant::now();
            found.push(by_scores(&table, encoder, &question.text).await);
            times.push(millis(began.elapsed()));
        }
        report("LanceDB's scores", &found, &memory, &questions, times);
        let words = FtsIndexBuilder::default().with_position(false);
        let index = table.create_index(&["text"], Index::FTS(words));
        index.execute().await.unwrap();
        let (mut found, mut times) = (Vec::new(), Vec::new());
        for question in &questions {
            let began = Instant::now();
            found.push(hybrid(&table, encoder, &question.text).await);
            times.push(millis(began.elapsed()));
        }
        report("LanceDB's hybrid query", &found, &memory, &questions, times);
    });
}

/// One scope with the memories of all sets, and generated ones up to a size.
fn fill(root: &Path, sets: &Path, size: usize) -> Vec<Question> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(sets).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let (mut text, mut questions, mut memories) = (String::new(), Vec::new(), 0);
    for folder in &folders {
        let set = folder.file_name().unwrap().to_str().unwrap();
        let named = |id: &Value| format!("{set}:{}", id.as_str().unwrap());
        for document in lines(&folder.join("docs.jsonl")) {
            let mut line = json!({ "status": "approved", "id": named(&document["id"]) });
            for key in ["title", "subtitle", "facts", "body", "tags", "created_at"] {
                if let Some(value) = document.get(key).filter(|value| !value.is_null()) {
                    line[key] = value.clone();
                }
            }
            text += &format!("{line}\n");
            memories += 1;
        }
        let asked = lines(&folder.join("queries.jsonl")).into_iter().filter_map(|query| {
            let relevant = query["relevant"].as_array()?;
            let relevant: BTreeSet<String> = relevant.iter().map(named).collect();
            let text = query["text"].as_str()?.to_owned();
            (!relevant.is_empty()).then_some(Question { text, relevant })
        });
        let asked: Vec<Question> = asked.collect();
        let step = asked.len().div_ceil(QUESTIONS).max(1);
        questions.extend(asked.into_iter().step_by(step));
    }
    let path = root.join("scopes/all/memory.db");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let now = "2026-11-21T00:00:00Z".parse().unwrap();
    import::run(path.clone(), &mut text.as_bytes(), ImportOptions::default(), now).unwrap();
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN").unwrap();
    let mut random = Random(42);
    for number in memories..size {
        data::insert(&connection, number, &mut random);
    }
    connection.execute_batch("COMMIT").unwrap();
    println!("{} memories, {memories} of them from {} sets", size.max(memories), folders.len());
    questions
}

fn resident(root: &Path, memories: usize) {
    let text = format!("limits.resident = {memories}");
    std::fs::write(root.join("config.toml"), text).unwrap();
}

fn index(root: &Path) {
    let done = Command::new(env!("CARGO_BIN_EXE_ack-memory"))
        .arg("--root")
        .arg(root)
        .args(["index", "--all"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// The answers of the real server.
fn served(root: &Path, questions: &[Question]) -> (Answers, Vec<f64>) {
    let mut server = Server::start(root);
    server.handshake();
    server.call("query_memories", &json!({ "query": "connection refused" }));
    let (mut answers, mut times) = (Vec::new(), Vec::new());
    for question in questions {
        let text: String = question.text.chars().take(2_000).collect();
        let arguments = json!({ "query": text, "limit": BEST, "max_tokens": 20_000 });
        let call = json!({ "name": "query_memories", "arguments": arguments });
        let began = Instant::now();
        let reply = server.request("tools/call", call);
        times.push(millis(began.elapsed()));
        assert_ne!(reply["result"]["isError"], json!(true), "{reply}");
        let hits = reply["result"]["structuredContent"]["results"].as_array();
        let ids = hits.into_iter().flatten();
        answers.push(ids.filter_map(|hit| Some(hit["id"].as_str()?.to_owned())).collect());
    }
    (answers, times)
}

/// LanceDB's scores of the table's words and vectors, fused by the formula of `ack-search`. A
/// memory that only the words find gets the smallest cosine that the vectors found.
async fn by_scores(table: &Table, encoder: &Encoder, question: &str) -> Vec<String> {
    let terms = QueryTerms::parse(question).terms;
    let words: Vec<String> = terms.into_iter().map(|term| term.key).collect();
    let matched = MatchQuery::new(words.join(" ")).with_column(Some("words".to_owned()));
    let by_words = table
        .query()
        .only_if(SERVED)
        .full_text_search(FullTextSearchQuery::new_query(FtsQuery::Match(matched)))
        .select(Select::columns(&["id", "_score"]))
        .limit(BY_WORDS);
    let by_meaning = table
        .query()
        .only_if(SERVED)
        .nearest_to(vector(encoder, question))
        .unwrap()
        .maximum_nprobes(None)
        .unwrap()
        .column("vector")
        .distance_type(DistanceType::Cosine)
        .refine_factor(1)
        .select(Select::columns(&["id", "_distance"]))
        .limit(BY_MEANING);
    let (words, near) = futures::join!(
        async { read(by_words.execute().await.unwrap().try_collect().await.unwrap(), "_score",) },
        async {
            read(by_meaning.execute().await.unwrap().try_collect().await.unwrap(), "_distance")
        }
    );
    let best = words.values().copied().fold(f32::MIN_POSITIVE, f32::max);
    let farthest = near.values().copied().fold(0f32, f32::max);
    let ids: BTreeSet<&String> = words.keys().chain(near.keys()).collect();
    let mut scored: Vec<(f32, &String)> = ids
        .into_iter()
        .map(|id| {
            let lexical = words.get(id).copied().unwrap_or_default() / best;
            let cosine = 1.0 - near.get(id).copied().unwrap_or(farthest);
            (lexical + COSINE_WEIGHT * cosine.max(0.0), id)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(BEST).map(|(_, id)| id.clone()).collect()
}

/// LanceDB's hybrid query: its own analysis of the text, fusion by rank.
async fn hybrid(table: &Table, encoder: &Encoder, question: &str) -> Vec<String> {
    let batches: Vec<RecordBatch> = table
        .query()
        .only_if(SERVED)
        .select(Select::columns(&["id"]))
        .full_text_search(
            FullTextSearchQuery::new(question.to_owned()).with_column("text".to_owned()).unwrap(),
        )
        .limit(BEST)
        .nearest_to(vector(encoder, question))
        .unwrap()
        .distance_type(DistanceType::Cosine)
        .refine_factor(5)
        .execute_hybrid(QueryExecutionOptions::default())
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    let ids = batches.iter().flat_map(|batch| {
        let ids = batch.column_by_name("id").unwrap().as_string::<i32>();
        ids.iter().flatten().map(str::to_owned).collect::<Vec<_>>()
    });
    ids.take(BEST).collect()
}

const SERVED: &str = "status IN ('approved', 'promoted')";

fn vector(encoder: &Encoder, text: &str) -> Vec<f32> {
    let unknown = || vec![1.0; encoder.dimension];
    encoder.query(text).unwrap_or_else(unknown)
}

/// The values of a column by id.
fn read(batches: Vec<RecordBatch>, column: &str) -> BTreeMap<String, f32> {
    let rows = batches.iter().flat_map(|batch| {
        let ids = batch.column_by_name("id").unwrap().as_string::<i32>();
        let values = batch.column_by_name(column).unwrap();
        let values = values.as_primitive::<Float32Type>();
        let rows = ids.iter().zip(values.iter());
        rows.filter_map(|(id, value)| Some((id?.to_owned(), value?))).collect::<Vec<_>>()
    });
    rows.collect()
}

fn report(
    way: &str,
    answers: &Answers,
    memory: &Answers,
    questions: &[Question],
    mut times: Vec<f64>,
) {
    let share = |(found, wanted): (&Vec<String>, &Vec<String>)| {
        let same = wanted.iter().filter(|id| found.contains(id)).count();
        (!wanted.is_empty()).then(|| same as f64 / wanted.len() as f64)
    };
    let recall: Vec<f64> = answers.iter().zip(memory).filter_map(share).collect();
    let gains = |answers: &Answers| -> Vec<f64> {
        let gain = |(found, question): (&Vec<String>, &Question)| {
            let relevant = question.relevant.iter().map(String::as_str).collect();
            Measures::of(found, &relevant).map_or(0.0, |measures| measures.ndcg_10)
        };
        answers.iter().zip(questions).map(gain).collect()
    };
    let (own, theirs) = (gains(answers), gains(memory));
    let differences: Vec<f64> = own.iter().zip(&theirs).map(|(a, b)| a - b).collect();
    let (mean, change) = (Estimate::of(&own), Estimate::of(&differences));
    println!(
        "{way:<24} of the best ten in memory {:.3}  nDCG@10 {:.3} ({:+.4} ± {:.4})  p50 {:.1}  p99 {:.1}",
        Estimate::of(&recall).mean,
        mean.mean,
        change.mean,
        change.margin,
        percentile(&mut times, 0.5),
        percentile(&mut times, 0.99),
    );
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

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
