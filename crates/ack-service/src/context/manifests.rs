//! The languages and direct dependencies that a project's manifests declare.

use std::path::Path;

use ack_api::text::has_word;
use serde_json::{Map, Value};

use ack_sys::files;

const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_NAMES: usize = 60;

/// Dependencies whose names are everyday words.
const EVERYDAY_NAMES: &str = "\
    async attrs base bytes chalk click colors commander cors debug either events express fetch \
    form glob graph hex http image json log logger memory mime morgan next once open packaging \
    path pool process progress quote random react request requests rich select semver sharp \
    split stream table tempfile test time tower url which";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestNames {
    /// Languages, package managers and the like. Many projects share them.
    pub tools: Vec<String>,
    pub dependencies: Vec<String>,
}

impl ManifestNames {
    pub fn everyday_names(&self) -> impl Iterator<Item = &str> {
        let names = self.dependencies.iter().map(String::as_str);
        names.filter(|name| has_word(EVERYDAY_NAMES, name) || name.chars().count() < 3)
    }
}

const SIGNS: [(&str, &str); 21] = [
    ("Cargo.toml", "rust"),
    ("Cargo.toml", "cargo"),
    ("package.json", "node"),
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("package-lock.json", "npm"),
    ("tsconfig.json", "typescript"),
    ("pyproject.toml", "python"),
    ("requirements.txt", "python"),
    ("go.mod", "go"),
    ("composer.json", "php"),
    ("Gemfile", "ruby"),
    ("pom.xml", "maven"),
    ("build.gradle", "gradle"),
    ("build.gradle.kts", "gradle"),
    ("Dockerfile", "docker"),
    ("compose.yaml", "docker"),
    ("docker-compose.yml", "docker"),
    ("main.tf", "terraform"),
    ("Makefile", "make"),
    (".github/workflows", "github actions"),
];

/// Reads the names of dependencies from the text of a manifest.
type ReadNames = fn(&str) -> Vec<String>;

const MANIFESTS: [(&str, ReadNames); 7] = [
    ("Cargo.toml", rust),
    ("package.json", node),
    ("pyproject.toml", pyproject),
    ("requirements.txt", requirements_file),
    ("go.mod", go),
    ("composer.json", php),
    ("Gemfile", ruby),
];

pub fn read(folder: &Path, top: &Path) -> ManifestNames {
    let mut declared = ManifestNames::default();
    for folder in std::iter::once(folder).chain((top != folder).then_some(top)) {
        let signs = SIGNS.iter().filter(|(file, _)| folder.join(file).exists());
        declared.tools.extend(signs.map(|(_, name)| (*name).to_owned()));
        for (file, names) in MANIFESTS {
            let text = files::read_text(&folder.join(file), MAX_FILE_BYTES);
            declared.dependencies.extend(text.map(|text| names(&text)).unwrap_or_default());
        }
    }
    let mut names = std::collections::HashSet::new();
    let mut keep = |name: &String| name.len() > 1 && names.insert(name.clone());
    declared.tools.retain(&mut keep);
    declared.dependencies.retain(&mut keep);
    declared.dependencies.truncate(MAX_NAMES);
    declared
}

fn rust(text: &str) -> Vec<String> {
    let manifest: Value = toml::from_str(text).unwrap_or_default();
    let targets = manifest.get("target").and_then(Value::as_object);
    let targets = targets.into_iter().flat_map(Map::values);
    let sections = std::iter::once(&manifest).chain(manifest.get("workspace")).chain(targets);
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    sections.flat_map(|section| keys(section, &tables)).collect()
}

fn node(text: &str) -> Vec<String> {
    let manifest: Value = serde_json::from_str(text).unwrap_or_default();
    keys(&manifest, &["dependencies", "devDependencies", "peerDependencies"])
}

fn pyproject(text: &str) -> Vec<String> {
    let manifest: Value = toml::from_str(text).unwrap_or_default();
    let mut names = requirements(manifest.pointer("/project/dependencies"));
    for groups in ["/project/optional-dependencies", "/dependency-groups"] {
        let groups = manifest.pointer(groups).and_then(Value::as_object).into_iter();
        names.extend(groups.flat_map(Map::values).flat_map(|group| requirements(Some(group))));
    }
    let poetry = manifest.pointer("/tool/poetry").unwrap_or(&Value::Null);
    names.extend(keys(poetry, &["dependencies"]));
    names
}

