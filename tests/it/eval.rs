//! Retrieval quality on development sets outside the repository (`ACK_TEST_EVALS`): documents
//! become approved memories, each project a scope, and each query asks the service what an agent
//! would ask.
//!
//! A query that names one project asks that scope. One that names several asks each scope for a
//! page and interleaves the pages, rank by rank, because scores of different answers are not
//! comparable. A query that names none asks without a scope. The documents of different owners are
//! in different roots, like those of different people.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::Path;

use ack_api::ErrorCode;
use ack_api::Mode;
use ack_memory::Service;
use ack_memory::internal::eval::{Measures, Run, parse};
use ack_memory::internal::import::{ImportOptions, run};
use serde_json::{Value, json};

use crate::support::{Root, outside};

#[test]
fn retrieval_meets_its_thresholds_on_the_development_sets() {
    let Some(folder) = outside("ACK_TEST_EVALS") else {
        return;
    };
    let mut table = format!(
        "\n{:<40} {:>9} {:>5} {:>7} {:>7} {:>7} {:>7} {:>4} {:>4} {:>6}\n",
        "set / category", "mode", "n", "nDCG@10", "R@5", "R@10", "MRR@10", "leak", "bad", "noise"
    );
    let mut wrong = Vec::new();
    // The least nDCG@10 of the lexical leg and of hybrid retrieval, and how much that adds at least.
    for (set, lexical, hybrid, gain) in [
        ("til-jb", 0.865, 0.880, 0.005),
        ("clippy", 0.861, 0.879, 0.0),
        ("solutions-open", 0.898, 0.902, -0.007),
        ("precisionmembench", 0.0, 0.949, 0.0),
        ("devbench", 0.0, 0.876, 0.0),
    ] {
        let folder = folder.join("dev").join(set);
        let results = MODES.map(|mode| score_set(&folder, mode));
        for (mode, scores) in MODES.iter().zip(&results) {
            for (category, score) in scores {
                let name =
                    if category.is_empty() { set.to_owned() } else { format!("  {category}") };
                let _ = writeln!(
                    table,
                    "{name:<40} {:>9} {:>5} {:>7.4} {:>7.4} {:>7.4} {:>7.4} {:>4} {:>4} {:>6.2}",
                    format!("{mode:?}"),
                    score.measures.len(),
                    score.mean(|measures| measures.ndcg_10),
                    score.mean(|measures| measures.recall_5),
                    score.mean(|measures| measures.recall_10),
                    score.mean(|measures| measures.reciprocal_rank),
                    score.leaks,
                    score.bad,
                    score.noise.iter().sum::<f64>() / score.noise.len().max(1) as f64,
                );
            }
            let all = &scores[""];
            if all.leaks > 0 || all.bad > 0 {
                wrong.push(format!("{set} {mode:?}: leak {}, bad {}", all.leaks, all.bad));
            }
        }
        let ndcg = |scores: &BTreeMap<String, Score>, category: &str| {
            scores
                .get(category)
                .filter(|score| !score.measures.is_empty())
                .map(|score| score.mean(|measures| measures.ndcg_10))
        };
        let [words, _, both] = &results;
        let (words_all, both_all) = (ndcg(words, "").unwrap(), ndcg(both, "").unwrap());
        if words_all < lexical || both_all < hybrid || both_all < words_all + gain {
            wrong.push(format!(
                "{set}: lexical {words_all:.4} (at least {lexical}), hybrid {both_all:.4} (at least {hybrid}, and {gain} more)"
            ));
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{table}\n{}", wrong.join("\n"));
}

const MODES: [Mode; 3] = [Mode::Lexical, Mode::Semantic, Mode::Hybrid];

/// What a set scored.
#[derive(Debug, Default)]
struct Score {
    measures: Vec<Measures>,
    leaks: usize,
    bad: usize,
    noise: Vec<f64>,
}

impl Score {
    fn mean(&self, value: fn(&Measures) -> f64) -> f64 {
        self.measures.iter().map(value).sum::<f64>() / self.measures.len().max(1) as f64
    }
}

/// The score of a set in a mode, by category; the empty category is all of it.
fn score_set(folder: &Path, mode: Mode) -> BTreeMap<String, Score> {
    let documents = lines(&folder.join("docs.jsonl"));
    let questions = lines(&folder.join("queries.jsonl"));
    let queries =
        parse(std::io::BufReader::new(std::fs::File::open(folder.join("queries.jsonl")).unwrap()))
            .unwrap();
    let by_id: HashMap<&str, &Value> =
        documents.iter().map(|doc| (doc["id"].as_str().unwrap(), doc)).collect();
    let mut roots: BTreeMap<String, (Root, Service)> = BTreeMap::new();
    let owners = documents.iter().chain(&questions).map(owner).collect::<BTreeSet<_>>();
    for owner_name in owners {
        let root = build(documents.iter().filter(|doc| owner(doc) == owner_name));
        let service = root.service();
        roots.insert(owner_name, (root, service));
    }
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    for (query, question) in queries.iter().zip(&questions) {
        let service = &roots[&owner(question)].1;
        let ranked = match ack_memory::internal::eval::run(
            service,
            std::slice::from_ref(query),
            &[mode],
            &mut || {},
        ) {
            Ok(report) => report.modes[0].runs[0].clone(),
            // An owner without memories has no scopes.
            Err(error)
                if matches!(error.code(), ErrorCode::NoScopes | ErrorCode::ScopeNotFound) =>
            {
                Run {
                    qid: query.qid.clone(),
                    ranked: Vec::new(),
                    measures: Measures::of(
                        &[],
                        &query.relevant.iter().map(String::as_str).collect(),
                    ),
                }
            }
            Err(error) => panic!("{question}: {error}"),
        };
        let distinct: BTreeSet<&str> = ranked.ranked.iter().map(String::as_str).collect();
        let unknown = ranked.ranked.iter().filter(|id| !by_id.contains_key(id.as_str())).count();
        let leaks = ranked
            .ranked
            .iter()
            .filter(|id| {
                query.forbidden.iter().flatten().any(|bad| bad == *id)
                    || by_id.get(id.as_str()).is_some_and(|doc| !visible(doc, question))
            })
            .count();
        let category = query.category.clone().unwrap_or_else(|| "-".to_owned());
        for name in [String::new(), category] {
            let score = scores.entry(name).or_default();
            score.leaks += leaks;
            score.bad += unknown + ranked.ranked.len() - distinct.len();
            match ranked.measures {
                Some(measures) => score.measures.push(measures),
                None => score.noise.push(ranked.ranked.len() as f64),
            }
        }
    }
    scores
}

/// A root with a scope for each project.
pub fn build<'a>(documents: impl Iterator<Item = &'a Value>) -> Root {
    let root = Root::new();
    let mut scopes: BTreeMap<String, String> = BTreeMap::new();
    for document in documents {
        let mut line = json!({ "status": "approved" });
        for key in "id title subtitle facts body tags project created_at superseded_by".split(' ') {
            if let Some(value) = document.get(key).filter(|value| !value.is_null()) {
                line[key] = value.clone();
            }
        }
        let text = scopes.entry(scope_name(document["project"].as_str().unwrap())).or_default();
        text.push_str(&line.to_string());
        text.push('\n');
    }
    for (scope, text) in scopes {
        let mut input = text.as_bytes();
        let now = "2026-11-21T00:00:00Z".parse().unwrap();
        run(root.scope_folder(&scope).join("memory.db"), &mut input, ImportOptions::default(), now)
            .unwrap();
    }
    root
}

/// Whether a document may answer a query: its project, owner, filter; and that nothing replaced it.
fn visible(document: &Value, query: &Value) -> bool {
    let mut projects = texts(&query["projects"]);
    projects.extend(query["project"].as_str().map(str::to_owned));
    let project = document["project"].as_str().unwrap().to_owned();
    let tags = texts(&document["tags"]);
    let filter = &query["filter"];
    let (all, any) = (texts(&filter["tags_all"]), texts(&filter["tags_any"]));
    let created = document["created_at"].as_str().unwrap_or_default();
    let owned = query["owner"].is_null()
        || (owner(document) == owner(query) && document["superseded_by"].is_null());
    (projects.is_empty() || projects.contains(&project))
        && owned
        && all.iter().all(|tag| tags.contains(tag))
        && (any.is_empty() || any.iter().any(|tag| tags.contains(tag)))
        && filter["since"].as_str().is_none_or(|since| created >= since)
        && filter["until"].as_str().is_none_or(|until| created < until)
}

fn owner(value: &Value) -> String {
    value["owner"].as_str().unwrap_or_default().to_owned()
}

fn scope_name(project: &str) -> String {
    project.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub fn lines(path: &Path) -> Vec<Value> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
