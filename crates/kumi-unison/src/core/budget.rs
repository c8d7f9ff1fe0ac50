//! How many bytes a connection may hold, in three budgets: messages of the peer that wait or whose handlers run, long
//! answers that the peer has not received, and other messages that are not written.
//!
//! All channels of a connection share its budgets. A budget only counts; what follows when it is used up is decided by the
//! caller: a request is answered as busy, an event ends its stream, a long answer becomes a short error, other messages wait.
//!
//! All connections of a server's endpoint share one [`EndpointBudget`]. A connection's [`Share`] of it counts what its
//! budgets hold together. Up to a floor this is not charged to the endpoint, so that a connection with little to hold is
//! served however much the others hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Notify;

/// What all connections of an endpoint may hold above their floors.
#[derive(Debug)]
pub(crate) struct EndpointBudget {
    limit_bytes: i64,
    /// May be below zero for a moment: of two changes of one connection, the second may be counted first.
    used_bytes: AtomicI64,
}

impl EndpointBudget {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes: i64::try_from(limit_bytes).unwrap_or(i64::MAX),
            used_bytes: AtomicI64::new(0),
        }
    }

    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> i64 {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

/// What one connection holds, and the endpoint it is charged to above the floor.
#[derive(Debug)]
pub(crate) struct Share {
    endpoint: Arc<EndpointBudget>,
    floor_bytes: usize,
    used_bytes: AtomicUsize,
}

impl Share {
    pub(crate) fn new(endpoint: &Arc<EndpointBudget>, floor_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            endpoint: Arc::clone(endpoint),
            floor_bytes,
            used_bytes: AtomicUsize::new(0),
        })
    }

    /// The share of a connection that no endpoint limits.
    pub(crate) fn unlimited() -> Arc<Self> {
        Self::new(&Arc::new(EndpointBudget::new(0)), usize::MAX)
    }

    /// Counts more; false, and nothing changed, when the endpoint has no more.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let fits = self.add(bytes);
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    /// Counts more, whether or not the endpoint has it; false when it has not.
    fn add(&self, bytes: usize) -> bool {
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        let above = self.above_floor(before, before + bytes);
        if above == 0 {
            return true;
        }
        let used = self.endpoint.used_bytes.fetch_add(above, Ordering::Relaxed);
        used + above <= self.endpoint.limit_bytes
    }

    /// Whether this connection is above its floor and the endpoint has no more.
    fn is_over(&self) -> bool {
        self.used_bytes.load(Ordering::Relaxed) > self.floor_bytes
            && self.endpoint.used_bytes.load(Ordering::Relaxed) > self.endpoint.limit_bytes
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        let before = self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        let above = self.above_floor(before - bytes, before);
        self.endpoint.used_bytes.fetch_sub(above, Ordering::Relaxed);
    }

    /// How much of the bytes between two counts is above the floor.
    fn above_floor(&self, from: usize, to: usize) -> i64 {
        let above = |count: usize| count.saturating_sub(self.floor_bytes) as i64;
        above(to) - above(from)
    }
}

/// Bytes that may be held, and that are.
#[derive(Debug)]
pub(crate) struct Budget {
    limit_bytes: usize,
    share: Arc<Share>,
    used_bytes: AtomicUsize,
    /// Less than half of it is used again.
    eased: Notify,
}

impl Budget {
    #[cfg(test)]
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self::shared(limit_bytes, Share::unlimited())
    }

    /// A budget that also counts against this share of an endpoint's.
    pub(crate) fn shared(limit_bytes: usize, share: Arc<Share>) -> Self {
        Self {
            limit_bytes,
            share,
            used_bytes: AtomicUsize::new(0),
            eased: Notify::new(),
        }
    }

    /// Resolves when less than half of it is used.
    pub(crate) async fn ease(&self) {
        loop {
            let eased = self.eased.notified();
            tokio::pin!(eased);
            eased.as_mut().enable();
            if self.used_bytes() <= self.limit_bytes / 2 {
                return;
            }
            eased.await;
        }
    }

    /// Bytes held now.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Counts more, if there is room; false, and nothing changed, if not. An empty budget takes a message of any size, because it
    /// would be refused for ever otherwise.
    fn take(&self, bytes: usize) -> bool {
        if !self.share.take(bytes) {
            return false;
        }
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before + bytes <= self.limit_bytes;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    /// Counts more, without a limit. [`Self::is_over`] tells whether the limit is exceeded.
    pub(super) fn add(&self, bytes: usize) {
        self.share.add(bytes);
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether more is held than the connection or its endpoint may hold.
    pub(super) fn is_over(&self) -> bool {
        self.used_bytes() > self.limit_bytes || self.share.is_over()
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.share.give_back(bytes);
        let half = self.limit_bytes / 2;
        let before = self.used_bytes.fetch_sub(bytes, Ordering::SeqCst);
        if before > half && before - bytes <= half {
            self.eased.notify_waiters();
        }
    }
}

/// A part of a budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    /// Nothing yet.
    pub(crate) fn none(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// This many bytes, if the budget has them.
    pub(crate) fn of(budget: &Arc<Budget>, bytes: usize) -> Option<Self> {
        let mut charge = Self::none(budget);
        charge.grow(bytes).then_some(charge)
    }

    /// Takes more; false, and nothing changed, when there is no more.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let taken = self.budget.take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    /// Gives a part back.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.give_back(bytes);
    }
}

