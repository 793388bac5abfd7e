//! Provenance: links between memories, of those that a filter allows.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::layout::{Field, exact};
use crate::{Snapshot, StoreError, values};
use ack_api::memory::{Memory, StatusFilter};
use ack_api::{Contradiction, LinkEntry, RelativeAge, cancel, text};
use rusqlite::{Params, Row};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

/// The kind of a link between two memories that cannot both be right.
const CONTRADICTS: &str = "contradicts";
/// The kind of a link that has no other.
const RELATED: &str = "related";
/// The kind of a link from a memory to one that it replaces.
pub(crate) const SUPERSEDES: &str = "supersedes";
const MAX_CONTRADICTIONS: usize = 5;

/// The kinds of links in the native schema. Stores may contain others.
pub const KINDS: [&str; 4] = [CONTRADICTS, "derived_from", RELATED, SUPERSEDES];

const MAX_KIND_CHARS: usize = 40;
const MAX_LINKS: usize = 100;
const MAX_LINKS_PER_MEMORY: usize = 1_000;
const MAX_MISSING: usize = 5;
/// How many links of other kinds are checked for those between allowed memories.
const MAX_OTHER_LINKS: usize = 2_500;

#[derive(Debug, Clone)]
pub struct LinkQuery<'a> {
    pub filter: StatusFilter,
    pub depth: u32,
    /// The kinds of links in lower case. Empty means all.
    pub kinds: &'a [String],
}

#[derive(Debug, Default)]
pub struct LinkWalk {
    /// The links in the order they were found, nearest first.
    pub links: Vec<LinkEntry>,
    pub has_deeper_links: bool,
    pub is_truncated: bool,
    /// Ids that links lead to and no row has, at most `MAX_MISSING`.
    pub missing: Vec<String>,
}

/// A link between two memories; as JSON, a line in the list of links of a published version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    pub from: String,
    pub to: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

impl Link {
    fn other_end(&self, near: &str) -> &str {
        if self.from == near { &self.to } else { &self.from }
    }

    fn key(&self) -> (String, String, String) {
        (self.from.clone(), self.to.clone(), self.kind.clone())
    }
}

/// Titles of memories by id; `None` if a memory may not be shown.
type Titles = HashMap<String, Option<String>>;

