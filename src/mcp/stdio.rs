//! Standard input and output as MCP's transport: one JSON message a line (MCP specification, "Transports", stdio).
//!
//! rmcp's own line transport answers a line it cannot decode without its id or not at all, and the client waits for ever.
//! This one decodes each line itself and answers a bad one with JSON-RPC's error (-32700 no JSON, -32600 no message, -32602
//! wrong parameters of `tools/call`) and the id, where there is one. It also tells the moment when standard input ends, so
//! that the process ends with it, and passes over what comes before the first request.

use std::sync::Arc;

use rmcp::model::JsonRpcMessage;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, watch};

/// Longest line, in bytes.
const LONGEST: usize = 16 << 20;

/// Becomes ready when standard input has ended.
pub struct Closed(watch::Receiver<bool>);

impl Closed {
    /// Waits for the end of standard input.
    pub async fn wait(&mut self) {
        // A dropped sender means that nobody reads any more, which is the end too.
        let _ = self.0.wait_for(|closed| *closed).await;
    }
}

/// The transport over this process's standard input and output.
pub fn transport() -> (impl Transport<RoleServer, Error = std::io::Error> + 'static, Closed) {
    let (reader, writer) = stdio_pipes();
    let (closed, receiver) = watch::channel(false);
    let lines = Lines {
        reader: BufReader::new(reader),
        writer: Arc::new(Mutex::new(writer)),
        closed,
        line: Vec::new(),
        too_long: false,
        ended: false,
        open: false,
    };
    (lines, Closed(receiver))
}

struct Lines {
    reader: BufReader<StdioReader>,
    writer: Arc<Mutex<StdioWriter>>,
    closed: watch::Sender<bool>,
    /// What has been read of the current line: a call of `receive` may be dropped in the middle of it.
    line: Vec<u8>,
    too_long: bool,
    ended: bool,
    /// A request has come. A notification or a stray response before it would end rmcp's handshake.
    open: bool,
}

