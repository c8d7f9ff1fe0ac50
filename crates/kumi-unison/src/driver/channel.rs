//! Channels as an application uses them.
//!
//! A [`UnisonChannel`] carries requests, answers and events on one stream. It knows no transport: two tasks move bytes
//! between it and whatever implements [`TransportSend`] and [`TransportRecv`].

mod accept;
pub(crate) mod context;
mod driver;
mod events;
mod options;
mod service;
mod stream;
mod tasks;
mod transport;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::core::{Lane, Phase, after};
use crate::driver::channel::context::{ChannelHandle, ConnectionContext, SHORT_MESSAGE};
use crate::error::NetworkError;
use crate::payload::{Payload, TypedPayload};
use crate::trace::TraceContext;
use crate::wire::{FrameReader, ProtocolMessage};

pub(crate) use accept::{
    Accepted, First, Spoiled, answer_framed, answer_unframed, first_message, refuse, say_why,
};
pub(crate) use driver::ChannelDriver;
use driver::Terms;
pub use events::EventReceiver;
pub use options::{
    CallOptions, ChannelOptions, DEFAULT_DEADLINE, DEFAULT_FRAME_TIMEOUT, DEFAULT_MAX_IN_FLIGHT,
    DEFAULT_OPEN_TIMEOUT, OWN_STREAM_BYTES, StreamOpener,
};
pub use service::{IncomingRequest, Service};
pub use stream::{StreamHandle, SystemStream, UnisonStream};
pub(crate) use transport::reset_code;
pub use transport::{CLOSED_CODE, DatagramLink, RESET_CODE, TransportRecv, TransportSend};

/// A channel: requests in both directions, and events, on one stream.
///
/// Clones are the same channel; when the last is dropped, it closes. Every method takes `&self`, and any number of
/// calls may be under way at a time. Dropping a future of `request` or `call` cancels the call: the peer gets a CANCEL, and
/// the entry is gone. Dropping one of `recv` loses no event. Dropping one of `send_event` means the event was not sent.
#[derive(Debug, Clone)]
pub struct UnisonChannel {
    handle: Arc<Handle>,
}

/// Something that is dropped with the last handle.
#[cfg(feature = "quic")]
type Kept = Arc<dyn std::any::Any + Send + Sync>;

/// The state that clones share and the tasks do not: when it is dropped, the application has no handle any more.
pub(crate) struct Handle {
    driver: Arc<ChannelDriver>,
    /// On a stream for one call, its reader and writer, until the call takes them.
    moving: Mutex<Option<BoxFuture<'static, ()>>>,
    /// The client whose connection carries it, which a channel keeps alive.
    #[cfg(feature = "quic")]
    kept: std::sync::OnceLock<Kept>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("driver", &self.driver)
            .finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.driver.end(NetworkError::closed(), true);
    }
}

impl UnisonChannel {
    /// Opens the channel `name` on a fresh stream. The opening is queued, and requests may follow it at once; a refusal
    /// fails them. Must be called on a tokio runtime.
    ///
    /// # Errors
    /// When the name is too long to be one.
    pub fn open<S: TransportSend, R: TransportRecv>(
        send: S,
        recv: R,
        stream_id: u64,
        name: &str,
        options: ChannelOptions,
        context: &Arc<ConnectionContext>,
    ) -> Result<Self, NetworkError> {
        if let Some(carrier) = &options.part_of
            && !Arc::ptr_eq(&carrier.context, context)
        {
            // The connection changed meanwhile; stream ids are those of the new one.
            return Err(NetworkError::lost(false, context.peer()));
        }
        let driver = ChannelDriver::opener(name, stream_id, options, context)?;
        if driver.is_own_stream() {
            let moving = tasks::run_own_stream_call(Arc::clone(&driver), send, recv);
            return Ok(driver.channel_moved_by(Some(Box::pin(moving))));
        }
        let channel = driver.channel();
        tasks::start(&driver, send, recv, FrameReader::new());
        Ok(channel)
    }

