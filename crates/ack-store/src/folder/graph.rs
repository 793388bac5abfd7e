//! The file of server-memory: a knowledge graph as JSON lines. Each entity is a memory, and each
//! relation a link.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::lines::read_lines;
use super::note::Note;

type Relation = (String, String, String);

enum Line {
    Entity(Box<Note>),
    Relation(Relation),
}

/// Reads a graph, and what is wrong with broken lines, which are left out.
pub fn read(text: &str) -> (Vec<Note>, Option<String>) {
    let mut notes: Vec<Note> = Vec::new();
    let mut relations = Vec::new();
    let problem = read_lines(text, |line| {
        match parse(line)? {
            Line::Entity(note) => notes.push(*note),
            Line::Relation(relation) => relations.push(relation),
        }
        Ok(())
    });
    add_relations(&mut notes, relations);
    (notes, problem)
}

fn parse(line: &str) -> Result<Line, String> {
    let value: Value =
        serde_json::from_str(line).map_err(|error| ack_api::text::json_line_problem(&error))?;
    let string = |key: &str| {
        let text = value.get(key).and_then(Value::as_str);
        text.filter(|text| !text.trim().is_empty()).map(str::to_owned)
    };
    match string("type").as_deref() {
        Some("entity") => {
            let name = string("name").ok_or("an entity needs a `name`")?;
            Ok(Line::Entity(Box::new(entity_note(name, &value))))
        }
        Some("relation") => {
            let (Some(from), Some(to)) = (string("from"), string("to")) else {
                return Err("a relation needs `from` and `to`".to_owned());
            };
            let kind = string("relationType").unwrap_or_else(|| "related".to_owned());
            Ok(Line::Relation((from, to, kind)))
        }
        _ => Err("it is neither an entity nor a relation".to_owned()),
    }
}

fn entity_note(name: String, value: &Value) -> Note {
    let kind = value.get("entityType").and_then(Value::as_str);
    let observations = value.get("observations").and_then(Value::as_array);
    let facts = observations.into_iter().flatten();
    let facts = facts.filter_map(|fact| fact.as_str().map(str::to_owned));
    Note {
        id: name.clone(),
        title: name.clone(),
        kind: kind.filter(|kind| !kind.is_empty()).map(str::to_owned),
        facts: facts.collect(),
        names: vec![name],
        ..Note::default()
    }
}

/// Adds each relation to the first entity that has its name.
fn add_relations(notes: &mut [Note], relations: Vec<Relation>) {
    let mut positions: FxHashMap<String, usize> = FxHashMap::default();
    for (position, note) in notes.iter().enumerate() {
        positions.entry(note.title.clone()).or_insert(position);
    }
    for (from, to, kind) in relations {
        let note = positions.get(&from).and_then(|position| notes.get_mut(*position));
        if let Some(note) = note {
            note.links.push((kind, to));
        }
    }
}
