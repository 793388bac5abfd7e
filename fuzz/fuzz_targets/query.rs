//! Arguments of `query_memories`, from JSON to the pages of a search. Input that is not a JSON
//! object is the query itself.
//!
//! Checked: a page keeps its limits of results and tokens; rejected and other private memories are
//! in no answer; the same question has the same answer; following the cursors shows no memory
//! twice, whatever was folded, and ends.

#![no_main]

use std::collections::HashSet;

use ack_api::memory::{Memory, Status};
use ack_api::{ErrorCode, QueryRequest, text};
use ack_memory::internal::arguments;
use ack_memory_fuzz::{PRIVATE, SECRET, service};
use ack_search::analysis::{self, TextRole};
use ack_search::analyzer::{Analyzer, unpack_term};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

/// How many pages are followed if each has few results, and where they must end.
const PAGE_SIZE: usize = 6;
const PAGES: usize = 60;

fuzz_target!(|data: &[u8]| {
    let values = match serde_json::from_slice(data) {
        Ok(Value::Object(values)) => values,
        _ => Map::from_iter([("query".to_owned(), json!(String::from_utf8_lossy(data)))]),
    };
    let request: QueryRequest = match arguments("query_memories", values) {
        Ok(request) => request,
        Err(error) => return refused(&error),
    };
    analyzed(request.query.as_deref().unwrap_or_default());
    let first = match service().query_memories(&request) {
        Ok(answer) => answer,
        Err(error) => return refused(&error),
    };
    let again = service().query_memories(&request).unwrap();
    assert_eq!(again, first);

    let limit = request.limit.unwrap_or(10) as usize;
    let filter = request.status.unwrap_or_default();
    let mut shown: HashSet<(String, String)> = HashSet::new();
    let mut page = first;
    for number in 0.. {
        assert!(page.results.len() <= limit, "{} of {limit}", page.results.len());
        let written = serde_json::to_string(&page).unwrap();
        let bound = request.max_tokens.unwrap_or(4_000) as usize;
        assert!(
            text::tokens(&written) <= bound,
            "{} tokens of {bound}: {written}",
            text::tokens(&written)
        );
        let private = page.searched.scopes.iter().any(|scope| scope == PRIVATE);
        assert!(!private || request.scope.is_some());
        for hit in &page.results {
            assert_ne!(hit.status, Status::Rejected);
            assert!(filter.allows(hit.status), "{:?} for {filter:?}", hit.status);
            let names = [&hit.id]
                .into_iter()
                .chain(&hit.superseded_by)
                .chain(hit.also.iter().map(|also| &also.id));
            for name in names {
                assert!(!name.starts_with("rejected"), "{name}");
                assert!(private || !name.starts_with("private"), "{name}");
            }
            let texts = [hit.title.as_str()]
                .into_iter()
                .chain(hit.facts.iter().map(String::as_str))
                .chain(hit.narrative.as_deref());
            assert!(private || texts.into_iter().all(|text| !text.contains(SECRET)));
            let also = hit.also.iter().map(|also| (also.scope.clone(), also.id.clone()));
            for place in [(hit.scope.clone(), hit.id.clone())].into_iter().chain(also) {
                assert!(shown.insert(place.clone()), "{place:?} twice");
            }
        }
        // A cursor of the fuzzer's own may begin anywhere; the pages from there on are checked too.
        let Some(cursor) = page.next_cursor.take() else { break };
        if limit < 20 && number >= PAGE_SIZE {
            break;
        }
        assert!(number < PAGES, "pages without an end");
        assert!(!page.results.is_empty(), "a page that leads on shows something");
        let next = QueryRequest {
            cursor: Some(cursor),
            ..request.clone()
        };
        page = service().query_memories(&next).unwrap();
    }
});

/// An error is useful to its reader.
fn refused(error: &ack_memory::Error) {
    let body = error.body();
    assert!(
        !body.message.is_empty() && !body.message.contains(char::is_control),
        "{:?}",
        body.message
    );
    assert!(body.message.len() < 4_000, "{} bytes", body.message.len());
    assert_ne!(error.code(), ErrorCode::InternalError);
}

/// Terms are never empty, contain no space, and are numbered in order; analyzing a memory again
/// gives the same result.
fn analyzed(query: &str) {
    for role in [TextRole::Query, TextRole::Document] {
        analysis::tokenize(query, role, &mut |token| {
            assert!(
                !token.text.is_empty() && !token.text.contains([' ', '\n', '\t', '\r']),
                "{:?} of {query:?}",
                token.text
            );
        });
    }
    let memory = Memory {
        id: "x".to_owned(),
        title: query.to_owned(),
        narrative: Some(query.to_owned()),
        status: Status::Approved,
        ..Memory::default()
    };
    let mut analyzer = Analyzer::default();
    let first = analyzer.analyze(&memory, None);
    assert!(first.terms.windows(2).all(|two| unpack_term(two[0]).0 < unpack_term(two[1]).0));
    assert_eq!(analyzer.analyze(&memory, None), first, "the cache changes nothing");
}
