//! Requests of this side: each ends once, with a response or an error.

use std::collections::HashSet;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::ids::IdMap;
use super::{Core, Effects, INITIAL_IN_FLIGHT, Phase, methods, payload_of};
use crate::error::{NetworkError, RemoteError};
use crate::payload::Payload;
use crate::trace::TraceContext;
use crate::wire::{
    ContentType, MessageType, Metadata, Outgoing, PacketFlags, PacketType, Prepared,
    ProtocolMessage,
};

/// A request that was sent, until its caller has taken the result or is gone.
struct Call {
    state: State,
    deadline: Instant,
    /// The output's position after it: once that is taken, the request may have reached the peer.
    end: u64,
}

enum State {
    Waiting(Option<Waker>),
    Done(Result<Payload, NetworkError>),
}

impl Call {
    /// Whether it has no result.
    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }

    /// When it must have ended, if it has not.
    fn deadline(&self) -> Option<Instant> {
        self.is_waiting().then_some(self.deadline)
    }
}

/// The requests that this side sent, and what the peer must still be told about them.
pub(super) struct CallTable {
    by_id: IdMap<Call>,
    /// Of `by_id`, those without a result.
    waiting: usize,
    /// Given up, but not answered yet.
    abandoned: HashSet<u64>,
    /// CANCELs to send. Bounded by what is in flight.
    cancels: Vec<u64>,
    /// Requests that the peer runs at a time.
    max_in_flight: u32,
}

impl Default for CallTable {
    fn default() -> Self {
        Self {
            by_id: IdMap::default(),
            waiting: 0,
            abandoned: HashSet::new(),
            cancels: Vec::new(),
            max_in_flight: INITIAL_IN_FLIGHT,
        }
    }
}

impl CallTable {
    /// How many requests the peer runs at a time, as it has said.
    pub(super) fn set_max_in_flight(&mut self, requests: u32) {
        self.max_in_flight = requests;
    }

    /// Whether the peer runs as many requests as it accepts.
    fn is_full(&self) -> bool {
        self.waiting + self.abandoned.len() >= self.max_in_flight as usize
    }

    /// Adds a request that was queued. `end`: the output's position after it.
    fn insert(&mut self, id: u64, deadline: Instant, end: u64) {
        let call = Call {
            state: State::Waiting(None),
            deadline,
            end,
        };
        self.by_id.insert(id, call);
        self.waiting += 1;
    }

    /// The result of a call, once.
    fn poll(&mut self, id: u64, cx: &mut Context<'_>) -> Poll<Result<Payload, NetworkError>> {
        match self.by_id.get_mut(&id) {
            Some(Call {
                state: State::Waiting(waker),
                ..
            }) => {
                super::tasks::keep_waker(waker, cx.waker());
                Poll::Pending
            }
            Some(_) => match self.by_id.remove(&id).map(|call| call.state) {
                Some(State::Done(result)) => Poll::Ready(result),
                _ => Poll::Pending,
            },
            None => Poll::Ready(Err(NetworkError::Cancelled)),
        }
    }

    /// Removes a call whose caller is gone; whether it had no result.
    fn remove(&mut self, id: u64) -> bool {
        let was_waiting = self.by_id.remove(&id).is_some_and(|call| call.is_waiting());
        if was_waiting {
            self.waiting -= 1;
        }
        was_waiting
    }

    /// Queues a CANCEL, and counts the call as in flight until the peer has answered it.
    fn give_up(&mut self, id: u64) {
        self.abandoned.insert(id);
        self.cancels.push(id);
    }

    fn answer(
        &mut self,
        message: ProtocolMessage,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        let id = message.id;
        if self.abandoned.remove(&id) {
            effects.counts.late += 1;
            effects.slots = true;
            return Ok(());
        }
        let Some(Call {
            state: state @ State::Waiting(_),
            ..
        }) = self.by_id.get_mut(&id)
        else {
            return Err(NetworkError::Violation(
                "an answer to no request".to_owned(),
            ));
        };
        let result = match message.msg_type {
            MessageType::Error => Err(answered_error(message)?),
            _ => Ok(payload_of(message)),
        };
        if let State::Waiting(Some(waker)) = std::mem::replace(state, State::Done(result)) {
            effects.wakers.push(waker);
        }
        self.waiting -= 1;
        effects.counts.answered += 1;
        effects.slots = true;
        Ok(())
    }

    /// Ends every call that has no result. `taken`: the output's position up to which requests may have reached the peer.
    fn fail(&mut self, error: &NetworkError, taken: u64, effects: &mut Effects) {
        for call in self.by_id.values_mut() {
            let State::Waiting(waker) = &mut call.state else {
                continue;
            };
            effects.wakers.extend(waker.take());
            effects.counts.failed += 1;
            let error = match error {
                NetworkError::ConnectionLost { peer, .. } => {
                    NetworkError::lost(call.end <= taken, *peer)
                }
                error => error.clone(),
            };
            call.state = State::Done(Err(error));
        }
        self.waiting = 0;
    }

    /// Ends calls whose deadline has passed; returns their ids.
    fn expire(&mut self, now: Instant, effects: &mut Effects) -> Vec<u64> {
        let mut expired = Vec::new();
        for (id, call) in &mut self.by_id {
            let State::Waiting(waker) = &mut call.state else {
                continue;
            };
            if call.deadline <= now {
                effects.wakers.extend(waker.take());
                effects.counts.failed += 1;
                call.state = State::Done(Err(NetworkError::deadline()));
                expired.push(*id);
            }
        }
        self.waiting -= expired.len();
        expired
    }

    /// Queues a CANCEL for every call without a result.
    pub(super) fn cancel_waiting(&mut self) {
        let waiting = self.by_id.iter().filter(|(_, call)| call.is_waiting());
        self.cancels.extend(waiting.map(|(id, _)| *id));
    }