/// Bytes that are charged until the last reference to them is dropped.
struct Charged {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Charge {
    /// Ties this to bytes: it is given back when their last copy is gone.
    pub(crate) fn tie_to(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Charged {
            bytes,
            _charge: self,
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_and_given_back() {
        let budget = Arc::new(Budget::new(100));
        let mut first = Charge::of(&budget, 60).unwrap();
        assert!(Charge::of(&budget, 41).is_none());
        let second = Charge::of(&budget, 40).unwrap();
        assert!(!first.grow(1));
        drop(second);
        assert!(first.grow(40));
        first.shrink(1_000);
        assert_eq!(budget.used_bytes(), 0);
        drop(first);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn connections_share_what_is_above_their_floors() {
        let endpoint = Arc::new(EndpointBudget::new(100));
        let connection = || Arc::new(Budget::shared(1_000, Share::new(&endpoint, 10)));
        let (greedy, modest) = (connection(), connection());
        let first = Charge::of(&greedy, 110).expect("a floor and the endpoint");
        assert_eq!(endpoint.used_bytes(), 100);
        assert!(Charge::of(&greedy, 1).is_none());
        let floor = Charge::of(&modest, 10).expect("its floor is its own");
        assert!(Charge::of(&modest, 1).is_none());
        drop(first);
        assert_eq!(endpoint.used_bytes(), 0);
        let more = Charge::of(&modest, 100).expect("the endpoint has room again");
        drop((floor, more));
        assert_eq!(endpoint.used_bytes(), 0);
    }

    #[test]
    fn budgets_of_one_connection_share_its_floor() {
        let endpoint = Arc::new(EndpointBudget::new(0));
        let share = Share::new(&endpoint, 10);
        let held = Arc::new(Budget::shared(1_000, Arc::clone(&share)));
        let answers = Arc::new(Budget::shared(1_000, share));
        let first = Charge::of(&held, 6).expect("below the floor");
        assert!(Charge::of(&answers, 5).is_none());
        drop(first);
        assert!(Charge::of(&answers, 5).is_some());
    }

    #[test]
    fn what_is_held_in_any_case_makes_a_connection_above_its_floor_wait() {
        let endpoint = Arc::new(EndpointBudget::new(100));
        let connection = || Budget::shared(1_000, Share::new(&endpoint, 10));
        let (greedy, modest) = (connection(), connection());
        greedy.add(110);
        modest.add(10);
        assert!(!greedy.is_over() && !modest.is_over());
        greedy.add(1);
        assert!(greedy.is_over(), "the endpoint has no more");
        assert!(!modest.is_over(), "its floor is its own");
        greedy.give_back(111);
        greedy.add(1);
        assert!(!greedy.is_over());
        let alone = Budget::new(100);
        alone.add(101);
        assert!(alone.is_over());
    }

    #[test]
    fn a_charge_tied_to_bytes_lasts_as_long_as_they_do() {
        let budget = Arc::new(Budget::new(100));
        let bytes = Charge::of(&budget, 5)
            .unwrap()
            .tie_to(Bytes::from_static(b"bytes"));
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(budget.used_bytes(), 5);
        drop(part);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[tokio::test]
    async fn who_waits_for_ease_is_woken_by_what_is_given_back() {
        let budget = Arc::new(Budget::new(100));
        let first = Charge::of(&budget, 40).unwrap();
        let second = Charge::of(&budget, 40).unwrap();
        let eased = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.ease().await }
        });
        tokio::task::yield_now().await;
        assert!(!eased.is_finished());
        drop(first);
        eased.await.unwrap();
        drop(second);
    }

    #[test]
    fn one_message_alone_is_never_too_large() {
        let budget = Arc::new(Budget::new(10));
        let large = Charge::of(&budget, 1_000).unwrap();
        assert!(Charge::of(&budget, 1).is_none());
        drop(large);
        assert!(Charge::of(&budget, 1).is_some());
    }
}
