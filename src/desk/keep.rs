//! Choices that are not written yet, as lines for `review --apply`.

use ack_api::decision::Verdict;
use serde_json::{Map, Value, json};

use super::choice::Choice;
use super::{Desk, MadeChoice, Pick};
use crate::curate::Candidate;

impl Desk {
    /// The choices that are not written yet, one line each. A choice that concerns two memories may
    /// need two lines.
    pub fn unwritten_lines(&self) -> String {
        let mut text = String::new();
        for made in &self.choices {
            for pick in &made.picks {
                for line in self.lines(made, pick) {
                    text.push_str(&Value::Object(line).to_string());
                    text.push('\n');
                }
            }
        }
        text
    }

    fn lines(&self, made: &MadeChoice, pick: &Pick) -> Vec<Map<String, Value>> {
        let Some(item) = self.items.get(pick.number) else {
            return Vec::new();
        };
        let line = |candidate: &Candidate, verdict: Verdict| {
            let mut line = decision_fields(candidate, verdict);
            if let Some(reason) = &made.reason {
                line.insert("reason".to_owned(), json!(reason));
            }
            line
        };
        let with = |verdict, key: &str, value: Value| {
            let mut line = line(&item.candidate, verdict);
            line.insert(key.to_owned(), value);
            line
        };
        let one = match &made.choice {
            Choice::Approve => line(&item.candidate, Verdict::Approve),
            Choice::Promote => line(&item.candidate, Verdict::Promote),
            Choice::Reject => line(&item.candidate, Verdict::Reject),
            Choice::Stage => line(&item.candidate, Verdict::Stage),
            Choice::Withdraw => line(&item.candidate, Verdict::Withdraw),
            Choice::PutOff { until } => with(Verdict::Stage, "until", json!(until)),
            Choice::Edit { edit } => with(Verdict::Edit, "edit", json!(edit)),
            Choice::Merge { into } => with(Verdict::Merge, "into", json!(into)),
            Choice::Replace { by } => with(Verdict::Supersede, "into", json!(by)),
            Choice::Duplicate { of } => {
                let mut line = with(Verdict::Merge, "into", json!(of));
                line.insert("duplicate".to_owned(), json!(true));
                line
            }
            Choice::Supersede { .. } => {
                let approve = line(&item.candidate, Verdict::Approve);
                let older = pick.other.iter().map(|older| {
                    let mut superseded = line(older, Verdict::Supersede);
                    superseded.insert("into".to_owned(), json!(item.candidate.memory().id));
                    superseded
                });
                return std::iter::once(approve).chain(older).collect();
            }
        };
        vec![one]
    }
}

fn decision_fields(candidate: &Candidate, verdict: Verdict) -> Map<String, Value> {
    let memory = candidate.memory();
    let line = json!({
        "id": memory.id,
        "scope": candidate.scope.name,
        "digest": candidate.curated.digest,
        "status": memory.status,
        "verdict": verdict,
    });
    match line {
        Value::Object(line) => line,
        _ => Map::new(),
    }
}
