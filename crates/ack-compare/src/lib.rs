//! How two memories relate: one says the same, says more, says something else, or contradicts.
//!
//! A [`Profile`] is a memory parsed once: its statements and its content as a whole. [`relate`]
//! compares two of them by fixed rules; nothing is learned or random. [`diff`] shows what changed
//! word by word, and [`groups`] finds near-duplicates among many.
//!
//! The rules are measured on pairs that were labelled by hand, see `tests/relations`. A relation is
//! a hint for the person who decides. If a contradiction is missed, the person still sees both
//! texts side by side; a false one costs trust. So the rules report a contradiction only when they
//! are sure.

mod conflict;
pub mod diff;
pub mod groups;
mod lexicon;
mod profile;
mod quantity;
pub mod sketch;
mod statement;
mod subject;
mod term;

use ack_api::RelationKind;
use ack_api::memory::Memory;

pub use crate::conflict::{Conflict, ConflictReason};
pub use crate::profile::Profile;

/// Share of the newer memory's content in the older one, if the newer one adds nothing.
const MIN_COVERED_BY_OLDER: f32 = 0.85;
/// Share of the older memory's content in the newer one, if the newer one contains all of it.
const MIN_COVERED_BY_NEWER: f32 = 0.7;
/// Cosine of memories that say the same thing in other words.
const REWORDED_COSINE: f32 = 0.85;
/// Cosine of memories about the same subject.
const RELATED_COSINE: f32 = 0.35;
/// Resemblance of memories about the same subject.
const MIN_RESEMBLANCE: f32 = 0.18;

/// How a newer memory relates to an older one.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// The kind of relation.
    pub kind: RelationKind,
    /// How much content they share, over the whole text, from 0 to 1.
    pub resemblance: f64,
    /// The statements that cannot both be true, if it contradicts.
    pub conflict: Option<Conflict>,
}

/// How a newer memory relates to an older one. For several comparisons, make the profiles once and
/// use [`relate`].
pub fn relation(newer: &Memory, older: &Memory) -> Relation {
    relate(&Profile::of(newer), &Profile::of(older))
}

/// How a newer memory relates to an older one.
pub fn relate(newer: &Profile, older: &Profile) -> Relation {
    let resemblance = resemblance(newer, older);
    if newer.wording == older.wording {
        return Relation {
            kind: RelationKind::Same,
            resemblance,
            conflict: None,
        };
    }
    let conflict = conflict::find(newer, older);
    let kind = if conflict.is_some() {
        RelationKind::Contradicts
    } else {
        without_conflict(newer, older, resemblance)
    };
    Relation {
        kind,
        resemblance,
        conflict,
    }
}

fn without_conflict(newer: &Profile, older: &Profile, resemblance: f64) -> RelationKind {
    let has_own_detail = |profile: &Profile, other: &Profile| {
        let mut details = profile.details.iter();
        details.any(|detail| !other.details.contains(detail))
    };
    let has_new_detail = has_own_detail(newer, older);
    // `Release 1.2.0` and `Release 1.3.0`: neither contains the other.
    let replaces_a_detail = has_new_detail && has_own_detail(older, newer);
    let cosine = newer.cosine(older);
    let (profile, others) = (newer.covered_by(older), older.covered_by(newer));
    let adds = has_new_detail || newer.adds_statement_to(older);
    if !adds && (profile >= MIN_COVERED_BY_OLDER || cosine >= REWORDED_COSINE && profile >= 0.5) {
        RelationKind::Same
    } else if others >= MIN_COVERED_BY_NEWER && !replaces_a_detail {
        RelationKind::SaysMore
    } else if replaces_a_detail && others >= MIN_COVERED_BY_NEWER
        || cosine >= RELATED_COSINE
        || resemblance >= f64::from(MIN_RESEMBLANCE)
    {
        RelationKind::SaysOther
    } else {
        RelationKind::Unrelated
    }
}

