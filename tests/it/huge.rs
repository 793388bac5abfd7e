//! Values of many megabytes: only a limited part is read, and omissions are reported.

use std::process::Stdio;

use ack_api::{NoteKind, QueryRequest};
use rusqlite::Connection;
use serde_json::json;

use crate::mcp::{Server, command};
use crate::store_support::{fetched, get, has_note, ids, words};
use crate::support::{Root, Sql, memory, read_text, write_file};

/// A store with a narrative of so many MiB, and one of ordinary length.
fn store(mebibytes: usize) -> Root {
    let root = Root::new();
    let small = json!({ "narrative": "few words" });
    let memories = [
        memory("huge", "A huge marker", json!({ "facts": ["kept"] })),
        memory("small", "A small marker", small),
    ];
    let path = root.store("one", &memories);
    let connection = Connection::open(&path).unwrap();
    // 16 bytes per repetition.
    let text = format!("replace(hex(zeroblob({})), '00', 'sixteen letters ')", mebibytes << 16);
    connection
        .sql(&format!("UPDATE memories SET narrative = 'zebra ' || {text} WHERE id = 'huge'"));
    root
}

#[test]
fn a_large_value_is_truncated_and_its_row_is_reported() {
    let root = store(20);
    let service = root.service();
    let answer = service.query_memories(&words("zebra")).unwrap();
    assert_eq!(ids(&answer), ["huge"], "its beginning is found");
    assert!(has_note(&answer, NoteKind::RepairedValues), "{:?}", answer.notes);
    assert_eq!(service.query_memories(&words("marker")).unwrap().total, 2);
    assert_eq!(fetched(&service, "huge")["facts"], json!(["kept"]));
    // A change to another field of such a row is seen.
    let writer = Connection::open(root.scope_folder("one").join("memory.db")).unwrap();
    writer.sql("UPDATE memories SET title = 'giraffe' WHERE id = 'huge'");
    let shown = ids(&service.query_memories(&words("giraffe")).unwrap());
    assert_eq!(shown, ["huge"]);
    writer.sql("UPDATE memories SET status = 'rejected' WHERE id = 'huge'");
    let by_words = QueryRequest { mode: Some(ack_api::Mode::Lexical), ..words("giraffe") };
    assert!(ids(&service.query_memories(&by_words).unwrap()).is_empty());
    let shown = get(&service, "huge").unwrap_err().code();
    assert_eq!(shown, "memory_not_served");
}

/// The most memory that a server took for a few answers, in MiB. Its scope has two memories with
/// the word `marker`, one of them `huge`.
fn peak(root: &Root) -> u64 {
    let mut command = command(root.path());
    command.stderr(Stdio::null());
    let mut server = Server::spawn(command);
    server.initialize("2025-06-18");
    for (tool, arguments) in [
        ("query_memories", json!({ "query": "marker" })),
        ("get_memory", json!({ "id": "huge", "include": ["timeline", "history", "links"] })),
        ("list_scopes", json!({})),
        ("get_context", json!({})),
    ] {
        let answer = server.call(tool, arguments);
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
        if tool == "query_memories" {
            assert_eq!(answer["structuredContent"]["total"], 2, "{answer}");
        }
    }
    let status = read_text(format!("/proc/{}/status", server.id()));
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() >> 10
}

#[test]
fn an_oversized_value_takes_no_memory() {
    let (little, much) = (peak(&store(0)), peak(&store(200)));
    println!("peak: {little} MiB, with a value of 200 MiB {much} MiB");
    assert!(much < little + 60, "{much} MiB where it takes {little} without the value");
}

#[test]
fn a_note_of_nothing_but_signs_takes_little_memory() {
    let notes = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let huge = format!("# A huge marker\n\n{text}\n");
        write_file(folder.path().join("huge.md"), huge);
        write_file(folder.path().join("small.md"), "# A small marker\n");
        let root = Root::new();
        let store = folder.path().display();
        let settings = format!("store = '{store}'\nunreviewed = 'approved'");
        root.manifest("one", &settings);
        peak(&root)
    };
    let little = notes("");
    for sign in ["[", "…", "é", "[[", "<!--", "`"] {
        let much = notes(&sign.repeat((7 << 20) / sign.len()));
        println!("peak: {little} MiB, with 7 MiB of {sign} {much} MiB");
        assert!(much < little + 120, "{sign}: {much} MiB where it takes {little}");
    }
}
