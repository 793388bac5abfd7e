//! Rewrites a YAML file: entries of a top-level mapping, each as lines of its own. Every other line
//! stays.
//!
//! The code understands only the usual style: a block mapping, with an entry on one or more lines.
//! It parses the result and compares it with what was intended, so it rejects an unusual style
//! instead of damaging it.

use serde_json::Value;

use super::{Members, members};

const INDENT: usize = 2;

pub fn read(text: &str) -> Result<Value, String> {
    let in_our_words = |error: serde_saphyr::Error| match error.without_snippet().to_string() {
        words if words.contains("from_str_multiple") => {
            "it holds more than one YAML document, divided by `---`".to_owned()
        }
        words => words,
    };
    match serde_saphyr::from_str(text).map_err(in_our_words)? {
        Value::Null => Ok(Value::Object(Members::new())),
        top @ Value::Object(_) => Ok(top),
        _ => Err("it is not a mapping".to_owned()),
    }
}

/// Changes the settings of a text from `old` to `new`: entries of sections.
pub fn rewrite(text: &str, old: &Members, new: &Members) -> Result<String, String> {
    let mut lines = YamlLines(text.split_inclusive('\n').map(str::to_owned).collect());
    let last = lines.0.last().cloned().unwrap_or_default();
    if let Some(line) = lines.0.last_mut().filter(|line| !line.ends_with('\n')) {
        line.push('\n');
    }
    let sections = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    for section in sections.filter(|section| old.get(*section) != new.get(*section)) {
        let entries = |top: &Members| top.get(section).map(members).unwrap_or_default();
        let (before, after) = (entries(old), entries(new));
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            lines.take(section, name)?;
        }
        for (name, entry) in after {
            if before.get(&name) != Some(&entry) {
                let entry = entry.as_object().ok_or_else(|| unusual_style(section))?;
                lines.put(section, &name, entry)?;
            }
        }
        if !new.contains_key(section) {
            lines.0.retain(|line| key_of(line, 0).as_ref() != Some(section));
        }
    }
    let mut text = lines.0.concat();
    if !last.is_empty() && !last.ends_with('\n') && text.ends_with(&format!("{last}\n")) {
        text.pop();
    }
    // An empty mapping counts as missing.
    if full(members(&read(&text)?)) == full(new.clone()) {
        Ok(text)
    } else {
        Err("it is not in the usual style, one entry per line".to_owned())
    }
}

pub fn is_empty(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty())
}

fn full(mut top: Members) -> Members {
    top.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|it| !it.is_empty()));
    top
}

fn unusual_style(section: &str) -> String {
    format!("`{section}` is not in the usual style, one entry per line")
}

struct YamlLines(Vec<String>);

type Span = std::ops::Range<usize>;

impl YamlLines {
    fn put(&mut self, section: &str, name: &str, entry: &Members) -> Result<(), String> {
        let Some(body) = self.section(section)? else {
            self.0.push(format!("{section}:\n"));
            self.0.extend(block_style(name, entry, INDENT));
            return Ok(());
        };
        let indent = self.indent_in(&body).unwrap_or(INDENT);
        let known = self.entry(&body, indent, name);
        let end = self.end_of_content(&body);
        let mut lines = block_style(name, entry, indent);
        let replaced = match known {
            Some(known) => {
                // The line with the name may have a comment.
                lines.remove(0);
                known.start + 1..known.end
            }
            None => end..end,
        };
        self.0.splice(replaced, lines);
        Ok(())
    }

    fn take(&mut self, section: &str, name: &str) -> Result<(), String> {
        let body = self.section(section)?;
        let known = body.and_then(|body| self.entry(&body, self.indent_in(&body)?, name));
        self.0.drain(known.ok_or_else(|| unusual_style(section))?);
        Ok(())
    }

    fn section(&mut self, section: &str) -> Result<Option<Span>, String> {
        let starts = |line: &String| key_of(line, 0).as_deref() == Some(section);
        let Some(at) = self.0.iter().position(starts) else {
            return Ok(None);
        };
        let line = self.0.get(at).and_then(|line| line.split_once(':'));
        let rest = line.map_or("", |(_, rest)| rest).trim();
        if let Some(after) = rest.strip_prefix("{}") {
            let after = after.trim();
            let comment = if after.is_empty() { "" } else { " " };
            self.0.splice(at..=at, [format!("{section}:{comment}{after}\n")]);
        } else if !rest.is_empty() && !rest.starts_with('#') {
            return Err(unusual_style(section));
        }
        let mut after = self.0.iter().skip(at + 1);
        let length = after.position(|line| indent_of(line) == Some(0));
        Ok(Some(at + 1..length.map_or(self.0.len(), |length| at + 1 + length)))
    }

    fn indent_in(&self, span: &Span) -> Option<usize> {
        let lines = self.0.get(span.clone())?;
        lines.iter().find_map(|line| indent_of(line))
    }

    fn end_of_content(&self, span: &Span) -> usize {
        let lines = self.0.get(span.clone()).unwrap_or_default();
        let last = lines.iter().rposition(|line| indent_of(line).is_some());
        last.map_or(span.start, |last| span.start + last + 1)
    }

