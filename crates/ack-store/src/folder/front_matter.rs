//! Reads the header of a Markdown note: YAML, as far as it is YAML.
//!
//! People edit these headers, so nothing in them is an error. If one is not YAML, each key is read
//! by itself, and a value that is not YAML is its text. The last of equal keys wins. Aliases are
//! not followed, so a header cannot expand. A nested key is written with a dot, as in
//! `metadata.type`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};

use super::note::NoteStatus;

const MAX_HEADER_BYTES: usize = 256 << 10;

/// The values of a header, by key in lower case.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Header {
    values: BTreeMap<String, Vec<String>>,
    /// What the value of a key is, if it is not one text.
    nested: BTreeMap<String, &'static str>,
    is_never_closed: bool,
    has_unread_status: bool,
}

impl Header {
    /// Whether a line names a status in a way that is not YAML, such as `status = draft`.
    pub const fn has_unread_status(&self) -> bool {
        self.has_unread_status
    }

    /// Whether no line `---` ends it.
    pub const fn is_never_closed(&self) -> bool {
        self.is_never_closed
    }

    /// What the value of a key is, if it is not one text: `a list`, `a map` or `an alias`.
    pub fn nested(&self, key: &str) -> Option<&'static str> {
        self.nested.get(key).copied()
    }

    pub fn text(&self, keys: &[&str]) -> Option<String> {
        self.list(keys).into_iter().next()
    }

    pub fn list(&self, keys: &[&str]) -> Vec<String> {
        let mut found = keys.iter().filter_map(|key| self.values.get(*key)).map(|values| {
            values.iter().filter(|value| !value.trim().is_empty()).cloned().collect::<Vec<_>>()
        });
        found.find(|values| !values.is_empty()).unwrap_or_default()
    }

    fn parse(written: &str) -> Self {
        let text = if written.contains('\r') {
            Cow::Owned(written.replace("\r\n", "\n").replace('\r', "\n"))
        } else {
            Cow::Borrowed(written)
        };
        let yaml = Self::parse_yaml(&text);
        let is_yaml = yaml.is_some();
        let mut header = yaml.unwrap_or_else(|| Self::parse_keys(&text));
        // In YAML, an indented line belongs to the value above it.
        let mut keys = text.lines().filter(|line| !(is_yaml && line.starts_with(' ')));
        header.has_unread_status = !header.values.contains_key("status") && keys.any(names_status);
        header
    }

    /// Reads each key by itself.
    fn parse_keys(text: &str) -> Self {
        let mut header = Self::default();
        for (key, lines) in keys_with_lines(text) {
            if let Some(read) = Self::parse_yaml(&lines) {
                header.values.extend(read.values);
                header.nested.extend(read.nested);
            } else {
                header.values.insert(key, broken_values(&lines));
            }
        }
        header
    }

    /// `None` if it is not YAML.
    fn parse_yaml(text: &str) -> Option<Self> {
        let mut reader = YamlReader::default();
        for event in Parser::new_from_str(text.get(..MAX_HEADER_BYTES).unwrap_or(text)) {
            reader.read(event.ok()?.0);
        }
        // What no key names.
        reader.header.values.remove("");
        reader.header.nested.remove("");
        Some(reader.header)
    }
}

/// Splits a note into its header and its text. A header that is never closed ends at the first
/// empty line. Anything that is not a header belongs to the text, even after `---`.
pub fn split(note: &str) -> (Header, &str) {
    let end = line_end(note);
    let Some(("---", rest)) = note.split_once(end).map(|(line, rest)| (line.trim_end(), rest))
    else {
        return (Header::default(), note);
    };
    if let Some((written, text)) = split_at_line(rest, end, |line| ["---", "..."].contains(&line)) {
        let header = Header::parse(written);
        let says_nothing = header.values.is_empty() && !header.has_unread_status;
        if says_nothing && written.lines().any(is_prose) {
            return (Header::default(), note);
        }
        return (header, text);
    }
    let open = split_at_line(rest, end, str::is_empty);
    let open = open.filter(|(written, _)| written.lines().all(may_be_header));
    let first = rest.lines().next().and_then(key_of);
    if !first.is_some_and(|key| open.is_some() || USUAL_KEYS.contains(&key.as_str())) {
        return (Header::default(), note);
    }
    let (written, text) = open.unwrap_or(("", note));
    let mut header = Header { is_never_closed: true, ..Header::parse(written) };
    let mut paragraph = rest.lines().take_while(|line| !line.trim().is_empty());
    header.has_unread_status |= open.is_none() && paragraph.any(names_status);
    (header, text)
}

