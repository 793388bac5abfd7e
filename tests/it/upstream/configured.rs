//! `[upstream.NAME]` as its owner writes it: mistakes, and what `doctor` says.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Site, is_alive, until};
use crate::mcp::command;
use crate::support::Root;

#[test]
fn mistakes_in_upstream_are_named_with_line_and_key() {
    let tools = "tools = { a = \"b\" }\n";
    let declared = |schema: &str| {
        format!(
            "[upstream.x]\ncommand = [\"sh\"]\n[upstream.x.tools]\na = {{ name = \"b\", input_schema = {schema} }}\n"
        )
    };
    let cases = [
        ("nothing to reach", format!("[upstream.x]\n{tools}")),
        (
            "both",
            format!("[upstream.x]\n{tools}command = [\"sh\"]\nurl = \"http://localhost/mcp\"\n"),
        ),
        ("relative program", format!("[upstream.x]\ncommand = [\"bin/server\"]\n{tools}")),
        ("a command as one text", format!("[upstream.x]\ncommand = \"sh server\"\n{tools}")),
        (
            "relative folder",
            format!("[upstream.x]\ncommand = [\"sh\"]\ncwd = \"here\"\n{tools}"),
        ),
        ("no address", format!("[upstream.x]\nurl = \"localhost:80\"\n{tools}")),
        (
            "a user in the address",
            format!("[upstream.x]\nurl = \"http://me:secret@localhost/mcp\"\n{tools}"),
        ),
        (
            "key of the other kind",
            format!("[upstream.x]\nurl = \"http://localhost/mcp\"\nenv = {{ A = \"1\" }}\n{tools}"),
        ),
        (
            "header that is ours",
            format!("[upstream.x]\nurl = \"http://localhost/mcp\"\nheaders = {{ Host = \"x\" }}\n{tools}"),
        ),
        (
            "two tokens",
            format!("[upstream.x]\nurl = \"http://localhost/mcp\"\ntoken_env = \"A\"\ntoken_file = \"/a\"\n{tools}"),
        ),
        ("no tools", "[upstream.x]\ncommand = [\"sh\"]\n".to_owned()),
        (
            "name of ours",
            "[upstream.x]\ncommand = [\"sh\"]\n[upstream.x.tools]\nsearch = \"query_memories\"\n".to_owned(),
        ),
        (
            "one name twice",
            "[upstream.x]\ncommand = [\"sh\"]\ntools = { a = \"b\" }\n[upstream.y]\ncommand = [\"sh\"]\ntools = { c = \"b\" }\n".to_owned(),
        ),
        (
            "name that clients refuse",
            "[upstream.x]\ncommand = [\"sh\"]\n[upstream.x.tools]\na = { name = \"a b\" }\n".to_owned(),
        ),
        (
            "one argument twice",
            "[upstream.x]\ncommand = [\"sh\"]\ntools = { a = { name = \"b\", arguments = { c = \"d\", e = \"d\" } } }\n".to_owned(),
        ),
        (
            "a default that is fixed",
            "[upstream.x]\ncommand = [\"sh\"]\ntools = { a = { name = \"b\", defaults = { c = 1 }, preset = { c = 2 } } }\n".to_owned(),
        ),
        (
            "a description that is empty",
            "[upstream.x]\ncommand = [\"sh\"]\ntools = { a = { name = \"b\", description = \" \" } }\n".to_owned(),
        ),
        ("a schema of no object", declared("{ type = \"string\" }")),
        (
            "a union at the root",
            declared("{ type = \"object\", anyOf = [{ required = [\"q\"] }] }"),
        ),
        (
            "a property of no type",
            declared("{ type = \"object\", properties = { q = { type = \"text\" } } }"),
        ),
        (
            "a required property that is none",
            declared("{ type = \"object\", properties = { query = { type = \"string\" } }, required = [\"qery\"] }"),
        ),
        (
            "an argument that the schema has not",
            declared("{ type = \"object\", properties = { q = { type = \"string\" } } }, arguments = { p = \"word\" }"),
        ),
        (
            "a property with a fixed value",
            declared("{ type = \"object\", properties = { q = { type = \"string\" } } }, preset = { q = \"x\" }"),
        ),
        (
            "time out of bounds",
            format!("[upstream.x]\ncommand = [\"sh\"]\ntimeout_ms = 5\n{tools}"),
        ),
        ("unknown key", format!("[upstream.x]\ncomand = [\"sh\"]\n{tools}")),
        (
            "name of the server",
            format!("[upstream.\"my server\"]\ncommand = [\"sh\"]\n{tools}"),
        ),
    ];
    let mut report = String::new();
    for (what, text) in cases {
        let root = Root::new();
        std::fs::write(root.path().join("config.toml"), text).unwrap();
        let mut command = command(root.path());
        let output = command
            .stdin(Stdio::null())
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr)
            .unwrap()
            .replace(&root.path().display().to_string(), "ROOT");
        assert_eq!(output.status.code(), Some(2), "{what}: {stderr}");
        assert!(stderr.contains("line "), "{what}: {stderr}");
        assert!(!stderr.contains("secret@"), "{stderr}");
        report += &format!("# {what}\n{stderr}\n");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_description("generated by tests/it/upstream/configured.rs");
    settings.set_omit_expression(true);
    settings.set_snapshot_path("../snapshots");
    settings.bind(|| insta::assert_snapshot!("mistakes_in_upstream", report));
}

#[test]
fn doctor_reports_configured_upstreams_and_their_state() {
    let site = Site::new("plain", r#"echo = "page_echo", writes = "page_writes""#, "");
    let doctor = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
        for (variable, _) in ack_memory::internal::ENVIRONMENT {
            command.env_remove(variable);
        }
        let output = command
            .arg("--root")
            .arg(site.root.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let answer = doctor(&["doctor", "--verbose"]);
    assert!(
        answer.contains("upstream servers: 1") && answer.contains("page: sh with 3 arguments"),
        "{answer}"
    );
    assert!(
        site.lines("starts").is_empty(),
        "nothing is started without being asked for"
    );
    let answer: Value =
        serde_json::from_str(&doctor(&["--json", "doctor", "--upstreams"])).unwrap();
    let page = &answer["offer"]["upstreams"][0];
    assert_eq!(
        (&page["available"], &page["tools"]),
        (&json!(true), &json!(["page_echo"]))
    );
    assert!(
        page["problems"][0]
            .as_str()
            .unwrap()
            .contains("`writes` is not offered"),
        "{page}"
    );
    let processes = site.processes();
    until("the process is left", || {
        processes.iter().all(|process| !is_alive(*process))
    });
}
