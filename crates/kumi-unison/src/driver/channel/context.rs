//! The state of one connection: the server's identity, the open channels, metrics and limits.
//!
//! Each part has a lock of its own, held for a few instructions: registering a channel never waits for a task that
//! reads the identity.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::core::{Budget, Share};
use crate::driver::channel::ChannelDriver;
use crate::driver::metrics::Metrics;
use crate::identity::{ChannelDirection, ServerIdentity};
use crate::wire::{
    Codec, FrameReader, HEADER_LEN, MessageType, PacketHeader, ProtocolMessage, decode_short,
    is_short,
};

/// Messages shorter than this do not wait for room.
pub(crate) const SHORT_MESSAGE: usize = 16 * 1024;

/// The longest event, unfolded, that a datagram may hold.
pub(crate) const MAX_DATAGRAM_PAYLOAD: usize = 64 * 1024;

/// Limits on what one connection may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Requests running at a time, over all channels.
    pub(crate) max_in_flight: usize,
    /// Bytes of incomplete frames, over all channels. The stream that exceeds it is reset: if it were only left unread, its
    /// bytes would use up the connection's window and block all streams. A kumi-unison peer waits before it sends so much.
    pub(crate) max_partial_bytes: usize,
    /// Bytes of whole messages, unfolded: requests that wait or run, and events that were not taken, over all channels. A
    /// request beyond it is refused as busy, an event ends its stream.
    pub(crate) max_held_bytes: usize,
    /// How long a stream may stay open without its first whole message.
    pub(crate) first_message_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_in_flight: 4_096,
            max_partial_bytes: 32 * 1024 * 1024,
            max_held_bytes: 32 * 1024 * 1024,
            first_message_timeout: Duration::from_secs(10),
        }
    }
}

impl ConnectionLimits {
    /// Requests running at a time, over all channels.
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = requests;
        self
    }

    /// Bytes of frames that were begun and not completed, over all channels.
    pub fn max_partial_bytes(mut self, bytes: usize) -> Self {
        self.max_partial_bytes = bytes;
        self
    }

    /// The bytes of requests in flight that this side allows itself, on the assumption that the peer has the same limits:
    /// three quarters of `max_held_bytes`, the rest being for events and cancelled requests.
    fn call_room(&self) -> usize {
        (self.max_held_bytes / 4 * 3).clamp(1, Semaphore::MAX_PERMITS)
    }

    /// Twice the bytes that a kumi-unison peer may have in flight: it may send new requests before the responses arrive.
    fn max_answer_bytes(&self) -> usize {
        self.max_held_bytes.saturating_mul(2)
    }

    /// As much as of long answers.
    fn max_unwritten_bytes(&self) -> usize {
        self.max_answer_bytes()
    }

    /// Half of `max_partial_bytes`; as many bytes again may be in flight.
    fn write_room(&self) -> usize {
        (self.max_partial_bytes / 2).clamp(1, Semaphore::MAX_PERMITS)
    }

    /// Bytes of whole messages that wait or are being answered, over all channels.
    pub fn max_held_bytes(mut self, bytes: usize) -> Self {
        self.max_held_bytes = bytes;
        self
    }

    /// How long a stream may stay open without its first whole message.
    pub fn first_message_timeout(mut self, timeout: Duration) -> Self {
        self.first_message_timeout = timeout;
        self
    }
}

/// An open channel, as its connection knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelHandle {
    /// The channel's name.
    pub channel_name: String,
    /// The stream it runs on.
    pub stream_id: u64,
    /// Which side starts messages on it.
    pub direction: ChannelDirection,
}

/// The counters and budgets of a connection. All connections of a client share one, because a persistent channel keeps its
/// charges from one connection to the next.
#[derive(Debug)]
pub(crate) struct Usage {
    metrics: Arc<Metrics>,
    running: AtomicUsize,
    partial_bytes: AtomicUsize,
    /// The endpoint's budget, which is charged too.
    share: Arc<Share>,
    budget: Arc<Budget>,
    /// Long responses of this side that the peer has not received.
    answers: Arc<Budget>,
    /// Other messages of this side that are not written.
    unwritten: Arc<Budget>,
    /// Bytes of requests of ours that may still be under way.
    call_room: Semaphore,
    /// Bytes that may still be written before others are.
    write_room: Semaphore,
}

