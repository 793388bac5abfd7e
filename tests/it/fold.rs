//! Near-duplicates in other words: what one search shows as one result, and what it never does.

use std::collections::HashSet;
use std::path::Path;

use ack_api::memory::{Memory, Status};
use ack_search::analyzer::Analyzer;
use ack_search::dedup::{MIN_NEAR_COSINE, MIN_REWORDED_COSINE, Signature, is_reworded};
use ack_search::encoder::Encoder;
use ack_search::semantic::{QuantizedVector, Vectors};
use serde_json::{Value, json};

use crate::arguments::call;
use crate::support::{Root, memory, outside};

/// A title with the facts below it.
type Sample<'a> = (&'a str, &'a [&'a str]);

/// Whether a search that matches both shows them as one.
fn is_one(one: Sample<'_>, other: Sample<'_>) -> bool {
    let root = Root::new();
    let sample =
        |id: &str, (title, facts): Sample<'_>| memory(id, title, json!({ "facts": facts }));
    root.store("alpha", &[sample("a", one)]);
    root.store("beta", &[sample("b", other)]);
    let answer = call(&root.service(), "query_memories", json!({ "query": one.0 })).unwrap();
    assert_eq!(answer["total"], 2, "{answer}");
    let results = answer["results"].as_array().unwrap();
    let also = results[0]["also"].as_array().map_or(0, Vec::len);
    assert_eq!(results.len() + also, 2, "{answer}");
    also == 1
}

const POOL: Sample<'_> = (
    "Postgres pool runs dry because the migration job keeps its connections open",
    &[
        "Close the pool at the end of the job",
        "The limit of the pool was reached after three deployments",
    ],
);

#[test]
fn reworded_duplicates_are_shown_once() {
    let reworded: [(Sample<'_>, Sample<'_>); 6] = [
        (
            POOL,
            (
                "The migration job leaves connections open, so the Postgres pool runs dry",
                &[
                    "Close the pool when the job ends",
                    "After three deployments the limit of the pool was reached",
                ],
            ),
        ),
        (
            (
                "Cargo tests hang when two processes lock the same target directory",
                &[
                    "Give each process a target directory of its own",
                    "The lock is only released when the build ends",
                ],
            ),
            (
                "Two processes that lock the same target directory make cargo tests hang",
                &[
                    "Each process needs its own target directory",
                    "The lock is released only at the end of the build",
                ],
            ),
        ),
        (
            (
                "Playwright needs the image of its own version",
                &[
                    "A browser of another version is not found in the container",
                    "Update image and package together",
                ],
            ),
            (
                "The Playwright image must have the version of the package",
                &[
                    "The container does not find a browser of another version",
                    "Package and image are updated together",
                ],
            ),
        ),
        (
            (
                "Retry webhooks with jitter",
                &[
                    "All receivers retried at the same moment after an outage",
                    "Random waiting up to the full delay spread the load",
                ],
            ),
            (
                "Webhooks are retried with jitter",
                &[
                    "After an outage all receivers retried at the same moment",
                    "The load was spread by random waiting up to the full delay",
                ],
            ),
        ),
        (
            (
                "CI cache is useless when the lock file is part of the key twice",
                &["The restore key never matches"],
            ),
            (
                "Lock file twice in the key makes the CI cache useless",
                &["Restore keys never match then"],
            ),
        ),
        (
            (
                "Flaky login test: the clock of the container is behind",
                &[
                    "Tokens are not valid yet when they are checked",
                    "Synchronise the clock of the host",
                ],
            ),
            (
                "The login test is flaky because the container's clock is behind",
                &[
                    "When tokens are checked they are not valid yet",
                    "Host clock must be synchronised",
                ],
            ),
        ),
    ];
    let apart: Vec<&str> = reworded
        .iter()
        .filter(|(one, other)| !is_one(*one, *other))
        .map(|(one, _)| one.0)
        .collect();
    assert!(apart.is_empty(), "shown twice: {apart:?}");
}

#[test]
fn memories_that_differ_in_a_name_number_negation_or_opposite_are_not_folded() {
    let reworded = [
        (
            "The migration job leaves connections open, so the MySQL pool runs dry",
            "Close the pool when the job ends",
            "After three deployments the limit of the pool was reached",
        ),
        (
            "The migration job leaves connections open, so the Postgres pool runs dry",
            "Close the pool when the job ends",
            "After two deployments the limit of the pool was reached",
        ),
        (
            "The migration job leaves connections open, so the Postgres pool runs dry",
            "Close the pool when the job ends",
            "After 3 deployments the limit of the pool was reached",
        ),
        (
            "The migration job leaves connections open, so the Postgres pool runs dry",
            "Close the pool when the job ends",
            "The limit of the pool was never reached after three deployments",
        ),
        (
            "The migration job leaves connections open, so the Postgres pool runs dry",
            "Open the pool when the job ends",
            "After three deployments the limit of the pool was reached",
        ),
        (
            "The migration job leaves connections open, so the Postgres pool runs dry",
            "Close the pool when the job ends",
            "Before three deployments the limit of the pool was reached",
        ),
        (
            "The migration job leaves connections open, so the Postgres pool runs dry",
            "Close the pool when the job ends, see `max_connections`",
            "After three deployments the limit of the pool was reached",
        ),
        (
            "The backup job leaves connections open, so the Postgres pool runs dry",
            "Close the pool when the job ends",
            "After three deployments the limit of the pool was reached",
        ),
    ];
    let folded: Vec<_> = reworded
        .iter()
        .filter(|candidate| is_one(POOL, (candidate.0, &[candidate.1, candidate.2])))
        .collect();
    assert!(folded.is_empty(), "folded although they differ: {folded:?}");
}

