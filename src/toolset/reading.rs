//! Reads arguments in the forms in which models and proxies send them.
//!
//! The declared type of an argument says what it takes. A value of another type that has one
//! meaning is read as that, and one note in the answer says how. A value with two meanings is
//! refused with a corrected example: here if the types cannot tell, else by
//! [`ack_service::arguments`], which is strict. All sets of tools are read alike.

use std::collections::HashMap;

use jiff::civil::{Date, DateTime};
use jiff::{Timestamp, fmt::rfc2822};
use serde_json::{Map, Value, json};

use super::argument::{Argument, Form};
use super::{OfferedTool, schema};
use ack_api::{ALIASES, COMMA_SEPARATED, DAYS, FREE_TEXTS, Note, NoteKind, text, time};
use ack_service::Error;

/// The names of the object that arguments may be nested in, once too deep.
const WRAPPERS: [&str; 6] = ["arguments", "args", "input", "kwargs", "parameters", "params"];
/// The names under which such an object may come with the name of the tool.
const TOOL_NAMES: [&str; 2] = ["name", "tool"];
/// How other languages write a missing value.
const NOTHING: [&str; 4] = ["null", "none", "undefined", "nil"];
/// Maximum characters of a value that a note quotes.
const MAX_QUOTED_CHARS: usize = 60;

/// Maximum length of a JSON text that is read as what it contains, in bytes.
const MAX_WRITTEN_BYTES: usize = 256 << 10;

enum Expected<'a> {
    Integer {
        /// Whether zero is below the minimum, so that it can only mean the default.
        zero_is_default: bool,
    },
    Number,
    Boolean,
    Word(Vec<&'a str>),
    Day,
    /// The name of something: a scope, a project, an id.
    Name {
        /// Whether several are separated by commas.
        by_commas: bool,
        /// Whether a number is a value of its own.
        or_number: bool,
    },
    Text,
    List(ListOf<'a>),
    Any,
}

struct ListOf<'a> {
    /// The allowed words; empty means any text.
    words: Vec<&'a str>,
    /// Whether a text is always a list separated by commas.
    by_commas: bool,
    /// Whether a number is a value of its own.
    or_number: bool,
}

/// What a value means; `None` as if the argument were not given. The error is one of two meanings,
/// as it can be passed clearly. What does not fit stays as it is, and the strict check refuses it.
type Reading = Result<Option<Value>, Value>;

impl OfferedTool {
    /// Reads arguments as their types say, under the names that they have here. The note says how
    /// those of another form were read.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a value with two meanings, or one argument given twice.
    pub fn read(
        &self,
        values: Map<String, Value>,
    ) -> Result<(Map<String, Value>, Option<Note>), Error> {
        let mut told = Vec::new();
        let values = self.unwrapped(values, &mut told);
        let known = schema::properties(self.operation);
        let mut read = Map::new();
        let mut given_as: HashMap<String, String> = HashMap::new();
        for (given, value) in values {
            let Some(argument) = self.named(&given) else {
                read.insert(given, value);
                continue;
            };
            let argument = self.of_several(argument, &value).unwrap_or(argument);
            let name = &argument.name;
            let expected = argument.expected(known);
            let reading = expected.read(&value);
            let is_empty = reading == Ok(None);
            if is_empty && argument.required && !value.is_null() {
                read.insert(name.clone(), value);
                continue;
            }
            let is_alias = ALIASES.iter().any(|(alias, _)| *alias == given);
            if !is_empty && given != *name && !is_alias {
                told.push(format!("`{}` as `{name}`", text::line(&given, 100)));
            }
            let quoted = |value: &Value| text::line(&value.to_string(), MAX_QUOTED_CHARS);
            let value = match reading {
                Ok(Some(meant)) => {
                    // JSON Schema counts 5.0 as an integer.
                    let is_same_number = value.is_number() && meant.is_number();
                    let is_usual =
                        value == meant || is_same_number || without_empty(&value) == meant;
                    if !is_usual && !argument.is_converted() {
                        told.push(format!("`{name}` {} as {}", quoted(&value), quoted(&meant)));
                    }
                    meant
                }
                Ok(None) => {
                    if !expected.is_usual_nothing(&value) {
                        told.push(format!("`{name}` {} as not given", quoted(&value)));
                    }
                    continue;
                }
                Err(example) => {
                    let example = json!({ name: example });
                    return Err(refused(name, quoted(&value), "a list of strings", example));
                }
            };
            if read.get(name).is_some_and(|other| *other != value) {
                let other = given_as.get(name).unwrap_or(name);
                let alias = text::line(if given == *name { other } else { &given }, 100);
                let together = format!("given together with `{name}`");
                let allowed = "one of the two, which are the same argument";
                return Err(refused(&alias, together, allowed, json!({ name: value })));
            }
            read.insert(name.clone(), value);
            given_as.insert(name.clone(), given);
        }
        let note = (!told.is_empty()).then(|| {
            let message = format!("read {}", told.join("; "));
            Note::new(NoteKind::ArgumentsRead, message)
        });
        Ok((read, note))
    }

