//! A stream in memory: a bounded queue of chunks with a reader and a writer.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::driver::channel::context::ConnectionContext;
use crate::driver::channel::{DatagramLink, TransportRecv, TransportSend};
use crate::error::{NetworkError, TransportError};

/// Bytes on the way from which a writer waits, as a QUIC stream's window makes it wait.
const CAPACITY: usize = 256 * 1024;

/// The largest datagram, about what an ordinary network lets QUIC send.
const MAX_DATAGRAM: usize = 1_200;

/// One direction of a stream: what was written and not read, and the tasks that wait.
#[derive(Debug, Default)]
struct Buffer {
    chunks: VecDeque<Bytes>,
    bytes: usize,
    end: Option<End>,
    /// The reader wants no more.
    stopped: Option<u32>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// The task that waits for `stopped`.
    watcher: Option<Waker>,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Finished,
    Reset(u32),
}

type SharedBuffer = Arc<Mutex<Buffer>>;

fn lock(buffer: &SharedBuffer) -> MutexGuard<'_, Buffer> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both ends of a bidirectional stream.
pub fn memory_stream() -> ((MemorySend, MemoryRecv), (MemorySend, MemoryRecv)) {
    let (there, back) = (SharedBuffer::default(), SharedBuffer::default());
    let near = (
        MemorySend {
            buffer: Arc::clone(&there),
            datagrams: None,
        },
        MemoryRecv {
            buffer: Arc::clone(&back),
        },
    );
    let far_send = MemorySend {
        buffer: back,
        datagrams: None,
    };
    let far = (far_send, MemoryRecv { buffer: there });
    (near, far)
}

/// The sending half of a stream in memory. Dropped without an end, the stream is reset.
#[derive(Debug)]
pub struct MemorySend {
    buffer: SharedBuffer,
    /// Where datagrams of this side go.
    datagrams: Option<Weak<ConnectionContext>>,
}

/// The receiving half of a stream in memory.
#[derive(Debug)]
pub struct MemoryRecv {
    buffer: SharedBuffer,
}

impl MemorySend {
    /// Delivers datagrams to the other side of the connection, as long as that exists.
    pub(super) fn with_datagrams(mut self, peer: &Arc<ConnectionContext>) -> Self {
        self.datagrams = Some(Arc::downgrade(peer));
        self
    }

    fn end(&mut self, end: End) {
        let waker = {
            let mut buffer = lock(&self.buffer);
            if buffer.end.is_some() {
                return;
            }
            if matches!(end, End::Reset(_)) {
                buffer.chunks.clear();
                buffer.bytes = 0;
            }
            buffer.end = Some(end);
            buffer.reader.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll_write(
        &mut self,
        chunk: &mut Bytes,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let waker = {
            let mut buffer = lock(&self.buffer);
            if let Some(code) = buffer.stopped {
                return Poll::Ready(Err(TransportError::Reset(u64::from(code))));
            }
            if buffer.end.is_some() {
                return Poll::Ready(Err(TransportError::Io("the stream has ended".to_owned())));
            }
            let room = CAPACITY.saturating_sub(buffer.bytes);
            if room == 0 {
                buffer.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let part = chunk.split_to(room.min(chunk.len()));
            buffer.bytes += part.len();
            if !part.is_empty() {
                buffer.chunks.push_back(part);
            }
            if !chunk.is_empty() {
                buffer.writer = Some(cx.waker().clone());
            }
            buffer.reader.take()
        };
        waker.into_iter().for_each(Waker::wake);
        if chunk.is_empty() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }
}

impl TransportSend for MemorySend {
    async fn write(&mut self, chunks: &mut [Bytes]) -> Result<(), TransportError> {
        for chunk in chunks {
            poll_fn(|cx| self.poll_write(chunk, cx)).await?;
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.end(End::Finished);
    }

    fn reset(&mut self, code: u32) {
        self.end(End::Reset(code));
    }

    fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let buffer = Arc::clone(&self.buffer);
        poll_fn(move |cx| {
            let mut buffer = lock(&buffer);
            if buffer.stopped.is_some() {
                return Poll::Ready(());
            }
            buffer.watcher = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    fn datagrams(&self) -> Option<Arc<dyn DatagramLink>> {
        let peer = self.datagrams.clone()?;
        Some(Arc::new(MemoryDatagrams { peer }))
    }
}

/// Datagrams to the other side. None is lost here but for want of a reader, and none is larger than a network's.
struct MemoryDatagrams {
    peer: Weak<ConnectionContext>,
}

impl DatagramLink for MemoryDatagrams {
    fn send(&self, packet: Bytes) -> Result<(), NetworkError> {
        if packet.len() > MAX_DATAGRAM {
            return Err(NetworkError::FrameTooLarge {
                len: packet.len(),
                max: MAX_DATAGRAM,
            });
        }
        let lost = NetworkError::connection_lost(false);
        self.peer.upgrade().ok_or(lost)?.deliver_datagram(packet);
        Ok(())
    }
}

impl Drop for MemorySend {
    fn drop(&mut self) {
        self.end(End::Reset(0));
    }
}

impl TransportRecv for MemoryRecv {
    async fn read(&mut self, into: &mut Vec<Bytes>) -> Result<bool, TransportError> {
        poll_fn(|cx| {
            let waker = {
                let mut buffer = lock(&self.buffer);
                if buffer.chunks.is_empty() {
                    return match buffer.end {
                        Some(End::Finished) => Poll::Ready(Ok(false)),
                        Some(End::Reset(code)) => {
                            Poll::Ready(Err(TransportError::Reset(u64::from(code))))
                        }
                        None => {
                            buffer.reader = Some(cx.waker().clone());
                            Poll::Pending
                        }
                    };
                }
                into.extend(buffer.chunks.drain(..));
                buffer.bytes = 0;
                buffer.writer.take()
            };
            waker.into_iter().for_each(Waker::wake);
            Poll::Ready(Ok(true))
        })
        .await
    }

    fn stop(&mut self, code: u32) {
        let wakers = {
            let mut buffer = lock(&self.buffer);
            buffer.stopped.get_or_insert(code);
            buffer.chunks.clear();
            buffer.bytes = 0;
            [buffer.writer.take(), buffer.watcher.take()]
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Drop for MemoryRecv {
    fn drop(&mut self) {
        self.stop(0);
    }
}
