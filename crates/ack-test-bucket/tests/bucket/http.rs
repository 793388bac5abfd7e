//! The REST interface, request by request.

use ack_test_bucket::{Bucket, Operation};

use crate::web::{ask, get, put};

#[test]
fn an_object_is_written_read_and_deleted() {
    let bucket = Bucket::start().unwrap();
    let headers = [("content-type", "text/plain"), ("x-amz-meta-by", "anna")];
    let written = ask(&bucket, "PUT", "a/b.txt", &headers, b"hello");
    assert_eq!(written.status, 200);
    assert!(written.header("etag").starts_with('"'));

    let read = get(&bucket, "a/b.txt");
    assert_eq!((read.status, read.text()), (200, "hello"));
    assert_eq!(read.header("etag"), written.header("etag"));
    assert_eq!(read.header("content-type"), "text/plain");
    assert_eq!(read.header("x-amz-meta-by"), "anna");
    assert!(read.header("last-modified").ends_with(" GMT"));

    let head = ask(&bucket, "HEAD", "a/b.txt", &[], b"");
    assert_eq!((head.status, head.header("content-length")), (200, "5"));
    assert_eq!(head.header("etag"), written.header("etag"));

    assert_eq!(ask(&bucket, "DELETE", "a/b.txt", &[], b"").status, 204);
    let gone = get(&bucket, "a/b.txt");
    assert_eq!((gone.status, gone.element("Code")), (404, "NoSuchKey"));
    assert_eq!(ask(&bucket, "HEAD", "a/b.txt", &[], b"").status, 404);
    assert_eq!(ask(&bucket, "DELETE", "a/b.txt", &[], b"").status, 204);
}

#[test]
fn the_test_reads_and_changes_objects_without_a_request() {
    let bucket = Bucket::start().unwrap();
    put(&bucket, "b", b"two");
    bucket.put("a", "one");
    assert_eq!(bucket.keys(), ["a", "b"]);
    assert_eq!(&bucket.get("b").unwrap()[..], b"two");
    assert_eq!(bucket.all_bytes(), b"onetwo");
    let before = get(&bucket, "a");
    assert!(bucket.damage("a", |bytes| bytes[0] = b'X'));
    let after = get(&bucket, "a");
    assert_eq!(after.text(), "Xne");
    assert_eq!(after.header("etag"), before.header("etag"));
    assert!(bucket.remove("a"));
    assert_eq!(get(&bucket, "a").status, 404);
}

#[test]
fn ranges_are_answered_with_those_bytes() {
    let bucket = Bucket::start().unwrap();
    bucket.put("digits", "0123456789");
    let part = |range| ask(&bucket, "GET", "digits", &[("range", range)], b"");
    let middle = part("bytes=2-4");
    assert_eq!((middle.status, middle.text()), (206, "234"));
    assert_eq!(middle.header("content-range"), "bytes 2-4/10");
    assert_eq!(part("bytes=7-").text(), "789");
    assert_eq!(part("bytes=-2").text(), "89");
    assert_eq!(part("bytes=8-99").header("content-range"), "bytes 8-9/10");
    let beyond = part("bytes=10-12");
    assert_eq!(
        (beyond.status, beyond.element("Code")),
        (416, "InvalidRange")
    );
    assert_eq!(beyond.header("content-range"), "bytes */10");
    assert_eq!(part("bytes=1-2,4-5").status, 200);
    let head = ask(&bucket, "HEAD", "digits", &[("range", "bytes=2-4")], b"");
    assert_eq!((head.status, head.header("content-length")), (206, "3"));
}

#[test]
fn a_write_may_require_a_new_key() {
    let bucket = Bucket::start().unwrap();
    let create = |body: &[u8]| ask(&bucket, "PUT", "HEAD.json", &[("if-none-match", "*")], body);
    assert_eq!(create(b"first").status, 200);
    let second = create(b"second");
    assert_eq!(
        (second.status, second.element("Code")),
        (412, "PreconditionFailed")
    );
    assert_eq!(get(&bucket, "HEAD.json").text(), "first");
    let other = ask(
        &bucket,
        "PUT",
        "HEAD.json",
        &[("if-none-match", "\"x\"")],
        b"",
    );
    assert_eq!(other.status, 501);
}

