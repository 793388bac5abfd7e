//! What a curator can choose for a memory, and what the choice does: the decisions for the log, and
//! a description that a button and a preview show first.

use ack_api::decision::{Decision, Edit, Verdict};
use ack_api::memory::{Memory, Status, Visibility};
use ack_api::text;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::curate::side_effects::SideEffects;
use crate::curate::{Candidate, CurateError, ReviewSession, stale};
use ack_service::short_id::ShortIds;

const MAX_REASON_CHARS: usize = 500;
const MAX_EFFECTS: usize = 12;

pub const NO_LONGER_TRUE: &str = "no longer true";
pub const ONLY_MATTERED_ONCE: &str = "only mattered once";
pub const DUPLICATE: &str = "marked as a duplicate";

/// The keys of the desk, each in ten columns, with what it does.
pub const KEYS: &str = include_str!("keys.txt");

/// Common reasons to reject, each selected by a digit.
pub const REASONS: [&str; 9] = [
    "not true",
    NO_LONGER_TRUE,
    "already said elsewhere",
    "too vague to help",
    ONLY_MATTERED_ONCE,
    "about another project",
    "holds a secret",
    "tells an agent what to do",
    "the code or its documentation says it",
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Choice {
    /// Agents see it.
    Approve,
    /// Agents see it, and it matters beyond its own project.
    Promote,
    /// No agent sees it.
    Reject,
    /// Agents see it with this edit.
    Edit { edit: Box<Edit> },
    /// It waits for review again.
    Stage,
    /// It leaves the queue for a while.
    PutOff {
        /// The day on which it comes back, `YYYY-MM-DD`.
        until: String,
    },
    /// Earlier decisions no longer count; the store's own status does.
    Withdraw,
    /// Merge it into another memory, which gets what only this one says.
    Merge {
        /// The id of the other one.
        into: String,
    },
    /// It is a duplicate of another memory, which gets its tags and files.
    Duplicate {
        /// The id of the other one.
        of: String,
    },
    /// Agents see it instead of an older one.
    Supersede { older: String },
    /// Another memory replaces it.
    Replace {
        /// The id of the other one.
        by: String,
    },
}

/// A reason as typed: the digit of a common one, or free text.
pub fn reason(typed: &str) -> Option<String> {
    let typed = typed.trim();
    let position = typed.parse::<usize>().ok().and_then(|digit| digit.checked_sub(1));
    let common = position.and_then(|position| REASONS.get(position));
    let reason =
        common.map_or_else(|| text::line(typed, MAX_REASON_CHARS), |common| (*common).to_owned());
    Some(reason).filter(|reason| !reason.is_empty())
}

impl Choice {
    /// What a key for two memories does: `m` merges one into the other, `d` marks it as a duplicate,
    /// `=` approves it in place of the other, or the other in place of one that `is_approved`.
    pub fn with_other(key: char, id: String, is_approved: bool) -> Self {
        match key {
            'm' => Self::Merge { into: id },
            'd' => Self::Duplicate { of: id },
            _ if is_approved => Self::Replace { by: id },
            _ => Self::Supersede { older: id },
        }
    }

    /// The id of the other memory that the choice names.
    pub fn other(&self) -> Option<&str> {
        match self {
            Self::Merge { into: id }
            | Self::Duplicate { of: id }
            | Self::Supersede { older: id }
            | Self::Replace { by: id } => Some(id),
            _ => None,
        }
    }

    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Approve | Self::Supersede { .. } => Verdict::Approve,
            Self::Promote => Verdict::Promote,
            Self::Reject => Verdict::Reject,
            Self::Edit { .. } => Verdict::Edit,
            Self::Stage | Self::PutOff { .. } => Verdict::Stage,
            Self::Withdraw => Verdict::Withdraw,
            Self::Merge { .. } | Self::Duplicate { .. } => Verdict::Merge,
            Self::Replace { .. } => Verdict::Supersede,
        }
    }

    pub const fn removes(&self) -> bool {
        matches!(
            self,
            Self::Reject | Self::Merge { .. } | Self::Duplicate { .. } | Self::Replace { .. }
        )
    }

    /// Whether agents see the memory afterwards.
    pub const fn serves(&self) -> bool {
        matches!(self, Self::Approve | Self::Promote | Self::Edit { .. } | Self::Supersede { .. })
    }

    /// Why the choice makes no sense, whatever it is about. `today` is the present day.
    pub fn problem(&self, today: Date) -> Option<String> {
        match self {
            Self::PutOff { until } => match until.parse::<Date>() {
                Err(_) => Some(format!("`{}` is not a day", text::line(until, 40))),
                Ok(day) if day <= today => Some(format!("{day} is in the past")),
                Ok(_) => None,
            },
            Self::Edit { edit } => {
                let title = edit.title.as_deref().map(|title| text::line(title, MAX_REASON_CHARS));
                let is_empty = title.is_some_and(|title| title.trim().is_empty());
                is_empty.then(|| "the title is empty".to_owned())
            }
            _ => None,
        }
    }

    /// The choice as a participle. `is_approved`: the memory was approved already.
    pub const fn done(&self, is_approved: bool) -> &'static str {
        match self {
            Self::Approve if is_approved => "kept",
            Self::Approve => "approved",
            Self::Promote => "promoted",
            Self::Reject => "rejected",
            Self::Edit { .. } if is_approved => "edited",
            Self::Edit { .. } => "edited and approved",
            Self::Stage => "put back",
            Self::PutOff { .. } => "snoozed",
            Self::Withdraw => "left to its store",
            Self::Merge { .. } => "merged",
            Self::Duplicate { .. } => DUPLICATE,
            Self::Supersede { .. } => "approved in place of another one",
            Self::Replace { .. } => "replaced",
        }
    }
}

