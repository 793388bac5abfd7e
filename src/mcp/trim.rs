//! Removes from answers what their reader cannot use: the time of day in timestamps, and the paths
//! of this machine if clients may be on others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ack_api::ErrorBody;
use serde_json::Value;

use super::Server;
use crate::service::Service;

/// The timestamp fields of answers.
const TIMES: [&str; 7] = [
    "created_at",
    "updated_at",
    "reviewed_at",
    "started_at",
    "built_at",
    "last_updated",
    "oldest",
];
/// The members of an answer that may contain paths of this machine. The others are memories, which
/// are not changed.
const FIELDS_WITH_PATHS: [&str; 6] = ["notes", "path", "project", "scope", "scopes", "searched"];

/// Shortens timestamps to dates. A model needs no seconds, and they cost as many tokens as a line
/// of text.
pub fn shorten_days(answer: &mut Value) {
    match answer {
        Value::Array(entries) => entries.iter_mut().for_each(shorten_days),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(instant) if TIMES.contains(&name.as_str()) => {
                        if let Some((day, _)) = instant.split_once('T') {
                            *instant = day.to_owned();
                        }
                    }
                    other => shorten_days(other),
                }
            }
        }
        _ => {}
    }
}

impl Server {
    /// Replaces the paths of this machine in an answer, if clients may be on others.
    pub(super) fn hide_paths(&self, answer: &mut Value) {
        let Some(members) = answer.as_object_mut().filter(|_| self.is_shared) else {
            return;
        };
        let mut places = None;
        for (name, value) in members {
            if FIELDS_WITH_PATHS.contains(&name.as_str()) {
                replace(value, &mut |text| {
                    let places = places.get_or_insert_with(|| Places::of(self.service));
                    places.hidden(text)
                });
            }
        }
    }

    /// Replaces the paths of this machine in an error, if clients may be on others.
    pub(super) fn hide_paths_of(&self, body: &mut ErrorBody) {
        if !self.is_shared {
            return;
        }
        let places = Places::of(self.service);
        body.message = places.hidden(&body.message);
        body.hint = body.hint.take().map(|hint| places.hidden(&hint));
        body.path = body.path.take().map(|path| places.name(&path));
    }
}

/// Replaces each text that may have a path.
fn replace(value: &mut Value, hidden: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::String(text) if text.contains('/') => *text = hidden(text),
        Value::Array(entries) => entries.iter_mut().for_each(|it| replace(it, hidden)),
        Value::Object(members) => members.values_mut().for_each(|it| replace(it, hidden)),
        _ => {}
    }
}

/// The paths of this machine, and what replaces them.
struct Places {
    names: HashMap<PathBuf, String>,
    /// The folder that the server runs in.
    project: PathBuf,
}

impl Places {
    /// The folders and stores of the scopes that a service sees, and the folder that it runs in.
    fn of(service: &Service) -> Self {
        let mut names = HashMap::new();
        let project = &service.config.project.value;
        if let Some(name) = project.file_name() {
            names.insert(project.clone(), name.to_string_lossy().into_owned());
        }
        for scope in service.registry.discover().scopes {
            let store = scope.store.path();
            let name = match store.file_name() {
                Some(file) if store.is_file() => {
                    format!("{}/{}", scope.name, file.to_string_lossy())
                }
                _ => scope.name.clone(),
            };
            names.insert(store.to_owned(), name);
            names.insert(scope.folder.clone(), scope.name.clone());
        }
        Self {
            names,
            project: project.clone(),
        }
    }

    /// A text without paths of this machine. Messages have paths in backticks. A text that is
    /// another path than a scope's comes from the client.
    fn hidden(&self, text: &str) -> String {
        if text.starts_with('/') {
            let is_here = self.known(text).is_some() || self.project.starts_with(text);
            return if is_here {
                self.name(text)
            } else {
                text.to_owned()
            };
        }
        let parts = text.split('`').enumerate();
        let parts = parts.map(|(number, part)| match part.starts_with('/') {
            true if number % 2 == 1 => self.name(part),
            _ => part.to_owned(),
        });
        parts.collect::<Vec<_>>().join("`")
    }

    /// The name of a path: from the scope that it belongs to, or only its last part.
    fn name(&self, path: &str) -> String {
        self.known(path).unwrap_or_else(|| {
            let last = Path::new(path).file_name().unwrap_or_default();
            format!("…/{}", last.to_string_lossy())
        })
    }

    /// The name of a path that belongs to a scope.
    fn known(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        let (place, name) = path
            .ancestors()
            .find_map(|place| Some((place, self.names.get(place)?)))?;
        let rest = path.strip_prefix(place).ok()?;
        Some(match rest.as_os_str().is_empty() {
            true => name.clone(),
            false => format!("{name}/{}", rest.display()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_by_its_scope_and_another_one_by_its_last_part() {
        let places = [
            ("/srv/ack/scopes/platform", "platform"),
            ("/home/ana/src/notes", "team"),
            ("/home/ana/mem.db", "own/mem.db"),
        ];
        let places = places.map(|(path, name)| (PathBuf::from(path), name.to_owned()));
        let places = Places {
            names: HashMap::from(places),
            project: PathBuf::from("/srv/shop/web"),
        };
        for (text, hidden) in [
            ("/srv/ack/scopes/platform", "platform"),
            (
                "cannot read `/srv/ack/scopes/platform/decisions.jsonl`: no",
                "cannot read `platform/decisions.jsonl`: no",
            ),
            ("`/home/ana/src/notes/a.md` is", "`team/a.md` is"),
            ("`/home/ana/mem.db` is empty", "`own/mem.db` is empty"),
            ("`/home/ana/src/notes2` and `a/b`", "`…/notes2` and `a/b`"),
            ("/srv/shop", "…/shop"),
            ("/elsewhere/shop", "/elsewhere/shop"),
            ("either/or", "either/or"),
            ("no ` end /tmp", "no ` end /tmp"),
        ] {
            assert_eq!(places.hidden(text), hidden);
        }
    }
}
