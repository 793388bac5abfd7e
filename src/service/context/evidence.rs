//! The reasons for showing a memory at the start of a session, and their weight.
//!
//! A memory of the project itself needs no more than its date. A memory of another project needs
//! evidence: it was promoted for every project, it names a changed file, this project or a
//! dependency, or words of the branch, or it shares tags with the project's own memories. Being
//! recent is not evidence. A folder's name that is an everyday word (`empty`) names no project,
//! unless some memory was learned there; only a tag counts then.

use rustc_hash::FxHashMap as HashMap;

use super::branch;
use super::files::ProjectRoots;
use super::manifests::ManifestNames;
use super::outlines::ScopeOutline;
use super::signals::{LASTING_TYPES, Signals, is_distinctive, names};
use super::words::{WordKind, Words};
use crate::scope::resolve::Current;
use ack_api::memory::{Memory, Status};
use ack_api::text;
use ack_store::outline::{Outline, tag_hash};

/// A word counts for nothing if more than this share of the memories contain it, and more than
/// [`MIN_COMMON_MEMORIES`] of them.
const COMMON_SHARE: f64 = 0.2;
/// A word that at most this many memories contain is never too common.
const MIN_COMMON_MEMORIES: usize = 10;
/// The weight factor of a word in the title or the tags.
const PROMINENT_FACTOR: f64 = 2.0;
/// The minimum length of a project name that memories of other projects can match.
const MIN_NAME_CHARS: usize = 3;

/// Tags that name a kind of memory, besides [`LASTING_TYPES`]. Two memories that share one need not
/// have a subject in common.
const KIND_TAGS: &str = "\
    bugfix discovery how-it-works lesson pattern problem-solution trade-off what-changed \
    why-it-exists";
/// How many shared tags a reason names.
const MAX_NAMED_TAGS: usize = 3;

/// The reasons for a memory, in the order they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It is about changed files.
    Changed,
    /// It contains words of the branch's name.
    Branch,
    /// Its curator promoted it for every project.
    Promoted,
    /// It names this project.
    NamesProject,
    /// It is about a language or a dependency.
    UsesDependency,
    /// It shares tags with the project's own memories.
    SharesTags,
    /// It is a decision or a gotcha.
    Lasting,
}

impl Reason {
    pub const ALL: [Self; 7] = [
        Self::Changed,
        Self::Branch,
        Self::Promoted,
        Self::NamesProject,
        Self::UsesDependency,
        Self::SharesTags,
        Self::Lasting,
    ];

    /// The reason in a few words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Changed => "about changed files",
            Self::Branch => "matches the branch",
            Self::Promoted => "promoted",
            Self::NamesProject => "names this project",
            Self::UsesDependency => "about what the project uses",
            Self::SharesTags => "shares tags with this project",
            Self::Lasting => "of this project",
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
            | (Self::Lasting, false) => so_far,
            (Self::Promoted, false) => so_far + fifths(2),
            (Self::NamesProject | Self::UsesDependency | Self::SharesTags, false) => max,
            (Self::UsesDependency, true) => fifths(4).min(so_far + fifths(1)),
            (Self::Lasting, true) => fifths(4).min(so_far + fifths(2)),
        }
    }
}

/// The words of a project, as searched for in the stores.
pub(super) struct Terms {
    pub words: Words,
    branch: Vec<String>,
    /// The names of the changed files, as the project's own memories write them.
    endings: Vec<String>,
    subject_names: Vec<String>,
    subject_words: Vec<String>,
    project: Option<String>,
    declared: ManifestNames,
}

impl Terms {
    pub fn new(signals: Signals, current: &Current) -> Self {
        let branch = signals.branch.as_deref().map(branch::words);
        let (endings, subjects) = (signals.endings(), signals.subjects());
        let project = current.name.to_lowercase();
        let roots = ProjectRoots::of(current);
        let files = signals.changes.files.iter();
        let files = files.map(|path| (roots.file(path), names(path))).collect();
        let mut terms = Self {
            words: Words::default(),
            branch: branch.unwrap_or_default(),
            endings,
            subject_names: subjects.names,
            subject_words: subjects.words,
            project: (project.chars().count() >= MIN_NAME_CHARS).then_some(project),
            declared: signals.declared,
        };
        let prose = terms.branch.iter().map(|word| (word, WordKind::Prose));
        let names = terms
            .project
            .iter()
            .chain(&terms.endings)
            .chain(&terms.subject_names)
            .chain(&terms.subject_words)
            .chain(&terms.declared.dependencies)
            .chain(&terms.declared.tools);
        let names = names.map(|name| (name, WordKind::Name));
        let lasting = LASTING_TYPES.map(str::to_owned);
        let lasting = lasting.iter().map(|label| (label, WordKind::Name));
        terms.words = Words::new(
            prose
                .chain(lasting)
                .chain(names)
                .map(|(word, origin)| (word.clone(), origin)),
        )
        .with_files(files);
        terms
    }
}

