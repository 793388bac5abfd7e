//! An upstream server as a process: one JSON message per line over its standard input and output.
//! It has its own process group, which ends with this process ([`super::guard`] ensures that even
//! if this process is killed).
//!
//! Lines are read here and not by rmcp, because other programs are not trusted: lines have a
//! maximum length, unsolicited messages have a budget, and results of calls stay raw JSON.

use std::collections::{HashMap, VecDeque};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rmcp::model::{
    ClientRequest, CustomResult, ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage,
    JsonRpcResponse, RequestId, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::MAX_MESSAGE_BYTES;
use super::guard::Guard;
use crate::settings::Connection;
use ack_api::text;

/// How many unsolicited bytes a server may send between two answers.
const MAX_UNSOLICITED_BYTES: usize = 8 << 20;
/// How much of the end of its standard error is kept.
const STDERR_TAIL_BYTES: usize = 2_048;
/// How much of each end of an overlong line is kept, to find which request it answers.
const TAIL_BYTES: usize = 160;
/// How long a process may take to exit after its input is closed, and again after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_millis(400);

/// The code of the error that replaces an answer that is too long.
pub const ANSWER_TOO_LONG: ErrorCode = ErrorCode(-32_098);

/// The error that replaces an answer that is too long.
pub fn too_long() -> ErrorData {
    ErrorData::new(
        ANSWER_TOO_LONG,
        format!("its answer is longer than {MAX_MESSAGE_BYTES} bytes"),
        None,
    )
}

/// A running process.
pub struct Process {
    child: Child,
    group: Option<Pid>,
    /// Ends the group if this process is killed.
    guard: Option<Guard>,
    errors: Arc<Mutex<VecDeque<u8>>>,
    /// Reads its standard error.
    drain: JoinHandle<()>,
    /// Why its output is no longer read.
    refused: Arc<Mutex<Option<String>>>,
}

/// Starts the process and returns its pipes as a transport.
///
/// # Errors
/// Why it could not be started.
pub fn start(connection: &Connection) -> Result<(Process, Pipe), String> {
    let Connection::Process {
        program,
        arguments,
        environment,
    } = connection
    else {
        return Err("it is not a process".to_owned());
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| {
        let program = text::line(&program.display().to_string(), 120);
        format!("`{program}` cannot be started: {error}")
    })?;
    let (Some(input), Some(output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("its pipes could not be opened".to_owned());
    };
    let group = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .map(Pid::from_raw);
    let guard = group.and_then(Guard::watch);
    let tail = Arc::new(Mutex::new(VecDeque::new()));
    let drain = tokio::spawn(drain(errors, Arc::clone(&tail)));
    let refused = Arc::new(Mutex::new(None));
    let pipe = Pipe {
        input: Arc::new(tokio::sync::Mutex::new(Some(input))),
        output: BufReader::new(output),
        line: Vec::new(),
        end: VecDeque::new(),
        dropped: 0,
        unsolicited_budget: MAX_UNSOLICITED_BYTES,
        pending: Arc::default(),
        refused: Arc::clone(&refused),
    };
    let process = Process {
        child,
        group,
        guard,
        errors: tail,
        drain,
        refused,
    };
    Ok((process, pipe))
}

/// Reads standard error to its end, so that the process never blocks on it. Keeps the tail.
async fn drain(mut errors: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0_u8; 4_096];
    while let Ok(read @ 1..) = errors.read(&mut buffer).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(buffer.iter().take(read));
        let excess = tail.len().saturating_sub(STDERR_TAIL_BYTES);
        tail.drain(..excess);
    }
}

