//! Standard input and output as MCP's transport: one JSON message a line (MCP specification, "Transports", stdio).
//!
//! rmcp's own line transport answers a line it cannot decode without its id or not at all, and the client waits for ever.
//! This one has each line decoded by [`super::message`] and sends the answer that a bad one gets. It also tells the moment
//! when standard input ends, so that the process ends with it, and passes over what is no request before the handshake is over.

use std::sync::Arc;

use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::io::stdio_pipes;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, watch};

use super::message::{LONGEST, decode, failure};

/// Becomes ready when standard input has ended.
pub struct Closed(watch::Receiver<bool>);

impl Closed {
    /// Waits for the end of standard input.
    pub async fn wait(&mut self) {
        // A dropped sender means that nobody reads any more, which is the end too.
        let _ = self.0.wait_for(|closed| *closed).await;
    }
}

/// This process's standard input and output.
pub fn pipes() -> (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static) {
    stdio_pipes()
}

/// The transport over a pair of streams, such as this process's standard input and output.
pub fn transport<R, W>(reader: R, writer: W) -> (impl Transport<RoleServer, Error = std::io::Error> + 'static, Closed)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
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

struct Lines<R, W> {
    reader: BufReader<R>,
    writer: Arc<Mutex<W>>,
    closed: watch::Sender<bool>,
    /// What has been read of the current line: a call of `receive` may be dropped in the middle of it.
    line: Vec<u8>,
    too_long: bool,
    ended: bool,
    /// The handshake is over. A notification or a stray response before that would end rmcp, and with it the process.
    open: bool,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
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

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
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
                    let request = match &message {
                        JsonRpcMessage::Request(request) => Some(&request.request),
                        _ => None,
                    };
                    self.open |= request.is_some_and(ends_the_handshake);
                    if self.open || request.is_some() {
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

/// Whether rmcp's handshake ends with this request: `initialize`, or any other that tells everything of its client itself.
/// It answers `ping` and `server/discover` and goes on waiting.
fn ends_the_handshake(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => {
            let meta = other.get_meta();
            let version = meta.protocol_version();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && version.is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}

async fn write(writer: &Mutex<impl AsyncWrite + Unpin>, message: &[u8]) -> std::io::Result<()> {
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend_from_slice(message);
    line.push(b'\n');
    let mut writer = writer.lock().await;
    writer.write_all(&line).await?;
    writer.flush().await
}
