//! Retrieval on the development sets, and what its answers cost:
//!
//! ```sh
//! ACK_TEST_EVALS=DIR cargo bench --no-default-features --bench evals
//! ```
//!
//! First the order: nDCG@10, Recall@5 and the number of results for questions without an answer, in
//! hybrid, lexical and semantic retrieval. After `--`: `--save RUN` writes the result of each question to
//! a file, `--against RUN` compares with such a file, question by question (mean difference with a
//! 95 % interval), `--sets A,B` measures only these sets, `--misspelt` changes one letter in the
//! rarest word of each question, and `--encoder NAME` has `index` make tables first, which needs the
//! full build.
//!
//! Then the answers that the real server gives an agent with `max_tokens: 1000`: how many contain a
//! relevant memory, and their tokens by the more expensive of two public vocabularies, for agents
//! that see the text and for those that see the structure.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    dead_code,
    reason = "a program that measures and prints, with parts of another one"
)]

#[path = "latency/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ack_memory::Config;
use ack_memory::Service;
use ack_memory::api::Mode;
use ack_memory::internal::import::{self, ImportOptions};
use ack_memory::internal::{Inputs, Setting, eval};
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use self::server::Server;

const MAX_TOKENS: usize = 1_000;
const SETS: [&str; 11] = [
    "til-jb",
    "clippy",
    "solutions-open",
    "precisionmembench",
    "devbench",
    "notes-two",
    "faq",
    "so-code",
    "cosqa-dev",
    "flight-ml-dev",
    "flight-xl-dev",
];

/// nDCG@10 or, for a question without an answer, the number of results.
type Run = BTreeMap<String, f64>;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let after = |flag: &str| {
        let place = words.iter().position(|word| word == flag);
        place.and_then(|place| words.get(place + 1)).cloned()
    };
    let Some(folder) = std::env::var_os("ACK_TEST_EVALS").map(PathBuf::from) else {
        println!("ACK_TEST_EVALS names no folder of development sets");
        return;
    };
    let before: Run = after("--against").map_or_else(Run::new, |path| {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    });
    let chosen = after("--sets");
    let sets: Vec<&str> = SETS
        .into_iter()
        .filter(|set| {
            let is_named = |names: &String| names.split(',').any(|name| name == *set);
            chosen.as_ref().is_none_or(is_named)
        })
        .collect();
    let mut runs = Run::new();
    let only = |part: &str| after("--only").is_none_or(|chosen| chosen == part);
    if only("order") {
        println!("set, mode: questions, nDCG@10, Recall@5, results without an answer, difference");
        for set in &sets {
            let folder = folder.join("dev").join(set);
            let roots = roots(&folder);
            if let Some(encoder) = after("--encoder") {
                roots.values().for_each(|root| index(root.path(), &encoder));
            }
            for (mode, name) in
                [(Mode::Hybrid, "hybrid"), (Mode::Lexical, "lexical"), (Mode::Semantic, "semantic")]
            {
                order(
                    (&folder, &roots),
                    &format!("{set} {name}"),
                    mode,
                    &before,
                    &mut runs,
                    words.iter().any(|word| word == "--misspelt"),
                );
            }
        }
    }
    if only("answers") {
        println!(
            "set: answers that hold a relevant memory, tokens as text (of a result), as structure (of a result), of the cursor"
        );
        for set in &sets {
            answers(&folder.join("dev").join(set), set);
        }
    }
    if let Some(path) = after("--save") {
        std::fs::write(path, serde_json::to_string(&runs).unwrap()).unwrap();
    }
}

