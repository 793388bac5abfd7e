//! An argument of a tool as agents give it: its schema, and its conversion for the operation.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::Call;
use ack_api::memory::nearest;
use ack_api::{ErrorBody, text};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Argument {
    #[serde(skip)]
    pub(super) name: String,
    /// The operation's argument it stands for; `None` if it is accepted without effect.
    pub(super) is: Option<String>,
    /// A further argument that gets the same value.
    pub(super) also: Option<String>,
    #[serde(rename = "as")]
    pub(super) form: Form,
    /// What agents read about it. Default: what the operation says.
    pub(super) description: Option<String>,
    pub(super) required: bool,
    pub(super) default: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    #[default]
    Own,
    Clamped,
    Day,
    /// A list, or texts separated by commas.
    List,
    /// A list of texts as one text.
    Words,
    One,
    /// A question, replaced by the id of the memory that answers it best.
    BestMatch,
    Id(IdForm),
    /// One of these words, each with ours.
    Choice(BTreeMap<String, String>),
    /// A value of this type without effect, and why it has none.
    Ignored(String, String),
    /// A number that can only be zero, and why.
    OnlyZero(String),
}

/// How another server writes ids.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IdForm {
    /// What our id has before its bare number.
    number: String,
    /// Letters before the number of another kind of memory, and what our id has instead.
    letters: Option<(String, String)>,
    /// What may stand before an id and does not belong to it.
    without: String,
}

impl Argument {
    pub(super) fn own(name: &str) -> Self {
        Self { name: name.to_owned(), is: Some(name.to_owned()), ..Self::default() }
    }

    pub(super) fn is_plain(&self) -> bool {
        *self == Self::own(&self.name)
    }

    /// Whether its form says how its value is read, so that no note does.
    pub(super) fn is_converted(&self) -> bool {
        matches!(self.form, Form::Day | Form::List | Form::Words | Form::BestMatch)
    }

    /// The arguments of the operation that it stands for.
    pub(super) fn targets(&self) -> impl Iterator<Item = &str> {
        self.is.iter().chain(&self.also).map(String::as_str)
    }

    pub(super) fn has_target(&self, ours: &str) -> bool {
        self.targets().any(|known| known == ours)
    }

    /// Its schema, derived from that of the operation's argument.
    pub(super) fn schema(&self, known: &Map<String, Value>) -> Value {
        let is = self.is.as_ref().and_then(|is| known.get(is)?.as_object());
        let mut schema = is.cloned().unwrap_or_default();
        let strings = || json!({ "type": "string" });
        let kind = match &self.form {
            Form::Own | Form::Clamped | Form::Choice(_) => None,
            Form::Day | Form::Id(_) => Some(json!(["string", "number"])),
            Form::List => Some(json!(["array", "string"])),
            Form::Words => Some(json!(["string", "array"])),
            Form::One | Form::BestMatch => Some(json!("string")),
            Form::Ignored(kind, _) => Some(json!(kind)),
            Form::OnlyZero(_) => Some(json!("number")),
        };
        let mut set = |key: &str, value: Value| drop(schema.insert(key.to_owned(), value));
        match (&self.form, kind) {
            (Form::Id(_), Some(kind)) if is.is_some_and(|is| is.contains_key("items")) => {
                set("items", json!({ "type": kind }));
            }
            (_, Some(kind)) => set("type", kind),
            (_, None) => {}
        }
        match &self.form {
            Form::Words => set("items", strings()),
            Form::Ignored(kind, _) if kind == "array" => set("items", strings()),
            Form::One => drop(schema.shift_remove("items")),
            Form::Choice(words) => set("enum", words.keys().map(String::as_str).collect()),
            Form::OnlyZero(_) => set("enum", json!([0])),
            _ => {}
        }
        if let Some(default) = self.default {
            schema.insert("default".to_owned(), json!(default));
        }
        let description = self.description.clone().or_else(|| match &self.form {
            Form::Ignored(_, reason) | Form::OnlyZero(reason) => {
                Some(format!("Ignored: {reason}."))
            }
            _ => None,
        });
        schema.extend(description.map(|text| ("description".to_owned(), text.into())));
        Value::Object(schema)
    }

