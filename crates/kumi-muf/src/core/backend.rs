//! The backend: claims requests, runs their handlers and writes the answers. Of several backends one handles each request.
//!
//! ```text
//!   push  ---> Claiming --won--> Running --finished--> Answering --confirmed--> forgotten
//!                       (a large request: --won--> Reading --> Running)
//!   sweep -/      |  ^              | renew every third of the lease   ^
//!                 |  |              v lapsed: claim again before       |
//!                lost \-- Lost <----+------- answering ----------------/
//!                      (timer: the lease)
//! ```
//! A claim is `SET claim me NX PX lease`, in one pipeline with a read of REQ, RES, ERR and the claim: a backend that reads its
//! own name has won, even if the reply to an earlier try was lost. A claim is trusted until `lease` after it was *sent*,
//! which is never later than the server forgets it. This file has the services and their places for handlers; `claim.rs`
//! claims requests and starts their handlers, `fetch.rs` reads large requests, `answer.rs` renews claims and writes answers,
//! `sweep.rs` searches for requests whose events were missed. The driver runs the handlers and reads the clock.

mod answer;
mod claim;
mod fetch;
mod job;
mod recent;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use super::bulk::Gate;
use super::command::Time;
use super::ids::IdMap;
use super::key::{Audience, RequestId};
use super::name::{Pattern, UnitName};
use super::output::{Output, ServiceId};
use super::settings::Settings;
use super::timers::Timers;
use job::{Job, Origin, State};
use recent::Recent;
use sweep::Sweep;

/// A pattern, and how many handlers may run for it (`places`) and do (`taken`).
#[derive(Debug)]
struct Service {
    pattern: Pattern,
    places: usize,
    taken: usize,
    waiting: VecDeque<u64>,
    /// Life of its answers.
    answer_ttl_ms: u64,
    draining: bool,
}

/// All requests that a unit's services know of.
#[derive(Debug)]
pub(crate) struct Backend {
    unit: UnitName,
    /// What stands in a claim: `unit~instance`, so that two processes of one name are distinct.
    claim_name: Bytes,
    settings: Settings,
    services: IdMap<u64, Service>,
    jobs: IdMap<u64, Job>,
    by_key: HashMap<(String, RequestId), u64>,
    recent: Recent,
    /// Large requests that are read, and large answers that are written.
    reads: Gate,
    answers: Gate,
    lost: usize,
    watches_answers: bool,
    sweep: Sweep,
    /// The number of the last search. The end of an older search does not end it.
    sweep_number: u64,
    /// Requests may have been missed since the sweep under way began.
    sweep_again: bool,
    /// Requests were dropped because a list was full, and no sweep for them was requested yet.
    overflow: bool,
    timers: Timers,
    rng: fastrand::Rng,
    next: u64,
    counters: BackendCounters,
}

/// Counters of a backend, for `_stats` and for tests that check that a case occurred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendCounters {
    /// Handlers started.
    pub started: u64,
    /// Answers confirmed.
    pub answered: u64,
    /// Claims lost to another backend.
    pub claims_lost: u64,
    /// Requests taken over from a backend whose claim lapsed.
    pub takeovers: u64,
    /// Requests that only a sweep found.
    pub swept: u64,
    /// Leases that lapsed while a handler worked.
    pub lapsed: u64,
    /// Answers not written because the claim was lost or another answer was there.
    pub silent: u64,
    /// Answers written again because the first write was not confirmed.
    pub resent: u64,
    /// Requests left to sweeps because a limit was reached, and answers given up.
    pub dropped: u64,
    /// Searches of the keyspace that were begun.
    pub sweeps: u64,
}

impl Backend {
    pub(crate) fn new(
        unit: UnitName,
        instance: &str,
        settings: Settings,
        rng: fastrand::Rng,
    ) -> Self {
        Self {
            claim_name: Bytes::from([unit.as_str(), "~", instance].concat()),
            unit,
            settings,
            services: IdMap::default(),
            jobs: IdMap::default(),
            by_key: HashMap::new(),
            recent: Recent::default(),
            reads: Gate::default(),
            answers: Gate::default(),
            lost: 0,
            watches_answers: false,
            sweep: Sweep::default(),
            sweep_number: 0,
            sweep_again: false,
            overflow: false,
            timers: Timers::default(),
            rng,
            next: 0,
            counters: BackendCounters::default(),
        }
    }

    /// What stands in claims and locks of this unit.
    pub(crate) fn claim_name(&self) -> Bytes {
        self.claim_name.clone()
    }

