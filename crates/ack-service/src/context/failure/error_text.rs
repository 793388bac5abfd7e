//! What an output says about why a command failed: its lines that name an error, without the parts
//! that are different on every machine.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// The most lines that are kept: the first ones name the error, the last ones its outcome.
const MAX_FIRST_LINES: usize = 5;
const MAX_LAST_LINES: usize = 2;
/// With fewer errors, lines that tell of a failure in passing are kept too.
const ENOUGH_LINES: usize = 2;
const MAX_OTHER_LINES: usize = 4;
const MAX_LINE_BYTES: usize = 300;
/// The most bytes of an output that are read, at its beginning and at its end.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

// Every hook compiles these anew, and most of that time goes into Unicode's tables of letters and
// digits, so the patterns avoid them where they can.

/// A line that is an error: it begins with the word, or names the class or the code of one.
const ERROR: &str = r"(?x-u)
    ^ (?u: [^0-9A-Za-z_]*) (?: [\w.@/-]+ [:\ ]\s* )? (?: line\ \d+: \s* )? (?i: error|err!|fatal|panic|failed|failure|conflict|e:) \b
    | ^E\s{2,} | \bpanicked\b
    | [a-z](?: Error|Exception)\b | \b[A-Z]{3,}_[A-Z_]{3,}\b | \bE[A-Z]{4,}\b | \bTS\d{4}\b
    | ^[\w./-]+: \s ";
const FAILURE: &str = r"(?xi-u) \b (?:
      error|err!|fatal|exception|panic|denied|refused|refusing|rejected|killed|aborted|abort
      |segmentation|cannot|can't|could\ not|couldn't|unable|failed|failure|fails|not\ found|no\ such
      |undefined|unresolved|unknown|unrecognized|invalid|illegal|unsupported|incompatible|conflicts?
      |mismatch|missing|expired|timed\ out|timeout|in\ use|already\ exists|out\ of\ memory|no\ space
      |too\ many|too\ long|not\ permitted|not\ allowed|forbidden|unauthorized|exceeded
      |unexpected\ (?:token|end|eof|argument|identifier|keyword|indent|symbol|character)
      |deadlock|locked|does\ not|doesn't|did\ not|is\ not|isn't|externally-managed
      |overflow|violates|dubious|unreachable|diverged|divergent|oom )\b";
/// Lines that stand under errors of every kind.
const NOTHING: &str = r"(?xi-u) \bwarn(?:ing)?s?\b | \bdeprecat | complete\ log\ of\ this\ run
    | ^Traceback\ | for\ more\ information | could\ not\ compile | aborting\ due
    | ^npm\ error\ (?: errno|syscall|path|dest )\b
    | test\ suites?: | ^tests?: | short\ test\ summary | ^=+\ | \ [=-]{4,}$ | ^at\ | ^(?: plugins|platform|rootdir|collected|configfile ):?\ ";
const ESCAPES: &str = r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)";
/// A path with at least two parts, of which the last one says what it is.
const PATH: &str = r"(?x) (?:(?-u:\b)[A-Za-z]:)?
    [~.@+0-9A-Z_a-z\u{80}-\u{10FFFF}-]* (?: / [~.@+0-9A-Z_a-z\u{80}-\u{10FFFF}-]+ ){2,} /?";
/// Addresses, times, hashes and numbers that another run does not repeat.
const NOISE: &str = r"(?x-u) 0x[0-9a-fA-F]{4,} | \b[0-9a-f]{12,}\b | \b\d{4}-\d\d-\d\d[T\ ]?(?u:\S*) | \b\d+:\d+:\d+(?u:\S*)
    | (?::\d+){1,2}\b | \b\d+(?:\.\d+)?\s?(?:ms|s|kB|MB|KiB|MiB)\b";

struct Patterns {
    error: Regex,
    failure: Regex,
    nothing: Regex,
    escapes: Regex,
    path: Regex,
    noise: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    Some(Patterns {
        error: Regex::new(ERROR).ok()?,
        failure: Regex::new(FAILURE).ok()?,
        nothing: Regex::new(NOTHING).ok()?,
        escapes: Regex::new(ESCAPES).ok()?,
        path: Regex::new(PATH).ok()?,
        noise: Regex::new(NOISE).ok()?,
    })
});

/// The lines that say what went wrong; if none does, the last ones if the command surely failed.
pub fn lines(output: &str, is_known: bool) -> Vec<String> {
    let Some(patterns) = &*PATTERNS else {
        return Vec::new();
    };
    let output = both_ends(output);
    let output = patterns.escapes.replace_all(&output, "");
    let mut all: Vec<&str> = Vec::new();
    for line in output.lines() {
        // A progress bar draws over itself.
        let line = line.rsplit('\r').map(str::trim).find(|part| !part.is_empty());
        let line = line.unwrap_or_default();
        if line.contains(char::is_alphanumeric) && !all.contains(&line) {
            all.push(line);
        }
    }
    let is_telling =
        |line: &&str| patterns.failure.is_match(line) && !patterns.nothing.is_match(line);
    let (mut named, others): (Vec<&str>, Vec<&str>) =
        all.iter().copied().filter(is_telling).partition(|line| patterns.error.is_match(line));
    if named.len() < ENOUGH_LINES {
        named.extend(others);
    }
    let chosen: Vec<&str> = if named.is_empty() && !is_known {
        Vec::new()
    } else if named.is_empty() {
        all.iter().skip(all.len().saturating_sub(MAX_OTHER_LINES)).copied().collect()
    } else {
        let rest = named.get(MAX_FIRST_LINES..).unwrap_or_default();
        let last = rest.len().saturating_sub(MAX_LAST_LINES);
        named.iter().take(MAX_FIRST_LINES).chain(rest.iter().skip(last)).copied().collect()
    };
    chosen.iter().map(|line| patterns.plain(line)).collect()
}

impl Patterns {
    /// A line without folders and numbers of this run.
    fn plain(&self, line: &str) -> String {
        let line = ack_api::text::cut(line, MAX_LINE_BYTES).0;
        let line = self.path.replace_all(&line, |found: &regex::Captures<'_>| {
            let path = found.get(0).map_or("", |path| path.as_str().trim_end_matches('/'));
            path.rsplit('/').next().unwrap_or(path).to_owned()
        });
        self.noise.replace_all(&line, " ").trim().to_owned()
    }
}

fn both_ends(output: &str) -> Cow<'_, str> {
    if output.len() <= 2 * MAX_OUTPUT_BYTES {
        return Cow::Borrowed(output);
    }
    let (first, _) = output.split_at(output.floor_char_boundary(MAX_OUTPUT_BYTES));
    let (_, last) = output.split_at(output.ceil_char_boundary(output.len() - MAX_OUTPUT_BYTES));
    Cow::Owned(format!("{first}\n{last}"))
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_line_keeps_hosts_and_file_names_without_their_folders() {
        let output = "fatal: cannot read 'https://git.corp.internal:8444/docs/site.git/'\n\
                      error: /home/jür/shop/Cargo.toml is missing since 2026-11-27T10:00:00Z";
        let expected = [
            "fatal: cannot read 'https://git.corp.internal:site.git'",
            "error: Cargo.toml is missing since",
        ];
        assert_eq!(lines(output, true), expected);
    }
}
