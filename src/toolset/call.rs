//! A call of a tool, translated: arguments on their way to the engine, names on their way back.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{OfferedTool, Tool, Toolset};
use crate::config::tools::{Conversion, Kind};
use ack_api::memory::nearest;
use ack_api::text;
use ack_api::{ErrorBody, Note, NoteKind};

/// An argument as agents give it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Argument {
    /// The name that agents give.
    pub(super) name: String,
    /// The argument of the operation it stands for; `None`: accepted and without effect.
    pub(super) is: Option<String>,
    /// Further arguments that get its value.
    pub(super) also: Vec<String>,
    /// What it is where it is not given.
    pub(super) default: Option<Value>,
    /// Why it has no effect.
    pub(super) ignored: String,
    /// The only values that are accepted of one without effect; empty: all.
    pub(super) allow: Vec<Value>,
    pub(super) kind: Option<Kind>,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    pub(super) conversion: Option<Conversion>,
    /// How a bare number is written.
    pub(super) numbers: Option<String>,
    /// What is left out of the beginning of a text.
    pub(super) without: Vec<String>,
    /// The words allowed, each with ours.
    pub(super) values: Vec<(String, String)>,
    /// The bounds that a number is brought within.
    pub(super) clamp: Option<(i64, i64)>,
}

/// What the engine is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The arguments under our names.
    pub arguments: Map<String, Value>,
    /// A question whose best match is the memory asked for; see [`Conversion::BestMatch`].
    pub question: Option<String>,
    /// What the answer has to say about the arguments.
    pub notes: Vec<Note>,
    /// Ids as they are asked for, each with another form that may be meant.
    others: Vec<(String, String)>,
    /// The pairs of names, ours and the agent's, of what was given.
    given: Vec<(String, String)>,
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
    pub(super) fn stands_for(&self) -> impl Iterator<Item = &str> {
        self.is.iter().chain(&self.also).map(String::as_str)
    }

    /// Whether it stands for an argument of the operation.
    pub(super) fn reaches(&self, ours: &str) -> bool {
        self.stands_for().any(|known| known == ours)
    }

    /// Its schema, from those of the operation's arguments.
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
            if kind == Kind::Array {
                schema.insert("items".to_owned(), json!({ "type": "string" }));
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
                .then(|| format!("Accepted, without effect: {}.", self.ignored))
        });
        if let Some(description) = description {
            schema.insert("description".to_owned(), Value::from(description));
        }
        Value::Object(schema)
    }

    /// Its value as the operation takes it, and what is to be said about it.
    pub(super) fn converted(
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
        if let (Some((least, most)), Some(number)) = (self.clamp, value.as_f64()) {
            #[expect(clippy::cast_precision_loss, reason = "bounds are small")]
            let (low, high) = (least as f64, most as f64);
            if number < low || number > high {
                let taken = if number < low { least } else { most };
                notes.push(format!("`{name}` {number} was taken as {taken}"));
                return Ok(Value::from(taken));
            }
        }
        let value = match (self.conversion, value) {
            (Some(Conversion::Day), value) => {
                let day = day(&value);
                day.map_or(value, Value::from)
            }
            (Some(Conversion::List), Value::String(text)) => text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .collect(),
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
            (_, value) => value,
        };
        Ok(match value {
            Value::Array(entries) => entries
                .into_iter()
                .map(|entry| self.written(entry, others))
                .collect(),
            other => self.written(other, others),
        })
    }

    /// A value as the text that is asked for; what else may be meant by it is noted.
    fn written(&self, value: Value, others: &mut Vec<(String, String)>) -> Value {
        let (given, is_number) = match &value {
            Value::Number(number) if self.numbers.is_some() => (number.to_string(), true),
            Value::String(text) if self.numbers.is_some() || !self.without.is_empty() => {
                (text.trim().to_owned(), false)
            }
            _ => return value,
        };
        let bare = self
            .without
            .iter()
            .find_map(|beginning| given.strip_prefix(beginning.as_str()));
        let text = bare.unwrap_or(&given);
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let pattern = self.numbers.as_deref().filter(|_| digits || is_number);
        let numbered = pattern.map(|pattern| pattern.replace("{}", text));
        // Digits that stand as a text may be an id of ours as it was shown.
        let (asked, other) = match numbered {
            Some(numbered) if is_number || bare.is_some() => (numbered, given),
            Some(numbered) => (given, numbered),
            None => (text.to_owned(), given),
        };
        if asked != other {
            others.push((asked.clone(), other));
        }
        Value::from(asked)
    }
}

