//! The memories that a client lists in a menu: those that were promoted, and the project's newest.

use std::cmp::Reverse;
use std::sync::Arc;

use super::outlines::{self, Reading};
use super::select;
use super::words::Words;
use crate::engine::Service;
use crate::error::Error;
use crate::open::Records;
use ack_api::memory::{Memory, Status, StatusFilter};
use ack_api::remote::WaitPolicy;
use ack_api::uri::Address;
use ack_api::{text, time};
use ack_store::READ_TIMEOUT;

const MAX_LISTED: usize = 50;
/// Maximum characters of a title and of a description.
const MAX_TITLE_CHARS: usize = 120;
const MAX_DESCRIPTION_CHARS: usize = 240;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMemory {
    pub uri: String,
    pub title: String,
    /// What it is about, in words that a person may type to find it.
    pub description: String,
}

impl Service {
    /// The project's promoted memories, its newest, then promoted ones of other projects. Without a
    /// project, those of every searched scope. A scope that cannot be read at once has none.
    pub fn listed_memories(&self) -> Result<Vec<ListedMemory>, Error> {
        let mut selection = select(self, None, &mut Vec::new(), true)?;
        let words = Arc::new(Words::default());
        let reading = Reading { wait_policy: WaitPolicy::None, ..Reading::of(self) };
        let read = outlines::read(&mut selection, &words, reading, &mut Vec::new())?;
        let has_project = selection.current.scope.is_some();
        let mut places = Vec::new();
        for (number, read) in read.iter().enumerate() {
            let mut is_own = read.is_own();
            for outline in &read.outlines().served {
                let is_foreign = has_project && !is_own(outline);
                let is_promoted = outline.status == Status::Promoted;
                if is_promoted || !is_foreign {
                    let place = (is_foreign, !is_promoted, Reverse(outline.created));
                    places.push((place, number, outline));
                }
            }
        }
        places.sort_by_key(|&(place, number, outline)| (place, number, outline.key));
        places.truncate(MAX_LISTED);
        let mut records = Records::default();
        for (number, read) in read.iter().enumerate() {
            let here = places.iter().filter(|(_, scope, _)| *scope == number);
            let wanted: Vec<_> = here.map(|(_, _, it)| (it.key, it.id.as_str())).collect();
            records.read((number, &read.scope), &wanted, StatusFilter::Approved, READ_TIMEOUT);
        }
        let listed = places.into_iter().filter_map(|(_, number, outline)| {
            let record = records.found.get(&(number, outline.id.clone()))?;
            Some(entry(&read.get(number)?.scope.name, &record.memory))
        });
        Ok(listed.collect())
    }
}

fn entry(scope: &str, memory: &Memory) -> ListedMemory {
    let kind = memory.kind.as_deref().unwrap_or("memory");
    let project = memory.project.as_deref().unwrap_or(scope);
    let mut about = format!("{kind} of {project}");
    if let Some(created) = memory.created_at {
        about.push_str(&format!(", {}", time::to_date(created)));
    }
    if let Some(more) = memory.subtitle.as_ref().or(memory.facts.first()) {
        about.push_str(&format!(": {more}"));
    }
    if !memory.concepts.is_empty() {
        about.push_str(&format!(" ({})", memory.concepts.join(", ")));
    }
    ListedMemory {
        uri: Address::Memory { scope: scope.to_owned(), id: memory.id.clone() }.to_string(),
        title: text::line(&memory.title, MAX_TITLE_CHARS),
        description: text::line(&about, MAX_DESCRIPTION_CHARS),
    }
}
