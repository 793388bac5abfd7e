//! `connect` at a terminal, and without a client.

use crate::cli::{binary, run};
use crate::connect::{Home, contents};
use crate::terminal::Session;

#[test]
fn connect_asks_before_it_reads_an_answer() {
    let home = Home::new();
    let start = |out: &str| {
        let mut command = home.prepared(binary());
        command.args(["connect", "gemini"]);
        let out = std::fs::File::create(home.path(out)).unwrap();
        Session::with_output(command, out)
    };
    let mut terminal = start("refused");
    // The warnings come first.
    terminal.expect("trust").expect("Write this? [y/N] ");
    assert!(!home.path(".gemini").exists());
    terminal.press("\n");
    assert_eq!(terminal.end().0, Some(0));
    assert!(!home.path(".gemini").exists());
    let mut terminal = start("out");
    terminal.expect("Write this? [y/N] ").press("yes\n");
    assert_eq!(terminal.end().0, Some(0));
    assert_contains!(home.read(".gemini/settings.json"), "ack-memory");
    assert_contains!(home.read("out"), "gemini is connected"; "the question does not stand in the output");
    let mut command = home.prepared(binary());
    command.args(["disconnect", "gemini"]);
    let mut terminal = Session::start(command);
    terminal.answer("Write this? [y/N] ", "y\n").expect("gemini is disconnected");
    assert_eq!(terminal.end().0, Some(0));
    assert!(!home.path(".gemini").exists());
}

#[test]
fn connect_without_a_client_offers_every_installed_one() {
    let home = Home::new();
    assert_contains!(home.run(&["connect"]).ok(), "no known client is installed");
    home.write(".claude.json", "{}");
    home.write(".codex/config.toml", "model = \"x\"\n");
    home.write(".kiro/steering/a.md", "x");
    home.write("bin/opencode", "");
    let command = |arguments: &[&str]| {
        let mut command = home.prepared(binary());
        command.env("PATH", home.path("bin")).args(arguments);
        command
    };
    let before = contents(home.0.path());
    let shown = run(&mut command(&["connect"])).ok();
    let said = "installed: claude-code, codex, opencode, kiro\n";
    assert!(shown.starts_with(said), "{shown}");
    assert_eq!(contents(home.0.path()), before);
    let mut terminal = Session::start(command(&["connect"]));
    terminal.expect("quit it first").answer("[y/N] ", "y\n");
    // A client that cannot be changed does not stop the others.
    terminal.expect("claude-code is connected");
    terminal.answer("[y/N] ", "n\n").expect("nothing was written");
    terminal.answer("[y/N] ", "y\n").expect("opencode is connected");
    terminal.answer("[y/N] ", "y\n").expect("kiro is connected");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(home.read(".codex/config.toml"), "model = \"x\"\n");
    home.write(".codex/config.toml", "model = \n");
    let all = run(&mut command(&["connect", "--yes"]));
    assert_contains!(all.err, "config.toml");
    assert_eq!(all.code, Some(1));
    assert_contains!(all.out, "kiro is already connected");
}
