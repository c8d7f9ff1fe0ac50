//! One unit's whole protocol in one place: events and the time go in, outputs come out.
//!
//! The order of calls: `handle_subscribed` once pushes arrive (and again after each interruption, which
//! `handle_unsubscribed` announces), then any of the others in any order. After every call, take outputs with
//! `poll_output` until there are none, and call `handle_timeout` no later than `poll_timeout` says.
//! Each [`Output::Run`] must come back through `handle_reply` exactly once, each [`Output::Search`] through
//! `handle_found` with its end exactly once, unless [`Output::CancelSearch`] ends it first.

use std::collections::VecDeque;

use bytes::Bytes;

use super::backend::{Backend, BackendCounters};
use super::command::{Purpose, Replies, Search, SearchStep, SearchToken, Time, Token};
use super::gather::{GatherSpec, Gatherer, Read};
use super::ignored::{Ignored, KeyError};
use super::key::{Key, RequestId, Status};
use super::name::{Pattern, UnitName};
use super::output::{CallId, GatherId, JobId, Outcome, Output, OwnedId, ServiceId, WatchId};
use super::owned::Owner;
use super::requester::{CallSpec, Requester};
use super::settings::Settings;
use super::turn::Turn;
use super::watch::{KeepPattern, Watches};

/// The state machine of one unit. The top of this file has the order of calls.
#[derive(Debug)]
pub struct Core {
    unit: UnitName,
    requester: Requester,
    backend: Backend,
    gatherer: Gatherer,
    watches: Watches,
    owner: Owner,
    /// The turn at searches after a gap, of sweeps and watches.
    turn: Turn,
    ignored: Ignored,
    out: VecDeque<Output>,
}

impl Core {
    /// A unit that knows nothing yet. `instance` distinguishes it from other processes of the same name.
    pub fn new(unit: UnitName, instance: &str, settings: Settings, mut rng: fastrand::Rng) -> Self {
        let retry_ms = settings.retry_ms;
        let watches = Watches::new(&settings, rng.fork());
        let (turn_rng, gather_rng) = (rng.fork(), rng.fork());
        let backend = Backend::new(unit.clone(), instance, settings.clone(), rng);
        Self {
            requester: Requester::new(unit.clone(), settings.clone()),
            turn: Turn::new(backend.claim_name(), &settings, turn_rng),
            backend,
            gatherer: Gatherer::new(unit.clone(), settings, gather_rng),
            watches,
            owner: Owner::new(instance, retry_ms),
            ignored: Ignored::default(),
            out: VecDeque::new(),
            unit,
        }
    }

    /// Begins a call. [`Output::Deliver`] ends it.
    pub fn call(&mut self, spec: CallSpec, now: Time) -> CallId {
        self.requester.begin(spec, now, &mut self.out)
    }

    /// Forgets a call: nothing is delivered. Its request stays until it expires, and may run.
    pub fn cancel_call(&mut self, call: CallId) {
        self.requester.cancel(call);
    }

    /// Calls that wait.
    pub fn pending_calls(&self) -> usize {
        self.requester.pending()
    }

    /// Begins a gather. [`Output::GatherDone`] ends it.
    pub fn gather(&mut self, spec: GatherSpec, now: Time) -> GatherId {
        self.gatherer.begin(spec, now, &mut self.out)
    }

    /// Forgets a gather.
    pub fn cancel_gather(&mut self, gather: GatherId) {
        self.gatherer.cancel(gather, &mut self.out);
    }

    /// Bounds the answers that a gather reads to those that its reader has room for now. Each that is delivered takes one
    /// away. Without this there is no bound.
    pub fn gather_room(&mut self, gather: GatherId, room: usize) {
        self.gatherer.room(gather, room, &mut self.out);
    }

    /// The gathers with answers that wait for [`Core::gather_room`], or for reads under way.
    pub fn unread_gathers(&self) -> impl Iterator<Item = GatherId> {
        self.gatherer.unread()
    }