/// What ends the first line, and so those of the header: old programs for Macs write `\r`.
fn line_end(note: &str) -> char {
    let first = note.lines().next().unwrap_or_default();
    if first.trim_end_matches('\r').contains('\r') { '\r' } else { '\n' }
}

fn split_at_line(text: &str, end: char, ends: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let mut position = 0;
    for line in text.split_inclusive(end) {
        if ends(line.trim_end()) {
            let (before, rest) = text.split_at_checked(position)?;
            return Some((before, rest.get(line.len()..)?));
        }
        position += line.len();
    }
    None
}

const USUAL_KEYS: [&str; 10] =
    ["title", "name", "id", "type", "description", "summary", "date", "created", "tags", "status"];

/// Whether a line can be part of a header that is never closed. A sentence with a colon cannot.
fn may_be_header(line: &str) -> bool {
    line.starts_with([' ', '\t', '-', '#']) || key_of(line).is_some_and(|key| !key.contains(' '))
}

fn is_prose(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// Whether a line has a status, however it is written. Prose about one has none.
fn names_status(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| c != '#' && !c.is_alphanumeric());
    let Some((key, rest)) = line.split_at_checked("status".len()) else { return false };
    let value = rest.trim_start();
    let begins_value = value.starts_with(|c: char| !c.is_alphanumeric())
        || value.len() < rest.len() && NoteStatus::parse(value).is_some();
    key.eq_ignore_ascii_case("status") && begins_value && !rest.starts_with(['_', '-', '.'])
}

/// The key of a line `key: value` that is not indented, in lower case.
fn key_of(line: &str) -> Option<String> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.is_empty()
        && key.len() <= 60
        && !key.starts_with([' ', '-'])
        && key.chars().all(|c| c.is_alphanumeric() || "_-. \"'".contains(c))
        && (value.is_empty() || value.starts_with(char::is_whitespace));
    is_key.then(|| key.trim().trim_matches(['"', '\'']).to_lowercase())
}

fn keys_with_lines(header: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in header.split_inclusive('\n') {
        match (key_of(line), found.last_mut()) {
            (Some(key), _) => found.push((key, line.to_owned())),
            (None, Some((_, lines))) => lines.push_str(line),
            (None, None) => {}
        }
    }
    found
}

/// The values of a key that are not YAML: what follows the colon, or the entries of a list.
fn broken_values(lines: &str) -> Vec<String> {
    let (first, below) = lines.split_once('\n').unwrap_or((lines, ""));
    let value = first.split_once(':').map_or("", |(_, value)| value.trim());
    if let Some(list) = value.strip_prefix('[') {
        return list.trim_end_matches(']').split(',').map(|entry| unquoted(entry.trim())).collect();
    }
    if !value.is_empty() {
        return vec![unquoted(value)];
    }
    let entries = below.lines().filter_map(|line| line.trim().strip_prefix("- "));
    entries.map(|entry| unquoted(entry.trim())).collect()
}

fn unquoted(value: &str) -> String {
    let quote = value.chars().next().filter(|c| "\"'".contains(*c));
    let inner = quote.and_then(|quote| {
        let inner = value.strip_prefix(quote)?;
        Some(inner.strip_suffix(quote).unwrap_or(inner))
    });
    inner.unwrap_or(value).to_owned()
}

struct Open {
    /// The key whose value it is; empty for the whole header.
    key: String,
    /// Whether it is a list, or a map in one: then its values are added to those of others.
    is_in_list: bool,
    is_map: bool,
    next: Option<String>,
}

#[derive(Default)]
struct YamlReader {
    header: Header,
    open: Vec<Open>,
}