impl Usage {
    pub(crate) fn new(limits: &ConnectionLimits, share: Arc<Share>) -> Arc<Self> {
        let budget = |limit_bytes| Arc::new(Budget::shared(limit_bytes, Arc::clone(&share)));
        Arc::new(Self {
            metrics: Arc::default(),
            running: AtomicUsize::new(0),
            partial_bytes: AtomicUsize::new(0),
            budget: budget(limits.max_held_bytes),
            answers: budget(limits.max_answer_bytes()),
            unwritten: budget(limits.max_unwritten_bytes()),
            call_room: Semaphore::new(limits.call_room()),
            write_room: Semaphore::new(limits.write_room()),
            share,
        })
    }
}

/// The state of one connection.
#[derive(Debug)]
pub struct ConnectionContext {
    /// The connection's name in logs.
    pub connection_id: Uuid,
    identity: Mutex<Option<ServerIdentity>>,
    peer: Mutex<Option<SocketAddr>>,
    /// What the peer showed, leaf first.
    peer_certificates: Mutex<Vec<Bytes>>,
    /// Whether the peer may open only channels that are open to guests.
    guest: AtomicBool,
    /// By a local number: two channels may have one name.
    channels: Mutex<HashMap<u64, Registered>>,
    next_key: AtomicUsize,
    codec: Arc<Codec>,
    limits: ConnectionLimits,
    usage: Arc<Usage>,
    draining: AtomicBool,
    /// This side has announced its shutdown.
    refusing: AtomicBool,
    /// Unreliable channels by the stream they were opened on, which is what their datagrams name.
    datagram_channels: Mutex<HashMap<u64, Weak<ChannelDriver>>>,
    /// Channels that the peer opened, by their streams, which is how calls on streams of their own name them.
    accepted: Mutex<HashMap<u64, Weak<ChannelDriver>>>,
    /// There is one more of them.
    was_accepted: Notify,
    /// Fires when the connection is to end.
    closing: CancellationToken,
}

#[derive(Debug)]
struct Registered {
    handle: ChannelHandle,
    driver: Weak<ChannelDriver>,
}

impl ConnectionContext {
    /// A context with default limits.
    pub fn new() -> Arc<Self> {
        Self::with(ConnectionLimits::default(), Arc::new(Codec::new()))
    }

    /// A context with these limits. An endpoint's connections share one codec.
    pub fn with(limits: ConnectionLimits, codec: Arc<Codec>) -> Arc<Self> {
        Self::with_usage(limits, codec, Usage::new(&limits, Share::unlimited()))
    }

    /// As [`Self::with`], for a connection that shares with others what it counts, or the budget of an endpoint.
    pub(crate) fn with_usage(
        limits: ConnectionLimits,
        codec: Arc<Codec>,
        usage: Arc<Usage>,
    ) -> Arc<Self> {
        Arc::new(Self {
            connection_id: Uuid::new_v4(),
            identity: Mutex::default(),
            peer: Mutex::default(),
            peer_certificates: Mutex::default(),
            guest: AtomicBool::new(false),
            channels: Mutex::default(),
            next_key: AtomicUsize::new(0),
            codec,
            limits,
            usage,
            draining: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            datagram_channels: Mutex::default(),
            accepted: Mutex::default(),
            was_accepted: Notify::new(),
            closing: CancellationToken::new(),
        })
    }

    /// The identity of the server, once it has been received.
    pub fn identity(&self) -> Option<ServerIdentity> {
        lock(&self.identity).clone()
    }

    /// Sets the identity of the server.
    pub fn set_identity(&self, identity: ServerIdentity) {
        *lock(&self.identity) = Some(identity);
    }

