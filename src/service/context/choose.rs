//! Which memories `get_context` answers: searched for with the scopes' indexes, one signal after the other.

use std::collections::HashSet;

use rustc_hash::FxHashMap;

use super::SESSIONS;
use super::brief::RECENT;
use super::signals::{LASTING, Reason, Signals, Subjects, is_distinctive};
use super::words::{Origin, Words};
use crate::scope::resolve::Selection;
use crate::service::error::Error;
use crate::service::open::OpenScope;
use crate::service::open::OpenScopes;
use crate::service::search::{Hit, Search};
use crate::service::validate::QuerySpec;
use ack_api::cancel;
use ack_api::memory::{Memory, StatusFilter, fold_name};
use ack_api::text;
use ack_api::{Detail, MemoryHit, Mode, Note, NoteKind};
use ack_search::analysis::TokenKind;
use ack_search::analyzer::term_key;
use ack_search::dedup::Signature;
use ack_search::filter::{FilePattern, Filters};
use ack_search::interner::NameId;
use ack_search::inverted::Index;
use ack_store::sessions::{MAX_MEMBERS, Members, RecentSession, SessionQuery};

/// Why a memory is there that was searched for.
const FOCUS: &str = "matches the focus";
/// Why a memory of others is there that nothing but its date speaks for.
const RECENT_ELSEWHERE: &str = "recent elsewhere";
/// Least cosine of a memory that shares no word with the focus; what is merely recent is worth more than a farther one.
const FOCUS_FLOOR: f32 = 0.35;

/// What decides: what the session is about, or else the project as it stands.
pub(super) enum Wanted {
    Focus(String),
    Signals(Signals),
}

/// One search for memories.
struct Step {
    /// `None` for a focus, and for what is recent.
    reason: Option<Reason>,
    text: Option<String>,
    /// The memories have to hold one of these words, which then tell why they are there.
    words: Option<Words>,
    files: Vec<FilePattern>,
    labels: Vec<String>,
}

impl Step {
    const fn new(reason: Option<Reason>, text: Option<String>) -> Self {
        Self {
            reason,
            text,
            words: None,
            files: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Why a result of this step is there; `None` where it does not belong there.
    fn why(&self, hit: &Hit, own: bool) -> Option<String> {
        let shared = hit.hit.why.as_deref();
        let with = |reason: &str, words: Option<&str>| {
            words.map_or_else(|| reason.to_owned(), |words| format!("{reason} ({words})"))
        };
        let why = match (self.reason, &self.text) {
            (None, Some(_)) => with(FOCUS, shared),
            (None, None) => with(if own { RECENT } else { RECENT_ELSEWHERE }, None),
            (Some(Reason::Lasting), _) => {
                let labels = hit
                    .memory
                    .kind
                    .iter()
                    .chain(&hit.memory.concepts)
                    .map(|label| fold_name(label));
                let label = labels
                    .into_iter()
                    .find(|label| LASTING.contains(&label.as_str()))?;
                format!("{label} {}", Reason::Lasting.told())
            }
            (Some(reason), _) => match &self.words {
                None => with(reason.told(), shared),
                Some(words) => {
                    let found = words.find(everything(&hit.memory).as_bytes());
                    let mut told = words.told(found);
                    told.truncate(4);
                    if told.is_empty() {
                        return None;
                    }
                    format!("{}: {}", reason.told(), told.join(", "))
                }
            },
        };
        Some(text::line(&why, 160))
    }
}

/// The text of a memory in which names of files are looked for.
fn everything(memory: &Memory) -> String {
    let fields = [
        Some(memory.title.as_str()),
        memory.subtitle.as_deref(),
        memory.narrative.as_deref(),
    ];
    let lists = [&memory.facts, &memory.concepts, &memory.files];
    let parts = fields.into_iter().flatten();
    let parts: Vec<&str> = parts
        .chain(lists.into_iter().flatten().map(String::as_str))
        .collect();
    parts.join("\n")
}

pub(super) struct Chooser<'a> {
    opened: &'a OpenScopes,
    selection: &'a Selection,
    most: usize,
    wanted: &'a Wanted,
    /// What is in the answer already: nothing is told twice, in whichever list.
    told: Vec<Signature>,
}

impl<'a> Chooser<'a> {
    /// Chooses at most `most` memories for each list.
    pub(super) const fn new(
        opened: &'a OpenScopes,
        selection: &'a Selection,
        most: usize,
        wanted: &'a Wanted,
    ) -> Self {
        Self {
            opened,
            selection,
            most,
            wanted,
            told: Vec::new(),
        }
    }