    /// The arguments themselves, if they are nested in an object once too deep.
    fn unwrapped(&self, values: Map<String, Value>, told: &mut Vec<String>) -> Map<String, Value> {
        let is_wrapper = |name: &str| WRAPPERS.contains(&name) && self.named(name).is_none();
        let Some((wrapper, value)) = values.iter().find(|(name, _)| is_wrapper(name)) else {
            return values;
        };
        let names_this_tool = |(name, value): (&String, &Value)| {
            name == wrapper || TOOL_NAMES.contains(&name.as_str()) && *value == json!(self.name)
        };
        let inner = match value {
            _ if !values.iter().all(names_this_tool) => return values,
            Value::Object(inner) => inner.clone(),
            Value::String(inner) if inner.len() <= MAX_WRITTEN_BYTES => {
                match serde_json::from_str(inner) {
                    Ok(inner) => inner,
                    Err(_) => return values,
                }
            }
            _ => return values,
        };
        told.push(format!("the object in `{wrapper}` as the arguments"));
        inner
    }

    /// The argument that a name means: spelled like one except for case and separators, or by an
    /// alias.
    fn named(&self, given: &str) -> Option<&Argument> {
        let mut arguments = self.arguments.iter();
        if let Some(exact) = arguments.clone().find(|argument| argument.name == given) {
            return Some(exact);
        }
        let folded = folded_name(given);
        let alias = ALIASES.iter().find(|(alias, _)| folded_name(alias) == folded);
        let is_meant = |argument: &&Argument| {
            let is_own = argument.is.as_ref() == Some(&argument.name);
            folded_name(&argument.name) == folded
                || is_own && alias.is_some_and(|(_, name)| argument.name == *name)
        };
        arguments.find(is_meant).filter(|_| !folded.is_empty())
    }

    /// The argument that takes several of what `argument` takes one of (`ids` of `id`), if the
    /// value is a list of several.
    fn of_several(&self, argument: &Argument, value: &Value) -> Option<&Argument> {
        let is_list = match value {
            Value::Array(entries) => entries.len() > 1,
            Value::String(text) => {
                matches!(written_value(text), Some(Value::Array(entries)) if entries.len() > 1)
            }
            _ => false,
        };
        let several = format!("{}s", argument.name);
        let known = schema::properties(self.operation);
        self.arguments.iter().filter(|_| is_list).find(|other| {
            other.name == several && matches!(other.expected(known), Expected::List(_))
        })
    }
}

fn refused(argument: &str, value: String, allowed: &str, example: Value) -> Error {
    Error::invalid(argument, value, allowed).corrected(Vec::new(), Some(example))
}

impl Argument {
    fn expected<'a>(&'a self, known: &'a Map<String, Value>) -> Expected<'a> {
        let Some(schema) = self.is.as_ref().and_then(|is| known.get(is)) else {
            return match &self.form {
                Form::Ignored(kind, _) if kind == "number" || kind == "integer" => Expected::Number,
                Form::OnlyZero(_) => Expected::Number,
                _ => Expected::Any,
            };
        };
        let is_one_of = |names: &[&str]| self.targets().any(|target| names.contains(&target));
        let or_number = matches!(self.form, Form::Id(_));
        let kind = schema.get("type").and_then(Value::as_str);
        match (&self.form, kind) {
            (Form::Choice(words), _) => Expected::Word(words.keys().map(String::as_str).collect()),
            (Form::Words | Form::BestMatch, _) => Expected::Text,
            (Form::Day, _) => Expected::Day,
            (form, Some("array")) if *form != Form::One => Expected::List(ListOf {
                words: schema.get("items").map(words_of).unwrap_or_default(),
                by_commas: *form == Form::List,
                or_number,
            }),
            (_, Some("integer")) => Expected::Integer {
                zero_is_default: schema.get("minimum").and_then(Value::as_i64) > Some(0),
            },
            (_, Some("boolean")) => Expected::Boolean,
            _ if schema.get("enum").is_some() => Expected::Word(words_of(schema)),
            _ if is_one_of(&DAYS) => Expected::Day,
            _ if is_one_of(&FREE_TEXTS) => Expected::Text,
            _ => Expected::Name { by_commas: is_one_of(&COMMA_SEPARATED), or_number },
        }
    }
}

