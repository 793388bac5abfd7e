//! The reasons for showing a memory at the start of a session, and their weight.
//!
//! A memory of the project itself needs no more than its date. A memory of another project needs
//! evidence: it was promoted for every project, it names a changed file, this project or a
//! dependency, or words of the branch, or it shares tags with the project's own memories. Being
//! recent is not evidence. A folder's name that is an everyday word (`empty`) names no project,
//! unless some memory was learned there; only a tag counts then.

use std::sync::Arc;

use rustc_hash::FxHashMap as HashMap;

use super::branch;
use super::choose::Candidate;
use super::files::ProjectRoots;
use super::outlines::ScopeOutline;
use super::signals::{LASTING_TYPES, Signals, file_names, is_distinctive};
use super::words::{WordKind, Words};
use crate::engine::Service;
use crate::scope::Scope;
use crate::scope::resolve::Current;
use ack_api::memory::{Memory, Status};
use ack_api::text;
use ack_store::outline::{Outline, WordMatches, tag_hash};

/// A word counts for nothing if more than this share of the memories contain it, and more than
/// [`MIN_COMMON_MEMORIES`] of them.
const COMMON_SHARE: f64 = 0.2;
const MIN_COMMON_MEMORIES: usize = 10;
const PROMINENT_FACTOR: f64 = 2.0;
const MIN_NAME_CHARS: usize = 3;

/// Tags that name a kind of memory. Two that share one need not have a subject in common.
const KIND_TAGS: &str = "\
    bugfix discovery how-it-works lesson pattern problem-solution trade-off what-changed \
    why-it-exists";
const MAX_NAMED_TAGS: usize = 3;
const MAX_NAMED_WORDS: usize = 4;
const MAX_WHY_CHARS: usize = 120;
pub const RECENT_REASON: &str = "recent in this project";

/// The reasons that speak of the present work, the weightiest last.
const WORK_REASONS: [Reason; 4] =
    [Reason::NamesProject, Reason::UsesDependency, Reason::Branch, Reason::Changed];

/// The reasons for a memory, in the order they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Changed,
    Branch,
    /// Its curator promoted it for every project.
    Promoted,
    NamesProject,
    UsesDependency,
    SharesTags,
    Lasting,
    /// Nothing but its date, which is enough for a memory of the project itself.
    Recent,
}

impl Reason {
    pub const ALL: [Self; 8] = [
        Self::Changed,
        Self::Branch,
        Self::Promoted,
        Self::NamesProject,
        Self::UsesDependency,
        Self::SharesTags,
        Self::Lasting,
        Self::Recent,
    ];

    pub const fn label(self) -> &'static str {
        match self {
            Self::Changed => "about changed files",
            Self::Branch => "matches the branch",
            Self::Promoted => "promoted",
            Self::NamesProject => "names this project",
            Self::UsesDependency => "about what the project uses",
            Self::SharesTags => "shares tags with this project",
            Self::Lasting => "of this project",
            Self::Recent => RECENT_REASON,
        }
    }

    /// The share of the best score that a memory must reach. A word shared with a changed file, or
    /// a dependency that the project's own memories name, is weak evidence by itself.
    pub const fn min_share(self, is_own: bool) -> f64 {
        match (self, is_own) {
            (Self::Changed, _) | (Self::UsesDependency, true) => 0.5,
            _ => 0.0,
        }
    }

    /// The maximum length of a list of at most `max` memories after this reason, if it had `so_far`
    /// before. No reason fills a list alone, and the project's own list always has room for
    /// something recent.
    pub fn max_length(self, is_own: bool, max: usize, so_far: usize) -> usize {
        let fifths = |count: usize| (max * count).div_ceil(5);
        match (self, is_own) {
            (Self::Changed, _) => fifths(3),
            (Self::Branch, _) => fifths(4),
            (Self::NamesProject | Self::Promoted | Self::SharesTags, true)
            | (Self::Lasting | Self::Recent, false) => so_far,
            (Self::Promoted, false) => so_far + fifths(2),
            (Self::NamesProject | Self::UsesDependency | Self::SharesTags, false)
            | (Self::Recent, true) => max,
            (Self::UsesDependency, true) => fifths(4).min(so_far + fifths(1)),
            (Self::Lasting, true) => fifths(4).min(so_far + fifths(2)),
        }
    }
}

