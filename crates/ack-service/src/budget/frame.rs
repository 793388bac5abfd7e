//! What an answer says besides its results, however many scopes there are: where it searched and
//! what went wrong.

use ack_api::{Hint, Note, NoteKind, Searched, Tool};

const MAX_SCOPES: usize = 20;
const MAX_SKIPPED: usize = 10;
/// Maximum notes of one kind about single scopes. One more summarises the rest.
const MAX_SIMILAR: usize = 5;

/// Limits the listed scopes: the current one first, then those that `first` selects, then by name.
pub fn limit_searched(searched: &mut Searched, first: impl Fn(&str) -> bool) {
    keep_scopes(searched, MAX_SCOPES, first);
    keep_skipped(searched, MAX_SKIPPED);
}

/// Leaves out the skipped scopes whose reason a note gives, so that an agent reads it once.
pub fn skip_once(searched: &mut Searched, notes: &[Note]) {
    let is_reason =
        |note: &&Note| matches!(note.kind, NoteKind::ScopeUnavailable | NoteKind::RemoteCold);
    searched.skipped.retain(|skipped| {
        let mut reasons = notes.iter().filter(is_reason);
        !reasons.any(|note| note.scope.as_ref() == Some(&skipped.scope))
    });
}

/// If nothing was skipped, removes the searched scopes and the current one, known already.
pub fn drop_default_fields(searched: &mut Searched) {
    if searched.skipped.is_empty() && searched.more_skipped == 0 && !searched.scopes.is_empty() {
        *searched = Searched { status: searched.status, ..Searched::default() };
    }
}

pub fn keep_scopes(searched: &mut Searched, max: usize, first: impl Fn(&str) -> bool) {
    if searched.scopes.len() <= max {
        return;
    }
    let current = searched.current_scope.as_deref();
    // `false` comes first, and the sort is stable: ties stay in name order.
    let rank = |name: &String| (current != Some(name), !first(name));
    searched.scopes.sort_by_key(rank);
    searched.more_scopes += (searched.scopes.len() - max) as u64;
    searched.scopes.truncate(max);
    searched.scopes.sort();
}

pub fn keep_skipped(searched: &mut Searched, max: usize) {
    searched.more_skipped += searched.skipped.len().saturating_sub(max) as u64;
    searched.skipped.truncate(max);
}

pub fn shorten_skipped(searched: &mut Searched) {
    for skipped in &mut searched.skipped {
        skipped.reason.shorten(24);
    }
}

pub fn drop_names(searched: &mut Searched) {
    keep_scopes(searched, 0, |_| false);
    keep_skipped(searched, 0);
}

/// Keeps a few notes of each kind about single scopes, and summarises the rest.
pub fn limit_notes(notes: &mut Vec<Note>) {
    let mut counts: Vec<(NoteKind, usize)> = Vec::new();
    notes.retain(|note| {
        if note.scope.is_none() {
            return true;
        }
        match counts.iter_mut().find(|(kind, _)| *kind == note.kind) {
            Some((_, count)) => {
                *count += 1;
                *count <= MAX_SIMILAR
            }
            None => {
                counts.push((note.kind, 1));
                true
            }
        }
    });
    notes.extend(counts.into_iter().filter(|(_, count)| *count > MAX_SIMILAR).map(
        |(kind, count)| {
            let more = ack_api::number::count((count - MAX_SIMILAR) as u64, "more scope");
            Note::new(kind, format!("the same for {more}"))
                .with(Hint::call(Tool::ListScopes, "shows the details"))
        },
    ));
}

pub fn shorten_notes(notes: &mut [Note]) {
    for note in notes {
        note.message.shorten(60);
    }
}

pub fn replace_notes(notes: &mut [Note]) {
    for note in notes {
        note.message = "shortened to fit max_tokens".into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_one_kind_are_summed_up() {
        let about =
            |number: usize| Note::about(NoteKind::ScopeUnavailable, format!("s{number}"), "locked");
        let mut notes: Vec<Note> = (0..40).map(about).collect();
        notes.push(Note::new(NoteKind::Cut, "cut"));
        limit_notes(&mut notes);
        assert_eq!(notes.len(), MAX_SIMILAR + 2);
        let last = notes.last().map(|note| note.message.text());
        assert!(last.is_some_and(|text| text.contains("35 more")), "{notes:?}");
    }
}