    pub(crate) fn counters(&self) -> BackendCounters {
        self.counters
    }

    pub(crate) fn serve(&mut self, pattern: Pattern, places: usize, now: Time) -> ServiceId {
        self.next += 1;
        let service = Service {
            pattern,
            places,
            taken: 0,
            waiting: VecDeque::new(),
            answer_ttl_ms: self.settings.answer_ttl_ms,
            draining: false,
        };
        self.services.insert(self.next, service);
        let service = ServiceId(self.next);
        // Requests that were set before this service began are found by a sweep.
        self.want_sweep(now);
        service
    }

    pub(crate) fn set_answer_ttl(&mut self, service: ServiceId, ttl_ms: u64) {
        let floor_ms = 2 * self.settings.lease_ms();
        if let Some(service) = self.services.get_mut(&service.0) {
            service.answer_ttl_ms = ttl_ms.max(floor_ms);
        }
    }

    /// Takes no more requests; what runs will be answered.
    pub(crate) fn drain(&mut self, service: ServiceId, out: &mut VecDeque<Output>) {
        let Some(entry) = self.services.get_mut(&service.0) else {
            return;
        };
        entry.draining = true;
        entry.waiting.clear();
        let idle = |job: &Job| {
            job.service == service.0 && matches!(job.state, State::Waiting | State::Lost)
        };
        let idle: Vec<u64> = self
            .jobs
            .iter()
            .filter(|(_, job)| idle(job))
            .map(|(id, _)| *id)
            .collect();
        for job in idle {
            self.forget(job);
        }
        self.give_up_sweep(out);
    }

    /// Whether a service has nothing left to run or to answer.
    pub(crate) fn is_drained(&self, service: ServiceId) -> bool {
        !self.jobs.values().any(|job| job.service == service.0)
    }

