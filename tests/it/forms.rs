//! Words that are written in several ways meet in the search by words, and words that only look
//! alike do not.

use ack_memory::Service;
use serde_json::{Value, json};

use crate::query::bulk;
use crate::support::{Ask, Root, ids, memory, titled};

/// A scope with one memory for each text, and some others.
fn scope(texts: &[&str]) -> (Root, Service) {
    let root = Root::new();
    let others = ["the quick brown fox", "a lazy dog sleeps", "pack my box"];
    let all = texts.iter().chain(&others).enumerate();
    let memories: Vec<Value> = all
        .map(|(number, text)| {
            let facts = json!({ "facts": [text], "status": "approved" });
            memory(&format!("m{number}"), &format!("Note {number}"), facts)
        })
        .collect();
    bulk(&root, "platform", &memories);
    let service = root.service();
    (root, service)
}

fn found(service: &Service, query: &str) -> Vec<String> {
    let arguments = json!({ "query": query, "mode": "lexical", "limit": 10 });
    ids(&service.find(arguments)["results"])
}

/// Whether a memory with one text is found by the other, without words that are only similar.
fn meet(text: &str, query: &str) -> bool {
    let (_root, service) = scope(&[&format!("zebra {text} yak")]);
    let answer = service.find(json!({ "query": query, "mode": "lexical" }));
    let mut results = answer["results"].as_array().unwrap().iter();
    results.any(|hit| hit["id"] == "m0" && !hit["why"].to_string().contains("similar"))
}

/// Checks of pairs of texts, `one = other | …`, whether each is found by the other one.
fn check(pairs: &str, expected: bool) {
    for pair in pairs.split(" | ") {
        let (one, other) = pair.split_once(" = ").unwrap();
        assert_eq!(meet(one, other), expected, "{other:?} for {one:?}");
        assert_eq!(meet(other, one), expected, "{one:?} for {other:?}");
    }
}

#[test]
fn a_name_and_its_version_meet_with_and_without_a_space() {
    check(
        "java17 = Java 17 | oauth2 = OAuth 2 | nodejs18 = Node.js 18 | log4j2 = Log4j 2 | \
         c++20 = C++ 20 | utf8 = UTF-8",
        true,
    );
    // The other way round, the name or the number alone would match.
    assert!(meet("Ubuntu 22.04", "ubuntu22"));
    check("java17 = java 18 | java17 = 17 | the2 = 2 | a1b2 = a1", false);
}

#[test]
fn a_version_that_no_memory_has_is_not_certain() {
    let (_root, service) = scope(&["zebra in java 17 with yaks", "zebra java yak"]);
    let is_marked = |query: &str| {
        let answer = service.find(json!({ "query": query }));
        let notes = answer["notes"].to_string();
        notes.contains("nothing_certain") || notes.contains("no_word_matches")
    };
    assert!(!is_marked("java17"));
    assert!(is_marked("java21") && is_marked("migrate the app to java21"));
}

#[test]
fn an_unreviewed_memory_does_not_change_how_a_version_is_found() {
    let root = Root::new();
    let titles = ["Java 17 lacks jlink", "Gradle picks Java 17 as the toolchain"];
    let memories = titles.map(|title| titled(title, title));
    bulk(&root, "platform", &memories);
    let before = found(&root.service(), "java17");
    assert_eq!(before.len(), 2, "{before:?}");
    let hidden = |query: &str| {
        let answer = root.service().find(json!({ "query": query }));
        answer["hidden"]["by_status"].clone()
    };
    assert_eq!(hidden("java17"), Value::Null);
    let waiting = json!({ "status": "staging" });
    let rows = [memory("m9", "Try java17 next week", waiting)];
    bulk(&root, "platform", &rows);
    assert_eq!(found(&root.service(), "java17"), before);
    assert_eq!(hidden("java17"), 1);
}

#[test]
fn a_number_and_its_unit_meet_with_and_without_a_space() {
    check(
        "32MB = 32 MB | 180ms = 180 ms | 5GB = 5\u{a0}gb | 5GiB = 5 GiB | 10k = 10 K | \
         30s = 30 s | 2.5GHz = 2.5 GHz | 1024KB = 1,024 KB | 180µs = 180 µs | \
         512-MB = 512 MB",
        true,
    );
    check(
        "32MB = 32 GB | 5GB = 5 GiB | b3 = 3 b | v2 = 2 v | i8 = 8 i | x86_64 = 64 x | \
         1.85.0 = 85 m",
        false,
    );
}

#[test]
fn a_quantity_is_preferred_to_its_parts() {
    let (_root, service) = scope(&[
        "version 32 of the MB driver",
        "the limit is 32MB",
        "the limit is 64 MB",
        "the limit is 32 MB",
    ]);
    let mut quantities = found(&service, "limit 32 MB");
    quantities.truncate(2);
    quantities.sort();
    assert_eq!(quantities, ["m1", "m3"]);
    let shown = found(&service, "limit 32 MB");
    assert_eq!(shown, found(&service, "limit 32MB"));
}

#[test]
fn words_that_only_look_alike_keep_apart() {
    check(
        "personal = people | identical = identity | container = contain | \
         promise = prom | found = find | rung = ring | liveness = live | Win32 = win | \
         winner = win",
        false,
    );
    check(
        "won = wins | children = child | indices = index | idempotent = idempotency | \
         people = person | caches = cached",
        true,
    );
}

#[test]
fn words_with_diacritics_meet_those_without() {
    check(
        "Straße = Strasse | Größe = grosse | año = ano | naïve = naive | Łódź = lodz | \
         smørrebrød = smorrebrod",
        true,
    );
    let (_root, service) = scope(&["Maximum der Dateien", "Größe"]);
    assert_eq!(found(&service, "Groesse"), ["m1"]);
}

#[test]
fn short_words_meet_in_russian() {
    check(
        "базы = база | код = кода | тест = тесты | логи = логов | порту = порт | \
         новый = новая | миграции = миграция | ёлка = елки",
        true,
    );
    check("код = кот | порт = порог", false);
}

#[test]
fn text_copied_from_web_pages_is_found() {
    check(
        "configuration = con\u{ad}figu\u{ad}ration | \
         configuration = \u{feff}configu\u{200b}ration | no-cache = no\u{2011}cache | \
         ERR_PNPM_LOCK = ＥＲＲ＿ＰＮＰＭ＿ＬＯＣＫ | E0382 = Ｅ０３８２ | efficient = e\u{fb03}cient | \
         コンテナ = ｺﾝﾃﾅ",
        true,
    );
    let (_root, service) = scope(&["An exit code of 137 means that memory ran out"]);
    for query in ["ｍｅｍｏｒｙ ｒａｎ ｏｕｔ", "mem\u{ad}ory ran out", "memory ran out"]
    {
        let answer = service.find(json!({ "query": query, "mode": "semantic" }));
        assert_eq!(answer["results"][0]["id"], "m0", "{query}");
    }
}