impl Snapshot<'_> {
    /// The links around a memory, breadth-first.
    pub fn links(&self, id: &str, query: &LinkQuery<'_>) -> Result<LinkWalk, StoreError> {
        let mut walk = LinkWalk::default();
        let mut titles = Titles::new();
        let mut keys: HashSet<(String, String, String)> = HashSet::new();
        let mut visited: HashSet<String> = HashSet::from([id.to_owned()]);
        let mut queue = VecDeque::from([(id.to_owned(), 1)]);
        let mut ends: Vec<String> = Vec::new();
        while let Some((current, level)) = queue.pop_front() {
            let (links, all) = self.links_of(&current, query.kinds)?;
            walk.is_truncated |= !all;
            for link in links {
                if cancel::check().is_err() {
                    return Ok(walk);
                }
                let other_end = link.other_end(&current).to_owned();
                let Some(title) = self.title(&other_end, query.filter, &mut titles)? else {
                    if walk.missing.len() < MAX_MISSING
                        && !walk.missing.contains(&other_end)
                        && self.by_id(&other_end)?.is_none()
                    {
                        walk.missing.push(other_end);
                    }
                    continue;
                };
                if !keys.insert(link.key()) {
                    continue;
                }
                if walk.links.len() >= MAX_LINKS {
                    walk.is_truncated = true;
                    return Ok(walk);
                }
                if visited.insert(other_end.clone()) {
                    if level < query.depth {
                        queue.push_back((other_end, level + 1));
                    } else {
                        ends.push(other_end);
                    }
                }
                walk.links.push(LinkEntry {
                    from_id: link.from,
                    to_id: link.to,
                    kind: link.kind,
                    depth: level,
                    title: Some(title),
                    source: link.source,
                    confidence: link.confidence,
                });
            }
        }
        for end in ends {
            for link in self.links_of(&end, query.kinds)?.0 {
                if !keys.contains(&link.key())
                    && self.title(link.other_end(&end), query.filter, &mut titles)?.is_some()
                {
                    walk.has_deeper_links = true;
                    return Ok(walk);
                }
            }
        }
        Ok(walk)
    }

    pub(super) fn contradictory(&self) -> Result<Vec<(String, String)>, StoreError> {
        let Some(source) = &self.layout.links else { return Ok(Vec::new()) };
        let clauses = format!(" WHERE lower(trim({})) = ?1", source.columns[2]);
        let links = self.read_links(&clauses, [CONTRADICTS])?.into_iter();
        Ok(links.map(|link| (link.from, link.to)).collect())
    }

    /// The memories that contradict one that a person's decision approved.
    pub(super) fn against_approved(&self) -> Result<FxHashSet<String>, StoreError> {
        let mut against = FxHashSet::default();
        for (from, to) in self.contradictory()? {
            let approves = [self.decisions.approves(&to), self.decisions.approves(&from)];
            let ends = [from, to].into_iter().zip(approves);
            against.extend(ends.filter_map(|(id, approves_other)| approves_other.then_some(id)));
        }
        Ok(against)
    }

    /// Either of the two memories may name the other.
    pub fn contradictions(
        &self,
        id: &str,
        filter: StatusFilter,
    ) -> Result<Vec<Contradiction>, StoreError> {
        let mut others: Vec<Contradiction> = Vec::new();
        for link in self.stored_links(id, &[CONTRADICTS.to_owned()])?.0 {
            let other = link.other_end(id);
            if others.len() < MAX_CONTRADICTIONS
                && other != id
                && !others.iter().any(|known| known.id == other)
                && let Some(memory) = self.by_id(other)?.filter(|it| filter.allows(it.status))
            {
                others.push(Contradiction { id: other.to_owned(), age: self.age(&memory, id)? });
            }
        }
        Ok(others)
    }

    /// A newer memory counts only if it was approved.
    fn age(&self, one: &Memory, other: &str) -> Result<Option<RelativeAge>, StoreError> {
        let other = self.by_id(other)?.and_then(|other| other.created_at);
        Ok(match one.created_at.zip(other).map(|(one, other)| one.cmp(&other)) {
            Some(Ordering::Less) => Some(RelativeAge::Older),
            Some(Ordering::Greater) if StatusFilter::Approved.allows(one.status) => {
                Some(RelativeAge::Newer)
            }
            _ => None,
        })
    }

    /// Every stored link, whatever the statuses of its memories.
    pub fn all_links(&self) -> Result<Vec<Link>, StoreError> {
        let mut links = self.read_links("", [])?;
        let mut keys = HashSet::new();
        links.retain(|link| keys.insert(link.key()));
        Ok(links)
    }

    /// The stored links that `clauses` select; those without an end are left out.
    fn read_links(&self, clauses: &str, parameters: impl Params) -> Result<Vec<Link>, StoreError> {
        let Some(source) = &self.layout.links else { return Ok(Vec::new()) };
        let columns = source.columns.join(", ");
        let sql = format!("SELECT {columns} FROM {}{clauses}", source.table);
        Ok(self.read_rows(&sql, parameters, link)?.into_iter().flatten().collect())
    }

    /// The kinds of links beyond [`KINDS`] that exist between allowed memories.
    pub fn other_kinds(&self, filter: StatusFilter) -> Result<BTreeSet<String>, StoreError> {
        let Some(source) = &self.layout.links else { return Ok(BTreeSet::new()) };
        let kind = format!("lower(trim({}))", source.columns[2]);
        let clauses = format!(" WHERE {kind} NOT IN ('', ?1, ?2, ?3, ?4) LIMIT {MAX_OTHER_LINKS}");
        let mut titles = Titles::new();
        let mut kinds = BTreeSet::new();
        for link in self.read_links(&clauses, KINDS)? {
            let kind = text::line(&link.kind.to_lowercase(), 60);
            if kind != RELATED
                && !kinds.contains(&kind)
                && self.title(&link.from, filter, &mut titles)?.is_some()
                && self.title(&link.to, filter, &mut titles)?.is_some()
            {
                kinds.insert(kind);
            }
        }
        Ok(kinds)
    }

    fn title(
        &self,
        id: &str,
        filter: StatusFilter,
        known: &mut Titles,
    ) -> Result<Option<String>, StoreError> {
        if let Some(title) = known.get(id) {
            return Ok(title.clone());
        }
        let memory = self.by_id(id)?.filter(|memory| filter.allows(memory.status));
        let title = memory.map(|memory| memory.title);
        known.insert(id.to_owned(), title.clone());
        Ok(title)
    }

    /// The links of a memory, stored or by succession, and whether the list is complete.
    fn links_of(&self, id: &str, kinds: &[String]) -> Result<(Vec<Link>, bool), StoreError> {
        let (mut links, all) = self.stored_links(id, kinds)?;
        if kinds.is_empty() || kinds.iter().any(|kind| kind == SUPERSEDES) {
            self.add_successions(id, &mut links)?;
        }
        Ok((links, all))
    }

    fn stored_links(&self, id: &str, kinds: &[String]) -> Result<(Vec<Link>, bool), StoreError> {
        let Some(source) = &self.layout.links else { return Ok((Vec::new(), true)) };
        let kind = &source.columns[2];
        let [from, to, by_kind, ..] = source.columns.each_ref().map(|column| exact(column));
        let clauses = format!(
            " WHERE ({from} = ?1 OR {to} = ?1)
              AND (?2 = '[]' OR lower(trim(coalesce({kind}, 'related'))) IN (SELECT value FROM json_each(?2)))
              ORDER BY {from}, {to}, {by_kind} LIMIT {}",
            MAX_LINKS_PER_MEMORY + 1
        );
        let wanted = serde_json::to_string(kinds).unwrap_or_default();
        let mut links = self.read_links(&clauses, [id, wanted.as_str()])?;
        let all = links.len() <= MAX_LINKS_PER_MEMORY;
        links.truncate(MAX_LINKS_PER_MEMORY);
        Ok((links, all))
    }

    fn add_successions(&self, id: &str, links: &mut Vec<Link>) -> Result<(), StoreError> {
        if let Some(newer) = self.decisions.about(id).last().and_then(|last| last.into.as_deref()) {
            add_succession(links, newer, id);
        }
        for older in self.decisions.replaced_by(id) {
            add_succession(links, id, older);
        }
        for source in &self.layout.sources {
            let Some(column) = source.column(Field::SupersededBy) else { continue };
            let id_expression = source.id.expression();
            let (id_column, successor) = (exact(&id_expression), exact(column));
            let sql = format!(
                "SELECT {column}, {id_expression} FROM {} WHERE {successor} = ?1 OR ({id_column} = ?1 AND {successor} <> '') LIMIT 50",
                source.table
            );
            let pairs = |row: &Row<'_>| Ok(text_of(row, 0)?.zip(text_of(row, 1)?));
            for (newer, older) in self.read_rows(&sql, [id], pairs)?.into_iter().flatten() {
                if !older.is_empty() {
                    add_succession(links, &newer, &older);
                }
            }
        }
        Ok(())
    }
}