    /// Serves requests that match, at most `places` at a time. The driver subscribes to the pattern first.
    pub fn serve(&mut self, pattern: Pattern, places: usize, now: Time) -> ServiceId {
        self.backend.serve(pattern, places, now)
    }

    /// Gives the answers of a service another life than the unit's default, of two leases at least.
    pub fn set_answer_ttl(&mut self, service: ServiceId, ttl_ms: u64) {
        self.backend.set_answer_ttl(service, ttl_ms);
    }

    /// Takes no more requests for a service; what runs will be answered.
    pub fn drain(&mut self, service: ServiceId) {
        self.backend.drain(service, &mut self.out);
        self.give_turn_back();
    }

    /// Whether a service has nothing left to run or to answer.
    pub fn is_drained(&self, service: ServiceId) -> bool {
        self.backend.is_drained(service)
    }

    /// Forgets a service and all its requests. What it claimed is taken over by others when the claims lapse.
    pub fn remove_service(&mut self, service: ServiceId) {
        self.backend.remove(service, &mut self.out);
        self.give_turn_back();
    }

    /// What the backend did so far.
    pub fn backend_counters(&self) -> BackendCounters {
        self.backend.counters()
    }

    /// Watches kept values. The driver subscribes to the pattern, then calls [`Core::watch_ready`].
    pub fn watch(&mut self, pattern: KeepPattern) -> WatchId {
        self.watches.begin(pattern)
    }

    /// The watch's pattern is subscribed to: takes the snapshot.
    pub fn watch_ready(&mut self, watch: WatchId) {
        self.watches.ready(watch, &mut self.out);
    }

    /// A caller waits until the watch is live: a snapshot that is not urgent becomes urgent.
    pub fn watch_hurry(&mut self, watch: WatchId) {
        self.watches.hurry(watch, &mut self.out);
    }

    /// Bounds the values that a snapshot reads to the events that the watcher has room for now. Each value that is
    /// shown takes one away. Without this there is no bound.
    pub fn watch_room(&mut self, watch: WatchId, room: usize, now: Time) {
        self.watches.room(watch, room, now, &mut self.out);
    }

    /// The watches whose snapshots wait for [`Core::watch_room`], or for reads under way.
    pub fn unread_watches(&self) -> impl Iterator<Item = WatchId> {
        self.watches.unread()
    }

    /// The watcher was too slow, and the driver dropped events: it gets a gap, and then all current values.
    pub fn watch_gap(&mut self, watch: WatchId, now: Time) {
        self.watches.gap(watch, now, &mut self.out);
    }

    /// Looks at all watched values again, where a server sends no events.
    pub fn poll_watches(&mut self) {
        self.watches.look_again(&mut self.out);
    }

    /// Checks whether the watched keys that are known still exist, for changes that send no event. `values` says to read
    /// their values too. The keyspace is not searched for others.
    pub fn recheck_watches(&mut self, values: bool, now: Time) {
        self.watches.recheck(values, now, &mut self.out);
    }

    /// Ends a watch.
    pub fn cancel_watch(&mut self, watch: WatchId) {
        self.watches.cancel(watch, &mut self.out);
        self.give_turn_back();
    }

    /// Writes a kept value of this unit and refreshes it until it is released.
    pub fn own(&mut self, id: &str, value: Bytes, ttl_ms: u64, now: Time) -> OwnedId {
        let key = super::key::key(self.unit.as_str(), Status::Keep, id);
        self.owner
            .own(key, value, ttl_ms, false, now, &mut self.out)
    }

    /// Like [`Core::own`], for a value that other processes of this unit's name write too. It has to contain the
    /// `instance` that this core was given. What another process wrote last is left alone.
    pub fn own_shared(&mut self, id: &str, value: Bytes, ttl_ms: u64, now: Time) -> OwnedId {
        let key = super::key::key(self.unit.as_str(), Status::Keep, id);
        self.owner.own(key, value, ttl_ms, true, now, &mut self.out)
    }

    /// Changes a shared value, unless another process wrote last.
    pub fn update_owned(&mut self, owned: OwnedId, value: Bytes, now: Time) {
        self.owner.update(owned, value, now, &mut self.out);
    }

