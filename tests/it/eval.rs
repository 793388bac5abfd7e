//! Retrieval quality on development sets that lie outside the repository (`ACK_TEST_EVALS`): documents become approved
//! memories, each project a scope, and each query asks the service what an agent would ask.
//!
//! A query that names one project asks that scope. One that names several asks each scope for a page and takes the pages
//! in turn, rank by rank, because scores of different answers do not compare. A query that names none asks without a
//! scope. The documents of different owners lie in different roots, as those of different people do.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use ack_memory::api::{MatchTags, QueryRequest};
use ack_memory::import::{Options, run};
use ack_memory::service::Service;
use serde_json::{Value, json};

use crate::support::{Root, outside};

/// What a set scored.
#[derive(Debug, Default)]
struct Score {
    ndcg: f64,
    recall: f64,
    reciprocal: f64,
    answered: usize,
    leaks: usize,
    bad: usize,
    noise: f64,
    unanswerable: usize,
    slowest: f64,
}

#[test]
fn retrieval_reaches_the_keyword_baseline_on_the_development_sets() {
    let Some(folder) = outside("ACK_TEST_EVALS") else { return };
    let mut table = format!(
        "\n{:<44} {:>5} {:>8} {:>8} {:>8} {:>5} {:>4} {:>6} {:>7}\n",
        "set / category", "n", "nDCG@10", "R@5", "MRR@10", "leak", "bad", "noise", "max ms"
    );
    let mut wrong = Vec::new();
    for (set, least) in [
        ("til-jb", 0.795),
        ("clippy", 0.861),
        ("solutions-open", 0.898),
        ("precisionmembench", 0.0),
        ("devbench", 0.0),
    ] {
        let scores = score_set(&folder.join("dev").join(set));
        for (category, score) in &scores {
            let name = if category.is_empty() {
                set.to_owned()
            } else {
                format!("  {category}")
            };
            let n = score.answered.max(1) as f64;
            let _ = writeln!(
                table,
                "{name:<44} {:>5} {:>8.4} {:>8.4} {:>8.4} {:>5} {:>4} {:>6.2} {:>7.1}",
                score.answered,
                score.ndcg / n,
                score.recall / n,
                score.reciprocal / n,
                score.leaks,
                score.bad,
                score.noise / score.unanswerable.max(1) as f64,
                score.slowest
            );
        }
        let all = &scores[""];
        let ndcg = all.ndcg / all.answered.max(1) as f64;
        if ndcg < least || all.leaks > 0 || all.bad > 0 {
            wrong.push(format!(
                "{set}: nDCG@10 {ndcg:.4} (at least {least}), leak {}, bad {}",
                all.leaks, all.bad
            ));
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{table}\n{}", wrong.join("\n"));
}

/// The score of a set, by category; the empty category is all of it.
fn score_set(folder: &Path) -> BTreeMap<String, Score> {
    let documents = lines(&folder.join("docs.jsonl"));
    let queries = lines(&folder.join("queries.jsonl"));
    let by_id: HashMap<&str, &Value> = documents.iter().map(|doc| (doc["id"].as_str().unwrap(), doc)).collect();
    let mut roots: BTreeMap<String, (Root, Service)> = BTreeMap::new();
    let owners = documents.iter().chain(&queries).map(owner).collect::<BTreeSet<_>>();
    for owner_name in owners {
        let root = build(documents.iter().filter(|doc| owner(doc) == owner_name));
        let service = root.service();
        roots.insert(owner_name, (root, service));
    }
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    for query in &queries {
        let service = &roots[&owner(query)].1;
        let started = Instant::now();
        let ranked = ask(service, query);
        let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
        let distinct: BTreeSet<&str> = ranked.iter().map(String::as_str).collect();
        let unknown = ranked.iter().filter(|id| !by_id.contains_key(id.as_str())).count();
        let forbidden = texts(&query["forbidden"]);
        let leaks = ranked
            .iter()
            .filter(|id| forbidden.contains(*id) || by_id.get(id.as_str()).is_some_and(|doc| !visible(doc, query)))
            .count();
        let relevant: BTreeSet<String> = texts(&query["relevant"]).into_iter().collect();
        let category = query["category"].as_str().unwrap_or("-").to_owned();
        for name in [String::new(), category] {
            let score = scores.entry(name).or_default();
            score.leaks += leaks;
            score.bad += unknown + ranked.len() - distinct.len();
            score.slowest = score.slowest.max(milliseconds);
            if relevant.is_empty() {
                score.noise += ranked.len().min(10) as f64;
                score.unanswerable += 1;
                continue;
            }
            let hits: Vec<usize> = (0..ranked.len()).filter(|place| relevant.contains(&ranked[*place])).collect();
            let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
            let ideal: f64 = (0..relevant.len().min(10)).map(gain).sum();
            score.answered += 1;
            score.ndcg += hits.iter().filter(|place| **place < 10).map(|place| gain(*place)).sum::<f64>() / ideal;
            score.recall += hits.iter().filter(|place| **place < 5).count() as f64 / relevant.len() as f64;
            score.reciprocal += hits
                .first()
                .filter(|place| **place < 10)
                .map_or(0.0, |place| 1.0 / (*place as f64 + 1.0));
        }
    }
    scores
}

/// What an agent would ask, and the ids it would get.
fn ask(service: &Service, query: &Value) -> Vec<String> {
    let filter = &query["filter"];
    let (tags, match_tags) = match (&filter["tags_all"], &filter["tags_any"]) {
        (Value::Null, Value::Null) => (None, None),
        (Value::Null, any) => (Some(texts(any)), Some(MatchTags::Any)),
        (all, _) => (Some(texts(all)), Some(MatchTags::All)),
    };
    let request = QueryRequest {
        query: Some(query["text"].as_str().unwrap().to_owned()),
        tags,
        match_tags,
        since: filter["since"].as_str().map(|day| day[..10].to_owned()),
        // The set's `until` is the first day that is out, ours the last that is in.
        until: filter["until"].as_str().map(day_before),
        limit: Some(10),
        ..QueryRequest::default()
    };
    let mut projects = texts(&query["projects"]);
    projects.extend(query["project"].as_str().map(str::to_owned));
    let page = |scope: Option<String>| -> Vec<String> {
        let request = QueryRequest { scope, ..request.clone() };
        match service.query_memories(&request) {
            Ok(answer) => {
                assert!(answer.results.len() <= 10, "more results than `limit`");
                answer.results.into_iter().map(|hit| hit.id).collect()
            }
            // An owner without memories has no scopes.
            Err(error) if matches!(error.code(), "no_scopes" | "scope_not_found") => Vec::new(),
            Err(error) => panic!("{query}: {error}"),
        }
    };
    if projects.is_empty() {
        return page(None);
    }
    let pages: Vec<Vec<String>> = projects.iter().map(|project| page(Some(scope_name(project)))).collect();
    let longest = pages.iter().map(Vec::len).max().unwrap_or_default();
    (0..longest)
        .flat_map(|rank| pages.iter().filter_map(move |page| page.get(rank).cloned()))
        .take(10)
        .collect()
}

/// A root with a scope for each project.
fn build<'a>(documents: impl Iterator<Item = &'a Value>) -> Root {
    let root = Root::new();
    let mut scopes: BTreeMap<String, String> = BTreeMap::new();
    for document in documents {
        let mut line = json!({ "status": "approved" });
        for key in [
            "id",
            "title",
            "subtitle",
            "facts",
            "body",
            "tags",
            "project",
            "created_at",
            "superseded_by",
        ] {
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
        run(
            root.scope_folder(&scope).join("memory.db"),
            &mut input,
            Options::default(),
            now,
            &mut |_| {},
            &mut |refused| panic!("{scope}: {refused:?}"),
        )
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
    let owned = query["owner"].is_null() || (owner(document) == owner(query) && document["superseded_by"].is_null());
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

fn day_before(day: &str) -> String {
    let day: jiff::civil::Date = day[..10].parse().unwrap();
    day.yesterday().unwrap().to_string()
}

fn texts(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