impl Lines {
    /// Reads on until the line is complete; false at the end of input with nothing left.
    async fn read_line(&mut self) -> bool {
        while !self.ended {
            let Ok(available) = self.reader.fill_buf().await else {
                self.end();
                return false;
            };
            if available.is_empty() {
                self.end();
                // A last line may lack its end.
                return !self.line.is_empty();
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let piece = available.get(..newline.unwrap_or(available.len())).unwrap_or_default();
            if self.line.len() + piece.len() > LONGEST {
                self.too_long = true;
                self.line.clear();
            } else if !self.too_long {
                self.line.extend_from_slice(piece);
            }
            let used = newline.map_or(available.len(), |newline| newline + 1);
            self.reader.consume(used);
            if newline.is_some() {
                return true;
            }
        }
        false
    }

    fn end(&mut self) {
        self.ended = true;
        self.closed.send_replace(true);
    }
}

impl Transport<RoleServer> for Lines {
    type Error = std::io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move { write(&writer, &serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if !self.read_line().await {
                return None;
            }
            let line = std::mem::take(&mut self.line);
            let decoded = if std::mem::take(&mut self.too_long) {
                Err(Some(failure(&Value::Null, -32600, &format!("a line of more than {LONGEST} bytes"))))
            } else {
                decode(&line)
            };
            match decoded {
                Ok(message) => {
                    self.open |= matches!(message, JsonRpcMessage::Request(_));
                    if self.open {
                        return Some(message);
                    }
                }
                Err(Some(answer)) => {
                    let writer = Arc::clone(&self.writer);
                    // In a task of its own: this call may be dropped while it writes, and half a line must not stay.
                    tokio::spawn(async move { write(&writer, answer.to_string().as_bytes()).await });
                }
                Err(None) => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writer.lock().await.flush().await
    }
}

async fn write(writer: &Mutex<StdioWriter>, message: &[u8]) -> std::io::Result<()> {
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend_from_slice(message);
    line.push(b'\n');
    let mut writer = writer.lock().await;
    writer.write_all(&line).await?;
    writer.flush().await
}

/// Decodes a line; otherwise the answer it gets, if any: a notification that is not understood gets none.
fn decode(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Option<Value>> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Err(None);
    }
    let mended;
    let (line, value) = match serde_json::from_slice::<Value>(line) {
        Ok(value) => (line, value),
        Err(error) => {
            mended = mend_surrogates(line);
            let again = mended
                .as_deref()
                .and_then(|mended| Some((mended, serde_json::from_slice(mended).ok()?)));
            again.ok_or_else(|| Some(failure(&Value::Null, -32700, &format!("no JSON: {error}"))))?
        }
    };
    let id = value
        .get("id")
        .filter(|id| id.is_string() || id.is_number())
        .cloned()
        .unwrap_or(Value::Null);
    if value.get("method").and_then(Value::as_str) == Some("tools/call") && value.get("id").is_some() {
        let named = value.pointer("/params/name").is_some_and(Value::is_string);
        let arguments = value
            .pointer("/params/arguments")
            .is_none_or(|arguments| arguments.is_object() || arguments.is_null());
        if !named || !arguments {
            return Err(Some(failure(
                &id,
                -32602,
                "`params` of tools/call is an object with `name`, a string, and `arguments`, an object",
            )));
        }
    }
    serde_json::from_slice(line).map_err(|error| {
        let asked = value.get("id").is_some() || !value.is_object();
        asked.then(|| failure(&id, -32600, &format!("no message of this protocol: {error}")))
    })
}

fn failure(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": crate::text::line(message, 300) } })
}

/// Replaces escapes of half a character (`\ud83d` without its second half), which JavaScript writes for text that was cut
/// within an emoji, by the replacement character. `None` where there is none.
fn mend_surrogates(line: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| -> Option<u16> {
        let escape = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let mut out = line.to_vec();
    let (mut at, mut changed) = (0, false);
    while at < line.len() {
        if line.get(at) != Some(&b'\\') {
            at += 1;
            continue;
        }
        let whole = matches!(unit(at), Some(0xd800..=0xdbff)) && matches!(unit(at + 6), Some(0xdc00..=0xdfff));
        let half = !whole && matches!(unit(at), Some(0xd800..=0xdfff));
        if half && let Some(place) = out.get_mut(at + 2..at + 6) {
            place.copy_from_slice(b"fffd");
            changed = true;
        }
        at += if whole {
            12
        } else if unit(at).is_some() {
            6
        } else {
            2
        };
    }
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> (i64, Value) {
        let answer = decode(line.as_bytes()).unwrap_err().unwrap();
        (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone())
    }

    #[test]
    fn a_line_that_is_no_message_is_answered_with_its_id() {
        assert_eq!(answer("{nope"), (-32700, Value::Null));
        assert_eq!(
            answer(r#"{"jsonrpc":"2.0","id":77,"method":"tools/list","params":[1]}"#),
            (-32600, json!(77))
        );
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call"}"#), (-32602, json!("a")));
        assert_eq!(
            answer(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":"y"}}"#),
            (-32602, json!(1))
        );
        assert!(matches!(
            decode(br#"{"jsonrpc":"2.0","method":"$/strange","params":[]}"#),
            Err(None) | Ok(_)
        ));
    }

    #[test]
    fn half_a_character_is_replaced_and_a_whole_one_stays() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"query":"cut \ud83d \ud83d\ude00 \\ud83d"}}}"#;
        assert!(decode(line).is_ok());
        let mended = String::from_utf8(mend_surrogates(line).unwrap()).unwrap();
        assert!(mended.contains(r"cut \ufffd \ud83d\ude00 \\ud83d"), "{mended}");
        assert_eq!(mend_surrogates(br#"{"a":"\ud83d\ude00 plain"}"#), None);
    }
}