    /// Resolves when the peer has acknowledged the channel.
    ///
    /// # Errors
    /// When it refused, or the channel ended otherwise.
    pub async fn opened(&self) -> Result<(), NetworkError> {
        self.driver()
            .wait_state(|phase| match phase {
                Phase::Opening { .. } | Phase::Lost => None,
                Phase::Open => Some(Ok(())),
                Phase::PeerDone => Some(Err(NetworkError::closed())),
                Phase::Ended { error, .. } => Some(Err(error.clone())),
            })
            .await
            .map_err(|error| self.driver().at_peer(error))
    }

    /// Sends a request with a JSON payload and waits for the response.
    ///
    /// # Errors
    /// When there is no response; [`NetworkError`] says for each failure whether the request may have been executed.
    pub async fn request(&self, method: &str, payload: Value) -> Result<Value, NetworkError> {
        self.request_json(method, &payload).await
    }

    /// As [`request`](Self::request), with types that serde converts to and from JSON.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn request_json<Q, A>(&self, method: &str, question: &Q) -> Result<A, NetworkError>
    where
        Q: Serialize + ?Sized,
        A: DeserializeOwned,
    {
        let payload = Payload::json(question)?;
        self.call(method, payload, CallOptions::new())
            .await?
            .to_json()
    }

    /// Sends a request with a payload of bytes and returns the response's bytes, whatever their content type.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn request_bytes(
        &self,
        method: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Bytes, NetworkError> {
        let payload = Payload::bytes(payload);
        Ok(self.call(method, payload, CallOptions::new()).await?.bytes)
    }

    /// Sends a request with a payload in typed binary and waits for the response.
    ///
    /// # Errors
    /// As [`request`](Self::request), and when the two sides' schemas are not the same.
    pub async fn request_typed<Q: TypedPayload, A: TypedPayload>(
        &self,
        method: &str,
        question: &Q,
    ) -> Result<A, NetworkError> {
        let payload = Payload::typed(question)?;
        self.call(method, payload, CallOptions::new())
            .await?
            .to_typed()
    }

