//! A memory as one line of JSON: what `import` reads, what `publish --format jsonl` writes, and
//! what a folder of shared notes may hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_path_to_error::Segment;
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::{Memory, Status, nearest};
use crate::{settings, text, time};

/// A memory, one JSON object per line. Only `title` is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = add_aliases)]
pub struct ImportLine {
    /// Public id, unique in the scope. If it is missing, it is derived from the content, so that a
    /// repeated import finds it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The project it was learned in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The session it was learned in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// That session's id in the program that recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Calendar day of the session, YYYY-MM-DD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Kind of learning, such as decision or bugfix.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The learning in one line.
    #[schemars(extend("pattern" = "\\S"))]
    pub title: String,
    /// One line of context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    /// Short statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_empty")]
    #[schemars(with = "Option<Vec<String>>")]
    pub facts: Vec<String>,
    /// Tags.
    #[serde(
        default,
        alias = "tags",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_empty"
    )]
    #[schemars(with = "Option<Vec<String>>")]
    pub concepts: Vec<String>,
    /// Paths of the files it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_empty")]
    #[schemars(with = "Option<Vec<String>>")]
    pub files: Vec<String>,
    /// The long text.
    #[serde(alias = "body", skip_serializing_if = "Option::is_none")]
    pub narrative: Option<String>,
    /// staging (default), approved, promoted or rejected.
    #[schemars(extend("enum" = ["staging", "approved", "promoted", "rejected", null]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The writer's confidence, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// When it was reviewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed_at: Option<String>,
    /// Who reviewed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed_by: Option<String>,
    /// The id of the memory that replaces this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// When it was written: RFC 3339, or a day. Default: `date`, or the moment of the import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// The memory without what only its store says: its status, its session and its days.
impl From<ImportLine> for Memory {
    fn from(line: ImportLine) -> Self {
        Self {
            id: line.id.unwrap_or_default(),
            project: line.project,
            kind: line.kind,
            title: line.title,
            subtitle: line.subtitle,
            facts: line.facts,
            concepts: line.concepts,
            files: line.files,
            narrative: line.narrative,
            ..Self::default()
        }
    }
}

const NO_TITLE: &str = "`title` is missing or empty; it is the only required key";
/// Keys with another name.
const SYNONYMS: [(&str, &str); 2] = [("concepts", "tags"), ("narrative", "body")];

fn add_aliases(schema: &mut schemars::Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut)
    else {
        return;
    };
    for (name, other) in SYNONYMS {
        if let Some(mut property) = properties.get(name).cloned() {
            if let Some(description) = property.get_mut("description") {
                *description = Value::String(format!("Another name for `{name}`."));
            }
            properties.insert(other.to_owned(), property);
        }
    }
}

fn null_as_empty<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(input)?.unwrap_or_default())
}

/// A line after every check, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The line, with its id and status filled in and its instants normalised.
    pub line: ImportLine,
    pub id: String,
    pub status: Status,
    pub has_id: bool,
    pub has_date: bool,
    pub has_status: bool,
    /// The fields that the line gave a value, under the names of their columns.
    pub given_fields: Vec<String>,
}

pub fn parse(line: &str, now: jiff::Timestamp) -> Result<Row, String> {
    if line.starts_with('[') {
        return Err("a JSON array, not an object".to_owned());
    }
    let values: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| match error.column() {
            // For other values, the parser's column and what it expected would not help.
            0 => "not a JSON object".to_owned(),
            column => format!("not a JSON object: see column {column}"),
        })?;
    for (name, other) in SYNONYMS {
        if values.contains_key(name) && values.contains_key(other) {
            return Err(format!("`{name}` and `{other}` are the same key; give one of them"));
        }
    }
    let given = given_fields(&values);
    let values = Value::Object(values);
    let mut parsed: ImportLine =
        serde_path_to_error::deserialize(&values).map_err(|error| explain(&values, &error))?;
    let has_status = parsed.status.is_some();
    if parsed.title.trim().is_empty() {
        return Err(NO_TITLE.to_owned());
    }
    let status = validated_status(&parsed)?;
    let has_date = parsed.created_at.is_some() || parsed.date.is_some();
    normalise_instants(&mut parsed)?;
    let content = xxh3_64(serde_json::to_string(&parsed).unwrap_or_default().as_bytes());
    let of_day = || Some(time::to_rfc3339(time::parse(parsed.date.as_deref()?)?));
    let created = parsed.created_at.clone().or_else(of_day);
    parsed.created_at = created.or_else(|| Some(time::to_rfc3339(now)));
    parsed.status = Some(status.as_str().to_owned());
    let has_id = parsed.id.as_deref().is_some_and(|id| !id.trim().is_empty());
    let id = match parsed.id.take().filter(|_| has_id) {
        Some(id) => checked_id(id.trim())?,
        // The day of an undated line is left out, or a repeated import would make another id.
        None => {
            let created = parsed.created_at.as_deref().filter(|_| has_date);
            derived_id(content, parsed.date.as_deref().or(created))
        }
    };
    parsed.id = Some(id.clone());
    Ok(Row { line: parsed, id, status, has_id, has_date, has_status, given_fields: given })
}

