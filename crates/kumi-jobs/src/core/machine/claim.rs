//! Claims: which waiting tasks a worker gets.
//!
//! The claim counter walks over `SLOTS`, in which the four priorities appear 8, 4, 2 and 1 times; a claim takes from the
//! slot's priority, or from the most urgent one that has something. Within a priority the asked types take turns.

use super::super::claim::{Ask, Claim, Finish, Room, Turn};
use super::super::error::Refusal;
use super::super::id::{TaskId, Timestamp, Token};
use super::super::record::TaskState;
use super::super::settings::{CLAIM_SHARE, SKIP_LIMIT, TURN_BUDGET, TURN_LIMIT};
use super::{Holder, Machine};
use std::collections::HashSet;

/// Which priority is served first, by the claim counter modulo 15.
pub(crate) const SLOTS: [usize; 15] = [0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0];

impl Machine {
    /// One step of a worker: reports, ended leases, what is due, claims.
    pub(crate) fn turn(
        &mut self,
        now: Timestamp,
        reports: Vec<Finish>,
        ask: &Ask,
    ) -> Result<Turn, Refusal> {
        self.check_owner(&ask.owner)?;
        self.beat(now, true);
        // What claims may take of the budget stays theirs, however much is due.
        let reserved = match self.paused {
            true => 0,
            false => ask.max.min(CLAIM_SHARE),
        };
        let mut budget = TURN_BUDGET.saturating_sub(reports.len() + reserved);
        let finished = self.finish(now, reports);
        self.reap_one(now, &mut budget);
        let more_due = self.promote(now, &mut budget);
        budget += reserved;
        self.trim(now);
        // A worker that asks for nothing, because it is drained or has no slot, does not serve its types.
        for room in ask.types.iter().filter(|_| ask.max > 0) {
            match self.served.get_mut(&room.task_type) {
                Some(asked_at) => *asked_at = now,
                None => drop(self.served.insert(room.task_type.clone(), now)),
            }
        }
        let claims = match self.paused {
            true => Vec::new(),
            false => self.claim(now, ask, budget),
        };
        let held = self.renew(now, &ask.owner, ask.lease);
        let left = !self.paused && self.leaves_some(ask, &claims);
        Ok(Turn {
            finished,
            claims,
            now,
            next_due: self.next_due(),
            more: left || more_due,
            paused: self.paused,
            held,
        })
    }

    /// Claims in rounds: where a line had ids of tasks that do not wait there, those that follow them are skipped, and
    /// another round takes as many tasks, for the same priorities.
    fn claim(&mut self, now: Timestamp, ask: &Ask, budget: usize) -> Vec<Claim> {
        let kind_ids = ask
            .types
            .iter()
            .map(|room| self.kind_ids.get(&room.task_type));
        let kind_ids: Vec<Option<u32>> = kind_ids.map(|index| index.copied()).collect();
        let most = ask.max.min(TURN_LIMIT).min(budget);
        let slot = |step: usize| SLOTS[((self.claimed + step as u64) % 15) as usize];
        let mut slots: Vec<usize> = (1..=most).map(slot).collect();
        let (mut claims, mut skips) = (Vec::with_capacity(most), SKIP_LIMIT);
        let mut claimed_of = vec![0; ask.types.len()];
        while !slots.is_empty() && skips > 0 {
            let plan = self.plan(ask, &claimed_of, &slots);
            let mut skipped: Vec<(usize, usize)> = Vec::new();
            let mut again = Vec::new();
            for (slot, (level, index)) in slots.into_iter().zip(plan) {
                let kind = kind_ids[index].and_then(|index| self.kinds.get_mut(index as usize));
                let Some(id) = kind.and_then(|kind| kind.lanes[level].pop_front()) else {
                    continue;
                };
                if let Some(claim) = self.claim_one(now, ask, id) {
                    claims.push(claim);
                    claimed_of[index] += 1;
                } else {
                    skips = skips.saturating_sub(1);
                    again.push(slot);
                    if !skipped.contains(&(level, index)) {
                        skipped.push((level, index));
                    }
                }
            }
            slots = again;
            for (level, index) in skipped {
                self.skip(kind_ids[index], level, &mut skips);
            }
        }
        if !claims.is_empty() {
            let holder = self.owners.entry(ask.owner.clone());
            let holder = holder.or_insert_with(|| Holder {
                lease_end: now.after(ask.lease),
                renewed_at: now,
                extended_at: None,
                running: HashSet::default(),
            });
            holder.running.extend(claims.iter().map(|claim| claim.id));
        }
        claims
    }