pub struct Terms {
    pub words: Arc<Words>,
    branch: u128,
    lasting: u128,
    /// The names of the changed files, as the project's own memories write them.
    endings: u128,
    subject_names: u128,
    subject_words: u128,
    project: Option<String>,
    dependencies: u128,
    /// Languages, and dependencies named by everyday words: others' memories must be tagged so.
    labels: u128,
}

impl Terms {
    pub fn new(signals: Signals, current: &Current) -> Self {
        let branch = signals.branch.as_deref().map(branch::words).unwrap_or_default();
        let (endings, subjects) = (signals.endings(), signals.subjects());
        let declared = signals.declared;
        let project = current.name.to_lowercase();
        let project = Some(project).filter(|name| name.chars().count() >= MIN_NAME_CHARS);
        let lists =
            [&endings, &subjects.names, &subjects.words, &declared.dependencies, &declared.tools];
        let listed = lists.into_iter().flatten().map(String::as_str);
        let names = LASTING_TYPES.into_iter().chain(project.as_deref()).chain(listed);
        let prose = branch.iter().map(|word| (word.as_str(), WordKind::Prose));
        let roots = ProjectRoots::of(current);
        let files = signals.changes.files.iter().map(|path| (roots.file(path), file_names(path)));
        let words = Words::new(prose.chain(names.map(|name| (name, WordKind::Name))))
            .with_files(files.collect());
        let set = |list: &[String]| words.set(list.iter().map(String::as_str));
        Self {
            branch: set(&branch),
            lasting: words.set(LASTING_TYPES),
            endings: set(&endings),
            subject_names: set(&subjects.names),
            subject_words: set(&subjects.words),
            dependencies: set(&declared.dependencies),
            labels: set(&declared.tools) | words.set(declared.everyday_names()),
            project,
            words: Arc::new(words),
        }
    }
}

pub struct Evidence<'a> {
    terms: &'a Terms,
    weights: Weights,
    /// The words by which memories of other projects may match the changed files.
    subjects: u128,
    project: u128,
    /// The project's name, if memories must be tagged with it.
    tag: u128,
    distinctive: u128,
    own_tags: HashMap<u64, f64>,
}

