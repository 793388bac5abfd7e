//! A message that is too long to be read. Its first and last bytes are kept, because the id of the
//! request is usually there: without it, the client waits for an answer until it gives up.

use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

use ack_api::number::grouped;

use super::message::{MAX_MESSAGE_BYTES, failure};

const KEPT_BYTES: usize = 4 << 10;

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

pub fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

/// The `id` of an object, of which these are the first bytes, or all. What follows it is not read.
pub fn first_id(bytes: &[u8]) -> Option<Value> {
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
fn next<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Option<(T, &'a [u8])> {
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
    use serde_json::json;

    use super::*;

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
