//! Reads the header of a Markdown note: the part of YAML that programs write there.
//!
//! People edit these headers, so nothing in them is an error. Unknown lines are skipped, and of two
//! equal keys the last one wins. There are no aliases, so a header cannot expand. A nested key is
//! written with a dot, as in `metadata.type`.

use std::collections::{BTreeMap, BTreeSet};

/// The values of a header, by key in lower case.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Header {
    values: BTreeMap<String, Vec<String>>,
    /// The keys whose values are written as a list.
    lists: BTreeSet<String>,
    is_never_closed: bool,
    /// Whether a part of it could not be read.
    has_odd_lines: bool,
}

impl Header {
    /// Whether it is not what its author meant: it is never closed, or a part of it is not YAML.
    pub const fn is_broken(&self) -> bool {
        self.is_never_closed || self.has_odd_lines
    }

    /// Whether no line `---` ends it.
    pub const fn is_never_closed(&self) -> bool {
        self.is_never_closed
    }

    /// What the value of a key is, if it is not one text: `a list` or `a map`.
    pub fn nested(&self, key: &str) -> Option<&'static str> {
        let has_value = self
            .values
            .get(key)
            .is_some_and(|values| !values.is_empty());
        let is_inner = |known: &String| {
            let rest = known.strip_prefix(key);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        if self.lists.contains(key) {
            Some("a list")
        } else if !has_value && self.values.keys().any(is_inner) {
            Some("a map")
        } else {
            None
        }
    }

    /// The first value of the first key that has one.
    pub fn text(&self, keys: &[&str]) -> Option<String> {
        self.list(keys).into_iter().next()
    }

    /// Every value of the first key that has one.
    pub fn list(&self, keys: &[&str]) -> Vec<String> {
        let found = keys.iter().filter_map(|key| self.values.get(*key));
        found
            .map(|values| {
                let values = values.iter().filter(|value| !value.trim().is_empty());
                values.cloned().collect::<Vec<_>>()
            })
            .find(|values| !values.is_empty())
            .unwrap_or_default()
    }
}

/// Splits a note into its header and its text. A header that is never closed ends at the first
/// empty line. Anything that is not a header belongs to the text, even after `---`.
pub fn split(note: &str) -> (Header, &str) {
    let Some(rest) = after_opening_rule(note) else {
        return (Header::default(), note);
    };
    let mut end = None;
    let mut first_blank = None;
    let mut position = 0;
    let mut is_header = true;
    for line in rest.split_inclusive('\n') {
        let next = position + line.len();
        match line.trim_end() {
            "---" | "..." => {
                end = Some((position, next));
                break;
            }
            "" if first_blank.is_none() => first_blank = Some((position, next)),
            line if first_blank.is_none() => is_header &= may_be_header(line),
            _ => {}
        }
        position = next;
    }
    let first_line = rest.lines().next().unwrap_or_default();
    let begins_like_one = split_key(first_line).is_some_and(|(key, _)| {
        let is_used = first_blank.is_some() && is_header;
        is_used || USUAL_KEYS.contains(&key.to_lowercase().as_str())
    });
    let is_never_closed = end.is_none() && begins_like_one;
    let Some((header, text)) = end.or(first_blank.filter(|_| is_header)) else {
        let header = Header {
            is_never_closed,
            ..Header::default()
        };
        return (header, note);
    };
    let written = rest.get(..header).unwrap_or_default();
    let header = Header {
        is_never_closed,
        ..parse(written)
    };
    if header.values.is_empty() && written.lines().any(is_prose) {
        return (Header::default(), note);
    }
    let text = rest.get(text..).unwrap_or_default();
    (header, text)
}

/// Keys with which a header often begins.
const USUAL_KEYS: [&str; 10] = [
    "title",
    "name",
    "id",
    "type",
    "description",
    "summary",
    "date",
    "created",
    "tags",
    "status",
];

