//! Decodes messages from standard input or HTTP. An invalid message is answered with a JSON-RPC
//! error (-32700 not JSON, -32600 not a message, -32602 wrong parameters of `tools/call`) and its
//! id, if it has one.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::ErrorCode as RpcCode;
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Map, Value, json};

use ack_api::number::grouped;

/// Maximum length of a message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Maximum number of values in the lists and objects of a message. Each value takes up to a hundred
/// times the memory of its characters.
const MAX_VALUES: usize = 20_000;
/// The deepest nesting that `serde_json` reads.
const MAX_DEPTH: usize = 127;
const VALUE_BYTES: usize = 100;
const MAX_NAME_CHARS: usize = 80;
const KEPT_BYTES: usize = 4 << 10;
const MAX_ERROR_CHARS: usize = 2_000;

/// A message, and its bytes as they were decoded.
type Decoded<'a> = (Cow<'a, [u8]>, RxJsonRpcMessage<RoleServer>);

/// Decodes a message. The error is the answer to send, if any: an invalid notification gets none.
pub fn decode(message: &[u8]) -> Result<Decoded<'_>, Option<Value>> {
    let line = message.strip_prefix(b"\xef\xbb\xbf").unwrap_or(message).trim_ascii();
    if line.is_empty() {
        return Err(None);
    }
    let mut line = Cow::Borrowed(line);
    let Shape { values, depth } = shape(&line);
    let too_much = if values > MAX_VALUES {
        Some(format!("message has more than {} values", grouped(MAX_VALUES as u64)))
    } else {
        (depth > MAX_DEPTH).then(|| format!("message is nested more than {MAX_DEPTH} levels deep"))
    };
    if let Some(message) = too_much {
        let id = first_id(&line).unwrap_or_default();
        return Err(Some(failure(&id, -32600, &message)));
    }
    let mut value = match serde_json::from_slice::<Value>(&line) {
        Ok(value) => value,
        Err(error) => {
            let again = repair_surrogates(&line)
                .and_then(|repaired| Some((serde_json::from_slice(&repaired).ok()?, repaired)));
            let (value, repaired) = again
                .ok_or_else(|| Some(failure(&Value::Null, -32700, &format!("no JSON: {error}"))))?;
            line = Cow::Owned(repaired);
            value
        }
    };
    if value.is_array() {
        let message = "batches are not supported: send each message by itself";
        return Err(Some(failure(&Value::Null, -32600, message)));
    }
    let id = value.get("id").filter(|id| is_id(id)).cloned().unwrap_or_default();
    if value.get("method").and_then(Value::as_str) == Some("tools/call")
        && value.get("id").is_some()
    {
        if let Some(arguments) = value.pointer_mut("/params/arguments")
            && let Some(read) = read_arguments(arguments)
        {
            *arguments = read.into();
            line = Cow::Owned(value.to_string().into_bytes());
        }
        let has_name = value.pointer("/params/name").is_some_and(Value::is_string);
        let arguments = value.pointer("/params/arguments").unwrap_or(&Value::Null);
        if !has_name || !(arguments.is_object() || arguments.is_null()) {
            let message = "`params` of tools/call is an object with `name`, a string, and `arguments`, an object";
            return Err(Some(failure(&id, -32602, message)));
        }
    }
    match serde_json::from_slice(&line) {
        Ok(decoded) => Ok((line, decoded)),
        Err(_) if value.is_object() && value.get("id").is_none() => Err(None),
        Err(error) => {
            let message = format!("not a message of this protocol: {error}");
            Err(Some(failure(&id, -32600, &message)))
        }
    }
}

/// The arguments of a call as some clients send them: as JSON text, or as an empty list (which is
/// how PHP writes an empty object).
fn read_arguments(arguments: &Value) -> Option<Map<String, Value>> {
    match arguments {
        Value::Array(none) if none.is_empty() => Some(Map::new()),
        Value::String(none) if none.trim().is_empty() => Some(Map::new()),
        Value::String(text) if shape(text.as_bytes()).values <= MAX_VALUES => {
            serde_json::from_str(text).ok()
        }
        _ => None,
    }
}

pub fn memory_size(message: &[u8]) -> usize {
    message.len() + shape(message).values * VALUE_BYTES
}

/// How large a text is as JSON, which it may not be.
#[derive(Debug, Default)]
struct Shape {
    /// Approximately: the characters that start or separate values.
    values: usize,
    depth: usize,
}

fn shape(text: &[u8]) -> Shape {
    let mut shape = Shape::default();
    let (mut open, mut quoted, mut escaped) = (0usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => {
                shape.values += 1;
                open += 1;
                shape.depth = shape.depth.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b',' | b':' => shape.values += 1,
            _ => {}
        }
    }
    shape
}

pub fn failure(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": ack_api::text::line(message, 300) } })
}

