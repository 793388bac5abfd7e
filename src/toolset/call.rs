//! Translates a call of a tool: arguments on the way in, names on the way out.

use serde_json::{Map, Value, json};

use super::argument::{Argument, Form, refusal};
use super::{OfferedTool, Tool, schema};
use ack_api::memory::nearest;
use ack_api::{ErrorBody, Note, NoteKind, text};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    pub arguments: Map<String, Value>,
    /// A question whose best match is the requested memory; see [`Form::BestMatch`].
    pub question: Option<String>,
    pub notes: Vec<Note>,
    /// Requested ids, each with another form that may be meant.
    pub(super) others: Vec<(String, String)>,
    /// The given arguments, as pairs of our name and the agent's.
    pub(super) given_arguments: Vec<(String, String)>,
}

impl Call {
    pub(super) fn note(&mut self, message: String) {
        self.notes.push(Note::new(NoteKind::NotAvailable, message));
    }

    /// Sets the value for everything the argument stands for, unless it is set already.
    fn take(&mut self, argument: &Argument, value: &Value) {
        for ours in argument.targets() {
            if !self.arguments.contains_key(ours) {
                self.arguments.insert(ours.to_owned(), value.clone());
            }
        }
    }

    /// The arguments with these ids replaced by their other forms; `None` if there are none.
    pub fn alternate_arguments(
        &self,
        arguments: &Map<String, Value>,
        missing: &[&str],
    ) -> Option<Map<String, Value>> {
        let other = |id: &mut Value| {
            let mut others = self.others.iter();
            let found =
                others.find(|(known, _)| *id == *known && missing.contains(&known.as_str()));
            if let Some((_, other)) = found {
                *id = Value::from(other.as_str());
            }
            found.is_some()
        };
        let mut arguments = arguments.clone();
        let mut changed = arguments.get_mut("id").is_some_and(other);
        let ids = arguments.get_mut("ids").and_then(Value::as_array_mut);
        for id in ids.into_iter().flatten() {
            changed |= other(id);
        }
        changed.then_some(arguments)
    }
}

impl OfferedTool {
    pub fn translate(&self, values: Map<String, Value>) -> Result<Call, Box<ErrorBody>> {
        let (values, read) = self.read(values).map_err(|error| Box::new(error.body()))?;
        let mut call = Call { notes: read.into_iter().collect(), ..Call::default() };
        if self.is_plain() {
            // The service reports what is wrong with them.
            call.arguments = values;
            return Ok(call);
        }
        for (name, value) in values {
            let argument = self.arguments.iter().find(|argument| argument.name == name);
            let argument = argument.ok_or_else(|| self.unknown(&name))?;
            self.translate_one(argument, value, &mut call)?;
        }
        let is_given = |name: &str| call.given_arguments.iter().any(|(_, given)| given == name);
        let mut arguments = self.arguments.iter();
        if let Some(missing) = arguments.find(|one| one.required && !is_given(&one.name)) {
            return Err(self.missing(missing));
        }
        let has_id = ["id", "ids"].iter().any(|id| call.arguments.contains_key(*id));
        if self.operation == Tool::GetMemory && !has_id && call.question.is_none() {
            return Err(self.no_memory_error());
        }
        for argument in &self.arguments {
            if let Some(default) = argument.default {
                call.take(argument, &json!(default));
            }
        }
        call.arguments.extend(self.preset.clone());
        Ok(call)
    }