/// A choice for a memory, with the other memory that it names.
#[derive(Debug, Clone, Copy)]
pub struct ChoiceOnMemory<'a> {
    pub choice: &'a Choice,
    pub candidate: &'a Candidate,
    pub other: Option<&'a Candidate>,
    /// How many other memories agents stop seeing once they see this one, not counting the one that
    /// the choice names.
    pub hidden_count: usize,
    /// Whether it is approved already, so that to approve it means to keep it.
    pub is_approved: bool,
    /// Why it may be out of date, then.
    pub stale: Option<&'a str>,
    /// How its preview names memories.
    pub short: &'a ShortIds,
}

impl ChoiceOnMemory<'_> {
    /// The decisions, each with the memory it is about.
    pub fn decisions(&self, session: &ReviewSession) -> Result<Vec<Decision>, CurateError> {
        let candidate = self.candidate;
        let own = || session.decision(candidate, self.choice.verdict());
        let Some(other) = self.other else {
            return Ok(vec![match (self.choice, self.is_approved) {
                (Choice::PutOff { until }, _) => Decision { until: Some(until.clone()), ..own() },
                (Choice::Edit { edit }, _) => Decision {
                    edit: Some(candidate.with_previous_edit(edit.as_ref().clone())),
                    ..own()
                },
                (Choice::Approve | Choice::Promote, true) => self.keep(session),
                _ => own(),
            }]);
        };
        match self.choice {
            Choice::Merge { .. } => session.replacement(candidate, other, Verdict::Merge),
            Choice::Duplicate { .. } => session.duplicate(candidate, other),
            Choice::Supersede { .. } => {
                let superseding = session.replacement(other, candidate, Verdict::Supersede)?;
                Ok(std::iter::once(own()).chain(superseding).collect())
            }
            _ => session.replacement(candidate, other, Verdict::Supersede),
        }
    }

    /// The decision to keep a memory, despite the reason against it. A promoted one stays promoted.
    fn keep(&self, session: &ReviewSession) -> Decision {
        let memory = self.candidate.memory();
        let verdict = match memory.status {
            Status::Promoted => Verdict::Promote,
            _ => self.choice.verdict(),
        };
        Decision {
            despite: self.stale.map(|reason| stale::marks_kept_despite(memory, reason)),
            ..session.decision(self.candidate, verdict)
        }
    }

    pub fn preview(&self, session: &ReviewSession) -> Result<Preview, CurateError> {
        let decisions = self.decisions(session)?;
        let memory = self.candidate.memory();
        let other = self.other.map(Candidate::memory);
        let id = other.map_or("", |other| other.id.as_str());
        let shown = self.short.shortest(id);
        let added = decisions.iter().find_map(|decision| {
            let edit = decision.edit.as_ref()?;
            (decision.id == id).then_some((edit, other?))
        });
        let added = added.map(|(edit, other)| additions(edit, other));
        let added = added.unwrap_or_default();
        let hides =
            self.hidden_count + usize::from(matches!(self.choice, Choice::Supersede { .. }));
        let adds = added.summary();
        let mut label = match self.choice {
            Choice::Approve if self.is_approved => "Keep".to_owned(),
            Choice::Approve => "Approve".to_owned(),
            Choice::Promote => "Promote".to_owned(),
            Choice::Reject => "Reject".to_owned(),
            Choice::Edit { .. } => "Approve as edited".to_owned(),
            Choice::Stage => "Put back".to_owned(),
            Choice::PutOff { until } => format!("Snooze until {until}"),
            Choice::Withdraw => "Leave to its store".to_owned(),
            Choice::Merge { .. } => format!("Merge into {shown}{adds}"),
            Choice::Duplicate { .. } => format!("Duplicate of {shown}{adds}"),
            Choice::Supersede { .. } => "Approve in its place".to_owned(),
            Choice::Replace { .. } => format!("Replace with {shown}"),
        };
        let mut effects = Vec::new();
        if self.choice.serves() {
            if hides > 0 {
                let is_newer = other.is_some_and(|other| other.created_at > memory.created_at);
                let older = if is_newer { "" } else { " older" };
                label.push_str(&format!(", hides {hides}{older}"));
            }
            effects.extend(serving_places(self.candidate));
            if let (Some(reason), Choice::Approve) = (self.stale, self.choice) {
                effects.push(format!("its mark goes, until something else is known: {reason}"));
            }
        } else if !matches!(self.choice, Choice::Stage | Choice::PutOff { .. } | Choice::Withdraw) {
            effects.push(
                match memory.status {
                    Status::Staging => "no agent sees it",
                    _ => "no agent sees it any more",
                }
                .to_owned(),
            );
        }
        if let Some(other) = other {
            effects.push(match self.choice {
                Choice::Supersede { .. } => format!("hides {shown}: {}", other.title),
                _ if other.status == Status::Staging => {
                    format!("{shown} is still unreviewed: {}", other.title)
                }
                _ => format!("{shown} stays: {}", other.title),
            });
        }
        if let Choice::Edit { edit } = self.choice {
            let names = edited_fields(edit);
            effects.push(format!("its {} as you wrote", text::list(&names)));
        }
        effects.extend(added.lines(MAX_EFFECTS));
        Ok(Preview { label, effects, side_effects: Vec::new() })
    }
}

