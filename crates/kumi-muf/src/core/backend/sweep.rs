//! Sweeps: finding requests whose events were missed, after a gap in the subscription or an overflow of our own lists.
//!
//! A sweep scans the keyspace, which may be large, so there is none by the clock: a requester whose REQ stays unclaimed
//! sets it again, and that push reaches every backend. A sweep is wanted when this backend begins to serve, when its
//! subscription was interrupted, and when it dropped requests because a list was full. It begins after a random pause,
//! and only one backend of the same services sweeps at a time, under a lock of these services. The search itself has to
//! wait for its turn among all searches of the database (`turn.rs`):
//!
//! ```text
//!   wanted --pause--> SET lock me NX PX 6000 --ours--> its turn --> search, renewing it --> SET lock "done me.N" PX 4000
//!                         |   ^                                                                      |
//!                another's|   | half a lease later, or                                               v
//!                         v   | when "done" ends                              one that saw it held, or saw another
//!                        waits-/  (its holder crashed: it is free)            "done" before, need not sweep
//! ```
//! A backend that sees the sweep of another one under way, and later done, need not sweep: the other one was subscribed all
//! the time, so it knows every request from before the moment at which this sweep was wanted. A sweep that was done before
//! that moment does not count. One that is done later, under another name, does: it began after the earlier one, because
//! the lock is not free while it holds "done".
//!
//! A sweep keeps its lock and its glob from the request for the lock to its end, whatever is served or drained meanwhile.
//! One whose services changed before its search began is begun anew for those that there are then. One whose services were
//! drained during the search has ignored their requests, so it does not count as done. If nothing is served any more, the
//! search is cancelled and the lock released.
//!
//! A found request is first looked at (`EXISTS RES ERR`, `PTTL claim`). An orphan, unanswered and unclaimed, is claimed
//! at once; one that another backend works on is remembered until that claim may have lapsed, as if this backend had
//! tried and lost. Requests that this backend already knows, or knows to be answered, cost no command.

use std::collections::VecDeque;

use bytes::Bytes;

use super::job::Origin;
use super::{Backend, Output, Time};
use crate::core::command::{Command, Purpose, Replies, Reply, Search, SearchStep, SearchToken};
use crate::core::key::{Audience, Key, RequestId, RequestKeys, Status};
use crate::core::settings::CLAIM_LIMIT_BYTES;

/// What PTTL says of a key that is not there, and of one without an end.
pub(super) const ABSENT: i64 = -2;
const ENDLESS: i64 = -1;

/// The prefix of what the lock holds for a while after a sweep; the name of the sweep follows.
const DONE: &[u8] = b"done";

/// What a backend has seen of others' sweeps since it wanted one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Seen {
    #[default]
    Nothing,
    /// One was under way.
    UnderWay,
    /// One was done already; what the lock said.
    Done(Bytes),
}

impl Seen {
    /// Whether a sweep that is done, with this in the lock, was under way or began after what was seen.
    fn is_followed_by(&self, done: &Bytes) -> bool {
        match self {
            Seen::Nothing => false,
            Seen::UnderWay => true,
            Seen::Done(before) => before != done,
        }
    }
}

/// What a sweep is for: all that is served when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    /// The patterns, sorted. At least one.
    patterns: Vec<String>,
    /// What the search looks for.
    glob: String,
}

impl Scope {
    /// The lock of all backends that serve the same.
    fn lock_key(&self) -> String {
        let name = match &self.patterns[..] {
            [only] => only.clone(),
            several => format!("{:016x}", fnv(several.join(",").as_bytes())),
        };
        ["MUF/_/KEEP/_sweep.", &name].concat()
    }

    /// Releases the lock, by a TTL of 1 ms.
    fn release(&self) -> Output {
        let key = self.lock_key();
        note(Command::Expire { key, ttl_ms: 1 })
    }
}

/// Where a backend stands with its sweeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Sweep {
    /// Nothing was missed.
    #[default]
    Idle,
    /// One is wanted.
    Due { at: Time, seen: Seen },
    /// The lock is requested.
    Locking { scope: Scope, seen: Seen },
    /// The lock is ours; the search waits for its turn.
    Waiting { scope: Scope, renew_at: Time },
    /// The search is under way.
    Running { held: Option<Held> },
}

/// The lock of the search under way. There is none where a unit polls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    scope: Scope,
    renew_at: Time,
}

impl Backend {
    /// Pushes arrive from now on. Commands that were under way fail and are repeated; requests whose events were missed are swept.
    pub(crate) fn subscribed(&mut self, now: Time) {
        self.recent.clear();
        self.want_sweep(now);
    }

