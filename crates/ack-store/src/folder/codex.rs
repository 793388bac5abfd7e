//! The summaries of Codex's rollouts.

/// The lines that Codex writes above a summary.
const HEADER_KEYS: [&str; 6] =
    ["thread_id", "session_id", "updated_at", "rollout_path", "cwd", "git_branch"];

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    pub session: Option<String>,
    pub updated: Option<String>,
    /// The name of the folder in which it ran.
    pub project: Option<String>,
}

pub fn split(summary: &str) -> (Rollout, &str) {
    let mut rollout = Rollout::default();
    let mut rest = summary;
    while let Some((key, value, after)) = header_line(rest) {
        let value = Some(value.to_owned()).filter(|value| !value.is_empty());
        match key {
            "thread_id" | "session_id" => rollout.session = value,
            "updated_at" => rollout.updated = value,
            "cwd" => rollout.project = value.as_deref().and_then(last_part),
            _ => {}
        }
        rest = after;
    }
    (rollout, rest)
}

fn header_line(text: &str) -> Option<(&str, &str, &str)> {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    let (key, value) = line.split_once(':')?;
    HEADER_KEYS.contains(&key).then_some((key, value.trim(), after))
}

fn last_part(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).find(|part| !part.is_empty() && !part.ends_with(':'))?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_summary_ends_where_its_text_begins() {
        let (rollout, text) = split(
            "thread_id: 0194\nupdated_at: 2026-02-11T15:35:19+00:00\nrollout_path: /tmp/r.jsonl\n\
             cwd: C:\\src\\ledger-api\\\ngit_branch: main\n\n# Import\ncwd: here it is text\n",
        );
        assert_eq!(
            rollout,
            Rollout {
                session: Some("0194".to_owned()),
                updated: Some("2026-02-11T15:35:19+00:00".to_owned()),
                project: Some("ledger-api".to_owned()),
            }
        );
        assert_eq!(text, "\n# Import\ncwd: here it is text\n");
        let whole = "# Only text\nthread_id: 1\n";
        assert_eq!(split(whole), (Rollout::default(), whole));
        assert_eq!(split("cwd: /\n").0.project, None);
    }
}
