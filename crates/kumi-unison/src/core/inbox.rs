//! The events that came and were not taken yet, and the credit owed for those that were.
//!
//! A window is how many events and bytes may be unread (`opening.rs`). Credit goes back when a quarter of the window was
//! consumed, not event by event: less than a quarter is held back, and the largest event (half a window, `events.rs`)
//! never waits for it. Unreliable channels have no credit: their oldest event is dropped. A note among the events says
//! that the channel resumed; it costs nothing. A peer that may be out of credit gets what is owed sooner,
//! at most once a second: a receiver that takes one event now and then still shows that it reads.
//!
//! Events wait in lanes: one for each name that a receiver asked for, and one for all others, the rest. While a receiver
//! waits for a name and `recv` was never called, the rest may hold half of the window, and its oldest events are dropped:
//! events that no task takes cannot use up the credit of those that one waits for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};

use super::budget::{Budget, Charge};
use super::events::cost;
use super::{Core, Effects, Phase, Window, methods};
use crate::error::NetworkError;
use crate::wire::{ContentType, ProtocolMessage};

/// What an event that waits takes beside its payload and its name.
const EVENT_OVERHEAD: usize = 128;

/// How long credit below a quarter of the window is held back from a peer that may need it.
const CREDIT_INTERVAL: Duration = Duration::from_secs(1);

/// Which events a receiver takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    /// Those that no other lane takes.
    Rest,
    /// Those of one name.
    Named(u64),
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<ProtocolMessage>,
    /// Bytes of their payloads.
    bytes: usize,
    /// Waiting tasks, by number, so that one that stops waiting leaves nothing behind.
    wakers: Vec<(u64, Waker)>,
}

impl Queue {
    fn wake(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(self.wakers.drain(..).map(|(_, waker)| waker));
    }

    fn push(&mut self, event: ProtocolMessage) {
        self.bytes += event.payload.len();
        self.events.push_back(event);
    }

    fn pop(&mut self) -> Option<ProtocolMessage> {
        let event = self.events.pop_front()?;
        self.bytes -= event.payload.len();
        Some(event)
    }

    /// The oldest event. Of the notes before it, the last one stays.
    fn pop_oldest_event(&mut self) -> Option<ProtocolMessage> {
        let at = self.events.iter().position(|event| !event.is_resumed())?;
        // One note before it says as much as several.
        self.events.drain(..at.saturating_sub(1));
        let event = self.events.remove(at.min(1))?;
        self.bytes -= event.payload.len();
        Some(event)
    }

    /// Whether it holds more than half of this window. One event costs half of the bytes at most, and more than half of
    /// the events only where the window is a single event: nothing may stay then.
    fn is_over_half(&self, window: Window) -> bool {
        let events = self.events.len();
        events > window.events as usize / 2
            || (events > 1 && self.bytes > window.bytes as usize / 2)
    }

    fn take_events(&mut self) -> VecDeque<ProtocolMessage> {
        self.bytes = 0;
        std::mem::take(&mut self.events)
    }
}

#[derive(Debug)]
struct Named {
    lane: u64,
    method: String,
    queue: Queue,
}

#[derive(Debug)]
pub(super) struct Inbox {
    window: Window,
    /// Events come as datagrams: they cost no credit, so none is returned.
    unreliable: bool,
    /// What the events that wait take of the connection's budget.
    charge: Charge,
    /// Credit the peer has left.
    left: Window,
    /// Consumed and not returned.
    owed: Window,
    /// When credit was last returned on this stream.
    last_returned: Option<Instant>,
    /// When the writer has to return what is owed although it is less than a quarter of the window.
    credit_due: Option<Instant>,
    rest: Queue,
    named: Vec<Named>,
    next_lane: u64,
    /// The number of the last task that waited.
    last_waiter: u64,
    /// Events without a named lane are discarded.
    discard_rest: bool,
    /// The rest was asked for, so none of it is dropped.
    rest_is_read: bool,
}

