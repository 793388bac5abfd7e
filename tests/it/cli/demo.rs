//! `demo`: a first look.

use tempfile::TempDir;

use super::{ack, binary, run};
use crate::support::{fingerprint, write_file};

#[test]
fn the_demo_shows_every_tool_and_leaves_nothing() {
    let temporary = TempDir::new().unwrap();
    let home = TempDir::new().unwrap();
    let out =
        run(binary().env("TMPDIR", temporary.path()).env("HOME", home.path()).arg("demo")).ok();
    assert_contains!(
        out,
        "137",
        "ERR_PNPM_OUTDATED_LOCKFILE",
        "staging",
        "links:",
        "ledger-api",
        "ack-memory demo ./demo-root"
    );
    for folder in [temporary.path(), home.path()] {
        let left: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn the_demo_keeps_its_scopes_in_a_given_folder() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("new/demo-root");
    let out = run(binary().current_dir(folder.path()).args(["demo", "new/demo-root"])).ok();
    assert_contains!(out, root.to_str().unwrap(); "the folder is named in full");
    let answer = ack(&root, &["query", "ERR_PNPM_OUTDATED_LOCKFILE", "--json"]).json();
    assert!(answer["total"].as_u64().unwrap() > 0);
    let before = fingerprint(&root);
    let again = run(binary().arg("demo").arg(&root)).fails(2);
    assert_contains!(again, "demo-root", "empty folder");
    assert_eq!(fingerprint(&root), before, "a folder that is not empty is left alone");
    let file = folder.path().join("file");
    write_file(&file, "x");
    run(binary().arg("demo").arg(&file)).fails(2);
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    run(binary().arg("demo").arg(&empty)).ok();
}

#[cfg(unix)]
#[test]
fn the_demo_folder_is_private_for_every_umask() {
    use std::os::unix::fs::MetadataExt;
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("new/demo-root");
    run(std::process::Command::new("sh")
        .args(["-c", "umask 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_ack-memory"), "demo"])
        .arg(&root))
    .ok();
    let mut files = 0;
    for entry in walkdir::WalkDir::new(folder.path()).min_depth(1) {
        let entry = entry.unwrap();
        let expected = if entry.file_type().is_dir() { 0o700 } else { 0o600 };
        let mode = entry.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode, expected, "{}", entry.path().display());
        files += usize::from(entry.file_type().is_file());
    }
    assert!(files >= 4, "{files} files");
}