    /// The lines of an entry: the one that names it, and all lines indented deeper.
    fn entry(&self, body: &Span, indent: usize, name: &str) -> Option<Span> {
        let lines = self.0.get(body.start..)?;
        let is_entry = |line: &String| key_of(line, indent).as_deref() == Some(name);
        let at = body.start + lines.iter().position(is_entry)?;
        let after = self.0.get(at + 1..)?.iter();
        let is_over = |line: &String| indent_of(line).is_some_and(|deep| deep <= indent);
        let length = after.take_while(|line| !is_over(line)).count();
        Some(at..self.end_of_content(&(at..at + 1 + length)))
    }
}

/// The indentation of a line; `None` if it is empty or a comment.
fn indent_of(line: &str) -> Option<usize> {
    let rest = line.trim_start_matches(' ');
    let has_content = !rest.trim().is_empty() && !rest.starts_with('#');
    has_content.then(|| line.len() - rest.len())
}

/// The key at the start of a line, if the line has this indentation.
fn key_of(line: &str, indent: usize) -> Option<String> {
    if indent_of(line) != Some(indent) {
        return None;
    }
    let (key, rest) = line.trim_start_matches(' ').split_once(':')?;
    let ends = rest.starts_with([' ', '\n', '\r', '\t']) || rest.is_empty();
    let key = key.trim_end().trim_matches(['"', '\'']);
    (ends && !key.is_empty() && !key.starts_with('-')).then(|| key.to_owned())
}

/// The lines of an entry. A value on one line of JSON is YAML.
fn block_style(name: &str, entry: &Members, indent: usize) -> Vec<String> {
    let spaces = " ".repeat(indent * 2);
    let members = entry.iter().map(|(key, value)| format!("{spaces}{key}: {value}\n"));
    let head = format!("{}{name}:\n", " ".repeat(indent));
    [head].into_iter().chain(members).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Part, parts};
    use super::*;
    use serde_json::json;

    fn wanted() -> Value {
        json!({ "type": "stdio", "cmd": "/a b/ack-memory", "args": ["--root", "/m", "serve"], "enabled": true })
    }

    fn add(text: &str) -> Result<String, String> {
        let old = read(text)?;
        let mut new = old.clone();
        let part = Part::Member { path: vec!["extensions"], name: "ack-memory", value: wanted() };
        parts::add(&mut new, &[part])?;
        rewrite(text, old.as_object().unwrap(), new.as_object().unwrap())
    }

    fn remove(text: &str) -> Result<String, String> {
        let old = read(text)?;
        let mut new = old.clone();
        if let Some(Value::Object(entries)) = new.get_mut("extensions") {
            entries.remove("ack-memory");
        }
        rewrite(text, old.as_object().unwrap(), new.as_object().unwrap())
    }

    const ENTRY: &str = "  ack-memory:\n    type: \"stdio\"\n    cmd: \"/a b/ack-memory\"\n    args: [\"--root\",\"/m\",\"serve\"]\n    enabled: true\n";

    #[track_caller]
    fn check(before: &str, after: &str) {
        let put = add(before).unwrap();
        assert_eq!(put, after);
        assert_eq!(add(&put).unwrap(), put, "twice changes nothing");
        let without = remove(&put).unwrap();
        let all = |text: &str| full(members(&read(text).unwrap()));
        assert_eq!(all(&without), all(&remove(before).unwrap()));
    }

    #[test]
    fn an_entry_is_added_and_every_other_line_stays() {
        check("", &format!("extensions:\n{ENTRY}"));
        check("GOOSE_MODEL: x # mine", &format!("GOOSE_MODEL: x # mine\nextensions:\n{ENTRY}"));
        check("extensions: {} # none\na: 1\n", &format!("extensions: # none\n{ENTRY}a: 1\n"));
        check(
            "extensions:\n  # the first\n  developer:\n    type: builtin\n    args:\n    - a\n\n# end\nlast: |\n  x:\n    y\n",
            &format!(
                "extensions:\n  # the first\n  developer:\n    type: builtin\n    args:\n    - a\n{ENTRY}\n# end\nlast: |\n  x:\n    y\n"
            ),
        );
        let wide = ENTRY.replace("  ", "    ");
        check(
            "extensions:\n    other:\n        cmd: x\n",
            &format!("extensions:\n    other:\n        cmd: x\n{wide}"),
        );
    }

    #[test]
    fn our_entry_is_changed_in_place_and_keeps_added_keys() {
        check(
            "extensions:\n  \"ack-memory\": # mine\n    uri: http://x\n    type: sse\n    args:\n    - old\n    # why\n    enabled: false\n    timeout: 5\n  z:\n    cmd: z\n",
            "extensions:\n  \"ack-memory\": # mine\n    type: \"stdio\"\n    args: [\"--root\",\"/m\",\"serve\"]\n    enabled: false\n    timeout: 5\n    cmd: \"/a b/ack-memory\"\n  z:\n    cmd: z\n",
        );
    }

    #[test]
    fn an_unusual_style_is_refused() {
        for text in [
            "extensions: {a: {cmd: x}}\n",
            "extensions:\n  ack-memory: {cmd: x}\n",
            "extensions: [a]\n",
            "extensions: 5\n",
            "- a\n",
            "a: [\n",
            "---\na: 1\n---\nb: 2\n",
            "a: 1\n...\n",
            "a: \"x\nextensions:\n  ack-memory:\n    cmd: y\"\n",
        ] {
            assert!(add(text).is_err(), "{text}");
        }
        for text in ["extensions: {ack-memory: {cmd: x}}\n", "a: [\n"] {
            assert!(remove(text).is_err(), "{text}");
        }
    }
}
