//! What is true of every answer, whatever was asked: a memory is the one that its id names, has a
//! status that was asked for, and is the one that was asked for.

use std::io::Write;
use std::net::TcpStream;

use serde_json::Value;

use super::questions::Call;
use super::{TIMEOUT, TOKEN};

/// The status that the writer gives a memory. It only ever changes to `rejected`.
pub const STATUSES: [&str; 5] = ["approved", "approved", "approved", "promoted", "staging"];

/// What is wrong with a successful answer.
pub fn faults(call: &Call, answer: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let arguments = &call.params["arguments"];
    let waiting = matches!(arguments["status"].as_str(), Some("staging" | "all"));
    let shown = &answer["result"]["structuredContent"];
    walk(shown, &mut |memory| faults.extend(fault(memory, waiting)));
    if let Some(asked) = arguments["id"].as_str().filter(|_| shown["id"] != arguments["id"]) {
        faults.push(format!("{asked} was asked for, and {} is answered", shown["id"]));
    }
    if let Some(asked) = arguments["ids"].as_array() {
        let answered = shown["memories"].as_array().into_iter().flatten();
        let others = answered.filter(|memory| !asked.contains(&memory["id"]));
        faults.extend(others.map(|memory| format!("{} was not asked for", memory["id"])));
    }
    if call.method == "resources/read" {
        let contents = &answer["result"]["contents"][0];
        let read: Value = contents["text"]
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        walk(&read, &mut |memory| faults.extend(fault(memory, false)));
        let uri = call.params["uri"].as_str().unwrap_or_default();
        let asked = uri.rsplit_once("/memory/").map(|(_, id)| id);
        if contents["uri"] != uri || asked.is_some_and(|asked| read["id"] != asked) {
            faults.push(format!(
                "{uri} was asked for, and {} with {} is answered",
                contents["uri"], read["id"]
            ));
        }
    }
    faults
}

/// Calls `each` for every memory in an answer.
fn walk(value: &Value, each: &mut impl FnMut(&Value)) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| walk(value, each)),
        Value::Object(fields) => {
            if fields.contains_key("title") && number(value).is_some() {
                each(value);
            }
            fields.values().for_each(|value| walk(value, each));
        }
        _ => {}
    }
}

fn number(memory: &Value) -> Option<usize> {
    memory["id"].as_str()?.strip_prefix("mem-")?.parse().ok()
}

/// What is wrong with a memory: its title begins with its number, and its number determines its
/// status.
fn fault(memory: &Value, waiting: bool) -> Option<String> {
    let number = number(memory)?;
    let title = memory["title"].as_str().unwrap_or_default();
    if title.split(' ').next() != Some(&format!("ERR_{number}")) {
        return Some(format!("mem-{number:07} has the text of another memory: {title}"));
    }
    let written = STATUSES[number % STATUSES.len()];
    let shown = memory["status"].as_str().unwrap_or(written);
    if shown != written || (written == "staging" && !waiting) {
        return Some(format!("mem-{number:07} is {written} and is shown as {shown}: {title}"));
    }
    None
}

/// Sends a body to the HTTP server and returns the connection.
pub fn post(address: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}
