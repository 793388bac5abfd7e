//! What a result shows of a memory: the facts and the sentence that answer the question.

use ack_memory::Service;
use serde_json::{Value, json};

use super::bulk;
use crate::arguments::call_as;
use crate::support::{Ask, Root, memory};

fn case() -> (Root, Service) {
    let root = Root::new();
    let facts = [
        "VLAN 12 is for guests",
        "VLAN 40 is for cameras",
        "Leases are static",
        "The plant has its own switch",
        "Cameras record for a week",
        "The turnstile controller needs SNMP open",
    ];
    let firewall = json!({ "facts": facts, "status": "approved" });
    bulk(
        &root,
        "platform",
        &[
            memory("firewall", "Firewall of the plant", firewall),
            memory(
                "migration",
                "Billing moved to the new ledger",
                json!({
                    "subtitle": "It took eleven weeks",
                    "facts": ["The old tables are still there"],
                    "narrative": "It began in March. Reconciliation broke because rounding used \
                                  truncation; Priya fixed it. Nobody noticed.",
                    "status": "approved",
                }),
            ),
        ],
    );
    let service = root.service();
    (root, service)
}

fn first(answer: &Value) -> &Value {
    &answer["results"][0]
}

#[test]
fn the_fact_that_answers_comes_first() {
    let (_root, service) = case();
    let answer = service.find(json!({ "query": "turnstile snmp", "mode": "lexical" }));
    let hit = first(&answer);
    assert_eq!(hit["id"], "firewall");
    assert_eq!(hit["facts"][0], "The turnstile controller needs SNMP open");
    assert_eq!(hit["facts"][1], "VLAN 12 is for guests", "others in order");
    assert_eq!(hit["more_facts"], 1);
}

#[test]
fn an_agent_sees_the_sentence_that_answers_in_place_of_facts_that_do_not() {
    let (_root, service) = case();
    let arguments = json!({ "query": "reconciliation rounding priya", "mode": "lexical" });
    let sentence = "Reconciliation broke because rounding used truncation; Priya fixed it.";
    let answer = service.find(arguments.clone());
    let hit = first(&answer);
    assert_eq!(hit["excerpt"], sentence);
    assert_eq!(hit["subtitle"], "It took eleven weeks", "people see both");
    let answer = call_as(&service, "query_memories", arguments, true).unwrap();
    let hit = first(&answer);
    assert_eq!(hit["excerpt"], sentence, "{answer:#}");
    assert_eq!(hit["subtitle"], Value::Null);
    assert_eq!(hit["facts"], Value::Null);
    assert_eq!(hit["more_facts"], 1);
    // What the title says already is no reason to leave a fact out.
    let arguments = json!({ "query": "billing ledger tables", "mode": "lexical" });
    let answer = call_as(&service, "query_memories", arguments, true).unwrap();
    assert_eq!(first(&answer)["facts"][0], "The old tables are still there");
}

/// A text of numbered sentences, with one about a subject of its own.
fn long_text(sentences: usize, answer_at: usize, separator: &str) -> String {
    let sentence = |number| match number {
        _ if number == answer_at => {
            "The turbine stalls because its governor loses torque.".to_owned()
        }
        number => format!("Paragraph {number} tells how the harbour office files its forms."),
    };
    (0..sentences).map(sentence).collect::<Vec<_>>().join(separator)
}

fn long_memories(narrative: &str, facts: &[String]) -> (Root, Service) {
    let root = Root::new();
    let rest = json!({ "narrative": narrative, "facts": facts, "status": "approved" });
    let other =
        json!({ "narrative": narrative.replace("turbine", "engine"), "status": "approved" });
    let memories = [
        memory("long", "Notes of the harbour", rest),
        memory("other", "What the office wrote", other),
    ];
    bulk(&root, "platform", &memories);
    let service = root.service();
    (root, service)
}

fn cost(answer: &Value) -> usize {
    ack_memory::api::text::tokens(&answer.to_string())
}

fn cut_note(answer: &Value) -> &str {
    let mut notes = answer["notes"].as_array().unwrap().iter();
    let note = notes.rfind(|note| note["kind"] == "cut");
    note.unwrap_or_else(|| panic!("{answer:#}"))["message"].as_str().unwrap()
}

