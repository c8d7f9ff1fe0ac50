//! Requests of the peer: each runs at most once, counts as in flight until it is answered, and is answered once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::ids::IdMap;
use super::{Charge, Core, Effects, Phase, methods};
use crate::error::{NetworkError, RemoteError};
use crate::payload::Payload;
use crate::trace::TraceContext;
use crate::wire::{
    ContentType, MessageType, Metadata, Outgoing, PacketFlags, PacketType, Prepared,
    ProtocolMessage,
};

/// Requests with payloads below this are bounded well enough by how many may run, and are not charged while they do.
const CHARGED_PAYLOAD: usize = 1024;

/// What a request that is held takes beside its payload and its name.
const REQUEST_OVERHEAD: usize = 256;

/// A request to run a handler for.
#[derive(Debug)]
pub(crate) struct IncomingCall {
    /// The stream it came on, for channels that live through several.
    pub(crate) generation: u64,
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) payload: Payload,
    pub(crate) deadline: Option<Instant>,
    pub(crate) trace: Option<TraceContext>,
    /// What it takes of the connection's budget, until its handler is done.
    pub(crate) charge: Option<Charge>,
}

/// A request that came and is not answered.
#[derive(Debug, Default)]
struct Running {
    /// Made when a handler asks for it, because most never do.
    token: Option<CancellationToken>,
    cancelled: bool,
    deadline: Option<Instant>,
}

impl Running {
    fn cancel(&mut self) {
        self.cancelled = true;
        if let Some(token) = &self.token {
            token.cancel();
        }
    }

    /// When its token fires by itself, if it has not.
    fn due(&self) -> Option<Instant> {
        if self.cancelled { None } else { self.deadline }
    }
}

/// The requests of the peer that are not answered.
#[derive(Default)]
pub(super) struct RequestTable {
    running: IdMap<Running>,
    /// Requests that came before there was a service, or while answers waited. Bounded by `max_in_flight`.
    held: VecDeque<IncomingCall>,
    has_service: bool,
    /// Answers that wait in their handlers, because the output is full. While there are any, requests are held: a peer
    /// that does not read its answers causes no more of them.
    answers_waiting: usize,
}

impl RequestTable {
    /// Whether requests run as they come.
    fn runs_requests(&self) -> bool {
        self.has_service && self.answers_waiting == 0
    }

    /// Notes that there is a service. Returns the requests that were held for it.
    fn set_has_service(&mut self) -> impl Iterator<Item = IncomingCall> + '_ {
        self.has_service = true;
        self.held.drain(..)
    }

    /// Holds a request until it may run.
    fn hold(&mut self, call: IncomingCall) {
        self.held.push_back(call);
    }

    /// The next request that was held and may run now.
    fn next_held(&mut self) -> Option<IncomingCall> {
        if self.runs_requests() {
            self.held.pop_front()
        } else {
            None
        }
    }

    /// Changes the number of answers that wait for room. True when requests that were held may run.
    fn count_waiting(&mut self, begun: usize, ended: usize) -> bool {
        self.answers_waiting = (self.answers_waiting + begun).saturating_sub(ended);
        ended > 0 && self.runs_requests() && !self.held.is_empty()
    }

    /// The token of a request that runs; `None` for one that is not known.
    fn token(&mut self, id: u64) -> Option<CancellationToken> {
        let running = self.running.get_mut(&id)?;
        let token = running.token.get_or_insert_default().clone();
        if running.cancelled {
            token.cancel();
        }
        Some(token)
    }

    fn contains(&self, id: u64) -> bool {
        self.running.contains_key(&id)
    }

    fn admit(&mut self, id: u64, deadline: Option<Instant>) {
        let running = Running {
            deadline,
            ..Running::default()
        };
        self.running.insert(id, running);
    }

    /// Whether the request was not answered yet; from now on it counts as answered.
    fn remove(&mut self, id: u64) -> bool {
        self.running.remove(&id).is_some()
    }

    /// Fires the token of a request; whether it is not answered yet.
    fn cancel(&mut self, id: u64) -> bool {
        let running = self.running.get_mut(&id);
        running.map(Running::cancel).is_some()
    }

    /// The requests whose deadline has passed and whose tokens have not fired.
    fn expired(&self, now: Instant) -> Vec<u64> {
        let due = |running: &Running| running.due().is_some_and(|deadline| deadline <= now);
        let expired = self.running.iter().filter(|(_, running)| due(running));
        expired.map(|(id, _)| *id).collect()
    }

    /// Removes a request that no handler has seen; whether there was one.
    fn remove_held(&mut self, id: u64) -> bool {
        let before = self.held.len();
        self.held.retain(|call| call.id != id);
        let was_held = self.held.len() < before;
        if was_held {
            self.running.remove(&id);
        }
        was_held
    }

    /// Cancels and forgets all requests.
    pub(super) fn clear(&mut self) {
        self.running.values_mut().for_each(Running::cancel);
        self.running.clear();
        self.held.clear();
    }

    /// The earliest deadline of a request whose token has not fired.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.running.values().filter_map(Running::due).min()
    }

    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    #[cfg(test)]
    pub(super) fn serve(&mut self, has_service: bool) {
        self.has_service = has_service;
    }

    #[cfg(test)]
    pub(super) fn take_held(&mut self) -> VecDeque<IncomingCall> {
        std::mem::take(&mut self.held)
    }
}

