//! The words in a branch's name that say what the work is about.
//!
//! Teams put the kind of change, a person's name or a ticket in front. None of these should select
//! a memory.

use ack_api::text::has_word;

/// Branches that work is merged into. Their names say nothing.
const SHARED_BRANCHES: &str = "main master develop trunk dev";
/// Kinds of change that branch names and commits begin with.
const CHANGE_KINDS: &str = "\
    bug bugfix build chore ci deps doc docs draft enhancement experiment feat feature features fix \
    fixes hotfix issue maint patch perf poc refactor release revert spike style task test tests wip";
const VERBS: &str = "\
    add allow bugfix change cleanup enable feat fix hotfix implement improve make refactor remove \
    support update wip";
/// Prefixes of a ticket number, other than tracker keys.
const TICKET_PREFIXES: &str = "bug gh issue issues jira pr story task ticket";

/// The words that say what the branch is about, in lower case; empty for a main branch. What comes
/// before the last slash is the kind of change, a person, or a team.
pub fn words(branch: &str) -> Vec<String> {
    if has_word(SHARED_BRANCHES, branch) {
        return Vec::new();
    }
    let found = topic_words(branch.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
    if found.is_empty() {
        return topic_words(branch);
    }
    found
}

fn topic_words(name: &str) -> Vec<String> {
    let parts: Vec<&str> =
        name.split(['/', '-', '_', '.', '#', '+', ' ']).filter(|part| !part.is_empty()).collect();
    let mut words: Vec<String> = Vec::new();
    for (position, part) in parts.iter().enumerate() {
        let word = part.to_lowercase();
        let next = parts.get(position + 1);
        // On its own it is the topic: `chore/deps`.
        let is_kind = position == 0 && next.is_some() && has_word(CHANGE_KINDS, &word);
        let is_ticket = next.is_some_and(|next| is_ticket(part, next, position == 0));
        let says_nothing = is_kind || is_ticket || is_noise(part) || has_word(VERBS, &word);
        if !says_nothing && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Whether a part is a number, a date, a digest or a single letter.
fn is_noise(part: &str) -> bool {
    let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
    let is_digest = part.len() >= 7
        && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        && part.bytes().any(|byte| byte.is_ascii_digit());
    is_number || is_digest || part.chars().count() < 2
}

/// Whether a part and the next one form a ticket: `PAY-1234`, `issue-7`, at first `pay-1234`.
fn is_ticket(part: &str, next: &str, begins: bool) -> bool {
    let is_number = next.bytes().all(|byte| byte.is_ascii_digit());
    let is_key = part.len() >= 2
        && part.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let begins = begins && next.len() >= 3 && part.len() <= 10;
    is_number && (is_key || begins || has_word(TICKET_PREFIXES, &part.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn the_topic_of_a_branch_is_found_without_its_prefixes() {
        for (branch, expected) in [
            ("main", &[][..]),
            ("fix/lock-timeout_of-payout", &["lock", "timeout", "of", "payout"]),
            ("feat/PAY-1234-refund-webhook", &["refund", "webhook"]),
            ("alice/add-retry-budget", &["retry", "budget"]),
            ("users/bob/fix/retry-budget", &["retry", "budget"]),
            ("chore/deps", &["deps"]),
            ("docs-search", &["search"]),
            ("fix/release-pipeline", &["pipeline"]),
            ("pay-4711-idempotency", &["idempotency"]),
            ("fix/http-2-framing", &["http", "framing"]),
            ("issue-7", &[]),
            ("gh-12/odd-charset", &["odd", "charset"]),
            ("2026-11-22-locks", &["locks"]),
            ("wip/3f9a2c1d", &[]),
            ("Lock-Timeout", &["lock", "timeout"]),
            ("feature/ÜberSicht", &["übersicht"]),
            ("payments/", &["payments"]),
        ] {
            assert_eq!(words(branch), expected, "{branch}");
        }
    }
}
