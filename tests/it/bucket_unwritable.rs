//! Scopes in a bucket if the copy on this machine cannot be written.

use std::fs;
use std::path::Path;

use crate::bucket::{published, reader, scene, sql};
use crate::bucket_reading::{answer, ask, both, first, followed, notes, remote, wait};
use crate::cli::run;
use crate::support::write_file;

/// Makes every write into the folder fail, for the superuser too: folders are where files belong.
fn refuse_writes(folder: &Path) {
    for name in ["state.json", ".lock", "files"] {
        let path = folder.join(name);
        let aside = folder.join(format!("{name}.aside"));
        if path.exists() {
            fs::rename(&path, aside).unwrap();
        }
        if name == "files" {
            write_file(&path, "");
        } else {
            fs::create_dir(&path).unwrap();
            write_file(path.join("in-the-way"), "");
        }
    }
}

fn allow_writes(folder: &Path) {
    for name in ["state.json", ".lock", "files"] {
        let path = folder.join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        let aside = folder.join(format!("{name}.aside"));
        if aside.exists() {
            fs::rename(aside, path).unwrap();
        }
    }
}

#[test]
fn a_withdrawn_memory_disappears_though_the_copy_cannot_be_written() {
    let (root, bucket, reader) = followed("1s");
    let folder = remote(&reader);
    refuse_writes(&folder);
    wait(1_100);
    // Nothing is new, so the copy is what is published.
    let current = answer(&reader);
    assert_eq!(first(&current), "The connection pool has 20 connections");
    assert!(notes(&current).is_empty(), "{current}");
    // A new memory is missing, and the answer says why.
    let update = "UPDATE memories SET status = 'approved' WHERE id = 'm-3'";
    sql(&root, update);
    published(&root, &bucket, &[]);
    let stale = answer(&reader);
    assert_eq!(first(&stale), "The connection pool has 20 connections");
    let told = stale["notes"].to_string();
    assert_contains!(told, "remote_stale", "cannot write", "state.json");
    assert_contains!(told, "directory", "free space");
    // A withdrawn one is not served.
    published(&root, &bucket, &["--withdraw", "m-2"]);
    let cold = both(&ask(&reader, &[]));
    assert_lacks!(cold, "20 connections");
    assert_contains!(cold, "withdraws memories and cannot be kept");
    assert_contains!(cold, "cannot write");
    assert_lacks!(cold, "in a moment");
    allow_writes(&folder);
    let after = answer(&reader).to_string();
    assert_lacks!(after, "20 connections", "remote_");
}

#[test]
fn without_a_copy_the_message_says_why_it_cannot_be_written() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let reader = reader(&bucket, "1h");
    write_file(reader.scope_folder("team").join("remote"), "");
    let refused = both(&ask(&reader, &[]));
    assert_contains!(refused, "no copy of it yet", "cannot make `", "remote");
    assert_lacks!(refused, "was not asked", "in a moment");
}

#[test]
fn offline_the_note_names_the_version_that_answers() {
    let (_root, _bucket, reader) = followed("1s");
    wait(1_100);
    let output = both(&ask(&reader, &["--offline"]));
    assert_contains!(output, "`--offline`", "this is version 1");
    assert_lacks!(output, "asked yet");
    let doctor = run(crate::bucket::command(reader.path()).args(["--offline", "doctor"]));
    assert_lacks!(doctor.out, "asked yet");
}