    /// Its value converted for the operation. `call` gets notes about it, and the other possible
    /// meaning of an id.
    pub(super) fn convert(
        &self,
        value: Value,
        known: &Map<String, Value>,
        call: &mut Call,
    ) -> Result<Value, Box<ErrorBody>> {
        let others = &mut call.others;
        Ok(match (&self.form, value) {
            (Form::Choice(words), value) => {
                let Some(ours) = value.as_str().and_then(|word| words.get(word)) else {
                    return Err(refusal(&self.name, &value, words.keys().cloned().collect()));
                };
                Value::from(ours.as_str())
            }
            (Form::Clamped, value) => self.clamp(value, known, call),
            (Form::Words, Value::Array(parts)) if parts.iter().all(Value::is_string) => {
                if parts.len() > 1 {
                    call.note(format!(
                        "`{}`: its texts were searched together; none of them is required by itself",
                        self.name
                    ));
                }
                let words: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
                Value::from(words.join(" "))
            }
            (Form::One, value @ Value::String(_)) => Value::Array(vec![value]),
            (Form::Id(form), Value::Array(entries)) => {
                entries.into_iter().map(|entry| form.read(entry, others)).collect()
            }
            (Form::Id(form), value) => form.read(value, others),
            (_, value) => value,
        })
    }

    /// A number within the bounds of the operation's argument.
    fn clamp(&self, value: Value, known: &Map<String, Value>, call: &mut Call) -> Value {
        let schema = self.is.as_ref().and_then(|is| known.get(is));
        let bound = |key: &str| schema?.get(key)?.as_f64();
        let (Some(min), Some(max), Some(number)) =
            (bound("minimum"), bound("maximum"), value.as_f64())
        else {
            return value;
        };
        let (side, used) = if number < min {
            ("below the minimum", min)
        } else if number > max {
            ("above the maximum", max)
        } else {
            return value;
        };
        call.note(format!("`{}`: {number} is {side}; {used} was used", self.name));
        #[expect(clippy::cast_possible_truncation, reason = "bounds are small and whole")]
        Value::from(used as i64)
    }
}

impl IdForm {
    fn read(&self, value: Value, others: &mut Vec<(String, String)>) -> Value {
        let (given, is_number) = match &value {
            Value::Number(number) => (number.to_string(), true),
            Value::String(text) => (text.trim().to_owned(), false),
            _ => return value,
        };
        let bare = given.strip_prefix(self.without.as_str());
        let text = bare.unwrap_or(&given);
        let numbered = (is_digits(text) || is_number).then(|| format!("{}{text}", self.number));
        let lettered = self.letters.as_ref().and_then(|(letters, ours)| {
            let number = given.strip_prefix(letters.as_str()).filter(|rest| is_digits(rest))?;
            Some(format!("{ours}{number}"))
        });
        // A string of digits may be one of our ids as it was shown.
        let (requested, other) = match (lettered, numbered) {
            (Some(lettered), _) => (lettered, given),
            (None, Some(numbered)) if is_number || bare.is_some() => (numbered, given),
            (None, Some(numbered)) => (given, numbered),
            (None, None) => (text.to_owned(), given),
        };
        if requested != other {
            others.push((requested.clone(), other));
        }
        Value::from(requested)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn refusal(argument: &str, value: &Value, allowed: Vec<String>) -> Box<ErrorBody> {
    let value = text::line(&value.to_string(), 120);
    let near = nearest(value.trim_matches('"'), allowed.iter().map(String::as_str), 2);
    let example = near.first().or_else(|| allowed.first());
    Box::new(ErrorBody {
        code: "invalid_argument".to_owned(),
        message: format!("`{argument}` is {value}; allowed: {}", allowed.join(", ")),
        argument: Some(argument.to_owned()),
        value: Some(value),
        example: example.map(|word| json!({ argument: word }).to_string()),
        nearest: near,
        allowed,
        ..ErrorBody::default()
    })
}
