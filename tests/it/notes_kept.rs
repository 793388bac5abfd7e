//! What people write in notes and what becomes of it: the memories in an index itself, comments,
//! other names, nested tags, files that are not read.

use std::fs;

use ack_memory::Service;
use serde_json::{Value, json};

use crate::changes::git;
use crate::cli::{ack, add_scope};
use crate::curate::{approved, decide};
use crate::store_support::{serve_notes, write};
use crate::support::{Ask, Root, ids, result_ids, write_file};

fn query(service: &Service, arguments: Value) -> Vec<String> {
    let mut ids = result_ids(&service.find(arguments));
    ids.sort();
    ids
}

fn get(service: &Service, id: &str) -> Value {
    let arguments = json!({ "id": id, "include": ["links"] });
    service.fetch(arguments)
}

fn waiting(root: &Root) -> Vec<String> {
    let listed = ack(root.path(), &["review", "--list", "--json"]).json();
    let mut ids = ids(&listed["waiting"]);
    ids.sort();
    ids
}

fn problems(service: &Service) -> String {
    let scopes = service.scopes(json!({}));
    scopes["scopes"][0]["health"]["problems"].to_string()
}

const INDEX: &str = "# Memory\n\n- [User](user.md) - prefers short answers\n\n## Tests\n\nNever mock the database. It hid a bug.\n\n```sh\njust test\n```\n\n- Use pnpm\n- **CI**: cache `~/.cargo`\n";

#[test]
fn the_items_of_an_index_are_memories_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "MEMORY.md", INDEX);
    let root = Root::new();
    let added = add_scope(root.path(), "notes", folder.path()).ok();
    assert_contains!(added, "3 unreviewed");
    let ids = ["MEMORY#ci-cache-cargo", "MEMORY#never-mock-the-database", "MEMORY#use-pnpm"];
    assert_eq!(waiting(&root), ids);
    decide(root.path(), &["approve", "--waiting", "--yes"]).ok();
    assert_eq!(approved(root.path()), ids);
    let rule = ack(root.path(), &["get", ids[1], "--json"]).json();
    assert_eq!(rule["title"], "Never mock the database.");
    assert_eq!(rule["subtitle"], "Tests");
    let text = "Never mock the database. It hid a bug.\n\n```sh\njust test\n```";
    assert_eq!(rule["narrative"], text);
    // A decision is about a text: what was edited waits again, and the rest stays.
    let edited = INDEX.replace("It hid a bug.", "It hid two bugs.");
    write(folder.path(), "MEMORY.md", edited.replace("# Memory\n", "# Memory\n\nNew.\n"));
    assert_eq!(approved(root.path()), [ids[0], ids[2]]);
    assert_eq!(waiting(&root), [ids[1], "MEMORY#new"]);
}

#[test]
fn an_index_on_a_reference_is_approved_item_by_item() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    git(inside, &["init", "-q"]);
    let text = "- Use pnpm. Always.\n- Tabs, no spaces\n";
    write(inside, "MEMORY.md", text);
    git(inside, &["add", "-A"]);
    git(inside, &["commit", "-q", "-m", "notes"]);
    let root = Root::new();
    let settings = format!("store = '{}'\nref = 'HEAD'", inside.display());
    root.manifest("notes", &settings);
    let both = ["MEMORY#tabs-no-spaces", "MEMORY#use-pnpm"];
    assert_eq!(approved(root.path()), both);
    let text = "- Use pnpm. Never npm.\n- Tabs, no spaces\n- New\n";
    write(inside, "MEMORY.md", text);
    assert_eq!(approved(root.path()), both);
    assert_eq!(waiting(&root), ["MEMORY#new", "MEMORY#use-pnpm@edited"]);
    let rule = ack(root.path(), &["get", both[1], "--json"]).json();
    assert_eq!(rule["narrative"], "Use pnpm. Always.");
}

#[test]
fn comments_are_neither_searched_nor_served() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "deploy.md",
        "# Deploy on Mondays\n\nBefore noon. <!-- kumquat -->\n<!--\nrambutan [[gone]]\n\nlychee\n-->\n%% durian %% Ask first.\n%%\ntamarind\n%%\n\n```html\n<!-- papaya -->\n```\n",
    );
    let (_root, service) = serve_notes(folder.path());
    for word in ["kumquat", "rambutan", "lychee", "durian", "tamarind"] {
        let found = query(&service, json!({ "query": word, "mode": "lexical" }));
        assert!(found.is_empty(), "{word}: {found:?}");
    }
    let note = get(&service, "deploy");
    let text = "Before noon. \n Ask first.\n\n```html\n<!-- papaya -->\n```";
    assert_eq!(note["narrative"], text, "{note:#}");
    assert_eq!(query(&service, json!({ "query": "papaya" })), ["deploy"]);
    // Findings keep their lines.
    let content = "---\ntype: x\n---\n# More\n<!--\n[a](gone.md)\n-->\n[b](gone.md)\n";
    write(folder.path(), "more.md", content);
    let out = ack(folder.path(), &["check", folder.path().to_str().unwrap()]).out;
    assert_contains!(out, "more.md:8");
    assert_lacks!(out, "more.md:6");
}

