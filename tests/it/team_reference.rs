//! `ref` in `scope.toml`: what is committed on a reference is approved, what is only in the working
//! tree waits for review. Real repositories, made by git in each of its forms.

use std::fs;
use std::path::{Path, PathBuf};

use ack_memory::Service;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::arguments::call;
use crate::changes::git;
use crate::cli::ack;
use crate::support::Root;

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
    fs::write(path, text).unwrap();
}

fn commit(folder: &Path) {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "notes"]);
}

/// What git prints.
fn git_says(folder: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A scope over a folder with a reference, and a service whose agents may ask for what waits.
fn serve_notes(notes: &Path, reference: &str) -> (Root, Service) {
    let root = Root::new().let_agents_review();
    root.manifest(
        "team",
        &format!("store = '{}'\nref = '{reference}'\n", notes.display()),
    );
    let service = root.service();
    (root, service)
}

/// The ids with a status, sorted.
fn ids(service: &Service, status: &str) -> Vec<String> {
    let arguments = json!({ "query": "deploy", "status": status, "limit": 20 });
    let answer = call(service, "query_memories", arguments).unwrap();
    let mut ids: Vec<String> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

fn get(service: &Service, id: &str) -> Value {
    call(service, "get_memory", json!({ "id": id, "status": "all" })).unwrap()
}

fn problems(service: &Service) -> String {
    let scopes = call(service, "list_scopes", json!({})).unwrap();
    scopes["scopes"][0]["health"]["problems"].to_string()
}

/// Where git keeps an object that is in no pack.
fn object_file(repository: &Repository, name: &str) -> PathBuf {
    let (folder, file) = name.split_at(2);
    repository
        .path()
        .join(".git/objects")
        .join(folder)
        .join(file)
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
        assert!(problems(&service).contains("cannot be read from git's objects"));
        // The same for a folder, which names the files.
        let tree = git_says(repository.path(), &["rev-parse", "HEAD:docs/memory"]);
        let file = object_file(&repository, &tree);
        fs::remove_file(&file).unwrap();
        fs::copy(object_file(&repository, &evil), &file).unwrap();
        repository.write("b.md", "# Deploy by hand\n");
        let (_root, service) = serve_notes(&repository.notes(), "HEAD");
        assert_eq!(ids(&service, "approved"), NOTHING);
        assert!(problems(&service).contains("missing, damaged or of a newer format"));
    }
}

#[test]
fn a_folder_with_two_entries_for_one_path_is_damaged() {
    let repository = Repository::new();
    for (key, value) in [("user.name", "Test"), ("user.email", "test@example.org")] {
        git(repository.path(), &["config", key, value]);
    }
    repository.write("a.md", "# Deploy on Mondays\n").commit();
    let blob = |text: &str| {
        repository.write("x.md", text);
        git_says(
            repository.path(),
            &["hash-object", "-w", "docs/memory/x.md"],
        )
    };
    let (one, other) = (blob("# Deploy here\n"), blob("# Deploy there\n"));
    fs::remove_file(repository.notes().join("x.md")).unwrap();
    let bytes = |name: &str| -> Vec<u8> {
        let digits = name.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.map(byte).collect()
    };
    for names in [["a.md", "a.md"], ["a.md", "b/a.md"], ["..", "a.md"]] {
        let mut tree = Vec::new();
        for (name, blob) in names.iter().zip([&one, &other]) {
            tree.extend(format!("100644 {name}\0").as_bytes());
            tree.extend(bytes(blob));
        }
        let file = repository.path().join("tree");
        fs::write(&file, tree).unwrap();
        let write = ["hash-object", "-t", "tree", "-w", "--literally", "tree"];
        let tree = git_says(repository.path(), &write);
        let commit = git_says(repository.path(), &["commit-tree", &tree, "-m", "x"]);
        git(
            repository.path(),
            &["update-ref", "refs/heads/odd", &commit],
        );
        let (_root, service) = serve_notes(repository.path(), "odd");
        assert_eq!(ids(&service, "approved"), NOTHING, "{names:?}");
        assert!(
            problems(&service).contains("missing, damaged or of a newer format"),
            "{names:?}"
        );
    }
}

const NOTHING: [String; 0] = [];

#[test]
fn committed_notes_are_approved_and_local_edits_wait() {
    let repository = Repository::new();
    repository
        .write("monday.md", "# Deploy on Mondays\n\nBefore noon.")
        .write(
            "ops/rollback.md",
            "# Deploy again after a rollback\n\nAt once.",
        )
        .commit();
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(ids(&service, "approved"), ["monday", "ops/rollback"]);
    assert_eq!(ids(&service, "staging"), NOTHING);
    repository.write("new.md", "# Deploy by hand\n\nWith the button.");
    assert_eq!(ids(&service, "approved"), ["monday", "ops/rollback"]);
    assert_eq!(ids(&service, "staging"), ["new"]);
    // The team's text stays until the edit is committed too.
    repository.write("monday.md", "# Deploy on Fridays\n\nAfter noon.");
    assert_eq!(get(&service, "monday")["title"], "Deploy on Mondays");
    assert_eq!(get(&service, "monday")["status"], "approved");
    assert_eq!(ids(&service, "staging"), ["monday@edited", "new"]);
    assert_eq!(get(&service, "monday@edited")["title"], "Deploy on Fridays");
    git(repository.path(), &["add", "-A"]);
    assert_eq!(
        ids(&service, "approved"),
        ["monday", "ops/rollback"],
        "staged by git"
    );
    repository.commit();
    assert_eq!(ids(&service, "approved"), ["monday", "new", "ops/rollback"]);
    assert_eq!(get(&service, "monday")["title"], "Deploy on Fridays");
    assert_eq!(ids(&service, "staging"), NOTHING);
    // Gone from the working tree, and still what the team decided.
    fs::remove_file(repository.notes().join("new.md")).unwrap();
    assert_eq!(ids(&service, "approved"), ["monday", "new", "ops/rollback"]);
    repository.commit();
    assert_eq!(ids(&service, "approved"), ["monday", "ops/rollback"]);
    git(repository.path(), &["reset", "-q", "--hard", "HEAD~2"]);
    assert_eq!(get(&service, "monday")["title"], "Deploy on Mondays");
    assert_eq!(ids(&service, "all"), ["monday", "ops/rollback"]);
}

#[test]
fn the_status_of_a_note_can_only_restrict() {
    let repository = Repository::new();
    let with = |status: &str| format!("---\ntitle: Deploy {status}\nstatus: {status}\n---\nText");
    for status in [
        "draft",
        "stable",
        "deprecated",
        "rejected",
        "promoted",
        "approved",
        "resolved",
    ] {
        repository.write(&format!("{status}.md"), &with(status));
    }
    repository.commit();
    for status in ["approved", "promoted", "rejected", "stable"] {
        repository.write(&format!("new-{status}.md"), &with(status));
    }
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(
        ids(&service, "approved"),
        ["approved", "promoted", "resolved", "stable"]
    );
    assert_eq!(
        ids(&service, "staging"),
        ["draft", "new-approved", "new-promoted", "new-stable"]
    );
    assert_eq!(get(&service, "promoted")["status"], "promoted");
    let all = call(&service, "list_scopes", json!({})).unwrap();
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
    assert_eq!(ids(&service, "all"), ["monday", "old"]);
    git(&clone, &["switch", "-q", "-c", "work"]);
    note(&notes, "mine.md", "# Deploy as I like\n\nToday.");
    note(
        &notes,
        "old.md",
        "# Deploy with the old script, quickly\n\nFast.",
    );
    commit(&clone);
    assert_eq!(
        ids(&service, "approved"),
        ["monday", "old"],
        "a commit on a branch"
    );
    assert_eq!(ids(&service, "staging"), ["mine", "old@edited"]);
    // The remote advances: one note is changed, one withdrawn, one new.
    upstream
        .write("monday.md", "# Deploy on Tuesdays\n\nBefore noon.")
        .write("three.md", "# Deploy with three approvals\n\nSince May.");
    upstream.commit();
    assert_eq!(get(&service, "monday")["title"], "Deploy on Mondays");
    git(&clone, &["fetch", "-q"]);
    assert_eq!(get(&service, "monday")["title"], "Deploy on Tuesdays");
    assert_eq!(ids(&service, "approved"), ["monday", "old", "three"]);
    assert_eq!(
        ids(&service, "staging"),
        ["mine", "old@edited"],
        "what is merely older here is nobody's edit"
    );
    fs::remove_file(upstream.notes().join("monday.md")).unwrap();
    upstream.commit();
    git(&clone, &["fetch", "-q"]);
    assert!(notes.join("monday.md").exists());
    assert_eq!(ids(&service, "all"), ["mine", "old", "old@edited", "three"]);
    // The pull request is merged.
    git(
        upstream.path(),
        &["fetch", "-q", &clone.display().to_string(), "work"],
    );
    git(upstream.path(), &["merge", "-q", "--no-edit", "FETCH_HEAD"]);
    git(&clone, &["fetch", "-q"]);
    assert_eq!(ids(&service, "approved"), ["mine", "old", "three"]);
    assert_eq!(ids(&service, "staging"), NOTHING);
    assert_eq!(
        get(&service, "old")["title"],
        "Deploy with the old script, quickly"
    );
}

/// The notes of an answer, as agents see them.
fn agents_note(service: &Service) -> String {
    let answer = call(
        service,
        "query_memories",
        json!({ "query": "nothing like it" }),
    )
    .unwrap();
    answer["notes"].to_string()
}

/// Agents learn in one sentence that the reference cannot be read. No file is missing.
#[track_caller]
fn assert_unread(service: &Service, why: &str) {
    let notes = agents_note(service);
    let said = format!("this scope's approved notes cannot be read: {why}");
    assert!(
        notes.contains(&said) && notes.contains("ack-memory doctor"),
        "{notes}"
    );
    assert!(
        !notes.contains("missing here") && !notes.contains("/tmp"),
        "{notes}"
    );
}

#[test]
fn an_unresolvable_reference_approves_nothing_and_says_why() {
    let repository = Repository::new();
    repository
        .write("monday.md", "# Deploy on Mondays")
        .commit();
    git(repository.path(), &["tag", "v1"]);
    git(repository.path(), &["branch", "v1"]);
    let hash = git_says(repository.path(), &["rev-parse", "HEAD"]);
    for (reference, why) in [
        ("origin/main", "no such branch or tag here"),
        ("refs/heads/none", "no such branch or tag here"),
        ("v1", "could be refs/tags/v1 or refs/heads/v1"),
        ("../main", "that is not the name of a branch or tag"),
        ("refs/../HEAD", "that is not the name of a branch or tag"),
        ("", "that is not the name of a branch or tag"),
        ("main~1", "that is not the name of a branch or tag"),
        ("main@{upstream}", "that is not the name of a branch or tag"),
        (
            "main:docs/memory",
            "that is not the name of a branch or tag",
        ),
        (&hash, "that is a commit"),
        (&hash[..8], "that is a commit"),
    ] {
        let (_root, service) = serve_notes(&repository.notes(), reference);
        assert_eq!(ids(&service, "approved"), NOTHING, "{reference}");
        assert_eq!(ids(&service, "staging"), ["monday"], "{reference}");
        assert!(
            problems(&service).contains(why),
            "{reference}: {}",
            problems(&service)
        );
        let short = match why {
            "no such branch or tag here" => "its git ref is not there",
            why if why.starts_with("could be") => "its git ref could be several",
            _ => "its git ref is not the name of a branch or tag",
        };
        assert_unread(&service, short);
    }
    let (_root, service) = serve_notes(&repository.notes(), "main");
    assert!(!agents_note(&service).contains("cannot be read"));
    assert_eq!(ids(&service, "approved"), ["monday"]);
    // The branch disappears while it is served, and comes back.
    git(repository.path(), &["branch", "-m", "main", "trunk"]);
    assert_eq!(ids(&service, "approved"), NOTHING);
    assert_eq!(ids(&service, "staging"), ["monday"]);
    git(repository.path(), &["branch", "-m", "trunk", "main"]);
    assert_eq!(ids(&service, "approved"), ["monday"]);
    fs::rename(
        repository.path().join(".git"),
        repository.path().join("git"),
    )
    .unwrap();
    assert_eq!(ids(&service, "approved"), NOTHING);
    assert!(
        problems(&service).contains("in no git repository"),
        "{}",
        problems(&service)
    );
    assert_unread(&service, "its folder is in no git repository");
    // Damaged objects approve nothing.
    fs::rename(
        repository.path().join("git"),
        repository.path().join(".git"),
    )
    .unwrap();
    assert_eq!(ids(&service, "approved"), ["monday"]);
    repository.write("b.md", "# Deploy b").commit();
    fs::rename(
        repository.path().join(".git/objects"),
        repository.path().join(".git/away"),
    )
    .unwrap();
    fs::create_dir(repository.path().join(".git/objects")).unwrap();
    assert_eq!(ids(&service, "approved"), NOTHING);
    assert_eq!(ids(&service, "staging"), ["b", "monday"]);
}

#[test]
fn without_a_reference_nothing_is_approved_by_a_commit() {
    let repository = Repository::new();
    repository
        .write("monday.md", "# Deploy on Mondays")
        .commit();
    let root = Root::new().let_agents_review();
    root.manifest(
        "team",
        &format!("store = '{}'", repository.notes().display()),
    );
    let service = root.service();
    assert_eq!(ids(&service, "approved"), NOTHING);
    assert_eq!(ids(&service, "staging"), ["monday"]);
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
    let one = || {
        let repository = Repository::new();
        repository.write("monday.md", text).commit();
        repository
    };
    let repository = Repository::made_by(&["init", "-q", "--object-format=sha256"]);
    repository.write("monday.md", text).commit();
    let notes = repository.notes();
    add("SHA-256", repository, notes, "main");
    let repository = Repository::made_by(&["init", "-q", "--object-format=sha256"]);
    repository.write("monday.md", text).commit();
    git(repository.path(), &["gc", "-q"]);
    let notes = repository.notes();
    add("SHA-256, packed", repository, notes, "main");
    let repository = one();
    git(repository.path(), &["pack-refs", "--all"]);
    git(repository.path(), &["gc", "-q"]);
    let notes = repository.notes();
    add(
        "packed references and objects",
        repository,
        notes,
        "refs/heads/main",
    );
    let repository = one();
    git(repository.path(), &["tag", "-a", "-m", "first", "v1"]);
    let notes = repository.notes();
    add("an annotated tag", repository, notes, "v1");
    let repository = one();
    git(repository.path(), &["checkout", "-q", "--detach"]);
    let notes = repository.notes();
    add("a detached head", repository, notes, "HEAD");
    let repository = one();
    let linked = repository.path().join("linked");
    git(
        repository.path(),
        &["worktree", "add", "-q", "-b", "side", "linked"],
    );
    add(
        "a linked worktree",
        repository,
        linked.join("docs/memory"),
        "main",
    );
    let repository = one();
    let outer = Repository::new();
    let from = repository.path().display().to_string();
    git(
        outer.path(),
        &["submodule", "--quiet", "add", &from, "inner"],
    );
    commit(outer.path());
    let notes = outer.path().join("inner/docs/memory");
    add("a submodule", outer, notes, "origin/main");
    let repository = one();
    repository.write("other.md", "# Another").commit();
    let from = format!("file://{}", repository.path().display());
    let shallow = Repository::made_by(&["clone", "-q", "--depth", "1", &from, "clone"]);
    let notes = shallow.path().join("clone/docs/memory");
    add("a shallow clone", shallow, notes, "origin/main");
    let repository = one();
    git(
        repository.path(),
        &["config", "uploadpack.allowFilter", "true"],
    );
    let from = format!("file://{}", repository.path().display());
    let partial = Repository::made_by(&["clone", "-q", "--filter=blob:none", &from, "clone"]);
    let notes = partial.path().join("clone/docs/memory");
    add("a partial clone", partial, notes, "origin");
    let repository = one();
    fs::write(repository.path().join("top.txt"), "x").unwrap();
    repository.commit();
    git(
        repository.path(),
        &["sparse-checkout", "set", "--no-cone", "/top.txt"],
    );
    assert!(!repository.notes().exists());
    let notes = repository.notes();
    add(
        "a sparse checkout without the folder",
        repository,
        notes,
        "HEAD",
    );
    let repository = one();
    git(repository.path(), &["switch", "-q", "--orphan", "empty"]);
    assert!(!repository.notes().exists());
    let notes = repository.notes();
    add("a branch without the folder", repository, notes, "main");
    let repository = Repository::new();
    note(repository.path(), "monday.md", text);
    repository.commit();
    let notes = repository.path().to_owned();
    add("the top of the repository", repository, notes, "main");
    forms
}

#[test]
fn repositories_of_every_form_are_read() {
    for (name, folder, notes, reference) in forms() {
        let (_root, service) = serve_notes(&notes, reference);
        assert_eq!(
            ids(&service, "approved"),
            ["monday"],
            "{name}: {}",
            problems(&service)
        );
        note(&notes, "new.md", "# Deploy by hand");
        assert_eq!(ids(&service, "approved"), ["monday"], "{name}");
        assert_eq!(ids(&service, "staging"), ["new"], "{name}");
        drop(folder);
    }
}

#[test]
fn a_partial_clone_reports_missing_objects_without_fetching() {
    let upstream = Repository::new();
    git(
        upstream.path(),
        &["config", "uploadpack.allowFilter", "true"],
    );
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
        assert!(found.contains(name), "{found}");
    }
    assert!(found.contains("git fetch --refetch --no-filter"), "{found}");
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let words = ["publish", "team", "--to-folder", folder, "--yes"];
    let refused = ack(root.path(), &words).err;
    assert!(refused.contains("`monday.md` is committed"), "{refused}");
    fs::rename(&away, upstream.path()).unwrap();
    git(&clone, &["fetch", "-q", "--refetch", "--no-filter"]);
    assert_eq!(ids(&service, "approved"), ["friday", "monday", "sunday"]);
    assert!(get(&service, "monday").to_string().contains("Before noon"));
    assert!(
        !problems(&service).contains("is committed"),
        "{}",
        problems(&service)
    );
}

