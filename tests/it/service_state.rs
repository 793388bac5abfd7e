//! What a server states about its memories when a client connects over HTTP, where each client asks
//! again and the result is cached briefly.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;

use crate::http::Http;
use crate::support::{Root, Sql, unreviewed};

fn instructions(http: &Http) -> String {
    let client = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" },
    });
    let hello = http.request("initialize", client);
    hello["result"]["instructions"].as_str().unwrap().to_owned()
}

#[test]
fn instructions_over_http_are_cached_for_five_seconds() {
    let root = Root::new();
    let store = root.store("alpha", &[unreviewed("a-1", "Waits")]);
    let http = Http::start(root.path());
    let asked = Instant::now();
    let first = instructions(&http);
    let waits = "No memory is approved yet: 1 waits until a person reviews it";
    assert_contains!(first, waits);
    let connection = Connection::open(&store).unwrap();
    connection.sql("UPDATE memories SET status = 'approved'");
    drop(connection);
    // A burst of clients causes one read of the stores.
    let soon = instructions(&http);
    let early = asked.elapsed() < Duration::from_secs(5);
    assert!(!early || soon == first, "{soon}");
    std::thread::sleep(Duration::from_millis(5_100));
    assert_lacks!(instructions(&http), "No memory is approved yet");
}
