//! Streamable HTTP, the transport of the MCP specification ("Transports"), in both protocol eras.
//! Every request is a POST to `/mcp` and is answered on its own, without sessions. `/health` only
//! says that the server is running.
//!
//! rmcp answers the messages. This module handles what comes before: the gate rejects requests from
//! other sites and those without the token, and limits on connections, headers, bodies and answers
//! keep any client from blocking the server.

mod site;
pub mod tokens;

use ack_api::{Diagnostic, ErrorCode, Hint};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use self::site::Site;
use self::tokens::{TokenFile, TokensError};
use super::signals::EndSignals;
use super::{Server, runtime};
use crate::offer::Offer;
use ack_gateway::server::Report;
use ack_http::gate::{Gate, Token};
use ack_http::peers::{self, ConnectionLimits, Peer};
use ack_service::Service;

pub const PATH: &str = "/mcp";
pub const HEALTH: &str = "/health";
pub const READY: &str = "/ready";

/// How long running requests may still take once the server is stopped.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

/// The limits of one client, so that there is enough for the others.
#[derive(Debug, Clone, Copy)]
struct Limits {
    connection_limits: ConnectionLimits,
    body: Duration,
    bytes: usize,
    answer: Duration,
}

const DEFAULT_LIMITS: Limits = Limits {
    connection_limits: ConnectionLimits {
        max_total: 256,
        max_unknown: 96,
        unknown_timeout: Duration::from_secs(5),
        head_timeout: Duration::from_secs(30),
        unread_timeout: Duration::from_secs(10),
    },
    body: Duration::from_secs(10),
    bytes: 4 << 20,
    answer: Duration::from_secs(120),
};

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anyone who reaches it could read the memories.
    #[error(
        "listening on `{0}` without a token is refused: it is not a loopback address, so others \
         can reach it"
    )]
    Open(SocketAddr),
    #[error("`{0}` is in use by another program")]
    InUse(SocketAddr),
    #[error("cannot listen on `{address}`: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("the token in {place} cannot be used: {reason}")]
    Token { place: String, reason: String },
    #[error(transparent)]
    Tokens(#[from] TokensError),
    #[error("no home folder was found to keep a token in")]
    NoHome,
}

impl Diagnostic for ServeError {
    fn code(&self) -> ErrorCode {
        ErrorCode::CannotServe
    }

    fn hints(&self) -> Vec<Hint> {
        let advice = match self {
            Self::Open(_) => {
                "leave out --no-token, or listen on 127.0.0.1 and reach it through a tunnel"
            }
            Self::InUse(_) => {
                "perhaps it is another ack-memory; choose another port with `--http 127.0.0.1:PORT`, or `--http 127.0.0.1:0` for any free one"
            }
            Self::Listen { .. } => {
                "choose an address of this machine and a port above 1023, for instance `--http 127.0.0.1:7767`"
            }
            Self::Token { .. } => {
                "a token has at least 16 visible ASCII characters and no spaces; if this program \
                 created the file, delete it, and a new one is created"
            }
            Self::Tokens(_) => {
                return vec![
                    Hint::advice("each client has a table `[NAME]` with `hash`"),
                    Hint::command("token NAME --file FILE", "adds one"),
                ];
            }
            Self::NoHome => {
                "set HOME, give a token with --token-file or ACK_MEM_TOKEN, or pass --no-token"
            }
        };
        vec![Hint::advice(advice)]
    }
}

/// Additional options of a server for several people.
pub struct ServerExtras {
    /// The clients, each with its own token.
    pub tokens: Option<TokenFile>,
    /// Whether to build the indexes of shared scopes before the first request.
    pub warm: bool,
    /// Receives messages for the owner: problems and changes.
    pub report: Report,
}

/// A server that listens but does not answer yet.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    gate: Gate,
    limits: Limits,
    extras: ServerExtras,
}

/// Listens on an address. The host of a request must be loopback or one of `names`. The request
/// must carry the token, if there is one.
pub fn listen(
    address: SocketAddr,
    names: &[String],
    token: Option<Token>,
    extras: ServerExtras,
) -> Result<Listening, ServeError> {
    if !address.ip().is_loopback() && token.is_none() && extras.tokens.is_none() {
        return Err(ServeError::Open(address));
    }
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AddrInUse => ServeError::InUse(address),
        _ => ServeError::Listen { address, source },
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mut names = names.to_vec();
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    let gate = Gate::new(&names, token);
    Ok(Listening { listener, address, gate, limits: DEFAULT_LIMITS, extras })
}