    pub(super) fn take_cancels(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.cancels)
    }

    pub(super) fn set_cancels(&mut self, cancels: Vec<u64>) {
        self.cancels = cancels;
    }

    /// The stream is gone: the peer answers nothing of it any more.
    pub(super) fn forget_abandoned(&mut self) {
        self.abandoned.clear();
        self.cancels.clear();
    }

    /// The earliest deadline of a call without a result.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.by_id.values().filter_map(Call::deadline).min()
    }

    /// Calls whose result was not taken.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Calls given up and not answered.
    pub(super) fn abandoned(&self) -> usize {
        self.abandoned.len()
    }

    /// Calls without a result.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }
}

/// Why a request or an event was not queued.
#[derive(Debug, PartialEq)]
pub(crate) enum Refused {
    /// No room now. Trying again after the next signal may help.
    Full,
    /// It can never be queued.
    Error(NetworkError),
}

impl<E: Into<NetworkError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// A request to be queued.
pub(crate) struct NewCall<'a> {
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) payload: &'a Payload,
    pub(crate) deadline: Instant,
    pub(crate) trace: Option<TraceContext>,
}

impl NewCall<'_> {
    /// The Request message, with the time that is left until its deadline.
    pub(crate) fn outgoing(&self, now: Instant) -> Outgoing<'_> {
        // Rounded up: the handler's deadline must not pass before the caller's.
        let remaining = self.deadline.saturating_duration_since(now).as_micros();
        let deadline_ms = u32::try_from(remaining.div_ceil(1_000)).unwrap_or(u32::MAX);
        let deadline_ms = deadline_ms.max(1);
        Outgoing {
            packet_type: PacketType::Data,
            flags: PacketFlags::NONE,
            msg_type: MessageType::Request,
            content_type: self.payload.content_type,
            id: self.id,
            method: self.method,
            payload: &self.payload.bytes,
            metadata: Some(Metadata {
                deadline_ms: Some(deadline_ms),
                trace: self.trace,
            }),
        }
    }
}

impl Core {
    /// Queues a request. `prepared` is its encoding, if it is long; it is left in place when there is no room.
    pub(crate) fn start_call(
        &mut self,
        now: Instant,
        call: &NewCall<'_>,
        prepared: &mut Option<Prepared>,
        effects: &mut Effects,
    ) -> Result<(), Refused> {
        self.check_start(call.payload.content_type)?;
        match prepared.take() {
            Some(prepared) => self.outbox.push_prepared(now, prepared, 0),
            None => self.outbox.push(now, &call.outgoing(now))?,
        }
        self.calls.insert(call.id, call.deadline, self.outbox.end());
        self.note_deadline(call.deadline);
        self.kick(effects);
        Ok(())
    }

    /// Whether a request can be queued now.
    pub(crate) fn check_start(&self, content_type: ContentType) -> Result<(), Refused> {
        match &self.phase {
            Phase::Open | Phase::Opening { .. } => {}
            Phase::Lost => return Err(Refused::Full),
            Phase::PeerDone => return Err(Refused::Error(NetworkError::closed())),
            Phase::Ended { error, .. } => {
                return Err(Refused::Error(match error {
                    NetworkError::ConnectionLost { peer, .. } => NetworkError::lost(false, *peer),
                    error => error.clone(),
                }));
            }
        }
        if self.draining_there {
            return Err(Refused::Error(NetworkError::draining()));
        }
        if content_type == ContentType::Typed && self.typed_allowed == Some(false) {
            return Err(Refused::Error(NetworkError::TypedRefused));
        }
        if self.calls.is_full() || !self.has_room() {
            return Err(Refused::Full);
        }
        Ok(())
    }

    /// The result of a call, once. Polled again after that it waits forever; no caller does.
    pub(crate) fn poll_call(
        &mut self,
        id: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Payload, NetworkError>> {
        self.calls.poll(id, cx)
    }

    /// The caller is gone. If no result is in, the peer gets a CANCEL; the id goes into a set that the writer
    /// drains, because a destructor cannot wait.
    pub(crate) fn abandon_call(&mut self, id: u64, effects: &mut Effects) {
        if self.calls.remove(id) {
            effects.counts.cancelled += 1;
            self.give_up(id, effects);
        }
    }

    pub(super) fn handle_answer(
        &mut self,
        message: ProtocolMessage,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        self.calls.answer(message, effects)
    }

    /// Ends every call that has no result. Those that were not even taken by the writer certainly did not run, unless
    /// what is queued is still written.
    pub(super) fn fail_calls(&mut self, error: &NetworkError, flush: bool, effects: &mut Effects) {
        let taken = if flush {
            self.outbox.end()
        } else {
            self.outbox.taken()
        };
        self.calls.fail(error, taken, effects);
    }

    pub(super) fn expire_calls(&mut self, now: Instant, effects: &mut Effects) {
        for id in self.calls.expire(now, effects) {
            self.give_up(id, effects);
        }
    }

    /// Sends CANCEL while there is a stream to send it on.
    fn give_up(&mut self, id: u64, effects: &mut Effects) {
        if matches!(self.phase, Phase::Open | Phase::Opening { .. }) {
            self.calls.give_up(id);
            self.kick(effects);
        }
    }
}

/// The error of an Error message: with the method `__error` it is the runtime's, otherwise the handler's.
fn answered_error(message: ProtocolMessage) -> Result<NetworkError, NetworkError> {
    let runtime = message.method == methods::ERROR;
    let remote: RemoteError = payload_of(message).to_json()?;
    Ok(if runtime {
        NetworkError::from_runtime(remote)
    } else {
        NetworkError::Remote(remote)
    })
}
