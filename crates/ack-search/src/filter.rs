//! Filters, decided on the columns of the in-memory index, inside retrieval: a filter never costs results that exist.

use globset::{GlobBuilder, GlobMatcher};

use super::inverted::docs::Doc;
use super::inverted::{DocId, Index};
use super::names::Name;
use ack_api::MatchTags;
use ack_api::memory::{ProjectRows, StatusFilter, fold_name};

/// The filters of a request, checked and parsed.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// Folded tags.
    pub tags: Vec<String>,
    /// How tags combine.
    pub match_tags: MatchTags,
    /// The folded name of the project asked for.
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
    pub own: Option<bool>,
    /// Which statuses may be returned.
    pub status: StatusFilter,
}

/// A project's rows in the numbers of an index.
struct Rows {
    names: Vec<Name>,
    unnamed: bool,
}

impl Rows {
    fn resolve(rows: &ProjectRows, index: &Index) -> Self {
        let names = rows.names.iter().filter_map(|name| index.lookup(name));
        Self {
            names: names.filter(|name| *name != 0).collect(),
            unnamed: rows.unnamed,
        }
    }

    fn hold(&self, index: &Index, doc: &Doc) -> bool {
        let named = |name: Name| name != 0 && self.names.contains(&index.fold(name));
        named(doc.project) || named(doc.alias) || (doc.project == 0 && self.unnamed)
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
    /// Those of the project asked for.
    project: Option<Rows>,
    /// Those of the current project.
    own: Rows,
    kinds: Option<Vec<Name>>,
    labels: Option<Vec<Name>>,
    session: Option<Option<Name>>,
}

impl<'a> Resolved<'a> {
    /// Resolves filters for a scope: `project` are its rows of the project asked for, `own` those of the current project.
    pub fn new(index: &'a Index, filters: &'a Filters, project: Option<&ProjectRows>, own: &ProjectRows) -> Self {
        Self {
            index,
            filters,
            tags: filters.tags.iter().map(|tag| index.lookup(tag)).collect(),
            project: project.map(|project| Rows::resolve(project, index)),
            own: Rows::resolve(own, index),
            kinds: (!filters.kinds.is_empty()).then(|| filters.kinds.iter().filter_map(|kind| index.lookup(kind)).collect()),
            labels: (!filters.labels.is_empty()).then(|| filters.labels.iter().filter_map(|label| index.lookup(label)).collect()),
            session: filters.session.as_ref().map(|session| index.lookup(session)),
        }
    }

    /// Whether every document passes, as far as this goes.
    pub fn is_open(&self) -> bool {
        !self.filters.restricts() && self.filters.own.is_none()
    }

    /// Whether a document is the current project's.
    pub fn is_own(&self, doc: &Doc) -> bool {
        self.own.hold(self.index, doc)
    }

    /// What a database can decide of it.
    pub fn condition(&self) -> Condition<'_> {
        let spellings = |name: Option<Name>| name.map_or_else(Vec::new, |name| self.index.spellings(name));
        let project = self.project.as_ref().map(|rows| {
            let spelled = rows.names.iter().flat_map(|name| self.index.spellings(*name));
            (spelled.collect(), rows.unnamed)
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
        let belongs = |doc: &&Doc| self.filters.own.is_none_or(|own| self.is_own(doc) == own);
        let Some(doc) = self.index.doc(number).filter(belongs) else {
            return Some("project");
        };
        if self.project.as_ref().is_some_and(|project| !project.hold(self.index, doc)) {
            return Some("project");
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
