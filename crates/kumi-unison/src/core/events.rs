//! Events of this side, and the credit they cost (flow control).
//!
//! An event costs one event credit and its payload's length in byte credits, but never more than half the window: so
//! the largest event passes sooner or later through any window, and at most two such are on the way.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use super::unwritten::Unwritten;
use super::{Core, Effects, Phase, Refused, Window};
use crate::error::NetworkError;
use crate::payload::Payload;
use crate::wire::{ContentType, MessageType, Outgoing, PacketFlags, PacketType, Prepared};

/// What happens to an event that finds no credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum EventPolicy {
    /// The sender waits. A peer that returns no credit for 30 s
    /// ([`ChannelOptions::credit_timeout`](crate::ChannelOptions::credit_timeout)) gets the reason, and the channel closes.
    #[default]
    Wait,
    /// It is kept, up to a window's worth, and the oldest kept one is dropped and counted.
    DropOldest,
    /// The channel closes.
    Close,
}

/// The credit that the peer has granted.
pub(super) struct Credits {
    /// The peer's window; none before the peer granted one.
    window: Option<Window>,
    events: u32,
    bytes: u32,
    /// When the peer last granted or returned credit.
    last_credit: Instant,
    /// Events kept for want of credit, where the policy is to drop the oldest.
    backlog: VecDeque<Kept>,
    backlog_bytes: usize,
}

/// An event that waits for credit.
struct Kept {
    /// Of its payload, which is what it costs.
    len: usize,
    /// What it takes of the connection's budget.
    charged: usize,
    event: KeptEvent,
}

enum KeptEvent {
    Short(String, Payload),
    Long(Prepared),
}

/// The byte credits that an event of this length costs.
pub(super) fn cost(window: Window, len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX).min(window.bytes / 2)
}

impl Credits {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            window: None,
            events: 0,
            bytes: 0,
            last_credit: now,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
        }
    }

    pub(super) fn grant(&mut self, now: Instant, window: Window, held: Window) {
        self.last_credit = now;
        self.window = Some(window);
        self.events = window.events.saturating_sub(held.events);
        self.bytes = window.bytes.saturating_sub(held.bytes);
    }

    pub(super) fn forget_grant(&mut self) {
        self.window = None;
        self.events = 0;
        self.bytes = 0;
    }

    /// Takes credit that the peer returned; false if that is more than its window.
    fn returned(&mut self, now: Instant, events: u32, bytes: u32) -> bool {
        let window = self.window.unwrap_or(Window {
            events: 0,
            bytes: 0,
        });
        self.last_credit = now;
        self.events = self.events.saturating_add(events);
        self.bytes = self.bytes.saturating_add(bytes);
        self.events <= window.events && self.bytes <= window.bytes
    }

    /// Whether the peer has granted a window.
    fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// Whether no event waits for credit.
    fn has_no_backlog(&self) -> bool {
        self.backlog.is_empty()
    }

    /// The oldest event that waits, if there is credit for it, which is taken.
    fn next_kept(&mut self, unwritten: &mut Unwritten) -> Option<Kept> {
        let len = self.backlog.front()?.len;
        if !self.take(len) {
            return None;
        }
        self.pop_kept(unwritten)
    }

    /// When the peer last granted or returned credit.
    fn last_credit(&self) -> Instant {
        self.last_credit
    }

    /// Whether an event of this length finds credit, and what it costs.
    fn affords(&self, len: usize) -> Option<u32> {
        let cost = cost(self.window?, len);
        (self.events >= 1 && self.bytes >= cost).then_some(cost)
    }

    fn take(&mut self, len: usize) -> bool {
        let cost = self.affords(len);
        if let Some(cost) = cost {
            self.events -= 1;
            self.bytes -= cost;
        }
        cost.is_some()
    }

    /// Keeps an event, and drops the oldest as far as the window demands, the peer's or this side's, whichever is smaller: the
    /// peer may grant any window, but the events are held in this side's memory. While the connection's output is above its limit, only the
    /// newest is kept. Returns how many were dropped.
    fn keep(&mut self, kept: Kept, ours: Window, unwritten: &mut Unwritten) -> u64 {
        let theirs = self.window.unwrap_or(ours);
        let window = Window {
            events: theirs.events.min(ours.events),
            bytes: theirs.bytes.min(ours.bytes),
        };
        unwritten.keep(kept.charged);
        self.backlog_bytes += kept.len;
        self.backlog.push_back(kept);
        let mut dropped = 0;
        while self.backlog.len() > window.events.max(1) as usize
            || (self.backlog.len() > 1
                && (self.backlog_bytes > window.bytes as usize || unwritten.is_over()))
        {
            if self.pop_kept(unwritten).is_some() {
                dropped += 1;
            }
        }
        dropped
    }

    fn pop_kept(&mut self, unwritten: &mut Unwritten) -> Option<Kept> {
        let kept = self.backlog.pop_front()?;
        self.backlog_bytes -= kept.len;
        unwritten.release_kept(kept.charged);
        Some(kept)
    }
}

impl Core {
    /// Whether an event of this length would be queued or kept now, so that it is prepared only when it can be used.
    pub(crate) fn wants_event(&self, len: usize) -> bool {
        let is_open = matches!(self.phase, Phase::Open | Phase::Opening { .. });
        self.settings.policy == EventPolicy::DropOldest
            || is_open && self.has_room() && self.credits.affords(len).is_some()
    }

