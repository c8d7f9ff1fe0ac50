//! The requests we make: each ends once, with its answer or an error, and leaves nothing behind.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::{Core, Effects, Phase, methods, payload_of};
use crate::error::{NetworkError, RemoteError};
use crate::payload::Payload;
use crate::trace::TraceContext;
use crate::wire::{
    ContentType, MessageType, Metadata, Outgoing, PacketFlags, PacketType, Prepared,
    ProtocolMessage,
};

/// A request that was sent, until its caller has taken the result or is gone.
pub(super) struct Call {
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
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }

    /// When it must have ended, if it has not.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.is_waiting().then_some(self.deadline)
    }
}

/// Why a request or an event was not queued.
#[derive(Debug, PartialEq)]
pub(crate) enum Refused {
    /// No room now. Trying again after the next signal may help.
    Full,
    /// It will never be.
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
    /// The request as it leaves, with what remains of its time.
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
            Some(prepared) => self.push_prepared(now, prepared, 0),
            None => self.push(now, &call.outgoing(now))?,
        }
        let entry = Call {
            state: State::Waiting(None),
            deadline: call.deadline,
            end: self.output.end(),
        };
        self.calls.insert(call.id, entry);
        self.waiting += 1;
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
        let full = self.waiting + self.abandoned.len() >= self.peer_in_flight as usize;
        if full || !self.has_room() {
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
        match self.calls.get_mut(&id) {
            Some(Call {
                state: State::Waiting(waker),
                ..
            }) => {
                super::keep_waker(waker, cx.waker());
                Poll::Pending
            }
            Some(_) => match self.calls.remove(&id).map(|call| call.state) {
                Some(State::Done(result)) => Poll::Ready(result),
                _ => Poll::Pending,
            },
            None => Poll::Ready(Err(NetworkError::Cancelled)),
        }
    }

    /// The caller is gone. If no result is in, the peer gets a CANCEL; the id goes into a set that the writer
    /// drains, because a destructor cannot wait.
    pub(crate) fn abandon_call(&mut self, id: u64, effects: &mut Effects) {
        if let Some(Call {
            state: State::Waiting(_),
            ..
        }) = self.calls.remove(&id)
        {
            self.waiting -= 1;
            effects.counts.cancelled += 1;
            self.give_up(id, effects);
        }
    }

    pub(super) fn handle_answer(
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
        }) = self.calls.get_mut(&id)
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

    /// Ends every call that has no result. Those that were not even taken by the writer certainly did not run, unless
    /// what is queued is still written.
    pub(super) fn fail_calls(&mut self, error: &NetworkError, flush: bool, effects: &mut Effects) {
        let taken = if flush {
            self.output.end()
        } else {
            self.output.taken()
        };
        for call in self.calls.values_mut() {
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

    pub(super) fn expire_calls(&mut self, now: Instant, effects: &mut Effects) {
        let mut expired = Vec::new();
        for (id, call) in &mut self.calls {
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
        for id in expired {
            self.give_up(id, effects);
        }
    }

    /// Sends CANCEL, and counts the call as in flight until the peer has answered it.
    fn give_up(&mut self, id: u64, effects: &mut Effects) {
        if matches!(self.phase, Phase::Open | Phase::Opening { .. }) {
            self.abandoned.insert(id);
            self.cancels.push(id);
            self.kick(effects);
        }
    }
}

/// What an Error message says: the runtime's own errors are named so, all others are a handler's.
fn answered_error(message: ProtocolMessage) -> Result<NetworkError, NetworkError> {
    let runtime = message.method == methods::ERROR;
    let remote: RemoteError = payload_of(message).to_json()?;
    Ok(if runtime {
        NetworkError::from_runtime(remote)
    } else {
        NetworkError::Remote(remote)
    })
}