    /// Changes the identity in place, if there is one.
    pub fn update_identity(&self, change: impl FnOnce(&mut ServerIdentity)) {
        if let Some(identity) = lock(&self.identity).as_mut() {
            change(identity);
        }
    }

    /// The peer's address, where the transport has addresses.
    pub fn peer(&self) -> Option<SocketAddr> {
        *lock(&self.peer)
    }

    /// Sets the peer's address.
    pub fn set_peer(&self, peer: SocketAddr) {
        *lock(&self.peer) = Some(peer);
    }

    /// The peer's verified certificates in DER form, leaf first. Empty in memory, and at a server that requires none of its
    /// clients.
    pub fn peer_certificates(&self) -> Vec<Bytes> {
        lock(&self.peer_certificates).clone()
    }

    /// The fingerprint of the peer's leaf certificate, by which a server with mutual TLS identifies a client.
    #[cfg(feature = "quic")]
    pub fn peer_fingerprint(&self) -> Option<crate::Fingerprint> {
        let certificates = lock(&self.peer_certificates);
        let leaf = certificates.first()?;
        Some(crate::Fingerprint::of(&leaf.as_ref().into()))
    }

    /// Whether the peer's own certificate names this host, a DNS name or an IP address, among its subject alternative
    /// names. False where the peer showed none.
    #[cfg(feature = "quic")]
    pub fn peer_is_host(&self, host: &str) -> bool {
        let certificates = lock(&self.peer_certificates);
        let leaf = certificates.first();
        leaf.is_some_and(|leaf| crate::tls::names::is_for_host(leaf, host))
    }

    /// The URIs among the subject alternative names of the peer's own certificate.
    #[cfg(feature = "quic")]
    pub fn peer_uris(&self) -> Vec<String> {
        let certificates = lock(&self.peer_certificates);
        let leaf = certificates.first();
        leaf.map(|leaf| crate::tls::names::uris(leaf))
            .unwrap_or_default()
    }

    /// Sets the peer's certificates.
    pub fn set_peer_certificates(&self, certificates: Vec<Bytes>) {
        *lock(&self.peer_certificates) = certificates;
    }

    /// Whether the peer is a guest, who may open only channels that are
    /// [open to guests](crate::ChannelRegistry::open_to_guests).
    pub fn is_guest(&self) -> bool {
        self.guest.load(Ordering::SeqCst)
    }

    /// Sets whether the peer is a guest. A transport calls this before the first stream.
    pub fn set_guest(&self, is_guest: bool) {
        self.guest.store(is_guest, Ordering::SeqCst);
    }

    /// The channels that are open now.
    pub fn channels(&self) -> Vec<ChannelHandle> {
        lock(&self.channels)
            .values()
            .map(|registered| registered.handle.clone())
            .collect()
    }

    /// An open channel of this name.
    pub fn channel(&self, name: &str) -> Option<ChannelHandle> {
        let channels = lock(&self.channels);
        let found = channels
            .values()
            .find(|registered| registered.handle.channel_name == name);
        found.map(|registered| registered.handle.clone())
    }