impl Inbox {
    pub(super) fn new(window: Window, unreliable: bool, budget: &Arc<Budget>) -> Self {
        Self {
            window,
            unreliable,
            charge: Charge::none(budget),
            left: window,
            owed: Window {
                events: 0,
                bytes: 0,
            },
            last_returned: None,
            credit_due: None,
            rest: Queue::default(),
            named: Vec::new(),
            next_lane: 0,
            last_waiter: 0,
            discard_rest: false,
            rest_is_read: false,
        }
    }

    /// A stream begins: the peer has the whole window but for what is still held here. Answers how much that is.
    pub(super) fn begin_stream(&mut self) -> Window {
        let mut held = Window {
            events: 0,
            bytes: 0,
        };
        let queues = self
            .named
            .iter()
            .map(|named| &named.queue)
            .chain([&self.rest]);
        for event in queues
            .flat_map(|queue| &queue.events)
            .filter(|event| !event.is_resumed() && !self.unreliable)
        {
            held.events += 1;
            held.bytes += cost(self.window, event.payload.len());
        }
        self.left = Window {
            events: self.window.events.saturating_sub(held.events),
            bytes: self.window.bytes.saturating_sub(held.bytes),
        };
        self.owed = Window {
            events: 0,
            bytes: 0,
        };
        self.last_returned = None;
        self.credit_due = None;
        held
    }

    /// Every receiver gets the note that events may have been missed.
    pub(super) fn resumed(&mut self, wakers: &mut Vec<Waker>) {
        let note = ProtocolMessage::event(methods::RESUMED, ContentType::Bytes, Bytes::new());
        let queues = self.named.iter_mut().map(|named| &mut named.queue);
        for queue in queues.chain([&mut self.rest]) {
            // A second note says nothing that the first does not.
            if !queue.events.back().is_some_and(ProtocolMessage::is_resumed) {
                queue.push(note.clone());
            }
            queue.wake(wakers);
        }
    }

    pub(super) fn wake_all(&mut self, wakers: &mut Vec<Waker>) {
        self.rest.wake(wakers);
        for named in &mut self.named {
            named.queue.wake(wakers);
        }
    }

    /// The payload of a credit message, if enough is owed for one. If one is due later, notes when.
    pub(super) fn credit_to_return(&mut self, now: Instant) -> Option<Bytes> {
        if !self.owes_enough() {
            if !self.owes_soon() {
                return None;
            }
            let due = self.last_returned.map(|last| last + CREDIT_INTERVAL);
            if let Some(due) = due.filter(|due| *due > now) {
                self.credit_due = Some(due);
                return None;
            }
        }
        let Window { events, bytes } = self.owed;
        self.left.events += events;
        self.left.bytes += bytes;
        self.owed = Window {
            events: 0,
            bytes: 0,
        };
        self.last_returned = Some(now);
        self.credit_due = None;
        let mut payload = BytesMut::with_capacity(8);
        payload.put_u32_le(events);
        payload.put_u32_le(bytes);
        Some(payload.freeze())
    }

    /// When the next credit message is due, if that is after `now`; a time that has passed is forgotten.
    pub(super) fn next_credit_due(&mut self, now: Instant) -> Option<Instant> {
        self.credit_due = self.credit_due.filter(|due| *due > now);
        self.credit_due
    }

    /// An event is no longer held: what it cost goes back, to the budget and to the peer.
    fn released(&mut self, event: &ProtocolMessage) {
        if !event.is_resumed() {
            self.charge.shrink(weight(event));
            self.consumed(event);
        }
    }

    /// Owes the peer what an event cost it.
    fn consumed(&mut self, event: &ProtocolMessage) {
        if !self.unreliable {
            self.owed.events += 1;
            self.owed.bytes += cost(self.window, event.payload.len());
        }
    }

