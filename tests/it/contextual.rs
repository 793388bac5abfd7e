//! Contextual tables: memories and questions are read in context, and the table goes on as it was
//! built.

use ack_memory::Service;
use serde_json::{Value, json};

use crate::arguments::call_as;
use crate::cli::ack;
use crate::query::bulk;
use crate::support::{Ask, Root, result_ids, titled};

const NOTES: [(&str, &str); 5] = [
    ("m1", "Lock the table and then drop the row"),
    ("m2", "Deploys leave at midday"),
    ("m3", "Containers stop only after a grace period of ten seconds"),
    ("m4", "Invoices are rounded to the nearest cent"),
    ("m5", "The kiosk shows the fonts of its disk"),
];

fn root() -> Root {
    let root = Root::new();
    let notes = NOTES.map(|(id, title)| titled(id, title));
    bulk(&root, "alpha", &notes);
    root
}

fn index(root: &Root, arguments: &[&str]) -> String {
    ack(root.path(), &[&["index", "--all"], arguments].concat()).ok()
}

fn embedder(root: &Root) -> Value {
    let listed = root.service().scopes(json!({ "scope": "alpha" }));
    listed["scopes"][0]["index"]["embedder"].clone()
}

/// What [`embedder`] is if a contextual table has so many rows.
fn contextual(rows: usize) -> String {
    format!("static-minilm; {rows} rows with the contextual encoder")
}

/// The nearest memory to a text, with its cosine.
fn nearest(service: &Service, text: &str) -> (String, f64) {
    let question = json!({ "query": text, "mode": "semantic", "explain": true });
    let answer = service.find(question);
    let hit = &answer["results"][0];
    let legs = hit["explanation"]["legs"].as_array().unwrap();
    let semantic = legs.iter().find(|leg| leg["leg"] == "semantic").unwrap();
    let id = hit["id"].as_str().unwrap().to_owned();
    (id, semantic["score"].as_f64().unwrap())
}

#[test]
fn a_small_table_is_contextual_unless_static_vectors_are_asked_for() {
    let root = root();
    let said = index(&root, &["--dry-run"]);
    assert_contains!(said, "0 were unchanged; contextual vectors");
    let said = index(&root, &[]);
    assert_contains!(said, "5 rows were added, 0 removed, 0 were unchanged; contextual vectors");
    assert_eq!(embedder(&root), contextual(5));
    // Agents learn whether there is a table and how fresh it is.
    let listed = call_as(&root.service(), "list_scopes", json!({}), true).unwrap();
    let table = &listed["scopes"][0]["index"];
    assert_eq!(table["rows"], 5);
    assert_eq!(table["coverage"], json!(1.0));
    assert!(table["built_at"].is_string() && table.get("embedder").is_none(), "{table}");
    std::fs::remove_dir_all(root.scope_folder("alpha").join("lance")).unwrap();
    assert_lacks!(index(&root, &["--encoder", "static"]), "contextual");
    assert_contains!(index(&root, &[]), "0 rows were added");
    assert_eq!(embedder(&root), "static-minilm");
}

#[test]
fn a_new_table_of_more_than_5000_memories_is_static() {
    let root = Root::new();
    let notes: Vec<Value> =
        (0..5_001).map(|number| titled(&format!("m{number}"), &format!("Note {number}"))).collect();
    bulk(&root, "alpha", &notes);
    assert_lacks!(index(&root, &[]), "contextual");
    assert_eq!(embedder(&root), "static-minilm");
}

