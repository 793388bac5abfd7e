//! Scopes in a bucket if the copy on this machine cannot be written.

use std::fs;
use std::path::Path;

use crate::bucket::{published, reader, scene, sql};
use crate::bucket_reading::{answer, ask, both, first, followed, notes, remote, wait};
use crate::cli::run;

/// Makes every write into the folder fail, for the superuser too: folders are where files belong.
fn refuse_writes(folder: &Path) {
    for name in ["state.json", ".lock", "files"] {
        let path = folder.join(name);
        let aside = folder.join(format!("{name}.aside"));
        if path.exists() {
            fs::rename(&path, aside).unwrap();
        }
        if name == "files" {
            fs::write(&path, "").unwrap();
        } else {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("in-the-way"), "").unwrap();
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
    sql(
        &root,
        "UPDATE memories SET status = 'approved' WHERE id = 'm-3'",
    );
    published(&root, &bucket, &[]);
    let stale = answer(&reader);
    assert_eq!(first(&stale), "The connection pool has 20 connections");
    let told = stale["notes"].to_string();
    assert!(told.contains("remote_stale"), "{told}");
    assert!(
        told.contains("cannot write") && told.contains("state.json"),
        "{told}"
    );
    assert!(told.contains("directory"), "{told}");
    assert!(told.contains("free space"), "{told}");
    // A withdrawn one is not served.
    published(&root, &bucket, &["--withdraw", "m-2"]);
    let cold = both(&ask(&reader, &[]));
    assert!(!cold.contains("20 connections"), "{cold}");
    assert!(
        cold.contains("withdraws memories and cannot be kept"),
        "{cold}"
    );
    assert!(cold.contains("cannot write"), "{cold}");
    assert!(!cold.contains("in a moment"), "{cold}");
    allow_writes(&folder);
    let after = answer(&reader).to_string();
    assert!(!after.contains("20 connections"), "{after}");
    assert!(!after.contains("remote_"), "{after}");
}

#[test]
fn without_a_copy_the_message_says_why_it_cannot_be_written() {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    let reader = reader(&bucket, "1h");
    fs::write(reader.scope_folder("team").join("remote"), "").unwrap();
    let refused = both(&ask(&reader, &[]));
    assert!(refused.contains("no copy of it yet"), "{refused}");
    assert!(refused.contains("cannot make `"), "{refused}");
    assert!(refused.contains("remote"), "{refused}");
    assert!(!refused.contains("was not asked"), "{refused}");
    assert!(!refused.contains("in a moment"), "{refused}");
}

#[test]
fn offline_the_note_names_the_version_that_answers() {
    let (_root, _bucket, reader) = followed("1s");
    wait(1_100);
    let output = both(&ask(&reader, &["--offline"]));
    assert!(output.contains("`--offline`"), "{output}");
    assert!(output.contains("this is version 1"), "{output}");
    assert!(!output.contains("asked yet"), "{output}");
    let doctor = run(crate::bucket::command(reader.path()).args(["--offline", "doctor"]));
    assert!(!doctor.out.contains("asked yet"), "{}", doctor.out);
}