    fn owes_enough(&self) -> bool {
        let enough = |owed: u32, window: u32| owed > 0 && owed >= window / 4;
        enough(self.owed.events, self.window.events) || enough(self.owed.bytes, self.window.bytes)
    }

    /// Whether the peer may be waiting for what is owed: it cannot send an event, or not the largest.
    fn owes_soon(&self) -> bool {
        self.owed.events > 0 && (self.left.events == 0 || self.left.bytes < self.window.bytes / 2)
    }

    /// Drops the oldest of the rest beyond half of the window, where they hold up what a receiver waits for. Returns how
    /// many.
    fn trim_rest(&mut self) -> u64 {
        let is_wanted = |named: &Named| !named.queue.wakers.is_empty();
        if self.unreliable || self.rest_is_read || !self.named.iter().any(is_wanted) {
            return 0;
        }
        let mut dropped = 0;
        while self.rest.is_over_half(self.window)
            && let Some(event) = self.rest.pop_oldest_event()
        {
            self.released(&event);
            dropped += 1;
        }
        dropped
    }

    /// Whether the peer has credit for an event of this length.
    fn has_credit_for(&self, len: usize) -> bool {
        self.left.events > 0 && self.left.bytes >= cost(self.window, len)
    }

    /// Takes an event for which the peer has credit. Fails if the connection's budget has no room for it.
    fn receive(
        &mut self,
        event: ProtocolMessage,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        self.left.events -= 1;
        self.left.bytes -= cost(self.window, event.payload.len());
        let Some(lane) = self.lane_of(&event, effects) else {
            self.consumed(&event);
            return Ok(());
        };
        // Credit bounds a channel, this the connection: many windows, or few of the largest events, are too much.
        if !self.charge.grow(weight(&event)) {
            return Err(NetworkError::MemoryLimit);
        }
        self.deliver(lane, event, effects);
        effects.counts.events_dropped += self.trim_rest();
        Ok(())
    }

    /// Takes an event that came as a datagram and needs no credit. When a window's worth waits, the oldest is dropped.
    fn receive_datagram(&mut self, event: ProtocolMessage, effects: &mut Effects) {
        let Some(lane) = self.lane_of(&event, effects) else {
            return;
        };
        let Window { events, bytes } = self.window;
        let is_over = |queue: &Queue| {
            queue.events.len() >= events.max(1) as usize
                || queue.bytes + event.payload.len() > bytes as usize
        };
        while let Some(queue) = self.queue(lane)
            && is_over(queue)
            && let Some(oldest) = queue.pop_oldest_event()
        {
            self.charge.shrink(weight(&oldest));
            effects.counts.events_dropped += 1;
        }
        if self.charge.grow(weight(&event)) {
            self.deliver(lane, event, effects);
        } else {
            effects.counts.events_dropped += 1;
        }
    }

    /// Where an event goes that has arrived; `None` if it is discarded.
    fn lane_of(&self, event: &ProtocolMessage, effects: &mut Effects) -> Option<Lane> {
        effects.counts.events_received += 1;
        let named = self.named.iter().find(|named| named.method == event.method);
        match named {
            Some(named) => Some(Lane::Named(named.lane)),
            None if self.discard_rest => {
                effects.counts.events_discarded += 1;
                None
            }
            None => Some(Lane::Rest),
        }
    }

    fn deliver(&mut self, lane: Lane, event: ProtocolMessage, effects: &mut Effects) {
        if let Some(queue) = self.queue(lane) {
            queue.push(event);
            queue.wake(&mut effects.wakers);
        }
    }

    /// The next event of a lane; an error if there is no such lane.
    fn pop(&mut self, lane: Lane) -> Result<Option<ProtocolMessage>, NetworkError> {
        self.rest_is_read |= lane == Lane::Rest;
        let queue = self.queue(lane).ok_or(NetworkError::closed())?;
        let event = queue.pop();
        if let Some(event) = &event {
            self.released(event);
        }
        Ok(event)
    }

