//! The server: it listens, notes what arrives, and does what the test decided.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::Response;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::protocol::{Call, Reply};
use crate::{Action, Bucket, Shared};

/// How often a slow answer sends some bytes.
const SLOW_STEP: Duration = Duration::from_millis(20);

type Body = UnsyncBoxBody<Bytes, io::Error>;

impl Bucket {
    /// Starts a bucket on a free port of 127.0.0.1.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("test-bucket")
            .enable_all()
            .build()?;
        let mut bucket = Self {
            address: listener.local_addr()?,
            shared: Arc::default(),
            runtime: Some(runtime),
            accepting: None,
        };
        bucket.listen(listener)?;
        Ok(bucket)
    }

    /// The endpoint for clients, without the bucket's name.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Listens again, on the same address.
    pub fn open(&mut self) -> io::Result<()> {
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

    /// Stops listening and closes every connection. Returns when that is done. The objects stay.
    pub fn close(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            while !accepting.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

impl Drop for Bucket {
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
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| handle(Arc::clone(&shared), request));
        connections.spawn(async move {
            // A client that disconnects is not an error of the server.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Answers a request. An error closes the connection without an answer.
async fn handle(
    shared: Arc<Shared>,
    request: hyper::Request<Incoming>,
) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let mut call = Call::new(&head, body);
    let number = {
        let mut requests = shared.requests.lock();
        requests.push(call.request.clone());
        requests.len() - 1
    };
    let action = shared.decide(&call.request);
    match action {
        Action::Hang => std::future::pending().await,
        Action::Delay(delay) => tokio::time::sleep(delay).await,
        Action::IgnoreConditions => call.conditions.clear(),
        _ => {}
    }
    let reply = match action {
        Action::Refuse(status) => Reply::refusal(status, "Refused"),
        _ => call.answer(&shared.objects).await,
    };
    if action == Action::LoseAnswer {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    // The log may have been cleared meanwhile.
    if let Some(noted) = shared.requests.lock().get_mut(number) {
        noted.bytes_out = reply.body.len() as u64;
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    let per_second = match action {
        Action::Slow(bytes) => Some(bytes),
        _ => None,
    };
    let body = send(reply.body, per_second);
    response.body(body).map_err(io::Error::other)
}

/// A body, in pieces with pauses if only so many bytes may pass in a second.
fn send(body: Bytes, per_second: Option<u64>) -> Body {
    let steps_per_second = 1_000 / SLOW_STEP.as_millis().max(1);
    let piece = per_second.map_or(usize::MAX, |bytes| {
        usize::try_from(u128::from(bytes) / steps_per_second).unwrap_or(usize::MAX)
    });
    let pieces = stream::unfold(body, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        if per_second.is_some() {
            tokio::time::sleep(SLOW_STEP).await;
        }
        let next = rest.split_to(rest.len().min(piece.max(1)));
        Some((Ok(Frame::data(next)), rest))
    });
    StreamBody::new(pieces).boxed_unsync()
}