/// Whether a line can be part of a header that is never closed. A sentence with a colon cannot.
fn may_be_header(line: &str) -> bool {
    line.starts_with([' ', '\t', '-', '#'])
        || split_key(line).is_some_and(|(key, _)| !key.contains(' '))
}

/// Whether a line is neither empty nor a comment.
fn is_prose(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// What follows the `---` that opens a header.
fn after_opening_rule(note: &str) -> Option<&str> {
    let rest = note.strip_prefix("---")?;
    rest.strip_prefix('\n')
        .or_else(|| rest.strip_prefix("\r\n"))
}

/// An open key that may get further values.
struct OpenKey {
    key: String,
    indent: usize,
}

fn parse(header: &str) -> Header {
    let mut parser = HeaderParser::default();
    let mut lines = header.lines().peekable();
    while let Some(line) = lines.next() {
        parser.header.has_odd_lines |= line.starts_with('\t');
        let text = line.trim();
        let indent = indent_of(line);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if let Some(entry) = text.strip_prefix("- ").or((text == "-").then_some("")) {
            parser.read_entry(indent, entry.trim());
        } else if let Some((key, value)) = split_key(text) {
            let mut block = Vec::new();
            if value.starts_with(['|', '>']) {
                let is_inside = |next: &&str| next.trim().is_empty() || indent_of(next) > indent;
                block.extend(std::iter::from_fn(|| lines.next_if(is_inside)).map(str::trim));
            }
            parser.read_key(indent, &key, value, &block);
        } else {
            parser.read_continuation(indent, text);
        }
    }
    parser.header
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A header that is read line by line.
#[derive(Default)]
struct HeaderParser {
    header: Header,
    /// The keys that may get further values, from the outermost on.
    open: Vec<OpenKey>,
}

impl HeaderParser {
    /// An entry of a list. It may have the same indentation as its key.
    fn read_entry(&mut self, indent: usize, entry: &str) {
        self.open.retain(|open| open.indent <= indent);
        let Some(key) = self.open.last().map(|open| open.key.clone()) else {
            return;
        };
        let values = &mut self.header.values;
        // A text may go on in a line that begins like an entry.
        if values.get(&key).is_none_or(Vec::is_empty) {
            self.header.lists.insert(key.clone());
        }
        match split_key(entry) {
            // `- {by: human:ana}`.
            None if entry.starts_with('{') => inline_table(&key, entry, values),
            // A list of tables: `- by: human:ana`.
            Some((inner, value)) if !inner.contains(' ') && !is_quoted(entry) => {
                let key = format!("{key}.{inner}");
                values.entry(key).or_default().push(scalar(value));
            }
            _ => values.entry(key).or_default().push(scalar(entry)),
        }
    }

    /// A key with the rest of its line, and with the lines of its block if it has one.
    fn read_key(&mut self, indent: usize, key: &str, value: &str, block: &[&str]) {
        self.header.has_odd_lines |= is_odd(value);
        self.open.retain(|open| open.indent < indent);
        let key = match self.open.last() {
            Some(parent) => format!("{}.{key}", parent.key),
            None => key.to_owned(),
        };
        self.open.push(OpenKey {
            key: key.clone(),
            indent,
        });
        let Header { values, lists, .. } = &mut self.header;
        lists.remove(&key);
        if value.starts_with('[') {
            lists.insert(key.clone());
        }
        let found = match value.chars().next() {
            None => Vec::new(),
            Some('{') => return inline_table(&key, value, values),
            Some('[') if value.trim_start_matches(['[', ' ']).starts_with('{') => {
                let inner = value.trim_start_matches('[').trim_end_matches(']');
                for table in inner.split_inclusive('}') {
                    inline_table(&key, table.trim_start_matches([',', ' ']), values);
                }
                return;
            }
            Some('[') => inline_list(value),
            Some('|') => vec![block.join("\n").trim().to_owned()],
            Some('>') => vec![block.join(" ").trim().to_owned()],
            Some(_) => vec![scalar(value)],
        };
        values.insert(key, found);
    }

    /// A value may continue on the next line.
    fn read_continuation(&mut self, indent: usize, text: &str) {
        let open = self.open.last().filter(|open| indent > open.indent);
        let values = open.and_then(|open| self.header.values.get_mut(&open.key));
        if let Some(last) = values.and_then(|values| values.last_mut()) {
            last.push(' ');
            last.push_str(text);
        } else {
            self.header.has_odd_lines = true;
        }
    }
}

/// Whether a value is not the text that its author meant: YAML reads a colon in it as another key,
/// and a quote is not closed.
fn is_odd(value: &str) -> bool {
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            value.len() < 2 || !value.ends_with(quote) && !value.contains(" #")
        }
        Some('[' | '{') => false,
        _ => value.contains(": "),
    }
}

