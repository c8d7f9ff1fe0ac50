//! From a running handler to its answer: renews the claim while the handler runs, and writes its outcome.
//!
//! An answer is written only while the claim is ours for certain. If the lease lapsed while the handler ran (the process was
//! stopped, the server was away), the claim is tried again first, and nothing is written if another backend has answered. A
//! write that was not confirmed is repeated; NX makes the repetition harmless. A bare ID is answered without NX, because it
//! may be used again; of RES and ERR, the one that does not hold the answer is ended.
//!
//! A large answer may have to wait for its place; until then claim and REQ are renewed. While it is on its way only the claim
//! is: a renewal of REQ may run after the answer, and REQ would outlive it.

use std::collections::VecDeque;

use super::job::{Origin, State};
use super::{Backend, Output, Time};
use crate::core::command::{Command, Purpose, Replies, Reply};
use crate::core::key::Status;
use crate::core::output::{JobId, Outcome};
use crate::core::settings::CLAIM_LIMIT_BYTES;

impl Backend {
    /// Extends the claim, and REQ with it: a backend that takes over has to find the request, and where units trace its
    /// `.meta` too. Extending a claim that has become another's only gives that backend more time.
    pub(super) fn renew(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let (lease_ms, req_ms) = (self.settings.lease_ms(), self.settings.req_kept_ms());
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.busy = true;
        let keys = job.keys();
        let mut commands = vec![
            Command::Expire {
                key: keys.claim(),
                ttl_ms: lease_ms,
            },
            Command::Read {
                key: keys.claim(),
                limit_bytes: CLAIM_LIMIT_BYTES,
            },
            Command::Expire {
                key: keys.req(),
                ttl_ms: req_ms,
            },
        ];
        commands.extend(self.settings.tracing.then(|| Command::Expire {
            key: keys.meta(),
            ttl_ms: req_ms,
        }));
        out.push_back(Output::run(
            Purpose::Renew {
                job: job_id,
                sent: now,
            },
            commands,
        ));
    }

    pub(crate) fn renewed(
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
        let is_held = matches!(
            job.state,
            State::Reading | State::Running | State::Answering
        );
        if !is_held {
            return;
        }
        let claim = match replies {
            Ok(mut replies) if replies.len() >= 3 => replies.swap_remove(1).into_filled(),
            _ => return self.fail(job_id, now),
        };
        job.failures = 0;
        if claim.as_ref() == Some(&self.claim_name) {
            job.lease_until = sent.plus(self.settings.lease_ms());
            match job.state {
                State::Answering => self.answer(job_id, now, out),
                State::Reading if job.is_fetched => self.begin_fetched(job_id, now, out),
                _ => self.set_timer(job_id, now.plus(self.settings.renew_ms())),
            }
            return;
        }
        self.counters.lapsed += 1;
        match claim {
            Some(_) => self.lose(job_id, None, now, out),
            None => self.claim(job_id, false, now, out),
        }
    }

    /// Handles the end of a handler: writes its answer. Its place is free, unless the answer is large.
    pub(crate) fn finished(
        &mut self,
        job: JobId,
        outcome: Outcome,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let JobId(job_id) = job;
        let Some(job) = self.jobs.get_mut(&job_id).filter(|job| job.is_running()) else {
            return;
        };
        let service = job.service;
        if job.state == State::Abandoned {
            self.counters.silent += 1;
            return self.release(job_id, now, out);
        }
        let (Outcome::Good(payload) | Outcome::Bad(payload)) = &outcome;
        let is_large = self.settings.is_large(payload.len());
        job.keeps_place = is_large;
        job.outcome = Some(outcome);
        job.state = State::Answering;
        job.failures = 0;
        // A renewal or a claim that is on its way says when it comes back whether the claim is ours.
        if !job.busy {
            self.answer(job_id, now, out);
        }
        if !is_large {
            self.free_place(service, now, out);
        }
    }

    /// Keeps the claim of a large answer that is on its way.
    pub(super) fn hold(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get(&job_id) else {
            return;
        };
        let (key, ttl_ms) = (job.keys().claim(), self.settings.lease_ms());
        let hold = vec![Command::Expire { key, ttl_ms }];
        out.push_back(Output::run(Purpose::Note, hold));
        self.set_timer(job_id, now.plus(self.settings.renew_ms()));
    }

