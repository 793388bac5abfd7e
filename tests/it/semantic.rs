//! The encoder against its references, and what retrieval by meaning does: modes, `like`,
//! `related`, `expect`.

use ack_api::QueryRequest;
use ack_memory::Service;
use ack_search::encoder::Encoder;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::query::bulk;
use crate::support::{Root, memory, result_ids};

const WORDPIECE: &str = include_str!("../../encoder/reference/wordpiece.json");
const VECTORS: &str = include_str!("../../encoder/reference/vectors.json");

fn cases(text: &str) -> Vec<Value> {
    serde_json::from_str::<Value>(text)
        .unwrap()
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn text_is_tokenized_exactly_as_by_the_teacher() {
    let vocabulary = Encoder::embedded().unwrap().vocabulary();
    let mut wrong = Vec::new();
    let all = cases(WORDPIECE);
    // The teacher's tokenizer takes a literal `[CLS]` in a text for its own mark; here it is text
    // like any other.
    let plain: Vec<&Value> = all
        .iter()
        .filter(|case| case["special"] != json!(true))
        .collect();
    assert!(plain.len() > 200, "{}", plain.len());
    for case in plain {
        let text = case["text"].as_str().unwrap();
        let mut tokens = Vec::new();
        vocabulary.tokenize(text, &mut tokens);
        let expected: Vec<u64> = case["ids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_u64().unwrap())
            .collect();
        let found: Vec<u64> = tokens.iter().map(|id| u64::from(*id)).collect();
        if found != expected {
            wrong.push(format!("{text:?}: {found:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_encoder_reads_the_parts_of_a_symbol_in_camel_case_too() {
    let encoder = Encoder::embedded().unwrap();
    for (symbol, words) in [
        ("maxRetryCount", "maxretrycount max retry count"),
        ("HTTPServer2", "httpserver2 http server2"),
        ("see Lock.fileGuard()", "see lock.fileguard file guard()"),
        // Words that the encoder knows as a whole, and words in one case.
        ("YouTube", "youtube"),
        ("MAXIMUM", "maximum"),
        ("IDs", "ids"),
        ("GrößeMax", "größemax"),
    ] {
        // The norm says how well the words are known, and `maxretrycount` is none.
        let unit = |text: &str| {
            let vector = encoder.query(text).unwrap();
            let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
            let direction: Vec<f32> = vector.iter().map(|value| value / norm).collect();
            (direction, norm)
        };
        let ((symbol_direction, symbol_norm), (direction, norm)) = (unit(symbol), unit(words));
        let mut pairs = symbol_direction.iter().zip(&direction);
        assert!(
            pairs.all(|(one, other)| (one - other).abs() < 1e-6),
            "{symbol}"
        );
        assert!(
            symbol_norm >= norm - 1e-6,
            "{symbol}: {symbol_norm}, {norm}"
        );
    }
}

#[test]
fn gibberish_is_near_nothing() {
    let root = Root::samples();
    let service = root.service();
    let found = |query: &str| {
        let answer = call(&service, "query_memories", json!({ "query": query })).unwrap();
        answer["results"].as_array().unwrap().len()
    };
    for query in ["zzzzqqqq", "xkqj", "the sdkfjh", "qwrtp zxcvb"] {
        assert_eq!(found(query), 0, "{query}");
    }
    for query in ["zzzzqqqq deadlock", "waiting for each other"] {
        assert!(found(query) > 0, "{query}");
    }
}

#[test]
fn vectors_are_those_of_the_pipeline_that_made_the_artifact() {
    let encoder = Encoder::embedded().unwrap();
    for case in cases(VECTORS) {
        let text = case["text"].as_str().unwrap();
        let Some(components) = case["vector"].as_array() else {
            assert!(encoder.query(text).is_none(), "{text:?} has no vector");
            continue;
        };
        let expected: Vec<f32> = components
            .iter()
            .map(|value| value.as_f64().unwrap() as f32)
            .collect();
        assert_eq!(expected.len(), encoder.dimension());
        let mut tokens = Vec::new();
        encoder.english_tokens(text, &mut tokens);
        // A query is truncated, a memory is not; the references are whole texts.
        let Some(vector) = encoder.encode_english(&tokens) else {
            assert!(
                expected.iter().all(|component| *component == 0.0),
                "{text:?} has no vector"
            );
            continue;
        };
        let far = vector
            .iter()
            .zip(&expected)
            .map(|(a, b)| (a - b).abs())
            .fold(0f32, f32::max);
        assert!(far < 2e-5, "{far} for {text:?}");
    }
}

#[test]
fn a_text_without_a_known_word_has_no_vector() {
    let encoder = Encoder::embedded().unwrap();
    for text in ["", "   ", "\u{1f980}\u{1f980}"] {
        assert!(encoder.query(text).is_none(), "{text:?}");
    }
}

#[test]
fn a_text_is_weighted_by_its_share_of_known_words() {
    let encoder = Encoder::embedded().unwrap();
    for (text, share) in [
        ("the database is locked", 1.0),
        ("err_pnpm_outdated: naïve, at 5 o'clock!", 1.0),
        ("база данных database заблокирована", 0.25 / 0.8),
        ("数据库 database locked 锁", 1.0 / 3.0 / 0.8),
        ("the Миша tool writes five files here", 1.0),
    ] {
        let vector = encoder.query(text).unwrap();
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        assert!((norm - share).abs() < 1e-3, "{text}: {norm}");
    }
}

#[test]
fn a_note_in_a_script_that_the_encoder_does_not_know_is_near_by_its_words_only() {
    let root = Root::new();
    let notes = [
        memory(
            "lock",
            "Another writer holds SQLite's write lock",
            json!({}),
        ),
        memory(
            "weekly",
            "Отчёт за неделю: перенесли database на другой диск",
            json!({}),
        ),
        memory(
            "weekly-2",
            "Отчёт за неделю: перенесли database на новый диск",
            json!({}),
        ),
    ];
    bulk(&root, "alpha", &notes);
    let service = root.service();
    let asked = json!({ "query": "the database is locked", "mode": "semantic", "limit": 1 });
    assert_eq!(result_ids(&query(&service, asked)), ["lock"]);
    let russian = query(&service, json!({ "query": "перенесли диск" }));
    assert_eq!(result_ids(&russian)[0], "weekly", "words find it as before");
}

/// Memories on four subjects, one of them twice in other words, one staged.
fn root() -> Root {
    let root = Root::new();
    bulk(
        &root,
        "alpha",
        &[
            memory(
                "pool",
                "Connection pool is exhausted under load",
                json!({ "facts": ["Raise the number of database connections"], "type": "bugfix" }),
            ),
            memory(
                "deadlock",
                "Two transactions wait for each other's row locks",
                json!({ "facts": ["Lock rows in the same order"] }),
            ),
            memory(
                "css",
                "Flex children overflow their container",
                json!({ "facts": ["Set min-width to zero"] }),
            ),
            memory(
                "staged",
                "Postgres refuses new sessions when too many are open",
                json!({ "status": "staging" }),
            ),
        ],
    );
    bulk(
        &root,
        "beta",
        &[memory(
            "limit",
            "Postgres runs out of client slots",
            json!({ "facts": ["max_connections is reached"] }),
        )],
    );
    root
}

fn query(service: &Service, arguments: Value) -> Value {
    call(service, "query_memories", arguments.clone())
        .unwrap_or_else(|error| panic!("{arguments}: {error}"))
}

#[test]
fn semantic_search_finds_memories_without_shared_words_and_modes_use_their_legs() {
    let root = root();
    let service = root.service();
    let question = "the server has no free database handles left";
    let semantic = query(&service, json!({ "query": question, "mode": "semantic" }));
    assert!(
        ["pool", "limit"].contains(&result_ids(&semantic)[0].as_str()),
        "{semantic:#}"
    );
    assert_eq!(
        result_ids(&semantic).len(),
        4,
        "every memory has a vector and may be shown: {semantic:#}"
    );
    let lexical = query(
        &service,
        json!({ "query": "overflowing boxes", "mode": "lexical", "explain": true }),
    );
    assert_eq!(result_ids(&lexical), ["css"]);
    assert_eq!(
        lexical["results"][0]["explanation"]["legs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let unknown = query(
        &service,
        json!({ "query": "\u{1f980}", "mode": "semantic" }),
    );
    assert!(result_ids(&unknown).is_empty());
    let kinds = [&unknown["notes"][0]["kind"], &unknown["notes"][1]["kind"]];
    assert_eq!(kinds, ["no_word_matches", "no_semantic_leg"], "{unknown:#}");
}

#[test]
fn if_nothing_is_near_the_nearest_are_shown_and_expect_explains_the_others() {
    let root = Root::new();
    let titles = [
        "Coffee",
        "Bicycle",
        "Trains",
        "Painting",
        "Mountains",
        "Soup",
    ];
    let memories: Vec<Value> = titles
        .iter()
        .map(|title| memory(&title.to_lowercase(), title, json!({})))
        .collect();
    root.store("alpha", &memories);
    let service = root.service();
    let answer = query(&service, json!({ "query": "kitchen" }));
    let shown = result_ids(&answer);
    assert_eq!(shown, ["soup", "coffee"], "{answer:#}");
    assert_eq!(answer["notes"][0]["kind"], "no_word_matches", "{answer:#}");
    let answer = query(
        &service,
        json!({ "query": "kitchen", "expect": "painting" }),
    );
    let message = answer["expected"]["message"].as_str().unwrap();
    assert!(message.contains("not among the few nearest"), "{message}");
    // What has nothing to do with the question is not shown at all.
    let nothing = query(&service, json!({ "query": "compiler lifetimes" }));
    assert!(result_ids(&nothing).is_empty(), "{nothing:#}");
    // Next to a memory with a matching word, the floor keeps it out.
    let answer = query(
        &service,
        json!({ "query": "coffee lifetimes", "expect": "trains" }),
    );
    let message = answer["expected"]["message"].as_str().unwrap();
    assert!(message.contains("needs"), "{message}");
}

#[test]
fn a_filter_costs_no_result_that_is_eligible_in_any_mode() {
    let root = Root::new();
    let memories: Vec<Value> = (0..400)
        .map(|n| {
            let kind = if n % 50 == 0 { "decision" } else { "bugfix" };
            memory(
                &format!("m{n:03}"),
                &format!("Cache entry {n} is evicted too early by the proxy"),
                json!({ "type": kind, "facts": [format!("case {n}")] }),
            )
        })
        .collect();
    bulk(&root, "alpha", &memories);
    let service = root.service();
    for mode in ["lexical", "semantic", "hybrid"] {
        let answer = query(
            &service,
            json!({ "query": "proxy evicts cache entry", "mode": mode, "type": "decision", "limit": 20, "max_tokens": 20_000 }),
        );
        let also: usize = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["also"].as_array().map_or(0, Vec::len))
            .sum();
        assert_eq!(result_ids(&answer).len() + also, 8, "{mode}: {answer:#}");
        let answer = query(
            &service,
            json!({ "query": "proxy evicts cache entry", "mode": mode, "type": "bugfix", "limit": 50, "max_tokens": 20_000 }),
        );
        let also: usize = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["also"].as_array().map_or(0, Vec::len))
            .sum();
        assert!(
            result_ids(&answer).len() + also >= 50 || answer["next_cursor"].is_string(),
            "{mode}: {}",
            result_ids(&answer).len()
        );
    }
}

#[test]
fn like_and_related_show_neighbours_that_may_be_shown_and_never_the_memory_itself() {
    let root = root();
    let service = root.service();
    let like = query(&service, json!({ "like": "pool", "limit": 2 }));
    assert_eq!(result_ids(&like)[0], "limit", "{like:#}");
    assert!(
        !result_ids(&like).contains(&"pool".to_owned())
            && !result_ids(&like).contains(&"staged".to_owned())
    );
    // A curator asks what a staged memory resembles among the approved ones.
    let staged = query(&service, json!({ "like": "staged" }));
    assert_eq!(result_ids(&staged)[0], "limit", "{staged:#}");
    assert!(!result_ids(&staged).contains(&"staged".to_owned()));
    let all = query(&service, json!({ "like": "limit", "status": "all" }));
    assert!(result_ids(&all).contains(&"staged".to_owned()));
    let both = query(&service, json!({ "like": "pool", "query": "flex" }));
    assert!(result_ids(&both).contains(&"css".to_owned()));
    // An agent that may not see it does not learn what is near it.
    let request = QueryRequest {
        like: Some("staged".to_owned()),
        by_agent: true,
        ..QueryRequest::default()
    };
    let withheld = service.query_memories(&request).unwrap_err();
    assert_eq!(withheld.code(), "memory_not_served");
    // Nothing far away is shown, and nothing far away counts as hidden.
    let near_css = query(&service, json!({ "like": "css" }));
    assert_eq!(result_ids(&near_css), Vec::<&str>::new(), "{near_css:#}");
    assert!(near_css["hidden"].is_null(), "{near_css:#}");
    let missing = call(&service, "query_memories", json!({ "like": "pol" })).unwrap_err();
    assert_eq!(missing.code(), "memory_not_found");
    assert_eq!(missing.body().nearest, ["pool"]);
    let detail = call(
        &service,
        "get_memory",
        json!({ "id": "pool", "include": ["related"] }),
    )
    .unwrap();
    let related = detail["related"].as_array().unwrap();
    assert_eq!(
        (related[0]["id"].as_str(), related[0]["scope"].as_str()),
        (Some("limit"), Some("beta")),
        "{detail:#}"
    );
    assert!(
        related
            .iter()
            .all(|entry| entry["id"] != "staged" && entry["id"] != "pool")
    );
    assert!(related[0]["similarity"].as_f64().unwrap() > 0.2);
}

#[test]
fn expect_reports_the_stage_that_dropped_a_memory() {
    let root = root();
    bulk(
        &root,
        "alpha",
        &[
            memory(
                "gone",
                "Row locks are waited for",
                json!({ "status": "rejected" }),
            ),
            memory(
                "older",
                "Row locks, an older note",
                json!({ "superseded_by": "deadlock" }),
            ),
        ],
    );
    let service = root.service();
    let stage = |id: &str, rest: Value| {
        let mut arguments = json!({ "query": "row locks", "expect": id });
        rest.as_object()
            .unwrap()
            .iter()
            .for_each(|(key, value)| arguments[key] = value.clone());
        let answer = query(&service, arguments);
        assert_eq!(answer["expected"]["id"], id);
        answer["expected"]["stage"].as_str().unwrap().to_owned()
    };
    assert_eq!(stage("deadlock", json!({})), "returned");
    assert_eq!(stage("nobody", json!({})), "not_found");
    assert_eq!(stage("staged", json!({})), "hidden_by_status");
    assert_eq!(
        stage("gone", json!({ "status": "all" })),
        "hidden_by_status"
    );
    assert_eq!(stage("older", json!({})), "superseded");
    assert_eq!(stage("deadlock", json!({ "type": "bugfix" })), "filtered");
    assert_eq!(stage("css", json!({ "mode": "lexical" })), "not_retrieved");
    assert_eq!(
        stage("css", json!({ "mode": "semantic", "limit": 1 })),
        "behind_page"
    );
}