/// A key and its value, if a line has the form `key: value`.
fn split_key(line: &str) -> Option<(String, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.is_empty()
        && key.len() <= 60
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || "_-. \"'".contains(c))
        && (value.is_empty() || value.starts_with([' ', '\t']));
    is_key.then(|| {
        let key = key.trim().trim_matches(['"', '\'']);
        (key.to_lowercase(), value.trim())
    })
}

/// `[a, "b, c"]`.
fn inline_list(value: &str) -> Vec<String> {
    let inner = value.trim_start_matches('[').trim_end_matches(']');
    let entries = split_unquoted(inner);
    entries.iter().map(|entry| scalar(entry.trim())).collect()
}

/// The parts between commas that are not in quotes.
fn split_unquoted(inner: &str) -> Vec<String> {
    let (mut entries, mut entry, mut quote) = (Vec::new(), String::new(), None);
    let mut is_escaped = false;
    for c in inner.chars() {
        let was_escaped = std::mem::take(&mut is_escaped);
        match quote {
            None if c == ',' => {
                entries.push(std::mem::take(&mut entry));
                continue;
            }
            None if c == '"' || c == '\'' => quote = Some(c),
            Some('"') if c == '\\' && !was_escaped => is_escaped = true,
            Some(open) if c == open && !was_escaped => quote = None,
            _ => {}
        }
        entry.push(c);
    }
    entries.push(entry);
    entries
}

/// `{by: human:ana, at: 2026-01-01}`.
fn inline_table(key: &str, value: &str, values: &mut BTreeMap<String, Vec<String>>) {
    let inner = value.trim_start_matches('{').trim_end_matches('}');
    for entry in split_unquoted(inner) {
        if let Some((inner, value)) = split_key(entry.trim()) {
            let values = values.entry(format!("{key}.{inner}")).or_default();
            values.push(scalar(value));
        }
    }
}

fn is_quoted(value: &str) -> bool {
    value.starts_with(['"', '\''])
}

/// A value without its quotes and without a comment after it.
fn scalar(value: &str) -> String {
    if let Some(rest) = value.strip_prefix('"')
        && let Some(end) = rest.rfind('"')
    {
        let inner = rest.get(..end).unwrap_or_default();
        return unescape(inner);
    }
    if let Some(rest) = value.strip_prefix('\'')
        && let Some(end) = rest.rfind('\'')
    {
        return rest.get(..end).unwrap_or_default().replace("''", "'");
    }
    let value = value.split(" #").next().unwrap_or_default().trim();
    match value {
        "null" | "~" => String::new(),
        value => value.to_owned(),
    }
}

