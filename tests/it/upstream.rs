//! Other MCP servers as sources: the real binary in front of real servers, a second one of its own
//! and a script that misbehaves (`upstream.sh`).

mod calls;
mod configured;
mod offered;
mod peers;
mod process;
mod trouble;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::Server;
use crate::support::{Root, write_file};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A root whose `config.toml` names upstream servers, and the folder of the script's traces.
struct Site {
    root: Root,
    traces: TempDir,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/upstream.sh")
}

impl Site {
    /// One upstream server, the script, in this mode, with these further lines.
    fn new(mode: &str, tools: &str, more: &str) -> Self {
        let site = Self {
            root: Root::samples(),
            traces: tempfile::Builder::new().prefix("ack-traces-").tempdir().unwrap(),
        };
        site.configure(&format!(
            "[upstream.page]\ncommand = [\"sh\", \"{}\", \"{mode}\", \"{}\"]\ntools = {{ {tools} }}\n{more}\n",
            script().display(),
            site.traces.path().display()
        ));
        site
    }

    fn configure(&self, text: &str) {
        write_file(self.root.path().join("config.toml"), text);
    }

    fn serve(&self) -> Server {
        Server::initialized(self.root.path())
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.traces.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The processes of the script, and what they started.
    fn processes(&self) -> Vec<u32> {
        let started = self.lines("starts").into_iter().chain(self.lines("children"));
        started.map(|line| line.parse().unwrap()).collect()
    }
}

fn listed(server: &mut Server) -> Vec<Value> {
    let answer = server.request("tools/list", json!({}));
    answer["result"]["tools"].as_array().unwrap().clone()
}

fn names(server: &mut Server) -> Vec<String> {
    let tools = listed(server);
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn find<'a>(tools: &'a [Value], name: &str) -> &'a Value {
    tools
        .iter()
        .find(|tool| tool["name"] == name)
        .unwrap_or_else(|| panic!("{name} is not there: {tools:?}"))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn is_alive(process: u32) -> bool {
    // A process that has ended and was not waited for yet does not count.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    match stat {
        Ok(stat) => !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'),
        Err(_) if cfg!(target_os = "linux") => false,
        Err(_) => Command::new("kill")
            .args(["-0", &process.to_string()])
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success(),
    }
}

#[track_caller]
fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const OURS: [&str; 4] = ["get_context", "get_memory", "list_scopes", "query_memories"];
