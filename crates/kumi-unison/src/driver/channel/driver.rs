//! The driver of one channel: its core behind a lock, the signals for waiting tasks, the running handlers.
//!
//! The lock is held for the few instructions of one step, never across an await; wakers are woken after it.

mod answering;
mod carried;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::options::{Carrier, ChannelOptions};
use super::service::Service;
use super::transport::DatagramLink;
use super::{Handle, UnisonChannel};
use crate::core::{
    Core, Effects, IncomingCall, Lane, NewCall, Opening, Phase, Refused, after, event_message,
};
use crate::driver::channel::context::{ChannelHandle, ConnectionContext};
use crate::error::NetworkError;
use crate::payload::Payload;
use crate::trace::TraceContext;
use crate::wire::{Codec, Prepared, ProtocolMessage};

/// How many waiting requests are woken when there is room: enough to fill a write, few enough to avoid a thundering herd.
const SLOT_LISTENERS: usize = 64;

/// Runs the core of one channel. The tasks of its stream and the handles of the application share it.
pub(crate) struct ChannelDriver {
    core: Mutex<Core>,
    pub(super) context: Arc<ConnectionContext>,
    pub(super) options: ChannelOptions,
    /// Compresses long messages, unless the channel's options say not to.
    codec: Arc<Codec>,
    /// Ids of our requests on this channel, openings included.
    next_id: AtomicU64,
    /// Requests that found no room.
    slots: Gate,
    /// Events that found no credit.
    credits: Gate,
    /// Answers that found the output full, and how many there are.
    room: Notify,
    answers_waiting: AtomicUsize,
    /// The phase changed.
    state: Notify,
    service: Mutex<Option<Arc<dyn Service>>>,
    handle: OnceLock<Weak<Handle>>,
    /// The connection that lists the channel, and its number there.
    listed: Mutex<Option<(Arc<ConnectionContext>, u64)>>,
    stream_id: AtomicU64,
    /// The stream and the connection that carry it now.
    carrier: Mutex<Carrier>,
    /// The channel that this is one call of, where the peer opened it.
    whole: Option<Arc<ChannelDriver>>,
    own_stream: bool,
    /// Where an unreliable channel's events go.
    datagrams: Mutex<Option<Arc<dyn DatagramLink>>>,
}

/// A queue of senders that found no room. Only the first few are woken when there is room.
struct Gate {
    line: Semaphore,
    first: usize,
    signal: Notify,
}

impl Gate {
    /// `first` is how many are woken at a time. If it is more than one, they may overtake each other.
    fn new(first: usize) -> Self {
        Self {
            line: Semaphore::new(first),
            first,
            signal: Notify::new(),
        }
    }

    /// Whether no sender waits.
    fn is_free(&self) -> bool {
        self.line.available_permits() == self.first
    }

    /// Tries again each time there may be room, until it succeeds or fails with an error.
    async fn wait(
        &self,
        mut attempt: impl FnMut() -> Result<(), Refused>,
    ) -> Result<(), NetworkError> {
        // The semaphore is never closed.
        let _place = self.line.acquire().await;
        loop {
            let signal = self.signal.notified();
            tokio::pin!(signal);
            signal.as_mut().enable();
            match attempt() {
                Ok(()) => return Ok(()),
                Err(Refused::Error(error)) => return Err(error),
                Err(Refused::Full) => signal.await,
            }
        }
    }
}

impl std::fmt::Debug for ChannelDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let core = self.lock();
        f.debug_struct("ChannelDriver")
            .field("channel", &core.name())
            .field("phase", core.phase())
            .finish_non_exhaustive()
    }
}

/// The deadline and the other conditions of one call.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) now: Instant,
    pub(super) deadline: Instant,
    pub(super) trace: Option<TraceContext>,
    /// Whether it fails when there is no connection, instead of waiting for the next one.
    pub(super) fail_fast: bool,
}

/// Tokio's clock, so that tests can pause it.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn wall() -> (Instant, u64) {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (now(), since.as_nanos() as u64)
}

impl ChannelDriver {
    pub(super) fn opener(
        name: &str,
        stream_id: u64,
        options: ChannelOptions,
        context: &Arc<ConnectionContext>,
    ) -> Result<Arc<Self>, NetworkError> {
        let settings = options.settings(options.is_persistent(), context);
        let codec = options.codec(context);
        let core = Core::opener(settings, name, 1, stream_id, codec, wall())?;
        Ok(Self::new(core, stream_id, 2, options, context, None))
    }

