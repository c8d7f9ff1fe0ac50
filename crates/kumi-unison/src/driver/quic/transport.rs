//! A QUIC stream as a channel's transport.
//!
//! Received chunks are passed on without copying. Small writes go before large ones: quinn sends streams by priority, and a
//! stream with a large message has a lower priority than the others of its connection, so that a small call waits for
//! packets and not for megabytes. Large writes are sent one after the other, see [`Turns`]: interleaved packet by packet,
//! all of them would arrive late, and their readers would be woken for every packet.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use quinn::{Connection, ReadError, RecvStream, SendDatagramError, SendStream, VarInt, WriteError};
use rustls::pki_types::CertificateDer;

use super::closed::lost_to;
use crate::driver::{DatagramLink, TransportRecv, TransportSend};
use crate::{NetworkError, TransportError};

/// From this many bytes on, a write is large and has a lower priority.
const BULK_BYTES: usize = 32 * 1024;
/// A large write has the priority of one that begins one turn later for each of these, so that a message of many megabytes
/// delays later ones for a short time only.
const TURN_BYTES: usize = 64 * 1024;
/// The most chunks that one read takes, once a read took [`FIRST_READ_CHUNKS`].
const READ_CHUNKS: usize = 32;
const FIRST_READ_CHUNKS: usize = 4;

/// The order in which the large writes of a connection are sent. Each is overtaken by a bounded number of others, so none
/// waits forever. The numbers wrap around after 2^31, and a write that waits at that moment waits until the connection has
/// nothing else to send.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<AtomicU32>);

impl Turns {
    /// The priority of a write: below that of all small ones, which have 0, and of the large ones before it.
    fn next(&self, bytes: usize) -> i32 {
        let turn = self.0.fetch_add(1, Ordering::Relaxed);
        let passed_by = u32::try_from(bytes / TURN_BYTES).unwrap_or(u32::MAX);
        let turn = turn.wrapping_add(passed_by) % i32::MAX as u32;
        -1 - turn as i32
    }
}

/// The sending half, with the connection it belongs to for the datagrams of unreliable channels.
pub(super) struct QuicSend {
    stream: SendStream,
    connection: Connection,
    turns: Turns,
    is_bulk: bool,
}

impl QuicSend {
    pub(super) fn new(stream: SendStream, connection: &Connection, turns: &Turns) -> QuicSend {
        QuicSend {
            stream,
            connection: connection.clone(),
            turns: turns.clone(),
            is_bulk: false,
        }
    }

    fn rank(&mut self, bytes: usize) {
        let is_bulk = bytes >= BULK_BYTES;
        if is_bulk || self.is_bulk {
            self.is_bulk = is_bulk;
            let priority = if is_bulk { self.turns.next(bytes) } else { 0 };
            // A closed stream has no priority; the write below returns that error.
            let _ = self.stream.set_priority(priority);
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
        // An error means that it is finished or reset already.
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
            // The peer read the stream to its end: it was not stopped.
            if let Ok(None) = stopped.await {
                std::future::pending().await
            }
        }
    }

    fn datagrams(&self) -> Option<Arc<dyn DatagramLink>> {
        Some(Arc::new(QuicDatagrams(self.connection.clone())))
    }
}

/// The certificates that the peer sent in the handshake.
pub(super) fn peer_certificates(connection: &Connection) -> Vec<Bytes> {
    let shown = connection.peer_identity();
    let shown = shown.and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
    let shown = shown.map(|shown| *shown).unwrap_or_default();
    let copy = |certificate: &CertificateDer<'_>| Bytes::copy_from_slice(certificate);
    shown.iter().map(copy).collect()
}

/// The datagrams of a connection.
struct QuicDatagrams(Connection);

impl DatagramLink for QuicDatagrams {
    fn send(&self, packet: Bytes) -> Result<(), NetworkError> {
        let len = packet.len();
        self.0.send_datagram(packet).map_err(|error| match error {
            SendDatagramError::ConnectionLost(error) => lost_to(&self.0)(error),
            // A peer without datagrams has a limit of 0.
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
    /// The buffer of a read, empty between reads. Kept here so that it is not allocated for each read.
    chunks: Vec<Bytes>,
}

impl QuicRecv {
    pub(super) fn new(stream: RecvStream) -> QuicRecv {
        QuicRecv {
            stream,
            chunks: vec![Bytes::new(); FIRST_READ_CHUNKS],
        }
    }
}

impl TransportRecv for QuicRecv {
    async fn read(&mut self, into: &mut Vec<Bytes>) -> Result<bool, TransportError> {
        match self.stream.read_chunks(&mut self.chunks).await {
            Ok(Some(count)) => {
                into.extend(self.chunks[..count].iter_mut().map(std::mem::take));
                if count == FIRST_READ_CHUNKS {
                    self.chunks.resize(READ_CHUNKS, Bytes::new());
                }
                Ok(true)
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_writes_are_ranked_in_order_and_below_small_ones() {
        let turns = Turns::default();
        let first = turns.next(BULK_BYTES);
        assert!(first < 0);
        assert!(turns.next(BULK_BYTES) < first);
    }

    #[test]
    fn a_very_large_write_is_passed_by_a_bounded_number_of_others() {
        let turns = Turns::default();
        let large = turns.next(10 * TURN_BYTES);
        let passing = (0..100).filter(|_| turns.next(BULK_BYTES) > large).count();
        assert_eq!(passing, 9);
    }

    #[test]
    fn ranks_begin_anew_instead_of_overflowing() {
        let turns = Turns(Arc::new(AtomicU32::new(i32::MAX as u32 - 1)));
        assert_eq!(turns.next(BULK_BYTES), -i32::MAX);
        assert_eq!(turns.next(BULK_BYTES), -1);
        let turns = Turns(Arc::new(AtomicU32::new(u32::MAX)));
        assert!(turns.next(100 * TURN_BYTES) < 0);
    }
}
