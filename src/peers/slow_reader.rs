//! A connection that is closed if its client reads more slowly than a minimum rate. Otherwise a
//! client that sends requests and never reads would hold its connection and its answers in memory
//! forever.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Peer;

/// How slowly a client may read.
#[derive(Debug, Clone, Copy)]
pub struct ReadRate {
    /// How long it may take in any case.
    pub pause: Duration,
    /// Bytes per second that it must read after that.
    pub rate: u32,
}

/// A stream that fails if its client does not read.
pub struct SlowReaderGuard<S> {
    stream: S,
    peer: Arc<Peer>,
    pace: ReadRate,
    /// When the current write began, and how many bytes have been sent since.
    writing: Option<(Instant, usize)>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> SlowReaderGuard<S> {
    /// Wraps the stream of a connection.
    pub const fn new(stream: S, peer: Arc<Peer>, pace: ReadRate) -> Self {
        Self {
            stream,
            peer,
            pace,
            writing: None,
            alarm: None,
        }
    }

    fn begin(&mut self) {
        if self.writing.is_none() {
            self.writing = Some((Instant::now(), 0));
            self.peer.set_writing(true);
        }
    }

    fn end(&mut self) {
        if self.writing.take().is_some() {
            self.peer.set_writing(false);
        }
    }

    /// Counts the sent bytes. If none can be sent, waits until the rate is too low, then fails.
    fn check_rate(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<Result<usize>>,
    ) -> Poll<Result<usize>> {
        let (Poll::Pending, Some((begun, sent_bytes))) = (&result, self.writing) else {
            if let (Poll::Ready(Ok(count)), Some((_, sent_bytes))) =
                (&result, self.writing.as_mut())
            {
                *sent_bytes += count;
            }
            return result;
        };
        let max_time =
            self.pace.pause + Duration::from_secs(sent_bytes as u64) / self.pace.rate.max(1);
        let deadline = begun + max_time;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if alarm.deadline() != deadline {
            alarm.as_mut().reset(deadline);
        }
        ready!(alarm.as_mut().poll(context));
        Poll::Ready(Err(Error::new(
            ErrorKind::TimedOut,
            "the client does not read its answer",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SlowReaderGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SlowReaderGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.begin();
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_rate(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.begin();
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.check_rate(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.end();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