fn requirements_file(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', '-']));
    lines.map(requirement).collect()
}

/// The names in a list of requirements. Skips other entries, such as included groups.
fn requirements(list: Option<&Value>) -> Vec<String> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(Value::as_str).map(requirement).collect()
}

/// The name in a PEP 508 requirement: it ends at the first character that is not valid in a name.
fn requirement(text: &str) -> String {
    let mut parts = text.trim().split(|c: char| !(c.is_alphanumeric() || "._-".contains(c)));
    parts.next().unwrap_or_default().to_owned()
}

fn go(text: &str) -> Vec<String> {
    let required = text
        .lines()
        .map(|line| line.trim().trim_start_matches("require ").trim())
        .filter(|line| line.contains(" v") && !line.ends_with("// indirect"));
    // The last part of a path may be its major version.
    let is_version = |part: &&str| {
        part.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let paths = required.filter_map(|line| line.split_whitespace().next());
    let names = paths.filter_map(|path| path.rsplit('/').find(|part| !is_version(part)));
    names.map(str::to_owned).collect()
}

fn php(text: &str) -> Vec<String> {
    let manifest: Value = serde_json::from_str(text).unwrap_or_default();
    let names = keys(&manifest, &["require", "require-dev"]).into_iter();
    names.filter_map(|name| Some(name.split_once('/')?.1.to_owned())).collect()
}

fn ruby(text: &str) -> Vec<String> {
    let gems = text.lines().filter_map(|line| line.trim().strip_prefix("gem "));
    gems.filter_map(|line| line.split(['"', '\'']).nth(1)).map(str::to_owned).collect()
}

/// The keys of some tables of a section.
fn keys(section: &Value, tables: &[&str]) -> Vec<String> {
    let tables = tables.iter().filter_map(|table| section.get(table)?.as_object());
    tables.flat_map(Map::keys).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, text: &str, expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), text).unwrap();
        let ManifestNames { mut tools, dependencies } = read(folder.path(), folder.path());
        tools.extend(dependencies);
        assert_eq!(tools, expected, "{file}");
    }

    #[test]
    fn every_manifest_names_its_language_and_its_direct_dependencies() {
        check(
            "Cargo.toml",
            "[dependencies]\nsqlx = \"0.8\"\n[target.'cfg(unix)'.dependencies]\nnix = \"1\"\n[workspace.dependencies]\naxum = \"0.8\"\n",
            &["rust", "cargo", "sqlx", "axum", "nix"],
        );
        check(
            "package.json",
            r#"{"dependencies":{"@acme/ui":"1"},"devDependencies":{"vitest":"3"}}"#,
            &["node", "@acme/ui", "vitest"],
        );
        check(
            "pyproject.toml",
            "[project]\ndependencies = [\"httpx>=0.27\"]\n[project.optional-dependencies]\nx = [\"rich\"]\n[dependency-groups]\ndev = [\"pytest~=8\", {include-group = \"x\"}]\n",
            &["python", "httpx", "rich", "pytest"],
        );
        check("requirements.txt", "# web\nflask==3.0\n-r more.txt\n", &["python", "flask"]);
        check(
            "go.mod",
            "module example.org/x\nrequire github.com/jackc/pgx/v5 v5.1.0\nrequire (\n\tgithub.com/spf13/cobra v1.8.0\n\tgolang.org/x/sys v0.1.0 // indirect\n)\n",
            &["go", "pgx", "cobra"],
        );
        check(
            "composer.json",
            r#"{"require":{"php":">=8","monolog/monolog":"3"}}"#,
            &["php", "monolog"],
        );
        check("Gemfile", "source 'x'\ngem 'rails', '~> 8'\n", &["ruby", "rails"]);
        check("Cargo.toml", "[dependencies\n", &["rust", "cargo"]);
    }
}