    fn translate_one(
        &self,
        argument: &Argument,
        value: Value,
        call: &mut Call,
    ) -> Result<(), Box<ErrorBody>> {
        let name = &argument.name;
        match &argument.form {
            Form::Ignored(_, reason) => {
                call.note(format!("`{name}` has no effect here: {reason}"));
                return Ok(());
            }
            Form::OnlyZero(_) if value == json!(0) => return Ok(()),
            Form::OnlyZero(reason) => {
                let mut body = refusal(name, &value, vec!["0".to_owned()]);
                body.hint = Some(reason.clone());
                body.example = None;
                return Err(body);
            }
            _ => {}
        }
        let known = schema::properties(self.operation);
        let mut given = call.given_arguments.iter();
        if let Some((_, other)) = given.find(|(ours, _)| argument.has_target(ours)) {
            let again = argument.convert(value.clone(), known, &mut Call::default());
            let is_same = again.is_ok_and(|again| {
                let mut targets = argument.targets();
                targets.all(|ours| call.arguments.get(ours) == Some(&again))
            });
            if is_same && !argument.is_converted() {
                return Ok(());
            }
            let mut body = refusal(name, &value, vec![format!("`{name}` or `{other}`")]);
            body.message = format!("`{name}` and `{other}` say the same; give one of them");
            body.example = None;
            return Err(body);
        }
        let targets = argument.targets().map(|ours| (ours.to_owned(), name.clone()));
        call.given_arguments.extend(targets);
        match (&argument.form, argument.convert(value, known, call)?) {
            (Form::BestMatch, Value::String(question)) => call.question = Some(question),
            (_, value) => call.take(argument, &value),
        }
        Ok(())
    }

    fn missing(&self, argument: &Argument) -> Box<ErrorBody> {
        let schema = argument.schema(schema::properties(self.operation));
        let kinds = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.and_then(Value::as_str).map_or(Vec::new(), |kind| vec![kind]),
        };
        missing_argument(&argument.name, &format!("`{}`", argument.name), vec![kinds.join(" or ")])
    }

    /// The error for a call that names no memory, with the arguments that do.
    fn no_memory_error(&self) -> Box<ErrorBody> {
        let names = |argument: &&Argument| argument.has_target("id") || argument.has_target("ids");
        let known = self.arguments.iter().filter(names);
        let known: Vec<String> = known.map(|argument| format!("`{}`", argument.name)).collect();
        let first = known.first().map_or("", |name| name.trim_matches('`'));
        missing_argument(first, &known.join(" or "), known.clone())
    }

    fn unknown(&self, name: &str) -> Box<ErrorBody> {
        let known: Vec<String> =
            self.arguments.iter().map(|argument| argument.name.clone()).collect();
        let name = text::line(name, 100);
        Box::new(ErrorBody {
            code: "unknown_argument".to_owned(),
            message: format!("{} has no argument `{name}`", self.name),
            nearest: nearest(&name, known.iter().map(String::as_str), 2),
            argument: Some(name),
            allowed: known,
            ..ErrorBody::default()
        })
    }

    /// The public argument for one of our own: the one that this call used, or else the first that
    /// maps to it.
    pub(super) fn argument_for(&self, ours: &str, given: &[(String, String)]) -> Option<&Argument> {
        let name_as_given = given.iter().find(|(is, _)| is == ours);
        self.arguments.iter().find(|argument| match name_as_given {
            Some((_, name)) => argument.name == *name,
            None => argument.has_target(ours),
        })
    }

    /// The service's error body with the public names of the arguments.
    pub fn body(&self, call: &Call, mut body: ErrorBody) -> ErrorBody {
        if self.is_plain() {
            return body;
        }
        let public_name = |ours: &str| {
            let argument = self.argument_for(ours, &call.given_arguments)?;
            Some(argument.name.clone())
        };
        body.example = body.example.and_then(|example| {
            let example: Map<String, Value> = serde_json::from_str(&example).ok()?;
            let renamed =
                example.into_iter().map(|(ours, value)| Some((public_name(&ours)?, value)));
            Some(Value::Object(renamed.collect::<Option<_>>()?).to_string())
        });
        body.argument = body.argument.map(|ours| public_name(&ours).unwrap_or(ours));
        body
    }
}

fn missing_argument(argument: &str, missing: &str, allowed: Vec<String>) -> Box<ErrorBody> {
    Box::new(ErrorBody {
        code: "invalid_argument".to_owned(),
        message: format!("{missing} is missing"),
        argument: Some(argument.to_owned()),
        allowed,
        ..ErrorBody::default()
    })
}