/// What a key does to a memory.
#[derive(Debug, Serialize)]
pub struct Action {
    pub key: char,
    pub choice: Choice,
    #[serde(flatten)]
    pub preview: Preview,
}

/// A description of what a choice does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    pub label: String,
    pub effects: Vec<String>,
    /// The last of them: what changes about other memories.
    pub side_effects: Vec<String>,
}

impl Preview {
    /// The preview of one choice for several memories. `are_approved`: all of them were
    /// approved already.
    pub fn of_many(
        choice: &Choice,
        memories: &[&Candidate],
        hides: usize,
        are_approved: bool,
        short: &ShortIds,
    ) -> Self {
        let about = count_text(memories.len(), "memory", "memories");
        let mut label = match choice {
            Choice::Approve if are_approved => format!("Keep {about}"),
            Choice::Approve | Choice::Edit { .. } => format!("Approve {about}"),
            Choice::Promote => format!("Promote {about}"),
            Choice::Reject => format!("Reject {about}"),
            Choice::Stage => format!("Put {about} back"),
            Choice::PutOff { until } => format!("Put {about} off until {until}"),
            choice => format!("{about}: {}", choice.done(are_approved)),
        };
        if hides > 0 && choice.serves() {
            label.push_str(&format!(", hides {hides} older"));
        }
        let mut effects: Vec<String> = memories
            .iter()
            .take(MAX_EFFECTS)
            .map(|candidate| {
                let memory = candidate.memory();
                let id = short.shortest(&memory.id);
                format!("{id}  {}", text::line(&memory.title, 100))
            })
            .collect();
        if memories.len() > MAX_EFFECTS {
            effects.push(format!("and {} more", memories.len() - MAX_EFFECTS));
        }
        Self { label, effects, side_effects: Vec::new() }
    }

