//! The switches, seen by a client.

use std::time::{Duration, Instant};

use ack_test_bucket::{Access, Action, Bucket, FaultRule, Operation};

use crate::web::{ask, get, put, read, request};

fn with_text() -> Bucket {
    let bucket = Bucket::start().unwrap();
    bucket.put("a", "0123456789");
    bucket
}

fn statuses(bucket: &Bucket, count: usize) -> Vec<u16> {
    (0..count).map(|_| get(bucket, "a").status).collect()
}

#[test]
fn failures_are_answered_with_503() {
    let bucket = with_text();
    bucket.set_failures(FaultRule::Next(2));
    assert_eq!(statuses(&bucket, 4), [503, 503, 200, 200]);
    bucket.set_failures(FaultRule::Every(3));
    assert_eq!(statuses(&bucket, 6), [200, 200, 503, 200, 200, 503]);
    bucket.set_failures(FaultRule::Always);
    let refused = put(&bucket, "b", b"");
    assert_eq!((refused.status, refused.element("Code")), (503, "SlowDown"));
    assert_eq!(bucket.keys(), ["a"]);
    bucket.clear_faults();
    assert_eq!(statuses(&bucket, 1), [200]);
}

#[test]
fn each_request_is_delayed_once() {
    let bucket = with_text();
    bucket.set_delay(Duration::from_millis(60));
    let began = Instant::now();
    statuses(&bucket, 2);
    assert!(
        began.elapsed() >= Duration::from_millis(120),
        "{:?}",
        began.elapsed()
    );
    let requests = bucket.requests();
    assert!(
        requests
            .iter()
            .all(|one| one.duration >= Duration::from_millis(60)),
        "{requests:?}"
    );
}

#[test]
fn limited_bandwidth_is_shared() {
    let bucket = Bucket::start().unwrap();
    bucket.put("big", vec![b'x'; 200_000]);
    bucket.set_bandwidth(Some(1_000_000));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(get(&bucket, "big").body.len(), 200_000));
        }
    });
    assert!(
        began.elapsed() >= Duration::from_millis(395),
        "{:?}",
        began.elapsed()
    );
    let began = Instant::now();
    put(&bucket, "up", &vec![b'x'; 100_000]);
    assert!(
        began.elapsed() >= Duration::from_millis(95),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_cut_body_ends_early() {
    let bucket = Bucket::start().unwrap();
    bucket.put("big", vec![b'x'; 200_000]);
    bucket.set_cut(Some(100_000));
    let answer = request(&bucket, "GET", "big", &[], b"").unwrap();
    assert_eq!(answer.headers()["content-length"], "200000");
    read(answer.into_body()).unwrap_err();
    assert_eq!(bucket.requests()[0].bytes_out, 100_000);
    bucket.put("small", "text");
    assert_eq!(get(&bucket, "small").text(), "text");
}

#[test]
fn a_frozen_server_answers_when_it_thaws() {
    let bucket = with_text();
    bucket.freeze();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| get(&bucket, "a"));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        assert_eq!(bucket.requests()[0].status, None);
        bucket.thaw();
        assert_eq!(waiting.join().unwrap().status, 200);
    });
}

#[test]
fn a_denied_list_leaves_reads() {
    let bucket = with_text();
    bucket.set_deny_list(true);
    let list = get(&bucket, "?list-type=2");
    assert_eq!((list.status, list.element("Code")), (403, "AccessDenied"));
    assert_eq!(get(&bucket, "a").status, 200);
}

#[test]
fn a_server_can_ignore_conditions() {
    let bucket = with_text();
    bucket.set_ignore_conditions(true);
    let create = [("if-none-match", "*")];
    assert_eq!(ask(&bucket, "PUT", "a", &create, b"lost").status, 200);
    let swap = [("if-match", "\"old\"")];
    assert_eq!(ask(&bucket, "PUT", "a", &swap, b"lost too").status, 200);
    assert_eq!(get(&bucket, "a").text(), "lost too");
}