#[test]
fn references_in_a_reftable_are_not_read_and_approve_nothing() {
    let repository = Repository::made_by(&["init", "-q", "--ref-format=reftable"]);
    repository
        .write("monday.md", "# Deploy on Mondays")
        .commit();
    let (_root, service) = serve_notes(&repository.notes(), "main");
    assert_eq!(ids(&service, "approved"), NOTHING);
    assert_eq!(ids(&service, "staging"), ["monday"]);
    assert!(
        problems(&service).contains("git refs migrate --ref-format=files"),
        "{}",
        problems(&service)
    );
    assert_unread(
        &service,
        "its git refs are kept in a format that is not read",
    );
}

#[test]
fn a_reference_without_a_commit_or_in_a_bare_repository_says_so() {
    let repository = Repository::new();
    repository.write("monday.md", "# Deploy on Mondays");
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(ids(&service, "staging"), ["monday"]);
    assert!(
        problems(&service).contains("nothing is committed yet"),
        "{}",
        problems(&service)
    );
    let bare = Repository::made_by(&["init", "-q", "--bare"]);
    note(
        &bare.path().join("notes"),
        "monday.md",
        "# Deploy on Mondays",
    );
    let (_root, service) = serve_notes(&bare.path().join("notes"), "main");
    assert_eq!(ids(&service, "approved"), NOTHING);
    assert!(
        problems(&service).contains("the repository is bare; clone it"),
        "{}",
        problems(&service)
    );
}

