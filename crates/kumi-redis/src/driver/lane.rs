//! A connection for commands, and the pipelines that wait for its replies.
//!
//! Each node has one for all commands, and from the first large value on another for those: a value that takes seconds on a
//! slow link must not hold up the renewals of leases. That one is opened when it is needed. If it breaks, only what was on it
//! is lost; if it cannot be opened, large values go among the others.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use super::buffered::BufferedStream;
use super::waiting::Waiting;
use crate::core::Time;
use crate::core::encode;
use crate::core::wire::{self, Malformed};

/// Pipelines whose replies are taken in before what follows from them is sent. The server works on those while we take in
/// the next; larger steps would save writes, but each side would wait for the other.
pub(super) const STEP_LIMIT: usize = 32;

/// Large values that wait until their connection is open. More are lost, and tried again.
const OPENING_LIMIT: usize = 1_024;

/// The slowest link on which a large value is waited for, in bytes per millisecond: a quarter of a megabit per second.
const SLOWEST_BYTES_PER_MS: u64 = 32;

/// When bytes last came in on a connection, as far as its owner has looked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrivals {
    count: u64,
    at: Time,
}

impl Arrivals {
    pub(super) fn new(now: Time) -> Self {
        Self { count: 0, at: now }
    }

    /// Notes what has come in by now.
    pub(super) fn note(&mut self, stream: &BufferedStream, now: Time) {
        if self.count != stream.arrived() {
            self.count = stream.arrived();
            self.at = now;
        }
    }

    /// Whether the reply to a command of this size, sent at `sent`, is overdue. Bytes that come in show that the other side
    /// lives, whatever reply they belong to; a large command has the time that it takes on a slow link.
    pub(super) fn is_overdue(
        &self,
        sent: Time,
        size_bytes: usize,
        now: Time,
        timeout_ms: u64,
    ) -> bool {
        let timeout_ms = timeout_ms.saturating_add(size_bytes as u64 / SLOWEST_BYTES_PER_MS);
        now.since(sent.max(self.at)) > timeout_ms
    }
}

/// See the module.
pub(super) struct Lane<T> {
    pub(super) stream: BufferedStream,
    /// Recipients of replies, in the order of the commands.
    pub(super) waiting: VecDeque<Waiting<T>>,
    arrivals: Arrivals,
}

impl<T> Lane<T> {
    pub(super) fn new(stream: BufferedStream, now: Time) -> Self {
        Self {
            stream,
            waiting: VecDeque::new(),
            arrivals: Arrivals::new(now),
        }
    }

    /// Appends a pipeline to what goes out. Returns the tag of its replies if the connection accepts no more.
    pub(super) fn send(&mut self, mut waiting: Waiting<T>) -> Option<T> {
        let Some(out) = self.stream.output() else {
            return waiting.into_lost();
        };
        let before = out.len();
        encode::pack(&waiting.commands, waiting.asking, out);
        waiting.size_bytes = out.len() - before;
        self.waiting.push_back(waiting);
        None
    }

    /// Takes the pipelines whose replies are all here, as many as make a step. True if there may be more.
    pub(super) fn take_replies(
        &mut self,
        now: Time,
        answered: &mut Vec<Waiting<T>>,
    ) -> Result<bool, Malformed> {
        self.arrivals.note(&self.stream, now);
        let mut taken = 0;
        while taken < STEP_LIMIT {
            let Some((value, length)) = wire::reply(self.stream.unread())? else {
                return Ok(false);
            };
            self.stream.consume(length);
            let front = self.waiting.front_mut().ok_or(Malformed)?;
            front.values.push(value);
            if front.values.len() == front.count {
                answered.extend(self.waiting.pop_front());
                taken += 1;
            }
        }
        Ok(true)
    }

    /// Whether the oldest pipeline without a reply is overdue: all behind it are then.
    pub(super) fn is_overdue(&self, now: Time, timeout_ms: u64) -> bool {
        let front = self.waiting.front();
        front.is_some_and(|it| {
            self.arrivals
                .is_overdue(it.sent, it.size_bytes, now, timeout_ms)
        })
    }
}

