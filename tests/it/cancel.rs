//! Requests that nobody waits for any more stop before their next expensive step, and leave
//! everything as it was.

use ack_api::cancel::{self, CancelFlag, CancelOnDrop};
use serde_json::json;

use crate::arguments::call;
use crate::support::{Ask, Root, titled};

#[test]
fn a_cancelled_request_stops_and_the_next_one_is_answered() {
    let root = Root::with("alpha", &[titled("m1", "Connection pools are exhausted")]);
    let service = root.service();
    let related = json!({ "id": "m1", "include": ["related", "timeline"] });
    let calls = [
        ("query_memories", json!({ "query": "connection pool" })),
        ("query_memories", json!({})),
        ("get_memory", related),
        ("get_context", json!({})),
    ];
    for (tool, arguments) in calls {
        let flag = CancelFlag::default();
        let running = cancel::run_with(&flag, || call(&service, tool, arguments.clone()));
        assert!(running.is_ok(), "{tool}: {running:?}");
        drop(CancelOnDrop(flag.clone()));
        assert!(flag.is_cancelled());
        let stopped =
            cancel::run_with(&flag, || call(&service, tool, arguments.clone())).unwrap_err();
        assert_eq!(stopped.code(), "cancelled", "{tool}");
        assert!(cancel::check().is_ok(), "the flag is the request's and not the thread's");
        assert_eq!(service.ask(tool, arguments), running.unwrap(), "{tool}");
    }
}