#[test]
fn a_status_that_is_not_known_and_a_note_that_says_nothing_approve_nothing() {
    let repository = Repository::new();
    repository
        .write("monday.md", "# Deploy on Mondays\n\nBefore noon.")
        .write(
            "deploy-unclear.md",
            "---\nstatus: whatever\n---\n# Deploy at noon",
        )
        .write(
            "deploy-not.md",
            "---\nstatus: not approved\n---\n# Deploy at night",
        )
        .write(
            "deploy-old.md",
            "---\nstatus: Superseded by monday\n---\n# Deploy by hand",
        )
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
            "has no text, so it is no memory",
        ] {
            assert!(found.contains(part), "{place}: {part}: {found}");
        }
    };
    check("in the working tree");
    fs::remove_dir_all(repository.notes()).unwrap();
    check("in git's objects");
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
    assert!(found.contains(reason), "{found}");
    // The text is here: only the pointer is committed, so a person decides.
    repository.write("deploy-lfs.md", "# Deploy with LFS\n\nSlowly.");
    assert_eq!(ids(&service, "approved"), ["monday"]);
    assert_eq!(ids(&service, "staging"), ["deploy-lfs@edited"]);
    let found = problems(&service);
    assert!(
        found.contains("is committed as a Git LFS pointer"),
        "{found}"
    );
    fs::remove_file(repository.notes().join("deploy-lfs.md")).unwrap();
    assert_eq!(ids(&service, "all"), ["monday"]);
    assert!(
        problems(&service).contains(reason),
        "{}",
        problems(&service)
    );
}

