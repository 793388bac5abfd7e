//! Upstream servers that send garbage, hang, flood and die, and how the others go on.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{OURS, Site, is_alive, listed, names, text, until};

#[test]
fn garbage_is_skipped_and_a_flood_ends_the_connection() {
    let said = r#"garbage = "page_garbage", flood = "page_flood""#;
    let site = Site::new("plain", said, "");
    let mut server = site.serve();
    let found = server.call("page_garbage", json!({}));
    assert_eq!(text(&found), "after garbage");
    let flooded = server.fail("page_flood", json!({}));
    assert_eq!(flooded.code, "upstream_failed");
    assert_contains!(flooded.message, "more than 8388608 bytes before an answer");
    until("it is not started again", || server.call("page_garbage", json!({}))["isError"] != true);
    assert_eq!(site.lines("starts").len(), 2);
}

#[test]
fn a_slow_call_times_out_and_is_cancelled() {
    let said = r#"hang = "page_hang", garbage = "page_garbage""#;
    let site = Site::new("plain", said, "timeout_ms = 400");
    let mut server = site.serve();
    listed(&mut server);
    let started = Instant::now();
    let late = server.fail("page_hang", json!({}));
    assert_eq!(late.code, "upstream_timeout");
    let expected = "did not answer within 400 ms";
    assert!(late.message.ends_with(expected), "{late:?}");
    assert!((Duration::from_millis(350)..Duration::from_secs(3)).contains(&started.elapsed()));
    until("the call is not taken back", || site.lines("cancelled").len() == 1);
    // It answers other calls, so it is left alone.
    let found = server.call("page_garbage", json!({}));
    assert_eq!(text(&found), "after garbage");
    assert_eq!(site.lines("starts").len(), 1);
}

#[test]
fn an_unresponsive_server_is_restarted() {
    let text = r#"stuck = "page_stuck", garbage = "page_garbage""#;
    let site = Site::new("plain", text, "timeout_ms = 1000");
    let mut server = site.serve();
    assert_eq!(server.fail("page_stuck", json!({})).code, "upstream_timeout");
    until("it is not started again", || site.lines("starts").len() == 2);
    assert!(!is_alive(site.processes()[0]));
    until("it does not answer", || server.call("page_garbage", json!({}))["isError"] != true);
}

#[test]
fn our_tools_answer_regardless_of_upstream_servers() {
    for mode in ["mute", "babbling", "broken"] {
        let site = Site::new(mode, r#"echo = "page_echo""#, "");
        let mut server = site.serve();
        let started = Instant::now();
        assert_eq!(names(&mut server), OURS, "{mode}");
        assert!(started.elapsed() < Duration::from_secs(8), "{mode}: {:?}", started.elapsed());
        let waiting: Vec<i64> = (0..4)
            .map(|_| server.send("tools/call", json!({ "name": "page_echo", "arguments": {} })))
            .collect();
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let asked = Instant::now();
            let found = server.call("query_memories", json!({ "query": "deadlock" }));
            assert_eq!(found["isError"], false);
            slowest = slowest.max(asked.elapsed());
        }
        assert!(slowest < Duration::from_secs(6), "{mode}: {slowest:?}");
        drop(waiting);
    }
}

#[test]
fn a_hanging_server_is_waited_for_at_most_its_timeout() {
    let site = Site::new("mute", r#"echo = "page_echo""#, "timeout_ms = 500");
    let mut server = site.serve();
    // The call itself waits no longer.
    until("the reason is not reported", || {
        let absent = server.fail("page_echo", json!({}));
        assert_eq!(absent.code, "upstream_unavailable");
        absent.message.contains("it did not start within 500 ms")
    });
    until("it is not tried again", || site.lines("starts").len() >= 2);
    let processes = site.processes();
    until("the first process is still there", || !is_alive(processes[0]));
}

#[test]
fn a_crashed_server_is_restarted_with_backoff() {
    let site = Site::new("plain", r#"die = "page_die", garbage = "page_garbage""#, "");
    let mut server = site.serve();
    let mut pauses = Vec::new();
    for round in 1..=2 {
        until("it is not there", || server.call("page_garbage", json!({}))["isError"] != true);
        let died = server.fail("page_die", json!({}));
        assert_eq!(died.code, "upstream_failed", "{died:?}");
        let since = Instant::now();
        // On a busy machine it may be back before anybody has looked.
        until("it is still there", || {
            let away = server.call("page_garbage", json!({}));
            (away["isError"] == true && text(&away).contains("giving up"))
                || site.lines("starts").len() > round
        });
        // Its tools stay listed while it is away for a while.
        assert!(names(&mut server).contains(&"page_garbage".to_owned()));
        until("it is not started again", || site.lines("starts").len() == round + 1);
        pauses.push(since.elapsed());
    }
    assert!(pauses[0] >= Duration::from_millis(900), "{pauses:?}");
    assert!(pauses[1] >= Duration::from_millis(1_900), "{pauses:?}");
    // Never more than one at a time.
    let processes = site.processes();
    assert!(processes[..2].iter().all(|process| !is_alive(*process)));
}

/// A figure of a process's memory from the system, in KiB.
fn kibibytes(process: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_default();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

#[test]
fn a_server_that_floods_us_is_disconnected_and_takes_no_memory() {
    for flood in ["pester", "interview", "announce"] {
        let tools = format!(r#"{flood} = "page_flood", garbage = "page_garbage""#);
        let site = Site::new("plain", &tools, "timeout_ms = 60000");
        let mut server = site.serve();
        let found = server.call("page_garbage", json!({}));
        assert_eq!(text(&found), "after garbage");
        server.call("query_memories", json!({ "query": "deadlock" }));
        let (resident, peak) = (kibibytes(server.id(), "VmRSS"), kibibytes(server.id(), "VmHWM"));
        let flooded = server.fail("page_flood", json!({}));
        assert_eq!(flooded.code, "upstream_failed", "{flood}: {flooded:?}");
        let after = kibibytes(server.id(), "VmHWM");
        println!("{flood}: {resident} KiB resident, {peak} at its peak before, {after} after");
        assert!(after <= peak.max(resident + (40 << 10)), "{flood}: {resident} KiB became {after}");
        let reasons = ["notifications in a minute", "bytes before an answer"];
        // On a busy machine it may be back before anybody has looked.
        until("the reason is not reported", || {
            let away = server.call("page_garbage", json!({}));
            reasons.iter().any(|reason| text(&away).contains(reason))
                || site.lines("starts").len() > 1
        });
        let found = &server.call("query_memories", json!({ "query": "deadlock" }))["isError"];
        assert_eq!(*found, false);
        until("it is not started again", || {
            server.call("page_garbage", json!({}))["isError"] != true
        });
    }
}
