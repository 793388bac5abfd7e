//! The real server over its standard input and output, and the real command line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::millis;

/// A running server.
pub struct Server {
    child: Child,
    /// Its standard input.
    pub input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Server {
    /// Starts one over a root.
    pub fn start(root: &Path) -> Self {
        Self::start_binary(env!("CARGO_BIN_EXE_ack-memory"), root)
    }

    /// Starts one that was built from another state of the code.
    pub fn start_binary(binary: impl AsRef<OsStr>, root: &Path) -> Self {
        let mut child = Command::new(binary)
            .arg("--root")
            .arg(root)
            .arg("serve")
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, next: 0 }
    }

    /// The protocol's first messages.
    pub fn handshake(&mut self) {
        self.request(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } }),
        );
        writeln!(
            self.input.as_mut().unwrap(),
            "{}",
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
        )
        .unwrap();
    }

    /// One request, until its reply.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// One call of a tool, which must succeed.
    pub fn call(&mut self, tool: &str, arguments: &Value) {
        let reply = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_ne!(reply["result"]["isError"], json!(true), "{reply}");
    }

    /// Private memory (used by this process alone) and the peak of resident memory, in MiB.
    pub fn memory(&self) -> (f64, f64) {
        let read = |name: &str| {
            std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap_or_default()
        };
        let sum = |text: &str, keys: &[&str]| {
            let kib: f64 = text
                .lines()
                .filter(|line| keys.iter().any(|key| line.starts_with(key)))
                .filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok())
                .sum();
            kib / 1024.0
        };
        (
            sum(&read("smaps_rollup"), &["Private_Clean", "Private_Dirty"]),
            sum(&read("status"), &["VmHWM"]),
        )
    }

    /// The processor time it has used, in milliseconds.
    pub fn processor_time(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // User and system time, in hundredths of a second, behind the name in parentheses.
        let fields = stat.rsplit(')').next().unwrap().split_whitespace();
        let ticks = fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap());
        ticks.sum::<f64>() * 10.0
    }

    /// Closes standard input; returns the milliseconds until the process has ended.
    pub fn stop(&mut self) -> f64 {
        let started = Instant::now();
        self.input = None;
        self.child.wait().unwrap();
        millis(started.elapsed())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