    /// Requests may have been missed.
    pub(super) fn want_sweep(&mut self, now: Time) {
        if self.active_patterns().next().is_none() {
            // What is served later is swept for then.
            return;
        }
        let pause_ms = self.rng.u64(..=self.settings.lease_ms() / 8);
        let at = now.plus(pause_ms);
        match self.sweep {
            Sweep::Idle => {
                let seen = Seen::Nothing;
                self.sweep = Sweep::Due { at, seen };
            }
            // What was seen so far may be older than what was missed now.
            Sweep::Due { at, .. } => {
                let seen = Seen::Nothing;
                self.sweep = Sweep::Due { at, seen };
            }
            Sweep::Locking { .. } | Sweep::Running { .. } => self.sweep_again = true,
            // Its search has not begun.
            Sweep::Waiting { .. } => {}
        }
    }

    /// A list was full, and requests were dropped. When there is room again they are swept up.
    pub(super) fn overflowed(&mut self) {
        self.counters.dropped += 1;
        self.overflow = true;
    }

    /// Wants a sweep if requests were dropped and both lists are half empty again.
    pub(super) fn make_up_for_overflow(&mut self, now: Time) {
        let is_full =
            |service: &super::Service| service.waiting.len() > self.settings.waiting_limit / 2;
        if self.overflow
            && self.lost <= self.settings.lost_limit / 2
            && !self.services.values().any(is_full)
        {
            self.overflow = false;
            self.want_sweep(now);
        }
    }

    pub(super) fn next_sweep(&self) -> Option<Time> {
        match &self.sweep {
            Sweep::Due { at, .. } => Some(*at),
            Sweep::Waiting { renew_at, .. } => Some(*renew_at),
            Sweep::Running { held } => held.as_ref().map(|held| held.renew_at),
            Sweep::Idle | Sweep::Locking { .. } => None,
        }
    }

    pub(super) fn sweep_timeout(&mut self, now: Time, out: &mut VecDeque<Output>) {
        if self.next_sweep().is_none_or(|at| at > now) {
            return;
        }
        let ttl_ms = self.settings.sweep_lock_ms();
        let next_at = now.plus(ttl_ms / 3);
        match &mut self.sweep {
            Sweep::Due { seen, .. } => {
                let seen = std::mem::take(seen);
                self.begin(seen, out);
            }
            Sweep::Waiting { scope, renew_at }
            | Sweep::Running {
                held: Some(Held { scope, renew_at }),
            } => {
                *renew_at = next_at;
                let key = scope.lock_key();
                out.push_back(note(Command::Expire { key, ttl_ms }));
            }
            Sweep::Idle | Sweep::Locking { .. } | Sweep::Running { held: None } => {}
        }
    }

    /// Requests the lock of a sweep that is due.
    fn begin(&mut self, seen: Seen, out: &mut VecDeque<Output>) {
        let Some(scope) = self.scope() else {
            // All of them were drained meanwhile.
            self.sweep = Sweep::Idle;
            return;
        };
        if self.settings.poll_ms.is_some() {
            // Without events no other backend can be relied on: each searches for itself.
            return self.search(scope, None, out);
        }
        let key = scope.lock_key();
        self.sweep = Sweep::Locking { scope, seen };
        let take = Command::Set {
            key: key.clone(),
            value: self.claim_name.clone(),
            ttl_ms: Some(self.settings.sweep_lock_ms()),
            only_new: true,
        };
        let read = Command::Read {
            key: key.clone(),
            limit_bytes: CLAIM_LIMIT_BYTES,
        };
        let commands = vec![take, read, Command::TimeToLive(key)];
        out.push_back(Output::run(Purpose::SweepLock, commands));
    }