    /// Writes the answer if the claim is ours, and tries to get the claim back if not.
    pub(super) fn answer(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        let Some(outcome) = &job.outcome else { return };
        if !job.is_to_all() && now >= job.lease_until {
            self.counters.lapsed += 1;
            return self.claim(job_id, false, now, out);
        }
        let (status, value) = match outcome {
            Outcome::Good(payload) => (Status::Res, payload.clone()),
            Outcome::Bad(payload) => (Status::Err, payload.clone()),
        };
        let bulk = self.settings.is_large(value.len());
        if bulk && !self.answers.enter() {
            if !std::mem::replace(&mut job.is_queued, true) {
                self.answers.wait(job_id);
            }
            if !job.is_to_all() {
                self.set_timer(job_id, now.plus(self.settings.renew_ms()));
            }
            return;
        }
        let keys = job.keys();
        let service = self.services.get(&job.service);
        let answer_ms = service.map_or(self.settings.answer_ttl_ms, |it| it.answer_ttl_ms);
        let commands = if job.is_to_all() {
            // It must outlive REQ, or a sweep would run the request again.
            let ttl_ms = answer_ms.max(job.req_left_ms + self.settings.lease_ms());
            let key = keys.answer_of(status, self.unit.as_str());
            vec![Command::Set {
                key,
                value,
                ttl_ms: Some(ttl_ms),
                only_new: true,
            }]
        } else {
            let (key, other) = match status {
                Status::Res => (keys.res(), keys.err()),
                _ => (keys.err(), keys.res()),
            };
            let only_new = !job.is_bare();
            let mut commands = vec![
                Command::Set {
                    key,
                    value,
                    ttl_ms: Some(answer_ms),
                    only_new,
                },
                Command::Expire {
                    key: keys.req(),
                    ttl_ms: self.settings.req_answered_ms(),
                },
            ];
            // The answer to an older request with this ID must not be taken for the answer to this one.
            commands.extend(job.is_bare().then_some(Command::Expire {
                key: other,
                ttl_ms: 1,
            }));
            commands
        };
        job.timer = None;
        job.busy = true;
        job.is_sending = bulk && !job.is_to_all();
        let is_held = job.is_sending;
        if job.failures > 0 {
            self.counters.resent += 1;
        }
        let job = job_id;
        out.push_back(Output::run_as(
            Purpose::Answer { job, bulk },
            commands,
            bulk,
        ));
        if is_held {
            self.set_timer(job_id, now.plus(self.settings.renew_ms()));
        }
    }

    pub(crate) fn answer_written(
        &mut self,
        job_id: u64,
        bulk: bool,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        if bulk {
            self.answers.leave();
        }
        self.take_written(job_id, replies, now, out);
        while let Some(next) = self.answers.next() {
            let Some(job) = self.jobs.get_mut(&next) else {
                continue;
            };
            job.is_queued = false;
            // If a renewal or a claim is on its way, its reply continues with the answer.
            if job.state == State::Answering && !job.busy {
                self.answer(next, now, out);
            }
        }
    }

    fn take_written(
        &mut self,
        job_id: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.busy = false;
        job.is_sending = false;
        let confirmed = match replies.as_deref() {
            Ok([Reply::Ok, ..]) => true,
            // Another answer is there, or our own from a write whose confirmation was lost.
            Ok([Reply::Nil, ..]) => true,
            _ => false,
        };
        if confirmed {
            self.counters.answered += 1;
            self.recent
                .insert(&job.unit, &job.id, now, self.settings.lease_ms());
            let again = job.asked_again.then(|| (job.unit.clone(), job.id.clone()));
            self.release(job_id, now, out);
            if let Some((unit, id)) = again {
                self.offer(&unit, &id, Origin::Push, now, out);
            }
            return;
        }
        if job.failures >= self.settings.answer_try_limit {
            self.counters.dropped += 1;
            return self.release(job_id, now, out);
        }
        self.fail(job_id, now);
    }
}