    pub(crate) fn remove(&mut self, service: ServiceId, out: &mut VecDeque<Output>) {
        self.drain(service, out);
        let rest: Vec<u64> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.service == service.0)
            .map(|(id, _)| *id)
            .collect();
        for job in rest {
            self.forget(job);
        }
        self.services.remove(&service.0);
    }

    /// Whether there is a service that takes requests.
    pub(crate) fn is_serving(&self) -> bool {
        self.services.values().any(|service| !service.draining)
    }

    /// Handles the event that REQ was set.
    pub(crate) fn pushed(
        &mut self,
        unit: &str,
        id: &RequestId,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        self.offer(unit, id, Origin::Push, now, out);
    }

    /// Handles the event that RES or ERR was set: a backend that waits for the claim to lapse stops waiting.
    pub(crate) fn answer_pushed(&mut self, unit: &str, id: &RequestId, now: Time) {
        if id.audience() == Audience::All {
            return;
        }
        let Some(&job_id) = self.by_key.get(&(unit.to_owned(), id.clone())) else {
            return;
        };
        match self.jobs.get_mut(&job_id) {
            Some(job) if matches!(job.state, State::Waiting | State::Lost) => {
                self.forget(job_id);
                self.recent.insert(unit, id, now, self.settings.lease_ms());
            }
            // If another backend turns out to have the claim, the answer is that backend's.
            Some(job) => job.answer_seen |= job.state == State::Claiming,
            None => {}
        }
    }

    fn offer(
        &mut self,
        unit: &str,
        id: &RequestId,
        origin: Origin,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(service) = self.service_for(id) else {
            return;
        };
        if let Some(job_id) = self.by_key.get(&(unit.to_owned(), id.clone())) {
            if let Some(job) = self.jobs.get_mut(job_id) {
                let answering = job.is_bare() && job.state == State::Answering;
                job.asked_again |= answering && origin == Origin::Push;
            }
            return;
        }
        let Some(entry) = self.services.get_mut(&service) else {
            return;
        };
        let place = entry.taken < entry.places;
        if !place && entry.waiting.len() >= self.settings.waiting_limit {
            let jobs = &self.jobs;
            entry.waiting.retain(|job_id| jobs.contains_key(job_id));
        }
        if !place && entry.waiting.len() >= self.settings.waiting_limit {
            return self.overflowed();
        }
        let job_id = self.insert(unit, id, service, origin);
        if place {
            return self.admit(job_id, now, out);
        }
        if let Some(entry) = self.services.get_mut(&service) {
            entry.waiting.push_back(job_id);
        }
        self.watch_answers(out);
    }

    /// Adds a request to those that this backend knows, and returns its number.
    fn insert(&mut self, unit: &str, id: &RequestId, service: u64, origin: Origin) -> u64 {
        self.next += 1;
        let job = Job::new(unit.to_owned(), id.clone(), service, origin);
        self.jobs.insert(self.next, job);
        self.by_key.insert((unit.to_owned(), id.clone()), self.next);
        self.next
    }

    /// The narrowest service that takes requests like this one.
    fn service_for(&self, id: &RequestId) -> Option<u64> {
        let takes = |service: &Service| !service.draining && service.pattern.matches(id.target());
        let takers = self.services.iter().filter(|(_, service)| takes(service));
        takers
            .max_by_key(|(id, service)| (service.pattern.precision(), **id))
            .map(|(id, _)| *id)
    }

    /// Gives a job a place, and sends its claim.
    fn admit(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        if let Some(service) = self.services.get_mut(&job.service) {
            service.taken += 1;
        }
        job.state = State::Claiming;
        self.claim(job_id, false, now, out);
    }

    /// Handles the timer of a job.
    fn wake(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        if job.is_sending {
            return self.hold(job_id, now, out);
        }
        if job.busy {
            return;
        }
        match job.state {
            State::Waiting | State::Abandoned | State::Counting => {}
            State::Claiming => self.claim(job_id, false, now, out),
            State::Reading if job.is_to_all() => self.fetch(job_id, out),
            State::Reading if now < job.lease_until => {
                self.fetch(job_id, out);
                self.renew(job_id, now, out);
            }
            State::Running if now < job.lease_until => self.renew(job_id, now, out),
            State::Answering if job.is_queued && now < job.lease_until && !job.is_to_all() => {
                self.renew(job_id, now, out);
            }
            State::Reading | State::Running => {
                self.counters.lapsed += 1;
                self.claim(job_id, false, now, out);
            }
            State::Answering => self.answer(job_id, now, out),
            State::Lost => {
                self.lost -= 1;
                let Some(service) = self.services.get_mut(&job.service) else {
                    return;
                };
                if service.taken < service.places {
                    return self.admit(job_id, now, out);
                }
                job.state = State::Waiting;
                service.waiting.push_back(job_id);
            }
        }
    }

    /// Retries the present step after a temporary failure, with a pause that grows with each failure.
    fn fail(&mut self, job_id: u64, now: Time) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        let pause_ms = self.settings.retry_ms << job.failures.min(8);
        job.failures += 1;
        self.set_timer(job_id, now.plus(pause_ms.min(self.settings.lease_ms())));
    }

    /// Removes a job. If it held a place, the next waiting job gets it.
    fn release(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get(&job_id) else {
            return;
        };
        let (service, held) = (job.service, job.holds_place());
        self.forget(job_id);
        if held {
            self.free_place(service, now, out);
        }
    }

    fn free_place(&mut self, service: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(entry) = self.services.get_mut(&service) else {
            return;
        };
        entry.taken = entry.taken.saturating_sub(1);
        let jobs = &self.jobs;
        let is_waiting = |job_id: &u64| {
            let job = jobs.get(job_id);
            job.is_some_and(|job| job.state == State::Waiting)
        };
        let next = std::iter::from_fn(|| entry.waiting.pop_front()).find(is_waiting);
        if self.overflow {
            self.make_up_for_overflow(now);
        }
        if let Some(job_id) = next {
            self.admit(job_id, now, out);
        }
    }

    fn forget(&mut self, job_id: u64) {
        let Some(job) = self.jobs.remove(&job_id) else {
            return;
        };
        if job.state == State::Lost {
            self.lost -= 1;
        }
        self.by_key.remove(&(job.unit, job.id));
    }

    fn watch_answers(&mut self, out: &mut VecDeque<Output>) {
        if !self.watches_answers {
            self.watches_answers = true;
            out.push_back(Output::WatchAnswers);
        }
    }

    fn set_timer(&mut self, job_id: u64, at: Time) {
        if let Some(job) = self.jobs.get_mut(&job_id) {
            job.timer = Some(at);
            self.timers.set(at, job_id);
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        [self.timers.next(), self.next_sweep()]
            .into_iter()
            .flatten()
            .min()
    }

    pub(crate) fn timeout(&mut self, now: Time, out: &mut VecDeque<Output>) {
        while let Some((at, job_id)) = self.timers.pop_due(now) {
            if let Some(job) = self
                .jobs
                .get_mut(&job_id)
                .filter(|job| job.timer == Some(at))
            {
                job.timer = None;
                self.wake(job_id, now, out);
            }
        }
        self.sweep_timeout(now, out);
    }
}
