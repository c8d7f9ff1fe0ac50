//! A QUIC stream as a channel's transport.
//!
//! Bytes are handed on in the chunks they arrived in, without copying. A large write gives way to small ones: quinn
//! sends streams by priority, so for as long as a stream has a large message to get rid of it is ranked below the
//! others of its connection, and a small call beside it waits for packets, not for megabytes.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use quinn::{Connection, ReadError, RecvStream, SendDatagramError, SendStream, VarInt, WriteError};

use super::link::lost;
use crate::{DatagramLink, NetworkError, TransportError, TransportRecv, TransportSend};

/// From this many bytes on a write gives way.
const BULK_BYTES: usize = 32 * 1024;
const BULK_PRIORITY: i32 = -1;
/// How many chunks one read takes, after a first one that shows what kind of stream it is.
const READ_CHUNKS: usize = 32;
const FIRST_READ_CHUNKS: usize = 4;

/// The sending half, with the connection it belongs to for the datagrams of unreliable channels.
pub(super) struct QuicSend {
    stream: SendStream,
    connection: Connection,
    bulk: bool,
}

impl QuicSend {
    pub(super) fn new(stream: SendStream, connection: &Connection) -> QuicSend {
        QuicSend {
            stream,
            connection: connection.clone(),
            bulk: false,
        }
    }

    fn rank(&mut self, bytes: usize) {
        let bulk = bytes >= BULK_BYTES;
        if bulk != self.bulk {
            self.bulk = bulk;
            // A closed stream has no rank, and the write that follows says that it is closed.
            let _ = self
                .stream
                .set_priority(if bulk { BULK_PRIORITY } else { 0 });
        }
    }
}

impl TransportSend for QuicSend {
    async fn write(&mut self, chunks: &mut [Bytes]) -> Result<(), TransportError> {
        self.rank(chunks.iter().map(Bytes::len).sum());
        self.stream
            .write_all_chunks(chunks)
            .await
            .map_err(write_error)
    }

    fn finish(&mut self) {
        // Finished or reset already: either way nothing more will be sent.
        let _ = self.stream.finish();
    }

    fn reset(&mut self, code: u32) {
        let _ = self.stream.reset(VarInt::from_u32(code));
    }

    async fn finished(&mut self) {
        let _ = self.stream.stopped().await;
    }

    fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let stopped = self.stream.stopped();
        async move {
            // Everything read to its end is no reason to stop.
            if let Ok(None) = stopped.await {
                std::future::pending().await
            }
        }
    }

    fn datagrams(&self) -> Option<Arc<dyn DatagramLink>> {
        Some(Arc::new(QuicDatagrams(self.connection.clone())))
    }
}

/// The datagrams of a connection.
struct QuicDatagrams(Connection);

impl DatagramLink for QuicDatagrams {
    fn send(&self, packet: Bytes) -> Result<(), NetworkError> {
        let len = packet.len();
        self.0.send_datagram(packet).map_err(|error| match error {
            SendDatagramError::ConnectionLost(error) => lost(error),
            // A peer that takes no datagrams takes none of any size.
            SendDatagramError::TooLarge
            | SendDatagramError::UnsupportedByPeer
            | SendDatagramError::Disabled => NetworkError::FrameTooLarge {
                len,
                max: self.0.max_datagram_size().unwrap_or(0),
            },
        })
    }
}

/// The receiving half.
pub(super) struct QuicRecv {
    stream: RecvStream,
    /// How many chunks the next read takes.
    chunks: usize,
}

impl QuicRecv {
    pub(super) fn new(stream: RecvStream) -> QuicRecv {
        QuicRecv {
            stream,
            chunks: FIRST_READ_CHUNKS,
        }
    }
}

impl TransportRecv for QuicRecv {
    async fn read(&mut self, into: &mut Vec<Bytes>) -> Result<bool, TransportError> {
        // Straight into the caller's list, since an array in this future would be moved about with each stream's task.
        // Chunks that stay empty when this is dropped say nothing to whoever takes the list.
        let start = into.len();
        into.resize(start + self.chunks, Bytes::new());
        let read = self.stream.read_chunks(&mut into[start..]).await;
        into.truncate(start + read.as_ref().map_or(0, |count| count.unwrap_or(0)));
        self.chunks = READ_CHUNKS;
        match read {
            Ok(Some(_)) => Ok(true),
            Ok(None) => Ok(false),
            Err(error) => Err(read_error(error)),
        }
    }

    fn stop(&mut self, code: u32) {
        let _ = self.stream.stop(VarInt::from_u32(code));
    }
}

fn write_error(error: WriteError) -> TransportError {
    match error {
        WriteError::Stopped(code) => TransportError::Reset(code.into_inner()),
        WriteError::ConnectionLost(error) => TransportError::ConnectionLost(error.to_string()),
        error => TransportError::Io(error.to_string()),
    }
}

fn read_error(error: ReadError) -> TransportError {
    match error {
        ReadError::Reset(code) => TransportError::Reset(code.into_inner()),
        ReadError::ConnectionLost(error) => TransportError::ConnectionLost(error.to_string()),
        error => TransportError::Io(error.to_string()),
    }
}
