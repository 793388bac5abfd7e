//! How two memories relate: one says the same, says more, differs, or contradicts.
//!
//! A [`Profile`] is a memory, read once. [`relate`] compares two of them by fixed rules; nothing is
//! learned or random. [`diff`] shows what changed word by word, and [`groups`] finds memories that
//! are much alike among many.
//!
//! `same` and `says more` are said only of texts that contain the other one word for word, because
//! the most similar texts are often opposites. A contradiction is reported only where the rules are
//! nearly always right; they are measured on pairs that were labelled by hand, see
//! `tests/relations`. A relation is a hint for the person who decides, and a wrong one costs more
//! trust than a missing one.

mod conflict;
pub mod diff;
pub mod groups;
mod negation;
mod profile;
mod quantity;
mod sentence;

use ack_api::RelationKind;
use ack_api::memory::Memory;

pub use crate::conflict::Conflict;
pub use crate::profile::Profile;

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
    let resemblance = newer.resemblance(older);
    let contains_older = newer.contains(older);
    let mut conflict = None;
    let kind = if contains_older && older.contains(newer) {
        RelationKind::Same
    } else if contains_older {
        RelationKind::SaysMore
    } else {
        conflict = conflict::find(newer, older);
        let is_related = || resemblance >= MIN_RESEMBLANCE || newer.cosine(older) >= RELATED_COSINE;
        if conflict.is_some() {
            RelationKind::Contradicts
        } else if older.contains(newer) || is_related() {
            RelationKind::Differs
        } else {
            RelationKind::Unrelated
        }
    };
    Relation {
        kind,
        resemblance: f64::from(resemblance),
        conflict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn memory(title: &str) -> Memory {
        Memory {
            id: title.to_owned(),
            title: title.to_owned(),
            ..Memory::default()
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

    #[track_caller]
    fn contradicts(newer: &[&str], older: &[&str], expected: bool) {
        let relation = relate(&Profile::of_texts(newer), &Profile::of_texts(older));
        let found = relation.kind == RelationKind::Contradicts;
        assert_eq!(found, expected, "{relation:?}");
    }

    #[test]
    fn only_a_text_that_contains_the_other_says_more() {
        let older = "Retry once";
        assert_eq!(
            kind("Retry once. Then give up.", older),
            RelationKind::SaysMore
        );
        assert_eq!(
            kind(older, "Retry once. Then give up."),
            RelationKind::Differs
        );
        assert_eq!(kind("Never retry once", older), RelationKind::Contradicts);
        let swapped = kind(
            "copy from production to staging",
            "copy from staging to production",
        );
        assert_eq!(swapped, RelationKind::Differs);
    }

    #[test]
    fn equal_times_in_other_units_do_not_contradict() {
        let older = ["The session cache keeps entries for 30 minutes"];
        let newer = |time: &str| format!("The session cache keeps entries for {time}");
        contradicts(&[&newer("1800 s")], &older, false);
        contradicts(&[&newer("1 h")], &older, true);
        contradicts(&["超时为30秒"], &["超时为60秒"], true);
    }

    #[test]
    fn a_denial_contradicts_what_it_denies() {
        let older = [
            "Feature flags",
            "Feature flags are read from flags.yml at start.",
        ];
        let newer = |text| ["Feature flags come from the console", text];
        contradicts(&newer("flags.yml was removed."), &older, true);
        contradicts(&newer("The console is not read."), &older, false);
        for (one, other) in [
            ("Rebase before a merge", "Never rebase before a merge"),
            ("Le cache n'est pas activé", "Le cache est activé"),
            ("Der Cache ist nicht aktiv", "Der Cache ist aktiv"),
            ("El caché no está activo", "El caché está activo"),
            ("O cache não está ativo", "O cache está ativo"),
            ("La cache non è attiva", "La cache è attiva"),
            ("De cache is niet actief", "De cache is actief"),
            ("Cachen är inte aktiv", "Cachen är aktiv"),
            ("Кэш не включён", "Кэш включён"),
            ("Nie używać cache", "Używać cache"),
            ("Önbellek etkin değil", "Önbellek etkin"),
        ] {
            contradicts(&[one], &[other], true);
        }
    }

    #[test]
    fn what_both_deny_is_no_contradiction() {
        let older = ["Cart", "Do not use localStorage for the cart."];
        let newer = ["Cart", "localStorage is not to be used for the cart."];
        contradicts(&newer, &older, false);
        let older = [
            "HTTP",
            "Uses Fastify for HTTP services rather than Express.",
        ];
        contradicts(
            &["HTTP", "HTTP services use Fastify, not Express."],
            &older,
            false,
        );
    }

    #[test]
    fn values_of_two_things_do_not_conflict() {
        let days = |title, days| format!("{title} are kept for {days} days.");
        contradicts(&[&days("Logs", 90)], &[&days("Logs", 30)], true);
        contradicts(&[&days("Metrics", 90)], &[&days("Logs", 30)], false);
        let production = "In production the timeout is 30 seconds";
        contradicts(
            &["In staging the timeout is 10 seconds"],
            &[production],
            false,
        );
        contradicts(&["Image alpine:3.19"], &["Image alpine:3.21"], true);
    }

    #[test]
    fn another_path_flag_or_identifier_in_the_same_sentence_contradicts() {
        for (one, other) in [
            (
                "The relay reads /etc/relay.toml",
                "The relay reads /opt/relay.toml",
            ),
            (
                "Run cargo test with --all",
                "Run cargo test with --workspace",
            ),
            ("The column is amount_minor", "The column is amount_cents"),
        ] {
            contradicts(&[one], &[other], true);
        }
        contradicts(&["The owner is Ana"], &["The owner is Milo"], false);
    }

    #[test]
    fn numbered_titles_and_links_claim_nothing() {
        contradicts(
            &["Network questions (23)"],
            &["Network questions (24)"],
            false,
        );
        let lint = |name: &str, verb: &str| {
            [
                format!("The lint clippy::{name}"),
                format!("What it does {verb} with `in`."),
            ]
        };
        let (one, other) = (lint("with_in", "Warns"), lint("without_in", "Never warns"));
        contradicts(&[&one[0], &one[1]], &[&other[0], &other[1]], false);
    }

    #[test]
    fn texts_without_spaces_between_words_are_compared() {
        let older = "部署之前必须先运行数据库迁移";
        assert_eq!(kind(older, older), RelationKind::Same);
        assert_eq!(
            kind("部署之后必须先运行数据库迁移", older),
            RelationKind::Differs
        );
        assert_eq!(kind("打印机有两种内置字体", older), RelationKind::Unrelated);
        assert_eq!(
            kind(
                "デプロイの前にマイグレーションを実行しない",
                "デプロイの前にマイグレーションを実行する"
            ),
            RelationKind::Differs
        );
    }
}
