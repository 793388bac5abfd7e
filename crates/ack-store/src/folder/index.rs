//! The memories in one file: the items and paragraphs of Claude Code's `MEMORY.md`, the parts of a
//! file of Goose or Hermes. An item that only points to a file of notes is an entry of the index.
//!
//! The ids come from the first sentences, so an item keeps its id if it changes further on. In no
//! case does an earlier decision apply to its new text.

use std::path::Path;

use ack_api::text;
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{Block, blocks};
use super::links::{Target, WrittenLink, links_in};
use super::listing::is_markdown;
use super::markdown::{replaced, without_code};
use super::note::{Note, id_from_path};
use super::statements::statements;

const MAX_SLUG_CHARS: usize = 80;
const MAX_TITLE_CHARS: usize = 160;
/// How much of a block is read for its title, in bytes.
const TITLE_BYTES: usize = 4 << 10;
/// The words that may stand before the link of an entry: `See`, `Details in`.
const ENTRY_WORDS: [&str; 8] = ["see", "also", "more", "details", "read", "in", "at", "and"];
const MAX_DEPTH: usize = 4;
/// Words that name the whole index in its first heading.
const INDEX_WORDS: [&str; 4] = ["memory", "memories", "index", "notes"];

/// The items and paragraphs of a text. The day in the name of their file is theirs.
pub fn memories(text: &str, relative: &Path) -> Vec<Note> {
    let mut found = Vec::new();
    add_blocks(blocks(text), MAX_DEPTH, &mut found);
    let mut ids = Ids::of(relative);
    let day = relative.file_stem().and_then(|stem| stem.to_str()?.get(..10));
    let day = day.filter(|day| ack_api::time::parse(day).is_some());
    let notes = found.into_iter().filter_map(|block| note(block, relative, &mut ids));
    notes.map(|note| Note { created: day.map(str::to_owned), ..note }).collect()
}

/// The parts of a text between lines that say only this. The first line of a part between empty
/// lines may give its tags: `# one two`.
pub fn parts(text: &str, relative: &Path, between: &str) -> Vec<Note> {
    let mut ids = Ids::of(relative);
    let parts = split_at(text, between).into_iter().filter_map(|part| {
        let (first, rest) = part.split_once('\n').unwrap_or((&part, ""));
        let tags = first.strip_prefix('#').filter(|_| between.is_empty());
        let text = tags.map_or(&*part, |_| rest).to_owned();
        let tags = tags.into_iter().flat_map(str::split_whitespace);
        let block = Block { text, ..Block::default() };
        Some(Note { tags: tags.map(str::to_owned).collect(), ..note(block, relative, &mut ids)? })
    });
    parts.collect()
}

