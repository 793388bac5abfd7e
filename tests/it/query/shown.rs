//! What a result shows of a memory: the facts and the sentence that answer the question.

use ack_memory::Service;
use serde_json::{Value, json};

use super::bulk;
use crate::arguments::{call, call_as};
use crate::support::{Root, memory};

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
    bulk(
        &root,
        "platform",
        &[
            memory(
                "firewall",
                "Firewall of the plant",
                json!({ "facts": facts, "status": "approved" }),
            ),
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
    let arguments = json!({ "query": "turnstile snmp", "mode": "lexical" });
    let answer = call(&service, "query_memories", arguments).unwrap();
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
    let answer = call(&service, "query_memories", arguments.clone()).unwrap();
    let hit = first(&answer);
    assert_eq!(hit["excerpt"], sentence);
    assert_eq!(hit["subtitle"], "It took eleven weeks", "people see both");
    let answer = call_as(&service, "query_memories", arguments, true).unwrap();
    let hit = first(&answer);
    assert_eq!(hit["excerpt"], sentence, "{answer:#}");
    assert_eq!(
        (&hit["subtitle"], &hit["facts"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(hit["more_facts"], 1);
    // What the title says already is no reason to leave a fact out.
    let arguments = json!({ "query": "billing ledger tables", "mode": "lexical" });
    let answer = call_as(&service, "query_memories", arguments, true).unwrap();
    assert_eq!(first(&answer)["facts"][0], "The old tables are still there");
}