#[test]
fn a_write_may_require_an_unchanged_object() {
    let bucket = Bucket::start().unwrap();
    let swap =
        |etag: &str, body: &[u8]| ask(&bucket, "PUT", "HEAD.json", &[("if-match", etag)], body);
    let missing = swap("\"x\"", b"");
    assert_eq!(
        (missing.status, missing.element("Code")),
        (404, "NoSuchKey")
    );
    let first = put(&bucket, "HEAD.json", b"1").header("etag").to_owned();
    let second = swap(&first, b"2");
    assert_eq!(second.status, 200);
    assert_eq!(swap(&first, b"3").status, 412);
    assert_eq!(
        swap(second.header("etag").trim_matches('"'), b"4").status,
        200
    );
    assert_eq!(get(&bucket, "HEAD.json").text(), "4");
    let delete = ask(&bucket, "DELETE", "HEAD.json", &[("if-match", &first)], b"");
    assert_eq!(delete.status, 412);
}

#[test]
fn of_many_writers_that_want_the_same_version_one_wins() {
    let bucket = Bucket::start().unwrap();
    for _ in 0..10 {
        let etag = put(&bucket, "HEAD.json", b"old").header("etag").to_owned();
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let writers = (0..8).map(|writer| {
                let (bucket, etag) = (&bucket, &etag);
                scope.spawn(move || {
                    let body = format!("by {writer}");
                    let headers = [("if-match", etag.as_str())];
                    ask(bucket, "PUT", "HEAD.json", &headers, body.as_bytes()).status
                })
            });
            let writers: Vec<_> = writers.collect();
            writers
                .into_iter()
                .map(|writer| writer.join().unwrap())
                .collect()
        });
        let won = statuses.iter().filter(|status| **status == 200).count();
        let lost = statuses.iter().filter(|status| **status == 412).count();
        assert_eq!((won, lost), (1, 7), "{statuses:?}");
    }
}

#[test]
fn reads_have_conditions_too() {
    let bucket = Bucket::start().unwrap();
    let etag = put(&bucket, "a", b"text").header("etag").to_owned();
    let read = |name, value: &str| ask(&bucket, "GET", "a", &[(name, value)], b"");
    let unchanged = read("if-none-match", &etag);
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    assert_eq!(read("if-none-match", "\"other\"").status, 200);
    assert_eq!(read("if-match", &etag).status, 200);
    assert_eq!(read("if-match", "\"other\"").status, 412);
    let modified = get(&bucket, "a").header("last-modified").to_owned();
    assert_eq!(read("if-modified-since", &modified).status, 304);
    assert_eq!(read("if-unmodified-since", &modified).status, 200);
    let long_ago = "Mon, 01 Jan 2024 00:00:00 GMT";
    assert_eq!(read("if-modified-since", long_ago).status, 200);
    assert_eq!(read("if-unmodified-since", long_ago).status, 412);
}

