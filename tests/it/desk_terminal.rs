//! The desk's page, started from a terminal: where a browser is opened, and what is kept at the
//! end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Instant;

use ack_memory::api::decision::{Decision, Verdict};
use serde_json::json;

use crate::cli::binary;
use crate::curate::decide;
use crate::desk::{Desk, TIMEOUT, waiting};
use crate::desk_session::saved;
use crate::support::{Root, read_text, write_file};
use crate::terminal::Session;

/// `review` with or without a display. Addresses that it opens go to a file.
fn review(root: &Root, display: &[(&str, &str)]) -> Command {
    let browser = root.path().join("browser");
    let opened = root.path().join("opened");
    write_file(
        &browser,
        format!(
            "#!/bin/sh\ncat \"$1\" > {opened}.new\nprintf %s \"$*\" > {opened}.arguments\n\
             mv {opened}.new {opened}\n",
            opened = opened.display()
        ),
    );
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = binary();
    for variable in ["DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"] {
        command.env_remove(variable);
    }
    command
        .envs(display.iter().copied())
        .env("BROWSER", browser)
        .env("GIT_AUTHOR_NAME", "ana")
        .arg("--root")
        .arg(root.path())
        .arg("review");
    command
}

/// The last opened address, once it differs from `before`: the file that the browser is given leads
/// to it.
fn opened(root: &Root, before: &str) -> String {
    let since = Instant::now();
    loop {
        let page = fs::read_to_string(root.path().join("opened")).unwrap_or_default();
        let address = page.split_once("url=").map_or("", |(_, rest)| rest);
        let address = address.split('"').next().unwrap_or_default();
        if address.len() > 64 && address != before {
            return address.to_owned();
        }
        assert!(since.elapsed() < TIMEOUT, "nothing was opened");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn with_a_display_the_page_opens_and_the_end_keeps_unwritten_choices() {
    let root = waiting(2);
    let mut terminal = Session::start(review(&root, &[("DISPLAY", ":99")]));
    terminal.expect("the review page is open in your browser");
    let address = opened(&root, "");
    let desk = Desk::at(&address);
    // Other users see the browser's arguments. The file that they name is gone once it is used.
    let arguments = read_text(root.path().join("opened.arguments"));
    assert!(!arguments.contains("127.0.0.1") && fs::exists(&arguments).unwrap());
    let session = desk.enter();
    assert!(!fs::exists(&arguments).unwrap(), "{arguments}");
    let approve = json!({ "numbers": [0], "choice": { "do": "approve" } });
    session.tell("/choose", approve);
    // The page was closed by accident: Enter gives another address, and nothing is lost.
    terminal.press("\n").expect("http://127.0.0.1:");
    let again = Desk::at(&opened(&root, &address));
    let summary = again.enter().get("/summary");
    assert_eq!(summary["head"]["chosen"], 1, "{summary}");
    // What is not saved when it ends is in a file.
    terminal.interrupt().expect("1 decision is not written, and kept");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    let file = saved(&root).remove(0);
    decide(root.path(), &["review", "--apply", file.to_str().unwrap()]).ok();
    let log = read_text(root.scope_folder("alpha").join("decisions.jsonl"));
    let decision = Decision::parse(log.trim()).unwrap();
    assert_eq!(decision.verdict, Verdict::Approve);
}

#[test]
fn without_a_display_review_stays_in_the_terminal() {
    let root = waiting(2);
    let remote = [("DISPLAY", ":99"), ("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")];
    for display in [&[][..], &remote] {
        if cfg!(target_os = "macos") && display.is_empty() {
            continue;
        }
        let mut command = review(&root, display);
        command.env("TERM", "xterm");
        let mut terminal = Session::start(command);
        terminal.shows("0 of 2 decided").press("q");
        let (code, shown) = terminal.end();
        assert_eq!(code, Some(0), "{shown}");
        assert_lacks!(shown, "http://");
    }
    assert!(!root.path().join("opened").exists());
}