    /// Lets a shared value end at once, unless another process wrote last.
    pub fn retire_owned(&mut self, owned: OwnedId, now: Time) {
        self.owner.retire(owned, now, &mut self.out);
    }

    /// Changes an owned value, whichever process wrote last. Returns the version that [`Output::OwnedWritten`] will name;
    /// none if the value is not owned any more.
    pub fn change_owned(&mut self, owned: OwnedId, value: Bytes, now: Time) -> Option<u64> {
        self.owner.change(owned, value, now, &mut self.out)
    }

    /// Stops refreshing an owned value; its TTL ends it.
    pub fn release_owned(&mut self, owned: OwnedId) {
        self.owner.release(owned);
    }

    /// Pushes arrive from now on. Whatever happened before may have been missed.
    pub fn handle_subscribed(&mut self, now: Time) {
        self.requester.subscribed(now, &mut self.out);
        self.gatherer.subscribed(now, &mut self.out);
        self.backend.subscribed(now);
        self.watches.subscribed(now, &mut self.out);
        self.turn.subscribed();
        self.owner.subscribed(now, &mut self.out);
    }

    /// Pushes do not arrive any more. Calls that begin now are written when they do again.
    pub fn handle_unsubscribed(&mut self) {
        self.requester.unsubscribed();
        self.gatherer.unsubscribed();
    }

    /// The server sent an event on a key. Keys that are not ours are ignored.
    pub fn handle_push(&mut self, key: &str, event: &str, now: Time) {
        let text = key;
        let key = match Key::check(text) {
            Ok(key) => key,
            Err(reason) if event == "set" => return self.handle_ignored(text, reason),
            Err(_) => return,
        };
        match key.status {
            Status::Keep => self.watches.pushed(text, event, now, &mut self.out),
            _ if event != "set" => {}
            Status::Req => match RequestId::parse(key.id) {
                Some(id) => self.backend.pushed(key.unit, &id, now, &mut self.out),
                None => self.handle_ignored(text, KeyError::Id),
            },
            Status::Res | Status::Err => match RequestId::parse_answer(key.id) {
                Some((id, Some(backend))) if key.unit == self.unit.as_str() => {
                    self.gatherer
                        .pushed(&id, key.status, backend, &mut self.out);
                }
                Some((id, None)) => {
                    if key.unit == self.unit.as_str() {
                        self.requester.pushed(&id, key.status, now, &mut self.out);
                    }
                    self.backend.answer_pushed(key.unit, &id, now);
                }
                _ => {}
            },
        }
    }

    /// A key was set that is outside the grammar. If it was meant for a backend, [`Output::Ignored`] reports the first one of
    /// its unit.
    pub fn handle_ignored(&mut self, key: &str, reason: KeyError) {
        if key.contains("/REQ/") && self.backend.is_serving() {
            self.ignored.see(key, reason, &mut self.out);
        }
    }

