//! What a curator can choose for a memory, and what the choice does: the decisions for the log, and
//! a description that a button and a preview show first.

use ack_api::decision::{Decision, Edit, Verdict};
use ack_api::memory::{Memory, Status, Visibility};
use ack_api::text;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::queue::QueueItem;
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
    /// It leaves the queue until a day, `YYYY-MM-DD`.
    PutOff { until: String },
    /// Earlier decisions no longer count; the store's own status does.
    Withdraw,
    /// Merge it into another memory, which gets what only this one says.
    Merge { into: String },
    /// It is a duplicate of another memory, which gets its tags and files.
    Duplicate { of: String },
    /// Agents see it instead of an older one.
    Supersede { older: String },
    /// Another memory replaces it.
    Replace { by: String },
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

    /// The id of the other memory that it names.
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

/// A choice for a memory, with the other memory that it names. To approve one that is approved
/// already means to keep it.
#[derive(Debug, Clone, Copy)]
pub struct ChoiceOnMemory<'a> {
    pub choice: &'a Choice,
    pub item: &'a QueueItem,
    pub other: Option<&'a Candidate>,
}

impl ChoiceOnMemory<'_> {
    /// The decisions, each with the memory it is about.
    pub fn decisions(&self, session: &ReviewSession) -> Result<Vec<Decision>, CurateError> {
        let candidate = &self.item.candidate;
        let own = || session.decision(candidate, self.choice.verdict());
        let Some(other) = self.other else {
            return Ok(vec![match self.choice {
                Choice::PutOff { until } => Decision { until: Some(until.clone()), ..own() },
                Choice::Edit { edit } => {
                    let edit = candidate.with_previous_edit(edit.as_ref().clone());
                    Decision { edit: Some(edit), ..own() }
                }
                Choice::Approve | Choice::Promote if self.item.is_approved => self.keep(session),
                _ => own(),
            }]);
        };
        if let Choice::Supersede { .. } = self.choice {
            let superseding = session.replacement(other, candidate, Verdict::Supersede, false)?;
            return Ok(std::iter::once(own()).chain(superseding).collect());
        }
        let is_duplicate = matches!(self.choice, Choice::Duplicate { .. });
        session.replacement(candidate, other, self.choice.verdict(), is_duplicate)
    }

    /// The decision to keep a memory, despite the reason against it. A promoted one stays promoted.
    fn keep(&self, session: &ReviewSession) -> Decision {
        let memory = self.item.memory();
        let verdict = match memory.status {
            Status::Promoted => Verdict::Promote,
            _ => self.choice.verdict(),
        };
        Decision {
            despite: self.item.stale.as_ref().map(|why| stale::marks_kept_despite(memory, why)),
            ..session.decision(&self.item.candidate, verdict)
        }
    }

    /// `hidden_count`: how many others agents stop seeing, without the one that the choice names.
    pub fn preview(
        &self,
        session: &ReviewSession,
        hidden_count: usize,
        short: &ShortIds,
    ) -> Result<Preview, CurateError> {
        let decisions = self.decisions(session)?;
        let memory = self.item.memory();
        let other = self.other.map(Candidate::memory);
        let id = other.map_or("", |other| other.id.as_str());
        let shown = short.shortest(id);
        let added = decisions.iter().find_map(|decision| {
            Some(additions(decision.edit.as_ref().filter(|_| decision.id == id)?, other?))
        });
        let added = added.unwrap_or_default();
        let hides = hidden_count + usize::from(matches!(self.choice, Choice::Supersede { .. }));
        let adds = summary(&added);
        let mut label = match self.choice {
            Choice::Approve if self.item.is_approved => "Keep".to_owned(),
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
            effects.extend(serving_places(&self.item.candidate));
            if let (Some(reason), Choice::Approve) = (&self.item.stale, self.choice) {
                effects.push(format!("its mark goes, until something else is known: {reason}"));
            }
        } else if self.choice.removes() {
            let more = if memory.status == Status::Staging { "" } else { " any more" };
            effects.push(format!("no agent sees it{more}"));
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
            let fields = edited_fields(edit).into_iter();
            let fields =
                fields.map(|(key, _)| if key == "concepts" { "tags".to_owned() } else { key });
            let fields: Vec<String> = fields.collect();
            effects.push(format!("its {} as you wrote", text::list(&fields)));
        }
        let added = added.iter().flat_map(|(kind, values)| {
            values.iter().map(move |value| format!("adds the {kind}: {value}"))
        });
        effects.extend(added.take(MAX_EFFECTS));
        Ok(Preview { label, effects, side_effects: Vec::new() })
    }
}

#[derive(Debug, Serialize)]
pub struct Action {
    pub key: char,
    pub choice: Choice,
    #[serde(flatten)]
    pub preview: Preview,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    pub label: String,
    pub effects: Vec<String>,
    /// The last of them: what changes about other memories.
    pub side_effects: Vec<String>,
}

impl Preview {
    pub fn of_many(choice: &Choice, items: &[&QueueItem], hides: usize, short: &ShortIds) -> Self {
        let are_approved = items.iter().all(|item| item.is_approved);
        let about = count_text(items.len(), "memory", "memories");
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
        let effects = items.iter().map(|item| {
            let id = short.shortest(&item.memory().id);
            format!("{id}  {}", text::line(&item.memory().title, 100))
        });
        Self { label, effects: first_ones(effects, MAX_EFFECTS), side_effects: Vec::new() }
    }

    pub fn add_side_effects(&mut self, side_effects: &SideEffects, short: &ShortIds) {
        if let Some(counted) = side_effects.summary() {
            self.label.push_str(&format!(", {counted}"));
        }
        self.side_effects = first_ones(side_effects.lines(short).into_iter(), MAX_EFFECTS);
        self.effects.extend(self.side_effects.iter().cloned());
    }
}

/// The first lines, and how many more there are.
pub fn first_ones(mut lines: impl ExactSizeIterator<Item = String>, most: usize) -> Vec<String> {
    let mut first: Vec<String> = lines.by_ref().take(most).collect();
    if lines.len() > 0 {
        first.push(format!("and {} more", lines.len()));
    }
    first
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
    let sole = || scope.manifest.projects.sole().map(|_| &scope.name);
    let project = candidate.memory().project.as_ref().or_else(sole);
    let starts = project.map(|project| format!("sessions of {project} may start with it"));
    std::iter::once(found).chain(starts).collect()
}

/// What a memory gains from another one, by kind.
type Additions = [(&'static str, Vec<String>); 3];

fn additions(edit: &Edit, memory: &Memory) -> Additions {
    let new = |edited: &Option<Vec<String>>, current: &[String]| {
        edited.iter().flatten().filter(|entry| !current.contains(entry)).cloned().collect()
    };
    [
        ("fact", new(&edit.facts, &memory.facts)),
        ("tag", new(&edit.concepts, &memory.concepts)),
        ("file", new(&edit.files, &memory.files)),
    ]
}

/// `, adds 2 facts, 1 tag`, or nothing.
fn summary(added: &Additions) -> String {
    let some = added.iter().filter(|(_, values)| !values.is_empty());
    let counts = some.map(|(kind, values)| count_text(values.len(), kind, &format!("{kind}s")));
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() { String::new() } else { format!(", adds {}", counts.join(", ")) }
}

/// The fields that an edit rewrites, by their keys, with the new values.
pub fn edited_fields(edit: &Edit) -> serde_json::Map<String, Value> {
    match serde_json::to_value(edit) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    }
}

/// `1 memory`, `2 memories`.
pub fn count_text(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}
