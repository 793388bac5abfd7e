//! Symbols of code, asked for in other spellings: with spaces, or with other separators.

use serde_json::json;

use crate::query::bulk;
use crate::support::{Ask, Root, memory, result_ids, titled};

/// Symbols as a memory writes them, each with three other ways to write it.
const SYMBOLS: &str = "\
parse_config | parse config | parseConfig | parse-config
HttpClient::send | http client send | HttpClient.send | http_client::send
--no-cache | no cache | no_cache | noCache
E0308 | E 0308 | e0308 | error[E-0308]
src/store/open.rs | store open.rs | store::open | src\\store\\open.rs
maxRetryCount | max retry count | max_retry_count | max-retry-count
utf-8 | utf8 | UTF 8 | utf_8
tokio::select! | tokio select | tokio.select | tokio_select
read_to_string | read to string | readToString | ReadToString
useLayoutEffect | use layout effect | use_layout_effect | UseLayoutEffect
cargo-deny | cargo deny | cargo_deny | cargoDeny
SIGTERM_TIMEOUT | sigterm timeout | sigtermTimeout | sigterm-timeout
user.session_id | session id | sessionId | user.sessionId
docker-compose.override.yml | compose override | docker compose override | compose.override
is_empty | is empty | isEmpty | IsEmpty
LockFileGuard | lock file guard | lock_file_guard | lockfile guard
http/2 | http2 | HTTP 2 | http-2
order_by_clause | order by clause | orderByClause | OrderBy clause
x-request-id | request id | requestId | X_REQUEST_ID
WorkerPool#drain | worker pool drain | WorkerPool.drain | worker_pool::drain";

fn symbols() -> Vec<Vec<&'static str>> {
    SYMBOLS.lines().map(|line| line.split(" | ").collect()).collect()
}

/// The parts of a symbol, in lower case.
fn parts(symbol: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in symbol.chars() {
        if c.is_uppercase() && spaced.ends_with(char::is_lowercase) {
            spaced.push(' ');
        }
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    spaced.split_whitespace().map(str::to_lowercase).collect()
}

/// Memories with one symbol each, and others that have its words, but not together.
fn store() -> Root {
    let root = Root::new();
    let mut memories = Vec::new();
    let mut add = |id: String, title: String, story: String| {
        memories.push(memory(&id, &title, json!({ "narrative": story })));
    };
    for (number, ways) in symbols().iter().enumerate() {
        let symbol = ways[0];
        add(
            format!("symbol-{number:02}"),
            format!("What broke the deployment of week {number}0"),
            format!("It came from {symbol}. Nobody had looked at it."),
        );
        let parts = parts(symbol);
        if parts.len() < 2 {
            continue;
        }
        let apart = parts.join(" matters in some cases, while in others we look at ");
        add(
            format!("apart-{number:02}"),
            format!("Notes on the incident of week {number}0"),
            format!("First {apart}. Nobody had looked at it."),
        );
        for part in parts {
            add(
                format!("sibling-{number:02}-{part}"),
                format!("Names around {part}, week {number}0"),
                format!("Both {part}_helper and new_{part} were renamed."),
            );
        }
    }
    bulk(&root, "alpha", &memories);
    root
}

/// The questions whose memory is not the first result, each with its position.
fn missed(mode: &str) -> Vec<(String, Option<usize>)> {
    let root = store();
    let service = root.service();
    let mut missed = Vec::new();
    for (number, ways) in symbols().iter().enumerate() {
        let wanted = format!("symbol-{number:02}");
        for way in &ways[1..] {
            let question = format!("why does {way} fail");
            let arguments = json!({ "query": question, "limit": 10, "mode": mode });
            let found = result_ids(&service.find(arguments));
            let place = found.iter().position(|id| *id == wanted);
            if place != Some(0) {
                missed.push((format!("`{}` as `{way}`", ways[0]), place));
            }
        }
    }
    missed
}

#[test]
fn words_find_a_symbol_however_its_parts_are_joined() {
    let missed = missed("lexical");
    assert!(missed.len() <= 5, "{missed:#?}");
}

#[test]
fn words_and_meaning_find_a_symbol_among_the_first_three() {
    let missed = missed("hybrid");
    let is_far = |place: &Option<usize>| place.is_none_or(|place| place > 2);
    assert!(!missed.iter().any(|(_, place)| is_far(place)), "{missed:#?}");
    assert!(missed.len() <= 5, "{missed:#?}");
}

#[test]
fn an_answer_tells_the_symbol_that_matches() {
    let root = Root::new();
    let story = json!({ "narrative": "See parse_config, then stop." });
    root.store("alpha", &[memory("a", "Settings", story), titled("b", "Other")]);
    let answer = root.service().find(json!({ "query": "parseconfig", "explain": true }));
    let first = &answer["results"][0];
    assert_eq!(first["id"], "a");
    assert_contains!(first["why"].as_str().unwrap(), "parse_config");
}

/// Operators, each with a memory about it. The memories have the same words otherwise.
const OPERATORS: [&str; 12] =
    ["&&", "||", "??", "?.", "=>", "->", "|>", "<=>", "2>&1", "$?", "<<<", ":="];

#[test]
fn an_operator_finds_the_memory_about_it() {
    let root = Root::new();
    let about = |operator: &str| json!({ "narrative": format!("Mind the `{operator}` operator.") });
    let memories: Vec<_> = OPERATORS
        .iter()
        .enumerate()
        .map(|(number, operator)| memory(&format!("op-{number:02}"), "A trap", about(operator)))
        .collect();
    bulk(&root, "alpha", &memories);
    let service = root.service();
    for mode in ["lexical", "hybrid"] {
        for (number, operator) in OPERATORS.iter().enumerate() {
            for question in [
                (*operator).to_owned(),
                format!("what does {operator} do?"),
                format!("the operator \"{operator}\""),
            ] {
                let arguments = json!({ "query": question, "mode": mode, "limit": 3 });
                let found = result_ids(&service.find(arguments));
                assert_eq!(found[0], format!("op-{number:02}"), "{mode}: {question}");
            }
        }
    }
}