/// The connection for large values.
#[derive(Default)]
pub(super) enum Bulk<T> {
    /// There is none.
    #[default]
    Closed,
    /// It is needed, or being opened; these wait for it.
    Opening {
        has_begun: bool,
        queue: VecDeque<Waiting<T>>,
    },
    Open(Lane<T>),
    /// It could not be opened. It is not tried again before the node is connected anew.
    Refused,
}

impl<T> Bulk<T> {
    /// Sends a pipeline, or keeps it until the connection is open. Returns it where there is no connection for it.
    pub(super) fn send(&mut self, waiting: Waiting<T>) -> Result<Option<T>, Waiting<T>> {
        match self {
            Bulk::Refused => Err(waiting),
            Bulk::Open(lane) => Ok(lane.send(waiting)),
            Bulk::Opening { queue, .. } if queue.len() >= OPENING_LIMIT => Ok(waiting.into_lost()),
            Bulk::Opening { queue, .. } => {
                queue.push_back(waiting);
                Ok(None)
            }
            Bulk::Closed => {
                let queue = [waiting].into();
                let has_begun = false;
                *self = Bulk::Opening { has_begun, queue };
                Ok(None)
            }
        }
    }

    /// Whether it has to be opened. True once.
    pub(super) fn is_to_be_opened(&mut self) -> bool {
        match self {
            Bulk::Opening { has_begun, .. } => !std::mem::replace(has_begun, true),
            _ => false,
        }
    }

    /// It was opened, or not. What has waited for it is returned.
    pub(super) fn opened(
        &mut self,
        stream: Option<BufferedStream>,
        now: Time,
    ) -> VecDeque<Waiting<T>> {
        let Bulk::Opening { queue, .. } = self else {
            return VecDeque::new();
        };
        let queue = std::mem::take(queue);
        *self = match stream {
            Some(stream) => Bulk::Open(Lane::new(stream, now)),
            None => Bulk::Refused,
        };
        queue
    }

    /// Closes it. What was on it, or has waited for it, is returned.
    pub(super) fn close(&mut self) -> VecDeque<Waiting<T>> {
        match std::mem::take(self) {
            Bulk::Open(lane) => lane.waiting,
            Bulk::Opening { queue, .. } => queue,
            Bulk::Closed | Bulk::Refused => VecDeque::new(),
        }
    }

    /// Takes replies in. True if there may be more; an error if the connection cannot be used any more.
    pub(super) fn take_replies(
        &mut self,
        now: Time,
        answered: &mut Vec<Waiting<T>>,
    ) -> Result<bool, Malformed> {
        let Bulk::Open(lane) = self else {
            return Ok(false);
        };
        match lane.take_replies(now, answered)? {
            false if lane.stream.has_ended() => Err(Malformed),
            has_more => Ok(has_more),
        }
    }

    pub(super) fn is_overdue(&self, now: Time, timeout_ms: u64) -> bool {
        matches!(self, Bulk::Open(lane) if lane.is_overdue(now, timeout_ms))
    }

    pub(super) fn is_quiet(&self) -> bool {
        match self {
            Bulk::Open(lane) => lane.waiting.is_empty(),
            Bulk::Opening { queue, .. } => queue.is_empty(),
            Bulk::Closed | Bulk::Refused => true,
        }
    }

    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        if let Bulk::Open(lane) = self {
            lane.stream.flush(cx);
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Bulk::Open(lane) => lane.stream.poll(cx),
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_arrive_count_as_life_and_large_commands_have_their_time() {
        let arrivals = Arrivals::new(Time(10_000));
        let check = |sent, size_bytes, now, is_overdue| {
            let overdue = arrivals.is_overdue(Time(sent), size_bytes, Time(now), 5_000);
            assert_eq!(overdue, is_overdue, "{sent} {size_bytes} {now}");
        };
        // Sent long ago, but something came since.
        check(1_000, 0, 15_000, false);
        check(1_000, 0, 15_001, true);
        check(12_000, 0, 17_000, false);
        check(12_000, 0, 17_001, true);
        // A mebibyte may take half a minute more.
        check(12_000, 1 << 20, 40_000, false);
        check(12_000, 1 << 20, 60_000, true);
    }
}