    /// A task waits for an event of a lane. `number` is its number among the waiting tasks, once it has one. Returns how
    /// many events of the rest were dropped for it.
    fn wait(&mut self, lane: Lane, number: &mut Option<u64>, waker: &Waker) -> u64 {
        let number = *number.get_or_insert_with(|| {
            self.last_waiter += 1;
            self.last_waiter
        });
        if let Some(queue) = self.queue(lane) {
            match queue.wakers.iter_mut().find(|(known, _)| *known == number) {
                Some((_, kept)) => kept.clone_from(waker),
                None => queue.wakers.push((number, waker.clone())),
            }
        }
        self.trim_rest()
    }

    /// The task with this number has stopped waiting.
    fn stop_waiting(&mut self, lane: Lane, number: u64) {
        if let Some(queue) = self.queue(lane) {
            queue.wakers.retain(|(known, _)| *known != number);
        }
    }

    fn add_lane(&mut self, method: &str) -> Lane {
        let lane = self.next_lane;
        self.next_lane += 1;
        let mut queue = Queue::default();
        for event in self.rest.take_events() {
            if event.method == method {
                &mut queue
            } else {
                &mut self.rest
            }
            .push(event);
        }
        self.named.push(Named {
            lane,
            method: method.to_owned(),
            queue,
        });
        Lane::Named(lane)
    }

    fn remove_lane(&mut self, lane: Lane, effects: &mut Effects) {
        let Lane::Named(lane) = lane else { return };
        let Some(at) = self.named.iter().position(|named| named.lane == lane) else {
            return;
        };
        let Named { method, queue, .. } = self.named.remove(at);
        let events = queue.events.into_iter().filter(|event| !event.is_resumed());
        if let Some(other) = self.named.iter_mut().find(|named| named.method == method) {
            events.for_each(|event| other.queue.push(event));
            other.queue.wake(&mut effects.wakers);
        } else if self.discard_rest {
            for event in events {
                effects.counts.events_discarded += 1;
                self.released(&event);
            }
        } else {
            events.for_each(|event| self.rest.push(event));
            self.rest.wake(&mut effects.wakers);
            effects.counts.events_dropped += self.trim_rest();
        }
    }

    fn discard_rest(&mut self, effects: &mut Effects) {
        self.discard_rest = true;
        let events = self.rest.take_events();
        for event in events.iter().filter(|event| !event.is_resumed()) {
            effects.counts.events_discarded += 1;
            self.released(event);
        }
    }

    /// Whether the writer has credit to return. Where it has a time to return some at, it is not woken before.
    fn has_credit_to_return(&self) -> bool {
        self.owes_enough() || (self.credit_due.is_none() && self.owes_soon())
    }

    fn queue(&mut self, lane: Lane) -> Option<&mut Queue> {
        match lane {
            Lane::Rest => Some(&mut self.rest),
            Lane::Named(lane) => self
                .named
                .iter_mut()
                .find(|named| named.lane == lane)
                .map(|named| &mut named.queue),
        }
    }
}

/// What an event takes while it waits.
fn weight(event: &ProtocolMessage) -> usize {
    event.payload.len() + event.method.len() + EVENT_OVERHEAD
}

impl Core {
    pub(super) fn handle_event(
        &mut self,
        event: ProtocolMessage,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        let violation = if !self.inbox.has_credit_for(event.payload.len()) {
            "an event without credit"
        } else if event.method.starts_with(methods::RESERVED) {
            "an event with a reserved name"
        } else if self.is_typed_refused(&event) {
            "typed binary between different schemas"
        } else {
            self.inbox.receive(event, effects)?;
            self.wake_for_credit(effects);
            return Ok(());
        };
        Err(NetworkError::Violation(violation.to_owned()))
    }

