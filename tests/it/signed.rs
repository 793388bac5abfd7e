//! Signed decisions: with `signers`, nothing is served that nobody on the list signed. The
//! signatures are made by the real `ssh-keygen` and `ssh-agent`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cli::{Outcome, ack, run};
use crate::curate::{approved, log, with_token};
use crate::support::{Root, read_text, rejected, titled, unreviewed, write_file};

/// A scope whose store approves one memory, rejects one, and lets two wait, with keys in a home
/// folder.
struct Signed {
    root: Root,
    home: PathBuf,
}

fn ssh_keygen(arguments: &[&str]) {
    let mut command = Command::new("ssh-keygen");
    let status = command.args(arguments).stdout(Stdio::null()).status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

impl Signed {
    /// `kind` is the type of Ana's key, as `ssh-keygen -t` names it.
    fn new(kind: &str) -> Self {
        let store = [
            titled("stored", "Approved by the store"),
            unreviewed("one", "Waits one"),
            unreviewed("two", "Waits two"),
            rejected("gone", "Rejected by the store"),
        ];
        let root = Root::with("alpha", &store);
        let home = root.path().join("home");
        fs::create_dir_all(home.join(".ssh")).unwrap();
        let signed = Self { root, home };
        signed.new_key("ana", kind);
        signed.allow(&format!("ana@example.org {}", signed.public_key("ana")));
        signed
    }

    fn new_key(&self, name: &str, kind: &str) {
        let file = self.home.join(".ssh").join(name);
        let file = file.to_str().unwrap();
        ssh_keygen(&["-q", "-t", kind, "-N", "", "-C", name, "-f", file]);
    }

    fn public_key(&self, name: &str) -> String {
        read_text(self.home.join(".ssh").join(format!("{name}.pub")))
    }

    /// Writes the list of signers, and names it in the manifest.
    fn allow(&self, list: &str) {
        write_file(self.root.path().join("allowed_signers"), list);
        self.root.manifest("alpha", "signers = \"../../allowed_signers\"\n");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = with_token(self.root.path(), arguments);
        command.env("HOME", &self.home).env_remove("SSH_AUTH_SOCK");
        command
    }

    fn decide(&self, arguments: &[&str]) -> Outcome {
        run(&mut self.command(arguments))
    }

    fn served(&self) -> Vec<String> {
        approved(self.root.path())
    }

    fn log(&self) -> PathBuf {
        self.root.scope_folder("alpha").join("decisions.jsonl")
    }

    /// Changes the log as another program does. The seal only tells of lost lines.
    fn change(&self, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        write_file(self.log(), change(text));
        let _ = fs::remove_file(self.log().with_extension("seal"));
    }

    fn doctor(&self) -> String {
        let shown = ack(self.root.path(), &["doctor"]).out;
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The lines of a log that are decisions.
fn decisions(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter(|line| line.starts_with("{\"id\"")).collect()
}

#[test]
fn only_signed_decisions_count() {
    for kind in ["ed25519", "ecdsa"] {
        let signed = Signed::new(kind);
        // The store's own approval is nobody's signature.
        assert_eq!(signed.served(), Vec::<String>::new(), "{kind}");
        signed.decide(&["approve", "one", "stored"]).ok();
        assert_eq!(signed.served(), ["one", "stored"], "{kind}");
        signed.decide(&["reject", "stored"]).ok();
        assert_eq!(signed.served(), ["one"], "{kind}");
        signed.decide(&["undo"]).ok();
        assert_eq!(signed.served(), ["one", "stored"], "{kind}");
        // One signature a batch, and the program's own lines read well.
        let text = read_text(signed.log());
        assert_eq!(text.matches("BEGIN SSH SIGNATURE").count(), 3, "{text}");
        assert_eq!(log(&signed.root, "alpha").len(), 4);
        assert_lacks!(signed.doctor(), "not count");
    }
}

#[test]
fn what_another_program_writes_does_not_count() {
    let signed = Signed::new("ed25519");
    // Decisions that a scope without signers would count.
    signed.root.manifest("alpha", "");
    for arguments in [["approve", "one"], ["reject", "two"]] {
        signed.decide(&arguments).ok();
    }
    let unsigned = read_text(signed.log());
    signed.allow(&format!("ana {}", signed.public_key("ana")));
    assert_eq!(signed.served(), Vec::<String>::new());
    let note = "2 decisions of decisions.jsonl do not count: they have no signature by anybody in `signers`";
    assert_contains!(signed.doctor(), note);
    // What was rejected does not return to the queue.
    let listed = ack(signed.root.path(), &["review", "--list", "--json"]).json();
    let found = crate::support::sorted_ids(&listed["waiting"]);
    assert_eq!(found, ["one", "stored"]);
    signed.decide(&["approve", "one"]).ok();
    assert_eq!(signed.served(), ["one"]);
    // An unsigned rejection hides nothing that was approved by a signature.
    signed.change(|text| text + &unsigned.replace("\"two\"", "\"one\""));
    assert_eq!(signed.served(), ["one"]);
    // A signed line that is changed in any way.
    let text = read_text(signed.log());
    let own = decisions(&text)[2].to_owned();
    for (from, to) in [
        ("\"one\"", "\"two\""),
        ("\"verdict\":\"approve\"", "\"verdict\":\"promote\""),
        ("process:", "human:"),
        ("\"time\":\"20", "\"time\":\"21"),
    ] {
        assert_contains!(own, from);
        let forged = own.replace(from, to);
        signed.change(|text| format!("{text}{forged}\n"));
        assert_eq!(signed.served(), ["one"], "{forged}");
    }
}

#[test]
fn an_old_approval_does_not_return_by_being_written_again() {
    let signed = Signed::new("ed25519");
    signed.decide(&["approve", "one"]).ok();
    let approval = read_text(signed.log());
    // Times in the log are whole seconds; batches order those of one.
    signed.decide(&["reject", "one"]).ok();
    assert_eq!(signed.served(), Vec::<String>::new());
    signed.change(|text| text + &approval);
    assert_eq!(signed.served(), Vec::<String>::new());
    signed.change(|text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.reverse();
        lines.join("\n") + "\n"
    });
    assert_eq!(signed.served(), Vec::<String>::new());
}

#[test]
fn only_listed_keys_for_this_purpose_scope_and_time_count() {
    let signed = Signed::new("ed25519");
    signed.new_key("bob", "ed25519");
    signed.decide(&["approve", "one"]).ok();
    let [ana, bob] = ["ana", "bob"].map(|name| signed.public_key(name));
    for (list, counts) in [
        (format!("bob {bob}ana {ana}"), true),
        (format!("# ana\n\n* namespaces=\"git,ack-memory\" {ana}"), true),
        (format!("ana valid-after=\"20200101Z\" {ana}"), true),
        (format!("bob {bob}"), false),
        (format!("ana namespaces=\"git\" {ana}"), false),
        (format!("ana valid-before=\"20200101Z\" {ana}"), false),
        (format!("ana cert-authority {ana}"), false),
        (String::new(), false),
    ] {
        signed.allow(&list);
        let expected: &[&str] = if counts { &["one"] } else { &[] };
        assert_eq!(signed.served(), expected, "{list}");
    }
    // Nobody can be asked who may decide.
    fs::remove_file(signed.root.path().join("allowed_signers")).unwrap();
    let shown = ack(signed.root.path(), &["query", "waits"]);
    let shown = shown.out + &shown.err;
    assert_contains!(shown, "cannot read the signers");
    // A signature for another purpose, and one of another scope.
    signed.allow(&format!("ana {ana}"));
    let text = read_text(signed.log());
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let digests = line["lines"][0].as_str().unwrap();
    let sign = |namespace: &str, scope: &str| {
        let message = signed.root.path().join("message");
        let text = format!("ack-memory decisions\nscope {scope}\n{digests}\n");
        write_file(&message, text);
        let signature = message.with_extension("sig");
        let _ = fs::remove_file(&signature);
        let key = signed.home.join(".ssh/ana");
        let [key, file] = [&key, &message].map(|path: &PathBuf| path.to_str().unwrap());
        ssh_keygen(&["-q", "-Y", "sign", "-n", namespace, "-f", key, file]);
        read_text(signature)
    };
    for (namespace, scope, counts) in
        [("ack-memory", "alpha", true), ("file", "alpha", false), ("ack-memory", "beta", false)]
    {
        let mut forged = line.clone();
        forged["signature"] = json!(sign(namespace, scope));
        let decision = decisions(&text)[0];
        signed.change(|_| format!("{decision}\n{forged}\n"));
        assert_eq!(signed.served() == ["one"], counts, "{namespace} {scope}");
    }
}

#[test]
fn who_cannot_sign_decides_nothing() {
    let signed = Signed::new("ed25519");
    signed.root.store("beta", &[unreviewed("other", "Another")]);
    signed.new_key("bob", "ed25519");
    signed.allow(&format!("bob {}", signed.public_key("bob")));
    for suffix in ["", ".pub"] {
        let file = signed.home.join(format!(".ssh/bob{suffix}"));
        fs::remove_file(file).unwrap();
    }
    // Not in the other scope either, which wants no signature.
    let refused = signed.decide(&["approve", "other", "one"]).fails(1);
    assert_contains!(
        refused,
        "cannot sign decisions about scope `alpha`",
        "none of your SSH keys is in the list of signers",
        "nothing was decided"
    );
    assert_eq!(signed.served(), Vec::<String>::new());
    assert!(!signed.log().exists());
}

#[test]
fn a_key_that_cannot_be_checked_is_named() {
    let signed = Signed::new("rsa");
    let refused = signed.decide(&["approve", "one"]).fails(1);
    assert_contains!(refused, "none of your SSH keys");
    let problem = "`signers`, line 1: keys of type ssh-rsa are not supported; it allows nobody";
    assert_contains!(signed.doctor(), problem);
}

#[test]
fn a_key_that_only_the_agent_has_signs() {
    let signed = Signed::new("ed25519");
    let socket = signed.root.path().join("agent");
    let mut agent = Command::new("ssh-agent");
    let agent = agent.args(["-D", "-a"]).arg(&socket).stdout(Stdio::null());
    let mut agent = agent.spawn().unwrap();
    while !socket.exists() {
        assert!(agent.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let add = |key: &Path| {
        let mut add = Command::new("ssh-add");
        let add = add.env("SSH_AUTH_SOCK", &socket).arg("-q").arg(key);
        assert!(add.stderr(Stdio::null()).status().unwrap().success());
    };
    add(&signed.home.join(".ssh/ana"));
    fs::remove_dir_all(signed.home.join(".ssh")).unwrap();
    let mut command = signed.command(&["approve", "one"]);
    run(command.env("SSH_AUTH_SOCK", &socket)).ok();
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(signed.served(), ["one"]);
    assert!(signed.decide(&["approve", "two"]).code != Some(0));
}
