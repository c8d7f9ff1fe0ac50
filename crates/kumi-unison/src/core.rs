//! The state machine of one channel, without tasks, clock or socket.
//!
//! `Core` is called with each event (a request to send, a message received, a deadline, a lost stream) and returns
//! bytes to write, requests to run and wakers to wake. Its user holds it in a lock, never across an await, and calls:
//!
//! 1. `Core::opener` or `Core::acceptor`, once;
//! 2. `start_call`, `send_event`, `answer`, ... as the application asks, and `handle` with every message that comes;
//! 3. `take_output` whenever the writer was woken, until it says to wait;
//! 4. `handle_timeout` no later than `next_deadline`;
//! 5. after each of them, carry out `Effects` once the lock is released.
//!
//! Every call ends exactly once: it is in `calls` until its future took the result or was dropped, and every way a channel
//! can end calls `fail_calls`. A cancelled call counts as in flight until the peer has responded, so cancelling makes no room
//! for more.

mod answers;
mod budget;
mod calls;
mod events;
mod ids;
mod inbox;
mod opening;
mod outbox;
mod tasks;
#[cfg(test)]
mod tests;
mod unwritten;

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::{NetworkError, RemoteError};
use crate::identity::SchemaId;
use crate::payload::Payload;
use crate::wire::{
    Codec, ContentType, MAX_MESSAGE_SIZE, MessageType, Metadata, Outgoing, PacketFlags,
    PacketHeader, PacketType, ProtocolMessage, WireError,
};

use answers::RequestTable;
pub(crate) use answers::{IncomingCall, answer_message, error_message};
#[cfg(feature = "quic")]
pub(crate) use budget::EndpointBudget;
pub(crate) use budget::{Budget, Charge, Share};
use calls::CallTable;
pub(crate) use calls::{NewCall, Refused};
use events::Credits;
pub use events::EventPolicy;
pub(crate) use events::event_message;
use inbox::Inbox;
pub(crate) use inbox::Lane;
pub use opening::Window;
pub(crate) use opening::{Opening, SchemaFit, fit};
use outbox::Outbox;
use tasks::Tasks;

pub(crate) use crate::wire::methods;

/// Requests that may be in flight before the acknowledgement says how many.
pub(crate) const INITIAL_IN_FLIGHT: u32 = 64;

/// Refusals may queue up this far beyond a full output before the peer counts as not reading.
const REFUSAL_ALLOWANCE: usize = MAX_MESSAGE_SIZE + 1024 * 1024;

/// Refusals that the writer has not taken may be this long while the connection's output is above its limit.
const REFUSALS_OVER_BUDGET: usize = 64 * 1024;

/// The most ids in one CANCEL. The peer decides how many calls are in flight, and a packet has a bounded length.
const CANCELS_PER_MESSAGE: usize = 4_096;

/// What a channel is set to.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) schema: Option<SchemaId>,
    /// Whether a lost stream may be replaced.
    pub(crate) persistent: bool,
    /// What happens to an event of this side that finds no credit.
    pub(crate) policy: EventPolicy,
    /// The window for events that this side grants.
    pub(crate) window: Window,
    /// Requests of the peer that this side runs at a time.
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
    /// The opening is sent and not acknowledged. Requests are sent already.
    Opening {
        id: u64,
        until: Instant,
        resuming: bool,
    },
    Open,
    /// The peer has finished its half of the stream; its requests are still answered.
    PeerDone,
    /// The stream broke under a persistent channel.
    Lost,
    /// The channel has ended. If `flush`, queued output is still written.
    Ended {
        error: NetworkError,
        flush: bool,
    },
}

/// What the driver has to do once it has released the lock.
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
    /// To be added to the metrics.
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

/// The state of one side of a channel. Its parts (`outbox`, `calls`, `requests`, `credits`, `inbox`, `tasks`) each have a
/// file and private fields, and know nothing of each other; the methods of `Core` call them.
pub(crate) struct Core {
    settings: Settings,
    name: String,
    phase: Phase,
    /// Counts streams: what belongs to an earlier one is ignored.
    generation: u64,
    outbox: Outbox,
    /// The number that the next packet of the peer must have.
    expected_sequence: u64,
    typed_allowed: Option<bool>,
    /// The peer announced its end, or its server did: no new requests.
    draining_there: bool,
    /// This side refuses new requests.
    draining_here: bool,

    /// Requests that this side sent.
    calls: CallTable,
    /// Requests of the peer.
    requests: RequestTable,
    credits: Credits,
    inbox: Inbox,
    tasks: Tasks,

    /// Not later than the earliest of all deadlines.
    next_deadline: Option<Instant>,
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