#[test]
fn similar_texts_with_opposing_words_are_not_folded() {
    let text = |word: &'static str| -> String {
        format!(
            "Run the schema check {word} the deployment of the payment gateway so that the \
             nightly build finds broken tables"
        )
    };
    assert!(is_one((&text("before"), &[]), (&text("before"), &[])));
    assert!(!is_one((&text("before"), &[]), (&text("after"), &[])));
    let facts = |word: &'static str| -> Vec<String> {
        vec![format!(
            "The cache of the staging cluster is {word} for every service that the nightly build deploys there"
        )]
    };
    let are_folded = |word: &'static str, other: &'static str| {
        let (one, other) = (facts(word), facts(other));
        is_one(
            ("Build cache of staging", &[&one[0]]),
            ("Build cache of staging", &[&other[0]]),
        )
    };
    assert!(are_folded("enabled", "enabled"));
    assert!(!are_folded("enabled", "disabled"));
}

const DEVELOPMENT_SETS: [&str; 5] = [
    "til-jb",
    "clippy",
    "solutions-open",
    "precisionmembench",
    "devbench",
];

/// The memories of a development set.
fn memories_of(folder: &Path, set: &str) -> Vec<Memory> {
    let path = folder.join("dev").join(set).join("docs.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| record(&serde_json::from_str(line).unwrap()))
        .collect()
}

#[test]
fn no_two_memories_of_the_development_sets_count_as_reworded() {
    let Some(folder) = outside("ACK_TEST_EVALS") else {
        return;
    };
    let encoder = Encoder::embedded().unwrap();
    for set in DEVELOPMENT_SETS {
        let memories = memories_of(&folder, set);
        let mut analyzer = Analyzer::default();
        let codes: Vec<Option<QuantizedVector>> = memories
            .iter()
            .map(|memory| analyzer.analyze(memory, Some(encoder)).quantized_vector())
            .collect();
        let mut vectors = Vectors::default();
        codes.iter().for_each(|code| vectors.push(code.as_ref()));
        let (mut near, mut folded) = (0, Vec::new());
        for (number, code) in codes.iter().enumerate() {
            let Some(code) = code else { continue };
            for (other, cosine) in vectors
                .cosines(code)
                .into_iter()
                .enumerate()
                .skip(number + 1)
            {
                if cosine >= MIN_REWORDED_COSINE {
                    near += 1;
                    if is_reworded(&memories[number], &memories[other]) {
                        folded.push((&memories[number].id, &memories[other].id));
                    }
                }
            }
        }
        println!("{set}: {near} pairs of a cosine of {MIN_REWORDED_COSINE} or more");
        assert!(folded.is_empty(), "{set}: {folded:?}");
    }
}

/// Texts that are near-duplicates by their words are not ruled out by their vectors: each memory of
/// the sets against itself without its tags and without the heaviest words that it can lose and
/// still be nearly the same.
#[test]
fn nearly_equal_texts_are_above_the_cosine_bound_for_comparing_words() {
    let Some(folder) = outside("ACK_TEST_EVALS") else {
        return;
    };
    let encoder = Encoder::embedded().unwrap();
    let mut analyzer = Analyzer::default();
    let mut cosines: Vec<f32> = Vec::new();
    for set in DEVELOPMENT_SETS {
        for memory in memories_of(&folder, set) {
            let whole = Signature::of(&memory);
            let Some(other) = (0..6).rev().find_map(|part| {
                let other = without(&memory, encoder, f64::from(part) * 0.05);
                Signature::of(&other).is_near(&whole).then_some(other)
            }) else {
                continue;
            };
            let mut code =
                |memory: &Memory| analyzer.analyze(memory, Some(encoder)).quantized_vector();
            if let (Some(one), Some(other)) = (code(&memory), code(&other)) {
                cosines.push(one.cosine(&other));
            }
        }
    }
    cosines.sort_by(f32::total_cmp);
    let least = cosines[0];
    println!(
        "{} pairs, least cosine {least:.3}, one in a hundred below {:.3}",
        cosines.len(),
        cosines[cosines.len() / 100]
    );
    assert!(cosines.len() > 2_000 && least >= MIN_NEAR_COSINE, "{least}");
}

/// A memory without its tags and without so large a share of its words, those of the most weight.
fn without(memory: &Memory, encoder: &Encoder, share: f64) -> Memory {
    let body = memory.narrative.clone().unwrap_or_default();
    let distinct: HashSet<&str> = body.split_whitespace().collect();
    let weight = |word: &str| {
        encoder
            .weight(word.trim_matches(|letter: char| !letter.is_alphanumeric()))
            .unwrap_or_default()
    };
    let mut words: Vec<(f32, &str)> = distinct
        .into_iter()
        .map(|word| (weight(word), word))
        .collect();
    words.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "counts of words"
    )]
    words.truncate((words.len() as f64 * share) as usize);
    let lost: HashSet<&str> = words.into_iter().map(|(_, word)| word).collect();
    let kept: Vec<&str> = body
        .split_whitespace()
        .filter(|word| !lost.contains(word))
        .collect();
    Memory {
        narrative: Some(kept.join(" ")),
        concepts: Vec::new(),
        ..memory.clone()
    }
}

/// A document of a set as a store would hold it.
fn record(document: &Value) -> Memory {
    let text = |key: &str| document[key].as_str().map(str::to_owned);
    let list = |key: &str| -> Vec<String> {
        let values = document[key].as_array().into_iter().flatten();
        values
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    Memory {
        id: text("id").unwrap(),
        project: text("project"),
        title: text("title").unwrap(),
        subtitle: text("subtitle"),
        facts: list("facts"),
        concepts: list("tags"),
        narrative: text("body"),
        status: Status::Approved,
        ..Memory::empty()
    }
}