impl Core {
    /// Whether there is a service: if not, requests are held.
    pub(crate) fn set_has_service(&mut self, effects: &mut Effects) {
        effects.run.extend(self.requests.set_has_service());
    }

    /// Takes back a request that was to run, if answers wait meanwhile.
    pub(crate) fn hold(&mut self, call: IncomingCall) -> Option<IncomingCall> {
        if self.requests.answers_waiting == 0 {
            return Some(call);
        }
        if call.generation == self.generation && self.requests.contains(call.id) {
            self.requests.hold(call);
        }
        None
    }

    /// The next request that was held and may run now.
    pub(crate) fn next_held(&mut self) -> Option<IncomingCall> {
        self.requests.next_held()
    }

    /// One more answer waits for room, or one less. True when requests that were held may run.
    pub(crate) fn count_waiting(&mut self, begun: usize, ended: usize) -> bool {
        self.requests.count_waiting(begun, ended)
    }

    pub(crate) fn answers_waiting(&self) -> usize {
        self.requests.answers_waiting
    }

    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        message: ProtocolMessage,
        metadata: Metadata,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        let id = message.id;
        let is_charged = !self.requests.runs_requests() || message.payload.len() >= CHARGED_PAYLOAD;
        let mut charge = None;
        let refusal = if self.requests.contains(id) {
            return Err(NetworkError::Violation(
                "a request id that is in use".to_owned(),
            ));
        } else if self.settings.unreliable {
            NetworkError::Unreliable
        } else if self.draining_here {
            NetworkError::draining()
        } else if self.requests.len() >= self.settings.max_in_flight as usize {
            NetworkError::Busy
        } else if message.content_type == ContentType::Typed && self.typed_allowed == Some(false) {
            NetworkError::TypedRefused
        } else if message.method.starts_with(methods::RESERVED) {
            NetworkError::Remote(RemoteError::method_not_found(&message.method))
        } else if is_charged && !self.charge(&message, &mut charge) {
            NetworkError::Busy
        } else {
            let deadline = metadata
                .deadline_ms
                .map(|ms| now + Duration::from_millis(u64::from(ms)));
            self.requests.admit(id, deadline);
            // The timer is the writer's, and an incoming request does not wake it otherwise.
            if deadline.is_some_and(|deadline| self.note_deadline(deadline)) {
                self.kick(effects);
            }
            let ProtocolMessage {
                method,
                content_type,
                payload: bytes,
                ..
            } = message;
            let call = IncomingCall {
                generation: self.generation,
                id,
                method,
                payload: Payload {
                    content_type,
                    bytes,
                },
                deadline,
                trace: metadata.trace,
                charge,
            };
            if self.requests.runs_requests() {
                effects.run.push(call);
            } else {
                self.requests.hold(call);
            }
            return Ok(());
        };
        effects.counts.refused += 1;
        self.refuse(now, id, &refusal, effects)
    }

    /// Takes what a request needs from the connection's budget, if that has it.
    fn charge(&self, message: &ProtocolMessage, charge: &mut Option<Charge>) -> bool {
        let bytes = message.payload.len() + message.method.len() + REQUEST_OVERHEAD;
        *charge = Charge::of(&self.settings.budget, bytes);
        charge.is_some()
    }

    /// Answers a request that did not run with an error. Fails if too many such answers wait: the peer does not read.
    fn refuse(
        &mut self,
        now: Instant,
        id: u64,
        error: &NetworkError,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        self.outbox.push_refusal(now, id, error)?;
        self.kick(effects);
        Ok(())
    }

    /// The token of a request that runs. One that is no longer known counts as cancelled.
    pub(crate) fn token(&mut self, generation: u64, id: u64) -> CancellationToken {
        let is_current = generation == self.generation;
        let known = is_current.then(|| self.requests.token(id)).flatten();
        known.unwrap_or_else(|| {
            let token = CancellationToken::new();
            token.cancel();
            token
        })
    }

    /// Queues the response to a request, unless the request was cancelled or its stream is gone. `prepared` is the encoding of a long answer.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        (generation, id): (u64, u64),
        result: &Result<Payload, RemoteError>,
        prepared: Option<Prepared>,
        effects: &mut Effects,
    ) {
        if generation != self.generation || !self.requests.remove(id) {
            return;
        }
        let pushed = match (result, prepared) {
            (_, Some(prepared)) => {
                // Its bulk is charged to the connection's answers until the peer has it.
                let charged = prepared.bulk_bytes();
                self.outbox.push_prepared(now, prepared, charged);
                Ok(())
            }
            (Ok(payload), None) => self.outbox.push(now, &answer_message(id, payload)),
            (Err(error), None) => self.outbox.push_error(now, id, "", error),
        };
        if let Err(error) = pushed {
            // The caller gets a reply in any case: an answer that does not fit becomes an error that does.
            let short = RemoteError::answer_too_large(error);
            let pushed = self.outbox.push_error(now, id, "", &short);
            debug_assert!(pushed.is_ok(), "a short error fits a packet");
        }
        self.kick(effects);
    }

    /// A request that was taken to run and cannot, for a reason outside this channel.
    pub(crate) fn answer_refusal(
        &mut self,
        now: Instant,
        (generation, id): (u64, u64),
        error: &NetworkError,
        effects: &mut Effects,
    ) {
        if generation == self.generation && self.requests.remove(id) {
            effects.counts.refused += 1;
            if let Err(error) = self.refuse(now, id, error, effects) {
                self.end(error, false, effects);
            }
        }
    }

    pub(super) fn handle_cancels(
        &mut self,
        now: Instant,
        ids: &Bytes,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        let (ids, rest) = ids.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(NetworkError::Violation(
                "a CANCEL of broken length".to_owned(),
            ));
        }
        for id in ids {
            let id = u64::from_le_bytes(*id);
            // One that was answered meanwhile is no longer known, and that is fine.
            if self.requests.cancel(id) {
                effects.counts.cancels_received += 1;
                self.drop_held(now, id, &NetworkError::Cancelled, effects)?;
            }
        }
        Ok(())
    }

    pub(super) fn expire_running(&mut self, now: Instant, effects: &mut Effects) {
        if matches!(self.phase, Phase::Ended { .. } | Phase::Lost) {
            return;
        }
        for id in self.requests.expired(now) {
            self.requests.cancel(id);
            if let Err(error) = self.drop_held(now, id, &NetworkError::deadline(), effects) {
                self.end(error, false, effects);
                return;
            }
        }
    }

    /// A request that no handler has seen is answered right away.
    fn drop_held(
        &mut self,
        now: Instant,
        id: u64,
        error: &NetworkError,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        if !self.requests.remove_held(id) {
            return Ok(());
        }
        self.refuse(now, id, error, effects)
    }
}

/// An Error message, whose payload describes the error in JSON. `method` is empty for an error of a handler.
pub(crate) fn error_message<'a>(id: u64, method: &'a str, payload: &'a Payload) -> Outgoing<'a> {
    Outgoing {
        packet_type: PacketType::Data,
        flags: PacketFlags::NONE,
        msg_type: MessageType::Error,
        content_type: ContentType::Json,
        id,
        method,
        payload: &payload.bytes,
        metadata: None,
    }
}

/// A Response message.
pub(crate) fn answer_message(id: u64, payload: &Payload) -> Outgoing<'_> {
    Outgoing {
        packet_type: PacketType::Data,
        flags: PacketFlags::NONE,
        msg_type: MessageType::Response,
        content_type: payload.content_type,
        id,
        method: "",
        payload: &payload.bytes,
        metadata: None,
    }
}