/// A value that an argument may not have.
pub(super) struct Refusal {
    value: String,
    allowed: Vec<String>,
}

impl Refusal {
    fn new(value: &Value, allowed: Vec<String>) -> Self {
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

/// The day of a point in time: of ISO 8601 with a time, of seconds or of milliseconds since 1970.
fn day(value: &Value) -> Option<String> {
    let instant = match value {
        Value::String(text) if text.len() > 10 => {
            let whole = text.parse::<Timestamp>().ok();
            // Without an offset, the day that is written is meant.
            return match whole {
                Some(instant) => Some(instant.to_string().get(..10)?.to_owned()),
                None => text
                    .parse::<jiff::civil::DateTime>()
                    .ok()
                    .map(|at| at.date().to_string()),
            };
        }
        Value::Number(number) => {
            let number = number.as_i64().or_else(|| {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a cast saturates, and no such day exists"
                )]
                number.as_f64().map(|number| number as i64)
            })?;
            // Seconds reach this number in the year 5138, milliseconds reached it in 1973.
            if number.abs() < 100_000_000_000 {
                Timestamp::from_second(number).ok()?
            } else {
                Timestamp::from_millisecond(number).ok()?
            }
        }
        _ => return None,
    };
    Some(instant.to_string().get(..10)?.to_owned())
}

impl Call {
    /// Takes the value of an argument for everything it stands for that has none yet.
    fn take(&mut self, argument: &Argument, value: &Value) {
        for ours in argument.stands_for() {
            if !self.arguments.contains_key(ours) {
                self.arguments.insert(ours.to_owned(), value.clone());
            }
        }
    }

    /// The arguments with the other forms of these ids; `None` where there is none.
    pub fn otherwise(
        &self,
        arguments: &Map<String, Value>,
        missing: &[&str],
    ) -> Option<Map<String, Value>> {
        let other = |id: &mut Value| {
            let asked = id.as_str().filter(|asked| missing.contains(asked));
            let found =
                asked.and_then(|asked| self.others.iter().find(|(known, _)| known == asked));
            found
                .map(|(_, other)| *id = Value::from(other.as_str()))
                .is_some()
        };
        let mut arguments = arguments.clone();
        let mut changed = arguments.get_mut("id").is_some_and(other);
        for id in arguments
            .get_mut("ids")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            changed |= other(id);
        }
        changed.then_some(arguments)
    }
}

