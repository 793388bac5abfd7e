//! What a choice for many memories leaves out: memories that a person has to look at one by one.

use ack_api::Warning;
use ack_api::memory::Status;
use ack_api::number::count;
use ack_store::read::CuratedMemory;
use ack_store::{Access, READ_TIMEOUT, Store, StoreError};

/// The reasons, each with how it is said of one memory and of several.
const REASONS: [(Warning, &str, &str); 3] = [
    (Warning::Secret, "looks like it has a secret", "look like they have a secret"),
    (Warning::AddressesAgent, "addresses an agent", "address an agent"),
    (Warning::Hidden, "had hidden characters", "had hidden characters"),
];

/// Memories that are held back, counted by the first reason of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBack {
    by_reason: [usize; REASONS.len()],
    /// Of those without such a reason, the approved memory that each contradicts.
    contradicted: Vec<String>,
}

impl HeldBack {
    /// Counts a memory, if a choice for many leaves it out.
    pub fn add(&mut self, curated: &CuratedMemory, warnings: &[Warning]) -> bool {
        let counts = self.by_reason.iter_mut().zip(REASONS);
        let mut counts = counts.filter(|(_, (warning, ..))| warnings.contains(warning));
        if let Some((count, _)) = counts.next() {
            *count += 1;
            return true;
        }
        self.contradicted.extend(curated.contradicts.clone());
        curated.contradicts.is_some()
    }

    /// What the default of a store does not approve.
    pub fn of_store(store: &Store) -> Result<Self, StoreError> {
        store.read(Access::FullScan, READ_TIMEOUT, |snapshot| {
            let mut held_back = Self::default();
            snapshot.visit_curated(&|status| status == Status::Staging, &mut |curated| {
                held_back.add(&curated, &curated.warnings());
            })?;
            Ok(held_back)
        })
    }

    pub fn count(&self) -> usize {
        self.by_reason.iter().sum::<usize>() + self.contradicted.len()
    }

    /// What is done with the others, followed by what is held back: `Approve 746; 10 held back: …`.
    pub fn after(&self, label: &str) -> String {
        match self.count() {
            0 => label.to_owned(),
            _ => {
                let short = label.replacen(" memories", "", 1).replacen(" memory", "", 1);
                format!("{short}; {}", self.in_words())
            }
        }
    }

    /// `10 held back: 3 address an agent, 6 had hidden characters, 1 contradicts `obs-31``. Empty if
    /// there are none.
    pub fn in_words(&self) -> String {
        match self.count() {
            0 => String::new(),
            count => format!("{count} held back: {}", self.reasons()),
        }
    }

    /// The reasons alone, each with how many there are.
    pub fn reasons(&self) -> String {
        let counted = self.by_reason.iter().zip(REASONS);
        let counted = counted.filter(|(count, _)| **count > 0);
        let mut reasons: Vec<String> = counted
            .map(|(count, (_, one, several))| {
                format!("{count} {}", if *count == 1 { one } else { several })
            })
            .collect();
        match self.contradicted.as_slice() {
            [] => {}
            [other] => reasons.push(format!("1 contradicts `{other}`")),
            [first, rest @ ..] => reasons.push(format!(
                "{} contradict `{first}` and {}",
                1 + rest.len(),
                count(rest.len() as u64, "other")
            )),
        }
        reasons.join(", ")
    }
}
