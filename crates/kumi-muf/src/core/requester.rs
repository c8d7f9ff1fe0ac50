//! The requester: writes REQ, waits for RES or ERR, and reports exactly once how each call ended.
//!
//! A push only says "look now". Each call also looks by the clock: after a second, once per lease, when REQ's life ends,
//! after every new subscription, and once more at its deadline. So a lost push costs time, never a result. A look that
//! finds REQ unclaimed and unanswered while it should live sets it again, which makes a new event for the backends; one that finds
//! it missing writes it again.
//!
//! ```text
//!           SET REQ           push, GETRANGE RES
//!   begin ---------> waiting ---------------------> answer | Remote
//!                       |  REQ expired, no backend has claimed it  -> NoResponder
//!                       |  deadline, claimed                       -> HandlerTimeout
//!                       |  deadline, and the last look fails       -> Disconnected
//! ```
//! A value over the inline limit is large: it is written, and read, apart from other commands, a few at a time. A look reads
//! only the beginning of an answer; a large one is then read once. Its life is cut when it was read.
//!
//! A REQ that is found missing after it was sent may have been there, and may have run: `.tries` is set with it when it is
//! written again.
//!
//! It deletes nothing: a call that is cancelled is forgotten here, and its REQ expires by itself.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use super::bulk::Gate;
use super::command::{Command, Purpose, Replies, Reply, Time};
use super::ids::IdMap;
use super::key::{RequestId, RequestKeys, Status};
use super::name::UnitName;
use super::output::{CallError, CallId, Output};
use super::settings::{CLAIM_LIMIT_BYTES, Settings};
use super::timers::Timers;

/// What a call is made of.
#[derive(Debug, Clone)]
pub struct CallSpec {
    /// Its ID, unique.
    pub id: RequestId,
    /// What REQ will hold.
    pub payload: Bytes,
    /// TTL of REQ while no backend claims it.
    pub ttl_ms: u64,
    /// How long to wait in all.
    pub timeout_ms: u64,
    /// Text of the tracing side key, if there is to be one.
    pub meta: Option<Bytes>,
}

#[derive(Debug)]
struct Call {
    spec: CallSpec,
    deadline: Time,
    /// When REQ's life ends: known once a server has confirmed that it is there.
    req_deadline: Option<Time>,
    /// The last claimant seen. A call that was claimed once ends in `HandlerTimeout`, whatever happened to the claim.
    claimant: Option<String>,
    /// A claim seen without its REQ, and when. It may have been made after REQ's end, by a backend that then found
    /// nothing to run. Only a backend that works renews, so one that is there a lease later counts.
    suspect: Option<(Bytes, Time)>,
    /// A write of REQ was handed out: it may have been there since.
    sent: bool,
    /// A write of REQ is on its way, or waits for its place.
    writing: bool,
    /// A large answer, at RES or ERR, is being read, or waits for its place.
    fetching: Option<Status>,
    /// A read after a push is on its way.
    reading: bool,
    /// Another push came meanwhile.
    read_again: bool,
    /// A look found RES or ERR there and empty. It may have been set between the two commands: only a second such look is
    /// an empty answer.
    empty_seen: bool,
    /// A REQ that is found unclaimed is set again from this time on, and this long after that.
    again_at: Time,
    again_ms: u64,
    /// A large REQ that is to be set again waits for its place.
    again_waits: bool,
    /// The last look is on its way; the timer is its grace.
    ending: bool,
    /// The one timer that counts.
    timer: Time,
}

impl Call {
    /// Notes the claimant. It counts as working if REQ exists too, or if there is no time left to see a renewal.
    fn see_claim(
        &mut self,
        claim: Option<&Bytes>,
        believed: bool,
        sent: Time,
        now: Time,
        lease_ms: u64,
    ) {
        let Some(claim) = claim else {
            self.suspect = None;
            return;
        };
        let since = match &self.suspect {
            Some((suspect, since)) if suspect == claim => *since,
            _ => now,
        };
        if believed || self.claimant.is_some() || sent >= since.plus(lease_ms) {
            self.claimant = Some(claimant_name(claim));
            self.suspect = None;
        } else {
            self.suspect = Some((claim.clone(), since));
        }
    }
}