#[test]
fn conditional_writes_can_conflict() {
    let bucket = with_text();
    bucket.set_conflicts(FaultRule::Next(1));
    assert_eq!(put(&bucket, "b", b"no condition").status, 200);
    let create = [("if-none-match", "*")];
    let refused = ask(&bucket, "PUT", "c", &create, b"");
    assert_eq!(
        (refused.status, refused.element("Code")),
        (409, "ConditionalRequestConflict")
    );
    assert_eq!(ask(&bucket, "PUT", "c", &create, b"").status, 200);
}

#[test]
fn requests_must_be_signed_with_the_right_key() {
    let bucket = with_text();
    let signed = |id: &str| {
        format!("AWS4-HMAC-SHA256 Credential={id}/20260101/us-east-1/s3/aws4_request, Signature=x")
    };
    let status = |method, header: Option<&str>| {
        let header = header.map(signed);
        let headers: Vec<(&str, &str)> = header
            .iter()
            .map(|header| ("authorization", header.as_str()))
            .collect();
        ask(&bucket, method, "a", &headers, b"").status
    };
    bucket.set_access(Access::Key("anna".into()));
    assert_eq!(status("GET", None), 403);
    assert_eq!(status("GET", Some("bert")), 403);
    assert_eq!(status("GET", Some("anna")), 200);
    bucket.set_access(Access::PublicRead("anna".into()));
    assert_eq!(status("GET", None), 200);
    assert_eq!(status("PUT", None), 403);
    assert_eq!(status("GET", Some("bert")), 403);
    assert_eq!(status("PUT", Some("anna")), 200);
    assert_eq!(bucket.requests()[2].key_id.as_deref(), Some("anna"));
}

#[test]
fn one_request_can_be_intercepted() {
    let bucket = with_text();
    bucket.intercept(|request| match (request.operation, request.key.as_str()) {
        (Operation::Put, "refused") => Action::Refuse(500),
        (Operation::Put, "closed") => Action::Close,
        (Operation::Put, "lost") => Action::LoseAnswer,
        (Operation::Get, "a") => Action::Cut(3),
        _ => Action::Answer,
    });
    assert_eq!(put(&bucket, "refused", b"x").status, 500);
    request(&bucket, "PUT", "closed", &[], b"x").unwrap_err();
    request(&bucket, "PUT", "lost", &[], b"x").unwrap_err();
    let cut = request(&bucket, "GET", "a", &[], b"").unwrap();
    read(cut.into_body()).unwrap_err();
    assert_eq!(put(&bucket, "kept", b"x").status, 200);
    assert_eq!(bucket.keys(), ["a", "kept", "lost"]);
}

#[test]
fn a_hanging_request_does_not_hold_up_others() {
    let bucket = with_text();
    bucket.intercept(|request| match request.operation {
        Operation::Put => Action::Hang,
        _ => Action::Answer,
    });
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_millis(200)))
        .build()
        .new_agent();
    let url = format!("{}/{}/b", bucket.endpoint(), bucket.name());
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| agent.put(url).send(&b"x"[..]).map(|_| ()));
        assert_eq!(get(&bucket, "a").status, 200);
        hanging.join().unwrap().unwrap_err();
    });
    assert_eq!(bucket.keys(), ["a"]);
}

#[test]
fn a_closed_bucket_refuses_connections_and_keeps_its_objects() {
    let mut bucket = with_text();
    bucket.close();
    request(&bucket, "GET", "a", &[], b"").err().unwrap();
    bucket.open().unwrap();
    assert_eq!(get(&bucket, "a").status, 200);
    let address = bucket.address();
    drop(bucket);
    std::net::TcpStream::connect(address).unwrap_err();
}

#[test]
fn an_aborted_write_leaves_nothing() {
    use std::io::Write as _;
    let bucket = Bucket::start().unwrap();
    let mut stream = std::net::TcpStream::connect(bucket.address()).unwrap();
    let head = "PUT /memories/a HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nonly a part";
    stream.write_all(head.as_bytes()).unwrap();
    drop(stream);
    let began = Instant::now();
    while bucket.requests().is_empty() && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    get(&bucket, "a");
    assert_eq!(bucket.requests()[0].status, None);
    assert!(bucket.keys().is_empty());
}