    /// The project's own memories, or those of others: first what the signals find, then what is recent.
    pub(super) fn choose(
        &mut self,
        own: bool,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<MemoryHit>, Error> {
        let mut chosen: Vec<MemoryHit> = Vec::new();
        for step in self.steps(own) {
            let until = step
                .reason
                .map_or(self.most, |reason| {
                    reason.until(own, self.most, chosen.len())
                })
                .min(self.most);
            if chosen.len() < until {
                self.take(&step, own, until, &mut chosen, notes)?;
            }
        }
        Ok(chosen)
    }

    fn steps(&self, own: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        match self.wanted {
            Wanted::Focus(focus) => steps.push(Step::new(None, Some(focus.clone()))),
            Wanted::Signals(signals) => {
                let words = |list: &[String]| {
                    Some(Words::new(
                        list.iter().map(|word| (word.clone(), Origin::Name)),
                    ))
                };
                let (endings, subjects) = (signals.endings(), self.telling(signals.subjects()));
                if own && !endings.is_empty() {
                    steps.push(Step {
                        words: words(&endings),
                        files: endings
                            .iter()
                            .map(|ending| FilePattern::ending(ending))
                            .collect(),
                        ..Step::new(Some(Reason::Changed), None)
                    });
                }
                if !subjects.is_empty() {
                    steps.push(Step {
                        words: words(&subjects),
                        ..Step::new(Some(Reason::Changed), Some(subjects.join(" ")))
                    });
                }
                if signals.branch.is_some() {
                    steps.push(Step::new(Some(Reason::Branch), signals.branch.clone()));
                }
                if !signals.dependencies.is_empty() {
                    steps.push(Step::new(
                        Some(Reason::Uses),
                        Some(signals.dependencies.join(" ")),
                    ));
                }
                if own {
                    steps.push(Step {
                        labels: LASTING.map(str::to_owned).to_vec(),
                        ..Step::new(Some(Reason::Lasting), None)
                    });
                }
            }
        }
        steps.push(Step::new(None, None));
        steps
    }

    /// Searches for one step and takes what is not there yet, until the list is `until` long.
    fn take(
        &mut self,
        step: &Step,
        own: bool,
        until: usize,
        chosen: &mut Vec<MemoryHit>,
        notes: &mut Vec<Note>,
    ) -> Result<(), Error> {
        let spec = QuerySpec {
            text: step.text.clone(),
            filters: Filters {
                current_project: Some(own),
                status: StatusFilter::Approved,
                files: step.files.clone(),
                labels: step.labels.clone(),
                ..Filters::default()
            },
            limit: self.most,
            tokens: usize::MAX,
            detail: Detail::Concise,
            explain: false,
            // A focus is a question; names are words.
            mode: if step.reason.is_none() {
                Mode::Hybrid
            } else {
                Mode::Lexical
            },
            like: None,
            expect: None,
            floor: Some(FOCUS_FLOOR),
            oldest: false,
            sessions: step.reason.is_none(),
        };
        let search = Search::new(self.opened, self.selection, &spec, None)?;
        // As many more as may be there already, in either list, under another reason or another id.
        let page = search.page(None, until + self.told.len() + 2)?;
        for (scope, reason) in page.failed {
            if !notes.iter().any(|note| {
                note.kind == NoteKind::ScopeUnavailable && note.scope.as_ref() == Some(&scope)
            }) {
                notes.push(Note::about(NoteKind::ScopeUnavailable, scope, reason));
            }
        }
        let best = page
            .hits
            .first()
            .and_then(|hit| hit.hit.score)
            .unwrap_or_default();
        let least = step.reason.map_or(0.0, |reason| reason.least(own) * best);
        for hit in page.hits {
            if chosen.len() >= until {
                break;
            }
            let known = chosen.iter().any(|known| {
                known.id == hit.hit.id
                    || known.also.iter().any(|also| also.id == hit.hit.id)
                    || fold_name(&known.title) == fold_name(&hit.hit.title)
            });
            if known || hit.hit.score.is_some_and(|score| score < least) {
                continue;
            }
            let signature = Signature::of(&hit.memory);
            let Some(why) = step.why(&hit, own) else {
                continue;
            };
            if self.told.iter().any(|known| known.is_near(&signature)) {
                continue;
            }
            let mut hit = hit.hit;
            hit.why = Some(why);
            hit.score = None;
            self.told.push(signature);
            chosen.push(hit);
        }
        Ok(())
    }

    /// The subjects that tell which memories are meant, the most telling first.
    fn telling(&self, subjects: Subjects) -> Vec<String> {
        let indexes: Vec<&Index> = self.opened.iter().filter_map(OpenScope::index).collect();
        let memories: u64 = indexes
            .iter()
            .map(|index| index.size(StatusFilter::Approved).documents)
            .sum();
        let memories = usize::try_from(memories).unwrap_or(usize::MAX);
        let holders = |word: &str| -> usize {
            let key = term_key(TokenKind::Word, word);
            let approved = |index: &&Index| {
                let docs = cancel::guarded(index.postings(&key))
                    .filter_map(|(number, _)| index.doc(number));
                docs.filter(|doc| !doc.dead && StatusFilter::Approved.allows(doc.status))
                    .count()
            };
            indexes.iter().map(approved).sum()
        };
        let words = subjects
            .words
            .into_iter()
            .filter(|word| is_distinctive(holders(word), memories));
        let words: Vec<String> = words.collect();
        subjects.names.into_iter().chain(words).collect()
    }

    /// The project's recent sessions, each with the name of its scope.
    pub(super) fn sessions(&self) -> Vec<(&'a str, RecentSession)> {
        let mut sessions = Vec::new();
        for open in self.opened.iter() {
            let (scope, Some(index)) = (&*open.scope, open.index()) else {
                continue;
            };
            let own = self.selection.current.rows_in(scope);
            // Memories go before sessions: a store that cannot be read for these is named where its memories are read.
            let wanted = SessionQuery {
                projects: &own.names,
                unnamed: own.unnamed,
                filter: StatusFilter::Approved,
                limit: SESSIONS,
            };
            let read = scope.store.snapshot(|snapshot| {
                snapshot.recent_sessions(wanted, |names| members(index, names, wanted.filter))
            });
            let read = read.unwrap_or_default().into_iter();
            sessions.extend(read.map(|session| (scope.name.as_str(), session)));
        }
        sessions
    }
}

/// The memories of sessions, as the index knows them.
fn members(index: &Index, sessions: &HashSet<&str>, filter: StatusFilter) -> Members {
    let wanted: FxHashMap<NameId, &str> = sessions
        .iter()
        .filter_map(|session| Some((index.lookup(session).filter(|name| *name != 0)?, *session)))
        .collect();
    let mut members = Members::new();
    if wanted.is_empty() {
        return members;
    }
    for (number, doc) in index.live().filter(|(_, doc)| filter.allows(doc.status)) {
        let names = [
            Some(doc.session),
            Some(doc.session_id).filter(|name| *name != doc.session),
        ];
        for session in names
            .into_iter()
            .flatten()
            .filter_map(|name| wanted.get(&name))
        {
            let of = members.entry((*session).to_owned()).or_default();
            if of.len() < MAX_MEMBERS {
                of.push((doc.key, index.id(number).to_owned()));
            }
        }
    }
    members
}
