//! One connection without a task of its own: bytes that are to go out, bytes that came in, moved when it is polled.
//!
//! The owner of a buffered stream appends all it has to send and polls once: one write sends it, and one read brings all that has
//! arrived. No channel and no task stand between the owner and its sockets. What the bytes mean is not known here.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::{RedisError, RedisResult, Value, cmd};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use super::exchange::{Exchange, broken};
use super::stream::Stream;
use crate::core::wire::{self, Said};

/// Bytes that are read at once, at least.
const READ_LEN: usize = 32 * 1024;

/// Bytes that may wait to be written. A server that reads no more counts as lost.
const OUTPUT_LIMIT: usize = 256 * 1024 * 1024;

/// What an output buffer keeps when it is empty.
const OUTPUT_KEPT: usize = 256 * 1024;

/// A connection and its two buffers.
pub(super) struct BufferedStream {
    stream: Stream,
    output: Vec<u8>,
    written: usize,
    flushed: bool,
    /// All of it is initialised; what was read and not yet consumed is `start..end`.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes that came in so far.
    arrived: u64,
    ended: bool,
    /// Why it ended, if the system or TLS said so.
    error: Option<io::Error>,
}

impl BufferedStream {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            output: Vec::new(),
            written: 0,
            flushed: true,
            input: vec![0; READ_LEN],
            start: 0,
            end: 0,
            arrived: 0,
            ended: false,
            error: None,
        }
    }

    /// Where to append what is to be sent; none if too much waits already.
    pub(super) fn output(&mut self) -> Option<&mut Vec<u8>> {
        let room = self.output.len() - self.written <= OUTPUT_LIMIT && !self.ended;
        room.then_some(&mut self.output)
    }

    /// What came in and was not consumed.
    pub(super) fn unread(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    /// Bytes that came in so far: a number that grows while the other side lives.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Nothing more will come, or go out. What is unread still counts.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Writes what goes without waiting.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        if !self.ended
            && let Poll::Ready(Err(error)) = self.poll_write(cx)
        {
            (self.ended, self.error) = (true, Some(error));
        }
    }

    /// Writes and reads what goes without waiting. Ready when something came in, or nothing will any more.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.ended {
            return Poll::Ready(());
        }
        let error = match (self.poll_write(cx), self.poll_read(cx)) {
            // What the server said before it closed tells more than that nothing can be written.
            (_, Poll::Ready(Err(error))) | (Poll::Ready(Err(error)), _) => Some(error),
            (_, Poll::Ready(Ok(0))) => None,
            (_, Poll::Ready(Ok(_))) => return Poll::Ready(()),
            (_, Poll::Pending) => return Poll::Pending,
        };
        (self.ended, self.error) = (true, error);
        Poll::Ready(())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.output.len() {
            let rest = &self.output[self.written..];
            let Poll::Ready(count) = Pin::new(&mut self.stream).poll_write(cx, rest)? else {
                return Poll::Pending;
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
            self.flushed = false;
        }
        if !self.flushed {
            self.output.clear();
            self.output.shrink_to(OUTPUT_KEPT);
            self.written = 0;
            self.flushed = Pin::new(&mut self.stream).poll_flush(cx)?.is_ready();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.make_room();
        let mut room = ReadBuf::new(&mut self.input[self.end..]);
        match Pin::new(&mut self.stream).poll_read(cx, &mut room)? {
            Poll::Ready(()) => {
                let count = room.filled().len();
                self.end += count;
                self.arrived += count as u64;
                Poll::Ready(Ok(count))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Makes room for a read: moves what is left to the front, and doubles the buffer while that is not enough. A
    /// buffer that grew for a large reply shrinks when all is read.
    fn make_room(&mut self) {
        if self.start == self.end && self.input.len() > READ_LEN {
            self.input.truncate(READ_LEN);
            self.input.shrink_to_fit();
        }
        if self.input.len() - self.end >= READ_LEN / 2 {
            return;
        }
        self.input.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.input.len() - self.end < READ_LEN / 2 {
            self.input.resize(self.input.len() * 2, 0);
        }
    }
}

/// A stream that one task has for itself: it asks and waits. A new connection is one until it is set up.
pub(super) struct Line {
    stream: BufferedStream,
    response_timeout: Duration,
}

impl Line {
    /// `response_timeout` is for each reply.
    pub(super) fn new(stream: Stream, response_timeout: Duration) -> Self {
        let stream = BufferedStream::new(stream);
        Self {
            stream,
            response_timeout,
        }
    }

    /// The socket, while no reply is outstanding.
    pub(super) fn into_socket(self) -> Stream {
        self.stream.stream
    }

    /// The connection as its owner polls it, with what is still unread.
    pub(super) fn into_stream(self) -> BufferedStream {
        self.stream
    }

    /// The next thing that is said: a reply, or the payload of a push.
    async fn said(&mut self) -> RedisResult<Result<Value, Vec<u8>>> {
        loop {
            if let Some((said, length)) = wire::said(self.stream.unread()).map_err(|_| broken())? {
                let said = match said {
                    Said::Reply(value) => Ok(value),
                    Said::Message { payload, .. } => Err(payload.to_vec()),
                };
                self.stream.consume(length);
                return Ok(said);
            }
            if self.stream.has_ended() {
                return Err(self
                    .stream
                    .error
                    .take()
                    .map_or_else(broken, RedisError::from));
            }
            poll_fn(|cx| self.stream.poll(cx)).await;
        }
    }

    /// Subscribes to one more pattern over channels.
    pub(super) async fn psubscribe(&mut self, pattern: &str) -> RedisResult<()> {
        let confirmed = self.query::<Value>(cmd("PSUBSCRIBE").arg(pattern)).await;
        confirmed.map(|_| ())
    }

    /// Waits for the next push: what it says happened. Nothing is lost if the future is dropped.
    pub(super) async fn push(&mut self) -> RedisResult<Vec<u8>> {
        loop {
            if let Err(payload) = self.said().await? {
                return Ok(payload);
            }
        }
    }
}

impl Exchange for Line {
    /// Pushes that come in between are dropped: a caller that subscribes looks for what it missed once it is subscribed to
    /// everything.
    async fn exchange(&mut self, packed: Vec<u8>, count: usize) -> RedisResult<Vec<Value>> {
        let output = self.stream.output().ok_or_else(broken)?;
        output.extend_from_slice(&packed);
        let limit = self.response_timeout;
        let exchange = async {
            let mut replies = Vec::with_capacity(count);
            while replies.len() < count {
                replies.extend(self.said().await?.ok());
            }
            Ok(replies)
        };
        match timeout(limit, exchange).await {
            Ok(replies) => replies,
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::*;

    fn pair() -> (BufferedStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        (BufferedStream::new(Box::new(ours)), theirs)
    }

    #[tokio::test]
    async fn all_that_was_appended_goes_out_in_one_write() {
        let (mut stream, mut server) = pair();
        for part in ["one ", "two ", "three"] {
            stream.output().expect("room").extend(part.bytes());
        }
        assert!(
            poll_fn(|cx| Poll::Ready(stream.poll(cx)))
                .await
                .is_pending()
        );
        let mut bytes = [0; 64];
        let count = server.read(&mut bytes).await.expect("a read");
        assert_eq!(&bytes[..count], b"one two three");
    }

    #[tokio::test]
    async fn a_reply_larger_than_the_buffer_arrives_whole() {
        let (mut stream, mut server) = pair();
        let sent: Vec<u8> = (0..5 * READ_LEN).map(|at| at as u8).collect();
        let writing = async { server.write_all(&sent).await.expect("a write") };
        let reading = async {
            while stream.unread().len() < sent.len() {
                poll_fn(|cx| stream.poll(cx)).await;
            }
        };
        tokio::join!(writing, reading);
        assert!(stream.unread() == sent);
        stream.consume(sent.len());
        drop(server);
        poll_fn(|cx| stream.poll(cx)).await;
        assert!(stream.has_ended());
        assert_eq!(stream.input.len(), READ_LEN);
    }
}