fn text_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(values::text_value(row.get_ref(column)?).0)
}

/// Whether it is a name, and not a text: no decision is about the kinds of links.
fn is_kind(kind: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_- ".contains(c);
    kind.chars().count() <= MAX_KIND_CHARS && kind.chars().all(is_part)
}

/// Decodes a link; `None` if one of its ends is missing.
fn link(row: &Row<'_>) -> rusqlite::Result<Option<Link>> {
    let id = |column| -> rusqlite::Result<Option<String>> {
        Ok(text_of(row, column)?.map(|value| text::id(&value)))
    };
    let (Some(from), Some(to)) = (id(0)?, id(1)?) else { return Ok(None) };
    Ok(Some(Link {
        from,
        to,
        kind: id(2)?.filter(|kind| is_kind(kind)).unwrap_or_else(|| RELATED.to_owned()),
        source: id(3)?,
        confidence: values::share_value(row.get_ref(4)?),
    }))
}

/// Adds that a memory supersedes another one, unless that link exists.
fn add_succession(links: &mut Vec<Link>, newer: &str, older: &str) {
    let (from, to, kind) = (newer.to_owned(), older.to_owned(), SUPERSEDES.to_owned());
    let new = Link { from, to, kind, source: None, confidence: None };
    let is_same = |it: &Link| (&it.from, &it.to, &it.kind) == (&new.from, &new.to, &new.kind);
    if !links.iter().any(is_same) {
        links.push(new);
    }
}