/// How well the questions of a set find what they are about.
fn order(
    (folder, roots): (&Path, &BTreeMap<String, tempfile::TempDir>),
    name: &str,
    mode: Mode,
    before: &Run,
    runs: &mut Run,
    is_misspelt: bool,
) {
    let mut questions = lines(&folder.join("queries.jsonl"));
    if is_misspelt {
        misspell(folder, &mut questions);
    }
    let text: Vec<String> = questions.iter().map(Value::to_string).collect();
    let queries = eval::parse(text.join("\n").as_bytes()).unwrap();
    let services: BTreeMap<&String, &Service> = roots
        .iter()
        .map(|(owner, root)| {
            let inputs = Inputs {
                root: Some(Setting::flag("--root", root.path().to_owned())),
                ..Inputs::default()
            };
            (owner, Service::new(Config::load(inputs).unwrap()).leak())
        })
        .collect();
    let (mut gains, mut recalls, mut noise) = (Vec::new(), Vec::new(), Vec::new());
    let (mut differences, mut noise_before) = (Vec::new(), Vec::new());
    for (query, question) in queries.iter().zip(&questions) {
        let Some(service) = services.get(&owner(question)).copied() else {
            continue;
        };
        let one = std::slice::from_ref(query);
        let Ok(report) = eval::run(service, one, &[mode], &mut || {}) else {
            continue;
        };
        let run = &report.modes[0].runs[0];
        let key = format!("{name} {}", query.qid);
        let value = match run.measures {
            Some(measures) => {
                gains.push(measures.ndcg_10);
                recalls.push(measures.recall_5);
                differences.extend(before.get(&key).map(|old| measures.ndcg_10 - old));
                measures.ndcg_10
            }
            None => {
                noise.push(run.ranked.len() as f64);
                noise_before.extend(before.get(&key));
                run.ranked.len() as f64
            }
        };
        runs.insert(key, value);
    }
    let change = eval::Estimate::of(&differences);
    let changed = match differences.is_empty() {
        true => String::new(),
        false => format!("  {:+.4} ± {:.4}", change.mean, change.margin),
    };
    let unanswered = match noise.is_empty() {
        true => String::new(),
        false => format!("  {:.2} ({:.2})", mean(&noise), mean(&noise_before)),
    };
    println!(
        "{name:<26} {:>4}  {:.4}  {:.4}{unanswered}{changed}",
        gains.len(),
        mean(&gains),
        mean(&recalls)
    );
    for service in services.into_values() {
        service.close();
    }
}

/// Changes a letter in the rarest word of each question, of those with five letters or more that
/// some document contains.
fn misspell(folder: &Path, questions: &mut [Value]) {
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphabetic());
        words.map(str::to_ascii_lowercase).collect()
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for document in lines(&folder.join("docs.jsonl")) {
        for word in words(&document.to_string()) {
            *counts.entry(word).or_default() += 1;
        }
    }
    for (number, question) in questions.iter_mut().enumerate() {
        let text = question["text"].as_str().unwrap().to_owned();
        let rarest = words(&text)
            .into_iter()
            .filter(|word| word.len() >= 5 && counts.contains_key(word))
            .min_by_key(|word| counts.get(word).copied());
        let Some(word) = rarest else { continue };
        let Some(start) = text.to_ascii_lowercase().find(&word) else {
            continue;
        };
        let at = start + 1 + number * 7 % (word.len() - 2);
        let mut letters: Vec<char> = text.chars().collect();
        if letters.len() != text.len() {
            continue;
        }
        match number % 4 {
            0 => letters.swap(at, at + 1),
            1 => drop(letters.remove(at)),
            2 => letters.insert(at, char::from(b'a' + (number % 26) as u8)),
            _ => letters[at] = char::from(b'a' + (number % 26) as u8),
        }
        if letters.iter().collect::<String>() == text {
            letters.remove(at);
        }
        question["text"] = letters.into_iter().collect::<String>().into();
    }
}

