//! The paragraphs of a Markdown text and the items of its lists.

use ack_api::text;

use super::markdown::{Line, lines};

/// The longest part of a heading, or of a paragraph above a list, that its blocks repeat.
const MAX_CONTEXT_CHARS: usize = 200;

/// A paragraph or an item of a list, with the code that belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    pub headings: Vec<String>,
    pub lead: Option<String>,
    pub text: String,
    pub is_item: bool,
}

/// The blocks of a text. An item of a list holds the lists in it; the steps of a numbered list
/// belong to the paragraph that introduces them.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut splitter = Splitter::default();
    for line in lines(text) {
        splitter.read(line);
    }
    splitter.close();
    splitter.blocks
}

#[derive(Default)]
struct Splitter {
    blocks: Vec<Block>,
    headings: Vec<(usize, String)>,
    lead: Option<String>,
    open: Option<OpenBlock>,
    blank_lines: usize,
}

#[derive(Default)]
struct OpenBlock {
    text: String,
    /// The indentation of an item's mark; `None` for a paragraph.
    item: Option<usize>,
    indent: usize,
    has_steps: bool,
}

impl Splitter {
    fn read(&mut self, line: Line<'_>) {
        let trimmed = line.text.trim();
        if trimmed.is_empty() && !line.is_code {
            self.blank_lines += 1;
            return;
        }
        let indent = line.text.len() - line.text.trim_start().len();
        if line.is_code {
            self.append_or_open(line.text);
        } else if let Some((level, title)) = heading(trimmed).filter(|_| indent < 4) {
            self.close();
            self.lead = None;
            self.headings.retain(|(other, _)| *other < level);
            self.headings.push((level, text::line(title, MAX_CONTEXT_CHARS)));
        } else if is_rule(trimmed) {
            self.close();
            self.lead = None;
        } else if let Some(item) = item(line.text) {
            self.read_item(line.text, item);
        } else {
            self.read_text(line.text, indent);
        }
        self.blank_lines = 0;
    }

    fn read_item(&mut self, line: &str, item: Item<'_>) {
        if let Some(open) = &mut self.open {
            let is_inner = open.item.is_some_and(|outer| item.indent > outer);
            let is_step =
                open.item.is_none() && item.is_numbered && (open.has_steps || is_lead(&open.text));
            if is_inner || is_step || open.has_steps && item.indent > 0 {
                open.has_steps |= is_step;
                return self.append_or_open(line);
            }
        }
        // Another item of the same list keeps what introduced it.
        if let Some(paragraph) = self.open.as_ref().filter(|open| open.item.is_none()) {
            let is_lead = !paragraph.has_steps && is_lead(&paragraph.text);
            self.lead = is_lead.then(|| text::line(&paragraph.text, MAX_CONTEXT_CHARS));
            if is_lead {
                self.open = None;
            }
        }
        self.close();
        self.open = Some(OpenBlock {
            text: item.text.to_owned(),
            item: Some(item.indent),
            indent: item.text_indent,
            has_steps: false,
        });
    }

    fn read_text(&mut self, line: &str, indent: usize) {
        let goes_on = self.open.as_ref().is_some_and(|open| {
            self.blank_lines == 0
                || open.item.is_some_and(|mark| indent > mark)
                || open.item.is_none() && (indent >= 4 || open.has_steps && indent > 0)
        });
        if !goes_on {
            self.close();
            self.lead = None;
        }
        self.append_or_open(line);
    }

    fn append_or_open(&mut self, line: &str) {
        let open = self.open.get_or_insert_default();
        if !open.text.is_empty() {
            open.text.extend(std::iter::repeat_n('\n', 1 + self.blank_lines.min(1)));
        }
        let indent = line.len() - line.trim_start().len();
        let indent = line.floor_char_boundary(indent.min(open.indent));
        open.text.push_str(line.get(indent..).unwrap_or(line).trim_end());
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.text.trim().is_empty() {
            return;
        }
        self.blocks.push(Block {
            headings: self.headings.iter().map(|(_, title)| title.clone()).collect(),
            lead: self.lead.clone(),
            text: open.text.trim_end().to_owned(),
            is_item: open.item.is_some(),
        });
    }
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let is_heading =
        (1..=6).contains(&level) && (title.is_empty() || title.starts_with([' ', '\t']));
    is_heading.then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

/// Whether a line is a rule between sections: `---`, `* * *`.
fn is_rule(line: &str) -> bool {
    let mark = line.chars().next();
    let count = line.chars().filter(|c| Some(*c) == mark).count();
    mark.is_some_and(|mark| "-*_".contains(mark))
        && count >= 3
        && line.chars().all(|c| Some(c) == mark || c == ' ')
}

fn is_lead(text: &str) -> bool {
    let text = text.trim_end().trim_end_matches(['*', '_']);
    text.ends_with([':', '：']) && !text.contains("\n\n")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'t> {
    pub indent: usize,
    text_indent: usize,
    pub is_numbered: bool,
    pub text: &'t str,
}

/// The item of a list in a line: `- text`, `* text`, `+ text`, `1. text` or `1) text`.
pub fn item(line: &str) -> Option<Item<'_>> {
    let trimmed = line.trim_start();
    let marked = trimmed.strip_prefix(['-', '*', '+']).or_else(|| {
        let rest = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = trimmed.len() - rest.len();
        (1..=9).contains(&digits).then(|| rest.strip_prefix(['.', ')']))?
    })?;
    let text = marked.strip_prefix([' ', '\t'])?.trim_start();
    Some(Item {
        indent: line.len() - trimmed.len(),
        text_indent: line.len() - text.len(),
        is_numbered: trimmed.starts_with(|c: char| c.is_ascii_digit()),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_into_paragraphs_and_items() {
        let found = blocks(
            "# Top\nFirst line\nsecond line.\n\n## List\nRules:\n\n- one\n  more\n  - inner\n\n  ```\n  code\n  ```\n- two\nlazy\n\nAfter.\n\n    indented\n\n\
             Steps:\n1. a\n   - b\n2. c\n\n1. alone\n2. other\n***\n# Under\nlast\n```sh\nrun\n\nit\n```\n",
        );
        let expected = [
            ("Top", "First line\nsecond line."),
            ("Top > List > Rules:", "one\nmore\n- inner\n\n```\ncode\n```"),
            ("Top > List > Rules:", "two\nlazy"),
            ("Top > List", "After.\n\n    indented"),
            ("Top > List", "Steps:\n1. a\n   - b\n2. c\n\n1. alone\n2. other"),
            ("Under", "last\n```sh\nrun\n\nit\n```"),
        ];
        let found = found.into_iter().map(|block| {
            let context: Vec<String> = block.headings.into_iter().chain(block.lead).collect();
            (context.join(" > "), block.text)
        });
        let expected = expected.map(|(context, text)| (context.to_owned(), text.to_owned()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
