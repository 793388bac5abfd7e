//! How an upstream server runs as a process: what it is given, when it starts, and that it ends.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{OURS, Site, is_alive, listed, names, text, until};
use crate::mcp::{Server, command};

#[test]
fn only_named_environment_variables_are_passed_on() {
    let site = Site::new("plain", r#"env = "page_env""#, "env_from = [\"NAMED\"]");
    let mut command = command(site.root.path());
    command.env("NAMED", "1").env("SECRET", "2").env("HOME", "/nowhere");
    let mut server = Server::spawn(command);
    server.initialize("2025-06-18");
    let page = server.call("page_env", json!({}));
    let page = text(&page);
    let (variables, _) = page.split_once(" in ").unwrap();
    let variables: Vec<&str> = variables.split_whitespace().collect();
    for there in ["NAMED", "HOME", "PATH"] {
        assert!(variables.contains(&there), "{there}: {variables:?}");
    }
    let allowed = |name: &&&str| {
        ack_gateway::settings::INHERITED_VARIABLES.contains(*name)
            || ["NAMED", "PWD", "OLDPWD", "SHLVL", "_"].contains(*name)
    };
    let others: Vec<&&str> = variables.iter().filter(|name| !allowed(name)).collect();
    assert!(others.is_empty(), "{others:?}");
    // Without it, the server's tools are missing, and ours are there.
    let mut server = site.serve();
    assert_eq!(names(&mut server), OURS);
    let absent = server.fail("page_env", json!({}));
    assert_contains!(absent.message, "`NAMED` of `env_from` is not set");
}

#[test]
fn nothing_is_started_before_it_is_needed() {
    let site = Site::new("plain", r#"echo = "page_echo""#, "");
    let mut server = site.serve();
    server.call("query_memories", json!({ "query": "deadlock" }));
    assert!(site.lines("starts").is_empty());
    let started = Instant::now();
    let (took, ..) = server.close();
    assert!(took < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[test]
fn nothing_is_left_when_the_server_ends() {
    for how in ["input", "TERM"] {
        let site = Site::new("stubborn", r#"garbage = "page_garbage""#, "");
        let mut server = site.serve();
        assert_eq!(names(&mut server)[4..], ["page_garbage"]);
        let processes = site.processes();
        assert_eq!(processes.len(), 2, "the script and what it started");
        assert!(processes.iter().all(|process| is_alive(*process)));
        if how == "TERM" {
            let status =
                Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
            assert!(status.success());
            // The signal must end the server, not the end of its input, which follows.
            std::thread::sleep(Duration::from_millis(500));
        }
        let (took, status, _) = server.close();
        assert!(took < Duration::from_secs(4), "{how}: {took:?}");
        let wanted = if how == "TERM" { 143 } else { 0 };
        assert_eq!(status.code(), Some(wanted), "{how}: {status}");
        until("a process is left", || processes.iter().all(|process| !is_alive(*process)));
    }
}

#[test]
fn nothing_is_left_when_the_server_is_killed() {
    let site = Site::new("stubborn", r#"garbage = "page_garbage""#, "");
    let mut server = site.serve();
    assert_eq!(names(&mut server)[4..], ["page_garbage"]);
    let processes = site.processes();
    assert_eq!(processes.len(), 2, "the script and what it started");
    let guards = guards(processes[0]);
    assert_eq!(guards.len(), 1, "one guard stands beside it");
    let status = Command::new("kill").args(["-KILL", &server.id().to_string()]).status().unwrap();
    assert!(status.success());
    until("a process is left", || processes.iter().all(|process| !is_alive(*process)));
    until("the guard is left", || !is_alive(guards[0]));
}

#[test]
fn no_guard_outlives_its_server() {
    let site = Site::new("plain", r#"die = "page_die", garbage = "page_garbage""#, "");
    let mut server = site.serve();
    listed(&mut server);
    let first = site.processes()[0];
    let guard = guards(first)[0];
    server.fail("page_die", json!({}));
    until("the guard is left", || !is_alive(guard));
    until("it is not started again", || site.lines("starts").len() == 2);
    until("its guard is not there", || guards(site.processes()[1]).len() == 1);
    assert!(guards(first).is_empty());
}

/// The processes that watch over a process group.
fn guards(group: u32) -> Vec<u32> {
    let listed = Command::new("ps").args(["-eo", "pid=,args="]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let end = format!("ack-memory-guard {group}");
    let found = listed.lines().filter(|line| line.ends_with(&end));
    found.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
}