    /// Takes ids from the head of a line until that is a task that waits, or this turn may skip no more.
    fn skip(&mut self, kind: Option<u32>, level: usize, skips: &mut usize) {
        let Some(kind) = kind.and_then(|index| self.kinds.get_mut(index as usize)) else {
            return;
        };
        let lane = &mut kind.lanes[level];
        let waits = |id: &TaskId| {
            let record = self.records.get(id);
            record.is_some_and(|record| record.state == TaskState::Queued)
        };
        while *skips > 0 && lane.front().is_some_and(|id| !waits(id)) {
            lane.pop_front();
            *skips -= 1;
        }
    }

    /// Claims a task from a line. An id that was cancelled in line, or lined up twice by a repeated enqueue after a purge,
    /// is skipped.
    fn claim_one(&mut self, now: Timestamp, ask: &Ask, id: TaskId) -> Option<Claim> {
        let record = self.records.get_mut(&id)?;
        if record.state != TaskState::Queued {
            return None;
        }
        self.claimed += 1;
        record.attempts += 1;
        record.runs += 1;
        record.token = Some(Token {
            count: self.claimed,
            nonce: ask.nonce,
        });
        record.owner = Some(ask.owner.clone());
        record.set_state(
            now,
            TaskState::Running,
            &mut self.kinds,
            self.listening.then_some(&mut self.effects.moved),
        );
        record.claim()
    }

    /// The claim on a running task.
    pub(super) fn claim_of(&self, id: TaskId) -> Option<Claim> {
        self.records.get(&id)?.claim()
    }

    /// From which lines to take, by priority and index of the asked type, for slots of these priorities, after so many tasks
    /// were claimed of each type.
    fn plan(&self, ask: &Ask, claimed_of: &[usize], slots: &[usize]) -> Vec<(usize, usize)> {
        let rooms = ask.types.iter().zip(claimed_of);
        let mut rooms: Vec<usize> = rooms
            .map(|(room, claimed)| self.room(&room.task_type, room.room.saturating_sub(*claimed)))
            .collect();
        let mut lengths: Vec<[usize; 4]> = ask
            .types
            .iter()
            .map(|room| {
                let kind = self.kind(&room.task_type);
                kind.map_or([0; 4], |kind| kind.lanes.each_ref().map(|lane| lane.len()))
            })
            .collect();
        let (mut next, mut plan) = ([0; 4], Vec::with_capacity(slots.len()));
        for slot in slots {
            let picked = std::iter::once(*slot).chain(0..4).find_map(|level| {
                let count = ask.types.len();
                let index = (0..count)
                    .map(|offset| (next[level] + offset) % count)
                    .find(|index| rooms[*index] > 0 && lengths[*index][level] > 0)?;
                Some((level, index))
            });
            let Some((level, index)) = picked else {
                break;
            };
            rooms[index] -= 1;
            lengths[index][level] -= 1;
            next[level] = index + 1;
            plan.push((level, index));
        }
        plan
    }

    /// How many more tasks of a type may start, by the worker's room and the queue's bound.
    fn room(&self, task_type: &str, room: usize) -> usize {
        match self.limits.get(task_type) {
            None => room,
            Some(limit) => {
                let left = u64::from(*limit).saturating_sub(self.running_of(task_type));
                room.min(usize::try_from(left).unwrap_or(usize::MAX))
            }
        }
    }

    /// Whether the worker could take more at once.
    fn leaves_some(&self, ask: &Ask, claims: &[Claim]) -> bool {
        let of_type = |room: &Room| {
            let same = |claim: &&Claim| claim.envelope.task_type == room.task_type;
            claims.iter().filter(same).count()
        };
        claims.len() < ask.max
            && ask.types.iter().any(|room| {
                let left = room.room.saturating_sub(of_type(room));
                self.room(&room.task_type, left) > 0 && !self.is_empty_lane(&room.task_type)
            })
    }

    /// Whether one of these types has something to claim.
    pub(crate) fn is_ready(&self, task_type: &str) -> bool {
        let bound = self.limits.get(task_type);
        let is_free = bound.is_none_or(|limit| self.running_of(task_type) < u64::from(*limit));
        !self.paused && is_free && !self.is_empty_lane(task_type)
    }
}