#[test]
fn other_names_and_parts_of_notes_lead_to_the_note() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    write(
        inside,
        "ops/pg.md",
        "---\naliases: [Postgres rules, \"PG\"]\n---\n# How we run the database\n\nOn two hosts.\n",
    );
    write(inside, "csharp.md", "# C# tips\n\nUse records.\n");
    for (name, link) in [
        ("link-a", "[[postgres RULES]]"),
        ("link-b", "[[pg#Two hosts]]"),
        ("link-c", "[[PG|the database]]"),
        ("link-d", "[[ops/pg^block-1]]"),
        ("link-e", "| [[pg\\|the database]] |"),
        ("link-f", "![[pg.md#Two hosts|there]]"),
    ] {
        let text = format!("# {name}\n\nSee {link} first.\n");
        write(inside, &format!("{name}.md"), text);
    }
    write(inside, "link-g.md", "# g\n\nSee [[C# tips]] first.\n");
    let (root, service) = serve_notes(inside);
    for name in ["a", "b", "c", "d", "e", "f"] {
        let name = format!("link-{name}");
        let found = &get(&service, &name)["links"][0]["to_id"];
        assert_eq!(*found, "ops/pg", "{name}");
    }
    assert_eq!(get(&service, "link-g")["links"][0]["to_id"], "csharp");
    assert!(
        query(&service, json!({ "query": "Postgres rules", "mode": "lexical" }))
            .contains(&"ops/pg".to_owned())
    );
    let out = ack(root.path(), &["check", inside.to_str().unwrap()]).out;
    assert_lacks!(out, "dead-link");
}

#[test]
fn a_nested_tag_matches_its_parents() {
    let folder = tempfile::tempdir().unwrap();
    let text = "---\ntags: [ops/db/backup]\n---\n# One\n";
    write(folder.path(), "a.md", text);
    write(folder.path(), "b.md", "---\ntags: [Ops/ci]\n---\n# Two\n");
    write(folder.path(), "c.md", "---\ntags: [opsy]\n---\n# Three\n");
    let (_root, service) = serve_notes(folder.path());
    for (tags, expected) in [
        (json!(["ops"]), vec!["a", "b"]),
        (json!(["OPS/db"]), vec!["a"]),
        (json!(["ops/db/backup"]), vec!["a"]),
        (json!(["ops", "ops/ci"]), vec!["b"]),
        (json!(["op"]), vec![]),
        (json!(["backup"]), vec![]),
    ] {
        assert_eq!(query(&service, json!({ "tags": tags })), expected, "{tags}");
    }
}

#[test]
fn files_that_are_not_read_are_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    write(inside, "a.md", "# Deploy on Mondays\n");
    let content = "# Deploy on Fridays\n\nSee [Mondays](a.md).\n";
    write(inside, "a.markdown", content);
    let content = "# Deploy by hand\n\nSee [Fridays](a.markdown).\n";
    write(inside, "b.markdown", content);
    let (root, service) = serve_notes(inside);
    assert_lacks!(problems(&service), "not read");
    for name in ["a.txt", "sub/b.TXT", "c.org", "d.png"] {
        write(inside, name, "x");
    }
    write(inside, "e.markdown", "# Deploy never\n");
    let found = query(&service, json!({ "query": "deploy" }));
    assert_eq!(found, ["a", "a@2", "b", "e"]);
    let links = |id: &str| get(&service, id)["links"][0]["to_id"].clone();
    assert_eq!((links("a@2"), links("b")), (json!("a"), json!("a@2")));
    let text = "3 files are not read: 2 .txt, 1 .org; notes are .md or .markdown files";
    assert_contains!(problems(&service), text);
    assert_contains!(ack(root.path(), &["doctor"]).out, "3 files are not read");
}

#[test]
fn notes_that_codex_took_on_request_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    write(inside, "MEMORY.md", "# Task Group: Import\nRead twice.\n");
    let text = "# Tabs, no spaces\n\nDana asked for it.\n";
    write(inside, "extensions/ad_hoc/notes/tabs.md", text);
    let text = "extensions/ad_hoc/instructions.md";
    write(inside, text, "# How to write notes\n");
    let (root, service) = serve_notes(inside);
    let found = query(&service, json!({}));
    assert_eq!(found, ["MEMORY#import", "extensions/ad_hoc/notes/tabs"]);
    let words = ["scopes", "add", "x", "--store", inside.to_str().unwrap()];
    assert_contains!(ack(root.path(), &words).err, "is already scope");
}

#[test]
fn a_folder_of_everything_is_not_a_folder_of_notes() {
    let folder = tempfile::tempdir().unwrap();
    // Hard links to one file take no space.
    let file = folder.path().join("x");
    write_file(&file, "");
    let mut made = 0;
    for part in 0..4 {
        let inside = folder.path().join(part.to_string());
        fs::create_dir(&inside).unwrap();
        for number in 0..50_100 {
            fs::hard_link(&file, inside.join(number.to_string())).unwrap_or_else(|_| {
                // A file system limits the links to one file.
                write_file(inside.join(number.to_string()), "");
            });
            made += 1;
        }
    }
    assert!(made > 200_000);
    let root = Root::new();
    root.manifest("all", &format!("store = '{}'", folder.path().display()));
    let doctor = ack(root.path(), &["doctor"]).out;
    let said = "holds more than 200000 files and folders";
    assert_contains!(doctor, said, "scopes set all store=");
}
