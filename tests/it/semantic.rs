//! The encoder against its references, and what retrieval by meaning does: modes, `like`,
//! `related`, `expect`.

use ack_search::encoder::{Encoder, Token};
use serde_json::{Value, json};

use crate::arguments::call_as;
use crate::query::bulk;
use crate::support::{Ask, Root, ids, memory, rejected, result_ids, rows, titled};

const WORDPIECE: &str = include_str!("../../encoder/reference/wordpiece.json");
const VECTORS: &str = include_str!("../../encoder/reference/vectors.json");

fn cases(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn text_is_tokenized_exactly_as_by_the_teacher() {
    let vocabulary = &Encoder::embedded().unwrap().vocabulary;
    let mut all = cases(WORDPIECE);
    // The teacher's tokenizer takes a literal `[CLS]` in a text for its own mark; here it is text
    // like any other.
    all.retain(|case| case["special"] != true);
    assert!(all.len() > 200, "{}", all.len());
    for case in all {
        let text = case["text"].as_str().unwrap();
        let mut tokens = Vec::new();
        vocabulary.tokenize(text, &mut tokens);
        assert_eq!(json!(tokens), case["ids"], "{text:?}");
    }
}

#[test]
fn gibberish_is_near_nothing() {
    let root = Root::samples();
    let service = root.service();
    let found = |query: &str| {
        let answer = service.find(json!({ "query": query }));
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
        let Ok(expected) = serde_json::from_value::<Vec<f32>>(case["vector"].clone()) else {
            assert!(encoder.query(text).is_none(), "{text:?} has no vector");
            continue;
        };
        assert_eq!(expected.len(), encoder.dimension);
        let mut tokens = Vec::new();
        encoder.english_tokens(text, &mut tokens);
        // A query is truncated, a memory is not; the references are whole texts.
        let mut tokens: Vec<Token> = tokens.into_iter().map(Token::from).collect();
        let Some(vector) = encoder.encode_tokens(&mut tokens) else {
            assert!(expected.iter().all(|value| *value == 0.0), "{text:?} has no vector");
            continue;
        };
        for (a, b) in vector.iter().zip(&expected) {
            assert!((a - b).abs() < 2e-5, "{a}, {b} for {text:?}");
        }
    }
}

#[test]
fn a_note_in_a_script_that_the_encoder_does_not_know_is_found_by_its_words() {
    let root = Root::new();
    let notes = [
        titled("lock", "Another writer holds SQLite's write lock"),
        titled("weekly", "Εβδομαδιαία αναφορά: μετακινήσαμε τη database σε άλλον δίσκο"),
        titled("weekly-2", "Εβδομαδιαία αναφορά: μετακινήσαμε τη database σε νέο δίσκο"),
    ];
    bulk(&root, "alpha", &notes);
    let service = root.service();
    for (question, wanted) in [
        ("a writer holds the lock", "lock"),
        ("μετακινήσαμε άλλον δίσκο", "weekly"),
        ("μετακινήσαμε νέο δίσκο", "weekly-2"),
    ] {
        let answer = service.find(json!({ "query": question }));
        assert_eq!(result_ids(&answer)[0], wanted, "{question}");
        assert_lacks!(answer["notes"], "certain"; "{question}");
    }
}

/// Memories on four subjects, one of them twice in other words, one staged.
fn root() -> Root {
    let root = Root::new();
    let keys = "id | status | type | title | facts";
    let alpha = r#"
        pool | approved | bugfix | Connection pool is exhausted under load | ["Raise the number of database connections"]
        deadlock | approved | note | Two transactions wait for each other's row locks | ["Lock rows in the same order"]
        css | approved | note | Flex children overflow their container | ["Set min-width to zero"]
        staged | staging | - | Postgres refuses new sessions when too many are open"#;
    bulk(&root, "alpha", &rows(keys, alpha));
    let beta = r#"limit | approved | note | Postgres runs out of client slots | ["max_connections is reached"]"#;
    bulk(&root, "beta", &rows(keys, beta));
    root
}

#[test]
fn semantic_search_finds_memories_without_shared_words_and_modes_use_their_legs() {
    let root = root();
    let service = root.service();
    let question = "the server has no free database handles left";
    let semantic = service.find(json!({ "query": question, "mode": "semantic" }));
    assert!(["pool", "limit"].contains(&result_ids(&semantic)[0].as_str()), "{semantic:#}");
    assert_eq!(
        result_ids(&semantic).len(),
        4,
        "every memory has a vector and may be shown: {semantic:#}"
    );
    let arguments = json!({ "query": "overflowing boxes", "mode": "lexical", "explain": true });
    let lexical = service.find(arguments);
    assert_eq!(result_ids(&lexical), ["css"]);
    assert_eq!(lexical["results"][0]["explanation"]["legs"].as_array().unwrap().len(), 1);
    let unknown = service.find(json!({ "query": "\u{1f980}", "mode": "semantic" }));
    assert!(result_ids(&unknown).is_empty());
    let kinds = [&unknown["notes"][0]["kind"], &unknown["notes"][1]["kind"]];
    assert_eq!(kinds, ["no_word_matches", "no_semantic_leg"], "{unknown:#}");
}

#[test]
fn if_nothing_is_near_the_nearest_are_shown_and_expect_explains_the_others() {
    let root = Root::new();
    let titles = ["Coffee", "Bicycle", "Trains", "Painting", "Mountains", "Soup"];
    let memories = titles.map(|title| titled(&title.to_lowercase(), title));
    root.store("alpha", &memories);
    let service = root.service();
    let answer = service.find(json!({ "query": "kitchen" }));
    let shown = result_ids(&answer);
    assert_eq!(shown, ["soup", "coffee"], "{answer:#}");
    assert_eq!(answer["notes"][0]["kind"], "no_word_matches", "{answer:#}");
    let answer = service.find(json!({ "query": "kitchen", "expect": "painting" }));
    let message = answer["expected"]["message"].as_str().unwrap();
    assert_contains!(message, "not among the few nearest");
    // What has nothing to do with the question is not shown at all.
    let nothing = service.find(json!({ "query": "compiler lifetimes" }));
    assert!(result_ids(&nothing).is_empty(), "{nothing:#}");
    // Next to a memory with a matching word, the floor keeps it out.
    let answer = service.find(json!({ "query": "coffee lifetimes", "expect": "trains" }));
    assert_contains!(answer["expected"]["message"].as_str().unwrap(), "needs");
}

#[test]
fn a_filter_costs_no_result_that_is_eligible_in_any_mode() {
    let root = Root::new();
    let memories: Vec<Value> = (0..400)
        .map(|n| {
            let kind = if n % 50 == 0 { "decision" } else { "bugfix" };
            let rest = json!({ "type": kind, "facts": [format!("case {n}")] });
            let title = format!("Cache entry {n} is evicted too early by the proxy");
            memory(&format!("m{n:03}"), &title, rest)
        })
        .collect();
    bulk(&root, "alpha", &memories);
    let service = root.service();
    for mode in ["lexical", "semantic", "hybrid"] {
        let find = |kind: &str, limit: usize| {
            let answer = service.find(json!({ "query": "proxy evicts cache entry", "mode": mode, "type": kind, "limit": limit, "max_tokens": 20_000 }));
            let hits = answer["results"].as_array().unwrap().iter();
            let shown = hits.map(|hit| 1 + hit["also"].as_array().map_or(0, Vec::len));
            (shown.sum::<usize>(), answer["next_cursor"].is_string())
        };
        assert_eq!(find("decision", 20).0, 8, "{mode}");
        let (shown, more) = find("bugfix", 50);
        assert!(shown >= 50 || more, "{mode}: {shown}");
    }
}

#[test]
fn like_and_related_show_neighbours_that_may_be_shown_and_never_the_memory_itself() {
    let root = root();
    let service = root.service();
    let find = |arguments: Value| result_ids(&service.find(arguments));
    let has = |ids: &[String], id: &str| ids.iter().any(|known| known == id);
    let like = find(json!({ "like": "pool", "limit": 2 }));
    assert_eq!(like[0], "limit");
    assert!(!has(&like, "pool") && !has(&like, "staged"), "{like:?}");
    // A curator asks what a staged memory resembles among the approved ones.
    let staged = find(json!({ "like": "staged" }));
    assert_eq!(staged[0], "limit");
    assert!(!has(&staged, "staged"), "{staged:?}");
    assert!(has(&find(json!({ "like": "limit", "status": "all" })), "staged"));
    assert!(has(&find(json!({ "like": "pool", "query": "flex" })), "css"));
    // An agent that may not see it does not learn what is near it.
    let withheld = call_as(&service, "query_memories", json!({ "like": "staged" }), true);
    assert_eq!(withheld.unwrap_err().code(), "memory_not_served");
    // Nothing far away is shown, and nothing far away counts as hidden.
    let near_css = service.find(json!({ "like": "css" }));
    assert_eq!(result_ids(&near_css), [""; 0], "{near_css:#}");
    assert!(near_css["hidden"].is_null(), "{near_css:#}");
    let missing = service.refused("query_memories", json!({ "like": "pol" }));
    assert_eq!(missing.code, "memory_not_found");
    assert_eq!(missing.nearest, ["pool"]);
    let detail = service.fetch(json!({ "id": "pool", "include": ["related"] }));
    let related = ids(&detail["related"]);
    assert_eq!(related[0], "limit", "{detail:#}");
    assert_eq!(detail["related"][0]["scope"], "beta", "{detail:#}");
    assert!(!has(&related, "staged") && !has(&related, "pool"), "{related:?}");
    assert!(detail["related"][0]["similarity"].as_f64().unwrap() > 0.2);
}

#[test]
fn expect_reports_the_stage_that_dropped_a_memory() {
    let root = root();
    let older = json!({ "superseded_by": "deadlock" });
    let older = memory("older", "Row locks, an older note", older);
    bulk(&root, "alpha", &[rejected("gone", "Row locks are waited for"), older]);
    let service = root.service();
    for (id, stage, mut arguments) in [
        ("deadlock", "returned", json!({})),
        ("nobody", "not_found", json!({})),
        ("staged", "hidden_by_status", json!({})),
        ("gone", "hidden_by_status", json!({ "status": "all" })),
        ("older", "superseded", json!({})),
        ("deadlock", "filtered", json!({ "type": "bugfix" })),
        ("css", "not_retrieved", json!({ "mode": "lexical" })),
        ("css", "behind_page", json!({ "mode": "semantic", "limit": 1 })),
    ] {
        arguments["query"] = json!("row locks");
        arguments["expect"] = json!(id);
        let answer = service.find(arguments);
        assert_eq!(answer["expected"]["id"], id);
        assert_eq!(answer["expected"]["stage"], stage, "{id}");
    }
}
