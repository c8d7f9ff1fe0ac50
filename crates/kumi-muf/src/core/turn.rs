//! Turns at searching the keyspace: of all units of a database, one at a time searches after a gap.
//!
//! All units of a server lose their subscriptions at once, and each has something to search for then: its requests, its
//! watched values, the list of units. A search looks at every key of the database, so searches side by side would take
//! all of the server's time. A search that no caller waits for is made under a lock:
//!
//! ```text
//!   wanted --> SET MUF/_/KEEP/_search me NX PX 6000 --ours--> search, renewing the lock --> PEXPIRE 1
//!                  |   ^                                         |  ^
//!         another's|   | a random pause, longer each time        \--/ the next one of this unit, for a lease at most
//!                  v   |
//!                 waits-/ --too long--> search without the lock
//! ```
//! The pause is a lease at most, and a unit that gave the lock back requests it again after more than that: all that wait
//! come first. A unit that has waited for 15 to 30 leases searches without the lock, so that every search has its turn; a
//! turn in between that was too short for all its searches does not make the others wait longer. Which searches wait is
//! known to `backend/sweep.rs` and `watch/`; this file has the lock only.

use std::collections::VecDeque;

use bytes::Bytes;

use super::command::{Command, Purpose, Replies, Reply, Time};
use super::output::Output;
use super::settings::{CLAIM_LIMIT_BYTES, Settings};

/// The lock.
const KEY: &str = "MUF/_/KEEP/_search";

/// What PTTL says of a lock without an end.
const ENDLESS: i64 = -1;

/// Shortest wait after which a search is made without the lock, in leases. The longest is twice that.
const WAIT_LEASES: u64 = 15;

/// How a unit stands with the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is searched for.
    Idle,
    /// A search waits.
    Waiting(Wait),
    /// A search waits, and the lock is requested.
    Locking(Wait),
    /// The turn is ours. Searches of this unit begin until `until`.
    Ours { renew_at: Option<Time>, until: Time },
}

/// A search that waits for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wait {
    /// When the lock is requested next.
    at: Time,
    /// When the search is made without the lock.
    until: Time,
    /// The pause after the next failure.
    pause_ms: u64,
}

/// The turn of one unit.
#[derive(Debug)]
pub(crate) struct Turn {
    /// What stands in the lock: `unit~instance`.
    name: Bytes,
    lease_ms: u64,
    lock_ms: u64,
    state: State,
    /// When a search is made without the lock, since the first one that is wanted began to wait. None if none is wanted.
    wait_until: Option<Time>,
    /// A reply to a request for the lock, or a release of it, may have been lost: a lock of our name is ours. At other
    /// times it was released a moment ago, and is about to end.
    is_unsure: bool,
    rng: fastrand::Rng,
}

impl Turn {
    pub(crate) fn new(name: Bytes, settings: &Settings, rng: fastrand::Rng) -> Self {
        Self {
            name,
            lease_ms: settings.lease_ms(),
            lock_ms: settings.sweep_lock_ms(),
            state: State::Idle,
            wait_until: None,
            is_unsure: false,
            rng,
        }
    }

    /// Whether one more search may begin now. `is_searching` says that one is under way, `is_wanted` that one waits.
    pub(crate) fn step(
        &mut self,
        is_searching: bool,
        is_wanted: bool,
        now: Time,
        out: &mut VecDeque<Output>,
    ) -> bool {
        if !is_wanted {
            self.wait_until = None;
        }
        if let State::Ours { renew_at, until } = self.state {
            if is_searching {
                self.renew(renew_at, until, now, out);
                return false;
            }
            if is_wanted && now < until {
                return true;
            }
            self.release(out);
            if is_wanted {
                // All others that wait request the lock within a lease.
                self.state = self.wait(now.plus(self.lease_ms + 1), now);
            }
        }
        match self.state {
            State::Waiting(_) if !is_wanted => self.state = State::Idle,
            State::Idle if is_wanted => self.state = self.wait(now, now),
            _ => {}
        }
        match self.state {
            State::Waiting(wait) if wait.until <= now => {
                self.state = self.ours(None, now);
                true
            }
            State::Waiting(wait) if wait.at <= now => {
                self.state = State::Locking(wait);
                let take = Command::Set {
                    key: KEY.to_owned(),
                    value: self.name.clone(),
                    ttl_ms: Some(self.lock_ms),
                    only_new: true,
                };
                let read = Command::Read {
                    key: KEY.to_owned(),
                    limit_bytes: CLAIM_LIMIT_BYTES,
                };
                let left = Command::TimeToLive(KEY.to_owned());
                let commands = vec![take, read, left];
                out.push_back(Output::run(Purpose::SearchLock, commands));
                false
            }
            _ => false,
        }
    }

