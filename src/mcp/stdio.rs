//! Standard input and output as MCP's transport: one JSON message a line (MCP specification, "Transports", stdio).
//!
//! rmcp's line transport does the work. Around its reader stands [`Watched`], which tells the moment when standard input
//! ends, so that the process ends with it, and completes a last line without a line end.

use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::model::JsonRpcMessage;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

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
    let (sender, receiver) = watch::channel(false);
    let reader = Watched {
        reader,
        closed: sender,
        line_open: false,
        ended: false,
    };
    let lines = AsyncRwTransport::new_server(reader, writer);
    (Opened { lines, open: false }, Closed(receiver))
}

/// Passes over what comes before the first request: a notification or a stray response there would end rmcp's handshake,
/// and with it the server.
struct Opened<T> {
    lines: T,
    open: bool,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Opened<T> {
    type Error = T::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.lines.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.lines.receive().await?;
            self.open |= matches!(message, JsonRpcMessage::Request(_));
            if self.open {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.lines.close().await
    }
}

struct Watched<R> {
    reader: R,
    closed: watch::Sender<bool>,
    line_open: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut this.reader).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => {
                match buffer.filled().get(before..).and_then(<[u8]>::last) {
                    Some(last) => this.line_open = *last != b'\n',
                    None => {
                        this.ended = true;
                        this.closed.send_replace(true);
                        if this.line_open && buffer.remaining() > 0 {
                            buffer.put_slice(b"\n");
                        }
                    }
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => {
                this.ended = true;
                this.closed.send_replace(true);
                Poll::Ready(Err(error))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