#[test]
fn a_list_has_pages_prefixes_and_a_beginning() {
    let bucket = Bucket::start().unwrap();
    for key in ["a/1", "a/2", "a/x/1", "a/x/2", "a/y", "b & <c>"] {
        bucket.put(key, key.to_owned());
    }
    let list = |query: &str| get(&bucket, &format!("?list-type=2&{query}"));
    let all = list("");
    assert_eq!(
        all.elements("Key"),
        ["a/1", "a/2", "a/x/1", "a/x/2", "a/y", "b &amp; &lt;c&gt;"]
    );
    assert_eq!(all.elements("Size"), ["3", "3", "5", "5", "3", "7"]);
    assert_eq!(all.element("IsTruncated"), "false");

    let below = list("prefix=a/&delimiter=/");
    assert_eq!(below.elements("Key"), ["a/1", "a/2", "a/y"]);
    assert!(
        below
            .text()
            .contains("<CommonPrefixes><Prefix>a/x/</Prefix></CommonPrefixes>")
    );
    assert_eq!(below.element("KeyCount"), "4");
    assert_eq!(
        list("prefix=a/&start-after=a/2").elements("Key"),
        ["a/x/1", "a/x/2", "a/y"]
    );
    let url = list("encoding-type=url&prefix=b");
    assert_eq!(url.elements("Key"), ["b%20%26%20%3Cc%3E"]);

    let mut seen = Vec::new();
    let mut token = String::new();
    for page in 0.. {
        assert!(page < 4, "the pages do not end");
        let answer = list(&format!("prefix=a/&delimiter=/&max-keys=1{token}"));
        seen.extend(
            answer
                .elements("Prefix")
                .into_iter()
                .skip(1)
                .map(str::to_owned),
        );
        seen.extend(answer.elements("Key").into_iter().map(str::to_owned));
        let next = answer.element("NextContinuationToken");
        if answer.element("IsTruncated") == "false" {
            assert_eq!(next, "");
            break;
        }
        token = format!("&continuation-token={}", next.replace('%', "%25"));
    }
    assert_eq!(seen, ["a/1", "a/2", "a/x/", "a/y"]);
    assert_eq!(list("max-keys=0").element("KeyCount"), "0");
    assert_eq!(list("max-keys=x").status, 400);
    assert_eq!(list("continuation-token=x").status, 400);
    bucket.set_page_size(2);
    assert_eq!(list("").elements("Key"), ["a/1", "a/2"]);
}

#[test]
fn a_multipart_upload_appears_when_it_is_complete() {
    let bucket = Bucket::start().unwrap();
    let large = vec![b'x'; 5 << 20];
    let begun = ask(&bucket, "POST", "big?uploads", &[], b"");
    let id = begun.element("UploadId");
    let part = |number: u32, body: &[u8]| {
        let answer = put(
            &bucket,
            &format!("big?partNumber={number}&uploadId={id}"),
            body,
        );
        answer.header("etag").to_owned()
    };
    let (first, second) = (part(1, &large), part(2, b"the end"));
    assert_eq!(get(&bucket, "big").status, 404);
    assert_eq!(bucket.unfinished(), ["big"]);

    let complete = |parts: &[(u32, &str)]| {
        let parts: String = parts
            .iter()
            .map(|(number, etag)| {
                format!("<Part><ETag>{etag}</ETag><PartNumber>{number}</PartNumber></Part>")
            })
            .collect();
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        ask(
            &bucket,
            "POST",
            &format!("big?uploadId={id}"),
            &[("if-none-match", "*")],
            body.as_bytes(),
        )
    };
    assert_eq!(
        complete(&[(2, &second), (1, &first)]).element("Code"),
        "InvalidPartOrder"
    );
    assert_eq!(
        complete(&[(1, &first), (3, &second)]).element("Code"),
        "InvalidPart"
    );
    assert_eq!(
        complete(&[(1, &first), (2, "\"other\"")]).element("Code"),
        "InvalidPart"
    );
    assert_eq!(complete(&[]).element("Code"), "MalformedXML");
    bucket.put("big", "somebody else's");
    assert_eq!(complete(&[(1, &first), (2, &second)]).status, 412);
    bucket.remove("big");
    let done = complete(&[(1, &first), (2, &second)]);
    assert_eq!(done.status, 200);
    assert!(done.element("ETag").ends_with("-2\""));
    assert_eq!(bucket.get("big").unwrap().len(), large.len() + 7);
    assert_eq!(
        complete(&[(1, &first), (2, &second)]).element("Code"),
        "NoSuchUpload"
    );
    assert!(bucket.unfinished().is_empty());
}