#[test]
fn a_contextual_table_is_extended_with_contextual_vectors_until_static_ones_are_asked_for() {
    let root = root();
    index(&root, &["--encoder", "static"]);
    let said = index(&root, &["--encoder", "contextual"]);
    assert_contains!(said, "5 rows were added");
    assert_eq!(embedder(&root), contextual(5));
    bulk(&root, "alpha", &[titled("m6", "Ports are numbers")]);
    let said = index(&root, &[]);
    assert_contains!(said, "1 row was added, 0 removed");
    assert_eq!(embedder(&root), contextual(6));
    let said = index(&root, &["--rebuild"]);
    assert_contains!(said, "6 rows were added");
    assert_eq!(embedder(&root), contextual(6));
    let said = index(&root, &["--encoder", "static"]);
    assert_contains!(said, "6 rows were added");
    assert_contains!(said, "rebuilt: the encoder was contextual");
    assert_eq!(embedder(&root), "static-minilm");
    assert_contains!(index(&root, &[]), "0 rows were added");
}

#[test]
fn an_empty_scope_keeps_the_encoder_for_its_first_memories() {
    let root = Root::new();
    bulk(&root, "alpha", &[]);
    index(&root, &["--encoder", "contextual"]);
    bulk(&root, "alpha", &NOTES.map(|(id, title)| titled(id, title)));
    index(&root, &[]);
    assert_eq!(embedder(&root), contextual(5));
}

#[test]
fn a_dry_run_counts_what_another_encoder_would_replace() {
    let root = root();
    index(&root, &["--encoder", "static"]);
    let would = |arguments: &[&str]| index(&root, &[&["--dry-run"], arguments].concat());
    assert_contains!(would(&["--encoder", "contextual"]), "5 rows would be added");
    assert_contains!(would(&["--encoder", "static"]), "0 rows would be added");
    assert_eq!(embedder(&root), "static-minilm");
    index(&root, &["--encoder", "contextual"]);
    assert_contains!(would(&[]), "0 rows would be added");
}

#[test]
fn a_memory_without_known_words_has_no_vector() {
    let root = root();
    bulk(&root, "alpha", &[titled("m6", "\u{5e9}\u{5dc}\u{5d5}\u{5dd}")]);
    index(&root, &["--encoder", "contextual"]);
    let question = json!({ "query": "tables and rows", "mode": "semantic", "limit": 50 });
    let found = result_ids(&root.service().find(question));
    assert!(found.len() > 2 && !found.contains(&"m6".to_owned()), "{found:?}");
}

#[test]
fn a_question_is_read_in_the_same_way_as_the_memories() {
    let root = root();
    let same = "lock the table and then drop the row";
    let turned = "drop the table and then lock the row";
    let cosines = || [same, turned].map(|text| nearest(&root.service(), text));
    let without = cosines();
    // To static vectors, the order of words makes hardly any difference: only the question is read
    // in context, and that counts little.
    let [(one, cosine), (other, other_cosine)] = &without;
    assert_eq!([one, other], ["m1", "m1"]);
    assert!(cosine.min(*other_cosine) > 0.98, "{without:?}");
    assert!((cosine - other_cosine).abs() < 0.001, "{without:?}");
    index(&root, &["--encoder", "contextual"]);
    let [same, turned] = cosines();
    let norm = f64::from(ack_search::encoder::CONTEXTUAL_NORM);
    assert!(same.0 == "m1" && same.1 > 0.99 * norm && same.1 < 1.001 * norm, "{same:?}");
    assert!(turned.0 == "m1" && turned.1 < 0.999 * same.1, "{turned:?}");
    index(&root, &["--encoder", "static"]);
    assert_eq!(cosines(), without);
}

#[test]
fn a_memory_that_the_table_lacks_is_found_beside_contextual_ones() {
    let root = root();
    index(&root, &["--encoder", "contextual"]);
    let late = titled("m6", "Exit code 137 means that memory ran out");
    bulk(&root, "alpha", &[late]);
    let answer = root.service().find(json!({ "query": "what does exit code 137 mean" }));
    assert_eq!(result_ids(&answer)[0], "m6", "{answer}");
}

#[test]
fn an_unknown_encoder_is_refused_with_the_known_ones() {
    let root = root();
    let refused = ack(root.path(), &["index", "--all", "--encoder", "deep"]).fails(2);
    assert_contains!(refused, "static, contextual");
}
