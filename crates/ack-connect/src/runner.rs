//! Package runners: `npx`, `uvx` and `pipx run` start a program from a cache folder, which may be
//! emptied at any time. A client's configuration must name the runner instead of that folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{NAME, json};
use ack_sys::files;

/// The largest metadata file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Where a program was started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramOrigin {
    Installed,
    /// The cache of a package runner.
    Runner(Runner),
    /// A cache, and it is not known which command finds the same program again.
    UnknownCache,
}

/// A command that fetches a package if necessary and runs its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// The command: `npx`, `uvx` or `pipx`.
    pub program: &'static str,
    /// Its arguments, up to the package.
    pub arguments: Vec<String>,
    /// The command that installs the package for good.
    pub install: &'static str,
}

impl ProgramOrigin {
    /// Where a program was started from, according to its path and the files next to it.
    pub fn of(binary: &Path) -> Self {
        let text = binary.to_string_lossy();
        let parts: Vec<&str> = text.split('/').collect();
        let at = |is: &dyn Fn(&str) -> bool| parts.iter().position(|part| is(part));
        // The folder that the first `count` parts name.
        let folder = |count: usize| {
            let length = parts.iter().take(count).map(|part| part.len() + 1).sum();
            PathBuf::from(text.get(..length).unwrap_or(&text))
        };
        if let Some(npx) = at(&|part| part == "_npx") {
            return from_npx(&folder(npx + 2));
        }
        if let Some(archive) = at(&|part| is_versioned(part, &["archive-v", "environments-v"])) {
            // Anything else in the archive is part of an environment that links to it.
            let is_environment = parts.get(archive + 2) == Some(&"bin");
            return if is_environment {
                from_environment(&folder(archive + 2), Runner::uvx())
            } else {
                Self::UnknownCache
            };
        }
        if let Some(hash) = pipx_run(&parts) {
            return from_environment(&folder(hash + 1), Runner::pipx());
        }
        // `pnpm dlx`, `yarn dlx` and `bunx`.
        let is_other =
            |part: &str| part == "dlx" || part.starts_with("dlx-") || part.starts_with("bunx-");
        match at(&is_other).filter(|_| parts.contains(&"node_modules")) {
            Some(_) => Self::UnknownCache,
            None => Self::Installed,
        }
    }
}

impl Runner {
    fn npx(package: &str) -> Self {
        Self {
            program: "npx",
            arguments: vec!["-y".to_owned(), package.to_owned()],
            install: "npm install --global ack-memory",
        }
    }

    fn uvx() -> Self {
        Self {
            program: "uvx",
            arguments: vec![NAME.to_owned()],
            install: "uv tool install ack-memory",
        }
    }

    pub fn pipx() -> Self {
        Self {
            program: "pipx",
            arguments: vec!["run".to_owned(), NAME.to_owned()],
            install: "pipx install ack-memory",
        }
    }

    /// The command as a person types it, without the arguments of the program.
    pub fn command(&self) -> String {
        let words = self.arguments.iter().map(String::as_str);
        let words = words.filter(|word| *word != "-y");
        [self.program]
            .into_iter()
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// npm keeps the packages that were asked for next to the ones that it installed.
fn from_npx(folder: &Path) -> ProgramOrigin {
    let known = files::read_text(&folder.join("package.json"), LARGEST);
    let known = known.ok().and_then(|text| json::read(&text).ok());
    let Some(known) = known else {
        return ProgramOrigin::UnknownCache;
    };
    let asked = known.pointer("/_npx/packages").and_then(Value::as_array);
    let package = match asked.map(Vec::as_slice) {
        Some([package]) => package.as_str(),
        Some(_) => None,
        // Older versions of npm keep only what they installed.
        None => known
            .pointer("/dependencies/ack-memory")
            .and_then(Value::as_str)
            .filter(|version| !version.contains([':', '/']))
            .map(|_| NAME),
    };
    match package.filter(|package| is_our_package(package)) {
        Some(package) => ProgramOrigin::Runner(Runner::npx(package)),
        None => ProgramOrigin::UnknownCache,
    }
}

/// Whether npm finds a package by this text in its registry: our name, with or without a version.
fn is_our_package(text: &str) -> bool {
    let version = |text: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-^~".contains(letter);
        !text.is_empty() && text.chars().all(plain)
    };
    match text.split_once('@') {
        Some((name, of)) => name == NAME && version(of),
        None => text == NAME,
    }
}

/// A Python environment records where a package came from if that was not the index.
fn from_environment(folder: &Path, runner: Runner) -> ProgramOrigin {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    // `lib/python3.12/site-packages`
    let versions = inside(&folder.join("lib")).into_iter();
    let packages = versions.map(|version| version.join("site-packages"));
    let ours = packages
        .flat_map(|packages| inside(&packages))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("ack_memory-") && name.ends_with(".dist-info")
        });
    let ours: Vec<PathBuf> = ours.collect();
    let from_index = ours
        .iter()
        .all(|info| !info.join("direct_url.json").exists());
    if from_index && !ours.is_empty() {
        ProgramOrigin::Runner(runner)
    } else {
        ProgramOrigin::UnknownCache
    }
}

