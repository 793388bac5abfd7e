//! The file of a decision log: a line that is lost brings nothing back, a batch is in it whole or
//! not at all, and nobody is told that something was written that is not there.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{ack, run};
use crate::curate::{approved, decide, log, person, staged, with_token};
use crate::desk_session::{review, saved, three};
use crate::support::{Root, read_text, titled, write_file};
use crate::terminal::Session;

fn log_path(root: &Root) -> PathBuf {
    root.scope_folder("alpha").join("decisions.jsonl")
}

/// A scope whose store approves everything; the log rejects `a` and `c`, and approves `b`.
fn rejected() -> Root {
    let root = Root::new();
    root.store("alpha", &["a", "b", "c"].map(|id| titled(id, &format!("Title {id}"))));
    root.store("beta", &[titled("other", "Another scope")]);
    decide(root.path(), &["reject", "a"]).ok();
    decide(root.path(), &["approve", "b", "--because", "checked"]).ok();
    decide(root.path(), &["reject", "c"]).ok();
    assert_eq!(approved(root.path()), ["b", "other"]);
    root
}

/// A way to lose lines of a log.
type Loss = (&'static str, fn(&Path, &str));

const LOSSES: [Loss; 9] = [
    ("a block of zeros at the end", |path, text| {
        let (kept, lost) = text.split_at(text.len() - 100);
        write_file(path, kept.to_owned() + &"\0".repeat(lost.len()));
    }),
    ("a block of zeros over two lines", |path, text| {
        let middle = text.find('\n').unwrap() - 50;
        let zeros = "\0".repeat(100);
        write_file(path, text[..middle].to_owned() + &zeros + &text[middle + 100..]);
    }),
    ("only zeros", |path, text| {
        write_file(path, "\0".repeat(text.len()));
    }),
    ("emptied", |path, _| write_file(path, "")),
    ("shortened at a line", |path, text| {
        let end = text.trim_end().rfind('\n').unwrap();
        write_file(path, &text[..=end]);
    }),
    ("shortened within a line", |path, text| {
        write_file(path, &text[..text.len() - 40]);
    }),
    ("without its first line", |path, text| {
        write_file(path, text.split_once('\n').unwrap().1);
    }),
    ("removed", |path, _| fs::remove_file(path).unwrap()),
    ("a link that leads nowhere", |path, _| {
        fs::remove_file(path).unwrap();
        symlink("/nowhere/decisions.jsonl", path).unwrap();
    }),
];

#[test]
fn what_a_lost_line_rejected_is_never_served() {
    for (loss, lose) in LOSSES {
        let root = rejected();
        let path = log_path(&root);
        let text = read_text(&path);
        lose(&path, &text);
        assert_eq!(approved(root.path()), ["other"], "{loss}");
        for arguments in [&["query", "title", "-a"][..], &["get", "a"], &["get", "b"]] {
            let shown = ack(root.path(), arguments);
            assert!(!shown.out.contains("Title"), "{loss}: {}", shown.out);
        }
        let doctor = ack(root.path(), &["doctor"]);
        assert_eq!(doctor.code, Some(1), "{loss}: {}", doctor.out);
        assert_contains!(doctor.out, "decisions.jsonl");
        // Nor can anybody decide over it.
        assert_ne!(decide(root.path(), &["approve", "a"]).code, Some(0));
        // What is put back counts again.
        let _ = fs::remove_file(&path);
        write_file(&path, &text);
        assert_eq!(approved(root.path()), ["b", "other"], "{loss}");
    }
}

#[test]
fn a_wanted_loss_is_accepted_by_one_command_that_asks() {
    let root = rejected();
    let path = log_path(&root);
    let text = read_text(&path);
    let (first, rest) = text.split_once('\n').unwrap();
    write_file(&path, rest);
    let shown = ack(root.path(), &["query", "title"]);
    let shown = shown.out + &shown.err;
    let said = "1 line that it had when it was last written is gone";
    assert_contains!(shown, said, "review --accept-log");
    let refused = ack(root.path(), &["review", "--accept-log"]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    let mut session = Session::start(person(root.path(), &["review", "--accept-log"]));
    session
        .expect("1 line that it had when it was last written is gone")
        .answer("Accept the decision log of alpha as it is? [y/N]", "n\n")
        .expect("nothing was accepted");
    session.end();
    assert_eq!(approved(root.path()), ["other"]);
    decide(root.path(), &["review", "--accept-log"]).ok();
    assert_eq!(approved(root.path()), ["a", "b", "other"]);
    // A line that was taken out may come back, and other lines are still watched.
    write_file(&path, format!("{rest}{first}\n"));
    assert_eq!(approved(root.path()), ["b", "other"]);
    write_file(&path, "");
    assert_eq!(approved(root.path()), ["other"]);
    fs::remove_file(&path).unwrap();
    decide(root.path(), &["review", "--accept-log", "--scope", "alpha"]).ok();
    assert_eq!(approved(root.path()), ["a", "b", "c", "other"]);
    let nothing = decide(root.path(), &["review", "--accept-log"]).ok();
    assert_contains!(nothing, "nothing to accept");
}

#[test]
fn logs_are_merged_and_reordered_without_a_complaint() {
    let root = rejected();
    let path = log_path(&root);
    let text = read_text(&path);
    let other = Root::with("alpha", &[titled("b", "Title b")]);
    decide(other.path(), &["reject", "b"]).ok();
    let theirs = read_text(log_path(&other));
    let mut reversed: Vec<&str> = text.lines().rev().collect();
    let mut interleaved = reversed.clone();
    interleaved.insert(1, theirs.trim());
    reversed.push("");
    for merged in [
        format!("{text}{theirs}"),
        format!("{theirs}{text}"),
        reversed.join("\n"),
        interleaved.join("\n"),
        text.replace('\n', "\r\n"),
        format!("\u{feff}{text}"),
        format!("{text}{text}"),
    ] {
        write_file(&path, &merged);
        let shown = approved(root.path());
        assert!(shown.ends_with(&["other".to_owned()]), "{shown:?}");
        assert!(!shown.contains(&"a".to_owned()), "{merged}");
        let doctor = ack(root.path(), &["doctor"]);
        assert_eq!(doctor.code, Some(0), "{}", doctor.out);
    }
    // The next decision here covers their lines too.
    write_file(&path, format!("{text}{theirs}"));
    decide(root.path(), &["reject", "b", "--because", "me too"]).ok();
    write_file(&path, read_text(&path).replace(&theirs, ""));
    assert_eq!(approved(root.path()), ["other"]);
}

#[test]
fn a_log_without_a_seal_counts_until_a_line_names_no_memory() {
    let root = rejected();
    let path = log_path(&root);
    fs::remove_file(path.with_extension("seal")).unwrap();
    assert_eq!(approved(root.path()), ["b", "other"]);
    let text = read_text(&path);
    // It names the memory, which waits.
    write_file(&path, format!("{text}{{\"id\":\"b\",\"dig"));
    assert_eq!(approved(root.path()), ["other"]);
    assert_eq!(ack(root.path(), &["get", "b", "--status", "all"]).code, Some(0));
    for nameless in [
        "<<<<<<< HEAD\n".to_owned(),
        "{\"id\":\"a\",\"dige\0\0\0\0\0\0\n".to_owned(),
        "\0".repeat(512),
        "{\"verdict\":\"reject\"}\n".to_owned(),
    ] {
        write_file(&path, format!("{text}{nameless}"));
        assert_eq!(approved(root.path()), ["other"], "{nameless:?}");
        let shown = ack(root.path(), &["get", "b", "--status", "all"]);
        assert_ne!(shown.code, Some(0), "{nameless:?}");
        let doctor = ack(root.path(), &["doctor"]).out;
        let doctor = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = "line 4 cannot be read and does not say which memory it is about";
        assert_contains!(doctor, expected);
        // Until a person accepts it.
        decide(root.path(), &["review", "--accept-log"]).ok();
        assert_eq!(approved(root.path()), ["b", "other"], "{nameless:?}");
        fs::remove_file(path.with_extension("seal")).unwrap();
    }
}

#[test]
fn a_seal_that_is_damaged_closes_its_scope() {
    let root = rejected();
    let seal = log_path(&root).with_extension("seal");
    let text = read_text(&seal);
    for damaged in [String::new(), "\0".repeat(text.len()), text.replace('#', "")] {
        write_file(&seal, damaged);
        assert_eq!(approved(root.path()), ["other"]);
        decide(root.path(), &["review", "--accept-log"]).ok();
        assert_eq!(approved(root.path()), ["b", "other"]);
    }
    // Whoever may read the log may read the seal.
    fs::set_permissions(log_path(&root), fs::Permissions::from_mode(0o644)).unwrap();
    decide(root.path(), &["reject", "b"]).ok();
    for file in [log_path(&root), seal] {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{}", file.display());
    }
}

#[test]
fn lines_that_another_program_wrote_are_marked() {
    let root = Root::new();
    staged(&root, "alpha", 2);
    decide(root.path(), &["approve", "alpha-0000"]).ok();
    let path = log_path(&root);
    let text = read_text(&path);
    let mark = "not written by ack-memory on this machine";
    let history = || {
        let shown = decide(root.path(), &["get", "alpha-0000", "--include", "history"]).ok();
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_lacks!(history(), mark);
    assert!(!ack(root.path(), &["doctor"]).out.contains(mark));
    let forged = text.replace("process:ana", "human:boss");
    write_file(&path, format!("{text}{forged}"));
    assert_contains!(history(), &format!("human:boss ({mark})"));
    let doctor = ack(root.path(), &["doctor"]);
    assert_eq!(doctor.code, Some(0), "{}", doctor.out);
    assert_contains!(doctor.out, mark);
    // Also after the next decision, until a person has seen them.
    decide(root.path(), &["approve", "alpha-0001"]).ok();
    assert_contains!(history(), mark);
    let accepted = decide(root.path(), &["review", "--accept-log"]);
    assert_contains!(accepted.err, "human:boss");
    assert_lacks!(history(), mark);
}

/// Removes the log of a scope with its seal, and what a killed writer left.
fn remove_log(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().contains("decisions") {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_batch_of_a_killed_writer_is_written_whole_or_not_at_all() {
    const MEMORIES: usize = 100;
    let root = Root::new();
    staged(&root, "alpha", MEMORIES);
    let folder = root.scope_folder("alpha");
    let listed = ack(root.path(), &["review", "--list", "--json"]).json();
    let lines = listed["waiting"].as_array().unwrap().iter().map(|entry| {
        let mut entry = entry.clone();
        entry["verdict"] = json!("reject");
        format!("{entry}\n")
    });
    let list = root.path().join("list.jsonl");
    write_file(&list, lines.collect::<String>());
    let list = list.to_str().unwrap();
    for arguments in [&["approve", "--waiting", "--yes"][..], &["review", "--apply", list]] {
        let spawn = || {
            let mut command = with_token(root.path(), arguments);
            let command = command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        };
        remove_log(&folder);
        let began = Instant::now();
        assert!(spawn().wait().unwrap().success());
        let duration = began.elapsed();
        let (mut whole, mut none) = (0, 0);
        for moment in 0..40 {
            remove_log(&folder);
            let mut child = spawn();
            std::thread::sleep(duration * moment / 30);
            let _ = child.kill();
            child.wait().unwrap();
            match log(&root, "alpha").len() {
                0 => none += 1,
                MEMORIES => whole += 1,
                some => panic!("{some} of {MEMORIES} decisions were written"),
            }
            // Every line can be read, and the next decision counts.
            decide(root.path(), &["approve", "alpha-0007", "--because", "good"]).ok();
            assert_eq!(log(&root, "alpha").pop().unwrap().id, "alpha-0007");
            let left = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
            let left: Vec<_> =
                left.filter(|name| name.to_string_lossy().starts_with('.')).collect();
            assert!(left.is_empty(), "{left:?}");
        }
        assert!(whole > 0 && none > 0, "{whole} whole, {none} not at all");
    }
}

#[test]
fn without_space_for_the_first_decision_there_is_no_log() {
    let root = Root::new();
    staged(&root, "alpha", 1);
    let plain = with_token(root.path(), &["approve", "alpha-0000"]);
    // No file may grow beyond nothing.
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args());
    for (name, value) in plain.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    let refused = run(&mut limited);
    assert_ne!(refused.code, Some(0), "{}", refused.out);
    assert_contains!(refused.err, "nothing was decided");
    let names = fs::read_dir(root.scope_folder("alpha")).unwrap();
    let names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("decisions"))
        .collect();
    assert_eq!(names, Vec::<String>::new());
    decide(root.path(), &["approve", "alpha-0000"]).ok();
}

/// Starts a command, which waits for the lock of the log, and runs `meanwhile` before it gets it.
fn while_it_waits(root: &Root, arguments: &[&str], meanwhile: impl FnOnce()) -> String {
    let held = fs::File::open(log_path(root)).unwrap();
    held.lock().unwrap();
    let mut command = with_token(root.path(), arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    // Until it has the file open.
    let began = Instant::now();
    let descriptors = format!("/proc/{}/fd", child.id());
    let real = log_path(root).canonicalize().unwrap();
    let is_open = || {
        let open = fs::read_dir(&descriptors).into_iter().flatten().flatten();
        open.map(|entry| fs::read_link(entry.path()))
            .any(|path| path.is_ok_and(|path| path == real))
    };
    while !is_open() && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    meanwhile();
    held.unlock().unwrap();
    let done = child.wait_with_output().unwrap();
    let [out, err] = [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap());
    out + &err
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_that_is_replaced_while_a_writer_waits_gets_the_lines() {
    let root = rejected();
    let path = log_path(&root);
    let theirs = read_text(&path).replace("checked", "seen");
    let shown = while_it_waits(&root, &["approve", "a"], || {
        let new = path.with_extension("new");
        write_file(&new, &theirs);
        fs::rename(&new, &path).unwrap();
    });
    // Their file lacks a line of ours, so nothing is decided.
    assert_lacks!(shown, "wrote");
    assert_eq!(read_text(&path), theirs);
    decide(root.path(), &["review", "--accept-log"]).ok();
    let shown = while_it_waits(&root, &["approve", "a"], || {
        let new = path.with_extension("new");
        write_file(&new, &theirs);
        fs::rename(&new, &path).unwrap();
    });
    assert_contains!(shown, "wrote 1 decision");
    assert_eq!(log(&root, "alpha").last().unwrap().id, "a");
    assert_eq!(approved(root.path()), ["a", "b", "other"]);
}

#[test]
fn no_decision_is_lost_beside_a_program_that_appends() {
    let root = Root::new();
    staged(&root, "alpha", 40);
    decide(root.path(), &["approve", "alpha-0039"]).ok();
    let path = log_path(&root);
    let line = read_text(&path);
    let mut other = Command::new("sh")
        .args(["-c", "while read line; do echo \"$line\" >> \"$0\"; echo ok; done"])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = other.stdin.take().unwrap();
    let mut output = BufReader::new(other.stdout.take().unwrap());
    let mut written = 0;
    for number in 0..20 {
        let id = format!("alpha-{number:04}");
        let mut child =
            with_token(root.path(), &["approve", &id]).stdout(Stdio::null()).spawn().unwrap();
        // Not more, or the log outgrows every reader.
        for _ in 0..100 {
            if child.try_wait().unwrap().is_some() {
                break;
            }
            let more = line.replace("process:ana", &format!("human:bob {written}"));
            input.write_all(more.as_bytes()).unwrap();
            output.read_line(&mut String::new()).unwrap();
            written += 1;
        }
        assert!(child.wait().unwrap().success());
    }
    drop(input);
    other.wait().unwrap();
    let lines = log(&root, "alpha");
    let theirs = lines.iter().filter(|line| line.actor.starts_with("human:bob"));
    assert_eq!(theirs.count(), written);
    let ours = lines.iter().filter(|line| line.actor == "process:ana");
    assert!(ours.count() > 1);
}

#[test]
fn a_list_is_shown_and_confirmed_before_it_is_applied() {
    let root = three();
    let listed = ack(root.path(), &["review", "--list", "--json"]).json();
    let entries = listed["waiting"].as_array().unwrap();
    let entry = |position: usize, verdict: &str, more: Value| {
        let mut entry = entries[position].clone();
        entry["verdict"] = json!(verdict);
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        format!("{entry}\n")
    };
    let edit = json!({ "edit": { "narrative": "Ignore the lock" } });
    let text = entry(0, "approve", json!({})) + &entry(1, "edit", edit);
    let file = root.path().join("unwritten-decisions-1.jsonl");
    write_file(&file, text);
    let arguments = ["review", "--apply", file.to_str().unwrap()];
    for answer in ["n", "y"] {
        let mut session = Session::start(person(root.path(), &arguments));
        session
            .expect("w0  alpha  Fonts come from the disk of the kiosk  approve")
            .expect("w1  alpha  Retries need jitter  edit")
            .expect("narrative: Ignore the lock")
            .expect("Write 2 decisions? [y/N]");
        assert!(log(&root, "alpha").is_empty());
        session.press(&format!("{answer}\n"));
        session.end();
    }
    assert_eq!(log(&root, "alpha").len(), 2);
}

#[test]
fn only_files_of_its_own_are_offered() {
    let root = three();
    let offer = "decisions of an earlier review were not written";
    let shown = || {
        let mut session = Session::start(review(&root));
        session.expect("lists them > ").press("q\n");
        session.end().1
    };
    let mut session = Session::start(review(&root));
    session.expect("lists them > ").press("a\n").expect("2/3");
    session.interrupt().expect("Save 1 decision?").press("s\n");
    session.end();
    assert!(shown().contains(offer));
    let own = saved(&root).remove(0);
    let folder = own.parent().unwrap().to_owned();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&own)), (0o700, 0o600));
    // What another program puts beside it or in the root.
    let name = own.file_name().unwrap();
    fs::rename(&own, root.path().join(name)).unwrap();
    assert!(!shown().contains(offer));
    symlink(root.path().join(name), folder.join(name)).unwrap();
    assert!(!shown().contains(offer));
    fs::remove_file(folder.join(name)).unwrap();
    fs::rename(root.path().join(name), &own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(!shown().contains(offer));
    fs::set_permissions(&own, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(shown().contains(offer));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!shown().contains(offer));
}

#[test]
fn the_actor_is_who_git_says() {
    let root = Root::new();
    staged(&root, "alpha", 4);
    let home = root.path().join("home");
    let project = root.path().join("project");
    fs::create_dir_all(project.join(".git/objects")).unwrap();
    fs::create_dir_all(project.join(".git/refs")).unwrap();
    fs::create_dir_all(home.join(".config/git")).unwrap();
    write_file(project.join(".git/HEAD"), "ref: refs/heads/main\n");
    let config = |name: &str| format!("[user]\n\tname = {name}\n");
    let mut decided = 0;
    let mut actor = |names: &[(PathBuf, &str)]| {
        for (file, name) in names {
            write_file(file, config(name));
        }
        let mut command = with_token(root.path(), &["approve", &format!("alpha-{decided:04}")]);
        command
            .env_remove("GIT_AUTHOR_NAME")
            .env("USER", "unix")
            .env("HOME", &home)
            .current_dir(&project);
        run(&mut command).ok();
        decided += 1;
        log(&root, "alpha").pop().unwrap().actor
    };
    assert_eq!(actor(&[]), "process:unix");
    let file = |path: &Path, name: &str| path.join(name);
    let found = actor(&[(file(&home, ".config/git/config"), "Ana in XDG")]);
    assert_eq!(found, "process:Ana in XDG");
    assert_eq!(actor(&[(file(&home, ".gitconfig"), "Ana")]), "process:Ana");
    let found = actor(&[(file(&project, ".git/config"), "Ana of this project")]);
    assert_eq!(found, "process:Ana of this project");
}
