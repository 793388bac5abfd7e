//! Paths as people and programs write them, and patterns for them.
//!
//! A memory's files come from many programs: with line numbers (`src/a.rs:10-20`, `#L10`), with
//! backslashes, with `./`, absolute, as folders (`migrations/`) and as globs (`migrations/*.sql`).

use std::borrow::Cow;

use ack_api::memory::lower_case;
use globset::{GlobBuilder, GlobMatcher};

const GLOB_CHARS: [char; 3] = ['*', '?', '['];

/// A path in normal form: `/` between components, without a leading `./` and without line numbers.
/// A folder keeps its last `/`.
pub fn normalize(path: &str) -> Cow<'_, str> {
    let path = path.trim();
    let path = path.strip_prefix("file://").unwrap_or(path);
    let mut path = without_lines(path);
    while let Some(rest) = path.strip_prefix("./").or_else(|| path.strip_prefix(".\\")) {
        path = rest.trim_start_matches(['/', '\\']);
    }
    if path.contains('\\') {
        Cow::Owned(path.replace("\\\\", "/").replace('\\', "/"))
    } else {
        Cow::Borrowed(path)
    }
}

/// A path in the form in which paths are compared: also in lower case, with composed letters.
pub fn folded(path: &str) -> String {
    lower_case(&normalize(path))
}

/// Strips line numbers from the end of a path: `:10`, `:10-20`, `:10:5`, `#L10`, `#L10-L20`.
fn without_lines(path: &str) -> &str {
    let mut path = path;
    while let Some(at) = path.rfind([':', '#']) {
        let (before, lines) = path.split_at(at);
        let mut numbers = lines.trim_start_matches([':', '#']).splitn(2, ['-', '–']);
        let is_number = |text: &str| {
            let digits = text.trim_start_matches(['L', 'l']);
            !digits.is_empty()
                && text.len() - digits.len() <= 1
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        if before.is_empty() || !numbers.all(is_number) {
            break;
        }
        path = before;
    }
    path
}

pub fn is_glob(path: &str) -> bool {
    path.contains(GLOB_CHARS)
}

/// Whether a glob matches a path. `*` stays within a component; a glob without `/` matches files
/// with that name in any folder.
pub fn glob_matches(glob: &str, path: &str) -> bool {
    if glob.contains('/') {
        return fast_glob::glob_match(glob, path);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    fast_glob::glob_match(glob, name)
}

/// An entry of `files`: a part of a path, or a glob.
#[derive(Debug, Clone)]
pub struct FilePattern {
    /// Lower case. It matches anywhere in the path.
    part: String,
    glob: Option<Box<GlobMatcher>>,
}

impl FilePattern {
    /// Case does not matter. The error says what is wrong with a glob.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = normalize(text);
        let glob = is_glob(&text).then(|| {
            let prefix = if text.starts_with(['/', '*']) { "" } else { "**/" };
            let glob = GlobBuilder::new(&format!("{prefix}{text}")).case_insensitive(true).build();
            glob.map(|glob| Box::new(glob.compile_matcher()))
        });
        let glob = glob.transpose().map_err(|error| error.to_string())?;
        Ok(Self { part: lower_case(&text), glob })
    }

    /// Whether the entry means a file of a memory, which may be a folder or a glob that contains it.
    pub fn matches(&self, file: &str) -> bool {
        let path = normalize(file);
        // A path may itself contain what looks like a glob (`app/[id]/page.tsx`).
        if self.glob.as_ref().is_some_and(|glob| glob.is_match(&*path)) {
            return true;
        }
        let path = lower_case(&path);
        path.contains(&self.part) || (self.glob.is_none() && self.is_covered_by(&path))
    }

    fn is_covered_by(&self, path: &str) -> bool {
        let part = self.part.as_str();
        if path.ends_with('/') && path.len() > 1 {
            let after = part.find(path).map(|at| part.split_at(at).0);
            return after.is_some_and(|before| before.is_empty() || before.ends_with('/'));
        }
        if is_glob(path) {
            let is_in_folder = path.contains('/') && glob_matches(&format!("**/{path}"), part);
            return part.contains('.') && (is_in_folder || glob_matches(path, part));
        }
        // A longer way to write the path: absolute, from the folder above, as in a diff of git.
        let before = part.strip_suffix(path).filter(|before| before.ends_with('/'));
        let is_absolute = part.starts_with('/') || part.get(1..3) == Some(":/");
        !path.is_empty() && before.is_some() && (is_absolute || path.contains('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        for (path, expected) in [
            ("src/a.rs", "src/a.rs"),
            (" ./src/a.rs ", "src/a.rs"),
            ("src/a.rs:10", "src/a.rs"),
            ("src/a.rs:10-20", "src/a.rs"),
            ("src/a.rs:10:5", "src/a.rs"),
            ("src/a.rs:L10-L20", "src/a.rs"),
            ("src/a.rs#L10", "src/a.rs"),
            ("src/a.rs#L10-L20", "src/a.rs"),
            ("src\\pay\\a.rs", "src/pay/a.rs"),
            ("C:\\home\\me\\a.rs:7", "C:/home/me/a.rs"),
            (".\\src\\a.rs", "src/a.rs"),
            ("file:///home/me/a.rs", "/home/me/a.rs"),
            ("migrations/", "migrations/"),
            ("docs/c#", "docs/c#"),
            ("a:b.rs", "a:b.rs"),
            ("10", "10"),
            (":10", ":10"),
        ] {
            assert_eq!(normalize(path), expected, "{path}");
        }
    }

    #[track_caller]
    fn check(pattern: &str, file: &str, expected: bool) {
        let pattern = FilePattern::parse(pattern).unwrap();
        assert_eq!(pattern.matches(file), expected, "{pattern:?} {file}");
    }

    #[test]
    fn a_pattern_matches_every_spelling_of_a_path() {
        check("src/pay", "src\\pay\\Payout.rs:10-20", true);
        check("./src/pay/payout.rs:7", "/home/kim/x/src/pay/payout.rs", true);
        check("src\\pay\\payout.rs", "src/pay/payout.rs#L3", true);
        check("*.sql", "migrations/004.sql", true);
        check("migrations/004.sql", "migrations/", true);
        check("db/migrations/004.sql", "migrations/", true);
        check("old_migrations/004.sql", "migrations/", false);
        check("migrations/004.sql", "migrations/*.sql", true);
        check("migrations/deep/004.sql", "migrations/*.sql", false);
        check("migrations/deep/004.sql", "migrations/**/*.sql", true);
        check("src/a.rs", "src/b.rs", false);
        check("/home/kim/x/src/a.rs", "src/a.rs:7", true);
        check("/home/kim/x/Cargo.toml", "Cargo.toml", true);
        check("C:\\home\\x\\a.rs", "a.rs", true);
        check("/home/kim/x/db/migrations/004.sql", "migrations/*.sql", true);
        check("x/src/a.rs", "src/a.rs", true);
        check("b/src/a.rs", "src/a.rs", true);
        check("/home/kim/x/mysrc/a.rs", "src/a.rs", false);
        check("crates/x/Cargo.toml", "Cargo.toml", false);
        check("src/a.rs", "", false);
        check("src/", "", false);
        check("src/a.rs", "/", false);
        check("app/[id]/page.tsx", "app/[id]/page.tsx", true);
    }
}