/// The words of each reason, and the weight of each word in these stores.
pub(super) struct Evidence<'a> {
    words: &'a Words,
    weights: Vec<f64>,
    branch: u128,
    lasting: u128,
    /// The words by which the project's own memories name the changed files.
    endings: u128,
    /// The file names among these.
    paths: u128,
    /// The words by which memories of other projects may match them.
    subjects: u128,
    project: u128,
    /// The project's name, if memories must be tagged with it.
    tag: u128,
    dependencies: u128,
    /// Languages, and dependencies whose names are everyday words. Memories of other projects must
    /// be tagged with them.
    labels: u128,
    /// Words that only a few memories contain.
    distinctive: u128,
    /// The tags of the project's own memories, with their weights.
    own_tags: HashMap<u64, f64>,
}

impl<'a> Evidence<'a> {
    pub fn new(terms: &'a Terms, read: &[ScopeOutline]) -> Self {
        let words = &terms.words;
        let counts = Frequencies::count(read, words);
        let distinctive = counts.distinctive();
        let set = |list: &[String]| words.set(list.iter().map(String::as_str));
        let subjects = set(&terms.subject_names) | (set(&terms.subject_words) & distinctive);
        let everyday = terms.declared.everyday_names();
        let project = words.set(terms.project.as_deref()) & distinctive;
        let is_name = terms.project.as_deref().is_some_and(|name| {
            !text::is_common_word(name) || read.iter().any(ScopeOutline::has_own)
        });
        Self {
            words,
            weights: counts.weights(),
            branch: set(&terms.branch),
            lasting: words.set(LASTING_TYPES),
            endings: set(&terms.endings) | subjects,
            paths: set(&terms.endings),
            subjects,
            project: if is_name { project } else { 0 },
            tag: project,
            dependencies: set(&terms.declared.dependencies),
            labels: set(&terms.declared.tools) | words.set(everyday),
            distinctive,
            own_tags: HashMap::default(),
        }
    }

    /// Weighs the tags of the project's own memories. A tag that many memories have, or that only
    /// says what kind of memory it is, counts nothing.
    pub fn weigh_tags(&mut self, own: &[(usize, &Outline)], read: &[ScopeOutline]) {
        let tags = own.iter().flat_map(|(_, outline)| &outline.tags);
        let mut counts: HashMap<u64, usize> = tags.map(|tag| (*tag, 0)).collect();
        for kind in LASTING_TYPES
            .into_iter()
            .chain(KIND_TAGS.split_whitespace())
        {
            counts.remove(&tag_hash(kind));
        }
        let served = || read.iter().flat_map(|read| &read.outlines().served);
        for tag in served().flat_map(|outline| &outline.tags) {
            if let Some(count) = counts.get_mut(tag) {
                *count += 1;
            }
        }
        let memories = served().count();
        let weighed = counts
            .into_iter()
            .map(|(tag, count)| (tag, weight(count, memories)));
        self.own_tags = weighed.filter(|(_, weight)| *weight > 0.0).collect();
    }

    /// The weight of the tags that a memory shares with the project's own memories.
    fn shared_tags(&self, outline: &Outline) -> f64 {
        let tags = outline.tags.iter();
        tags.filter_map(|tag| self.own_tags.get(tag)).sum()
    }

    /// The reason in words, for a memory that was read.
    pub fn why_of(&self, memory: &Memory, reason: Option<Reason>, why: &str) -> String {
        if reason != Some(Reason::SharesTags) {
            return why.to_owned();
        }
        let tags = memory.concepts.iter();
        let shared = tags.filter(|tag| self.own_tags.contains_key(&tag_hash(tag)));
        let names: Vec<&str> = shared.take(MAX_NAMED_TAGS).map(String::as_str).collect();
        text::line(&format!("{why}: {}", names.join(", ")), 120)
    }

    /// The words of a reason that a memory contains.
    fn found(&self, outline: &Outline, reason: Reason, is_own: bool) -> u128 {
        let matches = outline.matches;
        match reason {
            Reason::Changed if is_own => matches.anywhere & self.endings,
            Reason::Changed => matches.anywhere & self.subjects,
            Reason::Branch => {
                let found = matches.anywhere & self.branch;
                // A single word in passing does not show that another project had the same problem.
                let counts = is_own || found & matches.title_or_tags != 0 || found.count_ones() > 1;
                if counts { found } else { 0 }
            }
            Reason::Promoted | Reason::SharesTags => 0,
            Reason::NamesProject if is_own => 0,
            Reason::NamesProject => {
                matches.title_or_tags & self.project | matches.type_or_tags & self.tag
            }
            Reason::UsesDependency if is_own => {
                matches.anywhere & (self.dependencies | self.labels)
            }
            Reason::UsesDependency => {
                let names = self.dependencies & !self.labels;
                names & (matches.title_or_tags | (matches.anywhere & self.distinctive))
                    | (matches.type_or_tags & self.labels)
            }
            Reason::Lasting => matches.type_or_tags & self.lasting,
        }
    }

