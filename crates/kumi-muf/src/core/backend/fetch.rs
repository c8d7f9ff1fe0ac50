//! Large requests: read on their own once the claim is won, a few at a time, while the claim is renewed.
//!
//! A claim reads the beginning of REQ only. If there is more, the claim is held while the whole of it is read: by one backend,
//! once. A read that was lost is repeated with the next renewal. A claim that lapsed meanwhile is tried again before the
//! handler starts.

use std::collections::VecDeque;

use super::job::{Origin, State};
use super::{Backend, Output, Time};
use crate::core::command::{Command, Purpose, Replies, Reply};

impl Backend {
    /// Goes on with a request whose beginning was read, and of which there is more.
    pub(super) fn read_whole(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.state = State::Reading;
        if !job.is_to_all() {
            self.set_timer(job_id, now.plus(self.settings.renew_ms()));
        }
        self.fetch(job_id, out);
    }

    /// Reads a large request when there is a place for it, unless that is under way.
    pub(super) fn fetch(&mut self, job_id: u64, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        if job.is_fetched || std::mem::replace(&mut job.is_fetching, true) {
            return;
        }
        match self.reads.is_open() {
            true => self.send_fetch(job_id, out),
            false => self.reads.wait(job_id),
        }
    }

    fn send_fetch(&mut self, job_id: u64, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        if job.state != State::Reading {
            // It was lost to another backend while it waited.
            job.is_fetching = false;
            return;
        }
        self.reads.enter();
        let commands = vec![Command::Read {
            key: job.keys().req(),
            limit_bytes: self.settings.payload_limit_bytes,
        }];
        let purpose = Purpose::Fetch { job: job_id };
        out.push_back(Output::run_as(purpose, commands, true));
    }

    /// A large request was read.
    pub(crate) fn fetched(
        &mut self,
        job_id: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        self.reads.leave();
        self.take_fetched(job_id, replies, now, out);
        while let Some(next) = self.reads.next() {
            self.send_fetch(next, out);
        }
    }

    fn take_fetched(
        &mut self,
        job_id: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return;
        };
        job.is_fetching = false;
        if job.state != State::Reading {
            return;
        }
        match replies.ok().and_then(|mut replies| replies.pop()) {
            Some(Reply::Value(payload)) if payload.is_empty() => self.release(job_id, now, out),
            Some(Reply::Value(payload)) if payload.len() > self.settings.payload_limit_bytes => {
                self.turn_down(job_id, now, out);
            }
            Some(Reply::Value(payload)) => {
                job.payload = payload;
                job.is_fetched = true;
                self.begin_fetched(job_id, now, out);
            }
            // The connection was lost, or the server did not let us read; it may do so later.
            _ => self.fail(job_id, now),
        }
    }

    /// Starts the handler of a large request that was read, if the claim is still ours.
    pub(super) fn begin_fetched(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(job) = self.jobs.get_mut(&job_id).filter(|job| job.is_fetched) else {
            return;
        };
        if job.is_to_all() {
            return self.start(job_id, 1, now, out);
        }
        if now < job.lease_until {
            return self.start_or_count(job_id, now, out);
        }
        // A renewal that is on its way says when it comes back whether the claim is ours.
        if !job.busy {
            self.counters.lapsed += 1;
            self.claim(job_id, false, now, out);
        }
    }

    /// Starts a handler, after its attempts were counted if there was one before.
    pub(super) fn start_or_count(&mut self, job_id: u64, now: Time, out: &mut VecDeque<Output>) {
        match self.jobs.get(&job_id) {
            Some(job) if job.origin == Origin::Push && !job.is_counted => {
                self.start(job_id, 1, now, out);
            }
            Some(_) => self.count(job_id, out),
            None => {}
        }
    }
}
