//! Filters, decided on the columns of the in-memory index, inside retrieval: a filter never costs results that exist.

use globset::{GlobBuilder, GlobMatcher};

use super::inverted::docs::Doc;
use super::inverted::{DocId, Index};
use super::names::Name;
use crate::api::MatchTags;
use crate::memory::{StatusFilter, fold_name};

/// The filters of a request, checked and parsed.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// Folded tags.
    pub tags: Vec<String>,
    /// How tags combine.
    pub match_tags: MatchTags,
    /// Folded names of the project asked for.
    pub project: Option<String>,
    /// Folded types, one of which it must be; none asks for nothing.
    pub kinds: Vec<String>,
    /// Folded words of which one must be the type or a tag; none asks for nothing.
    pub labels: Vec<String>,
    /// File patterns.
    pub files: Vec<FilePattern>,
    /// Session name or id.
    pub session: Option<String>,
    /// First instant, milliseconds since 1970.
    pub since: Option<i64>,
    /// First instant no longer included.
    pub until: Option<i64>,
    /// Whose memories: the current project's, or everybody else's.
    pub belonging: Option<Belonging>,
    /// Which statuses may be returned.
    pub status: StatusFilter,
}

/// Splits memories into those of one project and the rest.
#[derive(Debug, Clone, Default)]
pub struct Belonging {
    /// Names the project's memories may stand under, folded.
    pub names: Vec<String>,
    /// The project's scope, folded: rows without a project in it are the project's.
    pub own_scope: Option<String>,
    /// True for the project's memories, false for all others.
    pub own: bool,
    /// The own scope is private: its memories are not told as those of others either.
    pub own_is_private: bool,
}

impl Belonging {
    /// Whether anything of a scope (folded name) can pass: a private scope's memories are not told as those of others.
    pub fn admits_scope(&self, scope: &str) -> bool {
        self.own || !self.own_is_private || self.own_scope.as_deref() != Some(scope)
    }

    /// Whether a memory of a scope (folded name) passes, by its project and the project's second name, as written.
    pub fn admits(&self, scope: &str, project: &str, alias: &str) -> bool {
        let named = |name: &str| !name.is_empty() && self.names.contains(&fold_name(name));
        let mine = named(project) || named(alias) || (project.is_empty() && self.own_scope.as_deref() == Some(scope));
        mine == self.own
    }
}

/// One entry of `files`: a piece of a path, which may be meant as a glob.
#[derive(Debug, Clone)]
pub struct FilePattern {
    /// Lower case; matches where it stands in the path.
    part: String,
    glob: Option<Box<GlobMatcher>>,
    /// It matches only as the path's last folders and name.
    last: bool,
}

impl FilePattern {
    /// Parses an entry. Case does not matter.
    ///
    /// # Errors
    /// What is wrong with the glob.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_start_matches("./");
        let glob = if text.contains(['*', '?', '[']) {
            let anchored = if text.starts_with(['/', '*']) {
                text.to_owned()
            } else {
                format!("**/{text}")
            };
            let glob = GlobBuilder::new(&anchored)
                .case_insensitive(true)
                .build()
                .map_err(|error| error.to_string())?;
            Some(Box::new(glob.compile_matcher()))
        } else {
            None
        };
        Ok(Self {
            part: text.to_lowercase(),
            glob,
            last: false,
        })
    }

    /// What matches paths that end with `path`, whole names compared. The case of ASCII letters does not matter.
    pub fn ending(path: &str) -> Self {
        Self {
            part: path.to_lowercase(),
            glob: None,
            last: true,
        }
    }

    fn matches(&self, path: &str) -> bool {
        if self.last {
            // Every file of every memory is asked, so nothing is copied.
            let (path, part) = (path.as_bytes(), self.part.as_bytes());
            let parts = path.len().checked_sub(part.len()).and_then(|start| path.split_at_checked(start));
            return parts.is_some_and(|(before, end)| {
                end.eq_ignore_ascii_case(part) && before.last().is_none_or(|byte| matches!(byte, b'/' | b'\\'))
            });
        }
        // A path may itself hold what looks like a glob (`app/[id]/page.tsx`).
        self.glob.as_ref().is_some_and(|glob| glob.is_match(path)) || path.to_lowercase().contains(&self.part)
    }
}

/// What of a request's filters a database can decide by itself, in the spellings that one scope knows. Every memory that passes
/// the filters passes this; the rest is decided afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition<'a> {
    /// Spellings of the project, and whether memories without one belong to it.
    pub project: Option<(Vec<&'a str>, bool)>,
    /// Spellings of the types.
    pub kind: Option<Vec<&'a str>>,
    /// Spellings of each tag.
    pub tags: Vec<Vec<&'a str>>,
    /// How tags combine.
    pub match_tags: MatchTags,
    /// Session name or id.
    pub session: Option<&'a str>,
    /// First instant, milliseconds since 1970.
    pub since: Option<i64>,
    /// First instant no longer included.
    pub until: Option<i64>,
}

/// Filters resolved against one scope: names became numbers, patterns became sets.
pub struct Resolved<'a> {
    index: &'a Index,
    filters: &'a Filters,
    tags: Vec<Option<Name>>,
    project: Option<Vec<Name>>,
    /// The project asked for is this scope's own, so that rows without a project belong to it.
    owns_unnamed: bool,
    kinds: Option<Vec<Name>>,
    labels: Option<Vec<Name>>,
    session: Option<Option<Name>>,
    belonging: Option<(Vec<Name>, bool, bool)>,
    /// Nothing of this scope passes.
    closed: bool,
}