    /// Queues an event, or does with it what the policy says. `prepared` is its encoding, if it is long; it is left in
    /// place when the event has to wait.
    pub(crate) fn send_event(
        &mut self,
        now: Instant,
        method: &str,
        payload: &Payload,
        prepared: &mut Option<Prepared>,
        effects: &mut Effects,
    ) -> Result<(), Refused> {
        let lost = match &self.phase {
            Phase::Open | Phase::Opening { .. } => false,
            Phase::Lost => true,
            Phase::PeerDone => return Err(Refused::Error(NetworkError::closed())),
            Phase::Ended { error, .. } => return Err(Refused::Error(error.clone())),
        };
        if payload.content_type == ContentType::Typed && self.typed_allowed == Some(false) {
            return Err(Refused::Error(NetworkError::TypedRefused));
        }
        let message = event_message(method, payload);
        crate::wire::check(&message)?;
        let ready = !lost && self.credits.has_no_backlog() && self.has_room();
        if ready && self.credits.take(payload.bytes.len()) {
            match prepared.take() {
                Some(prepared) => self.outbox.push_prepared(now, prepared, 0),
                None => self.outbox.push(now, &message)?,
            }
            effects.counts.events_sent += 1;
            self.kick(effects);
            return Ok(());
        }
        match self.settings.policy {
            EventPolicy::Wait => Err(Refused::Full),
            EventPolicy::DropOldest => {
                let (charged, event) = match prepared.take() {
                    Some(prepared) => (prepared.bulk_bytes(), KeptEvent::Long(prepared)),
                    None => (
                        method.len() + payload.bytes.len(),
                        KeptEvent::Short(method.to_owned(), payload.clone()),
                    ),
                };
                let kept = Kept {
                    len: payload.bytes.len(),
                    charged,
                    event,
                };
                let window = self.settings.window;
                let dropped = self.credits.keep(kept, window, self.outbox.unwritten());
                effects.counts.events_dropped += dropped;
                Ok(())
            }
            // Before the peer granted anything, and while output is merely full, there is nothing to close for.
            EventPolicy::Close if lost || !self.credits.has_window() || !self.has_room() => {
                Err(Refused::Full)
            }
            EventPolicy::Close => {
                self.end(NetworkError::EventOverflow, false, effects);
                Err(Refused::Error(NetworkError::EventOverflow))
            }
        }
    }

    /// Takes credit that came back.
    pub(super) fn handle_credit(
        &mut self,
        now: Instant,
        payload: &Bytes,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        let &[a, b, c, d, e, f, g, h] = payload.as_ref() else {
            return Err(NetworkError::Violation(
                "a credit of broken length".to_owned(),
            ));
        };
        let events = u32::from_le_bytes([a, b, c, d]);
        let bytes = u32::from_le_bytes([e, f, g, h]);
        if !self.credits.returned(now, events, bytes) {
            return Err(NetworkError::Violation(
                "more credit than the window".to_owned(),
            ));
        }
        effects.credits = true;
        self.send_backlog(now, effects);
        Ok(())
    }

    /// Sends kept events as far as credit and room go.
    pub(super) fn send_backlog(&mut self, now: Instant, effects: &mut Effects) {
        while self.has_room() {
            let Some(kept) = self.credits.next_kept(self.outbox.unwritten()) else {
                return;
            };
            match kept.event {
                KeptEvent::Long(prepared) => self.outbox.push_prepared(now, prepared, 0),
                KeptEvent::Short(method, payload) => {
                    // It was checked before it was kept, so it fits.
                    let pushed = self.outbox.push(now, &event_message(&method, &payload));
                    debug_assert!(pushed.is_ok(), "a kept event fits a packet");
                }
            }
            effects.counts.events_sent += 1;
            self.kick(effects);
        }
    }

    /// Kept events that will never find credit are losses like the others.
    pub(super) fn drop_backlog(&mut self, effects: &mut Effects) {
        while self.credits.pop_kept(self.outbox.unwritten()).is_some() {
            effects.counts.events_dropped += 1;
        }
    }

    /// Since when the peer has let no event pass: since it last returned credit, or, where it is room in the output that
    /// events wait for, since the writer last took some. `None` while the channel is not open, because then the peer can
    /// do neither.
    pub(crate) fn events_held_since(&self) -> Option<Instant> {
        if self.phase != Phase::Open {
            return None;
        }
        let last_credit = self.credits.last_credit();
        Some(if self.has_room() {
            last_credit
        } else {
            last_credit.max(self.outbox.last_taken())
        })
    }

    /// Whether kept events wait for room only, so that the writer should call [`Self::send_backlog`].
    pub(crate) fn output_taken(&mut self, now: Instant, effects: &mut Effects) {
        if self.phase == Phase::Open {
            self.send_backlog(now, effects);
        }
        effects.slots = true;
        effects.credits = true;
    }
}

/// An Event message.
pub(crate) fn event_message<'a>(method: &'a str, payload: &'a Payload) -> Outgoing<'a> {
    Outgoing {
        packet_type: PacketType::Data,
        flags: PacketFlags::NONE,
        msg_type: MessageType::Event,
        content_type: payload.content_type,
        id: 0,
        method,
        payload: &payload.bytes,
        metadata: None,
    }
}