/// The status of a line whose status, confidence and day are allowed.
fn validated_status(line: &ImportLine) -> Result<Status, String> {
    let status = match line.status.as_deref() {
        None => Status::Staging,
        Some(word) => {
            Status::parse(word).filter(|status| status.as_str() == word).ok_or_else(|| {
                format!(
                    "`status` is `{}`; allowed are staging, approved, promoted, rejected",
                    text::line(word, 60)
                )
            })?
        }
    };
    if let Some(confidence) = line.confidence.filter(|confidence| !(0.0..=1.0).contains(confidence))
    {
        return Err(format!("`confidence` is {confidence}; allowed is 0 to 1"));
    }
    if let Some(date) = line.date.as_deref().filter(|date| time::day_bound(date, false).is_none()) {
        return Err(format!(
            "`date` is `{}`, which is not a real day; write YYYY-MM-DD",
            text::line(date, 60)
        ));
    }
    Ok(status)
}

fn normalise_instants(line: &mut ImportLine) -> Result<(), String> {
    for (key, value) in [
        ("created_at", &mut line.created_at),
        ("updated_at", &mut line.updated_at),
        ("reviewed_at", &mut line.reviewed_at),
    ] {
        let Some(text) = value else { continue };
        let instant = time::parse(text).ok_or_else(|| {
            format!(
                "`{key}` is `{}`, which is not a date; write RFC 3339, for instance \
                 2026-01-04T10:00:00Z",
                text::line(text, 60)
            )
        })?;
        *text = time::to_rfc3339(instant);
    }
    Ok(())
}

fn checked_id(id: &str) -> Result<String, String> {
    if id.len() > 200 || id.chars().any(char::is_control) || text::line(id, 200) != id {
        return Err(format!(
            "`id` is `{}`; allowed are up to 200 bytes of printable characters, without two \
             spaces in a row",
            text::line(id, 60)
        ));
    }
    Ok(id.to_owned())
}

/// The fields that have a value; `null` is none.
fn given_fields(values: &Map<String, Value>) -> Vec<String> {
    let fields = values.iter().filter(|(_, value)| !value.is_null());
    let column = |name: &String| SYNONYMS.iter().find(|(_, other)| other == name);
    fields.map(|(name, _)| column(name).map_or(name.as_str(), |it| it.0).to_owned()).collect()
}

/// `ack_<six characters>_<day>_<three digits>`, from the content.
fn derived_id(content: u64, day: Option<&str>) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number = content;
    let mut code = String::new();
    for _ in 0..6 {
        code.push(char::from(DIGITS.get((number % 36) as usize).copied().unwrap_or(b'0')));
        number /= 36;
    }
    let day = day.and_then(|day| day.get(..10)).unwrap_or("undated");
    format!("ack_{code}_{day}_{:03}", number % 1_000)
}

fn explain(values: &Value, error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let Some(Segment::Map { key }) = error.path().iter().next() else {
        return NO_TITLE.to_owned();
    };
    let known = settings::keys::<ImportLine>();
    if !known.contains(key) {
        let near = nearest(key, known.iter().map(String::as_str), 1);
        let hint =
            near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return format!(
            "`{}` is not a key of an import line{hint} (schemas/import-line.json lists them)",
            text::line(key, 60)
        );
    }
    let value = values.get(key).map(Value::to_string).unwrap_or_default();
    let reason = error.inner().to_string();
    let (value, reason) = (text::line(&value, 60), text::line(&reason, 120));
    match reason.split_once(", expected ") {
        Some((_, "a sequence")) => format!("`{key}` is {value}; it must be a list"),
        Some((_, expected)) => format!("`{key}` is {value}; it must be {expected}"),
        None => format!("`{key}` is {value}: {reason}"),
    }
}