    /// The side that accepts. Queues the acknowledgement.
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
            outbox: Outbox::new(
                stream_id,
                settings.output_limit_bytes,
                &settings.unwritten,
                codec,
                wall,
            ),
            settings,
            name: name.to_owned(),
            phase: Phase::Open,
            generation: 0,
            expected_sequence: 0,
            typed_allowed: None,
            draining_there: false,
            draining_here: false,
            calls: CallTable::default(),
            requests: RequestTable::default(),
            tasks: Tasks::default(),
            next_deadline: None,
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
            // A later version may have more control messages; unknown ones are ignored.
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
            // The peer had finished its half in order, so this is an orderly end even if an answer does not arrive.
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
            // Their callers are gone: CANCEL stops the peer's handlers.
            self.calls.cancel_waiting();
        }
        let cancels = self.calls.take_cancels();
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
            self.calls.set_cancels(cancels);
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
        self.outbox.begin_stream(stream_id);
        self.expected_sequence = 0;
        self.calls.set_max_in_flight(INITIAL_IN_FLIGHT);
        self.draining_there = false;
        self.credits.forget_grant();
        self.tasks = Tasks::default();
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
        self.outbox.written();
        self.queue_controls(now);
        if self.outbox.take(now, chunks) {
            return Step::Write;
        }
        if self.phase == Phase::PeerDone && self.requests.is_empty() {
            self.phase = Phase::Ended {
                error: NetworkError::closed(),
                flush: true,
            };
        }
        if let Phase::Ended { .. } = self.phase {
            return Step::Finish;
        }
        self.tasks.keep_writer(waker);
        Step::Wait
    }

    /// The output that the writer took is written. Called when the writer takes no more.
    pub(crate) fn output_written(&mut self, stream: u64) {
        if self.is_current(stream) {
            self.outbox.written();
        }
    }

    /// The last output of a channel that ended for what the peer sent, or by its policy: what is queued, because packets are
    /// numbered, and the reason. False if the peer gets no reason.
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
        let pushed = self.outbox.push(now, &closed_message(&payload.bytes));
        self.outbox.take_last(chunks);
        pushed.is_ok()
    }

    /// Whether the last write made room for senders that found none because the connection's output was above its limit.
    pub(crate) fn take_made_room(&mut self) -> bool {
        self.outbox.take_made_room()
    }

    /// What is queued will not be written.
    pub(crate) fn drop_output(&mut self) {
        self.outbox.clear();
    }

    /// While the writer waits for the transport it is woken all the same when deadlines change or the channel ends.
    pub(crate) fn writer_should_give_up(&mut self, stream: u64, waker: &Waker) -> bool {
        let over = matches!(self.phase, Phase::Lost | Phase::Ended { flush: false, .. });
        if over || !self.is_current(stream) {
            return true;
        }
        self.tasks.keep_writer(waker);
        false
    }

    /// Whether the reader has nothing more to do; if it has, its waker is kept.
    pub(crate) fn reader_should_stop(&mut self, stream: u64, waker: &Waker) -> bool {
        let over = matches!(self.phase, Phase::Lost | Phase::Ended { .. });
        if over || !self.is_current(stream) {
            return true;
        }
        self.tasks.keep_reader(waker);
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
            // After a reconnection a persistent channel is not ended by one slow opening.
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
        let (calls, running) = (self.calls.next_deadline(), self.requests.next_deadline());
        // The writer is the one that runs this, and returns credit that is due next.
        let credit = self.inbox.next_credit_due(now);
        let all = [calls, running, opening, credit];
        self.next_deadline = all.into_iter().flatten().min();
    }

    /// From now on requests of the peer are refused as draining.
    pub(crate) fn drain_here(&mut self) {
        self.draining_here = true;
    }

    /// From now on requests of this side fail as draining: the peer announced its shutdown.
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
        (
            self.calls.len(),
            self.calls.abandoned(),
            self.requests.len(),
        )
    }

    /// Bytes that wait for the writer.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.outbox.queued_bytes()
    }

    /// Whether output is short enough to add to.
    pub(crate) fn has_room(&self) -> bool {
        self.outbox.has_room()
    }

    fn drop_work(&mut self) {
        self.requests.clear();
        self.calls.forget_abandoned();
    }

    fn wake_everyone(&mut self, effects: &mut Effects) {
        effects.state = true;
        effects.slots = true;
        effects.credits = true;
        self.tasks.wake_all(effects);
        self.inbox.wake_all(&mut effects.wakers);
    }

    /// Wakes the writer, if it waits.
    fn kick(&mut self, effects: &mut Effects) {
        self.tasks.wake_writer(effects);
    }

    fn queue_controls(&mut self, now: Instant) {
        let cancels = self.calls.take_cancels();
        for ids in cancels.chunks(CANCELS_PER_MESSAGE) {
            let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            self.outbox.push_control(now, methods::CANCEL, &ids.into());
        }
        // Before the acknowledgement the peer could not use credits, and the opening has granted them already.
        if matches!(self.phase, Phase::Open) {
            if let Some(credit) = self.inbox.credit_to_return(now) {
                self.outbox.push_control(now, methods::CREDIT, &credit);
            }
            if let Some(due) = self.inbox.next_credit_due(now) {
                self.note_deadline(due);
            }
        }
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

/// `now + wait`, with a wait that is capped so that it cannot overflow.
pub(crate) fn after(now: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(1 << 30);
    now + wait.min(FAR)
}

/// The payload of a message.
fn payload_of(message: ProtocolMessage) -> Payload {
    Payload {
        content_type: message.content_type,
        bytes: message.payload,
    }
}
