//! Takes our parts out of a text: what others wrote stays, before and after the parts came.

use serde_json::{Map, Value};

use super::file::{entry, has_no_entry, is_empty, put, take, value, with_parts, without_mark};
use super::kept::Kept;
use super::ours::Entry;
use super::{ConfigFile, Emptied, Part, members, merge};

/// A text without our parts.
pub enum Restored {
    /// Exactly what is kept.
    Kept,
    /// This.
    Text(String),
}

/// Removes our parts from a text, as what is kept demands.
pub fn restored(file: &ConfigFile, text: &str, kept: &Kept) -> Result<Restored, String> {
    let kept = match kept {
        Kept::Nothing => return take(file, text, Emptied::Stays).map(Restored::Text),
        Kept::NoFile { .. } => {
            let pruned = take(file, text, Emptied::Goes(&Value::Null))?;
            return Ok(if is_empty(file.format, &pruned) {
                Restored::Kept
            } else {
                Restored::Text(pruned)
            });
        }
        Kept::Text(kept) => without_mark(kept).1.replace("\r\n", "\n"),
    };
    Ok(match undone(file, text, &kept) {
        Some(undone) if undone == kept => Restored::Kept,
        Some(undone) => Restored::Text(undone),
        None => Restored::Text(cut_out(file, text, &kept)?),
    })
}

/// The text with our change of the kept text undone, if that takes out our parts and nothing else.
fn undone(file: &ConfigFile, text: &str, kept: &str) -> Option<String> {
    let there = parts_in(file, text);
    let base = put(&there, kept).ok()?;
    // A kept text may have entries of ours, but permissions in it may be the user's own.
    let entries = with_parts(file, |part| !matches!(part, Part::Words { .. }));
    let old = take(&entries, kept, Emptied::Stays).ok()?;
    let meant = meaning(file, text, Some(kept))?;
    let fits = |undone: &String| {
        has_no_entry(file, undone) && meaning(file, undone, None).as_ref() == Some(&meant)
    };
    merge::by_line(&base, &old, text)
        .filter(fits)
        .or_else(|| merge::by_word(&base, &old, text).filter(fits))
}

/// What a text says without our parts and empty objects in their places. With a kept text,
/// somebody else's entry that ours replaced is back.
fn meaning(file: &ConfigFile, text: &str, kept: Option<&str>) -> Option<Value> {
    let settings = value(file.format, text)?;
    let taken = take(file, text, Emptied::Stays).ok()?;
    let mut taken = value(file.format, &taken)?;
    let old = kept.and_then(|kept| value(file.format, kept));
    for part in &file.parts {
        let is_ours = entry(&settings, part).is_some_and(|entry| Entry::of(entry) == Entry::Ours);
        let other = old.as_ref().and_then(|old| replaced(old, part));
        if let Some(other) = other.filter(|_| is_ours) {
            part.set(&mut taken, other.clone());
        }
    }
    for part in &file.parts {
        part.prune(&mut taken);
    }
    Some(taken)
}

/// Somebody else's entry in kept settings, which ours replaced.
fn replaced<'a>(kept: &'a Value, part: &Part) -> Option<&'a Value> {
    entry(kept, part).filter(|entry| Entry::of(entry) != Entry::Ours)
}

/// A text without our parts, and without the empty objects and lists that the kept text lacks.
/// Somebody else's entry that ours replaced is back.
fn cut_out(file: &ConfigFile, text: &str, kept: &str) -> Result<String, String> {
    let old = value(file.format, kept).unwrap_or_default();
    let bare = take(file, text, Emptied::Goes(&old))?;
    let mut back = with_parts(file, |part| replaced(&old, part).is_some());
    for part in &mut back.parts {
        if let (Some(other), Part::Member { value, .. }) = (replaced(&old, part).cloned(), part) {
            *value = other;
        }
    }
    let is_taken =
        |part: &Part| value(file.format, &bare).is_some_and(|now| entry(&now, part).is_some());
    if back.parts.iter().any(is_taken) {
        return Ok(bare);
    }
    put(&back, &bare)
}

/// The file with the parts that a text contains, as it has them.
fn parts_in(file: &ConfigFile, text: &str) -> ConfigFile {
    let settings = value(file.format, text).unwrap_or_default();
    let alone = |part: &Part| with_parts(file, |other| other == part);
    let mut there = with_parts(file, |part| {
        take(&alone(part), text, Emptied::Stays).is_ok_and(|bare| bare != text)
            || matches!(part, Part::Needed { name, .. } if settings.get(name).is_some())
    });
    for part in &mut there.parts {
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
    there
}