    pub(super) fn acceptor(
        name: &str,
        (opening, opening_id): (&Opening, u64),
        stream_id: u64,
        options: ChannelOptions,
        context: &Arc<ConnectionContext>,
        whole: Option<Arc<ChannelDriver>>,
    ) -> Result<Arc<Self>, NetworkError> {
        let codec = options.codec(context);
        let settings = options.settings(false, context);
        let core = Core::acceptor(
            settings,
            name,
            opening,
            opening_id,
            stream_id,
            codec,
            wall(),
        )?;
        let is_whole = whole.is_none();
        let driver = Self::new(core, stream_id, 1, options, context, whole);
        if is_whole {
            context.accept_channel(stream_id, Arc::downgrade(&driver));
        }
        Ok(driver)
    }

    fn new(
        core: Core,
        stream_id: u64,
        next_id: u64,
        options: ChannelOptions,
        context: &Arc<ConnectionContext>,
        whole: Option<Arc<ChannelDriver>>,
    ) -> Arc<Self> {
        let handle = ChannelHandle {
            channel_name: core.name().to_owned(),
            stream_id,
            direction: options.direction,
        };
        let service = options.service.clone();
        let driver = Arc::new(Self {
            core: Mutex::new(core),
            context: Arc::clone(context),
            codec: options.codec(context),
            next_id: AtomicU64::new(next_id),
            slots: Gate::new(SLOT_LISTENERS),
            credits: Gate::new(1),
            room: Notify::new(),
            answers_waiting: AtomicUsize::new(0),
            state: Notify::new(),
            service: Mutex::new(None),
            handle: OnceLock::new(),
            listed: Mutex::new(None),
            stream_id: AtomicU64::new(stream_id),
            carrier: Mutex::new(Carrier {
                context: Arc::clone(context),
                stream_id,
            }),
            own_stream: whole.is_some() || options.part_of.is_some(),
            whole,
            datagrams: Mutex::new(None),
            options,
        });
        driver.list_in(context, handle);
        context.metrics().channels_opened.increment();
        if context.is_draining() {
            driver.drain_there();
        }
        if let Some(service) = service {
            driver.set_service(service);
        }
        driver
    }

    /// The application's handle. When the last clone is dropped, the channel closes.
    pub(super) fn channel(self: &Arc<Self>) -> UnisonChannel {
        self.channel_moved_by(None)
    }

    /// As [`Self::channel`], on a stream for one call, whose caller runs the reader and the writer.
    pub(super) fn channel_moved_by(
        self: &Arc<Self>,
        moving: Option<BoxFuture<'static, ()>>,
    ) -> UnisonChannel {
        let handle = Arc::new(Handle {
            driver: Arc::clone(self),
            moving: Mutex::new(moving),
            #[cfg(feature = "quic")]
            kept: OnceLock::new(),
        });
        let _ = self.handle.set(Arc::downgrade(&handle));
        UnisonChannel { handle }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one step of the core and its effects. Requests run in tasks of their own.
    pub(super) fn step<R>(self: &Arc<Self>, step: impl FnOnce(&mut Core, &mut Effects) -> R) -> R {
        let (result, calls) = self.step_here(step);
        for call in calls {
            let driver = Arc::clone(self);
            let mut call = Some(call);
            tokio::spawn(async move {
                let begin = |cx: &mut Context<'_>| {
                    let ready = call.take().and_then(|call| driver.run(call, cx));
                    driver.answer(ready.into_iter().collect());
                    Poll::Ready(())
                };
                poll_fn(begin).await
            });
        }
        result
    }

    /// Runs one step of the core and its effects, but for the requests to run, which the caller runs.
    pub(super) fn step_here<R>(
        &self,
        step: impl FnOnce(&mut Core, &mut Effects) -> R,
    ) -> (R, Vec<IncomingCall>) {
        let mut effects = Effects::default();
        let result = step(&mut self.lock(), &mut effects);
        let Effects {
            writer,
            reader,
            wakers,
            run,
            slots,
            credits,
            state,
            ended,
            counts,
        } = effects;
        if ended {
            self.forget_service();
            self.unlist();
        }
        if counts != Default::default() {
            self.count(&counts);
        }
        for waker in wakers.into_iter().chain(reader).chain(writer) {
            waker.wake();
        }
        if slots {
            self.slots.signal.notify_waiters();
        }
        if credits {
            self.credits.signal.notify_waiters();
        }
        if state {
            self.state.notify_waiters();
            self.room.notify_waiters();
        }
        (result, run)
    }

    fn count(&self, counts: &crate::core::Counts) {
        let metrics = self.context.metrics();
        let pairs = [
            (&metrics.requests_answered, counts.answered),
            (&metrics.requests_failed, counts.failed),
            (&metrics.requests_cancelled, counts.cancelled),
            (&metrics.late_answers, counts.late),
            (&metrics.requests_refused, counts.refused),
            (&metrics.cancels_received, counts.cancels_received),
            (&metrics.events_sent, counts.events_sent),
            (&metrics.events_dropped, counts.events_dropped),
            (&metrics.events_received, counts.events_received),
            (&metrics.events_discarded, counts.events_discarded),
            (&metrics.channels_resumed, counts.resumed),
        ];
        for (counter, count) in pairs {
            if count > 0 {
                counter.add(count);
            }
        }
    }