impl<'a> Evidence<'a> {
    /// What some memories give. `has_own`: some of them were learned in the project.
    pub fn new<'o>(
        terms: &'a Terms,
        memories: impl Iterator<Item = &'o Outline>,
        has_own: bool,
    ) -> Self {
        let weights = Weights::new(memories.map(|it| it.matches), &terms.words);
        let distinctive = weights.distinctive;
        let tag = terms.words.set(terms.project.as_deref()) & distinctive;
        let project = terms.project.as_deref();
        let is_name = project.is_some_and(|name| !text::is_common_word(name) || has_own);
        Self {
            terms,
            weights,
            subjects: terms.subject_names | (terms.subject_words & distinctive),
            project: if is_name { tag } else { 0 },
            tag,
            distinctive,
            own_tags: HashMap::default(),
        }
    }

    /// A tag that many memories have, or that names a kind of memory, counts nothing.
    pub fn weigh_tags(&mut self, own: &[(usize, &Outline)], read: &[ScopeOutline]) {
        let tags = own.iter().flat_map(|(_, outline)| &outline.tags);
        let mut counts: HashMap<u64, usize> = tags.map(|tag| (*tag, 0)).collect();
        for kind in LASTING_TYPES.into_iter().chain(KIND_TAGS.split_whitespace()) {
            counts.remove(&tag_hash(kind));
        }
        let served = || read.iter().flat_map(|read| &read.outlines().served);
        for tag in served().flat_map(|outline| &outline.tags) {
            if let Some(count) = counts.get_mut(tag) {
                *count += 1;
            }
        }
        let memories = served().count();
        let weighed = counts.into_iter().map(|(tag, count)| (tag, weight(count, memories)));
        self.own_tags = weighed.filter(|(_, weight)| *weight > 0.0).collect();
    }

    fn shared_tags(&self, outline: &Outline) -> f64 {
        outline.tags.iter().filter_map(|tag| self.own_tags.get(tag)).sum()
    }

    fn found(&self, outline: &Outline, reason: Reason, is_own: bool) -> u128 {
        let (terms, matches) = (self.terms, outline.matches);
        match reason {
            Reason::Changed if is_own => matches.anywhere & (terms.endings | self.subjects),
            Reason::Changed => matches.anywhere & self.subjects,
            Reason::Branch => {
                let found = matches.anywhere & terms.branch;
                // A single word in passing does not show that another project had the same problem.
                let counts = is_own || found & matches.title_or_tags != 0 || found.count_ones() > 1;
                if counts { found } else { 0 }
            }
            Reason::Promoted | Reason::SharesTags | Reason::Recent => 0,
            Reason::NamesProject if is_own => 0,
            Reason::NamesProject => {
                matches.title_or_tags & self.project | matches.type_or_tags & self.tag
            }
            Reason::UsesDependency if is_own => {
                matches.anywhere & (terms.dependencies | terms.labels)
            }
            Reason::UsesDependency => {
                let names = terms.dependencies & !terms.labels;
                names & (matches.title_or_tags | (matches.anywhere & self.distinctive))
                    | (matches.type_or_tags & terms.labels)
            }
            Reason::Lasting => matches.type_or_tags & terms.lasting,
        }
    }

    /// Whether a memory names a changed file. Then it need not be compared with the best score.
    pub fn names_file(&self, outline: &Outline, reason: Reason, is_own: bool) -> bool {
        is_own && reason == Reason::Changed && outline.matches.anywhere & self.terms.endings != 0
    }

    pub fn score(&self, outline: &Outline, reason: Reason, is_own: bool) -> Option<f64> {
        let found = self.found(outline, reason, is_own);
        match reason {
            Reason::Recent => is_own.then_some(0.0),
            Reason::Lasting => (found != 0).then_some(1.0),
            Reason::Promoted => {
                let is_promoted = outline.status == Status::Promoted && !is_own;
                is_promoted.then(|| 1.0 + self.shared_tags(outline))
            }
            Reason::SharesTags => {
                Some(self.shared_tags(outline)).filter(|shared| *shared > 0.0 && !is_own)
            }
            _ => Some(self.weights.sum(outline.matches, found)).filter(|score| *score > 0.0),
        }
    }

    /// What to tell about a memory that was chosen for a reason.
    pub fn why(&self, found: Candidate<'_>, memory: &Memory, is_own: bool) -> String {
        let Candidate { outline, reason, .. } = found;
        let (found, label) = (self.found(outline, reason, is_own), reason.label());
        let why = match reason {
            Reason::NamesProject | Reason::Promoted | Reason::Recent => label.to_owned(),
            Reason::Lasting => {
                let kind = self.terms.words.list(found).first().copied().unwrap_or_default();
                format!("{kind} {label}")
            }
            Reason::SharesTags => {
                let is_shared = |tag: &&String| self.own_tags.contains_key(&tag_hash(tag));
                let shared = memory.concepts.iter().filter(is_shared).take(MAX_NAMED_TAGS);
                let shared: Vec<&str> = shared.map(String::as_str).collect();
                format!("{label}: {}", shared.join(", "))
            }
            Reason::Changed | Reason::Branch | Reason::UsesDependency => {
                let mut words = self.terms.words.list(found & self.weights.counted());
                words.truncate(MAX_NAMED_WORDS);
                format!("{label}: {}", words.join(", "))
            }
        };
        text::line(&why, MAX_WHY_CHARS)
    }
}