/// The position of the environment's name in a path of `pipx run`: `…/pipx/<hash>/bin/ack-memory`,
/// or `.cache/<hash>` in the folder of an older version.
fn pipx_run(parts: &[&str]) -> Option<usize> {
    let programs = parts.len().checked_sub(2)?;
    let (hash, before) = (programs.checked_sub(1)?, programs.checked_sub(2)?);
    let is_hash =
        |text: &str| text.len() >= 12 && text.chars().all(|letter| letter.is_ascii_hexdigit());
    let is_cache = parts.get(before).is_some_and(|part| *part == ".cache")
        || parts.iter().take(hash).any(|part| *part == "pipx");
    let is_run =
        parts.get(programs) == Some(&"bin") && parts.get(hash).is_some_and(|part| is_hash(part));
    (is_cache && is_run).then_some(hash)
}

fn is_versioned(part: &str, names: &[&str]) -> bool {
    let version = names.iter().find_map(|name| part.strip_prefix(name));
    version.is_some_and(|version| {
        !version.is_empty() && version.chars().all(|letter| letter.is_ascii_digit())
    })
}

/// The words of a command after the package runner that they begin with, if any: from
/// `npx -y ack-memory serve`, `ack-memory serve`. Without a runner, all of them.
pub fn without_runner(words: &[String]) -> &[String] {
    let Some((first, mut after)) = words.split_first() else {
        return words;
    };
    let runners = [
        "npx", "uvx", "pipx", "pnpm", "pnpx", "bunx", "yarn", "npm", "uv", "bun",
    ];
    if !runners.contains(&first.rsplit('/').next().unwrap_or_default()) {
        return words;
    }
    loop {
        after = match after {
            [flag, _, more @ ..]
                if ["-p", "--package", "--from", "--spec"].contains(&flag.as_str()) =>
            {
                more
            }
            [flag, more @ ..] if flag.starts_with('-') => more,
            [word, more @ ..] if ["run", "dlx", "exec", "x", "tool"].contains(&word.as_str()) => {
                more
            }
            _ => return after,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_outside_of_every_cache_stays() {
        for path in [
            "/usr/bin/ack-memory",
            "/home/a/.local/share/pipx/venvs/ack-memory/bin/ack-memory",
            "/home/a/.local/share/uv/tools/ack-memory/bin/ack-memory",
            "/usr/lib/node_modules/ack-memory/node_modules/ack-memory-linux-x64/bin/ack-memory",
            "/src/archive-v/bin/ack-memory",
            "/home/a/dlx/bin/ack-memory",
            "ack-memory",
            "/bin/ack-memory",
        ] {
            assert_eq!(
                ProgramOrigin::of(Path::new(path)),
                ProgramOrigin::Installed,
                "{path}"
            );
        }
    }

    #[test]
    fn a_cache_without_its_metadata_is_unknown() {
        for path in [
            "/home/a/.npm/_npx/0e6d932f0e3be3cb/node_modules/ack-memory-linux-x64/bin/ack-memory",
            "/home/a/.cache/uv/archive-v0/8Xb7/ack_memory-1.data/scripts/ack-memory",
            "/home/a/.local/pipx/.cache/b487b696446c1f4/bin/ack-memory",
            "/home/a/.cache/pnpm/dlx/fd2/node_modules/ack-memory-linux-x64/bin/ack-memory",
            "/tmp/bunx-1000-ack-memory@latest/node_modules/ack-memory-linux-x64/bin/ack-memory",
            "/tmp/xfs-1/dlx-12/node_modules/ack-memory-linux-x64/bin/ack-memory",
        ] {
            assert_eq!(
                ProgramOrigin::of(Path::new(path)),
                ProgramOrigin::UnknownCache,
                "{path}"
            );
        }
    }

    #[test]
    fn npm_finds_only_some_packages_in_its_registry() {
        for (text, is_ours) in [
            ("ack-memory", true),
            ("ack-memory@0.2.0", true),
            ("ack-memory@latest", true),
            ("ack-memory@", false),
            ("ack-memory@file:../x", false),
            ("../ack-memory", false),
            ("other", false),
        ] {
            assert_eq!(is_our_package(text), is_ours, "{text}");
        }
    }

    #[test]
    fn the_words_of_a_runner_are_left_out() {
        for (command, rest) in [
            ("npx -y ack-memory serve", "ack-memory serve"),
            (
                "/usr/bin/npx --yes ack-memory@0.2 serve",
                "ack-memory@0.2 serve",
            ),
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
