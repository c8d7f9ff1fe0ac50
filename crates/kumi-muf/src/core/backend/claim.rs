//! From a request to its handler: claims the request, counts a takeover from another backend, and starts the handler.
//!
//! A backend that loses the claim waits until it may have lapsed: at first for a lease, which is how long a new claim
//! lasts. When it tries again, it also reads how much time the claim has left, because renewals send no event. So the
//! requests of a dead backend are taken over when their claims end, and not a lease later.

use std::collections::VecDeque;

use bytes::Bytes;

use super::job::{Job, Origin, State};
use super::sweep::ABSENT;
use super::{Backend, Output, ServiceId, Time};
use crate::core::command::{ClaimParts, Command, Purpose, Replies, Reply};
use crate::core::ids::IdMap;
use crate::core::key::Status;
use crate::core::output::{Incoming, JobId, Outcome};
use crate::core::settings::{CLAIM_LIMIT_BYTES, META_LIMIT_BYTES};

impl Backend {
    /// Tries to get, or to get back, the claim. `mine` says that the server holds it under our name already, so that
    /// it has to be extended and cannot be set.
    pub(super) fn claim(&mut self, job_id: u64, mine: bool, now: Time, out: &mut VecDeque<Output>) {
        let lease_ms = self.settings.lease_ms();
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.busy = true;
        let keys = job.keys();
        let read = |key, limit_bytes| Command::Read { key, limit_bytes };
        let payload_limit = self.settings.inline_bytes();
        let meta = self
            .settings
            .tracing
            .then(|| read(keys.meta(), META_LIMIT_BYTES));
        if job.is_to_all() {
            let own = |status| keys.answer_of(status, self.unit.as_str());
            let found = vec![keys.req(), own(Status::Res), own(Status::Err)];
            let mut commands = vec![
                Command::TimeToLive(keys.req()),
                read(keys.req(), payload_limit),
                Command::Present(found),
            ];
            commands.extend(meta);
            out.push_back(Output::run(Purpose::Look { job: job_id }, commands));
            return;
        }
        let hold = match mine {
            true => Command::Expire {
                key: keys.claim(),
                ttl_ms: lease_ms,
            },
            false => Command::Set {
                key: keys.claim(),
                value: self.claim_name.clone(),
                ttl_ms: Some(lease_ms),
                only_new: true,
            },
        };
        let parts = ClaimParts {
            answers: job.is_bare(),
            claim: job.tried,
            meta: meta.is_some(),
            left: job.origin == Origin::Takeover,
            presence: job.empty_seen,
        };
        // Whether REQ exists is asked before and after it is read: if it does both times, an empty read is an empty request.
        let before = parts.presence.then(|| Command::Present(vec![keys.req()]));
        let mut found = vec![keys.res(), keys.err(), keys.tries()];
        found.extend(parts.presence.then(|| keys.req()));
        let mut commands = vec![hold];
        commands.extend(before);
        commands.push(read(keys.req(), payload_limit));
        commands.push(Command::Present(found));
        if parts.answers {
            commands.push(read(keys.res(), payload_limit));
            commands.push(read(keys.err(), payload_limit));
        }
        if parts.claim {
            commands.push(read(keys.claim(), CLAIM_LIMIT_BYTES));
        }
        commands.extend(meta);
        commands.extend(parts.left.then(|| Command::TimeToLive(keys.claim())));
        job.tried = true;
        let purpose = Purpose::Claim {
            job: job_id,
            sent: now,
            parts,
        };
        out.push_back(Output::run(purpose, commands));
    }