fn split_at(text: &str, between: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let parts = lines.split(|line| line.trim() == between).map(|part| part.join("\n"));
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Adds the blocks that are memories. The list below an entry of the index is read by itself.
fn add_blocks(blocks: Vec<Block>, depth: usize, found: &mut Vec<Block>) {
    for block in blocks {
        let (first, rest) = block.text.split_once('\n').unwrap_or((&block.text, ""));
        if !is_entry(first) {
            found.push(block);
        } else if block.is_item && depth > 0 {
            let inner = super::blocks::blocks(rest).into_iter();
            let inner = inner.map(|inner| Block {
                headings: block.headings.clone(),
                lead: inner.lead.or_else(|| block.lead.clone()),
                ..inner
            });
            add_blocks(inner.collect(), depth - 1, found);
        }
    }
}

fn note(block: Block, relative: &Path, ids: &mut Ids) -> Option<Note> {
    let head = block.text.get(..block.text.floor_char_boundary(TITLE_BYTES))?;
    let plain = plain(before_code(head));
    let (sentence, is_whole) = text::first_sentence(&plain, MAX_TITLE_CHARS);
    let context = context(&block);
    let title = if sentence.is_empty() {
        // A block of code alone is about what the heading says.
        context.last()?.clone()
    } else {
        sentence
    };
    // What the title says need not be repeated.
    let is_whole = is_whole && block.text.split_whitespace().eq(plain.split_whitespace());
    let (_, links) = statements(&block.text, relative);
    let subtitle = context.join(" › ");
    Some(Note {
        id: ids.free(&title, &block.text)?,
        names: vec![title.clone()],
        title,
        subtitle: Some(subtitle).filter(|subtitle| !subtitle.is_empty()),
        text: if is_whole { String::new() } else { block.text },
        links,
        ..Note::default()
    })
}

/// The headings above a block, without the title of the whole index, and what introduces its list.
fn context(block: &Block) -> Vec<String> {
    let is_title = |heading: &String| {
        let heading = heading.to_lowercase();
        words(&heading).any(|word| INDEX_WORDS.contains(&word))
    };
    let skipped = usize::from(block.headings.first().is_some_and(is_title));
    let headings = block.headings.iter().skip(skipped).map(|heading| plain(heading));
    let lead = block.lead.iter().map(|it| plain(it).trim_end_matches([':', '：']).to_owned());
    headings.chain(lead).filter(|part| !part.is_empty()).collect()
}

fn before_code(text: &str) -> &str {
    if text.starts_with("```") || text.starts_with("~~~") {
        return "";
    }
    let marks = ["\n```", "\n~~~", "\n- ", "\n* ", "\n+ ", "\n1. "];
    let end = marks.iter().filter_map(|mark| text.find(mark)).min();
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Whether a line only points to a note: a link with what it is about, or a word before it.
fn is_entry(line: &str) -> bool {
    let line = line.get(..line.floor_char_boundary(TITLE_BYTES)).unwrap_or(line);
    let plain = without_code(line);
    let links: Vec<WrittenLink<'_>> = links_in(&plain).collect();
    let points_to_note = links.iter().any(|link| match &link.target {
        Some(Target::Note(_)) => true,
        Some(Target::File(file)) => is_markdown(Path::new(file)),
        None => false,
    });
    let Some(first) = links.first().filter(|_| points_to_note) else {
        // `debugging.md: what helped`.
        let bare = line.trim_matches(EMPHASIS);
        let (name, after) = bare.split_at(bare.find([' ', ':', '`']).unwrap_or(bare.len()));
        return is_markdown(Path::new(name)) && begins_description(after);
    };
    let before = plain.get(..first.range.start).unwrap_or_default();
    let after = plain.get(first.range.end..).unwrap_or_default();
    if words(before).next().is_none() {
        return begins_description(after);
    }
    words(before).all(|word| ENTRY_WORDS.contains(&word.to_lowercase().as_str()))
        && words(after).next().is_none()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

const EMPHASIS: [char; 5] = ['*', '_', '`', '~', ' '];

/// Whether what follows a link describes its target: nothing, or a text after a dash or the like.
fn begins_description(after: &str) -> bool {
    let text = after.trim_start_matches(EMPHASIS);
    let is_apart = after.len() > text.len();
    words(text).next().is_none()
        || text.starts_with([':', '：', '–', '—'])
        || is_apart && text.starts_with(['-', '(', '→', '|'])
}

fn plain(text: &str) -> String {
    let text = text.replace("**", "");
    let links: Vec<WrittenLink<'_>> = links_in(&text).collect();
    replaced(&text, links.iter().map(|link| (link.range.clone(), link.shown)))
}

/// The ids of the memories in one file.
pub struct Ids {
    /// The beginning of each: the file's path, and a mark.
    prefix: String,
    taken: FxHashSet<String>,
    texts: FxHashSet<u64>,
}

impl Ids {
    pub fn of(relative: &Path) -> Self {
        Self {
            prefix: format!("{}#", id_from_path(relative)),
            taken: FxHashSet::default(),
            texts: FxHashSet::default(),
        }
    }

    /// The id of a memory: its title in plain letters. If an earlier one has it, a hash of the text
    /// follows, so that it does not depend on the memories in between. `None` if an earlier memory
    /// has the same text.
    pub fn free(&mut self, title: &str, text: &str) -> Option<String> {
        let hash = xxh3_64(text.as_bytes());
        if !self.texts.insert(hash) {
            return None;
        }
        let lower = title.to_lowercase();
        let slug = words(&lower).collect::<Vec<_>>().join("-");
        let slug: String = slug.chars().take(MAX_SLUG_CHARS).collect();
        let short = format!("{}{slug}", self.prefix);
        if !slug.is_empty() && self.taken.insert(short.clone()) {
            return Some(short);
        }
        let long = format!("{short}-{:08x}", hash >> 32);
        self.taken.insert(long.clone()).then_some(long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Note> {
        memories(text, Path::new("MEMORY.md"))
    }

    #[test]
    fn items_and_paragraphs_are_memories_and_entries_of_the_index_are_not() {
        for entry in "- [User](user.md) - prefers short answers | * [User](./sub/user.md) | \
            - **[User](user.md)** — prefers short answers | - [[user]]: prefers short answers | \
            - See [user](user.md). | - `user.md` — prefers short answers | - user.md | \
            - user.md: prefers short answers | Details in [user](user.md)"
            .split(" | ")
        {
            assert_eq!(found(entry), [], "{entry}");
        }
        for (memory, title) in [
            ("- Use pnpm, see [why](pnpm.md)", "Use pnpm, see why"),
            ("- Use pnpm ([why](pnpm.md))", "Use pnpm (why)"),
            ("- [Postgres](pg.md), not MySQL", "Postgres, not MySQL"),
            ("- [Docs](https://a.org/a) - handbook", "Docs - handbook"),
            ("- [Kim](kim.md) writes little. Always.", "Kim writes little."),
            ("* **Tests**: `just test` first", "Tests: `just test` first"),
            ("A paragraph\nof two lines.", "A paragraph of two lines."),
            ("- Replaces [[old|the old]] at once", "Replaces the old at once"),
        ] {
            let notes = found(memory);
            let titles: Vec<&str> = notes.iter().map(|note| note.title.as_str()).collect();
            assert_eq!(titles, [title], "{memory}");
        }
    }

    #[test]
    fn headings_and_introductions_are_the_context() {
        let notes = found(
            "# Project memory\n\n## Testing\nNever mock the database. It hid a bug.\n\n```sh\njust test\n```\n\nIn CI:\n- cache `~/.cargo`\n- [Files](files.md)\n  - they are old\n\n### Flaky\n```\nretry 3\n```\n",
        );
        let found: Vec<(&str, Option<&str>, &str)> = notes
            .iter()
            .map(|note| (note.title.as_str(), note.subtitle.as_deref(), note.text.as_str()))
            .collect();
        let rule = "Never mock the database. It hid a bug.\n\n```sh\njust test\n```";
        assert_eq!(
            found,
            [
                ("Never mock the database.", Some("Testing"), rule),
                ("cache `~/.cargo`", Some("Testing › In CI"), ""),
                ("they are old", Some("Testing › In CI"), ""),
                ("Flaky", Some("Testing › Flaky"), "```\nretry 3\n```"),
            ]
        );
    }

    #[test]
    fn an_id_depends_on_the_first_sentence_alone() {
        let ids =
            |text: &str| -> Vec<String> { found(text).into_iter().map(|note| note.id).collect() };
        let two = "- Use pnpm. Always.\n- Ärger mit CI\n";
        assert_eq!(ids(two), ["MEMORY#use-pnpm", "MEMORY#ärger-mit-ci"]);
        let changed = "New above.\n\n- Use pnpm. Never npm.\n- Ärger mit CI\n";
        assert_eq!(ids(changed), ["MEMORY#new-above", "MEMORY#use-pnpm", "MEMORY#ärger-mit-ci"]);
        let same = ids("- Use pnpm. Here.\n- Use pnpm. There.\n- Use pnpm. Here.\n- ???\n- ???\n");
        assert_eq!(same.len(), 3, "{same:?}");
        let again = ids("- Use pnpm. Here.\n- Between\n- Use pnpm. There.\n");
        assert_eq!(again.last(), same.get(1));
    }
}
