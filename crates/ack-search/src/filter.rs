//! Filters, evaluated on the columns of the index during retrieval, so that filtering never loses a
//! result.

use std::ops::Range;

use super::file_pattern::FilePattern;
use super::interner::NameId;
use super::inverted::Index;
use super::inverted::docs::Doc;
use super::postings::DocId;
use super::remote::{ProjectSpellings, PushdownFilter};
use ack_api::MatchTags;
use ack_api::memory::{ProjectRows, StatusFilter};

/// The filters of a request, validated and parsed.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    pub tags: Vec<String>,
    pub match_tags: MatchTags,
    /// Folded name of the project.
    pub project: Option<String>,
    /// Folded types, one of which the memory must have; any if empty.
    pub kinds: Vec<String>,
    pub files: Vec<FilePattern>,
    pub session: Option<String>,
    /// First instant, in milliseconds since 1970.
    pub since: Option<i64>,
    /// End of the time range (exclusive), in milliseconds since 1970.
    pub until: Option<i64>,
    /// Only memories of the current project (true), or only of others (false).
    pub current_project: Option<bool>,
    pub status: StatusFilter,
}

/// The names of a project, resolved for one index.
pub struct ProjectNames {
    names: Vec<NameId>,
    /// Whether memories without a project belong to it.
    unnamed: bool,
}

impl ProjectNames {
    pub fn resolve(rows: &ProjectRows, index: &Index) -> Self {
        let names = rows.names.iter().filter_map(|name| index.names().lookup(name));
        Self { names: names.filter(|name| *name != 0).collect(), unnamed: rows.unnamed }
    }

    pub const fn is_unknown(&self) -> bool {
        self.names.is_empty() && !self.unnamed
    }

    pub fn contains(&self, index: &Index, doc: &Doc) -> bool {
        let is_listed = |name: NameId| name != 0 && self.names.contains(&index.names().fold(name));
        is_listed(doc.project) || is_listed(doc.alias) || (doc.project == 0 && self.unnamed)
    }
}

/// Filters resolved for one scope, with ids instead of names.
pub struct ResolvedFilters<'a> {
    index: &'a Index,
    pub(super) filters: &'a Filters,
    /// The folded names that each tag stands for: itself, and the tags below it.
    tags: Vec<Vec<NameId>>,
    requested_project: Option<ProjectNames>,
    current_project: ProjectNames,
    /// The project that the question names.
    named_project: Option<ProjectNames>,
    /// The time that it names, in milliseconds since 1970.
    named_period: Option<Range<i64>>,
    kinds: Option<Vec<NameId>>,
    session: Option<Option<NameId>>,
}

impl<'a> ResolvedFilters<'a> {
    /// `requested` and `current` are a scope's names of the requested and of the current project.
    pub fn new(
        index: &'a Index,
        filters: &'a Filters,
        requested: Option<&ProjectRows>,
        current: &ProjectRows,
    ) -> Self {
        let any_of = |names: &[String]| -> Option<Vec<NameId>> {
            let known = names.iter().filter_map(|name| index.names().lookup(name));
            (!names.is_empty()).then(|| known.collect())
        };
        Self {
            index,
            filters,
            tags: filters.tags.iter().map(|tag| index.names().with_below(tag)).collect(),
            requested_project: requested.map(|rows| ProjectNames::resolve(rows, index)),
            current_project: ProjectNames::resolve(current, index),
            named_project: None,
            named_period: None,
            kinds: any_of(&filters.kinds),
            session: filters.session.as_ref().map(|session| index.names().lookup(session)),
        }
    }

    /// Prefers the memories of the project and the time that the question names.
    #[must_use]
    pub fn preferring(mut self, rows: Option<&ProjectRows>, period: Option<&Range<i64>>) -> Self {
        self.named_project = rows.map(|rows| ProjectNames::resolve(rows, self.index));
        self.named_period = period.cloned();
        self
    }

    /// How many of the project and the time that the question names are those of a document.
    pub fn named(&self, doc: DocId) -> u8 {
        let Some(row) = self.index.doc(doc) else {
            return 0;
        };
        let project = self.named_project.as_ref();
        let period = self.named_period.as_ref();
        u8::from(project.is_some_and(|project| project.contains(self.index, row)))
            + u8::from(period.is_some_and(|period| period.contains(&row.created)))
    }

    /// Whether every document passes, apart from its status.
    pub fn is_unrestricted(&self) -> bool {
        !self.filters.restricts() && self.filters.current_project.is_none()
    }

    pub fn in_current_project(&self, doc: &Doc) -> bool {
        self.current_project.contains(self.index, doc)
    }

    pub fn pushdown(&self) -> PushdownFilter<'_> {
        let all_spellings = |names: &[NameId]| -> Vec<&str> {
            names.iter().flat_map(|name| self.index.names().spellings(*name)).collect()
        };
        PushdownFilter {
            project: self.requested_project.as_ref().map(|project| ProjectSpellings {
                names: all_spellings(&project.names),
                unnamed: project.unnamed,
            }),
            kinds: self.kinds.as_ref().map(|kinds| all_spellings(kinds)),
            tags: self.tags.iter().map(|tags| all_spellings(tags)).collect(),
            filters: self.filters,
        }
    }

    /// The first filter but that of the status that a document fails, by its argument.
    pub fn failed_filter(&self, doc: DocId) -> Option<&'static str> {
        let (index, filters) = (self.index, self.filters);
        let is_whose = |row: &&Doc| {
            filters.current_project.is_none_or(|current| self.in_current_project(row) == current)
        };
        let Some(row) = index.doc(doc).filter(is_whose) else {
            return Some("project");
        };
        if self.requested_project.as_ref().is_some_and(|project| !project.contains(index, row)) {
            return Some("project");
        }
        if self.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&index.names().fold(row.kind))) {
            return Some("type");
        }
        if let Some(session) = self.session
            && session.is_none_or(|session| session != row.session && session != row.session_id)
        {
            return Some("session");
        }
        if filters.since.is_some_and(|since| row.created < since) {
            return Some("since");
        }
        let is_late = |until: i64| row.created >= until || row.created == i64::MIN;
        if filters.until.is_some_and(is_late) {
            return Some("until");
        }
        // The lists come last: they are elsewhere in memory, and reading them costs more than all
        // of the above.
        if !self.tags.is_empty() {
            let has = |tags: &Vec<NameId>| {
                let mut names = index.tags(doc).iter();
                names.any(|name| tags.contains(&index.names().fold(*name)))
            };
            let pass = match filters.match_tags {
                MatchTags::All => self.tags.iter().all(has),
                MatchTags::Any => self.tags.iter().any(has),
            };
            if !pass {
                return Some("tags");
            }
        }
        let matches_any = |file: &NameId| {
            filters.files.iter().any(|pattern| pattern.matches(index.names().name(*file)))
        };
        (!filters.files.is_empty() && !index.docs.files(doc).iter().any(matches_any))
            .then_some("files")
    }
}

impl Filters {
    /// Whether anything but the status and the current project restricts the result.
    pub fn restricts(&self) -> bool {
        !self.tags.is_empty()
            || self.project.is_some()
            || !self.kinds.is_empty()
            || !self.files.is_empty()
            || self.session.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }
}
