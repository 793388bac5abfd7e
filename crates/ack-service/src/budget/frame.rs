//! What an answer says besides its results, however many scopes there are: where it searched and
//! what went wrong.

use ack_api::{Hint, Note, NoteKind, Searched, Tool};

const MAX_SCOPES: usize = 20;
const MAX_SKIPPED: usize = 10;
/// Maximum notes of one kind about single scopes. One more summarises the rest.
const MAX_SIMILAR: usize = 5;

/// Limits the listed scopes: the current one first, then those that `first` selects, then by name.
pub fn limit_searched(searched: &mut Searched, first: impl Fn(&str) -> bool) {
    keep_names(searched, MAX_SCOPES, MAX_SKIPPED, first);
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

pub fn keep_names(
    searched: &mut Searched,
    scopes: usize,
    skipped: usize,
    first: impl Fn(&str) -> bool,
) {
    searched.more_skipped += searched.skipped.len().saturating_sub(skipped) as u64;
    searched.skipped.truncate(skipped);
    if searched.scopes.len() > scopes {
        let current = searched.current_scope.as_deref();
        // `false` comes first, and the sort is stable: ties stay in name order.
        searched.scopes.sort_by_key(|name| (current != Some(name), !first(name)));
        searched.more_scopes += (searched.scopes.len() - scopes) as u64;
        searched.scopes.truncate(scopes);
        searched.scopes.sort();
    }
}

pub fn shorten_skipped(searched: &mut Searched) {
    for skipped in &mut searched.skipped {
        skipped.reason.shorten(24);
    }
}

pub fn drop_names(searched: &mut Searched) {
    keep_names(searched, 0, 0, |_| false);
}

/// Keeps a few notes of each kind about single scopes, and summarises the rest.
pub fn limit_notes(notes: &mut Vec<Note>) {
    let mut counts: Vec<(NoteKind, usize)> = Vec::new();
    notes.retain(|note| {
        let known = counts.iter_mut().find(|(kind, _)| *kind == note.kind);
        match known.filter(|_| note.scope.is_some()) {
            Some((_, count)) => {
                *count += 1;
                *count <= MAX_SIMILAR
            }
            None => {
                counts.extend(note.scope.as_ref().map(|_| (note.kind, 1)));
                true
            }
        }
    });
    for (kind, count) in counts.into_iter().filter(|(_, count)| *count > MAX_SIMILAR) {
        let more = ack_api::number::count((count - MAX_SIMILAR) as u64, "more scope");
        let note = Note::new(kind, format!("the same for {more}"));
        notes.push(note.with(Hint::call(Tool::ListScopes, "shows the details")));
    }
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
