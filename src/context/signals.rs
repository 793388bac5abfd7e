//! What a project's files say it is about: its branch, its languages, its dependencies.

use std::path::Path;

use serde_json::Value;

use crate::scope::repository::Repository;

/// Largest manifest that is read, in bytes.
const LARGEST: u64 = 1 << 20;
/// Most dependencies that are searched for.
const MOST: usize = 60;

/// Words to search for, from the most telling source to the least.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signals {
    /// Words of the branch's name, unless it is the main one.
    pub branch: Option<String>,
    /// Names of languages and of direct dependencies.
    pub dependencies: Vec<String>,
}

impl Signals {
    /// Reads a project's folder (and, for a folder inside a repository, the repository's top).
    pub fn read(folder: &Path, repository: Option<&Repository>) -> Self {
        let branch = repository
            .and_then(|repository| repository.branch.as_deref())
            .filter(|branch| !["main", "master", "develop", "trunk", "dev"].contains(branch))
            .map(|branch| branch.replace(['/', '-', '_'], " "));
        let mut dependencies = Vec::new();
        let top = repository
            .map(|repository| repository.work_tree.as_path())
            .filter(|top| *top != folder);
        for place in std::iter::once(folder).chain(top) {
            manifests(place, &mut dependencies);
        }
        let mut seen = std::collections::HashSet::new();
        dependencies.retain(|name| name.len() > 1 && seen.insert(name.clone()));
        dependencies.truncate(MOST);
        Self { branch, dependencies }
    }
}

fn manifests(folder: &Path, found: &mut Vec<String>) {
    if let Some(Value::Object(manifest)) = toml_file(&folder.join("Cargo.toml")) {
        found.extend(["rust".to_owned(), "cargo".to_owned()]);
        let workspace = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
        for table in ["dependencies", "dev-dependencies", "build-dependencies"]
            .iter()
            .filter_map(|key| manifest.get(*key))
            .chain(workspace)
        {
            found.extend(keys(table));
        }
    }
    if let Some(manifest) = read(&folder.join("package.json")).and_then(|text| serde_json::from_str::<Value>(&text).ok()) {
        found.push("node".to_owned());
        for (file, name) in [
            ("pnpm-lock.yaml", "pnpm"),
            ("yarn.lock", "yarn"),
            ("package-lock.json", "npm"),
            ("tsconfig.json", "typescript"),
        ] {
            if folder.join(file).exists() {
                found.push(name.to_owned());
            }
        }
        for table in ["dependencies", "devDependencies", "peerDependencies"]
            .iter()
            .filter_map(|key| manifest.get(*key))
        {
            found.extend(keys(table));
        }
    }
    if let Some(manifest) = toml_file(&folder.join("pyproject.toml")) {
        found.push("python".to_owned());
        for requirement in manifest
            .pointer("/project/dependencies")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            // PEP 508: the name ends at the first character that is none of a name's.
            let name = requirement
                .split(|c: char| !(c.is_alphanumeric() || "._-".contains(c)))
                .next()
                .unwrap_or_default();
            found.push(name.to_owned());
        }
        found.extend(manifest.pointer("/tool/poetry/dependencies").map(keys).unwrap_or_default());
    }
    if let Some(text) = read(&folder.join("go.mod")) {
        found.push("go".to_owned());
        let modules = text
            .lines()
            .map(|line| line.trim().trim_start_matches("require "))
            .filter(|line| line.contains(" v"));
        found.extend(
            modules
                .filter_map(|line| line.split_whitespace().next())
                .filter_map(|path| path.rsplit('/').next())
                .map(str::to_owned),
        );
    }
    for (file, name) in [
        ("Dockerfile", "docker"),
        ("compose.yaml", "docker"),
        ("docker-compose.yml", "docker"),
        ("main.tf", "terraform"),
        ("Makefile", "make"),
    ] {
        if folder.join(file).exists() {
            found.push(name.to_owned());
        }
    }
    if folder.join(".github/workflows").is_dir() {
        found.push("github actions".to_owned());
    }
}

fn keys(table: &Value) -> Vec<String> {
    table.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

fn toml_file(path: &Path) -> Option<Value> {
    toml::from_str(&read(path)?).ok()
}

fn read(path: &Path) -> Option<String> {
    let small = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST);
    small.then(|| std::fs::read_to_string(path).ok()).flatten()
}
