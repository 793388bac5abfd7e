//! The server: it listens, accepts requests, logs them and injects the configured faults.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::http::header::{CONTENT_LENGTH, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::answer::{Reply, answer};
use crate::body::{self, Outgoing, Throttle};
use crate::dialect::Dialect;
use crate::log::{Entry, Log};
use crate::objects::Store;
use crate::refusal::Refusal;
use crate::route::Call;
use crate::switches::{Action, SwitchBoard};

/// The state that the server's threads and the test share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    pub(crate) store: Mutex<Store>,
    pub(crate) log: Log,
    pub(crate) switches: SwitchBoard,
    pub(crate) frozen: watch::Sender<bool>,
    pub(crate) upload_throttle: Throttle,
    pub(crate) download_throttle: Throttle,
}

impl Shared {
    pub(crate) fn new(name: &str, dialect: Dialect) -> Self {
        Self {
            name: name.to_owned(),
            dialect,
            store: Mutex::default(),
            log: Log::default(),
            switches: SwitchBoard::default(),
            frozen: watch::Sender::new(false),
            upload_throttle: Throttle::default(),
            download_throttle: Throttle::default(),
        }
    }

    /// Waits while the server is frozen.
    pub(crate) async fn thawed(&self) {
        let mut frozen = self.frozen.subscribe();
        // The sender lives as long as `self`.
        let _ = frozen.wait_for(|frozen| !frozen).await;
    }
}

/// The threads of a running server.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// `None` once it is dropped.
    runtime: Option<Runtime>,
    /// Accepts connections; `None` while the server is closed. Aborting it closes them.
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to listen on an address.
    ///
    /// # Errors
    /// The address is not available, or there are no threads.
    pub(crate) fn start(address: SocketAddr, shared: Arc<Shared>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("test-bucket")
            .enable_all()
            .build()?;
        let mut server = Self {
            address: listener.local_addr()?,
            shared,
            runtime: Some(runtime),
            accepting: None,
        };
        server.listen(listener)?;
        Ok(server)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens again after [`Self::close`].
    ///
    /// # Errors
    /// The address is not available.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        if self.accepting.is_some() {
            return Ok(());
        }
        self.listen(TcpListener::bind(self.address)?)
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        let Some(runtime) = &self.runtime else {
            return Ok(());
        };
        listener.set_nonblocking(true)?;
        let _entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        self.accepting = Some(runtime.spawn(accept(listener, Arc::clone(&self.shared))));
        Ok(())
    }

    /// Stops listening and closes every connection. Returns when that is done.
    pub(crate) fn close(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            while !accepting.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
        if let Some(runtime) = self.runtime.take() {
            // Waiting for the threads is not allowed if an async test drops the bucket.
            runtime.shutdown_background();
        }
    }
}

/// Accepts connections until it is aborted, which closes them.
async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => continue,
        };
        // Small answers are sent immediately.
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| handle(Arc::clone(&shared), request));
        connections.spawn(async move {
            // A client that disconnects is not an error of the server.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The connection is closed without an answer.
#[derive(Debug)]
struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("closed on purpose")
    }
}

impl std::error::Error for Closed {}

async fn handle(
    shared: Arc<Shared>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Outgoing>, Closed> {
    let (head, incoming) = request.into_parts();
    let call = Call::from(head);
    let entry = shared.log.add(call.logged());
    shared.thawed().await;
    let body = body::receive(&shared, incoming, &entry)
        .await
        .map_err(|_| Closed)?;
    tokio::time::sleep(shared.switches.change(|switches| switches.delay)).await;
    let action = shared.switches.decide(&entry.request());
    match action {
        Action::Close => return Err(Closed),
        Action::Hang => std::future::pending().await,
        Action::Delay(delay) => tokio::time::sleep(delay).await,
        _ => {}
    }
    shared.thawed().await;
    let outcome = match action {
        Action::Refuse(status) => Err(Refusal::InternalError(
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        )),
        _ => answer(&shared, &call, body),
    };
    if action == Action::LoseAnswer {
        return Err(Closed);
    }
    let id = format!("{:016X}", shared.log.number());
    let reply = outcome.unwrap_or_else(|refusal| Reply::refused(refusal, &call, &id));
    let cut = match action {
        Action::Cut(bytes) => Some(bytes),
        _ => shared.switches.change(|switches| switches.cut),
    };
    Ok(respond(&shared, entry, reply, &id, cut))
}

fn respond(
    shared: &Arc<Shared>,
    entry: Entry,
    reply: Reply,
    id: &str,
    cut: Option<u64>,
) -> Response<Outgoing> {
    entry.note(|request| request.status = Some(reply.status.as_u16()));
    let length = reply.body.len();
    let body = body::send(Arc::clone(shared), entry, reply.body, cut);
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    let headers = response.headers_mut();
    headers
        .entry(CONTENT_LENGTH)
        .or_insert(HeaderValue::from(length));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert("x-amz-request-id", id);
    }
    response
}
