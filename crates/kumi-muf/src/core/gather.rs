//! Gather: one request, answered by every backend that serves it, until enough have answered, none has for a while, or the
//! deadline has passed.
//!
//! There is no claim. Backend B answers at `RES/<ID>.B`, so each answers at most once and all can be read again. A push
//! says which answer to read. REQ is set again after a while, for backends that missed its event.
//!
//! If the subscription was interrupted, a search of the keyspace finds the answers whose push was lost. One search serves
//! all gathers of the unit. It begins a random pause after the subscription is restored, so that it can use the time that
//! the gathers have left, and ends when none of them needs it. A gather whose deadline has passed waits for the search for a
//! grace period, and then fails, because answers may be missing. One that has been quiet for long enough waits until its
//! deadline. Where the server sends no events, the search begins at the deadline of a gather, or when the search under way
//! ends; the grace period begins with it.
//!
//! Every client that can write keys can write answers. So a gather ends with an error after a number of them, reads a few at a
//! time, and no more than its reader has room for.

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;

use super::command::{Command, Purpose, Replies, Reply, Search, SearchStep, SearchToken, Time};
use super::key::{Key, RequestId, RequestKeys, Status};
use super::name::UnitName;
use super::output::{CallError, GatherId, Gathered, Output};
use super::settings::Settings;
use super::timers::Timers;

/// Answers of one gather. One that gets more ends with an error.
const ANSWER_LIMIT: usize = 10_000;

/// Answers of one gather that are read at a time.
const READ_LIMIT: usize = 16;

/// What a gather is made of.
#[derive(Debug, Clone)]
pub struct GatherSpec {
    /// Its ID, unique, to all.
    pub id: RequestId,
    /// What REQ will hold.
    pub payload: Bytes,
    /// When to end at the latest.
    pub timeout_ms: u64,
    /// Life of REQ, of two leases at least; none is as long as the gather.
    pub ttl_ms: Option<u64>,
    /// Text of the tracing side key, if there is to be one.
    pub meta: Option<Bytes>,
    /// End when this many have answered.
    pub count: Option<usize>,
    /// End when no backend has answered for this long after the first answer.
    pub quiet_ms: Option<u64>,
}

#[derive(Debug)]
struct Gathering {
    spec: GatherSpec,
    deadline: Time,
    /// When REQ's life ends.
    req_deadline: Time,
    /// The write of REQ was sent, or confirmed.
    sent: bool,
    written: bool,
    heard: HashSet<String>,
    /// Answers that are there and are not being read yet.
    unread: VecDeque<(Status, String)>,
    reading: usize,
    /// Answers that the reader has room for; none is without a bound.
    room: Option<usize>,
    /// Pushes may have been lost: the number of the first search that finds their answers.
    missing: Option<u64>,
    /// When REQ is set again, and how long after that.
    again_at: Time,
    again_ms: u64,
    /// Its time is up. It waits for reads and for a search, until `timer`.
    ending: bool,
    timer: Time,
    /// The search that it waits for has begun, and its grace with it. That happens once: it ends even if subscriptions
    /// break again and again.
    has_grace: bool,
}

/// All gathers of a unit.
#[derive(Debug)]
pub(crate) struct Gatherer {
    unit: UnitName,
    settings: Settings,
    subscribed: bool,
    gathers: HashMap<u64, Gathering>,
    by_id: HashMap<RequestId, u64>,
    timers: Timers,
    next: u64,
    /// The number of the search under way.
    search: Option<u64>,
    /// When the next search begins.
    search_at: Option<Time>,
    /// Searches that were begun.
    searches: u64,
    rng: fastrand::Rng,
}

impl Gatherer {
    pub(crate) fn new(unit: UnitName, settings: Settings, rng: fastrand::Rng) -> Self {
        Self {
            unit,
            settings,
            subscribed: false,
            gathers: HashMap::new(),
            by_id: HashMap::new(),
            timers: Timers::default(),
            next: 0,
            search: None,
            search_at: None,
            searches: 0,
            rng,
        }
    }

