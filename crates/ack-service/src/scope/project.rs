//! The projects that a scope's manifest lists, with their other names.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use ack_api::memory::fold_name;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub name: String,
    pub aliases: Vec<String>,
    /// Its name and its aliases, folded; the name first.
    names: Vec<String>,
}

impl Project {
    fn new(name: String, aliases: Vec<String>) -> Self {
        let mut names = Vec::new();
        for folded in std::iter::once(&name).chain(&aliases).map(|name| fold_name(name)) {
            if !folded.is_empty() && !names.contains(&folded) {
                names.push(folded);
            }
        }
        Self { name, aliases, names }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn has_name(&self, folded: &str) -> bool {
        self.names.iter().any(|name| name == folded)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projects(Vec<Project>);

impl Projects {
    pub fn of(names: impl IntoIterator<Item = String>) -> Self {
        Self::collect(names.into_iter().map(|name| (name, Vec::new())))
    }

    /// A name that occurs twice is one project.
    fn collect(projects: impl Iterator<Item = (String, Vec<String>)>) -> Self {
        let mut list: Vec<Project> = Vec::new();
        for (name, aliases) in projects {
            let project = Project::new(name, aliases);
            let known = list.iter().any(|known| known.names.first() == project.names.first());
            if !known && !fold_name(&project.name).is_empty() {
                list.push(project);
            }
        }
        Self(list)
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Project> {
        self.0.iter()
    }

    /// The project for a folded name: the one with this name, or else the first with this alias.
    pub fn find(&self, folded: &str) -> Option<&Project> {
        let is_name = |project: &&Project| project.names.first().is_some_and(|it| it == folded);
        let by_name = self.0.iter().find(is_name);
        by_name.or_else(|| self.0.iter().find(|project| project.has_name(folded)))
    }

    pub const fn sole(&self) -> Option<&Project> {
        match self.0.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }
}

/// How `projects` may be written: names, or a table of names with their aliases.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum WrittenProjects {
    Names(Vec<String>),
    Table(BTreeMap<String, Vec<String>>),
}

impl Serialize for Projects {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        let projects = self.0.iter();
        let form = if projects.clone().all(|project| project.aliases.is_empty()) {
            WrittenProjects::Names(projects.map(|project| project.name.clone()).collect())
        } else {
            let named = projects.map(|project| (project.name.clone(), project.aliases.clone()));
            WrittenProjects::Table(named.collect())
        };
        form.serialize(output)
    }
}

impl<'de> Deserialize<'de> for Projects {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(Reader)
    }
}

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
        while let Some((name, Aliases(aliases))) = map.next_entry()? {
            projects.push((name, aliases));
        }
        Ok(Projects::collect(projects.into_iter()))
    }
}

struct Aliases(Vec<String>);

impl<'de> Deserialize<'de> for Aliases {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct AliasesReader;
        impl<'de> Visitor<'de> for AliasesReader {
            type Value = Aliases;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(
                    "a list of aliases; folders and remotes of a project belong to `paths` and \
                     `remotes` of the scope",
                )
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Aliases, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Aliases)
            }
        }
        input.deserialize_any(AliasesReader)
    }
}