impl OfferedTool {
    /// The call that a call of this tool means.
    ///
    /// # Errors
    /// The body of the error where an argument is unknown, missing or given twice, or has a value that its table does not allow.
    pub fn translate(&self, values: Map<String, Value>) -> Result<Call, Box<ErrorBody>> {
        let mut call = Call::default();
        if self.is_plain() {
            // The engine says what is wrong with them.
            call.arguments = values;
            return Ok(call);
        }
        let mut said = Vec::new();
        for (name, value) in values {
            let Some(argument) = self.arguments.iter().find(|argument| argument.name == name)
            else {
                return Err(Box::new(self.unknown(&name)));
            };
            if value.is_null() {
                continue;
            }
            if argument.is.is_none() {
                if !argument.allow.is_empty() && !argument.allow.contains(&value) {
                    let allowed = argument.allow.iter().map(ToString::to_string).collect();
                    let mut body = Refusal::new(&value, allowed).body(&name);
                    body.hint = Some(argument.ignored.clone());
                    body.example = None;
                    return Err(Box::new(body));
                }
                if argument.allow.is_empty() {
                    said.push(format!("`{name}` has no effect here: {}", argument.ignored));
                }
                continue;
            }
            if let Some((_, other)) = call.given.iter().find(|(ours, _)| argument.reaches(ours)) {
                let mut body =
                    Refusal::new(&value, vec![format!("`{name}` or `{other}`")]).body(&name);
                body.message = format!("`{name}` and `{other}` say the same; give one of them");
                body.example = None;
                return Err(Box::new(body));
            }
            call.given.extend(
                argument
                    .stands_for()
                    .map(|ours| (ours.to_owned(), name.clone())),
            );
            let value = argument
                .converted(value, &mut said, &mut call.others)
                .map_err(|refusal| Box::new(refusal.body(&name)))?;
            match (argument.conversion, value) {
                (Some(Conversion::BestMatch), Value::String(question)) => {
                    call.question = Some(question)
                }
                (_, value) => call.take(argument, &value),
            }
        }
        let missing = self.arguments.iter().find(|argument| {
            let given = call.given.iter().any(|(_, name)| *name == argument.name);
            argument.required && argument.is.is_some() && !given
        });
        if let Some(missing) = missing {
            let allowed = missing.schema(self.operation.properties());
            let kind = match allowed.get("type") {
                Some(Value::String(kind)) => kind.clone(),
                Some(Value::Array(kinds)) => kinds
                    .iter()
                    .filter_map(Value::as_str)
                    .collect::<Vec<_>>()
                    .join(" or "),
                _ => "a value".to_owned(),
            };
            let mut body = Refusal::new(&Value::Null, vec![kind]).body(&missing.name);
            body.message = format!("`{}` is missing", missing.name);
            body.value = None;
            body.example = None;
            return Err(Box::new(body));
        }
        for argument in &self.arguments {
            let Some(default) = &argument.default else {
                continue;
            };
            // Checked when the surface was built.
            if let Ok(value) = argument.converted(default.clone(), &mut Vec::new(), &mut Vec::new())
            {
                call.take(argument, &value);
            }
        }
        for (name, value) in &self.preset {
            call.arguments.insert(name.clone(), value.clone());
        }
        call.notes = said
            .into_iter()
            .map(|message| Note::new(NoteKind::NotAvailable, message))
            .collect();
        Ok(call)
    }

    fn unknown(&self, name: &str) -> ErrorBody {
        let known: Vec<String> = self
            .arguments
            .iter()
            .map(|argument| argument.name.clone())
            .collect();
        let name = text::line(name, 100);
        ErrorBody {
            code: "unknown_argument".to_owned(),
            message: format!("`{name}` is no argument of {}", self.name),
            hint: None,
            path: None,
            nearest: nearest(&name, known.iter().map(String::as_str), 2),
            argument: Some(name),
            value: None,
            allowed: known,
            example: None,
        }
    }

    /// What one of our arguments is called here: as it was given in this call, or the first that stands for it.
    fn public(&self, ours: &str, call: &Call) -> Option<String> {
        let given = call
            .given
            .iter()
            .find(|(is, _)| is == ours)
            .map(|(_, name)| name.clone());
        let listed = || {
            self.arguments
                .iter()
                .find(|argument| argument.reaches(ours))
        };
        given.or_else(|| listed().map(|argument| argument.name.clone()))
    }

    /// A text of ours with the names that tools and arguments have here: arguments stand in it between backticks, alone or before
    /// a colon. Says which of them this tool does not offer.
    fn told(&self, surface: &Toolset, call: &Call, text: &str) -> String {
        let text = surface.renamed(text);
        let known = self.operation.properties();
        let mut out = String::with_capacity(text.len());
        let mut absent: Vec<&str> = Vec::new();
        for (position, part) in text.split('`').enumerate() {
            if position > 0 {
                out.push('`');
            }
            let word = part.split(':').next().unwrap_or_default();
            let rest = part.strip_prefix(word).unwrap_or_default();
            if position % 2 == 0 || !known.contains_key(word) {
                out.push_str(part);
                continue;
            }
            match self.public(word, call) {
                Some(name) => out.push_str(&name),
                None => {
                    out.push_str(word);
                    if !absent.contains(&word) {
                        absent.push(word);
                    }
                }
            }
            out.push_str(rest);
        }
        if !absent.is_empty() {
            let names: Vec<String> = absent.iter().map(|name| format!("`{name}`")).collect();
            out.push_str(&format!(
                " ({} does not offer {})",
                self.name,
                names.join(", ")
            ));
        }
        out
    }