#[test]
fn an_upload_can_be_aborted_and_small_parts_are_refused() {
    let bucket = Bucket::start().unwrap();
    let begun = ask(&bucket, "POST", "big?uploads", &[], b"");
    let id = begun.element("UploadId");
    let part = |number: u32| {
        put(
            &bucket,
            &format!("big?partNumber={number}&uploadId={id}"),
            b"tiny",
        )
    };
    let etags = [part(1), part(2)].map(|answer| answer.header("etag").to_owned());
    let parts = format!(
        "<Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part><Part><PartNumber>2</PartNumber><ETag>{}</ETag></Part>",
        etags[0], etags[1]
    );
    let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    let upload = format!("big?uploadId={id}");
    let refused = ask(&bucket, "POST", &upload, &[], body.as_bytes());
    assert_eq!(refused.element("Code"), "EntityTooSmall");
    assert!(
        String::from_utf8(bucket.all_bytes())
            .unwrap()
            .contains("tiny")
    );
    assert_eq!(ask(&bucket, "DELETE", &upload, &[], b"").status, 204);
    assert_eq!(part(3).element("Code"), "NoSuchUpload");
    assert!(bucket.all_bytes().is_empty());
}

#[test]
fn objects_are_copied_and_deleted_in_bulk() {
    let bucket = Bucket::start().unwrap();
    let written = ask(
        &bucket,
        "PUT",
        "a%20b",
        &[("x-amz-meta-by", "anna")],
        b"text",
    );
    let source = format!("/{}/a%20b", bucket.name());
    let copy = |key, headers: &[(&str, &str)]| {
        let headers = [&[("x-amz-copy-source", source.as_str())], headers].concat();
        ask(&bucket, "PUT", key, &headers, b"")
    };
    let copied = copy("c", &[]);
    assert_eq!(copied.element("ETag"), written.header("etag"));
    assert_eq!(get(&bucket, "c").header("x-amz-meta-by"), "anna");
    assert_eq!(copy("c", &[("if-none-match", "*")]).status, 412);
    assert_eq!(bucket.count(Operation::Copy), 2);

    let body = "<Delete><Object><Key>a b</Key></Object><Object><Key>none</Key></Object></Delete>";
    let deleted = ask(&bucket, "POST", "?delete", &[], body.as_bytes());
    assert_eq!(deleted.elements("Key"), ["a b", "none"]);
    assert_eq!(bucket.keys(), ["c"]);
    let broken = ask(&bucket, "POST", "?delete", &[], b"<Delete>");
    assert_eq!(
        (broken.status, broken.element("Code")),
        (400, "MalformedXML")
    );
}

#[test]
fn missing_things_are_reported_with_the_codes_of_s3() {
    let bucket = Bucket::start().unwrap();
    bucket.put("a", "text");
    assert_eq!(get(&bucket, "a?acl").element("Code"), "NotImplemented");
    assert_eq!(get(&bucket, "a?versionId=1").status, 501);
    let url = format!("{}/another/a", bucket.endpoint());
    let agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .new_agent();
    let mut other = agent.get(url).call().unwrap();
    assert_eq!(other.status().as_u16(), 404);
    assert!(
        other
            .body_mut()
            .read_to_string()
            .unwrap()
            .contains("<Code>NoSuchBucket</Code>")
    );
}

#[test]
fn the_log_records_each_request_with_its_bytes() {
    let bucket = Bucket::start().unwrap();
    put(&bucket, "a", b"0123456789");
    ask(&bucket, "GET", "a", &[("range", "bytes=2-4")], b"");
    get(&bucket, "?list-type=2&prefix=b");
    get(&bucket, "none");
    let lines: Vec<String> = bucket
        .requests()
        .iter()
        .map(|one| {
            let range = one.range.as_deref().unwrap_or("-");
            let (method, key, query) = (&one.method, &one.key, &one.query);
            format!(
                "{method} {key} {query} {range} {:?} in {}",
                one.status, one.bytes_in
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "PUT a  - Some(200) in 10",
            "GET a  bytes=2-4 Some(206) in 0",
            "GET  list-type=2&prefix=b - Some(200) in 0",
            "GET none  - Some(404) in 0",
        ]
    );
    assert_eq!(bucket.requests()[1].bytes_out, 3);
    let traffic = bucket.traffic();
    assert_eq!((traffic.requests, traffic.bytes_in), (4, 10));
    assert_eq!(bucket.count(Operation::Get), 2);
    bucket.reset_log();
    assert_eq!(bucket.traffic().requests, 0);
}
