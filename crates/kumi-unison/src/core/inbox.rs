//! The events that came and were not taken yet, and the credit owed for those that were.
//!
//! Credit goes back when a quarter of the window was consumed, not event by event: what is held back can then never
//! keep the largest event waiting, which costs half a window. Events wait in lanes: one for each name that somebody
//! asked for, and one for all others.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::{BufMut, Bytes, BytesMut};

use super::events::cost;
use super::{Core, Effects, Phase, Window, methods};
use crate::error::NetworkError;
use crate::wire::{ContentType, ProtocolMessage};

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
    wakers: Vec<Waker>,
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
    /// Credit the peer has left.
    left: Window,
    /// Consumed and not returned.
    owed: Window,
    rest: Queue,
    named: Vec<Named>,
    next_lane: u64,
    /// Events for which there is no named lane are thrown away.
    discard_rest: bool,
}

impl Inbox {
    pub(super) fn new(window: Window) -> Self {
        Self {
            window,
            left: window,
            owed: Window {
                events: 0,
                bytes: 0,
            },
            rest: Queue::default(),
            named: Vec::new(),
            next_lane: 0,
            discard_rest: false,
        }
    }

    /// A stream begins: the peer has the whole window but for what is still held here, which is returned.
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
            .filter(|event| !event.is_resumed())
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
        held
    }

    /// Everybody who listens learns that events may have been missed.
    pub(super) fn resumed(&mut self, wakers: &mut Vec<Waker>) {
        let note = ProtocolMessage::event(methods::RESUMED, ContentType::Bytes, Bytes::new());
        let queues = self.named.iter_mut().map(|named| &mut named.queue);
        for queue in queues.chain([&mut self.rest]) {
            // A second note says nothing that the first does not.
            if !queue.events.back().is_some_and(ProtocolMessage::is_resumed) {
                queue.events.push_back(note.clone());
            }
            wakers.append(&mut queue.wakers);
        }
    }

    pub(super) fn wake_all(&mut self, wakers: &mut Vec<Waker>) {
        wakers.append(&mut self.rest.wakers);
        for named in &mut self.named {
            wakers.append(&mut named.queue.wakers);
        }
    }

    /// Credit that is worth a message, as that message's payload.
    pub(super) fn credit_to_return(&mut self) -> Option<Bytes> {
        let Window { events, bytes } = self.owed;
        let enough = |owed: u32, window: u32| owed > 0 && owed >= window / 4;
        if !enough(events, self.window.events) && !enough(bytes, self.window.bytes) {
            return None;
        }
        self.left.events += events;
        self.left.bytes += bytes;
        self.owed = Window {
            events: 0,
            bytes: 0,
        };
        let mut payload = BytesMut::with_capacity(8);
        payload.put_u32_le(events);
        payload.put_u32_le(bytes);
        Some(payload.freeze())
    }

    fn consumed(&mut self, event: &ProtocolMessage) {
        if !event.is_resumed() {
            self.owed.events += 1;
            self.owed.bytes += cost(self.window, event.payload.len());
        }
    }

    fn owes_enough(&self) -> bool {
        let enough = |owed: u32, window: u32| owed > 0 && owed >= window / 4;
        enough(self.owed.events, self.window.events) || enough(self.owed.bytes, self.window.bytes)
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

impl Core {
    pub(super) fn handle_event(
        &mut self,
        event: ProtocolMessage,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        let inbox = &mut self.inbox;
        let cost = cost(inbox.window, event.payload.len());
        if inbox.left.events == 0 || inbox.left.bytes < cost {
            return Err(NetworkError::Violation(
                "an event without credit".to_owned(),
            ));
        }
        if event.method.starts_with(methods::RESERVED) {
            return Err(NetworkError::Violation(
                "an event with a reserved name".to_owned(),
            ));
        }
        inbox.left.events -= 1;
        inbox.left.bytes -= cost;
        effects.counts.events_received += 1;
        let named = inbox
            .named
            .iter_mut()
            .find(|named| named.method == event.method);
        let queue = match named {
            Some(named) => &mut named.queue,
            None if inbox.discard_rest => {
                effects.counts.events_discarded += 1;
                inbox.consumed(&event);
                self.return_credit(effects);
                return Ok(());
            }
            None => &mut inbox.rest,
        };
        queue.events.push_back(event);
        effects.wakers.append(&mut queue.wakers);
        Ok(())
    }

    /// Takes an event that came as a datagram. It needs no credit; when a window's worth waits already, the oldest is
    /// dropped.
    pub(crate) fn handle_datagram(&mut self, event: ProtocolMessage, effects: &mut Effects) {
        if event.method.starts_with(methods::RESERVED) {
            return;
        }
        effects.counts.events_received += 1;
        let inbox = &mut self.inbox;
        let most = inbox.window.events.max(1) as usize;
        let named = inbox
            .named
            .iter_mut()
            .find(|named| named.method == event.method);
        let queue = match named {
            Some(named) => &mut named.queue,
            None if inbox.discard_rest => {
                effects.counts.events_discarded += 1;
                return;
            }
            None => &mut inbox.rest,
        };
        if queue.events.len() >= most {
            queue.events.pop_front();
            effects.counts.events_dropped += 1;
        }
        queue.events.push_back(event);
        effects.wakers.append(&mut queue.wakers);
    }

    /// The next event of a lane. What came before the channel ended is still handed out.
    pub(crate) fn poll_event(
        &mut self,
        lane: Lane,
        cx: &mut Context<'_>,
        effects: &mut Effects,
    ) -> Poll<Result<ProtocolMessage, NetworkError>> {
        let Some(queue) = self.inbox.queue(lane) else {
            return Poll::Ready(Err(NetworkError::Closed));
        };
        if let Some(event) = queue.events.pop_front() {
            if !self.settings.unreliable {
                self.inbox.consumed(&event);
                self.return_credit(effects);
            }
            return Poll::Ready(Ok(event));
        }
        match &self.phase {
            Phase::PeerDone => Poll::Ready(Err(NetworkError::Closed)),
            Phase::Ended { error, .. } => Poll::Ready(Err(error.clone())),
            Phase::Open | Phase::Opening { .. } | Phase::Lost => {
                if !queue.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    queue.wakers.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// A lane for the events of one name, as far as they have not been taken.
    pub(crate) fn add_lane(&mut self, method: &str) -> Lane {
        let inbox = &mut self.inbox;
        let lane = inbox.next_lane;
        inbox.next_lane += 1;
        let mut queue = Queue::default();
        let mut rest = VecDeque::with_capacity(inbox.rest.events.len());
        for event in inbox.rest.events.drain(..) {
            if event.method == method {
                &mut queue.events
            } else {
                &mut rest
            }
            .push_back(event);
        }
        inbox.rest.events = rest;
        inbox.named.push(Named {
            lane,
            method: method.to_owned(),
            queue,
        });
        Lane::Named(lane)
    }

    /// A lane's name goes back to whoever else wants it; what waits in it too.
    pub(crate) fn remove_lane(&mut self, lane: Lane, effects: &mut Effects) {
        let inbox = &mut self.inbox;
        let Lane::Named(lane) = lane else { return };
        let Some(at) = inbox.named.iter().position(|named| named.lane == lane) else {
            return;
        };
        let Named { method, queue, .. } = inbox.named.remove(at);
        let events = queue.events.into_iter().filter(|event| !event.is_resumed());
        if let Some(other) = inbox.named.iter_mut().find(|named| named.method == method) {
            other.queue.events.extend(events);
            effects.wakers.append(&mut other.queue.wakers);
        } else if inbox.discard_rest {
            for event in events {
                effects.counts.events_discarded += 1;
                inbox.consumed(&event);
            }
            self.return_credit(effects);
        } else {
            inbox.rest.events.extend(events);
            effects.wakers.append(&mut inbox.rest.wakers);
        }
    }

    /// From now on events without a lane of their own are thrown away, and those that wait too.
    pub(crate) fn discard_rest(&mut self, effects: &mut Effects) {
        self.inbox.discard_rest = true;
        let events: Vec<_> = self.inbox.rest.events.drain(..).collect();
        for event in events.iter().filter(|event| !event.is_resumed()) {
            effects.counts.events_discarded += 1;
            self.inbox.consumed(event);
        }
        self.return_credit(effects);
    }

    /// Wakes the writer if it has credit to return.
    fn return_credit(&mut self, effects: &mut Effects) {
        if self.inbox.owes_enough() {
            self.kick(effects);
        }
    }
}
