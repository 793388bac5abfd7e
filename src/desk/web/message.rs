//! What the page asks, and what it is told.

use serde::{Deserialize, Serialize};

use crate::desk::Recent;
use crate::desk::card::Card;
use crate::desk::choice::{Choice, Preview};
use crate::desk::near::Near;
use crate::desk::queue::{Head, Lane, View};

/// `enter`.
#[derive(Debug, Deserialize)]
pub struct Enter {
    /// The word of the address.
    pub word: String,
}

/// `queue`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AskQueue {
    /// Which memories.
    pub view: View,
    /// The memory around which the window lies.
    pub around: Option<usize>,
    /// The position of the first one, where no memory is named.
    pub from: usize,
    /// How many.
    pub count: usize,
}

/// `card`, `near` and `group`.
#[derive(Debug, Deserialize)]
pub struct AskCard {
    /// The memory's number.
    pub number: usize,
    /// Where the page stands.
    #[serde(default)]
    pub view: View,
}

/// `preview` and `choose`.
#[derive(Debug, Deserialize)]
pub struct AskChoice {
    /// The memories' numbers.
    pub numbers: Vec<usize>,
    /// What is to become of them.
    pub choice: Choice,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// Where the page stands.
    #[serde(default)]
    pub view: View,
}

/// `back`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AskBack {
    /// Which choice; the last one where none is named.
    pub key: Option<u64>,
}

/// `finish`.
#[derive(Debug, Deserialize)]
pub struct AskFinish {
    /// Whether what was chosen is given up.
    pub discard: bool,
}

/// A memory in the list.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// Its number.
    pub number: usize,
    /// Its title.
    pub title: String,
    /// Its project, or else its scope.
    pub place: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// How long ago it was written.
    pub age_days: Option<i64>,
    /// A person should look at it twice.
    pub marked: bool,
}

/// A window of the queue.
#[derive(Debug, Serialize)]
pub struct Window {
    /// How many memories the view has.
    pub total: usize,
    /// The position of the first entry.
    pub from: usize,
    /// The memories.
    pub entries: Vec<Entry>,
}

/// Something that can be done with a memory.
#[derive(Debug, Serialize)]
pub struct Action {
    /// The key.
    pub key: char,
    /// What it chooses.
    pub choice: Choice,
    /// What it does.
    #[serde(flatten)]
    pub preview: Preview,
}

/// An approved memory beside the one that is shown.
#[derive(Debug, Serialize)]
pub struct ShownNear {
    /// The memory.
    #[serde(flatten)]
    pub near: Near,
    /// What can be done with both.
    pub actions: Vec<Action>,
}

/// A card, and where it stands.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// Its number.
    pub number: usize,
    /// Its position in the view, from 1, if it waits.
    pub position: Option<usize>,
    /// How many memories the view has.
    pub total: usize,
    /// The number of the one before it.
    pub before: Option<usize>,
    /// The number of the one behind it.
    pub behind: Option<usize>,
    /// What was chosen for it.
    pub chosen: Option<&'static str>,
    /// It is an approved memory that may be out of date.
    pub stale: bool,
    /// The card.
    pub card: Card,
    /// What can be done with it alone.
    pub actions: Vec<Action>,
    /// Others of the same session that wait.
    pub session: Vec<Entry>,
    /// Others that wait and say nearly the same.
    pub group: Vec<Entry>,
}

/// Where everything stands.
#[derive(Debug, Serialize)]
pub struct Standing {
    /// Common reasons to reject, by the digit that gives them.
    pub reasons: [&'static str; 9],
    /// What is looked at first.
    pub lane: Lane,
    /// The head of the queue.
    pub head: Head,
    /// The last choices.
    pub recent: Vec<Recent>,
    /// A number that grows with every change.
    pub revision: u64,
}