    /// The reply to the request for the lock.
    pub(crate) fn sweep_locked(&mut self, replies: Replies, now: Time, out: &mut VecDeque<Output>) {
        let (scope, seen) = match &self.sweep {
            Sweep::Locking { scope, seen } => (scope.clone(), seen.clone()),
            _ => return,
        };
        let lease_ms = self.settings.lease_ms();
        let spread_ms = self.rng.u64(..=lease_ms / 8);
        let Ok([taken, holder, left]) = replies.as_deref() else {
            let at = now.plus(self.settings.retry_ms + spread_ms);
            self.sweep = Sweep::Due { at, seen };
            return;
        };
        let holder = match holder {
            Reply::Value(value) => value.clone(),
            _ => Bytes::new(),
        };
        let is_ours = *taken == Reply::Ok || holder == self.claim_name;
        let is_changed = self.scope().as_ref() != Some(&scope);
        if is_changed && is_ours {
            out.push_back(scope.release());
        }
        if is_changed {
            return self.begin_anew(now);
        }
        if is_ours {
            // One that is ours from before is as old as the request that got it, and is extended at once.
            let renew_at = match taken {
                Reply::Ok => now.plus(self.settings.sweep_lock_ms() / 3),
                _ => now,
            };
            self.sweep = Sweep::Waiting { scope, renew_at };
            return;
        }
        // A lock without an end (a person's, or another program's) would keep all sweeps off for ever.
        let is_endless = left.number() == ENDLESS;
        let lock_ms = self.settings.sweep_lock_ms();
        if is_endless {
            let (key, ttl_ms) = (scope.lock_key(), lock_ms);
            out.push_back(note(Command::Expire { key, ttl_ms }));
        }
        let is_done = holder.starts_with(DONE);
        if is_done && seen.is_followed_by(&holder) {
            return self.end_sweep(now);
        }
        // A sweep that was done before this one was wanted does not count; one under way is looked at again.
        let pause_ms = match is_done {
            true if is_endless => lock_ms,
            true => u64::try_from(left.number()).unwrap_or(0),
            false => lease_ms / 2,
        };
        let at = now.plus(pause_ms + 1 + spread_ms);
        let seen = match is_done {
            // Requests may have been missed after the lock was read.
            _ if std::mem::take(&mut self.sweep_again) => Seen::Nothing,
            true => Seen::Done(holder),
            false => Seen::UnderWay,
        };
        self.sweep = Sweep::Due { at, seen };
    }

    /// What is served has changed since the sweep was begun: wants one of what is served now.
    fn begin_anew(&mut self, now: Time) {
        self.sweep = Sweep::Idle;
        self.sweep_again = false;
        self.want_sweep(now);
    }

    /// Whether a sweep waits for its turn to search.
    pub(crate) fn wants_turn(&self) -> bool {
        matches!(self.sweep, Sweep::Waiting { .. })
    }

    /// Whether a search that had to wait for its turn is under way.
    pub(crate) fn is_searching(&self) -> bool {
        matches!(self.sweep, Sweep::Running { held: Some(_) })
    }

    /// It is this unit's turn to search.
    pub(crate) fn take_turn(&mut self, now: Time, out: &mut VecDeque<Output>) {
        let Sweep::Waiting { scope, renew_at } = std::mem::take(&mut self.sweep) else {
            return;
        };
        if self.scope().as_ref() != Some(&scope) {
            out.push_back(scope.release());
            return self.begin_anew(now);
        }
        let held = Held {
            scope: scope.clone(),
            renew_at,
        };
        self.search(scope, Some(held), out);
    }

    fn search(&mut self, scope: Scope, held: Option<Held>, out: &mut VecDeque<Output>) {
        self.sweep_number += 1;
        self.sweep = Sweep::Running { held };
        self.sweep_again = false;
        self.counters.sweeps += 1;
        out.push_back(Output::Search {
            token: SearchToken(Search::Sweep(self.sweep_number)),
            pattern: format!("MUF/*/REQ/{}", scope.glob),
            paced: true,
        });
    }

    /// Ends a sweep none of whose services is served any more.
    pub(super) fn give_up_sweep(&mut self, out: &mut VecDeque<Output>) {
        if self.active_patterns().next().is_some() {
            return;
        }
        match std::mem::take(&mut self.sweep) {
            Sweep::Idle | Sweep::Due { .. } => {}
            // Its reply says whether there is a lock to release.
            locking @ Sweep::Locking { .. } => self.sweep = locking,
            Sweep::Waiting { scope, .. } => out.push_back(scope.release()),
            Sweep::Running { held } => {
                let token = SearchToken(Search::Sweep(self.sweep_number));
                out.push_back(Output::CancelSearch { token });
                out.extend(held.map(|held| held.scope.release()));
            }
        }
        self.sweep_again = false;
    }

    /// A sweep of our own, or one that we followed, is done.
    fn end_sweep(&mut self, now: Time) {
        self.sweep = Sweep::Idle;
        if let Some(poll_ms) = self.settings.poll_ms {
            let (at, seen) = (now.plus(poll_ms), Seen::Nothing);
            self.sweep = Sweep::Due { at, seen };
        }
        if std::mem::take(&mut self.sweep_again) {
            self.want_sweep(now);
        }
    }