    /// Connections were lost, and what was under way on them.
    pub(crate) fn subscribed(&mut self) {
        self.is_unsure = true;
    }

    /// Gives a turn back at once that nothing of this unit needs any more: the unit may be about to close.
    pub(crate) fn give_back(&mut self, out: &mut VecDeque<Output>) {
        self.wait_until = None;
        self.release(out);
    }

    fn release(&mut self, out: &mut VecDeque<Output>) {
        if let State::Ours { renew_at, .. } = self.state {
            self.state = State::Idle;
            if renew_at.is_some() {
                out.push_back(note(1));
            }
        }
    }

    /// The reply to the request for the lock. The next step shows what follows from it.
    pub(crate) fn locked(&mut self, replies: Replies, now: Time, out: &mut VecDeque<Output>) {
        let State::Locking(wait) = self.state else {
            return;
        };
        let was_unsure = std::mem::replace(&mut self.is_unsure, replies.is_err());
        let renew_at = match replies.as_deref() {
            Ok([Reply::Ok, ..]) => Some(now.plus(self.lock_ms / 3)),
            // It is extended at once: it is as old as the request that got it.
            Ok([_, Reply::Value(holder), ..]) if was_unsure && *holder == self.name => Some(now),
            // A lock without an end would make all units wait as long as they can, each time.
            Ok([.., Reply::Number(ENDLESS)]) => {
                out.push_back(note(self.lock_ms));
                None
            }
            _ => None,
        };
        self.state = match renew_at {
            Some(_) => self.ours(renew_at, now),
            None => {
                let pause_ms = wait.pause_ms.max(1);
                let at = now.plus(pause_ms + self.rng.u64(..=pause_ms));
                State::Waiting(Wait {
                    at,
                    pause_ms: (2 * pause_ms).min(self.lease_ms / 2),
                    ..wait
                })
            }
        };
    }

    /// When [`Turn::step`] has something to do, at the earliest.
    pub(crate) fn next_timeout(&self, is_searching: bool, is_wanted: bool) -> Option<Time> {
        match self.state {
            State::Idle => is_wanted.then_some(Time(0)),
            State::Waiting(_) if !is_wanted => Some(Time(0)),
            State::Waiting(wait) => Some(wait.at.min(wait.until)),
            State::Locking(_) => None,
            State::Ours { renew_at, .. } if is_searching => renew_at,
            State::Ours { .. } => Some(Time(0)),
        }
    }

    /// A search waits from now on. The lock is requested at `at`.
    fn wait(&mut self, at: Time, now: Time) -> State {
        let wait_ms = self.lease_ms.saturating_mul(WAIT_LEASES);
        let rng = &mut self.rng;
        let draw = || now.plus(wait_ms.saturating_add(rng.u64(..=wait_ms)));
        State::Waiting(Wait {
            at,
            until: *self.wait_until.get_or_insert_with(draw),
            pause_ms: self.lease_ms / 16,
        })
    }

    fn ours(&self, renew_at: Option<Time>, now: Time) -> State {
        let until = now.plus(self.lease_ms);
        State::Ours { renew_at, until }
    }

    fn renew(
        &mut self,
        renew_at: Option<Time>,
        until: Time,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        if renew_at.is_some_and(|at| at <= now) {
            out.push_back(note(self.lock_ms));
            let renew_at = Some(now.plus(self.lock_ms / 3));
            self.state = State::Ours { renew_at, until };
        }
    }
}