/// All calls of a unit that wait.
#[derive(Debug)]
pub(crate) struct Requester {
    unit: UnitName,
    settings: Settings,
    subscribed: bool,
    calls: IdMap<u64, Call>,
    by_id: HashMap<RequestId, u64>,
    /// Large requests that are written, and large answers that are read.
    writes: Gate,
    reads: Gate,
    timers: Timers,
    next: u64,
}

impl Requester {
    pub(crate) fn new(unit: UnitName, settings: Settings) -> Self {
        Self {
            unit,
            settings,
            subscribed: false,
            calls: IdMap::default(),
            by_id: HashMap::new(),
            writes: Gate::default(),
            reads: Gate::default(),
            timers: Timers::default(),
            next: 0,
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn begin(
        &mut self,
        spec: CallSpec,
        now: Time,
        out: &mut VecDeque<Output>,
    ) -> CallId {
        self.next += 1;
        let call_id = self.next;
        let deadline = now.plus(spec.timeout_ms);
        let first_ms = self
            .settings
            .first_look_ms
            .min(self.settings.poll_ms.unwrap_or(u64::MAX));
        let timer = now.plus(first_ms).min(deadline);
        self.timers.set(timer, call_id);
        self.by_id.insert(spec.id.clone(), call_id);
        self.calls.insert(
            call_id,
            Call {
                spec,
                deadline,
                req_deadline: None,
                claimant: None,
                suspect: None,
                sent: false,
                writing: false,
                fetching: None,
                reading: false,
                read_again: false,
                empty_seen: false,
                again_at: now,
                again_ms: self.settings.look_ms(),
                again_waits: false,
                ending: false,
                timer,
            },
        );
        if self.subscribed {
            self.write(call_id, now, out);
        }
        CallId(call_id)
    }

    pub(crate) fn cancel(&mut self, call: CallId) {
        if let Some(call) = self.calls.remove(&call.0) {
            self.by_id.remove(&call.spec.id);
        }
    }

    /// Pushes arrive from now on: whatever happened before may have been missed.
    pub(crate) fn subscribed(&mut self, now: Time, out: &mut VecDeque<Output>) {
        self.subscribed = true;
        let mut calls: Vec<u64> = self.calls.keys().copied().collect();
        calls.sort_unstable();
        for call_id in calls {
            match self.calls[&call_id].sent {
                true => self.look(call_id, now, out),
                false => self.write(call_id, now, out),
            }
        }
    }

    pub(crate) fn unsubscribed(&mut self) {
        self.subscribed = false;
    }

    /// RES or ERR of one of our requests was set. RES is read at once; after ERR both are, because RES wins.
    pub(crate) fn pushed(
        &mut self,
        id: &RequestId,
        status: Status,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(&call_id) = self.by_id.get(id) else {
            return;
        };
        if status != Status::Res {
            return self.look(call_id, now, out);
        }
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        if call.fetching.is_some() {
            return;
        }
        if call.reading {
            call.read_again = true;
            return;
        }
        call.reading = true;
        self.read_answer(call_id, false, out);
    }

    /// Reads RES, and on request asks whether it is there, which only an empty value leaves open.
    fn read_answer(&mut self, call_id: u64, presence: bool, out: &mut VecDeque<Output>) {
        let Some(call) = self.calls.get(&call_id) else {
            return;
        };
        let keys = RequestKeys {
            unit: self.unit.as_str(),
            id: &call.spec.id,
        };
        let mut commands = vec![Command::Read {
            key: keys.res(),
            limit_bytes: self.settings.inline_bytes(),
        }];
        commands.extend(presence.then(|| Command::Present(vec![keys.res()])));
        out.push_back(Output::run(Purpose::CallAnswer(call_id), commands));
    }

    pub(crate) fn answer_read(
        &mut self,
        call_id: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        let replies = replies.unwrap_or_default();
        if matches!(&replies[..], [Reply::Value(res)] if res.is_empty()) {
            return self.read_answer(call_id, true, out);
        }
        call.reading = false;
        if let Some(text) = replies.iter().find_map(Reply::refusal) {
            let error = CallError::Refused(text.to_owned());
            return self.deliver(call_id, Err(error), out);
        }
        let mut replies = replies.into_iter();
        if let Some(res) = replies.next() {
            // The push came after RES was set: what is there and empty is an empty answer.
            let res = res.into_held(replies.next().is_some_and(|present| present.has(0)));
            if self.take_answer(call_id, res, None, out) {
                return;
            }
        }
        if let Some(call) = self.calls.get_mut(&call_id).filter(|call| call.read_again) {
            call.read_again = false;
            let id = call.spec.id.clone();
            self.pushed(&id, Status::Res, now, out);
        }
    }

    pub(crate) fn written(
        &mut self,
        call_id: u64,
        bulk: bool,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        if bulk {
            self.written_again(now, out);
        }
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        call.writing = false;
        match replies.map(|mut replies| replies.pop()) {
            Ok(Some(Reply::Refused(text))) => {
                self.deliver(call_id, Err(CallError::Refused(text)), out)
            }
            // NX refused it: it is there, from an earlier try.
            Ok(_) => {
                let ttl_ms = call.spec.ttl_ms;
                call.req_deadline.get_or_insert(now.plus(ttl_ms));
                self.schedule(call_id, now);
            }
            Err(_) => self.retry_soon(call_id, now),
        }
    }

    pub(crate) fn looked(
        &mut self,
        call_id: u64,
        sent: Time,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        let ended = call.ending && sent >= call.deadline;
        let Ok(replies) = replies else {
            return match ended {
                true => self.deliver(call_id, Err(CallError::Disconnected), out),
                false => self.retry_soon(call_id, now),
            };
        };
        if let Some(text) = replies.iter().find_map(Reply::refusal) {
            let error = CallError::Refused(text.to_owned());
            return self.deliver(call_id, Err(error), out);
        }
        let Ok([res, err, claim, present]) = <[Reply; 4]>::try_from(replies) else {
            return self.retry_soon(call_id, now);
        };
        let there = present.has(2);
        let (res, err) = (res.into_held(present.has(0)), err.into_held(present.has(1)));
        let claim = claim.into_filled();
        let is_empty = |answer: &Option<Bytes>| answer.as_ref().is_some_and(Bytes::is_empty);
        let is_doubtful = is_empty(&res) || (res.is_none() && is_empty(&err));
        if is_doubtful && !call.empty_seen {
            call.empty_seen = true;
            return self.look(call_id, now, out);
        }
        if self.take_answer(call_id, res, err, out) {
            return;
        }
        let lease_ms = self.settings.lease_ms();
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        call.see_claim(claim.as_ref(), there || ended, sent, now, lease_ms);
        if there {
            let ttl_ms = call.spec.ttl_ms;
            call.req_deadline.get_or_insert(now.plus(ttl_ms));
        }
        let over = call
            .req_deadline
            .is_some_and(|req_deadline| sent >= req_deadline);
        match (&call.claimant, call.req_deadline) {
            (Some(claimant), _) if ended => {
                let claimant = claimant.clone();
                self.deliver(call_id, Err(CallError::HandlerTimeout { claimant }), out);
            }
            (None, Some(_)) if (ended || over) && call.suspect.is_none() => {
                self.deliver(call_id, Err(CallError::NoResponder), out)
            }
            (None, None) if ended => self.deliver(call_id, Err(CallError::Disconnected), out),
            _ => {
                // What is about to expire would be gone before a backend has read it.
                let useful_until = now.plus(self.settings.retry_ms);
                let alive = call
                    .req_deadline
                    .is_none_or(|req_deadline| req_deadline > useful_until);
                match claim {
                    None if alive && !call.ending && there => {
                        self.set_again(call_id, sent, now, out);
                    }
                    // A REQ that waits for its place has not been written.
                    None if alive && !call.ending && call.sent => self.write(call_id, now, out),
                    _ => {}
                }
                self.schedule(call_id, now);
            }
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    pub(crate) fn timeout(&mut self, now: Time, out: &mut VecDeque<Output>) {
        while let Some((at, call_id)) = self.timers.pop_due(now) {
            let Some(call) = self.calls.get_mut(&call_id).filter(|call| call.timer == at) else {
                continue;
            };
            if call.ending {
                self.deliver(call_id, Err(CallError::Disconnected), out);
                continue;
            }
            if now >= call.deadline {
                call.ending = true;
                call.timer = now.plus(self.settings.grace_ms);
                self.timers.set(call.timer, call_id);
            } else {
                // An answer is being read, or there is nothing to look for yet.
                let is_idle = call.fetching.is_some() || (call.writing && !call.sent);
                self.schedule(call_id, now);
                if is_idle {
                    continue;
                }
            }
            self.look(call_id, now, out);
        }
    }

    /// Writes REQ, unless a write is on its way. A large one may have to wait for its place.
    fn write(&mut self, call_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(call) = self.calls.get_mut(&call_id).filter(|it| !it.writing) else {
            return;
        };
        call.writing = true;
        if std::mem::take(&mut call.again_waits) {
            // It is written when the place that it waits for is free.
            return;
        }
        let is_large = self.settings.is_large(call.spec.payload.len());
        match is_large && !self.writes.is_open() {
            true => self.writes.wait(call_id),
            false => self.send(call_id, now, out),
        }
    }

    /// A large REQ was written, or set again: the next one has its place.
    pub(crate) fn written_again(&mut self, now: Time, out: &mut VecDeque<Output>) {
        self.writes.leave();
        while let Some(call_id) = self.writes.next() {
            let call = self.calls.get_mut(&call_id);
            match call.is_some_and(|call| std::mem::take(&mut call.again_waits)) {
                true => self.send_again(call_id, now, out),
                false => self.send(call_id, now, out),
            }
        }
    }

    /// Sends REQ. If it was sent before, and is not there, it may have run, which `.tries` shows the next backend.
    fn send(&mut self, call_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        let left_ms = match call.req_deadline {
            Some(req_deadline) => req_deadline.since(now),
            None => call.spec.ttl_ms.min(call.deadline.since(now)),
        };
        if left_ms == 0 {
            call.writing = false;
            return;
        }
        let again = std::mem::replace(&mut call.sent, true);
        let bulk = self.settings.is_large(call.spec.payload.len()) && self.writes.enter();
        let keys = RequestKeys {
            unit: self.unit.as_str(),
            id: &call.spec.id,
        };
        let tries = again.then(|| not_the_first(&keys, &self.settings));
        let meta = call.spec.meta.clone().map(|value| Command::Set {
            key: keys.meta(),
            value,
            ttl_ms: Some(left_ms),
            only_new: false,
        });
        let value = call.spec.payload.clone();
        let request = Command::Set {
            key: keys.req(),
            value,
            ttl_ms: Some(left_ms),
            only_new: again,
        };
        let side = tries.into_iter().chain(meta);
        let commands = side.chain([request]).collect();
        let call = call_id;
        let purpose = Purpose::CallWrite { call, bulk };
        out.push_back(Output::run_as(purpose, commands, bulk));
    }

    /// Makes a new event for a REQ that no backend has claimed, for backends that missed the first one or were full.
    /// The pauses double, because backends may still be full. If the request was claimed before, `.tries`
    /// shows the next backend that it may have run. `sent` is when the look was sent: looks are sent a lease apart, while
    /// their replies may come a little more or less than that apart, and a pause must not miss its look for it. A large REQ
    /// waits for its place like one that is written: if it were left to a later look, other large requests could keep it
    /// from being set again for as long as it lives.
    fn set_again(&mut self, call_id: u64, sent: Time, now: Time, out: &mut VecDeque<Output>) {
        let is_due = |call: &&mut Call| call.again_at <= sent && !call.again_waits && !call.writing;
        let Some(call) = self.calls.get_mut(&call_id).filter(is_due) else {
            return;
        };
        call.again_at = sent.plus(call.again_ms);
        call.again_ms = call.again_ms.saturating_mul(2);
        if self.settings.is_large(call.spec.payload.len()) && !self.writes.is_open() {
            call.again_waits = true;
            return self.writes.wait(call_id);
        }
        self.send_again(call_id, now, out);
    }

    /// Sets a REQ again that should still be there.
    fn send_again(&mut self, call_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let is_alive = |call: &&Call| call.req_deadline.is_none_or(|at| at > now);
        let Some(call) = self.calls.get(&call_id).filter(is_alive) else {
            return;
        };
        let keys = RequestKeys {
            unit: self.unit.as_str(),
            id: &call.spec.id,
        };
        let was_claimed = call.claimant.is_some();
        let tries = was_claimed.then(|| not_the_first(&keys, &self.settings));
        let again = Command::SetAgain {
            key: keys.req(),
            value: call.spec.payload.clone(),
        };
        let commands = tries.into_iter().chain([again]).collect();
        let bulk = self.settings.is_large(call.spec.payload.len()) && self.writes.enter();
        let purpose = match bulk {
            true => Purpose::CallAgain,
            false => Purpose::Note,
        };
        out.push_back(Output::run_as(purpose, commands, bulk));
    }

    fn look(&mut self, call_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(call) = self.calls.get(&call_id) else {
            return;
        };
        let keys = RequestKeys {
            unit: self.unit.as_str(),
            id: &call.spec.id,
        };
        let read = |key, limit_bytes| Command::Read { key, limit_bytes };
        let limit_bytes = self.settings.inline_bytes();
        let commands = vec![
            read(keys.res(), limit_bytes),
            read(keys.err(), limit_bytes),
            read(keys.claim(), CLAIM_LIMIT_BYTES),
            Command::Present(vec![keys.res(), keys.err(), keys.req()]),
        ];
        out.push_back(Output::run(
            Purpose::CallLook {
                call: call_id,
                sent: now,
            },
            commands,
        ));
    }

    /// Sets the next look: once per lease, and exactly when REQ's life or the call ends.
    fn schedule(&mut self, call_id: u64, now: Time) {
        let look_ms = self.settings.look_ms();
        let Some(call) = self.calls.get_mut(&call_id).filter(|call| !call.ending) else {
            return;
        };
        let mut at = match call.timer > now {
            true => call.timer,
            false => now.plus(look_ms),
        };
        if let Some(req_deadline) = call
            .req_deadline
            .filter(|at| *at > now && call.claimant.is_none())
        {
            at = at.min(req_deadline);
        }
        if let Some((_, since)) = &call.suspect {
            let proof_at = since.plus(self.settings.lease_ms());
            at = if proof_at > now { at.min(proof_at) } else { at };
        }
        self.set_timer(call_id, at);
    }

    fn retry_soon(&mut self, call_id: u64, now: Time) {
        if self.calls.get(&call_id).is_some_and(|call| !call.ending) {
            self.set_timer(call_id, now.plus(self.settings.retry_ms));
        }
    }

    fn set_timer(&mut self, call_id: u64, at: Time) {
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        let at = at.min(call.deadline);
        if call.timer != at {
            call.timer = at;
            self.timers.set(at, call_id);
        }
    }

    /// Takes the answer of which the beginning was read, if there is one: delivers it, or has the whole of it read. RES
    /// wins over ERR.
    fn take_answer(
        &mut self,
        call_id: u64,
        res: Option<Bytes>,
        err: Option<Bytes>,
        out: &mut VecDeque<Output>,
    ) -> bool {
        let (status, payload) = match (res, err) {
            (Some(payload), _) => (Status::Res, payload),
            (None, Some(payload)) => (Status::Err, payload),
            (None, None) => return false,
        };
        match self.settings.is_cut(payload.len()) {
            true => self.fetch(call_id, status, out),
            false => self.deliver_answer(call_id, status, payload, out),
        }
        true
    }

    /// Has a large answer read, when there is a place for it.
    fn fetch(&mut self, call_id: u64, status: Status, out: &mut VecDeque<Output>) {
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        if call.fetching.replace(status).is_some() {
            return;
        }
        match self.reads.is_open() {
            true => self.send_fetch(call_id, out),
            false => self.reads.wait(call_id),
        }
    }

    fn send_fetch(&mut self, call_id: u64, out: &mut VecDeque<Output>) {
        let Some(call) = self.calls.get(&call_id) else {
            return;
        };
        let keys = RequestKeys {
            unit: self.unit.as_str(),
            id: &call.spec.id,
        };
        let key = match call.fetching {
            Some(Status::Res) => keys.res(),
            Some(_) => keys.err(),
            None => return,
        };
        self.reads.enter();
        let limit_bytes = self.settings.payload_limit_bytes;
        let commands = vec![Command::Read { key, limit_bytes }];
        out.push_back(Output::run_as(Purpose::CallFetch(call_id), commands, true));
    }

    /// A large answer was read.
    pub(crate) fn fetched(
        &mut self,
        call_id: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        self.reads.leave();
        while let Some(next) = self.reads.next() {
            self.send_fetch(next, out);
        }
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        let Some(status) = call.fetching.take() else {
            return;
        };
        match replies.ok().and_then(|mut replies| replies.pop()) {
            Some(Reply::Refused(text)) => {
                self.deliver(call_id, Err(CallError::Refused(text)), out);
            }
            Some(Reply::Value(payload)) if !payload.is_empty() => {
                self.deliver_answer(call_id, status, payload, out);
            }
            // It has ended, or the connection has: the next look shows what is there.
            _ => self.retry_soon(call_id, now),
        }
    }

    /// Delivers an answer, and cuts its life if it takes much room. Nothing waits for that. Only now is it certain that no
    /// look will need it again.
    fn deliver_answer(
        &mut self,
        call_id: u64,
        status: Status,
        payload: Bytes,
        out: &mut VecDeque<Output>,
    ) {
        let Some(call) = self.calls.get(&call_id) else {
            return;
        };
        if payload.len() > self.settings.lasting_answer_bytes {
            let keys = RequestKeys {
                unit: self.unit.as_str(),
                id: &call.spec.id,
            };
            let key = match status {
                Status::Res => keys.res(),
                _ => keys.err(),
            };
            // REQ goes first: its backend may have been cut off before it did that, and an answer that ends before its
            // request is run again.
            let request = Command::Expire {
                key: keys.req(),
                ttl_ms: self.settings.req_answered_ms(),
            };
            let ttl_ms = self.settings.answer_read_ms();
            let cut = vec![request, Command::Expire { key, ttl_ms }];
            out.push_back(Output::run(Purpose::Note, cut));
        }
        let limit_bytes = self.settings.payload_limit_bytes;
        let result = match status {
            _ if payload.len() > limit_bytes => Err(CallError::TooLarge { limit_bytes }),
            Status::Res => Ok(payload),
            _ => Err(CallError::Remote(payload)),
        };
        self.deliver(call_id, result, out);
    }

    fn deliver(
        &mut self,
        call_id: u64,
        result: Result<Bytes, CallError>,
        out: &mut VecDeque<Output>,
    ) {
        if let Some(call) = self.calls.remove(&call_id) {
            self.by_id.remove(&call.spec.id);
            out.push_back(Output::Deliver {
                call: CallId(call_id),
                result,
            });
        }
    }
}

/// Shows the next backend that a request may have run.
fn not_the_first(keys: &RequestKeys<'_>, settings: &Settings) -> Command {
    Command::Set {
        key: keys.tries(),
        value: Bytes::from_static(b"0"),
        ttl_ms: Some(settings.answer_ttl_ms),
        only_new: true,
    }
}

/// A claim holds `unit~instance`; callers get the unit.
pub(crate) fn claimant_name(claim: &[u8]) -> String {
    let text = String::from_utf8_lossy(claim);
    text.split('~').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