/// A protocol error that is safe to print: it may quote methods, versions and arguments from the
/// client.
pub fn sanitize_error(mut error: ErrorData) -> ErrorData {
    let max_chars = match error.code {
        // The message is the method as the client wrote it.
        RpcCode::METHOD_NOT_FOUND => MAX_NAME_CHARS,
        _ => MAX_ERROR_CHARS,
    };
    error.message = ack_api::text::line(&error.message, max_chars).into();
    if let Some(data) = &mut error.data {
        ack_api::text::clean_json(data);
    }
    error
}

/// Like [`sanitize_error`], for HTTP, where rmcp writes the body. `None` if the answer is not an
/// error.
pub fn sanitize_error_body(answer: &[u8]) -> Option<Vec<u8>> {
    let key = b"\"error\":";
    if !answer.windows(key.len()).any(|window| window == key) {
        return None;
    }
    let mut answer: Value = serde_json::from_slice(answer).ok()?;
    let error = answer.get_mut("error")?;
    let safe = sanitize_error(serde_json::from_value(error.take()).ok()?);
    *error = serde_json::to_value(safe).ok()?;
    serde_json::to_vec(&answer).ok()
}

/// Replaces unpaired surrogate escapes (`\ud83d` without its second half) with the replacement
/// character. JavaScript writes them for text that was cut inside an emoji. `None` if there are
/// none.
fn repair_surrogates(line: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| -> Option<u16> {
        let escape = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let mut out = line.to_vec();
    let (mut at, mut changed) = (0, false);
    while at < line.len() {
        if line.get(at) != Some(&b'\\') {
            at += 1;
            continue;
        }
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                if let Some(digits) = out.get_mut(at + 2..at + 6) {
                    digits.copy_from_slice(b"fffd");
                    changed = true;
                }
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    changed.then_some(out)
}

/// A message that is too long to be read. Its first and last bytes are kept, because the id of the
/// request is usually there: without it, the client waits for an answer until it gives up.
#[derive(Debug, Default)]
pub struct TooLong {
    first: Vec<u8>,
    last: Vec<u8>,
}

impl TooLong {
    pub fn add(&mut self, bytes: &[u8]) {
        let missing = KEPT_BYTES.saturating_sub(self.first.len()).min(bytes.len());
        let (first, _) = bytes.split_at(missing);
        self.first.extend_from_slice(first);
        let (_, last) = bytes.split_at(bytes.len().saturating_sub(KEPT_BYTES));
        let surplus = (self.last.len() + last.len()).saturating_sub(KEPT_BYTES);
        self.last.drain(..surplus.min(self.last.len()));
        self.last.extend_from_slice(last);
    }

    pub fn answer(&self) -> Value {
        let id = first_id(&self.first).or_else(|| last_id(&self.last)).unwrap_or(Value::Null);
        let message = format!("message has more than {} bytes", grouped(MAX_MESSAGE_BYTES as u64));
        failure(&id, -32600, &message)
    }
}

fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

/// The `id` of an object, of which these are the first bytes, or all. What follows it is not read.
fn first_id(bytes: &[u8]) -> Option<Value> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut rest = bytes.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let (key, after) = next::<String>(rest)?;
        rest = after.trim_ascii_start().strip_prefix(b":")?;
        if key == "id" {
            // The last value in the bytes may be incomplete.
            let (id, after) = next::<Value>(rest)?;
            return Some(id).filter(|id| is_id(id) && !after.is_empty());
        }
        let (_, after) = next::<IgnoredAny>(rest)?;
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// The first value in these bytes, and what follows it.
fn next<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<(T, &'a [u8])> {
    let mut values = Deserializer::from_slice(bytes).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, bytes.get(values.byte_offset()..)?))
}