impl<'a> Resolved<'a> {
    /// Resolves filters for a scope whose own names (scope name, `projects` of its manifest) are `own_names`, folded.
    pub fn new(index: &'a Index, filters: &'a Filters, own_names: &[String]) -> Self {
        let owns = filters.project.as_ref().is_some_and(|project| own_names.contains(project));
        let project = filters.project.as_ref().map(|project| {
            let names = std::iter::once(project).chain(own_names.iter().filter(|_| owns));
            names.filter_map(|name| index.lookup(name)).collect()
        });
        let belonging = filters.belonging.as_ref().map(|belonging| {
            let names = belonging
                .names
                .iter()
                .filter_map(|name| index.lookup(name))
                .filter(|name| *name != 0)
                .collect();
            let here = belonging.own_scope.as_ref().is_some_and(|own| own_names.first() == Some(own));
            (names, here, belonging.own)
        });
        let closed = filters
            .belonging
            .as_ref()
            .is_some_and(|belonging| own_names.first().is_some_and(|scope| !belonging.admits_scope(scope)));
        Self {
            closed,
            belonging,
            index,
            filters,
            tags: filters.tags.iter().map(|tag| index.lookup(tag)).collect(),
            project,
            owns_unnamed: owns,
            kinds: (!filters.kinds.is_empty()).then(|| filters.kinds.iter().filter_map(|kind| index.lookup(kind)).collect()),
            labels: (!filters.labels.is_empty()).then(|| filters.labels.iter().filter_map(|label| index.lookup(label)).collect()),
            session: filters.session.as_ref().map(|session| index.lookup(session)),
        }
    }

    /// Whether every document passes, as far as this goes.
    pub fn is_open(&self) -> bool {
        !self.closed && !self.filters.restricts() && self.belonging.is_none()
    }

    /// What a database can decide of it.
    pub fn condition(&self) -> Condition<'_> {
        let spellings = |name: Option<Name>| name.map_or_else(Vec::new, |name| self.index.spellings(name));
        let project = self.project.as_ref().map(|names| {
            let spelled = names.iter().flat_map(|name| self.index.spellings(*name));
            (spelled.filter(|name| !name.is_empty()).collect(), self.owns_unnamed)
        });
        Condition {
            project,
            kind: self
                .kinds
                .as_ref()
                .map(|kinds| kinds.iter().flat_map(|kind| self.index.spellings(*kind)).collect()),
            tags: self.tags.iter().map(|tag| spellings(*tag)).collect(),
            match_tags: self.filters.match_tags,
            session: self.filters.session.as_deref(),
            since: self.filters.since,
            until: self.filters.until,
        }
    }

    /// Whether a document passes every filter but the one on status.
    pub fn passes(&self, number: DocId) -> bool {
        self.refusal(number).is_none()
    }

    /// The first filter that a document does not pass, by the name of its argument; the one on status is not asked.
    pub fn refusal(&self, number: DocId) -> Option<&'static str> {
        let belongs = |doc: &&Doc| !self.closed && self.belongs(doc);
        let Some(doc) = self.index.doc(number).filter(belongs) else {
            return Some("project");
        };
        if let Some(project) = &self.project {
            let named =
                project.contains(&self.index.fold(doc.project)) || (doc.alias != 0 && project.contains(&self.index.fold(doc.alias)));
            let unnamed = doc.project == 0 && self.owns_unnamed;
            if !(unnamed || (named && doc.project != 0)) {
                return Some("project");
            }
        }
        if self.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&self.index.fold(doc.kind))) {
            return Some("type");
        }
        if let Some(session) = self.session
            && session.is_none_or(|session| session != doc.session && session != doc.session_id)
        {
            return Some("session");
        }
        if self.filters.since.is_some_and(|since| doc.created < since) {
            return Some("since");
        }
        let late = |until: i64| doc.created >= until || doc.created == i64::MIN;
        if self.filters.until.is_some_and(late) {
            return Some("until");
        }
        // Lists lie elsewhere in memory, and looking there costs more than everything above.
        if !self.tags.is_empty() {
            let has = |tag: &Option<Name>| tag.is_some_and(|tag| self.index.tags(number).iter().any(|own| self.index.fold(*own) == tag));
            let pass = match self.filters.match_tags {
                MatchTags::All => self.tags.iter().all(has),
                MatchTags::Any => self.tags.iter().any(has),
            };
            if !pass {
                return Some("tags");
            }
        }
        if let Some(labels) = &self.labels {
            let is_label = |name: Name| labels.contains(&self.index.fold(name));
            if !is_label(doc.kind) && !self.index.tags(number).iter().any(|tag| is_label(*tag)) {
                return Some("type");
            }
        }
        let about = |file: &Name| self.filters.files.iter().any(|pattern| pattern.matches(self.index.name(*file)));
        (!self.filters.files.is_empty() && !self.index.files(number).iter().any(about)).then_some("files")
    }

    fn belongs(&self, doc: &Doc) -> bool {
        let Some((names, here, own)) = &self.belonging else { return true };
        let mine =
            names.contains(&self.index.fold(doc.project)) || names.contains(&self.index.fold(doc.alias)) || (*here && doc.project == 0);
        mine == *own
    }
}

impl Filters {
    /// Whether anything but the status restricts the answer.
    pub fn restricts(&self) -> bool {
        !self.tags.is_empty()
            || self.project.is_some()
            || !self.kinds.is_empty()
            || !self.labels.is_empty()
            || !self.files.is_empty()
            || self.session.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }

    /// Folds a tag or a name as the index does.
    pub fn fold(text: &str) -> String {
        fold_name(text)
    }
}
