//! Choices that are not written yet, as lines for `review --apply`.

use ack_api::decision::Verdict;
use serde_json::{Map, Value, json};

use super::choice::Choice;
use super::{Desk, MadeChoice, Pick};
use crate::curate::Candidate;

/// A line, with what determines its place in the file.
struct Line {
    scope: String,
    id: String,
    /// The memory that takes its place.
    into: Option<String>,
    /// Whether no agent sees the memory afterwards.
    removes: bool,
    fields: Map<String, Value>,
}

impl Desk {
    /// The choices that are not written yet, as `review --apply` accepts them: one line about each
    /// memory, the last one that was chosen. A choice that concerns two memories may need two
    /// lines.
    pub fn unwritten_lines(&self) -> String {
        let mut lines: Vec<Line> = Vec::new();
        for made in &self.choices {
            for pick in &made.picks {
                for line in self.lines(made, pick) {
                    lines
                        .retain(|earlier| (&earlier.scope, &earlier.id) != (&line.scope, &line.id));
                    lines.push(line);
                }
            }
        }
        let order = targets_last(&lines);
        let lines = order.iter().filter_map(|position| lines.get(*position));
        lines
            .map(|line| Value::Object(line.fields.clone()).to_string() + "\n")
            .collect()
    }

    fn lines(&self, made: &MadeChoice, pick: &Pick) -> Vec<Line> {
        let Some(item) = self.items.get(pick.number) else {
            return Vec::new();
        };
        let line = |candidate: &Candidate, verdict: Verdict| {
            let mut line = Line::about(candidate, verdict);
            if let Some(reason) = &made.reason {
                line.set("reason", json!(reason));
            }
            line
        };
        let with = |verdict, key: &str, value: Value| {
            let mut line = line(&item.candidate, verdict);
            line.set(key, value);
            line
        };
        // A part of the id may be typed, and means one memory only as long as no other begins so.
        let other = |typed: &String| {
            let other = pick.other.as_ref();
            json!(other.map_or(typed, |other| &other.memory().id))
        };
        let one = match &made.choice {
            Choice::Approve => line(&item.candidate, Verdict::Approve),
            Choice::Promote => line(&item.candidate, Verdict::Promote),
            Choice::Reject => line(&item.candidate, Verdict::Reject),
            Choice::Stage => line(&item.candidate, Verdict::Stage),
            Choice::Withdraw => line(&item.candidate, Verdict::Withdraw),
            Choice::PutOff { until } => with(Verdict::Stage, "until", json!(until)),
            Choice::Edit { edit } => with(Verdict::Edit, "edit", json!(edit)),
            Choice::Merge { into } => with(Verdict::Merge, "into", other(into)),
            Choice::Replace { by } => with(Verdict::Supersede, "into", other(by)),
            Choice::Duplicate { of } => {
                let mut line = with(Verdict::Merge, "into", other(of));
                line.set("duplicate", json!(true));
                line
            }
            Choice::Supersede { .. } => {
                let approve = line(&item.candidate, Verdict::Approve);
                let older = pick.other.iter().map(|older| {
                    let mut superseded = line(older, Verdict::Supersede);
                    superseded.set("into", json!(item.candidate.memory().id));
                    superseded
                });
                return std::iter::once(approve).chain(older).collect();
            }
        };
        vec![one]
    }
}

impl Line {
    fn about(candidate: &Candidate, verdict: Verdict) -> Self {
        let memory = candidate.memory();
        let line = json!({
            "id": memory.id,
            "scope": candidate.scope.name,
            "digest": candidate.curated.digest,
            "status": memory.status,
            "verdict": verdict,
        });
        let removing = [Verdict::Reject, Verdict::Merge, Verdict::Supersede];
        Self {
            scope: candidate.scope.name.clone(),
            id: memory.id.clone(),
            into: None,
            removes: removing.contains(&verdict),
            fields: match line {
                Value::Object(fields) => fields,
                _ => Map::new(),
            },
        }
    }

    fn set(&mut self, key: &str, value: Value) {
        if key == "into" {
            self.into = value.as_str().map(str::to_owned);
        }
        self.fields.insert(key.to_owned(), value);
    }

    /// Whether this line says that the memory of `other` takes its memory's place.
    fn is_into(&self, other: &Self) -> bool {
        self.scope == other.scope && self.into.as_ref() == Some(&other.id)
    }
}

/// The order in which the lines can be applied: a memory is merged into another one before that one
/// is removed. Otherwise as they were chosen.
fn targets_last(lines: &[Line]) -> Vec<usize> {
    fn place(lines: &[Line], position: usize, order: &mut Vec<usize>, seen: &mut [bool]) {
        let Some(line) = lines.get(position) else {
            return;
        };
        if seen
            .get_mut(position)
            .is_none_or(|seen| std::mem::replace(seen, true))
        {
            return;
        }
        for (other, _) in lines
            .iter()
            .enumerate()
            .filter(|(_, other)| line.removes && other.is_into(line))
        {
            place(lines, other, order, seen);
        }
        order.push(position);
    }
    let (mut order, mut seen) = (Vec::new(), vec![false; lines.len()]);
    for position in 0..lines.len() {
        place(lines, position, &mut order, &mut seen);
    }
    order
}
