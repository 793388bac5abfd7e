//! Edits a manifest: changes only the named keys and leaves every other byte. The result is checked
//! first and then written atomically.

use std::path::{Path, PathBuf};

use similar::TextDiff;
use toml_edit::{Array, Decor, DocumentMut, Item, RawString, Value, value};

use super::manifest::Manifest;
use crate::config::{MAX_SETTINGS_BYTES, SettingsError};
use ack_api::text;
use ack_sys::files;
use ack_sys::text_file::{replace, with_line_ends_of};

#[derive(Debug, Clone)]
pub enum KeyChange {
    /// A value, or a table with its header and what is above it.
    Set(Item),
    Add(Vec<String>),
    Unset,
}

#[derive(Debug)]
pub struct EditedManifest {
    pub path: PathBuf,
    pub manifest: Manifest,
    /// For each changed key, its old text, of a table with the header; `None` if the key is new.
    pub earlier_values: Vec<(String, Option<String>)>,
    before: Option<String>,
    after: String,
}

/// Plans changes to a manifest, which need not exist yet. Writes nothing.
pub fn plan(path: &Path, changes: &[(String, KeyChange)]) -> Result<EditedManifest, SettingsError> {
    let before = match files::read_text(path, MAX_SETTINGS_BYTES) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !path.is_symlink() => None,
        Err(source) => return Err(SettingsError::Unreadable { path: path.to_owned(), source }),
    };
    let raw = before.as_deref().unwrap_or_default();
    let (mark, raw) = match raw.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", raw),
    };
    let plain = raw.replace("\r\n", "\n");
    let mut document: DocumentMut = match plain.parse() {
        Ok(document) => document,
        // Use the standard message, with the line.
        Err(_) => {
            let invalid = SettingsError::invalid(path, "it is not valid TOML");
            return Manifest::parse(&plain, path).and(Err(invalid));
        }
    };
    let mut earlier = Vec::new();
    for (key, change) in changes {
        let before = assigned(&document, key);
        apply(&mut document, key, change);
        if assigned(&document, key) != before {
            earlier.push((key.clone(), before));
        }
    }
    let after = if earlier.is_empty() {
        raw.to_owned()
    } else {
        with_line_ends_of(raw, &document.to_string())
    };
    let manifest = Manifest::parse(&after, path)?;
    Ok(EditedManifest {
        path: path.to_owned(),
        manifest,
        earlier_values: earlier,
        before,
        after: format!("{mark}{after}"),
    })
}

fn apply(document: &mut DocumentMut, key: &str, change: &KeyChange) {
    match change {
        KeyChange::Unset => remove(document, key),
        KeyChange::Set(Item::Table(new)) => {
            let mut new = new.clone();
            // Its place among the tables is the one that the key has.
            new.set_position(None);
            let above = new.decor().prefix().and_then(RawString::as_str).unwrap_or_default();
            // When a table is removed, the comments above it stay.
            let below = document.trailing().as_str().unwrap_or_default();
            if let Some(below) = below.strip_prefix(above).filter(|_| !above.trim().is_empty()) {
                document.set_trailing(below.to_owned());
            }
            document.insert(key, Item::Table(new));
        }
        KeyChange::Set(new) => match (document.get_mut(key), new.clone()) {
            // Keep a comment after the value.
            (Some(Item::Value(known)), Item::Value(mut new)) => {
                *new.decor_mut() = known.decor().clone();
                *known = new;
            }
            (_, new) => drop(document.insert(key, new)),
        },
        KeyChange::Add(texts) => match document.get_mut(key) {
            Some(Item::Value(Value::Array(list))) => {
                texts.iter().for_each(|text| append(list, text));
            }
            // `projects` may be a table of names with their aliases.
            Some(item) if item.is_table_like() => {
                if let Some(table) = item.as_table_like_mut() {
                    for name in texts {
                        if table.get(name).is_none() {
                            table.insert(name, value(Array::new()));
                        }
                    }
                }
            }
            _ => drop(document.insert(key, value(texts.iter().collect::<Array>()))),
        },
    }
}

/// Removes a key. The comments above it stay, above what follows.
fn remove(document: &mut DocumentMut, key: &str) {
    let prefix = |decor: &Decor| decor.prefix().and_then(RawString::as_str).map(str::to_owned);
    let above = match document.get(key) {
        Some(Item::Table(table)) => prefix(table.decor()),
        _ => document.key(key).and_then(|key| prefix(key.leaf_decor())),
    };
    let above = above.unwrap_or_default();
    let following = document.iter().map(|(name, _)| name).skip_while(|name| *name != key).nth(1);
    let following = following.map(str::to_owned);
    document.remove(key);
    if above.trim().is_empty() {
        return;
    }
    let Some(next) = following else {
        let below = document.trailing().as_str().unwrap_or_default();
        document.set_trailing(above + below);
        return;
    };
    let add = |decor: &mut Decor| decor.set_prefix(above + &prefix(decor).unwrap_or_default());
    match document.get_mut(&next) {
        Some(Item::Table(table)) => add(table.decor_mut()),
        _ => drop(document.key_mut(&next).map(|mut key| add(key.leaf_decor_mut()))),
    }
}

/// Adds a string to a list, if missing, with the layout of the previous entry. Comments stay where
/// they are.
fn append(list: &mut Array, text: &str) {
    if list.iter().any(|known| known.as_str() == Some(text)) {
        return;
    }
    let before = list.iter().last().and_then(|last| last.decor().prefix()?.as_str());
    let Some((_, indent)) = before.and_then(|before| before.rsplit_once('\n')) else {
        return list.push(text);
    };
    let after = list.trailing().as_str().unwrap_or_default().trim_end().to_owned();
    let added = Value::from(text).decorated(format!("{after}\n{indent}"), "");
    if !after.is_empty() {
        list.set_trailing("\n");
    }
    list.push_formatted(added);
}

/// What stands behind `KEY=` to set a key to what it is now.
fn assigned(document: &DocumentMut, key: &str) -> Option<String> {
    let item = document.get(key)?.clone();
    if item.is_table() {
        let mut alone = DocumentMut::new();
        alone.insert(key, item);
        return Some(alone.to_string());
    }
    let mut value = item.into_value().ok()?;
    value.decor_mut().clear();
    Some(value.to_string().trim().to_owned())
}

impl EditedManifest {
    pub fn is_changed(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }

    /// The diff, safe to print.
    pub fn shown(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let path = self.path.display().to_string();
        let from = if self.before.is_some() { path.as_str() } else { "(no file)" };
        let diff = TextDiff::from_lines(before, &self.after)
            .unified_diff()
            .context_radius(1)
            .header(from, &path)
            .to_string();
        text::safe(&diff).into_owned()
    }

    /// Writes the file. Only the owner can read a new file.
    pub fn write(&self) -> std::io::Result<()> {
        if files::read_text(&self.path, MAX_SETTINGS_BYTES).ok() != self.before {
            return Err(std::io::Error::other("another program changed it meanwhile"));
        }
        replace(&self.path, &self.after)
    }
}