#[test]
fn a_file_whose_name_is_not_utf_8_waits_and_says_why() {
    use std::os::unix::ffi::OsStrExt;
    let repository = Repository::new();
    repository.write("monday.md", "# Deploy on Mondays\n\nBefore noon.");
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.md");
    let text = "# Deploy with coffee\n\nAlways.";
    if fs::write(repository.notes().join(name), text).is_err() {
        // This file system allows no such name.
        return;
    }
    repository.commit();
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(ids(&service, "approved"), ["monday"]);
    assert_eq!(ids(&service, "staging").len(), 1);
    assert!(
        problems(&service).contains("waits for review: its name is not UTF-8"),
        "{}",
        problems(&service)
    );
}

#[test]
fn line_endings_changed_by_git_are_not_an_edit() {
    let repository = Repository::new();
    repository
        .write("monday.md", "# Deploy on Mondays\n\nBefore noon.\n")
        .commit();
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
    assert_eq!(
        ids(&service, "approved"),
        ["monday"],
        "the text was swapped"
    );
    // A decision was about other content: what is committed now waits for review like any change.
    repository.commit();
    assert_eq!(ids(&service, "approved"), ["monday"]);
}

#[test]
fn the_id_of_an_approved_note_cannot_be_taken() {
    let repository = Repository::new();
    repository
        .write(
            "z.md",
            "---\nid: deploy-1\ntitle: Deploy on Mondays\n---\nText",
        )
        .commit();
    repository.write(
        "a.md",
        "---\nid: deploy-1\ntitle: Deploy as I say\n---\nText",
    );
    repository.write("deploy-1.md", "# Deploy as the file is called");
    let (_root, service) = serve_notes(&repository.notes(), "HEAD");
    assert_eq!(ids(&service, "approved"), ["deploy-1"]);
    assert_eq!(get(&service, "deploy-1")["title"], "Deploy on Mondays");
    assert_eq!(ids(&service, "staging"), ["a", "deploy-1@2"]);
    assert!(
        problems(&service).contains("`a.md` has the id `deploy-1`, which `z.md` has too"),
        "{}",
        problems(&service)
    );
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
    git(
        repository.path(),
        &["mv", "docs/memory/lessons.jsonl", "docs/memory/all.jsonl"],
    );
    assert_eq!(ids(&service, "approved"), ["monday", "new", "noon"]);
    repository.commit();
    assert_eq!(ids(&service, "approved"), ["monday", "new", "noon"]);
    assert_eq!(ids(&service, "all"), ["idea", "monday", "new", "noon"]);
    // A committed line that is broken is reported and left out alone, even while the file is
    // edited.
    repository
        .write("all.jsonl", &(edited.clone() + "{\"title\":}\n"))
        .commit();
    repository.write("all.jsonl", &(edited + &line("more", "Deploy more")));
    assert_eq!(ids(&service, "staging"), ["idea", "more"]);
    for _ in 0..2 {
        let found = problems(&service);
        assert!(
            found.contains("as it is committed: line 6 was left out"),
            "{found}"
        );
    }
}

/// Publishing removes what the scope does not have, so it must know what the scope has.
#[test]
fn nothing_is_published_while_it_is_unknown_what_is_approved() {
    let repository = Repository::new();
    repository
        .write("monday.md", "# Deploy on Mondays")
        .commit();
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
        assert!(
            refused.err.contains("not all of scope `team` can be read"),
            "{}",
            refused.err
        );
        assert!(refused.err.contains(reference), "{}", refused.err);
        assert_eq!(count(), written, "{reference}");
    }
    // An empty folder on the reference is known, and so is a note that is gone there.
    repository.write("friday.md", "# Never on Fridays");
    fs::remove_file(repository.notes().join("monday.md")).unwrap();
    repository.commit();
    let done = publish(&root);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("remove"), "{}", done.out);
    assert_eq!(count(), written);
}