impl Process {
    /// Ends the process and its group: closes its input (the transport was dropped), then sends
    /// SIGTERM, then SIGKILL. Returns how it ended.
    pub async fn end(mut self) -> String {
        let mut status = timeout(EXIT_TIMEOUT, self.child.wait())
            .await
            .ok()
            .and_then(Result::ok);
        if status.is_none() {
            self.signal(Signal::SIGTERM);
            status = timeout(EXIT_TIMEOUT, self.child.wait())
                .await
                .ok()
                .and_then(Result::ok);
        }
        let has_exited = status.is_some();
        self.signal(Signal::SIGKILL);
        if status.is_none() {
            status = timeout(EXIT_TIMEOUT, self.child.wait())
                .await
                .ok()
                .and_then(Result::ok);
        }
        // The process id may be reused from now on.
        self.group = None;
        drop(self.guard.take());
        // A process that left the group may keep standard error open.
        let _ = timeout(EXIT_TIMEOUT / 4, &mut self.drain).await;
        self.exit_reason(status.filter(|_| has_exited))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be empty.
            let _ = killpg(group, signal);
        }
    }

    fn exit_reason(&self, status: Option<ExitStatus>) -> String {
        if let Some(refused) = self
            .refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            return refused;
        }
        let ended = match status {
            Some(status) if status.success() => "it ended".to_owned(),
            Some(status) => format!("it ended with {status}"),
            None => "it closed its output".to_owned(),
        };
        let tail = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = String::from_utf8_lossy(&tail.iter().copied().collect::<Vec<u8>>()).into_owned();
        let last = tail
            .lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default();
        match text::line(last, 200) {
            last if last.is_empty() => ended,
            last => format!("{ended}; it said: {last}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// The transport over a process's input and output.
pub struct Pipe {
    input: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    output: BufReader<ChildStdout>,
    /// The part of the current line that has been read: `receive` may be dropped in the middle of a
    /// line.
    line: Vec<u8>,
    /// The end of an overlong line.
    end: VecDeque<u8>,
    /// How many bytes of an overlong line were dropped.
    dropped: usize,
    /// How many unsolicited bytes it may still send.
    unsolicited_budget: usize,
    /// The open requests. `true`: the result is kept as JSON.
    pending: Arc<Mutex<HashMap<RequestId, bool>>>,
    refused: Arc<Mutex<Option<String>>>,
}

enum Line {
    Whole(Vec<u8>),
    /// Its beginning and its end.
    TooLong(Vec<u8>, Vec<u8>),
}

impl Pipe {
    async fn read(&mut self) -> Option<Line> {
        loop {
            let available = self
                .output
                .fill_buf()
                .await
                .ok()
                .filter(|available| !available.is_empty())?;
            let newline = available.iter().position(|byte| *byte == b'\n');
            let piece = available
                .get(..newline.unwrap_or(available.len()))
                .unwrap_or_default();
            if self.dropped > 0 || self.line.len() + piece.len() > MAX_MESSAGE_BYTES {
                self.dropped += piece.len() + self.line.len().saturating_sub(TAIL_BYTES);
                if self.line.len() > TAIL_BYTES {
                    self.end
                        .extend(self.line.iter().skip(self.line.len() - TAIL_BYTES));
                }
                self.line.truncate(TAIL_BYTES);
                self.end
                    .extend(piece.iter().skip(piece.len().saturating_sub(TAIL_BYTES)));
                let excess = self.end.len().saturating_sub(TAIL_BYTES);
                self.end.drain(..excess);
                // The line may never end.
                if self.dropped > 64 * MAX_MESSAGE_BYTES {
                    self.refuse("it sent a line that does not end");
                    return None;
                }
            } else {
                self.line.extend_from_slice(piece);
            }
            let used = newline.map_or(available.len(), |newline| newline + 1);
            self.output.consume(used);
            if newline.is_some() {
                let line = std::mem::take(&mut self.line);
                if std::mem::take(&mut self.dropped) > 0 {
                    return Some(Line::TooLong(line, std::mem::take(&mut self.end).into()));
                }
                return Some(Line::Whole(line));
            }
        }
    }

    fn refuse(&self, reason: &str) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
    }

    /// Removes an open request. Returns whether its result is kept as JSON.
    fn take(&self, id: &RequestId) -> Option<bool> {
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id)
    }

    /// Parses a line as a message. `None` if it is not one, or if nothing needs it.
    fn message(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let mut value: Value = serde_json::from_slice(line).ok()?;
        if value.get("method").is_none()
            && let Some(id) = value.get("id").filter(|id| !id.is_null())
        {
            let id: RequestId = serde_json::from_value(id.clone()).ok()?;
            let keeps_raw = self.take(&id)?;
            if keeps_raw && let Some(result) = value.get_mut("result").map(Value::take) {
                return Some(ServerJsonRpcMessage::response(
                    ServerResult::CustomResult(CustomResult(result)),
                    id,
                ));
            }
        }
        let message: ServerJsonRpcMessage = serde_json::from_value(value).ok()?;
        match &message {
            JsonRpcMessage::Notification(notification) => {
                let is_relevant = matches!(
                    notification.notification,
                    ServerNotification::ToolListChangedNotification(_)
                );
                is_relevant.then_some(message)
            }
            _ => Some(message),
        }
    }
}