    /// The replies of an [`Output::Run`].
    pub fn handle_reply(&mut self, token: Token, replies: Replies, now: Time) {
        let out = &mut self.out;
        match token.0 {
            Purpose::Note => {}
            Purpose::SweepLock => {
                self.backend.sweep_locked(replies, now, out);
                self.take_turns(now);
            }
            Purpose::SearchLock => {
                self.turn.locked(replies, now, out);
                self.take_turns(now);
            }
            Purpose::WatchCheck { watch, keys } => {
                self.watches.checked(watch, &keys, replies, now, out);
            }
            Purpose::CallWrite { call, bulk } => {
                self.requester.written(call, bulk, replies, now, out);
            }
            Purpose::CallAgain => self.requester.written_again(now, out),
            Purpose::CallAnswer(call) => self.requester.answer_read(call, replies, now, out),
            Purpose::CallFetch(call) => self.requester.fetched(call, replies, now, out),
            Purpose::CallLook { call, sent } => {
                self.requester.looked(call, sent, replies, now, out)
            }
            Purpose::GatherWrite(gather) => self.gatherer.written(gather, replies, out),
            Purpose::GatherAnswer {
                gather,
                status,
                backend,
                bulk,
            } => {
                let read = Read {
                    status,
                    backend,
                    bulk,
                };
                self.gatherer.answer_read(gather, read, replies, now, out);
            }
            Purpose::Claim { job, sent, parts } => {
                let tried = replies.ok().and_then(|replies| parts.read(replies));
                self.backend.claimed(job, sent, tried, now, out);
            }
            Purpose::Renew { job, sent } => self.backend.renewed(job, sent, replies, now, out),
            Purpose::Count { job } => self.backend.counted(job, replies, now, out),
            Purpose::Look { job } => self.backend.looked(job, replies, now, out),
            Purpose::Fetch { job } => self.backend.fetched(job, replies, now, out),
            Purpose::Answer { job, bulk } => {
                self.backend.answer_written(job, bulk, replies, now, out);
            }
            Purpose::Check { unit, id } => self.backend.checked(&unit, &id, replies, now, out),
            Purpose::WatchRead(read) => self.watches.read(read, replies, now, out),
            Purpose::OwnedRefresh { owned } => self.owner.refreshed(owned, replies, now, out),
            Purpose::OwnedLook { owned } => self.owner.looked(owned, replies, now, out),
            Purpose::OwnedWrite { owned, version } => {
                self.owner.written(owned, version, replies, now, out);
            }
        }
    }

    /// Some keys of an [`Output::Search`], and whether more follow.
    pub fn handle_found(
        &mut self,
        token: SearchToken,
        keys: &[String],
        step: SearchStep,
        now: Time,
    ) {
        match token.0 {
            Search::Sweep(sweep) => self.backend.found(sweep, keys, step, now, &mut self.out),
            Search::Gather(search) => {
                self.gatherer.found(search, keys, step, now, &mut self.out);
            }
            Search::Watch(watch, snapshot) => {
                self.watches
                    .found(watch, snapshot, keys, step, now, &mut self.out)
            }
        }
        if step != SearchStep::More {
            self.take_turns(now);
        }
    }

    /// Begins searches that follow a gap, one at a time, when it is this unit's turn.
    fn take_turns(&mut self, now: Time) {
        loop {
            let (is_searching, is_wanted) = self.searches();
            if !self.turn.step(is_searching, is_wanted, now, &mut self.out) {
                return;
            }
            match self.backend.wants_turn() {
                true => self.backend.take_turn(now, &mut self.out),
                false => self.watches.take_turn(&mut self.out),
            }
        }
    }

    /// Gives the turn back if nothing is searched for any more.
    fn give_turn_back(&mut self) {
        if self.searches() == (false, false) {
            self.turn.give_back(&mut self.out);
        }
    }

    /// Whether a search that had to wait for its turn is under way, and whether another waits.
    fn searches(&self) -> (bool, bool) {
        let is_searching = self.backend.is_searching() || self.watches.is_searching();
        let is_wanted = self.backend.wants_turn() || self.watches.wants_turn();
        (is_searching, is_wanted)
    }

    /// A handler returned. One that failed, or panicked, has a [`Outcome::Bad`].
    pub fn handle_finished(&mut self, job: JobId, outcome: Outcome, now: Time) {
        self.backend.finished(job, outcome, now, &mut self.out);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.requester.timeout(now, &mut self.out);
        self.gatherer.timeout(now, &mut self.out);
        self.backend.timeout(now, &mut self.out);
        self.watches.timeout(now, &mut self.out);
        self.owner.timeout(now, &mut self.out);
        self.take_turns(now);
    }

    /// When [`Core::handle_timeout`] has something to do, at the earliest.
    pub fn poll_timeout(&self) -> Option<Time> {
        let (is_searching, is_wanted) = self.searches();
        let times = [
            self.turn.next_timeout(is_searching, is_wanted),
            self.requester.next_timeout(),
            self.gatherer.next_timeout(),
            self.backend.next_timeout(),
            self.watches.next_timeout(),
            self.owner.next_timeout(),
        ];
        times.into_iter().flatten().min()
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
}
