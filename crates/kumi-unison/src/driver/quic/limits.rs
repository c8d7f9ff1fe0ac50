//! The limits of a server, and how QUIC is tuned.
//!
//! The windows fit a long fast path (4 MiB on one stream is 320 Mbit/s at 100 ms) and are at the same time what a
//! connection can make its peer buffer. Datagrams grow by probing: on an ordinary path the probes are lost and the size
//! stays, on loopback and between machines with jumbo frames a large message takes a quarter of the packets. A
//! connection begins with what a message of 64 KiB needs instead of ten packets, so that the first one does not wait
//! for acknowledgements; QUIC spreads it over the round trip, and backs off as ever when packets are lost. The peer is
//! asked to acknowledge every eleventh packet instead of every second: the acknowledgement then mostly rides along with
//! an answer and costs no packet of its own. The delay that it may have is short, because a sender whose window shrank
//! below eleven packets waits for it.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::congestion::CubicConfig;
use quinn::{AckFrequencyConfig, EndpointConfig, MtuDiscoveryConfig, TransportConfig, VarInt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::NetworkError;

/// The largest datagram tried. quinn hands the kernel up to ten at a time, and together they must stay below what one
/// UDP datagram may be, or the kernel refuses them all.
const MAX_UDP_PAYLOAD: u16 = 6400;
/// The initial congestion window.
const INITIAL_WINDOW: u64 = 72 * 1024;
/// The peer is asked to acknowledge after this many packets, or after this time.
const UNACKNOWLEDGED_PACKETS: u32 = 10;
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_millis(5);
/// QUIC counts idle time in milliseconds, and 0 as none.
const SHORTEST_IDLE: Duration = Duration::from_millis(1);
/// The send window: bytes written and not acknowledged, per connection.
const SEND_WINDOW: u64 = 16 * 1024 * 1024;
/// The smallest window of a connection.
const MIN_SHARE: usize = 16 * 1024;
/// The socket buffer size that is requested; the kernel may grant less.
const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// The setters of [`Tuning`], for options that have it as their field `tuning`.
macro_rules! tuning_setters {
    () => {
        /// Bytes of the peer's messages, per connection, that may be unread; and as many that may be unfinished; and as
        /// many of whole ones that wait or are being answered. Default: 32 MiB.
        #[must_use]
        pub fn max_buffered_bytes(mut self, bytes: usize) -> Self {
            self.tuning.max_buffered_bytes = bytes;
            self
        }

        /// How long a connection may be silent before it counts as lost. Default: 30 s.
        #[must_use]
        pub fn idle_timeout(mut self, timeout: Duration) -> Self {
            self.tuning.idle_timeout = timeout;
            self
        }

        /// The interval of QUIC keep-alive packets on a silent connection; `None` sends none. Default: 10 s at a client,
        /// none at a server.
        #[must_use]
        pub fn keep_alive(mut self, interval: impl Into<Option<Duration>>) -> Self {
            self.tuning.keep_alive = interval.into();
            self
        }

        /// Whether larger datagrams than 1,200 bytes are tried on the path. That takes some ten packets of several KiB
        /// per connection, and makes large messages cheaper. Default: on.
        #[must_use]
        pub fn mtu_discovery(mut self, on: bool) -> Self {
            self.tuning.mtu_discovery = on;
            self
        }
    };
}
pub(super) use tuning_setters;

/// The limits of a server.
///
/// ```
/// use kumi_unison::ServerLimits;
/// let limits = ServerLimits::new().max_connections(100).max_streams(64);
/// assert!(format!("{limits:?}").contains("max_connections: 100"));
/// ```
#[derive(Clone, Debug)]
pub struct ServerLimits {
    pub(super) max_connections: usize,
    pub(super) max_handshakes: usize,
    pub(super) handshake_timeout: Duration,
    pub(super) max_streams: u32,
    pub(super) max_in_flight: usize,
    pub(super) max_total_bytes: usize,
    pub(super) min_connection_bytes: usize,
    pub(super) first_message_timeout: Duration,
    pub(super) tuning: Tuning,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            max_connections: 10_000,
            max_handshakes: 256,
            handshake_timeout: Duration::from_secs(10),
            max_streams: 1024,
            max_in_flight: 1024,
            max_total_bytes: 1024 * 1024 * 1024,
            min_connection_bytes: 64 * 1024,
            first_message_timeout: Duration::from_secs(10),
            tuning: Tuning::new(None),
        }
    }
}

