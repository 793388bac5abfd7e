//! What is switched off in a client's file, and how it is switched on again.
//!
//! Next to the file, a record says what was switched off. `disconnect` reads it and removes it, so
//! what somebody else switched off stays off.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ConnectError;
use super::file::{beside, io, keep, read, unusable};
use super::parts::{at, inside, object};

/// A value in a file that puts unreviewed text into sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    pub path: Vec<String>,
    /// What is there while it is on; null for nothing.
    pub on: Value,
    /// What is there while it is off; null for nothing.
    pub off: Value,
}

impl Switch {
    pub fn at(path: &[&str], on: Value, off: Value) -> Self {
        Self { path: path.iter().map(|&key| key.to_owned()).collect(), on, off }
    }

    fn is(&self, settings: &Value, value: &Value) -> bool {
        inside(settings, &self.path).unwrap_or(&Value::Null) == value
    }

    pub fn turn_off(&self, settings: &mut Value) {
        if self.is(settings, &self.on) {
            put(settings, &self.path, self.off.clone());
        }
    }

    /// Restores the value. If somebody has changed the list since, only the entries that were
    /// removed come back; any other value that has changed is left alone.
    pub fn turn_on(&self, settings: &mut Value) {
        if self.is(settings, &self.off) {
            put(settings, &self.path, self.on.clone());
            return;
        }
        let there = at(settings, &self.path);
        let (Some(Value::Array(now)), Some(on)) = (there, self.on.as_array()) else {
            return;
        };
        let off = self.off.as_array().map_or(&[][..], Vec::as_slice);
        let stays = |entry: &&Value| !off.contains(entry) || now.contains(entry);
        let mut entries: Vec<Value> = on.iter().filter(stays).cloned().collect();
        let is_new = |entry: &&Value| !off.contains(entry) && !on.contains(entry);
        entries.extend(now.iter().filter(is_new).cloned());
        *now = entries;
    }
}

/// Sets the value at a path, or removes it where the value is null. An object that ends up empty
/// stays: it does no harm, and the file may need it.
fn put(settings: &mut Value, path: &[String], value: Value) {
    let Some((last, above)) = path.split_last() else {
        return;
    };
    match object(settings, above) {
        Ok(members) if value.is_null() => drop(members.shift_remove(last)),
        Ok(members) => drop(members.insert(last.clone(), value)),
        Err(_) => {}
    }
}

pub fn recorded(file: &Path) -> Result<Vec<Switch>, ConnectError> {
    let path = record_path(file);
    let Some((text, _)) = read(&path)? else {
        return Ok(Vec::new());
    };
    serde_json::from_str(&text).map_err(|error| {
        let reason = format!("it does not say what was switched off: {error}");
        unusable(&path, reason, "restore that file, or remove it")
    })
}

/// Records what is switched off. Only the owner can read it: an entry may contain a token.
pub fn record(file: &Path, switches: &[Switch]) -> Result<(), ConnectError> {
    let path = record_path(file);
    let text = serde_json::to_string_pretty(switches).unwrap_or_default();
    keep(&path, &(text + "\n"), None).map_err(io("write", &path))
}

pub fn forget(file: &Path) -> Result<(), ConnectError> {
    let path = record_path(file);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io("remove", &path)(error))
        }
        _ => Ok(()),
    }
}

fn record_path(file: &Path) -> PathBuf {
    beside(file, ".switched-off-by-ack-memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_that_somebody_has_changed_gets_back_what_was_taken_out() {
        let (on, off) = (json!(["other", "mem", "gone"]), json!(["other", "gone"]));
        let switch = Switch::at(&["hooks", "Start"], on, off);
        for (now, then) in [
            (json!(["other", "gone"]), json!(["other", "mem", "gone"])),
            (json!(["other", "new"]), json!(["other", "mem", "new"])),
            (json!(["other", "mem", "gone"]), json!(["other", "mem", "gone"])),
            (json!("text"), json!("text")),
        ] {
            let mut settings = json!({ "hooks": { "Start": now } });
            switch.turn_on(&mut settings);
            assert_eq!(settings, json!({ "hooks": { "Start": then } }));
        }
    }
}