/// Sets the TTL of the lock. If another unit has the lock by now, one search may run beside that unit's.
fn note(ttl_ms: u64) -> Output {
    let key = KEY.to_owned();
    Output::run(Purpose::Note, vec![Command::Expire { key, ttl_ms }])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turn of a unit, and what it sends.
    struct Taking {
        turn: Turn,
        out: VecDeque<Output>,
        /// What PTTL says of the lock.
        left_ms: i64,
        now: Time,
    }

    impl Taking {
        fn new() -> Self {
            let rng = fastrand::Rng::with_seed(1);
            Self {
                turn: Turn::new("me~1".into(), &Settings::default(), rng),
                out: VecDeque::new(),
                left_ms: 5_000,
                now: Time(1_000),
            }
        }

        /// Whether a search may begin.
        fn step(&mut self, is_searching: bool, is_wanted: bool) -> bool {
            self.turn
                .step(is_searching, is_wanted, self.now, &mut self.out)
        }

        /// What was sent since the last time.
        fn sent(&mut self) -> Vec<Command> {
            let sent = self.out.drain(..);
            let commands = sent.flat_map(|output| match output {
                Output::Run(op) => op.commands,
                other => panic!("{other:?}"),
            });
            commands.collect()
        }

        /// Replies to the request for the lock with its holder.
        fn locked(&mut self, holder: &'static str) {
            assert_eq!(self.sent().len(), 3, "the lock is requested");
            let taken = match holder {
                "" => Reply::Ok,
                _ => Reply::Nil,
            };
            let left = Reply::Number(self.left_ms);
            let replies = vec![taken, Reply::Value(holder.into()), left];
            self.turn.locked(Ok(replies), self.now, &mut self.out);
        }
    }

    fn expire(ttl_ms: u64) -> Command {
        let key = KEY.into();
        Command::Expire { key, ttl_ms }
    }

    #[test]
    fn a_search_waits_for_the_lock_and_renews_and_releases_it() {
        let mut taking = Taking::new();
        assert!(!taking.step(false, true));
        taking.locked("");
        assert!(taking.step(false, true));
        for _ in 0..5 {
            let at = taking.turn.next_timeout(true, false);
            taking.now = at.expect("a renewal");
            assert!(!taking.step(true, false));
            let lock_ms = Settings::default().sweep_lock_ms();
            assert_eq!(taking.sent(), [expire(lock_ms)]);
        }
        assert!(!taking.step(false, false));
        assert_eq!(taking.sent(), [expire(1)]);
        assert_eq!(taking.turn.next_timeout(false, false), None);
    }

    #[test]
    fn a_lock_without_an_end_is_given_one() {
        let mut taking = Taking::new();
        taking.left_ms = ENDLESS;
        assert!(!taking.step(false, true));
        taking.locked("other~1");
        let lock_ms = Settings::default().sweep_lock_ms();
        assert_eq!(taking.sent(), [expire(lock_ms)]);
        taking.now = taking.turn.next_timeout(false, true).expect("a pause");
        assert!(!taking.step(false, true));
        taking.locked("");
        assert!(taking.step(false, true));
    }

    #[test]
    fn searches_of_a_unit_share_its_turn_for_a_lease() {
        let mut taking = Taking::new();
        taking.step(false, true);
        taking.locked("");
        assert!(taking.step(false, true));
        assert!(!taking.step(true, true), "one at a time");
        assert!(taking.step(false, true));
        assert_eq!(taking.sent(), []);
        taking.now = taking.now.plus(Settings::default().lease_ms());
        assert!(!taking.step(false, true), "another unit may be next");
        assert_eq!(taking.sent(), [expire(1)]);
        let at = taking.turn.next_timeout(false, true);
        taking.now = at.expect("its next turn");
        assert!(!taking.step(false, true));
        taking.locked("");
        assert!(taking.step(false, true));
    }

    #[test]
    fn a_unit_that_gave_its_turn_back_requests_the_next_after_all_others() {
        let lease_ms = Settings::default().lease_ms();
        let mut taking = Taking::new();
        taking.step(false, true);
        taking.locked("");
        assert!(taking.step(false, true));
        taking.now = taking.now.plus(lease_ms);
        assert!(!taking.step(false, true));
        let next = taking.turn.next_timeout(false, true).expect("a request");
        let pause_ms = next.since(taking.now);
        let mut other = Taking::new();
        for _ in 0..100 {
            other.step(false, true);
            if other
                .turn
                .wait_until
                .is_some_and(|until| until <= other.now)
            {
                break;
            }
            other.locked("other~1");
            let at = other.turn.next_timeout(false, true).expect("a request");
            assert!(at.since(other.now) < pause_ms);
            other.now = at;
        }
    }

    #[test]
    fn a_turn_that_is_too_short_does_not_make_the_next_search_wait_longer() {
        let lease_ms = Settings::default().lease_ms();
        let mut taking = Taking::new();
        taking.step(false, true);
        let until = taking.turn.wait_until;
        taking.locked("");
        assert!(taking.step(false, true));
        taking.now = taking.now.plus(lease_ms);
        assert!(!taking.step(false, true));
        let State::Waiting(wait) = taking.turn.state else {
            panic!("{:?}", taking.turn.state);
        };
        assert_eq!(Some(wait.until), until);
        taking.now = wait.until;
        assert!(taking.step(false, true), "without the lock");
        // The next wish is a new one.
        assert!(!taking.step(false, false));
        assert!(!taking.step(false, true));
        let until = taking.turn.wait_until.expect("it waits");
        assert!(until >= taking.now.plus(15 * lease_ms));
    }

    #[test]
    fn a_search_that_has_waited_too_long_begins_without_the_lock() {
        let mut taking = Taking::new();
        let (began, lease_ms) = (taking.now, Settings::default().lease_ms());
        let mut requests = 0;
        while !taking.step(false, true) {
            if !taking.out.is_empty() {
                taking.locked("other~1");
                requests += 1;
            }
            let at = taking.turn.next_timeout(false, true);
            taking.now = at.expect("it waits");
        }
        let waited_ms = taking.now.since(began);
        let limits_ms = 15 * lease_ms..=30 * lease_ms;
        assert!(limits_ms.contains(&waited_ms), "{waited_ms} ms");
        // Once in half a lease at most, after the first few.
        assert!(requests <= 4 + 2 * waited_ms / lease_ms, "{requests}");
        // What is not ours is neither renewed nor released.
        assert_eq!(taking.turn.next_timeout(true, false), None);
        assert!(!taking.step(true, false));
        assert!(!taking.step(false, false));
        assert_eq!(taking.sent(), []);
    }

    #[test]
    fn a_lock_of_our_name_is_ours_if_the_reply_that_said_so_was_lost() {
        let mut taking = Taking::new();
        taking.step(false, true);
        // It was released a moment ago, and is about to end.
        taking.locked("me~1");
        assert!(!taking.step(false, true));
        taking.now = taking.turn.next_timeout(false, true).expect("another try");
        assert!(!taking.step(false, true));
        taking.sent();
        taking
            .turn
            .locked(Err(crate::core::command::Lost), taking.now, &mut taking.out);
        assert!(!taking.step(false, true));
        taking.now = taking.turn.next_timeout(false, true).expect("another try");
        assert!(!taking.step(false, true));
        taking.locked("me~1");
        assert!(taking.step(false, true));
        assert!(!taking.step(true, false));
        let lock_ms = Settings::default().sweep_lock_ms();
        assert_eq!(taking.sent(), [expire(lock_ms)], "it is extended");
    }

    #[test]
    fn a_lock_that_was_not_released_because_the_connection_broke_is_ours() {
        let mut taking = Taking::new();
        taking.step(false, true);
        taking.locked("");
        assert!(taking.step(false, true));
        assert!(!taking.step(false, false));
        assert_eq!(taking.sent(), [expire(1)], "which gets lost");
        taking.turn.subscribed();
        taking.step(false, true);
        taking.locked("me~1");
        assert!(taking.step(false, true));
    }

    #[test]
    fn a_search_that_is_not_wanted_any_more_releases_what_it_gets() {
        let mut taking = Taking::new();
        taking.step(false, true);
        taking.locked("");
        assert!(!taking.step(false, false));
        assert_eq!(taking.sent(), [expire(1)]);
        assert_eq!(taking.turn.next_timeout(false, false), None);
    }
}