    /// The body of an error of the engine, with the names that tools and arguments have here.
    pub fn body(&self, surface: &Toolset, call: &Call, mut body: ErrorBody) -> ErrorBody {
        let tell = |text: &String| self.told(surface, call, text);
        if self.is_plain() && surface.keeps_names() {
            return body;
        }
        body.message = tell(&body.message);
        body.hint = body.hint.as_ref().map(tell);
        body.allowed = body.allowed.iter().map(tell).collect();
        let example = body
            .example
            .as_deref()
            .and_then(|example| serde_json::from_str(example).ok());
        body.example = example.and_then(|example: Map<String, Value>| {
            let renamed: Option<Map<String, Value>> = example
                .into_iter()
                .map(|(ours, value)| Some((self.public(&ours, call)?, value)))
                .collect();
            Some(Value::Object(renamed?).to_string())
        });
        body.argument = body
            .argument
            .map(|ours| self.public(&ours, call).unwrap_or(ours));
        body
    }

    /// An answer of the engine, with the notes about the arguments and the names that tools and arguments have here. What
    /// memories say is left as it is.
    pub fn answer(&self, surface: &Toolset, call: &Call, mut answer: Value) -> Value {
        if self.is_plain() && surface.keeps_names() {
            return answer;
        }
        let tell = |text: &mut Value| {
            if let Value::String(told) = text {
                *told = self.told(surface, call, told);
            }
        };
        for (list, field) in [
            ("notes", Some("message")),
            ("missing", Some("reason")),
            ("suggestions", None),
        ] {
            let entries = answer
                .get_mut(list)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten();
            for entry in entries {
                match field {
                    Some(field) => entry.get_mut(field).into_iter().for_each(tell),
                    None => tell(entry),
                }
            }
        }
        if let (Some(answer), false) = (answer.as_object_mut(), call.notes.is_empty()) {
            let notes = answer.entry("notes").or_insert_with(|| json!([]));
            if let Some(notes) = notes.as_array_mut() {
                notes.extend(
                    call.notes
                        .iter()
                        .filter_map(|note| serde_json::to_value(note).ok()),
                );
            }
        }
        answer
    }
}

impl Toolset {
    /// An answer of the engine with the names that the four have here, for what is no call of a tool.
    pub fn answer(&self, operation: Tool, answer: Value) -> Value {
        if self.keeps_names() {
            return answer;
        }
        let plain = OfferedTool::built_in(operation);
        plain.answer(self, &Call::default(), answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_read_as_days() {
        let read = |value: Value| day(&value);
        assert_eq!(
            read(json!("2026-01-31T23:30:00Z")).as_deref(),
            Some("2026-01-31")
        );
        assert_eq!(
            read(json!("2026-01-31T23:30:00-02:00")).as_deref(),
            Some("2026-02-01")
        );
        assert_eq!(
            read(json!("2026-01-31T23:30:00")).as_deref(),
            Some("2026-01-31")
        );
        assert_eq!(read(json!(1_767_225_600)).as_deref(), Some("2026-01-01"));
        assert_eq!(
            read(json!(1_767_225_600_000_i64)).as_deref(),
            Some("2026-01-01")
        );
        // What is no such point is left to the engine, which says what is wrong.
        for other in [
            json!("2026-01-31"),
            json!("yesterday evening"),
            json!(true),
            json!(1e300),
        ] {
            assert_eq!(read(other.clone()), None, "{other}");
        }
    }
}