    /// Sends a request and waits for its response, at most until the deadline.
    pub(super) async fn call(
        &self,
        method: &str,
        payload: &Payload,
        terms: Terms,
    ) -> Result<Payload, NetworkError> {
        let Terms {
            now,
            deadline,
            trace,
            fail_fast,
        } = terms;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let call = NewCall {
            id,
            method,
            payload,
            deadline,
            trace,
        };
        let started = if self.slots.is_free() {
            self.start(now, &call)
        } else {
            Err(Refused::Full)
        };
        match started {
            Ok(()) => {}
            Err(Refused::Error(error)) => return Err(error),
            Err(Refused::Full) => self.start_when_possible(&call, fail_fast).await?,
        }
        self.context.metrics().requests_sent.increment();
        let open = true;
        Answer {
            driver: self,
            id,
            open,
        }
        .await
    }

    fn start(&self, now: Instant, call: &NewCall<'_>) -> Result<(), Refused> {
        if call.deadline <= now {
            return Err(Refused::Error(NetworkError::deadline()));
        }
        let outgoing = call.outgoing(now);
        let mut prepared = if outgoing.is_long() {
            // Encoded once, before waiting: a waiting sender tries several times.
            self.lock().check_start(call.payload.content_type)?;
            Some(outgoing.prepare(&self.codec)?)
        } else {
            None
        };
        self.step_here(|core, effects| core.start_call(now, call, &mut prepared, effects))
            .0
    }

    /// Waits for room, or for the next connection. The request is not sent while this waits.
    async fn start_when_possible(
        &self,
        call: &NewCall<'_>,
        fail_fast: bool,
    ) -> Result<(), NetworkError> {
        let line = self.slots.wait(|| self.start(now(), call));
        let deadline = tokio::time::Instant::from_std(call.deadline);
        let started = tokio::select! {
            biased;
            () = self.lost(), if fail_fast => return Err(self.not_sent()),
            started = tokio::time::timeout_at(deadline, line) => started,
        };
        match started {
            Ok(Err(NetworkError::Deadline { .. })) | Err(_) if self.is_lost() => {
                Err(self.not_sent())
            }
            Ok(result) => result,
            Err(_) => Err(NetworkError::deadline()),
        }
    }

    /// The error of a call that waited for a connection and was not sent.
    pub(super) fn not_sent(&self) -> NetworkError {
        NetworkError::lost(false, self.carrier().context.peer())
    }

    /// The error of a call whose deadline passed before it was sent.
    pub(super) fn not_sent_in_time(&self) -> NetworkError {
        if self.is_lost() {
            self.not_sent()
        } else {
            NetworkError::deadline()
        }
    }

    /// The error with the address of the peer that carried the channel last.
    pub(super) fn at_peer(&self, error: NetworkError) -> NetworkError {
        error.at(self.carrier().context.peer())
    }

    /// Resolves when there is no connection.
    pub(super) async fn lost(&self) {
        self.wait_state(|phase| matches!(phase, Phase::Lost).then_some(()))
            .await;
    }

    /// Resolves when there is a connection, or the channel has ended.
    async fn connected(&self) {
        let is_waiting = |phase: &Phase| matches!(phase, Phase::Lost | Phase::Opening { .. });
        self.wait_state(|phase| (!is_waiting(phase)).then_some(()))
            .await;
    }