    pub(crate) fn begin(
        &mut self,
        spec: GatherSpec,
        now: Time,
        out: &mut VecDeque<Output>,
    ) -> GatherId {
        self.next += 1;
        let timer = now.plus(spec.timeout_ms);
        let again_at = now.plus(self.settings.first_look_ms);
        self.timers.set(timer, self.next);
        self.timers.set(again_at, self.next);
        self.by_id.insert(spec.id.clone(), self.next);
        let gathering = Gathering {
            deadline: timer,
            req_deadline: spec.ttl_ms.map_or(timer, |ttl_ms| {
                now.plus(ttl_ms.max(2 * self.settings.lease_ms()))
            }),
            sent: false,
            written: false,
            heard: HashSet::new(),
            unread: VecDeque::new(),
            reading: 0,
            room: None,
            missing: None,
            again_at,
            again_ms: self.settings.look_ms(),
            ending: false,
            timer,
            has_grace: false,
            spec,
        };
        self.gathers.insert(self.next, gathering);
        if self.subscribed {
            self.write(self.next, now, out);
        }
        GatherId(self.next)
    }

    pub(crate) fn cancel(&mut self, gather: GatherId, out: &mut VecDeque<Output>) {
        if let Some(gathering) = self.gathers.remove(&gather.0) {
            self.by_id.remove(&gathering.spec.id);
            self.stop_unless_needed(out);
        }
    }

    pub(crate) fn subscribed(&mut self, now: Time, out: &mut VecDeque<Output>) {
        self.subscribed = true;
        // A search under way may have missed answers that were set before now and whose pushes were lost.
        self.stop_search(out);
        let mut gathers: Vec<u64> = self.gathers.keys().copied().collect();
        gathers.sort_unstable();
        let mut is_urgent = false;
        for gather in gathers {
            if let Some(gathering) = self.gathers.get_mut(&gather) {
                let is_missing = gathering.sent && self.settings.poll_ms.is_none();
                if is_missing || gathering.missing.is_some() {
                    gathering.missing = Some(self.searches + 1);
                    is_urgent |= gathering.ending;
                }
            }
            self.write(gather, now, out);
        }
        if self.is_search_needed() {
            let pause_ms = match is_urgent {
                true => 0,
                false => self.rng.u64(..=self.settings.lease_ms() / 8),
            };
            self.search_at = Some(now.plus(pause_ms));
        }
    }

    pub(crate) fn unsubscribed(&mut self) {
        self.subscribed = false;
    }

    fn write(&mut self, gather: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(gathering) = self.gathers.get_mut(&gather) else {
            return;
        };
        let left_ms = gathering.req_deadline.since(now);
        if left_ms == 0 || gathering.deadline <= now {
            return;
        }
        gathering.sent = true;
        let keys = RequestKeys {
            unit: self.unit.as_str(),
            id: &gathering.spec.id,
        };
        let set = |key, value, only_new| Command::Set {
            key,
            value,
            ttl_ms: Some(left_ms),
            only_new,
        };
        let meta = gathering.spec.meta.clone();
        let meta = meta.map(|value| set(keys.meta(), value, false));
        let request = set(keys.req(), gathering.spec.payload.clone(), true);
        let commands = meta.into_iter().chain([request]).collect();
        let bulk = self.settings.is_large(gathering.spec.payload.len());
        out.push_back(Output::run_as(Purpose::GatherWrite(gather), commands, bulk));
    }

    pub(crate) fn written(&mut self, gather: u64, replies: Replies, out: &mut VecDeque<Output>) {
        let Some(gathering) = self.gathers.get_mut(&gather) else {
            return;
        };
        match replies.as_deref() {
            Ok([.., Reply::Refused(text)]) => {
                let error = CallError::Refused(text.clone());
                self.end(gather, Err(error), out);
            }
            Ok(_) => gathering.written = true,
            // The next subscription writes it again.
            Err(_) => {}
        }
    }

