//! The map in ARCHITECTURE.md is true: the crates, what each depends on, and the modules.

use std::collections::BTreeSet;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn map() -> String {
    read(&root().join("ARCHITECTURE.md"))
}

/// Our own crates that a manifest names as dependencies.
fn our_dependencies(manifest: &Path) -> BTreeSet<String> {
    let manifest: toml::Table = toml::from_str(&read(manifest)).unwrap();
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let names = dependencies.into_iter().flatten().map(|(name, _)| name.clone());
    names.filter(|name| name.starts_with("ack-")).collect()
}

#[test]
fn the_table_of_crates_says_what_each_depends_on() {
    let map = map();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let row = map.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for {name}"));
        let last = row.trim_end_matches(" |").rsplit(" |").next().unwrap();
        let written: BTreeSet<String> =
            last.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(
            written,
            our_dependencies(&folder.join("Cargo.toml")),
            "ARCHITECTURE.md, {name}"
        );
    }
}

/// What is not approved enters the choice of a session's memories only for a preview.
#[test]
fn only_the_desk_asks_what_a_session_would_start_with() {
    let mut users = Vec::new();
    for folder in ["src", "crates"] {
        for file in walkdir::WalkDir::new(root().join(folder)) {
            let file = file.unwrap();
            let is_rust = file.path().extension().is_some_and(|end| end == "rs");
            if is_rust && read(file.path()).contains("session_preview(") {
                let path = file.path().strip_prefix(root()).unwrap();
                users.push(path.display().to_string());
            }
        }
    }
    users.sort();
    let expected = ["crates/ack-desk/src/evidence.rs", "crates/ack-service/src/context/preview.rs"];
    assert_eq!(users, expected);
}

#[test]
fn the_product_does_not_depend_on_the_test_bucket() {
    let mut manifests = vec![root().join("Cargo.toml")];
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        manifests.push(entry.unwrap().path().join("Cargo.toml"));
    }
    assert!(manifests.len() > 5, "{manifests:?}");
    for manifest in manifests {
        let needed = our_dependencies(&manifest);
        assert!(!needed.contains("ack-test-bucket"), "{needed:?}");
    }
}

#[test]
fn the_table_of_modules_names_each() {
    let map = map();
    let rows = map
        .lines()
        .skip_while(|line| !line.starts_with("| module | what it does |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let first_cells = rows.map(|row| row.split('|').nth(1).unwrap_or_default());
    let listed: BTreeSet<&str> =
        first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let files = std::fs::read_dir(root().join("src")).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let modules: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| !["lib", "main"].contains(&name.as_str()))
        .collect();
    let present: BTreeSet<&str> = modules.iter().map(String::as_str).collect();
    assert_eq!(listed, present, "ARCHITECTURE.md, the table of modules");
}

/// What answers agents cannot decide about memories.
#[test]
fn the_service_does_not_depend_on_the_desk() {
    let service = our_dependencies(&root().join("crates/ack-service/Cargo.toml"));
    for above in ["ack-desk", "ack-connect", "ack-http", "ack-gateway"] {
        assert!(!service.contains(above), "{above}");
    }
}