    /// Whether there is no connection at the moment.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.lock().phase(), Phase::Lost)
    }

    /// Sends an event, waiting for credit if that is the policy.
    pub(super) async fn send_event(
        &self,
        method: &str,
        payload: &Payload,
    ) -> Result<(), NetworkError> {
        if method.starts_with(crate::core::methods::RESERVED) {
            return Err(NetworkError::Codec(
                "names that begin with __ are reserved".to_owned(),
            ));
        }
        if self.is_unreliable() {
            return self.send_datagram(method, payload);
        }
        let mut prepared = None;
        let mut send = || self.try_event(method, payload, &mut prepared);
        if self.credits.is_free() {
            match send() {
                Ok(()) => return Ok(()),
                Err(Refused::Error(error)) => return Err(error),
                Err(Refused::Full) => {}
            }
        }
        self.context.metrics().events_waited.increment();
        let waiting = self.credits.wait(send);
        tokio::pin!(waiting);
        let timeout = self.options.credit_timeout;
        let began = now();
        let mut until = after(began, timeout);
        loop {
            let deadline = tokio::time::Instant::from_std(until);
            if let Ok(sent) = tokio::time::timeout_at(deadline, &mut waiting).await {
                return sent;
            }
            let held_since = self.lock().events_held_since();
            let Some(held_since) = held_since else {
                // Without a connection the peer can return no credit.
                tokio::select! {
                    biased;
                    sent = &mut waiting => return sent,
                    () = self.connected() => until = after(now(), timeout),
                }
                continue;
            };
            // The senders before this one in the queue may have used all the credit that was returned.
            until = after(held_since.max(began), timeout);
            if until <= now() {
                tracing::info!(
                    connection_id = %self.context.connection_id,
                    method,
                    "a peer does not read its events, and is closed"
                );
                self.end(NetworkError::EventOverflow, false);
                return Err(NetworkError::EventOverflow);
            }
        }
    }

    /// Queues an event, or returns why it cannot be. A long one is encoded once, before the lock is taken.
    fn try_event(
        &self,
        method: &str,
        payload: &Payload,
        prepared: &mut Option<Prepared>,
    ) -> Result<(), Refused> {
        let message = event_message(method, payload);
        if message.is_long() && prepared.is_none() && self.lock().wants_event(payload.bytes.len()) {
            *prepared = Some(message.prepare(&self.codec)?);
        }
        let now = now();
        self.step_here(|core, effects| core.send_event(now, method, payload, prepared, effects))
            .0
    }

    /// Whether a call waits for its response, or a request of the peer is not answered.
    pub(crate) fn is_busy(&self) -> bool {
        let (calls, _, running) = self.lock().load();
        calls + running > 0
    }

    /// The next event of a lane.
    pub(super) fn poll_event(
        &self,
        lane: Lane,
        waiting: &mut Option<u64>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ProtocolMessage, NetworkError>> {
        self.step_here(|core, effects| core.poll_event(lane, waiting, cx, effects))
            .0
            .map_err(|error| self.at_peer(error))
    }

    /// The token of a running request.
    pub(super) fn token(&self, generation: u64, id: u64) -> CancellationToken {
        self.lock().token(generation, id)
    }

    /// The writer took output: callers that wait for room may try again.
    pub(super) fn output_taken(&self) {
        let now = now();
        self.step_here(|core, effects| core.output_taken(now, effects));
        self.room.notify_waiters();
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.lock()
    }

    /// Resolves when `done` returns a value for the phase.
    pub(super) async fn wait_state<T>(&self, mut done: impl FnMut(&Phase) -> Option<T>) -> T {
        loop {
            let changed = self.state.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(value) = done(self.lock().phase()) {
                return value;
            }
            changed.await;
        }
    }

    pub(super) fn end(&self, error: NetworkError, flush: bool) {
        self.step_here(|core, effects| core.end(error, flush, effects));
    }

    /// The connection is lost and will not be replaced: ends the channel.
    pub(crate) fn lose_for_good(&self) {
        self.end(NetworkError::lost(true, self.context.peer()), false);
    }

    pub(crate) fn drain_there(&self) {
        self.step_here(|core, effects| core.drain_there(effects));
    }

    pub(crate) fn drain_here(&self) {
        self.lock().drain_here();
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn stream_id(&self) -> u64 {
        self.stream_id.load(Ordering::Relaxed)
    }

    pub(super) fn set_stream_id(&self, stream_id: u64) {
        self.stream_id.store(stream_id, Ordering::Relaxed);
    }

    pub(super) fn is_own_stream(&self) -> bool {
        self.own_stream
    }

    /// Drops the service of a channel that has ended: a service often holds its own channel, which would be a reference cycle.
    fn forget_service(&self) {
        let service = self.service.lock();
        let service = service.unwrap_or_else(PoisonError::into_inner).take();
        // Dropped after the lock, because its destructor is the application's.
        drop(service);
    }

    /// The writer ended the stream in order.
    pub(super) fn finished(&self) {
        self.forget_service();
        self.unlist();
        self.state.notify_waiters();
    }
}

impl Drop for ChannelDriver {
    fn drop(&mut self) {
        self.unlist();
        let Carrier { context, stream_id } = self.carrier();
        context.forget_stream(stream_id, std::ptr::from_ref(self));
    }
}

/// Waits for the answer to a request. Dropped before that, it sends CANCEL.
struct Answer<'a> {
    driver: &'a ChannelDriver,
    id: u64,
    /// No result was taken.
    open: bool,
}

impl Future for Answer<'_> {
    type Output = Result<Payload, NetworkError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.driver.lock().poll_call(self.id, cx);
        self.open = polled.is_pending();
        polled
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        let id = self.id;
        if self.open {
            self.driver
                .step_here(|core, effects| core.abandon_call(id, effects));
        }
    }
}