#[test]
fn a_long_text_is_cut_around_what_the_question_asks_and_fills_its_budget() {
    for separator in [" ", "\n", "\n\n"] {
        let narrative = long_text(600, 411, separator);
        let (_root, service) = long_memories(&narrative, &[]);
        for by_agent in [false, true] {
            for max_tokens in [300, 500, 1_000, 4_000] {
                let arguments = json!({
                    "query": "turbine governor torque", "detail": "full", "max_tokens": max_tokens,
                });
                let answer = call_as(&service, "query_memories", arguments, by_agent).unwrap();
                let hit = first(&answer);
                assert_eq!(hit["id"], "long");
                let shown = hit["narrative"].as_str().unwrap();
                assert_contains!(shown, "because its governor loses torque.");
                assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
                let first = shown.trim_start_matches(['…', ' ', '\n']);
                assert!(first.starts_with("Paragraph") || first.starts_with("The"), "{first}");
                let used = cost(&answer);
                assert!(used <= max_tokens, "{used} of {max_tokens}");
                // As text, each line is quoted.
                let filled = used + shown.lines().count();
                assert!(10 * filled >= 9 * max_tokens, "{used} of {max_tokens}: {answer:#}");
                assert_contains!(cut_note(&answer), " characters of its text");
            }
        }
    }
}

#[test]
fn a_text_without_sentences_or_without_a_match_is_cut_too() {
    let digests = (0..2_000u64).map(|n| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let blob: String = digests.collect();
    let words = "harbour office ".repeat(3_000);
    for narrative in [&blob, &words] {
        let (_root, service) = long_memories(narrative, &[]);
        for query in ["harbour office notes", "wharf"] {
            let arguments = json!({ "query": query, "detail": "full", "max_tokens": 600 });
            let answer = service.find(arguments);
            let used = cost(&answer);
            assert!((540..=600).contains(&used), "{used}: {answer:#}");
        }
    }
}

#[test]
fn the_facts_that_match_stay_if_not_all_fit() {
    let mut facts: Vec<String> = (0..200).map(|n| format!("The office opens drawer {n}")).collect();
    facts[150] = "The turbine stalls without its governor".to_owned();
    let (_root, service) = long_memories("Short.", &facts);
    let arguments = json!({ "query": "turbine governor", "detail": "full", "max_tokens": 800 });
    let answer = service.find(arguments);
    let hit = first(&answer);
    let shown = hit["facts"].as_array().unwrap();
    assert!(shown.contains(&json!(facts[150])), "{answer:#}");
    let found = shown.len() as u64 + hit["more_facts"].as_u64().unwrap();
    assert_eq!(found, 200);
    assert_eq!(hit["narrative"], "Short.");
    assert!((720..=800).contains(&cost(&answer)), "{}", cost(&answer));
    assert_contains!(cut_note(&answer), " of 200 facts");
}

#[test]
fn what_remains_of_the_budget_shows_a_part_of_the_next_result() {
    let narrative = long_text(60, 30, " ");
    let (_root, service) = long_memories(&narrative, &[]);
    let arguments = json!({ "query": "governor torque", "detail": "full", "max_tokens": 1_800 });
    let answer = service.find(arguments);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "{answer:#}");
    let whole = results[0]["narrative"].as_str().unwrap();
    assert_eq!(whole.split(". ").count(), 60);
    assert_contains!(results[1]["narrative"], "governor");
    assert!((1_620..=1_800).contains(&cost(&answer)), "{}", cost(&answer));
}

#[test]
fn a_memory_longer_than_any_answer_says_what_is_left_out() {
    let narrative = long_text(6_000, 4_000, "\n");
    let (_root, service) = long_memories(&narrative, &[]);
    let memory = service.fetch(json!({ "id": "long" }));
    assert!(cut_note(&memory).contains("characters of its text"), "{memory:#}");
    let memories = service.fetch(json!({ "ids": ["long", "other"] }));
    assert!(cost(&memories) > 9_900, "{}", cost(&memories));
    let arguments = json!({ "query": "turbine governor", "detail": "full", "max_tokens": 20_000 });
    let answer = service.find(arguments);
    let shown = first(&answer)["narrative"].as_str().unwrap();
    assert!(shown.contains("turbine stalls") && shown.len() > 23_000, "{}", shown.len());
}