    pub(crate) fn claimed(
        &mut self,
        job_id: u64,
        sent: Time,
        tried: Option<Tried>,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.busy = false;
        let Some(tried) = tried else {
            // The server did not let us read; it may do so later.
            return self.fail(job_id, now);
        };
        if job.is_answered_by(&tried.answers) {
            return self.answered_elsewhere(job_id, now, out);
        }
        let is_ours = match &tried.claim {
            Some(claim) => *claim == self.claim_name,
            None => tried.held,
        };
        if !is_ours {
            if job.state == State::Claiming && matches!(tried.request, Request::Absent) {
                // REQ is gone: there is nothing to take over, even if the other backend dies.
                return self.release(job_id, now, out);
            }
            return self.lose(job_id, tried.left_ms, now, out);
        }
        job.failures = 0;
        if !tried.held {
            return self.claim(job_id, true, now, out);
        }
        job.lease_until = sent.plus(self.settings.lease_ms());
        if now >= job.lease_until {
            // The reply took longer than the lease lasts.
            return self.claim(job_id, false, now, out);
        }
        match job.state {
            State::Answering => self.answer(job_id, now, out),
            State::Running => self.set_timer(job_id, now.plus(self.settings.renew_ms())),
            State::Claiming => match tried.request {
                Request::Read(payload) if payload.len() > self.settings.payload_limit_bytes => {
                    self.turn_down(job_id, now, out);
                }
                Request::Read(payload) => {
                    job.meta = tried.meta;
                    job.is_counted = tried.counted;
                    if self.settings.is_cut(payload.len()) {
                        return self.read_whole(job_id, now, out);
                    }
                    job.payload = payload;
                    self.start_or_count(job_id, now, out);
                }
                Request::EmptyOrAbsent => {
                    job.empty_seen = true;
                    self.claim(job_id, true, now, out);
                }
                Request::Absent => self.release(job_id, now, out),
            },
            // The claim had lapsed while a large request was read.
            State::Reading => match tried.request {
                Request::Read(_) if job.is_fetched => self.begin_fetched(job_id, now, out),
                Request::Read(_) => self.read_whole(job_id, now, out),
                Request::EmptyOrAbsent | Request::Absent => self.release(job_id, now, out),
            },
            State::Waiting | State::Counting | State::Abandoned | State::Lost => {}
        }
    }

    /// Handles the reply to the read of a request to all backends.
    pub(crate) fn looked(
        &mut self,
        job_id: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(job) = back_in(&mut self.jobs, job_id, State::Claiming) else {
            return;
        };
        let mut replies = replies.unwrap_or_default().into_iter();
        let (Some(left), Some(request), Some(present)) =
            (replies.next(), replies.next(), replies.next())
        else {
            return self.fail(job_id, now);
        };
        job.req_left_ms = u64::try_from(left.number()).unwrap_or(0);
        job.meta = replies.next().and_then(Reply::into_filled);
        let there = left.number() != ABSENT && present.has(0);
        let answered = present.has(1) || present.has(2);
        match request.into_held(there) {
            Some(payload) if answered || payload.len() <= self.settings.payload_limit_bytes => {
                if answered {
                    return self.release(job_id, now, out);
                }
                if self.settings.is_cut(payload.len()) {
                    return self.read_whole(job_id, now, out);
                }
                job.payload = payload;
                self.start(job_id, 1, now, out);
            }
            Some(_) => self.turn_down(job_id, now, out),
            None => self.release(job_id, now, out),
        }
    }

    /// Answers a request that is larger than this unit reads with ERR. No handler sees it.
    pub(super) fn turn_down(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.state = State::Running;
        let limit_bytes = self.settings.payload_limit_bytes;
        let text = format!("the request is over the limit of {limit_bytes} bytes");
        self.finished(JobId(job_id), Outcome::Bad(text.into()), now, out);
    }

    /// Counts a takeover in `.tries`, for the handler and for the limit on takeovers.
    pub(super) fn count(&mut self, job_id: u64, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.state = State::Counting;
        job.busy = true;
        let tries = job.keys().tries();
        let expire = Command::Expire {
            key: tries.clone(),
            ttl_ms: self.settings.answer_ttl_ms,
        };
        // INCR alone would make a key without an end, which stays if the connection breaks before the next command.
        let make = Command::Set {
            key: tries.clone(),
            value: Bytes::from_static(b"0"),
            ttl_ms: Some(self.settings.answer_ttl_ms),
            only_new: true,
        };
        let commands = vec![make, Command::Increment(tries), expire];
        out.push_back(Output::run(Purpose::Count { job: job_id }, commands));
    }

    pub(crate) fn counted(
        &mut self,
        job_id: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(job) = back_in(&mut self.jobs, job_id, State::Counting) else {
            return;
        };
        let tries = match replies.as_deref() {
            Ok([_, tries, _]) => tries.number().clamp(1, i64::from(u32::MAX - 1)) as u32,
            _ => {
                job.state = State::Claiming;
                return self.fail(job_id, now);
            }
        };
        if now >= job.lease_until {
            job.state = State::Claiming;
            return self.claim(job_id, false, now, out);
        }
        match job.origin {
            Origin::Sweep => self.counters.swept += 1,
            Origin::Push | Origin::Takeover => self.counters.takeovers += 1,
        }
        if tries >= self.settings.attempt_limit {
            let text = format!("given up after {tries} attempts");
            job.state = State::Running;
            return self.finished(JobId(job_id), Outcome::Bad(text.into()), now, out);
        }
        self.start(job_id, tries + 1, now, out);
    }