/// The `id` of an object, of which these are the last bytes. Inside a string, its quotation marks
/// would be escaped; inside another object, something would be left after its end.
fn last_id(bytes: &[u8]) -> Option<Value> {
    const KEY: &[u8] = b"\"id\"";
    let positions = (0..bytes.len()).rev();
    let mut keys = positions.filter(|at| bytes.get(*at..).is_some_and(|it| it.starts_with(KEY)));
    keys.find_map(|at| {
        let (before, rest) = bytes.split_at(at);
        if !before.trim_ascii_end().ends_with(b",") {
            return None;
        }
        let object = [b"{", rest].concat();
        let object = serde_json::from_slice::<Value>(&object).ok()?;
        object.get("id").filter(|id| is_id(id)).cloned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> (i64, Value) {
        let answer = decode(line.as_bytes()).unwrap_err().unwrap();
        (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone())
    }

    #[test]
    fn an_invalid_message_is_answered_with_its_id() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":"y"}}"#;
        for (line, expected) in [
            ("{nope", (-32700, Value::Null)),
            (
                r#"{"jsonrpc":"2.0","id":77,"method":"tools/list","params":[1]}"#,
                (-32600, json!(77)),
            ),
            (r#"{"jsonrpc":"2.0","id":"a","method":"tools/call"}"#, (-32602, json!("a"))),
            (call, (-32602, json!(1))),
        ] {
            assert_eq!(answer(line), expected, "{line}");
        }
        assert!(matches!(
            decode(br#"{"jsonrpc":"2.0","method":"$/strange","params":[]}"#),
            Err(None) | Ok(_)
        ));
    }

    #[test]
    fn arguments_may_be_json_text_or_an_empty_list() {
        let read = |arguments: Value| {
            let params = json!({ "name": "x", "arguments": arguments });
            let call =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            let line = call.to_string();
            let decoded = decode(line.as_bytes()).map(|(line, _)| line.into_owned());
            let line: Value = serde_json::from_slice(&decoded?).unwrap();
            Ok::<_, Option<Value>>(line["params"]["arguments"].clone())
        };
        let query = json!({ "query": "x" });
        for (given, meant) in [
            (json!(query.to_string()), query.clone()),
            (query.clone(), query),
            (json!([]), json!({})),
            (json!(""), json!({})),
        ] {
            assert_eq!(read(given.clone()), Ok(meant), "{given}");
        }
        let many = format!("{{\"tags\":[{}0]}}", "0,".repeat(20_000));
        for refused in [json!("x"), json!([1]), json!("[1]"), json!(5), json!(many)] {
            assert!(read(refused.clone()).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_message_of_very_many_values_is_refused_before_it_takes_memory() {
        let call = |id: &str, element: &str, count: usize| {
            let list = element.repeat(count);
            let params = format!(r#"{{"name":"x","arguments":{{"tags":[{list}0]}}}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
        };
        for element in ["0,", "[],", r#"{"a":0},"#, r#""\\\"","#] {
            assert_eq!(answer(&call("7", element, 20_000)), (-32600, json!(7)), "{element}");
            let named = answer(&call(r#""seven""#, element, 20_000));
            assert_eq!(named, (-32600, json!("seven")), "{element}");
            assert!(decode(call("7", element, 6_000).as_bytes()).is_ok(), "{element}");
        }
        // What is inside a string is not a value.
        assert!(decode(call("7", r#""[,{:,\"[,{:,","#, 4_000).as_bytes()).is_ok());
        assert_eq!(answer(&"[".repeat(30_000)), (-32600, Value::Null));
    }

    #[test]
    fn a_message_that_is_nested_too_deep_is_answered_with_its_id() {
        let call = |depth: usize| {
            let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","x":{open}{close}}}"#)
        };
        assert!(decode(call(MAX_DEPTH).as_bytes()).is_ok());
        for depth in [MAX_DEPTH + 1, 5_000] {
            assert_eq!(answer(&call(depth)), (-32600, json!(7)), "{depth}");
        }
        let last = call(5_000).replace(r#""id":7,"#, "").replace("]}", r#"],"id":8}"#);
        assert_eq!(answer(&last), (-32600, json!(8)));
    }

    #[test]
    fn a_lone_surrogate_is_replaced_and_a_pair_stays() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"query":"cut \ud83d \ud83d\ude00 \\ud83d"}}}"#;
        assert!(decode(line).is_ok());
        let repaired = String::from_utf8(repair_surrogates(line).unwrap()).unwrap();
        assert!(repaired.contains(r"cut \ufffd \ud83d\ude00 \\ud83d"), "{repaired}");
        assert_eq!(repair_surrogates(br#"{"a":"\ud83d\ude00 plain"}"#), None);
    }

    fn id_of(message: &str) -> Value {
        let mut long = TooLong::default();
        for piece in message.as_bytes().chunks(1_000) {
            long.add(piece);
        }
        long.answer()["id"].clone()
    }

    #[test]
    fn the_id_is_found_at_either_end() {
        let long = "x".repeat(20_000);
        for (message, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"params":{{"a":"{long}"}}}}"#), json!(7)),
            (format!(r#" {{ "meta":{{"id":1}}, "id" : "a b" , "x":"{long}"}}"#), json!("a b")),
            (format!(r#"{{"params":{{"a":"{long}","id":3}},"id":"z","more":[1]}}"#), json!("z")),
            (format!(r#"{{"params":{{"a":"{long}","id":3}}}}"#), Value::Null),
            (format!(r#"{{"params":"{long},\"id\":3"}}"#), Value::Null),
            (format!(r#"{{"id":null,"params":"{long}"}}"#), Value::Null),
            (format!(r#"{{"id":{}"#, "1".repeat(20_000)), Value::Null),
            (format!(r#"["{long}",{{"x":1,"id":3}}]"#), Value::Null),
            (long, Value::Null),
        ] {
            assert_eq!(id_of(&message), id, "{}", &message[..40]);
        }
    }
}
