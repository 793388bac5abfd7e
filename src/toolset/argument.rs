//! An argument of a tool as agents give it: its schema, and its conversion for the operation.

use serde_json::{Map, Value, json};

use crate::config::tools::{Conversion, Kind};
use ack_api::ErrorBody;
use ack_api::memory::nearest;
use ack_api::text;

/// An argument as agents give it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Argument {
    /// The name that agents use.
    pub(super) name: String,
    /// The operation's argument it stands for; `None` if it is accepted without effect.
    pub(super) is: Option<String>,
    /// Further arguments that get the same value.
    pub(super) also: Vec<String>,
    /// Its default value.
    pub(super) default: Option<Value>,
    /// Why it has no effect.
    pub(super) ignored: String,
    /// For an argument without effect, the only accepted values; empty means all.
    pub(super) allow: Vec<Value>,
    /// Its type: without effect any, else `string` for a list.
    pub(super) kind: Option<Kind>,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    pub(super) conversion: Option<Conversion>,
    /// The pattern for a bare number.
    pub(super) numbers: Option<String>,
    /// The patterns for a number after certain letters.
    pub(super) prefixed: Vec<(String, String)>,
    /// Prefixes to strip from a string.
    pub(super) without: Vec<String>,
    /// The allowed words, each with our equivalent.
    pub(super) values: Vec<(String, String)>,
    /// The bounds to clamp a number to.
    pub(super) clamp: Option<(i64, i64)>,
}

impl Argument {
    /// An argument of an operation under its own name.
    pub(super) fn own(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is: Some(name.to_owned()),
            ..Self::default()
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        *self == Self::own(&self.name)
    }

    /// The arguments of the operation that it stands for.
    pub(super) fn targets(&self) -> impl Iterator<Item = &str> {
        self.is.iter().chain(&self.also).map(String::as_str)
    }

    /// Whether it stands for an argument of the operation.
    pub(super) fn has_target(&self, ours: &str) -> bool {
        self.targets().any(|known| known == ours)
    }

    /// Its schema, derived from those of the operation's arguments.
    pub(super) fn schema(&self, known: &Map<String, Value>) -> Value {
        let mut schema = match &self.is {
            Some(is) => known
                .get(is)
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
            None => Map::new(),
        };
        if let Some(kind) = self.kind {
            schema.insert(
                "type".to_owned(),
                serde_json::to_value(kind).unwrap_or_default(),
            );
            match kind {
                Kind::Array => drop(schema.insert("items".to_owned(), json!({ "type": "string" }))),
                _ => drop(schema.shift_remove("items")),
            }
        }
        if self.is.is_none() && !self.allow.is_empty() {
            schema.insert("enum".to_owned(), Value::Array(self.allow.clone()));
        }
        if !self.values.is_empty() {
            let words = self.values.iter().map(|(word, _)| word.as_str());
            schema.insert("enum".to_owned(), words.collect());
        }
        let texts = json!({ "type": "string" });
        match self.conversion {
            Some(Conversion::Day) => {
                schema.insert("type".to_owned(), json!(["string", "number"]));
            }
            Some(Conversion::List) => {
                schema.insert("type".to_owned(), json!(["array", "string"]));
            }
            Some(Conversion::Words) => {
                schema.insert("type".to_owned(), json!(["string", "array"]));
                schema.insert("items".to_owned(), texts);
            }
            Some(Conversion::BestMatch) => {
                schema.insert("type".to_owned(), json!("string"));
            }
            None => {}
        }
        if self.numbers.is_some() {
            let either = json!(["string", "number"]);
            match schema.get_mut("items").and_then(Value::as_object_mut) {
                Some(items) => items.insert("type".to_owned(), either),
                None => schema.insert("type".to_owned(), either),
            };
        }
        if let Some(default) = &self.default {
            schema.insert("default".to_owned(), default.clone());
        }
        let description = self.description.clone().or_else(|| {
            self.is
                .is_none()
                .then(|| format!("Ignored: {}.", self.ignored))
        });
        if let Some(description) = description {
            schema.insert("description".to_owned(), Value::from(description));
        }
        Value::Object(schema)
    }

