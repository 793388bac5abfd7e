//! Values of a row as JSON, so that they can be restored exactly.

use rusqlite::types::{Value, ValueRef};
use serde_json::{Value as Json, json};

/// A value as JSON.
pub fn encode(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!({ "real": number.to_bits() }),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => json!(text),
            Err(_) => json!({ "text": text }),
        },
        ValueRef::Blob(bytes) => json!({ "blob": bytes }),
    }
}

/// A value from JSON, and whether its bytes are text. `None` if this program did not write it.
pub fn decode(json: &Json) -> Option<(Value, bool)> {
    let bytes = |json: &Json| -> Option<Value> {
        let bytes = json.as_array()?.iter();
        let bytes: Option<Vec<u8>> = bytes
            .map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()))
            .collect();
        bytes.map(Value::Blob)
    };
    Some(match json {
        Json::Null => (Value::Null, false),
        Json::Number(number) => (Value::Integer(number.as_i64()?), false),
        Json::String(text) => (Value::Text(text.clone()), false),
        Json::Object(typed) => match (typed.get("real"), typed.get("text"), typed.get("blob")) {
            (Some(bits), None, None) => (Value::Real(f64::from_bits(bits.as_u64()?)), false),
            (None, Some(text), None) => (bytes(text)?, true),
            (None, None, Some(blob)) => (bytes(blob)?, false),
            _ => return None,
        },
        Json::Bool(_) | Json::Array(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_as_it_was() {
        let values = [
            (Value::Null, false),
            (Value::Integer(i64::MIN), false),
            (Value::Real(-0.0), false),
            (Value::Text("a\"b\u{7}".to_owned()), false),
            (Value::Blob(vec![0, 255]), false),
        ];
        for (value, is_text) in values {
            let again = decode(&encode((&value).into()));
            assert_eq!(again, Some((value, is_text)));
        }
        let broken = ValueRef::Text(&[0x66, 0xff]);
        assert_eq!(
            decode(&encode(broken)),
            Some((Value::Blob(vec![0x66, 0xff]), true))
        );
        assert_eq!(decode(&json!([1])), None);
        assert_eq!(decode(&json!({ "blob": [256] })), None);
    }
}
