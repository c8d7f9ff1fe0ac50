//! One channel's rules, without tasks, clock or socket.
//!
//! [`Core`] gets what happened (a request is wanted, a message came, time passed, the stream broke) and answers with
//! bytes to write, calls to run and wakers to wake. Its user holds it in a lock, never across an await, and calls:
//!
//! 1. [`Core::opener`] or [`Core::acceptor`], once;
//! 2. `start_call`, `send_event`, `answer`, ... as the application asks, and `handle` with every message that comes;
//! 3. `take_output` whenever the writer was woken, until it says to wait;
//! 4. `handle_timeout` no later than `next_deadline`;
//! 5. after each of them, carry out [`Effects`] once the lock is released.
//!
//! Every call ends exactly once: it lives in `calls` until its future took the result or was dropped, and every
//! way a channel can end goes through `fail_calls`. A call that was given up still counts as in flight until the peer
//! has answered it, so cancelling makes no room for more.

mod answers;
mod budget;
mod calls;
mod events;
mod ids;
mod inbox;
mod opening;
#[cfg(test)]
mod tests;
mod unwritten;

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::{NetworkError, RemoteError};
use crate::identity::SchemaId;
use crate::payload::Payload;
use crate::wire::{
    Codec, ContentType, MAX_MESSAGE_SIZE, MessageType, Metadata, Outgoing, Output, PacketFlags,
    PacketHeader, PacketType, Prepared, ProtocolMessage, WireError,
};

use answers::Running;
pub(crate) use answers::{IncomingCall, answer_message, error_message};
pub(crate) use budget::{Budget, Charge, EndpointBudget, Share};
use calls::Call;
pub(crate) use calls::{NewCall, Refused};
use events::Credits;
pub use events::EventPolicy;
pub(crate) use events::event_message;
use ids::IdMap;
use inbox::Inbox;
pub(crate) use inbox::Lane;
pub use opening::Window;
pub(crate) use opening::{Opening, SchemaFit, fit};
use unwritten::Unwritten;

pub(crate) use crate::wire::methods;

/// Requests that may be in flight before the acknowledgement says how many.
pub(crate) const INITIAL_IN_FLIGHT: u32 = 64;

/// Refusals may queue up this far beyond a full output before the peer counts as not reading.
const REFUSAL_ALLOWANCE: usize = MAX_MESSAGE_SIZE + 1024 * 1024;

/// Refusals that the writer has not taken may be this long while the connection's output is above its limit.
const REFUSALS_OVER_BUDGET: usize = 64 * 1024;

/// Ids in one CANCEL: how many calls are under way is the peer's to say, the length of a packet is not.
const CANCELS_PER_MESSAGE: usize = 4_096;

/// What a channel is set to.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) schema: Option<SchemaId>,
    /// Whether a lost stream may be replaced.
    pub(crate) persistent: bool,
    /// What happens to our events at zero credits.
    pub(crate) policy: EventPolicy,
    /// Event credits we grant.
    pub(crate) window: Window,
    /// Requests of the peer we run at a time.
    pub(crate) max_in_flight: u32,
    /// Queued bytes from which requests and events wait.
    pub(crate) output_limit_bytes: usize,
    /// How long the opening may take.
    pub(crate) open_timeout: Duration,
    /// Events come as datagrams, which cost no credit.
    pub(crate) unreliable: bool,
    /// A stream for one call only, of the channel on the stream of this number; told to the peer.
    pub(crate) part_of: Option<u64>,
    /// What the connection may hold of the peer's messages.
    pub(crate) budget: Arc<Budget>,
    /// What the connection may hold of messages that are not written.
    pub(crate) unwritten: Arc<Budget>,
    /// The peer's address, for errors.
    pub(crate) peer: Option<SocketAddr>,
}

/// Where a channel stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Phase {
    /// We asked, and the acknowledgement is not in. Requests go out already.
    Opening {
        id: u64,
        until: Instant,
        resuming: bool,
    },
    Open,
    /// The peer will send no more; what it asked is still answered.
    PeerDone,
    /// The stream broke under a persistent channel.
    Lost,
    /// Nothing more will happen. If `flush`, what is queued is still written.
    Ended {
        error: NetworkError,
        flush: bool,
    },
}

