//! Counters of a server's UDP socket.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

/// Datagrams and bytes of a server's socket since it was opened: everything that QUIC sends, handshakes, acknowledgements
/// and retransmissions included. Headers of UDP and IP are not in it: 28 bytes for each datagram with IPv4, 48 with IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Datagrams that were sent.
    pub sent_datagrams: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Datagrams that were received.
    pub received_datagrams: u64,
    /// Their bytes.
    pub received_bytes: u64,
}

/// The counters of one socket.
#[derive(Debug, Default)]
pub(super) struct Counted {
    sent_datagrams: AtomicU64,
    sent_bytes: AtomicU64,
    received_datagrams: AtomicU64,
    received_bytes: AtomicU64,
}

impl Counted {
    pub(super) fn snapshot(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            sent_datagrams: read(&self.sent_datagrams),
            sent_bytes: read(&self.sent_bytes),
            received_datagrams: read(&self.received_datagrams),
            received_bytes: read(&self.received_bytes),
        }
    }

    fn sent(&self, transmit: &Transmit<'_>) {
        let bytes = transmit.contents.len();
        let datagrams = transmit.segment_size.map_or(1, |size| pieces(bytes, size));
        self.sent_datagrams.fetch_add(datagrams, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn received(&self, meta: &RecvMeta) {
        let datagrams = pieces(meta.len, meta.stride);
        self.received_datagrams
            .fetch_add(datagrams, Ordering::Relaxed);
        self.received_bytes
            .fetch_add(meta.len as u64, Ordering::Relaxed);
    }
}

/// How many datagrams a segmented buffer holds: all but the last have this size.
fn pieces(bytes: usize, size: usize) -> u64 {
    bytes.div_ceil(size.max(1)).max(1) as u64
}

/// A UDP socket that counts datagrams and bytes.
#[derive(Debug)]
pub(super) struct CountingSocket {
    pub(super) socket: Arc<dyn AsyncUdpSocket>,
    pub(super) counted: Arc<Counted>,
}

impl AsyncUdpSocket for CountingSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.socket.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)?;
        self.counted.sent(transmit);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let polled = self.socket.poll_recv(cx, bufs, meta);
        if let Poll::Ready(Ok(count)) = polled {
            let received = meta.iter().take(count);
            received.for_each(|meta| self.counted.received(meta));
        }
        polled
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_are_sent_together_are_counted_one_by_one() {
        for (bytes, size, expected) in
            [(0, 1200, 1), (1, 1200, 1), (2400, 1200, 2), (2401, 1200, 3)]
        {
            assert_eq!(pieces(bytes, size), expected, "{bytes} of {size}");
        }
    }
}