impl Transport<RoleClient> for Pipe {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message {
            let keeps_raw = matches!(
                request.request,
                ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_)
            );
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.insert(request.id.clone(), keeps_raw);
        }
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let Some(input) = input.as_mut() else {
                return Err(std::io::ErrorKind::NotConnected.into());
            };
            input.write_all(&line).await?;
            input.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let (length, message) = match self.read().await? {
                Line::Whole(line) => (line.len() + 1, self.message(&line)),
                Line::TooLong(start, end) => {
                    match answered_id(&start, &end).filter(|id| self.take(id).is_some()) {
                        Some(id) => (0, Some(ServerJsonRpcMessage::error(too_long(), Some(id)))),
                        None => {
                            self.refuse(&format!(
                                "it sent an unsolicited line of more than {MAX_MESSAGE_BYTES} bytes"
                            ));
                            return None;
                        }
                    }
                }
            };
            if matches!(
                message,
                Some(
                    JsonRpcMessage::Response(JsonRpcResponse { .. })
                        | JsonRpcMessage::Error(JsonRpcError { id: Some(_), .. })
                )
            ) {
                self.unsolicited_budget = MAX_UNSOLICITED_BYTES;
            } else {
                self.unsolicited_budget = self.unsolicited_budget.saturating_sub(length);
                if self.unsolicited_budget == 0 {
                    self.refuse(&format!(
                        "it sent {MAX_UNSOLICITED_BYTES} unsolicited bytes"
                    ));
                    return None;
                }
            }
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A writer may hold the lock forever.
        if let Ok(mut input) = timeout(EXIT_TIMEOUT / 4, self.input.lock()).await {
            input.take();
        }
        Ok(())
    }
}

/// Which request an overlong answer is for: `"id"` is before the result or after it.
fn answered_id(start: &[u8], end: &[u8]) -> Option<RequestId> {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        Some((
            digits.parse::<i64>().ok()?,
            text.get(digits.len()..)?.to_owned(),
        ))
    };
    let without_whitespace = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes)
            .split_whitespace()
            .collect::<String>()
    };
    let start = without_whitespace(start);
    let start = start.strip_prefix('{')?;
    let start = start.strip_prefix("\"jsonrpc\":\"2.0\",").unwrap_or(start);
    if let Some(rest) = start.strip_prefix("\"id\":") {
        let (id, rest) = number(rest)?;
        return rest.starts_with(',').then_some(RequestId::Number(id));
    }
    let end = without_whitespace(end);
    let end = end.strip_suffix('}')?;
    let end = end.strip_suffix(",\"jsonrpc\":\"2.0\"").unwrap_or(end);
    let (before, digits) = end.rsplit_once(":")?;
    let (id, rest) = number(digits)?;
    (before.ends_with(",\"id\"") && rest.is_empty()).then_some(RequestId::Number(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_of_a_long_answer_is_found_on_either_end() {
        let found = |start: &str, end: &str| answered_id(start.as_bytes(), end.as_bytes());
        let id = Some(RequestId::Number(7));
        assert_eq!(
            found(
                r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"#,
                r#"xx"}]}}"#
            ),
            id
        );
        assert_eq!(found(r#"{ "id": 7, "result": {"#, "x"), id);
        assert_eq!(
            found(
                r#"{"result":{"content":["#,
                r#"xx"}]},"jsonrpc":"2.0","id":7}"#
            ),
            id
        );
        assert_eq!(
            found(
                r#"{"result":{"content":["#,
                r#"xx"}]},"id":7,"jsonrpc":"2.0"}"#
            ),
            id
        );
        for (start, end) in [
            (
                r#"{"method":"notifications/message","params":{"#,
                r#""id":7}}"#,
            ),
            (r#"{"result":{"structuredContent":{"#, r#"{"id":7}}}"#),
            ("garbage", "garbage"),
            (r#"{"jsonrpc":"2.0","id":"#, ""),
        ] {
            assert_eq!(found(start, end), None, "{start} … {end}");
        }
    }
}