    /// Sends a request with any payload and these options, and waits for the response.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn call(
        &self,
        method: &str,
        payload: Payload,
        options: CallOptions,
    ) -> Result<Payload, NetworkError> {
        let called = self.call_somewhere(method, payload, options).await;
        called.map_err(|error| self.driver().at_peer(error))
    }

    /// Calls on this stream or on one of its own, and again on the next connection if the options allow that.
    async fn call_somewhere(
        &self,
        method: &str,
        payload: Payload,
        options: CallOptions,
    ) -> Result<Payload, NetworkError> {
        let driver = self.driver();
        if driver.is_unreliable() {
            return Err(NetworkError::Unreliable);
        }
        let mut now = driver::now();
        let deadline = after(
            now,
            options.deadline.unwrap_or(driver.options.default_deadline),
        );
        let until = tokio::time::Instant::from_std(deadline);
        let _room = if payload.bytes.len() >= SHORT_MESSAGE {
            let room = driver.context.room_for_call(payload.bytes.len());
            let room = tokio::select! {
                biased;
                () = driver.lost(), if options.fail_fast => return Err(driver.not_sent()),
                room = tokio::time::timeout_at(until, room) => room,
            };
            room.map_err(|_| driver.not_sent_in_time())?
        } else {
            None
        };
        let trace = options.trace.or_else(TraceContext::current);
        let own_stream = options.own_stream || payload.bytes.len() >= OWN_STREAM_BYTES;
        let opener = driver.options.opener.as_ref().filter(|_| own_stream);
        loop {
            if options.fail_fast && driver.is_lost() {
                return Err(driver.not_sent());
            }
            let terms = Terms {
                now,
                deadline,
                trace,
                fail_fast: options.fail_fast,
            };
            let carrier = opener.map(|opener| (opener, driver.carrier()));
            let result = match &carrier {
                Some((opener, carrier)) => {
                    let options = driver.options.for_one_call(carrier.clone());
                    let opened = opener.open_stream(&self.name(), options);
                    self.call_on_part(opened, method, &payload, terms).await
                }
                None => driver.call(method, &payload, terms).await,
            };
            now = driver::now();
            match (&result, &carrier) {
                // A persistent channel waits for its next stream, as long as the deadline allows.
                (Err(NetworkError::ConnectionLost { maybe_executed, .. }), carrier)
                    if driver.options.is_persistent()
                        && (options.idempotent || !maybe_executed)
                        && !options.fail_fast
                        && now < deadline
                        && !self.is_ended() =>
                {
                    if let Some((_, carrier)) = carrier {
                        let next = tokio::time::timeout_at(until, driver.next_carrier(carrier));
                        if !next.await.unwrap_or(false) {
                            return result;
                        }
                        now = driver::now();
                    }
                }
                _ => return result,
            }
        }
    }

    /// Keeps something for as long as the application keeps the channel.
    #[cfg(feature = "quic")]
    pub(crate) fn keep(&self, kept: Kept) {
        let _ = self.handle.kept.set(kept);
    }

    /// One call of this channel on a stream of its own. It ends with the channel, as the others do.
    async fn call_on_part(
        &self,
        opened: BoxFuture<'static, Result<Self, NetworkError>>,
        method: &str,
        payload: &Payload,
        terms: Terms,
    ) -> Result<Payload, NetworkError> {
        let until = tokio::time::Instant::from_std(terms.deadline);
        let call = async {
            let opened = tokio::select! {
                biased;
                () = self.driver().lost(), if terms.fail_fast => return Err(self.driver().not_sent()),
                opened = tokio::time::timeout_at(until, opened) => opened,
            };
            let Ok(opened) = opened else {
                return Err(self.driver().not_sent_in_time());
            };
            opened?.call_apart(method, payload, terms).await
        };
        tokio::select! {
            biased;
            result = call => result,
            error = self.driver().ended() => Err(error),
        }
    }

    /// The one call of a stream of its own. This future runs the reader and the writer.
    async fn call_apart(
        &self,
        method: &str,
        payload: &Payload,
        terms: Terms,
    ) -> Result<Payload, NetworkError> {
        let mut moving = self
            .handle
            .moving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut answer = pin!(self.driver().call(method, payload, terms));
        poll_fn(|cx| {
            // First, so that the request is queued before the bytes move.
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            if moving
                .as_mut()
                .is_some_and(|moving| moving.as_mut().poll(cx).is_ready())
            {
                moving = None;
            }
            answer.as_mut().poll(cx)
        })
        .await
    }

    /// Sends an event with a JSON payload. Waits for credit if that is the channel's policy.
    ///
    /// # Errors
    /// When the channel is closed, or its policy closes it now.
    pub async fn send_event(&self, method: &str, payload: Value) -> Result<(), NetworkError> {
        self.send_payload(method, Payload::json(&payload)?).await
    }

    /// Sends an event with a payload that serde converts to JSON.
    ///
    /// # Errors
    /// As [`send_event`](Self::send_event).
    pub async fn send_event_json<E: Serialize + ?Sized>(
        &self,
        method: &str,
        event: &E,
    ) -> Result<(), NetworkError> {
        self.send_payload(method, Payload::json(event)?).await
    }

    /// Sends an event with a payload of bytes.
    ///
    /// # Errors
    /// As [`send_event`](Self::send_event).
    pub async fn send_event_bytes(
        &self,
        method: &str,
        payload: impl Into<Bytes>,
    ) -> Result<(), NetworkError> {
        self.send_payload(method, Payload::bytes(payload)).await
    }

    /// Sends an event with a payload in typed binary.
    ///
    /// # Errors
    /// As [`send_event`](Self::send_event), and when the two sides' schemas are not the same.
    pub async fn send_event_typed<E: TypedPayload>(
        &self,
        method: &str,
        event: &E,
    ) -> Result<(), NetworkError> {
        self.send_payload(method, Payload::typed(event)?).await
    }

    /// Sends an event with any payload.
    ///
    /// # Errors
    /// As [`send_event`](Self::send_event).
    pub async fn send_payload(&self, method: &str, payload: Payload) -> Result<(), NetworkError> {
        let sent = self.driver().send_event(method, &payload).await;
        sent.map_err(|error| self.driver().at_peer(error))
    }

    /// The next event that no [`events`](Self::events) stream takes. After a reconnection the first is a note of the
    /// runtime, see [`ProtocolMessage::is_resumed`].
    ///
    /// Once this was called, events that are not taken hold the window; see [`discard_events`](Self::discard_events). As
    /// long as it was not, and while an [`events`](Self::events) stream is waited on, the newest are kept up to half of the
    /// window; older ones are dropped and counted.
    ///
    /// # Errors
    /// When the channel ended, after all events that came before.
    pub async fn recv(&self) -> Result<ProtocolMessage, NetworkError> {
        let mut recv = Receiving {
            driver: self.driver(),
            waiting: None,
        };
        poll_fn(|cx| recv.driver.poll_event(Lane::Rest, &mut recv.waiting, cx)).await
    }

    /// The events of one name. While it lives, they go there instead of to [`recv`](Self::recv), those included that came
    /// before and were not taken. Its events hold the window until they are taken.
    pub fn events(&self, method: &str) -> EventReceiver {
        EventReceiver::new(Arc::clone(&self.handle), method)
    }

    /// Discards, from now on, every event that no [`events`](Self::events) stream takes, so that it holds no credit.
    pub fn discard_events(&self) {
        self.driver()
            .step_here(|core, effects| core.discard_rest(effects));
    }

    /// Responds to the peer's requests until the channel ends, those that were held included.
    ///
    /// # Errors
    /// When it ended otherwise than by being closed.
    pub async fn serve(&self, service: impl Service) -> Result<(), NetworkError> {
        self.set_service(service);
        match self.closed().await {
            NetworkError::Closed { .. } => Ok(()),
            error => Err(error),
        }
    }

    /// Responds to the peer's requests from now on, and returns at once.
    pub fn set_service(&self, service: impl Service) {
        self.driver().set_service(Arc::new(service));
    }

    /// Closes the channel: calls under way end as closed, what is queued is still sent.
    ///
    /// # Errors
    /// Never at present; a channel that ended before is closed already.
    pub async fn close(&self) -> Result<(), NetworkError> {
        self.driver().end(NetworkError::closed(), true);
        Ok(())
    }

    /// Ends the channel with this error, without another connection, for a transport that gave up.
    pub fn fail(&self, error: NetworkError) {
        self.driver().end(error, false);
    }

    /// Resolves when the channel has ended, with the reason.
    pub async fn closed(&self) -> NetworkError {
        let error = self.driver().ended().await;
        self.driver().at_peer(error)
    }

    /// Resolves when the stream under a persistent channel broke (true), or the channel ended (false).
    pub async fn lost(&self) -> bool {
        self.keeper().lost().await
    }

    /// Whether the stream under a persistent channel broke and was not replaced.
    pub fn is_lost(&self) -> bool {
        *self.driver().core().phase() == Phase::Lost
    }

    /// Gives a persistent channel that lost its stream a new one. The opening is sent again; when it is acknowledged,
    /// `recv` yields the note that it resumed.
    ///
    /// # Errors
    /// When the channel has a stream, or ended.
    pub fn reattach<S: TransportSend, R: TransportRecv>(
        &self,
        send: S,
        recv: R,
        stream_id: u64,
    ) -> Result<(), NetworkError> {
        let context = self.context();
        self.keeper().reattach(send, recv, stream_id, &context)
    }

    /// The channel as its transport keeps it.
    pub(crate) fn keeper(&self) -> Keeper {
        Keeper(Arc::clone(self.driver()))
    }

    /// Whether the channel ended.
    pub fn is_closed(&self) -> bool {
        self.is_ended()
    }

    /// The channel's name.
    pub fn name(&self) -> String {
        self.driver().core().name().to_owned()
    }

    /// The channel as its connection knows it.
    pub fn handle(&self) -> ChannelHandle {
        ChannelHandle {
            channel_name: self.name(),
            stream_id: self.driver().stream_id(),
            direction: self.driver().options.direction,
        }
    }

    /// The connection that carries it now; between two, the last. All connections of a client share what they count and
    /// hold.
    pub fn context(&self) -> Arc<ConnectionContext> {
        self.driver().carrier().context
    }

    /// Whether typed binary may be sent: both sides have the same schema, or neither has one. Known once
    /// [`opened`](Self::opened); before, this is false.
    pub fn typed_allowed(&self) -> bool {
        self.driver().core().typed_allowed().unwrap_or(false)
    }

    /// Whether this stream was opened for a single call.
    pub fn is_own_stream(&self) -> bool {
        self.driver().is_own_stream()
    }

    /// Calls of ours under way, calls given up that the peer has not answered, and requests of the peer not answered.
    pub fn load(&self) -> (usize, usize, usize) {
        self.driver().core().load()
    }

    /// The deadline of calls whose options have none.
    pub fn default_deadline(&self) -> Duration {
        self.driver().options.default_deadline
    }

    pub(crate) fn driver(&self) -> &Arc<ChannelDriver> {
        &self.handle.driver
    }

    fn is_ended(&self) -> bool {
        matches!(self.driver().core().phase(), Phase::Ended { .. })
    }
}

