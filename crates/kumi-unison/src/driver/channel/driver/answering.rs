//! Incoming requests of a channel: they are run, and their responses queued when there is room.
//!
//! A request counts against the connection's limits until its response is queued, and no handler is started while responses
//! wait for room. So a peer that sends requests and does not read responses cannot make memory grow.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::super::UnisonChannel;
use super::super::service::{IncomingRequest, Service};
use super::{ChannelDriver, now};
use crate::core::{Charge, Core, Effects, IncomingCall, Phase, answer_message, error_message};
use crate::driver::channel::context::RunPermit;
use crate::error::{NetworkError, RemoteError};
use crate::payload::Payload;
use crate::trace::TraceContext;
use crate::wire::Prepared;

/// How many held requests are started at a time.
const HELD_AT_A_TIME: usize = 32;

impl ChannelDriver {
    pub(in crate::driver::channel) fn set_service(self: &Arc<Self>, service: Arc<dyn Service>) {
        *self.service.lock().unwrap_or_else(PoisonError::into_inner) = Some(service);
        if matches!(self.lock().phase(), Phase::Ended { .. }) {
            self.forget_service();
        }
        self.step(|core, effects| core.set_has_service(effects));
        self.state.notify_waiters();
    }

    /// Starts the handler of a request and polls it once. If it is ready its response is returned, else it becomes a task.
    pub(in crate::driver::channel) fn run(
        self: &Arc<Self>,
        call: IncomingCall,
        cx: &mut Context<'_>,
    ) -> Option<Ready> {
        let mut call = if self.answers_waiting.load(Ordering::Relaxed) > 0 {
            self.lock().hold(call)?
        } else {
            call
        };
        let key = (call.generation, call.id);
        let charge = call.charge.take();
        // A call on a stream of its own is answered by the channel that it belongs to.
        let owner = self.whole.as_ref().unwrap_or(self);
        let service = owner
            .service
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let handle = owner.handle.get().and_then(Weak::upgrade);
        let (Some(service), Some(handle)) = (service, handle) else {
            self.refuse(key, &NetworkError::closed());
            return None;
        };
        let Some(permit) = self.context.try_run() else {
            self.refuse(key, &NetworkError::Busy);
            return None;
        };
        let held = Held {
            _permit: permit,
            _charge: charge,
        };
        self.context.metrics().requests_run.increment();
        let span = tracing::debug_span!(
            "request",
            connection_id = %self.context.connection_id,
            stream_id = self.stream_id(),
            request_id = call.id,
            traceparent = call.trace.map(tracing::field::display),
            method = call.method,
        );
        let part = self.whole.as_ref().map(|_| Arc::clone(self));
        let request = IncomingRequest::new(call, UnisonChannel { handle }, part);
        let trace = request.traceparent();
        let begin = AssertUnwindSafe(|| entered(&span, trace, || service.call(request)));
        let Ok(future) = std::panic::catch_unwind(begin) else {
            return Some(self.ready(key, Handled::Panicked, held));
        };
        let mut future = Handling {
            future,
            span,
            trace,
        };
        match future.poll_unpin(cx) {
            Poll::Ready(result) => Some(self.ready(key, result, held)),
            Poll::Pending => {
                let driver = Arc::clone(self);
                tokio::spawn(async move {
                    let result = future.await;
                    let ready = driver.ready(key, result, held);
                    if let Some(ready) = driver.try_answer(vec![ready]).pop() {
                        driver.answer_later(ready).await;
                    }
                });
                None
            }
        }
    }

    fn refuse(&self, key: (u64, u64), error: &NetworkError) {
        let now = now();
        self.step_here(|core, effects| core.answer_refusal(now, key, error, effects));
    }

    /// Runs the held requests. Called when no response waits for room.
    fn run_held(self: &Arc<Self>) {
        let driver = Arc::clone(self);
        let run = move |cx: &mut Context<'_>| {
            for _ in 0..HELD_AT_A_TIME {
                let Some(call) = driver.lock().next_held() else {
                    return Poll::Ready(());
                };
                let ready = driver.run(call, cx);
                driver.answer(ready.into_iter().collect());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        };
        tokio::spawn(poll_fn(run));
    }

    /// Prepares a response as far as that needs no lock.
    fn ready(&self, key: (u64, u64), result: Handled, held: Held) -> Ready {
        let mut result = self.settle(result);
        let prepared = self.prepare(key.1, &mut result);
        Ready {
            key,
            result,
            prepared,
            waits: false,
            _held: held,
        }
    }

