//! The links of a Markdown text: to files, and to other notes by their names.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use super::listing::is_markdown;
use super::markdown::{Line, lines, without_code};
use super::note::INDEX;

pub const MAX_NOTES: usize = 1_000;
pub const MAX_NAME_BYTES: usize = 200;

/// A link and its line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownLink {
    pub target: Target,
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `[text](path)`.
    File(String),
    /// `[[name]]`, with the part of the note in `[[name#heading]]`.
    Note(String),
}

/// The links of a text, without those in code.
pub fn links(text: &str) -> Vec<MarkdownLink> {
    let mut links = Vec::new();
    for Line { number, text, .. } in lines(text).filter(|line| !line.is_code) {
        let content = without_code(text);
        links.extend(targets(&content).map(|target| MarkdownLink { target, line: number }));
    }
    links
}

/// Where the links in a line lead. The text of a link to a file may begin on the line before, and
/// may be an image.
pub fn targets(line: &str) -> impl Iterator<Item = Target> {
    let names = line.split("[[").skip(1);
    let notes = names.filter_map(|rest| note_name(rest.split_once("]]")?.0)).map(Target::Note);
    let files = line.split("](").skip(1).filter_map(|rest| {
        let written = if rest.starts_with('<') { rest } else { rest.split_once(')')?.0 };
        file_name(written).map(Target::File)
    });
    notes.chain(files)
}

/// A link as it is written in a line.
#[derive(Debug)]
pub struct WrittenLink<'t> {
    /// With the `!` of an image.
    pub range: Range<usize>,
    pub shown: &'t str,
    /// `None` if it leads to no note and to no file.
    pub target: Option<Target>,
}

/// The links that a line has as a whole. It takes time in proportion to the line.
pub fn links_in(line: &str) -> impl Iterator<Item = WrittenLink<'_>> {
    line.match_indices('[').filter_map(|(start, _)| {
        let rest = line.get(start + 1..)?;
        let (shown, target, length) = if let Some(inside) = rest.strip_prefix('[') {
            let (text, _) = inside.split('[').next()?.split_once("]]")?;
            (text.rsplit('|').next()?, note_name(text).map(Target::Note), text.len())
        } else {
            let (text, _) = rest.split('[').next()?.split_once("](")?;
            let inside = rest.get(text.len() + 2..)?.split("](").next()?;
            let bracketed = if inside.starts_with('<') { inside.find('>')? } else { 0 };
            let length = bracketed + inside.get(bracketed..)?.find(')')?;
            (text, file_name(inside.get(..length)?).map(Target::File), text.len() + length)
        };
        let is_image = line.get(..start)?.ends_with('!');
        let end = start + "[]()".len() + length;
        Some(WrittenLink { range: start - usize::from(is_image)..end, shown, target })
    })
}

/// The path of a file in the parentheses of a link; `None` for an address.
fn file_name(written: &str) -> Option<String> {
    let target = match written.strip_prefix('<') {
        Some(rest) => rest.split_once('>')?.0,
        // A title may follow.
        None => written.split_whitespace().next()?,
    };
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let is_file = !path.is_empty()
        && !is_address(path)
        && !path.starts_with("//")
        && !path.contains(['{', '$', '*']);
    is_file.then(|| path.to_owned())
}

/// The name in a link `[[name]]` or `[[name|shown]]`.
fn note_name(link: &str) -> Option<String> {
    // In a table, `\` stands before the `|`.
    let name = link.split('|').next().unwrap_or_default();
    let name = name.trim_end_matches('\\').trim();
    (!name.is_empty() && name.len() <= MAX_NAME_BYTES).then(|| name.to_owned())
}

/// The name of the note alone, if a link names a heading or a block of it (`name#heading`,
/// `name^block`), or its file. The whole may be the name of another note.
pub fn name_alone(name: &str) -> Option<&str> {
    let alone = name.split(['#', '^']).next().unwrap_or_default().trim();
    let alone = alone.strip_suffix(".md").unwrap_or(alone);
    (!alone.is_empty() && alone != name).then_some(alone)
}

/// Whether a target begins with a scheme, as in `https:`.
fn is_address(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        !scheme.is_empty() && scheme.chars().all(is_part)
    })
}

/// `/` and the path of the note from the folder. `None` if it is no note, or outside.
pub fn resolve_note(target: &str, note: &Path) -> Option<String> {
    let decoded = percent_encoding::percent_decode_str(target).decode_utf8_lossy();
    let (start, path) = match decoded.strip_prefix('/') {
        Some(rest) => (Path::new(""), rest),
        None => (note.parent().unwrap_or(Path::new("")), &*decoded),
    };
    let mut parts: Vec<String> = Vec::new();
    for part in start.components().chain(Path::new(path).components()) {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    // An index holds many memories, and a link to it means none of them.
    let is_note = is_markdown(Path::new(parts.last()?)) && parts != [INDEX];
    is_note.then(|| format!("/{}", parts.join("/")))
}

/// Where the target of a link may be. A relative target starts at the note's folder; one with a
/// leading `/` starts at the folder of all notes or at the top of the repository.
pub fn target_paths(target: &str, note: &Path, folder: &Path, top: Option<&Path>) -> Vec<PathBuf> {
    let decoded = percent_encoding::percent_decode_str(target).decode_utf8_lossy();
    match decoded.strip_prefix('/') {
        Some(rest) => {
            [Some(folder), top].into_iter().flatten().map(|base| normal(&base.join(rest))).collect()
        }
        None => {
            let beside = folder.join(note);
            vec![normal(&beside.parent().unwrap_or(folder).join(&*decoded))]
        }
    }
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_and_code_is_not() {
        let text = "See [a](./a.md#top) and [[Other note|it]].\n`[b](b.md)` [c](https://x.org/c) [d](<with space.md> \"t\")\n```\n[e](e.md)\n```\n[f](f.md) ` [g](g.md) [[a\\|b]]\nthe [text\ngoes on](h.md) [![i](i.png)](j.md)";
        let found = links(text).into_iter().map(|link| (link.line, link.target));
        let file = |name: &str| Target::File(name.to_owned());
        let note = |name: &str| Target::Note(name.to_owned());
        let expected = [
            (1, note("Other note")),
            (1, file("./a.md")),
            (2, file("with space.md")),
            (6, note("a")),
            (6, file("f.md")),
            (6, file("g.md")),
            (8, file("h.md")),
            (8, file("i.png")),
            (8, file("j.md")),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_link_to_a_file_names_the_note_from_the_top_of_the_folder() {
        let note = Path::new("ops/deploy/Canary.md");
        for (target, expected) in [
            ("rollback.md", Some("/ops/deploy/rollback.md")),
            ("./Two%20Words.md", Some("/ops/deploy/Two Words.md")),
            ("../retry.MD", Some("/ops/retry.MD")),
            ("../../top.md", Some("/top.md")),
            ("/x/y.md", Some("/x/y.md")),
            ("../../../outside.md", None),
            ("main.rs", None),
            ("..", None),
        ] {
            assert_eq!(resolve_note(target, note).as_deref(), expected, "{target}");
        }
    }
}