/// The share of common content of two memories, from 0 to 1 (Dice coefficient with the encoder's
/// weights). It is 1 for equal texts.
fn resemblance(newer: &Profile, older: &Profile) -> f64 {
    if newer.wording == older.wording {
        return 1.0;
    }
    let all = newer.weight + older.weight;
    if all <= 0.0 {
        return 0.0;
    }
    f64::from((2.0 * newer.shared(older) / all).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn memory(title: &str) -> Memory {
        Memory {
            id: title.to_owned(),
            title: title.to_owned(),
            ..Memory::empty()
        }
    }

    fn kind(newer: &str, older: &str) -> RelationKind {
        relation(&memory(newer), &memory(older)).kind
    }

    #[test]
    fn equal_texts_are_the_same_and_resemble_each_other_wholly() {
        let one = memory("Use pnpm, not npm");
        let relation = relation(&one, &one);
        assert_eq!(relation.kind, RelationKind::Same);
        assert!((relation.resemblance - 1.0).abs() < 1e-12);
    }

    #[test]
    fn equal_times_in_other_units_do_not_contradict() {
        let older = "The session cache keeps entries for 30 minutes";
        let newer = |time: &str| format!("The session cache keeps entries for {time}");
        assert_eq!(kind(&newer("half an hour"), older), RelationKind::Same);
        assert_eq!(kind(&newer("1800 s"), older), RelationKind::Same);
        assert_eq!(kind(&newer("1 h"), older), RelationKind::Contradicts);
    }

    #[track_caller]
    fn contradicts(newer: &[&str], older: &[&str], expected: bool) {
        let relation = relate(&Profile::of_texts(newer), &Profile::of_texts(older));
        let found = relation.kind == RelationKind::Contradicts;
        assert_eq!(found, expected, "{relation:?}");
    }

    #[test]
    fn a_denial_contradicts_the_claim() {
        let older = [
            "Feature flags",
            "Feature flags are read from flags.yml at start.",
        ];
        let newer = |text| ["Feature flags come from the console", text];
        contradicts(&newer("flags.yml is not read any more."), &older, true);
        contradicts(&newer("flags.yml was switched off."), &older, true);
        contradicts(&newer("The console is not read any more."), &older, false);
    }

    #[test]
    fn titles_of_two_items_keep_their_values_apart() {
        let logs = ["Retention of logs", "They are kept for 30 days."];
        let days = |title| [title, "They are kept for 90 days."];
        contradicts(&days("Retention of logs"), &logs, true);
        contradicts(&days("Retention of metrics"), &logs, false);
    }

    #[test]
    fn a_version_belongs_to_the_name_before_it() {
        let older = ["Node version", "The project builds with Node 20."];
        contradicts(
            &["Node version", "The project is built with Node 22."],
            &older,
            true,
        );
        contradicts(
            &["Ruby version", "The project is built with Ruby 22."],
            &older,
            false,
        );
    }

    #[test]
    fn a_shared_statement_is_denied_by_neither() {
        let older = ["Cart", "Do not use localStorage for the cart."];
        contradicts(
            &["Cart", "localStorage is not to be used for the cart."],
            &older,
            false,
        );
        let older = ["Cache", "A wrong key is ignored by the cache."];
        contradicts(
            &["Cache keys", "The cache skips a wrong key."],
            &older,
            false,
        );
        // It recommends what the other memory already uses.
        let older = [
            "Dependencies",
            "We use uv here. poetry was used by the old scripts.",
        ];
        contradicts(
            &["Dependencies", "Use uv instead of poetry."],
            &older,
            false,
        );
        let older = ["Dependencies", "We manage dependencies with poetry."];
        contradicts(&["Dependencies", "Use uv instead of poetry."], &older, true);
    }

    #[test]
    fn values_of_another_subject_do_not_conflict() {
        let older = [
            "Editor config",
            "Indentation is four spaces in Python files.",
        ];
        let yaml = [
            "Indentation of YAML",
            "Indentation is two spaces in YAML files.",
        ];
        contradicts(&yaml, &older, false);
        let python = ["Indentation", "Indentation is two spaces in Python files."];
        contradicts(&python, &older, true);
    }

    #[test]
    fn a_duration_is_a_value_and_a_start_is_not() {
        let idle = |time: &str| format!("The kiosk shows the idle screen after {time} seconds.");
        let (older, newer) = (idle("90"), idle("30"));
        contradicts(&["Idle screen", &newer], &["Idle screen", &older], true);
        let since = |version: &str| format!("Since {version} the linter warns about spaces.");
        let (older, newer) = (since("3.0"), since("4.0"));
        contradicts(&["Linter", &newer], &["Linter", &older], false);
    }

    #[test]
    fn spellings_and_alternatives_are_not_conflicting_names() {
        let older = ["Staging", "`git add --patch` stages changes one by one."];
        contradicts(
            &["Staging", "`git add -p` stages changes one by one."],
            &older,
            false,
        );
        let older = ["psql", "You can send a command to psql with the flag -c."];
        contradicts(
            &["psql", "You can send a command to psql with the flag -f."],
            &older,
            false,
        );
    }

    #[test]
    fn a_link_target_is_not_a_value() {
        let older = [
            "Clip",
            "The clip is [here](https://example.com/watch?v=12).",
        ];
        let newer = [
            "Clip",
            "The clip is [here](https://example.com/watch?v=99).",
        ];
        contradicts(&newer, &older, false);
    }

    #[test]
    fn numbered_items_are_different_subjects() {
        for (newer, older) in [
            ("Topic 1", "Topic 0"),
            (
                "Release 1.3.0 fixed the login crash on Safari",
                "Release 1.2.0 fixed the login crash",
            ),
            (
                "Chapter 4 notes: borrow checker",
                "Chapter 3 notes: borrow checker",
            ),
        ] {
            assert_eq!(kind(newer, older), RelationKind::SaysOther, "{newer}");
        }
        contradicts(&["Port 8081"], &["Port 8080"], true);
    }

    #[test]
    fn commands_and_pointers_claim_nothing() {
        let branches = |flag| {
            [
                "Branches".to_owned(),
                format!("$ git branch {flag} old-name"),
            ]
        };
        let (one, other) = (branches("-m"), branches("-d"));
        let read = |texts: &[String; 2]| Profile::of_texts(&[&texts[0], &texts[1]]);
        let relation = relate(&read(&one), &read(&other));
        assert_eq!(relation.conflict, None);
        let older = ["Lints", "See `semicolon_inside_block` for the other lint."];
        let newer = ["Lints", "See `semicolon_outside_block` for the other lint."];
        contradicts(&newer, &older, false);
    }
}