    /// What is counted; over all connections of a client since it was made.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.usage.metrics
    }

    /// The peer sent GOAWAY: requests that start from now on fail as draining.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        for driver in self.drivers() {
            driver.drain_there();
        }
    }

    /// This side sent GOAWAY: channels and requests of the peer are refused as draining from now on.
    pub fn refuse_requests(&self) {
        self.refusing.store(true, Ordering::SeqCst);
        for driver in self.drivers() {
            driver.drain_here();
        }
    }

    /// Requests running now, over all channels.
    pub fn running_requests(&self) -> usize {
        self.usage.running.load(Ordering::SeqCst)
    }

    /// Bytes of long answers that the peer does not have.
    pub fn answer_bytes(&self) -> usize {
        self.usage.answers.used_bytes()
    }

    /// Bytes of other messages than long answers that are queued and not written, over all channels. Each channel's are
    /// rounded up to KiB.
    pub fn unwritten_bytes(&self) -> usize {
        self.usage.unwritten.used_bytes()
    }

    /// Bytes of the peer's messages that wait here or are being answered.
    pub fn held_bytes(&self) -> usize {
        self.usage.budget.used_bytes()
    }

    /// Resolves when no request runs here and no call of ours waits for its answer.
    ///
    /// It polls at intervals: it is used once per connection, and so costs nothing while calls run.
    pub async fn idle(&self) {
        const ASK_AGAIN: Duration = Duration::from_millis(5);
        let is_busy = |driver: &Arc<ChannelDriver>| driver.is_busy();
        while self.running_requests() > 0 || self.drivers().iter().any(is_busy) {
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Resolves when no request runs here. It polls at intervals that grow.
    #[cfg(feature = "quic")]
    pub(crate) async fn requests_done(&self) {
        const ASK_AT_LEAST: Duration = Duration::from_millis(500);
        let mut ask_again = Duration::from_millis(2);
        while self.running_requests() > 0 {
            tokio::time::sleep(ask_again).await;
            ask_again = (ask_again * 2).min(ASK_AT_LEAST);
        }
    }

    /// Ends the connection, whichever side this is. Calls under way end as lost.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Fires when [`close`](Self::close) is called.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Resolves when [`close`](Self::close) was called. A transport waits for this.
    pub async fn close_requested(&self) {
        self.closing.cancelled().await;
    }

    /// Hands a datagram to the unreliable channel it names. What cannot be read, or names no such channel, is dropped
    /// and counted, as datagrams may be lost anyway.
    pub fn deliver_datagram(&self, packet: Bytes) {
        if self.try_deliver(packet).is_none() {
            self.usage.metrics.datagrams_dropped.increment();
        }
    }

    fn try_deliver(&self, packet: Bytes) -> Option<()> {
        if is_short(&packet) {
            let (stream_id, event) = decode_short(packet).ok()?;
            let driver = lock(&self.datagram_channels).get(&stream_id)?.upgrade()?;
            driver.receive_datagram(event);
            return Some(());
        }
        // The header names the channel and the length. A datagram without a receiver is dropped before it is decompressed.
        let header = PacketHeader::parse(packet.first_chunk::<HEADER_LEN>()?).ok()?;
        if header.payload_len as usize > MAX_DATAGRAM_PAYLOAD {
            return None;
        }
        let driver = lock(&self.datagram_channels)
            .get(&header.stream_id)?
            .upgrade()?;
        driver.receive_datagram(decode_datagram(packet)?);
        Some(())
    }

    /// Registers a channel for the datagrams of its stream.
    pub(crate) fn route_datagrams(&self, stream_id: u64, driver: Weak<ChannelDriver>) {
        lock(&self.datagram_channels).insert(stream_id, driver);
    }

    /// The stream carries this channel no longer.
    pub(crate) fn forget_stream(&self, stream_id: u64, driver: *const ChannelDriver) {
        for streams in [&self.datagram_channels, &self.accepted] {
            let mut streams = lock(streams);
            if streams
                .get(&stream_id)
                .is_some_and(|known| known.as_ptr() == driver)
            {
                streams.remove(&stream_id);
            }
        }
    }

    /// Registers a channel that the peer opened, for calls on streams of their own.
    pub(crate) fn accept_channel(&self, stream_id: u64, driver: Weak<ChannelDriver>) {
        lock(&self.accepted).insert(stream_id, driver);
        self.was_accepted.notify_waiters();
    }

    /// The channel that the peer opened on a stream. Waits for it, because streams are not ordered: a call on a stream of its
    /// own may arrive before the opening of its channel.
    pub(crate) async fn accepted_on(&self, stream_id: u64) -> Arc<ChannelDriver> {
        loop {
            let accepted = self.was_accepted.notified();
            tokio::pin!(accepted);
            accepted.as_mut().enable();
            if let Some(driver) = lock(&self.accepted).get(&stream_id).and_then(Weak::upgrade) {
                return driver;
            }
            accepted.await;
        }
    }

    pub(crate) fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.usage.budget
    }

    /// What long answers are charged to until the peer has them.
    pub(crate) fn answers(&self) -> &Arc<Budget> {
        &self.usage.answers
    }

    /// What other messages are charged to until they are written.
    pub(crate) fn unwritten(&self) -> &Arc<Budget> {
        &self.usage.unwritten
    }

    /// Whether [`refuse_requests`](Self::refuse_requests) was called.
    pub(crate) fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::SeqCst)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    pub(crate) fn codec(&self) -> &Arc<Codec> {
        &self.codec
    }

    /// Adds an open channel; the key is for [`Self::remove_channel`].
    pub(crate) fn register_channel(
        &self,
        handle: ChannelHandle,
        driver: Weak<ChannelDriver>,
    ) -> u64 {
        let key = self.next_key.fetch_add(1, Ordering::Relaxed) as u64;
        let mut channels = lock(&self.channels);
        channels.insert(key, Registered { handle, driver });
        key
    }

    pub(crate) fn remove_channel(&self, key: u64) {
        lock(&self.channels).remove(&key);
    }

    /// Takes a place among the running requests.
    pub(crate) fn try_run(self: &Arc<Self>) -> Option<RunPermit> {
        let before = self.usage.running.fetch_add(1, Ordering::Relaxed);
        let permit = RunPermit(Arc::clone(self));
        (before < self.limits.max_in_flight).then_some(permit)
    }

    /// Waits until a request of this length may be under way beside the others that are. The peer holds each until it
    /// is answered, and refuses what it cannot hold. Calls that wait are served in order.
    pub(crate) async fn room_for_call(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        Self::room_in(&self.usage.call_room, self.limits.call_room(), bytes).await
    }

    /// Waits until bytes of this number may be written beside the others that are. The peer holds what it has of each
    /// message until it is whole, and cuts off a stream that makes it hold too much.
    pub(crate) async fn room_for_write(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        Self::room_in(&self.usage.write_room, self.limits.write_room(), bytes).await
    }

    async fn room_in(room: &Semaphore, most: usize, bytes: usize) -> Option<SemaphorePermit<'_>> {
        if bytes < SHORT_MESSAGE {
            return None;
        }
        let bytes = u32::try_from(bytes.min(most)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        room.acquire_many(bytes).await.ok()
    }

    /// Replaces `before` bytes of incomplete frames by `after`. False when the limit forbids it; `before` is given back
    /// then too.
    pub(crate) fn exchange_partial(&self, before: usize, after: usize) -> bool {
        if before == after {
            return true;
        }
        let share = &self.usage.share;
        if after < before {
            share.give_back(before - after);
        } else if !share.take(after - before) {
            share.give_back(before);
            self.usage
                .partial_bytes
                .fetch_sub(before, Ordering::Relaxed);
            return false;
        }
        let total = self.usage.partial_bytes.fetch_add(after, Ordering::Relaxed) + after;
        self.usage
            .partial_bytes
            .fetch_sub(before, Ordering::Relaxed);
        if after > before && total - before > self.limits.max_partial_bytes {
            self.usage.partial_bytes.fetch_sub(after, Ordering::Relaxed);
            share.give_back(after);
            return false;
        }
        true
    }

    fn drivers(&self) -> Vec<Arc<ChannelDriver>> {
        lock(&self.channels)
            .values()
            .filter_map(|registered| registered.driver.upgrade())
            .collect()
    }
}

/// The event in a datagram: a whole packet, without the length that frames have.
fn decode_datagram(packet: Bytes) -> Option<ProtocolMessage> {
    let mut reader = FrameReader::detecting_legacy();
    reader.push(packet);
    let packet = match reader.next().ok()? {
        Some(packet) => packet,
        None => reader.end().ok()??,
    };
    let (event, _) = ProtocolMessage::decode(&packet.header, &packet.body).ok()?;
    (reader.is_legacy() && event.msg_type == MessageType::Event).then_some(event)
}

/// A place among a connection's running requests.
pub(crate) struct RunPermit(Arc<ConnectionContext>);

impl Drop for RunPermit {
    fn drop(&mut self) {
        self.0.usage.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