/// A text in double quotes with YAML's escapes resolved. If it has one that YAML does not know, it
/// is kept as written.
fn unescape(inner: &str) -> String {
    if !inner.contains('\\') {
        return inner.to_owned();
    }
    serde_saphyr::from_str(&format!("\"{inner}\"")).unwrap_or_else(|_| inner.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_other_programs_are_read() {
        let (header, text) = split(
            "---\nname: a-note\ndescription: \"with: a colon\"\nmetadata:\n  node_type: memory\n  type: feedback\ntags:\n- one\n- \"two, too\"\n\
             files: [a.rs, 'b, c.rs']\nwhy: |\n  two\n  lines\nverified:\n  - by: human:ana\n    at: 2026-01-01\n---\n\nText\n---\nmore\n",
        );
        assert_eq!(header.text(&["title", "name"]).as_deref(), Some("a-note"));
        assert_eq!(
            header.text(&["description"]).as_deref(),
            Some("with: a colon")
        );
        assert_eq!(
            header.text(&["type", "metadata.type"]).as_deref(),
            Some("feedback")
        );
        assert_eq!(header.list(&["tags"]), ["one", "two, too"]);
        assert_eq!(header.list(&["files"]), ["a.rs", "b, c.rs"]);
        assert_eq!(header.text(&["why"]).as_deref(), Some("two\nlines"));
        assert_eq!(header.list(&["verified.by"]), ["human:ana"]);
        let (header, _) = split(
            "---\nverified: [{by: human:ana, at: 2026-01-01}, {by: \"human:x\"}]\ngenerated: {by: claude, at: 2026-02-02}\n\
             facts:\n- \"so: \\\"it\\\" is\\nso\"\n- 'don''t: x'\nlist: [\"a\\\"b, c\", d]\n---\n",
        );
        assert_eq!(header.list(&["verified.by"]), ["human:ana", "human:x"]);
        assert_eq!(
            header.text(&["generated.at"]).as_deref(),
            Some("2026-02-02")
        );
        assert_eq!(header.list(&["facts"]), ["so: \"it\" is\nso", "don't: x"]);
        assert_eq!(header.list(&["list"]), ["a\"b, c", "d"]);
        assert_eq!(text, "\nText\n---\nmore\n");
        let (header, _) = split("---\nverified:\n- {by: 'human:ana', at: '2026-01-01'}\n---\n");
        assert_eq!(header.list(&["verified.by"]), ["human:ana"]);
    }

    #[test]
    fn the_escapes_of_yaml_are_read() {
        for (written, meant) in [
            (
                r#""\e[31mred\u202E\x41\n\_x""#,
                "\u{1b}[31mred\u{202e}A\n\u{a0}x",
            ),
            (r#""\U0001F600 \ud83d\ude00 \"q\" a\/b""#, "😀 😀 \"q\" a/b"),
            // A text with escapes that YAML does not know is kept.
            (
                r#""C:\src \q \xZZ \ud83d \u12""#,
                r"C:\src \q \xZZ \ud83d \u12",
            ),
            (r#""\é \""#, "\\é \\"),
        ] {
            assert_eq!(scalar(written), meant, "{written}");
        }
    }

    #[test]
    fn a_broken_header_is_read_as_far_as_possible() {
        let (header, text) =
            split("---\nname: x\ntype: a\ntype: b\n\tindented: tab\nnot a key\n: none\n---\nText");
        assert_eq!(header.text(&["name"]).as_deref(), Some("x"));
        assert_eq!(header.text(&["type"]).as_deref(), Some("b"));
        assert_eq!(text, "Text");
        let (header, text) = split("---\r\nname: x\r\n\r\nNever closed\r\n");
        assert_eq!(header.text(&["name"]).as_deref(), Some("x"));
        assert_eq!(text, "Never closed\r\n");
        assert!(header.is_never_closed());
        assert!(split("---\nname: x").0.is_never_closed());
        assert!(split("---\nname: x\nThe text\n").0.is_never_closed());
        for note in [
            "---\nname: x\n---\n",
            "---\n- a list\n",
            "---\nSome text: x\n\nx",
            "---\n\nText after a rule: x\n",
            "---\nWarning: not a header, because\nit goes on here.\n\nText\n",
        ] {
            assert!(!split(note).0.is_never_closed(), "{note}");
        }
        for note in ["", "---", "no header", "----\nname: x\n---\n", "--- \nx: y"] {
            assert_eq!(split(note), (Header::default(), note), "{note}");
        }
    }
}