/// What is to be done after the lock is released.
#[derive(Default)]
pub(crate) struct Effects {
    /// The writer, if it has something to do.
    pub(crate) writer: Option<Waker>,
    /// The reader, if it must stop.
    pub(crate) reader: Option<Waker>,
    /// Callers and receivers whose result is there.
    pub(crate) wakers: Vec<Waker>,
    /// Requests to run.
    pub(crate) run: Vec<IncomingCall>,
    /// A request that had to wait may try again.
    pub(crate) slots: bool,
    /// An event that had to wait may try again.
    pub(crate) credits: bool,
    /// The phase changed.
    pub(crate) state: bool,
    /// It changed for the last time.
    pub(crate) ended: bool,
    /// Counted by the caller, who has the metrics.
    pub(crate) counts: Counts,
}

/// What happened, for the metrics.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) late: u64,
    pub(crate) refused: u64,
    pub(crate) cancels_received: u64,
    pub(crate) events_sent: u64,
    pub(crate) events_dropped: u64,
    pub(crate) events_received: u64,
    pub(crate) events_discarded: u64,
    pub(crate) resumed: u64,
}

/// What the writer has to do next.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Write the chunks that were taken.
    Write,
    /// Nothing now: the waker is kept.
    Wait,
    /// End the stream in order.
    Finish,
    /// End the stream at once.
    Reset,
    /// The stream is gone.
    Exit,
}

/// The rules of one channel on one side.
pub(crate) struct Core {
    settings: Settings,
    name: String,
    codec: Arc<Codec>,
    phase: Phase,
    /// Counts streams: what belongs to an earlier one is ignored.
    generation: u64,
    output: Output,
    /// What the output takes of the connection's budget.
    unwritten: Unwritten,
    /// Bytes of refusals in the output.
    refusal_bytes: usize,
    /// When the writer last took output.
    last_taken: Instant,
    /// The number that the next packet of the peer must have.
    expected_sequence: u64,
    typed_allowed: Option<bool>,
    /// The peer announced its end, or its server did: no new requests.
    draining_there: bool,
    /// We take no new requests.
    draining_here: bool,

    calls: IdMap<Call>,
    /// Of `calls`, those without a result.
    waiting: usize,
    /// Given up, but not answered yet.
    abandoned: HashSet<u64>,
    /// CANCELs to send. Bounded by what is in flight.
    cancels: Vec<u64>,
    peer_in_flight: u32,

    running: IdMap<Running>,
    /// Requests that came before there was a service, or while answers waited. Bounded by `max_in_flight`.
    held: VecDeque<IncomingCall>,
    has_service: bool,
    /// Answers that found the output full, and are kept by their handlers. While there are any, requests are held: a
    /// peer that does not read its answers gets no more of them made.
    answers_waiting: usize,

    credits: Credits,
    inbox: Inbox,
    /// The number of the last one who waited for an event.
    next_waiter: u64,

    /// Not later than the earliest of all deadlines.
    next_deadline: Option<Instant>,
    writer: Option<Waker>,
    reader: Option<Waker>,
    /// Unix nanoseconds at an instant, to tell wall time from instants.
    wall: (Instant, u64),
}

impl Core {
    /// The side that opens. Queues the opening.
    pub(crate) fn opener(
        settings: Settings,
        name: &str,
        id: u64,
        stream_id: u64,
        codec: Arc<Codec>,
        wall: (Instant, u64),
    ) -> Result<Self, NetworkError> {
        let mut core = Self::new(settings, name, stream_id, codec, wall);
        core.open(wall.0, id, false)?;
        Ok(core)
    }

    /// The side that was asked. Queues the acknowledgement.
    pub(crate) fn acceptor(
        settings: Settings,
        name: &str,
        opening: &Opening,
        opening_id: u64,
        stream_id: u64,
        codec: Arc<Codec>,
        wall: (Instant, u64),
    ) -> Result<Self, NetworkError> {
        let mut core = Self::new(settings, name, stream_id, codec, wall);
        core.expected_sequence = 1;
        core.acknowledge(wall.0, opening, opening_id)?;
        Ok(core)
    }

