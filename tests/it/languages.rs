//! Questions in Chinese, Japanese, Korean, Thai and German: the words alone find the right note
//! first, although three of these languages write no spaces and German joins its nouns.
//!
//! Every language has ten notes on the same ten subjects, and its questions are in other words and
//! another order than the notes. So each note has look-alikes: nine in its own language, and
//! half of them share a word with it.

use serde_json::json;

use crate::query::bulk;
use crate::support::{Ask, Root, memory, result_ids};

/// A note and the questions that it answers.
pub struct Note {
    pub id: String,
    pub title: &'static str,
    pub text: &'static str,
    pub questions: Vec<&'static str>,
}

/// Notes of a file: language, title, text and questions, a line each. A note's id is its language
/// and its number.
pub fn notes(file: &'static str) -> Vec<Note> {
    let parse = |(number, note): (usize, &'static str)| {
        let lines: Vec<&str> = note.lines().collect();
        Note {
            id: format!("{}-{number}", lines[0]),
            title: lines[1],
            text: lines[2],
            questions: lines[3].split(" | ").collect(),
        }
    };
    file.split("\n\n").enumerate().map(parse).collect()
}

/// A root with these notes.
pub fn root_of<'n>(notes: impl IntoIterator<Item = &'n Note>) -> Root {
    let root = Root::new();
    let memories: Vec<_> = notes
        .into_iter()
        .map(|note| memory(&note.id, note.title, json!({ "narrative": note.text })))
        .collect();
    bulk(&root, "alpha", &memories);
    root
}

#[test]
fn words_find_the_right_note_first_in_languages_without_spaces_and_with_compounds() {
    let notes = notes(include_str!("languages.txt"));
    assert_eq!(notes.len(), 50);
    let root = root_of(&notes);
    let service = root.service();
    // What is near in meaning does not disturb what words find.
    for mode in ["lexical", "hybrid"] {
        for note in &notes {
            let query = json!({ "query": note.questions[0], "limit": 10, "mode": mode });
            let found = result_ids(&service.find(query));
            assert_eq!(found.first(), Some(&note.id), "{mode}: {:?}", note.questions);
        }
    }
}
