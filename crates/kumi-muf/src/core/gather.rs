//! Gather: one request, an answer from every backend that has one, until enough, quiet, or the deadline.
//!
//! There is no claim. Backend B answers at `RES/<ID>.B`, so each answers at most once and all can be read again. A push
//! says which answer to read. REQ is set again after a while, for backends that missed its event. If the subscription
//! was interrupted, a search of the keyspace finds the answers whose push was lost, before the gather ends short of its
//! count.

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;

use super::command::{Command, Purpose, Replies, Reply, Search, SearchToken, Time};
use super::key::{Key, RequestId, RequestKeys, Status};
use super::name::UnitName;
use super::output::{CallError, GatherId, Gathered, Output};
use super::settings::Settings;
use super::timers::Timers;

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
    written: bool,
    heard: HashSet<String>,
    reading: usize,
    /// Pushes may have been lost since it began.
    gap: bool,
    /// When REQ is set again, and how long after that.
    again_at: Time,
    again_ms: u64,
    /// The last search is on its way, or done.
    searching: bool,
    searched: bool,
    timer: Time,
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
}

impl Gatherer {
    pub(crate) fn new(unit: UnitName, settings: Settings) -> Self {
        Self {
            unit,
            settings,
            subscribed: false,
            gathers: HashMap::new(),
            by_id: HashMap::new(),
            timers: Timers::default(),
            next: 0,
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
            written: false,
            heard: HashSet::new(),
            reading: 0,
            gap: self.settings.poll_ms.is_some(),
            again_at,
            again_ms: self.settings.look_ms(),
            searching: false,
            searched: false,
            timer,
            spec,
        };
        self.gathers.insert(self.next, gathering);
        if self.subscribed {
            self.write(self.next, now, out);
        }
        GatherId(self.next)
    }

    pub(crate) fn cancel(&mut self, gather: GatherId) {
        if let Some(gathering) = self.gathers.remove(&gather.0) {
            self.by_id.remove(&gathering.spec.id);
        }
    }

    pub(crate) fn subscribed(&mut self, now: Time, out: &mut VecDeque<Output>) {
        self.subscribed = true;
        let mut gathers: Vec<u64> = self.gathers.keys().copied().collect();
        gathers.sort_unstable();
        for gather in gathers {
            if let Some(gathering) = self.gathers.get_mut(&gather) {
                gathering.gap |= gathering.written;
            }
            self.write(gather, now, out);
        }
    }

    pub(crate) fn unsubscribed(&mut self) {
        self.subscribed = false;
    }

    fn write(&mut self, gather: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(gathering) = self.gathers.get(&gather) else {
            return;
        };
        let left_ms = gathering.req_deadline.since(now);
        if left_ms == 0 || gathering.deadline <= now {
            return;
        }
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
        out.push_back(Output::run(Purpose::GatherWrite(gather), commands));
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
        gathering.reading += 1;
        let key = RequestKeys {
            unit: self.unit.as_str(),
            id,
        }
        .answer_of(status, backend);
        let purpose = Purpose::GatherAnswer {
            gather,
            status,
            backend: backend.to_owned(),
        };
        let read = Command::Read {
            key: key.clone(),
            limit_bytes: self.settings.payload_limit_bytes,
        };
        let commands = vec![read, Command::Present(vec![key])];
        out.push_back(Output::run(purpose, commands));
    }

    pub(crate) fn answer_read(
        &mut self,
        gather: u64,
        status: Status,
        backend: &str,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(gathering) = self.gathers.get_mut(&gather) else {
            return;
        };
        gathering.reading -= 1;
        let payload = match <[Reply; 2]>::try_from(replies.unwrap_or_default()) {
            Ok([answer, present]) => answer.into_held(present.has(0)),
            Err(_) => None,
        };
        let news = payload.filter(|_| gathering.heard.insert(backend.to_owned()));
        if let Some(payload) = news {
            let limit_bytes = self.settings.payload_limit_bytes;
            let result = match status {
                _ if payload.len() > limit_bytes => {
                    Err(CallError::TooLarge { limit_bytes }.to_string().into())
                }
                Status::Res => Ok(payload),
                _ => Err(payload),
            };
            let answer = Gathered {
                backend: backend.to_owned(),
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
            if let Some(quiet_ms) = gathering.spec.quiet_ms.filter(|_| !gathering.searching) {
                gathering.timer = now.plus(quiet_ms).min(gathering.deadline);
                self.timers.set(gathering.timer, gather);
            }
        }
        self.end_if_done(gather, out);
    }

    pub(crate) fn found(
        &mut self,
        gather: u64,
        keys: &[String],
        done: bool,
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
        if let Some(gathering) = self.gathers.get_mut(&gather).filter(|_| done) {
            gathering.searched = true;
            self.end_if_done(gather, out);
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    pub(crate) fn timeout(&mut self, now: Time, out: &mut VecDeque<Output>) {
        while let Some((at, gather)) = self.timers.pop_due(now) {
            let Some(gathering) = self.gathers.get_mut(&gather) else {
                continue;
            };
            if gathering.again_at == at && !gathering.searching {
                gathering.again_at = now.plus(gathering.again_ms);
                gathering.again_ms = gathering.again_ms.saturating_mul(2);
                self.timers.set(gathering.again_at, gather);
                let key = RequestKeys {
                    unit: self.unit.as_str(),
                    id: &gathering.spec.id,
                }
                .req();
                let value = gathering.spec.payload.clone();
                let again = vec![Command::SetAgain { key, value }];
                out.push_back(Output::run(Purpose::Note, again));
            }
            if gathering.timer != at {
                continue;
            }
            if gathering.searching {
                // The last search got no answer in its grace.
                let result = if gathering.heard.is_empty() {
                    Err(CallError::Disconnected)
                } else {
                    Ok(())
                };
                self.end(gather, result, out);
                continue;
            }
            gathering.searching = true;
            gathering.timer = now.plus(self.settings.grace_ms);
            self.timers.set(gathering.timer, gather);
            if !gathering.gap {
                // The event of each answer arrived: what is being read is all there is.
                gathering.searched = true;
                self.end_if_done(gather, out);
                continue;
            }
            let pattern = format!(
                "MUF/{}/[RE][ER][SR]/{}.*",
                self.unit,
                gathering.spec.id.as_str()
            );
            out.push_back(Output::Search {
                token: SearchToken(Search::Gather(gather)),
                pattern,
                paced: false,
            });
        }
    }

    fn end_if_done(&mut self, gather: u64, out: &mut VecDeque<Output>) {
        let Some(gathering) = self.gathers.get(&gather) else {
            return;
        };
        if gathering.searched && gathering.reading == 0 {
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
        }
    }
}