impl ServerLimits {
    /// The default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Connections at a time. One more is refused before any cryptography. Default: 10,000.
    #[must_use]
    pub fn max_connections(mut self, limit: usize) -> Self {
        self.max_connections = limit;
        self
    }

    /// Handshakes at a time, at least 1. From half of it on, and from an eighth of it on for one source, a client has to
    /// prove its address with a round trip first. Beyond it, a client that has done so takes the place of the oldest
    /// handshake of the source that has the most. A source is an IPv4 address or a network of 64 bits. Default: 256.
    #[must_use]
    pub fn max_handshakes(mut self, limit: usize) -> Self {
        self.max_handshakes = limit;
        self
    }

    /// How long a handshake may take. Default: 10 s.
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Streams a client may have open at a time, per connection. Default: 1,024.
    #[must_use]
    pub fn max_streams(mut self, limit: u32) -> Self {
        self.max_streams = limit;
        self
    }

    /// Requests running at a time, per connection. Default: 1,024.
    #[must_use]
    pub fn max_in_flight(mut self, limit: usize) -> Self {
        self.max_in_flight = limit;
        self
    }

    /// Bytes that all connections of an endpoint may hold together, of everything that `max_buffered_bytes` limits for
    /// each, and of answers that clients have not taken yet. What goes beyond it is refused as what goes beyond a
    /// connection's limit: a request is answered as busy, an event or an unfinished message ends its stream. QUIC's buffers
    /// are not counted; those of all connections together are a quarter of this for each direction. Default: 1 GiB.
    #[must_use]
    pub fn max_total_bytes(mut self, bytes: usize) -> Self {
        self.max_total_bytes = bytes;
        self
    }

    /// Bytes that a connection may hold however much the others do; they do not count against `max_total_bytes`. QUIC's
    /// buffers for it are not smaller, in either direction. Default: 64 KiB.
    #[must_use]
    pub fn min_connection_bytes(mut self, bytes: usize) -> Self {
        self.min_connection_bytes = bytes;
        self
    }

    /// How long a stream may stay open without its first whole message. Default: 10 s.
    #[must_use]
    pub fn first_message_timeout(mut self, timeout: Duration) -> Self {
        self.first_message_timeout = timeout;
        self
    }

    tuning_setters!();

    /// The receive window of a connection when there are this many.
    pub(super) fn receive_window(&self, connections: usize) -> VarInt {
        let window = self.share(connections).min(self.tuning.max_buffered_bytes);
        VarInt::from_u32(u32::try_from(window).unwrap_or(u32::MAX))
    }

    /// The send window of a connection when there are this many.
    pub(super) fn send_window(&self, connections: usize) -> u64 {
        SEND_WINDOW.min(self.share(connections) as u64)
    }

    /// A quarter of `max_total_bytes`, divided between this many connections.
    fn share(&self, connections: usize) -> usize {
        let part = self.max_total_bytes / 4 / connections.max(1);
        part.max(self.min_connection_bytes).max(MIN_SHARE)
    }
}

/// The options of QUIC connections that clients and servers have in common.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    pub(super) max_buffered_bytes: usize,
    pub(super) idle_timeout: Duration,
    pub(super) keep_alive: Option<Duration>,
    pub(super) mtu_discovery: bool,
}

impl Tuning {
    pub(super) fn new(keep_alive: Option<Duration>) -> Tuning {
        Tuning {
            max_buffered_bytes: 32 * 1024 * 1024,
            idle_timeout: Duration::from_secs(30),
            keep_alive,
            mtu_discovery: true,
        }
    }

    /// QUIC's configuration, for a peer that may open this many streams.
    pub(super) fn config(&self, max_streams: u32) -> TransportConfig {
        let mut transport = transport_config(
            max_streams,
            self.max_buffered_bytes,
            self.idle_timeout,
            self.keep_alive,
        );
        if !self.mtu_discovery {
            transport.mtu_discovery_config(None);
        }
        transport
    }

    /// Whether a connection can work with these values.
    pub(super) fn check(&self) -> Result<(), NetworkError> {
        let rules = [
            (
                self.idle_timeout >= SHORTEST_IDLE,
                "idle_timeout is below 1 ms",
            ),
            (
                self.keep_alive.is_none_or(|interval| !interval.is_zero()),
                "keep_alive is zero; `None` switches it off",
            ),
            (self.max_buffered_bytes > 0, "max_buffered_bytes is zero"),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, broken)) => Err(NetworkError::Options((*broken).to_owned())),
            None => Ok(()),
        }
    }
}