impl Listening {
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until the process receives SIGINT, SIGTERM or SIGHUP. Running requests are
    /// finished first.
    pub fn serve(self, service: &'static Service, offer: Offer) -> std::io::Result<()> {
        let runtime = runtime()?;
        let result = runtime.block_on(async {
            // There is no stream from the server, so clients cannot be notified.
            let server = Server::new(service, offer, Arc::clone(&self.extras.report), false);
            let upstreams = Arc::clone(&server.upstreams);
            let result = self.accept(server).await;
            upstreams.end().await;
            result
        });
        // A request that is still running must not keep the process alive.
        runtime.shutdown_background();
        result
    }

    async fn accept(self, server: Server) -> std::io::Result<()> {
        let mut stop = EndSignals::new()?;
        let limits = self.limits.connection_limits;
        let site = Arc::new(Site::new(server, self.gate, self.limits, self.extras));
        let answer = move |request, peer: Arc<Peer>| {
            let site = Arc::clone(&site);
            async move { site.answer(request, &peer).await }
        };
        let (_, open) = peers::serve(self.listener, limits, stop.wait(), answer).await?;
        tokio::select! {
            () = open.shutdown() => {}
            () = tokio::time::sleep(SHUTDOWN_GRACE) => {}
            _ = stop.wait() => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    use super::*;
    use ack_service::config::{Config, Inputs, Setting};

    fn server(limits: Limits) -> (SocketAddr, JoinHandle<std::io::Result<()>>) {
        let root = std::env::temp_dir().join("ack-memory-nothing-here");
        let inputs = Inputs { root: Some(Setting::flag("--root", root)), ..Inputs::default() };
        let service = Service::new(Config::load(inputs).unwrap()).leak();
        let report: Report = Arc::new(|_| {});
        let extras = ServerExtras { tokens: None, warm: false, report: Arc::clone(&report) };
        let any_port = "127.0.0.1:0".parse().unwrap();
        let mut listening = listen(any_port, &[], None, extras).unwrap();
        listening.limits = limits;
        let server = Server::new(service, Offer::default(), report, false);
        (listening.address(), tokio::spawn(listening.accept(server)))
    }

    /// Writes the bytes, then reads until the server closes the connection.
    async fn exchange(stream: &mut TcpStream, bytes: &[u8]) -> String {
        stream.write_all(bytes).await.unwrap();
        let mut reply = Vec::new();
        timeout(Duration::from_secs(20), stream.read_to_end(&mut reply)).await.unwrap().unwrap();
        String::from_utf8(reply).unwrap()
    }

    #[tokio::test]
    async fn slow_and_oversized_requests_are_ended() {
        let short = Duration::from_millis(300);
        let mut limits = Limits { body: short, bytes: 1_000, ..DEFAULT_LIMITS };
        limits.connection_limits.head_timeout = short;
        let (address, server) = server(limits);
        let connect = || async { TcpStream::connect(address).await.unwrap() };
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
        // The client sends nothing, half a head, or half a body.
        assert_eq!(exchange(&mut connect().await, b"").await, "");
        let answer = exchange(&mut connect().await, head.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
        let half = format!("{head}Content-Length: 100\r\n\r\n{{");
        let answer = exchange(&mut connect().await, half.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        // A body whose declared length is too long, and one whose actual length is.
        let long = format!("{head}Content-Length: 1001\r\n\r\n");
        let answer = exchange(&mut connect().await, long.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("1000 bytes"), "{answer}");
        let body = "x".repeat(1_001);
        let chunk = format!("{head}Transfer-Encoding: chunked\r\n\r\n3e9\r\n{body}\r\n0\r\n\r\n");
        let answer = exchange(&mut connect().await, chunk.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        server.abort();
    }
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_client_that_reads_no_answers_is_disconnected() {
        let mut limits = DEFAULT_LIMITS;
        // Only the time for reading is short.
        limits.connection_limits.unread_timeout = Duration::from_millis(300);
        limits.connection_limits.unknown_timeout = Duration::from_secs(600);
        let (address, server) = server(limits);
        let mut stream = TcpStream::connect(address).await.unwrap();
        let requests = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
        let never_read = async { while stream.write_all(&requests).await.is_ok() {} };
        timeout(Duration::from_secs(60), never_read).await.unwrap();
        server.abort();
    }
}