    /// What the lock says after this sweep: no other sweep says the same.
    fn done_name(&self) -> Bytes {
        let number = self.sweep_number.to_string();
        let name: &[&[u8]] = &[DONE, b" ", &self.claim_name, b".", number.as_bytes()];
        name.concat().into()
    }

    fn active_patterns(&self) -> impl Iterator<Item = &crate::core::name::Pattern> {
        let active = self.services.values().filter(|service| !service.draining);
        active.map(|service| &service.pattern)
    }

    /// All that is served; none if that is nothing.
    fn scope(&self) -> Option<Scope> {
        let mut globs = self.active_patterns().map(|pattern| pattern.id_glob());
        let glob = match (globs.next()?, globs.next()) {
            (only, None) => only,
            _ => "*".into(),
        };
        let mut patterns: Vec<String> = self.active_patterns().map(|it| it.to_string()).collect();
        patterns.sort_unstable();
        patterns.dedup();
        Some(Scope { patterns, glob })
    }

    /// Whether all that a sweep is for is still served.
    fn serves(&self, scope: &Scope) -> bool {
        let is_served = |wanted: &String| {
            let mut active = self.active_patterns();
            active.any(|pattern| pattern.to_string() == *wanted)
        };
        scope.patterns.iter().all(is_served)
    }

    pub(crate) fn found(
        &mut self,
        sweep: u64,
        keys: &[String],
        step: SearchStep,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        for text in keys {
            self.found_key(text, out);
        }
        if step == SearchStep::More || sweep != self.sweep_number {
            return;
        }
        let Sweep::Running { held } = &mut self.sweep else {
            return;
        };
        if let Some(Held { scope, .. }) = held.take() {
            let is_done = step == SearchStep::Done && self.serves(&scope);
            out.push_back(match is_done {
                false => scope.release(),
                true => note(Command::Set {
                    key: scope.lock_key(),
                    value: self.done_name(),
                    ttl_ms: Some(2 * self.settings.lease_ms()),
                    only_new: false,
                }),
            });
        }
        self.end_sweep(now);
        if step == SearchStep::Failed {
            self.want_sweep(now.plus(self.settings.lease_ms()));
        }
    }

    fn found_key(&mut self, text: &str, out: &mut VecDeque<Output>) {
        let Some(key) = Key::parse(text).filter(|key| key.status == Status::Req) else {
            return;
        };
        let Some(id) = RequestId::parse(key.id) else {
            return;
        };
        let known = self.by_key.contains_key(&(key.unit.to_owned(), id.clone()));
        if known || self.recent.contains(key.unit, &id) || self.service_for(&id).is_none() {
            return;
        }
        let keys = RequestKeys {
            unit: key.unit,
            id: &id,
        };
        let commands = match id.audience() {
            Audience::All => {
                let own = |status| keys.answer_of(status, self.unit.as_str());
                vec![Command::Exists(vec![own(Status::Res), own(Status::Err)])]
            }
            _ => vec![
                Command::Exists(vec![keys.res(), keys.err()]),
                Command::TimeToLive(keys.claim()),
            ],
        };
        let purpose = Purpose::Check {
            unit: key.unit.to_owned(),
            id,
        };
        out.push_back(Output::run(purpose, commands));
    }

    pub(crate) fn checked(
        &mut self,
        unit: &str,
        id: &RequestId,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Ok([Reply::Number(0), claim @ ..]) = replies.as_deref() else {
            return;
        };
        match claim.first().map_or(ABSENT, Reply::number) {
            ABSENT => self.offer(unit, id, Origin::Sweep, now, out),
            left_ms => {
                // A claim without a TTL was set by a person: the request is left alone.
                if let Ok(left_ms) = u64::try_from(left_ms) {
                    self.await_lapse(unit, id, left_ms, now, out);
                }
            }
        }
    }

    /// Remembers a request whose claim another backend has, which ends in `left_ms` unless it is renewed.
    fn await_lapse(
        &mut self,
        unit: &str,
        id: &RequestId,
        left_ms: u64,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let known = self.by_key.contains_key(&(unit.to_owned(), id.clone()));
        let Some(service) = self.service_for(id).filter(|_| !known) else {
            return;
        };
        let job_id = self.insert(unit, id, service, Origin::Takeover);
        self.lose(job_id, Some(left_ms), now, out);
    }
}

/// A command whose reply changes nothing.
fn note(command: Command) -> Output {
    Output::run(Purpose::Note, vec![command])
}

/// FNV-1a of 64 bits, which other SDKs can compute too.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
