//! Claims beyond the free slots: how many a turn asks for, and the claims that wait for a slot.
//!
//! A handler that ends at its first poll frees its slot at once. A worker with only such handlers spends its time on
//! turns, and each turn has a fixed cost. So while the queue has more than is asked for and handlers end at their first
//! poll, [`Pace`] asks for more tasks than there are free slots, and allows the next turn to be sent before the claims of
//! the last one are run. One handler that has to wait, one claim without a slot or one reply with fewer tasks than asked
//! for ends that.
//!
//! [`Waiting`] holds the claims that have no slot yet. What waits longer than [`SLOT_TIMEOUT`] is given back by the worker.

use super::super::claim::Claim;
use super::super::id::{TaskId, Token};
use super::super::settings::TURN_LIMIT;
use super::action::Moment;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The most tasks that a turn asks for beyond the free slots. One turn in flight and one batch that is run bound what a
/// worker holds beyond its slots to twice as many. It is less than a turn reports, so that reports do not wait.
pub(crate) const BATCH: usize = TURN_LIMIT * 9 / 10;

/// How long a claim waits for a slot.
pub(crate) const SLOT_TIMEOUT: Duration = Duration::from_millis(10);

/// Turns in a row whose claims all ended at their first poll, before more is asked for than there are free slots.
const QUICK_TURNS: u32 = 2;

/// How far ahead a worker claims.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Turns in a row whose claims all ended at their first poll.
    quick_turns: u32,
    /// How many tasks the next turn asks for, if that is more than the free slots; 0 while nothing is claimed ahead.
    batch: usize,
    /// How many tasks the last turn asked for.
    asked: usize,
    /// Whether the last reply held all that was asked for and its claims have not been run.
    is_full: bool,
}

impl Pace {
    /// How many tasks the next turn asks for, with so many free slots.
    pub(crate) fn ask(&mut self, free: usize) -> usize {
        self.asked = free.max(self.batch).min(TURN_LIMIT);
        self.asked
    }

    /// A turn without an ask is sent.
    pub(crate) fn report_only(&mut self) {
        self.asked = 0;
    }

    /// A reply with so many claims arrived; `more` are left in the queue. True if it held all that was asked for: a turn
    /// asks for at most [`TURN_LIMIT`] tasks, and there may be slots for others.
    pub(crate) fn replied(&mut self, claims: usize, more: bool) -> bool {
        if self.asked == 0 {
            return false;
        }
        self.is_full = claims > 0 && (more || claims >= self.asked);
        if !self.is_full {
            self.slow_down();
        }
        self.is_full
    }

    /// Whether the next turn is to be sent before the claims of the last reply are run.
    pub(crate) fn is_ahead(&self) -> bool {
        self.batch > 0 && self.is_full
    }

    /// The claims that waited were run. They were `quick` if all of them got a slot and ended at their first poll.
    pub(crate) fn ran(&mut self, quick: bool) {
        let is_full = std::mem::take(&mut self.is_full);
        match quick {
            false => self.slow_down(),
            true if is_full => {
                self.quick_turns = self.quick_turns.saturating_add(1);
                if self.quick_turns >= QUICK_TURNS {
                    self.batch = (2 * self.asked).clamp(1, BATCH);
                }
            }
            true => {}
        }
    }

    /// Asks for no more than there are free slots.
    pub(crate) fn slow_down(&mut self) {
        self.quick_turns = 0;
        self.batch = 0;
    }
}

/// Claims without a slot, the oldest first, each with the time of its reply.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    claims: VecDeque<(Claim, Moment)>,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.claims.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// How many claims of a type wait.
    pub(super) fn len_of(&self, task_type: &str) -> usize {
        let is_same = |(claim, _): &&(Claim, Moment)| *claim.envelope.task_type == *task_type;
        self.claims.iter().filter(is_same).count()
    }

    /// Takes the claims of a reply that arrived now.
    pub(super) fn extend(&mut self, claims: Vec<Claim>, now: Moment) {
        let some_wait = !self.claims.is_empty();
        for claim in claims {
            if some_wait {
                // An older claim on the same task: its lease ended meanwhile.
                self.remove(claim.id);
            }
            self.claims.push_back((claim, now));
        }
    }

    /// The tasks of the claims and their types, the oldest first.
    pub(super) fn ids(&self) -> impl Iterator<Item = (TaskId, &str)> + '_ {
        let claims = self.claims.iter();
        claims.map(|(claim, _)| (claim.id, &*claim.envelope.task_type))
    }

    /// Takes the claim on a task, if it waits.
    pub(super) fn remove(&mut self, id: TaskId) -> Option<Claim> {
        let at = self.claims.iter().position(|(claim, _)| claim.id == id)?;
        Some(self.claims.remove(at)?.0)
    }

    /// Whether this claim waits.
    pub(super) fn holds(&self, id: TaskId, token: Token) -> bool {
        let is_same = |(claim, _): &(Claim, Moment)| claim.id == id && claim.token == token;
        self.claims.iter().any(is_same)
    }

    /// Drops the claims that are not among these tokens. Answers how many.
    pub(super) fn retain(&mut self, held: &HashMap<TaskId, Token>) -> usize {
        let before = self.claims.len();
        self.claims
            .retain(|(claim, _)| held.get(&claim.id) == Some(&claim.token));
        before - self.claims.len()
    }

    /// When the reply with the oldest claim arrived.
    pub(super) fn since(&self) -> Option<Moment> {
        Some(self.claims.front()?.1)
    }

    /// When the oldest claim has waited for long enough.
    pub(super) fn deadline(&self) -> Option<Moment> {
        Some(self.since()? + SLOT_TIMEOUT)
    }

    /// Takes all claims, the newest first. Given back in this order, they keep their order at the head of their line.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Claim> + use<> {
        let all = std::mem::take(&mut self.claims);
        all.into_iter().rev().map(|(claim, _)| claim)
    }
}
