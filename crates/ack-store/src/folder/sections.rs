//! The parts of a text below its headings: Codex's task groups, the sections of a memory bank.

use std::path::Path;

use super::index::Ids;
use super::markdown::lines;
use super::note::Note;
use super::statements::statements;

/// The parts below the headings that begin with a mark, and the text above the first one if that has
/// a title. A part that says nothing is none. Programs rewrite such files, so the ids come from the
/// titles.
pub fn sections(text: &str, relative: &Path, mark: &str, first: Option<String>) -> Vec<Note> {
    let of_file = first.clone();
    let mut notes: Vec<Note> = first.map(titled).into_iter().collect();
    for line in lines(text) {
        if let Some(rest) = line.text.strip_prefix(mark).filter(|_| !line.is_code) {
            let title = rest.trim_start_matches([':', ' ', '-']).trim_end_matches([' ', '#']);
            let title = match (title, &of_file) {
                ("", Some(of_file)) => of_file,
                ("", None) => mark.trim_matches(['#', ' ']),
                (title, _) => title,
            };
            notes.push(Note { subtitle: of_file.clone(), ..titled(title.to_owned()) });
        } else if let Some(note) = notes.last_mut() {
            note.text.push_str(line.text);
            note.text.push('\n');
        }
    }
    let mut ids = Ids::of(relative);
    notes.retain_mut(|note| {
        (_, note.links) = statements(&note.text, relative);
        let whole = format!("{}\n{}", note.title, note.text);
        // Parts that say the same are one.
        note.id = ids.free(&note.title, &whole).unwrap_or_default();
        !note.id.is_empty() && !note.text.trim().is_empty()
    });
    notes
}

fn titled(title: String) -> Note {
    Note { names: vec![title.clone()], title, ..Note::default() }
}

/// The text below a heading, up to the next one of its level or above.
pub fn below(text: &str, heading: &str) -> String {
    let mut is_inside = false;
    let mut found = String::new();
    for line in lines(text) {
        if !line.is_code && (line.text.starts_with("# ") || line.text.starts_with("## ")) {
            is_inside = line.text.trim_end() == heading;
        } else if is_inside {
            found.push_str(line.text);
            found.push('\n');
        }
    }
    found
}
