//! The road from a request to its handler: claim it, count its tries if it changed hands, start.
//!
//! Whoever loses waits until the claim may have lapsed. At first that is a lease, because a claim that was just made has
//! all of its life before it; a loser that comes back also asks how long the claim has left, since a renewal in between
//! is nothing it can see. So a dead backend's requests are taken over when their claims end, and not a lease later.

use std::collections::VecDeque;

use super::job::{Job, Origin, State};
use super::{Backend, Output, ServiceId, Time};
use crate::core::command::{Command, Purpose, Replies, Reply};
use crate::core::ids::IdMap;
use crate::core::key::Status;
use crate::core::output::{Incoming, JobId, Outcome};

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
        if job.is_to_all() {
            let mut read = vec![keys.req()];
            read.extend(
                [Status::Res, Status::Err].map(|status| keys.answer_of(status, self.unit.as_str())),
            );
            read.extend(self.settings.tracing.then(|| keys.meta()));
            let commands = vec![Command::TimeToLive(keys.req()), Command::Values(read)];
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
        let mut read = vec![keys.req(), keys.res(), keys.err(), keys.claim()];
        read.extend(self.settings.tracing.then(|| keys.meta()));
        let mut commands = vec![hold, Command::Values(read)];
        let again = job.origin == Origin::Takeover;
        commands.extend(again.then(|| Command::TimeToLive(keys.claim())));
        let sent = now;
        out.push_back(Output::run(Purpose::Claim { job: job_id, sent }, commands));
    }

    pub(crate) fn claimed(
        &mut self,
        job_id: u64,
        sent: Time,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.busy = false;
        let Some(tried) = replies.ok().and_then(Tried::read) else {
            // The server refused to read; it may come to its senses.
            return self.fail(job_id, now);
        };
        if job.is_answered_by(&tried.answers) {
            return self.answered_elsewhere(job_id, now, out);
        }
        if tried.claim.as_ref() != Some(&self.claim_name) {
            if job.state == State::Claiming && tried.request.is_none() {
                // There is nothing left to take over, whatever becomes of the winner.
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
                Some(payload) => {
                    job.payload = payload;
                    job.meta = tried.meta;
                    match job.origin {
                        Origin::Push => self.start(job_id, 1, now, out),
                        Origin::Takeover | Origin::Sweep => self.count(job_id, out),
                    }
                }
                None => self.release(job_id, now, out),
            },
            State::Waiting | State::Counting | State::Abandoned | State::Lost => {}
        }
    }

    /// A request to all was read.
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
        let Ok(mut replies) = replies else {
            return self.fail(job_id, now);
        };
        let mut values = replies.pop().map(Reply::into_values).unwrap_or_default();
        values.resize(4, None);
        job.req_left_ms = replies.pop().map_or(0, |reply| reply.number()).max(0) as u64;
        job.meta = values.pop().flatten();
        let answered = values[1].is_some() || values[2].is_some();
        match values.swap_remove(0) {
            Some(payload) if !answered => {
                job.payload = payload;
                self.start(job_id, 1, now, out);
            }
            _ => self.release(job_id, now, out),
        }
    }

    /// Counts that a request changed hands, so that its handler, and a limit, can know.
    fn count(&mut self, job_id: u64, out: &mut VecDeque<Output>) {
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
        let commands = vec![Command::Increment(tries), expire];
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
            Ok([tries, _]) => tries.number().clamp(1, i64::from(u32::MAX - 1)) as u32,
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

    fn start(&mut self, job_id: u64, attempt: u32, now: Time, out: &mut VecDeque<Output>) {
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

    /// Another backend has the claim, for `left_ms` more if that is known. A handler that runs goes on: nobody else may
    /// finish.
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
        if self.lost >= self.settings.lost_limit
            || self.services.get(&service).is_none_or(|s| s.draining)
        {
            self.counters.dropped += 1;
            return self.release(job_id, now, out);
        }
        self.lost += 1;
        job.state = State::Lost;
        job.origin = Origin::Takeover;
        self.set_timer(job_id, again_at);
        self.watch_answers(out);
        if held {
            self.free_place(service, now, out);
        }
    }

    /// The request was answered by another.
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
                self.forget(job_id);
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

/// What came of trying to claim.
struct Tried {
    /// The claim was set, or extended.
    held: bool,
    request: Option<bytes::Bytes>,
    /// RES and ERR.
    answers: [Option<bytes::Bytes>; 2],
    claim: Option<bytes::Bytes>,
    meta: Option<bytes::Bytes>,
    /// How long the claim has left, if that was asked and it has an end.
    left_ms: Option<u64>,
}

impl Tried {
    /// The replies to SET (or PEXPIRE), MGET and perhaps PTTL; none if they are not what was asked for.
    fn read(replies: Vec<Reply>) -> Option<Self> {
        let mut replies = replies.into_iter();
        let held = matches!(replies.next()?, Reply::Ok | Reply::Number(1));
        let mut values = replies.next()?.into_values();
        let left_ms = replies
            .next()
            .and_then(|left| u64::try_from(left.number()).ok());
        if values.len() < 4 {
            return None;
        }
        values.resize(5, None);
        let meta = values.pop().flatten();
        let claim = values.pop().flatten();
        Some(Self {
            held,
            answers: [values[1].take(), values[2].take()],
            request: values.swap_remove(0),
            claim,
            meta,
            left_ms,
        })
    }
}