    /// `RES/<ID>.backend` or `ERR/<ID>.backend` is there.
    pub(crate) fn pushed(
        &mut self,
        id: &RequestId,
        status: Status,
        backend: &str,
        out: &mut VecDeque<Output>,
    ) {
        let Some(&gather) = self.by_id.get(id) else {
            return;
        };
        let Some(gathering) = self.gathers.get_mut(&gather) else {
            return;
        };
        if gathering.heard.contains(backend) {
            return;
        }
        let known = gathering.heard.len() + gathering.reading + gathering.unread.len();
        if known >= ANSWER_LIMIT {
            return self.end(gather, Err(CallError::AnswersLeft), out);
        }
        gathering.unread.push_back((status, backend.to_owned()));
        self.read_on(gather, out);
    }

    /// Bounds the answers that are read to those that the reader has room for now. Each that is delivered takes one away.
    pub(crate) fn room(&mut self, gather: GatherId, room: usize, out: &mut VecDeque<Output>) {
        if let Some(gathering) = self.gathers.get_mut(&gather.0) {
            gathering.room = Some(room);
            self.read_on(gather.0, out);
        }
    }

    /// The gathers with answers that wait for [`Gatherer::room`], or for reads under way.
    pub(crate) fn unread(&self) -> impl Iterator<Item = GatherId> {
        let unread = self.gathers.iter().filter(|(_, it)| !it.unread.is_empty());
        unread.map(|(gather, _)| GatherId(*gather))
    }

    /// Reads the next answers.
    fn read_on(&mut self, gather: u64, out: &mut VecDeque<Output>) {
        let Some(gathering) = self.gathers.get_mut(&gather) else {
            return;
        };
        while gathering.reading < READ_LIMIT.min(gathering.room.unwrap_or(READ_LIMIT)) {
            let Some((status, backend)) = gathering.unread.pop_front() else {
                return;
            };
            if gathering.heard.contains(&backend) {
                continue;
            }
            gathering.reading += 1;
            let bulk = false;
            let read = Read {
                status,
                backend,
                bulk,
            };
            out.push_back(read.run(gather, &self.unit, &gathering.spec.id, &self.settings));
        }
    }

    pub(crate) fn answer_read(
        &mut self,
        gather: u64,
        read: Read,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(gathering) = self.gathers.get_mut(&gather) else {
            return;
        };
        let payload = match <[Reply; 2]>::try_from(replies.unwrap_or_default()) {
            Ok([answer, present]) => answer.into_held(present.has(0)),
            Err(_) => None,
        };
        let size_bytes = payload.as_ref().map_or(0, Bytes::len);
        if !read.bulk && self.settings.is_cut(size_bytes) {
            // Only its beginning was read.
            let whole = Read { bulk: true, ..read };
            out.push_back(whole.run(gather, &self.unit, &gathering.spec.id, &self.settings));
            return;
        }
        gathering.reading -= 1;
        let news = payload.filter(|_| gathering.heard.insert(read.backend.clone()));
        if let Some(payload) = news {
            gathering.room = gathering.room.map(|room| room.saturating_sub(1));
            let limit_bytes = self.settings.payload_limit_bytes;
            let result = match read.status {
                _ if payload.len() > limit_bytes => {
                    Err(CallError::TooLarge { limit_bytes }.to_string().into())
                }
                Status::Res => Ok(payload),
                _ => Err(payload),
            };
            let answer = Gathered {
                backend: read.backend,
                result,
            };
            out.push_back(Output::Gathered {
                gather: GatherId(gather),
                answer,
            });
            if gathering
                .spec
                .count
                .is_some_and(|count| gathering.heard.len() >= count)
            {
                return self.end(gather, Ok(()), out);
            }
            if let Some(quiet_ms) = gathering.spec.quiet_ms.filter(|_| !gathering.ending) {
                gathering.timer = now.plus(quiet_ms).min(gathering.deadline);
                self.timers.set(gathering.timer, gather);
            }
        }
        self.read_on(gather, out);
        self.end_if_done(gather, out);
    }