    pub fn add_side_effects(&mut self, side_effects: &SideEffects, short: &ShortIds) {
        if let Some(counted) = side_effects.summary() {
            self.label.push_str(&format!(", {counted}"));
        }
        let mut lines = side_effects.lines(short);
        let more = lines.len().saturating_sub(MAX_EFFECTS);
        lines.truncate(MAX_EFFECTS);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        self.effects.extend(lines.iter().cloned());
        self.side_effects = lines;
    }
}

/// Where agents would see a memory once it is approved.
pub fn serving_places(candidate: &Candidate) -> Vec<String> {
    let scope = &candidate.scope;
    let found = match scope.manifest.visibility {
        Visibility::Shared => format!("agents find it from every project, in scope {}", scope.name),
        Visibility::Private => format!(
            "agents find it only where scope {}, which is private, is current or named",
            scope.name
        ),
    };
    let project = candidate.memory().project.as_deref();
    let starts = match (project, scope.manifest.projects.sole()) {
        (Some(project), _) => Some(format!("sessions of {project} may start with it")),
        (None, Some(_)) => Some(format!("sessions of {} may start with it", scope.name)),
        (None, None) => None,
    };
    std::iter::once(found).chain(starts).collect()
}

/// What a memory gains from another one.
#[derive(Debug, Default)]
struct Additions {
    facts: Vec<String>,
    tags: Vec<String>,
    files: Vec<String>,
}

impl Additions {
    /// `, adds 2 facts and 1 tag`, or nothing.
    fn summary(&self) -> String {
        let kinds = [
            (self.facts.len(), "fact", "facts"),
            (self.tags.len(), "tag", "tags"),
            (self.files.len(), "file", "files"),
        ];
        let counts: Vec<String> = kinds
            .iter()
            .filter(|(count, _, _)| *count > 0)
            .map(|(count, singular, plural)| count_text(*count, singular, plural))
            .collect();
        if counts.is_empty() { String::new() } else { format!(", adds {}", counts.join(", ")) }
    }

    fn lines(&self, max: usize) -> impl Iterator<Item = String> {
        let kinds = [("fact", &self.facts), ("tag", &self.tags), ("file", &self.files)];
        let lines = kinds.into_iter().flat_map(|(kind, values)| {
            values.iter().map(move |value| format!("adds the {kind}: {value}"))
        });
        lines.take(max)
    }
}

fn additions(edit: &Edit, memory: &Memory) -> Additions {
    let new = |edited: &Option<Vec<String>>, current: &[String]| {
        let all = edited.iter().flatten();
        all.filter(|entry| !current.contains(entry)).cloned().collect()
    };
    Additions {
        facts: new(&edit.facts, &memory.facts),
        tags: new(&edit.concepts, &memory.concepts),
        files: new(&edit.files, &memory.files),
    }
}

fn edited_fields(edit: &Edit) -> Vec<String> {
    let fields = [
        (edit.title.is_some(), "title"),
        (edit.subtitle.is_some(), "subtitle"),
        (edit.facts.is_some(), "facts"),
        (edit.concepts.is_some(), "tags"),
        (edit.files.is_some(), "files"),
        (edit.narrative.is_some(), "narrative"),
        (edit.kind.is_some(), "type"),
        (edit.project.is_some(), "project"),
    ];
    let edited = fields.iter().filter(|(is_edited, _)| *is_edited);
    edited.map(|(_, name)| (*name).to_owned()).collect()
}

/// `1 memory`, `2 memories`.
pub fn count_text(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}