    /// Its value converted for the operation, with any notes about it.
    pub(super) fn convert(
        &self,
        value: Value,
        notes: &mut Vec<String>,
        others: &mut Vec<(String, String)>,
    ) -> Result<Value, Refusal> {
        let name = &self.name;
        if !self.values.is_empty() {
            let known = self
                .values
                .iter()
                .find(|(known, _)| value.as_str() == Some(known));
            return match known {
                Some((_, ours)) => Ok(Value::from(ours.as_str())),
                None => Err(Refusal::new(
                    &value,
                    self.values.iter().map(|(word, _)| word.clone()).collect(),
                )),
            };
        }
        if let (Some((min, max)), Some(number)) = (self.clamp, value.as_f64()) {
            #[expect(clippy::cast_precision_loss, reason = "bounds are small")]
            let (low, high) = (min as f64, max as f64);
            if number < low || number > high {
                let clamped = if number < low { min } else { max };
                let side = if number < low {
                    "below the minimum"
                } else {
                    "above the maximum"
                };
                notes.push(format!("`{name}`: {number} is {side}; {clamped} was used"));
                return Ok(Value::from(clamped));
            }
        }
        let value = match (self.conversion, value) {
            (Some(Conversion::Words), Value::Array(parts))
                if parts.iter().all(Value::is_string) =>
            {
                if parts.len() > 1 {
                    notes.push(format!(
                        "`{name}`: its texts were searched together; none of them is required by itself"
                    ));
                }
                let words: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
                Value::from(words.join(" "))
            }
            // A text where the operation takes a list.
            (_, value @ Value::String(_)) if self.is.is_some() && self.kind.is_some() => {
                Value::Array(vec![value])
            }
            (_, value) => value,
        };
        Ok(match value {
            Value::Array(entries) => entries
                .into_iter()
                .map(|entry| self.id_text(entry, others))
                .collect(),
            other => self.id_text(other, others),
        })
    }

    /// A value as the id string to look up. `others` gets the other possible meaning.
    fn id_text(&self, value: Value, others: &mut Vec<(String, String)>) -> Value {
        let prefixed = value.as_str().and_then(|text| self.prefixed(text.trim()));
        if let Some(id_form) = prefixed {
            others.push((
                id_form.clone(),
                value.as_str().unwrap_or_default().to_owned(),
            ));
            return Value::from(id_form);
        }
        let (given_text, is_number) = match &value {
            Value::Number(number) if self.numbers.is_some() => (number.to_string(), true),
            Value::String(text) if self.numbers.is_some() || !self.without.is_empty() => {
                (text.trim().to_owned(), false)
            }
            _ => return value,
        };
        let bare = self
            .without
            .iter()
            .find_map(|beginning| given_text.strip_prefix(beginning.as_str()));
        let text = bare.unwrap_or(&given_text);
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let pattern = self.numbers.as_deref().filter(|_| digits || is_number);
        let numbered = pattern.map(|pattern| pattern.replace("{}", text));
        // A string of digits may be one of our ids as it was shown.
        let (requested, other) = match numbered {
            Some(numbered) if is_number || bare.is_some() => (numbered, given_text),
            Some(numbered) => (given_text, numbered),
            None => (text.to_owned(), given_text),
        };
        if requested != other {
            others.push((requested.clone(), other));
        }
        Value::from(requested)
    }
}

impl Argument {
    /// A number after letters that say what it counts, as the id it means.
    fn prefixed(&self, text: &str) -> Option<String> {
        let mut known = self.prefixed.iter();
        known.find_map(|(letters, pattern)| {
            let number = text.strip_prefix(letters.as_str())?;
            let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| pattern.replace("{}", number))
        })
    }
}

/// A value that is not allowed.
pub(super) struct Refusal {
    value: String,
    allowed: Vec<String>,
}

impl Refusal {
    pub(super) fn new(value: &Value, allowed: Vec<String>) -> Self {
        Self {
            value: text::line(&value.to_string(), 120),
            allowed,
        }
    }

    pub(super) fn body(self, argument: &str) -> ErrorBody {
        let Self { value, allowed } = self;
        let near = nearest(
            value.trim_matches('"'),
            allowed.iter().map(String::as_str),
            2,
        );
        let example = near.first().or_else(|| allowed.first());
        ErrorBody {
            code: "invalid_argument".to_owned(),
            message: format!("`{argument}` is {value}; allowed: {}", allowed.join(", ")),
            hint: None,
            path: None,
            argument: Some(argument.to_owned()),
            value: Some(value),
            example: example.map(|word| json!({ argument: word }).to_string()),
            nearest: near,
            allowed,
        }
    }
}
