//! Questions at a terminal behave alike: a letter or its word and Enter, Enter alone is the answer in
//! capitals, the end of the input and Ctrl+C write nothing, and nothing is left to the shell.

use std::path::PathBuf;
use std::process::Command;

use crate::cli::binary;
use crate::connect::{Home, contents};
use crate::support::{Root, titled, unreviewed};
use crate::terminal::Session;

/// A home with a client, and a root with what a question can be about.
struct Scene {
    home: Home,
    root: Root,
}

/// Every command that asks before it writes, with its question.
const ASKING: [(&[&str], &str); 5] = [
    (&["connect", "gemini"], "Write this? [y/N] "),
    (&["scopes", "remove", "linked"], "Remove the scope? [y/N] "),
    (&["publish", "alpha", "--to-folder", "notes"], "Write these files? [y/N] "),
    (&["approve", "--waiting"], "Approve 2 memories? [y/N] "),
    (&["add", "The key is AKIAIOSFODNN7EXAMPLQ"], "Add it all the same? [y/N] "),
];

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        home.write(".gemini/settings.json", "{}\n");
        home.write("src/shop/x", "");
        home.write("elsewhere/note.md", "# A note\n\nText.\n");
        let memories = [
            titled("a-1", "Retries need jitter"),
            unreviewed("w-1", "The lock is held by two"),
            unreviewed("w-2", "Fonts come from the disk"),
        ];
        let root = Root::with("alpha", &memories);
        let store = home.path("elsewhere");
        root.manifest(
            "linked",
            &format!("store = \"{}\"\nunreviewed = \"approved\"\n", store.display()),
        );
        Self { home, root }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.prepared(binary());
        command
            .env("GIT_AUTHOR_NAME", "ana")
            .env("ACK_MEM_PATH", self.root.path())
            .current_dir(self.home.path("src/shop"))
            .args(arguments);
        command
    }

    /// The files that a command may write, without what a terminal's commands remember.
    fn files(&self) -> Vec<(PathBuf, u64)> {
        let of_home = contents(&self.home.path(""));
        of_home.into_iter().chain(contents(self.root.path())).collect()
    }
}

#[test]
fn a_word_is_an_answer_and_leaves_nothing_to_the_shell() {
    for (arguments, question) in ASKING {
        for (typed, writes) in [("yes", true), ("Y", true), ("no", false), ("", false)] {
            let scene = Scene::new();
            let before = scene.files();
            let mut session = Session::start(scene.command(arguments));
            session.answer(question, &format!("{typed}\necho stray\n"));
            let (code, shown, rest) = session.end_with_rest();
            assert_eq!((code, rest.as_str()), (Some(0), ""), "{arguments:?} {typed}: {shown}");
            assert_eq!(scene.files() != before, writes, "{arguments:?} {typed}: {shown}");
        }
    }
}

#[test]
fn what_is_no_answer_is_asked_again_and_the_end_of_the_input_is_no() {
    for (arguments, question) in ASKING {
        let scene = Scene::new();
        let before = scene.files();
        let mut session = Session::start(scene.command(arguments));
        session
            .answer(question, "what\n")
            .expect("y: yes, n or Enter: no")
            .answer(question, "\u{4}");
        let (code, shown, rest) = session.end_with_rest();
        assert_eq!((code, rest.as_str()), (Some(0), ""), "{arguments:?}: {shown}");
        assert_eq!(scene.files(), before, "{arguments:?}: {shown}");
    }
}

#[test]
fn an_interrupt_at_a_question_ends_its_line_and_writes_nothing() {
    for (arguments, question) in ASKING {
        let scene = Scene::new();
        let before = scene.files();
        let mut session = Session::start(scene.command(arguments));
        session.expect(question).interrupt();
        let (code, shown, rest) = session.end_with_rest();
        assert_eq!((code, rest.as_str()), (Some(130), ""), "{arguments:?}: {shown}");
        assert!(shown.contains(&format!("{question}\n")), "{arguments:?}: {shown}");
        assert_eq!(scene.files(), before, "{arguments:?}: {shown}");
    }
}

#[test]
fn what_is_typed_while_the_page_is_open_does_not_reach_the_shell() {
    let scene = Scene::new();
    let mut session = Session::start(scene.command(&["review", "--browser"]));
    session.expect("Ctrl+C to end").press("rm -rf").interrupt();
    let (code, shown, rest) = session.end_with_rest();
    assert_eq!((code, rest.as_str()), (Some(0), ""), "{shown}");
}

#[test]
fn enter_writes_the_decisions_of_a_review() {
    let scene = Scene::new();
    let mut session = Session::start(scene.command(&["review", "--tty", "--plain"]));
    session
        .answer("lists them > ", "a\n")
        .answer("2/2", "q\n")
        .answer("Save 1 decision?", "\n")
        .expect("wrote 1 decision");
    assert_eq!(session.end().0, Some(0));
}
