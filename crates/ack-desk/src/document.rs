//! A Markdown file whose front matter is changed key by key. Everything else stays byte for byte
//! and in its order.

use ack_store::folder::front_matter::{Header, split};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    entries: Vec<Entry>,
    pub body: String,
    pub has_header: bool,
    is_crlf: bool,
}

/// A top-level key of the front matter, with all lines of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// In lower case; empty for what comes before the first key.
    key: String,
    raw: String,
    /// The number of its first line in the file, from 1.
    line: usize,
}

impl Document {
    /// Parses a file. Without complete front matter, the whole text is the body.
    pub fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let as_body = || Self { body: text.to_owned(), ..Self::default() };
        let Some((first, rest)) = text.split_once('\n').filter(|(it, _)| it.trim_end() == "---")
        else {
            return as_body();
        };
        let is_crlf = first.ends_with('\r');
        let mut document = Self { has_header: true, is_crlf, ..Self::default() };
        let mut position = 0;
        for (number, line) in (2..).zip(rest.split_inclusive('\n')) {
            position += line.len();
            if ["---", "..."].contains(&line.trim_end()) {
                document.body = rest.get(position..).unwrap_or_default().to_owned();
                return document;
            }
            match (key_of(line), document.entries.last_mut()) {
                (None, Some(last)) => last.raw.push_str(line),
                (key, _) => document.entries.push(Entry {
                    key: key.unwrap_or_default(),
                    raw: line.to_owned(),
                    line: number,
                }),
            }
        }
        as_body()
    }

    pub fn keys(&self) -> impl Iterator<Item = (&str, usize)> {
        let entries = self.entries.iter().filter(|entry| !entry.key.is_empty());
        entries.map(|entry| (entry.key.as_str(), entry.line))
    }

    /// The original lines between the `---` markers.
    pub fn front_matter(&self) -> String {
        self.entries.iter().map(|entry| entry.raw.as_str()).collect()
    }

    pub fn header(&self) -> Header {
        split(&format!("---\n{}---\n", self.front_matter())).0
    }

    pub fn has(&self, keys: &[&str]) -> bool {
        self.keys().any(|(key, _)| keys.contains(&key))
    }

    /// Sets the value of the first of these keys that exists, or adds the first key. `value` is
    /// written after the colon.
    pub fn set(&mut self, keys: &[&str], value: &str) {
        let first = keys.first().copied().unwrap_or_default();
        let line_end = self.line_end();
        match self.entries.iter_mut().find(|entry| keys.contains(&entry.key.as_str())) {
            Some(entry) => {
                let name = entry.raw.split(':').next().unwrap_or(first).to_owned();
                // Comments below a value belong to what follows.
                let comment_lines: Vec<&str> = entry.raw.split_inclusive('\n').skip(1).collect();
                let comments = comment_lines
                    .iter()
                    .rev()
                    .take_while(|line| line.starts_with('#') || line.trim().is_empty())
                    .count();
                let below = comment_lines.get(comment_lines.len() - comments..).unwrap_or_default();
                entry.raw = key_line(&name, value, line_end) + &below.concat();
            }
            None => self.entries.push(Entry {
                key: first.to_lowercase(),
                raw: key_line(first, value, line_end),
                line: 0,
            }),
        }
        self.has_header = true;
    }

    pub fn remove(&mut self, keys: &[&str]) {
        self.entries.retain(|entry| !keys.contains(&entry.key.as_str()));
    }

    /// Copies the keys of another file for which `is_known` is false.
    pub fn adopt(&mut self, other: &Self, is_known: impl Fn(&str) -> bool) {
        for theirs in other.entries.iter().filter(|entry| !is_known(&entry.key)) {
            let ours = self.entries.iter_mut().find(|ours| ours.key == theirs.key);
            match ours {
                Some(ours) => ours.raw.clone_from(&theirs.raw),
                None => self.entries.push(theirs.clone()),
            }
        }
    }

    pub fn text(&self) -> String {
        let line_end = self.line_end();
        match self.has_header {
            true => format!("---{line_end}{}---{line_end}{}", self.front_matter(), self.body),
            false => self.body.clone(),
        }
    }

    const fn line_end(&self) -> &'static str {
        if self.is_crlf { "\r\n" } else { "\n" }
    }
}

fn key_line(name: &str, value: &str, line_end: &str) -> String {
    let space = if value.starts_with('\n') { "" } else { " " };
    format!("{name}:{space}{value}\n").replace('\n', line_end)
}

fn key_of(line: &str) -> Option<String> {
    if line.starts_with([' ', '\t', '#', '-']) {
        return None;
    }
    let (key, rest) = line.split_once(':')?;
    let is_key =
        !key.trim().is_empty() && (rest.trim().is_empty() || rest.starts_with([' ', '\t']));
    is_key.then(|| key.trim().trim_matches(['"', '\'']).to_lowercase())
}

/// A string as YAML, quoted if it could be read as something else.
pub fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_alphabetic())
        && !text.ends_with([' ', ':'])
        && text.chars().all(|c| c.is_alphanumeric() || " _-./+@()=,'%".contains(c))
        && !["true", "false", "yes", "no", "on", "off", "null", "nan", "y", "n"]
            .contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { serde_json::to_string(text).unwrap_or_default() }
}

pub fn list(texts: &[String]) -> String {
    texts.iter().map(|text| format!("\n- {}", scalar(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_keys_stay_byte_for_byte() {
        let text = "---\n# ours\ntitle:   \"A: b\"   # why\nowner: team-a\ntags:\n- one\n- two\n# about the next\nextra:\n  deep: 1\n---\n\n# A\n";
        let mut document = Document::parse(text);
        assert_eq!(document.text(), text);
        assert_eq!(document.header().text(&["owner"]).as_deref(), Some("team-a"));
        document.set(&["tags", "keywords"], &list(&["three".to_owned()]));
        document.set(&["type"], "gotcha");
        assert_eq!(
            document.text(),
            "---\n# ours\ntitle:   \"A: b\"   # why\nowner: team-a\ntags:\n- three\n# about the next\nextra:\n  deep: 1\ntype: gotcha\n---\n\n# A\n"
        );
        let windows = text.replace('\n', "\r\n");
        let mut document = Document::parse(&windows);
        assert_eq!(document.text(), windows);
        document.set(&["id"], "x");
        assert!(document.text().contains("\r\nid: x\r\n---\r\n"));
        for source in ["", "text", "---\nopen: 1\n", "# --- \n"] {
            assert_eq!(Document::parse(source).text(), source);
        }
    }

    #[test]
    fn written_values_round_trip() {
        let short = [
            "plain", "a: b", "- x", "#x", "true", "12", "\"q\"", "it's", "a\nb", "x #y", "[a]",
            "ä ö", "{a}", "null", "*x", "a\\b", "tab\tx", "~", "ends:", "'q'", "",
        ];
        for text in short.into_iter().chain(["2026-01-01"]) {
            let texts = [text.to_owned(), "other".to_owned()];
            let yaml = format!("---\none: {}\nmany:{}\n---\n", scalar(text), list(&texts));
            let (header, _) = split(&yaml);
            assert_eq!(header.text(&["one"]).unwrap_or_default(), text, "{yaml}");
            if !text.is_empty() {
                assert_eq!(header.list(&["many"]), texts, "{yaml}");
            }
        }
    }
}
