//! The map in ARCHITECTURE.md is true: what each crate depends on, and which modules may import
//! which.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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
    let names = dependencies
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone());
    names.filter(|name| name.starts_with("ack-")).collect()
}

#[test]
fn the_table_of_crates_says_what_each_depends_on() {
    let map = map();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let row = map
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for {name}"));
        let last = row.trim_end_matches(" |").rsplit(" |").next().unwrap();
        let written: BTreeSet<String> = last
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        assert_eq!(
            written,
            our_dependencies(&folder.join("Cargo.toml")),
            "ARCHITECTURE.md, {name}"
        );
    }
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

/// The modules of `src/` in the order of their table, from top to bottom.
fn modules_in_order() -> Vec<String> {
    let map = map();
    let rows = map
        .lines()
        .skip_while(|line| !line.starts_with("| module | what it does |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let names = rows.flat_map(|row| {
        let first_cell = row.split('|').nth(1).unwrap_or_default();
        first_cell.split('`').skip(1).step_by(2).map(str::to_owned)
    });
    names.collect()
}

/// The source files of the product that belong to a module.
fn source_files() -> Vec<PathBuf> {
    walkdir::WalkDir::new(root().join("src"))
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .filter(|path| {
            !["lib.rs", "main.rs"]
                .iter()
                .any(|name| path.ends_with(name))
        })
        .collect()
}

/// The names that a path continues with, each with its distance: `x` for `x::y`, and `x` and `y`
/// for `{x::z, y}`.
fn next_names(path: &str) -> Vec<(usize, &str)> {
    let name_end = |text: &str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        text.find(|c| !is_part(c)).unwrap_or(text.len())
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![(0, &path[..name_end(path)])];
    };
    let mut names = Vec::new();
    let (mut depth, mut is_start) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_start = true,
            c if is_start && !c.is_whitespace() => {
                is_start = false;
                names.push((at + 1, &group[at..at + name_end(&group[at..])]));
            }
            _ => {}
        }
    }
    names
}

/// The modules that a file imports, each with its line: what follows `crate::`, or enough `super::`
/// to leave the file's own module. `depth` is how many modules the file is deep. Comments do not
/// count.
fn imports(text: &str, depth: usize) -> Vec<(usize, String)> {
    let code: Vec<&str> = text
        .lines()
        .map(|line| match line.trim_start().starts_with("//") {
            true => "",
            false => line,
        })
        .collect();
    let code = code.join("\n");
    let ways_out = ["crate::".to_owned(), "super::".repeat(depth)];
    let mut found = Vec::new();
    for way_out in &ways_out {
        for (at, _) in code.match_indices(way_out.as_str()) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || "_:$".contains(c)) {
                continue;
            }
            let rest = at + way_out.len();
            for (distance, name) in next_names(&code[rest..]) {
                let line = 1 + code[..rest + distance].matches('\n').count();
                found.push((line, name.to_owned()));
            }
        }
    }
    found
}

#[test]
fn the_table_of_modules_names_each() {
    let listed: BTreeSet<String> = modules_in_order().into_iter().collect();
    let present: BTreeSet<String> = source_files()
        .iter()
        .filter(|path| path.parent() == Some(&root().join("src")))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(listed, present, "ARCHITECTURE.md, the table of modules");
}

#[test]
fn modules_import_only_what_is_below_them_in_the_table() {
    let order = modules_in_order();
    let level = |name: &str| order.iter().position(|module| module == name);
    let mut wrong = Vec::new();
    let mut tried = 0;
    for path in source_files() {
        let relative = path.strip_prefix(root()).unwrap();
        let inside = relative.strip_prefix("src").unwrap().with_extension("");
        let depth = inside.components().count();
        let module = inside.iter().next().unwrap().to_string_lossy().into_owned();
        for (line, imported) in imports(&read(&path), depth) {
            // With `super::`, this is an item of the file's own module.
            let Some(imported_level) = level(&imported).filter(|_| imported != module) else {
                continue;
            };
            tried += 1;
            if level(&module).is_none_or(|level| level > imported_level) {
                wrong.push(format!(
                    "{}:{line}: `{module}` imports `{imported}`, which is above it",
                    relative.display()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "a module imports only modules after it in the table of ARCHITECTURE.md. Move what both \
         need to a module below them, or correct the table:\n{}",
        wrong.join("\n")
    );
    assert!(tried > 200, "only {tried} imports were found");
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::{a::{x, y}, b, c as d,\n    e::f};\n\
                // use crate::comment;\n\
                fn g() { crate::h::i(); super::super::j::k(); super::own::l() }\n\
                pub(in crate::m) fn n() {}\nuse other_crate::o;\n";
    let found = imports(text, 2);
    let names: Vec<(usize, &str)> = found
        .iter()
        .map(|(line, name)| (*line, name.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            (1, "a"),
            (1, "b"),
            (1, "c"),
            (2, "e"),
            (4, "h"),
            (5, "m"),
            (4, "j")
        ]
    );
}
