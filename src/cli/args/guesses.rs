//! What people type because other programs have it, or because this one had it.

/// Words and flags that do not exist here, some after a command, with what to use instead.
const GUESSES: &str = include_str!("guesses.txt");

/// A line for each tip: the words that it is for, and the tip.
fn guesses() -> impl Iterator<Item = (impl Iterator<Item = &'static str>, &'static str)> {
    let lines = GUESSES.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(words, tip)| (words.split(", "), tip))
}

/// What to use instead of a word that is not a command or flag here. `typed` may begin with the
/// command that it is for.
pub(super) fn guess(typed: &str) -> Option<&'static str> {
    let mut guesses = guesses();
    guesses.find_map(|(mut words, tip)| words.any(|word| word == typed).then_some(tip))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::command;

    #[test]
    fn every_tip_names_commands_that_exist() {
        for (all, tip) in guesses() {
            let all: Vec<&str> = all.collect();
            for typed in &all {
                let words = typed.split(' ');
                let parsed =
                    command().try_get_matches_from(["ack-memory"].into_iter().chain(words));
                assert!(parsed.is_err(), "{typed}");
            }
            let commands: Vec<&str> =
                tip.split('`').filter(|part| part.starts_with("ack-memory ")).collect();
            let is_flag = all.iter().all(|word| word.starts_with('-'));
            assert!(is_flag || !commands.is_empty(), "{tip}");
            for line in commands {
                // What stands for a client's name is not one.
                let line = line.replace(" CLIENT", " codex");
                let parsed = command().try_get_matches_from(line.split(' '));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