/// A waiting `recv`. Dropping it removes its waker.
struct Receiving<'a> {
    driver: &'a ChannelDriver,
    waiting: Option<u64>,
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.waiting {
            self.driver.core().stop_waiting(Lane::Rest, number);
        }
    }
}

/// A persistent channel as its transport keeps it: unlike a clone, this does not keep it open.
pub(crate) struct Keeper(Arc<ChannelDriver>);

impl Keeper {
    /// As [`UnisonChannel::lost`].
    pub(crate) async fn lost(&self) -> bool {
        self.0
            .wait_state(|phase| match phase {
                Phase::Lost => Some(true),
                Phase::Ended { .. } => Some(false),
                _ => None,
            })
            .await
    }

    /// As [`UnisonChannel::reattach`], to a stream of a connection that has a context of its own. All connections of a
    /// client share what they count and hold.
    pub(crate) fn reattach<S: TransportSend, R: TransportRecv>(
        &self,
        send: S,
        recv: R,
        stream_id: u64,
        context: &Arc<ConnectionContext>,
    ) -> Result<(), NetworkError> {
        let driver = &self.0;
        let (now, id) = (driver::now(), driver.next_id());
        driver
            .step_here(|core, effects| core.reattach(now, id, stream_id, context.peer(), effects))
            .0?;
        driver.set_stream_id(stream_id);
        driver.join(context);
        tasks::start(driver, send, recv, FrameReader::new());
        Ok(())
    }
}

#[cfg(feature = "quic")]
impl Keeper {
    /// As [`UnisonChannel::fail`].
    pub(crate) fn fail(&self, error: NetworkError) {
        self.0.end(error, false);
    }

    pub(crate) fn name(&self) -> String {
        self.0.core().name().to_owned()
    }

    /// The address of the peer that carried the channel last.
    pub(crate) fn peer(&self) -> Option<std::net::SocketAddr> {
        self.0.carrier().context.peer()
    }
}