/// What the answers of a set contain and cost.
fn answers(folder: &Path, set: &str) {
    let questions = lines(&folder.join("queries.jsonl"));
    let roots = roots(folder);
    let mut servers: BTreeMap<&String, Server> = roots
        .iter()
        .map(|(owner, root)| {
            let mut server = Server::start(root.path());
            server.handshake();
            (owner, server)
        })
        .collect();
    let (mut found, mut ranks) = ([Vec::new(), Vec::new()], Vec::new());
    let mut sums: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for question in questions {
        let relevant: Vec<&str> = question["relevant"]
            .as_array()
            .map_or_else(Vec::new, |ids| ids.iter().filter_map(Value::as_str).collect());
        let Some(server) = servers.get_mut(&owner(&question)) else {
            continue;
        };
        let mut projects: Vec<&Value> =
            question["projects"].as_array().into_iter().flatten().collect();
        projects.extend(question.get("project").filter(|name| name.is_string()));
        if relevant.is_empty() || projects.len() > 1 || !question["filter"].is_null() {
            continue;
        }
        let mut arguments = json!({ "query": question["text"], "max_tokens": MAX_TOKENS });
        if let Some(project) = projects.first().and_then(|name| name.as_str()) {
            arguments["scope"] = scope_name(project).into();
        }
        let call = json!({ "name": "query_memories", "arguments": arguments });
        let reply = server.request("tools/call", call);
        let result = &reply["result"];
        if result["isError"] == true {
            continue;
        }
        let (text, structure) =
            (result["content"][0]["text"].as_str().unwrap(), &result["structuredContent"]);
        let hits = structure["results"].as_array().unwrap();
        let ids: Vec<&str> = hits.iter().filter_map(|hit| hit["id"].as_str()).collect();
        let place = ids.iter().position(|id| relevant.contains(id));
        found[0].push(f64::from(u8::from(place.is_some())));
        found[1].push(f64::from(u8::from(relevant.iter().any(|id| text.contains(id)))));
        ranks.extend(place.map(|place| place as f64 + 1.0));
        let mut add = |name, value: usize| sums.entry(name).or_default().push(value as f64);
        let items: usize = hits.iter().map(|hit| cost(&hit.to_string())).sum();
        add("results", hits.len());
        add("structure", cost(&structure.to_string()));
        add("items", items);
        add("estimate", ack_memory::api::text::tokens(&structure.to_string()));
        add("text estimate", ack_memory::api::text::tokens(text));
        add("text", cost(text));
        let listed: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.starts_with("1. "))
            .take_while(|line| !line.is_empty())
            .collect();
        add("text items", cost(&listed.join("\n")));
        if let Some(cursor) = structure["next_cursor"].as_str() {
            add("cursor", cost(&format!(",\"next_cursor\":\"{cursor}\"")));
        }
    }
    let of = |name: &str| sums.get(name).map_or(0.0, |values| mean(values));
    println!(
        "{set:<18} {:>4} answers  {:.1} %  {:.1} results  text {:.0} ({:.0} each)  structure {:.0} ({:.0} each)  cursor {:.0}  estimate / count {:.2}, text {:.2}",
        found[0].len(),
        100.0 * mean(&found[0]),
        of("results"),
        of("text"),
        of("text items") / of("results"),
        of("structure"),
        of("items") / of("results"),
        of("cursor"),
        of("estimate") / of("structure"),
        of("text estimate") / of("text"),
    );
}

/// How many tokens a text has, in the more expensive of two vocabularies.
fn cost(text: &str) -> usize {
    use std::sync::OnceLock;
    static VOCABULARIES: OnceLock<[CoreBPE; 2]> = OnceLock::new();
    let known = VOCABULARIES
        .get_or_init(|| [tiktoken_rs::o200k_base().unwrap(), tiktoken_rs::cl100k_base().unwrap()]);
    let counts = known.iter().map(|known| known.encode_ordinary(text).len());
    counts.max().unwrap()
}

/// Makes the vector tables of a root.
fn index(root: &Path, encoder: &str) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ack-memory"));
    command.arg("--root").arg(root);
    command.args(["index", "--all", "--encoder", encoder]);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// The memories of each owner in a root of its own, with a scope for each project.
fn roots(folder: &Path) -> BTreeMap<String, tempfile::TempDir> {
    let documents = lines(&folder.join("docs.jsonl"));
    let owners: BTreeSet<String> = documents.iter().map(owner).collect();
    let roots = owners.into_iter().map(|name| {
        let root = tempfile::tempdir().unwrap();
        let mut scopes: BTreeMap<String, String> = BTreeMap::new();
        for document in documents.iter().filter(|document| owner(document) == name) {
            let keys = [
                "id",
                "title",
                "subtitle",
                "facts",
                "body",
                "tags",
                "project",
                "created_at",
                "superseded_by",
            ];
            let mut line = json!({ "status": "approved" });
            for key in keys {
                if let Some(value) = document.get(key).filter(|value| !value.is_null()) {
                    line[key] = value.clone();
                }
            }
            if line["title"].as_str().is_none_or(str::is_empty) {
                let body = document["body"].as_str().unwrap();
                line["title"] = body.trim_start().lines().next().into();
            }
            let scope = scope_name(document["project"].as_str().unwrap());
            let text = scopes.entry(scope).or_default();
            *text += &format!("{line}\n");
        }
        for (scope, text) in scopes {
            let path = root.path().join("scopes").join(&scope).join("memory.db");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let now = "2026-11-21T00:00:00Z".parse().unwrap();
            import::run(path, &mut text.as_bytes(), ImportOptions::default(), now).unwrap();
        }
        (name, root)
    });
    roots.collect()
}

fn owner(value: &Value) -> String {
    value["owner"].as_str().unwrap_or_default().to_owned()
}

fn scope_name(project: &str) -> String {
    let fits = |c: char| if c.is_alphanumeric() { c } else { '-' };
    project.chars().map(fits).collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
