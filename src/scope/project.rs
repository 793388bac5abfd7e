//! The projects that a scope's manifest lists, with their other names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use ack_api::memory::fold_name;

/// A project that a manifest lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its name.
    pub name: String,
    /// Other details.
    pub details: Details,
    /// Its name and its aliases, folded; the name first.
    names: Vec<String>,
}

/// What a manifest says about one project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Details {
    /// Other names of the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Its folders; `~` and globs are allowed. The longest match wins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Its git remotes, in any spelling.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<String>,
}

impl Project {
    fn new(name: String, details: Details) -> Self {
        let mut names = Vec::new();
        for name in std::iter::once(&name).chain(&details.aliases) {
            let folded = fold_name(name);
            if !folded.is_empty() && !names.contains(&folded) {
                names.push(folded);
            }
        }
        Self {
            name,
            details,
            names,
        }
    }

    /// Its name and its aliases, folded.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether a folded name is its own or one of its aliases.
    pub fn has_name(&self, folded: &str) -> bool {
        self.names.iter().any(|name| name == folded)
    }
}

/// The projects of a scope, in the order of its manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projects(Vec<Project>);

impl Projects {
    /// Projects without aliases.
    pub fn of(names: impl IntoIterator<Item = String>) -> Self {
        Self::collect(names.into_iter().map(|name| (name, Details::default())))
    }

    /// A name that occurs twice is one project.
    fn collect(projects: impl Iterator<Item = (String, Details)>) -> Self {
        let mut list: Vec<Project> = Vec::new();
        for (name, details) in projects {
            let project = Project::new(name, details);
            let known = list
                .iter()
                .any(|known| known.names.first() == project.names.first());
            if !known && !fold_name(&project.name).is_empty() {
                list.push(project);
            }
        }
        Self(list)
    }

    /// Whether the manifest lists no projects.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the projects.
    pub fn iter(&self) -> std::slice::Iter<'_, Project> {
        self.0.iter()
    }

    /// The project for a folded name: the one with this name, or else the first with this alias.
    pub fn find(&self, folded: &str) -> Option<&Project> {
        let by_name = self
            .0
            .iter()
            .find(|project| project.names.first().is_some_and(|name| name == folded));
        by_name.or_else(|| self.0.iter().find(|project| project.has_name(folded)))
    }

    /// The project, if there is exactly one.
    pub const fn sole(&self) -> Option<&Project> {
        match self.0.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }
}

/// How `projects` may be written: names; or a table of names, each with its aliases or with more.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum WrittenProjects {
    Names(Vec<String>),
    Table(BTreeMap<String, WrittenProject>),
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum WrittenProject {
    Aliases(Vec<String>),
    Details(Details),
}

impl Serialize for Projects {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        let plain = self
            .0
            .iter()
            .all(|project| project.details == Details::default());
        let form = if plain {
            WrittenProjects::Names(self.0.iter().map(|project| project.name.clone()).collect())
        } else {
            let form = |project: &Project| {
                let more = !project.details.paths.is_empty() || !project.details.remotes.is_empty();
                let form = if more {
                    WrittenProject::Details(project.details.clone())
                } else {
                    WrittenProject::Aliases(project.details.aliases.clone())
                };
                (project.name.clone(), form)
            };
            WrittenProjects::Table(self.0.iter().map(form).collect())
        };
        form.serialize(output)
    }
}

impl<'de> Deserialize<'de> for Projects {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for WrittenProject {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(ProjectReader)
    }
}

/// Parses `projects`. The error says what is allowed.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Projects;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of names, or a table of names with their aliases")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Projects, A::Error> {
        Vec::<String>::deserialize(SeqAccessDeserializer::new(seq)).map(Projects::of)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Projects, A::Error> {
        let mut projects = Vec::new();
        while let Some((name, form)) = map.next_entry::<String, WrittenProject>()? {
            let details = match form {
                WrittenProject::Aliases(aliases) => Details {
                    aliases,
                    ..Details::default()
                },
                WrittenProject::Details(details) => details,
            };
            projects.push((name, details));
        }
        Ok(Projects::collect(projects.into_iter()))
    }
}

/// Parses the entry of one project in `projects`.
struct ProjectReader;

impl<'de> Visitor<'de> for ProjectReader {
    type Value = WrittenProject;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of aliases, or a table with `aliases`, `paths` and `remotes`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<WrittenProject, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(WrittenProject::Aliases)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenProject, A::Error> {
        Details::deserialize(MapAccessDeserializer::new(map)).map(WrittenProject::Details)
    }
}

impl JsonSchema for Projects {
    fn schema_name() -> Cow<'static, str> {
        "Projects".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WrittenProjects::json_schema(generator)
    }
}
