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

pub use crate::conflict::Conflict;
pub use crate::profile::Profile;

const RELATED_COSINE: f32 = 0.35;
const MIN_RESEMBLANCE: f32 = 0.18;

#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    pub kind: RelationKind,
    /// How much content they share, over the whole text, from 0 to 1.
    pub resemblance: f64,
    pub conflict: Option<Conflict>,
}

pub fn relate(newer: &Profile, older: &Profile) -> Relation {
    let resemblance = newer.resemblance(older);
    let contains_older = newer.contains(older);
    let mut conflict = None;
    let kind = if contains_older && older.contains(newer) {
        RelationKind::Same
    } else if contains_older {
        RelationKind::SaysMore
    } else {
        let is_related = || resemblance >= MIN_RESEMBLANCE || newer.cosine(older) >= RELATED_COSINE;
        conflict = conflict::find(newer, older).filter(|_| is_related());
        if conflict.is_some() {
            RelationKind::Contradicts
        } else if older.contains(newer) || is_related() {
            RelationKind::Differs
        } else {
            RelationKind::Unrelated
        }
    };
    Relation { kind, resemblance: f64::from(resemblance), conflict }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(newer: &[&str], older: &[&str], expected: RelationKind) {
        let relation = relate(&Profile::of_texts(newer), &Profile::of_texts(older));
        assert_eq!(relation.kind, expected, "{newer:?} {older:?}: {relation:?}");
    }

    #[test]
    fn only_a_text_that_contains_the_other_is_the_same_or_says_more() {
        use RelationKind::{Contradicts, Differs, Same, SaysMore, Unrelated};
        let deploy = "部署之前必须先运行数据库迁移";
        for (newer, older, expected) in [
            ("Use pnpm, not npm", "Use pnpm, not npm", Same),
            ("Retry once. Then give up.", "Retry once", SaysMore),
            ("Retry once", "Retry once. Then give up.", Differs),
            ("Never retry once", "Retry once", Contradicts),
            ("copy from a to b", "copy from b to a", Differs),
            (deploy, deploy, Same),
            ("部署之后必须先运行数据库迁移", deploy, Differs),
            ("打印机有两种内置字体", deploy, Unrelated),
        ] {
            check(&[newer], &[older], expected);
        }
        let one = Profile::of_texts(&["Use pnpm, not npm"]);
        assert!((relate(&one, &one).resemblance - 1.0).abs() < 1e-12);
    }

    #[test]
    fn another_value_or_name_and_a_denial_contradict() {
        for (newer, older) in [
            ("超时为30秒", "超时为60秒"),
            ("The cache lives for 1 h", "The cache lives for 30 minutes"),
            ("Logs are kept for 90 days", "Logs are kept for 30 days"),
            ("Image alpine:3.19", "Image alpine:3.21"),
            ("It reads /etc/relay.toml", "It reads /opt/relay.toml"),
            ("Run tests with --all", "Run tests with --workspace"),
            ("The column is amount_minor", "The column is amount_cents"),
            ("Flags: flags.yml was removed.", "Flags are in flags.yml."),
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
            ("Không dùng bộ nhớ đệm", "Dùng bộ nhớ đệm"),
            ("캐시를 사용하지 않는다", "캐시를 사용한다"),
            ("마이그레이션을 실행하지 마세요", "마이그레이션을 실행하세요"),
            ("서버에서 디버그 로그 금지", "서버에서 디버그 로그"),
            ("部署前不要运行迁移", "部署前运行迁移"),
            ("移行を前に実行しない", "移行を前に実行する"),
        ] {
            check(&[newer], &[older], RelationKind::Contradicts);
        }
    }

    #[test]
    fn what_may_both_be_true_does_not_contradict() {
        let lint = ["The lint clippy::with_in", "What it does Warns with `in`."];
        let other = ["The lint clippy::without_in", "What it does Never warns with `in`."];
        for (newer, older) in [
            (&["The cache lives for 1800 s"][..], &["The cache lives for 30 minutes"][..]),
            (&["Metrics live for 90 days"], &["Logs live for 30 days"]),
            (&["In CI the limit is 10 s"], &["Locally the limit is 30 s"]),
            (&["The owner is Ana"], &["The owner is Milo"]),
            (&["两个不同的缓存目录"], &["两个缓存目录"]),
            (&["캐시를 없애는 작업"], &["캐시를 만드는 작업"]),
            (&["Network questions (23)"], &["Network questions (24)"]),
            (&lint, &other),
            (
                &["Cart", "localStorage is not to be used for the cart."],
                &["Cart", "Do not use localStorage for the cart."],
            ),
            (
                &["HTTP", "HTTP services use Fastify, not Express."],
                &["HTTP", "Uses Fastify for HTTP services rather than Express."],
            ),
            (
                &["Feature flags", "The console is not read."],
                &["Feature flags", "Feature flags are read from flags.yml."],
            ),
        ] {
            let relation = relate(&Profile::of_texts(newer), &Profile::of_texts(older));
            assert_ne!(relation.kind, RelationKind::Contradicts, "{relation:?}");
        }
    }
}