    /// Encodes a long response and charges it to the connection's budget until the peer has received it. If it does not fit a
    /// packet or the budget, it is replaced by an error response.
    fn prepare(&self, id: u64, result: &mut Answered) -> Option<Prepared> {
        let error_payload;
        let message = match result {
            Ok(payload) => answer_message(id, payload),
            Err(error) => {
                error_payload = Payload::json(error).ok()?;
                error_message(id, "", &error_payload)
            }
        };
        if !message.is_long() {
            return None;
        }
        let prepared = match message.prepare(&self.codec) {
            Ok(prepared) => prepared,
            Err(error) => {
                *result = Err(RemoteError::answer_too_large(error));
                return None;
            }
        };
        let Some(charge) = Charge::of(self.context.answers(), prepared.bulk_bytes()) else {
            *result = Err(RemoteError::answers_waiting());
            return None;
        };
        *result = Ok(Payload::bytes(Bytes::new()));
        Some(prepared.with_bulk(|bulk| charge.tie_to(bulk)))
    }

    /// Queues responses as far as there is room; a task per response waits for room for the others.
    pub(in crate::driver::channel) fn answer(self: &Arc<Self>, ready: Vec<Ready>) {
        for waiting in self.try_answer(ready) {
            let driver = Arc::clone(self);
            tokio::spawn(async move { driver.answer_later(waiting).await });
        }
    }

    async fn answer_later(self: &Arc<Self>, ready: Ready) {
        let mut open = Some(ready);
        while let Some(ready) = open.take() {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            open = self.try_answer(vec![ready]).pop();
            if open.is_some() {
                room.await;
            }
        }
    }

    /// Queues responses under one lock, and returns those that found the output full.
    fn try_answer(self: &Arc<Self>, ready: Vec<Ready>) -> Vec<Ready> {
        let mut full = Vec::new();
        if ready.is_empty() {
            return full;
        }
        let now = now();
        let queue = |core: &mut Core, effects: &mut Effects| {
            let (mut begun, mut ended) = (0, 0);
            for mut ready in ready {
                if !core.has_room() && matches!(core.phase(), Phase::Open | Phase::PeerDone) {
                    begun += usize::from(!ready.waits);
                    ready.waits = true;
                    full.push(ready);
                    continue;
                }
                ended += usize::from(ready.waits);
                core.answer(now, ready.key, &ready.result, ready.prepared, effects);
            }
            let may_run = core.count_waiting(begun, ended);
            self.answers_waiting
                .store(core.answers_waiting(), Ordering::Relaxed);
            may_run
        };
        if self.step_here(queue).0 {
            self.run_held();
        }
        full
    }

    fn settle(&self, result: Handled) -> Answered {
        match result {
            Handled::Done(result) => result,
            Handled::Panicked => {
                self.context.metrics().handler_panics.increment();
                tracing::error!(connection_id = %self.context.connection_id, "a handler panicked");
                Err(RemoteError::internal())
            }
        }
    }
}

type Answered = Result<Payload, RemoteError>;

/// A response that is ready to be queued.
pub(in crate::driver::channel) struct Ready {
    key: (u64, u64),
    result: Answered,
    /// The encoding of a long one, which replaces its payload.
    prepared: Option<Prepared>,
    /// It found the output full and is counted as waiting.
    waits: bool,
    _held: Held,
}

impl Ready {
    pub(in crate::driver::channel) fn bytes(&self) -> usize {
        match (&self.prepared, &self.result) {
            (Some(prepared), _) => prepared.bulk_bytes(),
            (None, Ok(payload)) => payload.bytes.len(),
            (None, Err(_)) => 0,
        }
    }
}

/// The resources of a request until its response is queued.
struct Held {
    _permit: RunPermit,
    _charge: Option<Charge>,
}

enum Handled {
    Done(Answered),
    Panicked,
}

/// A handler's future, in its span, with panics caught.
struct Handling {
    future: BoxFuture<'static, Answered>,
    span: tracing::Span,
    trace: Option<TraceContext>,
}

/// Runs a part of a handler where its span and its trace context are the current ones.
fn entered<R>(span: &tracing::Span, trace: Option<TraceContext>, part: impl FnOnce() -> R) -> R {
    span.in_scope(|| match trace {
        Some(trace) => trace.sync_scope(part),
        None => part(),
    })
}

impl Future for Handling {
    type Output = Handled;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Handled> {
        let Self {
            future,
            span,
            trace,
        } = &mut *self;
        let poll = AssertUnwindSafe(|| entered(span, *trace, || future.as_mut().poll(cx)));
        match std::panic::catch_unwind(poll) {
            Ok(Poll::Ready(result)) => Poll::Ready(Handled::Done(result)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(Handled::Panicked),
        }
    }
}