    /// Takes an event that came as a datagram. It needs no credit; when a window's worth waits already, the oldest is
    /// dropped.
    pub(crate) fn handle_datagram(&mut self, event: ProtocolMessage, effects: &mut Effects) {
        if !event.method.starts_with(methods::RESERVED) && !self.is_typed_refused(&event) {
            self.inbox.receive_datagram(event, effects);
        }
    }

    fn is_typed_refused(&self, event: &ProtocolMessage) -> bool {
        event.content_type == ContentType::Typed && self.typed_allowed == Some(false)
    }

    /// The next event of a lane. What came before the channel ended is still handed out. `waiting` is the caller's number
    /// among the waiting tasks, once it has one.
    pub(crate) fn poll_event(
        &mut self,
        lane: Lane,
        waiting: &mut Option<u64>,
        cx: &mut Context<'_>,
        effects: &mut Effects,
    ) -> Poll<Result<ProtocolMessage, NetworkError>> {
        match self.inbox.pop(lane) {
            Ok(Some(event)) => {
                self.wake_for_credit(effects);
                return Poll::Ready(Ok(event));
            }
            Ok(None) => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
        match &self.phase {
            Phase::PeerDone => Poll::Ready(Err(NetworkError::closed())),
            Phase::Ended { error, .. } => Poll::Ready(Err(error.clone())),
            Phase::Open | Phase::Opening { .. } | Phase::Lost => {
                let dropped = self.inbox.wait(lane, waiting, cx.waker());
                if dropped > 0 {
                    effects.counts.events_dropped += dropped;
                    self.wake_for_credit(effects);
                }
                Poll::Pending
            }
        }
    }

    /// The task with this number has stopped waiting.
    pub(crate) fn stop_waiting(&mut self, lane: Lane, number: u64) {
        self.inbox.stop_waiting(lane, number);
    }

    /// A lane for the events of one name, as far as they have not been taken. If a lane of that name exists, this one gets
    /// nothing until that one ends.
    pub(crate) fn add_lane(&mut self, method: &str) -> Lane {
        self.inbox.add_lane(method)
    }

    /// Ends a lane. Its events go to another lane of that name, else to the rest as far as that may hold them; after
    /// [`discard_rest`](Self::discard_rest) they are discarded.
    pub(crate) fn remove_lane(&mut self, lane: Lane, effects: &mut Effects) {
        self.inbox.remove_lane(lane, effects);
        self.wake_for_credit(effects);
    }

    /// From now on events without a named lane are discarded, those that wait included.
    pub(crate) fn discard_rest(&mut self, effects: &mut Effects) {
        self.inbox.discard_rest(effects);
        self.wake_for_credit(effects);
    }

    /// Wakes the writer if it has credit to return.
    pub(super) fn wake_for_credit(&mut self, effects: &mut Effects) {
        if self.inbox.has_credit_to_return() {
            self.kick(effects);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_unreliable_inbox_drops_its_oldest_event_and_keeps_the_note_before_it() {
        let budget = Arc::new(Budget::new(10_000));
        let window = Window {
            events: 2,
            bytes: 1_000,
        };
        let mut inbox = Inbox::new(window, true, &budget);
        let mut effects = Effects::default();
        let event = |text: &'static str| {
            ProtocolMessage::event(
                "tick",
                ContentType::Bytes,
                Bytes::from_static(text.as_bytes()),
            )
        };
        inbox.resumed(&mut effects.wakers);
        for text in ["1", "2", "3"] {
            inbox.receive_datagram(event(text), &mut effects);
        }
        let mut taken = Vec::new();
        while let Some(event) = inbox.pop(Lane::Rest).expect("a lane") {
            taken.push(match event.is_resumed() {
                true => "note".to_owned(),
                false => String::from_utf8_lossy(&event.payload).into_owned(),
            });
        }
        assert_eq!(taken, ["note", "3"]);
        assert_eq!(effects.counts.events_dropped, 2);
        assert_eq!(budget.used_bytes(), 0, "a note takes nothing of the budget");
    }
}