impl Expected<'_> {
    /// Whether such a value has the declared type or is null, so that no note says that it counts
    /// as not given.
    fn is_usual_nothing(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::String(text) => {
                let takes_text = matches!(self, Self::Day | Self::Name { .. } | Self::Text);
                let is_empty = text.trim().is_empty();
                is_empty && (takes_text || matches!(self, Self::List(_) | Self::Any))
            }
            Value::Array(_) => matches!(self, Self::List(_)) && without_empty(value) == json!([]),
            Value::Number(_) | Value::Bool(_) | Value::Object(_) => false,
        }
    }

    fn read(&self, value: &Value) -> Reading {
        let same = || Ok(Some(value.clone()));
        match (self, value) {
            (_, Value::Null) => Ok(None),
            (_, Value::String(text)) if text.trim().is_empty() => Ok(None),
            (_, Value::Array(entries)) if entries.is_empty() => Ok(None),
            (_, Value::Object(members)) if members.is_empty() => Ok(None),
            (Self::List(list), value) => list.read(value),
            (Self::Any, _) => same(),
            (Self::Text, Value::Array(entries)) if entries.len() > 1 => same(),
            (Self::Name { by_commas: true, .. }, Value::Array(entries)) if entries.len() > 1 => {
                let texts: Option<Vec<&str>> = entries.iter().map(Value::as_str).collect();
                texts.map_or_else(same, |texts| Ok(Some(texts.join(",").into())))
            }
            (_, Value::Array(entries)) => match entries.as_slice() {
                [one] if !one.is_array() => self.read(one),
                _ => same(),
            },
            (Self::Word(words), Value::String(text)) => match word(words, text) {
                Some(known) => Ok(Some(known.into())),
                None => self.read_text(text),
            },
            (Self::Text, Value::String(_)) => same(),
            (_, Value::String(text)) => self.read_text(text),
            (Self::Integer { zero_is_default }, Value::Number(number)) => {
                match number.as_i64().or_else(|| whole(value.as_f64()?)) {
                    Some(0) if *zero_is_default => Ok(None),
                    Some(whole) if number.is_f64() => Ok(Some(whole.into())),
                    _ => same(),
                }
            }
            (Self::Boolean, Value::Number(number)) => match number.as_i64() {
                Some(flag @ 0..=1) => Ok(Some((flag == 1).into())),
                _ => same(),
            },
            (Self::Day, Value::Number(_)) => {
                instant(value).map_or_else(same, |day| Ok(Some(day.into())))
            }
            (Self::Name { or_number: false, .. } | Self::Text, Value::Number(number)) => {
                Ok(Some(number.to_string().into()))
            }
            _ => same(),
        }
    }

    /// Reads a text that may be written in another way.
    fn read_text(&self, text: &str) -> Reading {
        let trimmed = text.trim();
        if is_nothing(trimmed) {
            return Ok(None);
        }
        let read = match (written_value(trimmed), self) {
            // Several names in one text are refused as they were written.
            (Some(Value::Array(entries)), _) if entries.len() != 1 => None,
            (Some(value), _) => Some(value),
            (None, Self::Integer { .. } | Self::Number) => number(trimmed),
            (None, Self::Boolean) => boolean(trimmed).map(Value::from),
            (None, Self::Day) => day(trimmed).map(Value::from),
            (None, _) => None,
        };
        read.map_or_else(|| Ok(Some(text.into())), |read| self.read(&read))
    }
}

impl ListOf<'_> {
    fn read(&self, value: &Value) -> Reading {
        let same = || Ok(Some(value.clone()));
        match value {
            Value::Array(entries) => match entries.as_slice() {
                [Value::Array(inner)] => self.entries(inner),
                [Value::String(text)] => match written_value(text) {
                    Some(Value::Array(inner)) => self.entries(&inner),
                    _ => self.entries(entries),
                },
                _ => self.entries(entries),
            },
            Value::String(text) => self.read_text(text.trim()),
            Value::Number(_) => self.entries(std::slice::from_ref(value)),
            Value::Object(members) => {
                // A list as PHP and form encoders write it.
                let is_numbered = |(place, name): (usize, &String)| *name == place.to_string();
                if !members.keys().enumerate().all(is_numbered) {
                    return same();
                }
                self.entries(&members.values().cloned().collect::<Vec<_>>())
            }
            Value::Bool(_) | Value::Null => same(),
        }
    }

    fn read_text(&self, text: &str) -> Reading {
        match written_value(text) {
            Some(Value::Array(entries)) => return self.entries(&entries),
            Some(one) => return self.entries(&[one]),
            None => {}
        }
        let parts: Vec<&str> =
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        let several: Vec<Value> = parts.iter().map(|part| Value::from(*part)).collect();
        if !self.words.is_empty() {
            if is_nothing(text) && word(&self.words, text).is_none() {
                return Ok(None);
            }
            return self.entries(&several);
        }
        if is_nothing(text) {
            return Err(json!([text]));
        }
        // `{a,b}` is part of a glob.
        let is_glob = text.contains(['{', '}']);
        if is_glob || parts.len() < 2 && !self.by_commas {
            return self.entries(&[text.into()]);
        }
        // Prose with a comma may be one entry.
        let is_prose = parts.iter().any(|part| part.contains(char::is_whitespace));
        if is_prose && !self.by_commas {
            return Err(several.into());
        }
        self.entries(&several)
    }

    /// The entries without empty ones.
    fn entries(&self, entries: &[Value]) -> Reading {
        let mut read = Vec::new();
        for entry in entries {
            read.push(match entry {
                Value::Null => continue,
                Value::String(text) if text.trim().is_empty() => continue,
                Value::String(text) if !self.words.is_empty() => match word(&self.words, text) {
                    Some(known) => known.into(),
                    None => entry.clone(),
                },
                Value::Number(number) if !self.or_number => number.to_string().into(),
                other => other.clone(),
            });
        }
        Ok((!read.is_empty()).then(|| read.into()))
    }
}