    /// A search has found keys, perhaps of several gathers.
    pub(crate) fn found(
        &mut self,
        search: u64,
        keys: &[String],
        step: SearchStep,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        for text in keys {
            let Some(key) = Key::parse(text).filter(|key| key.unit == self.unit.as_str()) else {
                continue;
            };
            if let Some((id, Some(backend))) = RequestId::parse_answer(key.id) {
                self.pushed(&id, key.status, backend, out);
            }
        }
        if step == SearchStep::More || self.search != Some(search) {
            return;
        }
        self.search = None;
        let mut found: Vec<u64> = Vec::new();
        for (gather, gathering) in &mut self.gathers {
            let is_found = step == SearchStep::Done;
            let missing = gathering
                .missing
                .take_if(|first| is_found && *first <= search);
            found.extend(missing.map(|_| *gather));
        }
        found.sort_unstable();
        for gather in found {
            self.end_if_done(gather, out);
        }
        if self.is_search_needed() {
            let pause_ms = match step {
                SearchStep::Failed => self.settings.retry_ms,
                _ => 0,
            };
            self.search_at = Some(now.plus(pause_ms));
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        [self.timers.next(), self.search_at]
            .into_iter()
            .flatten()
            .min()
    }

    pub(crate) fn timeout(&mut self, now: Time, out: &mut VecDeque<Output>) {
        while let Some((at, gather)) = self.timers.pop_due(now) {
            let Some(gathering) = self.gathers.get_mut(&gather) else {
                continue;
            };
            if gathering.again_at == at && !gathering.ending {
                gathering.again_at = now.plus(gathering.again_ms);
                gathering.again_ms = gathering.again_ms.saturating_mul(2);
                self.timers.set(gathering.again_at, gather);
                let key = RequestKeys {
                    unit: self.unit.as_str(),
                    id: &gathering.spec.id,
                }
                .req();
                let value = gathering.spec.payload.clone();
                let bulk = self.settings.is_large(value.len());
                let again = vec![Command::SetAgain { key, value }];
                out.push_back(Output::run_as(Purpose::Note, again, bulk));
            }
            if gathering.timer != at {
                continue;
            }
            if gathering.ending {
                let result = self.result_after_grace(gather);
                self.end(gather, result, out);
                continue;
            }
            gathering.ending = true;
            // What was never sent has no answers.
            if gathering.sent && (self.settings.poll_ms.is_some() || !self.subscribed) {
                gathering.missing = Some(self.searches + 1);
            }
            let grace_end = now.plus(self.settings.grace_ms);
            gathering.timer = match gathering.missing {
                Some(_) => gathering.deadline.max(grace_end),
                None => grace_end,
            };
            self.timers.set(gathering.timer, gather);
            if gathering.missing.is_some() && self.search.is_none() {
                self.search_at = Some(now);
            }
            // If the event of each answer arrived, what is being read is all there is.
            self.end_if_done(gather, out);
        }
        if self.search_at.take_if(|at| *at <= now).is_some() {
            self.begin_search(now, out);
        }
    }

    /// How a gather ends whose reads, or whose search, did not end in their grace.
    fn result_after_grace(&self, gather: u64) -> Result<(), CallError> {
        let Some(gathering) = self.gathers.get(&gather) else {
            return Ok(());
        };
        match gathering.missing.is_some() {
            true if self.subscribed && gathering.written => Err(CallError::SearchUnfinished),
            true => Err(CallError::Disconnected),
            false if !gathering.unread.is_empty() => Err(CallError::AnswersLeft),
            false if gathering.heard.is_empty() => Err(CallError::Disconnected),
            false => Ok(()),
        }
    }

    /// Searches for the answers of all gathers.
    fn begin_search(&mut self, now: Time, out: &mut VecDeque<Output>) {
        // One that is under way is followed by the next if that is needed. While pushes do not arrive, a search would
        // have to be repeated.
        if self.search.is_some() || !self.subscribed || !self.is_search_needed() {
            return;
        }
        self.searches += 1;
        self.search = Some(self.searches);
        self.begin_graces(now);
        out.push_back(Output::Search {
            token: SearchToken(Search::Gather(self.searches)),
            pattern: format!("MUF/{}/[RE][ER][SR]/*~all~*", self.unit),
            paced: false,
        });
    }

    /// Gathers whose time is up, and that could not use an earlier search, have a grace from the beginning of this one.
    fn begin_graces(&mut self, now: Time) {
        let waits =
            |it: &Gathering| it.ending && it.missing == Some(self.searches) && !it.has_grace;
        let waiting = self.gathers.iter().filter(|(_, it)| waits(it));
        let mut waiting: Vec<u64> = waiting.map(|(gather, _)| *gather).collect();
        waiting.sort_unstable();
        let grace_end = now.plus(self.settings.grace_ms);
        for gather in waiting {
            if let Some(gathering) = self.gathers.get_mut(&gather) {
                gathering.has_grace = true;
                if gathering.timer < grace_end {
                    gathering.timer = grace_end;
                    self.timers.set(grace_end, gather);
                }
            }
        }
    }

    fn is_search_needed(&self) -> bool {
        self.gathers.values().any(|it| it.missing.is_some())
    }

    fn stop_unless_needed(&mut self, out: &mut VecDeque<Output>) {
        if self.search.is_none() && self.search_at.is_none() {
            return;
        }
        if !self.is_search_needed() {
            self.search_at = None;
            self.stop_search(out);
        }
    }

    fn stop_search(&mut self, out: &mut VecDeque<Output>) {
        if let Some(search) = self.search.take() {
            let token = SearchToken(Search::Gather(search));
            out.push_back(Output::CancelSearch { token });
        }
    }

    fn end_if_done(&mut self, gather: u64, out: &mut VecDeque<Output>) {
        let Some(gathering) = self.gathers.get(&gather) else {
            return;
        };
        let is_read = gathering.reading == 0 && gathering.unread.is_empty();
        if gathering.ending && gathering.missing.is_none() && is_read {
            let result = if gathering.written {
                Ok(())
            } else {
                Err(CallError::Disconnected)
            };
            self.end(gather, result, out);
        }
    }

    fn end(&mut self, gather: u64, result: Result<(), CallError>, out: &mut VecDeque<Output>) {
        if let Some(gathering) = self.gathers.remove(&gather) {
            self.by_id.remove(&gathering.spec.id);
            out.push_back(Output::GatherDone {
                gather: GatherId(gather),
                result,
            });
            self.stop_unless_needed(out);
        }
    }
}

/// An answer to be read: its beginning, or if it is large the whole of it.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) status: Status,
    pub(crate) backend: String,
    pub(crate) bulk: bool,
}

impl Read {
    fn run(self, gather: u64, unit: &UnitName, id: &RequestId, settings: &Settings) -> Output {
        let unit = unit.as_str();
        let key = RequestKeys { unit, id }.answer_of(self.status, &self.backend);
        let limit_bytes = match self.bulk {
            true => settings.payload_limit_bytes,
            false => settings.inline_bytes(),
        };
        let read = Command::Read {
            key: key.clone(),
            limit_bytes,
        };
        let commands = vec![read, Command::Present(vec![key])];
        let bulk = self.bulk;
        let purpose = Purpose::GatherAnswer {
            gather,
            status: self.status,
            backend: self.backend,
            bulk,
        };
        Output::run_as(purpose, commands, bulk)
    }
}

#[cfg(test)]
mod tests;
