//! What the worker holds, by its own count and by the queue's: claims whose reply was lost, tasks that others got meanwhile, and
//! a queue that no longer works with this program.

use super::super::WorkerError;
use super::super::ahead::Waiting;
use super::super::execute::{Running, Stop};
use super::{RENEWAL, Run};
use crate::core::{TaskId, Token};
use crate::error::QueueError;
use crate::queue::{Claim, Finish};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

impl<S: Send + Sync + 'static> Run<S> {
    /// Compares how many tasks the queue says that this worker holds with those that it knows of. A turn that failed may
    /// be executed after the queue was asked what this worker holds; its claims would stay Running as long as this worker
    /// renews its lease. If the queue counts fewer, a part of what this worker holds was given to others: a script gives back
    /// only so many tasks at once, and this worker has renewed its lease in between. Not more often than leases are
    /// renewed, so that a count which is wrong costs little.
    pub(super) fn compare(&mut self, held: usize, sent_at: Instant) {
        let known = self.running.len() + self.waiting.len() + self.reports.len();
        let looked_lately = self.looked.is_some_and(|looked| sent_at < looked + RENEWAL);
        if held != known && !looked_lately {
            self.unsure.get_or_insert(sent_at);
        }
    }

    /// Stops what the queue has given to others, by all that this worker holds.
    pub(super) fn lose_all_but(&mut self, claims: &[Claim]) {
        let held: HashMap<TaskId, Token> =
            claims.iter().map(|claim| (claim.id, claim.token)).collect();
        let mut lost = self.waiting.retain(&held);
        for (id, running) in &self.running {
            if held.get(id) != Some(&running.token) && !running.is_stopping() {
                running.stop(Stop::LeaseLost);
                lost += 1;
            }
        }
        if lost > 0 {
            tracing::warn!(owner = %self.settings.owner, lost, "tasks were given to other workers; they are cancelled here");
        }
    }

    /// A wait for signals failed. It may have taken a cancel with it.
    pub(super) fn may_lack_a_cancel(&mut self) {
        self.unsure.get_or_insert(self.renewed);
    }

    /// Whether a claim runs here, waits to be started, or waits to be reported.
    pub(super) fn knows(&self, claim: &Claim) -> bool {
        let (id, token) = (claim.id, claim.token);
        let running = self.running.get(&id);
        let is_report = |(report, _): &(Finish, u32)| report.id == id && report.token == token;
        running.is_some_and(|running| running.token == token)
            || self.waiting.holds(id, token)
            || self.reports.iter().any(is_report)
    }

    /// The queue has another format: claims no more, and lets running tasks finish as long as the queue takes reports. A queue
    /// that takes none answers the next call, which asks for nothing new, with the same error, and the worker ends.
    pub(super) fn stop_for(
        &mut self,
        error: QueueError,
    ) -> Result<Result<Option<Duration>, QueueError>, WorkerError> {
        tracing::error!(owner = %self.settings.owner, error = &error as &dyn std::error::Error, "no more tasks are claimed");
        if self.foreign.is_some() {
            self.running.values().for_each(Running::abort);
            self.running.clear();
            self.waiting = Waiting::default();
            self.reports.clear();
            return Err(error.into());
        }
        self.foreign = Some(error);
        self.stopping = true;
        self.give_back_waiting();
        Ok(Ok(None))
    }
}