/// A list without empty entries; any other value as it is.
fn without_empty(value: &Value) -> Value {
    let is_empty = |entry: &&Value| {
        entry.is_null() || entry.as_str().is_some_and(|text| text.trim().is_empty())
    };
    match value.as_array() {
        Some(entries) => entries.iter().filter(|entry| !is_empty(entry)).cloned().collect(),
        None => value.clone(),
    }
}

fn words_of(schema: &Value) -> Vec<&str> {
    let words = schema.get("enum").and_then(Value::as_array);
    words.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The allowed word that a text is, apart from case and separators.
fn word<'a>(words: &[&'a str], text: &str) -> Option<&'a str> {
    let folded = folded_name(text);
    let exact = words.iter().find(|word| **word == text);
    exact.or_else(|| words.iter().find(|word| folded_name(word) == folded)).copied()
}

/// A name without case and separators: `maxTokens` and `max_tokens` are the same.
fn folded_name(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

fn is_nothing(text: &str) -> bool {
    NOTHING.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// The list or the string that a text is, as JSON or as other languages print it.
fn written_value(text: &str) -> Option<Value> {
    let text = text.trim();
    let is_list = text.starts_with('[') && text.ends_with(']');
    let is_string = text.starts_with('"') && text.ends_with('"');
    if !is_list && !is_string || text.len() > MAX_WRITTEN_BYTES {
        return None;
    }
    let value = serde_json::from_str(text).ok();
    value.or_else(|| {
        let double = text.replace('\'', "\"");
        let is_single_quoted = is_list && !text.contains('"');
        serde_json::from_str(&double).ok().filter(|_| is_single_quoted)
    })
}

fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let text = text.strip_prefix('+').unwrap_or(text);
    let whole = text.parse::<i64>().map(Value::from);
    whole.or_else(|_| text.parse::<f64>().map(Value::from)).ok().filter(|_| is_plain)
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn whole(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
    let whole = number as i64;
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(whole)
}

/// The day of a text in another form: with a time and an offset, the day in UTC; without an offset,
/// the day as written. `None` if it is a day already, or no day.
fn day(text: &str) -> Option<String> {
    if time::day_bound(text, false).is_some() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Eight digits are a day.
        return match text.len() {
            8 => Some(text.parse::<Date>().ok()?.to_string()),
            _ => instant(&Value::from(text.parse::<i64>().ok()?)),
        };
    }
    let mail = || rfc2822::parse(text).map(|at| at.timestamp());
    if let Ok(instant) = text.parse::<Timestamp>().or_else(|_| mail()) {
        return Some(time::to_date(instant));
    }
    if let Ok(at) = text.parse::<DateTime>() {
        return Some(at.date().to_string());
    }
    let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
    let [year, month, day] = parts.as_slice() else {
        return None;
    };
    let year = year.parse().ok().filter(|_| year.len() == 4)?;
    Some(Date::new(year, month.parse().ok()?, day.parse().ok()?).ok()?.to_string())
}

/// The day of seconds or milliseconds since 1970. `None` for a number that may be something else.
fn instant(number: &Value) -> Option<String> {
    let number = number.as_i64().or_else(|| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a cast saturates, and no such day exists"
        )]
        number.as_f64().map(|number| number as i64)
    })?;
    match number {
        // From 1973 to 5138.
        100_000_000..100_000_000_000 => Timestamp::from_second(number).ok().map(time::to_date),
        100_000_000_000.. => Timestamp::from_millisecond(number).ok().map(time::to_date),
        _ => None,
    }
}