    /// Whether a memory names a changed file. Then it need not be compared with the best score.
    pub fn names_file(&self, outline: &Outline, reason: Reason, is_own: bool) -> bool {
        is_own && reason == Reason::Changed && outline.matches.anywhere & self.paths != 0
    }

    /// The score of a memory; `None` if nothing matches.
    pub fn score(&self, outline: &Outline, reason: Reason, is_own: bool) -> Option<f64> {
        let found = self.found(outline, reason, is_own);
        match reason {
            Reason::Lasting => return (found != 0).then_some(1.0),
            Reason::Promoted => {
                let is_promoted = outline.status == Status::Promoted && !is_own;
                return is_promoted.then(|| 1.0 + self.shared_tags(outline));
            }
            Reason::SharesTags => {
                let shared = self.shared_tags(outline);
                return (shared > 0.0 && !is_own).then_some(shared);
            }
            _ => {}
        }
        let score = bits(found)
            .map(|number| {
                let weight = self.weight(number);
                if outline.matches.title_or_tags >> number & 1 == 1 {
                    weight * PROMINENT_FACTOR
                } else {
                    weight
                }
            })
            .sum::<f64>();
        (score > 0.0).then_some(score)
    }

    /// The reason in words.
    pub fn why(&self, outline: &Outline, reason: Reason, is_own: bool) -> String {
        let found = self.found(outline, reason, is_own);
        if reason == Reason::Lasting {
            let labels = self.words.list(found);
            let label = labels.first().copied().unwrap_or_default();
            return format!("{label} {}", reason.label());
        }
        if matches!(
            reason,
            Reason::NamesProject | Reason::Promoted | Reason::SharesTags
        ) {
            return reason.label().to_owned();
        }
        let weighted = bits(found).filter(|number| self.weight(*number) > 0.0);
        let weighted = weighted.fold(0, |set, number| set | 1 << number);
        let mut words = self.words.list(weighted);
        words.truncate(4);
        format!("{}: {}", reason.label(), words.join(", "))
    }

    fn weight(&self, number: u32) -> f64 {
        let weight = self.weights.get(number as usize);
        weight.copied().unwrap_or_default()
    }
}

/// The positions of the bits in a set.
fn bits(mut set: u128) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let number = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (number < u128::BITS).then_some(number)
    })
}

/// The weight of a word or tag that some of the memories have: rare ones count more, common ones
/// count nothing.
#[expect(clippy::cast_precision_loss, reason = "counts of memories")]
fn weight(count: usize, memories: usize) -> f64 {
    let share = count as f64 / memories.max(1) as f64;
    let common = count > MIN_COMMON_MEMORIES && share > COMMON_SHARE;
    if count == 0 || common {
        0.0
    } else {
        (1.0 / share).ln_1p()
    }
}

/// How many memories contain each word.
struct Frequencies {
    counts: Vec<usize>,
    memories: usize,
}

impl Frequencies {
    fn count(read: &[ScopeOutline], words: &Words) -> Self {
        let mut counts = vec![0usize; words.len()];
        let mut memories = 0;
        for outline in read.iter().flat_map(|read| &read.outlines().served) {
            memories += 1;
            for number in bits(outline.matches.anywhere) {
                if let Some(count) = counts.get_mut(number as usize) {
                    *count += 1;
                }
            }
        }
        Self { counts, memories }
    }

    /// The weight of each word.
    fn weights(&self) -> Vec<f64> {
        let counts = self.counts.iter();
        counts.map(|count| weight(*count, self.memories)).collect()
    }

    /// The words for which [`is_distinctive`] holds.
    fn distinctive(&self) -> u128 {
        let counted = (0u32..).zip(&self.counts);
        let few = counted.filter(|(_, count)| is_distinctive(**count, self.memories));
        few.fold(0, |set, (number, _)| set | 1 << number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_recent_always_has_a_place_among_five() {
        for so_far in 0..5 {
            for reason in Reason::ALL {
                assert!(reason.max_length(true, 5, so_far) < 5, "{reason:?}");
            }
        }
    }

    #[test]
    fn the_bits_of_a_set_are_its_numbers() {
        let numbers: Vec<u32> = bits(1 | 1 << 5 | 1 << 127).collect();
        assert_eq!(numbers, [0, 5, 127]);
        assert_eq!(bits(0).count(), 0);
    }
}