/// The QUIC transport configuration of Unison, for programs that use quinn directly beside it or measure against it.
///
/// `max_streams` is how many streams the peer may open, `buffered_bytes` how much it may send ahead on all of them.
pub fn transport_config(
    max_streams: u32,
    buffered_bytes: usize,
    idle_timeout: Duration,
    keep_alive: Option<Duration>,
) -> TransportConfig {
    const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
    const DATAGRAM_BUFFER: usize = 1024 * 1024;
    let connection_window = u32::try_from(buffered_bytes).unwrap_or(u32::MAX);
    let mut congestion = CubicConfig::default();
    congestion.initial_window(INITIAL_WINDOW);
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(MAX_UDP_PAYLOAD);
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements
        .ack_eliciting_threshold(VarInt::from_u32(UNACKNOWLEDGED_PACKETS))
        .max_ack_delay(Some(ACKNOWLEDGE_WITHIN));

    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(max_streams))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW.min(connection_window)))
        .receive_window(VarInt::from_u32(connection_window))
        .send_window(SEND_WINDOW)
        .max_idle_timeout(idle_timeout.try_into().ok())
        .keep_alive_interval(keep_alive)
        .datagram_receive_buffer_size(Some(DATAGRAM_BUFFER))
        .datagram_send_buffer_size(DATAGRAM_BUFFER)
        .mtu_discovery_config(Some(mtu))
        .ack_frequency_config(Some(acknowledgements))
        .congestion_controller_factory(Arc::new(congestion));
    transport
}

/// The endpoint's part of the tuning: how large a datagram may come.
pub fn endpoint_config() -> EndpointConfig {
    let mut endpoint = EndpointConfig::default();
    // The only values refused are those below QUIC's minimum.
    let _ = endpoint.max_udp_payload_size(MAX_UDP_PAYLOAD);
    endpoint
}

/// A bound UDP socket with room for bursts. An IPv6 socket takes IPv6 only, so that both families can have a port.
pub fn bind_socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // What the kernel does not grant only costs speed.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_bind_on_loopback() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let socket = bind_socket(address.parse().unwrap()).unwrap();
            assert_ne!(socket.local_addr().unwrap().port(), 0);
        }
    }

    #[test]
    fn clients_may_send_ahead_less_the_more_of_them_there_are() {
        let limits = ServerLimits::default();
        let window = |connections| limits.receive_window(connections).into_inner();
        assert_eq!(window(1), 32 * 1024 * 1024);
        assert_eq!(window(1_024), 256 * 1024);
        assert_eq!(window(1_000_000), 64 * 1024);
    }

    #[test]
    fn less_may_be_written_to_each_client_the_more_of_them_there_are() {
        let limits = ServerLimits::default();
        assert_eq!(limits.send_window(1), 16 * 1024 * 1024);
        assert_eq!(limits.send_window(16), 16 * 1024 * 1024);
        assert_eq!(limits.send_window(1_024), 256 * 1024);
        assert_eq!(limits.send_window(10_000), 64 * 1024);
        let none = ServerLimits::new()
            .max_total_bytes(0)
            .min_connection_bytes(0);
        assert_eq!(none.send_window(1), 16 * 1024);
        assert_eq!(none.receive_window(1).into_inner(), 16 * 1024);
    }

    #[test]
    fn values_that_no_connection_works_with_are_an_error() {
        let tuning = || Tuning::new(None);
        let check = |tuning: Tuning, expected: &str| {
            let error = tuning.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        assert_eq!(tuning().check(), Ok(()));
        let idle_timeout = Duration::from_micros(999);
        check(
            Tuning {
                idle_timeout,
                ..tuning()
            },
            "idle_timeout",
        );
        check(Tuning::new(Some(Duration::ZERO)), "keep_alive");
        let max_buffered_bytes = 0;
        check(
            Tuning {
                max_buffered_bytes,
                ..tuning()
            },
            "max_buffered_bytes",
        );
    }

    #[test]
    fn ten_of_the_largest_datagrams_fit_into_one_send() {
        let endpoint = endpoint_config();
        assert!(endpoint.get_max_udp_payload_size() * 10 <= 65_507);
    }
}
