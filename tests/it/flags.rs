//! Flags: the short ones, what people type out of habit, and what to use instead of others.

use crate::cli::ack;
use crate::support::{Root, unreviewed};

#[test]
fn project_filters_and_c_is_the_folder() {
    let root = Root::samples();
    let folder = root.path().join("ledger-api");
    std::fs::create_dir(&folder).unwrap();
    let answer =
        ack(root.path(), &["query", "-p", "kiosk-web", "-C", folder.to_str().unwrap(), "--json"])
            .json();
    assert_eq!(answer["searched"]["current_scope"], "ledger-api");
    let results = answer["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        assert_eq!(result["project"], "kiosk-web");
    }
}

#[test]
fn all_shows_what_waits_for_review() {
    let root = Root::with("music", &[unreviewed("m-1", "Xylophone")]);
    let total = |arguments: &[&str]| ack(root.path(), arguments).json()["total"].clone();
    assert_eq!(total(&["query", "xylophone", "--json"]), 0);
    assert_eq!(total(&["query", "xylophone", "-a", "--json"]), 1);
    ack(root.path(), &["get", "m-1"]).fails(1);
    ack(root.path(), &["get", "m-1", "-a"]).ok();
    ack(root.path(), &["query", "-a", "--status", "staging"]).fails(2);
}

#[test]
fn common_habitual_spellings_are_accepted() {
    let root = Root::samples();
    let id = "ack_a41f0c_2025-11-24_001";
    for (typed, meant) in [
        (vec!["search", "deadlock"], vec!["query", "deadlock"]),
        (vec!["list"], vec!["query"]),
        (vec!["show", id], vec!["get", id]),
        (vec!["status"], vec!["doctor"]),
    ] {
        let typed = ack(root.path(), &[&typed[..], &["--json"]].concat());
        let meant = ack(root.path(), &[&meant[..], &["--json"]].concat());
        assert_eq!((typed.out, typed.code), (meant.out, meant.code));
    }
}

#[test]
fn dates_are_accepted_in_several_formats() {
    let root = Root::samples();
    let total = |since: &str| {
        ack(root.path(), &["query", "--since", since, "--json"]).json()["total"].clone()
    };
    assert_eq!(total("-9000d"), total("9000d"));
    let wrong = ack(root.path(), &["query", "--since", "-soon"]).fails(2);
    assert_contains!(wrong, "yesterday");
    let wrong = ack(root.path(), &["query", "-n", "ten"]).fails(2);
    assert_contains!(wrong, "use a whole number");
}
