//! Leases: one per owner, over all it runs.

use super::super::claim::{Claim, Lease};
use super::super::error::Refusal;
use super::super::id::{TaskId, Timestamp};
use super::super::lost::Lost;
use super::super::owner::Owner;
use super::super::record::TaskState;
use super::super::reply::{Gone, Released};
use super::super::retry::reap_delay;
use super::super::settings::{TURN_BUDGET, TURN_LIMIT};
use super::Machine;
use super::finish::Next;
use std::time::Duration;

impl Machine {
    pub(super) fn check_owner(&self, owner: &Owner) -> Result<(), Refusal> {
        match self.released.holds(owner) {
            true => Err(Refusal::OwnerReleased(owner.clone())),
            false => Ok(()),
        }
    }

    pub(crate) fn heartbeat(
        &mut self,
        now: Timestamp,
        owner: &Owner,
        lease: Duration,
    ) -> Result<Lease, Refusal> {
        self.check_owner(owner)?;
        self.beat(now, true);
        Ok(match self.renew(now, owner, lease) {
            0 => Lease::Lost,
            held => Lease::Renewed(held),
        })
    }

    /// Renews a lease. Answers how many tasks it covers.
    pub(super) fn renew(&mut self, now: Timestamp, owner: &Owner, lease: Duration) -> usize {
        let Some(holder) = self.owners.get_mut(owner) else {
            return 0;
        };
        holder.lease_end = now.after(lease);
        holder.renewed_at = now;
        holder.extended_at = None;
        holder.running.len()
    }

    /// What an owner runs, by id.
    pub(crate) fn running(&self, owner: &Owner) -> Result<Vec<Claim>, Refusal> {
        self.check_owner(owner)?;
        let Some(holder) = self.owners.get(owner) else {
            return Ok(Vec::new());
        };
        let ids = holder.ids();
        Ok(ids.iter().filter_map(|id| self.claim_of(*id)).collect())
    }

    /// Gives back what the owner whose lease ended first held. At most one turn's worth, and within the budget.
    pub(super) fn reap_one(&mut self, now: Timestamp, budget: &mut usize) -> usize {
        let most = TURN_LIMIT.min(*budget);
        let ended = self
            .owners
            .iter()
            .filter(|(_, holder)| holder.lease_end <= now)
            .min_by_key(|(owner, holder)| (holder.lease_end, (*owner).clone()))
            .map(|(owner, holder)| {
                let mut ids = holder.ids();
                ids.truncate(most);
                (owner.clone(), ids)
            });
        let Some((owner, ids)) = ended else {
            return 0;
        };
        for id in &ids {
            let error = format!("the lease of worker {owner} ended");
            self.lose(*id, now, error, false);
        }
        *budget -= ids.len();
        ids.len()
    }

    /// Everything that time brings, for a queue without workers.
    pub(crate) fn reap(&mut self, now: Timestamp) -> usize {
        self.beat(now, false);
        let mut budget = TURN_BUDGET;
        let reaped = self.reap_one(now, &mut budget);
        let waiting = self.scheduled.len() + self.retry.len();
        self.promote(now, &mut budget);
        let promoted = waiting - (self.scheduled.len() + self.retry.len());
        self.trim(now);
        reaped + promoted
    }

    pub(crate) fn release_owner(
        &mut self,
        now: Timestamp,
        gone: &Gone,
        silent_for: Duration,
    ) -> Released {
        self.beat(now, false);
        if matches!(gone, Gone::Node(_)) && !self.releases {
            return Released::Off;
        }
        let lives: Vec<Owner> = match gone {
            Gone::Node(node) => {
                let prefix = node.prefix();
                let is_part = |owner: &&Owner| owner.as_str().starts_with(&prefix);
                self.owners.keys().filter(is_part).cloned().collect()
            }
            Gone::Life(owner) => vec![owner.clone()],
            Gone::Before(newest) => {
                let older =
                    |owner: &&Owner| owner.name() == newest.name() && owner.life() < newest.life();
                self.owners.keys().filter(older).cloned().collect()
            }
        };
        let is_alive = |owner: &Owner| {
            let holder = self.owners.get(owner);
            holder.is_some_and(|holder| {
                // It could not renew its lease, and has the time to do it now; unless the caller knows that it is gone.
                let is_extended = holder.extended_at.is_some() && holder.lease_end > now;
                is_extended && !silent_for.is_zero() || holder.renewed_at.after(silent_for) > now
            })
        };
        if lives.iter().any(is_alive) {
            return Released::Alive;
        }
        // An owner that holds nothing loses nothing, and may go on; but a name's earlier lives are over.
        let holds_some = lives.iter().any(|owner| self.owners.contains_key(owner));
        if holds_some || matches!(gone, Gone::Before(_)) {
            self.released.add(now, gone);
        }
        let mut count = 0;
        for owner in lives {
            let ids: Vec<TaskId> = match self.owners.get(&owner) {
                Some(holder) => holder.ids(),
                None => Vec::new(),
            };
            // The last one first: each goes to the head of its line, and so they keep their order.
            for id in ids.iter().rev() {
                self.lose(*id, now, format!("worker {owner} was declared gone"), true);
            }
            count += ids.len();
        }
        Released::Tasks(count)
    }

    /// A worker lost a task: the attempt stays charged. Without its token, a report of that worker is refused.
    fn lose(&mut self, id: TaskId, now: Timestamp, error: String, at_once: bool) {
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        self.totals.lost += 1;
        record.rare().last_error = Some(error.clone());
        record.token = None;
        let next = match (record.cancel_requested, at_once) {
            (true, _) => Next::End(TaskState::Cancelled),
            _ if record.attempts >= record.max_attempts => Next::End(TaskState::Dead),
            (false, true) => Next::Line,
            (false, false) => {
                Next::Later(TaskState::RetryScheduled, reap_delay(id, record.attempts))
            }
        };
        let attempts = record.attempts;
        let state = self.stop_running(id, now, next);
        let record = self.records.get(&id);
        self.effects.lost.push(Lost {
            id,
            state,
            attempts,
            next_run_at: record.map_or(now, |record| record.next_run_at),
            error,
        });
    }
}