impl Service {
    /// From 4 for changed files to 0 for nothing; all 0 if there is no readable scope.
    pub fn nearness_to_work(&self, memories: &[(&Memory, &Scope)]) -> Vec<u32> {
        let Ok(selection) = self.select(None, None) else {
            return vec![0; memories.len()];
        };
        let current = &selection.current;
        let terms = Terms::new(Signals::of(current, &self.config), current);
        let outlines = memories.iter().map(|(memory, scope)| {
            let is_own = current.rows_in(scope).contain_memory(memory);
            (Outline::of(memory, &*terms.words), is_own)
        });
        let outlines: Vec<(Outline, bool)> = outlines.collect();
        let has_own = outlines.iter().any(|(_, is_own)| *is_own);
        let evidence = Evidence::new(&terms, outlines.iter().map(|(it, _)| it), has_own);
        let ranks = outlines.iter().map(|(outline, is_own)| {
            let found = |reason: &Reason| evidence.score(outline, *reason, *is_own).is_some();
            (1..).zip(&WORK_REASONS).filter(|(_, reason)| found(reason)).map(|(rank, _)| rank).max()
        });
        ranks.map(Option::unwrap_or_default).collect()
    }
}

/// How much each word counts among some memories.
pub struct Weights {
    weights: Vec<f64>,
    /// The words that few of them contain.
    distinctive: u128,
}

impl Weights {
    pub fn new(memories: impl Iterator<Item = WordMatches>, words: &Words) -> Self {
        let mut counts = vec![0usize; words.len()];
        let mut total = 0;
        for matches in memories {
            total += 1;
            for number in bits(matches.anywhere) {
                if let Some(count) = counts.get_mut(number as usize) {
                    *count += 1;
                }
            }
        }
        let few = (0u32..).zip(&counts).filter(|(_, count)| is_distinctive(**count, total));
        Self {
            distinctive: few.fold(0, |set, (number, _)| set | 1 << number),
            weights: counts.iter().map(|count| weight(*count, total)).collect(),
        }
    }

    pub fn of(&self, number: u32) -> f64 {
        self.weights.get(number as usize).copied().unwrap_or_default()
    }

    pub fn counted(&self) -> u128 {
        let numbered = (0u32..).zip(&self.weights).filter(|(_, weight)| **weight > 0.0);
        numbered.fold(0, |set, (number, _)| set | 1 << number)
    }

    pub fn sum_of_rarest(&self, found: u128, count: usize) -> f64 {
        let mut weights: Vec<f64> = bits(found).map(|number| self.of(number)).collect();
        weights.sort_by(|one, other| other.total_cmp(one));
        weights.iter().take(count).sum()
    }

    /// The rows with the most and rarest words, at most `count`; of equal ones the first.
    pub fn best<T>(
        &self,
        rows: impl Iterator<Item = T>,
        matches: impl Fn(&T) -> WordMatches,
        count: usize,
    ) -> Vec<T> {
        let scores = rows.map(|row| (self.sum(matches(&row), matches(&row).anywhere), row));
        let mut scored: Vec<(f64, T)> = scores.filter(|(score, _)| *score > 0.0).collect();
        scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        scored.truncate(count);
        scored.into_iter().map(|(_, row)| row).collect()
    }

    /// The weight of some words of a memory. Those of its title or tags count more.
    pub fn sum(&self, matches: WordMatches, found: u128) -> f64 {
        let prominent = bits(found & matches.title_or_tags).map(|number| self.of(number));
        let all = bits(found).map(|number| self.of(number));
        all.sum::<f64>() + (PROMINENT_FACTOR - 1.0) * prominent.sum::<f64>()
    }
}

fn bits(mut set: u128) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let number = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (number < u128::BITS).then_some(number)
    })
}

/// Rare words and tags count more, common ones nothing.
#[expect(clippy::cast_precision_loss, reason = "counts of memories")]
pub fn weight(count: usize, memories: usize) -> f64 {
    let share = count as f64 / memories.max(1) as f64;
    let common = count > MIN_COMMON_MEMORIES && share > COMMON_SHARE;
    if count == 0 || common { 0.0 } else { (1.0 / share).ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_recent_always_has_a_place_among_five() {
        for so_far in 0..5 {
            for reason in Reason::ALL.into_iter().filter(|reason| *reason != Reason::Recent) {
                assert!(reason.max_length(true, 5, so_far) < 5, "{reason:?}");
            }
        }
    }
}
