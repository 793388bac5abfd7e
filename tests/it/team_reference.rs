//! `ref` in `scope.toml`: what is committed on a reference is approved, what is only in the working
//! tree waits for review. Real repositories, made by git in each of its forms.

use std::fs;
use std::path::{Path, PathBuf};

use ack_memory::Service;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::changes::git;
use crate::cli::ack;
use crate::support::{Ask, Root, sorted_ids, write_file};

/// A repository with notes in `docs/memory`.
struct Repository {
    folder: TempDir,
}

impl Repository {
    fn new() -> Self {
        Self::made_by(&["init", "-q"])
    }

    fn made_by(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), arguments);
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn notes(&self) -> PathBuf {
        self.path().join("docs/memory")
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        note(&self.notes(), name, text);
        self
    }

    fn commit(&self) -> &Self {
        commit(self.path());
        self
    }
}

fn note(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_file(path, text);
}

fn commit(folder: &Path) {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "notes"]);
}

/// What git prints.
fn git_says(folder: &Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A scope over a folder with a reference, and a service whose agents may ask for what waits.
fn serve_notes(notes: &Path, reference: &str) -> (Root, Service) {
    let root = Root::new().let_agents_review();
    let manifest = format!("store = '{}'\nref = '{reference}'\n", notes.display());
    root.manifest("team", &manifest);
    let service = root.service();
    (root, service)
}

/// The ids with a status, sorted.
fn ids(service: &Service, status: &str) -> Vec<String> {
    let arguments = json!({ "query": "deploy", "status": status, "limit": 20 });
    sorted_ids(&service.find(arguments)["results"])
}

/// Checks which ids are approved, and which wait.
#[track_caller]
fn check(service: &Service, approved: &str, waiting: &str) {
    let found = ["approved", "staging"].map(|status| ids(service, status).join(" "));
    assert_eq!(found, [approved, waiting], "{}", problems(service));
}

/// Checks the title that a memory has now.
#[track_caller]
fn titled(service: &Service, id: &str, title: &str) {
    assert_eq!(get(service, id)["title"], title);
}

fn get(service: &Service, id: &str) -> Value {
    service.fetch(json!({ "id": id, "status": "all" }))
}

fn problems(service: &Service) -> String {
    let scopes = service.scopes(json!({}));
    scopes["scopes"][0]["health"]["problems"].to_string()
}

/// Where git keeps an object that is in no pack.
fn object_file(repository: &Repository, name: &str) -> PathBuf {
    let (folder, file) = name.split_at(2);
    let objects = repository.path().join(".git/objects");
    objects.join(folder).join(file)
}

#[test]
fn what_is_stored_under_the_name_of_another_object_is_not_approved() {
    for format in ["sha1", "sha256"] {
        let repository = Repository::made_by(&["init", "-q", "--object-format", format]);
        repository.write("a.md", "# Deploy on Mondays\n").commit();
        let committed = git_says(repository.path(), &["rev-parse", "HEAD:docs/memory/a.md"]);
        repository.write("evil.md", "# Deploy never\n");
        let evil = ["hash-object", "-w", "docs/memory/evil.md"];
        let evil = git_says(repository.path(), &evil);
        fs::remove_file(repository.notes().join("evil.md")).unwrap();
        fs::remove_file(repository.notes().join("a.md")).unwrap();
        let (_root, service) = serve_notes(&repository.notes(), "HEAD");
        assert_eq!(get(&service, "a")["title"], "Deploy on Mondays");
        let file = object_file(&repository, &committed);
        fs::remove_file(&file).unwrap();
        fs::copy(object_file(&repository, &evil), &file).unwrap();
        let (_root, service) = serve_notes(&repository.notes(), "HEAD");
        assert_eq!(ids(&service, "all"), NOTHING, "{format}");
        assert_contains!(problems(&service), "cannot be read from git's objects");
        // The same for a folder, which names the files.
        let tree = git_says(repository.path(), &["rev-parse", "HEAD:docs/memory"]);
        let file = object_file(&repository, &tree);
        fs::remove_file(&file).unwrap();
        fs::copy(object_file(&repository, &evil), &file).unwrap();
        repository.write("b.md", "# Deploy by hand\n");
        let (_root, service) = serve_notes(&repository.notes(), "HEAD");
        assert_eq!(ids(&service, "approved"), NOTHING);
        assert_contains!(problems(&service), "missing, damaged or of a newer format");
    }
}

const NOTHING: [String; 0] = [];

#[test]
fn committed_notes_are_approved_and_local_edits_wait() {
    let repository = Repository::new();
    let (monday, rollback) =
        ("# Deploy on Mondays\n\nBefore noon.", "# Deploy again after a rollback\n\nAt once.");
    repository.write("monday.md", monday).write("ops/rollback.md", rollback);
    repository.commit();
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    check(&service, "monday ops/rollback", "");
    repository.write("new.md", "# Deploy by hand\n\nWith the button.");
    check(&service, "monday ops/rollback", "new");
    // The team's text stays until the edit is committed too.
    repository.write("monday.md", "# Deploy on Fridays\n\nAfter noon.");
    titled(&service, "monday", "Deploy on Mondays");
    titled(&service, "monday@edited", "Deploy on Fridays");
    assert_eq!(get(&service, "monday")["status"], "approved");
    check(&service, "monday ops/rollback", "monday@edited new");
    // Staged by git.
    git(repository.path(), &["add", "-A"]);
    check(&service, "monday ops/rollback", "monday@edited new");
    repository.commit();
    check(&service, "monday new ops/rollback", "");
    titled(&service, "monday", "Deploy on Fridays");
    // Gone from the working tree, and still what the team decided.
    fs::remove_file(repository.notes().join("new.md")).unwrap();
    check(&service, "monday new ops/rollback", "");
    repository.commit();
    check(&service, "monday ops/rollback", "");
    git(repository.path(), &["reset", "-q", "--hard", "HEAD~2"]);
    titled(&service, "monday", "Deploy on Mondays");
    assert_eq!(ids(&service, "all"), ["monday", "ops/rollback"]);
}

#[test]
fn the_status_of_a_note_can_only_restrict() {
    let repository = Repository::new();
    let with = |status: &str| format!("---\ntitle: Deploy {status}\nstatus: {status}\n---\nText");
    let committed = "draft stable deprecated rejected promoted approved resolved";
    for status in committed.split(' ') {
        repository.write(&format!("{status}.md"), &with(status));
    }
    repository.commit();
    for status in ["approved", "promoted", "rejected", "stable"] {
        repository.write(&format!("new-{status}.md"), &with(status));
    }
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    let waiting = "draft new-approved new-promoted new-stable";
    check(&service, "approved promoted resolved stable", waiting);
    assert_eq!(get(&service, "promoted")["status"], "promoted");
    let all = service.scopes(json!({}));
    assert_eq!(all["scopes"][0]["counts"]["rejected"], 3, "{all:#}");
}

#[test]
fn notes_on_a_branch_wait_until_the_remote_has_them() {
    let upstream = Repository::new();
    upstream
        .write("monday.md", "# Deploy on Mondays\n\nBefore noon.")
        .write("old.md", "# Deploy with the old script\n\nSlow.")
        .commit();
    let home = tempfile::tempdir().unwrap();
    let clone = home.path().join("clone");
    let from = upstream.path().display().to_string();
    git(home.path(), &["clone", "-q", &from, "clone"]);
    let notes = clone.join("docs/memory");
    let (_root, service) = serve_notes(&notes, "origin/main");
    check(&service, "monday old", "");
    git(&clone, &["switch", "-q", "-c", "work"]);
    note(&notes, "mine.md", "# Deploy as I like\n\nToday.");
    let text = "# Deploy with the old script, quickly\n\nFast.";
    note(&notes, "old.md", text);
    // A commit on a branch.
    commit(&clone);
    check(&service, "monday old", "mine old@edited");
    // The remote advances: one note is changed, one withdrawn, one new.
    upstream
        .write("monday.md", "# Deploy on Tuesdays\n\nBefore noon.")
        .write("three.md", "# Deploy with three approvals\n\nSince May.");
    upstream.commit();
    titled(&service, "monday", "Deploy on Mondays");
    git(&clone, &["fetch", "-q"]);
    titled(&service, "monday", "Deploy on Tuesdays");
    // What is merely older here is nobody's edit.
    check(&service, "monday old three", "mine old@edited");
    fs::remove_file(upstream.notes().join("monday.md")).unwrap();
    upstream.commit();
    git(&clone, &["fetch", "-q"]);
    assert!(notes.join("monday.md").exists());
    assert_eq!(ids(&service, "all"), ["mine", "old", "old@edited", "three"]);
    // The pull request is merged.
    let work = clone.display().to_string();
    git(upstream.path(), &["fetch", "-q", &work, "work"]);
    git(upstream.path(), &["merge", "-q", "--no-edit", "FETCH_HEAD"]);
    git(&clone, &["fetch", "-q"]);
    check(&service, "mine old three", "");
    titled(&service, "old", "Deploy with the old script, quickly");
}

/// The notes of an answer, as agents see them.
fn agents_note(service: &Service) -> String {
    let answer = service.find(json!({ "query": "nothing like it" }));
    answer["notes"].to_string()
}

/// Agents learn in one sentence that the reference cannot be read. No file is missing.
#[track_caller]
fn assert_unread(service: &Service, why: &str) {
    let notes = agents_note(service);
    let said = format!("this scope's approved notes cannot be read: {why}");
    assert_contains!(notes, &said, "ack-memory doctor");
    assert_lacks!(notes, "missing here", "/tmp");
}

#[test]
fn an_unresolvable_reference_approves_nothing_and_says_why() {
    let repository = Repository::new();
    repository.write("monday.md", "# Deploy on Mondays").commit();
    git(repository.path(), &["tag", "v1"]);
    git(repository.path(), &["branch", "v1"]);
    let hash = git_says(repository.path(), &["rev-parse", "HEAD"]);
    let no_name = "that is not the name of a branch or tag";
    for (reference, why) in [
        ("origin/main", "no such branch or tag here"),
        ("refs/heads/none", "no such branch or tag here"),
        ("v1", "could be refs/tags/v1 or refs/heads/v1"),
        ("../main", no_name),
        ("refs/../HEAD", no_name),
        ("", no_name),
        ("main~1", no_name),
        ("main@{upstream}", no_name),
        ("main:docs/memory", no_name),
        (&hash, "that is a commit"),
        (&hash[..8], "that is a commit"),
    ] {
        let (_root, service) = serve_notes(&repository.notes(), reference);
        check(&service, "", "monday");
        assert_contains!(problems(&service), why; "{reference}");
        let short = match why {
            "no such branch or tag here" => "its git ref is not there",
            why if why.starts_with("could be") => "its git ref could be several",
            _ => "its git ref is not the name of a branch or tag",
        };
        assert_unread(&service, short);
    }
    let (_root, service) = serve_notes(&repository.notes(), "main");
    assert_lacks!(agents_note(&service), "cannot be read");
    assert_eq!(ids(&service, "approved"), ["monday"]);
    // The branch disappears while it is served, and comes back.
    git(repository.path(), &["branch", "-m", "main", "trunk"]);
    check(&service, "", "monday");
    git(repository.path(), &["branch", "-m", "trunk", "main"]);
    check(&service, "monday", "");
    let [git_folder, away] = [".git", "git"].map(|name| repository.path().join(name));
    fs::rename(&git_folder, &away).unwrap();
    assert_eq!(ids(&service, "approved"), NOTHING);
    assert_contains!(problems(&service), "in no git repository");
    assert_unread(&service, "its folder is in no git repository");
    // Damaged objects approve nothing.
    fs::rename(&away, &git_folder).unwrap();
    check(&service, "monday", "");
    repository.write("b.md", "# Deploy b").commit();
    fs::rename(git_folder.join("objects"), git_folder.join("away")).unwrap();
    fs::create_dir(git_folder.join("objects")).unwrap();
    check(&service, "", "b monday");
}

#[test]
fn without_a_reference_nothing_is_approved_by_a_commit() {
    let repository = Repository::new();
    repository.write("monday.md", "# Deploy on Mondays").commit();
    let root = Root::new().let_agents_review();
    let settings = format!("store = '{}'", repository.notes().display());
    root.manifest("team", &settings);
    check(&root.service(), "", "monday");
}

/// A repository in one of git's forms: its name, what must be kept, the folder of its notes, the
/// reference.
type Form = (&'static str, TempDir, PathBuf, &'static str);

fn forms() -> Vec<Form> {
    let text = "# Deploy on Mondays\n\nBefore noon.";
    let mut forms: Vec<Form> = Vec::new();
    let mut add = |name, repository: Repository, notes: PathBuf, reference| {
        forms.push((name, repository.folder, notes, reference));
    };
    // A repository with one note, after some commands of git.
    let one = |init: &[&str], commands: &[&[&str]]| {
        let repository = Repository::made_by(init);
        repository.write("monday.md", text).commit();
        for command in commands {
            git(repository.path(), command);
        }
        repository
    };
    let init = &["init", "-q"][..];
    let sha256 = &["init", "-q", "--object-format=sha256"][..];
    let gc = &["gc", "-q"][..];
    for (name, init, commands, reference) in [
        ("SHA-256", sha256, &[][..], "main"),
        ("SHA-256, packed", sha256, &[gc], "main"),
        ("packed references and objects", init, &[&["pack-refs", "--all"], gc], "refs/heads/main"),
        ("an annotated tag", init, &[&["tag", "-a", "-m", "first", "v1"]], "v1"),
        ("a detached head", init, &[&["checkout", "-q", "--detach"]], "HEAD"),
        ("a branch without the folder", init, &[&["switch", "-q", "--orphan", "empty"]], "main"),
    ] {
        let repository = one(init, commands);
        let notes = repository.notes();
        assert_eq!(notes.exists(), name != "a branch without the folder");
        add(name, repository, notes, reference);
    }
    let repository = one(init, &[&["worktree", "add", "-q", "-b", "side", "linked"]]);
    let linked = repository.path().join("linked/docs/memory");
    add("a linked worktree", repository, linked, "main");
    let repository = one(init, &[]);
    let outer = Repository::new();
    let from = repository.path().display().to_string();
    let words = ["submodule", "--quiet", "add", &from, "inner"];
    git(outer.path(), &words);
    commit(outer.path());
    let notes = outer.path().join("inner/docs/memory");
    add("a submodule", outer, notes, "origin/main");
    for (name, how, reference) in [
        ("a shallow clone", &["--depth", "1"][..], "origin/main"),
        ("a partial clone", &["--filter=blob:none"], "origin"),
    ] {
        let repository = one(init, &[&["config", "uploadpack.allowFilter", "true"]]);
        repository.write("other.md", "# Another").commit();
        let from = format!("file://{}", repository.path().display());
        let clone = [&["clone", "-q"], how, &[&from, "clone"]].concat();
        let clone = Repository::made_by(&clone);
        let notes = clone.path().join("clone/docs/memory");
        add(name, clone, notes, reference);
    }
    let repository = one(init, &[]);
    write_file(repository.path().join("top.txt"), "x");
    repository.commit();
    let words = ["sparse-checkout", "set", "--no-cone", "/top.txt"];
    git(repository.path(), &words);
    assert!(!repository.notes().exists());
    let notes = repository.notes();
    let said = "a sparse checkout without the folder";
    add(said, repository, notes, "HEAD");
    let repository = Repository::new();
    note(repository.path(), "monday.md", text);
    repository.commit();
    let notes = repository.path().to_owned();
    add("the top of the repository", repository, notes, "main");
    forms
}

#[test]
fn repositories_of_every_form_are_read() {
    for (name, _folder, notes, reference) in forms() {
        println!("{name}");
        let (_root, service) = serve_notes(&notes, reference);
        check(&service, "monday", "");
        note(&notes, "new.md", "# Deploy by hand");
        check(&service, "monday", "new");
    }
}

#[test]
fn a_partial_clone_reports_missing_objects_without_fetching() {
    let upstream = Repository::new();
    let command = ["config", "uploadpack.allowFilter", "true"];
    git(upstream.path(), &command);
    upstream
        .write("monday.md", "# Deploy on Mondays")
        .write("sunday.md", "# Deploy nothing on Sundays")
        .commit();
    let from = format!("file://{}", upstream.path().display());
    let partial = Repository::made_by(&["clone", "-q", "--filter=blob:none", &from, "clone"]);
    let clone = partial.path().join("clone");
    upstream
        .write("monday.md", "# Deploy on Mondays\n\nBefore noon.")
        .write("friday.md", "# Never deploy on Fridays")
        .commit();
    git(&clone, &["fetch", "-q"]);
    // The remote is unreachable from here on.
    let away = upstream.path().with_extension("away");
    fs::rename(upstream.path(), &away).unwrap();
    let (root, service) = serve_notes(&clone.join("docs/memory"), "origin/main");
    // What is approved is the text that is not here, so the old one is not served for it.
    assert_eq!(ids(&service, "all"), ["sunday"]);
    let found = problems(&service);
    for name in ["`monday.md` is committed", "`friday.md` is committed"] {
        assert_contains!(found, name);
    }
    assert_contains!(found, "git fetch --refetch --no-filter");
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let words = ["publish", "team", "--to-folder", folder, "--yes"];
    assert_contains!(ack(root.path(), &words).err, "`monday.md` is committed");
    fs::rename(&away, upstream.path()).unwrap();
    git(&clone, &["fetch", "-q", "--refetch", "--no-filter"]);
    assert_eq!(ids(&service, "approved"), ["friday", "monday", "sunday"]);
    assert_contains!(get(&service, "monday").to_string(), "Before noon");
    assert_lacks!(problems(&service), "is committed");
}

#[test]
fn references_in_a_reftable_are_not_read_and_approve_nothing() {
    let repository = Repository::made_by(&["init", "-q", "--ref-format=reftable"]);
    repository.write("monday.md", "# Deploy on Mondays").commit();
    let (_root, service) = serve_notes(&repository.notes(), "main");
    assert_eq!(ids(&service, "approved"), NOTHING);
    assert_eq!(ids(&service, "staging"), ["monday"]);
    assert_contains!(problems(&service), "git refs migrate --ref-format=files");
    let text = "its git refs are kept in a format that is not read";
    assert_unread(&service, text);
}

#[test]
fn a_reference_without_a_commit_or_in_a_bare_repository_says_so() {
    let repository = Repository::new();
    repository.write("monday.md", "# Deploy on Mondays");
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(ids(&service, "staging"), ["monday"]);
    assert_contains!(problems(&service), "nothing is committed yet");
    let bare = Repository::made_by(&["init", "-q", "--bare"]);
    note(&bare.path().join("notes"), "monday.md", "# Deploy on Mondays");
    let (_root, service) = serve_notes(&bare.path().join("notes"), "main");
    assert_eq!(ids(&service, "approved"), NOTHING);
    assert_contains!(problems(&service), "the repository is bare; clone it");
}

#[test]
fn a_status_that_is_not_known_and_a_note_that_says_nothing_approve_nothing() {
    let repository = Repository::new();
    repository
        .write("monday.md", "# Deploy on Mondays\n\nBefore noon.")
        .write("deploy-unclear.md", "---\nstatus: whatever\n---\n# Deploy at noon")
        .write("deploy-not.md", "---\nstatus: not approved\n---\n# Deploy at night")
        .write("deploy-old.md", "---\nstatus: Superseded by monday\n---\n# Deploy by hand")
        .write("deploy-empty.md", "")
        .write("deploy-header.md", "---\ntype: note\n---\n\n")
        .commit();
    let waiting = ["deploy-not", "deploy-unclear"];
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    let check = |place: &str| {
        assert_eq!(ids(&service, "approved"), ["monday"], "{place}");
        assert_eq!(ids(&service, "staging"), waiting, "{place}");
        let found = problems(&service);
        for part in [
            "`deploy-unclear.md`",
            "has the status `whatever`, which is not known",
            "has the status `not approved`",
            "`deploy-empty.md`",
            "has no text, so it is not a memory",
        ] {
            assert_contains!(found, part; "{place}: {part}");
        }
    };
    check("in the working tree");
    fs::remove_dir_all(repository.notes()).unwrap();
    check("in git's objects");
}

#[test]
fn a_status_that_cannot_be_read_waits_and_a_header_that_is_merely_odd_does_not() {
    let repository = Repository::new();
    let with_header = |name: &str, header: &str| {
        repository.write(name, &format!("---\n{header}\n---\n\nDeploy {name}.\n"));
    };
    let statuses = [
        "title: Deploy\nstatus:draft",
        "title: Deploy\nstatus = draft",
        "title: Deploy\nstatus:\u{a0}draft",
        "title: Deploy\nstatus draft",
        "title: Deploy\n\tstatus: draft",
        "title: Deploy\n  status: draft",
        "title: Deploy\n\u{200b}status: draft",
        "title: Deploy: now\n\"Status\" = draft",
        "status:draft",
    ];
    for (number, status) in statuses.iter().enumerate() {
        with_header(&format!("waits-{number}.md"), status);
    }
    repository.write("waits-open.md", "---\ntitle: Deploy\nstatus: draft\nText follows.\n");
    repository.write("draft-cr.md", "---\rtitle: Deploy\rstatus: draft\r---\rDeploy draft-cr.\r");
    let odd = [
        "title: Deploy: now\ndescription: the status of it",
        "title: Deploy\nno key\n# status: draft",
        "title: Deploy\nstatus-code: 500\nstatus_page: x",
        "title: Deploy: now\nstatus: stable",
        "title: Deploy\nstatus:",
        "title: Deploy\ndescription: |\n  status: 500\nreview:\n  status: draft",
        "Status of the deploy.\nMore of it.",
    ];
    for (number, header) in odd.iter().enumerate() {
        with_header(&format!("odd-{number}.md"), header);
    }
    repository.commit();
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    let odd_ids: Vec<String> = (0..odd.len()).map(|number| format!("odd-{number}")).collect();
    assert_eq!(ids(&service, "approved"), odd_ids);
    let waiting = ids(&service, "staging");
    assert_eq!(waiting.len(), statuses.len() + 2, "{waiting:?}");
    let found = problems(&service);
    for id in waiting.iter().filter(|id| **id != "draft-cr") {
        let said = format!("`{id}.md` names a status in its header in a way that cannot be read");
        assert_contains!(found, said);
    }
}

#[test]
fn a_note_that_git_lfs_keeps_elsewhere_waits_and_says_why() {
    let pointer = "version https://git-lfs.github.com/spec/v1\n\
                   oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n\
                   size 12345\n";
    let repository = Repository::new();
    repository
        .write("monday.md", "# Deploy on Mondays\n\nBefore noon.")
        .write("deploy-lfs.md", pointer)
        .commit();
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(ids(&service, "all"), ["monday"]);
    let found = problems(&service);
    let reason = "`deploy-lfs.md` is a Git LFS pointer, not the note's text; run `git lfs pull`";
    assert_eq!(found.matches("deploy-lfs.md").count(), 1, "{found}");
    assert_contains!(found, reason);
    // The text is here: only the pointer is committed, so a person decides.
    repository.write("deploy-lfs.md", "# Deploy with LFS\n\nSlowly.");
    assert_eq!(ids(&service, "approved"), ["monday"]);
    assert_eq!(ids(&service, "staging"), ["deploy-lfs@edited"]);
    assert_contains!(problems(&service), "is committed as a Git LFS pointer");
    fs::remove_file(repository.notes().join("deploy-lfs.md")).unwrap();
    assert_eq!(ids(&service, "all"), ["monday"]);
    assert_contains!(problems(&service), reason);
}

#[test]
fn line_endings_changed_by_git_are_not_an_edit() {
    let repository = Repository::new();
    repository.write("monday.md", "# Deploy on Mondays\n\nBefore noon.\n").commit();
    repository.write("monday.md", "# Deploy on Mondays\r\n\r\nBefore noon.\r\n");
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(ids(&service, "all"), ["monday"]);
    assert_eq!(get(&service, "monday")["status"], "approved");
    repository.write("monday.md", "# Deploy on Mondays\r\n\r\nAfter noon.\r\n");
    assert_eq!(ids(&service, "staging"), ["monday@edited"]);
}

#[test]
fn decisions_override_the_reference() {
    let repository = Repository::new();
    repository
        .write("monday.md", "# Deploy on Mondays")
        .write("friday.md", "# Deploy on Fridays")
        .commit();
    repository.write("new.md", "# Deploy by hand");
    let (root, service) = serve_notes(&repository.notes(), "HEAD");
    let decide = |arguments: &[&str]| crate::curate::decide(root.path(), arguments);
    decide(&["reject", "friday"]);
    assert_eq!(ids(&service, "all"), ["monday", "new"]);
    decide(&["approve", "new"]);
    assert_eq!(ids(&service, "approved"), ["monday", "new"]);
    repository.write("new.md", "# Deploy by hand, always");
    assert_eq!(ids(&service, "approved"), ["monday"], "the text was swapped");
    // A decision was about other content: what is committed now waits for review like any change.
    repository.commit();
    assert_eq!(ids(&service, "approved"), ["monday"]);
}

#[test]
fn the_id_of_an_approved_note_cannot_be_taken() {
    let repository = Repository::new();
    repository.write("z.md", "---\nid: deploy-1\ntitle: Deploy on Mondays\n---\nText").commit();
    let text = "---\nid: deploy-1\ntitle: Deploy as I say\n---\nText";
    repository.write("a.md", text);
    repository.write("deploy-1.md", "# Deploy as the file is called");
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(ids(&service, "approved"), ["deploy-1"]);
    assert_eq!(get(&service, "deploy-1")["title"], "Deploy on Mondays");
    assert_eq!(ids(&service, "staging"), ["a", "deploy-1@2"]);
    let said = "`a.md` has the id `deploy-1`, which `z.md` has too";
    assert_contains!(problems(&service), said);
    repository.write("z.md", "---\nid: deploy-1\ntitle: Deploy never\n---\nText");
    assert_eq!(get(&service, "deploy-1@edited")["title"], "Deploy never");
    assert_eq!(get(&service, "deploy-1")["title"], "Deploy on Mondays");
}

#[test]
fn each_line_of_a_committed_file_is_approved_and_each_edited_one_waits() {
    let repository = Repository::new();
    let line = |id: &str, title: &str| format!("{{\"id\":\"{id}\",\"title\":\"{title}\"}}\n");
    let committed = line("monday", "Deploy on Mondays")
        + &line("noon", "Deploy before noon")
        + "{\"id\":\"old\",\"title\":\"Deploy by mail\",\"status\":\"rejected\"}\n"
        + "{\"id\":\"idea\",\"title\":\"Deploy hourly\",\"status\":\"staging\"}\n";
    repository.write("lessons.jsonl", &committed).commit();
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(ids(&service, "approved"), ["monday", "noon"]);
    assert_eq!(ids(&service, "staging"), ["idea"]);
    let edited = committed.replace("on Mondays", "on Fridays") + &line("new", "Deploy by hand");
    repository.write("lessons.jsonl", &edited);
    assert_eq!(ids(&service, "approved"), ["monday", "noon"]);
    assert_eq!(ids(&service, "staging"), ["idea", "monday@edited", "new"]);
    assert_eq!(get(&service, "monday")["title"], "Deploy on Mondays");
    // The team commits half of it elsewhere: what is left waits.
    let half = committed.replace("on Mondays", "on Fridays");
    repository.write("lessons.jsonl", &half).commit();
    repository.write("lessons.jsonl", &edited);
    assert_eq!(get(&service, "monday")["title"], "Deploy on Fridays");
    assert_eq!(ids(&service, "approved"), ["monday", "noon"]);
    assert_eq!(ids(&service, "staging"), ["idea", "new"]);
    repository.commit();
    assert_eq!(ids(&service, "approved"), ["monday", "new", "noon"]);
    assert_eq!(ids(&service, "staging"), ["idea"]);
    // Only its position changes, not its content: each line keeps its status.
    git(repository.path(), &["mv", "docs/memory/lessons.jsonl", "docs/memory/all.jsonl"]);
    assert_eq!(ids(&service, "approved"), ["monday", "new", "noon"]);
    repository.commit();
    assert_eq!(ids(&service, "approved"), ["monday", "new", "noon"]);
    assert_eq!(ids(&service, "all"), ["idea", "monday", "new", "noon"]);
    // A committed line that is broken is reported and left out alone, even while the file is
    // edited.
    repository.write("all.jsonl", &(edited.clone() + "{\"title\":}\n")).commit();
    repository.write("all.jsonl", &(edited + &line("more", "Deploy more")));
    assert_eq!(ids(&service, "staging"), ["idea", "more"]);
    for _ in 0..2 {
        let found = problems(&service);
        assert_contains!(found, "as it is committed: line 6 was left out");
    }
}

/// Publishing removes what the scope does not have, so it must know what the scope has.
#[test]
fn nothing_is_published_while_it_is_unknown_what_is_approved() {
    let repository = Repository::new();
    repository.write("monday.md", "# Deploy on Mondays").commit();
    let out = tempfile::tempdir().unwrap();
    let publish = |root: &Root| {
        let folder = out.path().to_str().unwrap();
        let words = ["publish", "team", "--to-folder", folder, "--yes"];
        ack(root.path(), &words)
    };
    let count = || fs::read_dir(out.path()).unwrap().count();
    let (root, _service) = serve_notes(&repository.notes(), "main");
    assert_eq!(publish(&root).code, Some(0));
    let written = count();
    assert!(written > 0);
    for reference in ["origin/main", "refs/heads/none", "main~1"] {
        let (root, _service) = serve_notes(&repository.notes(), reference);
        let refused = publish(&root);
        assert_ne!(refused.code, Some(0), "{}", refused.out);
        assert_contains!(refused.err, "not all of scope `team` can be read");
        assert_contains!(refused.err, reference);
        assert_eq!(count(), written, "{reference}");
    }
    // An empty folder on the reference is known, and so is a note that is gone there.
    repository.write("friday.md", "# Never on Fridays");
    fs::remove_file(repository.notes().join("monday.md")).unwrap();
    repository.commit();
    let done = publish(&root);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_contains!(done.out, "remove");
    assert_eq!(count(), written);
}
