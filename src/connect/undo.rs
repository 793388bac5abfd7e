//! Removes our parts from a text, and keeps what others wrote before and after the parts were
//! added.

use serde_json::{Map, Value};

use super::backup::Backup;
use super::file::{
    add_parts, entry, has_no_entry, is_empty, ours_in, remove_parts, settings, with_parts,
    without_mark,
};
use super::ours::EntryKind;
use super::{ClientFile, EmptyContainer, Part, members, merge, parts};

/// A text without our parts.
pub enum Restoration {
    FromBackup,
    Text(String),
}

/// Removes our parts from a text, with the help of the backup.
pub fn restore(file: &ClientFile, text: &str, backup: &Backup) -> Result<Restoration, String> {
    let backup = match backup {
        Backup::Nothing => {
            return remove_parts(file, text, EmptyContainer::Keep).map(Restoration::Text);
        }
        Backup::NoFile { .. } => {
            let pruned = remove_parts(file, text, EmptyContainer::RemoveUnless(&Value::Null))?;
            return Ok(if is_empty(file.format, &pruned) {
                Restoration::FromBackup
            } else {
                Restoration::Text(pruned)
            });
        }
        Backup::Text(backup) => without_mark(backup).1.replace("\r\n", "\n"),
    };
    Ok(match undo_change(file, text, &backup) {
        Some(undone) if undone == backup => Restoration::FromBackup,
        Some(undone) => Restoration::Text(undone),
        None => Restoration::Text(remove_ours(file, text, &backup)?),
    })
}

/// The text with our change of the backup undone, if that removes our parts and nothing else.
fn undo_change(file: &ClientFile, text: &str, backup_text: &str) -> Option<String> {
    let existing = existing_parts(file, text);
    let base = add_parts(&existing, backup_text).ok()?;
    // A backup may have entries of ours, but permissions in it may be the user's own.
    let entries = with_parts(file, |part| !part.is_permission());
    let old = remove_parts(&entries, backup_text, EmptyContainer::Keep).ok()?;
    let expected = settings_without_ours(file, text, Some(backup_text))?;
    let fits = |undone: &String| {
        has_no_entry(file, undone)
            && settings_without_ours(file, undone, None).as_ref() == Some(&expected)
    };
    merge::undo_by_line(&base, &old, text)
        .filter(fits)
        .or_else(|| merge::undo_by_word(&base, &old, text).filter(fits))
}

/// The settings in a text without our parts and the empty objects around them. With a backup,
/// somebody else's entry that ours replaced is restored.
fn settings_without_ours(
    file: &ClientFile,
    text: &str,
    backup_text: Option<&str>,
) -> Option<Value> {
    let settings = read(file, text)?;
    let old = backup_text.and_then(|backup_text| read(file, backup_text));
    let mut without_ours = settings.clone();
    let ours = ours_in(file, &settings);
    parts::remove(&mut without_ours, &ours.parts, EmptyContainer::Keep);
    for part in &ours.parts {
        let is_there = entry(&settings, part).is_some();
        let other = old.as_ref().and_then(|old| replaced_entry(old, part));
        if let Some(other) = other.filter(|_| is_there) {
            parts::set(&mut without_ours, part, other.clone());
        }
    }
    for path in file.parts.iter().filter_map(Part::path) {
        let all = EmptyContainer::RemoveUnless(&Value::Null);
        parts::prune(&mut without_ours, path, all);
    }
    Some(without_ours)
}

fn read(file: &ClientFile, text: &str) -> Option<Value> {
    settings(file.format, text).ok()
}

/// Somebody else's entry in the backup, which ours replaced.
fn replaced_entry<'a>(backup_settings: &'a Value, part: &Part) -> Option<&'a Value> {
    entry(backup_settings, part).filter(|entry| EntryKind::of(entry) != EntryKind::ThisProgram)
}

/// A text without our parts, and without the empty objects and lists that the backup lacks.
/// Somebody else's entry that ours replaced is restored.
fn remove_ours(file: &ClientFile, text: &str, backup_text: &str) -> Result<String, String> {
    let old = read(file, backup_text).unwrap_or_default();
    let bare = remove_parts(file, text, EmptyContainer::RemoveUnless(&old))?;
    let mut back = with_parts(file, |part| replaced_entry(&old, part).is_some());
    for part in &mut back.parts {
        if let (Some(other), Part::Member { value, .. }) =
            (replaced_entry(&old, part).cloned(), part)
        {
            *value = other;
        }
    }
    let is_taken = |part: &Part| read(file, &bare).is_some_and(|now| entry(&now, part).is_some());
    if back.parts.iter().any(is_taken) {
        return Ok(bare);
    }
    add_parts(&back, &bare)
}

/// The file with the parts that a text contains, as it has them.
fn existing_parts(file: &ClientFile, text: &str) -> ClientFile {
    let settings = read(file, text).unwrap_or_default();
    let mut existing = with_parts(&ours_in(file, &settings), |part| {
        let mut bare = settings.clone();
        parts::remove(&mut bare, std::slice::from_ref(part), EmptyContainer::Keep);
        bare != settings
            || matches!(part, Part::Required { name, .. } if settings.get(name).is_some())
    });
    for part in &mut existing.parts {
        let now = entry(&settings, part).cloned();
        if let (Some(now), Part::Member { value, .. }) = (now, part) {
            // In the order in which they were written.
            let mut now = members(&now);
            let known: Vec<String> = members(value).into_iter().map(|(key, _)| key).collect();
            let ordered = known
                .into_iter()
                .filter_map(|key| now.shift_remove_entry(&key));
            let mut ordered: Map<String, Value> = ordered.collect();
            ordered.append(&mut now);
            *value = Value::Object(ordered);
        }
    }
    existing
}