impl YamlReader {
    fn read(&mut self, event: Event<'_>) {
        match event {
            Event::Scalar(text, style, ..) => {
                let is_null = style == ScalarStyle::Plain && matches!(&*text, "null" | "~");
                self.read_text(if is_null { "" } else { text.trim() });
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => self.read_alias(),
            Event::SequenceStart(..) => self.open(false),
            Event::MappingStart(..) => self.open(true),
            Event::SequenceEnd | Event::MappingEnd => drop(self.open.pop()),
            _ => {}
        }
    }

    fn read_alias(&mut self) {
        let key = self.open.last().and_then(|map| map.next.clone());
        self.read_text("");
        self.header.nested.extend(key.map(|key| (key, "an alias")));
    }

    /// The key of the next value, and whether it is one of several. `None` if a key comes next.
    fn place(&mut self) -> Option<(String, bool)> {
        match self.open.last_mut() {
            None => Some((String::new(), false)),
            Some(open) if open.is_map => Some((open.next.take()?, open.is_in_list)),
            Some(open) => Some((open.key.clone(), true)),
        }
    }

    fn read_text(&mut self, text: &str) {
        if let Some((key, is_in_list)) = self.place() {
            let values = self.header.values.entry(key.clone()).or_default();
            if !is_in_list {
                values.clear();
                self.header.nested.remove(&key);
            }
            values.push(text.to_owned());
        } else if let Some(map) = self.open.last_mut() {
            let key = text.to_lowercase();
            map.next = Some(match map.key.as_str() {
                "" => key,
                outer => format!("{outer}.{key}"),
            });
        }
    }

    fn open(&mut self, is_map: bool) {
        // A key that is a map or a list names nothing.
        let Some((key, is_in_list)) = self.place().or_else(|| {
            self.open.last_mut()?.next = Some(String::new());
            Some((String::new(), false))
        }) else {
            return;
        };
        if !is_in_list && !key.is_empty() {
            self.header.values.insert(key.clone(), Vec::new());
        }
        if !is_map || !is_in_list {
            self.header.nested.insert(key.clone(), if is_map { "a map" } else { "a list" });
        }
        self.open.push(Open { key, is_in_list: is_in_list || !is_map, is_map, next: None });
    }
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
        assert_eq!(header.text(&["description"]).as_deref(), Some("with: a colon"));
        assert_eq!(header.text(&["type", "metadata.type"]).as_deref(), Some("feedback"));
        assert_eq!(header.list(&["tags"]), ["one", "two, too"]);
        assert_eq!(header.list(&["files"]), ["a.rs", "b, c.rs"]);
        assert_eq!(header.text(&["why"]).as_deref(), Some("two\nlines"));
        assert_eq!(header.list(&["verified.by"]), ["human:ana"]);
        let (header, _) = split(
            "---\nverified: [{by: human:ana, at: 2026-01-01}, {by: \"human:x\"}]\ngenerated: {by: claude, at: 2026-02-02}\n\
             facts:\n- \"so: \\\"it\\\" is\\nso\"\n- 'don''t: x'\nlist: [\"a\\\"b, c\", d]\n---\n",
        );
        assert_eq!(header.list(&["verified.by"]), ["human:ana", "human:x"]);
        assert_eq!(header.text(&["generated.at"]).as_deref(), Some("2026-02-02"));
        assert_eq!(header.list(&["facts"]), ["so: \"it\" is\nso", "don't: x"]);
        assert_eq!(header.list(&["list"]), ["a\"b, c", "d"]);
        assert_eq!(text, "\nText\n---\nmore\n");
        let (header, _) = split("---\nverified:\n- {by: 'human:ana', at: '2026-01-01'}\n---\n");
        assert_eq!(header.list(&["verified.by"]), ["human:ana"]);
    }

    #[test]
    fn a_value_that_is_no_text_is_told_from_one_that_is_missing() {
        let (header, text) =
            split("--- \nx: &it y\nstatus: *it\nmap: {a: b}\nlist: [a]\n<<: *it\nnone:\n---\nText");
        assert_eq!(text, "Text");
        let nested = ["x", "status", "map", "list", "<<", "none"].map(|key| header.nested(key));
        let alias = Some("an alias");
        assert_eq!(nested, [None, alias, Some("a map"), Some("a list"), alias, None]);
    }

    #[test]
    fn the_escapes_of_yaml_are_read() {
        for (written, meant) in [
            (r#""\e[31mred\u202E\x41\n\_x""#, "\u{1b}[31mred\u{202e}A\n\u{a0}x"),
            (r#""\U0001F600 \ud83d\ude00 \"q\" a\/b""#, "😀 😀 \"q\" a/b"),
            // A text with escapes that YAML does not know is kept.
            (r#""C:\src \q \xZZ \ud83d \u12""#, r"C:\src \q \xZZ \ud83d \u12"),
            (r#""\é \""#, "\\é \\"),
        ] {
            let note = format!("---\nx: {written}\n---\n");
            assert_eq!(split(&note).0.text(&["x"]).as_deref(), Some(meant), "{written}");
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