    fn new(
        settings: Settings,
        name: &str,
        stream_id: u64,
        codec: Arc<Codec>,
        wall: (Instant, u64),
    ) -> Self {
        Self {
            inbox: Inbox::new(settings.window, settings.unreliable, &settings.budget),
            credits: Credits::new(wall.0),
            unwritten: Unwritten::new(&settings.unwritten),
            refusal_bytes: 0,
            last_taken: wall.0,
            next_waiter: 0,
            settings,
            name: name.to_owned(),
            codec,
            phase: Phase::Open,
            generation: 0,
            output: Output::new(stream_id),
            expected_sequence: 0,
            typed_allowed: None,
            draining_there: false,
            draining_here: false,
            calls: IdMap::default(),
            waiting: 0,
            abandoned: HashSet::new(),
            cancels: Vec::new(),
            peer_in_flight: INITIAL_IN_FLIGHT,
            running: IdMap::default(),
            held: VecDeque::new(),
            has_service: false,
            answers_waiting: 0,
            next_deadline: None,
            writer: None,
            reader: None,
            wall,
        }
    }

    /// Takes a message that came.
    ///
    /// # Errors
    /// When it breaks a rule. The caller ends the channel with the error.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        message: ProtocolMessage,
        metadata: Metadata,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        if matches!(self.phase, Phase::Ended { .. } | Phase::Lost) {
            return Ok(());
        }
        if header.sequence != self.expected_sequence {
            let expected = self.expected_sequence;
            return Err(WireError::Sequence {
                expected,
                got: header.sequence,
            }
            .into());
        }
        self.expected_sequence += 1;
        match (header.packet_type, message.msg_type) {
            (PacketType::Data, MessageType::Request) => {
                self.handle_request(now, message, metadata, effects)
            }
            (PacketType::Data, MessageType::Response | MessageType::Error) => {
                self.handle_answer(message, effects)
            }
            (PacketType::Data, MessageType::Event) => self.handle_event(message, effects),
            (PacketType::Control, MessageType::Event) => {
                self.handle_control(now, &message, effects)
            }
            (PacketType::Handshake, MessageType::Response | MessageType::Error) => {
                self.handle_acknowledgement(now, message, effects)
            }
            // Only keeps the connection alive.
            (PacketType::Heartbeat, MessageType::Event) => Ok(()),
            (packet_type, msg_type) => Err(NetworkError::Violation(format!(
                "{packet_type:?} packet with a {msg_type:?}"
            ))),
        }
    }

    fn handle_control(
        &mut self,
        now: Instant,
        message: &ProtocolMessage,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        match message.method.as_str() {
            methods::CANCEL => self.handle_cancels(now, &message.payload, effects),
            methods::CREDIT => self.handle_credit(now, &message.payload, effects),
            methods::CLOSED => {
                // The channel has ended, with or without a readable reason.
                let unsaid = || RemoteError::new("closed", "");
                let why = serde_json::from_slice(&message.payload).unwrap_or_else(|_| unsaid());
                self.end(NetworkError::ClosedByPeer(why), false, effects);
                Ok(())
            }
            // A later version may have more to say; what is not understood changes nothing.
            _ => Ok(()),
        }
    }

    /// The peer finished its side of the stream.
    pub(crate) fn handle_end(&mut self, effects: &mut Effects) {
        if !matches!(self.phase, Phase::Open | Phase::Opening { .. }) {
            return;
        }
        self.phase = Phase::PeerDone;
        let lost = NetworkError::lost(true, self.settings.peer);
        self.fail_calls(&lost, true, effects);
        self.drop_backlog(effects);
        self.wake_everyone(effects);
    }

    /// The stream broke.
    pub(crate) fn handle_loss(&mut self, effects: &mut Effects) {
        match self.phase {
            Phase::Ended { .. } | Phase::Lost => {}
            // The peer had ended it in order; that an answer of ours no longer arrives changes nothing about that.
            Phase::PeerDone => self.end(NetworkError::closed(), false, effects),
            _ if self.settings.persistent => self.lose(effects),
            _ => self.end(NetworkError::lost(true, self.settings.peer), false, effects),
        }
    }

    /// The stream is gone and another may come.
    fn lose(&mut self, effects: &mut Effects) {
        self.phase = Phase::Lost;
        let lost = NetworkError::lost(true, self.settings.peer);
        self.fail_calls(&lost, false, effects);
        self.drop_work();
        self.drop_output();
        self.wake_everyone(effects);
    }

    /// Ends the channel, once: later ends change nothing.
    pub(crate) fn end(&mut self, error: NetworkError, flush: bool, effects: &mut Effects) {
        if matches!(self.phase, Phase::Ended { .. }) {
            return;
        }
        let flush = flush && self.phase != Phase::Lost;
        if flush {
            // Their callers are gone, and the peer's handlers should know.
            let waiting = self.calls.iter().filter(|(_, call)| call.is_waiting());
            self.cancels.extend(waiting.map(|(id, _)| *id));
        }
        let cancels = std::mem::take(&mut self.cancels);
        self.fail_calls(&error, flush, effects);
        self.drop_backlog(effects);
        effects.ended = true;
        // Where the peer gets the reason, it follows what is queued.
        if !flush && !error.is_for_good() {
            self.drop_output();
        }
        self.phase = Phase::Ended { error, flush };
        self.drop_work();
        if flush {
            self.cancels = cancels;
        }
        self.wake_everyone(effects);
    }

    /// A new stream for a channel that lost its own.
    ///
    /// # Errors
    /// When it lost none, or is over.
    pub(crate) fn reattach(
        &mut self,
        now: Instant,
        id: u64,
        stream_id: u64,
        peer: Option<SocketAddr>,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        match &self.phase {
            Phase::Lost => {}
            Phase::Ended { error, .. } => return Err(error.clone()),
            _ => {
                return Err(NetworkError::Violation(
                    "the channel has a stream".to_owned(),
                ));
            }
        }
        self.settings.peer = peer;
        self.generation += 1;
        self.drop_output();
        self.output = Output::new(stream_id);
        self.expected_sequence = 0;
        self.peer_in_flight = INITIAL_IN_FLIGHT;
        self.draining_there = false;
        self.credits.forget_grant();
        self.writer = None;
        self.reader = None;
        self.open(now, id, true)?;
        effects.state = true;
        effects.slots = true;
        Ok(())
    }

    /// Takes what is queued, or says what else the writer has to do. What was taken before counts as written.
    pub(crate) fn take_output(
        &mut self,
        stream: u64,
        now: Instant,
        chunks: &mut Vec<Bytes>,
        waker: &Waker,
    ) -> Step {
        if self.phase == Phase::Lost || !self.is_current(stream) {
            return Step::Exit;
        }
        if let Phase::Ended { flush: false, .. } = self.phase {
            return Step::Reset;
        }
        self.unwritten.written();
        self.queue_controls(now);
        if !self.output.is_empty() {
            self.output.take(chunks);
            self.unwritten.take();
            self.refusal_bytes = 0;
            self.last_taken = now;
            return Step::Write;
        }
        if self.phase == Phase::PeerDone && self.running.is_empty() {
            self.phase = Phase::Ended {
                error: NetworkError::closed(),
                flush: true,
            };
        }
        if let Phase::Ended { .. } = self.phase {
            return Step::Finish;
        }
        keep_waker(&mut self.writer, waker);
        Step::Wait
    }

    /// What was taken is written, and the writer will take no more.
    pub(crate) fn output_written(&mut self, stream: u64) {
        if self.is_current(stream) {
            self.unwritten.written();
        }
    }

    /// What is left to write when the channel ended for what the peer sent, or by its policy: what is queued, because
    /// packets are numbered, and the reason. False when there is none to tell.
    pub(crate) fn take_close_reason(&mut self, now: Instant, chunks: &mut Vec<Bytes>) -> bool {
        let Phase::Ended { error, .. } = &self.phase else {
            return false;
        };
        if !error.is_for_good() {
            return false;
        }
        let Ok(payload) = Payload::json(&error.to_close_reason()) else {
            return false;
        };
        let pushed = self.push(now, &closed_message(&payload.bytes));
        self.output.take(chunks);
        self.drop_output();
        pushed.is_ok()
    }

    /// Whether the last write made room for senders that found none because the connection's output was above its limit.
    pub(crate) fn take_made_room(&mut self) -> bool {
        self.unwritten.take_made_room()
    }

    /// What is queued will not be written.
    pub(crate) fn drop_output(&mut self) {
        self.output.clear();
        self.unwritten.clear_output();
        self.refusal_bytes = 0;
    }

    /// While the writer waits for the transport it is woken all the same when deadlines change or the channel ends.
    pub(crate) fn writer_should_give_up(&mut self, stream: u64, waker: &Waker) -> bool {
        let over = matches!(self.phase, Phase::Lost | Phase::Ended { flush: false, .. });
        if over || !self.is_current(stream) {
            return true;
        }
        keep_waker(&mut self.writer, waker);
        false
    }

    /// Whether the reader has nothing more to do; if it has, its waker is kept.
    pub(crate) fn reader_should_stop(&mut self, stream: u64, waker: &Waker) -> bool {
        let over = matches!(self.phase, Phase::Lost | Phase::Ended { .. });
        if over || !self.is_current(stream) {
            return true;
        }
        keep_waker(&mut self.reader, waker);
        false
    }

    /// Which of the streams that this channel has had is its own now. The tasks of an earlier one may live on for a
    /// moment, and must neither take what belongs to this one nor end it.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn is_current(&self, stream: u64) -> bool {
        self.generation == stream
    }

    /// When [`Self::handle_timeout`] is due, at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.next_deadline
    }

    /// Ends what is past its deadline.
    pub(crate) fn handle_timeout(&mut self, now: Instant, effects: &mut Effects) {
        if self.next_deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        match self.phase {
            // A slow moment after a reconnection is no reason to give up what is to last.
            Phase::Opening {
                until,
                resuming: true,
                ..
            } if until <= now => self.lose(effects),
            Phase::Opening { until, .. } if until <= now => {
                self.end(NetworkError::deadline(), false, effects);
            }
            _ => {}
        }
        self.expire_calls(now, effects);
        self.expire_running(now, effects);
        let opening = match self.phase {
            Phase::Opening { until, .. } => Some(until),
            _ => None,
        };
        let calls = self.calls.values().filter_map(Call::deadline);
        let running = self.running.values().filter_map(Running::due);
        // The writer is the one that runs this, and returns credit that is due next.
        let credit = self.inbox.next_credit_due(now);
        self.next_deadline = calls.chain(running).chain(opening).chain(credit).min();
    }

    /// From now on requests of the peer are refused as draining.
    pub(crate) fn drain_here(&mut self) {
        self.draining_here = true;
    }

    /// From now on our requests fail as draining: the peer said so.
    pub(crate) fn drain_there(&mut self, effects: &mut Effects) {
        self.draining_there = true;
        effects.slots = true;
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether typed binary may be sent, as far as known.
    pub(crate) fn typed_allowed(&self) -> Option<bool> {
        self.typed_allowed
    }

    /// Calls without a result, calls given up and unanswered, requests running: all zero on a channel at rest.
    pub(crate) fn load(&self) -> (usize, usize, usize) {
        (self.calls.len(), self.abandoned.len(), self.running.len())
    }

    /// Bytes that wait for the writer.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.output.queued_bytes()
    }

    /// Whether output is short enough to add to.
    pub(crate) fn has_room(&self) -> bool {
        self.output.queued_bytes() < self.settings.output_limit_bytes && self.unwritten.has_room()
    }

    fn drop_work(&mut self) {
        for running in self.running.values_mut() {
            running.cancel();
        }
        self.running.clear();
        self.held.clear();
        self.abandoned.clear();
        self.cancels.clear();
    }

    fn wake_everyone(&mut self, effects: &mut Effects) {
        effects.state = true;
        effects.slots = true;
        effects.credits = true;
        // Either may have been taken by an earlier part of the same step.
        effects.writer = self.writer.take().or(effects.writer.take());
        effects.reader = self.reader.take().or(effects.reader.take());
        self.inbox.wake_all(&mut effects.wakers);
    }

    /// Wakes the writer, if it waits.
    fn kick(&mut self, effects: &mut Effects) {
        if let Some(waker) = self.writer.take() {
            effects.writer = Some(waker);
        }
    }

    fn push(&mut self, now: Instant, message: &Outgoing<'_>) -> Result<(), NetworkError> {
        let timestamp = self.timestamp_ns(now);
        let before = self.output.queued_bytes();
        self.output.push(message, timestamp, &self.codec)?;
        self.unwritten.queue(self.output.queued_bytes() - before);
        Ok(())
    }

    /// Queues a message that was prepared, `charged` bytes of which are charged elsewhere.
    fn push_prepared(&mut self, now: Instant, prepared: Prepared, charged: usize) {
        let timestamp = self.timestamp_ns(now);
        let before = self.output.queued_bytes();
        self.output.push_prepared(prepared, timestamp);
        let bytes = self.output.queued_bytes() - before;
        self.unwritten.queue(bytes.saturating_sub(charged));
    }

    fn push_control(&mut self, now: Instant, method: &str, payload: &Bytes) {
        let message = Outgoing {
            packet_type: PacketType::Control,
            flags: PacketFlags::NONE,
            msg_type: MessageType::Event,
            content_type: ContentType::Bytes,
            id: 0,
            method,
            payload,
            metadata: None,
        };
        // Control payloads are bounded far below a packet, so this cannot fail.
        let pushed = self.push(now, &message);
        debug_assert!(pushed.is_ok(), "a control message fits a packet");
    }

    fn queue_controls(&mut self, now: Instant) {
        let cancels = std::mem::take(&mut self.cancels);
        for ids in cancels.chunks(CANCELS_PER_MESSAGE) {
            let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            self.push_control(now, methods::CANCEL, &ids.into());
        }
        // Before the acknowledgement the peer could not use credits, and the opening has granted them already.
        if matches!(self.phase, Phase::Open) {
            if let Some(credit) = self.inbox.credit_to_return(now) {
                self.push_control(now, methods::CREDIT, &credit);
            }
            if let Some(due) = self.inbox.next_credit_due(now) {
                self.note_deadline(due);
            }
        }
    }

    fn timestamp_ns(&self, now: Instant) -> u64 {
        let (base, base_ns) = self.wall;
        base_ns + now.saturating_duration_since(base).as_nanos() as u64
    }

    /// Whether `deadline` is now the earliest, so that the task that keeps the time must be woken.
    fn note_deadline(&mut self, deadline: Instant) -> bool {
        let is_earliest = self.next_deadline.is_none_or(|next| deadline < next);
        if is_earliest {
            self.next_deadline = Some(deadline);
        }
        is_earliest
    }
}

/// Says why the stream ends, in JSON, as an error does.
pub(crate) fn closed_message(payload: &Bytes) -> Outgoing<'_> {
    Outgoing {
        packet_type: PacketType::Control,
        flags: PacketFlags::NONE,
        msg_type: MessageType::Event,
        content_type: ContentType::Json,
        id: 0,
        method: methods::CLOSED,
        payload,
        metadata: None,
    }
}

/// A time that may be said to be as far away as it likes.
pub(crate) fn after(now: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(1 << 30);
    now + wait.min(FAR)
}

fn keep_waker(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(kept) => kept.clone_from(waker),
        None => *slot = Some(waker.clone()),
    }
}

/// The payload of a message.
fn payload_of(message: ProtocolMessage) -> Payload {
    Payload {
        content_type: message.content_type,
        bytes: message.payload,
    }
}
