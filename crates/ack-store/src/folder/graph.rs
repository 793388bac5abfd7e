//! The file of server-memory: a knowledge graph as JSON lines. Each entity is a memory, and each
//! relation a link.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::lines::read_lines;
use super::note::Note;

/// Its two ends and its kind.
type Relation = (String, String, String);

#[derive(Default)]
struct Graph {
    entities: Vec<Note>,
    relations: Vec<Relation>,
}

/// Reads a graph, and what is wrong with broken lines, which are left out.
pub fn read(text: &str) -> (Vec<Note>, Option<String>) {
    let mut graph = Graph::default();
    let problem = read_lines(text, |line| graph.add(line));
    add_relations(&mut graph.entities, graph.relations);
    (graph.entities, problem)
}

impl Graph {
    fn add(&mut self, line: &str) -> Result<(), String> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| ack_api::text::json_line_problem(&error))?;
        let string = |key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.filter(|text| !text.trim().is_empty()).map(str::to_owned)
        };
        match string("type").as_deref() {
            Some("entity") => {
                let name = string("name").ok_or("an entity needs a `name`")?;
                self.entities.push(entity_note(name, &value));
            }
            Some("relation") => {
                let ends = string("from").zip(string("to"));
                let (from, to) = ends.ok_or("a relation needs `from` and `to`")?;
                let kind = string("relationType").unwrap_or_else(|| "related".to_owned());
                self.relations.push((from, to, kind));
            }
            _ => return Err("it is neither an entity nor a relation".to_owned()),
        }
        Ok(())
    }
}

fn entity_note(name: String, value: &Value) -> Note {
    let kind = value.get("entityType").and_then(Value::as_str);
    let observations = value.get("observations").and_then(Value::as_array);
    let facts = observations.into_iter().flatten().filter_map(Value::as_str);
    Note {
        id: name.clone(),
        title: name.clone(),
        kind: kind.filter(|kind| !kind.is_empty()).map(str::to_owned),
        facts: facts.map(str::to_owned).collect(),
        names: vec![name],
        ..Note::default()
    }
}

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