    pub(super) fn start(
        &mut self,
        job_id: u64,
        attempt: u32,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.state = State::Running;
        self.counters.started += 1;
        let request = Incoming {
            unit: job.unit.clone(),
            id: job.id.clone(),
            payload: std::mem::take(&mut job.payload),
            attempt,
            meta: job.meta.take(),
        };
        out.push_back(Output::Start {
            service: ServiceId(job.service),
            job: JobId(job_id),
            request,
        });
        if !job.is_to_all() {
            self.set_timer(job_id, now.plus(self.settings.renew_ms()));
        }
    }

    /// Handles that another backend has the claim, for `left_ms` more if that is known. A running handler goes on, because
    /// the other backend may not finish.
    pub(super) fn lose(
        &mut self,
        job_id: u64,
        left_ms: Option<u64>,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let lease_ms = self.settings.lease_ms();
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.lease_until = Time(0);
        let spread_ms = self.rng.u64(..=lease_ms / 8);
        let again_at = now.plus(left_ms.unwrap_or(lease_ms).min(lease_ms) + 1 + spread_ms);
        if matches!(job.state, State::Running | State::Answering) {
            self.set_timer(job_id, again_at);
            return;
        }
        self.counters.claims_lost += 1;
        if job.answer_seen {
            return self.answered_elsewhere(job_id, now, out);
        }
        let (service, held) = (job.service, job.holds_place());
        if self.services.get(&service).is_none_or(|s| s.draining) {
            return self.release(job_id, now, out);
        }
        if self.lost >= self.settings.lost_limit {
            self.overflowed();
            return self.release(job_id, now, out);
        }
        self.lost += 1;
        job.is_fetched = false;
        job.payload = Bytes::new();
        job.state = State::Lost;
        job.origin = Origin::Takeover;
        self.set_timer(job_id, again_at);
        self.watch_answers(out);
        if held {
            self.free_place(service, now, out);
        }
    }

    /// Handles that another backend has answered the request.
    fn answered_elsewhere(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        self.recent
            .insert(&job.unit, &job.id, now, self.settings.lease_ms());
        match job.state {
            State::Running => {
                job.state = State::Abandoned;
                job.timer = None;
            }
            State::Answering => {
                self.counters.silent += 1;
                self.release(job_id, now, out);
            }
            _ => self.release(job_id, now, out),
        }
    }
}

/// The job whose command came back, if it is still in the state that sent it.
fn back_in(jobs: &mut IdMap<u64, Job>, job_id: u64, state: State) -> Option<&mut Job> {
    let job = jobs.get_mut(&job_id).filter(|job| job.state == state)?;
    job.busy = false;
    Some(job)
}

/// What a claim found of REQ.
enum Request {
    Read(Bytes),
    /// GETRANGE returned nothing, which does not distinguish an empty REQ from a missing one.
    EmptyOrAbsent,
    Absent,
}

/// What came of trying to claim.
pub(crate) struct Tried {
    /// The claim was set, or extended.
    held: bool,
    request: Request,
    /// It changed hands before, as its `.tries` says.
    counted: bool,
    /// RES and ERR; what they hold is known for bare IDs only.
    answers: [Option<Bytes>; 2],
    /// The value of the claim, if it was read.
    claim: Option<Bytes>,
    meta: Option<Bytes>,
    /// How long the claim has left, if that was asked and it has an end.
    left_ms: Option<u64>,
}

impl ClaimParts {
    /// The replies to a claim; none if they are not what was expected.
    pub(crate) fn read(self, replies: Vec<Reply>) -> Option<Tried> {
        let mut replies = replies.into_iter();
        let held = matches!(replies.next()?, Reply::Ok | Reply::Number(1));
        let before = match self.presence {
            true => Some(replies.next()?),
            false => None,
        };
        let request = replies.next()?;
        let after = replies.next()?;
        if request.refusal().is_some() || !matches!(after, Reply::Number(_)) {
            return None;
        }
        let answers = match self.answers {
            true => [
                replies.next()?.into_held(after.has(0)),
                replies.next()?.into_held(after.has(1)),
            ],
            false => [0, 1].map(|index| after.has(index).then(Bytes::new)),
        };
        let claim = match self.claim {
            true => Some(replies.next()?.into_value()),
            false => None,
        };
        let meta = match self.meta {
            true => replies.next()?.into_filled(),
            false => None,
        };
        let left_ms = replies
            .next()
            .and_then(|left| u64::try_from(left.number()).ok());
        let request = match before {
            Some(before) => match request.into_held(before.has(0) && after.has(3)) {
                Some(payload) => Request::Read(payload),
                None => Request::Absent,
            },
            None => match request.into_filled() {
                Some(payload) => Request::Read(payload),
                None => Request::EmptyOrAbsent,
            },
        };
        Some(Tried {
            held,
            request,
            counted: after.has(2),
            answers,
            claim,
            meta,
            left_ms,
        })
    }
}
