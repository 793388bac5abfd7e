//! Package runners: `npx`, `uvx` and `pipx run` start a program from a cache folder, which may be
//! emptied at any time. A client's configuration must name the runner instead of that folder.

use std::path::Path;

use super::NAME;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramOrigin {
    Installed,
    Runner(Runner),
    /// A cache, and it is not known which command finds the same program again.
    UnknownCache,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runner {
    pub program: &'static str,
    pub arguments: &'static [&'static str],
    /// The command as a person types it, without the arguments of the program.
    pub typed: &'static str,
    pub install: &'static str,
}

const NPX: Runner = Runner {
    program: "npx",
    arguments: &["-y", NAME],
    typed: "npx ack-memory",
    install: "npm install --global ack-memory",
};
const UVX: Runner = Runner {
    program: "uvx",
    arguments: &[NAME],
    typed: "uvx ack-memory",
    install: "uv tool install ack-memory",
};
pub const PIPX: Runner = Runner {
    program: "pipx",
    arguments: &["run", NAME],
    typed: "pipx run ack-memory",
    install: "pipx install ack-memory",
};

impl ProgramOrigin {
    pub fn of(binary: &Path) -> Self {
        let text = binary.to_string_lossy();
        let parts: Vec<&str> = text.split('/').collect();
        if parts.contains(&"_npx") {
            return Self::Runner(NPX);
        }
        if let Some(archive) = parts.iter().position(|part| is_archive_of_uv(part)) {
            // Anything else in the archive is part of an environment that links to it.
            let is_environment = parts.get(archive + 2) == Some(&"bin");
            return if is_environment { Self::Runner(UVX) } else { Self::UnknownCache };
        }
        if is_pipx_run(&parts) {
            return Self::Runner(PIPX);
        }
        // `pnpm dlx`, `yarn dlx` and `bunx`.
        let is_other =
            |part: &&str| *part == "dlx" || part.starts_with("dlx-") || part.starts_with("bunx-");
        if parts.contains(&"node_modules") && parts.iter().any(is_other) {
            Self::UnknownCache
        } else {
            Self::Installed
        }
    }
}

/// `archive-v0`, `environments-v2`.
fn is_archive_of_uv(part: &str) -> bool {
    let version = part.strip_prefix("archive-v").or_else(|| part.strip_prefix("environments-v"));
    version.is_some_and(|version| version.parse::<u32>().is_ok())
}

/// Whether a path is of `pipx run`: `…/pipx/<hash>/bin/ack-memory`, or `.cache/<hash>` in the
/// folder of an older version.
fn is_pipx_run(parts: &[&str]) -> bool {
    let [before @ .., hash, "bin", _] = parts else {
        return false;
    };
    let is_hash = hash.len() >= 12 && hash.chars().all(|letter| letter.is_ascii_hexdigit());
    is_hash && (before.last() == Some(&".cache") || before.contains(&"pipx"))
}

/// The words of a command after the package runner that they begin with, if any: from
/// `npx -y ack-memory serve`, `ack-memory serve`. Without a runner, all of them.
pub fn without_runner(words: &[String]) -> &[String] {
    let Some((first, mut after)) = words.split_first() else {
        return words;
    };
    let runners = ["npx", "uvx", "pipx", "pnpm", "pnpx", "bunx", "yarn", "npm", "uv", "bun"];
    if !runners.contains(&first.rsplit('/').next().unwrap_or_default()) {
        return words;
    }
    while let [word, more @ ..] = after {
        after = match (word.as_str(), more) {
            ("-p" | "--package" | "--from" | "--spec", [_, more @ ..]) => more,
            ("run" | "dlx" | "exec" | "x" | "tool", _) => more,
            (flag, _) if flag.starts_with('-') => more,
            _ => break,
        };
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_started_the_program() {
        use ProgramOrigin::{Installed, Runner, UnknownCache};
        let installed = "/usr/bin/ack-memory /src/archive-v/bin/ack-memory ack-memory
            /home/a/.local/share/pipx/venvs/ack-memory/bin/ack-memory /bin/ack-memory
            /home/a/.local/share/uv/tools/ack-memory/bin/ack-memory /home/a/dlx/bin/ack-memory
            /usr/lib/node_modules/ack-memory/bin/ack-memory";
        let npx = "/home/a/.npm/_npx/0e6d/node_modules/x/bin/ack-memory";
        let uvx = "/home/a/.cache/uv/archive-v0/8Xb7/bin/ack-memory";
        let pipx = "/home/a/.local/pipx/.cache/b487b696446c1f4/bin/ack-memory
            /home/a/.cache/pipx/b487b696446c1f4/bin/ack-memory";
        let unknown = "/home/a/.cache/uv/archive-v0/8Xb7/x.data/ack-memory
            /home/a/.cache/pnpm/dlx/fd2/node_modules/x/bin/ack-memory
            /tmp/bunx-1000-ack-memory@latest/node_modules/x/bin/ack-memory
            /tmp/xfs-1/dlx-12/node_modules/x/bin/ack-memory";
        let check = |paths: &str, origin| {
            for path in paths.split_whitespace() {
                assert_eq!(ProgramOrigin::of(Path::new(path)), origin, "{path}");
            }
        };
        check(installed, Installed);
        check(npx, Runner(NPX));
        check(uvx, Runner(UVX));
        check(pipx, Runner(PIPX));
        check(unknown, UnknownCache);
    }

    #[test]
    fn the_words_of_a_runner_are_left_out() {
        for (command, rest) in [
            ("npx -y ack-memory serve", "ack-memory serve"),
            ("/usr/bin/npx --yes ack-memory@0.2 serve", "ack-memory@0.2 serve"),
            ("uvx --from ack-memory ack-memory serve", "ack-memory serve"),
            ("pipx run ack-memory serve", "ack-memory serve"),
            ("uv tool run ack-memory serve", "ack-memory serve"),
            ("ack-memory serve", "ack-memory serve"),
            ("docker run ack-memory serve", "docker run ack-memory serve"),
            ("npx", ""),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(without_runner(&words).join(" "), rest, "{command}");
        }
    }
}
